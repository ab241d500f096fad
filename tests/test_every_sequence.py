"""Guarantees that hold for every sequence, against every registered nature, in every run and at every checkpoint.

Nothing here is left to chance: a bound that holds for all sequences has no false failures. A mutated copy of each
forecaster fails the same test.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from onlinecal.core.strategy import strategy_key
from onlinecal.engine.game import Game, checkpoints
from onlinecal.forecasters import AlmostOneStepAhead, DefensiveForecasting, Law
from onlinecal.measures import kernel_ce, smooth_ce, true_distance
from onlinecal.natures import NATURES, Bernoulli, Contrarian, Drift
from tests import examples
from tests.rounds import asked, drawn
from tests.test_defensive import kernel_sum

#: what rounding may add to a ratio that theory says is at most 1
ROUNDING = 1e-9


@pytest.fixture(scope="module")
def against(tmp_path_factory):
    """The examples of a registered nature."""
    natures = examples.natures(tmp_path_factory.mktemp("examples"))
    return lambda name: [nature for nature in natures if type(nature) is NATURES[name]]


def ahead_ratio(forecaster, nature, horizon, seed, runs=8):
    """The largest certificate of the distance over 2√T + 1; what it certifies, smCE ≤ 2·distance, is asserted."""
    game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed)
    worst = 0.0
    for t in checkpoints(horizon):
        game.advance(t)
        certificate = game.certificates()["distance_certificate"]
        worst = max(worst, certificate.max() / (2 * math.sqrt(horizon) + 1))
        for gamma, total in zip(game.gammas(), certificate, strict=True):
            assert t * smooth_ce(gamma) <= 2 * total + ROUNDING
    return worst


def defensive_ratio(forecaster, nature, horizon, seed, runs=4):
    """The largest T·kCE / √(Σp(1−p)); that √(Σp(1−p)) ≤ √T/2, and for Laplace smCE ≤ √2·kCE, is asserted."""
    game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed)
    worst = 0.0
    for t in checkpoints(horizon):
        game.advance(t)
        for gamma, certificate in zip(
            game.gammas(), game.certificates()["kernel_ce_certificate"], strict=True
        ):
            total = t * kernel_ce(gamma, kernel=forecaster.kernel, scale=forecaster.scale)
            assert certificate <= math.sqrt(t) / 2 + ROUNDING
            worst = max(worst, total / certificate if certificate > 0 else float(total > ROUNDING))
            if (forecaster.kernel, forecaster.scale) == ("laplace", 1.0):
                assert t * smooth_ce(gamma) <= math.sqrt(2) * total * (1 + ROUNDING)
    return worst


def playable(nature, horizon):
    return min(horizon, nature.length or horizon)


@pytest.mark.parametrize("horizon", [1, 2, 10])
@pytest.mark.parametrize("nature", [Bernoulli(), Drift(), Contrarian(), Contrarian("draw")], ids=strategy_key)
def test_almost_one_step_ahead_keeps_its_word_in_short_games(nature, horizon, seed):
    assert ahead_ratio(AlmostOneStepAhead(), nature, horizon, seed) <= 1.0


@pytest.mark.parametrize("horizon", [1, 4, 8])
def test_the_certificate_is_above_the_true_distance_of_every_sequence(horizon):
    """All 2^T sequences of outcomes, and the distance over all partitions of their rounds."""
    runs = 2**horizon
    outcomes = np.arange(runs)[:, None] >> np.arange(horizon) & 1
    player = AlmostOneStepAhead().start(horizon, runs, None)
    forecasts = np.empty((runs, horizon))
    state = (
        player.memory.ints
    )  # the biases, in steps of the grid, and how far the forecasts were from the imagined ones
    m = state.shape[1] - 2
    for t in range(horizon):
        question = asked(t + 1)
        law = player.forecast(question)
        forecasts[:, t] = law.atoms[:, 0] / m
        player.update(drawn(law, np.zeros(runs), outcomes[:, t], question=question))
    far = np.array([horizon * true_distance(p, y).upper for p, y in zip(forecasts, outcomes, strict=True)])
    assert (far <= player.certificates()["distance_certificate"] + ROUNDING).all()
    # Controls: neither of its two parts is enough. One step ahead alone, or its biases alone, prove less than is so.
    assert horizon == 1 or (far > state[:, -1] / m + ROUNDING).any()
    assert (far > np.abs(state[:, :-1]).sum(axis=1) / m + ROUNDING).any()


@pytest.mark.parametrize("horizon", [50, 400, 5000])
@pytest.mark.parametrize("name", NATURES)
def test_almost_one_step_ahead_keeps_its_word(name, horizon, seed, against):
    for nature in against(name):
        assert ahead_ratio(AlmostOneStepAhead(), nature, playable(nature, horizon), seed) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", NATURES)
def test_almost_one_step_ahead_keeps_its_word_at_scale(name, seed, full, against):
    for nature in against(name):
        horizon = playable(nature, 1_000_000 if full else 100_000)
        assert ahead_ratio(AlmostOneStepAhead(), nature, horizon, seed) <= 1.0


@pytest.mark.parametrize(
    ("kernel", "scale"), [("laplace", 1.0), ("laplace", 0.1), ("gaussian", 1.0), ("gaussian", 0.1)]
)
@pytest.mark.parametrize("name", NATURES)
def test_defensive_forecasting_keeps_its_word(name, kernel, scale, seed, against):
    for nature in against(name):
        ratio = defensive_ratio(DefensiveForecasting(kernel, scale), nature, playable(nature, 1000), seed)
        assert ratio <= 1 + ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("name", NATURES)
def test_defensive_forecasting_keeps_its_word_at_scale(name, seed, full, against):
    for nature in against(name):
        horizon = playable(nature, 300_000 if full else 100_000)
        assert defensive_ratio(DefensiveForecasting(), nature, horizon, seed) <= 1 + ROUNDING


# ---------------------------------------------------------------- the controls


@dataclass(frozen=True)
class WrongSide(AlmostOneStepAhead):
    """Its imagined player takes i where y = 1 and i + 1 where y = 0."""

    def start(self, horizon, runs, stream):
        player = super().start(horizon, runs, stream)

        state = player.memory.ints
        m = state.shape[1] - 2

        class Mirrored:
            forecast, certificates = player.forecast, player.certificates

            def update(self, round):
                i = np.minimum(round.atom + 1 - round.outcome, m)
                state[np.arange(len(i)), i] += m * round.outcome - i
                state[:, -1] += i != round.atom

        return Mirrored()


def test_the_wrong_side_breaks_the_word(seed):
    # Its biases are those of a player who always errs: they grow in proportion to T whatever the coins.
    assert ahead_ratio(WrongSide(), Contrarian(), 5000, seed, runs=4) > 1.0


@dataclass(frozen=True)
class Coarse(DefensiveForecasting):
    """Plays a worse point: a root to one digit after `digits`, or of S without the term ½(1 − 2p)."""

    digits: int | None = None

    def start(self, horizon, runs, stream):
        return _CoarsePlayer(runs, self.digits)


class _CoarsePlayer:
    def __init__(self, runs, digits):
        self.law, self.digits, self.past, self.variance = Law(runs, 1), digits, [[] for _ in range(runs)], 0.0

    def forecast(self, round):
        for run, past in enumerate(self.past):
            drop = 0.0 if self.digits is not None else 1.0  # K29 without the star

            def s(p, past=past, drop=drop):
                return kernel_sum(past, p, "laplace", 1.0) - drop * (0.5 - p)

            low, high = 0.0, 1.0
            if s(0.0) <= 0 or s(1.0) >= 0:
                low = high = 0.0 if s(0.0) <= 0 else 1.0
            for _ in range(50):
                middle = (low + high) / 2
                low, high = (middle, high) if s(middle) > 0 else (low, middle)
            self.law.atoms[run, 0] = (
                low if self.digits is None else math.floor(low * 10**self.digits) / 10**self.digits
            )
        return self.law

    def update(self, round):
        self.variance = self.variance + round.forecast * (1 - round.forecast)
        for past, p, y in zip(self.past, round.forecast.tolist(), round.outcome.tolist(), strict=True):
            past.append((p, y))

    def certificates(self):
        return {"kernel_ce_certificate": np.sqrt(np.minimum(self.variance, np.inf))}


@pytest.mark.parametrize("digits", [1, None])
def test_worse_points_break_the_word(digits, seed):
    """A root to one digit, and plain K29. Against a contrarian, which uses every slip; the game is deterministic."""
    assert defensive_ratio(Coarse(digits=digits), Contrarian(), 400, seed, runs=1) > 1.2
