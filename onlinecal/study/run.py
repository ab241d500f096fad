"""Plays runs of a cell, a batch at a time, and joins what was read of them."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from onlinecal.core.columns import Column, Held
from onlinecal.core.errors import InvalidForecast
from onlinecal.core.guarantee import Sight
from onlinecal.core.levels import LevelSets
from onlinecal.core.memory import cores
from onlinecal.core.transcript import Transcript
from onlinecal.decisions.people import ENTRIES, Accounts
from onlinecal.engine import memory
from onlinecal.engine.game import Game
from onlinecal.study.entries import Planned
from onlinecal.study.gammas import Gammas, Packer
from onlinecal.study.panel import LAWS
from onlinecal.study.planning import Cell
from onlinecal.study.played import Batch, Joined, Played, together
from onlinecal.study.promises import promises, steps
from onlinecal.worlds.run import Simulation

#: the largest number of runs in one lockstep batch, which share the cost of a round in Python
BATCH = 256
#: bytes of the histories of a batch and of its players' memory. All batches of a machine have four times that, and half
#: of the free memory.
ROOM = 2**30
#: bytes of batches for which there is room on any machine
SMALL = 2**24
#: seconds of play of which is told at the latest, but for rounds that take longer
STRETCH = 0.1


def play_cell(cell: Cell, progress: Callable[[int], None] | None = None) -> Played:
    """Plays one cell in this process and reads its panel at the checkpoints.

    Parameters
    ----------
    cell : Cell
        Its runs from `cell.first` on are played.
    progress : callable, optional
        Told the run-rounds played since it was last told.
    """
    size = batch_size(cell)
    batches = [
        play_batch(cell, range(first, min(first + size, cell.runs)), progress, threads=cores())
        for first in range(cell.first, cell.runs, size)
    ]
    return result(cell, together(batches))


def batch_size(cell: Cell, at_once: int = 1) -> int:
    """The largest number of runs of a cell played in lockstep, where `at_once` batches share a machine's memory."""
    players, nature = (cell.forecaster.strategy, cell.nature.strategy), cell.nature.strategy
    streams, groups = max(1, len(nature.streams)), len(nature.group_names)
    parts = memory.parts_of(len(cell.people.cuts), streams, cell.horizon, groups)
    points_and_parts = None if groups else cell.forecaster.points_at(cell.horizon), parts
    bytes_of_run = memory.bytes_of_run(*players, cell.horizon, *points_and_parts)
    if (
        at_once * BATCH * bytes_of_run < SMALL
    ):  # to read how much is free takes long, and the game does it, too
        return BATCH
    free = memory.check_players(*players, cell.horizon)
    memory.check_history(1, cell.horizon, *points_and_parts, free)
    room = min(ROOM, 4 * ROOM // at_once, free / (2 * at_once))
    return max(1, min(BATCH, int(room // bytes_of_run)))


def result(cell: Cell, batch: Batch) -> Played:
    """The result of a cell, with the bounds that are proved of it.

    Parameters
    ----------
    cell : Cell
    batch : Batch
        The numbers of all its runs, as `play_cells` yields them.

    Returns
    -------
    Played
    """
    return planned(cell).result(batch.totals, batch, Gammas(batch.gammas))


def planned(cell: Cell, key: str = "", columns: Iterable[Held] = ()) -> Planned:
    """A cell as it is shown; with a key and columns for a results file."""
    nature = cell.nature.strategy
    said = cell.forecaster.label, cell.nature.label, cell.schedule.label, int(cell.horizon), int(cell.runs)
    more = bool(nature.recorded), Sight(nature.sight), promises(cell), tuple(columns), steps(cell)
    return Planned._make((key, *said, *more))


def play_batch(
    cell: Cell, runs: range, progress: Callable[[int], None] | None = None, *, threads: int = 1
) -> Batch:
    """Plays some runs of a cell and reads its panel at the checkpoints.

    Parameters
    ----------
    cell : Cell
    runs : range
        Their numbers.
    progress : callable, optional
        Told the run-rounds played since it was last told, some times a second; what it raises ends the game.
    threads : int, default 1
        Of the compiled loop. Linear algebra takes one thread, since the order of its sums depends on their number.
    """
    began = time.perf_counter()
    with _SINGLE:
        game = _begin(cell, runs, threads)
        told = None if progress is None else (lambda rounds: progress(rounds * len(runs)))
        reading = _Reading(cell, game, runs)
        for t in cell.times:
            for until in _stretches(game, t, told is not None):
                game.advance(until, told)
            reading.take(t)
        batch = reading.batch()
    return batch._replace(seconds=time.perf_counter() - began)


class _Single:
    """Linear algebra with one thread, until no thread of this process is within: the limit is one of the process."""

    def __init__(self) -> None:
        self._lock, self._within, self._limits = Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._within:
                limit = _blas("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")
                self._limits.enter_context(limit)
            self._within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                self._limits.close()


_SINGLE = _Single()


@cache
def _blas(scipy: bool) -> ThreadpoolController:
    """The libraries of linear algebra that are loaded, with that of SciPy; to look for them takes milliseconds."""
    return ThreadpoolController()


def _begin(cell: Cell, runs: range, threads: int) -> Game | Simulation:
    """The game of some runs of a cell before its first question; a world has no schedule but its own."""
    players = cell.forecaster.strategy, cell.nature.strategy
    told: Any = {"horizon": cell.horizon, "runs": runs, "seed": cell.seed, "cuts": cell.people.cuts}
    told["keeps"] = cell.panel.keeps
    if cell.in_world:
        return Simulation(*players, **told)
    return Game(*players, schedule=cell.schedule, threads=threads, laws=cell.panel.laws, **told)


class _Reading:
    """All that is read of a game at its checkpoints."""

    def __init__(self, cell: Cell, game: Game | Simulation, runs: range) -> None:
        self._cell, self._game, self._runs, self._at = cell, game, runs, 0
        nature = cell.nature.strategy
        self._parts = nature.streams, nature.group_names
        self._totals = np.zeros((len(cell.times), len(runs), len(cell.columns)))
        self._people = Accounts(game, cell.people.each)
        # Made once: of many decision makers they are large.
        self._accounts = np.empty((len(ENTRIES), len(cell.times), len(cell.people.each), len(runs)))
        self._open: list[int] = []
        self._certified: dict[str, list[Any]] = {}
        self._packer = Packer(cell.keep, len(runs), 1 + sum(map(len, self._parts)))
        self._packer.free = game.levels == math.inf

    def take(self, t: int) -> None:
        """Reads what there is after round t."""
        cell, game = self._cell, self._game
        self._open.append(game.asked - game.resolved)
        where = f"after round {t} of {cell.players}"
        self._totals[self._at] = cell.panel.read_parts(self._levels, *self._parts, where, self._runs)
        self._packer.end()
        if cell.people.groups:
            self._accounts[:, self._at] = np.moveaxis(self._people.read(), 2, 0)
        for name, values in game.certificates().items():
            self._certified.setdefault(name, []).append(values)
        self._at += 1

    def _levels(self, part: int | None) -> Iterator[tuple[Any, LevelSets, list[Transcript | None] | None]]:
        """The places of some runs with known outcomes, their level sets, which are kept, and their rounds."""
        game = self._game
        if part == LAWS:
            known = ((run, game.gamma_of_laws(run)) for run in range(len(self._runs)))
            yield from (([run], LevelSets.of([gamma]), None) for run, gamma in known if gamma is not None)
            return
        for first, sets in game.levels_of(part):
            self._packer.take(0 if part is None else part + 1, first, sets)
            own = range(first, first + len(sets))
            yield own, sets, None if game.transcripts is None else [game.rounds_of(run, part) for run in own]

    def batch(self) -> Batch:
        """All that was read."""
        cell, runs = self._cell, self._runs
        read = {column: self._totals[:, :, j] for j, column in enumerate(cell.columns)} | {
            Column("certificate", name): _certificate(cell, runs, name, values)
            for name, values in self._certified.items()
        }
        loop = "simpy" if cell.in_world else "compiled" if self._game.compiled else "python"
        joined = None
        if everybody := cell.people.each:
            labels, tasks, responses = zip(
                *((t.label, t.task.name, t.response) for t in everybody), strict=True
            )
            join, leave = (np.array([getattr(t, name) for t in everybody]) for name in ("join", "leave"))
            entries = dict(zip(ENTRIES, self._accounts, strict=True))
            joined = Joined(labels, tasks, responses, join, leave, entries, self._people.cdl())
        opened = () if cell.immediate else tuple(self._open)
        return Batch(
            runs[0],
            np.array(cell.times),
            read,
            loop,
            opened,
            people=joined,
            gammas=self._packer.packed(runs[0]),
        )


def _stretches(game: Game | Simulation, until: int, told: bool) -> Iterator[int]:
    """Rounds up to which to play next: progress is told between them, and plug-ins may be slow."""
    rounds = 16
    while told and not game.compiled and game.asked + rounds < until:
        began = time.perf_counter()
        yield game.asked + rounds
        took = time.perf_counter() - began
        rounds = int(rounds * max(1.0, min(8.0, STRETCH / max(took, 1e-6))))
    yield until


def _certificate(cell: Cell, runs: range, name: str, values: list[Any]) -> Any:
    """The values that a player certifies, which may be any code, as totals of a column of their own."""
    try:
        totals = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        totals = np.empty(0)
    shape = (len(cell.times), len(runs))
    if totals.shape != shape or np.isnan(totals).any():
        raise InvalidForecast(
            f"forecaster {cell.forecaster.label!r} certifies {name} = {values[-1]!r} at T = {cell.horizon}; expected "
            f"{len(runs)} numbers, one for each run, at each of {len(cell.times)} checkpoints"
        )
    if name in [column.name for column in cell.columns]:
        raise InvalidForecast(
            f"forecaster {cell.forecaster.label!r} certifies {name!r}, which is what the measure is called; expected "
            "another name"
        )
    return totals
