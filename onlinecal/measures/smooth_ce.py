"""Smooth calibration error: exact, in O(k log k), with the Lipschitz weights that attain it."""

from __future__ import annotations

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.measures.base import Measure, Modulus
from onlinecal.measures.sampling import seminorm
from onlinecal.measures.smooth_ce_dual import (
    chain_dual,
    chain_duals,
    dual_path,
    isotonic_dual,
    isotonic_duals,
    lipschitz_weights,
)
from onlinecal.measures.witnesses.weights import CancelledResiduals, LipschitzWeights, Metric, distances


@of_gamma
def smooth_ce(gamma: JointDistribution, *, metric: Metric = "identity") -> float:
    """Smooth calibration error smCE(Γ): the largest correlation of the residual with a Lipschitz weight.

    smCE(Γ) = max Σ_i r_i ω_i over |ω_i| ≤ 1, |ω_{i+1} − ω_i| ≤ h(v_{i+1}) − h(v_i), with h(v) = v. For another
    increasing h it is the weak calibration error under the metric |h(u) − h(v)|.
    By duality it is min Σ_i |g_i − g_{i−1}| + Σ_i d_i |P_i − g_i| over g with g_0 = 0, g_k = P_k, where
    P_i = r_1 + … + r_i and d_i is the distance from level i to i + 1. For h(v) = v the distances add to at
    most 1, and then a monotone g is optimal: |P_k| plus the error of an isotonic L1 regression of the P_i.

    Parameters
    ----------
    metric : {"identity", "logit"} or callable, default "identity"
        h, an increasing function of an array of predictions. With "logit" the levels 0 and 1 are infinitely far from
        all others, so their weights are free in [−1, 1].

    Returns
    -------
    float
        In [0, 1]; exact up to rounding. O(k log k) time at worst, O(k) memory.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 7.2 and Theorem 7.14 (there a linear program);
    Błasiok, Nakkiran (2024), Definition 14, for the metric.

    Examples
    --------
    >>> round(smooth_ce(JointDistribution.from_samples([0.4, 0.6], [1, 0])), 12)
    0.06
    """
    if metric == "identity":
        return float(isotonic_dual(gamma.predictions, gamma.residuals))
    return float(chain_dual(distances(gamma, metric), gamma.residuals)[0])


@of_gamma
def smooth_ce_witness(gamma: JointDistribution, *, metric: Metric = "identity") -> LipschitzWeights:
    """The Lipschitz weights that attain `smooth_ce`, by complementary slackness of its dual.

    ω_i = ±1 where g jumps up or down at i, and ω_i − ω_{i+1} = ±d_i where P_i is above or below g_i.
    """
    return _weights(gamma, distances(gamma, metric), metric, 1)


@of_gamma
def smooth_ce_dual(gamma: JointDistribution, *, metric: Metric = "identity") -> CancelledResiduals:
    """The residuals left after others have been carried to where they cancel: the optimal g of the dual."""
    return _cancelled(gamma, distances(gamma, metric), metric, 1)


@of_gamma
def earthmover_distance(gamma: JointDistribution) -> float:
    """Earth mover's distance between Γ and the same predictions with right outcomes, (v, ỹ) with ỹ ~ Ber(v).

    With the metric |u − v| + |y − z| of points (u, y), (v, z) it is, by Kantorovich and Rubinstein, the largest
    Σ_i r_i ω_i over |ω_i| ≤ 1 that are 2-Lipschitz in v: such are the differences f(v, 1) − f(v, 0) of 1-Lipschitz f.

    Returns
    -------
    float
        In [0, 1]; smooth_ce ≤ it ≤ 2 smooth_ce, and it is at most `ece`, which is the same with the distance 1 between
        any two points. Exact up to rounding, O(k log k).

    Source
    ------
    Gopalan & Hu 2025, §3.2 and Lemma 3.4, whose proof of the duality is taken to both sides.

    Examples
    --------
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> round(earthmover_distance(gamma), 12), round(smooth_ce(gamma), 12)
    (0.12, 0.06)
    """
    return float(chain_dual(_twice(gamma), gamma.residuals)[0])


def _twice(gamma: JointDistribution) -> Floats:
    return 2.0 * distances(gamma, "identity")


def _weights(gamma: JointDistribution, apart: Floats, metric: Metric, slope: int) -> LipschitzWeights:
    _, low, high = chain_dual(apart, gamma.residuals)
    weights = lipschitz_weights(apart, gamma.residuals, low, high)
    return LipschitzWeights(gamma.predictions, weights, metric, slope)


def _cancelled(gamma: JointDistribution, apart: Floats, metric: Metric, slope: int) -> CancelledResiduals:
    _, low, high = chain_dual(apart, gamma.residuals)
    return CancelledResiduals(dual_path(gamma.residuals, low, high)[:-1], metric, slope)


def earthmover_norm(gamma: JointDistribution, residuals: Floats) -> Floats:
    """`earthmover_distance` as a seminorm."""
    return np.asarray(chain_duals(_twice(gamma), residuals))


def smooth_norm(gamma: JointDistribution, residuals: Floats, *, metric: Metric = "identity") -> Floats:
    """`smooth_ce` as a seminorm: the supremum over Lipschitz weights."""
    if metric == "identity":
        return np.asarray(isotonic_duals(gamma.predictions, residuals))
    return np.asarray(chain_duals(distances(gamma, metric), residuals))


def _means(samples: float, *, metric: Metric = "identity") -> Floats | None:
    # ∫ω dρ = ω(1) ρ[0, 1] − ∫ ω'(x) ρ[0, x] dx, and √n E|ρ̂ − ρ|[0, x] ≤ 1.
    return np.array([2.0]) if metric == "identity" else None


def _modulus(moved: float, *, metric: Metric = "identity") -> float:
    if metric != "identity":  # no average of |v − v'| bounds the distance in log odds
        raise InvalidParameter(f"smooth_ce: moved predictions with metric = {metric!r}; expected 'identity'")
    return 2.0 * moved


MEASURES = (
    Measure(
        function=smooth_ce,
        symbol="smCE",
        source="BGHN23 Def. 7.2; BN24 Def. 14",
        complexity="O(k log k)",
        continuous="yes",
        complete="yes (c = 1)",
        sound="yes (s = 2)",
        # E[(v − y)² − (v + δ − y)²] = 2 E[δ (y − v)] − E[δ²]. A monotone 1-Lipschitz κ has such a δ = κ(v) − v; one of
        # slopes down to −1 has half of one, and the bound doubles.
        decisions="gain in squared loss from v + δ(v), δ 1-Lipschitz, ≤ 2 smCE",
        witness=smooth_ce_witness,
        counterpart=smooth_ce_dual,
        sampling=seminorm(
            smooth_norm,
            means=_means,
            source="BGHN23 Theorem 9.5, Corollary 9.9: the triangle inequality, over Lipschitz weights",
        ),
        modulus=Modulus(
            "2δ", "BGHN23 Lemma 7.4: (y − v) ω(v) is 2-Lipschitz in v for |ω| ≤ 1, ω 1-Lipschitz", _modulus
        ),
    ),
    Measure(
        function=earthmover_distance,
        symbol="EMD",
        source="GH25 Lemma 3.4",
        complexity="O(k log k)",
        continuous="yes",
        complete="yes (c = 1)",
        sound="yes (s = 2)",
        witness=lambda gamma: _weights(gamma, _twice(gamma), "identity", 2),
        counterpart=lambda gamma: _cancelled(gamma, _twice(gamma), "identity", 2),
        # As for smCE, with |ω'| ≤ 2.
        sampling=seminorm(
            earthmover_norm,
            means=lambda samples: np.array([3.0]),
            source="GH25 Lemma 3.4: the triangle inequality, over 2-Lipschitz weights",
        ),
        modulus=Modulus(
            "3δ", "(y − v) ω(v) is 3-Lipschitz in v for |ω| ≤ 1, ω 2-Lipschitz", lambda moved: 3.0 * moved
        ),
    ),
)
