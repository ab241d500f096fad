"""Witnesses, objects that prove a bound of a measure on a given Γ; the compensated sums that they use; explanations.

Terms of the sums below are products of at most three numbers of Γ. The error of a sum is at most `SLACK` times the
sum of the absolute values of its terms. For n terms a compensated sum errs by u·|sum| + (n·u)²·Σ|terms|, u = 2⁻⁵³.
That is u·Σ|terms| in all as long as n < 10⁷; a residual w_i (q_i − v_i) by 4u of itself.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Ints
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution

UNIT = 2.0**-53
"""The relative error of one operation."""

SLACK = 18.0 * UNIT
"""The error of a sum, relative to the sum of its absolute terms: twice what was counted."""


def masses(gamma: JointDistribution) -> Floats:
    """w_i, within 2 units."""
    return gamma.counts / total(gamma.counts)


def residuals(gamma: JointDistribution) -> Floats:
    """r_i = w_i (q_i − v_i), within 4 units of each."""
    return masses(gamma) * (gamma.means - gamma.predictions)


def means_rounded(gamma: JointDistribution) -> float:
    """The largest |q_i − s_i/n_i| of the levels, by rounding: more than 4 units comes from means that were given."""
    return float(_means_rounded(np.array(gamma.counts), np.array(gamma.positives), np.array(gamma.means)))


def total(x: Floats) -> float:
    return float(_total(np.array(x)))


def running(x: Floats) -> Floats:
    """x_0 + … + x_i for each i."""
    return np.asarray(_running(np.array(x)))


def grouped(x: Floats, group: Ints, groups: int) -> Floats:
    """Σ of the x_i with group_i = g, for each g < `groups`."""
    return np.asarray(_grouped(np.array(x), np.array(group), groups))


def lines(x: Floats, first: Ints, n: Floats, c: Floats) -> Floats:
    """Σ n_l (c_l − x_j)_+ over first_l ≤ j for ascending points x_j; a line ends at the first point beyond c_l."""
    ends = np.searchsorted(x, c)
    used = first < ends
    first, ends, n, c = first[used], ends[used], n[used], c[used]
    begin, end = np.argsort(first, kind="stable"), np.argsort(ends, kind="stable")
    arguments = (np.array(x), first[begin], n[begin], c[begin], ends[end], n[end], c[end])
    return np.asarray(_lines(*arguments))


# Kernels get copies above: a view, or an array that is not to be written, would be compiled again.


@kernel
def add(total, rest, x):
    """total + rest + x, unevaluated: the sum as rounded, and what rounding left (Knuth's two-sum)."""
    s = total + x
    b = s - total
    return s, rest + ((total - (s - b)) + (x - b))


@kernel
def times(a, b):
    """a b, unevaluated: the product as rounded, and what rounding lost (Dekker)."""
    product = a * b
    high, other = _high(a), _high(b)
    low, rest = a - high, b - other
    return product, low * rest - (((product - high * other) - low * other) - high * rest)


@kernel
def _high(x):
    """The upper 26 bits of x (Veltkamp)."""
    scaled = 134217729.0 * x
    return scaled - (scaled - x)


@kernel
def _means_rounded(n, s, q):
    most = 0.0
    for i in range(n.shape[0]):
        product, lost = times(n[i], q[i])
        most = max(most, abs((s[i] - product) - lost) / n[i])
    return min(most, 4.0 * UNIT)


@kernel
def _total(x):
    s, rest = 0.0, 0.0
    for i in range(x.shape[0]):
        s, rest = add(s, rest, x[i])
    return s + rest


@kernel
def _running(x):
    out = np.empty(x.shape[0])
    s, rest = 0.0, 0.0
    for i in range(x.shape[0]):
        s, rest = add(s, rest, x[i])
        out[i] = s + rest
    return out


@kernel
def _grouped(x, group, groups):
    s, rest = np.zeros(groups), np.zeros(groups)
    for i in range(x.shape[0]):
        g = group[i]
        s[g], rest[g] = add(s[g], rest[g], x[i])
    return s + rest


@kernel
def _lines(x, first, n, c, ends, m, d):
    """Lines (n, c) begin at `first`, lines (m, d) end at `ends`: the same lines, in the order of either."""
    out = np.empty(x.shape[0])
    height, rest, rate, left = 0.0, 0.0, 0.0, 0.0
    begun, ended = 0, 0
    for j in range(x.shape[0]):
        if j > 0:
            height, rest = add(height, rest, -(rate + left) * (x[j] - x[j - 1]))
        while begun < first.shape[0] and first[begun] == j:
            height, rest = add(height, rest, n[begun] * (c[begun] - x[j]))
            rate, left = add(rate, left, n[begun])
            begun += 1
        while ended < ends.shape[0] and ends[ended] == j:
            height, rest = add(height, rest, m[ended] * (x[j] - d[ended]))
            rate, left = add(rate, left, -m[ended])
            ended += 1
        out[j] = height + rest
    return out


Side = Literal["lower", "upper", "both"]
About = Mapping[str, Mapping[str, Any]]

WRONG = 1e-9
"""A condition of a proof may be missed by this much, for rounding; the bound pays for it. More is refused."""

# The loss of products below 1e-308 is absolute, not relative; far more than that, also after division by a small
# mass.
_UNDERFLOW = 1e-250

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


class Witness(ABC):
    """An object that proves a bound of a measure, for any Γ that it fits.

    `bracket` computes from the definition of the measure and from this object alone. Whatever the object holds, the
    result is a true bound for just that Γ, with rounding on the safe side. An object without a bound is refused.
    Where Γ was given counts the bound is for their quotients, and where it was given means for these.

    Attributes
    ----------
    side : {"lower", "upper", "both"}
        Which bound it proves.
    about : mapping
        The measures that it bounds: name → those options that must have just these values.
    """

    side: ClassVar[Side]

    @property
    @abstractmethod
    def about(self) -> Mapping[str, Mapping[str, Any]]: ...

    @abstractmethod
    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        """Lower and upper bound, rounded outwards; −inf or inf where nothing is proved."""

    def bracket(self, gamma: JointDistribution) -> Bracket:
        """The bounds that follow for Γ, 0 and infinity where nothing is proved; `InvalidData` if it does not fit."""
        name = type(self).__name__
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                lower, upper = self._prove(gamma)
        except (TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise InvalidData(f"{name}: {error}; expected a witness that was made for this Γ") from error
        if math.isnan(lower) or math.isnan(upper):
            raise InvalidData(f"{name}: its numbers are too large to be added; expected moderate ones")
        # Proofs start from means as rounded. No measure moves by more than twice what the farthest mean does.
        lost = 2.0 * (1.0 + SLACK) * means_rounded(gamma)
        lost += 0.0 if (gamma.means == gamma.predictions).all() else _UNDERFLOW
        return Bracket(max(float(lower) - lost, 0.0), max(float(upper) + lost, 0.0))

    def value(self, gamma: JointDistribution) -> float:
        """The proved bound as a number: the lower one if that is all, else the upper one; raises as `bracket`."""
        proved = self.bracket(gamma)
        return proved.lower if self.side == "lower" else proved.upper

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
            It holds the exact value of the measure; rounding is included. `InvalidData` if a witness does not fit
            Γ, or the value lies outside by more than `within` + 1e-9. `InvalidParameter` if a witness is about
            something else.
        """
        lower, upper = 0.0, math.inf
        for witness in self.witnesses:
            self._check_about(witness)
            proved = witness.bracket(self.gamma)
            lower, upper = max(lower, proved.lower), min(upper, proved.upper)
        least, most = ends(self.value)
        room = self.within + WRONG
        if not (least <= upper + room and most >= lower - room):
            raise InvalidData(
                f"{self.name} = {self.value!r} lies outside of [{lower!r}, {upper!r}], which is proved; "
                "expected the value of the measure"
            )
        return Bracket(lower, upper)

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

    def _check_about(self, witness: Witness) -> None:
        about, kind = witness.about, type(witness).__name__
        if self.name not in about:
            names = ", ".join(map(repr, about))
            raise InvalidParameter(f"{kind} is about {names}; expected a witness about {self.name!r}")
        for option, value in about[self.name].items():
            if not _same(self.options.get(option), value):
                raise InvalidParameter(
                    f"{kind} is about {self.name!r} with {option} = {value!r}; expected one about "
                    f"{option} = {self.options.get(option)!r}"
                )


def _same(option: Any, value: Any) -> bool:
    try:
        return bool(option == value)
    except ValueError:  # an array, which no option is
        return False


def vector(what: str, values: Any, length: int | None = None) -> Floats:
    """The values as finite floats in one dimension, of this length if one is given."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or length not in (None, len(array)) or not np.isfinite(array).all():
        raise InvalidData(f"{what}, of shape {array.shape}; expected {length or 'some'} finite numbers")
    return array


def integers(what: str, values: Any, length: int | None = None) -> Ints:
    """The same for whole numbers below 2⁵³."""
    array = vector(what, values, length)
    if not ((array == np.rint(array)) & (np.abs(array) < 2.0**53)).all():
        raise InvalidData(f"{what} are not all whole; expected whole numbers")
    return array.astype(np.int64)


def number(what: str, value: Any, least: float = -math.inf, most: float = math.inf) -> float:
    if not (least <= value <= most and abs(value) < math.inf):
        raise InvalidData(f"{what} = {value!r}; expected a finite number in [{least:g}, {most:g}]")
    return float(value)


def same_levels(what: str, predictions: Any, gamma: JointDistribution) -> None:
    """Refuse values that belong to other levels than those of Γ."""
    if not np.array_equal(vector(what, predictions), gamma.predictions):
        raise InvalidData(f"{what} are not the levels of {gamma!r}; expected a witness for this Γ")
