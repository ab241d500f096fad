"""The one rule by which a value in [0, 1] falls into a cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinecal.core._compile import part_of_kernel


def cells(v: Any, m: Any) -> Any:
    """The number j of the cell [j/m, (j + 1)/m) of v in [0, 1], with edges as rounded to floats; m of v = 1."""
    nearest = np.rint(v * m)
    return np.int64(nearest) - (v < nearest / m)


#: the same of one value, in kernels
cell = part_of_kernel(cells)
