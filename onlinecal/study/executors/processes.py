"""Plays in processes beside this one, each with one thread.

What is over soon is played here: a process takes longer to begin than a small study to be played. Each process has a
pipe of its own: of one that dies it is known which unit it played. Threads do not survive a fork: on Linux, processes
are forked from one that has only imported `server`. Elsewhere they are spawned. None runs the script again.
"""

import atexit
import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator
from functools import partial
from multiprocessing import connection
from types import ModuleType
from typing import Any

from onlinecal.core._compile import spent
from onlinecal.core.errors import InvalidParameter, WorkerError
from onlinecal.study.executors import base
from onlinecal.study.executors.base import Event, Lost, Unit, Work
from onlinecal.study.executors.kit import opened, packed

#: seconds of play in this process before others are begun
ALONE = 1.0
#: seconds of play by this process that are to be left, for others to be begun
WORTH = 6.0

_FORKED = sys.platform == "linux"
_CONTEXT: Any = multiprocessing.get_context("forkserver" if _FORKED else "spawn")


class Processes(base.Executor):
    """Plays here for `alone` seconds, then in others; `asked` for, it refuses cells that cannot be sent."""

    def __init__(self, workers: int, *, asked: bool = True, alone: float | None = None) -> None:
        self.workers = self.beside = workers
        self._asked, self._alone = asked, ALONE if alone is None else alone
        self.remarks = []
        self._team: list[_Worker] = []
        self._kit: tuple[str, bytes] | None = None

    def play(self, work: Work) -> Generator[list[Event]]:
        """Begins other processes only where much is left, and plays on until they are ready."""
        self._kit = packed(work.cells) if self._asked else None
        try:
            if (self._alone <= 0 and self._packs(work)) or (yield from self._here(work)):
                yield from self._by_others(work)
        finally:
            while self._team:
                self._team.pop().end()

    def _packs(self, work: Work) -> bool:
        """Whether the cells can be sent to others."""
        try:
            self._kit = self._kit or packed(work.cells)
        except InvalidParameter as error:
            self.remarks.append(f"played by this process alone: {error}")
        return self._kit is not None

    def _here(self, work: Work) -> Generator[list[Event], None, bool]:
        """Plays in this process; returns whether others, which have begun meanwhile, are to go on."""
        left, did, began, able = sum(map(base.seconds, work.cells)), 0.0, _now(), self._alone > 0
        if able and _FORKED and left > self._alone + WORTH:
            from multiprocessing import forkserver

            with _apart():  # the process to fork imports while this one plays
                forkserver.ensure_running()

        def tell(unit: Unit, rounds: int) -> None:
            nonlocal did, able
            work.worked(unit, rounds)
            cell, took = work.cells[unit.cell], _now() - began
            did += rounds * base.seconds(cell) / cell.work
            if self._team:
                if all(worker.pipe.poll() for worker in self._team):  # each says that it is ready
                    raise base.Abandoned
            elif able and took > self._alone and took * (left / did - 1.0) > WORTH:
                able = self._packs(work)
                try:
                    self._team += [_Worker(*self._kit) for _ in range(self.workers) if self._kit]
                except WorkerError:  # is raised again where it does not count as the unit's
                    raise base.Abandoned from None

        while (unit := work.following()) is not None:
            try:
                found = base.attempt(work.cells[unit.cell], unit, self.workers, partial(tell, unit))
            except base.Abandoned:
                yield [(unit, Lost("others play it", 0))]
                return True
            yield [(unit, found)]
        return False

    def _by_others(self, work: Work) -> Generator[list[Event]]:
        team = self._team
        assert self._kit is not None
        while True:
            idle = [worker for worker in team if worker.unit is None]
            while (idle or len(team) < self.workers) and (unit := work.following()) is not None:
                if not idle:
                    idle.append(_Worker(*self._kit))
                    team += idle
                idle.pop().play(unit)
            busy = {worker.pipe: worker for worker in team if worker.unit is not None}
            if not busy:
                return
            events = [each for pipe in connection.wait(list(busy)) for each in busy[pipe].heard(work)]
            for worker in [worker for worker in team if worker.gone]:
                team.remove(worker)
            if events:
                yield events


def _now() -> float:
    """The time, without that in which this thread has compiled: it is spent once, and not for each round."""
    return time.perf_counter() - spent.seconds


class _Worker:
    """A process that plays the units that it is given, one after the other."""

    def __init__(self, name: str, blob: bytes) -> None:
        self.unit: Unit | None = None
        #: whether it has begun to play
        self.ready = False
        self.gone = False
        self.pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_play, args=(theirs, dict(os.environ), name, blob))
        try:
            with _apart():
                self._process.start()
        except OSError as error:
            raise WorkerError(f"no process begins: {error.strerror or error}; expected fewer jobs") from None
        finally:
            theirs.close()
        # Before Python waits for processes that are left.
        atexit.register(self.end)

    def play(self, unit: Unit) -> None:
        """Gives it a unit."""
        self.unit = unit
        with contextlib.suppress(OSError):  # it is gone, as is heard next
            self.pipe.send(unit)

    def heard(self, work: Work) -> list[Event]:
        """Hears what it has to tell: of its progress, or the outcome of its unit."""
        assert self.unit is not None
        try:
            told = self.pipe.recv()
        except (EOFError, OSError):
            self.gone, why = True, self.end()
            if self.ready:
                return [(self.unit, Lost(why))]
            raise WorkerError(
                f"a process that should play ended before it began ({why}); expected enough memory for it, else fewer "
                "jobs; finished cells are kept"
            ) from None
        if isinstance(told, WorkerError):
            raise told
        self.ready = True
        if isinstance(told, int):
            work.worked(self.unit, told)
            return []
        unit, self.unit = self.unit, None
        return [(unit, told)]

    def end(self) -> str:
        """Ends it with all that players have begun in it; why it ended, in words."""
        atexit.unregister(self.end)
        if sys.platform != "win32":
            with contextlib.suppress(OSError):  # none is left
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self.pipe.close()
        status = self._process.exitcode
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
    environment = dict(os.environ)
    if _FORKED:  # no more than advice, where the server runs already
        _CONTEXT.set_forkserver_preload(["onlinecal.study.executors.server"])
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # where this process has the package from
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        os.environ.pop("PYTHONPATH", None)
        os.environ.update(environment)
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _play(pipe: Any, environment: dict[str, str], name: str, blob: bytes) -> None:
    """Plays the units that come through a pipe; run-rounds, and the outcome of each, go back through it."""
    os.environ.clear()
    os.environ.update(environment)  # that of the process that was forked is another
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        os.setpgid(0, 0)  # with what players begin in it
        os.register_at_fork(after_in_child=pipe.close)  # the pipe ends with this process
    os.dup2(2, 1)  # what players print is no result
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()
    said: WorkerError | int = 0
    try:
        cells = opened(name, blob)
    except WorkerError as error:
        said = error
    with contextlib.suppress(EOFError, OSError):  # the other end is gone
        pipe.send(said)
        while not said:
            unit = pipe.recv()
            found = base.attempt(cells[unit.cell], unit, 1, pipe.send)
            try:
                pipe.send(found)
            except Exception as error:  # a result that cannot be pickled
                pipe.send(base.fault(error))


def _follow(parent: int) -> None:
    """Ends this process with the one that plays the study, in whatever way that ends, also from a game."""
    connection.wait([parent])
    os._exit(0)
