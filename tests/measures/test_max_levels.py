"""Measures of many levels: rounded to a grid, with a bracket wide enough for what that changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter
from onlinecal.measures import MEASURES, Bracket
from onlinecal.measures.base import ends
from tests.strategies import gammas

LIMITED = {
    "interval_ce": [{}, {"width": "max"}],
    "smooth_ce": [{}],
    "earthmover_distance": [{}],
    "subsampled_smooth_ce": [{}],
    "distance_lower": [{}],
    "kernel_ce": [{}, {"kernel": "gaussian", "scale": 0.1}, {"scale": 0.2}, {"kernel": "polynomial"}],
    "random_interval_ce": [{"epsilon": 0.1}, {"epsilon": 0.03}],
    "surrogate_interval_ce": [{}],
    "brier": [{}],
    "atb": [{}],
    "smooth_ece": [{}],
    "smooth_ece_at": [{"sigma": 0.1}, {"sigma": 0.01}],
    "scdl": [{}],
    "soft_binned_ece": [{}, {"bins": 2, "temperature": 0.3, "order": 1.0}],
    "soft_binned_loss": [{"m": 3, "threshold": 2}],
    "scdl_binned": [{"m": 1}, {"m": 4}, {}],
    "low_degree_ce": [{"degree": 0}, {"degree": 5}],
    "weighted_ce": [{}],
}


CASES = [(name, options) for name, many in LIMITED.items() for options in many]


def test_which_measures_take_max_levels():
    for record in MEASURES.values():
        if "max_levels" in record.options and record.fallback is None:
            continue  # distance_upper: up to which it enumerates
        if record.name in LIMITED:
            record.bind(max_levels=10, **record.example)
        else:
            with pytest.raises(InvalidParameter, match="nothing is proved"):
                record.bind(max_levels=10, **record.example)
    with pytest.raises(InvalidParameter, match="expected 'identity'"):
        MEASURES["smooth_ce"].bind(max_levels=10, metric="logit")
    with pytest.raises(InvalidParameter, match="max_levels = 1"):
        MEASURES["smooth_ce"].bind(max_levels=1)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@given(gamma=gammas(max_levels=20), most=st.integers(2, 12))
def test_the_widened_bracket_holds_the_value(name, options, gamma, most):
    record = MEASURES[name]
    exact = record.function(gamma, **options)
    limited = record.bind(max_levels=most, **options)(gamma)
    if gamma.levels <= most:
        assert limited == exact
        return
    assert isinstance(limited, Bracket)
    low, high = ends(exact)
    if high - low > 1e-6:  # itself a bracket: both hold the same value
        low, high = high, low
    assert limited.lower <= low + 1e-9
    assert limited.upper >= high - 1e-9
    assert 0.0 <= limited.lower <= limited.upper <= record.largest
