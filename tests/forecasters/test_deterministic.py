"""Certificates of almost one step ahead and of defensive forecasting, and roots of the latter."""

import math
from itertools import product

import numpy as np
import pytest

from onlinecal.forecasters import AlmostOneStepAhead, DefensiveForecasting
from onlinecal.measures import kernel_ce, true_distance
from onlinecal.natures import Drift, Greedy
from tests.by_hand import Driven
from tests.engine.games import played
from tests.oracles.forecasters import Defensive

#: what rounding may add to a ratio that theory says is at most 1
ROUNDING = 1e-9


# ---------------------------------------------------------------- almost one step ahead


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


# ---------------------------------------------------------------- defensive forecasting


@pytest.mark.parametrize("nature", [Drift(), Greedy()], ids=str)
@pytest.mark.parametrize("kernel", [("laplace", 1.0), ("laplace", 0.1), ("gaussian", 1.0), ("gaussian", 0.1)])
def test_the_certificate_of_a_kernel(kernel, nature, seed, full):
    """√Σ p(1 − p), above T·kCE."""
    horizon = 100_000 if full else 500
    game = played(DefensiveForecasting(*kernel), nature, horizon, seed=seed)
    for gamma, certificate in zip(game.gammas(), game.certificates()["kernel_ce_certificate"], strict=True):
        p = gamma.predictions
        assert certificate == pytest.approx(math.sqrt((gamma.counts * p * (1.0 - p)).sum()), abs=ROUNDING)
        assert horizon * kernel_ce(gamma, kernel=kernel[0], scale=kernel[1]) <= certificate + ROUNDING


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
