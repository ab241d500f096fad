"""Laws that a matrix of flows between grid points leaves as they are."""

from __future__ import annotations

import numpy as np

from onlinecal._compile import kernel
from onlinecal.forecasters.base import grid_of
from onlinecal.law import Law
from onlinecal.round import Round

#: what flows out of a point may be this much less than 1, and weights relative to the first point's this much more
#: before they are scaled down: the product is still a float
TINY, HUGE = 1e-100, 1e200


class Stationary:
    """Base of players whose law has as many atoms as a closed set of points needs, which is two most of the time."""

    #: rounds that a law must have been too large by half before a smaller one takes its place
    PATIENCE = 256

    def __init__(self, runs: int, m: int) -> None:
        self.law = Law(runs, 2, grid_of(m))
        self.idle = 0
        #: the point played last: the next closed set is mostly there, so it is sought from there
        self.last = np.full(runs, m // 2, np.int64)
        #: room for one run's matrix, for the points it is about, and for their weights
        self.flow = np.zeros((m + 1, m + 1))
        self.members = np.zeros(m + 1, np.int64)
        self.share = np.zeros(m + 1)

    def forecast(self, round: Round) -> Law:
        """The law of this round, in an object that grows and shrinks with the need."""
        needed, size = self.state(), self.law.atoms.shape[1]
        self.idle = self.idle + 1 if 2 * needed <= size > 2 else 0
        if needed > size or self.idle > self.PATIENCE:
            self.law = Law(len(self.law.atoms), max(2, needed), self.law.grid)
            self.idle = 0
            self.state()
        return self.law

    def state(self) -> int:
        """Fills the law if it is large enough; returns how many atoms it needs."""
        raise AssertionError("each player states its own law")


@kernel
def count_regrets(bias, rounds, last, forecast, outcome):
    """Counts a round: m·E_i and n_i of the point that was played, on which the regrets rest, and which it was."""
    m = bias.shape[1] - 1
    for r in range(len(bias)):
        i = forecast[r]
        last[r] = i
        bias[r, i] += m * outcome[r] - i
        rounds[r, i] += 1


@kernel
def put_stationary(flow, count, members, share, atoms, weights, r):
    """The stationary law of a closed set that the first point leads to; returns the size of the set.

    `flow` holds in its first `count` rows and columns what flows between the points `members`; it is used up. The law
    goes to row r of `atoms` and `weights` if it fits.
    """
    root = shares(flow, count, share)
    return put_law(share, members, root, count, atoms, weights, r)


@kernel
def shares(flow, count, share):
    """The stationary law of a closed set that the first point leads to, in `share`; returns where the set begins.

    Elimination without subtraction (Grassmann, Taksar and Heyman 1985), so every weight is right to nearly all digits:
    from the last point to the second, what flows through a point is passed on to those before it. A point from which
    nothing flows to those before it is in a closed set with points eliminated earlier, each of which led back to it:
    the search ends there.
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
def put_law(share, points, start, stop, atoms, weights, r):
    """The law with weight share[k] on points[k], for k from `start` up to, not including, `stop`; returns its size."""
    size = 0
    for k in range(start, stop):
        if share[k] > 0.0:
            if size < atoms.shape[1]:
                atoms[r, size], weights[r, size] = points[k], share[k]
            size += 1
    _clear(weights, r, size)
    return size


@kernel
def put_pair(atoms, weights, r, low, share):
    """The law of run r: weight `share` on the point `low` and the rest on the next."""
    here, there, rest = low, low + 1, 1.0 - share
    if share == 0.0:
        here, there, share, rest = there, here, rest, share
    atoms[r, 0], weights[r, 0] = here, share
    atoms[r, 1], weights[r, 1] = there, rest
    _clear(weights, r, 2)


@kernel
def _clear(weights, r, j):
    """Takes the weight from the atoms from j on. Those with weight stand first, so the first without it is the end."""
    while j < weights.shape[1] and weights[r, j] > 0.0:
        weights[r, j] = 0.0
        j += 1
