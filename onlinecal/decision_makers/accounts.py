"""The accounts of decision makers: payoff and regrets over their tenures."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.columns import ACCOUNT
from onlinecal.core.joint import JointDistribution
from onlinecal.decision_makers.tenures import Tenure
from onlinecal.decisions.base import DecisionTask, account_of_levels
from onlinecal.measures.decision import cdl_of_levels

#: the account in each run: resolved rounds of the tenure, then totals over them
ENTRIES = ("rounds", *ACCOUNT)


def account(tenure: Tenure, gammas: Sequence[JointDistribution] | None, runs: int) -> Floats:
    """The `ENTRIES` of one decision maker, (runs, 5), from Γ of its tenure in each run; zeros without a round."""
    entries = np.zeros((runs, len(ENTRIES)))
    for row, gamma in zip(entries, gammas or (), strict=False):
        row[0] = gamma.weight
        row[1:] = gamma.weight * np.array(tenure.who.account(gamma))
    return entries


class Batch:
    """The accounts of many best-responding decision makers with tables of payoffs, in one pass over counts."""

    def __init__(self, tenures: Sequence[Tenure]) -> None:
        self.tenures = tenures
        envelopes = [t.who.envelope for t in tenures if isinstance(t.who, DecisionTask)]
        ends = np.cumsum([0] + [len(best) for best, *_ in envelopes])
        kinks = np.cumsum([0] + [len(low) for _, _, low, _ in envelopes])
        empty = np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros(0), np.zeros(0)
        parts = [np.concatenate([none, *(e[i] for e in envelopes)]) for i, none in enumerate(empty)]
        self._envelopes: tuple[Any, ...] = (ends, kinks, *parts)

    @staticmethod
    def takes(tenure: Tenure) -> bool:
        """Whether it takes this one; a derived class may account otherwise."""
        return isinstance(tenure.who, DecisionTask) and type(tenure.who).account is DecisionTask.account

    def accounts(self, grid: Floats, counts: Ints, positives: Ints, stretches: Ints) -> Floats:
        """The `ENTRIES`, (decision makers, runs, 5)."""
        out = np.zeros((len(self.tenures), counts.shape[1], len(ENTRIES)))
        _accounts(grid, counts, positives, stretches, *self._envelopes, out)
        return out


def cdl_totals(grid: Floats, counts: Ints, positives: Ints, stretches: Ints) -> Floats:
    """T·CDL of the rounds of each decision maker, (decision makers, runs); arguments as in `Batch.accounts`."""
    out = np.zeros((len(stretches), counts.shape[1]))
    _cdl_totals(grid, counts, positives, stretches, out)
    return out


@kernel
def _levels(grid, counts, positives, first, last, r, v, n, q):
    """Gather the levels of run r between two stretches; their number and weight."""
    levels, weight = 0, 0
    for i in range(len(grid)):
        rounds = counts[last, r, i] - counts[first, r, i]
        if rounds > 0:
            v[levels], n[levels] = grid[i], rounds
            q[levels] = (positives[last, r, i] - positives[first, r, i]) / rounds
            weight += rounds
            levels += 1
    return levels, weight


@kernel
def _cdl_totals(grid, counts, positives, stretches, out):
    points = len(grid)
    v, n, q = np.empty(points), np.empty(points), np.empty(points)
    for k in range(len(stretches)):
        for r in range(counts.shape[1]):
            levels, weight = _levels(grid, counts, positives, stretches[k, 0], stretches[k, 1], r, v, n, q)
            if levels > 0:
                share, _, first, _, second = cdl_of_levels(v[:levels], n[:levels], q[:levels])
                out[k, r] = weight * min(2.0 * (share * first + (1.0 - share) * second) / weight, 1.0)


@kernel
def _accounts(grid, counts, positives, stretches, ends, kinks, best, payoffs, low, high, out):
    points = len(grid)
    v, w, q = np.empty(points), np.empty(points), np.empty(points)
    for k in range(len(stretches)):
        for r in range(counts.shape[1]):
            levels, weight = _levels(grid, counts, positives, stretches[k, 0], stretches[k, 1], r, v, w, q)
            if levels == 0:
                continue
            for i in range(levels):
                w[i] /= weight
            a, b, c, d = ends[k], ends[k + 1], kinks[k], kinks[k + 1]
            payoff, external, action, swap = account_of_levels(
                v[:levels], w[:levels], q[:levels], best[a:b], payoffs[a:b], low[c:d], high[c:d]
            )
            out[k, r, 0], out[k, r, 1], out[k, r, 2] = weight, weight * payoff, weight * external
            out[k, r, 3], out[k, r, 4] = weight * action, weight * swap
