"""Recalibration of forecasts that have been made: replayed in time order, without a look at what came later."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.errors import InvalidData
from onlinecal.core.validation import check_lengths, check_outcomes, check_same_rows, check_unit, vector
from onlinecal.forecasters.base import Forecaster
from onlinecal.forecasts.evaluation import evaluate
from onlinecal.forecasts.table import Evaluation, Row, aligned
from onlinecal.recalibration.change import SCORES, Change, changes, for_the_worse
from onlinecal.recalibration.methods import DEFAULT, METHODS
from onlinecal.recalibration.recalibrator import Asked, Recalibrator

Floats = NDArray[np.float64]

#: measured before and after by default
MEASURES = ("brier", "log_loss", "smooth_ece", "smooth_ce", "cutoff_ce", "scdl")


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """Forecasts after recalibration, and all measures before and after.

    Attributes
    ----------
    forecasts : (n,) floats
        In the order in which they came.
    before, after : Evaluation
        Of those with a known outcome.
    changes : tuple of Change
        After less before, of each measure; with draws, with intervals that are paired.
    method : Forecaster
        The recalibrating one.
    """

    forecasts: Floats
    before: Evaluation
    after: Evaluation
    changes: tuple[Change, ...]
    method: Forecaster

    @property
    def cautions(self) -> tuple[str, ...]:
        """Sentences on scores that became worse, Brier and log loss, and what to do; empty where neither did.

        They advise to keep the forecasts only where a score became infinite or its interval of the change is above 0.
        """
        said = for_the_worse(self.before.gamma, self.after.gamma)
        if not said:
            return ()
        paired = [one.interval for one in self.changes if one.measure in SCORES and one.interval is not None]
        if any("infinite" in sentence for sentence in said) or any(low > 0.0 for low, _ in paired):
            other = f", or use the default, {DEFAULT!r}, which can fall back on them"
            advice = f"Keep the forecasts as they were{other * (self.method != METHODS[DEFAULT])}."
        elif paired:
            advice = "No interval of these changes is above 0: they may be chance."
        else:
            advice = "Without intervals of the changes it is not known whether this is more than chance."
        return (*said, advice)

    def __str__(self) -> str:
        rows = [["measure", "before", "interval", "after", "interval"]]
        for old, new in zip(self.before.rows, self.after.rows, strict=True):
            rows.append([old.name, *_words(old), *_words(new)])
        lines = aligned(rows)
        lines += dict.fromkeys([*self.before.notes, *self.after.notes])
        if any(one.interval is not None for one in self.changes):
            rows = [
                ["after − before", "value", "interval"],
                *([one.measure, *_words(one)] for one in self.changes),
            ]
            lines += ["", *aligned(rows)]
            for how in dict.fromkeys(one.how for one in self.changes if one.how):
                lines += textwrap.wrap(how, 80, subsequent_indent="  ")
        if self.cautions:
            lines += ["", *textwrap.wrap("caution: " + " ".join(self.cautions), 80, subsequent_indent="  ")]
        return "\n".join(lines)

    __repr__ = __str__

    def as_json(self) -> list[dict[str, Any]]:
        """A row for each measure."""
        found = []
        for old, new, change in zip(self.before.rows, self.after.rows, self.changes, strict=True):
            row: dict[str, Any] = {"measure": old.name}
            three: tuple[tuple[str, Row | Change], ...] = ("before", old), ("after", new), ("change", change)
            for name, one in three:
                row |= {f"{name}_lower": one.ends[0], f"{name}_upper": one.ends[1]}
                row[f"{name}_interval"] = None if one.interval is None else list(one.interval)
            found.append(row)
        return found


def _words(row: Row | Change) -> list[str]:
    low, high = ("–" if math.isnan(end) else f"{end:.4g}" for end in row.ends)
    interval = "" if row.interval is None else "[{:.4g}, {:.4g}]".format(*row.interval)
    return [low if low == high else f"[{low}, {high}]", interval]


def recalibrate(
    p: ArrayLike,
    y: ArrayLike,
    forecaster: str | Mapping[str, Any] | Forecaster = DEFAULT,
    *,
    times: ArrayLike | None = None,
    known: ArrayLike | None = None,
    bins: int | None = None,
    horizon: int | None = None,
    measures: Iterable[Any] | None = None,
    bootstrap: int = 0,
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> Recalibrated:
    """Recalibrates forecasts in time order; each sees the outcomes that were known before it was made, and no others.

    Parameters
    ----------
    p : (n,) array_like
        Forecasts in [0, 1], in the order in which they were made.
    y : (n,) array_like
        Outcomes: 0, 1, or NaN where it is not known yet.
    forecaster, bins, horizon, seed
        As for `Recalibrator`.
    times : (n,) array_like, optional
        When the forecasts were made; must not descend. Those of one time are made before any of their outcomes is
        known. Default: one after the other, each outcome known before the next forecast.
    known : (n,) array_like, optional
        With `times`: when the outcomes became known, not before the forecast; NaN for never. Forecasts of a time are
        made before what becomes known at that time. Default: `times`.
    measures : iterable, optional
        As for `evaluate`. Default: `MEASURES`.
    bootstrap : int, default 0
        As for `evaluate`: intervals, before and after, and of the change (`onlinecal.recalibration.change`).
    progress : callable, optional
        Told how much has been done since it was last told, of `work`.

    Returns
    -------
    Recalibrated
        Its first k forecasts depend on the first k rows alone, and among these on the outcomes that were known.

    Examples
    --------
    >>> found = recalibrate([0.9, 0.9, 0.9, 0.9], [0, 0, 1, 0], measures=["brier"])
    >>> found.forecasts.round(3)
    array([0.9  , 0.538, 0.26 , 0.617])
    >>> print(found)
    measure  before  interval  after   interval
    brier    0.61              0.5071
    """
    check_same_rows({"p": p, "y": y, "times": times, "known": known})
    forecasts, outcomes = vector("p", p), vector("y", y)
    check_lengths({"p": forecasts, "y": outcomes})
    check_unit("p", forecasts)
    there = ~np.isnan(outcomes)
    check_outcomes(forecasts, np.where(there, outcomes, 0.0))
    if there.sum() < 2:
        raise InvalidData(f"{int(there.sum())} of {len(outcomes)} outcomes are known; expected at least 2")
    asked = None if times is None else _in_order(forecasts, vector("times", times))
    told = asked if known is None else _after(asked, vector("known", known))
    mender = Recalibrator(forecaster, bins=bins, horizon=horizon, seed=seed)
    made = _replayed(mender, forecasts, outcomes, asked, told, progress)
    names = list(MEASURES if measures is None else measures)
    p_known, made_known, y_known = forecasts[there], made[there], outcomes[there]
    found = []
    for values in (p_known, made_known):
        found.append(evaluate(values, y_known, measures=names, bootstrap=bootstrap, seed=seed))
        progress(len(forecasts))
    rows = list(zip(found[0].rows, found[1].rows, strict=True))
    changed = changes(p_known, made_known, y_known, rows, names, bootstrap, seed)
    progress(work(len(forecasts), bootstrap) - 3 * len(forecasts))
    return Recalibrated(made, found[0], found[1], tuple(changed), mender.method)


def work(n: int, bootstrap: int) -> int:
    """The total told to `progress`: n for n forecasts, and as much for each time that they are measured."""
    return (5 if bootstrap else 3) * n


def _replayed(
    mender: Recalibrator,
    p: Floats,
    y: Floats,
    asked: Floats | None,
    told: Floats | None,
    progress: Callable[[int], None],
) -> Floats:
    made = np.empty(len(p))
    waiting: list[tuple[float, int, Asked]] = []
    for i, base in enumerate(p.tolist()):
        now = math.inf if asked is None else float(asked[i])
        while waiting and waiting[0][0] < now:
            _, j, question = heappop(waiting)
            mender.tell(question, float(y[j]))
        question = mender.ask(base, None if asked is None else now)
        made[i] = question.forecast
        due = float(i) if told is None else float(told[i])
        if not (math.isnan(due) or math.isnan(y[i])):
            heappush(waiting, (due, i, question))
        if (i + 1) % 1024 == 0:
            progress(1024)
    progress(len(p) % 1024)
    return made


def _in_order(p: Floats, times: Floats) -> Floats:
    check_lengths({"p": p, "times": times})
    if not np.isfinite(times).all():
        raise InvalidData(f"times[{int(np.argmin(np.isfinite(times)))}] is not finite; expected numbers")
    late = np.flatnonzero(times[1:] < times[:-1])
    if len(late):
        i = int(late[0]) + 1
        raise InvalidData(
            f"times[{i}] = {times[i]:g} is before times[{i - 1}] = {times[i - 1]:g}; expected rows in order"
        )
    return times


def _after(asked: Floats | None, known: Floats) -> Floats:
    if asked is None:
        raise InvalidData("known without times; expected when forecasts were made, too")
    check_lengths({"times": asked, "known": known})
    early = np.flatnonzero(known < asked)
    if len(early):
        i = int(early[0])
        raise InvalidData(
            f"known[{i}] = {known[i]:g} is before times[{i}] = {asked[i]:g}; expected it not to be"
        )
    return known
