"""Foster–Vohra and Blum–Mansour: stationary laws, remembered rightly, and what their learners follow."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.engine.game import Game
from onlinecal.forecasters import BlumMansour, FosterVohra
from onlinecal.forecasters._stationary import LAST, OUTDATED
from onlinecal.forecasters._stationary import shares
from onlinecal.natures import Contrarian
from onlinecal.rounds.hand import Hand
from tests.by_hand import Driven


def on_grid(law, m):
    """A law, point → weight, as a vector."""
    return np.array([law.get(i, 0.0) for i in range(m + 1)])


@pytest.mark.parametrize("swaps", ["all", "next"])
@given(st.data())
def test_foster_vohra_is_stationary_under_the_regrets(swaps, data):
    m = data.draw(st.integers(1, 9))
    counts = np.array(data.draw(st.lists(st.integers(0, 30), min_size=m + 1, max_size=m + 1)))
    ones = np.array([data.draw(st.integers(0, int(n))) for n in counts])
    player = Driven(FosterVohra(m, swaps))
    for i in range(m + 1):
        for k in range(counts[i]):
            player.play(i, int(k < ones[i]))
    player.memory.ints[0, 0] = data.draw(st.integers(0, m))
    q = on_grid(player.points(), m)
    # In units of 1/m² everything is an integer: the regrets by the letter.
    loss = [
        [ones[i] * (j - m) ** 2 + (counts[i] - ones[i]) * j**2 for j in range(m + 1)] for i in range(m + 1)
    ]
    flow = np.array([[max(loss[i][i] - loss[i][j], 0) for j in range(m + 1)] for i in range(m + 1)], float)
    if swaps == "next":
        flow *= np.abs(np.subtract.outer(np.arange(m + 1), np.arange(m + 1))) <= 1
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    assert q @ flow == pytest.approx(q * flow.sum(axis=1), abs=1e-10 * max(1.0, flow.max()))


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


@pytest.mark.parametrize("m", [5, 17, 24, 40])
def test_foster_vohra_on_all_pairs_remembers_rightly(m, seed):
    """After every round: stationary by the letter, equal to a fresh elimination, whoever plays beside and is pickled.

    Long stretches of one outcome, switches, and points played that the law did not ask for, so that points without
    rounds, cold points and large sets all occur.
    """
    rng, runs, grid = np.random.default_rng((seed, m)), 3, np.arange(m + 1)
    joined = Driven(FosterVohra(m, "all"), runs=runs)
    alone = [Driven(FosterVohra(m, "all")) for _ in range(runs)]
    counts, ones = np.zeros((2, runs, m + 1), np.int64)
    chance, large, kept = np.full(runs, 0.5), 0, 0
    for _ in range(900):
        outdated = joined.memory.ints[:, OUTDATED].copy()
        laws = [joined.points(r) for r in range(runs)]
        chosen = np.zeros(runs, np.int64)
        for r, law in enumerate(laws):
            assert joined.points(r) == law == alone[r].points()
            points, q = np.array(list(law)), np.array(list(law.values()))
            # Brier losses in units of 1/m², by the letter: the loss of having said column j where row i was said.
            loss = np.outer(ones[r], (grid - m) ** 2) + np.outer(counts[r] - ones[r], grid**2)
            flow = np.maximum(np.diag(loss)[:, None] - loss, 0).astype(float)
            assert not np.delete(flow[points], points, axis=1).any()  # the set is closed
            reached, before = grid == joined.memory.ints[r, LAST], 0
            while before < reached.sum():
                before = reached.sum()
                reached |= flow[reached].any(axis=0)
            assert reached[points].all()
            assert abs(q.sum() - 1) < 1e-12
            fresh = fresh_law(flow[np.ix_(points, points)])
            assert (abs(q - fresh) <= np.maximum(1e-12 * fresh, 1e-300)).all()
            large += len(points) > 17
            kept += len(points) > 17 and not outdated[r]
            chosen[r] = rng.choice(points, p=q / q.sum()) if rng.random() < 0.98 else rng.integers(m + 1)
        chance = np.where(rng.random(runs) < 0.01, rng.choice([0.0, 1.0, 0.5, rng.random()], runs), chance)
        outcome = (rng.random(runs) < chance).astype(np.int64)
        joined.play(chosen, outcome)
        for r in range(runs):
            alone[r].play(chosen[r : r + 1], outcome[r])
            counts[r, chosen[r]] += 1
            ones[r, chosen[r]] += outcome[r]
        if rng.random() < 0.05:
            player = joined.player = pickle.loads(pickle.dumps(joined.player))
            joined.memory, joined.hand = player.memory, Hand(player)
    if m > 20:
        assert large > 200
        assert kept > 100


def test_foster_vohra_on_all_pairs_goes_on_after_pickling():
    straight = Game(FosterVohra(30, "all"), Contrarian(), horizon=3000, runs=range(3))
    stopped = Game(FosterVohra(30, "all"), Contrarian(), horizon=3000, runs=range(3))
    straight.advance(3000)
    for until in (1, 77, 1000, 2999, 3000):
        stopped.advance(until)
        if until < 3000:
            stopped.laws()
        stopped = pickle.loads(pickle.dumps(stopped))
    for one, other in zip(straight.gammas(), stopped.gammas(), strict=True):
        assert (one.predictions == other.predictions).all()
        assert (one.counts == other.counts).all()


def test_stationary_weights_of_every_size_do_not_overflow():
    """A walk that is a billion times likelier to go up than down: weights from 1 down to less than the least float."""
    points, up = 61, 1e9
    flow = np.diag(np.full(points - 1, up), 1) + np.diag(np.ones(points - 1), -1)
    share = np.zeros(points)
    root = shares(flow, points, share)
    assert root == 0
    first = int(np.argmax(share > 0))
    law = share[first:]
    assert (law > 0).all()
    assert law.sum() == pytest.approx(1.0, abs=1e-15)
    assert law[1:] / law[:-1] == pytest.approx(up, rel=1e-2)  # the least weights are subnormal
    assert law[-20:] == pytest.approx([(1 - 1 / up) * up**-k for k in range(19, -1, -1)], rel=1e-13)


@given(st.data())
def test_blum_mansour_is_stationary_under_the_wishes(data):
    m = data.draw(st.integers(1, 9))
    wish = data.draw(
        st.lists(st.one_of(st.floats(0, m), st.integers(0, m).map(float)), min_size=m + 1, max_size=m + 1)
    )
    player = Driven(BlumMansour(m))
    pull = player.memory.floats[0, 2 * (m + 1) :]
    pull[:], player.memory.ints[0, 0] = np.array(wish) - np.arange(m + 1), data.draw(st.integers(0, m))
    q = on_grid(player.points(), m)
    # What the player knows: a wish is a point and a pull.
    rows = np.array([[max(0.0, 1 - abs(p - (j - i))) for j in range(m + 1)] for i, p in enumerate(pull)])
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    assert q @ rows == pytest.approx(q, abs=1e-10)


def test_blum_mansour_learners_follow_the_weighted_leader(seed):
    player, rng, own = Driven(BlumMansour(5)), np.random.default_rng(seed), np.arange(6) / 5
    weight, ones = np.zeros(6), np.zeros(6)
    for y in (rng.random(200) < 0.3).astype(int):
        asked = player.ask()
        stated = on_grid(player.points(), 5)
        player.tell(asked, y, drawn=rng.integers(asked.sizes[0]))
        weight, ones = weight + stated, ones + stated * y
        assert own + player.memory.floats[0, 12:] / 5 == pytest.approx((own + ones) / (1 + weight), abs=1e-12)


@given(st.integers(1, 30), st.data())
def test_the_regret_against_a_far_point_is_at_most_so_many_times_that_against_the_next(m, data):
    rounds = data.draw(st.integers(0, 50))
    ones = data.draw(st.integers(0, rounds))
    i, j = data.draw(st.integers(0, m)), data.draw(st.integers(0, m))

    def regret(to):
        return sum((i / m - y) ** 2 - (to / m - y) ** 2 for y in [1] * ones + [0] * (rounds - ones))

    if i != j:
        steps = abs(j - i)
        assert regret(j) <= steps * regret(i + (1 if j > i else -1)) + 1e-9
    bias = ones - rounds * i / m
    most = max(regret(k) for k in (i - 1, i + 1) if 0 <= k <= m)
    assert abs(bias) <= rounds / (2 * m) + m / 2 * max(most, 0.0) + 1e-9
