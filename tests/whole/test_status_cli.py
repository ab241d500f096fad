"""What `run` says of cells that fail and of pairs that cannot be played, and `status` of all of it."""

import json
import re

import pytest

from tests.command_line import onlinecal
from tests.results import read

SCENARIO = """
runs = 2
horizons = [20, 40]
measures = ["ece"]
natures = ["drift", { name = "replay", file = "rows.csv", base = "p", label = "rows" }]
[[forecasters]]
name = "own:Own"
[[forecasters]]
name = "constant"
[[forecasters]]
name = "online_platt"
"""
OWN = """
class Own:
    def __init__(self, horizon): self.horizon = horizon
    def forecast(self):
        if self.horizon == 40: raise ValueError("boom")
        return 0.5
    def update(self, forecast, outcome): pass
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "s.toml").write_text(SCENARIO)
    (tmp_path / "rows.csv").write_text("p,outcome\n" + "0.3,0\n0.6,1\n" * 25)
    return tmp_path


def unwrapped(text):
    """Lines as they were before they were broken to the width of the terminal."""
    return re.sub(r"\n +", " ", text).splitlines()


def test_failed_and_incompatible_cells_are_told_and_the_rest_is_played(folder):
    done = onlinecal("run", "s.toml", cwd=folder, rc=1)
    lines = done.stderr.splitlines()
    assert lines[0].startswith(
        "note: not played: 'online platt' against 'drift': forecaster 'online_platt' needs "
    )
    assert lines[1] == "2 of 10 cells failed:"
    for line, nature in zip(lines[2:4], ("drift", "rows"), strict=True):
        assert line == (
            f"  'Own' against '{nature}' at T = 40: forecaster 'Own' failed in round 1, run 0: ValueError: "
            "boom (own.py:5)"
        )
    assert lines[4:] == ["--resume plays them again"]
    assert len(read(folder / "results" / "s.db").cells) == 8
    said = unwrapped(onlinecal("status", "results/s.db", cwd=folder).stdout)
    assert said[:4] == [
        "s",
        "8 of 10 cells are done, 2 failed, 0 are left",
        "160 run-rounds are to be played yet, those of failed cells among them",
        "nobody writes it now",
    ]
    assert said[4].startswith("failed: 'Own' against 'drift' at T = 40, on 20")
    assert said[4].endswith(": forecaster 'Own' failed in round 1, run 0: ValueError: boom (own.py:5)")
    assert said[6].startswith(
        "cannot be played: 'online platt' against 'drift': forecaster 'online_platt' needs "
    )
    assert said[7] == "go on with: onlinecal run SCENARIO --resume"
    data = json.loads(onlinecal("status", "results/s.db", "--json", cwd=folder).stdout)
    assert {key: data[key] for key in ("cells", "done", "left", "run_rounds_left", "writer")} == {
        "cells": 10, "done": 8, "left": 0, "run_rounds_left": 160, "writer": None
    }  # fmt: skip
    assert [(cell["forecaster"], cell["nature"], cell["horizon"]) for cell in data["failed"]] == [
        ("Own", "drift", 40),
        ("Own", "rows", 40),
    ]
    assert [(pair["forecaster"], pair["nature"]) for pair in data["incompatible"]] == [
        ("online platt", "drift")
    ]
    # What is mended is played, and nothing else.
    (folder / "own.py").write_text(OWN.replace("raise ValueError", "print"))
    onlinecal("run", "s.toml", "--resume", cwd=folder)
    said = onlinecal("status", "results/s.db", cwd=folder).stdout.splitlines()
    assert said[1] == "10 of 10 cells are done, 0 failed, 0 are left"


def test_a_scenario_of_which_nothing_can_be_played_is_refused(folder):
    (folder / "s.toml").write_text(
        SCENARIO[: SCENARIO.index("[[")]
        .replace('"drift", ', "")
        .replace('{ name = "replay", file = "rows.csv", base = "p", label = "rows" }', '"drift"')
        + '[[forecasters]]\nname = "online_platt"\n'
    )
    said = onlinecal("run", "s.toml", cwd=folder, rc=2).stderr
    assert said.startswith("error: s.toml: forecaster 'online_platt' needs ")
    assert said.count("\n") == 1


def test_jobs_and_schedulers_that_cannot_be(folder):
    for options, said in (
        (("--jobs", "0"), "jobs = 0; expected an integer from 1 to "),
        (("--jobs", "-1"), "jobs = -1; expected an integer from 1 to "),
        (("--jobs", "1000"), "jobs = 1000; expected an integer from 1 to "),
        (
            ("--jobs", "2", "--scheduler", "tcp://127.0.0.1:1"),
            "jobs = 2 are processes of this machine, and a scheduler",
        ),
    ):
        done = onlinecal("run", "s.toml", *options, cwd=folder, rc=2)
        assert done.stderr.startswith(f"error: {said}")
        assert done.stderr.count("\n") == 1
    assert not (folder / "results").exists()


def test_status_of_what_is_no_results_file(folder):
    assert "no such results file" in onlinecal("status", "none.db", cwd=folder, rc=2).stderr
