"""How the inner steps are compiled: one decorator, so that all kernels follow one arithmetic.

The machine code is cached on disk. No `fastmath`: the order of floating-point operations is part of the
result, and a measure gives the same digits with compilation switched off (`NUMBA_DISABLE_JIT=1`).
"""

from numba import njit

kernel = njit(cache=True, error_model="numpy", nogil=True)
