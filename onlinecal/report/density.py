"""How often each prediction is made, drawn below a diagram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from onlinecal.core.joint import JointDistribution
from onlinecal.forecasts.regression import smoothed
from onlinecal.report.style import GREY, plain

Floats = NDArray[np.float64]

#: levels that are drawn one by one
MOST = 200
#: what axes reach to from 0, or from 1
NICE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
#: width of the Gaussian by which more of them are smoothed
SIGMA = 0.01


@dataclass(frozen=True, eq=False)
class Density:
    """How often each prediction is made.

    Attributes
    ----------
    at, heights : (n,) floats
        Levels and their share of the weight; or predictions from 0 to 1 and the density there.
    sigma : float
        Of the Gaussian by which predictions are smoothed; 0 where levels are drawn as they are.
    """

    at: Floats
    heights: Floats
    sigma: float


def density_of(gamma: JointDistribution) -> Density:
    """Levels one by one, or, of more than `MOST` of them, their density: bars would show a pattern of their own."""
    if gamma.levels <= MOST:
        return Density(gamma.predictions, gamma.mass, 0.0)
    found = smoothed(gamma, sigma=SIGMA)
    return Density(found.at, found.density, SIGMA)


def spans(*values: Floats) -> list[tuple[float, float]]:
    """Limits of axes of probabilities: [0, 1], or as much of one end as rare or almost certain events need.

    >>> spans(np.array([0.001, 0.03]), np.array([0.0, 0.4])), spans(np.array([0.93]))
    ([(0.0, 0.05), (0.0, 0.5)], [(0.9, 1.0)])
    """
    found = []
    for some in values:
        low, high = float(some.min()), float(some.max())
        near = [end for end in NICE if end >= min(high, 1.0 - low)]
        end = min([1.0, *near])
        found.append((0.0, end) if high <= end else (1.0 - end, 1.0))
    return found


def words(drawn: Sequence[Density]) -> str:
    """What stands in a caption."""
    parts = []
    if any(not one.sigma for one in drawn):
        parts.append("the share of the weight at each level")
    if widths := sorted({one.sigma for one in drawn if one.sigma}):
        parts.append(f"the density of predictions (Gaussian, σ = {' or '.join(f'{w:.3g}' for w in widths)})")
    return f"Below: {' or '.join(parts)}."


def draw_density(axis: Axes, one: Density) -> None:
    """In axes below those of a diagram, which have the same predictions across."""
    if one.sigma:
        axis.fill_between(one.at, one.heights, color=GREY, linewidth=0)
    else:
        room = 160.0 / max(
            np.diff(one.at, prepend=-1.0).min() ** -1.0, 1.0
        )  # between two, in typographic points
        axis.vlines(one.at, 0.0, one.heights, color=GREY, linewidth=float(np.clip(0.6 * room, 0.6, 5.0)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
    axis.set_ylim(0.0, 1.1 * float(one.heights.max()))
    axis.yaxis.set_major_locator(MaxNLocator(2))
    plain(axis, "prediction", "density" if one.sigma else "weight")
