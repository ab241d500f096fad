"""Options of the commands: one meaning a letter, names that a shell completes, refusals in our own words."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import typer

from onlinecal.cli import app
from onlinecal.core.errors import OnlinecalError
from onlinecal.scenario import Scenario, load

GROUP = typer.main.get_command(app)


def test_a_letter_has_one_meaning():
    meanings = {}
    for command in GROUP.commands.values():
        for each in command.params:
            long = [option for option in each.opts if option.startswith("--")]
            for letter in (option for option in each.opts if re.fullmatch("-[a-z]", option)):
                meanings.setdefault(letter, set()).update(long)
    assert meanings["-f"] == {"--forecast"}
    assert {letter for letter, words in meanings.items() if len(words) > 1} == set()


@pytest.mark.parametrize(
    ("name", "parameter", "word"),
    [
        ("measure", "forecast", "COLUMN"), ("measure", "name", "NAME"), ("measure", "html", "FILE"),
        ("measure", "level", "NUMBER"), ("measure", "draws", "NUMBER"), ("watch", "restart", "WORD"),
        ("measure", "classes", "[COLUMNS]"), ("measure", "percent", None), ("run", "scenario", "SCENARIO"),
    ],
)  # fmt: skip
def test_a_word_of_help_stands_for_each_value(name, parameter, word):
    assert [each.metavar for each in GROUP.commands[name].params if each.name == parameter] == [word]


@pytest.mark.parametrize(
    ("name", "parameter", "begun", "names"),
    [
        ("compare", "measure", "smooth_c", ["smooth_ce"]),
        ("plot", "forecaster", "forecast_h", ["forecast_hedging"]),
        ("show", "name", "distance_l", ["distance_lower"]),
        ("search", "nature", "forecast_h", []),
    ],
)
def test_the_tab_key_completes_names(name, parameter, begun, names):
    command = GROUP.commands[name]
    (which,) = (each for each in command.params if each.name == parameter)
    assert [found.value for found in which.shell_complete(typer.Context(command), begun)] == names


def test_a_shell_is_told_the_names():
    line = {"COMP_WORDS": "onlinecal compare x.db --measure smooth_c", "COMP_CWORD": "4"}
    done = subprocess.run(
        [Path(sys.executable).with_name("onlinecal")], capture_output=True, text=True,
        env=os.environ | {"_ONLINECAL_COMPLETE": "complete_bash"} | line,
    )  # fmt: skip
    assert done.stdout.split() == ["smooth_ce"], done.stderr


@pytest.mark.parametrize("key", [field.name for field in fields(Scenario)])
def test_no_value_of_a_scenario_is_refused_in_words_of_a_library(tmp_path, key):
    good = {
        "horizon": "20",
        "measures": '["ece"]',
        "forecasters": '["constant"]',
        "natures": '["drift"]',
        "runs": "2",
    }
    good = {name: value for name, value in good.items() if (name, key) != ("horizon", "horizons")}
    refused = 0
    for value in ("-1", "2.5", '"a"', '["a"]', "{ a = 1 }", "[[1]]", "true", "1979-05-27", "[{ from = 1 }]"):
        given = "\n".join(f"{name} = {said}" for name, said in (good | {key: value}).items())
        (tmp_path / "w.toml").write_text(given)
        try:
            load(tmp_path / "w.toml")
        except OnlinecalError as error:
            refused += 1
            said = str(error).removeprefix(str(tmp_path))
            assert not [
                w for w in ("pydantic", "nput should", "site-packages", "/onlinecal/") if w in said
            ], said
    assert refused > 2
