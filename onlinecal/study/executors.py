"""Plays cells: in this process, in processes beside it (loky), or on a Dask cluster.

The numbers do not depend on which, nor on the order in which units are finished.
"""

import math
import os
import re
import signal
import sys
import threading
import time
from asyncio import CancelledError
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from multiprocessing import current_process
from multiprocessing.resource_tracker import ensure_running
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from onlinecal.core import errors
from onlinecal.core.errors import (
    CellError,
    InvalidParameter,
    OnlinecalError,
    WorkerError,
    failure,
    user_lines,
)
from onlinecal.core.memory import cores, free_memory
from onlinecal.core.progress import Progress
from onlinecal.core.validation import is_whole
from onlinecal.core.words import number_of
from onlinecal.study.planning import Cell
from onlinecal.study.played import Batch, together
from onlinecal.study.run import batch_size, play_batch

if TYPE_CHECKING:
    from onlinecal.study.cluster import Cluster

#: rough seconds of a run-round, compiled and in plain Python. Below `LEAST` seconds a unit is not cut. `EACH` units are
#: for each worker.
COMPILED, PYTHON, LEAST, EACH = 5e-8, 1e-6, 0.1, 4
#: how many bytes a process of loky may come to keep before it is replaced by another
KEPT = "LOKY_MAX_MEMORY_LEAK_SIZE"
#: run-rounds in plain Python from which all cores are taken where no number of them is asked for
LONG = 10**6


class Unit(NamedTuple):
    """Runs `first` up to, not including, `last` of the cell at a place among the cells."""

    cell: int
    first: int
    last: int


class Local:
    """Plays on this machine: there is nothing to connect to, and nothing to look after."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def check(self) -> None:
        """Does nothing: a future knows that its process has died."""

    def end(self) -> None:
        """Ends what is being played."""


class Serial(Local):
    """Plays in this process, unit by unit; the compiled loop with a thread for each core, by default."""

    again, workers, beside, at_once = 0, 1, 1, 1

    def __init__(self, threads: int | None = None) -> None:
        self.threads = cores() if threads is None else threads

    def begin(self, cells: Sequence[Cell], told: Callable[[int], None]) -> None:
        """Takes the cells, and who is told the run-rounds of a unit while it is played."""
        self._cells, self._told = cells, told

    def submit(self, unit: Unit) -> "Future[Any]":
        """The outcome of a unit, which is played at once."""
        future = Future[Any]()
        try:
            runs = range(unit.first, unit.last)
            future.set_result(play_batch(self._cells[unit.cell], runs, self._told, threads=self.threads))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # players and measures may be any code
            future.set_result(fault(error))
        return future


class Processes(Local):
    """Plays in processes of this machine, each with one thread and one unit. One that dies takes no other with it."""

    #: how often a unit is played again after its worker died, then with all memory for itself
    again = 1

    def __init__(self, workers: int) -> None:
        self.workers = self.beside = self.at_once = workers
        self._blob = b""
        #: pools of one process each → the unit that it plays, or has played last
        self._pools = dict[Any, "Future[Any]"]()

    def begin(self, cells: Sequence[Cell], _: Callable[[int], None]) -> None:
        """Prepares what the processes load."""
        from onlinecal.study.sending import packed  # it needs numba

        self._blob = packed(cells)

    def submit(self, unit: Unit) -> "Future[Any]":
        """The outcome of a unit, when it has been played, by a process that is idle or a new one."""
        from loky import ProcessPoolExecutor

        with _uninterrupted():
            for pool in [pool for pool, last in self._pools.items() if last.done()]:
                with suppress(RuntimeError):  # it has died, while it played or since
                    return self._give(pool, unit)
                self._leave(pool)
            try:
                # By default 300 MB, and a table of a player may be as large.
                size = f"{min(free_memory() / self.workers, 1e15):.0f}"
                env = {KEPT: os.environ.get(KEPT, size)}
                sent = os.getpid(), self._blob
                pool = ProcessPoolExecutor(1, initializer=_begin, initargs=sent, env=env)
                return self._give(pool, unit)
            except (OSError, RuntimeError, AssertionError) as error:
                raise WorkerError(
                    f"no process can be begun: {failure(error)}; expected fewer jobs, or jobs = 1"
                ) from error

    def _give(self, pool: Any, unit: Unit) -> "Future[Any]":
        self._pools[pool] = pool.submit(_play_sent, unit)
        return self._pools[pool]

    def end(self) -> None:
        """Ends all processes, with what players have begun in them."""
        while self._pools:
            self._leave(next(iter(self._pools)))

    def _leave(self, pool: Any) -> None:
        pool.shutdown(wait=True, kill_workers=True)
        del self._pools[pool]


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Processes that begin within do not hear Ctrl-C; the one that plays the study ends them."""
    masks = hasattr(signal, "pthread_sigmask")
    if (
        masks
    ):  # Python begins a process of its own with the first of loky, and lets Ctrl-C through from then on
        ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else set()
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


_SENT = [b""]


def _begin(parent: int, blob: bytes) -> None:
    """Begins a process: it ends with the one that plays the study, and what players print is no result."""
    _SENT[0] = blob
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)

    def follow() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(0)

    if sys.platform != "win32":
        threading.Thread(target=follow, daemon=True).start()


def _play_sent(unit: Unit) -> Batch | OnlinecalError:
    return play_unit(_SENT[0], unit)


class Cancelled(BaseException):
    """The study of a unit is over; raised past every `except Exception` of players."""


def play_unit(blob: bytes, unit: Unit, told: Callable[[int], None] | None = None) -> Batch | OnlinecalError:
    """Plays a unit of cells that were sent; what a player or measure raises is returned."""
    from onlinecal.study.sending import opened

    cell = opened(blob)[unit.cell]
    try:
        return play_batch(cell, range(unit.first, unit.last), told)
    except Cancelled:
        raise
    except BaseException as error:  # players and measures may be any code
        return fault(error)


def fault(error: BaseException) -> OnlinecalError:
    """The same as an error of one line that can be sent, with its places in code of users."""
    known = isinstance(error, OnlinecalError)
    kind = getattr(errors, type(error).__name__, CellError) if known else CellError
    found: OnlinecalError = kind(" ".join(str(error).split()) if known else failure(error))
    found.lines = tuple(user_lines(error))
    return found


Executor: TypeAlias = "Serial | Processes | Cluster"


def most_jobs() -> int:
    """The largest number of processes that may be asked for: more than there are cores do little harm."""
    return max(16, 4 * cores())


def executor_of(jobs: int | None = None, scheduler: str | None = None) -> Executor:
    """The executor of that many processes (1: this one, one thread), of a Dask scheduler's address, or this process."""
    if jobs is not None and scheduler is not None:
        raise InvalidParameter(
            f"jobs = {jobs!r} are processes of this machine, and a scheduler has workers of its own; expected one of "
            "the two"
        )
    if scheduler is not None:
        from onlinecal.study.cluster import Cluster

        return Cluster(scheduler)
    if jobs is None:
        return Serial()
    if not (is_whole(jobs) and 1 <= jobs <= most_jobs()):
        raise InvalidParameter(
            f"jobs = {jobs!r}; expected an integer from 1 to {most_jobs()}, as this process may use "
            f"{number_of(cores(), 'core')}"
        )
    return Serial(threads=1) if jobs == 1 else Processes(int(jobs))


def all_cores(cells: Sequence[Cell]) -> Executor:
    """The executor where none is asked for: processes for much plain Python that can be sent, else threads."""
    from onlinecal.study.sending import packed

    # A process of Python's own pools may begin none.
    alone = cores() == 1 or current_process().daemon
    if not alone and sum(cell.work for cell in cells if not cell.in_steps) > LONG:
        with suppress(InvalidParameter):
            packed(cells)
            return Processes(cores())
    return Serial()


def units(cells: Sequence[Cell], workers: int = 1, beside: int = 1) -> list[Unit]:
    """All runs of all cells in order of play: several workers begin with the longest cells, which are cut.

    `beside` is how many workers share the memory of a machine.
    """
    cost = [cell.work * (COMPILED if cell.in_steps else PYTHON) for cell in cells]
    share = math.inf if workers == 1 else max(LEAST, sum(cost) / (EACH * workers))
    found = []
    # Of one worker those that take long are last: what is finished soon is kept, whatever stops the others.
    order = [each if each > LEAST else 0.0 for each in cost] if workers == 1 else [-each for each in cost]
    for i in sorted(range(len(cells)), key=order.__getitem__):
        cell, runs, size = cells[i], cells[i].runs - cells[i].first, batch_size(cells[i], beside)
        if cost[i] > share:
            size = min(size, max(1, int(share / cost[i] * runs)))
        parts = -(-runs // size)  # of about the same size, none of them larger
        found += [
            Unit(i, cell.first + runs * k // parts, cell.first + runs * (k + 1) // parts)
            for k in range(parts)
        ]
    return found


def play_cells(
    cells: Sequence[Cell], progress: Progress, executor: Executor
) -> Iterator[tuple[Cell, Batch | OnlinecalError]]:
    """Plays the cells; each is yielded when it is finished, in whatever order.

    Parameters
    ----------
    cells : sequence of Cell
    progress : Progress
    executor : Executor
        Within its context. It ends what it plays also where the caller stops before.

    Yields
    ------
    cell : Cell
    batch : Batch or OnlinecalError
        The numbers of all its runs, or why it cannot be played. `result` makes a `Played` of them.
    """
    parts: dict[int, dict[Unit, Batch]] = defaultdict(dict)
    todo, alone = deque(units(cells, executor.workers, executor.beside)), deque[Unit]()
    running, lost, failed = dict[Future[Any], Unit](), Counter[Unit](), set[int]()
    executor.begin(cells, progress.advance)
    try:
        while todo or alone or running:
            # What a worker played that died is played again alone: there may have been too little memory for several.
            while (alone and not running) or (todo and not alone and len(running) < executor.at_once):
                unit = alone.popleft() if alone else todo.popleft()
                cell = cells[unit.cell]
                if unit.cell not in failed:
                    progress.describe(f"{cell.forecaster.label} vs {cell.nature.label}, T = {cell.horizon:,}")
                    running[executor.submit(unit)] = unit
            done = wait(running, 1.0, FIRST_COMPLETED).done
            if not done:
                executor.check()
            for future in done:
                unit = running.pop(future)
                cell, played = cells[unit.cell], parts[unit.cell]
                found, why = _outcome(future)
                if found is None:
                    lost[unit] += 1
                    if lost[unit] <= executor.again:
                        executor.check()
                        alone.append(unit)
                        continue
                    found = WorkerError(
                        f"its worker died {lost[unit]} times ({why}); expected that it fits into memory and does not "
                        "end its process"
                    )
                if not isinstance(executor, Serial):
                    progress.advance(cell.horizon * (unit.last - unit.first))
                if unit.cell in failed:
                    continue
                if isinstance(found, OnlinecalError):
                    failed.add(unit.cell)
                    yield cell, found
                    continue
                played[unit] = found
                if sum(part.last - part.first for part in played) == cell.runs - cell.first:
                    yield cell, together([played[part] for part in sorted(played)])
                    played.clear()
    finally:
        executor.end()


def _outcome(future: "Future[Any]") -> tuple[Batch | OnlinecalError | None, str]:
    """The outcome of a unit; None where its worker is gone, and why in words."""
    try:
        return future.result(), "its study was over"
    except WorkerError:
        raise
    except (Exception, CancelledError) as error:
        if type(error).__name__ not in LOST:
            raise WorkerError(f"the workers cannot play: {failure(error)}") from error
        signals = re.search(r"\{(SIG\w+)", str(error))
        if signals is None:
            return None, "it ended"
        memory = ", perhaps for want of memory" if signals[1] == "SIGKILL" else ""
        return None, f"it was killed by {signals[1]}{memory}"


#: the errors of loky and of Dask where a worker, or what it had played, is gone
LOST = {
    "TerminatedWorkerError",
    "BrokenProcessPool",
    "KilledWorker",
    "CancelledError",
    "FutureCancelledError",
}
