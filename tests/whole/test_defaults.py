"""Defaults: of Python as their docstrings say, of commands and scenarios as in Python."""

import importlib
import inspect
import pkgutil
import re
from dataclasses import fields
from pathlib import Path

import pytest

import onlinecal as oc
from onlinecal import cli
from onlinecal.exploit.reply import exploit
from onlinecal.exploit.search import search
from onlinecal.games.solving import solve
from onlinecal.logs.classes import evaluate_classes
from onlinecal.scenario import Scenario

#: names of parameters and their defaults, in a docstring
SAID = re.compile(r'^ +([\w, ]+) : [^\n]*?default ("[^"]*"|[^\n,(]+)', re.MULTILINE)


def documented():
    """Each function, method and class with the names of parameters and what its docstring says of their defaults."""
    for module in pkgutil.walk_packages(oc.__path__, "onlinecal."):
        for thing in vars(importlib.import_module(module.name)).values():
            if getattr(thing, "__module__", "") == module.name and callable(thing):
                inner = vars(thing).values() if inspect.isclass(thing) else ()
                for each in (thing, *filter(inspect.isfunction, inner)):
                    if said := SAID.findall(each.__doc__ or ""):
                        yield f"{module.name}:{each.__qualname__}", each, said


def test_they_are_those_of_docstrings():
    found = list(documented())
    assert len(found) > 100
    for name, each, said in found:
        parameters = inspect.signature(each).parameters
        for names, values in said:
            of = names.split(", ")
            parts = values.split(" and ") * (len(of) if " and " not in values else 1)
            for one, value in zip(of, parts, strict=True):
                expected = eval(value.replace("−", "-").replace("^", "**") if '"' not in value else value)
                assert parameters[one].default == expected, (name, one)


def test_those_of_scenarios_are_those_of_play():
    known = inspect.signature(oc.play).parameters
    others = {"checkpoints_per_decade": "per_decade"}
    mine = {others.get(each.name, each.name): each.default for each in fields(Scenario)}
    assert mine.keys() - known.keys() == {"name", "title", "horizons", "forecasters", "natures", "worlds"}
    shared = mine.keys() & known.keys() - {"measures", "horizon"}  # which are to be said in a scenario
    assert {name: mine[name] for name in shared} == {name: known[name].default for name in shared}


#: command → a function with the same defaults of parameters of the same names
CALLED = {"exploit": exploit, "measure": evaluate_classes, "search": search, "solve": solve}
#: defaults of commands alone
OWN = {
    "check": {"horizon": 10_000, "runs": 16}, "plot": {"kind": "curves", "dpi": 150},
    "recalibrate": {"forecaster": "aggregated", "column": "recalibrated", "draws": 400},
    "search": {"output": Path("worst.toml")}, "solve": {"classes": 2},
}  # fmt: skip


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_those_of_commands_are_those_of_python(name):
    given = {
        key: each.default.default for key, each in inspect.signature(cli.COMMANDS[name]).parameters.items()
    }
    called = inspect.signature(CALLED[name]).parameters if name in CALLED else {}
    same = {
        key: each.default for key, each in called.items() if key in given and each.default is not each.empty
    }
    assert {key: value for key, value in given.items() if value and value is not ...} == {
        key: value for key, value in (same | OWN.get(name, {})).items() if value
    }
