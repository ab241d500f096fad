"""The columns of the measure table, each by examples: sound, continuous, and who is blind to what."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES, Bracket, ece
from tests.strategies import gammas

EPS = 1e-4


def lower(name, gamma):
    value = MEASURES[name].function(gamma, **MEASURES[name].example)
    return value.lower if isinstance(value, Bracket) else value


@pytest.mark.parametrize("name", [m.name for m in MEASURES.values() if m.sound.startswith("yes")])
@given(gamma=gammas(max_levels=5))
def test_sound_is_positive_unless_calibrated(name, gamma):
    gamma = gamma.round(32)[0]
    if ece(gamma) < 1e-3:
        return
    assert lower(name, gamma) > 0.0


#: for each measure that is not sound: Γ that is not calibrated, and 0 to it
BLIND = {
    "binned_ece": JointDistribution.from_levels([0.51, 0.59], [1, 1], [0.59, 0.51]),
    "binned_ce": JointDistribution.from_levels([0.51, 0.59], [1, 1], [0.59, 0.51]),
    "soft_binned_ece": None,
    "soft_binned_loss": JointDistribution.from_levels([0.5], [1], [0.51]),
    "random_interval_ce": None,
    "smooth_ece_at": None,
    "cfdl": None,
    "u_calibration": JointDistribution.from_levels([0.2, 0.8], [1, 1], [0.1, 0.9]),
    "scdl_binned": JointDistribution.from_levels([0.5], [1], [0.51]),
    "weighted_ce": JointDistribution.from_levels([0.2, 0.8], [1, 1], [0.3, 0.7]),
    "low_degree_ce": JointDistribution.from_levels(
        [0.2, 0.4, 0.6, 0.8], [1, 1, 1, 1], [0.21, 0.37, 0.63, 0.79]
    ),
}


def test_who_is_blind_to_what():
    unsound = {m.name for m in MEASURES.values() if not m.sound.startswith("yes")}
    assert set(BLIND) == unsound
    for name, gamma in BLIND.items():
        if gamma is not None:
            assert ece(gamma) > 5e-3
            assert lower(name, gamma) == pytest.approx(0.0, abs=1e-15), name
    # Of a family with a parameter, one member: another task, another width.
    off = JointDistribution.from_levels([0.6], [1], [0.7])
    assert MEASURES["cfdl"].function(off, task="v_shaped") == 0.0
    assert MEASURES["soft_binned_ece"].function(BLIND["weighted_ce"], bins=1) < 1e-15
    spread = JointDistribution.from_levels([0.5 - EPS, 0.5 + EPS], [1, 1], [1, 0])
    assert MEASURES["random_interval_ce"].function(spread, epsilon=0.5) < 0.01 < ece(spread)
    assert MEASURES["smooth_ece_at"].function(spread, sigma=0.5) < 0.01 < ece(spread)


@pytest.mark.parametrize(
    "name", [m.name for m in MEASURES.values() if m.continuous == "yes" and m.name not in ("log_loss", "nce")]
)
@given(gamma=gammas(max_levels=5), shift=st.floats(-1, 1))
def test_continuous_changes_little(name, gamma, shift):
    """By at most 50 times the move of 1e-4 (of 1/σ for smECE_σ and 2/ε for RintCE_ε, at most 20 here)."""
    moved = np.clip(gamma.predictions + EPS * shift * np.cos(40 * gamma.predictions), 0, 1)
    other = JointDistribution.from_counts(moved, gamma.counts, gamma.positives)
    if MEASURES[name].bracket:
        values = [MEASURES[name].function(g) for g in (gamma, other)]
        assert values[0].lower <= values[1].upper + 50 * EPS
        assert values[1].lower <= values[0].upper + 50 * EPS
        return
    # Of smECE, whose relation to the move is a root, only √.
    allowed = 3 * math.sqrt(EPS) if name == "smooth_ece" else 50 * EPS
    assert abs(lower(name, gamma) - lower(name, other)) <= allowed
