"""Files are there whole or not at all; the scenarios that the package brings along, and new ones like them."""

import os
import tomllib
from pathlib import Path

import pytest

from onlinecal.core.errors import InvalidParameter, ScenarioError, UnknownName
from onlinecal.core.writing import EXISTS, check_new, create, scenario_file, scenarios, whole
from onlinecal.scenario import load
from tests.command_line import onlinecal
from tests.pages import README

FOLDER = README.parent / "scenarios"


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_what_fails_leaves_what_was_there(tmp_path, fault):
    path = tmp_path / "a.txt"
    path.write_text("before")

    def written():
        with whole(path) as new:
            new.write_text("half")
            raise fault

    full = isinstance(fault, OSError)
    match = f"^{path} cannot be written: No space left on device$" if full else None
    with pytest.raises(InvalidParameter if full else type(fault), match=match):
        written()
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "before")]


def test_a_file_is_replaced_only_if_it_may_be(tmp_path):
    """Also one that comes while the new one is made; nothing else is left beside it."""
    path = tmp_path / "new" / "a.txt"
    with pytest.raises(InvalidParameter, match=f"^{path} {EXISTS}$"), whole(path, overwrite=False):
        path.write_text("theirs")
    with pytest.raises(InvalidParameter, match=EXISTS), whole(path, overwrite=False):
        pytest.fail("there is such a file")
    with whole(path) as new:
        new.write_text("mine")
        assert path.read_text() == "theirs"
    assert [(file.name, file.read_text()) for file in path.parent.iterdir()] == [("a.txt", "mine")]


def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameter, match="file is not a folder that may be written to"):
        check_new(tmp_path / "file" / "new" / "a.html")
    check_new(tmp_path / "new" / "a.html")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # of a folder that is for reading alone
    with pytest.raises(InvalidParameter, match=f"{tmp_path} is not a folder"):
        check_new(tmp_path / "new" / "a.html", overwrite=True)


def files(folder):
    """Names and contents but for locks: taking one away could take it from another process that waits for it."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix != ".lock"}


SCENARIO = 'horizon = 9\nmeasures = ["ece"]\nforecasters = ["constant"]\nnatures = ["drift"]'


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path, monkeypatch):
    """Of every command that writes: each file is on the disk before it takes its place."""
    (tmp_path / "mine.csv").write_text("p,y\n" + "0.3,0\n0.7,1\n" * 20)
    (tmp_path / "s.toml").write_text(SCENARIO)
    onlinecal("run s.toml -o r.db", cwd=tmp_path)
    before = files(tmp_path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for line in (
        "new my.toml", "new log.csv", "export r.db -o t.csv", "plot r.db", "report r.db",
        "recalibrate mine.csv -o b.csv --draws 0", "watch mine.csv --state s.npz",
        "measure mine.csv -m ece --draws 0 -o p.html",
    ):  # fmt: skip
        said = onlinecal(line, cwd=tmp_path, rc=2).stderr
        assert said.splitlines()[-1].endswith(" cannot be written: No space left on device"), said
        assert files(tmp_path) == before


# ---------------------------------------------------------------- scenarios


def test_all_of_them_are_in_the_wheel():
    config = tomllib.loads((README.parent / "pyproject.toml").read_text())
    included = config["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    files = [*FOLDER.rglob("*.toml")]
    names = [file.relative_to(FOLDER).as_posix() for file in [*files, *FOLDER.rglob("*.csv")]]
    assert included == {f"scenarios/{name}": f"onlinecal/scenarios/{name}" for name in names}
    assert sorted(scenarios()) == sorted(file.stem for file in files)  # each name once


def test_a_file_of_the_user_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert scenario_file(Path("quickstart")).samefile(FOLDER / "quickstart.toml")
    (tmp_path / "quickstart").write_text("")
    for there in (
        "quickstart",
        "x/quickstart",
        "/quickstart",
        "quickstart.db",
    ):  # or no file, and named as one
        assert scenario_file(Path(there)) == Path(there)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mine", "no such file; did you mean 'mine.toml'"), ("", "is a directory"), ("min", "scenario 'min'; known: "),
        ("quikstart", "no such file, and unknown scenario 'quikstart'; did you mean 'quickstart'"),
    ],
)  # fmt: skip
def test_names_of_nothing(tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("")
    with pytest.raises(ScenarioError, match=f"(?i)cannot be read.*{said}"):
        load(Path(name))


def test_a_new_scenario_is_the_shipped_one_and_replaces_nothing(tmp_path):
    file, log = tmp_path / "sub" / "my.toml", tmp_path / "mine.csv"
    for path, like, options, shipped in (
        (file, (), {}, "template.toml"), (tmp_path / "quick.toml", ("quickstart",), {}, "quickstart.toml"),
        (file, ("quickstart",), {"overwrite": True}, "quickstart.toml"), (log, (), {}, "forecasts/rain.csv"),
    ):  # fmt: skip
        create(path, *like, **options)
        assert path.read_bytes() == (FOLDER / shipped).read_bytes()
    for path, like, error, said in (
        (file, "template", InvalidParameter, "exists; expected the name of a new file"),
        (tmp_path / "my", "template", InvalidParameter, "expected a name that ends in .toml"),
        (tmp_path / "new.toml", "quikstart", UnknownName, "did you mean 'quickstart'"),
        (file / "new.toml", "template", InvalidParameter, "cannot be written"),
        (tmp_path / "b.csv", "quickstart", UnknownName, "unknown example of a log 'quickstart'; known: rain"),
    ):
        with pytest.raises(error, match=said):
            create(path, like)
