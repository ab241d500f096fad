"""What all executors have in common: units go in, records come out, in whatever order they are finished."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple

from onlinecal.core import errors
from onlinecal.core.errors import CellError, OnlinecalError, failure, user_lines
from onlinecal.study.executors.units import Unit
from onlinecal.study.plan import Cell
from onlinecal.study.run import Batch


class Fault(NamedTuple):
    """Why a unit could not be played.

    Attributes
    ----------
    kind : str
        Name of the error in `onlinecal.core.errors`; "" for somebody else's.
    text : str
        One line.
    lines : tuple of str
        Of users, that the error went through.
    """

    kind: str
    text: str
    lines: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: BaseException) -> Fault:
        """Of an error that was raised while it was played."""
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
    """A unit has been played, in so many seconds."""

    unit: Unit
    batch: Batch
    seconds: float


class Failed(NamedTuple):
    """A unit cannot be played: it would fail again."""

    unit: Unit
    fault: Fault


class Lost(NamedTuple):
    """Whoever played a unit is gone, `times` times; it may be played again."""

    unit: Unit
    why: str
    times: int = 1


class Returned(NamedTuple):
    """A unit was not played to its end, through no fault of its own; it is to be played first."""

    unit: Unit


Event = Done | Failed | Lost | Returned


class Executor(ABC):
    """Who plays the units of a study; a context manager, within which it has workers.

    An executor is used for one study at a time. Everything that it is told and tells goes through the thread that calls
    it, so whoever calls it need not know of others.
    """

    #: how many play at once; units are cut for so many
    workers: int
    #: how many of them share the memory of a machine, as far as is known
    beside: int = 1
    #: what whoever asked should know of how it was played, a line each
    remarks: list[str]

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def begin(self, cells: Sequence[Cell], worked: Callable[[Unit, int], None]) -> None:
        """Gets ready to play these cells; `worked` is told the run-rounds of a unit since it was last told.

        Raises
        ------
        WorkerError
            There are no workers, or none that are fit.
        InvalidParameter
            The cells cannot be sent to workers.
        """

    @property
    @abstractmethod
    def room(self) -> int:
        """How many more units it takes now."""

    @abstractmethod
    def submit(self, unit: Unit) -> None:
        """Takes a unit."""

    @abstractmethod
    def events(self) -> list[Event]:
        """Waits until something has happened to units, for a second at most, and says what."""

    @abstractmethod
    def close(self) -> None:
        """Ends at once, whatever is being played."""
