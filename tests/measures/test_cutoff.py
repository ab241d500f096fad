"""Cutoff, step, weighted and low-degree calibration error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.measures import cutoff
from onlinecal.measures.binned import ece
from onlinecal.measures.cutoff import cutoff_ce, low_degree_ce, step_ce, weighted_ce, weighted_norm
from tests.strategies import gammas


@given(gammas())
def test_inequalities(gamma):
    step, cut = step_ce(gamma), cutoff_ce(gamma)
    assert 0.0 <= step <= cut <= 2 * step
    assert cut <= ece(gamma) + 1e-14
    assert abs(gamma.residuals.sum()) <= step + 1e-14
    assert low_degree_ce(gamma) <= ece(gamma) + 1e-14


@given(gammas(), st.integers(0, 6))
def test_weighted_and_low_degree(gamma, degree):
    pairs = list(zip(gamma.residuals.tolist(), gamma.predictions.tolist(), strict=True))
    moments = [abs(sum(r * v**j for r, v in pairs)) for j in range(degree + 1)]
    assert low_degree_ce(gamma, degree=degree) == pytest.approx(max(moments), abs=1e-14)
    assert weighted_ce(gamma, weights=lambda v: v**degree) == pytest.approx(moments[degree], abs=1e-14)
    assert weighted_ce(gamma, weights=gamma.predictions**degree) == pytest.approx(moments[degree], abs=1e-14)
    assert (
        weighted_ce(gamma) == weighted_ce(gamma, weights=lambda v: 1) == pytest.approx(moments[0], abs=1e-14)
    )
    signs = np.sign(gamma.residuals)
    assert weighted_ce(gamma, weights=signs) == pytest.approx(ece(gamma), abs=1e-14)
    interval = cutoff.worst_interval(gamma)
    inside = (gamma.predictions >= interval.lower) & (gamma.predictions <= interval.upper)
    assert weighted_ce(gamma, weights=inside) == pytest.approx(cutoff_ce(gamma), abs=1e-14)


@given(gamma=gammas())
def test_the_largest_of_a_family(gamma):
    """BGHN23, Definition 7.1: thresholds give the step error, intervals the cutoff error, powers that of low degree."""
    v = gamma.predictions
    steps = [(v <= t).astype(float) for t in v]
    assert weighted_ce(gamma, weights=steps) == pytest.approx(step_ce(gamma), abs=1e-14)
    assert weighted_ce(gamma, weights=np.array(steps)) == weighted_ce(gamma, weights=steps)
    between = [(lambda x, a=a, b=b: (a <= x) & (x <= b)) for a in v for b in v if a <= b]
    assert weighted_ce(gamma, weights=between) == pytest.approx(cutoff_ce(gamma), abs=1e-14)
    powers = [lambda x: np.ones(len(x)), *[lambda x, j=j: x**j for j in range(1, 4)]]
    assert weighted_ce(gamma, weights=powers) == pytest.approx(low_degree_ce(gamma, degree=3), abs=1e-14)
    assert weighted_ce(gamma, weights=[np.sqrt]) == weighted_ce(gamma, weights=np.sqrt)
    rows = gamma.residuals[None, :] * np.array([[1.0], [-2.0]])
    norms = weighted_norm(gamma, rows, weights=powers)
    assert norms == pytest.approx(np.array([1, 2]) * weighted_ce(gamma, weights=powers), abs=1e-14)
