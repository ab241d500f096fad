"""Foster–Vohra and Blum–Mansour: stationary laws, remembered rightly, and what their learners regret."""

import math

import numpy as np
import pytest
from scipy.special import betaln, entr, xlogy

from onlinecal.core.strategy import strategy_key
from onlinecal.forecasters import BlumMansour, BlumMansourLog, Doubling, FosterVohra
from onlinecal.forecasters.internal_regret import sine_grid, stationary, steps_to
from onlinecal.measures import bregman
from onlinecal.natures import NATURES, Bernoulli
from tests.by_hand import Driven, measured, noted
from tests.examples import defaults

OPPONENTS = defaults(NATURES)


# ---------------------------------------------------------------- all pairs


def fresh_law(flow):
    """The stationary law of a closed set by plain elimination without subtraction, from the last point to the first."""
    flow, size = flow.copy(), len(flow)
    for n in range(size - 1, 0, -1):
        flow[:n, n] /= flow[n, :n].sum()
        flow[:n, :n] += np.outer(flow[:n, n], flow[n, :n])
        np.fill_diagonal(flow, 0.0)
    q = np.ones(size)
    for n in range(1, size):
        q[n] = q[:n] @ flow[:n, n]
    return q / q.sum()


@pytest.mark.parametrize("m", [5, 40])
def test_foster_vohra_on_all_pairs_has_the_law_of_its_definition(m, seed):
    """There are long stretches of one outcome, switches, and points played that the law did not ask for.

    The law is made by sums, products and quotients of positive numbers alone. So weights are right but for roundings.
    """
    rng, grid = np.random.default_rng((seed, m)), np.arange(m + 1)
    player, chance, large = Driven(FosterVohra(m, "all")), 0.5, 0
    counts, ones = np.zeros((2, m + 1), np.int64)
    for _ in range(600):
        law = player.points()
        points, q = np.array(list(law)), np.array(list(law.values()))
        # Brier losses in units of 1/m², by the letter: the loss of having said column j where row i was said.
        loss = np.outer(ones, (grid - m) ** 2) + np.outer(counts - ones, grid**2)
        flow = np.maximum(np.diag(loss)[:, None] - loss, 0).astype(float)
        assert not np.delete(flow[points], points, axis=1).any()  # the set is closed
        assert q == pytest.approx(fresh_law(flow[np.ix_(points, points)]), rel=1e-12, abs=1e-300)
        large += len(points) > 16
        i = int(rng.choice(points, p=q / q.sum()) if rng.random() < 0.98 else rng.integers(m + 1))
        if rng.random() < 0.01:
            chance = rng.choice([0.0, 1.0, 0.5, rng.random()])
        y = int(rng.random() < chance)
        player.play(i / m, y)
        counts[i] += 1
        ones[i] += y
    assert m < 16 or large > 50
    assert FosterVohra(m, "all").guarantees == ()


def test_stationary_weights_of_every_size_do_not_overflow():
    """A walk that is a billion times likelier to go up than down: weights from 1 to less than the least float."""
    points, up = 61, 1e9
    share = stationary(np.diag(np.full(points - 1, up), 1) + np.diag(np.ones(points - 1), -1))
    assert share.sum() == pytest.approx(1.0, abs=1e-15)
    assert share[-20:] == pytest.approx([(1 - 1 / up) * up**-k for k in range(19, -1, -1)], rel=1e-13)


# ---------------------------------------------------------------- in the logarithmic loss


def loss(x, y):
    return -np.log(np.where(y == 1, x, 1.0 - x))


@pytest.mark.parametrize("m", [1, 2, 9, 100, 10**6])
def test_the_grid(m):
    z = sine_grid(m)
    assert len(z) == m + 1
    assert z[0] > 0
    assert z[-1] < 1
    assert (np.abs(z + z[::-1] - 1.0) <= 1e-15).all()
    middle = (z[1:] + z[:-1]) / 2
    steps = np.diff(z) / np.sqrt(middle * (1 - middle)) * (m + 1)
    assert (np.abs(steps / math.pi - 1.0) <= 0.25).all()


@pytest.mark.parametrize("m", [1, 2, 7])
def test_steps_from_a_point_of_the_grid_to_any_number(m):
    """By interpolation, which moves numbers beyond the grid onto its ends."""
    z = sine_grid(m)
    for i in range(m + 1):
        for x in (0.0, *z, *(z[1:] + z[:-1]) / 2, 1.0):
            assert steps_to(z, i, x) == pytest.approx(np.interp(x, z, np.arange(m + 1)) - i, abs=1e-12)


def swap_regret(forecaster, nature, horizon, seed):
    """Of one game: Σ n_i KL(S_i/n_i ‖ z_i), what the learners may regret in all, and what rounding them cost."""
    log, game = noted(forecaster, nature, horizon, runs=1, seed=seed)
    m = len(game.forecaster.grid) - 1
    z, n, ones, rounding = sine_grid(m), np.zeros(m + 1), np.zeros(m + 1), 0.0
    for round in log:
        y = round.outcome[0]
        x = (z + ones) / (1.0 + n)
        law = np.zeros(m + 1)
        for v, w in round.laws[0].items():
            law[np.abs(z - v).argmin()] += w
        # The rows of the matrix, in the mean over the law, are the law.
        rounded = np.array([np.interp(x, z, unit) for unit in np.eye(m + 1)]).T
        assert law @ rounded == pytest.approx(law, abs=1e-9)
        rounding += float(law @ (rounded @ loss(z, y) - loss(np.clip(x, 1e-300, 1 - 1e-16), y)))
        n, ones = n + law, ones + law * y
    used = n > 0
    q = ones[used] / n[used]
    best = n[used] * (entr(q) + entr(1 - q))
    regret = float((-xlogy(ones[used], z[used]) - xlogy(n[used] - ones[used], 1 - z[used]) - best).sum())
    learners = betaln(z, 1 - z) - betaln(z + ones, 1 - z + n - ones)
    return regret, float((learners[used] - best).sum()), rounding, m


@pytest.mark.parametrize("nature", OPPONENTS, ids=strategy_key)
def test_swap_regret_is_that_of_the_learners_and_of_rounding(nature, seed):
    horizon = min(250, nature.length or 250)
    regret, learners, rounding, m = swap_regret(BlumMansourLog(), nature, horizon, seed)
    assert -1e-9 <= regret <= learners + rounding + 1e-6
    # Each learner: half a logarithm of its weight, that of the prior of an extreme point, and a constant.
    assert learners <= (m + 1) * (math.log(horizon + 1) + 2 * math.log(m + 1) + 2)
    # The cost of rounding: a logarithm times T/m².
    assert rounding <= 3 * math.log(horizon + 2) * (horizon + m) / (m + 1) ** 2 + 1


def test_kl_calibration_is_finite_where_on_the_even_grid_it_is_not(seed):
    ours, even = (
        measured(forecaster, Bernoulli(0.001), bregman, 8000, seed, runs=4)
        for forecaster in (BlumMansourLog(), BlumMansour())
    )
    assert np.isfinite(ours).all()
    # Once an event happens that was forecast as impossible, as nearly all are. That none of 4 runs has one while 0 is
    # forecast, for nine tenths of the rounds, has a probability of 0.999^(4 · 7200) < 1e-12.
    assert np.isinf(even).any()


@pytest.mark.parametrize("spec", [BlumMansour(), BlumMansourLog()], ids=repr)
def test_a_part_remembers_its_law_where_there_is_room_for_a_larger_one(spec, seed):
    """The first epoch of a whole, of which later ones have finer grids, is the game of that length."""
    rng, whole, alone = np.random.default_rng(seed), Driven(Doubling(spec, first=30), 900), Driven(spec, 30)
    for _ in range(30):
        one, other = whole.ask(), alone.ask()
        assert one.law == other.law
        pick, outcome = int(rng.integers(len(one.law))), int(rng.random() < 0.3)
        whole.tell(one, outcome, pick)
        alone.tell(other, outcome, pick)
