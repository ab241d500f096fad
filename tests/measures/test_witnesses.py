"""Witnesses prove what is so, whatever they hold: honest ones close, forged ones never anything false."""

import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import onlinecal.measures.witnesses as witnesses
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES, Bracket, explain
from onlinecal.measures.soft_binned import SoftRounding
from onlinecal.measures.witnesses import (
    BestWidth,
    Bins,
    CalibratedCoupling,
    CancelledResiduals,
    ErrorWeights,
    GridThreshold,
    IntervalPartition,
    KernelWeights,
    LevelGroups,
    LipschitzWeights,
    Moment,
    Potentials,
    RegretBound,
    ShiftedBins,
    SmoothedSigns,
    Witness,
    WorstTask,
)
from onlinecal.measures.witnesses.distances import _largest, lipschitz
from tests.marks import some_fast
from tests.oracles import exact
from tests.strategies import many_levels
from tests.witnesses import CASES, COUNTED, EVERY, FEW, Truth, case_id, ends, forged

ONE = JointDistribution.from_levels([0.875], [1.0], [0.95])

#: plain sums and means over subsets, which need none
PLAIN = {
    "ace", "atb", "binned_ce", "brier", "brier_skill", "cfdl", "e50", "e90", "ici", "log_loss", "mce", "nce", "rmsce",
    "soft_binned_ece", "soft_binned_loss", "subsampled_smooth_ce", "subsampled_step_ce", "weighted_ce",
}  # fmt: skip


def test_every_measure_has_witnesses_of_both_bounds_unless_it_is_a_plain_sum():
    assert {record.name for record, _ in EVERY if record.witness is None} == PLAIN
    gamma, found = JointDistribution.from_levels([0.2, 0.5, 0.8], [1, 1, 2], [0.4, 0.1, 0.6]), set()
    for record, options in CASES:
        why = explain(gamma, record.name, **options)
        assert why.side == "both"
        assert len(str(why).splitlines()) == 1 + len(why.witnesses)
        assert all(record.name in witness.about for witness in why.witnesses)
        found |= set(map(type, why.witnesses))
    public = {c for c in map(vars(witnesses).get, witnesses.__all__) if issubclass(c, Witness)} - {Witness}
    assert public <= found  # each is forged below
    with pytest.raises(InvalidParameter, match="'brier' has no witness"):
        explain(gamma, "brier")


#: what witnesses say in numbers of three levels, and of seven that are calibrated, in their order
SAID = [
    ("ece", {}, "1 2"), ("ece", {"order": 3.0}, "1 2 0.5"), ("binned_ece", {"bins": 4, "strategy": "quantile"}, "4 3"),
    ("interval_ce", {}, "3 0.2 0.2 0.5 0.5 0.8 0.8 0 3"), ("random_interval_ce", {"epsilon": 0.37}, "0.37"),
    ("smooth_ce", {}, "3 1 -1 0.5 -0.7 0.2 0.05"), ("earthmover_distance", {}, "3 2 -1 0.5 -0.4 0.2 0.05"),
    ("smooth_ece_at", {"sigma": 0.1}, "0.1 1"), ("distance_lower", {}, "4 0 0.2 0.5 0.8"),
    ("distance_upper", {}, "3 2 1 0 39"), ("kernel_ce", {"scale": 0.1}, "1 0.1 -0.6918 0.8 +0.2954 0.2"),
    ("cdl", {}, "2 0.5 1 0 0 1 0 0 1 1 2 0.0833333 1 2"), ("scdl_binned", {"m": 16}, "1 16 0.4375 0.5"),
    ("scdl", {}, "1 16"), ("cutoff_ce", {}, "0.5 0.8"), ("low_degree_ce", {}, "0 0"),
]  # fmt: skip
CALIBRATED = [
    ("interval_ce", {}, "7 0.1 0.1 0.2 0.2 0.3 0.3 0.4 0.4 0 7"), ("cutoff_ce", {}, ""), ("ece", {}, "0 0"),
    ("surrogate_interval_ce", {}, ""), ("distance_lower", {}, "7 0.1 0.2 0.3 0.4 0.5 0.6"), ("scdl", {}, ""),
]  # fmt: skip
OF_ONE_LEVEL = [("cutoff_ce", {}, "0.875 0.875"), ("step_ce", {}, "0 0.875"), ("ece", {}, "1 0")]


@pytest.mark.parametrize(("name", "options", "said"), SAID + CALIBRATED + OF_ONE_LEVEL)
def test_numbers_in_words(name, options, said):
    gamma = JointDistribution.from_levels([0.2, 0.5, 0.8], [1, 1, 2], [0.4, 0.1, 0.6])
    if (name, options, said) in CALIBRATED:
        gamma = JointDistribution.from_levels(np.arange(1, 8) / 10, np.ones(7), np.arange(1, 8) / 10)
    elif (name, options, said) in OF_ONE_LEVEL:
        gamma = ONE
    words = " ".join(map(str, explain(gamma, name, **options).witnesses))
    assert re.findall(r"[-+]?\d+(?:\.\d+)?", words) == said.split(), words


@pytest.mark.parametrize(("name", "options", "lower", "higher"), [
    ("cutoff_ce", {}, "fall short of", "exceed"), ("step_ce", {}, "fall short of", "exceed"),
    ("scdl_binned", {"soft": True}, "at random to", "at random to"),
    ("scdl_binned", {"soft": False}, "down to", "down to"),
    ("binned_ece", {}, "of equal width", "of equal width"),
    ("binned_ece", {"strategy": "quantile"}, "of about equal mass", "of about equal mass"),
    ("smooth_ece", {}, "in the prediction", "in the prediction"),
    ("smooth_ece", {"transform": "logit"}, "in the log odds", "in the log odds"),
    ("earthmover_distance", {}, "2-Lipschitz in the identity metric", "2-Lipschitz in the identity metric"),
    ("smooth_ce", {"metric": "logit"}, "1-Lipschitz in the logit metric", "1-Lipschitz in the logit metric"),
    ("smooth_ce", {"metric": np.sqrt}, "in the given metric", "in the given metric"),
    ("kernel_ce", {"kernel": "polynomial", "degree": 3}, "polynomial kernel of degree 3", "polynomial kernel of"),
    ("kernel_ce", {"kernel": "gaussian"}, "gaussian kernel of scale 1", "gaussian kernel of scale 1"),
    ("cdl", {}, "more swap regret than cdl/2 ", "more swap regret than cdl/2 "),
    ("u_calibration", {}, "external regret than u_calibration/2", "external regret than u_calibration/2"),
    ("v_cdl", {}, r"more than v_cdl max\(t, 1 − t\)", r"more than v_cdl max\(t, 1 − t\)"),
])  # fmt: skip
def test_words_of_what_is_lower_and_of_what_is_higher_than_forecast(name, options, lower, higher):
    for mean, words in ((0.25, lower), (0.875, higher)):
        gamma = JointDistribution.from_levels([0.5, 0.625], [1.0, 1.0], [mean, mean])
        assert re.search(words, str(explain(gamma, name, **options)))


def spaced(n):
    return np.arange(1, n + 1) / 1024


def spiked(n):
    """Weights that are their coefficients, the largest at the second level and the next one at the third."""
    coefficients = np.zeros(n)
    coefficients[:3] = -1.0, 10.0, 5.0
    return KernelWeights(spaced(n), coefficients, "laplace", 1e-6)


def payoffs(n):
    return tuple((1.0 - j / n, j / n) for j in range(n + 1))


@pytest.mark.parametrize(
    ("witness", "said"),
    [
        (IntervalPartition(tuple((x, x) for x in (0.1, 0.2, 0.3, 0.4))), r"0\.4\]\)"),
        (IntervalPartition(tuple((x, x) for x in (0.1, 0.2, 0.3, 0.4, 0.5))), r"0\.4\], …\), the widest 0$"),
        (CalibratedCoupling(spaced(6), np.ones(6), np.zeros(6), np.zeros(6)), r"0\.005859\)"),
        (CalibratedCoupling(spaced(7), np.ones(7), np.zeros(7), np.zeros(7)), r"0\.005859, …\)"),
        (CalibratedCoupling(np.arange(2), np.array([1.0, 1e-12]), np.zeros(2), np.zeros(2)), "to 1 calibrated"),
        (spiked(511), r"-1 at v = 0\.0009766 and \+10 at v = 0\.001953$"), (spiked(512), r"\+5 at v = 0\.00293$"),
        (RegretBound(0.25, "cdl"), r"cdl/2 \+ 0\.25 \(t"), (RegretBound(-0.25, "cdl"), r"cdl/2 − 0\.25 \(t"),
        (WorstTask((), ((1.0, 0.0),), "swap"), "no task regrets anything"),
        (WorstTask((0.5,), payoffs(1), "swap"), "2 actions by swap regret: from 'low' to 'high' at v = 0.5; "),
        (WorstTask((0.2, 0.5), payoffs(2), "external"), "to 'middle' at v = 0.2 and to 'high' at v = 0.5; "),
        (WorstTask((0.2, 0.5, 0.8), payoffs(3), "swap"), "from 'action 1' to 'action 2' .* to 'action 4' at v = 0.8; "),
        (LevelGroups(np.array([0])), "^1 level in 1 group, each"),
        (LevelGroups(np.array([0, 0, 7])), "^3 levels in 2 groups, each"),
        (BestWidth(None), "each holds one level"), (BestWidth(3), r"width 2\^-3, averaged"),
        (CancelledResiduals(np.array([0.25, -0.5])), "identity metric; up to the last level 1 is left uncancelled"),
        (SmoothedSigns(0.5, np.zeros(3), "logit", "smooth_ece"), "in the log odds by σ = 0.5; changes of sign: 3$"),
        (SoftRounding(4), "multiple of 1/4, then"), (SoftRounding(None), "to the prediction itself"),
    ],
)  # fmt: skip
def test_what_they_show_and_leave_out(witness, said):
    assert re.search(said, str(witness)), str(witness)


@pytest.mark.parametrize(("name", "options", "lines"), [
    ("ece", {}, ["ece = 0.5", "lower and upper bound: "]),
    ("smooth_ce", {}, ["smooth_ce = 0.05", "lower bound: ", "upper bound: "]),
    ("interval_ce_bracket", {"blocks": 1}, ["interval_ce_bracket in [0.05, 0.2]", "upper bound: ", "lower bound: "]),
])  # fmt: skip
def test_an_explanation_in_words(name, options, lines):
    gamma = JointDistribution.from_levels([0.4, 0.6], [1, 1], [0.9, 0.1])
    said = str(explain(gamma, name, **options)).splitlines()
    assert all(line.startswith(first) for line, first in zip(said, lines, strict=True)), said


def test_masses_that_floats_hardly_hold_count_for_nothing_below_and_for_more_above():
    for mass, counted in ((0.9e-290, 1e-290), (1.5e-290, 1.5e-290)):
        gamma = JointDistribution.from_levels([0.25, 0.5], [1.0, mass], [0.25, 1.0])
        found = ErrorWeights(gamma.predictions, np.array([0.0, 1.0]), 2.0).bound(gamma)
        assert found.upper == pytest.approx(0.5 * math.sqrt(counted), rel=1e-9, abs=0.0)
        assert found.lower == pytest.approx(
            0.0 if mass < counted else 0.5 * math.sqrt(counted), rel=1e-9, abs=0.0
        )


def open_gap(record, options, value, gamma):
    """The gap allowed between the two bounds beyond 1e-9: what cannot be proved, or not in less time than found.

    For SmoothECE it is the error that the measure states, and the mesh error of the proof.
    """
    low, high = ends(value)
    if record.name == "distance_upper" or options.get("width") == "max":
        return 1.0
    if record.name == "smooth_ece_at":
        return 1e-7
    if record.name == "smooth_ece":
        return 1e-4 if value < 5e-4 else 1.2e-5 if "transform" in options else 1.2e-6
    return high - low


@pytest.mark.parametrize(("record", "options"), CASES, ids=case_id)
@given(gamma=FEW)
def test_honest_witnesses_prove_the_value_from_both_sides(record, options, gamma):
    why = explain(gamma, record.name, **options)
    proved = why.verify()  # raises where the value lies outside
    assert proved.width <= 1e-9 + open_gap(record, options, why.value, gamma)
    # Also where the other bound is far: what attains the value proves it.
    assert record.name.startswith("smooth_ece") or proved.upper <= ends(why.value)[1] + 1e-9 + why.within
    assert (why.lower, why.upper) == (proved.lower, proved.upper)


@pytest.mark.parametrize(("record", "options"), CASES, ids=case_id)
def test_honest_witnesses_at_many_levels(record, options, seed):
    """Of one outcome each, and of means in between."""
    gamma = many_levels(seed, 3000, 0.1)
    means = np.where(np.arange(3000) % 2, gamma.means, np.random.default_rng([seed, 1]).random(3000))
    gamma = JointDistribution.from_levels(gamma.predictions, np.ones(3000), means)
    why = explain(gamma, record.name, **options)
    assert why.verify().width <= 1e-9 + open_gap(record, options, why.value, gamma)


ROUNDING = Fraction(5e-15)
SOME = JointDistribution.from_samples([0.5], [1])
#: measures without rounding, for some options
EXACT = [
    ("ece", {}, exact.ece), ("ece", {"order": 3.0}, lambda g: exact.ece_of_order(g, 3.0)),
    ("ece", {"order": math.inf}, lambda g: exact.ece_of_order(g, math.inf)),
    ("binned_ece", {"bins": 10}, lambda g: exact.binned_ece(g, 10, False)),
    ("binned_ece_width", {"bins": 3}, lambda g: exact.binned_ece(g, 3, True)),
    ("cutoff_ce", {}, exact.cutoff_ce), ("step_ce", {}, exact.step_ce),
    ("low_degree_ce", {"degree": 3}, lambda g: exact.low_degree_ce(g, 3)),
    *(("interval_ce", {"width": w}, lambda g, w=w: exact.interval_ce(g, w)) for w in ("mean", "max")),
    ("interval_ce_bracket", {"blocks": 2}, lambda g: exact.interval_ce(g, "mean")),
    *(
        ("random_interval_ce", {"epsilon": x}, lambda g, x=x: exact.random_interval_ce(g, Fraction(x)))
        for x in (0.1, 1e-14)
    ),
    ("surrogate_interval_ce", {}, exact.surrogate_interval_ce), ("smooth_ce", {}, exact.smooth_ce),
    ("smooth_ce", {"metric": "logit"}, exact.smooth_ce_in_log_odds),
    *(
        ("kernel_ce", {"kernel": kernel, "scale": scale}, lambda g, k=kernel, s=scale: exact.kernel_ce(g, k, s))
        for kernel, scale in (
            ("laplace", 1.0), ("laplace", 1e-3), ("gaussian", 1.0), ("gaussian", 0.03), ("gaussian", 0.01)
        )
    ),
    ("cdl", {}, exact.cdl), ("v_cdl", {}, exact.v_cdl), ("u_calibration", {}, exact.u_calibration),
    *(("scdl_binned", {"m": m}, lambda g, m=m: exact.scdl_binned(g, m)) for m in (16, 3 * 2**40)),
    ("scdl", {}, exact.scdl), ("distance_upper", {}, exact.distance_upper),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options", "so"), EXACT, ids=[f"{name} {options}" for name, options, _ in EXACT]
)
@given(gamma=FEW, counts=COUNTED)
@example(gamma=SOME, counts=JointDistribution.from_counts([0.783292570068552], [53], [42]))
@example(gamma=SOME, counts=JointDistribution.from_counts([0.1, 0.3], [10, 10], [1, 3]))
def test_rounding_is_within_what_the_witnesses_state(name, options, so, gamma, counts):
    """The exact value lies between the bounds, up to rounding, and is the measure's.

    A mean of counts is rounded when Γ is made. That of the counts lies between the bounds all the same.
    """
    rounding = 3 * ROUNDING if name == "kernel_ce" else ROUNDING
    why, exactly = explain(gamma, name, **options), so(gamma)
    proved = why.verify()
    assert Fraction(proved.lower) - rounding <= exactly <= Fraction(proved.upper) + rounding
    low, high = ends(why.value)
    assert low == high or "blocks" in options
    assert low - 1e-9 - why.within <= exactly <= high + 1e-9 + why.within
    proved = explain(counts, name, **options).verify()
    assert (
        Fraction(proved.lower) - rounding <= so(exact.of_counts(counts)) <= Fraction(proved.upper) + rounding
    )


@given(st.floats(0.0, 1.0), st.integers(1, 9), st.sampled_from([3 * 2**40, 10**12 + 39, 2**50 - 27]))
def test_shares_of_a_fine_grid_are_not_rounded(v, apart, m):
    """The share v m − ⌊v m⌋ is exact where a quotient j/m would lose m units of it."""
    both = sorted({v, v + apart * 1e-16 if v < 0.5 else v - apart * 1.2e-16})
    gamma = JointDistribution.from_levels(both, [1.0] * len(both), [0.0, 1.0][: len(both)])
    expected = float(exact.scdl_binned(gamma, m))
    assert MEASURES["scdl_binned"].function(gamma, m=m) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(("record", "options"), some_fast(4, CASES), ids=case_id)
@given(data=st.data(), gamma=FEW, other=FEW)
def test_a_forged_witness_never_proves_what_is_false(record, options, data, gamma, other):
    """Nor does that of another Γ."""
    truth = Truth(gamma)
    for witness in explain(gamma, record.name, **options).witnesses:
        for _ in range(2):
            truth.check(data.draw(forged(witness)))
    for witness in explain(other, record.name, **options).witnesses:
        truth.check(witness)
    for said in truth.refusals:
        assert "expected" in said


TWO = JointDistribution.from_samples([0.4, 0.6], [1, 0])


@pytest.mark.parametrize(
    ("witness", "gamma", "says"),
    [
        (WorstTask((0.5,), ((1.0, 0.0),), "swap"), ONE, "1 actions and 1 kinks"),
        (WorstTask((math.nan,), ((1.0, 0.0), (0.0, 1.0)), "swap"), ONE, "kinks, of length"),
        (LevelGroups(np.array([0.0])), TWO, "of length 1; expected 2"),
        (LipschitzWeights(TWO.predictions, np.array([1.0])), TWO, "of length 1; expected 2"),
        (CalibratedCoupling([0.0, 1.0], [-0.5, 0.0], np.zeros(2), np.zeros(2)), TWO, "no mass arrives"),
        (RegretBound(1e9, "cdl"), TWO, r"slope = 1000000000.0; expected a number in \[-10, 10\]"),
        (CalibratedCoupling([0.5, 0.4], [0.0, 1.0], np.zeros(2), np.zeros(2)), TWO, "ascending values"),
        (CalibratedCoupling([0.4, 0.6], [0.0, -1.0], np.zeros(2), np.zeros(2)), TWO, "no mass arrives"),
        *(
            (
                Potentials(nodes, np.zeros(len(nodes)), np.zeros(len(nodes))),
                TWO,
                "expected a grid of predictions",
            )
            for nodes in ([-5e-324, 1.0], [0.0, 1.0 + 2.0**-52], [0.5, 0.5], [0.0, 0.75, 0.5], [])
        ),
        (SoftRounding(3), TWO, "a power of two"),
        (SoftRounding(None), TWO, "not calibrated"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, Witness) else None,
)
def test_what_proves_nothing_is_refused_by_name(witness, gamma, says):
    with pytest.raises((InvalidData, InvalidParameter), match=says):
        witness.bound(gamma)


@pytest.mark.parametrize(("strategy", "v", "counts", "m", "inside"), [
    ("width", [0.0, 0.5, 1.0], [1, 1, 1], 2, [0, 1, 1]), ("width", [0.25, 0.75], [1, 1], 4, [1, 3]),
    ("width", [0.3, 1.0], [1, 1], 1, [0, 0]),
    # The middle of each level as a share of 4 rounds: 1/8, 4/8, 7/8; and edges that are whole numbers of rounds.
    ("quantile", [0.1, 0.2, 0.3], [1, 2, 1], 2, [0, 1, 1]), ("quantile", [0.1, 0.2, 0.3], [1, 2, 1], 8, [1, 4, 7]),
    ("quantile", [0.1, 0.2, 0.3], [1, 2, 1], 3, [0, 1, 2]),
])  # fmt: skip
def test_a_level_is_in_its_bin_and_in_no_other(strategy, v, counts, m, inside):
    gamma = JointDistribution.from_levels(v, counts, np.full(len(v), 0.5))
    assert Bins(np.array(inside), m, strategy, "binned_ece").bound(gamma) >= 0.0
    for i in range(len(v)):
        for other in {*range(-1, m + 2), inside[i] + 0.5, inside[i] - 0.5} - {inside[i]}:
            number = np.array(inside, dtype=float)
            number[i] = other
            with pytest.raises(InvalidData, match=f"level {v[i]} is not in bin"):
                Bins(number, m, strategy, "binned_ece").bound(gamma)


NONE = np.zeros(0)
#: of a number, a witness with it; the ends of its range; and the numbers next to them
RANGES = {
    "order": (lambda x: ErrorWeights(ONE.predictions, np.ones(1), x), (1.0, math.inf), (math.nextafter(1.0, 0.0),)),
    "Moment: order": (lambda x: Moment(x, 3), (0, 3), (-1, 4)),
    "Moment: degree": (lambda x: Moment(0, x), (0, 1000), (-1, 1001)),
    "Bins: bins": (lambda x: Bins(np.array([7 * x // 8]), x, "width", "binned_ece"), (1, 2**53), (0, 2**53 + 1)),
    "epsilon": (ShiftedBins, (5e-324, 1e308), (0.0, math.nextafter(1e308, math.inf))),
    "exponent": (BestWidth, (0, 1074, None), (-1, 1075)),
    "scale": (lambda x: KernelWeights(ONE.predictions, np.ones(1), "laplace", x), (1e-290, 1e290), (9.9e-291, 1.1e290)),
    "KernelWeights: degree": (
        lambda x: KernelWeights(ONE.predictions, np.ones(1), "polynomial", degree=x), (0, 1000), (-1, 1001),
    ),
    "sigma": (
        lambda x: SmoothedSigns(x, NONE, "identity", "smooth_ece_at"), (0.0, 1e-9, 10.0),
        (-1e-9, math.nextafter(1e-9, 0.0), math.nextafter(10.0, 11.0)),
    ),
    "slope": (
        lambda x: RegretBound(x, "cdl"), (-10.0, 10.0), (math.nextafter(-10.0, -11.0), math.nextafter(10.0, 11.0)),
    ),
    "threshold": (lambda x: GridThreshold(x, 4, True), (1, 4), (0, 5)),
    "GridThreshold: m": (lambda x: GridThreshold(1, x, True), (1, 2**50), (0, 2**50 + 1)),
    "bins = ": (SoftRounding, (1, 2**50), ()),
}  # fmt: skip


@pytest.mark.parametrize(("said", "found"), RANGES.items(), ids=list(RANGES))
def test_the_ends_of_a_range_are_taken_and_nothing_beyond(said, found):
    make, taken, refused = found
    for value in taken:
        assert ends(make(value).bound(ONE))[0] >= 0.0
    for value in refused:
        with pytest.raises(InvalidParameter, match=said):
            make(value).bound(ONE)


def test_potentials_are_the_largest_that_are_lipschitz_and_their_largest_sum_is_that_of_a_fine_grid(seed):
    """With slope 2 at most, a, b and their mixture move by less than 4 from a point of [0, 1] to the next."""
    rng = np.random.default_rng([seed, 3])
    for k in (1, 2, 5, 9) * 10:
        v, values = np.unique(rng.random(k)), rng.normal(0.0, 0.3, (2, k))
        a, b = (lipschitz(v, each) for each in values)
        apart = np.abs(v[:, None] - v)
        brute = np.array([(each + apart).min(axis=1) for each in values])
        assert np.array([a, b]) == pytest.approx(brute, abs=1e-14)
        u = np.linspace(0.0, 1.0, 2001)
        one, zero = ((each - np.abs(u[:, None] - v)).max(axis=1) for each in (a, b))
        most = (u * one + (1.0 - u) * zero).max()
        assert most - 1e-14 <= _largest(v, a, b) <= most + 4.0 / 4000


class TrustedTask(WorstTask):
    """Takes the kinks as they are given, and the payoffs too."""

    def bound(self, gamma):
        table = np.array(self.payoffs)
        earned = np.outer(1.0 - gamma.means, table[:, 0]) + np.outer(gamma.means, table[:, 1])
        chosen = np.searchsorted(self.kinks, gamma.predictions)
        got = earned[np.arange(gamma.levels), chosen]
        return float(gamma.mass @ (earned.max(axis=1) - got))


@pytest.mark.parametrize("most", [1.0, 100.0])
def test_a_witness_that_believes_what_it_is_given_is_found_out(most):
    """Controls of `Truth.check`, with the flaws that it is there to find."""
    with pytest.raises(AssertionError, match="'proves'"):
        Truth(ONE).check(TrustedTask((0.9,), ((most, 0.0), (0.0, most)), "swap"))


def test_an_explanation_holds_only_for_its_own_measure_options_and_value():
    why = explain(JointDistribution.from_levels([0.2, 0.8], [0.5, 0.5], [0.4, 0.6]), "cdl")
    mean, smooth = explain(why.gamma, "interval_ce"), explain(why.gamma, "smooth_ce")
    assert why.verify().width < 1e-14
    assert (why.side, replace(why, witnesses=why.witnesses[:1]).side) == ("both", "lower")
    for false, said in (
        *((replace(why, value=value), "lies outside of") for value in (0.3, math.nan, Bracket(0.0, 0.1))),
        (replace(why, name="v_cdl"), "expected one about 'v_cdl'"),  # a task of two kinks says nothing of one
        (replace(mean, options={**mean.options, "width": "max"}), "'width': 'max'"),
        (replace(smooth, gamma=ONE), "of length 2; expected 1"),
    ):
        with pytest.raises((InvalidData, InvalidParameter), match=said):
            false.verify()
    assert replace(why, witnesses=()).verify() == Bracket(0.0, math.inf)
    for off in (9e-10, -9e-10):
        assert replace(why, value=why.value + off).verify() == why.verify()
        assert replace(why, value=why.value + 0.1 + off, within=0.1).verify() == why.verify()
    for off in (1.1e-9, -1.1e-9):
        with pytest.raises(InvalidData, match="lies outside of"):
            replace(why, value=why.value + off).verify()
    assert [x in Bracket(0.25, 0.5) for x in (0.25, 0.5, 0.2, 0.6)] == [True, True, False, False]
    assert Bracket(0.25, 0.75).width == 0.5


RISING = np.linspace(0.4, 0.6, 1001)
#: residuals at both ends alone
STEEP = JointDistribution.from_levels(RISING, np.ones(1001), np.r_[0.0, RISING[1:-1], 1.0])


@pytest.mark.parametrize(
    ("name", "gamma", "missing"),
    [
        ("smooth_ce", STEEP, lambda low: replace(low, weights=(RISING - 0.5) + 1e-6 * np.arange(1001))),
        ("smooth_ce", ONE, lambda low: replace(low, weights=2.0 * low.weights)),
        ("interval_ce", many_levels(0, 50), lambda low: replace(low, costs=low.costs + 1e-6)),
        ("distance_lower", TWO, lambda both: replace(both, ones=both.ones + 0.1, zeros=1e9 * both.zeros)),
        ("cdl", ONE, lambda task: replace(task, payoffs=((100.0, 0.0), (0.0, 100.0)))),
    ],
)
def test_more_than_is_allowed_proves_no_more(name, gamma, missing):
    low = next(w for w in explain(gamma, name).witnesses if w.side != "upper")
    assert ends(missing(low).bound(gamma))[0] <= ends(MEASURES[name].function(gamma))[0] + 1e-9
