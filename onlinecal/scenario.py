"""Scenario files: strict TOML with forecasters, natures, horizons and measures."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from onlinecal.core.errors import InvalidParameter, OnlinecalError, ScenarioError, suggestion
from onlinecal.core.validation import integer
from onlinecal.core.writing import scenario_file
from onlinecal.study.asked import as_list
from onlinecal.study.gammas import KEEP
from onlinecal.study.planning import Plan
from onlinecal.sweeping import planned, ranged

#: keys of before, and what to do without them
GONE = {"history": "where forecasts take too much memory, use `rounded`, or a forecaster with a grid"}
#: the two ways to say how long
TIMES = "horizon", "horizons"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class Scenario:
    """A scenario; the keys of the file are its fields. What stands in them is checked where it is planned."""

    name: str
    title: str = ""
    seed: Any = 0
    runs: Any = 16
    horizon: Any = None
    horizons: Any = None
    checkpoints_per_decade: Any = 8
    measures: Any = ()
    tasks: Any = ()
    arrivals: Any = "every_unit"
    delays: Any = 0
    decision_makers: Any = ()
    keep: Any = KEEP
    laws: Any = False
    forecasters: Any = ()
    natures: Any = ()
    worlds: Any = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Scenario":
        """The scenario with these keys; InvalidParameter for others, and for values that cannot be theirs."""
        known = [field.name for field in fields(cls)]
        for key in given:
            if key in GONE:
                raise InvalidParameter(f"the key {key!r} is gone; {GONE[key]}")
            if key not in known:
                raise InvalidParameter(f"unknown key {key!r}{suggestion(key, known)}")
        made = cls(**given)
        for key, good, said in (
            ("name", NAME.fullmatch, "letters, digits, _ . and -, a letter or digit first, at most 100"),
            ("title", str.isprintable, "text in one line"),
        ):
            value = getattr(made, key)
            if not (isinstance(value, str) and good(value)):
                raise InvalidParameter(f"{key} = {value!r}; expected {said}")
        # It has another name where it is planned.
        integer("", "checkpoints_per_decade", made.checkpoints_per_decade, 1, 100)
        if (made.horizon is None) == (made.horizons is None):
            raise InvalidParameter(
                "give either horizon (one game, read on the way) or horizons (a game of each)"
            )
        return made

    def plan(self, folder: Path) -> Plan:
        """The cells; files are sought in the folder. Horizons of a table are evenly spaced in the logarithm."""
        horizons = [self.horizon] if self.horizons is None else self.horizons
        if isinstance(horizons, dict):
            horizons = ranged("horizons", {"spacing": "log"} | horizons, "count")
        return planned(
            self.forecasters, [*as_list(self.natures), *as_list(self.worlds)], horizons=[*as_list(horizons)],
            ends=self.horizon is None, seed=self.seed, runs=self.runs, measures=self.measures, tasks=self.tasks,
            arrivals=self.arrivals, delays=self.delays, decision_makers=self.decision_makers, keep=self.keep,
            laws=self.laws, per_decade=self.checkpoints_per_decade, folder=folder,
        )  # fmt: skip


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
        scenario = Scenario.of({"name": path.stem, **raw, **changed})
        cells = scenario.plan(path.parent)
    except OnlinecalError as error:
        said = str(error)
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
