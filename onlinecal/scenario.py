"""Scenario files: strict TOML with forecasters, natures, horizons and measures."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictStr,
    ValidationError,
    model_validator,
)

from onlinecal.core.errors import InvalidParameter, OnlinecalError, ScenarioError, suggestion
from onlinecal.core.writing import scenario_file
from onlinecal.study.gammas import KEEP
from onlinecal.study.planning import Plan
from onlinecal.sweeping import planned, ranged

#: keys of before, and what to do without them
GONE = {"history": "where forecasts take too much memory, use `rounded`, or a forecaster with a grid"}
#: the two ways to say how long
TIMES = "horizon", "horizons"


def _spread(value: Any) -> Any:
    """The horizons of a table with `from`, `to` and `count`, evenly spaced in the logarithm; else the value."""
    if not isinstance(value, dict):
        return value
    try:
        return ranged("", {"spacing": "log"} | value, "count")
    except InvalidParameter as error:
        raise ValueError(str(error).partition("}: ")[2]) from None


#: a name alone, such as "all", is a list of one
Several = Annotated[list[Any], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


def _one_line(value: str) -> str:
    if not value.isprintable():
        raise ValueError("expected text in one line")
    return value


class Scenario(BaseModel):
    """A scenario; the keys of the file are its fields. What stands in them is checked where it is planned."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
    title: Annotated[StrictStr, AfterValidator(_one_line)] = ""
    seed: Any = 0
    runs: Any = 16
    horizon: Any = None
    horizons: Annotated[list[Any] | None, BeforeValidator(_spread)] = None
    checkpoints_per_decade: Any = 8
    measures: Several = []
    tasks: list[Any] = []
    arrivals: Any = "every_unit"
    delays: Any = 0
    decision_makers: list[Any] = []
    keep: Any = KEEP
    laws: Any = False
    forecasters: Several
    natures: Several = []
    worlds: list[Any] = []

    @model_validator(mode="after")
    def _complete(self) -> "Scenario":
        if not self.natures and not self.worlds:
            raise ValueError("natures = []: expected at least one, or one of worlds")
        if (self.horizon is None) == (self.horizons is None):
            raise ValueError("give either horizon (one game, read on the way) or horizons (a game of each)")
        return self


@dataclass(frozen=True)
class Loaded:
    """A scenario ready to play: the model, its text, the cells, and the options that changed some of its keys."""

    scenario: Scenario
    text: str
    cells: Plan
    options: str = ""

    @property
    def meta(self) -> dict[str, str]:
        """The data of the scenario in a results file."""
        about = {"name": self.scenario.name, "title": self.scenario.title, "scenario": self.text}
        return about | ({"options": self.options} if self.options else {})


def load(path: Path, changed: Mapping[str, Any] | None = None) -> Loaded:
    """Reads a scenario file and plans its cells; nothing is played.

    Parameters
    ----------
    path : Path
        A file, or the name of a scenario that the package brings along.
    changed : mapping, optional
        Key → value in place of the file's; `horizon` or `horizons` takes the place of both.

    Raises
    ------
    ScenarioError
        The file cannot be read or is no TOML. A key is unknown, or a value out of range. It names a strategy, measure
        or task that does not exist or refuses its parameters. One line that says where.
    """
    changed = changed or {}
    path = scenario_file(path)
    text = _read(path)
    raw = _parsed(path, text)
    if not changed.keys().isdisjoint(TIMES):
        raw = {key: value for key, value in raw.items() if key not in TIMES}
    try:
        scenario = Scenario.model_validate({"name": path.stem, **raw, **changed})
        cells = _cells(scenario, path.parent)
    except (ValidationError, OnlinecalError) as error:
        said = _first_problem(error) if isinstance(error, ValidationError) else str(error)
        # A value of an option is not in the file, and is named by the command.
        of_option = re.split(r"\W", said, maxsplit=1)[0] in changed
        raise ScenarioError(said if of_option else f"{path}: {said}") from None
    return Loaded(scenario, text, cells, _options(changed))


def _read(path: Path) -> str:
    try:
        if path.is_char_device() or path.is_block_device():  # it need not end
            raise ValueError("it is a device; expected a scenario file")
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError(f"{path} is not a text file in UTF-8") from None
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{path} is not valid TOML: {error}") from None


def _options(changed: Mapping[str, Any]) -> str:
    """As they were given in the command line: ``--runs 4 --seed 2``."""
    found = []
    for key, value in sorted(changed.items()):
        option = "horizon" if key in TIMES else key
        found += [f"--{option} {each}" for each in (value if isinstance(value, list) else [value])]
    return " ".join(found)


def _cells(scenario: Scenario, folder: Path) -> Plan:
    given = dict(scenario)
    for key in ("name", "title", "worlds", *TIMES):
        del given[key]
    given |= {
        "natures": [*scenario.natures, *scenario.worlds],
        "per_decade": given.pop("checkpoints_per_decade"),
    }
    horizons = scenario.horizons if scenario.horizon is None else [scenario.horizon]
    return planned(**given, horizons=horizons or [], ends=scenario.horizon is None, folder=folder)


def _first_problem(error: ValidationError) -> str:
    """The first of pydantic's complaints, in one line of ours; a key that is misspelt before one that is missing."""
    problem = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    where = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        if where in GONE:
            return f"the key {where!r} is gone; {GONE[where]}"
        return f"unknown key {where!r}{suggestion(where, Scenario.model_fields)}"
    if problem["type"] == "missing":
        return f"the key {where!r} is missing"
    said = _WORDS.get(problem["type"], problem["msg"].removeprefix("Value error, "))
    return f"{where} = {problem['input']!r}; {said}" if where else said


#: our wording of pydantic's complaints
_WORDS = {
    "string_type": "expected text",
    "list_type": "expected a list",
    "string_pattern_mismatch": "expected letters, digits, _ . and -, a letter or digit first, at most 100",
}
