"""Plays an object and the steps that are compiled from its class: they must not differ in a bit."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from numba import boolean, float64, int64, types

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.engine.loop import NOTHING, STEPS
from onlinecal.engine.play import Question
from onlinecal.engine.run import kept, law, note, pointer
from onlinecal.engine.seats import lay_alone, seat
from onlinecal.engine.steps import LEARN, MOVE, SAY
from onlinecal.engine.steps import compiled as compiled_step

#: rounds that are played both ways before a player begins
REHEARSED = 400
F1, F2 = float64[::1], float64[:, ::1]
GIVEN = (
    *map(types.FunctionType, (SAY, MOVE, LEARN)),
    boolean,
    F1,
    F2,
    int64[::1],
    int64[::1],
    F1,
    F1,
    F2,
    int64[::1],
)
NO_SAY, _, _, _, NO_MOVE, NO_HEAR, _ = zip(STEPS, NOTHING, strict=True)


def rehearse(role: str, strategy: Any, made: Any, thing: Any, state_of: Callable[[], Any]) -> None:
    """Plays an object, and a copy of the player made of its class; an error where they differ.

    `state_of` gives the state of the object as that of the player.
    """
    stated, done, error = _in_python(role, strategy, thing)
    again, as_far, state = _compiled(role, made)
    differs = next(
        (t for t in range((min(done, as_far) + 1) // 2) if repr(stated[t]) != repr(again[t])), None
    )
    if differs is not None:
        number, how = (
            differs + 1,
            f"states {_law(stated[differs])} in Python and {_law(again[differs])} compiled",
        )
    elif done != as_far:
        number, how = min(done, as_far) // 2 + 1, f"ends in Python alone, by {error!r}"
        if error is None or as_far < done:
            how = (
                "ends compiled alone, as at a whole number beyond 64 bits, or 53 where it may be a real one, or at a "
                "negative power of one"
            )
    elif error is None and state_of().tobytes() != state.tobytes():
        number, how = REHEARSED, "keeps other numbers compiled than in Python"
    else:
        return
    raise InvalidParameter(
        f"{type(thing).__name__}, round {number} of a rehearsal: it {how}; expected the same, bit for bit: play it "
        "without oc.compiled, or write it so that no rounding depends on it"
    )


def _law(said: Any) -> str:
    return repr(said[0][0] if len(said) == 1 and said[0][1] == 1.0 else dict(said))


@functools.cache
def _rounds() -> tuple[Any, ...]:
    """Constant outcomes and then random ones, which atom is drawn, forecasts with extreme ones, and context."""
    random, rounds = Random(0), range(REHEARSED)
    outcomes = [int(random.random() < (0.0, 1.0, 0.4)[3 * t // REHEARSED]) for t in rounds]
    ends = (0.0, 1.0, 0.5, 5e-324, 1 - 2**-53)
    picks = [random.randrange(2**20) for _ in rounds]
    forecasts = [random.choice(ends) if random.random() < 0.3 else random.random() for _ in rounds]
    return tuple(map(np.array, (outcomes, picks, forecasts)))


def _contexts(many: int) -> Any:
    """The context of each round."""
    return np.random.default_rng(0).random((REHEARSED, many))


def _in_python(role: str, strategy: Any, thing: Any) -> tuple[list[Any], int, Exception | None]:
    """Laws that an object states, how many of its methods ended, and its error."""
    sitting, stated, done = seat(role, strategy, thing), list[Any](), 0
    kinds = sorted(strategy.needs) if role == "forecaster" else []
    rounds = zip(*(each.tolist() for each in (*_rounds(), _contexts(len(kinds)))), strict=True)
    try:
        for t, (outcome, pick, drawn, context) in enumerate(rounds, 1):
            q = Question(t, float(t), outcome=outcome, forecast=drawn, law=[(drawn, 1.0)])
            q.context = dict(zip(kinds, context, strict=True))
            if role == "forecaster":
                stated.append(sitting.state_law(q))
                q.place = pick % len(stated[-1])
                q.forecast = stated[-1][q.place][0] + 0.0
            else:
                sitting.reveal(q)
                stated.append([(sitting.move(q), 1.0)])
            done += 1
            sitting.learn(q)
            done += 1
    except Exception as error:  # of any kind: the steps must come to an end there too
        return stated, done, error
    return stated, done, None


def _compiled(role: str, made: Any) -> tuple[list[Any], int, Any]:
    """Laws that the steps state, how many came to their ends, and the state behind them."""
    other, size = copy.copy(made), getattr(made, "size", 1)
    other.state, other.generators, other.laid = made.state[:1].copy(), made.generators[:1].copy(), False
    other.notes = np.zeros((1, 0))
    lay_alone(other, size)
    if role == "forecaster":
        steps = other.say, compiled_step(*NO_MOVE), other.learn
    else:
        steps = compiled_step(*NO_SAY), other.move, other.hear or compiled_step(*NO_HEAR)
    outcomes, picks, drawn = _rounds()
    seen = drawn if role == "nature" and made.sight >= Sight.DRAW else np.full(REHEARSED, np.nan)
    said, done = np.zeros((REHEARSED, 1 + 2 * size)), np.zeros(1, np.int64)
    notes = _contexts(other.note)
    with contextlib.suppress(Exception):  # `done` says where, and it is compared with the object's
        _play()(*steps, role == "forecaster", other.rows[0], notes, outcomes, picks, drawn, seen, said, done)
    laws = [
        list(zip(row[1 : 1 + int(row[0])], row[1 + size : 1 + size + int(row[0])], strict=True))
        for row in said.tolist()
    ]
    return laws, int(done[0]), other.state[0]


@functools.cache
def _play() -> Any:
    return kept(_played, types.void(*GIVEN))


def _played(
    say: Any, move: Any, learn: Any, forecasts: Any, row: Any, notes: Any, outcomes: Any, picks: Any, drawn: Any,
    seen: Any, said: Any, done: Any,
) -> None:  # fmt: skip
    """Plays a player, and writes down its laws and how many steps came to their ends."""
    run, most = pointer(row.ctypes), said.shape[1] // 2
    for t in range(len(said)):
        size, place, forecast = 1, -1, drawn[t]
        for i in range(notes.shape[1]):
            note(run)[i] = notes[t, i]
        if forecasts:
            size = say(run, t + 1)
            values, weights = law(run)
            for j in range(size):
                said[t, 1 + j], said[t, 1 + most + j] = values[j], weights[j]
            place = picks[t] % size
            forecast = values[place] + 0.0
        else:
            said[t, 1], said[t, 2] = move(run, 0, seen[t], t + 1), 1.0
        said[t, 0] = size
        done[0] += 1
        learn(run, place, forecast, outcomes[t], t + 1)
        done[0] += 1
