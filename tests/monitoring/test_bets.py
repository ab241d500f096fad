"""The bets against calibration: their formula, that they are fair, and that large numbers stay numbers."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.monitoring import bets
from onlinecal.monitoring.bets import SIZES, SLOPED, SLOPES, Bettors, bet, bet_on_all, log_of, look_ahead

EDGES = np.array([0.0, 0.3, 0.5, 1.0])


def table(edges=EDGES):
    b = Bettors.of(edges)
    banks, clocks = b.fresh(1)
    return b, banks[0], clocks[0], np.zeros((2, 4, len(edges) - 1))


def take(b, bank, clock, sums, p, y, level=0.0):
    p, y = np.asarray(p, float), np.asarray(y, float)
    return bet_on_all(bank, clock, sums, b.edges, b.ends, b.prior, b.lifts, p, y, level)


def by_hand(edges, p, y):
    """(bettor → sums over its starts), from the definition in exact numbers but for powers and logarithms; the rest."""
    cells, n, found = len(edges) - 1, len(p), {}
    left = [Fraction(math.log(2.0) / math.log(t + 1.0)) if t else None for t in range(n + 2)]
    deltas = [sign * size for sign in (-1, 1) for size in SIZES]
    bettors = [(a, b, d) for a, b in combinations(range(cells + 1), 2) for d in deltas] + [
        (None, s) for s in SLOPES
    ]
    for bettor in bettors:
        money = start = events = bias = Fraction(0)
        for t in range(1, n + 1):
            m = (left[t] - left[t + 1]) / len(deltas) * Fraction(SLOPED)
            if bettor[0] is not None:
                a, b, _ = bettor
                m *= Fraction(1, cells * (cells - (b - a) + 1)) * (1 / Fraction(SLOPED) - 1)
            count, total = 0, Fraction(0)
            for i in range(t - 1, n):
                pi, yi, off = Fraction(p[i]), y[i], Fraction(y[i]) - Fraction(p[i])
                if bettor[0] is None:
                    lift = (
                        Fraction(math.exp((bettor[1] - 1.0) * math.log(p[i] / (1.0 - p[i]))))
                        if p[i] < 1
                        else 1
                    )
                    off = -off if pi > Fraction(1, 2) else off
                elif edges[a] <= p[i] < edges[b] or (b == cells and p[i] == 1.0):
                    lift = Fraction(math.exp(bettor[2]))
                else:
                    continue
                m *= lift**yi / (1 - pi + pi * lift)
                count, total = count + 1, total + off
            money, start, events, bias = money + m, start + m * t, events + m * count, bias + m * total
        found[bettor] = [float(v) for v in (money, start, events, bias)]
    return found, float(left[n + 1])


def test_the_formula(seed):
    rng = np.random.default_rng(seed)
    p = np.append(rng.integers(1, 11, 7) / 10, [0.3, 1.0, 0.5])
    y = [int(v) for v in rng.random(10) < p]
    b, bank, clock, sums = table()
    take(b, bank, clock, sums, p, y)
    wanted, left = by_hand(EDGES, p, y)
    assert len(wanted) == b.prior.size
    for i, (first, last) in enumerate(b.ends):
        for d, delta in enumerate(b.biases):
            mine = bank[:, i, d] / clock[bets.UNIT]
            bettor = (None, SLOPES[d]) if i == len(b.ends) - 1 else (first, last, delta)
            np.testing.assert_allclose(mine, wanted[bettor], rtol=1e-12, atol=1e-15)
    total = math.fsum(row[0] for row in wanted.values()) + left
    assert math.exp(log_of(clock)) == pytest.approx(total, rel=1e-12)
    for row in sums:
        each = 10, p.sum(), sum(y), ((np.array(y) - p) ** 2).sum()
        assert row.sum(axis=1) == pytest.approx(each)


@given(
    st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), max_size=8), st.floats(0.0, 1.0), st.booleans()
)
def test_bets_are_fair_whatever_came_before(before, p, y):
    b, bank, clock, sums = table()
    # No outcomes of probability 0.
    before = [(q, happened if 0.0 < q < 1.0 else q == 1.0) for q, happened in before]
    take(b, bank, clock, sums, [q for q, _ in before], [h for _, h in before])
    failed, happened = look_ahead(bank, clock, b.edges, b.ends, b.prior, b.lifts, p)
    assert (1.0 - p) * failed + p * happened == pytest.approx(clock[bets.TOTAL], rel=1e-12)
    bet(bank, clock, sums, b.edges, b.ends, b.prior, b.lifts, p, float(y))
    assert clock[bets.TOTAL] == pytest.approx(happened if y else failed, rel=1e-12)


def test_money_beyond_all_floats():
    """4000 events that fail: bettors of −δ on [0, 1] gain ln f a round; and back again, by as many that happen."""
    b, bank, clock, sums = table(np.array([0.0, 1.0]))
    n = 4000

    def log_money(ones, zeros):
        """ln of what the best has that began with the first event. The others are at most twice as rich together."""
        first = math.log((1.0 - SLOPED) * (1.0 - math.log(2.0) / math.log(3.0)) / len(b.biases))
        return max(first + ones * d - (ones + zeros) * math.log(0.4 + 0.6 * math.exp(d)) for d in b.biases)

    take(b, bank, clock, sums, np.full(n, 0.6), np.zeros(n))
    assert 2000 < log_money(0, n) <= log_of(clock) <= log_money(0, n) + 1.0  # far beyond e^709
    take(b, bank, clock, sums, np.full(2 * n, 0.6), np.ones(2 * n))
    assert np.isfinite(bank).all()
    assert clock[bets.COUNT] == 3 * n
    assert log_money(2 * n, n) <= log_of(clock)
