"""Plays on a Dask cluster, on any number of machines with the same versions of packages.

Dask's scheduler gives units to workers, and those of a worker that dies to others. The cells are a task of their own:
the scheduler has them made again wherever they are missing.
"""

import asyncio
import contextlib
import logging
import queue
import threading
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from onlinecal.core.errors import WorkerError, lacking
from onlinecal.study.executors.base import Abandoned, Event, Executor, Lost, Outcome, Unit, Work, attempt
from onlinecal.study.executors.kit import opened, packed

try:
    import distributed
    from distributed.client import FutureCancelledError, FuturesCancelledError
    from distributed.scheduler import KilledWorker
except ImportError as error:
    raise WorkerError(lacking("a scheduler", "Dask", "cluster", error)) from None

#: seconds in which a scheduler and a first worker have to be there
PATIENCE = 10.0
#: seconds without any worker, or without the scheduler, after which a study that is being played is given up
GONE = 60.0
#: parts that are merged at a time
FAN = 8
#: seconds between two messages about progress
TELL = 1.0

#: the errors of a scheduler or worker that is gone, and of tasks that were lost with it
CANCELLED = (asyncio.CancelledError, FutureCancelledError, FuturesCancelledError, OSError, TimeoutError)


class Cluster(Executor):
    """Plays on the workers of a Dask scheduler, else WorkerError; `after` says what to do when that is gone."""

    def __init__(self, address: str, after: str = "finished cells are kept; go on with --resume") -> None:
        self.address, self.after = address, after
        self.remarks, self.workers = [], 0
        self._client: Any = None
        self._happened: queue.SimpleQueue[Any] = queue.SimpleQueue()
        #: by the keys of futures; and how many times one of them was begun
        self._units: dict[str, tuple[Unit, Any]] = {}
        self._begun = Counter[str]()
        self._levels: list[tuple[logging.Logger, int]] = []
        self._submitted = 0
        self._mark = f"onlinecal-{uuid.uuid4().hex}"  # several may play the same on one cluster

    def __enter__(self) -> "Cluster":
        self._silence()
        self._client = self._connected()
        try:
            with contextlib.suppress(TimeoutError, OSError):
                self._client.wait_for_workers(1, timeout=PATIENCE)
            self._count()
            if not self.workers:
                raise WorkerError(
                    f"the scheduler at {self.address} has no workers; begin some with `dask worker {self.address} "
                    "--nworkers auto --nthreads 1`"
                )
        except BaseException:
            self.__exit__()
            raise
        return self

    def _connected(self) -> Any:
        """A client of the scheduler."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of versions, which workers compare
                return distributed.Client(
                    self.address, timeout=PATIENCE, set_as_default=False, name="onlinecal"
                )
        except (TimeoutError, OSError, ValueError) as error:
            what = f"no Dask scheduler answers at {self.address} within {PATIENCE:g} s ({_line(error)})"
        except Exception:  # whatever a server that is something else has sent
            what = f"what answers at {self.address} is no Dask scheduler (its dashboard has another port)"
        self.__exit__()
        raise WorkerError(f"{what}; begin one with `dask scheduler`, and give its address as tcp://host:port")

    def _silence(self) -> None:
        """Turns off Dask's loggers: faults of a cluster are raised as errors of one line."""
        names = [
            n for n in logging.root.manager.loggerDict if n.partition(".")[0] in ("distributed", "tornado")
        ]
        self._levels = [(logger, logger.level) for logger in map(logging.getLogger, names)]
        for logger, _ in self._levels:
            logger.setLevel(logging.CRITICAL + 1)

    def _count(self) -> None:
        """Counts how many units the workers play at once."""
        if self.workers:
            self._seen = time.monotonic()
        try:
            self.workers = sum(self._client.nthreads(callback_timeout=PATIENCE).values())
            self._answers = True
        except (OSError, TimeoutError, RuntimeError):
            self.workers, self._answers = 0, False
        self._counted = time.monotonic()

    def _present(self) -> None:
        """Counts the workers once a second; there being none for `GONE` seconds is an error."""
        if time.monotonic() - self._counted > TELL:
            self._count()
            if time.monotonic() - self._seen > GONE:
                raise self._gone()

    def play(self, work: Work) -> Generator[list[Event]]:
        """Gives a quarter more units than play: few wait for the next, and few are lost with a worker."""
        self._work = work
        self._name, blob = packed(work.cells)
        with self._explained(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is large: it is sent once
            self._client.subscribe_topic(self._mark, lambda event: self._happened.put(event[1]))
            self._blob = self._client.submit(_same, blob, key=f"kit-{self._mark}", pure=False)
        try:
            while True:
                room = self.workers + max(1, self.workers // 4)
                while len(self._units) < room and (unit := work.following()) is not None:
                    self.submit(unit)
                if not self._units:
                    return
                events = []
                with contextlib.suppress(queue.Empty):
                    events += self._take(self._happened.get(timeout=1.0))
                    while True:
                        events += self._take(self._happened.get_nowait())
                self._present()
                yield events
        finally:
            # Workers see it, and stop soon; whatever is wrong with a cluster that is left.
            with contextlib.suppress(Exception):
                self._client.cancel([future for _, future in self._units.values()])
            self._units.clear()

    def submit(self, unit: Unit) -> None:
        """Gives a unit to the scheduler."""
        self._submitted += 1
        key = f"{self._mark}-{self._submitted}"
        with self._explained():
            future = self._client.submit(
                _play, self._blob, self._name, unit, self._mark, key, key=key, pure=False
            )
        self._units[key] = unit, future
        future.add_done_callback(self._happened.put)

    def _take(self, happened: Any) -> list[Event]:
        if isinstance(happened, tuple | list):  # told by a worker
            key, rounds = happened
            if key in self._units:
                self._begun[key] += rounds == 0
                self._work.worked(self._units[key][0], rounds)
            return []
        if happened.key not in self._units:
            return []
        unit, _ = self._units.pop(happened.key)
        begun = self._begun.pop(happened.key, 0)
        try:
            return [(unit, happened.result(timeout=GONE))]
        except KilledWorker:
            # Raised for all units that a worker had when it died; begun are those that it played.
            return [(unit, Lost("it died", max(1, begun)))]
        except CANCELLED:
            if self._client.status != "running":
                raise self._gone() from None
            return [(unit, Lost("what it had played was lost with it"))]
        except WorkerError:
            raise
        except Exception as error:  # of Dask, such as that something cannot be unpickled
            why = f"{type(error).__name__}: {_line(error)}"
            raise WorkerError(f"the cluster at {self.address} cannot play: {why}") from None

    def merged(
        self, function: Callable[[Any], Any], parts: Sequence[Any], merge: Callable[[Any], Any]
    ) -> Any:
        """`merge` of a function's values at each part, on the workers, `FAN` at a time; its errors are raised."""
        self._submitted += 1
        made: list[Any] = []

        def sent(function: Callable[[Any], Any], given: Any) -> Any:
            key = f"merge-{self._mark}-{self._submitted}-{len(made)}"
            made.append(self._client.submit(function, given, key=key, pure=False))
            return made[-1]

        with self._explained():
            level = [sent(function, part) for part in parts]
            while len(level) > 1:
                level = [
                    sent(merge, level[i : i + FAN]) if i + 1 < len(level) else level[i]
                    for i in range(0, len(level), FAN)
                ]
            done = threading.Event()
            level[0].add_done_callback(lambda _: done.set())
            try:
                while not done.wait(timeout=TELL):
                    self._present()
                return level[0].result(timeout=GONE)
            finally:
                self._client.cancel(made)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except KilledWorker:
            raise WorkerError(
                f"workers at {self.address} died, again and again, perhaps for want of memory; {self.after}"
            ) from None
        except (*CANCELLED, RuntimeError):
            raise self._gone() from None

    def _gone(self) -> WorkerError:
        running = self._client.status == "running" and self._answers
        what = "the last worker" if running else "the scheduler"
        return WorkerError(f"{what} at {self.address} is gone; {self.after}")

    def __exit__(self, *_: object) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close(timeout=2.0)
        for logger, level in self._levels:
            logger.setLevel(level)
        self._levels = []


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _same(blob: bytes) -> bytes:
    return blob


def _play(blob: bytes, name: str, unit: Unit, topic: str, key: str) -> Outcome | None:
    """Plays a unit on a worker."""
    worker = distributed.get_worker()
    try:
        cells = opened(name, blob)
    except WorkerError as error:
        raise WorkerError(str(error).replace("a worker", f"the worker {worker.address}", 1)) from None
    worker.log_event(topic, (key, 0))
    told, last = 0, time.monotonic()

    def tell(rounds: int) -> None:
        nonlocal told, last
        known = worker.state.tasks.get(key)
        if known is None or known.state == "cancelled":  # its study is over
            raise Abandoned
        told += rounds
        if time.monotonic() - last >= TELL:
            worker.log_event(topic, (key, told))
            told, last = 0, time.monotonic()

    try:
        return attempt(cells[unit.cell], unit, 1, tell)
    except Abandoned:
        return None
