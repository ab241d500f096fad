"""How often intervals of `evaluate` hold the truth, in each kind of rows, with controls that do not."""

import math
from collections import Counter
from itertools import repeat

import numpy as np
import pytest
from scipy import special, stats

from onlinecal.logs import clusters as clustering
from onlinecal.logs.resampling import Resample
from onlinecal.measures import MEASURES, auc
from tests import coverage_line
from tests.coverage_intervals import (
    FEW,
    LEVELS,
    MEANS,
    POPULATIONS,
    Design,
    clusters,
    few_rows,
    independent,
    intervals_of,
    means,
    panel,
    population,
    times,
)  # fmt: skip
from tests.marks import slow


def enough(held, made, share=0.93):
    """Whether as many intervals hold as do if each does with this probability, but for 1e-8."""
    return held >= stats.binom.ppf(1e-8, made, share)


def drawn(design, names, simulations, seed, draws=199):
    return intervals_of(design, names, repeat(np.random.default_rng(seed), simulations), draws)


# ---------------------------------------------------------------- independent rows

#: measures that take long; their intervals follow from others' (their truth is tested for all Γ)
DISTANCES = ("distance_lower", "distance_upper", "interval_ce", "interval_ce_bracket")
#: measures in other ways than in the catalogue, which have intervals of their own
ORDERS = [
    "atb", {"name": "binned_ce"}, {"name": "binned_ce", "bins": 4, "strategy": "quantile"},
    {"name": "binned_ce", "bins": [0.0, 0.1, 0.45, 1.0]}, {"name": "binned_ce", "order": 3.0},
    {"name": "binned_ce", "order": math.inf}, {"name": "ece", "order": 2.0}, {"name": "ece", "order": math.inf},
]  # fmt: skip
NAMES = {
    "measures": [{"name": name, **one.example} for name, one in MEASURES.items() if name not in DISTANCES],
    "orders": ORDERS,
    "distances": list(DISTANCES),
}
#: design, n, of the small size of the slow tests
SMALL = [
    ("calibrated, 21 levels", 1000), ("one level in four is off", 1000), ("mild, continuous", 200),
    ("calibrated, continuous", 200), ("rare, too low", 200), ("rare, calibrated", 200), ("three levels, mild", 200),
    ("one level", 1000),
]  # fmt: skip


@pytest.mark.parametrize("kind", [slow("measures"), "orders", slow("distances")])
def test_intervals_hold_the_truth_in_93_of_100_cases(full, seed, kind):
    """They are made for 95 %; of N simulations, fewer than the 1e-8 quantile of Binomial(N, 0.93) hold it.

    There are at most 36 designs and 24 measures, or 8 with options: by chance that happens with less than 1e-5. The
    same is held for a measure in all designs. The small size has every other of `SMALL`, the rest for other seeds.
    """
    cases = [(d, n) for d in POPULATIONS for n in (200, 1000, 5000)] if full else SMALL[seed % 2 :: 2]
    simulations, held, made = 300 if full else 30, Counter(), Counter()
    if kind == "distances":
        cases = [(design, 300) for design in ("calibrated, 21 levels", "mild, 21 levels")]
    for design, n in cases:
        of = POPULATIONS[design]
        for name, found in drawn(independent(of, n), NAMES[kind], simulations, [seed, n, of.levels]).items():
            held[name] += found.held
            made[name] += found.made
            assert enough(found.held, found.made), (design, n, name, found)
    for name in held:
        assert enough(held[name], made[name]), (name, held, made)
        # Of each order there are some, so that it is not held for want of intervals.
        assert kind == "measures" or made[name] >= simulations


_ODD = np.arange(1.0, 200.0, 2.0) / 200.0
_TWENTY, _FINE = (np.arange(20) + 0.5) / 20, (np.arange(500) + 0.5) / 500
#: CDL is 0.013
OVERCONFIDENT = population(_TWENTY, 0.1 + 0.8 * _TWENTY)
#: what widths of suprema are below, in multiples of the value of `OVERCONFIDENT`
SUPREMA = {"cdl": 2.0, "v_cdl": 3.5, "cfdl": 2.0, "scdl": 3.0, "ece": 0.8, "interval_ce": 1.3}


def _exponential(rng, n):
    return rng.exponential(size=n)


#: name → design, measures, the share of intervals that hold at least
DESIGNED = {
    f"scores of {n} rows, {said[0]:g} to {said[-1]:g} for {so[0]:g} to {so[-1]:g}": (
        independent(population(said, so, np.linspace(1.0, 0.02, len(said))), n), ("brier", "log_loss"), 0.94,
    )
    for said, so in [
        *((2.0 * rate * _ODD, 2.0 * rate * _ODD) for rate in (0.5, 0.1, 0.02)), (_ODD, np.full(100, 0.5)),
        (0.1 * _ODD, 0.2 * _ODD), (0.02 * _ODD, 0.04 * _ODD), (0.1 * _ODD, 0.04 * _ODD),
        (np.array([0.01, 0.9]), np.array([0.005, 0.7])),
    ]
    for n in (10, 30, 100)
} | {
    f"witnesses, {name}": (independent(of, n, weigh), [name for name in SUPREMA if name != "interval_ce"], 0.93)
    for name, of, n, weigh in [
        ("overconfident", OVERCONFIDENT, 4000, _exponential),
        ("calibrated", population(_TWENTY, _TWENTY), 4000, _exponential),
        ("500 levels", population(_FINE, 0.1 + 0.8 * _FINE), 40_000, None),
        ("two levels", population(np.array([0.3, 0.6]), np.array([0.33, 0.6])), 4000, _exponential),
    ]
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNED)
def test_scores_of_few_rows_and_suprema_of_weights_are_held(name, full, seed):
    """Made for 95 %: fewer than the 1e-8 quantile hold it in one of 68 cases by chance with below 1e-6."""
    design, names, share = DESIGNED[name]
    simulations = 300 if full else 40
    for one in drawn(design, names, simulations, [seed, 30], 199 if full else 99).values():
        assert one.made == simulations
        assert enough(one.held, one.made, share), (name, one)


@pytest.mark.slow
def test_ends_by_witnesses_tell_overconfident_from_calibrated(seed):
    """10,000 samples: lower ends above 0, and intervals no wider than `SUPREMA` times the value.

    Measured: 100, 93, 100, 100, 100, 100 % above 0 in 200. Of 30, fewer than 20 have probability below 1e-5 at 93 %,
    and fewer hold the truth than its 1e-8 quantile there. Mean widths are at least 10 standard errors below the bounds.
    """
    found = drawn(independent(OVERCONFIDENT, 10_000), list(SUPREMA), 30, [seed, 91])
    for name, one in found.items():
        assert (one.lower > 0.0).sum() >= 20
        assert enough(one.held, 30)
        assert one.width <= SUPREMA[name] * one.truth[1]


@pytest.mark.slow
def test_calibrated_forecasts_are_held_for_every_number_of_samples(seed):
    """25 samples, 19 draws: the interval holds 0 with a probability of at least 0.95, to the letter.

    Fewer than 119 of 150 have probability below 1e-11.
    """

    def draw(rng):
        p = rng.random(25) ** 3
        return p, rng.random(25) < p, None, None

    design = Design(POPULATIONS["calibrated, 21 levels"], draw)
    for one in drawn(design, ("smooth_ce", "cutoff_ce", "kernel_ce"), 150, [seed, 31], 19).values():
        assert one.held >= 119


@pytest.mark.slow
def test_lower_ends_of_few_rows_are_above_calibrated_forecasts_in_1_of_40_cases(full, seed, monkeypatch):
    """Each fails in 2.5 %: more than the 1 − 1e-8 quantile of Binomial(N, 0.025) by chance with below 1e-6, of 16.

    The control: gains on the same samples that witnesses were found on.
    """
    simulations = 300 if full else 40
    most = stats.binom.isf(1e-8, simulations, 0.025)
    designs = [("3 levels", 50, 5), ("3 levels", 50, 1), ("19 levels", 100, 1), ("distinct", 100, 1)]
    for levels, events, rows in designs:
        for name, one in few_rows(FEW[f"{levels}, calibrated"], events, rows, simulations, seed).items():
            assert one.above <= most, (levels, events, rows, name)
            assert one.below == 0, (levels, events, rows, name)  # the truth is 0
    blocks = Resample.blocks

    def same(self, generator):
        first, *others = blocks(self, generator)
        return [sum(others, start=first)] * 8

    monkeypatch.setattr(Resample, "blocks", same)
    assert few_rows(FEW["19 levels, calibrated"], 100, 1, 40, seed)["ece"].above > 30


@pytest.mark.slow
@pytest.mark.parametrize("levels", ["19 levels", "distinct"])
def test_few_rows_show_forecasts_that_are_far_too_bold(levels, seed):
    """Of 500 rows ECE's lower end is above 0 in .95 of cases, with the log odds doubled, and in .94 of distinct ones.

    Fewer than 17 of 30 have probability below 1e-6 at .9. Without the line no distinct forecast gives it.
    """
    assert (few_rows(FEW[f"{levels}, S-shaped"], 500, 1, 30, seed)["ece"].lower > 0.0).sum() >= 17


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["", "clusters", "weights"])
@pytest.mark.parametrize("chance", coverage_line.CHANCES)
def test_lines_of_log_odds_hold_the_truth(chance, kind, seed):
    """Of 400 samples 95 % intervals hold it in at least 91.5 %, 3.2 standard errors below."""
    design = coverage_line.rows(LEVELS, coverage_line.CHANCES[chance], 100, kind)
    names = ["calibration_in_the_large", "calibration_intercept", "calibration_slope"]
    for one in drawn(design, names, 400, [seed, 5], 1).values():
        assert one.made > 0.99 * 400
        assert one.held > 0.915 * one.made


def test_auc_of_three_events_is_held(seed):
    """They may all be at one of four forecasts, where their placements do not vary: of 100 logs 82 held the truth."""
    v = np.array([0.01, 0.02, 0.05, 0.1])

    def draw(rng):
        p, y = v, np.zeros(4)
        while not (y.sum() == 3 and 0.0 < auc(p, y) < 1.0):
            p = rng.choice(v, 100)
            y = (rng.random(100) < p) * 1.0
        return p, y, None, None

    assert drawn(Design(population(v, v), draw), ["auc"], 100, [seed, 8], 1)["auc"].held >= 95


# ---------------------------------------------------------------- weights, clusters and times

#: what mean widths of intervals are below
WIDE = {
    "300 rows, squares of exponential weights": 0.16, "300 rows, Pareto weights, events of 4 %": 0.07,
    "50 clusters of 50": 0.03, "15 clusters of 50": 0.06, "15 clusters of 50, events of 5 %": 0.3,
    "20 clusters of 5 equal outcomes": 0.3, "60 clusters of 1 to 20": 0.08,
}  # fmt: skip


@pytest.mark.parametrize("design", WIDE)
def test_brier_scores_of_weights_and_clusters_are_held(design, seed):
    """Of 150, fewer hold the truth than the 1e-7 quantile of Binomial(150, .94) by chance with below 1e-6."""
    found = means(MEANS[design], 150, seed)
    assert found.held >= stats.binom.ppf(1e-7, 150, 0.94)
    assert found.width <= WIDE[design]


def test_extremes_seen_do_not_do_for_rare_outcomes(seed, monkeypatch):
    """The control: of 15 clusters of equal outcomes, 5 % of them 1, half have no other. With worst losses all hold."""
    below = []
    for spread in (clustering.SPREAD, 0.0):
        monkeypatch.setattr(clustering, "SPREAD", spread)
        below.append(means(panel([5] * 15, 0.1 * LEVELS, 1.0), 60, seed).below)
    assert below[0] <= 5
    assert below[1] >= 10


def alone(design):
    """The same rows as if they were independent."""
    return design._replace(draw=lambda rng: (*design.draw(rng)[:3], None))


@pytest.mark.parametrize("same", [True, slow(False)])
@pytest.mark.parametrize("off", [False, slow(True)])
def test_intervals_hold_the_truth_with_five_rows_an_event(same, off, seed):
    """Of 40 intervals that cover in 90 % of cases fewer than 29 hold the truth in under 0.1 % (20 counts)."""
    design = clusters([5] * (1000 if same else 400), "rows", 1.0, off=off, same=same)
    found = drawn(design, ("ece", "cutoff_ce", "smooth_ece", "smooth_ce", "brier"), 40, [seed, 91], 99)
    assert min(one.held for one in found.values()) >= 29, found
    # The control: of rows taken as independent half of the intervals or fewer hold the truth.
    if same and not off:
        without = drawn(alone(design), ("ece", "cutoff_ce"), 40, [seed, 91], 99)
        assert max(one.held for one in without.values()) < 29


@pytest.mark.slow
def test_rows_that_depend_on_earlier_ones_are_in_blocks_of_time(seed):
    """Of 60 intervals that cover in 90 % of cases fewer than 44 hold the truth in under 0.05 %, two counts."""
    design, names = times(3000, 0.9), ("cutoff_ce", "smooth_ce")
    held, without = (
        [60 - one.above for one in drawn(each, names, 60, [seed, 95], 99).values()]
        for each in (design, alone(design))
    )
    assert min(held) >= 44
    assert max(without) < 44  # the control


def test_the_lower_end_of_ece_is_no_less_than_that_of_binned_ece(seed):
    """Also of other bins, with few rows in each; a number does not depend on what else is asked for.

    The root mean square over bins has an interval there as well.
    """
    bins, fine = ({"name": "binned_ece", "bins": m, "strategy": "quantile"} for m in (2, 15))

    def draw(rng):
        p = rng.random(300) if rng.random() < 0.5 else rng.integers(1, 20, 300) / 20
        return p, rng.random(300) < special.expit(0.5 * special.logit(p)), None, None

    design = Design(POPULATIONS["one level"], draw)
    specs = ["ece", "binned_ece", bins, fine, {**fine, "name": "binned_ce"}]
    ece, *binned, square = drawn(design, specs, 12, [seed, 97], 99).values()
    assert all((one.lower <= ece.lower).all() for one in binned)
    assert square.made == 12
    assert (binned[1].lower > 0.0).sum() >= 4
    (other,) = drawn(design, [bins], 12, [seed, 97], 99).values()
    assert (other.lower == binned[1].lower).all()
    assert (other.upper == binned[1].upper).all()
