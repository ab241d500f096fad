"""All pictures: their data, their layout on pages of any width and colour, files, and their names in commands."""

import xml.etree.ElementTree as ET
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.report import facets, plots, study_plot
from onlinecal.report.gammas import study_gammas
from onlinecal.report.pictures import KINDS, draw
from onlinecal.report.plots import save
from onlinecal.report.style import written
from onlinecal.study.played import Played, Promise
from tests.marks import some_fast
from tests.report import made
from tests.report.drawn import in_one_line, of_table, outside, overlapping, panels, points, said, texts, title
from tests.report.made import INF, TIMES, curve, light

F, N = oc.forecasters, oc.natures

CARELESS = {"name": "rounded_down", "m": 2}


def studied():
    """A study with several T, delays, a task, a decision maker, and level sets."""
    return oc.play(
        [F.ForecastHedging(), F.EmpiricalMean()], N.Drift(), horizon=[50, 100, 200], runs=3, seed=3, delays=[0, 3],
        measures=["ece", "smooth_ce", "cdl"], tasks=["umbrella"],
        decision_makers=["umbrella", {"task": "umbrella", "label": "careless", "response": CARELESS}],
    )  # fmt: skip


study = pytest.fixture(studied, scope="module", name="study")


def samples(n=400, levels=0):
    rng = np.random.default_rng(0)
    p = rng.integers(0, levels + 1, n) / levels if levels else rng.random(n)
    return p, (rng.random(n) < p**2).astype(int)


def of_classes():
    rng = np.random.default_rng(0)
    p = rng.multinomial(4, [0.5, 0.3, 0.2], 400) / 4
    return p, (rng.random(400)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1)


def grouped():
    """Two forecasters, and the errors of two groups of one size."""
    columns = {"ece": [1.0], **{Column("measure", "ece", stream=g): [e] for g, e in (("a", 0.5), ("b", 0.7))},
               **{Column("measure", "rounds", stream=g): [50.0] for g in "ab"}}  # fmt: skip
    return made.study(made.cell("one", columns), made.cell("two", columns))


def world():
    return oc.worlds.observe(F.Unchanged(), oc.worlds.Queue(reacts="leave"), horizon=60)


class Case(NamedTuple):
    """A picture."""

    #: its arguments, of a study
    given: Any
    #: mark ("" for all rows) → pairs of columns that are drawn, of the table of each panel; None: tested elsewhere
    shown: Any
    #: the same in the axes below each panel, if there are any
    below: Any = None
    options: Any = MappingProxyType({})
    #: the columns that tell panels apart
    by: Any = ("heading",)
    #: points that no table has
    more: frozenset = frozenset()


def band(x, *ends):
    """Pairs of a column with each of some others."""
    return [(x, end) for end in ends]


CURVES = {kind: [("T", "total")] for kind in ("bound", "rate", "known")} | {
    "mean": band("T", "total", "lower", "upper")
}
DIAGONAL = frozenset({(0.0, 0.0), (1.0, 1.0)})
POINTS = {"point": band("prediction", "prediction", "mean", "lower", "upper")}
WEIGHTS = {"weight": band("prediction", "share", 0.0)}
DENSITY = {"density": band("prediction", "share", 0.0)}
SMOOTH = {"smooth": band("prediction", "mean", "lower", "upper")}
CORP = {"corp": band("prediction", "mean", "lower", "upper", "lowest", "highest")}
REGRET = {"regret": band("t", "regret", 0.0), "above": [("t", "regret")], "worst": [("t", "regret")],
          "half": band("t", "regret", 0.0), "losses": [("t", "regret")]}  # fmt: skip

#: picture → what it shows; of one picture several, named after it
CASES = {
    "curves": Case(lambda s: (s.curves(["ece", "cdl"]),), CURVES),
    "runs": Case(lambda s: (s.curves(["ece", "cdl"]),), {"point": [("T", "total")], "mean": [("T", "total")]}),
    "runs, one game": Case(
        lambda _: ([curve([[1, 2], [3, 4], [5, 4], [9, 8]], fresh=False)],),
        {"run": [("T", "total")], "mean": [("T", "total")]},
    ),
    "slopes": Case(lambda s: (s.curves(["ece", "cdl"]),), {
        "rate": [("T", "slope")], "fitted": band("T", "slope", "lower", "upper"),
        "slope": [*band("T", "slope", "lower", "upper"), ("left", "slope"), ("right", "slope")],
    }),
    "exponents": Case(lambda s: (s,), {}, by=("measure",)),
    "pareto": Case(lambda s: (s,), {"": [("first", "second")]}, by=("nature",)),
    "sweep": Case(lambda s: (s, ["ece"], "T"), {"line": band("x", "value", "lower", "upper")}),
    "delays": Case(lambda s: (s,), CURVES),
    "people": Case(lambda s: (s.only(natures=["drift"]),), {"": [("x", "y")]}, by=("row", "panel")),
    "tasks": Case(lambda s: (s,), {
        "regret": [(x, "line") for x in ("total", "left", "right")], "bound": band("total", "lower", "upper"),
    }),
    "groups": Case(lambda _: (grouped(),), {"": [("rounds", "error")]}),
    "world": Case(lambda _: (world(),), {
        "": [("clock", "value")], "forecast": [("known", "value")],
    }, by=("panel",)),
    "reliability": Case(lambda _: samples(levels=20), POINTS, WEIGHTS, more=DIAGONAL),
    "reliability, bins": Case(
        lambda _: samples(levels=20), {"point": [*POINTS["point"], ("left", "mean"), ("right", "mean")]}, WEIGHTS,
        {"bins": 5}, more=DIAGONAL,
    ),
    "reliability, smooth": Case(lambda _: samples(), SMOOTH, DENSITY, {"kind": "smooth"}, more=DIAGONAL),
    "reliability, corp": Case(lambda _: samples(levels=20), CORP, WEIGHTS, {"kind": "corp"}, more=DIAGONAL),
    "reliability, two": Case(
        lambda _: ({"a": samples(levels=20), "b": samples(levels=10)},), POINTS, WEIGHTS, more=DIAGONAL
    ),
    "classes": Case(lambda _: of_classes(), POINTS, WEIGHTS, more=DIAGONAL),
    "regret": Case(lambda _: samples(levels=20), REGRET),
    "regret, v_cdl": Case(lambda _: samples(levels=20), REGRET, options={"measure": "v_cdl"}),
    "regret, scdl": Case(lambda _: samples(levels=20), REGRET, options={"measure": "scdl"}),
    "witness": Case(
        lambda _: samples(levels=20), {"witness": [("v", "y")], "levels": [("v", "y")]},
        {"up": band("v", "y", 0.0), "down": band("v", "y", 0.0)},
    ),
    "decision": Case(lambda _: samples(levels=20), {
        "regret": band("threshold", "regret", "acted", 0.0), "worst": band("threshold", "regret", 0.0),
    }),
    "murphy": Case(
        lambda _: ({"a": samples()[0], "$b$": samples()[0] ** 2}, samples()[1]), {"score": [("threshold", "score")]},
        by=(),
    ),
    "murphy, difference": Case(
        lambda _: ({"a": samples()[0], "b": 1 - samples()[0]}, samples()[1]),
        {"difference": band("threshold", "score", "lower", "upper")}, options={"difference": True}, by=(),
    ),
    "trajectory": Case(lambda _: samples(), {
        "bias": [("forecasts", "value")], "left": [("forecasts", "value")],
        "bound": band("forecasts", "lower", "upper"),
    }, by=()),
    "trajectory, measure": Case(lambda _: samples(), {
        kind: [("forecasts", "value")] for kind in ("low", "high")
    } | {"interval": band("forecasts", "lower", "upper")}, options={"measure": "brier"}, by=()),
    "reliability, together": Case(
        lambda _: ({"a": samples(), "b": samples()},), None, WEIGHTS, {"together": True}
    ),
    "triangle": Case(lambda _: of_classes(), None),
}  # fmt: skip


def promised(upper, kind, times=TIMES):
    """A bound of 3√T from above or below, or such a rate, at these T."""
    return tuple((t, Promise("ece", "", "3√T", kind, "all", upper, 3 * t**0.5)) for t in times)


def bounded():
    """Curves with bounds and rates from above and below, one at a single T, and some that leave the axes."""
    sides, kinds = (True, False), ("deterministic", "rate")
    every = sum(
        (promised(upper, kind) for upper in sides for kind in kinds), promised(True, "expected", (800,))
    )
    totals = {"two": [0, 4, 5, INF], "three": [0, 2, INF, INF], "none": [INF] * 4}
    return [
        curve([5, 7, 9, 11], promises=every),
        *(curve(row, forecaster=who) for who, row in totals.items()),
    ]


def many(measure):
    """More curves than have a name below their panel, with all dashes."""
    return [curve([i, 2 * i, 4 * i, 8 * i], forecaster=f"f{i}", measure=measure) for i in range(1, 34)]


def powers():
    """A curve that is close to a power of T."""
    return curve([[t**0.6 * near for near in (0.99, 1.0, 1.02)] for t in TIMES], measure="ece")


def compared():
    """Three forecasters in two measures: two are on the front, and one is worse than either beyond doubt."""
    noise = np.sin(np.arange(48)).reshape(3, 16)
    return made.study(*(
        made.cell(who, {"ece": ece + each, "cdl": cdl + each}, times=(100,))
        for (who, ece, cdl), each in zip((("a", 10, 30), ("b", 90, 80), ("c", 30, 10)), noise, strict=True)
    ))  # fmt: skip


def regretful():
    """Regrets of four tasks that are far apart, one of them negative."""
    columns = {Column("decision_task", kind, task=task): [1.0, 2.0 + 400.0 * (task == "b")]
               for kind in study_plot.KINDS for task in "abcd"}  # fmt: skip
    external = {Column("decision_task", "external_regret", task="a"): [-5.0, -7.0]}
    return made.study(
        *(made.cell(who, columns | external | {"cdl": [500.0, 700.0]}) for who in ("one", "two"))
    )


def long_names():
    """Forecasters and natures with names that are broken, and lose their middle."""
    names = [f"{'long ' * 5}name {i} {'goes on ' * 6}" for i in range(3)]
    return made.study(*(made.cell(who, [t, t], whom, (t,)) for who in names for whom in names for t in TIMES))


def wide():
    """Two measures at T that are far apart."""
    return made.study(
        *(made.cell("one", {"ece": [1.0, 3.0], "cdl": [2.0, 5.0]}, times=(t,)) for t in (100, 2000))
    )


def grid():
    """Γ of pairs of a forecaster and a nature, one that is not kept and one that was not played."""
    return {("one", "drift"): samples(levels=4), ("one", "coin"): None, ("other", "drift"): samples(levels=5)}


def fine_classes():
    """Forecasts of three classes that are all different."""
    t = np.arange(1, 301)
    ends = np.sort([t * 0.618 % 1, t * 0.7548 % 1], axis=0)
    return np.diff(ends, axis=0, prepend=0.0, append=1.0).T, t % 3


#: what is drawn less often, of which the looks alone are on record
RARE = {
    "curves, bounds": Case(lambda _: (bounded(),), None),
    "curves, negative": Case(lambda _: ([curve([-4, -30, 9, -900])],), None),
    "curves, narrow": Case(lambda s: (s.curves(["ece", "cdl", "smooth_ce"]),), None,
                           options={"width": 5.0, "columns": 2, "dark": True, "title": "some words " * 13}),
    "exponents, one": Case(lambda _: (made.study({("a", "n"): [1]}),), None, options={"width": 4.05}),
    "exponents, long names": Case(lambda _: (long_names(),), None),
    "curves, many": Case(lambda _: (many("multi_ece"),), None, options={"groups": many("ece @ odd")[:2]}),
    "curves, twelve": Case(lambda _: (many("ece")[:12],), None),
    "runs, ten": Case(lambda _: ([curve([range(t, t + 10) for t in TIMES])],), None),
    "runs, forty": Case(lambda _: ([curve([range(t, t + 40) for t in TIMES], fresh=False)],), None),
    "runs, negative": Case(lambda _: ([curve([[-1, 1], [2, 3], [4, 5], [5, 6]], nature="long " * 7 + "name")],), None),
    "slopes, fitted": Case(lambda _: ([powers()],), None),
    "pareto, certain": Case(lambda _: (compared(),), None),
    "tasks, far apart": Case(lambda _: (regretful(),), None),
    "sweep, wide": Case(lambda _: (wide(), ["ece", "cdl"], "T"), None),
    "reliability, smooth together": Case(
        lambda _: ({"a": samples(), "b": samples(levels=10)},), None, options={"kind": "smooth", "together": True}
    ),
    "reliability, corp together": Case(
        lambda _: ({"a": samples(), "b": samples(levels=10)},), None, options={"kind": "corp", "together": True}
    ),
    "reliability, corp of many": Case(lambda _: samples(), None, options={"kind": "corp"}),
    "reliability, corp of one": Case(lambda _: ([0.5] * 9, [0, 1, 1] * 3), None, options={"kind": "corp"}),
    "reliability, many levels": Case(lambda _: samples(levels=199), None),
    "reliability, grid": Case(lambda _: (grid(),), None),
    "decision, thousands": Case(lambda _: samples(5000), None),
    "witness, forty levels": Case(lambda _: samples(levels=40), None),
    "witness, many levels": Case(lambda _: samples(levels=199), None),
    "witness, many": Case(lambda _: samples(), None),
    "triangle, cells": Case(lambda _: fine_classes(), None),
}  # fmt: skip


def of(name, end=""):
    """The function of a picture, or that of its table."""
    return getattr(oc.plots, name.partition(",")[0] + end)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.shown is not None])
def test_a_picture_shows_the_numbers_of_its_table(name, study):
    """No more and no less, in panels that are read in the order of the table."""
    case = CASES[name]
    given = case.given(study)
    rows = of(name, "_table")(*given, **case.options)
    parts = [part for _, part in rows.groupby([*case.by], sort=False)] if case.by else [rows]
    drawn = panels(of(name)(*given, **case.options), 1 if case.below is None else 2)
    for part, (axis, *below) in zip(parts, drawn, strict=True):
        if "heading" in part:
            assert said(axis) == in_one_line(part["heading"].iloc[0])
        shown, expected = points(axis), of_table(part, case.shown) | case.more
        if name == "groups":
            shown = {(x, y) for x, y in shown if y != pytest.approx(x**-0.5)}  # the dashed curve
        if name == "world":  # outcomes are ticks at the edges, 0 below and 1 above
            for outcome, ends in ((0, (-0.11, -0.03)), (1, (1.03, 1.11))):
                expected |= of_table(part[part["outcome"] == outcome], {"forecast": band("clock", *ends)})
        assert shown == expected
        for each in below:
            assert points(each) == of_table(part, case.below)


@pytest.mark.parametrize("kind", ["points", "smooth", "corp"])
def test_weights_below_a_diagram_are_whole_and_have_percent(kind):
    given = samples(levels=20)
    rows = oc.plots.reliability_table(*given, kind=kind).query("mark in ('weight', 'density')")
    most = rows["share"].max()
    fig = oc.plots.reliability(*given, kind=kind)
    below = fig.axes[1]
    assert below.get_ylim() == pytest.approx((0, 1.1 * most))
    # A density is an area; each weight is a line.
    assert len(below.collections[0].get_paths()) == (1 if kind == "smooth" else len(rows))
    fig.draw_without_rendering()
    labels = [label.get_text() for label in below.get_yticklabels()]
    assert [label.endswith("%") for label in labels] == [kind != "smooth"] * len(labels)
    assert kind == "smooth" or labels == [f"{100 * share:g}%" for share in below.get_yticks()]
    assert (below.get_ylabel(), below.get_xlabel()) == (
        "density" if kind == "smooth" else "weight",
        "prediction",
    )


@pytest.mark.parametrize("name", CASES)
def test_a_picture_fits_a_dark_column_and_is_a_file(name, study):
    """Its texts are whole, apart and light, and stay texts in SVG."""
    case = CASES[name]
    given, title = case.given(study), "from $5 to $6"
    fig = of(name)(*given, dark=True, width="column", title=title, **case.options)
    seen = texts(fig)
    assert (outside(fig, seen), overlapping(seen), fig.get_figwidth()) == ([], [], 3.4)
    inside = {text for axis in fig.axes for text in axis.texts if axis.images}
    for text in seen:
        assert text in inside or light(text.get_color()) > 0.25, (
            text
        )  # those of a heat map stand on its colours
    for axis in (axis for axis in fig.axes if axis.lines):
        assert min(axis.get_window_extent().size) / fig.dpi > 0.4
        assert light(axis.get_facecolor()[:3]) < 0.05
        assert all(light(line.get_color()) > 0.08 for line in axis.lines)
    words = in_one_line(
        " ".join("".join(each.itertext()) for each in ET.fromstring(written(fig, "svg")).iter())
    )
    for part in (title, *(said(axis) for axis in fig.axes)):
        assert all(word in words for word in part.split())


@pytest.mark.parametrize("name", some_fast(2, CASES))
def test_a_picture_has_a_title_and_a_caption_and_may_stand_in_axes_of_ones_own(name, study):
    case = CASES[name]
    given, options = case.given(study), case.options
    fig = of(name)(*given, title="A title", **options)
    titles = [fig._suptitle, *(legend.get_title() for legend in fig.legends)]
    assert [text.get_text().startswith("A title") for text in titles if text is not None] == [True]
    assert in_one_line(fig._supxlabel.get_text()) == in_one_line(fig.get_label())
    assert of(name)(*given, caption=False, **options)._supxlabel is None
    own, alone = Figure().subplots(), panels(fig, 1 if case.below is None else 2)
    if len(alone) == 1:
        assert of(name)(*given, ax=own, **options) is own.figure
        drawn = [each.get_xydata().tolist() for each in own.lines]
        assert drawn == [each.get_xydata().tolist() for each in alone[0][0].lines]
        assert (own.figure._supxlabel, own.figure.legends) == (None, [])
    else:
        with pytest.raises(
            InvalidParameter, match=f"{len(alone)} panels; expected a picture of one panel, or no ax"
        ):
            of(name)(*given, ax=own, **options)
    with pytest.raises(InvalidParameter, match=r"ax = .*; expected matplotlib Axes"):
        of(name)(*given, ax=[own], **options)


@pytest.mark.parametrize(("levels", "mark"), [(20, "point"), (21, "smooth")])
def test_classes_of_at_most_twenty_levels_are_points(levels, mark):
    p = np.arange(levels) / (2 * levels)
    table = oc.plots.classes_table(np.stack((p, 1 - p), axis=1), np.arange(levels) % 2)
    assert mark in {*table["mark"]}


@pytest.mark.parametrize(("many", "said"), [(9, ""), (10, "the 9 of 10 classes that happen most")])
def test_of_many_classes_those_that_happen_most_are_drawn(many, said):
    """Of ten the last is left out, which happens least."""
    y = [k for k in range(many) for _ in range(many - k)]
    p = np.full((len(y), many), 1 / many)
    assert {*oc.plots.classes_table(p, y)["label"]} == {str(k) for k in range(9)}
    fig = oc.plots.classes(p, y, title="A title")
    assert in_one_line(fig.get_suptitle()).startswith(f"A title, {said}" if said else "A title · ")


@pytest.mark.parametrize(("levels", "mark"), [(200, "level"), (201, "cell")])
def test_two_hundred_levels_of_three_classes_have_an_arrow_each(levels, mark):
    p = np.arange(levels) / (2 * levels)
    table = oc.plots.triangle_table(
        np.stack((p, 0.5 - p, np.full(levels, 0.5)), axis=1), np.arange(levels) % 3
    )
    assert {*table["mark"]} == {mark}


def test_panels_of_a_narrow_page_stand_in_lines_and_can_be_read(study):
    curves = study.only(natures=["drift"]).curves(["ece", "smooth_ce", "cdl"])
    for width, wide, columns in (
        ("column", 3.4, 1), ("page", 7.0, 3), (3.9, 3.9, 1), (4.0, 4.0, 2), (5.9, 5.9, 2), (None, 10.3, 3)
    ):  # fmt: skip
        fig = oc.plots.curves(curves, width=width)
        fig.draw_without_rendering()
        assert (fig.get_figwidth(), light(fig.get_facecolor()[:3])) == (pytest.approx(wide), 1.0)
        assert min(axis.get_window_extent().width / fig.dpi for axis in fig.axes) > 1.1
        assert len({axis.get_subplotspec().colspan.start for axis in fig.axes}) == columns
    for width in ("wide", "", 1.9, 61, "nan", True):
        why = r"expected 'column' .3.4 inches., 'page' .7 inches. or a number"
        with pytest.raises(InvalidParameter, match=why):
            oc.plots.curves(curves, width=width)
    with pytest.raises(InvalidParameter, match="columns"):
        oc.plots.curves(curves, columns=0)


def test_narrow_panels_are_lower_but_not_in_proportion():
    curves = [curve([1, 2, 3, 4], measure=f"m{i}") for i in range(3)]
    high, low = (oc.plots.runs(curves, width=wide, caption=False).get_figheight() for wide in (10.3, 7.0))
    assert high > low > high * 7.0 / 10.3


@pytest.mark.parametrize("width", [2, 60])
def test_the_least_and_the_largest_width_are_taken(width):
    assert oc.plots.runs([curve([1, 2, 3, 4])], width=width).get_figwidth() == width


@pytest.mark.parametrize(("many", "across"), [(1, 1), (2, 2), (3, 3), (4, 2), (5, 3), (7, 3)])
def test_panels_are_in_lines_of_about_the_same_length(many, across):
    """Where nothing else is asked for at most three are beside each other, and only the first of a line has a name."""
    fig = oc.plots.curves([curve([1, 2, 3, 4], measure=f"m{i}") for i in range(many)])
    assert [said(axis) for (axis,) in panels(fig)] == [f"m{i} against drift" for i in range(many)]
    columns = [axis.get_subplotspec().colspan.start for (axis,) in panels(fig)]
    assert columns == [i % across for i in range(many)]
    assert [axis.get_ylabel() for axis in fig.axes] == [
        "" if i % across else "total T·μ" for i in range(many)
    ]


#: picture → what its title line says of the study
LINES = {
    "curves": "3 runs · T = 50 … 200 · without up to 3 open questions", "pareto": "3 runs · T = 200",
    "runs, one game": "2 runs · T = 100 … 800 of one game", "exponents, one": "1 run · T = 100",
    "sweep": "3 runs · mean ± standard deviation", "people": "3 runs", "tasks": "3 runs · T = 200",
    "delays": "3 runs · T = 50 … 200 · up to 3 questions open at the end", "groups": "1 run · T = 100",
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_the_title_line_says_of_how_many_runs_and_of_which_t(name, study):
    case = (CASES | RARE)[name]
    assert title(of(name)(*case.given(study), **case.options)) == LINES[name]


def test_a_title_line_names_one_t_or_several(study):
    last = oc.Study(tuple(cell for cell in study.cells if cell.horizon == 200))
    assert title(oc.plots.delays(last)) == "3 runs · T = 200 · up to 3 questions open at the end"
    games = (made.cell(who, {"ece": [1], "cdl": [2]}, f"to {t}", (t,)) for who in "ab" for t in (2000, 100))
    assert title(oc.plots.pareto(made.study(*games))) == "1 run · T = 100 or 2,000"


@pytest.mark.parametrize(("many", "across"), [(6, 6), (7, 4)])
def test_pairs_of_a_forecaster_and_a_nature_are_up_to_six_beside_each_other(many, across):
    fig = oc.plots.witness({("one", f"n{i}"): samples(20, levels=2) for i in range(many)})
    assert max(axis.get_subplotspec().colspan.stop for axis in fig.axes) == across


def test_of_a_world_the_first_two_hundred_questions_are_drawn():
    rounds = oc.worlds.observe(F.Unchanged(), oc.worlds.Queue(reacts="leave"), horizon=201)
    assert title(oc.plots.world(rounds)) == "200 questions"


def test_saving(tmp_path):
    def drawn():
        return oc.plots.curves([curve([1, 2, 3, 4])])

    for kind, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        first, second = tmp_path / f"a.{kind}", tmp_path / "new" / f"b.{kind}"
        save(drawn(), first)
        save(drawn(), str(second))
        assert first.read_bytes().startswith(magic)
        assert first.read_bytes() == second.read_bytes()
    assert b"/CIDFontType2" in (tmp_path / "a.pdf").read_bytes()  # a font of Type 42
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pdf", "a.png", "a.svg", "new"]
    save(drawn(), tmp_path / "small.png", dpi=50)
    for name, dots in (("a.png", 150), ("small.png", 50)):
        assert imread(tmp_path / name).shape[1] == round(dots * drawn().get_figwidth())
    for wrong, why in (("a.jpg", r"expected .png, .svg or .pdf"), ("a.png/a.png", "cannot be written")):
        with pytest.raises(InvalidParameter, match=why):
            save(drawn(), tmp_path / wrong)


# ---------------------------------------------------------------- by name


def test_levels_are_those_of_the_totals(study):
    part = study.only(natures=["drift"])
    found = study_gammas(part, run=1)
    assert list(found) == [(who, "drift, T = 200") for who in study.forecasters]
    for who, gamma in zip(study.forecasters, found.values(), strict=True):
        assert gamma.weight == 200
        assert oc.measures.ece(gamma) * 200 == pytest.approx(part.curve("ece", who).totals[-1, 1])
    assert all(gamma.weight == 600 for gamma in study_gammas(part).values())
    assert all(gamma.weight == 50 for gamma in study_gammas(part, round=50, run=0).values())


def test_levels_that_are_not_there(study, monkeypatch):
    with pytest.raises(InvalidParameter, match=r"round = 300; expected one of the checkpoints .*50, .*200"):
        study_gammas(study, round=300)
    with pytest.raises(InvalidParameter, match=r"run = 3 of forecast hedging against drift; expected 0 to 2"):
        study_gammas(study, run=3)
    for many, why in (
        (36, "kept of no pair"),
        (37, "37 pairs of a forecaster and a nature; expected at most 36"),
    ):
        with pytest.raises(InvalidParameter, match=why):
            study_gammas(made.study({(f"f{i}", "n"): [1] for i in range(many)}))
    kept, lost = Played.gamma, {"forecast hedging", "empirical mean"}

    def gamma(cell, at, run, stream=None):
        return None if run == 1 and cell.forecaster in lost else kept(cell, at, run, stream)

    monkeypatch.setattr(Played, "gamma", gamma)
    with pytest.raises(InvalidParameter, match=r"kept of no pair in all runs; expected a study"):
        study_gammas(study)
    assert len(study_gammas(study, run=0)) == 4
    # Where others are there, these are drawn, and the panels of those that are not say so.
    lost.remove("forecast hedging")
    assert [gamma is None for gamma in study_gammas(study).values()] == [False, False, True, True]
    fig, _ = draw(study, "reliability")
    why = [[text.get_text() for text in axis.texts] for axis, _ in panels(fig, 2)]
    assert why == [[], [], ["Γ is not kept"], ["Γ is not kept"]]


# That of groups, which this study lacks, is in test_groups.
@pytest.mark.parametrize(
    "kind",
    some_fast(4, [kind for kind, found in KINDS.items() if kind != "groups" and found.of != "classes"]),
)
def test_every_picture_has_a_name(kind, study):
    fig, left = draw(study, kind, **({"against": "T"} if kind == "sweep" else {}))
    assert fig.get_label()
    assert ("payoff[umbrella]" in left) == (kind in ("curves", "runs", "slopes", "delays", "pareto", "sweep"))


@pytest.mark.parametrize(
    ("kind", "many"),
    [
        ("curves", 4),
        ("runs", 4),
        ("slopes", 4),
        ("sweep", 8),
        ("delays", 2),
        ("pareto", 2),
        ("exponents", 10),
    ],
)
def test_the_first_measures_are_drawn_where_none_is_named(kind, many, monkeypatch):
    names = [f"m{i}" for i in range(10)]
    one = made.study(made.cell("one", {name: [1.0] for name in names}))
    drawn = []

    def plot(given, shown=None, **_):
        drawn.extend(shown or [curve.measure for curve in given])

    monkeypatch.setattr(plots, kind, plot)
    _, left = draw(one, kind, **({"against": "T"} if kind == "sweep" else {}))
    assert drawn == names[:many]
    assert left == (f"not drawn, --measure adds them: {', '.join(names[many:])}" if many < 10 else "")


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda s: oc.plots.curves(s), r"curves: curves = Study\(.*\); expected curves, such as study.curves"),
        (lambda s: oc.plots.slopes([s]), r"slopes: curves = \[Study\(.*; expected curves"),
        (lambda _: oc.plots.runs([]), "no curves to draw; expected at least one"),
        (lambda _: oc.plots.world(world(), first=401), "first = 401"),
        (lambda s: oc.plots.world(s), r"world: rounds = Study\(.*; expected rounds, such as worlds.observe"),
        (lambda s: oc.plots.tasks(s.curves("ece")), r"tasks: study = \[Curve\(.*; expected a Study"),
        (lambda s: save(s, "x.png"), r"save: Study\(.*\); expected a figure"),
        (lambda s: draw(s, "people", measure=("ece",)), "--measure with --kind people; expected it with --kind curve"),
        (lambda s: draw(s, "sweep"), "expected --against with a parameter, or T"),
        (lambda s: draw(s, "regret", measure=("cdl", "v_cdl")), "regret of cdl and v_cdl; expected one --measure"),
        (lambda s: draw(s, "pareto", measure=("ece",)), "expected two measures"),
        (lambda s: draw(s, "exponent"), "unknown picture 'exponent'; did you mean 'exponents'"),
    ],
)  # fmt: skip
def test_what_is_refused(study, ask, why):
    with pytest.raises(OnlinecalError, match=why):
        ask(study)


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_takes_the_options_that_it_names_alone(kind, study):
    for option in {option for found in KINDS.values() for option in found.takes} - {*KINDS[kind].takes}:
        with pytest.raises(
            InvalidParameter, match=f"--{option} with --kind {kind}; expected it with --kind "
        ):
            draw(study, kind, **{option: 3})


@pytest.mark.parametrize(
    ("asked", "scale"), [({}, "log"), ({"linear": True}, "linear"), ({"linear": False}, "log")]
)
def test_runs_may_have_linear_axes(study, asked, scale):
    fig, _ = draw(study, "runs", measure=["ece"], **asked)
    assert {(axis.get_xscale(), axis.get_yscale()) for axis in fig.axes} == {(scale, scale)}


def test_each_picture_has_a_function_and_a_table():
    others = {"save", "from_predictions"}  # the second draws `reliability` by the names of scikit-learn
    pictures = {name.partition(",")[0] for name in CASES}
    # Six are of people's own forecasts or of the rounds of a world: they are in no results file.
    assert pictures == {*KINDS, "classes", "decision", "murphy", "trajectory", "triangle", "world"}
    assert {f"{name}_table" for name in pictures} | pictures | others == set(plots.__all__)


def test_parts_are_stacked_and_empty_ones_leave_types_as_they_are():
    table = facets.stacked([{"n": np.array([1, 2]), "mark": "a"}, {"n": np.zeros(0)}, {"n": 3, "x": 0.5}])
    assert table["n"].tolist() == [1, 2, 3]
    assert table["n"].dtype == int
    assert table["mark"].tolist() == ["a", "a", ""]
    assert table["x"].isna().tolist() == [True, True, False]
    assert facets.stacked([{"n": np.zeros(0)}]).columns.tolist() == ["n"]
