"""A Dask cluster with workers that die in the middle of a study, or differ; and what is no cluster."""

import logging
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
from onlinecal.study.executors import Serial, Unit
from onlinecal.study.sending import opened, versions
from onlinecal.study.status import Status
from tests.command_line import onlinecal
from tests.executors import SCENARIO, begin, ended, tables, wait_for
from tests.results import N, cells

distributed, config = map(pytest.importorskip, ("distributed", "dask.config"))

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


@pytest.mark.parametrize(("workers", "at_once"), [(0, 2), (1, 2), (3, 6)])
def test_each_worker_has_a_unit_at_hand_beside_the_one_that_it_plays(workers, at_once):
    executor = Cluster("tcp://nowhere:1")
    executor.workers = workers
    assert executor.at_once == at_once


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


def test_what_does_not_answer_is_named_and_logs_are_as_before(threads, monkeypatch, tmp_path):
    logger = logging.getLogger("distributed.core")
    before = logger.level
    with Cluster(threads.scheduler_address) as executor:
        assert logger.level > logging.CRITICAL
        executor.begin(PLANNED, None)
        executor.client.close()
        for ask in (lambda: executor.begin(PLANNED, None), lambda: executor.submit(Unit(0, 0, 1))):
            with pytest.raises(WorkerError, match=r"the scheduler at .* is gone; finished cells are kept"):
                ask()
    assert logger.level == before
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with pytest.raises(WorkerError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1 within 0\.5 s"):
        Cluster("tcp://127.0.0.1:1").__enter__()
    assert logger.level == before
    scenario = 'horizon = 9\nmeasures = ["ece"]\nforecasters = ["constant"]\nnatures = ["drift"]\n'
    (tmp_path / "s.toml").write_text(scenario)
    said = onlinecal("run s.toml --scheduler tcp://127.0.0.1:1", cwd=tmp_path, rc=2).stderr
    assert said.startswith("error: no Dask scheduler answers at tcp://127.0.0.1:1 within 0.5 s")


def test_a_worker_of_another_version_is_named_with_its_address(threads, monkeypatch):
    others = {**versions(), "numpy": "0.1"}
    with Cluster(threads.scheduler_address) as executor:
        executor.begin(PLANNED, None)
        monkeypatch.setattr("onlinecal.study.sending.versions", lambda: others)
        opened.cache_clear()
        with pytest.raises(WorkerError, match=r"the worker inproc://.* has numpy 0\.1, and not"):
            executor.submit(Unit(0, 0, 1)).result(60.0)


@pytest.fixture(scope="module")
def cluster_of_two():
    """A cluster with two workers in processes of their own; a nanny begins another where one dies."""
    # Also on a busy machine, where a process takes long to begin.
    late = config.set({"distributed.deploy.lost-worker-timeout": "300 s"})
    with late, distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local:
        yield local


@pytest.fixture
def dask(cluster_of_two):
    """The same when both have begun: a nanny gives up a worker that dies before it has heard of it."""
    nannies = cluster_of_two.workers.values()
    wait_for(lambda: {nanny.status.name for nanny in nannies} == {"running"})
    wait_for(lambda: len(cluster_of_two.scheduler.workers) == 2)
    return cluster_of_two


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "count"), [("begin", 1), ("begin", 2), ("submit", 1), ("submit", 2)])
def test_workers_are_killed(dask, monkeypatch, phase, count):
    """One of two, or both, before the first unit or after it."""
    monkeypatch.setattr(cluster, "PATIENCE", 60.0)

    def kill():
        for nanny in [*dask.workers.values()][:count]:
            os.kill(nanny.pid, signal.SIGKILL)

    before(monkeypatch, phase, kill)
    assert totals(PLANNED, Cluster(dask.scheduler_address)) == totals(PLANNED, Serial())


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
    who = list(map(oc.forecasters.base.as_forecaster, (Deadly, Sound)))
    planned = cells(horizons=(50, 60, 70), runs=1, forecasters=who, natures=[N.Drift()])
    with Cluster(dask.scheduler_address) as executor:
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
    playing = begin(folder, "--output", "again.db", "--scheduler", dask.scheduler_address)
    wait_for(lambda: (folder / "again.db").exists() and Status.of(folder / "again.db").done)
    playing.kill()
    playing.communicate()
    ended(begin(folder, "--output", "again.db", "--scheduler", dask.scheduler_address, "--resume"))
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
    (folder / "own.py").write_text(BEATS.replace("FILE", repr(str(beats))))
    (folder / "s.toml").write_text(SCENARIO.replace("[40, 50, 60, 70, 80]", "[1000000]"))
    playing = begin(folder, "--scheduler", dask.scheduler_address)
    wait_for(beats.exists)
    time.sleep(0.5)
    playing.kill()
    playing.communicate(timeout=60)

    def still():
        before = beats.stat().st_size
        time.sleep(1.0)
        return beats.stat().st_size == before

    wait_for(still, within=15.0)
