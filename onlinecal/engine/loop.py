"""The game of `play` for compiled strategies: one loop over listed events, in each of several runs.

It is compiled once for all strategies, and calls their steps as functions of a signature.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numba import boolean, carray, float64, int32, int64, types

from onlinecal.core.guarantee import Sight
from onlinecal.engine.events import ASK, BOTH, CODE, RESOLVE
from onlinecal.engine.run import Run, accessor, kernel, law, note, pointer, take_note
from onlinecal.engine.steps import DRAW, LEARN, MOVE, REVEAL, SAY, SIDE, compiled, drawn
from onlinecal.engine.uniforms import NUMBERS, uniform

#: what stopped a run
FINE, BAD_SIZE, BAD_LAW, BAD_Q, BAD_LEARN, BAD_HEAR, BAD_CONTEXT, OFF_GRID, BAD_GROUP = range(9)
OF_FORECASTER = BAD_SIZE, BAD_LAW, BAD_LEARN, OFF_GRID
LAW_SEEN, DRAW_SEEN = int(Sight.LAW), int(Sight.DRAW)


def _record(name: str, **fields: Any) -> Any:
    """A named tuple, and its type for numba."""
    made = namedtuple(name, fields)  # type: ignore[misc]
    return made, types.NamedTuple(list(fields.values()), made)


F1, F2, F3 = float64[::1], float64[:, ::1], float64[:, :, ::1]
#: the game's own row in each run begins with the generators of draws and of outcomes. Then comes the player that is
#: called, as the number of the round: negative for nature, 0 for no player. Then come the open questions, four numbers
#: each.
CALLED = 2 * NUMBERS
TABLE = CALLED + 1
NUMBER, PLACE, FORECAST, OUTCOME = range(4)
QUESTION = 4
#: the questions: events (empty: each is resolved at once), and their parts (empty: one part). Then come the times of
#: those that are asked, and how many were before.
Questions, QUESTIONS = _record("Questions", events=int64[::1], parts=int32[::1], times=F1, asked=int64)
#: the rules: atoms of a law at most, and the largest forecast, which is 1 or the last place of a table. Then: how many
#: outcomes there are, whether nature writes q into its note, and what nature sees. Then: whether the forecaster draws,
#: and whether it tells the side. Then: whether nature hears, whether there are notes, whether there is context.
Rules, RULES = _record(
    "Rules", size=int64, most=float64, outcomes=int64, classes=boolean, sees=int64, draws=boolean, sides=boolean,
    hears=boolean, noted=boolean, shown=boolean,
)  # fmt: skip
#: the context: from where in nature's note to where in the forecaster's it goes (from −1: the time). Then: the places
#: in nature's note that are logged, those of the time, and those of groups. These vectors are apart from the rules,
#: since numba counts every vector of a tuple that is handed on, which takes longer than a round.
Context, CONTEXT = _record(
    "Context", needs=int64[:, ::1], keeps=int64[::1], times=int64[::1], groups=int64[::1]
)
#: the history, as `history` says; a log of told rounds as in `transcripts` (empty: none); and laws (empty: none)
Told, TOLD = _record(
    "Told", grid=F1, counts=int64[:, :, :, ::1], said=F2, owner=int32[:, ::1], filled=int64[::1], log=F3,
    logged=int64[::1], laws=F2,
)  # fmt: skip
#: numbers of a row of the log before its context: the loop writes three of them, `transcripts` the others
LOGGED = 6


@accessor
def place_on(grid, points, value, per):
    """The place of a value on a grid of this many points, with so many steps per unit; −1 if it is not on it."""
    i = int(value * per + 0.5)
    return i if grid[i] == value else search(grid, points, value)


@kernel
def search(grid, points, value):
    """The same where the points are not 0, 1/m, …, 1: by halving."""
    low, high = 0, points
    while low < high:
        middle = (low + high) >> 1
        if grid[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < points and grid[low] == value else -1


@kernel
def class_of(theirs, classes, u):
    """The outcome that a uniform draws from the q that is in nature's note; −1 if that is none."""
    q = note(theirs)
    return drawn((q, q), classes, u)


@accessor
def ask(say, draw, side, move, mine, theirs, table, number, rules):
    """Asks a question: what stopped it; atom, forecast, outcome; q, or the value that stopped it; atoms."""
    size, place, table[CALLED] = 0, -1, number
    if rules.draws:
        forecast = draw(mine, uniform(table, number - 1), number)
        if not 0.0 <= forecast <= rules.most:
            return BAD_LAW, 0, forecast, 0, forecast, 0
        forecast += 0.0
    else:
        size = say(mine, number)
        if not 1 <= size <= rules.size:
            return BAD_SIZE, 0, 0.0, 0, float(size), 0
        place = drawn(law(mine), size, uniform(table, number - 1) if size > 1 else 0.0, rules.most)
        if place < 0:
            return BAD_LAW, 0, 0.0, 0, float(size), 0
        forecast = law(mine)[0][place] + 0.0  # −0.0 becomes 0.0
    seen = side(mine, number) if rules.sides else np.nan
    table[CALLED] = -number
    if rules.sides:
        q = move(theirs, 0, seen, number)
    else:
        seen = forecast if rules.sees == DRAW_SEEN else np.nan
        q = move(theirs, size if rules.sees >= LAW_SEEN else 0, seen, number)
    outcome = 1 if q == 1.0 else 0
    if rules.classes:
        outcome = class_of(theirs, rules.outcomes, uniform(table[NUMBERS:], number - 1)) if q == 0.0 else -1
        if outcome < 0:
            return BAD_Q, 0, 0.0, 0, q, 0
    elif q != outcome:
        if not 0.0 <= q <= 1.0:
            return BAD_Q, 0, 0.0, 0, q, 0
        outcome = 1 if uniform(table[NUMBERS:], number - 1) < q else 0
    return FINE, place, forecast, outcome, q, size


@accessor
def resolve(learn, hear, mine, theirs, table, number, place, forecast, outcome, hears):
    """Tells an outcome to both players; what stopped it."""
    table[CALLED] = number
    if learn(mine, place, forecast, outcome, number) < 0:
        return BAD_LEARN
    if hears:
        table[CALLED] = -number
        if hear(theirs, -1, forecast, outcome, number) < 0:
            return BAD_HEAR
    return FINE


@accessor
def show(reveal, mine, theirs, table, number, time, needs, times):
    """Lets nature reveal a context, and gives the forecaster what it needs of it."""
    table[CALLED] = -number
    for i in range(len(times)):
        note(theirs)[times[i]] = time
    if reveal(theirs, number) < 0:
        return BAD_CONTEXT
    for i in range(len(needs)):
        at = needs[i, 0]
        note(mine)[needs[i, 1]] = note(theirs)[at] if at >= 0 else time
    return FINE


@kernel
def members(theirs, groups):
    """A bit for each group of a question; −1 − i where it is neither in the group i nor not."""
    bits = 0
    for i in range(len(groups)):
        value = note(theirs)[groups[i]]
        if value != 0.0 and value != 1.0:
            return -1 - i
        bits = 2 * bits + int(value)
    return bits


@kernel
def add_law(laws, law, size, outcomes, outcome):
    """Counts a round at every place of its law, with its weight."""
    values, weights = law
    for j in range(size):
        laws[outcomes * int(values[j]) + outcome] += weights[j]


@kernel
def play_run(
    say, draw, side, learn, move, hear, reveal, mine, theirs, table_at, length, questions, rules, context, grid_at,
    points, counts_at, counted, said, owner, filled, log, logged, laws, r,
):  # fmt: skip
    """Plays the events in one run: what stopped it, the question, and the value that did."""
    # Vectors at a pointer are not counted by numba, which costs more than a round.
    table, grid = carray(table_at, length), carray(grid_at, points)
    counts = carray(counts_at, counted).view(np.int64)
    number, before, fault = questions.asked, questions.asked, FINE
    events, parts, times = questions.events, questions.parts, questions.times
    needs, keeps, timed, groups = context.needs, context.keeps, context.times, context.groups
    at_once, last = len(events) == 0, len(times) if len(events) == 0 else len(events)
    slot, kind, own, keys = 0, BOTH, 0, said.view(np.int64)
    outcomes, per = rules.outcomes, 1.0 if rules.classes else points - 1.0
    for e in range(last):
        if not at_once:
            kind, slot = events[e] & CODE - 1, events[e] // CODE
        if len(parts) > 0:
            own = parts[e]
        if rules.noted:
            take_note(mine, slot)
            take_note(theirs, slot)
        if kind <= BOTH:
            number += 1
            if rules.shown:
                fault = show(reveal, mine, theirs, table, number, times[number - before - 1], needs, timed)
                if fault != FINE:
                    return fault, number, 0.0
                if len(groups) > 0:
                    bits = members(theirs, groups)
                    if bits < 0:
                        return BAD_GROUP, number, float(-1 - bits)
            fault, place, forecast, outcome, q, size = ask(
                say, draw, side, move, mine, theirs, table, number, rules
            )
            if fault != FINE:
                return fault, number, q
            if len(laws) > 0:
                add_law(laws, law(mine), size, outcomes, outcome)
            if kind == ASK:
                keep = table[TABLE + slot * QUESTION :]
                keep[NUMBER], keep[PLACE], keep[FORECAST], keep[OUTCOME] = number, place, forecast, outcome
                continue
            of = number
        else:
            kept = table[TABLE + slot * QUESTION :]
            of, place = int(kept[NUMBER]), int(kept[PLACE])
            forecast, outcome = kept[FORECAST], int(kept[OUTCOME])
            if kind > RESOLVE and outcome != kind - RESOLVE - 1:
                continue  # it comes at this time only if it is the other one
        if points > 0:
            i = place_on(grid, points, forecast, per)
            if i < 0:
                return OFF_GRID, of, forecast
            counts[outcomes * (own * points + i) + outcome] += 1
        else:
            at = filled[r]
            said[at], filled[r] = forecast, at + 1
            keys[at] = 2 * keys[at] + outcome  # as `joint.encode` makes them, in the same memory
            if len(owner) > 0:
                owner[at] = own << len(groups) | members(theirs, groups)
        if len(log) > 0:
            row = log[logged[r]]
            row[0], row[1], row[2] = of, forecast, outcome
            for i in range(len(keeps)):
                row[LOGGED + i] = note(theirs)[keeps[i]]
            logged[r] += 1
        fault = resolve(learn, hear, mine, theirs, table, of, place, forecast, outcome, rules.hears)
        if fault != FINE:
            return fault, of, 0.0
    table[CALLED] = 0.0
    return FINE, 0, 0.0


RESULT = types.Tuple((int64, int64, int64, float64))
STEPS = SAY, DRAW, SIDE, LEARN, MOVE, LEARN, REVEAL
SIGNATURE = RESULT(
    *map(types.FunctionType, STEPS), F2, int64, F2, QUESTIONS, RULES, CONTEXT, TOLD, int64, int64
)


def _play_runs(
    say: Any, draw: Any, side: Any, learn: Any, move: Any, hear: Any, reveal: Any, rows: Any, mine_from: int,
    tables: Any, questions: Any, rules: Any, context: Any, told: Any, first_run: int, last_run: int,
) -> tuple[int, int, int, float]:  # fmt: skip
    """Plays the events in these runs: what stopped the first that was stopped, its run, the question, the value.

    A row holds nature's row, and from `mine_from` on the forecaster's.
    """
    points = len(told.grid)
    for r in range(first_run, last_run):
        counts, listed = told.counts[r if points > 0 else 0], 0 if points > 0 else r
        log = told.log[r] if len(told.log) > 0 else told.log.reshape((0, 0))
        laws = told.laws[r] if len(told.laws) > 0 else told.laws.reshape(0)
        theirs, mine = pointer(rows[r].ctypes), pointer(rows[r, mine_from:].ctypes)
        table = pointer(tables[r].ctypes)
        fault, number, value = play_run(
            say, draw, side, learn, move, hear, reveal, mine, theirs, table, tables.shape[1], questions, rules, context,
            pointer(told.grid.ctypes), points, pointer(counts.view(np.float64).ctypes), counts.size,
            told.said[listed], told.owner[listed], told.filled, log, told.logged, laws, r,
        )  # fmt: skip
        if fault != FINE:
            return fault, r, number, value
    return FINE, 0, 0, 0.0


def play_runs() -> Any:
    """The loop, compiled."""
    return compiled(SIGNATURE, _play_runs)


def say_nothing(run: Run, number: int) -> int:
    """A step that says, or reveals, nothing."""
    return 0


def _draw_nothing(run: Run, u: float, number: int) -> float:
    return 0.0


def _side_nothing(run: Run, number: int) -> float:
    return 0.0


def hear_nothing(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    """A step that learns nothing."""
    return 0


def steps_of(mine: Any, theirs: Any) -> tuple[Any, ...]:
    """The steps of both players in the order of the loop; for a missing one, a step that does nothing."""
    draw, side = mine.draw or compiled(DRAW, _draw_nothing), mine.side or compiled(SIDE, _side_nothing)
    hear, reveal = (
        theirs.hear or compiled(LEARN, hear_nothing),
        theirs.reveal or compiled(REVEAL, say_nothing),
    )
    return mine.say, draw, side, mine.learn, theirs.move, hear, reveal
