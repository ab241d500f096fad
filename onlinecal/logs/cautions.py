"""Warnings about a list of forecasts that concern the trust in its table."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.words import number_of
from onlinecal.logs.inference import Drift
from onlinecal.logs.resampling import FEW
from onlinecal.measures import brier

#: steps of grids on which people's forecasts often are
GRIDS = (4, 5, 8, 10, 20, 50, 100, 200, 1000)
#: the levels of the tests of dependence in the order given, and of drift
ORDER, DRIFTING = 0.01, 0.05
#: below this number of rows all intervals are wide
SMALL = 100
#: share of rows on predictions of their own from which they are called distinct
DISTINCT = 0.5
#: how far a forecast may be from a multiple that it is read as
ROUNDING = 1e-14


def cautions(
    gamma: JointDistribution,
    drift: Drift | None = None,
    samples: float | None = None,
    rows: int | None = None,
    clusters: float | None = None,
    blocks: int = 0,
    too_few: str = "",
) -> list[str]:
    """Warnings about a column of forecasts, in sentences; `rows` of weights tell as much as `samples` of equal ones."""
    said = []
    n = gamma.weight if samples is None else samples
    many = gamma.weight if rows is None else rows
    if too_few:
        said.append(f"there are no intervals and no p-values: {too_few}")
    if samples is not None and (samples < 0.9 * many or samples < min(SMALL, many - 0.5)):
        said.append(f"weights differ: the rows tell as much as {n:,.0f} rows of equal weight")
    if round(n) < SMALL:
        said.append(f"{number_of(round(n), 'row')} only: intervals are wide, and limits for large n are poor")
    for one, several, share in (
        ("event", "events", gamma.base_rate),
        ("row without the event", "rows without the event", 1.0 - gamma.base_rate),
    ):
        there = share * n
        # Of rows with weights it need not be whole.
        count = f"{there:,.0f}" if abs(there - round(there)) < 1e-6 * there else f"{there:.2g}"
        if share == 0.0:
            said.append(f"there are no {several}")
        elif there < FEW:
            said.append(
                f"only {count} {one if count == '1' else several}: what depends on them is known badly"
            )
    v = gamma.predictions
    # Weights do not tell how many rows a level has; at least this number have one of their own.
    alone = float(gamma.counts[gamma.counts <= 1.0].sum()) if rows is None else 2 * gamma.levels - rows
    if gamma.levels == 1:
        said.append(f"all forecasts are {v[0]:.4g}: nothing can be said of how they tell events apart")
    elif steps := next((m for m in GRIDS if _on_grid(v, m)), 0):
        values = number_of(gamma.levels, "value")
        said.append(f"all forecasts are multiples of 1/{steps} ({values}): they tell no finer differences")
    elif alone > DISTINCT * many:
        said.append(
            f"{gamma.levels:,} different forecasts in {many:,.0f} rows: ECE and CDL cannot be estimated"
        )
    if ((v <= 0.0) & (gamma.positives > 0.0) | (v >= 1.0) & (gamma.positives < gamma.counts)).any():
        said.append("forecasts of 0 or 1 have been wrong, so that the log score is infinite")
    if drift is not None and drift.p_value < DRIFTING:
        said.append(
            f"the bias changes over time (p = {drift.p_value:.2g}): one table for all rows is an average over "
            "different times"
        )
    if blocks and not too_few:
        said.append(
            f"errors near each other in time are alike: {number_of(blocks, 'block')} of rows are taken as independent"
        )
    elif not blocks and drift is not None and depend(drift):
        unit = "rows" if clusters is None else "clusters"
        said.append(
            f"errors of {unit} near each other, or equally far apart, are alike (p = {drift.correlation_p:.2g}): "
            f"intervals and p-values take {unit} as independent and are too optimistic; if questions come back, name "
            "them (--cluster)"
        )
    return said


def depend(test: Drift, in_order: bool = False) -> bool:
    """Whether rows in time, or `in_order` as they are given, seem to depend on each other."""
    return test.correlation_p <= ORDER if in_order else test.correlation_p < DRIFTING


def order_caution(test: Drift) -> list[str]:
    """A warning about errors that are alike in the order given, at the level `ORDER`."""
    if not depend(test, in_order=True):
        return []
    return [
        "errors of rows near each other, or equally far apart, are alike in the order given (p = "
        f"{test.correlation_p:.2g}; of {1 / ORDER:.0f} logs of independent rows one says so): intervals and p-values "
        "take rows as independent and are too optimistic; name what they have in common (--cluster) or their times "
        "(--time)"
    ]


def unresolved_bounds(gamma: JointDistribution, unresolved: Floats) -> dict[str, tuple[float, float]]:
    """The least and the largest Brier score and ECE of all rows, over all outcomes of those without one; exact."""
    square, n = np.sort([unresolved**2, (1.0 - unresolved) ** 2], axis=0), gamma.weight + len(unresolved)
    known = gamma.weight * brier(gamma)
    v, place = np.unique(np.concatenate((gamma.predictions, unresolved)), return_inverse=True)
    counts, ones, more = (
        np.bincount(place, np.concatenate(parts), len(v))
        for parts in (
            (gamma.counts, np.ones(len(unresolved))),
            (gamma.positives, np.zeros(len(unresolved))),
            (np.zeros(gamma.levels), np.ones(len(unresolved))),
        )
    )
    residual = ones - counts * v
    least = np.abs(residual + np.clip(np.rint(-residual), 0.0, more)).sum() / n
    largest = np.maximum(np.abs(residual), np.abs(residual + more)).sum() / n
    low, high = ((known + part.sum()) / n for part in square)
    return {"Brier score": (float(low), float(high)), "ECE": (float(least), float(largest))}


def unresolved_caution(gamma: JointDistribution, unresolved: Floats) -> list[str]:
    """A warning about rows without an outcome, with what they may do to the Brier score and the ECE."""
    if not len(unresolved):
        return []
    # Rounded outwards: the bounds hold as they are written.
    both = " and ".join(
        f"the {name} from {math.floor(low * 1e4) / 1e4:.4f} to {math.ceil(high * 1e4) / 1e4:.4f}"
        for name, (low, high) in unresolved_bounds(gamma, unresolved).items()
    )
    all_of_them = f"{round(gamma.weight) + len(unresolved):,}"
    return [
        f"{number_of(len(unresolved), 'row')} of {all_of_them} with forecasts have no outcome and are not used "
        f"elsewhere: whatever these outcomes are, all rows together have {both}"
    ]


def _on_grid(v: Floats, m: int) -> bool:
    """Whether all are multiples of 1/m but for rounding, each another one: equal ones would be told apart."""
    places = np.rint(v * m)
    return bool(np.abs(v - places / m).max() <= ROUNDING and len(np.unique(places)) == len(v))


def duplicates(equal: int, rows: int, more_columns: bool, gammas: Sequence[JointDistribution]) -> list[str]:
    """A warning about rows that are equal to earlier ones, where chance would hardly make them so."""
    # On a grid chance makes equal rows. A file of which all rows are there twice has half as many levels.
    distinct = any(
        gamma.levels >= DISTINCT * gamma.weight and not any(_on_grid(gamma.predictions, m) for m in GRIDS)
        for gamma in gammas
    )
    if equal == 0 or not (more_columns or distinct):
        return []
    return [
        f"{equal:,} of {rows:,} rows {'is' if equal == 1 else 'are'} equal to an earlier one in every column: if they "
        "are copies, remove them, for intervals count them as new evidence"
    ]


def tiny_groups(sizes: Mapping[str, float]) -> list[str]:
    """A warning about groups with few rows."""
    few = [name for name, size in sizes.items() if size < FEW]
    if not few:
        return []
    shown = ", ".join(map(repr, few[:5])) + (", …" if len(few) > 5 else "")
    have, them = ("has", "it") if len(few) == 1 else ("have", "them")
    return [
        f"{len(few)} of {number_of(len(sizes), 'group')} {have} fewer than {FEW} rows ({shown}): little can be said "
        f"of {them}"
    ]
