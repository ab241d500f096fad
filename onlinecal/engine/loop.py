"""The compiled loop: many rounds of two players that are made of steps, each round resolved before the next is asked.

It plays what the event loop of `onlinecal.engine.game` plays, number for number: the same steps, the same uniforms, the
same order of operations. It makes no records of rounds, so nobody but the history can observe them.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import numpy as np

from onlinecal.core._compile import index, kernel, part_of_kernel
from onlinecal.core.arrays import locked
from onlinecal.core.sight import Sight
from onlinecal.core.uniforms import next_uniform
from onlinecal.engine.history import GridHistory, History, MovedHistory, RealHistory
from onlinecal.forecasters.compiled import CompiledForecaster
from onlinecal.natures.compiled import CompiledNature
from onlinecal.rounds.law import Floats, Unplayable, brief
from onlinecal.rounds.record import no_law
from onlinecal.rounds.steps import (
    ALONE,
    ATOMS,
    CONTEXT,
    FIELDS,
    MEMO,
    RAISED,
    SCRATCH,
    UNIFORM,
    VALUES,
    WEIGHTS,
    address_of,
    call_hear,
    call_law,
    call_learn,
    call_move,
    call_reveal,
    context,
    floats_at,
    ints_at,
    law_atoms,
    law_values,
    law_weights,
    raised,
    run_of,
    words_at,
)
from onlinecal.rounds.tables import give

#: run-rounds that are worth a thread of their own: some milliseconds
LEAST = 2**17
#: shares of the runs for each thread
SHARES = 8
#: runs that are played in turn, round by round: while one waits for what it has just written, another goes on
LANES = 2
#: what a lane holds of its run: the fields of both players, those of nature once for what it is asked and once for what
#: it hears; where the keys of the uniforms for forecasts and for outcomes are, and the rows of the history; the size of
#: its law; the uniforms that were made last; then the vectors of both players
THEIRS, HEARS, FORECAST_KEYS = FIELDS, 2 * FIELDS, 3 * FIELDS
OUTCOME_KEYS, COUNTS, ONES, KEPT, STATED, FORECAST_DRAWN = range(FORECAST_KEYS + 1, FORECAST_KEYS + 7)
OUTCOME_DRAWN, VECTORS = FORECAST_DRAWN + 5, FORECAST_DRAWN + 10
#: what a kernel says of the round in which it stopped
FINE, SIZE, LAW, PROBABILITY, LEARN, HEAR, REVEAL = range(7)


def made_of_steps(player: Any) -> bool:
    """Whether the compiled loop can play it: its steps are all there is to it."""
    return isinstance(player, CompiledForecaster | CompiledNature) and player.plain


class CompiledLoop:
    """Plays rounds of these two players into a history.

    Parameters
    ----------
    forecaster : CompiledForecaster
    nature : CompiledNature
    history : GridHistory, RealHistory or MovedHistory
    keys : pair of (runs, 2) uint64 arrays
        Of the uniforms for forecasts and for outcomes.
    """

    def __init__(
        self, forecaster: CompiledForecaster, nature: CompiledNature, history: History, keys: tuple[Any, Any]
    ) -> None:
        self.forecaster, self.nature, self.history, self.keys = forecaster, nature, history, keys
        # Where in nature's context each number of the forecaster's is.
        self.gather = np.array([nature.reveals.index(kind) for kind in forecaster.needs], np.int64)
        #: how many different forecasts can be drawn
        self.levels: float = len(kept(history)[0]) or math.inf

    @property
    def growth(self) -> float:
        """In how many rounds to come the state of a player may take more room."""
        return math.inf if self.forecaster.grows else self.nature.growth(self.levels)

    def reserve(self, rounds: int) -> None:
        """Makes room for so many more rounds."""
        self.history.reserve(rounds)
        self.forecaster.reserve(rounds)
        self.nature.reserve(rounds, self.levels)

    def advance(self, first: int, last: int, threads: int = 1) -> None:
        """Plays rounds first + 1 to last.

        Parameters
        ----------
        first, last : int
        threads : int, default 1
            Each plays some of the runs. What is played does not depend on their number, as runs share nothing that is
            written.

        Raises
        ------
        Stopped
            By a player: of the runs that are stopped, the first. They are then no longer in the same round.
        """
        runs = self.forecaster.memory.runs
        parts = min(threads, runs, (last - first) * runs // LEAST)
        if parts < 2:
            self._play(first, last, range(runs))
            return
        # In shares that are taken by whoever is free, as a core is not equally fast at all times.
        even = runs // parts
        size = min(even, max(LANES, even // SHARES, LEAST // (SHARES * (last - first))))
        size -= size % LANES if size > LANES else 0
        shares = [range(at, min(at + size, runs)) for at in range(0, runs, size)]
        playing = [_pool(parts).submit(self._play, first, last, share) for share in shares]
        wait(playing)
        for part in playing:
            part.result()

    def _play(self, first: int, last: int, runs: range) -> None:
        mine, theirs = self.forecaster, self.nature
        grid, counts, positives, keys = kept(self.history)
        shown = mine.size if theirs.sight >= Sight.LAW else 0
        sizes = tuple(
            (len(memory.room), memory.context, memory.memo, *law)
            for memory, law in ((mine.memory, (mine.size, mine.size)), (theirs.memory, (0, shown)))
        )
        lanes = _lanes(1 if mine.grows else LANES, VECTORS + sum(map(sum, sizes)) + mine.size + 3 * shown)
        addresses = tuple(0 if step is None else step.address for step in (*mine.steps, *theirs.steps))
        what, run, number, code, q, lane = play_rounds(
            addresses, mine.memory.arrays, theirs.memory.arrays, lanes, sizes, theirs.sight >= Sight.DRAW,
            mine.alone and not shown, self.gather, self.keys, runs.start, runs.stop, first, last, grid, counts,
            positives, keys, self.history.filled,
        )  # fmt: skip
        if what != FINE:
            law = _law_in(lanes[lane], sizes[0], code if what == LAW else mine.size)
            raise Stopped(what in (SIZE, LAW, LEARN), number, fault(mine, theirs, what, run, code, law, q))


def _lanes(width: int, length: int) -> Floats:
    """Lanes of so many words, on no line of the cache with what another thread writes, as each would wait then."""
    edge = 16
    length = -(-length // 8) * 8
    return np.zeros(width * length + 2 * edge)[edge:-edge].reshape(width, length)


def _law_in(lane: Floats, sizes: tuple[int, ...], size: int) -> tuple[Any, ...]:
    """The law of so many atoms in a lane: atoms, values, weights."""
    room, context, memo, atoms, values = sizes
    begin = VECTORS + room + context + memo
    starts = begin, begin + atoms, begin + atoms + values
    parts = [lane[at : at + size].copy() for at in starts]
    return parts[0].view(np.int64), parts[1], parts[2]


def fault(
    forecaster: CompiledForecaster, nature: CompiledNature, what: int, run: int, code: int, law: Any, q: float
) -> Unplayable:
    """What a kernel that stopped says of the player: of the size of its law or the code of its step, its law (atoms,
    values, weights), its q.
    """
    if RAISED in (code, q):
        step = (*forecaster.steps, *nature.steps)[(SIZE, LEARN, PROBABILITY, HEAR, REVEAL).index(what)]
        assert step is not None
        return raised(step, run)
    if what == SIZE:
        return Unplayable(f"stated a law of {code} atoms", f"1 to {forecaster.size}", run)
    if what == LAW:
        grid = forecaster.grid
        return no_law(law[1] if grid is None else law[0], law[2], grid, run)
    if what == PROBABILITY:
        return Unplayable(f"stated q = {brief(q)}", "a probability in [0, 1]", run)
    if what == REVEAL:
        return Unplayable("revealed nothing", "its context", run)
    return Unplayable("refused a round that it had played", "to be told it", run)


class Stopped(Exception):
    """A player stopped the loop.

    Attributes
    ----------
    forecaster : bool
        Whether it was the forecaster.
    number : int
        Of the round.
    fault : Unplayable
    """

    def __init__(self, forecaster: bool, number: int, fault: Unplayable) -> None:
        super().__init__(forecaster, number, fault)
        self.forecaster, self.number, self.fault = forecaster, number, fault


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="onlinecal")


# A process that is forked from this one has none of its threads.
os.register_at_fork(after_in_child=_pool.cache_clear)


def kept(history: History) -> tuple[Any, ...]:
    """Grid, counts, positives and keys of a history; empty where it has none."""
    if isinstance(history, GridHistory):
        return history.grid, history.counts, history.positives, np.zeros((0, 0), np.int64)
    assert isinstance(history, RealHistory | MovedHistory)
    none = np.zeros((0, 0), np.int64)
    # A grid is read-only, and without one the loop is not to be compiled a second time.
    return locked(np.zeros(0)), none, none, history.keys


@kernel
def play_rounds(
    addresses, mine, theirs, lanes, sizes, draw, alone, gather, keys, first_run, last_run, first, last, grid, counts,
    positives, kept, before,
):  # fmt: skip
    """Rounds first + 1 to last of the runs from the first up to, not including, the last.

    Returns what stopped it, and where: the run, the round, the size of its law or the code of the step, q, the lane.
    """
    width, length = lanes.shape
    # By address: of an array that is somebody's, its users would be counted in each round.
    taken = ints_at(address_of(gather), len(gather))
    value = floats_at(address_of(grid), len(grid))
    for r in range(first_run, last_run, width):
        playing = min(width, last_run - r)
        for lane in range(playing):
            _enter(
                address_of(lanes) + 8 * length * lane,
                r + lane,
                mine,
                theirs,
                sizes,
                keys,
                counts,
                positives,
                kept,
            )
        stopped = FINE, 0, 0, 0, 0.0, 0
        for number in range(first + 1, last + 1):
            # All laws first: while one waits for its own numbers, the next is worked on.
            lane = 0
            while lane < playing:
                what, code = _ask(address_of(lanes) + 8 * length * lane, number, addresses, alone, taken)
                if what != FINE:
                    # The runs before it play on, as the first that stops is named.
                    stopped = what, r + lane, number, code, 0.0, lane
                    playing = lane
                lane += 1
            lane = 0
            while lane < playing:
                what, code, q = _resolve(
                    address_of(lanes) + 8 * length * lane, number, addresses, draw, value,
                    before + number - first - 1,
                )  # fmt: skip
                if what != FINE:
                    stopped = what, r + lane, number, code, q, lane
                    playing = lane
                lane += 1
        if stopped[0] != FINE:
            return stopped
    return FINE, 0, 0, 0, 0.0, 0


@kernel
def _enter(lane, r, mine, theirs, sizes, keys, counts, positives, kept):
    """Gives a lane to run r."""
    at = _give(lane, lane + 8 * VECTORS, r, mine, sizes[0])
    end = _give(lane + 8 * THEIRS, at, r, theirs, sizes[1])
    asked, hears = ints_at(lane + 8 * THEIRS, FIELDS), ints_at(lane + 8 * HEARS, FIELDS)
    # One by one: for arrays numba would also compile how the text of an error is made, which takes over a second.
    for i in range(FIELDS):
        hears[i] = asked[i]
    # A law for each of nature's steps, as a step may write into what it is given.
    hears[VALUES], hears[WEIGHTS] = end, end + 8 * hears[VALUES + 1]
    own, drawn = ints_at(lane, VECTORS), floats_at(lane, VECTORS)
    own[FORECAST_KEYS], own[OUTCOME_KEYS] = address_of(keys[0]) + 16 * r, address_of(keys[1]) + 16 * r
    own[COUNTS] = address_of(counts) + 8 * r * counts.shape[1]
    own[ONES] = address_of(positives) + 8 * r * positives.shape[1]
    own[KEPT] = address_of(kept) + 8 * r * kept.shape[1]
    drawn[FORECAST_DRAWN], drawn[OUTCOME_DRAWN] = -1.0, -1.0


@kernel
def _give(fields_at, at, r, arrays, sizes):
    """The fields of a player, with vectors from this address on; where these end."""
    fields = ints_at(fields_at, FIELDS)
    give(fields, r, arrays, floats_at(at, 0), ints_at(at, 0), floats_at(at, 0), floats_at(at, 0))
    room, context, memo, atoms, values = sizes
    places = SCRATCH, CONTEXT, MEMO, ATOMS, VALUES, WEIGHTS
    lengths = room, context, memo, atoms, values, values
    for i in range(len(places)):
        fields[places[i]], fields[places[i] + 1] = at, lengths[i]
        at += 8 * lengths[i]
    fields[ALONE] = 0
    return at


@part_of_kernel
def _uniform(lane, keys, drawn, number):
    """The uniform of a lane for this round."""
    return next_uniform(words_at(ints_at(lane, VECTORS)[keys], 2), number - 1, floats_at(lane + 8 * drawn, 5))


@part_of_kernel
def _ask(lane, number, addresses, alone, gather):
    """Asks the run in this lane for its law. What stopped it, or `FINE`; the code of nature's step."""
    law, _, _, _, reveal = addresses
    own = ints_at(lane, VECTORS)
    run, nature = run_of(own), run_of(ints_at(lane + 8 * THEIRS, FIELDS))
    if len(gather) > 0:
        code = call_reveal(reveal, (nature, number))
        if code < 0:
            return REVEAL, code
        for i in range(len(gather)):
            context(run)[i] = context(nature)[gather[i]]
    if alone:
        own[ALONE] = 1
        floats_at(lane, VECTORS)[UNIFORM] = _uniform(lane, FORECAST_KEYS, FORECAST_DRAWN, number)
    own[STATED] = call_law(law, (run, number))
    return FINE, 0


@part_of_kernel
def _resolve(lane, number, addresses, draw, grid, at):
    """Draws from the law of the run in this lane, asks nature, and tells both; round `number` of the game, number `at`
    of its history. What stopped it, or `FINE`; the size of its law or the code of the step; q.
    """
    _, learn, move, hear, _ = addresses
    own, points = ints_at(lane, VECTORS), len(grid)
    run, nature = run_of(own), run_of(ints_at(lane + 8 * THEIRS, FIELDS))
    hears = run_of(ints_at(lane + 8 * HEARS, FIELDS))
    atoms, values, weights = law_atoms(run), law_values(run), law_weights(run)
    told, shares, room = law_values(nature), law_weights(nature), len(law_values(nature))
    heard, heard_shares = law_values(hears), law_weights(hears)
    size = own[STATED]
    if not 1 <= size <= len(weights):
        return SIZE, size, 0.0
    total, pick, u = 0.0, 0, 0.0
    if size > 1:
        u = _uniform(lane, FORECAST_KEYS, FORECAST_DRAWN, number)
    for j in range(size):
        w = weights[j]
        if points > 0:
            i = atoms[j]
            if not (w >= 0.0 and 0 <= i < points):
                return LAW, size, 0.0
            values[j] = grid[i]
        else:
            if not (w >= 0.0 and 0.0 <= values[j] <= 1.0):
                return LAW, size, 0.0
            values[j] += 0.0  # −0.0 becomes 0.0
        if w > 0.0:
            # The last atom with weight is the pick where rounding leaves the sum below u. Without a branch, since
            # which way it went could not be foreseen.
            pick += (j - pick) * np.int64(total <= u)
        total += w
        if j < room:
            told[j] = heard[j] = values[j]
            shares[j] = heard_shares[j] = w
    if not abs(total - 1.0) <= 1e-9:
        return LAW, size, 0.0
    forecast = values[index(pick)]
    shown = min(size, room)
    q = call_move(move, (nature, number, shown, forecast if draw else np.nan))
    y = np.int64(q == 1.0)
    if q != y:
        if not 0.0 <= q <= 1.0:
            return PROBABILITY, size, q
        y = np.int64(_uniform(lane, OUTCOME_KEYS, OUTCOME_DRAWN, number) < q)
    if points > 0:
        i = index(atoms[index(pick)])
        ints_at(own[COUNTS], points)[i] += 1
        ints_at(own[ONES], points)[i] += y
    else:
        ints_at(own[KEPT] + 8 * at, 1)[0] = np.float64(forecast).view(np.int64) << 1 | y
    code = call_learn(learn, (run, number, size, pick, y))
    if code < 0:
        return LEARN, code, 0.0
    if hear != 0:
        code = call_hear(hear, (hears, number, shown, forecast, y))
        if code < 0:
            return HEAR, code, 0.0
    return FINE, 0, 0.0
