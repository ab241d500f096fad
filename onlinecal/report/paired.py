"""Differences between forecasters that faced the same outcomes, run by run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.core.sight import Sight
from onlinecal.growth import simultaneous
from onlinecal.report.curves import Study
from onlinecal.report.ranking import have_more_runs, last_cells, totals_in_common
from onlinecal.study.played import Played

Floats = NDArray[np.float64]

#: natures that allow no comparison are named up to so many in an error
NAMED = 3


@dataclass(frozen=True)
class Difference:
    """The total of one forecaster less that of another, on the same outcomes.

    Attributes
    ----------
    nature : str
        With its schedule.
    measure, first, second : str
        first − second.
    horizon, runs, open : int
        Runs: those that all forecasters against this nature have. Open: questions without a known outcome at the end;
        they are in neither total.
    fewer : bool
        Whether some forecaster has more runs; the others are not in it.
    mean : float
        NaN where a total is infinite.
    half_width : float
        Of the interval of the mean over runs; NaN where a total is infinite. Where the difference is the same in all
        runs, these have no spread to tell an interval from: 0 where their sign is beyond doubt all the same, as chance
        gives R runs one sign with a probability of 2^(1−R), else infinite.
    same : bool
        Whether the difference is the same in all runs.
    recorded : bool
        Whether all runs have the same recorded outcomes: the interval is over the forecasters' randomness alone.
    """

    nature: str
    measure: str
    first: str
    second: str
    horizon: int
    runs: int
    open: int
    fewer: bool
    mean: float
    half_width: float
    same: bool
    recorded: bool

    @property
    def better(self) -> str:
        """Whose total is lower beyond doubt of the interval; "" if it holds 0."""
        if self.mean + self.half_width < 0:
            return self.first
        return self.second if self.mean - self.half_width > 0 else ""

    def as_json(self) -> dict[str, object]:
        """For `compare --paired --json`."""
        known = math.isfinite(self.half_width) and not self.same
        return {
            "nature": self.nature,
            "measure": self.measure,
            "first": self.first,
            "second": self.second,
            "horizon": self.horizon,
            "runs": self.runs,
            "open": self.open,
            "difference": self.mean,
            "low": self.mean - self.half_width if known else None,
            "high": self.mean + self.half_width if known else None,
            "same_in_all_runs": self.same,
            "lower_total": self.better,
            "recorded": self.recorded,
        }


def paired(study: Study, measure: str, level: float = 0.95) -> tuple[list[Difference], list[str]]:
    """All differences of two forecasters in one measure at the largest T, and what cannot be compared so.

    Where nature sees nothing of forecasts, run r has the same questions, times and outcomes for every forecaster. The
    difference of two totals is then one number a run, in which what is due to the outcomes cancels. Student's t gives
    the interval of its mean: exact if differences are normal, given the schedule and the streams, which all runs share.

    Parameters
    ----------
    study : Study
    measure : str
        The name of a column.
    level : float, default 0.95
        With which all intervals hold together (Bonferroni over all that are returned).

    Returns
    -------
    differences : list of Difference
        Natures in their order, pairs in the order of the forecasters.
    refused : list of str
        A sentence for each nature of which there is none.

    Raises
    ------
    UnknownName
        That measure was not played.
    InvalidParameter
        No nature allows it, a single forecaster or a single run.
    """
    if measure not in study.measures:
        raise UnknownName.of("measure", measure, study.measures)
    found: list[Comparison] = []
    refused = []
    for nature in study.natures:
        cells = [c for c in study.cells if c.nature == nature and measure in c.totals]
        why = _refusal(cells)
        if why:
            refused.append(f"{nature}: {why}")
            continue
        there = last_cells(study, nature, [measure])
        totals, fewer = totals_in_common(there, measure), have_more_runs(there, measure)
        found += [
            Comparison(there[i], there[j], totals[i], totals[j], fewer)
            for i, j in combinations(range(len(there)), 2)
        ]
    if not found:
        more = f"; and {len(refused) - NAMED} more natures" if len(refused) > NAMED else ""
        raise InvalidParameter(f"nothing can be compared run by run: {'; '.join(refused[:NAMED])}{more}")
    each = simultaneous(len(found), level)
    return [_difference(one, measure, each) for one in found], refused


def _refusal(cells: list[Played]) -> str:
    """Why the forecasters of these cells cannot be compared run by run; "" if they can."""
    if not cells:
        return "this measure was not taken"
    sight = max(c.sight for c in cells)
    if sight > Sight.NOTHING:
        seen = {
            Sight.HISTORY: "past forecasts",
            Sight.LAW: "the law of the forecast",
            Sight.DRAW: "the forecast",
        }[sight]
        return (
            f"it may look at {seen}, so that each forecaster has outcomes of its own; expected a nature that sees "
            "nothing of forecasts"
        )
    last = max(c.horizon for c in cells)
    there = [c for c in cells if c.horizon == last]
    if len(there) < 2:
        return f"a single forecaster at T = {last:,}; expected two at least"
    if min(next(iter(c.totals.values())).shape[1] for c in there) < 2:
        return "a single run; expected two at least"
    return ""


class Comparison(NamedTuple):
    """Two cells, their totals in the runs that all against this nature have, and whether some have more."""

    first: Played
    second: Played
    one: Floats
    other: Floats
    fewer: bool


def _difference(found: Comparison, measure: str, level: float) -> Difference:
    first, second = found.first, found.second
    with np.errstate(invalid="ignore"):
        values = found.one - found.other
    mean, half = interval(values, level)
    same = math.isfinite(mean) and bool((values == values[0]).all())
    if same and (mean == 0.0 or 2.0 ** (1 - len(values)) > 1.0 - level):
        half = math.inf
    return Difference(
        first.nature,
        measure,
        first.forecaster,
        second.forecaster,
        first.horizon,
        len(values),
        first.open[-1] if first.open else 0,
        found.fewer,
        mean,
        half,
        same,
        first.recorded,
    )


def interval(values: Floats, level: float) -> tuple[float, float]:
    """Mean and half the width of its interval by Student's t; NaN where some are infinite.

    >>> mean, half = interval(np.array([1.0, 2.0, 3.0]), 0.95)
    >>> mean, round(half, 4)
    (2.0, 2.4841)
    """
    from scipy.special import stdtrit

    if not np.isfinite(values).all():
        return math.nan, math.nan
    if (values == values[0]).all():
        return float(values[0]), 0.0  # not what rounding in the mean would make of it
    spread = values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean()), float(stdtrit(len(values) - 1, (1.0 + level) / 2.0) * spread)
