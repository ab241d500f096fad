"""Brackets of a measure from a Γ whose predictions were moved by a known mean distance."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES, Modulus, bracket_of_moved
from tests.gammas_metric import ANY
from tests.measures.test_max_levels import CASES, LIMITED, ends
from tests.strategies import gammas

levels = JointDistribution.from_levels


def truth(name, gamma, options):
    """The ends between which the value certainly is."""
    record = MEASURES[name]
    low, high = ends(record.function(gamma, **options))
    within = record.within(gamma, **options) if record.within is not None else 0.0
    return low - within, high + within


@st.composite
def moves(draw):
    """A Γ, the same with each level moved anywhere, near or far, and the mean distance."""
    gamma = draw(st.one_of(ANY, gammas(max_levels=12)))
    size = draw(st.sampled_from([0.0, 1e-9, 1e-4, 0.01, 0.1, 1.0]))
    steps = draw(st.lists(st.floats(-size, size), min_size=gamma.levels, max_size=gamma.levels))
    after = np.clip(gamma.predictions + np.array(steps), 0.0, 1.0)
    moved = float(gamma.mass @ np.abs(after - gamma.predictions))
    order = np.argsort(after, kind="stable")
    parts = after[order], gamma.counts[order], gamma.positives[order], gamma.means[order]
    return gamma, JointDistribution.from_sorted_levels(*parts), min(moved, 1.0)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@given(case=moves())
def test_the_bracket_holds_the_value_before_the_move(name, options, case):
    before, after, moved = case
    if MEASURES[name].modulus is None:
        with pytest.raises(InvalidParameter, match=f"{name}.*nothing is proved"):
            bracket_of_moved(after, moved, name, **options)
        return
    bracket = bracket_of_moved(after, moved, name, **options)
    low, high = truth(name, before, options)
    assert bracket.lower <= high + 1e-9
    assert bracket.upper >= low - 1e-9
    assert MEASURES[name].least <= bracket.lower <= bracket.upper <= MEASURES[name].largest
    # However few levels it is evaluated on.
    fewer = bracket_of_moved(after, moved, name, max_levels=3, **options)
    assert fewer.lower <= high + 1e-9
    assert fewer.upper >= low - 1e-9


def test_rounding_gives_what_is_needed():
    gamma = JointDistribution.from_samples([0.31, 0.29, 0.52], [0, 1, 1])
    bracket = bracket_of_moved(*gamma.round(10), "smooth_ce")
    assert MEASURES["smooth_ce"].function(gamma) in bracket
    assert bracket_of_moved(*gamma.round(2**50), "smooth_ce").width < 1e-11


N = 1e-3
ENDS = levels([0.0, 1 - N], [1, 1], [1, 0]), levels([N / 10, 1 - N], [1, 1], [1, 0]), N / 20
GRID = levels([1 / 64, 2 / 64], [1, 9], [1, 0]), levels([1 / 64 + N, 2 / 64], [1, 9], [1, 0]), N / 10
MEET = levels([0.5 - N, 0.5 + N], [1, 1], [1, 0]), levels([0.5], [1], [0.5]), N
CROSS = levels([0.5 - N, 0.5 + N], [1, 1], [0, 1]), levels([0.5], [1], [0.5]), N
#: options, (Γ before and after, their distance), and the share of the modulus by which the value at least differs
TIGHT = {
    "smooth_ce": ({}, ENDS, 0.99),
    "earthmover_distance": ({}, ENDS, 0.49),
    # Of the subsets with the first round alone or with both, each a quarter, the first move half as much as the second.
    "subsampled_smooth_ce": ({}, ENDS, 0.74),
    "distance_lower": ({}, (levels([0.3], [1], [0.5]), levels([0.2], [1], [0.5]), 0.1), 0.999),
    "brier": ({}, (levels([0.0], [1], [1]), levels([N], [1], [1]), N), 0.99),
    "atb": ({}, (levels([0.0], [1], [1]), levels([N], [1], [1]), N), 0.49),
    "weighted_ce": ({}, (levels([0.3], [1], [1]), levels([0.2], [1], [1]), 0.1), 0.999),
    "low_degree_ce": (
        {"degree": 1}, (levels([0.0, 1.0], [1, 1], [1, 0]), levels([0.0, 1 - N], [1, 1], [1, 0]), N / 2), 0.99
    ),
    # A heavy level with a small residual against a light one with a large.
    "random_interval_ce": (
        {"epsilon": 0.01},
        (levels([0.0, 0.002], [1, 500], [1, 0]), levels([0.001, 0.002], [1, 500], [1, 0]), 0.001 / 501), 0.9,
    ),
    "scdl_binned": ({"m": 64}, GRID, 0.97),
    "soft_binned_loss": ({"m": 64, "threshold": 2}, GRID, 0.97),
    # Residuals of one sign in each of two bins, and a light level that moves from one to the other.
    "soft_binned_ece": (
        {"bins": 2, "temperature": 0.3, "order": 1.0},
        (levels([0.25, 0.94], [3, 1], [1, 0]), levels([0.25, 0.94 + N], [3, 1], [1, 0]), N / 4), 0.35,
    ),
    # The rest are of the order √δ: of two outcomes on either side of 1/2, and of both at 1/2.
    "surrogate_interval_ce": ({}, MEET, 0.4),
    "kernel_ce": ({}, MEET, 0.3),
    "smooth_ece": ({}, MEET, 0.6),
    "scdl": ({}, CROSS, 0.2),
    "smooth_ece_at": ({"sigma": 0.1}, MEET, 0.4),
}  # fmt: skip


def test_every_modulus_has_its_example():
    assert set(TIGHT) == {name for name, record in MEASURES.items() if record.modulus is not None}
    assert set(TIGHT) == set(LIMITED) - {"interval_ce"}
    for name in TIGHT:
        assert "δ" in MEASURES[name].modulus.formula
        assert MEASURES[name].modulus.source


@pytest.mark.parametrize("name", TIGHT)
def test_the_modulus_is_needed(name, monkeypatch):
    """A smaller one would give a bracket without the value: the share is how much of it these examples need."""
    options, (before, after, moved), share = TIGHT[name]
    value = truth(name, before, options)
    bracket = bracket_of_moved(after, moved, name, **options)
    assert bracket.lower <= value[1] + 1e-12
    assert bracket.upper >= value[0] - 1e-12
    right = MEASURES[name].modulus
    wrong = Modulus("", "", lambda moved, **options: share * right(moved, **options))
    missed = replace(MEASURES[name], modulus=wrong).bind_moved(**options)(after, moved)
    assert missed.upper < value[0] or missed.lower > value[1]


@pytest.mark.parametrize(("name", "options"), [case for case in CASES if case[0] != "interval_ce"], ids=str)
@given(moved=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_a_modulus_vanishes_at_0_and_does_not_decrease(name, options, moved):
    modulus = MEASURES[name].modulus
    assert modulus(0.0, **options) == 0.0
    assert modulus(min(moved), **options) <= modulus(max(moved), **options)


def halves(apart, left, right):
    """Two outcomes, of `left` just below 1/2 and of `right` just above; at one point where nothing is between them."""
    if apart == 0.0:
        return levels([0.5], [1], [(left + right) / 2])
    return levels([0.5 - apart, 0.5 + apart], [1, 1], [left, right])


def crossed(apart):
    """Residuals −, then + at 1/2, then −: which of those at 1/2 are on which side decides how they can be grouped."""
    return levels([0.4, 0.5 - apart, 0.5 + apart, 0.6], [1, 1, 1, 1], [0.0, 0.9, 0.1, 1.0])


def uncrossed(apart):
    return levels([0.4, 0.5 - apart, 0.5 + apart, 0.6], [1, 1, 1, 1], [0.0, 0.1, 0.9, 1.0])


def fair(apart):
    """A fair coin at 1/4 and at 3/4, or its outcomes apart, so that some can be grouped with those at the other."""
    if apart == 0.0:
        return levels([0.25, 0.75], [6, 6], [0.5, 0.5])
    v = [0.25, 0.25 + apart, 0.25 + 2 * apart]
    return levels(v + [1 - x for x in v[::-1]], [3, 1, 2, 2, 1, 3], [0, 1, 1, 0, 0, 1])


def parted(h):
    return halves(h, 1, 0), halves(0.0, 1, 0)


def swapped(h):
    return halves(h, 1, 0), halves(h, 0, 1)


#: of every other measure two Γ as close as you like between which it jumps, and by how much
JUMPS = {
    "ece": ({}, parted, 0.49),
    "binned_ece": ({"bins": 2}, parted, 0.49),
    "binned_ece_width": ({"bins": 2}, parted, 0.49),
    "binned_ce": ({"bins": 2}, parted, 0.49),
    "interval_ce": ({}, lambda h: (crossed(h), uncrossed(h)), 0.05),
    "interval_ce_bracket": ({}, lambda h: (crossed(h), uncrossed(h)), 0.05),
    "distance_upper": ({}, lambda h: (fair(h), fair(0.0)), 0.08),
    "cutoff_ce": ({}, parted, 0.24),
    "step_ce": ({}, parted, 0.24),
    # Of two rounds at ½ or just beside it: where both are drawn, the first is repaired or not.
    "subsampled_step_ce": ({}, lambda h: (halves(h, 1, 0), levels([0.5], [2], [0.5])), 0.06),
    **{name: ({}, swapped, 0.4) for name in ("cdl", "v_cdl", "u_calibration")},
    "cfdl": ({"task": "v_shaped"}, swapped, 0.4),
    "log_loss": ({}, lambda h: (levels([h], [1], [1]), levels([h * h], [1], [1])), 0.6),
    "nce": ({}, lambda h: tuple(levels([x, 1 - h], [1, 1], [1, 0]) for x in (h, h * h)), 0.4),
}


def test_every_measure_has_a_modulus_or_jumps():
    assert set(JUMPS) == set(MEASURES) - set(TIGHT)


@pytest.mark.parametrize("name", JUMPS)
def test_measures_without_a_modulus_jump(name):
    options, pair, gap = JUMPS[name]
    for apart in (1e-2, 1e-4, 1e-6, 1e-8):
        one, other = (ends(MEASURES[name].function(gamma, **options)) for gamma in pair(apart))
        assert max(one[0] - other[1], other[0] - one[1]) > gap * (1 - 4 * apart) - 2 * apart
    with pytest.raises(InvalidParameter, match=f"{name}.*nothing is proved.*smooth_ce"):
        bracket_of_moved(one_level(), 0.0, name, **options)


def one_level():
    return levels([0.5], [1], [0.5])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("smooth_ce", {"metric": "logit"}),
        ("smooth_ece", {"transform": "logit"}),
        ("smooth_ece_at", {"sigma": 0.1, "transform": "logit"}),
        ("scdl_binned", {"soft": False}),
        ("soft_binned_loss", {"m": 3, "threshold": 2, "soft": False}),
        ("soft_binned_ece", {"order": np.inf}),
        ("weighted_ce", {"weights": np.sign}),
    ],
)
def test_options_for_which_nothing_is_proved_are_refused(name, options):
    with pytest.raises(InvalidParameter, match=rf"{name}: moved predictions with .*expected"):
        bracket_of_moved(one_level(), 0.1, name, **options)
    with pytest.raises(InvalidParameter, match=name):
        MEASURES[name].bind(max_levels=5, **options)


@pytest.mark.parametrize("moved", [-0.1, 1.1, float("nan"), "far", None])
def test_what_is_no_distance_is_refused(moved):
    with pytest.raises(InvalidParameter, match="moved"):
        bracket_of_moved(one_level(), moved, "smooth_ce")
    with pytest.raises(UnknownName, match="smooth_ce"):
        bracket_of_moved(one_level(), 0.1, "smoth_ce")
    with pytest.raises(InvalidParameter, match="degre"):
        bracket_of_moved(one_level(), 0.1, "low_degree_ce", degre=3)
