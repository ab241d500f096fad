"""Plays on a Dask cluster, on any number of machines with the same versions of packages."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Self, cast

from onlinecal.core.errors import OnlinecalError, WorkerError, failure, lacking
from onlinecal.study.executors import Cancelled, Unit, play_unit
from onlinecal.study.planning import Cell
from onlinecal.study.played import Batch
from onlinecal.study.sending import packed

#: seconds in which a scheduler has to answer. After `GONE` seconds without it, or any worker, a study is given up.
PATIENCE, GONE = 10.0, 60.0


class Cluster:
    """Plays on the workers of a Dask scheduler, which has units of a worker that dies played by others."""

    #: beside the three times by which Dask itself gives a unit up
    again = 1
    beside = 1

    def __init__(self, address: str) -> None:
        self.address, self.workers = address, 0

    @property
    def at_once(self) -> int:
        """How many units are given at once: a worker is to find another at hand when it has played one."""
        return 2 * max(1, self.workers)

    def __enter__(self) -> Self:
        """Connects; WorkerError where there is no scheduler, or no worker."""
        try:
            import distributed
        except ImportError as error:
            raise WorkerError(lacking("a scheduler", "Dask", "cluster", error)) from None
        # Whatever is wrong with a cluster is an error of one line, and not in Dask's logs.
        names = [n for n in logging.root.manager.loggerDict if n.split(".")[0] in ("distributed", "tornado")]
        self._levels = [(logger, logger.level) for logger in map(logging.getLogger, names)]
        for logger, _ in self._levels:
            logger.setLevel(logging.CRITICAL + 1)
        try:
            self.client = distributed.Client(
                self.address, timeout=PATIENCE, set_as_default=False, name="onlinecal"
            )
        except Exception as error:  # whatever a server that is something else has sent
            self._loud()
            raise WorkerError(
                f"no Dask scheduler answers at {self.address} within {PATIENCE:g} s ({failure(error)}); begin one with "
                "`dask scheduler`, and give its address as tcp://host:port"
            ) from None
        with suppress(TimeoutError, OSError):
            self.client.wait_for_workers(1, timeout=PATIENCE)
        self._seen = time.monotonic()
        self.check()
        if not self.workers:
            self.__exit__()
            raise WorkerError(
                f"the scheduler at {self.address} has no workers; begin some with `dask worker {self.address} "
                "--nworkers auto --nthreads 1`"
            )
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # whatever is wrong with a cluster that is left
            self.client.close(timeout=2.0)
        self._loud()

    def _loud(self) -> None:
        for logger, level in self._levels:
            logger.setLevel(level)

    def begin(self, cells: Sequence[Cell], _: Callable[[int], None]) -> None:
        """Sends the cells once, as a task of their own that Dask repeats where they are lost."""
        blob = packed(cells)
        try:
            self._cells = self.client.submit(bytes, blob, pure=False)
        except Exception:
            raise self._gone("the scheduler") from None
        self._pool = self.client.get_executor(pure=False)

    def submit(self, unit: Unit) -> "Future[Any]":
        """The outcome of a unit, when it has been played."""
        try:
            return cast("Future[Any]", self._pool.submit(_play_on_cluster, self._cells, unit))
        except Exception:
            raise self._gone("the scheduler") from None

    def check(self) -> None:
        """Counts how many units the workers play at once; WorkerError where there have been none for a while."""
        try:
            self.workers = sum(self.client.nthreads(callback_timeout=PATIENCE).values())
            what = "the last worker"
        except (OSError, TimeoutError, RuntimeError):
            self.workers, what = 0, "the scheduler"
        if self.workers:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > GONE or self.client.status != "running":
            raise self._gone(what)

    def _gone(self, what: str) -> WorkerError:
        return WorkerError(f"{what} at {self.address} is gone; finished cells are kept; go on with --resume")

    def end(self) -> None:
        """Cancels what is left; workers see it."""
        with suppress(Exception):
            self._pool.shutdown(wait=False)


def _play_on_cluster(blob: bytes, unit: Unit) -> Batch | OnlinecalError | None:
    """Plays a unit on a worker of Dask, until it is cancelled."""
    from distributed import get_worker
    from distributed.worker import thread_state

    worker, key = get_worker(), thread_state.key

    def told(_: int) -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise Cancelled

    try:
        return play_unit(blob, unit, told)
    except Cancelled:
        return None
    except WorkerError as error:
        raise WorkerError(str(error).replace("a worker", f"the worker {worker.address}", 1)) from None
