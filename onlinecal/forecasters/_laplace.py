"""The sum of a Laplace kernel over past points, kept so that a root is found and a point is added in O(log t).

The points p_s, each with its residual r_s = y_s − p_s, are the entries of a tree: leaves hold up to `LEAF` points in
order, inner nodes up to `WIDE` children. At a point p between two neighbours the sum Σ_s r_s e^{−|p − p_s|/scale} is
e^{−p/scale}·(Σ of r_s e^{p_s/scale} to the left) + e^{p/scale}·(Σ of r_s e^{−p_s/scale} to the right); the first
kind of term is called rising, the second falling. An inner node keeps both sums of each child, and the sums over the
children up to it and from it on, so that one look at every node on the way leads to a change of sign.
"""

from __future__ import annotations

import math

import numpy as np

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.rounds.steps import (
    Memory,
    address_of,
    floats,
    floats_at,
    ints,
    ints_at,
    law,
    law_values,
    law_weights,
    learn,
    memo,
    scratch,
    shared,
)

#: the most children of an inner node, and points in a leaf
WIDE, LEAF = 64, 32
#: the first whole numbers of the state: how many rounds have been told; how many inner nodes and leaves there is room
#: for, and are; the root; how many levels of inner nodes there are above the leaves
TOLD, ROOM_INNER, ROOM_LEAVES, INNER, LEAVES, ROOT, LEVELS, HEAD = range(8)
#: the first real numbers: what the squared norm of the errors is proved to be at most; all rising and falling terms
NORM, RISING, FALLING, SUMS = range(4)
#: the columns of an inner node: the first point below each child, e^{point/scale}, its sums, the sums up to it and from
#: it on; a leaf has the first four of its points
KEY, EXPONENTIAL, RISE, FALL, LEFT, RIGHT, INNER_COLUMNS = range(7)
LEAF_COLUMNS = 4


def empty_tree(runs: int, scale: float) -> Memory:
    """State without points: one leaf, which is the root."""
    memory = Memory(
        runs, ints=HEAD, floats=SUMS, shared=[scale, math.exp(-1.0 / scale)], scratch=LEAF + 1, memo=1
    )
    memory.ints[:, LEAVES] = 1
    make_room(memory, 1)
    return memory


def make_room(memory: Memory, points: int) -> None:
    """Room for so many more points: nodes split when they are full, so all but the root are half full at least."""
    inner, leaves = int(memory.ints[:, INNER].max()), int(memory.ints[:, LEAVES].max())
    had = memory.ints[0, ROOM_INNER], memory.ints[0, ROOM_LEAVES]
    more = 2 * points // LEAF + 2
    need_leaves = leaves + more
    need_inner = inner + 4 * more // WIDE + 8
    if need_leaves <= had[1] and need_inner <= had[0]:
        return
    # At least twice as much of what is short, so that what is copied stays in proportion to what is played.
    room_inner = had[0] if need_inner <= had[0] else max(need_inner, 2 * had[0])
    room_leaves = had[1] if need_leaves <= had[1] else max(need_leaves, 2 * had[1])
    old_ints, old_floats, runs = memory.ints, memory.floats, memory.runs
    memory.ints = np.zeros((runs, HEAD + room_leaves + room_inner * (1 + WIDE)), np.int64)
    memory.floats = np.empty(
        (runs, SUMS + WIDE * INNER_COLUMNS * room_inner + LEAF * LEAF_COLUMNS * room_leaves)
    )
    for old, new, head, parts in (
        (old_ints, memory.ints, HEAD, ((had[1], room_leaves, 1), (had[0], room_inner, 1 + WIDE))),
        (
            old_floats,
            memory.floats,
            SUMS,
            ((had[1], room_leaves, LEAF * LEAF_COLUMNS), (had[0], room_inner, WIDE * INNER_COLUMNS)),
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
    """The points of a leaf with their terms, one point after the other, since what is behind a new one is moved."""
    at = SUMS + node * LEAF * LEAF_COLUMNS
    return floats_at(address_of(numbers) + 8 * at, (LEAF, LEAF_COLUMNS))


@kernel
def _inner(state, numbers, node):
    """The columns of an inner node, each of length WIDE."""
    at = SUMS + state[ROOM_LEAVES] * LEAF * LEAF_COLUMNS + node * WIDE * INNER_COLUMNS
    # By address, and not as a slice: with a form that is known loops over it work on several children at a time.
    return floats_at(address_of(numbers) + 8 * at, (INNER_COLUMNS, WIDE))


@kernel
def _children(state, node):
    """Numbers of the children of an inner node: of inner nodes, or on the lowest level of leaves."""
    at = HEAD + state[ROOM_LEAVES] + node * (1 + WIDE) + 1
    return ints_at(address_of(state) + 8 * at, WIDE)


@kernel
def _size_at(state, node, level):
    """Where the size of a node is; level 0 is that of the leaves. Behind an inner node's size are its children."""
    return HEAD + node if level == 0 else HEAD + state[ROOM_LEAVES] + node * (1 + WIDE)


# ---------------------------------------------------------------- the forecast


@part_of_kernel
def _gap_root(low, high, exponential, rising, falling, scale):
    """The point of [low, high] at which S, positive at low and not at high, vanishes, to the last digit.

    No point lies between the two, and S(low + d) = up·e^{−d/scale} + down·e^{d/scale} + ½ − low − d, which the
    exponential of low/scale gives. Newton steps from low where they stay inside the bracket and are half as long as the
    last, bisection elsewhere. The last step is one that leaves less than the distance of two numbers, about δ²·S″/2S′,
    or is taken from where rounding hides whether S is 0.
    """
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
    """0 if S(0) ≤ 0, else 1 if S(1) ≥ 0, else a root of S; `at_one` is e^{−1/scale}."""
    if numbers[FALLING] + 0.5 <= 0.0:
        return 0.0
    if at_one * numbers[RISING] - 0.5 >= 0.0:
        return 1.0
    node, level, end = state[ROOT], state[LEVELS], 1.0
    # Sums of the terms to the left and to the right of the node. No sum is a difference: where the scale is small, the
    # falling terms to the right are far smaller than those to the left, and rounding of these would hide them.
    before, after, all_falling = 0.0, 0.0, numbers[FALLING]
    if level > 0:
        columns = _inner(state, numbers, node)
        first, exponential = columns[KEY, 0], columns[EXPONENTIAL, 0]
    else:
        first, exponential = _leaf(state, numbers, node)[0, KEY], _leaf(state, numbers, node)[0, EXPONENTIAL]
        if state[_size_at(state, node, 0)] == 0:
            first, exponential = 1.0, 1.0
    if first == 1.0 or not _positive(first, exponential, 0.0, all_falling):
        # S changes sign before all points.
        return _gap_root(0.0, first, 1.0, 0.0, all_falling, scale)
    while level > 0:
        # S is positive at the first point of the node and not where it ends: so it is at the last child at which it
        # is positive and the one behind. Without a jump in it the loop works on several children at a time.
        columns, size, low = _inner(state, numbers, node), state[_size_at(state, node, level)], 0
        for i in range(1, size):
            rising, falling = before + columns[LEFT, i - 1], after + columns[RIGHT, i]
            low = max(low, i if _positive(columns[KEY, i], columns[EXPONENTIAL, i], rising, falling) else 0)
        if low + 1 < size:
            end = columns[KEY, low + 1]
            after += columns[RIGHT, low + 1]
        if low > 0:
            before += columns[LEFT, low - 1]
        node = _children(state, node)[low]
        level -= 1
    points, size, low = _leaf(state, numbers, node), state[_size_at(state, node, 0)], 0
    room[size] = after
    for i in range(size - 1, -1, -1):
        room[i] = room[i + 1] + points[i, FALL]
    before += points[0, RISE]
    while low + 1 < size and _positive(
        points[low + 1, KEY], points[low + 1, EXPONENTIAL], before, room[low + 1]
    ):
        low += 1
        before += points[low, RISE]
    if low + 1 < size:
        end = points[low + 1, KEY]
    return _gap_root(points[low, KEY], end, points[low, EXPONENTIAL], before, room[low + 1], scale)


@law
def laplace_root(run, number):
    note_open(run, number)
    law_values(run)[0] = _root(ints(run), floats(run), scratch(run), shared(run)[0], shared(run)[1])
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
    new, half = state[LEAVES], LEAF // 2
    state[LEAVES] += 1
    old_points, new_points = _leaf(state, numbers, node), _leaf(state, numbers, new)
    for i in range(half, LEAF):
        for column in range(LEAF_COLUMNS):
            new_points[i - half, column] = old_points[i, column]
    state[_size_at(state, node, 0)], state[_size_at(state, new, 0)] = half, LEAF - half
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
def _describe(state, numbers, node, level, columns, j):
    """Writes what an inner node keeps of its child j, but for the sums over several children."""
    if level == 0:
        points, rising, falling = _leaf(state, numbers, node), 0.0, 0.0
        first, exponential = points[0, KEY], points[0, EXPONENTIAL]
        for i in range(state[_size_at(state, node, 0)]):
            rising += points[i, RISE]
            falling += points[i, FALL]
    else:
        below, size = _inner(state, numbers, node), state[_size_at(state, node, level)]
        first, exponential = below[KEY, 0], below[EXPONENTIAL, 0]
        rising, falling = below[LEFT, size - 1], below[RIGHT, 0]
    columns[KEY, j], columns[EXPONENTIAL, j] = first, exponential
    columns[RISE, j], columns[FALL, j] = rising, falling


@kernel
def _split_child(state, numbers, node, level, j):
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
    _describe(state, numbers, child, level - 1, columns, j)
    _describe(state, numbers, new, level - 1, columns, j + 1)
    _sums_up(columns, size + 1)


@kernel
def _full(state, node, level):
    return state[_size_at(state, node, level)] == (LEAF if level == 0 else WIDE)


@part_of_kernel
def _add(state, numbers, p, exponential, residual):
    """Adds a point; full nodes are split on the way down, so that there is always room above."""
    rising, falling = residual * exponential, residual / exponential
    numbers[RISING] += rising
    numbers[FALLING] += falling
    node, level = state[ROOT], state[LEVELS]
    if _full(state, node, level):
        root = state[INNER]
        state[INNER] += 1
        state[ROOT], state[LEVELS] = root, level + 1
        _children(state, root)[0] = node
        state[_size_at(state, root, level + 1)] = 1
        _split_child(state, numbers, root, level + 1, 0)
        node, level = root, level + 1
    while level > 0:
        columns, children = _inner(state, numbers, node), _children(state, node)
        j = _last_at_most(columns[KEY], state[_size_at(state, node, level)], p)
        if _full(state, children[j], level - 1):
            _split_child(state, numbers, node, level, j)
            if columns[KEY, j + 1] <= p:
                j += 1
        if p < columns[KEY, j]:  # before all points
            columns[KEY, j], columns[EXPONENTIAL, j] = p, exponential
        columns[RISE, j] += rising
        columns[FALL, j] += falling
        for i in range(state[_size_at(state, node, level)]):
            columns[LEFT, i] += rising if i >= j else 0.0
            columns[RIGHT, i] += falling if i <= j else 0.0
        node = children[j]
        level -= 1
    points, size_at = _leaf(state, numbers, node), _size_at(state, node, 0)
    size = state[size_at]
    j = size
    while j > 0 and points[j - 1, KEY] > p:
        j -= 1
    if j > 0 and points[j - 1, KEY] == p:  # one entry for each level: 0 and 1 are played often
        points[j - 1, RISE] += rising
        points[j - 1, FALL] += falling
        return
    for i in range(size, j, -1):
        key, grown, rise, fall = points[i - 1, 0], points[i - 1, 1], points[i - 1, 2], points[i - 1, 3]
        points[i, 0], points[i, 1], points[i, 2], points[i, 3] = key, grown, rise, fall
    points[j, KEY], points[j, EXPONENTIAL], points[j, RISE], points[j, FALL] = p, exponential, rising, falling
    state[size_at] = size + 1


@kernel
def _last_at_most(keys, size, p):
    """The last of the ascending keys that is at most p; the first if there is none."""
    at_most = 0
    for i in range(size):  # all of them, as several are compared at a time
        at_most += int(keys[i] <= p)
    return max(at_most - 1, 0)


@learn
def laplace_learn(run, number, size, drawn, outcome):
    state, numbers, scale, p = ints(run), floats(run), shared(run)[0], law_values(run)[drawn]
    residual = outcome - p
    raise_norm(run, p, residual)
    _add(state, numbers, p, math.exp(p / scale), residual)
    return 0
