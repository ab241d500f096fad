"""The engine against a game written out in plain Python, and everything that it must not depend on."""

import pickle
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter, SightError
from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import strategy_key, strategy_label
from onlinecal.core.streams import Stream
from onlinecal.engine.game import BLOCK, Game
from onlinecal.engine.horizon import checkpoints
from onlinecal.forecasters import (
    AlmostOneStepAhead,
    CDLMinimiser,
    Constant,
    EmpiricalMean,
    ForecastHedging,
    Scalar,
)
from onlinecal.natures import Bernoulli, Contrarian, Drift, Nature, Sight, UniformTruth
from tests.engine.test_open_rounds import game_of


@pytest.mark.parametrize("loop", ["event", "compiled"])
def test_parameters_of_a_game_are_checked(loop):
    game = game_of(loop=loop)
    for until in (2.5, "3", None, True, -1):
        with pytest.raises(InvalidParameter, match="until = "):
            game.advance(until)
    game.advance(np.int64(3))
    assert type(game.asked) is int
    assert type(game.resolved) is int
    for runs in (4, [0, 1], None):
        with pytest.raises(InvalidParameter, match=r"runs = .*; expected a range"):
            Game(Constant(), Bernoulli(), horizon=3, runs=runs)
    for seed in (1.0, "1", None, True):
        with pytest.raises(InvalidParameter, match="seed = "):
            game_of(seed=seed)


FORECASTERS = [Constant(0.3), EmpiricalMean(), ForecastHedging(), AlmostOneStepAhead(), CDLMinimiser()]


NATURES = [Bernoulli(0.3), Drift(), UniformTruth(), Contrarian(), Contrarian(sees="draw")]


def play(forecaster, nature, horizon=300, runs=range(4), seed=5):
    game = Game(forecaster, nature, horizon=horizon, runs=runs, seed=seed)
    game.advance(horizon)
    return game


def same(first, second):
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for a, b in zip(first, second, strict=True)
        for name in ("predictions", "counts", "positives")
    )


def plain_hedging(m, horizon, seed, run):
    """Forecast hedging (T given) against the contrarian, one run, with exact fractions and a linear search."""
    forecaster, nature = ForecastHedging(m), Contrarian()
    forecast_uniforms = Stream(
        seed, ("forecast", strategy_key(forecaster), f"T={horizon}"), range(run, run + 1)
    ).block(horizon)
    bias = [Fraction(0)] * (m + 1)
    counts, positives = [0] * (m + 1), [0] * (m + 1)
    assert nature.sight is Sight.LAW
    for t in range(horizon):
        # The engine's own choice among several pairs is part of its rule, so follow its search.
        low, high = 0, m
        while high - low > 1:
            middle = (low + high) // 2
            if bias[middle] > 0:
                low = middle
            elif bias[middle] < 0:
                high = middle
            elif bias[middle + 1] <= 0:
                low = middle
                break
            else:
                low = middle + 1
        a, b = bias[low], -bias[low + 1]
        assert a >= 0
        assert b >= 0
        share = Fraction(1, 2) if a + b == 0 else b / (a + b)
        mean = float(share) * (low / m) + (1 - float(share)) * ((low + 1) / m)
        i = low if forecast_uniforms[t, 0] < float(share) else low + 1
        y = 1 if mean < 0.5 else 0
        bias[i] += y - Fraction(i, m)
        counts[i] += 1
        positives[i] += y
    return JointDistribution.from_counts(np.arange(m + 1) / m, counts, positives)


@pytest.mark.parametrize("m", [1, 2, 7, 10])
def test_the_engine_plays_the_game_on_paper(m):
    game = play(ForecastHedging(m), Contrarian(), horizon=400, runs=range(2, 5), seed=9)
    assert same(game.gammas(), [plain_hedging(m, 400, 9, run) for run in range(2, 5)])


@pytest.mark.parametrize("nature", NATURES, ids=strategy_key)
@pytest.mark.parametrize("forecaster", FORECASTERS, ids=strategy_key)
def test_split_runs_are_joined_runs(forecaster, nature):
    whole = play(forecaster, nature, runs=range(8)).gammas()
    parts = [
        g for first in range(0, 8, 2) for g in play(forecaster, nature, runs=range(first, first + 2)).gammas()
    ]
    assert same(whole, parts)


def test_64_runs_are_4_batches_of_16_bit_for_bit():
    whole = play(CDLMinimiser(), Contrarian(), horizon=3000, runs=range(64)).gammas()
    parts = [
        g
        for first in range(0, 64, 16)
        for g in play(CDLMinimiser(), Contrarian(), horizon=3000, runs=range(first, first + 16)).gammas()
    ]
    assert same(whole, parts)


@pytest.mark.parametrize("nature", NATURES, ids=strategy_key)
@pytest.mark.parametrize("forecaster", FORECASTERS, ids=strategy_key)
def test_a_game_that_is_interrupted_and_pickled_goes_on_identically(forecaster, nature):
    horizon = BLOCK + 100
    straight = play(forecaster, nature, horizon=horizon)
    game = Game(forecaster, nature, horizon=horizon, runs=range(4), seed=5)
    for stop in (1, 700, BLOCK, BLOCK + 1):
        game.advance(stop)
        game.gammas()
        game = pickle.loads(pickle.dumps(game))
    game.advance(horizon)
    assert same(game.gammas(), straight.gammas())


def test_seeds_and_runs_differ():
    gammas = play(EmpiricalMean(), Bernoulli(), runs=range(6)).gammas()
    gammas += play(EmpiricalMean(), Bernoulli(), runs=range(6), seed=6).gammas()
    # 12 sequences of 300 fair coins: two are equal with probability below 66 · 2^-300.
    assert len({tuple(g.predictions) for g in gammas}) == 12


def test_all_forecasters_face_the_same_coins():
    ones = [[g.positives.sum() for g in play(f, Bernoulli(0.3)).gammas()] for f in FORECASTERS]
    assert all(row == ones[0] for row in ones)


# ---------------------------------------------------------------- scalar forecasters


class RunningMean:
    """Ten lines of a user."""

    def __init__(self):
        self.ones, self.rounds = 0, 0

    def forecast(self):
        return (self.ones + 1) / (self.rounds + 2)

    def update(self, forecast, outcome):
        self.rounds += 1
        self.ones += outcome


class CoinFlipper:
    """Says 0.2 or 0.8."""

    def forecast(self):
        return {0.2: 0.25, 0.8: 0.75}

    def update(self, forecast, outcome):
        assert forecast in (0.2, 0.8)


def test_a_plug_in_is_called_by_its_name():
    named, unnamed = Scalar(RunningMean, name="RunningMean"), Scalar(RunningMean)
    assert strategy_label(named) == "RunningMean"
    assert strategy_label(unnamed) == "scalar (make=tests.engine.test_game:RunningMean)"
    assert strategy_key(named) == 'RunningMean(make=tests.engine.test_game:RunningMean, name="RunningMean")'


def test_a_users_scalar_forecaster_plays_unchanged():
    mine = play(Scalar(RunningMean, name="empirical_mean"), Drift()).gammas()
    assert same(mine, play(EmpiricalMean(), Drift()).gammas())


def test_a_scalar_law_is_drawn_by_the_engine():
    n = 4000
    counts = np.array([g.counts for g in play(Scalar(CoinFlipper), Bernoulli(), horizon=n).gammas()])
    # Hoeffding: off by 5 standard deviations in one of 4 runs with probability below 8·exp(−50) < 1e-20.
    assert np.abs(counts[:, 0] / n - 0.25).max() < 5 / np.sqrt(n)
    assert (np.ptp(counts[:, 0]) > 0).all()


def test_a_scalar_forecaster_may_ask_for_the_horizon():
    class Tuned:
        def __init__(self, horizon):
            self.p = 1 / horizon

        def forecast(self):
            return self.p

        def update(self, forecast, outcome): ...

    assert play(Scalar(Tuned), Bernoulli(), horizon=8).gammas()[0].predictions.tolist() == [0.125]


# ---------------------------------------------------------------- what a nature may see


@dataclass(frozen=True)
class Peeping(Nature):
    sight: ClassVar[Sight] = Sight.HISTORY
    what: str = "law"

    def start(self, horizon, runs, stream):
        return self

    def probability(self, round):
        return getattr(round, self.what).mean() if self.what == "forecast" else getattr(round, self.what).mean

    def update(self, round): ...


@dataclass(frozen=True)
class PeepingLaw(Peeping):
    sight: ClassVar[Sight] = Sight.LAW


@pytest.mark.parametrize(("nature", "needed"), [(Peeping(), "LAW"), (Peeping(what="forecast"), "DRAW")])
def test_more_sight_than_declared_is_refused(nature, needed):
    with pytest.raises(SightError, match=f"round 1 but declares sight HISTORY; expected sight {needed}"):
        play(ForecastHedging(), nature)
    with pytest.raises(SightError, match="declares sight LAW; expected sight DRAW"):
        play(ForecastHedging(), PeepingLaw(what="forecast"))


def test_what_a_nature_sees_is_read_only_and_right():
    @dataclass(frozen=True)
    class Curious(Nature):
        sight: ClassVar[Sight] = Sight.DRAW

        def start(self, horizon, runs, stream):
            return self

        def probability(self, round):
            law = round.law
            assert np.allclose((law.support * law.weights).sum(axis=1), law.mean, rtol=0, atol=1e-15)
            assert ((law.support == round.forecast[:, None]) & (law.weights > 0)).any(axis=1).all()
            for array in (law.weights, law.support, law.atoms, round.forecast):
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = 0.0
            return 0.5

        def update(self, round): ...

    for forecaster in FORECASTERS:
        play(forecaster, Curious(), horizon=30)


def test_history_is_told_to_those_who_see_it():
    @dataclass(frozen=True)
    class Listener(Nature):
        sight: ClassVar[Sight] = Sight.HISTORY

        def start(self, horizon, runs, stream):
            return _ListenerPlayer()

    class _ListenerPlayer:
        def __init__(self):
            self.heard = []

        def probability(self, round):
            assert len(self.heard) == round.number - 1
            return 0.5

        def update(self, round):
            self.heard.append((round.forecast, round.outcome))

    for forecaster in (ForecastHedging(), EmpiricalMean()):
        game = play(forecaster, Listener(), horizon=50)
        p, y = (np.array(column) for column in zip(*game.nature.heard, strict=True))
        assert same(game.gammas(), [JointDistribution.from_samples(p[:, r], y[:, r]) for r in range(4)])


@pytest.mark.parametrize("horizon", [0, -5, 10**12, 2.5, True, "many"])
def test_bad_horizons(horizon):
    with pytest.raises(InvalidParameter, match="expected an integer from 1 to"):
        Game(Constant(), Bernoulli(), horizon=horizon, runs=range(1))


@given(st.integers(1, 10**9), st.integers(1, 30))
def test_checkpoints_are_geometric_and_end_at_the_horizon(horizon, per_decade):
    times = checkpoints(horizon, per_decade)
    assert times == sorted(set(times))
    assert times[-1] == horizon
    assert all(1 <= t <= horizon for t in times)
    assert len(times) <= per_decade * 9 + 2


def test_progress_adds_up():
    told = []
    game = Game(Constant(), Bernoulli(), horizon=3 * BLOCK + 7, runs=range(2))
    for stop in (5, BLOCK, BLOCK + 1, game.horizon):
        game.advance(stop, told.append)
    assert sum(told) == game.horizon
