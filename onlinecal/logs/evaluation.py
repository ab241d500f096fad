"""All measures of one list of forecasts in a table, with how far chance alone explains them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Unpack

from numpy.typing import ArrayLike

from onlinecal.core.classes import ClassDistribution
from onlinecal.core.columns import ALL
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.samples import Words, plain, with_ours
from onlinecal.core.validation import check_same_rows, choice, integer
from onlinecal.logs.clusters import Samples
from onlinecal.logs.evaluated import evaluated
from onlinecal.logs.expected import with_halves
from onlinecal.logs.groups import groups_of
from onlinecal.logs.intervals import Method
from onlinecal.logs.resampling import Resample
from onlinecal.logs.table import Evaluation
from onlinecal.measures.groups import columns_of, members_in

#: draws of either kind: each is kept, and a million tells a quantile to more digits than an interval has
MOST = 1_000_000
#: what a report shows unless others are asked for. First are distances, which always have intervals, then losses of
#: actions, errors that are often quoted, and scores.
DECIDING = ("smooth_ece", "smooth_ce", "cutoff_ce", "cdl", "ece", "binned_ece", "brier", "log_loss")


@with_ours
def evaluate(
    p: ArrayLike | JointDistribution,
    y: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    measures: Iterable[Any] | None = None,
    bootstrap: int = 0,
    reference: int = 0,
    level: float = 0.95,
    method: Method = "bootstrap",
    seed: int = 0,
    fractional: bool = False,
    **words: Unpack[Words],
) -> Evaluation:
    """All measures of your own forecasts, in one table.

    With `bootstrap`, each row has an interval. It holds the measure's value on the population, from which samples were
    drawn independently, with a probability of `level`. With `reference`, outcomes drawn at these very predictions give
    p-values of calibration. With `clusters`, only samples of different clusters are independent. How all of them are
    made, and why some are missing, is in docs/intervals.md.

    Source: Błasiok, Gopalan, Hu & Nakkiran 2023, §9 (bounds of the change). van der Vaart & Wellner 1996, §3.6
    (bootstrap of suprema). Bröcker & Smith 2007 (reference); Arrieta-Ibarra et al. 2022 (its limit); Davison & Hinkley
    1997, §5.2.

    Parameters
    ----------
    p : (n,) array_like or JointDistribution
        Predictions in [0, 1]; or Γ, without y.
    y : (n,) array_like
        Outcomes, each 0 or 1, or labels.
    weights : (n,) array_like, optional
        As in `JointDistribution.from_samples`. A sample is resampled together with its weight.
    clusters : (n,) array_like, optional
        A label for each prediction, number or string. Default: each is a cluster of its own.
    groups : mapping, optional
        Name → 0 or 1 of each sample, for groups that may overlap. The result's `groups` has a table of them, the
        measures of all of them, such as `onlinecal.measures.multi_ece`, and the worst group in words.
    measures : iterable, optional
        Names, tables of a name and options, or functions Γ ↦ float, as in a study. `OF_LOGS`, which are ``"auc"``
        and the three of `calibration_line`, have no p-values. Default: ``"all"``, the whole catalogue,
        `random_interval_ce` at ε = 0.1 and `smooth_ece_at` at σ = 0.1.
    bootstrap, reference : int, default 0
        Draws of either kind for intervals (200 and more for 95 %), and of calibrated outcomes; at most 10^6.
    level : float, default 0.95
        Of the intervals.
    method : {"bootstrap", "finite-sample"}, default "bootstrap"
        "finite-sample": intervals without draws that hold for every n and every Γ, by bounds of the mean change and
        McDiarmid's inequality. They are several times as wide. Measures without such a bound have no interval.
    seed : int, default 0
        Of all draws. All measures see the same draws; asking for fewer measures changes no number.
    fractional : bool, default False
        Whether outcomes q between 0 and 1, such as ties, are expected outcomes. A row counts as outcome 1 with weight q
        and as outcome 0 with weight 1 − q, in one cluster. The Brier score is then the expected one.
    **words
        `positive`, `negative`, `drop` and `above`, as in `JointDistribution.from_samples`.

    Returns
    -------
    Evaluation
        Values that are out of reach at this number of levels are certified brackets (`Measure.bind`).

    Examples
    --------
    >>> print(evaluate([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1], measures=["ece", "cdl", "distance_upper"]))
    JointDistribution(2 levels in [0.2, 0.8], weight 4, base rate 0.75)
    measure         value  bounds for decision makers
    ece             0.25   swap regret of every task ≤ 2 ECE
    cdl             0.25   swap regret of every task
    distance_upper  0.25
    """
    draws = integer("evaluate", "bootstrap", bootstrap, 0, MOST)
    times = integer("evaluate", "reference", reference, 0, MOST)
    sure = choice("evaluate", "method", method, ("bootstrap", "finite-sample")) == "finite-sample"
    if draws and sure:
        raise InvalidParameter(
            f"evaluate: bootstrap = {bootstrap!r} with method = 'finite-sample', which draws nothing; expected one or "
            "the other"
        )
    own, given = None, dict[str, Any]()
    several = p.classes if isinstance(p, ClassDistribution) else (*getattr(p, "shape", ()), 0, 0)[1]
    if several > 2:
        raise InvalidData(
            f"evaluate: forecasts of {several} classes; expected one column, or oc.evaluate_classes"
        )
    if isinstance(p, JointDistribution):
        if words or y is not None or weights is not None or clusters is not None:
            raise InvalidParameter(
                "evaluate: y, weights or clusters beside a JointDistribution, which holds them"
            )
        if groups is not None:
            raise InvalidParameter(
                "evaluate: groups beside a JointDistribution, which does not tell its samples apart; expected p and y"
            )
        gamma = p
    elif y is None:
        raise InvalidParameter("evaluate: y is missing; expected the outcomes of the predictions p")
    else:
        columns = columns_of("evaluate", {} if groups is None else groups)
        given = plain({"p": p, "y": y, "weights": weights, "clusters": clusters, **columns}, **words)
        if groups:
            many = {ALL: len(given["p"])}
            many |= {name: len(rows) for name, rows in members_in("evaluate", given, groups).items()}
        given = with_halves(given) if fractional else given
        weights, clusters = given["weights"], given["clusters"]
        if clusters is not None and sure:
            raise InvalidParameter(
                "evaluate: method = 'finite-sample' with clusters; expected samples without, or method = 'bootstrap'"
            )
        gamma = JointDistribution.from_samples(given["p"], given["y"], weights=weights)
        check_same_rows(given)
        own = Samples.given("evaluate", given["p"], given["y"], weights, clusters)
    resample: Resample | None = None
    if own is not None:
        resample = own.resample(gamma)
    elif draws or times or sure:
        resample = Resample(gamma, None)
    found = evaluated(gamma, resample, measures, draws, times, level, method, seed)
    if own is None or not groups:
        return found
    members = members_in("evaluate", given, groups)
    return replace(found, groups=groups_of(own, resample, members, many, draws, times, level, seed, method))
