"""The sum of a Laplace kernel over past points, kept so that a root is found and a point is added in O(log t).

The points p_s, each with its residual r_s = y_s − p_s, are the entries of a tree: leaves hold up to `WIDE` points in
order, inner nodes up to `WIDE` children. At a point p between two neighbours the sum Σ_s r_s e^{−|p − p_s|/scale} is
e^{−p/scale}·(Σ of r_s e^{p_s/scale} to the left) + e^{p/scale}·(Σ of r_s e^{−p_s/scale} to the right); the first
kind of term is called rising, the second falling. An inner node keeps both sums of each child, and the sums over the
children up to it and from it on, so that a binary search in every node on the way leads to a change of sign.
"""

from __future__ import annotations

import math

import numpy as np

from onlinecal.core._compile import kernel
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

#: the most children of an inner node, and points in a leaf
WIDE = 64
#: the first whole numbers of the state: how many rounds have been told; how many inner nodes and leaves there is room
#: for, and are; the root; how many levels of inner nodes there are above the leaves
TOLD, ROOM_INNER, ROOM_LEAVES, INNER, LEAVES, ROOT, LEVELS, HEAD = range(8)
#: the first real numbers: what the squared norm of the errors is proved to be at most; all rising and falling terms
NORM, RISING, FALLING, SUMS = range(4)
#: the columns of an inner node: the first point below each child, e^{point/scale}, its sums, the sums up to it and from
#: it on; and those of a leaf: its points and their terms
KEY, EXPONENTIAL, RISE, FALL, LEFT, RIGHT, INNER_COLUMNS = range(7)
LEAF_COLUMNS = 3


def empty_tree(runs: int, scale: float) -> Memory:
    """State without points: one leaf, which is the root."""
    memory = Memory(runs, ints=HEAD, floats=SUMS, shared=[scale], scratch=2 * (WIDE + 1), memo=1)
    memory.ints[:, LEAVES] = 1
    make_room(memory, 1)
    return memory


def make_room(memory: Memory, points: int) -> None:
    """Room for so many more points: nodes split when they are full, so all but the root are half full at least."""
    inner, leaves = int(memory.ints[:, INNER].max()), int(memory.ints[:, LEAVES].max())
    had = memory.ints[0, ROOM_INNER], memory.ints[0, ROOM_LEAVES]
    more = 2 * points // WIDE + 2
    need_leaves = leaves + more
    need_inner = inner + 4 * more // WIDE + 8
    if need_leaves <= had[1] and need_inner <= had[0]:
        return
    # At least twice as much, so that what is copied stays in proportion to what is played.
    room_inner, room_leaves = max(need_inner, 2 * had[0]), max(need_leaves, 2 * had[1])
    old_ints, old_floats, runs = memory.ints, memory.floats, memory.runs
    memory.ints = np.zeros((runs, HEAD + room_leaves + room_inner * (1 + WIDE)), np.int64)
    memory.floats = np.empty((runs, SUMS + WIDE * (INNER_COLUMNS * room_inner + LEAF_COLUMNS * room_leaves)))
    for old, new, head, parts in (
        (old_ints, memory.ints, HEAD, ((had[1], room_leaves, 1), (had[0], room_inner, 1 + WIDE))),
        (
            old_floats,
            memory.floats,
            SUMS,
            ((had[1], room_leaves, WIDE * LEAF_COLUMNS), (had[0], room_inner, WIDE * INNER_COLUMNS)),
        ),
    ):
        new[:, :head] = old[:, :head]
        there, here = head, head
        for nodes, room, width in parts:
            new[:, here : here + nodes * width] = old[:, there : there + nodes * width]
            there, here = there + nodes * width, here + room * width
    memory.ints[:, ROOM_INNER], memory.ints[:, ROOM_LEAVES] = room_inner, room_leaves


# ---------------------------------------------------------------- what is proved, with any kernel


@kernel
def note_open(run, number):
    """Leaves on the round how many questions before it are open, of which S knows nothing."""
    memo(run)[0] = max(number - 1 - ints(run)[TOLD], 0)


@kernel
def raise_norm(run, p, residual):
    """Adds to NORM what a round may add to the squared norm of the errors."""
    ints(run)[TOLD] += 1
    floats(run)[NORM] += p * (1.0 - p) + 2.0 * abs(residual) * memo(run)[0]


# ---------------------------------------------------------------- where things are


@kernel
def _leaf(state, numbers, node):
    """Points, rising and falling terms of a leaf."""
    at = SUMS + node * WIDE * LEAF_COLUMNS
    return numbers[at : at + WIDE], numbers[at + WIDE : at + 2 * WIDE], numbers[at + 2 * WIDE : at + 3 * WIDE]


@kernel
def _inner(state, numbers, node):
    """The columns of an inner node, each of length WIDE."""
    at = SUMS + WIDE * (state[ROOM_LEAVES] * LEAF_COLUMNS + node * INNER_COLUMNS)
    return numbers[at : at + WIDE * INNER_COLUMNS].reshape(INNER_COLUMNS, WIDE)


@kernel
def _children(state, node):
    """Numbers of the children of an inner node: of inner nodes, or on the lowest level of leaves."""
    at = HEAD + state[ROOM_LEAVES] + node * (1 + WIDE) + 1
    return state[at : at + WIDE]


@kernel
def _size_at(state, node, level):
    """Where the size of a node is; level 0 is that of the leaves. Behind an inner node's size are its children."""
    return HEAD + node if level == 0 else HEAD + state[ROOM_LEAVES] + node * (1 + WIDE)


# ---------------------------------------------------------------- the forecast


@kernel
def _gap_root(low, high, rising, falling, scale):
    """The point of [low, high] at which S, positive at low and not at high, vanishes, to the last digit.

    Newton steps where they stay inside the bracket and halve it, bisection elsewhere.
    """
    p = 0.5 * (low + high)
    width = high - low
    for _ in range(200):
        up, down = math.exp(-p / scale) * rising, math.exp(p / scale) * falling
        value = up + down + 0.5 - p
        if value > 0.0:
            low = p
        elif value < 0.0:
            high = p
        else:
            return p
        step = p - value * scale / (down - up - scale)
        if not (low < step < high and high - low < 0.6 * width):
            step = 0.5 * (low + high)
            if not low < step < high:  # neighbouring numbers
                return p
        if step == p:
            return p
        width = high - low
        p = step
    return p


@kernel
def _positive(p, exponential, rising, falling):
    """Whether S > 0 at a point: `rising` is the sum to the left of it, `falling` that of the others."""
    return rising / exponential + exponential * falling + 0.5 - p > 0.0


@kernel
def _root(state, numbers, room, scale):
    """0 if S(0) ≤ 0, else 1 if S(1) ≥ 0, else a root of S."""
    if numbers[FALLING] + 0.5 <= 0.0:
        return 0.0
    if math.exp(-1.0 / scale) * numbers[RISING] - 0.5 >= 0.0:
        return 1.0
    node, level, end = state[ROOT], state[LEVELS], 1.0
    if level == 0:
        first = _leaf(state, numbers, node)[0][0] if state[_size_at(state, node, 0)] > 0 else 1.0
    else:
        first = _inner(state, numbers, node)[KEY, 0]
    if first == 1.0 or not _positive(first, math.exp(first / scale), 0.0, numbers[FALLING]):
        # S changes sign before all points.
        return _gap_root(0.0, first, 0.0, numbers[FALLING], scale)
    before, after = 0.0, 0.0
    while level > 0:
        columns, size = _inner(state, numbers, node), state[_size_at(state, node, level)]
        low, high = 0, size
        while high - low > 1:
            middle = (low + high) >> 1
            rising, falling = before + columns[LEFT, middle - 1], after + columns[RIGHT, middle]
            if _positive(columns[KEY, middle], columns[EXPONENTIAL, middle], rising, falling):
                low = middle
            else:
                high = middle
        if high < size:
            end = columns[KEY, high]
            after += columns[RIGHT, high]
        if low > 0:
            before += columns[LEFT, low - 1]
        node = _children(state, node)[low]
        level -= 1
    points, rise, fall = _leaf(state, numbers, node)
    size = state[_size_at(state, node, 0)]
    left, right = room[: WIDE + 1], room[WIDE + 1 :]
    left[0], right[size] = before, after
    for i in range(size):
        left[i + 1] = left[i] + rise[i]
        right[size - 1 - i] = right[size - i] + fall[size - 1 - i]
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) >> 1
        if _positive(points[middle], math.exp(points[middle] / scale), left[middle], right[middle]):
            low = middle
        else:
            high = middle
    if high < size:
        end = points[high]
    return _gap_root(points[low], end, left[low + 1], right[low + 1], scale)


@law
def laplace_root(run, number):
    note_open(run, number)
    law_values(run)[0] = _root(ints(run), floats(run), scratch(run), shared(run)[0])
    law_weights(run)[0] = 1.0
    return 1


# ---------------------------------------------------------------- the past


@kernel
def _sums_up(columns, size):
    """Makes the sums up to each child, and from it on, anew."""
    left = right = 0.0
    for j in range(size):
        left += columns[RISE, j]
        columns[LEFT, j] = left
        right += columns[FALL, size - 1 - j]
        columns[RIGHT, size - 1 - j] = right


@kernel
def _split_leaf(state, numbers, node):
    """Moves the upper half of a full leaf to a new one, whose number it returns."""
    new, half = state[LEAVES], WIDE // 2
    state[LEAVES] += 1
    # The columns of a leaf lie one after the other.
    old = SUMS + node * WIDE * LEAF_COLUMNS
    shift = (new - node) * WIDE * LEAF_COLUMNS - half
    for column in range(LEAF_COLUMNS):
        for i in range(old + column * WIDE + half, old + (column + 1) * WIDE):
            numbers[i + shift] = numbers[i]
    state[_size_at(state, node, 0)], state[_size_at(state, new, 0)] = half, WIDE - half
    return new


@kernel
def _split_inner(state, numbers, node, level):
    """Moves the upper half of a full inner node to a new one, whose number it returns."""
    new, half = state[INNER], WIDE // 2
    state[INNER] += 1
    old_columns, new_columns = _inner(state, numbers, node), _inner(state, numbers, new)
    old_children, new_children = _children(state, node), _children(state, new)
    for i in range(half, WIDE):
        new_children[i - half] = old_children[i]
        for column in range(INNER_COLUMNS):
            new_columns[column, i - half] = old_columns[column, i]
    state[_size_at(state, node, level)], state[_size_at(state, new, level)] = half, WIDE - half
    _sums_up(old_columns, half)
    _sums_up(new_columns, WIDE - half)
    return new


@kernel
def _describe(state, numbers, node, level, columns, j, scale):
    """Writes what an inner node keeps of its child j, but for the sums over several children."""
    if level == 0:
        points, rise, fall = _leaf(state, numbers, node)
        first, rising, falling = points[0], 0.0, 0.0
        for i in range(state[_size_at(state, node, 0)]):
            rising += rise[i]
            falling += fall[i]
    else:
        below, size = _inner(state, numbers, node), state[_size_at(state, node, level)]
        first, rising, falling = below[KEY, 0], below[LEFT, size - 1], below[RIGHT, 0]
    columns[KEY, j], columns[EXPONENTIAL, j] = first, math.exp(first / scale)
    columns[RISE, j], columns[FALL, j] = rising, falling


@kernel
def _split_child(state, numbers, node, level, j, scale):
    """Splits the full child j of an inner node, which is not full itself."""
    columns, children, size_at = (
        _inner(state, numbers, node),
        _children(state, node),
        _size_at(state, node, level),
    )
    child, size = children[j], state[size_at]
    new = _split_leaf(state, numbers, child) if level == 1 else _split_inner(state, numbers, child, level - 1)
    for i in range(size, j + 1, -1):
        children[i] = children[i - 1]
        for column in range(LEFT):
            columns[column, i] = columns[column, i - 1]
    children[j + 1] = new
    state[size_at] = size + 1
    _describe(state, numbers, child, level - 1, columns, j, scale)
    _describe(state, numbers, new, level - 1, columns, j + 1, scale)
    _sums_up(columns, size + 1)


@kernel
def _full(state, node, level):
    return state[_size_at(state, node, level)] == WIDE


@kernel
def _add(state, numbers, p, rising, falling, scale):
    """Adds a point; full nodes are split on the way down, so that there is always room above."""
    numbers[RISING] += rising
    numbers[FALLING] += falling
    node, level = state[ROOT], state[LEVELS]
    if _full(state, node, level):
        root = state[INNER]
        state[INNER] += 1
        state[ROOT], state[LEVELS] = root, level + 1
        _children(state, root)[0] = node
        state[_size_at(state, root, level + 1)] = 1
        _split_child(state, numbers, root, level + 1, 0, scale)
        node, level = root, level + 1
    while level > 0:
        columns, children = _inner(state, numbers, node), _children(state, node)
        j = _last_at_most(columns[KEY], state[_size_at(state, node, level)], p)
        if _full(state, children[j], level - 1):
            _split_child(state, numbers, node, level, j, scale)
            if columns[KEY, j + 1] <= p:
                j += 1
        if p < columns[KEY, j]:  # before all points
            columns[KEY, j], columns[EXPONENTIAL, j] = p, math.exp(p / scale)
        columns[RISE, j] += rising
        columns[FALL, j] += falling
        for i in range(j, state[_size_at(state, node, level)]):
            columns[LEFT, i] += rising
        for i in range(j + 1):
            columns[RIGHT, i] += falling
        node = children[j]
        level -= 1
    points, rise, fall = _leaf(state, numbers, node)
    size_at = _size_at(state, node, 0)
    size = state[size_at]
    j = _last_at_most(points, size, p)
    if size > 0 and points[j] == p:  # one entry for each level: 0 and 1 are played often
        rise[j] += rising
        fall[j] += falling
        return
    j += int(size > 0 and points[j] < p)
    for i in range(size, j, -1):
        points[i], rise[i], fall[i] = points[i - 1], rise[i - 1], fall[i - 1]
    points[j], rise[j], fall[j] = p, rising, falling
    state[size_at] = size + 1


@kernel
def _last_at_most(keys, size, p):
    """The last of the ascending keys that is at most p; the first if there is none."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) >> 1
        if keys[middle] <= p:
            low = middle
        else:
            high = middle
    return low


@learn
def laplace_learn(run, number, size, drawn, outcome):
    state, numbers, scale, p = ints(run), floats(run), shared(run)[0], law_values(run)[drawn]
    residual = outcome - p
    raise_norm(run, p, residual)
    _add(state, numbers, p, residual * math.exp(p / scale), residual * math.exp(-p / scale), scale)
    return 0
