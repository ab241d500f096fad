"""Forecasters made of others: composition instead of inheritance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Rows
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import check_expression, check_steps, grid_steps, value_at
from onlinecal.core.strategy import check_whole, strategy_name
from onlinecal.core.streams import Draws, Stream
from onlinecal.forecasters.base import Forecaster, Player, grid_of
from onlinecal.rounds.law import Floats, Ints, Law
from onlinecal.rounds.protocol import protocol_fault
from onlinecal.rounds.record import Recorder, Round, check_round, not_ours, tell


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
        check_whole("first", self.first, 1, 10**9)

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
        check_steps("m", self.m)
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
        part = _Part(self.of, self.of.start(horizon, runs, stream), runs)
        return _RoundedPlayer(part, runs, grid_steps("m", self.m, horizon), self.how)


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

    version: ClassVar[int] = 2

    of: tuple[Forecaster, ...]
    rate: float | str = "T^(-1/2)"

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", tuple(self.of) if isinstance(self.of, Sequence) else (self.of,))
        _check_forecasters("of", self.of)
        check_expression("rate", self.rate, 0.0, 1e9)

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
        rate = value_at(self.rate, horizon) * math.sqrt(8.0 * math.log(max(2, len(self.of))))
        # Streams of their own: players read the numbers of theirs by index, from the first on.
        parts = [
            _Part(expert, expert.start(horizon, runs, stream.child(f"expert {k}")), runs)
            for k, expert in enumerate(self.of)
        ]
        return _MixturePlayer(parts, runs, rate, stream)


def _check_forecasters(name: str, values: Sequence[Any]) -> None:
    if not values:
        raise InvalidParameter(f"{name} is empty; expected at least one forecaster")
    for value in values:
        if not isinstance(value, Forecaster):
            raise InvalidParameter(
                f"{name} = {value!r}; expected a forecaster (in a scenario: a table with a name)"
            )


class _Part:
    """A player among or under others. Its rounds are records like those of the engine, and travel in the memo."""

    def __init__(self, forecaster: Forecaster, player: Player, runs: int) -> None:
        fault = protocol_fault(forecaster, player)
        if fault:
            raise InvalidParameter(f"forecaster {strategy_name(forecaster)!r}, part of another: {fault}")
        self.player, self.recorder = player, Recorder(runs)

    def state(self, whole: Round, number: int | None = None) -> Round:
        """This round as the part plays it, with its law; it may count rounds by itself."""
        round = Round(whole.number if number is None else number, whole.time, whole.context)
        self.recorder.record(round, self.player.forecast(round))
        return round

    def update(self, round: Round, drawn: Ints, whole: Round) -> None:
        """Tells it which atom of its law it is to believe was drawn, and the outcome."""
        tell(round, drawn, whole.outcome, whole.resolved)
        self.player.update(round)


def _memo(round: Round, law: Law, kind: type) -> Any:
    """What `forecast` left on a round of these laws."""
    check_round(round, law)
    if not isinstance(round.memo, kind):
        raise not_ours(round)
    return round.memo


class _DoublingPlayer:
    def __init__(self, spec: Doubling, runs: int, stream: Stream) -> None:
        self.spec, self.runs, self.stream = spec, runs, stream
        self.begin, self.length = 0, spec.first
        self.part = self._start()
        self.law = Law(runs, 1)

    def _start(self) -> _Part:
        of = self.spec.of
        stream = self.stream.child(f"epoch of {self.length}")
        return _Part(of, of.start(self.length, self.runs, stream), self.runs)

    def forecast(self, round: Round) -> Law:
        while round.number > self.begin + self.length:
            self.begin += self.length
            self.length *= 2
            self.part = self._start()
        inner = self.part.state(round, round.number - self.begin)
        round.memo = _Epoch(self.part, inner)
        law = inner.law
        if self.law.atoms.shape != law.weights.shape:
            self.law = Law(*law.weights.shape)
        self.law.atoms[...] = law.support
        self.law.weights[...] = law.weights
        return self.law

    def update(self, round: Round) -> None:
        memo = _memo(round, self.law, _Epoch)
        memo.part.update(memo.round, round.drawn, round)


@dataclass(slots=True)
class _Epoch:
    """A round of the part that was playing then."""

    part: _Part
    round: Round


class _RoundedPlayer:
    def __init__(self, part: _Part, runs: int, m: int, how: str) -> None:
        self.part, self.how, self.grid = part, how, grid_of(m)
        #: atom j of the inner law becomes the atoms from fold·j to fold·j + fold − 1
        self.fold = 2 if how == "random" else 1
        self.law = Law(runs, self.fold, self.grid)
        self.drawn = np.zeros(runs, np.int64)

    def forecast(self, round: Round) -> Law:
        round.memo = inner = self.part.state(round)
        values, weights = inner.law.support, inner.law.weights
        runs, size = weights.shape
        if self.law.atoms.shape[1] != self.fold * size:
            self.law = Law(runs, self.fold * size, self.grid)
        if self.how == "random":
            _split_between(values, weights, self.grid, self.law.atoms, self.law.weights)
        else:
            self.law.weights[...] = weights
            if self.how == "nearest":
                _nearest(values, len(self.grid) - 1, self.law.atoms)
            else:
                _below(values, self.grid, self.law.atoms)
        return self.law

    def update(self, round: Round) -> None:
        inner = _memo(round, self.law, Round)
        np.floor_divide(round.drawn, self.fold, out=self.drawn)
        self.part.update(inner, self.drawn, round)


class _MixturePlayer:
    def __init__(self, parts: list[_Part], runs: int, rate: float, stream: Stream) -> None:
        self.parts, self.rate = parts, rate
        #: for what an expert believes was drawn from its law where the forecast was another's
        self.uniforms = Draws(stream, len(parts), rounds=256)
        self.kept = Rows((len(parts), runs))
        self.loss = np.zeros((runs, len(parts)))
        self.shares = np.zeros((runs, len(parts)))
        self.drawn = np.zeros(runs, np.int64)
        self.law = Law(runs, 1)

    def forecast(self, round: Round) -> Law:
        rounds = [part.state(round) for part in self.parts]
        laws = [inner.law for inner in rounds]
        round.memo = _Experts(rounds, self.kept.keep(self.uniforms.of(round.number)))
        size = sum(law.weights.shape[1] for law in laws)
        if self.law.atoms.shape[1] != size:
            self.law = Law(len(self.loss), size)
        _hedge(self.loss, self.rate, self.shares)
        first = 0
        for k, law in enumerate(laws):
            _add_law(law.support, law.weights, self.shares, k, first, self.law.atoms, self.law.weights)
            first += law.weights.shape[1]
        return self.law

    def update(self, round: Round) -> None:
        memo = _memo(round, self.law, _Experts)
        first = 0
        for k, (part, inner) in enumerate(zip(self.parts, memo.rounds, strict=True)):
            law = inner.law
            _believe(
                round.drawn,
                first,
                memo.uniforms,
                k,
                law.support,
                law.weights,
                round.outcome,
                self.loss,
                self.drawn,
            )
            part.update(inner, self.drawn, round)
            first += law.weights.shape[1]


@dataclass(slots=True)
class _Experts:
    """A round as each of the experts plays it, and uniforms for what they are to believe, (experts, runs)."""

    rounds: list[Round]
    uniforms: Floats


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
def _add_law(values, weights, shares, k, first, atoms, mixed):
    """Adds the law of expert k, in its share, from place `first` on."""
    runs, size = values.shape
    for r in range(runs):
        for j in range(size):
            atoms[r, first + j] = values[r, j]
            mixed[r, first + j] = shares[r, k] * weights[r, j]


@kernel
def _believe(drawn, first, uniforms, k, values, weights, outcome, loss, own):
    """Charges expert k its expected squared loss, and says which atom it is to believe was drawn: the engine's where
    that is the expert's, else one by its own law.
    """
    runs, size = weights.shape
    for r in range(runs):
        j = drawn[r] - first
        pick, total, u = 0, 0.0, uniforms[k, r]
        for i in range(size):
            w = weights[r, i]
            loss[r, k] += w * (values[r, i] - outcome[r]) ** 2
            if w > 0.0 and total <= u:
                pick = i
            total += w
        own[r] = j if 0 <= j < size else pick
