"""The protocol of natures: what they may see is declared, and enforced by the view that they get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter, SightError
from onlinecal.core.guarantee import Guarantee
from onlinecal.core.sight import Sight
from onlinecal.core.streams import Stream
from onlinecal.rounds.law import Floats, Ints, StatedLaw
from onlinecal.rounds.record import Round, Stage


class NatureRound:
    """A round as a nature sees it. Asking for more than its `Sight`, or for what is not known yet, raises `SightError`.

    All arrays can only be read, and stay as they are when the game goes on.

    Attributes
    ----------
    memo : object
        Nature's own: what it computes when it is asked and needs when it is told the outcome.
    """

    __slots__ = ("_name", "_number", "_round", "_sight", "memo")

    def __init__(self, round: Round, name: str, sight: Sight, number: int | None = None) -> None:
        self._round, self._name, self._sight = round, name, sight
        self._number = round.number if number is None else number
        self.memo: Any = None

    @property
    def number(self) -> int:
        """1, 2, …"""
        return self._number

    @property
    def time(self) -> float:
        """When the question is asked, on the game's clock."""
        return self._round.time

    @property
    def law(self) -> StatedLaw:
        """The laws of the forecast; for sight LAW."""
        if self._sight < Sight.LAW:
            raise self._refuse("the law", Sight.LAW)
        return self._round.law

    @property
    def forecast(self) -> Floats:
        """The forecasts that were drawn, (runs,): before nature moves for sight DRAW, in past rounds for HISTORY."""
        if self._sight < Sight.DRAW and (self._sight < Sight.HISTORY or self._round.stage < Stage.RESOLVED):
            past = self._round.stage is Stage.RESOLVED
            raise self._refuse("the drawn forecast", Sight.HISTORY if past else Sight.DRAW)
        return self._round.forecast

    @property
    def outcome(self) -> Ints:
        """How the events turned out, (runs,), 0 or 1; in past rounds, for sight HISTORY."""
        if self._sight < Sight.HISTORY:
            raise self._refuse("the outcome", Sight.HISTORY)
        return self._round.outcome

    def part(self, name: str, sight: Sight, number: int | None = None) -> NatureRound:
        """The round as a part of this nature sees it, which may see less, and may count rounds by itself."""
        return NatureRound(
            self._round, name, min(sight, self._sight), self._number if number is None else number
        )

    def _refuse(self, what: str, needed: Sight) -> SightError:
        return refused(self._name, self._sight, what, self._round.number, needed)


def refused(name: str, sight: Sight, what: str, number: int, needed: Sight) -> SightError:
    """The error of a nature that asks for more than it declares."""
    return SightError(
        f"nature {name!r} asked for {what} in round {number} but declares sight {sight.name}; expected sight "
        f"{needed.name}"
    )


class NaturePlayer(Protocol):
    """A nature in a game: R runs in lockstep.

    Besides `probability` a player has exactly the methods that its specification declares: `update` where its `sight`
    is HISTORY or more, `context` where it `reveals` something. The engine refuses others when a game begins.
    """

    def probability(self, round: NatureRound) -> Floats | float:
        """q_t = P(y_t = 1) for each run, (runs,) or one number for all."""


class Hearing(NaturePlayer, Protocol):
    """A player that sees the history."""

    def update(self, round: NatureRound) -> None:
        """A round whose outcome is known, with the memo that `probability` left on it."""


class Revealing(NaturePlayer, Protocol):
    """A player that reveals context."""

    def context(self, round: NatureRound) -> Mapping[str, NDArray[Any]]:
        """What is revealed before the forecast: kind → (runs, …) array, of all the kinds that are declared."""


@dataclass(frozen=True)
class Nature:
    """Base of the specifications; a subclass is a frozen dataclass of parameters with `start`."""

    #: what it sees; a subclass may make it depend on its parameters
    sight: ClassVar[Any] = Sight.NOTHING
    #: kinds of context that it reveals before the forecast
    reveals: ClassVar[frozenset[str]] = frozenset()
    #: labels of the streams that its questions are of, which it reveals as the context "stream"; empty for one stream
    streams: ClassVar[Any] = ()
    #: whether its outcomes are recorded: games of several horizons then meet the same ones again, the shorter those of
    #: the longer's beginning, and are not independent
    recorded: ClassVar[Any] = False
    #: whether its play may depend on the horizon; this and the next two facts: onlinecal.core.facts
    needs_horizon: ClassVar[bool | None] = None
    #: whether rounds may be resolved late and in any order
    safe_under_delay: ClassVar[bool | None] = None
    #: how the state of a run grows, at most: "O(cells)"
    memory: ClassVar[str | None] = None
    #: how many bytes one of these takes, at most: "O(cells)" is so many times what is in the brackets
    unit_bytes: ClassVar[float] = 64.0
    #: raised when its numbers change: results are kept under it (tests/versions.py)
    version: ClassVar[int] = 1

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """A player with fresh state.

        Parameters
        ----------
        horizon : int
            T, for those that plan to the end.
        runs : int
            How many runs it plays in lockstep.
        stream : Stream
            Uniforms of its own, for a q_t that is itself random. Drawing y_t from q_t is the engine's work.
        """
        raise TypeError(f"{type(self).__name__} has no method start(horizon, runs, stream)")

    @property
    def length(self) -> int | None:
        """How many rounds it can play; None for any number."""
        return None

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What it is proved to force on forecasters; empty for nothing."""
        return ()


def heard(round: NatureRound, runs: int) -> tuple[Floats, Ints]:
    """Forecasts and outcomes of a past round, (runs,) each.

    Raises
    ------
    InvalidParameter
        It is a round of another number of runs.
    """
    return seen(round.forecast, runs), round.outcome


def seen(values: Floats, runs: int) -> Floats:
    """Values of a round with a row for each run; `InvalidParameter` where there are more or fewer."""
    if len(values) != runs:
        raise InvalidParameter(f"a round has {len(values)} runs; expected the {runs} of this player's game")
    return values
