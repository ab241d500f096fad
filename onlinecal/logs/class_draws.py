"""Errors of forecasts of K classes, of each event and of all together, as seen and with outcomes drawn as forecast."""

import itertools
import math
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.classes import ClassDistribution, ClassRows
from onlinecal.core.progress import Progress
from onlinecal.core.simplex import added
from onlinecal.logs.clusters import Blocks, Clustered, blocks_in_time
from onlinecal.logs.resampling import Resample
from onlinecal.measures.classes.sums import MOST_CLASSES

#: levels up to which all pairs of drawn outcomes are added
PAIRS = 4000
#: sets of classes times levels up to which drawn outcomes are measured for all sets
DRAWN_SETS = 200_000


class Events:
    """The event of each class, and that of the top label, with the levels in the order of their probabilities."""

    def __init__(
        self,
        gamma: ClassDistribution,
        rows: ClassRows | None = None,
        clusters: Ints | None = None,
        in_time: bool = False,
    ) -> None:
        self.gamma, self.rows, self.clusters, self.in_time = gamma, rows, clusters, in_time
        top = np.take_along_axis(gamma.predictions, gamma.top[:, None], axis=1)
        self.v = np.concatenate((gamma.predictions, top), axis=1)
        self.order = [np.argsort(column, kind="stable") for column in self.v.T]
        self.values = [column[order] for column, order in zip(self.v.T, self.order, strict=True)]
        # Levels with one probability of an event are one level of it.
        self.starts = [np.flatnonzero(np.diff(values, prepend=-1.0)) for values in self.values]
        # Of weights, sums of squares.
        self.squares = gamma.counts
        if rows is not None and rows.weights is not None:
            self.squares = np.bincount(rows.level, rows.weights**2).astype(np.float64)
        variance = (self.squares[:, None] * self.v * (1.0 - self.v)).sum(axis=0)
        self.scale = np.sqrt(variance) / gamma.weight

    @cached_property
    def resamples(self) -> list[Resample]:
        """The ways to draw the samples of each event again."""
        return [self._resample(j) for j in range(self.gamma.classes + 1)]

    @property
    def clustered(self) -> bool:
        """Whether rows of an event depend on each other."""
        return any(each.clusters for each in self.resamples)

    @property
    def too_few(self) -> list[str]:
        """Why nothing follows from so few clusters or times, of each event where this is so."""
        return [each.too_few for each in self.resamples if each.too_few]

    def units(self, errors: Floats) -> Blocks:
        """The independent units of rows with these errors: rows, clusters, or blocks of these in time."""
        return blocks_in_time(errors, self.clusters) if self.in_time else Blocks(self.clusters)

    def _resample(self, j: int) -> Resample:
        gamma, rows = self.gamma, self.rows
        event = gamma.toplabel() if j == gamma.classes else gamma.classwise(gamma.labels[j])
        if rows is None:
            return Resample(event, None)
        w = np.ones(len(rows.y)) if rows.weights is None else rows.weights
        there = rows.y == (gamma.top[rows.level] if j == gamma.classes else j)
        samples = self.v[rows.level, j], there.astype(np.float64), w
        labels, wider, too_few = self.units(w * (there - samples[0]))
        return (
            Resample(event, samples) if labels is None else Clustered(event, samples, labels, wider, too_few)
        )

    def errors(self, tallies: Floats) -> Floats:
        """The mass times y − v of each level and event."""
        gamma = self.gamma
        errors = np.empty(self.v.shape)
        errors[:, :-1] = tallies
        errors[:, -1] = np.take_along_axis(tallies, gamma.top[:, None], axis=1)[:, 0]
        return (errors - gamma.counts[:, None] * self.v) / gamma.weight

    def read(self, errors: Floats) -> tuple[Floats, Floats]:
        """The cutoff calibration error and the ECE of each event."""
        cutoff, ece = np.array([self.one(errors[:, j], j) for j in range(errors.shape[1])]).T
        return cutoff, ece

    def one(self, errors: Floats, j: int) -> tuple[float, float]:
        """The same of one event."""
        parts = np.add.reduceat(errors[self.order[j]], self.starts[j])
        sums = np.cumsum(parts)
        return max(float(sums.max()), 0.0) - min(float(sums.min()), 0.0), float(np.abs(parts).sum())

    def where(self, errors: Floats, j: int) -> tuple[float, float, float]:
        """The ends of the interval with the largest error of an event, and the mean of y − v in it."""
        order, values = self.order[j], self.values[j]
        parts = np.add.reduceat(errors[order, j], self.starts[j])
        sums = np.concatenate(([0.0], np.cumsum(parts)))
        first, last = sorted((int(sums.argmin()), int(sums.argmax())))
        if first == last:
            return float(values[0]), float(values[-1]), 0.0
        levels = values[self.starts[j]]
        weight = np.add.reduceat(self.gamma.mass[order], self.starts[j])[first:last].sum()
        return float(levels[first]), float(levels[last - 1]), float((sums[last] - sums[first]) / weight)


class Joint:
    """Measures of all classes together of the errors of levels, by their names."""

    def __init__(self, gamma: ClassDistribution) -> None:
        self.gamma, self.k = gamma, gamma.classes
        self.near: Floats | None = None
        if gamma.levels <= PAIRS:
            self.near = np.exp(-0.5 * cdist(gamma.predictions, gamma.predictions, "cityblock"))

    @cached_property
    def sets(self) -> list[tuple[list[int], Any]]:
        """Sets of classes without the first one, each with the place of each level among the sums."""
        v = self.gamma.predictions
        found = itertools.chain.from_iterable(
            itertools.combinations(range(1, self.k), size) for size in range(1, self.k)
        )
        return [([*each], np.unique(added(v, each), return_inverse=True)[1]) for each in found]

    def read(self, errors: Floats, ece: Floats) -> dict[str, float]:
        own = errors[:, : self.k]
        found = {
            "ece": 0.5 * float(np.abs(own).sum()), "classwise ece, largest": float(ece[:-1].max()),
            "classwise ece, mean": float(ece[:-1].mean()), "toplabel ece": float(ece[-1]),
        }  # fmt: skip
        if sets_of(self.gamma) <= DRAWN_SETS:
            parts = (np.bincount(place, own[:, each].sum(axis=1)) for each, place in self.sets)
            found["setwise ece"] = max(float(np.abs(part).sum()) for part in parts)
        if self.near is not None:
            found["kernel_ce"] = max(0.5 * float((own * (self.near @ own)).sum()), 0.0) ** 0.5
        return found


def sets_of(gamma: ClassDistribution) -> float:
    """The number of sets of classes times that of levels; infinite for more classes than `setwise` takes."""
    return math.inf if gamma.classes > MOST_CLASSES else (2 ** (gamma.classes - 1) - 1) * gamma.levels


def drawn(events: Events, joint: Joint, draws: int, seed: int) -> tuple[Floats, dict[str, Floats]]:
    """Of outcomes drawn as forecast: the cutoff calibration error of each event, and the measures of `joint`."""
    gamma, rows, generator = events.gamma, events.rows, np.random.default_rng([seed, 5])
    found, measured = np.empty((draws, events.v.shape[1])), dict[str, list[float]]()
    counts = gamma.counts.astype(np.int64)
    below = gamma.predictions.cumsum(axis=1)[:, :-1].T
    with Progress(draws, unit="draws", ticks=True) as progress:
        for one in found:
            if rows is None:
                tallies = generator.multinomial(counts, gamma.predictions).astype(np.float64)
            else:
                number = generator.random(len(rows.y))
                y = np.sum([number >= part[rows.level] for part in below], axis=0)
                cells = np.bincount(rows.level * gamma.classes + y, rows.weights, gamma.predictions.size)
                tallies = cells.astype(np.float64).reshape(gamma.predictions.shape)
            errors = events.errors(tallies)
            one[:], ece = events.read(errors)
            for name, value in joint.read(errors, ece).items():
                measured.setdefault(name, []).append(value)
            progress.advance(1)
    return found, {name: np.array(values) for name, values in measured.items()}


def drawn_of_clusters(events: Events, draws: int, seed: int) -> Floats:
    """The cutoff calibration errors, with the outcomes of each event drawn by its clusters, as in `evaluate`."""
    # Events are drawn apart. Of normal processes the largest of independent ones is the largest by law (Royen 2014).
    gamma, rows, resamples = events.gamma, events.rows, events.resamples
    assert rows is not None
    found = np.empty((draws, len(resamples)))
    w = np.ones(len(rows.y)) if rows.weights is None else rows.weights
    with Progress(draws * len(resamples), unit="draws", ticks=True) as progress:
        for j, resample in enumerate(resamples):
            generator, p = np.random.default_rng([seed, 5, j]), events.v[rows.level, j]
            for i in range(draws):
                sums = np.bincount(rows.level, w * (resample.outcomes(generator) - p), gamma.levels)
                found[i, j] = events.one(sums / gamma.weight, j)[0]
                progress.advance(1)
    return found
