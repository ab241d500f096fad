"""The memory that a game takes, before it is solved."""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.memory import GIB, free_memory
from onlinecal.core.validation import count
from onlinecal.exact.alphabets import Alphabet
from onlinecal.exact.words import how_many

Floats = NDArray[np.float64]

#: layers that are counted: all of a game that has no more
LOOKED_AT = 128

#: rounds of games with states that are counted at once
COUNTED = 60

#: bytes of a state's value
VALUE = 8.0

#: bytes of layers that are kept beside the two that the programme needs
KEPT = 1 << 26


def threads_here() -> int:
    """Processors for this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_of(given: int | None) -> int:
    """The number of threads; by default `threads_here`."""
    return threads_here() if given is None else count("threads", given)


def memory_there() -> float:
    """Bytes that this process may take now, as far as the system tells."""
    free = free_memory()
    return free if free < math.inf else 8e9  # of a machine that does not say


def _layers(alphabet: Alphabet, horizon: int) -> tuple[Floats, Floats]:
    """Numbers of rounds left, all or some of them, and the number of states for each."""
    lefts = np.unique(np.linspace(0, horizon, min(horizon + 1, LOOKED_AT)).astype(int))
    return lefts, np.array([how_many(alphabet, left, horizon - left) for left in lefts.tolist()])


def all_states(alphabet: Alphabet, horizon: int) -> float:
    """The number of states with 1 round left or more; interpolated for long games."""
    lefts, states = _layers(alphabet, horizon)
    return float(np.interp(np.arange(1, horizon + 1), lefts, states).sum())


def needed(alphabet: Alphabet, horizon: int, keep: bool, room: float = math.inf) -> float:
    """Bytes for a game, interpolated for long ones; counting stops above `room`."""
    tables = KEPT + alphabet.tables()
    if tables > room:
        return tables
    layers = 2.0 * math.sqrt(horizon) + 2.0 if keep else 2.0
    return tables + float(_layers(alphabet, horizon)[1].max()) * layers * VALUE


def check_memory(alphabet: Alphabet, horizon: int, measure: str, keep: bool) -> None:
    """Refuse a game that memory has no room for."""
    room = memory_there()

    def wanted(length: int) -> float:
        return needed(alphabet.shorter(length), length, keep, room)

    # Of a game that is far too long the states are not even counted: a shorter one does not fit.
    low, high = 0, min(horizon, COUNTED)
    while (least := wanted(high)) <= room:
        if high == horizon:
            return
        low, high = high, min(2 * high, horizon)
    needs = f"{'' if high == horizon else 'more than '}{size_text(least)}"
    while high - low > 1:
        middle = (low + high) // 2
        if wanted(middle) <= room:
            low = middle
        else:
            high = middle
    longest = f"the largest T that fits is {low}" if low else "none of this grid fits"
    said = f"m = {alphabet.m}, T = {horizon}: the game of {measure} needs {needs}"
    raise InvalidParameter(f"{said}, and there are {size_text(room)}; {longest}")


def size_text(number: float) -> str:
    """A number of bytes in words."""
    size = number / GIB
    return f"{size:,.1f} GiB" if size < 1e6 else f"{size:.1e} GiB"
