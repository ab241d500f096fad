"""What the page of a study says, as plain data: sentences and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlinecal.core.words import number_of
from onlinecal.growth import Growth, simultaneous
from onlinecal.growth.words import lines
from onlinecal.report.console import AGAINST_RATES
from onlinecal.report.curves import Study
from onlinecal.report.grid import number, with_spread
from onlinecal.report.ranking import COMMON_RUNS, have_more_runs, ranking, totals_in_common
from onlinecal.study.entries import Planned
from onlinecal.study.played import Played

#: so many names are listed; of more, only how many
LISTED = 12


@dataclass(frozen=True)
class Cell:
    """What stands in a cell, by which number its column is sorted, and what is said below it in small letters."""

    text: str
    value: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table with a column of names.

    Attributes
    ----------
    title : str
    headings : tuple of str
        Of the columns after the first.
    rows : tuple of (str, tuple of Cell)
    first : str
        The heading of the names.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    first: str = "forecaster"


def main_columns(study: Study) -> list[str]:
    """What tables show: of all questions, each measure, and of each task its swap regret."""
    found = [
        name
        for name, column in study.columns.items()
        if not column.stream
        and (column.measure == "swap_regret" if column.of_task else column.kind != "certificate")
    ]
    return found or study.measures


def columns(study: Study) -> list[str]:
    """Those of the tables: streams, the accounts of tasks beside the swap regret, and certificates come last."""
    first = main_columns(study)
    return [*first, *(name for name in study.measures if name not in first)]


def tables(study: Study, rows: Sequence[tuple[dict[str, Any], Growth | None]]) -> list[Table]:
    """A table for each nature: forecasters down, measures across, with totals at the largest T and their growth.

    Parameters
    ----------
    study : Study
    rows : sequence of (dict, Growth)
        Those of `console.grown` for the `columns`.
    """
    found = []
    for nature in study.natures:
        mine = {
            (row["forecaster"], row["measure"]): (row, growth)
            for row, growth in rows
            if row["nature"] == nature
        }
        if not mine:
            continue
        horizon = max(row["horizon"] for row, _ in mine.values())
        open = max(row["open"] for row, _ in mine.values() if row["horizon"] == horizon)
        there = [c for c in columns(study) if any(measure == c for _, measure in mine)]
        told = []
        for who in study.forecasters:
            cells = []
            for column in there:
                if (who, column) not in mine:
                    cells.append(Cell(""))
                    continue
                row, growth = mine[who, column]
                notes = ["–" if growth is None else " ".join(lines(growth)), row["against_rates"]]
                if row["horizon"] != horizon:
                    notes.insert(0, f"at T = {row['horizon']:,}")
                cells.append(
                    Cell(
                        with_spread(row["total"], row["half_width"]),
                        row["total"],
                        " · ".join(filter(None, notes)),
                    )
                )
            if any(cell.text for cell in cells):
                told.append((who, tuple(cells)))
        title = f"{nature}, T = {horizon:,}" + (
            f", {number_of(open, 'question')} open at the end" if open else ""
        )
        found.append(Table(title, tuple(there), tuple(told)))
    return found


# ---------------------------------------------------------------- sentences


def asked(study: Study) -> list[tuple[str, str]]:
    """What was asked, as terms with what they are here."""
    cells = study.cells
    times = sorted({cell.horizon for cell in cells})
    several = len(times) > 1
    runs = sorted({_runs(cell) for cell in cells})
    played = (
        f"{len(times)} from {times[0]:,} to {times[-1]:,}, each a game of its own"
        if several
        else f"{times[0]:,}, read at {most} times of one game"
        if (most := max(len(cell.rounds) for cell in cells)) > 1
        else f"{times[0]:,}, read at its end"
    )
    shown = main_columns(study)
    return [
        (number_of(len(study.forecasters), "forecaster"), _list(study.forecasters)),
        (number_of(len(study.natures), "nature"), _list(study.natures)),
        (number_of(len(shown), "measure"), _list(shown)),
        ("rounds T", played),
        (
            "runs",
            " to ".join(f"{n:,}" for n in (runs if len(runs) == 1 else [runs[0], runs[-1]]))
            + " of each pair",
        ),
    ]


#: after a name that is certain, as in tables of dominations
CERTAIN = "†"


def lowest(study: Study) -> tuple[Table, str] | None:
    """Whose mean total is lowest: measures down, natures across, and what that means; None where nothing is compared.

    Only forecasters that were played at the same largest T are compared. The last column, of several natures, is the
    forecaster whose largest mean total over all of them is lowest. Names are marked that are lower than every other
    beyond doubt, by `ranking.ranking` of what is compared; all marks of the table hold together with 95 %.
    """
    every: dict[str, dict[str, dict[str, Played]]] = {}
    for measure in main_columns(study):
        # The two ends of a bracket are not totals of the measure itself.
        if study.columns[measure].end:
            continue
        compared = {nature: _compared(study, measure, nature) for nature in study.natures}
        if any(len(cells) > 1 for cells in compared.values()):
            every[measure] = compared
    if not every:
        return None
    rows, sure, recorded, fewer = [], False, False, False
    level = simultaneous(len(every))
    for measure, compared in every.items():
        means = {nature: _means(cells, measure) for nature, cells in compared.items()}
        fewer |= any(have_more_runs([*cells.values()], measure) for cells in compared.values())
        certain, known = _certain(compared, measure, level)
        recorded |= known
        cells = []
        for nature, found in means.items():
            cell = _least(found, {}) if len(found) > 1 else Cell("")
            if cell.text in certain.get(nature, ()):
                sure, cell = True, replace(cell, text=f"{cell.text} {CERTAIN}")
            cells.append(cell)
        if len(study.natures) > 1:
            largest: dict[str, tuple[float, str]] = {}
            for who in study.forecasters:
                if all(who in found for found in means.values()):
                    # A mean that is infinite both ways is the largest: nothing is below it.
                    largest[who] = max(
                        ((found[who], nature) for nature, found in means.items()),
                        key=lambda one: math.inf if math.isnan(one[0]) else one[0],
                    )
            found = {who: mean for who, (mean, _) in largest.items()}
            cells.append(_least(found, {who: f"against {n}" for who, (_, n) in largest.items()}))
        rows.append((measure, tuple(cells)))
    several = ("largest of its totals over the natures",) if len(study.natures) > 1 else ()
    table = Table(
        "Whose mean total is lowest at the largest T", (*study.natures, *several), tuple(rows), "measure"
    )
    said = _meaning(sure=sure, recorded=recorded, several=len(study.natures) > 1)
    return table, said + f" {COMMON_RUNS}." * fewer


def _means(cells: dict[str, Played], measure: str) -> dict[str, float]:
    """Forecaster → mean total over the runs that all of them have; NaN where it is infinite both ways."""
    if not cells:
        return {}
    with np.errstate(invalid="ignore"):
        return dict(
            zip(cells, totals_in_common([*cells.values()], measure).mean(axis=1).tolist(), strict=True)
        )


def _certain(
    compared: dict[str, dict[str, Played]], measure: str, level: float
) -> tuple[dict[str, set[str]], bool]:
    """Nature → who is lower than every other beyond doubt; whether that is of recorded outcomes somewhere."""
    cells = [cell for found in compared.values() if len(found) > 1 for cell in found.values()]
    order = ranking(Study(tuple(cells)), measure, level)
    found = {}
    for standing in order.standings:
        # Of a payoff the lowest is the one that all others are better than.
        before = standing.before.T if order.higher else standing.before
        below = before.sum(axis=1) == len(standing.forecasters) - 1
        found[standing.nature] = {
            who for who, it_is in zip(standing.forecasters, below, strict=True) if it_is
        }
    return found, any(standing.recorded for standing in order.standings)


def _meaning(*, sure: bool, recorded: bool, several: bool) -> str:
    """What the marks in `lowest` mean, and what is without one."""
    compare = "`onlinecal compare RESULTS --ranking` says who else is told apart."
    if not sure:
        return (
            "Nobody is the lowest here beyond doubt (Student's t on one difference a run, for all of the table "
            f"together with 95 %): that a mean is the lowest may be chance. {compare}"
        )
    said = (
        f"{CERTAIN}: its expected total is lower than that of every other forecaster beyond doubt, by Student's t on "
        "one difference a run, Holm's procedure over all pairs and natures, and Bonferroni's over measures: all "
        f"{CERTAIN} of the table hold together with 95 % if differences are normal."
    )
    if recorded:
        said += " On recorded outcomes, which are the same in all runs, it is over the forecasters' randomness alone."
    said += f" Without {CERTAIN} it may be chance that this mean is the lowest"
    return said + (f"; the last column is not tested. {compare}" if several else f". {compare}")


def _least(means: dict[str, float], notes: dict[str, str]) -> Cell:
    finite = [mean for mean in means.values() if math.isfinite(mean)]
    if not finite:
        return Cell("–", note="no total is finite") if means else Cell("")
    least = min(finite)
    names = [who for who, mean in means.items() if mean == least]
    return Cell(", ".join(names), least, " · ".join(filter(None, (number(least), notes.get(names[0], "")))))


def bounds(study: Study) -> list[str]:
    """Whether the proven bounds hold in what was played, in sentences: those on the end of each game."""
    held = 0
    broken: list[str] = []
    chance: list[str] = []
    for cell in study.cells:
        for promise in cell.promises:
            if promise.kind == "rate" or promise.measure not in cell.totals:
                continue
            totals = cell.totals[promise.measure][-1]
            sign = 1.0 if promise.upper else -1.0
            # A bound that is attained may be missed by the rounding of the total.
            edge = sign * promise.bound + 1e-9 * max(1.0, abs(promise.bound))
            above = sign * totals > edge if promise.kind == "deterministic" else sign * totals.mean() > edge
            if not np.any(above):
                held += 1
                continue
            (broken if promise.kind == "deterministic" else chance).append(
                f"{promise.measure} {'≤' if promise.upper else '≥'} {promise.formula} of {cell.forecaster} against "
                f"{cell.nature} at T = {cell.horizon:,}"
            )
    said = []
    if held:
        rest = "which every run keeps to, or, of expectations, their mean"
        every = f"Every one of {held:,} proven bounds with a constant holds in what was played, {rest}."
        some = f"{held:,} of {held + len(broken) + len(chance):,} proven bounds with a constant hold, {rest}."
        said.append(some if broken or chance else every)
    if broken:
        said.append(f"Broken in some run, which a proven bound does not allow: {_list(broken)}.")
    if chance:
        said.append(
            f"The mean of these runs is beyond a bound of the expectation, as may happen by chance: {_list(chance)}."
        )
    return said


def remarks(rows: Sequence[tuple[dict[str, Any], Growth | None]]) -> list[str]:
    """What the remarks in the tables on how totals grow mean, in sentences; the rows are those of `console.grown`."""
    there = {row["against_rates"] for row, _ in rows}
    return [
        f"{remark}: {meaning.format(rate='the best known rate of its measure')}."
        for remark, meaning in AGAINST_RATES.items()
        if remark in there
    ]


def not_played(
    failed: Sequence[tuple[Planned, str, str]], incompatible: Sequence[Sequence[str]]
) -> Table | None:
    """Cells that failed and pairs that cannot play each other, each with the reason; None where there are none.

    Parameters
    ----------
    failed : sequence of (Planned, str, str)
        As `Status.failed` has them: with why, and when that was last tried.
    incompatible : sequence of (str, str, str)
        Forecaster, nature and why, as `Plan.incompatible` has them.
    """
    found: dict[tuple[str, str, str], list[int]] = {}
    for cell, why, _ in failed:
        found.setdefault((cell.forecaster, cell.against, why), []).append(cell.horizon)
    rows = [
        (who, (Cell(whom), Cell(", ".join(f"{t:,}" for t in sorted(times))), Cell(f"failed: {why}")))
        for (who, whom, why), times in found.items()
    ]
    rows += [
        (who, (Cell(whom), Cell("all"), Cell(f"cannot be played: {why}"))) for who, whom, why in incompatible
    ]
    return Table("Not played", ("nature", "T", "why"), tuple(rows)) if rows else None


#: what the remarks of `Curve.against_rates` mean that are worth a sentence
_BEYOND = {
    "above proven": "faster over these T than the bound that is proved for its forecaster, below which its total may "
    "still lie",
    "above O": "faster over these T than the best known rate, which some forecaster is proved to keep against every "
    "nature that its source admits",
}


def beyond(rows: Sequence[tuple[dict[str, Any], Growth | None]]) -> list[str]:
    """What grows out of what is proved or known, in sentences; the rows are those of `console.grown`."""
    said = []
    for remark, words in _BEYOND.items():
        found: dict[str, list[str]] = {}
        for row, _ in rows:
            if row["against_rates"] == remark:
                found.setdefault(f"{row['forecaster']} against {row['nature']}", []).append(row["measure"])
        if found:
            parts = [f"{pair} ({_list(measures)})" for pair, measures in found.items()]
            said.append(f"What grows {words}: {'; '.join(parts[:LISTED])}{_more(parts, '; ')}.")
    return said


def _compared(study: Study, measure: str, nature: str) -> dict[str, Played]:
    """Forecaster → its cell at the largest T that all of them were played at."""
    cells = [c for c in study.cells if c.nature == nature and measure in c.totals]
    times: dict[str, set[int]] = {}
    for cell in cells:
        times.setdefault(cell.forecaster, set()).add(cell.horizon)
    common = set.intersection(*times.values()) if times else set()
    if not common:
        return {}
    last = max(common)
    return {c.forecaster: c for c in cells if c.horizon == last}


def _runs(cell: Played) -> int:
    return next(iter(cell.totals.values())).shape[1]


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:LISTED]) + _more(names, ", ")


def _more(names: Sequence[str], between: str) -> str:
    return f"{between}and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
