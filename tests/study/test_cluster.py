"""A Dask cluster whose workers die: in every phase of a study, and all at once."""

import os
import shutil
import signal
import time

import pytest

from onlinecal.core.errors import WorkerError
from onlinecal.core.progress import Progress
from onlinecal.study import play_cells
from onlinecal.study.executors import executor_of
from onlinecal.study.executors.base import Serial
from tests.results import cells
from tests.study.test_killed import Dask, command_of, playable, wait_for, workers_of

cluster = pytest.importorskip("onlinecal.study.executors.cluster")

PLANNED = cells(horizons=(50, 60, 70), runs=2)


def totals(planned, executor, finished=lambda: None):
    """The bytes of all totals, by cell; `finished` is called after each cell."""
    found = {}
    with executor:
        for cell, played in play_cells(planned, Progress(1), executor):
            assert cell.key not in found
            found[cell.key] = [(name, total.tobytes()) for name, total in played.totals.items()]
            finished()
    return found


def before(monkeypatch, phase, act):
    """Calls `act` once, when a study on a cluster comes to a phase."""
    left = [act]

    def once():
        if left:
            left.pop()()

    def hooked(owner, name, when=lambda *_: True):
        real = getattr(owner, name)

        def method(*args, **options):
            if when(*args):
                once()
            return real(*args, **options)

        monkeypatch.setattr(owner, name, method)

    client, executor = cluster.distributed.Client, cluster.Cluster
    match phase:
        case "connected":
            hooked(executor, "_compare")
        case "begin":
            hooked(executor, "begin")
        case "sent":
            hooked(client, "submit", lambda _, function, *args: function is cluster._same)
        case "merging":
            hooked(executor, "_present")
        case "given":
            hooked(executor, "submit")
        case "played":
            hooked(executor, "_take", lambda _, happened: isinstance(happened, tuple | list))
        case "returned":
            hooked(executor, "_take", lambda _, happened: not isinstance(happened, tuple | list))


PHASES = ["connected", "begin", "sent", "given", "played", "returned"]


@pytest.fixture
def threads():
    """A cluster of threads of this process, which begins at once."""
    with cluster.distributed.LocalCluster(
        n_workers=2, processes=False, threads_per_worker=1, dashboard_address=None
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


@pytest.mark.parametrize("phase", ["sent", "given"])
def test_without_any_worker_a_study_stops_in_a_stated_time(threads, monkeypatch, phase):
    monkeypatch.setattr(cluster, "GONE", 1.0)
    before(monkeypatch, phase, lambda: [leaves(threads, worker) for worker in threads.workers.values()])
    began = time.monotonic()
    with pytest.raises(WorkerError, match=r"the last worker at .* is gone; finished cells are kept"):
        totals(PLANNED, executor_of(scheduler=threads.scheduler_address))
    assert time.monotonic() - began < 30.0  # a second, and those in which a busy machine begins


def test_a_scheduler_that_no_longer_answers_is_gone(threads, monkeypatch):
    monkeypatch.setattr(cluster, "GONE", 1.0)
    real = cluster.distributed.Client.nthreads

    def frozen(client, **options):
        if frozen.now:
            raise TimeoutError
        return real(client, **options)

    frozen.now = False
    monkeypatch.setattr(cluster.distributed.Client, "nthreads", frozen)
    with executor_of(scheduler=threads.scheduler_address) as executor:
        frozen.now = True
        with pytest.raises(WorkerError, match=r"the scheduler at .* is gone"):
            executor.merged(time.sleep, [4.0], len)


def test_a_merge_without_any_worker_stops_too(threads, monkeypatch):
    monkeypatch.setattr(cluster, "GONE", 1.0)
    before(monkeypatch, "merging", lambda: [leaves(threads, worker) for worker in threads.workers.values()])
    with (
        executor_of(scheduler=threads.scheduler_address) as executor,
        pytest.raises(WorkerError, match=r"the last worker at .* is gone"),
    ):
        executor.merged(time.sleep, [1.0] * 9, len)


@pytest.fixture
def processes(tmp_path):
    (tmp_path / "dask").mkdir()
    dask = Dask(tmp_path / "dask", workers=0)
    yield dask
    dask.end()
    shutil.rmtree(tmp_path / "dask", ignore_errors=True)


def pids(dask, nanny):
    """The processes that play."""
    begun = [process.pid for process in dask._processes[1:]]
    if not nanny:
        return [pid for pid in begun if "worker" in command_of(pid)]
    return [pid for parent in begun for pid in workers_of(parent) if "spawn_main" in command_of(pid)]


@pytest.mark.slow
@pytest.mark.parametrize("nanny", [True, False], ids=["nanny", "no nanny"])
def test_workers_are_killed_in_every_phase(processes, monkeypatch, nanny, seed, full):
    """One of two, or both; a nanny begins others in their place, or they are begun by hand.

    In the small size every fifth case, others for other seeds.
    """
    alone = totals(PLANNED, Serial())
    monkeypatch.setattr(cluster, "PATIENCE", 60.0)
    cases = [(phase, count) for phase in PHASES for count in (1, 2)]
    for phase, count in cases if full else cases[seed % 5 :: 5]:
        if not (nanny and pids(processes, nanny)):
            processes.workers(2 - len(pids(processes, nanny)), nanny=nanny)
        wait_for(lambda: playable(processes.address) == 2)

        def kill(count=count):
            for pid in pids(processes, nanny)[:count]:
                os.kill(pid, signal.SIGKILL)
            if count == 2 and not nanny:
                processes.workers(2, nanny=False)

        with monkeypatch.context() as patched:
            before(patched, phase, kill)
            assert totals(PLANNED, executor_of(scheduler=processes.address)) == alone, (phase, count)
