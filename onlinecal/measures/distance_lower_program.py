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
    # Maximises E[a] over the ones + E[b] over the zeros by Mehrotra's predictor and corrector (1992). Constraints join
    # a node to itself or the next one: steps are tridiagonal in blocks of two.
    a, b, arriving, reached = _interior(nodes, ones, zeros, gap, _STEPS, _BACK)
    return (a, b, arriving) if reached else None


@kernel
def _factor(u, wa, wb, wt, m11, m12, m22):
    """The blocks of A'DA after elimination from the left, inverted in place; wa, wb, wt are the weights D."""
    n = len(u)
    for i in range(n):
        p = wt[i] * u[i] * u[i]
        q = wt[i] * u[i] * (1.0 - u[i])
        r = wt[i] * (1.0 - u[i]) * (1.0 - u[i])
        if i < n - 1:
            p += wa[i]
            r += wb[i]
        if i > 0:
            p += wa[i - 1] - wa[i - 1] * wa[i - 1] * m11[i - 1]
            q -= wa[i - 1] * wb[i - 1] * m12[i - 1]
            r += wb[i - 1] - wb[i - 1] * wb[i - 1] * m22[i - 1]
        det = p * r - q * q
        if not (det > 0.0 and p > 0.0):
            return False
        m11[i] = r / det
        m12[i] = -q / det
        m22[i] = p / det
    return True


@kernel
def _solve(wa, wb, m11, m12, m22, x, y):
    """Solves A'DA (x, y) = (x, y) in place, by the blocks of `_factor`."""
    n = len(x)
    for i in range(1, n):
        x[i] += wa[i - 1] * (m11[i - 1] * x[i - 1] + m12[i - 1] * y[i - 1])
        y[i] += wb[i - 1] * (m12[i - 1] * x[i - 1] + m22[i - 1] * y[i - 1])
    for i in range(n - 1, -1, -1):
        right = x[i]
        below = y[i]
        if i < n - 1:
            right += wa[i] * x[i + 1]
            below += wb[i] * y[i + 1]
        x[i] = m11[i] * right + m12[i] * below
        y[i] = m12[i] * right + m22[i] * below


@kernel
def _across(u, x, y, out):
    """A (x, y): rises and falls of x, of y, and u x + (1 − u) y."""
    n = len(u)
    for i in range(n - 1):
        out[0, i] = x[i + 1] - x[i]
        out[1, i] = -out[0, i]
        out[2, i] = y[i + 1] - y[i]
        out[3, i] = -out[2, i]
    for i in range(n):
        out[4, i] = u[i] * x[i] + (1.0 - u[i]) * y[i]


@kernel
def _back(u, z, x, y):
    """A'z, added to x and y with the sign −."""
    n = len(u)
    for i in range(n):
        x[i] -= u[i] * z[4, i]
        y[i] -= (1.0 - u[i]) * z[4, i]
    for i in range(n - 1):
        rise = z[0, i] - z[1, i]
        x[i + 1] -= rise
        x[i] += rise
        rise = z[2, i] - z[3, i]
        y[i + 1] -= rise
        y[i] += rise


@kernel
def _interior(u, ones, zeros, gap, steps, back):
    n = len(u)
    # Rows 0 to 3 have one entry less than nodes: the last stays out of everything.
    s, z = np.ones((5, n)), np.zeros((5, n))
    rows = 5 * n - 4
    a = np.full(n, -0.25)
    b = np.full(n, -0.25)
    for j in range(4):
        for i in range(n - 1):
            s[j, i] = u[i + 1] - u[i]
            z[j, i] = 0.25
    for i in range(n):
        s[4, i] = 0.25
        z[4, i] = 1.0 / n
    ds, dz, rc, line = np.zeros((5, n)), np.zeros((5, n)), np.zeros((5, n)), np.zeros((5, n))
    wa, wb, wt, m11, m12 = np.empty(n - 1), np.empty(n - 1), np.empty(n), np.empty(n), np.empty(n)
    m22, x, y, right_a, right_b = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for _ in range(steps):
        for i in range(n):
            right_a[i] = ones[i]
            right_b[i] = zeros[i]
        _back(u, z, right_a, right_b)
        total, off = 0.0, 0.0
        for i in range(n):
            off += abs(right_a[i]) + abs(right_b[i])
            for j in range(5):
                total += s[j, i] * z[j, i]
        if not (total < np.inf and off < np.inf):
            return a, b, z[4], False
        if total <= gap and off <= gap:
            return a, b, z[4], True
        mu = total / rows
        for i in range(n - 1):
            wa[i] = z[0, i] / s[0, i] + z[1, i] / s[1, i]
            wb[i] = z[2, i] / s[2, i] + z[3, i] / s[3, i]
        for i in range(n):
            wt[i] = z[4, i] / s[4, i]
        if not _factor(u, wa, wb, wt, m11, m12, m22):
            return a, b, z[4], False
        primal = dual = 1.0
        for corrected in range(2):
            sigma = 0.0
            if corrected:
                after = 0.0
                for j in range(5):
                    for i in range(n):
                        after += (s[j, i] + primal * ds[j, i]) * (z[j, i] + dual * dz[j, i])
                sigma = (after / total) ** 3
            for j in range(5):
                for i in range(n):
                    second = ds[j, i] * dz[j, i] if corrected else 0.0
                    rc[j, i] = sigma * mu - s[j, i] * z[j, i] - second
                    line[j, i] = rc[j, i] / s[j, i]
            for j in range(4):
                rc[j, n - 1] = line[j, n - 1] = 0.0
            for i in range(n):
                x[i] = right_a[i]
                y[i] = right_b[i]
            _back(u, line, x, y)
            _solve(wa, wb, m11, m12, m22, x, y)
            _across(u, x, y, line)
            primal = dual = 1.0
            for j in range(5):
                for i in range(n - 1 if j < 4 else n):
                    ds[j, i] = -line[j, i]
                    dz[j, i] = (rc[j, i] - z[j, i] * ds[j, i]) / s[j, i]
                    if ds[j, i] < 0.0:
                        primal = min(primal, -back * s[j, i] / ds[j, i])
                    if dz[j, i] < 0.0:
                        dual = min(dual, -back * z[j, i] / dz[j, i])
        for i in range(n):
            a[i] += primal * x[i]
            b[i] += primal * y[i]
            for j in range(5):
                s[j, i] += primal * ds[j, i]
                z[j, i] += dual * dz[j, i]
    return a, b, z[4], False
