"""What leaves a measure as it is: order, splits, an exchange of outcomes; and its value where it is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from tests.gammas_metric import split
from tests.measures.test_max_levels import ends
from tests.measures.test_witnesses_in_words import RECORDS, by_id
from tests.strategies import calibrated_gammas, gammas


def value(record, gamma):
    return record.function(gamma, **record.example)


@pytest.mark.parametrize("record", RECORDS, ids=by_id)
@given(gamma=gammas(), shares=st.lists(st.sampled_from([0.25, 0.5, 0.75]), min_size=1, max_size=4))
def test_order_and_split_of_mass_do_not_matter(record, gamma, shares):
    assert ends(value(record, split(gamma, shares))) == pytest.approx(ends(value(record, gamma)), abs=1e-9)


# What is not symmetric, and why: a threshold and a moment look up from 0; bins hold their lower edge.
ONE_SIDED = {"step_ce", "subsampled_step_ce", "low_degree_ce", "binned_ece", "binned_ece_width", "binned_ce"}


@pytest.mark.parametrize("record", [m for m in RECORDS if m.name not in ONE_SIDED], ids=by_id)
@given(gamma=gammas())
def test_exchange_of_outcomes(record, gamma):
    # Exactly representable, so that 1 − v is exact; rounding to such a grid may join levels.
    gamma = gamma.round(1024)[0]
    tolerance = 2e-4 if record.name == "smooth_ece" else 2e-7 if record.name == "smooth_ece_at" else 1e-9
    assert ends(value(record, gamma.flip())) == pytest.approx(ends(value(record, gamma)), abs=tolerance)


@pytest.mark.parametrize("record", [m for m in RECORDS if m.complete.startswith("yes")], ids=by_id)
@given(gamma=calibrated_gammas())
def test_calibrated_is_exactly_zero(record, gamma):
    assert ends(value(record, gamma)) == (0.0, 0.0)


@pytest.mark.parametrize("record", RECORDS, ids=by_id)
@pytest.mark.parametrize("v", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("y", [0, 1])
def test_one_sample(record, v, y):
    gamma = JointDistribution.from_samples([v], [y])
    low, high = ends(value(record, gamma))
    wrong = abs(v - y)
    expected = {
        "binned_ece_width": wrong + 0.1,
        "kernel_ce": wrong,
        "cfdl": wrong**2,
        "brier": wrong**2,
        "atb": wrong**2,
        "subsampled_smooth_ce": wrong / 2,  # in every second subset
        "subsampled_step_ce": wrong / 2,
        "log_loss": -math.log(1.0 - wrong) if wrong < 1.0 else math.inf,
        "nce": 0.0 if wrong == 0.0 else math.inf,
    }
    if record.name in {"v_cdl", "cdl", "u_calibration", "scdl", "scdl_binned"}:
        assert 0.0 <= low == high <= 1.0
        assert (low == 0.0) == (wrong == 0.0)
    elif record.name == "soft_binned_loss":  # of the threshold ½: what is on its wrong side
        assert (low, high) == pytest.approx((1 / 3 if wrong > 0.5 else 0.0,) * 2, abs=1e-9)
    else:
        want = expected.get(record.name, wrong)
        assert (low, high) == pytest.approx((want, want), abs=1e-9)


@pytest.mark.parametrize("record", RECORDS, ids=by_id)
@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize(
    "p", [[0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 1.0], [0.6, 0.7, 1.0], [1e-300, 0.5]], ids=str
)
def test_all_outcomes_equal(record, outcome, p):
    gamma = JointDistribution.from_samples(p, [outcome] * len(p))
    low, high = ends(value(record, gamma))
    assert 0.0 <= low <= high <= record.largest
    if record.name.startswith(("distance", "smooth_ce")) and record.name != "smooth_ece_at":
        # Everything errs to one side, so that nothing cancels: the mean error for a constant weight, and no less
        # has to be moved.
        mean = float(np.abs(np.asarray(p) - outcome).mean())
        assert (low, high) == pytest.approx((mean, mean), abs=2e-4 if record.name == "smooth_ece" else 1e-8)
