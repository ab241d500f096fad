"""Everything that can be named in a scenario, with its facts; as tables for the terminal."""

from __future__ import annotations

import inspect
import json
import tomllib
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from onlinecal.core.columns import Column
from onlinecal.core.errors import LIST, UnknownName, meant
from onlinecal.core.guarantee import Guarantee, tightest
from onlinecal.core.modules import locate
from onlinecal.core.strategy import FACTS, parameters
from onlinecal.core.words import fixed, readable
from onlinecal.core.writing import scenarios
from onlinecal.decision_makers.responses import RESPONSES
from onlinecal.decisions.tasks import TASKS
from onlinecal.forecasters import FORECASTERS
from onlinecal.growth.rates import KNOWN_RATES, OTHER_RATES, best_known
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Measure
from onlinecal.naming import as_strategy, foreign, kind_of
from onlinecal.natures import NATURES
from onlinecal.report.tables import flowing, new_console, print_json, say
from onlinecal.schedules import ARRIVALS, DELAYS
from onlinecal.worlds import WORLDS, World

KINDS: dict[str, dict[str, Any]] = {
    "forecasters": FORECASTERS,
    "natures": NATURES,
    "worlds": WORLDS,
    "measures": MEASURES,
    "tasks": TASKS,
    "responses": RESPONSES,
    "arrivals": ARRIVALS,
    "delays": DELAYS,
}
#: the kinds that play
PLAYERS = ("forecasters", "natures", "worlds")
#: T at which bounds that follow from each other are compared
COMPARED_AT = 10**6


def rows(kind: str = "") -> list[dict[str, str]]:
    """Kind, name, summary and source of truth (guarantees, or a measure's citation) of all entries, or of one kind."""
    kind = kind and meant("kind", kind, (*KINDS, "rates", "scenarios"))
    if kind == "rates":
        return _rates()
    if kind == "scenarios":
        files = (
            (name, tomllib.loads(file.read_text(encoding="utf-8"))) for name, file in scenarios().items()
        )
        return [
            {"kind": kind, "name": name, "summary": str(said["title"]), "known": ""} for name, said in files
        ]
    return [
        {
            "kind": k, "name": name, "summary": _documentation(thing).partition("\n")[0],
            "known": thing.source if isinstance(thing, Measure) else "; ".join(g.short for g in _guarantees(thing)),
        }
        for k, things in KINDS.items()
        if kind in ("", k)
        for name, thing in things.items()
    ]  # fmt: skip


def _rates() -> list[dict[str, str]]:
    """The known rates, what follows from them for other measures, and those of quantities that are not tracked."""
    stated = {(known.measure, known.upper) for known in KNOWN_RATES}
    names = dict.fromkeys([*(rate.measure for rate in KNOWN_RATES), *MEASURES])
    follow = [rate for name in names for rate in best_known(name) if (name, rate.upper) not in stated]
    found = [
        {
            "kind": kind,
            "name": r.measure,
            "summary": str(r),
            "known": r.source,
            "exponent": f"{r.exponent:.4g}",
        }
        for kind, rates in (("rates", KNOWN_RATES), ("rates that follow from these", follow))
        for r in rates
    ]
    others = "rates of other quantities"
    return found + [
        {"kind": others, "name": r.quantity, "summary": r.statement, "known": r.source} for r in OTHER_RATES
    ]


def entry(name: str) -> dict[str, Any]:
    """All that is known about one name; the first where several kinds have it."""
    return entries(name)[0]


def entries(name: str) -> list[dict[str, Any]]:
    """All that is known about one name, registered or ``module:Class``, of each kind that has it."""
    if not foreign(name):
        name = meant("name", name, [each for known in KINDS.values() for each in known], LIST)
    things = [(kind, known[name]) for kind, known in KINDS.items() if name in known]
    if not things:
        thing = locate("strategy", name)
        if not (kind := kind_of(thing)):
            raise UnknownName(f"{name!r} is neither a forecaster nor a nature")
        things = [(f"{kind}s", thing)]
    return [
        {
            "kind": kind, "name": name, "parameters": parameters_of(thing),
            "guarantees": [str(g) for g in _guarantees(thing)], "implied": _implied(_guarantees(thing)),
            **(_facts(kind, thing) if kind in PLAYERS else {}),
            "documentation": _documentation(thing),
        }
        for kind, thing in things
    ]  # fmt: skip


def _documentation(thing: Any) -> str:
    """The docstring of the thing itself: those of a base class and of `partial` are of another rule."""
    thing = thing.function if isinstance(thing, Measure) else thing
    while isinstance(thing, partial):
        thing = thing.func
    return inspect.cleandoc(thing.__doc__ or "")


def _guarantees(thing: Any) -> tuple[Any, ...]:
    """The guarantees of a strategy at its default parameters; none where it has parameters without default."""
    if not isinstance(thing, type) or any(
        p["default"] is None and p["required"] for p in parameters_of(thing)
    ):
        return ()
    return getattr(thing(), "guarantees", ())


def _implied(guarantees: tuple[Guarantee, ...]) -> list[str]:
    """Bounds on other measures and on every task that follow, a line each: ``≤ 2(2√T + 1): smooth_ce``."""
    stated = {g.measure for g in guarantees}
    names = [name for name in (*MEASURES, "swap_regret", "external_regret") if name not in stated]
    lines: dict[str, list[str]] = {}
    for name in names:
        for g in tightest(guarantees, Column("measure", name), COMPARED_AT):
            lines.setdefault(g.short.removeprefix(f"{name} "), []).append(name)
    return [f"{relation}: {', '.join(measures)}" for relation, measures in lines.items()]


def _facts(kind: str, thing: Any) -> dict[str, str]:
    """The facts that a strategy states (`onlinecal.core.strategy`), and the loop that plays it, in words."""
    from onlinecal.rounds.players import made_of_steps
    from onlinecal.rounds.protocol import start

    names = [name for name in FACTS if kind == "forecasters" or name != "deterministic"]
    needed = {p["name"] for p in parameters_of(thing) if p["required"]}
    # Facts that do not depend on parameters are on the class.
    spec = thing if needed - {"horizon"} else as_strategy(kind.removesuffix("s"), thing)
    loop = "depends on its parameters"
    if isinstance(spec, World):
        loop = "simpy"
    elif not needed:
        compiled = made_of_steps(start(kind.removesuffix("s"), spec, 1000, range(1), 0))
        loop = "compiled steps" if compiled else "plain Python"
    return {name: said(getattr(spec, name, None)) for name in names} | {"loop": loop}


def said(fact: Any) -> str:
    """A fact in words."""
    if isinstance(fact, property):
        return "depends on its parameters"
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    return "not declared" if fact is None else str(fact)


def parameters_of(thing: Any) -> list[dict[str, Any]]:
    """The parameters of what is registered: name, default, and whether it must be given."""
    if isinstance(thing, Measure):
        given = list(thing.options.items())
    elif not callable(thing):  # an object that has been made
        given = list(parameters(thing).items())
    else:
        given = [(p.name, p.default) for p in inspect.signature(thing).parameters.values()]
    empty = inspect.Parameter.empty
    return [
        {"name": name, "default": None if default is empty else default, "required": default is empty}
        for name, default in given
    ]


if TYPE_CHECKING:
    from onlinecal.checks.guarantees import GuaranteeCheck, Report
#: columns of a terminal below which a table of texts would be broken within words
NARROW = 72


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
        known = (
            "source"
            if kind == "measures" or rates
            else "proved"
            if kind in ("forecasters", "natures")
            else ""
        )
        table.add_column(known)
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


def print_entry(entry: dict[str, Any], *, as_json: bool) -> None:
    """Prints an entry of the catalogue."""
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
    """The report of `onlinecal check`: two lines for each guarantee, with the worst of its opponents."""
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
