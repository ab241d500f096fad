"""T-Cal: a test of calibration by binned squared errors without their bias, at all scales at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.validation import count

Floats = NDArray[np.float64]

#: draws that are kept at once, times levels
_KEPT = 2_000_000


@dataclass(frozen=True)
class TCal:
    """The outcome of `t_cal`.

    Attributes
    ----------
    p_value : float
        Exact: calibrated forecasts have one as small with at most this probability, for any number of draws.
    bins : tuple of ints
        m of each scale: 2, 4, 8, …, without scales whose bins hold the same levels as those before.
    errors : tuple of floats
        The estimate of the squared binned error at each; without bias, so that it may be negative.
    samples, draws : int
    """

    p_value: float
    bins: tuple[int, ...]
    errors: tuple[float, ...]
    samples: int
    draws: int

    def __str__(self) -> str:
        return f"T-Cal: p = {self.p_value:.3g}, of {len(self.bins)} scales and {self.draws} draws"


@of_gamma
def t_cal(gamma: JointDistribution, *, seed: int, draws: int = 999) -> TCal:
    r"""Tests whether forecasts are calibrated, adaptively: by binned squared errors with 2, 4, 8, … bins.

    With n_b samples in bin b of m equal ones, T_m = (1/n) Σ_b [(Σ (y − v))² − Σ (y − v)²]/(n_b − 1) over bins with two
    or more samples estimates the mean squared binned error without bias. Outcomes are drawn with the probabilities
    forecast. Each scale has the rank of its T_m among the draws. The smallest rank of all scales is ranked among those
    of the draws; of equal ones the smaller product of ranks comes first. Data and draws are of one law if forecasts are
    calibrated, so that the p-value is exact, whatever their number. It has no value that grows with T: a scenario
    cannot name it.

    Parameters
    ----------
    gamma : JointDistribution
        Or samples p, y. Each is counted as independent: a log of a game is not.
    seed : int
        Of the draws, at least 0.
    draws : int, default 999
        From 1 to 1,000,000. No p-value is below 1/(draws + 1).

    Source
    ------
    Lee, Huang, Hassani and Dobriban 2023 (T-Cal): minimax optimal, up to a logarithm, for errors of any smoothness.
    Deviations: they also draw the forecasts, and test each of B scales at α/B; by ranks the level is exact.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> p = rng.random(2000)
    >>> wiggle = 0.5 * np.sign(np.sin(20 * np.pi * p)) * np.minimum(p, 1 - p)
    >>> right, wrong = (t_cal(p, rng.random(2000) < p + some, seed=1) for some in (0, wiggle))
    >>> print(right, wrong, sep="\n")
    T-Cal: p = 0.386, of 19 scales and 999 draws
    T-Cal: p = 0.001, of 19 scales and 999 draws
    """
    times, generator = count("draws", draws, most=1_000_000), np.random.default_rng(count("seed", seed, 0))
    n = gamma.weight
    if (
        not (gamma.counts == gamma.counts.round()).all()
        or not (gamma.positives == gamma.positives.round()).all()
    ):
        raise InvalidData(
            "t_cal: weights that are no whole numbers; expected independent samples of weight 1"
        )
    bins, starts = _scales(gamma.predictions, n)
    errors = np.empty((times + 1, len(bins)))
    errors[0] = _errors(gamma, gamma.positives[None, :], starts)[0]
    rows, whole = max(1, _KEPT // gamma.levels), gamma.counts.astype(np.int64)
    for start in range(1, times + 1, rows):
        size = (min(rows, times + 1 - start), gamma.levels)
        ones = generator.binomial(whole, gamma.predictions, size).astype(np.float64)
        errors[start : start + size[0]] = _errors(gamma, ones, starts)
    ranks = np.empty(errors.shape)
    for j, column in enumerate(errors.T):
        ranks[:, j] = times + 1 - np.searchsorted(np.sort(column), column, side="left")
    least, product = ranks.min(axis=1), np.round(np.log(ranks).sum(axis=1), 9)
    as_far = (least < least[0]) | ((least == least[0]) & (product <= product[0]))
    return TCal(float(as_far.mean()), tuple(bins), tuple(map(float, errors[0])), int(n), times)


def _scales(v: Floats, n: float) -> tuple[list[int], list[NDArray[np.int64]]]:
    """Numbers of bins, and the first level of each bin that holds some; each partition once."""
    most = max(int(2.0 * math.log2(n / math.sqrt(math.log(n)))), 1) if n > 2.0 else 1
    bins: list[int] = []
    starts: list[NDArray[np.int64]] = []
    for b in range(1, most + 1):
        m = 2**b  # times m nothing is rounded
        first = np.flatnonzero(np.diff(np.minimum(np.floor(v * m), m - 1), prepend=-1.0))
        if not starts or len(first) > len(starts[-1]):
            bins.append(m)
            starts.append(first)
    return bins, starts


def _errors(gamma: JointDistribution, ones: Floats, starts: list[NDArray[np.int64]]) -> Floats:
    """T_m of each row of outcomes 1 at the levels, at each scale."""
    n, v = gamma.counts, gamma.predictions
    residuals, squares = ones - n * v, ones * (1.0 - v) ** 2 + (n - ones) * v**2
    found = np.empty((len(ones), len(starts)))
    for j, first in enumerate(starts):
        held = np.add.reduceat(n, first)
        pairs = np.add.reduceat(residuals, first, axis=1) ** 2 - np.add.reduceat(squares, first, axis=1)
        found[:, j] = np.where(held > 1.0, pairs / np.maximum(held - 1.0, 1.0), 0.0).sum(axis=1)
    return found / gamma.weight
