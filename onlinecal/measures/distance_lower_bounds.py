"""Bounds of the lower distance: a calibrated distribution from above, potentials from below.

A calibrated distribution puts mass t(u) on nodes u, a share u of it with y = 1; a transport of Γ to it bounds the
distance from above. Potentials a (of y = 1) and b (of y = 0) are 1-Lipschitz with u a(u) + (1 − u) b(u) ≤ 0 at every u
in [0, 1]; then E[a(v) y + b(v)(1 − y)] is a bound from below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.measures.interval import MOST, best_partition
from onlinecal.measures.smooth_ce import smooth_ce_witness
from onlinecal.measures.witnesses.distances import lipschitz

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
