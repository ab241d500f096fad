"""Natures made of other natures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import check_expression, depends_on_horizon
from onlinecal.core.strategy import some, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.natures._composed import mixture, switch
from onlinecal.natures.base import Nature, OfNatures, check_list, check_nature, check_weights
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.protocol import begin


@dataclass(frozen=True)
class Mixture(OfNatures):
    """Mixes natures: each round is that of one of them, drawn with fixed probabilities, so q_t = Σ_i w_i q_t^i.

    Parameters
    ----------
    natures : sequence of Nature
        At least one. In a scenario, a list of tables with a name.
    weights : sequence of float, optional
        One for each, ≥ 0 and not all 0; they are scaled to sum to 1. Default: equal.

    Information
    -----------
    Has the largest sight of its parts; each part is shown only what its own sight allows, and hears of every round.
    Reveals nothing, as a part's context would not be about the mixture's q_t.

    Source
    ------
    Folklore.
    """

    natures: tuple[Nature, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_list("natures", self.natures, "natures")
        for i, nature in enumerate(self.natures):
            check_nature(f"natures[{i}]", nature)
        object.__setattr__(self, "natures", tuple(self.natures))
        if self.weights is not None:
            weights = check_weights(self.weights, "nature", len(self.natures))
            object.__setattr__(self, "weights", weights)

    @property
    def length(self) -> int | None:
        return min((part.length for part in self.natures if part.length is not None), default=None)

    @property
    def _parts(self) -> dict[str, Nature]:
        return {f"natures[{i}]": part for i, part in enumerate(self.natures)}

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        players = [
            begin("nature", part, horizon, stream.child(f"part {i}")) for i, part in enumerate(self.natures)
        ]
        weights = np.array(self.weights if self.weights is not None else [1.0] * len(players), np.float64)
        return mixture(players, (weights / weights.sum()).tolist(), self.sight)


@dataclass(frozen=True)
class Switch(OfNatures):
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

    Information
    -----------
    Has the larger sight of its parts; each is shown only what its own allows. Reveals the kinds of context of both.

    Source
    ------
    Folklore.
    """

    first: Nature
    then: Nature
    at: float | str = "T/2"

    def __post_init__(self) -> None:
        check_nature("first", self.first)
        check_nature("then", self.then)
        check_expression("at", self.at, 0.0, 1e12)

    @property
    def reveals(self) -> frozenset[str]:  # type: ignore[override]  # read only, as all do
        return self.first.reveals & self.then.reveals

    @property
    def streams(self) -> tuple[str, ...]:
        """Those of both, by their numbers; none where a part has none."""
        if not (self.first.streams and self.then.streams):
            return ()
        pairs = zip_longest(self.first.streams, self.then.streams, fillvalue="")
        return tuple(a if a == b else " → ".join(filter(None, (a, b))) for a, b in pairs)

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return some([depends_on_horizon(self.at), super().needs_horizon])

    @property
    def _parts(self) -> dict[str, Nature]:
        return {"first": self.first, "then": self.then}

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        at = min(round(check_expression("at", self.at, 0.0, 1e12, horizon)), horizon)
        players = []
        for name, part, rounds in (("first", self.first, at), ("then", self.then, horizon - at)):
            if part.length is not None and rounds > part.length:
                raise InvalidParameter(
                    f"switch: {rounds} of {horizon} rounds fall to {name} = {strategy_name(part)}, which has "
                    f"{part.length}; expected at most that"
                )
            players.append(begin("nature", part, max(rounds, 1), stream.child(name)))
        player = switch(players, at, self.sight, sorted(self.reveals))
        if self.streams:
            player.streams_of = partial(_streams_now, players[0].streams_of, players[1].streams_of, at)
        return player


def _streams_now(first: Any, then: Any, at: int, low: int, high: int) -> Any:
    """The streams of some rounds, of which the first `at` are those of the first part."""
    early = [first(low, min(high, at))] if low <= at else []
    late = [then(max(low, at + 1) - at, high - at)] if high > at else []
    return np.concatenate(early + late)
