"""New samples from those behind a Γ, and what they change in its masses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.measures.base import Change

Floats = NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], tuple[Floats, Floats]]

#: samples that a float64 counts one by one
MOST_SAMPLES = 2**53

#: more levels than this are rounded to a grid of as many steps before changes are drawn
MOST_LEVELS = 4096

#: and what is drawn is widened by this factor: the supremum over thresholds, which of all measures feels the grid most,
#: lacks what happens between two of its points, √(2 ln(2M)/M) of it for M of them
WIDENED = 1.0 + (2.0 * np.log(2.0 * MOST_LEVELS) / MOST_LEVELS) ** 0.5

# Numbers drawn at once, of either outcome.
_AT_ONCE = 1 << 19
# Outcomes of either kind that are added before variances are taken, as Agresti and Coull do: without them samples that
# hold no outcome of a rare kind would seem to prove its absence.
_ADDED = 2.0


class Resample:
    """New Γ from the samples behind one, by drawing how often each cell occurs: nothing is sorted again.

    A cell is a level and an outcome; where samples have weights, it is a sample.
    """

    def __init__(self, gamma: JointDistribution, samples: tuple[Floats, Floats, Floats] | None) -> None:
        self.gamma, self.v = gamma, gamma.predictions
        self.weights: Floats | None = None
        if samples is None:
            counts, positives = gamma.counts, gamma.positives
            if gamma.weight > MOST_SAMPLES:
                raise InvalidParameter(
                    f"evaluate: Γ has weight {gamma.weight!r}, more than can be drawn again sample by sample; expected "
                    f"at most {MOST_SAMPLES}, or neither bootstrap nor reference"
                )
            if (counts != np.rint(counts)).any() or (positives != np.rint(positives)).any():
                raise InvalidParameter(
                    "evaluate: counts of Γ are not whole, so there are no samples to draw again; expected the samples "
                    "and weights themselves"
                )
            self.counts = counts.astype(np.int64)
            times = np.concatenate((counts - positives, positives))
            self.level = np.flatnonzero(times) % gamma.levels
            self.ones = np.flatnonzero(times) >= gamma.levels
            times = times[times > 0]
            self.squares = counts - positives, positives
        else:
            p, y, w = (part[samples[2] > 0.0] for part in samples)
            self.level = np.searchsorted(self.v, p)
            self.ones, self.weights = y > 0.0, w
            times = np.ones(len(w))
            with np.errstate(over="ignore", invalid="ignore"):
                self.squares = self._sums(w**2 * ~self.ones), self._sums(w**2 * self.ones)
            if not 1e-290 < sum(part.sum() for part in self.squares) < np.inf:
                raise InvalidParameter(
                    f"evaluate: the largest weight is {float(w.max())!r}, of which floats hold no square; expected one "
                    "from 1e-140 to 1e140: multiply all by one number"
                )
        self.total = round(float(times.sum()))
        self.shares = times / self.total

    @property
    def samples(self) -> float:
        """How many samples of equal weights vary as much."""
        return float(self.gamma.weight**2 / (self.squares[0].sum() + self.squares[1].sum()))

    def samples_in(self, cells: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The same for each cell of levels, and the share of the weight that it holds."""
        mass = np.bincount(cells, self.gamma.counts)
        squares = np.bincount(cells, self.squares[0] + self.squares[1])
        held = mass > 0.0
        return mass[held] ** 2 / squares[held], mass[held] / self.gamma.weight

    def bootstrap(self, generator: np.random.Generator) -> JointDistribution:
        """As many samples, drawn with replacement."""
        times = generator.multinomial(self.total, self.shares).astype(float)
        return self._gamma(times if self.weights is None else times * self.weights, self.ones)

    def calibrated(self, generator: np.random.Generator, chances: Floats | None = None) -> JointDistribution:
        """The same predictions, and each outcome 1 with the probability predicted, or with that of its level."""
        chances = self.v if chances is None else chances
        if self.weights is None:
            ones = generator.binomial(self.counts, chances).astype(np.float64)
            return JointDistribution.from_sorted_levels(self.v, self.gamma.counts, ones)
        return self._gamma(self.weights, generator.random(len(self.level)) < chances[self.level])

    def changes(self, kind: str, times: int, generator: np.random.Generator) -> Iterator[Change]:
        """Changes of the masses of levels and outcomes by new samples, some at a time."""
        gamma, place = self.gamma, np.arange(self.gamma.levels)
        if gamma.levels > MOST_LEVELS:
            gamma, _ = self.gamma.round(MOST_LEVELS - 1)
            rounded = np.rint(self.v * (MOST_LEVELS - 1)) / (MOST_LEVELS - 1)
            place = np.searchsorted(gamma.predictions, rounded)
        draw = self._normal(gamma, place) if kind == "resampled" else self._outcomes(gamma, place)
        wider = WIDENED if gamma is not self.gamma else 1.0
        rows = max(_AT_ONCE // gamma.levels, 1)
        for start in range(0, times, rows):
            zeros, ones = draw(min(rows, times - start), generator)
            yield Change(gamma, wider * zeros, wider * ones, self.samples, self.gamma, place)

    def _normal(self, gamma: JointDistribution, place: NDArray[np.int64]) -> Draw:
        added = _ADDED * sum(part.sum() for part in self.squares) / self.total * gamma.mass
        mass = np.concatenate((gamma.mass * (1.0 - gamma.means), gamma.mass * gamma.means))
        scale = np.sqrt(np.concatenate([np.bincount(place, part) + added for part in self.squares]))
        scale /= self.gamma.weight

        def draw(rows: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
            both = generator.standard_normal((rows, len(scale)))
            both *= scale
            both -= both.sum(axis=1)[:, None] * mass
            return both[:, : gamma.levels], both[:, gamma.levels :]

        return draw

    def _outcomes(self, gamma: JointDistribution, place: NDArray[np.int64]) -> Draw:
        v, weight = gamma.predictions, self.gamma.weight
        squares = np.bincount(place, self.squares[0] + self.squares[1])
        level = place[self.level]
        order = np.argsort(level, kind="stable")
        starts = np.searchsorted(level[order], np.arange(len(v)))

        def draw(rows: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
            if self.weights is None:
                counts = gamma.counts.astype(np.int64)
                ones = (generator.binomial(counts, v, (rows, len(v))) - gamma.counts * v) / weight
            elif len(order) <= MOST_LEVELS:
                w, p = self.weights[order], v[level[order]]
                drawn = w * ((generator.random((rows, len(w))) < p) - p)
                ones = np.add.reduceat(drawn, starts, axis=1) / weight
            else:
                ones = generator.standard_normal((rows, len(v))) * np.sqrt(squares * v * (1.0 - v)) / weight
            return -ones, ones

        return draw

    def _sums(self, part: Floats) -> Floats:
        return np.asarray(np.bincount(self.level, part, len(self.v)), dtype=np.float64)

    def _gamma(self, weights: Floats, ones: NDArray[np.bool_]) -> JointDistribution:
        # Both sums run in the same order, so that rounding cannot lift the second above the first.
        return JointDistribution.from_sorted_levels(self.v, self._sums(weights), self._sums(weights * ones))
