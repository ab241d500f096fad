"""The pictures on the pages of a study and of a log."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.progress import Progress
from onlinecal.forecasts.table import Evaluation
from onlinecal.study.curves import Study, runs_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: the most pictures; forecasters of a picture of curves; lines of all of them
MOST, FORECASTERS, LINES = 24, 12, 240
#: pairs up to which all exponents fit one picture
CELLS = 400
#: runs up to which all are put together in a reliability diagram; levels up to which all are drawn; bins
TOGETHER, LEVELS, BINS = 64, 200, 20
#: levels up to which each of a log is a point, and nothing is smoothed
SINGLE = 20
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
    """All pictures of a page: curves with captions that have sentences in common, others, and omissions."""

    shared: str = ""
    curves: list[Picture] = field(default_factory=list)
    others: list[Picture] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


#: names of columns
Columns = Sequence[str]
#: positional arguments of a picture, and options
Given = tuple[tuple[Any, ...], dict[str, Any]]


class Kind(NamedTuple):
    """A picture of the page: its title, its name in notes, and the most natures and, of a study, forecasters."""

    title: str
    words: str
    natures: int
    forecasters: Callable[[Study], int]
    #: whether each nature has a picture of its own
    each: bool
    #: the natures of which there is something to draw, by the columns that are shown and that have an exponent
    of: Callable[[Study, Columns, Columns], Sequence[str]]
    #: of a part of the study, or None; what is left out is added to a list of sentences
    given: Callable[[Study, Columns, Columns, list[str]], Given | None]


def gallery(study: Study, shown: Columns, grown: Columns, progress: Progress) -> Gallery:
    """The pictures of a study: of the columns that tables show, and of those of them that have an exponent."""
    from onlinecal.report import plots

    found = Gallery()
    names = {"pair": " and ".join(shown[:2]), "measure": shown[:1], "grown": grown[:1]}
    for name, kind in KINDS.items() if shown else ():
        progress.describe(name)
        natures, before = list(dict.fromkeys(kind.of(study, shown, grown))), len(found.others)
        first = natures[: kind.natures]
        for group in [[nature] for nature in first] if kind.each else [first] * bool(first):
            some, chosen = few(study, group, shown[0], kind.forecasters(study))
            if (given := kind.given(some, shown, grown, found.left)) is None:
                continue
            figure = getattr(plots, name)(*given[0], **given[1], caption=False)
            title = kind.title.format(nature=group[0], **{k: "".join(v) for k, v in names.items()})
            found.others.append(
                Picture(title, figure.get_label() + chosen, drawing(figure), name != "slopes")
            )
            progress.advance(1)
        if len(natures) > kind.natures and len(found.others) > before:
            found.left.append(
                f"{kind.words} are drawn of the first {kind.natures} of {len(natures):,} natures."
            )
    _curves(study, shown, MOST - len(found.others), found, progress)
    return found


def _curves(study: Study, shown: Sequence[str], room: int, found: Gallery, progress: Progress) -> None:
    """Each measure against each nature, and the caption of all."""
    from onlinecal.report.curve_plot import CURVES, plot_curves

    pairs = [(nature, measure) for nature in study.natures for measure in shown]
    most = min(room, max(4, LINES // min(len(study.forecasters), FORECASTERS)))
    fewer = 0
    for nature, measure in pairs[:most]:
        progress.describe(f"{measure} against {nature}")
        every = [cell for cell in study.cells if cell.nature == nature and measure in cell.totals]
        many = len({cell.forecaster for cell in every})
        fewer = max(fewer, many if many > FORECASTERS else 0)
        if curves := few(study, [nature], measure, FORECASTERS)[0].curves([measure]):
            svg = drawing(plot_curves(curves, caption=False, width=5.2))
            found.curves.append(Picture(f"{measure} against {nature}", "", svg))
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
    found.shared = CURVES if found.curves else ""


# ---------------------------------------------------------------- all else


def _reliability(some: Study, shown: Columns, grown: Columns, left: list[str]) -> Given | None:
    """Γ of each forecaster, of all runs where these are few, where it is kept."""
    from onlinecal.report.pictures import study_gammas

    try:
        levels = study_gammas(some, run=None if max(runs_of(some.cells)) <= TOGETHER else 0)
    except InvalidParameter:  # no level sets at all
        said = "Reliability diagrams are left out where no level sets of a game are kept."
        left += [said] * (said not in left)
        return None
    many = max(len(gamma.predictions) for gamma in levels.values() if gamma is not None)
    # In a game predictions depend on outcomes, and the band is for predictions that were fixed before.
    return (levels,), {"bins": BINS if many > LEVELS else None, "band": None}


def _tasks(study: Study) -> int:
    """The number of tasks, by how they are acted on, that have regrets."""
    from onlinecal.report.study_plot import KINDS as REGRETS

    columns = (c for c in study.columns.values() if c.of_task and c.measure in REGRETS and not c.stream)
    return len({(c.task, c.response) for c in columns})


def _late(study: Study) -> list[str]:
    """The natures with their schedules, where there are several; of the first two without."""
    if len({cell.schedule[1] for cell in study.cells}) < 2:
        return []
    first = list(dict.fromkeys(cell.schedule[0] for cell in study.cells))[:2]
    return [cell.nature for cell in study.cells if cell.schedule[0] in first]


KINDS = {
    "exponents": Kind(
        "Growth exponents", "Growth exponents", CELLS, lambda study: CELLS, False,
        lambda study, shown, grown: study.natures
        if grown and 1 < len(study.natures) * len(study.forecasters) <= CELLS else [],
        lambda some, shown, grown, left: ((some, grown), {}),
    ),
    "pareto": Kind(
        "{pair}: Pareto fronts", "Pareto fronts", 6, lambda study: FORECASTERS, False,
        lambda study, shown, grown: [
            cell.nature for cell in study.cells
            if len(study.forecasters) > 1 and len(shown) > 1 and all(m in cell.totals for m in shown[:2])
        ],
        lambda some, shown, grown, left: ((some, list(shown[:2])), {}),
    ),
    "reliability": Kind(
        "Reliability against {nature}", "Reliability diagrams", 4, lambda study: 4, True,
        lambda study, shown, grown: study.natures, _reliability,
    ),
    "tasks": Kind(
        "Regrets of tasks against {nature}", "Regrets of tasks", 2,
        lambda study: min(FORECASTERS, max(1, POINTS // _tasks(study))), True,
        lambda study, shown, grown: study.natures if _tasks(study) else [],
        lambda some, shown, grown, left: ((some,), {}),
    ),
    "slopes": Kind(
        "Local slopes of {grown} against {nature}", "Local slopes", 2, lambda study: 6, True,
        lambda study, shown, grown: [
            curve.nature for curve in (study.curves(grown[:1]) if grown else []) if len(curve.rounds) > 2
        ],
        lambda some, shown, grown, left: ((some.curves(grown[:1]),), {}),
    ),
    "delays": Kind(
        "What late outcomes cost: {measure}", "Costs of late outcomes", CELLS, lambda study: 4, False,
        lambda study, shown, grown: _late(study),
        lambda some, shown, grown, left: ((some, [shown[0]]), {}),
    ),
    "people": Kind(
        "Decision makers who join and leave", "Regrets of decision makers", 2, lambda study: 2, False,
        lambda study, shown, grown: [cell.nature for cell in study.cells if cell.people],
        lambda some, shown, grown, left: ((some,), {}) if any(cell.people for cell in some.cells) else None,
    ),
}  # fmt: skip


def of_column(name: str, found: Evaluation) -> list[Picture]:
    """The mean outcome near each prediction (at each, where they are few), and the best monotone recalibration."""
    first = ("points", "levels") if found.gamma.levels <= SINGLE else ("smooth", "smoothed")
    return [
        _of_log("reliability", f"Reliability of {name}, {word}", found, kind=kind)
        for kind, word in (first, ("corp", "monotone (CORP)"))
    ]


def of_columns(found: Mapping[str, Evaluation]) -> list[Picture]:
    """The reliability of several columns in one panel, and their Murphy diagram."""
    return [
        _of_log("reliability", "Reliability of all columns", found, kind="smooth", together=True),
        _of_log("murphy", "Elementary scores of all columns", found),
    ]


def _of_log(plot: str, title: str, found: Any, **options: Any) -> Picture:
    from onlinecal.report import plots

    figure = getattr(plots, plot)(found, caption=False, **options)
    return Picture(title, figure.get_label(), drawing(figure))


def few(study: Study, natures: Sequence[str], measure: str, most: int) -> tuple[Study, str]:
    """The part of a study of the `most` forecasters with the lowest largest mean total, and the sentence on them."""
    some = study.only(natures=list(natures))
    several = len(some.forecasters)
    if several <= most:
        return some, ""
    worst: dict[str, list[float]] = {}
    for curve in some.curves([measure]):
        worst.setdefault(curve.forecaster, []).append(curve.mean[-1])
    # Those without a mean, infinite both ways, come last.
    order = np.argsort([np.max(worst.get(who, [np.inf])) for who in some.forecasters], kind="stable")[:most]
    over = ", the largest of these natures," if len(some.natures) > 1 else ""
    chosen = f" Drawn: {most} of {several} forecasters, those whose mean {measure}{over} is lowest."
    return some.only([some.forecasters[i] for i in sorted(order)]), chosen


def drawing(figure: Figure) -> str:
    """A figure as SVG, without what a page does not need."""
    from onlinecal.report.style import written

    svg = written(figure, "svg").decode()
    for what, small in _SMALLER:
        svg = re.sub(what, small, svg)
    return re.sub("<[^<>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)


#: patterns of SVG text that a page does without, and their replacements
_SMALLER: tuple[tuple[str, Any], ...] = (
    (r"(?s)<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<!--.*?-->", ""),
    (r"'DejaVu Sans', [^;\"]*sans-serif", "'DejaVu Sans', sans-serif"),
    (r"\s*\n\s*", " "),
    ("> <", "><"),
)
