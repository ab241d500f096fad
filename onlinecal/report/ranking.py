"""Forecasters in the order of their totals, nature by nature, and how much of that order is beyond doubt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.core.sight import Sight
from onlinecal.growth import check_level, simultaneous
from onlinecal.growth.orders import Pairs, adjusted, differences, lower, ranks
from onlinecal.report.curves import Study, in_common
from onlinecal.study.played import Played

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Standing:
    """The forecasters against one nature, at its largest T.

    Attributes
    ----------
    nature : str
        With its schedule.
    horizon, runs, open : int
        Runs: those that all of them have. Open: questions without a known outcome at the end; they are in no total.
    fewer : bool
        Whether some forecaster has more runs; the others are not in it.
    recorded : bool
        Whether all runs have the same recorded outcomes: all is over the forecasters' randomness alone.
    own : bool
        Whether nature may look at forecasts, so that each forecaster has outcomes of its own.
    forecasters : tuple of str
    means, ranks : (k,) floats
        Mean totals over runs; 1 for the best.
    before : (k, k) bools
        Whether row is better than column beyond doubt.
    pairs : Pairs
        Of the values that are ranked, of which the lower is the better.
    """

    nature: str
    horizon: int
    runs: int
    open: int
    fewer: bool
    recorded: bool
    own: bool
    forecasters: tuple[str, ...]
    means: Floats
    ranks: Floats
    before: NDArray[np.bool_]
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
    """Forecasters by one measure.

    Attributes
    ----------
    measure : str
    higher : bool
        Whether a higher total is the better one, as of a payoff.
    level : float
        With which all orders hold together.
    standings : tuple of Standing
    """

    measure: str
    higher: bool
    level: float
    standings: tuple[Standing, ...]

    def mean_ranks(self) -> dict[str, tuple[float, float, float, int]]:
        """Forecaster → its mean rank, the least and the largest that are not ruled out, and over how many natures.

        In the order of the mean ranks.
        """
        found: dict[str, list[tuple[float, int, int]]] = {}
        for standing in self.standings:
            for who, rank, (best, worst) in zip(
                standing.forecasters, standing.ranks, standing.span, strict=True
            ):
                found.setdefault(who, []).append((float(rank), int(best), int(worst)))
        means = {who: (*(float(v) for v in np.mean(own, axis=0)), len(own)) for who, own in found.items()}
        return dict(sorted(means.items(), key=lambda item: item[1][0]))  # type: ignore[arg-type]

    def as_json(self) -> dict[str, Any]:
        """For `compare --ranking --json`."""
        each = simultaneous(sum(math.comb(len(s.means), 2) for s in self.standings), self.level)
        doubts = adjusted([s.pairs for s in self.standings])
        natures = []
        for s, p in zip(self.standings, doubts, strict=True):
            half, sign = s.pairs.half_width(each), -1.0 if self.higher else 1.0
            pairs = []
            for i in range(len(s.means)):
                for j in range(i):
                    value, width = sign * s.pairs.difference[i, j], half[i, j]
                    known = math.isfinite(value) and math.isfinite(width)
                    better = (
                        s.forecasters[i] if s.before[i, j] else s.forecasters[j] if s.before[j, i] else None
                    )
                    pairs.append(
                        {
                            "first": s.forecasters[i],
                            "second": s.forecasters[j],
                            "difference": _number(value),
                            "lower": value - width if known else None,
                            "upper": value + width if known else None,
                            "p": float(p[i, j]),
                            "better": better,
                        }
                    )
            natures.append(
                {
                    "nature": s.nature,
                    "horizon": s.horizon,
                    "runs": s.runs,
                    "open": s.open,
                    "recorded": s.recorded,
                    "own_outcomes": s.own,
                    "forecasters": [
                        {
                            "forecaster": who,
                            "total": _number(t),
                            "rank": float(r),
                            "best": int(b),
                            "worst": int(w),
                        }
                        for who, t, r, (b, w) in zip(s.forecasters, s.means, s.ranks, s.span, strict=True)
                    ],
                    "pairs": pairs,
                }
            )
        return {
            "measure": self.measure,
            "better": "higher" if self.higher else "lower",
            "level": self.level,
            "mean_ranks": [
                {"forecaster": who, "mean_rank": mean, "best": best, "worst": worst, "natures": count}
                for who, (mean, best, worst, count) in self.mean_ranks().items()
            ],
            "natures": natures,
        }


def ranking(study: Study, measure: str, level: float = 0.95) -> Ranking:
    """The forecasters by their mean totals at the largest T of each nature.

    Two are put in order where the difference of their totals, one number a run, is not 0 beyond doubt: Student's t, and
    Holm's procedure over all pairs and natures, so that all orders are true together at the level. Runs are
    independent, and that is all it needs. So it is also where nature looks at forecasts: the two forecasters then have
    outcomes of their own, but share the randomness that decides them. Their totals are not independent of each other,
    which Welch's test would ask for.

    Parameters
    ----------
    study : Study
    measure : str
        The name of a column. Of a payoff the higher total is the better, of all else the lower.
    level : float, default 0.95

    Raises
    ------
    UnknownName
        That measure was not played.
    InvalidParameter
        No nature has met two forecasters.
    """
    check_level(level)
    column = column_of(study, measure)
    higher = column.of_task and column.measure == "payoff"
    groups = [
        (nature, cells) for nature in study.natures if len(cells := last_cells(study, nature, [measure])) > 1
    ]
    if not groups:
        raise InvalidParameter(
            f"{measure}: no nature has met two forecasters at one T; expected two to be compared"
        )
    totals = [totals_in_common(cells, measure) for _, cells in groups]
    pairs = [differences(-values if higher else values) for values in totals]
    standings = [
        Standing(
            nature=nature,
            horizon=cells[0].horizon,
            runs=values.shape[1],
            open=cells[0].open[-1] if cells[0].open else 0,
            fewer=have_more_runs(cells, measure),
            recorded=cells[0].recorded,
            own=max(c.sight for c in cells) > Sight.NOTHING,
            forecasters=tuple(c.forecaster for c in cells),
            means=-found.means if higher else found.means,
            ranks=ranks(found.means),
            before=before,
            pairs=found,
        )
        for (nature, cells), values, found, before in zip(
            groups, totals, pairs, lower(pairs, level), strict=True
        )
    ]
    return Ranking(measure, higher, level, tuple(standings))


def column_of(study: Study, measure: str) -> Column:
    """The column of that name.

    Raises
    ------
    UnknownName
    """
    columns = study.columns
    if measure not in columns:
        raise UnknownName.of("measure", measure, columns)
    return columns[measure]


def last_cells(study: Study, nature: str, measures: Sequence[str]) -> list[Played]:
    """Those of a nature at its largest T that have these measures."""
    cells = [c for c in study.cells if c.nature == nature and all(m in c.totals for m in measures)]
    last = max((c.horizon for c in cells), default=0)
    return [c for c in cells if c.horizon == last]


def totals_in_common(cells: Sequence[Played], measure: str) -> Floats:
    """The last totals of the runs that all cells have, (cells, runs)."""
    return in_common([cell.totals[measure][-1] for cell in cells])


def have_more_runs(cells: Sequence[Played], measure: str) -> bool:
    """Whether `totals_in_common` leaves some runs out."""
    return len({cell.totals[measure].shape[1] for cell in cells}) > 1


#: what is said of tables in which runs are left out
COMMON_RUNS = "Only runs that all forecasters have are compared"


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
