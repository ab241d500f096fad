"""Intervals of `evaluate`: what they hold, how often, and where there is no interval."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import special, stats

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions.tasks import three_action, v_shaped
from onlinecal.logs import intervals, resampling
from onlinecal.logs.clusters import Clustered
from onlinecal.logs.evaluation import evaluate
from onlinecal.logs.intervals import Measurement, certain_radii, joint_radii, mean_interval, order_statistic
from onlinecal.logs.resampling import MOST_LEVELS, Resample
from onlinecal.logs.witnessed import BLOCKS, Block, Kind, Past, fitted, kind_of, past_of, witnessed_ends
from onlinecal.measures import MEASURES
from onlinecal.measures.base import ends

# ---------------------------------------------------------------- how they are made


def test_where_there_are_two_ways_each_fails_in_half_of_the_cases(monkeypatch):
    """With witnesses that prove nothing the interval at 90 % is that of draws alone at 95 %."""
    rng = np.random.default_rng(2)
    p = rng.integers(0, 3, 600) / 2
    y = (rng.random(600) < 0.1 + 0.8 * p) * 1

    def found(level):
        return evaluate(p, y, measures=["ece"], bootstrap=199, level=level).rows[0].interval

    monkeypatch.setattr(intervals, "witnessed_ends", lambda kinds, *_: dict.fromkeys(kinds, (0.0, math.inf)))
    both = found(0.9)
    monkeypatch.setattr(intervals, "kind_of", lambda *_: None)
    assert both == found(0.95) != found(0.9)


@pytest.mark.parametrize(("n", "ones"), [(10, 0), (10, 5), (30, 30), (1000, 20)])
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_of_two_losses_the_interval_is_that_of_clopper_and_pearson(n, ones, weight, seed):
    """Their Beta laws have the shares stated below the ends; of 20,000 draws off by 6 standard errors below 1e-8."""
    y, w = np.arange(n) < ones, np.full(n, weight)
    for p, wrong in ((0.0, ones), (1.0, n - ones)):
        (row,) = evaluate(np.full(n, p), y, weights=w, measures=["brier"], bootstrap=20_000, seed=seed).rows
        low, high = row.interval
        off = 6.0 * math.sqrt(0.025 * 0.975 / 20_000)
        assert low == 0.0 if wrong == 0 else abs(stats.beta.cdf(low, wrong, n - wrong + 1) - 0.025) <= off
        assert high == 1.0 if wrong == n else abs(stats.beta.sf(high, wrong + 1, n - wrong) - 0.025) <= off


def test_the_interval_of_a_mean_of_many_samples_is_the_normal_one(seed):
    """Ends within 15 % of the normal half-width: 2.5 % for one more sample, 5 standard errors of 3,999 draws."""
    generator = np.random.default_rng([seed, 38])
    p = generator.uniform(0.05, 0.95, 20_000)
    y = generator.random(len(p)) < p
    losses = {"brier": (y - p) ** 2, "log_loss": -np.log(np.where(y, p, 1.0 - p))}
    for row in evaluate(p, y, measures=list(losses), bootstrap=3999, seed=seed).rows:
        half = 1.96 * losses[row.name].std() / math.sqrt(len(p))
        assert row.interval == pytest.approx((row.value - half, row.value + half), abs=0.15 * half)


def test_extreme_losses_and_few_draws(monkeypatch):
    """Ten forecasts of 0.1, ten outcomes 0: the upper end is that of ten binomial zeros, with losses for outcomes."""
    row = evaluate([0.1] * 10, [0] * 10, measures=["log_loss"], bootstrap=20_000).rows[0]
    share = 1.0 - 0.025 ** (1 / 10)
    assert row.interval[1] == pytest.approx(share * -math.log(0.1) + (1.0 - share) * -math.log(0.9), rel=0.02)
    assert evaluate([0.0] * 10, [0] * 10, measures=["log_loss"], bootstrap=99).rows[0].interval[1] == math.inf
    # From fewer than 39 draws it goes from extreme to extreme; from 39 on never. Also of draws in parts.
    loss, each = np.linspace(0.1, 0.9, 50), np.ones(50)
    for at_once in (1 << 19, 20 * 50, 49):
        monkeypatch.setattr(intervals, "AT_ONCE", at_once)
        assert mean_interval(loss, each, each, (0.0, 1.0), 38, 0.95, 0) == (0.0, 1.0)
        low, high = mean_interval(loss, each, each, (0.0, 1.0), 39, 0.95, 0)
        assert 0.0 < low < high < 1.0
    values = np.arange(1.0, 20.0)
    assert order_statistic(values, 0.95) == 19.0  # 19 of 20 are no larger
    assert order_statistic(values[:-1], 0.95) == math.inf  # 18 draws are too few
    assert (order_statistic(values, 0.5), order_statistic(np.arange(999.0), 0.95)) == (10.0, 949.0)


def test_a_row_of_hardly_a_weight_is_no_sample():
    """Floats hold no square of 1e-200; the row has no loss that might be the largest."""
    p, y, w = (
        np.append(np.full(40, 0.3), 0.9),
        np.append(np.arange(40) % 3 // 2, 0),
        np.append(np.ones(40), 1e-200),
    )
    with_it, without = (
        evaluate(p[:n], y[:n], weights=w[:n], measures=["brier"], bootstrap=99).rows[0] for n in (41, 40)
    )
    assert with_it.interval == pytest.approx(without.interval)


@pytest.mark.parametrize("name", ["scdl", "scdl_binned"])
def test_points_of_a_grid_with_hardly_a_weight(name):
    """A weight near 1e-298, of which floats hold no square, is that of the point 1/m."""
    row = evaluate(np.arange(60) * 1e-300, np.arange(60) % 2, measures=[name], bootstrap=99).rows[0]
    assert row.interval[0] <= row.value <= row.interval[1]


# ---------------------------------------------------------------- ends by witnesses


def random_block(generator, v, n):
    """Samples of levels v with random chances, some levels without any."""
    counts = generator.multinomial(n, generator.dirichlet(np.ones(len(v))))
    ones = generator.binomial(counts, np.clip(v + 0.3 * generator.standard_normal(len(v)), 0.0, 1.0))
    mass = np.stack((counts - ones, ones)).astype(float)
    return Block(mass, mass)


def all_levels(v, block):
    """Γ with all levels, also those that hold no sample of a block."""
    return JointDistribution.from_sorted_levels(v, np.maximum(block.mass.sum(axis=0), 1e-9), 0.0 * v)


SPECS = [
    ("cdl", {}), ("v_cdl", {}), ("cfdl", {}), ("cfdl", {"task": v_shaped(0.5)}), ("cfdl", {"task": three_action()}),
    ("ece", {}), ("binned_ece", {"bins": 4}), ("binned_ce", {"bins": [0.0, 0.3, 1.0]}), ("scdl", {}),
    ("scdl_binned", {"m": 8}), ("scdl_binned", {"m": 5, "soft": False}),
    ("interval_ce", {}), ("interval_ce", {"width": "max"}), ("interval_ce_bracket", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), SPECS)
def test_no_witness_gains_more_than_the_measure(name, options, seed):
    """On any population, whatever samples it was found on. On many of its own samples it gains most of the value."""
    generator = np.random.default_rng([seed, 92])
    for i in range(60):
        v = np.sort(generator.integers(0, 41, 12)) / 40 if i % 2 else np.sort(generator.random(12))
        v = np.unique(v)
        block, other = random_block(generator, v, 10_000_000), random_block(generator, v, 60)
        gamma = past_of(v, block).gamma
        value = ends(MEASURES[name].function(gamma, **options))[1]
        kind, given = kind_of(name, options, all_levels(v, block))
        few = past_of(v, other)
        for past in (few, fitted(few, other), past_of(v, block)):
            gains, most = kind.find(past, **given)
            mean = float((gains * block.mass).sum()) / block.mass.sum()
            assert min(mean, most) <= value + 1e-9
        if name not in ("scdl", "interval_ce", "interval_ce_bracket"):
            assert mean >= 0.99 * value - 1e-4


@pytest.mark.parametrize(("name", "options"), [spec for spec in SPECS[:-3] if spec[0] != "scdl"])
def test_upper_ends_allow_for_the_error_of_the_best_witness(name, options, seed):
    """Value and upper end are 1.95 standard deviations of the mean gain of the best witness apart, or more."""
    generator = np.random.default_rng([seed, 93])
    for _ in range(60):
        v = np.unique(generator.random(12))
        block = random_block(generator, v, 2000)
        past = past_of(v, block)
        gamma, squares = past.gamma, block.squares[:, block.mass.sum(axis=0) > 0.0]
        q = v.copy()
        q[block.mass.sum(axis=0) > 0.0] = gamma.means
        kind, given = kind_of(name, options, all_levels(v, block))
        gains, _ = kind.find(Past(gamma, gamma, v, q, 0.0), **given)
        mean = float((gains * block.mass).sum()) / 2000
        deviation = math.sqrt(float((gains**2 * block.mass).sum()) / 2000 - mean**2) / math.sqrt(2000)
        high = kind.above(gamma, squares, 0.025, **kind_of(name, options, gamma)[1])
        assert high >= MEASURES[name].function(gamma, **options) + 1.95 * deviation


@pytest.mark.parametrize(("name", "options"), SPECS)
def test_samples_of_one_weight_have_the_ends_of_as_many_samples_without(name, options, seed):
    generator = np.random.default_rng([seed, 98])
    v = np.unique(generator.random(12))
    block, found = random_block(generator, v, 200), []
    for w in (1.0, 4.0):  # a power of 2, which rounds nothing
        heavy = Block(w * block.mass, w**2 * block.squares)
        past, held = past_of(v, heavy), heavy.mass.sum(axis=0) > 0.0
        kind, given = kind_of(name, options, all_levels(v, heavy))
        gains = [kind.find(each, **given)[0] for each in (past, fitted(past, heavy))]
        mine = {} if name == "interval_ce" else kind_of(name, options, past.gamma)[1]
        found.append((*gains, kind.above(past.gamma, heavy.squares[:, held], 0.025, **mine)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_share_the_samples_out(weighted, seed):
    """Their masses add up to those of Γ; of 8000 samples none has fewer than 800 (chance below 1e-10)."""
    generator = np.random.default_rng([seed, 94])
    p, y = generator.integers(0, 11, 8000) / 10, generator.random(8000) < 0.4
    w = np.ones(8000) * 2.0 if weighted else None
    gamma = JointDistribution.from_samples(p, y, weights=w)
    samples = (p, y.astype(float), w) if weighted else None
    blocks = list(Resample(gamma, samples).blocks(generator))
    assert len(blocks) == BLOCKS
    total = sum(block.mass for block in blocks)
    np.testing.assert_array_equal(total, [gamma.counts - gamma.positives, gamma.positives])
    assert min(block.mass.sum() for block in blocks) >= 800 * (2.0 if weighted else 1.0)
    squares = sum(block.squares for block in blocks)
    np.testing.assert_array_equal(squares, total * (2.0 if weighted else 1.0))


def test_blocks_hold_whole_clusters_and_gains_are_summed_by_cluster(seed):
    """Each of 60 clusters is in one block, with all of its weight and the sum of its gains."""
    generator = np.random.default_rng([seed, 95])
    p, y, w = generator.integers(0, 5, 300) / 4, (generator.random(300) < 0.5) * 1.0, generator.random(300)
    of = np.repeat(np.arange(60), 5)
    resample = Clustered(JointDistribution.from_samples(p, y, weights=w), (p, y, w), of)
    gains = generator.standard_normal((2, 5))
    parts = [block.measured(gains) for block in resample.blocks(generator)]
    mean, mass, squares = (np.concatenate(part) for part in zip(*parts, strict=True))
    order, each = np.argsort(mass), np.bincount(of, w)
    np.testing.assert_allclose(mass[order], np.sort(each))
    total = np.bincount(of, w * gains[y.astype(int), (4 * p).astype(int)])
    np.testing.assert_allclose((mean * mass)[order], total[np.argsort(each)])
    np.testing.assert_allclose(squares, mass**2)
    # (Σ w g)² ≤ (Σ w) Σ w g² in each cluster
    assert (resample.powers * gains**2).sum() >= (total**2).sum()


def test_the_line_of_log_odds_is_the_one_that_outcomes_come_from(seed):
    """Of 10^6 samples a line with slope 1/2 is found to within .01, 7 standard errors; of none the forecasts stay."""
    v = np.arange(1, 20) / 20
    n, q = np.full(19, 1e6 / 19).round(), special.expit(0.5 * special.logit(v) + 0.2)
    ones = np.random.default_rng([seed, 96]).binomial(n.astype(int), q)
    block = Block(*[np.stack((n - ones, ones))] * 2)
    assert fitted(past_of(v, block), block).q == pytest.approx(q, abs=0.01)
    # Of some samples of weight 3 it is drawn to the forecasts as without weights.
    few = [Block(w * block.mass / 5e4, w**2 * block.mass / 5e4) for w in (1.0, 3.0)]
    plain, heavy = (fitted(past_of(v, each), each).q for each in few)
    assert heavy == pytest.approx(plain, rel=1e-6)
    # Forecasts of 0 and 1 keep their means, and have the means that they say where these are right.
    v_ = np.array([0.0, 0.5, 1.0])
    for mass in ([[9.0, 9.0, 3.0], [1.0, 4.0, 6.0]], [[9.0, 5.0, 0.0], [0.0, 5.0, 6.0]]):
        block_ = Block(np.array(mass), np.array(mass))
        means = mass[1][0] / 10.0, mass[1][2] / (mass[0][2] + 6.0)
        for past in (past_of(v_, block_), fitted(past_of(v_, block_), block_)):
            assert past.q[[0, 2]] == pytest.approx(means)
    one = Block(*[np.where(np.arange(19) == 9, 1e-9, np.zeros((2, 19)))] * 2)
    assert fitted(past_of(v, one), one).q == pytest.approx(v, abs=1e-6)


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_upper_ends_of_bins_are_normal_ones_with_two_outcomes_of_either_kind_added(weight):
    """Of signs the variance is that of ±(y − v). Of weights with norm 1 it is at most that of all on one bin."""
    v = np.array([0.1, 0.2, 0.6, 0.9])
    counts, ones = np.array([40.0, 60.0, 50.0, 50.0]), np.array([2.0, 20.0, 24.0, 48.0])
    gamma = JointDistribution.from_counts(v, weight * counts, weight * ones)
    squares, of = weight**2 * np.stack((counts - ones, ones)), np.array([0, 0, 1, 1])
    each = squares / gamma.weight**2 + 2.0 * gamma.mass / 200.0**2
    variance = (each * np.stack((v**2, (1.0 - v) ** 2))).sum(axis=0)
    sums, mass, z = np.bincount(of, gamma.residuals), np.array([0.5, 0.5]), stats.norm.isf(0.025)
    for name, want in (
        ("ece", np.abs(gamma.residuals).sum() + z * variance.sum() ** 0.5),
        ("binned_ece", np.abs(sums).sum() + z * variance.sum() ** 0.5),
        ("binned_ce", (sums**2 / mass).sum() ** 0.5 + z * (np.bincount(of, variance) / mass).max() ** 0.5),
    ):
        kind, options = kind_of(name, {} if name == "ece" else {"bins": 2}, gamma)
        assert kind.above(gamma, squares, 0.025, **options) == pytest.approx(want)


@pytest.mark.parametrize(
    "levels", [[(0.2, 40, 12), (0.5, 30, 9), (0.9, 50, 50), (0.95, 30, 0)], [(0.4, 60, 3)]]
)
@pytest.mark.parametrize("name", ["cfdl", "v_cdl"])
def test_upper_ends_of_regrets_are_by_the_largest_deviation_of_a_gain(name, levels):
    """A fifth of the error is for the mean outcomes of all levels, which Clopper and Pearson's intervals hold.

    Of the quadratic task a level may gain by a mean at either end. Of a kink t it may where t is between
    the forecast and a mean of the interval.
    """
    fails, (v, n, ones) = 0.05, map(np.array, zip(*levels, strict=True))
    gamma, tail, each = JointDistribution.from_counts(v, n, ones), 0.5 * 0.2 * fails / len(v), []
    for k, many in zip(ones, n, strict=True):
        low = stats.beta.ppf(tail, k, many - k + 1) if k else 0.0
        each.append((low, stats.beta.isf(tail, k + 1, many - k) if k < many else 1.0))
    if name == "cfdl":
        square = sum(
            many
            * max(
                (1 - q) * (a**2 - x**2) ** 2 + q * ((1 - x) ** 2 - (1 - a) ** 2) ** 2
                for a, q in product(both, both)
            )
            for x, many, both in zip(v, n, each, strict=True)
        )
    else:
        square = max(
            sum(many * max((1 - q) * t**2 + q * (1 - t) ** 2 for q in both)
                for x, many, both in zip(v, n, each, strict=True) if min(*both, x) < t < max(*both, x) or t == x)
            / max(t, 1 - t) ** 2
            for t in v
        )  # fmt: skip
    options = {"task": "quadratic"} if name == "cfdl" else {}
    found = kind_of(name, options, gamma)[0].above(gamma, np.stack((n - ones, ones)), fails, **options)
    value = MEASURES[name].function(gamma, **options)
    assert found == pytest.approx(value + stats.norm.isf(0.8 * fails) * math.sqrt(square) / n.sum())


def test_ends_of_all_grids_share_the_error():
    """Of grids up to 1/(2√n): the least of their ends, none of which is below 1/m."""
    generator = np.random.default_rng(3)
    for n in (60, 2000):
        block = random_block(generator, np.arange(1, 20) / 20, n)
        gamma, squares = past_of(np.arange(1, 20) / 20, block).gamma, block.squares
        squares = squares[:, block.mass.sum(axis=0) > 0.0]
        grids = [2**k for k in range(11) if 2**k <= 2.0 * n**0.5]
        ends_ = [
            max(kind_of("scdl_binned", {}, gamma)[0].above(gamma, squares, 0.05 / len(grids), m=m), 1.0 / m)
            for m in grids
        ]
        assert kind_of("scdl", {}, gamma)[0].above(gamma, squares, 0.05) == pytest.approx(min(ends_))


def test_witnesses_are_learnt_on_all_blocks_before_and_the_better_kind_is_taken():
    """By what each has gained so far, and at first the line. An end that is not alone fails in half of the cases."""
    generator, v, asked = np.random.default_rng(4), np.arange(1, 10) / 10, []
    blocks = [random_block(generator, v, 40) for _ in range(6)]
    gamma = past_of(v, sum(blocks[1:], start=blocks[0])).gamma

    def find(past):
        return np.stack((-past.q, past.q)), 0.7

    def limit(gains, mass, squares, within, level):
        asked.append((gains, mass, squares, within, level))
        return float(np.average(gains, weights=mass)), 1.0

    kind = Kind(find, lambda gamma, squares, fails: fails)
    found = witnessed_ends({0: (kind, {}, True), 1: (kind, {}, False)}, gamma, None, blocks, 0.9, limit)
    gained, measured = np.zeros(2), []
    for i, block in enumerate(blocks[1:], start=1):
        before = sum(blocks[1:i], start=blocks[0])
        either = [find(each)[0] for each in (past_of(v, before), fitted(past_of(v, before), before))]
        better = either[1] if gained[1] >= gained[0] else either[0]
        gained += [(each * block.mass).sum() for each in either]
        measured += zip(better[block.mass > 0.0], block.mass[block.mass > 0.0], strict=True)
    gains, mass = np.array(measured).T
    low = np.average(gains, weights=mass)
    assert (found[0], found[1]) == (
        (pytest.approx(low), pytest.approx(0.05)),
        (found[0][0], pytest.approx(0.025)),
    )
    for seen, level in zip(asked, (0.9, 0.95), strict=True):
        assert seen[0] == pytest.approx(gains)
        assert (seen[1].sum(), seen[2].sum(), seen[4]) == (mass.sum(), mass.sum(), pytest.approx(level))
        assert seen[3][0] <= gains.min() <= gains.max() <= seen[3][1]


def test_radii_are_in_proportion_to_mean_seminorms():
    """A share `level` of either kind of draws is below all of them; a seminorm that is always 0 has no radius."""
    rng = np.random.default_rng(5)
    kinds = [
        rng.exponential(size=(99, 3)) * [1.0, 5.0, 0.0],
        rng.exponential(size=(99, 3)) ** 2 * [1.0, 5.0, 0.0],
    ]
    scale = np.concatenate(kinds).mean(axis=0)
    times = max(np.sort((draws[:, :2] / scale[:2]).max(axis=1))[89] for draws in kinds)  # the 90th of 99
    assert joint_radii(kinds, 0.9) == pytest.approx(times * scale)
    assert (joint_radii(kinds, 0.995) == math.inf).all()
    assert (joint_radii([np.full((9, 2), math.inf)], 0.5) == math.inf).all()


def test_means_of_levels_are_drawn_towards_the_forecasts():
    """By τ²/(τ² + s²): s² is the variance if calibrated, τ² the mean square of q − v less the mean of s²."""
    v, n, ones = np.array([0.2, 0.5, 0.9]), np.array([40.0, 100.0, 10.0]), np.array([16.0, 62.0, 9.0])
    block = Block(np.stack((n - ones, ones)), 2.0 * np.stack((n - ones, ones)))
    noise = v * (1.0 - v) * 2.0 / n
    true = (n @ ((ones / n - v) ** 2 - noise)) / n.sum()
    assert true > 0.0
    past = past_of(v, block)
    assert past.q == pytest.approx(v + true / (true + noise) * (ones / n - v))
    assert (past.shrunk.means.tolist(), past.unit) == (past.q.tolist(), 2.0)
    assert past.gamma.means == pytest.approx(ones / n)


# ---------------------------------------------------------------- what is drawn


def test_p_values_and_means_are_those_of_calibrated_draws(seed):
    """The share of B + 1 values that are as large, with the value itself; draws go on from one generator."""
    rng = np.random.default_rng([seed, 41])
    p = rng.integers(1, 10, 300) / 10
    y = rng.random(300) < p
    own = lambda gamma: -float(gamma.residuals.sum())  # noqa: E731
    rows = evaluate(p, y, measures=["ece", "cutoff_ce", own], reference=60, seed=5).rows
    resample = Resample(JointDistribution.from_samples(p, y), None)
    generator = np.random.default_rng([5, 1])
    drawn = [resample.calibrated(generator) for _ in range(60)]
    for row, of in zip(rows, (MEASURES["ece"].function, MEASURES["cutoff_ce"].function, own), strict=True):
        values = np.array([of(gamma) for gamma in drawn])
        assert row.if_calibrated == pytest.approx(values.mean())
        assert row.p_value == pytest.approx((1 + (values >= row.value - 1e-12).sum()) / 61)


def test_a_function_of_ones_own_has_the_hull_of_two_bootstrap_intervals(seed):
    """That of quantiles of its resamples, and that mirrored at the value; within the range of the record."""
    rng = np.random.default_rng([seed, 42])
    p, y = rng.integers(1, 10, 300) / 10, rng.integers(0, 2, 300)
    own = lambda gamma: float(gamma.residuals.sum()) ** 2  # noqa: E731
    (row,) = evaluate(p, y, measures=[own], bootstrap=199, level=0.8, seed=5).rows
    resample, generator = Resample(JointDistribution.from_samples(p, y), None), np.random.default_rng([5, 0])
    values = np.sort([own(resample.bootstrap(generator)) for _ in range(199)])
    low, high = values[19], values[179]
    want = min(low, 2.0 * row.value - high), max(high, 2.0 * row.value - low)
    assert row.interval == pytest.approx(want, abs=1e-12)


def test_draws_of_intervals_are_those_of_their_generators(monkeypatch, seed):
    """Of seminorms by both kinds of changes, of blocks, and of a mean loss; the same whatever else is measured."""
    rng = np.random.default_rng([seed, 43])
    p, y = rng.integers(1, 10, 300) / 10, rng.integers(0, 2, 300)
    resample, sampling = Resample(JointDistribution.from_samples(p, y), None), MEASURES["cutoff_ce"].sampling
    drawn, kinds = [], []
    monkeypatch.setattr(
        intervals, "joint_radii", lambda *given: drawn.extend(given[0]) or joint_radii(*given)
    )
    (row,) = evaluate(p, y, measures=["cutoff_ce"], bootstrap=99, seed=5).rows
    for number, kind in ((2, "resampled"), (3, "calibrated")):
        changes = resample.changes(kind, 99, np.random.default_rng([5, number]))
        kinds.append(np.concatenate([sampling.deviations(change) for change in changes]))
    np.testing.assert_array_equal(drawn, kinds)
    (radius,) = joint_radii(kinds, 0.95)
    assert row.interval == pytest.approx((max(row.value - radius, 0.0), min(row.value + radius, 1.0)))
    seen = []

    def witnessed(kinds, gamma, squares, blocks, *_):
        seen.extend(blocks)
        return dict.fromkeys(kinds, (0.0, 1.0))

    monkeypatch.setattr(intervals, "witnessed_ends", witnessed)
    evaluate(p, y, measures=["cdl"], bootstrap=9, seed=5)
    for one, block in zip(seen, resample.blocks(np.random.default_rng([5, 6])), strict=True):
        np.testing.assert_array_equal(one.mass, block.mass)
    loss, generator = np.array([0.1, 0.7]), np.random.default_rng([5, 4])
    weights, more = generator.standard_gamma(np.ones(2), (99, 2)), generator.standard_exponential(99)
    low, high = (np.sort((weights @ loss + more * end) / (weights.sum(axis=1) + more)) for end in (0.0, 1.0))
    assert mean_interval(loss, np.ones(2), np.ones(2), (0.0, 1.0), 99, 0.9, 5) == pytest.approx(
        (low[4], high[94])
    )


@pytest.mark.parametrize("weighted", [False, True, "many"])
def test_changes_have_the_covariance_of_resampled_masses(weighted, seed, monkeypatch):
    """4000 changes against as many resamples: variances of residuals within 20 % and what two added outcomes make.

    Means of resamples are those of the samples, within 6 standard errors; each misses with 2e-9.
    """
    generator = np.random.default_rng([seed, 33])
    p = generator.integers(1, 8, 500) / 8
    y = (generator.random(500) < 0.3).astype(float)
    w = generator.random(500) if weighted else np.ones(500)
    if weighted == "many":  # outcomes of more samples are about normal at each level
        monkeypatch.setattr(resampling, "MOST_LEVELS", 499)
    gamma = JointDistribution.from_samples(p, y, weights=w if weighted else None)
    resample = Resample(gamma, (p, y, w) if weighted else None)
    new = np.array([resample.bootstrap(generator).residuals for _ in range(4000)])
    drawn, calibrated = (
        np.concatenate([change.residuals for change in resample.changes(kind, 4000, generator)])
        for kind in ("resampled", "calibrated")
    )
    assert drawn.shape == new.shape
    assert (np.abs(new.mean(axis=0) - gamma.residuals) < 6.0 * new.std(axis=0) / 4000**0.5).all()
    assert drawn.std(axis=0) == pytest.approx(new.std(axis=0), rel=0.1)
    assert np.abs(drawn.mean(axis=0)).max() <= 6.0 * (drawn.std(axis=0) / math.sqrt(4000)).max()
    squares = np.bincount(np.searchsorted(gamma.predictions, p), w**2)
    exact = np.sqrt(squares * gamma.predictions * (1.0 - gamma.predictions)) / w.sum()
    assert calibrated.std(axis=0) == pytest.approx(exact, rel=0.1)
    assert resample.samples == pytest.approx(w.sum() ** 2 / (w**2).sum())


def test_changes_are_drawn_in_parts(monkeypatch):
    """As many numbers at once as there is room for; with clusters each has one of a row, too."""
    p, y, of = np.arange(40) % 4 / 4, np.arange(40) % 3 / 2.0 == 0.5, np.arange(40) // 2
    gamma = JointDistribution.from_samples(p, y)
    monkeypatch.setattr(resampling, "AT_ONCE", 40)
    for resample, parts in (
        (Resample(gamma, None), [10, 10, 5]),
        (Clustered(gamma, (p, y * 1.0, np.ones(40)), of), [1] * 25),
    ):
        for kind in ("resampled", "calibrated"):
            changes = resample.changes(kind, 25, np.random.default_rng(0))
            assert [len(change.residuals) for change in changes] == parts


@pytest.mark.parametrize("most", [40, 39])
def test_outcomes_of_rows_with_weights_are_drawn_one_by_one_unless_they_are_many(monkeypatch, most):
    """Then their sums are about normal, and no whole numbers."""
    monkeypatch.setattr(resampling, "MOST_LEVELS", most)
    p, ones = np.arange(40) % 4 / 4, np.ones(40)
    gamma = JointDistribution.from_samples(p, ones, weights=ones)
    (change,) = Resample(gamma, (p, ones, ones)).changes("calibrated", 5, np.random.default_rng(0))
    sums = 40.0 * change.residuals + gamma.counts * gamma.predictions
    assert np.allclose(sums, np.rint(sums)) is (most == 40)


@pytest.mark.parametrize("most", [40, 39])
def test_levels_are_drawn_at_groups_where_there_are_more_than_so_many(monkeypatch, most):
    monkeypatch.setattr(resampling, "MOST_LEVELS", most)
    gamma = JointDistribution.from_samples(np.arange(40) / 40, np.arange(40) % 2)
    (change,) = Resample(gamma, None).changes("resampled", 5, np.random.default_rng(0))
    assert (change.gamma is gamma) is (most == 40)


def test_many_levels_are_drawn_at_groups_of_equal_weight(seed):
    generator = np.random.default_rng([seed, 34])
    p = generator.random(3 * MOST_LEVELS)
    gamma = JointDistribution.from_samples(p, generator.random(len(p)) < p)
    for samples in (None, (p, np.ones(len(p)), np.ones(len(p)))):
        for kind in ("resampled", "calibrated"):
            change = next(iter(Resample(gamma, samples).changes(kind, 2, generator)))
            assert change.gamma.levels <= MOST_LEVELS
            off = np.abs(change.gamma.predictions[change.place] - gamma.predictions)
            assert gamma.mass @ off <= 1.0 / MOST_LEVELS
            assert change.gamma.mass.max() < 2.0 / MOST_LEVELS
            np.testing.assert_allclose(np.bincount(change.place, gamma.counts), change.gamma.counts)


# ---------------------------------------------------------------- where there is none

NOISE = ["ece", "cfdl", "v_cdl", "cdl"]
#: measures in ways that have no interval
WITHOUT = [{"name": "binned_ce", "debiased": True}, {"name": "binned_ce", "strategy": "sweep"}]


def levels(counts):
    """Levels with these counts of samples, every third with outcome 1."""
    p = np.repeat((np.arange(len(counts)) + 1.0) / (len(counts) + 1.0), counts)
    return p, np.arange(len(p)) % 3 == 0


@pytest.mark.parametrize(
    ("counts", "how"),
    [
        ([30] * 10, "drawn"), ([29] * 10, "few"), ([95, 5], "drawn"), ([94, 6], "few"), ([400], "drawn"),
        ([1] * 100, "open"), ([1] * 51 + [49], "open"), ([1] * 50 + [50], "few"),
    ],
)  # fmt: skip
def test_levels_with_few_samples_have_ends_by_witnesses_alone(counts, how):
    """30 samples are enough for draws, 29 are not; 5 % of the weight may be on such levels, 6 % may not.

    Where more than half of the weight is on levels with one sample, the upper end is open.
    """
    p, y = levels(counts)
    for row in evaluate(p, y, measures=NOISE, bootstrap=199).rows:
        assert row.interval[0] <= row.value < row.interval[1]
        assert "found on other samples" in row.interval_by
        assert ("open" in row.interval_by) == (how == "open")
        assert (row.interval[1] == 1.0) == (how == "open")
        assert row.name != "ece" or ("triangle inequality" in row.interval_by) == (how == "drawn")


@pytest.mark.parametrize(("light", "drawn"), [(1.0, True), (0.01, False)])
def test_a_weighted_level_counts_its_effective_samples(light, drawn):
    """One weight of 1 and 39 of 0.01: (1.39)²/1.0039 = 1.9 samples, not 40."""
    p, y = levels([40, 40])
    weights = np.where(np.arange(80) % 40 == 0, 1.0, light)
    (row,) = evaluate(p, y, weights=weights, measures=["ece"], bootstrap=30).rows
    assert ("triangle inequality" in row.interval_by) == drawn


def test_where_no_interval_is_right_none_is_printed_and_the_table_says_why(seed):
    rng = np.random.default_rng([seed, 71])
    p = rng.random(1000)
    fine = [{"name": "binned_ce", "bins": 200, "order": 3.0}, {"name": "smooth_ece_at", "sigma": 0.002},
            {"name": "random_interval_ce", "epsilon": 0.005}]  # fmt: skip
    for row in evaluate(p, rng.random(1000) < p, measures=fine, bootstrap=30).rows:
        assert row.interval is None
        assert "on bins with fewer than 30 samples" in row.interval_by
    v = rng.integers(0, 21, 3000) / 20
    for n, specs in ((3000, WITHOUT), (400, [{"name": "ece", "order": 2.0}])):
        found = evaluate(v[:n], rng.random(n) < v[:n], measures=specs, bootstrap=50).rows[0]
        assert found.interval is None
        assert found.interval_by.startswith("none: ")
    mine = lambda gamma: gamma.base_rate  # noqa: E731
    p = p[:300]
    result = evaluate(p, rng.random(300) < p, measures=["ece", "cdl", "smooth_ce", mine], bootstrap=39)
    for where in (" ".join(str(result).split()), " ".join(result._repr_html_().split())):
        said = "intervals: 95 % each, for the population value (39 draws of either kind), but for functions of your own"
        assert said in where
        assert "upper end open for ece, cdl, their largest value is printed: 100% of the weight" in where
    table = result.table()
    assert table.loc["ece", "interval_upper"] == 1.0
    assert "BGHN23 Theorem 9.5" in table.loc["smooth_ce", "interval_by"]


# ---------------------------------------------------------------- finite samples

#: measures of which no bound with explicit constants is known
NO_BOUND = (
    "binned_ce", "soft_binned_ece", "log_loss", "nce", "subsampled_smooth_ce", "subsampled_step_ce", "mce", "ace",
    "rmsce", "brier_skill", "ici", "e50", "e90",
)  # fmt: skip


def test_finite_sample_intervals_are_by_means_of_seminorms_and_mcdiarmids_inequality(seed):
    """Of n samples: E[L_j] ≤ c_j/√n, and a further √(log(J/α)/2n) times the spread; wider than by draws."""
    generator, slow = np.random.default_rng([seed, 37]), ("distance_lower", "distance_upper", "interval_ce")
    names = [name for name in MEASURES if name not in (*NOISE, *NO_BOUND, *slow, "interval_ce_bracket")]
    p = generator.random(400)
    y = generator.random(400) < p + 0.05 * np.sin(6.0 * p)
    specs = [{"name": name, **MEASURES[name].example} for name in names]
    sure = evaluate(p, y, measures=specs, method="finite-sample").rows
    drawn = evaluate(p, y, measures=specs, bootstrap=99).rows
    coarse = ("smooth_ce", "brier", "cutoff_ce", "scdl", "smooth_ece", "surrogate_interval_ce")
    for name, row, other in zip(names, sure, drawn, strict=True):
        record = MEASURES[name]
        assert row.interval[0] <= row.ends[0] <= row.ends[1] <= row.interval[1]
        assert "McDiarmid" in row.interval_by
        assert name not in coarse or row.interval[1] >= other.interval[1]
        one = Measurement(name, record.function, record, record.example, row.ends)
        for radii, (sampling, options, _) in zip(certain_radii(one, 400.0, 0.95), one.parts, strict=True):
            means = np.asarray(sampling.means(400.0, **options))
            many = sum(len(part.means(400.0, **more)) for part, more, _ in one.parts)
            rest = sampling.spread * math.sqrt(math.log(many / 0.05) / 800.0)
            assert radii == pytest.approx(means / 20.0 + rest)
    made_up = evaluate(p, y, measures=[*NO_BOUND, lambda gamma: gamma.base_rate], method="finite-sample")
    assert all(row.interval is None and row.interval_by.startswith("none: ") for row in made_up.rows)


def test_changes_at_groups_of_levels_are_as_large_as_at_all_levels_however_near_they_are(seed):
    """Of 6000 forecasts within .001, where a grid of 1/4095 has five points.

    The mean supremum over thresholds, of 1500 draws each, has a relative error of 1.5 %. Groups give 1.055 of it, so
    that less than .95 is seen in fewer than 1e-9 of cases. Five points give .76, also widened by 7 %.
    """
    rng = np.random.default_rng(seed)
    p = np.sort(0.3 + 0.001 * rng.random(6000))
    gamma = JointDistribution.from_samples(p, rng.random(6000) < p)
    changes = Resample(gamma, None).changes("calibrated", 1500, np.random.default_rng(seed + 1))
    sups = [MEASURES["cutoff_ce"].sampling.deviations(change)[:, 0] for change in changes]
    lacking = math.sqrt(2.0 * math.log(2 * MOST_LEVELS) / MOST_LEVELS)
    assert lacking == pytest.approx(resampling.WIDENED - 1.0)
    walks = np.cumsum((rng.random((1500, 6000)) < p) - p, axis=1) / 6000
    wanted = np.maximum(walks.max(axis=1), 0.0) - np.minimum(walks.min(axis=1), 0.0)
    assert np.concatenate(sups).mean() >= 0.95 * wanted.mean()


FOUR = [0.1, 0.4, 0.6, 0.9], [0.4, 0.6, 0.4, 0.7]


@pytest.mark.parametrize("samples", [1.0, 4.0])
@pytest.mark.parametrize(
    ("name", "options", "v", "q"),
    [
        *(("cfdl", {"task": task}, *FOUR) for task in (v_shaped(0.5), three_action(), "quadratic")),
        *((name, {}, [v], [q]) for name in ("cdl", "v_cdl") for v, q in ((0.5, 0.6), (0.3, 0.4), (0.8, 0.6))),
        *(
            ("scdl_binned", {"m": 10, "soft": soft}, [v], [q])
            for soft in (False, True)
            for v, q in ((0.5, 0.8), (0.7, 0.2))
        ),
    ],
)
def test_the_upper_end_of_a_regret_is_no_wider_than_the_normal_one(name, options, v, q, samples):
    """Of many samples the best swap is sure. The end is 1.96 errors of its mean gain above the value, and 2.05 as
    intervals of the levels take a fifth of the error. For all tasks that holds of one level. The square of the mean is
    in the error. Samples of weight 4 change nothing.
    """
    v, q, n = np.array(v), np.array(q), 1e8 / len(v)
    squares = np.stack((n * (1.0 - q), n * q))
    gamma = JointDistribution.from_levels(v, np.full(len(v), samples * n), q)
    kind, _ = kind_of(name, options, gamma)
    gains, _ = kind.find(Past(gamma, gamma, v, q, 0.0), **options)
    error = math.sqrt(float((gains**2 * squares).sum())) / 1e8
    above = kind.above(gamma, samples**2 * squares, 0.025, **options) - MEASURES[name].function(
        gamma, **options
    )
    assert 2.05 * error <= above <= 2.1 * error
