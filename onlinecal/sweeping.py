"""Several values of a parameter, in tables of line-ups, measures, tasks, schedules and decision makers.

``{each = [a, b]}`` and ``{from = a, to = b, steps = n}`` are several values; a bare list is one value.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import product
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from onlinecal.core.errors import LIST, InvalidParameter, OnlinecalError, ScenarioError, suggestion
from onlinecal.core.strategy import strategy_label, title
from onlinecal.core.validation import choice, integer, is_number, is_whole, twice
from onlinecal.decisions.people import People
from onlinecal.engine.horizon import check_horizon
from onlinecal.naming import (
    as_strategy,
    class_of,
    decision_maker_of,
    family,
    located,
    made_of,
    measure_of,
    task_of,
)
from onlinecal.schedules import Schedule, as_arrivals, as_delays
from onlinecal.study.asked import as_list
from onlinecal.study.panel import Panel
from onlinecal.study.planning import Entry, Plan, of_classes, plan

#: characters of a label, and of a value in one, at most where that is possible; longer values are numbered
WIDTH, VALUE = 60, 30
#: combinations, and values of a range, at most
MOST = 10**6


class Case(NamedTuple):
    """A value, or what is made of a table with single values; and the chosen values, each in words."""

    value: Any
    chosen: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return ", ".join(self.chosen)


class Named(NamedTuple):
    """The meaning of a name: its title, and the maker of a thing from a table with single values."""

    title: str
    make: Callable[[dict[str, Any]], Any]


#: table → the meaning of its name
Resolve = Callable[[Mapping[str, Any]], Named]


class Sweep(NamedTuple):
    """The things made of all combinations of the values in a table; those of its last parameter change first."""

    title: str
    #: the title, with the parameters that have one value: ``delayed (of=constant)``
    full: str
    cases: list[Case]

    def entries(self, label: str | None = None, longest: int | None = None) -> list[Entry]:
        """Each with the label, or the title, and its chosen values; with the fixed ones if all labels have room."""
        width = len(self.full) + 2 + max(len(case.text) for case in self.cases)
        own = label or (self.full if width <= WIDTH else self.title)
        return [
            Entry(case.value, f"{own}, {case.text}", longest)
            if case.chosen
            else Entry.of(case.value, label, longest)
            for case in self.cases
        ]


def sweep(role: str, table: Mapping[str, Any], resolve: Resolve, path: str = "") -> Sweep:
    """The combinations of a table. Tables with a name in it come first; `path` leads to them: ``"of."``."""
    called, make = resolve(table)
    try:
        found = {
            key: ("", [Case(value)]) if key == "name" else _values(role, f"{path}{key}", value, resolve)
            for key, value in table.items()
        }
        combined = list(_product([cases for _, cases in found.values()]))
    except InvalidParameter as error:
        where = f"{role} {table['name']!r}: " if "name" in table else f"{role}: "
        raise InvalidParameter(f"{'' if path else where}{error}") from None
    cases = []
    for values, chosen in combined:
        try:
            cases.append(Case(make(dict(zip(found, values, strict=True))), chosen))
        except OnlinecalError as error:
            if not chosen:
                raise
            raise InvalidParameter(f"{role} {', '.join((called, *chosen))!r}: {error}") from error
    fixed = ", ".join(f"{key}={shown}" for key, (shown, _) in found.items() if shown)
    return Sweep(called, f"{called} ({fixed})" if fixed else called, cases)


def _product(choices: Sequence[Sequence[Case]]) -> Iterator[tuple[list[Any], tuple[str, ...]]]:
    """The values of each combination, and those that were chosen in words."""
    if (size := math.prod(map(len, choices))) > MOST:
        raise InvalidParameter(f"{size:.3g} combinations of values; expected at most 10^6")
    for combined in product(*choices):
        yield [case.value for case in combined], sum((case.chosen for case in combined), ())


def _values(role: str, name: str, value: Any, resolve: Resolve) -> tuple[str, list[Case]]:
    """The fixed part of a parameter, in words, and its values."""
    if _has_name(value):
        inner = sweep(role, value, resolve, f"{name}.")
        return inner.full, inner.cases
    if isinstance(value, list | tuple):
        items = [_values(role, f"{name}.{i}", item, resolve) for i, item in enumerate(value)]
        shown = f"[{', '.join(text or '…' for text, _ in items)}]"
        return shown, [Case(*each) for each in _product([cases for _, cases in items])]
    if isinstance(value, Mapping) and value.keys() == {"each"}:
        given = value["each"].tolist() if hasattr(value["each"], "tolist") else value["each"]
        if not isinstance(given, list | tuple | range):
            raise InvalidParameter(f"{name} = {dict(value)!r}; expected each = a list of values")
        several = [case.value for each in given for case in _values(role, name, each, resolve)[1]]
    elif isinstance(value, Mapping) and not value.keys().isdisjoint(("from", "to")):
        several = ranged(name, value)
    else:
        return _shown(value, quoted=True), [Case(value)]
    texts = _texts(name, several)
    return "", [Case(each, (f"{name} = {text}",)) for each, text in zip(several, texts, strict=True)]


def _texts(name: str, values: Sequence[Any]) -> list[str]:
    """The values in labels: of a long path the file alone, other long ones by number."""
    if not values:
        raise InvalidParameter(f"{name} is an empty list; expected at least one value")
    full = [_shown(value) for value in values]
    if (again := twice(full)) is not None:
        raise InvalidParameter(f"{name} = {again} is given twice; expected each value once")
    short = [PurePath(t).name if isinstance(v, str) and len(t) > VALUE and "/" in t else t
             for v, t in zip(values, full, strict=True)]  # fmt: skip
    short = short if len(set(short)) == len(short) else full
    # The names of strategies are kept, for a number would say too little.
    return [
        f"#{i}" if len(text) > VALUE and not (_has_name(value) or dataclasses.is_dataclass(value)) else text
        for i, (value, text) in enumerate(zip(values, short, strict=True), 1)
    ]


def _shown(value: Any, quoted: bool = False) -> str:
    """A value in a label."""
    if _has_name(value):
        fixed = ", ".join(f"{key}={_shown(item, True)}" for key, item in value.items() if key != "name")
        return f"{_words(value['name'])} ({fixed})" if fixed else _words(value["name"])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return strategy_label(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_shown(item, quoted) for item in value)}]"
    if isinstance(value, str):
        return f'"{value}"' if quoted else value
    if is_number(value):
        return f"{value:g}" if float(f"{value:g}") == value else str(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _has_name(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("name"), str)


def _words(name: str) -> str:
    return name.rpartition(":")[2].replace("_", " ")


def ranged(name: str, spec: Mapping[str, Any], many: str = "steps") -> list[int | float]:
    """The numbers of a range, ascending: integers between integers if all are, and rounded to them in the logarithm.

    How many there are stands under the key `many`.

    >>> ranged("q", {"from": 0.1, "to": 0.5, "steps": 5})
    [0.1, 0.2, 0.3, 0.4, 0.5]
    >>> ranged("m", {"from": 10, "to": 1000, "steps": 5, "spacing": "log"})
    [10, 32, 100, 316, 1000]
    """
    log = check_range(name, spec, ("from", "to", many))
    last = integer(f"{name} = {dict(spec)!r}", many, spec[many], 2, MOST) - 1
    ends = spec["from"], spec["to"]
    # As decimal numbers: 0.3 is meant, and not 0.30000000000000004.
    low, high = (Decimal(int(end)) if is_whole(end) else Decimal(repr(float(end))) for end in ends)
    inner = [low * (high / low) ** (Decimal(i) / last) if log else low + (high - low) * i / last
             for i in range(1, last)]  # fmt: skip
    if all(map(is_whole, ends)) and (log or all(value == int(value) for value in inner)):
        return list(dict.fromkeys(round(value) for value in (low, *inner, high)))
    return [float(low), *(float(f"{value:.15g}") for value in inner), float(high)]


def check_range(name: str, spec: Mapping[str, Any], keys: Sequence[str]) -> bool:
    """Refuse a range without these keys, with others but spacing, or without an extent; whether it is logarithmic."""
    said = f"{name} = {dict(spec)!r}"
    for key in spec:
        if key not in (*keys, "spacing"):
            raise InvalidParameter(
                f"{said}: a range has no {key!r}{suggestion(str(key), (*keys, 'spacing'))}"
            )
    for key in keys:
        if key not in spec:
            raise InvalidParameter(f"{said}: a range needs {key!r}")
        if not (is_number(spec[key]) and math.isfinite(spec[key])):
            raise InvalidParameter(f"{said}: {key} = {spec[key]!r}; expected a finite number")
    if not spec["from"] < spec["to"]:
        raise InvalidParameter(f"{said}: expected from < to")
    log = choice(said, "spacing", spec.get("spacing", "linear"), ("linear", "log")) == "log"
    if log and spec["from"] <= 0:
        raise InvalidParameter(f"{said}: expected from > 0 with spacing = 'log'")
    return log


@contextmanager
def lists_are_values() -> Iterator[None]:
    """Adds to a refusal of a list how several values are written."""
    try:
        yield
    except OnlinecalError as error:
        if re.search(r"\w = [\[(]", str(error)) and " declares " not in str(error):
            raise type(error)(f"{error}; a list is one value, for several write {{each = […]}}") from error
        raise


def strategies(kind: str, folder: Path = Path()) -> Resolve:
    """The forecasters or natures of tables."""

    def resolve(table: Mapping[str, Any]) -> Named:
        name = table["name"]
        found = class_of(kind, name, folder)
        return Named(title(found), lambda t: made_of(kind, found, _without(t, "name"), folder, name))

    return resolve


def _without(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _tables(table: Mapping[str, Any]) -> Named:
    """Tables as they are: their names are found where they are taken."""
    return Named(_words(table["name"]) if _has_name(table) else "", dict)


def lineup(kind: str, given: Any, folder: Path = Path()) -> list[Entry]:
    """Entries of strategies: names, tables, entries, things that make players, or lists of them.

    A table has `name`, maybe `label` and `longest`, and parameters. Files are sought in the `folder` of the scenario.
    ``"all"``, or ``"all hedging"`` of a family, stands for those that need no parameter.
    """
    several = given if isinstance(given, list | tuple) else family(kind, given)
    if several or isinstance(given, list | tuple):
        return [entry for each in several for entry in lineup(kind, each, folder)]
    if isinstance(given, Entry):
        return [given]
    if not isinstance(given, str | Mapping):
        return [Entry.of(as_strategy(kind, given))]
    table: Mapping[str, Any] = {"name": given} if isinstance(given, str) else given
    name, label, longest = (table.get(key) for key in ("name", "label", "longest"))
    if not isinstance(name, str):
        raise ScenarioError(f"a {kind} has no name: {given!r}; expected one of `{LIST} {kind}s`")
    if label is not None and not (isinstance(label, str) and label.isprintable()):
        raise ScenarioError(f"{kind} {name!r}: label = {label!r}; expected text in one line")
    if longest is not None:
        check_horizon(longest)
    return sweep(kind, _without(table, "label", "longest"), strategies(kind, folder)).entries(label, longest)


def planned(
    forecasters: Any, natures: Any, *, horizons: Sequence[Any], seed: Any, measures: Any, tasks: Any, arrivals: Any,
    delays: Any, decision_makers: Any, laws: bool = False, folder: Path = Path(), **others: Any,
) -> Plan:  # fmt: skip
    """The cells of what `play` takes, or of a scenario in a folder; `others` are arguments of `plan`."""
    rounds = max((int(t) for t in horizons if is_whole(t)), default=None)
    with lists_are_values():
        who, whom = lineup("forecaster", forecasters, folder), lineup("nature", natures, folder)
        makers = decision_makers_of(as_list(decision_makers), folder)
        people = People.of(makers, seed if is_whole(seed) else 0)
        given = measures_of(as_list(measures), folder), tasks_of(as_list(tasks), folder)
        panel = Panel.of(*given, rounds=rounds, classes=of_classes(whom), laws=laws)
        schedules = schedules_of(arrivals, delays, folder)
    return plan(
        who, whom, horizons=horizons, seed=seed, panel=panel, schedules=schedules, people=people, **others
    )


def _cases(role: str, spec: Any) -> list[Case]:
    """The combinations of a table; anything else stands for itself."""
    return sweep(role, spec, _tables).cases if isinstance(spec, Mapping) else [Case(spec)]


def measures_of(specs: Iterable[Any], folder: Path = Path()) -> list[Any]:
    """Measures as `Panel.of` takes them, of names, tables and functions; a table may give several."""
    return [measure_of(case.value, folder) for spec in specs for case in _cases("measure", spec)]


def tasks_of(specs: Iterable[Any], folder: Path = Path()) -> list[Any]:
    """The same for tasks. Those with a table of payoffs have one name: that is put together with what was chosen."""
    found = []
    for case in (case for spec in specs for case in _cases("task", spec)):
        table, own = case.value, [text for text in case.chosen if not text.startswith("response")]
        if own and "payoffs" in table:
            table = {**table, "name": f"{table['name']}({', '.join(own).replace(' = ', '=')})"}
        found.append(task_of(table, folder))
    return found


def schedules_of(arrivals: Any, delays: Any, folder: Path = Path()) -> list[Schedule]:
    """Each of the arrivals with each of the delays: objects, names, tables or (delays) numbers, or lists of them."""
    return [
        Schedule(when, late)
        for when in _timed("arrivals", arrivals, as_arrivals, folder)
        for late in _timed("delays", delays, as_delays, folder)
    ]


def _timed(key: str, given: Any, convert: Callable[[Any], Any], folder: Path) -> list[Any]:
    if not (specs := [*as_list(given)]):
        raise InvalidParameter(f"{key} is empty; expected at least one")
    cases = [case.value for spec in specs for case in _values(key, key, spec, _tables)[1]]
    return [convert(located(case, folder)) for case in cases]


def decision_makers_of(specs: Iterable[Any], folder: Path = Path()) -> list[Any]:
    """Decision makers as `People.of` takes them; a table with several values gives several groups."""
    found = []
    for spec in specs:
        for case in _cases("decision makers", spec):
            table, label = case.value, spec.get("label") if case.chosen else None
            # Tasks and responses are part of the names that decision makers have by themselves.
            if label or not all(text.startswith(("task", "response")) for text in case.chosen):
                task = table.get("task")
                label = label or (task.get("name") if isinstance(task, Mapping) else task)
                table = {**table, "label": f"{label}, {case.text}"}
            found.append(decision_maker_of(table, folder))
    return found
