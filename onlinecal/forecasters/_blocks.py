"""The sum of a Laplace kernel over past points, in blocks: a root is found, and a point added, in O(√t).

At p the sum over past points p_s with residuals r_s = y_s − p_s, Σ_s r_s e^{−|p − p_s|/scale}, is e^{−p/scale}·L +
e^{p/scale}·R. L has the rising terms r_s e^{p_s/scale} to the left, R the falling terms r_s e^{−p_s/scale} to the
right. Points are sorted, in blocks that are half full at least, but the last one. Of each block there are both sums,
those of the blocks before it, and those from it on. Where there are too many blocks, all become twice as large.
"""

import math

import numpy as np

from onlinecal.engine.steps import Coming, Run, kernel, note, shared, state
from onlinecal.forecasters.baselines import write_value

#: the state: a bound on the squared norm of the errors, and the rounds told. The sums of all rising and falling terms.
#: How many blocks there are, and how many points one has at most. The table of the blocks, then the blocks
NORM, TOLD, RISING, FALLING, BLOCKS, MOST, TABLE = range(7)
#: of each block: its first point, e^{point/scale}, and its sums. Those before it, and from it on. Where it is, its size
FIRST, EXPONENTIAL, RISE, FALL, LEFT, RIGHT, WHERE, POINTS, ROWS = range(9)
#: of each point: itself, e^{point/scale}, and its residual
KEY, EXP, RESIDUAL, COLUMNS = range(4)
#: points in a block at first, and how many times as many blocks there may be
FEW, WIDE = 20, 6


def empty_blocks() -> list[float]:
    """The state without points: one block."""
    return [0.0, 0.0, 0.0, 0.0, 1.0, FEW] + [0.0] * (ROWS * WIDE * FEW + COLUMNS * FEW)


def numbers_for(coming: Coming) -> int:
    """The numbers of a state for the rounds to come, in blocks that are half full."""
    # MOST was doubled where there were 3·MOST² points at least.
    most = max(FEW, math.ceil(2.0 * math.sqrt(coming.asked / 3.0)))
    return TABLE + ROWS * WIDE * most + COLUMNS * 2 * (coming.asked + most)


@kernel
def blocks_of(mine):
    """The table of all blocks, and their points."""
    wide = WIDE * int(mine[MOST])
    return mine[TABLE : TABLE + ROWS * wide].reshape(ROWS, wide), mine[TABLE + ROWS * wide :]


@kernel
def block_at(points, most, where):
    """The columns of a block."""
    return points[COLUMNS * most * where : COLUMNS * most * (where + 1)].reshape(COLUMNS, most)


@kernel
def note_open(run, number):
    """Notes how many questions before this one are open, of which S knows nothing."""
    note(run)[0] = max(number - 1 - state(run)[TOLD], 0.0)


@kernel
def raise_norm(run, p, residual):
    """Adds to NORM what a round may add to the squared norm of the errors."""
    mine = state(run)
    mine[TOLD] += 1
    mine[NORM] += p * (1.0 - p) + 2.0 * abs(residual) * note(run)[0]


@kernel
def gap_root(low, high, exponential, rising, falling, scale):
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
def positive(p, exponential, rising, falling):
    """Whether S > 0 at a point: `rising` is the sum to the left of it, `falling` that of the others."""
    return rising + exponential * (exponential * falling + 0.5 - p) > 0.0


@kernel
def root(mine, scale, at_one):
    """0 if S(0) ≤ 0, else 1 if S(1) ≥ 0, else a root of S; `at_one` is e^{−1/scale}."""
    if mine[FALLING] + 0.5 <= 0.0:
        return 0.0
    if at_one * mine[RISING] - 0.5 >= 0.0:
        return 1.0
    (table, points), blocks, low, end = blocks_of(mine), int(mine[BLOCKS]), 0, 1.0
    if table[POINTS, 0] == 0.0:
        return gap_root(0.0, 1.0, 1.0, 0.0, mine[FALLING], scale)
    if not positive(table[FIRST, 0], table[EXPONENTIAL, 0], 0.0, mine[FALLING]):
        # S changes sign before all points.
        return gap_root(0.0, min(table[FIRST, 0], 1.0), 1.0, 0.0, mine[FALLING], scale)
    first, exponential, left, right = table[FIRST], table[EXPONENTIAL], table[LEFT], table[RIGHT]
    for i in range(blocks):  # without a branch, so that several are compared at a time
        low = max(low, i if positive(first[i], exponential[i], left[i], right[i]) else 0)
    # No sum is a difference: where the scale is small, rounding would hide the falling terms to the right.
    rising, after = table[LEFT, low], 0.0
    if low + 1 < blocks:
        end, after = table[FIRST, low + 1], table[RIGHT, low + 1]
    block, size = block_at(points, int(mine[MOST]), int(table[WHERE, low])), int(table[POINTS, low])
    falls, low, up = np.empty(size + 1), 0, rising + block[RESIDUAL, 0] * block[EXP, 0]
    falls[size] = after
    for i in range(size - 1, -1, -1):
        falls[i] = block[RESIDUAL, i] / block[EXP, i] + falls[i + 1]
    for i in range(size):
        here = positive(block[KEY, i], block[EXP, i], rising, falls[i])
        rising += block[RESIDUAL, i] * block[EXP, i]
        if here:
            low, up = i, rising
    if low + 1 < size:
        end = block[KEY, low + 1]
    return gap_root(block[KEY, low], end, block[EXP, low], up, falls[low + 1], scale)


def say_root(run: Run, number: int) -> int:
    """Shared are the scale and e^{−1/scale}; the note is how many questions before are open."""
    note_open(run, number)
    return write_value(run, root(state(run), shared(run)[0], shared(run)[1]))


def learn_point(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    residual = outcome - forecast
    raise_norm(run, forecast, residual)
    add_point(state(run), forecast, math.exp(forecast / shared(run)[0]), residual)
    return 0


@kernel
def last_at_most(keys, p):
    """The last of the ascending keys that is at most p; else the first."""
    return max(np.searchsorted(keys, p, side="right") - 1, 0)


@kernel
def add_point(mine, p, exponential, residual):
    (table, points), blocks, most = blocks_of(mine), int(mine[BLOCKS]), int(mine[MOST])
    rising, falling, b = (
        residual * exponential,
        residual / exponential,
        last_at_most(table[FIRST, :blocks], p),
    )
    mine[RISING] += rising
    mine[FALLING] += falling
    table[RISE, b] += rising
    table[FALL, b] += falling
    behind, before = table[LEFT, b + 1 : blocks], table[RIGHT, : b + 1]
    for i in range(len(behind)):
        behind[i] += rising
    for i in range(len(before)):
        before[i] += falling
    block, size = block_at(points, most, int(table[WHERE, b])), int(table[POINTS, b])
    j = np.searchsorted(block[KEY, :size], p)
    if j < size and block[KEY, j] == p:  # one entry for each level: 0 and 1 are played often
        block[RESIDUAL, j] += residual
        return
    for column in block:
        for i in range(size, j, -1):
            column[i] = column[i - 1]
    block[KEY, j], block[EXP, j], block[RESIDUAL, j] = p, exponential, residual
    table[FIRST, b], table[EXPONENTIAL, b], table[POINTS, b] = block[KEY, 0], block[EXP, 0], size + 1
    if size + 1 == most:
        split(mine, b)


@kernel
def describe(table, points, most, b, where, size):
    """Writes what the table has of a block, but for the sums over several."""
    block, rising, falling = block_at(points, most, where), 0.0, 0.0
    for i in range(size):
        rising += block[RESIDUAL, i] * block[EXP, i]
        falling += block[RESIDUAL, i] / block[EXP, i]
    table[FIRST, b], table[EXPONENTIAL, b] = block[KEY, 0], block[EXP, 0]
    table[RISE, b], table[FALL, b], table[WHERE, b], table[POINTS, b] = rising, falling, where, size


@kernel
def sum_up(table, blocks):
    """Makes the sums before each block, and from it on."""
    left = right = 0.0
    for b in range(blocks):
        table[LEFT, b] = left
        left += table[RISE, b]
        right += table[FALL, blocks - 1 - b]
        table[RIGHT, blocks - 1 - b] = right


@kernel
def split(mine, b):
    """Moves the upper half of a full block to a new one. Where the table is full then, all are enlarged."""
    (table, points), blocks, most = blocks_of(mine), int(mine[BLOCKS]), int(mine[MOST])
    half, where = most // 2, int(table[WHERE, b])
    block_at(points, most, blocks)[:, : most - half] = block_at(points, most, where)[:, half:]
    for i in range(blocks, b + 1, -1):
        for row in range(ROWS):
            table[row, i] = table[row, i - 1]
    describe(table, points, most, b, where, half)
    describe(table, points, most, b + 1, blocks, most - half)
    mine[BLOCKS] = blocks + 1
    sum_up(table, blocks + 1)
    if blocks + 1 == WIDE * most:
        enlarge(mine)


@kernel
def enlarge(mine):
    """Puts all points into blocks of twice as many, half full."""
    (table, points), blocks, most, count = blocks_of(mine), int(mine[BLOCKS]), int(mine[MOST]), 0
    every = np.empty((COLUMNS, int(table[POINTS, :blocks].sum())))
    for b in range(blocks):
        size = int(table[POINTS, b])
        every[:, count : count + size] = block_at(points, most, int(table[WHERE, b]))[:, :size]
        count += size
    blocks, mine[MOST] = (count + most - 1) // most, 2 * most
    mine[BLOCKS], (table, points) = blocks, blocks_of(mine)
    for b in range(blocks):
        size = min(most, count - b * most)
        block_at(points, 2 * most, b)[:, :size] = every[:, b * most : b * most + size]
        describe(table, points, 2 * most, b, b, size)
    sum_up(table, blocks)
