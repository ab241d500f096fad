"""Foster–Vohra on all pairs: the stationary law of the matrix of pairwise regrets, with most of the work kept.

A round changes one row of the matrix, that of the point it played, and plays come back to the same few points. So each
run keeps its matrix with the cold points censored, those not played lately: passed over, as if nobody looked while the
walk is at one. The rows of the others, the hot points, are taken through the cold ones again when they change; a round
solves for the hot points alone, and the cold ones get the time spent in them on the way. When a cold point is played,
the matrix is made afresh as soon as play has come back to points it knows, with those that are hot then; where play
roams, as on a fine grid in its first rounds, each round is solved by itself. All sums are of positive terms, as in
`shares`, so weights are right to nearly all digits.
"""

from __future__ import annotations

import numpy as np

from onlinecal._compile import kernel
from onlinecal.forecasters._stationary import (
    HUGE,
    Stationary,
    count_regrets,
    put_law,
    put_pair,
    put_stationary,
    shares,
)
from onlinecal.round import Round, check_round

#: up to this many points a set is solved as it stands
SMALL = 16
#: points that are cold; hot with a row to be renewed, and with a row in order; yet to be made cold
COLD, CHANGED, READY, WAITING = 0, 1, 2, 3


class PairwisePlayer(Stationary):
    """Counters, and the censored matrix; every run has its own, so it does not matter which are played together."""

    def __init__(self, runs: int, m: int) -> None:
        super().__init__(runs, m)
        self.bias = np.zeros((runs, m + 1), np.int64)
        self.rounds = np.zeros((runs, m + 1), np.int64)
        #: how far the regrets of a point go, in steps; down if negative
        self.step = np.zeros((runs, m + 1), np.int64)
        #: the points played last, the latest first: as many as will be hot. With more a round takes longer, and a cold
        #: point is played less often
        self.recent = np.tile(np.arange(min(max(8, m // 3), 20, m + 1)), (runs, 1))
        #: rows are made by `_censor` and `_renew`; columns without a point make their length a multiple of 16
        self.matrix = np.zeros((runs, m + 1, (m // 16 + 1) * 16))
        self.kind = np.full((runs, m + 1), COLD, np.int8)
        #: whether a cold point has been played since the matrix was made, as in the beginning; and whether the point
        #: played last was not among the recent ones, after which the next may not be either: no time for a new matrix
        self.outdated = np.ones(runs, np.bool_)
        self.roaming = np.ones(runs, np.bool_)
        #: room for a row of it, and the points that its places stand for
        self.row = np.zeros((m // 16 + 1) * 16)
        self.points = np.arange(m + 1)

    def state(self) -> int:
        """The law of the regrets."""
        counters = self.bias, self.rounds, self.step
        kept = self.last, self.recent, self.matrix, self.kind, self.outdated, self.roaming
        room = self.flow, self.members, self.share, self.row, self.points
        return _state(*counters, *kept, *room, self.law.atoms, self.law.weights)

    def update(self, round: Round) -> None:
        """Counts, and marks what has changed."""
        check_round(round, self.law)
        counters = self.bias, self.rounds, self.step
        kept = self.last, self.recent, self.kind, self.outdated, self.roaming
        _learn(*counters, *kept, round.atom, round.outcome)


@kernel
def _learn(bias, rounds, step, last, recent, kind, outdated, roaming, forecast, outcome):
    count_regrets(bias, rounds, last, forecast, outcome)
    m = bias.shape[1] - 1
    for r in range(len(bias)):
        i = last[r]
        # In steps of 1/m, i regrets a step of d in the direction of its bias if and only if d · n < 2m|E|.
        wide = max(2 * abs(bias[r, i]) - 1, 0) // rounds[r, i]
        step[r, i] = min(wide, m - i) if bias[r, i] > 0 else -min(wide, i)
        if kind[r, i] == COLD:
            outdated[r] = True
        else:
            kind[r, i] = CHANGED
        j = i
        roaming[r] = True
        for k in range(recent.shape[1]):
            recent[r, k], j = j, recent[r, k]
            if j == i:
                roaming[r] = False
                break


@kernel
def _state(
    bias,
    rounds,
    step,
    last,
    recent,
    matrix,
    kind,
    outdated,
    roaming,
    flow,
    members,
    share,
    row,
    points,
    atoms,
    weights,
):
    needed = 2
    for r in range(len(bias)):
        i = last[r]
        # As long as only single steps are regretted, walk: to a point without regret, or to a pair that point at each
        # other.
        while abs(step[r, i]) == 1:
            j = i + step[r, i]
            if step[r, j] == -step[r, i]:
                stay, leave = _regret(bias, rounds, r, j, i), _regret(bias, rounds, r, i, j)
                put_pair(atoms, weights, r, min(i, j), (stay if i < j else leave) / (stay + leave))
                break
            i = j
        else:
            if step[r, i] == 0:
                top = i == bias.shape[1] - 1
                put_pair(atoms, weights, r, i - np.int64(top), 0.0 if top else 1.0)
                continue
            low, high = _reach(step, r, i)
            solved = False
            if high - low >= SMALL and not (outdated[r] and roaming[r]):
                if outdated[r]:
                    _censor(bias, rounds, step, r, recent, matrix[r], kind, members, share, row)
                    outdated[r] = False
                solved = _solve(bias, rounds, step, r, low, high, matrix[r], kind, flow, members, share, row)
            if solved:
                size = put_law(row, points, low, high + 1, atoms, weights, r)
            else:
                count = _fill(bias, rounds, step, r, low, high, flow, members)
                size = put_stationary(flow, count, members, share, atoms, weights, r)
            needed = max(needed, size)
    return needed


@kernel
def _regret(bias, rounds, r, i, j):
    """R_ij in units of 1/m²."""
    steps = float(j - i)
    return steps * (2.0 * bias[r, i] - rounds[r, i] * steps)


@kernel
def _targets(step, i):
    """The points that i regrets not to have played: from the first number up to, not including, the second."""
    return (i + 1, i + step + 1) if step > 0 else (i + step, i)


@kernel
def _reach(step, r, start):
    """The first and the last of the points that `start` leads to, which are an interval."""
    low = high = start
    down, up = start - 1, start
    while True:
        if up <= high:
            i = up
            up += 1
        elif down >= low:
            i = down
            down -= 1
        else:
            return low, high
        low, high = min(low, i + step[r, i]), max(high, i + step[r, i])


@kernel
def _fill(bias, rounds, step, r, low, high, flow, members):
    """The matrix on the points from low to high; returns how many there are."""
    count = high + 1 - low
    for k in range(count):
        members[k] = i = low + k
        for j in range(count):
            flow[k, j] = 0.0
        start, stop = _targets(step[r, i], i)
        for j in range(start, stop):
            flow[k, j - low] = _regret(bias, rounds, r, i, j)
    return count


@kernel
def _censor(bias, rounds, step, r, recent, matrix, kind, members, share, row):
    """Makes all points cold but the recent ones, whose rows are left to `_renew`.

    One after the other: a point's row is taken through those that are cold already, and then theirs through it. In the
    end the row of a cold point tells of a walk that starts there: for each hot point the probability to be the first,
    and for each cold one the time spent there before.
    """
    for i in range(len(matrix)):
        kind[r, i] = WAITING
    for k in range(recent.shape[1]):
        kind[r, recent[r, k]] = CHANGED
    for c in range(len(matrix)):
        if kind[r, c] == WAITING:
            _renew(bias, rounds, step, r, c, matrix, kind, members, share, row)
            kind[r, c] = COLD
            out = 0.0
            for j in range(len(matrix)):
                out += int(kind[r, j] != COLD) * matrix[c, j]
            # Nothing flows out of a closed set of cold points; the time of its last point is put down as 0.
            time = 1.0 / out if out > 0.0 else 0.0
            for j in range(matrix.shape[1]):
                matrix[c, j] *= time
            matrix[c, c] = time
            for i in range(c):
                part = matrix[i, c]
                if kind[r, i] == COLD and part > 0.0:
                    matrix[i, c] = 0.0
                    _add(matrix, i, part, c)


@kernel
def _renew(bias, rounds, step, r, i, matrix, kind, members, share, row):
    """Makes the row of i: what flows to each hot point in the end, and the time spent in each cold one on the way."""
    row[:] = 0.0
    cold = 0
    start, stop = _targets(step[r, i], i)
    for j in range(start, stop):
        # Without branches, which could not be predicted.
        regret, is_cold = _regret(bias, rounds, r, i, j), int(kind[r, j] == COLD)
        members[cold], share[cold] = j, regret
        cold += is_cold
        row[j] = (1 - is_cold) * regret
    _mix(row, cold, share, members, matrix)
    for j in range(matrix.shape[1]):
        matrix[i, j] = row[j]


@kernel
def _solve(bias, rounds, step, r, low, high, matrix, kind, flow, members, share, row):
    """The stationary law of a closed set among the points from low to high, to `row`; False if it takes more to tell.

    That is if a closed set has no hot point, or if a number is too large.
    """
    for i in range(low, high + 1):
        if kind[r, i] == CHANGED:
            _renew(bias, rounds, step, r, i, matrix, kind, members, share, row)
            kind[r, i] = READY
    hot = 0
    for i in range(low, high + 1):
        if kind[r, i] != COLD:
            members[hot] = i
            hot += 1
        elif matrix[i, i] == 0.0:
            return False
    for k in range(hot):
        for n in range(hot):
            flow[k, n] = matrix[members[k], members[n]]
    root = shares(flow, hot, share)
    share[:root] = 0.0
    row[:] = 0.0
    _mix(row, hot, share, members, matrix)
    for k in range(hot):
        row[members[k]] = share[k]
    total = 0.0
    for i in range(low, high + 1):
        total += row[i]
    for i in range(low, high + 1):
        row[i] /= total
    return total < HUGE


@kernel
def _add(matrix, i, part, c):
    """Adds a part of row c to row i. In a function of its own the loop runs twice as fast."""
    for j in range(matrix.shape[1]):
        matrix[i, j] += part * matrix[c, j]


@kernel
def _mix(row, count, share, members, matrix):
    """Adds to `row` the rows `members` in their shares; four at a time, which runs twice as fast."""
    k = 0
    while k + 3 < count:
        a, b, c, d = members[k], members[k + 1], members[k + 2], members[k + 3]
        p, q, s, t = share[k], share[k + 1], share[k + 2], share[k + 3]
        for j in range(matrix.shape[1]):
            row[j] += (p * matrix[a, j] + q * matrix[b, j]) + (s * matrix[c, j] + t * matrix[d, j])
        k += 4
    while k < count:
        for j in range(matrix.shape[1]):
            row[j] += share[k] * matrix[members[k], j]
        k += 1
