"""Laws that a matrix of flows between grid points leaves as they are; and Foster–Vohra on all pairs.

A round changes one row of the matrix of pairwise regrets, mostly that of a likely point. So each run keeps the matrix
with the unlikely points eliminated, in two stages. A round solves for the few likeliest. The others get the time spent
in them on the way. When an eliminated point is played, its stage is done again, with the points sorted by the
last law. All sums are of positive terms.
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
    shared,
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
def state_either(run, low, share, rest):
    """The law with these weights on the point `low` and the next; atoms without weight come last."""
    here, there = low, low + 1
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
#: the likeliest points, which are left after the first stage, and after the second
LEFT, LAST_LEFT = 24, 8
#: the first places of the state: the least and the largest point of the law. The first stage that is outdated, or 2.
#: Whether nothing flows out of a set of eliminated points. Whether a round was told since the law was kept
LOW, HIGH, OUTDATED, CLOSED, TOLD, STATE = range(6)


def pairwise_player(m: int) -> CompiledForecaster:
    """A player on the grid of m steps."""
    # The state, after its first places: m·E_i; n_i; how far regrets go, in steps; the stage that eliminates a point, or
    # 2. Then whether it was played since its row was made; and points, the likeliest last.
    # Each stage has a matrix, with a last row for a law. Columns without a point make rows a multiple of 16 long.
    points, columns = m + 1, (m // 16 + 1) * 16
    memory = Memory(
        ints=[m // 2, m // 2, 0, 0, 0] + [0] * (5 * points) + list(range(points)),
        floats=2 * (points + 1) * columns,
        shared=range(points),
        shared_ints=range(points),
        scratch=points * points + 2 * points,
    )
    return CompiledForecaster(_state, _learn, memory, size=max(2, points), grid=grid_of(m))


@kernel
def _counters(run):
    """m·E_i, n_i and steps; and the stages, the points played and the order."""
    state, points = ints(run)[STATE:], len(shared_ints(run))
    counters = state[:points], state[points : 2 * points], state[2 * points : 3 * points], shared(run)
    return counters, (state[3 * points : 4 * points], state[4 * points : 5 * points], state[5 * points :])


@learn
def _learn(run, number, size, drawn, outcome):
    (bias, rounds, step, _), places = _counters(run)
    stage, played = places[0], places[1]
    state, i, m = ints(run), law_atoms(run)[drawn], len(bias) - 1
    # The law after each round is kept, asked for or not. No question may change the player, even in a last digit.
    if state[TOLD] == 1:
        _keep_law(run)
    count_regrets(bias, rounds, i, outcome)
    # In steps of 1/m, i regrets a step of d in the direction of its bias if and only if d · n < 2m|E|.
    wide = max(2 * abs(bias[i]) - 1, 0) // rounds[i]
    step[i] = min(wide, m - i) if bias[i] > 0 else -min(wide, i)
    played[i] = 1
    state[OUTDATED] = min(state[OUTDATED], stage[i])
    # While only single steps are regretted, walk to a point without regret, or a pair that point at each other.
    while abs(step[i]) == 1 and step[i + step[i]] != -step[i]:
        i += step[i]
    state[LOW], state[HIGH] = _reach(step, i)
    state[TOLD] = int(state[HIGH] - state[LOW] >= SMALL)
    return 0


@law
def _state(run, number):
    low, high, m = ints(run)[LOW], ints(run)[HIGH], len(shared_ints(run)) - 1
    if low == high:
        return state_either(run, m - 1, 0.0, 1.0) if low == m else state_either(run, low, 1.0, 0.0)
    counters, _ = _counters(run)
    if high - low == 1:
        up, down = _regret(counters, low, high), _regret(counters, high, low)
        return state_either(run, low, down / (up + down), up / (up + down))
    if high - low >= SMALL:
        if ints(run)[TOLD] == 1:
            _keep_law(run)
        return state_law(run, _matrices(run)[1, -1], shared_ints(run), low, high + 1)
    flow, members, share = _room(run)
    count = _fill(counters, low, high, flow, members)
    return state_stationary(run, flow, count, members, share)


@kernel
def _matrices(run):
    """The matrices of both stages, the second with the kept law in its last row."""
    rows = len(shared_ints(run)) + 1
    return floats(run).reshape(2, rows, len(floats(run)) // (2 * rows))


@kernel
def _room(run):
    """Room for a matrix of flows, for its points and for their weights."""
    points, room = len(shared_ints(run)), scratch(run)
    flow, rest = room[: points * points].reshape(points, points), room[points * points :]
    return flow, whole(rest[:points]), rest[points:]


@kernel
def _keep_law(run):
    """Keeps the stationary law of a closed set of many points."""
    state, matrices, (flow, members, share) = ints(run), _matrices(run), _room(run)
    (counters, places), low, high, law = _counters(run), state[LOW], state[HIGH], matrices[1, -1]
    _renew(state, counters, places, matrices, share)
    state[TOLD] = 0
    if not _solve(state, places, low, high, matrices, flow, members, share):
        count = _fill(counters, low, high, flow, members)
        root = shares(flow, count, share)
        law[:] = 0.0
        for k in range(root, count):
            law[members[k]] = share[k]


@kernel
def _regret(counters, i, j):
    """R_ij in units of 1/m²."""
    bias, rounds, _, grid = counters
    steps = grid[j] - grid[i]
    return steps * (2.0 * bias[i] - rounds[i] * steps)


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
def _put_regrets(counters, i, low, count, row):
    """Puts the regrets of i against `count` points from `low` on, 0 without a regret, at the start of a row."""
    bias, rounds, _, grid = counters
    twice, number = 2.0 * bias[i], float(rounds[i])
    for j in range(count):
        steps = grid[low + j] - grid[i]
        regret = steps * (twice - number * steps)
        row[j] = regret if regret > 0.0 else 0.0


@kernel
def _fill(counters, low, high, flow, members):
    """The matrix on the points from low to high; returns how many there are."""
    count = high + 1 - low
    for k in range(count):
        members[k] = low + k
        _put_regrets(counters, low + k, low, count, flow[k])
    return count


@kernel
def _renew(state, counters, places, matrices, share):
    """Does stages again from the first that is outdated, and renews rows of points that were played."""
    (stage, played, order), first, second, outdated = places, matrices[0], matrices[1], state[OUTDATED]
    points, law = len(order), second[len(order)]
    left, last = max(0, points - LEFT), points - LAST_LEFT
    if outdated == 0:
        _sort(order, law)
        _eliminate(counters, order, 0, left, first, first, share)
        played[:] = 1
    for i in order[left if outdated < 2 else last :]:
        if played[i] == 1:
            _put(counters, i, 0, first, first)
            _pass(first, i, order[:left], share)
    if outdated < 2:
        _sort(order[left:], law)
        _sort(order[last:], counters[3])
        _eliminate(counters, order, left, last, first, second, share)
        state[CLOSED] = 0
        for k in range(points):
            i = order[k]
            stage[i] = int(k >= left) + int(k >= last)
            if k < last and matrices[stage[i], i, i] == 0.0:
                state[CLOSED] = 1
    for i in order[last:]:
        if played[i] == 1 or outdated < 2:
            _put(counters, i, left, first, second)
            _pass(second, i, order[left:last], share)
    for i in order[0 if outdated < 2 else last :]:
        played[i] = 0
    state[OUTDATED] = 2


@kernel
def _sort(order, law):
    """Sorts points by a law, the likeliest last; or by other numbers."""
    for k in range(1, len(order)):
        i, n = order[k], k
        while n > 0 and law[order[n - 1]] > law[i]:
            order[n] = order[n - 1]
            n -= 1
        order[n] = i


@kernel
def _eliminate(counters, order, start, stop, first, matrix, share):
    """Eliminates the points from `start` up to, not including, `stop` of the order, four at a time."""
    # Their rows become the probability that a point is the first reached of the others. For eliminated points it is the
    # time in them before.
    for begin in range(start, stop, 4):
        new = order[begin : min(begin + 4, stop)]
        for i in new:
            _put(counters, i, start, first, matrix)
            _pass(matrix, i, order[start:begin], share)
        for k in range(len(new)):
            c, out = new[k], 0.0
            for j in order[begin + k + 1 :]:
                out += matrix[c, j]
            # Nothing flows out of a closed set of eliminated points; the time of its last point is put down as 0.
            time = 1.0 / out if out > 0.0 else 0.0
            for j in range(matrix.shape[1]):
                matrix[c, j] *= time
            matrix[c, c] = time
            for i in new:
                if i != c:
                    _pass(matrix, i, new[k : k + 1], share)
        for i in order[start:begin]:
            _pass(matrix, i, new, share)


@kernel
def _put(counters, i, start, first, matrix):
    """Puts row i as it is before the stage that begins at `start`: regrets, or what the first stage left."""
    if start == 0:
        _put_regrets(counters, i, 0, len(matrix) - 1, matrix[i])
        for j in range(len(matrix) - 1, matrix.shape[1]):
            matrix[i, j] = 0.0
    else:
        for j in range(matrix.shape[1]):
            matrix[i, j] = first[i, j]


@kernel
def _pass(matrix, i, others, share):
    """Puts in place of the flow from i to eliminated points what comes of it; the flow itself goes to `share`."""
    for j in others:
        share[j], matrix[i, j] = matrix[i, j], 0.0
    # Four at a time, which runs twice as fast. Points have no flow to most of the others.
    k = 0
    while k + 3 < len(others):
        a, b, c, d = others[k], others[k + 1], others[k + 2], others[k + 3]
        p, q, s, t = share[a], share[b], share[c], share[d]
        if (p + q) + (s + t) > 0.0:
            for j in range(matrix.shape[1]):
                matrix[i, j] += (p * matrix[a, j] + q * matrix[b, j]) + (s * matrix[c, j] + t * matrix[d, j])
        k += 4
    while k < len(others):
        a, p = others[k], share[others[k]]
        for j in range(matrix.shape[1]):
            matrix[i, j] += p * matrix[a, j]
        k += 1


@kernel
def _solve(state, places, low, high, matrices, flow, members, share):
    """The stationary law of a closed set, to the last row. False without a likely point, or with too large numbers."""
    (stage, _, order), matrix, points, count = places, matrices[1], len(places[2]), 0
    if state[CLOSED] == 1:
        for i in range(low, high + 1):
            if stage[i] < 2 and matrices[stage[i], i, i] == 0.0:
                return False
    for i in order[points - LAST_LEFT :]:
        if low <= i <= high:
            members[count] = i
            count += 1
    if count == 0:
        return False
    for k in range(count):
        for n in range(count):
            flow[k, n] = matrix[members[k], members[n]]
    root = shares(flow, count, share)
    for j in range(matrix.shape[1]):
        matrix[points, j] = 0.0
    for k in range(root, count):
        matrix[points, members[k]] = share[k]
    _pass(matrix, points, members[:count], share)
    for i in members[:count]:
        matrix[points, i] = share[i]
    total = 0.0
    for i in range(low, high + 1):
        total += matrix[points, i]
    part = 1.0 / total
    for i in range(low, high + 1):
        matrix[points, i] *= part
    return total < HUGE
