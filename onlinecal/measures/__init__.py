"""The calibration measures: pure functions of Γ.

Some exported functions are not in the catalogue. `subsampled_*_sampled` are random, and `auc`
may have no value. `true_distance` is of at most 400 rounds (`OF_SHORT_GAMES`), and `bregman` is given a function.
`distance_in_metric` has no `Sampling`.
`brier_decomposition` and `soft_rounding` return more than a number.
"""

import importlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from onlinecal.core.errors import LIST, meant
from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.measures import (
    binned,
    binned_orders,
    cutoff,
    decision,
    interval,
    kernel,
    loess,
    quoted,
    scores,
    soft_binned,
    subsampled,
    surrogate,
    witnesses,
)
from onlinecal.measures.base import Bracket, Explanation, Measure, Witness
from onlinecal.measures.binned import binned_ece, binned_ece_width, ece
from onlinecal.measures.binned_orders import binned_ce, soft_binned_ece
from onlinecal.measures.cutoff import cutoff_ce, low_degree_ce, step_ce, weighted_ce
from onlinecal.measures.decision import cdl, cfdl, u_calibration, v_cdl
from onlinecal.measures.distance_lower import MEASURES as DISTANCE_LOWER
from onlinecal.measures.distance_lower import distance_lower
from onlinecal.measures.distance_metric import distance_in_metric
from onlinecal.measures.distance_upper import MEASURES as DISTANCE_UPPER
from onlinecal.measures.distance_upper import OF_SHORT_GAMES as SHORT
from onlinecal.measures.distance_upper import distance_upper, true_distance
from onlinecal.measures.groups import (
    group_cdl,
    group_swap_regret,
    multi_ece,
    multi_l2,
    multi_linf,
    multiaccuracy,
    swap_multi_ece,
    worst_group,
)
from onlinecal.measures.interval import interval_ce, interval_ce_bracket
from onlinecal.measures.kernel import atb, kernel_ce
from onlinecal.measures.loess import e50, e90, ici
from onlinecal.measures.quoted import ace, auc, brier_skill, mce, rmsce
from onlinecal.measures.scores import bregman, brier, brier_decomposition, log_loss, nce
from onlinecal.measures.smooth_ce import MEASURES as SMOOTH_CE
from onlinecal.measures.smooth_ce import earthmover_distance, smooth_ce
from onlinecal.measures.smooth_ece import MEASURES as SMOOTH_ECE
from onlinecal.measures.smooth_ece import smooth_ece, smooth_ece_at
from onlinecal.measures.soft_binned import scdl, scdl_binned, soft_binned_loss, soft_rounding
from onlinecal.measures.subsampled import (
    subsampled_smooth_ce,
    subsampled_smooth_ce_sampled,
    subsampled_step_ce,
    subsampled_step_ce_sampled,
)
from onlinecal.measures.surrogate import random_interval_ce, surrogate_interval_ce

_ROWS = (
    binned.MEASURES, binned_orders.MEASURES, interval.MEASURES, surrogate.MEASURES, SMOOTH_CE, SMOOTH_ECE,
    DISTANCE_LOWER, DISTANCE_UPPER, kernel.MEASURES, decision.MEASURES, soft_binned.MEASURES, cutoff.MEASURES,
    subsampled.MEASURES, scores.MEASURES, quoted.MEASURES, loess.MEASURES,
)  # fmt: skip

#: name → what is known about it
MEASURES: dict[str, Measure] = {measure.name: measure for rows in _ROWS for measure in rows}
#: the same of measures that take few rounds only
OF_SHORT_GAMES: dict[str, Measure] = {measure.name: measure for measure in SHORT}
#: every measure of the catalogue, as a study names it
EVERYTHING = tuple({"name": name, **record.example} for name, record in MEASURES.items())


#: the name that stands for every measure
ALL = "all"


def with_all(
    specs: Iterable[Any], rounds: int | None = None, others: Iterable[str] | None = None
) -> list[Any]:
    """The same measures, with all `others` in place of ``"all"``.

    By default they are those that games of this length can have.
    """
    given = list(specs)
    if not any(isinstance(spec, str) and spec == ALL for spec in given):
        return given
    named = [spec.get("name") if isinstance(spec, Mapping) else spec for spec in given]
    short = [r.name for r in OF_SHORT_GAMES.values() if rounds is not None and rounds <= (r.most_rounds or 0)]
    everything = (*EVERYTHING, *({"name": name} for name in short))
    if others is not None:
        everything = tuple({"name": name} for name in others)
    place, rest = named.index(ALL), [spec for spec in everything if spec["name"] not in named]
    return [*given[:place], *rest, *(spec for spec in given[place:] if spec != ALL)]


if TYPE_CHECKING:
    from onlinecal.measures import classes as classes
else:  # who checks types should go by the imports

    def __getattr__(name: str) -> Any:
        """The measures of K classes, which know these; or one that has no line of its own among the imports."""
        if name == "classes":
            return importlib.import_module("onlinecal.measures.classes")
        if name in MEASURES:
            return MEASURES[name].function
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _record(name: str) -> Measure:
    return MEASURES[meant("measure", name, MEASURES, LIST)]


@of_gamma
def explain(gamma: JointDistribution, name: str, **options: Any) -> Explanation:
    """The value of a measure with the witnesses that prove it.

    A witness proves a bound. A weight function, a task or an interval bounds a supremum below. A partition or a
    coupling bounds an infimum above. Plain sums and means over subsets have none.

    Parameters
    ----------
    name : str
        A measure that has a witness.
    **options
        The measure's own.

    Returns
    -------
    Explanation
        `value`, `witnesses`, and `verify()`: the bracket that follows from them alone. It holds the exact value, up to
        the rounding error that the witnesses state. It closes within 1e-9, with exceptions. `distance_lower` and
        `interval_ce_bracket` have their own bracket, `smooth_ece` and `smooth_ece_at` their stated error.
        `distance_upper`, and `interval_ce` with width="max", are open, too.

    Examples
    --------
    >>> from onlinecal import JointDistribution
    >>> why = explain(JointDistribution.from_levels([0.45], [1], [0.55]), "cdl")
    >>> print(why)
    cdl = 0.181818
    lower bound: task of 2 actions by swap regret: from 'low' to 'high' at v = 0.45; 'low' pays 1 if y = 0, 0 if y = 1;
    'high' pays 0.181818 if y = 0, 1 if y = 1
    upper bound: no kink t has more swap regret than cdl/2 − 0.181818 (t − 1/2)
    >>> round(why.verify().lower, 12), why.verify().width < 1e-14
    (0.181818181818, True)
    """
    return _record(name).explain(gamma, **options)


__all__ = [
    "MEASURES", "Bracket", "Explanation", "Measure", "Witness", "ace", "atb", "auc", "binned_ce", "binned_ece",
    "binned_ece_width", "bregman", "brier", "brier_decomposition", "brier_skill", "cdl", "cfdl", "classes", "cutoff_ce",
    "distance_in_metric", "distance_lower", "distance_upper", "e50", "e90", "earthmover_distance", "ece",
    "explain", "group_cdl", "group_swap_regret", "ici", "interval_ce", "interval_ce_bracket", "kernel_ce",
    "log_loss", "low_degree_ce", "mce", "multi_ece", "multi_l2", "multi_linf", "multiaccuracy", "nce",
    "random_interval_ce", "rmsce", "scdl", "scdl_binned", "smooth_ce", "smooth_ece", "smooth_ece_at",
    "soft_binned_ece", "soft_binned_loss", "soft_rounding", "step_ce", "subsampled_smooth_ce",
    "subsampled_smooth_ce_sampled", "subsampled_step_ce", "subsampled_step_ce_sampled", "surrogate_interval_ce",
    "swap_multi_ece", "true_distance", "u_calibration", "v_cdl", "weighted_ce", "witnesses", "worst_group",
]  # fmt: skip
