"""Files are there whole or not at all."""

import os

import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.writing import EXISTS, check_new, whole
from tests.command_line import onlinecal


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_what_fails_leaves_what_was_there(tmp_path, fault):
    path = tmp_path / "a.txt"
    path.write_text("before")
    expected = InvalidParameter if isinstance(fault, OSError) else type(fault)

    def written():
        with whole(path) as new:
            new.write_text("half")
            raise fault

    with pytest.raises(expected) as raised:
        written()
    if expected is InvalidParameter:
        assert str(raised.value) == f"{path} cannot be written: No space left on device"
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_a_file_is_replaced_only_if_it_may_be(tmp_path):
    """Also one that comes while the new one is made; nothing else is left beside it."""
    path = tmp_path / "new" / "a.txt"
    with pytest.raises(InvalidParameter, match=f"^{path} {EXISTS}$"), whole(path, overwrite=False):
        path.write_text("theirs")
    assert path.read_text() == "theirs"
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


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path, monkeypatch):
    """Of every command that writes: each file is on the disk before it takes its place."""
    (tmp_path / "mine.csv").write_text("p,y\n" + "0.3,0\n0.7,1\n" * 20)
    (tmp_path / "s.toml").write_text(
        'horizon = 9\nmeasures = ["ece"]\nforecasters = ["constant"]\nnatures = ["drift"]'
    )
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
