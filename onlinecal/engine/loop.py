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
from onlinecal.core.uniforms import four_uniforms
from onlinecal.engine.history import GridHistory, History, MovedHistory, RealHistory
from onlinecal.forecasters.compiled import CompiledForecaster
from onlinecal.natures.compiled import CompiledNature
from onlinecal.rounds.law import Unplayable, brief
from onlinecal.rounds.record import no_law
from onlinecal.rounds.steps import (
    ALONE,
    CONTEXT,
    FIELDS,
    MEMO,
    RAISED,
    UNIFORM,
    address_of,
    call_hear,
    call_law,
    call_learn,
    call_move,
    call_reveal,
    raised,
    run_of,
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
        size = mine.size
        own = (
            np.zeros(FIELDS, np.int64), mine.memory.arrays, np.empty_like(mine.memory.room),
            np.zeros(mine.memory.context), np.zeros(mine.memory.memo),
            np.zeros(size, np.int64), np.zeros(size), np.zeros(size),
        )  # fmt: skip
        shown = size if theirs.sight >= Sight.LAW else 0
        other = (
            np.zeros(FIELDS, np.int64), theirs.memory.arrays, np.empty_like(theirs.memory.room),
            np.zeros(theirs.memory.context), np.zeros(theirs.memory.memo),
            np.zeros(0, np.int64), np.zeros(shown), np.zeros(shown),
        )  # fmt: skip
        addresses = tuple(0 if step is None else step.address for step in (*mine.steps, *theirs.steps))
        what, run, number, code, q = play_rounds(
            addresses, own, other, theirs.sight >= Sight.DRAW, mine.alone and not shown, self.gather, self.keys,
            runs.start, runs.stop, first, last, grid, counts, positives, keys, self.history.filled,
        )  # fmt: skip
        if what != FINE:
            law = own[5:] if what != LAW else tuple(array[:code] for array in own[5:])
            raise Stopped(what in (SIZE, LAW, LEARN), number, fault(mine, theirs, what, run, code, law, q))


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
    bits, on_grid = values.view(np.int64), len(grid) > 0
    forecast_block, outcome_block = np.empty(4), np.empty(4)
    for r in range(first_run, last_run):
        give(fields, r, arrays, room, atoms, values, weights)
        fields[CONTEXT], fields[CONTEXT + 1] = address_of(context), len(context)
        fields[MEMO], fields[MEMO + 1] = address_of(memo), len(memo)
        give(their_fields, r, their_arrays, their_room, no_atoms, seen, seen_weights)
        their_fields[CONTEXT], their_fields[CONTEXT + 1] = address_of(their_context), len(their_context)
        their_fields[MEMO], their_fields[MEMO + 1] = address_of(their_memo), len(their_memo)
        run, nature = run_of(fields), run_of(their_fields)
        forecast_drawn, outcome_drawn = -1, -1
        for number in range(first + 1, last + 1):
            if len(gather) > 0:
                code = call_reveal(reveal, (nature, number))
                if code < 0:
                    return REVEAL, r, number, code, 0.0
                for i in range(len(gather)):
                    context[i] = their_context[gather[i]]
            block = (number - 1) >> 2
            if alone:
                if block != forecast_drawn:
                    four_uniforms(keys[0][r], block, forecast_block)
                    forecast_drawn = block
                fields[ALONE], fields.view(np.float64)[UNIFORM] = 1, forecast_block[(number - 1) & 3]
            size = call_law(law, (run, number))
            if not 1 <= size <= len(weights):
                return SIZE, r, number, size, 0.0
            total, pick, u = 0.0, -1, -1.0
            for j in range(size):
                w = weights[j]
                if on_grid:
                    i = atoms[j]
                    if not (w >= 0.0 and 0 <= i < len(grid)):
                        return LAW, r, number, size, 0.0
                    values[j] = grid[i]
                else:
                    if not (w >= 0.0 and 0.0 <= values[j] <= 1.0):
                        return LAW, r, number, size, 0.0
                    values[j] += 0.0  # −0.0 becomes 0.0
                if w > 0.0:
                    # The uniform is looked up only where it decides something.
                    if pick >= 0 and u < 0.0:
                        if block != forecast_drawn:
                            four_uniforms(keys[0][r], block, forecast_block)
                            forecast_drawn = block
                        u = forecast_block[(number - 1) & 3]
                    # The last atom with weight is the pick where rounding leaves the sum below u.
                    if pick < 0 or total <= u:
                        pick = j
                total += w
            if not abs(total - 1.0) <= 1e-9:
                return LAW, r, number, size, 0.0
            forecast = values[pick]
            shown = min(size, len(seen))
            for j in range(shown):
                seen[j], seen_weights[j] = values[j], weights[j]
            q = call_move(move, (nature, number, shown, forecast if draw else np.nan))
            if not 0.0 <= q <= 1.0:
                return PROBABILITY, r, number, size, q
            y = np.int64(q == 1.0)
            if 0.0 < q < 1.0:
                if block != outcome_drawn:
                    four_uniforms(keys[1][r], block, outcome_block)
                    outcome_drawn = block
                y = np.int64(outcome_block[(number - 1) & 3] < q)
            if on_grid:
                counts[r, atoms[pick]] += 1
                positives[r, atoms[pick]] += y
            else:
                kept[r, before + number - first - 1] = bits[pick] << 1 | y
            code = call_learn(learn, (run, number, size, pick, y))
            if code < 0:
                return LEARN, r, number, code, 0.0
            if hear != 0:
                for j in range(shown):
                    seen[j], seen_weights[j] = values[j], weights[j]
                code = call_hear(hear, (nature, number, shown, forecast, y))
                if code < 0:
                    return HEAR, r, number, code, 0.0
    return FINE, 0, 0, 0, 0.0
