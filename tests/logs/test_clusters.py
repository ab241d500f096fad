"""Rows that depend on each other: intervals, p-values and tests count clusters in place of rows."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import onlinecal as oc
from onlinecal.logs import clusters as clustering
from onlinecal.logs.clusters import DEPENDENT, Blocks, Clustered, blocks_in_time, cluster_means, lags_of
from onlinecal.logs.evaluation import evaluate
from onlinecal.logs.inference import score_differences, scores
from onlinecal.logs.intervals import mean_interval
from onlinecal.logs.measuring import Settings, measure_log
from onlinecal.logs.regression import recalibration, smoothed
from onlinecal.logs.resampling import Resample
from tests.command_line import onlinecal
from tests.coverage_intervals import autoregressive, times
from tests.logs.made import log_of

LEVELS = (np.arange(20) + 0.5) / 20


def events(generator, many, off=0.0, same=True):
    """Forecasts, outcomes and labels: five rows an event, with equal forecasts and outcomes or different ones."""
    p = np.repeat(generator.choice(LEVELS, many), 5) if same else generator.choice(LEVELS, 5 * many)
    chances = np.clip(p + off, 0.0, 1.0)
    return p, (np.repeat(generator.random(many), 5) < chances) * 1.0, np.repeat(np.arange(many), 5)


def test_few_clusters_have_no_interval_no_p_value_and_no_band(seed):
    p, y, labels = events(np.random.default_rng([seed, 92]), 14)
    own = lambda gamma: gamma.base_rate  # noqa: E731
    found = evaluate(p, y, clusters=labels, measures=("smooth_ce", "brier", own), bootstrap=99, reference=9)
    for row in found.rows:
        assert (row.interval, row.p_value) == (None, None)
        assert "none: 14 clusters; expected at least 15" in row.interval_by
    resample = found.resample
    assert np.isnan(recalibration(resample.gamma, resample=resample).lower).all()
    low, high = smoothed(resample.gamma, resample=resample).band(0.95)
    assert (low.max(), high.min()) == (0.0, 1.0)
    # Twenty are as few if one of them is ten times as large: 29²/119.
    of = np.concatenate((np.zeros(10, int), np.arange(1, 20)))
    (row,) = evaluate(np.full(29, 0.5), np.arange(29) % 2, clusters=of, measures=["brier"], bootstrap=9).rows
    assert row.interval_by == "none: 20 clusters weigh as much as 7.07 equal ones; expected at least 15"
    # Fifteen do; and of clusters no p-value is that of the law for large n.
    p, y, labels = events(np.random.default_rng([seed, 92]), 300)
    for many, law in ((15, False), (300, False), (0, True)):
        here = labels < (many or 300)
        given = {"clusters": labels[here] if many else None, "measures": ["cutoff_ce"]}
        (row,) = evaluate(p[here], y[here], **given, bootstrap=9, reference=9).rows
        assert None not in (row.interval, row.p_value)
        assert (row.p_large_n is not None) is law


@pytest.mark.parametrize("weighted", [False, True])
def test_outcomes_of_clusters_vary_as_they_are_seen_to(weighted, seed):
    """Mean squares of 4000 sums: the mean is off by 4 of its standard errors in 0.01 % of cases.

    By the definition, pair by pair: rows i ≠ j of a cluster take its number with probability `shared` each.
    """
    generator = np.random.default_rng([seed, 93])
    p, _, labels = events(generator, 300, same=False)
    y = (
        np.where(generator.random(1500) < 0.6, generator.random(300)[labels], generator.random(1500)) < p
    ) * 1.0
    w = generator.integers(1, 4, len(p)) * 1.0 if weighted else np.ones(len(p))
    gamma = oc.JointDistribution.from_samples(p, y, weights=w)
    resample = Clustered(gamma, (p, y, w), labels)
    drawn = np.concatenate([change.residuals for change in resample.changes("calibrated", 4000, generator)])
    # Means are those forecast: each is off by 6 standard errors with 2e-9.
    assert (np.abs(drawn.mean(axis=0)) < 6.0 * drawn.std(axis=0) / 4000**0.5).all()
    power, beyond = 0.0, []
    for rows in np.arange(1500).reshape(300, 5):
        both = np.minimum.outer(p[rows], p[rows]) - np.outer(p[rows], p[rows])
        both[~np.eye(5, dtype=bool)] *= resample.shared**2
        power += w[rows] @ both @ w[rows]
        errors = w[rows] * (y[rows] - p[rows])
        beyond.append(errors.sum() ** 2 - (errors**2).sum())
    assert abs((drawn.sum(axis=1) ** 2).mean() * w.sum() ** 2 / power - 1.0) < 4.0 * (2.0 / 4000) ** 0.5
    # The mean square beyond that of independent rows is the one seen, and its standard error.
    assert power - (w**2 * p * (1.0 - p)).sum() == pytest.approx(sum(beyond) + np.linalg.norm(beyond))


def test_the_command_takes_rows_of_one_label_or_time_as_a_cluster(tmp_path):
    p, y, labels = events(np.random.default_rng(7), 200)
    once = pd.DataFrame(
        {"p": p, "q": 0.5 * p + 0.25, "y": y, "event": labels + 1000, "site": np.where(labels % 2, "a", "b")}
    )
    once.to_csv(tmp_path / "f.csv", index=False)
    asked = "measure f.csv -y y -f p -f q -m smooth_ce --by site --draws 99 --json"
    label, time, plain = (
        json.loads(onlinecal(f"{asked} {more}", cwd=tmp_path).stdout)
        for more in ("--cluster event", "--time event", "--id none")
    )
    for data in (label, time):
        assert data["cluster"] == "event"
        assert any("they are one cluster" in said for said in data["said"])
        assert data["differences"][0]["error"] > 2.0 * plain["differences"][0]["error"]
        (mine,) = data["forecasts"][0]["measures"]
        for given in (once.event, once.event.astype(str)):
            row = evaluate(once.p, once.y, clusters=given, measures=["smooth_ce"], bootstrap=99).rows[0]
            assert tuple(mine["interval"]) == row.interval
    for part, other in zip(label["forecasts"][0]["groups"], plain["forecasts"][0]["groups"], strict=True):
        assert part["error"] > 1.5 * other["error"]


def in_time(generator, n, rho):
    """Calibrated forecasts of events with uniforms that depend on those before them."""
    uniform, p = ndtr(autoregressive(generator, n, rho)), generator.choice(LEVELS, n)
    return p, (uniform < p) * 1.0


def length_by_definition(x):
    """Politis & White 2004, the constant of Lahiri 1999 for blocks side by side, lag by lag; and what these lack.

    Also the variance of long sums by √n and by 2√n lags with weights that fall to 0 (Bartlett 1950), and the sum of
    correlations with weights that halve, less its mean, in standard deviations.
    """
    n, x = len(x), x - x.mean()
    r = [float(x[k:] @ x[: n - k]) / n for k in range(n)]
    small = [abs(one) < 2.0 * np.sqrt(np.log10(n) / n) * r[0] for one in r]
    last = next(m for m in range(1, n) if all(small[m + 1 : m + 6]))
    g = spectrum = 0.0
    for k in range(-2 * last, 2 * last + 1):
        weight = min(1.0, 2.0 * (1.0 - abs(k) / (2 * last)))
        g, spectrum = g + weight * abs(k) * r[abs(k)], spectrum + weight * r[abs(k)]
    length = int(np.ceil((2.0 * g**2 / (2.0 * spectrum**2) * n) ** (1.0 / 3.0)))
    root = int(np.ceil(n**0.5))
    long = max(
        r[0] + 2.0 * sum((1.0 - k / (m + 1)) * r[k] for k in range(1, m + 1)) for m in (root, 2 * root)
    )
    alike = sum(2.0**-k * r[k] for k in range(1, n)) / r[0]
    return (
        length,
        g / (length * spectrum),
        n * long,
        (alike + 1.0 / n) / (sum(4.0**-k for k in range(1, n)) / n) ** 0.5,
        spectrum / r[0],
    )


def test_dependence_of_few_or_equal_totals_and_the_longest_blocks():
    """Of two totals the errors are opposite. Blocks are no longer than three square roots of the number."""
    assert lags_of(np.array([1.0, -1.0])).correlation == -0.5
    assert blocks_in_time(np.zeros(50)) == (None, 1.0, "")
    assert lags_of(np.repeat([1.0, -1.0], 10_000)).length == np.ceil(3.0 * 20_000**0.5)


@pytest.mark.parametrize(("rho", "n"), [(0.5, 2000), (0.9, 2000), (0.5, 500)])
def test_blocks_are_of_the_stated_length(rho, n):
    """Residuals that do not depend stay single rows, or their clusters."""
    p, y = in_time(np.random.default_rng(8), n, rho)
    length, lacking, long, alike, wider = length_by_definition(y - p)
    assert lags_of(y - p).wider == pytest.approx(wider)
    assert lags_of(y - p).alike == pytest.approx(alike, rel=1e-9)
    assert ndtr(-DEPENDENT) == pytest.approx(0.1, abs=0.001)
    assert length > 2
    found = blocks_in_time(y - p)
    assert np.array_equal(found.labels, np.arange(n) // length)
    seen = np.bincount(found.labels, y - p - (y - p).mean())
    assert found.wider == pytest.approx(max(1.0 + lacking, long / (seen @ seen)))
    # Fewer than 50 independent times tell too little.
    power = n * np.var(y - p)
    some = [blocks_in_time((y - p)[:many]) for many in range(60, n // 4, 20)]
    for many, one in zip(range(60, n // 4, 20), some, strict=True):
        _, _, long, alike, _ = length_by_definition((y - p)[:many])
        power = many * np.var((y - p)[:many])
        assert bool(one.too_few) is bool(alike > DEPENDENT and many * power < 50 * max(long, power))
        tell = f"{many} times tell as much as {many / max(long / power, 1.0):.3g} independent ones"
        assert not one.too_few or tell in one.too_few
        assert (one.labels is None) is bool(alike <= DEPENDENT)
    alone = np.tile([1.0, -1.0], 50)
    assert blocks_in_time(alone) == (None, 1.0, "")
    assert np.array_equal(blocks_in_time(np.repeat(alone, 2), np.arange(200) // 2)[0], np.arange(200) // 2)
    # Paired tests add what the variance of sums of blocks lacks.
    forecasts = {"a": p + 0.02, "b": p - 0.02}
    difference = np.diff([scores(values, y)["brier"] for values in forecasts.values()], axis=0)[0]
    blocks = blocks_in_time(difference)
    found = score_differences(forecasts, y, in_time=True)[0]
    plain = score_differences(forecasts, y, clusters=blocks.labels)[0]
    assert blocks.wider > 1.01
    assert found.error == pytest.approx(plain.error * blocks.wider**0.5, rel=1e-12)


@pytest.mark.parametrize("at_once", [1 << 19, 2500])
def test_samples_near_a_point_are_clusters_or_rows(monkeypatch, at_once):
    monkeypatch.setattr(clustering, "AT_ONCE", at_once)
    p = np.repeat(LEVELS, 200)
    y = np.tile(np.repeat([0.0, 1.0], 5), len(p) // 10)
    w, place = np.ones(len(p)), np.arange(20)
    gamma = oc.JointDistribution.from_samples(p, y)
    five, one = (Clustered(gamma, (p, y, w), np.arange(len(p)) // size) for size in (5, 1))
    assert five.samples_near(None, place, gamma.means) == pytest.approx(np.full(20, 40.0))
    assert one.samples_near(None, place, gamma.means) == pytest.approx(np.full(20, 200.0))
    assert five.samples_near(np.ones((3, 20)), place, np.full(3, 0.5)) == pytest.approx(np.full(3, 800.0))
    # Where outcomes of clusters are less alike they tell more, but for fewer than 30 clusters.
    for size, samples in ((5, 200.0), (10, 20.0)):
        of, within = np.arange(len(p)) // size, np.arange(len(p)) % size
        y_ = (within < size / 2 + np.where(of % 2, 1.0, -1.0) * (1 if size == 10 else 0.5)) * 1.0
        gamma_ = oc.JointDistribution.from_samples(p, y_)
        found = Clustered(gamma_, (p, y_, w), of).samples_near(None, place, gamma_.means)
        assert found == pytest.approx(np.full(20, samples))
    # Thirty clusters of three rows, of which two have either outcome in turn, tell as much as all rows.
    for clusters, samples in ((29, 29.0), (30, 90.0)):
        p_, y_ = np.full(3 * clusters, 0.5), np.resize([1.0, 0.0, 0.0, 0.0, 1.0, 1.0], 3 * clusters)
        gamma_, of = oc.JointDistribution.from_samples(p_, y_), np.arange(3 * clusters) // 3
        found = Clustered(gamma_, (p_, y_, np.ones(len(p_))), of).samples_near(None, place[:1], gamma_.means)
        assert found == pytest.approx([samples])
    # Places beyond those of levels, as where more than a thousand levels are spread on a grid.
    beyond = np.ones((3, 25)), place, np.full(3, 0.5)
    assert five.samples_near(*beyond) == pytest.approx(np.full(3, 800.0))
    assert Resample(gamma, (p, y, w)).samples_near(*beyond) == pytest.approx(np.full(3, 4000.0))


def test_rows_that_depend_in_their_order_are_warned_of_or_in_blocks_of_time(seed):
    """Without and with a column of times. 1000 rows of AR(0.9) are found in all of 200 samples."""
    p, y = in_time(np.random.default_rng([seed, 100]), 1000, 0.9)
    settings = Settings(99, measures=("smooth_ce",))
    plain, column = (measure_log(log_of(p, y, days), settings).columns[0] for days in (False, True))
    assert sum("alike in the order given" in said for said in plain.cautions) == 1
    clusters = blocks_in_time(y - p).labels
    row = evaluate(p, y, clusters=clusters, measures=["smooth_ce"], bootstrap=99).rows[0]
    wide = [
        each.interval[1] - each.value for each in (column.evaluation.rows[0], row, plain.evaluation.rows[0])
    ]
    assert wide[0] > wide[1] > wide[2]
    said, blocks = " ".join(column.cautions), len(np.unique(clusters))
    assert f"alike: {blocks} blocks of rows are taken as independent" in said
    assert "alike in the order given" not in said
    assert "too optimistic" not in said


@pytest.mark.parametrize(
    ("clusters", "said", "outcomes", "share"),
    [(29, 0.5, [0.0, 1.0], 1.0), (30, 0.5, [0.0, 1.0], 0.0), (60, 1.0, [0.0, 0.0, 1.0, 1.0], 1.0)],
)
def test_outcomes_of_few_clusters_are_drawn_as_alike_as_can_be(clusters, said, outcomes, share):
    """Of which it cannot be told how far they depend: here in each cluster the outcomes are opposite.

    Those of sure forecasts, which are wrong in whole clusters, are also drawn so.
    """
    p, y, labels = (
        np.full(2 * clusters, said),
        np.resize(outcomes, 2 * clusters),
        np.arange(2 * clusters) // 2,
    )
    gamma = oc.JointDistribution.from_samples(p, y)
    assert Clustered(gamma, (p, y, np.ones(len(p))), labels).shared == share


def test_few_times_and_clusters_of_a_column_beside_times_in_paired_tests():
    """Where times do not tell how long blocks must be there is no p-value; clusters of another column are no blocks."""
    given = 0
    for i in range(10):
        p, y = in_time(np.random.default_rng([9, i]), 100, 0.9)
        forecasts = {"a": p + 0.02, "b": p - 0.02}
        loss = scores(forecasts["a"], y)["brier"] - scores(forecasts["b"], y)["brier"]
        few = blocks_in_time((loss - loss.mean()) / 100).too_few
        (brier, _) = score_differences(forecasts, y, in_time=True)
        given += bool(few)
        assert not few or brier.p_value is None
    assert given >= 3
    clusters = np.arange(100) // 2
    log = log_of(forecasts, y, days=True, clusters=clusters, cluster="event")
    found = measure_log(log, Settings(0, measures=("brier",))).differences
    assert found == score_differences(forecasts, y, clusters=clusters)
    assert found != score_differences(forecasts, y, clusters=clusters, in_time=True)


@pytest.mark.parametrize("rare", [0, 1, 2])
def test_extremes_of_clusters_do_where_every_class_is_in_most_of_them(rare):
    """Of 40 clusters of six rows; where a class is in two of them alone, one more may have the largest loss of all."""
    of, y = np.repeat(np.arange(40), 6), np.tile([0, 0, 1, 1, 2, 2], 40)
    loss = np.linspace(0.1, 0.4, len(y))
    means = loss.reshape(40, 6).mean(axis=1)
    found = cluster_means(of, np.ones(len(y)), loss, y, 3, 1.0)
    assert found[0] == pytest.approx(means)
    assert found[3] == pytest.approx((means[0], means[-1]))
    for most in (2, 29):
        few = np.where((y == rare) & (of >= most), (rare + 1) % 3, y)
        assert cluster_means(of, np.ones(len(y)), loss, few, 3, 1.0)[3] == (0.0, 1.0)
    # Thirty are enough, and of 20 clusters 18.
    for clusters, enough in ((40, 30), (20, 18), (20, 17)):
        here = of < clusters
        y_ = np.where((y == rare) & (of >= enough), (rare + 1) % 3, y)[here]
        found = cluster_means(of[here], np.ones(here.sum()), loss[here], y_, 3, 1.0)[3]
        assert (found == (0.0, 1.0)) is (enough == 17)


# ---------------------------------------------------------------- one more unit, and blocks in time


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
    p, of = generator.choice(np.arange(1, 20) / 20, 2000), np.repeat(np.arange(100), 20)
    y = (generator.random(2000) < p) * 1.0
    gamma, rows = oc.JointDistribution.from_samples(p, y), (p, y, np.ones(2000))
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
    zeros, ones, most = oc.measures.MEASURES["brier"].sampling.losses(gamma)
    np.testing.assert_allclose(
        *(c * one.mean_cells(zeros, ones, most)[2] for c, one in ((1.0, wide), (2.0, plain)))
    )


def test_where_few_times_tell_of_alike_errors_nothing_is_printed_and_the_report_says_why(seed):
    """AR(.9): of 12 logs of 100 rows at most 5 have an interval (.12 of 200 had one), and of 2000 rows all."""
    printed, why = [], "times tell as much as"
    for n in (100, 2000):
        for i in range(12 if n == 100 else 2):
            p, y, *_ = times(n, 0.9).draw(np.random.default_rng([seed, 114, i]))
            column = measure_log(log_of(p, y, days=True), Settings(39, measures=("brier",))).columns[0]
            (row,) = column.evaluation.rows
            printed.append(row.interval is not None)
            told = any(why in said and "expected at least 50" in said for said in column.cautions)
            assert told == (row.interval is None)
            assert printed[-1] or (why in row.interval_by and row.p_value is None)
    assert sum(printed[:12]) <= 5
    assert all(printed[12:])
