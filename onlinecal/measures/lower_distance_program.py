"""The lower distance as a linear program along a line, refined until both ends of its bracket meet."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from onlinecal.joint import JointDistribution

Floats = NDArray[np.float64]

# Even nodes to begin with, where not every level is a node.
_NODES = 1000
_ROUNDS = 20
# A linear program of this size takes some seconds.
_MOST_NODES = 10_000


def bracketed(
    gamma: JointDistribution, width: float, *, every_level: bool
) -> tuple[Floats, Floats, Floats, Floats]:
    """Nodes, arriving mass and potentials whose bounds are at most `width` apart, if they get there."""
    if every_level:
        nodes = np.unique(np.concatenate(([0.0, 1.0], gamma.predictions)))
    else:
        nodes = np.linspace(0.0, 1.0, _NODES + 1)
    best = np.inf
    for _ in range(_ROUNDS):
        arriving, ones, zeros = _solve(gamma, nodes)
        lower, ones, zeros, violated = dual_value(gamma, nodes, ones, zeros, width)
        apart = moving_cost(gamma, nodes, arriving) - lower
        if apart < best:
            best, found = apart, (nodes, arriving, ones, zeros)
        if best <= width:
            break
        # Levels inside a cell keep the program's value below the coupling's cost: then the levels themselves,
        # if not too many, are better nodes; else halve all cells.
        if every_level:
            more = _around(nodes, violated)
        elif gamma.levels <= _MOST_NODES // 2:
            every_level, more = True, gamma.predictions
        else:
            more = 0.5 * (nodes[1:] + nodes[:-1])
        finer = np.union1d(nodes, more)
        if len(finer) == len(nodes) or len(finer) > _MOST_NODES:
            break
        nodes = finer
    return found


def _around(nodes: Floats, found: Floats) -> Floats:
    """The points found, and some at small shares of their gap: the next maximum is near, and errs by gap²."""
    j = np.clip(np.searchsorted(nodes, found, side="right"), 1, len(nodes) - 1)
    gap = nodes[j] - nodes[j - 1]
    near = found + np.multiply.outer([-0.2, -0.02, -0.002, 0.0, 0.002, 0.02, 0.2], gap)
    return near[(near > nodes[j - 1]) & (near < nodes[j])]


def on_nodes(gamma: JointDistribution) -> tuple[Floats, Floats]:
    """The levels and the ends as nodes, with the levels' own mass."""
    nodes = np.unique(np.concatenate(([0.0, 1.0], gamma.predictions)))
    arriving = np.zeros(len(nodes))
    arriving[np.searchsorted(nodes, gamma.predictions)] = gamma.mass
    return nodes, arriving


def moving_cost(gamma: JointDistribution, nodes: Floats, arriving: Floats) -> float:
    """∫ |C_1 − S_1| + |C_0 − S_0|: the cheapest transport of Γ's ones and zeros to `arriving`."""
    place = np.concatenate((gamma.predictions, nodes))
    order = np.argsort(place, kind="stable")
    gaps = np.diff(place[order])
    cost = 0.0
    for leave, arrive in (
        (gamma.mass * gamma.means, arriving * nodes),
        (gamma.mass * (1.0 - gamma.means), arriving * (1.0 - nodes)),
    ):
        cost += float(gaps @ np.abs(np.cumsum(np.concatenate((leave, -arrive))[order])[:-1]))
    return cost


def dual_value(
    gamma: JointDistribution, nodes: Floats, ones: Floats, zeros: Floats, width: float = 0.0
) -> tuple[float, Floats, Floats, Floats]:
    """The lower bound that the potentials prove, the potentials made 1-Lipschitz, and u that violate it most.

    r(v, 1) = a(v) − δ and r(v, 0) = b(v) − δ satisfy r(v, y) ≤ |u − v| + (y − u) s(u) for some s(u) at
    every u if a and b are 1-Lipschitz and u a(u) + (1 − u) b(u) ≤ δ.
    """
    ones, zeros = _lipschitz(nodes, ones), _lipschitz(nodes, zeros)
    excess, where = _linear_excess(nodes, ones, zeros)
    if _all_nodes(gamma, nodes):
        # No level inside a gap: there the potentials may fall as fast as they can, gap by gap.
        steep, there = _steep_excess(nodes, ones, zeros)
        where = np.where(steep < excess, there, where)
        excess = np.minimum(steep, excess)
    delta = max(float(excess.max()), 0.0)
    one, zero = _hats(gamma, nodes)
    value = max(float(one @ ones + zero @ zeros) - delta, 0.0)
    return value, ones, zeros, where[excess > max(0.25 * width, 0.01 * delta)]


def _all_nodes(gamma: JointDistribution, nodes: Floats) -> bool:
    index = np.minimum(np.searchsorted(nodes, gamma.predictions), len(nodes) - 1)
    return bool((nodes[index] == gamma.predictions).all())


def _hats(gamma: JointDistribution, nodes: Floats) -> tuple[Floats, Floats]:
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


def _solve(gamma: JointDistribution, nodes: Floats) -> tuple[Floats, Floats, Floats]:
    """Arriving mass and potentials of the program on the nodes.

    Variables: t(u) ≥ 0, and the flow of ones and of zeros to the right and to the left across each gap. At
    node u the ones that are there and flow in, less those that flow out, are u t(u), the zeros (1 − u) t(u).
    """
    n, gaps = len(nodes), np.diff(nodes)
    one, zero = _hats(gamma, nodes)
    out = sp.diags([np.ones(n - 1), -np.ones(n - 1)], [0, -1], shape=(n, n - 1))
    none = sp.csc_matrix((n, n - 1))
    rows = sp.vstack(
        [
            sp.hstack([sp.diags(nodes), out, -out, none, none]),
            sp.hstack([sp.diags(1.0 - nodes), none, none, out, -out]),
        ],
        format="csc",
    )
    answer = linprog(
        np.concatenate((np.zeros(n), gaps, gaps, gaps, gaps)),
        A_eq=rows,
        b_eq=np.concatenate((one, zero)),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.x is None:
        # The program always has a solution; should the solver stop short, trivial bounds are still bounds.
        rate = float(gamma.mass @ gamma.means)
        arriving = np.zeros(n)
        arriving[0], arriving[-1] = 1.0 - rate, rate
        return arriving, np.zeros(n), np.zeros(n)
    marginals = np.asarray(answer.eqlin.marginals)
    return _calibrated(gamma, nodes, np.asarray(answer.x[:n])), marginals[:n], marginals[n:]


def _calibrated(gamma: JointDistribution, nodes: Floats, arriving: Floats) -> Floats:
    """Mass 1 and mean outcome E[y], which the solver meets to 1e-10 only: a little goes to an end."""
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


def _lipschitz(nodes: Floats, values: Floats) -> Floats:
    """The largest 1-Lipschitz function below the values."""
    left = np.minimum.accumulate(values - nodes) + nodes
    right = np.minimum.accumulate((values + nodes)[::-1])[::-1] - nodes
    return np.minimum(left, right)


def _linear_excess(nodes: Floats, ones: Floats, zeros: Floats) -> tuple[Floats, Floats]:
    """Largest u a(u) + (1 − u) b(u) in each gap, and where, for a and b linear in between."""
    gaps = np.diff(nodes)
    p, q = np.diff(ones) / gaps, np.diff(zeros) / gaps
    return _quadratic(nodes[:-1], ones[:-1], zeros[:-1], p, q, np.zeros(len(gaps)), gaps)


def _steep_excess(nodes: Floats, ones: Floats, zeros: Floats) -> tuple[Floats, Floats]:
    """The same for a and b that fall with slope 1 from both ends of the gap."""
    gaps = np.diff(nodes)
    turns = [np.clip(0.5 * (a[:-1] - a[1:] + gaps), 0.0, gaps) for a in (ones, zeros)]
    first, second = np.minimum(*turns), np.maximum(*turns)
    best = np.full(len(gaps), -np.inf)
    where = nodes[:-1].copy()
    for start, end in ((np.zeros(len(gaps)), first), (first, second), (second, gaps)):
        # On a piece each potential is one of two lines; as the larger of the two, where it turns does not
        # matter.
        middle = 0.5 * (start + end)
        one_falls, zero_falls = middle <= turns[0], middle <= turns[1]
        here, place = _quadratic(
            nodes[:-1],
            np.where(one_falls, ones[:-1], ones[1:] - gaps),
            np.where(zero_falls, zeros[:-1], zeros[1:] - gaps),
            np.where(one_falls, -1.0, 1.0),
            np.where(zero_falls, -1.0, 1.0),
            start,
            end,
        )
        where = np.where(here > best, place, where)
        best = np.maximum(here, best)
    return best, where


def _quadratic(
    x: Floats, a: Floats, b: Floats, p: Floats, q: Floats, start: Floats, end: Floats
) -> tuple[Floats, Floats]:
    """Largest (x+s)(a+ps) + (1−x−s)(b+qs) over start ≤ s ≤ end, and x + s there."""
    best = np.full(len(x), -np.inf)
    where = x.copy()
    bend = p - q
    slope = a + x * p - b + (1.0 - x) * q
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.where(bend < 0.0, -0.5 * slope / bend, start)
    for s in (start, end, np.clip(top, start, end)):
        u = x + s
        here = u * (a + p * s) + (1.0 - u) * (b + q * s)
        where = np.where(here > best, u, where)
        best = np.maximum(here, best)
    return best, where
