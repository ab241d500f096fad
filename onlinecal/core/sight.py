"""The sight of an adversary: a part of every theorem, declared by natures and named by guarantees."""

from enum import IntEnum


class Sight(IntEnum):
    """The sight of a nature before it chooses q_t; each level includes those before it."""

    #: nothing: it is oblivious
    NOTHING = 0
    #: the forecasts and outcomes of past rounds
    HISTORY = 1
    #: also this round's law: an adversary that knows the algorithm
    LAW = 2
    #: also the forecast drawn from it
    DRAW = 3
