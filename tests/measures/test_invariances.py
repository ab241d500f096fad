"""The catalogue × its properties: order, splits, an exchange of outcomes, calibration, one sample, equal outcomes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES
from onlinecal.measures.base import ends
from tests.gammas_metric import split
from tests.strategies import calibrated_gammas, gammas
from tests.witnesses import MORE

#: options beside those of the witnesses
OTHERS = {
    **MORE,
    "ece": [{"order": 3.0}, {"order": math.inf}],
    "binned_ce": [{"order": 1.0}, {"order": math.inf, "bins": 4, "strategy": "quantile"}],
    "soft_binned_ece": [{"order": math.inf, "temperature": 0.1}],
    "soft_binned_loss": [{"m": 5, "threshold": 2, "soft": False}],
    "cfdl": [{"task": "three_action"}],
}
CASES = [
    (record, options)
    for record in MEASURES.values()
    for options in (dict(record.example), *OTHERS.get(record.name, []))
]
#: thresholds and moments look up from 0, bins hold their lower edge, and a cube root is not its mirror image; nor are
#: blocks of levels, which are counted from the left
ONE_SIDED = {"step_ce", "subsampled_step_ce", "low_degree_ce", "binned_ece", "binned_ece_width", "binned_ce"}


def case_id(case):
    return getattr(case, "name", None) or ", ".join(
        f"{k}={getattr(v, '__name__', v)}" for k, v in case.items()
    )


def sided(record, options):
    return (
        record.name in ONE_SIDED
        or callable(options.get("metric"))
        or options.get("soft") is False
        or "blocks" in options
    )


def value(record, options, gamma):
    return ends(record.function(gamma, **options))


def close(record, options, pair):
    """Within what the measure states of itself."""
    if record.name == "smooth_ece":
        return pytest.approx(pair, abs=2e-4)
    narrow = options.get("kernel") == "gaussian" and options.get("scale", 1.0) < 0.0224
    return pytest.approx(pair, abs=2e-7 if record.name == "smooth_ece_at" or narrow else 1e-9)


EACH = pytest.mark.parametrize(("record", "options"), CASES, ids=case_id)


@EACH
@given(gamma=gammas(), shares=st.lists(st.sampled_from([0.25, 0.5, 0.75]), min_size=1, max_size=4))
def test_order_and_split_of_mass_do_not_matter(record, options, gamma, shares):
    whole = value(record, options, gamma)
    assert value(record, options, split(gamma, shares)) == close(record, options, whole)


@pytest.mark.parametrize(("record", "options"), [case for case in CASES if not sided(*case)], ids=case_id)
@given(gamma=gammas())
def test_exchange_of_outcomes(record, options, gamma):
    # Exactly representable, so that 1 − v is exact; rounding to such a grid may join levels.
    gamma = gamma.round(1024)[0]
    assert value(record, options, gamma.flip()) == close(record, options, value(record, options, gamma))


@pytest.mark.parametrize(
    ("record", "options"), [case for case in CASES if case[0].complete.startswith("yes")], ids=case_id
)
@given(gamma=calibrated_gammas())
def test_calibrated_is_exactly_zero(record, options, gamma):
    assert value(record, options, gamma) == (0.0, 0.0)


@EACH
@pytest.mark.parametrize("v", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("y", [0, 1])
def test_one_sample(record, options, v, y):
    low, high = value(record, options, JointDistribution.from_samples([v], [y]))
    wrong = abs(v - y)
    at_one, log = -math.log(1.0 - wrong) if wrong < 1.0 else math.inf, 0.0 if wrong == 0.0 else math.inf
    expected = {
        "binned_ece_width": wrong + (0.0 if options.get("strategy") == "quantile" else 0.1),
        "brier": wrong**2,
        "kernel_ce": wrong * math.sqrt(((1.0 + (2.0 * v - 1.0) ** 2) / 2.0) ** options.get("degree", 0)),
        "atb": wrong**2,
        "subsampled_smooth_ce": wrong / 2,  # in every second subset
        "subsampled_step_ce": wrong / 2,
        "log_loss": at_one,
        "nce": log,
    }
    if record.name in {"v_cdl", "cdl", "u_calibration", "scdl", "scdl_binned", "cfdl", "soft_binned_loss"}:
        assert 0.0 <= low == high <= 1.0
        assert (
            low == 0.0
            if wrong == 0.0
            else low > 0.0 or record.name in ("cfdl", "soft_binned_loss", "scdl_binned")
        )
    else:
        want = expected.get(record.name, wrong)
        assert (low, high) == close(record, options, (want, want))


@EACH
@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize(
    "p", [[0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 1.0], [0.6, 0.7, 1.0], [1e-300, 0.5]], ids=str
)
def test_all_outcomes_equal(record, options, outcome, p):
    low, high = value(record, options, JointDistribution.from_samples(p, [outcome] * len(p)))
    assert 0.0 <= low <= high <= record.largest
    if record.name.startswith(("distance", "smooth_ce")):
        # Everything errs to one side: the mean error for a constant weight, and no less has to be moved.
        mean = float(np.abs(np.asarray(p) - outcome).mean())
        assert (low, high) == close(record, options, pytest.approx((mean, mean), abs=1e-8).expected)
