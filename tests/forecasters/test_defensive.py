"""Defensive forecasting: its roots and parameters, and its theorem on every sequence, with nothing left to chance.

A mutated copy breaks the theorem.
"""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.memory import free_memory
from onlinecal.engine.game import Game
from onlinecal.engine.horizon import checkpoints
from onlinecal.forecasters import DefensiveForecasting
from onlinecal.forecasters import _laplace as tree
from onlinecal.measures import (
    kernel_ce,
    smooth_ce,
)
from onlinecal.natures import NATURES, Bernoulli, Contrarian, Drift
from tests.by_hand import Driven
from tests.forecasters.test_almost_one_step_ahead import ROUNDING, playable

KERNELS = [("laplace", 1.0), ("laplace", 0.1), ("gaussian", 1.0), ("gaussian", 0.1)]


def kernel_sum(past, p, kernel, scale):
    """S(p) by its definition."""
    d = np.array([s for s, _ in past]) - p
    k = np.exp(-np.abs(d) / scale) if kernel == "laplace" else np.exp(-((d / scale) ** 2))
    return float(k @ np.array([y - s for s, y in past])) + 0.5 - p if past else 0.5 - p


def is_root(past, p, kernel, scale, error):
    """Whether p is a root of S, or the end towards which S points."""
    s = kernel_sum(past, p, kernel, scale)
    return (p == 0.0 and s <= 1e-12) or (p == 1.0 and s >= -1e-12) or abs(s) < error


@pytest.mark.parametrize(("kernel", "scale"), KERNELS)
@given(st.lists(st.integers(0, 1), min_size=1, max_size=40))
def test_each_forecast_is_a_root_or_an_end(kernel, scale, outcomes):
    player, past = Driven(DefensiveForecasting(kernel, scale), 40), []  # blocks of 16 points: they split
    for t, y in enumerate(outcomes):
        asked = player.ask()
        p = float(asked.values[0, 0])
        assert is_root(past, p, kernel, scale, 1e-12 * (t + 1) / scale + 1e-13)
        player.tell(asked, y)
        past.append((p, y))


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 100.0])
@pytest.mark.parametrize("nature", [Drift(), Contrarian("draw"), Bernoulli(0.5)], ids=repr)
def test_forecasts_are_roots_in_a_tree_of_many_leaves(scale, nature, seed):
    """Also where terms of a narrow kernel are 10^8 times larger at one end than at the other: no rounding of these may
    stand where the small ones are summed.
    """
    game = Game(DefensiveForecasting(scale=scale), nature, horizon=3000, runs=range(1), seed=seed, keeps=())
    game.advance(3000)
    rounds = game.transcripts.of(0)
    past = list(zip(rounds.forecasts.tolist(), rounds.outcomes.tolist(), strict=True))
    for t in range(150, 3000, 151):
        assert is_root(past[:t], past[t][0], "laplace", scale, 1e-14 * t / min(scale, 1.0))


@pytest.mark.parametrize(("kernel", "scale"), KERNELS)
def test_more_rounds_than_the_horizon_find_room(kernel, scale, seed):
    """A player that was started for 10 rounds plays 600: the same as one that was started for them."""
    rng = np.random.default_rng(seed)
    short, long = (Driven(DefensiveForecasting(kernel, scale), horizon, 3) for horizon in (10, 600))
    for _ in range(600):
        asked, other = short.ask(), long.ask()
        p, y = other.values[:, 0].copy(), rng.integers(0, 2, 3)
        # Sums over other blocks are rounded in another order.
        assert asked.values[:, 0] == pytest.approx(p, abs=1e-9)
        short.play(p, y, asked)
        long.play(p, y, other)


def test_guarantees_are_named_for_their_kernel():
    measures = [g.measure for g in DefensiveForecasting("gaussian", 0.5).guarantees]
    assert measures == ["kernel_ce(kernel=gaussian, scale=0.5)"]
    assert [g.measure for g in DefensiveForecasting().guarantees] == ["kernel_ce", "smooth_ce"]


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


@pytest.mark.parametrize(("kernel", "scale"), KERNELS)
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


@dataclass(frozen=True)
class Coarse(DefensiveForecasting):
    """Plays a worse point: a root to one digit after `digits`, or of S without the term ½(1 − 2p)."""

    digits: int | None = None

    def start(self, horizon, stream):
        return _Coarse(self.digits)


class _Coarse:
    def __init__(self, digits):
        self.digits, self.past, self.variance = digits, [], 0.0

    def forecast(self):
        drop = 0.0 if self.digits is not None else 1.0  # K29 without the star

        def s(p):
            return kernel_sum(self.past, p, "laplace", 1.0) - drop * (0.5 - p)

        low, high = 0.0, 1.0
        if s(0.0) <= 0 or s(1.0) >= 0:
            low = high = 0.0 if s(0.0) <= 0 else 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if s(middle) > 0 else (low, middle)
        return low if self.digits is None else math.floor(low * 10**self.digits) / 10**self.digits

    def update(self, forecast, outcome):
        self.variance += forecast * (1 - forecast)
        self.past.append((forecast, outcome))

    def certificates(self):
        return {"kernel_ce_certificate": math.sqrt(self.variance)}


@pytest.mark.parametrize("digits", [1, None])
def test_worse_points_break_the_word(digits, seed):
    """A root to one digit, and plain K29. Against a contrarian, which uses every slip; the game is deterministic."""
    assert defensive_ratio(Coarse(digits=digits), Contrarian(), 400, seed, runs=1) > 1.2


ORDERS = {
    "random": lambda rng, n: rng.random(n),
    "ascending": lambda rng, n: np.arange(n) / n,
    "descending": lambda rng, n: 1.0 - np.arange(n) / n,
    "few values": lambda rng, n: rng.integers(0, 30, n) / 29,
    "inwards": lambda rng, n: np.where(
        np.arange(n) % 2, 1.0 - np.arange(n) / (2 * n), np.arange(n) / (2 * n)
    ),
}


def nodes_of(memory):
    """The nodes of the first run's tree, each with its level, and its points in order."""
    state, numbers = memory.ints[0], memory.floats[0]

    def below(node, level):
        words = numbers[node : node + 1 + tree.WIDE].view(np.int64)
        size = int(words[0])
        if level == 0:
            columns = numbers[node + 1 : node + tree.LEAF_WORDS].reshape(tree.LEAF_COLUMNS, tree.LEAF)
            return [(node, 0, size)], columns[[tree.KEY, tree.RESIDUAL], :size].T.tolist()
        columns = numbers[node + 1 + tree.WIDE : node + tree.INNER_WORDS]
        columns = columns.reshape(tree.INNER_COLUMNS, tree.WIDE)
        nodes, points, sums = [(node, level, size)], [], []
        for child, key in zip(words[1 : 1 + size].tolist(), columns[tree.KEY, :size], strict=True):
            its_nodes, its_points = below(child, level - 1)
            assert its_points[0][0] == key
            sums.append([sum(r * math.exp(sign * p) for p, r in its_points) for sign in (1.0, -1.0)])
            nodes, points = nodes + its_nodes, points + its_points
        rising, falling = np.array(sums).T
        for column, expected in (
            (tree.RISE, rising), (tree.FALL, falling), (tree.LEFT, np.cumsum(rising) - rising),
            (tree.RIGHT, np.cumsum(falling[::-1])[::-1]),
        ):  # fmt: skip
            assert columns[column, :size] == pytest.approx(expected, abs=1e-9)
        return nodes, points

    return below(int(state[tree.ROOT]), int(state[tree.LEVELS]))


@pytest.mark.parametrize("order", ORDERS)
def test_the_tree_keeps_its_points_in_the_room_that_was_made(order, seed):
    """At several times: points in order, one entry a level; sums; nodes at least half full; no word beyond the room."""
    rng = np.random.default_rng(seed)
    points = ORDERS[order](rng, 3000)
    residuals = rng.random(3000) - 0.5
    memory, kept = tree.Tree(1.0, 1), {}
    memory.spread(range(1))
    for i, (p, r) in enumerate(zip(points.tolist(), residuals.tolist(), strict=True)):
        tree.make_room(memory, 1)
        state, numbers = memory.ints[0], memory.floats[0]
        state[tree.TOLD] += 1
        tree._add(state, numbers, tree._path_to(state, numbers, p), p, math.exp(p), r)
        kept[p] = kept.get(p, 0.0) + r
        assert state[tree.NEXT] <= len(numbers)
        if i in (0, 5, 19, 20, 60, 500, 2999):
            nodes, found = nodes_of(memory)
            assert [p for p, _ in found] == sorted(kept)
            assert [r for _, r in found] == pytest.approx([kept[p] for p in sorted(kept)], abs=1e-12)
            for node, level, size in nodes:
                full = tree.WIDE if level else tree.LEAF
                assert node == state[tree.ROOT] or full // 2 <= size < full
    assert memory.floats.nbytes <= 2 * tree.POINT * 3000 + 8 * tree.INNER_WORDS


@pytest.mark.parametrize(
    "path", [math.nan, math.inf, 1e300, -1.0, -7.0, 0.0, 3.0, 31.0, 32.0, 1000.0, 2.0**40]
)
def test_a_memo_that_was_changed_changes_nothing(path):
    """It says where the forecast's place is; a wrong one is looked for again."""
    rng, players = np.random.default_rng(0), [Driven(DefensiveForecasting(), 400) for _ in range(2)]
    first = players[1].hand._places[0]
    for _ in range(400):
        asked, y = [player.ask() for player in players], rng.integers(0, 2)
        assert asked[0].values.tolist() == asked[1].values.tolist()
        asked[1].words[0, first + tree.PATH] = path
        for player, each in zip(players, asked, strict=True):
            player.tell(each, y)


def test_memory_and_terms_of_defensive_forecasting():
    """What is in use: 64 bytes a round where all points come in order, 45 where they do not."""
    for nature, least, most in ((Contrarian("draw"), 55, 66), (Bernoulli(), 40, 50)):
        game = Game(DefensiveForecasting(), nature, horizon=40_000, runs=range(2))
        for until in (1_000, 10_000, 25_000, 40_000):
            game.advance(until)
            memory = game.forecaster.memory
            used = 8 * memory.ints[:, tree.NEXT] / until
            assert np.all((least <= used) & (used <= most)) or until == 1_000
            # Room for all rounds has been set aside, and nothing was moved.
            assert memory.floats.nbytes <= 2 * 40_000 * tree.POINT
    gaussian = Driven(DefensiveForecasting("gaussian"), 1000, 2)
    assert gaussian.memory.floats.shape == (2, 1 + 18)


def test_no_more_than_is_free_is_set_aside_and_what_is_not_used_is_not_copied():
    player = Driven(DefensiveForecasting(), 10**12, 4).player
    assert player.memory.floats.nbytes <= 0.6 * free_memory()
    # Nothing is moved where all fits: then the tree would be there twice.
    horizon = int(0.7 * free_memory() / (2 * tree.POINT))
    memory = Driven(DefensiveForecasting(), horizon, 2).memory
    width = memory.floats.shape[1]
    memory.ints[:, tree.TOLD] = horizon - 1000
    tree.make_room(memory, 1000)
    assert memory.floats.shape[1] == width
    assert len(pickle.dumps(player)) < 20_000
    twin = copy.deepcopy(player)
    assert twin.memory.floats.shape == player.memory.floats.shape
