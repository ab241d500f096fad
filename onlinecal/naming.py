"""Strategies, measures and tasks by their names in scenarios, of this package or ``module:name``."""

import contextlib
import dataclasses
import inspect
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING
from functools import partial
from pathlib import Path
from typing import Any

from onlinecal.core.errors import (
    LIST,
    InvalidParameter,
    OnlinecalError,
    ScenarioError,
    failure,
    in_one_line,
    meant,
)  # fmt: skip
from onlinecal.core.files import local
from onlinecal.core.modules import is_file, locate
from onlinecal.decisions.responses import Best, DecisionMaker, as_response
from onlinecal.decisions.tasks import is_task
from onlinecal.forecasters import FORECASTERS, as_forecaster
from onlinecal.measures import ALL
from onlinecal.natures import NATURES, Nature, as_nature
from onlinecal.worlds import WORLDS
from onlinecal.worlds.base import as_world, is_world

#: the strategies of each kind by name
STRATEGIES: Mapping[str, Mapping[str, Any]] = {"forecaster": FORECASTERS, "nature": {**NATURES, **WORLDS}}


def decision_maker_of(spec: Any, folder: Path = Path()) -> Any:
    """Decision makers as `People.of` takes them; `folder` is that of the scenario."""
    if not isinstance(spec, Mapping):
        return spec
    found = located(dict(spec), folder)
    return {**found, "task": task_of(found["task"], folder)} if "task" in found else found


def located(value: Any, folder: Path) -> Any:
    """A table with paths from the folder of the scenario."""
    if isinstance(value, dict):
        files = ("file", "folder")
        return {k: _path(v, folder) if k in files else located(v, folder) for k, v in value.items()}
    return value


def _path(file: Any, folder: Path) -> Any:
    return str(folder / local(file)) if isinstance(file, str) and not file.startswith("package:") else file


def measure_of(spec: Any, folder: Path = Path()) -> Any:
    """A measure as `Panel.of` takes it: ``module:function`` is that function."""
    name = foreign(spec)
    if name is None:
        return spec
    function = locate("measure", name, folder)
    if not callable(function):
        raise ScenarioError(f"measure {name!r} is {function!r}; expected a function of a JointDistribution")
    return {"name": function} if isinstance(spec, str) else {**spec, "name": function}


def task_of(spec: Any, folder: Path = Path()) -> Any:
    """A task as `Panel.of` takes it: ``module:name`` is that task, or a function that makes one of the options."""
    name = foreign(spec)
    if name is None:
        return spec
    thing = locate("task", name, folder)
    options = {} if isinstance(spec, str) else {key: value for key, value in spec.items() if key != "name"}
    response = as_response(options.pop("response", Best()))
    if is_task(thing):
        if options:
            raise ScenarioError(f"task {name!r} is a finished task and has no option {next(iter(options))!r}")
        task = thing
    elif callable(thing):
        task = _made_task(name, thing, options)
    else:
        expected = f"{_TASK}, or a function that returns one"
        raise ScenarioError(f"task {name!r} is {in_one_line(thing)}; expected {expected}")
    return task if response == Best() else DecisionMaker(task, response)


_TASK = "a Task (oc.tasks.DecisionTask, or anything with a name and account(gamma))"


def _made_task(name: str, function: Any, options: dict[str, Any]) -> Any:
    try:
        task = function(**options)
    except OnlinecalError as error:
        raise ScenarioError(f"task {name!r}: {error}") from error
    except Exception as error:
        raise ScenarioError(f"task {name!r} cannot be made: {failure(error)}") from error
    if not is_task(task):
        raise ScenarioError(f"task {name!r} returned {in_one_line(task)}; expected {_TASK}")
    return task


def foreign(spec: Any) -> str | None:
    """The name ``module:attribute`` in a name or table; None for anything else."""
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    return name if isinstance(name, str) and (":" in name or is_file(name)) else None


def family(kind: str, name: Any) -> list[str]:
    """The names that ``"all"``, or ``"all FAMILY"``, stands for; none for another name.

    A family is the file of its strategies; those of K classes are one. Those that need a parameter, such as parts of
    their own, are not among them. Those of K classes are not among "all".
    """
    first, _, wanted = name.partition(" ") if isinstance(name, str) else ("", "", "")
    if first != ALL:
        return []
    known: Mapping[str, Any] = FORECASTERS if kind == "forecaster" else NATURES
    families: dict[str, list[str]] = {}
    for each, made in known.items():
        if all(
            f.default is not MISSING or f.default_factory is not MISSING for f in dataclasses.fields(made)
        ):
            own = "classes" if made.of_classes else made.__module__.rpartition(".")[2]
            families.setdefault(own, []).append(each)
    if wanted:
        return families[meant(f"family of {kind}s", wanted.strip(), families)]
    return [each for own in families.values() for each in own if not known[each].of_classes]


def strategy_of(kind: str, name: str, options: Mapping[str, Any] = {}, folder: Path = Path()) -> Any:
    """The forecaster or nature of that name, registered or ``module:Class``, with these parameters."""
    return made_of(kind, class_of(kind, name, folder), options, folder, name)


def class_of(kind: str, name: str, folder: Path = Path()) -> Any:
    """The class, function or object that makes the forecasters or natures of that name."""
    if foreign(name):
        return locate(kind, name, folder)
    return STRATEGIES[kind][meant(kind, name, STRATEGIES[kind], LIST)]


def made_of(kind: str, made: Any, options: Mapping[str, Any], folder: Path, name: str) -> Any:
    """The strategy of a class with these parameters, in which tables with a name are strategies."""
    options = with_strategies(kind, made, options, folder)
    if "file" in options:
        options["file"] = _path(options["file"], folder)
    return as_strategy(kind, made, options, name)


def as_strategy(kind: str, thing: Any, options: Mapping[str, Any] = {}, called: str | None = None) -> Any:
    """A specification from one, or from what makes a plain player or world; a world is a nature here."""
    if kind == "forecaster":
        return as_forecaster(thing, options, called)
    if is_world(thing):
        return as_world(thing, options, called)
    try:
        return as_nature(thing, options, called)
    except InvalidParameter:
        # A function says by what it makes which it is.
        if isinstance(thing, type):
            raise
        with contextlib.suppress(OnlinecalError):
            return as_world(thing, options, called)
        raise


def with_strategies(
    kind: str, made: Any, options: Mapping[str, Any], folder: Path = Path()
) -> dict[str, Any]:
    """Parameters of a class, with strategies in place of tables, and of names where it takes strategies."""
    declared = dataclasses.fields(made) if dataclasses.is_dataclass(made) else ()
    takers = {f.name for f in declared if re.search(r"\b(Forecaster|Nature)\b", str(f.type))}
    return {key: strategies_in(kind, value, folder, key in takers) for key, value in options.items()}


def strategies_in(kind: str, value: Any, folder: Path = Path(), names: bool = False) -> Any:
    """A value of a parameter, with strategies in place of tables with a name and, if `names`, of names."""
    if isinstance(value, list):
        return [strategies_in(kind, item, folder, names) for item in value]
    if names and isinstance(value, str):
        return strategy_of(kind, value, folder=folder)
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return strategy_of(kind, value["name"], {k: v for k, v in value.items() if k != "name"}, folder)
    return value


def found(what: str, name: str) -> tuple[str, Any]:
    """The kind of a strategy, as `kind_of`, and what makes it, by its name; a refusal speaks of `what`."""
    if foreign(name):
        thing = locate(what, name)
        return kind_of(thing), thing
    name = meant(what, name, [each for known in STRATEGIES.values() for each in known], LIST)
    return next((kind, known[name]) for kind, known in STRATEGIES.items() if name in known)


def kind_of(thing: Any) -> str:
    """The kind of a user's class, object or function, which is tried: ``"forecaster"``, ``"nature"`` or ""."""
    made = thing.func if isinstance(thing, partial) else thing
    if inspect.isroutine(made):
        for kind, take in (("forecaster", as_forecaster), ("nature", as_nature), ("nature", as_world)):
            with contextlib.suppress(OnlinecalError):
                take(thing)
                return kind
        return ""
    if isinstance(made, Nature) or (isinstance(made, type) and issubclass(made, Nature)):
        return "nature"
    if any(hasattr(made, method) for method in ("start", "forecast")):
        return "forecaster"
    return "nature" if hasattr(made, "probability") or is_world(thing) else ""


def said_table(where: str, spec: Any) -> Any:
    """A table in braces, as in a scenario, of a word of the command line; anything else as it is."""
    if not isinstance(spec, str) or not spec.lstrip().startswith("{"):
        return spec
    try:
        return tomllib.loads(f"it = {spec}")["it"]
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{where} {spec}: {error}; expected a table such as {{ name = ... }}") from None
