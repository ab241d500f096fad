"""Natures that are a rule with numbers in it, among which `onlinecal.search` looks for the worst."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import check_number, check_probability
from onlinecal.core.streams import Stream
from onlinecal.natures._levels import ROOM, ends, enter, find, level_table, make_room
from onlinecal.natures.base import Nature, Sight
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.steps import floats, hear, ints, law_values, law_weights, move, shared


@dataclass(frozen=True)
class LogisticPolicy(Nature):
    r"""States a logistic function of the pair of forecasts that a law mixes, and of what became of both.

    With the lowest forecast a of the law and the highest b, played n_a and n_b times with the biases E_a and E_b (E_v =
    Σ (y − v)), the share s of a in the law, z_a = E_a/√(n_a + 1), z_b = −E_b/√(n_b + 1) and d = 1/2 − (a + b)/2,
    q = 1/(1 + exp(−8x)) with

    x = w_0 + w_1 z_a + w_2 z_b + w_3 d + w_4 d√(n_a + 1) + w_5 (s − 1/2) + w_6 sign(d) + w_7 d√(n_b + 1).

    (sign(0) = −1.)

    Parameters
    ----------
    weights : sequence of float
        w_0, …, w_7, in [−1000, 1000]. The default was found by a random search against the CDL minimiser.

    Information
    -----------
    Sees LAW. O(size of the law) time a round; 40 to 80 bytes a level.

    Source
    ------
    This package.
    """

    version: ClassVar[int] = 2

    weights: tuple[float, ...] = (0.244, -0.025, -0.058, 0.118, 0.036, 0.081, -0.041, 0.599)
    sight = Sight.LAW
    needs_horizon, safe_under_delay, memory = False, True, "O(t)"
    unit_bytes: ClassVar[float] = 96.0

    def __post_init__(self) -> None:
        weights = self.weights
        if not isinstance(weights, Sequence) or isinstance(weights, str) or len(weights) != 8:
            raise InvalidParameter(f"weights = {weights!r}; expected 8 numbers")
        for i, weight in enumerate(weights):
            check_number(f"weights[{i}]", weight, -1000.0, 1000.0)
        object.__setattr__(self, "weights", tuple(float(weight) for weight in weights))

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        memory = level_table(columns=2, shared=list(self.weights))
        return CompiledNature(
            _weigh, memory, sight=self.sight, hear=_note, reserve=make_room, grows_with="levels"
        )


@move
def _weigh(run, number, size, forecast):
    """The state: counts, and biases, of the levels."""
    numbers, room, w, values = floats(run), ints(run)[ROOM], shared(run), law_values(run)
    lowest, highest = ends(run, size)
    low, high = find(run, lowest), find(run, highest)
    root_a, root_b = math.sqrt(numbers[low] + 1.0), math.sqrt(numbers[high] + 1.0)
    d, share = 0.5 - 0.5 * (values[lowest] + values[highest]), 0.0
    for j in range(size):
        # A value may be that of several atoms.
        share += law_weights(run)[j] if values[j] == values[lowest] else 0.0
    x = (
        w[0]
        + w[1] * numbers[room + low] / root_a
        - w[2] * numbers[room + high] / root_b
        + w[3] * d
        + w[4] * d * root_a
        + w[5] * (share - 0.5)
        + w[6] * (1.0 if d > 0.0 else -1.0)
        + w[7] * d * root_b
    )
    return 1.0 / (1.0 + math.exp(-min(max(8.0 * x, -700.0), 700.0)))


@hear
def _note(run, number, size, forecast, outcome):
    at = enter(run, forecast)
    numbers, room = floats(run), ints(run)[ROOM]
    numbers[at] += 1.0
    numbers[room + at] += outcome - forecast
    return 0


@dataclass(frozen=True)
class Ratchet(Nature):
    r"""Drives the bias of each level up to a threshold, then down to another, then up again.

    Of a law above the kink c it looks at the highest forecast v. With n rounds at v so far and their bias E = Σ (y −
    v), y = 1 until E/√(n + 1) ≥ `low` + `width`, then y = 0 until E/√(n + 1) ≤ `low`, then y = 1 again, and so on.
    Below the kink it looks at the lowest forecast, with 0 and 1 exchanged and −E in place of E. (Above or below is the
    middle between the two; at c itself it tosses a fair coin.) With `width` = 0 it is a threshold.

    Parameters
    ----------
    kink : float, default 0.5
        c, in [0, 1].
    low : float, default −1
        In [−1000, 1000].
    width : float, default 0.5
        In [0, 1000].

    Information
    -----------
    Sees LAW. O(size of the law) time a round; 48 to 96 bytes a level. Deterministic but for the coin.

    Source
    ------
    This package.
    """

    kink: float = 0.5
    low: float = -1.0
    width: float = 0.5
    sight = Sight.LAW
    needs_horizon, safe_under_delay, memory = False, True, "O(t)"
    unit_bytes: ClassVar[float] = 128.0

    def __post_init__(self) -> None:
        check_probability("kink", self.kink)
        check_number("low", self.low, -1000.0, 1000.0)
        check_number("width", self.width, 0.0, 1000.0)

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        given = [float(self.kink), float(self.low), float(self.low) + float(self.width)]
        memory = level_table(columns=3, shared=given)
        return CompiledNature(
            _push, memory, sight=self.sight, hear=_turn, reserve=make_room, grows_with="levels"
        )


@kernel
def _side(run, lowest, highest):
    """1 where the law is above the kink, −1 where it is below; 0 at the kink."""
    values = law_values(run)
    middle = 0.5 * (values[lowest] + values[highest])
    return 1.0 if middle > shared(run)[0] else -1.0 if middle < shared(run)[0] else 0.0


@move
def _push(run, number, size, forecast):
    """The state: counts, biases, and whether the bias is on its way down (1) or up (0), of the levels."""
    lowest, highest = ends(run, size)
    side = _side(run, lowest, highest)
    if side == 0.0:
        return 0.5
    at = find(run, highest if side > 0.0 else lowest)
    return 1.0 if _rises(run, at) == (side > 0.0) else 0.0


@kernel
def _rises(run, at):
    """Whether the bias of a level is on its way up: a new one may stand above the threshold already."""
    numbers, room = floats(run), ints(run)[ROOM]
    return numbers[2 * room + at] == 0.0 if numbers[at] > 0.0 else shared(run)[2] > 0.0


@hear
def _turn(run, number, size, forecast, outcome):
    at = enter(run, forecast)
    numbers, room = floats(run), ints(run)[ROOM]
    lowest, highest = ends(run, size)
    side = _side(run, lowest, highest)
    numbers[2 * room + at] = 0.0 if _rises(run, at) else 1.0
    numbers[at] += 1.0
    numbers[room + at] += outcome - forecast
    scaled = side * numbers[room + at] / math.sqrt(numbers[at] + 1.0)
    if side != 0.0:
        if numbers[2 * room + at] == 0.0 and scaled >= shared(run)[2]:
            numbers[2 * room + at] = 1.0
        elif numbers[2 * room + at] == 1.0 and scaled <= shared(run)[1]:
            numbers[2 * room + at] = 0.0
    return 0
