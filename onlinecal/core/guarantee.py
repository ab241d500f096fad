"""Proved bounds as data for plots, tables and tests, and bounds that follow from them by A ≤ c·B.

A bound on the total of B from above gives one on A. A bound on A from below gives one on B.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from functools import cache
from typing import Any, Literal

from onlinecal.core.columns import QUADRATIC, SQUARED_LOSS, Column
from onlinecal.core.errors import InvalidParameter

Kind = Literal["deterministic", "expected", "rate"]


class Sight(IntEnum):
    """The sight of a nature before it chooses q_t; each level includes those before it."""

    #: nothing: it is oblivious
    NOTHING = 0
    #: the forecasts and outcomes of past rounds
    HISTORY = 1
    #: also this round's law: an adversary that knows the algorithm
    LAW = 2
    #: also the forecast drawn from it
    DRAW = 3


class Forecasters(Enum):
    """The forecasters against which a nature's bound is proved."""

    EVERY = "every forecaster"
    #: each law is a single forecast, which is then known before it is made
    DETERMINISTIC = "every deterministic forecaster"


@dataclass(frozen=True)
class OnGrid:
    """The forecasters on 0, 1/m, …, 1 only, against which a nature's bound is proved."""

    m: int

    @property
    def value(self) -> str:
        """In words."""
        return f"every forecaster on 0, 1/{self.m}, …, 1"

    def fits(self, grid: Any) -> bool:
        """Whether a player with these values, or (None) with any, is one of them."""
        return grid is not None and all(abs(v * self.m - round(v * self.m)) < 1e-12 for v in grid)


def log(horizon: float) -> float:
    """The natural logarithm in a rate, and 1 where it is below 1."""
    return max(1.0, math.log(horizon))


@dataclass(frozen=True)
class Potential:
    """A number (Γ, T) ↦ `of`. No round raises its mean over the law by more than the mean of `growth` (Γ, v, T).

    Without `growth` no round lowers it, whatever is drawn. If `linear`, a round is shared out among all forecasts.
    """

    of: Callable[[Any, int], float]
    growth: Callable[[Any, float, int], float] | None = None
    linear: bool = False


@dataclass(frozen=True)
class Guarantee:
    """A proved bound on the total T·μ of a measure in a game of T rounds.

    Attributes
    ----------
    column : Column
        The bounded column. A name alone is a measure of the catalogue.
    formula : str
        The bound in words: ``"2√T + 1"``.
    bound : callable
        T ↦ the value. For a rate, up to a constant that no source states.
    kind : {"deterministic", "expected", "rate"}
        Holds for every sequence; in expectation over the engine's draws; or as a growth rate only.
    against : Sight, Forecasters or OnGrid
        The natures that see at most that much; or, of a nature's guarantee, the forecasters that it hurts.
    source : str
        Authors, year, theorem.
    upper : bool
        Whether it bounds the total from above (forecasters) or from below (natures).
    anytime : bool
        Whether the bound holds at every round t by its value at t. Otherwise it holds at the horizon to which the
        player is tuned.
    slack : callable, optional
        Of an expected bound: (T, runs, δ) ↦ an excess of the mean total of the runs. Its probability is at most δ.
    potential : Potential, optional
        Of a bound that is proved by one.
    delayed : callable, optional
        (T, most open questions) ↦ the bound on the total over the resolved rounds of a game with delays. The
        question being asked is open, too. T is the horizon; of a bound from below, the number of resolved rounds.
    of_groups : bool
        Whether it speaks of all groups of nature: it holds for a forecaster that needs each of them.
    """

    column: Column
    formula: str
    bound: Callable[[float], float]
    kind: Kind
    against: Sight | Forecasters | OnGrid
    source: str
    upper: bool = True
    anytime: bool = False
    slack: Callable[[float, int, float], float] | None = None
    potential: Potential | None = None
    delayed: Callable[[float, int], float] | None = None
    of_groups: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.column, str):
            object.__setattr__(self, "column", Column("measure", self.column))
        if not isinstance(self.column, Column):
            raise InvalidParameter(f"a guarantee on {self.column!r}; expected a Column or a measure's name")
        if not isinstance(self.against, Sight | Forecasters | OnGrid):
            expected = "a Sight, Forecasters.EVERY or Forecasters.DETERMINISTIC"
            raise InvalidParameter(
                f"a guarantee on {self.measure} against {self.against!r}; expected {expected}"
            )

    @property
    def measure(self) -> str:
        """The name of the column."""
        return self.column.name

    def binds(self, forecaster: Any, nature: Any) -> bool:
        """Whether it is known to hold in a game of these two."""
        if self.of_groups and not {*nature.group_names} <= forecaster.needs:
            return False
        if isinstance(self.against, Sight):
            return bool(nature.sight <= self.against)
        return self.against is Forecasters.EVERY or forecaster.deterministic is True

    @property
    def short(self) -> str:
        """The relation alone: ``cdl = O(√T log T)``."""
        if self.kind == "rate":
            return f"{self.measure} = {'O' if self.upper else 'Ω'}({self.formula})"
        return f"{self.measure} {'≤' if self.upper else '≥'} {self.formula}"

    def __str__(self) -> str:
        mean = " in expectation" if self.kind == "expected" else ""
        return f"total {self.short}{mean}, against {self.whom} ({self.source})"

    @property
    def whom(self) -> str:
        """The players against which it holds, in words."""
        return _WHOM[self.against] if isinstance(self.against, Sight) else self.against.value


_WHOM = {
    Sight.NOTHING: "every oblivious nature",
    Sight.HISTORY: "every nature that sees the history",
    Sight.LAW: "every nature that sees the law",
    Sight.DRAW: "every sequence",
}


@dataclass(frozen=True)
class Relation:
    """smaller ≤ factor · larger, for every Γ; both as totals or both as averages."""

    smaller: str
    larger: str
    source: str
    factor: float = 1.0

    def __str__(self) -> str:
        return f"{self.smaller} ≤ {_times(self.factor)}{self.larger}"


_BGHN = "Błasiok et al. 2023"
_HW = "Hu and Wu 2024; Gopalan and Hu 2025"
_SUMS = "both from the prefix sums of the residuals"

RELATIONS = (
    # Distances and what is continuous.
    Relation("distance_lower", "distance", f"{_BGHN}, Lemma 5.4"),
    Relation("distance", "distance_upper", f"{_BGHN}, Lemma 5.4"),
    Relation("distance", "distance_certificate", "the certificate moves every forecast by that much"),
    Relation("distance_upper", "interval_ce", f"{_BGHN}, Theorem 6.2"),
    Relation("interval_ce", "surrogate_interval_ce", f"{_BGHN}, Claim 6.6"),
    Relation("surrogate_interval_ce", "ece", f"{_BGHN}, Definition 6.10, at ever narrower intervals"),
    Relation("distance_lower", "smooth_ce", f"{_BGHN}, Theorem 7.3", 2.0),
    Relation("smooth_ce", "distance_lower", f"{_BGHN}, Theorem 7.3", 2.0),
    # The theorem has 3. On the line the squared norm of f in the space of the kernel is ½∫(f² + f'²). A weight of
    # smCE is continued by e^{−|x|} on both sides. It has ½(∫₀¹(f² + f'²) + f(0)² + f(1)²) ≤ 2. One with f² and f'²
    # near 1 throughout comes near that.
    Relation("smooth_ce", "kernel_ce", f"after {_BGHN}, Theorem 8.5, whose 3 can be √2", math.sqrt(2.0)),
    Relation("smooth_ce", "ece", "|ω| ≤ 1"),
    # Let ω attain smCE, and ω_σ be its convolution with the reflected kernel. E[ω r] = E[ω_σ r] + E[(ω − ω_σ) r] is
    # at most smECE_σ + σ √(2/π). At σ = smECE both terms are at most their factor times smECE.
    Relation("smooth_ce", "smooth_ece", "after Błasiok and Nakkiran 2024, Lemma 8", 1.8),
    Relation("smooth_ece", "ece", "the kernel averages"),
    Relation("kernel_ce", "ece", "K ≤ 1"),
    # Of K classes.
    Relation("classwise", "ece", "the error of a class is at most the total variation"),
    Relation("toplabel", "ece", "the error of a class is at most the total variation"),
    Relation("setwise", "ece", "the error of a set is at most the total variation"),
    Relation("kernel_ce", "kernel_ce_certificate", "Vovk, Takemura and Shafer 2005"),
    # Decisions.
    Relation("cdl", "ece", _HW, 2.0),
    Relation("cdl", "v_cdl", f"{_HW}, Theorem 4.10", 2.0),
    Relation("v_cdl", "cdl", "CDL is the largest over more tasks"),
    Relation("swap_regret", "cdl", "CDL is the largest over all tasks"),
    Relation(QUADRATIC, "cdl", "CDL is the largest over all tasks"),
    Relation(QUADRATIC, "ece", "(q − v)² ≤ |q − v|"),
    Relation(QUADRATIC, "cfdl", "the same number"),
    Relation("cfdl", QUADRATIC, "the same number"),
    Relation(SQUARED_LOSS, QUADRATIC, "fewer swaps"),
    Relation(SQUARED_LOSS, "u_calibration", "UCal is the largest over all tasks"),
    Relation("action_swap_regret", "swap_regret", "fewer swaps"),
    Relation("external_regret", "action_swap_regret", "fewer swaps"),
    Relation("external_regret", "u_calibration", "UCal is the largest over all tasks"),
    Relation("u_calibration", "cdl", "Kleinberg et al. 2023: fewer swaps"),
    # R_ext(t) is Σ_{v ≤ t} w (q − t) or −Σ_{v > t} w (q − t). Each is at most the bias of its interval. The measure
    # of the kinks of a task with payoffs in [0, 1] is at most 2.
    Relation("u_calibration", "cutoff_ce", "external regret at a kink is at most the bias of an interval", 2.0),
    Relation("scdl", "cdl", "Bairaktari et al. 2026, Lemma 3.4"),
    Relation("scdl_binned", "cdl", "Bairaktari et al. 2026, Lemma 3.4"),
    # Tests of the residual.
    Relation("step_ce", "cutoff_ce", _SUMS),
    Relation("cutoff_ce", "step_ce", _SUMS, 2.0),
    Relation("cutoff_ce", "ece", "an interval is a set of levels"),
    Relation("binned_ece", "ece", "errors within a bin cancel"),
    Relation("weighted_ce", "smooth_ce", "ω = 1"),
    Relation("weighted_ce", "step_ce", "the threshold 1"),
    Relation("low_degree_ce", "cutoff_ce", "powers of v rise: a mean of half-lines"),
    Relation("low_degree_ce", "smooth_ce", "v² changes by at most 2 |v − v'|", 2.0),
)  # fmt: skip


@cache
def chain(smaller: str, larger: str) -> tuple[Relation, ...] | None:
    """The relations from one quantity to another with the least product of factors; None if there is no way.

    >>> [str(r) for r in chain("smooth_ce", "distance_certificate")]
    ['smooth_ce ≤ 2 distance_lower', 'distance_lower ≤ distance', 'distance ≤ distance_certificate']
    """
    found: dict[str, tuple[float, tuple[Relation, ...]]] = {smaller: (1.0, ())}
    open_ = [smaller]
    while open_:
        here = min(open_, key=lambda name: found[name][0])
        open_.remove(here)
        factor, way = found[here]
        for relation in RELATIONS:
            if relation.smaller == here:
                known = found.get(relation.larger)
                product = factor * relation.factor
                if known is None or product < known[0]:
                    found[relation.larger] = product, (*way, relation)
                    open_.append(relation.larger)
    return found[larger][1] if larger in found else None


def factor(relations: Iterable[Relation]) -> float:
    """The product of their factors."""
    return math.prod(relation.factor for relation in relations)


def reason(relations: Sequence[Relation]) -> str:
    """A chain in words, with its sources.

    >>> reason(chain("smooth_ce", "distance"))
    'smooth_ce ≤ 2 distance_lower ≤ 2 distance (Błasiok et al. 2023, Theorem 7.3; Lemma 5.4)'
    """
    text, product = relations[0].smaller, 1.0
    sources: list[str] = []
    for relation in relations:
        product *= relation.factor
        text += f" ≤ {_times(product)}{relation.larger}"
        # A paper is named once, then its theorems alone.
        author, comma, place = relation.source.partition(", ")
        known = comma and any(source.startswith(f"{author}, ") for source in sources)
        source = place if known else relation.source
        if source not in sources:
            sources.append(source)
    return f"{text} ({'; '.join(sources)})"


def _times(factor: float) -> str:
    return "" if factor == 1.0 else f"{_number(factor)} "


def _number(x: float) -> str:
    """``2``, ``√2``, ``2√2`` or ``1.8``."""
    square = round(x * x)
    if abs(x * x - square) > 1e-9:
        return f"{x:.4g}"
    outside = max(n for n in range(1, 1 + math.isqrt(square)) if square % (n * n) == 0)
    inside = square // outside**2
    return f"{outside}" if inside == 1 else f"{outside if outside > 1 else ''}√{inside}"


def through(guarantee: Guarantee, measure: str) -> Guarantee:
    """The guarantee on a measure that follows from one on another quantity; LookupError if no relation leads there.

    >>> own = Guarantee("ece", "√T", lambda t: t**0.5, "expected", Sight.LAW, "source")
    >>> through(own, "cdl").short
    'cdl ≤ 2√T'
    >>> through(own, "cdl").source
    'source; with cdl ≤ 2 ece (Hu and Wu 2024; Gopalan and Hu 2025)'
    """
    upper = guarantee.upper
    own = guarantee.column.quantity
    way = (chain(measure, own) if upper else chain(own, measure)) if own and measure else None
    if way is None:
        raise LookupError(f"no relation leads from {guarantee.measure} to {measure}")
    if not way:
        return guarantee
    times = factor(way)
    scale = times if upper else 1.0 / times
    formula, bound, slack, delayed = guarantee.formula, guarantee.bound, guarantee.slack, guarantee.delayed
    if guarantee.kind != "rate" and times != 1.0:
        formula = _scaled(formula, scale)
    return replace(
        guarantee,
        column=Column("measure", measure),
        formula=formula,
        bound=lambda horizon: scale * bound(horizon),
        source=f"{guarantee.source}; with {reason(way)}",
        slack=None if slack is None else lambda horizon, runs, rate: scale * slack(horizon, runs, rate),
        delayed=None if delayed is None else lambda horizon, most: scale * delayed(horizon, most),
    )


def _scaled(formula: str, scale: float) -> str:
    """A formula times a number: ``2(2√T + 1)``; of ``T/2`` another share of T. The meaning of letters comes last."""
    plain = re.fullmatch(r"(√?T)(?:/(\d+))?", formula)
    if plain is not None:
        number = scale / int(plain[2] or 1)
        if (2.0 * number).is_integer() and number >= 1.0:
            return f"{number:.4g}{plain[1]}" if number > 1.0 else plain[1]
        if number < 1.0 and abs(round(1.0 / number) - 1.0 / number) < 1e-9:
            return f"{plain[1]}/{round(1.0 / number)}"
    value, word, where = formula.partition(" with ")
    value = f"{_number(scale)}({value})" if scale > 1.0 else f"({value})/{_number(1.0 / scale)}"
    return value + word + where


def applies(column: Column, upper: bool) -> bool:
    """Whether bounds of this direction on the quantity of a column hold for the column, an end of a bracket."""
    return column.end in ("", "lower" if upper else "upper")


def tightest(guarantees: Iterable[Guarantee], column: Column, horizon: float) -> list[Guarantee]:
    """The tightest bounds on a column, stated or following: of each direction one with a constant, and one rate."""
    return tightest_of(following(guarantees, column), horizon)


def following(guarantees: Iterable[Guarantee], column: Column) -> list[Guarantee]:
    """All bounds on a column that are stated or follow, the stated ones first; T does not matter."""
    found = []
    for guarantee in sorted(guarantees, key=lambda g: g.column != column):
        follows = guarantee
        if guarantee.column != column:
            if not applies(column, guarantee.upper):
                continue
            try:
                follows = through(guarantee, column.quantity)
            except LookupError:
                continue
        found.append(replace(follows, column=column))
    return found


def tightest_of(following: Iterable[Guarantee], horizon: float) -> list[Guarantee]:
    """Of the bounds on one column those that `tightest` returns."""
    best: dict[tuple[bool, bool], Guarantee] = {}
    for follows in following:
        key = follows.upper, follows.kind == "rate"
        rival = best.get(key)
        sign = 1.0 if follows.upper else -1.0
        if rival is None or sign * (follows.bound(horizon) - rival.bound(horizon)) < 0.0:
            best[key] = follows
    return [best[key] for key in sorted(best, key=lambda key: (key[1], not key[0]))]
