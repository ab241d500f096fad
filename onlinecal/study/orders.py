"""The order of several means beyond chance: all pairs at once, measured in the same runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.arrays import Floats
from onlinecal.growth import ROUNDING


@dataclass(frozen=True)
class Pairs:
    """The differences of all pairs of k means, from R runs."""

    means: Floats
    difference: Floats
    error: Floats
    p: Floats
    runs: int

    def half_width(self, level: float) -> Floats:
        """Half the width of the interval of each difference by itself; infinite where its spread is unknown."""
        from scipy.special import stdtrit

        if self.runs < 2:
            return np.full_like(self.error, np.inf)
        half = np.asarray(stdtrit(self.runs - 1, (1.0 + level) / 2.0) * self.error)
        # No spread, and too few runs to rule out chance.
        return np.where((self.error == 0.0) & (self.p < 1.0) & (self.p > 1.0 - level), np.inf, half)


def differences(values: Floats) -> Pairs:
    """All pairs of (k, R) values: k quantities in the same R runs."""
    from scipy.special import stdtr

    k, runs = values.shape
    with np.errstate(invalid="ignore"):
        means = values.mean(axis=1)
    difference, error, p = np.zeros((k, k)), np.full((k, k), np.nan), np.ones((k, k))
    for i in range(1, k):
        with np.errstate(invalid="ignore"):
            own = values[i] - values[:i]
        finite = np.isfinite(own).all(axis=1)
        own = np.where(finite[:, None], own, 0.0)
        scale = np.maximum(np.abs(values[i]).max(), np.abs(values[:i]).max(axis=1))
        # Not what rounding makes of the same number.
        own = np.where(np.abs(own) <= ROUNDING * scale[:, None], 0.0, own)
        same = (own == own[:, :1]).all(axis=1)
        mean = np.where(same, own[:, 0], own.mean(axis=1))
        difference[i, :i] = np.where(finite, mean, np.nan)
        difference[:i, i] = -difference[i, :i]
        if runs < 2:
            continue
        spread = np.where(same, 0.0, own.std(axis=1, ddof=1) / np.sqrt(runs))
        error[i, :i] = error[:i, i] = np.where(finite, spread, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_t = 2.0 * stdtr(runs - 1, -np.abs(mean) / spread)
        alike = np.where(mean != 0.0, 2.0 ** (1 - runs), 1.0)
        p[i, :i] = p[:i, i] = np.where(finite, np.where(spread > 0.0, by_t, alike), 1.0)
    return Pairs(means, difference, error, p, runs)


def adjusted(families: Sequence[Pairs]) -> list[Floats]:
    """P-values of the orders of each family, (k, k), adjusted for all pairs of all families (Holm 1979)."""
    # A pair is two one-sided hypotheses. So all signs with p-values of at most α are right with probability 1 − α.
    below = [np.tril_indices(len(pairs.means), -1) for pairs in families]
    one_sided = np.concatenate([pairs.p[at] for pairs, at in zip(families, below, strict=True)]) / 2.0
    order = np.argsort(one_sided, kind="stable")
    # The other side of each pair has a p-value of 1/2 at least, and is never rejected.
    hypotheses = 2 * len(order) - np.arange(len(order))
    steps = np.empty(len(order))
    steps[order] = np.minimum(np.maximum.accumulate(one_sided[order] * hypotheses), 1.0)
    found = [np.ones_like(pairs.p) for pairs in families]
    start = 0
    for each, (i, j) in zip(found, below, strict=True):
        each[i, j] = each[j, i] = steps[start : start + len(i)]
        start += len(i)
    return found


def lower(families: Sequence[Pairs], level: float = 0.95) -> list[NDArray[np.bool_]]:
    """Whether the mean of row is lower than that of column, for each family; all statements hold at the level."""
    # 1 − 0.95 is a little more than 0.05.
    return [
        (p <= 1.0 - level + 1e-15) & (np.nan_to_num(pairs.difference, nan=0.0) < 0.0)
        for p, pairs in zip(adjusted(families), families, strict=True)
    ]


def ranks(values: Floats) -> Floats:
    """1 for the lowest; those that are the same up to rounding share the mean of their ranks."""
    order = np.argsort(values, kind="stable")  # NaN last
    found = np.empty(len(values))
    start = 0
    for end in range(1, len(values) + 1):
        if end == len(values) or not _same(values[order[end - 1]], values[order[end]]):
            found[order[start:end]] = (start + 1 + end) / 2
            start = end
    return found


def _same(a: float, b: float) -> bool:
    return bool(a == b or (np.isfinite(b - a) and abs(b - a) <= ROUNDING * max(abs(a), abs(b))))


def simultaneous(statements: int, level: float = 0.95) -> float:
    """The level of each of several intervals with which all of them hold together, however they depend (Bonferroni).

    >>> round(simultaneous(10), 6)
    0.995
    """
    return 1.0 - (1.0 - level) / max(statements, 1)
