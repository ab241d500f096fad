"""The uniforms of `Stream` in compiled code: any number of any stream, without drawing those before it."""

import numpy as np

from onlinecal.core._compile import kernel, part_of_kernel

# Philox 4x64-10 (Salmon, Moraes, Dror and Shaw 2011), as in NumPy: each counter gives four numbers.
_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_HALF, _BELOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_STEP = 2.0**-53


@part_of_kernel
def _product(a, b):
    """The upper and the lower 64 bits of a product, by its four parts of 32 bits."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _BELOW, b >> _HALF, b & _BELOW
    middle = a_high * b_low + (a_low * b_low >> _HALF)
    carried = a_low * b_high + (middle & _BELOW)
    return a_high * b_high + (middle >> _HALF) + (carried >> _HALF), a * b


@kernel
def _four(first, second, counter):
    """The four 64-bit numbers of a counter, for the key of two words."""
    a, b, c, d = np.uint64(counter), np.uint64(0), np.uint64(0), np.uint64(0)
    for _ in range(10):
        (above, below), (over, under) = _product(_M0, a), _product(_M1, c)
        a, b, c, d = over ^ b ^ first, under, above ^ d ^ second, below
        first += _W0
        second += _W1
    return a, b, c, d


@part_of_kernel
def fill_uniforms(keys, first, out):
    """Numbers first, first + 1, … of a stream, into a vector."""
    i, n = 0, len(out)
    while i < n:
        at = first + i
        a, b, c, d = _four(keys[0], keys[1], (at >> 2) + 1)
        for lane in range(at & 3, min(4, (at & 3) + n - i)):
            word = a if lane == 0 else b if lane == 1 else c if lane == 2 else d
            out[i] = (word >> np.uint64(11)) * _STEP
            i += 1
