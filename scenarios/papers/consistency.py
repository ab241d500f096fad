"""Exponents of consistency of a measure, on families of Γ that come near to calibration."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from onlinecal.core.errors import LIST, InvalidParameter, meant
from onlinecal.core.joint import JointDistribution, check_gamma
from onlinecal.core.validation import positive
from onlinecal.measures import MEASURES, distance_lower, distance_upper
from onlinecal.measures.base import Bracket, ends

Family = Callable[[float], JointDistribution]


def bias(size: float) -> JointDistribution:
    """One forecast of ½ that is too low by `size`."""
    return JointDistribution.from_levels([0.5], [1.0], [0.5 + size])


def fair_coins(size: float) -> JointDistribution:
    """Forecasts ½ ± `size` of fair coins (BGHN23, Lemma 4.5)."""
    return JointDistribution.from_levels([0.5 - size, 0.5 + size], [0.5, 0.5], [0.5, 0.5])


def crossed(size: float) -> JointDistribution:
    """Forecasts ½ ± `size` of what is certain, each on the wrong side (BGHN23, §1)."""
    return JointDistribution.from_levels([0.5 - size, 0.5 + size], [0.5, 0.5], [1.0, 0.0])


def four_points(size: float) -> JointDistribution:
    """Fair coins at ½ ± `size`, and a few that are certain beyond them (BGHN23, Lemma 6.8)."""
    v = [0.5 - 1.5 * size, 0.5 - size, 0.5 + size, 0.5 + 1.5 * size]
    return JointDistribution.from_levels(v, [size, 0.5 - size, 0.5 - size, size], [1.0, 0.5, 0.5, 0.0])


def cancelling(size: float) -> JointDistribution:
    """Two forecasts of one bin with errors of `size` that cancel."""
    return JointDistribution.from_levels([0.52, 0.58], [0.5, 0.5], [0.52 + size, 0.58 - size])


#: those that `consistency_exponents` looks at
FAMILIES: dict[str, Family] = {f.__name__: f for f in (bias, fair_coins, crossed, four_points, cancelling)}


@dataclass(frozen=True)
class Consistency:
    """The result of `consistency_exponents`.

    Attributes
    ----------
    complete, sound : mapping
        Family → slope of ln μ against ln of the lower distance, and of the upper one. It is infinite where μ is 0.
    """

    measure: str
    complete: Mapping[str, float]
    sound: Mapping[str, float]

    @property
    def c(self) -> float:
        """The least slope: μ ≤ a (lower distance)^c holds on these families with no larger c; 0: with none."""
        return min(self.complete.values())

    @property
    def s(self) -> float:
        """The largest slope: μ ≥ b (upper distance)^s holds on these families with no smaller s."""
        return max(self.sound.values())


def consistency_exponents(
    name: str,
    *,
    families: Mapping[str, Family] | None = None,
    sizes: Sequence[float] = (2.0**-5, 2.0**-9),
    **options: Any,
) -> Consistency:
    """The exponents c and s of the consistency of a measure, as they show on families of Γ.

    A measure is (c, s)-consistent if b (distance)^s ≤ μ ≤ a (distance)^c for some a and b. Take a family that nears
    calibration. c is at most the least slope of ln μ against the logarithm of the lower distance. s is at least the
    largest against that of the upper one. Exponents can be refuted, not proved.

    Source: Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 4.2; Lemmas 4.5 and 6.8 for the families.

    Parameters
    ----------
    name : str
        A measure of the catalogue.
    families : mapping, optional
        Name → function of a size that gives a Γ. Default: `FAMILIES`.
    sizes : two floats, default 2⁻⁵ and 2⁻⁹
        Between which the slopes are taken, the larger first.
    **options
        The measure's own.

    Returns
    -------
    Consistency
        Slopes by family, and `c` and `s`.

    Examples
    --------
    >>> found = consistency_exponents("smooth_ce")
    >>> round(found.c, 1), round(found.s, 1)
    (1.0, 2.0)
    """
    where = "consistency_exponents"
    chosen = FAMILIES if families is None else families
    if not isinstance(chosen, Mapping) or not chosen or not all(map(callable, chosen.values())):
        raise InvalidParameter(f"{where}: families = {families!r}; expected names with functions of a size")
    if not isinstance(sizes, Sequence) or len(sizes) != 2:
        raise InvalidParameter(f"{where}: sizes = {sizes!r}; expected two")
    far, near = (positive(f"{where}: sizes[{j}]", size, "a positive number") for j, size in enumerate(sizes))
    if not near < far:
        raise InvalidParameter(f"{where}: sizes = {sizes!r}; expected the larger one first")
    record = MEASURES[meant("measure", name, MEASURES, LIST)]
    measured = record.bind(**options)
    complete, sound = {}, {}
    for called, family in chosen.items():
        found = []
        for size in (far, near):
            gamma = family(size)
            check_gamma(f"{where}: family {called!r}", gamma)
            distances = _distances(family, size)
            if not distances[0] > 0.0:
                raise InvalidParameter(
                    f"{where}: family {called!r} is calibrated at {size:g}; expected another"
                )
            found.append((_middle(measured(gamma)), *distances))
        (high, *upper), (low, *lower) = found
        slopes = [_slope(high, low, x, y) for x, y in zip(upper, lower, strict=True)]
        complete[called], sound[called] = slopes
    return Consistency(record.name, complete, sound)


@lru_cache(maxsize=64)
def _distances(family: Family, size: float) -> tuple[float, float]:
    gamma = family(size)
    return _middle(distance_lower(gamma)), _middle(distance_upper(gamma))


def _middle(value: float | Bracket) -> float:
    return 0.5 * sum(ends(value))


def _slope(far: float, near: float, from_far: float, from_near: float) -> float:
    """Slope of ln μ between two distances; infinite where μ is 0 or infinite near calibration: no power bounds it."""
    if near <= 0.0:
        return math.inf
    if math.isinf(near):
        return -math.inf
    if from_far == from_near or far <= 0.0:
        return math.nan
    return math.log(far / near) / math.log(from_far / from_near)
