"""The compiled round: it draws, asks players that are made of steps, and writes the history down.

A run that is played has a lane: words of memory. They hold what both players reach by their `run`, and the addresses
of the open question's numbers. A table says the rest, so that one call with one array plays any number of events.
"""

from __future__ import annotations

import numpy as np

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.core.uniforms import next_uniform
from onlinecal.engine.events import ASK, BOTH, LOOK, ONLY, PART, RESOLVE, SLOT
from onlinecal.engine.history import move_to
from onlinecal.rounds.steps import (
    ALONE,
    ATOMS,
    CONTEXT,
    FIELDS,
    MEMO,
    SIDE,
    UNIFORM,
    VALUES,
    WEIGHTS,
    call_hear,
    call_law,
    call_learn,
    call_move,
    call_reveal,
)
from onlinecal.rounds.steps import TIME as FIELD_TIME
from onlinecal.rounds.words import (
    address_of,
    bits_of,
    float_at,
    floats_at,
    int_at,
    ints_at,
    put,
    run_at,
    words_at,
)

#: the table. Lanes, their words, the address of the first. The runs from first to last. Events, rows (0 where there is
#: one part) and which of them. Questions before. The steps. Whether nature sees the draw (1), or the side of the mean
#: alone (the place of `SIDE`). Whether nature does not see the law. Which of nature's numbers of context the forecaster
#: takes. The grid. The histories of the parts. Open questions: address, bytes of a run, words of a question, whether
#: each run has its own. The first word of each field of one. Where resolved rounds are logged, and in how many words.
#: The times of the questions, 0 where these are their numbers. The reason that stopped a run. Without events: the lag,
#: in questions, from question to outcome. The number of open questions. The places of the next and of the oldest.
#: The points to which forecasts are moved, or 0.
(
    LANES, LENGTH, LANE, FIRST_RUN, LAST_RUN, EVENTS, ROWS, FIRST, LAST, NUMBER, LAW, LEARN, MOVE, HEAR, REVEAL, SEEN,
    FORECAST_ALONE, GATHER, TAKEN, GRID, POINTS, PARTS, OPEN, OPEN_RUN, OPEN_WORDS, OPEN_OWN, AT_CONTEXT, AT_MEMO,
    AT_ATOMS, AT_VALUES, AT_WEIGHTS, AT_THEIR_MEMO, LOG, LOG_RUN, LOGGED_WORDS, TIMES, WHAT, RUN, ROUND, CODE, Q,
    STOPPED_LANE, LAG, WAITING, NEWEST, OLDEST, MOVED, TABLE,
) = range(48)  # fmt: skip
#: a part in its table. Addresses of counts, of positives and of keys (or of the sums of distances), with the bytes of a
#: run. The rounds it had before. The rounds added among those that are resolved only for one outcome.
COUNTS, ONES, KEYS, COUNTS_RUN, KEYS_RUN, BEFORE, ADDED, PART_WORDS = range(8)
#: a lane. The fields of both players. The addresses of the keys of the uniforms, for forecasts and for outcomes, and of
#: the rows of the history. Its run. Its question, the size of its law, the atom that was drawn. Rounds told. The last
#: uniforms. Then vectors.
THEIRS, FORECAST_KEYS = FIELDS, 2 * FIELDS
(
    OUTCOME_KEYS, TO_COUNTS, TO_ONES, TO_KEYS, OF_RUN, QUESTION, SIZE, PICK, TOLD, FORECAST_DRAWN,
) = range(FORECAST_KEYS + 1, FORECAST_KEYS + 11)  # fmt: skip
OUTCOME_DRAWN, VECTORS = FORECAST_DRAWN + 5, FORECAST_DRAWN + 10
#: a question that stays open: its number, the size of its law, the atom drawn, the outcome, q. Then vectors.
OF_NUMBER, OF_SIZE, OF_PICK, OF_OUTCOME, OF_Q, QUESTION_VECTORS = range(6)
#: what stopped a run
FINE, BAD_SIZE, BAD_LAW, BAD_PROBABILITY, BAD_LEARN, BAD_HEAR, BAD_REVEAL = range(7)


@kernel
def play_runs(table_of, lane_of, late) -> int:
    """Plays the events of a table in all its runs; what stopped the first run that was stopped, or `FINE`.

    It is compiled twice: without `late` each question is resolved before the next.

    The lane of run r at address a begins with ``lane_of[0] + r·lane_of[1] + a·lane_of[2]``.
    """
    table, first = address_of(table_of), address_of(lane_of)
    more, relative, r = first + 8 * VECTORS, first + 16 * VECTORS, int_at(table, FIRST_RUN)
    while r < int_at(table, LAST_RUN):
        playing = min(int_at(table, LANES), int_at(table, LAST_RUN) - r)
        for lane in range(playing):
            at = int_at(table, LANE) + 8 * int_at(table, LENGTH) * lane
            for i in range(VECTORS):
                put(at, i, int_at(first, i) + (r + lane) * int_at(more, i) + at * int_at(relative, i))
            _turn_to(at, table, 0)
            _write_to(at, int_at(table, PARTS))
        _play(table, playing, late)
        if int_at(table, WHAT) != FINE:
            return int_at(table, WHAT)
        r += int_at(table, LANES)
    return FINE


@part_of_kernel
def _turn_to(lane, table, slot):
    """Makes the open question at a place that of the lane."""
    row = int_at(lane, OF_RUN)
    if not int_at(table, OPEN_OWN):
        row = (lane - int_at(table, LANE)) // (8 * int_at(table, LENGTH))
    at = int_at(table, OPEN) + row * int_at(table, OPEN_RUN) + 8 * slot * int_at(table, OPEN_WORDS)
    put(lane, QUESTION, at)
    put(lane, CONTEXT, at + 8 * int_at(table, AT_CONTEXT))
    put(lane, MEMO, at + 8 * int_at(table, AT_MEMO))
    put(lane, ATOMS, at + 8 * int_at(table, AT_ATOMS))
    put(lane, VALUES, at + 8 * int_at(table, AT_VALUES))
    put(lane, WEIGHTS, at + 8 * int_at(table, AT_WEIGHTS))
    put(lane, THEIRS + MEMO, at + 8 * int_at(table, AT_THEIR_MEMO))


@part_of_kernel
def _write_to(lane, part):
    """Makes the history of a part that of the lane."""
    run = int_at(lane, OF_RUN)
    put(lane, TO_COUNTS, int_at(part, COUNTS) + run * int_at(part, COUNTS_RUN))
    put(lane, TO_ONES, int_at(part, ONES) + run * int_at(part, COUNTS_RUN))
    put(lane, TO_KEYS, int_at(part, KEYS) + run * int_at(part, KEYS_RUN) + 8 * int_at(part, BEFORE))


@part_of_kernel
def _play(table, playing, late):
    """Plays the events of a table in the lanes that have a run: late ones in one. The table gets why one stopped."""
    # Read once: whatever is written might be a part of the table, as far as the compiler knows.
    length, lanes, number = 8 * int_at(table, LENGTH), int_at(table, LANE), int_at(table, NUMBER)
    steps = (
        int_at(table, LAW), int_at(table, LEARN), int_at(table, MOVE), int_at(table, HEAR), int_at(table, REVEAL),
    )  # fmt: skip
    facts = (
        int_at(table, FORECAST_ALONE), int_at(table, SEEN), int_at(table, GATHER), int_at(table, TAKEN),
        int_at(table, GRID), int_at(table, POINTS), int_at(table, LOG), int_at(table, LOG_RUN),
        int_at(table, LOGGED_WORDS), int_at(table, TIMES), number, int_at(table, MOVED),
    )  # fmt: skip
    parts, first, last = int_at(table, PARTS), int_at(table, FIRST), int_at(table, LAST)
    put(table, WHAT, FINE)
    if late is None:
        for _ in range(first, last):
            number += 1
            # All laws first: while one waits for its own numbers, the next is worked on.
            lane = 0
            while lane < playing:
                what, code = _ask(lanes + length * lane, number, steps, facts)
                if what != FINE:
                    # The runs before it play on, as the first that stops is named.
                    playing = _stop(table, lane, lanes + length * lane, what, number, code, 0.0)
                lane += 1
            lane = 0
            while lane < playing:
                at = lanes + length * lane
                what, code = _draw(at, number, facts)
                q, y = 0.0, 0
                if what == FINE:
                    what, q, y = _choose(at, number, steps, facts)
                if what == FINE:
                    what, code = _tell(at, number, steps, facts, y, -1)
                if what != FINE:
                    playing = _stop(table, lane, at, what, number, code, q)
                lane += 1
    else:
        lag, events, rows, written = int_at(table, LAG), int_at(table, EVENTS), int_at(table, ROWS), 0
        open, new, old = int_at(table, WAITING), int_at(table, NEWEST), int_at(table, OLDEST)
        part, only, row = 0, 0, -1
        for e in range(first, last):
            if events != 0:
                code = int_at(events, e)
                kind, only, slot, part = code & 3, code >> ONLY & 3, code >> SLOT & 0xFFFFFFFF, code >> PART
            elif open > lag:
                kind, slot, open = RESOLVE, old, lag
                old = old + 1 if old < lag else 0
            else:
                kind, slot, open = ASK, new, open + 1
                new = new + 1 if new < lag else 0
            number += np.int64(kind != RESOLVE)
            if part != written:
                _write_to(lanes, parts + 8 * PART_WORDS * part)
                written = part
            _turn_to(lanes, table, slot)
            if only:
                put(rows, e, _row_if(lanes, parts + 8 * PART_WORDS * part, only >> 1))
            if rows != 0:
                row = int_at(rows, e)
            if only == 0 or row >= 0:
                what, code, q, of = _event(lanes, number, kind, row, steps, facts)
                if what != FINE:
                    _stop(table, 0, lanes, what, of, code, q)
                    break


@part_of_kernel
def _row_if(lane, part, outcome):
    """The next row of a part where the question of the lane has this outcome, or −1."""
    if int_at(int_at(lane, QUESTION), OF_OUTCOME) != outcome:
        return -1
    row = int_at(part, ADDED)
    put(part, ADDED, row + 1)
    return row


@part_of_kernel
def _event(lane, number, kind, row, steps, facts):
    """Plays an event of a list. What stopped the run, or `FINE`; the code of the step; q; which round."""
    question, what, code, q, y = int_at(lane, QUESTION), FINE, 0, 0.0, 0
    if kind == RESOLVE:
        number, y = int_at(question, OF_NUMBER), int_at(question, OF_OUTCOME)
        put(lane, SIZE, int_at(question, OF_SIZE))
        put(lane, PICK, int_at(question, OF_PICK))
        if steps[3] != 0:
            _hear_again(lane)
    else:
        what, code = _ask(lane, number, steps, facts)
        if what == FINE:
            what, code = _draw(lane, number, facts)
        if what == FINE and kind != LOOK:
            what, q, y = _choose(lane, number, steps, facts)
        if kind != BOTH:
            put(question, OF_NUMBER, number)
            put(question, OF_SIZE, int_at(lane, SIZE))
            put(question, OF_PICK, int_at(lane, PICK))
            put(question, OF_OUTCOME, y)
            put(question, OF_Q, q)
    if what == FINE and (kind != ASK and kind != LOOK):
        what, code = _tell(lane, number, steps, facts, y, row)
    return what, code, q, number


@part_of_kernel
def _stop(table, lane, at, what, number, code, q):
    """Notes what stopped a lane, which no lane after it plays on; the lane."""
    put(table, WHAT, what)
    put(table, RUN, int_at(at, OF_RUN))
    put(table, ROUND, number)
    put(table, CODE, code)
    put(table, STOPPED_LANE, lane)
    put(table, Q, q)
    return lane


@part_of_kernel
def _uniform(lane, keys, drawn, number):
    """The uniform of a lane for this round."""
    return next_uniform(words_at(int_at(lane, keys), 2), number - 1, floats_at(lane + 8 * drawn, 5))


@part_of_kernel
def _ask(lane, number, steps, facts):
    """Asks the run in this lane for its law. What stopped it, or `FINE`; the code of nature's step."""
    times, time = facts[9], float(number)
    if times != 0:
        time = float_at(times, number - facts[10] - 1)
    put(lane, FIELD_TIME, time)
    put(lane, THEIRS + FIELD_TIME, time)
    if facts[3] > 0:
        code = call_reveal(steps[4], (run_at(lane + 8 * THEIRS), number))
        if code < 0:
            return BAD_REVEAL, code
        # The forecaster's own kinds first, and behind them those that are kept.
        own, theirs = int_at(lane, CONTEXT), int_at(lane, THEIRS + CONTEXT)
        for i in range(facts[3]):
            put(own, i, float_at(theirs, int_at(facts[2], i)))
    if facts[0]:
        put(lane, ALONE, 1)
        put(lane, UNIFORM, _uniform(lane, FORECAST_KEYS, FORECAST_DRAWN, number))
    put(lane, SIZE, call_law(steps[0], (run_at(lane), number)))
    return FINE, 0


@part_of_kernel
def _draw(lane, number, facts):
    """Draws from the law of the run in this lane. What stopped it, or `FINE`; the size of its law."""
    grid, points, size = facts[4], facts[5], int_at(lane, SIZE)
    values, weights = int_at(lane, VALUES), int_at(lane, WEIGHTS)
    told, shares = int_at(lane, THEIRS + VALUES), int_at(lane, THEIRS + WEIGHTS)
    room = int_at(lane, THEIRS + VALUES + 1)
    if not 1 <= size <= int_at(lane, WEIGHTS + 1):
        return BAD_SIZE, size
    total, pick, u = 0.0, 0, 0.0
    if size > 1:
        u = _uniform(lane, FORECAST_KEYS, FORECAST_DRAWN, number)
    for j in range(size):
        w = float_at(weights, j)
        if points > 0:
            i = int_at(int_at(lane, ATOMS), j)
            if not (w >= 0.0 and 0 <= i < points):
                return BAD_LAW, size
            value = float_at(grid, i)
        else:
            value = float_at(values, j)
            if not (w >= 0.0 and 0.0 <= value <= 1.0):
                return BAD_LAW, size
            value += 0.0  # −0.0 becomes 0.0
        put(values, j, value)
        if w > 0.0:
            # The last atom with weight is the pick where rounding leaves the sum below u. Without a branch, since
            # which way it went could not be foreseen.
            pick += (j - pick) * np.int64(total <= u)
        total += w
        if j < room:
            put(told, j, value)
            put(shares, j, w)
    if not abs(total - 1.0) <= 1e-9:
        return BAD_LAW, size
    put(lane, PICK, pick)
    return FINE, size


@part_of_kernel
def _choose(lane, number, steps, facts):
    """Asks nature in this lane, and draws the outcome. What stopped it, or `FINE`; q; the outcome."""
    kind, seen, nature = facts[1], np.nan, lane + 8 * THEIRS
    if kind == SIDE:
        seen = float(int_at(lane, SIDE))
    elif kind:
        seen = float_at(int_at(lane, VALUES), int_at(lane, PICK))
    size = min(int_at(lane, SIZE), int_at(nature, VALUES + 1))
    q = call_move(steps[2], (run_at(nature), number, size, seen))
    y = np.int64(q == 1.0)
    if q != y:
        if not 0.0 <= q <= 1.0:
            return BAD_PROBABILITY, q, 0
        y = np.int64(_uniform(lane, OUTCOME_KEYS, OUTCOME_DRAWN, number) < q)
    return FINE, q, y


@part_of_kernel
def _hear_again(lane):
    """Gives nature the law of a question that was asked before others."""
    nature = lane + 8 * THEIRS
    for j in range(min(int_at(lane, SIZE), int_at(nature, VALUES + 1))):
        put(int_at(nature, VALUES), j, float_at(int_at(lane, VALUES), j))
        put(int_at(nature, WEIGHTS), j, float_at(int_at(lane, WEIGHTS), j))


@part_of_kernel
def _tell(lane, number, steps, facts, y, row):
    """Tells the history, the forecaster and nature a round. What stopped the run, or `FINE`; the code of the step.

    Its key is in this row of the part's, or (−1) in the next.
    """
    points, moved, told = facts[5], facts[11], int_at(lane, TOLD)
    size, pick = int_at(lane, SIZE), int_at(lane, PICK)
    forecast = float_at(int_at(lane, VALUES), pick)
    if points > 0:
        i, counts, ones = int_at(int_at(lane, ATOMS), pick), int_at(lane, TO_COUNTS), int_at(lane, TO_ONES)
        put(counts, i, int_at(counts, i) + 1)
        put(ones, i, int_at(ones, i) + y)
    elif moved > 0:
        counted, positives = int_at(lane, TO_COUNTS), int_at(lane, TO_ONES)
        move_to(
            forecast,
            y,
            ints_at(counted, moved),
            ints_at(positives, moved),
            floats_at(int_at(lane, TO_KEYS), 2),
        )
    else:
        # The bits of the value; the encoding of joint.encode.
        key = bits_of(forecast) << 1 | y
        put(int_at(lane, TO_KEYS), told if row < 0 else row, key)
    log, words = facts[6], facts[8]
    if log != 0:
        logged = log + int_at(lane, OF_RUN) * facts[7] + 8 * words * told
        put(logged, 0, forecast)
        put(logged, 1, float(y))
        for i in range(2, words):  # the last kinds of context
            put(logged, i, float_at(int_at(lane, CONTEXT), facts[3] - words + i))
    put(lane, TOLD, told + 1)
    code = call_learn(steps[1], (run_at(lane), number, size, pick, y))
    if code < 0:
        return BAD_LEARN, code
    if steps[3] != 0:
        nature = lane + 8 * THEIRS
        size = min(size, int_at(nature, VALUES + 1))
        code = call_hear(steps[3], (run_at(nature), number, size, forecast, y))
        if code < 0:
            return BAD_HEAR, code
    return FINE, 0
