"""Studies on the command line with processes killed at random moments: nothing is lost or there twice."""

import os
import random
import signal
import threading
import time

import pytest

from onlinecal.scenario import load
from onlinecal.study.executors import Processes
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
    assert err.endswith(f"{said}--jobs 2 --resume\n")
    assert done.writer == ""
    ended(begin(folder, "--jobs", "2", "--resume"))
    assert tables(path) == alone


@pytest.mark.slow
def test_processes_that_begin_do_not_hear_an_interrupt(folder):
    """Ctrl-C goes to all processes of a terminal; the one that plays the study ends the others."""
    playing = begin(folder, "--jobs", "2")
    begun = wait_for(lambda: workers_of(playing.pid))
    for pid in (*begun, playing.pid):
        os.kill(pid, signal.SIGINT)
    _, err = playing.communicate(timeout=60)
    assert err.startswith("stopped: 0 of 30 cells are finished"), err
    all_gone(begun)


@pytest.mark.slow
def test_workers_are_killed_again_and_again(folder, alone, seed, monkeypatch):
    """As often as a unit is played again: whichever they play, none is given up."""
    monkeypatch.setattr(Processes, "again", 3)
    random.seed(seed)
    planned, path, killed = load(folder / "s.toml"), folder / "killed.db", []
    slow, pid = folder / "slow", os.getpid()
    # However long a new worker takes to begin, the study is not over before.
    slow.touch()

    def kill():
        while len(killed) < Processes.again and slow.exists():
            time.sleep(random.uniform(0.0, 0.3))
            if busy := [worker for worker in workers_of(pid) if worker not in killed]:
                killed.append(random.choice(busy))
                os.kill(killed[-1], signal.SIGKILL)
        slow.unlink(missing_ok=True)

    thread = threading.Thread(target=kill, daemon=True)
    with Session.open(planned.cells, planned.meta, path) as opened:
        thread.start()
        assert opened.play(Processes(2)) == []
    slow.unlink(missing_ok=True)
    thread.join()
    assert len(killed) == Processes.again, "the study was over before"
    assert tables(path) == alone
