"""A measure: its record in the catalogue, and its use on any Γ."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from onlinecal.core.errors import InvalidParameter, suggestion
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import integer
from onlinecal.measures.moved import Modulus, bracket_of_moved, require_modulus
from onlinecal.measures.sampling import Between, Sampling
from onlinecal.measures.witnesses.base import Bracket, Explanation, Witness, ends

__all__ = ["Between", "Bracket", "Explanation", "Measure", "Modulus", "Sampling", "Witness", "ends"]


@dataclass(frozen=True)
class Measure:
    """One row of the catalogue: the function and what is known about it.

    Attributes
    ----------
    function : callable
        `function(gamma, **options) -> float` or, where `bracket`, `-> Bracket`. Pure.
    symbol, source, complexity : str
        As in the papers, by the keys of `catalogue.REFERENCES`; complexity in k levels.
    accuracy : str
        The error of a number that is not exact up to rounding.
    continuous, complete, sound : str
        In the sense of BGHN23 Table 1: "yes", "no", or the exponents known.
    decisions : str
        The bound for a decision maker.
    least, largest : float
        The range of values.
    lasting : bool
        Whether an infinite value of samples is that of their population.
    witness, counterpart : callable, optional
        `witness(gamma, **options) -> Witness`; the counterpart proves the other bound. Plain sums have none.
    within, upper : callable, optional
        The largest error, apart from rounding; the upper end of the bracket, where it is found sooner alone.
    example : mapping
        Options that must be given.
    limit, fallback : callable, optional
        `limit(**options) -> int`: the number of levels up to which the function goes by itself. Above, or above a limit
        given, `fallback(gamma, most, **options) -> Bracket`.
    modulus : Modulus, optional
        The largest change of the value when predictions move by δ on average.
    sampling : Sampling or Between, optional
        The distance of the value on a sample from that of its population.
    tail : callable, optional
        `tail(x)`: the probability that the value of many calibrated forecasts is x √(E[v (1 − v)]/n) or more.
    of_rounds : bool
        Whether the value depends on the number of rounds.
    version : int
        Raised when its numbers change (tests/versions.py).
    """

    function: Callable[..., Any]
    symbol: str
    source: str
    complexity: str
    bracket: bool = False
    accuracy: str = ""
    continuous: str = ""
    complete: str = ""
    sound: str = ""
    decisions: str = ""
    least: float = 0.0
    largest: float = 1.0
    lasting: bool = False
    witness: Callable[..., Witness] | None = None
    counterpart: Callable[..., Witness] | None = None
    within: Callable[..., float] | None = None
    upper: Callable[..., float] | None = None
    example: Mapping[str, Any] = field(default_factory=dict)
    limit: Callable[..., int] | None = None
    fallback: Callable[..., Bracket] | None = None
    modulus: Modulus | None = None
    sampling: Sampling | Between | None = None
    tail: Callable[[float], float] | None = None
    of_rounds: bool = False
    version: int = 1

    @property
    def name(self) -> str:
        """The name in scenarios, tables and curves."""
        return self.function.__name__

    @property
    def options(self) -> Mapping[str, Any]:
        """Names and defaults of the keyword options; `inspect.Parameter.empty` for one that must be given."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    @property
    def result(self) -> str:
        """Exact or bracket, in a few words."""
        if self.bracket:
            return "bracket"
        if self.limit is not None:
            return f"exact for k ≤ {self.limit():,}, then a bracket".replace(",", " ", 1)
        return self.accuracy or "exact"

    def bind(self, **options: Any) -> Callable[[JointDistribution], Any]:
        """The measure with its options fixed, for Γ with any number of levels.

        Every measure takes `max_levels` here. Above it (default: its `limit`) the result is a `Bracket`: from its
        `fallback`, or by moving predictions to a grid of `max_levels` points and widening by the `modulus`.
        `distance_upper` has its own.
        """
        own = "max_levels" in self.options and self.fallback is None
        most = None if own else options.pop("max_levels", None)
        self._check(options)
        if most is None and self.limit is None:
            return partial(self.function, **options) if options else self.function
        if most is not None:
            most = integer(self.name, "max_levels", most, 2)
            if self.fallback is None:
                require_modulus(self, options, "max_levels")
        return partial(self._limited, most, options)

    def bind_moved(self, **options: Any) -> Callable[[JointDistribution, float], Bracket]:
        """The measure with its options fixed, as a function of a moved Γ and of the mean distance moved.

        Γ with more than `max_levels` levels is moved once more, and the distances add.
        """
        most = None if "max_levels" in self.options else options.pop("max_levels", None)
        self._check(options)
        require_modulus(self, options, "moved predictions")
        if most is not None:
            most = integer(self.name, "max_levels", most, 2)
        return partial(self._moved, most, options)

    def _moved(
        self, most: int | None, options: Mapping[str, Any], gamma: JointDistribution, moved: float
    ) -> Bracket:
        if most is not None and gamma.levels > most:
            gamma, further = gamma.round(most - 1)
            moved = min(moved + further, 1.0)
        return bracket_of_moved(self, gamma, moved, options)

    def may_bracket(self, options: Mapping[str, Any], levels: int | None = None) -> bool:
        """Whether what `bind` returns can give a `Bracket` on Γ of so many levels (default: of any number)."""
        if self.bracket:
            return True
        most = options.get("max_levels")
        if most is None:
            if self.limit is None:
                return False
            most = self.limit(**options)
        return levels is None or levels > most

    def explain(self, gamma: JointDistribution, **options: Any) -> Explanation:
        """The value with its witnesses; see `onlinecal.measures.explain`."""
        if self.witness is None:
            raise InvalidParameter(f"measure {self.name!r} has no witness; expected one that is no plain sum")
        self._check(options)
        value = self.function(gamma, **options)
        finders = (find for find in (self.witness, self.counterpart) if find is not None)
        witnesses = tuple(find(gamma, **options) for find in finders)
        within = self.within(gamma, **options) if self.within is not None else 0.0
        return Explanation(self.name, value, gamma, witnesses, {**self.options, **options}, within)

    def _limited(self, most: int | None, options: Mapping[str, Any], gamma: JointDistribution) -> Any:
        if most is None:
            assert self.limit is not None
            most = self.limit(**options)
        if gamma.levels <= most:
            own = {"max_levels": most} if "max_levels" in self.options else {}
            return self.function(gamma, **options, **own)
        if self.fallback is not None:
            return self.fallback(gamma, most, **options)
        return bracket_of_moved(self, *gamma.round(most - 1), options)

    def _check(self, options: Mapping[str, Any]) -> None:
        known = self.options
        for key in options:
            if key not in known:
                raise InvalidParameter(f"measure {self.name!r} has no option {key!r}{suggestion(key, known)}")
        for key, default in known.items():
            if default is inspect.Parameter.empty and key not in options:
                raise InvalidParameter(f"measure {self.name!r} needs the option {key!r}")
