"""Błasiok, Gopalan, Hu and Nakkiran 2023: examples and inequalities of their sections 4 and 6, as they are printed.

Each inequality has a control: a constant so far below it that an example breaks it.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlinecal as oc
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import (
    distance_lower,
    distance_upper,
    interval_ce,
    kernel_ce,
    random_interval_ce,
    smooth_ce,
    surrogate_interval_ce,
)
from tests.experiments import script
from tests.strategies import ANY

fair_coins, four_points = script("consistency").fair_coins, script("consistency").four_points

WIDTH = st.floats(0.01, 2.0)
ROUNDING = 1e-9


@given(gamma=ANY, epsilon=WIDTH)
def test_claim_6_6(gamma, epsilon):
    assert interval_ce(gamma) <= random_interval_ce(gamma, epsilon=epsilon) + epsilon + ROUNDING


@given(gamma=ANY, epsilon=WIDTH)
def test_lemma_6_7(gamma, epsilon):
    most = (1.0 + 2.0 / epsilon) * distance_lower(gamma).upper
    assert random_interval_ce(gamma, epsilon=epsilon) <= most + ROUNDING


def test_lemma_6_7_needs_a_term_of_order_one_over_epsilon():
    # The levels are 2a apart and the lower distance is of order a². The shifted intervals of width ε > 2a keep them
    # apart with probability 2a/ε. Then each has a bias of a/2: of order a²/ε.
    apart, epsilon = 0.01, 0.05
    gamma = fair_coins(apart)
    found = random_interval_ce(gamma, epsilon=epsilon)
    assert found == pytest.approx(2 * apart / epsilon * apart, rel=1e-9)
    assert found > 2.0 * distance_lower(gamma).upper


@pytest.mark.parametrize("alpha", [0.2, 0.1, 0.01, 1e-3])
def test_lemma_6_8(alpha):
    """Four points: the upper distance is at most 5α², interval calibration at least α."""
    gamma = four_points(alpha)
    upper = distance_upper(gamma)
    assert upper.upper <= 5 * alpha**2 + 1e-15
    assert upper.lower == upper.upper  # few levels: exact
    assert interval_ce(gamma) >= alpha - 1e-15
    assert interval_ce(gamma) <= 4 * np.sqrt(distance_lower(gamma).lower) + ROUNDING
    # So no multiple of the upper distance bounds interval calibration, only its root does.
    if alpha <= 0.01:
        assert interval_ce(gamma) > 10 * upper.upper


def discontinuity(epsilon):
    """Table 2: four inputs of the same probability; predictions of b and c are ε away from ½."""
    a, b = 1 / 6, 1 / 48
    predictions = [0.5 - b, 0.5 - epsilon, 0.5 + epsilon, 0.5 + b]
    means = [0.5 - b + a, 0.5 - epsilon - a, 0.5 + epsilon + 2 * a, 0.5 + b - 2 * a]
    return JointDistribution.from_counts(predictions, np.full(4, 0.25), 0.25 * np.array(means))


def test_lemma_6_9_and_table_2():
    beta = 1 / 48
    jump, near = discontinuity(0.0), [discontinuity(epsilon) for epsilon in (1e-2, 1e-4, 1e-8, 1e-12)]
    assert jump.levels == 3
    assert interval_ce(jump) >= 2 * beta - 1e-15
    for gamma in near:
        assert gamma.levels == 4
        assert interval_ce(gamma) <= beta + 1e-15
    # Continuous measures stay: smooth calibration and the lower distance.
    assert oc.measures.smooth_ce(near[-1]) == pytest.approx(oc.measures.smooth_ce(jump), abs=1e-10)
    assert distance_lower(near[-1]).lower == pytest.approx(distance_lower(jump).lower, abs=1e-7)


@given(gamma=ANY)
def test_theorem_6_11(gamma):
    """Its other inequalities: tests/core/test_relations.py."""
    assert surrogate_interval_ce(gamma) <= 6.0 * np.sqrt(distance_lower(gamma).upper) + ROUNDING


#: continuous, complete, sound, as printed; ECE, two binned errors, three scores, two forms of ECCE
TABLE_1 = {
    "ece": (False, True, True),
    "binned_ece": (False, True, False),
    "binned_ce": (False, True, False),
    "brier": (True, False, True),
    "log_loss": (True, False, True),
    "nce": (True, False, True),
    "cutoff_ce": (False, True, True),
    "step_ce": (False, True, True),
    "kernel_ce": (True, True, True),
    "smooth_ce": (True, True, True),
}


def test_table_1_is_that_of_the_catalogue():
    """Its columns are held by tests/measures/test_catalogue.py."""
    for name, cells in TABLE_1.items():
        record = oc.measures.MEASURES[name]
        said = (record.continuous, record.complete, record.sound)
        assert tuple(text.startswith("yes") for text in said) == cells
    for v in ([0.5], [0.2, 0.7], np.linspace(0.1, 0.9, 9)):  # calibrated
        gamma = JointDistribution.from_levels(v, np.ones(len(v)), v)
        assert min(oc.measures.MEASURES[name].function(gamma) for name in ("brier", "log_loss", "nce")) > 0.1


# ---------------------------------------------------------------- §8 and App. C: kernels


def waves(epsilon, points=2001):
    """Theorem C.2: v uniform on [¼, ¾], here on its middles, and E[y − v | v] = ¼ cos(t/ε) exp(−t²/ε), t = v − ½."""
    v = 0.25 + 0.5 * (np.arange(points) + 0.5) / points
    t = v - 0.5
    h = np.cos(t / epsilon) * np.exp(-(t**2) / epsilon)
    return JointDistribution.from_levels(v, np.full(points, 1 / points), v + h / 4)


@pytest.mark.parametrize("epsilon", [0.1, 0.05, 0.02, 0.01, 0.005])
def test_theorem_8_6_by_the_paper_s_own_construction(epsilon):
    """The Gaussian error is exponentially small, smooth calibration is not, and the Laplace kernel follows it.

    The proof has exp(−Ω(1/ε)) where the theorem says exp(−1/ε). The waves are cut off at ±¼, at a height of
    exp(−1/(16ε)).
    """
    gamma = waves(epsilon)
    smooth = smooth_ce(gamma)
    assert smooth >= epsilon**2.5
    assert kernel_ce(gamma, kernel="gaussian") <= np.exp(-1 / (16 * epsilon))
    assert kernel_ce(gamma) >= smooth / 3


def test_theorem_8_6_at_a_hundredth():
    """Values to two digits, which are those of a finer grid of levels, too."""
    for points in (2001, 4001):
        gamma = waves(0.01, points)
        assert kernel_ce(gamma, kernel="gaussian") == pytest.approx(9.4e-6, abs=1e-7)
        assert smooth_ce(gamma) == pytest.approx(5.8e-4, abs=5e-6)
    assert kernel_ce(gamma, kernel="gaussian") > np.exp(-1 / 0.01)


@given(gamma=ANY)
def test_theorem_c_3(gamma):
    """The right side without the root: a function of norm 1 is at most 1 and √2-Lipschitz, as ‖φ(u) − φ(v)‖² = 2 − 2
    exp(−(u − v)²). Of the left side, exp(−O(1/δ⁴)), only that the error is not 0 can be seen in floats.
    """
    smooth, gauss = smooth_ce(gamma), kernel_ce(gamma, kernel="gaussian")
    assert gauss <= np.sqrt(2.0) * smooth + ROUNDING
    assert gauss > 0.0 or smooth < 1e-3


def test_theorem_c_3_needs_a_factor_above_one():
    """√2 is needed: for ± biases at a distance a, smooth calibration is |r| a and the Gaussian error |r| √2 a."""
    a = 1e-3
    gamma = fair_coins(a)
    assert kernel_ce(gamma, kernel="gaussian") > 1.4 * smooth_ce(gamma)


COUPLED = st.lists(
    st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(0, 1), st.floats(0.01, 1.0)),
    min_size=1, max_size=8,
)  # fmt: skip


@given(rows=COUPLED)
def test_lemma_8_7(rows):
    """Predictions that are ε apart in the mean have Laplace errors at most 2√(2ε) apart."""
    u, v, y, w = map(np.array, zip(*rows, strict=True))
    errors = [kernel_ce(JointDistribution.from_samples(p, y, weights=w)) for p in (u, v)]
    apart = float((w * np.abs(u - v)).sum() / w.sum())
    assert abs(errors[0] - errors[1]) <= 2 * np.sqrt(2 * apart) + 1e-7


def test_lemma_8_7_needs_the_root():
    """Predictions ½ of a sure 1 and a sure 0 that move apart by a: the error is of order √a."""
    y = [1, 0]
    for a in (1e-2, 1e-4, 1e-6):
        moved = kernel_ce(JointDistribution.from_samples([0.5 - a, 0.5 + a], y))
        assert kernel_ce(JointDistribution.from_samples([0.5, 0.5], y)) == pytest.approx(0.0, abs=1e-9)
        assert moved == pytest.approx(np.sqrt(a) / 2, rel=0.05)
