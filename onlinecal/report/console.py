"""Tables for the terminal, and the same rows as JSON."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from onlinecal.core.encodings import readable
from onlinecal.core.words import fixed
from onlinecal.growth import Growth, simultaneous
from onlinecal.growth.rates import best_known, known_rates
from onlinecal.growth.words import legend, lines
from onlinecal.report.curves import Study, summary
from onlinecal.report.grid import broken, fits, flowing, new_console, print_grid, say, with_spread

if TYPE_CHECKING:
    from onlinecal.checks.guarantees import GuaranteeCheck, Report


def totals(study: Study, measures: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """One row for each nature, forecaster and measure: the total at the largest T and the growth exponent.

    Returns
    -------
    list of dict
        Keys nature, forecaster, measure, horizon, open (questions without a known outcome then), runs, total,
        half_width (of the 95 % interval of the mean, None for one run), exponent: None, or `Growth.as_json`; and
        against_rates, as `Curve.against_rates` says. The intervals of all exponents hold together with 95 %, and so do
        the comparisons with rates: of many with 95 % each some would be wrong by chance.
    """
    return [
        {**row, "exponent": None if growth is None else growth.as_json()}
        for row, growth in grown(study, measures)
    ]


def grown(study: Study, measures: Sequence[str] | None) -> list[tuple[dict[str, Any], Growth | None]]:
    """The rows of `totals`, each with its exponent as an object; its JSON, which has all forms that fit, costs time."""
    curves = study.curves(measures)
    level = simultaneous(len(curves))
    rows = []
    for curve in curves:
        mean, half = summary(curve.totals[-1])
        exponent = curve.exponent(level)
        row = {
            "nature": curve.nature,
            "forecaster": curve.forecaster,
            "measure": curve.measure,
            "horizon": int(curve.rounds[-1]),
            "open": 0 if curve.open is None else int(curve.open[-1]),
            "runs": curve.totals.shape[1],
            "total": mean,
            "half_width": half if math.isfinite(half) else None,
            "against_rates": curve.against_rates(level),
        }
        rows.append((row, exponent))
    return rows


def shown_measures(study: Study) -> list[str]:
    """The names of all columns but certificates, and of tasks the swap regret."""
    return [
        name
        for name, column in study.columns.items()
        if (column.measure == "swap_regret" if column.of_task else column.kind != "certificate")
    ]


def print_totals(study: Study, title: str, measures: Sequence[str] | None = None) -> None:
    """A table for each nature: forecasters down, measures across; totals and exponents.

    Without `measures` it is those of `shown_measures`.
    """
    measures = measures or shown_measures(study)
    rows = grown(study, measures)
    console = new_console()
    console.print(f"[bold]{escape(title)}[/bold]")
    for nature in study.natures:
        mine = {(r["forecaster"], r["measure"]): (r, g) for r, g in rows if r["nature"] == nature}
        horizon = _longest(mine.values())
        there = {measure for _, measure in mine}
        # All questions first, then those of each stream.
        for stream in dict.fromkeys(["", *(study.columns[m].stream for m in measures)]):
            own = [m for m in measures if study.columns[m].stream == stream]
            if stream and not there.intersection(own):
                continue
            cells = {f: [_cell(mine.get((f, m)), horizon) for m in own] for f in study.forecasters}
            whose = f", the questions of {stream}" if stream else ""
            # Open questions are counted over all streams.
            open = "" if stream else _open(mine.values(), horizon)
            print_grid(console, f"{nature}{whose}, T = {horizon:,}{open}", own, cells)
    _print_legend(console, of_totals([row | {"half_width": None} for row, _ in rows]), [g for _, g in rows])


def _open(rows: Iterable[tuple[dict[str, Any], Growth | None]], horizon: int) -> str:
    """For a heading: how many questions are open at the end; all forecasters are asked the same."""
    open = max((row["open"] for row, _ in rows if row["horizon"] == horizon), default=0)
    return f", {open:,} open at the end" if open else ""


def of_totals(rows: Sequence[dict[str, Any]]) -> str:
    """For a legend: what a total with its spread is."""
    halves = [row["half_width"] for row in rows if row["half_width"] is not None]
    said = (
        "total T·μ of a single run"
        if all(row["runs"] == 1 for row in rows)
        else "mean total T·μ over the runs"
    )
    if halves:
        said += " ± half-width of its 95 % interval by Student's t, each by itself"
    if 0.0 in halves:
        said += ", 0 where all runs have the same total"
    return said + _known(rows)


def _known(rows: Iterable[dict[str, Any]]) -> str:
    """For a legend: of what totals are, where some questions are open."""
    if not any(row["open"] for row in rows):
        return ""
    return ", of questions with a known outcome: those that are open at the end are not in it; all runs share the times"


def print_compare(study: Study, measure: str) -> None:
    """Forecasters down, natures across."""
    rows = {(r["forecaster"], r["nature"]): (r, g) for r, g in grown(study, [measure])}
    horizons = {n: _longest(r for (_, nature), r in rows.items() if nature == n) for n in study.natures}
    title, headings = f"{measure}: total T·μ and exponent", [*horizons]
    open = {n: _open([r for (_, nature), r in rows.items() if nature == n], t) for n, t in horizons.items()}
    if len(set(horizons.values())) == 1:
        title += f", T = {next(iter(horizons.values())):,}"
        headings = [nature + open[nature].replace(", ", "\n", 1) for nature in horizons]
    else:
        headings = [f"{nature}\nT = {horizon:,}{open[nature]}" for nature, horizon in horizons.items()]
    cells = {
        f: [_cell(rows.get((f, n)), horizon, whole=True) for n, horizon in horizons.items()]
        for f in study.forecasters
    }
    console = new_console()
    print_grid(console, title, headings, cells)
    _print_legend(console, of_totals([row for row, _ in rows.values()]), [g for _, g in rows.values()])
    column = study.columns[measure]
    rates = {"above O" if rate.upper else "below Ω": rate for rate in best_known(column)}
    if rates:
        console.print(
            f"best known against the worst nature: {known_rates(column)}; {_remarks(study, measure)}",
            markup=False,
        )
    said = {row["against_rates"] for row, _ in rows.values()}
    for remark, meaning in AGAINST_RATES.items():
        if remark in said:
            console.print(f"{remark}: {meaning.format(rate=rates.get(remark))}", markup=False)


def _remarks(study: Study, measure: str) -> str:
    """Where remarks are made: rates in T are about games tuned to T, and about outcomes that are known at once."""
    curves = study.curves([measure])
    if curves and all(curve.open is not None for curve in curves):
        return "no remarks, for outcomes may come late here, and these rates are about outcomes that are known at once"
    if curves and all(curve.recorded for curve in curves):
        return (
            "no remarks, for these games are on one recorded stream, and rates are about the worst nature's"
        )
    if any(curve.fresh for curve in curves):
        late = any(curve.open is not None for curve in curves)
        return "a remark where games tuned to their T grow elsewhere" + (
            ", and every outcome is known at once" if late else ""
        )
    return "no remarks, for these are the rounds of one game, which is tuned to its end"


#: what the remarks of `Curve.against_rates` mean
AGAINST_RATES = {
    "above proven": "grows faster over these T than the bound proved for this forecaster, below which its total may "
    "still lie, and no form that fits says that this ends",
    "above O": "grows faster over these T than {rate}, which some forecaster is proved to keep against every nature "
    "that its source admits, and no form that fits says that this ends",
    "below Ω": "grows slower over these T than {rate}, and no form that fits says that this ends; it contradicts "
    "nothing: so much the worst nature forces, and this one forces less",
}


def _print_legend(console: Console, totals: str, growths: Iterable[Growth | None]) -> None:
    console.print("; ".join([totals, *legend(growths)]), markup=False)


def _longest(rows: Iterable[tuple[dict[str, Any], Growth | None]]) -> int:
    return max((row["horizon"] for row, _ in rows), default=0)


def _cell(found: tuple[dict[str, Any], Growth | None] | None, horizon: int, *, whole: bool = False) -> str:
    """A total and its growth, with its T where that is not that of the heading; whole with spread and comparison."""
    if found is None:
        return ""
    row, growth = found
    text = with_spread(row["total"], row["half_width"] if whole else None)
    if row["horizon"] != horizon:
        text += f"\nat T = {row['horizon']:,}"
    text = "\n".join([text, *(["–"] if growth is None else lines(growth))])
    return f"{text}\n{row['against_rates']}".rstrip() if whole else text


#: columns of a terminal below which a table of texts would be broken within words
NARROW = 72


def print_catalogue(rows: list[dict[str, str]], *, as_json: bool) -> None:
    """The rows of `catalogue.rows`."""
    if as_json:
        print_json(rows)
        return
    console = new_console()
    for kind in dict.fromkeys(row["kind"] for row in rows):
        if console.width < NARROW:
            console.print(kind, style="italic")
            for row in rows:
                if row["kind"] == kind:
                    say(": ".join(filter(None, (row["name"], row["summary"]))))
                    say(f"  {row['known']}" if row["known"] else "")
            continue
        table = Table(title=kind, title_justify="left", box=None, pad_edge=False)
        table.add_column("name", style="bold", no_wrap=kind != "rates of other quantities")
        table.add_column("total" if kind.startswith("rates") else "what it is")
        table.add_column(
            "proved"
            if kind in ("forecasters", "natures")
            else "source"
            if kind == "measures" or kind.startswith("rates")
            else ""
        )
        for row in rows:
            if row["kind"] == kind:
                table.add_row(*(escape(readable(row[key])) for key in ("name", "summary", "known")))
        console.print(table)
        console.print()


#: what `print_entry` calls the facts of a strategy
_FACTS = {
    "deterministic": "Deterministic",
    "needs_horizon": "Play depends on the horizon",
    "safe_under_delay": "May be told late and in any order",
    "memory": "State of a run",
    "loop": "Loop",
}


def print_entry(entry: dict[str, Any], *, as_json: bool) -> None:
    """What `catalogue.entry` returns."""
    if as_json:
        print_json(entry)
        return
    console = new_console()
    given = ", ".join(
        p["name"] + ("" if p["required"] else f" = {json.dumps(p['default'], default=str)}")
        for p in entry["parameters"]
    )
    console.print(f"[bold]{entry['name']}[/bold] ({entry['kind']}; parameters: {escape(given) or 'none'})\n")
    say(flowing(entry["documentation"] or "It has no docstring."), hang=0)
    facts = {words: entry[key] for key, words in _FACTS.items() if key in entry}
    if facts:
        print()
    for words, fact in facts.items():
        console.print(f"[bold]{words}[/bold]: {escape(fact)}")
    if entry["guarantees"]:
        console.print("\n[bold]Proved, at the default parameters[/bold]")
        for guarantee in entry["guarantees"]:
            say(f"- {guarantee}")
    if entry["implied"]:
        console.print("\n[bold]Which implies[/bold] (swap_regret, external_regret: of every task)")
        for line in entry["implied"]:
            say(f"- {line}")


def print_check(report: Report) -> None:
    """The report of `onlinecal check`: a row for each guarantee, with the worst of its opponents."""
    console = new_console()
    for name in dict.fromkeys(name for name, _ in report.findings):
        console.print(f"[bold]{escape(name)}[/bold]")
        for found, finding in report.findings:
            if found == name:
                say(f"  {'FAILS' if finding.fault else 'ok'}  {finding.check}", hang=4)
                if finding.fault:
                    say(f"         {finding.fault}")
    for remark in report.remarks:
        console.print(remark, markup=False)
    if not report.guarantees:
        return
    groups: dict[tuple[str, str], list[GuaranteeCheck]] = {}
    for v in report.guarantees:
        groups.setdefault((v.strategy, v.guarantee.short), []).append(v)
    rows = []
    for (strategy, guarantee), checked in groups.items():
        first = checked[0].guarantee
        worst = max(checked, key=lambda v: v.ratio if first.upper else -v.ratio)
        failed, unknown = (sum(v.holds is holds for v in checked) for holds in (False, None))
        trends = [v.trend[0] for v in checked if v.trend is not None]
        if failed:
            said = f"FAILS against {failed} of {len(checked)}"
            if any(v.step > 1.0 and v.holds is False for v in checked):
                said += ", in a step of its proof"
        elif first.kind == "rate" and not trends:
            said = "a rate; its growth cannot be told"
        elif unknown:
            said = f"exceeded, perhaps by chance, against {unknown} of {len(checked)}"
        else:
            said = f"holds against {len(checked)}"
        if trends:
            said += f": ratio grows like T^{fixed(max(trends))} at most"
        rows.append(
            (strategy, guarantee, f"{worst.ratio:.4g}", f"against {worst.opponent}, round {worst.at:,}", said)
        )
    tables = [_checked(rows), _checked(rows, narrow=True)]
    if (table := next((table for table in tables if fits(console, table)), None)) is not None:
        console.print(table)
    else:
        for strategy, guarantee, ratio, where, said in rows:
            say(f"{strategy}: {guarantee}\n  {said}; worst {ratio}, {where}")
    console.print(
        "worst: measured over bound, largest over opponents, runs and checkpoints (smallest for ≥); of the mean at T "
        "for expected bounds and rates. A rate has no constant: it holds if the ratio grows by no more than T^0.1 from "
        "T/16 to T, and fails if it does by more than chance makes of it once in 10^6."
    )


def _checked(rows: Iterable[Sequence[str]], *, narrow: bool = False) -> Table:
    """The table of `print_check`; a narrow one has its names broken, and the bounds below what they bound."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("strategy", "guarantee", "worst", "where", ""):
        table.add_column(
            heading,
            justify="right" if heading == "worst" else "left",
            no_wrap=narrow and heading != "",
            overflow="fold",
        )
    for strategy, guarantee, worst, where, said in rows:
        cells = (strategy, guarantee, worst, where, said)
        if narrow:
            if len(guarantee) > 22:
                measure, bound = re.split(" (?=[≤≥=] )", guarantee, maxsplit=1)
                guarantee = f"{broken(measure, 22)}\n{broken(bound, 24)}"
            opponent, _, at = where.rpartition(" round ")
            where = f"{broken(opponent, 13)}\nround {at}"
            cells = (broken(strategy, 14), guarantee, worst, where, said)
        table.add_row(*map(Text, map(readable, cells)))
    return table


def print_json(value: Any, *, in_one_line: bool = False) -> None:
    """Machine-readable, and nothing else, on stdout: strict JSON, which has no infinities; for streams in one line.

    A number that is not finite is null, and the key beside it that ends in ``_is`` says which: ``"total": null,
    "total_is": "inf"``; the others are ``"-inf"`` and ``"nan"``.
    """
    utf = str(getattr(sys.stdout, "encoding", None)).lower().startswith("utf")
    # Escaped where the stream could not hold it: a "?" in a name would be another name.
    indent = None if in_one_line else 2
    print(
        json.dumps(_plain(value), indent=indent, ensure_ascii=not utf, allow_nan=False, default=_bare),
        flush=in_one_line,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        plain: dict[str, Any] = {}
        for key, item in value.items():
            plain[key] = _plain(item)
            if _endless(item):
                plain[f"{key}_is"] = str(float(item))
        return plain
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return None if _endless(value) else value


def _endless(value: Any) -> bool:
    return isinstance(value, float | np.floating) and not math.isfinite(value)


def _bare(value: Any) -> Any:
    """What JSON does not know: numbers of numpy as numbers, arrays as lists, anything else as text."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)
