"""The level sets of several Γ, one behind the other: what is computed of all runs of a game at once."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Floats, Ints, locked
from onlinecal.core.joint import PARTS, JointDistribution


class LevelSets:
    """The level sets of several Γ, one behind the other: those of the i-th from `starts[i]` to `starts[i + 1]`.

    `predictions`, `counts`, `positives` and `means` are those of `JointDistribution`; counts are of whole rounds.
    Iteration gives each Γ.
    """

    def __init__(self, predictions: Floats, counts: Floats, positives: Floats, starts: Ints) -> None:
        self.predictions, self.counts, self.positives = locked(predictions), locked(counts), locked(positives)
        self.starts, self.means = locked(starts), locked(positives / counts)

    @classmethod
    def of(cls, gammas: Sequence[JointDistribution]) -> "LevelSets":
        """Those of these Γ; of a single one nothing is copied."""
        sets = object.__new__(cls)
        for part in PARTS:
            parts = [getattr(gamma, part) for gamma in gammas]
            vars(sets)[part] = parts[0] if len(parts) == 1 else locked(np.concatenate(parts))
        sets.starts = locked(np.cumsum([0, *(gamma.levels for gamma in gammas)]))
        return sets

    @classmethod
    def of_counts(cls, points: Floats, counts: Ints, positives: Ints) -> "LevelSets":
        """Those of counts at each of some ascending points, (B, points); every row has a round. Nothing is checked."""
        return cls(*_levels_of_counts(locked(points), counts, positives))

    @classmethod
    def of_keys(cls, keys: Ints) -> "LevelSets":
        """Those of rows of sorted integers of `encode`, (B, rounds). Nothing is checked."""
        bits, *others = _levels_of_rows(np.ascontiguousarray(keys))
        return cls(bits.view(np.float64), *others)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[JointDistribution]:
        parts = [getattr(self, part) for part in PARTS]
        for first, last in pairwise(self.starts.tolist()):
            yield JointDistribution._frozen(*(part[first:last] for part in parts))

    @cached_property
    def weights(self) -> Floats:
        """The total weight of each Γ."""
        return np.asarray(locked(np.add.reduceat(self.counts, self.starts[:-1])))

    @cached_property
    def mass(self) -> Floats:
        """The share of the weight of its Γ at each level."""
        own = self.weights if len(self) == 1 else np.repeat(self.weights, np.diff(self.starts))
        return np.asarray(locked(self.counts / own))

    @cached_property
    def residuals(self) -> Floats:
        """The residual at each level."""
        return np.asarray(locked((self.means - self.predictions) * self.mass))

    def sums(self, values: Floats) -> Floats:
        """The sum over the levels of each Γ, added in the order of `ndarray.sum`."""
        if len(self) == 1:
            return np.array([values.sum()])
        # `reduceat` adds to the first value the sum of the others; `sum` adds to 0 that of all.
        first = self.starts[:-1]
        return np.asarray(np.add.reduceat(np.insert(values, first, 0.0), first + np.arange(len(self))))


@kernel
def _levels_of_counts(points, counts, positives):
    """Levels, counts, positives and starts of rows of counts at points."""
    k = 0
    for b in range(len(counts)):
        for i in range(len(points)):
            k += counts[b, i] > 0
    v, n, s, starts = np.empty(k), np.empty(k), np.empty(k), np.zeros(len(counts) + 1, np.int64)
    k = 0
    for b in range(len(counts)):
        for i in range(len(points)):
            if counts[b, i] > 0:
                v[k], n[k], s[k] = points[i] + 0.0, counts[b, i], positives[b, i]  # + 0.0 turns −0.0 into 0.0
                k += 1
        starts[b + 1] = k
    return v, n, s, starts


@kernel
def _levels_of_rows(keys):
    """`levels_of_keys` of each row, one behind the other, and starts."""
    k = 0
    for b in range(len(keys)):
        for t in range(keys.shape[1]):
            k += t == 0 or keys[b, t] >> 1 != keys[b, t - 1] >> 1
    bits, n, s, starts = np.empty(k, np.int64), np.zeros(k), np.zeros(k), np.zeros(len(keys) + 1, np.int64)
    k = 0
    for b in range(len(keys)):
        for t in range(keys.shape[1]):
            if t == 0 or keys[b, t] >> 1 != keys[b, t - 1] >> 1:
                bits[k] = keys[b, t] >> 1
                k += 1
            n[k - 1] += 1.0
            s[k - 1] += keys[b, t] & 1
        starts[b + 1] = k
    return bits, n, s, starts
