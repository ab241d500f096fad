"""Sums over the rows of a file that is read in parts, and the report that is made of them.

Sums of parts are merged, in any order and any tree, to those of the whole: counts exactly, means up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np

from onlinecal.core.joint import JointDistribution
from onlinecal.forecasts.cautions import tiny_groups
from onlinecal.forecasts.inference import Difference, differences_of, paired_p, scores
from onlinecal.forecasts.measuring import Report, Settings, few_groups, measure_gamma, part_of, with_holm
from onlinecal.forecasts.reading import Asked, Log, remarks


@dataclass(frozen=True, eq=False)
class Column:
    """Γ of one column of forecasts: of all of them, or, where there are too many different ones, of a grid."""

    gamma: JointDistribution
    groups: dict[str, JointDistribution]
    # how far the forecasts were moved to the grid, in all; None without a grid
    moved: float | None = None
    # the same as `gamma` with the sum of forecasts in place of outcomes 1, on a grid
    chances: JointDistribution | None = None

    def on_grid(self, steps: int) -> Column:
        """With every forecast at the nearest i/steps."""
        if self.moved is not None:
            return self
        v, n = self.gamma.predictions, self.gamma.counts
        gamma, distance = self.gamma.round(steps)
        chances, _ = JointDistribution.from_sorted_levels(v, n, n * v).round(steps)
        groups = {name: one.round(steps)[0] for name, one in self.groups.items()}
        return Column(gamma, groups, distance * gamma.weight, chances)

    @classmethod
    def merged(cls, parts: Sequence[Column], settings: Settings) -> Column:
        """Of all rows: on a grid if there are more than `settings.distinct` different forecasts in them."""
        whole = None
        if all(part.moved is None for part in parts):
            whole = _merged(part.gamma for part in parts)
            if whole.levels > settings.distinct:
                whole = None
        if whole is None:
            parts = [part.on_grid(settings.grid) for part in parts]
        names = sorted(set().union(*(part.groups for part in parts)))
        groups = {name: _merged(part.groups[name] for part in parts if name in part.groups) for name in names}
        if whole is not None:
            return cls(whole, groups)
        return cls(
            _merged(part.gamma for part in parts),
            groups,
            math.fsum(part.moved for part in parts if part.moved is not None),
            _merged((part.chances for part in parts if part.chances is not None), whole=False),
        )


def _merged(gammas: Iterable[JointDistribution], whole: bool = True) -> JointDistribution:
    first, *others = gammas
    gamma = first.merge(*others)
    if not whole:
        return gamma
    # Means of whole numbers do not depend on the order of the parts.
    return JointDistribution.from_counts(gamma.predictions, gamma.counts, np.rint(gamma.positives))


@dataclass(frozen=True)
class Pair:
    """The differences of a score between two columns."""

    score: str  # as in `Difference`
    first: str
    second: str
    count: int  # of those that are finite
    mean: float  # their mean, and the sum of squares of what they are more or less
    power: float

    def merge(self, other: Pair) -> Pair:
        """Of the rows of both (Chan, Golub & LeVeque 1983)."""
        count = self.count + other.count
        if count == 0:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * (other.count / count)
        power = self.power + other.power + step * step * (self.count * (other.count / count))
        return Pair(self.score, self.first, self.second, count, mean, power)


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums that a report is made of."""

    total: int  # how many there are, and how many have all forecasts and an outcome
    rows: int
    zeros: frozenset[str]  # words that stand for outcome 0
    largest: dict[str, float]  # the largest forecast of each column
    columns: dict[str, Column]  # empty where there are no rows
    pairs: tuple[Pair, ...]


def sums_of(log: Log, settings: Settings) -> Sums:
    """The sums of some rows."""
    columns = dict[str, Column]()
    for name, p in log.forecasts.items() if log.rows else ():
        groups = {
            group: JointDistribution.from_samples(p[rows], log.outcomes[rows])
            for group, rows in (log.groups or {}).items()
        }
        one = Column(JointDistribution.from_samples(p, log.outcomes), groups)
        columns[name] = Column.merged([one], settings)
    largest = {name: float(p.max(initial=0.0)) for name, p in log.forecasts.items()}
    return Sums(log.total, log.rows, frozenset(log.zeros), largest, columns, tuple(_pairs(log)))


def merged_sums(parts: Sequence[Sums], settings: Settings) -> Sums:
    """The sums of all rows."""
    there = [part for part in parts if part.rows]
    columns = {
        name: Column.merged([part.columns[name] for part in there], settings)
        for name in (there[0].columns if there else ())
    }
    return Sums(
        sum(part.total for part in parts),
        sum(part.rows for part in parts),
        frozenset().union(*(part.zeros for part in parts)),
        {name: max(part.largest[name] for part in parts) for name in parts[0].largest},
        columns,
        tuple(reduce(Pair.merge, pairs) for pairs in zip(*(part.pairs for part in parts), strict=True)),
    )


def _pairs(log: Log) -> Iterable[Pair]:
    of = (
        {name: scores(p, log.outcomes) for name, p in log.forecasts.items()} if len(log.forecasts) > 1 else {}
    )
    for a, b in combinations(of, 2):
        for score in ("brier", "log"):
            with np.errstate(invalid="ignore"):
                difference = of[a][score] - of[b][score]
            finite = difference[np.isfinite(difference)]
            mean = float(finite.mean()) if len(finite) else 0.0
            yield Pair(score, a, b, len(finite), mean, float(((finite - mean) ** 2).sum()))


def report_of_sums(
    source: str, asked: Asked, guessed: Sequence[str], sums: Sums, settings: Settings
) -> Report:
    """The report of all rows; `guessed` is what was said of the columns."""
    ones = int(next((c.gamma.positives.sum() for c in sums.columns.values()), 0))
    said = remarks(source, asked, sums.total, sums.rows, ones, sums.largest, sums.zeros)
    columns, groups = [], dict[str, float]()
    for name, column in sums.columns.items():
        few_groups(source, ", ".join(asked.by), len(column.groups))
        parts = [
            part_of(group, int(one.weight), one, settings.seed)
            for group, one in sorted(column.groups.items())
        ]
        groups = {part.name: float(part.rows) for part in parts}
        distance = means = None
        if column.moved is not None and column.chances is not None:
            # Additions of rows in any order: the sum may be rounded up to so much.
            distance, means = min(column.moved / sums.rows, 0.5 / settings.grid), column.chances.means
        columns.append(measure_gamma(name, column.gamma, distance, settings, with_holm(parts), means))
    return Report(
        source, str(asked.outcome), sums.rows, columns, _differences(sums.pairs, sums.rows), 0,
        ", ".join(asked.by), "", [*guessed, *said], tiny_groups(groups), settings,
    )  # fmt: skip


def _differences(pairs: Sequence[Pair], rows: int) -> list[Difference]:
    """Paired tests of the scores."""
    found = []
    for one in pairs:
        if one.count < rows or rows < 2:
            continue
        error = math.sqrt(one.power / (rows - 1.0) / rows)
        found.append((one.score, one.first, one.second, one.mean, error, paired_p(one.mean, error, rows)))
    return differences_of(found)
