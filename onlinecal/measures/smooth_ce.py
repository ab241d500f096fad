"""Smooth calibration error: exact, in O(k log k), with the Lipschitz weights that attain it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution, of_gamma
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

Floats = NDArray[np.float64]


@of_gamma
def smooth_ce(gamma: JointDistribution, *, metric: Metric = "identity") -> float:
    """Smooth calibration error smCE(Γ): the largest correlation of the residual with a Lipschitz weight.

    smCE(Γ) = max Σ_i r_i ω_i over |ω_i| ≤ 1, |ω_{i+1} − ω_i| ≤ h(v_{i+1}) − h(v_i), h(v) = v or logit v.
    By duality it is min Σ_i |g_i − g_{i−1}| + Σ_i d_i |P_i − g_i| over g with g_0 = 0, g_k = P_k, where
    P_i = r_1 + … + r_i and d_i is the distance from level i to i + 1. For h(v) = v the distances add to at
    most 1, and then a monotone g is optimal: |P_k| plus the error of an isotonic L1 regression of the P_i.

    Parameters
    ----------
    gamma : JointDistribution
        Γ with k levels.
    metric : {"identity", "logit"}, default "identity"
        d(u, v) = |h(u) − h(v)|. With "logit" the levels 0 and 1 are infinitely far from all others, so
        their weights are free in [−1, 1].

    Returns
    -------
    float
        In [0, 1]; exact up to rounding. O(k log k) time at worst, O(k) memory.

    Raises
    ------
    InvalidParameter
        On another metric.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 7.2 and Theorem 7.14 (there a linear program);
    Błasiok, Nakkiran (2024), Definition 14, for the metric.

    Deviations
    ----------
    None in the value. The algorithm is not the papers' linear program but the dual above.

    Examples
    --------
    >>> from onlinecal.core.joint import JointDistribution
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> round(smooth_ce(gamma), 12)
    0.06
    """
    if metric == "identity":
        return float(isotonic_dual(gamma.predictions, gamma.residuals))
    return float(chain_dual(_distances(gamma, metric), gamma.residuals)[0])


@of_gamma
def smooth_ce_witness(gamma: JointDistribution, *, metric: Metric = "identity") -> LipschitzWeights:
    """The Lipschitz weights that attain `smooth_ce`, found by walking back through the dual.

    Parameters
    ----------
    gamma : JointDistribution
        Γ with k levels.
    metric : {"identity", "logit"}, default "identity"
        As in `smooth_ce`.

    Returns
    -------
    LipschitzWeights
        Its `value(gamma)` is the smooth calibration error; O(k log k).

    Raises
    ------
    InvalidParameter
        On another metric.

    Source
    ------
    Complementary slackness of the dual in `smooth_ce`: ω_i = ±1 where g jumps up or down at i, and
    ω_i − ω_{i+1} = ±d_i where P_i is above or below g_i.

    Deviations
    ----------
    None.

    Examples
    --------
    >>> from onlinecal.core.joint import JointDistribution
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> witness = smooth_ce_witness(gamma)
    >>> print(witness)
    weights on 2 levels, 1-Lipschitz in the identity metric, from +0.8 at v = 0.6 to +1 at v = 0.4
    >>> round(witness.value(gamma), 12)
    0.06
    """
    distances = _distances(gamma, metric)
    _, low, high = chain_dual(distances, gamma.residuals)
    weights = lipschitz_weights(distances, gamma.residuals, low, high)
    return LipschitzWeights(gamma.predictions, weights, metric)


@of_gamma
def smooth_ce_dual(gamma: JointDistribution, *, metric: Metric = "identity") -> CancelledResiduals:
    """The residuals that are left when others have been carried to where they cancel: the optimal g of the dual.

    Parameters
    ----------
    gamma, metric
        As in `smooth_ce`.

    Returns
    -------
    CancelledResiduals
        Its `value(gamma)` is the smooth calibration error; O(k log k).

    Raises
    ------
    InvalidParameter
        On another metric.

    Source
    ------
    The dual in `smooth_ce`.

    Deviations
    ----------
    None.

    Examples
    --------
    >>> from onlinecal.core.joint import JointDistribution
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> round(smooth_ce_dual(gamma).value(gamma), 12)
    0.06
    """
    _, low, high = chain_dual(_distances(gamma, metric), gamma.residuals)
    return CancelledResiduals(dual_path(gamma.residuals, low, high)[:-1], metric)


def _distances(gamma: JointDistribution, metric: str) -> Floats:
    """d(v_i, v_{i+1}); infinite ones are cut to 2, which leaves the weights as free."""
    if metric not in ("identity", "logit"):
        raise InvalidParameter(f"metric = {metric!r}; expected 'identity' or 'logit'")
    return distances(gamma, metric)


def smooth_norm(gamma: JointDistribution, residuals: Floats, *, metric: Metric = "identity") -> Floats:
    """`smooth_ce` as a seminorm: the supremum over Lipschitz weights."""
    if metric == "identity":
        return np.asarray(isotonic_duals(gamma.predictions, residuals))
    return np.asarray(chain_duals(_distances(gamma, metric), residuals))


def _means(samples: float, *, metric: Metric = "identity") -> Floats | None:
    # ∫ω dρ = ω(1) ρ[0, 1] − ∫ ω'(x) ρ[0, x] dx, and √n E|ρ̂ − ρ|[0, x] ≤ 1.
    return np.array([2.0]) if metric == "identity" else None


def _modulus(moved: float, *, metric: Metric = "identity") -> float:
    if metric != "identity":
        # No average of |v − v'| bounds the distance in log odds.
        raise InvalidParameter(
            f"smooth_ce: moved predictions with metric = {metric!r}; expected 'identity', for "
            "nothing is proved about moving them in another metric"
        )
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
)
