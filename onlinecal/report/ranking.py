"""Forecasters compared nature by nature, and how much of that is beyond doubt: ranks, fronts, differences by run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.growth import check_level, simultaneous
from onlinecal.growth.orders import Pairs, adjusted, differences, lower, ranks
from onlinecal.report.curves import Study, columns_of, in_common, open_at_the_end, runs_of
from onlinecal.study.played import Played

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
COMMON_RUNS = "Only runs that all forecasters have are compared"
OPEN = "Questions that are open at the end are in no total"
RECORDED = (
    "On recorded outcomes, which are the same in all runs, it is over the forecasters' randomness alone"
)


@dataclass(frozen=True)
class Contest:
    """The forecasters against one nature at its largest T, in the runs that all of them have."""

    nature: str
    forecasters: tuple[str, ...]
    horizon: int
    runs: int
    #: questions without a known outcome at the end
    open: int
    #: whether some forecaster has more runs
    fewer: bool
    #: whether all runs have the same outcomes: certainty is over the forecasters' randomness alone
    recorded: bool

    @staticmethod
    def of(cells: Sequence[Played], measure: str) -> dict[str, Any]:
        """The fields of the contest of these cells."""
        runs = {cell.totals[measure].shape[1] for cell in cells}
        first = cells[0]
        return {
            "nature": first.nature, "forecasters": tuple(c.forecaster for c in cells), "horizon": first.horizon,
            "runs": min(runs), "open": open_at_the_end(first), "fewer": len(runs) > 1,
            "recorded": first.recorded,
        }  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """The facts of the contest."""
        return {name: getattr(self, name) for name in ("nature", "horizon", "runs", "open", "recorded")}


def remarks(found: Sequence[Contest]) -> list[str]:
    """Remarks of a legend on runs, recorded outcomes and open questions, without a full stop."""
    asked = {"recorded": RECORDED, "fewer": COMMON_RUNS, "open": OPEN}
    return [said for name, said in asked.items() if any(getattr(each, name) for each in found)]


def is_payoff(column: Column) -> bool:
    """Whether a higher total is the better one."""
    return column.of_task and column.measure == "payoff"


def last_cells(study: Study, nature: str, measures: Sequence[str]) -> list[Played]:
    """Cells of a nature at its largest T that have these measures."""
    cells = [c for c in study.cells if c.nature == nature and all(m in c.totals for m in measures)]
    last = max((c.horizon for c in cells), default=0)
    return [c for c in cells if c.horizon == last]


def totals_in_common(cells: Sequence[Played], measure: str) -> Floats:
    """The last totals of the runs that all cells have, (cells, runs)."""
    return in_common([cell.totals[measure][-1] for cell in cells])


@dataclass(frozen=True)
class Standing(Contest):
    """Ranks against one nature; `before` says whether row is better than column beyond doubt."""

    #: whether nature may look at forecasts, so that each forecaster has outcomes of its own
    own: bool
    means: Floats
    ranks: Floats
    before: Bools
    #: of the values that are ranked, of which the lower is the better
    pairs: Pairs

    @property
    def span(self) -> NDArray[np.int64]:
        """(k, 2): the best and the worst rank that are not ruled out, of the expected totals."""
        best = 1 + self.before.sum(axis=0)
        return np.stack([best, len(self.forecasters) - self.before.sum(axis=1)], axis=1)

    @property
    def apart(self) -> list[tuple[str, str]]:
        """Pairs that are not told apart, the better mean first."""
        order = np.argsort(self.ranks, kind="stable")
        return [
            (self.forecasters[i], self.forecasters[j])
            for at, i in enumerate(order)
            for j in order[at + 1 :]
            if not (self.before[i, j] or self.before[j, i])
        ]


@dataclass(frozen=True)
class Ranking:
    """Forecasters by one measure; all orders hold together with the level."""

    measure: str
    higher: bool
    level: float
    standings: tuple[Standing, ...]

    def mean_ranks(self) -> dict[str, tuple[float, float, float, int]]:
        """Forecaster → its mean rank, the least and the largest that are not ruled out, and the number of natures."""
        found: dict[str, list[tuple[float, int, int]]] = {}
        for standing in self.standings:
            for who, rank, span in zip(standing.forecasters, standing.ranks, standing.span, strict=True):
                found.setdefault(who, []).append((float(rank), *map(int, span)))  # type: ignore[arg-type]
        means = {who: (*(float(v) for v in np.mean(own, axis=0)), len(own)) for who, own in found.items()}
        return dict(sorted(means.items(), key=lambda item: item[1][0]))  # type: ignore[arg-type]

    def as_json(self) -> dict[str, Any]:
        """The data of `compare --ranking --json`."""
        each = simultaneous(sum(math.comb(len(s.means), 2) for s in self.standings), self.level)
        doubts = adjusted([s.pairs for s in self.standings])
        sign, natures = -1.0 if self.higher else 1.0, []
        for s, p in zip(self.standings, doubts, strict=True):
            half, pairs = s.pairs.half_width(each), []
            for i, j in zip(*np.tril_indices(len(s.means), -1), strict=True):
                value, width = sign * s.pairs.difference[i, j], half[i, j]
                known = math.isfinite(value) and math.isfinite(width)
                better = i if s.before[i, j] else j if s.before[j, i] else None
                pairs.append({
                    "first": s.forecasters[i],
                    "second": s.forecasters[j],
                    "difference": _number(value),
                    "lower": value - width if known else None,
                    "upper": value + width if known else None,
                    "p": float(p[i, j]),
                    "better": None if better is None else s.forecasters[better],
                })  # fmt: skip
            ranked = [
                {"forecaster": who, "total": _number(t), "rank": float(r), "best": int(b), "worst": int(w)}
                for who, t, r, (b, w) in zip(s.forecasters, s.means, s.ranks, s.span, strict=True)
            ]
            natures.append({**s.as_json(), "own_outcomes": s.own, "forecasters": ranked, "pairs": pairs})
        names = ("forecaster", "mean_rank", "best", "worst", "natures")
        return {
            "measure": self.measure,
            "better": "higher" if self.higher else "lower",
            "level": self.level,
            "mean_ranks": [
                dict(zip(names, (who, *own), strict=True)) for who, own in self.mean_ranks().items()
            ],
            "natures": natures,
        }


def ranking(study: Study, measure: str, level: float = 0.95) -> Ranking:
    """The forecasters by their mean totals at the largest T of each nature, in order where that is beyond doubt.

    By Student's t on one difference of totals a run, with Holm's procedure over all pairs and natures.
    """
    check_level(level)
    # Where nature looks at forecasts two share the randomness of their outcomes: Welch's test would not do.
    (column,) = columns_of(study, [measure])
    measure, higher = column.name, is_payoff(column)
    groups = [cells for nature in study.natures if len(cells := last_cells(study, nature, [measure])) > 1]
    if not groups:
        raise InvalidParameter(
            f"{measure}: no nature has met two forecasters at one T; expected two to be compared"
        )
    sign = -1.0 if higher else 1.0
    pairs = [differences(sign * totals_in_common(cells, measure)) for cells in groups]
    standings = [
        Standing(
            **Contest.of(cells, measure), own=max(c.sight for c in cells) > Sight.NOTHING, means=sign * found.means,
            ranks=ranks(found.means), before=before, pairs=found,
        )
        for cells, found, before in zip(groups, pairs, lower(pairs, level), strict=True)
    ]  # fmt: skip
    return Ranking(measure, higher, level, tuple(standings))


@dataclass(frozen=True)
class Front(Contest):
    """The forecasters against one nature by two measures: mean totals (k, 2), and whether row dominates column."""

    measures: tuple[str, str]
    #: whether a higher total is the better one
    higher: tuple[bool, bool]
    means: Floats
    #: no worse in both means and better in one; better in both beyond doubt
    dominated: Bools
    certain: Bools
    #: with which all that is certain, against all natures, is true together
    level: float

    @property
    def front(self) -> list[str]:
        """Forecasters that no other dominates in the means; the best in the first measure first."""
        order = np.argsort(self.means[:, 0] * (-1.0 if self.higher[0] else 1.0), kind="stable")
        return [self.forecasters[i] for i in order if not self.dominated[:, i].any()]

    def by(self, forecaster: str, *, certain: bool = False) -> list[str]:
        """The forecasters that dominate it: in the means, or beyond doubt."""
        table = self.certain if certain else self.dominated
        at = self.forecasters.index(forecaster)
        return [who for who, is_ in zip(self.forecasters, table[:, at], strict=True) if is_]

    def as_json(self) -> dict[str, Any]:
        """The data of `compare --pareto --json`."""
        return {
            **super().as_json(),
            "measures": list(self.measures),
            "better": ["higher" if h else "lower" for h in self.higher],
            "level": self.level,
            "forecasters": [
                {
                    "forecaster": who,
                    "totals": [_number(m) for m in mean],
                    "on_front": who in self.front,
                    "dominated_by": self.by(who),
                    "certainly_dominated_by": self.by(who, certain=True),
                }
                for who, mean in zip(self.forecasters, self.means, strict=True)
            ],
        }


def fronts(study: Study, first: str, second: str, level: float = 0.95) -> list[Front]:
    """The Pareto front of the mean totals in two measures, at the largest T of each nature.

    A domination is certain where both are better by Student's t, with Holm's procedure over all pairs and natures.
    """
    check_level(level)
    if len(chosen := columns_of(study, [first, second])) < 2:
        raise InvalidParameter(f"a front of {first} and {second}; expected two measures")
    one, other = chosen
    first, second = one.name, other.name
    measures = first, second
    higher = is_payoff(one), is_payoff(other)
    signs = [-1.0 if h else 1.0 for h in higher]
    groups = [cells for nature in study.natures if (cells := last_cells(study, nature, measures))]
    if not groups:
        raise InvalidParameter(
            f"{first} and {second} were not taken of the same games; expected two that were"
        )
    both, joint = [], []
    for cells in groups:
        a, b = (
            differences(sign * totals_in_common(cells, m)) for m, sign in zip(measures, signs, strict=True)
        )
        # That both are better is wrong if one is wrong.
        p = np.where(np.sign(a.difference) == np.sign(b.difference), np.maximum(a.p, b.p), 1.0)
        both.append((a, b))
        joint.append(Pairs(a.means, a.difference, a.error, p, a.runs))
    found = []
    for cells, pairs, sure in zip(groups, both, lower(joint, level), strict=True):
        # Of infinite means, which have no difference, the finite one is the better.
        finite = [np.isfinite(p.means) for p in pairs]
        less = [
            (np.nan_to_num(p.difference, nan=0.0) < 0) | (there[:, None] & np.isinf(p.means))
            for p, there in zip(pairs, finite, strict=True)
        ]
        gain = less[0] | less[1]
        means = np.stack([sign * p.means for p, sign in zip(pairs, signs, strict=True)], axis=1)
        dominated, own = gain & ~gain.T, Contest.of(cells, first)
        found.append(Front(**own, measures=measures, higher=higher, means=means, dominated=dominated, certain=sure,
                           level=level))  # fmt: skip
    return found


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


#: the number of natures without a comparison that an error names
NAMED = 3
_SEEN = {Sight.HISTORY: "past forecasts", Sight.LAW: "the law of the forecast", Sight.DRAW: "the forecast"}


@dataclass(frozen=True)
class Difference(Contest):
    """The mean total of the first forecaster less that of the second, on the same outcomes; NaN of infinite ones.

    Where it is the same in all R runs, its half-width is 0 or infinite, as chance gives one sign with 2^(1−R).
    """

    measure: str
    mean: float
    half_width: float
    #: whether the difference is the same in all runs
    same: bool

    @property
    def pair(self) -> str:
        """``first − second``."""
        return " − ".join(self.forecasters)

    @property
    def better(self) -> str:
        """The forecaster with the lower total beyond doubt of the interval; "" if it holds 0."""
        if self.mean + self.half_width < 0:
            return self.forecasters[0]
        return self.forecasters[1] if self.mean - self.half_width > 0 else ""

    def as_json(self) -> dict[str, Any]:
        """The data of `compare --paired --json`."""
        known = math.isfinite(self.half_width) and not self.same
        low, high = (self.mean + side * self.half_width if known else None for side in (-1.0, 1.0))
        first, second = self.forecasters
        return {
            **super().as_json(), "measure": self.measure, "first": first, "second": second, "difference": self.mean,
            "low": low, "high": high, "same_in_all_runs": self.same, "lower_total": self.better,
        }  # fmt: skip


def paired(study: Study, measure: str, level: float = 0.95) -> tuple[list[Difference], list[str]]:
    """All differences of two forecasters in one measure at the largest T, and the natures that allow none, with why.

    Intervals are by Student's t on one difference a run; all hold together with the level (Bonferroni).
    """
    measure = columns_of(study, [measure])[0].name
    contests: list[list[Played]] = []
    refused = []
    for nature in study.natures:
        there = last_cells(study, nature, [measure])
        seen = max((c.sight for c in study.cells if c.nature == nature and measure in c.totals), default=None)
        if seen is None:
            why = "this measure was not taken"
        elif seen > Sight.NOTHING:
            why = f"it may look at {_SEEN[seen]}, so that each forecaster has outcomes of its own; expected a nature "
            why += "that sees nothing of forecasts"
        elif len(there) < 2:
            why = f"a single forecaster at T = {there[0].horizon:,}; expected two at least"
        elif min(runs_of(there)) < 2:
            why = "a single run; expected two at least"
        else:
            contests.append(there)
            continue
        refused.append(f"{nature}: {why}")
    count = sum(math.comb(len(cells), 2) for cells in contests)
    if not count:
        more = f"; and {len(refused) - NAMED} more natures" if len(refused) > NAMED else ""
        raise InvalidParameter(f"nothing can be compared run by run: {'; '.join(refused[:NAMED])}{more}")
    found = []
    for cells in contests:
        pairs, own = differences(totals_in_common(cells, measure)), Contest.of(cells, measure)
        half = pairs.half_width(simultaneous(count, level))
        for i, j in combinations(range(len(cells)), 2):
            own["forecasters"] = (cells[i].forecaster, cells[j].forecaster)
            mean, same = float(pairs.difference[i, j]), bool(pairs.error[i, j] == 0.0)
            found.append(
                Difference(**own, measure=measure, mean=mean, half_width=float(half[i, j]), same=same)
            )
    return found, refused
