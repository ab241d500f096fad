"""Executors, processes and clusters for tests, and what a results file says however its cells were played."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections import Counter
from contextlib import closing
from functools import partial

from onlinecal.study.executors.base import Executor, Lost, attempt
from onlinecal.study.executors.kit import opened, packed


class Disorderly(Executor):
    """Plays units in a random order, and loses some first; all goes the way through bytes that it would go elsewhere.

    `loses` says how often a unit is lost before it is played.
    """

    def __init__(self, seed=0, workers=3, loses=lambda unit: 0):
        self.workers, self.remarks = workers, []
        self._random, self._loses, self.order = random.Random(seed), loses, []

    def play(self, work):
        kit, held, lost = packed(work.cells), [], Counter()
        while True:
            while len(held) < 2 * self.workers and (unit := work.following()) is not None:
                held.append(unit)
            if not held:
                return
            unit = held.pop(self._random.randrange(len(held)))
            if lost[unit] < self._loses(unit):
                lost[unit] += 1
                yield [(unit, Lost("it was lost"))]
            else:
                self.order.append(unit)
                cell = opened(*kit)[unit.cell]
                yield [(unit, attempt(cell, unit, 1, partial(work.worked, unit)))]


def tables(path):
    """All that a results file holds, by names: not how long it took, nor in which order cells were finished."""
    with closing(sqlite3.connect(path)) as db:
        return {
            name: sorted(db.execute(query).fetchall())
            for name, query in {
                "meta": "SELECT key, value FROM meta",
                "failed": "SELECT key, error FROM failed",
                "columns": 'SELECT key, name, "column", content FROM columns',
                "gammas": "SELECT key, run, packed FROM gammas JOIN games ON id = game",
                "games": "SELECT key, content, times, held, open, people, accounts FROM games",
                "totals": 'SELECT key, "column", round, run, total FROM totals JOIN games ON id = game',
            }.items()
        }


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
    """The processes that play for a process: forked from its server, elsewhere its own."""
    begun = _children(pid)
    forked = [own for server in begun if "forkserver" in command_of(server) for own in _children(server)]
    return [own for own in begun if "spawn_main" in command_of(own)] + forked


def all_gone(pids, within=5.0):
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in pids), within)


# ---------------------------------------------------------------- clusters


class Dask:
    """A scheduler, and workers in processes of their own, on this machine."""

    def __init__(self, folder, workers=2):
        folder.mkdir()
        self.folder, self.processes = folder, []
        file = folder / "scheduler.json"
        self._begin("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        self.address = json.loads(wait_for(lambda: file.exists() and file.read_text()))["address"]
        if workers:
            self.workers(workers)

    def workers(self, count, environment=None, nanny=True):
        options = ("--nthreads", "1", "--local-directory", str(self.folder))
        for how in [("--nworkers", str(count))] if nanny else [("--no-nanny",)] * count:
            self._begin("worker", self.address, *how, *options, environment=environment)

    def _begin(self, *command, environment=None):
        with open(self.folder / "dask.log", "ab") as log:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "dask", *command, "--no-dashboard", "--dashboard-address", ":0"],
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                    env=os.environ | (environment or {}),
                    start_new_session=True,
                )
            )

    def playing(self, nanny=True):
        """The processes that play."""
        begun = [process.pid for process in self.processes[1:]]
        if not nanny:
            return [pid for pid in begun if "worker" in command_of(pid)]
        return [pid for parent in begun for pid in workers_of(parent)]

    def count(self, nanny=True):
        """Counts the workers that have begun, for the scheduler and for their nannies.

        A worker reports to the scheduler first. Dask's nanny gives up if its worker dies before it has heard of it.
        """
        from distributed import Client

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions, of which there are several
            with Client(self.address, set_as_default=False) as client:
                counted = sum(client.nthreads().values())
                if not nanny:
                    return counted
                states = client.run(
                    lambda dask_worker: dask_worker.process.status.name, nanny=True, on_error="return"
                )
                return min(counted, list(states.values()).count("running"))

    def end(self):
        for process in reversed(self.processes):
            family = [process.pid, *workers_of(process.pid)]
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
            all_gone(family[1:], 20.0)
        self.processes = []
