"""Steps that fail, steps that reach beyond an end, and machine code that has become old."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config, int64

import onlinecal
from onlinecal.core._compile import APART, state_of
from onlinecal.core.errors import InvalidForecast
from onlinecal.core.guarantee import Sight
from onlinecal.engine import game as module
from onlinecal.engine.game import Game
from onlinecal.engine.run import RowPointer, stamp
from onlinecal.engine.steps import Forecaster, Nature, compiled, law, shared, state
from onlinecal.forecasters import base as forecasters
from onlinecal.natures import Contrarian
from onlinecal.natures import base as natures
from onlinecal.schedules import Constant, Schedule
from tests.engine.games import bits

#: the round in which the steps fail, in the run where the uniform of the first draw is above this
BAD = 37


def fair(run, number):
    values, weights = law(run)
    values[0], weights[0] = 0.5, 1.0
    return 1


def nothing(run, place, forecast, outcome, number):
    return 0


def half(run, size, forecast, number):
    return 0.5


def say_fails(run, number):
    if number == shared(run)[0]:
        raise ValueError("boom")
    values, weights = law(run)
    values[0], weights[0] = 0.5, 1.0
    return 1


def draw_fails(run, u, number):
    if number == shared(run)[0]:
        raise ValueError("boom")
    return 0.5


def learn_fails(run, place, forecast, outcome, number):
    if number == shared(run)[0]:
        raise ValueError("boom")
    return 0


def move_fails(run, size, forecast, number):
    if number == shared(run)[0]:
        raise ValueError("boom")
    return 0.5


def reveal_fails(run, number):
    if number == shared(run)[0]:
        raise ValueError("boom")
    return 0


class Says(forecasters.Forecaster):
    """Plays the steps that it is given."""

    def __init__(self, say=fair, learn=nothing, size=1, kept=(BAD,), **more):
        self.__dict__["given"] = (say, learn), {"size": size, "shared": kept} | more

    def start(self, horizon, stream):
        steps, more = self.given
        return Forecaster(*steps, **more)


class Moves(natures.Nature):
    """Plays the steps that it is given."""

    sight = Sight.HISTORY
    reveals = frozenset()

    def __init__(self, move=half, kept=(BAD,), **more):
        self.__dict__["given"] = move, {"shared": kept, "sight": self.sight} | more

    def start(self, horizon, stream):
        move, more = self.given
        return Nature(move, **more)


FAILING = {
    "say": (Says(say=say_fails), Moves(), "forecaster"),
    "draw": (Says(draw=draw_fails), Moves(), "forecaster"),
    "learn": (Says(learn=learn_fails), Moves(), "forecaster"),
    "move": (Says(), Moves(move_fails), "nature"),
    "hear": (Says(), Moves(hear=learn_fails), "nature"),
    "reveal": (Says(), Moves(reveal=reveal_fails, note=1, reveals={0: "x"}), "nature"),
}


@pytest.mark.parametrize("schedule", [Schedule(), Schedule(delays=Constant(5))], ids=["now", "late"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("step", FAILING)
def test_an_error_in_a_step_names_player_round_and_run(step, threads, schedule, monkeypatch):
    mine, theirs, role = FAILING[step]
    if step == "reveal":
        theirs.__dict__["reveals"] = frozenset({"x"})
    monkeypatch.setattr(module, "THREAD", 1)
    game = Game(mine, theirs, horizon=100, runs=range(4, 8), seed=1, schedule=schedule, threads=threads)
    game.advance(20)
    with pytest.raises(InvalidForecast, match=rf"^{role} .* failed in round {BAD}, run 4: .*boom"):
        game.advance(100)
    with pytest.raises(InvalidForecast, match="boom"):
        game.advance(100)


def fails_once_it_has_seen(run, place, forecast, outcome, number):
    seen = state(run)
    seen[0] += outcome
    if seen[0] == 8:
        raise ValueError("boom")
    return 0


@pytest.mark.parametrize("threads", [1, 3])
def test_the_error_is_that_of_the_first_run_that_fails(threads, monkeypatch):
    monkeypatch.setattr(module, "THREAD", 1)
    mine = Says(learn=fails_once_it_has_seen, state=[0.0])

    def said(runs, threads=1):
        game = Game(mine, Moves(), horizon=13, runs=runs, seed=1, threads=threads)
        try:
            game.advance(13)
        except InvalidForecast as error:
            return str(error)
        return ""

    # None of 60 runs fails with a probability of 10^-9.
    alone = (said(range(run, run + 1)) for run in range(60))
    assert said(range(60), threads) == next(filter(None, alone))


# ---------------------------------------------------------------- ends

BEYOND = """
import sys
from onlinecal.engine.game import Game
from onlinecal.engine.steps import law, note, shared, state
from tests.engine.test_steps import Moves, Says, fair, half, nothing

def in_state(run, number):
    state(run)[2] = 1.0
    return fair(run, number)

def in_shared(run, number):
    shared(run)[3] += 0.0
    return fair(run, number)

def in_note(run, number):
    note(run)[4] = 1.0
    return fair(run, number)

def in_values(run, number):
    law(run)[0][5] = 0.5
    return fair(run, number)

def in_weights(run, number):
    law(run)[1][5] = 0.5
    return fair(run, number)

def move(run, size, forecast, number):
    note(run)[1] = 0.0
    return 0.5

from onlinecal.engine.run import kernel
fair = kernel(fair)
room = dict(state=[0.0, 0.0], kept=[1.0, 2.0, 3.0], note=4, size=5)
for step in (in_state, in_shared, in_note, in_values, in_weights):
    game = Game(Says(say=step, **room), Moves(), horizon=3, runs=range(2))
    try:
        game.advance(3)
    except Exception as error:
        print(step.__name__, str(error).splitlines()[0])
game = Game(Says(), Moves(move, note=1), horizon=3, runs=range(2))
try:
    game.advance(3)
except Exception as error:
    print("move", str(error).splitlines()[0])
"""


@pytest.mark.slow  # only .ci/run asks for it
def test_the_ends_of_all_parts_of_a_row_are_checked_where_this_is_asked_for():
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    root = Path(onlinecal.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", BEYOND], env=env, cwd=root, capture_output=True, text=True, check=True
    )
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert list(said) == ["in_state", "in_shared", "in_note", "in_values", "in_weights", "move"], done.stderr
    for step, message in said.items():
        assert message.startswith("nature" if step == "move" else "forecaster")
        assert "in round 1, run 0" in message
        assert "index" in message
        assert "bounds" in message


# ---------------------------------------------------------------- machine code on disk


def test_code_without_checked_ends_is_not_taken_where_they_are_to_be_checked(monkeypatch):
    monkeypatch.setattr(config, "BOUNDSCHECK", None)
    unchecked = stamp()
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    assert stamp() != unchecked


def test_the_state_changes_with_each_file_of_which_steps_are_made(tmp_path):
    package = Path(onlinecal.__file__).parent
    for folder in ("core", "engine", "forecasters", "games", "natures"):
        (tmp_path / folder).mkdir()
        for file in (package / folder).glob("*.py"):
            shutil.copy2(file, tmp_path / folder / file.name)
    same = state_of(tmp_path)
    for name in (
        "engine/uniforms.py",
        "engine/run.py",
        "forecasters/hedging.py",
        "games/policy.py",
        "natures/base.py",
        "core/errors.py",
    ):
        file = tmp_path / name
        text = file.read_text()
        file.write_text(text + "\n# another\n")
        assert state_of(tmp_path) != same, name
        file.write_text(text)
        assert state_of(tmp_path) != same, name  # of another time
        shutil.copy2(package / name, file)
        assert state_of(tmp_path) == same
    for folder in APART:  # of which nothing is taken
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.py").write_text("")
    assert state_of(tmp_path) == same
    (tmp_path / "forecasters" / "own.py").write_text("")
    assert state_of(tmp_path) != same


STEP = "from helpers import two\n\ndef say(run, number):\n    return two(number)\n"
HELPERS = "from numba import njit\n\n@njit\ndef two(x):\n    return x + {}\n"


def test_a_step_is_compiled_again_once_a_helper_has_changed(tmp_path, monkeypatch):
    """As when the package changes: the file of the step stays as it is, that of a helper becomes another."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "kept_step.py").write_text(STEP)

    def played(added, stamp):
        (tmp_path / "helpers.py").write_text(HELPERS.format(added))
        monkeypatch.delitem(sys.modules, "helpers", raising=False)
        importlib.invalidate_caches()
        shutil.rmtree(tmp_path / "__pycache__" / "helpers", ignore_errors=True)
        for old in (tmp_path / "__pycache__").glob("helpers*"):
            old.unlink()
        spec = importlib.util.spec_from_file_location("kept_step", tmp_path / "kept_step.py")
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "kept_step", made)
        spec.loader.exec_module(made)
        step = compiled(int64(RowPointer(stamp), int64), made.say)
        return sum(step.stats.cache_hits.values())

    assert played(1, "a") == 0
    assert played(1, "a") == 1
    assert played(2, "b") == 0
    assert played(2, "b") == 1


def test_the_forecaster_of_the_page_plays_as_the_plain_class(tmp_path, monkeypatch):
    """docs/writing.md has a whole forecaster of steps, and a plain class of the same rule."""
    page = (Path(__file__).parents[2] / "docs" / "writing.md").read_text("utf-8")
    blocks = re.findall(r"```python[^\n]*\n(.*?)```", page, re.DOTALL)
    plain, of_steps = (
        next(each for each in blocks if name in each) for name in ("class EMA:", "class Smoothing(")
    )
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "page_plain.py").write_text(plain)
    (tmp_path / "page_steps.py").write_text(of_steps)
    players = importlib.import_module("page_plain").EMA, importlib.import_module("page_steps").Smoothing()
    games = [Game(player, Contrarian(), horizon=500, runs=range(2)) for player in players]
    for game in games:
        game.advance(500)
    assert [game.compiled for game in games] == [False, True]
    assert bits(games[0].gammas()) == bits(games[1].gammas())
