"""Intervals of few rows: ends by witnesses from blocks of samples or clusters."""

import numpy as np
import pytest
from scipy import special, stats

from onlinecal.core.joint import JointDistribution
from onlinecal.logs.clusters import Clustered
from onlinecal.logs.evaluation import evaluate
from onlinecal.logs.resampling import Resample
from onlinecal.logs.witnessed import Block, fitted, past_of
from tests.coverage_intervals import FEW, few_rows


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
    one = Block(*[np.where(np.arange(19) == 9, 1e-9, np.zeros((2, 19)))] * 2)
    assert fitted(past_of(v, one), one).q == pytest.approx(v, abs=1e-6)


@pytest.mark.slow
def test_lower_ends_of_few_rows_are_above_calibrated_forecasts_in_1_of_40_cases(full, seed, monkeypatch):
    """Each fails in 2.5 %: more than the 1 − 1e-8 quantile of Binomial(N, 0.025) by chance with below 1e-6, of 16.

    The control: gains on the same samples that witnesses were found on.
    """
    simulations = 300 if full else 40
    most = stats.binom.isf(1e-8, simulations, 0.025)
    designs = [("3 levels", 50, 5), ("3 levels", 50, 1), ("19 levels", 100, 1), ("distinct", 100, 1)]
    for levels_, events, rows in designs:
        for name, ends_ in few_rows(FEW[f"{levels_}, calibrated"], events, rows, simulations, seed).items():
            assert ends_.lower <= most, (levels_, events, rows, name)
            assert ends_.upper == 0, (levels_, events, rows, name)  # the truth is 0
    blocks = Resample.blocks

    def same(self, generator):
        first, *others = blocks(self, generator)
        return [sum(others, start=first)] * 8

    monkeypatch.setattr(Resample, "blocks", same)
    assert few_rows(FEW["19 levels, calibrated"], 100, 1, 40, seed)["ece"].lower > 30


@pytest.mark.slow
def test_few_rows_show_forecasts_that_are_far_too_bold(seed):
    """Of 500 rows ECE's lower end is above 0 in .95 of cases, with the log odds doubled, and in .94 of distinct ones.

    Fewer than 17 of 30 have probability below 1e-6 at .9. Without the line no distinct forecast gives it.
    """
    for levels_ in ("19 levels", "distinct"):
        assert few_rows(FEW[f"{levels_}, S-shaped"], 500, 1, 30, seed)["ece"].above >= 17


def test_the_lower_end_of_ece_is_no_less_than_that_of_binned_ece(seed):
    """Also of other bins, with few rows in each; a number does not depend on what else is asked for.

    The root mean square over bins has an interval there as well.
    """
    generator, above = np.random.default_rng([seed, 97]), 0
    bins, fine = ({"name": "binned_ece", "bins": m, "strategy": "quantile"} for m in (2, 15))
    both = ["binned_ece", bins, fine, {**fine, "name": "binned_ce"}]
    for i in range(12):
        p = generator.random(300) if i % 2 else generator.integers(1, 20, 300) / 20
        y = generator.random(300) < special.expit((0.3 + 0.1 * (i % 5)) * special.logit(p))
        ece_, *binned, square = evaluate(p, y, measures=["ece", *both], bootstrap=99, seed=i).rows
        assert all(row.interval[0] <= ece_.interval[0] for row in binned)
        assert all(row.interval[1] > row.value > row.interval[0] for row in (binned[2], square))
        above += binned[1].interval[0] > 0.0
        (alone,) = evaluate(p, y, measures=[bins], bootstrap=99, seed=i).rows
        assert alone.interval == binned[1].interval
    assert above >= 4
