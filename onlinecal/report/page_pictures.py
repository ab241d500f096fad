"""The pictures on the page of a study: which of them are drawn, each for a light and for a dark page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.progress import Progress
from onlinecal.report.curves import Curve, Study

#: so many pictures are drawn at most, curves of so many forecasters each and so many lines in all; tables have all
MOST = 24
FORECASTERS = 12
LINES = 240
#: pairs up to which all exponents fit one picture
CELLS = 400
#: natures in the picture of Pareto fronts
FRONTS = 6
#: natures and forecasters of reliability diagrams; runs up to which all are put together; levels up to which all are
#: drawn, and bins of more
RELIABILITY = 4
DIAGRAMS = 4
TOGETHER = 64
LEVELS = 200
BINS = 20
#: natures of which local slopes, regrets of tasks, delays and decision makers are drawn, and forecasters of them
NATURES = 2
SLOPES = 6
LATE = 4
PEOPLE = 2
#: tasks times forecasters in one picture
POINTS = 60


@dataclass(frozen=True)
class Picture:
    """A drawing with what it shows.

    Attributes
    ----------
    title, caption : str
    svg, dark : str
        The drawing itself, for a light and for a dark page.
    wide : bool
        Whether it takes the whole width of the page.
    """

    title: str
    caption: str
    svg: str
    dark: str
    wide: bool = False

    @property
    def address(self) -> str:
        """The drawing as an address that needs no network."""
        return _address(self.svg)

    @property
    def dark_address(self) -> str:
        """The same for a dark page."""
        return _address(self.dark)


@dataclass(frozen=True)
class Gallery:
    """All pictures of a page.

    Attributes
    ----------
    shared : str
        What the captions of all `curves` have in common; their own have the rest.
    curves, others : list of Picture
        Of a measure against a nature; all else.
    left : list of str
        Which pictures were left out, and why.
    """

    shared: str
    curves: list[Picture]
    others: list[Picture]
    left: list[str]


def gallery(study: Study, shown: Sequence[str], grown: Sequence[str], progress: Progress) -> Gallery:
    """The pictures of a study.

    Parameters
    ----------
    study : Study
    shown : sequence of str
        The columns that tables show, without the ends of brackets.
    grown : sequence of str
        Those of them that have an exponent.
    progress : Progress
        Advanced by `MOST` in all at most.
    """
    left: list[str] = []
    others: list[Picture] = []
    if shown:
        for kind in (_exponents, _pareto, _reliability, _tasks, _slopes, _delays, _people):
            progress.describe(kind.__name__[1:])
            mine = kind(study, shown, grown, left)
            others += mine
            progress.advance(len(mine))
    curves, common = _curves(study, shown, MOST - len(others), left, progress)
    return Gallery(common, curves, others, left)


# ---------------------------------------------------------------- curves


def _curves(
    study: Study, shown: Sequence[str], room: int, left: list[str], progress: Progress
) -> tuple[list[Picture], str]:
    """Each measure against each nature, and what all their captions share."""
    from onlinecal.report import curve_plot

    pairs = [(nature, measure) for nature in study.natures for measure in shown]
    most = min(room, max(4, LINES // min(len(study.forecasters), FORECASTERS)))
    found, said, fewer = [], [], 0
    for nature, measure in pairs[:most]:
        progress.describe(f"{measure} against {nature}")
        every = study.only(natures=[nature]).curves([measure])
        curves = lowest(every, FORECASTERS)
        if len(curves) < len(every):
            fewer = max(fewer, len(every))
        if curves:
            light, dark = drawn_twice(partial(_curve_figure, curves))
            found.append(Picture(f"{measure} against {nature}", "", light, dark))
            said.append(curve_plot.sentences(curves))
        progress.advance(1)
    if len(pairs) > most:
        left.append(
            f"{len(pairs) - most:,} of {len(pairs):,} pictures of a measure against a nature are left out."
        )
    if fewer:
        left.append(
            f"Of up to {fewer:,} forecasters those {FORECASTERS} are drawn whose mean total is lowest at the largest T."
        )
    if len(pairs) > most or fewer:
        left.append("`onlinecal plot RESULTS` draws them with --measure, --nature and --forecaster.")
    common = [each for each in said[0] if all(each in rest for rest in said)] if said else []
    own = [" ".join(each for each in mine if each not in common) for mine in said]
    return [replace(p, caption=words) for p, words in zip(found, own, strict=True)], " ".join(common)


def _curve_figure(curves: Sequence[Curve], dark: bool) -> Any:
    from matplotlib.figure import Figure

    from onlinecal.report.curve_plot import plot_curves
    from onlinecal.report.style import page

    with page(dark):
        figure = Figure(figsize=(5.2, 4.6 + 0.12 * len(curves)), layout="constrained")
        axis = figure.subplots()
        plot_curves(curves, axes=axis)
    axis.set_title("")  # the page says it above
    return figure


def lowest(curves: Sequence[Curve], most: int) -> list[Curve]:
    """So many curves whose mean total is lowest at their largest T, in the order of the study."""
    # Those without a mean, infinite both ways, come last.
    order = np.argsort([curve.mean[-1] for curve in curves], kind="stable").tolist()
    return [curves[i] for i in sorted(order[:most])]


# ---------------------------------------------------------------- all else


def _exponents(study: Study, shown: Sequence[str], grown: Sequence[str], left: list[str]) -> list[Picture]:
    from onlinecal.report import exponent_plot

    if not grown or not 1 < len(study.natures) * len(study.forecasters) <= CELLS:
        return []
    said = exponent_plot.caption(study, grown)
    return [_picture("Growth exponents", said, partial(exponent_plot.heat_map, study, grown))]


def _pareto(study: Study, shown: Sequence[str], grown: Sequence[str], left: list[str]) -> list[Picture]:
    from onlinecal.report import pareto_plot

    if len(shown) < 2 or len(study.forecasters) < 2:
        return []
    if len(study.forecasters) > FORECASTERS:
        left.append(
            f"Pareto fronts are drawn of up to {FORECASTERS} forecasters; `onlinecal compare RESULTS --pareto` has "
            "those of more."
        )
        return []
    two = list(shown[:2])
    some = study.only(natures=study.natures[:FRONTS])
    try:
        said = pareto_plot.caption(some, two)
    except InvalidParameter:  # not taken of the same games
        return []
    title = f"{two[0]} and {two[1]}: Pareto front" + "s" * (len(some.natures) > 1)
    _only_some(left, "Pareto fronts", study, FRONTS)
    return [_picture(title, said, partial(pareto_plot.plot_pareto, some, two))]


def _reliability(study: Study, shown: Sequence[str], grown: Sequence[str], left: list[str]) -> list[Picture]:
    """Of the Γ that are kept, a picture for each nature."""
    from onlinecal.report import reliability_plot

    found, missing = [], False
    for nature in study.natures[:RELIABILITY]:
        some = study.only(natures=[nature])
        who = [curve.forecaster for curve in lowest(some.curves(shown[:1]), DIAGRAMS)] or some.forecasters[:1]
        levels: dict[str, JointDistribution] = {}
        for one in who:
            mine = _levels(some.only([one]))
            missing |= not mine
            levels |= mine
        if not levels:
            continue
        bins = BINS if max(len(gamma.predictions) for gamma in levels.values()) > LEVELS else None
        # In a game predictions depend on outcomes, and the band is for predictions that were fixed before.
        options: dict[str, Any] = {"bins": bins, "band": None}
        said = reliability_plot.caption(levels, **options)
        if len(some.forecasters) > len(levels):
            said += (
                f" Drawn: {len(levels)} of {len(some.forecasters)} forecasters; of more than {DIAGRAMS} those "
                f"whose mean {shown[0]} is lowest."
            )
        options["width"] = 6.5 if len(levels) == 4 else None  # two lines of two
        found.append(
            _picture(
                f"Reliability against {nature}",
                said,
                partial(reliability_plot.plot_reliability, levels, **options),
            )
        )
    if missing:
        left.append("Reliability diagrams are left out where the level sets of a game are not kept exactly.")
    if found:
        _only_some(left, "Reliability diagrams", study, RELIABILITY)
    return found


def _levels(pair: Study) -> dict[str, JointDistribution]:
    """Γ of one forecaster against one nature by its label; nothing where it is not kept exactly."""
    from onlinecal.report.pictures import gammas

    runs = max(totals.shape[1] for cell in pair.cells for totals in cell.totals.values())
    try:
        return gammas(pair, run=None if runs <= TOGETHER else 0)[0]
    except InvalidParameter:
        return {}


def _tasks(study: Study, shown: Sequence[str], grown: Sequence[str], left: list[str]) -> list[Picture]:
    from onlinecal.report import task_plot

    tasks = {
        (c.task, c.response)
        for c in study.columns.values()
        if c.of_task and c.measure in task_plot.KINDS and not c.stream
    }
    if not tasks:
        return []
    most = min(FORECASTERS, max(1, POINTS // len(tasks)))
    found = []
    for nature in study.natures[:NATURES]:
        some = _few(study, [nature], shown[0], most)
        found.append(
            _picture(
                f"Regrets of tasks against {nature}",
                task_plot.caption(some) + _whose(study, some, shown[0]),
                partial(task_plot.plot_tasks, some),
            )
        )
    _only_some(left, "Regrets of tasks", study, NATURES)
    return found


def _slopes(study: Study, shown: Sequence[str], grown: Sequence[str], left: list[str]) -> list[Picture]:
    from onlinecal.report import slope_plot

    if not grown:
        return []
    if len(study.forecasters) > SLOPES:
        left.append(
            f"Local slopes are drawn of up to {SLOPES} forecasters; `onlinecal plot RESULTS --slopes` draws those of "
            "more."
        )
        return []
    found = []
    for nature in study.natures[:NATURES]:
        curves = study.only(natures=[nature]).curves(grown[:1])
        if not any(len(curve.rounds) > 2 for curve in curves):
            continue
        found.append(
            _picture(
                f"Local slopes of {grown[0]} against {nature}",
                slope_plot.caption(curves),
                partial(slope_plot.plot_slopes, curves),
                wide=False,
            )
        )
    if found:
        _only_some(left, "Local slopes", study, NATURES)
    return found


def _delays(study: Study, shown: Sequence[str], grown: Sequence[str], left: list[str]) -> list[Picture]:
    from onlinecal.report import late_plot

    if len({cell.schedule[1] for cell in study.cells}) < 2:
        return []
    base = list(dict.fromkeys(cell.schedule[0] for cell in study.cells))
    natures = list(dict.fromkeys(c.nature for c in study.cells if c.schedule[0] in base[:NATURES]))
    some = _few(study, natures, shown[0], LATE)
    one = [shown[0]]
    said = late_plot.caption(some, one) + _whose(study, some, shown[0])
    if len(base) > NATURES:
        left.append(f"What late outcomes cost is drawn of the first {NATURES} natures.")
    return [
        _picture(
            f"What late outcomes cost: {shown[0]}",
            said,
            partial(late_plot.plot_delays, some, one),
        )
    ]


def _people(study: Study, shown: Sequence[str], grown: Sequence[str], left: list[str]) -> list[Picture]:
    from onlinecal.report import people_plot

    natures = list(dict.fromkeys(cell.nature for cell in study.cells if cell.people))
    if not natures:
        return []
    some = _few(study, natures[:NATURES], shown[0], PEOPLE)
    if not any(cell.people for cell in some.cells):
        return []
    said = people_plot.caption(some) + _whose(study, some, shown[0])
    if len(natures) > NATURES:
        left.append(f"Decision makers who join and leave are drawn of the first {NATURES} natures.")
    return [_picture("Decision makers who join and leave", said, partial(people_plot.plot_people, some))]


def _few(study: Study, natures: Sequence[str], measure: str, most: int) -> Study:
    """The part of a study against these natures, of so many forecasters: those with the lowest largest mean total."""
    some = study.only(natures=list(natures))
    if len(some.forecasters) <= most:
        return some
    worst: dict[str, float] = {}
    for curve in some.curves([measure]):
        worst[curve.forecaster] = max(float(curve.mean[-1]), worst.get(curve.forecaster, -np.inf))
    order = sorted(some.forecasters, key=lambda who: worst.get(who, np.inf))[:most]
    return some.only([who for who in some.forecasters if who in order])


def _whose(study: Study, some: Study, measure: str) -> str:
    """Which forecasters `_few` has chosen, where it has left some out."""
    there = {c.forecaster for c in study.cells if c.nature in some.natures}
    if len(there) == len(some.forecasters):
        return ""
    over = ", the largest of these natures," if len(some.natures) > 1 else ""
    return f" Drawn: {len(some.forecasters)} of {len(there)} forecasters, those whose mean {measure}{over} is lowest."


def _only_some(left: list[str], what: str, study: Study, most: int) -> None:
    if len(study.natures) > most:
        left.append(f"{what} are drawn of the first {most} of {len(study.natures):,} natures.")


# ---------------------------------------------------------------- drawings


def _picture(title: str, caption: str, plot: Callable[..., Any], *, wide: bool = True) -> Picture:
    """A picture that makes a figure of its own; its caption is text of the page."""
    light, dark = drawn_twice(lambda dark: np.ravel(plot(dark=dark))[0].figure)
    return Picture(title, caption, light, dark, wide)


def drawn_twice(figure: Callable[..., Any]) -> tuple[str, str]:
    """A figure for light and for dark paper."""
    return drawn(figure, dark=False), drawn(figure, dark=True)


def drawn(figure: Callable[..., Any], *, dark: bool) -> str:
    """A figure as text that is the same for the same figure."""
    import matplotlib as mpl

    from onlinecal.report.style import uncaptioned

    text = io.StringIO()
    settings: Any = {"svg.hashsalt": "onlinecal", "svg.fonttype": "none", "savefig.facecolor": "auto"}
    with uncaptioned():
        made = figure(dark=dark)
    with mpl.rc_context(settings):
        made.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _address(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
