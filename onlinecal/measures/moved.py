"""Brackets of a measure from Γ after its predictions were moved, and the mean distance of the moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import number
from onlinecal.measures.witnesses.base import Bracket, ends

if TYPE_CHECKING:
    from onlinecal.measures.base import Measure


@dataclass(frozen=True)
class Modulus:
    """The largest change of a measure when predictions move by δ on average, whatever their outcomes.

    Attributes
    ----------
    formula, source : str
        In δ and the options; the theorem, or the reason.
    bound : callable
        `bound(moved, **options) -> float`: the formula at δ = `moved`, in which it does not decrease.
    """

    formula: str
    source: str
    bound: Callable[..., float]

    def __call__(self, moved: float, **options: Any) -> float:
        """The bound where predictions move by `moved` on average."""
        return self.bound(moved, **options)


def require_modulus(measure: Measure, options: Mapping[str, Any], moves: str) -> Modulus:
    """The modulus of a measure with these options; refuses where nothing is proved about `moves`."""
    if measure.modulus is None:
        raise InvalidParameter(
            f"measure {measure.name!r} with {moves}: nothing is proved about its value when predictions are moved; "
            f"expected to evaluate it on all predictions, or a measure with a modulus, such as 'smooth_ce'"
        )
    measure.modulus(0.0, **options)  # refuses options for which nothing is proved
    return measure.modulus


def bracket_of_moved(
    measure: Measure, gamma: JointDistribution, moved: float, options: Mapping[str, Any]
) -> Bracket:
    """value(Γ') ± (ω(δ) + the error of the value + rounding), cut to the measure's range; a bracket is widened."""
    moved = number("bracket_of_moved", "moved", moved, 0.0, 1.0)
    modulus = require_modulus(measure, options, "moved predictions")
    value = measure.function(gamma, **options)
    low, high = ends(value)
    within = measure.within(gamma, **options) if measure.within is not None else 0.0
    # Distances and values have some 1e-16 of rounding in each level's share, at worst all of one sign.
    wider = modulus(moved, **options) + within + 1e-12 + 4e-16 * gamma.levels
    return Bracket(max(low - wider, measure.least), min(high + wider, measure.largest))
