"""Measures of K classes that are sums: total variation, scores, kernels; and binary measures of events."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are first used
from scipy.special import xlogy

from onlinecal.core.arrays import Floats
from onlinecal.core.classes import ClassDistribution, of_classes
from onlinecal.core.errors import LIST, InvalidData, InvalidParameter, meant
from onlinecal.core.joint import JointDistribution
from onlinecal.core.simplex import Label
from onlinecal.core.validation import count, integer
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Bracket

#: a name of the catalogue, or a function of a `JointDistribution`
Binary = str | Callable[[JointDistribution], Any]

#: classes up to which all sets of them are measured
MOST_CLASSES = 12
#: levels up to which all pairs are added
MOST_PAIRS = 20_000
#: rows of a block of pairs, in numbers
BLOCK = 2**22


class EachClass(NamedTuple):
    """A binary measure of each class against the rest."""

    values: dict[Label, float]
    max: float
    mean: float


class WorstSet(NamedTuple):
    """The largest value of a binary measure of a set of classes, and the set."""

    value: float
    classes: tuple[Label, ...]


@of_classes
def ece(gamma: ClassDistribution) -> float:
    """Expected calibration error in total variation: ½ Σ w_i ‖q_i − v_i‖₁, in [0, 1].

    Source: Gopalan & Hu 2025, with total variation for the absolute error. Deviations: the ℓ1 error of other packages
    is twice this.

    Examples
    --------
    >>> gamma = ClassDistribution.from_levels([[0.5, 0.3, 0.2]], [1], [[0.3, 0.5, 0.2]])
    >>> round(ece(gamma), 12)
    0.2
    """
    return min(0.5 * float(np.abs(gamma.residuals).sum()), 1.0)


@of_classes
def brier(gamma: ClassDistribution) -> float:
    """Brier score, half of the mean squared distance from the outcome's unit vector: ½ E‖e_y − v‖², in [0, 1].

    Source: Brier 1950. Deviations: his score is twice this, as scikit-learn's of several classes.

    Examples
    --------
    >>> round(brier([[0.5, 0.3, 0.2]], [0]), 12)
    0.19
    """
    q = gamma.means
    return 0.5 * float((gamma.mass[:, None] * ((q - gamma.predictions) ** 2 + q * (1.0 - q))).sum())


@of_classes
def log_loss(gamma: ClassDistribution) -> float:
    """Logarithmic score E[−ln v_y]; infinite where what happened had the probability 0.

    Examples
    --------
    >>> round(log_loss([[0.5, 0.3, 0.2]], [0]), 6)
    0.693147
    """
    return -float((gamma.mass[:, None] * xlogy(gamma.means, gamma.predictions)).sum()) + 0.0


@of_classes
def classwise(gamma: ClassDistribution, *, measure: Binary = "ece", **options: Any) -> EachClass:
    """A binary measure of each class against the rest, with the largest and the mean value.

    Source: Kull et al. 2019 (the mean).

    Parameters
    ----------
    measure : str or callable, default "ece"
        A binary measure that is a number: a name of `onlinecal.measures`, or a function of a `JointDistribution`. It
        may stand first: `classwise("smooth_ce", gamma)`.
    **options
        Of the measure.

    Examples
    --------
    >>> gamma = ClassDistribution.from_levels([[0.5, 0.3, 0.2]], [1], [[0.3, 0.5, 0.2]])
    >>> classwise(gamma, measure="brier").values
    {0: 0.25, 1: 0.29000000000000004, 2: 0.16000000000000003}
    """
    function = _binary("classwise", measure, options)
    values = {label: function(gamma.classwise(label)) for label in gamma.labels}
    return EachClass(values, max(values.values()), sum(values.values()) / len(values))


@of_classes
def toplabel(
    gamma: ClassDistribution, *, measure: Binary = "ece", conditional: bool = False, **options: Any
) -> float:
    """A binary measure of the event that the likeliest class happens, predicted with its probability.

    Of classes with equal probabilities it is the first. With `conditional`, the mean over the classes that are the
    likeliest ones, by their weight, of the measure among these levels alone: errors of different classes do not cancel.

    Source: Guo et al. 2017 (confidence). Gupta & Ramdas 2022 for `conditional`, which they call top-label calibration.

    Parameters
    ----------
    measure : str or callable, default "ece"
        As in `classwise`.
    conditional : bool, default False
    **options
        Of the measure.

    Examples
    --------
    >>> both = ClassDistribution.from_levels([[0.6, 0.4], [0.4, 0.6]], [1, 1], [[0.8, 0.2], [0.6, 0.4]])
    >>> round(toplabel(both), 12), round(toplabel(both, conditional=True), 12)
    (0.0, 0.2)
    """
    function = _binary("toplabel", measure, options)
    if not conditional:
        return function(gamma.toplabel())
    return sum(one.weight / gamma.weight * function(one) for one in gamma.toplabels().values())


@of_classes
def setwise(gamma: ClassDistribution, *, measure: Binary = "ece", **options: Any) -> WorstSet:
    """The largest value of a binary measure over all sets of classes, predicted with the sum of their probabilities.

    Of a set and its complement, which agree for measures that do not tell 0 from 1, it is the one without the first
    class: 2^(K−1) − 1 sets, for K ≤ 12. With "smooth_ce" it is projected smooth calibration.

    Source: Gopalan, Hu & Rothblum 2024.

    Parameters
    ----------
    measure : str or callable, default "ece"
        As in `classwise`.
    **options
        Of the measure.

    Examples
    --------
    >>> gamma = ClassDistribution.from_levels([[0.4, 0.3, 0.2, 0.1]], [1], [[0.3, 0.2, 0.3, 0.2]])
    >>> found = setwise(gamma)
    >>> round(found.value, 12), found.classes
    (0.2, (2, 3))
    """
    if gamma.classes > MOST_CLASSES:
        raise InvalidParameter(
            f"setwise: {gamma.classes} classes have 2^{gamma.classes - 1} − 1 sets; expected at most {MOST_CLASSES}"
        )
    function, others = _binary("setwise", measure, options), gamma.labels[1:]
    sets = (each for size in range(1, gamma.classes) for each in itertools.combinations(others, size))
    return max((WorstSet(function(gamma.binary(each)), each) for each in sets), key=lambda found: found.value)


def _binary(where: str, measure: Binary, options: dict[str, Any]) -> Callable[[JointDistribution], float]:
    """The function of Γ of an event, which must be one number."""
    if isinstance(measure, str):
        function = MEASURES[meant("measure", measure, MEASURES, LIST)].bind(**options)
    elif callable(measure) and not options:
        function = measure
    else:
        raise InvalidParameter(
            f"{where}: measure = {measure!r} with options {options}; expected a name with options, or a function"
        )

    def of(gamma: JointDistribution) -> float:
        value = function(gamma)
        if isinstance(value, Bracket):
            raise InvalidParameter(
                f"{where}: {measure} is a bracket at {gamma.levels} levels; expected a measure that is one number"
            )
        return float(value)

    return of


@of_classes
def kernel_ce(gamma: ClassDistribution) -> float:
    """Kernel calibration error (½ Σ_ij w_i w_j ⟨q_i − v_i, q_j − v_j⟩ exp(−TV(v_i, v_j)))^½, in [0, 1].

    In O(k² K), for k ≤ 20,000 levels. A log of n rows without equal predictions has some 1/√n by chance alone; its
    square without that bias is `kernel_ce_squared`.

    Source: Widmann, Lindsten & Zachariah 2019 (SKCE), with the Laplace kernel of total variation, times ½.

    Examples
    --------
    >>> gamma = ClassDistribution.from_levels([[0.7, 0.3], [0.4, 0.6]], [1, 1], [[0.5, 0.5], [0.25, 0.75]])
    >>> round(kernel_ce(gamma), 6)
    0.163515
    """
    if gamma.levels > MOST_PAIRS:
        raise InvalidParameter(
            f"kernel_ce: {gamma.levels} levels; expected at most {MOST_PAIRS:,}, or `kernel_ce_squared` with block"
        )
    return min(max(_quadratic(gamma.predictions, gamma.residuals), 0.0) ** 0.5, 1.0)


@of_classes
def kernel_ce_squared(gamma: ClassDistribution, *, block: int | None = None, seed: int = 0) -> float:
    """The square of the population's `kernel_ce`, estimated without bias from independent rows; it may be negative.

    The mean of ½ ⟨e_y − v, e_y' − v'⟩ exp(−TV(v, v')) over pairs of different rows. Γ is of rows without weights.

    Source: Widmann, Lindsten & Zachariah 2019, the quadratic estimator; with `block` that of blocks.

    Parameters
    ----------
    block : int, optional
        At least 2: rows are put into blocks of this size at random, and pairs are those within one, in O(n K block).
        Rows of the last block that is not full are left out. Default: all pairs, for k ≤ 20,000 levels.
    seed : int, default 0
        Of the blocks.

    Examples
    --------
    >>> round(kernel_ce_squared([[0.5, 0.3, 0.2]] * 4, [0, 0, 1, 2]), 6)
    -0.101667
    """
    n = int(gamma.weight)
    if (gamma.tallies != np.rint(gamma.tallies)).any() or n < 2:
        raise InvalidData(
            f"kernel_ce_squared: weight {gamma.weight:g}; expected two rows or more, without weights"
        )
    if block is None:
        return (n * kernel_ce(gamma) ** 2 - brier(gamma)) / (n - 1)
    size = integer("kernel_ce_squared", "block", block, 2, n)
    level, y = np.nonzero(gamma.tallies)
    rows = np.repeat(np.arange(len(level)), gamma.tallies[level, y].astype(np.int64))
    mixed = np.random.default_rng(count("seed", seed, 0)).permutation(rows)
    blocks = mixed[: n - n % size].reshape(-1, size)
    total, unit = 0.0, np.eye(gamma.classes)
    for part in blocks:
        v = gamma.predictions[level[part]]
        errors = unit[y[part]] - v
        total += _quadratic(v, errors) - 0.5 * float((errors**2).sum())
    return total / (len(blocks) * size * (size - 1))


def _quadratic(v: Floats, r: Floats) -> float:
    """½ Σ_ij ⟨r_i, r_j⟩ exp(−TV(v_i, v_j)), some rows at a time."""
    step, total = max(BLOCK // len(v), 1), 0.0
    for at in range(0, len(v), step):
        near = np.exp(-0.5 * scipy.spatial.distance.cdist(v[at : at + step], v, "cityblock"))
        total += float(((near @ r) * r[at : at + step]).sum())
    return 0.5 * total
