"""Whether measured totals outgrow a rate: the exponent with which their ratio grows, with its interval."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike


def outgrowth(
    times: Sequence[int], totals: Sequence[ArrayLike], bound: Callable[[float], float], rate: float
) -> tuple[float, float, float]:
    """The exponent of the ratio of mean total to rate between several fresh games, and its interval."""
    from scipy.special import stdtrit

    x = np.log(np.asarray(times, dtype=np.float64))
    weights = (x - x.mean()) / ((x - x.mean()) @ (x - x.mean()))
    runs = [np.asarray(y, dtype=np.float64) for y in totals]
    means = np.array([y.mean() for y in runs])
    if not (np.isfinite(means) & (means > 0.0)).all() or min(len(y) for y in runs) < 2:
        return np.nan, -np.inf, np.inf
    rates = np.array([bound(float(t)) for t in times])
    estimate = float(weights @ np.log(means / rates))
    spread = np.array([y.var(ddof=1) / len(y) for y in runs]) * (weights / means) ** 2
    if not spread.any():
        return estimate, estimate, estimate
    freedom = spread.sum() ** 2 / (spread**2 / np.array([len(y) - 1 for y in runs])).sum()
    half = float(-stdtrit(freedom, rate) * np.sqrt(spread.sum()))
    return estimate, estimate - half, estimate + half
