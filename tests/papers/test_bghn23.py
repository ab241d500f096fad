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
    random_interval_ce,
    surrogate_interval_ce,
)
from onlinecal.measures.consistency import fair_coins, four_points
from tests.strategies import ANY

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
