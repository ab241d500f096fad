"""Rows that depend on each other: intervals, p-values and tests count clusters in place of rows."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from typer.testing import CliRunner

import onlinecal as oc
from onlinecal.cli import app
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.forecasts.clusters import Clustered, blocks_in_time
from onlinecal.forecasts.evaluation import evaluate
from onlinecal.forecasts.inference import calibration_test, score_differences
from onlinecal.forecasts.measuring import Settings
from onlinecal.forecasts.reading import Asked
from onlinecal.forecasts.source import report_of

LEVELS = (np.arange(20) + 0.5) / 20
MEASURES = ("ece", "cutoff_ce", "smooth_ece", "smooth_ce", "brier")


def events(generator, many, off=0.0, same=True):
    """Forecasts, outcomes and labels: five rows an event, with equal forecasts and outcomes or different ones."""
    p = np.repeat(generator.choice(LEVELS, many), 5) if same else generator.choice(LEVELS, 5 * many)
    chances = np.clip(p + off, 0.0, 1.0)
    return p, (np.repeat(generator.random(many), 5) < chances) * 1.0, np.repeat(np.arange(many), 5)


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("off", [0.0, 0.1])
def test_intervals_hold_the_truth_with_five_rows_an_event(same, off, seed):
    """Of 40 intervals that cover in 90 % of cases fewer than 29 hold the truth in under 0.1 % (20 counts)."""
    many = 1000 if same else 400
    population = oc.JointDistribution.from_counts(LEVELS, np.full(20, 1.0), np.clip(LEVELS + off, 0.0, 1.0))
    truth = {row.name: row.ends[0] for row in evaluate(population, measures=MEASURES).rows}
    held, without = dict.fromkeys(MEASURES, 0), dict.fromkeys(MEASURES, 0)
    for i in range(40):
        p, y, labels = events(np.random.default_rng([seed, 91, i]), many, off, same)
        for found, clusters in ((held, labels), (without, None)):
            for row in evaluate(p, y, clusters=clusters, measures=MEASURES, bootstrap=99, seed=i).rows:
                low, high = row.interval
                found[row.name] += low - 1e-12 <= truth[row.name] <= high + 1e-12
    assert min(held.values()) >= 29, held
    if same and off == 0.0:
        # The control: rows taken as independent, of whose intervals the truth is in half or fewer.
        assert without["ece"] < 29
        assert without["cutoff_ce"] < 29


def test_few_clusters_have_no_interval_and_no_p_value(seed):
    p, y, labels = events(np.random.default_rng([seed, 92]), 29)
    for row in evaluate(
        p, y, clusters=labels, measures=("smooth_ce", "brier"), bootstrap=99, reference=9
    ).rows:
        assert row.interval is None
        assert row.p_value is None
        assert "29 clusters weigh as much as 29 equal ones; expected at least 30" in row.interval_by


def test_what_has_no_method_with_clusters_is_refused():
    p, y = [0.2, 0.8], [0, 1]
    with pytest.raises(InvalidParameter, match="'finite-sample' with clusters"):
        evaluate(p, y, clusters=[0, 1], method="finite-sample")
    with pytest.raises(InvalidParameter, match=r"clusters has shape \(3,\); expected \(2,\)"):
        evaluate(p, y, clusters=[0, 1, 1])
    with pytest.raises(InvalidParameter, match="weights or clusters beside"):
        evaluate(oc.JointDistribution.from_samples(p, y), clusters=[0, 1])


@pytest.mark.parametrize("weighted", [False, True])
def test_changes_have_the_covariance_of_sums_of_clusters(weighted, seed):
    """Mean squares of 4000 normal changes: the mean of 20 is off by 4 of its standard errors in 0.01 % of cases."""
    generator = np.random.default_rng([seed, 93])
    p, y, labels = events(generator, 300, same=False)
    w = generator.integers(1, 4, len(p)) * 1.0 if weighted else np.ones(len(p))
    gamma = oc.JointDistribution.from_samples(p, y, weights=w)
    resample = Clustered(gamma, (p, y, w), labels)
    drawn = np.concatenate([change.residuals for change in resample.changes("calibrated", 4000, generator)])
    total = drawn.sum(axis=1)
    of = np.bincount(labels, w * (y - p)) / w.sum()
    power = float(of @ of)
    # What is added where a level varies less than independent rows would is never negative.
    independent = np.array([(w[p == v] ** 2).sum() * v * (1 - v) for v in gamma.predictions]) / w.sum() ** 2
    rows = [np.bincount(labels[p == v], (w * (y - p))[p == v]) / w.sum() for v in gamma.predictions]
    power += np.maximum(independent - [float(row @ row) for row in rows], 0.0).sum()
    assert abs((total**2).mean() / power - 1.0) < 4.0 * (2.0 / 4000) ** 0.5


def test_paired_tests_take_totals_of_clusters():
    generator = np.random.default_rng(5)
    one, other, y = generator.random(200), generator.random(200), generator.integers(0, 2, 200) * 1.0
    once = score_differences({"a": one, "b": other}, y)
    five = score_differences(
        {"a": np.repeat(one, 5), "b": np.repeat(other, 5)},
        np.repeat(y, 5),
        clusters=np.repeat(np.arange(200), 5),
    )
    for a, b in zip(once, five, strict=True):
        assert (a.mean, a.error, a.p_value) == pytest.approx((b.mean, b.error, b.p_value), rel=1e-9)


def test_the_test_of_a_group_rejects_calibrated_clusters_rarely(seed):
    """At most 15 of 60 p-values are below 5 %: where a test rejects in 10 % of cases, more are in 0.03 %."""
    small = alone = 0
    for i in range(60):
        p, y, labels = events(np.random.default_rng([seed, 94, i]), 200)
        gamma = oc.JointDistribution.from_samples(p, y)
        small += calibration_test(gamma, i, None, Clustered(gamma, (p, y, np.ones(len(p))), labels)) <= 0.05
        alone += calibration_test(gamma, i) <= 0.05
    assert small <= 15 < alone


@pytest.fixture
def log(tmp_path):
    p, y, labels = events(np.random.default_rng(7), 200)
    table = pd.DataFrame(
        {"p": p, "q": 0.5 * p + 0.25, "y": y, "event": labels + 1000, "site": np.where(labels % 2, "a", "b")}
    )
    table.to_csv(tmp_path / "f.csv", index=False)
    return tmp_path / "f.csv"


def test_the_command_takes_rows_of_one_label_as_a_cluster(log):
    asked = [
        "measure",
        "-y",
        "y",
        str(log),
        "-f",
        "p",
        "-f",
        "q",
        "-m",
        "smooth_ce",
        "--by",
        "site",
        "--draws",
        "99",
        "--json",
    ]
    data = json.loads(CliRunner().invoke(app, [*asked, "--cluster", "event"]).stdout)
    plain = json.loads(CliRunner().invoke(app, asked).stdout)
    assert data["cluster"] == "event"
    assert any("they are one cluster" in said for said in data["said"])
    assert data["differences"][0]["error"] > 2.0 * plain["differences"][0]["error"]
    once = pd.read_csv(log)[["p", "y", "event"]]
    row = evaluate(once.p, once.y, clusters=once.event, measures=["smooth_ce"], bootstrap=99).rows[0]
    (mine,) = data["forecasts"][0]["measures"]
    assert tuple(mine["interval"]) == row.interval
    for part, other in zip(data["forecasts"][0]["groups"], plain["forecasts"][0]["groups"], strict=True):
        assert part["error"] > 1.5 * other["error"]


def test_rows_of_one_time_are_a_cluster(log):
    by_time = report_of(str(log), Asked(("p",), "y", time="event"), Settings(99, measures=("smooth_ce",)))
    by_label = report_of(str(log), Asked(("p",), "y", cluster="event"), Settings(99, measures=("smooth_ce",)))
    assert by_time.cluster == "event"
    first, other = (one.columns[0].evaluation.rows[0] for one in (by_time, by_label))
    assert first.interval == other.interval


def test_clusters_are_not_followed_in_parts(log):
    with pytest.raises(InvalidParameter, match=r"--cluster with .* expected none, or --in-memory"):
        report_of(str(log), Asked(("p",), "y", cluster="event"), Settings(0), in_parts=True)


def test_a_row_without_a_label_is_refused(tmp_path):
    (tmp_path / "f.csv").write_text("p,y,event\n.2,0,a\n.3,1,\n")
    with pytest.raises(InvalidData, match="column 'event' is empty; expected the label of a cluster"):
        report_of(str(tmp_path / "f.csv"), Asked(("p",), "y", cluster="event"), Settings(0))


def autoregressive(generator, n, rho):
    """Calibrated forecasts of events whose uniforms depend on those before them."""
    normal, noise = np.empty(n), generator.standard_normal(n)
    normal[0] = noise[0]
    for t in range(1, n):
        normal[t] = rho * normal[t - 1] + (1.0 - rho**2) ** 0.5 * noise[t]
    p = generator.choice(LEVELS, n)
    return p, (ndtr(normal) < p) * 1.0


def test_rows_that_depend_on_earlier_ones_are_in_blocks_of_time(seed):
    """Of 60 intervals that cover in 80 % of cases fewer than 37 hold the truth in under 0.1 % (2 counts)."""
    held, without = dict.fromkeys(("cutoff_ce", "smooth_ce"), 0), dict.fromkeys(("cutoff_ce", "smooth_ce"), 0)
    for i in range(60):
        p, y = autoregressive(np.random.default_rng([seed, 95, i]), 3000, 0.9)
        for found, clusters in ((held, blocks_in_time(y - p)), (without, None)):
            for row in evaluate(p, y, clusters=clusters, measures=tuple(held), bootstrap=99, seed=i).rows:
                found[row.name] += row.interval[0] <= 1e-12
    assert min(held.values()) >= 37, held
    assert max(without.values()) < 37, without  # the control


def test_blocks_are_of_the_stated_length():
    """Of residuals with a correlation found by hand; those that do not depend stay single rows, or their clusters."""
    residuals = np.tile([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], 60)
    centred = residuals - residuals.mean()
    rho = float((centred[1:] * centred[:-1]).sum() / (centred**2).sum())
    length = int(np.ceil(1.1447 * (4.0 * rho**2 / (1.0 - rho**2) ** 2 * 360) ** (1.0 / 3.0)))
    assert length > 1
    assert np.array_equal(blocks_in_time(residuals), np.arange(360) // length)
    alone = np.tile([1.0, -1.0], 50)
    assert blocks_in_time(alone) is None
    assert np.array_equal(blocks_in_time(np.repeat(alone, 2), np.arange(200) // 2), np.arange(200) // 2)


def test_a_column_of_times_makes_blocks(tmp_path):
    p, y = autoregressive(np.random.default_rng(3), 1000, 0.9)
    pd.DataFrame({"p": p, "y": y, "day": np.arange(1000)}).to_csv(tmp_path / "f.csv", index=False)
    asked, settings = Asked(("p",), "y", time="day"), Settings(99, measures=("smooth_ce",))
    column = report_of(str(tmp_path / "f.csv"), asked, settings).columns[0]
    row = evaluate(p, y, clusters=blocks_in_time(y - p), measures=["smooth_ce"], bootstrap=99).rows[0]
    assert column.evaluation.rows[0].interval == row.interval
    assert any("take clusters of rows as independent" in said for said in column.cautions)
    assert not any("too optimistic" in said for said in column.cautions)
