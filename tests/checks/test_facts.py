"""Facts that strategies state of themselves: each is measured, for all that are registered, and lies are found."""

import re
import threading
from collections import deque
from dataclasses import dataclass
from functools import cache, partial
from typing import ClassVar

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.checks import facts
from onlinecal.checks.conformance import conformance
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.facts import FACTS, counts_open, every, memory_at, memory_of, some
from onlinecal.core.strategy import parameters, strategy_key
from onlinecal.engine.game import Game
from onlinecal.forecasters import FORECASTERS, Forecaster, as_forecaster
from onlinecal.natures import NATURES, Sight, as_nature
from onlinecal.report.catalogue import entry
from tests import examples
from tests.by_hand import Half


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="module")
def cases(folder):
    """(role, specification, opponents), of every example and of those whose parameters decide."""
    ahead = f.AlmostOneStepAhead()
    forecasters = [
        *examples.forecasters(folder),
        f.ForecastHedging(12),
        f.PerturbedLeader(3.0),
        f.Rounded(f.Constant(0.3), "T^(1/2)"),
        f.Rounded(f.EmpiricalMean(), 5),
        f.ExpertMixture((ahead,)),
        f.ExpertMixture((f.Constant(0.2), f.EmpiricalMean())),
        f.ExpertMixture((f.Constant(0.2), f.EmpiricalMean()), 0.1),
    ]
    natures = [
        *examples.natures(folder),
        n.RandomWalk("T^(-1/3)"),
        n.Sinusoid(50),
        n.Piecewise(change_rate=0.1),
        n.EarlyStopping(5),
        n.KinkApproach(cells=9),
        n.Mixture((n.RandomWalk(), n.Drift())),
        n.Switch(n.Markov(), n.HalfCrossing(), 30),
        n.Switch(n.Markov(), n.Sawtooth(), 30),
    ]
    desks = n.Streams((n.Drift(), n.Bernoulli(0.3)))
    coins, truth, base = (
        n.Bernoulli(),
        n.UniformTruth(),
        n.Replay(str(examples.recording(folder)), base="base"),
    )
    of_kind = {"": coins, "base": base, "features": n.LogisticFeatures(), "stream": desks}
    found = [("forecaster", spec, [of_kind.get(min(spec.needs, default=""), truth)]) for spec in forecasters]
    return found + [("nature", spec, [f.Constant(0.9), as_forecaster(Pair)]) for spec in natures]


class Pair(Half):
    """Two neighbours above one half, with equal weights."""

    def forecast(self):
        return {0.55: 0.5, 0.57: 0.5}


def games(case):
    role, spec, against = case
    return [(role, spec, other) if role == "forecaster" else (role, other, spec) for other in against]


def test_everybody_states_everything(cases):
    assert {type(spec) for _, spec, _ in cases} == {*FORECASTERS.values(), *NATURES.values()}
    for role, spec, _ in cases:
        for fact in FACTS if role == "forecaster" else FACTS[1:]:
            assert getattr(spec, fact) is not None, (strategy_key(spec), fact)


def test_who_needs_the_horizon(cases, seed):
    """Who says no plays the same at all horizons, for any seed. Who says yes does not.

    Of those only who draws numbers could play the same by chance. The likeliest is early stopping: against 0.9 its
    total bias after 64 coins is −25.6 in the mean, and above −4, the end at T = 64, with probability at most
    exp(−2 · 21.6²/64) < 1e-6.
    """
    for case in cases:
        shown = any(facts.horizon(*game, seed) for game in games(case))
        assert shown is case[1].needs_horizon, strategy_key(case[1])


def test_who_plays_on_a_grid_says_so(cases, seed):
    """The steps are those of the player's grid, where it has one; all that is forecast lies on it."""
    for case in cases:
        role, spec, _ = case
        if role == "nature":
            continue
        m = spec.steps_at(facts.HORIZON)
        for _, forecaster, nature in games(case)[:1]:
            game = Game(forecaster, nature, horizon=facts.HORIZON, runs=range(1), seed=seed)
            points = getattr(game.forecaster, "grid", None)
            if points is not None and len(points) > 1:
                evenly = np.array_equal(points, np.arange(len(points)) / (len(points) - 1))
                assert m == (len(points) - 1 if evenly else None), strategy_key(spec)
            if m is not None:
                assert facts.grid(role, forecaster, nature, seed) == "", strategy_key(spec)
    assert (
        f.Separate(f.AlmostOneStepAhead()).steps_at(100)
        == f.Delayed(f.ForecastHedging("T")).steps_at(10)
        == 10
    )
    assert (
        f.Delayed(f.ForecastHedging("T"), slots=3).steps_at(10) == 4
    )  # those of copies that play ⌈10/3⌉ rounds
    assert f.EmpiricalMean().steps_at(100) is f.Doubling(f.AlmostOneStepAhead()).steps_at(100) is None


def test_who_may_be_told_late(cases, seed, monkeypatch):
    monkeypatch.setattr(facts, "LATE", 24)
    for case in cases:
        if counts_open(case[1]):
            # It depends on what is open, as it says; its rule is told late in tests/forecasters/test_in_flight.py.
            assert case[1].safe_under_delay
            continue
        faults = [fault for game in games(case)[-1:] if (fault := facts.delay(*game, seed))]
        assert (not faults) is case[1].safe_under_delay, (strategy_key(case[1]), faults)


def test_how_much_state_there_is(cases, seed, monkeypatch):
    """No more than is stated; and where more is stated there is more, half a number each time."""
    monkeypatch.setattr(facts, "state_bytes", cache(facts.state_bytes))  # which are asked for twice
    for case in cases:
        role, spec, _ = case
        for _, forecaster, nature in games(case)[:1]:
            assert facts.memory(role, forecaster, nature, seed) == "", strategy_key(spec)
            large = facts.playable(facts.LARGE, forecaster, nature)
            stated = memory_at(spec, large, large) - memory_at(spec, facts.SMALL, facts.SMALL)
            # The parts of streams have a share of the rounds each, which is not enough to make a table grow here.
            if stated > 0.0 and not isinstance(spec, n.Streams):
                opponent = f.EmpiricalMean() if role == "nature" else forecaster
                sizes = [
                    facts.state_bytes(role, opponent, nature, seed, size, size)
                    for size in (facts.SMALL, large)
                ]
                assert sizes[1] - sizes[0] >= 4 * stated, (strategy_key(spec), sizes)


# ---------------------------------------------------------------- liars


def liar(spec, **says):
    """The same strategy, which says something else of itself."""
    cls = dataclass(frozen=True)(type("Liar", (type(spec),), says))
    return cls(**parameters(spec))


class Forgetful:
    """Goes from its last forecast, which it keeps on itself, not on the round, towards the outcome."""

    safe_under_delay, p = True, 0.5

    def forecast(self):
        self.last = self.p
        return self.last

    def update(self, forecast, outcome):
        self.p += (outcome - self.last) / 10


class Grudge:
    """Goes against the mean law in which it was last wrong, and looks it up where it last saw one."""

    sight, safe_under_delay, q = Sight.LAW, True, 0.5

    def probability(self, round):
        self.mean = sum(value * weight for value, weight in round.law.items())
        return self.q

    def update(self, forecast, outcome, round):
        self.q = 0.5 * self.mean if outcome else 1.0 - 0.5 * self.mean


class InOrder:
    """The fraction of ones among the last ten rounds; it counts on being told in order."""

    safe_under_delay = True

    def __init__(self):
        self.last = deque(maxlen=10)

    def forecast(self, round):
        self.asked = round.number
        return sum(self.last) / max(1, len(self.last))

    def update(self, forecast, outcome, round):
        if round.number == self.asked:
            self.last.append(outcome)


def only_what_is_stated(monkeypatch):
    """`conformance` without the checks of what nobody states."""
    monkeypatch.setattr("onlinecal.checks.conformance.CHECKS", ())


LIARS = [
    ("it is deterministic", liar(f.ForecastHedging(), deterministic=True)),
    (
        "its forecasts are on the grid",
        liar(f.ForecastHedging(), start=lambda _, *how: f.ForecastHedging(7).start(*how)),
    ),
    ("it plays the same at every horizon", liar(f.ForecastHedging(), needs_horizon=False)),
    ("it plays the same at every horizon", liar(n.Sinusoid(), needs_horizon=False)),
    ("it may be told late", as_forecaster(Forgetful)),
    ("it may be told late", as_nature(Grudge)),
    ("it may be told late", as_forecaster(InOrder)),
    ("its state grows like O(1) at most", liar(f.ForecastHedging(), memory="O(1)")),
    ("its state grows like O(1) at most", liar(f.DefensiveForecasting(), memory="O(1)")),
    ("its state grows like O(1) at most", liar(f.ThresholdHedging(), memory="O(1)")),  # in its laws alone
    ("its state grows like O(log(t)) at most", liar(n.Greedy(), memory="O(log(t))")),
]


@pytest.mark.parametrize(("said", "spec"), LIARS, ids=[f"{said}: {strategy_key(s)}" for said, s in LIARS])
def test_a_lie_is_found(said, spec, seed, monkeypatch):
    only_what_is_stated(monkeypatch)
    found = [finding for finding in conformance(spec, seed) if finding.check.startswith(said)]
    assert len(found) == 1
    assert found[0].fault


def test_a_plain_class_that_lies(seed, monkeypatch):
    only_what_is_stated(monkeypatch)

    class Hoarder:
        needs_horizon, safe_under_delay, memory = False, True, "O(1)"

        def __init__(self, horizon):
            self.horizon, self.seen = horizon, []

        def forecast(self):
            self.last = 1.0 / self.horizon + len(self.seen) % 7 / 10
            return self.last

        def update(self, forecast, outcome):
            self.seen.append(self.last - outcome)

    spec = as_forecaster(Hoarder)
    assert "it states different laws in round 1" in facts.horizon("forecaster", spec, n.Bernoulli(), seed)
    assert as_forecaster(type("Tuned", (Hoarder,), {"needs_horizon": None})).needs_horizon is True
    faults = {finding.check: finding.fault for finding in conformance(spec, seed)}
    assert faults["it plays the same at every horizon, as it declares"]


class Keeps:
    """Keeps one outcome a round in a place that all its runs share, and says that it does not."""

    memory = "O(1)"
    log: ClassVar[list] = []

    def __init__(self, where):
        self.where = where

    def forecast(self):
        return 0.5

    def update(self, forecast, outcome, log=[]):  # noqa: B006 - one of the places
        {"class": self.log, "module": LOG, "default": log, "window": WINDOW}[self.where].append(outcome)


LOG, WINDOW = [], deque(maxlen=100)


@pytest.mark.parametrize("where", ["class", "module", "default", "window"])
def test_memory_that_runs_share_is_measured(where, seed):
    """What grows with the rounds is found where a class refers to it; what stays as large as it is, is no fault."""
    fault = facts.memory("forecaster", as_forecaster(partial(Keeps, where)), n.Bernoulli(), seed)
    assert ("in what its runs share" in fault) is (where != "window")


def test_what_cannot_be_copied_is_a_finding(seed):
    class Locked(Keeps):
        safe_under_delay = True

        def __init__(self):
            self.where, self.lock = "window", threading.Lock()

    for fact, said in ((facts.delay, "cannot be copied"), (facts.memory, "cannot be pickled")):
        assert said in fact("forecaster", as_forecaster(Locked), n.Bernoulli(), seed)


def test_what_is_not_said_is_not_checked():
    @dataclass(frozen=True)
    class Quiet(Forecaster):
        def start(self, horizon, stream):
            return f.Constant(0.5).start(horizon, stream)

    assert not [found for found in conformance(Quiet()) if "declares" in found.check]
    assert (Quiet().needs_horizon, Quiet().safe_under_delay, Quiet().memory) == (None, None, None)
    for whole in (f.Doubling(Quiet()), f.Rounded(Quiet(), 4), f.ExpertMixture((Quiet(), f.Constant()))):
        assert whole.safe_under_delay is None
        assert whole.memory is None
    assert f.Doubling(Quiet()).needs_horizon is False
    assert f.Rounded(Quiet(), "T^(1/2)").needs_horizon is True
    assert f.ExpertMixture((Quiet(), f.Constant()), 0.1).needs_horizon is None


# ---------------------------------------------------------------- form, words


def test_facts_of_parts():
    assert [some(x) for x in ([], [False], [False, None], [None, True])] == [False, False, None, True]
    assert [every(x) for x in ([], [True], [True, None], [None, False])] == [True, True, None, False]
    parts = {"of[0]": f.FosterVohra(swaps="all"), "of[1]": f.Rounded(f.Calibeating(), 4), "of[2]": n.Greedy()}
    assert memory_of(parts) == "O(of[0].m^2 + of[1].of.bins + t)"
    whole = f.ExpertMixture((f.FosterVohra(m="T^(1/4)", swaps="all"), f.Rounded(f.Calibeating(7), 4)))
    assert whole.memory == "O(of[0].m^2 + of[1].of.bins)"
    assert memory_at(whole, 3, 10_000) == pytest.approx(10.0**2 + 7)
    assert memory_at(n.Switch(n.Greedy(), n.Greedy(cells=5)), 50, 100) == 55


@pytest.mark.parametrize(
    ("says", "complaint"),
    [
        ({"memory": "O(n)"}, "has no attribute 'n'"),
        ({"memory": "linear"}, r"memory = 'linear'; expected 'O\(…\)' of t, T and parameters"),
        ({"memory": 1}, r"memory = 1; expected 'O\(…\)'"),
        ({"needs_horizon": "no"}, "needs_horizon = 'no'; expected True, False, or None"),
        ({"safe_under_delay": 1}, "safe_under_delay = 1; expected True, False, or None"),
        ({"deterministic": "yes"}, "deterministic = 'yes'; expected True, False, or None"),
    ],
)
def test_what_is_no_fact_is_refused(says, complaint):
    spec = liar(f.Constant(), **says)
    with pytest.raises(InvalidParameter, match=f"forecaster 'liar' declares .*{complaint}"):
        Game(spec, n.Bernoulli(), horizon=5, runs=range(1))
    (found,) = conformance(spec)
    assert re.search(complaint, found.fault)


def test_show_says_them():
    assert {key: entry("forecast_hedging")[key] for key in FACTS} == {
        "deterministic": "no",
        "needs_horizon": "yes",
        "safe_under_delay": "yes",
        "memory": "O(m)",
    }
    assert entry("expert_mixture")["memory"] == "depends on its parameters"
    assert entry("doubling")["needs_horizon"] == "no"
    assert entry("greedy")["memory"] == "O(t)"
    assert "deterministic" not in entry("greedy")
    assert entry("tests.checks.test_facts:InOrder")["memory"] == "not declared"


def test_docstrings_leave_to_data_what_is_data():
    """So that they cannot say something else."""
    repeats = re.compile(
        r"(needs?|without) (the|no) horizon|not need the horizon|\bdeterministic\b|\brandomised\b|no state",
        re.I,
    )
    for cls in (*FORECASTERS.values(), *NATURES.values()):
        information = re.split(r"\n\s+Source\n", cls.__doc__.partition("Information\n")[2])[0]
        # Of natures nothing but the docstring says where they toss coins.
        found = [
            x[0] for x in repeats.finditer(information) if issubclass(cls, Forecaster) or "horizon" in x[0]
        ]
        assert not found, (cls.__name__, found)


def test_the_measurement_of_delay_is_about_rounds_in_flight(seed):
    """The same nature, with what it needs on the round, passes."""

    class Keeping(Grudge):
        def probability(self, round):
            super().probability(round)
            round.memo = self.mean
            return self.q

        def update(self, forecast, outcome, round):
            self.mean = round.memo
            super().update(forecast, outcome, round)

    measure = partial(facts.delay, "nature", f.ForecastHedging())
    assert measure(as_nature(Grudge), seed)
    assert measure(as_nature(Keeping), seed) == ""
