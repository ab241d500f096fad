"""Arrays that are written once and then only read; and the rule by which values fall into cells."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import part_of_kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def locked(array: NDArray[Any]) -> Any:
    """The array's numbers, only to be read. Kernels then need no second form for other arrays."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def cells(v: Any, m: Any) -> Any:
    """The number j of the cell [j/m, (j + 1)/m) of v in [0, 1]; m for v = 1. Edges are rounded to floats."""
    nearest = np.rint(v * m)
    return np.int64(nearest) - (v < nearest / m)


#: the same of one value, in kernels
cell = part_of_kernel(cells)
