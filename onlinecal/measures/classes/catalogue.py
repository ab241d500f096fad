"""The measures of games of K classes by their names, each one number or a bracket."""

from collections.abc import Callable
from typing import Any

from onlinecal.core.classes import ClassDistribution
from onlinecal.core.errors import InvalidParameter
from onlinecal.measures.base import Bracket, Measure
from onlinecal.measures.classes import brackets, programs, sums
from onlinecal.measures.classes.sums import Binary

#: levels up to which CDL and U-calibration are solved in games; 100 take some seconds, 400 a minute
MOST_LEVELS = 100


def classwise(gamma: ClassDistribution, *, measure: Binary = "ece", mean: bool = False) -> float:
    """The largest value of a binary measure of a class against the rest; with `mean` the mean of the classes."""
    if not isinstance(mean, bool):
        raise InvalidParameter(f"classwise: mean = {mean!r}; expected true or false")
    each = sums.classwise(gamma, measure=measure)
    return each.mean if mean else each.max


def toplabel(gamma: ClassDistribution, *, measure: Binary = "ece", conditional: bool = False) -> float:
    """A binary measure of the event that the likeliest class happens, predicted with its probability."""
    if not isinstance(conditional, bool):
        raise InvalidParameter(f"toplabel: conditional = {conditional!r}; expected true or false")
    return sums.toplabel(gamma, measure=measure, conditional=conditional)


def setwise(gamma: ClassDistribution, *, measure: Binary = "ece") -> float:
    """The largest value of a binary measure over all sets of at most 12 classes."""
    return sums.setwise(gamma, measure=measure).value


def _program(
    function: Any, symbol: str, source: str, bracket: Callable[..., Bracket], most: int, seconds: float
) -> Measure:
    """A linear program of up to `most` levels, which takes about that long there; beyond, its bracket."""

    def each(levels: int, rounds: int) -> float:
        return seconds * (levels / most) ** 2.5 if levels <= most else 0.02

    return Measure(
        function, symbol, source, "linear program", limit=lambda: most, fallback=bracket, seconds=each
    )


#: name → what is known about it; docs/classes.md has how they are scaled
MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(sums.ece, "ECE", "Gopalan & Hu 2025, in total variation", "O(kK)"),
        Measure(classwise, "class-wise", "Kull et al. 2019", "O(kK) of ECE"),
        Measure(toplabel, "top label", "Guo et al. 2017", "O(kK) of ECE"),
        Measure(setwise, "set-wise", "Gopalan, Hu & Rothblum 2024", "O(2^K k) of ECE"),
        _program(programs.cdl, "CDL", "Hu & Wu 2024", brackets.cdl_bracket, MOST_LEVELS, 2.0),
        _program(
            programs.u_calibration,
            "UCal",
            "Kleinberg et al. 2023",
            brackets.u_calibration_bracket,
            MOST_LEVELS,
            1.0,
        ),
        _program(
            programs.smooth_ce,
            "smCE",
            "Błasiok et al. 2023",
            brackets.smooth_ce_bracket,
            programs.MOST_LEVELS,
            3.0,
        ),
        Measure(sums.kernel_ce, "kCE", "Widmann, Lindsten & Zachariah 2019", "O(k²K)"),
        Measure(sums.brier, "Brier", "Brier 1950", "O(kK)"),
        Measure(sums.log_loss, "log", "Good 1952", "O(kK)", largest=float("inf")),
    )
}
