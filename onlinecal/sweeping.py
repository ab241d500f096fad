"""Combinations of several values in a table of a scenario: line-ups, measures, tasks, schedules, decision makers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from onlinecal.core.errors import LIST, InvalidParameter, OnlinecalError, ScenarioError, meant
from onlinecal.core.modules import locate
from onlinecal.core.strategy import title
from onlinecal.core.sweeps import ENDS, RESERVED, Kind, Sweep, Thing, kinds, ranged, sweep
from onlinecal.core.validation import is_number
from onlinecal.decision_makers.responses import RESPONSES
from onlinecal.decision_makers.tenures import Group
from onlinecal.decisions.tasks import TASKS, of_payoffs, random_task
from onlinecal.engine.horizon import check_horizon
from onlinecal.measures import MEASURES
from onlinecal.naming import STRATEGIES, decision_maker_of, foreign, located, measure_of, strategy_of, task_of
from onlinecal.schedules import ARRIVALS, DELAYS, Arrivals, Delays, Schedule, as_arrivals, as_delays
from onlinecal.study.planning import Entry

#: what can be named, by the role of its table
_KNOWN: Mapping[str, Mapping[str, Any]] = {
    **STRATEGIES,
    "measure": MEASURES,
    "task": TASKS,
    "response": RESPONSES,
    "arrival process": ARRIVALS,
    "delay": DELAYS,
}
_RESPONSE = Kind(role="response")
#: of decision makers; their other parameters are single values
_GROUP = {field.name: Kind() for field in fields(Group)} | {
    "task": Kind(role="task"),
    "response": _RESPONSE,
    "arrivals": Kind(role="arrival process"),
    "stay": Kind(role="delay"),
}


def finder(folder: Path | None = None) -> Callable[[str, Mapping[str, Any]], Thing]:
    """The things that tables with a name mean, for `core.sweeps.sweep`; `folder` is that of the scenario."""

    def find(role: str, table: Mapping[str, Any]) -> Thing:
        if role == "decision makers":
            return Thing(role, _GROUP)
        name = table["name"]
        more = {"response": _RESPONSE} if role == "task" else {}
        if foreign(name):
            made = locate(role, name, folder)
            return Thing(title(made), kinds(made) | more)
        if role == "task" and of_payoffs(table):
            return Thing(name, {"payoffs": Kind(list=True), "actions": Kind(list=True), **more})
        known = _KNOWN[role]
        if role == "task" and name == "random":  # of decision makers, a task of its own for each
            return Thing(name, kinds(random_task))
        name = meant(role, name, known, LIST)
        if role == "measure":
            options = kinds(known[name].function)
            return Thing(name, {"max_levels": Kind(whole=True), **options})
        return Thing(title(known[name]), kinds(known[name]) | more)

    return find


def combinations(
    kind: str,
    found: Sweep,
    build: Callable[[dict[str, Any]], Any],
    label: str | None = None,
    longest: int | None = None,
) -> list[Entry]:
    """An entry of each combination; `build` makes the strategy of a table with single values."""
    entries = []
    for case in found:
        own = found.label(case, label)
        try:
            entries.append(Entry(build(case.value), own, longest))
        except OnlinecalError as error:
            raise InvalidParameter(f"{kind} {own!r}: {error}") from error
    return entries


def lineup(kind: str, tables: Iterable[str | Mapping[str, Any]], folder: Path) -> list[Entry]:
    """Entries of the scenario in `folder`: names, or tables of `name`, maybe `label`, `longest`, and parameters."""
    return [entry for table in tables for entry in _entries(kind, table, folder)]


def _entries(kind: str, table: str | Mapping[str, Any], folder: Path) -> list[Entry]:
    options: dict[str, Any] = {"name": table} if isinstance(table, str) else dict(table)
    name, label, longest = (options.get(key) for key in RESERVED)
    if not isinstance(name, str):
        raise ScenarioError(f"a {kind} has no name: {table!r}; expected one of `{LIST} {kind}s`")
    if label is not None and not (isinstance(label, str) and label.isprintable()):
        raise ScenarioError(f"{kind} {name!r}: label = {label!r}; expected text in one line")
    if longest is not None:
        check_horizon(longest)
    options = {key: value for key, value in options.items() if key not in RESERVED}
    found = sweep(kind, {"name": name, **options}, finder(folder))
    if not found.several:
        return [Entry.of(strategy_of(kind, name, options, folder), label, longest)]

    def build(chosen: dict[str, Any]) -> Any:
        return strategy_of(kind, name, {k: v for k, v in chosen.items() if k != "name"}, folder)

    return combinations(kind, found, build, label, longest)


def _cases(role: str, spec: Any, folder: Path | None) -> list[Any]:
    """The combinations of a table; anything else stands for itself."""
    if not isinstance(spec, Mapping) or not isinstance(spec.get("name"), str):
        return [spec]
    return [case.value for case in sweep(role, spec, finder(folder))]


def measures_of(specs: Iterable[Any], folder: Path | None = None) -> list[Any]:
    """Measures as `Panel.of` takes them, of names, tables and functions; a table may give several."""
    return [measure_of(case, folder) for spec in specs for case in _cases("measure", spec, folder)]


def tasks_of(specs: Iterable[Any], folder: Path | None = None) -> list[Any]:
    """The same for tasks. Those with a table of payoffs have one name: that is put together with what was chosen."""
    found = []
    for spec in specs:
        if not isinstance(spec, Mapping) or not isinstance(spec.get("name"), str):
            found.append(task_of(spec, folder))
            continue
        for case in sweep("task", spec, finder(folder)):
            table = case.value
            if "payoffs" in table and case.text:
                own = ", ".join(part for part in case.text.split(", ") if not part.startswith("response"))
                table = table | ({"name": f"{table['name']}({own.replace(' = ', '=')})"} if own else {})
            found.append(task_of(table, folder))
    return found


def schedules_of(arrivals: Any, delays: Any, folder: Path | None = None) -> list[Schedule]:
    """Each of the arrivals with each of the delays: objects, names, tables or (delays) numbers, or lists of them."""
    return [
        Schedule(when, late)
        for when in _timed("arrivals", "arrival process", arrivals, as_arrivals, Arrivals, folder)
        for late in _timed("delays", "delay", delays, as_delays, Delays, folder)
    ]


def _timed(
    key: str, role: str, given: Any, convert: Callable[[Any], Any], made: type, folder: Path | None
) -> list[Any]:
    single = isinstance(given, str | Mapping | made) or is_number(given)
    specs = [given] if single else list(given)
    if not specs:
        raise InvalidParameter(f"{key} is empty; expected at least one")
    cases: list[Any] = []
    for spec in specs:
        if isinstance(spec, Mapping) and "name" not in spec and not spec.keys().isdisjoint(ENDS):
            cases += ranged(key, spec)
        else:
            cases += _cases(role, spec, folder)
    return [convert(located(case, folder) if folder is not None else case) for case in cases]


def decision_makers_of(specs: Iterable[Any], folder: Path = Path()) -> list[Any]:
    """Decision makers as `People.of` takes them; a table with several values gives several groups."""
    found = []
    for spec in specs:
        if not isinstance(spec, Mapping):
            found.append(decision_maker_of(spec, folder))
            continue
        combined = sweep("decision makers", spec, finder(folder))
        # Tasks and responses are part of the names that decision makers have by themselves.
        named = {"task", "response"}.issuperset(combined.several)
        for case in combined:
            table, label = case.value, spec.get("label")
            if combined.several and (label or not named):
                task = table.get("task")
                label = label or (task.get("name") if isinstance(task, Mapping) else task)
                table = table | {"label": f"{label}, {case.text}"}
            found.append(decision_maker_of(table, folder))
    return found
