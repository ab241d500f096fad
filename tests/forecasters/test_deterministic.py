"""Bounds for every sequence: almost one step ahead, defensive forecasting, soft hedging; mutated copies break them."""

import math
from itertools import product

import numpy as np
import pytest

from onlinecal.engine.game import Game
from onlinecal.engine.horizon import checkpoints
from onlinecal.engine.steps import LEARN, compiled, state
from onlinecal.forecasters import AlmostOneStepAhead, DefensiveForecasting
from onlinecal.forecasters.hedging import point_of
from onlinecal.measures import kernel_ce, smooth_ce, true_distance
from onlinecal.natures import NATURES, Contrarian
from tests import examples
from tests.by_hand import Driven
from tests.examples import of_two
from tests.marks import some_fast
from tests.mutants import CoarseRoot
from tests.oracles.forecasters import Defensive

#: what rounding may add to a ratio that theory says is at most 1
ROUNDING = 1e-9


# ---------------------------------------------------------------- almost one step ahead


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


@pytest.mark.parametrize("horizon", [1, 7])
def test_the_certificate_is_above_the_true_distance_of_every_sequence(horizon):
    """All 2^T sequences of outcomes, and the distance over all partitions of their rounds."""
    bound, one_step, biased = [], [], []
    for outcomes in product((0, 1), repeat=horizon):
        player, forecasts = Driven(AlmostOneStepAhead(), horizon), []
        for y in outcomes:
            forecasts.append(player.say())
            player.play(forecasts[-1], y)
        # The biases, in steps of the grid, and how far the forecasts were from the imagined ones.
        bias, apart = player.state[:-1], player.state[-1]
        m = len(bias) - 1
        assert np.abs(bias).max() <= m
        assert bias[0] == bias[m] == 0
        far = horizon * true_distance(forecasts, outcomes).upper
        bound.append(player.player.certify(player.player)["distance_certificate"][0] + ROUNDING - far)
        one_step.append(apart / m + ROUNDING - far)
        biased.append(np.abs(bias).sum() / m + ROUNDING - far)
    assert min(bound) >= 0
    # Controls: neither of its two parts is enough. One step ahead alone, or its biases alone, prove less than is so.
    assert horizon == 1 or min(one_step) < 0
    assert min(biased) < 0


@pytest.mark.parametrize("name", some_fast(3, of_two(NATURES)))
def test_certificates_keep_their_words(name, seed, full, tmp_path):
    for nature in (each for each in examples.natures(tmp_path) if type(each) is NATURES[name]):
        most = nature.length or 1_000_000
        long, short = (min(most, T) for T in ((1_000_000, 300_000) if full else (3000, 500)))
        assert ahead_ratio(AlmostOneStepAhead(), nature, long, seed) <= 1.0
        for kernel in KERNELS:
            assert defensive_ratio(DefensiveForecasting(*kernel), nature, short, seed) <= 1 + ROUNDING


def wrong_side(run, place, forecast, outcome, number):
    """Its imagined player takes i where y = 1 and i + 1 where y = 0."""
    mine = state(run)
    m = len(mine) - 2
    atom = point_of(forecast, m)
    i = min(atom + 1 - outcome, m)
    mine[i] += m * outcome - i
    mine[m + 1] += i != atom
    return 0


class WrongSide(AlmostOneStepAhead):
    def start(self, horizon, stream):
        player = super().start(horizon, stream)
        player.learn = compiled(LEARN, wrong_side)
        return player


def test_the_wrong_side_breaks_the_word(seed):
    # Its biases are those of a player that always errs: they grow in proportion to T whatever the coins.
    assert ahead_ratio(WrongSide(), Contrarian(), 5000, seed, runs=4) > 1.0


# ---------------------------------------------------------------- defensive forecasting

KERNELS = [("laplace", 1.0), ("laplace", 0.1), ("gaussian", 1.0), ("gaussian", 0.1)]


ORDERS = {
    "random": lambda rng, n: rng.random(n),
    "ascending": lambda rng, n: np.arange(n) / n,
    "descending": lambda rng, n: 1.0 - np.arange(n) / n,
    "few values": lambda rng, n: rng.integers(0, 30, n) / 29,
    "inwards": lambda rng, n: np.where(
        np.arange(n) % 2, 1.0 - np.arange(n) / (2 * n), np.arange(n) / (2 * n)
    ),
}


@pytest.mark.parametrize("order", ORDERS)
def test_forecasts_are_roots_whatever_was_played(order, seed):
    """Of narrow kernels terms at one end are 10^8 times those at the other. No rounding of them may hide the small."""
    rng = np.random.default_rng(seed)
    points, answers = ORDERS[order](rng, 2000).tolist(), rng.integers(0, 2, 2000).tolist()
    for scale in (0.05, 1.0, 100.0):
        player, rule = Driven(DefensiveForecasting(scale=scale), 1), Defensive("laplace", scale)
        for t, (p, y) in enumerate(zip(points, answers, strict=True)):
            if t in (1, 5, 18, 19, 20, 21, 60, 500, 1300, 1999):
                said = player.say()
                s = rule.sum(said)
                at_end = (said == 0.0 and s <= 1e-12) or (said == 1.0 and s >= -1e-12)
                assert at_end or abs(s) < 1e-14 * (t + 10) / min(scale, 1.0)
            rule.past.append((p, y))
            player.play(p, y)


def defensive_ratio(forecaster, nature, horizon, seed, runs=4):
    """The largest T·kCE / √(Σp(1−p)); that this is the certificate, and for Laplace smCE ≤ √2·kCE, is asserted."""
    game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed)
    worst = 0.0
    for t in checkpoints(horizon):
        game.advance(t)
        certificates = game.certificates()["kernel_ce_certificate"]
        for gamma, certificate in zip(game.gammas(), certificates, strict=True):
            p = gamma.predictions
            total = t * kernel_ce(gamma, kernel=forecaster.kernel, scale=forecaster.scale)
            assert certificate == pytest.approx(math.sqrt((gamma.counts * p * (1.0 - p)).sum()), abs=ROUNDING)
            worst = max(worst, total / certificate if certificate > 0 else float(total > ROUNDING))
            if (forecaster.kernel, forecaster.scale) == ("laplace", 1.0):
                assert t * smooth_ce(gamma) <= math.sqrt(2) * total * (1 + ROUNDING)
    return worst


def test_worse_points_break_the_word():
    """Roots to three digits, against a contrarian, which uses every slip; the game is deterministic."""
    assert defensive_ratio(CoarseRoot(), Contrarian(), 20_000, 0, runs=1) > 2
