"""The decision makers of a game: their accounts, from the rounds that were asked while they were there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.decision_makers.accounts import ENTRIES, Batch, account, cdl_totals
from onlinecal.decision_makers.tenures import Tenure
from onlinecal.measures.decision import cdl


class Accounts:
    """Gains and regrets of each decision maker in a game or run of a world with their times as `cuts`.

    A decision maker acts on the questions that are asked while it is there. Its account has those with a known outcome,
    even if it left before.
    """

    def __init__(self, game: Any, tenures: Sequence[Tenure]) -> None:
        self.game, self.tenures, grid = game, tenures, game.ledger.grid
        ends = [game.ledger.stretches(*_ends(tenure)) for tenure in tenures]
        #: of each decision maker, the first stretch and that after its last
        self._stretches = np.array(ends, np.int64).reshape(-1, 2)
        #: whether levels are points of a grid, each once and in order: accounts can then be had in one pass
        self._ascends = grid is not None and bool((np.diff(grid) > 0.0).all())
        self._together = [k for k, tenure in enumerate(tenures) if self._ascends and Batch.takes(tenure)]
        self._batch = Batch([tenures[k] for k in self._together])

    def read(self) -> Floats:
        """The `ENTRIES` now, (decision makers, runs, 5); zeros where there is no round yet."""
        runs, ledger = len(self.game.runs), self.game.ledger
        entries = np.zeros((len(self.tenures), runs, len(ENTRIES)))
        if not ledger.rounds:
            return entries
        if self._together:
            counts, positives = ledger.running_counts()
            ends = np.minimum(self._stretches[self._together], len(counts) - 1)
            entries[self._together] = self._batch.accounts(ledger.grid, counts, positives, ends)
        for k in sorted(set(range(len(self.tenures))) - set(self._together)):
            entries[k] = account(self.tenures[k], ledger.gammas(None, *_ends(self.tenures[k])), runs)
        return entries

    def cdl(self) -> Floats:
        """The CDL of the rounds of each tenure as totals, (decision makers, runs)."""
        ledger = self.game.ledger
        totals = np.zeros((len(self.tenures), len(self.game.runs)))
        if self._ascends and ledger.rounds:
            counts, positives = ledger.running_counts()
            return cdl_totals(ledger.grid, counts, positives, np.minimum(self._stretches, len(counts) - 1))
        for k, tenure in enumerate(self.tenures):
            gammas = ledger.gammas(None, *_ends(tenure)) if ledger.rounds else None
            totals[k] = 0.0 if gammas is None else [gamma.weight * cdl(gamma) for gamma in gammas]
        return totals


def _ends(tenure: Tenure) -> tuple[float, float]:
    """The cuts between which it is there: from the beginning if it joins at 0, never if it leaves at once."""
    if tenure.leave == tenure.join:
        return np.inf, np.inf
    return tenure.join if tenure.join > 0.0 else -np.inf, tenure.leave
