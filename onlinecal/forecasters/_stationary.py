"""Laws that a matrix of flows between grid points leaves as they are."""

from __future__ import annotations

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.rounds.steps import law_atoms, law_weights

#: what flows out of a point may be this much less than 1, and weights relative to the first point's this much more
#: before they are scaled down: the product is still a float
TINY, HUGE = 1e-100, 1e200


@kernel
def count_regrets(bias, rounds, i, outcome):
    """Counts a round that played i: m·E_i and n_i, on which the regrets rest."""
    bias[i] += (len(bias) - 1) * outcome - i
    rounds[i] += 1


@kernel
def state_stationary(run, flow, count, members, share):
    """States the stationary law of a closed set that the first of `members` leads to; `flow` is used up."""
    root = shares(flow, count, share)
    return state_law(run, share, members, root, count)


@kernel
def shares(flow, count, share):
    """The stationary law of a closed set that the first point leads to, in `share`; returns where the set begins.

    Elimination without subtraction (Grassmann, Taksar and Heyman 1985), so every weight is right to nearly all digits.
    From the last point to the second, the flow through a point is passed on to those before it. A point without flow to
    those before it is in a closed set with points eliminated earlier: the search ends there.
    """
    root = 0
    for n in range(count - 1, 0, -1):
        out = 0.0
        for j in range(n):
            out += flow[n, j]
        if out == 0.0:
            root = n
            break
        for i in range(n):
            part = flow[i, n] / out
            flow[i, n] = part
            if part > 0.0:
                for j in range(n):
                    flow[i, j] += part * flow[n, j]
    share[root] = total = 1.0
    for n in range(root + 1, count):
        mass = 0.0
        for i in range(root, n):
            mass += share[i] * flow[i, n]
        share[n] = mass
        total += mass
        if total > HUGE:
            for i in range(root, n + 1):
                share[i] /= HUGE
            total /= HUGE
    for n in range(root, count):
        share[n] /= total
    return root


@kernel
def state_law(run, share, points, start, stop):
    """States the law with weight share[k] on points[k], for k from `start` up to, not including, `stop`."""
    atoms, weights, size = law_atoms(run), law_weights(run), 0
    for k in range(start, stop):
        if share[k] > 0.0:
            atoms[size], weights[size] = points[k], share[k]
            size += 1
    return size


@kernel
def state_either(run, low, share):
    """The law with weight `share` on the point `low` and the rest on the next; an atom without weight comes last."""
    here, there, rest = low, low + 1, 1.0 - share
    if share == 0.0:
        here, there, share, rest = there, here, rest, share
    atoms, weights = law_atoms(run), law_weights(run)
    atoms[0], weights[0], atoms[1], weights[1] = here, share, there, rest
    return 2


@kernel
def whole(numbers):
    """Room for floats as room for as many whole numbers."""
    return numbers.view(np.int64)
