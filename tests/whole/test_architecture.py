"""Imports go one way: a room of the package knows those above it in the list only, which is that of CONTRIBUTING.md.
Functions state their types, but for those that are compiled."""

import ast
import re
from pathlib import Path

import onlinecal
from tests.readme import ROOT

#: in the order of imports; the last are files
ROOMS = (
    "core", "rounds", "decisions", "measures", "exact", "forecasters", "natures", "exploit", "schedules",
    "decision_makers", "engine", "growth", "study",
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


# ---------------------------------------------------------------- types

#: where a function is compiled by, whose types are found when it is called
COMPILED = {
    "onlinecal.core._compile": {"kernel", "part_of_kernel"},
    "onlinecal.rounds.steps": {"law", "learn", "move", "hear", "reveal"},
}


def untyped(source):
    """The names of functions without all their types, wherever they stand, but those that are compiled."""
    tree = ast.parse(source)
    compiled = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in COMPILED.get(node.module, ())
    }
    methods = {id(f) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for f in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
            if marks & compiled:
                continue
            of_object = id(node) in methods and "staticmethod" not in marks
            inputs = [*node.args.posonlyargs, *node.args.args][of_object:]
            inputs += [*node.args.kwonlyargs, *filter(None, (node.args.vararg, node.args.kwarg))]
            if node.returns is None or any(given.annotation is None for given in inputs):
                yield node.name


def test_every_function_states_its_types():
    assert {
        str(file.relative_to(HOME)): found for file in FILES if (found := list(untyped(file.read_text())))
    } == {}


WRONG = """
from onlinecal.core._compile import kernel as compiled
from onlinecal.rounds.steps import law
@compiled
def a(x): ...
@law
def b(run, number): ...
@kernel
def not_imported(x): ...
def no_result(x: int): ...
def no_input(x, y: int = 0) -> int: ...
def no_rest(*, x: int, **rest) -> int:
    def inside(): ...
class A:
    def good(self, x: int) -> int: ...
    def bad(self, x) -> int: ...
    @staticmethod
    def worse(self) -> int: ...
    @classmethod
    def fine(cls) -> int: ...
"""


def test_a_function_without_types_is_found():
    expected = ["not_imported", "no_result", "no_input", "no_rest", "inside", "bad", "worse"]
    assert sorted(untyped(WRONG)) == sorted(expected)
