"""Scenario files: strict TOML that says who plays whom, for how long, and what is measured."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    StrictInt,
    StrictStr,
    Tag,
    ValidationError,
    model_validator,
)

from onlinecal.core.errors import (
    LIST,
    InvalidParameter,
    OnlinecalError,
    ScenarioError,
    UnknownName,
    failure,
    in_one_line,
    suggestion,
)
from onlinecal.core.sources import named_in, namers
from onlinecal.core.strategy import build
from onlinecal.decision_makers.responses import Best, DecisionMaker, as_response
from onlinecal.decision_makers.tenures import People
from onlinecal.decisions.base import is_task
from onlinecal.engine.horizon import LONGEST, check_horizon
from onlinecal.forecasters import FORECASTERS, as_forecaster
from onlinecal.natures import NATURES, Nature, as_nature
from onlinecal.schedules import Schedule, as_arrivals, as_delays
from onlinecal.study.gammas import KEEP, Keep, check_keep
from onlinecal.study.panel import Panel
from onlinecal.study.plan import Cell, Entry, plan

Horizon = Annotated[StrictInt, Field(ge=1, le=LONGEST)]


class Horizons(BaseModel):
    """A geometric list of horizons: `first`, …, `last`, evenly spaced in the logarithm."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    first: Annotated[int, Field(alias="from", ge=1, le=LONGEST, strict=True)]
    last: Annotated[int, Field(alias="to", ge=1, le=LONGEST, strict=True)]
    count: Annotated[int, Field(ge=2, le=1000, strict=True)]

    @model_validator(mode="after")
    def _as_many_as_said(self) -> Horizons:
        if self.first > self.last:
            raise ValueError(f"from = {self.first} is above to = {self.last}; expected from ≤ to")
        if (there := self.last - self.first + 1) < self.count:
            raise ValueError(
                f"from {self.first} to {self.last} there are {there} horizons, fewer than count = {self.count}"
            )
        return self

    def times(self) -> list[int]:
        """The horizons, whole rounds, each once."""
        ratio = self.last / self.first
        return sorted({round(self.first * ratio ** (i / (self.count - 1))) for i in range(self.count)})


def _form(value: Any) -> str:
    """Which of the two ways to write horizons this is, so that an error speaks of that one."""
    return "(table)" if isinstance(value, dict | Horizons) else "(list)"


Times = Annotated[
    Annotated[list[Horizon], Tag("(list)")] | Annotated[Horizons, Tag("(table)")], Discriminator(_form)
]


def _name_or_table(value: Any) -> Any:
    if not isinstance(value, str | dict):
        raise ValueError("expected a name, or a table with a name")
    return value


Named = Annotated[Any, PlainValidator(_name_or_table)]


def _delay(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | dict | int | float):
        raise ValueError("expected a number, a name, or a table with a name")
    return value


def _delays(value: Any) -> Any:
    return [_delay(each) for each in value] if isinstance(value, list) else [_delay(value)]


Delays = Annotated[Any, PlainValidator(_delays)]


def _keep(value: Any) -> Keep:
    try:
        return check_keep(value)
    except InvalidParameter as error:
        raise ValueError(str(error).partition("; ")[2]) from None


class Scenario(BaseModel):
    """A validated scenario; the keys of the file are its fields."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    title: StrictStr = ""
    seed: StrictInt = 0
    runs: Annotated[int, Field(ge=1, le=100_000, strict=True)] = 16
    horizon: Horizon | None = None
    horizons: Times | None = None
    checkpoints_per_decade: Annotated[int, Field(ge=1, le=100, strict=True)] = 8
    measures: list[Named] = []
    tasks: list[Named] = []
    arrivals: Named = "every_unit"
    delays: Delays = [0]
    decision_makers: list[dict[str, Any]] = []
    keep: Annotated[Any, PlainValidator(_keep)] = KEEP
    forecasters: Annotated[list[Named], Field(min_length=1)]
    natures: Annotated[list[Named], Field(min_length=1)]

    @model_validator(mode="after")
    def _one_kind_of_horizon(self) -> Scenario:
        if (self.horizon is None) == (self.horizons is None):
            raise ValueError(
                "give either horizon (one game, read on the way) or horizons (a game of each), one of the two"
            )
        return self


@dataclass(frozen=True)
class Loaded:
    """A scenario ready to play: the model, its text, and the cells."""

    scenario: Scenario
    text: str
    cells: list[Cell]

    @property
    def meta(self) -> dict[str, str]:
        """What a results file says of its scenario."""
        return {"name": self.scenario.name, "title": self.scenario.title, "scenario": self.text}


def load(path: Path) -> Loaded:
    """Reads a scenario file and plans its cells; nothing is played.

    Raises
    ------
    ScenarioError
        The file cannot be read, is no TOML, has an unknown key, a value of the wrong kind or out of range, or names a
        strategy, measure or task that does not exist or refuses its parameters. One line that says where.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path} is not a text file in UTF-8") from None
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path} is not valid TOML: {error}") from None
    try:
        scenario = Scenario.model_validate({"name": path.stem} | raw)
    except ValidationError as error:
        raise ScenarioError(f"{path}: {_first_problem(error)}") from None
    try:
        cells = _cells(scenario, path.parent)
    except OnlinecalError as error:
        raise ScenarioError(f"{path}: {error}") from None
    return Loaded(scenario, text, cells)


def _cells(scenario: Scenario, folder: Path) -> list[Cell]:
    horizons = scenario.horizons
    times = (
        [scenario.horizon]
        if horizons is None
        else horizons.times()
        if isinstance(horizons, Horizons)
        else horizons
    )
    horizons = [t for t in times if t is not None]
    return plan(
        [_entry("forecaster", FORECASTERS, table, folder) for table in scenario.forecasters],
        [_entry("nature", NATURES, table, folder) for table in scenario.natures],
        horizons=horizons,
        runs=scenario.runs,
        seed=scenario.seed,
        panel=Panel.of(
            [measure_of(spec, folder) for spec in scenario.measures],
            [task_of(spec, folder) for spec in scenario.tasks],
            rounds=max(horizons, default=None),
        ),
        per_decade=scenario.checkpoints_per_decade,
        schedules=_schedules(scenario, folder),
        people=People.of(
            [decision_maker_of(table, folder) for table in scenario.decision_makers], scenario.seed
        ),
        keep=scenario.keep,
    )


def _schedules(scenario: Scenario, folder: Path) -> list[Schedule]:
    """One for each of the delays."""
    if not scenario.delays:
        raise InvalidParameter("delays is empty; expected at least one")
    arrivals = as_arrivals(_located(scenario.arrivals, folder))
    return [Schedule(arrivals, as_delays(_located(delay, folder))) for delay in scenario.delays]


def decision_maker_of(spec: Any, folder: Path = Path()) -> Any:
    """Decision makers as `People.of` takes them: files are where the scenario lies, tasks may be ``module:name``."""
    if not isinstance(spec, Mapping):
        return spec
    located = _located(dict(spec), folder)
    return {**located, "task": task_of(located["task"], folder)} if "task" in located else located


def _located(value: Any, folder: Path) -> Any:
    """A table whose paths are meant from where the scenario lies, wherever the command is given."""
    if isinstance(value, dict):
        return {
            key: _path(item, folder) if key == "file" else _located(item, folder)
            for key, item in value.items()
        }
    return value


def _path(file: Any, folder: Path) -> Any:
    return (
        str(folder / Path(file).expanduser())
        if isinstance(file, str) and not file.startswith("package:")
        else file
    )


def measure_of(spec: Any, folder: Path | None = None) -> Any:
    """A measure as `Panel.of` takes it: ``module:function`` is that function. `folder` is where the scenario lies."""
    name = _foreign(spec)
    if name is None:
        return spec
    function = locate("measure", name, folder)
    if not callable(function):
        raise ScenarioError(f"measure {name!r} is {function!r}; expected a function of a JointDistribution")
    return {"name": function} if isinstance(spec, str) else {**spec, "name": function}


def task_of(spec: Any, folder: Path | None = None) -> Any:
    """A task as `Panel.of` takes it: ``module:name`` is that task, or what that function makes of the options."""
    name = _foreign(spec)
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
        raise ScenarioError(
            f"task {name!r} is {in_one_line(thing)}; expected {_TASK}, or a function that returns one"
        )
    return task if response == Best() else DecisionMaker(task, response)


_TASK = "a Task (oc.tasks.DecisionTask, or anything with a name and account(gamma))"


def _made_task(name: str, function: Any, options: dict[str, Any]) -> Any:
    try:
        inspect.signature(function).bind(**options)
    except TypeError as error:
        raise ScenarioError(f"task {name!r}: {error}") from None
    try:
        task = function(**options)
    except OnlinecalError as error:
        raise ScenarioError(f"task {name!r}: {error}") from error
    except Exception as error:
        raise ScenarioError(f"task {name!r} cannot be made: {failure(error)}") from error
    if not is_task(task):
        raise ScenarioError(f"task {name!r} returned {in_one_line(task)}; expected {_TASK}")
    for module in namers(function):
        named_in(task, module)  # so that its source counts, whatever kind of task it is
    return task


def _foreign(spec: Any) -> str | None:
    """The name ``module:attribute`` in a name or table; None for anything else."""
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    return name if isinstance(name, str) and ":" in name else None


def _entry(kind: str, known: Mapping[str, Any], table: str | dict[str, Any], folder: Path) -> Entry:
    """A strategy from its table: `name`, perhaps a `label` and the `longest` horizon, and its parameters.

    A bare name is a table with nothing else.
    """
    options: dict[str, Any] = {"name": table} if isinstance(table, str) else dict(table)
    name, label, longest = (options.pop(key, None) for key in ("name", "label", "longest"))
    if not isinstance(name, str):
        raise ScenarioError(
            f"a {kind} has no name: {table!r}; expected name = one of those that `{LIST} {kind}s` shows"
        )
    if label is not None and not isinstance(label, str):
        raise ScenarioError(f"{kind} {name!r}: label = {label!r}; expected text")
    if longest is not None:
        check_horizon(longest)
    return Entry.of(_strategy(kind, known, name, options, folder), label, longest)


def _strategy(kind: str, known: Mapping[str, Any], name: str, options: dict[str, Any], folder: Path) -> Any:
    if "file" in options:
        options["file"] = _path(options["file"], folder)
    # Strategies that are made of others have tables with a name among their parameters.
    options = {key: _inner(kind, known, value, folder) for key, value in options.items()}
    return _plugin(kind, name, options, folder) if ":" in name else build(kind, known, name, options)


def _inner(kind: str, known: Mapping[str, Any], value: Any, folder: Path) -> Any:
    if isinstance(value, list):
        return [_inner(kind, known, item, folder) for item in value]
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return _strategy(kind, known, value["name"], {k: v for k, v in value.items() if k != "name"}, folder)
    return value


def named(kind: str, name: str) -> Any:
    """The forecaster or nature of that name, registered or ``module:Class``, with its default parameters.

    Raises
    ------
    UnknownName, InvalidParameter
        There is none, or it has parameters that must be given.
    """
    known = {"forecaster": FORECASTERS, "nature": NATURES}[kind]
    return _strategy(kind, known, name, {}, Path())


def locate(kind: str, name: str, folder: Path | None = None) -> Any:
    """The class or function ``module:attribute`` of somebody else's; `folder` is where the scenario lies."""
    module, _, attribute = name.partition(":")
    # A console script does not look for modules where it is called; people keep their plug-ins there.
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    if folder is not None and str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))
    # Python takes what it compiled before for the module where its source has been edited within the same second to the
    # same length: so that what is played is what is written, nothing compiled is kept.
    compiled, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loaded = importlib.import_module(module)
    except ImportError as error:
        raise UnknownName(f"{kind} {name!r}: {error}") from None
    except (Exception, SystemExit) as error:  # it runs whatever somebody wrote
        raise InvalidParameter(
            f"{kind} {name!r}: module {module!r} cannot be imported: {failure(error)}"
        ) from None
    finally:
        sys.dont_write_bytecode = compiled
    try:
        thing = getattr(loaded, attribute)
    except AttributeError:
        raise UnknownName(f"{kind} {name!r}: module {module!r} has no {attribute!r}") from None
    named_in(thing, loaded)
    return thing


def _plugin(kind: str, name: str, options: dict[str, Any], folder: Path) -> Any:
    """The strategy ``module:Class`` of somebody else's, which may be anything that `onlinecal.play` takes."""
    take = as_forecaster if kind == "forecaster" else as_nature
    return take(locate(kind, name, folder), options, name)


def kind_of(thing: Any) -> str:
    """Whether somebody's class, object or function is a forecaster or a nature: ``"forecaster"``, ``"nature"`` or "".

    A function is tried.
    """
    made = thing.func if isinstance(thing, partial) else thing
    if inspect.isroutine(made):
        for kind, take in (("forecaster", as_forecaster), ("nature", as_nature)):
            with contextlib.suppress(OnlinecalError):
                take(thing)
                return kind
        return ""
    if isinstance(made, Nature) or (isinstance(made, type) and issubclass(made, Nature)):
        return "nature"
    if any(hasattr(made, method) for method in ("start", "forecast")):
        return "forecaster"
    return "nature" if hasattr(made, "probability") else ""


def _first_problem(error: ValidationError) -> str:
    """The first of pydantic's complaints, in one line of ours."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"] if part not in ("(list)", "(table)"))
    if problem["type"] == "extra_forbidden":
        key = str(problem["loc"][-1])
        known = [
            f.alias or n
            for n, f in (Horizons if "(table)" in problem["loc"] else Scenario).model_fields.items()
        ]
        return f"unknown key {key!r}{suggestion(key, known)}"
    if problem["type"] == "missing":
        return f"the key {where!r} is missing"
    value, kind = problem["input"], problem["type"]
    message = problem["msg"].removeprefix("Value error, ")
    if kind in _WORDS:
        message = "expected " + _WORDS[kind].format(**problem.get("ctx", {}))
        if kind.startswith("int") and isinstance(value, float) and value.is_integer():
            message += f"; write {value:.0f}"
    if not where:
        return message
    return f"{where} = {value!r}: {message[0].lower()}{message[1:]}"


#: our wording of pydantic's complaints
_WORDS = {
    "int_type": "an integer",
    "string_type": "text",
    "list_type": "a list",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "too_short": "at least one",
    "string_pattern_mismatch": "letters, digits, _ . and -, a letter or digit first",
}
