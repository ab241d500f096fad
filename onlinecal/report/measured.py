"""The report of `onlinecal measure`: its tables of numbers, and of these a document and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import Any

import pandas as pd

from onlinecal.core.words import number_of
from onlinecal.logs.groups import Groups
from onlinecal.logs.measuring import Measured, Report
from onlinecal.logs.resampling import FEW
from onlinecal.logs.units import Estimate
from onlinecal.measures import brier_skill
from onlinecal.measures.base import ends
from onlinecal.report import document
from onlinecal.report.document import Document, Section
from onlinecal.report.tables import Table, of_rows
from onlinecal.report.verdict import verdict

OF_DRAWS = (
    "p: share of simulated calibrated logs with a value at least this large; if calibrated: their mean value."
)
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
OF_DIFFERENCES = (
    "Negative: the first is better. Paired tests by Student's law, rows or clusters independent, or blocks of rows "
    "where differences near each other in time are alike; by Hall's correction for a skewness where that is less sure. "
    f"p (Holm) is for all of them at once. Too few: fewer than {FEW} independent rows, outcomes of a kind, or times."
)  # fmt: skip

#: errors below this are those of arithmetic
ROUNDING = 1e-12
#: columns of which diagrams are drawn, at most
DRAWN = 12


def tables(column: Measured) -> dict[str, pd.DataFrame]:
    """A column as tables of numbers to the last digit: `measures`, `scores`, `groups` and `blocks` of time."""
    found: dict[str, list[dict[str, Any]]] = {
        "measures": [
            {
                "name": row.name,
                "value": row.ends[0] if row.ends[0] == row.ends[1] else None,
                "lower": row.ends[0],
                "upper": row.ends[1],
                "interval": row.interval,
                "interval_by": row.interval_by,
                "if_calibrated": row.if_calibrated,
                "p_value": row.p_value,
                "p_large_n": row.p_large_n,
                "decisions": row.measure.decisions,
            }
            for row in column.evaluation.rows
        ],
        "scores": [{"name": "Brier", **column.brier._asdict()}, {"name": "log", **column.log._asdict()}],
        "groups": [asdict(part) for part in column.groups],
        "blocks": [asdict(part) for part in column.blocks],
    }
    # Of objects, so that None stays None and is not taken for a number.
    return {name: pd.DataFrame(rows, dtype=object) for name, rows in found.items()}


def data(report: Report) -> dict[str, Any]:
    """The report for a program."""
    return {
        "source": report.source, "outcome": report.outcome, "rows": report.rows, "said": report.said,
        "cautions": report.cautions,
        "settings": {key: value for key, value in asdict(report.settings).items() if key != "measures"},
        "forecasts": [
            {**_column_data(column), "verdict": verdict(report, column)._asdict()} for column in report.columns
        ],
        "differences": [asdict(d) for d in report.differences],
        "by": report.by, "time": report.time, "cluster": report.cluster, "classes": report.classes,
    }  # fmt: skip


def _column_data(column: Measured) -> dict[str, Any]:
    gamma, grouped, found = column.gamma, column.evaluation.grouped, tables(column)
    return {
        "name": column.name, "levels": gamma.levels, "weight": gamma.weight,
        "mean_forecast": float(gamma.mass @ gamma.predictions), "base_rate": gamma.base_rate,
        "cautions": column.cautions, "notes": column.evaluation.notes, "groups_drawn": grouped and grouped[0],
        "threshold": {
            **asdict(column.threshold), "words": str(column.threshold), "if_calibrated": column.by_chance,
            "p_value": column.threshold_p, "better": column.threshold.better if column.advises else None,
        },
        "worst_task": column.worst_task or None, "drift": column.drift and asdict(column.drift),
        "brier": column.brier._asdict(), "log": column.log._asdict(), "auc": column.auc._asdict(),
        "line": {name: one._asdict() for name, one in column.line._asdict().items()},
        **{name: found[name].to_dict("records") for name in ("measures", "groups", "blocks")},
        "multicalibration": _groups_data(column.evaluation.groups),
    }  # fmt: skip


def _groups_data(groups: Groups | None) -> dict[str, Any] | None:
    """Groups that may overlap, and the measures of all of them; those of --by are no such."""
    return None if groups is None else {
        "groups": [asdict(group) for group in groups.groups],
        "measures": [one._asdict() for one in groups.measures],
        "words": groups.words, "level": groups.level,
    }  # fmt: skip


def document_of(report: Report, *, drawn: bool = False) -> Document:
    """A section for each column, with its tables, and one for all columns together; with diagrams for a page.

    A terminal shows less: of signs in the tables, and why intervals are missing, the page tells more.
    """
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
        found = verdict(report, column)
        parts = [
            document.Part("lead", found.words), document.Part("p", about(column)),
            *document.remarks_of((), column.cautions),
            # The verdict has what a decision needs of the worst threshold.
            document.Part("lead", decision(column) if drawn else ""),
            document.Part("pictures", own), *_tables(grids(report, column, drawn)),
        ]  # fmt: skip
        sections.append(Section(column.name if drawn or many > 1 else "", parts))
    together = [*side_by_side(report), *differences(report)]
    if together:
        sections.append(Section("Side by side", [document.Part("pictures", several), *_tables(together)]))
    then = [
        document.Part("p", said) for said in dict.fromkeys(verdict(report, c).next for c in report.columns)
    ]
    notes = [f"Diagrams are drawn of the first {DRAWN} columns of {many}."] * (drawn and many > DRAWN)
    sections.append(Section("How to read it", [document.Part("notes", notes + remarks(report, drawn))]))
    sections.append(Section("Next" if drawn or many > 1 else "", then))
    return Document(heading(report), document.remarks_of(report.said, report.cautions), sections)


def _tables(found: Sequence[Table]) -> list[document.Part]:
    return [document.Part("table", table) for table in found]


def remarks(report: Report, full: bool = True) -> list[str]:
    """Sentences on the signs in the tables; else of those of groups and times only."""
    asked = report.settings.draws > 0 and full
    parts = [part for column in report.columns for part in (*column.groups, *column.blocks)]
    advice = OF_ADVICE.format(level=f"{1.0 - report.settings.level:.3g}")
    return [
        *[OF_DRAWS, advice] * asked,
        *[OF_SCORES] * full,
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
    happened = f"share of events {gamma.base_rate:.4g}."
    if gamma.levels == 1:
        return f"All forecasts are {gamma.predictions[0]:.4g}; {happened}"
    mean = float(gamma.mass @ gamma.predictions)
    return (
        f"{gamma.levels:,} values from {gamma.predictions[0]:.4g} to {gamma.predictions[-1]:.4g}, mean {mean:.4g}; "
        f"{happened}"
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
    return f"{said} {worst_task(column)}".rstrip()


def worst_task(column: Measured) -> str:
    """The task with the largest swap regret, where chance does not explain that."""
    regret = ends(column.evaluation["cdl"]) if column.worst_task else (0.0, 0.0)
    return f"Worst of all tasks, swap regret {regret[0]:.3g}: {column.worst_task}." if regret[1] > 0.0 else ""


def estimates(column: Measured, full: bool) -> list[str]:
    """Logistic recalibration in a line; the full ones with the intercept, why it is missing, AUC and skill."""
    large, intercept, slope = column.line
    parts = [f"slope {_estimate(slope)}"] + [f"intercept {_estimate(intercept)}"] * full
    if math.isnan(slope.value):
        parts = ["no slope"] + [f"for {slope.how.removeprefix('none: ')}"] * full
    line = ", ".join(["in the large " + _estimate(large), *parts])
    skill = f"AUC {_estimate(column.auc)}, Brier skill {number(brier_skill(column.gamma))}"
    return [f"log odds: {line}", *[skill] * full]


def _estimate(one: Estimate) -> str:
    if one.interval is None:
        return number(one.value)
    return f"{number(one.value, _width(one.interval))} {_interval(one.interval)}"


#: what is below a heading: a number of each row by its name, or a text made of the row
Cells = dict[str, str | Callable[[Any], str]]


def _shown(title: str, name: str, rows: Sequence[Any], cells: Cells, notes: Sequence[str] = ()) -> Table:
    """A table of texts, of rows of numbers with their names."""
    texts = [
        [
            row.name or "(empty)",
            *(number(getattr(row, c)) if isinstance(c, str) else c(row) for c in cells.values()),
        ]
        for row in rows
    ]
    return Table(title, of_rows((name, *cells), texts), notes)


def grids(report: Report, column: Measured, full: bool = True) -> list[Table]:
    """The tables of a column, the full ones with reasons why intervals are missing."""
    evaluation, drift = column.evaluation, column.drift
    measures, scores, groups, blocks = (list(table.itertuples()) for table in tables(column).values())
    cells: Cells = {"value": lambda row: span(row.lower, row.upper, _width(row.interval))}
    if report.settings.draws > 0:
        cells["interval"] = lambda row: _interval(row.interval)
        cells |= {"if calibrated": "if_calibrated", "p": "p_value"}
    notes = evaluation.notes
    if not full:
        # Of too few clusters all are missing, and a caution says why.
        told = evaluation.resample is not None and evaluation.resample.too_few
        without = [
            row.name for row in evaluation.rows if evaluation.intervals and not told and row.interval is None
        ]
        notes = [evaluation.intervals] * bool(evaluation.intervals)
        notes += [f"no interval for {', '.join(without)}: -o page.html says why"] * bool(without)
    parts = [
        f"{row.name} {number(row.score)} = MCB {number(row.miscalibration)} − DSC {number(row.discrimination)} + UNC "
        f"{number(row.uncertainty)}"
        for row in scores
    ]
    parts += estimates(column, full)
    shown = [_shown("Calibration", "measure", measures, cells, notes + parts)]
    if evaluation.groups is not None:
        (head, *of_each), (heading, *of_all) = evaluation.groups.lines(number)
        shown.append(Table("Groups", of_rows(head, of_each)))
        shown.append(Table("All groups at once", of_rows(heading, of_all), evaluation.groups.notes))
    if groups:
        shown.append(_shown(f"By {report.by}", "", groups, _of_parts(groups)))
    if drift is not None:
        unit = "clusters" if evaluation.resample and evaluation.resample.clusters else "rows"
        note = (
            f"Test for drift: statistic {drift.statistic:.3g}, p = "
            f"{drift.p_value:.3g}; errors of neighbouring {unit} have correlation {drift.correlation:.3g}, p = "
            f"{drift.correlation_p:.3g}."
        )
        shown.append(_shown(f"Over {report.time}", "", blocks, _of_parts(blocks), [note]))
    return shown


def _of_parts(rows: Sequence[Any]) -> Cells:
    """The cells of groups or stretches of time."""
    # Errors that are 0 but for rounding have no digits.
    least = min((row.error for row in rows if row.error > ROUNDING), default=1.0)
    d = 3 if least >= 1e-3 else 1 - math.floor(math.log10(least))  # rare events: two digits of the error
    return {
        "rows": lambda row: f"{row.rows:,}",
        "forecast": "forecast",
        "event": "event",
        "event − forecast": lambda row: f"{signed(row.event - row.forecast, d)} ± {row.error:.{d}f}",
        "interval": lambda row: (
            f"[{', '.join(signed(end, d) for end in row.interval)}]" if row.interval else "none"
        ),
        "Brier": "brier",
        "p": "p_value",
        "p (Holm)": "adjusted",
    }


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
    headings = ("difference", "score", "mean", "error", "p", "p (Holm)")
    return [
        Table("Differences of scores on the same rows", of_rows(headings, rows), [OF_DIFFERENCES])
    ] * bool(rows)


def number(x: float | None, width: float = math.inf) -> str:
    """Three digits, or as many as are two of the width of its interval."""
    if x is None or math.isnan(x):
        return "–"
    if math.isfinite(width) and abs(x) <= ROUNDING * width:
        return "0"
    if not math.isfinite(x) or not ROUNDING < width < 0.01 * abs(x):
        return f"{x:.3g}"
    return f"{x:.{1 - math.floor(math.log10(width))}f}"


def signed(x: float, digits: int) -> str:
    """A number with its sign, and 0 without one."""
    text = f"{x:+.{digits}f}"
    return text if float(text) else text[1:]


def span(low: float, high: float, width: float = math.inf) -> str:
    """One number, or from one to another; `width` is that of an interval."""
    a, b = number(low, width), number(high, width)
    return a if a == b else f"[{a}, {b}]"


def _interval(interval: tuple[float, float] | None) -> str:
    return "none" if interval is None else span(interval[0], interval[1], _width(interval))


def _width(interval: tuple[float, float] | None) -> float:
    return math.inf if interval is None else interval[1] - interval[0]
