"""The compiled loop: many rounds of two players that are made of steps, each round resolved before the next is asked.

It plays what the event loop of `onlinecal.engine.game` plays, number for number: the same steps, the same uniforms, the
same order of operations. It makes no records of rounds, so nobody but the history can observe them.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.sight import Sight
from onlinecal.core.uniforms import next_uniform
from onlinecal.engine.history import GridHistory, History, RealHistory
from onlinecal.forecasters.compiled import CompiledForecaster
from onlinecal.natures.compiled import CompiledNature
from onlinecal.rounds.law import Floats, Unplayable, brief
from onlinecal.rounds.record import no_law
from onlinecal.rounds.steps import (
    ALONE,
    CONTEXT,
    FIELDS,
    MEMO,
    RAISED,
    UNIFORM,
    Memory,
    address_of,
    call_hear,
    call_law,
    call_learn,
    call_move,
    call_reveal,
    floats_at,
    ints_at,
    raised,
    run_of,
    words_at,
)
from onlinecal.rounds.tables import give

#: run-rounds that are worth a thread of their own: some milliseconds
LEAST = 2**17
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
    history : GridHistory or RealHistory
    keys : pair of (runs, 2) uint64 arrays
        Of the uniforms for forecasts and for outcomes.
    """

    def __init__(
        self, forecaster: CompiledForecaster, nature: CompiledNature, history: History, keys: tuple[Any, Any]
    ) -> None:
        self.forecaster, self.nature, self.history, self.keys = forecaster, nature, history, keys
        # Where in nature's context each number of the forecaster's is.
        self.gather = np.array([nature.reveals.index(kind) for kind in forecaster.needs], np.int64)

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
        cuts = [runs * i // parts for i in range(parts + 1)]
        playing = [_pool(parts).submit(self._play, first, last, range(*ends)) for ends in pairwise(cuts)]
        wait(playing)
        for part in playing:
            part.result()

    def _play(self, first: int, last: int, runs: range) -> None:
        mine, theirs = self.forecaster, self.nature
        grid, counts, positives, keys = kept(self.history)
        shown = mine.size if theirs.sight >= Sight.LAW else 0
        own, law = _of_this_thread(mine.memory, mine.size, mine.size)
        other, _ = _of_this_thread(theirs.memory, 0, shown)
        addresses = tuple(0 if step is None else step.address for step in (*mine.steps, *theirs.steps))
        what, run, number, code, q = play_rounds(
            addresses, own, other, theirs.sight >= Sight.DRAW, mine.alone and not shown, self.gather, self.keys,
            _words(10)[0], runs.start, runs.stop, first, last, grid, counts, positives, keys, self.history.rounds,
        )  # fmt: skip
        if what != FINE:
            law = law if what != LAW else tuple(array[:code] for array in law)
            raise Stopped(what in (SIZE, LAW, LEARN), number, fault(mine, theirs, what, run, code, law, q))


def _of_this_thread(memory: Memory, atoms: int, values: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What the kernel takes of a player, and the law in it: atoms, and values with weights, of so many places."""
    fields, room, context, memo, law_atoms, law_values, law_weights = _words(
        FIELDS, len(memory.room), memory.context, memory.memo, atoms, values, values
    )
    law = law_atoms.view(np.int64), law_values, law_weights
    return (fields.view(np.int64), memory.arrays, room, context, memo, *law), law


def _words(*lengths: int) -> list[Floats]:
    """Vectors of zeros, on no line of the cache with what another thread writes: each would wait for the other."""
    edge = 16
    ends = np.cumsum([edge, *lengths])
    block = np.zeros(ends[-1] + edge)
    return [block[begin:end] for begin, end in pairwise(ends)]


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
    assert isinstance(history, RealHistory)
    none = np.zeros((0, 0), np.int64)
    return np.zeros(0), none, none, history.keys


@kernel
def play_rounds(
    addresses,
    own,
    other,
    draw,
    alone,
    gather,
    keys,
    drawn,
    first_run,
    last_run,
    first,
    last,
    grid,
    counts,
    positives,
    kept,
    before,
):
    """Rounds first + 1 to last of the runs from the first up to, not including, the last.

    Returns what stopped it, and where: the run, the round, the size of its law or the code of the step, q.
    """
    law, learn, move, hear, reveal = addresses
    fields, arrays, room, context, memo, atoms, values, weights = own
    their_fields, their_arrays, their_room, their_context, their_memo, no_atoms, seen, seen_weights = other
    # What is read and written in each round is reached by address: of arrays that are known to be somebody's, their
    # users would be counted in each round, with both threads at the same counter.
    needed, most, points = len(gather), len(weights), len(grid)
    run, nature = run_of(fields), run_of(their_fields)
    asked = ints_at(address_of(fields) + 8 * ALONE, 1)
    uniform = floats_at(address_of(fields) + 8 * UNIFORM, 1)
    said, said_values = ints_at(address_of(atoms), most), floats_at(address_of(values), most)
    said_weights, bits = floats_at(address_of(weights), most), ints_at(address_of(values), most)
    shown_values = floats_at(address_of(seen), len(seen))
    shown_weights = floats_at(address_of(seen_weights), len(seen))
    given, revealed = (
        floats_at(address_of(context), needed),
        floats_at(address_of(their_context), len(their_context)),
    )
    taken, value = ints_at(address_of(gather), needed), floats_at(address_of(grid), points)
    forecast_drawn, outcome_drawn = floats_at(address_of(drawn), 5), floats_at(address_of(drawn) + 40, 5)
    for r in range(first_run, last_run):
        give(fields, r, arrays, room, atoms, values, weights)
        fields[CONTEXT], fields[CONTEXT + 1] = address_of(context), len(context)
        fields[MEMO], fields[MEMO + 1] = address_of(memo), len(memo)
        give(their_fields, r, their_arrays, their_room, no_atoms, seen, seen_weights)
        their_fields[CONTEXT], their_fields[CONTEXT + 1] = address_of(their_context), len(their_context)
        their_fields[MEMO], their_fields[MEMO + 1] = address_of(their_memo), len(their_memo)
        forecast_keys = words_at(address_of(keys[0]) + 16 * r, 2)
        outcome_keys = words_at(address_of(keys[1]) + 16 * r, 2)
        forecast_drawn[0], outcome_drawn[0] = -1.0, -1.0
        rounds = ints_at(address_of(counts) + 8 * r * points, points)
        ones = ints_at(address_of(positives) + 8 * r * points, points)
        history = ints_at(address_of(kept) + 8 * r * kept.shape[1], kept.shape[1])
        for number in range(first + 1, last + 1):
            if needed > 0:
                code = call_reveal(reveal, (nature, number))
                if code < 0:
                    return REVEAL, r, number, code, 0.0
                for i in range(needed):
                    given[i] = revealed[taken[i]]
            if alone:
                asked[0], uniform[0] = 1, next_uniform(forecast_keys, number - 1, forecast_drawn)
            size = call_law(law, (run, number))
            if not 1 <= size <= most:
                return SIZE, r, number, size, 0.0
            total, pick, u = 0.0, -1, -1.0
            for j in range(size):
                w = said_weights[j]
                if points > 0:
                    i = said[j]
                    if not (w >= 0.0 and 0 <= i < points):
                        return LAW, r, number, size, 0.0
                    said_values[j] = value[i]
                else:
                    if not (w >= 0.0 and 0.0 <= said_values[j] <= 1.0):
                        return LAW, r, number, size, 0.0
                    said_values[j] += 0.0  # −0.0 becomes 0.0
                if w > 0.0:
                    # The uniform is looked up only where it decides something.
                    if pick >= 0 and u < 0.0:
                        u = next_uniform(forecast_keys, number - 1, forecast_drawn)
                    # The last atom with weight is the pick where rounding leaves the sum below u.
                    if pick < 0 or total <= u:
                        pick = j
                total += w
            if not abs(total - 1.0) <= 1e-9:
                return LAW, r, number, size, 0.0
            forecast = said_values[pick]
            shown = min(size, len(shown_values))
            for j in range(shown):
                shown_values[j], shown_weights[j] = said_values[j], said_weights[j]
            q = call_move(move, (nature, number, shown, forecast if draw else np.nan))
            if not 0.0 <= q <= 1.0:
                return PROBABILITY, r, number, size, q
            y = np.int64(q == 1.0)
            if 0.0 < q < 1.0:
                y = np.int64(next_uniform(outcome_keys, number - 1, outcome_drawn) < q)
            if points > 0:
                rounds[said[pick]] += 1
                ones[said[pick]] += y
            else:
                history[before + number - first - 1] = bits[pick] << 1 | y
            code = call_learn(learn, (run, number, size, pick, y))
            if code < 0:
                return LEARN, r, number, code, 0.0
            if hear != 0:
                for j in range(shown):
                    shown_values[j], shown_weights[j] = said_values[j], said_weights[j]
                code = call_hear(hear, (nature, number, shown, forecast, y))
                if code < 0:
                    return HEAR, r, number, code, 0.0
    return FINE, 0, 0, 0, 0.0
