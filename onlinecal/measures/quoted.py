"""Errors and scores under the names by which they are quoted: `mce`, `ace`, `rmsce`, `brier_skill`, `auc`."""

import math
from functools import partial

import numpy as np

from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import choice
from onlinecal.measures.base import Change, Ends, Ints, Known, Sampling, each_level, no_share, row, seminorm
from onlinecal.measures.binned import bin_cells, bin_norm, binned_ece, ece, level_errors
from onlinecal.measures.binned_orders import bin_errors, binned_ce, bins_together
from onlinecal.measures.scores import brier, quotient_change, quotient_limits, squared_losses


@of_gamma
def mce(gamma: JointDistribution, *, bins: int | None = None, strategy: str = "width") -> float:
    """Maximum calibration error: the largest |q_i − v_i| over the levels, or over bins.

    It is `ece(order=math.inf)`, or `binned_ce(order=math.inf)`. A level with one sample counts as much as any other.

    Source: Naeini, Cooper & Hauskrecht 2015.

    Parameters
    ----------
    bins : int, optional
        Default: levels.
    strategy : {"width", "quantile"}, default "width"
        Of bins, as in `binned_ece`.

    Examples
    --------
    >>> gamma = JointDistribution.from_counts([0.25, 0.75], [5, 5], [1, 2])
    >>> round(mce(gamma), 6), round(mce(gamma, bins=1), 6)
    (0.35, 0.2)
    """
    choice("mce", "strategy", strategy, ("width", "quantile"))
    if bins is None:
        return ece(gamma, order=math.inf)
    return binned_ce(gamma, order=math.inf, bins=bins, strategy=strategy)


@of_gamma
def ace(gamma: JointDistribution, *, bins: int = 10) -> float:
    """Adaptive calibration error: the mean gap over bins of equal mass, `binned_ece(strategy="quantile")`.

    Source: Nixon et al. 2019, equation (3). Deviations: of a yes/no event, only the probability of the event counts. No
    level is divided, and bins have their own mass, which may differ where levels are large.

    Parameters
    ----------
    bins : int, default 10

    Examples
    --------
    >>> round(ace([0.1, 0.2, 0.6, 0.9], [0, 1, 1, 1], bins=2), 6)
    0.3
    """
    return binned_ece(gamma, bins=bins, strategy="quantile")


@of_gamma
def rmsce(gamma: JointDistribution, *, bins: int = 10, strategy: str = "width") -> float:
    """Root mean square calibration error over bins, `binned_ce(order=2)`.

    Source: Nguyen & O'Connor 2015; Hendrycks, Mazeika & Dietterich 2019, with bins of equal mass.

    Parameters
    ----------
    bins : int, default 10
    strategy : {"width", "quantile"}, default "width"
        As in `binned_ece`.

    Examples
    --------
    >>> round(rmsce(JointDistribution.from_counts([0.25, 0.75], [5, 5], [1, 2])), 6)
    0.25
    """
    return binned_ce(gamma, order=2.0, bins=bins, strategy=strategy)


@of_gamma
def brier_skill(gamma: JointDistribution) -> float:
    """Brier skill score: 1 − Brier score over that of always predicting the base rate, b (1 − b).

    1 is perfect, 0 no better than the base rate of the same samples. Where all outcomes are equal it is 1 if the Brier
    score is 0, and −∞ otherwise.

    Source: Murphy 1973; Wilks 2011, §8.4.2.

    Examples
    --------
    >>> brier_skill(JointDistribution.from_samples([0.5, 0.5, 0.0, 1.0], [0, 1, 0, 1]))
    0.5
    """
    score, base = brier(gamma), gamma.base_rate * (1.0 - gamma.base_rate)
    return 1.0 - score / base if base > 0.0 else -math.inf if score > 0.0 else 1.0


@of_gamma
def auc(gamma: JointDistribution) -> float:
    """Area under the ROC curve: the chance that an event has a higher forecast than a non-event, ties half.

    It tells how forecasts separate outcomes, and nothing of calibration. Where all outcomes are equal it is NaN.

    Source: Mann & Whitney 1947; Hanley & McNeil 1982.

    Examples
    --------
    >>> auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]), auc([0.5, 0.5], [0, 1])
    (0.75, 0.5)
    """
    ones, total = placements(gamma)[0], float(gamma.positives.sum())
    return float(gamma.positives @ ones) / total if 0.0 < total < gamma.weight else math.nan


def placements(gamma: JointDistribution) -> tuple[Floats, Floats]:
    """Of each level the shares of non-events below it and of events above it, ties half."""
    shares = []
    for part in (gamma.counts - gamma.positives, gamma.positives):
        whole = float(part.sum())
        shares.append(
            (np.cumsum(part) - 0.5 * part) / whole if whole > 0.0 else np.full(gamma.levels, math.nan)
        )
    return shares[0], 1.0 - shares[1]


def _mce_errors(change: Change, *, bins: int | None = None, strategy: str = "width") -> Floats:
    if bins is None:
        return level_errors(change, order=math.inf)
    return bin_errors(change, order=math.inf, bins=bins, strategy=strategy)


def _mce_cells(gamma: JointDistribution, *, bins: int | None = None, strategy: str = "width") -> Ints:
    return each_level(gamma) if bins is None else bins_together(gamma, bins=bins, strategy=strategy)


def _skill_limits(known: Known, radii: Floats) -> Ends:
    """1 − the limits of Brier score over b (1 − b)."""
    quotient = Known(known.gamma, known.samples, (1.0 - known.ends[1], 1.0 - known.ends[0]), known.kept)
    low, high = quotient_limits(quotient, radii, _variance)
    return 1.0 - high, 1.0 - low


def _variance(b: float) -> tuple[float, float]:
    """b (1 − b) and its slope."""
    return b * (1.0 - b), 1.0 - 2.0 * b


_INSTEAD = "fewer bins, or smooth_ce"

MEASURES = (
    row(
        mce,
        "MCE | NCH15 | O(k) | no | yes | yes",
        sampling=Sampling(
            _mce_errors,
            "the triangle inequality, over levels or bins",
            cells=_mce_cells,
            share=no_share,
            instead=_INSTEAD,
        ),
    ),
    row(
        ace,
        "ACE | NDZJT19 | O(k) | no | yes | no",
        sampling=seminorm(
            partial(bin_norm, strategy="quantile"),
            cells=partial(bin_cells, strategy="quantile"),
            instead="ace with fewer bins, or smooth_ce",
        ),
    ),
    row(
        rmsce,
        "RMSCE | NO15; HMD19 | O(k) | no | yes | no",
        sampling=Sampling(
            bin_errors,
            "the triangle inequality, over bins",
            cells=bins_together,
            share=no_share,
            instead=_INSTEAD,
        ),
    ),
    row(
        brier_skill,
        "BSS | Mur73; Wil11 | O(k) | no | no | no",
        sampling=Sampling(
            partial(quotient_change, losses=squared_losses, base=_variance, score=brier),
            "the normal law of two means, and all their quotients",
            limits=_skill_limits,
            calibrated=False,
        ),
        least=-math.inf,
    ),
)
