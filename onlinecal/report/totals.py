"""Totals at the largest T and their growth, in tables: for the terminal, Markdown, notebooks and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

from onlinecal.core.words import number_of
from onlinecal.growth import Growth, simultaneous
from onlinecal.growth.rates import best_known, known_rates
from onlinecal.growth.words import legend, line, lines
from onlinecal.report.curves import Curve, Study, summary
from onlinecal.report.tables import Table, new_console, number, with_spread

#: rows of a table in a notebook, and columns of measures
ROWS, MEASURES = 40, 6
#: the meanings of the remarks of `Curve.against_rates`
AGAINST_RATES = {
    "above proven": "grows faster over these T than the bound proved for this forecaster, below which its total may "
    "still lie, and no form that fits says that this ends",
    "above O": "grows faster over these T than {rate}, which some forecaster is proved to keep against every nature "
    "that its source admits, and no form that fits says that this ends",
    "below Ω": "grows slower over these T than {rate}, and no form that fits says that this ends; it contradicts "
    "nothing: so much the worst nature forces, and this one forces less",
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
        """The same with the growth as data; that has all forms that fit, and costs time."""
        exponent = None if self.exponent is None else self.exponent.as_json()
        return {**self._asdict(), "exponent": exponent}

    @property
    def growth(self) -> list[str]:
        """The growth in lines of a cell."""
        return ["–"] if self.exponent is None else lines(self.exponent)

    def cell(self, horizon: int, *, spread: bool = True, growth: bool = True, remark: bool = False) -> str:
        """The text of a cell, with T where it is not that of the heading."""
        parts = [with_spread(self.total, self.half_width if spread else None)]
        parts += [f"at T = {self.horizon:,}"] * (self.horizon != horizon)
        parts += self.growth if growth else []
        return "\n".join([*parts, *[self.against_rates] * remark]).rstrip()


def totals(study: Study, measures: Sequence[str] | None = None) -> list[Total]:
    """A total for each nature, measure and forecaster.

    The intervals of all exponents hold together with 95 %, and so do the comparisons with rates: of many with 95 % each
    some would be wrong by chance.
    """
    curves = study.curves(measures)
    level = simultaneous(len(curves))
    rows = []
    for curve in curves:
        mean, half = summary(curve.totals[-1])
        open = 0 if curve.open is None else int(curve.open[-1])
        rows.append(
            Total(
                curve.nature, curve.forecaster, curve.measure, int(curve.rounds[-1]), open, curve.totals.shape[1], mean,
                half if math.isfinite(half) else None, curve.against_rates(level), curve.exponent(level),
            )
        )  # fmt: skip
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
            ", of questions with a known outcome: those that are open at the end are not in it; all runs share the "
            "times"
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


def print_totals(study: Study, title: str, measures: Sequence[str] | None = None) -> None:
    """Prints tables for each nature: forecasters down, measures across; totals and exponents.

    Without `measures` it is those of `main_columns`, also of streams.
    """
    measures = measures or main_columns(study, streams=True)
    rows = totals(study, measures)
    console = new_console()
    console.print(title, style="bold", markup=False)
    for nature in study.natures:
        mine = {(row.forecaster, row.measure): row for row in rows if row.nature == nature}
        horizon, open = longest(mine.values())
        # All questions first, then those of each stream.
        for stream in dict.fromkeys(["", *(study.columns[m].stream for m in measures)]):
            own = [m for m in measures if study.columns[m].stream == stream]
            if stream and not any(measure in own for _, measure in mine):
                continue
            cells = {
                f: [mine[f, m].cell(horizon, spread=False) if (f, m) in mine else "" for m in own]
                for f in study.forecasters
            }
            whose = f", the questions of {stream}" if stream else ""
            # Open questions are counted over all streams.
            Table(f"{nature}{whose}, T = {horizon:,}{'' if stream else open}", own, cells).print(console)
    console.print("; ".join(legend_of(rows, spread=False)), markup=False)


def compared(study: Study, measure: str) -> tuple[Table, list[str]]:
    """Forecasters down, natures across; and notes."""
    every = totals(study, [measure])
    rows = {(row.forecaster, row.nature): row for row in every}
    ends = {n: longest([row for row in every if row.nature == n]) for n in study.natures}
    title, horizons = f"{measure}: total T·μ and exponent", {horizon for horizon, _ in ends.values()}
    if len(horizons) == 1:
        title += f", T = {horizons.pop():,}"
        headings = [nature + open.replace(", ", "\n", 1) for nature, (_, open) in ends.items()]
    else:
        headings = [f"{nature}\nT = {horizon:,}{open}" for nature, (horizon, open) in ends.items()]
    cells = {
        f: [rows[f, n].cell(ends[n][0], remark=True) if (f, n) in rows else "" for n in ends]
        for f in study.forecasters
    }
    notes = ["; ".join(legend_of(every))]
    column = study.columns[measure]
    rates = {"above O" if rate.upper else "below Ω": rate for rate in best_known(column)}
    if rates:
        notes.append(
            f"best known against the worst nature: {known_rates(column)}; {_remarks(study.curves([measure]))}"
        )
    said = {row.against_rates for row in every}
    notes += [
        f"{remark}: {meaning.format(rate=rates.get(remark))}"
        for remark, meaning in AGAINST_RATES.items()
        if remark in said
    ]
    return Table(title, headings, cells), notes


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


# ---------------------------------------------------------------- Markdown


def exponents_markdown(study: Study) -> str:
    """A Markdown table for each measure: forecasters down, natures across; exponents, intervals, what is proven.

    The intervals of a table hold all together with 95 %. A cell that grows faster than the proven bound (see
    `Curve.against_rates`) is marked with †.
    """
    parts, shown, marked = [], [], False
    for measure, column in study.columns.items():
        curves = {(c.forecaster, c.nature): c for c in study.curves([measure])}
        if not curves:
            continue
        level, rates, rows = simultaneous(len(curves)), known_rates(column), {}
        for who in study.forecasters:
            mine = [curves.get((who, nature)) for nature in study.natures]
            if not any(mine):
                continue
            cells = []
            for curve in mine:
                growth = None if curve is None else curve.exponent(level)
                shown += [growth] if curve is not None else []
                above = (
                    growth is not None and curve is not None and curve.against_rates(level) == "above proven"
                )
                marked |= above
                cells.append((line(growth) if growth else "" if curve is None else "–") + " †" * above)
            proofs = sorted({_proof(c) for c in mine if c is not None} - {""})
            rows[who] = [*cells, "; ".join(proofs) or "–"]
        title, _, table = Table(measure, [*study.natures, "proven"], rows).markdown().partition("\n\n")
        parts.append(title + (f" (best known: {rates})" if rates else "") + "\n\n" + table)
    if shown:
        parts.append("\n".join(f"- {part}." for part in legend(shown, each="table")))
    if marked:
        parts.append("† G" + AGAINST_RATES["above proven"].removeprefix("g") + ".")
    return "\n\n".join(parts)


def _proof(curve: Curve) -> str:
    """The bound whose exponent `Curve.proven` is, ``0.60: O(√T log T)``; empty without one."""
    slowest = curve.slowest_bound()
    if slowest is None:
        return ""
    exponent, p = slowest
    return f"{exponent:.2f}: " + (f"O({p.formula})" if p.kind == "rate" else f"≤ {p.formula}")


def totals_markdown(study: Study) -> str:
    """A table for each nature: forecasters down, measures across; mean totals at its largest T."""
    rows, shown, parts = totals(study), study.measures, []
    for nature in study.natures:
        mine = {(row.forecaster, row.measure): row for row in rows if row.nature == nature}
        horizon, _ = longest(mine.values())
        cells = {
            who: [mine[who, m].cell(horizon, growth=False) if (who, m) in mine else "" for m in shown]
            for who in study.forecasters
            if any(own == who for own, _ in mine)
        }
        parts.append(Table(f"{nature}, T = {horizon:,}", shown, cells).markdown())
    said = of_totals(rows)
    return "\n\n".join([*parts, f"{said[0].upper()}{said[1:]}."])


# ---------------------------------------------------------------- notebooks


def study_html(study: Study) -> str:
    """A table for notebooks: a row for each nature and forecaster, measures across, total and exponent."""
    every = main_columns(study)
    shown = every[:MEASURES]
    pairs = len(study.forecasters) * len(study.natures)
    natures = study.natures[: max(1, ROWS // max(1, len(study.forecasters)))]
    forecasters = study.forecasters[:ROWS]
    rows = totals(study.only(forecasters, natures) if pairs > ROWS else study, shown)
    found = {(row.nature, row.forecaster, row.measure): row for row in rows}
    table = []
    for nature, who in ((nature, who) for nature in natures for who in forecasters):
        there = [found.get((nature, who, m)) for m in shown]
        horizon, _ = longest(row for row in there if row)
        cells = [
            f"{with_spread(row.total, row.half_width)}, {' '.join(row.growth)}" if row else ""
            for row in there
        ]
        if any(there):
            table.append([nature, who, f"{horizon:,}", *cells])
    left = [f"{pairs - len(table)} more pairs"] * (pairs > len(table))
    left += [f"{len(every) - MEASURES} more measures"] * (len(every) > MEASURES)
    notes = legend_of(rows)
    notes += [f"not shown: {', '.join(left)}; study.table() has every number"] * bool(left)
    head = f"<p><b>{escape(study.title or study.name or 'Study')}</b></p>"
    return head + _html(["nature", "forecaster", "T", *shown], table, notes)


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
    head = f"<p><b>{escape(curve.measure)}</b>: {escape(curve.forecaster)} against {escape(curve.nature)}</p>"
    runs = number_of(curve.totals.shape[1], "run")
    return head + _html(["T", f"mean total of {runs}", "± 95 %", "a round"], rows, notes)


def _html(headings: Sequence[str], rows: Iterable[Sequence[str]], notes: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows)
    below = "".join(f"<p><small>{escape(note)}</small></p>" for note in notes)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"
