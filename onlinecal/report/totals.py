"""Totals at the largest T and their growth, in tables: for the terminal, Markdown, notebooks and JSON."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlinecal.core.progress import Progress
from onlinecal.core.words import counted, number_of
from onlinecal.growth import Growth
from onlinecal.growth.rates import best_known, known_rates
from onlinecal.growth.words import legend, line, lines
from onlinecal.report.tables import Cell, Table, crossed, in_small, new_console, number, with_spread
from onlinecal.study.curves import Curve, Study, runs_of, summary

if TYPE_CHECKING:
    import pandas as pd

#: rows of a table in a notebook, and columns of measures
ROWS, MEASURES = 40, 6
#: the meanings of the remarks of `Curve.against_rates`
AGAINST_RATES = {
    "above proven": "grows faster over these T, and still at the largest, than the bound proved for this forecaster, "
    "below which its total may still lie",
    "above O": "grows faster over these T, and still at the largest, than {rate}, which some forecaster is proved to "
    "keep against every nature that its source admits",
    "below Ω": "grows slower over these T, and still at the largest, than {rate}; it contradicts nothing: so much the "
    "worst nature forces, and this one forces less",
}


class Total(NamedTuple):
    """The total of a curve at its largest T, and its growth."""

    nature: str
    forecaster: str
    measure: str
    horizon: int
    #: questions without a known outcome then
    open: int
    runs: int
    total: float
    #: of the 95 % interval of the mean; None for one run
    half_width: float | None
    against_rates: str
    exponent: Growth | None

    def as_json(self) -> dict[str, Any]:
        """The same with the growth as data."""
        exponent = None if self.exponent is None else self.exponent.as_json()
        return {**self._asdict(), "exponent": exponent}

    @property
    def growth(self) -> list[str]:
        """The growth in lines of a cell."""
        return ["–"] if self.exponent is None else lines(self.exponent)

    def cell(self, horizon: int, *, spread: bool = True, growth: bool = True, remark: bool = False) -> Cell:
        """A cell, with T where it is not that of the heading."""
        notes = [f"at T = {self.horizon:,}"] * (self.horizon != horizon)
        notes += [*(self.growth if growth else ()), *[self.against_rates] * remark]
        text = with_spread(self.total, self.half_width if spread else None)
        return Cell(text, self.total, "\n".join(filter(None, notes)))


def totals(study: Study, measures: Sequence[str] | None = None) -> list[Total]:
    """A total for each nature, measure and forecaster."""
    curves = study.curves(measures)
    rows = []
    with Progress(len(curves), unit="curves") as progress:
        for curve in curves:
            mean, half = summary(curve.totals[-1])
            open = 0 if curve.open is None else int(curve.open[-1])
            rows.append(Total(
                curve.nature, curve.forecaster, curve.measure, int(curve.rounds[-1]), open, curve.totals.shape[1], mean,
                half if math.isfinite(half) else None, curve.against_rates(), curve.exponent(),
            ))  # fmt: skip
            progress.advance(1)
    return rows


def of_totals(rows: Sequence[Total], *, spread: bool = True) -> str:
    """The part of a legend on totals and their spread."""
    halves = [row.half_width for row in rows if row.half_width is not None] if spread else []
    said = "total T·μ of a single run"
    if any(row.runs > 1 for row in rows):
        said = "mean total T·μ over the runs"
    if halves:
        said += " ± half-width of its 95 % interval by Student's t, each by itself"
    if 0.0 in halves:
        said += ", 0 where all runs have the same total"
    if any(row.open for row in rows):
        said += (
            ", of questions with a known outcome: those that are open at the end are not in it; runs of a schedule "
            "share its times"
        )
    return said


def legend_of(rows: Sequence[Total], *, spread: bool = True) -> list[str]:
    """The parts of a legend on totals and on exponents."""
    return [of_totals(rows, spread=spread), *legend(row.exponent for row in rows)]


def longest(rows: Iterable[Total]) -> tuple[int, str]:
    """The largest T of some rows, and how many questions are open then, for a heading."""
    horizon = max((row.horizon for row in rows), default=0)
    open = max((row.open for row in rows if row.horizon == horizon), default=0)
    return horizon, f", {open:,} open at the end" if open else ""


def main_columns(study: Study, *, streams: bool = False) -> list[str]:
    """The columns of short tables: all but certificates, of tasks the swap regret; of all questions, or of streams."""
    return [
        name
        for name, column in study.columns.items()
        if (streams or not column.stream)
        and (column.measure == "swap_regret" if column.of_task else column.kind != "certificate")
    ]


def by_nature(study: Study, rows: Sequence[Total], measures: Sequence[str], **shown: bool) -> list[Table]:
    """A table for each nature: forecasters down, measures across; the questions of a stream have their own.

    Open questions are counted over all streams. `shown` says what cells have (see `Total.cell`).
    """
    streams = dict.fromkeys(["", *(study.columns[measure].stream for measure in measures)])
    found = []
    for nature in study.natures:
        mine = [row for row in rows if row.nature == nature]
        horizon, open = longest(mine)
        for stream in streams:
            some = [row for row in mine if study.columns[row.measure].stream == stream]
            own = [measure for measure in measures if any(row.measure == measure for row in some)]
            end = f"T = {horizon:,}" + ("" if stream else open)
            title = f"{nature}, the questions of {stream}, {end}" if stream else f"{nature}, {end}"

            def cell(row: Total, end: int = horizon) -> Cell:
                return row.cell(end, **shown)

            cells = crossed(some, "forecaster", "measure", study.forecasters, own, cell)
            found += [Table(title, ["forecaster", *own], cells)] * bool(cells)
    return found


def print_totals(study: Study, title: str, measures: Sequence[str] | None = None) -> None:
    """Prints the tables of all natures, with totals and exponents.

    Without `measures` it is those of `main_columns`, also of streams.
    """
    measures = measures or main_columns(study, streams=True)
    rows = totals(study, measures)
    console = new_console()
    console.print(title, style="bold", markup=False)
    for table in by_nature(study, rows, measures, spread=False):
        table.print(console)
    console.print("; ".join(legend_of(rows, spread=False)), markup=False)


def compared(study: Study, measure: str) -> tuple[Table, list[str]]:
    """Forecasters down, natures across; and notes."""
    every, column = totals(study, [measure]), study.columns[measure]
    ends = {n: longest([row for row in every if row.nature == n]) for n in study.natures}
    title, horizons = f"{measure}: total T·μ and exponent", {horizon for horizon, _ in ends.values()}
    headings = [f"{nature}\nT = {horizon:,}{open}" for nature, (horizon, open) in ends.items()]
    if len(horizons) == 1:
        title += f", T = {horizons.pop():,}"
        headings = [nature + open.replace(", ", "\n", 1) for nature, (_, open) in ends.items()]
    cells = crossed(
        every, "forecaster", "nature", study.forecasters, study.natures,
        lambda row: row.cell(ends[row.nature][0], remark=True),
    )  # fmt: skip
    notes = ["; ".join(legend_of(every))]
    rates = {"above O" if rate.upper else "below Ω": rate for rate in best_known(column)}
    if rates:
        where = _remarks(study.curves([measure]))
        notes.append(f"best known against the worst nature: {known_rates(column)}; {where}")
    said = {row.against_rates for row in every}
    notes += [
        f"{it}: {words.format(rate=rates.get(it))}" for it, words in AGAINST_RATES.items() if it in said
    ]
    return Table(title, ["forecaster", *headings], cells), notes


def _remarks(curves: Sequence[Curve]) -> str:
    """Where remarks are made: rates in T are about games tuned to T, with outcomes that are known at once."""
    if all(curve.open is not None for curve in curves):
        return "no remarks, for outcomes may come late here, and these rates are about outcomes that are known at once"
    if all(curve.recorded for curve in curves):
        return (
            "no remarks, for these games are on one recorded stream, and rates are about the worst nature's"
        )
    if not any(curve.fresh for curve in curves):
        return "no remarks, for these are the rounds of one game, which is tuned to its end"
    late = ", and every outcome is known at once" * any(curve.open is not None for curve in curves)
    return f"a remark where games tuned to their T grow elsewhere{late}"


def exponents_markdown(study: Study) -> str:
    """A Markdown table for each measure: forecasters down, natures across; exponents, intervals, what is proven."""
    parts, shown = [], []
    for measure, column in study.columns.items():
        rows, rates = totals(study, [measure]), known_rates(column)
        shown += rows
        cells = crossed(rows, "forecaster", "nature", study.forecasters, study.natures, _exponent)
        for row in cells:
            mine = (
                study.curve(measure, each.forecaster, each.nature)
                for each in rows
                if each.forecaster == row[0]
            )
            proofs = {
                f"{exponent:.2f}: " + (f"O({p.formula})" if p.kind == "rate" else f"≤ {p.formula}")
                for exponent, p in filter(None, (curve.slowest_bound() for curve in mine))
            }
            row.append("; ".join(sorted(proofs)) or "–")
        table = Table(measure, ["forecaster", *study.natures, "proven"], cells).markdown()
        title, _, table = table.partition("\n\n")
        parts.append(title + (f" (best known: {rates})" if rates else "") + "\n\n" + table)
    parts.append("\n".join(f"- {part}." for part in legend(row.exponent for row in shown)))
    if any(row.against_rates == "above proven" and row.exponent for row in shown):
        parts.append("† G" + AGAINST_RATES["above proven"].removeprefix("g") + ".")
    return "\n\n".join(parts)


def _exponent(row: Total) -> str:
    dagger = " †" * (row.against_rates == "above proven")
    return "–" if row.exponent is None else line(row.exponent) + dagger


def totals_markdown(study: Study) -> str:
    """A table for each nature: forecasters down, measures across; mean totals at its largest T."""
    rows = totals(study)
    parts = [table.markdown() for table in by_nature(study, rows, study.measures, growth=False)]
    said = of_totals(rows)
    return "\n\n".join([*parts, f"{said[0].upper()}{said[1:]}."])


def study_html(study: Study) -> str:
    """For notebooks: a table for each of the first natures, with totals and exponents of the first measures."""
    every, pairs = main_columns(study), len(study.forecasters) * len(study.natures)
    shown, forecasters = every[:MEASURES], study.forecasters[:ROWS]
    natures = study.natures[: max(1, ROWS // max(1, len(study.forecasters)))]
    some = study.only(forecasters, natures) if pairs > ROWS else study
    rows = totals(some, shown)
    more = pairs - len({(row.nature, row.forecaster) for row in rows})
    left = [f"{more} more pairs"] * (more > 0) + [f"{len(every) - MEASURES} more measures"] * (
        len(every) > MEASURES
    )
    notes = legend_of(rows)
    notes += [f"not shown: {', '.join(left)}; study.table() has every number"] * bool(left)
    tables = [table.html() for table in by_nature(some, rows, shown)]
    return "".join(
        [f"<p><b>{escape(study.title or study.name or 'Study')}</b></p>", *tables, in_small(notes)]
    )


def curve_html(curve: Curve) -> str:
    """A table for notebooks: a row for each T, with the mean total over the runs, half of its interval, the average."""
    picked = range(len(curve.rounds))
    if len(picked) > ROWS:  # evenly, with the last
        picked = range((len(picked) - 1) % -(-len(picked) // ROWS), len(picked), -(-len(picked) // ROWS))
    rows = []
    for i in picked:
        (mean, half), t = summary(curve.totals[i]), int(curve.rounds[i])
        rows.append([f"{t:,}", number(mean), number(half) if math.isfinite(half) else "–", number(mean / t)])
    growth = curve.exponent()
    notes = [] if growth is None else [" ".join(lines(growth)), *legend([growth])]
    notes += [f"{len(rows)} of {len(curve.rounds)} T are shown"] * (len(rows) < len(curve.rounds))
    title = f"{curve.measure}: {curve.forecaster} against {curve.nature}"
    runs = number_of(curve.totals.shape[1], "run")
    return Table(title, ["T", f"mean total of {runs}", "± 95 %", "a round"], rows, notes).html()


#: of more totals than this not every one is printed after a run
LONG = 1000
#: forecasters and natures that are named from each end of their order
SHOWN = 5
#: and the number of measures
FIRST_MEASURES = 3


class Overview(NamedTuple):
    """Mean totals of a measure at the largest T over the opponents: least, median, largest, easiest and hardest.

    Forecasters are in the order of their largest total, natures of their least one, descending.
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
    import pandas as pd

    cells = [cell for cell in study.cells if measure in cell.totals]
    last = max(cell.horizon for cell in cells)
    with np.errstate(invalid="ignore"):  # of what is infinite both ways
        there = [(c.forecaster, c.nature, c.totals[measure][-1].mean()) for c in cells if c.horizon == last]
    means = pd.DataFrame(there, columns=["who", "whom", "mean"]).pivot(
        index="who", columns="whom", values="mean"
    )
    who, whom = (list(dict.fromkeys(getattr(c, role) for c in cells)) for role in ("forecaster", "nature"))
    means = means.reindex(who, columns=whom)
    frames = []
    for table in (means, means.T):
        table = table.dropna(how="all")
        frames.append(
            pd.DataFrame({
                "least": table.min(axis=1), "median": table.median(axis=1), "largest": table.max(axis=1),
                "easiest": table.idxmin(axis=1), "hardest": table.idxmax(axis=1),
            })
        )  # fmt: skip
    forecasters = frames[0].sort_values(["largest", "median"], kind="stable")
    natures = frames[1].sort_values(["least", "median"], kind="stable", ascending=False)
    known = int(means.notna().to_numpy().sum())
    shorter = len({(c.forecaster, c.nature) for c in cells}) - len(there)
    return Overview(measure, last, forecasters, natures, known, shorter, len(there) - known)


#: of a row: the extreme by which it is placed, the other one, the opponent of the first, and words
ENDS = {
    "forecaster": ("largest", "least", "hardest", "against", "their largest total over the natures"),
    "nature": ("least", "largest", "easiest", "of", "the least total of any forecaster"),
}


def print_overview(study: Study, title: str, measures: Sequence[str]) -> None:
    """Prints forecasters and natures from both ends of their order, for each of the first measures."""
    console = new_console()
    console.print(title, style="bold", markup=False)
    who, whom = number_of(len(study.forecasters), "forecaster"), number_of(len(study.natures), "nature")
    runs, cells = counted(runs_of(study.cells)), number_of(len(study.cells), "cell")
    console.print(f"{who} against {whom}, {runs}: {cells}", markup=False)
    growths: list[Growth] = []
    for found in (overview(study, measure) for measure in measures[:FIRST_MEASURES]):
        for kind, frame in (("forecaster", found.forecasters), ("nature", found.natures)):
            first, last, opponent, between, by = ENDS[kind]
            rows: list[list[Any]] = []
            more = len(frame) - 2 * SHOWN
            middle = slice(SHOWN, SHOWN + more) if more > 1 else slice(0)
            for name, row in frame.drop(frame.index[middle]).iterrows():
                pair = (str(name), row[opponent]) if kind == "forecaster" else (row[opponent], str(name))
                growth = study.curve(found.measure, *pair).exponent()
                growths += [growth] if growth else []
                total = Cell(number(row[first]), note="\n".join(lines(growth)) if growth else "")
                rows.append([str(name), total, row[opponent], number(row["median"]), number(row[last])])
            if more > 1:
                rows.insert(SHOWN, [f"… {more:,} more", "", "", "", ""])
            heading = f"{found.measure}: {kind}s by {by}, T = {found.horizon:,}"
            Table(heading, [kind, first, between, "median", last], rows).print(console)
        for count, why in (
            (found.shorter, "played to a shorter T only"),
            (found.unknown, "with infinite totals of both signs"),
        ):
            if count:
                console.print(f"{found.measure}: without {number_of(count, 'pair')} {why}", markup=False)
    said = "mean total T·μ over the runs; of very many the largest and the least are so by chance, too"
    console.print("; ".join([said, *legend(growths)]), markup=False)
    if rest := measures[FIRST_MEASURES:]:
        more_of = f" and {len(rest) - SHOWN} more" if len(rest) > SHOWN else ""
        console.print(f"measured, too: {', '.join(rest[:SHOWN])}{more_of}", markup=False)


def ways_on(path: Path, measure: str) -> str:
    """The commands that show all of it."""
    file, table = shlex.quote(str(path)), shlex.quote(str(path.with_suffix(".csv")))
    return (
        f"every total: onlinecal export {file} -o {table}\n"
        f"a measure: onlinecal compare {file} --measure {shlex.quote(measure)}\n"
        f"a page: onlinecal report {file}"
    )
