"""Which forecasters no other one beats in both of two measures, and which of these verdicts are beyond doubt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.growth import check_level
from onlinecal.growth.orders import Pairs, differences, lower
from onlinecal.report.curves import Study
from onlinecal.report.ranking import column_of, have_more_runs, last_cells, totals_in_common

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Front:
    """The forecasters against one nature, at its largest T, by two measures.

    Attributes
    ----------
    nature : str
        With its schedule.
    measures : (str, str)
    higher : (bool, bool)
        Whether a higher total is the better one.
    horizon, runs, open : int
        Runs: those that all of them have. Open: questions without a known outcome at the end; they are in no total.
    fewer : bool
        Whether some forecaster has more runs; the others are not in it.
    recorded : bool
        Whether all runs have the same recorded outcomes: what is certain is over the forecasters' randomness alone.
    forecasters : tuple of str
    means : (k, 2) floats
        Mean totals.
    dominated : (k, k) bools
        Whether row is, in the means over runs, no worse than column in both and better in one.
    certain : (k, k) bools
        Whether row is better than column in both, beyond doubt; a part of `dominated`.
    level : float
        With which all that is certain, against all natures, is true together.
    """

    nature: str
    measures: tuple[str, str]
    higher: tuple[bool, bool]
    horizon: int
    runs: int
    open: int
    fewer: bool
    recorded: bool
    forecasters: tuple[str, ...]
    means: Floats
    dominated: NDArray[np.bool_]
    certain: NDArray[np.bool_]
    level: float

    @property
    def front(self) -> list[str]:
        """Those that no other dominates in the means; the best in the first measure first."""
        order = np.argsort(self.means[:, 0] * (-1.0 if self.higher[0] else 1.0), kind="stable")
        return [self.forecasters[i] for i in order if not self.dominated[:, i].any()]

    def by(self, forecaster: str, *, certain: bool = False) -> list[str]:
        """Who dominates it: in the means, or beyond doubt."""
        at = self.forecasters.index(forecaster)
        table = self.certain if certain else self.dominated
        return [who for who, is_ in zip(self.forecasters, table[:, at], strict=True) if is_]

    def as_json(self) -> dict[str, Any]:
        """For `compare --pareto --json`."""
        return {
            "nature": self.nature,
            "measures": list(self.measures),
            "better": ["higher" if h else "lower" for h in self.higher],
            "horizon": self.horizon,
            "runs": self.runs,
            "open": self.open,
            "recorded": self.recorded,
            "level": self.level,
            "forecasters": [
                {
                    "forecaster": who,
                    "totals": [float(m) if math.isfinite(m) else None for m in mean],
                    "on_front": who in self.front,
                    "dominated_by": self.by(who),
                    "certainly_dominated_by": self.by(who, certain=True),
                }
                for who, mean in zip(self.forecasters, self.means, strict=True)
            ],
        }


def fronts(study: Study, first: str, second: str, level: float = 0.95) -> list[Front]:
    """The Pareto front of the mean totals in two measures, at the largest T of each nature.

    A domination is certain where the forecaster is better in both measures beyond doubt: of the two p-values of
    Student's t on one difference a run the larger counts, and Holm's procedure is over all pairs and natures. On a
    front a forecaster is by the means; that it is on that of the expected totals nothing says.

    Parameters
    ----------
    study : Study
    first, second : str
        Names of columns. Of a payoff the higher total is the better, of all else the lower.
    level : float, default 0.95

    Raises
    ------
    UnknownName
        A measure that was not played.
    InvalidParameter
        The same measure twice; no nature in which both were taken.
    """
    check_level(level)
    if first == second:
        raise InvalidParameter(f"a front of {first} and {second}; expected two measures")
    columns = [column_of(study, measure) for measure in (first, second)]
    higher = tuple(c.of_task and c.measure == "payoff" for c in columns)
    groups = [
        (nature, cells) for nature in study.natures if (cells := last_cells(study, nature, [first, second]))
    ]
    if not groups:
        raise InvalidParameter(
            f"{first} and {second} were not taken of the same games; expected two that were"
        )
    both = []
    for _, cells in groups:
        values = [
            totals_in_common(cells, m) * (-1.0 if h else 1.0)
            for m, h in zip((first, second), higher, strict=True)
        ]
        both.append([differences(v) for v in values])
    certain = _certain(both, level)
    found = []
    for (nature, cells), pairs, sure in zip(groups, both, certain, strict=True):
        better = [np.nan_to_num(each.difference, nan=0.0) for each in pairs]
        worse = (better[0] > 0) | (better[1] > 0)
        # Of infinite means, which have no difference, the finite one is the better.
        for each in pairs:
            worse |= np.isinf(each.means)[:, None] & np.isfinite(each.means)[None, :]
        gain = (better[0] < 0) | (better[1] < 0)
        for each in pairs:
            gain |= np.isfinite(each.means)[:, None] & np.isinf(each.means)[None, :]
        found.append(
            Front(
                nature=nature,
                measures=(first, second),
                higher=(higher[0], higher[1]),
                horizon=cells[0].horizon,
                runs=pairs[0].runs,
                open=cells[0].open[-1] if cells[0].open else 0,
                fewer=have_more_runs(cells, first),
                recorded=cells[0].recorded,
                forecasters=tuple(c.forecaster for c in cells),
                means=np.stack(
                    [-p.means if h else p.means for p, h in zip(pairs, higher, strict=True)], axis=1
                ),
                dominated=gain & ~worse,
                certain=sure,
                level=level,
            )
        )
    return found


def _certain(both: list[list[Pairs]], level: float) -> list[NDArray[np.bool_]]:
    """Where row is better than column in both measures: whoever says so of both at once is wrong if one is wrong."""
    joint = []
    for first, second in both:
        same = np.sign(first.difference) == np.sign(second.difference)
        p = np.where(same, np.maximum(first.p, second.p), 1.0)
        joint.append(Pairs(first.means, first.difference, first.error, p, first.runs))
    return lower(joint, level)
