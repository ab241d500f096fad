"""Payoff and regrets of trusting a forecast, for a table of payoffs and for the quadratic task."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.levels import LevelSets

TIE = 2.0**-50
"""Expected payoffs that differ by no more than this are a tie: so much may come of rounding the payoffs."""


class Account(NamedTuple):
    """Payoff and three regrets of a decision maker that trusts the forecast, per round.

    Attributes
    ----------
    payoff : float
        E[u(BR(v), y)].
    external, action_swap, swap : float
        See the functions of those names. external ≤ action_swap ≤ swap, and 0 ≤ action_swap.
    """

    payoff: float
    external: float
    action_swap: float
    swap: float


_BELOW, _ABOVE = Fraction(-1), Fraction(2)  # outside of [0, 1]
_Line = tuple[Fraction, Fraction, int]  # slope, value at v = 0, minus the action


def best_actions(payoffs: Sequence[Sequence[float]], tie: float) -> tuple[Ints, Floats, Floats]:
    """The upper envelope of the lines (1 − v) u(a, 0) + v u(a, 1): actions from v = 0 to 1, of equal ones the first;
    kinks.

    From best[j] to best[j + 1] the action changes at a v in [low[j], high[j]]: both pay the same up to `tie`.
    """
    lines: list[_Line] = [
        (Fraction(u1) - Fraction(u0), Fraction(u0), -a) for a, (u0, u1) in enumerate(payoffs)
    ]
    hull: list[_Line] = []
    for line in sorted(lines):
        if hull and hull[-1][0] == line[0]:
            hull.pop()  # parallel and no higher, or the same and later in the list
        while len(hull) > 1 and _crossing(hull[-2], line) <= _crossing(hull[-2], hull[-1]):
            hull.pop()
        hull.append(line)
    kinks = [(_crossing(a, b), Fraction(tie) / (b[0] - a[0])) for a, b in pairwise(hull)]
    # Two lines that hardly cross do so almost anywhere, but not beyond the kinks beside theirs.
    low = np.array([_not_below(max(at - reach, _BELOW)) for at, reach in kinks])
    high = np.array([-_not_below(max(-at - reach, -_ABOVE)) for at, reach in kinks])
    low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1].copy()
    within = slice(np.searchsorted(high, 0.0), np.searchsorted(low, 1.0, side="right"))
    best = np.array([-line[2] for line in hull], np.int64)
    return best[within.start : within.stop + 1], low[within], high[within]


def _crossing(a: _Line, b: _Line) -> Fraction:
    """Where line b, the steeper one, passes line a."""
    return (a[1] - b[1]) / (b[0] - a[0])


def _not_below(x: Fraction) -> float:
    """The least float that is not below x."""
    near = float(x)
    return near if near >= x else math.nextafter(near, math.inf)


@kernel
def _place(v, x, beyond):
    """The first level at or above x, or (`beyond`) above it; NumPy's search takes much longer to compile."""
    low, high = 0, len(v)
    while low < high:
        middle = (low + high) // 2
        if v[middle] < x or (beyond and v[middle] == x):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _levels_on_kinks(v, w, q, payoffs, low, high, on, above):
    """For each kink the level on it, or −1, and the first level above it."""
    kinks = len(low)
    gain, order = np.empty((kinks, 2)), np.empty(kinks, np.int64)
    for j in range(kinks):
        on[j], above[j] = -1, _place(v, high[j], True)
        for y in range(2):
            gain[j, y] = payoffs[j + 1, y] - payoffs[j, y]
        # The sharpest kinks choose first: the others, between theirs, have little to lose. They are put in order one
        # after the other. A sort of numba's takes about as long to compile as all else here.
        at = j
        while at > 0 and gain[order[at - 1], 0] - gain[order[at - 1], 1] > gain[j, 0] - gain[j, 1]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = j
    for j in order:
        first, end = _place(v, low[j], False), above[j]
        for other in range(kinks):
            if on[other] >= 0:
                if other < j:
                    first = max(first, on[other])
                elif other > j:
                    end = min(end, on[other] + 1)
        # The regret at this kink as the level on it moves up. A level below the kink regrets max(g, 0), that it is
        # not above. One above it regrets max(−g, 0), and the one on it |g|.
        most, here = -np.inf, 0.0
        for i in range(first, end):
            g = (1.0 - q[i]) * gain[j, 0] + q[i] * gain[j, 1]
            here += w[i] * max(g, 0.0)
            if here > most:
                most, on[j], above[j] = here, i, i + 1
            here -= w[i] * max(-g, 0.0)


@kernel
def account_of_levels(v, w, q, best, payoffs, low, high) -> tuple[float, float, float, float]:
    """Payoff and external, action swap and swap regret, for the envelope of a table of payoffs."""
    actions = payoffs.shape[0]
    on, above = np.empty(actions, np.int64), np.empty(actions, np.int64)
    _levels_on_kinks(v, w, q, payoffs, low, high, on, above)
    mass = np.zeros(actions)  # of the levels that respond with each action
    ones = np.zeros(actions)  # and of the outcomes 1 among them
    total, swap, least = 0.0, 0.0, 0
    for i in range(v.shape[0]):
        while least < actions - 1 and above[least] <= i:
            least += 1
        choice = least
        got = (1.0 - q[i]) * payoffs[least, 0] + q[i] * payoffs[least, 1]
        a = least
        while a < actions - 1 and on[a] == i:
            a += 1
            u = (1.0 - q[i]) * payoffs[a, 0] + q[i] * payoffs[a, 1]
            if u < got or (u == got and best[a] < best[choice]):
                got = u
                choice = a
        hindsight = got
        for b in range(actions):
            hindsight = max(hindsight, (1.0 - q[i]) * payoffs[b, 0] + q[i] * payoffs[b, 1])
        total += w[i] * got
        if q[i] != v[i]:  # a calibrated level has nothing to gain, whatever the rounding of its ties
            swap += w[i] * (hindsight - got)
        mass[choice] += w[i]
        ones[choice] += w[i] * q[i]
    action_swap, external = 0.0, -np.inf
    for a in range(actions):
        if mass[a] > 0.0:
            gain = 0.0
            for b in range(actions):
                less0 = payoffs[b, 0] - payoffs[a, 0]
                less1 = payoffs[b, 1] - payoffs[a, 1]
                gain = max(gain, (mass[a] - ones[a]) * less0 + ones[a] * less1)
            action_swap += gain
    for b in range(actions):
        gain = 0.0
        for a in range(actions):
            less0 = payoffs[b, 0] - payoffs[a, 0]
            less1 = payoffs[b, 1] - payoffs[a, 1]
            gain += (mass[a] - ones[a]) * less0 + ones[a] * less1
        external = max(external, gain)
    # The order between the three is a theorem; rounding must not undo it.
    action_swap = min(action_swap, swap)
    return total, min(external, action_swap), action_swap, swap


@kernel
def accounts_of_levels(v, w, q, starts, which, ends, kinks, best, payoffs, low, high, out):
    """The same for many Γ and envelopes, one behind the other; nothing for an envelope that is empty."""
    for b in range(len(out)):
        i, j, k = starts[b], starts[b + 1], which[b]
        of, at = slice(ends[k], ends[k + 1]), slice(kinks[k], kinks[k + 1])
        if of.start < of.stop:
            out[b, 0], out[b, 1], out[b, 2], out[b, 3] = account_of_levels(
                v[i:j], w[i:j], q[i:j], best[of], payoffs[of], low[at], high[at]
            )


def table_accounts(sets: LevelSets, best: Ints, payoffs: Floats, low: Floats, high: Floats) -> Floats:
    """The accounts of several Γ for one envelope, (B, 4)."""
    ends, found = (np.array([0, len(each)]) for each in (best, low)), np.empty((len(sets), 4))
    levels, which = (sets.predictions, sets.mass, sets.means, sets.starts), np.zeros(len(sets), np.int64)
    accounts_of_levels(*levels, which, *ends, best, payoffs, low, high, found)
    return found


def quadratic_account(v: Floats, w: Floats, q: Floats) -> Account:
    """The account for payoff 1 − (a − y)²: reliability, and reliability less resolution."""

    def total(values: Floats) -> float:
        return float(np.cumsum(w * values)[-1])  # in this order, whatever their number

    swap, base = total((q - v) ** 2), total(q)
    payoff, external = 1.0 - total((q - v) ** 2 + q * (1.0 - q)), swap - total((q - base) ** 2)
    return Account(payoff, external, swap, swap)
