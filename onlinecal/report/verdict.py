"""The verdict of a report in words: whether calibrated, where not, at what cost, how sure, and the next command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from onlinecal.core.files import STDIN
from onlinecal.core.words import number_of
from onlinecal.logs.clusters import FEWEST
from onlinecal.logs.columns import MEASURING, READING, options_of
from onlinecal.logs.measuring import Measured, Report
from onlinecal.logs.resampling import FEW

#: measures of calibration; a verdict quotes the first that there is
QUOTED = ("smooth_ece", "smooth_ce", "cutoff_ce", "cdl", "ece", "binned_ece")


class Verdict(NamedTuple):
    """The statement that the numbers of a column allow."""

    calibration: str  # "refuted", "doubtful", "not refuted", "too few" or "not tested"
    words: str  # two sentences
    next: str  # a command, or what to do, in a sentence


def verdict(report: Report, column: Measured) -> Verdict:
    """The verdict on a column; its test is that of all pairs of thresholds at once, at 1 − the level."""
    worst, p = column.threshold, column.threshold_p
    pays = f"acting when p {'≥' if worst.acts_too_often else '>'} {worst.at:.4g} loses {worst.loss:.3g} per decision"
    if worst.loss <= 0.0:
        pays = "no threshold to act on loses anything"
    if p is None:
        if report.settings.draws:
            # Why is a caution.
            first = "Too few rows are independent to judge calibration."
            more = f"Next: at least {FEWEST} clusters of about equal weight."
            if report.time and report.cluster in ("", report.time):
                more = "Next: more times; where rows have something else in common, name it (--cluster)."
            return Verdict("too few", f"{first} On these rows {pays}.", more)
        first = "Without draws it is not tested whether the forecasts are calibrated."
        again = f"Next: {_command('measure', report, column, '--draws 200')}"
        return Verdict("not tested", f"{first} On these rows {pays}.", again)
    tests = {
        row.name: row.p_value
        for row in column.evaluation.rows
        if row.name in QUOTED and row.p_value is not None
    }
    least = min(tests, key=lambda name: tests[name], default="")
    by_measure = bool(least) and len(tests) * tests[least] <= 1.0 - report.settings.level
    if (column.advises or by_measure) and column.depends and not report.cluster:
        first = (
            "Whether the forecasts are calibrated cannot be told: rows seem to depend on each other, and "
            f"p = {min(p, tests.get(least, p)):.3g} takes them as independent."
        )
        again = _command("measure", report, column, "--cluster COLUMN")
        return Verdict(
            "doubtful", f"{first} On these rows {pays}.", f"Next: name what they have in common: {again}"
        )
    if column.advises:
        few = worst.lowest == worst.highest
        where = f"{worst.lowest:.4g}" if few else f"{worst.lowest:.4g}–{worst.highest:.4g}"
        first = (
            f"Not calibrated (p = {p:.3g}): predictions of {where} ({100.0 * worst.share:.3g} % of all) are too "
            f"{'high' if worst.acts_too_often else 'low'} by {abs(worst.bias):.3g}."
        )
        v = column.gamma.predictions
        ends = {worst.highest: "never acting"} if worst.acts_too_often else {worst.lowest: "always acting"}
        better = ends.get(v[-1] if worst.acts_too_often else v[0], worst.better)
        cost = (
            f"{pays[:1].upper()}{pays[1:]} ({column.by_chance:.3g} by chance), {better} would be better; "
            f"{_gain(column)}."
        )
        mend = "recalibrate the forecasts of this class with oc.recalibrate(p, y)"
        if not report.classes:
            # An outcome that is taken as known at once would tell later forecasts of its own question.
            panel = report.cluster not in ("", report.time) and not report.asked.cluster
            times = ["--time COLUMN"] * (not report.time) + ["--resolved COLUMN"]
            mend = _command("recalibrate", report, column, *times * panel, f"-o {new_name(report.source)}")
            if report.asked.fractional:
                mend = f"leave out the outcomes between 0 and 1: {mend}"
            if panel:
                mend = f"name the times of forecasts and of outcomes: {mend}"
        return Verdict("refuted", f"{first} {cost}", f"Next: {mend}")
    by_chance = f"calibrated forecasts would lose {column.by_chance:.3g} by chance (p = {p:.3g})"
    if by_measure:
        first = (
            f"Perhaps not calibrated: {least} is larger than chance makes it (p = {tests[least]:.3g}, one of "
            f"{number_of(len(tests), 'test')}), but the worst threshold is not (p = {p:.3g})."
        )
        return Verdict("doubtful", f"{first} {_room(column)}", _more(report))
    samples = (
        column.gamma.weight if column.evaluation.resample is None else column.evaluation.resample.samples
    )
    if samples < FEW:
        tell = f"they tell as much as {samples:.3g} independent ones"
        first = f"Too few rows to judge calibration: {tell}; {pays}, and {by_chance}."
        return Verdict("too few", f"{first} {_room(column)}", _more(report))
    first = f"Calibration is not refuted: {pays}; {by_chance}."
    return Verdict("not refuted", f"{first} {_room(column)}", _more(report))


def new_name(file: str, end: str = "_better.csv") -> str:
    """The name of a file that is made of another one, for a command: by default the recalibrated one."""
    return shlex.quote(f"{Path(file).name.split('.')[0]}{end}")


def _gain(column: Measured) -> str:
    brier = column.brier
    return f"recalibration could gain {brier.miscalibration:.3g} of the Brier score {brier.score:.3g} on these rows"


def _room(column: Measured) -> str:
    """The most that recalibration could gain, and the error that is not excluded."""
    gain = _gain(column)
    said = f"{gain[:1].upper()}{gain[1:]}, noise included"
    intervals = {row.name: row.interval for row in column.evaluation.rows if row.interval is not None}
    quoted = next((name for name in QUOTED if name in intervals), "")
    return f"{said}; {quoted} up to {intervals[quoted][1]:.3g} is not excluded." if quoted else f"{said}."


def _more(report: Report) -> str:
    rows = "clusters" if report.cluster else "rows"
    return f"Next: more {rows}, four times as many for intervals half as wide."


def command(name: str, file: str, options: Mapping[str, str | None], *more: str) -> str:
    """A command to be copied, with the options that have a value."""
    said = [f"{key} {shlex.quote(value)}" for key, value in options.items() if value]
    return " ".join(["onlinecal", name, "-" if file == STDIN else shlex.quote(file), *said, *more])


def _command(name: str, report: Report, column: Measured, *more: str) -> str:
    """The same for this column of this file."""
    options = {"--forecast": column.name, "--outcome": report.outcome, "--time": report.time}
    given = options_of(report.asked, READING | (MEASURING if name == "measure" else {}))
    if report.asked.classes:
        options = {"--classes --outcome": report.outcome, "--time": report.time}
    elif report.pairs:
        options = {"--time": report.time}
        given += [f"-f {shlex.quote(p)} -y {shlex.quote(y)}" for p, y in report.pairs]
    return command(name, report.source, options, *given, *more)
