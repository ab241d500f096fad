"""The lower distance as a linear program along a line, refined until both ends of its bracket meet."""

from __future__ import annotations

import time

import numpy as np
import scipy  # its parts are loaded when they are first used
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.measures.distance_lower_bounds import (
    calibrated,
    dual_value,
    hats,
    moving_cost,
    near_bounds,
    steeply,
    with_ends,
)
from onlinecal.measures.distance_lower_interior import interior_plan

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
