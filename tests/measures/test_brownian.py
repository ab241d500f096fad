"""The laws of the largest sum of residuals and of their range, against their moments and against walks."""

import math

import numpy as np
import pytest
from scipy import integrate

from onlinecal.core.joint import JointDistribution
from onlinecal.forecasts.evaluation import evaluate
from onlinecal.measures.cutoff import largest_exceeds, range_exceeds


@pytest.mark.parametrize(
    ("law", "first", "second"),
    [
        # E max|B| = √(π/2), E max|B|² = 2 × Catalan's constant; E R = √(8/π), E R² = 4 ln 2.
        (largest_exceeds, math.sqrt(math.pi / 2.0), 2.0 * 0.915965594177219),
        (range_exceeds, math.sqrt(8.0 / math.pi), 4.0 * math.log(2.0)),
    ],
)
def test_their_moments(law, first, second):
    assert integrate.quad(law, 0.0, 12.0, limit=400)[0] == pytest.approx(first, abs=1e-7)
    assert integrate.quad(lambda x: 2.0 * x * law(x), 0.0, 12.0, limit=400)[0] == pytest.approx(
        second, abs=1e-7
    )
    values = [law(x) for x in np.linspace(0.0, 12.0, 400)]
    assert (np.diff(values) <= 1e-12).all()
    assert values[0] == 1.0
    assert 0.0 <= values[-1] < 1e-20


def test_the_largest_has_another_series():
    for x in (0.3, 1.0, 2.5):
        terms = [
            (-1) ** j / (2 * j + 1) * math.exp(-((2 * j + 1) ** 2) * math.pi**2 / (8.0 * x * x))
            for j in range(60)
        ]
        assert 1.0 - largest_exceeds(x) == pytest.approx(4.0 / math.pi * sum(terms), abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_p_values_for_large_n_are_those_of_draws(weighted, seed):
    """Of 2000 draws, within 5 standard errors (6e-7), and the 0.03 that 4000 steps of a walk lack."""
    generator = np.random.default_rng([seed, 41])
    p = generator.random(4000)
    y = generator.random(4000) < p + 0.02 * (p < 0.5)
    w = generator.random(4000) + 0.5 if weighted else None
    rows = evaluate(p, y, weights=w, measures=["cutoff_ce", "step_ce", "ece"], reference=2000).rows
    for row in rows[:2]:
        error = 5.0 * math.sqrt(row.p_value * (1.0 - row.p_value) / 2000)
        assert row.p_large_n == pytest.approx(row.p_value, abs=error + 0.03)
    assert rows[2].p_large_n is None


def test_certain_forecasts():
    """Where calibrated forecasts leave nothing to chance, a value of 0 proves nothing, and another everything."""
    gamma = JointDistribution.from_samples([0.0, 1.0], [0, 1])
    assert evaluate(gamma, measures=["cutoff_ce"], reference=3).rows[0].p_large_n == 1.0
    gamma = JointDistribution.from_samples([0.0, 1.0], [1, 1])
    assert evaluate(gamma, measures=["cutoff_ce"], reference=3).rows[0].p_large_n == 0.0
