"""Specifications of natures: each declares its sight, and starts a player of one run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, cast

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.specification import (
    Composition,
    OfPlain,
    Specification,
    declared,
    number,
    several,
    specified,
)
from onlinecal.engine.law import brief

#: in tables, of a nature that moves from one to another
ENDS = MappingProxyType({"from": "first", "to": "last"})


@dataclass(frozen=True)
class Nature(Specification):
    """Base of the specifications; a subclass is a frozen dataclass of parameters with `start`."""

    role: ClassVar[str] = "nature"
    #: what it sees; a subclass may make it depend on its parameters
    sight: ClassVar[Any] = Sight.NOTHING
    #: kinds of context that it reveals before the forecast
    reveals: ClassVar[frozenset[str]] = frozenset()
    #: labels of the streams that its questions are of, which it reveals as the context "stream"; empty for one stream
    streams: ClassVar[Any] = ()
    #: those of `reveals` that are groups, in order: a question is in each (1) or not (0). Without a type, since it is a
    #: parameter of some, which dataclasses would place first
    groups = cast(Any, ())

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of its groups."""
        return tuple(self.groups)

    #: whether its outcomes are recorded: games of several horizons then meet the same ones, and are not independent
    recorded: ClassVar[Any] = False


class OfNatures(Composition, Nature):
    """A nature made of others."""

    @property
    def sight(self) -> Sight:
        return Sight(max(part.sight for part in self._parts.values()))

    @property
    def recorded(self) -> bool:
        return any(part.recorded for part in self._parts.values())

    @property
    def group_names(self) -> tuple[str, ...]:
        """Those of the groups of all parts that it reveals."""
        first, *others = (part.group_names for part in self._parts.values())
        return tuple(name for name in first if name in self.reveals and all(name in each for each in others))


def check_weights(values: Any, what: str, many: int) -> None:
    """Refuses weights that are not one for each part, at least 0, and not all 0."""
    several(number(0.0, 1e9), f"numbers, one a {what}", many)("weights", values)
    if sum(values) <= 0.0:
        raise InvalidParameter(f"weights = {values!r}; expected one above 0")


def declared_sight(plain: Any, default: Sight) -> Sight:
    """The sight that the class of a plain nature or world declares, by name or as a `Sight`."""
    sight = getattr(plain.origin, "sight", None)
    if sight is None:
        return default
    if isinstance(sight, str):
        sight = Sight.__members__.get(sight.upper(), sight)
    if not isinstance(sight, Sight):
        known = ", ".join(repr(name.lower()) for name in Sight.__members__)
        raise InvalidParameter(
            f"{plain.role} {plain.name!r} declares sight = {brief(sight)}; expected {known}, or a Sight"
        )
    return sight


@dataclass(frozen=True)
class Scalar(OfPlain, Nature):
    """Plays a nature in plain Python: an object with `probability()` or `probability(round)`, and maybe `update`.

    `update(forecast, outcome)` tells it a past round. `round` (`onlinecal.engine.seats.Round`) has a number and a
    time. As far as its class declares sight, it has the law, a dict value → probability, and the forecast. With the
    class attribute `reveals` it has `context(round)`, which returns a dict kind → number. Those of `groups` are 0 or 1.

    Information: Sees what its class declares: ``sight = "law"``, or a `Sight`. Default: HISTORY if it has `update`,
    else nothing. One Python object a run. The facts of `onlinecal.core.strategy` are class attributes of those names.

    Parameters
    ----------
    make, name
        As for `onlinecal.forecasters.Scalar`.
    """

    make: Callable[..., Any]
    name: str = "scalar"
    reveals = declared("reveals", frozenset)
    streams = declared("streams", tuple)
    groups = declared("groups", tuple)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sight  # noqa: B018  # refuses what is none

    @property
    def sight(self) -> Sight:
        heard = callable(getattr(self.origin, "update", None))
        return declared_sight(self, Sight.HISTORY if heard else Sight.NOTHING)


def as_nature(
    thing: Any, options: Mapping[str, Any] = MappingProxyType({}), called: str | None = None
) -> Nature:
    """A specification from one, or from what makes a plain nature.

    Parameters
    ----------
    thing : Nature, class, function, functools.partial or object
        A plain class has ``probability()`` and maybe ``update(forecast, outcome)``. Each run has an object, or a deep
        copy.
    options, called
        As for `onlinecal.forecasters.as_forecaster`.
    """
    return specified(Nature, Scalar, {"probability": ""}, thing, options, called)
