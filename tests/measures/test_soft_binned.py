"""SCDL: the formula term by term, its lemmas, and the response that it vouches for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.measures.decision import cdl
from onlinecal.measures.soft_binned import (
    SoftRounding,
    rounded_down,
    scdl,
    scdl_binned,
    soft_binned_loss,
    soft_rounding,
)
from tests.oracles import decision as oracle
from tests.strategies import calibrated_gammas, gammas

grids = st.integers(1, 40)


@given(gammas(), grids, st.booleans())
def test_formula(gamma, m, soft):
    assert scdl_binned(gamma, m=m, soft=soft) == pytest.approx(oracle.scdl_binned(gamma, m, soft), abs=1e-12)


@given(gammas(), st.integers(1, 12), st.booleans())
def test_the_loss_of_each_threshold_by_definition_3_1(gamma, m, soft):
    rounded = SoftRounding(m).rounded(gamma) if soft else rounded_down(gamma, m)
    losses = [soft_binned_loss(gamma, m=m, threshold=i, soft=soft) for i in range(1, m + 1)]
    if (gamma.means == gamma.predictions).all():
        assert losses == [0.0] * m
        return
    for i, loss in enumerate(losses, 1):
        expected = sum(
            w * max(q - i / m if v < (i - 0.5) / m else (i - 1) / m - q, 0.0)
            for v, w, q in zip(rounded.predictions, rounded.mass, rounded.means, strict=True)
        )
        assert loss == pytest.approx(expected, abs=1e-12)
    assert scdl_binned(gamma, m=m, soft=soft) == pytest.approx(max(losses), abs=1e-14)


@given(gammas())
def test_value_is_the_minimum_over_all_powers_of_two(gamma):
    every = [max(scdl_binned(gamma, m=2**e), 2.0**-e) for e in range(51)]
    if (gamma.means == gamma.predictions).all():
        assert scdl(gamma) == 0.0
    else:
        assert scdl(gamma) == pytest.approx(min(every), rel=1e-9, abs=1e-15)


@given(gammas(), grids)
def test_lemmas(gamma, m):
    value = scdl_binned(gamma, m=m)
    assert value <= scdl_binned(gamma, m=2 * m) + 1e-12  # Lemma 3.2
    assert value <= cdl(gamma) + 1e-12  # Lemma 3.4
    assert cdl(SoftRounding(m).rounded(gamma)) <= 2 * (value + 1 / m) + 1e-12  # Lemma 4.3
    assert scdl(gamma) <= 2 * cdl(gamma) + 1e-14


@given(gammas())
def test_response_has_swap_regret_of_at_most_four_times_the_value_for_the_worst_task(gamma):
    response = soft_rounding(gamma)
    assert response.value(gamma) == pytest.approx(scdl(gamma), abs=1e-12)
    assert cdl(response.rounded(gamma)) <= 4 * scdl(gamma) + 1e-12


@given(gammas(), grids)
def test_rounding_keeps_mass_mean_and_outcomes(gamma, m):
    rounded = SoftRounding(m).rounded(gamma)
    assert rounded.weight == pytest.approx(gamma.weight, rel=1e-12)
    assert rounded.base_rate == pytest.approx(gamma.base_rate, abs=1e-12)
    before = (gamma.mass * gamma.predictions).sum()
    assert (rounded.mass * rounded.predictions).sum() == pytest.approx(before, abs=1e-12)
    assert np.allclose(rounded.predictions * m, np.rint(rounded.predictions * m), atol=1e-9)
    mass, ones = oracle.rounded(gamma, m)
    index = np.rint(rounded.predictions * m).astype(int)
    assert rounded.mass == pytest.approx(mass[index], abs=1e-12)
    assert rounded.positives / rounded.weight == pytest.approx(ones[index], abs=1e-12)


@given(st.floats(0, 1), st.integers(1, 1000))
def test_law_of_the_rounding(v, m):
    law = SoftRounding(m).law(v)
    assert sum(p for _, p in law) == pytest.approx(1.0, abs=1e-12)
    assert sum(x * p for x, p in law) == pytest.approx(v, abs=1e-12)
    assert all(0 <= x <= 1 and p >= 0 for x, p in law)
    assert all(abs(x - v) <= 1 / m for x, _ in law)


@pytest.mark.parametrize("m", [10, 49, 93, 98, 1000])
def test_grid_values_are_not_rounded(m):
    for i in range(m + 1):
        assert SoftRounding(m).law(i / m) == ((i / m, 1.0),)


@pytest.mark.parametrize("m", [10, 49, 93, 98])
def test_hard_bins_of_values_just_below_the_grid(m):
    for i in range(1, m + 1):
        below = np.nextafter(i / m, 0)
        gamma = JointDistribution.from_levels([below], [1.0], [1.0 if i < m else 0.0])
        assert scdl_binned(gamma, m=m, soft=False) == pytest.approx(
            oracle.scdl_binned(gamma, m, False), abs=1e-12
        )


@given(calibrated_gammas(), grids)
def test_calibrated_is_exactly_zero(gamma, m):
    assert scdl(gamma) == 0.0
    assert scdl_binned(gamma, m=m) == 0.0
    response = soft_rounding(gamma)
    assert response.bins is None
    assert response.rounded(gamma) is gamma
    assert response.law(0.3) == ((0.3, 1.0),)
    assert response.value(gamma) <= 2.0**-49  # means may have been rounded to the predictions


def test_continuity_where_cdl_jumps():
    # All mass at 1/2 is calibrated; moved by 1e-6 towards the outcomes' side CDL jumps and SCDL does not.
    gamma = JointDistribution.from_samples([0.5 - 1e-6, 0.5 + 1e-6], [0, 1])
    assert cdl(gamma) > 0.49
    assert scdl(gamma) < 0.01
