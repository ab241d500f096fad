"""Distance from calibration under another metric of predictions, by a linear program on nodes."""

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import integer
from onlinecal.measures.base import Bracket
from onlinecal.measures.witnesses.weights import Metric, lowered, steps_of

# Where h may be steep: as near to the ends as predictions are told apart from them.
_NEAR = 1e-9
# Up to this number of levels, each is a node of its own.
_FEW = 1000
# At this number of places it is looked how far potentials break their bounds between nodes.
_PLACES = 2**19
# No potential need leave [−1, 1], so nodes that are 2 or more apart do not constrain each other.
_FAR = 2.0


@of_gamma
def distance_in_metric(gamma: JointDistribution, *, metric: Metric = "logit", nodes: int = 400) -> Bracket:
    """Distance from calibration under the metric |h(u) − h(v)| + |y − z| of predictions and outcomes, in [0, ece].

    The least E[|h(u) − h(v)| + |y − z|] over all couplings of (v, y) ~ Γ with a perfectly calibrated (u, z). Its
    dual is the largest E[a(v) y + b(v) (1 − y)] over a and b with three properties. They change by at most |h(u) −
    h(v)|, differ by at most 1, and have u a(u) + (1 − u) b(u) ≤ 0 for all u. It is a linear program on finitely
    many nodes, with a value above. Below, its potentials, linear in h between nodes, lowered by what they break the
    last bound by in between.

    Source: Błasiok & Nakkiran 2024, Definition 1, Theorem 15 and Corollary 42; here only metrics of a line.

    Parameters
    ----------
    metric : {"identity", "logit"} or callable, default "logit"
        h, as in `smooth_ce`. With "identity" the distance is at most `distance_lower`, which exchanges no outcome,
        and at least a quarter of it.
    nodes : int, default 400
        Nodes beside the levels, from 2 to 10,000: half of them even in u, half in h.

    Returns
    -------
    Bracket
        Of 141 Γ of 1 to 1000 levels the default left a width of at most 2.8e-4 with "logit" and 2.3e-5 with
        "identity". Of more levels, those that are no nodes are moved to the nearest ones. The distance moved is
        added to both sides.

    Examples
    --------
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> near, far = (distance_in_metric(gamma, metric=metric) for metric in ("identity", "logit"))
    >>> round(near.lower, 3), round(far.lower, 3), near.width < 1e-4
    (0.1, 0.405, True)
    """
    count = integer("distance_in_metric", "nodes", nodes, 2, 10_000)
    steps_of(metric, gamma.predictions)  # whether it is one
    most = float(np.abs(gamma.residuals).sum())
    if most == 0.0:
        return Bracket(0.0, 0.0)
    u = _nodes(gamma, metric, count)
    one, zero, moved = _at_nodes(gamma, metric, u)
    a, b, above = _potentials(u, np.minimum(steps_of(metric, u), _FAR), one, zero)
    below = float(one @ a + zero @ b) - _excess(u, a, b, metric)
    # Sums of n products are off by some n units in the last place.
    rounding = 1e-15 * len(u)
    lower = max(below - moved - rounding, 0.0)
    return Bracket(min(lower, most), max(min(above + moved + rounding, most), min(lower, most)))


def _nodes(gamma: JointDistribution, metric: Metric, count: int) -> Floats:
    """Both ends, some even in u and some in h, and the levels if they are few."""
    even = np.linspace(0.0, 1.0, count // 2 + 2)
    tails = np.geomspace(_NEAR, 0.5, 2000)
    fine = np.unique(np.concatenate((tails, 1.0 - tails, np.linspace(tails[0], 1.0 - tails[0], 4001))))
    place = np.concatenate(([0.0], np.cumsum(steps_of(metric, fine))))
    in_h = np.interp(np.linspace(0.0, place[-1], count - count // 2), place, fine)
    levels = gamma.predictions
    if gamma.levels > _FEW:  # the first and the last stay, for they may be far from all others
        levels = levels[np.unique(np.linspace(0, gamma.levels - 1, _FEW).astype(np.int64))]
    return np.unique(np.concatenate((even, in_h, levels)))


def _at_nodes(gamma: JointDistribution, metric: Metric, u: Floats) -> tuple[Floats, Floats, float]:
    """Mass of ones and zeros at the nodes, and the cost of moving the other levels there."""
    v = gamma.predictions
    right = np.minimum(np.searchsorted(u, v), len(u) - 1)
    left = np.where(u[right] == v, right, right - 1)
    places, where = np.unique(np.concatenate((u, v)), return_inverse=True)
    along = np.concatenate(([0.0], np.cumsum(np.minimum(steps_of(metric, places), _FAR))))
    at, there = along[where[: len(u)]], along[where[len(u) :]]
    nearer = there - at[left] <= at[right] - there
    node = np.where(nearer, left, right)
    moved = float(gamma.mass @ np.abs(there - at[node]))
    one, zero = (
        np.bincount(node, weights=gamma.mass * share, minlength=len(u)).astype(np.float64)
        for share in (gamma.means, 1.0 - gamma.means)
    )
    return one, zero, moved


def _potentials(u: Floats, apart: Floats, one: Floats, zero: Floats) -> tuple[Floats, Floats, float]:
    """Feasible potentials at the nodes that are nearly best, and an upper bound of the best value."""
    import scipy.sparse as sp
    from scipy.optimize import linprog

    n = len(u)
    near = np.flatnonzero(apart < _FAR)
    step = sp.csr_array(
        (
            np.tile([-1.0, 1.0], len(near)),
            np.stack((near, near + 1), axis=1).ravel(),
            2 * np.arange(len(near) + 1),
        ),
        shape=(len(near), n),
    )
    same = sp.eye_array(n)
    none = sp.csr_array(step.shape)
    rows = [[step, none], [-step, none], [none, step], [none, -step], [same, -same], [-same, same]]
    rows.append([sp.diags_array(u), sp.diags_array(1.0 - u)])
    matrix = sp.block_array(rows, format="csc")
    limits = np.concatenate((np.tile(apart[near], 4), np.ones(2 * n), np.zeros(n)))
    mass = np.concatenate((one, zero))
    answer = linprog(-mass, A_ub=matrix, b_ub=limits, bounds=(-2.0, 2.0), method="highs")
    if answer.x is None:  # the solver has given up: nothing is known but that nothing is below 0
        return np.zeros(n), np.zeros(n), float("inf")
    # Whatever the flows lack or have too much of costs at most 1 each, for no potential need leave [−1, 1].
    flow = np.maximum(-np.asarray(answer.ineqlin.marginals), 0.0)
    above = float(limits @ flow + np.abs(mass - matrix.T @ flow).sum())
    a, b = _feasible(apart, np.array(answer.x[:n]), np.array(answer.x[n:]))
    return a, b, above


@kernel
def _feasible(apart, a, b):
    """Lowered as far as the bounds of changes and differences ask for."""
    a, b = lowered(a, apart), lowered(b, apart)
    for j in range(len(a)):
        a[j] = min(a[j], b[j] + 1.0)
        b[j] = min(b[j], a[j] + 1.0)
    return a, b


def _excess(u: Floats, a: Floats, b: Floats, metric: Metric) -> float:
    """How much u a(u) + (1 − u) b(u) is above 0 somewhere at most, with a and b linear in h between nodes."""
    # Where h is infinite at an end they are constant. Between two places the sum is between its values at four corners.
    parts = max(_PLACES // len(u), 8)
    shares = np.arange(parts + 1) / parts
    worst = max(float((u * a + (1.0 - u) * b).max()), 0.0)
    x = u[:-1, None] * (1.0 - shares) + u[1:, None] * shares
    x[:, -1] = u[1:]
    x = np.maximum.accumulate(x, axis=1)
    flat = x.ravel()
    # neighbouring gaps share an end, and narrow ones have fewer places
    new = np.diff(flat, prepend=-1.0) > 0.0
    steps = steps_of(metric, flat[new])
    free = ~np.isfinite(steps[[0, -1]])
    along = np.concatenate(([0.0], np.cumsum(np.where(np.isfinite(steps), steps, 0.0))))
    along = along[np.cumsum(new) - 1].reshape(x.shape)
    along -= along[:, :1]
    length = along[:, -1:]
    share = np.divide(along, length, out=np.zeros_like(along), where=length > 0.0)
    first, last = _ends(a, share), _ends(b, share)
    if free[0]:
        first[0], last[0] = a[1], b[1]
    if free[1]:
        first[-1], last[-1] = a[-2], b[-2]
    apart = first - last
    for at, values in ((0, slice(0, -1)), (1, slice(0, -1)), (0, slice(1, None)), (1, slice(1, None))):
        place = x[:, :-1] if at == 0 else x[:, 1:]
        worst = max(worst, float((last[:, values] + place * apart[:, values]).max()))
    return worst


def _ends(values: Floats, share: Floats) -> Floats:
    """Between the values at both ends of each gap."""
    return values[:-1, None] * (1.0 - share) + values[1:, None] * share
