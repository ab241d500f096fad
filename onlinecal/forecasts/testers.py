"""Testers of calibration: calibrated, or near it, against far from it, with bounds for both kinds of error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.validation import choice, number
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Bracket, Sampling, ends

Tested = Literal["distance_lower", "smooth_ce"]
Verdict = Literal["near", "far", "undecided"]

#: of a bracket that holds the threshold
_NARROW = 1e-9


class _Constants(NamedTuple):
    """If the lower distance is d the value is at most near·d and at least far·d (BGHN23, Theorem 7.3)."""

    near: float
    far: float


_OF = {"distance_lower": _Constants(1.0, 1.0), "smooth_ce": _Constants(2.0, 0.5)}


@dataclass(frozen=True)
class TolerantTest:
    """The outcome of `tolerant_test`.

    Attributes
    ----------
    verdict : {"near", "far", "undecided"}
        Whether the value on the samples is above the threshold ("far"); "undecided" if its bracket holds the threshold.
    value : float or Bracket
    threshold, near, far : float
    samples : int
    alpha : float
        The probability of "far" is at most this wherever the lower distance is at most `near`.
    beta : float
        The probability of "near" is at most this wherever the lower distance is at least `far`; 1 with too few samples.
    measure : str
    """

    verdict: Verdict
    value: float | Bracket
    threshold: float
    samples: int
    near: float
    far: float
    alpha: float
    beta: float
    measure: str

    def __str__(self) -> str:
        wrong = {
            "far": f"said of forecasts that are within {self.near:g} with a probability of at most {self.alpha:.2g}",
            "near": f"said of forecasts that are {self.far:g} away with a probability of at most {self.beta:.2g}",
            "undecided": "the bracket holds the threshold",
        }[self.verdict]
        value = " to ".join(dict.fromkeys(f"{end:.4g}" for end in ends(self.value)))
        return f"{self.verdict}: {self.measure} = {value}, threshold {self.threshold:.4g}; {wrong}"


@of_gamma
def tolerant_test(
    gamma: JointDistribution,
    *,
    far: float,
    near: float = 0.0,
    alpha: float = 0.05,
    measure: Tested = "distance_lower",
) -> TolerantTest:
    """Tests whether forecasts are within `near` of calibration or `far` from it, from n independent samples.

    The value on the samples is compared to c = c_near·near + (m + √(2 ln(1/α)))/√n. Here m/√n bounds the mean of sup
    |Γ̂ − Γ| over the functions that the measure is a supremum of, and McDiarmid's inequality the rest. If the distance
    is at least `far`, one such function has a mean of at least c_far·far. By Hoeffding's inequality its mean over the
    samples, which the value is not below, is at most c with probability β = exp(−n (c_far·far − c)²/2) or less.

    Parameters
    ----------
    gamma : JointDistribution
        Or samples p, y. Each is counted as independent: a log of a game is not.
    far : float
        A lower distance from calibration, in (near, 1].
    near : float, default 0
    alpha : float, default 0.05
        In (0, 1).
    measure : {"distance_lower", "smooth_ce"}, default "distance_lower"
        The lower distance: c_near = c_far = 1 and m = 1. Smooth calibration is found sooner and needs more samples:
        c_near = 2, c_far = ½ and m = 2, so that far > 4·near is needed.

    Guarantee
    ---------
    Both bounds hold for every n and every Γ. With n = `samples_to_test` samples both are as asked for.

    Source
    ------
    Hu, Jambulapati, Tian and Yang 2024: n of order (far − near)^−2 is enough and needed. Deviations: they
    compare smCE with a threshold of order `far` and leave constants open; these are our own.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> p = rng.random(10_000)
    >>> found = tolerant_test(p, rng.random(10_000) < 0.8 * p, far=0.08)
    >>> found.verdict, round(found.threshold, 4), found.beta < 1e-8
    ('far', 0.0345, False)
    >>> samples_to_test(far=0.08)
    5431
    """
    constants, means = _checked("tolerant_test", far, near, measure)
    _rate("tolerant_test", "alpha", alpha)
    n = gamma.weight
    if not (gamma.counts == gamma.counts.round()).all():
        raise InvalidData(
            "tolerant_test: weights that are no whole numbers; expected independent samples of weight 1"
        )
    threshold = constants.near * near + (means + math.sqrt(-2.0 * math.log(alpha))) / math.sqrt(n)
    gap = constants.far * far - threshold
    beta = math.exp(-n * gap * gap / 2.0) if gap > 0.0 else 1.0
    value: Any = MEASURES[measure].function(gamma)
    if isinstance(value, Bracket) and value.lower <= threshold < value.upper:
        value = MEASURES[measure].function(gamma, tolerance=_NARROW)
    low, high = ends(value)
    verdict: Verdict = "far" if low > threshold else "near" if high <= threshold else "undecided"
    return TolerantTest(verdict, value, threshold, int(n), near, far, alpha, beta, measure)


def samples_to_test(
    *,
    far: float,
    near: float = 0.0,
    alpha: float = 0.05,
    beta: float = 0.05,
    measure: Tested = "distance_lower",
) -> int:
    """How many samples `tolerant_test` needs for both of its bounds to be as small as this.

    n = ⌈((m + √(2 ln(1/α)) + √(2 ln(1/β)))/(c_far·far − c_near·near))²⌉, of order (far − near)^−2.

    Parameters
    ----------
    far, near, alpha, measure
        As in `tolerant_test`.
    beta : float, default 0.05
        In (0, 1).

    Examples
    --------
    >>> samples_to_test(far=0.1), samples_to_test(far=0.1, measure="smooth_ce"), samples_to_test(far=0.2, near=0.1)
    (3476, 19020, 3476)
    """
    constants, means = _checked("samples_to_test", far, near, measure)
    sizes = [math.sqrt(-2.0 * math.log(_rate("samples_to_test", name, value)))
             for name, value in (("alpha", alpha), ("beta", beta))]  # fmt: skip
    return math.ceil(((means + sum(sizes)) / (constants.far * far - constants.near * near)) ** 2)


def _checked(where: str, far: float, near: float, measure: str) -> tuple[_Constants, float]:
    """The constants of the measure, and √n times what bounds the mean of its error."""
    constants = _OF[choice(where, "measure", measure, tuple(_OF))]
    number(where, "far", far, 0.0, 1.0)
    number(where, "near", near, 0.0, 1.0)
    if not constants.far * far > constants.near * near:
        ways = "far > near" if constants.near == constants.far else "far > 4·near with 'smooth_ce'"
        raise InvalidParameter(f"{where}: far = {far!r} and near = {near!r}; expected {ways}")
    sampling = MEASURES[measure].sampling
    assert isinstance(sampling, Sampling)
    assert sampling.means is not None
    return constants, float(sampling.means(1.0)[0])


def _rate(where: str, name: str, value: float) -> float:
    found = number(where, name, value, 0.0, 1.0)
    if not 0.0 < found < 1.0:
        raise InvalidParameter(f"{where}: {name} = {value!r}; expected a probability above 0 and below 1")
    return found
