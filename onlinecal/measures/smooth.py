"""Smooth calibration error: exact, in O(k log k), with the Lipschitz weights that attain it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal.errors import InvalidData, InvalidParameter
from onlinecal.joint import JointDistribution, of_gamma
from onlinecal.measures.base import Measure
from onlinecal.measures.smooth_dual import chain_dual, isotonic_dual, lipschitz_weights

Floats = NDArray[np.float64]
Metric = Literal["identity", "logit"]

# Weights stay in [−1, 1], so levels that are 2 or more apart do not constrain each other.
_FAR = 2.0


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
    >>> from onlinecal.joint import JointDistribution
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> round(smooth_ce(gamma), 12)
    0.06
    """
    if metric == "identity":
        return float(isotonic_dual(gamma.predictions, gamma.residuals))
    return float(chain_dual(_distances(gamma, metric), gamma.residuals)[0])


@dataclass(frozen=True, eq=False)
class LipschitzWeights:
    """Weights ω_i that attain a smooth calibration error.

    Attributes
    ----------
    predictions, weights : (k,) floats
        v_i and ω_i.
    metric : {"identity", "logit"}
        The metric in which ω is 1-Lipschitz.
    """

    predictions: Floats
    weights: Floats
    metric: Metric = "identity"

    def value(self, gamma: JointDistribution) -> float:
        """Σ r_i ω_i, after checking |ω_i| ≤ 1 and |ω_{i+1} − ω_i| ≤ d(v_i, v_{i+1}) (up to 1e-12).

        Raises
        ------
        InvalidData
            If Γ has other levels, or the weights break a constraint.
        """
        if not np.array_equal(self.predictions, gamma.predictions):
            raise InvalidData(
                f"expected the levels of {gamma!r}; the weights have {len(self.predictions)} others"
            )
        largest = float(np.abs(self.weights).max())
        if not largest <= 1.0 + 1e-12:
            raise InvalidData(f"the largest |weight| is {largest!r}; expected at most 1")
        excess = np.abs(np.diff(self.weights)) - _distances(gamma, self.metric)
        if len(excess) and not excess.max() <= 1e-12:
            i = int(np.argmax(excess))
            raise InvalidData(
                f"weights[{i}] and weights[{i + 1}] differ by {float(excess[i])!r} more than v does;"
                " expected 1-Lipschitz weights"
            )
        return float(self.weights @ gamma.residuals)

    def __str__(self) -> str:
        low, high = int(np.argmin(self.weights)), int(np.argmax(self.weights))
        return (
            f"weights on {len(self.weights)} levels, 1-Lipschitz in the {self.metric} metric, from "
            f"{self.weights[low]:+.4g} at v = {self.predictions[low]:.4g} to {self.weights[high]:+.4g} "
            f"at v = {self.predictions[high]:.4g}"
        )


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
    >>> from onlinecal.joint import JointDistribution
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


def _distances(gamma: JointDistribution, metric: str) -> Floats:
    """d(v_i, v_{i+1}); infinite ones are cut to 2, which leaves the weights as free."""
    v = gamma.predictions
    if metric == "identity":
        return np.diff(v)
    if metric != "logit":
        raise InvalidParameter(f"metric = {metric!r}; expected 'identity' or 'logit'")
    # log1p of (odds ratio − 1) keeps digits that logit v_{i+1} − logit v_i cancels between neighbours.
    # A level below 1e-300 may overflow the quotient: then the distance is far above 2 all the same.
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(np.log1p(np.diff(v) / (v[:-1] * (1.0 - v[1:]))), _FAR)


def _modulus(moved: float, *, metric: Metric = "identity") -> float:
    """By how much the value changes at most when predictions move by `moved` on average.

    (y − v) ω(v) is 2-Lipschitz in v for |ω| ≤ 1 and ω 1-Lipschitz. In log odds no average of |v − v'| bounds it.
    """
    if metric != "identity":
        raise InvalidParameter(
            f"smooth_ce: max_levels with metric = {metric!r}; expected 'identity', for "
            "nothing is proved about rounding in another metric"
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
        modulus=_modulus,
    ),
)
