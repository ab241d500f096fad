"""Bets against calibrated forecasts: a mixture over intervals of predictions, biases and slopes, and starts."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Floats, Ints

#: raised when the bets change: a test cannot go on with others
VERSION = 2
#: biases in log odds, of both signs: an octave from one to the next
SIZES = tuple(0.025 * 2.0**k for k in range(8))
#: slopes in log odds, below 1 and above, and their share of the money
SLOPES = tuple(2.0 ** (sign * k / 4.0) for sign in (-1.0, 1.0) for k in range(1, 9))
SLOPED = 0.25
# Log odds beyond this count as this, so that one event proves little.
_FAR = 5.0
#: of a bank: the money. Then the money times: the event at which it was put in; the events since; their Σ (y − p)
MONEY, START, EVENTS, BIAS = range(4)
#: of a clock: events; 1/(the money's unit); the total in that unit; whether an impossible outcome was seen. Then the
#: largest total so far, not in that unit. Then k where the unit is 10^{200k}: a float may not hold its inverse
COUNT, UNIT, TOTAL, IMPOSSIBLE, PEAK, POWER = range(6)
#: of sums: events, Σ p, Σ y, Σ (y − p)² of each cell
COUNTED, FORECASTS, OUTCOMES, SQUARES = range(4)
#: the money is counted in another unit beyond this, which is far above any alarm
HUGE, _LARGE = 1e200, 1e-180


@dataclass(frozen=True)
class Bettors:
    """The bettors, and what each bets on."""

    edges: Floats  # of the cells [a, b) of predictions, from 0 to 1; the last one holds 1 too
    # the intervals: all runs of cells, from the first to before the last; then all cells, for slopes
    ends: Ints
    # π: every number of cells has the same weight, and so have the intervals of one number; they sum to 1
    weights: Floats
    biases: Floats  # δ
    prior: Floats  # shares of the money, (I + 1, D)
    lifts: Floats  # e^δ, then slopes: (2, D)

    @classmethod
    def of(cls, edges: Floats) -> "Bettors":
        """On all intervals between these edges."""
        cells = len(edges) - 1
        ends = np.array([(a, a + size) for size in range(1, cells + 1) for a in range(cells - size + 1)])
        sizes = ends[:, 1] - ends[:, 0]
        weights = 1.0 / (cells * (cells - sizes + 1.0))
        biases = np.array([sign * size for sign in (-1.0, 1.0) for size in SIZES])
        prior = np.append((1.0 - SLOPED) * weights, SLOPED)[:, None] / np.full(len(biases), len(biases))
        ends = np.append(ends, [[0, cells]], axis=0)
        return cls(edges, ends, weights, biases, prior, np.stack((np.exp(biases), SLOPES)))

    def fresh(self, totals: int) -> tuple[Floats, Floats]:
        """The banks (4, I, D) and clocks of totals before their first event."""
        clock = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
        return np.zeros((totals, 4, *self.prior.shape)), np.repeat(clock[None, :], totals, axis=0)


@kernel
def cell_of(edges, p):
    """The cell [a, b) that holds p; the last one is closed."""
    return min(np.searchsorted(edges, p, side="right"), len(edges) - 1) - 1


@kernel
def left(t):
    """L(t)."""
    return np.log(2.0) / np.log(t + 1.0)


@kernel
def factors_of(lifts, p, factors):
    """f_b(p, 0) and f_b(p, 1) of biases, then of slopes: (2, 2, D)."""
    inner = 0.0 < p < 1.0
    odds = np.log(p / (1.0 - p)) if inner else 0.0
    for d in range(lifts.shape[1]):
        factors[0, 0, d] = 1.0 / (1.0 - p + p * lifts[0, d])
        factors[0, 1, d] = factors[0, 0, d] * lifts[0, d]
        # q/(1 − q) is p/(1 − p) times this; where p is 0 or 1, q is p.
        lift = np.exp((lifts[1, d] - 1.0) * min(max(odds, -_FAR), _FAR))
        factors[1, 0, d] = 1.0 / (1.0 - p + p * lift)
        factors[1, 1, d] = factors[1, 0, d] * lift


@kernel
def bet(bank, clock, sums, edges, ends, prior, lifts, p, y):
    """One event. Of slopes the error is taken towards 1/2: it is positive where predictions are too bold."""
    cell, sizes, last = cell_of(edges, p), lifts.shape[1], len(ends) - 1
    error, t = y - p, clock[COUNT] + 1.0
    fresh = clock[UNIT] * (left(t) - left(t + 1.0))
    both, totals = np.empty((2, 2, sizes)), np.zeros(sizes)
    factors_of(lifts, p, both)
    happened = 1 if y > 0.5 else 0
    money, start, events, bias = bank[MONEY], bank[START], bank[EVENTS], bank[BIAS]
    for i in range(len(ends)):
        if ends[i, 0] <= cell < ends[i, 1]:
            factors = both[1 if i == last else 0, happened]
            off = -error if i == last and p > 0.5 else error
            for d in range(sizes):
                f, put = factors[d], fresh * prior[i, d]
                m = (money[i, d] + put) * f
                money[i, d] = m
                start[i, d] = (start[i, d] + put * t) * f
                events[i, d] = events[i, d] * f + m
                bias[i, d] = bias[i, d] * f + m * off
                totals[d] += m
        else:
            for d in range(sizes):
                put = fresh * prior[i, d]
                money[i, d] += put
                start[i, d] += put * t
                totals[d] += money[i, d]
    total = clock[UNIT] * left(t + 1.0)
    for d in range(sizes):
        total += totals[d]
    clock[COUNT] = t
    if (p == 0.0 and y > 0.5) or (p == 1.0 and y < 0.5):
        clock[IMPOSSIBLE] = 1.0
    for s in range(len(sums)):
        sums[s, COUNTED, cell] += 1.0
        sums[s, FORECASTS, cell] += p
        sums[s, OUTCOMES, cell] += y
        sums[s, SQUARES, cell] += error * error
    power = 1.0 if total > HUGE else -1.0 if total < _LARGE and clock[POWER] > 0.0 else 0.0
    if power != 0.0:
        bank *= HUGE**-power
        total *= HUGE**-power
        clock[POWER] += power
        clock[UNIT] = HUGE ** -clock[POWER]
    clock[TOTAL] = total
    clock[PEAK] = max(clock[PEAK], total / clock[UNIT])


@kernel
def bet_on_all(bank, clock, sums, edges, ends, prior, lifts, p, y, level):
    """Events until an alarm is due; how many were taken, and whether one is due."""
    for j in range(len(p)):
        bet(bank, clock, sums, edges, ends, prior, lifts, p[j], y[j])
        if level > 0.0 and is_due(clock, level):
            return j + 1, True
    return len(p), False


@kernel
def is_due(clock, level):
    """Whether the total is at least 1/level; it is infinite after an outcome of probability 0."""
    return clock[IMPOSSIBLE] > 0.0 or clock[TOTAL] * level >= clock[UNIT]


@kernel
def look_ahead(bank, clock, edges, ends, prior, lifts, p):
    """The totals, in the clock's unit, that an event with the prediction p would leave, for y = 0 and for y = 1."""
    cell, t, last = cell_of(edges, p), clock[COUNT] + 1.0, len(ends) - 1
    fresh = clock[UNIT] * (left(t) - left(t + 1.0))
    both = np.empty((2, 2, lifts.shape[1]))
    factors_of(lifts, p, both)
    failed = happened = clock[UNIT] * left(t + 1.0)
    for i in range(len(ends)):
        inside, row = ends[i, 0] <= cell < ends[i, 1], 1 if i == last else 0
        for d in range(lifts.shape[1]):
            m = bank[MONEY, i, d] + fresh * prior[i, d]
            failed += m * both[row, 0, d] if inside else m
            happened += m * both[row, 1, d] if inside else m
    return failed, happened


def log_of(clock: Floats, total: float | None = None) -> float:
    """ln of a total in the clock's unit; by default ln E, which an impossible outcome makes infinite."""
    if total is None and clock[IMPOSSIBLE] > 0.0:
        return math.inf
    return math.log(clock[TOTAL] if total is None else total) + float(clock[POWER]) * math.log(HUGE)


@dataclass(slots=True)
class Question:
    """A forecast that waits for its outcome, or (in their order) for that of an earlier one."""

    ticket: int
    forecast: float
    chain: int  # which of the totals bets on it; −1 for none
    epoch: int  # in which epoch it was asked
    outcome: float = math.nan
    # ln of what its total has after the worse of the two outcomes; NaN until it is asked for
    worst: float = math.nan


@dataclass(eq=False)
class Epoch:
    """All that changes from one alarm to the next: it is exchanged as a whole."""

    number: int  # 1, 2, …
    alarms: tuple[Any, ...]  # all before it
    banks: Floats
    clocks: Floats  # of each total
    sums: Floats  # of the events of this epoch, and of all
    peak: float = 1.0  # the largest e-value so far, where there are several totals

    @property
    def events(self) -> int:
        """Taken since the beginning of all."""
        return int(self.sums[1, COUNTED].sum())

    @property
    def taken(self) -> int:
        """Events that were bet on."""
        return int(self.clocks[:, COUNT].sum())

    @property
    def bank(self) -> Floats:
        """Of all totals together, (4, I, D), in the largest of their units."""
        powers = self.clocks[:, POWER] - self.clocks[:, POWER].max()
        return np.asarray(np.tensordot(HUGE**powers, self.banks, axes=1))

    @property
    def largest(self) -> float:
        """The largest e-value so far."""
        if self.clocks[:, IMPOSSIBLE].any():
            return math.inf
        return max(1.0, float(self.clocks[0, PEAK]) if len(self.clocks) == 1 else self.peak)

    def bet(self, b: Bettors, chain: int, p: Floats, y: Floats, level: float) -> tuple[int, bool]:
        """Takes events until this total is at least 1/level; how many, and whether it is."""
        bank, clock = self.banks[chain], self.clocks[chain]
        found: tuple[int, bool] = bet_on_all(
            bank, clock, self.sums, b.edges, b.ends, b.prior, b.lifts, p, y, level
        )
        return found

    def log_e(self, b: Bettors, questions: Iterable[Question]) -> float:
        """ln of the mean of the totals, with open questions that are bet on at the worse of their outcomes."""
        if self.clocks[:, IMPOSSIBLE].any():
            return math.inf
        logs = [log_of(clock) for clock in self.clocks]
        for q in questions:
            if math.isnan(q.worst):
                # No other bet is made with this money until the outcome is known.
                bank, clock = self.banks[q.chain], self.clocks[q.chain]
                both = look_ahead(bank, clock, b.edges, b.ends, b.prior, b.lifts, q.forecast)
                q.worst = log_of(clock, min(both))
            logs[q.chain] = q.worst
        top = max(logs)
        return top + math.log(math.fsum(math.exp(one - top) for one in logs) / len(logs))
