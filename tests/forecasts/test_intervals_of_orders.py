"""Coverage of the intervals of measures with options: other orders than 1, bins of other kinds, debiased."""

import numpy as np
import pytest
from scipy import stats

import onlinecal as oc
from tests.coverage_intervals import DESIGNS, ORDERS, WITHOUT, coverage
from tests.forecasts.test_intervals import SMALL


@pytest.mark.slow
def test_intervals_of_other_orders_hold_the_truth_in_93_of_100_cases(full, seed):
    """They are made for 95 %; of N simulations, fewer than the 1e-8 quantile of Binomial(N, 0.93) hold it.

    There are at most 36 designs and 7 measures: by chance that happens with a probability below 3e-6.
    """
    cases = [(d, n) for d in DESIGNS for n in (200, 1000, 5000)] if full else SMALL
    simulations, made_of = 300 if full else 60, dict.fromkeys(ORDERS, 0)
    for design, n in cases:
        for name, (covered, made) in coverage(DESIGNS[design], n, simulations, seed, names=ORDERS).items():
            made_of[name] += made
            assert covered >= (stats.binom.ppf(1e-8, made, 0.93) if made else 0), (
                design,
                n,
                name,
                covered,
                made,
            )
    # Of each there are some, so that none is held for want of intervals.
    assert min(made_of.values()) >= simulations


def test_where_no_interval_is_right_none_is_printed(seed):
    rng = np.random.default_rng([seed, 71])
    v = rng.integers(0, 21, 3000) / 20
    found = oc.evaluate(v, rng.random(3000) < v, measures=list(WITHOUT.values()), bootstrap=50)
    assert found.rows[0].interval is None
    assert found.rows[0].interval_by.startswith("none: ")
    # ECE of order 2 of 20 samples a level is noise.
    found = oc.evaluate(v[:400], rng.random(400) < v[:400], measures=[ORDERS["ece of order 2"]], bootstrap=50)
    assert found.rows[0].interval is None
