"""The sum of a Laplace kernel over past points: a root is found, and a point is added, in O(log t).

The points p_s, with residuals r_s = y_s − p_s, are the entries of a tree. At p the sum Σ_s r_s e^{−|p − p_s|/scale} is
e^{−p/scale}·L + e^{p/scale}·R. L has the rising terms r_s e^{p_s/scale} to the left, R the falling terms r_s
e^{−p_s/scale} to the right. An inner node keeps both sums of each child, and those over the children before it and from
it on. The path to the forecast travels with the round.
"""

import math

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.core.memory import free_memory
from onlinecal.rounds.steps import (
    Memory,
    floats,
    ints,
    law,
    law_values,
    law_weights,
    learn,
    memo,
    scratch,
    shared,
)
from onlinecal.rounds.words import address_of, floats_at, ints_at

#: the most children of an inner node, with the bits of their number, and the most points in a leaf
WIDE, BITS, LEAF = 32, 5, 20
#: the whole numbers of the state: rounds told; places of the next node and the root; levels above the leaves
TOLD, NEXT, ROOT, LEVELS = range(4)
#: the first real numbers: a bound on the squared norm of the errors; all rising and falling terms. Then come the nodes
#: in the order in which they were made, each with its size as its first word
NORM, RISING, FALLING, SUMS = range(4)
#: the columns of an inner node: the first point below each child, e^{point/scale}, its sums, those before, from it.
#: Before them are the places of its children. A leaf has the first two columns, and residuals
KEY, EXPONENTIAL, RISE, FALL, LEFT, RIGHT, INNER_COLUMNS = range(7)
RESIDUAL, LEAF_COLUMNS = 2, 3
#: words of a node
INNER_WORDS, LEAF_WORDS = 1 + WIDE * (1 + INNER_COLUMNS), 1 + LEAF * LEAF_COLUMNS
#: the memo of a round: open questions before it; the path to its point, `BITS` for each level
OPEN, PATH, MEMOS = range(3)
#: in place of a path
UNKNOWN = -1
#: bytes that a point takes at most, in nodes that are half full
POINT = 80


class Tree(Memory):
    """State without points: one leaf, which is the root; with room for `points`, or for half of the free memory."""

    def __init__(self, scale: float, points: int) -> None:
        first = [0.0] * (SUMS + 1) + [math.inf] * LEAF + [1.0] * LEAF + [0.0] * LEAF
        super().__init__(
            ints=[0, len(first), SUMS, 0], floats=first, shared=[scale, math.exp(-1.0 / scale)],
            scratch=2 * LEAF + 2, memo=MEMOS, used=NEXT,
        )  # fmt: skip
        self.points = points

    def spread(self, runs: range) -> None:
        super().spread(runs)
        free = int(min(free_memory(), 1e15)) // (len(runs) * POINT)
        make_room(self, self.points if self.points <= free else max(1, free // 2))


def make_room(memory: Memory, points: int) -> None:
    """Makes room for more points: whatever their order, all nodes but the root are half full at least."""
    nodes = (int(memory.ints[:, TOLD].max()) + points) // (LEAF // 2) + 1
    need, room = SUMS + nodes * LEAF_WORDS, memory.floats.shape[1]
    while nodes > 1:
        nodes = nodes // (WIDE // 2) + 1
        need += nodes * INNER_WORDS
    if need > room:  # at least twice as much, so that what is moved stays in proportion to what is played
        memory.widen(max(need, 2 * room))


@kernel
def note_open(run, number):
    """Leaves on the round how many questions before it are open, of which S knows nothing."""
    memo(run)[OPEN] = max(number - 1 - ints(run)[TOLD], 0)


@kernel
def raise_norm(run, p, residual):
    """Adds to NORM what a round may add to the squared norm of the errors."""
    ints(run)[TOLD] += 1
    floats(run)[NORM] += p * (1.0 - p) + 2.0 * abs(residual) * memo(run)[OPEN]


@kernel
def _words(numbers, node):
    """A node's size and, in an inner one, where its children are. The words are whole numbers among real ones."""
    # By address, as loops over an array of known form work on several children at a time.
    return ints_at(address_of(numbers) + 8 * node, 1 + WIDE)


@kernel
def _leaf(numbers, node):
    """The columns of a leaf, each of length LEAF."""
    return floats_at(address_of(numbers) + 8 * (node + 1), LEAF_COLUMNS * LEAF).reshape(LEAF_COLUMNS, LEAF)


@kernel
def _inner(numbers, node):
    """The columns of an inner node, each of length WIDE."""
    return floats_at(address_of(numbers) + 8 * (node + 1 + WIDE), INNER_COLUMNS * WIDE).reshape(
        INNER_COLUMNS, WIDE
    )


@kernel
def _new_node(state, words):
    node = state[NEXT]
    state[NEXT] = node + words
    return node


@part_of_kernel
def _gap_root(low, high, exponential, rising, falling, scale):
    """The point of [low, high] at which S, positive at low and not at high, vanishes, to the last digit."""
    # S(low + d) = up·e^{−d/scale} + down·e^{d/scale} + ½ − low − d. Newton steps inside the bracket, or bisection,
    # until a step leaves about δ²·S″/2S′, less than two floats are apart.
    up, down, room = rising / exponential, exponential * falling, high - low
    begin, end, d, growth, last = 0.0, room, 0.0, 1.0, 2.0 * room
    for _ in range(200):
        rise, fall = up / growth, down * growth
        value = rise + fall + 0.5 - low - d
        if abs(value) <= 2.0**-53 * (abs(rise) + abs(fall) + 1.0):
            break
        if value > 0.0:
            begin = d
        else:
            end = d
        slope = fall - rise - scale
        step = d - value * scale / slope
        change = abs(step - d)
        if begin < step < end and change < 0.5 * last:
            if change * change * abs(rise + fall) <= 1e-17 * scale * abs(slope):
                d = step
                break
        else:
            step = 0.5 * (begin + end)
            change = end - begin
            if not begin < step < end:
                break
        last, d = change, step
        growth = math.exp(d / scale)
    return min(low + d, high)


@kernel
def _positive(p, exponential, rising, falling):
    """Whether S > 0 at a point: `rising` is the sum to the left of it, `falling` that of the others."""
    return rising + exponential * (exponential * falling + 0.5 - p) > 0.0


@part_of_kernel
def _root(state, numbers, room, scale, at_one):
    """0 if S(0) ≤ 0, else 1 if S(1) ≥ 0, else a root of S, and the path to its place; `at_one` is e^{−1/scale}."""
    if numbers[FALLING] + 0.5 <= 0.0:
        return 0.0, UNKNOWN
    if at_one * numbers[RISING] - 0.5 >= 0.0:
        return 1.0, UNKNOWN
    node, level, end, path = state[ROOT], state[LEVELS], 1.0, 0
    # No sum is a difference: where the scale is small, rounding would hide the falling terms to the right.
    before, after, all_falling = 0.0, 0.0, numbers[FALLING]
    if level > 0:
        first, exponential = _inner(numbers, node)[KEY, 0], _inner(numbers, node)[EXPONENTIAL, 0]
    else:
        first, exponential = _leaf(numbers, node)[KEY, 0], _leaf(numbers, node)[EXPONENTIAL, 0]
    if not _positive(first, exponential, 0.0, all_falling):
        # S changes sign before all points.
        return _gap_root(0.0, min(first, 1.0), 1.0, 0.0, all_falling, scale), UNKNOWN
    while level > 0:
        # The last child at which S is positive, without a branch, so that the loop is vectorised.
        columns, words, low = _inner(numbers, node), _words(numbers, node), 0
        for i in range(WIDE):
            rising, falling = before + columns[LEFT, i], after + columns[RIGHT, i]
            low = max(low, i if _positive(columns[KEY, i], columns[EXPONENTIAL, i], rising, falling) else 0)
        before += columns[LEFT, low]
        if low + 1 < words[0]:
            end = columns[KEY, low + 1]
            after += columns[RIGHT, low + 1]
        node, path = words[1 + low], WIDE * path + low
        level -= 1
    points, size, low = _leaf(numbers, node), _words(numbers, node)[0], 0
    room[0], room[2 * LEAF + 1] = before, after
    for i in range(LEAF):
        room[1 + i] = points[RESIDUAL, i] * points[EXPONENTIAL, i]
        room[LEAF + 1 + i] = points[RESIDUAL, i] / points[EXPONENTIAL, i]
    for i in range(LEAF):
        room[1 + i] += room[i]
        room[2 * LEAF - i] += room[2 * LEAF + 1 - i]
    for i in range(LEAF):
        positive = _positive(points[KEY, i], points[EXPONENTIAL, i], room[i], room[LEAF + 1 + i])
        low = max(low, i if positive else 0)
    if low + 1 < size:
        end = points[KEY, low + 1]
    rising, falling = room[low + 1], room[LEAF + 2 + low]
    p = _gap_root(points[KEY, low], end, points[EXPONENTIAL, low], rising, falling, scale)
    return p, WIDE * path + low if p < end else UNKNOWN


@law
def laplace_root(run, number):
    note_open(run, number)
    p, path = _root(ints(run), floats(run), scratch(run), shared(run)[0], shared(run)[1])
    law_values(run)[0], memo(run)[PATH] = p, path
    law_weights(run)[0] = 1.0
    return 1


@kernel
def _sums_up(columns, size):
    """Makes the sums up to each child, and from it on."""
    left = right = 0.0
    for j in range(size):
        columns[LEFT, j] = left
        left += columns[RISE, j]
        right += columns[FALL, size - 1 - j]
        columns[RIGHT, size - 1 - j] = right


@kernel
def _empty_places(columns, begin, end):
    """Makes places empty: S is positive at none, and they add nothing."""
    for i in range(begin, end):
        columns[KEY, i] = math.inf
        for column in range(1, len(columns)):
            columns[column, i] = 1.0 if column == EXPONENTIAL else 0.0


@part_of_kernel
def _open_place(columns, column, places, j):
    """Moves what is at place j and behind it by one."""
    for i in range(places - 1, 0, -1):
        columns[column, i] = columns[column, i - 1] if i > j else columns[column, i]


@kernel
def _halve(old, new, columns, size):
    """Moves the upper half of the places of a full node to a new one."""
    half = size // 2
    for column in range(columns):
        for i in range(half, size):
            new[column, i - half] = old[column, i]
    _empty_places(old, half, size)
    _empty_places(new, size - half, size)


@kernel
def _split_leaf(state, numbers, node):
    """Moves the upper half of a full leaf to a new one, which it returns."""
    new, half = _new_node(state, LEAF_WORDS), LEAF // 2
    _halve(_leaf(numbers, node), _leaf(numbers, new), LEAF_COLUMNS, LEAF)
    _words(numbers, node)[0], _words(numbers, new)[0] = half, LEAF - half
    return new


@kernel
def _split_inner(state, numbers, node):
    """Moves the upper half of a full inner node to a new one, which it returns."""
    new, half = _new_node(state, INNER_WORDS), WIDE // 2
    old_columns, new_columns = _inner(numbers, node), _inner(numbers, new)
    old_words, new_words = _words(numbers, node), _words(numbers, new)
    for i in range(half, WIDE):
        new_words[1 + i - half] = old_words[1 + i]
    old_words[0], new_words[0] = half, WIDE - half
    _halve(old_columns, new_columns, LEFT, WIDE)
    _sums_up(old_columns, half)
    _sums_up(new_columns, WIDE - half)
    return new


@kernel
def _describe(numbers, node, level, columns, j):
    """Writes what an inner node keeps of its child j, but for the sums over several children."""
    if level == 0:
        points, rising, falling = _leaf(numbers, node), 0.0, 0.0
        first, exponential = points[KEY, 0], points[EXPONENTIAL, 0]
        for i in range(LEAF - LEAF // 2):  # it has just been split, and places without a point add nothing
            rising += points[RESIDUAL, i] * points[EXPONENTIAL, i]
            falling += points[RESIDUAL, i] / points[EXPONENTIAL, i]
    else:
        below, last = _inner(numbers, node), _words(numbers, node)[0] - 1
        first, exponential = below[KEY, 0], below[EXPONENTIAL, 0]
        rising, falling = below[LEFT, last] + below[RISE, last], below[RIGHT, 0]
    columns[KEY, j], columns[EXPONENTIAL, j] = first, exponential
    columns[RISE, j], columns[FALL, j] = rising, falling


@kernel
def _child(path, level):
    """Which child a path takes in its node of this level; on level 0, which point."""
    return (path >> (BITS * level)) % WIDE


@kernel
def _node_on(state, numbers, path, level):
    """The node of this level on a path."""
    node = state[ROOT]
    for above in range(state[LEVELS], level, -1):
        node = _words(numbers, node)[1 + _child(path, above)]
    return node


@kernel
def _split(state, numbers, path):
    """Splits the full leaf on a path, and those above it that are full then."""
    level, full = 0, True
    while full:
        node = _node_on(state, numbers, path, level)
        new = _split_leaf(state, numbers, node) if level == 0 else _split_inner(state, numbers, node)
        level += 1
        if level > state[LEVELS]:
            root = _new_node(state, INNER_WORDS)
            _words(numbers, root)[0], _words(numbers, root)[1] = 1, node
            _empty_places(_inner(numbers, root), 0, WIDE)
            state[ROOT], state[LEVELS] = root, level
        above, j = _node_on(state, numbers, path, level), _child(path, level)
        columns, words = _inner(numbers, above), _words(numbers, above)
        size = words[0]
        for i in range(WIDE, j + 2, -1):
            words[i] = words[i - 1]
        for column in range(LEFT):
            _open_place(columns, column, WIDE, j + 1)
        words[2 + j], words[0] = new, size + 1
        _describe(numbers, node, level - 1, columns, j)
        _describe(numbers, new, level - 1, columns, j + 1)
        _sums_up(columns, size + 1)
        full = size + 1 == WIDE


@kernel
def _last_at_most(keys, p):
    """The last of the ascending keys that is at most p; else the first."""
    last = 0
    for i in range(len(keys)):  # all of them, as several are compared at a time
        last = max(last, i if keys[i] <= p else 0)
    return last


@kernel
def _path_to(state, numbers, p):
    node, path = state[ROOT], 0
    for _ in range(state[LEVELS]):
        j = _last_at_most(_inner(numbers, node)[KEY], p)
        node, path = _words(numbers, node)[1 + j], WIDE * path + j
    return WIDE * path + _last_at_most(_leaf(numbers, node)[KEY], p)


@kernel
def _is_place(keys, j, p):
    """Whether the last of the ascending keys that is at most p is the one at place j."""
    return j < len(keys) and keys[j] <= p and (j + 1 == len(keys) or p < keys[j + 1])


@kernel
def _leads_to(state, numbers, path, p):
    """Whether a path leads to the place of p, whatever it is: it comes with the round."""
    node = state[ROOT]
    if path >> (BITS * (state[LEVELS] + 1)) != 0:
        return False
    for level in range(state[LEVELS], 0, -1):
        j = _child(path, level)
        if not _is_place(_inner(numbers, node)[KEY], j, p):
            return False
        node = _words(numbers, node)[1 + j]
    return _is_place(_leaf(numbers, node)[KEY], _child(path, 0), p)


@part_of_kernel
def _add(state, numbers, path, p, exponential, residual):
    """Adds a point behind the place to which a path leads, or before the first."""
    rising, falling = residual * exponential, residual / exponential
    numbers[RISING] += rising
    numbers[FALLING] += falling
    node = state[ROOT]
    for level in range(state[LEVELS], 0, -1):
        columns, j = _inner(numbers, node), _child(path, level)
        if p < columns[KEY, j]:  # before all points
            columns[KEY, j], columns[EXPONENTIAL, j] = p, exponential
        columns[RISE, j] += rising
        columns[FALL, j] += falling
        for i in range(WIDE):
            columns[LEFT, i] += rising if i > j else 0.0
            columns[RIGHT, i] += falling if i <= j else 0.0
        node = _words(numbers, node)[1 + j]
    points, words, j = _leaf(numbers, node), _words(numbers, node), _child(path, 0)
    if points[KEY, j] == p:  # one entry for each level: 0 and 1 are played often
        points[RESIDUAL, j] += residual
        return
    if points[KEY, j] < p:
        j += 1
    for column in range(LEAF_COLUMNS):
        _open_place(points, column, LEAF, j)
    points[KEY, j], points[EXPONENTIAL, j], points[RESIDUAL, j] = p, exponential, residual
    words[0] += 1
    if words[0] == LEAF:
        _split(state, numbers, path)


@learn
def laplace_learn(run, number, size, drawn, outcome):
    state, numbers, scale, p = ints(run), floats(run), shared(run)[0], law_values(run)[drawn]
    path = int(memo(run)[PATH])
    if not _leads_to(state, numbers, path, p):  # as where other rounds have been told since
        path = _path_to(state, numbers, p)
    residual = outcome - p
    raise_norm(run, p, residual)
    _add(state, numbers, path, p, math.exp(p / scale), residual)
    return 0
