"""The compiled round: it draws, asks players that are made of steps, and writes the history down.

A run that is played has a lane: words of memory. They hold what both players reach by their `run`, and the addresses
of the open question's numbers. A table says the rest, so that one call with one array plays any number of events.
"""

from __future__ import annotations

import numpy as np

from onlinecal.core._compile import index, kernel, part_of_kernel
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
from onlinecal.rounds.steps import TIME as FIELD_TIME

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
def play_runs(table, lane_of, late):
    """Plays the events of a table in all its runs; what stopped the first run that was stopped, or `FINE`.

    It is compiled twice: without `late` each question is resolved before the next.

    The lane of run r at address a begins with ``lane_of[0] + r·lane_of[1] + a·lane_of[2]``.
    """
    for r in range(table[FIRST_RUN], table[LAST_RUN], table[LANES]):
        playing = min(table[LANES], table[LAST_RUN] - r)
        for lane in range(playing):
            at = table[LANE] + 8 * table[LENGTH] * lane
            own = ints_at(at, VECTORS)
            for i in range(VECTORS):
                own[i] = lane_of[0, i] + (r + lane) * lane_of[1, i] + at * lane_of[2, i]
            _turn_to(at, table, 0)
            _write_to(at, table[PARTS])
        _play(table, playing, late)
        if table[WHAT] != FINE:
            return table[WHAT]
    return FINE


@part_of_kernel
def _turn_to(lane, table, slot):
    """Makes the open question at a place that of the lane."""
    own = ints_at(lane, VECTORS)
    row = own[OF_RUN] if table[OPEN_OWN] else (lane - table[LANE]) // (8 * table[LENGTH])
    at = table[OPEN] + row * table[OPEN_RUN] + 8 * slot * table[OPEN_WORDS]
    own[QUESTION] = at
    own[CONTEXT], own[MEMO] = at + 8 * table[AT_CONTEXT], at + 8 * table[AT_MEMO]
    own[ATOMS], own[VALUES] = at + 8 * table[AT_ATOMS], at + 8 * table[AT_VALUES]
    own[WEIGHTS] = at + 8 * table[AT_WEIGHTS]
    own[THEIRS + MEMO] = at + 8 * table[AT_THEIR_MEMO]


@part_of_kernel
def _write_to(lane, part):
    """Makes the history of a part that of the lane."""
    own, part = ints_at(lane, VECTORS), ints_at(part, PART_WORDS)
    shift = own[OF_RUN] * part[COUNTS_RUN]
    own[TO_COUNTS], own[TO_ONES] = part[COUNTS] + shift, part[ONES] + shift
    own[TO_KEYS] = part[KEYS] + own[OF_RUN] * part[KEYS_RUN] + 8 * part[BEFORE]


@part_of_kernel
def _play(table, playing, late):
    """Plays the events of a table in the lanes that have a run. The table gets the reason that stopped one."""
    # Read once: whatever is written might be a part of the table, as far as the compiler knows.
    length, lanes, number = 8 * table[LENGTH], table[LANE], table[NUMBER]
    steps = table[LAW], table[LEARN], table[MOVE], table[HEAR], table[REVEAL]
    facts = (
        table[FORECAST_ALONE], table[SEEN], table[GATHER], table[TAKEN], table[GRID], table[POINTS], table[LOG],
        table[LOG_RUN], table[LOGGED_WORDS], table[TIMES], number, table[MOVED],
    )  # fmt: skip
    parts, first, last = table[PARTS], table[FIRST], table[LAST]
    table[WHAT] = FINE
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
        listed, lag = table[EVENTS] != 0, table[LAG]
        events, rows, written = ints_at(table[EVENTS], last), ints_at(table[ROWS], last), 0
        open, new, old = table[WAITING], table[NEWEST], table[OLDEST]
        several, part, only = table[ROWS] != 0, 0, 0
        for e in range(first, last):
            if listed:
                kind, slot, part = events[e] & 3, events[e] >> SLOT & 0xFFFFFFFF, events[e] >> PART
                only = events[e] >> ONLY & 3
            elif open > lag:
                kind, slot, open = RESOLVE, old, lag
                old = old + 1 if old < lag else 0
            else:
                kind, slot, open = ASK, new, open + 1
                new = new + 1 if new < lag else 0
            number += np.int64(kind != RESOLVE)
            lane = 0
            while lane < playing:
                at = lanes + length * lane
                if part != written:
                    _write_to(at, parts + 8 * PART_WORDS * part)
                _turn_to(at, table, slot)
                if only:
                    rows[e] = _row_if(at, parts + 8 * PART_WORDS * part, only >> 1)
                    if rows[e] < 0:
                        break  # only a single run is played so
                what, code, q, of = _event(at, number, kind, rows[e] if several else -1, steps, facts)
                if what != FINE:
                    playing = _stop(table, lane, at, what, of, code, q)
                lane += 1
            written = part


@part_of_kernel
def _row_if(lane, part, outcome):
    """The next row of a part where the question of the lane has this outcome, or −1."""
    question = ints_at(ints_at(lane, VECTORS)[QUESTION], QUESTION_VECTORS)
    if question[OF_OUTCOME] != outcome:
        return -1
    ints_at(part, PART_WORDS)[ADDED] += 1
    return ints_at(part, PART_WORDS)[ADDED] - 1


@part_of_kernel
def _event(lane, number, kind, row, steps, facts):
    """Plays an event of a list. What stopped the run, or `FINE`; the code of the step; q; which round."""
    own = ints_at(lane, VECTORS)
    question = ints_at(own[QUESTION], QUESTION_VECTORS)
    what, code, q, y = FINE, 0, 0.0, 0
    if kind == RESOLVE:
        number, own[SIZE], own[PICK], y = (
            question[OF_NUMBER],
            question[OF_SIZE],
            question[OF_PICK],
            question[OF_OUTCOME],
        )
        if steps[3] != 0:
            _hear_again(lane)
    else:
        what, code = _ask(lane, number, steps, facts)
        if what == FINE:
            what, code = _draw(lane, number, facts)
        if what == FINE and kind != LOOK:
            what, q, y = _choose(lane, number, steps, facts)
        if kind != BOTH:
            question[OF_NUMBER], question[OF_SIZE] = number, own[SIZE]
            question[OF_PICK], question[OF_OUTCOME] = own[PICK], y
            floats_at(own[QUESTION], QUESTION_VECTORS)[OF_Q] = q
    if what == FINE and (kind != ASK and kind != LOOK):
        what, code = _tell(lane, number, steps, facts, y, row)
    return what, code, q, number


@part_of_kernel
def _stop(table, lane, at, what, number, code, q):
    """Notes what stopped a lane, which no lane after it plays on; the lane."""
    table[WHAT], table[RUN], table[ROUND], table[CODE] = what, ints_at(at, VECTORS)[OF_RUN], number, code
    table[STOPPED_LANE] = lane
    floats_at(address_of(table), TABLE)[Q] = q
    return lane


@part_of_kernel
def _uniform(lane, keys, drawn, number):
    """The uniform of a lane for this round."""
    return next_uniform(words_at(ints_at(lane, VECTORS)[keys], 2), number - 1, floats_at(lane + 8 * drawn, 5))


@part_of_kernel
def _ask(lane, number, steps, facts):
    """Asks the run in this lane for its law. What stopped it, or `FINE`; the code of nature's step."""
    law, _, _, _, reveal = steps
    alone, _, gather, taken, _, _, _, _, _, times, before, _ = facts
    own = ints_at(lane, VECTORS)
    run, nature = run_of(own), run_of(ints_at(lane + 8 * THEIRS, FIELDS))
    at = float(number) if times == 0 else floats_at(times, number - before)[number - before - 1]
    floats_at(lane, VECTORS)[FIELD_TIME] = at
    floats_at(lane, VECTORS)[THEIRS + FIELD_TIME] = at
    if taken > 0:
        code = call_reveal(reveal, (nature, number))
        if code < 0:
            return BAD_REVEAL, code
        # The forecaster's own kinds first, and behind them those that are kept.
        for i in range(taken):
            floats_at(own[CONTEXT], taken)[i] = context(nature)[ints_at(gather, taken)[i]]
    if alone:
        own[ALONE] = 1
        floats_at(lane, VECTORS)[UNIFORM] = _uniform(lane, FORECAST_KEYS, FORECAST_DRAWN, number)
    own[SIZE] = call_law(law, (run, number))
    return FINE, 0


@part_of_kernel
def _draw(lane, number, facts):
    """Draws from the law of the run in this lane. What stopped it, or `FINE`; the size of its law."""
    grid_at, points = facts[4], facts[5]
    own = ints_at(lane, VECTORS)
    run, nature = run_of(own), run_of(ints_at(lane + 8 * THEIRS, FIELDS))
    atoms, values, weights = law_atoms(run), law_values(run), law_weights(run)
    told, shares, room = law_values(nature), law_weights(nature), len(law_values(nature))
    grid = floats_at(grid_at, points)
    size = own[SIZE]
    if not 1 <= size <= len(weights):
        return BAD_SIZE, size
    total, pick, u = 0.0, 0, 0.0
    if size > 1:
        u = _uniform(lane, FORECAST_KEYS, FORECAST_DRAWN, number)
    for j in range(size):
        w = weights[j]
        if points > 0:
            i = atoms[j]
            if not (w >= 0.0 and 0 <= i < points):
                return BAD_LAW, size
            values[j] = grid[i]
        else:
            if not (w >= 0.0 and 0.0 <= values[j] <= 1.0):
                return BAD_LAW, size
            values[j] += 0.0  # −0.0 becomes 0.0
        if w > 0.0:
            # The last atom with weight is the pick where rounding leaves the sum below u. Without a branch, since
            # which way it went could not be foreseen.
            pick += (j - pick) * np.int64(total <= u)
        total += w
        if j < room:
            told[j], shares[j] = values[j], w
    if not abs(total - 1.0) <= 1e-9:
        return BAD_LAW, size
    own[PICK] = pick
    return FINE, size


@part_of_kernel
def _choose(lane, number, steps, facts):
    """Asks nature in this lane, and draws the outcome. What stopped it, or `FINE`; q; the outcome."""
    move, kind, own, seen = steps[2], facts[1], ints_at(lane, VECTORS), np.nan
    nature = run_of(ints_at(lane + 8 * THEIRS, FIELDS))
    if kind == SIDE:
        seen = float(own[SIDE])
    elif kind:
        seen = law_values(run_of(own))[index(own[PICK])]
    q = call_move(move, (nature, number, min(own[SIZE], len(law_values(nature))), seen))
    y = np.int64(q == 1.0)
    if q != y:
        if not 0.0 <= q <= 1.0:
            return BAD_PROBABILITY, q, 0
        y = np.int64(_uniform(lane, OUTCOME_KEYS, OUTCOME_DRAWN, number) < q)
    return FINE, q, y


@part_of_kernel
def _hear_again(lane):
    """Gives nature the law of a question that was asked before others."""
    own = ints_at(lane, VECTORS)
    run, nature = run_of(own), run_of(ints_at(lane + 8 * THEIRS, FIELDS))
    for j in range(min(own[SIZE], len(law_values(nature)))):
        law_values(nature)[j], law_weights(nature)[j] = law_values(run)[j], law_weights(run)[j]


@part_of_kernel
def _tell(lane, number, steps, facts, y, row):
    """Tells the history, the forecaster and nature a round. What stopped the run, or `FINE`; the code of the step.

    Its key is in this row of the part's, or (−1) in the next.
    """
    _, learn, _, hear, _ = steps
    own, points = ints_at(lane, VECTORS), facts[5]
    run, nature = run_of(own), run_of(ints_at(lane + 8 * THEIRS, FIELDS))
    size, pick = own[SIZE], own[PICK]
    forecast = law_values(run)[index(pick)]
    if points > 0:
        i = index(law_atoms(run)[index(pick)])
        ints_at(own[TO_COUNTS], points)[i] += 1
        ints_at(own[TO_ONES], points)[i] += y
    elif facts[11] > 0:
        sums, points = floats_at(own[TO_KEYS], 2), facts[11]
        move_to(forecast, y, ints_at(own[TO_COUNTS], points), ints_at(own[TO_ONES], points), sums)
    else:
        # The bits of the value; the encoding of joint.encode.
        at = own[TOLD] if row < 0 else row
        ints_at(own[TO_KEYS] + 8 * at, 1)[0] = np.float64(forecast).view(np.int64) << 1 | y
    log, log_run, words = facts[6], facts[7], facts[8]
    if log != 0:
        logged = floats_at(log + own[OF_RUN] * log_run + 8 * words * own[TOLD], words)
        logged[0], logged[1] = forecast, y
        for i in range(2, words):  # the last kinds of context
            logged[i] = floats_at(own[CONTEXT], facts[3])[facts[3] - words + i]
    own[TOLD] += 1
    code = call_learn(learn, (run, number, size, pick, y))
    if code < 0:
        return BAD_LEARN, code
    if hear != 0:
        code = call_hear(hear, (nature, number, min(size, len(law_values(nature))), forecast, y))
        if code < 0:
            return BAD_HEAR, code
    return FINE, 0
