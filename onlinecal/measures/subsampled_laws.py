"""The laws of residuals of random subsets of the rounds, for the subsampled measures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.arrays import locked
from onlinecal.core.joint import Floats, JointDistribution

Ints = NDArray[np.int64]
Law = tuple[Floats, Floats]

#: subsets that are drawn, or classes of subsets that are enumerated
MOST = 10_000_000

#: how many are kept at once
BLOCK = 4096

# Values that are less likely than this are left out: as many as there can be change no result above rounding.
_LEAST = 1e-24

# Of so many trials the probabilities are rounded once, as quotients of whole numbers; of more they are SciPy's.
_EXACT = 1000

# P(|A − n/2| > x) ≤ 2 exp(−2x²/n) of a binomial A: so many √n away nothing is that likely.
_SPREAD = 5.4


def _laws(gamma: JointDistribution, most: int) -> Iterator[Law | None]:
    """The values of Σ_{t ∈ S} (y_t − p_t) at each level, and their probabilities.

    None where weights are not whole, or pairs of numbers of outcomes 1 and 0 more than 16 for each of `most` values.
    """
    parts = gamma.predictions.tolist(), gamma.positives.tolist(), (gamma.counts - gamma.positives).tolist()
    for v, ones, zeros in zip(*parts, strict=True):
        yield _level(v, ones, zeros, min(16 * most, MOST))


def _level(v: float, ones: float, zeros: float, most: int) -> Law | None:
    """The law of A (1 − v) − B v, with A and B binomial."""
    if ones % 1.0 or zeros % 1.0 or _SPREAD * math.sqrt(ones + zeros) > most:
        return None
    if v == 0.5:  # A − B + zeros is binomial
        halves, chance = _binomial(int(ones + zeros))
        return 0.5 * (halves - zeros), chance
    high, chance = _binomial(int(ones) if v < 1.0 else 0)
    low, other = _binomial(int(zeros) if v > 0.0 else 0)
    if len(high) * len(low) > most:
        return None
    return _merged(np.subtract.outer(high * (1.0 - v), low * v).ravel(), np.outer(chance, other).ravel())


@lru_cache(maxsize=64)
def _binomial(n: int) -> Law:
    """The values of a binomial number of n trials of 1/2 that are not too unlikely, and their probabilities."""
    spread = math.ceil(_SPREAD * math.sqrt(n))
    values = np.arange(max(n // 2 - spread, 0), min(n // 2 + spread, n) + 1.0)
    if n <= _EXACT:
        chance = np.array([math.comb(n, int(k)) / 2**n for k in values])
    else:
        from scipy.stats import binom

        chance = binom.pmf(values, n, 0.5)
    likely = chance > _LEAST
    return locked(values[likely]), locked(chance[likely])


def _merged(values: Floats, chance: Floats) -> Law:
    """Equal values joined, for those on a grid differ by rounding: one of them stands for all within 1e-12."""
    _, one, place = np.unique(np.round(values, 12), return_index=True, return_inverse=True)
    return values[one], _summed(place, chance)


def _summed(place: Ints, chance: Floats) -> Floats:
    """The probability of each place."""
    return np.bincount(place.ravel(), chance).astype(np.float64)


def combinable(gamma: JointDistribution, most: int) -> list[Law] | None:
    """The laws of all levels where they have at most so many combinations."""
    laws, combinations = [], 1
    for law in _laws(gamma, most):
        if law is None or (combinations := combinations * len(law[0])) > most:
            return None
        laws.append(law)
    return laws


def enumerated(laws: list[Law]) -> Iterator[tuple[Floats, Floats]]:
    """All combinations of the levels' values, a block at a time, with their probabilities."""
    sizes = np.array([len(values) for values, _ in laws])
    strides = np.append(np.cumprod(sizes[::-1])[::-1][1:], 1)
    total = int(np.prod(sizes))
    for start in range(0, total, BLOCK):
        number = np.arange(start, min(start + BLOCK, total))
        rows, chance = np.empty((len(number), len(laws))), np.ones(len(number))
        for i, (values, own) in enumerate(laws):
            which = number // strides[i] % sizes[i]
            rows[:, i] = values[which]
            chance *= own[which]
        yield rows, chance


def largest_prefix(gamma: JointDistribution, most: int) -> float | None:
    """E of the largest size of a prefix sum; None where more than `most` states come up, or 16 as many to be merged."""
    at, largest, chance = np.zeros(1), np.zeros(1), np.ones(1)
    for law in _laws(gamma, most):
        if law is None or len(at) * len(law[0]) > min(16 * most, MOST):
            return None
        values, own = law
        at = np.add.outer(at, values).ravel()
        largest = np.maximum(np.repeat(largest, len(values)), np.abs(at))
        chance = np.outer(chance, own).ravel()
        near = np.round(at, 12) + 1j * np.round(largest, 12)
        _, one, place = np.unique(near, return_index=True, return_inverse=True)
        if len(one) > most:
            return None
        at, largest, chance = at[one], largest[one], _summed(place, chance)
    return float(chance @ largest)
