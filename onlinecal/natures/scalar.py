"""Natures in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.plain import Plain, check_made, lifted, no_options
from onlinecal.core.strategy import build, required, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.natures.base import Nature, Sight
from onlinecal.rounds.law import brief

#: what a plain nature must have
METHODS = {"probability": ""}


class ScalarNaturePlayer(Protocol):
    """A nature in plain Python; it may also have `update(forecast, outcome)` and `context(round)`."""

    #: P(y = 1) of the next round; of ``()`` or ``(round)``
    probability: Callable[..., float]


@dataclass(frozen=True)
class Scalar(Plain, Nature):  # type: ignore[override]
    """Plays a nature in plain Python: an object with `probability()` or `probability(round)`, and maybe `update`.

    `update(forecast, outcome)` tells it a past round. `round` (`onlinecal.rounds.plain.Round`) has a number, a time,
    and for the sight that its class declares the law, a dict value → probability, and the forecast. With the class
    attribute `reveals` it has `context(round)`, which returns a dict kind → number.

    Parameters
    ----------
    make : callable
        Makes a fresh one: a class or function without arguments, or with the one argument `horizon`.
    name : str
        The name in tables.

    Information
    -----------
    Sees what its class declares: ``sight = "law"``, or a `Sight`. Default: HISTORY if it has `update`, else nothing.
    One Python object a run. The facts of `onlinecal.core.strategy` are class attributes of those names.
    """

    make: Callable[..., ScalarNaturePlayer]
    name: str = "scalar"

    def __post_init__(self) -> None:
        missing = [key for key in required(self.make) if key != "horizon"]
        if missing:
            raise InvalidParameter(
                f"nature {self.name!r} cannot be made without arguments: {self.make!r} needs {', '.join(missing)}; "
                "expected defaults for all but horizon"
            )
        self.sight  # noqa: B018  # refuses what is none

    @property
    def sight(self) -> Sight:
        declared = getattr(self.origin, "sight", None)
        if declared is None:
            return Sight.HISTORY if callable(getattr(self.origin, "update", None)) else Sight.NOTHING
        if isinstance(declared, str):
            declared = Sight.__members__.get(declared.upper(), declared)
        if not isinstance(declared, Sight):
            known = ", ".join(repr(name.lower()) for name in Sight.__members__)
            raise InvalidParameter(
                f"nature {self.name!r} declares sight = {brief(declared)}; expected {known}, or a Sight"
            )
        return declared

    @property
    def reveals(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(getattr(self.origin, "reveals", ()))

    @property
    def streams(self) -> tuple[str, ...]:
        """The labels of the streams that its class declares."""
        return tuple(getattr(self.origin, "streams", ()))

    def start(self, horizon: int, stream: Stream) -> ScalarNaturePlayer:
        return self.player(horizon)


def as_nature(
    thing: Any, options: Mapping[str, Any] = MappingProxyType({}), called: str | None = None
) -> Nature:
    """A specification from one, or from what makes a plain nature.

    Parameters
    ----------
    thing : Nature, class, function, functools.partial or object
        A plain class has ``probability()`` and maybe ``update(forecast, outcome)``. Each run has an object, or a deep
        copy.
    options : mapping, optional
        Parameters for a class or function.
    called : str, optional
        What messages call it. Default: its own name.
    """
    if isinstance(thing, type) and issubclass(thing, Nature):
        name = called or strategy_name(thing)
        return build("nature", {name: thing}, name, options)
    if isinstance(thing, Nature):
        no_options("nature", thing, options, called)
        return thing
    make, name, sample = lifted("nature", thing, options, METHODS, called)
    if isinstance(sample, Nature):
        return sample
    check_made("nature", called or name, sample, METHODS)
    return Scalar(make, name=name)
