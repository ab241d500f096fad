"""A Dask cluster with workers that die in the middle of a study, or differ; and what is no cluster."""

import os
import re
import signal
import time

import pytest

import onlinecal as oc
from onlinecal.core.errors import WorkerError
from onlinecal.core.progress import Progress
from onlinecal.study import Batch, cluster, play_cells
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
@pytest.mark.parametrize(
    ("dask", "phase", "count"),
    [(True, "begin", 1), (True, "submit", 2), (False, "begin", 2), (False, "submit", 1)],
    indirect=["dask"],
)
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


def test_a_scheduler_without_workers(threads, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    for worker in list(threads.workers.values()):
        leaves(threads, worker)
    with pytest.raises(WorkerError, match=r"has no workers; begin some with `dask worker inproc://"):
        Cluster(threads.scheduler_address).__enter__()


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
    def __init__(self, horizon, salt): pass
    def forecast(self):
        with open(FILE, "a") as file: file.write("x")
        time.sleep(0.01)
        return 0.5
    def update(self, forecast, outcome): pass
"""


@pytest.mark.slow
def test_workers_of_a_cluster_stop_when_their_study_is_killed(folder, dask):
    beats = folder / "beats"
    dask.ready()
    (folder / "own.py").write_text(BEATS.replace("FILE", repr(str(beats))))
    (folder / "s.toml").write_text(SCENARIO.replace("[40, 50, 60, 70, 80]", "[1000000]"))
    playing = begin(folder, "--scheduler", dask.address)
    wait_for(beats.exists)
    time.sleep(0.5)
    playing.kill()
    playing.communicate(timeout=60)

    def still():
        before = beats.stat().st_size
        time.sleep(1.0)
        return beats.stat().st_size == before

    wait_for(still, within=15.0)
