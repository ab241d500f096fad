"""Bounds for every sequence: almost one step ahead, defensive forecasting, soft hedging; mutated copies break them."""

import math
from itertools import product

import numpy as np
import pytest

from onlinecal.core.strategy import bytes_at
from onlinecal.engine.game import Game
from onlinecal.engine.horizon import checkpoints
from onlinecal.engine.steps import LEARN, Coming, compiled, state
from onlinecal.forecasters import AlmostOneStepAhead, DefensiveForecasting, _blocks
from onlinecal.forecasters.hedging import point_of
from onlinecal.measures import kernel_ce, smooth_ce, true_distance
from onlinecal.natures import NATURES, Bernoulli, Contrarian, Drift
from tests import examples
from tests.by_hand import Driven
from tests.engine.games import played
from tests.marks import some_fast
from tests.mutants import CoarseRoot
from tests.oracles.forecasters import Defensive

#: what rounding may add to a ratio that theory says is at most 1
ROUNDING = 1e-9


def horizon_of(nature, horizon):
    return min(horizon, nature.length or horizon)


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


@pytest.mark.parametrize("name", some_fast(3, NATURES))
def test_certificates_keep_their_words(name, seed, full, tmp_path):
    for nature in (each for each in examples.natures(tmp_path) if type(each) is NATURES[name]):
        long, short = (horizon_of(nature, most) for most in ((1_000_000, 300_000) if full else (5000, 1000)))
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


def is_root(past, p, scale, error):
    """Whether p is a root of S, or the end towards which S points."""
    rule = Defensive("laplace", scale)
    rule.past = past
    s = rule.sum(p)
    return (p == 0.0 and s <= 1e-12) or (p == 1.0 and s >= -1e-12) or abs(s) < error


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 100.0])
@pytest.mark.parametrize("nature", [Drift(), Contrarian("draw")], ids=repr)
def test_forecasts_are_roots_in_many_blocks(scale, nature, seed):
    """Also where terms of a narrow kernel are 10^8 times larger at one end than at the other. No rounding of these may
    stand where the small ones are summed.
    """
    game = played(DefensiveForecasting(scale=scale), nature, 3000, runs=range(1), seed=seed, keeps=())
    rounds = game.transcripts.of(0)
    past = list(zip(rounds.forecasts.tolist(), rounds.outcomes.tolist(), strict=True))
    for t in range(150, 3000, 151):
        assert is_root(past[:t], past[t][0], scale, 1e-14 * t / min(scale, 1.0))


@pytest.mark.parametrize(("kernel", "scale"), KERNELS)
def test_more_rounds_than_the_horizon_find_room(kernel, scale, seed):
    """A player that was started for 10 rounds plays 600: the same as one that was started for them."""
    rng = np.random.default_rng(seed)
    short, long = (Driven(DefensiveForecasting(kernel, scale), horizon) for horizon in (10, 600))
    for _ in range(600):
        p, y = long.say(), int(rng.integers(0, 2))
        assert short.say() == p
        short.play(p, y)
        long.play(p, y)


def test_guarantees_are_named_for_their_kernel():
    named = DefensiveForecasting("gaussian", 0.5), DefensiveForecasting()
    measures = [[g.measure for g in spec.guarantees] for spec in named]
    assert measures == [["kernel_ce(kernel=gaussian, scale=0.5)"], ["kernel_ce", "smooth_ce"]]


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


def test_worse_points_break_the_word():
    """Roots to three digits, against a contrarian, which uses every slip; the game is deterministic."""
    assert defensive_ratio(CoarseRoot(), Contrarian(), 20_000, 0, runs=1) > 2


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
def test_blocks_keep_their_points_in_the_room_that_was_made(order, seed):
    """No point is lost, and blocks are half full. Sums are those of the points, and roots those of all."""
    rng = np.random.default_rng(seed)
    points, past, player = ORDERS[order](rng, 3000).tolist(), [], Driven(DefensiveForecasting(), 1)
    for t, p in enumerate(points):
        if t in (1, 5, 19, 20, 60, 500, 1500, 2999):
            assert is_root(past, player.say(), 1.0, 1e-14 * (t + 10))
        past.append((p, int(rng.integers(0, 2))))
        player.play(*past[-1])
        if t in (18, 19, 20, 700, 1300, 2000, 2999):
            _check_blocks(player.state, past)
    assert order == "few values" or player.state[_blocks.MOST] > _blocks.FEW  # they were enlarged


def _check_blocks(state, past):
    blocks, most = int(state[_blocks.BLOCKS]), int(state[_blocks.MOST])
    table, room = _blocks.blocks_of(state)
    sizes, sums = table[_blocks.POINTS, :blocks].astype(int), table[:, :blocks]
    each = [
        _blocks.block_at(room, most, int(w))[:, :n] for w, n in zip(sums[_blocks.WHERE], sizes, strict=True)
    ]
    keys, exponentials, residuals = np.hstack(each)
    assert sorted({p for p, _ in past}) == keys.tolist()
    assert (sizes[:-1] >= most // 2).all()
    assert sizes.max() < most
    told = dict.fromkeys(keys.tolist(), 0.0)
    for p, y in past:
        told[p] += y - p
    assert residuals == pytest.approx(list(told.values()), abs=1e-9)
    assert exponentials == pytest.approx(np.exp(keys), rel=1e-15)
    rises, falls = ([float((b[2] * b[1] ** sign).sum()) for b in each] for sign in (1, -1))
    for row, found in (
        (_blocks.FIRST, [b[0, 0] for b in each]), (_blocks.RISE, rises), (_blocks.FALL, falls),
        (_blocks.LEFT, np.cumsum([0.0, *rises])[:-1]), (_blocks.RIGHT, np.cumsum(falls[::-1])[::-1]),
    ):  # fmt: skip
        assert sums[row] == pytest.approx(np.asarray(found), abs=1e-9)
    assert state[[_blocks.RISING, _blocks.FALLING]] == pytest.approx([sum(rises), sum(falls)], abs=1e-9)


def test_memory_and_terms_of_defensive_forecasting():
    """Memory in use: half of the room is never more than is said of it."""
    for nature in (Contrarian("draw"), Bernoulli()):
        game = Game(DefensiveForecasting(), nature, horizon=40_000, runs=range(2))
        for until in (1_000, 10_000, 25_000, 40_000):
            game.advance(until)
            needed = 8 * _blocks.numbers_for(Coming(until, 1))
            assert needed <= bytes_at(DefensiveForecasting(), until, 40_000)
            assert (
                40 * until
                <= needed
                <= game.forecaster.state[0].nbytes
                <= 2 * bytes_at(DefensiveForecasting(), 40_000, 40_000)
            )
    gaussian = Driven(DefensiveForecasting("gaussian"), 1000)
    assert gaussian.state.shape == (2 + 18,)
