"""The averaged two-bin calibration error: in expectation, the truth makes it least."""

from __future__ import annotations

import numpy as np

from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.measures.base import Measure, Modulus, Sampling
from onlinecal.measures.sampling import Change, Ends, Known


@of_gamma
def atb(gamma: JointDistribution) -> float:
    """Averaged two-bin calibration error: the squared errors of two bins, averaged over the edge between them.

    ATB(Γ) = ∫_0^1 [ (Σ_{v_i < t} r_i)² + (Σ_{v_i ≥ t} r_i)² ] dt = Σ_ij r_i r_j (1 − |v_i − v_j|).

    Of samples it is truthful: given the probabilities of the events, no predictions have a smaller expected ATB. The
    variances of the two sums add to the same whatever is predicted, and only the truth has no squared bias beside them.

    Returns
    -------
    float
        In [0, 1], in O(k); smCE²/5 ≤ ATB ≤ smCE.

    Source
    ------
    Hartline, Hu, Wu 2026 (COLT; arXiv 2508.13100), with 1/T² before the squares of sums over T samples. Integration
    gives the sum over pairs. ω(v) = Σ_j r_j (1 − |v − v_j|) is 1-Lipschitz and at most 1, so ATB = Σ r_i ω(v_i) ≤ smCE.
    By parts from t = 1/2, residuals against any such ω sum to at most ∫ (|P| + |S| + max(|P|, |S|)) dt ≤ √5 √ATB, with
    P and S the two sums at t.

    Examples
    --------
    >>> atb(JointDistribution.from_levels([0.5], [1], [0.75])), atb(JointDistribution.from_levels([0.25], [1], [0.25]))
    (0.0625, 0.0)
    """
    return float(_squares(gamma, gamma.residuals[None, :])[0])


def _squares(gamma: JointDistribution, residuals: Floats) -> Floats:
    """ATB of each row of residuals (B, k)."""
    v = gamma.predictions
    wide = np.diff(
        v, prepend=0.0, append=1.0
    )  # the edge is below the first level, between two, or above the last
    none = np.zeros((len(residuals), 1))
    below = np.concatenate((none, np.cumsum(residuals, axis=1)), axis=1)
    above = np.concatenate((np.cumsum(residuals[:, ::-1], axis=1)[:, ::-1], none), axis=1)
    return np.asarray((below**2 + above**2) @ wide)


def _root(change: Change) -> Floats:
    return np.sqrt(_squares(change.gamma, change.residuals))[:, None]


def _limits(known: Known, radii: Floats) -> Ends:
    low, high = np.sqrt(known.ends)
    return max(float(low - radii[0]), 0.0) ** 2, float(high + radii[0]) ** 2


MEASURES = (
    Measure(
        function=atb,
        symbol="ATB",
        source="HHW26",
        complexity="O(k)",
        continuous="yes",
        complete="yes (c = 1)",
        sound="yes (s = 4)",
        # Its root is the norm of two functions of t. E‖ρ̂ − ρ‖² = ∫ (Var P̂ + Var Ŝ) dt ≤ E[(y − v)²]/n.
        sampling=Sampling(
            _root,
            "the triangle inequality for √ATB",
            limits=_limits,
            means=lambda samples: np.array([1.0]),
        ),
        modulus=Modulus(
            "4δ",
            "(y − v)(y' − v')(1 − |v − v'|) is 2-Lipschitz in v and in v'",
            lambda moved: 4.0 * moved,
        ),
    ),
)
