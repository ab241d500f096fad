"""What the engine writes down: just enough of the history to give Γ of each run at a checkpoint."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinecal._compile import kernel
from onlinecal.errors import InvalidParameter
from onlinecal.forecasters.base import Floats, Ints
from onlinecal.joint import JointDistribution


class Ledger(Protocol):
    """Keeps the rounds of R runs."""

    def settle(
        self, t: int, atoms: NDArray[Any], q: Floats, uniforms: Floats, row: int, outcome: Ints
    ) -> int:
        """Draws the outcomes y = 1[u < q] and writes round t (from 0) down; −1, or a run whose q is no probability."""

    def gammas(self, t: int) -> list[JointDistribution]:
        """Γ of each run after t rounds."""


class GridLedger:
    """Counts by grid index: memory does not grow with time."""

    def __init__(self, runs: int, grid: Floats) -> None:
        self.grid = grid
        self.counts = np.zeros((runs, len(grid)), np.int64)
        self.positives = np.zeros((runs, len(grid)), np.int64)

    def settle(
        self, t: int, atoms: NDArray[Any], q: Floats, uniforms: Floats, row: int, outcome: Ints
    ) -> int:
        return _settle_grid(atoms, q, uniforms, row, outcome, self.counts, self.positives)

    def gammas(self, t: int) -> list[JointDistribution]:
        n, s = self.counts.astype(np.float64), self.positives.astype(np.float64)
        return [JointDistribution.from_counts(self.grid, n[r], s[r]) for r in range(len(n))]


class RealLedger:
    """Every forecast with its outcome in 8 bytes, sorted piece by piece.

    Up to the last checkpoint the keys are sorted; a checkpoint sorts only what has come since and merges the two.
    """

    def __init__(self, runs: int, horizon: int) -> None:
        needed, free = 8 * runs * horizon, _memory()
        if needed > 0.8 * free:
            raise InvalidParameter(
                f"{runs} runs of {horizon} rounds need {needed / 2**30:.1f} GiB of history for a forecaster without "
                f"a grid, and this machine has {free / 2**30:.1f} GiB; expected fewer runs at a time or rounds"
            )
        self.keys = np.empty((runs, horizon), np.int64)
        self.sorted = 0

    def settle(
        self, t: int, atoms: NDArray[Any], q: Floats, uniforms: Floats, row: int, outcome: Ints
    ) -> int:
        return _settle_real(atoms.view(np.int64), q, uniforms, row, outcome, self.keys, t)

    def gammas(self, t: int) -> list[JointDistribution]:
        if t > self.sorted:
            for keys in self.keys:
                keys[self.sorted : t].sort()
                # The stable sort finds the two ascending pieces and merges them.
                keys[:t].sort(kind="stable")
            self.sorted = t
        return [JointDistribution.from_sorted_keys(keys[:t]) for keys in self.keys]


def _memory() -> float:
    """Bytes of memory of this machine, or no limit where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return float("inf")


@kernel
def _settle_grid(atoms, q, uniforms, row, outcome, counts, positives):
    for r in range(len(q)):
        if not 0.0 <= q[r] <= 1.0:
            return r
        y = np.int64(uniforms[row, r] < q[r])
        outcome[r] = y
        counts[r, atoms[r]] += 1
        positives[r, atoms[r]] += y
    return -1


@kernel
def _settle_real(bits, q, uniforms, row, outcome, keys, t):
    for r in range(len(q)):
        if not 0.0 <= q[r] <= 1.0:
            return r
        y = np.int64(uniforms[row, r] < q[r])
        outcome[r] = y
        keys[r, t] = bits[r] << 1 | y  # the encoding of joint.encode
    return -1
