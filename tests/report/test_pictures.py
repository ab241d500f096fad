"""All pictures: in new figures or given axes, light or dark, of any width, by name in commands, in files."""

import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.report import facets, plots
from onlinecal.report.gammas import study_gammas
from onlinecal.report.pictures import KINDS, draw
from onlinecal.report.plots import save
from onlinecal.study.played import Played
from tests.marks import some_fast
from tests.report.made import curve, light

F, N = oc.forecasters, oc.natures


@pytest.fixture(scope="module")
def study():
    """With several T, delays, a task, a decision maker, and level sets."""
    return oc.play(
        [F.ForecastHedging(), F.EmpiricalMean()], N.Drift(), horizon=[50, 100, 200], runs=3, seed=3, delays=[0, 3],
        measures=["ece", "smooth_ce", "cdl"], tasks=["umbrella"], decision_makers=["umbrella"],
    )  # fmt: skip


def samples():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    return p, (rng.random(400) < p**2).astype(int)


def of_classes():
    rng = np.random.default_rng(0)
    p = rng.multinomial(4, [0.5, 0.3, 0.2], 400) / 4
    return p, (rng.random(400)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1)


#: picture → its arguments of a study, options, and the number of its axes
ALL = {
    "curves": (lambda s: (s.curves(["ece", "cdl"]),), {}, 4),
    "runs": (lambda s: (s.curves(["ece", "cdl"]),), {}, 4),
    "slopes": (lambda s: (s.curves(["ece", "cdl"]),), {}, 4),
    "exponents": (lambda s: (s,), {}, 4),
    "pareto": (lambda s: (s,), {}, 2),
    "sweep": (lambda s: (s, ["ece"], "T"), {}, 4),
    "delays": (lambda s: (s,), {}, 4),
    "people": (lambda s: (s,), {}, 12),
    "tasks": (lambda s: (s,), {}, 6),
    "reliability": (lambda _: samples(), {}, 2),
    "reliability, smooth": (lambda _: samples(), {"kind": "smooth"}, 2),
    "reliability, corp": (lambda _: samples(), {"kind": "corp"}, 2),
    "reliability, together": (lambda _: ({"a": samples(), "b": samples()},), {"together": True}, 2),
    "reliability, two": (lambda _: ({"a": samples(), "b": samples()},), {"kind": "corp"}, 4),
    "classes": (lambda _: of_classes(), {}, 6),
    "triangle": (lambda _: of_classes(), {}, 1),
    "regret": (lambda _: samples(), {}, 1),
    "witness": (lambda _: samples(), {}, 2),
    "decision": (lambda _: samples(), {}, 1),
    "murphy": (lambda _: ({"a": samples()[0], "$b$": samples()[0] ** 2}, samples()[1]), {}, 1),
    "murphy, difference": (
        lambda _: ({"a": samples()[0], "b": 1 - samples()[0]}, samples()[1]), {"difference": True}, 1,
    ),
    "trajectory": (lambda _: samples(), {}, 1),
    "trajectory, measure": (lambda _: samples(), {"measure": "brier"}, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", some_fast(4, ALL))
def test_pictures_are_figures_with_a_title_a_caption_and_a_table(name, study):
    given, options, number = ALL[name]
    kind, given = name.partition(",")[0], given(study)
    plot, table = getattr(oc.plots, kind), getattr(oc.plots, f"{kind}_table")
    fig = plot(*given, title="A title", **options)
    assert (len(fig.axes), isinstance(fig, Figure)) == (number, True)
    titles = [fig._suptitle, *(legend.get_title() for legend in fig.legends)]
    assert any(text is not None and text.get_text().startswith("A title") for text in titles)
    assert " ".join(fig._supxlabel.get_text().split()) == " ".join(fig.get_label().split())
    assert plot(*given, caption=False, **options)._supxlabel is None
    found = table(*given[:1], **options) if kind in ("curves", "runs", "slopes") else table(*given, **options)
    assert isinstance(found, pd.DataFrame)
    assert len(found) > 1
    one = number == 1 or kind in ("reliability", "witness")
    own = Figure().subplots()
    if one and number <= 2:
        assert plot(*given, ax=own, **options) is own.figure
        assert own.has_data()
    else:
        with pytest.raises(InvalidParameter, match="panels; expected a picture of one panel, or no ax"):
            plot(*given, ax=own, **options)
    with pytest.raises(InvalidParameter, match=r"ax = .*; expected matplotlib Axes"):
        plot(*given, ax=[own], **options)


@pytest.mark.parametrize("name", some_fast(4, ALL))
def test_pictures_can_be_dark_and_narrow(name, study):
    given, options, _ = ALL[name]
    plot, given = getattr(oc.plots, name.partition(",")[0]), given(study)
    fig = plot(*given, dark=True, width="column", title="from $5 to $6", **options)
    fig.draw_without_rendering()
    inside = {text for axis in fig.axes for text in axis.texts if axis.images}
    for text in fig.findobj(Text):
        # Those of a heat map stand on its colours.
        if text.get_visible() and text.get_text() and text not in inside:
            assert light(text.get_color()) > 0.25, text
    for axis in (axis for axis in fig.axes if axis.lines):
        assert min(axis.get_window_extent().size) > 0
        assert light(axis.get_facecolor()[:3]) < 0.05
        assert all(light(line.get_color()) > 0.08 for line in axis.lines)
    assert fig.get_figwidth() == 3.4


def test_panels_of_a_narrow_page_stand_in_lines_and_can_be_read(study):
    curves = study.only(natures=["drift"]).curves(["ece", "smooth_ce", "cdl"])
    for width, wide, columns in (("column", 3.4, 1), ("page", 7.0, 3), (5.0, 5.0, 2)):
        fig = oc.plots.curves(curves, width=width)
        fig.draw_without_rendering()
        assert (fig.get_figwidth(), light(fig.get_facecolor()[:3])) == (wide, 1.0)
        assert min(axis.get_window_extent().width / fig.dpi for axis in fig.axes) > 1.1
        assert len({axis.get_subplotspec().colspan.start for axis in fig.axes}) == columns
    for width in ("wide", "", 1.0, 100, "nan", True):
        said = r"expected 'column' .3.4 inches., 'page' .7 inches. or a number"
        with pytest.raises(InvalidParameter, match=said):
            oc.plots.curves(curves, width=width)
    with pytest.raises(InvalidParameter, match="columns"):
        oc.plots.curves(curves, columns=0)


def test_one_curve_in_axes_of_ones_own(study):
    one = study.curve("ece", "forecast hedging", "drift")
    own, axis = one.plot(), Figure().subplots()
    assert one.plot(ax=axis) is axis.figure
    assert [line.get_xydata().tolist() for line in axis.lines] == [
        line.get_xydata().tolist() for line in own.axes[0].lines
    ]
    assert (axis.figure._supxlabel, axis.figure.legends) == (None, [])
    assert len(study.plot(["ece", "cdl"]).axes) == 4


def test_saving(tmp_path):
    def drawn():
        return oc.plots.curves([curve([1, 2, 3, 4])])

    for kind, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        first, second = tmp_path / f"a.{kind}", tmp_path / "new" / f"b.{kind}"
        save(drawn(), first)
        save(drawn(), str(second))
        assert first.read_bytes().startswith(magic)
        assert first.read_bytes() == second.read_bytes()
    ET.parse(tmp_path / "a.svg")
    assert b"/CIDFontType2" in (tmp_path / "a.pdf").read_bytes()  # a font of Type 42
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pdf", "a.png", "a.svg", "new"]
    with pytest.raises(InvalidParameter, match=r"expected .png, .svg or .pdf"):
        save(drawn(), tmp_path / "a.jpg")
    with pytest.raises(InvalidParameter, match="cannot be written"):
        save(drawn(), tmp_path / "a.png" / "a.png")


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


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda s: oc.plots.curves(s),
            r"curves: curves = Study\(.*\); expected curves, such as study.curves",
        ),
        (lambda s: oc.plots.slopes([s]), r"slopes: curves = \[Study\(.*; expected curves"),
        (lambda s: oc.plots.runs_table("ece"), r"runs: curves = 'ece'; expected curves"),
        (lambda s: oc.plots.runs([]), "no curves to draw; expected at least one"),
        (lambda s: oc.plots.world(s), r"world: rounds = Study\(.*; expected rounds, such as worlds.observe"),
        (lambda s: oc.plots.tasks(s.curves("ece")), r"tasks: study = \[Curve\(.*; expected a Study"),
        (lambda s: save(s, "x.png"), r"save: Study\(.*\); expected a figure"),
    ],
)
def test_what_is_no_study_curve_or_name_is_said_to_be_none(study, wrong, said):
    with pytest.raises(OnlinecalError, match=said):
        wrong(study)


def test_levels_that_are_not_there(study, monkeypatch):
    with pytest.raises(InvalidParameter, match=r"round = 300; expected one of the checkpoints .*50, .*200"):
        study_gammas(study, round=300)
    with pytest.raises(InvalidParameter, match=r"run = 3 of forecast hedging against drift; expected 0 to 2"):
        study_gammas(study, run=3)
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
    texts = [text.get_text() for axis in fig.axes for text in axis.texts]
    assert texts.count("Γ is not kept") == 2


# That of groups, which this study lacks, is in test_groups.
@pytest.mark.parametrize(
    "kind",
    some_fast(4, [kind for kind, found in KINDS.items() if kind != "groups" and found.of != "classes"]),
)
def test_every_picture_has_a_name(kind, study):
    fig, left = draw(study, kind, **({"against": "T"} if kind == "sweep" else {}))
    fig.draw_without_rendering()
    assert fig.get_label()
    assert ("payoff[umbrella]" in left) == (kind in ("curves", "runs", "slopes", "delays", "pareto", "sweep"))


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("people", {"measure": ("ece",)}, "--measure with --kind people; expected it with --kind curves, "),
        (
            "curves",
            {"run": 0},
            "--run with --kind curves; expected it with --kind reliability, regret, witness",
        ),
        ("regret", {"bins": 3}, "--bins with --kind regret; expected it with --kind reliability"),
        ("slopes", {"linear": True}, "--linear with --kind slopes; expected it with --kind runs"),
        ("sweep", {}, "expected --against with a parameter, or T"),
        ("regret", {"measure": ("cdl", "v_cdl")}, "--kind regret of cdl and v_cdl; expected one --measure"),
        ("pareto", {"measure": ("ece",)}, "expected two measures"),
        ("exponent", {}, "unknown picture 'exponent'; did you mean 'exponents'"),
    ],
)
def test_what_a_picture_does_not_take_is_refused(kind, given, said, study):
    with pytest.raises(OnlinecalError, match=said):
        draw(study, kind, **given)


def test_each_picture_has_a_function_and_a_table():
    others = {"save", "from_predictions"}  # the second draws `reliability` by the names of scikit-learn
    pictures = {name for name in plots.__all__ if name not in others and not name.endswith("_table")}
    # Five are of people's own forecasts, one of the rounds of a world: they are in no results file.
    assert pictures == {*KINDS, "classes", "decision", "murphy", "trajectory", "triangle", "world"}
    assert {f"{name}_table" for name in pictures} | pictures | others == set(plots.__all__)


def test_parts_are_stacked_and_empty_ones_leave_types_as_they_are():
    table = facets.stacked([{"n": np.array([1, 2]), "mark": "a"}, {"n": np.zeros(0)}, {"n": 3, "x": 0.5}])
    assert table["n"].tolist() == [1, 2, 3]
    assert table["n"].dtype == int
    assert table["mark"].tolist() == ["a", "a", ""]
    assert table["x"].isna().tolist() == [True, True, False]
    assert facets.stacked([{"n": np.zeros(0)}]).columns.tolist() == ["n"]
