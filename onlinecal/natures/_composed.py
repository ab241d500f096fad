"""Compositions of natures as steps; `composed` and `streams` have their rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinecal.core._compile import part_of_kernel
from onlinecal.core.guarantee import Sight
from onlinecal.core.streams import Stream
from onlinecal.rounds.parts import Whole, first_above, reserve_parts
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.steps import (
    ATOMS,
    CONTEXT,
    FIELDS,
    MEMO,
    SCRATCH,
    TIME,
    VALUES,
    WEIGHTS,
    cached_uniform,
    call_hear,
    call_move,
    call_reveal,
    context,
    floats,
    hear,
    ints,
    memo,
    move,
    reveal,
    run_of,
    shared,
    shared_ints,
)

#: the whole's shared numbers of a part: its three steps, 0 where it has none; whether it sees laws, and draws; where
#: its room, its memo and the list of its kinds of context begin
FIRST, HEARS, REVEALS, SEES_LAW, SEES_DRAW, ROOM_AT, MEMO_AT, LISTED, PART = range(9)


class Parts(Whole):
    """The memory of a nature with parts that are made of steps; `one_at_a_time`: a round is of one part, and they share
    room and memo. The kinds of context, in the order of their names, are those that all parts reveal.
    """

    def __init__(
        self,
        players: Sequence[Any],
        *,
        kinds: Sequence[str] = (),
        one_at_a_time: bool = False,
        floats: Any = 0,
        shared: Any = (),
        context: int = 0,
        memo: int = 0,
        stream: Stream | None = None,
    ) -> None:
        rooms = [player.memory.context + len(player.memory.room) for player in players]
        memos = [player.memory.memo for player in players]
        join = max if one_at_a_time else sum
        listed = [[player.reveals.index(kind) for kind in kinds] for player in players]
        super().__init__(
            players,
            PART,
            listed,
            floats=floats,
            shared=shared,
            scratch=join(rooms),
            context=len(kinds) + context,
            memo=memo + join(memos),
            stream=stream,
        )
        before = [(0, 0) if one_at_a_time else (sum(rooms[:k]), sum(memos[:k])) for k in range(len(players))]
        self.starts = [(room, memo + own) for room, own in before]

    def described(self, k: int, listed: int) -> tuple[int, list[Any]]:
        """As `Whole` says; the law is the whole's, as far as the part may see it."""
        player = self.players[k]
        steps = [0 if step is None else step.address for step in player.steps]
        sees = player.sight >= Sight.LAW, player.sight >= Sight.DRAW
        return 0, [*steps, *sees, *self.starts[k], listed]


def _whole(move: Any, memory: Parts, hear: Any, **options: Any) -> CompiledNature:
    players = memory.players
    # All parts hear the same forecasts.
    growing = {player.grows_with for player in players if player.grows}
    return CompiledNature(
        move,
        memory,
        hear=hear if any(player.steps[1] is not None for player in players) else None,
        reserve=reserve_parts if growing else None,
        grows_with="levels" if growing == {"levels"} else "rounds",
        **options,
    )


@part_of_kernel
def _part(run, k):
    """Part k of a run, as its steps take it."""
    row, fields = shared_ints(run)[k * PART : (k + 1) * PART], ints(run)[k * FIELDS : (k + 1) * FIELDS]
    fields[CONTEXT], fields[MEMO] = run[SCRATCH] + 8 * row[ROOM_AT], run[MEMO] + 8 * row[MEMO_AT]
    fields[SCRATCH] = fields[CONTEXT] + 8 * fields[CONTEXT + 1]
    for place in (VALUES, WEIGHTS):
        fields[place], fields[place + 1] = run[place], run[place + 1] * row[SEES_LAW]
    fields[ATOMS + 1], fields[TIME] = 0, run[TIME]
    return run_of(fields)


@part_of_kernel
def _move_part(run, k, number, size, forecast):
    """q of part k, from what it may see."""
    row = shared_ints(run)[k * PART : (k + 1) * PART]
    return call_move(
        row[FIRST], (_part(run, k), number, size * row[SEES_LAW], forecast if row[SEES_DRAW] != 0 else np.nan)
    )


@part_of_kernel
def _tell_part(run, k, number, size, forecast, outcome):
    """Tells part k the round, if it is to hear of any; the code of its step."""
    row = shared_ints(run)[k * PART : (k + 1) * PART]
    if row[HEARS] == 0:
        return 0
    return call_hear(row[HEARS], (_part(run, k), number, size * row[SEES_LAW], forecast, outcome))


@part_of_kernel
def _reveal_part(run, k, number, own):
    """Has part k reveal what the whole does, but for the kind at place `own`; the code of its step."""
    row, part = shared_ints(run)[k * PART : (k + 1) * PART], _part(run, k)
    code = call_reveal(row[REVEALS], (part, number))
    for i in range(len(context(run))):
        if i != own:
            context(run)[i] = context(part)[shared_ints(run)[row[LISTED] + i - (i > own)]]
    return code


# ---------------------------------------------------------------- all at once


def mixture(players: Sequence[Any], weights: Sequence[float], sight: Sight) -> CompiledNature:
    """q is the mean of those of the parts, with these weights."""
    return _whole(_mix, Parts(players, shared=weights), _tell_all, sight=sight)


@move
def _mix(run, number, size, forecast):
    q = 0.0
    for k in range(len(shared(run))):
        own = _move_part(run, k, number, size, forecast)
        if not 0.0 <= own <= 1.0:
            return own  # weighed, it could hide among the others
        # Only rounding could bring the sum above 1.
        q = min(q + shared(run)[k] * own, 1.0)
    return q


@hear
def _tell_all(run, number, size, forecast, outcome):
    for k in range(len(shared(run))):
        code = _tell_part(run, k, number, size, forecast, outcome)
        if code < 0:
            return code
    return 0


# ---------------------------------------------------------------- one after the other


def switch(players: Sequence[Any], at: int, sight: Sight, kinds: Sequence[str]) -> CompiledNature:
    """The first player plays `at` rounds, and the second all others, which it counts from 1."""
    memory = Parts(players, kinds=kinds, shared=[at])
    return _whole(
        _move_now, memory, _tell_now, sight=sight, reveals=kinds, reveal=_reveal_now if kinds else None
    )


@part_of_kernel
def _now(run, number):
    """The part that plays a round, and the rounds before its first."""
    at = np.int64(shared(run)[0])
    return (0, 0) if number <= at else (1, at)


@move
def _move_now(run, number, size, forecast):
    k, before = _now(run, number)
    return _move_part(run, k, number - before, size, forecast)


@hear
def _tell_now(run, number, size, forecast, outcome):
    k, before = _now(run, number)
    return _tell_part(run, k, number - before, size, forecast, outcome)


@reveal
def _reveal_now(run, number):
    k, before = _now(run, number)
    return _reveal_part(run, k, number - before, len(context(run)))


# ---------------------------------------------------------------- each its own questions

#: the state of `streams` at random: the round asked last, and its part; then the rounds of each part, and the uniforms
#: that are drawn together
ASKED, LAST_WHOSE, COUNTS = range(3)
#: its memo: the part, and its number of the round
WHOSE, OWN, STREAM_MEMO = range(3)


def streams(
    players: Sequence[Any],
    kinds: Sequence[str],
    sight: Sight,
    streams_of: Any,
    below: Sequence[float] = (),
    stream: Stream | None = None,
) -> CompiledNature:
    """Each round is one part's: by turns, or drawn by sums of weights; "stream" is among `kinds`."""
    memory = Parts(
        players, kinds=[kind for kind in kinds if kind != "stream"], one_at_a_time=True, context=1,
        memo=STREAM_MEMO, floats=[0.0] * (COUNTS + len(below)) + [-1.0] + [0.0] * 4,
        shared=[kinds.index("stream"), *below], stream=stream,
    )  # fmt: skip
    return _whole(
        _move_stream,
        memory,
        _tell_stream,
        sight=sight,
        reveals=kinds,
        reveal=_reveal_stream,
        streams_of=streams_of,
    )


@part_of_kernel
def _whose(run, number):
    """The part that plays a round, and its number of it; −1 for a round before the one that was asked last."""
    below, parts = shared(run)[1:], len(ints(run)) // FIELDS
    if len(below) == 0:
        return (number - 1) % parts, (number - 1) // parts + 1
    state, counts, cache = floats(run), floats(run)[COUNTS:], floats(run)[COUNTS + parts :]
    while state[ASKED] < number:
        k = first_above(below, cached_uniform(run, int(state[ASKED]), cache))
        state[ASKED] += 1
        state[LAST_WHOSE] = k
        counts[k] += 1
    k = int(state[LAST_WHOSE])
    return k if state[ASKED] == number else -1, int(counts[k])


@move
def _move_stream(run, number, size, forecast):
    k, own = _whose(run, number)
    if k < 0:
        return -1.0
    memo(run)[WHOSE], memo(run)[OWN] = k, own
    return _move_part(run, k, own, size, forecast)


@hear
def _tell_stream(run, number, size, forecast, outcome):
    return _tell_part(run, int(memo(run)[WHOSE]), int(memo(run)[OWN]), size, forecast, outcome)


@reveal
def _reveal_stream(run, number):
    k, own = _whose(run, number)
    at, code = int(shared(run)[0]), min(k, 0)
    if k >= 0 and len(context(run)) > 1:
        code = _reveal_part(run, k, own, at)
    context(run)[at] = k
    return code
