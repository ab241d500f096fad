"""Lower distance from calibration: the nearest calibrated distribution, by a linear program on a line."""

from __future__ import annotations

import numpy as np

from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import positive
from onlinecal.measures.base import Bracket, Measure, Modulus, Sampling
from onlinecal.measures.distance_lower_bounds import at_home
from onlinecal.measures.distance_lower_program import bracketed
from onlinecal.measures.sampling import Change
from onlinecal.measures.witnesses.distances import CalibratedCoupling

# Numbers of levels up to which the lower distance is closed to 1e-9, and beyond it to 1e-3.
_CLOSED = 500


@of_gamma
def distance_lower(
    gamma: JointDistribution, *, tolerance: float | None = None, time_limit: float = 60.0
) -> Bracket:
    """Lower distance from calibration: the cheapest coupling of Γ with a perfectly calibrated distribution.

    dCE_low(Γ) = min over (u, v, y) with (v, y) ~ Γ and E[y | u] = u of E|u − v|. With t(u) ≥ 0 the mass that
    arrives at u and C_y(x) = Γ(v ≤ x, y), this is
    min over t of ∫ |C_1(x) − Σ_{u≤x} u t(u)| + |C_0(x) − Σ_{u≤x} (1−u) t(u)| dx,
    on finitely many u a linear program along a line. Its potentials a, b give the dual bound
    E[a(v) y + b(v)(1 − y)] − δ, δ = max over all u in [0, 1] of u a(u) + (1−u) b(u), in closed form between
    nodes; the maxima become new u.

    Parameters
    ----------
    tolerance : float, optional, > 0
        Width of the bracket wanted. Default: 1e-9 for k ≤ 500, else 1e-3. Below 1e-9 it may not be reached.
    time_limit : float, default 60, > 0
        Seconds after which no program goes on; without one, some seconds more at k = 100 000. Only here the result
        depends on the machine.

    Returns
    -------
    Bracket
        As `distance_lower_witness` proves it: above by a coupling, below by a dual function; [0, 0] where the mean of
        every level is its prediction. No wider than the tolerance, save where 30 refinements, 10 000 nodes or the time
        do not reach it, or the solver's answer is not good enough: of 5,000 Γ whose levels are 1e-17 to 1e-6 apart
        none. Never wider than from smCE/2 to the lesser of ECE and, for k ≤ 200 000, intCE. Levels closer than 1/20 of
        the tolerance share a node. Up to 500 nodes, all levels are nodes; beyond, nodes are even at first, each level
        is split linearly onto its two neighbours, and an interior point method solves the program. Some 20 ms at k =
        60, 3 ms at k = 25 000.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 5.3, linear programs (11) and (12).

    Deviations
    ----------
    Cumulative masses instead of couplings: O(nodes) variables instead of their square. The u between levels are found
    where the dual breaks a constraint; between two levels only one concave quadratic of u remains to be checked.

    Examples
    --------
    >>> bracket = distance_lower(JointDistribution.from_samples([0.4, 0.6], [1, 0]))
    >>> round(bracket.lower, 8), bracket.width < 1e-9
    (0.1, True)
    """
    plan = distance_lower_witness(gamma, tolerance=tolerance, time_limit=time_limit)
    # Rounding has its place in a proof; but a Γ that is calibrated to the last digit is its own calibrated neighbour.
    return plan.bracket(gamma) if gamma.residuals.any() else Bracket(0.0, 0.0)


@of_gamma
def distance_lower_witness(
    gamma: JointDistribution, *, tolerance: float | None = None, time_limit: float = 60.0
) -> CalibratedCoupling:
    """The coupling and the dual potentials behind `distance_lower`."""
    wanted = 1e-9 if gamma.levels <= _CLOSED else 1e-3
    width = positive("tolerance", wanted if tolerance is None else tolerance, "a positive width")
    seconds = positive("time_limit", time_limit, "a positive number of seconds")
    if not gamma.residuals.any():  # calibrated to the last digit: nothing moves
        nodes, arriving = at_home(gamma)
        return CalibratedCoupling(nodes, arriving, np.zeros(len(nodes)), np.zeros(len(nodes)))
    return CalibratedCoupling(*bracketed(gamma, width, seconds))


def _modulus(moved: float, *, tolerance: float | None = None, time_limit: float = 60.0) -> float:
    return moved


def _transport(change: Change, **options: float) -> Floats:
    """∫ |D_1[0, x]| dx + ∫ |D_0(x, 1]| dx, for 1-Lipschitz potentials a, b with a(1) = b(0) = 0 of a change.

    In the dual a(v) = min over u of |u − v| + (1 − u) s(u), and b(v) of |u − v| − u s(u), with |s| ≤ 1. So both are
    1-Lipschitz, and |a(v)| ≤ 1 − v, |b(v)| ≤ v.
    """
    v = change.gamma.predictions
    ones, zeros = np.abs(np.cumsum(change.ones, axis=1)), np.abs(np.cumsum(change.zeros[:, ::-1], axis=1))
    return (ones @ np.diff(v, append=1.0) + zeros[:, ::-1] @ np.diff(v, prepend=0.0))[:, None]


MEASURES = (
    Measure(
        function=distance_lower,
        symbol="dCE_low",
        source="BGHN23 Def. 5.3",
        complexity="linear programs of O(k) variables, k ≤ 500; beyond, O(k) with 1000 nodes",
        bracket=True,
        continuous="yes",
        complete="yes (c = 1)",
        sound="yes (s = 2)",
        witness=distance_lower_witness,
        version=2,
        sampling=Sampling(
            _transport,
            "the dual is a supremum of means of 1-Lipschitz potentials (BGHN23 (12), Lemma 9.11)",
            # √n E|D_y[0, x]| ≤ 1/2, twice.
            means=lambda samples, **options: np.array([1.0]),
        ),
        modulus=Modulus("δ", "BGHN23 Lemma 7.11: the triangle inequality of E|u − v|", _modulus),
    ),
)
