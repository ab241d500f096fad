"""Lower distance from calibration: the nearest calibrated distribution, by a linear program on a line.

A calibrated distribution puts mass t(u) on nodes u, a share u of it with y = 1; a transport of Γ to it bounds the
distance from above. Potentials a (of y = 1) and b (of y = 0) are 1-Lipschitz with u a(u) + (1 − u) b(u) ≤ 0 at every u
in [0, 1]; then E[a(v) y + b(v)(1 − y)] is a bound from below.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import positive
from onlinecal.measures.base import Bracket, Change, Modulus, Sampling, row
from onlinecal.measures.distance_lower_interior import interior_plan
from onlinecal.measures.interval import MOST, best_partition
from onlinecal.measures.smooth_ce import smooth_ce_witness
from onlinecal.measures.witnesses.distances import CalibratedCoupling, lipschitz

# Multiples of a smooth weight that are tried as potentials: a half is always feasible, all of it where the error is a
# bias.
_SCALES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def with_ends(*places: Floats) -> Floats:
    """All of them, with 0 and 1, each once."""
    return np.unique(np.concatenate(([0.0, 1.0], *places)))


def at_home(gamma: JointDistribution) -> tuple[Floats, Floats]:
    """The levels and the ends as nodes, with the levels' own mass."""
    nodes = with_ends(gamma.predictions)
    arriving = np.zeros(len(nodes))
    arriving[np.searchsorted(nodes, gamma.predictions)] = gamma.mass
    return nodes, arriving


def moving_cost(gamma: JointDistribution, nodes: Floats, arriving: Floats) -> float:
    """∫ |C_1 − S_1| + |C_0 − S_0|: the cheapest transport of Γ's ones and zeros to `arriving`."""
    return float(_moving_cost(gamma.predictions, gamma.mass, gamma.means, nodes, arriving))


@kernel
def _moving_cost(v, w, q, nodes, arriving):
    """Both sorted lists of places are gone through together."""
    i = j = 0
    here = one = zero = cost = 0.0
    while i < len(v) or j < len(nodes):
        leaves = j == len(nodes) or (i < len(v) and v[i] <= nodes[j])
        place = v[i] if leaves else nodes[j]
        cost += (abs(one) + abs(zero)) * (place - here)
        here = place
        if leaves:
            one += w[i] * q[i]
            zero += w[i] * (1.0 - q[i])
            i += 1
        else:
            one -= arriving[j] * nodes[j]
            zero -= arriving[j] * (1.0 - nodes[j])
            j += 1
    return cost


def calibrated(gamma: JointDistribution, nodes: Floats, arriving: Floats) -> Floats:
    """Mass 1 and mean outcome E[y], which `arriving` has but for rounding or a tolerance: a little goes to an end."""
    arriving = np.maximum(arriving, 0.0)
    arriving /= arriving.sum()
    # Rounding may leave either a digit above 1.
    want, have = min(float(gamma.mass @ gamma.means), 1.0), min(float(arriving @ nodes), 1.0)
    if have > want:
        arriving *= want / have
        arriving[0] += 1.0 - want / have
    elif have < want:
        share = (1.0 - want) / (1.0 - have)
        arriving *= share
        arriving[-1] += 1.0 - share
    return arriving


def dual_value(
    gamma: JointDistribution, nodes: Floats, ones: Floats, zeros: Floats
) -> tuple[float, Floats, Floats, Floats, Floats]:
    """The lower bound of potentials at the nodes; the potentials made 1-Lipschitz, their excess by gap, and where.

    They are lowered by the greatest u a(u) + (1 − u) b(u), over all u in [0, 1]. Between nodes they are linear; where
    all levels are nodes, they fall as steeply as they can.
    """
    ones, zeros = lipschitz(nodes, ones), lipschitz(nodes, zeros)
    excess, where = _linear_excess(nodes, ones, zeros)
    if _are_nodes(nodes, gamma.predictions):
        steep, there = _steep_excess(nodes, ones, zeros)
        where = np.where(steep < excess, there, where)
        excess = np.minimum(steep, excess)
    one, zero = hats(gamma, nodes)
    value = float(one @ ones + zero @ zeros) - max(float(excess.max()), 0.0)
    return max(value, 0.0), ones, zeros, excess, where


def hats(gamma: JointDistribution, nodes: Floats) -> tuple[Floats, Floats]:
    """Mass of ones and zeros at the nodes, each level split linearly onto its two neighbours.

    The split keeps E[a(v) y] for every a that is linear between nodes, and the cost of moving to any node.
    """
    j = np.clip(np.searchsorted(nodes, gamma.predictions, side="right") - 1, 0, len(nodes) - 2)
    share = (gamma.predictions - nodes[j]) / (nodes[j + 1] - nodes[j])
    parts: list[Floats] = []
    for w in (gamma.mass * gamma.means, gamma.mass * (1.0 - gamma.means)):
        left = np.bincount(j, weights=w * (1.0 - share), minlength=len(nodes))
        both = left + np.bincount(j + 1, weights=w * share, minlength=len(nodes))
        parts.append(np.asarray(both, dtype=np.float64))
    return parts[0], parts[1]


def _are_nodes(nodes: Floats, places: Floats) -> bool:
    index = np.minimum(np.searchsorted(nodes, places), len(nodes) - 1)
    return bool((nodes[index] == places).all())


def steeply(nodes: Floats, values: Floats, places: Floats) -> Floats:
    """At other places, the lowest 1-Lipschitz function through the largest one below the values at the nodes."""
    values = lipschitz(nodes, values)
    j = np.clip(np.searchsorted(nodes, places, side="right") - 1, 0, len(nodes) - 2)
    left, right = values[j] - (places - nodes[j]), values[j + 1] - (nodes[j + 1] - places)
    return np.maximum(left, right)


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
    """The same for a and b that fall from both ends of a gap with slope 1 until they meet.

    Each is the larger of two lines. Where both are the one from the left, the sum is linear in u; where a is the one
    from the right and b that from the left, it is convex: neither is largest inside the gap. With a from the left
    and b from the right it is −2u² + (α − β + 1) u + β, α = a + u at the left end, β = b − u at the right one.
    """
    x, y = nodes[:-1], nodes[1:]
    alpha, beta = ones[:-1] + x, zeros[1:] - y
    at_nodes = nodes * ones + (1.0 - nodes) * zeros
    top = np.clip(0.25 * (alpha - beta + 1.0), x, y) - x
    return _largest(nodes, at_nodes, top, lambda u, s: u * (alpha - u) + (1.0 - u) * (beta + u))


def _largest(nodes: Floats, at_nodes: Floats, top: Floats, inside: Callable[[Floats, Floats], Floats]) -> Any:
    """Of both ends of each gap and the place `top` from its left end, the largest value and where it is."""
    u = nodes[:-1] + top
    values = np.stack((inside(u, top), at_nodes[:-1], at_nodes[1:]))
    best = values.argmax(axis=0)
    gap = np.arange(len(top))
    return values[best, gap], np.stack((u, nodes[:-1], nodes[1:]))[best, gap]


def near_bounds(gamma: JointDistribution) -> tuple[Floats, Floats, Floats, Floats]:
    """Nodes, arriving mass and potentials found at once: no wider apart than from smCE/2 to ECE and to intCE.

    Above: each level moved to its mean outcome, or each group of the best partition into intervals to its own.
    Below: with a weight ω that attains smCE, ((1 − u) ω(u), −u ω(u)) times 1/2 is feasible; so may be more of it.
    """
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


Ints = NDArray[np.int64]
Plan = tuple[Floats, Floats, Floats, Floats]

# Even nodes to begin with, where not every level is a node.
_NODES = 1000
_ROUNDS = 30
# So many levels, apart from those that share a node, are nodes from the start. A program of 10 000 takes some seconds.
_FEW = 502
_MOST_NODES = 10_000
# Levels this share of the width wanted apart are one node.
_APART = 0.05
# Gaps that get a crossing before any is asked for: narrower ones never need one at 1e-9.
_WIDE = 1e-5
# Where in the room between its neighbours a new crossing comes, beside the place asked for.
_AROUND = np.array([-0.2, -0.02, 0.0, 0.02, 0.2])
# The solver's tolerances are 1e-10, and it drops coefficients below 1e-9. So mass is in units of a tenth of all
# residuals, costs are 100 times and shares 30 times as large: then neither is felt. (Far more, and it fails often.)
_UNIT, _COST, _SHARE = 0.1, 100.0, 30.0
# How far apart the values of a solution from inside may be, as a share of the width wanted.
_INNER = 1e-3


def bracketed(gamma: JointDistribution, width: float, seconds: float) -> Plan:
    """Nodes, arriving mass and potentials whose bounds are at most `width` apart, if they get there in time."""
    if float(np.abs(gamma.residuals).sum()) <= width:
        return near_bounds(gamma)
    best, plan = _refined(gamma, width, time.monotonic() + seconds)
    if plan is not None and best <= width:
        return plan
    near = near_bounds(gamma)
    return near if plan is None or _apart(gamma, near) < best else plan


def _refined(gamma: JointDistribution, width: float, end: float) -> tuple[float, Plan | None]:
    """The best plan of a sequence of programs, and how far apart its bounds are."""
    nodes = spaced(with_ends(gamma.predictions), _APART * width)
    every_level = len(nodes) <= _FEW
    program = _Program(gamma, nodes if every_level else np.linspace(0.0, 1.0, _NODES + 1), every_level)
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
        # Levels inside a cell keep the program's value below the coupling's cost: then the levels themselves,
        # if not too many, are better nodes; else halve all cells.
        finer = spaced(with_ends(gamma.predictions, program.nodes), _APART * width)
        every_level = len(finer) <= _MOST_NODES
        if not every_level:
            finer = np.union1d(program.nodes, 0.5 * (program.nodes[1:] + program.nodes[:-1]))
        if len(finer) > _MOST_NODES:
            break
        program = _Program(gamma, finer, every_level)
    return best, found


def _apart(gamma: JointDistribution, plan: Plan) -> float:
    nodes, arriving, ones, zeros = plan
    return moving_cost(gamma, nodes, arriving) - dual_value(gamma, nodes, ones, zeros)[0]


@kernel
def spaced(places, apart):
    """Places from 0 to 1 without those that are closer than `apart` to the one before, or to 1."""
    kept = np.empty(len(places))
    kept[0] = 0.0
    n = 1
    for place in places:
        if place - kept[n - 1] >= apart and 1.0 - place >= apart:
            kept[n] = place
            n += 1
    kept[n] = 1.0
    return kept[: n + 1]


class _Program:
    """The program on some nodes, and its crossings.

    Variables: t(u) ≥ 0, and the flow of ones and of zeros to the right and to the left across each gap. At node u the
    ones that are there and flow in, less those that flow out, are u t(u), the zeros (1 − u) t(u). It is written for t
    less the mass that Γ has at the node, so that the right-hand side is the residual there.

    A crossing is a t(u) inside a gap, whose ones come from the left end and whose zeros from the right one. Where no
    level is inside, potentials that fall as steeply as they can from both ends leave no other constraint there, so
    crossings at the right u make the program exact.
    """

    def __init__(self, gamma: JointDistribution, nodes: Floats, every_level: bool) -> None:
        self.gamma, self.nodes = gamma, nodes
        gaps = np.diff(nodes)
        wide = gaps > (_WIDE if every_level else np.inf)
        self.crossings = (nodes[:-1] + 0.5 * gaps)[wide]
        # Levels that share a node, or with nodes that are not levels, are split linearly onto their neighbours.
        self.hats = one, zero = hats(gamma, nodes)
        self.mass = one + zero
        self.residual = one - nodes * self.mass
        self.every_level = every_level

    def cross(self, found: Floats) -> bool:
        """Add crossings where they are missing; whether there were any to add."""
        places = np.union1d(self.nodes, self.crossings)
        j = np.clip(np.searchsorted(places, found, side="right"), 1, len(places) - 1)
        low, high = places[j - 1], places[j]
        near = found + np.multiply.outer(_AROUND, high - low)
        before = len(self.crossings)
        self.crossings = np.union1d(self.crossings, near[(near > low) & (near < high)])
        return len(self.crossings) > before

    def solve(self, width: float, end: float) -> Plan | None:
        """A plan from the solution, or none where the solver has no answer, or not in time."""
        if time.monotonic() >= end:
            return None
        if not self.every_level and (inner := interior_plan(self.nodes, *self.hats, _INNER * width)):
            ones, zeros, arriving = inner
            return self.nodes, calibrated(self.gamma, self.nodes, arriving), ones, zeros
        n, gaps, u = len(self.nodes), np.diff(self.nodes), self.crossings
        gap = np.searchsorted(self.nodes, u) - 1
        column = np.arange(len(u))
        sp = scipy.sparse
        shares = _SHARE * sp.vstack(
            [
                sp.hstack([sp.diags(self.nodes), sp.csc_matrix((u, (gap, column)), shape=(n, len(u)))]),
                sp.hstack(
                    [
                        sp.diags(1.0 - self.nodes),
                        sp.csc_matrix((1.0 - u, (gap + 1, column)), shape=(n, len(u))),
                    ]
                ),
            ]
        )
        out = sp.diags([np.ones(n - 1), -np.ones(n - 1)], [0, -1], shape=(n, n - 1))
        flows = sp.block_diag([sp.hstack([out, -out]), sp.hstack([out, -out])])
        crossing = u * (u - self.nodes[gap]) + (1.0 - u) * (self.nodes[gap + 1] - u)
        unit = _UNIT * max(float(np.abs(self.residual).sum()), width)
        least = np.concatenate((-self.mass / (_SHARE * unit), np.zeros(len(u) + 4 * (n - 1))))
        # No flow need be above 1; told so, the solver cannot take rounding in a cycle of flows for an unbounded gain.
        most = np.full(len(least), 1.0 / unit)
        for method, presolve in (("highs-ds", True), ("highs-ds", False), ("highs-ipm", True)):
            if (left := end - time.monotonic()) <= 0.0:
                return None
            answer = scipy.optimize.linprog(
                _COST * np.concatenate((np.zeros(n), _SHARE * crossing, gaps, gaps, gaps, gaps)),
                A_eq=sp.hstack([shares, flows], format="csc"),
                b_eq=np.concatenate((self.residual, -self.residual)) / unit,
                bounds=np.stack((least, most), axis=1),
                method=method,
                options={
                    "primal_feasibility_tolerance": 1e-10,
                    "dual_feasibility_tolerance": 1e-10,
                    "presolve": presolve,
                    "time_limit": left,
                },
            )
            if answer.status == 0:
                moved = _SHARE * unit * np.asarray(answer.x[: n + len(u)])
                return self._plan(moved, np.asarray(answer.eqlin.marginals) / _COST)
        return None

    def _plan(self, moved: Floats, marginals: Floats) -> Plan:
        n, nodes = len(self.nodes), self.nodes
        ones, zeros = marginals[:n], marginals[n:]
        if self.every_level:
            # Where there are hardly any ones, or zeros, the solver may leave their potential far below. As b(u) ≤ u and
            # a(u) ≤ 1 − u, it need not be below these, and a proof with large numbers loses their digits to rounding.
            ones, zeros = np.maximum(ones, nodes - 1.0), np.maximum(zeros, -nodes)
            inner = with_ends(nodes, self.gamma.predictions)
            nodes = with_ends(inner, self.crossings)
            ones, zeros = (
                steeply(inner, np.interp(inner, self.nodes, part), nodes) for part in (ones, zeros)
            )
        arriving = np.zeros(len(nodes))
        arriving[np.searchsorted(nodes, self.nodes)] = self.mass + moved[:n]
        arriving[np.searchsorted(nodes, self.crossings)] += moved[n:]
        return nodes, calibrated(self.gamma, nodes, arriving), ones, zeros


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
    on finitely many u a linear program along a line, of O(nodes) variables. Its potentials a, b give the dual bound
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
        do not reach it, or the solver's answer is not good enough. Never wider than from smCE/2 to the lesser of ECE
        and, for k ≤ 200 000, intCE. Levels closer than 1/20 of the tolerance share a node. Up to 500 nodes, all levels
        are nodes; beyond, nodes are even at first, each level is split linearly onto its two neighbours, and an
        interior point method solves the program. Some 20 ms at k = 60, 3 ms at k = 25 000.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 5.3, linear programs (11) and (12), here by cumulative masses.

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
    row(
        distance_lower,
        "dCE_low | BGHN23 Def. 5.3 | linear programs of O(k) variables, k ≤ 500; beyond, O(k) with 1000 nodes "
        "| yes | yes (c = 1) | yes (s = 2)",
        bracket=True,
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
