"""Changes of measures by recalibration, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.joint import JointDistribution
from onlinecal.forecasts.evaluation import evaluate
from onlinecal.forecasts.inference import scores
from onlinecal.forecasts.intervals import mean_interval
from onlinecal.forecasts.table import Row
from onlinecal.measures.scores import brier, log_loss

Floats = NDArray[np.float64]

#: of all intervals
LEVEL = 0.95
#: differences of scores that are 0 but for rounding
ROUNDING = 1e-14
#: scores, which are means over forecasts, as `forecasts.inference.scores` calls them
SCORES = {"brier": "brier", "log_loss": "log"}

PAIRED = (
    "change of a score: for the mean of its expected differences, each given all that was known before (95 %, by means "
    "with random weights and one more extreme difference; for many forecasts these may come about in any way)"
)
BOTH = (
    "change of another measure: from both intervals at 97.5 %, which hold together in 95 % of all cases, for the "
    "values on what the samples were drawn from"
)


@dataclass(frozen=True)
class Change:
    """A measure after less before."""

    measure: str
    # lower and upper end of the value, which are equal where the measure is exact; NaN where both are infinite
    ends: tuple[float, float]
    interval: tuple[float, float] | None
    how: str  # what the interval is for; "" for none


def changes(
    p: Floats,
    made: Floats,
    y: Floats,
    rows: Sequence[tuple[Row, Row]],
    measures: Sequence[Any],
    bootstrap: int,
    seed: int,
) -> list[Change]:
    """The change of each measure, with 95 % intervals if there are draws.

    The interval of a score (Brier, log) is paired: with dₜ the difference of the score in forecast t, it is for the
    mean of E[dₜ | all that was known before forecast t]. The dₜ less these are martingale differences, whatever makes
    forecasts and outcomes, so that the mean is normal for large n; the empirical variance of dₜ is at least theirs for
    large n, so that the interval is too wide rather than too narrow. For small n one more difference is added, the
    least and the largest that these forecasts can have (`forecasts.intervals.mean_interval`). There is no interval
    where such a difference is infinite. With fewer than 39 draws these two are its ends.

    Another measure is no mean over forecasts. Its interval goes from the lower end of the one after less the upper end
    of the one before to the opposite, both at 97.5 %; it holds where `evaluate`'s do: samples are taken as independent.

    Source: Hall & Heyde 1980, Theorem 3.2 (martingale differences); Choe & Ramdas 2023 (mean expected differences of
    scores of forecasters that change as they learn); Bonferroni's inequality.
    """
    paired = _paired(p, made, y, bootstrap, seed) if bootstrap else {}
    others = [i for i, (old, _) in enumerate(rows) if old.name not in SCORES]
    wide: dict[int, tuple[Row, Row]] = {}
    if bootstrap and others:
        both = (
            evaluate(
                values, y, measures=[measures[i] for i in others], bootstrap=bootstrap, seed=seed,
                level=0.5 * (1.0 + LEVEL),
            )
            for values in (p, made)
        )  # fmt: skip
        before, after = (one.rows for one in both)
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


def for_the_worse(before: JointDistribution, after: JointDistribution) -> list[str]:
    """A sentence for each score that recalibration made worse, with both numbers."""
    said = []
    for words, score in (("Brier score", brier), ("log loss", log_loss)):
        old, new = float(score(before)), float(score(after))
        if new - old > ROUNDING:
            digits = next(d for d in range(4, 18) if f"{old:.{d}g}" != f"{new:.{d}g}")
            worse = (
                f"{new:.{digits}g} after"
                if new < math.inf
                else "infinite after: 0 or 1 was forecast and was wrong"
            )
            said.append(f"The {words} became worse: {old:.{digits}g} before, {worse}.")
    return said


def _less(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """All differences of a value of the one and a value of the other."""
    return one[0] - other[1], one[1] - other[0]


def _paired(p: Floats, made: Floats, y: Floats, draws: int, seed: int) -> dict[str, tuple[float, float]]:
    """By measure; none where a difference can be infinite."""
    found, each = {}, np.ones(len(y))
    for measure, score in SCORES.items():
        with np.errstate(invalid="ignore"):
            zeros, ones = (
                scores(made, outcome)[score] - scores(p, outcome)[score] for outcome in (0.0 * y, each)
            )
        both = np.concatenate((zeros, ones))
        if not np.isfinite(both).all():
            continue
        within = float(both.min()), float(both.max())
        happened = np.where(y == 1.0, ones, zeros)
        found[measure] = mean_interval(happened, each, each, within, draws, LEVEL, seed)
    return found
