"""Recalibration replayed in time order, what it changed, with intervals, and of files."""

import math
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.progress import Progress
from onlinecal.core.samples import Words, plain, with_ours
from onlinecal.core.validation import check_lengths, check_outcomes, check_same_rows, check_unit, vector
from onlinecal.forecasters.base import Forecaster
from onlinecal.logs.evaluation import evaluate
from onlinecal.logs.inference import scores
from onlinecal.logs.intervals import mean_interval
from onlinecal.logs.table import Evaluation, Row, aligned, span
from onlinecal.measures.scores import brier, log_loss
from onlinecal.recalibration.methods import DEFAULT, METHODS
from onlinecal.recalibration.recalibrator import Asked as Question
from onlinecal.recalibration.recalibrator import Recalibrator

if TYPE_CHECKING:
    import pandas as pd

Ends = tuple[float, float]

#: measured before and after by default
MEASURES = ("brier", "log_loss", "smooth_ece", "smooth_ce", "cutoff_ce", "scdl")
#: scores, which are means over forecasts, as `forecasts.inference.scores` calls them
SCORES = {"brier": "brier", "log_loss": "log"}
#: differences of scores that are 0 but for rounding
ROUNDING = 1e-14
#: of all intervals
LEVEL = 0.95

PAIRED = (
    "change of a score: for the mean of its expected differences, each given all that was known before (95 %, by a "
    "weighted bootstrap with one more extreme difference)"
)
BOTH = (
    "change of another measure: from both intervals at 97.5 %, which hold together in 95 % of all cases, for the "
    "population values"
)


@dataclass(frozen=True)
class Change:
    """A measure after less before."""

    measure: str
    # lower and upper end of the value, which are equal where the measure is exact; NaN where both are infinite
    ends: Ends
    interval: Ends | None
    how: str  # what the interval is for; "" for none


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """Forecasts after recalibration, and all measures before and after."""

    forecasts: Floats  # in the order in which they came
    before: Evaluation  # of those with a known outcome
    after: Evaluation
    changes: tuple[Change, ...]  # after less before, of each measure; with draws, with intervals
    method: Forecaster  # the recalibrating one

    @property
    def cautions(self) -> tuple[str, ...]:
        """Sentences on scores that became worse, with advice where one is infinite or surely worse."""
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
            rows = [[one.measure, *_words(one)] for one in self.changes]
            lines += ["", *aligned([["after − before", "value", "interval"], *rows])]
            for how in dict.fromkeys(one.how for one in self.changes if one.how):
                lines += textwrap.wrap(how, 80, subsequent_indent="  ")
        if self.cautions:
            lines += ["", *textwrap.wrap("caution: " + " ".join(self.cautions), 80, subsequent_indent="  ")]
        return "\n".join(lines)

    __repr__ = __str__

    def table(self) -> "pd.DataFrame":
        """A row for each measure, with `lower`, `upper` and `interval` of `before_`, `after_` and `change_`."""
        import pandas as pd

        found = []
        for old, new, change in zip(self.before.rows, self.after.rows, self.changes, strict=True):
            row: dict[str, Any] = {"measure": old.name}
            three: dict[str, Row | Change] = {"before": old, "after": new, "change": change}
            for name, one in three.items():
                row |= {
                    f"{name}_lower": one.ends[0],
                    f"{name}_upper": one.ends[1],
                    f"{name}_interval": one.interval,
                }
            found.append(row)
        return pd.DataFrame(found, dtype=object)


def _words(row: Row | Change) -> list[str]:
    interval = "" if row.interval is None else "[{:.4g}, {:.4g}]".format(*row.interval)
    return [span(row.ends, ".4g"), interval]


def for_the_worse(before: JointDistribution, after: JointDistribution) -> list[str]:
    """A sentence for each score that recalibration made worse, with both numbers."""
    said = []
    for words, score in (("Brier score", brier), ("log loss", log_loss)):
        old, new = float(score(before)), float(score(after))
        if new - old > ROUNDING:
            digits = next(d for d in range(4, 18) if f"{old:.{d}g}" != f"{new:.{d}g}")
            worse = "infinite after: 0 or 1 was forecast and was wrong"
            if new < math.inf:
                worse = f"{new:.{digits}g} after"
            said.append(f"The {words} became worse: {old:.{digits}g} before, {worse}.")
    return said


@with_ours
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
    **words: Unpack[Words],
) -> Recalibrated:
    """Recalibrates forecasts in time order; each sees the outcomes that were known before it was made, and no others.

    Parameters
    ----------
    p : (n,) array_like
        Forecasts in [0, 1], in the order in which they were made.
    y : (n,) array_like
        Outcomes: 0, 1, or labels; NaN where it is not known yet.
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
        As for `evaluate`: intervals, before and after, and of the change. That of a score (Brier, log) is for the mean
        over t of E[change of the score in forecast t | the past]. It takes neither forecasts nor outcomes as
        independent.
    **words
        `positive`, `negative` and `drop`, as in `JointDistribution.from_samples`.

    Returns
    -------
    Recalibrated
        Its first k forecasts depend on the first k rows alone, with the outcomes known by then.

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
    index: Any = getattr(p, "index", None)
    dates = str(getattr(index, "dtype", "")).startswith("datetime")
    if times is None and dates and index.is_monotonic_decreasing and not index.is_monotonic_increasing:
        raise InvalidData(
            f"the dates in the index of p fall from row to row, from {index[0]} to {index[-1]}; expected rows in the "
            "order of time: p.sort_index(), and y likewise"
        )
    p, y, times, known = plain({"p": p, "y": y, "times": times, "known": known}, **words).values()
    forecasts, outcomes = vector("p", p), vector("y", y)
    check_lengths({"p": forecasts, "y": outcomes})
    check_unit("p", forecasts)
    there = ~np.isnan(outcomes)
    check_outcomes(forecasts, np.where(there, outcomes, 0.0))
    if there.sum() < 2:
        raise InvalidData(f"{int(there.sum())} of {len(outcomes)} outcomes are known; expected at least 2")
    asked = None if times is None else vector("times", times)
    told = asked if known is None else vector("known", known)
    _check_times(forecasts, asked, told)
    mender = Recalibrator(forecaster, bins=bins, horizon=horizon, seed=seed)
    made = _replayed(mender, forecasts, outcomes, asked, told)
    names = list(MEASURES if measures is None else measures)
    both, y_known = (forecasts[there], made[there]), outcomes[there]
    before, after = (
        evaluate(values, y_known, measures=names, bootstrap=bootstrap, seed=seed) for values in both
    )
    rows = list(zip(before.rows, after.rows, strict=True))
    changed = changes(*both, y_known, rows, names, bootstrap, seed)
    return Recalibrated(made, before, after, tuple(changed), mender.method)


def _replayed(
    mender: Recalibrator, p: Floats, y: Floats, asked: Floats | None, told: Floats | None
) -> Floats:
    made, waiting = np.empty(len(p)), list[tuple[float, int, Question]]()
    # Outcomes are counted too: many late ones may be told before one forecast.
    with Progress(len(p) + int(np.isfinite(y).sum()), unit="forecasts and outcomes") as progress:
        for i, base in enumerate(p.tolist()):
            now = math.inf if asked is None else float(asked[i])
            while waiting and waiting[0][0] < now:
                _, j, question = heappop(waiting)
                mender.tell(question, float(y[j]))
                progress.advance(1)
            question = mender.ask(base, None if asked is None else now)
            made[i] = question.forecast
            due = float(i) if told is None else float(told[i])
            if not (math.isnan(due) or math.isnan(y[i])):
                heappush(waiting, (due, i, question))
            progress.advance(1)
    return made


def _check_times(p: Floats, asked: Floats | None, told: Floats | None) -> None:
    if asked is None or told is None:
        if told is not None:
            raise InvalidData("known without times; expected when forecasts were made, too")
        return
    check_lengths({"p": p, "times": asked, "known": told})
    if not np.isfinite(asked).all():
        raise InvalidData(f"times[{int(np.argmin(np.isfinite(asked)))}] is not finite; expected numbers")
    for name, values, before, ahead in (("times", asked[1:], asked[:-1], 1), ("known", told, asked, 0)):
        if (late := values < before).any():
            i = int(np.argmax(late))
            raise InvalidData(
                f"{name}[{i + ahead}] = {values[i]:g} is before times[{i}] = {before[i]:g}; expected no earlier time"
            )


def changes(
    p: Floats,
    made: Floats,
    y: Floats,
    rows: list[tuple[Row, Row]],
    measures: list[Any],
    bootstrap: int,
    seed: int,
) -> list[Change]:
    """The change of each measure, with 95 % intervals if there are draws (docs/intervals.md)."""
    paired = _paired(p, made, y, bootstrap, seed) if bootstrap else {}
    others = [i for i, (old, _) in enumerate(rows) if old.name not in SCORES]
    wide: dict[int, tuple[Row, Row]] = {}
    if bootstrap and others:
        asked, level = [measures[i] for i in others], 0.5 * (1.0 + LEVEL)
        before, after = (
            evaluate(values, y, measures=asked, bootstrap=bootstrap, seed=seed, level=level).rows
            for values in (p, made)
        )
        wide = dict(zip(others, zip(before, after, strict=True), strict=True))
    found = []
    for i, (old, new) in enumerate(rows):
        interval, how = paired.get(old.name), PAIRED
        if i in wide:
            one, other = (row.interval for row in wide[i])
            interval, how = None if one is None or other is None else _less(other, one), BOTH
        if interval is not None and any(map(math.isnan, interval)):
            interval = None
        found.append(Change(old.name, _less(new.ends, old.ends), interval, how if interval else ""))
    return found


def _less(one: Ends, other: Ends) -> Ends:
    """All differences of a value of the one and a value of the other."""
    return one[0] - other[1], one[1] - other[0]


def _paired(p: Floats, made: Floats, y: Floats, draws: int, seed: int) -> dict[str, Ends]:
    """By measure; none where a difference can be infinite."""
    found, each = {}, np.ones(len(y))
    for measure, score in SCORES.items():
        with np.errstate(invalid="ignore"):
            zeros, ones = (
                scores(made, outcome)[score] - scores(p, outcome)[score] for outcome in (0.0 * y, each)
            )
        both = np.concatenate((zeros, ones))
        if np.isfinite(both).all():
            within, happened = (float(both.min()), float(both.max())), np.where(y == 1.0, ones, zeros)
            found[measure] = mean_interval(happened, each, each, within, draws, LEVEL, seed)
    return found
