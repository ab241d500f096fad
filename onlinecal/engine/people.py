"""The decision makers of a game: their accounts, from the rounds that were asked while they were there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from onlinecal.decision_makers.accounts import ENTRIES, Batch, account, cdl_totals
from onlinecal.decision_makers.tenures import Tenure
from onlinecal.engine.ledger import Ledger
from onlinecal.measures.decision import cdl
from onlinecal.rounds.law import Floats


class Accounts:
    """Gains and regrets of each decision maker in a game, over the questions that it has acted on.

    A decision maker acts on the questions that are asked while it is there, and its account has those whose outcome is
    known, be it after it left. The game must have been made with the `cuts` of these people.

    Parameters
    ----------
    game : Game, or a run of a world
    tenures : sequence of Tenure
    """

    def __init__(self, game: Any, tenures: Sequence[Tenure]) -> None:
        self.game, self.tenures = game, tenures
        self._batch: tuple[NDArray[np.int64], Batch] | None = None
        self._alone: list[int] = []
        self._ends: NDArray[np.int64] | None = None

    def read(self) -> Floats:
        """The `ENTRIES` now, (decision makers, runs, 5); zeros for who has no round yet."""
        runs, ledger = len(self.game.runs), self.game.ledger
        entries = np.zeros((len(self.tenures), runs, len(ENTRIES)))
        if not ledger.rounds:
            return entries
        together = self._together(ledger)
        if together is not None:
            places, batch = together
            counts, positives = ledger.running_counts()
            ends = np.minimum(self._stretches(ledger)[places], len(counts) - 1)
            assert ledger.grid is not None
            entries[places] = batch.accounts(ledger.grid, counts, positives, ends)
        alone = range(len(self.tenures)) if together is None else self._alone
        for k in alone:
            gammas = ledger.gammas(None, *_ends(self.tenures[k]))
            entries[k] = account(self.tenures[k], gammas, runs)
        return entries

    def cdl(self) -> Floats:
        """The CDL of the rounds of each tenure as totals, (decision makers, runs)."""
        totals = np.zeros((len(self.tenures), len(self.game.runs)))
        ledger = self.game.ledger
        if not ledger.rounds:
            return totals
        if _ascends(ledger.grid):
            counts, positives = ledger.running_counts()
            return cdl_totals(
                ledger.grid, counts, positives, np.minimum(self._stretches(ledger), len(counts) - 1)
            )
        for k, tenure in enumerate(self.tenures):
            gammas = ledger.gammas(None, *_ends(tenure))
            totals[k] = 0.0 if gammas is None else [gamma.weight * cdl(gamma) for gamma in gammas]
        return totals

    def _stretches(self, ledger: Ledger) -> NDArray[np.int64]:
        """Of each decision maker, the first stretch and that after its last."""
        if self._ends is None:
            self._ends = np.array([ledger.stretches(*_ends(t)) for t in self.tenures], np.int64).reshape(
                -1, 2
            )
        return self._ends

    def _together(self, ledger: Ledger) -> tuple[NDArray[np.int64], Batch] | None:
        """Those whose accounts can be had in one pass, and that pass; None for none."""
        if not _ascends(ledger.grid):
            return None
        if self._batch is None:
            places = [k for k, tenure in enumerate(self.tenures) if Batch.takes(tenure)]
            self._alone = sorted(set(range(len(self.tenures))) - set(places))
            self._batch = np.array(places, np.int64), Batch([self.tenures[k] for k in places])
        return self._batch


def _ascends(grid: Floats | None) -> TypeGuard[Floats]:
    """Whether levels are points of a grid, each once and in order."""
    return grid is not None and bool((np.diff(grid) > 0.0).all())


def _ends(tenure: Tenure) -> tuple[float, float]:
    """The cuts between which it is there: from the beginning for who joins at 0, never for who leaves at once."""
    if tenure.leave == tenure.join:
        return np.inf, np.inf
    return tenure.join if tenure.join > 0.0 else -np.inf, tenure.leave
