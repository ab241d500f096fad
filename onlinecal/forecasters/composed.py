"""Forecasters made of others: composition instead of inheritance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal._compile import kernel
from onlinecal.errors import InvalidParameter
from onlinecal.expressions import evaluate, grid_steps
from onlinecal.forecasters.base import (
    Floats,
    Forecaster,
    ForecasterView,
    Ints,
    Law,
    Player,
    grid_of,
    grid_values,
)
from onlinecal.streams import Stream


@dataclass(frozen=True)
class Doubling(Forecaster):
    """Makes a forecaster that is tuned to a horizon play without one: restarts it with first, 2·first, 4·first, ….

    Parameters
    ----------
    of : Forecaster
        The one that is restarted.
    first : int, default 16
        Length of the first epoch; at least 1.

    Guarantee
    ---------
    If the restarted forecaster has a subadditive total of at most c·T^α, this one has at most c·T^α/(1 −
    2^{−α}) plus what the first epoch costs; not one of the table's.

    Information
    -----------
    As the restarted one; does not need the horizon. Keeps the history, since grids change with the epoch.

    Source
    ------
    The doubling trick, Cesa-Bianchi et al. 1997. Deviations: none.
    """

    of: Forecaster
    first: int = 16

    def __post_init__(self) -> None:
        _check_forecasters("of", (self.of,))
        if not isinstance(self.first, int) or isinstance(self.first, bool) or not 1 <= self.first <= 10**9:
            raise InvalidParameter(f"first = {self.first!r}; expected an integer from 1 to 10^9")

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """What the restarted one needs."""
        return self.of.needs

    @property
    def deterministic(self) -> bool | None:  # type: ignore[override]
        """Whether the restarted one is."""
        return self.of.deterministic

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player at the beginning of its first epoch."""
        return _DoublingPlayer(self, runs, stream)


@dataclass(frozen=True)
class Rounded(Forecaster):
    """Rounds another's forecasts to the grid 0, 1/m, …, 1.

    Parameters
    ----------
    of : Forecaster
    m : int or str
        Steps of the grid, rounded up; a number or an expression in T.
    how : {"nearest", "random", "down"}, default "nearest"
        To the nearest point (ties to the even one); to one of the two neighbours at random with the forecast as the
        mean; or to the one below.

    Guarantee
    ---------
    None of its own.

    Information
    -----------
    As the other, which is told what it said itself, not what it was rounded to.

    Source
    ------
    Bairaktari, Hu, Nguyen and Ullman 2026, Definition 3.1, for the random rounding. Deviations: none.
    """

    of: Forecaster
    m: int | str
    how: Literal["nearest", "random", "down"] = "nearest"

    def __post_init__(self) -> None:
        _check_forecasters("of", (self.of,))
        grid_steps("m", self.m, 1000)
        if self.how not in ("nearest", "random", "down"):
            raise InvalidParameter(f"how = {self.how!r}; expected 'nearest', 'random' or 'down'")

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """What the other needs."""
        return self.of.needs

    @property
    def deterministic(self) -> bool | None:  # type: ignore[override]
        """Whether the other is and the rounding is not random."""
        return False if self.how == "random" else self.of.deterministic

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player on the grid of this horizon."""
        return _RoundedPlayer(
            self.of.start(horizon, runs, stream), runs, grid_steps("m", self.m, horizon), self.how
        )


@dataclass(frozen=True)
class ExpertMixture(Forecaster):
    """Hedges over forecasters: the law is the mixture of their laws, weighted by exp(−η · squared loss so far).

    Parameters
    ----------
    of : sequence of Forecaster
        The experts, at least one.
    rate : float or str, default "T^(-1/2)"
        η up to the factor √(8 ln K) for K experts; a number or an expression in T.

    Guarantee
    ---------
    E[Brier total] ≤ that of the best expert + √(T ln K / 2) against natures that see the law, at the default rate. The
    bound depends on the experts and so is not one of the table's. Calibration: none proved.

    Information
    -----------
    Randomised; needs the horizon (through the rate). Time and memory of all experts.

    Source
    ------
    Freund and Schapire 1997 (Hedge); Cesa-Bianchi and Lugosi 2006, Theorem 2.2. Deviations: the loss of an
    expert is the
    expected squared loss of its law. Each expert is told of a forecast drawn from its own law: the engine's draw
    where that came from it, else one of this player's own.
    """

    of: tuple[Forecaster, ...]
    rate: float | str = "T^(-1/2)"

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", tuple(self.of) if isinstance(self.of, Sequence) else (self.of,))
        _check_forecasters("of", self.of)
        evaluate(self.rate, 1000)

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """What any of the experts needs."""
        return frozenset().union(*(expert.needs for expert in self.of))

    @property
    def deterministic(self) -> bool | None:  # type: ignore[override]
        """Whether its only expert is."""
        return self.of[0].deterministic if len(self.of) == 1 else False

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player with equal weights."""
        rate = evaluate(self.rate, horizon) * math.sqrt(8.0 * math.log(max(2, len(self.of))))
        return _MixturePlayer([expert.start(horizon, runs, stream) for expert in self.of], runs, rate, stream)


def _check_forecasters(name: str, values: Sequence[Any]) -> None:
    if not values:
        raise InvalidParameter(f"{name} is empty; expected at least one forecaster")
    for value in values:
        if not isinstance(value, Forecaster):
            raise InvalidParameter(
                f"{name} = {value!r}; expected a forecaster (in a scenario: a table with a name)"
            )


class _Part:
    """A player among or under others, with its law of the round and room for what it is told that was drawn."""

    def __init__(self, player: Player) -> None:
        self.player = player
        self.law = Law(1, 1)  # until it states one
        self.told = np.empty(0)

    def state(self, view: ForecasterView) -> Law:
        """Its law of this round."""
        self.law = self.player.forecast(view)
        atoms = self.law.atoms
        if len(self.told) != len(atoms) or self.told.dtype != atoms.dtype:
            self.told = np.empty(len(atoms), atoms.dtype)
        return self.law

    def update(self, outcome: Ints) -> None:
        """Tells it of the atoms that its law's `drawn` points to."""
        _look_up(self.law.atoms, self.law.drawn, self.told)
        self.player.update(self.told, outcome)


class _DoublingPlayer:
    def __init__(self, spec: Doubling, runs: int, stream: Stream) -> None:
        self.spec, self.runs, self.stream = spec, runs, stream
        self.length, self.left = spec.first, spec.first
        self.part = _Part(spec.of.start(self.length, runs, stream))
        self.law = Law(runs, 1)

    def forecast(self, view: ForecasterView) -> Law:
        inner = self.part.state(view)
        if self.law.atoms.shape != inner.atoms.shape:
            self.law = Law(*inner.atoms.shape)
        if inner.grid is None:
            self.law.atoms[...] = inner.atoms
        else:
            grid_values(inner.atoms, inner.grid, self.law.atoms)
        self.law.weights[...] = inner.weights
        return self.law

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        self.part.law.drawn[...] = self.law.drawn
        self.part.update(outcome)
        self.left -= 1
        if self.left == 0:
            self.length *= 2
            self.left = self.length
            self.part = _Part(self.spec.of.start(self.length, self.runs, self.stream))


class _RoundedPlayer:
    def __init__(self, player: Player, runs: int, m: int, how: str) -> None:
        self.part, self.how, self.grid = _Part(player), how, grid_of(m)
        #: atom j of the inner law becomes the atoms from fold·j to fold·j + fold − 1
        self.fold = 2 if how == "random" else 1
        self.law = Law(runs, self.fold, self.grid)
        self.values = np.empty((runs, 1))

    def forecast(self, view: ForecasterView) -> Law:
        inner = self.part.state(view)
        runs, size = inner.atoms.shape
        if self.values.shape[1] != size:
            self.law = Law(runs, self.fold * size, self.grid)
            self.values = np.empty((runs, size))
        values = self.values
        if inner.grid is None:
            values = inner.atoms
        else:
            grid_values(inner.atoms, inner.grid, values)
        if self.how == "random":
            _split_between(values, inner.weights, self.grid, self.law.atoms, self.law.weights)
        else:
            self.law.weights[...] = inner.weights
            if self.how == "nearest":
                _nearest(values, len(self.grid) - 1, self.law.atoms)
            else:
                _below(values, self.grid, self.law.atoms)
        return self.law

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        np.floor_divide(self.law.drawn, self.fold, out=self.part.law.drawn)
        self.part.update(outcome)


class _MixturePlayer:
    BLOCK = 256

    def __init__(self, players: list[Player], runs: int, rate: float, stream: Stream) -> None:
        self.parts, self.rate, self.stream = [_Part(player) for player in players], rate, stream
        self.loss = np.zeros((runs, len(players)))
        self.shares = np.zeros((runs, len(players)))
        self.law = Law(runs, 1)
        self.dice: Floats | None = None
        self.row = self.BLOCK

    def forecast(self, view: ForecasterView) -> Law:
        laws = [part.state(view) for part in self.parts]
        size = sum(law.atoms.shape[1] for law in laws)
        if self.law.atoms.shape[1] != size:
            self.law = Law(len(self.loss), size)
        _hedge(self.loss, self.rate, self.shares)
        first = 0
        for k, law in enumerate(laws):
            if law.grid is None:
                _add_reals(law.atoms, law.weights, self.shares, k, first, self.law.atoms, self.law.weights)
            else:
                _add_points(
                    law.atoms, law.grid, law.weights, self.shares, k, first, self.law.atoms, self.law.weights
                )
            first += law.atoms.shape[1]
        return self.law

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        if self.row == self.BLOCK:
            self.dice, self.row = self.stream.block(self.BLOCK * len(self.parts), out=self.dice), 0
        first = 0
        for k, part in enumerate(self.parts):
            law = part.law
            row = self.row * len(self.parts) + k
            _tell(
                self.law.drawn,
                first,
                self.dice,
                row,
                self.law.atoms,
                law.weights,
                outcome,
                self.loss,
                k,
                law.drawn,
            )
            part.update(outcome)
            first += law.atoms.shape[1]
        self.row += 1


@kernel
def _look_up(atoms, drawn, out):
    """The atoms that were drawn, as the law's own player understands them."""
    for r in range(len(drawn)):
        out[r] = atoms[r, drawn[r]]


@kernel
def _nearest(values, m, atoms):
    """Each value to the nearest point of the grid, at a tie to the even one."""
    runs, size = values.shape
    for r in range(runs):
        for j in range(size):
            atoms[r, j] = np.int64(np.rint(values[r, j] * m))


@kernel
def _below(values, grid, atoms):
    """Each value to the point of the grid at or below it; compared with the grid, as a product may round over it."""
    runs, size = values.shape
    for r in range(runs):
        for j in range(size):
            atoms[r, j] = np.searchsorted(grid, values[r, j], side="right") - 1


@kernel
def _split_between(values, weights, grid, atoms, shares):
    """Each value onto its two neighbours of the grid, with the value as the mean."""
    runs, size = values.shape
    m = len(grid) - 1
    for r in range(runs):
        for j in range(size):
            i = min(max(np.searchsorted(grid, values[r, j], side="right") - 1, 0), m - 1)
            up = min(1.0, max(0.0, (values[r, j] - grid[i]) / (grid[i + 1] - grid[i])))
            atoms[r, 2 * j], atoms[r, 2 * j + 1] = i, i + 1
            shares[r, 2 * j], shares[r, 2 * j + 1] = weights[r, j] * (1.0 - up), weights[r, j] * up


@kernel
def _hedge(loss, rate, shares):
    runs, experts = loss.shape
    for r in range(runs):
        least = loss[r, 0]
        for k in range(1, experts):
            least = min(least, loss[r, k])
        total = 0.0
        for k in range(experts):
            shares[r, k] = math.exp(rate * (least - loss[r, k]))
            total += shares[r, k]
        for k in range(experts):
            shares[r, k] /= total


@kernel
def _add_reals(values, weights, shares, k, first, atoms, mixed):
    runs, size = values.shape
    for r in range(runs):
        for j in range(size):
            atoms[r, first + j] = values[r, j]
            mixed[r, first + j] = shares[r, k] * weights[r, j]


@kernel
def _add_points(points, grid, weights, shares, k, first, atoms, mixed):
    runs, size = points.shape
    for r in range(runs):
        for j in range(size):
            atoms[r, first + j] = grid[points[r, j]]
            mixed[r, first + j] = shares[r, k] * weights[r, j]


@kernel
def _tell(drawn, first, dice, row, atoms, weights, outcome, loss, k, own):
    """Charges expert k its expected squared loss, and says which atom it is to believe was drawn: the engine's where
    that is the expert's, else one by its own law.
    """
    runs, size = weights.shape
    for r in range(runs):
        j = drawn[r] - first
        pick, total, u = 0, 0.0, dice[row, r]
        for i in range(size):
            w = weights[r, i]
            loss[r, k] += w * (atoms[r, first + i] - outcome[r]) ** 2
            if w > 0.0 and total <= u:
                pick = i
            total += w
        own[r] = j if 0 <= j < size else pick
