"""The report of `onlinecal measure`, as text of 80 columns, as data, and as one HTML page."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from onlinecal.core.words import number_of, readable
from onlinecal.forecasts.intervals import FEW
from onlinecal.forecasts.measuring import Measured, Part, Report
from onlinecal.forecasts.table import Row
from onlinecal.measures.base import ends
from onlinecal.report.tables import broken, new_console

#: columns of text, where the terminal has as many
WIDTH = 80
#: a name in a table is broken into no narrower lines
NAME = 12
#: what the parts of scores are called
SCORES = ("score", "mean", "MCB", "DSC", "UNC")
#: what the table over groups or time holds
PARTS = ("rows", "forecast", "event", "event − forecast", "Brier", "p", "p (Holm)")
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
    "± is one standard error if outcomes are drawn as forecast. p tests calibration in the row by its cutoff "
    "calibration error; p (Holm) is for all rows of the table at once."
)


@dataclass(frozen=True)
class Grid:
    """A table of texts."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: list[str]


def text(report: Report) -> str:
    """The report in lines of at most `WIDTH` columns, fewer in a narrower terminal, in letters that stdout has."""
    lines = [*_wrapped(heading(report)), *(line for said in report.said for line in _wrapped(sentence(said)))]
    lines += [line for said in report.cautions for line in _wrapped(f"Caution: {said}.")]
    for column in report.columns:
        lines += ["", readable(f"== {column.name}")[: width()], *_wrapped(about(column))]
        lines += [line for said in column.cautions for line in _wrapped(f"Caution: {said}.")]
        for grid in grids(report, column):
            lines += ["", *_table(grid)]
        lines += ["", *_wrapped(decision(column))]
    if (beside := side_by_side(report)) is not None:
        lines += ["", "== Side by side", *_table(beside)]
    if report.differences:
        lines += ["", *_table(differences(report))]
    lines += ["", *(line for said in remarks(report) for line in _wrapped(said))]
    return "\n".join(lines)


def remarks(report: Report) -> list[str]:
    """Sentences on the signs in the tables."""
    asked = report.settings.draws > 0
    parts = any(column.groups or column.blocks for column in report.columns)
    advice = OF_ADVICE.format(level=f"{1.0 - report.settings.level:.3g}")
    return [*[OF_DRAWS, advice] * asked, OF_SCORES, *[OF_PARTS] * parts]


def sentence(said: str) -> str:
    """A text with a capital letter and a full stop."""
    return f"{said[:1].upper()}{said[1:]}."


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
    grid = "" if evaluation.moved is None else f" of a grid of {evaluation.moved[0]:,} steps"
    between = "" if evaluation.grouped is None else f" between {evaluation.grouped[0]:,} groups"
    said = f"Worst threshold{grid}: {worst}."
    if worst.loss > 0.0 and p is None:
        said += " Without draws that is not tested against chance."
    elif worst.loss > 0.0:
        chance = (
            f"the worst threshold{between or grid} of calibrated forecasts would lose {number(column.by_chance)} by "
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


def grids(report: Report, column: Measured) -> list[Grid]:
    """The tables of a column."""
    evaluation = column.evaluation
    asked = report.settings.draws > 0
    headings = ("measure", "value") + (("interval", "if calibrated", "p") if asked else ())
    found = [Grid("Calibration", headings, [_cells(row, asked) for row in evaluation.rows], evaluation.notes)]
    scores = [(name, *map(number, parts)) for name, parts in (("Brier", column.brier), ("log", column.log))]
    found.append(Grid("Scores in three parts", SCORES, scores, []))
    if column.groups:
        found.append(_parts(f"By {report.by}", column.groups))
    if column.blocks:
        drift = column.drift
        assert drift is not None
        grid = _parts(f"Over {report.time}", column.blocks)
        grid.notes.append(
            f"Drift: the greatest sum of errors beyond an even course is {drift.statistic:.3g} √n σ, p = "
            f"{drift.p_value:.3g}; errors of neighbouring rows have correlation {drift.correlation:.3g}, p = "
            f"{drift.correlation_p:.3g}."
        )
        found.append(grid)
    return found


def side_by_side(report: Report) -> Grid | None:
    """The main numbers of all columns; None for one column."""
    if len(report.columns) < 2:
        return None
    rows = [
        (c.name, *map(number, (c.brier.score, c.brier.miscalibration, c.brier.discrimination, c.log.score)),
         number(c.threshold.loss))
        for c in report.columns
    ]  # fmt: skip
    return Grid("", ("forecasts", "Brier", "MCB", "DSC", "log", "worst threshold"), rows, [])


def differences(report: Report) -> Grid:
    """Paired tests of scores."""
    rows = [
        (f"{d.first} − {d.second}", {"brier": "Brier", "log": "log"}[d.score], number(d.mean), number(d.error),
         *(f"n < {FEW}" if p is None else number(p) for p in (d.p_value, d.adjusted)))
        for d in report.differences
    ]  # fmt: skip
    few = any(d.p_value is None for d in report.differences)
    unit = "cluster" if report.cluster else "row"
    how = (
        f"with errors that depend on each other up to {number_of(report.lags, unit)} apart"
        if report.lags
        else f"{unit}s independent"
    )
    return Grid(
        "Differences of scores on the same rows",
        ("difference", "score", "mean", "error", "p", "p (Holm)"),
        rows,
        [
            f"Negative: the first is better. Paired tests by Student's law, {how}; p (Holm) is for all of them at once."
            + few
            * f" n < {FEW}: rows that tell as much as fewer than {FEW} {unit}s of equal weight are not tested."
        ],
    )


def width() -> int:
    """The number of columns of a line."""
    return min(WIDTH, new_console().width)


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
        "differences": [asdict(d) for d in report.differences], "lags": report.lags,
        "by": report.by, "time": report.time, "cluster": report.cluster,
    }  # fmt: skip


def _cells(row: Row, asked: bool) -> tuple[str, ...]:
    cells = (row.name, span(*row.ends))
    if not asked:
        return cells
    interval = "none" if row.interval is None else span(*row.interval)
    return (*cells, interval, number(row.if_calibrated), number(row.p_value))


def _parts(title: str, parts: Sequence[Part]) -> Grid:
    rows = [
        (part.name or "(empty)", f"{part.rows:,}", number(part.forecast), number(part.event),
         f"{part.event - part.forecast:+.3f} ± {part.error:.3f}", number(part.brier), number(part.p_value),
         number(part.adjusted))
        for part in parts
    ]  # fmt: skip
    return Grid(title, ("", *PARTS), rows, [])


def _wrapped(said: str) -> list[str]:
    return textwrap.wrap(readable(said), width(), subsequent_indent="  ", break_on_hyphens=False)


def _table(grid: Grid) -> list[str]:
    """The lines of a table; where that is too wide its names are broken into lines, then the table."""
    cells = [[readable(cell) for cell in row] for row in (grid.headings, *grid.rows)]
    lines = _wrapped(grid.title)
    # As few tables as there can be, of nearly as many columns each; no cell is cut.
    columns = len(grid.headings) - 1
    for count in range(1, columns + 1):
        ends = [1 + columns * i // count for i in range(count + 1)]
        parts = [_lines_of([[row[0], *row[first:last]] for row in cells]) for first, last in pairwise(ends)]
        if all(len(line) <= width() for part in parts for line in part):
            break
    for k, part in enumerate(parts):
        lines += [*[""] * (k > 0), *part]
    return [*lines, *(line for note in grid.notes for line in _wrapped(note))]


def _lines_of(cells: list[list[str]]) -> list[str]:
    """A table whose first row has the headings."""
    room = width()
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    rest = sum(widths[1:]) + 2 * (len(widths) - 1)
    if widths[0] + rest > room:  # headings in two lines, then names
        cells[0][1:] = [
            broken(h, max(8, max(len(r[i]) for r in cells[1:]))) for i, h in enumerate(cells[0]) if i
        ]
        widths[1:] = [
            max(len(line) for row in cells for line in row[i].split("\n")) for i in range(1, len(widths))
        ]
        widths[0] = max(room - sum(widths[1:]) - 2 * (len(widths) - 1), NAME)
    lines = []
    for row in cells:
        lines_of_name = broken(row[0], widths[0]).split("\n")
        first = [part for line in lines_of_name for part in textwrap.wrap(line, widths[0]) or [""]]
        parts = [first, *(cell.split("\n") for cell in row[1:])]
        for k in range(max(map(len, parts))):
            shown = [part[k] if k < len(part) else "" for part in parts]
            line = [
                shown[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(shown[1:], widths[1:], strict=True)),
            ]
            lines.append("  ".join(line).rstrip())
    return lines


def _column_data(column: Measured) -> dict[str, Any]:
    gamma, evaluation = column.gamma, column.evaluation
    return {
        "name": column.name,
        "levels": gamma.levels,
        "weight": gamma.weight,
        "mean_forecast": float(gamma.mass @ gamma.predictions),
        "base_rate": gamma.base_rate,
        "grid": None if evaluation.moved is None else evaluation.moved[0],
        "moved": None if evaluation.moved is None else evaluation.moved[1],
        "cautions": column.cautions,
        "measures": [_row_data(row) for row in evaluation.rows],
        "refused": list(evaluation.refused),
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


# ---------------------------------------------------------------- the page

#: columns of which diagrams are drawn, at most
DRAWN = 12
#: levels up to which each is a point, and nothing is smoothed
SINGLE = 20


def page_of(report: Report) -> str:
    """The report as one HTML page that needs nothing else; names that were given are escaped."""
    from onlinecal.report.page import rendered

    sections = [
        {
            "name": column.name,
            "about": about(column),
            "cautions": column.cautions,
            "decision": decision(column),
            "grids": grids(report, column),
            "pictures": pictures(column) if i < DRAWN else [],
        }
        for i, column in enumerate(report.columns)
    ]
    many = len(report.columns)
    together = [side_by_side(report), differences(report) if report.differences else None]
    return rendered(
        "measured.html",
        heading=heading(report),
        report=report,
        sections=sections,
        together=[grid for grid in together if grid is not None],
        said=[sentence(said) for said in report.said],
        remarks=[
            *[f"Diagrams are drawn of the first {DRAWN} columns of {many}."] * (many > DRAWN),
            *remarks(report),
        ],
    )


def pictures(column: Measured) -> list[Any]:
    """The mean outcome near each prediction (at each, where they are few), and the best monotone recalibration."""
    from onlinecal.report.page_pictures import Picture, drawing
    from onlinecal.report.reliability_plot import plot_reliability

    gamma = column.gamma
    first: Any = ("points", "levels") if gamma.levels <= SINGLE else ("smooth", "smoothed")
    return [
        Picture(
            f"Reliability of {column.name}, {word}", plot_reliability.caption(gamma, kind=kind),
            drawing(lambda dark, kind=kind: plot_reliability(gamma, kind=kind, dark=dark, caption=False).figure),
        )
        for kind, word in (first, ("corp", "monotone (CORP)"))
    ]  # fmt: skip
