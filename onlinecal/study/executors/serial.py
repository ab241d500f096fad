"""Plays in this process, one unit after the other."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from onlinecal.study.executors.base import Done, Event, Executor, Failed, Fault
from onlinecal.study.executors.units import Unit
from onlinecal.study.plan import Cell
from onlinecal.study.run import cores, play_batch


class Abandoned(BaseException):
    """A unit is not to be played to its end; raised from where progress is told, and seen by nobody's `except`."""


def attempt(cell: Cell, unit: Unit, threads: int, told: Callable[[int], None]) -> Done | Failed:
    """Plays a unit; what goes wrong is said, not raised."""
    began = time.perf_counter()
    try:
        batch = play_batch(cell, range(unit.first, unit.last), told, threads=threads)
    except (Exception, SystemExit) as error:  # of players and measures, which may be anybody's code
        return Failed(unit, Fault.of(error))
    return Done(unit, batch, time.perf_counter() - began)


class Serial(Executor):
    """Plays in this process.

    Parameters
    ----------
    threads : int, optional
        Of the compiled loop. Default: one for each core.
    """

    workers = 1

    def __init__(self, threads: int | None = None) -> None:
        self.threads = cores() if threads is None else threads
        self.remarks = []
        self._waiting: deque[Unit] = deque()

    def begin(self, cells: Sequence[Cell], worked: Callable[[Unit, int], None]) -> None:
        """Nothing needs to be made ready."""
        self._cells, self._worked = cells, worked

    @property
    def room(self) -> int:
        """One at a time."""
        return 1 - len(self._waiting)

    def submit(self, unit: Unit) -> None:
        """It is played when somebody waits for it."""
        self._waiting.append(unit)

    def events(self) -> list[Event]:
        """Plays the next unit."""
        unit = self._waiting.popleft()
        return [attempt(self._cells[unit.cell], unit, self.threads, lambda n: self._worked(unit, n))]

    def close(self) -> None:
        """Nothing goes on."""
