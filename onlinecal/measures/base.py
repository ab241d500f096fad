"""What every measure is made of: its record in the catalogue, the bracket, and the witness that proves a value."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from onlinecal.errors import InvalidParameter, suggestion
from onlinecal.joint import JointDistribution


@dataclass(frozen=True)
class Bracket:
    """A certified interval that holds the value of a measure where the exact value is out of reach.

    Attributes
    ----------
    lower, upper : float
        lower ≤ measure ≤ upper.
    """

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """upper − lower: the error that remains."""
        return self.upper - self.lower

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper


class Witness(Protocol):
    """An object from which the value of a measure can be recomputed without the algorithm that found it."""

    def value(self, gamma: JointDistribution) -> float:
        """The value that this witness attains on Γ, from the definition."""

    def __str__(self) -> str:
        """The witness in words."""


@dataclass(frozen=True)
class Measure:
    """One row of the catalogue: the function and what is known about it.

    Attributes
    ----------
    function : callable
        `function(gamma, **options) -> float` or, where `bracket`, `-> Bracket`. Pure.
    symbol, source, complexity : str
        As in the papers; complexity in k, the number of levels (sorting belongs to Γ).
    bracket : bool
        Whether the result is a `Bracket` instead of a number.
    continuous, complete, sound : str
        In the sense of BGHN23 Table 1: "yes", "no", or the exponents known.
    decisions : str
        What it bounds for a decision maker, in a few words; "" for nothing.
    witness : callable, optional
        `witness(gamma, **options) -> Witness`.
    """

    function: Callable[..., Any]
    symbol: str
    source: str
    complexity: str
    bracket: bool = False
    continuous: str = ""
    complete: str = ""
    sound: str = ""
    decisions: str = ""
    witness: Callable[..., Witness] | None = field(default=None)

    @property
    def name(self) -> str:
        """The name in scenarios, tables and curves."""
        return self.function.__name__

    @property
    def options(self) -> Mapping[str, Any]:
        """Names and defaults of the keyword options; `inspect.Parameter.empty` for one that must be given."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def bind(self, **options: Any) -> Callable[[JointDistribution], Any]:
        """The measure with its options fixed.

        Raises
        ------
        InvalidParameter
            On an option that the measure does not have, or must have and is not given. Values are checked when the
            measure is called.
        """
        for key in options:
            if key not in self.options:
                raise InvalidParameter(
                    f"measure {self.name!r} has no option {key!r}{suggestion(key, self.options)}"
                )
        return partial(self.function, **options) if options else self.function

    def explain(self, gamma: JointDistribution, **options: Any) -> Explanation:
        """The value with its witness; see `onlinecal.measures.explain`."""
        if self.witness is None:
            raise InvalidParameter(f"measure {self.name!r} has no witness")
        self._check(options)
        return Explanation(self.name, self.function(gamma, **options), self.witness(gamma, **options), gamma)

    def _check(self, options: Mapping[str, Any]) -> None:
        known = self.options
        for key in options:
            if key not in known:
                raise InvalidParameter(f"measure {self.name!r} has no option {key!r}{suggestion(key, known)}")
        for key, default in known.items():
            if default is inspect.Parameter.empty and key not in options:
                raise InvalidParameter(f"measure {self.name!r} needs the option {key!r}")


@dataclass(frozen=True)
class Explanation:
    """A value and what proves it.

    Attributes
    ----------
    name : str
    value : float or Bracket
    witness : Witness
        Its text says it in words.
    gamma : JointDistribution
    """

    name: str
    value: Any
    witness: Witness
    gamma: JointDistribution

    def verify(self) -> float:
        """The value recomputed from the witness alone (for a bracket, the end that the witness attains)."""
        return self.witness.value(self.gamma)

    def __str__(self) -> str:
        return (
            f"{self.name} = {self.value:.6g}: {self.witness}"
            if isinstance(self.value, float)
            else (f"{self.name} in [{self.value.lower:.6g}, {self.value.upper:.6g}]: {self.witness}")
        )
