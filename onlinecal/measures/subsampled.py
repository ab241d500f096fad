"""Calibration errors of random subsets of the rounds: smooth and step calibration, subsampled.

A forecaster that knows the probabilities can cancel the bias of chance by false forecasts. In a random half of the
rounds it does not cancel, so that little is gained. These measures are truthful up to a constant (Haghtalab et al.
2024). They are functions of Γ and of the number of rounds.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from onlinecal.core.arrays import Bools, locked
from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import count, number
from onlinecal.measures.base import Bracket, Ints, row, seminorm
from onlinecal.measures.cutoff import step_norm
from onlinecal.measures.smooth_ce import smooth_norm

Law = tuple[Floats, Floats]

#: subsets that are drawn, or classes of subsets that are enumerated
MOST = 10_000_000

#: how many are kept at once
BLOCK = 4096

# Values less likely than this are left out; together they change no result above rounding.
_LEAST = 1e-24

# Up to this number of trials the probabilities are rounded once, as quotients of whole numbers; of more they are
# SciPy's.
_EXACT = 1000

# P(|A − n/2| > x) ≤ 2 exp(−2x²/n) of a binomial A: this multiple of √n away nothing is that likely.
_SPREAD = 5.4


def _laws(gamma: JointDistribution, most: int) -> Iterator[Law | None]:
    """Values of Σ_{t ∈ S} (y_t − p_t) at each level with probabilities; None where weights are not whole or there are
    many.
    """
    parts = gamma.predictions.tolist(), gamma.positives.tolist(), (gamma.counts - gamma.positives).tolist()
    for v, ones, zeros in zip(*parts, strict=True):
        yield _level(v, ones, zeros, min(16 * most, MOST))


def _level(v: float, ones: float, zeros: float, most: int) -> Law | None:
    """The law of A (1 − v) − B v, with A and B binomial."""
    if ones % 1.0 or zeros % 1.0 or _SPREAD * math.sqrt(ones + zeros) > most:
        return None
    if v == 0.5:  # A − B + zeros is binomial
        halves, chance = _binomial(int(ones + zeros))
        return 0.5 * (halves - zeros), chance
    high, chance = _binomial(int(ones) if v < 1.0 else 0)
    low, other = _binomial(int(zeros) if v > 0.0 else 0)
    if len(high) * len(low) > most:
        return None
    return _merged(np.subtract.outer(high * (1.0 - v), low * v).ravel(), np.outer(chance, other).ravel())


@lru_cache(maxsize=64)
def _binomial(n: int) -> Law:
    """The values of a binomial number of n trials of 1/2 that are not too unlikely, and their probabilities."""
    spread = math.ceil(_SPREAD * math.sqrt(n))
    values = np.arange(max(n // 2 - spread, 0), min(n // 2 + spread, n) + 1.0)
    if n <= _EXACT:
        chance = np.array([math.comb(n, int(k)) / 2**n for k in values])
    else:
        from scipy.stats import binom

        chance = binom.pmf(values, n, 0.5)
    likely = chance > _LEAST
    return locked(values[likely]), locked(chance[likely])


def _merged(values: Floats, chance: Floats) -> Law:
    """Equal values joined, for those on a grid differ by rounding: one of them stands for all within 1e-12."""
    _, one, place = np.unique(np.round(values, 12), return_index=True, return_inverse=True)
    return values[one], _summed(place, chance)


def _summed(place: Ints, chance: Floats) -> Floats:
    return np.bincount(place.ravel(), chance).astype(np.float64)


def combinable(gamma: JointDistribution, most: int) -> list[Law] | None:
    """The laws of all levels where they have at most `most` combinations."""
    laws, combinations = [], 1
    for law in _laws(gamma, most):
        if law is None or (combinations := combinations * len(law[0])) > most:
            return None
        laws.append(law)
    return laws


def enumerated(laws: list[Law]) -> Iterator[tuple[Floats, Floats]]:
    """All combinations of the levels' values, a block at a time, with their probabilities."""
    sizes = np.array([len(values) for values, _ in laws])
    strides = np.append(np.cumprod(sizes[::-1])[::-1][1:], 1)
    total = int(np.prod(sizes))
    for start in range(0, total, BLOCK):
        number = np.arange(start, min(start + BLOCK, total))
        rows, chance = np.empty((len(number), len(laws))), np.ones(len(number))
        for i, (values, own) in enumerate(laws):
            which = number // strides[i] % sizes[i]
            rows[:, i] = values[which]
            chance *= own[which]
        yield rows, chance


def largest_prefix(gamma: JointDistribution, most: int) -> float | None:
    """E of the largest size of a prefix sum; None beyond `most` states, or 16 times as many before merging."""
    at, largest, chance = np.zeros(1), np.zeros(1), np.ones(1)
    for law in _laws(gamma, most):
        if law is None or len(at) * len(law[0]) > min(16 * most, MOST):
            return None
        values, own = law
        at = np.add.outer(at, values).ravel()
        largest = np.maximum(np.repeat(largest, len(values)), np.abs(at))
        chance = np.outer(chance, own).ravel()
        near = np.round(at, 12) + 1j * np.round(largest, 12)
        _, one, place = np.unique(near, return_index=True, return_inverse=True)
        if len(one) > most:
            return None
        at, largest, chance = at[one], largest[one], _summed(place, chance)
    return float(chance @ largest)


Norm = Callable[[JointDistribution, Floats], Floats]


@dataclass(frozen=True)
class Estimate:
    """The mean of random draws, and an interval that holds what it estimates with this confidence over the draws."""

    value: float
    lower: float
    upper: float
    confidence: float
    draws: int
    seed: int


@of_gamma
def subsampled_smooth_ce(gamma: JointDistribution, *, subsets: int = 4096) -> Bracket:
    """Subsampled smooth calibration error SSCE: the mean of the smooth calibration error over subsets of the rounds.

    T · SSCE = E_S [ sup over 1-Lipschitz ω with |ω| ≤ 1 of Σ_{t ∈ S} ω(p_t) (y_t − p_t) ], where each of the T
    rounds belongs to S with probability 1/2, independently. At most `subsets` classes of subsets with different
    residuals are enumerated, each in O(k log k); then the bracket has no width. Beyond, with e_t = y_t − p_t, it is
    at least ½ smCE and ‖e‖/√8 over T. It is at most ½ smCE + R/2 with R no less than the mean supremum over random
    signs of the e_t, and at most ½ E|y − p|. For calibrated forecasts it falls with T: at most R/2, of the order of
    1/√T. Divided by T, as all measures here.

    Source: Haghtalab, Qiao, Yang & Zhao 2024 (NeurIPS; arXiv 2407.13979), the definition of SSCE. We know it from
    abstracts and later papers. The bounds: Jensen's inequality for the mean residuals, half of those of all rounds;
    Khinchine's inequality E|Σ ε_t e_t| ≥ ‖e‖/√2; and ω(p) = ω(c) + ∫_c^p ω' with c = ½.

    Parameters
    ----------
    gamma : JointDistribution
        Γ of T rounds. A whole weight counts as that number of rounds of weight 1. Where weights are not whole, the
        bracket holds for all rounds that are possible.
    subsets : int, default 4096, from 1 to 10^7
        The most classes that are enumerated.

    Examples
    --------
    >>> subsampled_smooth_ce(JointDistribution.from_samples([0.5, 0.5], [0, 1]))  # of no, one, one, both that cancel
    Bracket(lower=0.125, upper=0.125)
    """
    most = count("subsets", subsets, most=MOST)
    if (laws := combinable(gamma, most)) is not None:
        blocks = enumerated(laws)
        return _exact(gamma, math.fsum(float(chance @ smooth_norm(gamma, rows)) for rows, chance in blocks))
    return _bounds(gamma, smooth_norm, _random_signs(gamma))


@of_gamma
def subsampled_step_ce(gamma: JointDistribution, *, subsets: int = 4096) -> Bracket:
    """Subsampled step calibration error StepCE_sub: the mean of the step calibration error over subsets of the rounds.

    T · StepCE_sub = E_S [ max over t of |Σ_{s ∈ S, p_s ≤ t} (y_s − p_s)| ], where each of the T rounds belongs to S
    with probability 1/2, independently. The bracket has no width where levels have at most `subsets` pairs of a
    prefix sum and its largest size. Beyond, with e_t = y_t − p_t: at least ½ stepCE and ‖e‖/√8 over T, at most ½
    stepCE + ‖e‖/(√2 T), and at most ½ E|y − p|. Divided by T, as all measures here.

    Source: Qiao & Zhao 2025 (COLT; arXiv 2503.02384), subsampled step calibration, from its abstract and its step
    calibration error. The bounds: Jensen's and Khinchine's inequalities; above that of Lévy, P(max |M_j| > x) ≤ 2
    P(|M_T| > x), so that E max M_j² ≤ 2 ‖e‖² for sums M_j of terms ε_t e_t with random signs.

    Parameters
    ----------
    gamma : JointDistribution
        As in `subsampled_smooth_ce`.
    subsets : int, default 4096, from 1 to 10^7
        The most pairs that are kept.

    Examples
    --------
    >>> subsampled_step_ce(JointDistribution.from_samples([0.25, 0.75], [1, 0]))
    Bracket(lower=0.28125, upper=0.28125)
    """
    most = count("subsets", subsets, most=MOST)
    if (value := largest_prefix(gamma, most)) is not None:
        return _exact(gamma, value)
    return _bounds(gamma, step_norm, math.sqrt(2.0 * float(_squares(gamma).sum())))


@of_gamma
def subsampled_smooth_ce_sampled(
    gamma: JointDistribution, *, seed: int, draws: int = 1000, confidence: float = 1 - 1e-6
) -> Estimate:
    """`subsampled_smooth_ce` estimated by the mean over subsets that are drawn.

    The interval is the mean ± √(Σ (y_t − p_t)² ln(2/δ) / (2R)) / T, cut at 0. Without a round t the supremum
    changes by at most |y_t − p_t|, and McDiarmid's inequality (1989) holds for every T and R.

    Parameters
    ----------
    gamma : JointDistribution
        Γ of rounds of weight 1, or of whole weights.
    seed : int, ≥ 0
        The same seed gives the same estimate.
    draws : int, default 1000, from 1 to 10^7
        Number of subsets R, O(k log k) each.
    confidence : float, default 1 − 10^−6, in (0, 1)
        1 − δ.

    Examples
    --------
    >>> found = subsampled_smooth_ce_sampled(JointDistribution.from_samples([0.5, 0.5], [0, 1]), seed=1)
    >>> found.lower <= 0.125 <= found.upper, found.draws
    (True, 1000)
    """
    return _sampled(gamma, smooth_norm, seed, draws, confidence)


@of_gamma
def subsampled_step_ce_sampled(
    gamma: JointDistribution, *, seed: int, draws: int = 1000, confidence: float = 1 - 1e-6
) -> Estimate:
    """`subsampled_step_ce` estimated by subsets that are drawn, as `subsampled_smooth_ce_sampled`; O(k) each.

    Examples
    --------
    >>> found = subsampled_step_ce_sampled(JointDistribution.from_samples([0.25, 0.75], [1, 0]), seed=1)
    >>> found.lower <= 0.28125 <= found.upper
    True
    """
    return _sampled(gamma, step_norm, seed, draws, confidence)


def _exact(gamma: JointDistribution, total: float) -> Bracket:
    value = min(total / gamma.weight, 0.5)
    return Bracket(value, value)


def _whole(gamma: JointDistribution) -> Bools:
    """Of which levels the rounds are known: those with whole weights of both outcomes."""
    return np.asarray((gamma.positives % 1.0 == 0.0) & (gamma.counts % 1.0 == 0.0))


def _squares(gamma: JointDistribution) -> Floats:
    """Σ (e_t/T)² of each level; where rounds are not known no less than of any: of one round for each outcome."""
    v, ones, zeros = gamma.predictions, gamma.mass * gamma.means, gamma.mass * (1.0 - gamma.means)
    known, T = _whole(gamma), gamma.weight
    return np.asarray(
        np.where(known, ones / T, ones**2) * (1.0 - v) ** 2 + np.where(known, zeros / T, zeros**2) * v**2
    )


def _random_signs(gamma: JointDistribution) -> float:
    """No less than E sup over ω of Σ ε_t e_t ω(p_t), over T: |Σ ε_t e_t| and the integrals of what lies beyond x."""
    square, v = _squares(gamma), gamma.predictions
    below = np.sqrt(np.append(0.0, np.cumsum(square)))  # between level i − 1 and level i
    above = np.sqrt(np.append(np.cumsum(square[::-1])[::-1], 0.0))
    edges = np.concatenate(([0.0], v, [1.0]))
    left = np.diff(np.minimum(edges, 0.5))
    right = np.diff(np.maximum(edges, 0.5))
    return float(below[-1] + below @ left + above @ right)


def _bounds(gamma: JointDistribution, norm: Norm, signs: float) -> Bracket:
    half = 0.5 * float(norm(gamma, gamma.residuals[None, :])[0])
    mass, q, v = gamma.mass, gamma.means, gamma.predictions
    upper = min(half + 0.5 * signs, 0.5 * float(mass @ (q * (1.0 - v) + (1.0 - q) * v)))
    size = math.sqrt(float(_squares(gamma).sum()) / 8.0) if _whole(gamma).all() else 0.0
    return Bracket(min(max(half, size), upper), upper)  # they may be equal, but for rounding


def _sampled(gamma: JointDistribution, norm: Norm, seed: int, draws: int, confidence: float) -> Estimate:
    generator = np.random.default_rng(count("seed", seed, least=0))
    draws = count("draws", draws, most=MOST)
    delta = 1.0 - number("subsampled", "confidence", confidence, 0.0, 1.0 - 1e-15)
    v, ones, zeros = gamma.predictions, gamma.positives, gamma.counts - gamma.positives
    if not (known := _whole(gamma) & (gamma.counts < 2.0**62)).all():
        i = int(np.argmin(known))
        raise InvalidData(
            f"subsampled: {float(zeros[i])!r} and {float(ones[i])!r} rounds of outcome 0 and 1 at prediction "
            f"{float(v[i])!r}; expected whole numbers of rounds below 2^62"
        )
    s, z = ones.astype(np.int64), zeros.astype(np.int64)
    block = max(BLOCK * 64 // gamma.levels, 1)
    total = 0.0
    for start in range(0, draws, block):
        size = (min(block, draws - start), gamma.levels)
        rows = generator.binomial(s, 0.5, size) * (1.0 - v) - generator.binomial(z, 0.5, size) * v
        total += float(norm(gamma, rows).sum())
    value = total / draws / gamma.weight
    radius = math.sqrt(float(_squares(gamma).sum()) * math.log(2.0 / delta) / (2.0 * draws))
    return Estimate(value, max(value - radius, 0.0), value + radius, 1.0 - delta, draws, int(seed))


def _of_rounds(**options: int) -> str:
    return "the value depends on the number of rounds, which what they are drawn from has not"


MEASURES = (
    row(
        subsampled_smooth_ce,
        "SSCE | HQYZ24 | O(N k log k), N ≤ 4096 classes of subsets; beyond, O(k log k) "
        "| yes | no, but O(1/√T) | yes (s = 2)",
        bracket=True,
        largest=0.5,
        sampling=seminorm(smooth_norm, refuses=_of_rounds),
        of_rounds=True,
    ),
    row(
        subsampled_step_ce,
        "StepCE_sub | QZ25 | O(N k), N ≤ 4096 states; beyond, O(k) | no | no, but O(1/√T) | yes",
        bracket=True,
        largest=0.5,
        decisions="regret of every task against monotone swaps ≤ 8 StepCE_sub",
        sampling=seminorm(step_norm, refuses=_of_rounds),
        of_rounds=True,
    ),
)
