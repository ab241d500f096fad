"""Executors and processes for tests, and what a results file says however its cells were played."""

import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing

from onlinecal.study.executors import Processes, play_unit
from onlinecal.study.gammas import Gammas
from onlinecal.study.sending import packed
from onlinecal.study.store import Store

#: as loky has it where the system kills a process
LOST = BrokenProcessPool("its exit codes: {SIGKILL(-9)}")


class Disorderly(Processes):
    """Plays units in a random order, and loses some first. All goes through bytes, as on the way elsewhere.

    `loses` says how often a unit is lost before it is played, and `why` by which error.
    """

    def __init__(self, seed=0, workers=3, loses=lambda unit: 0, why=LOST):
        super().__init__(workers)
        self._random, self._loses, self._why = random.Random(seed), loses, why
        self._held, self._given, self._lost, self._thread = [], [], Counter(), ThreadPoolExecutor(1)

    def begin(self, cells, _):
        self._blob = packed(cells)

    def submit(self, unit):
        assert not self._lost[unit] or all(given.done() for given in self._given), "it is played again alone"
        future = Future()
        self._given.append(future)
        self._held.append((unit, future))
        self._thread.submit(self._play)
        return future

    def _play(self):
        unit, future = self._held.pop(self._random.randrange(len(self._held)))
        if self._lost[unit] < self._loses(unit):
            self._lost[unit] += 1
            future.set_exception(self._why)
        else:
            future.set_result(play_unit(self._blob, unit))


def tables(path):
    """All that a results file holds, by names: not how long it took, by which command, nor in which order."""
    with Store.open(path) as store:
        levels = [each for key, runs in store.runs().items() for each in _levels(store, key, runs)]
    with closing(sqlite3.connect(path)) as db:
        return {"gammas": sorted(levels)} | {
            name: sorted(db.execute(query).fetchall())
            for name, query in {
                "meta": "SELECT key, value FROM meta WHERE key != 'command'",
                "cells": "SELECT * FROM cells",
                "failed": "SELECT key, error FROM failed",
                "columns": 'SELECT key, name, "column", content FROM columns',
                "games": "SELECT key, content, times, held, open, accounts FROM games",
                "totals": 'SELECT key, "column", round, run, total FROM totals JOIN games ON id = game',
            }.items()
        }


def _levels(store, key, runs):
    """Every Γ of a game, however its runs were put together."""
    gammas, checkpoints = Gammas(store.gammas(key)), len(store.numbers(key).rounds)
    for i, part, run in itertools.product(range(checkpoints), range(-1, gammas.parts), range(runs)):
        found = gammas.of(i, run, None if part < 0 else part)
        parts = () if found is None else (found.predictions, found.counts, found.means)
        yield key, i, part, run, [each.tobytes() for each in parts]


# ---------------------------------------------------------------- processes


def wait_for(condition, within=60.0):
    until = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read()
    except OSError:
        return ""


def _children(pid):
    """The processes that a process has begun, and that have not ended."""
    done = subprocess.run(["ps", "-o", "pid=,stat=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(own) for own, state in map(str.split, done.stdout.splitlines()) if state[0] != "Z"]


def workers_of(pid):
    """The processes of loky that play for a process."""
    return [own for own in _children(pid) if "popen_loky" in command_of(own)]


def all_gone(pids, within=5.0):
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in pids), within)


# ---------------------------------------------------------------- studies on the command line


SLEEPS = """
import time
from pathlib import Path
SLOW, QUICK = (str(Path(__file__).with_name(name)) for name in ("slow", "quick"))
class Sleeps:
    def __init__(self, horizon, salt):
        self.horizon, self.sum = horizon, salt
    def forecast(self):
        if not Path(QUICK).exists():
            time.sleep(0.02 if Path(SLOW).exists() else 0.002)
        return self.sum % 1.0
    def update(self, forecast, outcome):
        self.sum += 0.1 + outcome / 3
"""
#: cells of some tenths of a second, which cost the machine nothing. They take some seconds where there is a file
#: "slow", and no time where there is a file "quick".
SCENARIO = """
runs = 4
horizons = [40, 50, 60, 70, 80]
measures = ["ece", "cdl", "multi_ece"]
forecasters = [{ name = "own:Sleeps", label = "a", salt = 0.2 }, { name = "own:Sleeps", label = "b", salt = 0.7 }]
natures = [
    { name = "group_contrarian", label = "one", groups = { odd = 0.5, never = 0.0 }, thresholds = { odd = 0.7 } },
    { name = "group_contrarian", label = "two", groups = { odd = 0.5, rare = 0.1, both = ["odd", "rare"] } },
    { name = "group_contrarian", label = "three", groups = { odd = 0.2 }, thresholds = { odd = 0.1, all = 0.6 } },
]
"""
CODE = "from onlinecal.cli import main; main()"


def filled(folder):
    (folder / "own.py").write_text(SLEEPS)
    (folder / "s.toml").write_text(SCENARIO)
    return folder


def begin(folder, *options):
    command = [sys.executable, "-c", CODE, "run", "s.toml", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    return subprocess.Popen(command, cwd=folder, **pipes, preexec_fn=heard)


def ended(playing):
    """Its errors; it may also say how far it is, where the machine is busy."""
    _, err = playing.communicate(timeout=180)
    assert playing.returncode == 0, err
    assert "error" not in err
