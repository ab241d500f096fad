"""What a statistician would say of a list of forecasts before trusting a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.joint import JointDistribution
from onlinecal.core.words import number_of
from onlinecal.forecasts.inference import Drift
from onlinecal.forecasts.intervals import FEW

Floats = NDArray[np.float64]

#: steps of grids on which people's forecasts often are
GRIDS = (4, 5, 8, 10, 20, 50, 100, 200, 1000)
#: below so many rows all intervals are wide
SMALL = 100
#: share of rows on predictions of their own from which they are called distinct
DISTINCT = 0.5


def cautions(
    gamma: JointDistribution, drift: Drift | None = None, samples: float | None = None, level: float = 0.05
) -> list[str]:
    """Warnings about one column of forecasts, in sentences; none where there is nothing to say.

    Parameters
    ----------
    gamma : JointDistribution
        Of the predictions as they are written.
    drift : Drift, optional
        Of the rows in order of time.
    samples : float, optional
        How many samples of equal weight vary as much, where samples have weights.
    level : float, default 0.05
        p-values below it are spoken of.
    """
    said = []
    n = gamma.weight if samples is None else samples
    if samples is not None and samples < 0.9 * gamma.weight:
        said.append(f"weights differ: the rows tell as much as {n:,.0f} rows of equal weight")
    if n < SMALL:
        said.append(f"{number_of(round(n), 'row')} only: intervals are wide, and limits for large n are poor")
    said += _rare(gamma, n)
    if gamma.levels == 1:
        said.append(
            f"all forecasts are {gamma.predictions[0]:.4g}: nothing can be said of how they tell events apart"
        )
    else:
        said += _values(gamma)
    certain = (gamma.predictions <= 0.0) & (gamma.positives > 0.0)
    certain |= (gamma.predictions >= 1.0) & (gamma.positives < gamma.counts)
    if certain.any():
        said.append("forecasts of 0 or 1 have been wrong, so that the log score is infinite")
    if drift is not None and drift.p_value < level:
        said.append(
            f"the bias changes over time (p = {drift.p_value:.2g}): one table for all rows is an average over "
            "different times"
        )
    if drift is not None and drift.correlation_p < level:
        said.append(
            f"errors of neighbouring rows depend on each other (correlation {drift.correlation:.2f}, "
            f"p = {drift.correlation_p:.2g}): intervals and p-values take rows as independent"
            + (" and are too optimistic" if drift.correlation > 0.0 else "")
        )
    return said


def _rare(gamma: JointDistribution, n: float) -> list[str]:
    kinds = (
        ("event", "events", gamma.base_rate),
        ("row without the event", "rows without the event", 1.0 - gamma.base_rate),
    )
    said = []
    for one, several, share in kinds:
        many = share * n
        if share == 0.0:
            said.append(f"there are no {several}")
        elif many < FEW:
            # Of rows with weights it need not be whole.
            count = f"{many:,.0f}" if abs(many - round(many)) < 1e-6 * many else f"{many:.2g}"
            said.append(
                f"only {count} {one if count == '1' else several}: whatever depends on them is known badly"
            )
    return said


def _values(gamma: JointDistribution) -> list[str]:
    alone = float(gamma.mass[gamma.counts == gamma.counts.min()].sum()) if gamma.counts.min() > 0 else 0.0
    v = gamma.predictions
    steps = next((m for m in GRIDS if np.abs(v * m - np.rint(v * m)).max() < 1e-9), None)
    if steps is not None:
        return [
            f"all forecasts are multiples of 1/{steps} ({number_of(gamma.levels, 'value')}): they tell "
            "no finer differences"
        ]
    if (gamma.levels > 1 and gamma.counts.max() <= 1.0) or (gamma.counts.min() <= 1.0 and alone > DISTINCT):
        return [
            f"{gamma.levels:,} different forecasts in {gamma.weight:,.0f} rows: measures that tell levels apart (ECE, "
            "CDL) cannot be estimated, whatever n"
        ]
    return []


def duplicates(equal: int, rows: int, more_columns: bool, gammas: Sequence[JointDistribution]) -> list[str]:
    """A warning about rows that are equal to earlier ones, where chance would hardly make them so.

    Parameters
    ----------
    equal, rows : int
    more_columns : bool
        Whether rows have more than forecasts and an outcome, such as a date.
    gammas : sequence of JointDistribution
        Of all columns of forecasts.
    """
    distinct = any(gamma.levels > DISTINCT * gamma.weight for gamma in gammas)
    if equal == 0 or not (more_columns or distinct):
        return []
    return [
        f"{equal:,} of {rows:,} rows are equal to an earlier one in every column: if they are copies, remove them, for "
        "intervals count them as new evidence"
    ]


def tiny_groups(sizes: Mapping[str, float]) -> list[str]:
    """A warning about groups with few rows."""
    few = [name for name, size in sizes.items() if size < FEW]
    if not few:
        return []
    shown = ", ".join(map(repr, few[:5])) + (", …" if len(few) > 5 else "")
    return [
        f"{len(few)} of {len(sizes)} groups have fewer than {FEW} rows ({shown}): little can be said of them"
    ]
