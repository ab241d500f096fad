"""Imports go one way: a room of the package knows those above it in the list only, which is that of CONTRIBUTING.md."""

import ast
import re
from pathlib import Path

import onlinecal
from tests.readme import ROOT

#: in the order of imports; the last are files
ROOMS = (
    "core", "rounds", "decisions", "measures", "exact", "forecasters", "natures", "exploit", "schedules",
    "decision_makers", "engine", "worlds", "growth", "study",
    "forecasts", "naming", "recalibration", "monitoring",
    "sweeping", "scenario", "checks", "report", "face", "search", "commands", "cli", "__main__",
)  # fmt: skip
HOME = Path(onlinecal.__file__).parent
FILES = sorted(HOME.rglob("*.py"))


def module_of(file):
    parts = file.relative_to(HOME).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def known(file):
    """(line, room) of every import of the package in a file, wherever it stands; the package itself has no room."""
    for node in ast.walk(ast.parse(file.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "onlinecal" and rest:
                yield node.lineno, rest.partition(".")[0]


def test_every_file_has_a_room():
    assert {module_of(file)[0] for file in FILES if module_of(file)} == set(ROOMS)


def test_a_room_knows_those_above_it():
    for file in FILES:
        mine = ROOMS.index(module_of(file)[0]) if module_of(file) else len(ROOMS)
        upward = [f"line {line} imports {room}" for line, room in known(file) if ROOMS.index(room) > mine]
        assert not upward, f"{file.relative_to(HOME)}: {upward}"


def test_a_wrong_import_is_found(tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text("def f():\n    from onlinecal.engine.game import Game\n    import onlinecal.study.run\n")
    assert list(known(file)) == [(2, "engine"), (3, "study")]


def test_the_rooms_are_listed_in_this_order():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    listed = text.partition("## Architecture")[2].partition("```\n")[2].partition("```")[0]
    rooms = re.findall(r"^  (\w+)", listed, re.MULTILINE)
    assert rooms == [room for room in ROOMS if room != "__main__"]


def test_no_file_is_long():
    assert not [f"{file.name}: {n}" for file in FILES if (n := len(file.read_text().splitlines())) > 450]
