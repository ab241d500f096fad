"""Laws that a matrix of flows between grid points leaves as they are; and Foster–Vohra on all pairs.

A round changes one row of the matrix of pairwise regrets, and plays come back to the same few points. So each run keeps
its matrix with the cold points, those not played lately, eliminated. A round solves for the hot points alone, and the
cold ones get the time spent in them on the way. When a cold point is played, the matrix is made again once play has
come back to known points. Where play roams each round is solved by itself. All sums are of positive terms.
"""

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.forecasters.base import grid_of
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.steps import (
    Memory,
    floats,
    ints,
    law,
    law_atoms,
    law_weights,
    learn,
    scratch,
    shared_ints,
)

#: the least flow out of a point; the largest weight relative to the first, before all are scaled down
TINY, HUGE = 1e-100, 1e200


@kernel
def count_regrets(bias, rounds, i, outcome):
    """Counts a round that played i: m·E_i and n_i, on which the regrets rest."""
    bias[i] += (len(bias) - 1) * outcome - i
    rounds[i] += 1


@kernel
def state_stationary(run, flow, count, members, share):
    """States the stationary law of a closed set that the first of `members` leads to; `flow` is used up."""
    root = shares(flow, count, share)
    return state_law(run, share, members, root, count)


@kernel
def shares(flow, count, share):
    """The stationary law of a closed set that the first point leads to, in `share`; returns where the set begins."""
    # Elimination without subtraction (Grassmann, Taksar and Heyman 1985): every weight is right to nearly all digits. A
    # point without flow to those before it ends the search: it is in a closed set with those eliminated earlier.
    root = 0
    for n in range(count - 1, 0, -1):
        out = 0.0
        for j in range(n):
            out += flow[n, j]
        if out == 0.0:
            root = n
            break
        for i in range(n):
            part = flow[i, n] / out
            flow[i, n] = part
            if part > 0.0:
                for j in range(n):
                    flow[i, j] += part * flow[n, j]
    share[root] = total = 1.0
    for n in range(root + 1, count):
        mass = 0.0
        for i in range(root, n):
            mass += share[i] * flow[i, n]
        share[n] = mass
        total += mass
        if total > HUGE:
            for i in range(root, n + 1):
                share[i] /= HUGE
            total /= HUGE
    for n in range(root, count):
        share[n] /= total
    return root


@kernel
def state_law(run, share, points, start, stop):
    """States the law with weight share[k] on points[k], for k from `start` up to, not including, `stop`."""
    atoms, weights, size = law_atoms(run), law_weights(run), 0
    for k in range(start, stop):
        if share[k] > 0.0:
            atoms[size], weights[size] = points[k], share[k]
            size += 1
    return size


@kernel
def state_either(run, low, share):
    """The law with weight `share` on the point `low` and the rest on the next; atoms without weight come last."""
    here, there, rest = low, low + 1, 1.0 - share
    if share == 0.0:
        here, there, share, rest = there, here, rest, share
    atoms, weights = law_atoms(run), law_weights(run)
    atoms[0], weights[0], atoms[1], weights[1] = here, share, there, rest
    return 2


@kernel
def whole(numbers):
    """Room for floats as room for as many whole numbers."""
    return numbers.view(np.int64)


#: up to this many points a set is solved as it stands
SMALL = 16
#: kinds of points: cold; hot with a row to be renewed, or in order; yet to be made cold
COLD, CHANGED, READY, WAITING = 0, 1, 2, 3
#: the first places of the state: the point played last; whether cold ones were played since; whether play roams
LAST, OUTDATED, ROAMING, STATE = 0, 1, 2, 3


def pairwise_player(m: int) -> CompiledForecaster:
    """A player on the grid of m steps."""
    # The state, after its first places: m·E_i; n_i; how far regrets go, in steps; kinds of points; the points played
    # last. Columns without a point make rows a multiple of 16 long.
    points, columns = m + 1, (m // 16 + 1) * 16
    recent = list(range(min(max(8, m // 3), 20, points)))
    memory = Memory(
        ints=[m // 2, 1, 1] + [0] * (4 * points) + recent,
        floats=points * columns,
        shared_ints=range(points),
        scratch=points * points + 2 * points + columns,
    )
    return CompiledForecaster(_state, _learn, memory, size=max(2, points), grid=grid_of(m))


@kernel
def _counters(run):
    """m·E_i, n_i and steps, and behind them the kinds and the recent points."""
    state, points = ints(run)[STATE:], len(shared_ints(run))
    counters = state[:points], state[points : 2 * points], state[2 * points : 3 * points]
    return counters, state[3 * points : 4 * points], state[4 * points :]


@learn
def _learn(run, number, size, drawn, outcome):
    counters, kind, recent = _counters(run)
    bias, rounds, step = counters
    state, i, m = ints(run), law_atoms(run)[drawn], len(bias) - 1
    state[LAST] = i
    count_regrets(bias, rounds, i, outcome)
    # In steps of 1/m, i regrets a step of d in the direction of its bias if and only if d · n < 2m|E|.
    wide = max(2 * abs(bias[i]) - 1, 0) // rounds[i]
    step[i] = min(wide, m - i) if bias[i] > 0 else -min(wide, i)
    if kind[i] == COLD:
        state[OUTDATED] = 1
    else:
        kind[i] = CHANGED
    j = i
    state[ROAMING] = 1
    for k in range(len(recent)):
        recent[k], j = j, recent[k]
        if j == i:
            state[ROAMING] = 0
            break
    return 0


@law
def _state(run, number):
    counters, kind, recent = _counters(run)
    state, step, m = ints(run), counters[2], len(kind) - 1
    i = state[LAST]
    # While only single steps are regretted, walk to a point without regret, or a pair that point at each other.
    while abs(step[i]) == 1:
        j = i + step[i]
        if step[j] == -step[i]:
            stay, leave = _regret(counters, j, i), _regret(counters, i, j)
            return state_either(run, min(i, j), (stay if i < j else leave) / (stay + leave))
        i = j
    if step[i] == 0:
        return state_either(run, i - int(i == m), 0.0 if i == m else 1.0)
    points, room = m + 1, scratch(run)
    flow, rest = room[: points * points].reshape(points, points), room[points * points :]
    members, share, row = whole(rest[:points]), rest[points : 2 * points], rest[2 * points :]
    low, high = _reach(step, i)
    if high - low >= SMALL and not (state[OUTDATED] == 1 and state[ROAMING] == 1):
        matrix = floats(run).reshape(points, len(row))
        if state[OUTDATED] == 1:
            _censor(counters, recent, matrix, kind, members, share, row)
            state[OUTDATED] = 0
        if _solve(counters, low, high, matrix, kind, flow, members, share, row):
            return state_law(run, row, shared_ints(run), low, high + 1)
    count = _fill(counters, low, high, flow, members)
    return state_stationary(run, flow, count, members, share)


@kernel
def _regret(state, i, j):
    """R_ij in units of 1/m²."""
    steps = float(j - i)
    bias, rounds = state[0], state[1]
    return steps * (2.0 * bias[i] - rounds[i] * steps)


@kernel
def _targets(step, i):
    """The points that i regrets not to have played: from the first number up to, not including, the second."""
    return (i + 1, i + step + 1) if step > 0 else (i + step, i)


@kernel
def _reach(step, start):
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
        low, high = min(low, i + step[i]), max(high, i + step[i])


@kernel
def _fill(state, low, high, flow, members):
    """The matrix on the points from low to high; returns how many there are."""
    step = state[2]
    count = high + 1 - low
    for k in range(count):
        members[k] = i = low + k
        for j in range(count):
            flow[k, j] = 0.0
        start, stop = _targets(step[i], i)
        for j in range(start, stop):
            flow[k, j - low] = _regret(state, i, j)
    return count


@kernel
def _censor(state, recent, matrix, kind, members, share, row):
    """Makes all points cold but the recent ones; rows of cold ones are then of walks from there."""
    # These are the probabilities of hot points to be the first, and the times in cold ones before.
    for i in range(len(matrix)):
        kind[i] = WAITING
    for k in range(len(recent)):
        kind[recent[k]] = CHANGED
    for c in range(len(matrix)):
        if kind[c] == WAITING:
            _renew(state, c, matrix, kind, members, share, row)
            kind[c] = COLD
            out = 0.0
            for j in range(len(matrix)):
                out += int(kind[j] != COLD) * matrix[c, j]
            # Nothing flows out of a closed set of cold points; the time of its last point is put down as 0.
            time = 1.0 / out if out > 0.0 else 0.0
            for j in range(matrix.shape[1]):
                matrix[c, j] *= time
            matrix[c, c] = time
            for i in range(c):
                part = matrix[i, c]
                if kind[i] == COLD and part > 0.0:
                    matrix[i, c] = 0.0
                    _add(matrix, i, part, c)


@kernel
def _renew(state, i, matrix, kind, members, share, row):
    """Makes the row of i: the flow to each hot point in the end, and the time in cold ones before."""
    row[:] = 0.0
    cold = 0
    start, stop = _targets(state[2][i], i)
    for j in range(start, stop):
        # Without branches, which could not be predicted.
        regret, is_cold = _regret(state, i, j), int(kind[j] == COLD)
        members[cold], share[cold] = j, regret
        cold += is_cold
        row[j] = (1 - is_cold) * regret
    _mix(row, cold, share, members, matrix)
    for j in range(matrix.shape[1]):
        matrix[i, j] = row[j]


@kernel
def _solve(state, low, high, matrix, kind, flow, members, share, row):
    """The stationary law of a closed set, to `row`; False without a hot point, or with too large numbers."""
    for i in range(low, high + 1):
        if kind[i] == CHANGED:
            _renew(state, i, matrix, kind, members, share, row)
            kind[i] = READY
    hot = 0
    for i in range(low, high + 1):
        if kind[i] != COLD:
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
