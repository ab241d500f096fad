"""Players in plain Python: classes, functions, parameters, objects; in Python, in scenarios, on the command line."""

import functools
import sys
import threading
from collections import deque
from dataclasses import dataclass

import pytest

import onlinecal as oc
from onlinecal.core.content import content, digest
from onlinecal.core.errors import OnlinecalError
from onlinecal.core.strategy import strategy_key, strategy_label
from onlinecal.forecasters import Constant, as_forecaster
from onlinecal.naming import kind_of
from onlinecal.natures import Bernoulli, Sight, as_nature
from onlinecal.scenario import load
from tests.command_line import onlinecal


class EMA:
    """A moving average of the outcomes."""

    def __init__(self, rate=0.5, start=0.5):
        self.rate, self.level = rate, start

    def forecast(self):
        return self.level

    def update(self, forecast, outcome):
        self.level += self.rate * (outcome - self.level)


class Swing:
    """A coin that leans against the last outcome."""

    safe_under_delay, memory = True, "O(1)"

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


def faster(rate=0.9):
    return EMA(rate, 0.5)


def key(thing):
    return digest(content(thing))


def totals(forecaster, nature=None, seed=0, runs=3):
    study = oc.play(
        forecaster, nature or Bernoulli(0.3), horizon=60, runs=runs, seed=seed, measures=["brier"]
    )
    return study.curve("brier").totals


# ---------------------------------------------------------------- ways to give one

WAYS = {
    "partial": lambda rate: functools.partial(EMA, rate=rate),
    "positional partial": lambda rate: functools.partial(EMA, rate),
    "partial of a function": lambda rate: functools.partial(faster, rate=rate),
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
    things = EMA, functools.partial(EMA, rate=0.1), functools.partial(EMA, 0.1), EMA(0.1), Fixed(0.5), faster
    labels = [strategy_label(as_forecaster(thing)) for thing in things]
    assert labels == ["EMA", "EMA (rate=0.1)", "EMA (rate=0.1)", "EMA (rate=0.1)", "Fixed (p=0.5)", "faster"]
    assert strategy_label(as_nature(functools.partial(Swing, 0.3))) == "Swing (lean=0.3)"
    study = oc.play([EMA(0.1), EMA(0.2)], Bernoulli(), horizon=20, runs=1)
    assert study.forecasters == ["EMA (rate=0.1)", "EMA (rate=0.2)"]
    # Numbers of plain classes are kept under this key.
    assert strategy_key(as_forecaster(EMA)) == 'EMA(make=tests.whole.test_plain:EMA, name="EMA")'


def test_every_run_has_an_object_of_its_own(seed):
    given = EMA(0.3)
    whole = totals(given, seed=seed)
    assert given.level == 0.5  # the one that was given does not play
    assert (whole == totals(functools.partial(EMA, rate=0.3), seed=seed)).all()
    spec = as_forecaster(given)
    given.rate = 0.9
    assert (totals(spec, seed=seed) == whole).all()


# ---------------------------------------------------------------- natures


def test_a_plain_nature(seed):
    assert as_nature(Swing).sight is Sight.HISTORY
    assert as_nature(Late).sight is Sight.NOTHING
    natures = [Late, Swing(0.5), functools.partial(Swing, lean=-0.5)]
    study = oc.play(Constant(0.5), natures, horizon=100, runs=2, seed=seed, measures=["ece"])
    assert study.natures == ["Late", "Swing (lean=0.5)", "Swing (lean=-0.5)"]
    assert study.curve("ece", nature="Late").mean[-1] == 0.0
    assert study.curve("ece", nature="Swing (lean=0.5)").mean[-1] <= 0.5  # 0, 1, 0, 1, …
    assert study.curve("ece", nature="Swing (lean=-0.5)").mean[-1] == 50.0  # one outcome for ever


def test_a_plain_nature_is_one_of_the_others(seed):
    """A mixture and a switch take it as a part."""
    parts = as_nature(Swing(0.5)), as_nature(Late)
    for whole in (oc.natures.Mixture(parts), oc.natures.Switch(*parts)):
        assert whole.sight is Sight.HISTORY
        totals(Constant(0.5), whole, seed)


def test_facts_of_a_plain_nature():
    spec = as_nature(Swing)
    assert (spec.needs_horizon, spec.safe_under_delay, spec.memory) == (False, True, "O(1)")
    assert as_nature(Late).needs_horizon is True
    assert as_nature(lambda: Swing()).memory == "O(1)"
    swing = type("Windowed", (Swing,), {"memory": "O(lean)"})
    assert oc.core.facts.memory_at(as_nature(swing), 10, 10) == 0.2
    assert oc.core.facts.memory_at(as_nature(swing(0.4)), 10, 10) == 0.4


# ---------------------------------------------------------------- what is refused, in one line


class Needy(EMA):
    def __init__(self, rate):
        super().__init__(rate)


class Uncopied(EMA):
    def __deepcopy__(self, memo):
        raise TypeError("there is one of me")


class Collecting:
    """Says the mean of what is in a sequence, to which it adds outcomes."""

    def __init__(self, seen):
        self.seen = seen

    def forecast(self):
        return sum(self.seen) / len(self.seen)

    def update(self, forecast, outcome):
        self.seen.append(outcome)


def stating(q):
    return type("Bad", (), {"probability": lambda self: q})


def given(thing):
    return (as_nature if isinstance(thing, Bernoulli) else as_forecaster)(thing, {"p": 0.5})


PARTIAL = functools.partial
NO_FORECASTER = r"is not a forecaster; expected a Forecaster, or a class with forecast\(\) and update\("
NO_NATURE = r"is not a nature; expected a Nature, or a class with probability\(\)"
MADE = "has been made and takes no parameter 'p'; expected parameters with"
REFUSED = [
    (as_forecaster, 3, f"3 {NO_FORECASTER}"), (as_forecaster, Swing, NO_FORECASTER),
    (as_nature, EMA, NO_NATURE), (as_nature, EMA(), NO_NATURE),
    (as_forecaster, Needy, "'Needy' cannot be made without arguments: .* needs rate; expected defaults for all but"),
    (as_forecaster, PARTIAL(EMA, rat=1), "forecaster 'EMA' has no parameter 'rat'; did you mean 'rate'"),
    (as_forecaster, PARTIAL(EMA, 1, 2, 3), "forecaster 'EMA' cannot be made: too many positional arguments"),
    (as_forecaster, lambda: 3, "forecaster '<lambda>' made 3, which has no method forecast"),
    (as_nature, lambda: 1 / 0, "nature '<lambda>' cannot be made: ZeroDivisionError"),
    (as_forecaster, Uncopied(), "'Uncopied' cannot be copied, .*there is one of me.*; expected its class"),
    (as_forecaster, PARTIAL(Collecting, threading.Lock()),
     "its parameters cannot be copied, and each run needs some of its own"),
    (given, EMA(), MADE), (given, Constant(), MADE), (given, Bernoulli(), MADE),
    (totals, stating(1.5), r"nature 'Bad' stated q = 1.5 in round 1, run 0; expected a probability in \[0, 1\]"),
    (totals, stating("high"), r"nature 'Bad' stated q = 'high' in round 1, run 0; expected a number in \[0, 1\]"),
]  # fmt: skip


@pytest.mark.parametrize(("take", "thing", "said"), REFUSED)
def test_what_is_refused(take, thing, said):
    with pytest.raises(OnlinecalError, match=said) as error:
        take(thing) if take is not totals else totals(Constant(0.5), thing)
    assert "\n" not in str(error.value)


def test_what_is_given_is_told_apart():
    both = [EMA, EMA(), Constant, Constant(), faster, PARTIAL(EMA, 0.1), PARTIAL(faster, 0.1)]
    assert [kind_of(thing) for thing in both] == ["forecaster"] * 7
    natures = [Swing, Swing(), Late, Bernoulli, Bernoulli(), PARTIAL(Swing, 0.1), lambda: Swing()]
    assert [kind_of(thing) for thing in natures] == ["nature"] * 7
    assert [kind_of(thing) for thing in (3, "x", object, print)] == [""] * 4


@pytest.mark.parametrize("give", [lambda x: PARTIAL(Collecting, x), lambda x: PARTIAL(Collecting, seen=x)])
def test_runs_share_no_parameter_that_changes(give):
    """Each run has a sequence of its own, and the one that was given stays as it is."""
    given = deque([0, 1])
    mine = give(given)
    together = totals(mine, seed=3, runs=3)
    assert list(given) == [0, 1]
    assert (totals(mine, seed=3, runs=3) == together).all()
    assert (totals(mine, seed=3, runs=1) == together[..., :1]).all()


# ---------------------------------------------------------------- scenarios, the command line

MINE = """
class EMA:
    def __init__(self, rate=0.5):
        if not 0 < rate <= 1:
            raise ValueError(f"rate = {rate}, beyond (0, 1]")
        self.rate, self.level = rate, 0.5
    def forecast(self):
        return self.level
    def update(self, forecast, outcome):
        self.level += self.rate * (outcome - self.level)

def slow(rate=0.01):
    return EMA(rate)

ready = EMA(0.25)

class Swing:
    def __init__(self, lean=0.2):
        self.lean, self.last = lean, 0
    def probability(self):
        return 0.5 + self.lean * (1 - 2 * self.last)
    def update(self, forecast, outcome):
        self.last = outcome

class Wrong:
    def probability(self, round, forecast):
        return 0.5
"""


def scenario(folder, forecasters, natures='["bernoulli"]'):
    folder.joinpath("plain_mine.py").write_text(MINE)
    file = folder / "s.toml"
    file.write_text(
        f'horizons = [20, 40]\nruns = 2\nmeasures = ["ece"]\nforecasters = {forecasters}\nnatures = {natures}\n'
    )
    return file


@pytest.fixture(autouse=True)
def forget():
    yield
    sys.modules.pop("plain_mine", None)


def test_parameters_in_a_scenario(tmp_path):
    file = scenario(
        tmp_path,
        '["plain_mine:EMA", {name = "plain_mine:EMA", rate = 0.1}, {name = "plain_mine:EMA", rate = 0.2}, '
        '{name = "plain_mine:slow", rate = 0.03}, "plain_mine:ready"]',
        '[{name = "plain_mine:Swing", lean = 0.4}, "plain_mine:Swing"]',
    )
    cells = load(file).cells
    assert list(dict.fromkeys(cell.forecaster.label for cell in cells)) == [
        "EMA", "EMA (rate=0.1)", "EMA (rate=0.2)", "slow (rate=0.03)", "EMA (rate=0.25)",
    ]  # fmt: skip
    assert list(dict.fromkeys(cell.nature.label for cell in cells)) == ["Swing (lean=0.4)", "Swing"]
    assert len({cell.key for cell in cells}) == len(cells) == 5 * 2 * 2


def test_check_and_show_a_plain_nature(tmp_path):
    (tmp_path / "plain_mine.py").write_text(MINE)
    said = onlinecal("check plain_mine:Swing --horizon 100 --runs 2", cwd=tmp_path).stdout
    assert "FAILS" not in said
    assert said.count("ok  ") >= 7
    assert "(natures; parameters: lean = 0.2)" in onlinecal("show plain_mine:Swing", cwd=tmp_path).stdout
    wrong = onlinecal("check plain_mine:Wrong --horizon 100 --runs 2", cwd=tmp_path, rc=1)
    assert "expected probability()" in wrong.stdout
    assert wrong.stderr == ""
