"""Plays in processes beside this one, each with one thread.

What is over soon is played here: a process takes longer to begin than a small study to be played. Each process is a
pool of its own: of one that dies it is known which unit it played. They are spawned, since compiled code
and threads do not survive a fork, and do not run the script again.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from types import ModuleType
from typing import Any

from onlinecal.core._compile import spent
from onlinecal.core.errors import InvalidParameter, WorkerError
from onlinecal.study.executors import base
from onlinecal.study.executors.base import Done, Event, Failed, Unit
from onlinecal.study.executors.kit import opened, packed
from onlinecal.study.plan import Cell

#: seconds of play in this process before others are begun
ALONE = 1.0
#: seconds of play by this process that are to be left, for others to be begun
WORTH = 6.0
#: seconds between two looks at what processes have done
LOOK = 0.2

_CONTEXT = multiprocessing.get_context("spawn")


class Processes(base.Executor):
    """Plays here for `alone` seconds, then in others; `asked` for, it refuses cells that cannot be sent."""

    def __init__(self, workers: int, *, asked: bool = True, alone: float | None = None) -> None:
        self.workers = self.beside = workers
        self._asked, self._alone = asked, ALONE if alone is None else alone
        self.remarks = []
        self._team: list[_Worker] = []
        self._waiting: deque[Unit] = deque()
        self._unable = False

    def begin(self, cells: Sequence[Cell], worked: Callable[[Unit, int], None]) -> None:
        self._cells, self._worked = cells, worked
        self._kit = packed(cells) if self._asked else None
        self._left = sum(map(base.seconds, cells))
        self._did, self._began = 0.0, _now()
        if self._alone <= 0:
            self._start()

    @property
    def room(self) -> int:
        busy = sum(worker.unit is not None for worker in self._team)
        return max(1, len(self._team)) - busy - len(self._waiting)

    def submit(self, unit: Unit) -> None:
        self._waiting.append(unit)
        self._hand_out()

    def events(self) -> list[Event]:
        if not self._team:
            return self._play_here(self._waiting.popleft())
        busy = [worker for worker in self._team if worker.unit is not None]
        wait([worker.future for worker in busy], LOOK, FIRST_COMPLETED)
        found: list[Event] = []
        for worker in busy:
            assert worker.unit is not None
            if rounds := worker.progress():
                self._worked(worker.unit, rounds)
            worker.look()
            if worker.future.done():
                found.append(self._taken(worker, worker.unit))
        self._hand_out()
        return found

    def close(self) -> None:
        self._waiting.clear()
        team, self._team = self._team, []
        for worker in team:
            worker.end()

    def _play_here(self, unit: Unit) -> list[Event]:
        told, cell = 0, self._cells[unit.cell]

        def tell(rounds: int) -> None:
            nonlocal told
            told += rounds
            self._worked(unit, rounds)
            self._did += rounds * base.seconds(cell) / cell.work
            took = _now() - self._began
            if not self._unable and took > self._alone and took * (self._left / self._did - 1.0) > WORTH:
                raise base.Abandoned

        try:
            return [base.attempt(cell, unit, self.workers, tell)]
        except base.Abandoned:  # to be played to its end by others
            self._worked(unit, -told)
            self._waiting.appendleft(unit)
            self._start()
            self._hand_out()
            return []

    def _start(self) -> None:
        try:
            self._kit = self._kit or packed(self._cells)
        except InvalidParameter as error:
            self._unable = True
            self.remarks.append(f"played by this process alone: {error}")
        else:
            self._team = [_Worker(*self._kit) for _ in range(self.workers)]

    def _hand_out(self) -> None:
        for worker in self._team:
            if self._waiting and worker.unit is None:
                worker.play(self._waiting.popleft())

    def _taken(self, worker: "_Worker", unit: Unit) -> Event:
        """The result of a process, or that it is gone and another takes its place."""
        worker.unit = None
        try:
            event: Event = worker.future.result()
            return event
        except BrokenProcessPool:
            why = worker.end()
        except WorkerError:
            raise
        except Exception as error:  # a result that cannot be pickled
            return Failed(unit, base.Fault.of(error))
        if not worker.ready:
            raise WorkerError(
                f"a process that should play ended before it began ({why}); expected enough memory for {self.workers}, "
                "else fewer jobs; finished cells are kept"
            )
        assert self._kit is not None
        self._team[self._team.index(worker)] = _Worker(*self._kit)
        return base.Lost(unit, why)


def _now() -> float:
    """The time, without that in which this thread has compiled: it is spent once, and not for each round."""
    return time.perf_counter() - spent.seconds


class _Worker:
    """A pool of one process."""

    future: Future[Any]

    def __init__(self, name: str, blob: bytes) -> None:
        #: run-rounds that it has played, and whether it is ready
        self._told = _CONTEXT.RawArray("q", 2)
        self._pool = ProcessPoolExecutor(1, _CONTEXT, _ready, (self._told,))
        self._kit: tuple[str, bytes | None] = name, blob
        self._process: Any = None
        self.unit: Unit | None = None
        self._seen = 0

    @property
    def ready(self) -> bool:
        """Whether it has begun to play."""
        return bool(self._told[1])

    def play(self, unit: Unit) -> None:
        """Gives it a unit; the process begins with the first."""
        self.unit = unit
        try:
            with _apart():
                self.future = self._pool.submit(_play, *self._kit, unit)
        except OSError as error:
            raise WorkerError(f"no process begins: {error.strerror or error}; expected fewer jobs") from None
        except BrokenProcessPool as error:
            self.future = Future()
            self.future.set_exception(error)
        if self._process is None:
            (self._process,) = self._pool._processes.values()
        self._kit = self._kit[0], None  # sent once

    def progress(self) -> int:
        """Run-rounds since the last call."""
        before, self._seen = self._seen, self._told[0]
        return self._seen - before

    def look(self) -> None:
        """Ends processes that players began in one that is gone, so that its pool sees its end."""
        if not self._process.is_alive() and sys.platform != "win32":
            with contextlib.suppress(OSError):  # none is left
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> str:
        """Ends it with all that players have begun in it; why it ended, in words."""
        status: int | None = None
        if self._process is not None:
            if self._process.is_alive():
                if sys.platform != "win32":
                    with contextlib.suppress(OSError):
                        os.killpg(self._process.pid, signal.SIGKILL)
                self._process.kill()
            self._process.join()
            status = self._process.exitcode  # or None, where the pool was told first
        self._pool.shutdown(cancel_futures=True)
        if status is None or status >= 0:
            return f"it ended with status {status}"
        known = {int(each): each.name for each in signal.Signals}
        name = known.get(-status, f"signal {-status}")
        return f"it was killed by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """A process that begins within does not run this one's script, and does not hear Ctrl-C, not even as it begins."""
    main = sys.modules["__main__"]
    masks = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else set()
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


_TOLD: Any = None


def _ready(told: Any) -> None:
    global _TOLD
    _TOLD = told
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        os.setpgid(0, 0)  # with what players begin in it
    os.dup2(2, 1)  # what players print is no result
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(parent: int) -> None:
    """Ends this process with the one that plays the study, in whatever way that ends, also from a game."""
    connection.wait([parent])
    os._exit(0)


_CELLS: list[Cell] = []


def _play(name: str, blob: bytes | None, unit: Unit) -> Done | Failed:
    if blob is not None:
        _CELLS[:] = opened(name, blob)
        _TOLD[1] = 1

    def tell(rounds: int) -> None:
        _TOLD[0] += rounds

    return base.attempt(_CELLS[unit.cell], unit, 1, tell)
