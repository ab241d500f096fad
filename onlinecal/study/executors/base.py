"""The interface of all executors, units go in and records come out in any order; and the one that plays here."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from onlinecal.core import errors
from onlinecal.core.errors import CellError, OnlinecalError, failure, user_lines
from onlinecal.study.executors.units import Unit
from onlinecal.study.plan import Cell
from onlinecal.study.run import Batch, cores, play_batch


class Fault(NamedTuple):
    """Why a unit could not be played: the name of our error (or ""), a line of text, and places in code of users."""

    kind: str
    text: str
    lines: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: BaseException) -> Fault:
        """The fault of an error that was raised while the unit was played."""
        if isinstance(error, OnlinecalError):
            return cls(type(error).__name__, " ".join(str(error).split()), tuple(user_lines(error)))
        return cls("", failure(error), tuple(user_lines(error)))

    def error(self) -> OnlinecalError:
        """The same as an error that can be raised."""
        known = getattr(errors, self.kind, None) if self.kind else None
        error: OnlinecalError = (known or CellError)(self.text)
        error.lines = self.lines
        return error


class Done(NamedTuple):
    """A unit has been played, in this number of seconds."""

    unit: Unit
    batch: Batch
    seconds: float


class Failed(NamedTuple):
    """A unit cannot be played: it would fail again."""

    unit: Unit
    fault: Fault


class Lost(NamedTuple):
    """The worker of a unit is gone, `times` times; it may be played again."""

    unit: Unit
    why: str
    times: int = 1


Event = Done | Failed | Lost


class Abandoned(BaseException):
    """A unit is not to be played to its end; raised from where progress is told, past every `except Exception`."""


def attempt(cell: Cell, unit: Unit, threads: int, told: Callable[[int], None]) -> Done | Failed:
    """Plays a unit; errors are returned, not raised."""
    began = time.perf_counter()
    try:
        batch = play_batch(cell, range(unit.first, unit.last), told, threads=threads)
    except (Exception, SystemExit) as error:  # players and measures may be any code
        return Failed(unit, Fault.of(error))
    return Done(unit, batch, time.perf_counter() - began)


class Executor(ABC):
    """Plays the units of one study at a time; a context manager, within which it has workers.

    All that it is told and tells goes through the thread that calls it.
    """

    #: how many play at once; units are cut for so many
    workers: int
    #: how many of them share the memory of a machine
    beside: int = 1
    #: how it was played, where that is worth a note, a line each
    remarks: list[str]

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def begin(self, cells: Sequence[Cell], worked: Callable[[Unit, int], None]) -> None:
        """Gets ready to play these cells; `worked` is told the run-rounds of a unit since it was last told."""

    @property
    @abstractmethod
    def room(self) -> int:
        """How many more units it takes now."""

    @abstractmethod
    def submit(self, unit: Unit) -> None:
        """Takes a unit."""

    @abstractmethod
    def events(self) -> list[Event]:
        """Waits until something has happened to units, for a second at most, and returns it."""

    @abstractmethod
    def close(self) -> None:
        """Ends at once, whatever is being played."""


class Serial(Executor):
    """Plays in this process, one unit after the other; the compiled loop with a thread for each core, by default."""

    workers = 1

    def __init__(self, threads: int | None = None) -> None:
        self.threads = cores() if threads is None else threads
        self.remarks = []
        self._waiting: deque[Unit] = deque()

    def begin(self, cells: Sequence[Cell], worked: Callable[[Unit, int], None]) -> None:
        """Keeps the cells."""
        self._cells, self._worked = cells, worked

    @property
    def room(self) -> int:
        """One at a time."""
        return 1 - len(self._waiting)

    def submit(self, unit: Unit) -> None:
        """Keeps the unit until its events are waited for."""
        self._waiting.append(unit)

    def events(self) -> list[Event]:
        """Plays the next unit."""
        unit = self._waiting.popleft()
        return [attempt(self._cells[unit.cell], unit, self.threads, lambda n: self._worked(unit, n))]

    def close(self) -> None:
        """Does nothing: nothing goes on."""
