"""Proper scores: sound, but not 0 for a calibrated forecast of an uncertain outcome."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are first used
from numpy.typing import ArrayLike

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.levels import LevelSets
from onlinecal.core.validation import choice, vector
from onlinecal.measures.base import GAFFKE, Change, Ends, Known, Sampling, row

Losses = Callable[[JointDistribution], tuple[Floats, Floats, float]]
#: a rate b ↦ the least mean score of always predicting it, and its slope
Base = Callable[[float], tuple[float, float]]
Phi = Literal["log", "quadratic"] | tuple[Callable[[Floats], ArrayLike], Callable[[Floats], ArrayLike]]


class BrierDecomposition(NamedTuple):
    """Murphy's three parts: brier = reliability − resolution + uncertainty."""

    #: Σ w_i (q_i − v_i)²: 0 for a calibrated forecast; the swap regret of the quadratic task
    reliability: float
    #: Σ w_i (q_i − E[y])²: how far the forecast separates outcomes
    resolution: float
    #: E[y] (1 − E[y])
    uncertainty: float


@of_gamma
def brier(gamma: JointDistribution) -> float:
    """Brier score, the mean squared error of the forecast: E[(y − v)²] = Σ w_i ((q_i − v_i)² + q_i (1 − q_i)).

    Source: Brier 1950, with a sum over both outcomes: twice this.

    Examples
    --------
    >>> brier(JointDistribution.from_samples([0.5, 0.5, 0.0, 1.0], [0, 1, 0, 1]))
    0.125
    """
    q = gamma.means
    return float((gamma.mass * ((q - gamma.predictions) ** 2 + q * (1.0 - q))).sum())


def _briers(sets: LevelSets) -> Floats:
    q = sets.means
    return sets.sums(sets.mass * ((q - sets.predictions) ** 2 + q * (1.0 - q)))


@of_gamma
def brier_decomposition(gamma: JointDistribution) -> BrierDecomposition:
    """Murphy's decomposition of the Brier score over the level sets, without bins.

    Source: Murphy 1973.

    Examples
    --------
    >>> brier_decomposition(JointDistribution.from_samples([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 1]))
    BrierDecomposition(reliability=0.0625, resolution=0.25, uncertainty=0.25)
    """
    w, q, b = gamma.mass, gamma.means, gamma.base_rate
    return BrierDecomposition(
        reliability=float((w * (q - gamma.predictions) ** 2).sum()),
        resolution=float((w * (q - b) ** 2).sum()),
        uncertainty=b * (1.0 - b),
    )


@of_gamma
def bregman(gamma: JointDistribution, *, phi: Phi = "log") -> float:
    """Bregman divergence of the means from the predictions: the calibration part of a proper score.

    D_φ(J_Γ ‖ J) = Σ w_i [φ(q_i) − φ(v_i) − φ'(v_i) (q_i − v_i)], for the score with the convex expected payoff φ.
    At least 0, and 0 for calibrated forecasts; infinite for "log" where what happened was called impossible. Not
    scaled.

    Source: Gopalan & Hu 2025, Definitions 4.5 to 4.8, Theorems 4.6 and 4.9; Luo, Senapati & Sharan 2025 for KL
    calibration.

    Parameters
    ----------
    phi : "log", "quadratic" or a pair of callables, default "log"
        "log" is x ln x + (1 − x) ln(1 − x): the mean KL(q ‖ v), KL calibration, of log loss. "quadratic" is x²: the
        mean (q − v)², of the Brier score. A pair is a convex φ and its derivative or subgradient, functions of arrays
        in [0, 1].

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.25], [1], [0.5])
    >>> round(bregman(gamma), 6), bregman(gamma, phi="quadratic"), bregman(gamma, phi=(np.square, lambda x: 2 * x))
    (0.143841, 0.0625, 0.0625)
    """
    v, q = gamma.predictions, gamma.means
    if isinstance(phi, str):
        if choice("bregman", "phi", phi, ("log", "quadratic")) == "quadratic":
            return float(gamma.mass @ (q - v) ** 2)
        return float(gamma.mass @ _divergence(q, v))
    if not (isinstance(phi, tuple | list) and len(phi) == 2 and all(callable(part) for part in phi)):
        raise InvalidParameter(f"bregman: phi = {phi!r}; expected a word or a function and its derivative")
    at_q, at_v, slope = (
        vector(f"bregman: {name}", function(x), InvalidParameter)
        for name, function, x in (("phi", phi[0], q), ("phi", phi[0], v), ("the derivative", phi[1], v))
    )
    if not at_q.shape == at_v.shape == slope.shape == v.shape:
        raise InvalidParameter(
            "bregman: phi or its derivative returns another shape; expected that of its argument"
        )
    with np.errstate(invalid="ignore", over="ignore"):
        terms = at_q - at_v - slope * (q - v)
    rounding = 1e-12 * (np.abs(at_q) + np.abs(at_v) + np.abs(slope))
    if not (good := np.isfinite(terms) & (terms >= -rounding)).all():
        i = int(np.argmin(good))
        gap = f"the divergence of {float(q[i])!r} from {float(v[i])!r} is {float(terms[i]):.3g}"
        raise InvalidParameter(f"bregman: {gap}; expected a finite convex phi and its derivative")
    return float(gamma.mass @ np.maximum(terms, 0.0))


def _divergence(q: Floats, v: Floats) -> Floats:
    """KL(q ‖ v) of coins."""
    gap = q - v
    return np.maximum(_part(q, v, gap) + _part(1.0 - q, 1.0 - v, -gap), 0.0)


def _part(a: Floats, b: Floats, gap: Floats) -> Floats:
    """a ln(a/b) with gap = a − b, from which the digits of near ones come; 0 where a is 0."""
    # Of denormal b the quotient that is not taken may overflow.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logarithm = np.where(np.abs(gap) < 0.5 * b, np.log1p(gap / b), np.log(a) - np.log(b))
        return np.where(a > 0.0, a * logarithm, 0.0)


@of_gamma
def log_loss(gamma: JointDistribution) -> float:
    """Logarithmic loss (cross-entropy, negative log-likelihood) in nats: −E[y ln v + (1 − y) ln(1 − v)], 0 ln 0 = 0.

    Infinite where an outcome was called impossible, for predictions are not clipped.

    Source: Good 1952.

    Examples
    --------
    >>> log_loss(JointDistribution.from_samples([0.5, 0.5], [0, 1])) == math.log(2)
    True
    """
    return float(_nats(gamma.predictions, gamma.mass, gamma.means).sum())


@of_gamma
def nce(gamma: JointDistribution) -> float:
    """Normalised cross-entropy: log loss over that of always predicting the base rate.

    log_loss / H(b) with b = E[y] and H(b) = −b ln b − (1 − b) ln(1 − b). Where all outcomes are equal, H(b) = 0: then 0
    if the log loss is 0, and infinite otherwise. 1 is no better than the base rate, 0 is perfect.

    Source: Siu, Gish & Richardson 1997 report 1 − this; in this orientation He et al. 2014 ("normalised entropy").

    Examples
    --------
    >>> nce(JointDistribution.from_samples([0.5, 0.5], [0, 1]))
    1.0
    """
    # Where nearly all outcomes are equal, the rest is not to be the difference of two rounded numbers.
    ones, zeros = gamma.base_rate, float((gamma.counts - gamma.positives).sum() / gamma.weight)
    rare, often = min(ones, zeros), max(ones, zeros)
    base = -rare * math.log(rare) - often * math.log1p(-rare) if rare > 0.0 else 0.0
    loss = log_loss(gamma)
    return loss / base if base > 0.0 else math.inf if loss > 0.0 else 0.0


def _nats(v: Floats, w: Floats, q: Floats) -> Floats:
    """The part of each level in the log loss."""
    return np.asarray(0.0 - w * (scipy.special.xlogy(q, v) + scipy.special.xlog1py(1.0 - q, -v)))


def _log_losses_each(sets: LevelSets) -> Floats:
    return sets.sums(_nats(sets.predictions, sets.mass, sets.means))


def _log_losses(gamma: JointDistribution) -> tuple[Floats, Floats, float]:
    v = gamma.predictions
    with np.errstate(divide="ignore"):
        zeros, ones = -np.log1p(-v), -np.log(v)
    return zeros, ones, float(max(zeros[-1], ones[0]))


def _mean_change(change: Change, losses: Losses) -> Floats:
    # An outcome that was called impossible is not in the sample, or the mean is infinite.
    zeros, ones = (np.where(np.isfinite(part), part, 0.0) for part in losses(change.gamma)[:2])
    return np.asarray(change.zeros @ zeros + change.ones @ ones)


def _mean_of(losses: Losses, **facts: Any) -> Sampling:
    def deviations(change: Change) -> Floats:
        return np.abs(_mean_change(change, losses))[:, None]

    return Sampling(deviations, facts.pop("source", GAFFKE), losses=losses, calibrated=False, **facts)


def squared_losses(gamma: JointDistribution) -> tuple[Floats, Floats, float]:
    """Those of the Brier score."""
    return gamma.predictions**2, (1.0 - gamma.predictions) ** 2, 1.0


def quotient_change(change: Change, *, losses: Losses, base: Base, score: Callable[..., float]) -> Floats:
    """Changes of (score − quotient · slope of base at b · base rate)/base, the first order of score over base; of b."""
    loss, ones = _mean_change(change, losses), change.ones.sum(axis=1)
    of_rate, slope = base(change.origin.base_rate) if 0.0 < change.origin.base_rate < 1.0 else (0.0, 0.0)
    value = score(change.origin)
    if of_rate == 0.0 or value == math.inf:
        return np.full((len(loss), 2), math.inf)
    return np.abs(np.stack(((loss - value / of_rate * slope * ones) / of_rate, ones), axis=1))


def quotient_limits(known: Known, radii: Floats, base: Base) -> Ends:
    """Quotients of pairs of a score and a base rate within the radii. The quotient is curved near its least value."""
    b, ratio = known.gamma.base_rate, known.ends[0]
    rates = b + float(radii[1]) * np.linspace(-1.0, 1.0, 129)
    inside = rates[(rates > 0.0) & (rates < 1.0)]
    of_rate, slope = base(b)
    loss, bases = ratio * (of_rate + slope * (inside - b)), np.array([base(x)[0] for x in inside])
    low = float(((loss - radii[0] * of_rate) / bases).min())
    high = float(((loss + radii[0] * of_rate) / bases).max()) if len(inside) == len(rates) else math.inf
    return low, high


def _entropy(b: float) -> tuple[float, float]:
    """The entropy of a coin and its slope."""
    return -b * math.log(b) - (1.0 - b) * math.log1p(-b), math.log1p(-b) - math.log(b)


def _nce_limits(known: Known, radii: Floats) -> Ends:
    low, high = quotient_limits(known, radii, _entropy)
    v = known.gamma.predictions
    return low, math.inf if v[0] == 0.0 or v[-1] == 1.0 else high


MEASURES = (
    row(
        brier,
        "Brier | Bri50; Mur73 | O(k) | yes | no | yes",
        many=_briers,
        # √n E|mean − E| ≤ half of the range.
        sampling=_mean_of(
            squared_losses,
            means=lambda samples: np.array([0.5]),
            spread=1.0,
        ),
        # Carrying an umbrella of cost c if v > c loses, against knowing y, c where y = 0 and v > c. It loses 1 − c
        # where y = 1 and v ≤ c. Over all c that is v²/2 or (1 − v)²/2.
        decisions="twice the mean loss against foresight over cost-loss tasks with a uniform cost",
    ),
    row(
        log_loss,
        "NLL | Goo52 | O(k) | yes | no | yes",
        many=_log_losses_each,
        sampling=_mean_of(
            _log_losses,
            source=f"{GAFFKE}, for a population with forecasts no nearer to 0 and 1 than those given",
        ),
        largest=math.inf,
        lasting=True,  # what was called impossible has happened, and will again
        # Shares v and 1 − v of the wealth, doubled where they win.
        decisions="ln 2 − NLL is the growth rate of a gambler who bets v and 1 − v at even odds",
    ),
    row(
        nce,
        "NCE | SGR97 | O(k) | yes | no | yes",
        sampling=Sampling(
            partial(quotient_change, losses=_log_losses, base=_entropy, score=log_loss),
            "the normal law of two means, and all their quotients",
            limits=_nce_limits,
            calibrated=False,
        ),
        largest=math.inf,
    ),
)
