"""Pictures of regrets by task, of single runs and local slopes: what is drawn to the digit, what captions say."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import binom
from scipy.stats import t as student

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.growth.rates import best_known
from onlinecal.report.curve_plot import local_slopes, plot_runs, plot_slopes, runs_table, slopes_table
from onlinecal.report.facets import stacked
from onlinecal.report.study_plot import KINDS, draw_tasks, plot_tasks, tasks_table
from onlinecal.report.style import log_ticks
from onlinecal.study.curves import summary
from tests.report import made
from tests.report.made import INF, curve

F, N = oc.forecasters, oc.natures


@pytest.fixture(scope="module")
def study():
    return oc.play(
        [F.ForecastHedging(), F.EmpiricalMean()], [N.Drift(), N.Bernoulli(0.4)], horizon=[100, 300, 900], runs=5,
        measures=["ece", "cdl"], tasks=["umbrella", {"name": "umbrella", "response": "rounded"}],
    )  # fmt: skip


@pytest.fixture(scope="module")
def one():
    return oc.play("forecast_hedging", "drift", horizon=2000, runs=5, measures=["ece", "cdl"])


# ---------------------------------------------------------------- tasks


def test_regrets_of_tasks_are_the_means_at_the_largest_horizon(study):
    table = tasks_table(study)
    assert len(table[table["mark"] == "regret"]) == 2 * len(KINDS) * 2 * 2
    assert {*table["horizon"]} == {900}
    for row in table.itertuples():
        bound = study.curve("cdl", row.forecaster, row.nature).totals[-1]
        totals = study.curve(f"{row.kind}[{row.task}]", row.forecaster, row.nature).totals[-1]
        if row.mark == "regret":
            assert (row.total, row.half) == summary(totals)
            # A swap regret is never negative: nor is its interval.
            least = -np.inf if row.kind == "external_regret" else 0.0
            assert (row.left, row.right) == (max(row.total - row.half, least), row.total + row.half)
        else:
            assert (row.kind, row.total) == ("swap_regret", bound.mean())
            assert row.task != "umbrella" or (totals <= bound + 1e-9).all()
    fig = plot_tasks(study)
    fig.draw_without_rendering()
    assert len(fig.axes) == 2 * len(KINDS)
    with pytest.raises(InvalidParameter, match="no task was played"):
        plot_tasks(made.study({("a", "drift"): [1.0]}))


# ---------------------------------------------------------------- runs


def test_every_run_is_drawn_and_the_mean(one, study):
    for scale in ("log", "linear"):
        table, totals = runs_table([one.curve("cdl")], scale=scale), one.curve("cdl").totals
        shown = np.where((totals > 0) | (scale == "linear"), totals, np.nan)
        runs = table[table["mark"] == "run"]
        assert {*table["scale"]} == {scale}
        assert np.array_equal(runs["total"].to_numpy().reshape(5, -1).T, shown, equal_nan=True)
        axis = plot_runs([one.curve("cdl")], scale=scale).axes[0]
        assert axis.get_xscale() == axis.get_yscale() == scale
        thin = [artist for artist in axis.lines if artist.get_linewidth() == 0.6]
        assert np.array_equal(np.array([a.get_ydata() for a in thin]).T, shown, equal_nan=True)
    # Runs of different games are not joined by a line.
    assert {*runs_table(study.curves(["ece"]))["mark"]} == {"point", "mean"}
    points = [a for a in plot_runs(study.curves(["ece"])).axes[0].lines if a.get_marker() == "."]
    assert [len(artist.get_xdata()) for artist in points] == [3 * 5] * 2


@pytest.mark.parametrize(
    ("totals", "scale", "left"),
    [
        ([[0, 1], [2, 3], [4, INF], [5, 6]], "log", 2), ([[0, 1], [2, 3], [4, 5], [5, 6]], "log", 1),
        ([[-1, 1], [2, 3], [4, 5], [5, 6]], "linear", 0), ([[0, 0]] * 4, "linear", 0), ([[INF, 0]] * 4, "linear", 4),
    ],
)  # fmt: skip
def test_totals_without_a_place_are_counted(totals, scale, left):
    table = runs_table([curve(totals)])
    assert {*table["scale"]} == {scale}
    assert table["total"][table["mark"] != "mean"].isna().sum() == left
    plot_runs([curve(totals), curve([[1, 1]] * 4, measure="cdl")]).draw_without_rendering()


# ---------------------------------------------------------------- slopes


def test_local_slopes_are_those_of_the_means(study, one):
    for drawn in (study.curve("ece", "forecast hedging", "drift"), one.curve("ece")):
        value, lower, upper = local_slopes(drawn)
        t = drawn.rounds.astype(float)
        assert value == pytest.approx(np.diff(np.log(drawn.mean)) / np.diff(np.log(t)))
        assert ((lower <= value) & (value <= upper)).all()
    curves = study.only(natures=["drift"]).curves(["ece"])
    table = slopes_table(curves)
    mine = table[table["forecaster"] == "forecast hedging"]
    slopes, fitted = mine[mine["mark"] == "slope"], mine[mine["mark"] == "fitted"]
    growth = curves[0].exponent()
    assert growth.clear
    assert fitted["T"].tolist() == [100, 900]
    for name, value in (("slope", growth.value), ("lower", growth.lower), ("upper", growth.upper)):
        assert fitted[name].tolist() == [value] * 2
    assert (slopes["left"].tolist(), slopes["right"].tolist()) == ([100, 300], [300, 900])
    assert [*table["label"][table["mark"] == "rate"].unique()] == [*map(str, best_known("ece"))]
    cdl = slopes_table([study.curve("cdl", "forecast hedging", "drift")])
    for rate in best_known("cdl"):
        known = cdl[(cdl["mark"] == "rate") & (cdl["label"] == str(rate))]
        inner = [rate.growth(a, b) for a, b in ((100, 300), (300, 900))]
        assert known["slope"].tolist()[1:-1] == pytest.approx(inner)
        assert known["T"].tolist() == pytest.approx([100, 100 * 3**0.5, 300 * 3**0.5, 900])
    assert "rate" not in {*slopes_table(one.curves(["ece"]))["mark"]}  # rates are about games tuned to T


def test_where_there_is_no_slope_or_no_interval():
    assert np.isnan(local_slopes(curve([0, 1, INF, 4]))[0]).all()
    value, lower, upper = local_slopes(curve([1, 2, 4, 8]))
    assert value == pytest.approx([1, 1, 1])
    assert np.isnan([lower, upper]).all()
    same = curve([[1, 1], [2, 2], [4, 4], [8, 8]])
    _, lower, upper = local_slopes(same)
    assert upper - lower == pytest.approx(0, abs=1e-6)  # nothing is left to chance
    assert np.isnan(local_slopes(replace(same, recorded=True))[1]).all()
    with pytest.raises(InvalidParameter, match="no curve with two T or more"):
        plot_slopes([curve([3], [100])])


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("runs", [8, 30])
def test_the_interval_of_a_slope_covers_what_it_says(fresh, runs, seed):
    """At least 93 % of the 95 % intervals, for log-normal totals of a variation up to 1/2.

    Say that each of 1000 intervals holds with 93 % or more. Then fewer than the 1e-6 quantile hold with probability
    below 1e-6, by the binomial law. With half the width, the control, fewer do. Along one game the totals at the
    two T are correlated.
    """
    rng = np.random.default_rng([seed, runs, fresh])
    times, many, truth, hold, control = np.array([100, 300]), 1000, 0.6, 0, 0
    for _ in range(many):
        noise = rng.standard_normal((2, runs))
        if not fresh:
            noise[1] = 0.6 * noise[0] + 0.8 * noise[1]
        totals = (times**truth)[:, None] * np.exp(np.sqrt(np.log(1.25)) * noise)
        (value,), (lower,), (upper,) = local_slopes(curve(totals, times, fresh=fresh))
        hold += lower <= truth <= upper
        control += abs(value - truth) <= (upper - lower) / 4
    assert hold >= binom.ppf(1e-6, many, 0.93) > control


def test_slopes_share_limits_by_row():
    steep = [made.cell("a", [t**2.0] * 2, "other", times=(t,)) for t in (100, 200, 400)]
    flat = [made.cell("a", {"ece": [t**0.5] * 2, "cdl": [t**0.4] * 2}, times=(t,)) for t in (100, 200, 400)]
    limits = [axis.get_ylim() for axis in plot_slopes(made.study(*flat, *steep).curves()).axes]
    assert limits[0] == limits[1] != limits[2]


# ---------------------------------------------------------------- labels of axes


def overlapping(axis):
    """Neighbouring labels of a horizontal axis that are drawn over each other."""
    axis.figure.canvas.draw()
    labels = [*axis.xaxis.get_ticklabels(), *axis.xaxis.get_ticklabels(minor=True)]
    boxes = sorted(
        (one.get_window_extent().intervalx for one in labels if one.get_text()), key=lambda x: x[0]
    )
    return [one for one, other in pairwise(boxes) if one[1] >= other[0]]


@pytest.mark.parametrize("least", [0.7, -800.0, -8000.0, 1e-3])
def test_points_of_far_apart_regrets_are_within_their_axes_and_labels_apart(least):
    mean = np.array([least, 1.0, 180.0, 16384.0])
    rows = stacked([{"mark": "regret", "forecaster": ["one", "other"] * 2, "place": [0, 1] * 2, "total": mean,
                     "left": mean, "right": mean, "line": [-0.2, 0.2, 0.8, 1.2]}])  # fmt: skip
    axis = Figure(figsize=(2.4, 2.0), layout="constrained").subplots()
    draw_tasks(axis, rows, ["a", "b"])
    inside = axis.transData.inverted()
    low, high = (inside.transform(axis.transAxes.transform((x, 0)))[0] for x in (0.02, 0.98))
    assert low < mean.min() < mean.max() < high
    if least > 0:
        assert axis.get_xlim()[0] > -1.0
    assert overlapping(axis) == []


@pytest.mark.parametrize("most", [40.0, 60.0, 200.0, 3e4])
def test_labels_of_a_narrow_logarithmic_axis_are_apart(most):
    axis = Figure(figsize=(2.6, 2.4), layout="constrained").subplots()
    axis.set_xscale("log")
    axis.set_xlim(10.4, most)
    log_ticks(axis.xaxis, ratio=most / 10.4)
    assert overlapping(axis) == []
    assert any(one.get_text() for one in axis.xaxis.get_ticklabels())


def test_intervals_of_regrets_are_those_of_student():
    """Of made totals, against SciPy's interval for a mean. A single run has no interval."""
    totals = np.array([3.0, 5.0, 4.0, 9.0, 2.0])
    columns = [Column("decision_task", kind, task="umbrella") for kind in KINDS]
    table = tasks_table(made.study(made.cell("a", {c: k * totals for k, c in enumerate(columns, 1)})))
    assert list(table["kind"]) == list(KINDS)
    for k, row in enumerate(table.itertuples(), 1):
        low, high = student.interval(0.95, 4, loc=k * totals.mean(), scale=k * totals.std(ddof=1) / 5**0.5)
        low = low if row.kind == "external_regret" else max(low, 0.0)
        assert (row.left, row.right, row.total) == pytest.approx((low, high, 4.6 * k))
    # Where all is exactly 0 the axis is no scatter of roundings.
    zero = made.study(made.cell("a", {column: [0.0, 0.0] for column in columns}))
    assert [axis.get_xlim() for axis in plot_tasks(zero).axes] == [(-1.0, 1.0)] * 3
    single = tasks_table(made.study(made.cell("a", {column: [3.0] for column in columns})))
    assert {*single["left"], *single["right"]} == {3.0}
