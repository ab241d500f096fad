"""Tests of calibration with bounds for their errors, and how fast a measure on samples comes near its value."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import LIST, InvalidData, InvalidParameter, meant
from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.validation import choice, count, number
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Bracket, ends

if TYPE_CHECKING:
    from pandas import DataFrame

Tested = Literal["distance_lower", "smooth_ce"]
Verdict = Literal["near", "far", "undecided"]

#: of a measure, if the lower distance is d, c_near and c_far: the value is at most c_near·d and at least c_far·d
#: (BGHN23, Theorem 7.3)
_OF = {"distance_lower": (1.0, 1.0), "smooth_ce": (2.0, 0.5)}
#: the tolerance of a bracket that holds the threshold
_NARROW = 1e-9
#: draws that are kept at once, times levels
_KEPT = 2_000_000
#: numbers of samples, and of repetitions
MOST = 10_000_000


@dataclass(frozen=True)
class TolerantTest:
    """The outcome of `tolerant_test`."""

    # "far" if the value is above the threshold; "undecided" if its bracket holds the threshold
    verdict: Verdict
    value: float | Bracket
    threshold: float
    samples: int
    near: float
    far: float
    alpha: float  # the probability of "far" is at most this wherever the lower distance is at most `near`
    beta: float  # that of "near" wherever it is at least `far`; 1 with too few samples
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
    is at least `far`, one such function has a mean of at least c_far·far. The value is at least its mean over the
    samples. By Hoeffding's inequality that is at most c with probability β = exp(−n (c_far·far − c)²/2).

    Guarantee: Both bounds hold for every n and every Γ. With n = `samples_to_test` samples both are as asked for.

    Source: Hu, Jambulapati, Tian and Yang 2024: n of order (far − near)^−2 is enough and needed. Deviations: they
    compare smCE with a threshold of order `far` and leave constants open; these are our own.

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

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> p = rng.random(10_000)
    >>> found = tolerant_test(p, rng.random(10_000) < 0.8 * p, far=0.08)
    >>> found.verdict, round(found.threshold, 4), found.beta < 1e-8
    ('far', 0.0345, False)
    """
    low, high, means = _checked("tolerant_test", far, near, measure)
    _rate("tolerant_test", "alpha", alpha)
    _whole("tolerant_test", gamma.counts)
    n = gamma.weight
    threshold = low + (means + math.sqrt(-2.0 * math.log(alpha))) / math.sqrt(n)
    gap = high - threshold
    beta = math.exp(-n * gap * gap / 2.0) if gap > 0.0 else 1.0
    value: Any = MEASURES[measure].function(gamma)
    if isinstance(value, Bracket) and value.lower <= threshold < value.upper:
        value = MEASURES[measure].function(gamma, tolerance=_NARROW)
    least, most = ends(value)
    verdict: Verdict = "far" if least > threshold else "near" if most <= threshold else "undecided"
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
    low, high, means = _checked("samples_to_test", far, near, measure)
    sizes = [_rate("samples_to_test", name, rate) for name, rate in (("alpha", alpha), ("beta", beta))]
    return math.ceil(((means + sum(math.sqrt(-2.0 * math.log(rate)) for rate in sizes)) / (high - low)) ** 2)


def _checked(where: str, far: float, near: float, measure: str) -> tuple[float, float, float]:
    """c_near·near, c_far·far, and √n times what bounds the mean of the error."""
    c_near, c_far = _OF[choice(where, "measure", measure, tuple(_OF))]
    number(where, "far", far, 0.0, 1.0)
    number(where, "near", near, 0.0, 1.0)
    if not c_far * far > c_near * near:
        ways = "far > near" if c_near == c_far else "far > 4·near with 'smooth_ce'"
        raise InvalidParameter(f"{where}: far = {far!r} and near = {near!r}; expected {ways}")
    sampling: Any = MEASURES[measure].sampling
    return c_near * near, c_far * far, float(sampling.means(1.0)[0])


def _rate(where: str, name: str, value: float) -> float:
    found = number(where, name, value, 0.0, 1.0)
    if not 0.0 < found < 1.0:
        raise InvalidParameter(f"{where}: {name} = {value!r}; expected a probability above 0 and below 1")
    return found


def _whole(where: str, *weights: Floats) -> None:
    if any((part != part.round()).any() for part in weights):
        raise InvalidData(f"{where}: weights are not whole; expected independent samples of weight 1")


@dataclass(frozen=True)
class TCal:
    """The outcome of `t_cal`."""

    # exact: calibrated forecasts have one as small with at most this probability, for any `draws`
    p_value: float
    # m of each scale: 2, 4, 8, …, without those that hold the same levels as one before
    bins: tuple[int, ...]
    # the estimate of the squared binned error; without bias, so that it may be negative
    errors: tuple[float, ...]
    samples: int
    draws: int

    def __str__(self) -> str:
        return f"T-Cal: p = {self.p_value:.3g}, of {len(self.bins)} scales and {self.draws} draws"


@of_gamma
def t_cal(gamma: JointDistribution, *, seed: int, draws: int = 999) -> TCal:
    """Tests whether forecasts are calibrated, adaptively: by binned squared errors with 2, 4, 8, … bins.

    Bin b of m equal ones has n_b samples. T_m = (1/n) Σ_b [(Σ (y − v))² − Σ (y − v)²]/(n_b − 1), over bins with two or
    more samples, estimates the mean squared binned error without bias. Outcomes are drawn with the probabilities
    forecast. Each scale has the rank of its T_m among the draws. The smallest rank of all scales is ranked among those
    of the draws. Of equal ones the smaller product of ranks comes first. Data and draws are of one law if forecasts are
    calibrated, so that the p-value is exact, whatever their number.

    Source: Lee, Huang, Hassani and Dobriban 2023 (T-Cal): minimax optimal, up to a logarithm, for errors of any
    smoothness. Deviations: they also draw the forecasts, and test each of B scales at α/B; by ranks the level is exact.

    Parameters
    ----------
    gamma : JointDistribution
        Or samples p, y. Each is counted as independent: a log of a game is not.
    seed : int
        Of the draws, at least 0.
    draws : int, default 999
        From 1 to 1,000,000. No p-value is below 1/(draws + 1).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> p = rng.random(2000)
    >>> wiggle = 0.5 * np.sign(np.sin(20 * np.pi * p)) * np.minimum(p, 1 - p)
    >>> print(t_cal(p, rng.random(2000) < p + wiggle, seed=1))
    T-Cal: p = 0.001, of 19 scales and 999 draws
    """
    times, generator = count("draws", draws, most=1_000_000), np.random.default_rng(count("seed", seed, 0))
    _whole("t_cal", gamma.counts, gamma.positives)
    bins, starts = _scales(gamma.predictions, gamma.weight)
    v, n = gamma.predictions, gamma.counts
    errors = np.empty((times + 1, len(bins)))
    rows, whole, single = max(1, _KEPT // gamma.levels), n.astype(np.int64), bool((n == 1.0).all())
    for start in range(1, times + 1, rows):
        size = (min(rows, times + 1 - start), gamma.levels)
        ones = generator.random(size) < v if single else generator.binomial(whole, v, size)
        # The same sums in the same order for the data as for draws, so that equal ones are ties.
        both = _errors(np.ascontiguousarray(np.vstack((gamma.positives, ones)).T), n, v, starts).T
        errors[0], errors[start : start + size[0]] = both[0], both[1:]
    ranks = np.empty(errors.shape)
    for j, column in enumerate(errors.T):
        ranks[:, j] = times + 1 - np.searchsorted(np.sort(column), column, side="left")
    least, product = ranks.min(axis=1), np.round(np.log(ranks).sum(axis=1), 9)
    as_far = (least < least[0]) | ((least == least[0]) & (product <= product[0]))
    return TCal(float(as_far.mean()), tuple(bins), tuple(map(float, errors[0])), int(gamma.weight), times)


def _scales(v: Floats, n: float) -> tuple[list[int], list[Ints]]:
    """Numbers of bins, and the first level of each bin that holds some; each partition once."""
    most = max(int(2.0 * math.log2(n / math.sqrt(math.log(n)))), 1) if n > 2.0 else 1
    bins, starts = list[int](), list[Ints]()
    for b in range(1, most + 1):
        m = 2**b  # times m nothing is rounded
        first = np.flatnonzero(np.diff(np.minimum(np.floor(v * m), m - 1), prepend=-1.0))
        if not starts or len(first) > len(starts[-1]):
            bins.append(m)
            starts.append(first)
    return bins, starts


def _errors(ones: Floats, n: Floats, v: Floats, starts: list[Ints]) -> Floats:
    """T_m at each scale, the coarsest first, of each column of outcomes 1 at the levels: (scales, draws)."""
    # A bin stands where its first level does. Each scale adds sums of bins of the finer one.
    held, at, finer, found = n.copy(), v[:, None], np.arange(len(n)), list[Floats]()
    residuals = ones - held[:, None] * at
    squares = ones * (1.0 - at) ** 2 + (held[:, None] - ones) * at**2
    errors = np.zeros(residuals.shape)
    for first in starts[::-1]:
        parts = np.diff(np.searchsorted(finer, first), append=len(finer))
        joined = parts > 1
        if joined.any():
            those, begins = finer[np.repeat(joined, parts)], np.cumsum(parts[joined]) - parts[joined]
            for sums in (residuals, squares, held):
                sums[first[joined]] = np.add.reduceat(sums[those], begins)
        paired = first[held[first] > 1.0]
        new = first[joined & (held[first] > 1.0)] if found else paired
        errors[new] = (residuals[new] ** 2 - squares[new]) / (held[new] - 1.0)[:, None]
        found.append(errors[paired].sum(axis=0))
        finer = first
    return np.array(found[::-1]) / n.sum()


@dataclass(frozen=True)
class SampleErrors:
    """Errors of a measure on samples; one entry for each number of samples."""

    measure: str
    options: Mapping[str, Any]
    value: float  # on Γ
    samples: tuple[int, ...]  # n
    # (number of n, repetitions): |μ(Γ̂) − μ(Γ)|; where μ is a bracket, the most that its ends allow
    errors: Floats

    @property
    def mean(self) -> Floats:
        """The mean error for each n: the estimate of E|μ(Γ̂) − μ(Γ)|."""
        return np.asarray(self.errors.mean(axis=1))

    def interval(self, confidence: float = 0.95) -> Floats:
        """(number of n, 2) ends that hold E|μ(Γ̂) − μ(Γ)| with this probability each, for any number of repetitions.

        The smaller of two radii, each of which may fail in half of the cases left. Hoeffding's is for errors in [0, b],
        b the range. That of Maurer and Pontil 2009 (Theorem 4) uses their variance.
        """
        if not 0.0 < confidence < 1.0:
            raise InvalidParameter(f"confidence = {confidence!r}; expected a number in (0, 1)")
        record = MEASURES[self.measure]
        wide, times = record.largest - record.least, self.errors.shape[1]
        if math.isinf(wide):
            raise InvalidParameter(f"measure {self.measure!r} has no largest value; expected a bounded one")
        tail = 1.0 - confidence
        radius = np.full(len(self.samples), wide * math.sqrt(math.log(4.0 / tail) / (2.0 * times)))
        if times > 1:
            log, spread = math.log(8.0 / tail), self.errors.var(axis=1, ddof=1)
            by_variance = np.sqrt(2.0 * spread * log / times) + 7.0 * wide * log / (3.0 * (times - 1))
            radius = np.minimum(radius, by_variance)
        return np.clip(np.stack((self.mean - radius, self.mean + radius), axis=1), 0.0, wide)

    @property
    def exponent(self) -> float:
        """The slope of log mean error against log n, by least squares; NaN where there is one n or no error."""
        if len(self.samples) < 2 or not (self.mean > 0.0).all():
            return math.nan
        return float(np.polyfit(np.log(self.samples), np.log(self.mean), 1)[0])

    def table(self) -> "DataFrame":
        """One row for each n: mean error, 95 % interval, standard deviation, mean error times √n."""
        from pandas import DataFrame

        (low, high), mean, deviation = self.interval().T, self.mean, self.errors.std(axis=1)
        cells = {"samples": self.samples, "mean": mean, "lower": low, "upper": high, "deviation": deviation}
        return DataFrame({**cells, "times_root": mean * np.sqrt(self.samples)})


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

    n samples are drawn from Γ, again and again. A measure is α(n)-testable if for every Γ its value on n samples is
    within α(n) of that on Γ. The errors at one Γ are a lower bound of α, in expectation.

    Source: Rossellini et al. 2025 and Bairaktari, Hu, Nguyen & Ullman 2026, §1.2 (Question 1), take the worst Γ.

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

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.25, 0.5, 0.75], [1, 2, 1], [0.25, 0.5, 0.75])
    >>> found = alpha_n(gamma, "smooth_ce", samples=[100, 10_000], seed=1)
    >>> bool(found.mean[1] < found.mean[0] / 5)
    True
    """
    measure = meant("measure", measure, MEASURES, LIST)
    if MEASURES[measure].of_rounds:
        raise InvalidParameter(
            f"alpha_n: the value of {measure!r} depends on the number of rounds; expected a measure of Γ alone"
        )
    numbers = tuple(count("samples", n, most=MOST) for n in samples)
    if not numbers:
        raise InvalidParameter("samples is empty; expected at least one number")
    errors = np.empty((len(numbers), count("repetitions", repetitions, most=MOST)))
    generator = np.random.default_rng(count("seed", seed, least=0))
    function = MEASURES[measure].bind(**options)
    low, high = ends(function(gamma))
    if not math.isfinite(low + high):
        raise InvalidParameter(f"alpha_n: {measure} is infinite on this Γ; expected a finite value")
    share = gamma.mass / gamma.mass.sum()  # sums to 1 within what is allowed to draw from
    for row, n in zip(errors, numbers, strict=True):
        for i in range(len(row)):
            counts = generator.multinomial(n, share)
            ones = generator.binomial(counts, gamma.means)
            found = ends(function(JointDistribution.from_counts(gamma.predictions, counts, ones)))
            row[i] = max(abs(found[1] - low), abs(high - found[0]))
    errors.setflags(write=False)
    return SampleErrors(measure, dict(options), (low + high) / 2.0, numbers, errors)
