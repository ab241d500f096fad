"""Cutoff and step calibration error, and other tests of the residual by functions of the prediction."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.sums import add
from onlinecal.core.validation import as_float, integer, is_number, vector
from onlinecal.measures.base import Change, Sampling, row, seminorm
from onlinecal.measures.witnesses.weights import Interval, Moment

# Where the series are 1 to the last digit, and summed over few terms elsewhere.
_SMALL = 0.15


def largest_exceeds(x: float) -> float:
    """P(max |B| ≥ x) = 4 Σ_{k ≥ 0} (−1)^k P(Z ≥ (2k + 1) x), by reflection (Feller II, §X.5)."""
    if x <= _SMALL:
        return 1.0
    terms = ((-1.0) ** k * _normal_tail((2 * k + 1) * x) for k in range(math.ceil(20.0 / x)))
    return min(max(4.0 * math.fsum(terms), 0.0), 1.0)


def range_exceeds(x: float) -> float:
    """P(max B − min B ≥ x) = 8 Σ_{k ≥ 1} (−1)^{k−1} k P(Z ≥ k x) (Feller 1951)."""
    if x <= _SMALL:
        return 1.0
    terms = ((-1.0) ** (k - 1) * k * _normal_tail(k * x) for k in range(1, math.ceil(40.0 / x)))
    return min(max(8.0 * math.fsum(terms), 0.0), 1.0)


def _normal_tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))


@kernel
def _extremes(rows):
    """Least and greatest prefix sum of each row, with P_0 = 0, and how many terms each has; sums are compensated."""
    out = np.empty((rows.shape[0], 4))
    for b in range(rows.shape[0]):
        low, high, at_low, at_high = 0.0, 0.0, 0, 0
        total, rest = 0.0, 0.0
        for i in range(rows.shape[1]):
            total, rest = add(total, rest, rows[b, i])
            p = total + rest
            if p < low:
                low, at_low = p, i + 1
            elif p > high:
                high, at_high = p, i + 1
        out[b, 0], out[b, 1], out[b, 2], out[b, 3] = low, high, at_low, at_high
    return out


def extremes(gamma: JointDistribution) -> tuple[float, float, int, int]:
    """Those of the residuals of Γ."""
    low, high, at_low, at_high = _extremes(gamma.residuals[None, :])[0].tolist()
    return low, high, int(at_low), int(at_high)


def cutoff_norm(gamma: JointDistribution, residuals: Floats) -> Floats:
    low, high = _extremes(locked(residuals)).T[:2]
    return np.asarray(high - low)


def step_norm(gamma: JointDistribution, residuals: Floats) -> Floats:
    low, high = _extremes(locked(residuals)).T[:2]
    return np.maximum(-low, high)


def moment_norm(gamma: JointDistribution, residuals: Floats, *, degree: int = 2) -> Floats:
    powers = np.vander(gamma.predictions, int(degree) + 1, increasing=True)
    return np.asarray(np.abs(residuals @ powers).max(axis=1))


Weights = (
    Callable[[Floats], ArrayLike] | ArrayLike | Sequence[Callable[[Floats], ArrayLike] | ArrayLike] | None
)


@of_gamma
def cutoff_ce(gamma: JointDistribution) -> float:
    """Cutoff calibration error: the largest bias over intervals of predictions.

    sup over intervals I of |E[(y − v) 1(v ∈ I)]| = max P − min P with the prefix sums P_j = r_1 + … + r_j,
    P_0 = 0: the Kuiper statistic of the residuals (ECCE-R). step_ce ≤ cutoff_ce ≤ 2 step_ce, and cutoff_ce ≤ ece.

    Source: Rossellini et al. 2025; Arrieta-Ibarra et al. 2022 (ECCE-R).

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.2, 0.4, 0.6], [0.25, 0.25, 0.5], [0.4, 0.4, 0.4])
    >>> round(cutoff_ce(gamma), 12), round(step_ce(gamma), 12)
    (0.1, 0.05)
    """
    low, high, _, _ = extremes(gamma)
    return high - low


def worst_interval(gamma: JointDistribution, *, measure: str = "cutoff_ce") -> Interval:
    """The interval with the bias `cutoff_ce`; for `step_ce` one from 0 on."""
    low, high, at_low, at_high = extremes(gamma)
    if step := measure == "step_ce":
        at_low, at_high = (0, at_high) if high >= -low else (at_low, 0)
    if at_low == at_high:
        return Interval(1.0, 0.0, 1, measure)
    first, end = sorted((at_low, at_high))
    v = gamma.predictions
    return Interval(0.0 if step else float(v[first]), float(v[end - 1]), 1 if end == at_high else -1, measure)


@of_gamma
def step_ce(gamma: JointDistribution) -> float:
    """Step (proper) calibration error: the largest bias below a threshold.

    sup over t of |E[(y − v) 1(v ≤ t)]| = max |P_j|, with P_j as in `cutoff_ce` (ECCE-MAD). By exchange of outcomes it
    becomes the bias above a threshold, which differs unless E[y] = E[v].

    Source: Qiao & Zhao 2025; Arrieta-Ibarra et al. 2022 (ECCE-MAD).

    Examples
    --------
    >>> step_ce(JointDistribution.from_samples([0.5, 0.5, 1.0], [1, 1, 0])) == 1 / 3
    True
    """
    low, high, _, _ = extremes(gamma)
    return max(high, -low)  # in this order 0.0 and not −0.0


@of_gamma
def weighted_ce(gamma: JointDistribution, *, omega: Weights = None) -> float:
    """Weighted calibration error: max |Σ r_i ω(v_i)| over the given weight functions ω.

    The supremum over a class of ω is smooth calibration (Lipschitz), cutoff calibration (intervals) or ECE (all |ω| ≤
    1). It is at most max|ω| × ece, in O(k) for each ω.

    Source: Gopalan, Kim, Singhal & Zhao 2022, weighted calibration; Błasiok et al. 2023, Definition 7.1; Gopalan & Hu
    2025, Definition 3.1.

    Parameters
    ----------
    omega : callable, (k,) array_like, list of them, or None
        ω as a function of an array of predictions, or its values at the ascending level sets. Several ω may be
        given. None is ω = 1: calibration in the large, |E[y] − E[v]|.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.25, 0.75], [0.5, 0.5], [0.5, 0.5])
    >>> weighted_ce(gamma), weighted_ce(gamma, omega=lambda v: 1 - v), weighted_ce(gamma, omega=[1, -1])
    (0.0, 0.0625, 0.25)
    """
    if omega is None:
        return abs(float(gamma.residuals.sum()))
    return max(abs(float((gamma.residuals * one).sum())) for one in _family(omega, gamma))


@of_gamma
def low_degree_ce(gamma: JointDistribution, *, degree: int = 2) -> float:
    """Low-degree calibration error: the largest moment of the residual, max |Σ r_i v_i^j| over 0 ≤ j ≤ d (0⁰ = 1).

    Source: Gopalan, Kim, Singhal & Zhao 2022, low-degree multicalibration.

    Parameters
    ----------
    degree : int, default 2
        d, from 0 to 1000. 0 is calibration in the large.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.25, 0.75], [0.5, 0.5], [0.5, 0.5])
    >>> low_degree_ce(gamma, degree=0), low_degree_ce(gamma, degree=1)
    (0.0, 0.0625)
    """
    return _moments(gamma, degree)[0]


def largest_moment(gamma: JointDistribution, *, degree: int = 2) -> Moment:
    return Moment(_moments(gamma, degree)[1], int(degree))


def _moments(gamma: JointDistribution, degree: Any) -> tuple[float, int]:
    d = integer("low_degree_ce", "degree", degree, 0, 1000)
    terms = gamma.residuals
    best, order = abs(float(terms.sum())), 0
    for j in range(1, d + 1):
        terms = terms * gamma.predictions
        moment = abs(float(terms.sum()))
        if moment > best:
            best, order = moment, j
    return best, order


def _family(omega: Any, gamma: JointDistribution) -> list[Floats]:
    """The values of each ω at the levels."""
    if isinstance(omega, Sequence | np.ndarray) and any(
        callable(w) or (hasattr(w, "__len__") and not isinstance(w, str)) for w in omega
    ):
        return [_weights(each, gamma, f"omega[{j}]") for j, each in enumerate(omega)]
    return [_weights(omega, gamma)]


def _weights(weights: Any, gamma: JointDistribution, name: str = "omega") -> Floats:
    what = f"{name}(v)" if callable(weights) else name
    values = weights(gamma.predictions) if callable(weights) else weights
    if callable(weights) and is_number(values):
        values = np.full(gamma.levels, as_float(values))
    omega = vector(f"weighted_ce: {what}", values, InvalidParameter)
    if omega.shape != (gamma.levels,):
        raise InvalidParameter(f"weighted_ce: {what} has shape {omega.shape}; expected one number per level")
    if not np.isfinite(omega).all():
        i = int(np.argmin(np.isfinite(omega)))
        raise InvalidParameter(f"weighted_ce: {what}[{i}] = {float(omega[i])!r}; expected a finite number")
    return omega


def weighted_norm(gamma: JointDistribution, residuals: Floats, *, omega: Weights = None) -> Floats:
    family = [np.ones(gamma.levels)] if omega is None else _family(omega, gamma)
    return np.asarray(np.abs(residuals @ np.stack(family, axis=1)).max(axis=1))


def _weighted(change: Change, *, omega: Weights = None) -> Floats:
    if omega is None or callable(omega) or change.gamma is change.origin:
        return weighted_norm(change.gamma, change.residuals, omega=omega)[:, None]
    # Weights of levels that have been rounded together are averaged.
    family, mass = np.stack(_family(omega, change.origin)), change.origin.mass
    means = [np.bincount(change.place, one * mass) / np.bincount(change.place, mass) for one in family]
    return np.asarray(np.abs(change.residuals @ np.stack(means, axis=1)).max(axis=1)[:, None])


_PREFIX = math.sqrt(0.5 * math.pi)


MEASURES = (
    row(
        cutoff_ce,
        "cutCE, ECCE-R | RSBRW25; AGTTX22 | O(k) | no | yes | yes",
        tail=range_exceeds,
        # At a kink t a monotone swap changes the action on an interval I that ends at t. It gains ± Σ_I w (q − t),
        # at most |Σ_I r|, since v is on that side of t where it helps. The kinks of a task weigh at most 2. (A swap
        # that takes an action that is never best is below a mean of such ones.)
        decisions="regret of every task against monotone swaps ≤ 2 cutCE",
        witness=worst_interval,
        # (1 − v) 1_I and v 1_I have one top, of at most 1, so that each is a mixture of intervals. By DKW, E of the
        # largest error over prefixes of either outcome is at most √(π/2n). An interval is between two prefixes.
        sampling=seminorm(cutoff_norm, means=lambda samples: np.array([4.0 * _PREFIX])),
    ),
    row(
        step_ce,
        "stepCE, ECCE-MAD | QZ25; AGTTX22 | O(k) | no | yes | yes",
        tail=largest_exceeds,
        # cutCE ≤ 2 stepCE.
        decisions="regret of every task against monotone swaps ≤ 4 stepCE",
        witness=partial(worst_interval, measure="step_ce"),
        # As for cutoffs; (1 − v) 1(v ≤ t) falls, so that it is a mixture of prefixes.
        sampling=seminorm(step_norm, means=lambda samples: np.array([3.0 * _PREFIX])),
    ),
    row(
        weighted_ce,
        "wCE_ω | GKSZ22 | O(k) | as ω | yes | no",
        largest=math.inf,
        sampling=Sampling(
            _weighted,
            "the triangle inequality: |μ(Γ̂) − μ(Γ)| ≤ μ(Γ̂ − Γ)",
            norm=weighted_norm,
            means=lambda samples, omega=None: np.array([1.0]) if omega is None else None,
        ),
    ),
    row(
        low_degree_ce,
        "CE_d | GKSZ22 | O(k d) | yes | yes | no",
        sampling=seminorm(moment_norm, means=lambda samples, degree=2: np.array([math.sqrt(degree + 1.0)])),
        witness=largest_moment,
    ),
)
