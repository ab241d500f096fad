"""Speed of the decision, cutoff, ECE and score measures. Run with `pytest tests/benchmarks --benchmark-only`.

n distinct predictions, outcomes drawn as predicted; Γ is built beforehand. No time is asserted.
"""

from __future__ import annotations

import numpy as np
import pytest

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.measures import binned, cutoff, decision, scores, soft_binned

MEASURES = [
    decision.cdl,
    decision.v_cdl,
    decision.u_calibration,
    decision.cfdl,
    soft_binned.scdl,
    soft_binned.scdl_binned,
    cutoff.cutoff_ce,
    cutoff.step_ce,
    cutoff.low_degree_ce,
    binned.ece,
    binned.binned_ece,
    scores.brier,
    scores.log_loss,
    scores.nce,
]


def distinct(n: int, errors: bool) -> JointDistribution:
    """n distinct predictions with one outcome each, or with random means."""
    rng = np.random.default_rng(n)
    v = np.unique(rng.random(2 * n))[::2][:n]
    if errors:
        return JointDistribution.from_levels(v, np.ones(len(v)), rng.random(len(v)))
    return JointDistribution.from_samples(v, rng.random(len(v)) < v)


@pytest.mark.parametrize("n", [60, 10**4, 10**5, 10**6])
@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.__name__)
def test_samples(benchmark, measure, n):
    gamma = distinct(n, errors=False)
    measure(gamma)  # compiles
    benchmark(measure, gamma)


@pytest.mark.parametrize("n", [10**4, 10**5, 10**6])
@pytest.mark.parametrize("measure", MEASURES[:5], ids=lambda m: m.__name__)
def test_random_means(benchmark, measure, n):
    gamma = distinct(n, errors=True)
    measure(gamma)
    benchmark(measure, gamma)


@pytest.mark.parametrize("name", tasks.TASKS)
def test_account_of_a_game(benchmark, name):
    """Payoff and the three regrets at k = 60."""
    gamma, task = distinct(60, errors=False), tasks.TASKS[name]()
    task.account(gamma)
    benchmark(task.account, gamma)
