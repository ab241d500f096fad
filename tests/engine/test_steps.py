"""Steps that fail, steps that reach beyond an end, and machine code that has become old."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config

import onlinecal
from onlinecal.core._compile import APART, state_of
from onlinecal.core.errors import InvalidForecast
from onlinecal.core.guarantee import Sight
from onlinecal.engine import game as module
from onlinecal.engine.game import Game
from onlinecal.engine.run import RUN, RowPointer, stamp
from onlinecal.engine.steps import kernel, law, shared
from onlinecal.natures import Contrarian
from onlinecal.schedules import Constant, Schedule
from tests.engine.games import forecaster_of, nature_of, same

#: the round in which the steps fail
BAD = 37
PACKAGE = Path(onlinecal.__file__).parent


@kernel
def fails(run, number):
    if number == shared(run)[0]:
        raise ValueError("boom")
    return 0


def say_fails(run, number):
    values, weights = law(run)
    values[0], weights[0] = 0.5, 1.0
    return 1 + fails(run, number)


def draw_fails(run, u, number):
    return 0.5 + fails(run, number)


def learn_fails(run, place, forecast, outcome, number):
    return fails(run, number)


def move_fails(run, size, forecast, number):
    return 0.5 + fails(run, number)


def reveal_fails(run, number):
    return fails(run, number)


AT, HEARS = {"shared": [BAD]}, {"shared": [BAD], "sees": Sight.HISTORY}
REVEALS = {"declares": ["x"], "reveals": {0: "x"}, "note": 1}
FAILING = {
    "say": (forecaster_of(say_fails, **AT), nature_of(), "forecaster"),
    "draw": (forecaster_of(draw=draw_fails, **AT), nature_of(), "forecaster"),
    "learn": (forecaster_of(learn=learn_fails, **AT), nature_of(), "forecaster"),
    "move": (forecaster_of(), nature_of(move_fails, **AT), "nature"),
    "hear": (forecaster_of(), nature_of(hear=learn_fails, **HEARS), "nature"),
    "reveal": (forecaster_of(), nature_of(reveal=reveal_fails, **REVEALS, **AT), "nature"),
}


@pytest.mark.parametrize(("delay", "threads"), [(0, 1), (5, 2), (0, 2)])
@pytest.mark.parametrize("step", FAILING)
def test_an_error_in_a_step_names_player_round_and_run(step, delay, threads, monkeypatch):
    mine, theirs, role = FAILING[step]
    monkeypatch.setattr(module, "THREAD", 1)
    given = {"schedule": Schedule(delays=Constant(delay)), "threads": threads}
    game = Game(mine, theirs, horizon=100, runs=range(4, 8), seed=1, **given)
    game.advance(20)
    for _ in range(2):
        with pytest.raises(InvalidForecast, match=rf"^{role} .* failed in round {BAD}, run 4: .*boom"):
            game.advance(100)


# ---------------------------------------------------------------- ends

BEYOND = """
from onlinecal.engine.game import Game
from onlinecal.engine.run import kernel
from onlinecal.engine.steps import law, note, shared, state
from tests.engine import games as g

fair, pairs = kernel(g.fair), []
room = dict(state=[0.0, 0.0], shared=[1.0, 2.0, 3.0], note=4, size=5)
for place in ("state(run)[2]", "shared(run)[3]", "note(run)[4]", "law(run)[0][5]", "law(run)[1][5]"):
    exec(f"def say(run, number):\\n {place} = 0.5\\n return fair(run, number)")
    pairs.append((g.forecaster_of(say, **room), g.nature_of()))
exec("def move(run, size, forecast, number):\\n note(run)[1] = 0.0\\n return 0.5")
for pair in [*pairs, (g.forecaster_of(), g.nature_of(move, note=1))]:
    try:
        Game(*pair, horizon=3, runs=range(2)).advance(3)
    except Exception as error:
        print(str(error).splitlines()[0])
"""


@pytest.mark.slow  # only .ci/run asks for it
def test_the_ends_of_all_parts_of_a_row_are_checked_where_this_is_asked_for():
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    given = {"env": env, "cwd": PACKAGE.parent, "capture_output": True, "text": True, "check": True}
    said = subprocess.run([sys.executable, "-c", BEYOND], **given).stdout.splitlines()
    assert [line.split()[0] for line in said] == ["forecaster"] * 5 + ["nature"]
    assert all(re.search("in round 1, run 0.*index.*bounds", line) for line in said)


# ---------------------------------------------------------------- machine code on disk


def test_code_is_found_by_the_stamp_which_says_whether_ends_are_checked(monkeypatch):
    """Numba knows types by their keys, and types of functions by the names of those that they take."""
    assert RowPointer(stamp()) == RUN
    stamps = []
    for checked in (None, 1):
        monkeypatch.setattr(config, "BOUNDSCHECK", checked)
        stamps.append(stamp())
    for known in (RowPointer, lambda stamp: RowPointer(stamp).name):
        assert known(stamps[0]) == known(stamps[0]) != known(stamps[1])


def test_the_state_changes_with_each_file_of_which_steps_are_made(tmp_path):
    for folder in ("core", "engine", "forecasters", "games", "natures", *APART):
        (tmp_path / folder).mkdir()
        for file in (PACKAGE / folder).glob("*.py"):
            shutil.copy2(file, tmp_path / folder / file.name)
    same = state_of(tmp_path)
    for name in ("engine/uniforms.py", "forecasters/hedging.py", "games/policy.py"):
        file = tmp_path / name
        text = file.read_text()
        for changed in (text + "\n# another\n", text):  # the second is of another time
            file.write_text(changed)
            assert state_of(tmp_path) != same, name
        shutil.copy2(PACKAGE / name, file)
        assert state_of(tmp_path) == same
    for folder, counts in (*((folder, False) for folder in APART), ("forecasters", True)):
        (tmp_path / folder / "own.py").write_text("")
        assert (state_of(tmp_path) != same) is counts


def test_the_forecaster_of_the_page_plays_as_the_plain_class(tmp_path, monkeypatch):
    """docs/writing.md has a whole forecaster of steps, and a plain class of the same rule."""
    page = (PACKAGE.parent / "docs" / "writing.md").read_text("utf-8")
    blocks, games = re.findall(r"```python[^\n]*\n(.*?)```", page, re.DOTALL), []
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("EMA", "Smoothing"):
        text = next(each for each in blocks if f"class {name}:" in each or f"class {name}(" in each)
        (tmp_path / f"page_{name}.py").write_text(text)
        player = getattr(importlib.import_module(f"page_{name}"), name)()
        games.append(Game(player, Contrarian(), horizon=500, runs=range(2)))
        games[-1].advance(500)
    assert [game.compiled for game in games] == [False, True]
    assert same(games[0].gammas(), games[1].gammas())
