"""Tests of groups, of drift and of differences: their size under the hypothesis, by exact counts; and cautions."""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats

import onlinecal as oc
from onlinecal.logs import inference
from onlinecal.logs.cautions import cautions, duplicates, order_caution, tiny_groups
from onlinecal.logs.clusters import Clustered, lags_of
from onlinecal.logs.inference import (
    calibration_test,
    drift_test,
    holm,
    near_normal,
    p_large_n,
    score_differences,
)
from onlinecal.logs.resampling import Resample
from onlinecal.measures.cutoff import largest_exceeds, range_exceeds
from tests.coverage_intervals import autoregressive

G = oc.JointDistribution


def rare(found, share, runs):
    """Whether there are no more p-values below 0.05 than a share has, but for a probability of 1e-7."""
    return scipy.stats.binom.sf(int(np.sum(np.array(found) <= 0.05)) - 1, runs, share) > 1e-7


def p_of(gamma, seed, samples=None):
    return calibration_test(Resample(gamma, samples), seed)


@pytest.mark.parametrize(
    ("kind", "copies", "most"),
    [("levels", 5, 4096), ("rows", 4, 4096), ("rows", 1, 120), ("levels", 1, 119), ("clusters", 1, 4096)],
)
def test_the_p_value_of_calibration_is_the_share_of_drawn_outcomes(kind, copies, most, monkeypatch, seed):
    """By the largest sum of errors of forecasts in an interval. All outcomes 1 at .1, 40 times, are refuted.

    Of up to four rows a level outcomes are drawn row by row, unless rows are many.
    """
    monkeypatch.setattr(inference, "GROUP_DRAWS", 299)
    monkeypatch.setattr(inference, "MOST_LEVELS", most)
    rng = np.random.default_rng([seed, 1])
    for i in range(5):
        p = np.repeat(rng.beta(2, 5, 120 // copies), copies)
        y, of = (rng.random(120) < p).astype(float), np.arange(120) // 3
        gamma, each = G.from_samples(p, y), (p, y, np.ones(120))
        resample = Clustered(gamma, each, of) if kind == "clusters" else Resample(gamma, None)
        by = Resample(gamma, each) if kind == "rows" else resample
        sums = np.concatenate(
            [
                one.residuals.cumsum(axis=1)
                for one in by.changes("calibrated", 299, np.random.default_rng([i, 5]))
            ]
        )
        drawn = np.maximum(sums.max(axis=1), 0.0) - np.minimum(sums.min(axis=1), 0.0)
        share = (1 + (drawn >= oc.measures.cutoff_ce(gamma) - 1e-12).sum()) / 300
        assert calibration_test(resample, i) == pytest.approx(share)
    assert p_of(G.from_counts([0.1], [40], [40]), 0) == 1 / 300


@pytest.mark.parametrize(("rows", "draws"), [(120 * 50, 50), (120 * 51 - 1, 50), (120, 20), (10**9, 299)])
def test_outcomes_of_clusters_are_drawn_by_the_number_of_rows(monkeypatch, rows, draws):
    """So many in all, but at least `FEW_DRAWS` times and at most `GROUP_DRAWS`; what never comes has the least p."""
    for name, value in (("_DRAWN_ROWS", rows), ("FEW_DRAWS", 20), ("GROUP_DRAWS", 299)):
        monkeypatch.setattr(inference, name, value)
    p, y = np.full(120, 1e-6), np.ones(120)
    resample = Clustered(G.from_samples(p, y), (p, y, np.ones(120)), np.arange(120) // 3)
    assert calibration_test(resample, 0) == 1 / (draws + 1)


@pytest.mark.parametrize(
    ("samples", "variance", "enough"),
    [(30.0, 0.25, True), (29.9, 0.25, False), (180.1, 0.1, True), (179.9, 0.1, False)],
)
def test_sums_of_thirty_samples_are_about_normal_or_of_more_where_outcomes_are_rare(
    samples, variance, enough
):
    assert near_normal(samples, variance) is enough


@pytest.mark.parametrize(("levels", "drawn"), [(300, True), (301, False)])
def test_the_limit_is_of_more_levels_than_are_drawn(monkeypatch, levels, drawn):
    monkeypatch.setattr(inference, "DRAWN_LEVELS", 300)
    monkeypatch.setattr(inference, "GROUP_DRAWS", 99)
    gamma = G.from_samples(np.linspace(0.2, 0.8, levels), np.ones(levels))
    limit = p_large_n(range_exceeds, oc.measures.cutoff_ce(gamma), gamma, gamma.counts)
    assert p_of(gamma, 0) == (1 / 100 if drawn else limit)
    assert limit < 1e-9


def test_the_calibration_test_of_many_levels_is_its_limit():
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    gamma = G.from_samples(p, rng.random(3000) < p)
    table = oc.evaluate(gamma, measures=["cutoff_ce"], reference=1)
    assert p_of(gamma, 0) == pytest.approx(table.rows[0].p_large_n, rel=1e-12)
    # Weights of 1 each are as no weights.
    y = gamma.positives  # of distinct forecasts
    assert p_of(gamma, 0, (gamma.predictions, y, np.ones(3000))) == p_of(gamma, 0)
    assert p_of(G.from_counts([0.0, 1.0], [3, 3], [0, 3]), 0) == 1.0


@pytest.mark.parametrize("tail", [range_exceeds, largest_exceeds])
def test_p_values_for_large_n_keep_their_level_or_are_not_given(tail):
    """By all outcomes of two levels of 1,000 rows with few events: the law itself fails at 0.1 % with one expected."""
    for events, given in ((1.0, False), (28.0, False), (29.0, True), (60.0, True)):
        v = np.array([0.499, 0.501]) * events / 1000
        k = np.arange(int(events / 2 + 9.0 * math.sqrt(events / 2)) + 9)
        chance = np.outer(*(scipy.stats.binom.pmf(k, 1000, each) for each in v))
        first, both = (k - 1000 * v[0])[:, None], (k[:, None] - 1000 * v[0]) + (k - 1000 * v[1])
        least, most = np.minimum(np.minimum(first, both), 0.0), np.maximum(np.maximum(first, both), 0.0)
        values = (most - least if tail is range_exceeds else np.maximum(most, -least)) / 2000
        gamma, scale = G.from_counts(v, [1000, 1000], [1, 1]), math.sqrt(1000 * (v * (1 - v)).sum()) / 2000
        p = np.vectorize(lambda x, scale=scale: tail(x / scale))(values)
        for value in (values[0, 0], values[-1, -1]):
            limit = p_large_n(tail, value, gamma, gamma.counts)
            assert limit == (tail(value / scale) if given else None)
        held = [chance[p <= level].sum() <= level for level in (0.05, 0.01, 0.001)]
        assert all(held) if given else events > 1.0 or not all(held)


def test_rare_events_in_many_levels_are_drawn_at_groups(seed):
    """An event of the largest forecast is as unlikely as any: 0.041, and 9,999 draws tell that by 0.012 (6 σ)."""
    v, last = np.linspace(1e-5, 1.1e-5, 4000), np.arange(4000) == 3999
    assert p_of(G.from_samples(v, last), seed) == pytest.approx(-np.expm1(-v.sum()), abs=0.012)
    assert p_of(G.from_samples(v, 0.0 * v), seed) == 1.0
    two = np.full(4000, 2.0)
    assert p_of(G.from_samples(v, last, weights=two), seed, (v, last, two)) is None


def alike(errors, after, together=1.0):
    """The p-value of errors alike more than `after` apart, lag by lag, as docs/intervals.md says."""
    n, power = len(errors), sum(errors**2)
    if n // 2 == after:
        return 1.0
    lags = [
        (errors[k:] @ errors[:-k],
         together**2 * max(errors[k:] ** 2 @ errors[:-k] ** 2, (power / n) ** 2 * (n - k)))
        for k in range(after + 1, n // 2 + 1)
    ]  # fmt: skip

    def tail(window):
        return scipy.special.ndtr(-sum(r for r, _ in window) / math.sqrt(sum(v for _, v in window)))

    windows = [
        lags[i * width : (i + 1) * width]
        for width in (1, 4, 16)
        if width**2 <= n
        for i in range(len(lags) // width)
    ]
    return min(2 * min(tail(lags[:10]), len(windows) * min(map(tail, windows))), 1.0)


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters", "two days", "panel"])
def test_dependence_is_by_the_products_of_errors_that_the_page_names(kind, seed):
    """Less their means in 20 groups of similar forecasts. Of clusters totals too, and half of the error for either."""
    rng, below = np.random.default_rng([seed, 12]), 0
    for _ in range(20):
        p = rng.permutation(np.linspace(0.1, 0.9, 100))
        y = (after_another(rng, 100, 0.9) < p).astype(float)
        if kind == "panel":
            y = (np.tile(rng.random(25), 4) < p).astype(float)
        w = rng.uniform(0.5, 2.0, 100) if kind == "weights" else np.ones(100)
        of = {"clusters": np.arange(100) // 3, "two days": np.arange(100) % 50}.get(kind)
        found = drift_test(p, y, w if kind == "weights" else None, of).correlation_p
        order = np.argsort(p)
        before = np.empty(100)
        before[order] = np.floor(20 * (np.cumsum(w[order]) - w[order]) / w.sum() * (1 + 1e-12))
        errors = w / w.max() * (y - p)
        for group in np.unique(before):
            here = before == group
            errors[here] -= w[here] / w.max() * np.average((y - p)[here], weights=w[here])
        want = alike(errors, 0)
        if of is not None:
            totals = np.bincount(of, errors)
            together = max(totals @ totals / (errors @ errors), 1.0)
            extent = 2 if kind == "clusters" else 50
            want = min(2 * min(alike(errors, extent, together), alike(totals, 0)), 1.0)
        assert found == pytest.approx(want, rel=1e-6)
        below += want < 1.0
    assert below >= 5


def test_the_p_value_of_drift_is_the_larger_one_of_two(seed):
    """Of Kolmogorov's law, and of 999 normal multipliers of errors; both wider by what sums of errors vary more.

    The second is of sums in 200 stretches of rows at most.
    """
    rng, larger = np.random.default_rng([seed, 13]), 0
    for i in range(14):
        n = 60 if i < 12 else 500
        p = rng.uniform(0.1, 0.9, n) if i % 2 else np.repeat([0.02, 0.5], [n - n // 5, n // 5])
        y = (after_another(rng, n, 0.3) < p).astype(float)
        found, centred = drift_test(p, y, seed=7), y - p - (y - p).mean()
        lags = lags_of(centred)
        wider = math.sqrt(max(lags.wider, 1.0) * (1.0 + lags.lacking))
        stretch = np.arange(n) * min(n, 200) // n
        sums, power, share = (np.bincount(stretch, x) for x in (centred, centred**2, np.full(n, 1 / n)))
        draws = np.random.default_rng([7, 8]).standard_normal((999, min(n, 200))) * np.sqrt(power)
        draws -= draws.sum(axis=1)[:, None] * share
        most, seen = (np.abs(np.cumsum(x, axis=-1)).max(axis=-1) for x in (wider * draws, sums))
        both = (1 + (most >= seen - 1e-12).sum()) / 1000, scipy.special.kolmogorov(found.statistic / wider)
        assert found.p_value == pytest.approx(max(both))
        larger += both[0] > both[1]
    assert 0 < larger < 14


def test_dependence_is_looked_for_in_the_first_rows(monkeypatch, seed):
    """Which are 20,000; here 80 of 100."""
    rng, of = np.random.default_rng([seed, 14]), np.arange(100) // 3
    p, w = rng.random(100), rng.random(100)
    y = (after_another(rng, 100, 0.9) < p).astype(float)
    first = [drift_test(p[:80], y[:80], w[:80] / w.max(), each) for each in (None, of[:80])]
    monkeypatch.setattr(inference, "TESTED", 80)
    for one, clusters in zip(first, (None, of), strict=True):
        assert drift_test(p, y, w, clusters).correlation_p == pytest.approx(one.correlation_p)


def test_errors_of_differences_are_sums_over_units_with_weights():
    """As of a mean by sampled clusters, with the weight of a cluster in place of a row: n is (Σ w)²/Σ w²."""
    rng = np.random.default_rng(6)
    p, q, y, w = (*rng.random((2, 240)), rng.integers(0, 2, 240) * 1.0, rng.uniform(0.5, 2.0, 240))
    for of in (np.arange(240), np.arange(240) // 4):
        brier, _ = score_differences({"a": p, "b": q}, y, w, None if of[1] else of)
        difference = (p - y) ** 2 - (q - y) ** 2
        mean, mass = np.average(difference, weights=w), np.bincount(of, w) / w.sum()
        sums = np.bincount(of, w * (difference - mean)) / w.sum()
        n = 1.0 / (mass**2).sum()
        assert (brier.mean, brier.error) == pytest.approx((mean, math.sqrt((sums**2).sum() * n / (n - 1))))
        skewness = (sums**3).sum() / (sums**2).sum() ** 1.5
        t = brier.mean / brier.error
        mended = t + skewness * (t**2 / 3 + skewness * t**3 / 27 + 1 / 6)
        assert brier.p_value == pytest.approx(2 * scipy.stats.t.sf(min(abs(t), abs(mended)), n - 1))


def after_another(rng, n, rho):
    """Uniform numbers, each of which depends on the one before."""
    return scipy.special.ndtr(autoregressive(rng, n, rho))


def after_each_other(rng, n, rho):
    p = rng.random(n)
    return p, after_another(rng, n, rho) < p, None


#: forecasts, outcomes and clusters; the share of drift and that of dependence with p ≤ 0.05, at most
DRIFTLESS = {
    "uniform": (lambda rng: (p := rng.random(1000), rng.random(1000) < p, None), 0.06, 0.06),
    "rare": (lambda rng: (np.full(1000, 0.01), rng.random(1000) < 0.01, None), 0.06, 0.06),
    "sharp, then not": (
        lambda rng: (p := np.repeat([0.01, 0.5], [900, 100]), rng.random(1000) < p, None), 0.06, 0.06,
    ),
    "five rows a time": (
        lambda rng: (p := np.repeat(rng.random(200), 5), np.repeat(rng.random(200), 5) < p, np.arange(1000) // 5),
        0.06, 0.06,
    ),
    "in order, overconfident": (
        lambda rng: (p := np.sort(rng.random(300)), rng.random(300) < 0.1 + 0.8 * p, None), 1.0, 0.06,
    ),
    "AR(.9)": (lambda rng: after_each_other(rng, 100, 0.9), 0.07, 1.0),
    "AR(.5)": (lambda rng: after_each_other(rng, 300, 0.5), 0.07, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("design", DRIFTLESS)
def test_drift_and_dependence_keep_their_size(design, seed):
    """By Kolmogorov's law the third had p ≤ 0.05 in 18 % of cases, and the fourth 81 %.

    Dependence is no drift: found in 6.5 and 5.8 % of 400; with the correlation of neighbours alone in 60 % at AR(0.9).
    """
    rng, drifts, (draw, drift, dependence) = np.random.default_rng([seed, 2]), [], DRIFTLESS[design]
    for _ in range(200):
        p, y, clusters = draw(rng)
        drifts.append(drift_test(p, y.astype(float), clusters=clusters, seed=seed))
    assert rare([one.p_value for one in drifts], drift, 200)
    assert rare([one.correlation_p for one in drifts], dependence, 200)


def test_drift_is_found(seed):
    """A bias of −0.1, then 0.1, in 2000 rows: the statistic is 4.5 ± 0.5, and calibrated ones exceed 2 in 7e-4."""
    y = (np.random.default_rng([seed, 9]).random(2000) < np.repeat([0.4, 0.6], 1000)).astype(float)
    p = np.full(2000, 0.5)
    drift, centred = drift_test(p, y), y - y.mean()
    power = float(centred @ centred)
    assert drift.statistic == pytest.approx(np.abs(np.cumsum(centred)).max() / math.sqrt(power))
    assert drift.correlation == pytest.approx(centred[1:] @ centred[:-1] / power)
    pairs = drift_test(p, y, clusters=np.repeat(np.arange(1000)[::-1], 2))  # labels in any order
    assert drift.p_value == pairs.p_value == 0.001
    # Errors that the forecasts explain are no dependence.
    explained = drift_test(np.repeat([0.25, 0.5], 10), np.repeat([1.0, 0.0], 10), clusters=np.arange(20) // 2)
    assert explained.correlation_p == 1.0
    # A bias that stays is no drift.
    assert drift_test(np.zeros(10), np.ones(10)).p_value == drift_test(np.zeros(1), np.ones(1)).p_value == 1.0
    for weight in (3.0, 1e-60, 1e60):
        weighted = drift_test(p, y, np.full(2000, weight))
        wanted = drift.statistic, drift.correlation_p
        assert (weighted.statistic, weighted.correlation_p) == pytest.approx(wanted)


def test_differences_are_corrected_for_their_number_and_lack_where_scores_are_infinite():
    rng = np.random.default_rng(3)
    p, y = rng.random(300), (rng.random(300) < 0.5).astype(float)
    forecasts = {"a": p, "b": np.clip(p + 0.1, 0.01, 0.99)}
    found = score_differences(forecasts, y)
    assert [(d.score, d.first, d.second) for d in found] == [("brier", "a", "b"), ("log", "a", "b")]
    log = np.subtract(*(-np.log(np.where(y == 1, x, 1 - x)) for x in forecasts.values()))
    assert (found[1].mean, found[1].error) == pytest.approx((log.mean(), log.std(ddof=1) / math.sqrt(300)))
    assert [d.adjusted for d in found] == holm([d.p_value for d in found])
    # An infinite score has none, equal columns differ by nothing, and one sample tells nothing.
    y = np.array([1.0, 0.0, 1.0])
    sure = score_differences({"a": np.array([0.0, 0.5, 0.5]), "b": np.full(3, 0.5)}, y)
    assert [d.score for d in sure] == ["brier"]
    same = score_differences({"a": np.full(30, 0.5), "b": np.full(30, 0.5)}, np.tile(y, 10))
    assert [(d.mean, d.p_value) for d in same] == [(0.0, 1.0)] * 2
    assert score_differences({"a": y[:1], "b": y[:1]}, y[:1]) == []
    assert score_differences({"a": y, "b": y}, y, np.array([1.0, 0.0, 1e-30])) == []


@pytest.mark.parametrize("q", [0.004, 0.03, 0.06])
def test_paired_tests_of_rare_events_keep_their_level_or_are_not_made(q):
    """By all outcomes of 1,000 rows, of a fair pair; by Student's law alone p ≤ 0.001 in 0.2 % of cases at q = 0.06."""
    k = np.arange(scipy.stats.binom.ppf(1.0 - 1e-9, 1000, q) + 1)
    a, b = (np.full(1000, each * q) for each in (1.6, 0.4))
    found = [score_differences({"a": a, "b": b}, (np.arange(1000) < each).astype(float))[0] for each in k]
    assert all((d.p_value is None) == (each < 28) for d, each in zip(found, k, strict=True))
    p = np.array([1.0 if d.p_value is None else d.p_value for d in found])
    student = np.array([2 * scipy.stats.t.sf(abs(d.mean) / d.error, 999) if d.error else 1.0 for d in found])
    chance = scipy.stats.binom.pmf(k, 1000, q)
    for level in (0.05, 0.01, 0.001):
        assert chance[p <= level].sum() <= level
    assert q < 0.06 or chance[student <= 0.001].sum() > 0.002


@pytest.mark.parametrize("light", [0.0, 1e-12])
def test_rows_of_no_weight_are_no_samples(light):
    """A test of 1,000 rows of which 35 have the weight is that of the 35; of 29 there is no test."""
    rng = np.random.default_rng(5)
    forecasts, y = {"a": rng.random(1000), "b": rng.random(1000)}, (rng.random(1000) < 0.5).astype(float)
    heavy = np.arange(1000) < 35
    brier, log = score_differences(forecasts, y, np.where(heavy, 1.0, light))
    a, b = ((p[heavy] - y[heavy]) ** 2 for p in forecasts.values())
    assert brier.error == pytest.approx(np.std(a - b, ddof=1) / math.sqrt(35), rel=1e-9)
    alone = score_differences({name: p[heavy] for name, p in forecasts.items()}, y[heavy])[0]
    assert brier.p_value == pytest.approx(alone.p_value, rel=1e-6)
    assert [brier.adjusted, log.adjusted] == holm([brier.p_value, log.p_value])
    for d in score_differences(forecasts, y, np.where(np.arange(1000) < 29, 1.0, light)):
        assert (d.p_value, d.adjusted) == (None, None)
        assert d.error > 0.0


def test_paired_tests_in_time_keep_their_level(seed):
    """200 fair pairs with errors like AR(0.7), by a share of 0.1; with ∛n lags of Newey and West 20 % at AR(0.9)."""
    rng, found = np.random.default_rng([seed, 10]), []
    for _ in range(200):
        # Each row has the chance, forecasts and luck of the row before with probability 0.7.
        source = np.maximum.accumulate(np.where(rng.random(1000) < 0.7, 0, np.arange(1000)))
        q, off = rng.uniform(0.1, 0.9, 1000)[source], 0.05 * rng.choice([-1.0, 1.0], 1000)[source]
        y = (rng.random(1000)[source] < q).astype(float)
        found.append(score_differences({"a": q + off, "b": q - off}, y, in_time=True)[0])
    assert all(d.blocks for d in found)
    p_values = [d.p_value for d in found if d.p_value is not None]
    assert len(p_values) > 150
    assert rare(p_values, 0.1, len(p_values))


# ---------------------------------------------------------------- cautions


def said_of(p, y, weights=None, **more):
    return " | ".join(cautions(G.from_samples(p, y, weights=weights), **more))


def test_each_caution_is_said_where_it_holds_and_nowhere_else():
    rng = np.random.default_rng(0)
    p = np.clip(np.round(np.round(rng.beta(2, 2, 4000), 4) * 300) / 300, 0.01, 0.99)
    y, some = (rng.random(4000) < p).astype(int), np.arange(4000)
    wandering, calm = inference.Drift(2.0, 0.01, 0.2, 0.001), inference.Drift(0.5, 0.9, 0.0, 0.9)
    assert said_of(p, y) == said_of(p, y, drift=calm) == ""
    for words, there, given in (
        ("99 rows only", True, (p[:99], y[:99])), ("rows only", False, (p[:100], y[:100])),
        ("1 row only", True, ([0.3], [0])), ("only 29 events", True, (p, some < 29)),
        ("only 1 event: ", True, (p, some == 7)), ("events", False, (p, some < 30)),
        ("there are no rows without the event", True, (p, np.ones(4000))),
        ("only 0.3 events: ", True, ([0.3, 0.6], [0, 1], [200.0, 0.3])),
        ("multiples of 1/20 (", True, (np.round(p * 20) / 20, y)),
        ("4,000 different forecasts in 4,000 rows", True, (rng.random(4000), y)),
        ("all forecasts are 0.5", True, (np.full(4000, 0.5), y)),
        ("the log score is infinite", True, (np.where(p < 0.3, 0.0, p), y)),
        ("the log score is infinite", True, ([1.0, 1.0, 0.3], [0, 1, 1])),
        ("the log score is infinite", False, ([1.0, 0.0, 0.3], [1, 0, 1])),
        # Forecasts that differ by less than 1/m do tell finer differences, however small these are.
        ("multiples", False, (np.where(some % 2 == 0, 0.25, 0.25 + 1e-15), y)),
        ("multiples", False, (1e-11 * (1 + some % 3), y)),
        ("multiples of 1/10", True, (np.nextafter(some % 11 / 10, 0.5), y)),
    ):  # fmt: skip
        assert (words in said_of(*given)) == there, words
    said = said_of(p, y, drift=wandering)
    assert "changes over time (p = 0.01)" in said
    assert "alike (p = 0.001)" in said
    assert "too optimistic" in said
    # Of weighted rows: these tell as much as fewer; levels of one row each are not those of small weights.
    assert "as much as 1,000 rows" in said_of(p, y, samples=1000.0)
    few = [0.3] * 4 + [0.77123] * 4, [0, 1] * 4, [0.25] * 8
    assert "cannot be estimated" not in said_of(*few, samples=8.0, rows=8)
    alone = np.linspace(0.1, 0.87123, 8), [0, 1] * 4, [7.0] * 8
    assert "8 different forecasts in 8 rows" in said_of(*alone, samples=8.0, rows=8)
    nearly = [0.3, 0.7] * 50, [0, 1] * 50, [1.0, 1.1] * 50
    assert said_of(*nearly, samples=99.7, rows=100).startswith(
        "all forecasts are multiples of 1/10 (2 values)"
    )


def test_cautions_begin_where_they_are_said_to():
    """Levels of tests, the share of weights and of levels of their own, and rows of groups."""
    p, y = np.array([0.3, 0.6, 0.77123] * 40), np.array([0, 1, 0] * 40)
    drift = lambda drift=0.5, alike=0.5: inference.Drift(1.0, drift, 0.0, alike)  # noqa: E731
    for words, there, not_there in (
        ("changes over time", {"drift": drift(0.0499)}, {"drift": drift(0.05)}),
        ("near each other", {"drift": drift(alike=0.0499)}, {"drift": drift(alike=0.05)}),
        ("too optimistic", {"drift": drift(alike=0.01)}, {"drift": drift(alike=0.01), "blocks": 3}),
        ("3 blocks of rows", {"blocks": 3}, {"blocks": 3, "too_few": "few"}),
        ("as much as", {"samples": 107.9, "rows": 120}, {"samples": 108.1, "rows": 120}),
        ("as much as", {"samples": 99.4, "rows": 100}, {"samples": 99.6, "rows": 100}),
        ("different forecasts", {"samples": 4.0, "rows": 3}, {"samples": 4.0, "rows": 4}),
    ):
        assert words in said_of(p, y, **there)
        assert words not in said_of(p, y, **not_there)
    for m in (4, 5, 8, 10, 20, 50, 100, 200, 1000):
        assert f"all forecasts are multiples of 1/{m} (2 values)" in said_of(
            [1 / m, 1 - 1 / m] * 60, [0, 1] * 60
        )
    assert "of 100 logs of independent rows one says so" in order_caution(drift(alike=0.01))[0]
    assert not order_caution(drift(alike=0.0101))
    few = {f"g{i}": 29.0 for i in range(6)}
    assert "('g1', 'g2', 'g3', 'g4', 'g5')" in tiny_groups(dict([*few.items()][1:]))[0]
    assert tiny_groups({"a": 30.0}) == []
    assert tiny_groups({"a": 29.0, "b": 30.0}) == [
        "1 of 2 groups has fewer than 30 rows ('a'): little can be said of it"
    ]
    assert (
        "6 of 7 groups have fewer than 30 rows ('g0', 'g1', 'g2', 'g3', 'g4', …)"
        in tiny_groups(few | {"b": 30.0})[0]
    )


def test_copies_are_cautioned_against_where_chance_does_not_make_them():
    grid = G.from_counts([0.1, 0.5], [50, 50], [5, 25])
    distinct, twice = (
        G.from_samples(np.tile(np.linspace(0, 1, 50), k), np.tile([0, 1], 25 * k)) for k in (1, 2)
    )
    cents = G.from_samples(np.arange(60) / 100, np.arange(60) % 2)
    assert duplicates(3, 100, False, [grid, cents]) == duplicates(0, 100, True, [grid]) == []
    for more_columns, gamma in ((True, grid), (False, distinct), (False, twice)):
        assert "3 of 100 rows are equal" in duplicates(3, 100, more_columns, [gamma])[0]
