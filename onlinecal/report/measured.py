"""The report of `onlinecal measure`: a document, as text of 80 columns or as one HTML page, and data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import Any

from onlinecal.core.words import number_of
from onlinecal.logs.measuring import Measured, Part, Report
from onlinecal.logs.resampling import FEW
from onlinecal.logs.table import Row
from onlinecal.measures.base import ends
from onlinecal.report import document
from onlinecal.report.document import Document, Section
from onlinecal.report.tables import Table, of_rows

#: what the parts of scores are called
SCORES = ("score", "mean", "MCB", "DSC", "UNC")
#: what the table over groups or time holds
PARTS = ("rows", "forecast", "event", "event − forecast", "interval", "Brier", "p", "p (Holm)")
OF_DRAWS = "p: how often outcomes drawn as forecast give as large a value; if calibrated: their mean value."
OF_ADVICE = (
    "Worst threshold: named where p ≤ {level}, by a test of all pairs of thresholds at once; calibrated forecasts lead "
    "to advice with probability {level} at most."
)
OF_SCORES = (
    "MCB: what the best monotone recalibration would gain; DSC: what the forecasts tell beyond the base rate; UNC: the "
    "score of the base rate; score = MCB − DSC + UNC (CORP)."
)
OF_PARTS = (
    "± is one standard error if outcomes are drawn as forecast. Intervals are for the expected event − forecast; all "
    "of the table hold together with {level:.4g} % (Bonferroni; Clopper and Pearson). p tests calibration in the row "
    "by its cutoff calibration error; p (Holm) is for all rows of the table at once."
)
OF_FEW = "– for p: too few clusters, or weights with fewer than about {few} expected outcomes of a kind."


#: columns of which diagrams are drawn, at most
DRAWN = 12


def document_of(report: Report, *, drawn: bool = False) -> Document:
    """A section for each column, with its tables, and one for all columns together; with diagrams for a page."""
    many, diagrams, several = len(report.columns), list[list[Any]](), list[Any]()
    if drawn:
        from onlinecal.report.page_pictures import of_column, of_columns

        first = report.columns[:DRAWN]
        diagrams = [of_column(column.name, column.evaluation) for column in first]
        # Scores of forecasts of different events do not compare these.
        if many > 1:
            several = of_columns({c.name: c.evaluation for c in first})[: 1 if report.classes else None]
    sections = []
    for column, own in zip_longest(report.columns, diagrams):
        parts = [
            document.Part("p", about(column)), *_cautions(column.cautions), document.Part("lead", decision(column)),
            document.Part("pictures", own), *_tables(grids(report, column)),
        ]  # fmt: skip
        sections.append(Section(column.name, parts))
    together = [*side_by_side(report), *differences(report)]
    if together:
        sections.append(Section("Side by side", [document.Part("pictures", several), *_tables(together)]))
    notes = [f"Diagrams are drawn of the first {DRAWN} columns of {many}."] * (drawn and many > DRAWN)
    sections.append(Section("How to read it", [document.Part("notes", notes + remarks(report))]))
    said = [document.Part("p", f"{text[:1].upper()}{text[1:]}.") for text in report.said]
    return Document(heading(report), [*said, *_cautions(report.cautions)], sections)


def _cautions(said: Sequence[str]) -> list[document.Part]:
    return [document.Part("caution", f"Caution: {each}.") for each in said]


def _tables(found: Sequence[Table]) -> list[document.Part]:
    return [document.Part("table", table) for table in found]


def remarks(report: Report) -> list[str]:
    """Sentences on the signs in the tables."""
    asked = report.settings.draws > 0
    parts = [part for column in report.columns for part in (*column.groups, *column.blocks)]
    advice = OF_ADVICE.format(level=f"{1.0 - report.settings.level:.3g}")
    return [
        *[OF_DRAWS, advice] * asked,
        OF_SCORES,
        *[OF_PARTS.format(level=100.0 * report.settings.level)] * bool(parts),
        *[OF_FEW.format(few=FEW)] * any(part.p_value is None for part in parts),
    ]


def heading(report: Report) -> str:
    """The file, its rows and columns."""
    names = ", ".join(repr(column.name) for column in report.columns)
    return f"{report.source}: {number_of(report.rows, 'row')}, forecasts {names}, outcome {report.outcome!r}"


def about(column: Measured) -> str:
    """A column in a sentence."""
    gamma = column.gamma
    happened = f"the share of events is {gamma.base_rate:.4g}."
    if gamma.levels == 1:
        return f"All forecasts are {gamma.predictions[0]:.4g}; {happened}"
    mean = float(gamma.mass @ gamma.predictions)
    return (
        f"{gamma.levels:,} different forecasts from {gamma.predictions[0]:.4g} to {gamma.predictions[-1]:.4g}, mean "
        f"{mean:.4g}; {happened}"
    )


def decision(column: Measured) -> str:
    """The worst decision task in words."""
    worst, p, evaluation = column.threshold, column.threshold_p, column.evaluation
    between = "" if evaluation.grouped is None else f" between {evaluation.grouped[0]:,} groups"
    said = f"Worst threshold: {worst}."
    if worst.loss > 0.0 and p is None:
        said += " Without draws that is not tested against chance."
    elif worst.loss > 0.0:
        chance = (
            f"the worst threshold{between} of calibrated forecasts would lose {number(column.by_chance)} by "
            f"chance (p = {number(p)})"
        )
        if not column.advises:
            said = f"Worst threshold: not told from chance. It loses {worst.loss:.3g} per decision; {chance}."
        else:
            said = f"{said[:-1]}; {worst.better} would be better. Payoffs are from 0 to 1; {chance}."
    if column.worst_task and ends(column.evaluation["cdl"])[1] > 0.0:
        said += (
            f" Worst of all tasks, swap regret {ends(column.evaluation['cdl'])[0]:.3g}: {column.worst_task}."
        )
    return said


def grids(report: Report, column: Measured) -> list[Table]:
    """The tables of a column."""
    evaluation = column.evaluation
    asked = report.settings.draws > 0
    headings = ("measure", "value") + (("interval", "if calibrated", "p") if asked else ())
    scores = [(name, *map(number, parts)) for name, parts in (("Brier", column.brier), ("log", column.log))]
    found = [
        Table(
            "Calibration",
            of_rows(headings, [_cells(row, asked) for row in evaluation.rows]),
            evaluation.notes,
        ),
        Table("Scores in three parts", of_rows(SCORES, scores)),
    ]
    if column.groups:
        found.append(_parts(f"By {report.by}", column.groups))
    if column.drift is not None:
        unit = "clusters" if evaluation.resample and evaluation.resample.clusters else "rows"
        drift = (
            f"Drift: the greatest sum of errors beyond an even course is {column.drift.statistic:.3g} √n σ, p = "
            f"{column.drift.p_value:.3g}; errors of neighbouring {unit} have correlation "
            f"{column.drift.correlation:.3g}, p = {column.drift.correlation_p:.3g}."
        )
        found.append(_parts(f"Over {report.time}", column.blocks, drift))
    return found


def side_by_side(report: Report) -> list[Table]:
    """The main numbers of all columns, of several."""
    rows = [
        (c.name, *map(number, (c.brier.score, c.brier.miscalibration, c.brier.discrimination, c.log.score)),
         number(c.threshold.loss))
        for c in report.columns
    ]  # fmt: skip
    headings = ("forecasts", "Brier", "MCB", "DSC", "log", "worst threshold")
    return [Table("", of_rows(headings, rows))] if len(rows) > 1 else []


def differences(report: Report) -> list[Table]:
    """Paired tests of scores."""
    rows = [
        (f"{d.first} − {d.second}", {"brier": "Brier", "log": "log"}[d.score], number(d.mean), number(d.error),
         *("too few" if p is None else number(p) for p in (d.p_value, d.adjusted)))
        for d in report.differences
    ]  # fmt: skip
    few = any(d.p_value is None for d in report.differences)
    unit = "cluster" if report.cluster else "row"
    blocks = sorted(d.blocks for d in report.differences if d.blocks)
    note = (
        f"Negative: the first is better. Paired tests by Student's law, {unit}s independent, and by Hall's correction "
        "for a skewness where that is less sure; p (Holm) is for all of them at once."
    )
    if blocks:
        many = " to ".join(f"{each:,}" for each in dict.fromkeys((blocks[0], blocks[-1])))
        note += (
            f" Where differences near each other in time are alike, {many} blocks of rows are independent."
        )
    if few:
        note += (
            f" Too few: rows that tell as much as fewer than {FEW} {unit}s of equal weight, or blocks, or hold fewer "
            f"than about {FEW} outcomes of a rare kind, are not tested."
        )
    headings = ("difference", "score", "mean", "error", "p", "p (Holm)")
    return [Table("Differences of scores on the same rows", of_rows(headings, rows), [note])] if rows else []


def number(x: float | None) -> str:
    """Three digits."""
    return "–" if x is None else f"{x:.3g}"


def span(low: float, high: float) -> str:
    """One number, or from one to another."""
    a, b = number(low), number(high)
    return a if a == b else f"[{a}, {b}]"


def data(report: Report) -> dict[str, Any]:
    """The report for a program: the numbers to the last digit."""
    return {
        "source": report.source, "outcome": report.outcome, "rows": report.rows, "said": report.said,
        "cautions": report.cautions,
        "settings": {key: value for key, value in asdict(report.settings).items() if key != "measures"},
        "forecasts": [_column_data(column) for column in report.columns],
        "differences": [asdict(d) for d in report.differences],
        "by": report.by, "time": report.time, "cluster": report.cluster, "classes": report.classes,
    }  # fmt: skip


def _cells(row: Row, asked: bool) -> tuple[str, ...]:
    cells = (row.name, span(*row.ends))
    if not asked:
        return cells
    interval = "none" if row.interval is None else span(*row.interval)
    return (*cells, interval, number(row.if_calibrated), number(row.p_value))


def _parts(title: str, parts: Sequence[Part], *notes: str) -> Table:
    least = min((part.error for part in parts if part.error > 0.0), default=1.0)
    digits = 3 if least >= 1e-3 else 1 - math.floor(math.log10(least))  # rare events: two digits of the error
    rows = [
        (part.name or "(empty)", f"{part.rows:,}", number(part.forecast), number(part.event),
         f"{part.event - part.forecast:+.{digits}f} ± {part.error:.{digits}f}",
         "none" if part.interval is None else "[{:+.{d}f}, {:+.{d}f}]".format(*part.interval, d=digits),
         number(part.brier), number(part.p_value), number(part.adjusted))
        for part in parts
    ]  # fmt: skip
    return Table(title, of_rows(("", *PARTS), rows), notes)


def _column_data(column: Measured) -> dict[str, Any]:
    gamma, evaluation = column.gamma, column.evaluation
    return {
        "name": column.name,
        "levels": gamma.levels,
        "weight": gamma.weight,
        "mean_forecast": float(gamma.mass @ gamma.predictions),
        "base_rate": gamma.base_rate,
        "cautions": column.cautions,
        "measures": [_row_data(row) for row in evaluation.rows],
        "groups_drawn": None if evaluation.grouped is None else evaluation.grouped[0],
        "notes": evaluation.notes,
        "brier": column.brier._asdict(),
        "log": column.log._asdict(),
        "threshold": {
            **asdict(column.threshold), "words": str(column.threshold), "if_calibrated": column.by_chance,
            "p_value": column.threshold_p, "better": column.threshold.better if column.advises else None,
        },
        "worst_task": column.worst_task or None,
        "groups": [asdict(part) for part in column.groups],
        "blocks": [asdict(part) for part in column.blocks],
        "drift": None if column.drift is None else asdict(column.drift),
    }  # fmt: skip


def _row_data(row: Row) -> Mapping[str, Any]:
    low, high = row.ends
    return {
        "name": row.name,
        "value": low if low == high else None,
        "lower": low,
        "upper": high,
        "interval": None if row.interval is None else list(row.interval),
        "interval_by": row.interval_by,
        "if_calibrated": row.if_calibrated,
        "p_value": row.p_value,
        "p_large_n": row.p_large_n,
        "decisions": row.measure.decisions,
    }
