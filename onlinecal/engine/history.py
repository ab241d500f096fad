"""What the engine writes down of resolved rounds: sufficient statistics that give Γ of each run at a checkpoint."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.rounds.law import Floats
from onlinecal.rounds.record import Round


class History(Protocol):
    """An observer of resolved rounds, for R runs."""

    #: how many it has
    rounds: int

    @property
    def room(self) -> int:
        """How many it has room for, 0 where it needs none; its arrays are others when it changes."""

    def update(self, round: Round) -> None:
        """Adds a round whose outcome is known."""

    def reserve(self, rounds: int) -> None:
        """Makes room for so many more rounds."""

    def played(self, rounds: int) -> None:
        """Takes note that so many rounds have been written into its arrays by the compiled loop."""

    def gammas(self) -> list[JointDistribution]:
        """Γ of each run over the rounds so far."""


class GridHistory:
    """Counts of rounds and of outcomes 1 by grid index: memory does not grow with time."""

    def __init__(self, runs: int, grid: Floats) -> None:
        self.grid = grid
        self.counts = np.zeros((runs, len(grid)), np.int64)
        self.positives = np.zeros((runs, len(grid)), np.int64)
        self.rounds = 0

    @property
    def room(self) -> int:
        """None is needed."""
        return 0

    def update(self, round: Round) -> None:
        """Counts the atoms that were drawn."""
        _count(round.atom, round.outcome, self.counts, self.positives)
        self.rounds += 1

    def reserve(self, rounds: int) -> None:
        """Counts need none."""

    def played(self, rounds: int) -> None:
        """The counts hold so many more rounds."""
        self.rounds += rounds

    def gammas(self) -> list[JointDistribution]:
        """Γ of each run, from its counts."""
        n, s = self.counts.astype(np.float64), self.positives.astype(np.float64)
        return [JointDistribution.from_counts(self.grid, n[r], s[r]) for r in range(len(n))]


class RealHistory:
    """Every forecast with its outcome in 8 bytes, sorted piece by piece.

    Up to the last checkpoint the keys are sorted; a checkpoint sorts only what has come since and merges the two.
    """

    def __init__(self, runs: int, room: int) -> None:
        self.keys = np.empty((runs, room), np.int64)
        self.rounds = 0
        self.sorted = 0

    @property
    def room(self) -> int:
        """How many keys of a run there is room for."""
        return self.keys.shape[1]

    def update(self, round: Round) -> None:
        """Appends the forecasts with their outcomes."""
        self.reserve(1)
        _append(round.forecast.view(np.int64), round.outcome, self.keys, self.rounds)
        self.rounds += 1

    def played(self, rounds: int) -> None:
        """There are so many more keys."""
        self.rounds += rounds

    def reserve(self, rounds: int) -> None:
        """Makes room, at least twice as much as there was where it is not enough."""
        runs, room = self.keys.shape
        if self.rounds + rounds > room:
            keys = np.empty((runs, max(2 * room, self.rounds + rounds)), np.int64)
            keys[:, : self.rounds] = self.keys[:, : self.rounds]
            self.keys = keys

    def gammas(self) -> list[JointDistribution]:
        """Γ of each run, from its sorted keys."""
        return [JointDistribution.from_sorted_keys(keys) for keys in self.sorted_keys()]

    def sorted_keys(self) -> NDArray[np.int64]:
        """All keys in order, (runs, rounds); they stay so only until the next round."""
        if self.rounds > self.sorted:
            for keys in self.keys:
                keys[self.sorted : self.rounds].sort()
                # The stable sort finds the two ascending pieces and merges them.
                keys[: self.rounds].sort(kind="stable")
            self.sorted = self.rounds
        return self.keys[:, : self.rounds]


def check_memory(runs: int, rounds: int) -> None:
    """Refuses games of a forecaster without a grid that this machine has no memory for."""
    needed, free = 8 * runs * rounds, _memory()
    if needed > 0.8 * free:
        raise InvalidParameter(
            f"{runs} runs of {rounds} rounds need {needed / 2**30:.1f} GiB of history for a forecaster without "
            f"a grid, and this machine has {free / 2**30:.1f} GiB; expected fewer runs at a time or rounds"
        )


def check_counts(runs: int, points: int, tables: int) -> None:
    """Refuses games whose parts have so many tables of counts on a grid that this machine has no memory for them."""
    needed, free = 8 * runs * points * tables, _memory()
    if needed > 0.8 * free:
        raise InvalidParameter(
            f"{runs} runs with {tables} tables of {points} counts, for stretches between decision makers who join and "
            f"leave and for streams, need {needed / 2**30:.1f} GiB, and this machine has {free / 2**30:.1f} GiB; "
            "expected fewer decision makers, a smaller grid, or fewer runs at a time"
        )


def _memory() -> float:
    """Bytes of memory of this machine, or no limit where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return float("inf")


@kernel
def _count(atom, outcome, counts, positives):
    for r in range(len(atom)):
        counts[r, atom[r]] += 1
        positives[r, atom[r]] += outcome[r]


@kernel
def _append(bits, outcome, keys, t):
    for r in range(len(bits)):
        keys[r, t] = bits[r] << 1 | outcome[r]  # the encoding of joint.encode
