"""A Dask cluster with workers that die, in every phase of a study, or differ; and what is no cluster."""

import contextlib
import gc
import os
import re
import signal
import socket
import sys
import threading
import time

import pytest

import onlinecal as oc
from onlinecal.core.errors import WorkerError
from onlinecal.core.progress import Progress
from onlinecal.study import Played, play_cells
from onlinecal.study.executors import executor_of, kit
from onlinecal.study.executors.base import Serial
from onlinecal.study.status import Status
from tests.executors import SCENARIO, Dask, begin, ended, tables, wait_for
from tests.results import N, cells

cluster = pytest.importorskip("onlinecal.study.executors.cluster")

PLANNED = cells(horizons=(50, 60, 70), runs=2)


def totals(planned, executor):
    """The bytes of all totals, by cell."""
    with executor:
        found = list(play_cells(planned, Progress(1), executor))
    assert len(found) == len(planned)
    return {
        cell.key: [(name, total.tobytes()) for name, total in played.totals.items()] for cell, played in found
    }


#: phase → the method with which it begins, of a client of Dask or of our executor, and when
HOOKS = {
    "begin": ("executor", "play", lambda *_: True),
    "sent": ("client", "submit", lambda _, function, *args: function is cluster._same),
    "given": ("executor", "submit", lambda *_: True),
    "played": ("executor", "_take", lambda _, happened: isinstance(happened, tuple | list)),
    "returned": ("executor", "_take", lambda _, happened: not isinstance(happened, tuple | list)),
    "merging": ("executor", "_present", lambda *_: True),
}
PHASES = list(HOOKS)[:-1]


def before(monkeypatch, phase, act):
    """Calls `act` once, when a study on a cluster comes to a phase."""
    left, (whose, name, when) = [act], HOOKS[phase]
    owner = cluster.distributed.Client if whose == "client" else cluster.Cluster
    real = getattr(owner, name)

    def method(*args, **options):
        if left and when(*args):
            left.pop()()
        return real(*args, **options)

    monkeypatch.setattr(owner, name, method)


@pytest.fixture
def threads():
    """A cluster of threads of this process, which begins at once."""
    with cluster.distributed.LocalCluster(
        n_workers=2, processes=False, threads_per_worker=1, dashboard_address=":0"
    ) as local:
        yield local


def leaves(local, worker):
    """One worker ends, and its scheduler knows."""
    local.sync(worker.close, nanny=False)
    wait_for(lambda: worker.address not in local.scheduler.workers)


def test_a_worker_that_leaves_before_it_has_played_is_not_waited_for(threads, monkeypatch):
    before(monkeypatch, "given", lambda: leaves(threads, threads.workers[0]))
    found = totals(PLANNED, executor_of(scheduler=threads.scheduler_address))
    assert found == totals(PLANNED, Serial())


@pytest.mark.parametrize("phase", ["sent", "given", "merging"])
def test_without_any_worker_a_study_or_a_merge_stops_in_a_stated_time(threads, monkeypatch, phase):
    monkeypatch.setattr(cluster, "GONE", 1.0)
    before(monkeypatch, phase, lambda: [leaves(threads, worker) for worker in threads.workers.values()])
    began = time.monotonic()
    said = r"the last worker at .* is gone; finished cells are kept"
    with executor_of(scheduler=threads.scheduler_address) as executor:
        acts = {"merging": lambda: executor.merged(time.sleep, [1.0] * 9, len)}
        with pytest.raises(WorkerError, match=said):
            acts.get(phase, lambda: list(play_cells(PLANNED, Progress(1), executor)))()
    assert time.monotonic() - began < 30.0  # a second, and those in which a busy machine begins


def test_a_scheduler_that_no_longer_answers_is_gone(threads, monkeypatch):
    monkeypatch.setattr(cluster, "GONE", 1.0)

    def frozen(client, **options):
        raise TimeoutError

    with executor_of(scheduler=threads.scheduler_address) as executor:
        monkeypatch.setattr(cluster.distributed.Client, "nthreads", frozen)
        with pytest.raises(WorkerError, match=r"the scheduler at .* is gone"):
            executor.merged(time.sleep, [4.0], len)


@pytest.fixture(scope="module", params=[True], ids=["nanny"])
def dask(request, tmp_path_factory):
    """A cluster of all tests with workers of its kind; the last of them ends its scheduler."""
    made = Dask(tmp_path_factory.mktemp("cluster") / "dask", nanny=request.param)
    yield made
    made.end()


@pytest.mark.slow
@pytest.mark.parametrize("dask", [True, False], indirect=True, ids=["nanny", "no nanny"])
def test_workers_are_killed_in_every_phase(dask, monkeypatch, seed, full):
    """One of two, or both; a nanny begins others in their place, or they are begun by hand.

    In the small size one case of each kind, others for other seeds.
    """
    alone = totals(PLANNED, Serial())
    monkeypatch.setattr(cluster, "PATIENCE", 60.0)
    cases = [(phase, count) for count in (1, 2) for phase in PHASES]
    for phase, count in cases if full else [cases[(seed + 5 * dask.nanny) % 10]]:
        dask.ready()

        def kill(count=count):
            for pid in dask.playing()[:count]:
                os.kill(pid, signal.SIGKILL)
            if count == 2 and not dask.nanny:
                dask.begin(2)

        with monkeypatch.context() as patched:
            before(patched, phase, kill)
            assert totals(PLANNED, executor_of(scheduler=dask.address)) == alone, (phase, count)


class Deadly:
    """Ends its process without a word, whenever it plays to a horizon of 50."""

    def __init__(self, horizon):
        self.horizon = horizon

    def forecast(self):
        if self.horizon == 50:
            os._exit(1)
        return 0.5

    def update(self, forecast, outcome):
        pass


class Sound:
    def forecast(self):
        return 0.5

    def update(self, forecast, outcome):
        time.sleep(0.002)


@pytest.mark.slow
def test_what_kills_the_workers_of_a_cluster_fails_and_the_rest_is_played(dask):
    dask.ready()
    who = list(map(oc.forecasters.base.as_forecaster, (Deadly, Sound)))
    planned = cells(horizons=(50, 60, 70), runs=1, forecasters=who, natures=[N.Drift()])
    with executor_of(scheduler=dask.address) as executor:
        found = list(play_cells(planned, Progress(1), executor))
    ((cell, why),) = ((cell, what) for cell, what in found if not isinstance(what, Played))
    assert (len(found), cell.forecaster.label, cell.horizon) == (6, "Deadly", 50)
    # Dask counts what else a dead worker had, so a unit may be played again up to six times.
    assert re.match(r"its worker was gone [4-7] times \(it died\)", str(why))


def test_a_worker_of_another_version_is_refused_by_name(threads, monkeypatch):
    """It finds other versions than the process that has packed the cells."""
    versions, planned = iter([kit.versions()]), cells(horizons=(51,), runs=1)
    other = kit.versions() | {"numba": "0.0.1"}
    monkeypatch.setattr(kit, "versions", lambda: next(versions, other))
    with pytest.raises(WorkerError, match=r"^the worker inproc://\S+ has numba 0.0.1, here it is "):
        totals(planned, executor_of(scheduler=threads.scheduler_address))


def test_a_scheduler_without_workers(threads, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    for worker in list(threads.workers.values()):
        leaves(threads, worker)
    with pytest.raises(WorkerError, match=r"has no workers; begin some with `dask worker inproc://"):
        executor_of(scheduler=threads.scheduler_address).__enter__()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n", "what answers at {} is no Dask scheduler"),
        (None, "no Dask scheduler answers at {} within 1 s"),
    ],
    ids=["of the web", "none"],
)  # fmt: skip
def test_a_server_that_is_no_scheduler(answer, said, monkeypatch):
    """Such as the dashboard of one; nothing of Dask's own is raised, there or when the connection is forgotten."""
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
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        if answer is None:
            server.close()
        else:
            threading.Thread(target=serve, args=(server,), daemon=True).start()
        with pytest.raises(WorkerError, match=said.format(address)), cluster.Cluster(address):
            pass
        for connection in held:
            connection.close()
    gc.collect()
    assert unraised == []


# ---------------------------------------------------------------- on the command line


@pytest.mark.slow
def test_a_cluster_plays_the_same_also_where_the_process_that_asks_it_is_killed(folder, alone, dask):
    """The plug-in lies beside the scenario, and not where the workers are, which stop, and play the rest later."""
    dask.ready()
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
    dask.ready()
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
    dask.ready()
    playing = begin(folder, "--scheduler", dask.address)
    path = folder / "results" / "s.db"
    wait_for(lambda: path.exists() and Status.of(path).done)
    os.kill(dask.processes[0].pid, signal.SIGKILL)
    _, err = playing.communicate(timeout=90)
    said = f"error: the scheduler at {dask.address} is gone; finished cells are kept; go on with --resume\n"
    assert (playing.returncode, err.endswith(said)) == (2, True)
    assert Status.of(path).done > 0
