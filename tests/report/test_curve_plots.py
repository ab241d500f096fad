"""Pictures of curves, single runs and local slopes: the data to the digit, and that it is drawn."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.markers import CARETDOWNBASE, CARETUPBASE
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.growth.rates import best_known
from onlinecal.report.curve_plot import FORCED as FORCED_LOOK
from onlinecal.report.curve_plot import local_slopes, plot_runs, plot_slopes, runs_table, slopes_table
from onlinecal.report.frames import curves_table, facts
from onlinecal.report.plots import curves as plot_curves
from onlinecal.report.plots import save
from onlinecal.report.study_plot import plot_exponents
from onlinecal.study.played import Promise
from tests.report.made import INF, TIMES, cell, curve
from tests.report.made import study as made

F, N = oc.forecasters, oc.natures
HEDGING = "mean ≤ T/(2m) + m + 1 + √((m + 1)(m + 1 + T/2 + T/m))"
FORCED = "≥ T/2 (every deterministic forecaster)"


def words(fig):
    """All that the legends of panels say."""
    legends = [t.get_text() for axis in fig.axes if axis.get_legend() for t in axis.get_legend().get_texts()]
    return [" ".join(text.split()) for text in legends]


def lines(curves, *kinds, **where):
    """The lines of these kinds in the table of curves, in the panels that are named."""
    table = curves_table(curves)
    for name, value in where.items():
        table = table[table[name] == value]
    return [line for _, line in table[table["mark"].isin(kinds)].groupby("part")]


def by_label(found):
    return {line["label"].iloc[0]: line for line in found}


@pytest.fixture(scope="module")
def study():
    players = [F.ForecastHedging(), F.AlmostOneStepAhead(), F.CDLMinimiser()]
    return oc.play(players, [N.Contrarian(), N.Drift()], horizon=[100, 300, 900, 2700], runs=6)


@pytest.fixture(scope="module")
def one():
    return oc.play("forecast_hedging", "drift", horizon=2000, runs=5, measures=["ece", "cdl"])


# ---------------------------------------------------------------- lines, bounds, rates


def test_what_is_drawn_is_what_was_measured(study):
    drawn = lines(study.curves(["ece", "cdl", "ece"]), "mean")  # named twice, drawn once
    pairs = [("contrarian", "ece"), ("contrarian", "cdl"), ("drift", "ece"), ("drift", "cdl")]
    assert [(f["nature"].iloc[0], f["measure"].iloc[0]) for f in drawn[::3]] == pairs
    line, one = drawn[6], study.curve("ece", "forecast hedging", "drift")
    for mine, theirs in (
        (line["T"], one.rounds), (line["total"], one.totals.mean(axis=1)),
        (line["lower"], np.percentile(one.totals, 5, axis=1)), (line["upper"], np.percentile(one.totals, 95, axis=1)),
    ):  # fmt: skip
        assert (mine == theirs).all()
    assert {line["place"].iloc[0] for line in drawn[:3]} == {0, 1, 2}
    for line in drawn:
        one = study.curve(*line[["measure", "forecaster", "nature"]].iloc[0])
        found = one.exponent()
        assert set(line["exponent"].dropna()) == ({found.value} if found.clear else set())
        assert not found.clear or f"T^{found.value:.2f}" in line["label"].iloc[0]


def test_bounds_are_the_guarantees(study):
    t = (100, 300, 900, 2700)

    def drawn(nature, measure):
        return by_label(lines(study.curves(), "bound", nature=nature, measure=measure))

    hedging, (minimiser,) = F.ForecastHedging().guarantees[0], F.CDLMinimiser().guarantees
    contrary = drawn("contrarian", "ece")
    forced, own = contrary[FORCED], drawn("drift", "cdl")[f"mean ≤ {minimiser.formula}"]
    assert contrary[HEDGING]["total"].tolist() == [hedging.bound(n) for n in t]
    assert (forced["total"].tolist(), forced["place"].iloc[0]) == ([50, 150, 450, 1350], -1)
    smooth = drawn("drift", "smooth_ce")["≤ 2(2√T + 1)"]["total"]
    assert smooth.to_numpy() == pytest.approx([2 * (2 * n**0.5 + 1) for n in t])
    assert own["total"].tolist() == [minimiser.bound(n) for n in t]
    # Every bound that is drawn lies on the right side of the curves that it is about.
    keys = ["nature", "measure", "place", "T"]
    table = curves_table(study.curves()).set_index(keys)
    means, bounds = (table[table["mark"] == kind]["total"] for kind in ("mean", "bound"))
    both = bounds.to_frame().merge(means.rename("mean"), left_index=True, right_index=True)
    assert len(both) > 20
    assert (both["mean"] <= both["total"]).all()
    # A bound for deterministic forecasters is not drawn beside others.
    alone = lines([study.curve("ece", "forecast hedging", "contrarian")], "bound")
    assert list(by_label(alone)) == [HEDGING]


def test_bounds_of_one_game_are_drawn_where_they_hold():
    """From above level up to the end, from below at the end alone; rates not at all."""
    for upper, totals in ((True, [122.0, 122.0]), (False, [122.0])):
        promise = Promise("ece", "", "T", "deterministic", "all", upper, 122.0)
        one = made(cell("a", [[t, t] for t in TIMES], times=TIMES, promises=(promise,))).curves()
        (bound,) = lines(one, "bound")
        assert (bound["T"].iloc[-1], bound["total"].tolist()) == (TIMES[-1], totals)
        assert lines(one, "known") == []


def test_rates_are_drawn_through_the_first_point():
    times = (100, 400, 1600)
    promises = tuple((t, Promise("cdl", "", "√T", "rate", "all", True, t**0.5)) for t in times)
    # The first point that is drawn; of what a nature forces, the lowest curve's.
    for totals, drawn in (([3, 6, 9], [3.0, 6.0, 12.0]), ([0, 6, 9], [3.0, 6.0, 12.0])):
        (rate,) = lines([curve(totals, times, measure="cdl", promises=promises)], "rate", "bound")
        assert (rate["label"].iloc[0], rate["mark"].iloc[0]) == ("∝ √T", "rate")
        assert rate["total"].tolist() == drawn
    players = [F.EmpiricalMean(), F.ForecastHedging()]
    coin = oc.play(players, N.Bernoulli(), horizon=list(times), runs=4, measures="cdl")
    rate = by_label(lines(coin.curves(), "rate"))["∝ √T (every forecaster)"]
    lowest = min(line["total"].iloc[0] for line in lines(coin.curves(), "mean"))
    assert rate["total"].to_numpy() == pytest.approx(lowest * np.sqrt([1, 4, 16]))


def test_the_best_known_rates_are_slopes_below_the_curves(study):
    t = np.array([100, 300, 900, 2700])
    for measure in ("ece", "smooth_ce", "cdl"):
        curves = study.only(natures=["drift"]).curves([measure])
        start, known = min(curve.mean[0] for curve in curves) / 2, by_label(lines(curves, "known"))
        assert list(known) == [str(rate) for rate in best_known(measure)]
        for reference, rate in zip(known.values(), best_known(measure), strict=True):
            assert (reference["T"] == t).all()
            assert reference["total"].to_numpy() == pytest.approx(start * rate.at(t) / rate.at(t)[0])
    for measure, labels in {
        "kernel_ce": ["Ω(T^(1/3))", "O(√T)"], "u_calibration": ["Θ(√T)"],
        "swap_regret[quadratic]": ["O(T^(1/3) log T)"], "brier": [],
    }.items():  # fmt: skip
        assert list(by_label(lines([curve([10, 14, 20, 28], measure=measure)], "known"))) == labels


# ---------------------------------------------------------------- what has no place on the axes


@pytest.mark.parametrize(
    "totals", [[[0, 0]] * 4, [[-1, 1]] * 4, [[INF, INF]] * 4, [[-INF, -INF], [0, 0], [0, INF], [INF, 3]]]
)
def test_a_curve_that_cannot_be_drawn_is_named(totals):
    (row,) = curves_table([curve(totals)]).itertuples()
    assert (row.mark, row.label) == ("absent", "one: infinite, or 0")
    assert words(plot_curves([curve(totals)])) == ["one: infinite, or 0"]


@pytest.mark.parametrize(
    ("totals", "marks"),
    [
        ([3, 0, 5, 9], [([200], False)]), ([0, 0, 5, 9], [([100, 200], False)]),
        ([0, 4, 5, INF], [([800], True), ([100], False)]),
    ],
)  # fmt: skip
def test_single_points_do_not_vanish(totals, marks):
    (line,) = lines([curve(totals)], "mean")
    edges = lines([curve(totals)], "up", "down")
    assert [(edge["T"].tolist(), edge["mark"].iloc[0] == "up") for edge in edges] == marks
    # The line is broken there, not led past the gap.
    assert np.isnan(line["total"]).tolist() == [not 0 < total < INF for total in totals]
    fig = plot_curves([curve(totals)])
    arrows = [artist for artist in fig.axes[0].lines if artist.get_linestyle() == "None"]
    assert [artist.get_xdata().tolist() for artist in arrows] == [rounds for rounds, _ in marks]


def test_arrows_of_several_curves_are_below_each_other_within_the_panel():
    totals = {"a": [1, 2, 3, INF], "b": [2, 3, 4, INF], "c": [0, 1, 2, 3], "d": [0, 2, 3, 4]}
    axis = plot_curves([curve(row, forecaster=who) for who, row in totals.items()]).axes[0]
    heights = {
        up: [
            line.get_ydata()[0]
            for line in axis.lines
            if line.get_marker() == (CARETUPBASE if up else CARETDOWNBASE)
        ]
        for up in (True, False)
    }
    assert 1 > heights[True][0] > heights[True][1] > 0.5 > max(heights[False])
    assert [len({*each}) for each in heights.values()] == [2, 2]
    assert min(heights[False]) > 0


def test_negative_totals_are_drawn_as_they_are():
    below, zero = curve([-4, -30, -100, -900]), curve([0, 10, 0, 500], forecaster="other")
    table = curves_table([below, zero])
    assert table["negative"].all()
    assert table["total"].tolist() == [-4, -30, -100, -900, 0, 10, 0, 500]
    assert set(table["mark"]) == {"mean"}
    axis = plot_curves([below, zero]).axes[0]
    assert axis.get_yscale() == "symlog"
    assert axis.get_ylim()[0] < -900 < 500 < axis.get_ylim()[1]
    # Such an axis is its own.
    three = [curve([1, 2, 3, 4], measure=m) for m in ("ece", "brier")]
    one, two, own = plot_curves([*three, curve([-1, -2, 3, 4], measure="payoff[x]")]).axes
    assert [axis.get_yscale() for axis in (one, two, own)] == ["log", "log", "symlog"]
    assert own.get_ylim()[0] < 0


# ---------------------------------------------------------------- words and files


def test_the_title_line_and_the_bound_of_games_that_are_tuned_to_each_t():
    promises = (Promise("ece", "", "√T", "deterministic", "all", True, 9.0),)
    for recorded, said in ((True, " · recorded outcomes, the same in all runs"), (False, "")):
        games = (cell("a", [t, t], times=(t,), recorded=recorded, promises=promises) for t in TIMES)
        curves = made(*games).curves()
        assert facts(curves) == f"2 runs · T = 100 … 800{said}"
        (bound,) = lines(curves, "bound")
        assert bound["T"].tolist() == list(TIMES)
    one = made(cell("a", [[t, t] for t in TIMES], times=TIMES)).curves()
    assert facts(one) == "2 runs · T = 100 … 800 of one game"


def test_what_a_nature_forces_is_drawn_below_the_curves_and_hides_none(study):
    fig = plot_curves(study.curves(["ece"]), title="A title")
    kinds = ["proven upper bound", "proven lower bound", "best known rates"]
    assert [t.get_text() for t in fig.legends[0].get_texts()] == kinds
    forced = [line for line in fig.axes[0].lines if line.get_linewidth() == FORCED_LOOK["linewidth"]]
    assert [line.get_ydata().tolist() for line in forced] == [[50, 150, 450, 1350]]
    curves = [line for line in fig.axes[0].lines if line.get_marker() == "o"]
    assert all(forced[0].get_zorder() < line.get_zorder() for line in curves)


@pytest.mark.parametrize("letters", [14, 19, 40])
def test_legends_of_neighbouring_panels_do_not_meet(letters):
    """Names of English letters, with exponents."""
    names = [("almost one step ahead of all the others in time"[i:] + "and more")[:letters] for i in range(4)]
    curves = made(
        *(
            cell(name, {measure: [t, t] for measure in ("ece", "brier", "cdl")}, times=(t,))
            for name in names
            for t in TIMES
        )
    ).curves()
    fig = plot_curves(curves)
    fig.canvas.draw()
    boxes = sorted((axis.get_legend().get_window_extent() for axis in fig.axes), key=lambda box: box.x0)
    assert len(boxes) == 3
    assert all(one.x1 <= other.x0 for one, other in pairwise(boxes))
    assert boxes[-1].x1 <= fig.bbox.width * 1.01


def test_many_curves_have_their_names_in_the_legend_of_the_figure():
    names = [f"f {i}" for i in range(32)]
    cells = [
        cell(name, [(1 + i) * t**0.5] * 2, f"n{k}", times=(t,))
        for i, name in enumerate(names) for k in range(2) for t in TIMES[:3]
    ]  # fmt: skip
    fig = plot_curves(made(*cells).curves())
    fig.draw_without_rendering()
    assert [axis.get_legend() for axis in fig.axes] == [None] * 2
    assert [text.get_text() for text in fig.legends[0].get_texts()][:32] == names
    assert fig.legends[0].get_window_extent().width <= fig.bbox.width
    assert min(axis.get_window_extent().height / fig.dpi for axis in fig.axes) > 0.9


UNRULY = (r"$\frac{1$", "$5 or $6", "_under_ $x$", r"a\$b$c", "two\nlines", "100 % & #1 {^_}~", "$$", "a | b")


def test_any_text_may_be_a_label_and_stands_there_letter_by_letter(tmp_path):
    unruly = Column("function", "x[$_y$]")
    cells = [
        cell(who, {"ece": [4.99 * t, 5.01 * t], unruly: [-4.01, -3.99]}, nature, times=(t,))
        for who in UNRULY for nature in UNRULY[:2] for t in (1, 2, 4)
    ]  # fmt: skip
    drawn = made(*cells, title=r"From $5 to $\nothing")
    fig = plot_curves(drawn.curves(), title=drawn.title)
    for who, text in zip(UNRULY, fig.axes[0].get_legend().get_texts(), strict=True):
        said = text.get_text().removesuffix("  T^1.00").replace("\\$", "$").strip("\u200a")
        assert said.split() == who.split()
    save(fig, tmp_path / "x.svg")
    save(plot_exponents(drawn, ["ece", "x[$_y$]"], title=drawn.title), tmp_path / "y.svg")
    save(plot_curves([curve([0, 0, 0, 0], forecaster=UNRULY[0])]), tmp_path / "z.svg")
    written = (tmp_path / "y.svg").read_text()
    for text in UNRULY[1:3]:
        assert f">{text}</text>" in written  # as text, not as outlines


def test_totals_divided_by_a_power_of_t(study):
    curves = study.curves(["ece", "cdl"])
    drawn = plot_curves(curves, power=2 / 3)
    pairs = [(nature, measure) for nature in study.natures for measure in ("ece", "cdl")]
    for (nature, measure), axis in zip(pairs, drawn.axes, strict=True):
        shown = [line.get_ydata() for line in axis.lines]
        for one in lines(curves, "mean", "bound", nature=nature, measure=measure):
            scaled = one["total"] / one["T"] ** (2 / 3)
            assert any(len(y) == len(scaled) and np.allclose(y, scaled) for y in shown)
    level = [line for line in drawn.axes[0].lines if np.allclose(line.get_ydata(), line.get_ydata()[0])]
    assert len(level) == 1  # the best known upper rate of the ECE
    assert drawn.axes[0].get_ylabel() == "total T·μ / $T^{0.667}$"
    with pytest.raises(InvalidParameter, match="power"):
        plot_curves(curves, power=np.nan)


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
    assert [len(artist.get_xdata()) for artist in points] == [4 * 6] * 3


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
    assert fitted["T"].tolist() == [100, 2700]
    for name, value in (("slope", growth.value), ("lower", growth.lower), ("upper", growth.upper)):
        assert fitted[name].tolist() == [value] * 2
    assert (slopes["left"].tolist(), slopes["right"].tolist()) == ([100, 300, 900], [300, 900, 2700])
    assert [*table["label"][table["mark"] == "rate"].unique()] == [*map(str, best_known("ece"))]
    cdl = slopes_table([study.curve("cdl", "forecast hedging", "drift")])
    alone = cdl[cdl["mark"] == "slope"]
    assert alone["T"].tolist() == pytest.approx(np.sqrt(alone["left"] * alone["right"]).tolist())
    for rate in best_known("cdl"):
        known = cdl[(cdl["mark"] == "rate") & (cdl["label"] == str(rate))]
        inner = [rate.growth(a, b) for a, b in pairwise((100, 300, 900, 2700))]
        assert known["slope"].tolist()[1:-1] == pytest.approx(inner)
        assert known["T"].tolist() == pytest.approx([100, 100 * 3**0.5, 300 * 3**0.5, 900 * 3**0.5, 2700])
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


@pytest.mark.parametrize(("fresh", "runs"), [(True, 8), (False, 30)])
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
