"""A study of very many totals in some lines: the best and worst forecasters, and the hardest natures."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from onlinecal.core.words import number_of
from onlinecal.growth import Growth, simultaneous
from onlinecal.growth.words import legend, lines
from onlinecal.report.curves import Study, runs_of
from onlinecal.report.frames import counted
from onlinecal.report.tables import Table, new_console, number

#: of more totals than this not every one is printed after a run
LONG = 1000
#: forecasters and natures are named up to so many from each end of their order
SHOWN = 5
#: and of so many measures
MEASURES = 3


class Overview(NamedTuple):
    """Mean totals of a measure at the largest T of a study, over the opponents.

    Columns of both frames: least, median, largest, easiest and hardest (the opponents of the least and the largest, the
    first of several). Forecasters are in the order of their largest total, natures of their least one, descending.
    """

    measure: str
    horizon: int
    forecasters: pd.DataFrame
    natures: pd.DataFrame
    #: pairs that are in it; that end at a shorter T; with infinite totals of both signs
    pairs: int
    shorter: int
    unknown: int


def long(study: Study, measures: Sequence[str]) -> bool:
    """Whether a study has too many totals of these measures for each of them to be printed after a run."""
    return len({(cell.forecaster, cell.nature) for cell in study.cells}) * len(measures) > LONG


def overview(study: Study, measure: str) -> Overview:
    """One measure at the largest T of the study."""
    cells = [cell for cell in study.cells if measure in cell.totals]
    last = max(cell.horizon for cell in cells)
    with np.errstate(invalid="ignore"):  # of what is infinite both ways
        who, whom = (
            {label: i for i, label in enumerate(dict.fromkeys(getattr(c, role) for c in cells))}
            for role in ("forecaster", "nature")
        )
        values = np.full((len(who), len(whom)), np.nan)
        for c in cells:
            if c.horizon == last:
                values[who[c.forecaster], whom[c.nature]] = c.totals[measure][-1].mean()
        means = pd.DataFrame(values, [*who], [*whom])
        known = int(means.notna().to_numpy().sum())
        forecasters = _extremes(means).sort_values(["largest", "median"], kind="stable")
        natures = _extremes(means.T).sort_values(["least", "median"], kind="stable", ascending=False)
    there = sum(c.horizon == last for c in cells)
    shorter = len({(c.forecaster, c.nature) for c in cells}) - there
    return Overview(measure, last, forecasters, natures, known, shorter, there - known)


def _extremes(means: pd.DataFrame) -> pd.DataFrame:
    means = means.dropna(how="all")
    found = {
        "least": means.min(axis=1),
        "median": means.median(axis=1),
        "largest": means.max(axis=1),
        "easiest": means.idxmin(axis=1),
        "hardest": means.idxmax(axis=1),
    }
    return pd.DataFrame(found)


def print_overview(study: Study, title: str, measures: Sequence[str]) -> None:
    """Prints forecasters and natures from both ends of their order, for each of the first measures."""
    console = new_console()
    console.print(title, style="bold", markup=False)
    who, whom = number_of(len(study.forecasters), "forecaster"), number_of(len(study.natures), "nature")
    cells = number_of(len(study.cells), "cell")
    console.print(f"{who} against {whom}, {counted(runs_of(study.cells))}: {cells}", markup=False)
    # The table has the extremes of all curves: their intervals are as if every one was shown.
    curves = {(c.forecaster, c.nature, m) for c in study.cells for m in measures if m in c.totals}
    level = simultaneous(len(curves))
    growths: list[Growth] = []
    for found in (overview(study, measure) for measure in measures[:MEASURES]):
        at = f"T = {found.horizon:,}"
        for kind, frame, first, last, opponent, by in (
            (
                "forecaster",
                found.forecasters,
                "largest",
                "least",
                "hardest",
                "largest total over the natures",
            ),
            ("nature", found.natures, "least", "largest", "easiest", "least total of any forecaster"),
        ):
            ends, rows = len(frame) <= 2 * SHOWN + 1, {}
            for name, row in (frame if ends else pd.concat([frame[:SHOWN], frame[-SHOWN:]])).iterrows():
                pair = (str(name), row[opponent]) if kind == "forecaster" else (row[opponent], str(name))
                growth = study.curve(found.measure, *pair).exponent(level)
                growths += [growth] if growth else []
                total = "\n".join([number(row[first]), *(lines(growth) if growth else [])])
                rows[str(name)] = [total, row[opponent], number(row["median"]), number(row[last])]
                if not ends and len(rows) == SHOWN:
                    rows[f"… {len(frame) - 2 * SHOWN:,} more"] = [""] * 4
            headings = [first, "against" if kind == "forecaster" else "of", "median", last]
            Table(f"{found.measure}: {kind}s by {'their' if kind == 'forecaster' else 'the'} {by}, {at}", headings,
                  rows, kind).print(console)  # fmt: skip
        for count, why in (
            (found.shorter, "played to a shorter T only"),
            (found.unknown, "with infinite totals of both signs"),
        ):
            if count:
                console.print(f"{found.measure}: without {number_of(count, 'pair')} {why}", markup=False)
    said = "mean total T·μ over the runs; of very many the largest and the least are so by chance, too"
    console.print("; ".join([said, *legend(growths)]), markup=False)
    if rest := measures[MEASURES:]:
        more = f" and {len(rest) - SHOWN} more" if len(rest) > SHOWN else ""
        console.print(f"measured, too: {', '.join(rest[:SHOWN])}{more}", markup=False)


def ways_on(path: Path, measure: str) -> str:
    """The commands that show all of it."""
    file, table = shlex.quote(str(path)), shlex.quote(str(path.with_suffix(".csv")))
    return "\n".join(
        [
            f"every total: onlinecal export {file} -o {table}",
            f"a measure: onlinecal compare {file} --measure {shlex.quote(measure)}",
            f"a page: onlinecal report {file}",
        ]
    )
