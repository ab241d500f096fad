"""A Dask cluster with workers that die in the middle of a study, or differ; and what is no cluster."""

import contextlib
import os
import re
import signal
import socket
import threading
import time

import pytest

import onlinecal as oc
from onlinecal.core.errors import WorkerError
from onlinecal.core.progress import Progress
from onlinecal.study import Batch, cluster, play_cells, sending
from onlinecal.study.cluster import Cluster
from onlinecal.study.executors import Serial
from onlinecal.study.status import Status
from tests.executors import SCENARIO, Dask, begin, ended, tables, wait_for
from tests.results import N, cells

distributed = pytest.importorskip("distributed")

PLANNED = cells(horizons=(50, 60, 70), runs=2)


def totals(planned, executor):
    """The bytes of all totals, by cell."""
    with executor:
        found = list(play_cells(planned, Progress(1), executor))
    assert len(found) == len(planned)
    return {cell.key: [(held, t.tobytes()) for held, t in batch.totals.items()] for cell, batch in found}


def before(monkeypatch, phase, act):
    """Calls `act` once, at the second call of a method of the executor, or when it begins."""
    left, real, calls = [act], getattr(Cluster, phase), [0]

    def method(*args):
        calls[0] += 1
        if left and (calls[0] == 2 or phase == "begin"):
            left.pop()()
        return real(*args)

    monkeypatch.setattr(Cluster, phase, method)


@pytest.fixture
def threads():
    """A cluster of threads of this process, which begins at once."""
    with distributed.LocalCluster(
        n_workers=2, processes=False, threads_per_worker=1, dashboard_address=":0"
    ) as local:
        yield local


def leaves(local, worker):
    """One worker ends, and its scheduler knows."""
    local.sync(worker.close, nanny=False)
    wait_for(lambda: worker.address not in local.scheduler.workers)


def test_a_worker_that_leaves_before_it_has_played_is_not_waited_for(threads, monkeypatch):
    before(monkeypatch, "submit", lambda: leaves(threads, threads.workers[0]))
    assert totals(PLANNED, Cluster(threads.scheduler_address)) == totals(PLANNED, Serial())


def test_without_any_worker_a_study_stops_in_a_stated_time(threads, monkeypatch):
    monkeypatch.setattr(cluster, "GONE", 1.0)
    before(monkeypatch, "submit", lambda: [leaves(threads, worker) for worker in threads.workers.values()])
    with (
        Cluster(threads.scheduler_address) as executor,
        pytest.raises(WorkerError, match=r"the last worker at .* is gone; finished cells are kept"),
    ):
        list(play_cells(PLANNED, Progress(1), executor))


def test_a_scheduler_that_no_longer_answers_is_gone(threads, monkeypatch):
    monkeypatch.setattr(cluster, "GONE", 0.0)

    def frozen(client, **options):
        raise TimeoutError

    with Cluster(threads.scheduler_address) as executor:
        monkeypatch.setattr(distributed.Client, "nthreads", frozen)
        with pytest.raises(WorkerError, match=r"the scheduler at .* is gone"):
            executor.check()


@pytest.fixture(scope="module", params=[True], ids=["nanny"])
def dask(request, tmp_path_factory):
    """A cluster of all tests with workers of its kind; the last of them ends its scheduler."""
    made = Dask(tmp_path_factory.mktemp("cluster") / "dask", nanny=request.param)
    yield made
    made.end()


@pytest.mark.slow
@pytest.mark.parametrize("dask", [True, False], indirect=True, ids=["nanny", "no nanny"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("phase", ["begin", "submit"])
def test_workers_are_killed(dask, monkeypatch, phase, count):
    """One of two, or both; a nanny begins others in their place, or they are begun by hand."""
    monkeypatch.setattr(cluster, "PATIENCE", 60.0)
    dask.ready()

    def kill():
        for pid in dask.playing()[:count]:
            os.kill(pid, signal.SIGKILL)
        if count == 2 and not dask.nanny:
            dask.begin(2)

    before(monkeypatch, phase, kill)
    assert totals(PLANNED, Cluster(dask.address)) == totals(PLANNED, Serial())


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
    with Cluster(dask.address) as executor:
        found = list(play_cells(planned, Progress(1), executor))
    ((cell, why),) = ((cell, what) for cell, what in found if not isinstance(what, Batch))
    assert (len(found), cell.forecaster.label, cell.horizon) == (6, "Deadly", 50)
    # Each time four times: Dask gives it to other workers by itself.
    assert re.match(r"its worker died 2 times", str(why))


def test_a_worker_of_another_version_is_refused_by_name(threads, monkeypatch):
    """It finds other versions than the process that has packed the cells."""
    ours = sending.versions()
    found, planned = iter([ours]), cells(horizons=(51,), runs=1)
    monkeypatch.setattr(sending, "versions", lambda: next(found, ours | {"numba": "0.0.1"}))
    with pytest.raises(WorkerError, match=r"^the worker inproc://\S+ has numba 0.0.1, and not "):
        totals(planned, Cluster(threads.scheduler_address))


def test_a_scheduler_without_workers(threads, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    for worker in list(threads.workers.values()):
        leaves(threads, worker)
    with pytest.raises(WorkerError, match=r"has no workers; begin some with `dask worker inproc://"):
        Cluster(threads.scheduler_address).__enter__()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n", None])
def test_a_server_that_is_no_scheduler(answer, monkeypatch):
    """Such as the dashboard of one, or none at all."""
    monkeypatch.setattr(cluster, "PATIENCE", 1)
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
        with (
            pytest.raises(WorkerError, match=f"no Dask scheduler answers at {address} within 1 s"),
            Cluster(address),
        ):
            pass
        for connection in held:
            connection.close()


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
