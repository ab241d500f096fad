"""The decision makers of a game: their accounts, from the rounds that were asked while they were there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.decision_makers.accounts import ENTRIES, Batch, account, cdl_totals
from onlinecal.decision_makers.tenures import Tenure
from onlinecal.engine2.history import Counted
from onlinecal.measures.decision import cdl


class Accounts:
    """Gains and regrets of each decision maker in a game or run of a world with their times as `cuts`.

    A decision maker acts on the questions that are asked while it is there. Its account has those with a known outcome,
    even if it left before.
    """

    def __init__(self, game: Any, tenures: Sequence[Tenure]) -> None:
        self.game, self.tenures, history = game, tenures, game.history
        #: the ends of each tenure as cuts, and the first stretch and that after its last
        self._ends = [_ends(tenure) for tenure in tenures]
        stretches = [game.stretches(*ends) for ends in self._ends]
        self._stretches = np.array(stretches, np.int64).reshape(-1, 2)
        #: the counts, where levels are points of a grid, each once and in order. Accounts then take one pass.
        ascends = isinstance(history, Counted) and bool((np.diff(history.grid) > 0.0).all())
        self._counted = history if ascends else None
        self._together = [k for k, tenure in enumerate(tenures) if ascends and Batch.takes(tenure)]
        self._batch = Batch([tenures[k] for k in self._together])

    def read(self) -> Floats:
        """The `ENTRIES` now, (decision makers, runs, 5); zeros where there is no round yet."""
        runs = len(self.game.runs)
        entries = np.zeros((len(self.tenures), runs, len(ENTRIES)))
        if self._together and self._counted is not None:
            before, ends = self._before(self._together)
            entries[self._together] = self._batch.accounts(self._counted.grid, *before, ends)
        for k in sorted(set(range(len(self.tenures))) - set(self._together)):
            for run in range(runs):
                gamma = self.game.gamma(run, None, *self._ends[k])
                entries[k, run] = account(self.tenures[k], None if gamma is None else [gamma], 1)[0]
        return entries

    def cdl(self) -> Floats:
        """The CDL of the rounds of each tenure as totals, (decision makers, runs)."""
        if self._counted is not None:
            before, stretches = self._before(slice(None))
            return cdl_totals(self._counted.grid, *before, stretches)
        totals = np.zeros((len(self.tenures), len(self.game.runs)))
        for k, ends in enumerate(self._ends):
            for run in range(totals.shape[1]):
                gamma = self.game.gamma(run, None, *ends)
                totals[k, run] = 0.0 if gamma is None else gamma.weight * cdl(gamma)
        return totals

    def _before(self, which: Any) -> tuple[tuple[Ints, Ints], Ints]:
        """Rounds and outcomes 1 before each stretch, (stretches + 1, runs, points), and stretches of some tenures."""
        assert self._counted is not None
        counts, positives = self._counted.before_stretches(self.game.streams, len(self.game.cuts) + 1)
        return (counts, positives), np.minimum(self._stretches[which], len(counts) - 1)


def _ends(tenure: Tenure) -> tuple[float, float]:
    """The cuts between which it is there: from the beginning if it joins at 0, never if it leaves at once."""
    if tenure.leave == tenure.join:
        return np.inf, np.inf
    return tenure.join if tenure.join > 0.0 else -np.inf, tenure.leave
