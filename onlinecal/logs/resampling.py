"""New Γ from the samples behind one, and changes of its masses: the draws that intervals and p-values are made of."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.progress import Progress
from onlinecal.logs.witnessed import BLOCKS, Block
from onlinecal.measures.base import Bracket, Change, Ends, ends
from onlinecal.study.asked import measured

Function = Callable[[JointDistribution], Any]
Draw = Callable[[int, np.random.Generator], tuple[Floats, Floats]]

#: samples that a level or a bin must hold to count as repeated
FEW = 30
#: more levels than this are put into this number of groups of equal weight before changes are drawn
MOST_LEVELS = 4096
#: and changes are widened by this factor: a supremum over thresholds lacks √(2 ln(2M)/M) of it within M groups
WIDENED = 1.0 + (2.0 * np.log(2.0 * MOST_LEVELS) / MOST_LEVELS) ** 0.5
#: values that only rounding tells apart are as good as equal
TIE = 1e-12
#: numbers drawn at once
AT_ONCE = 1 << 19
#: outcomes of either kind that are added before variances are taken, as Agresti and Coull do. Without them samples
#: without an outcome of a rare kind would seem to prove its absence.
ADDED = 2.0


def grouped(gamma: JointDistribution, most: int) -> tuple[JointDistribution, Ints]:
    """Γ on at most `most` groups of neighbouring levels of equal weight, each at its mean; the first level of each."""
    v, n = gamma.predictions, gamma.counts
    before = np.concatenate(([0.0], np.cumsum(n)[:-1])) / gamma.weight
    starts = np.flatnonzero(np.diff(np.floor(most * before), prepend=-1.0))
    counts, last = np.add.reduceat(n, starts), np.append(starts[1:], len(v)) - 1
    # Rounding must not take a mean out of its group.
    means = np.clip(np.add.reduceat(n * v, starts) / counts, v[starts], v[last])
    return JointDistribution.from_sorted_levels(
        means, counts, np.add.reduceat(gamma.positives, starts)
    ), starts


def share_of(drawn: Floats, value: Floats | float) -> Any:
    """The share of draws, the first axis, that are as large as the value, which counts as one of them."""
    return (1 + (drawn >= value - TIE).sum(axis=0)) / (1 + len(drawn))


def value_of(name: str, function: Function, gamma: Any) -> float | Bracket:
    """The value of a measure, of Γ or of those of groups, which is a number."""
    value = measured(name, function, gamma)
    if any(map(math.isnan, ends(value))):
        raise InvalidParameter(f"{name} is NaN; expected a measure that gives a number")
    return value


def replicates(
    functions: Sequence[tuple[str, Function]],
    draw: Callable[[np.random.Generator], Any],
    times: int,
    generator: np.random.Generator,
    threads: int = 1,
) -> Floats:
    """(times, measures, 2): lower and upper ends of the values on draws, some `threads` at once."""

    def of(gamma: Any) -> list[tuple[float, float]]:
        return [ends(value_of(name, function, gamma)) for name, function in functions]

    found = np.empty((times, len(functions), 2))
    # Progress is shown after two seconds. Threads of linear algebra would only be in the way. No more draws are in
    # memory than three a thread.
    with (
        ThreadPoolExecutor(threads) as pool,
        threadpool_limits(1, user_api="blas"),
        Progress(times, unit="draws", ticks=True) as progress,
    ):
        for start in range(0, times if functions else 0, 3 * threads):
            part = found[start : start + 3 * threads]
            # One thread is this one: functions of users stay in it.
            part[:] = list((pool.map if threads > 1 else map)(of, [draw(generator) for _ in part]))
            progress.advance(len(part))
    return found


class Resample:
    """New Γ by draws of how often each cell of one occurs: a level with an outcome, or a weighted sample."""

    def __init__(self, gamma: JointDistribution, samples: tuple[Floats, Floats, Floats] | None) -> None:
        self.gamma, self.v = gamma, gamma.predictions
        self.weights: Floats | None = None
        if samples is None:
            counts, positives = gamma.counts, gamma.positives
            if (counts != np.rint(counts)).any() or (positives != np.rint(positives)).any():
                raise InvalidParameter(
                    "evaluate: counts of Γ are not whole, so there are no samples to draw again; expected the samples "
                    "and weights themselves"
                )
            self.counts = counts.astype(np.int64)
            self.squares = counts - positives, positives
            cells = np.concatenate(self.squares)
            self.level, self.ones = (
                np.flatnonzero(cells) % gamma.levels,
                np.flatnonzero(cells) >= gamma.levels,
            )
            times = cells[cells > 0]
        else:
            p, y, w = (part[samples[2] > 0.0] for part in samples)
            self.level, self.ones, self.weights = np.searchsorted(self.v, p), y > 0.0, w
            times = np.ones(len(w))
            if not 1e-60 <= w.max() <= 1e60:
                raise InvalidParameter(
                    f"evaluate: the largest weight is {float(w.max())!r}, of which floats hold no fourth power; "
                    "expected one from 1e-60 to 1e60: multiply all by one number"
                )
            self.squares = self._sums(w**2 * ~self.ones), self._sums(w**2 * self.ones)
        self.total = round(float(times.sum()))
        self.shares = times / self.total

    #: why nothing follows from so few clusters; "" of samples without clusters
    too_few = ""
    #: how many clusters there are; 0 where each sample is independent
    clusters = 0
    #: what variances of totals of clusters are multiplied by, as of blocks in time
    wider = 1.0
    #: the cluster of each sample, where there are clusters
    of: Ints = np.zeros(0, np.int64)

    @property
    def powers(self) -> Floats:
        """Sums (2, k) that bound variances: of squared weights, or of weights times those of their clusters."""
        if self.weights is None:
            return np.stack(self.squares)
        power = self._power()
        return np.stack((self._sums(power * ~self.ones), self._sums(power * self.ones)))

    def _power(self) -> Floats:
        assert self.weights is not None
        return self.weights**2

    def mean_cells(self, zeros: Floats, ones: Floats, most: float) -> tuple[Floats, Floats, Floats, Ends]:
        """The loss, mass and sum of squared weights of each cell that holds samples; the ends of one more loss."""
        mass = np.concatenate((self.gamma.counts - self.gamma.positives, self.gamma.positives))
        squares = np.concatenate(self.squares)
        held = (mass > 0.0) & (squares > 0.0)
        return np.concatenate((zeros, ones))[held], mass[held], squares[held], (0.0, most)

    @property
    def samples(self) -> float:
        """How many samples of equal weights vary as much."""
        return float(self.gamma.weight**2 / (self.squares[0].sum() + self.squares[1].sum()))

    def samples_in(self, cells: Ints) -> tuple[Floats, Floats]:
        """The same for each cell of levels, and the share of the weight that it holds."""
        mass = np.bincount(cells, self.gamma.counts)
        squares = np.bincount(cells, self.squares[0] + self.squares[1])
        held = mass > 0.0
        return mass[held] ** 2 / squares[held], mass[held] / self.gamma.weight

    def samples_near(self, kernel: Floats | None, place: Ints, means: Floats) -> Floats:
        """The same near points: (points, places) weights of the places of levels, or each place by itself."""
        places = 0 if kernel is None else kernel.shape[1]
        found: Any = [
            np.bincount(place, part, places)
            for part in (self.gamma.counts, self.squares[0] + self.squares[1])
        ]
        total, squares = found if kernel is None else (kernel @ found[0], kernel**2 @ found[1])
        return np.asarray(total**2 / squares)

    def bootstrap(self, generator: np.random.Generator) -> JointDistribution:
        """As many samples, drawn with replacement."""
        times = generator.multinomial(self.total, self.shares).astype(float)
        return self._gamma(times if self.weights is None else times * self.weights, self.ones)

    def calibrated(self, generator: np.random.Generator) -> JointDistribution:
        """The same predictions, and each outcome 1 with the probability predicted."""
        if self.weights is None:
            ones = generator.binomial(self.counts, self.v).astype(np.float64)
            return JointDistribution.from_sorted_levels(self.v, self.gamma.counts, ones)
        return self._gamma(self.weights, self.outcomes(generator))

    def outcomes(self, generator: np.random.Generator) -> NDArray[np.bool_]:
        """Outcomes of the samples with weights, each 1 with the probability predicted."""
        numbers = self._uniforms(1, np.arange(len(self.level)), generator)[0]
        return np.asarray(numbers < self.v[self.level])

    def _uniforms(self, rows: int, order: Ints, generator: np.random.Generator) -> Floats:
        """(rows, samples) numbers in [0, 1) of the samples in an order, below which chances have the outcome 1."""
        return generator.random((rows, len(order)))

    def blocks(self, generator: np.random.Generator) -> Iterator[Block]:
        """The samples in blocks, each sample or cluster in any of them with the same chance."""
        if self.weights is None:
            left = np.stack(self.squares).astype(np.int64)
            for more in range(BLOCKS, 0, -1):
                drawn = generator.binomial(left, 1.0 / more)
                left -= drawn
                yield Block(drawn.astype(np.float64), drawn.astype(np.float64))
            return
        levels, w, table = len(self.v), self.weights, None
        of, power = self.of if self.clusters else np.arange(len(w)), self._power()
        block, cell = generator.integers(0, BLOCKS, of.max() + 1)[of], self.level + levels * self.ones
        for b in range(BLOCKS):
            here = block == b
            mass, squares = (
                np.bincount(cell[here], part[here], 2 * levels).astype(np.float64).reshape(2, levels)
                for part in (w, power)
            )
            if self.clusters:
                from scipy.sparse import coo_array

                shape = self.clusters, 2 * levels
                table = coo_array((w[here], (of[here], cell[here])), shape).tocsr()
            yield Block(mass, squares, table, self.wider)

    def changes(self, kind: str, times: int, generator: np.random.Generator) -> Iterator[Change]:
        """Changes of the masses of levels and outcomes by new samples, some at a time."""
        gamma, place, wider = self.gamma, np.arange(self.gamma.levels), 1.0
        if gamma.levels > MOST_LEVELS:
            gamma, starts = grouped(self.gamma, MOST_LEVELS)
            place = np.searchsorted(starts, place, side="right") - 1
            wider = WIDENED
        draw = self._normal(gamma, place) if kind == "resampled" else self._outcomes(gamma, place)
        rows = max(AT_ONCE // max(gamma.levels, len(self.level) if self.clusters else 0), 1)
        for start in range(0, times, rows):
            zeros, ones = draw(min(rows, times - start), generator)
            yield Change(gamma, wider * zeros, wider * ones, self.samples, self.gamma, place)

    def _normal(self, gamma: JointDistribution, place: Ints) -> Draw:
        added = ADDED * sum(part.sum() for part in self.squares) / self.total * gamma.mass
        mass = np.concatenate((gamma.mass * (1.0 - gamma.means), gamma.mass * gamma.means))
        scale = np.sqrt(np.concatenate([np.bincount(place, part) + added for part in self.squares]))
        scale /= self.gamma.weight

        def draw(rows: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
            both = generator.standard_normal((rows, len(scale)))
            both *= scale
            both -= both.sum(axis=1)[:, None] * mass
            return both[:, : gamma.levels], both[:, gamma.levels :]

        return draw

    def _outcomes(self, gamma: JointDistribution, place: Ints) -> Draw:
        v, weight = gamma.predictions, self.gamma.weight
        squares = np.bincount(place, self.squares[0] + self.squares[1])
        level = place[self.level]
        order = np.argsort(level, kind="stable")
        starts = np.searchsorted(level[order], np.arange(len(v)))

        def draw(rows: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
            if self.weights is None:
                counts = gamma.counts.astype(np.int64)
                ones = (generator.binomial(counts, v, (rows, len(v))) - gamma.counts * v) / weight
            elif self.clusters or len(order) <= MOST_LEVELS:
                w, p = self.weights[order], v[level[order]]
                drawn = w * ((self._uniforms(rows, order, generator) < p) - p)
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
