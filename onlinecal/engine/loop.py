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

from onlinecal.core.arrays import Floats, address
from onlinecal.core.guarantee import Sight
from onlinecal.engine import kernels as k
from onlinecal.engine.events import Events
from onlinecal.engine.history import History, Sorted
from onlinecal.rounds.law import Unplayable, brief, summed
from onlinecal.rounds.plain import played
from onlinecal.rounds.steps import ATOMS, CONTEXT, FIELDS, RAISED, SCRATCH, VALUES, WEIGHTS, raised

#: run-rounds that are worth a thread of their own: some milliseconds
LEAST = 2**17
#: shares of the runs for each thread
SHARES = 8
#: runs that are played in turn, round by round, where no outcome is late. While one waits for its own numbers, another
#: goes on.
LANES = 2
#: the beginning of the names of threads
THREADS = "onlinecal"
#: what stops at the steps of both players, in their order
STEPS = k.BAD_SIZE, k.BAD_LEARN, k.BAD_PROBABILITY, k.BAD_HEAR, k.BAD_REVEAL


class Stopped(Exception):
    """A player stopped a run."""

    def __init__(self, forecaster: bool, number: int, fault: Exception, run: int | None = None) -> None:
        super().__init__(forecaster, number, fault, run)
        self.forecaster, self.number, self.fault, self.run = forecaster, number, fault, run


class Loop:
    """Plays events in all runs of a game, and has the open questions.

    A question has the law that was stated, which atom was drawn, the outcome, and the memos of both players. `keys` are
    of the streams that draw forecasts and outcomes. `kept` are the kinds of context that are logged with the rounds.
    """

    def __init__(self, forecaster: Any, nature: Any, keys: tuple[Any, Any], kept: Sequence[str] = ()) -> None:
        self.forecaster, self.nature, self.keys, self.kept = forecaster, nature, keys, tuple(kept)
        self.runs, self.size = forecaster.memory.runs, forecaster.size
        self.by_side = nature.by_side and forecaster.tells_side
        #: atoms of the law that nature is shown, at most
        self.shown = self.size if nature.sight >= Sight.LAW and not self.by_side else 0
        # Where in nature's context each number of the forecaster's is.
        kinds = (*forecaster.needs, *self.kept)
        self.gather = np.array([nature.reveals.index(kind) for kind in kinds], np.int64)
        self.grid = forecaster.grid if forecaster.grid is not None else np.zeros(0)
        context = max(forecaster.memory.context, len(forecaster.needs)) + len(self.kept)
        lengths = (
            k.QUESTION_VECTORS, context, forecaster.memory.memo, self.size, self.size, self.size, nature.memory.memo,
        )  # fmt: skip
        #: the words of a question: where each of its vectors begins, and how many words there are
        self.places: list[int] = np.cumsum(lengths).tolist()
        self.words = np.zeros((self.runs, 0, self.places[-1]))
        self._lane: Any = None
        self._facts: Any = None

    def __getstate__(self) -> dict[str, Any]:
        # Addresses are of the process in which they were taken.
        return self.__dict__ | {"_lane": None, "_facts": None}

    def reserve(self, slots: int) -> None:
        """Makes room for this number of open questions."""
        if slots > self.words.shape[1]:
            old = self.words
            self.words = np.zeros((self.runs, slots, self.places[-1]))
            self.words[:, : old.shape[1]] = old

    def tell(self, slot: int, outcome: Any) -> None:
        """Puts these outcomes in place of those that were drawn for the question at a place."""
        self.words.view(np.int64)[:, slot, k.OF_OUTCOME] = outcome

    def said(self, slot: int) -> tuple[Any, Any, Any]:
        """The question at a place: forecasts and probabilities, (runs,) each, and the law of each run."""
        words = self.words[:, slot]
        ints, (values, weights) = words.view(np.int64), self.places[3:5]
        laws = [
            summed(row[values : values + size], row[weights : weights + size])
            for row, size in zip(words.tolist(), ints[:, k.OF_SIZE].tolist(), strict=True)
        ]
        return words[np.arange(self.runs), values + ints[:, k.OF_PICK]], words[:, k.OF_Q].copy(), laws

    def play(
        self,
        asked: int,
        events: Events,
        histories: Sequence[History],
        log: Floats | None,
        threads: int,
        whole: bool = False,
    ) -> None:
        """Plays events that come after `asked` questions; `whole`: forecasters state the whole law."""
        # The table knows addresses alone: what is at them lives as long as these names.
        parts, times = np.array([_part(history) for history in histories], np.int64), events.asked_at
        count = events.asked + (events.resolved[0] if events.lag else 0)
        if events.codes is not None:
            count = len(events.codes)
        table, lane = self._table(asked, events, count, parts, times, log, whole), self._lanes()
        if not isinstance(histories[0], Sorted) and histories[0].moved:
            table[k.MOVED] = len(histories[0].grid)
        runs, shares = self.runs, min(threads, self.runs, count * self.runs // LEAST)
        # A thread that plays a player's own game would wait for threads that wait for it.
        if shares < 2 or current_thread().name.startswith(THREADS):
            self._play(table, lane, range(runs))
            return
        # In shares that threads take as they are free: a core is not equally fast at all times.
        even = runs // shares
        size = min(even, max(LANES, even // SHARES, LEAST // (SHARES * count)))
        size -= size % LANES if size > LANES else 0
        playing = [
            _pool(shares).submit(self._play, table.copy(), lane, range(at, min(at + size, runs)))
            for at in range(0, runs, size)
        ]
        wait(playing)
        for share in playing:
            share.result()

    def _play(self, table: Any, lane: Any, runs: range) -> None:
        mine, theirs = self.forecaster.memory, self.nature.memory
        late = table[k.EVENTS] or table[k.LAG]
        width = 1 if late or self.forecaster.grows or mine.in_python or theirs.in_python else LANES
        room = len(mine.room) + len(theirs.room) + theirs.context
        lanes = _apart(width, k.VECTORS + room + 2 * self.shown)
        # Questions that are never open at the end of an event need a place in a lane only.
        open = self.words if late else _apart(width, self.places[-1])[:, None, : self.places[-1]]
        said = {
            k.LANES: width, k.LENGTH: lanes.shape[1], k.LANE: address(lanes), k.FIRST_RUN: runs.start,
            k.LAST_RUN: runs.stop, k.OPEN: address(open), k.OPEN_RUN: open.strides[0],
            k.OPEN_WORDS: open.strides[1] // 8, k.OPEN_OWN: open is self.words,
        }  # fmt: skip
        table[list(said)] = list(said.values())
        try:
            what = played(k.play_runs, table, lane, 1 if late else None)
        except Exception as error:
            if table[k.WHAT] == k.FINE:
                raise
            raise self._stopped(table, lanes, error) from None
        if what != k.FINE:
            raise self._stopped(table, lanes, None)

    def _lanes(self) -> Any:
        """How the lane of each run begins, as `play_runs` takes it."""
        mine, theirs = (player.memory.fields() for player in (self.forecaster, self.nature))
        if self._lane is not None and self._lane[0] is mine and self._lane[1] is theirs:
            return self._lane[2]
        lane = np.zeros((3, k.VECTORS), np.int64)
        first, more, relative = lane
        rooms, shown = [len(player.memory.room) for player in (self.forecaster, self.nature)], self.shown
        lane[:2, :FIELDS], lane[:2, k.THEIRS : k.THEIRS + FIELDS] = mine, theirs
        first[[ATOMS + 1, VALUES + 1, WEIGHTS + 1]] = self.size
        first[[k.THEIRS + VALUES + 1, k.THEIRS + WEIGHTS + 1]] = shown
        # Behind its fields, a lane has the rooms of both players, and the context and the law that nature sees.
        own = [SCRATCH, *(k.THEIRS + place for place in (SCRATCH, CONTEXT, VALUES, WEIGHTS))]
        lengths = [k.VECTORS, *rooms, self.nature.memory.context, shown]
        first[own], relative[own] = 8 * np.cumsum(lengths), 1
        for place, keys in zip((k.FORECAST_KEYS, k.OUTCOME_KEYS), self.keys, strict=True):
            first[place], more[place] = address(keys), keys.strides[0]
        more[k.OF_RUN] = 1
        first.view(np.float64)[[k.FORECAST_DRAWN, k.OUTCOME_DRAWN]] = -1.0
        self._lane = mine, theirs, lane
        return lane

    def _table(
        self, asked: int, events: Events, count: int, parts: Any, times: Any, log: Any, whole: bool
    ) -> Any:
        """The table of these events for the compiled code, but for what differs from share to share of the runs."""
        if self._facts is None:
            self._facts = self._same()
        table, lag, open = self._facts.copy(), events.lag, min(asked, events.lag)
        table[k.LAST], table[k.NUMBER], table[k.PARTS] = count, asked, address(parts)
        table[k.FORECAST_ALONE] = self.forecaster.alone and not whole and not self.shown
        if lag:
            table[k.LAG], table[k.WAITING] = lag, open
            table[k.NEWEST], table[k.OLDEST] = asked % (lag + 1), (asked - open) % (lag + 1)
        for place, array in ((k.EVENTS, events.codes), (k.ROWS, events.rows), (k.TIMES, times), (k.LOG, log)):
            if array is not None:
                table[place] = address(array)
        if log is not None:
            table[k.LOG_RUN], table[k.LOGGED_WORDS] = log.strides[0], log.shape[2]
        return table

    def _same(self) -> Any:
        """The part of the table that is the same for all events."""
        table, steps = np.zeros(k.TABLE, np.int64), (*self.forecaster.steps, *self.nature.steps)
        for place, step in zip((k.LAW, k.LEARN, k.MOVE, k.HEAR, k.REVEAL), steps, strict=True):
            table[place] = 0 if step is None else step.address
        if not len(self.gather):
            table[k.REVEAL] = 0
        table[k.SEEN] = k.SIDE if self.by_side else self.nature.sight >= Sight.DRAW
        table[k.GATHER], table[k.TAKEN] = address(self.gather), len(self.gather)
        table[k.GRID], table[k.POINTS] = address(self.grid), len(self.grid)
        at = k.AT_CONTEXT, k.AT_MEMO, k.AT_ATOMS, k.AT_VALUES, k.AT_WEIGHTS, k.AT_THEIR_MEMO
        table[list(at)] = self.places[:-1]
        return table

    def _stopped(self, table: Any, lanes: Any, error: Exception | None) -> Stopped:
        """The fault at which compiled code stopped: the error of a method, or that of a step."""
        what, run, code = (int(table[place]) for place in (k.WHAT, k.RUN, k.CODE))
        q = float(table.view(np.float64)[k.Q])
        mine = what in (k.BAD_SIZE, k.BAD_LAW, k.BAD_LEARN)
        steps = dict(zip(STEPS, (*self.forecaster.steps, *self.nature.steps), strict=True))
        if error is None and RAISED in (code, q):
            error = raised(steps[what], run)
        elif error is None and what in (k.BAD_SIZE, k.BAD_LAW):
            lane, size = lanes[table[k.STOPPED_LANE]].view(np.int64), code if what == k.BAD_LAW else 0
            words = [_words_at(int(lane[k.QUESTION]) + 8 * at, size) for at in self.places[2:5]]
            error = self.forecaster.no_law(code, (words[0].view(np.int64), *words[1:]), run)
        elif error is None:
            error = {
                k.BAD_PROBABILITY: Unplayable(f"stated q = {brief(q)}", "a probability in [0, 1]", run),
                k.BAD_REVEAL: Unplayable("revealed nothing", "its context", run),
            }.get(what, Unplayable("refused a round that it had played", "to be told it", run))
        return Stopped(mine, int(table[k.ROUND]), error, run)


def _part(history: History) -> tuple[int, ...]:
    """Where the history of a part is, as the compiled code takes it."""
    if isinstance(history, Sorted):
        return 0, 0, address(history.keys), 0, history.keys.strides[0], history.filled, 0
    counts, ones, sums = history.counts, history.positives, history.sums
    return address(counts), address(ones), address(sums), counts.strides[0], sums.strides[0], 0, 0


def _words_at(at: int, count: int) -> Floats:
    """A copy of words at an address."""
    return np.array((ctypes.c_double * count).from_address(at), np.float64)


def _apart(width: int, length: int) -> Floats:
    """Lanes of this number of words, on no line of the cache with numbers that another thread writes."""
    edge = 16
    length = -(-length // 8) * 8
    return np.zeros(width * length + 2 * edge)[edge:-edge].reshape(width, length)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=THREADS)


# A process that is forked from this one has none of its threads.
os.register_at_fork(after_in_child=_pool.cache_clear)
