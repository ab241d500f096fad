"""Specifications of worlds: simulated systems that ask, hear the forecasts, and answer later."""

import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.specification import OfPlain, declared, specified
from onlinecal.core.strategy import strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import is_whole
from onlinecal.natures.base import Nature, declared_sight

if TYPE_CHECKING:
    from onlinecal.worlds.market import Market

#: the method of a plain world
METHODS = {"run": "env, market"}


@dataclass(frozen=True)
class World(Nature):
    """Base of the specifications of worlds; a subclass is a frozen dataclass of parameters with `run`.

    A world is played where a nature is: ``oc.play(forecaster, world, horizon=1000)`` plays 1,000 questions. Its
    processes are those of simpy. It asks at any moment and resolves when it knows, so it needs no arrivals or delays.
    """

    role: ClassVar[str] = "world"
    #: worlds hear the forecasts; one that does not use them may say NOTHING, so that more bounds hold
    sight: ClassVar[Any] = Sight.DRAW
    #: the most questions that are ever open at once, or None: bounds for open questions need it
    open_at_once: ClassVar[Any] = None

    def run(self, env: Any, market: "Market") -> Generator[Any, Any, Any]:
        """Runs one run of the world as a simpy process, which may start others.

        Parameters
        ----------
        env : simpy.Environment
        market : Market
            Takes questions and outcomes, and has the randomness of the run.
        """
        raise TypeError(f"{type(self).__name__} has no method run(env, market)")

    def start(self, horizon: int, stream: Stream) -> Any:
        raise InvalidParameter(
            f"{strategy_name(self)!r} is a world, which is played alone; expected a nature, or play(…, world)"
        )


class Reacting(World):
    """A world of this package: it hears forecasts unless ``reacts = "none"``."""

    reacts: str
    safe_under_delay, needs_horizon, memory = True, False, "O(t)"

    @property
    def sight(self) -> Sight:
        return Sight.NOTHING if self.reacts == "none" else Sight.DRAW


@dataclass(frozen=True)
class Simulated(OfPlain, World):
    """Plays a world in plain Python: an object with ``run(env, market)``, a generator.

    Information: Hears the forecasts. One object a run. `reveals`, `streams`, `sight` and `open_at_once` are class
    attributes of those names.

    Parameters
    ----------
    make, name
        As for `onlinecal.forecasters.Scalar`.
    """

    make: Callable[..., Any]
    name: str = "simulated"
    reveals = declared("reveals", frozenset)
    streams = declared("streams", tuple)
    groups = declared("groups", tuple)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sight  # noqa: B018  # refuses what is none
        most = self.open_at_once
        if "stream" not in self.reveals and self.streams:
            raise InvalidParameter(f"world {self.name!r} has streams; expected it to reveal 'stream'")
        if most is not None and (not is_whole(most) or most < 1):
            raise InvalidParameter(
                f"world {self.name!r} declares open_at_once = {most!r}; expected an integer ≥ 1, or None"
            )

    @property
    def sight(self) -> Sight:
        return declared_sight(self, Sight.DRAW)

    @property
    def open_at_once(self) -> int | None:
        """The number that its class declares."""
        declared: int | None = getattr(self.origin, "open_at_once", None)
        return declared

    def start(self, horizon: int, stream: Stream) -> Any:
        return World.start(self, horizon, stream)


def as_world(
    thing: Any, options: Mapping[str, Any] = MappingProxyType({}), called: str | None = None
) -> World:
    """A specification from one, or from a class, function or object that makes a plain world.

    Parameters
    ----------
    thing : World, class, function, functools.partial or object
        A plain class has ``run(env, market)``. Each run has an object of its own.
    options, called
        As for `onlinecal.forecasters.as_forecaster`.
    """
    return specified(World, Simulated, METHODS, thing, options, called)


def is_world(thing: Any) -> bool:
    """Whether this is a world, or the class or an object of a plain one."""
    made = getattr(thing, "func", thing)
    return isinstance(made, World) or (hasattr(made, "run") and not hasattr(made, "probability"))


def exponential(u: float, rate: float) -> float:
    """The exponential time of this rate at a uniform u."""
    return -math.log1p(-u) / rate
