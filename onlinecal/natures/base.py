"""Specifications of natures: each declares its sight, and starts a player of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Guarantee, Sight
from onlinecal.core.strategy import check_number, every, memory_of, some
from onlinecal.core.streams import Stream


@dataclass(frozen=True)
class Nature:
    """Base of the specifications; a subclass is a frozen dataclass of parameters with `start`."""

    #: what it sees; a subclass may make it depend on its parameters
    sight: ClassVar[Any] = Sight.NOTHING
    #: kinds of context that it reveals before the forecast
    reveals: ClassVar[frozenset[str]] = frozenset()
    #: labels of the streams that its questions are of, which it reveals as the context "stream"; empty for one stream
    streams: ClassVar[Any] = ()
    #: whether its outcomes are recorded: games of several horizons then meet the same ones, and are not independent
    recorded: ClassVar[Any] = False
    #: whether its play may depend on the horizon; this and the next two facts: onlinecal.core.strategy
    needs_horizon: ClassVar[bool | None] = None
    #: whether rounds may be resolved late and in any order
    safe_under_delay: ClassVar[bool | None] = None
    #: how the state of a run grows, at most: "O(cells)"
    memory: ClassVar[str | None] = None
    #: how many bytes one of these takes, at most: "O(cells)" is that many times the brackets
    unit_bytes: ClassVar[float] = 64.0
    #: raised when its numbers change: results are kept under it (tests/versions.py)
    version: ClassVar[int] = 1

    def start(self, horizon: int, stream: Stream) -> Any:
        """Starts a player of one run, with fresh state.

        Parameters
        ----------
        horizon : int
            T, for players that plan to the end.
        stream : Stream
            The player's own uniforms, for a q_t that is itself random. The engine draws y_t.

        Returns
        -------
        CompiledNature or object
            An object in plain Python has ``probability()`` (`onlinecal.natures.Scalar`), and is started for each run.
        """
        raise TypeError(f"{type(self).__name__} has no method start(horizon, stream)")

    @property
    def length(self) -> int | None:
        """How many rounds it can play; None for any number."""
        return None

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The proved bounds on forecasters; empty for nothing."""
        return ()


class OfNatures(Nature):
    """A nature made of others, `_parts`: the facts follow from theirs."""

    @property
    def _parts(self) -> dict[str, Nature]:
        raise NotImplementedError

    @property
    def sight(self) -> Sight:
        return Sight(max(part.sight for part in self._parts.values()))

    @property
    def recorded(self) -> bool:
        return any(part.recorded for part in self._parts.values())

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return some(part.needs_horizon for part in self._parts.values())

    @property
    def safe_under_delay(self) -> bool | None:  # type: ignore[override]
        return every(part.safe_under_delay for part in self._parts.values())

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        return memory_of(self._parts)


def check_nature(name: str, value: Any) -> None:
    """Refuses a parameter that is no nature."""
    if not isinstance(value, Nature):
        raise InvalidParameter(
            f"{name} = {value!r}; expected a nature, or in a scenario a table with its name"
        )


def check_list(name: str, values: Any, what: str, many: int | None = None) -> tuple[Any, ...]:
    """Refuses all but a list of `many` things, or of at least one."""
    good = isinstance(values, Sequence) and not isinstance(values, str)
    if not good or (len(values) != many if many is not None else not values):
        raise InvalidParameter(
            f"{name} = {values!r}; expected {'a list of' if many is None else many} {what}"
        )
    return tuple(values)


def check_weights(values: Any, what: str, many: int) -> tuple[float, ...]:
    """Refuses weights that are not one for each part, at least 0, and not all 0."""
    weights = check_list("weights", values, f"numbers, one a {what}", many)
    for i, weight in enumerate(weights):
        check_number(f"weights[{i}]", weight, 0.0, 1e9)
    if sum(weights) <= 0.0:
        raise InvalidParameter(f"weights = {values!r}; expected one above 0")
    return weights
