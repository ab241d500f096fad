"""Studies on the command line whose processes are killed at random moments: nothing is lost or there twice."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from onlinecal.scenario import load
from onlinecal.study.executors.processes import Processes
from onlinecal.study.playing import AGAIN
from onlinecal.study.session import Session
from onlinecal.study.status import Status
from tests.executors import Dask, all_gone, tables, wait_for, workers_of

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
#: cells of some tenths of a second, which cost the machine nothing; of some seconds where there is a file "slow",
#: and of none where there is a file "quick"
SCENARIO = """
runs = 4
horizons = [40, 50, 60, 70, 80]
measures = ["ece", "cdl"]
natures = ["drift", "random_walk", "contrarian"]
forecasters = [{ name = "own:Sleeps", label = "a", salt = 0.2 }, { name = "own:Sleeps", label = "b", salt = 0.7 }]
"""
#: the command line, with processes from the beginning
CODE = (
    "import sys; from onlinecal.study.executors import processes; processes.ALONE = 0; "
    "from onlinecal.cli import main; main()"
)


def filled(folder):
    (folder / "own.py").write_text(SLEEPS)
    (folder / "s.toml").write_text(SCENARIO)
    return folder


@pytest.fixture
def folder(tmp_path):
    yield filled(tmp_path)
    sys.modules.pop("own", None)  # others have an own.py of their own


def begin(folder, *options):
    return subprocess.Popen(
        [sys.executable, "-c", CODE, "run", "s.toml", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def ended(playing):
    """Its errors; it may also say how far it is, where the machine is busy."""
    _, err = playing.communicate(timeout=180)
    assert playing.returncode == 0, err
    assert "error" not in err


def more_is_done(playing, path, before):
    """Waits until another cell has been finished, or it is all over."""
    wait_for(lambda: playing.poll() is not None or Status.of(path).done > before)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The study where nothing is killed."""
    folder = filled(tmp_path_factory.mktemp("alone"))
    (folder / "quick").touch()
    ended(begin(folder, "--output", "alone.db", "--jobs", "1"))
    return tables(folder / "alone.db")


@pytest.mark.slow
def test_the_process_that_plays_a_study_is_killed_again_and_again_and_interrupted(folder, alone, seed, full):
    """An interrupt ends all processes and keeps what is finished; the study goes on to the same bytes."""
    random.seed(seed)
    path = folder / "results" / "s.db"
    orphans = []
    for i in range(10 if full else 2):
        playing = begin(folder, "--jobs", "2", *(["--resume"] if i else []))
        # Half of the kills come while processes begin, or before.
        if i % 2:
            more_is_done(playing, path, Status.of(path).done)
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
    more_is_done(playing, path, Status.of(path).done)
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
    assert err.endswith(
        f"stopped: {done.done} of 30 cells are finished and kept in results/s.db; go on with: onlinecal run s.toml "
        "--resume\n"
    )
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


# ---------------------------------------------------------------- on a Dask cluster


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    """One cluster for all of them; the last test ends its scheduler."""
    pytest.importorskip("distributed")
    cluster = Dask(tmp_path_factory.mktemp("cluster") / "dask")
    yield cluster
    cluster.end()


@pytest.mark.slow
def test_a_cluster_plays_the_same_also_where_the_process_that_asks_it_is_killed(folder, alone, dask):
    """The plug-in lies beside the scenario, and not where the workers are."""
    ended(begin(folder, "--output", "cluster.db", "--scheduler", dask.address))
    assert tables(folder / "cluster.db") == alone
    # The process that plays is killed; the workers stop, and play the rest later.
    playing = begin(folder, "--output", "again.db", "--scheduler", dask.address)
    wait_for(lambda: (folder / "again.db").exists() and Status.of(folder / "again.db").done)
    playing.kill()
    playing.communicate()
    ended(begin(folder, "--output", "again.db", "--scheduler", dask.address, "--resume"))
    assert tables(folder / "again.db") == alone


BEATS = """
import time
class Sleeps:
    def __init__(self, horizon, salt): self.file = FILE
    def forecast(self):
        with open(self.file, "a") as file: file.write("x")
        time.sleep(0.01)
        return 0.5
    def update(self, forecast, outcome): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_of_a_cluster_stop_when_their_study_ends(folder, dask, how):
    beats = folder / "beats"
    (folder / "own.py").write_text(BEATS.replace("FILE", repr(str(beats))))
    (folder / "s.toml").write_text(SCENARIO.replace("[40, 50, 60, 70, 80]", "[1000000]"))
    playing = begin(folder, "--scheduler", dask.address)
    wait_for(beats.exists)
    time.sleep(0.5)
    playing.send_signal(how)
    playing.communicate(timeout=60)

    def still():
        before = beats.stat().st_size
        time.sleep(1.0)
        return beats.stat().st_size == before

    wait_for(still, within=15.0)


@pytest.mark.slow
def test_a_scheduler_that_goes_away(folder, dask):
    playing = begin(folder, "--scheduler", dask.address)
    path = folder / "results" / "s.db"
    wait_for(lambda: path.exists() and Status.of(path).done)
    os.kill(dask.processes[0].pid, signal.SIGKILL)
    _, err = playing.communicate(timeout=90)
    said = f"error: the scheduler at {dask.address} is gone; finished cells are kept; go on with --resume\n"
    assert (playing.returncode, err.endswith(said)) == (2, True)
    assert Status.of(path).done > 0
