"""The linear program of the lower distance on nodes of a line: by a solver, or from inside."""

import time

import numpy as np
import scipy  # its parts are loaded when they are first used

from onlinecal.core._compile import kernel
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.measures.witnesses.distances import lipschitz

Plan = tuple[Floats, Floats, Floats, Floats]

# Gaps that get a crossing before any is asked for: narrower ones never need one at 1e-9.
_WIDE = 1e-5
# Where in the room between its neighbours a new crossing comes, beside the place asked for.
_AROUND = np.array([-0.2, -0.02, 0.0, 0.02, 0.2])
# The solver's tolerances are 1e-10, and it drops coefficients below 1e-9. So mass is in units of a tenth of all
# residuals, costs are 100 times and shares 30 times as large. Then neither is felt. (Far more, and it fails often.)
_UNIT, _COST, _SHARE = 0.1, 100.0, 30.0
# How far apart the values of a solution from inside may be, as a share of the width wanted.
_INNER = 1e-3
# Steps after which it gives up: some 20 are usual.
_STEPS = 80
# Share of the way to the nearest bound that a step goes.
_BACK = 0.995


def with_ends(*places: Floats) -> Floats:
    """All of them, with 0 and 1, each once."""
    return np.unique(np.concatenate(([0.0, 1.0], *places)))


def hats(gamma: JointDistribution, nodes: Floats) -> tuple[Floats, Floats]:
    """Mass of ones and zeros at the nodes, each level split linearly onto its two neighbours."""
    # The split keeps E[a(v) y] for every a that is linear between nodes, and the cost of moving to any node.
    j = np.clip(np.searchsorted(nodes, gamma.predictions, side="right") - 1, 0, len(nodes) - 2)
    share = (gamma.predictions - nodes[j]) / (nodes[j + 1] - nodes[j])
    parts: list[Floats] = []
    for w in (gamma.mass * gamma.means, gamma.mass * (1.0 - gamma.means)):
        left = np.bincount(j, weights=w * (1.0 - share), minlength=len(nodes))
        both = left + np.bincount(j + 1, weights=w * share, minlength=len(nodes))
        parts.append(np.asarray(both, dtype=np.float64))
    return parts[0], parts[1]


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


def steeply(nodes: Floats, values: Floats, places: Floats) -> Floats:
    """At other places, the lowest 1-Lipschitz function through the largest one below the values at the nodes."""
    values = lipschitz(nodes, values)
    j = np.clip(np.searchsorted(nodes, places, side="right") - 1, 0, len(nodes) - 2)
    left, right = values[j] - (places - nodes[j]), values[j + 1] - (nodes[j + 1] - places)
    return np.maximum(left, right)


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


class Program:
    """The program on some nodes. Variables: mass t(u) ≥ 0, and flows of ones and of zeros across each gap, both ways.

    Ones at u less those that flow out are u t(u), zeros (1 − u) t(u). A crossing is a t(u) inside a gap, with ones from
    its left end and zeros from its right one. The steepest potentials leave no other constraint in a gap without
    levels. So crossings at the right u make the program exact.
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
        node, column = np.arange(n), n + np.arange(len(u))
        entries = [
            (node, node, _SHARE * self.nodes), (node + n, node, _SHARE * (1.0 - self.nodes)),
            (gap, column, _SHARE * u), (gap + 1 + n, column, _SHARE * (1.0 - u)),
        ]  # fmt: skip
        for k, sign in enumerate(
            (1.0, -1.0, 1.0, -1.0)
        ):  # flows of ones, then of zeros, to the right and back
            out, flow = node[:-1] + n * (k // 2), n + len(u) + (n - 1) * k + node[:-1]
            entries += [(out, flow, np.full(n - 1, sign)), (out + 1, flow, np.full(n - 1, -sign))]
        rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
        shares_and_flows = scipy.sparse.csc_matrix((values, (rows, columns)))
        shares_and_flows.eliminate_zeros()
        crossing = u * (u - self.nodes[gap]) + (1.0 - u) * (self.nodes[gap + 1] - u)
        unit = _UNIT * max(float(np.abs(self.residual).sum()), width)
        least = np.concatenate((-self.mass / (_SHARE * unit), np.zeros(len(u) + 4 * (n - 1))))
        # No flow need be above 1. Told so, the solver cannot take rounding in a cycle of flows for an unbounded
        # gain.
        most = np.full(len(least), 1.0 / unit)
        for method, presolve in (("highs-ds", True), ("highs-ds", False), ("highs-ipm", True)):
            if (left := end - time.monotonic()) <= 0.0:
                return None
            answer = scipy.optimize.linprog(
                _COST * np.concatenate((np.zeros(n), _SHARE * crossing, gaps, gaps, gaps, gaps)),
                A_eq=shares_and_flows,
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


def interior_plan(
    nodes: Floats, ones: Floats, zeros: Floats, gap: float
) -> tuple[Floats, Floats, Floats] | None:
    """Potentials and arriving mass with values about `gap` apart, nearly feasible; None where it is not reached."""
    # Maximises E[a] over the ones + E[b] over the zeros by Mehrotra's predictor and corrector (1992). Constraints
    # A (a, b) + s = limits have multipliers z. They join a node to itself or the next one, so that A'DA is a narrow
    # band.
    n, edges = len(nodes), 2 * len(nodes) - 2

    def across(x: Floats) -> Floats:
        """A x: rises and falls of both potentials, and u a + (1 − u) b."""
        rise = np.diff(x, axis=1).ravel()
        return np.concatenate((rise, -rise, nodes * x[0] + (1.0 - nodes) * x[1]))

    def back(z: Floats) -> Floats:
        """A'z."""
        rise = (z[:edges] - z[edges : 2 * edges]).reshape(2, n - 1)
        out = np.stack((nodes, 1.0 - nodes)) * z[2 * edges :]
        out[:, 1:] += rise
        out[:, :-1] -= rise
        return out

    def factor(weights: Floats) -> Floats:
        """A'DA by Cholesky, in the order a_0, b_0, a_1, …"""
        steps = (weights[:edges] + weights[edges : 2 * edges]).reshape(2, n - 1)
        t, band = weights[2 * edges :], np.zeros((3, n, 2))
        band[2] = np.stack((t * nodes**2, t * (1.0 - nodes) ** 2), axis=1)
        band[2, 1:] += steps.T
        band[2, :-1] += steps.T
        band[1, :, 1] = t * nodes * (1.0 - nodes)
        band[0, 1:] = -steps.T
        return np.asarray(scipy.linalg.cholesky_banded(band.reshape(3, 2 * n), overwrite_ab=True))

    mass, x = np.stack((ones, zeros)), np.full((2, n), -0.25)
    s = np.concatenate((np.tile(np.diff(nodes), 4), np.full(n, 0.25)))
    z = np.concatenate((np.full(2 * edges, 0.25), np.full(n, 1.0 / n)))
    for _ in range(_STEPS):
        right, total = mass - back(z), float(s @ z)
        if max(total, float(np.abs(right).sum())) <= gap:
            return x[0], x[1], z[2 * edges :]
        try:
            lower = factor(z / s)
        except (np.linalg.LinAlgError, ValueError):  # not positive, or not finite
            return None
        wanted = -s * z
        for corrected in (False, True):
            solved = scipy.linalg.cho_solve_banded((lower, False), (right - back(wanted / s)).T.ravel())
            dx = solved.reshape(n, 2).T
            ds = -across(dx)
            dz = (wanted - z * ds) / s
            primal, dual = _step(s, ds), _step(z, dz)
            if not corrected:
                share = (float((s + primal * ds) @ (z + dual * dz)) / total) ** 3
                wanted += share * total / len(s) - ds * dz
        x, s, z = x + primal * dx, s + primal * ds, z + dual * dz
    return None


def _step(values: Floats, change: Floats) -> float:
    """How far values may go along their change, of 1 at most, before one reaches 0."""
    falls = change < 0.0
    return min(1.0, _BACK * float((-values[falls] / change[falls]).min(initial=np.inf)))
