"""Single rounds of two players that are made of steps: one kernel asks a round, one resolves it.

It plays what `Game` plays by the players' own methods, number for number, and writes the same records: rounds may be
open, and whoever is shown one sees what it always is. What it saves is everything between the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Rows, address
from onlinecal.core.errors import SightError
from onlinecal.core.sight import Sight
from onlinecal.core.uniforms import next_uniform
from onlinecal.engine.history import History
from onlinecal.engine.loop import FINE, HEAR, LAW, LEARN, PROBABILITY, REVEAL, SIZE, Stopped, fault, kept
from onlinecal.forecasters.compiled import CompiledForecaster
from onlinecal.natures.base import NatureRound
from onlinecal.natures.compiled import CompiledNature
from onlinecal.rounds.record import Recorder, Round
from onlinecal.rounds.steps import (
    CONTEXT,
    FIELDS,
    FLOATS,
    INTS,
    KEYS,
    MEMO,
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
    run_of,
    words_at,
)

#: the law needs more atoms than its arrays have
WIDER = -1
#: behind the fields of a table: the player's steps, and where its uniforms for draws are
FIRST_STEP, SECOND_STEP, THIRD_STEP, DRAW_KEYS, DRAWN = range(3 * FIELDS, 3 * FIELDS + 5)
#: and for the forecaster the grid, for nature whether the drawn forecast may be seen before it moves
GRID, POINTS, SEES_DRAW = 3 * FIELDS + 5, 3 * FIELDS + 6, 3 * FIELDS + 5
TABLE = 3 * FIELDS + 7
#: where the arrays of a block are, and their shape
ATOMS, WEIGHTS, PLACE, ATOM, FORECAST, OUTCOME, RUNS, WIDTH = range(8)


class SingleRounds:
    """Asks and resolves rounds of these two players.

    Parameters
    ----------
    forecaster : CompiledForecaster
    nature : CompiledNature
    recorder : Recorder
        Of the game's rounds.
    keys : pair of (runs, 2) uint64 arrays
        Of the uniforms for forecasts and for outcomes.
    name : str
        Nature's, for what it is refused to see.
    sight : Sight
        What nature declares.
    needs : sequence of str
        The kinds of context that the forecaster declares that it needs, in the order of their names.

    Raises
    ------
    SightError
        Nature's player would see more than nature declares.
    """

    def __init__(
        self,
        forecaster: CompiledForecaster,
        nature: CompiledNature,
        recorder: Recorder,
        keys: tuple[Any, Any],
        name: str,
        sight: Sight,
        needs: Sequence[str],
    ) -> None:
        if nature.sight > sight:
            raise SightError(
                f"nature {name!r} plays with sight {nature.sight.name} but declares sight {sight.name}; expected "
                "no more than it declares"
            )
        self.forecaster, self.nature, self.recorder = forecaster, nature, recorder
        self.keys, self.name, self.sight = keys, name, sight
        runs = forecaster.memory.runs
        #: of each run the four uniforms that are made at a time, behind their number
        self.drawn = np.full((2, runs, 5), -1.0)
        self.needs, self.context = tuple(needs), Rows((len(needs), runs)) if needs else None
        # Where in nature's context each kind of a round's is, and which of these its player takes.
        self.gather = np.array([nature.reveals.index(kind) for kind in needs], np.int64)
        self.taken = np.array([self.needs.index(kind) for kind in forecaster.needs], np.int64)
        size = forecaster.size if nature.sight >= Sight.LAW else 0
        #: the law of one run as nature sees it: values, weights
        self.seen = np.zeros(size), np.zeros(size)
        self._no_context, self._no_memo = np.zeros((0, runs)), np.zeros((runs, 0))
        self._context = np.zeros((len(needs), runs))
        self._mine = self._theirs = np.zeros(TABLE, np.int64)
        self._changes = -1
        self._law: Any = None
        self._history: History | None = None
        self._room = 0
        self._kept: tuple[Any, ...] = ()

    def ask(self, number: int, time: float) -> tuple[Round, NatureRound]:
        """The round of this number with its forecast and outcome, and nature's face of it.

        Raises
        ------
        Stopped
            By a player; nothing was drawn then that anybody was told.
        """
        forecaster, nature = self.forecaster, self.nature
        if self.context is None:
            round, revealed = Round(number, time), self._no_context
        else:
            revealed = self.context.fresh()
            round = Round(number, time, dict(zip(self.needs, revealed, strict=True)))
        face = NatureRound(round, self.name, self.sight)
        memo = other_memo = self._no_memo
        if forecaster.memory.memo:
            round.memo = memo = forecaster.memory.fresh_memo()
        if nature.memory.memo:
            face.memo = other_memo = nature.memory.fresh_memo()
        recorder = self.recorder
        while True:
            law = forecaster.law
            # The form of one that was seen is known: nobody reads its arrays here.
            block, at = recorder.again() if law is self._law else recorder.place(law)
            self._law = law
            if forecaster.memory.changes + nature.memory.changes != self._changes:
                self._look()
            what, run, size, q = _ask(
                self._mine, self._theirs, block.addresses, memo, other_memo, revealed, self.gather, self.taken,
                number, at,
            )  # fmt: skip
            if what != FINE and what != WIDER:
                stated = tuple(array[:size] for array in forecaster.buffers)
                said = fault(forecaster, nature, what, run, size, stated, q)
                raise Stopped(what in (SIZE, LAW), number, said)
            if size > 2 or block.width > 2:
                # A law that has become too wide takes its new form in the next round.
                forecaster.fit(size)
            if what == FINE:
                break
        recorder.take(round)
        return round, face

    def tell(self, round: Round, face: NatureRound, history: History) -> None:
        """Tells history, forecaster and nature a round of this game.

        Raises
        ------
        Stopped
            By a player, after others were told.
        InvalidParameter
            A memo was exchanged.
        """
        forecaster, nature, block = self.forecaster, self.nature, round._block
        assert block is not None
        memo = other_memo = self._no_memo
        if forecaster.memory.memo:
            memo = forecaster.memory.check_memo(round.memo)
        if nature.memory.memo:
            other_memo = nature.memory.check_memo(face.memo)
        revealed = self._no_context if self.context is None else self._revealed(round)
        forecaster.make_room()
        if nature.steps[1] is not None:
            nature.make_room()
        if forecaster.memory.changes + nature.memory.changes != self._changes:
            self._look()
        history.reserve(1)
        if history is not self._history or history.room != self._room:
            self._history, self._kept, self._room = history, kept(history), history.room
        what, run, code = _tell(
            self._mine, self._theirs, block.addresses, memo, other_memo, *self._kept, history.filled, revealed,
            self.taken, round._number, round._at,
        )  # fmt: skip
        history.played(1)
        if what != FINE:
            none = np.zeros(0)
            said = fault(forecaster, nature, what, run, code, (none, none, none), 0.0)
            raise Stopped(what == LEARN, round._number, said)

    def _revealed(self, round: Round) -> Any:
        """The context of an open round, (kinds, runs)."""
        for row, kind in zip(self._context, self.needs, strict=True):
            row[:] = round._context[kind]
        return self._context

    def _look(self) -> None:
        """Takes the addresses of the players' arrays anew, as one may have been exchanged."""
        mine, theirs = self.forecaster, self.nature
        # Neither number ever falls.
        self._changes = mine.memory.changes + theirs.memory.changes
        first, then = ([0 if s is None else s.address for s in player.steps] for player in (mine, theirs))
        draws = [[address(keys), address(drawn)] for keys, drawn in zip(self.keys, self.drawn, strict=True)]
        grid = self.recorder.grid
        values = [0, 0] if grid is None else [address(grid), len(grid)]
        self._mine = np.array([*mine.table(), *first, 0, *draws[0], *values], np.int64)
        sees = [int(theirs.sight >= Sight.DRAW), 0]
        self._theirs = np.array([*theirs.table(*self.seen), *then, *draws[1], *sees], np.int64)


@kernel
def _begin(table, memo):
    """Makes a table's fields those of its first run, with the memos of a round."""
    table[FIELDS + MEMO] = address_of(memo)
    for i in range(FIELDS):
        table[i] = table[FIELDS + i]


@kernel
def _turn_to(table, r):
    """Run r of a table that has begun, as steps take it."""
    for place in (INTS, FLOATS, KEYS, CONTEXT, MEMO):
        table[place] = table[FIELDS + place] + r * table[2 * FIELDS + place]
    return run_of(table)


@kernel
def _draw(table, r, number):
    """The uniform of run r in this round; four are made at a time."""
    return next_uniform(
        words_at(table[DRAW_KEYS] + 16 * r, 2), number - 1, floats_at(table[DRAWN] + 40 * r, 5)
    )


@kernel
def _ask(mine, theirs, block, memo, other_memo, revealed, gather, taken, number, at):
    """One round in all runs. What stopped it, or `FINE`; in which run; the size or the largest one; q."""
    runs, width, points = block[RUNS], block[WIDTH], mine[POINTS]
    shape, first = runs * width, at * runs
    atoms = ints_at(block[ATOMS] + 8 * at * shape, shape)
    values = floats_at(block[ATOMS] + 8 * at * shape, shape)
    weights = floats_at(block[WEIGHTS] + 8 * at * shape, shape)
    place, atom = ints_at(block[PLACE] + 8 * first, runs), ints_at(block[ATOM] + 8 * first, runs)
    forecast, outcome = (
        floats_at(block[FORECAST] + 8 * first, runs),
        ints_at(block[OUTCOME] + 8 * first, runs),
    )
    grid = floats_at(mine[GRID], points)
    _begin(mine, memo)
    _begin(theirs, other_memo)
    for r in range(runs if len(gather) > 0 else 0):
        nature = _turn_to(theirs, r)
        code = call_reveal(theirs[THIRD_STEP], (nature, number))
        if code < 0:
            return REVEAL, r, code, 0.0
        for i in range(len(gather)):
            revealed[i, r] = context(nature)[gather[i]]
    needed = 0
    for r in range(runs):
        run = _turn_to(mine, r)
        _give_context(run, revealed, taken, r)
        size = call_law(mine[FIRST_STEP], (run, number))
        own_atoms, own_values, own_weights = law_atoms(run), law_values(run), law_weights(run)
        if not 1 <= size <= len(own_weights):
            return SIZE, r, size, 0.0
        needed = max(needed, size)
        if needed > width:
            continue
        total, pick, u = 0.0, -1, -1.0
        for j in range(width):
            used, to = j if j < size else 0, r * width + j
            # The places that are left repeat the first atom with no weight.
            w = own_weights[j] if j < size else 0.0
            weights[to] = w
            if points > 0:
                atoms[to] = own_atoms[used]
                good = 0 <= atoms[to] < points
            else:
                values[to] = own_values[used] + 0.0  # −0.0 becomes 0.0
                good = 0.0 <= values[to] <= 1.0
            if not (w >= 0.0 and good):
                return LAW, r, size, 0.0
            if w > 0.0:
                # The uniform is looked up only where it decides something.
                if pick >= 0 and u < 0.0:
                    u = _draw(mine, r, number)
                # The last atom with weight is the pick where rounding leaves the sum below u.
                if pick < 0 or total <= u:
                    pick = j
            total += w
        if not abs(total - 1.0) <= 1e-9:
            return LAW, r, size, 0.0
        place[r], atom[r] = pick, atoms[r * width + pick]
        if points > 0:
            forecast[r] = grid[atom[r]]
    if needed > width:
        return WIDER, 0, needed, 0.0
    for r in range(runs):
        nature = _turn_to(theirs, r)
        size = _show(nature, r, width, atoms, values, weights, grid)
        q = call_move(
            theirs[FIRST_STEP], (nature, number, size, forecast[r] if theirs[SEES_DRAW] else np.nan)
        )
        if not 0.0 <= q <= 1.0:
            return PROBABILITY, r, 0, q
        outcome[r] = np.int64(_draw(theirs, r, number) < q) if 0.0 < q < 1.0 else np.int64(q)
    return FINE, 0, needed, 0.0


@kernel
def _give_context(run, revealed, taken, r):
    """The context of the round, for a forecaster that needs some."""
    for i in range(len(taken)):
        context(run)[i] = revealed[taken[i], r]


@kernel
def _show(nature, r, width, atoms, values, weights, grid):
    """The law of run r, where nature may see it; how many atoms that has, or none."""
    seen, seen_weights = law_values(nature), law_weights(nature)
    if len(seen) == 0:
        return 0
    for j in range(width):
        at = r * width + j
        seen[j] = grid[atoms[at]] if len(grid) > 0 else values[at]
        seen_weights[j] = weights[at]
    return width


@kernel
def _tell(
    mine, theirs, block, memo, other_memo, grid, counts, positives, kept, rounds, revealed, taken, number, at
):
    """Tells all a round. What stopped it, or `FINE`; in which run; the code."""
    runs, width, points = block[RUNS], block[WIDTH], len(grid)
    shape, first = runs * width, at * runs
    atoms = ints_at(block[ATOMS] + 8 * at * shape, shape)
    values = floats_at(block[ATOMS] + 8 * at * shape, shape)
    weights = floats_at(block[WEIGHTS] + 8 * at * shape, shape)
    place, atom = ints_at(block[PLACE] + 8 * first, runs), ints_at(block[ATOM] + 8 * first, runs)
    forecast, outcome = (
        floats_at(block[FORECAST] + 8 * first, runs),
        ints_at(block[OUTCOME] + 8 * first, runs),
    )
    for r in range(runs):
        if points > 0:
            counts[r, atom[r]] += 1
            positives[r, atom[r]] += outcome[r]
        else:
            kept[r, rounds] = atom[r] << 1 | outcome[r]  # the bits of the value; the encoding of joint.encode
    _begin(mine, memo)
    _begin(theirs, other_memo)
    for r in range(runs):
        run = _turn_to(mine, r)
        _give_context(run, revealed, taken, r)
        own_atoms, own_values, own_weights = law_atoms(run), law_values(run), law_weights(run)
        for j in range(width):
            own_atoms[j] = atoms[r * width + j]
            own_values[j] = grid[own_atoms[j]] if points > 0 else values[r * width + j]
            own_weights[j] = weights[r * width + j]
        code = call_learn(mine[SECOND_STEP], (run, number, width, place[r], outcome[r]))
        if code < 0:
            return LEARN, r, code
    for r in range(runs if theirs[SECOND_STEP] != 0 else 0):
        nature = _turn_to(theirs, r)
        size = _show(nature, r, width, atoms, values, weights, grid)
        code = call_hear(theirs[SECOND_STEP], (nature, number, size, forecast[r], outcome[r]))
        if code < 0:
            return HEAR, r, code
    return FINE, 0, 0
