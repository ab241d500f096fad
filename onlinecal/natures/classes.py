"""Natures of games of K classes."""

import math
from dataclasses import dataclass
from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.simplex import UNIT
from onlinecal.core.specification import allow, number, several, whole
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, law, note, shared, table
from onlinecal.natures._levels import level, level_nature, own_level
from onlinecal.natures.base import ENDS, Nature

#: classes of a game, at most
MOST = 1000


def simplex_point(name: str, values: Any) -> None:
    """Refuses anything but K ≥ 2 probabilities that sum to 1."""
    several(number(0.0, 1.0), "probabilities, one for each class")(name, values)
    if not 2 <= len(values) <= MOST:
        raise InvalidParameter(f"{name} = {values!r}; expected 2 to {MOST} probabilities")
    if abs(sum(values) - 1.0) > UNIT:
        raise InvalidParameter(
            f"{name} = {values!r}, which sum to {sum(values):.9g}; expected 1 within {UNIT:g}"
        )


def exact(values: Any) -> list[float]:
    """The probabilities divided by their sum."""
    total = float(sum(values))
    return [float(value) / total for value in values]


@dataclass(frozen=True)
class Categorical(Nature):
    """Independent draws of one distribution over K classes: q_t = q.

    Parameters
    ----------
    q : sequence of K floats, default (0.5, 0.3, 0.2)
        The probability of each class. They sum to 1.
    """

    of_classes = True
    needs_horizon, safe_under_delay, memory = False, True, "O(1)"
    allowed = allow(q=simplex_point)

    q: tuple[float, ...] = (0.5, 0.3, 0.2)

    @property
    def classes(self) -> int:
        return len(self.q)

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        return steps.Nature(keep_shares, shared=exact(self.q), classes=self.classes, note=self.classes)


def keep_shares(run: Run, size: int, forecast: float, number: int) -> float:
    """Shared is q."""
    q, mine = shared(run), note(run)
    for k in range(len(q)):
        mine[k] = q[k]
    return 0.0


@dataclass(frozen=True)
class DriftClasses(Nature):
    """Draws of a distribution that moves evenly from one to another: q_t = a + (b − a)(t − ½)/T.

    Parameters
    ----------
    first, last : sequence of K floats, default (1, 0, 0) and (0, 0, 1)
        a and b, the probabilities of the classes. Each sums to 1. In tables also ``from`` and ``to``.
    """

    of_classes = True
    needs_horizon, safe_under_delay, memory = True, True, "O(1)"
    allowed = allow(first=simplex_point, last=simplex_point)
    synonyms = ENDS

    first: tuple[float, ...] = (1.0, 0.0, 0.0)
    last: tuple[float, ...] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.first) != len(self.last):
            raise InvalidParameter(
                f"last = {self.last!r}; expected {len(self.first)} probabilities, as many as first has"
            )

    @property
    def classes(self) -> int:
        return len(self.first)

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        given = [2.0 * horizon, *exact(self.first), *exact(self.last)]
        return steps.Nature(move_between, shared=given, classes=self.classes, note=self.classes)


def move_between(run: Run, size: int, forecast: float, number: int) -> float:
    """Shared are 2T, a and b."""
    mine, given = note(run), shared(run)
    share = (2 * number - 1) / given[0]
    for k in range(len(mine)):
        mine[k] = (1.0 - share) * given[1 + k] + share * given[1 + len(mine) + k]
    return 0.0


@dataclass(frozen=True)
class OfLaws(Nature):
    """A nature that is told how many classes there are, and sees the law."""

    of_classes = True
    sight = Sight.LAW
    needs_horizon, safe_under_delay = False, True
    allowed = allow(classes=whole(2, MOST))

    classes: int = 3


@dataclass(frozen=True)
class ContrarianClasses(OfLaws):
    """Does what the forecast holds least likely: y = k where class k has the smallest mean under the law.

    Of means that differ by at most 1e-9 it takes the first.

    Parameters
    ----------
    classes : int, default 3
        K, from 2 to 1000.
    """

    memory = "O(1)"

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        return steps.Nature(contradict_law, sight=self.sight, classes=self.classes, note=self.classes)


#: by how much equal means may differ
TIE = 1e-9


@kernel
def mean_of_law(run, size, mean):
    """Writes the mean of the law, which has a number for each class."""
    (values, weights), points, classes = law(run), table(run), len(mean)
    mean[:] = 0.0
    for j in range(size):
        at = int(values[j]) * classes
        for k in range(classes):
            mean[k] += weights[j] * points[at + k]


@kernel
def certain(run, outcome):
    """Has this class happen; as a step's result."""
    mine = note(run)
    mine[:] = 0.0
    mine[outcome] = 1.0
    return 0.0


def contradict_law(run: Run, size: int, forecast: float, number: int) -> float:
    mean, least = note(run), 0
    mean_of_law(run, size, mean)
    for k in range(1, len(mean)):
        if mean[k] < mean[least] - TIE:
            least = k
    return certain(run, least)


@dataclass(frozen=True)
class GreedyClasses(OfLaws):
    """Has the class happen that raises T·ECE most in expectation over the law.

    T·ECE is ½ Σ_v ‖E_v‖₁ over the points v that have been forecast, E_v = Σ_{t: p_t = v} (e_y − v). Of classes that
    raise it by as much, within 1e-9, it takes the first.

    Parameters
    ----------
    classes : int, default 3
        K, from 2 to 1000.
    """

    memory = "O(t)"

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        k = self.classes
        return level_nature(raise_total, add_to_point, (), numbers=k, note=k, classes=k)


@kernel
def point_of(run, place, classes):
    """A point of the table, and the number by which its errors are found.

    Two rational points never share it but by rounding, as sines of whole numbers are linearly independent.
    """
    point, key = table(run)[place * classes : (place + 1) * classes], 0.0
    for k in range(classes):
        key += point[k] * math.sin(k + 1.0)
    return point, key


def raise_total(run: Run, size: int, forecast: float, number: int) -> float:
    (values, weights), lead, most = law(run), note(run), 0
    lead[:] = 0.0
    for j in range(size):
        if weights[j] > 0.0:
            point, key = point_of(run, int(values[j]), len(lead))
            errors = level(run, key)
            # The other parts of E_v move by as much whichever class happens.
            for k in range(len(lead)):
                more = abs(errors[k] + 1.0 - point[k]) - abs(errors[k] - point[k])
                lead[k] += 0.5 * weights[j] * more
    for k in range(1, len(lead)):
        if lead[k] > lead[most] + TIE:
            most = k
    return certain(run, most)


def add_to_point(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    point, key = point_of(run, int(forecast), len(note(run)))
    errors = own_level(run, key)
    errors -= point
    errors[outcome] += 1.0
    return 0
