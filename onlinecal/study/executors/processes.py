"""Plays in processes beside this one, each with one thread.

What is over soon is played here: a process takes longer to begin than a small study to be played. A process that dies
is replaced, and it is known which unit it played. They are begun like any program, and not forked, since compiled code
and threads do not survive that; a script that plays needs no ``if __name__ == "__main__"``, as it is not run again.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from onlinecal.core.errors import InvalidParameter, WorkerError
from onlinecal.study.executors.base import Event, Executor, Lost, Returned
from onlinecal.study.executors.serial import Abandoned, attempt
from onlinecal.study.executors.units import Estimate, Unit
from onlinecal.study.plan import Cell

#: seconds of play in this process before others are begun
ALONE = 1.0
#: seconds of play by this process that are to be left, for others to be begun
WORTH = 6.0
#: how many processes may end before they are ready, in a row
STILLBORN = 3

_CODE = "import sys; sys.path[:] = {path!r}; from onlinecal.study.executors.worker import main; main()"


class Processes(Executor):
    """Plays in this process first, and in so many others where there is more to do.

    Parameters
    ----------
    workers : int
    asked : bool
        Whether somebody asked for them. What cannot be sent to other processes is then refused; otherwise this process
        plays it, with a remark.
    alone : float, optional
        Seconds of play in this process before others are begun. Default: `ALONE`; with 0 it plays nothing.
    """

    def __init__(self, workers: int, *, asked: bool = True, alone: float | None = None) -> None:
        self.workers = self.beside = workers
        self._asked, self._alone = asked, ALONE if alone is None else alone
        self.remarks = []
        self._team: list[_Worker] = []
        self._messages: queue.SimpleQueue[tuple[_Worker, tuple[Any, ...]]] = queue.SimpleQueue()
        self._heard: deque[tuple[_Worker, tuple[Any, ...]]] = deque()
        self._waiting: deque[Unit] = deque()
        self._here = True
        self._unable = False
        self._stillborn = 0

    def begin(self, cells: Sequence[Cell], worked: Callable[[Unit, int], None]) -> None:
        """Sees what there is to do."""
        self._cells, self._worked = cells, worked
        self._kit: Any = None
        if self._asked:
            self._pack()
        estimate = Estimate()
        self._weights = [estimate.seconds(c, 1) for c in cells]
        self._left = sum(w * (c.runs - c.first) for w, c in zip(self._weights, cells, strict=True))
        self._did, self._began = 0.0, time.perf_counter()
        if self._alone <= 0:
            self._start()
            self._here = self._unable

    @property
    def room(self) -> int:
        """As many as there are processes that have nothing to do."""
        busy = sum(worker.unit is not None for worker in self._team)
        return (1 if self._here else self.workers - busy) - len(self._waiting)

    def submit(self, unit: Unit) -> None:
        """It is given to the first process that has nothing to do."""
        self._waiting.append(unit)
        self._hand_out()

    def events(self) -> list[Event]:
        """Plays the next unit here, or waits for the others."""
        if self._here:
            unit = self._waiting.popleft()
            try:
                return [attempt(self._cells[unit.cell], unit, self.workers, lambda n: self._told(unit, n))]
            except Abandoned:
                self._here = False
                return [Returned(unit)]
        found: list[Event] = []
        heard = bool(self._heard)
        while self._heard:
            found += self._take(*self._heard.popleft())
        with contextlib.suppress(queue.Empty):
            # What was heard while this process played has made others ready: they are not left waiting.
            found += self._take(*self._messages.get(timeout=0.0 if heard else 1.0))
            while True:
                found += self._take(*self._messages.get_nowait())
        for worker in self._team:
            worker.look()
        self._hand_out()
        return found

    def close(self) -> None:
        """Kills them all."""
        self._end()
        self._waiting.clear()

    # ---------------------------------------------------------------- here, before there are others

    def _told(self, unit: Unit, rounds: int) -> None:
        """Progress of what is played here: the time to see whether others should be begun, or take over."""
        self._worked(unit, rounds)
        self._did += self._weights[unit.cell] / self._cells[unit.cell].horizon * rounds
        if self._unable:
            return
        if not self._team:
            took = time.perf_counter() - self._began
            if took > self._alone and took * (self._left / max(self._did, 1e-9) - 1.0) > WORTH:
                self._start()
            return
        with contextlib.suppress(queue.Empty):
            while True:
                # What is wrong with them is no fault of what is played here, and is looked at after it.
                self._heard.append(self._messages.get_nowait())
        said = [message[0] for _, message in self._heard]
        if len(said) == len(self._team) or set(said) - {"ready"}:
            raise Abandoned

    def _start(self) -> None:
        try:
            self._pack()
            for _ in range(self.workers):
                self._team.append(_Worker(self._kit, self._messages))
        except (InvalidParameter, WorkerError) as error:
            self._unable = True
            self.remarks.append(f"played by this process alone: {error}")
            self._end()

    def _pack(self) -> None:
        if self._kit is None:
            from onlinecal.study.executors.kit import Packed

            self._kit = Packed(self._cells)

    # ---------------------------------------------------------------- the others

    def _end(self) -> None:
        team, self._team = self._team, []
        for worker in team:
            worker.end()

    def _hand_out(self) -> None:
        for worker in self._team:
            if self._waiting and worker.ready and worker.unit is None:
                worker.unit = self._waiting.popleft()
                worker.send(self._kit.task(worker.unit))

    def _take(self, worker: _Worker, message: tuple[Any, ...]) -> list[Event]:
        """What a process has said, or that it is gone."""
        if worker not in self._team:
            return []
        kind, *what = message
        if kind == "ready":
            worker.ready, self._stillborn = True, 0
        elif kind == "worked" and worker.unit is not None:
            self._worked(worker.unit, *what)
        elif kind == "event":
            worker.unit = None
            return list(what)
        elif kind == "unfit":
            raise WorkerError(*what)
        elif kind == "gone":
            return self._replace(worker, *what)
        return []

    def _replace(self, worker: _Worker, why: str) -> list[Event]:
        worker.end()
        if not worker.ready:
            self._stillborn += 1
            if self._stillborn >= STILLBORN:
                raise WorkerError(
                    f"processes that should play end before they begin ({why}); expected enough memory for "
                    f"{self.workers}, else fewer jobs"
                )
        self._team[self._team.index(worker)] = _Worker(self._kit, self._messages)
        return [] if worker.unit is None else [Lost(worker.unit, why)]


class _Worker:
    """A process, and the thread that listens to it."""

    def __init__(self, kit: Any, messages: queue.SimpleQueue[tuple[_Worker, tuple[Any, ...]]]) -> None:
        self.unit: Unit | None = None
        self.ready = False
        # In a group of its own: Ctrl-C in a terminal is for the process that plays the study.
        own_group: dict[str, Any] = {} if sys.platform == "win32" else {"process_group": 0}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CODE.format(path=sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                **own_group,
            )
        except OSError as error:
            raise WorkerError(
                f"no process can be begun: {error.strerror or error}; expected fewer jobs"
            ) from None
        self.pid = self._process.pid
        self._thread = threading.Thread(target=self._listen, args=(kit, messages), daemon=True)
        self._thread.start()

    def send(self, thing: Any) -> None:
        """Once it is ready; it hears of its end otherwise."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # that it is gone is said by who listens
            pickle.dump(thing, self._process.stdin, 5)
            self._process.stdin.flush()

    def _listen(self, kit: Any, messages: queue.SimpleQueue[tuple[_Worker, tuple[Any, ...]]]) -> None:
        self.send((kit.name, kit.blob))
        assert self._process.stdout is not None
        try:
            while True:
                messages.put((self, pickle.load(self._process.stdout)))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            messages.put((self, ("gone", _ending(self._process.wait()))))

    def look(self) -> None:
        """Whether it is gone: while processes that players have begun are left, its output does not end by itself."""
        if self._process.returncode is None and self._process.poll() is not None:
            self._kill_group()

    def _kill_group(self) -> None:
        if sys.platform != "win32":
            with contextlib.suppress(OSError):  # nobody is left
                os.killpg(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """Whatever it plays, and what players have begun beside it."""
        if self._process.returncode is None:  # else its number may be somebody else's by now
            self._kill_group()
            self._process.kill()
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


def _ending(status: int) -> str:
    if status >= 0:
        return f"it ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"it was killed by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")
