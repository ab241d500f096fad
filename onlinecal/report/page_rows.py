"""Tables and sentences of the page of a study, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onlinecal.core.words import number_of
from onlinecal.growth import simultaneous
from onlinecal.report.curves import Study, runs_of
from onlinecal.report.ranking import COMMON_RUNS, RECORDED, ranking, totals_in_common
from onlinecal.report.tables import number, with_spread
from onlinecal.report.totals import AGAINST_RATES, Total, longest
from onlinecal.report.totals import main_columns as _main_columns
from onlinecal.study.entries import Planned
from onlinecal.study.played import Played

#: names are listed up to so many
LISTED = 12
#: after a name that is certain, as in tables of dominations
CERTAIN = "†"


class Cell(NamedTuple):
    """The text of a cell, the number by which its column is sorted, and a note below it in small letters."""

    text: str
    value: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table with a column of names, whose heading is `first`."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    first: str = "forecaster"


def main_columns(study: Study) -> list[str]:
    """The columns of the summary: of all questions, each measure, and of each task its swap regret."""
    return _main_columns(study) or study.measures


def columns(study: Study) -> list[str]:
    """All columns: streams, the accounts of tasks beside the swap regret, and certificates come last."""
    return list(dict.fromkeys([*main_columns(study), *study.measures]))


def tables(study: Study, rows: Sequence[Total]) -> list[Table]:
    """A table for each nature: forecasters down, measures across, with totals at the largest T and their growth."""
    found = []
    for nature in study.natures:
        mine = {(row.forecaster, row.measure): row for row in rows if row.nature == nature}
        if not mine:
            continue
        horizon, _ = longest(mine.values())
        open = max(row.open for row in mine.values() if row.horizon == horizon)
        there = [c for c in columns(study) if any(measure == c for _, measure in mine)]
        told = []
        for who in study.forecasters:
            cells = [_cell(mine.get((who, column)), horizon) for column in there]
            if any(cell.text for cell in cells):
                told.append((who, tuple(cells)))
        title = f"{nature}, T = {horizon:,}" + (
            f", {number_of(open, 'question')} open at the end" if open else ""
        )
        found.append(Table(title, tuple(there), tuple(told)))
    return found


def _cell(row: Total | None, horizon: int) -> Cell:
    if row is None:
        return Cell("")
    at = f"at T = {row.horizon:,}" if row.horizon != horizon else ""
    notes = " · ".join(filter(None, [at, " ".join(row.growth), row.against_rates]))
    return Cell(with_spread(row.total, row.half_width), row.total, notes)


def asked(study: Study) -> list[tuple[str, str]]:
    """The questions of the study, as terms with what they are here."""
    times = sorted({cell.horizon for cell in study.cells})
    runs = sorted(runs_of(study.cells))
    most = max(len(cell.rounds) for cell in study.cells)
    played = (
        f"{times[0]:,}, read at its end" if most == 1 else f"{times[0]:,}, read at {most} times of one game"
    )
    if len(times) > 1:
        played = f"{len(times)} from {times[0]:,} to {times[-1]:,}, each a game of its own"
    names = {"forecaster": study.forecasters, "nature": study.natures, "measure": main_columns(study)}
    return [
        *((number_of(len(some), kind), _list(some)) for kind, some in names.items()),
        ("rounds T", played),
        ("runs", " to ".join(f"{n:,}" for n in dict.fromkeys([runs[0], runs[-1]])) + " of each pair"),
    ]


# ---------------------------------------------------------------- the lowest totals


def lowest(study: Study) -> tuple[Table, str] | None:
    """The forecasters with the lowest mean totals: measures down, natures across; and the meaning of the marks.

    Only forecasters that were played at the same largest T are compared; None where nothing is. The last column, of
    several natures, has the forecaster whose largest mean total over all of them is lowest. Names are marked that are
    lower than every other beyond doubt, by `ranking`; all marks of the table hold together with 95 %.
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
    several, rows = len(study.natures) > 1, []
    sure = recorded = fewer = False
    for measure, compared in every.items():
        means = {nature: _means(cells, measure) for nature, cells in compared.items()}
        some = [cell for found in compared.values() if len(found) > 1 for cell in found.values()]
        order = ranking(Study(tuple(some)), measure, simultaneous(len(every)))
        certain = set()
        for s in order.standings:
            # Of a payoff the lowest is the one that all others are better than.
            below = (s.before.T if order.higher else s.before).sum(axis=1) == len(s.forecasters) - 1
            certain |= {(s.nature, who) for who, it_is in zip(s.forecasters, below, strict=True) if it_is}
            recorded, fewer = recorded or s.recorded, fewer or s.fewer
        cells = []
        for nature, found in means.items():
            cell = _least(found, {}) if len(found) > 1 else Cell("")
            if (nature, cell.text) in certain:
                sure, cell = True, cell._replace(text=f"{cell.text} {CERTAIN}")
            cells.append(cell)
        if several:
            largest: dict[str, str] = {}
            for who in (w for w in study.forecasters if all(w in found for found in means.values())):
                # A mean that is infinite both ways is the largest: nothing is below it.
                own = {nature: found[who] for nature, found in means.items()}
                largest[who] = max(own, key=lambda n: math.inf if math.isnan(own[n]) else own[n])
            notes = {who: f"against {nature}" for who, nature in largest.items()}
            cells.append(_least({who: means[nature][who] for who, nature in largest.items()}, notes))
        rows.append((measure, tuple(cells)))
    headings = (*study.natures, *["largest of its totals over the natures"] * several)
    table = Table("Whose mean total is lowest at the largest T", headings, tuple(rows), "measure")
    said = _meaning(sure=sure, recorded=recorded, several=several)
    return table, said + f" {COMMON_RUNS}." * fewer


def _compared(study: Study, measure: str, nature: str) -> dict[str, Played]:
    """Forecaster → its cell at the largest T that all of them were played at."""
    cells = [c for c in study.cells if c.nature == nature and measure in c.totals]
    times: dict[str, set[int]] = {}
    for cell in cells:
        times.setdefault(cell.forecaster, set()).add(cell.horizon)
    common = set.intersection(*times.values()) if times else set()
    return {c.forecaster: c for c in cells if c.horizon == max(common, default=None)}


def _means(cells: Mapping[str, Played], measure: str) -> dict[str, float]:
    """Forecaster → mean total over the runs that all of them have; NaN where it is infinite both ways."""
    if not cells:
        return {}
    with np.errstate(invalid="ignore"):
        means = totals_in_common([*cells.values()], measure).mean(axis=1)
    return dict(zip(cells, means.tolist(), strict=True))


def _meaning(*, sure: bool, recorded: bool, several: bool) -> str:
    compare = "`onlinecal compare RESULTS --ranking` says who else is told apart."
    if not sure:
        return (
            "Nobody is the lowest here beyond doubt (Student's t on one difference a run, for all of the table "
            f"together with 95 %): that a mean is the lowest may be chance. {compare}"
        )
    return (
        f"{CERTAIN}: its expected total is lower than that of every other forecaster beyond doubt, by Student's t on "
        "one difference a run, Holm's procedure over all pairs and natures, and Bonferroni's over measures: all "
        f"{CERTAIN} of the table hold together with 95 % if differences are normal."
        + f" {RECORDED}." * recorded
        + f" Without {CERTAIN} it may be chance that this mean is the lowest"
        + "; the last column is not tested" * several
        + f". {compare}"
    )


def _least(means: Mapping[str, float], notes: Mapping[str, str]) -> Cell:
    finite = [mean for mean in means.values() if math.isfinite(mean)]
    if not finite:
        return Cell("–", note="no total is finite") if means else Cell("")
    least = min(finite)
    names = [who for who, mean in means.items() if mean == least]
    return Cell(", ".join(names), least, " · ".join(filter(None, (number(least), notes.get(names[0], "")))))


# ---------------------------------------------------------------- sentences


def bounds(study: Study) -> list[str]:
    """Sentences on whether the proven bounds at the end of each game hold in what was played."""
    held = 0
    broken: list[str] = []
    chance: list[str] = []
    for cell in study.cells:
        for promise in cell.promises:
            if promise.kind == "rate" or promise.measure not in cell.totals:
                continue
            totals = cell.totals[promise.measure][-1]
            sign, alone = 1.0 if promise.upper else -1.0, promise.kind == "deterministic"
            # A bound that is attained may be missed by the rounding of the total.
            edge = sign * promise.bound + 1e-9 * max(1.0, abs(promise.bound))
            if not np.any(sign * (totals if alone else totals.mean()) > edge):
                held += 1
                continue
            (broken if alone else chance).append(
                f"{promise.measure} {'≤' if promise.upper else '≥'} {promise.formula} of {cell.forecaster} against "
                f"{cell.nature} at T = {cell.horizon:,}"
            )
    said = []
    if held:
        every = held + len(broken) + len(chance)
        some = f"{held:,} of {every:,}" if held < every else f"Every one of {held:,}"
        holds = "hold" if held < every else "holds in what was played"
        rest = "which every run keeps to, or, of expectations, their mean"
        said.append(f"{some} proven bounds with a constant {holds}, {rest}.")
    if broken:
        said.append(f"Broken in some run, which a proven bound does not allow: {_list(broken)}.")
    if chance:
        said.append(
            f"The mean of these runs is beyond a bound of the expectation, as may happen by chance: {_list(chance)}."
        )
    return said


#: the remarks of `Curve.against_rates` that are worth a sentence
_BEYOND = {
    "above proven": "faster over these T than the bound that is proved for its forecaster, below which its total may "
    "still lie",
    "above O": "faster over these T than the best known rate, which some forecaster is proved to keep against every "
    "nature that its source admits",
}


def beyond(rows: Sequence[Total]) -> list[str]:
    """Sentences on totals that grow out of what is proved or known."""
    said = []
    for remark, words in _BEYOND.items():
        found: dict[str, list[str]] = {}
        for row in rows:
            if row.against_rates == remark:
                found.setdefault(f"{row.forecaster} against {row.nature}", []).append(row.measure)
        if found:
            parts = [f"{pair} ({_list(measures)})" for pair, measures in found.items()]
            said.append(f"What grows {words}: {_list(parts, '; ')}.")
    return said


def remarks(rows: Sequence[Total]) -> list[str]:
    """Sentences on the meaning of the remarks in the tables."""
    there = {row.against_rates for row in rows}
    return [
        f"{remark}: {meaning.format(rate='the best known rate of its measure')}."
        for remark, meaning in AGAINST_RATES.items()
        if remark in there
    ]


def not_played(
    failed: Sequence[tuple[Planned, str, str]], incompatible: Sequence[Sequence[str]]
) -> Table | None:
    """Cells that failed, and pairs that cannot play each other (forecaster, nature, why); None where there are none."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for cell, why, _ in failed:
        found.setdefault((cell.forecaster, cell.against, why), []).append(cell.horizon)
    rows: list[tuple[Any, ...]] = [
        (who, whom, ", ".join(f"{t:,}" for t in sorted(times)), f"failed: {why}")
        for (who, whom, why), times in found.items()
    ]
    rows += [(who, whom, "all", f"cannot be played: {why}") for who, whom, why in incompatible]
    told = tuple((who, tuple(map(Cell, cells))) for who, *cells in rows)
    return Table("Not played", ("nature", "T", "why"), told) if rows else None


def _list(names: Sequence[str], between: str = ", ") -> str:
    more = f"{between}and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return between.join(names[:LISTED]) + more
