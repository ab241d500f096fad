"""Intervals of mean losses by weights and clusters: the loss and the weight of the one unit that is added."""

import numpy as np
import pytest
from scipy import stats

from onlinecal.core.joint import JointDistribution
from onlinecal.logs import clusters
from onlinecal.logs.clusters import Blocks, Clustered
from onlinecal.logs.intervals import mean_interval
from onlinecal.logs.measuring import Settings, measure_log
from onlinecal.logs.reading import Log
from onlinecal.measures import MEASURES
from tests.coverage_intervals import brier_ends, means, panel, times

LEVELS = np.arange(1, 20) / 20
#: what mean widths of intervals are below
WIDE = {
    "300 rows, squares of exponential weights": 0.16, "300 rows, Pareto weights, events of 4 %": 0.07,
    "50 clusters of 50": 0.03, "15 clusters of 50": 0.06, "15 clusters of 50, events of 5 %": 0.3,
    "20 clusters of 5 equal outcomes": 0.3, "60 clusters of 1 to 20": 0.08,
}  # fmt: skip


@pytest.mark.parametrize("design", WIDE)
def test_brier_scores_of_weights_and_clusters_are_held(design, seed):
    """Of 150, fewer hold the truth than the 1e-7 quantile of Binomial(150, .94) by chance with below 1e-6."""
    held, wide = means(design, 150, seed)
    assert held >= stats.binom.ppf(1e-7, 150, 0.94)
    assert wide <= WIDE[design]


def test_extremes_seen_do_not_do_for_rare_outcomes(seed, monkeypatch):
    """The control: of 15 clusters of equal outcomes, 5 % of them 1, half have no other. With worst losses all hold."""
    truth, held = float((0.1 * LEVELS * (1.0 - 0.1 * LEVELS)).mean()), []
    for spread in (clusters.SPREAD, 0.0):
        monkeypatch.setattr(clusters, "SPREAD", spread)
        drawn = [panel(np.random.default_rng([seed, 112, i]), [5] * 15, 0.1 * LEVELS, 1.0) for i in range(60)]
        held.append(sum(brier_ends(each, i)[1] >= truth for i, each in enumerate(drawn)))
    assert held[0] >= 55
    assert held[1] <= 50


def test_one_more_unit_weighs_as_the_mean_unit_of_weight():
    """Weights 1 and 3: (1 + 9)/4 = 2.5, so that of equal losses 0 the upper end is 1/(1 + 4/2.5 …) by Beta's law."""
    loss, w = np.zeros(2), np.array([1.0, 3.0])
    low, high = mean_interval(loss, w, w**2, (0.0, 1.0), 9999, 0.95, 0)
    generator = np.random.default_rng(1)
    one, rest = 2.5 * generator.exponential(size=200_000), generator.exponential(size=(200_000, 2)) @ w
    assert low == 0.0
    assert high == pytest.approx(np.quantile(one / (one + rest), 0.975), abs=0.01)


def test_variances_of_blocks_are_wider_everywhere(seed):
    """Twice the variance of sums: half as many samples, and radii, errors and squares by √2 and 2."""
    generator = np.random.default_rng([seed, 113])
    p, of = generator.choice(LEVELS, 2000), np.repeat(np.arange(100), 20)
    y = (generator.random(2000) < p) * 1.0
    gamma, rows = JointDistribution.from_samples(p, y), (p, y, np.ones(2000))
    plain, wide = Clustered(gamma, rows, of), Clustered(gamma, rows, *Blocks(of, 2.0))
    assert wide.samples == pytest.approx(plain.samples / 2)
    assert wide.error == pytest.approx(plain.error * 2**0.5)
    np.testing.assert_allclose(wide.powers, 2.0 * plain.powers)
    cells = np.zeros(19, int)
    assert wide.samples_in(cells)[0] == pytest.approx(plain.samples_in(cells)[0] / 2)
    each = [next(iter(one.changes("resampled", 2000, np.random.default_rng(0)))) for one in (wide, plain)]
    assert each[0].residuals.std() == pytest.approx(2**0.5 * each[1].residuals.std(), rel=0.02)
    gains = generator.standard_normal((2, 19))
    squares = [
        sum(b.measured(gains)[2].sum() for b in one.blocks(np.random.default_rng(0))) for one in (wide, plain)
    ]
    assert squares[0] == pytest.approx(2.0 * squares[1])
    zeros, ones, most = MEASURES["brier"].sampling.losses(gamma)
    np.testing.assert_allclose(
        *(c * one.mean_cells(zeros, ones, most)[2] for c, one in ((1.0, wide), (2.0, plain)))
    )


def test_where_few_times_tell_of_alike_errors_nothing_is_printed_and_the_report_says_why(seed):
    """AR(.9): of 12 logs of 100 rows at most 5 have an interval (.12 of 200 had one), and of 2000 rows all."""
    printed = []
    for n in (100, 2000):
        population, draw = times(n, 0.9)
        for i in range(12 if n == 100 else 2):
            level, uniform, _, _ = draw(np.random.default_rng([seed, 114, i]))
            y = (uniform < population.means[level]) * 1.0
            log = Log(
                "log",
                {"p": population.predictions[level]},
                y,
                "y",
                times=np.arange(n * 1.0),
                time="day",
                time_words=str,
            )
            column = measure_log(log, Settings(39, measures=("brier",))).columns[0]
            (row,) = column.evaluation.rows
            printed.append(row.interval is not None)
            told = any(
                "times tell as much as" in said and "expected at least 50" in said for said in column.cautions
            )
            assert told == (row.interval is None)
            assert printed[-1] or ("times tell as much as" in row.interval_by and row.p_value is None)
    assert sum(printed[:12]) <= 5
    assert all(printed[12:])
