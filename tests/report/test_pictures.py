"""All pictures: in given axes or new figures, light or dark, of any width, by name in commands, in files."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.report import plots
from onlinecal.report.late_plot import question_bars
from onlinecal.report.pictures import KINDS, Wanted, draw, gammas
from onlinecal.report.plots import captions, save
from onlinecal.schedules import Constant, Schedule
from onlinecal.study.played import Played
from tests.marks import some_fast
from tests.report.made import curve

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


#: picture → its arguments of a study, options, and the shape of its axes
ALL = {
    "curves": (lambda s: (s.curves(["ece", "cdl"]),), {}, (2, 2)),
    "runs": (lambda s: (s.curves(["ece", "cdl"]),), {}, (2, 2)),
    "slopes": (lambda s: (s.curves(["ece", "cdl"]),), {}, (2, 2)),
    "exponents": (lambda s: (s,), {}, (3,)),
    "pareto": (lambda s: (s,), {}, (2,)),
    "sweep": (lambda s: (s, ["ece"], "T"), {}, (4,)),
    "delays": (lambda s: (s,), {}, (2, 2)),
    "people": (lambda s: (s,), {}, (4, 3)),
    "tasks": (lambda s: (s,), {}, (2, 3)),
    "questions": (lambda _: ([question_bars(Schedule(delays=Constant(3)), 50)] * 2,), {}, (2, 2)),
    "reliability": (lambda _: samples(), {}, ()),
    "reliability, smooth": (lambda _: samples(), {"kind": "smooth"}, ()),
    "reliability, corp": (lambda _: samples(), {"kind": "corp"}, ()),
    "reliability, together": (lambda _: ({"a": samples(), "b": samples()},), {"together": True}, ()),
    "reliability, two": (lambda _: ({"a": samples(), "b": samples()},), {"kind": "corp"}, (2,)),
    "regret": (lambda _: samples(), {}, ()),
    "witness": (lambda _: samples(), {}, ()),
    "decision": (lambda _: samples(), {}, ()),
    "murphy": (lambda _: ({"a": samples()[0], "$b$": samples()[0] ** 2}, samples()[1]), {}, ()),
    "murphy, difference": (
        lambda _: ({"a": samples()[0], "b": 1 - samples()[0]}, samples()[1]),
        {"difference": True},
        (),
    ),
    "trajectory": (lambda _: samples(), {}, ()),
    "trajectory, measure": (lambda _: samples(), {"measure": "brier"}, ()),
}


def figure(axes):
    return np.ravel(axes)[0].figure


def content(axis):
    """All that is drawn in an axis, as numbers and texts."""
    return (
        [line.get_xydata().tolist() for line in axis.lines], [image.get_array().tolist() for image in axis.images],
        [path.vertices.tolist() for c in axis.collections for path in c.get_paths()],
        [text.get_text() for text in axis.texts], axis.get_title().split(), axis.get_xlabel(),
    )  # fmt: skip


def caption_of(axes):
    return " ".join(figure(axes)._supxlabel.get_text().split())


@pytest.mark.parametrize("name", some_fast(2, ALL))
def test_pictures_are_drawn_in_given_axes_and_there_alone_or_in_figures_with_title_and_caption(name, study):
    given, options, shape = ALL[name]
    kind = name.partition(",")[0]
    plot, given = getattr(oc.plots, kind), given(study)
    own = plot(*given, title="A title", **options)
    assert np.shape(own) == shape
    assert caption_of(own) == captions[kind](*given, **options)
    assert figure(own)._suptitle.get_text() == "A title"
    fig = Figure()
    grid = fig.subplots(*shape) if shape else fig.subplots()
    drawn = plot(*given, ax=grid, **options)
    assert (np.asarray(drawn) == np.asarray(grid)).all()
    sizes = {"questions", "people", "tasks", "sweep"}  # headings wrapped, and marks set, by the width of axes
    for mine, theirs in zip(np.ravel(own), np.ravel(drawn), strict=True):
        pairs = [*zip(content(mine), content(theirs), strict=True)][: 1 if kind in sizes else None]
        assert repr(pairs[0][0]) == repr(pairs[0][1])
        assert kind in ("reliability", "tasks") or mine.get_ylim() == pytest.approx(theirs.get_ylim())
    assert len(own.lines if shape == () else np.ravel(own)[0].get_children()) > 0
    assert (fig._suptitle, fig._supxlabel, fig.legends) == (None, None, [])
    for wrong, said in (
        (Figure().subplots(5), "ax of shape"), (Figure(), "expected"), ([["a", "b"]] * 7, "ax of shape"),
    ):  # fmt: skip
        with pytest.raises(InvalidParameter, match=f"{said}.*matplotlib Axes"):
            plot(*given, ax=wrong, **options)
    with pytest.raises(InvalidParameter, match="title = 'x' with ax; expected it to be set on their figure"):
        plot(*given, ax=grid, title="x", **options)


def test_a_caption_may_be_beside_the_picture_and_panels_below_each_other(study):
    drawn = study.curves(["ece", "smooth_ce"])
    fig = figure(oc.plots.curves(drawn, caption=False, columns=1))
    assert fig._supxlabel is None
    assert fig.get_label() == captions["curves"](drawn)
    whole = figure(oc.plots.curves(drawn))
    assert whole.get_label() == fig.get_label()
    assert whole._supxlabel is not None
    places = {axis.get_subplotspec().colspan.start for axis in fig.axes}
    assert (places, len(fig.axes)) == ({0}, len(whole.axes))
    with pytest.raises(InvalidParameter, match="columns"):
        oc.plots.curves(drawn, columns=0)


def light(colour):
    """Relative luminance, from 0 (black) to 1 (white)."""
    parts = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return float(np.dot((0.2126, 0.7152, 0.0722), list(parts)))


@pytest.mark.parametrize("name", some_fast(4, ALL))
def test_pictures_can_be_dark_and_narrow(name, study):
    given, options, _ = ALL[name]
    plot, given = getattr(oc.plots, name.partition(",")[0]), given(study)
    fig = figure(plot(*given, dark=True, width="column", title="from $5 to $6", **options))
    fig.draw_without_rendering()
    inside = {text for axis in fig.axes for text in axis.texts if axis.images}
    for text in fig.findobj(Text):
        # Those of a heat map stand on its colours.
        if text.get_visible() and text.get_text() and text not in inside:
            assert light(text.get_color()) > 0.25, text
    for axis in (axis for axis in fig.axes if axis.get_visible()):
        assert min(axis.get_window_extent().size) > 0
        assert light(axis.get_facecolor()[:3]) < 0.05
        assert all(light(line.get_color()) > 0.08 for line in axis.lines)
    assert fig.get_figwidth() == 3.4


def test_panels_of_a_narrow_page_stand_in_lines_and_can_be_read(study):
    curves = study.only(natures=["drift"]).curves(["ece", "smooth_ce", "cdl"])
    for width, wide, columns in (("column", 3.4, 1), ("page", 7.0, 3), (6.25, 6.25, 2)):
        fig = figure(oc.plots.curves(curves, width=width))
        fig.draw_without_rendering()
        assert (fig.get_figwidth(), light(fig.get_facecolor()[:3])) == (wide, 1.0)
        assert min(axis.get_window_extent().width / fig.dpi for axis in fig.axes) > 1.1
        assert len({axis.get_subplotspec().colspan.start for axis in fig.axes}) == columns
    for width in ("wide", "", 1.0, 100, "nan", True):
        said = r"expected 'column' .3.4 inches., 'page' .7 inches. or a number"
        with pytest.raises(InvalidParameter, match=said):
            oc.plots.curves(curves, width=width)


def test_one_curve_and_a_figure_of_ones_own(study):
    curve = study.curve("ece", "forecast hedging", "drift")
    own = curve.plot()
    assert isinstance(own, Axes)
    left, right = Figure().subplots(1, 2)
    assert (curve.plot(right), curve.plot(ax=left)) == (right, left)
    assert content(left) == content(right) == content(own)
    grid = Figure().subplots(3, 2)
    assert (study.plot(["ece", "cdl"], ax=grid[1:]) == grid[1:]).all()
    assert [axis.lines[:] for axis in grid[0]] == [[], []]
    assert captions["curves"]([curve]) == caption_of(own)


def test_saving(tmp_path):
    def drawn():
        return figure(oc.plots.curves([curve([1, 2, 3, 4])]))

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
    found, left = gammas(part, run=1)
    assert left == []
    assert list(found) == [f"{who} against drift, T = 200, run 1" for who in study.forecasters]
    for who, gamma in zip(study.forecasters, found.values(), strict=True):
        assert gamma.weight == 200
        assert oc.measures.ece(gamma) * 200 == pytest.approx(part.curve("ece", who).totals[-1, 1])
    together, _ = gammas(part)
    assert list(together) == [f"{who} against drift, T = 200, 3 runs together" for who in study.forecasters]
    assert all(gamma.weight == 600 for gamma in together.values())
    assert all(gamma.weight == 50 for gamma in gammas(part, round=50, run=0)[0].values())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda s: oc.plots.curves(s),
            r"curves: curves = Study\(.*\); expected curves, such as study.curves",
        ),
        (lambda s: oc.plots.slopes([s]), r"slopes: curves = \[Study\(.*; expected curves"),
        (lambda s: captions["runs"]("ece"), r"runs: curves = 'ece'; expected curves"),
        (lambda s: oc.plots.runs([]), "no curves to draw; expected at least one"),
        (lambda s: oc.plots.world(s), r"world: rounds = Study\(.*; expected rounds, such as worlds.observe"),
        (lambda s: oc.plots.questions(s), r"questions: drawn = Study\(.*; expected the bars of one schedule"),
        (lambda s: oc.plots.questions([]), r"questions: drawn = \[\]; expected the bars"),
        (lambda s: oc.plots.tasks(s.curves("ece")), r"tasks: study = \[Curve\(.*; expected a Study"),
        (lambda s: save(s, "x.png"), r"save: Study\(.*\); expected a figure, such as ax.figure"),
    ],
)
def test_what_is_no_study_curve_or_name_is_said_to_be_none(study, wrong, said):
    with pytest.raises(OnlinecalError, match=said):
        wrong(study)


def test_levels_that_are_not_there(study, monkeypatch):
    with pytest.raises(InvalidParameter, match=r"round = 300; expected one of the checkpoints .*50, .*200"):
        gammas(study, round=300)
    with pytest.raises(InvalidParameter, match=r"run = 3 of forecast hedging against drift; expected 0 to 2"):
        gammas(study, run=3)
    kept, lost = Played.gamma, {"forecast hedging", "empirical mean"}

    def gamma(cell, at, run):
        return None if run == 1 and cell.forecaster in lost else kept(cell, at, run)

    monkeypatch.setattr(Played, "gamma", gamma)
    with pytest.raises(InvalidParameter, match=r"T = 200 is not kept in 1 of 3 runs; expected a study"):
        gammas(study)
    assert len(gammas(study, run=0)[0]) == 4
    # Where others are there, these are drawn, and it is said which are not.
    lost.remove("forecast hedging")
    _, said = draw(study, Wanted("reliability"))
    assert said.startswith("not drawn, as Γ is not kept: empirical mean against drift")


def test_pictures_by_name_are_given_what_the_study_has(study):
    measures = ["ece", "smooth_ce", "cdl"]
    curves, every = (study.curves(measures),), (study, measures)
    wanted = {
        "curves": curves, "runs": curves, "slopes": curves, "exponents": every, "pareto": (study, measures[:2]),
        "delays": (study, measures[:2]), "people": (study,), "tasks": (study,),
        **dict.fromkeys(("reliability", "regret", "witness"), gammas(study)[:1]),
    }  # fmt: skip
    assert set(KINDS) - set(wanted) == {"questions", "sweep"}
    for kind, given in wanted.items():
        found, options, left = KINDS[kind].given(study, Wanted(kind))
        assert repr(found) == repr(given)
        assert options == {"runs": {"scale": "log"}, "reliability": {"bins": None, "band": None}}.get(
            kind, {}
        )
        assert ("payoff[umbrella]" in left) == (kind in ("curves", "runs", "slopes", "delays", "pareto"))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"kind": "people", "measure": ("ece",)}, "--people draws no measures; expected no --measure"),
        ({"kind": "witness", "measure": ("ece",)}, "--witness draws no measures"),
        ({"kind": "curves", "run": 0}, "a picture of curves has no use for --run"),
        ({"kind": "slopes", "round": 10}, "--slopes has no use for --round"),
        ({"kind": "regret", "bins": 3}, "--regret has no use for --bins"),
        ({"kind": "slopes", "linear": True}, "--slopes has no use for --linear"),
        ({"kind": "sweep"}, "expected --against with a parameter, or T"),
        (
            {"kind": "regret", "measure": ("cdl", "v_cdl")},
            "--regret of cdl and v_cdl; expected one --measure",
        ),
        ({"kind": "pareto", "measure": ("ece",)}, "--pareto of ece; expected two --measure"),
    ],
)
def test_what_a_picture_does_not_take_is_refused(wanted, said):
    with pytest.raises(InvalidParameter, match=said):
        Wanted(**wanted)


def test_the_public_pictures_and_their_captions_have_the_same_names():
    # Three are of people's own forecasts, one of the rounds of a world: they are in no results file.
    assert set(plots.captions) == set(plots.tables) == {*KINDS, "decision", "murphy", "trajectory", "world"}
    assert {name.partition(",")[0] for name in ALL} | {"world"} == set(plots.captions) <= set(plots.__all__)
    assert all(callable(getattr(oc.plots, name)) for name in plots.captions)
