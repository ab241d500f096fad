"""Calibration for decision makers: CDL, its parts for one task and one kink, and U-calibration."""

from functools import partial
from typing import Any, Literal

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Floats
from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.levels import LevelSets
from onlinecal.decisions.tasks import Task, as_task, v_shaped
from onlinecal.measures._kinks import (
    FIXED,
    ONE_KINK,
    SWAPS,
    at_half,
    density,
    external_density,
    external_means,
    kink_errors,
    refuses,
    task_errors,
    upper_hull,
)
from onlinecal.measures.base import Sampling, each_level, row
from onlinecal.measures.witnesses.tasks import RegretBound, WorstTask, kink_regrets


@of_gamma
def cfdl(gamma: JointDistribution, *, task: Task | str = "quadratic") -> float:
    """Calibration fixed decision loss: the swap regret of one decision task, in [0, 1].

    Σ w_i (max_a u(a, q_i) − u(BR(v_i), q_i)), ties of the best response broken against the forecaster: the Bregman
    divergence E[D_φ(q‖v)] of the convex φ(p) = max_a (1 − p) u(a, 0) + p u(a, 1). At most `cdl` for payoffs in [0, 1].

    Source: Hu & Wu 2024; Gopalan & Hu 2025, §4.

    Parameters
    ----------
    task : Task or str, default "quadratic"
        A task, or the name of one in `onlinecal.decisions.tasks.TASKS`.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.45], [1], [0.55])
    >>> round(cfdl(gamma), 6), round(cfdl(gamma, task=v_shaped(0.5)), 6)
    (0.01, 0.1)
    """
    return as_task("cfdl", task).account(gamma).swap


@of_gamma
def cdl(gamma: JointDistribution) -> float:
    """Calibration decision loss: the largest swap regret over all decision tasks with payoffs in [0, 1].

    CDL = 2 × (upper concave envelope of R on [0, 1]) at t = 1/2, with the regret density of a kink t R(t) = Σ w_i [
    (q_i − t) 1(v_i ≤ t < q_i) + (t − q_i) 1(q_i < t ≤ v_i) ]. A task with payoffs in [0, 1] is a measure of kinks
    with bounded moments. The envelope is the dual of the best one. Exactly 0 where every level has q_i = v_i;
    `worst_decision_task` attains it.

    Source: Hu & Wu 2024; Gopalan & Hu 2025, §4. The closed form is this package's (checked against the linear program).

    Examples
    --------
    >>> round(cdl(JointDistribution.from_levels([0.45], [1], [0.55])), 12)  # 2/11, where ECE is 0.1
    0.181818181818
    """
    return _twice(cdl_of_levels(gamma.predictions, gamma.counts, gamma.means), gamma.weight)


def worst_decision_task(gamma: JointDistribution) -> WorstTask:
    """The decision task with the swap regret `cdl`: two or three actions, with explicit payoffs."""
    return worst_task(cdl_of_levels(gamma.predictions, gamma.counts, gamma.means), "swap")


@of_gamma
def v_cdl(gamma: JointDistribution) -> float:
    """The largest swap regret over decision tasks with a single kink (two actions).

    sup_t R(t) / max(t, 1 − t), with R as in `cdl`. sup R ≤ v_cdl ≤ cdl ≤ 2 sup R. Exactly 0 where every level has
    q_i = v_i. The papers bound by sup_t R(t); dividing by max(t, 1 − t) stretches the payoffs over [0, 1].

    Source: Hu & Wu 2024; Gopalan & Hu 2025, Theorem 4.10; Bairaktari et al. 2026, Lemma 2.2.

    Examples
    --------
    >>> round(v_cdl(JointDistribution.from_levels([0.2, 0.8], [0.5, 0.5], [0.4, 0.6])), 12)
    0.125
    """
    value, _ = _v_cdl(gamma.predictions, gamma.counts, gamma.means)
    return min(value / gamma.weight, 1.0)


def worst_kink(gamma: JointDistribution) -> WorstTask:
    value, t = _v_cdl(gamma.predictions, gamma.counts, gamma.means)
    if value <= 0.0:
        return WorstTask((), ((1.0, 0.0),), "swap")
    return WorstTask((t,), v_shaped(t).payoffs, "swap")


@of_gamma
def u_calibration(gamma: JointDistribution) -> float:
    """U-calibration error: the largest external regret over all decision tasks with payoffs in [0, 1].

    2 × (upper concave envelope of max(R_ext, 0)) at t = 1/2, with b = E[y] and
    R_ext(t) = (b − t)_+ − Σ_{v_i > t} w_i (q_i − t), the worse of the two responses where v_i = t. At most `cdl`, and
    exactly 0 where every level has q_i = v_i; `worst_external_task` attains it.

    Source: Kleinberg, Paes Leme, Schneider & Teng 2023. The closed form is this package's. Deviations: the paper scales
    losses to [−1, 1], which doubles the value.

    Examples
    --------
    The average prediction is right, the predictions are the wrong way round:

    >>> round(u_calibration(JointDistribution.from_levels([0.4, 0.6], [0.5, 0.5], [0.6, 0.4])), 12)
    0.2
    """
    return _twice(_external(gamma.predictions, gamma.counts, gamma.means), gamma.weight)


def worst_external_task(gamma: JointDistribution) -> WorstTask:
    return worst_task(_external(gamma.predictions, gamma.counts, gamma.means), "external")


@kernel
def _external(v, n, q):
    return at_half(v, external_density(v, n, q))


def _twice(touch: Any, weight: float) -> float:
    """2 × the envelope at 1/2, from its touching points."""
    share, _, r1, _, r2 = touch
    return min(2.0 * (share * r1 + (1.0 - share) * r2) / weight, 1.0)


def cdls(sets: LevelSets) -> Floats:
    return np.asarray(_cdls(sets.predictions, sets.counts, sets.means, sets.starts, sets.weights))


@kernel
def _cdls(v, n, q, starts, weights):
    out = np.empty(len(weights))
    for b in range(len(weights)):
        i, j = starts[b], starts[b + 1]
        share, _, r1, _, r2 = cdl_of_levels(v[i:j], n[i:j], q[i:j])
        out[b] = min(2.0 * (share * r1 + (1.0 - share) * r2) / weights[b], 1.0)
    return out


@kernel
def cdl_of_levels(v, n, q) -> tuple[float, float, float, float, float]:
    """The points where the envelope of R touches, for levels of weight n: CDL is `_twice` that, over the weight."""
    r, wrong = density(v, n, q)
    if not wrong:
        return 1.0, 0.5, 0.0, 0.5, 0.0
    return at_half(v, r)


@kernel
def kink_totals(v, counts, one_kink):
    """T·CDL, or (`one_kink`) T·V-CDL, of many Γ on one grid: rounds and outcomes 1 of each point, (B, k, 2)."""
    out, levels = np.zeros(len(counts)), np.empty((3, len(v)))
    for b in range(len(counts)):
        k = 0
        for i in range(len(v)):  # the levels that have rounds: values, weights, means
            if counts[b, i, 0] > 0:
                n = float(counts[b, i, 0])
                levels[0, k], levels[1, k], levels[2, k] = v[i], n, counts[b, i, 1] / n
                k += 1
        if k == 0:
            continue
        if one_kink:
            value = _v_cdl(levels[0, :k], levels[1, :k], levels[2, :k])[0]
        else:
            share, _, r1, _, r2 = cdl_of_levels(levels[0, :k], levels[1, :k], levels[2, :k])
            value = 2.0 * (share * r1 + (1.0 - share) * r2)
        out[b] = min(value, levels[1, :k].sum())
    return out


@kernel
def _v_cdl(v, n, q):
    """The value, weighted by n, and the kink."""
    r, wrong = density(v, n, q)
    best, t = 0.0, 0.5
    if not wrong:
        return best, t
    # R / max(t, 1 − t) is quasiconvex between levels but for a dip of the divisor at 1/2: a candidate too.
    for i in range(v.shape[0]):
        if v[i] <= 0.5 < q[i]:
            best += n[i] * (q[i] - 0.5)
        elif q[i] < 0.5 <= v[i]:
            best += n[i] * (0.5 - q[i])
    best *= 2.0
    for i in range(v.shape[0]):
        value = r[i] / max(v[i], 1.0 - v[i])
        if value > best:
            best, t = value, v[i]
    return best, t


def worst_task(
    touch: tuple[float, float, float, float, float], regret: Literal["swap", "external"]
) -> WorstTask:
    """The task at which the envelope touches R; `touch` is returned by `at_half`."""
    share, t1, r1, t2, r2 = touch
    if max(r1, r2) <= 0.0:
        return WorstTask((), ((1.0, 0.0),), regret)
    if t1 == t2:
        return WorstTask((t1,), ((1.0, 0.0), (0.0, 1.0)), regret)
    middle = (max(0.0, 1.0 - 2.0 * share * t1), min(1.0, 2.0 * share * (1.0 - t1)))
    kinks, payoffs = [t1, t2], [(1.0, 0.0), middle, (0.0, 1.0)]
    # Where the envelope rests on 0 or 1 without regret, no action is needed beyond.
    if t2 == 1.0 and r2 <= 0.0:
        kinks, payoffs = kinks[:1], payoffs[:2]
    elif t1 == 0.0 and r1 <= 0.0:
        kinks, payoffs = kinks[1:], payoffs[1:]
    return WorstTask(tuple(kinks), tuple(payoffs), regret)


def regret_bound(
    gamma: JointDistribution, *, measure: Literal["cdl", "v_cdl", "u_calibration"] = "cdl"
) -> RegretBound:
    """A curve above all kinks' regrets: the envelope's line at t = 1/2, for `v_cdl` a multiple of max(t, 1 − t)."""
    return RegretBound(float(_slope_at_half(*kink_regrets(gamma, measure))), measure)


@kernel
def _slope_at_half(t, y):
    """Slope of the upper concave envelope of the points just above 1/2, or below it where 1/2 is a corner."""
    hull = upper_hull(t, y)
    b = 1
    while t[hull[b]] < 0.5:
        b += 1
    return (y[hull[b]] - y[hull[b - 1]]) / (t[hull[b]] - t[hull[b - 1]])


_SUPREMUM = "a supremum of means over tasks and swaps; not testable on distinct predictions: BHNU26 Claim 1.1"

MEASURES = (
    row(
        cfdl,
        "CFDL | HW24; GH25 §4 | O(k A) | no | yes | no",
        decisions="swap regret of this task",
        sampling=Sampling(task_errors, _SUPREMUM, cells=each_level, instead="scdl", refuses=refuses),
    ),
    row(
        v_cdl,
        "V-CDL | HW24; GH25 Thm 4.10 | O(k log k) | no | yes | yes",
        # GH25 Theorem 4.10: kinks of a task weigh 2 at most, and R(t) ≤ V-CDL.
        decisions="swap regret of every two-action task; of every task ≤ 2 V-CDL",
        witness=worst_kink,
        sampling=Sampling(partial(kink_errors, ONE_KINK), _SUPREMUM, cells=each_level, instead="scdl"),
        counterpart=partial(regret_bound, measure="v_cdl"),
    ),
    row(
        cdl,
        "CDL | HW24; GH25 §4 | O(k log k) | no | yes | yes",
        many=cdls,
        decisions="swap regret of every task",
        witness=worst_decision_task,
        sampling=Sampling(partial(kink_errors, SWAPS), _SUPREMUM, cells=each_level, instead="scdl"),
        counterpart=partial(regret_bound, measure="cdl"),
    ),
    row(
        u_calibration,
        "UCal | KPST23 | O(k) | no | yes | no",
        decisions="external regret of every task",
        witness=worst_external_task,
        sampling=Sampling(
            partial(kink_errors, FIXED),
            "a supremum of means over tasks and fixed actions",
            means=external_means,
        ),
        counterpart=partial(regret_bound, measure="u_calibration"),
    ),
)
