"""How far the value of a measure on a sample may lie from its value on what the sample is drawn from.

Let Γ̂ be n independent draws from Γ, and D = Γ̂ − Γ the change of mass of each prediction and outcome. A measure states
seminorms L_j, or more generally sublinear functions, of D, and what follows for its value on Γ where no L_j(D) is above
a radius c_j. Whoever knows the law of D, be it by resampling or by an inequality, gets an interval from that.

For a (semi)norm of the residuals, such as a supremum over weights of |E[w(v)(y − v)]|, there is one L, the measure
itself: |μ(Γ̂) − μ(Γ)| ≤ μ(Γ̂ − Γ) by the triangle inequality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.joint import JointDistribution

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ends = tuple[float, float]


@dataclass(frozen=True)
class Change:
    """Changes of the mass of each level and outcome, as many as are drawn at once.

    Attributes
    ----------
    gamma : JointDistribution
        Whose levels they are.
    zeros, ones : (B, k) floats
        Changes of the mass with outcome 0, and 1; of either sign.
    samples : float
        n; of weighted samples the effective number (Σ w)²/Σ w².
    origin : JointDistribution
        What `gamma` was before its predictions were rounded; mostly the same.
    place : (k of origin,) ints
        Which level of `gamma` each level of `origin` has become.
    """

    gamma: JointDistribution
    zeros: Floats
    ones: Floats
    samples: float
    origin: JointDistribution
    place: Ints

    @cached_property
    def residuals(self) -> Floats:
        """Changes of the residuals r_i, (B, k)."""
        v = self.gamma.predictions
        return self.ones - (self.ones + self.zeros) * v


@dataclass(frozen=True)
class Known:
    """What is known of the sample when an interval is made.

    Attributes
    ----------
    gamma : JointDistribution
        Of the sample.
    samples : float
        As in `Change`.
    ends : (float, float)
        The value of the measure, twice, or the ends of its bracket.
    kept : dict
        Values at other options, by name, so that several measures which follow from them find them once.
    """

    gamma: JointDistribution
    samples: float
    ends: Ends
    kept: dict[str, Floats] = field(default_factory=dict)


def around(known: Known, radii: Floats, **options: Any) -> Ends:
    """The value, and as much as the one radius to either side."""
    return known.ends[0] - float(radii[0]), known.ends[1] + float(radii[0])


def _no_reason(**options: Any) -> str:
    return ""


@dataclass(frozen=True)
class Sampling:
    """How an interval for a measure is made.

    Attributes
    ----------
    deviations : callable
        `deviations(change, **options) -> (B, J) floats`: L_j of each change.
    source : str
        Of the inequality.
    limits : callable
        `limits(known, radii, **options) -> (lower, upper)`: between what the value on Γ lies where L_j(D) ≤ radii[j]
        for all j. It holds the value on the sample. Default: the value ± the only radius.
    norm : callable, optional
        `norm(gamma, residuals, **options) -> (B,) floats` for residuals (B, k) at the levels of Γ: the measure as a
        seminorm, where it is one.
    cells : callable, optional
        `cells(gamma, **options) -> (k,) ints`: which levels count together. Where cells hold few samples the value on
        a sample is noise, however many samples there are, and there is no interval.
    share : callable
        `share(**options) -> float`: the most that cells with few samples may weigh.
    instead : str
        What to use where cells hold few samples.
    refuses : callable
        `refuses(**options) -> str`: why there is no interval with these options; "" where there is one.
    means : callable, optional
        `means(samples, **options) -> (J,) floats` no less than √n E[L_j(D)], for every Γ. None where no such bound
        is known.
    spread : float
        No sample changes an L_j by more than this times 1/n.
    losses : callable, optional
        `losses(gamma) -> (zeros, ones, most)`, where the measure is the mean of a loss: that of each level with outcome
        0, (k,) floats, and 1; and the largest that there can be, at predictions in the range of Γ. The least is 0.
    calibrated : bool
        Whether changes of outcomes alone, drawn as the predictions say, count as well: then intervals of calibrated
        forecasts are right for every n. Not for scores, which differ between calibrated forecasts.
    """

    deviations: Callable[..., Floats]
    source: str
    limits: Callable[..., Ends] = around
    norm: Callable[..., Floats] | None = None
    cells: Callable[..., Ints] | None = None
    share: Callable[..., float] = lambda **options: 0.05
    instead: str = ""
    refuses: Callable[..., str] = _no_reason
    means: Callable[..., Any] | None = None
    spread: float = 2.0
    losses: Callable[[JointDistribution], tuple[Floats, Floats, float]] | None = None
    calibrated: bool = True


@dataclass(frozen=True)
class Between:
    """An interval from those of two other measures, one below and one above, at once.

    Attributes
    ----------
    lower, upper : str
        Names of measures without options that have a `Sampling`.
    source : str
        Of both inequalities.
    """

    lower: str
    upper: str
    source: str


def seminorm(norm: Callable[..., Floats], **facts: Any) -> Sampling:
    """The `Sampling` of a measure that is a seminorm of the residuals."""

    def deviations(change: Change, **options: Any) -> Floats:
        return norm(change.gamma, change.residuals, **options)[:, None]

    facts.setdefault("source", "the triangle inequality: |μ(Γ̂) − μ(Γ)| ≤ μ(Γ̂ − Γ)")
    return Sampling(deviations, norm=norm, **facts)


def mean_of(losses: Callable[[JointDistribution], tuple[Floats, Floats, float]], **facts: Any) -> Sampling:
    """The `Sampling` of a measure that is the mean of a loss."""

    def deviations(change: Change) -> Floats:
        zeros, ones, _ = losses(change.gamma)
        # What was called impossible is not in the sample, or the mean is infinite.
        zeros, ones = (np.where(np.isfinite(part), part, 0.0) for part in (zeros, ones))
        return np.abs(change.zeros @ zeros + change.ones @ ones)[:, None]

    source = "quantiles of means with random weights and one more sample of an extreme loss (Gaffke 2005)"
    return Sampling(deviations, facts.pop("source", source), losses=losses, calibrated=False, **facts)


def each_level(gamma: JointDistribution, **options: Any) -> Ints:
    """Cells of one level each."""
    return np.arange(gamma.levels)


def halving(samples: float) -> Ints:
    """1, 2, 4, … up to 2 √n and n/30: numbers of bins that are fixed before any outcome is seen."""
    most = min(2.0 * samples**0.5, samples / 30.0)
    return 2 ** np.arange(max(int(np.log2(max(most, 1.0))), 0) + 1)
