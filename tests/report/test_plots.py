"""Plots of curves: the data layer exactly, the drawing in that it draws and is the same twice."""

from itertools import pairwise

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.growth.rates import best_known
from onlinecal.report.curve_plot import label_of
from onlinecal.report.frames import curves_table, games
from onlinecal.report.plots import captions, save
from onlinecal.report.plots import curves as plot_curves
from onlinecal.report.study_plot import plot_exponents
from onlinecal.study.played import Promise
from tests.report.made import INF, TIMES, cell, curve
from tests.report.made import study as made

F, N = oc.forecasters, oc.natures
HEDGING = "mean ≤ T/(2m) + m + 1 + √((m + 1)(m + 1 + T/2 + T/m))"
FORCED = "≥ T/2 (every deterministic forecaster)"


def figure(curves, title=""):
    """The figure that is made where no axes are given."""
    return plot_curves(curves, title=title)[0, 0].figure


def words(fig):
    """All that a legend, and the caption, says."""
    legends = [t.get_text() for axis in fig.axes if axis.get_legend() for t in axis.get_legend().get_texts()]
    return [" ".join(text.split()) for text in legends], " ".join(fig._supxlabel.get_text().split())


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
    exponent = one.exponent().value
    assert f"T^{{{exponent:.2f}}}" in line["label"].iloc[0]
    assert {line["place"].iloc[0] for line in drawn[:3]} == {0, 1, 2}
    for line in drawn:
        one = study.curve(*line[["measure", "forecaster", "nature"]].iloc[0])
        found = one.exponent()
        assert set(line["exponent"].dropna()) == ({found.value} if found.clear else set())


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
    ("totals", "said"),
    [
        ([[0, 0]] * 4, "0 in every run"),
        ([[-1, 1]] * 4, "0 at every T"),
        ([[INF, INF]] * 4, "infinite at every T"),
        ([[-INF, 1]] * 4, "minus infinite at every T, in 1 of 2 runs"),
        ([[-INF, INF]] * 4, "infinite both ways, without a mean, at every T"),
        ([[-INF, -INF], [0, 0], [0, INF], [INF, -INF]],
         "0 at T = 200; infinite at T = 400, in 1 of 2 runs; minus infinite at T = 100; infinite both ways, without a "
         "mean, at T = 800"),
        ([[0, 0], [0, 0], [INF, INF], [INF, 3]], "0 up to T = 200; infinite from T = 400 on, in 1–2 of 2 runs"),
    ],
)  # fmt: skip
def test_a_curve_that_cannot_be_drawn_is_named_with_the_reason(totals, said):
    (row,) = curves_table([curve(totals)]).itertuples()
    assert (row.mark, row.label) == ("absent", f"one: {said}")
    assert words(figure([curve(totals)]))[0] == [f"one: {said}"]


@pytest.mark.parametrize(
    ("totals", "said", "marks"),
    [
        ([3, 0, 5, 9], "0 at T = 200", [([200], False)]),
        ([0, 0, 5, 9], "0 up to T = 200", [([100, 200], False)]),
        ([3, 4, 0, 0], "0 from T = 400 on", [([400, 800], False)]),
        ([3, 0, 0, 9], "0 from T = 200 to 400", [([200, 400], False)]),
        ([3, 0, 9, 0], "0 at 2 T from 200 to 800", [([200, 800], False)]),
        ([0, 4, 5, INF], "0 at T = 100; infinite at T = 800", [([800], True), ([100], False)]),
    ],
)
def test_single_points_do_not_vanish(totals, said, marks):
    (line,) = lines([curve(totals)], "mean")
    assert label_of(line.iloc[0]) == f"one; {said}"
    edges = lines([curve(totals)], "up", "down")
    assert [(edge["T"].tolist(), edge["mark"].iloc[0] == "up") for edge in edges] == marks
    # The line is broken there, not led past the gap.
    assert np.isnan(line["total"]).tolist() == [not 0 < total < INF for total in totals]
    fig = figure([curve(totals)])
    legends, caption = words(fig)
    assert legends == [f"one; {said}"]
    assert ("upper edge: infinite" in caption) == any(up for _, up in marks)
    assert ("lower edge: 0" in caption) == any(not up for _, up in marks)
    arrows = [artist for artist in fig.axes[0].lines if artist.get_linestyle() == "None"]
    assert [artist.get_xdata().tolist() for artist in arrows] == [rounds for rounds, _ in marks]


def test_negative_totals_are_drawn_as_they_are():
    below, zero = curve([-4, -30, -100, -900]), curve([0, 10, 0, 500], forecaster="other")
    table = curves_table([below, zero])
    assert table["negative"].all()
    assert table["total"].tolist() == [-4, -30, -100, -900, 0, 10, 0, 500]
    assert set(table["mark"]) == {"mean"}
    axis = figure([below, zero]).axes[0]
    assert axis.get_yscale() == "symlog"
    assert axis.get_ylim()[0] < -900 < 500 < axis.get_ylim()[1]
    assert "linear around 0" in words(axis.figure)[1]
    assert "linear around 0" not in captions["curves"]([zero])
    # Such an axis is its own, and the others share theirs.
    three = [curve([1, 2, 3, 4], measure=m) for m in ("ece", "brier")]
    one, two, own = figure([*three, curve([-1, -2, 3, 4], measure="payoff[x]")]).axes
    assert [axis.get_yscale() for axis in (one, two, own)] == ["log", "log", "symlog"]
    assert one.get_ylim() == two.get_ylim() != own.get_ylim()


# ---------------------------------------------------------------- words and files


def test_prefixes_and_recorded_rounds_are_not_called_fresh():
    promises = (Promise("ece", "", "√T", "deterministic", "all", True, 9.0),)
    rain, coin = (
        made(*(
            cell("a", [t, t], nature, times=(t,), recorded=recorded, promises=promises) for t in TIMES
        )).curves()
        for nature, recorded in (("rain", True), ("coin", False))
    )  # fmt: skip
    one = made(cell("a", [[t, t] for t in TIMES], "coin", times=TIMES)).curves()
    assert games(one) == "T: rounds of one game."
    kinds = "a game each, on the same recorded rounds (rain); a fresh game each (coin)."
    assert games(rain + coin) == f"T: {kinds}"
    assert games(coin) == "T: a fresh game each."
    assert games(coin + one).count("a against coin") == 2
    # Each is tuned to its T, so bounds are drawn at every T.
    (bound,) = lines(rain, "bound")
    assert bound["T"].tolist() == list(TIMES)


def test_the_picture_says_what_it_shows(study):
    fig = figure(study.curves(["ece"]), title="A title")
    caption = words(fig)[1]
    for said in (
        "mean of 6 runs", "5th to 95th percentile of the runs", "Dashed: proven bound.", "half the lowest curve",
        "Exponent: mean growth over these T.",
        "In the colour of the text: what the nature forces.",
        f"Proved against every nature that sees the law: {HEDGING}.",
    ):  # fmt: skip
        assert said in caption
    assert "no power law" not in caption
    assert fig._suptitle.get_text() == "A title"
    assert [a.get_title() for a in fig.axes] == ["ECE against contrarian", "ECE against drift"]
    # One legend says what forecasters, bounds and rates look like, those of the axes how the forecasters grow.
    kinds = ["proven bound", "best known rates"]
    assert [t.get_text() for t in fig.legends[0].get_texts()] == [*study.forecasters, *kinds]
    assert not any("≤" in t.get_text() for axis in fig.axes for t in axis.get_legend().get_texts())
    limits = {(*axis.get_xlim(), *axis.get_ylim()) for axis in fig.axes}
    assert len(limits) == 1
    assert [t.get_text() for t in fig.axes[0].get_legend().get_texts()].count("$T^{0.98}$") == 1
    alone = figure([study.curve("ece", "almost one step ahead", "contrarian")])
    assert (alone.legends, words(alone)[0][0]) == ([], "almost one step ahead $T^{0.98}$")
    # Against the contrarian it matters whether 1/2 is on its grid, as it is at every T: four horizons tell an exponent.
    hedging = study.curve("ece", "forecast hedging", "contrarian").exponent()
    assert hedging.clear
    assert f"$T^{{{hedging.value:.2f}}}$" in words(fig)[0]
    colours = {" ".join(line.get_label().split()): line.get_color() for line in fig.axes[0].lines}
    assert [label for label, colour in colours.items() if colour == "#000000"] == [FORCED]


#: totals at T of three runs → what a legend says of them, with curves of one panel and of two
WIDELY = {
    "bent": ([[60, 61, 62], [1300, 1310, 1320], [1350, 1360, 1370]], "$T^{?}$ [-4.15, 5.50]"),
    "noisy": ([[1, 9, 3], [8, 2, 90], [5, 300, 20]], "$T^{?}$ [-0.66, 2.06]"),
    "straight": ([[10.0] * 3, [1000**0.5] * 3, [100.0] * 3], "$T^{0.50}$"),
}


@pytest.mark.parametrize("natures", [1, 2])
@pytest.mark.parametrize("copies", [1, 5])
def test_a_wide_interval_does_not_hide_how_a_curve_grows(natures, copies):
    """The interval itself is in legends and at the ends of many curves."""
    times = (100, 1000, 10_000)
    cells = [
        cell(f"{name} {i}", [totals[k]], f"n{j}", times=(t,))
        for name, (totals, _) in WIDELY.items() for i in range(copies) for j in range(natures)
        for k, t in enumerate(times)
    ]  # fmt: skip
    curves = made(*cells).curves()
    growths = {c.forecaster: c.exponent() for c in curves}
    assert [growths[f"{name} 0"].clear for name in WIDELY] == [False, False, True]
    assert [growths[f"{name} 0"].bent for name in WIDELY] == [True, False, False]
    fig = figure(curves)
    fig.canvas.draw()
    for axis in fig.axes:
        legend = axis.get_legend()
        texts = [*axis.texts, *(legend.get_texts() if legend else [])]
        for _, said in WIDELY.values():
            found = [text for text in texts if said in text.get_text().replace("\u00a0", " ")]
            assert len(found) == copies
            for text in found:
                box = text.get_window_extent()
                assert 0 <= box.x0 < box.x1 <= fig.bbox.width
                assert text.get_text().count("\n[") == text.get_text().count(",\n") == 0
    caption = words(fig)[1]
    assert "T^?: its interval, beside it, is wider than 1; more horizons or runs narrow it." in caption


def test_of_several_measures_the_caption_says_of_which_each_bound_is(study):
    both, alone = (captions["curves"](study.curves(measures)) for measures in (["ece", "cdl"], ["cdl"]))
    assert f"ECE {HEDGING}; CDL mean ≤ 2(" in both
    assert "Proved against every sequence: CDL mean" not in alone


@pytest.mark.parametrize(("natures", "measures"), [(4, 3), (12, 1)])
def test_a_figure_fits_a_page_while_its_panels_can_be_read(natures, measures):
    names = ["ece", "cdl", "smooth_ce"][:measures]
    cells = [
        cell("a", dict.fromkeys(names, [t**0.5] * 2), f"n{i}", times=(t,)) for i in range(natures) for t in TIMES
    ]  # fmt: skip
    fig = figure(made(*cells).curves())
    fig.canvas.draw()
    wide, high = fig.get_size_inches()
    heights = [axis.get_window_extent().height / fig.dpi for axis in fig.axes]
    # Title, legend and caption are above and below the panels; 1.1 inches are the least that can be read.
    assert high <= 1.35 * wide + 1.5 or min(heights) < 1.3
    assert min(heights) > 0.9


@pytest.mark.parametrize("natures", [1, 2])
def test_many_curves_have_their_names_or_numbers_at_their_ends_in_the_order_of_their_totals(natures):
    who = {f"f {i}": 1.0 + (7 * i % 32) / 40 for i in range(32)}
    cells = [
        cell(name, [c * t**0.5] * 2, f"n{i}", times=(t,))
        for name, c in who.items() for i in range(natures) for t in TIMES[:3]
    ]  # fmt: skip
    fig = figure(made(*cells).curves())
    fig.draw_without_rendering()
    numbers = {name: f"{i + 1}" for i, name in enumerate(who)}
    names = [name if natures == 1 else numbers[name] for name in sorted(who, key=who.get)]
    for axis in fig.axes:
        shown = [text for text in axis.texts if "mathregular" not in text.get_text() and text.get_text()]
        assert [text.get_text().partition("  ")[0] for text in shown] == names
        heights = [text.get_window_extent() for text in axis.texts if text.get_text()]
        assert all(low.y0 < high.y0 and low.y1 < high.y1 for low, high in pairwise(heights))
        assert max(box.x1 for box in heights) <= fig.bbox.x1
        assert np.diff([box.y0 for box in heights]).min() > 6.5 / 72 * fig.dpi
    legend = [text.get_text() for each in fig.legends for text in each.get_texts()]
    assert legend[:32] == ([] if natures == 1 else [f"{i}  {name}" for name, i in numbers.items()])


UNRULY = (r"$\frac{1$", "$5 or $6", "_under_ $x$", r"a\$b$c", "two\nlines", "100 % & #1 {^_}~", "$$", "a | b")


def test_any_text_may_be_a_label_and_stands_there_letter_by_letter(tmp_path):
    unruly = Column("function", "x[$_y$]")
    cells = [
        cell(who, {"ece": [4.99 * t, 5.01 * t], unruly: [-4.01, -3.99]}, nature, times=(t,))
        for who in UNRULY for nature in UNRULY[:2] for t in (1, 2, 4)
    ]  # fmt: skip
    drawn = made(*cells, title=r"From $5 to $\nothing")
    fig = figure(drawn.curves(), title=drawn.title)
    *texts, known = fig.legends[0].get_texts()
    assert known.get_text() == "best known rates"
    for who, text in zip(UNRULY, texts, strict=True):
        said = text.get_text().replace("\\$", "$").replace("\n", " ").strip("\u200a")
        assert said == " ".join(who.split())
    assert {text.get_text() for text in fig.axes[0].get_legend().get_texts()} == {"$T^{1.00}$"}
    save(fig, tmp_path / "x.svg")
    save(plot_exponents(drawn, ["ece", "x[$_y$]"], title=drawn.title)[0].figure, tmp_path / "y.svg")
    save(figure([curve([0, 0, 0, 0], forecaster=UNRULY[0])]), tmp_path / "z.svg")
    written = (tmp_path / "y.svg").read_text()
    for text in (*UNRULY[1:3], drawn.title):
        assert f">{text}</text>" in written  # as text, not as outlines


def test_totals_divided_by_a_power_of_t(study):
    curves = study.curves(["ece", "cdl"])
    drawn = plot_curves(curves, power=2 / 3)
    pairs = [(nature, measure) for nature in study.natures for measure in ("ece", "cdl")]
    for (nature, measure), axis in zip(pairs, drawn.flat, strict=True):
        shown = [line.get_ydata() for line in axis.lines]
        for one in lines(curves, "mean", "bound", nature=nature, measure=measure):
            scaled = one["total"] / one["T"] ** (2 / 3)
            assert any(len(y) == len(scaled) and np.allclose(y, scaled) for y in shown)
    level = [line for line in drawn[0, 0].lines if np.allclose(line.get_ydata(), line.get_ydata()[0])]
    assert len(level) == 1  # the best known upper rate of the ECE
    assert drawn[0, 0].get_ylabel() == "total T·μ / $T^{0.667}$"
    said = words(drawn[0, 0].figure)[1]
    assert "Totals, bounds and rates are divided by T^0.667; exponents are those of the totals." in said
    with pytest.raises(InvalidParameter, match="power"):
        plot_curves(curves, power=np.nan)
