"""How far the value of a measure on a sample may lie from that of its population.

Let Γ̂ be n independent draws from Γ, and D = Γ̂ − Γ the change of mass of each prediction and outcome. A measure states
sublinear functions L_j of D, and bounds of its value on Γ where L_j(D) ≤ c_j for all j. The law of D, from resampling
or an inequality, then gives an interval. For a seminorm of the residuals there is one L, the measure itself:
|μ(Γ̂) − μ(Γ)| ≤ μ(Γ̂ − Γ) by the triangle inequality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.joint import Floats, JointDistribution

Ints = NDArray[np.int64]
Ends = tuple[float, float]


@dataclass(frozen=True)
class Change:
    """Changes of the mass of each level and outcome: `zeros`, `ones` (B, k).

    `samples` is n, of weighted samples (Σ w)²/Σ w²; `origin` is Γ before its predictions were rounded, and `place` the
    level of `gamma` for each level of `origin`.
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
    """The Γ of the sample, n, the ends of the value, and values at other options, kept for several measures."""

    gamma: JointDistribution
    samples: float
    ends: Ends
    kept: dict[str, Floats] = field(default_factory=dict)


GAFFKE = "quantiles of means with random weights and one more sample of an extreme loss (Gaffke 2005)"


def around(known: Known, radii: Floats, **options: Any) -> Ends:
    """The value, and the one radius to either side."""
    return known.ends[0] - float(radii[0]), known.ends[1] + float(radii[0])


@dataclass(frozen=True)
class Sampling:
    """How an interval for a measure is made.

    Attributes
    ----------
    deviations : callable
        `deviations(change, **options) -> (B, J) floats`: L_j of each change.
    limits : callable
        `limits(known, radii, **options) -> (lower, upper)`, where L_j(D) ≤ radii[j]; they hold the value on the sample.
    norm : callable, optional
        `norm(gamma, residuals, **options) -> (B,) floats`: the measure as a seminorm of residuals (B, k).
    cells, share, instead :
        Levels that count together. Where cells with few samples weigh more than `share`, the value is noise: `instead`
        is named.
    refuses : callable
        `refuses(**options) -> str`: why there is no interval; "" where there is one.
    means : callable, optional
        `means(samples, **options) -> (J,) floats` no less than √n E[L_j(D)] for every Γ, or None.
    spread : float
        No sample changes an L_j by more than this times 1/n.
    losses : callable, optional
        `losses(gamma) -> (zeros, ones, most)` of a mean loss: at each level for either outcome, and the largest.
    calibrated : bool
        Whether changes of outcomes drawn from the predictions count as well; not for scores.
    """

    deviations: Callable[..., Floats]
    source: str
    limits: Callable[..., Ends] = around
    norm: Callable[..., Floats] | None = None
    cells: Callable[..., Ints] | None = None
    share: Callable[..., float] = lambda **options: 0.05
    instead: str = ""
    refuses: Callable[..., str] = lambda **options: ""
    means: Callable[..., Any] | None = None
    spread: float = 2.0
    losses: Callable[[JointDistribution], tuple[Floats, Floats, float]] | None = None
    calibrated: bool = True


@dataclass(frozen=True)
class Between:
    """An interval from those of two other measures without options, one below and one above."""

    lower: str
    upper: str
    source: str


def seminorm(norm: Callable[..., Floats], **facts: Any) -> Sampling:
    """The `Sampling` of a seminorm of the residuals."""

    def deviations(change: Change, **options: Any) -> Floats:
        return norm(change.gamma, change.residuals, **options)[:, None]

    facts.setdefault("source", "the triangle inequality: |μ(Γ̂) − μ(Γ)| ≤ μ(Γ̂ − Γ)")
    return Sampling(deviations, norm=norm, **facts)


def mean_of(losses: Callable[[JointDistribution], tuple[Floats, Floats, float]], **facts: Any) -> Sampling:
    """The `Sampling` of the mean of a loss."""

    def deviations(change: Change) -> Floats:
        zeros, ones, _ = losses(change.gamma)
        # What was called impossible is not in the sample, or the mean is infinite.
        zeros, ones = (np.where(np.isfinite(part), part, 0.0) for part in (zeros, ones))
        return np.abs(change.zeros @ zeros + change.ones @ ones)[:, None]

    return Sampling(deviations, facts.pop("source", GAFFKE), losses=losses, calibrated=False, **facts)


def each_level(gamma: JointDistribution, **options: Any) -> Ints:
    """Cells of one level each."""
    return np.arange(gamma.levels)


def halving(samples: float) -> Ints:
    """1, 2, 4, … up to 2 √n and n/30: numbers of bins that are fixed before any outcome is seen."""
    most = min(2.0 * samples**0.5, samples / 30.0)
    return 2 ** np.arange(max(int(np.log2(max(most, 1.0))), 0) + 1)
