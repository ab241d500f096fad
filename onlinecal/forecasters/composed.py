"""Forecasters made of others: composition instead of inheritance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from onlinecal.core.arrays import Rows
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import check_expression, check_steps, depends_on_horizon, value_at
from onlinecal.core.facts import every, memory_of, some
from onlinecal.core.strategy import check_whole
from onlinecal.core.streams import Draws, Stream
from onlinecal.forecasters._composed import doubling, mixture, of_steps, rounded
from onlinecal.forecasters._laws import add_law, believe, below, hedge, nearest, split_between
from onlinecal.forecasters._parts import Part, check_forecasters, checked, memo_of
from onlinecal.forecasters.base import Forecaster, OnGrid, Player, grid_of
from onlinecal.rounds.law import Floats, Law
from onlinecal.rounds.record import Round


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
    As the restarted one. Keeps the history, since grids change with the epoch.

    Source
    ------
    The doubling trick, Cesa-Bianchi et al. 1997. Deviations: none.
    """

    needs_horizon: ClassVar[bool | None] = False

    of: Forecaster
    first: int = 16

    def __post_init__(self) -> None:
        check_forecasters("of", (self.of,))
        check_whole("first", self.first, 1, 10**9)

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """What the restarted one needs."""
        return self.of.needs

    @property
    def deterministic(self) -> bool | None:  # type: ignore[override]
        """Whether the restarted one is."""
        return self.of.deterministic

    @property
    def safe_under_delay(self) -> bool | None:  # type: ignore[override]
        """Where the restarted one is."""
        return self.of.safe_under_delay

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        """That of the restarted one: epochs are of `first` rounds, or of no more than 2T."""
        return memory_of({"of": self.of})

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player at the beginning of its first epoch."""
        player: Any = _epoch_player(self, self.first, runs, stream)
        # What will be open at once in an epoch is not what the game says: questions of the last one may still be open.
        if not of_steps([player]) or player.prepares:
            return _DoublingPlayer(self, player, runs, stream)
        players, begin, length = [player], self.first, 2 * self.first
        while begin < horizon:
            players.append(_epoch_player(self, length, runs, stream))
            begin, length = begin + length, 2 * length
        if not of_steps(players):
            return _DoublingPlayer(self, player, runs, stream)
        return doubling(players, self.first, sorted(self.needs), runs)


@dataclass(frozen=True)
class Rounded(OnGrid):
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
        check_forecasters("of", (self.of,))
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

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        """Where the other or the grid does."""
        return some([depends_on_horizon(self.m), self.of.needs_horizon])

    @property
    def safe_under_delay(self) -> bool | None:  # type: ignore[override]
        """Where the other is."""
        return self.of.safe_under_delay

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        """That of the other, whose laws are among it."""
        return memory_of({"of": self.of})

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player on the grid of this horizon."""
        player = checked(self.of, self.of.start(horizon, runs, stream), runs)
        grid = grid_of(self.steps_at(horizon))
        if of_steps([player]):
            return rounded(player, grid, self.how, sorted(self.needs), runs)
        return _RoundedPlayer(Part(self.of, player, runs), runs, grid, self.how)


@dataclass(frozen=True)
class OfExperts(Forecaster):
    """The common part of forecasters made of several others."""

    of: tuple[Forecaster, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", tuple(self.of) if isinstance(self.of, Sequence) else (self.of,))
        check_forecasters("of", self.of)

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """The needs of all experts together."""
        return frozenset().union(*(expert.needs for expert in self.of))

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        """Where an expert does."""
        return some(expert.needs_horizon for expert in self.of)

    @property
    def safe_under_delay(self) -> bool | None:  # type: ignore[override]
        """Where all experts are."""
        return every(expert.safe_under_delay for expert in self.of)

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        """That of all experts."""
        return memory_of({f"of[{k}]": expert for k, expert in enumerate(self.of)})


@dataclass(frozen=True)
class ExpertMixture(OfExperts):
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
    Time of all experts.

    Source
    ------
    Freund and Schapire 1997 (Hedge); Cesa-Bianchi and Lugosi 2006, Theorem 2.2. Deviations: the loss of an
    expert is the
    expected squared loss of its law. Each expert is told of a forecast drawn from its own law: the engine's draw
    where that came from it, else one of this player's own.
    """

    version: ClassVar[int] = 2

    rate: float | str = "T^(-1/2)"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_expression("rate", self.rate, 0.0, 1e9)

    @property
    def deterministic(self) -> bool | None:  # type: ignore[override]
        """Whether its only expert is."""
        return self.of[0].deterministic if len(self.of) == 1 else False

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        """Where an expert does or, if there are several, the rate."""
        return some([len(self.of) > 1 and depends_on_horizon(self.rate), super().needs_horizon])

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player with equal weights."""
        rate = value_at(self.rate, horizon) * math.sqrt(8.0 * math.log(max(2, len(self.of))))
        # Streams of their own: players read the numbers of theirs by index, from the first on.
        players = [
            checked(expert, expert.start(horizon, runs, stream.child(f"expert {k}")), runs)
            for k, expert in enumerate(self.of)
        ]
        if of_steps(players):
            return mixture(players, rate, sorted(self.needs), runs, stream)
        parts = [Part(expert, player, runs) for expert, player in zip(self.of, players, strict=True)]
        return _MixturePlayer(parts, runs, rate, stream)


def _epoch_player(spec: Doubling, length: int, runs: int, stream: Stream) -> Player:
    """The player of an epoch of so many rounds."""
    return checked(spec.of, spec.of.start(length, runs, stream.child(f"epoch of {length}")), runs)


class _DoublingPlayer:
    def __init__(self, spec: Doubling, player: Player, runs: int, stream: Stream) -> None:
        self.spec, self.runs, self.stream = spec, runs, stream
        self.begin, self.length = 0, spec.first
        self.part = Part(spec.of, player, runs)
        self.law = Law(runs, 1)

    def forecast(self, round: Round) -> Law:
        while round.number > self.begin + self.length:
            self.begin += self.length
            self.length *= 2
            player = _epoch_player(self.spec, self.length, self.runs, self.stream)
            self.part = Part(self.spec.of, player, self.runs)
        inner = self.part.state(round, round.number - self.begin)
        round.memo = _Epoch(self.part, inner)
        law = inner.law
        if self.law.atoms.shape != law.weights.shape:
            self.law = Law(*law.weights.shape)
        self.law.atoms[...] = law.support
        self.law.weights[...] = law.weights
        return self.law

    def update(self, round: Round) -> None:
        memo = memo_of(round, self.law, _Epoch)
        memo.part.update(memo.round, round.drawn, round)


@dataclass(slots=True)
class _Epoch:
    """A round of the part that was playing then."""

    part: Part
    round: Round


class _RoundedPlayer:
    def __init__(self, part: Part, runs: int, grid: Floats, how: str) -> None:
        self.part, self.how, self.grid = part, how, grid
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
            split_between(values, weights, self.grid, self.law.atoms, self.law.weights)
        else:
            self.law.weights[...] = weights
            if self.how == "nearest":
                nearest(values, len(self.grid) - 1, self.law.atoms)
            else:
                below(values, self.grid, self.law.atoms)
        return self.law

    def update(self, round: Round) -> None:
        inner = memo_of(round, self.law, Round)
        np.floor_divide(round.drawn, self.fold, out=self.drawn)
        self.part.update(inner, self.drawn, round)


class _MixturePlayer:
    def __init__(self, parts: list[Part], runs: int, rate: float, stream: Stream) -> None:
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
        hedge(self.loss, self.rate, self.shares)
        first = 0
        for k, law in enumerate(laws):
            add_law(law.support, law.weights, self.shares, k, first, self.law.atoms, self.law.weights)
            first += law.weights.shape[1]
        return self.law

    def update(self, round: Round) -> None:
        memo = memo_of(round, self.law, _Experts)
        first = 0
        for k, (part, inner) in enumerate(zip(self.parts, memo.rounds, strict=True)):
            law = inner.law
            believe(
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
