"""Imports go one way: a room of the package knows those above it in CONTRIBUTING.md's list only. No file is long."""

import ast
import graphlib
import re
from pathlib import Path

import onlinecal
from onlinecal.core._compile import APART
from tests.pages import ROOT

HOME = Path(onlinecal.__file__).parent
FILES = sorted(HOME.rglob("*.py"))
#: module → its file; of a room `onlinecal.room.__init__`
NAMED = {".".join(("onlinecal", *file.relative_to(HOME).with_suffix("").parts)): file for file in FILES}
LISTED = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Architecture")[2].split("```")[1]
#: in the order of imports; the last are files
ROOMS = [*re.findall(r"^  (\w+)", LISTED, re.MULTILINE), "__main__"]
#: strategies know its steps, and its games know strategies
BETWEEN = "engine"
STEPS = rf"{BETWEEN}\.(?:steps|run)"
#: these know each other: there are measures of tasks, and responses that round as a measure does
PAIR = {"measures", "decisions"}


def text(file):
    return file.read_text("utf-8")


def room(file):
    return file.relative_to(HOME).with_suffix("").parts[0]


def upward(source, mine):
    """(line, room) of the imports of rooms below, wherever they stand; the package itself has no room."""
    for node in ast.walk(ast.parse(source)):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for package, _, rest in (name.partition(".") for name in names):
            other = rest.partition(".")[0]
            ours = package == "onlinecal" and rest and BETWEEN not in (other, mine) and {other, mine} != PAIR
            if ours and ROOMS.index(other) > ROOMS.index(mine):
                yield node.lineno, other


def test_a_room_knows_those_above_it_and_no_file_is_long():
    assert {room(file) for file in FILES} - {"__init__"} == set(ROOMS)
    for file in FILES:
        if room(file) != "__init__":
            found = {other for _, other in upward(file.read_text(), room(file))}
            # A study draws itself and shows itself in a notebook, and so does the table of measures.
            shown = file in (HOME / "study" / "curves.py", HOME / "logs" / "table.py")
            assert found <= ({"report"} if shown else set()), file
        assert len(file.read_text().splitlines()) <= 450, file


def test_no_files_import_each_other_in_a_circle():
    modules = {name.removesuffix(".__init__"): text(file) for name, file in NAMED.items()}
    imports = {}
    for name, source in modules.items():
        own = [node for node in ast.parse(source).body if isinstance(node, ast.ImportFrom) and node.module]
        taken = {
            each for node in own for each in (node.module, *(f"{node.module}.{a.name}" for a in node.names))
        }
        # A module that is taken from its room needs no more of the room.
        taken -= {
            node.module for node in own if all(f"{node.module}.{a.name}" in modules for a in node.names)
        }
        imports[name] = taken & modules.keys()
    graphlib.TopologicalSorter(imports).prepare()


def test_a_wrong_import_is_found():
    text = "def f():\n    from onlinecal.engine.game import Game\n    import onlinecal.study.run\n"
    assert list(upward(text, "measures")) == [(3, "study")]
    assert list(upward(text, "study")) == []


def with_kernels(maker):
    """The modules that take `kernel` from such a module, name → file."""
    pattern = rf"^from onlinecal\.({maker}) import (\([^)]*|.*)\bkernel\b"
    return {name: file for name, file in NAMED.items() if re.search(pattern, text(file), re.M)}


def taken(names, among=NAMED):
    """The modules (of these, or all) from which some take something, and those from which they do."""
    found, left = set(), list(names)
    while left:
        for node in ast.walk(ast.parse(text(NAMED[left.pop()]))):
            if isinstance(node, ast.ImportFrom):
                new = {node.module, *(f"{node.module}.{a.name}" for a in node.names)} & among.keys() - found
                found |= new
                left += new
    return found


def test_no_kernel_of_another_file_takes_anything_from_the_rooms_whose_changes_keep_its_machine_code():
    """Follows the imports of every file with kernels, and those of the imported files."""
    files = with_kernels(r"core\._compile")
    assert len(files) > 25
    assert not {name for name in taken(files) if name.split(".")[1] in APART}


def test_no_step_calls_a_function_of_the_rooms_whose_changes_keep_its_machine_code():
    files, callable = (with_kernels(maker) for maker in (STEPS, rf"({STEPS}|core\._compile)"))
    assert len(files) > 15
    assert not {name for name in taken(files, callable) if name.split(".")[1] in APART}
