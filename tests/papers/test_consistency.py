"""Exponents of consistency on families of Γ: those that are stated, those of the lemmas, and measures without."""

import math
import re

import pytest

from onlinecal.measures import MEASURES
from tests.experiments import script

consistency = script("consistency")
consistency_exponents = consistency.consistency_exponents

#: of slopes between two sizes that are 16 times apart, against their limits
NEAR = 0.06


def stated(text, letter):
    found = re.search(rf"{letter} = ([\d/]+)", text)
    if found is None:
        return None
    over, _, under = found[1].partition("/")
    return int(over) / int(under or 1)


STATED = {m.name: (stated(m.complete, "c"), stated(m.sound, "s")) for m in MEASURES.values()}
#: both exponents are needed, by these families
ATTAINED = {
    **dict.fromkeys(("smooth_ce", "earthmover_distance", "distance_lower"), (1.0, 2.0)),
    **dict.fromkeys(("distance_upper", "interval_ce", "surrogate_interval_ce", "scdl"), (0.5, 1.0)),
}


@pytest.mark.parametrize("name", [name for name, (c, s) in STATED.items() if c is not None or s is not None])
def test_exponents_that_are_attained(name):
    """No family refutes what is stated."""
    found, (c, s) = consistency_exponents(name), STATED[name]
    assert c is None or found.c >= c - NEAR
    assert s is None or found.s <= s + NEAR
    if name in ATTAINED:
        assert (found.c, found.s) == pytest.approx(ATTAINED[name], abs=NEAR)


def test_who_is_not_robustly_complete():
    """Two certain outcomes on the wrong sides come near to calibration, and these do not come near to 0."""
    for name in ("ece", "binned_ece", "cutoff_ce", "step_ce", "cdl", "v_cdl", "brier", "log_loss", "nce"):
        found = consistency_exponents(name)
        assert found.complete["crossed"] == pytest.approx(0.0, abs=NEAR)
        assert found.c < NEAR
    # Errors that cancel: no power bounds these below.
    assert consistency_exponents("weighted_ce").sound["fair_coins"] == math.inf
    assert consistency_exponents("binned_ece", bins=10).sound["cancelling"] == math.inf
