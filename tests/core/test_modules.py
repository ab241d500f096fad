"""Modules of users: how they are named, and what is said of those that cannot be imported."""

import sys
import time

import pytest

from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.core.modules import locate

EMA = "class EMA:\n    def forecast(self): return 0.5\n    def update(self, forecast, outcome): ...\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the user works; what is imported from there is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", sys.path[:])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def write(path, text=EMA):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


NAMES = ["ours:EMA", "ours.py:EMA", "./ours.py:EMA", "{folder}/ours.py:EMA", "sub/../ours.py:EMA"]


@pytest.mark.parametrize("name", NAMES)
def test_a_module_by_its_name_or_its_file_is_one_and_the_same(folder, name):
    write(folder / "ours.py")
    (folder / "sub").mkdir()
    found = locate("forecaster", name.format(folder=folder))
    assert (found.__module__, found.__qualname__) == ("ours", "EMA")
    assert found is locate("forecaster", "ours:EMA") is locate("nature", "ours.py:EMA")


def test_a_file_in_another_folder_finds_its_neighbours(folder):
    write(folder / "sub" / "neighbour.py", "p = 0.25\n")
    write(folder / "sub" / "beside.py", "from neighbour import p\nclass Own: pass\n")
    assert sys.modules[locate("forecaster", "sub/beside.py:Own").__module__].p == 0.25
    # A relative path is also meant from where the scenario lies.
    write(folder / "sub" / "by_scenario.py", "class Own: pass\n")
    assert locate("forecaster", "by_scenario.py:Own", folder / "sub").__module__ == "by_scenario"


@pytest.mark.parametrize("there", ["", "{folder}", "elsewhere"])
def test_the_working_directory_is_looked_through_once(folder, monkeypatch, there):
    """First, unless it is in the path already, by its name or as the empty text."""
    write(folder / "ours.py")
    path = [*sys.path, there.format(folder=folder)]
    monkeypatch.setattr("sys.path", path[:])
    for _ in range(2):
        locate("forecaster", "ours:EMA")
    assert sys.path == ([str(folder)] if there == "elsewhere" else []) + path


NO_NAME = "expected module:name, such as 'mine:EMA' or 'mine.py:EMA'"
WRONG = (":", ".a:b", ":a", "a b:c", "ours:EMA:x", "ours:EMA.forecast", "ours.py", "./ours.py", "\0.py:a", "..:x",
         "ours..x:EMA", "1a:b", "ours:1", "", "/:x")  # fmt: skip
NOTHING = [
    ("ours:EMMA", "module 'ours' has no 'EMMA'; did you mean 'EMA'?"), ("ours:", "expected a name in it; known: EMA"),
    ("nowhere:EMA", "No module named 'nowhere'; expected module:name, such as"),
    ("sub/none.py:EMA", "there is no file 'sub/none.py'; expected one"),
    ("a.b.py:EMA", "a file with a dot in its name is no module"), ("sub.py:EMA", "there is no file 'sub.py'"),
    ("x" * 10_000 + ":a", "No module named"), ("ours:" + "y" * 10_000, "has no"), ("é:x", "No module named"),
    ("sub/ours.py:EMA", "a module 'ours' is there already"), ("statistics.py:EMA", "there already, Python's own"),
    ("/.py:x", ""), ("~/.py:x", ""), *((name, NO_NAME) for name in WRONG),
]  # fmt: skip


@pytest.mark.parametrize(("name", "said"), NOTHING, ids=[name[:20] for name, _ in NOTHING])
def test_names_of_nothing(folder, name, said):
    for there in ("ours.py", "a.b.py", "sub/ours.py", "statistics.py"):
        write(folder / there)
    (folder / "sub.py").mkdir()
    locate("forecaster", "ours.py:EMA")
    with pytest.raises(UnknownName) as raised:
        locate("forecaster", name)
    assert said in str(raised.value)
    assert str(raised.value).startswith(f"forecaster {name!r}: ")


BROKEN = [
    ("x = 1\nclass EMA:\n  pass\n   x = 1\n", "IndentationError: unexpected indent", 4),
    ("\nimport nothing_like_this\n", "ModuleNotFoundError: No module named 'nothing_like_this'", 2),
    ("def f():\n    1 / 0\nf()\n", "ZeroDivisionError: division by zero", 2),
    ("import sys\nsys.exit(3)\n", "SystemExit: 3", 2), ("raise BaseException\n", "BaseException", 1),
    ("raise ValueError('two\\nlines\\x1b[31m')\n", "ValueError: two lines [31m", 1),
    ("def f(): f()\nf()\n", "RecursionError: maximum recursion depth exceeded", 1), (b"x = '\xff'\n", "", 1),
]  # fmt: skip


@pytest.mark.parametrize("name", ["broken:EMA", "broken.py:EMA"])
@pytest.mark.parametrize(("text", "said", "line"), BROKEN)
def test_what_cannot_be_imported_is_one_line_with_file_and_line(folder, name, text, said, line):
    write(folder / "broken.py", text)
    with pytest.raises(InvalidParameter) as raised:
        locate("forecaster", name)
    found, module = str(raised.value), name.partition(":")[0]
    assert found.startswith(f"forecaster {name!r}: module {module!r} cannot be imported: ")
    assert said in found
    assert f"(broken.py:{line})" in found
    assert found.isprintable()
    assert "broken" not in sys.modules
    write(folder / "broken.py")
    time.sleep(0.01)
    assert locate("forecaster", name).__name__ == "EMA"  # once it has been mended


def test_what_a_module_prints_goes_aside_and_control_c_says_what_was_being_imported(folder, capsys):
    write(folder / "prints.py", "\nprint('hello')\n" + EMA)
    write(folder / "waits.py", "raise KeyboardInterrupt\n")
    locate("forecaster", "prints:EMA")
    assert capsys.readouterr() == ("", "hello\n")
    said = r"while forecaster 'waits:EMA' was being imported \(waits.py:1\)"
    with pytest.raises(KeyboardInterrupt, match=said):
        locate("forecaster", "waits:EMA")
