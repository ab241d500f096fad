"""Differences between forecasters that faced the same outcomes, run by run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.growth import simultaneous
from onlinecal.growth.orders import differences
from onlinecal.report.curves import Study, columns_of, runs_of
from onlinecal.report.ranking import Contest, last_cells, totals_in_common
from onlinecal.study.played import Played

#: natures that allow no comparison are named up to so many in an error
NAMED = 3
_SEEN = {Sight.HISTORY: "past forecasts", Sight.LAW: "the law of the forecast", Sight.DRAW: "the forecast"}


@dataclass(frozen=True)
class Difference(Contest):
    """The mean total of the first forecaster less that of the second, on the same outcomes; NaN of infinite ones.

    Where the difference is the same in all runs, its half-width is 0 if the sign is beyond doubt, else infinite:
    chance gives R runs one sign with a probability of 2^(1−R).
    """

    measure: str
    mean: float
    half_width: float
    #: whether the difference is the same in all runs
    same: bool

    @property
    def first(self) -> str:
        """The minuend."""
        return self.forecasters[0]

    @property
    def second(self) -> str:
        """The subtrahend."""
        return self.forecasters[1]

    @property
    def better(self) -> str:
        """The forecaster with the lower total beyond doubt of the interval; "" if it holds 0."""
        if self.mean + self.half_width < 0:
            return self.first
        return self.second if self.mean - self.half_width > 0 else ""

    def as_json(self) -> dict[str, Any]:
        """The data of `compare --paired --json`."""
        known = math.isfinite(self.half_width) and not self.same
        return {
            **super().as_json(),
            "measure": self.measure,
            "first": self.first,
            "second": self.second,
            "difference": self.mean,
            "low": self.mean - self.half_width if known else None,
            "high": self.mean + self.half_width if known else None,
            "same_in_all_runs": self.same,
            "lower_total": self.better,
        }


def paired(study: Study, measure: str, level: float = 0.95) -> tuple[list[Difference], list[str]]:
    """All differences of two forecasters in one measure at the largest T, and the natures that allow none, with why.

    Where nature sees nothing of forecasts, run r has the same questions, times and outcomes for every forecaster. The
    difference of two totals is then one number a run, in which what is due to the outcomes cancels. Student's t gives
    the interval of its mean: exact if differences are normal, given the schedule and the streams, which all runs share.
    All intervals hold together with the level (Bonferroni).
    """
    columns_of(study, [measure])
    contests: list[list[Played]] = []
    refused = []
    for nature in study.natures:
        there = last_cells(study, nature, [measure])
        sights = [c.sight for c in study.cells if c.nature == nature and measure in c.totals]
        if why := _refusal(there, sights):
            refused.append(f"{nature}: {why}")
        else:
            contests.append(there)
    count = sum(math.comb(len(cells), 2) for cells in contests)
    if not count:
        more = f"; and {len(refused) - NAMED} more natures" if len(refused) > NAMED else ""
        raise InvalidParameter(f"nothing can be compared run by run: {'; '.join(refused[:NAMED])}{more}")
    found = []
    for cells in contests:
        pairs, own = differences(totals_in_common(cells, measure)), Contest.of(cells, measure)
        half = pairs.half_width(simultaneous(count, level))
        for i, j in combinations(range(len(cells)), 2):
            who = (cells[i].forecaster, cells[j].forecaster)
            mean, error = float(pairs.difference[i, j]), pairs.error[i, j]
            found.append(
                Difference(**{**own, "forecasters": who}, measure=measure, mean=mean, half_width=float(half[i, j]),
                           same=bool(error == 0.0))
            )  # fmt: skip
    return found, refused


def _refusal(there: Sequence[Played], sights: Sequence[Sight]) -> str:
    """Why the forecasters of these cells cannot be compared run by run; "" if they can."""
    if not there:
        return "this measure was not taken"
    if max(sights) > Sight.NOTHING:
        return (
            f"it may look at {_SEEN[max(sights)]}, so that each forecaster has outcomes of its own; expected a nature "
            "that sees nothing of forecasts"
        )
    if len(there) < 2:
        return f"a single forecaster at T = {there[0].horizon:,}; expected two at least"
    if min(runs_of(there)) < 2:
        return "a single run; expected two at least"
    return ""
