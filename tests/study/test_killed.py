"""Studies on the command line whose processes are killed at random moments: nothing is lost or there twice."""

import os
import random
import signal
import sys
import threading
import time

import pytest

from onlinecal.scenario import load
from onlinecal.study.executors.processes import Processes
from onlinecal.study.playing import AGAIN
from onlinecal.study.session import Session
from onlinecal.study.status import Status
from tests.executors import all_gone, begin, ended, tables, wait_for, workers_of


def more_is_done(playing, path):
    """Waits until another cell has been finished, or it is all over."""
    before = Status.of(path).done if path.exists() else 0
    wait_for(lambda: playing.poll() is not None or (path.exists() and Status.of(path).done > before))


@pytest.mark.slow
def test_the_process_that_plays_a_study_is_killed_again_and_again_and_interrupted(folder, alone, seed, full):
    """An interrupt ends all processes and keeps what is finished; the study goes on to the same bytes."""
    random.seed(seed)
    path = folder / "results" / "s.db"
    orphans = []
    for i in range(10 if full else 1):
        playing = begin(folder, "--jobs", "2", *(["--resume"] if i else []))
        # Half of the kills come while processes begin, or before.
        if (i + seed) % 2:
            more_is_done(playing, path)
            time.sleep(random.uniform(0.0, 0.3))
        else:
            wait_for(lambda p=playing: p.poll() is not None or (path.exists() and workers_of(p.pid)))
            time.sleep(random.uniform(0.0, 1.0))
        orphans += workers_of(playing.pid)
        assert playing.poll() is None, "the study was over before"
        playing.kill()
        playing.communicate()
        all_gone(orphans)
    playing = begin(folder, "--jobs", "2", "--resume")
    more_is_done(playing, path)
    status = Status.of(path)
    assert f"process {playing.pid} on " in status.writer
    assert status.left == status.cells - status.done
    assert 0 < status.run_rounds_left < 6 * 4 * (40 + 50 + 60 + 70 + 80)
    workers = workers_of(playing.pid)
    assert len(workers) == 2
    playing.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, err = playing.communicate(timeout=30)
    assert playing.returncode == 130
    assert time.monotonic() - began < 3.0
    all_gone(workers)
    done = Status.of(path)
    said = f"stopped: {done.done} of 30 cells are finished and kept in results/s.db; go on with: onlinecal run s.toml "
    assert err.endswith(f"{said}--resume\n")
    assert done.writer == ""
    ended(begin(folder, "--jobs", "2", "--resume"))
    assert tables(path) == alone


@pytest.mark.slow
def test_workers_are_killed_again_and_again(folder, alone, seed, full, monkeypatch):
    random.seed(seed)
    monkeypatch.setattr(sys, "path", list(sys.path))
    planned = load(folder / "s.toml")
    executor, killed, lost, dead = Processes(2, alone=0), 0, {}, []
    kills = 10 if full else 2

    # However long a new worker takes to begin, the study is not over before.
    slow = folder / "slow"
    slow.touch()

    def kill():
        nonlocal killed
        while killed < kills and slow.exists():
            time.sleep(random.uniform(0.0, 0.3))
            there = [w for w in list(executor._team) if w.ready and w not in dead]
            busy = [w for w in there if w.unit and lost.get(w.unit, 0) < AGAIN]
            if busy:
                worker = random.choice(busy)
                # One that has just been given another is not known to have been killed at that one.
                unit = worker.unit
                os.kill(worker._process.pid, signal.SIGKILL)
                dead.append(worker)
                for each in {unit, worker.unit} - {None}:
                    lost[each] = lost.get(each, 0) + 1
                killed += 1
        slow.unlink(missing_ok=True)

    thread = threading.Thread(target=kill, daemon=True)
    path = folder / "killed.db"
    with executor, Session.open(planned.cells, planned.meta, path) as opened:
        thread.start()
        assert opened.play(executor) == []
    slow.unlink(missing_ok=True)
    thread.join()
    assert killed == kills, "the study was over before"
    assert tables(path) == alone
