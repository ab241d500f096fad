"""A process that plays units for another: they come through its standard input, records go through its output.

It ends when the other ends, in whatever way, since its input ends then.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from threadpoolctl import threadpool_limits

from onlinecal.core.errors import WorkerError
from onlinecal.study.executors.base import Failed, Fault
from onlinecal.study.executors.kit import Task, opened
from onlinecal.study.executors.serial import attempt

#: seconds between two messages about progress
TELL = 0.2


class Told:
    """Gathers run-rounds, and tells of them now and then."""

    def __init__(self, tell: Callable[[int], None], every: float) -> None:
        self._tell, self._every, self._rounds, self._last = tell, every, 0, time.perf_counter()

    def __call__(self, rounds: int) -> None:
        self._rounds += rounds
        if time.perf_counter() - self._last >= self._every:
            self._tell(self._rounds)
            self._rounds, self._last = 0, time.perf_counter()


def main() -> None:
    """Plays what comes, until nothing can come any more."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever plays this study decides when it ends
    tasks, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What players print goes where errors go, and they have nothing to read.
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    come: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks, come), daemon=True).start()
    threadpool_limits(1, user_api="blas")
    name, blob = come.get()
    try:
        kit = opened(name, blob)
    except WorkerError as error:
        _say(out, "unfit", str(error))
        return
    _say(out, "ready")
    while True:
        task: Task = come.get()
        done = attempt(kit.cell(task), task.unit, 1, Told(lambda rounds: _say(out, "worked", rounds), TELL))
        try:
            _say(out, "event", done)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            _say(out, "event", Failed(task.unit, Fault.of(error)))


def _listen(tasks: BinaryIO, come: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            come.put(pickle.load(tasks))
    except (EOFError, OSError, pickle.UnpicklingError):
        os._exit(0)  # also from the middle of a game


def _say(out: BinaryIO, *message: Any) -> None:
    said = pickle.dumps(message, 5)
    try:
        out.write(said)
        out.flush()
    except OSError:
        os._exit(0)
