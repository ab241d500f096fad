"""Payoff and regrets of a task, sample by sample and over all swap functions."""

from __future__ import annotations

from itertools import product

from onlinecal.joint import JointDistribution
from onlinecal.tasks import DecisionTask


def responses(gamma: JointDistribution, task: DecisionTask, tie: float = 1e-12) -> list[int]:
    """The action at each level, ties against the forecaster."""
    chosen = []
    for v, q in zip(gamma.predictions.tolist(), gamma.means.tolist(), strict=True):
        expected = [(1 - v) * u0 + v * u1 for u0, u1 in task.payoffs]
        tied = [a for a, e in enumerate(expected) if e >= max(expected) - tie]
        chosen.append(min(tied, key=lambda a: (1 - q) * task.payoffs[a][0] + q * task.payoffs[a][1]))
    return chosen


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
