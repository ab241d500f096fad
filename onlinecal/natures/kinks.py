"""Natures that make the regret of one kink large, and so the CDL of forecasters on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlinecal.core._compile import index, kernel
from onlinecal.core.arrays import cell
from onlinecal.core.strategy import check_number, check_probability, check_whole
from onlinecal.core.streams import Stream
from onlinecal.natures._levels import ROOM, ends, enter, find, level_table, make_room
from onlinecal.natures.base import Nature, Sight
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.steps import Memory, floats, hear, ints, law_values, move, shared, shared_ints


@dataclass(frozen=True)
class KinkApproach(Nature):
    r"""Approaches a kink from both sides, level by level, and leaves each with a bias towards the kink.

    Of a law above the kink c it looks at the highest forecast v: y = 1 while v has been drawn fewer than `dwell`/(v −
    c)² times, and then y = 0. Below the kink it looks at the lowest one, with 0 and 1 exchanged. (Above or below is
    the middle between the two; at c itself it tosses a fair coin.)

    Parameters
    ----------
    kink : float, default 0.5
        c, in [0, 1].
    dwell : float, default 0.2
        How many rounds a level gets, times its squared distance from c; in [0.001, 100].
    cells : int, optional
        If given, forecasts of one cell [j/cells, (j+1)/cells) share one count, and memory does not grow; from 1 to
        10^6. By default every value is a level of its own.

    Notes
    -----
    A level with n rounds and a bias b towards the kink, at a distance d from it, adds b − nd to the regret of the
    kink. A hedge that keeps all biases below √(3nL) allows √(3nL) − nd, at most 3L/(4d), at n = 3L/(4d²). On the grid
    with m = √T steps d = k/m, so the gains add up to (3L/4)√T Σ 1/k, half a ln T on each side. The bound of
    `CDLMinimiser` has the same arithmetic. Levels beyond some level v have had their rounds, so the bias of v changes
    sign every few rounds. When it is positive, v and the level above are a pair, and y = 0. The level above is then
    drawn with a small probability, so its bias only grows: in N such rounds to √(3N ln(1 + c ln N)) (a sketch).

    Information
    -----------
    Sees LAW. O(size of the law) time a round; 32 to 64 bytes a level. Deterministic but for the coin.

    Source
    ------
    This package: after a random search among policies on the pair that the CDL minimiser plays.
    """

    version: ClassVar[int] = 2

    kink: float = 0.5
    dwell: float = 0.2
    cells: int | None = None
    sight = Sight.LAW
    needs_horizon, safe_under_delay = False, True

    def __post_init__(self) -> None:
        check_probability("kink", self.kink)
        check_number("dwell", self.dwell, 1e-3, 100.0)
        if self.cells is not None:
            check_whole("cells", self.cells, 1, 10**6)

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        return "O(t)" if self.cells is None else "O(cells)"

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        shared = [float(self.kink), float(self.dwell)]
        if self.cells is not None:
            memory = Memory(floats=self.cells + 1, shared_ints=[self.cells], shared=shared)
            return CompiledNature(_approach, memory, sight=self.sight, hear=_count)
        memory = level_table(shared_ints=[0], shared=shared)
        return CompiledNature(
            _approach, memory, sight=self.sight, hear=_count, reserve=make_room, grows_with="levels"
        )


@move
def _approach(run, number, size, forecast):
    """The state: how often each level, or cell, has been drawn."""
    values, kink, cells, (lowest, highest) = (
        law_values(run),
        shared(run)[0],
        shared_ints(run)[0],
        ends(run, size),
    )
    middle = 0.5 * (values[lowest] + values[highest])
    if middle == kink:
        return 0.5
    j = highest if middle > kink else lowest
    at = cell(values[j], cells) if cells > 0 else find(run, j)
    stays = floats(run)[index(at)] * (values[j] - kink) ** 2 < shared(run)[1]
    return 1.0 if stays == (middle > kink) else 0.0


@hear
def _count(run, number, size, forecast, outcome):
    cells = shared_ints(run)[0]
    at = cell(forecast, cells) if cells > 0 else enter(run, forecast)
    floats(run)[index(at)] += 1.0
    return 0


@dataclass(frozen=True)
class SparseBias(Nature):
    r"""Gives every second level above a kink a bias that is large for the few rounds that the level has had.

    Up to the distance `reach` above the kink c it first has every level forecast, with y = 1. Then it has pairs of
    neighbours u < v forecast, from the top down: y = 1 while Σ (y − u), the bias of u, is less than u, and else y = 0.
    So u, with a bias near 0, is drawn nearly always, and v now and then, mostly with y = 0. When u has been drawn N
    times, y = 0 until the pair below has its turn; N is such that all pairs take 0.85 T. Further up y = 0, below the
    kink y = 1.

    Parameters
    ----------
    kink : float, default 0.5
        c, in [0, 1].
    reach : float, default 0.15
        In [0.001, 1].

    Notes
    -----
    Hedging with plain biases a ≥ 0 and −b plays v with probability a/(a + b) and lets a² + b² grow by 1/4 a round
    in the mean. With a near 0 for N rounds b becomes √N/2, in some 2√N rounds of v, and the regret of the kink at a
    distance d grows by √N/2 − 2√N·d. With N of order √T at as many levels that is of order T^(3/4), that of the bound
    on twice the ECE. AdaNormalHedge weighs a bias b by an exponential of b² over the rounds of v.

    Information
    -----------
    Sees LAW. O(size of the law) time a round; 40 to 80 bytes a level. Deterministic.

    Source
    ------
    This package.
    """

    kink: float = 0.5
    reach: float = 0.15
    sight = Sight.LAW
    needs_horizon, safe_under_delay, memory = True, True, "O(t)"
    unit_bytes: ClassVar[float] = 96.0

    def __post_init__(self) -> None:
        check_probability("kink", self.kink)
        check_number("reach", self.reach, 1e-3, 1.0)

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        # A pair every two steps: N = rounds · step.
        rounds = 2.0 * SHARE * horizon / self.reach
        memory = level_table(columns=2, own=[1.0], shared=[float(self.kink), float(self.reach), rounds])
        return CompiledNature(
            _feed, memory, sight=self.sight, hear=_lean, reserve=make_room, grows_with="levels"
        )


#: the share of the rounds that all pairs take together
SHARE = 0.85


@move
def _feed(run, number, size, forecast):
    """The state: the smallest step between two forecasts of one law so far; counts, and biases, of the levels."""
    numbers, values, (lowest, highest) = floats(run), law_values(run), ends(run, size)
    kink, reach, rounds = shared(run)[0], shared(run)[1], shared(run)[2]
    counts, bias = _columns(run)
    u, v = values[lowest], values[highest]
    low, high = find(run, lowest), find(run, highest)
    # The step of this very law counts, whether or not it was told before.
    enough = rounds * (min(numbers[0], v - u) if v > u else numbers[0])
    if 0.5 * (u + v) <= kink:
        return 1.0
    if v - kink > reach:
        return 0.0
    if counts[low] == 0.0 or counts[high] == 0.0:
        return 1.0
    if counts[low] >= enough or counts[high] >= enough:
        return 0.0
    # A bias of exactly u is often reached, up to rounding.
    return 1.0 if bias[low] < u - 1e-9 else 0.0


@hear
def _lean(run, number, size, forecast, outcome):
    numbers, values, (lowest, highest) = floats(run), law_values(run), ends(run, size)
    if values[highest] > values[lowest]:
        numbers[0] = min(numbers[0], values[highest] - values[lowest])
    at = enter(run, forecast)
    counts, bias = _columns(run)
    counts[at] += 1.0
    bias[at] += outcome - forecast
    return 0


@kernel
def _columns(run):
    """The counts and the biases of the levels."""
    numbers, room = floats(run), ints(run)[ROOM]
    return numbers[1 : 1 + room], numbers[1 + room :]
