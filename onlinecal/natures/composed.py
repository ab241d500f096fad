"""Natures made of other natures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import check_expression, depends_on_horizon
from onlinecal.core.facts import every, memory_of, some
from onlinecal.core.strategy import check_number, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.natures._composed import mixture, of_steps, switch
from onlinecal.natures._parts import Part, check_nature
from onlinecal.natures.base import Nature, NaturePlayer, NatureRound, Sight
from onlinecal.rounds.law import Floats, Unplayable, brief, take_numbers


@dataclass(frozen=True)
class Mixture(Nature):
    """Each round belongs to one of several natures, drawn anew with fixed probabilities: q_t = Σ_i w_i q_t^i.

    Parameters
    ----------
    natures : sequence of Nature
        At least one. In a scenario, a list of tables with a name.
    weights : sequence of float, optional
        One for each, ≥ 0 and not all 0; they are scaled to sum to 1. Default: equal.

    Guarantee
    ---------
    None proved.

    Information
    -----------
    Sees what the most seeing of its parts sees; each part is shown only what its own sight allows. Every part that sees
    the history hears of every round, whoever's it was. Reveals nothing: a part's context would speak of a q_t that
    is not the mixture's.

    Source
    ------
    Folklore. Deviations: none.
    """

    natures: tuple[Nature, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.natures, Sequence) or isinstance(self.natures, str) or not self.natures:
            raise InvalidParameter(f"natures = {self.natures!r}; expected a list of natures")
        for i, nature in enumerate(self.natures):
            check_nature(f"natures[{i}]", nature)
        object.__setattr__(self, "natures", tuple(self.natures))
        if self.weights is None:
            return
        weights = self.weights
        if not isinstance(weights, Sequence) or isinstance(weights, str) or len(weights) != len(self.natures):
            raise InvalidParameter(
                f"weights = {weights!r}; expected {len(self.natures)} numbers, one a nature"
            )
        for i, weight in enumerate(weights):
            check_number(f"weights[{i}]", weight, 0.0, 1e9)
        if sum(weights) <= 0.0:
            raise InvalidParameter(f"weights = {weights!r}; expected one above 0")
        object.__setattr__(self, "weights", tuple(weights))

    @property
    def sight(self) -> Sight:
        """The most that a part sees."""
        return Sight(max(part.sight for part in self.natures))

    @property
    def recorded(self) -> bool:
        """Whether a part is."""
        return any(part.recorded for part in self.natures)

    @property
    def length(self) -> int | None:
        """The rounds of the part that has fewest."""
        return min((part.length for part in self.natures if part.length is not None), default=None)

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        """Where a part does."""
        return some(part.needs_horizon for part in self.natures)

    @property
    def safe_under_delay(self) -> bool | None:  # type: ignore[override]
        """Where all parts are."""
        return every(part.safe_under_delay for part in self.natures)

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        """That of all parts."""
        return memory_of({f"natures[{i}]": part for i, part in enumerate(self.natures)})

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """A player of all parts."""
        parts = [
            Part(part, part.start(horizon, runs, stream.child(f"part {i}")))
            for i, part in enumerate(self.natures)
        ]
        weights = np.array(self.weights if self.weights is not None else [1.0] * len(parts), np.float64)
        shares = (weights / weights.sum()).tolist()
        players = [part.player for part in parts]
        if of_steps(self.natures, players, runs):
            return mixture(players, shares, self.sight, runs)
        return _MixturePlayer(runs, parts, shares)


@dataclass(frozen=True)
class Switch(Nature):
    """One nature for some rounds, then another.

    Each has a game of its own: `first` is started with `at` rounds as its horizon, `then` with the T − `at` that
    remain, and `then` counts rounds from 1 and hears of no earlier ones.

    Parameters
    ----------
    first, then : Nature
        In a scenario, tables with a name.
    at : float or str, default "T/2"
        How many rounds `first` plays, from 0; a number or an expression in T, rounded to the nearest. If it is T or
        more, `then` never plays.

    Raises
    ------
    InvalidParameter
        From `start`: a part cannot play as many rounds as fall to it.

    Guarantee
    ---------
    None proved.

    Information
    -----------
    Sees what the more seeing of its parts sees; each part is shown only what its own sight allows. Reveals
    the kinds of context that both parts reveal.

    Source
    ------
    Folklore. Deviations: none.
    """

    first: Nature
    then: Nature
    at: float | str = "T/2"

    def __post_init__(self) -> None:
        check_nature("first", self.first)
        check_nature("then", self.then)
        check_expression("at", self.at, 0.0, 1e12)

    @property
    def sight(self) -> Sight:
        """The more that a part sees."""
        return Sight(max(self.first.sight, self.then.sight))

    @property
    def recorded(self) -> bool:
        """Whether one of them is."""
        return bool(self.first.recorded or self.then.recorded)

    @property
    def reveals(self) -> frozenset[str]:  # type: ignore[override]  # read only, as all do
        """What both reveal, so that no round lacks it."""
        return self.first.reveals & self.then.reveals

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        """Where `at` or one of them does."""
        return some([depends_on_horizon(self.at), self.first.needs_horizon, self.then.needs_horizon])

    @property
    def safe_under_delay(self) -> bool | None:  # type: ignore[override]
        """Where both are."""
        return every([self.first.safe_under_delay, self.then.safe_under_delay])

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        """That of both."""
        return memory_of({"first": self.first, "then": self.then})

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """A player of both, each tuned to its share of the rounds."""
        at = min(round(check_expression("at", self.at, 0.0, 1e12, horizon)), horizon)
        parts = []
        for name, part, rounds in (("first", self.first, at), ("then", self.then, horizon - at)):
            if part.length is not None and rounds > part.length:
                raise InvalidParameter(
                    f"switch: {rounds} of {horizon} rounds fall to {name} = {strategy_name(part)}, which has "
                    f"{part.length}; expected at most that"
                )
            parts.append(Part(part, part.start(max(rounds, 1), runs, stream.child(name))))
        players = [part.player for part in parts]
        if of_steps((self.first, self.then), players, runs):
            return switch(players, at, self.sight, sorted(self.reveals), runs)
        return _SwitchPlayer(parts[0], parts[1], at, bool(self.reveals))


class _MixturePlayer:
    def __init__(self, runs: int, parts: list[Part], weights: list[float]) -> None:
        self.parts, self.weights = parts, weights
        self.q, self.own = np.empty(runs), np.empty(runs)
        if any(part.sight >= Sight.HISTORY for part in parts):
            self.update = self._update  # who declares no such sight must not have the method

    def probability(self, round: NatureRound) -> Floats:
        self.q.fill(0.0)
        round.memo = [part.of(round) for part in self.parts]
        for part, weight, own in zip(self.parts, self.weights, round.memo, strict=True):
            stated = part.player.probability(own)
            if not take_numbers(stated, self.own):
                raise self._refuse(part, stated)
            bad = _add(self.own, weight, self.q)
            if bad >= 0:
                raise self._refuse(part, self.own[bad], bad)
        return self.q

    def _update(self, round: NatureRound) -> None:
        for part, own in zip(self.parts, round.memo, strict=True):
            part.update(own)

    def _refuse(self, part: Part, stated: Any, run: int | None = None) -> Unplayable:
        # Weighed, a number outside [0, 1] could hide among the others.
        expected = f"a probability in [0, 1], or one for each of the {len(self.q)} runs"
        return Unplayable(f"has a part {part.name!r} that stated q = {brief(stated)}", expected, run)


class _SwitchPlayer:
    def __init__(self, first: Part, then: Part, at: int, reveals: bool) -> None:
        self.first, self.then, self.at = first, then, at
        # Who declares no such sight or context must not have the method.
        if max(first.sight, then.sight) >= Sight.HISTORY:
            self.update = self._update
        if reveals:
            self.context = self._context

    def _now(self, whole: NatureRound) -> tuple[Part, NatureRound]:
        """Whose round it is, and the round as that part sees it, with its own number and memo."""
        if whole.memo is None:
            part, number = self.first, whole.number
            if number > self.at:
                part, number = self.then, number - self.at
            whole.memo = part, part.of(whole, number)
        return whole.memo

    def _context(self, round: NatureRound) -> dict[str, Floats]:
        part, own = self._now(round)
        return part.player.context(own)

    def probability(self, round: NatureRound) -> Floats | float:
        part, own = self._now(round)
        return part.player.probability(own)

    def _update(self, round: NatureRound) -> None:
        part, own = self._now(round)
        part.update(own)


@kernel
def _add(own, weight, q):
    """Adds a part's share; −1, or a run in which it stated no probability."""
    for r in range(len(q)):
        if not 0.0 <= own[r] <= 1.0:
            return r
        # Only rounding could bring the sum above 1.
        q[r] = min(q[r] + weight * own[r], 1.0)
    return -1
