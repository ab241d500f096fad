"""What is summed over the rows of a file that is read in parts, and the report that is made of the sums.

Sums of parts are merged, in any order and any tree, to those of the whole: counts exactly, means up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import JointDistribution
from onlinecal.forecasts.cautions import tiny_groups
from onlinecal.forecasts.cells import SIGNS, UNIT, as_number, hardly_per_cent, outside
from onlinecal.forecasts.inference import Difference, differences_of, paired_p
from onlinecal.forecasts.measuring import GROUPS, Report, Settings, measure_gamma, part_of, with_holm

if TYPE_CHECKING:
    from onlinecal.forecasts.large import Question

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Facts:
    """What decides whether rows can be measured, and how.

    Attributes
    ----------
    total, rows : int
        How many there are, and how many have all forecasts and an outcome.
    ones : int
        Outcomes 1.
    cells : tuple of (int, str or None, float or None, float or None)
        Of each column of forecasts, and of outcomes: how many are empty, one that is no number (no outcome), one out of
        [0, 1], and the largest.
    different : tuple of arrays or None
        The different forecasts of each column in order; None for more than are looked for.
    """

    total: int
    rows: int
    ones: int
    cells: tuple[tuple[int, str | None, float | None, float | None], ...]
    different: tuple[Floats | None, ...]

    def moved(self, settings: Settings) -> tuple[bool, ...]:
        """Which columns of forecasts go to the grid."""
        return tuple(values is None or len(values) > settings.distinct for values in self.different)

    def judged(self, question: Question) -> list[str]:
        """What is left out, in words.

        Raises
        ------
        InvalidData
            What keeps the rows from being measured.
        """
        source, asked = question.source, question.asked
        if self.total == 0:
            raise InvalidData(f"{source} has a header and no rows; expected at least one")
        said = []
        for name, (_, strange, wrong, largest) in zip(question.forecasts, self.cells, strict=False):
            if strange is not None and as_number(strange)[1]:
                raise InvalidData(SIGNS.format(where=source, name=name))
            if strange is not None:
                raise InvalidData(f"{source}: column {name!r} holds {strange!r}; expected a number")
            if wrong is not None:
                written = 100.0 * wrong if asked.percent else wrong
                raise InvalidData(outside(source, name, f"{written:.15g}", asked.percent, [written]))
            if asked.percent and largest is not None and hardly_per_cent(largest):
                said.append(UNIT.format(name=name))
        if (strange := self.cells[-1][1]) is not None:
            raise InvalidData(
                f"{source}: column {question.outcome!r} holds {strange!r}; expected 0 or 1, or --positive WORD"
            )
        if asked.positive is not None and not self.ones:
            raise InvalidData(f"{source}: no row of column {question.outcome!r} holds {asked.positive!r}")
        missing = sum(empty for empty, *_ in self.cells)
        if not missing:
            return said
        if not asked.skip_missing:
            raise InvalidData(
                f"{source}: {missing} cells of forecasts or outcomes are missing; expected a value, or --skip-missing "
                "to leave such rows out"
            )
        if self.rows == 0:
            raise InvalidData(f"{source}: no row has both a forecast and an outcome; expected at least one")
        return [
            *said, f"{self.total - self.rows} of {self.total} rows have no forecast or outcome and are left out"
        ]  # fmt: skip


def merged_facts(parts: Sequence[Facts], most: int) -> Facts:
    """Of all rows.

    Parameters
    ----------
    parts : sequence of Facts
    most : int
        So many different forecasts are looked for.
    """
    cells = tuple(
        (
            sum(cell[0] for cell in column),
            _first(cell[1] for cell in column),
            _first(cell[2] for cell in column),
            max((cell[3] for cell in column if cell[3] is not None), default=None),
        )
        for column in zip(*(part.cells for part in parts), strict=True)
    )
    different = tuple(
        _union(column, most) for column in zip(*(part.different for part in parts), strict=True)
    )
    total, rows, ones = (sum(getattr(part, name) for part in parts) for name in ("total", "rows", "ones"))
    return Facts(total, rows, ones, cells, different)


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _union(columns: Sequence[Floats | None], most: int) -> Floats | None:
    if any(values is None for values in columns):
        return None
    found: Floats = np.unique(np.concatenate([values for values in columns if values is not None]))
    return None if len(found) > most else found


@dataclass(frozen=True)
class Pair:
    """The differences of a score between two columns.

    Attributes
    ----------
    score, first, second : str
        As in `Difference`.
    count : int
        Of those that are finite.
    mean, power : float
        Their mean, and the sum of squares of what they are more or less.
    """

    score: str
    first: str
    second: str
    count: int
    mean: float
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
    """What a report is made of.

    Attributes
    ----------
    gammas : tuple of JointDistribution or None
        Of each column of forecasts; None of no rows.
    chances : tuple of JointDistribution or None
        The same with the sum of forecasts in place of outcomes 1, of columns that were moved to the grid.
    distances : tuple of float
        How far the forecasts of each column were moved to the grid, in all.
    groups : tuple of dict of str to JointDistribution
        Of each column, by group.
    pairs : tuple of Pair
    """

    gammas: tuple[JointDistribution | None, ...]
    chances: tuple[JointDistribution | None, ...]
    distances: tuple[float, ...]
    groups: tuple[dict[str, JointDistribution | None], ...]
    pairs: tuple[Pair, ...]


def merged_sums(parts: Sequence[Sums]) -> Sums:
    """Of all rows."""
    groups = []
    for column in zip(*(part.groups for part in parts), strict=True):
        names = sorted(set().union(*column))
        groups.append({name: _merged([one.get(name) for one in column]) for name in names})
    return Sums(
        tuple(_merged(column) for column in zip(*(part.gammas for part in parts), strict=True)),
        tuple(_merged(column) for column in zip(*(part.chances for part in parts), strict=True)),
        tuple(math.fsum(column) for column in zip(*(part.distances for part in parts), strict=True)),
        tuple(groups),
        tuple(reduce(Pair.merge, column) for column in zip(*(part.pairs for part in parts), strict=True)),
    )


def _merged(gammas: Sequence[JointDistribution | None]) -> JointDistribution | None:
    there = [gamma for gamma in gammas if gamma is not None]
    return there[0].merge(*there[1:]) if there else None


def report_of_sums(
    question: Question, facts: Facts, sums: Sums, settings: Settings, said: list[str]
) -> Report:
    """The report of all rows.

    Parameters
    ----------
    question : Question
    facts, sums
        Of all rows.
    settings : Settings
    said : list of str
        What was left out.

    Raises
    ------
    InvalidData
        More than `GROUPS` groups.
    """
    columns, groups = [], dict[str, float]()
    for i, (name, moved) in enumerate(zip(question.forecasts, facts.moved(settings), strict=True)):
        if len(sums.groups[i]) > GROUPS:
            raise InvalidData(
                f"{question.source}: {', '.join(question.asked.by)!r} has {len(sums.groups[i])} different values; "
                f"expected at most {GROUPS} groups"
            )
        gamma = sums.gammas[i]
        assert gamma is not None
        parts = [
            part_of(group, int(one.weight), one, settings.seed)
            for group, one in sorted(sums.groups[i].items())
            if one is not None
        ]
        groups = {part.name: float(part.rows) for part in parts}
        # Additions of rows in any order: the sum may be rounded up to so much.
        distance = min(sums.distances[i] / gamma.weight, 0.5 / settings.grid) if moved else None
        chances = sums.chances[i]
        means = None if chances is None else chances.means
        columns.append(measure_gamma(name, gamma, distance, settings, with_holm(parts), means))
    return Report(
        question.source, question.outcome, facts.rows, columns, _differences(sums.pairs, facts.rows), 0,
        ", ".join(question.asked.by), "", [*question.said, *said], tiny_groups(groups), settings,
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
