"""Forecasters made of others: composition instead of inheritance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import check_expression, check_steps, depends_on_horizon, value_at
from onlinecal.core.strategy import check_whole, some
from onlinecal.core.streams import Stream
from onlinecal.forecasters._composed import doubling, mixture, rounded
from onlinecal.forecasters.base import Forecaster, OfOthers, OnGrid, grid_of
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.protocol import begin


@dataclass(frozen=True)
class Doubling(OfOthers):
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
    The doubling trick, Cesa-Bianchi et al. 1997.
    """

    needs_horizon: ClassVar[bool | None] = False

    of: Forecaster
    first: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("first", self.first, 1, 10**9)

    def start(self, horizon: int, stream: Stream) -> CompiledForecaster:
        players: list[CompiledForecaster] = []
        end, length = 0, self.first
        while not players or end < horizon:
            players.append(begin("forecaster", self.of, length, stream.child(f"epoch of {length}")))
            end, length = end + length, 2 * length
        return doubling(players, self.first, sorted(self.needs))


@dataclass(frozen=True)
class Rounded(OfOthers, OnGrid):
    """Rounds another's forecasts to the grid 0, 1/m, …, 1.

    Parameters
    ----------
    of : Forecaster
    m : int or str
        Steps of the grid, rounded up; a number or an expression in T.
    how : {"nearest", "random", "down"}, default "nearest"
        To the nearest point (ties to the even one); to one of the two neighbours at random with the forecast as the
        mean; or to the one below.

    Information
    -----------
    As the other, which is told what it said itself, not what it was rounded to.

    Source
    ------
    Bairaktari, Hu, Nguyen and Ullman 2026, Definition 3.1, for the random rounding.
    """

    of: Forecaster
    m: int | str
    how: Literal["nearest", "random", "down"] = "nearest"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_steps("m", self.m)
        if self.how not in ("nearest", "random", "down"):
            raise InvalidParameter(f"how = {self.how!r}; expected 'nearest', 'random' or 'down'")

    @property
    def deterministic(self) -> bool | None:  # type: ignore[override]
        return False if self.how == "random" else self.of.deterministic

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return some([depends_on_horizon(self.m), self.of.needs_horizon])

    def start(self, horizon: int, stream: Stream) -> CompiledForecaster:
        player = begin("forecaster", self.of, horizon, stream)
        return rounded(player, grid_of(self.steps_at(horizon)), self.how, sorted(self.needs))


@dataclass(frozen=True)
class OfExperts(OfOthers):
    """The common part of forecasters made of several others."""

    of: tuple[Forecaster, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", tuple(self.of) if isinstance(self.of, Sequence) else (self.of,))
        super().__post_init__()


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
        return self.of[0].deterministic if len(self.of) == 1 else False

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return some([len(self.of) > 1 and depends_on_horizon(self.rate), super().needs_horizon])

    def start(self, horizon: int, stream: Stream) -> CompiledForecaster:
        rate = value_at(self.rate, horizon) * math.sqrt(8.0 * math.log(max(2, len(self.of))))
        # Streams of their own: players read the numbers of theirs by index, from the first on.
        players = [
            begin("forecaster", expert, horizon, stream.child(f"expert {k}"))
            for k, expert in enumerate(self.of)
        ]
        return mixture(players, rate, sorted(self.needs), stream)
