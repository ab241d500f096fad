"""What is certain of a measure when all that is known is Γ after its predictions were moved, and how far on average.

A measure whose value changes by at most ω(δ) when predictions move by δ on average is bracketed by its value on the
moved Γ. Measures without such a modulus jump: however little predictions move, nothing follows.
"""

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
    """By how much at most a measure changes when predictions move by δ on average, whatever their outcomes.

    Attributes
    ----------
    formula : str
        In δ and the options.
    source : str
        The theorem, or the reason.
    bound : callable
        `bound(moved, **options) -> float`: the formula at δ = `moved`; it does not decrease in `moved`. Raises
        `InvalidParameter` on options for which nothing is proved.
    """

    formula: str
    source: str
    bound: Callable[..., float]

    def __call__(self, moved: float, **options: Any) -> float:
        """The bound where predictions move by `moved` on average."""
        return self.bound(moved, **options)


def require_modulus(measure: Measure, options: Mapping[str, Any], moves: str) -> Modulus:
    """The modulus of a measure with these options."""
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
    """A bracket of the measure of Γ as it was before its predictions were moved.

    Parameters
    ----------
    measure : Measure
        With a modulus.
        After the predictions were moved; outcomes and weights are the same.
    moved : float, in [0, 1]
        The mean distance E|v − v'|, or more.
    options : mapping
        Of the measure's function.

    Returns
    -------
    Bracket
        value(Γ') ± (ω(δ) + the error of the value + rounding), cut to the measure's range. Where the measure itself
        returns a bracket, both its ends are widened.
    """
    moved = number("bracket_of_moved", "moved", moved, 0.0, 1.0)
    modulus = require_modulus(measure, options, "moved predictions")
    value = measure.function(gamma, **options)
    low, high = ends(value)
    within = measure.within(gamma, **options) if measure.within is not None else 0.0
    # Distances and values have some 1e-16 of rounding in each level's share, at worst all of one sign.
    wider = modulus(moved, **options) + within + 1e-12 + 4e-16 * gamma.levels
    return Bracket(max(low - wider, measure.least), min(high + wider, measure.largest))
