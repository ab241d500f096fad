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
from onlinecal.study.curves import Study, runs_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from onlinecal.logs.classes import ClassEvaluation
    from onlinecal.logs.table import Evaluation

#: the most pictures; forecasters of a picture of curves; lines of all of them
MOST, FORECASTERS, LINES = 24, 12, 240
#: inches from which a picture takes the whole width
WIDE = 5.5
#: pairs up to which all exponents fit one picture
CELLS = 400
#: runs up to which all are put together in a reliability diagram
TOGETHER = 64
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


class Kind(NamedTuple):
    """A picture of the page."""

    plot: Callable[..., Figure]
    title: str
    #: the natures of which there is something to draw, and the most of them and of forecasters
    natures: Sequence[str]
    most: int
    forecasters: int
    #: its positional arguments, of a part of the study, and options; None to leave it out
    given: Callable[[Study], tuple[tuple[Any, ...], dict[str, Any]] | None]
    #: whether each nature has a picture of its own
    each: bool = False


def gallery(study: Study, shown: Sequence[str], grown: Sequence[str], progress: Progress) -> Gallery:
    """The pictures of a study: of the columns that tables show, and of those of them that have an exponent."""
    found = Gallery()
    for kind in kinds(study, shown, grown, found.left) if shown else ():
        progress.describe(kind.title)
        natures, before = list(dict.fromkeys(kind.natures)), len(found.others)
        first = natures[: kind.most]
        for group in [[nature] for nature in first] if kind.each else [first] * bool(first):
            some, chosen = few(study, group, shown[0], kind.forecasters)
            if (given := kind.given(some)) is None:
                continue
            figure = kind.plot(*given[0], **given[1], caption=False)
            title = f"{kind.title} against {group[0]}" if kind.each else kind.title
            found.others.append(picture(title, figure, chosen))
            progress.advance(1)
        if len(natures) > kind.most and len(found.others) > before:
            found.left.append(f"{kind.title}: of the first {kind.most} of {len(natures):,} natures.")
    _curves(study, shown, MOST - len(found.others), found, progress)
    return found


def _curves(study: Study, shown: Sequence[str], room: int, found: Gallery, progress: Progress) -> None:
    """Each measure against each nature, and the caption of all."""
    from onlinecal.report.curve_plot import CURVES, plot_curves

    pairs = [(nature, measure) for nature in study.natures for measure in shown]
    most = min(room, max(4, LINES // min(len(study.forecasters), FORECASTERS)))
    for nature, measure in pairs[:most]:
        progress.describe(f"{measure} against {nature}")
        some, chosen = few(study, [nature], measure, FORECASTERS)
        if curves := some.curves([measure]):
            figure = plot_curves(curves, caption=False, width=5.2)
            title = f"{measure} against {nature}"
            found.curves.append(Picture(title, chosen, drawing(figure)))
        progress.advance(1)
    if len(pairs) > most:
        found.left.append(
            f"{len(pairs) - most:,} of {len(pairs):,} pictures of a measure against a nature are left out. "
            "`onlinecal plot RESULTS` draws them with --measure and --nature."
        )
    found.shared = CURVES if found.curves else ""


# ---------------------------------------------------------------- all else, and of logs


def kinds(study: Study, shown: Sequence[str], grown: Sequence[str], left: list[str]) -> list[Kind]:
    """The kinds of pictures in their order; why reliability is left out is added to `left`."""
    from onlinecal.report.curve_plot import plot_slopes
    from onlinecal.report.late_plot import plot_delays
    from onlinecal.report.people import plot_people
    from onlinecal.report.reliability_plot import plot_reliability
    from onlinecal.report.study_plot import plot_exponents, plot_pareto, plot_tasks

    pair, natures, several = list(shown[:2]), study.natures, len(study.forecasters) > 1
    fits = grown and 1 < len(natures) * len(study.forecasters) <= CELLS
    both = [c.nature for c in study.cells if several and len(pair) > 1 and all(m in c.totals for m in pair)]
    tasks = _tasks(study)
    bent = [curve.nature for curve in (study.curves(grown[:1]) if grown else []) if len(curve.rounds) > 2]
    joined = [cell.nature for cell in study.cells if cell.people]
    classes = any(column.of_classes for column in study.columns.values())
    return [
        Kind(plot_exponents, "Growth exponents", natures if fits else [], CELLS, CELLS,
             lambda some: ((some, grown), {})),
        Kind(plot_pareto, f"{' and '.join(pair)}: Pareto fronts", both, 6, FORECASTERS,
             lambda some: ((some, pair), {})),
        Kind(plot_reliability, "Reliability", [] if classes else natures, 4, 4,
             lambda some: _reliability(some, left), each=True),
        Kind(plot_tasks, "Regrets of tasks", natures if tasks else [], 2,
             min(FORECASTERS, max(1, POINTS // max(1, tasks))), lambda some: ((some,), {}), each=True),
        Kind(plot_slopes, f"Local slopes of {''.join(grown[:1])}", bent, 2, 6,
             lambda some: ((some.curves(grown[:1]),), {}), each=True),
        Kind(plot_delays, f"What late outcomes cost: {shown[0]}", _late(study), CELLS, 4,
             lambda some: ((some, [shown[0]]), {})),
        Kind(plot_people, "Decision makers who join and leave", joined, 2, 2,
             lambda some: ((some,), {}) if any(cell.people for cell in some.cells) else None),
    ]  # fmt: skip


def _reliability(some: Study, left: list[str]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Γ of each forecaster, of all runs where these are few, where it is kept."""
    from onlinecal.report.gammas import study_gammas

    try:
        levels = study_gammas(some, run=None if max(runs_of(some.cells)) <= TOGETHER else 0)
    except InvalidParameter:  # no level sets at all
        said = "Reliability diagrams are left out where no level sets of a game are kept."
        left += [said] * (said not in left)
        return None
    # In a game predictions depend on outcomes, and the band is for predictions that were fixed before.
    return (levels,), {"band": None}


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


def reliability_of(found: Mapping[str, Evaluation], title: str) -> Figure:
    """The reliability of columns of a log in one panel: of few forecasts by level, else smoothed."""
    from onlinecal.report import plots

    few = all(each.gamma.levels <= SINGLE for each in found.values())
    return plots.reliability(found, kind="points" if few else "smooth", together=True, title=title)


def of_classes(evaluation: ClassEvaluation) -> list[Picture]:
    """The pictures of forecasts of several classes."""
    found = [_of_log("classes", "Reliability of each class", evaluation)]
    if evaluation.gamma.classes == 3:
        found.append(_of_log("triangle", "Forecasts and what happened", evaluation.gamma))
    return found


def _of_log(plot: str, title: str, found: Any, **options: Any) -> Picture:
    from onlinecal.report import plots

    return picture(title, getattr(plots, plot)(found, caption=False, **options))


def picture(title: str, figure: Figure, more: str = "") -> Picture:
    """A figure with its caption and what more there is to say."""
    return Picture(title, f"{figure.get_label()}{more}", drawing(figure), figure.get_figwidth() > WIDE)


def few(study: Study, natures: Sequence[str], measure: str, most: int) -> tuple[Study, str]:
    """The part of a study of the `most` forecasters with the lowest largest mean total, and a sentence on them."""
    some = study.only(natures=list(natures))
    several = len(some.forecasters)
    if several <= most:
        return some, ""
    worst: dict[str, list[float]] = {}
    for curve in some.curves([measure]):
        worst.setdefault(curve.forecaster, []).append(curve.mean[-1])
    # Those without a mean, infinite both ways, come last.
    order = np.argsort([np.max(worst.get(who, [np.inf])) for who in some.forecasters], kind="stable")[:most]
    chosen = f" Drawn: the {most} of {several} forecasters whose largest mean total of {measure} is lowest."
    return some.only([some.forecasters[i] for i in sorted(order)]), chosen


def drawing(figure: Figure) -> str:
    """A figure as SVG, with two digits after the point, and one font."""
    import matplotlib as mpl

    from onlinecal.report.style import written

    with mpl.rc_context({"font.sans-serif": mpl.rcParams["font.sans-serif"][:1]}):
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
            figure.set_layout_engine(None)  # with one, savefig draws everything twice
        svg = written(figure, "svg").decode()
    svg = re.sub(r"\s*\n\s*", " ", svg[svg.index("<svg") :])
    return re.sub("<[^<>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)
