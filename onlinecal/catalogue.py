"""Everything that can be named in a scenario, and what is known about it."""

from __future__ import annotations

import inspect
from typing import Any

from onlinecal.errors import UnknownName
from onlinecal.forecasters import FORECASTERS
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Measure
from onlinecal.natures import NATURES
from onlinecal.rates import KNOWN_RATES
from onlinecal.responses import RESPONSES
from onlinecal.tasks import TASKS

KINDS: dict[str, dict[str, Any]] = {
    "forecasters": FORECASTERS,
    "natures": NATURES,
    "measures": MEASURES,
    "tasks": TASKS,
    "responses": RESPONSES,
}


def rows(kind: str = "") -> list[dict[str, str]]:
    """Kind, name, summary and source of truth (guarantees, or a measure's citation) of all entries, or of one kind.

    Raises
    ------
    UnknownName
        No such kind.
    """
    if kind == "rates":
        return [
            {
                "kind": "rates",
                "name": r.measure,
                "summary": str(r),
                "known": r.source,
                "exponent": f"{r.exponent:.4g}",
            }
            for r in KNOWN_RATES
        ]
    if kind and kind not in KINDS:
        raise UnknownName.of("kind", kind, [*KINDS, "rates"])
    return [
        {"kind": k, "name": name, "summary": _summary(thing), "known": _known(thing)}
        for k, things in KINDS.items()
        if kind in ("", k)
        for name, thing in things.items()
    ]


def entry(name: str) -> dict[str, Any]:
    """All that is known about one name.

    Raises
    ------
    UnknownName
        Nothing is called that.
    """
    for kind, things in KINDS.items():
        if name in things:
            thing = things[name]
            return {
                "kind": kind,
                "name": name,
                "parameters": _parameters(thing),
                "guarantees": [str(g) for g in _guarantees(thing)],
                "documentation": _documentation(thing),
            }
    raise UnknownName.of("name", name, [n for things in KINDS.values() for n in things])


def _documentation(thing: Any) -> str:
    return inspect.getdoc(thing.function if isinstance(thing, Measure) else thing) or ""


def _summary(thing: Any) -> str:
    return _documentation(thing).partition("\n")[0]


def _known(thing: Any) -> str:
    if isinstance(thing, Measure):
        return thing.source
    return "; ".join(g.short for g in _guarantees(thing))


def _guarantees(thing: Any) -> tuple[Any, ...]:
    """The guarantees of a strategy at its default parameters; none where it has parameters without default."""
    if not isinstance(thing, type) or any(p["default"] is None and p["required"] for p in _parameters(thing)):
        return ()
    return getattr(thing(), "guarantees", ())


def _parameters(thing: Any) -> list[dict[str, Any]]:
    if isinstance(thing, Measure):
        given = [(name, default) for name, default in thing.options.items()]
    else:
        given = [(p.name, p.default) for p in inspect.signature(thing).parameters.values()]
    empty = inspect.Parameter.empty
    return [
        {"name": name, "default": None if default is empty else default, "required": default is empty}
        for name, default in given
    ]
