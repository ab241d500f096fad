"""Statements of measures about samples: seminorms that are the measures, and bounds of how far values change with Γ."""

import math

import numpy as np
import pytest
from scipy import integrate

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.logs.evaluation import evaluate
from onlinecal.measures import MEASURES, loess, surrogate
from onlinecal.measures.base import Between, Change, Known, Sampling, ends
from onlinecal.measures.binned import bins_of_levels
from onlinecal.measures.cutoff import largest_exceeds, range_exceeds
from onlinecal.measures.smooth_ece import scales
from tests.oracles.tasks import tied
from tests.witnesses import EVERY, case_id

SAMPLED = [(r, o) for r, o in EVERY if isinstance(r.sampling, Sampling) and not r.sampling.refuses(**o)]
NORMED = [(r, options) for r, options in SAMPLED if r.sampling.norm and (r.name != "ece" or not options)]
#: quotients have a test of their own, and what is between two others follows from them. Bins of equal mass are
#: those of the sample, and local regressions hold to the first order
FIRST_ORDER = {"nce", "brier_skill", "ace", "ici", "e50", "e90"}
BOUNDED = [
    (r, options)
    for r, options in SAMPLED
    if r.name not in FIRST_ORDER and options.get("strategy") != "quantile"
]
#: samples that families of bins and scales are made for
SAMPLES = 3000.0
# The most that SmoothECE's deviations may lack on an interval's mesh, as a share and in all; and its norm.
_MESH, _NORM = 0.02, 6e-5


def pairs(seed, number):
    """Γ of a sample and of a population with the same levels: far apart, close, calibrated, of unequal masses."""
    generator = np.random.default_rng([seed, 71])
    for i in range(number):
        k = int(generator.integers(1, 9))
        v = np.unique(generator.integers(0, 13, k) / 12 if i % 2 else generator.random(k))
        q, other = generator.random((2, len(v)))
        mass, moved = generator.dirichlet(np.full(len(v), 0.7), 2) + 1e-9
        if i % 3 == 0:
            other = v
        if i % 5 == 0:
            other, moved = np.clip(q + generator.normal(0.0, 0.02, len(v)), 0.0, 1.0), mass
        yield (
            JointDistribution.from_levels(v, mass / mass.sum(), q),
            JointDistribution.from_levels(v, moved / moved.sum(), other),
        )


def change_between(sample, population):
    ones = (sample.mass * sample.means - population.mass * population.means)[None, :]
    zeros = (sample.mass - population.mass)[None, :] - ones
    return Change(population, zeros, ones, SAMPLES, population, np.arange(population.levels))


def test_every_measure_says_what_a_sample_tells():
    for record in MEASURES.values():
        assert isinstance(record.sampling, Sampling | Between), record.name
        if isinstance(record.sampling, Between):
            assert isinstance(MEASURES[record.sampling.lower].sampling, Sampling)
            assert isinstance(MEASURES[record.sampling.upper].sampling, Sampling)
        elif record.sampling.cells is not None:
            assert record.sampling.instead


@pytest.mark.parametrize(
    ("name", "options", "together"),
    [
        *((name, options, [0, 0, 1, 2, 3]) for name, options in (
            ("binned_ece", {"bins": 10}), ("rmsce", {"bins": 10}), ("soft_binned_ece", {"bins": 10}),
            ("scdl_binned", {"m": 10}), ("smooth_ece_at", {"sigma": 0.05}),
            ("smooth_ece_at", {"sigma": 1.0, "transform": "logit"}), ("random_interval_ce", {"epsilon": 0.1}),
            ("mce", {"bins": 10}), ("binned_ce", {"bins": [0.0, 0.1, 0.2, 0.6, 1.0]}), ("binned_ece_width", {}),
        )),
        *((name, options, [0, 1, 2, 3, 4]) for name, options in (
            ("ece", {}), ("ece", {"order": 2.0}), ("mce", {}), ("cdl", {}), ("v_cdl", {}), ("cfdl", {}),
            ("soft_binned_ece", {"bins": 100}), ("ace", {"bins": 5}),
        )),
        ("ace", {"bins": 2}, [0, 0, 1, 1, 1]), ("rmsce", {"bins": 2, "strategy": "quantile"}, [0, 0, 1, 1, 1]),
        ("soft_binned_ece", {"bins": 2}, [0, 0, 0, 1, 1]), ("soft_binned_ece", {}, [0, 1, 1, 2, 3]),
    ],
)  # fmt: skip
def test_which_levels_count_together(name, options, together):
    gamma = JointDistribution.from_levels([0.02, 0.07, 0.12, 0.5, 0.9], np.ones(5), np.zeros(5))
    cells = MEASURES[name].sampling.cells(gamma, **options)
    assert np.unique(cells, return_inverse=True)[1].tolist() == together


@pytest.mark.parametrize(
    ("name", "options", "share"),
    [
        ("ece", {}, 0.05), ("ece", {"order": 2.0}, 0.0), ("binned_ece", {}, 0.05), ("binned_ce", {}, 0.0),
        ("soft_binned_ece", {}, 0.0), ("mce", {}, 0.0), ("rmsce", {}, 0.0), ("ace", {}, 0.05), ("cdl", {}, 0.05),
    ],
)  # fmt: skip
def test_the_share_of_cells_with_few_samples_that_is_allowed(name, options, share):
    assert MEASURES[name].sampling.share(**options) == share


@pytest.mark.parametrize(
    ("name", "options", "refused"),
    [
        ("binned_ce", {}, ""), ("binned_ce", {"strategy": "sweep"}, "number of bins of a sweep"),
        ("binned_ce", {"debiased": True}, "without debiased"), ("binned_ce", {"bins": 4, "strategy": "quantile"}, ""),
        ("subsampled_smooth_ce", {}, "depends on the number of rounds"), ("subsampled_step_ce", {}, "number of rounds"),
    ],
)  # fmt: skip
def test_why_there_is_no_interval(name, options, refused):
    said = MEASURES[name].sampling.refuses(**options)
    assert refused in said
    assert bool(said) == bool(refused)


def test_numbers_of_bins_double_up_to_twice_the_root_and_30_samples_each():
    for samples, most in (
        (1, 1),
        (59, 1),
        (60, 2),
        (119, 2),
        (120, 4),
        (1920, 64),
        (3600, 64),
        (4096, 128),
        (4095, 64),
    ):
        assert surrogate.halving(samples).tolist() == [2**j for j in range(most.bit_length())], samples


#: √n times bounds of mean changes, by formulas of the options
MEANS = [
    ("binned_ece", {"bins": 7}, math.sqrt(7)), ("binned_ece_width", {}, math.sqrt(10)),
    ("random_interval_ce", {"epsilon": 0.1}, math.sqrt(11)), ("random_interval_ce", {"epsilon": 0.3}, math.sqrt(5)),
    ("low_degree_ce", {}, math.sqrt(3)), ("low_degree_ce", {"degree": 5}, math.sqrt(6)), ("weighted_ce", {}, 1.0),
    ("kernel_ce", {}, 1.0), ("atb", {}, 1.0), ("distance_lower", {}, 1.0), ("brier", {}, 0.5),
    ("smooth_ce", {}, 2.0), ("earthmover_distance", {}, 3.0), ("scdl_binned", {"m": 7}, 4.0),
    ("soft_binned_loss", {}, math.sqrt(34)), ("scdl", {}, np.sqrt(2.0 * (surrogate.halving(SAMPLES) + 1.0))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "mean"), MEANS)
def test_bounds_of_means_are_those_of_their_formulas(name, options, mean):
    assert MEASURES[name].sampling.means(SAMPLES, **options) == pytest.approx(np.ravel(mean), rel=1e-12)


def test_bounds_of_means_that_depend_on_the_sample_or_on_what_is_given_are_not_known():
    for name, options in (
        ("binned_ece", {"strategy": "quantile"}), ("weighted_ce", {"omega": np.sign}),
        ("smooth_ece_at", {"sigma": 0.1, "transform": "logit"}),
    ):  # fmt: skip
        assert MEASURES[name].sampling.means(SAMPLES, **options) is None
    widths = surrogate.halving(SAMPLES)
    assert MEASURES["surrogate_interval_ce"].sampling.means(SAMPLES) == pytest.approx(np.sqrt(widths + 1.0))


@pytest.mark.parametrize(("record", "options"), NORMED, ids=case_id)
def test_a_seminorm_of_the_residuals_is_the_measure(record, options, seed):
    allowed = _NORM if record.name == "smooth_ece_at" else 1e-14
    for sample, _ in pairs(seed, 60):
        rows = np.stack((sample.residuals, -2.0 * sample.residuals))
        once, twice = record.sampling.norm(sample, rows, **options)
        value = record.function(sample, **options)
        size = float(np.abs(sample.residuals).sum())
        # A narrow Gaussian is right to 1e-15 in the square.
        within = max(allowed * max(size, 1.0), 4e-8 * ("gaussian" in options.values()))
        assert once == pytest.approx(value, abs=within)
        assert twice == pytest.approx(
            2.0 * once, rel=1e-9, abs=1e-12 + 8e-8 * ("gaussian" in options.values())
        )


@pytest.mark.parametrize(("record", "options"), SAMPLED, ids=case_id)
def test_no_change_is_no_deviation_and_the_interval_without_a_radius_is_the_value(record, options, seed):
    """Of a minimum over bins, up to the width of the finest that are tried, of which there are 64."""
    within = 1 / 64 if record.name in ("surrogate_interval_ce", "scdl") else 0.0
    for sample, _ in pairs(seed, 10):
        value = ends(record.function(sample, **options))
        if not np.isfinite(value).all():
            continue
        found = record.sampling.deviations(change_between(sample, sample), **options)[0]
        assert found == pytest.approx(0.0, abs=1e-15)
        low, high = record.sampling.limits(Known(sample, SAMPLES, value), np.zeros(len(found)), **options)
        for beyond in (value[0] - low, high - value[1]):
            assert -1e-12 <= beyond <= within + 1e-12


@pytest.mark.parametrize(("record", "options"), BOUNDED, ids=case_id)
def test_no_value_changes_more_than_its_deviations_allow(record, options, seed):
    """The interval made of the very deviations holds the population's value: no probability is in this."""
    name, sampling = record.name, record.sampling
    for sample, population in pairs(seed, 12 if record.bracket or name == "smooth_ece" else 60):
        value, truth = (ends(record.function(g, **options)) for g in (sample, population))
        if math.inf in value + truth:
            continue
        radii = sampling.deviations(change_between(sample, population), **options)[0] * (1.0 + 1e-9) + 1e-12
        if name == "smooth_ece":
            radii = radii * (1.0 + _MESH) + 1e-4
        elif name == "smooth_ece_at":
            radii = radii + _NORM * 2.0 + 3e-6
        low, high = sampling.limits(Known(sample, SAMPLES, value), radii, **options)
        assert low <= truth[1], (sample, population)
        assert high >= truth[0], (sample, population)
        assert low <= value[0]
        assert high >= value[1]


@pytest.mark.parametrize("name", ["brier", "log_loss"])
def test_deviations_of_scores_are_what_they_change(name, seed):
    for sample, population in pairs(seed, 60):
        values = [MEASURES[name].function(gamma) for gamma in (sample, population)]
        found = MEASURES[name].sampling.deviations(change_between(sample, population))
        assert math.inf in values or found[0, 0] == pytest.approx(abs(values[0] - values[1]), abs=1e-12)


def test_deviations_of_local_regressions_are_right_to_the_first_order(seed):
    """The square of a change of 1e-7 of each mass does not count. Neighbourhoods stay, but for one case in 10⁵."""
    rng = np.random.default_rng([seed, 74])
    for k in (3, 8, 20):
        v, mass, q = np.sort(rng.random(k)), rng.dirichlet(np.ones(k)), rng.random(k)
        zeros, ones = 1e-7 * mass * rng.normal(size=(2, k))
        zeros -= mass * (zeros + ones).sum()
        before = JointDistribution.from_levels(v, mass, q)
        moved = mass + zeros + ones
        after = JointDistribution.from_levels(v, moved, (mass * q + ones) / moved)
        change = Change(before, zeros[None, :], ones[None, :], SAMPLES, before, np.arange(k))
        curve = loess.curve_error(after)[0] - loess.curve_error(before)[0]
        assert loess._moved(change)[2][0] == pytest.approx(curve, abs=1e-11)
        for name in ("ici", "e50", "e90"):
            one, other = (MEASURES[name].function(gamma) for gamma in (before, after))
            deviation = MEASURES[name].sampling.deviations(change)[0, 0]
            assert abs(one - other) <= deviation + 1e-11
            assert deviation <= np.abs(curve).max() + (name == "ici") * np.abs(zeros + ones).sum() + 1e-11


def by_brute_force(t, v, ones, mass, fixed):
    """S(t), by its definition: of swaps, or against fixed actions with or without the level at t."""
    gain = ones - t * mass
    if fixed:
        parts = gain[v < t], gain[v <= t], -gain[v > t], -gain[v >= t]
        return max(0.0, *(part.sum() for part in parts))
    return np.maximum(gain[v <= t], 0.0).sum() + np.maximum(-gain[v >= t], 0.0).sum()


def envelope_at_half(t, values):
    return max(
        y if s == u == 0.5 else (x * (u - 0.5) + y * (0.5 - s)) / (u - s)
        for s, x in zip(t, values, strict=True)
        for u, y in zip(t, values, strict=True)
        if s < 0.5 < u or s == u == 0.5
    )


@pytest.mark.parametrize("name", ["cdl", "v_cdl", "u_calibration"])
def test_deviations_of_regrets_are_those_of_all_kinks_tried(name, seed):
    for sample, population in pairs(seed, 40):
        change, v = change_between(sample, population), population.predictions
        t = np.unique(np.r_[np.linspace(0.0, 1.0, 25), v])
        found = []
        for sign in (1.0, -1.0):
            ones, zeros = sign * change.ones[0], sign * change.zeros[0]
            s = [by_brute_force(x, v, ones, ones + zeros, name == "u_calibration") for x in t]
            found.append(
                (s / np.maximum(t, 1.0 - t)).max() if name == "v_cdl" else 2.0 * envelope_at_half(t, s)
            )
        assert MEASURES[name].sampling.deviations(change)[0, 0] == pytest.approx(max(found), abs=1e-13)


@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize("m", [1, 2, 5, 16])
def test_deviations_on_a_grid_are_those_of_all_thresholds_tried(m, soft, seed):
    """Σ over j < i of (D_1j − D_j i/m)_+ and over j ≥ i of (D_j (i − 1)/m − D_1j)_+, of D or of −D."""
    for sample, population in pairs(seed, 30):
        change, v, j = change_between(sample, population), population.predictions, np.arange(m + 1)
        near = np.maximum(1.0 - np.abs(v[:, None] * m - j), 0.0)
        shares = near if soft else np.searchsorted(j / m, v, "right")[:, None] - 1 == j
        ones, mass = (part[0] @ shares for part in (change.ones, change.ones + change.zeros))
        losses = []
        for i in range(1, m + 1):
            lost = np.where(j < i, ones - mass * i / m, mass * (i - 1) / m - ones)
            losses.append(max(np.maximum(sign * lost, 0.0).sum() for sign in (1.0, -1.0)))
            at = MEASURES["soft_binned_loss"].sampling.deviations(change, m=m, threshold=i, soft=soft)
            assert at[0, 0] == pytest.approx(losses[-1], abs=1e-13)
        found = MEASURES["scdl_binned"].sampling.deviations(change, m=m, soft=soft)
        assert found[0, 0] == pytest.approx(max(losses), abs=1e-13)


def test_deviations_of_bins_of_equal_mass_are_those_of_each_bin(seed):
    for sample, population in pairs(seed, 40):
        change, v = change_between(sample, population), population.predictions
        number, _ = bins_of_levels(population, 3, "quantile")
        bins = [number == j for j in set(number.tolist())]
        error = sum(abs(change.residuals[0, those].sum()) for those in bins)
        wider = sum((change.ones + change.zeros)[0, those].sum() * np.ptp(v[those]) for those in bins)
        for name, expected in (("binned_ece", error), ("binned_ece_width", error + abs(wider))):
            found = MEASURES[name].sampling.deviations(change, bins=3, strategy="quantile")
            assert found[0, 0] == pytest.approx(expected, abs=1e-14)


def test_weights_of_levels_that_are_rounded_together_are_averaged():
    origin = JointDistribution.from_levels([0.2, 0.21, 0.6], [1, 3, 2], [0.5, 0.5, 0.5])
    ones, zeros = np.array([[0.1, 0.03]]), np.array([[-0.2, 0.01]])
    change = Change(origin.round(10)[0], zeros, ones, SAMPLES, origin, np.array([0, 0, 1]))
    found = MEASURES["weighted_ce"].sampling.deviations(change, omega=[1.0, -1.0, 0.25])
    assert found[0, 0] == pytest.approx(abs(change.residuals[0] @ [-0.5, 0.25]), abs=1e-15)


def norm_change(before, mass, after, order):
    """The norm of errors that change, by new masses, and what these change in that of the errors before."""

    def norm(errors, mass):
        if order == math.inf:
            return max(abs(errors))
        return sum(mass / mass.sum() * abs(errors) ** order) ** (1.0 / order)

    (w, e), changed = before, np.clip(after, -1.0, 1.0) - before[1]
    return norm(changed, mass) + abs(norm(e, mass) - norm(e, w))


@pytest.mark.parametrize(("name", "options", "order", "shares"), [
    ("ece", {"order": 3.0}, 3.0, None), ("mce", {}, math.inf, None), ("ece", {"order": 2.0}, 2.0, None),
    ("binned_ce", {"bins": 3}, 2.0, "hard"), ("binned_ce", {"bins": 3, "order": 1.0}, 1.0, "hard"),
    ("mce", {"bins": 3}, math.inf, "hard"), ("rmsce", {"bins": 3}, 2.0, "hard"),
    ("soft_binned_ece", {"bins": 3, "temperature": 0.05, "order": 3.0}, 3.0, "soft"),
])  # fmt: skip
def test_deviations_of_norms_are_those_of_each_level_or_bin(name, options, order, shares, seed):
    """Means of outcomes at each level are in [0, 1]; in bins, errors are in [−1, 1]."""
    for sample, population in pairs(seed, 20):
        change, v = change_between(sample, population), population.predictions
        middles = (np.arange(3) + 0.5) / 3
        near = np.exp(-((v[:, None] - middles) ** 2) / 0.05)
        part = {
            "hard": np.floor(np.minimum(3 * v, 2.5))[:, None] == np.arange(3),
            "soft": near,
            None: np.eye(len(v)),
        }
        part = part[shares][:, part[shares].any(axis=0)]
        part = part / part.sum(axis=1, keepdims=True)
        w, r = population.mass @ part, population.residuals @ part
        new = np.maximum(w + (change.ones + change.zeros)[0] @ part, 1e-300)
        after = (r + change.residuals[0] @ part) / new
        found = MEASURES[name].sampling.deviations(change, **options)
        assert found[0, 0] == pytest.approx(norm_change((w, r / w), new, after, order), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "task", [tasks.three_action(), tasks.umbrella(cost=0.25), tasks.random_task(4, 1)], ids=str
)
def test_deviations_of_a_table_of_payoffs_are_those_of_each_level(task, seed):
    """The best action for the changed masses, against the worst of the responses: all that are tied on a kink.

    Some levels are the first and the last that are on a kink, and the next ones beside it.
    """
    low, high = task.envelope[2:]
    v = np.unique(np.r_[low, high, np.nextafter(low, -1.0), np.nextafter(high, 2.0)])
    ends = JointDistribution.from_levels(v, np.ones(len(v)), np.resize([0.0, 1.0, 0.25], len(v)))
    moved = JointDistribution.from_levels(v, 1.0 + np.arange(len(v)) % 3, np.resize([0.5, 0.0], len(v)))
    for sample, population in [(ends, moved), *pairs(seed, 30)]:
        change, found = change_between(sample, population), []
        for sign in (1.0, -1.0):
            pays = sign * np.stack((change.zeros[0], change.ones[0]), axis=1) @ task.table.T
            taken = [tied(v, task) for v in population.predictions.tolist()]
            found.append(sum(pay.max() - pay[own].min() for pay, own in zip(pays, taken, strict=True)))
        deviations = MEASURES["cfdl"].sampling.deviations(change, task=task)
        assert deviations[0, 0] == pytest.approx(max(found), abs=1e-13)


def test_deviations_of_the_lower_distance_are_those_of_moving_the_changes_to_an_end(seed):
    """∫ |D_1[0, x]| + |D_0(x, 1]| dx, in pieces between levels."""
    for sample, population in pairs(seed, 30):
        change, v, total = change_between(sample, population), population.predictions, 0.0
        edges = np.unique(np.r_[0.0, v, 1.0])
        for x, wide in zip(edges[:-1], np.diff(edges), strict=True):
            total += wide * (abs(change.ones[0, v <= x].sum()) + abs(change.zeros[0, v > x].sum()))
        found = MEASURES["distance_lower"].sampling.deviations(change)
        assert found[0, 0] == pytest.approx(total, abs=1e-14)


def test_deviations_of_the_quadratic_task_are_those_of_all_forecasts_tried(seed):
    a = np.linspace(0.0, 1.0, 4001)[:, None]
    for sample, population in pairs(seed, 20):
        change, v = change_between(sample, population), population.predictions
        gains = change.ones * ((1.0 - v) ** 2 - (1.0 - a) ** 2) + change.zeros * (v**2 - a**2)
        found = max((sign * gains).max(axis=0).sum() for sign in (1.0, -1.0))
        assert MEASURES["cfdl"].sampling.deviations(change)[0, 0] == pytest.approx(found, abs=1e-6)


@pytest.mark.parametrize("exact", [surrogate._EXACT, 0])
def test_deviations_of_random_bins_are_those_of_each_width(monkeypatch, seed, exact):
    """Levels that lie alike in the cells of every grid: there windows of the grid, of many levels, are exact too."""
    monkeypatch.setattr(surrogate, "_EXACT", exact)
    v, generator = (np.arange(32) + 0.5) / 32, np.random.default_rng([seed, 73])
    gamma = JointDistribution.from_levels(v, np.ones(32), generator.random(32))
    zeros, ones = generator.normal(0.0, 0.01, (2, 3, 32))
    change = Change(gamma, zeros, ones, SAMPLES, gamma, np.arange(32))
    found = MEASURES["surrogate_interval_ce"].sampling.deviations(change)
    norm = MEASURES["random_interval_ce"].sampling.norm
    for m, errors in zip(surrogate.halving(SAMPLES), found.T, strict=True):
        assert errors == pytest.approx(norm(gamma, change.residuals, epsilon=1.0 / m), abs=1e-13)


def entropy(b):
    return -b * math.log(b) - (1.0 - b) * math.log1p(-b), math.log1p(-b) - math.log(b)


@pytest.mark.parametrize(
    ("name", "score", "base", "quotient"),
    [
        ("nce", "log_loss", entropy, lambda value: value),
        ("brier_skill", "brier", lambda b: (b * (1.0 - b), 1.0 - 2.0 * b), lambda value: 1.0 - value),
    ],
)
def test_quotients_are_between_those_of_what_their_radii_leave(name, score, base, quotient, seed):
    """The radii are what the score changes beside the base rate to the first order, and the base rate."""
    record = MEASURES[name]
    for sample, population in pairs(seed, 200):
        value, truth = record.function(sample), record.function(population)
        if {0.0, 1.0} & set(sample.predictions) or math.inf in (abs(value), abs(truth)):
            continue
        size, slope = base(sample.base_rate)
        loss = [MEASURES[score].function(gamma) for gamma in (sample, population)]
        moved = population.base_rate - sample.base_rate
        first = abs(loss[1] - loss[0] - quotient(value) * slope * moved) / size
        radii = record.sampling.deviations(change_between(population, sample))[0]
        assert radii == pytest.approx([first, abs(moved)], rel=1e-6, abs=1e-12)
        known = Known(sample, SAMPLES, (value, value))
        low, high = record.sampling.limits(known, radii * (1.0 + 1e-6) + 1e-9)
        assert low <= truth <= high


@pytest.mark.parametrize(
    ("name", "base"), [("nce", entropy), ("brier_skill", lambda b: (b * (1.0 - b), 1.0 - 2.0 * b))]
)
@pytest.mark.parametrize("radii", [(0.02, 0.1), (0.0, 0.05), (0.3, 0.2)])
def test_limits_of_quotients_are_those_of_all_base_rates_within_the_radius(name, base, radii):
    """The least and the largest of (score ± radius · base of the sample)/base, on a finer grid: 1/64 of the radius."""
    gamma, value = JointDistribution.from_levels([0.2, 0.4], [1, 1], [0.1, 0.5]), 0.875
    b, (size, slope) = gamma.base_rate, base(gamma.base_rate)
    rates = np.linspace(b - radii[1], b + radii[1], 2**16 + 1)
    loss = value * (size + slope * (rates - b))
    bases = np.array([base(x)[0] for x in rates])
    least, most = ((loss - radii[0] * size) / bases).min(), ((loss + radii[0] * size) / bases).max()
    ends_of = (value, value) if name == "nce" else (1.0 - value, 1.0 - value)
    low, high = MEASURES[name].sampling.limits(Known(gamma, SAMPLES, ends_of), np.array(radii))
    low, high = (low, high) if name == "nce" else (1.0 - high, 1.0 - low)
    assert least - 1e-12 <= low <= least + 1e-4
    assert most - 1e-4 <= high <= most + 1e-12


@pytest.mark.parametrize(("name", "past"), [("nce", math.inf), ("brier_skill", -math.inf)])
def test_a_quotient_has_no_end_where_the_base_rate_may_be_0_or_1(name, past):
    """Of a base rate of 1/4, known to within less than that or not; and log loss where a forecast is 0 or 1."""
    limits, far = MEASURES[name].sampling.limits, name == "brier_skill"
    for v, radius, known_end in (
        ([0.2, 0.4], 0.2, True), ([0.2, 0.4], 0.25, False), ([0.2, 0.4], 0.3, False),
        ([0.0, 0.4], 0.2, far), ([0.2, 1.0], 0.2, far),
    ):  # fmt: skip
        gamma = JointDistribution.from_levels(v, [1, 1], [0.0, 0.5])
        found = limits(Known(gamma, SAMPLES, (0.5, 0.5)), np.array([0.01, radius]))
        assert math.isfinite(found[far])
        assert (found[1 - far] == past) != known_end


@pytest.mark.parametrize(("name", "v", "means"), [
    *((name, [0.2, 0.4], [q, q]) for name in ("nce", "brier_skill") for q in (0.0, 1.0)),
    ("nce", [0.0, 0.4], [0.5, 0.5]),
])  # fmt: skip
def test_nothing_bounds_a_quotient_of_equal_outcomes_or_of_an_infinite_loss(name, v, means):
    gamma = JointDistribution.from_levels(v, [1, 1], means)
    assert MEASURES[name].sampling.deviations(change_between(gamma, gamma)).tolist() == [[math.inf, math.inf]]


def of_family(name, gamma, radii):
    """The interval by its definition: members at all scales or bins, where each is off by its radius."""
    if name == "smooth_ece":
        value = MEASURES[name].function(gamma)
        at = [(s, MEASURES["smooth_ece_at"].function(gamma, sigma=s)) for s in scales(SAMPLES)]
        known = [(s, seen, radius) for (s, seen), radius in zip(at, radii, strict=True)]
        if any(s <= value for s, _, _ in known):
            known.append((value, value, next(radius for s, _, radius in known if s <= value)))
        return max(min(s, x - r) for s, x, r in known), min(max(s, x + r) for s, x, r in known)
    join = max if name == "scdl" else lambda x, width: x + width
    member, of = (
        ("scdl_binned", lambda m: {"m": m})
        if name == "scdl"
        else ("random_interval_ce", lambda m: {"epsilon": 1 / m})
    )
    lower, upper, best = -math.inf, math.inf, math.inf
    for m, radius in zip(surrogate.halving(SAMPLES).tolist(), radii, strict=True):
        value = MEASURES[member].function(gamma, **of(m))
        upper = min(upper, join(value + radius, 1 / m))
        lower = max(lower, min(best, value - radius))  # no coarser one is less, and no finer one by itself
        best = min(best, join(value - radius, 1 / m))
    return lower, upper


@pytest.mark.parametrize("name", ["smooth_ece", "surrogate_interval_ce", "scdl"])
def test_limits_of_families_are_those_of_their_definition(name, seed):
    rng, record = np.random.default_rng([seed, 75]), MEASURES[name]
    count = len(scales(SAMPLES) if name == "smooth_ece" else surrogate.halving(SAMPLES))
    for sample, _ in pairs(seed, 6):
        for size in (0.005, 0.05):
            radii, value = size * rng.random(count), record.function(sample)
            low, high = of_family(name, sample, radii)
            found = record.sampling.limits(Known(sample, SAMPLES, (value, value)), radii)
            assert found == pytest.approx(
                (min(low, value), max(high, value)), abs=3e-6 if name == "smooth_ece" else 1e-12
            )


def test_limits_of_the_averaged_two_bin_error_are_squares_of_its_roots():
    gamma = JointDistribution.from_levels([0.5], [1], [0.75])
    limits = MEASURES["atb"].sampling.limits
    assert limits(Known(gamma, SAMPLES, (0.0625, 0.0625)), np.array([0.1])) == pytest.approx((0.0225, 0.1225))
    assert limits(Known(gamma, SAMPLES, (0.0625, 0.0625)), np.array([0.3])) == pytest.approx((0.0, 0.3025))


CERTAIN = [
    (record, options)
    for record, options in BOUNDED
    if record.sampling.means is not None and record.sampling.means(SAMPLES, **options) is not None
]


@pytest.mark.parametrize(("record", "options"), CERTAIN, ids=case_id)
def test_mean_changes_are_below_what_is_stated(record, options, seed):
    """√n E[L_j] of 400 samples of n = 400: no mean is above the bound by 6 standard errors (3e-9 each by chance)."""
    sampling = record.sampling
    n, draws = 400, 400
    means = sampling.means(float(n), **options)
    generator = np.random.default_rng([seed, 72])
    v = (np.arange(24) + 0.5) / 24
    for q in (v, np.full(24, 0.5), 1.0 - v, (np.arange(24) % 2).astype(float)):
        gamma = JointDistribution.from_levels(v, np.ones(24), q)
        cells = np.concatenate((gamma.mass * (1.0 - q), gamma.mass * q))
        moved = generator.multinomial(n, cells, draws) / n - cells
        change = Change(gamma, moved[:, :24], moved[:, 24:], float(n), gamma, np.arange(24))
        drawn = math.sqrt(n) * sampling.deviations(change, **options)
        error = drawn.std(axis=0) / math.sqrt(draws)
        assert (drawn.mean(axis=0) <= means + 6.0 * error + 1e-9).all()


#: the cells of four levels with either outcome, of which a sample goes from one to another
MOVES = np.array([(np.eye(8)[i] - np.eye(8)[j]).reshape(2, 4) for i in range(8) for j in range(8)])


@pytest.mark.parametrize(("record", "options"), CERTAIN, ids=case_id)
def test_no_sample_changes_a_deviation_by_more_than_is_stated(record, options):
    """By 2/n as a rule, and a score by its range; which binned errors and Brier scores reach."""
    gamma = JointDistribution.from_levels([0.0, 0.25, 0.75, 1.0], np.ones(4), [0.5, 0.2, 0.6, 0.1])
    change = Change(gamma, MOVES[:, 0], MOVES[:, 1], SAMPLES, gamma, np.arange(4))
    most = record.sampling.deviations(change, **options).max()
    assert most <= record.sampling.spread * (1.0 + 1e-9)
    if record.name in ("binned_ece", "brier"):
        assert most == record.sampling.spread


@pytest.mark.parametrize(("name", "prefixes"), [("step_ce", 3), ("cutoff_ce", 4), ("u_calibration", 4)])
def test_bounds_of_means_are_the_prefixes_times_the_inequality_of_dkw(name, prefixes):
    """√n E of the largest error over prefixes is at most ∫ 2 exp(−2 x²) dx over x ≥ 0; a larger bound is wasted."""
    of_one = integrate.quad(lambda x: 2.0 * math.exp(-2.0 * x * x), 0.0, math.inf)[0]
    assert MEASURES[name].sampling.means(SAMPLES) == pytest.approx(prefixes * of_one, rel=1e-9)


# ---------------------------------------------------------------- laws for many samples


@pytest.mark.parametrize(
    ("law", "first", "second"),
    [
        # E max|B| = √(π/2), E max|B|² = 2 × Catalan's constant; E R = √(8/π), E R² = 4 ln 2.
        (largest_exceeds, math.sqrt(math.pi / 2.0), 2.0 * 0.915965594177219),
        (range_exceeds, math.sqrt(8.0 / math.pi), 4.0 * math.log(2.0)),
    ],
)
def test_their_moments(law, first, second):
    assert integrate.quad(law, 0.0, 12.0, limit=400)[0] == pytest.approx(first, abs=1e-7)
    assert integrate.quad(lambda x: 2.0 * x * law(x), 0.0, 12.0, limit=400)[0] == pytest.approx(
        second, abs=1e-7
    )
    values = [law(x) for x in np.linspace(0.0, 12.0, 400)]
    assert (np.diff(values) <= 1e-12).all()
    assert values[0] == 1.0
    assert 0.0 <= values[-1] < 1e-20


@pytest.mark.parametrize("weighted", [False, True])
def test_p_values_for_large_n_are_those_of_draws(weighted, seed):
    """Of 2000 draws, within 5 standard errors (6e-7), and the 0.03 that 4000 steps of a walk lack."""
    generator = np.random.default_rng([seed, 41])
    p = generator.random(4000)
    y = generator.random(4000) < p + 0.02 * (p < 0.5)
    w = generator.random(4000) + 0.5 if weighted else None
    rows = evaluate(p, y, weights=w, measures=["cutoff_ce", "step_ce", "ece"], reference=2000).rows
    for row in rows[:2]:
        error = 5.0 * math.sqrt(row.p_value * (1.0 - row.p_value) / 2000)
        assert row.p_large_n == pytest.approx(row.p_value, abs=error + 0.03)
    assert rows[2].p_large_n is None
