"""How far a measure on n samples is from its value on what they are drawn from, by simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import LIST, InvalidParameter, UnknownName
from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.validation import count
from onlinecal.measures import MEASURES
from onlinecal.measures.base import ends

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]

#: numbers of samples, and of repetitions
MOST = 10_000_000


@dataclass(frozen=True)
class SampleErrors:
    """Errors of a measure on samples; one entry for each number of samples.

    Attributes
    ----------
    measure : str
        Its name.
    options : mapping
        Its options.
    value : float
        On Γ.
    samples : tuple of ints
        n.
    errors : (number of n, repetitions) floats
        |μ(Γ̂) − μ(Γ)| of each repetition; where μ is a bracket, the most that its ends allow.
    """

    measure: str
    options: Mapping[str, Any]
    value: float
    samples: tuple[int, ...]
    errors: Floats

    @property
    def mean(self) -> Floats:
        """The mean error for each n: the estimate of E|μ(Γ̂) − μ(Γ)|."""
        return np.asarray(self.errors.mean(axis=1))

    def interval(self, confidence: float = 0.95) -> Floats:
        """(number of n, 2) ends that hold E|μ(Γ̂) − μ(Γ)| with this probability each, for any number of repetitions.

        The smaller of two radii, each right with half of what is left: Hoeffding's for errors in [0, b], b the range,
        and that of Maurer and Pontil 2009 (Theorem 4), which goes by their variance.
        """
        if not 0.0 < confidence < 1.0:
            raise InvalidParameter(f"confidence = {confidence!r}; expected a number in (0, 1)")
        record = MEASURES[self.measure]
        wide, times = record.largest - record.least, self.errors.shape[1]
        if math.isinf(wide):
            raise InvalidParameter(
                f"measure {self.measure!r} has no largest value; expected a bounded measure"
            )
        tail = 1.0 - confidence
        hoeffding = wide * math.sqrt(math.log(4.0 / tail) / (2.0 * times))
        radius = np.full(len(self.samples), hoeffding)
        if times > 1:
            spread = self.errors.var(axis=1, ddof=1)
            log = math.log(8.0 / tail)
            radius = np.minimum(
                radius, np.sqrt(2.0 * spread * log / times) + 7.0 * wide * log / (3.0 * (times - 1))
            )
        return np.clip(np.stack((self.mean - radius, self.mean + radius), axis=1), 0.0, wide)

    @property
    def exponent(self) -> float:
        """The slope of log mean error against log n, by least squares; NaN where there is one n or no error."""
        if len(self.samples) < 2 or not (self.mean > 0.0).all():
            return math.nan
        return float(np.polyfit(np.log(self.samples), np.log(self.mean), 1)[0])

    def table(self) -> DataFrame:
        """One row for each n: mean error, 95 % interval, standard deviation, mean error times √n."""
        from pandas import DataFrame

        low, high = self.interval().T
        return DataFrame(
            {
                "samples": self.samples,
                "mean": self.mean,
                "lower": low,
                "upper": high,
                "deviation": self.errors.std(axis=1),
                "times_root": self.mean * np.sqrt(self.samples),
            }
        )


@of_gamma
def alpha_n(
    gamma: JointDistribution,
    measure: str,
    *,
    samples: Sequence[int] = (100, 400, 1600, 6400),
    repetitions: int = 100,
    seed: int = 0,
    **options: Any,
) -> SampleErrors:
    """How fast a measure on samples approaches its value on Γ: its testability α(n), measured at this Γ.

    n samples are drawn from Γ by its masses and means, again and again. A measure is α(n)-testable if for every Γ its
    value on n samples is within α(n) of that on Γ. The errors at one Γ are a lower bound of α, in expectation.

    Parameters
    ----------
    gamma : JointDistribution
    measure : str
        Its name in the catalogue.
    samples : sequence of ints, default (100, 400, 1600, 6400)
        The n, each from 1 to 10^7.
    repetitions : int, default 100
    seed : int, ≥ 0, default 0
    **options
        Of the measure.

    Returns
    -------
    SampleErrors
        The errors of all repetitions, with means, intervals and the exponent.

    Source
    ------
    Rossellini et al. 2025 and Bairaktari, Hu, Nguyen & Ullman 2026, §1.2 (Question 1), take the worst Γ.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.25, 0.5, 0.75], [1, 2, 1], [0.25, 0.5, 0.75])
    >>> found = alpha_n(gamma, "smooth_ce", samples=[100, 10_000], seed=1)
    >>> bool(found.mean[1] < found.mean[0] / 5)
    True
    """
    if measure not in MEASURES:
        raise UnknownName.of("measure", measure, MEASURES, LIST)
    if MEASURES[measure].of_rounds:
        raise InvalidParameter(
            f"alpha_n: the value of {measure!r} depends on the number of rounds; expected a measure of Γ alone"
        )
    numbers = tuple(count("samples", n, most=MOST) for n in samples)
    times, generator = (
        count("repetitions", repetitions, most=MOST),
        np.random.default_rng(count("seed", seed, least=0)),
    )
    if not numbers:
        raise InvalidParameter("samples is empty; expected at least one number")
    function = MEASURES[measure].bind(**options)
    low, high = ends(function(gamma))
    if not math.isfinite(low + high):
        raise InvalidParameter(f"alpha_n: {measure} is infinite on this Γ; expected a finite value")
    errors = np.empty((len(numbers), times))
    share = gamma.mass / gamma.mass.sum()  # sums to 1 within what is allowed to draw from
    for row, n in zip(errors, numbers, strict=True):
        for i in range(times):
            counts = generator.multinomial(n, share)
            ones = generator.binomial(counts, gamma.means)
            found = ends(function(JointDistribution.from_counts(gamma.predictions, counts, ones)))
            row[i] = max(abs(found[1] - low), abs(high - found[0]))
    errors.setflags(write=False)
    return SampleErrors(measure, dict(options), (low + high) / 2.0, numbers, errors)
