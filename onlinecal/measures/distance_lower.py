"""Lower distance from calibration: the nearest calibrated distribution, by a linear program on a line.

A calibrated distribution puts mass t(u) on nodes u, a share u of it with y = 1. A transport of Γ to it bounds the
distance from above. Potentials a (of y = 1) and b (of y = 0) are 1-Lipschitz with u a(u) + (1 − u) b(u) ≤ 0 at
every u in [0, 1]; then E[a(v) y + b(v)(1 − y)] is a bound from below.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import positive
from onlinecal.measures.base import Bracket, Change, Sampling, row
from onlinecal.measures.distance_lower_program import Plan, Program, calibrated, hats, spaced, with_ends
from onlinecal.measures.interval import MOST, best_partition
from onlinecal.measures.smooth_ce import smooth_ce_witness
from onlinecal.measures.witnesses.distances import CalibratedCoupling, lipschitz, moving_cost

# Multiples of a smooth weight that are tried as potentials. A half is always feasible, all of it where the error is
# a bias.
_SCALES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def dual_value(
    gamma: JointDistribution, nodes: Floats, ones: Floats, zeros: Floats
) -> tuple[float, Floats, Floats, Floats, Floats]:
    """The lower bound of potentials at the nodes, the potentials made 1-Lipschitz, their excess by gap, and where."""
    # They are lowered by the greatest u a(u) + (1 − u) b(u). Between nodes they are linear; where all levels are nodes,
    # they fall as steeply as they can.
    ones, zeros = lipschitz(nodes, ones), lipschitz(nodes, zeros)
    excess, where = _linear_excess(nodes, ones, zeros)
    if np.isin(gamma.predictions, nodes).all():
        steep, there = _steep_excess(nodes, ones, zeros)
        where = np.where(steep < excess, there, where)
        excess = np.minimum(steep, excess)
    one, zero = hats(gamma, nodes)
    value = float(one @ ones + zero @ zeros) - max(float(excess.max()), 0.0)
    return max(value, 0.0), ones, zeros, excess, where


def _linear_excess(nodes: Floats, ones: Floats, zeros: Floats) -> tuple[Floats, Floats]:
    """Largest u a(u) + (1 − u) b(u) in each gap, and where, for a and b linear in between."""
    gaps = np.diff(nodes)
    x, a, b = nodes[:-1], ones[:-1], zeros[:-1]
    p, q = np.diff(ones) / gaps, np.diff(zeros) / gaps
    slope = a + x * p - b + (1.0 - x) * q
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.where(p < q, 0.5 * slope / (q - p), 0.0)
    at_nodes = nodes * ones + (1.0 - nodes) * zeros
    return _largest(
        nodes, at_nodes, np.clip(top, 0.0, gaps), lambda u, s: u * (a + p * s) + (1.0 - u) * (b + q * s)
    )


def _steep_excess(nodes: Floats, ones: Floats, zeros: Floats) -> tuple[Floats, Floats]:
    """The same for a and b that fall from both ends of a gap with slope 1 until they meet."""
    # Only with a from the left and b from the right is it largest inside: −2u² + (α − β + 1) u + β. Here α = a + u at
    # the left end, β = b − u at the right one.
    x, y = nodes[:-1], nodes[1:]
    alpha, beta = ones[:-1] + x, zeros[1:] - y
    at_nodes = nodes * ones + (1.0 - nodes) * zeros
    top = np.clip(0.25 * (alpha - beta + 1.0), x, y) - x
    return _largest(nodes, at_nodes, top, lambda u, s: u * (alpha - u) + (1.0 - u) * (beta + u))


def _largest(nodes: Floats, at_nodes: Floats, top: Floats, inside: Callable[[Floats, Floats], Floats]) -> Any:
    """The largest value in each gap, at its ends and at `top` from the left one; and the place."""
    u = nodes[:-1] + top
    values = np.stack((inside(u, top), at_nodes[:-1], at_nodes[1:]))
    best = values.argmax(axis=0)
    gap = np.arange(len(top))
    return values[best, gap], np.stack((u, nodes[:-1], nodes[1:]))[best, gap]


def near_bounds(gamma: JointDistribution) -> tuple[Floats, Floats, Floats, Floats]:
    """Nodes, arriving mass and potentials found at once: no wider apart than from smCE/2 to ECE and to intCE."""
    # Above: each level, or group of the best partition, moved to its mean outcome. Below: multiples of ((1 − u) ω(u),
    # −u ω(u)) with a weight ω that attains smCE.
    k = gamma.levels
    starts = (
        best_partition(gamma, "mean", None)[1]
        if k <= MOST["mean"]
        else np.arange(0, k, k // MOST["mean"] + 1)
    )
    groups = [np.arange(k), starts]
    plans = [(np.add.reduceat(gamma.mass * gamma.means, g), np.add.reduceat(gamma.mass, g)) for g in groups]
    places = [np.minimum(ones / mass, 1.0) for ones, mass in plans]
    nodes = with_ends(gamma.predictions, *places)
    couplings = []
    for (_, mass), place in zip(plans, places, strict=True):
        there = np.zeros(len(nodes))
        np.add.at(there, np.searchsorted(nodes, place), mass)
        there = calibrated(gamma, nodes, there)
        couplings.append((moving_cost(gamma, nodes, there), there))
    arriving = min(couplings, key=lambda coupling: coupling[0])[1]
    weights = np.interp(nodes, gamma.predictions, smooth_ce_witness(gamma).weights)
    potentials = [(c * (1.0 - nodes) * weights, -c * nodes * weights) for c in _SCALES]
    _, ones, zeros, _, _ = max(
        (dual_value(gamma, nodes, a, b) for a, b in potentials), key=lambda found: found[0]
    )
    return nodes, arriving, ones, zeros


# Even nodes to begin with, where not every level is a node.
_NODES = 1000
_ROUNDS = 30
# This number of levels, apart from those that share a node, are nodes from the start. A program of 10 000 takes
# some seconds.
_FEW = 502
_MOST_NODES = 10_000
# Levels this share of the width wanted apart are one node.
_APART = 0.05


def bracketed(gamma: JointDistribution, width: float, seconds: float) -> Plan:
    """Nodes, arriving mass and potentials with bounds at most `width` apart, if they get there in time."""
    # Residuals that are nearly all of one sign are moved by their sum: no program is needed.
    r = gamma.residuals
    if float(np.abs(r).sum()) - abs(float(r.sum())) <= width:
        near = near_bounds(gamma)
        if _apart(gamma, near) <= width:
            return near
    best, plan = _refined(gamma, width, time.monotonic() + seconds)
    if plan is not None and best <= width:
        return plan
    near = near_bounds(gamma)
    return near if plan is None or _apart(gamma, near) < best else plan


def _apart(gamma: JointDistribution, plan: Plan) -> float:
    nodes, arriving, ones, zeros = plan
    return moving_cost(gamma, nodes, arriving) - dual_value(gamma, nodes, ones, zeros)[0]


def _refined(gamma: JointDistribution, width: float, end: float) -> tuple[float, Plan | None]:
    """The best plan of a sequence of programs, and how far apart its bounds are."""
    nodes = spaced(with_ends(gamma.predictions), _APART * width)
    every_level = len(nodes) <= _FEW
    program = Program(gamma, nodes if every_level else np.linspace(0.0, 1.0, _NODES + 1), every_level)
    best, found = np.inf, None
    for _ in range(_ROUNDS):
        plan = program.solve(width, end)
        if plan is None:
            break
        nodes, arriving, ones, zeros = plan
        lower, ones, zeros, excess, where = dual_value(gamma, nodes, ones, zeros)
        apart = moving_cost(gamma, nodes, arriving) - lower
        if apart < best:
            best, found = apart, (nodes, arriving, ones, zeros)
        if best <= width:
            break
        if every_level:
            if not program.cross(where[excess > max(0.25 * width, 0.01 * float(excess.max()))]):
                break
            continue
        # Levels inside a cell keep the program's value below the coupling's cost. Then the levels themselves, if
        # not too many, are better nodes. Else halve all cells.
        finer = spaced(with_ends(gamma.predictions, program.nodes), _APART * width)
        every_level = len(finer) <= _MOST_NODES
        if not every_level:
            finer = np.union1d(program.nodes, 0.5 * (program.nodes[1:] + program.nodes[:-1]))
        if len(finer) > _MOST_NODES:
            break
        program = Program(gamma, finer, every_level)
    return best, found


# Numbers of levels up to which the lower distance is closed to 1e-9, and beyond it to 1e-3.
_CLOSED = 500


@of_gamma
def distance_lower(
    gamma: JointDistribution, *, tolerance: float | None = None, time_limit: float = 60.0
) -> Bracket:
    """Lower distance from calibration: the cheapest coupling of Γ with a perfectly calibrated distribution.

    dCE_low(Γ) = min over (u, v, y) with (v, y) ~ Γ and E[y | u] = u of E|u − v|. On finitely many u it is a linear
    program along a line, of O(nodes) variables. Its potentials a, b give the dual bound E[a(v) y + b(v)(1 − y)] − δ,
    δ = max over all u in [0, 1] of u a(u) + (1−u) b(u), in closed form between nodes. The maxima become new u.

    Source: Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 5.3, linear programs (11) and (12), here by cumulative
    masses.

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
        As `distance_lower_witness` proves it; [0, 0] where the mean of every level is its prediction. No wider than the
        tolerance, unless 30 refinements, 10 000 nodes, the time or the solver end the search. It is never wider than
        from smCE/2 to the lesser of ECE and, for k ≤ 200 000, intCE. Levels closer than 1/20 of the tolerance share a
        node. Beyond 500 nodes these are even at first, and levels are split linearly onto their two neighbours. Some
        20 ms at k = 60, 10 ms at k = 25 000.

    Examples
    --------
    >>> bracket = distance_lower(JointDistribution.from_samples([0.4, 0.6], [1, 0]))
    >>> round(bracket.lower, 8), bracket.width < 1e-9
    (0.1, True)
    """
    plan = distance_lower_witness(gamma, tolerance=tolerance, time_limit=time_limit)
    # Rounding has its place in a proof. But a Γ that is calibrated to the last digit is its own calibrated
    # neighbour.
    return plan.bound(gamma) if gamma.residuals.any() else Bracket(0.0, 0.0)


def distance_lower_witness(
    gamma: JointDistribution, *, tolerance: float | None = None, time_limit: float = 60.0
) -> CalibratedCoupling:
    wanted = 1e-9 if gamma.levels <= _CLOSED else 1e-3
    width = positive("tolerance", wanted if tolerance is None else tolerance, "a positive width")
    seconds = positive("time_limit", time_limit, "a positive number of seconds")
    if not gamma.residuals.any():  # calibrated to the last digit: nothing moves
        nodes = with_ends(gamma.predictions)
        arriving = np.zeros(len(nodes))
        arriving[np.searchsorted(nodes, gamma.predictions)] = gamma.mass
        return CalibratedCoupling(nodes, arriving, np.zeros(len(nodes)), np.zeros(len(nodes)))
    return CalibratedCoupling(*bracketed(gamma, width, seconds))


def _transport(change: Change, **options: float) -> Floats:
    """∫ |D_1[0, x]| dx + ∫ |D_0(x, 1]| dx, for 1-Lipschitz potentials a, b with a(1) = b(0) = 0 of a change."""
    # In the dual a(v) = min over u of |u − v| + (1 − u) s(u) and b(v) of |u − v| − u s(u), |s| ≤ 1: they are such
    # potentials.
    v = change.gamma.predictions
    ones, zeros = np.abs(np.cumsum(change.ones, axis=1)), np.abs(np.cumsum(change.zeros[:, ::-1], axis=1))
    return (ones @ np.diff(v, append=1.0) + zeros[:, ::-1] @ np.diff(v, prepend=0.0))[:, None]


def seconds_of_distance(levels: int, rounds: int) -> float:
    """About how long the linear programs of one Γ take; beyond 50 levels it no longer grows."""
    return 0.004 * min(levels, 50)


MEASURES = (
    row(
        distance_lower,
        "dCE_low | BGHN23 Def. 5.3 | linear programs of O(k) variables, k ≤ 500; beyond, O(k) with 1000 nodes "
        "| yes | yes (c = 1) | yes (s = 2)",
        bracket=True,
        seconds=seconds_of_distance,
        witness=distance_lower_witness,
        version=2,
        sampling=Sampling(
            _transport,
            "the dual is a supremum of means of 1-Lipschitz potentials (BGHN23 (12), Lemma 9.11)",
            # √n E|D_y[0, x]| ≤ 1/2, twice.
            means=lambda samples, **options: np.array([1.0]),
        ),
    ),
)
