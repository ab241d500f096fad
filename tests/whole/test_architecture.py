"""Imports go one way: a room of the package knows those above it in CONTRIBUTING.md's list only; no file is long."""

import ast
import re
from pathlib import Path

import onlinecal
from tests.readme import ROOT

HOME = Path(onlinecal.__file__).parent
FILES = sorted(HOME.rglob("*.py"))
LISTED = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Architecture")[2].split("```")[1]
#: in the order of imports; the last are files
ROOMS = [*re.findall(r"^  (\w+)", LISTED, re.MULTILINE), "__main__"]


def room(file):
    return file.relative_to(HOME).with_suffix("").parts[0]


def upward(text, mine):
    """(line, room) of the imports of rooms below, wherever they stand; the package itself has no room."""
    for node in ast.walk(ast.parse(text)):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for package, _, rest in (name.partition(".") for name in names):
            if package == "onlinecal" and rest and ROOMS.index(rest.partition(".")[0]) > ROOMS.index(mine):
                yield node.lineno, rest.partition(".")[0]


def test_a_room_knows_those_above_it_and_no_file_is_long():
    assert {room(file) for file in FILES} - {"__init__"} == set(ROOMS)
    for file in FILES:
        if room(file) != "__init__":
            assert not list(upward(file.read_text(), room(file))), file
        assert len(file.read_text().splitlines()) <= 450, file


def test_a_wrong_import_is_found():
    text = "def f():\n    from onlinecal.engine.game import Game\n    import onlinecal.study.run\n"
    assert list(upward(text, "rounds")) == [(2, "engine"), (3, "study")]
    assert list(upward(text, "study")) == []
