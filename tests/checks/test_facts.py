"""Facts that strategies state of themselves: each is measured, for all that are registered, and lies are found."""

import re
from collections import deque
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import ClassVar

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.checks import facts
from onlinecal.checks.conformance import conformance
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Guarantee
from onlinecal.core.simplex import simplex_grid
from onlinecal.core.strategy import FACTS, counts_open, memory_at, parameters, strategy_key
from onlinecal.engine.game import Game
from onlinecal.forecasters import FORECASTERS, as_forecaster
from onlinecal.natures import NATURES, Sight, as_nature
from tests import examples
from tests.by_hand import Half
from tests.marks import slow, some_fast


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="module")
def cases(folder):
    """(role, specification, opponents), of every example and of those with parameters that decide."""
    pair = f.Constant(0.2), f.EmpiricalMean()
    forecasters = [
        *examples.forecasters(folder), f.ForecastHedging(12), f.PerturbedLeader(3.0), f.Rounded(f.EmpiricalMean(), 5),
        f.Rounded(f.Constant(0.3), "T^(1/2)"), f.ExpertMixture((f.AlmostOneStepAhead(),)), f.ExpertMixture(pair),
        f.ExpertMixture(pair, 0.1), f.GroupHedging(6), f.Delayed(f.EmpiricalMean(), 3),
    ]  # fmt: skip
    natures = [
        *examples.natures(folder), n.RandomWalk("T^(-1/3)"), n.Sinusoid(50), n.Piecewise(change_rate=0.1),
        n.EarlyStopping(5), n.KinkApproach(cells=9), n.Mixture((n.RandomWalk(), n.Drift())),
        n.Switch(n.Markov(), n.HalfCrossing(), 30), n.Switch(n.Markov(), n.Sawtooth(), 30),
    ]  # fmt: skip
    of_kind = {
        "": n.Bernoulli(), "base": n.Replay(str(examples.recording(folder)), base="base"),
        "features": n.LogisticFeatures(), "stream": n.Streams((n.Drift(), n.Bernoulli(0.3))),
    }  # fmt: skip
    found = [
        ("forecaster", spec, [of_kind.get(min(spec.needs, default=""), n.UniformTruth())])
        for spec in forecasters
    ]
    found += [("nature", spec, [f.Constant(0.9), as_forecaster(Pair)]) for spec in natures]
    whom = [n.Categorical(), n.ContrarianClasses()]
    of_classes = [
        *examples.class_forecasters(), f.ClassMean("T^(1/4)"), f.ClassLeader(4, 2.0), f.ClassLeader(4, "T^(1/3)"),
        f.ClassLeader(4), f.ClassByClass(f.LastOutcome(), 5),
    ]  # fmt: skip
    found += [("forecaster", spec, whom) for spec in of_classes]
    return found + [("nature", spec, [f.ClassMean(), f.ClassMean(4)]) for spec in examples.class_natures()]


class Pair(Half):
    """Two neighbours above one half, with equal weights."""

    def forecast(self):
        return {0.55: 0.5, 0.57: 0.5}


def games(case):
    role, spec, against = case
    return [(role, spec, other) if role == "forecaster" else (role, other, spec) for other in against]


PARTS = 6


@pytest.fixture(params=some_fast(3, range(PARTS)))
def some_cases(cases, request):
    """A part of them."""
    return cases[request.param :: PARTS]


def test_everybody_states_everything(cases):
    assert {type(spec) for _, spec, _ in cases} == {*FORECASTERS.values(), *NATURES.values()}
    for role, spec, _ in cases:
        for fact in FACTS if role == "forecaster" else FACTS[1:]:
            assert getattr(spec, fact) is not None, (strategy_key(spec), fact)


def test_who_needs_the_horizon(some_cases, seed, monkeypatch):
    """A strategy that says no plays the same at all horizons, for any seed. One that says yes does not.

    Of the latter only those that draw numbers could play the same by chance. The likeliest is early stopping. Against
    0.9 its total bias after 64 coins is −25.6 in the mean. It is above −4, the end at T = 64, with probability at most
    exp(−2 · 21.6²/64) < 1e-6.
    """
    monkeypatch.setattr(facts, "MIDDLE", 96)
    monkeypatch.setattr(facts, "LONG", 2**13)
    for case in some_cases:
        shown = any(facts.horizon(*game, seed) for game in games(case))
        assert shown is case[1].needs_horizon, strategy_key(case[1])


def test_who_is_deterministic(cases, folder, seed):
    """Forecasters that say so never mix, and all others state a law of more than one point against some nature."""
    inner = f.AlmostOneStepAhead()
    others = [f.Rounded(inner, 4), f.Rounded(inner, 3, "random"), f.ExpertMixture((inner, f.Constant(0.2)))]
    natures = examples.natures(folder)
    for forecaster in [*examples.forecasters(folder), *others]:
        able = [nature for nature in natures if forecaster.needs <= nature.reveals]
        assert able
        rounds = {
            nature: range(60) if type(nature) in examples.FEW else (0, 1, 2, 5, 13, 34, 59) for nature in able
        }
        shown = any(mixed(forecaster, nature, seed, rounds[nature]) for nature in able)
        assert shown is not forecaster.deterministic, strategy_key(forecaster)


def mixed(forecaster, nature, seed, rounds):
    """Whether a law of more than one point is stated before one of these rounds, without the class's help."""
    game = Game(forecaster, nature, horizon=60, runs=range(2), seed=seed)
    return any(game.advance(t) or any(len(law) > 1 for law in game.laws()) for t in rounds)


def test_who_plays_on_a_grid_says_so(some_cases, seed):
    """The steps are those of the player's grid, where it has one; all that is forecast lies on it."""
    for case in some_cases:
        spec, m = case[1], case[0] == "forecaster" and case[1].steps_at(facts.HORIZON)
        for role, forecaster, nature in games(case)[: case[0] == "forecaster"]:
            game = Game(forecaster, nature, horizon=facts.HORIZON, runs=range(1), seed=seed)
            points = getattr(game.forecaster, "grid", None)
            if spec.of_classes:
                assert m is None or np.array_equal(game.forecaster.table, simplex_grid(m, nature.classes))
            elif points is not None and len(points) > 1:
                evenly = np.array_equal(points, np.arange(len(points)) / (len(points) - 1))
                assert m == (len(points) - 1 if evenly else None), strategy_key(spec)
            assert m is None or facts.grid(role, forecaster, nature, seed) == "", strategy_key(spec)
    assert f.Delayed(f.ForecastHedging("T"), slots=3).steps_at(10) == 4  # of copies that play ⌈10/3⌉ rounds
    assert f.EmpiricalMean().steps_at(100) is f.Doubling(f.AlmostOneStepAhead()).steps_at(100) is None


@pytest.mark.parametrize(
    ("sizes", "shared", "said"),
    [
        ([100, 150, 150], 256, ""), ([100, 151, 100], 0, "and 151 after 256 with T = 8192"),
        ([100, 100, 151], 0, "and 151 after 4096 with T = 4096"),
        ([1, 96, 96], 0, ""), ([1, 97, 96], 0, "takes 64 bytes"), ([100, 100, 100], 257, "0.5 bytes more"),
    ],
)  # fmt: skip
def test_a_state_that_stays_may_grow_by_half_and_what_runs_share_by_half_a_byte_a_round(
    sizes, shared, said, monkeypatch
):
    """From 64 bytes on; what runs share is measured over 512 rounds."""
    left, spans = iter(sizes), []
    monkeypatch.setattr(facts, "state_bytes", lambda *given: next(left))
    monkeypatch.setattr(facts, "shared_bytes", lambda *given: spans.append(given[-1]) or shared)
    fault = facts.memory("forecaster", f.Constant(0.5), n.Bernoulli(), 0)
    assert said in fault
    assert (fault == "") == (said == "")
    assert spans in ([], [512])


class Numbers(Half):
    """Keeps a thousand numbers."""

    def __init__(self):
        self.kept = [i / 7 for i in range(1000)]


@pytest.mark.parametrize(("spec", "least"), [(as_forecaster(Numbers), 9000), (f.UniformRandom(999), 16_000)])
def test_bytes_of_a_run_are_those_of_a_pickle_and_of_the_widest_law(spec, least):
    """A number of a list has 9 bytes in a pickle, an atom of a law 16 in a row."""
    assert least <= facts.state_bytes("forecaster", spec, n.Bernoulli(), 0, 64, 64) <= least + 600


def test_equal_up_to_rounding_is_within_a_billionth():
    one = [np.array([[0.5, 1.0]])]
    for by, same in ((0.9e-9, True), (1.1e-9, False)):
        assert facts._same(one, [one[0] + by]) is same
    assert not facts._same(one, one * 2)
    assert not facts._same(one, [np.ones((2, 2))])


def test_who_may_be_told_late(some_cases, seed, monkeypatch):
    monkeypatch.setattr(facts, "LATE", 24)
    for case in some_cases:
        if counts_open(case[1]):
            # It depends on what is open, as it says; its rule is told late in tests/forecasters/test_in_flight.py.
            assert case[1].safe_under_delay
            continue
        faults = [fault for game in games(case)[-1:] if (fault := facts.delay(*game, seed))]
        assert (not faults) is case[1].safe_under_delay, (strategy_key(case[1]), faults)


def test_how_much_state_there_is(some_cases, seed, monkeypatch):
    """No more than is stated; and where more is stated there is more, half a number each time."""
    monkeypatch.setattr(facts, "state_bytes", cache(facts.state_bytes))  # which are asked for twice
    for case in some_cases:
        (role, forecaster, nature), spec = games(case)[0], case[1]
        assert facts.memory(role, forecaster, nature, seed) == "", strategy_key(spec)
        large = facts.playable(facts.LARGE, forecaster, nature)
        stated = memory_at(spec, large, large) - memory_at(spec, facts.SMALL, facts.SMALL)
        # Each part of streams has a share of the rounds, which is not enough to make a table grow here.
        if stated > 0.0 and not isinstance(spec, n.Streams):
            opponent = facts.varied(nature) if role == "nature" else forecaster
            few, many = (
                facts.state_bytes(role, opponent, nature, seed, size, size) for size in (facts.SMALL, large)
            )
            assert many - few >= 4 * stated, strategy_key(spec)


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


SMALL = "its state grows like O(1) at most"
LIARS = [
    ("it is deterministic", liar(f.ForecastHedging(), deterministic=True)),
    ("its forecasts are on the grid", liar(f.ForecastHedging(), start=lambda _, *of: f.ForecastHedging(7).start(*of))),
    ("it plays the same at every horizon", liar(f.ForecastHedging(), needs_horizon=False)),
    ("it plays the same at every horizon", liar(n.Sinusoid(), needs_horizon=False)),
    *(("it may be told late", who) for who in (as_forecaster(Forgetful), as_nature(Grudge), as_forecaster(InOrder))),
    (SMALL, liar(f.DefensiveForecasting(), memory="O(1)")),
    slow((SMALL, liar(f.ThresholdHedging(), memory="O(1)"))),  # in its laws alone
    ("its state grows like O(log(t)) at most", liar(n.Greedy(), memory="O(log(t))")),
]  # fmt: skip


@pytest.mark.parametrize(("said", "spec"), LIARS, ids=lambda x: x if isinstance(x, str) else strategy_key(x))
def test_a_lie_is_found(said, spec, seed, monkeypatch):
    monkeypatch.setattr("onlinecal.checks.conformance.CHECKS", ())  # of what nobody states
    assert next(found for found in conformance(spec, seed) if found.check.startswith(said)).fault


class AtSeven(Half):
    """Mixes in round 7 alone."""

    def forecast(self, round):
        return {0.25: 0.5, 0.3: 0.5} if round.number == 7 else 0.5


def test_of_which_round_it_is_said_that_a_fact_is_none():
    seven, coins = as_forecaster(AtSeven), n.Bernoulli()
    assert facts.certainty("forecaster", seven, coins, 0).endswith("its law of round 7 has several points")
    fault = facts.horizon("forecaster", f.ForecastHedging(), coins, 0)
    assert fault == "started with T = 64 and with T = 256 it states different laws in round 1"
    fault = facts.horizon("nature", f.Constant(), n.Drift(), 0)
    assert fault == "started with T = 64 and with T = 256 it states different probabilities in round 1"
    said = r"its laws of round (\d+) depends on whether round (\d+) was asked before or after round (\d+) was told"
    this, before, told = map(
        int, re.match(said, facts.delay("forecaster", as_forecaster(Forgetful), coins, 0)).groups()
    )
    assert this == before + 1 > told + 1


class Keeps:
    """Keeps one outcome a round, in places most of which all its runs share, and says that it does not."""

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
    """Memory that grows with the rounds is found wherever a class has it. Memory that keeps its size is no fault."""
    fault = facts.memory("forecaster", as_forecaster(partial(Keeps, where)), n.Bernoulli(), seed)
    assert fault.startswith("a run takes") is (where == "class")  # each run has a log of its own
    assert ("in what its runs share" in fault) is (where in ("module", "default"))


class Hooked(Half):
    def __init__(self, hook):
        self.hook = hook()


@pytest.mark.parametrize(
    ("measure", "hook", "said"),
    [(facts.memory, lambda: lambda: None, "pickled"), (facts.delay, lambda: (i for i in ()), "copied")],
)
def test_state_that_cannot_be_measured_is_a_fault(measure, hook, said):
    who = as_forecaster(Hooked, {"hook": hook})
    assert measure("forecaster", who, n.Bernoulli(), 0).startswith(f"its state cannot be {said}")


def test_whom_a_guarantee_binds():
    ahead, hedging = f.AlmostOneStepAhead(), f.ForecastHedging()
    wrong, seeing = n.Contrarian(), n.Contrarian("draw")
    (mine,), forced, drawn = hedging.guarantees, wrong.guarantees[0], seeing.guarantees[0]
    assert [forced.binds(who, wrong) for who in (ahead, hedging, as_forecaster(Half))] == [True, False, False]
    assert drawn.binds(hedging, seeing)
    assert [mine.binds(hedging, who) for who in (n.Greedy(), seeing)] == [True, False]
    for against, of in (("forecasters on Sundays", "ece"), (Sight.LAW, 7)):
        with pytest.raises(InvalidParameter):
            Guarantee(of, "T", float, "deterministic", against, "", upper=False)


def test_what_a_nature_forces_is_promised_only_where_it_binds():
    forecasters = f.ForecastHedging(), f.AlmostOneStepAhead(), f.Constant(0.3)
    natures = n.Contrarian(), n.Greedy(), n.Contrarian("draw")
    study = oc.play(forecasters, natures, horizon=50, runs=2, measures=["ece"])
    mixes, *others = study.forecasters
    bound = {(cell.forecaster, cell.nature) for cell in study.cells for p in cell.promises if not p.upper}
    assert bound == {*product(others, study.natures), (mixes, 'contrarian (sees="draw")')}


def test_memory_of_parts():
    whole = f.ExpertMixture((f.FosterVohra(m="T^(1/4)", swaps="all"), f.Rounded(f.Calibeating(7), 4)))
    assert whole.memory == "O(of[0].m + of[1].of.bins)"
    assert memory_at(whole, 3, 10_000) == pytest.approx(10.0 + 7)
    assert memory_at(n.Switch(n.Greedy(), n.Greedy(cells=5)), 50, 100) == 55
