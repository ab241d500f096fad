"""Studies by several workers of which some are killed at random moments: nothing is lost, nothing is there twice."""

import contextlib
import gc
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings

import pytest

import onlinecal as oc
from onlinecal.core.errors import WorkerError
from onlinecal.core.progress import Progress
from onlinecal.scenario import load
from onlinecal.study import Played, play_cells
from onlinecal.study.executors import executor_of
from onlinecal.study.executors.processes import Processes
from onlinecal.study.playing import AGAIN
from onlinecal.study.session import Session
from onlinecal.study.status import Status
from tests.executors import tables
from tests.results import N, cells

SLEEPS = """
import time
from pathlib import Path
SLOW = Path(__file__).with_name("slow")
class Sleeps:
    def __init__(self, horizon, salt):
        self.horizon, self.sum = horizon, salt
    def forecast(self):
        time.sleep(0.02 if SLOW.exists() else 0.002)
        return self.sum % 1.0
    def update(self, forecast, outcome):
        self.sum += 0.1 + outcome / 3
"""
#: cells of some tenths of a second, which cost the machine nothing; of some seconds where there is a file "slow"
SCENARIO = """
runs = 4
horizons = [40, 50, 60, 70, 80]
measures = ["ece", "cdl"]
natures = ["drift", "random_walk", "contrarian"]
[[forecasters]]
name = "own:Sleeps"
label = "a"
salt = 0.2
[[forecasters]]
name = "own:Sleeps"
label = "b"
salt = 0.7
"""
#: the command line, with processes from the beginning
CODE = (
    "import sys; from onlinecal.study.executors import processes; processes.ALONE = 0; "
    "from onlinecal.cli import main; main()"
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own.py").write_text(SLEEPS)
    (tmp_path / "s.toml").write_text(SCENARIO)
    yield tmp_path
    sys.modules.pop("own", None)  # others have an own.py of their own


def begin(folder, *options, before=""):
    return subprocess.Popen(
        [sys.executable, "-c", before + CODE, "run", "s.toml", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def workers_of(pid):
    """The processes that a process has begun."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[1] == str(pid) and fields[0] != "Z":
                found.append(int(entry))
    return found


def gone(pids, within=5.0):
    until = time.monotonic() + within
    while left := [pid for pid in pids if os.path.exists(f"/proc/{pid}/exe")]:
        if time.monotonic() > until:
            return left
        time.sleep(0.02)
    return []


def wait_for(condition, within=60.0):
    until = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


def more_is_done(playing, path, before):
    """Waits until another cell has been finished, or it is all over."""
    wait_for(lambda: playing.poll() is not None or Status.of(path).done > before)


@pytest.fixture
def alone(folder):
    """What the study gives where nobody is killed."""
    done = begin(folder, "--output", "alone.db", "--jobs", "1")
    done.communicate(timeout=120)
    assert done.returncode == 0
    return tables(folder / "alone.db")


@pytest.mark.slow
def test_whoever_plays_a_study_is_killed_ten_times(folder, alone, seed):
    random.seed(seed)
    path = folder / "results" / "s.db"
    orphans = []
    for i in range(10):
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
        assert gone(orphans) == []
    playing = begin(folder, "--jobs", "2", "--resume")
    _, err = playing.communicate(timeout=120)
    assert (playing.returncode, err) == (0, "")
    assert tables(path) == alone


@pytest.mark.slow
def test_workers_are_killed_ten_times(folder, alone, seed, monkeypatch):
    random.seed(seed)
    monkeypatch.setattr(sys, "path", list(sys.path))
    planned = load(folder / "s.toml")
    executor, killed, lost = Processes(2, alone=0), 0, {}

    # However long a new worker takes to begin, the study is not over before.
    slow = folder / "slow"
    slow.touch()

    def kill():
        nonlocal killed
        while killed < 10 and slow.exists():
            time.sleep(random.uniform(0.0, 0.3))
            busy = [w for w in list(executor._team) if w.ready and w.unit and lost.get(w.unit, 0) < AGAIN]
            if busy:
                worker = random.choice(busy)
                # One that has just been given another is not known to have been killed at that one.
                unit = worker.unit
                os.kill(worker.pid, signal.SIGKILL)
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
    assert killed == 10, "the study was over before"
    assert tables(path) == alone


def test_an_interrupt_ends_all_processes_and_keeps_what_is_finished(folder):
    playing = begin(folder, "--jobs", "2")
    path = folder / "results" / "s.db"
    wait_for(lambda: playing.poll() is not None or (path.exists() and Status.of(path).done))
    status = Status.of(path)
    assert f"process {playing.pid} on " in status.writer
    assert status.left == status.cells - status.done
    assert 0 < status.run_rounds_left < 6 * 4 * (40 + 50 + 60 + 70 + 80)
    workers = [pid for pid in workers_of(playing.pid) if "spawn_main" in command_of(pid)]
    assert len(workers) == 2
    playing.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, err = playing.communicate(timeout=30)
    assert playing.returncode == 130
    assert time.monotonic() - began < 3.0
    assert gone(workers) == []
    done = Status.of(path)
    assert err == (
        f"stopped: {done.done} of 30 cells are finished and kept in results/s.db; go on with: onlinecal run s.toml "
        "--resume\n"
    )
    assert done.writer == ""


# ---------------------------------------------------------------- a Dask cluster


class Dask:
    """A scheduler, and workers in processes of their own, on this machine."""

    def __init__(self, folder, workers=2, environment=None):
        self.folder, self._processes = folder, []
        self._file = folder / "scheduler.json"
        self._begin("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self._file))
        self.address = json.loads(wait_for(lambda: self._file.exists() and self._file.read_text()))["address"]
        if workers:
            self.workers(workers, environment)

    def workers(self, count, environment=None, nanny=True):
        options = ("--nthreads", "1", "--local-directory", str(self.folder))
        for how in [("--nworkers", str(count))] if nanny else [("--no-nanny",)] * count:
            self._begin("worker", self.address, *how, *options, environment=environment)

    def _begin(self, *command, environment=None):
        with open(self.folder / "dask.log", "ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "dask", *command, "--no-dashboard", "--dashboard-address", ":0"],
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                    env=os.environ | (environment or {}),
                    start_new_session=True,
                )
            )

    def end(self):
        for process in reversed(self._processes):
            family = [process.pid, *workers_of(process.pid)]
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
            assert gone(family[1:], 20.0) == []
        self._processes = []


@pytest.fixture
def dask(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "dask").mkdir()
    cluster = Dask(tmp_path / "dask")
    yield cluster
    cluster.end()
    shutil.rmtree(tmp_path / "dask", ignore_errors=True)


@pytest.mark.slow
def test_a_cluster_plays_the_same_also_where_its_workers_are_killed(folder, alone, dask, seed):
    """The plug-in lies beside the scenario, and not where the workers are."""
    random.seed(seed)
    done = begin(folder, "--output", "cluster.db", "--scheduler", dask.address)
    _, err = done.communicate(timeout=120)
    assert (done.returncode, err) == (0, "")
    assert tables(folder / "cluster.db") == alone
    # Ten kills, each of a worker that plays; the next when another has taken its place and a cell has been finished.
    path, killed = folder / "killed.db", 0
    options = ["--output", "killed.db", "--scheduler", dask.address]
    playing = begin(folder, *options)
    wait_for(path.exists)
    while killed < 10:
        more_is_done(playing, path, Status.of(path).done)
        if playing.poll() is not None:
            _, err = playing.communicate()
            assert (playing.returncode, err) == (0, "")
            assert tables(path) == alone
            playing = begin(folder, *options, "--overwrite")
            wait_for(lambda: Status.of(path).done == 0)
            continue
        time.sleep(random.uniform(0.0, 0.3))
        nanny = dask._processes[-1].pid
        busy = [pid for pid in workers_of(nanny) if "spawn_main" in command_of(pid)]
        if busy:
            os.kill(random.choice(busy), signal.SIGKILL)
            killed += 1
    _, err = playing.communicate(timeout=180)
    assert (playing.returncode, err) == (0, "")
    assert tables(path) == alone
    # Whoever plays is killed; the workers stop, and play the rest later.
    playing = begin(folder, "--output", "again.db", "--scheduler", dask.address)
    wait_for(lambda: (folder / "again.db").exists() and Status.of(folder / "again.db").done)
    playing.kill()
    playing.communicate()
    playing = begin(folder, "--output", "again.db", "--scheduler", dask.address, "--resume")
    _, err = playing.communicate(timeout=120)
    assert (playing.returncode, err) == (0, "")
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
def test_workers_of_a_cluster_stop_when_nobody_waits_for_them(folder, dask, how):
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


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read()
    except OSError:
        return ""


class Deadly:
    """Ends its process without a word, whenever it plays."""

    def forecast(self):
        os._exit(1)

    def update(self, forecast, outcome):
        pass


class Sound:
    def forecast(self):
        return 0.5

    def update(self, forecast, outcome):
        time.sleep(0.002)


@pytest.mark.slow
def test_what_kills_the_workers_of_a_cluster_fails_and_the_rest_is_played(dask):
    made = oc.forecasters.base.as_forecaster
    planned = cells(
        horizons=(50, 60, 70), runs=1, forecasters=[made(Deadly), made(Sound)], natures=[N.Drift()]
    )
    with executor_of(scheduler=dask.address) as executor:
        found = [(cell, what) for cell, what in play_cells(planned, Progress(1), executor)]
    faults = {cell.horizon: what.text for cell, what in found if not isinstance(what, Played)}
    assert {cell.forecaster.label for cell, what in found if isinstance(what, Played)} == {"Sound"}
    assert sorted(faults) == [50, 60, 70]
    # Dask counts what else a worker had when it died, so that a unit may be played again up to six times.
    assert all(re.match(r"its worker was gone [4-7] times \(it died\)", text) for text in faults.values()), (
        faults
    )


@pytest.mark.slow
def test_workers_of_another_version_are_refused_by_name(tmp_path, dask):
    fakes = {
        # as a package that is imported has it, and as one that is installed
        "numba": "import numba\nnumba.__version__ = '0.0.1'\n",
        "numpy": "from distributed import versions\nreal = versions._version_cached\n"
        "versions._version_cached = lambda name: '0.0.1' if name == 'numpy' else real(name)\n",
    }

    def refused(workers):
        try:
            with executor_of(scheduler=dask.address) as executor:
                if executor.workers == workers:
                    list(play_cells(cells(horizons=range(100, 120)), Progress(1), executor))
                    return "not refused"
                return ""
        except WorkerError as error:
            return str(error)

    assert wait_for(lambda: refused(2)) == "not refused"
    for workers, name in ((3, "numba"), (4, "numpy")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sitecustomize.py").write_text(fakes[name])
        path = os.pathsep.join([str(tmp_path / name), os.environ.get("PYTHONPATH", "")])
        dask.workers(1, {"PYTHONPATH": path})
        wait_for(lambda n=workers: playable(dask.address) == n)
        said = refused(workers)
        assert said.startswith("the worker tcp://127.0.0.1:")
        assert f" has {name} 0.0.1, here it is " in said


def playable(address):
    """How many units a cluster plays at once."""
    from distributed import Client

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions, of which there are several
        with Client(address, set_as_default=False) as client:
            return sum(client.nthreads().values())


@pytest.mark.slow
def test_a_scheduler_without_workers_and_one_that_goes_away(folder, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    from onlinecal.study.executors import cluster

    (tmp_path / "bare").mkdir()
    bare = Dask(tmp_path / "bare", workers=0)
    try:
        monkeypatch.setattr(cluster, "PATIENCE", 1.0)
        with pytest.raises(WorkerError, match=r"has no workers; begin some with `dask worker tcp://127"):
            executor_of(scheduler=bare.address).__enter__()
        bare.workers(1)
        monkeypatch.setattr(cluster, "PATIENCE", 60.0)
        with executor_of(scheduler=bare.address):
            pass
        playing = begin(folder, "--scheduler", bare.address)
        path = folder / "results" / "s.db"
        wait_for(lambda: path.exists() and Status.of(path).done)
        os.kill(bare._processes[0].pid, signal.SIGKILL)
        _, err = playing.communicate(timeout=90)
        assert (
            err
            == f"error: the scheduler at {bare.address} is gone; finished cells are kept; go on with --resume\n"
        )
        assert playing.returncode == 2
        assert Status.of(path).done > 0
    finally:
        bare.end()


@pytest.mark.parametrize("patience", [1, pytest.param(None, marks=pytest.mark.slow, id="as it is")])
def test_a_scheduler_that_does_not_answer(folder, patience):
    pytest.importorskip("distributed")
    less = (
        ""
        if patience is None
        else f"from onlinecal.study.executors import cluster; cluster.PATIENCE = {patience}; "
    )
    began = time.monotonic()
    done = begin(folder, "--scheduler", "tcp://127.0.0.1:9", before=less)
    _, err = done.communicate(timeout=60)
    wait = patience or 10
    assert time.monotonic() - began < wait + 30.0  # and the seconds in which a busy machine begins
    assert done.returncode == 2
    assert err.startswith(f"error: no Dask scheduler answers at tcp://127.0.0.1:9 within {wait} s (")
    assert err.count("\n") == 1
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n",
            "what answers at {} is no Dask scheduler",
        ),
        (b"", "no Dask scheduler answers at {} within 1 s"),
    ],
    ids=["of the web", "silent"],
)
def test_a_server_that_is_no_scheduler(answer, said, monkeypatch):
    """Such as the dashboard of one; nothing of Dask's own is raised, there or when the connection is forgotten."""
    pytest.importorskip("distributed")
    from onlinecal.study.executors import cluster

    monkeypatch.setattr(cluster, "PATIENCE", 1)
    unraised = []
    monkeypatch.setattr(sys, "unraisablehook", unraised.append)
    held = []

    def serve(server):
        with contextlib.suppress(OSError):  # until it is closed
            while True:
                held.append(server.accept()[0])
                held[-1].sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(WorkerError, match=said.format(address)), cluster.Cluster(address):
            pass
        for connection in held:
            connection.close()
    gc.collect()
    assert unraised == []
