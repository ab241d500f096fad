"""Totals that lie on two heights: those at some T beside those at the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onlinecal.growth.contrasts import ROUNDING, beside, orthonormal

Floats = NDArray[np.float64]


def two_heights(logarithms: Floats, logs: Floats, marked: NDArray[np.bool_], rate: float) -> float | None:
    """The height of the marked log totals over the others, of the best line with one slope and two heights."""
    from scipy.special import fdtrc

    left = len(logs) - 3
    if left < 1 or not 0 < marked.sum() < len(logs):
        return None
    line = orthonormal(np.ones_like(logarithms), logarithms)
    offset, around = beside(marked.astype(np.float64), line), beside(logs, line)
    size = float((offset**2).sum())
    if size <= ROUNDING:  # the marks follow the slope
        return None
    height = float((offset * around).sum()) / size
    rest = float(((around - height * offset) ** 2).sum()) + left * ROUNDING**2
    if fdtrc(1, left, height**2 * size / rest * left) >= rate:
        return None
    flat = around - height * (offset - marked)  # off the slope, but not off the heights
    ones, others = flat[marked], flat[~marked]
    return height if ones.max() < others.min() or ones.min() > others.max() else None
