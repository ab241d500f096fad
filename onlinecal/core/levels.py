"""The level sets of several Γ, one behind the other: what is computed of all runs of a game at once."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats, Ints, locked
from onlinecal.core.classes import ClassDistribution
from onlinecal.core.joint import PARTS, JointDistribution, levels_of_rows


class LevelSets:
    """The level sets of several Γ, one behind the other: those of the i-th from `starts[i]` to `starts[i + 1]`.

    `predictions`, `counts`, `positives` and `means` are those of `JointDistribution`; counts are of whole rounds.
    Iteration gives each Γ.
    """

    def __init__(self, predictions: Floats, counts: Floats, positives: Floats, starts: Ints) -> None:
        self.predictions, self.counts, self.positives = locked(predictions), locked(counts), locked(positives)
        self.starts, self.means = locked(starts), locked(positives / counts)

    @classmethod
    def of(cls, gammas: Sequence[Any]) -> "LevelSets":
        """Those of these Γ, all of two outcomes or all of K classes; of a single one nothing is copied."""
        if isinstance(gammas[0], ClassDistribution):
            return ClassLevelSets(gammas)
        sets = object.__new__(cls)
        for part in PARTS:
            parts = [getattr(gamma, part) for gamma in gammas]
            vars(sets)[part] = parts[0] if len(parts) == 1 else locked(np.concatenate(parts))
        sets.starts = locked(np.cumsum([0, *(gamma.levels for gamma in gammas)]))
        return sets

    @classmethod
    def of_counts(cls, points: Floats, counts: Ints, positives: Ints) -> "LevelSets":
        """Those of rows of counts, (B, points), at ascending points, without empty rows. Nothing is checked."""
        there = counts != 0
        size = np.count_nonzero(there, axis=1)
        n, ones = (each[there].astype(np.float64) for each in (counts, positives))
        v = np.broadcast_to(points, counts.shape)[there] + 0.0  # + 0.0 turns −0.0 into 0.0
        return cls(v, n, ones, np.append(0, size[size > 0].cumsum()))

    @classmethod
    def of_keys(cls, keys: Ints) -> "LevelSets":
        """Those of rows of sorted integers of `encode`, (B, rounds). Nothing is checked."""
        bits, *others = levels_of_rows(np.ascontiguousarray(keys))
        return cls(bits.view(np.float64), *others)

    @property
    def tallies(self) -> list[Floats]:
        """What is counted at each level: rounds, and outcomes 1."""
        return [self.counts, self.positives]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[Any]:
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


class ClassLevelSets(LevelSets):
    """Those of Γ of K classes: `predictions` are (k, K), `tallies` the rounds of each class."""

    def __init__(self, gammas: Sequence[ClassDistribution]) -> None:
        self.gammas = gammas
        self.predictions = np.concatenate([gamma.predictions for gamma in gammas])
        self.starts = np.cumsum([0, *(gamma.levels for gamma in gammas)])

    @property
    def tallies(self) -> list[Floats]:
        """How often each class happened at each level."""
        return [*np.concatenate([gamma.tallies for gamma in self.gammas]).T]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.gammas)

    @cached_property
    def weights(self) -> Floats:
        """The total weight of each Γ."""
        return np.array([gamma.weight for gamma in self.gammas])
