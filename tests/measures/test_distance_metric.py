"""Distance from calibration under another metric: the coupling program, and the theorems of BN24, Section 5."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.measures import distance_in_metric, distance_lower, ece, smooth_ce
from tests.oracles import measures as oracle
from tests.strategies import ANY, many_levels

G = JointDistribution
CLOSE = 1e-9


def cubic(v):
    return v + v**3


#: all at least |u − v|
METRICS = ["identity", "logit", cubic, lambda v: 3.0 * v]
some_metric = st.sampled_from(METRICS)


@settings(max_examples=12)
@given(gamma=ANY, metric=some_metric | st.just(np.cbrt))
def test_the_coupling_program_lies_in_the_bracket(gamma, metric):
    """That of the oracle is above the distance, and no more so than what its grid allows."""
    gamma = gamma.round(16)[0]
    found = distance_in_metric(gamma, metric=metric, nodes=120)
    above = oracle.distance_in_metric(gamma, metric, 80)
    assert 0.0 <= found.lower <= above + 1e-7
    assert found.upper >= oracle.distance_in_metric(gamma, metric, 80, slack=1.0) - 1e-7
    assert found.upper <= ece(gamma) + CLOSE
    if gamma.levels < 10:
        assert found.width < 3e-3


@settings(max_examples=12)
@given(gamma=ANY, metric=some_metric)
def test_theorem_15(gamma, metric):
    """Where the metric is at least |u − v|: half the distance ≤ weak calibration error ≤ twice the distance.

    Above: a 1-Lipschitz ω changes E[ω(v)(y − v)] by at most twice the metric of what is coupled. Below: half the
    difference of potentials is such an ω.
    """
    weak, distance = smooth_ce(gamma, metric=metric), distance_in_metric(gamma, metric=metric, nodes=60)
    assert distance.lower / 2 - CLOSE <= weak <= 2 * distance.upper + CLOSE


def test_theorem_15_needs_its_condition():
    """Under c |u − v| with a small c it costs next to nothing to move, and a bias stays."""
    gamma = G.from_levels([0.45], [1], [0.55])
    assert distance_in_metric(gamma, metric=lambda v: 0.01 * v).upper < 0.0011
    assert smooth_ce(gamma, metric=lambda v: 0.01 * v) == pytest.approx(0.1)


@settings(max_examples=12)
@given(gamma=ANY)
def test_theorem_16_for_log_odds(gamma):
    """The distance under log odds and that under |u − v| bound each other by powers (Corollary 18).

    Lemma 17 with its constants: let ω be 1-Lipschitz in log odds and ω' the same of v clipped to [γ, 1 − γ]. ω' is
    2/γ-Lipschitz in v; and near 0 E[y + v] is at most smCE/γ + 3γ, seen by a weight that falls from γ to 2γ. In all
    12 √smCE is above the weak calibration error.
    """
    smooth, weak = smooth_ce(gamma), smooth_ce(gamma, metric="logit")
    assert smooth - 1e-15 <= weak <= 12 * math.sqrt(smooth) + CLOSE
    distance, plain = distance_in_metric(gamma, nodes=60), distance_lower(gamma)
    assert plain.lower <= 2 * smooth + CLOSE <= 4 * distance.upper + 2 * CLOSE
    assert distance.lower <= 2 * weak + CLOSE <= 24 * math.sqrt(2 * plain.upper) + CLOSE


def test_theorem_16_needs_the_root():
    """Two forecasts near 0, far apart in log odds, with opposite errors."""
    for size in (1e-2, 1e-4, 1e-6):
        gamma = G.from_levels([size**2, size], [1, 1], [size, 0.0])
        weak = smooth_ce(gamma, metric="logit")
        assert weak >= 0.9 * size
        assert weak >= 0.9 * math.sqrt(smooth_ce(gamma))
        assert distance_in_metric(gamma, nodes=60).upper >= weak / 2


@given(gamma=ANY)
def test_the_identity_is_the_distance_but_for_outcomes_that_are_exchanged(gamma):
    found, plain = distance_in_metric(gamma, metric="identity", nodes=60), distance_lower(gamma)
    assert found.lower <= plain.upper + CLOSE
    assert plain.lower <= 4 * found.upper + CLOSE
    # Where predictions cannot move, outcomes are exchanged.
    frozen = distance_in_metric(gamma, metric=lambda v: 1e12 * v, nodes=60)
    gaps = np.diff(gamma.predictions)
    if not len(gaps) or gaps.min() > 1e-9:
        assert frozen.upper == pytest.approx(ece(gamma), abs=1e-6)


def test_many_levels_and_none_to_move():
    gamma = many_levels(0, 1100, 0.1)
    found = distance_in_metric(gamma, metric="identity")
    assert found.width < 2e-3
    assert found.lower <= 2 * smooth_ce(gamma)
    calibrated = G.from_levels([0.1, 0.7], [1, 2], [0.1, 0.7])
    assert distance_in_metric(calibrated).upper == 0.0
    ends = G.from_levels([0.0, 1e-12, 0.5, 1.0], [1, 1, 1, 1], [0.3, 0.0, 0.5, 0.9])
    found = distance_in_metric(ends)
    # In log odds the ends are infinitely far from all else.
    assert found.lower <= 0.1 <= found.upper + CLOSE
    assert found.width < 1e-3


def test_brackets_are_as_narrow_as_stated(seed):
    """At most 2.8e-4 and 2.3e-5 wide in 141 cases; as other seeds may differ, twice that is allowed."""
    generator = np.random.default_rng([seed, 5])
    for k in (2, 40):
        laws = (generator.random(k), generator.beta(0.1, 0.1, k), 10.0 ** -generator.uniform(0.0, 9.0, k))
        for p in laws:
            gamma = G.from_samples(p, generator.random(k) < 0.3)
            assert distance_in_metric(gamma).width <= 5.6e-4
            assert distance_in_metric(gamma, metric="identity").width <= 4.6e-5
