"""Pictures of regrets by task, of single runs, and of local slopes: what is drawn to the digit, what captions say."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.growth import simultaneous
from onlinecal.growth.rates import best_known
from onlinecal.report.curves import Curve, summary
from onlinecal.report.run_plot import local_slopes, plot_runs, plot_slopes, run_frames, slope_frames
from onlinecal.report.study_plot import KINDS, TaskPanel, _draw_tasks, plot_tasks, task_panels
from onlinecal.report.style import log_ticks, save

INF = np.inf
F, N = oc.forecasters, oc.natures


@pytest.fixture(scope="module")
def study():
    return oc.play(
        [F.ForecastHedging(), F.EmpiricalMean()], [N.Drift(), N.Bernoulli(0.4)], horizon=[100, 300, 900], runs=5,
        measures=["ece", "cdl"], tasks=["umbrella", {"name": "umbrella", "response": "rounded"}],
    )  # fmt: skip


@pytest.fixture(scope="module")
def one():
    return oc.play(
        "forecast_hedging", "drift", horizon=2000, runs=5, measures=["ece", "cdl"], tasks=["umbrella"]
    )


def curve(totals, *, rounds=(100, 200, 400, 800), fresh=True, measure="ece", **options):
    table = np.array(totals, dtype=float).reshape(len(rounds), -1)
    return Curve(Column("measure", measure), "somebody", "drift", np.array(rounds), table, fresh, **options)


def the(frames):
    (frame,) = frames.values()
    return frame


# ---------------------------------------------------------------- tasks


def test_regrets_of_tasks_are_the_means_at_the_largest_horizon(study, tmp_path):
    drawn = task_panels(study)
    assert [(p.nature, p.kind) for p in drawn] == [(n, k) for n in study.natures for k in KINDS]
    for panel in drawn:
        assert (panel.tasks, panel.horizon) == (("umbrella", "umbrella, rounded"), 900)
        for j, who in enumerate(panel.forecasters):
            bound = study.curve("cdl", who, panel.nature).totals[-1]
            assert panel.bound[j] == bound.mean()
            for i, task in enumerate(panel.tasks):
                totals = study.curve(f"{panel.kind}[{task}]", who, panel.nature).totals[-1]
                assert (panel.mean[i, j], panel.half[i, j]) == summary(totals)
                if panel.kind == "swap_regret" and task == "umbrella":
                    assert (totals <= bound + 1e-9).all()  # the caption's statement on the tick
    single = oc.play("constant", "drift", horizon=50, runs=1, measures=["ece"], tasks=["umbrella"])
    assert "interval" not in plot_tasks.caption(single)
    assert "CDL" not in plot_tasks.caption(single)
    save(plot_tasks(single)[0, 0].figure, tmp_path / "a.png")
    with pytest.raises(InvalidParameter, match="no task was played"):
        plot_tasks(oc.play("constant", "drift", horizon=50, runs=1, measures=["ece"]))


# ---------------------------------------------------------------- runs


def test_every_run_is_drawn_and_the_mean(one, study):
    for scale in ("log", "linear"):
        frame = the(run_frames([one.curve("cdl")], scale=scale))
        (line,), totals = frame.lines, one.curve("cdl").totals
        shown = np.where((totals > 0) | (scale == "linear"), totals, np.nan)
        assert (frame.scale, line.joined, line.left) == (scale, True, np.isnan(shown).sum())
        assert np.array_equal(line.totals, shown, equal_nan=True)
        axis = plot_runs([one.curve("cdl")], scale=scale)[0, 0]
        assert axis.get_xscale() == axis.get_yscale() == scale
        thin = [artist for artist in axis.lines if artist.get_linewidth() == 0.6]
        assert np.array_equal(np.array([a.get_ydata() for a in thin]).T, shown, equal_nan=True)
    # Runs of different games are not joined by a line.
    assert not any(
        line.joined for frame in run_frames(study.curves(["ece"])).values() for line in frame.lines
    )
    points = plot_runs(study.curves(["ece"]))[0, 0].lines
    assert sum(artist.get_linestyle() == "None" for artist in points) == 2 * 5
    assert plot_runs.caption(one.curves(["ece"])).endswith("Thick line or large points: mean of 5 runs.")


@pytest.mark.parametrize(
    ("totals", "scale", "left"),
    [
        ([[0, 1], [2, 3], [4, INF], [5, 6]], "log", 2), ([[0, 1], [2, 3], [4, 5], [5, 6]], "log", 1),
        ([[-1, 1], [2, 3], [4, 5], [5, 6]], "linear", 0), ([[0, 0]] * 4, "linear", 0), ([[INF, 0]] * 4, "linear", 4),
    ],
)  # fmt: skip
def test_totals_without_a_place_are_counted(totals, scale, left):
    found, other = curve(totals), curve([[1, 1]] * 4, measure="cdl")
    assert (the(run_frames([found])).scale, the(run_frames([found])).lines[0].left) == (scale, left)
    said = plot_runs.caption([found, other])
    assert ("The vertical axis is linear where totals are negative, or none" in said) == (scale == "linear")
    assert (f"0 on a logarithmic axis: {left} total" in said) == (left > 0)


# ---------------------------------------------------------------- slopes


def test_local_slopes_are_those_of_the_means(study, one):
    for drawn in (study.curve("ece", "forecast hedging", "drift"), one.curve("ece")):
        value, lower, upper = local_slopes(drawn)
        t = drawn.rounds.astype(float)
        assert value == pytest.approx(np.diff(np.log(drawn.mean)) / np.diff(np.log(t)))
        assert ((lower <= value) & (value <= upper)).all()
    frame = slope_frames(study.curves(["ece"]))["drift", "ece"]
    line = frame.lines[0]
    assert line.fitted == study.curve("ece", "forecast hedging", "drift").exponent(simultaneous(4))
    assert (line.first.tolist(), line.last.tolist(), line.span) == ([100, 300], [300, 900], (100, 900))
    assert [label for label, *_ in frame.rates] == [str(rate) for rate in best_known("ece")]
    cdl = the(slope_frames([study.curve("cdl", "forecast hedging", "drift")]))
    for (_, times, slopes), rate in zip(cdl.rates, best_known("cdl"), strict=True):
        assert slopes == pytest.approx([rate.growth(a, b) for a, b in ((100, 300), (300, 900))])
        assert times.tolist() == [100, 300, 900]
    assert the(slope_frames(one.curves(["ece"]))).rates == []  # rates are about games tuned to T


def test_where_there_is_no_slope_or_no_interval():
    assert np.isnan(local_slopes(curve([0, 1, INF, 4]))[0]).all()
    value, lower, upper = local_slopes(curve([1, 2, 4, 8]))
    assert value == pytest.approx([1, 1, 1])
    assert np.isnan([lower, upper]).all()
    same = curve([[1, 1], [2, 2], [4, 4], [8, 8]])
    _, lower, upper = local_slopes(same)
    assert upper - lower == pytest.approx(
        0, abs=1e-6
    )  # runs that are all the same: nothing is left to chance
    assert np.isnan(local_slopes(replace(same, recorded=True))[1]).all()
    # Of two runs the other is 0.
    zero = curve([[0, 5], [0, 6], [1, 7], [2, 9]])
    assert np.isnan(local_slopes(zero)[1]).tolist() == [True, True, False]
    with pytest.raises(InvalidParameter, match="no curve with two T or more"):
        plot_slopes([curve([3], rounds=[100])])


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("runs", [8, 30])
def test_the_interval_of_a_slope_covers_what_it_says(fresh, runs, seed):
    """At least 93 % of the 95 % intervals, for log-normal totals of a variation up to 1/2.

    Of 2000 intervals that hold with 93 % or more fewer than the 1e-6 quantile hold with probability below 1e-6, by the
    binomial law; half the width, the control, does not. Along one game the totals at the two T are correlated.
    """
    rng = np.random.default_rng([seed, runs, fresh])
    times, many, truth, hold, control = np.array([100, 300]), 2000, 0.6, 0, 0
    for _ in range(many):
        noise = rng.standard_normal((2, runs))
        if not fresh:
            noise[1] = 0.6 * noise[0] + 0.8 * noise[1]
        totals = (times**truth)[:, None] * np.exp(np.sqrt(np.log(1.25)) * noise)
        (value,), (lower,), (upper,) = local_slopes(curve(totals, rounds=times, fresh=fresh))
        hold += lower <= truth <= upper
        control += abs(value - truth) <= (upper - lower) / 4
    assert hold >= binom.ppf(1e-6, many, 0.93) > control


# ---------------------------------------------------------------- all three


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
    mean = np.array([[least, 1.0], [180.0, 16384.0]])
    panel = TaskPanel("contrarian", "external_regret", 32768, ("a", "b"), ("one", "other"), (0, 1), mean,
                      np.zeros((2, 2)), np.full(2, np.nan))  # fmt: skip
    axis = Figure(figsize=(2.4, 2.0), layout="constrained").subplots()
    _draw_tasks(axis, panel, named=True)
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
    log_ticks(axis.xaxis, most / 10.4)
    assert overlapping(axis) == []
    assert any(one.get_text() for one in axis.xaxis.get_ticklabels())
