"""Forecasters compared nature by nature, and how much of that is beyond doubt: ranks, fronts, differences by run.

Each comparison is a list of `Contest`, one for each nature. `ranks_table`, `pairs_table` and `front_table` make it a
DataFrame; `paired` returns one at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from onlinecal.core.arrays import Bools, Floats, Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.growth import ROUNDING, check_level
from onlinecal.study.curves import Study, in_common, open_at_the_end, runs_of
from onlinecal.study.played import Played

if TYPE_CHECKING:
    import pandas as pd

COMMON_RUNS = "Only runs that all forecasters have are compared"
OPEN = "Questions that are open at the end are in no total"
RECORDED = (
    "On recorded outcomes, which are the same in all runs, it is over the forecasters' randomness alone"
)


# ---------------------------------------------------------------- differences of means, and their order


@dataclass(frozen=True)
class Pairs:
    """The differences of all pairs of k means, from R runs: tests of Student's t on one difference a run."""

    means: Floats
    difference: Floats
    error: Floats
    p: Floats
    runs: int

    @property
    def ranks(self) -> Floats:
        """The ranks of the means, 1 for the lowest; those that are the same up to rounding share the mean of theirs."""
        means = np.where(np.isnan(self.means), np.inf, self.means)
        with np.errstate(invalid="ignore"):
            apart = np.where(np.isnan(self.difference), means[:, None] - means, self.difference)
        return np.asarray((1 + len(means) + np.sign(np.nan_to_num(apart)).sum(axis=1)) / 2)

    def half_width(self, level: float) -> Floats:
        """Half the width of the interval of each difference by itself; infinite where its spread is unknown."""
        from scipy.special import stdtrit  # scipy.stats takes half a second to load

        if self.runs < 2:
            return np.full_like(self.error, np.inf)
        half = np.asarray(stdtrit(self.runs - 1, (1.0 + level) / 2.0) * self.error)
        # No spread, and too few runs to rule out chance.
        return np.where((self.error == 0.0) & (self.p < 1.0) & (self.p > 1.0 - level), np.inf, half)


def differences(values: Floats) -> Pairs:
    """All pairs of (k, R) values: k quantities in the same R runs."""
    from scipy.special import stdtr

    k, runs = values.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        own = values[:, None] - values
        finite = np.asarray(np.isfinite(own).all(axis=2))
        own = np.where(finite[..., None], own, 0.0)
        size = np.abs(values).max(axis=1)
        # Not what rounding makes of the same number.
        own = np.where(np.abs(own) <= ROUNDING * np.fmax(size[:, None], size)[..., None], 0.0, own)
        same = (own == own[..., :1]).all(axis=2)
        mean = np.where(same, own[..., 0], own.mean(axis=2))
        error = np.full((k, k), np.nan)
        p = np.ones((k, k))
        if runs > 1:
            error = np.where(same, 0.0, own.std(axis=2, ddof=1) / np.sqrt(runs))
            # Where all runs differ by the same, chance gives one sign with 2^(1−R).
            alike = np.where(mean != 0.0, 2.0 ** (1 - runs), 1.0)
            p = np.where(finite, np.where(same, alike, 2.0 * stdtr(runs - 1, -np.abs(mean) / error)), 1.0)
        means = values.mean(axis=1)
    return Pairs(means, np.where(finite, mean, np.nan), np.where(finite, error, np.nan), p, runs)


def adjusted(families: Sequence[Pairs]) -> list[Floats]:
    """P-values of the orders of each family, (k, k), adjusted for all pairs of all families (Holm 1979)."""
    # A pair is two one-sided hypotheses. So all signs with p-values of at most α are right with probability 1 − α.
    below = [np.tril_indices(len(pairs.means), -1) for pairs in families]
    one_sided = np.concatenate([pairs.p[at] for pairs, at in zip(families, below, strict=True)]) / 2.0
    order = np.argsort(one_sided, kind="stable")
    # The other side of each pair has a p-value of 1/2 at least, and is never rejected.
    hypotheses = 2 * len(order) - np.arange(len(order))
    steps = np.empty(len(order))
    steps[order] = np.minimum(np.maximum.accumulate(one_sided[order] * hypotheses), 1.0)
    found = [np.ones_like(pairs.p) for pairs in families]
    parts = np.split(steps, np.cumsum([len(i) for i, _ in below])[:-1])
    for each, (i, j), part in zip(found, below, parts, strict=True):
        each[i, j] = each[j, i] = part
    return found


def lower(families: Sequence[Pairs], level: float) -> list[Bools]:
    """Whether the mean of row is lower than that of column, for each family; all statements hold at the level."""
    # 1 − 0.95 is a little more than 0.05.
    return [
        (p <= 1.0 - level + 1e-15) & (np.nan_to_num(pairs.difference, nan=0.0) < 0.0)
        for p, pairs in zip(adjusted(families), families, strict=True)
    ]


def simultaneous(statements: int, level: float = 0.95) -> float:
    """The level of each of several intervals with which all of them hold together, however they depend (Bonferroni).

    >>> round(simultaneous(10), 6)
    0.995
    """
    return 1.0 - (1.0 - level) / max(statements, 1)


# ---------------------------------------------------------------- forecasters against one nature


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

    @property
    def ranks(self) -> Floats:
        """The ranks of the mean totals of the first measure."""
        return self.pairs[0].ranks

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


def remarks(found: Sequence[Any]) -> list[str]:
    """Remarks of a legend on runs, recorded outcomes and open questions of contests or rows, without a full stop."""
    asked = {"recorded": RECORDED, "fewer": COMMON_RUNS, "open": OPEN}
    return [said for name, said in asked.items() if any(getattr(each, name) for each in found)]


def last_cells(study: Study, nature: str, measures: Sequence[str]) -> list[Played]:
    """Cells of a nature at its largest T that have these measures."""
    cells = [c for c in study.cells if c.nature == nature and all(m in c.totals for m in measures)]
    last = max((c.horizon for c in cells), default=0)
    return [c for c in cells if c.horizon == last]


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
        tuple(
            differences(sign * in_common([cell.totals[m][-1] for cell in cells]))
            for sign, m in zip(signs, measures, strict=True)
        )
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


# ---------------------------------------------------------------- ranks


def ranking(study: Study, measure: str, level: float = 0.95) -> list[Contest]:
    """The forecasters by their mean totals at the largest T of each nature, in order where that is beyond doubt."""
    # Where nature looks at forecasts two share the randomness of their outcomes: Welch's test would not do.
    measure = study.column(measure).name
    groups = [cells for nature in study.natures if len(cells := last_cells(study, nature, [measure])) > 1]
    if not groups:
        raise InvalidParameter(
            f"{measure}: no nature has met two forecasters at one T; expected two to be compared"
        )
    return contests(groups, study, [measure], level)


def ranks_table(found: Sequence[Contest]) -> pd.DataFrame:
    """A row for each nature and forecaster: its total, its rank, and the best and worst that are not ruled out."""
    import pandas as pd

    rows = [
        {"nature": s.nature, "forecaster": who, "total": total, "rank": rank, "best": best, "worst": worst}
        for s in found
        for who, (total,), rank, (best, worst) in zip(s.forecasters, s.means, s.ranks, s.span, strict=True)
    ]
    return pd.DataFrame(rows)


def mean_ranks(found: Sequence[Contest]) -> pd.DataFrame:
    """Forecaster → mean_rank, best, worst and natures, the number that it met; the best mean first."""
    table = ranks_table(found).groupby("forecaster", sort=False)
    means = table[["rank", "best", "worst"]].mean().rename(columns={"rank": "mean_rank"})
    return means.assign(natures=table.size()).sort_values("mean_rank", kind="stable")


def pairs_table(found: Sequence[Contest]) -> pd.DataFrame:
    """A row for each nature and pair: the difference, its interval, and the p-value of their order.

    All intervals hold together with the level (Bonferroni); p-values are adjusted by Holm's procedure. Ends are NaN
    where the spread is not known.
    """
    import pandas as pd

    each = simultaneous(sum(math.comb(len(s.forecasters), 2) for s in found), found[0].level)
    sign, rows = found[0].signs[0], []
    for s, p in zip(found, adjusted([s.pairs[0] for s in found]), strict=True):
        half = s.pairs[0].half_width(each)
        for i, j in zip(*np.tril_indices(len(s.forecasters), -1), strict=True):
            value = sign * s.pairs[0].difference[i, j]
            width = half[i, j] if math.isfinite(half[i, j]) else np.nan
            better = s.forecasters[i] if s.certain[i, j] else s.forecasters[j] if s.certain[j, i] else None
            rows.append({
                "nature": s.nature, "first": s.forecasters[i], "second": s.forecasters[j], "difference": value,
                "lower": value - width, "upper": value + width, "p": p[i, j], "better": better,
            })  # fmt: skip
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- Pareto fronts


def fronts(study: Study, first: str, second: str, level: float = 0.95) -> list[Contest]:
    """The Pareto front of the mean totals in two measures, at the largest T of each nature.

    A domination is certain where both are better by Student's t, with Holm's procedure over all pairs and natures.
    """
    first, second = measures = [study.column(name).name for name in (first, second)]
    if first == second:
        raise InvalidParameter(f"a front of {first} and {second}; expected two measures")
    groups = [cells for nature in study.natures if (cells := last_cells(study, nature, measures))]
    if not groups:
        raise InvalidParameter(
            f"{first} and {second} were not taken of the same games; expected two that were"
        )
    return contests(groups, study, measures, level)


def front_table(found: Contest) -> pd.DataFrame:
    """A row for each forecaster: its totals, whether it is on the front, and the forecasters that dominate it."""
    import pandas as pd

    rows = [
        {
            "forecaster": who, "totals": mean.tolist(), "on_front": who in found.front,
            "dominated_by": found.by(who), "certainly_dominated_by": found.by(who, certain=True),
        }
        for who, mean in zip(found.forecasters, found.means, strict=True)
    ]  # fmt: skip
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- differences run by run

#: the number of natures without a comparison that an error names
NAMED = 3
_SEEN = {Sight.HISTORY: "past forecasts", Sight.LAW: "the law of the forecast", Sight.DRAW: "the forecast"}


def paired(study: Study, measure: str, level: float = 0.95) -> tuple[pd.DataFrame, list[str]]:
    """All differences of two forecasters in one measure at the largest T, and the natures that allow none, with why.

    A row for each nature and pair has the mean total of the first less that of the second. They have the same outcomes.
    The interval is by Student's t on one difference a run; all hold together with the level (Bonferroni).
    ``half_width`` is 0 or infinite where the difference is the same in all runs. ``lower_total`` names the forecaster
    with the lower total beyond doubt; "" for neither.
    """
    import pandas as pd

    measure = study.column(measure).name
    groups: list[list[Played]] = []
    refused = []
    for nature in study.natures:
        there = last_cells(study, nature, [measure])
        if why := _no_comparison(study, nature, measure, there):
            refused.append(f"{nature}: {why}")
        else:
            groups.append(there)
    if not groups:
        more = f"; and {len(refused) - NAMED} more natures" if len(refused) > NAMED else ""
        raise InvalidParameter(f"nothing can be compared run by run: {'; '.join(refused[:NAMED])}{more}")
    each = simultaneous(sum(math.comb(len(cells), 2) for cells in groups), level)
    rows = []
    for s in contests(groups, study, [measure], level):
        (pairs,), (sign,) = s.pairs, s.signs
        half = pairs.half_width(each)
        for i, j in combinations(range(len(s.forecasters)), 2):
            first, second, mean = s.forecasters[i], s.forecasters[j], float(sign * pairs.difference[i, j])
            better = first if mean + half[i, j] < 0 else second if mean - half[i, j] > 0 else ""
            same = bool(pairs.error[i, j] == 0.0)
            width = half[i, j] if math.isfinite(half[i, j]) and not same else np.nan
            rows.append(s.facts() | {
                "measure": measure, "first": first, "second": second, "pair": f"{first} − {second}",
                "difference": mean, "low": mean - width, "high": mean + width, "half_width": half[i, j],
                "same_in_all_runs": same, "lower_total": better, "fewer": s.fewer,
            })  # fmt: skip
    return pd.DataFrame(rows), refused


def _no_comparison(study: Study, nature: str, measure: str, there: Sequence[Played]) -> str:
    """Why the cells of a nature cannot be compared run by run; "" where they can."""
    seen = max((c.sight for c in study.cells if c.nature == nature and measure in c.totals), default=None)
    if seen is None:
        return "this measure was not taken"
    if seen > Sight.NOTHING:
        why = f"it may look at {_SEEN[seen]}, so that each forecaster has outcomes of its own"
        return f"{why}; expected a nature that sees nothing of forecasts"
    if len(there) < 2:
        return f"a single forecaster at T = {there[0].horizon:,}; expected two at least"
    return "a single run; expected two at least" if min(runs_of(there)) < 2 else ""
