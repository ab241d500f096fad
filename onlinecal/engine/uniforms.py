"""Uniforms by index in compiled code: Philox 4x64-10, the numbers of `onlinecal.core.streams` and of NumPy.

A *generator* is seven numbers: first the two words of the key, as whole numbers of 64 bits. Then come the block that
was made last, at first −1, and its four uniforms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.engine.run import GENERATOR, HEADER, generator, kernel

#: the numbers of a generator
NUMBERS = HEADER - GENERATOR
KEY, BLOCK, UNIFORMS = 0, 2, 3
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
STEP = 2.0**-53


def generators(keys: Any, runs: int) -> Floats:
    """A generator for each run, (runs, 7), with these keys of a stream: one for each, one for all, or None."""
    made = np.zeros((runs, NUMBERS))
    made[:, BLOCK] = -1.0
    if keys is not None:
        made.view(np.uint64)[:, KEY:BLOCK] = keys
    return made


@kernel
def product(a, b):
    """The upper and the lower half of a product of 128 bits."""
    a0, a1, b0, b1 = a & LOW, a >> HALF, b & LOW, b >> HALF
    low, left, right = a0 * b0, a0 * b1, a1 * b0
    middle = (low >> HALF) + (left & LOW) + (right & LOW)
    return a1 * b1 + (left >> HALF) + (right >> HALF) + (middle >> HALF), a * b


@kernel
def four(first, second, counter):
    """The four words of a counter, for a key of two words."""
    a, b, c, d = np.uint64(counter), np.uint64(0), np.uint64(0), np.uint64(0)
    for _ in range(10):
        high, low = product(np.uint64(0xD2E7470EE14C6C93), a)
        over, under = product(np.uint64(0xCA5A826395121157), c)
        a, b, c, d = over ^ b ^ first, under, high ^ d ^ second, low
        first += np.uint64(0x9E3779B97F4A7C15)
        second += np.uint64(0xBB67AE8584CAA73B)
    return a, b, c, d


@kernel
def renew(numbers, block):
    """Makes the four uniforms of a block."""
    key = numbers.view(np.uint64)
    a, b, c, d = four(key[KEY], key[KEY + 1], block + 1)
    numbers[BLOCK] = block
    numbers[UNIFORMS], numbers[UNIFORMS + 1] = (a >> np.uint64(11)) * STEP, (b >> np.uint64(11)) * STEP
    numbers[UNIFORMS + 2], numbers[UNIFORMS + 3] = (c >> np.uint64(11)) * STEP, (d >> np.uint64(11)) * STEP


@kernel
def uniform(numbers, index):
    """Number `index`, from 0, of a generator, on [0, 1)."""
    block = index >> 2
    if numbers[BLOCK] != block:
        renew(numbers, block)
    return numbers[UNIFORMS + (index & 3)]


@kernel
def own_uniform(run, index):
    """Number `index`, from 0, of the stream that the player was given."""
    return uniform(generator(run), index)
