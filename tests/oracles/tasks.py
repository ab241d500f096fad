"""Payoff and regrets of a task, sample by sample and over all swap functions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions.tasks import TIE, DecisionTask


def tied(v: float, task: DecisionTask) -> list[int]:
    """The actions with an expected payoff at v within `TIE` of the best, in exact arithmetic."""
    p = Fraction(v)
    expected = [(1 - p) * Fraction(u0) + p * Fraction(u1) for u0, u1 in task.payoffs]
    return [a for a, e in enumerate(expected) if e >= max(expected) - Fraction(TIE)]


def crowded(gamma: JointDistribution, task: DecisionTask) -> bool:
    """Whether two levels are both tied between the same two actions, so that only one is on the kink."""
    sets = [set(tied(v, task)) for v in gamma.predictions.tolist()]
    return any(len(a & b) > 1 for a, b in pairwise(sets))


def responses(gamma: JointDistribution, task: DecisionTask) -> list[int]:
    """The action at each level, ties against the forecaster; where no two levels are `crowded` on a kink."""
    chosen = []
    for v, q in zip(gamma.predictions.tolist(), gamma.means.tolist(), strict=True):
        earns = [(1 - q) * u0 + q * u1 for u0, u1 in task.payoffs]
        chosen.append(min(tied(v, task), key=lambda a: earns[a]))
    return chosen


def swap_regret_of_two_actions(gamma: JointDistribution, task: DecisionTask) -> float:
    """The largest over which of the tied levels is the one on the kink, each choice in exact arithmetic."""
    (a0, a1), (b0, b1) = (tuple(map(Fraction, row)) for row in task.payoffs)
    if b1 - b0 < a1 - a0:  # b is the action for high v
        a0, a1, b0, b1 = b0, b1, a0, a1
    rows = [
        tuple(map(Fraction, row))
        for row in zip(gamma.predictions.tolist(), gamma.mass.tolist(), gamma.means.tolist(), strict=True)
    ]

    def gain(p: Fraction) -> Fraction:
        return (1 - p) * (b0 - a0) + p * (b1 - a1)

    at_kink = [i for i, (v, _, _) in enumerate(rows) if abs(gain(v)) <= Fraction(TIE)]
    worst = Fraction(0)
    for on in at_kink or [None]:
        total = Fraction(0)
        for i, (v, w, q) in enumerate(rows):
            if on is None or i == on:
                low, high = (gain(v) <= 0, gain(v) >= 0) if on is None else (True, True)
            else:
                low, high = i < on, i > on
            regrets = [max(gain(q), 0)] * low + [max(-gain(q), 0)] * high
            total += w * max(regrets) if q != v else 0
        worst = max(worst, total)
    return float(worst)


def earned(gamma: JointDistribution, task: DecisionTask, actions: list[int]) -> float:
    """E[u(a_i, y)] for one action per level."""
    total = 0.0
    for w, q, a in zip(gamma.mass.tolist(), gamma.means.tolist(), actions, strict=True):
        total += w * ((1 - q) * task.payoffs[a][0] + q * task.payoffs[a][1])
    return total


def payoff(gamma: JointDistribution, task: DecisionTask) -> float:
    return earned(gamma, task, responses(gamma, task))


def external_regret(gamma: JointDistribution, task: DecisionTask) -> float:
    best = max(earned(gamma, task, [a] * gamma.levels) for a in range(len(task.payoffs)))
    return best - payoff(gamma, task)


def action_swap_regret(gamma: JointDistribution, task: DecisionTask) -> float:
    """Over all functions of the action."""
    chosen = responses(gamma, task)
    actions = range(len(task.payoffs))
    best = max(earned(gamma, task, [phi[a] for a in chosen]) for phi in product(actions, repeat=len(actions)))
    return best - payoff(gamma, task)


def swap_regret(gamma: JointDistribution, task: DecisionTask) -> float:
    """Over all functions of the level."""
    actions = range(len(task.payoffs))
    best = max(earned(gamma, task, list(sigma)) for sigma in product(actions, repeat=gamma.levels))
    return best - payoff(gamma, task)
