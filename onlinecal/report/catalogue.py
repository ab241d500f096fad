"""The facts of everything that can be named in a scenario, from the classes and functions themselves."""

from __future__ import annotations

import inspect
import tomllib
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any

from onlinecal.core.columns import Column, Kind
from onlinecal.core.errors import LIST, UnknownName, meant
from onlinecal.core.guarantee import tightest
from onlinecal.core.modules import locate
from onlinecal.core.strategy import FACTS, parameters
from onlinecal.core.writing import scenarios
from onlinecal.decisions.responses import RESPONSES
from onlinecal.decisions.tasks import TASKS
from onlinecal.forecasters import FORECASTERS
from onlinecal.forecasters.base import OfClasses
from onlinecal.growth.rates import KNOWN_RATES, OTHER_RATES, best_known
from onlinecal.logs.evaluated import OF_LOGS
from onlinecal.measures import MEASURES, OF_SHORT_GAMES
from onlinecal.measures.base import Measure
from onlinecal.measures.groups import OF_GROUPS
from onlinecal.naming import as_strategy, foreign, kind_of
from onlinecal.natures import NATURES, Categorical
from onlinecal.schedules import ARRIVALS, DELAYS
from onlinecal.study.asked import known_measures
from onlinecal.worlds import WORLDS, World

KINDS: dict[str, dict[str, Any]] = {
    "forecasters": FORECASTERS,
    "natures": NATURES,
    "worlds": WORLDS,
    "measures": MEASURES | OF_SHORT_GAMES | OF_GROUPS | OF_LOGS,
    "class_measures": dict(known_measures(True)),
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
    """Kind, name, summary and source of truth (guarantees, or a measure's citation) of all entries, or of one kind.

    Scenarios and rates are kinds too, which are listed when asked for.
    """
    kind = kind and meant("kind", kind, (*KINDS, "rates", "scenarios"))
    if kind == "rates":
        return rates()
    if kind == "scenarios":
        files = ((name, tomllib.loads(file.read_text("utf-8"))) for name, file in scenarios().items())
        return [{"kind": kind, "name": n, "summary": str(said["title"]), "known": ""} for n, said in files]
    return [
        {
            "kind": k, "name": name, "summary": _documentation(thing).partition("\n")[0],
            "known": thing.source if isinstance(thing, Measure) else "; ".join(g.short for g in _guarantees(thing)),
        }
        for k, things in KINDS.items()
        if kind in ("", k)
        for name, thing in things.items()
    ]  # fmt: skip


def names(kind: str | None = None) -> list[str]:
    """The names of a kind, or each name once."""
    return list(dict.fromkeys(name for k, things in KINDS.items() if kind in (None, k) for name in things))


def rates() -> list[dict[str, str]]:
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
            "guarantees": [str(g) for g in _guarantees(thing)], "implied": _implied(thing),
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
    if not isinstance(thing, type) or any(p["required"] for p in parameters_of(thing)):
        return ()
    return getattr(thing(), "guarantees", ())


def _implied(thing: Any) -> list[str]:
    """Bounds on other measures and on every task that follow, a line each: ``≤ 2(2√T + 1): smooth_ce``."""
    classes = bool(getattr(thing, "of_classes", False))
    kind: Kind = "class_measure" if classes else "measure"
    guarantees, measures = _guarantees(thing), known_measures(classes) if classes else MEASURES
    stated = {g.measure for g in guarantees}
    names = [name for name in (*measures, "swap_regret", "external_regret") if name not in stated]
    lines: dict[str, list[str]] = {}
    for name in names:
        for g in tightest(guarantees, Column(kind, name), COMPARED_AT):
            lines.setdefault(g.short.removeprefix(f"{name} "), []).append(name)
    return [f"{relation}: {', '.join(measures)}" for relation, measures in lines.items()]


def _facts(kind: str, thing: Any) -> dict[str, str]:
    """The facts that a strategy states (`onlinecal.core.strategy`), and the loop that plays it, in words."""
    from onlinecal.engine.start import start
    from onlinecal.engine.steps import Player

    names = [name for name in FACTS if kind == "forecasters" or name != "deterministic"]
    needed = any(p["required"] for p in parameters_of(thing))
    # Facts that do not depend on parameters are on the class.
    spec = thing if needed else as_strategy(kind.removesuffix("s"), thing)
    spec = spec.facing(Categorical()) if isinstance(spec, OfClasses) else spec
    loop = "depends on its parameters"
    if isinstance(spec, World):
        loop = "simpy"
    elif not needed:
        compiled = isinstance(start(kind.removesuffix("s"), spec, 1000, range(1), 0), Player)
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
        if is_dataclass(thing):  # what is made anew for each has no value in the signature
            made = {f.name: f.default_factory() for f in fields(thing) if f.default_factory is not MISSING}
            given = [(name, made.get(name, default)) for name, default in given]
    empty = inspect.Parameter.empty
    return [
        {"name": name, "default": None if default is empty else default, "required": default is empty}
        for name, default in given
    ]
