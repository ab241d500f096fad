"""Calibration errors of random subsets of the rounds: smooth and step calibration, subsampled.

A forecaster that knows the probabilities can cancel the bias of chance by false forecasts. In a random half of the
rounds it does not cancel, so that little is gained: these measures are truthful up to a constant (Haghtalab et al.
2024). They are functions of Γ and of the number of rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import count, number
from onlinecal.measures.base import Bracket, Measure, Modulus
from onlinecal.measures.residual_norms import step_norm
from onlinecal.measures.sampling import seminorm
from onlinecal.measures.smooth_ce import smooth_norm
from onlinecal.measures.subsampled_laws import BLOCK, MOST, combinable, enumerated, largest_prefix

Bools = NDArray[np.bool_]
Norm = Callable[[JointDistribution, Floats], Floats]


@dataclass(frozen=True)
class Estimate:
    """An estimate from random draws, and how far it may be off.

    Attributes
    ----------
    value : float
        The mean of the draws.
    lower, upper : float
        They hold the estimated value with a probability of at least `confidence` over the draws, and always `value`.
    confidence : float
        1 − δ.
    draws, seed : int
    """

    value: float
    lower: float
    upper: float
    confidence: float
    draws: int
    seed: int


@of_gamma
def subsampled_smooth_ce(gamma: JointDistribution, *, subsets: int = 4096) -> Bracket:
    """Subsampled smooth calibration error SSCE: the mean of the smooth calibration error over subsets of the rounds.

    T · SSCE = E_S [ sup over ω of Σ_{t ∈ S} (y_t − p_t) ω(p_t) ], ω 1-Lipschitz with values in [−1, 1], where each of
    the T rounds belongs to S with probability 1/2, independently. At most `subsets` classes of subsets with different
    residuals are enumerated; then the bracket has no width. Beyond, with e_t = y_t − p_t: at least ½ smCE and ‖e‖/√8
    over T, at most ½ smCE + R/2 with R no less than the mean supremum over random signs of the e_t, and at most ½ E|y −
    p|.

    Parameters
    ----------
    gamma : JointDistribution
        Γ of T rounds. A whole weight counts as so many rounds of weight 1; where weights are not whole, the bracket
        holds for all rounds that there can have been.
    subsets : int, default 4096, from 1 to 10^7
        The most classes that are enumerated, each in O(k log k).

    Returns
    -------
    Bracket
        Within [0, 1/2]; exact up to rounding where its ends are equal. For calibrated forecasts it falls with T: at
        most R/2, of the order of 1/√T.

    Source
    ------
    Haghtalab, Qiao, Yang & Zhao 2024 (NeurIPS; arXiv 2407.13979), the definition of SSCE, from its statement in
    abstracts and in later papers. The bounds: Jensen's inequality for the mean residuals, half of those of all rounds;
    Khinchine's inequality E|Σ ε_t e_t| ≥ ‖e‖/√2; and ω(p) = ω(c) + ∫_c^p ω' with c = ½.

    Deviations
    ----------
    Divided by T, as all measures here.

    Examples
    --------
    >>> subsampled_smooth_ce(JointDistribution.from_samples([0.5, 0.5], [0, 1]))  # of no, one, one, both that cancel
    Bracket(lower=0.125, upper=0.125)
    """
    most = count("subsets", subsets, most=MOST)
    if (laws := combinable(gamma, most)) is not None:
        blocks = enumerated(laws)
        return _exact(gamma, math.fsum(float(chance @ smooth_norm(gamma, rows)) for rows, chance in blocks))
    return _bounds(gamma, smooth_norm, _random_signs(gamma))


@of_gamma
def subsampled_step_ce(gamma: JointDistribution, *, subsets: int = 4096) -> Bracket:
    """Subsampled step calibration error StepCE_sub: the mean of the step calibration error over subsets of the rounds.

    T · StepCE_sub = E_S [ max over t of |Σ_{s ∈ S, p_s ≤ t} (y_s − p_s)| ], where each of the T rounds belongs to S
    with probability 1/2, independently. The bracket has no width where at most `subsets` pairs of a prefix sum and its
    largest size so far come up at any level, as on a grid. Beyond, with e_t = y_t − p_t: at least ½ stepCE and ‖e‖/√8
    over T, at most ½ stepCE + ‖e‖/(√2 T), and at most ½ E|y − p|.

    Parameters
    ----------
    gamma : JointDistribution
        As in `subsampled_smooth_ce`.
    subsets : int, default 4096, from 1 to 10^7
        The most pairs that are kept.

    Returns
    -------
    Bracket
        Within [0, 1/2]; exact up to rounding where its ends are equal.

    Source
    ------
    Qiao & Zhao 2025 (COLT; arXiv 2503.02384), subsampled step calibration, from its abstract and its step calibration
    error. The bounds: Jensen's and Khinchine's inequalities; above that of Lévy, P(max |M_j| > x) ≤ 2 P(|M_T| > x), so
    that E max M_j² ≤ 2 ‖e‖² for sums M_j of terms ε_t e_t with random signs.

    Deviations
    ----------
    Divided by T, as all measures here.

    Examples
    --------
    >>> subsampled_step_ce(JointDistribution.from_samples([0.25, 0.75], [1, 0]))
    Bracket(lower=0.28125, upper=0.28125)
    """
    most = count("subsets", subsets, most=MOST)
    if (value := largest_prefix(gamma, most)) is not None:
        return _exact(gamma, value)
    return _bounds(gamma, step_norm, math.sqrt(2.0 * float(_squares(gamma).sum())))


@of_gamma
def subsampled_smooth_ce_sampled(
    gamma: JointDistribution, *, seed: int, draws: int = 1000, confidence: float = 1 - 1e-6
) -> Estimate:
    """`subsampled_smooth_ce` estimated by the mean over subsets that are drawn.

    Parameters
    ----------
    gamma : JointDistribution
        Γ of rounds of weight 1, or of whole weights.
    seed : int, ≥ 0
        The same seed gives the same estimate.
    draws : int, default 1000, from 1 to 10^7
        Number of subsets R, O(k log k) each.
    confidence : float, default 1 − 10^−6, in (0, 1)
        1 − δ.

    Returns
    -------
    Estimate
        The interval is the mean ± √(Σ (y_t − p_t)² ln(2/δ) / (2R)) / T, cut at 0: without a round t the supremum
        changes by at most |y_t − p_t|, and McDiarmid's inequality holds for every T and R.

    Source
    ------
    As `subsampled_smooth_ce`; McDiarmid 1989.

    Examples
    --------
    >>> found = subsampled_smooth_ce_sampled(JointDistribution.from_samples([0.5, 0.5], [0, 1]), seed=1)
    >>> found.lower <= 0.125 <= found.upper, found.draws
    (True, 1000)
    """
    return _sampled(gamma, smooth_norm, seed, draws, confidence)


@of_gamma
def subsampled_step_ce_sampled(
    gamma: JointDistribution, *, seed: int, draws: int = 1000, confidence: float = 1 - 1e-6
) -> Estimate:
    """`subsampled_step_ce` estimated by the mean over subsets that are drawn.

    Parameters
    ----------
    gamma, seed, draws, confidence
        As in `subsampled_smooth_ce_sampled`; O(k) for each subset.

    Returns
    -------
    Estimate
        As from `subsampled_smooth_ce_sampled`.

    Source
    ------
    As `subsampled_step_ce`; McDiarmid 1989.

    Examples
    --------
    >>> found = subsampled_step_ce_sampled(JointDistribution.from_samples([0.25, 0.75], [1, 0]), seed=1)
    >>> found.lower <= 0.28125 <= found.upper
    True
    """
    return _sampled(gamma, step_norm, seed, draws, confidence)


def _exact(gamma: JointDistribution, total: float) -> Bracket:
    value = min(total / gamma.weight, 0.5)
    return Bracket(value, value)


def _whole(gamma: JointDistribution) -> Bools:
    """Of which levels the rounds are known: those with whole weights of both outcomes."""
    return np.asarray((gamma.positives % 1.0 == 0.0) & (gamma.counts % 1.0 == 0.0))


def _squares(gamma: JointDistribution) -> Floats:
    """Σ (e_t/T)² of each level; where rounds are not known no less than of any: of one round for each outcome."""
    v, ones, zeros = gamma.predictions, gamma.mass * gamma.means, gamma.mass * (1.0 - gamma.means)
    known, T = _whole(gamma), gamma.weight
    return np.asarray(
        np.where(known, ones / T, ones**2) * (1.0 - v) ** 2 + np.where(known, zeros / T, zeros**2) * v**2
    )


def _random_signs(gamma: JointDistribution) -> float:
    """No less than E sup over ω of Σ ε_t e_t ω(p_t), over T: |Σ ε_t e_t| and the integrals of what lies beyond x."""
    square, v = _squares(gamma), gamma.predictions
    below = np.sqrt(np.append(0.0, np.cumsum(square)))  # between level i − 1 and level i
    above = np.sqrt(np.append(np.cumsum(square[::-1])[::-1], 0.0))
    edges = np.concatenate(([0.0], v, [1.0]))
    left = np.diff(np.minimum(edges, 0.5))
    right = np.diff(np.maximum(edges, 0.5))
    return float(below[-1] + below @ left + above @ right)


def _bounds(gamma: JointDistribution, norm: Norm, signs: float) -> Bracket:
    """Bounds from the mean residuals and from random signs."""
    half = 0.5 * float(norm(gamma, gamma.residuals[None, :])[0])
    mass, q, v = gamma.mass, gamma.means, gamma.predictions
    upper = min(half + 0.5 * signs, 0.5 * float(mass @ (q * (1.0 - v) + (1.0 - q) * v)))
    size = math.sqrt(float(_squares(gamma).sum()) / 8.0) if _whole(gamma).all() else 0.0
    return Bracket(min(max(half, size), upper), upper)  # they may be equal, but for rounding


def _sampled(gamma: JointDistribution, norm: Norm, seed: int, draws: int, confidence: float) -> Estimate:
    generator = np.random.default_rng(count("seed", seed, least=0))
    draws = count("draws", draws, most=MOST)
    delta = 1.0 - number("subsampled", "confidence", confidence, 0.0, 1.0 - 1e-15)
    v, ones, zeros = gamma.predictions, gamma.positives, gamma.counts - gamma.positives
    if not (known := _whole(gamma) & (gamma.counts < 2.0**62)).all():
        i = int(np.argmin(known))
        raise InvalidData(
            f"subsampled: {float(zeros[i])!r} and {float(ones[i])!r} rounds of outcome 0 and 1 at prediction "
            f"{float(v[i])!r}; expected whole numbers of rounds below 2^62"
        )
    s, z = ones.astype(np.int64), zeros.astype(np.int64)
    block = max(BLOCK * 64 // gamma.levels, 1)
    total = 0.0
    for start in range(0, draws, block):
        size = (min(block, draws - start), gamma.levels)
        rows = generator.binomial(s, 0.5, size) * (1.0 - v) - generator.binomial(z, 0.5, size) * v
        total += float(norm(gamma, rows).sum())
    value = total / draws / gamma.weight
    radius = math.sqrt(float(_squares(gamma).sum()) * math.log(2.0 / delta) / (2.0 * draws))
    return Estimate(value, max(value - radius, 0.0), value + radius, 1.0 - delta, draws, int(seed))


def _of_rounds(**options: int) -> str:
    return "the value depends on the number of rounds, which what they are drawn from has not"


MEASURES = (
    Measure(
        function=subsampled_smooth_ce,
        symbol="SSCE",
        source="HQYZ24",
        complexity="O(N k log k), N ≤ 4096 classes of subsets; beyond, O(k log k)",
        bracket=True,
        largest=0.5,
        continuous="yes",
        complete="no, but O(1/√T)",
        sound="yes (s = 2)",
        modulus=Modulus(
            "δ",
            "smCE of each subset moves by twice what its rounds move, half of all",
            lambda moved, **_: moved,
        ),
        sampling=seminorm(smooth_norm, refuses=_of_rounds),
        of_rounds=True,
    ),
    Measure(
        function=subsampled_step_ce,
        symbol="StepCE_sub",
        source="QZ25",
        complexity="O(N k), N ≤ 4096 states; beyond, O(k)",
        bracket=True,
        largest=0.5,
        continuous="no",
        complete="no, but O(1/√T)",
        sound="yes",
        decisions="regret of every task against monotone swaps ≤ 8 StepCE_sub",
        sampling=seminorm(step_norm, refuses=_of_rounds),
        of_rounds=True,
    ),
)
