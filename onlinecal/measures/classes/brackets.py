"""Bounds of the linear programs, for any number of levels."""

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.classes import ClassDistribution, of_classes
from onlinecal.measures.base import Bracket
from onlinecal.measures.classes.sums import ece
from onlinecal.measures.decision import cdl as cdl_of_event
from onlinecal.measures.decision import u_calibration as u_calibration_of_event
from onlinecal.measures.smooth_ce import smooth_ce as smooth_ce_of_event
from onlinecal.measures.witnesses.base import between

#: levels whose own worst tasks are tried on all levels
TRIED = 64


@of_classes
def cdl_bracket(gamma: ClassDistribution) -> Bracket:
    """Two bounds of `cdl`, for any number of levels.

    Below, the worst of some tasks: of each class against the rest, and of two actions that are the worst for one of the
    64 levels with the largest errors. Above, 2 `ece`.
    """
    low = max(cdl_of_event(gamma.classwise(label)) for label in gamma.labels)
    return between(max(low, _two_actions(gamma, swap=True)), min(2.0 * ece(gamma), 1.0))


@of_classes
def u_calibration_bracket(gamma: ClassDistribution) -> Bracket:
    """Two bounds of `u_calibration`, for any number of levels, by the tasks of `cdl_bracket` and 2 `ece`."""
    low = max(u_calibration_of_event(gamma.classwise(label)) for label in gamma.labels)
    return between(max(low, _two_actions(gamma, swap=False)), min(2.0 * ece(gamma), 1.0))


@of_classes
def smooth_ce_bracket(gamma: ClassDistribution) -> Bracket:
    """Two bounds of `smooth_ce`, for any number of levels.

    Below, half of the sum of the binary measure of the classes: a function of v_k is one of v. Above, `ece`.
    """
    low = 0.5 * sum(smooth_ce_of_event(gamma.classwise(label)) for label in gamma.labels)
    return between(low, ece(gamma))


def _two_actions(gamma: ClassDistribution, swap: bool) -> float:
    """The largest regret among tasks of two actions, each the worst for one level alone."""
    heavy = np.argsort(-np.abs(gamma.residuals).sum(axis=1), kind="stable")[:TRIED]
    most, pays = 0.0, gamma.mass[:, None] * gamma.means
    for v, q in zip(gamma.predictions[heavy], gamma.means[heavy], strict=True):
        better = worst_difference(v, q)
        # A level with ⟨v, D⟩ ≤ 0 stays; ties are broken against the forecaster.
        expected, gains = gamma.predictions @ better, pays @ better
        if swap:
            stay, go = expected <= 0.0, expected >= 0.0
            regret = np.maximum(np.where(stay, gains, 0.0), np.where(go, -gains, 0.0)).sum()
        else:
            taken = np.where(expected == 0.0, np.minimum(gains, 0.0), np.where(expected > 0.0, gains, 0.0))
            regret = max(float(gains.sum()), 0.0) - float(taken.sum())
        most = max(most, float(regret))
    return most


def worst_difference(v: Floats, q: Floats) -> Floats:
    """D in [−1, 1]^K with ⟨v, D⟩ ≤ 0 and the largest ⟨q, D⟩: what one action pays more than another."""
    # Begin with −1 and raise the classes in the order of q_k/v_k, as long as ⟨v, D⟩ ≤ 0 allows.
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(v > 0.0, q / v, np.inf), kind="stable")
    before = np.concatenate(([0.0], np.cumsum(v[order])[:-1]))
    better = np.empty(len(v))
    with np.errstate(divide="ignore", invalid="ignore"):
        better[order] = np.where(v[order] > 0.0, np.clip((0.5 - before) / v[order], 0.0, 1.0), 1.0)
    # Rounding must not make it the better one at v.
    better = 2.0 * better - 1.0
    return better - max(float(v @ better), 0.0)
