"""Witnesses prove what is so, whatever they hold: honest ones close, forged ones never anything false."""

import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import onlinecal.measures.witnesses as witnesses
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.decisions.tasks import swap_regret
from onlinecal.measures import MEASURES, Bracket, cdl, explain, scdl
from onlinecal.measures.distance_lower import distance_lower
from onlinecal.measures.soft_binned import SoftRounding
from onlinecal.measures.witnesses import (
    CalibratedCoupling,
    ErrorWeights,
    Interval,
    IntervalPartition,
    KernelWeights,
    LevelGroups,
    LipschitzWeights,
    Potentials,
    PrefixSums,
    RegretBound,
    ShiftedBins,
    Witness,
    WorstTask,
)
from tests.marks import some_fast
from tests.oracles import exact
from tests.strategies import many_levels
from tests.witnesses import CASES, COUNTED, FEW, Truth, case_id, ends, forged

#: measure → a word of the text of its witness; plain sums and means over subsets have none
IN_WORDS = {
    "smooth_ce": "1-Lipschitz", "interval_ce": "intervals", "distance_lower": "moved to", "distance_upper": "groups",
    "cdl": "pays", "v_cdl": "pays", "u_calibration": "pays", "earthmover_distance": "2-Lipschitz",
    "cutoff_ce": "outcomes", "step_ce": "outcomes", "kernel_ce": "norm 1", "scdl": "best-respond",
    "scdl_binned": "rounded", "ece": "outcomes", "binned_ece": "hold levels", "binned_ece_width": "hold levels",
    "interval_ce_bracket": "intervals", "random_interval_ce": "shifts", "surrogate_interval_ce": "bins",
    "smooth_ece": "smoothed", "smooth_ece_at": "smoothed", "low_degree_ce": "moment",
}  # fmt: skip


def test_every_measure_has_witnesses_of_both_bounds_unless_it_is_a_plain_sum():
    assert {record.name for record, _ in CASES} == set(IN_WORDS)
    gamma, found = JointDistribution.from_levels([0.2, 0.5, 0.8], [1, 1, 2], [0.4, 0.1, 0.6]), set()
    for record, options in CASES:
        why = explain(gamma, record.name, **options)
        assert why.side == "both"
        sides = [line.partition(":")[0] for line in str(why).splitlines()[1:]]
        assert sorted(sides) in (["lower and upper bound"], ["lower bound", "upper bound"])
        assert str(why).startswith(record.name)
        assert IN_WORDS[record.name] in str(why)
        for witness in why.witnesses:
            assert record.name in witness.about
            found.add(type(witness))
    public = {c for c in map(vars(witnesses).get, witnesses.__all__) if issubclass(c, Witness)} - {Witness}
    assert public <= found  # each is forged below
    with pytest.raises(InvalidParameter, match="'brier' has no witness"):
        explain(gamma, "brier")


def test_a_task_of_many_actions_has_words_and_a_regret():
    """Its regret is at most that of the worst task."""
    task = WorstTask((0.2, 0.5, 0.7), ((0.9, 0.0), (0.84, 0.24), (0.64, 0.44), (0.5, 0.5)), "swap")
    gamma = many_levels(0, 20)
    assert 0.0 < task.bound(gamma) <= cdl(gamma)
    assert "task of 4 actions" in str(task)
    assert "'action 4' pays 0.5 if y = 0" in str(task)
    assert swap_regret(gamma, task.task) == pytest.approx(task.bound(gamma), abs=1e-12)


def test_no_witness_knows_a_measure():
    """Not even by import: what proves a value has nothing from what found it."""
    for file in Path(witnesses.__file__).parent.glob("*.py"):
        assert not re.search(
            r"^ *(from|import) onlinecal\.measures(?!\.witnesses)", file.read_text(), re.M
        ), file


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
    assert low - 1e-9 - why.within <= exactly <= high + 1e-9 + why.within
    proved = explain(counts, name, **options).verify()
    assert (
        Fraction(proved.lower) - rounding <= so(exact.of_counts(counts)) <= Fraction(proved.upper) + rounding
    )


def test_a_calibrated_game_leaves_no_room():
    gamma = JointDistribution.from_counts([0.25, 0.5], [4, 1000], [1, 500])
    for name in ("ece", "step_ce", "smooth_ce", "cdl", "scdl"):
        assert explain(gamma, name).verify() == Bracket(0.0, 0.0)


@pytest.mark.parametrize(("p", "q"), [(5e-324, 0.0), (0.5, 0.5 + 2.0**-53), (0.0, 2.0**-52)])
def test_grids_beyond_the_finest_count_below(p, q):
    """SCDL is 2^−50 where no grid up to 2^50 loses as much; the minimum over all powers of two is less."""
    gamma = JointDistribution.from_levels([p], [1.0], [q])
    proved = explain(gamma, "scdl").verify()
    assert proved.lower <= min(exact.scdl(gamma, finest=60), 2.3e-16)
    assert proved.upper == scdl(gamma) == 2.0**-50


@given(st.floats(0.0, 1.0), st.integers(1, 9), st.sampled_from([3 * 2**40, 10**12 + 39, 2**50 - 27]))
def test_shares_of_a_fine_grid_are_not_rounded(v, apart, m):
    """The share v m − ⌊v m⌋ is exact where a quotient j/m would lose m units of it."""
    both = sorted({v, v + apart * 1e-16 if v < 0.5 else v - apart * 1.2e-16})
    gamma = JointDistribution.from_levels(both, [1.0] * len(both), [0.0, 1.0][: len(both)])
    expected = float(exact.scdl_binned(gamma, m))
    assert MEASURES["scdl_binned"].function(gamma, m=m) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, 100.0, math.inf])
@pytest.mark.parametrize(("mass", "mean"), [
    *((mass, mean) for mass in (1e-12, 0.3) for mean in (2.3e-308, 1e-300, 1e-70)),
    *((mass, None) for mass in (5e-324, 1.6e-319, 3e-309, 6e-309, 1e-292)),
])  # fmt: skip
def test_masses_that_underflow_count_on_the_safe_side(order, mass, mean):
    """Masses that are hardly floats have few digits or none: of high orders all error may be theirs."""
    if mean is None:
        gamma = JointDistribution.from_levels([0.1, 0.5, 0.9], [1.0, mass, mass], [0.1, 0.2, 0.0])
    else:
        gamma = JointDistribution.from_levels([0.0, 0.5], [mass, 1.0 - mass], [mean, 0.5])
    proved = explain(gamma, "ece", order=order).verify()
    so = exact.ece(gamma) if order == 1.0 else exact.ece_of_order(gamma, order)
    # Products below 1e-308 are the ones that lose digits.
    rounding = ROUNDING * Fraction(so) + Fraction(1e-307)
    assert Fraction(proved.lower) - rounding <= so <= Fraction(proved.upper) + rounding
    # (1e-290)^(1/100) is 1.3e-3.
    assert mean is not None or proved.width <= (1e-12 if order != 100.0 else 3e-3)


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
ONE = JointDistribution.from_levels([0.875], [1.0], [0.95])


@pytest.mark.parametrize(
    ("witness", "gamma", "says"),
    [
        (WorstTask((0.9,), ((1.0, 0.0), (0.0, 1.0)), "swap"), ONE, "at the kink 0.9 actions 0 and 1 pay"),
        (WorstTask((0.5,), ((100.0, 0.0), (0.0, 100.0)), "swap"), ONE, r"expected payoffs in \[0, 1\]"),
        (WorstTask((0.5,), ((1.0, 0.0),), "swap"), ONE, "1 actions and 1 kinks"),
        (WorstTask((0.5,), ((0.0, 1.0), (1.0, 0.0)), "swap"), ONE, "the wrong order"),
        (WorstTask((math.nan,), ((1.0, 0.0), (0.0, 1.0)), "swap"), ONE, "kinks, of length"),
        (Interval(0.0, 1.0, 5), TWO, "sign = 5"),
        (Interval(0.0, 1.0, 0), TWO, "sign = 0"),
        (IntervalPartition(((0.4, 0.4),)), TWO, "level 0.6 lies in none"),
        (IntervalPartition(((0.4, 0.6), (0.5, 0.6))), TWO, "overlap"),
        (LevelGroups(np.array([0.0])), TWO, "groups of 1 levels; expected 2"),
        (LipschitzWeights(TWO.predictions, np.array([1.0, 0.0])), TWO, "differ by 0.8"),
        (LipschitzWeights(TWO.predictions, np.array([2.0, 2.0])), TWO, r"largest \|weight\| is 2.0"),
        (LipschitzWeights(ONE.predictions, np.array([1.0])), TWO, "not the levels"),
        (PrefixSums(-1e-3, 1e-3, "cutoff_ce"), TWO, r"from 0.0 to 0.3; expected all within"),
        (RegretBound(0.0, 0.0, "cdl"), TWO, "the kink .* regrets"),
        (KernelWeights(TWO.predictions, np.array([0.0, 0.0]), None, 1e-9), TWO, "kernel = None"),
        (CalibratedCoupling([0.0, 0.5, 1.0], [-0.5, 2.0, -0.5], np.zeros(3), np.zeros(3)), TWO, "negative"),
        (Potentials([0.0, 1.0], [1e9, 1e9], [-1e9, -1e9]), TWO, "size 1000000000.0; expected at most 100"),
        (RegretBound(0.1, 1e9, "cdl"), TWO, r"slope = 1000000000.0; expected a number in \[-10, 10\]"),
        (CalibratedCoupling([0.5, 0.4], [0.0, 1.0], np.zeros(2), np.zeros(2)), TWO, "ascending values"),
        (SoftRounding(3), TWO, "a power of two"),
        (SoftRounding(None), TWO, "not calibrated"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, Witness) else None,
)
def test_what_proves_nothing_is_refused_by_name(witness, gamma, says):
    with pytest.raises((InvalidData, InvalidParameter), match=says):
        witness.bound(gamma)


def test_a_coupling_that_misses_an_outcome_by_rounding_is_still_close():
    """All outcomes are 1, but 1e-17 of what arrives has y = 0: that share costs no more than itself."""
    certain = JointDistribution.from_levels([0.0, 0.5, 1.0], [1.0, 4.0, 1.0], [1.0, 1.0, 1.0])
    nodes, flat = np.array([0.0, 0.5, 1.0]), np.zeros(3)
    for left in (0.0, 1e-17, 1e-13):
        coupling = CalibratedCoupling(nodes, np.array([left, 0.0, 1.0 - left]), flat, flat)
        assert 0.5 - 5e-15 <= coupling.bound(certain).upper <= 0.5 + 5e-15 + 2.0 * left
    with pytest.raises(InvalidData, match="mean outcome"):
        CalibratedCoupling(nodes, np.array([1e-6, 0.0, 1.0 - 1e-6]), flat, flat).bound(certain)
    assert distance_lower(certain).width <= 1e-9
    assert distance_lower(certain.flip()).width <= 1e-9
    assert explain(JointDistribution.from_samples([0.0], [1]), "distance_lower").verify().upper == 1.0


@pytest.mark.parametrize(
    ("witness", "gamma"),
    [
        # No node where levels are, and potentials that are high there.
        (
            CalibratedCoupling(np.array([0.4, 0.5]), np.array([0.0, 1.0]), np.full(2, 5.0), np.full(2, 5.0)),
            TWO,
        ),
        # At both levels u a(u) + (1 − u) b(u) is 0, half-way .08; E[a y + b (1 − y)] = .28, the distance .2.
        (
            Potentials(np.array([0.3, 0.7]), np.array([0.28, -0.12]), np.array([-0.12, 0.28])),
            JointDistribution.from_samples([0.3, 0.7], [1, 0]),
        ),
    ],
    ids=["no node", "feasible at the levels only"],
)
def test_potentials_that_are_too_high_somewhere_prove_no_more_than_is_so(witness, gamma):
    truth = Truth(gamma)
    truth.check(witness)
    assert not truth.refusals


class TrustedTask(WorstTask):
    """Takes the kinks as they are given, and the payoffs too."""

    def bound(self, gamma):
        table = np.array(self.payoffs)
        earned = np.outer(1.0 - gamma.means, table[:, 0]) + np.outer(gamma.means, table[:, 1])
        chosen = np.searchsorted(self.kinks, gamma.predictions)
        got = earned[np.arange(gamma.levels), chosen]
        return float(gamma.mass @ (earned.max(axis=1) - got))


class TrustedPartition(IntervalPartition):
    """Leaves levels out that lie in no interval."""

    def bound(self, gamma):
        cost = 0.0
        for low, high in self.intervals:
            inside = (gamma.predictions >= low) & (gamma.predictions <= high)
            cost += abs(gamma.residuals[inside].sum()) + gamma.mass[inside].sum() * (high - low)
        return cost


@pytest.mark.parametrize(
    ("witness", "gamma"),
    [
        (TrustedTask((0.9,), ((1.0, 0.0), (0.0, 1.0)), "swap"), ONE),
        (TrustedTask((0.9,), ((100.0, 0.0), (0.0, 100.0)), "swap"), ONE),
        (TrustedPartition(((0.5, 0.55),)), TWO),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_witness_that_believes_what_it_is_given_is_found_out(witness, gamma):
    """Controls of `Truth.check`, with the flaws that it is there to find."""
    with pytest.raises(AssertionError, match="'proves'"):
        Truth(gamma).check(witness)


def test_an_explanation_holds_only_for_its_own_measure_options_and_value():
    gamma = JointDistribution.from_levels([0.2, 0.8], [0.5, 0.5], [0.4, 0.6])
    why = explain(gamma, "cdl")
    assert why.verify().width < 1e-14
    assert why.witness is why.witnesses[0]
    with pytest.raises(InvalidData, match=r"cdl = 0\.3 lies outside of"):
        replace(why, value=0.3).verify()
    with pytest.raises(InvalidData, match="lies outside of"):
        replace(why, value=math.nan).verify()
    with pytest.raises(InvalidData, match="lies outside of"):
        replace(why, value=Bracket(0.0, 0.1)).verify()
    # A task of two kinks says nothing of one.
    with pytest.raises(InvalidParameter, match="WorstTask is about 'cdl'; expected a witness about 'v_cdl'"):
        replace(why, name="v_cdl").verify()
    mean = explain(gamma, "interval_ce")
    with pytest.raises(InvalidParameter, match="with width = 'mean'; expected one about width = 'max'"):
        replace(mean, options={**mean.options, "width": "max"}).verify()
    with pytest.raises(InvalidData, match="not the levels"):
        replace(explain(gamma, "smooth_ce"), gamma=TWO).verify()
    assert replace(why, witnesses=()).verify() == Bracket(0.0, math.inf)


@pytest.mark.parametrize(
    "options", [{}, {"kernel": "gaussian"}, {"kernel": "gaussian", "scale": 0.003}], ids=str
)
@pytest.mark.parametrize("size", [1e-160, 1e-200, 1e-240])
def test_squares_of_tiny_residuals_are_not_lost(options, size):
    gamma = JointDistribution.from_levels([0.0, 0.5], [1.0, 1.0], [size, 0.5])
    proved = explain(gamma, "kernel_ce", **options).verify()
    assert [proved.lower, proved.upper] == pytest.approx([size / 2.0] * 2, rel=1e-14)


@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.001, 0.01, 0.3])
def test_levels_that_nearly_meet_and_cancel_have_a_witness(kernel, scale):
    # Their residuals cancel but for rounding, so that the norm of the honest weights is known to few digits.
    for power in range(3, 54):
        gap = 2.0**-power
        gamma = JointDistribution.from_counts([0.5, 0.5 + gap], [3, 5], [1, 3])
        apart = gap / scale if kernel == "laplace" else (gap / scale) ** 2
        norm = math.sqrt(-2 * math.expm1(-apart)) / 16
        proved = explain(gamma, "kernel_ce", kernel=kernel, scale=scale).verify()
        if gap < 1e-3:  # where both residuals are 1/16 to within the gap
            assert proved.lower <= norm * (1 + 1e-6) + gap + 1e-12
            assert proved.upper >= norm * (1 - 1e-6) - gap - 1e-12


@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e250])
def test_weights_of_a_mean_of_errors_may_have_any_scale(scale):
    """For p = ∞ only shares of the weights count; neither their products nor their sum leave the floats."""
    gamma = JointDistribution.from_levels([0.1, 0.4, 0.8], [1, 1, 2], [0.3, 0.4, 0.5])
    proved = ErrorWeights(gamma.predictions, scale * np.array([0.0, 0.0, -1.0]), math.inf).bound(gamma)
    assert [proved.lower, proved.upper] == pytest.approx([0.3, 0.3], rel=5e-15)


def test_shifted_bins_err_by_the_bias_at_least():
    """Also where levels are closer than floats near 1 are."""
    levels = np.arange(2048) * 2.0**-60
    gamma = JointDistribution.from_levels(levels, np.ones(2048), levels + 2.0**-30)
    assert ShiftedBins(2.0**-58).bound(gamma) == pytest.approx(2.0**-30, rel=1e-14)


RISING = np.linspace(0.4, 0.6, 1001)
#: residuals at both ends alone
STEEP = JointDistribution.from_levels(RISING, np.ones(1001), np.r_[0.0, RISING[1:-1], 1.0])
SLOPE = (RISING - 0.5) + 9e-10 * np.arange(1001)


@pytest.mark.parametrize(
    ("name", "gamma", "missing"),
    [
        ("smooth_ce", STEEP, lambda low, high: replace(low, weights=SLOPE)),
        ("smooth_ce", ONE, lambda low, high: replace(low, weights=(1.0 + 9e-10) * low.weights)),
        ("cutoff_ce", TWO, lambda low, high: replace(high, upper=high.upper - 9e-10)),
        ("cutoff_ce", TWO, lambda low, high: replace(high, lower=high.lower + 9e-10)),
        ("cdl", many_levels(0, 50), lambda low, high: replace(high, height=high.height - 4e-10)),
        ("interval_ce", many_levels(0, 50), lambda high, low: replace(low, costs=low.costs + 9e-10)),
    ],
)
def test_a_condition_that_is_missed_by_rounding_is_paid_for(name, gamma, missing):
    value = MEASURES[name].function(gamma)
    witness = missing(*explain(gamma, name).witnesses)
    if witness.side == "lower":
        assert value - 1e-5 <= witness.bound(gamma) <= value + 1e-13
    else:
        assert value - 1e-13 <= witness.bound(gamma) <= value + 1e-8
