"""Bounds for every sequence: almost one step ahead, defensive forecasting, soft hedging; mutated copies break them."""

import copy
import math
import pickle

import numpy as np
import pytest

from onlinecal.core.memory import free_memory
from onlinecal.core.strategy import bytes_at
from onlinecal.engine.game import Game
from onlinecal.engine.horizon import checkpoints
from onlinecal.forecasters import AlmostOneStepAhead, DefensiveForecasting
from onlinecal.forecasters import _laplace as tree
from onlinecal.measures import kernel_ce, smooth_ce, true_distance
from onlinecal.natures import NATURES, Bernoulli, Contrarian, Drift
from onlinecal.rounds.steps import ints, law_atoms, learn
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
    runs = 2**horizon
    outcomes = np.arange(runs)[:, None] >> np.arange(horizon) & 1
    player, forecasts = Driven(AlmostOneStepAhead(), horizon, runs), np.empty((runs, horizon))
    for t in range(horizon):
        asked = player.ask()
        forecasts[:, t] = asked.values[:, 0]
        player.tell(asked, outcomes[:, t])
    # The biases, in steps of the grid, and how far the forecasts were from the imagined ones.
    state = player.memory.ints
    m = state.shape[1] - 2
    assert np.abs(state[:, :-1]).max() <= m
    assert not state[:, [0, m]].any()
    far = np.array([horizon * true_distance(p, y).upper for p, y in zip(forecasts, outcomes, strict=True)])
    assert (far <= player.player.certificates()["distance_certificate"] + ROUNDING).all()
    # Controls: neither of its two parts is enough. One step ahead alone, or its biases alone, prove less than is so.
    assert horizon == 1 or (far > state[:, -1] / m + ROUNDING).any()
    assert (far > np.abs(state[:, :-1]).sum(axis=1) / m + ROUNDING).any()


@pytest.mark.parametrize("name", some_fast(3, NATURES))
def test_certificates_keep_their_words(name, seed, full, tmp_path):
    for nature in (each for each in examples.natures(tmp_path) if type(each) is NATURES[name]):
        long, short = (horizon_of(nature, most) for most in ((1_000_000, 300_000) if full else (5000, 1000)))
        assert ahead_ratio(AlmostOneStepAhead(), nature, long, seed) <= 1.0
        for kernel in KERNELS:
            assert defensive_ratio(DefensiveForecasting(*kernel), nature, short, seed) <= 1 + ROUNDING


@learn
def _wrong_side(run, number, size, drawn, outcome):
    """Its imagined player takes i where y = 1 and i + 1 where y = 0."""
    state, atom = ints(run), law_atoms(run)[drawn]
    m = len(state) - 2
    i = min(atom + 1 - outcome, m)
    state[i] += m * outcome - i
    state[-1] += np.int64(i != atom)
    return 0


class WrongSide(AlmostOneStepAhead):
    def start(self, horizon, stream):
        player = super().start(horizon, stream)
        player.steps = player.steps[0], _wrong_side
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
def test_forecasts_are_roots_in_a_tree_of_many_leaves(scale, nature, seed):
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
    short, long = (Driven(DefensiveForecasting(kernel, scale), horizon, 3) for horizon in (10, 600))
    for _ in range(600):
        asked, other = short.ask(), long.ask()
        p, y = other.values[:, 0].copy(), rng.integers(0, 2, 3)
        # Sums over other blocks are rounded in another order.
        assert asked.values[:, 0] == pytest.approx(p, abs=1e-9)
        short.play(p, y, asked)
        long.play(p, y, other)


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
def test_the_tree_keeps_its_points_in_the_room_that_was_made(order, seed):
    """No word is beyond the room and no point is lost. Roots are those of all points, in any order of these."""
    rng = np.random.default_rng(seed)
    points, past, most = ORDERS[order](rng, 3000).tolist(), [], 0
    player = Driven(DefensiveForecasting(), 1)
    for i, p in enumerate(points):
        asked, y = player.ask(), int(rng.integers(0, 2))
        if i in (5, 19, 20, 60, 500, 2999):
            assert is_root(past, float(asked.values[0, 0]), 1.0, 1e-14 * (i + 10))
        player.play(p, y, asked)
        past.append((p, y))
        state, numbers = player.memory.ints[0], player.memory.floats[0]
        most = max(most, state[tree.NEXT] / len(numbers))
    assert most <= 1.0
    assert player.memory.floats.nbytes <= 2 * tree.POINT * 3000 + 8 * tree.INNER_WORDS


@pytest.mark.parametrize("path", [math.nan, math.inf, 1e300, -1.0, 0.0, 3.0, 31.0, 32.0, 2.0**40])
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
    """Memory in use: 64 bytes a round where all points come in order, 45 where they do not; 80 are said."""
    for nature, least, most in ((Contrarian("draw"), 55, 66), (Bernoulli(), 40, 50)):
        game = Game(DefensiveForecasting(), nature, horizon=40_000, runs=range(2))
        for until in (1_000, 10_000, 25_000, 40_000):
            game.advance(until)
            memory = game.forecaster.memory
            used = 8 * memory.ints[:, tree.NEXT]
            assert (used <= bytes_at(DefensiveForecasting(), until, 40_000)).all()
            assert np.all((least * until <= used) & (used <= most * until)) or until == 1_000
            # Room for all rounds has been set aside, and nothing was moved; a copy has what is in use.
            assert memory.floats.nbytes <= 2 * 40_000 * tree.POINT
            assert used.sum() <= len(pickle.dumps(game.forecaster))
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
