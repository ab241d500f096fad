"""The report of a log of K classes: its verdict, tables and next command as a document, and as JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

from onlinecal.core.words import number_of
from onlinecal.logs.class_reading import OPTIONS, AskedClasses
from onlinecal.logs.classes import ClassEvaluation
from onlinecal.logs.columns import options_of
from onlinecal.logs.reading import Log
from onlinecal.measures.base import ends
from onlinecal.report import document
from onlinecal.report.document import Document, Section
from onlinecal.report.measured import number, signed
from onlinecal.report.tables import Table, of_rows
from onlinecal.report.verdict import command, new_name

#: classes that a terminal shows
SHOWN = 4
#: measures that it does not show: brackets, and the mean of what it shows the largest of
LEFT_OUT = ("smooth_ce_bracket", "cdl_bracket", "u_calibration_bracket", "classwise ece, mean")
NOTE = (
    "p: by outcomes drawn as forecast, of classes by cutoff_ce; p (all): of all at once. Intervals: {level:.4g} % "
    "each. {} are taken as independent."
)


#: what is taken as independent, of a log with times or without, with clusters or without
UNITS = {
    (False, False): "Rows", (False, True): "Clusters", (True, True): "Clusters, or blocks of them in time,",
    (True, False): "Rows, or blocks of them in time,",
}  # fmt: skip
GROUPED = (
    "By group, p: of all classes at once; p (Holm): of all groups, too. y − forecast: where it is clearest."
)


class ClassVerdict(NamedTuple):
    """The statement that the numbers allow."""

    calibration: str  # "refuted", "not refuted" or "not tested"
    words: str
    next: str


def verdict(log: Log, asked: AskedClasses, found: ClassEvaluation) -> ClassVerdict:
    """The verdict, by the test of all classes and the top label at once, at 1 − the level."""
    p, worst = found.p_value, found.worst
    what = "the likeliest class" if worst.label is None else f"{worst.name!r}"
    alone = worst.lowest == worst.highest
    where = f"at {worst.lowest:.3g}" if alone else f"from {worst.lowest:.3g}–{worst.highest:.3g}"
    side = "low" if worst.bias > 0.0 else "high"
    outcome, given = {"--outcome": log.outcome}, options_of(asked, OPTIONS)
    if p is None and found.draws:
        few = "There are too few clusters or independent times to test whether forecasts are calibrated."
        return ClassVerdict("not tested", few, "Next: more clusters or times, or clusters of fewer rows.")
    if p is None:
        again = command("measure", log.source, outcome, *given, "--draws 200")
        return ClassVerdict(
            "not tested", "Without draws it is not tested whether forecasts are calibrated.", f"Next: {again}"
        )
    error = f"probabilities of {what} {where} are too {side} by {abs(worst.bias):.3g}"
    if p > 1.0 - found.level:
        words = f"Calibration is not refuted (p = {p:.3g}, all classes at once)."
        words += f" The largest error: {error}." * (worst.bias != 0.0)
        return ClassVerdict(
            "not refuted", words, "Next: more rows, four times as many for intervals half as wide."
        )
    picture = command("measure", log.source, outcome, *given, f"-o {new_name(log.source, '_classes.png')}")
    words = f"Not calibrated (p = {p:.3g}, all classes at once): {error}."
    return ClassVerdict("refuted", words, f"Next: look at all classes: {picture}")


def document_of(log: Log, asked: AskedClasses, found: ClassEvaluation, *, drawn: bool = False) -> Document:
    """The verdict first, the tables, and the next command; with pictures and all classes for a page."""
    said = verdict(log, asked, found)
    rows, each = found.cells(None if drawn else SHOWN)
    rows = [row for row in rows if drawn or row[0] not in LEFT_OUT]
    left = len(found.classes) + 1 - len(each)
    notes = [f"{left} more class{'es' * (left > 1)}: --json, or -o page.html."] * (left > 0)
    notes += [
        NOTE.format(UNITS[log.times is not None, log.clusters is not None], level=100.0 * found.level)
    ] * (found.draws > 0)
    told, *cautions = document.remarks_of(log.said, found.cautions)
    first = [told, document.Part("lead", said.words), *cautions]
    parts = [document.Part("table", Table("", of_rows(cells[0], cells[1:]))) for cells in (rows, each)]
    if found.groups:
        parts.append(document.Part("table", _by_group(log, found)))
    if drawn:
        from onlinecal.report.page_pictures import of_classes

        parts.insert(0, document.Part("pictures", of_classes(found)))
    parts += [document.Part("notes", notes), document.Part("p", said.next)]
    columns = [*log.forecasts]
    title = (
        f"{log.source}: {number_of(log.rows, 'row')}, {len(columns)} classes in {columns[0]!r} to {columns[-1]!r}, "
        f"outcome {log.outcome!r}"
    )
    return Document(title, first, [Section("Measures" if drawn else "", parts)])


def _by_group(log: Log, found: ClassEvaluation) -> Table:
    """The groups, each with the largest error of a class in it."""
    cells = [
        [
            one.name, f"{one.rows:,}", number(one.ece), number(one.brier), number(one.p_value), number(one.adjusted),
            f"{one.worst} {one.lowest:.3g}–{one.highest:.3g}: {signed(one.bias, 3)}",
        ]
        for one in found.groups
    ]  # fmt: skip
    heads = ("group", "rows", "ece", "brier", "p", "p (Holm)", "y − forecast")
    return Table(f"By {log.by}", of_rows(heads, cells), [GROUPED])


def data(log: Log, asked: AskedClasses, found: ClassEvaluation) -> dict[str, Any]:
    """The report for a program."""
    return {
        "source": log.source, "outcome": log.outcome, "rows": log.rows, "said": log.said, "cautions": found.cautions,
        "columns": [*log.forecasts], "weight": asked.weight, "cluster": asked.cluster, "labels": found.gamma.labels,
        "levels": found.gamma.levels,
        "settings": {"draws": found.draws, "level": found.level},
        "verdict": verdict(log, asked, found)._asdict(), "p_value": found.p_value,
        "measures": [
            {
                "name": row.name, "value": low if low == high else None, "lower": low, "upper": high,
                "interval": row.interval, "if_calibrated": row.if_calibrated, "p_value": row.p_value,
            }
            for row in found.rows
            for low, high in (ends(row.value),)
        ],
        "classes": [vars(one) for one in found.classes],
        "by": log.by, "groups": [vars(one) for one in found.groups],
    }  # fmt: skip
