"""The averaged two-bin error: its definition, its bounds, that it is truthful, and its interval."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given

import onlinecal as oc
from onlinecal.measures import atb, smooth_ce
from tests.gammas_metric import ANY

G = oc.JointDistribution


def by_definition(p, y):
    """∫ of both squared sums over T², exactly, on the pieces on which they do not change."""
    p, y = [Fraction(float(x)) for x in p], [Fraction(int(x)) for x in y]
    edges = sorted({Fraction(0), Fraction(1), *p})
    total = Fraction(0)
    for a, b in pairwise(edges):
        t = (a + b) / 2
        errors = [(v < t, outcome - v) for v, outcome in zip(p, y, strict=True)]
        below, above = (sum((e for left, e in errors if left == low), Fraction(0)) for low in (True, False))
        total += (b - a) * (below**2 + above**2)
    return float(total / len(p) ** 2)


@pytest.mark.parametrize("seeds", range(6))
def test_it_is_that_of_the_definition(seeds):
    rng = np.random.default_rng(seeds)
    for levels in (1, 3, 20):
        p = rng.integers(0, levels + 1, 30) / levels
        y = rng.integers(0, 2, 30)
        assert atb(p, y) == pytest.approx(by_definition(p, y), abs=1e-15)


@given(gamma=ANY)
def test_it_is_the_sum_over_pairs_and_between_its_bounds(gamma):
    r, v = gamma.residuals, gamma.predictions
    value = atb(gamma)
    assert value == pytest.approx(r @ (1.0 - np.abs(v[:, None] - v)) @ r, abs=1e-14)
    smooth = smooth_ce(gamma)
    assert smooth**2 / 5 - 1e-14 <= value <= smooth + 1e-14


def expected(report, truth):
    """E of ATB over independent outcomes, by all of them."""
    total = 0.0
    for y in product((0, 1), repeat=len(truth)):
        weight = np.prod(np.where(y, truth, 1 - truth))
        total += weight * atb(report, np.array(y))
    return total


def test_nothing_is_better_than_the_truth(seed):
    """By the sum over all outcomes: no probability of failure."""
    rng = np.random.default_rng([seed, 1])
    for n in (1, 2, 5):
        truth = rng.random(n)
        best = expected(truth, truth)
        for size in (1e-3, 0.1, 1.0):
            for _ in range(20):
                report = np.clip(truth + size * rng.uniform(-1, 1, n), 0, 1)
                # The bias of each bin is added, squared; strictly more unless the report is the truth.
                assert expected(report, truth) > best or np.allclose(report, truth, atol=1e-9)


def test_the_smooth_error_is_not_truthful():
    """The control: one forecast of an event of probability 0.7 has less expected smCE at 1."""
    truth, lie = np.array([0.7]), np.array([1.0])

    def smooth(report):
        return 0.7 * smooth_ce(report, [1]) + 0.3 * smooth_ce(report, [0])

    assert smooth(lie) < smooth(truth)
    assert expected(lie, truth) > expected(truth, truth)
