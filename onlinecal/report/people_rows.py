"""What became of the decision makers who join and leave, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.report.curves import Study
from onlinecal.study.played import Played

Floats = NDArray[np.float64]

#: percentiles of the decision makers
SHARES = (10.0, 50.0, 90.0)


@dataclass(frozen=True)
class PeopleRow:
    """The decision makers of one forecaster against one nature; numbers are means over the runs.

    Attributes
    ----------
    forecaster, nature : str
    schedule : (str, str)
        Nature's label without the schedule, and that of the schedule.
    horizon : int
        T of the longest game.
    labels : tuple of str
    best : (k,) bools
        Who best-responds to the forecast itself: the CDL bounds the swap regret of these.
    rounds : (n,) ints
        T: the checkpoints of the one game, or the ends of a game each.
    regret : (n, k) floats
        Swap regret as a total; NaN before the first question of a tenure whose outcome is known.
    quantiles : (3, n) floats
        The `SHARES` of those that have one.
    seen : (k,) ints
        How many questions of each tenure have a known outcome at the end.
    last, cdl : (k,) floats
        Swap regret and CDL at the end, as totals.
    open : int
        Questions that have no known outcome at the end.
    runs : int
    """

    forecaster: str
    nature: str
    schedule: tuple[str, str]
    horizon: int
    labels: tuple[str, ...]
    best: NDArray[np.bool_]
    rounds: NDArray[np.int64]
    regret: Floats
    quantiles: Floats
    seen: NDArray[np.int64]
    last: Floats
    cdl: Floats
    open: int
    runs: int

    @property
    def unseen(self) -> int:
        """How many have no question with a known outcome."""
        return int((self.seen == 0).sum())

    @property
    def rate(self) -> Floats:
        """Swap regret at the end for each question with a known outcome, (k,); NaN for who has none."""
        return _each(self.last, self.seen)

    @property
    def cdl_rate(self) -> Floats:
        """CDL at the end for each question with a known outcome, (k,); NaN for who has none."""
        return _each(self.cdl, self.seen)

    @property
    def worst(self) -> int | None:
        """Whose total swap regret at the end is largest; None if nobody has a question with a known outcome."""
        return None if self.unseen == len(self.labels) else int(np.argmax(np.where(self.seen, self.last, -1)))

    @property
    def worst_rate(self) -> int | None:
        """Whose swap regret for each question is largest; None if nobody has one."""
        return None if self.unseen == len(self.labels) else int(np.nanargmax(self.rate))

    def median(self) -> tuple[float, float]:
        """Of those with a known outcome: the median total swap regret, and that for each question; NaN for nobody."""
        there = self.seen > 0
        if not there.any():
            return np.nan, np.nan
        return float(np.median(self.last[there])), float(np.median(self.rate[there]))

    def as_json(self) -> dict[str, object]:
        """The summary that tables print."""
        median, each = self.median()
        who = self.worst
        row: dict[str, object] = {
            "forecaster": self.forecaster,
            "nature": self.nature,
            "horizon": self.horizon,
            "runs": self.runs,
            "open": self.open,
            "decision_makers": len(self.labels),
            "without_known_outcome": self.unseen,
            "median_swap_regret": median,
            "median_swap_regret_per_question": each,
        }
        for name, place in (("worst", who), ("worst_per_question", self.worst_rate)):
            row[name] = None if place is None else {
                "label": self.labels[place],
                "best_response": bool(self.best[place]),
                "questions": int(self.seen[place]),
                "swap_regret": float(self.last[place]),
                "cdl": float(self.cdl[place]),
            }  # fmt: skip
        return row


def people_rows(study: Study) -> list[PeopleRow]:
    """One for each nature (with its schedule) and forecaster, in this order; of several horizons a game each.

    Raises
    ------
    InvalidParameter
        Nobody joins and leaves in this study.
    """
    found = [
        _people_row(sorted(mine, key=lambda c: c.horizon))
        for nature in study.natures
        for who in study.forecasters
        if (mine := [c for c in study.cells if (c.forecaster, c.nature) == (who, nature) and c.people])
    ]
    if not found:
        raise InvalidParameter(
            "nobody joins or leaves in this study; expected `decision_makers` in its scenario, or in `play`"
        )
    return found


def _people_row(cells: list[Played]) -> PeopleRow:
    last = cells[-1]
    people = last.people
    assert people is not None
    fresh = len(cells) > 1
    entries = [
        {
            name: entry[-1:] if fresh else entry
            for name, entry in c.people.entries.items()
            if name in ("rounds", "swap_regret")
        }
        for c in cells
        if c.people is not None
    ]
    seen, swap = (np.concatenate([e[name] for e in entries]) for name in ("rounds", "swap_regret"))
    # All runs have the same times, hence the same counts.
    counts = seen[:, :, 0]
    regret = np.where(counts > 0, swap.mean(axis=2), np.nan)
    quantiles = np.full((len(SHARES), len(regret)), np.nan)
    for i, row in enumerate(regret):
        if np.isfinite(row).any():
            quantiles[:, i] = np.nanpercentile(row, SHARES)
    return PeopleRow(
        last.forecaster,
        last.nature,
        last.schedule,
        last.horizon,
        people.labels,
        np.array([not response for response in people.responses]),
        np.array([c.horizon for c in cells]) if fresh else last.rounds,
        regret,
        quantiles,
        counts[-1].astype(np.int64),
        swap[-1].mean(axis=1),
        people.cdl.mean(axis=1),
        last.open[-1] if last.open else 0,
        people.cdl.shape[1],
    )


def _each(totals: Floats, seen: NDArray[np.int64]) -> Floats:
    found = np.full(len(seen), np.nan)
    np.divide(totals, seen, out=found, where=seen > 0)
    return found
