"""Options of the commands: one meaning a letter, help in words, no option in a text that no command has."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import onlinecal
from onlinecal.cli import COMMANDS, app
from onlinecal.core.errors import OnlinecalError
from onlinecal.scenario import Scenario, load
from tests.command_line import onlinecal as said_by

PACKAGE = Path(onlinecal.__file__).parent
ROOT = PACKAGE.parent
GROUP = typer.main.get_command(app)
OPTIONS = {
    name: {option for each in command.params for option in (*each.opts, *each.secondary_opts) if option[0] == "-"}
    | {"--help", "-h"}
    for name, command in GROUP.commands.items()
}  # fmt: skip
#: of other programs
OTHERS = {
    "--full", "--nworkers", "--nthreads", "--write", "--strict", "--seed", "--version", "--install-completion",
}  # fmt: skip
WORD = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]|(?<![\w-])--m\b")


def texts():
    yield from (p for p in PACKAGE.rglob("*.py"))
    yield from (p for p in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")) if p.exists())


def test_texts_name_options_that_some_command_has_and_lines_of_commands_those_of_that_command():
    known, found = set().union(*OPTIONS.values()) | OTHERS, []
    line = re.compile(
        rf"(?<![\w.-])onlinecal ({'|'.join(sorted(COMMANDS, key=len, reverse=True))})\b([^`\n|;&]*)"
    )
    for path in texts():
        text = path.read_text("utf-8")
        assert not [word for word in WORD.findall(text) if word not in known], path
        found += [(path, name, word) for name, rest in line.findall(text) for word in WORD.findall(rest)]
    assert len(found) > 20
    assert not [each for each in found if each[2] not in OPTIONS[each[1]]]


def test_a_letter_has_one_meaning():
    meanings = {}
    for command in GROUP.commands.values():
        for each in command.params:
            long = [option for option in each.opts if option.startswith("--")]
            for letter in (option for option in each.opts if re.fullmatch("-[a-z]", option)):
                meanings.setdefault(letter, set()).update(long)
    assert meanings["-f"] == {"--forecast"}
    assert {letter for letter, words in meanings.items() if len(words) > 1} == set()


def test_the_list_of_commands_cuts_no_line():
    """Of a terminal of 80 columns, beside the longest name."""
    room = 80 - 6 - max(map(len, GROUP.commands))
    assert not [c.name for c in GROUP.commands.values() if c.get_short_help_str(room).endswith("...")]
    assert GROUP.commands["run"].get_short_help_str(20).endswith("...")


def test_help_names_values_in_words():
    context = typer.Context(GROUP, info_name="onlinecal")
    for name, command in GROUP.commands.items():
        said = command.get_help(typer.Context(command, parent=context, info_name=name))
        assert not re.search(r"<\w|\[\[", said), said


@pytest.mark.parametrize("line", ["", "measure "])
def test_h_is_help(line, tmp_path):
    short, long = (said_by(line + option, cwd=tmp_path).stdout for option in ("-h", "--help"))
    assert short == long


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


@pytest.mark.parametrize("key", Scenario.model_fields)
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
    for value in (
        "-1",
        "2.5",
        '"a"',
        "[1]",
        '["a"]',
        "{ a = 1 }",
        "[[1]]",
        "true",
        "1979-05-27",
        "[{ from = 1 }]",
    ):
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
