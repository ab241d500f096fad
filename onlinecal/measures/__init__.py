"""The calibration measures: pure functions of Γ.

To add one: write it in the file of its family, with its row in that file's ``MEASURES``.

Three kinds of function are exported and yet not in the catalogue, so not to be named in a scenario: those of the file
``estimators`` (``kernel_ce_squared_*``, ``surrogate_interval_ce_sampled``), for what they estimate is there exactly
and sooner; ``true_distance``, which needs the sequence of rounds and not only Γ; and what returns something else than
one number (``brier_decomposition``, ``soft_rounding``).
"""

from typing import Any

from onlinecal.errors import LIST, UnknownName
from onlinecal.joint import JointDistribution, of_gamma
from onlinecal.measures import (
    binned,
    cutoff,
    decision,
    interval,
    kernel,
    lower_distance,
    reflected,
    scores,
    smooth,
    soft_binned,
    surrogate,
    upper_distance,
)
from onlinecal.measures.base import Bracket, Explanation, Measure, Witness
from onlinecal.measures.binned import binned_ece, binned_ece_width, ece
from onlinecal.measures.cutoff import cutoff_ce, low_degree_ce, step_ce, weighted_ce
from onlinecal.measures.decision import cdl, cfdl, u_calibration, v_cdl
from onlinecal.measures.estimators import (
    kernel_ce_squared_binning,
    kernel_ce_squared_fourier,
    kernel_ce_squared_pairs,
    surrogate_interval_ce_sampled,
)
from onlinecal.measures.interval import interval_ce, interval_ce_bracket
from onlinecal.measures.kernel import kernel_ce
from onlinecal.measures.lower_distance import distance_lower
from onlinecal.measures.reflected import smooth_ece, smooth_ece_at
from onlinecal.measures.scores import brier, brier_decomposition, log_loss, nce
from onlinecal.measures.smooth import smooth_ce
from onlinecal.measures.soft_binned import scdl, scdl_binned, soft_rounding
from onlinecal.measures.surrogate import random_interval_ce, surrogate_interval_ce
from onlinecal.measures.upper_distance import distance_upper, true_distance

_FAMILIES = (
    binned, interval, surrogate, smooth, reflected, lower_distance, upper_distance, kernel, decision, soft_binned,
    cutoff, scores,
)  # fmt: skip

#: name → what is known about it
MEASURES: dict[str, Measure] = {measure.name: measure for family in _FAMILIES for measure in family.MEASURES}


@of_gamma
def explain(gamma: JointDistribution, name: str, **options: Any) -> Explanation:
    """The value of a measure with the witness that proves it.

    Parameters
    ----------
    gamma : JointDistribution
    name : str
        A measure that has a witness.
    **options
        The measure's own.

    Returns
    -------
    Explanation
        `value`, `witness`, and `verify()`, which recomputes the value from the witness alone.

    Raises
    ------
    UnknownName
        No such measure.
    InvalidParameter
        The measure has no witness, or no such option.

    Examples
    --------
    >>> from onlinecal import JointDistribution
    >>> why = explain(JointDistribution.from_levels([0.45], [1], [0.55]), "cdl")
    >>> round(why.value, 6), round(why.verify(), 6)
    (0.181818, 0.181818)
    """
    if name not in MEASURES:
        raise UnknownName.of("measure", name, MEASURES, LIST)
    return MEASURES[name].explain(gamma, **options)


__all__ = [
    "MEASURES",
    "Bracket",
    "Explanation",
    "Measure",
    "Witness",
    "binned_ece",
    "binned_ece_width",
    "brier",
    "brier_decomposition",
    "cdl",
    "cfdl",
    "cutoff_ce",
    "distance_lower",
    "distance_upper",
    "ece",
    "explain",
    "interval_ce",
    "interval_ce_bracket",
    "kernel_ce",
    "kernel_ce_squared_binning",
    "kernel_ce_squared_fourier",
    "kernel_ce_squared_pairs",
    "log_loss",
    "low_degree_ce",
    "nce",
    "random_interval_ce",
    "scdl",
    "scdl_binned",
    "smooth_ce",
    "smooth_ece",
    "smooth_ece_at",
    "soft_rounding",
    "step_ce",
    "surrogate_interval_ce",
    "surrogate_interval_ce_sampled",
    "true_distance",
    "u_calibration",
    "v_cdl",
    "weighted_ce",
]
