"""Measures of K classes that are linear programs: CDL, U-calibration and smooth calibration."""

from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are first used

from onlinecal.core.arrays import Floats
from onlinecal.core.classes import ClassDistribution, of_classes
from onlinecal.core.errors import InvalidParameter
from onlinecal.decisions.class_tasks import ClassTask

#: levels up to which programs are solved; beyond, there are brackets
MOST_LEVELS = 400
#: by how much an inequality may be missed
WITHIN = 1e-10
#: inequalities of each point to begin with, those with its nearest levels; then all are added that are missed
FIRST = 16
#: levels nearer than this are told apart by inequalities of their own; gains less than this times the largest are 0
NEAR, SMALL = 1e-4, 1e-14
#: the share of a strictly proper score in the worst task, by which ties are broken
PROPER = 1e-6


@of_classes
def cdl(gamma: ClassDistribution) -> float:
    """Calibration decision loss: the largest swap regret over all decision tasks with payoffs in [0, 1].

    A linear program for k ≤ 400 levels: payoffs S(v_i), S(q_i) in [0, 1]^K of actions, with ⟨v_i, S(v_i)⟩ ≥ ⟨v_i, S⟩
    for every action S, that maximise Σ w_i ⟨q_i, S(q_i) − S(v_i)⟩. Exactly 0 where every level has q_i = v_i. At most 2
    `ece`. `worst_task` is the task.

    Source: Hu & Wu 2024; Gopalan & Hu 2025, §4. The program for K classes is this package's.

    Examples
    --------
    >>> centre = [1 / 3] * 3
    >>> round(cdl(ClassDistribution.from_levels([centre], [1], [[1 / 3 + 0.1, 1 / 3 - 0.05, 1 / 3 - 0.05]])), 12)
    0.15
    """
    check_levels("cdl", gamma)
    return _payoffs_of(gamma, swap=True)[0]


@of_classes
def u_calibration(gamma: ClassDistribution) -> float:
    """U-calibration error: the largest external regret over all decision tasks with payoffs in [0, 1].

    The linear program of `cdl` with one action for the mean outcome in place of the S(q_i), for k ≤ 400 levels. At most
    `cdl`.

    Source: Kleinberg, Paes Leme, Schneider & Teng 2023. Deviations: the paper scales losses to [−1, 1], which doubles
    the value.
    """
    check_levels("u_calibration", gamma)
    return _payoffs_of(gamma, swap=False)[0]


@of_classes
def worst_task(gamma: ClassDistribution) -> ClassTask:
    """The decision task with the largest swap regret, `cdl` but for 2·10⁻⁶ where levels are 10⁻⁴ apart or more.

    Actions of the program tie at the levels. A quadratic score with a share of 10⁻⁶ of the payoffs breaks the ties.
    Nearer levels tie within rounding, and the regret may be less.
    """
    check_levels("worst_task", gamma)
    _, v, payoffs = _payoffs_of(gamma, swap=True)
    table = (1.0 - PROPER) * payoffs if len(v) else np.ones((1, gamma.classes))
    # Naming the probabilities a pays 1 − ‖e_y − a‖²/2, the most for a = v, and nothing for what is swapped to.
    table[: len(v)] += PROPER * (0.5 * (1.0 - (v**2).sum(axis=1, keepdims=True)) + v)
    table = np.unique(np.clip(table, 0.0, 1.0), axis=0)
    return ClassTask("worst task", table.tolist())


@of_classes
def swap_regret(gamma: ClassDistribution, *, task: ClassTask) -> float:
    """Gain from replacing the response to each prediction by the best one in hindsight, in [0, 1].

    `task.account(gamma)` has its parts by level, and the regrets of fixed actions and of swaps of actions.

    Parameters
    ----------
    task : ClassTask
        A task with K columns of payoffs.

    Examples
    --------
    >>> exit = ClassTask("exit", [[1, 0, 0], [0.4, 0.4, 0.4]])
    >>> round(swap_regret(ClassDistribution.from_levels([[0.5, 0.3, 0.2]], [1], [[0.2, 0.5, 0.3]]), task=exit), 12)
    0.2
    """
    if not isinstance(task, ClassTask):
        raise InvalidParameter(f"swap_regret: task = {task!r}; expected a ClassTask")
    return task.account(gamma).swap


@of_classes
def smooth_ce(gamma: ClassDistribution) -> float:
    """Smooth calibration error: ½ Σ_k sup E[f(v) (q_k − v_k)], over f in [−1, 1] that are 1-Lipschitz, in [0, 1].

    The distance of predictions is their total variation. K linear programs for k ≤ 400 levels.

    Source: Błasiok, Gopalan, Hu & Nakkiran 2023, Definition 7.2, for two classes. Deviations: of K classes papers have
    other norms; this one is the binary measure where K = 2.
    """
    check_levels("smooth_ce", gamma)
    apart = np.stack([0.5 * np.abs(gamma.predictions - v).sum(axis=1) for v in gamma.predictions])
    return min(0.5 * sum(_lipschitz(r, apart) for r in gamma.residuals.T), 1.0)


def check_levels(where: str, gamma: ClassDistribution) -> None:
    """Refuses Γ of so many levels that the program takes too long."""
    if gamma.levels > MOST_LEVELS:
        raise InvalidParameter(
            f"{where}: {gamma.levels:,} levels; expected at most {MOST_LEVELS}; "
            "`cdl_bracket` and its like bound values for more"
        )


def _lipschitz(r: Floats, apart: Floats) -> float:
    """The largest Σ r_i f_i of −1 ≤ f_i ≤ 1 with f_i − f_j ≤ apart_ij."""
    # Levels of residual 0, and pairs of residuals of one sign, need no inequality: f extends to them.
    up, down = np.flatnonzero(r > 0.0), np.flatnonzero(r < 0.0)
    if not len(up) or not len(down):
        return float(np.abs(r).sum())
    near, gain, many = apart[np.ix_(up, down)], np.concatenate((r[up], r[down])), len(up)
    i, j = (each.ravel() for each in np.indices(near.shape))
    size = len(i)
    rows = np.tile(np.arange(size), 2)
    matrix = scipy.sparse.csr_array(
        (np.repeat([1.0, -1.0], size), (rows, np.concatenate((i, j + many)))), shape=(size, len(gain))
    )
    first = (_nearest(near) | _nearest(near.T).T).ravel()
    return float(gain @ _solved(gain, matrix, near.ravel(), (-1.0, 1.0), first))


def _payoffs_of(gamma: ClassDistribution, swap: bool) -> tuple[float, Floats, Floats]:
    """The largest regret, and the actions of its task, first those that respond to predictions: these, and payoffs."""
    wrong = (gamma.residuals != 0.0).any(axis=1)
    if not wrong.any():
        return 0.0, np.zeros((0, gamma.classes)), np.zeros((0, gamma.classes))
    # A calibrated level has no swap to make, whatever its response.
    v, w, q = (part[wrong] if swap else part for part in (gamma.predictions, gamma.mass, gamma.means))
    pays, others = w[:, None] * q, q if swap else gamma.base_rates[None]
    gain = np.concatenate((-pays, pays if swap else pays.sum(axis=0, keepdims=True)))
    # With one action beside those of the levels the simplex method is up to four times as fast.
    method = "highs-ipm" if swap else "highs-ds"
    payoffs, value = _best_payoffs(v, np.concatenate((v, others)), gain, method)
    # What the solver leaves of 0 is none.
    return (min(value, 1.0) if value > WITHIN else 0.0), v, payoffs


def _best_payoffs(v: Floats, points: Floats, gain: Floats, method: str) -> tuple[Floats, float]:
    """Payoffs S (A, K) in [0, 1] with the largest ⟨gain, S⟩, of which the i-th is best at v_i, and this sum.

    The points (A, K), of which v are the first, are where each is meant for.
    """
    at, than = np.nonzero(~np.eye(len(v), len(gain), dtype=bool))
    rows = v[at]
    # Of levels that are so near that a solver misses their order, both inequalities together say ⟨v_i − v_j, S_i − S_j⟩
    # ≥ 0. That is told in numbers of their own size.
    i, j = (each[(at < than) & (than < len(v))] for each in (at, than))
    apart = v[j] - v[i]
    apart -= apart.mean(axis=1, keepdims=True)
    size = np.abs(apart).max(axis=1)
    near = (size > 0.0) & (size < NEAR)
    at, than = np.concatenate((at, j[near])), np.concatenate((than, i[near]))
    rows = np.concatenate((rows, apart[near] / size[near, None]))
    k, many = gain.shape[1], len(at)
    values, columns = np.tile(rows, (2, 1)), np.concatenate((than, at))[:, None] * k + np.arange(k)
    values[many:] *= -1.0
    places = np.repeat(np.tile(np.arange(many), 2), k)
    matrix = scipy.sparse.csr_array((values.ravel(), (places, columns.ravel())), shape=(many, gain.size))
    apart = scipy.spatial.distance.cdist(points, v, "cityblock")
    first = _nearest(apart)[than, at] | (np.arange(many) >= many - near.sum())
    found = _solved(gain.ravel(), matrix, np.zeros(many), (0.0, 1.0), first, method)
    return found.reshape(gain.shape), float((gain * found.reshape(gain.shape)).sum())


def _nearest(apart: Floats) -> Any:
    """Whether each column is one of the nearest of a row."""
    return apart <= np.sort(apart, axis=1)[:, : FIRST + 1][:, -1:]


def _solved(
    gain: Floats, matrix: Any, most: Floats, ends: tuple[float, float], first: Any, method: str = "highs-ipm"
) -> Floats:
    """The x between these ends with `matrix` x ≤ `most` and the largest ⟨gain, x⟩; there always is one.

    Only some inequalities decide. The rows `first` are solved with, then those too that this misses, until none is.
    """
    # What is so much less than the rest is lost in sums, and solvers stop at it.
    costs = -gain / np.abs(gain).max()
    costs[np.abs(costs) < SMALL] = 0.0
    while True:
        x = _with(costs, matrix[first], most[first], ends, method)
        missed = ~first & (matrix @ x > most + WITHIN)
        if not missed.any():
            return x
        first = first | missed


def _with(costs: Floats, matrix: Any, most: Floats, ends: tuple[float, float], method: str) -> Floats:
    strict = {"primal_feasibility_tolerance": WITHIN, "dual_feasibility_tolerance": WITHIN}
    ways = [(way, strict) for way in dict.fromkeys((method, "highs-ipm", "highs-ds"))]
    for way, options in (*ways, ("highs-ds", {})):
        found = scipy.optimize.linprog(
            costs, A_ub=matrix, b_ub=most, bounds=ends, method=way, options=options
        )
        if found.status == 0:
            return np.clip(found.x, *ends)
    raise ArithmeticError(f"the linear program of {len(costs)} variables was not solved: {found.message}")
