"""The pictures on the page of a study: which of them are drawn, in colours for a light and for a dark page."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.progress import Progress
from onlinecal.report.curves import Curve, Study, runs_of

#: the most pictures; forecasters of a picture of curves; lines of all of them
MOST, FORECASTERS, LINES = 24, 12, 240
#: pairs up to which all exponents fit one picture
CELLS = 400
#: runs up to which all are put together in a reliability diagram; levels up to which all are drawn, and bins of more
TOGETHER, LEVELS, BINS = 64, 200, 20
#: natures and forecasters of the pictures that have a panel or a figure for each nature
NATURES = {"pareto": 6, "reliability": 4, "tasks": 2, "slopes": 2, "delays": 2, "people": 2}
WHO = {"pareto": FORECASTERS, "reliability": 4, "slopes": 6, "delays": 4, "people": 2}
#: tasks times forecasters in one picture
POINTS = 60


class Picture(NamedTuple):
    """A drawing with its title and caption; `wide` if it takes the whole width."""

    title: str
    caption: str
    svg: str
    wide: bool = False

    @property
    def address(self) -> str:
        """The drawing as an address that needs no network."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()


@dataclass
class Gallery:
    """All pictures of a page: curves, whose captions have sentences in common, others, and what is left out."""

    shared: str = ""
    curves: list[Picture] = field(default_factory=list)
    others: list[Picture] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


#: names of columns
Columns = Sequence[str]
#: a title, the function that draws it, its arguments and options, and what is said after its caption
Drawing = tuple[str, Any, tuple[Any, ...], dict[str, Any], str]


def gallery(study: Study, shown: Sequence[str], grown: Sequence[str], progress: Progress) -> Gallery:
    """The pictures of a study: of the columns that tables show, and of those of them that have an exponent."""
    found = Gallery()
    for kind in (_exponents, _pareto, _reliability, _tasks, _slopes, _delays, _people) if shown else ():
        progress.describe(kind.__name__[1:])
        for title, plot, given, options, more in kind(study, shown, grown, found.left):
            caption = plot.caption(*given, **{k: v for k, v in options.items() if k != "width"}) + more
            draw = partial(plot, *given, caption=False, **options)
            svg = drawing(lambda dark, draw=draw: np.ravel(draw(dark=dark))[0].figure)
            found.others.append(Picture(title, caption, svg, kind is not _slopes))
            progress.advance(1)
    _curves(study, shown, MOST - len(found.others), found, progress)
    return found


def _curves(study: Study, shown: Sequence[str], room: int, found: Gallery, progress: Progress) -> None:
    """Each measure against each nature, and the sentences that all their captions share."""
    from onlinecal.report.curve_plot import sentences

    pairs = [(nature, measure) for nature in study.natures for measure in shown]
    most = min(room, max(4, LINES // min(len(study.forecasters), FORECASTERS)))
    drawn, fewer = [], 0
    for nature, measure in pairs[:most]:
        progress.describe(f"{measure} against {nature}")
        every = study.only(natures=[nature]).curves([measure])
        curves = lowest(every, FORECASTERS)
        if len(curves) < len(every):
            fewer = max(fewer, len(every))
        if curves:
            svg = drawing(partial(_curve_figure, curves))
            drawn.append((f"{measure} against {nature}", sentences(curves), svg))
        progress.advance(1)
    if len(pairs) > most:
        found.left.append(
            f"{len(pairs) - most:,} of {len(pairs):,} pictures of a measure against a nature are left out."
        )
    if fewer:
        found.left.append(
            f"Of up to {fewer:,} forecasters those {FORECASTERS} are drawn whose mean total is lowest at the largest T."
        )
    if len(pairs) > most or fewer:
        found.left.append("`onlinecal plot RESULTS` draws them with --measure, --nature and --forecaster.")
    common = [each for each in drawn[0][1] if all(each in said for _, said, _ in drawn)] if drawn else []
    found.shared = " ".join(common)
    for title, said, svg in drawn:
        found.curves.append(Picture(title, " ".join(each for each in said if each not in common), svg))


def _curve_figure(curves: Sequence[Curve], dark: bool) -> Any:
    from matplotlib.figure import Figure

    from onlinecal.report.curve_plot import plot_curves
    from onlinecal.report.style import page

    with page(dark):
        figure = Figure(figsize=(5.2, 4.6 + 0.12 * len(curves)), layout="constrained")
        axis = figure.subplots()
        plot_curves(curves, ax=axis)
    axis.set_title("")  # the page says it above
    return figure


def lowest(curves: Sequence[Curve], most: int) -> list[Curve]:
    """The curves with the lowest mean totals at their largest T, in the order of the study."""
    # Those without a mean, infinite both ways, come last.
    order = np.argsort([curve.mean[-1] for curve in curves], kind="stable").tolist()
    return [curves[i] for i in sorted(order[:most])]


# ---------------------------------------------------------------- all else


def _exponents(study: Study, shown: Columns, grown: Columns, left: list[str]) -> Iterator[Drawing]:
    from onlinecal.report.study_plot import plot_exponents

    if grown and 1 < len(study.natures) * len(study.forecasters) <= CELLS:
        yield "Growth exponents", plot_exponents, (study, grown), {}, ""


def _pareto(study: Study, shown: Columns, grown: Columns, left: list[str]) -> Iterator[Drawing]:
    from onlinecal.report.study_plot import plot_pareto

    if len(shown) < 2 or len(study.forecasters) < 2:
        return
    if len(study.forecasters) > WHO["pareto"]:
        left.append(
            f"Pareto fronts are drawn of up to {FORECASTERS} forecasters; `onlinecal compare RESULTS --pareto` has "
            "those of more."
        )
        return
    two, some = list(shown[:2]), study.only(natures=study.natures[: NATURES["pareto"]])
    if any(all(m in cell.totals for m in two) for cell in some.cells):
        several = "s" * (len(some.natures) > 1)
        yield f"{two[0]} and {two[1]}: Pareto front{several}", plot_pareto, (some, two), {}, ""
        _only_some(left, "Pareto fronts", study, "pareto")


def _reliability(study: Study, shown: Columns, grown: Columns, left: list[str]) -> Iterator[Drawing]:
    """Of the Γ that are kept, a picture for each nature."""
    from onlinecal.report.reliability_plot import plot_reliability

    drawn, missing = False, False
    for nature in study.natures[: NATURES["reliability"]]:
        some = study.only(natures=[nature])
        curves = lowest(some.curves(shown[:1]), WHO["reliability"])
        levels: dict[str, JointDistribution] = {}
        for who in [curve.forecaster for curve in curves] or some.forecasters[:1]:
            mine = _levels(some.only([who]))
            missing |= not mine
            levels |= mine
        if levels:
            drawn = True
            bins = BINS if max(len(gamma.predictions) for gamma in levels.values()) > LEVELS else None
            # In a game predictions depend on outcomes, and the band is for predictions that were fixed before.
            options = {
                "bins": bins,
                "band": None,
                "width": 6.5 if len(levels) == 4 else None,
            }  # two lines of two
            more = (
                f" Drawn: {len(levels)} of {len(some.forecasters)} forecasters; of more than {WHO['reliability']} "
                f"those whose mean {shown[0]} is lowest."
            ) * (len(some.forecasters) > len(levels))
            yield f"Reliability against {nature}", plot_reliability, (levels,), options, more
    if missing:
        left.append("Reliability diagrams are left out where the level sets of a game are not kept exactly.")
    if drawn:
        _only_some(left, "Reliability diagrams", study, "reliability")


def _levels(pair: Study) -> dict[str, JointDistribution]:
    """Γ of one forecaster against one nature by its label; nothing where it is not kept exactly."""
    from onlinecal.report.pictures import gammas

    try:
        return gammas(pair, run=None if max(runs_of(pair.cells)) <= TOGETHER else 0)[0]
    except InvalidParameter:
        return {}


def _tasks(study: Study, shown: Columns, grown: Columns, left: list[str]) -> Iterator[Drawing]:
    from onlinecal.report.study_plot import KINDS, plot_tasks

    regrets = [c for c in study.columns.values() if c.of_task and c.measure in KINDS and not c.stream]
    tasks = {(c.task, c.response) for c in regrets}
    for nature in study.natures[: NATURES["tasks"]] if tasks else ():
        some, whose = _few(study, [nature], shown[0], min(FORECASTERS, max(1, POINTS // len(tasks))))
        yield f"Regrets of tasks against {nature}", plot_tasks, (some,), {}, whose
    if tasks:
        _only_some(left, "Regrets of tasks", study, "tasks")


def _slopes(study: Study, shown: Columns, grown: Columns, left: list[str]) -> Iterator[Drawing]:
    from onlinecal.report.run_plot import plot_slopes

    if not grown:
        return
    if len(study.forecasters) > WHO["slopes"]:
        left.append(
            f"Local slopes are drawn of up to {WHO['slopes']} forecasters; `onlinecal plot RESULTS --slopes` draws "
            "those of more."
        )
        return
    every = [study.only(natures=[nature]).curves(grown[:1]) for nature in study.natures[: NATURES["slopes"]]]
    steep = [curves for curves in every if any(len(curve.rounds) > 2 for curve in curves)]
    for curves in steep:
        yield f"Local slopes of {grown[0]} against {curves[0].nature}", plot_slopes, (curves,), {}, ""
    if steep:
        _only_some(left, "Local slopes", study, "slopes")


def _delays(study: Study, shown: Columns, grown: Columns, left: list[str]) -> Iterator[Drawing]:
    from onlinecal.report.late_plot import plot_delays

    if len({cell.schedule[1] for cell in study.cells}) < 2:
        return
    base, most = list(dict.fromkeys(cell.schedule[0] for cell in study.cells)), NATURES["delays"]
    natures = list(dict.fromkeys(c.nature for c in study.cells if c.schedule[0] in base[:most]))
    some, whose = _few(study, natures, shown[0], WHO["delays"])
    if len(base) > most:
        left.append(f"What late outcomes cost is drawn of the first {most} natures.")
    yield f"What late outcomes cost: {shown[0]}", plot_delays, (some, [shown[0]]), {}, whose


def _people(study: Study, shown: Columns, grown: Columns, left: list[str]) -> Iterator[Drawing]:
    from onlinecal.report.people import plot_people

    natures, most = list(dict.fromkeys(cell.nature for cell in study.cells if cell.people)), NATURES["people"]
    some, whose = _few(study, natures[:most], shown[0], WHO["people"]) if natures else (study, "")
    if any(cell.people for cell in some.cells):
        if len(natures) > most:
            left.append(f"Decision makers who join and leave are drawn of the first {most} natures.")
        yield "Decision makers who join and leave", plot_people, (some,), {}, whose


def _few(study: Study, natures: Sequence[str], measure: str, most: int) -> tuple[Study, str]:
    """The part of a study of the `most` forecasters with the lowest largest mean total, and the sentence on them."""
    some = study.only(natures=list(natures))
    several = len(some.forecasters)
    if several <= most:
        return some, ""
    worst: dict[str, float] = {}
    for curve in some.curves([measure]):
        worst[curve.forecaster] = max(float(curve.mean[-1]), worst.get(curve.forecaster, -np.inf))
    order = sorted(some.forecasters, key=lambda who: worst.get(who, np.inf))[:most]
    over = ", the largest of these natures," if len(some.natures) > 1 else ""
    whose = f" Drawn: {most} of {several} forecasters, those whose mean {measure}{over} is lowest."
    return some.only([who for who in some.forecasters if who in order]), whose


def _only_some(left: list[str], what: str, study: Study, kind: str) -> None:
    if len(study.natures) > NATURES[kind]:
        left.append(f"{what} are drawn of the first {NATURES[kind]} of {len(study.natures):,} natures.")


def drawing(figure: Callable[..., Any]) -> str:
    """A figure as SVG; its colours follow the page. The same figure gives the same text.

    It is drawn for a dark page, where matplotlib leaves out no colour because it is the default.
    """
    from onlinecal.report.style import PAIRS, written

    svg = written(figure(dark=True), "svg").decode()
    for what, small in _SMALLER:
        svg = re.sub(what, small, svg)
    light, dark = ("".join(f"--c{i}:{pair[k]};" for i, pair in enumerate(PAIRS)) for k in (0, 1))
    for i, (_, bright) in enumerate(PAIRS):
        svg = re.sub(f"{bright}\\b", f"var(--c{i})", svg, flags=re.IGNORECASE)
    at_dark = f"@media screen and (prefers-color-scheme:dark){{svg{{{dark}}}}}"
    return svg.replace("</style>", f"svg{{{light}}}{at_dark}</style>", 1)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


#: patterns of SVG text that a page does without, and their replacements; a number is one of 1/72 inch
_SMALLER: tuple[tuple[str, Any], ...] = (
    (r"(?s)<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<!--.*?-->", ""),
    (r"'DejaVu Sans', [^;\"]*sans-serif", "'DejaVu Sans', sans-serif"),
    (r"-?\d+\.\d{3,}", _rounded),
    (r"\s*\n\s*", " "),
    ("> <", "><"),
)
