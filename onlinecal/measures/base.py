"""A measure: its record in the catalogue, its use on any Γ, and how far samples take its value.

Let Γ̂ be n independent draws from Γ, and D = Γ̂ − Γ the change of mass of each prediction and outcome. A measure states
sublinear functions L_j of D, and bounds of its value on Γ where L_j(D) ≤ c_j for all j. The law of D, from resampling
or an inequality, then gives an interval. For a seminorm of the residuals there is one L, the measure itself:
|μ(Γ̂) − μ(Γ)| ≤ μ(Γ̂ − Γ) by the triangle inequality.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from onlinecal.core.arrays import Ints
from onlinecal.core.errors import InvalidParameter, MissingParameter, UnknownParameter
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.measures.witnesses.base import Bracket, Explanation, Witness, ends

__all__ = ["Between", "Bracket", "Explanation", "Measure", "Sampling", "Witness", "ends"]

Ends = tuple[float, float]
GAFFKE = "quantiles of means with random weights and one more sample of an extreme loss (Gaffke 2005)"


@dataclass(frozen=True)
class Change:
    """Changes of the mass of each level and outcome, (B, k); `samples` is n, or (Σ w)²/Σ w² of weighted ones."""

    gamma: JointDistribution
    zeros: Floats
    ones: Floats
    samples: float
    #: Γ before its predictions were rounded, and the level of `gamma` for each of its levels
    origin: JointDistribution
    place: Ints

    @cached_property
    def residuals(self) -> Floats:
        """Changes of the residuals r_i, (B, k)."""
        return self.ones - (self.ones + self.zeros) * self.gamma.predictions


@dataclass(frozen=True)
class Known:
    """The Γ of the sample, n, the ends of the value, and values at other options, kept for several measures."""

    gamma: JointDistribution
    samples: float
    ends: Ends
    kept: dict[str, Floats] = field(default_factory=dict)


def _around(known: Known, radii: Floats, **options: Any) -> Ends:
    """The value, and the one radius to either side."""
    return known.ends[0] - float(radii[0]), known.ends[1] + float(radii[0])


@dataclass(frozen=True)
class Sampling:
    """The way to an interval for a measure."""

    #: of (change, **options): L_j of each change, (B, J)
    deviations: Callable[..., Floats]
    source: str
    #: of (known, radii, **options): the interval where L_j(D) ≤ radii[j]; it holds the value on the sample
    limits: Callable[..., Ends] = _around
    #: of (gamma, residuals, **options): the measure as a seminorm of residuals (B, k)
    norm: Callable[..., Floats] | None = None
    #: levels that count together; where cells with few samples weigh more than `share`, use `instead`
    cells: Callable[..., Ints] | None = None
    share: Callable[..., float] = lambda **options: 0.05
    instead: str = ""
    #: of the options: why there is no interval, or ""
    refuses: Callable[..., str] = lambda **options: ""
    #: of (samples, **options): (J,) floats no less than √n E[L_j(D)] for every Γ, or None
    means: Callable[..., Any] | None = None
    #: no sample changes an L_j by more than this times 1/n
    spread: float = 2.0
    #: of gamma: a mean loss at each level for outcome 0 and for outcome 1, and the largest
    losses: Callable[[JointDistribution], tuple[Floats, Floats, float]] | None = None
    #: whether changes of outcomes drawn from the predictions count as well; not for scores
    calibrated: bool = True


@dataclass(frozen=True)
class Between:
    """An interval from those of two other measures without options, one below and one above."""

    lower: str
    upper: str
    source: str


def seminorm(norm: Callable[..., Floats], **facts: Any) -> Sampling:
    def deviations(change: Change, **options: Any) -> Floats:
        return norm(change.gamma, change.residuals, **options)[:, None]

    facts.setdefault("source", "the triangle inequality: |μ(Γ̂) − μ(Γ)| ≤ μ(Γ̂ − Γ)")
    return Sampling(deviations, norm=norm, **facts)


def each_level(gamma: JointDistribution, **options: Any) -> Ints:
    return np.arange(gamma.levels)


def no_share(**options: Any) -> float:
    """The share of cells with few samples that no interval is made with."""
    return 0.0


def halving(samples: float) -> Ints:
    """1, 2, 4, … up to 2 √n and n/30: numbers of bins that are fixed before any outcome is seen."""
    most = min(2.0 * samples**0.5, samples / 30.0)
    return 2 ** np.arange(max(int(np.log2(max(most, 1.0))), 0) + 1)


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
        `limit(**options) -> int`: the number of levels up to which the function goes by itself. Above,
        `fallback(gamma, **options) -> Bracket`.
    many : callable, optional
        Its form for many Γ: of `LevelSets` and the options the values of all, equal to the last bit. It gives None
        where these options have no such form.
    sampling : Sampling or Between, optional
        The distance of the value on a sample from that of its population.
    tail : callable, optional
        `tail(x)`: the probability that the value of many calibrated forecasts is x √(E[v (1 − v)]/n) or more.
    of_rounds : bool
        Whether the value depends on the number of rounds.
    most_rounds : int, optional
        The function takes no more rounds than these.
    seconds : callable, optional
        `seconds(levels, rounds)`: about how long one Γ takes, where that is much.
    version : int
        Raised when its numbers change (tests/golden.py).
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
    many: Callable[..., Floats | None] | None = None
    sampling: Sampling | Between | None = None
    tail: Callable[[float], float] | None = None
    of_rounds: bool = False
    most_rounds: int | None = None
    seconds: Callable[[int, int], float] | None = None
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
        """The measure with its options fixed, for Γ with any number of levels: above its `limit`, its `fallback`."""
        self._check(options)
        if self.limit is not None:
            self.limit(**options)  # refuses options out of range
            return partial(self._limited, options)
        return partial(self.function, **options) if options else self.function

    def may_bracket(self, options: Mapping[str, Any], levels: int | None = None) -> bool:
        """Whether the measure as bound by `bind` can give a `Bracket` on Γ of this number of levels, or of any."""
        return self.bracket or (self.limit is not None and (levels is None or levels > self.limit(**options)))

    def explain(self, gamma: JointDistribution, **options: Any) -> Explanation:
        """The value with its witnesses; see `onlinecal.measures.explain`."""
        if self.witness is None:
            raise InvalidParameter(f"measure {self.name!r} has no witness; expected one that is no plain sum")
        self._check(options)
        value = self.function(gamma, **options)
        finders = [find for find in (self.witness, self.counterpart) if find is not None]
        witnesses = tuple(find(gamma, **options) for find in finders)
        return Explanation(
            self.name, value, gamma, witnesses, {**self.options, **options}, self.error(gamma, **options)
        )

    def error(self, gamma: JointDistribution, **options: Any) -> float:
        """The largest error of the value, apart from rounding."""
        return self.within(gamma, **options) if self.within is not None else 0.0

    def _limited(self, options: Mapping[str, Any], gamma: JointDistribution) -> Any:
        assert self.limit is not None
        assert self.fallback is not None
        exact = gamma.levels <= self.limit(**options)
        return self.function(gamma, **options) if exact else self.fallback(gamma, **options)

    def _check(self, options: Mapping[str, Any]) -> None:
        """Refuse options that the measure does not have, or lacks."""
        known = self.options
        for key in options:
            if key not in known:
                raise UnknownParameter.of(f"measure {self.name!r}", key, known, "option")
        needed = [key for key, default in known.items() if default is inspect.Parameter.empty]
        if missing := [repr(key) for key in needed if key not in options]:
            said = f"option{'s' * (len(missing) > 1)} {' and '.join(missing)}"
            such = ", ".join(f"{key} = {value!r}" for key, value in {**self.example, **options}.items())
            table = f'{{ name = "{self.name}", {such} }}'
            raise MissingParameter(f"measure {self.name!r} needs the {said}; expected such as {table}")


def row(function: Callable[..., Any], facts: str, **more: Any) -> Measure:
    """A measure from "symbol | source | complexity | continuous | complete | sound", and what else is known."""
    names = ("symbol", "source", "complexity", "continuous", "complete", "sound")
    said: dict[str, Any] = dict(zip(names, facts.split(" | "), strict=True))
    return Measure(function, **said, **more)
