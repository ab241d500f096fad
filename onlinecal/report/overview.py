"""A study of very many totals in some lines: which forecasters are best and worst, and which natures are hardest."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape

from onlinecal.core.words import number_of
from onlinecal.growth import Growth, simultaneous
from onlinecal.growth.words import legend, lines
from onlinecal.report.curves import Study
from onlinecal.report.frames import counted
from onlinecal.report.grid import new_console, number, print_grid

#: of more totals than this not every one is printed after a run
LONG = 1000
#: forecasters and natures are named up to so many from each end of their order
SHOWN = 5
#: and of so many measures
MEASURES = 3


class Extremes(NamedTuple):
    """A forecaster against all natures, or a nature against all forecasters, at the largest T of a study.

    Attributes
    ----------
    who : str
    least, median, largest : float
        Mean total over runs, over the opponents.
    easiest, hardest : str
        With whom it has the least and the largest; the first of several.
    opponents : int
    """

    who: str
    least: float
    median: float
    largest: float
    easiest: str
    hardest: str
    opponents: int


class Overview(NamedTuple):
    """One measure of a study at its largest T.

    Attributes
    ----------
    measure : str
    horizon : int
    forecasters : list of Extremes
        By their largest total over the natures, the lowest first.
    natures : list of Extremes
        By the least total of any forecaster, the highest first.
    pairs, shorter, unknown : int
        How many pairs are in it; how many are not, as they end at a shorter T, or have no mean total (some runs
        infinite, others minus infinite).
    """

    measure: str
    horizon: int
    forecasters: list[Extremes]
    natures: list[Extremes]
    pairs: int
    shorter: int
    unknown: int


def long(study: Study, measures: Sequence[str]) -> bool:
    """Whether a study has too many totals of these measures for each of them to be printed after a run."""
    pairs = {(cell.forecaster, cell.nature) for cell in study.cells}
    return len(pairs) * len(measures) > LONG


def overview(study: Study, measure: str) -> Overview:
    """One measure at the largest T of the study."""
    cells = [cell for cell in study.cells if measure in cell.totals]
    last = max(cell.horizon for cell in cells)
    who = {label: i for i, label in enumerate(dict.fromkeys(cell.forecaster for cell in cells))}
    whom = {label: i for i, label in enumerate(dict.fromkeys(cell.nature for cell in cells))}
    means = np.full((len(who), len(whom)), np.nan)
    there = [cell for cell in cells if cell.horizon == last]
    with np.errstate(invalid="ignore"):  # of what is infinite both ways
        for cell in there:
            means[who[cell.forecaster], whom[cell.nature]] = cell.totals[measure][-1].mean()
    known = int((~np.isnan(means)).sum())
    forecasters = _extremes([*who], [*whom], means)
    natures = _extremes([*whom], [*who], means.T)
    return Overview(
        measure,
        last,
        sorted(forecasters, key=lambda row: (row.largest, row.median)),
        sorted(natures, key=lambda row: (-row.least, -row.median)),
        known,
        len({(cell.forecaster, cell.nature) for cell in cells}) - len(there),
        len(there) - known,
    )


def _extremes(rows: Sequence[str], opponents: Sequence[str], means: NDArray[np.float64]) -> list[Extremes]:
    found = []
    for label, values in zip(rows, means, strict=True):
        places = np.flatnonzero(~np.isnan(values))
        if len(places):
            own = values[places]
            low, high = int(own.argmin()), int(own.argmax())
            with np.errstate(invalid="ignore"):  # between two that are infinite both ways
                median = float(np.median(own))
            found.append(
                Extremes(
                    label,
                    float(own[low]),
                    median,
                    float(own[high]),
                    opponents[places[low]],
                    opponents[places[high]],
                    len(places),
                )
            )
    return found


def print_overview(study: Study, title: str, measures: Sequence[str]) -> None:
    """Of each of the first measures the forecasters, and the natures, from both ends of their order."""
    console = new_console()
    console.print(f"[bold]{escape(title)}[/bold]")
    runs = {next(iter(cell.totals.values())).shape[1] for cell in study.cells}
    who, whom = number_of(len(study.forecasters), "forecaster"), number_of(len(study.natures), "nature")
    console.print(
        f"{who} against {whom}, {counted(runs)}: {number_of(len(study.cells), 'cell')}", markup=False
    )
    # What is shown are the extremes of all curves: their intervals are as if every one was shown.
    curves = {
        (c.forecaster, c.nature, measure) for c in study.cells for measure in measures if measure in c.totals
    }
    level = simultaneous(len(curves))
    growths: list[Growth] = []

    def total(value: float, *curve: str) -> str:
        growth = study.curve(*curve).exponent(level)
        growths.extend([growth] if growth else [])
        return "\n".join([number(value), *(lines(growth) if growth else [])])

    for found in (overview(study, measure) for measure in measures[:MEASURES]):
        name, at = found.measure, f"T = {found.horizon:,}"
        rows = {
            row.who: [
                total(row.largest, name, row.who, row.hardest), row.hardest, number(row.median), number(row.least)
            ]
            for row in _ends(found.forecasters)
        }  # fmt: skip
        title = f"{name}: forecasters by their largest total over the natures, {at}"
        _print_ends(console, title, ["largest", "against", "median", "least"], rows, len(found.forecasters))
        rows = {
            row.who: [
                total(row.least, name, row.easiest, row.who), row.easiest, number(row.median), number(row.largest)
            ]
            for row in _ends(found.natures)
        }  # fmt: skip
        title = f"{name}: natures by the least total of any forecaster, {at}"
        _print_ends(console, title, ["least", "of", "median", "largest"], rows, len(found.natures), "nature")
        for count, why in (
            (found.shorter, "played to a shorter T only"),
            (found.unknown, "with infinite totals of both signs"),
        ):
            if count:
                console.print(f"{name}: without {number_of(count, 'pair')} {why}", markup=False)
    said = "mean total T·μ over the runs; of very many the largest and the least are so by chance, too"
    console.print("; ".join([said, *legend(growths)]), markup=False)
    if rest := measures[MEASURES:]:
        more = f" and {len(rest) - SHOWN} more" if len(rest) > SHOWN else ""
        console.print(f"measured, too: {', '.join(rest[:SHOWN])}{more}", markup=False)


def _ends(found: Sequence[Extremes]) -> Sequence[Extremes]:
    """All, or of many the first and the last."""
    return found if len(found) <= 2 * SHOWN + 1 else [*found[:SHOWN], *found[-SHOWN:]]


def _print_ends(
    console: Console,
    title: str,
    headings: Sequence[str],
    rows: dict[str, list[str]],
    count: int,
    first: str = "forecaster",
) -> None:
    """The table of `_ends`, which says how many are left out between them."""
    shown = list(rows.items())
    if left := count - len(rows):
        shown.insert(SHOWN, (f"… {left:,} more", [""] * len(headings)))
    print_grid(console, title, headings, dict(shown), first)


def ways_on(path: Path, measure: str) -> str:
    """What shows all of it."""
    file, table = shlex.quote(str(path)), shlex.quote(str(path.with_suffix(".csv")))
    return "\n".join(
        [
            f"every total: onlinecal export {file} -o {table}",
            f"a measure: onlinecal compare {file} --measure {shlex.quote(measure)}",
            f"a page: onlinecal report {file}",
        ]
    )
