"""The chance error of a linear combination of log totals, from runs, scatter and one shared game; two heights."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.arrays import Floats

#: relative error of a total: nothing is concluded from differences as small as this
ROUNDING = 1e-9
#: of the totals of one game at s < t the correlation is at most (s/t)^MEMORY
MEMORY = 1 / 3


class Contrasts(Protocol):
    """Log mean totals at n times with their errors."""

    logs: Floats
    runs: int

    def spread(self, weights: Floats, basis: Floats) -> tuple[Any, Any]:
        """Variance of Σ weights·logs and its degrees of freedom, where the logs scatter around the span of a basis."""


class Fresh:
    """Totals of independent games, one set of runs for each time."""

    def __init__(self, totals: Floats) -> None:
        self.runs = totals.shape[1]
        self.logs, left_out = _jackknifed(totals)
        self.own = np.zeros(len(totals))
        if left_out is not None:
            self.own = _squares(left_out) * (self.runs - 1) / self.runs

    def spread(self, weights: Floats, basis: Floats, residual: Floats | None = None) -> tuple[Floats, Floats]:
        """See `Contrasts`; several at once."""
        n, k = basis.shape[-2:]
        square = (weights**2).sum(axis=-1)
        if not np.isfinite(self.own).all() or (n == k and self.runs == 1):
            return np.full_like(square, np.inf), np.ones_like(square)
        own = weights**2 * self.own
        scatter = np.zeros_like(square)
        if k < n:
            residual = beside(beside(self.logs, basis) if residual is None else residual, basis)
            free = 1.0 - (basis**2).sum(axis=-1)
            mean = (residual**2).sum(axis=-1) / (n - k)
            explained = free * self.own / (n - k)
            rough = (mean > explained.sum(axis=-1)) | (self.runs == 1)
            left_out = ((weights * residual / np.maximum(free, ROUNDING)) ** 2).sum(axis=-1)
            scatter = np.where(rough, np.maximum(mean * square, left_out), 0.0)
            own = own - explained * np.where(rough, square, 0.0)[..., None]
        total = scatter + own.sum(axis=-1)
        squares = scatter**2 / (n - k + 2) + (own**2).sum(axis=-1) / (self.runs + 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            freedom = np.where(squares > 0.0, total**2 / squares - 2.0, 1.0)
        return np.maximum(total, 0.0) + ROUNDING**2 * square, np.maximum(freedom, 1.0)

    def misfit(self, basis: Floats, residual: Floats) -> Floats:
        """p-value that the residual is no larger than runs differ by: squares, scaled, as an F of Box (1954)."""
        from scipy.special import fdtrc

        if basis.shape[-2] == basis.shape[-1] or not np.isfinite(self.own).all():
            return np.ones(residual.shape[:-1])
        variance = self.own + ROUNDING**2
        free = 1.0 - (basis**2).sum(axis=-1)
        parts = free * variance
        expected = parts.sum(axis=-1)
        fit = basis @ np.swapaxes(basis, -1, -2)
        squares = (variance**2 * (2.0 * free - 1.0)).sum(axis=-1) + variance @ fit**2 @ variance
        above = expected**2 / squares
        below = np.maximum(expected**2 / ((parts**2).sum(axis=-1) / (self.runs + 1)) - 2.0, 1.0)
        if self.runs == 1:
            below = np.full_like(above, np.inf)
        return np.asarray(fdtrc(above, np.minimum(below, 1e9), (residual**2).sum(axis=-1) / expected))


class Path:
    """Totals along one game, the same runs at all times: neighbours are correlated."""

    def __init__(self, logarithms: Floats, totals: Floats) -> None:
        self.runs = totals.shape[1]
        self.logs, self.left_out = _jackknifed(totals)
        self.correlation = np.exp(-MEMORY * np.abs(logarithms[:, None] - logarithms))

    def spread(self, weights: Floats, basis: Floats) -> tuple[float, float]:
        """See `Contrasts`."""
        n, k = basis.shape
        along, freedom = 0.0, 0.0
        if n > k:
            residual = self.logs - basis @ (basis.T @ self.logs)
            moved = self.correlation - basis @ (basis.T @ self.correlation)
            trace = float(np.trace(moved))
            freedom = trace**2 / float(np.trace(moved @ moved))
            along = float(residual @ residual) * float(weights @ self.correlation @ weights) / trace
        variance = along
        if self.left_out is not None:
            others = self.runs - 1
            among = np.inf
            if np.isfinite(self.left_out).all():
                among = float(_squares(weights @ self.left_out)) * others / self.runs
            freedom += others
            variance = max(among, ((freedom - others) * along + others * among) / freedom)
            if among > along and np.isfinite(among):
                squares = along**2 / (freedom + 2) + (among - along) ** 2 / (others + 2)
                freedom = max(among**2 / squares - 2.0, 1.0)
        if freedom == 0.0 or not np.isfinite(variance):
            return np.inf, 1.0
        return variance + ROUNDING**2 * float(weights @ weights), freedom


def orthonormal(*columns: ArrayLike) -> Floats:
    """An orthonormal basis (..., n, k) of the span of k columns (..., n)."""
    return np.linalg.qr(np.stack(np.broadcast_arrays(*columns), axis=-1))[0]


def beside(column: Floats, basis: Floats) -> Floats:
    """The part of a column (..., n) that is orthogonal to an orthonormal basis (..., n, k)."""
    return column - np.einsum("...nk,...k->...n", basis, np.einsum("...nk,...n->...k", basis, column))


def _jackknifed(totals: Floats) -> tuple[Floats, Floats | None]:
    """Log of the mean over runs, and of each mean that leaves one run out (None of a single run)."""
    runs, mean = totals.shape[1], totals.mean(axis=1)
    if runs == 1:
        return np.log(mean), None
    rest = (runs * mean[:, None] - totals) / (runs - 1)
    # Identical runs have no spread, whatever rounding makes of their mean. The spread of a mean that rests on a single
    # run is unknown.
    rest = np.where(np.abs(rest - mean[:, None]) <= 1e-14 * mean[:, None], mean[:, None], rest)
    return np.log(mean), np.log(rest, out=np.full_like(rest, np.inf), where=rest > 0.0)


def _squares(values: Floats) -> Floats:
    """Sum of squared deviations from the mean along the last axis; infinite where a value is."""
    good = np.asarray(np.isfinite(values).all(axis=-1))
    safe = np.where(good[..., None], values, 0.0)
    return np.where(good, ((safe - safe.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1), np.inf)


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
