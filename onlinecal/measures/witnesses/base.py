"""Witnesses, objects that prove a bound of a measure on a given Γ, and explanations: a value with its proof."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from onlinecal.core import validation
from onlinecal.core.arrays import Ints
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.sums import grouped, running

Side = Literal["lower", "upper", "both"]
WRONG = 1e-9
"""A condition of a proof may be missed by this much. More is refused."""

_IN_WORDS: dict[Side, str] = {"lower": "lower bound", "upper": "upper bound", "both": "lower and upper bound"}


@dataclass(frozen=True)
class Bracket:
    """A certified interval, lower ≤ measure ≤ upper, where the exact value is out of reach."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise InvalidData(f"no bracket from {self.lower!r} to {self.upper!r}; expected lower ≤ upper")

    @property
    def width(self) -> float:
        """upper − lower: the error that remains."""
        return self.upper - self.lower

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper


def ends(value: float | Bracket) -> tuple[float, float]:
    """Lower and upper end of what a measure returned; a number twice."""
    return (value.lower, value.upper) if isinstance(value, Bracket) else (value, value)


def between(lower: float, upper: float) -> Bracket:
    """The bracket of two bounds that may have changed places by rounding."""
    return Bracket(min(float(lower), float(upper)), float(upper))


class Witness(ABC):
    """An object that proves a bound of a measure, for any Γ that it fits.

    `bound` computes from the definition of the measure and from this object alone. Whatever the object holds, the
    result bounds the exact value for just that Γ, up to rounding. Sums are by `math.fsum`. So a bound errs by
    5e-15 at most, where the class does not state another rounding error. An object without a bound is refused.

    Attributes
    ----------
    side : {"lower", "upper", "both"}
        Which bound it proves.
    about : tuple of str
        The measures that it may bound; with a field `measure`, the one that this names.
    """

    side: ClassVar[Side]
    about: ClassVar[tuple[str, ...]]

    def is_about(self, name: str, options: Mapping[str, Any]) -> bool:
        """Whether it is about this measure with these options: those that it has, too, are the same."""
        same = all(getattr(self, option, value) == value for option, value in options.items())
        return name in self.about and getattr(self, "measure", name) == name and same

    @abstractmethod
    def bound(self, gamma: JointDistribution) -> float | Bracket:
        """The bound for Γ. If it is of both sides: a bracket, or a number that is both bounds.

        Raises
        ------
        InvalidData, InvalidParameter
            If the object proves nothing about this Γ.
        """

    @abstractmethod
    def __str__(self) -> str:
        """The witness in words."""


@dataclass(frozen=True)
class Explanation:
    """A value and its proof.

    Attributes
    ----------
    name, value, gamma, options :
        The measure, what it returned, of which Γ, and all its options.
    witnesses : tuple of Witness
        Their texts say it in words.
    within : float
        The error of the value that is stated by the measure, rounding apart.
    """

    name: str
    value: float | Bracket
    gamma: JointDistribution
    witnesses: tuple[Witness, ...]
    options: Mapping[str, Any]
    within: float = 0.0

    @property
    def witness(self) -> Witness:
        """The first of the witnesses."""
        return self.witnesses[0]

    @property
    def side(self) -> Side:
        """Which bounds are proved: "lower", "upper" or "both"."""
        sides = {witness.side for witness in self.witnesses}
        return sides.pop() if len(sides) == 1 else "both"

    def verify(self) -> Bracket:
        """The bracket that the witnesses prove of this measure on this Γ, without the algorithm that found the value.

        Returns
        -------
        Bracket
            It holds the exact value of the measure, up to the rounding error that the witnesses state.

        Raises
        ------
        InvalidData
            If a witness does not fit Γ, or value and bounds contradict each other by more than `within` + 1e-9.
        InvalidParameter
            If a witness is about something else.
        """
        lower, upper = 0.0, math.inf
        for witness in self.witnesses:
            if not witness.is_about(self.name, self.options):
                raise InvalidParameter(f"{witness!r}; expected one about {self.name!r} with {self.options}")
            low, high = ends(witness.bound(self.gamma))
            lower = max(lower, low) if witness.side != "upper" else lower
            upper = max(min(upper, high), 0.0) if witness.side != "lower" else upper
        least, most = ends(self.value)
        if not max(least, lower) <= min(most, upper) + self.within + WRONG:
            raise InvalidData(
                f"{self.name} = {self.value!r} lies outside of [{lower!r}, {upper!r}], which is proved; "
                "expected the value of the measure"
            )
        return between(lower, upper)

    @cached_property
    def lower(self) -> float:
        """The proved lower bound (see `verify`)."""
        return self.verify().lower

    @cached_property
    def upper(self) -> float:
        """The proved upper bound (see `verify`)."""
        return self.verify().upper

    def __str__(self) -> str:
        least, most = ends(self.value)
        value = f"= {least:.6g}" if least == most else f"in [{least:.6g}, {most:.6g}]"
        return "\n".join([f"{self.name} {value}", *(f"{_IN_WORDS[w.side]}: {w}" for w in self.witnesses)])


def vector(what: str, values: Any, length: int | None = None) -> Floats:
    """The values as finite floats in one dimension, of this length if one is given."""
    array = validation.vector(what, values)
    if length not in (None, len(array)) or not np.isfinite(array).all():
        raise InvalidData(f"{what}, of length {len(array)}; expected {length or 'some'} finite numbers")
    return array


def hinges(x: Floats, first: Ints, n: Floats, c: Floats) -> Floats:
    """Σ n_l (c_l − x_j)_+ over first_l ≤ j, for ascending points x_j: an error of 1e-15 times the sum of the n_l."""
    ends = np.searchsorted(x, c)
    used = first < ends
    at, size = np.concatenate((first[used], ends[used])), np.concatenate((n[used], -n[used]))
    height, slope = (running(grouped(y, at, len(x) + 1))[:-1] for y in (size * np.tile(c[used], 2), size))
    return np.maximum(height - slope * x, 0.0)
