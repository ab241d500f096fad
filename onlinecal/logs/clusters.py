"""Samples that are independent by clusters only: their resamples, and labels of clusters."""

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import vector
from onlinecal.core.words import number_of
from onlinecal.logs.resampling import ADDED, AT_ONCE, FEW, Draw, Resample
from onlinecal.measures.base import Ends

#: lags that are small after the last one of a length of blocks
_LAGS = 5
#: clusters that intervals and p-values need; and where outcomes are in this share of them, extremes are those seen
FEWEST, SPREAD = 15, 0.9
#: independent times that blocks in time need, by sums of correlations at many lags
TELLING = 50
#: `Lags.alike` is above this in 10 % of cases, if times are independent
DEPENDENT = 1.28


class Clustered(Resample):
    """New Γ from samples of independent clusters: a change is a sum of those of clusters, times normal multipliers.

    Outcomes are drawn by a number of their cluster or of their own (docs/intervals.md).

    Source: Cameron, Gelbach & Miller 2008 (wild bootstrap of clusters); van der Vaart & Wellner 1996, §2.9.
    """

    def __init__(
        self,
        gamma: JointDistribution,
        samples: tuple[Floats, Floats, Floats],
        labels: Ints,
        wider: float = 1.0,
        too_few: str = "",
    ) -> None:
        super().__init__(gamma, samples)
        self.wider = wider
        self.of = np.unique(labels[samples[2] > 0.0], return_inverse=True)[1].astype(np.int64)
        self.of_cluster: Floats = np.bincount(self.of, self._weights).astype(np.float64)
        self.clusters = len(self.of_cluster)
        self.power = float((self.of_cluster**2).sum())
        self.too_few = too_few and f"none: {too_few}"
        if not too_few and self.samples < FEWEST - 1e-9:
            less = f" weigh as much as {self.samples:.3g} equal ones" * (self.samples < 0.999 * self.clusters)
            self.too_few = f"none: {number_of(self.clusters, 'cluster')}{less}; expected at least {FEWEST}"

    @property
    def error(self) -> float:
        """Standard error of the mean residual of calibrated forecasts."""
        residuals = self._weights * (self.ones - self.v[self.level])
        return float(np.linalg.norm(np.bincount(self.of, residuals)) * self.wider**0.5 / self.gamma.weight)

    @property
    def samples(self) -> float:
        """How many clusters of equal weights vary as much."""
        return float(self.gamma.weight**2 / (self.wider * self.power))

    def samples_in(self, cells: Ints) -> tuple[Floats, Floats]:
        """The same for each cell of levels, and the share of the weight that it holds."""
        table = self._table(cells[self.level], int(cells.max()) + 1, self._weights)
        mass = np.bincount(cells, self.gamma.counts)
        squares = self.wider * np.asarray(table.multiply(table).sum(axis=0)).ravel()
        held = mass > 0.0
        return mass[held] ** 2 / squares[held], mass[held] / self.gamma.weight

    def samples_near(self, kernel: Floats | None, place: Ints, means: Floats) -> Floats:
        """Samples of equal weight with the variance of the mean outcome by clusters, as seen around `means`."""
        # They are at most those of independent rows. They are at least those of clusters of equal outcomes, which are
        # taken where they are below 30.
        # Source: Korn & Graubard 1998.
        count = int(place.max()) + 1 if kernel is None else kernel.shape[1]
        mass = self._table(place[self.level], count, self._weights).T.tocsr()
        ones = self._table(place[self.level], count, self._weights * self.ones).T.tocsr()
        found, rows = np.empty(len(means)), max(AT_ONCE // self.clusters, 1)
        for start in range(0, len(means), rows):
            part = slice(start, start + rows)
            total, there = (
                each[part].toarray() if kernel is None else kernel[part] @ each for each in (mass, ones)
            )
            m = means[part]
            square, power = (
                total.sum(axis=1) ** 2 / self.wider,
                ((there - m[:, None] * total) ** 2).sum(axis=1),
            )
            least = square / (total**2).sum(axis=1)
            variance = m * (1.0 - m) * square
            seen = np.divide(variance, power, out=least.copy(), where=power > 1e-12 * variance)
            found[part] = np.where(least < FEW, least, np.maximum(seen, least))
        return np.minimum(found, super().samples_near(kernel, place, means))

    def mean_cells(self, zeros: Floats, ones: Floats, most: float) -> tuple[Floats, Floats, Floats, Ends]:
        """Mean loss, mass and its square of each cluster; one more has the extremes of losses, or those seen."""
        loss = np.where(self.ones, ones[self.level], zeros[self.level])
        means, mass, squares, within = cluster_means(self.of, self._weights, loss, self.ones, 2, most)
        return means, mass, self.wider * squares, within

    def bootstrap(self, generator: np.random.Generator) -> JointDistribution:
        """As many clusters, drawn with replacement."""
        times = generator.multinomial(self.clusters, np.full(self.clusters, 1.0 / self.clusters))
        return self._gamma(times[self.of] * self._weights, self.ones)

    def _uniforms(self, rows: int, order: Ints, generator: np.random.Generator) -> Floats:
        common = generator.random((rows, self.clusters))[:, self.of[order]]
        single, least = generator.random(common.shape), 1.0 - self.shared
        # Above the least it tells that a row has its cluster's number, below it is one of the row's own.
        return np.where(single >= least, common, single / max(least, 1e-300))

    @cached_property
    def shared(self) -> float:
        """The chance that a row's outcome is drawn by its cluster's number, from 0 to 1.

        It gives totals of residuals of clusters the mean square seen and its standard error. It is 1 where fewer than
        30 clusters have either outcome.
        """
        if min(len(np.unique(self.of[self.ones == kind])) for kind in (False, True)) < FEW:
            return 1.0
        of, w, p = self.of, self._weights, self.v[self.level]
        residuals = w * (self.ones - p)
        beyond = self.wider * np.bincount(of, residuals) ** 2 - np.bincount(of, residuals**2)
        seen = float(beyond.sum() + np.linalg.norm(beyond))
        # Rows i ≠ j with one number have the covariance min(p_i, p_j) − p_i p_j.
        order = np.lexsort((p, of))
        sums, last = (
            np.cumsum(w[order]),
            np.searchsorted(of[order], np.arange(self.clusters), side="right") - 1,
        )
        least = 2.0 * float((w * p)[order] @ (sums[last][of[order]] - sums))
        equal = least - float((np.bincount(of, w * p) ** 2).sum() - ((w * p) ** 2).sum())
        if seen <= 0.0 or equal <= 0.0:
            return 0.0 if seen <= 0.0 else 1.0
        return min(seen / equal, 1.0) ** 0.5

    def _normal(self, gamma: JointDistribution, place: Ints) -> Draw:
        cells = place[self.level] + gamma.levels * self.ones
        share = self.wider**0.5 * self._weights / self.gamma.weight
        change = self._table(cells, 2 * gamma.levels, share).T.tocsr()
        mass = np.concatenate((gamma.mass * (1.0 - gamma.means), gamma.mass * gamma.means))
        added = (
            np.sqrt(ADDED * self.wider * self.power / self.clusters * np.tile(gamma.mass, 2))
            / self.gamma.weight
        )

        def draw(rows: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
            both = (change @ generator.standard_normal((self.clusters, rows))).T
            both += added * generator.standard_normal(both.shape)
            both -= both.sum(axis=1)[:, None] * mass
            return both[:, : gamma.levels], both[:, gamma.levels :]

        return draw

    def _power(self) -> Floats:
        return self.wider * self._weights * self.of_cluster[self.of]

    @property
    def _weights(self) -> Floats:
        assert self.weights is not None
        return self.weights

    def _table(self, columns: Ints, many: int, values: Floats) -> Any:
        """Sums of values by cluster and column."""
        from scipy.sparse import coo_array

        return coo_array((values, (self.of, columns)), (self.clusters, many)).tocsr()


def cluster_means(
    of: Ints, weights: Floats, loss: Floats, y: Any, kinds: int, most: float
) -> tuple[Floats, Floats, Floats, Ends]:
    """Mean loss, mass and its square of each cluster; one more has the extremes of losses, or those seen."""
    mass = np.bincount(of, weights).astype(np.float64)
    means = np.bincount(of, weights * loss) / mass
    # Worse clusters may be rare where an outcome is: in few clusters, or mostly in some.
    each: Any = [np.bincount(of, weights * (y == kind), len(mass)) for kind in range(kinds)]
    rarer = min(map(_effective, each))
    seen = rarer >= min(FEW, SPREAD * _effective(mass))
    return means, mass, mass**2, (float(means.min()), float(means.max())) if seen else (0.0, most)


def _effective(mass: Floats) -> float:
    """How many clusters of equal mass vary as much."""
    return float(mass.sum() ** 2 / max((mass**2).sum(), np.finfo(np.float64).tiny))


class Lags(NamedTuple):
    """How totals in order of time depend on those before (docs/intervals.md)."""

    correlation: float  # of neighbours
    alike: float  # how much of each the totals before it tell, in standard deviations of independent ones
    wider: float  # the variance of long sums, in multiples of that of independent totals
    length: int  # of blocks
    lacking: float  # by which share of it the variance of sums of blocks is expected to be too small
    long: float  # as `wider`, by √T and by 2√T lags, the larger of both, at least 1


def lags_of(totals: Floats) -> Lags:
    """The dependence of totals on those before."""
    centred, times = totals - totals.mean(), len(totals)
    root = math.ceil(times**0.5)
    most = min(root + _LAGS, times - 1)
    spectrum = np.abs(np.fft.rfft(centred, 2 * times)) ** 2
    every = np.fft.irfft(spectrum, 2 * times)
    moments = every[: most + 1]
    if most < 1 or not moments[0] > 1e-24 * times:
        return Lags(0.0, 0.0, 1.0, 1, 0.0, 1.0)
    # Correlations at k have the weights 2^−k. Of independent totals their sum has the mean −1/n, as the mean total is
    # known (Kendall 1954), and the variance Σ 4^−k/n.
    halving = 0.5 ** np.arange(1, most + 1)
    alike = (float(halving @ moments[1:]) / float(moments[0]) + 1.0 / times) * (3.0 * times) ** 0.5
    long = 1.0
    for last in (root, min(2 * root, times - 1)):
        falling = 1.0 - np.arange(1, last + 1) / (last + 1)
        long = max(long, 1.0 + 2.0 * float(falling @ every[1 : last + 1]) / float(moments[0]))
    large = np.flatnonzero(np.abs(moments[1:]) >= 2.0 * (math.log10(times) / times) ** 0.5 * moments[0]) + 1
    gaps = np.diff(large, prepend=0, append=most + _LAGS + 1) > _LAGS
    last = max(int(np.append(0, large)[np.argmax(gaps)]), 1)
    k = np.arange(1, min(2 * last, most) + 1)
    weighted = np.clip(2.0 - k / last, 0.0, 1.0) * moments[k]
    power = moments[0] + 2.0 * weighted.sum()
    length, beyond = 3.0 * times**0.5, 0.0
    if power > 0.0:
        beyond = 2.0 * float(k @ weighted) / power
        length = min(abs(beyond), times) ** (2.0 / 3.0) * times ** (1.0 / 3.0)
    length = math.ceil(min(max(length, 1.0), 3.0 * times**0.5))
    lacking = max(beyond, 0.0) / length
    correlation = float(moments[1] / moments[0])
    return Lags(correlation, alike, float(power / moments[0]), length, lacking, long)


class Blocks(NamedTuple):
    """The parts of rows in order of time that are taken as independent."""

    labels: Ints | None  # None where each row is
    wider: float = 1.0  # what variances of sums of blocks are multiplied by
    too_few: str = ""  # why nothing follows from them


def blocks_in_time(residuals: Floats, clusters: Ints | None = None) -> Blocks:
    """Blocks of rows in order of time where near ones are alike, else the clusters given (docs/intervals.md)."""
    totals = residuals if clusters is None else np.bincount(clusters, residuals).astype(np.float64)
    lags, n = lags_of(totals), len(totals)
    if lags.alike <= DEPENDENT:
        return Blocks(clusters)
    centred, place = totals - totals.mean(), np.arange(n) // lags.length
    seen = float((np.bincount(place, centred) ** 2).sum() / (centred**2).sum())
    few = ""
    if n < TELLING * lags.long:
        few = (
            f"errors near each other in time are alike, and {n} times tell as much as {n / lags.long:.3g} independent "
            f"ones; expected at least {TELLING}"
        )
    return Blocks(
        place if clusters is None else place[clusters], max(1.0 + lags.lacking, lags.long / seen), few
    )


class Samples(NamedTuple):
    """Rows of forecasts: their outcomes, weights, how often each is there, and which are independent."""

    p: Floats
    y: Floats
    weights: Floats | None
    counts: Floats | None
    units: Blocks

    @classmethod
    def given(cls, where: str, p: ArrayLike, y: ArrayLike, weights: Any, clusters: Any) -> "Samples":
        """Rows of a user that `JointDistribution.from_samples` has taken, with labels of clusters."""
        rows = vector("p", p)
        labels = None if clusters is None else labels_of(clusters, len(rows), where)
        w = None if weights is None else vector("weights", weights)
        return cls(rows, vector("y", y), w, None, Blocks(labels))

    def of(self, rows: Ints) -> "Samples":
        """Some of the rows."""
        weights, counts = (None if each is None else each[rows] for each in (self.weights, self.counts))
        labels = self.units.labels
        units = self.units._replace(labels=None if labels is None else labels[rows])
        return Samples(self.p[rows], self.y[rows], weights, counts, units)

    @property
    def mass(self) -> Floats:
        """The weight of each row; without weights, how often it is there."""
        given = self.counts if self.weights is None else self.weights
        return np.ones(len(self.p)) if given is None else given

    @property
    def gamma(self) -> JointDistribution:
        """Γ of the rows."""
        if self.counts is None:
            return JointDistribution.from_samples(self.p, self.y, weights=self.weights)
        return JointDistribution.from_counts(self.p, self.counts, self.counts * self.y)

    def resample(self, gamma: JointDistribution) -> Resample:
        """The way to draw such rows again."""
        each = self.p, self.y, np.ones(len(self.p)) if self.weights is None else self.weights
        labels, wider, too_few = self.units
        if labels is None:
            return Resample(gamma, None if self.weights is None else each)
        return Clustered(gamma, each, labels, wider, too_few)


def labels_of(clusters: ArrayLike, rows: int, where: str = "evaluate") -> Ints:
    """Labels of clusters as numbers from 0, in the order of their first rows: numbers and texts draw the same then."""
    given = np.asarray(clusters)
    if given.shape != (rows,):
        raise InvalidParameter(
            f"{where}: clusters has shape {given.shape}; expected ({rows},), a label for each prediction"
        )
    if given.dtype.kind == "f" and np.isnan(given).any():
        i = int(np.argmax(np.isnan(given)))
        raise InvalidParameter(f"{where}: clusters[{i}] is missing; expected a label for each prediction")
    try:
        _, first, place = np.unique(given, return_index=True, return_inverse=True)
        return np.asarray(np.argsort(np.argsort(first))[place], dtype=np.int64)
    except TypeError:
        raise InvalidParameter(f"{where}: clusters of several types; expected numbers or strings") from None
