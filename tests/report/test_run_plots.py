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
from onlinecal.report import run_plot, slope_plot, task_plot
from onlinecal.report.curves import Curve, summary
from onlinecal.report.run_plot import plot_runs, run_frames
from onlinecal.report.slope_plot import local_slopes, plot_slopes, slope_frames
from onlinecal.report.style import log_ticks, save
from onlinecal.report.task_plot import KINDS, TaskPanel, plot_tasks, task_panels

INF = np.inf


@pytest.fixture(scope="module")
def study():
    F, N = oc.forecasters, oc.natures
    return oc.play(
        [F.ForecastHedging(), F.EmpiricalMean()],
        [N.Drift(), N.Bernoulli(0.4)],
        horizon=[100, 300, 900],
        runs=5,
        measures=["ece", "cdl"],
        tasks=["umbrella", {"name": "umbrella", "response": "rounded"}],
    )


@pytest.fixture(scope="module")
def one():
    return oc.play(
        "forecast_hedging", "drift", horizon=2000, runs=5, measures=["ece", "cdl"], tasks=["umbrella"]
    )


def flat(axes):
    return " ".join(axes.flat[0].figure._supxlabel.get_text().split())


def curve(totals, *, rounds=(100, 200, 400, 800), fresh=True, measure="ece", **options):
    table = np.array(totals, dtype=float)
    return Curve(
        Column("measure", measure), "somebody", "drift", np.array(rounds), table.reshape(len(rounds), -1), fresh,
        **options,
    )  # fmt: skip


# ---------------------------------------------------------------- tasks


def test_regrets_of_tasks_are_the_means_at_the_largest_horizon(study):
    drawn = task_panels(study)
    assert [(p.nature, p.kind) for p in drawn] == [(n, k) for n in study.natures for k in KINDS]
    for panel in drawn:
        assert panel.tasks == ("umbrella", "umbrella, rounded")
        assert panel.horizon == 900
        for j, who in enumerate(panel.forecasters):
            cdl = study.curve("cdl", who, panel.nature).totals[-1]
            assert panel.bound[j] == cdl.mean()
            for i, task in enumerate(panel.tasks):
                totals = study.curve(f"{panel.kind}[{task}]", who, panel.nature).totals[-1]
                assert (panel.mean[i, j], panel.half[i, j]) == summary(totals)
                if panel.kind == "swap_regret" and task == "umbrella":
                    assert (totals <= cdl + 1e-9).all()  # what the caption says of the tick


def test_what_the_caption_of_tasks_says(study, one):
    said = task_plot.caption(study)
    for statement in (
        "Totals at T = 900, the largest, of who acts on the forecasts in each task. Point: mean of 5 runs.",
        "Line through it: its 95 % interval by Student's t, each on its own.",
        "External regret: to the best fixed action",
        "Tick in the colour of a forecaster: its mean CDL, which no swap regret of a best response to payoffs in "
        "[0, 1] exceeds.",
        "External regret may be negative",
    ):
        assert statement in said
    assert flat(plot_tasks(study)) == said
    single = oc.play("constant", "drift", horizon=50, runs=1, measures=["ece"], tasks=["umbrella"])
    assert "interval" not in task_plot.caption(single)
    assert "CDL" not in task_plot.caption(single)
    save(plot_tasks(single)[0, 0].figure, _nowhere())
    names = ["empirical_mean", "forecast_hedging"]
    far = oc.play(names, "drift", horizon=20_000, runs=2, measures=["cdl"], tasks=["umbrella"])
    assert "factor of more than 50" in task_plot.caption(far)
    with pytest.raises(InvalidParameter, match="no task was played"):
        plot_tasks(oc.play("constant", "drift", horizon=50, runs=1, measures=["ece"]))


# ---------------------------------------------------------------- runs


def test_every_run_is_drawn_and_the_mean(one, study):
    for scale in ("log", "linear"):
        (frame,) = run_frames([one.curve("cdl")], scale=scale)
        (line,) = frame.lines
        totals = one.curve("cdl").totals
        assert frame.scale == scale
        assert line.joined
        shown = np.where((totals > 0) | (scale == "linear"), totals, np.nan)
        assert np.array_equal(line.totals, shown, equal_nan=True)
        assert line.left == np.isnan(shown).sum()
        axis = plot_runs([one.curve("cdl")], scale=scale)[0, 0]
        assert axis.get_xscale() == axis.get_yscale() == scale
        thin = [artist for artist in axis.lines if artist.get_linewidth() == 0.6]
        assert np.array_equal(np.array([a.get_ydata() for a in thin]).T, shown, equal_nan=True)
    # Runs of different games are not joined by a line.
    (frame, _) = run_frames(study.curves(["ece"]))
    assert not any(line.joined for line in frame.lines)
    points = plot_runs(study.curves(["ece"]))[0, 0].lines
    assert sum(artist.get_linestyle() == "None" for artist in points) == 2 * 5


def test_totals_without_a_place_are_counted():
    zero = run_frames([curve([[0, 1], [2, 3], [4, INF], [5, 6]])])[0]
    assert zero.scale == "log"
    assert zero.lines[0].left == 2
    assert (
        "Not drawn: 2 totals of single runs that are infinite, or 0 on a logarithmic axis."
        in run_plot.caption([curve([[0, 1], [2, 3], [4, INF], [5, 6]])])
    )
    assert "Not drawn: 1 total of a single run that is" in run_plot.caption(
        [curve([[0, 1], [2, 3], [4, 5], [5, 6]])]
    )
    negative = [
        curve([[-1, 1], [2, 3], [4, 5], [5, 6]]),
        curve([[1, 1], [2, 3], [4, 5], [5, 6]], measure="cdl"),
    ]
    frames = run_frames(negative)
    assert [frame.scale for frame in frames] == ["linear", "log"]
    assert frames[0].lines[0].left == 0
    said = "The vertical axis is linear where totals are negative, or none is positive and finite."
    assert said in run_plot.caption(negative)
    for none in ([[0, 0]] * 4, [[INF, 0]] * 4):
        drawn = [curve(none), curve([[1, 1]] * 4, measure="cdl")]
        assert [frame.scale for frame in run_frames(drawn)] == ["linear", "log"]
        assert said in run_plot.caption(drawn)
    assert run_frames([curve([[0, 0]] * 4)])[0].scale == "linear"


def test_what_the_caption_of_runs_says(one, study):
    said = run_plot.caption(one.curves(["ece"]))
    assert said == "T: rounds of one game. Thin lines: single runs. Thick line: mean of 5 runs."
    assert flat(plot_runs(one.curves(["ece"]))) == said
    assert "Small points: single runs, which at different T are different games." in run_plot.caption(
        study.curves(["ece"])
    )


# ---------------------------------------------------------------- slopes


def test_local_slopes_are_those_of_the_means(study, one):
    for drawn in (study.curve("ece", "forecast hedging", "drift"), one.curve("ece")):
        value, lower, upper = local_slopes(drawn)
        t = drawn.rounds.astype(float)
        assert value == pytest.approx(np.diff(np.log(drawn.mean)) / np.diff(np.log(t)))
        assert (lower < value).all() or not drawn.fresh
        assert (lower <= value).all()
        assert (value <= upper).all()
    frame = slope_frames(study.curves(["ece"]))[0]
    line = frame.lines[0]
    assert line.fitted == study.curve("ece", "forecast hedging", "drift").exponent(simultaneous(4))
    assert (line.first.tolist(), line.last.tolist(), line.span) == ([100, 300], [300, 900], (100, 900))
    assert [label for label, *_ in frame.rates] == [str(rate) for rate in best_known("ece")]
    cdl = slope_frames([study.curve("cdl", "forecast hedging", "drift")])[0]
    for (_, times, slopes), rate in zip(cdl.rates, best_known("cdl"), strict=True):
        assert slopes == pytest.approx([rate.growth(a, b) for a, b in ((100, 300), (300, 900))])
        assert times.tolist() == [100, 300, 900]
    assert slope_frames(one.curves(["ece"]))[0].rates == []  # rates are about games tuned to T


def test_where_there_is_no_slope_or_no_interval():
    value, lower, _ = local_slopes(curve([0, 1, INF, 4]))
    assert np.isnan(value).all()
    value, lower, upper = local_slopes(curve([1, 2, 4, 8]))
    assert value == pytest.approx([1, 1, 1])
    assert np.isnan(lower).all()
    assert np.isnan(upper).all()
    same = curve([[1, 1], [2, 2], [4, 4], [8, 8]])
    value, lower, upper = local_slopes(same)
    assert upper - lower == pytest.approx(
        0, abs=1e-6
    )  # runs that are all the same: nothing is left to chance
    assert np.isnan(local_slopes(replace(same, recorded=True))[1]).all()
    said = slope_plot.caption([curve([0, 1, 2, 4])])
    assert "No point: where one of the two means is infinite or not positive." in said
    why = "No interval: of a single run, of games on one recorded stream, or where a mean is not positive without"
    assert why in said
    # Of two runs the other is 0.
    assert np.isnan(local_slopes(curve([[0, 5], [0, 6], [1, 7], [2, 9]]))[1]).tolist() == [True, True, False]
    assert why in slope_plot.caption([curve([[0, 5], [0, 6], [1, 7], [2, 9]])])
    assert "Vertical line" not in said
    with pytest.raises(InvalidParameter, match="no curve with two T or more"):
        plot_slopes([curve([3], rounds=[100])])


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("runs", [8, 30])
def test_the_interval_of_a_slope_covers_what_it_says(fresh, runs, seed):
    """At least 93 % of the 95 % intervals, as its docstring says, for log-normal totals of a variation up to 1/2.

    Of 3000 intervals that hold with 93 % or more fewer than the 1e-6 quantile hold with probability below 1e-6, by
    the binomial law. Along one game the totals at the two T are correlated.
    """
    rng = np.random.default_rng([seed, runs, fresh])
    times, many = np.array([100, 300]), 3000
    truth, hold = 0.6, 0
    sigma = np.sqrt(np.log(1.25))
    for _ in range(many):
        noise = rng.standard_normal((2, runs))
        if not fresh:
            noise[1] = 0.6 * noise[0] + 0.8 * noise[1]
        totals = (times**truth)[:, None] * np.exp(sigma * noise)
        _, lower, upper = local_slopes(curve(totals, rounds=times, fresh=fresh))
        hold += lower[0] <= truth <= upper[0]
    assert hold >= binom.ppf(1e-6, many, 0.93)


def test_an_interval_of_half_the_width_would_not_cover(seed):
    rng = np.random.default_rng([seed, 1])
    times, hold = np.array([100, 300]), 0
    for _ in range(1000):
        totals = (times**0.6)[:, None] * np.exp(0.4 * rng.standard_normal((2, 10)))
        value, lower, upper = local_slopes(curve(totals, rounds=times))
        half = (upper[0] - lower[0]) / 4
        hold += abs(value[0] - 0.6) <= half
    assert hold < binom.ppf(1e-6, 1000, 0.93)


def test_what_the_caption_of_slopes_says(study):
    said = slope_plot.caption(study.curves(["ece"]))
    for statement in (
        "T: a fresh game each.",
        "the slope of log total in log T between two neighbouring T, from means of 5 runs.",
        "Vertical line: an approximate 95% interval, each on its own, for that slope of the expected totals, from what "
        "differs between the runs; it may go beyond the edges.",
        "these intervals hold all together with 95%.",
        "Grey: the slopes of the best known rates against the worst nature, logarithms included.",
    ):
        assert statement in said
    assert "No interval" not in said
    assert "No point" not in said
    assert flat(plot_slopes(study.curves(["ece"]))) == said


# ---------------------------------------------------------------- all three


def _nowhere():
    from pathlib import Path
    from tempfile import mkdtemp

    return Path(mkdtemp()) / "a.png"


@pytest.mark.parametrize("name", ["tasks", "runs", "slopes"])
def test_pictures_of_runs_take_axes_pages_and_widths(name, study, tmp_path):
    draw = {
        "tasks": lambda **o: plot_tasks(study, **o),
        "runs": lambda **o: plot_runs(study.curves(["ece", "cdl"]), **o),
        "slopes": lambda **o: plot_slopes(study.curves(["ece", "cdl"]), **o),
    }[name]
    own = draw(title="$a_b$")
    assert own.shape == (2, 3 if name == "tasks" else 2)
    grid = Figure().subplots(*own.shape)
    assert (draw(axes=grid) == grid).all()
    for mine, theirs in zip(own.flat, grid.flat, strict=True):
        assert len(mine.lines) == len(theirs.lines) > 0
        for a, b in zip(mine.lines, theirs.lines, strict=True):
            assert np.array_equal(a.get_xydata(), b.get_xydata(), equal_nan=True)
        assert mine.get_ylim() == pytest.approx(theirs.get_ylim())
    assert [t.get_text() for t in own.flat[0].figure.legends[0].get_texts()] == study.forecasters
    # As in every other picture of the study.
    alone = study.only(["empirical mean"])
    drawn = {
        "tasks": lambda: plot_tasks(alone),
        "runs": lambda: plot_runs(alone.curves()),
        "slopes": lambda: plot_slopes(alone.curves()),
    }[name]()
    colours = {line.get_color() for line in drawn.flat[0].lines}
    assert "#D55E00" in colours
    assert "#0072B2" not in colours
    for width in ("page", 9, "column"):
        axes = draw(width=width, dark=True)
        assert axes.flat[0].figure.get_figwidth() == {"column": 3.4, "page": 7.0}.get(width, width)
    save(axes.flat[0].figure, tmp_path / "a.png")
    with pytest.raises(InvalidParameter, match="matplotlib Axes, natures × "):
        draw(axes=Figure().subplots(5))


# ---------------------------------------------------------------- labels of axes


def overlapping(axis):
    """Neighbouring labels of a horizontal axis that are drawn over each other."""
    figure = axis.figure
    figure.canvas.draw()
    labels = [*axis.xaxis.get_ticklabels(), *axis.xaxis.get_ticklabels(minor=True)]
    boxes = sorted(
        (one.get_window_extent().intervalx for one in labels if one.get_text()), key=lambda x: x[0]
    )
    return [one for one, other in pairwise(boxes) if one[1] >= other[0]]


@pytest.mark.parametrize("least", [0.7, -800.0, -8000.0, 1e-3])
def test_points_of_far_apart_regrets_are_within_their_axes_and_labels_apart(least):
    """Margins are those of the logarithmic scale, also for panels as narrow as those of a page."""
    mean = np.array([[least, 1.0], [180.0, 16384.0]])
    panel = TaskPanel(
        "contrarian", "external_regret", 32768, ("a", "b"), ("one", "other"), (0, 1), mean,
        np.zeros((2, 2)), np.full(2, np.nan),
    )  # fmt: skip
    axis = Figure(figsize=(2.4, 2.0), layout="constrained").subplots()
    task_plot._draw(axis, panel, named=True)
    low, high = (
        axis.transData.inverted().transform(axis.transAxes.transform((x, 0)))[0] for x in (0.02, 0.98)
    )
    assert low < mean.min()
    assert mean.max() < high
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
    assert sum(bool(one.get_text()) for one in axis.xaxis.get_ticklabels()) >= 1
