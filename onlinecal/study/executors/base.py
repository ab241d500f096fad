"""The interface of all executors, the units that they play, and the executor of this process."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Self

from onlinecal.core import errors
from onlinecal.core.errors import CellError, InvalidParameter, OnlinecalError, failure, user_lines
from onlinecal.core.memory import cores
from onlinecal.core.validation import is_whole
from onlinecal.core.words import number_of
from onlinecal.study.planning import Cell
from onlinecal.study.played import Batch
from onlinecal.study.run import batch_size, play_batch

#: seconds, roughly, of a run-round: of steps alone, and beside plain Python
STEPS, PYTHON = 5e-8, 1e-6
#: seconds, roughly, below which a unit is not cut
LEAST = 0.1
#: how many units each worker is to have, so that all end at about the same time
EACH = 4
#: a unit that takes this many times less than its share is played first
SHORT = 16


class Unit(NamedTuple):
    """Runs `first` up to, not including, `last` of the cell at a place among the cells."""

    cell: int
    first: int
    last: int


def seconds(cell: Cell) -> float:
    """Seconds, roughly, that a cell takes; only the order of play depends on it."""
    return cell.work * (STEPS if cell.in_steps else PYTHON)


def units(cells: Sequence[Cell], workers: int, beside: int = 1) -> Iterator[Unit]:
    """The units in order of play: short cells first, so that faults show soon, then the longest, which are cut."""
    long = list(map(seconds, cells))
    share = math.inf if workers == 1 else max(LEAST, sum(long) / (EACH * workers))
    # Of one worker all are short.
    for i in sorted(range(len(cells)), key=lambda i: -long[i] if long[i] > share / SHORT else -math.inf):
        cell, size = cells[i], batch_size(cells[i], beside)
        runs = cell.runs - cell.first
        if long[i] > share:
            size = min(size, max(1, int(share / long[i] * runs)))
        parts = -(-runs // size)
        for k in range(parts):  # of about the same size, none of them larger
            yield Unit(i, cell.first + runs * k // parts, cell.first + runs * (k + 1) // parts)


def fault(error: BaseException) -> OnlinecalError:
    """The same as an error of one line that can be sent, with its places in code of users."""
    known = isinstance(error, OnlinecalError)
    kind = getattr(errors, type(error).__name__, CellError) if known else CellError
    found: OnlinecalError = kind(" ".join(str(error).split()) if known else failure(error))
    found.lines = tuple(user_lines(error))
    return found


class Lost(NamedTuple):
    """The worker of a unit is gone, `times` times; it may be played again."""

    why: str
    times: int = 1


#: all numbers of a unit, the error that it would raise again, or nothing yet
Outcome = Batch | OnlinecalError | Lost
Event = tuple[Unit, Outcome]


class Work(NamedTuple):
    """The units of some cells; both functions are called in the thread of the caller of `Executor.play`."""

    cells: Sequence[Cell]
    #: the next unit; None for none now, though one that is lost may follow again
    following: Callable[[], Unit | None]
    #: is told the run-rounds of a unit since it was last told
    worked: Callable[[Unit, int], None]


class Abandoned(BaseException):
    """A unit is not to be played to its end; raised from where progress is told, past every `except Exception`."""


def attempt(cell: Cell, unit: Unit, threads: int, told: Callable[[int], None]) -> Batch | OnlinecalError:
    """Plays a unit; what a player or measure raises is returned, not raised."""
    try:
        return play_batch(cell, range(unit.first, unit.last), told, threads=threads)
    except (Abandoned, KeyboardInterrupt):
        raise
    except BaseException as error:  # players and measures may be any code
        return fault(error)


class Executor(ABC):
    """Plays the units of a study, within its context."""

    #: how many play at once; units are cut for this number
    workers: int
    #: how many of them share the memory of a machine
    beside: int = 1
    #: how it was played, where that is worth a note, a line each
    remarks: list[str]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return  # nothing is held between plays

    @abstractmethod
    def play(self, work: Work) -> Generator[list[Event]]:
        """Yields lists of units that have ended, with their outcomes; closed, it ends all that plays."""


class Serial(Executor):
    """Plays in this process, one unit after the other; the compiled loop with a thread for each core, by default."""

    workers = 1

    def __init__(self, threads: int | None = None) -> None:
        self.threads = cores() if threads is None else threads
        self.remarks = []

    def play(self, work: Work) -> Generator[list[Event]]:
        """Plays units as they come."""
        while (unit := work.following()) is not None:
            yield [(unit, attempt(work.cells[unit.cell], unit, self.threads, partial(work.worked, unit)))]


def most_jobs() -> int:
    """The largest number of processes that may be asked for: more than there are cores do little harm."""
    return max(16, 4 * cores())


def executor_of(jobs: int | None = None, scheduler: str | None = None) -> Executor:
    """The executor of that many cores (None: all; 1: this process, one thread) or of a Dask scheduler's address."""
    if jobs is not None and scheduler is not None:
        raise InvalidParameter(
            f"jobs = {jobs!r} are processes of this machine, and a scheduler has workers of its own; expected one of "
            "the two"
        )
    if scheduler is not None:
        from onlinecal.study.executors.cluster import Cluster

        return Cluster(scheduler)
    if jobs is not None and not (is_whole(jobs) and 1 <= jobs <= most_jobs()):
        raise InvalidParameter(
            f"jobs = {jobs!r}; expected an integer from 1 to {most_jobs()}, as this process may use "
            f"{number_of(cores(), 'core')}"
        )
    if (jobs or cores()) == 1:
        return Serial(threads=1)
    from onlinecal.study.executors.processes import Processes

    return Processes(int(jobs or cores()), asked=jobs is not None)
