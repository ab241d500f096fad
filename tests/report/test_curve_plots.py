"""Curves, single runs and local slopes: their tables by definition, and what stands beside the axes."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.markers import CARETDOWNBASE, CARETUPBASE
from scipy.stats import binom

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.growth.rates import best_known
from onlinecal.report.curve_plot import FORCED, local_slopes, plot_runs, plot_slopes, runs_table, slopes_table
from onlinecal.report.frames import curves_table, facts, places
from onlinecal.report.plots import curves as plot_curves
from onlinecal.report.plots import save
from onlinecal.report.study_plot import plot_exponents
from onlinecal.study.played import Promise
from tests.report.drawn import overlapping, texts
from tests.report.made import INF, TIMES, cell, curve, noisy
from tests.report.made import study as made


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


def promise(t, kind="deterministic", upper=True):
    """A bound of 3√T on the ECE at this T."""
    return Promise("ece", "", "3√T", kind, "every forecaster", upper, 3 * t**0.5)


@pytest.fixture(scope="module")
def study():
    """Games of three forecasters with several T against two natures, in two measures, with bounds on one."""
    rng, means = np.random.default_rng(0), {"one": 1.0, "two": 1.5, "three": 0.5}
    return made(*(
        cell(who, {m: noisy(rng, [scale * t**0.6 + 9])[0] for m in ("ece", "cdl")}, nature, (t,),
             promises=(promise(t), promise(t, upper=False)) if nature == "n" else ())
        for nature in "mn" for who, scale in means.items() for t in TIMES
    ))  # fmt: skip


@pytest.fixture(scope="module")
def one():
    """A game, with totals at several T."""
    return curve(noisy(np.random.default_rng(1), [5, 9, 14, 21], 5), fresh=False)


# ---------------------------------------------------------------- lines, bounds, rates


def test_lines_are_means_with_percentiles_and_exponents(study):
    drawn = lines(study.curves(["ece", "cdl", "ece"]), "mean")  # named twice, drawn once
    assert [(f["nature"].iloc[0], f["measure"].iloc[0]) for f in drawn[::3]] == [
        ("m", "ece"), ("m", "cdl"), ("n", "ece"), ("n", "cdl"),
    ]  # fmt: skip
    assert [line["place"].iloc[0] for line in drawn] == [0, 1, 2] * 4
    for line in drawn:
        one = study.curve(*line[["measure", "forecaster", "nature"]].iloc[0])
        lower, upper = np.percentile(one.totals, [5, 95], axis=1)
        for name, values in {"T": one.rounds, "total": one.mean, "lower": lower, "upper": upper}.items():
            assert line[name].to_numpy() == pytest.approx(values)
        found = one.exponent()
        assert (found.clear, {*line["exponent"]}) == (True, {found.value})
        assert line["label"].iloc[0] == f"T^{found.value:.2f}"


BOUNDS = dict(zip(TIMES, 3 * np.sqrt(TIMES), strict=True))


@pytest.mark.parametrize(
    ("kind", "upper", "fresh", "mark", "label", "drawn"),
    [
        ("deterministic", True, True, "bound", "≤ 3√T", BOUNDS),
        ("expected", True, True, "bound", "mean ≤ 3√T", BOUNDS),
        ("deterministic", False, True, "bound", "≥ 3√T (every forecaster)", BOUNDS),
        # Through the first point that is drawn; at 100 the total is 0.
        ("rate", True, True, "rate", "∝ 3√T", {t: 7 * (t / 200) ** 0.5 for t in TIMES}),
        # Of one game a bound from above is level from the first point up to the end; from below it is at the end alone.
        ("deterministic", True, False, "bound", "≤ 3√T", {200: 3 * 800**0.5, 800: 3 * 800**0.5}),
        ("deterministic", False, False, "bound", "≥ 3√T (every forecaster)", {800: 3 * 800**0.5}),
        ("rate", True, False, None, "", {}),
    ],
)  # fmt: skip
def test_bounds_are_drawn_where_they_hold(kind, upper, fresh, mark, label, drawn):
    promises = tuple((t, promise(t, kind, upper)) for t in (TIMES if fresh else TIMES[-1:]))
    found = lines([curve([0, 7, 9, 11], measure="ece", fresh=fresh, promises=promises)], "bound", "rate")
    assert len(found) == (mark is not None)
    for line in found:
        assert dict(zip(line["T"], line["total"], strict=True)) == pytest.approx(drawn)
        own = ("one", 0) if upper else ("", -1)  # what a nature forces is of all its forecasters
        assert tuple(line[["mark", "label", "forecaster", "place"]].iloc[0]) == (mark, label, *own)


def test_rates_have_no_place_beside_negative_totals_and_at_a_single_t():
    promises = tuple((t, promise(t, "rate")) for t in TIMES)
    for totals, given in (([-1, -2, -3, -4], promises), ([1, 2, 3, 4], promises[:1])):
        assert lines([curve(totals, measure="ece", promises=given)], "rate") == []
    assert lines([curve([5], [100], measure="ece")], "known") == []
    assert len(lines([curve([5, 7], [100, 200], measure="ece")], "known")) == 2


def test_what_a_nature_forces_is_drawn_once_below_all_curves(study):
    fig = plot_curves(study.curves(["ece"]), title="A title")
    kinds = ["proven upper bound", "proven lower bound", "best known rates"]
    assert [t.get_text() for t in fig.legends[0].get_texts()] == kinds
    _, axis = fig.axes
    (forced,) = [line for line in axis.lines if line.get_linewidth() == FORCED["linewidth"]]
    assert all(forced.get_zorder() < line.get_zorder() for line in axis.lines if line.get_marker() == "o")
    # A rate that it forces goes through the lowest curve.
    promises = tuple((t, promise(t, "rate", False)) for t in TIMES)
    several = [curve(c * np.array(TIMES), forecaster=c, measure="ece", promises=promises) for c in (3, 2, 5)]
    (rate,) = lines(several, "rate")
    assert rate["total"].tolist() == pytest.approx((2 * 100 * np.sqrt([1, 2, 4, 8])).tolist())


def test_the_best_known_rates_are_slopes_below_the_curves():
    t = np.array(TIMES)
    for measure, labels in {
        "ece": ["Ω(T^0.54389)", "O(T^(2/3))"], "cdl": ["Ω(√T)", "O(√T log T)"], "kernel_ce": ["Ω(T^(1/3))", "O(√T)"],
        "u_calibration": ["Θ(√T)"], "swap_regret[quadratic]": ["O(T^(1/3) log T)"], "brier": [],
    }.items():  # fmt: skip
        curves = [curve(start * t, forecaster=start, measure=measure) for start in (3, 2)]
        known = by_label(lines(curves, "known"))
        assert list(known) == labels
        for reference, rate in zip(known.values(), best_known(measure), strict=False):
            assert reference["T"].tolist() == list(TIMES)
            assert reference["total"].to_numpy() == pytest.approx(100 * rate.at(t) / rate.at(t)[0])
        # Of games that are tuned to their T alone.
        assert lines([replace(each, fresh=False) for each in curves], "known") == []


def test_bounds_are_named_below_a_single_panel_and_in_the_legend_of_several():
    promises = tuple((t, promise(t)) for t in TIMES)
    one, other = (curve([5, 7, 9, 11], measure=m, promises=promises) for m in ("ece", "cdl"))
    assert "≤ 3√T" in words(plot_curves([one]))
    assert "≤ 3√T" not in words(plot_curves([one, other]))


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ((True,), ["proven rate"]), ((False,), ["proven rate"]),
        ((True, False), ["proven rate", "proven rate, forced"]),
    ],
)  # fmt: skip
def test_rates_of_both_kinds_are_told_apart_in_the_legend(rates, said):
    promises = tuple((t, promise(t, "rate", upper)) for t in TIMES for upper in rates)
    fig = plot_curves([curve([5, 7, 9, 11], measure="brier", promises=promises)])
    assert [text.get_text() for text in fig.legends[0].get_texts()] == said


def test_forecasters_without_a_place_have_the_first_that_are_free():
    given = {"a": 1, "b": None, "c": 1, "d": None}
    assert places([curve([1, 2, 3, 4], forecaster=who, place=at) for who, at in given.items()]) == {
        "a": 1, "b": 0, "c": 2, "d": 3,
    }  # fmt: skip


@pytest.mark.parametrize(("many", "every"), [(12, 1), (13, 2), (24, 2), (25, 3)])
def test_a_curve_has_at_most_twelve_markers(many, every):
    one = curve(range(1, many + 1), range(10, 10 + many))
    for drawn in (plot_curves([one]), plot_runs([one])):
        marked = [line.get_markevery() for line in drawn.axes[0].lines if line.get_markevery() is not None]
        assert marked == [every]


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
    up, down = (
        [line.get_ydata()[0] for line in axis.lines if line.get_marker() == marker]
        for marker in (CARETUPBASE, CARETDOWNBASE)
    )
    assert (len(up), len(down)) == (2, 2)
    assert 1 > up[0] > up[1] > 0.5 > down[1] > down[0] > 0


def labels_of(axis):
    """The numbers beside the vertical axis."""
    axis.figure.draw_without_rendering()
    return {label.get_text() for label in axis.get_yticklabels()}


def test_negative_totals_are_drawn_as_they_are():
    below, zero = curve([-4, -30, -100, -900]), curve([0, 10, 0, 500], forecaster="other")
    table = curves_table([below, zero])
    assert table["negative"].all()
    assert table["total"].tolist() == [-4, -30, -100, -900, 0, 10, 0, 500]
    assert set(table["mark"]) == {"mean"}
    axis = plot_curves([below, zero]).axes[0]
    assert axis.get_yscale() == "symlog"
    assert axis.get_ylim()[0] < -900 < 500 < axis.get_ylim()[1]
    assert {"-100", "0", "100"} <= labels_of(axis)
    assert {"10⁰", "10³"} <= labels_of(plot_curves([curve([1, 10, 100, 1000])]).axes[0])
    # Such an axis is its own.
    three = [curve([1, 2, 3, 4], measure=m) for m in ("ece", "brier")]
    one, two, own = plot_curves([*three, curve([-1, -2, 3, 4], measure="payoff[x]")]).axes
    assert [axis.get_yscale() for axis in (one, two, own)] == ["log", "log", "symlog"]
    assert own.get_ylim()[0] < 0


# ---------------------------------------------------------------- words and files


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "2 runs · T = 100 … 800"), ({"fresh": False}, "2 runs · T = 100 … 800 of one game"),
        ({"recorded": True}, "2 runs · T = 100 … 800 · recorded outcomes, the same in all runs"),
        ({"open": np.array([1, 2, 3, 1200])}, "2 runs · T = 100 … 800 · without up to 1,200 open questions"),
    ],
)  # fmt: skip
def test_the_title_line_says_what_games_have_in_common(more, said):
    one = replace(curve([[t, t] for t in TIMES]), **more)
    assert facts([one]) == said
    if "recorded" in more:  # said where all curves are
        assert "recorded" not in facts([one, curve([[t, t] for t in TIMES])])
    assert facts([curve([[3, 4]], [1000], fresh=False)]) == "2 runs · T = 1,000"


@pytest.mark.parametrize("letters", [14, 19, 40, 50])
def test_legends_of_panels_are_no_wider_than_these_and_do_not_meet(letters):
    """Names of English letters, with exponents."""
    names = [("almost one step ahead of all the others in time"[i:] + "and more")[:letters] for i in range(4)]
    totals = {measure: [[t, t] for t in TIMES] for measure in ("ece", "brier", "cdl")}
    fig = plot_curves(
        [curve(rows, measure=m, forecaster=name) for m, rows in totals.items() for name in names]
    )
    assert overlapping(texts(fig)) == []
    boxes = [axis.get_legend().get_window_extent() for axis in fig.axes]
    assert all(box.width <= axis.get_window_extent().width for box, axis in zip(boxes, fig.axes, strict=True))
    boxes.sort(key=lambda box: box.x0)
    assert len(boxes) == 3
    assert all(one.x1 <= other.x0 for one, other in pairwise(boxes))
    assert boxes[-1].x1 <= fig.bbox.width * 1.01


@pytest.mark.parametrize(("many", "below"), [(12, True), (13, False)])
def test_up_to_twelve_curves_have_their_names_below_their_panel(many, below):
    fig = plot_curves([curve([i, 2 * i, 4 * i, 8 * i], forecaster=f"f{i}") for i in range(1, many + 1)])
    names = [text.get_text() for legend in fig.legends for text in legend.get_texts()]
    assert (fig.axes[0].get_legend() is not None, "f1" in names) == (below, not below)


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


def test_totals_are_divided_by_a_power_of_t(study):
    plain, scaled = (plot_curves(study.curves(["ece", "cdl"]), power=power) for power in (0, 2 / 3))
    for one, other in zip(plain.axes, scaled.axes, strict=True):
        for before, after in zip(one.lines, other.lines, strict=True):
            (x, y), (t, shown) = before.get_data(), after.get_data()
            assert np.asarray(t).tolist() == np.asarray(x).tolist()
            assert shown == pytest.approx(np.asarray(y) / np.asarray(x, float) ** (2 / 3), nan_ok=True)
    assert scaled.axes[0].get_ylabel() == "total T·μ / $T^{0.667}$"
    for power in (4, -4):
        assert plot_curves(study.curves(["ece"]), power=power).axes
    for power in (np.nan, 4.1, -4.1):
        with pytest.raises(InvalidParameter, match="power"):
            plot_curves(study.curves(), power=power)


# ---------------------------------------------------------------- runs


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_every_run_has_a_line_and_there_is_the_mean(one, study, scale):
    some = replace(one, totals=np.vstack(([[0] * 5], one.totals[1:])))
    table = runs_table([some], scale=scale)
    shown = np.where((some.totals > 0) | (scale == "linear"), some.totals, np.nan)
    runs, mean = (table[table["mark"] == kind] for kind in ("run", "mean"))
    assert {*table["scale"]} == {scale}
    assert np.array_equal(runs["total"].to_numpy().reshape(5, -1).T, shown, equal_nan=True)
    assert np.array_equal(runs["run"].to_numpy().reshape(5, -1), np.repeat(range(5), 4).reshape(5, -1))
    assert np.array_equal(mean["total"], np.append(shown[:1, 0], some.mean[1:]), equal_nan=True)
    axis = plot_runs([some], scale=scale).axes[0]
    assert axis.get_xscale() == axis.get_yscale() == scale
    # Runs are thin behind the mean; those of different games are not joined by a line.
    assert [line.get_marker() == "o" for line in axis.lines if line.get_linewidth() > 1] == [True]
    assert {*runs_table(study.curves(["ece"]))["mark"]} == {"point", "mean"}
    several = plot_runs(study.curves(["ece"])).axes[0].lines
    assert [line.get_linestyle() != "None" for line in several] == [
        line.get_marker() != "." for line in several
    ]


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


def test_slopes_are_those_of_the_means_beside_the_fit_and_the_known_rates(study, one):
    t = np.array(TIMES, float)
    for drawn in (study.curve("ece", "one", "m"), one):
        value, lower, upper = local_slopes(drawn)
        assert value == pytest.approx(np.diff(np.log(drawn.mean)) / np.diff(np.log(t)))
        assert ((lower <= value) & (value <= upper)).all()
    curves = study.only(natures=["m"]).curves(["cdl"])
    table = slopes_table(curves)
    for place, (who, mine) in enumerate(table[table["forecaster"] != ""].groupby("forecaster", sort=False)):
        slopes, fitted = mine[mine["mark"] == "slope"], mine[mine["mark"] == "fitted"]
        growth = study.exponent("cdl", who, "m")
        assert fitted["T"].tolist() == [100, 800]
        for name, value in (("slope", growth.value), ("lower", growth.lower), ("upper", growth.upper)):
            assert fitted[name].tolist() == [value] * 2
        assert (slopes["left"].tolist(), slopes["right"].tolist()) == ([100, 200, 400], [200, 400, 800])
        # Between two T the forecasters stand beside each other, and the second of three in the middle.
        share = np.log(slopes["T"] / slopes["left"]) / np.log(2)
        assert share.to_numpy() == pytest.approx([(0.4, 0.5, 0.6)[place]] * 3)
    for rate in best_known("cdl"):
        known = table[table["label"] == str(rate)]
        inner = [rate.growth(a, b) for a, b in pairwise(TIMES)]
        assert known["slope"].tolist() == pytest.approx([inner[0], *inner, inner[-1]])
        assert known["T"].tolist() == pytest.approx([100, 100 * 2**0.5, 200 * 2**0.5, 400 * 2**0.5, 800])
    assert "rate" not in {*slopes_table([one])["mark"]}  # rates are about games tuned to T


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
