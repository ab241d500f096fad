"""Odd paths are refused in one line by every command, and an interrupt is no fault of a file."""

import gzip
import signal
import subprocess
import sys
import time

import pytest

from onlinecal.core.errors import InvalidData
from tests.command_line import onlinecal

#: commands, each with one place for a path
COMMANDS = (
    ("run", None), ("run", "s.toml", "-o", None), ("status", None), ("compare", None), ("plot", None),
    ("plot", "r.db", "-o", None), ("report", None), ("report", "r.db", "-o", None), ("export", None, "-o", "x.csv"),
    ("export", "r.db", "-o", None), ("measure-again", None, "--measure", "cdl"), ("merge", None, "r.db", "-o", "m.db"),
    ("merge", "r.db", "q.db", "-o", None), ("merge", "r.db", "q.db", "--overwrite", "-o", None), ("measure", None),
    ("measure", "--in-parts", None), ("recalibrate", None, "-o", "x.csv"), ("recalibrate", "a.csv", "-o", None),
    ("watch", None), ("watch", "a.csv", "--state", None), ("new", None), ("exploit", "--horizon", "4", None),
    ("search", "--against", "constant", "--horizon", "9", "-o", None),
)  # fmt: skip
PATHS = ("", "folder.csv", "/dev/null", "loop.csv", "a.csv/x.csv")
SCENARIO = """horizon = 20
runs = 2
measures = ["ece"]
forecasters = ["constant"]
natures = ["drift"]
"""


@pytest.mark.parametrize("path", PATHS)
def test_odd_paths_are_refused_in_one_line(tmp_path, path):
    here = tmp_path / "here"
    for name in ("folder", "folder.csv"):
        (here / name).mkdir(parents=True)
    (here / "loop.csv").symlink_to("loop.csv")
    (here / "a.csv").write_text("p,y\n0.2,0\n0.8,1\n0.3,1\n")
    (here / "s.toml").write_text(SCENARIO)
    for name in ("r.db", "q.db"):
        onlinecal("run", "s.toml", "-o", name, cwd=here)
    there = sorted(here.iterdir())
    for command in COMMANDS:
        given = [path if each is None else each for each in command]
        if given[-2:] == ["--state", "loop.csv"]:
            continue  # a link to nothing, in whose place a file may be put
        *said, last = onlinecal(*given, cwd=here, rc=2).stderr.splitlines()
        assert last.startswith("error: "), given
        said = [line for line in said if " %" not in line]  # progress where it is slow
        assert not said or command[0] == "watch", (given, said)  # which says what it does
        assert sorted(here.iterdir()) == there, given
        assert [file.name for file in tmp_path.iterdir()] == ["here"], command


@pytest.mark.slow
def test_ctrl_c_while_a_file_is_read(tmp_path):
    """It comes while the file is read, and is no fault of the file."""
    with gzip.open(tmp_path / "big.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"p,y,note\n" + b"0.123456,0,some words\n0.654321,1,some words\n" * 4_000_000)
    # Signals that this process ignores, as in the background of a shell, one that it starts would ignore, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = [sys.executable, "-m", "onlinecal", "measure", "big.csv.gz", "--in-memory"]
    running = subprocess.Popen(code, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    time.sleep(3.5)
    assert running.poll() is None
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=60)[1]
    assert said.splitlines()[-1:] == ["stopped"], said
    # Python ends by the signal itself if that came while a text was executed, as dataclasses do when
    # imported. A shell reports 130 for either.
    assert running.returncode in (130, -signal.SIGINT), said


def test_ctrl_c_that_compiled_code_answers_by_an_error_of_its_own(tmp_path, monkeypatch):
    def interrupted(*_):
        try:
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt as error:
                raise SystemError("a result with an exception set") from error
        except SystemError as error:
            raise InvalidData("measure 'cdl' failed: SystemError") from error

    monkeypatch.setattr("onlinecal.logs.source.report_of", interrupted)
    assert onlinecal("measure a.csv", cwd=tmp_path, rc=130)[:2] == ("", "stopped\n")


def test_ctrl_c_before_there_is_a_command(tmp_path):
    """It comes while the command line is imported; in its classes an exception would be another one."""
    code = """if True:
        import signal, sys

        class Interrupted:
            def find_spec(self, name, *_):
                if name == "typer":
                    signal.raise_signal(signal.SIGINT)

        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.meta_path.insert(0, Interrupted())
        from onlinecal.__main__ import main
        main()
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")
