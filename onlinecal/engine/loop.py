"""Plays the events of a game by compiled code, which calls the steps of both players."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from threading import current_thread
from typing import Any

import numpy as np

from onlinecal.core.arrays import address
from onlinecal.core.sight import Sight
from onlinecal.engine import kernels as k
from onlinecal.engine.events import Events
from onlinecal.engine.history import GridHistory, History, MovedHistory, RealHistory
from onlinecal.rounds.law import Floats, Unplayable, brief, no_law
from onlinecal.rounds.plain import played, raised_by
from onlinecal.rounds.steps import ATOMS, CONTEXT, FIELDS, RAISED, SCRATCH, VALUES, WEIGHTS

#: run-rounds that are worth a thread of their own: some milliseconds
LEAST = 2**17
#: shares of the runs for each thread
SHARES = 8
#: runs that are played in turn, round by round: while one waits for what it has just written, another goes on
LANES = 2
#: what the names of threads begin with
THREADS = "onlinecal"


class Questions:
    """The open questions of all runs: for each the law that was stated, the outcome, and the memos of both players."""

    def __init__(self, forecaster: Any, nature: Any, kept: Sequence[str] = ()) -> None:
        self.runs, self.size, self.kept = forecaster.memory.runs, forecaster.size, tuple(kept)
        context = max(forecaster.memory.context, len(forecaster.needs)) + len(self.kept)
        lengths = (
            k.QUESTION_VECTORS, context, forecaster.memory.memo, self.size, self.size, self.size, nature.memory.memo,
        )  # fmt: skip
        self.places: list[int] = np.cumsum(lengths).tolist()
        self.words = np.zeros((self.runs, 0, self.width))

    @property
    def width(self) -> int:
        """Words of a question."""
        return self.places[-1]

    def reserve(self, slots: int) -> None:
        """Makes room for this number of questions."""
        if slots > self.words.shape[1]:
            old = self.words
            self.words = np.zeros((self.runs, slots, self.width))
            self.words[:, : old.shape[1]] = old

    def tell(self, slot: int, outcome: Any) -> None:
        """Puts these outcomes in place of those that were drawn for the question at a place."""
        self.words.view(np.int64)[:, slot, k.OF_OUTCOME] = outcome

    def said(self, slot: int) -> tuple[Any, Any, Any, Any]:
        """The question at a place: forecasts, probabilities and outcomes, (runs,) each, and the law of each run."""
        words = self.words[:, slot]
        ints, (values, weights) = words.view(np.int64), self.places[3:5]
        pick = values + ints[:, k.OF_PICK]
        laws = []
        for row, size in zip(words, ints[:, k.OF_SIZE].tolist(), strict=True):
            law: dict[float, float] = {}
            for v, w in zip(
                row[values : values + size].tolist(), row[weights : weights + size].tolist(), strict=True
            ):
                if w > 0.0:
                    law[v] = law.get(v, 0.0) + w
            laws.append(law)
        return words[np.arange(self.runs), pick], words[:, k.OF_Q].copy(), ints[:, k.OF_OUTCOME].copy(), laws


class Stopped(Exception):
    """A player stopped a run."""

    def __init__(self, forecaster: bool, number: int, fault: Exception, run: int | None = None) -> None:
        super().__init__(forecaster, number, fault, run)
        self.forecaster, self.number, self.fault, self.run = forecaster, number, fault, run


class Loop:
    """Plays some events in all runs of a game."""

    def __init__(
        self,
        forecaster: Any,
        nature: Any,
        keys: tuple[Any, Any],
        questions: Questions,
        asked: int,
        events: Events,
        histories: Sequence[History],
        log: Floats | None = None,
        *,
        whole: bool = False,
    ) -> None:
        self.forecaster, self.nature, self.keys, self.asked = forecaster, nature, keys, asked
        self.questions, self.events, self.log = questions, events, log
        # Where in nature's context each number of the forecaster's is.
        kinds = (*forecaster.needs, *questions.kept)
        self.gather = np.array([nature.reveals.index(kind) for kind in kinds], np.int64)
        self.times = events.asked_at
        self.alone = forecaster.alone and not whole and not self._shown
        self.parts = np.array([_part(history) for history in histories], np.int64)
        self.grid = forecaster.grid if forecaster.grid is not None else np.zeros(0)
        self.count = events.asked if events.codes is None else len(events.codes)

    def advance(self, threads: int = 1) -> None:
        """Plays them."""
        runs = self.questions.runs
        parts = min(threads, runs, self.count * runs // LEAST)
        # A thread that plays a player's own game would wait for threads that wait for it.
        if parts < 2 or current_thread().name.startswith(THREADS):
            self._play(range(runs))
            return
        # In shares that are taken by whoever is free, as a core is not equally fast at all times.
        even = runs // parts
        size = min(even, max(LANES, even // SHARES, LEAST // (SHARES * self.count)))
        size -= size % LANES if size > LANES else 0
        playing = [
            _pool(parts).submit(self._play, range(at, min(at + size, runs))) for at in range(0, runs, size)
        ]
        wait(playing)
        for part in playing:
            part.result()

    def _play(self, runs: range) -> None:
        python = self.forecaster.memory.in_python or self.nature.memory.in_python
        table, lanes = self.table(1 if self.forecaster.grows or python else LANES, runs)
        what = played(k.play_runs, table, self.lane(), self.events.codes)
        if what != k.FINE:
            raise self.stopped(table, lanes, what)

    def lane(self) -> Any:
        """How the lane of each run begins, as `play_runs` takes it."""
        lane = np.zeros((3, k.VECTORS), np.int64)
        first, more, relative = lane
        rooms, shown = [len(player.memory.room) for player in (self.forecaster, self.nature)], self._shown
        at = 8 * k.VECTORS
        scratch, context = (at, at + 8 * rooms[0]), at + 8 * sum(rooms)
        for i, begin in enumerate((0, k.THEIRS, k.HEARS)):
            memory = (self.forecaster if i == 0 else self.nature).memory
            fields = slice(begin, begin + FIELDS)
            first[fields], more[fields] = memory.fields()
            first[begin + SCRATCH], relative[begin + SCRATCH] = scratch[i > 0], 1
            for place in (ATOMS, VALUES, WEIGHTS):
                first[begin + place + 1] = self.questions.size if i == 0 else shown * (place != ATOMS)
            if i > 0:
                # A law for each of nature's steps, as a step may write into what it is given.
                law = context + 8 * memory.context + 16 * shown * (i == 1)
                first[[begin + CONTEXT, begin + VALUES, begin + WEIGHTS]] = context, law, law + 8 * shown
                relative[[begin + CONTEXT, begin + VALUES, begin + WEIGHTS]] = 1
        for place, keys in zip((k.FORECAST_KEYS, k.OUTCOME_KEYS), self.keys, strict=True):
            first[place], more[place] = address(keys), keys.strides[0]
        more[k.OF_RUN] = 1
        first.view(np.float64)[[k.FORECAST_DRAWN, k.OUTCOME_DRAWN]] = -1.0
        return lane

    @property
    def _shown(self) -> int:
        """Atoms of the law that nature is shown, at most."""
        return self.questions.size if self.nature.sight >= Sight.LAW else 0

    def table(self, width: int, runs: range) -> tuple[Any, Any]:
        """The table of these runs for the compiled code, and the lanes and questions in it."""
        mine, theirs, questions, events = self.forecaster, self.nature, self.questions, self.events
        room = len(mine.memory.room) + len(theirs.memory.room) + theirs.memory.context
        lanes = _lanes(width, k.VECTORS + room + 4 * self._shown)
        # Questions that are never open at the end of an event need a place in a lane only.
        own = events.codes is not None
        open = questions.words if own else _lanes(width, questions.width)[:, None, : questions.width]
        table = np.zeros(k.TABLE, np.int64)
        laws = (k.LAW, k.LEARN), (k.MOVE, k.HEAR, k.REVEAL)
        for places, player in zip(laws, (mine, theirs), strict=True):
            for place, step in zip(places, player.steps, strict=False):
                table[place] = 0 if step is None else step.address
        if not len(self.gather):
            table[k.REVEAL] = 0
        said = {
            k.LANES: width, k.LENGTH: lanes.shape[1], k.LANE: address(lanes), k.FIRST_RUN: runs.start,
            k.LAST_RUN: runs.stop, k.LAST: self.count, k.NUMBER: self.asked, k.DRAW: theirs.sight >= Sight.DRAW,
            k.FORECAST_ALONE: self.alone, k.GATHER: address(self.gather), k.TAKEN: len(self.gather),
            k.GRID: address(self.grid), k.POINTS: len(self.grid), k.PARTS: address(self.parts), k.OPEN: address(open),
            k.OPEN_RUN: open.strides[0], k.OPEN_WORDS: open.strides[1] // 8, k.OPEN_OWN: own,
        }  # fmt: skip
        at = k.AT_CONTEXT, k.AT_MEMO, k.AT_ATOMS, k.AT_VALUES, k.AT_WEIGHTS, k.AT_THEIR_MEMO
        said |= dict(zip(at, questions.places[:-1], strict=True))
        if events.codes is not None:
            said |= {k.EVENTS: address(events.codes), k.ROWS: address(events.rows)}
        if self.log is not None:
            said |= {
                k.LOG: address(self.log), k.LOG_RUN: self.log.strides[0], k.LOGGED_WORDS: self.log.shape[2],
            }  # fmt: skip
        if self.times is not None:
            said[k.TIMES] = address(self.times)
        table[list(said)] = list(said.values())
        # The table knows addresses alone: what is at them lives as long as the loop and what is returned.
        return table, (lanes, open)

    def stopped(self, table: Any, lanes: Any, what: int) -> Stopped:
        """What the compiled code that stopped says of a player."""
        lane = lanes[0][table[k.STOPPED_LANE]].view(np.int64)
        size, places = self.questions.size, self.questions.places
        stated = min(size, int(table[k.CODE])) if what == k.BAD_LAW else 0
        atoms, values, weights = (_words_at(int(lane[k.QUESTION]) + 8 * at, stated) for at in places[2:5])
        law, q = (atoms.view(np.int64), values, weights), float(table.view(np.float64)[k.Q])
        said = fault(self.forecaster, self.nature, what, int(table[k.RUN]), int(table[k.CODE]), law, q)
        return Stopped(
            what in (k.BAD_SIZE, k.BAD_LAW, k.BAD_LEARN), int(table[k.ROUND]), said, int(table[k.RUN])
        )


def _part(history: History) -> tuple[int, ...]:
    """Where the history of a part is, as the compiled code takes it."""
    if isinstance(history, GridHistory):
        counts = history.counts
        return address(counts), address(history.positives), 0, counts.strides[0], 0, 0
    assert isinstance(history, RealHistory | MovedHistory)
    return 0, 0, address(history.keys), 0, history.keys.strides[0], history.filled


def _words_at(at: int, count: int) -> Floats:
    """A copy of words at an address."""
    return np.array((ctypes.c_double * count).from_address(at), np.float64)


def _lanes(width: int, length: int) -> Floats:
    """Lanes of so many words, on no line of the cache with what another thread writes, as each would wait then."""
    edge = 16
    length = -(-length // 8) * 8
    return np.zeros(width * length + 2 * edge)[edge:-edge].reshape(width, length)


def fault(forecaster: Any, nature: Any, what: int, run: int, code: int, law: Any, q: float) -> Exception:
    """Says what stopped a run: of the size of the law or the code of the step, the law (atoms, values, weights), q."""
    if RAISED in (code, q):
        kinds = k.BAD_SIZE, k.BAD_LEARN, k.BAD_PROBABILITY, k.BAD_HEAR, k.BAD_REVEAL
        return raised_by((*forecaster.steps, *nature.steps)[kinds.index(what)], run)
    if what == k.BAD_SIZE:
        if code == 0 and forecaster.refusal:
            did, expected = forecaster.refusal
            return Unplayable(did, expected, run)
        return Unplayable(f"stated a law of {code} atoms", f"1 to {forecaster.size}", run)
    if what == k.BAD_LAW:
        grid = forecaster.grid
        return no_law(law[1] if grid is None else law[0], law[2], grid, run)
    if what == k.BAD_PROBABILITY:
        return Unplayable(f"stated q = {brief(q)}", "a probability in [0, 1]", run)
    if what == k.BAD_REVEAL:
        return Unplayable("revealed nothing", "its context", run)
    return Unplayable("refused a round that it had played", "to be told it", run)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=THREADS)


# A process that is forked from this one has none of its threads.
os.register_at_fork(after_in_child=_pool.cache_clear)
