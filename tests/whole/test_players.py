"""Players, measures and tasks in Python and scenarios: by name, as tables, of plain classes and of modules."""

import functools
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import pytest

import onlinecal as oc
from onlinecal.core.content import content, digest
from onlinecal.core.errors import OnlinecalError, ScenarioError, meant
from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import memory_at, strategy_key, strategy_label
from onlinecal.decisions.responses import as_decision_maker
from onlinecal.decisions.tasks import Account, DecisionTask
from onlinecal.forecasters import Constant, as_forecaster
from onlinecal.games.totals import measure_named
from onlinecal.naming import STRATEGIES, kind_of, strategy_of
from onlinecal.natures import Bernoulli, Sight, as_nature
from onlinecal.report.catalogue import KINDS, entries
from onlinecal.study.panel import Panel
from onlinecal.sweeping import lineup
from tests.whole.test_scenario import loaded

F, N = oc.forecasters, oc.natures


# ---------------------------------------------------------------- by name


def test_strategies_by_name_and_by_table():
    called = oc.play(
        "forecast_hedging", ["contrarian", {"name": "bernoulli", "q": 0.3}], horizon=60, runs=2, seed=4
    )
    made = oc.play(F.ForecastHedging(), [N.Contrarian(), N.Bernoulli(0.3)], horizon=60, runs=2, seed=4)
    assert called == made
    assert oc.play("tests.by_hand:Half", "bernoulli", horizon=5, runs=1).forecasters == ["Half"]
    # An expression is checked at the horizons that are played.
    assert oc.play(F.ForecastHedging("T-2000"), "drift", horizon=2010, runs=1).cells[0].horizon == 2010


@pytest.mark.parametrize(
    ("role", "table", "made"),
    [
        ("forecaster", {"name": "delayed", "of": "constant"}, F.Delayed(F.Constant())),
        ("forecaster", {"name": "delayed", "of": {"each": ["constant"]}}, F.Delayed(F.Constant())),
        ("forecaster", {"name": "expert_mixture", "of": ["constant"]}, F.ExpertMixture((F.Constant(),))),
        ("forecaster", {"name": "expert_mixture", "of": ["constant", {"name": "delayed", "of": "minimax"}]},
         F.ExpertMixture((F.Constant(), F.Delayed(F.Minimax())))),
        ("forecaster", {"name": "constant", "p": {"each": [0.2]}}, F.Constant(0.2)),
        ("nature", {"name": "mixture", "natures": ["drift", "greedy"]}, N.Mixture((N.Drift(), N.Greedy()))),
        ("nature", {"name": "switch", "first": "drift", "then": "greedy"}, N.Switch(N.Drift(), N.Greedy())),
    ],
)  # fmt: skip
def test_parts_by_name(role, table, made):
    """Where a strategy takes others, their names do, as in the lists of a scenario."""
    assert [entry.strategy for entry in lineup(role, [table], Path())] == [made]


def played(forecaster="forecast_hedging", nature="drift", horizon=5):
    return oc.play(forecaster, nature, horizon=horizon, runs=1)


def test_every_name_is_meant_by_itself_in_other_letters():
    for known in (*STRATEGIES.values(), *KINDS.values()):
        for name in known:
            for said in (name, name.upper(), name.replace("_", " "), name.replace("_", "-").title()):
                assert meant("x", said, known) == name


def test_names_are_alike_wherever_something_is_named():
    """Also the names that papers give."""
    for said in ("K29*", "defensive forecasting"):
        assert strategy_label(strategy_of("forecaster", said)) == "defensive forecasting"
        assert entries(said)[0]["name"] == "defensive_forecasting"
    said, names = ["smCE", "smECE", "U-Cal", "ECE"], ["smooth_ce", "smooth_ece", "u_calibration", "ece"]
    assert Panel.of(said).columns == Panel.of(names).columns
    gamma = oc.JointDistribution.from_samples([0.2, 0.2, 0.6], [0, 1, 1])
    assert str(oc.measures.explain(gamma, "Smooth-CE")) == str(oc.measures.explain(gamma, "smooth_ce"))
    assert measure_named("ECE") is measure_named("ece")
    table = oc.evaluate([0.2, 0.4, 0.6], [0, 1, 1], measures=["smooth ECE", "ECE"])
    assert table["ece"] == table["ECE"]
    assert oc.exact.solve(2, 3, "ECE").value == oc.exact.solve(2, 3, "ece").value
    assert as_decision_maker("V shaped").name == as_decision_maker("v_shaped").name


def test_results_in_one_line():
    study = oc.play("forecast_hedging", "bernoulli", horizon=64, runs=2, measures=["ece"], progress=False)
    played, curve, said = study.cells[0], study.curve("ece"), "forecast hedging against bernoulli"
    assert repr(played) == f"Played({said}, T = 64, 2 runs, ece)"
    assert (played != 3, {played: 4}[study.cells[0]]) == (True, 4)
    assert repr(curve) == f"Curve(ece, {said}, T = {curve.rounds[0]:,} to 64, 2 runs)"
    growth = curve.exponent()
    assert repr(growth) == f"Growth({growth})"
    assert str(growth) in growth._repr_html_()
    assert f"<td>{played.totals['ece'][-1].mean():.4g}</td>" in played._repr_html_()


class Leaves:
    def forecast(self):
        raise SystemExit("bye")

    def update(self, forecast, outcome): ...


# ---------------------------------------------------------------- plain classes


class EMA:
    """A moving average of the outcomes."""

    def __init__(self, rate=0.5, start=0.5):
        if not 0 < rate <= 1:
            raise ValueError(f"rate = {rate}, beyond (0, 1]")
        self.rate, self.level = rate, start

    def forecast(self):
        return self.level

    def update(self, forecast, outcome):
        self.level += self.rate * (outcome - self.level)


class Swing:
    """A coin that leans against the last outcome."""

    safe_under_delay, memory = True, "O(lean)"

    def __init__(self, lean=0.2):
        self.lean, self.last = lean, None

    def probability(self):
        return 0.5 if self.last is None else 0.5 + self.lean * (1 - 2 * self.last)

    def update(self, forecast, outcome):
        self.last = outcome


class Late:
    """One in the second half of the game."""

    def __init__(self, horizon):
        self.half, self.round = horizon / 2, 0

    def probability(self):
        self.round += 1
        return float(self.round > self.half)


@dataclass
class Fixed:
    p: float = 0.25

    def forecast(self):
        return self.p

    def update(self, forecast, outcome):
        self.p = 0.75


class Collecting:
    """Says the mean of what is in a sequence, to which it adds outcomes."""

    def __init__(self, seen):
        self.seen = seen

    def forecast(self):
        return sum(self.seen) / len(self.seen)

    def update(self, forecast, outcome):
        self.seen.append(outcome)


def faster(rate=0.9):
    return EMA(rate, 0.5)


def key(thing):
    return digest(content(thing))


def totals(forecaster, nature=None, seed=0, runs=3):
    options = {"horizon": 60, "runs": runs, "seed": seed, "measures": ["brier"]}
    return oc.play(forecaster, nature or Bernoulli(0.3), **options).curve("brier").totals


PARTIAL = functools.partial
WAYS = {
    "partial": lambda rate: PARTIAL(EMA, rate=rate),
    "positional partial": lambda rate: PARTIAL(EMA, rate),
    "partial of a function": lambda rate: PARTIAL(faster, rate=rate),
    "object": EMA,
    "dataclass": Fixed,
    "function": lambda rate: {0.1: lambda: EMA(0.1), 0.2: lambda: EMA(0.2)}[rate],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_parameter_is_part_of_what_is_played(way, seed):
    one, again, other = (as_forecaster(WAYS[way](rate)) for rate in (0.1, 0.1, 0.2))
    assert key(one) == key(again) or way == "function"  # two functions of one name and text are two
    assert key(one) != key(other)
    assert (totals(one, seed=seed) == totals(again, seed=seed)).all()
    assert (totals(one, seed=seed) != totals(other, seed=seed)).any()
    if way != "function":
        assert strategy_key(one) == strategy_key(again) != strategy_key(other)
        assert strategy_label(one) == strategy_label(again) != strategy_label(other)


def test_labels_say_the_parameters():
    things = EMA, PARTIAL(EMA, rate=0.1), PARTIAL(EMA, 0.1), EMA(0.1), Fixed(0.5), faster
    labels = [strategy_label(as_forecaster(thing)) for thing in things]
    assert labels == ["EMA", "EMA (rate=0.1)", "EMA (rate=0.1)", "EMA (rate=0.1)", "Fixed (p=0.5)", "faster"]
    assert strategy_label(as_nature(PARTIAL(Swing, 0.3))) == "Swing (lean=0.3)"
    # Numbers of plain classes are kept under this key.
    assert strategy_key(as_forecaster(EMA)) == 'EMA(make=tests.whole.test_players:EMA, name="EMA")'


class Market:
    """A plain world."""

    def run(self, env, market): ...


KINDS_OF = {
    "forecaster": (EMA, EMA(), faster, PARTIAL(EMA, rate=0.1), PARTIAL(faster, rate=0.1), Constant, Constant()),
    "nature": (Swing, Swing(), lambda: Swing(), PARTIAL(Swing, 0.3), Bernoulli, Bernoulli(), Market, Market(),
               lambda: Market(), PARTIAL(Market)),
    "": (3, print, Path, lambda: 3),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "thing"), [(kind, each) for kind, several in KINDS_OF.items() for each in several]
)
def test_the_kind_of_what_users_give(kind, thing):
    assert kind_of(thing) == kind


def test_every_run_has_an_object_of_its_own(seed):
    given = EMA(0.3)
    spec = as_forecaster(given)
    given.rate = 0.9
    whole = totals(spec, seed=seed)
    assert given.level == 0.5  # the one that was given does not play
    assert (whole == totals(PARTIAL(EMA, rate=0.3), seed=seed)).all()
    for give in (lambda x: PARTIAL(Collecting, x), lambda x: PARTIAL(Collecting, seen=x)):
        shared = deque([0, 1])
        together = totals(give(shared), seed=seed)
        assert list(shared) == [0, 1]
        assert (totals(give(shared), seed=seed, runs=1) == together[..., :1]).all()


def test_a_plain_nature(seed):
    late, swing = as_nature(Late), as_nature(Swing)
    assert (late.sight, late.needs_horizon) == (Sight.NOTHING, True)
    assert (swing.sight, swing.needs_horizon, swing.safe_under_delay) == (Sight.HISTORY, False, True)
    assert [memory_at(as_nature(thing), 10, 10) for thing in (Swing, Swing(0.4))] == [0.2, 0.4]
    natures = [Late, Swing(0.5), PARTIAL(Swing, lean=-0.5)]
    study = oc.play(Constant(0.5), natures, horizon=100, runs=2, seed=seed, measures=["ece"])
    assert study.natures == ["Late", "Swing (lean=0.5)", "Swing (lean=-0.5)"]
    assert study.curve("ece", nature="Late").mean[-1] == 0.0
    assert study.curve("ece", nature="Swing (lean=0.5)").mean[-1] <= 0.5  # 0, 1, 0, 1, …
    assert study.curve("ece", nature="Swing (lean=-0.5)").mean[-1] == 50.0  # one outcome for ever
    assert oc.natures.Switch(swing, late).sight is Sight.HISTORY


class Needy(EMA):
    def __init__(self, rate):
        super().__init__(rate)


class Uncopied(EMA):
    def __deepcopy__(self, memo):
        raise TypeError("there is one of me")


NO_FORECASTER = r"is not a forecaster; expected a Forecaster, or a class with forecast\(\) and update\("
NO_NATURE = r"is not a nature; expected a Nature, or a class with probability\(\)"
MADE = "has been made and takes no parameter 'p'; expected parameters with"
LOCKED = PARTIAL(Collecting, threading.Lock())
REFUSED = [
    (lambda: played({"m": 8}), "forecaster has no name"), (lambda: played({"name": 8}), "forecaster has no name"),
    (lambda: oc.sweep({"name": "delayed", "slots": 3}, slots=4), "slots is in the table and beside it"),
    (lambda: lineup("nature", [{"name": "mixture", "natures": ["gredy"]}], Path()), "did you mean 'greedy'"),
    (lambda: F.ForecastHedging("T-2000 apples"), "is not understood"),
    (lambda: F.ForecastHedging(-3), "expected 1 to 10"),
    (lambda: played(F.ForecastHedging("T/(T-5)")), "no value at T = 5"),
    (lambda: meant("x", "AB", ["a_b", "a b"]), "unknown x 'AB'"),
    (lambda: played(Leaves), r"^'Leaves' against 'drift' at T = 5: SystemExit: bye"),
    (lambda: as_forecaster(3), f"3 {NO_FORECASTER}"), (lambda: as_forecaster("ema"), f"'ema' {NO_FORECASTER}"),
    (lambda: as_forecaster(Swing), NO_FORECASTER), (lambda: as_nature(EMA()), NO_NATURE),
    (lambda: as_forecaster(type("Typo", (), {"forcast": len, "update": len})), "it has forcast; is forecast meant"),
    (lambda: as_forecaster(Needy),
     "'Needy' cannot be made without arguments: .* needs rate; expected defaults for all but"),
    (lambda: as_forecaster(PARTIAL(EMA, rat=1)), "forecaster 'EMA' has no parameter 'rat'; did you mean 'rate'"),
    (lambda: as_forecaster(lambda: 3), "forecaster '<lambda>' made 3, which has no method forecast"),
    (lambda: as_nature(lambda: 1 / 0), "nature '<lambda>' cannot be made: ZeroDivisionError"),
    (lambda: as_forecaster(Uncopied()), "'Uncopied' cannot be copied, .*there is one of me.*; expected its class"),
    (lambda: as_forecaster(LOCKED), "has parameters, which cannot be copied, and each run needs its own"),
    (lambda: as_forecaster(EMA(), {"p": 0.5}), MADE), (lambda: as_nature(Bernoulli(), {"p": 0.5}), MADE),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "said"), REFUSED)
def test_what_is_refused(ask, said):
    with pytest.raises(OnlinecalError, match=said) as error:
        ask()
    assert "\n" not in str(error.value)


# ---------------------------------------------------------------- module:name in scenarios


class Bad(Constant):
    def __init__(self):
        raise ZeroDivisionError("division by zero")


@dataclass(frozen=True)
class Own:
    name: str = "own"
    pay: float = 0.25

    def account(self, gamma):
        return Account(self.pay, 0.0, 0.0, 0.0)


def bias(gamma):
    return float(gamma.residuals.sum())


def tail(gamma, power=2):
    return float((abs(gamma.residuals) ** power).sum())


def threshold(t=0.5, name="threshold"):
    return DecisionTask(name, [[t, t], [0.0, 1.0]])


def out_of_range():
    return threshold(2.0)


def broken():
    return 1 / 0


def nothing():
    return 3


harvest = DecisionTask("harvest", [[0.6, 0.6], [1.0, 0.1]])
ready, number = EMA(0.25), 3


#: the lists of a scenario, where a test says nothing else
LISTS = {"forecasters": '"constant"', "natures": '"bernoulli"', "measures": '"ece"', "tasks": ""}


@pytest.fixture
def planned(tmp_path):
    """The cells of a scenario with these lists, in which ``M`` is this module."""

    def cells(**lists):
        said = "\n".join(f"{key} = [{items}]" for key, items in (LISTS | lists).items())
        text = f"horizons = [20, 40]\nruns = 2\n{said.replace('M:', f'{__name__}:')}\n"
        return loaded(tmp_path, text).cells

    return cells


def test_players_and_their_parameters(planned):
    forecasters = ', '.join(['"M:EMA"', '"M:ready"', '{name = "M:faster", rate = 0.03}', *(
        f'{{name = "M:EMA", rate = {rate}}}' for rate in (0.1, 0.2)
    )])  # fmt: skip
    cells = planned(forecasters=forecasters, natures='{name = "M:Swing", lean = 0.4}, "M:Swing"')
    labels = ["EMA", "EMA (rate=0.25)", "faster (rate=0.03)", "EMA (rate=0.1)", "EMA (rate=0.2)"]
    assert list(dict.fromkeys(cell.forecaster.label for cell in cells)) == labels
    assert list(dict.fromkeys(cell.nature.label for cell in cells)) == ["Swing (lean=0.4)", "Swing"]
    assert len({cell.key for cell in cells}) == len(cells) == 5 * 2 * 2


def test_measures_of_a_module(planned):
    panel = planned(measures='"M:bias", "M:tail", {name = "M:tail", power = 3}')[0].panel
    assert panel.names == ["bias", "tail", "tail(power=3)"]
    gamma = JointDistribution.from_levels([0.25, 0.75], [0.5, 0.5], [0.75, 0.75])
    assert panel.read(gamma) == [0.25, 0.0625, 0.015625]


def test_tasks_of_a_module(planned):
    rounded = '{name = "M:threshold", t = 0.3, response = {name = "rounded", m = 10}}'
    tasks = f'"M:harvest", {{name = "M:threshold", t = 0.3}}, {{name = "M:Own", pay = 0.5}}, {rounded}'
    names = planned(tasks=tasks)[0].panel.names[4::4]
    tasks = ["harvest", "threshold", "own", "threshold, rounded(m=10)"]
    assert names == [f"swap_regret[{name}]" for name in tasks]


@pytest.mark.parametrize(
    ("key", "given", "said"),
    [
        ("forecasters", '"M:Hal"', "module 'M' has no 'Hal'"),
        ("forecasters", '"M:Bad"', r"'M:Bad' cannot be made: ZeroDivisionError: division by zero \(.*test_players.py:"),
        ("forecasters", '{name = "M:EMA", rate = 2}', r"rate = 2, beyond \(0, 1\]"),
        ("measures", '"M:bas"', "measure 'M:bas': module 'M' has no 'bas'"),
        ("measures", '"M:number"', "measure 'M:number' is 3; expected a function of a"),
        ("tasks", '"M:number"', r"task 'M:number' is 3; expected a Task \(.*, or a function that returns one"),
        ("tasks", '"M:broken"', "task 'M:broken' cannot be made: ZeroDivisionError"),
        ("tasks", '"M:nothing"', r"task 'M:nothing' returned 3; expected a Task \("),
        ("tasks", '"M:out_of_range"', "task 'M:out_of_range': .*payoff"),
        ("tasks", '{name = "M:harvest", t = 1}', "is a finished task and has no option 't'"),
        ("tasks", '{name = "M:threshold", response = "best?"}', "unknown response 'best[?]'"),
    ],
)  # fmt: skip
def test_plug_ins_that_are_refused(planned, key, given, said):
    with pytest.raises(ScenarioError, match=said.replace("'M", f"'{__name__}")) as error:
        planned(**{key: given})
    assert "\n" not in str(error.value)
