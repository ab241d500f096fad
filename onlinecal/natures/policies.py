"""Natures that look at the ends of a law, and at the past of these levels.

`onlinecal.exploit.search` looks for the worst numbers of `LogisticPolicy` and `Ratchet`.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from onlinecal.core.guarantee import Sight
from onlinecal.core.specification import UNIT, allow, number, optional, several, whole
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, law, note, shared, state
from onlinecal.natures._levels import (
    BIAS,
    DRAWN,
    FALLS,
    GIVEN,
    OWN,
    count_round,
    drawn_level,
    ends_of,
    level,
    level_nature,
    memory_of_levels,
)
from onlinecal.natures.base import Nature


@dataclass(frozen=True)
class KinkApproach(Nature):
    r"""Approaches a kink from both sides, level by level, and leaves each with a bias towards the kink.

    Of a law above the kink c it looks at the highest forecast v. While v has been drawn fewer than `dwell`/(v − c)²
    times y = 1, and then y = 0. Below the kink it looks at the lowest one, with 0 and 1 exchanged. (Above or below is
    the middle between the two; at c itself it tosses a fair coin.)

    Source: This package: after a random search among policies on the CDL minimiser's pair. Why: docs/proofs.md.

    Parameters
    ----------
    kink : float, default 0.5
        c, in [0, 1].
    dwell : float, default 0.2
        How many rounds a level gets, times its squared distance from c; in [0.001, 100].
    cells : int, optional
        If given, forecasts of one cell [j/cells, (j+1)/cells) share one count, and memory does not grow; from 1 to
        10^6. By default every value is a level of its own.
    """

    version: ClassVar[int] = 2
    sight = Sight.LAW
    needs_horizon, safe_under_delay, memory = False, True, memory_of_levels
    allowed = allow(kink=UNIT, dwell=number(1e-3, 100.0), cells=optional(whole(1, 10**6)))

    kink: float = 0.5
    dwell: float = 0.2
    cells: int | None = None

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        return level_nature(approach, count_round, [self.kink, self.dwell], cells=self.cells)


def approach(run: Run, size: int, forecast: float, number: int) -> float:
    given, (lowest, highest) = shared(run)[GIVEN:], ends_of(run, size)
    kink, dwell, middle = given[0], given[1], 0.5 * (lowest + highest)
    if middle == kink:
        return 0.5
    v = highest if middle > kink else lowest
    stays = level(run, v)[DRAWN] * (v - kink) ** 2 < dwell
    return 1.0 if stays == (middle > kink) else 0.0


#: the share of the rounds that all pairs of `SparseBias` take together
SHARE = 0.85


@dataclass(frozen=True)
class SparseBias(Nature):
    r"""Gives every second level above a kink a bias that is large for its few rounds.

    Up to the distance `reach` above the kink c it first has every level forecast, with y = 1. Then it has pairs of
    neighbours u < v forecast, from the top down: y = 1 while Σ (y − u), the bias of u, is less than u, and else y = 0.
    So u, with a bias near 0, is drawn nearly always, and v now and then, mostly with y = 0. When u has been drawn N
    times, y = 0 until the pair below has its turn; N is such that all pairs take 0.85 T. Further up y = 0, below the
    kink y = 1. Why it works: docs/proofs.md.

    Parameters
    ----------
    kink : float, default 0.5
        c, in [0, 1].
    reach : float, default 0.15
        In [0.001, 1].
    """

    kink: float = 0.5
    reach: float = 0.15
    sight = Sight.LAW
    needs_horizon, safe_under_delay, memory = True, True, "O(t)"
    allowed = allow(kink=UNIT, reach=number(1e-3, 1.0))

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        # A pair every two steps: N = rounds · step.
        given = [self.kink, self.reach, 2.0 * SHARE * horizon / self.reach]
        return level_nature(feed, lean, given, own=1.0, note=1)


def feed(run: Run, size: int, forecast: float, number: int) -> float:
    """The state's own number is the smallest step between two forecasts of one law so far; the note is this law's."""
    mine, given, (u, v) = state(run), shared(run)[GIVEN:], ends_of(run, size)
    kink, reach, rounds = given[0], given[1], given[2]
    low, high = level(run, u), level(run, v)
    note(run)[0] = v - u
    # The step of this very law counts, whether or not it was told before.
    enough = rounds * (min(mine[OWN], v - u) if v > u else mine[OWN])
    if 0.5 * (u + v) <= kink:
        return 1.0
    if v - kink > reach:
        return 0.0
    if low[DRAWN] == 0.0 or high[DRAWN] == 0.0:
        return 1.0
    if low[DRAWN] >= enough or high[DRAWN] >= enough:
        return 0.0
    # A bias of exactly u is often reached, up to rounding.
    return 1.0 if low[BIAS] < u - 1e-9 else 0.0


def lean(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    mine, step = state(run), note(run)[0]
    if step > 0.0:
        mine[OWN] = min(mine[OWN], step)
    drawn_level(run, forecast, outcome - forecast)
    return 0


@dataclass(frozen=True)
class LogisticPolicy(Nature):
    r"""States a logistic function of the pair of forecasts that a law mixes, and of what became of both.

    Let a be the lowest forecast of the law, of share s, and b the highest. They were played n_a and n_b times with the
    biases E_a and E_b, E_v = Σ (y − v). With z_a = E_a/√(n_a + 1), z_b = −E_b/√(n_b + 1) and d = 1/2 − (a + b)/2, q =
    1/(1 + exp(−8x)) with

    x = w_0 + w_1 z_a + w_2 z_b + w_3 d + w_4 d√(n_a + 1) + w_5 (s − 1/2) + w_6 sign(d) + w_7 d√(n_b + 1).

    (sign(0) = −1.)

    Parameters
    ----------
    weights : sequence of float
        w_0, …, w_7, in [−1000, 1000]. The default was found by a random search against the CDL minimiser.
    """

    version: ClassVar[int] = 2
    allowed = allow(weights=several(number(-1000.0, 1000.0), "numbers", 8))

    weights: tuple[float, ...] = (0.244, -0.025, -0.058, 0.118, 0.036, 0.081, -0.041, 0.599)
    sight = Sight.LAW
    needs_horizon, safe_under_delay, memory = False, True, "O(t)"

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        return level_nature(weigh, count_round, self.weights)


def weigh(run: Run, size: int, forecast: float, number: int) -> float:
    w, (values, weights), (a, b) = shared(run)[GIVEN:], law(run), ends_of(run, size)
    low, high = level(run, a), level(run, b)
    root_a, root_b = math.sqrt(low[DRAWN] + 1.0), math.sqrt(high[DRAWN] + 1.0)
    d, share = 0.5 - 0.5 * (a + b), 0.0
    for j in range(size):
        # A value may be that of several atoms.
        share += weights[j] if values[j] == a else 0.0
    x = (
        w[0]
        + w[1] * low[BIAS] / root_a
        - w[2] * high[BIAS] / root_b
        + w[3] * d
        + w[4] * d * root_a
        + w[5] * (share - 0.5)
        + w[6] * (1.0 if d > 0.0 else -1.0)
        + w[7] * d * root_b
    )
    return 1.0 / (1.0 + math.exp(-min(max(8.0 * x, -700.0), 700.0)))


@dataclass(frozen=True)
class Ratchet(Nature):
    r"""Drives the bias of each level up to a threshold, then down to another, then up again.

    Of a law above the kink c it looks at the highest forecast v. With n rounds at v so far and their bias E = Σ (y −
    v), y = 1 until E/√(n + 1) ≥ `low` + `width`, then y = 0 until E/√(n + 1) ≤ `low`, then y = 1 again, and so on.
    Below the kink it looks at the lowest forecast, with 0 and 1 exchanged and −E in place of E. (Above or below is the
    middle between the two; at c it tosses a coin.) With `width` = 0 it is a threshold.

    Parameters
    ----------
    kink : float, default 0.5
        c, in [0, 1].
    low : float, default −1
        In [−1000, 1000].
    width : float, default 0.5
        In [0, 1000].
    """

    kink: float = 0.5
    low: float = -1.0
    width: float = 0.5
    sight = Sight.LAW
    needs_horizon, safe_under_delay, memory = False, True, "O(t)"
    allowed = allow(kink=UNIT, low=number(-1000.0, 1000.0), width=number(0.0, 1000.0))

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        given = [self.kink, self.low, float(self.low) + float(self.width)]
        return level_nature(push, turn, given, numbers=3, note=1)


@kernel
def rises(run, value):
    """Whether the bias of a level is on its way up: a new one may stand above the threshold already."""
    mine = level(run, value)
    return mine[FALLS] == 0.0 if mine[DRAWN] > 0.0 else shared(run)[GIVEN + 2] > 0.0


def push(run: Run, size: int, forecast: float, number: int) -> float:
    """The note is 1 where the law is above the kink, −1 where it is below, and 0 at the kink."""
    kink, (lowest, highest) = shared(run)[GIVEN], ends_of(run, size)
    middle = 0.5 * (lowest + highest)
    side = 1.0 if middle > kink else -1.0 if middle < kink else 0.0
    note(run)[0] = side
    if side == 0.0:
        return 0.5
    return 1.0 if rises(run, highest if side > 0.0 else lowest) == (side > 0.0) else 0.0


def turn(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    given, side, up = shared(run)[GIVEN:], note(run)[0], rises(run, forecast)
    mine = drawn_level(run, forecast, outcome - forecast)
    scaled = side * mine[BIAS] / math.sqrt(mine[DRAWN] + 1.0)
    if side != 0.0:
        up = scaled < given[2] if up else scaled <= given[1]
    mine[FALLS] = 0.0 if up else 1.0
    return 0
