"""The catalogue and its entries as tables for the terminal, and the report of `onlinecal check`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from onlinecal.core.words import fixed, readable
from onlinecal.report.terminal import new_console, print_json, say

if TYPE_CHECKING:
    from onlinecal.checks.guarantees import GuaranteeCheck, Report
#: columns of a terminal below which a table of texts would be broken within words
NARROW = 72
#: a line of a docstring with at least as many characters is full, and goes on in the next one
FULL = 90


def print_catalogue(rows: list[dict[str, str]], *, as_json: bool) -> None:
    """The rows of `catalogue.rows`."""
    if as_json:
        print_json(rows)
        return
    console = new_console()
    for kind in dict.fromkeys(row["kind"] for row in rows):
        mine, rates = [row for row in rows if row["kind"] == kind], kind.startswith("rates")
        if console.width < NARROW:
            console.print(kind, style="italic")
            for row in mine:
                say(": ".join(filter(None, (row["name"], row["summary"]))))
                say(f"  {row['known']}" if row["known"] else "")
            continue
        table = Table(title=kind, title_justify="left", box=None, pad_edge=False)
        table.add_column("name", style="bold", no_wrap=kind != "rates of other quantities")
        table.add_column("total" if rates else "what it is")
        known = {
            "forecasters": "proved",
            "natures": "proved",
            "measures": "source",
            "class_measures": "source",
        }
        table.add_column("source" if rates else known.get(kind, ""))
        for row in mine:
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


def print_entry(entry: dict[str, Any]) -> None:
    """Prints an entry of the catalogue."""
    console = new_console()
    given = ", ".join(
        p["name"] + ("" if p["required"] else f" = {json.dumps(p['default'], default=str)}")
        for p in entry["parameters"]
    )
    console.print(f"[bold]{entry['name']}[/bold] ({entry['kind']}; parameters: {escape(given) or 'none'})\n")
    say(_joined(entry["documentation"]) or "It has no docstring.", hang=0)
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


def _joined(documentation: str) -> str:
    """A docstring with each paragraph in one line; examples, lists and headings keep theirs."""
    lines: list[str] = []
    full = False
    for line in documentation.split("\n"):
        text = line.lstrip()
        goes_on = full and text and not text.startswith((">>>", "...", "- "))
        if goes_on and len(line) - len(text) == len(lines[-1]) - len(lines[-1].lstrip()):
            lines[-1] += f" {text}"
        else:
            lines.append(line)
        full = len(line) >= FULL
    return "\n".join(lines)


def print_check(report: Report) -> None:
    """The report of `onlinecal check`: two lines for each guarantee, with the worst of its opponents."""
    console = new_console()
    for name in dict.fromkeys(name for name, _ in report.findings):
        console.print(f"[bold]{escape(name)}[/bold]")
        before = ""
        for found, finding in report.findings:
            if found == name:
                say(f"  {'FAILS' if finding.fault else 'ok'}  {finding.check}", hang=4)
                if finding.fault:
                    say(f"         {'as above' if finding.fault == before else finding.fault}")
                before = finding.fault
    for remark in report.remarks:
        console.print(remark, markup=False)
    if not report.guarantees:
        return
    groups: dict[tuple[str, str], list[GuaranteeCheck]] = {}
    for v in report.guarantees:
        groups.setdefault((v.strategy, v.guarantee.short), []).append(v)
    for (strategy, guarantee), checked in groups.items():
        first = checked[0].guarantee
        worst = max(checked, key=lambda v: v.ratio if first.upper else -v.ratio)
        failed, unknown = (sum(v.holds is holds for v in checked) for holds in (False, None))
        trends = [v.trend[0] for v in checked if v.trend is not None]
        if failed:
            found = f"FAILS against {failed} of {len(checked)}"
            if any(v.step > 1.0 and v.holds is False for v in checked):
                found += ", in a step of its proof"
        elif first.kind == "rate" and not trends:
            found = "a rate; its growth cannot be told"
        elif unknown:
            found = f"exceeded, perhaps by chance, against {unknown} of {len(checked)}"
        else:
            found = f"holds against {len(checked)}"
        if trends:
            found += f": ratio grows like T^{fixed(max(trends))} at most"
        say(f"{strategy}: {guarantee}")
        say(f"  {found}; worst {worst.ratio:.4g}, against {worst.opponent}, round {worst.at:,}")
    say(
        "worst: measured over bound, largest over opponents, runs and checkpoints (smallest for ≥); of the mean at T "
        "for expected bounds and rates. A rate has no constant: it holds if the ratio grows by no more than T^0.1 from "
        "T/16 to T, and fails if it does by more than chance makes of it once in 10^6.",
        hang=0,
    )
