"""What `check` and the conformance checks make of careless plug-ins: faults in one line, and nobody blamed who does
no wrong.
"""

import dataclasses
from dataclasses import dataclass
from functools import partial

import pytest

from onlinecal import natures as n
from onlinecal.checks.conformance import conformance
from onlinecal.checks.guarantees import check, report
from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.engine.game import Game
from onlinecal.forecasters import (
    Constant,
    Doubling,
    EmpiricalMean,
    ExpertMixture,
    Forecaster,
    ForecastHedging,
    Law,
    PerturbedLeader,
    Rounded,
)
from onlinecal.natures import Bernoulli, Nature


class _Player:
    def __init__(self, runs):
        self.law, self.seen, self.asked = Law(runs, 1), 0, 0

    def forecast(self, round):
        return self.law

    def update(self, round): ...


class _LatePlayer(_Player):
    def forecast(self, round):
        self.asked += round.number > 500
        self.law.atoms[:] = self.asked % 7 / 7
        return self.law


@dataclass(frozen=True)
class ImpureLate(Forecaster):
    """Counts how often it is asked, from round 501 on."""

    def start(self, horizon, runs, stream):
        return _LatePlayer(runs)


class _ForgetfulPlayer(_Player):
    def forecast(self, round):
        self.asked = round.number
        self.law.atoms[:] = self.seen % 7 / 7
        return self.law

    def update(self, round):
        self.seen += self.asked


@dataclass(frozen=True)
class Forgetful(Forecaster):
    """Keeps on itself which round was asked last."""

    def start(self, horizon, runs, stream):
        return _ForgetfulPlayer(runs)


@pytest.mark.parametrize("spec", [ImpureLate(), Forgetful()])
def test_conformance_finds_who_remembers_an_open_round_elsewhere(spec, seed):
    faults = {found.check for found in conformance(spec, seed) if found.fault}
    assert "a question asked while a round is open changes nothing" in faults


# ---------------------------------------------------------------- declarations


@dataclass(frozen=True)
class Declares(Nature):
    """A coin that declares what it is told to."""

    def start(self, horizon, runs, stream):
        raise AssertionError("it is not started")


def declaring(**what):
    return type("Declares", (Declares,), what)()


@pytest.mark.parametrize(
    ("strategy", "match"),
    [
        (declaring(sight="LAW"), "declares sight = 'LAW'; expected a Sight"),
        (declaring(sight=2), "declares sight = 2; expected a Sight"),
        (declaring(reveals="truth"), "declares reveals = 'truth'; expected a frozenset of names"),
        (declaring(reveals=frozenset({1})), "declares reveals"),
        (declaring(length="5"), "declares length = '5'; expected None or an integer"),
        (declaring(length=0), "declares length = 0"),
        (type("Wants", (Constant,), {"needs": "truth"})(), "declares needs = 'truth'"),
        (type("Wants", (Constant,), {"certifies": ["ece"]})(), "declares certifies"),
    ],
)
def test_what_is_no_declaration_is_refused(strategy, match):
    pair = (strategy, Bernoulli()) if isinstance(strategy, Forecaster) else (Constant(), strategy)
    with pytest.raises(InvalidParameter, match=match):
        Game(*pair, horizon=5, runs=range(1))
    with pytest.raises(InvalidParameter, match=match):
        list(check([pair[0]], [pair[1]], horizon=16, runs=1, seed=0))
    assert [found.check for found in conformance(strategy)] == ["what it declares"]


# ---------------------------------------------------------------- guarantees that lie, or are none


@dataclass(frozen=True)
class Lies(ForecastHedging):
    """States guarantees that are none of its own."""

    how = "low"

    @property
    def guarantees(self):
        return WAYS[self.how](super().guarantees)


def replaced(stated, **what):
    return [dataclasses.replace(g, **what) for g in stated]


def fails(*_):
    raise RuntimeError("boom")


WAYS = {
    "low": partial(replaced, bound=lambda t: 0.01),
    "raises": fails,
    "none": lambda stated: None,
    "text": lambda stated: ["ece is small"],
    "nan": partial(replaced, bound=lambda t: float("nan")),
    "zero": partial(replaced, bound=lambda t: 0.0),
    "no number": partial(replaced, bound=lambda t: "small"),
    "bound raises": partial(replaced, bound=fails),
    "no measure": partial(replaced, measure="nonsense"),
}

LIARS = {how: type("Liar" + how.title().replace(" ", ""), (Lies,), {"how": how}) for how in WAYS}
globals().update({cls.__name__: cls for cls in LIARS.values()})


@pytest.mark.parametrize("how", [how for how in WAYS if how != "low"])
def test_a_guarantee_that_is_none_is_refused(how):
    with pytest.raises(OnlinecalError, match=r"liar|nonsense") as told:
        list(check([LIARS[how]()], [Bernoulli()], horizon=64, runs=1, seed=0))
    assert str(told.value).isprintable()


def test_a_report_goes_on_where_a_guarantee_is_none(seed):
    found = report(["tests.test_hostile_plug_ins:LiarRaises"], horizon=32, runs=1, seed=seed, progress=False)
    assert [finding.check for _, finding in found.findings if finding.fault] == ["plays to the end"]
    assert not found.good


def test_a_bound_that_is_far_exceeded_does_not_hold(seed):
    """Where chance may do it in so short a game it cannot be told; in a longer one it fails."""
    liar = LIARS["low"]()
    (short,) = check([liar], [Bernoulli()], horizon=64, runs=2, seed=seed)
    assert short.ratio > 1
    assert short.holds is None
    (long,) = check([liar], [n.RandomWalk()], horizon=2000, runs=64, seed=seed)
    assert long.holds is not True
    honest = check([ForecastHedging()], [Bernoulli()], horizon=2000, runs=64, seed=seed)
    assert all(v.holds is True for v in honest)


# ---------------------------------------------------------------- honest ones in tiny games


NESTED = ExpertMixture(
    (Doubling(Rounded(PerturbedLeader(), 5, "random"), first=1), EmpiricalMean(), ForecastHedging())
)
HONEST = [Constant(), ForecastHedging(), Doubling(NESTED, first=1), Rounded(NESTED, 3, "nearest")]


@pytest.mark.parametrize("horizon", range(1, 21))
def test_honest_strategies_are_not_blamed_in_tiny_games(horizon, seed):
    natures = [
        Bernoulli(),
        n.Contrarian(),
        n.Switch(n.Mixture((n.Greedy(), Bernoulli())), n.Contrarian(), at=2),
    ]
    assert all(
        v.holds is not False
        for v in check([ForecastHedging(), Constant()], natures, horizon=horizon, runs=1, seed=seed)
    )
    for forecaster in HONEST:
        for nature in natures:
            whole = Game(forecaster, nature, horizon=horizon, runs=range(3), seed=seed)
            alone = Game(forecaster, nature, horizon=horizon, runs=range(2, 0, -2), seed=seed, loop="event")
            whole.advance(horizon), alone.advance(horizon)
            for name in ("predictions", "counts", "positives"):
                assert (getattr(whole.gammas()[2], name) == getattr(alone.gammas()[0], name)).all()


def test_nested_strategies_conform(seed):
    for strategy in HONEST:
        assert [found for found in conformance(strategy, seed) if found.fault] == []
