"""Forecasters compared nature by nature, and how much of that is beyond doubt: ranks, fronts, differences by run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from onlinecal.core.arrays import Bools, Floats, Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.growth import check_level
from onlinecal.study.curves import Study, columns_of, in_common, open_at_the_end, runs_of
from onlinecal.study.orders import Pairs, adjusted, differences, lower, ranks, simultaneous
from onlinecal.study.played import Played

COMMON_RUNS = "Only runs that all forecasters have are compared"
OPEN = "Questions that are open at the end are in no total"
RECORDED = (
    "On recorded outcomes, which are the same in all runs, it is over the forecasters' randomness alone"
)


@dataclass(frozen=True)
class Contest:
    """The forecasters against one nature at its largest T, by some measures, in the runs that all of them have."""

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
    #: whether nature may look at forecasts, so that each forecaster has outcomes of its own
    own: bool
    measures: tuple[str, ...]
    #: of each measure: 1, or −1 where the higher total is the better one
    signs: tuple[float, ...]
    #: of totals times this
    pairs: tuple[Pairs, ...]
    #: whether row is better than column in all measures, beyond doubt of the level for all natures together
    certain: Bools
    level: float

    @property
    def means(self) -> Floats:
        """Mean totals, (forecasters, measures)."""
        return np.stack([sign * p.means for sign, p in zip(self.signs, self.pairs, strict=True)], axis=1)

    @cached_property
    def ranks(self) -> Floats:
        """The ranks of the mean totals of the first measure."""
        return ranks(self.pairs[0].means)

    @property
    def span(self) -> Ints:
        """(k, 2): the best and the worst rank that are not ruled out, of the expected totals."""
        best = 1 + self.certain.sum(axis=0)
        return np.stack([best, len(self.forecasters) - self.certain.sum(axis=1)], axis=1)

    @property
    def apart(self) -> list[tuple[str, str]]:
        """Pairs that are not told apart, the better mean first."""
        pairs = combinations(np.argsort(self.ranks, kind="stable"), 2)
        told = self.certain | self.certain.T
        return [(self.forecasters[i], self.forecasters[j]) for i, j in pairs if not told[i, j]]

    @cached_property
    def dominated(self) -> Bools:
        """Whether the means of row are no worse than those of column in any measure, and better in one."""
        # A finite mean is better than an infinite one: their difference is no number.
        gain = np.logical_or.reduce([
            (np.nan_to_num(p.difference, nan=0.0) < 0) | (np.isfinite(p.means)[:, None] & np.isinf(p.means))
            for p in self.pairs
        ])  # fmt: skip
        return np.asarray(gain & ~gain.T)

    @property
    def front(self) -> list[str]:
        """Forecasters that no other dominates in the means; the best in the first measure first."""
        order = np.argsort(self.means[:, 0] * self.signs[0], kind="stable")
        return [self.forecasters[i] for i in order if not self.dominated[:, i].any()]

    def by(self, forecaster: str, *, certain: bool = False) -> list[str]:
        """The forecasters that dominate it: in the means, or beyond doubt."""
        table = self.certain if certain else self.dominated
        at = self.forecasters.index(forecaster)
        return [who for who, is_ in zip(self.forecasters, table[:, at], strict=True) if is_]

    def facts(self) -> dict[str, Any]:
        """The facts of the contest, as data."""
        return {name: getattr(self, name) for name in ("nature", "horizon", "runs", "open", "recorded")}


def remarks(found: Sequence[Contest]) -> list[str]:
    """Remarks of a legend on runs, recorded outcomes and open questions, without a full stop."""
    asked = {"recorded": RECORDED, "fewer": COMMON_RUNS, "open": OPEN}
    return [said for name, said in asked.items() if any(getattr(each, name) for each in found)]


def last_cells(study: Study, nature: str, measures: Sequence[str]) -> list[Played]:
    """Cells of a nature at its largest T that have these measures."""
    cells = [c for c in study.cells if c.nature == nature and all(m in c.totals for m in measures)]
    last = max((c.horizon for c in cells), default=0)
    return [c for c in cells if c.horizon == last]


def totals_in_common(cells: Sequence[Played], measure: str) -> Floats:
    """The last totals of the runs that all cells have, (cells, runs)."""
    return in_common([cell.totals[measure][-1] for cell in cells])


def contests(
    groups: Sequence[Sequence[Played]], study: Study, measures: Sequence[str], level: float
) -> list[Contest]:
    """The contests of some groups of cells, with what is certain of all together.

    By Student's t on one difference of totals a run, with Holm's procedure over all pairs and natures.
    """
    check_level(level)
    columns = [study.columns[name] for name in measures]
    # Of a payoff the higher total is the better one.
    signs = tuple(-1.0 if c.of_task and c.measure == "payoff" else 1.0 for c in columns)
    every = [
        tuple(differences(sign * totals_in_common(cells, m)) for sign, m in zip(signs, measures, strict=True))
        for cells in groups
    ]
    found = []
    for cells, pairs, sure in zip(groups, every, lower([*map(_joint, every)], level), strict=True):
        runs, first = {cell.totals[measures[0]].shape[1] for cell in cells}, cells[0]
        found.append(
            Contest(
                first.nature, tuple(c.forecaster for c in cells), first.horizon, min(runs), open_at_the_end(first),
                len(runs) > 1, first.recorded, max(c.sight for c in cells) > Sight.NOTHING, tuple(measures), signs,
                pairs, sure, level,
            )
        )  # fmt: skip
    return found


def _joint(pairs: Sequence[Pairs]) -> Pairs:
    """The pairs of all measures as one: that all of their orders are right is wrong if one is wrong."""
    agree = np.logical_and.reduce([np.sign(p.difference) == np.sign(pairs[0].difference) for p in pairs])
    return replace(pairs[0], p=np.where(agree, np.maximum.reduce([p.p for p in pairs]), 1.0))


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


# ---------------------------------------------------------------- ranks


def ranking(study: Study, measure: str, level: float = 0.95) -> list[Contest]:
    """The forecasters by their mean totals at the largest T of each nature, in order where that is beyond doubt."""
    # Where nature looks at forecasts two share the randomness of their outcomes: Welch's test would not do.
    (measure,) = (column.name for column in columns_of(study, [measure]))
    groups = [cells for nature in study.natures if len(cells := last_cells(study, nature, [measure])) > 1]
    if not groups:
        raise InvalidParameter(
            f"{measure}: no nature has met two forecasters at one T; expected two to be compared"
        )
    return contests(groups, study, [measure], level)


def mean_ranks(found: Sequence[Contest]) -> dict[str, tuple[float, float, float, int]]:
    """Forecaster → its mean rank, the least and the largest that are not ruled out, and the number of natures."""
    each: dict[str, list[Any]] = {}
    for contest in found:
        for who, rank, span in zip(contest.forecasters, contest.ranks, contest.span, strict=True):
            each.setdefault(who, []).append((rank, *span))
    means: Any = {who: (*np.mean(own, axis=0).tolist(), len(own)) for who, own in each.items()}
    return dict(sorted(means.items(), key=lambda item: item[1][0]))


def ranking_json(found: Sequence[Contest]) -> dict[str, Any]:
    """The data of `compare --ranking --json`."""
    level, sign = found[0].level, found[0].signs[0]
    each = simultaneous(sum(math.comb(len(s.forecasters), 2) for s in found), level)
    natures = []
    for s, p in zip(found, adjusted([s.pairs[0] for s in found]), strict=True):
        half, pairs = s.pairs[0].half_width(each), []
        for i, j in zip(*np.tril_indices(len(s.forecasters), -1), strict=True):
            value, width = sign * s.pairs[0].difference[i, j], half[i, j]
            known = math.isfinite(value) and math.isfinite(width)
            better = i if s.certain[i, j] else j if s.certain[j, i] else None
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
            for who, (t,), r, (b, w) in zip(s.forecasters, s.means, s.ranks, s.span, strict=True)
        ]
        natures.append({**s.facts(), "own_outcomes": s.own, "forecasters": ranked, "pairs": pairs})
    names = ("forecaster", "mean_rank", "best", "worst", "natures")
    means = [dict(zip(names, (who, *own), strict=True)) for who, own in mean_ranks(found).items()]
    return {
        "measure": found[0].measures[0], "better": "lower" if sign > 0 else "higher", "level": level,
        "mean_ranks": means, "natures": natures,
    }  # fmt: skip


# ---------------------------------------------------------------- Pareto fronts


def fronts(study: Study, first: str, second: str, level: float = 0.95) -> list[Contest]:
    """The Pareto front of the mean totals in two measures, at the largest T of each nature.

    A domination is certain where both are better by Student's t, with Holm's procedure over all pairs and natures.
    """
    if len(chosen := columns_of(study, [first, second])) < 2:
        raise InvalidParameter(f"a front of {first} and {second}; expected two measures")
    first, second = measures = [column.name for column in chosen]
    groups = [cells for nature in study.natures if (cells := last_cells(study, nature, measures))]
    if not groups:
        raise InvalidParameter(
            f"{first} and {second} were not taken of the same games; expected two that were"
        )
    return contests(groups, study, measures, level)


def front_json(found: Contest) -> dict[str, Any]:
    """The data of `compare --pareto --json`."""
    return {
        **found.facts(), "measures": list(found.measures),
        "better": ["lower" if sign > 0 else "higher" for sign in found.signs], "level": found.level,
        "forecasters": [
            {
                "forecaster": who, "totals": [_number(m) for m in mean], "on_front": who in found.front,
                "dominated_by": found.by(who), "certainly_dominated_by": found.by(who, certain=True),
            }
            for who, mean in zip(found.forecasters, found.means, strict=True)
        ],
    }  # fmt: skip


# ---------------------------------------------------------------- differences run by run

#: the number of natures without a comparison that an error names
NAMED = 3
_SEEN = {Sight.HISTORY: "past forecasts", Sight.LAW: "the law of the forecast", Sight.DRAW: "the forecast"}


@dataclass(frozen=True)
class Difference:
    """The mean total of the first forecaster less that of the second, on the same outcomes; NaN of infinite ones.

    Where it is the same in all R runs, its half-width is 0 or infinite, as chance gives one sign with 2^(1−R).
    """

    contest: Contest
    nature: str
    forecasters: tuple[str, str]
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
            **self.contest.facts(), "measure": self.contest.measures[0], "first": first, "second": second,
            "difference": self.mean, "low": low, "high": high, "same_in_all_runs": self.same,
            "lower_total": self.better,
        }  # fmt: skip


def paired(study: Study, measure: str, level: float = 0.95) -> tuple[list[Difference], list[str]]:
    """All differences of two forecasters in one measure at the largest T, and the natures that allow none, with why.

    Intervals are by Student's t on one difference a run; all hold together with the level (Bonferroni).
    """
    measure = columns_of(study, [measure])[0].name
    groups: list[list[Played]] = []
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
            groups.append(there)
            continue
        refused.append(f"{nature}: {why}")
    if not groups:
        more = f"; and {len(refused) - NAMED} more natures" if len(refused) > NAMED else ""
        raise InvalidParameter(f"nothing can be compared run by run: {'; '.join(refused[:NAMED])}{more}")
    each = simultaneous(sum(math.comb(len(cells), 2) for cells in groups), level)
    found = []
    for contest in contests(groups, study, [measure], level):
        (pairs,), (sign,), who = contest.pairs, contest.signs, contest.forecasters
        half = pairs.half_width(each)
        found += [
            Difference(contest, contest.nature, (who[i], who[j]), float(sign * pairs.difference[i, j]),
                       float(half[i, j]), bool(pairs.error[i, j] == 0.0))
            for i, j in combinations(range(len(who)), 2)
        ]  # fmt: skip
    return found, refused
