"""Pictures of Γ: a panel for each, with what is drawn below it, such as how often each prediction is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution, check_gamma
from onlinecal.forecasts.regression import smoothed
from onlinecal.forecasts.table import Evaluation
from onlinecal.report.panels import Panels, Picture, handles
from onlinecal.report.style import GREY, plain, wrapped

Floats = NDArray[np.float64]
#: Γ, or what `evaluate` made of it
Known = JointDistribution | Evaluation
#: or several by their headings; of samples a pair (p, y)
Gammas = Known | Mapping[str, Known | tuple[ArrayLike, ArrayLike]]

#: levels that are drawn one by one
MOST = 200
#: ends of axes, from 0, or to 1
NICE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
#: width of the Gaussian by which more of them are smoothed
SIGMA = 0.01


def gammas_of(where: str, p: Gammas | ArrayLike, y: ArrayLike | None) -> dict[str, JointDistribution]:
    """Label → Γ, of samples, of a Γ, of an `Evaluation`, or of several by label."""
    if isinstance(p, Known | Mapping):
        if y is not None:
            raise InvalidParameter(
                f"{where}: y beside a JointDistribution, which holds outcomes; expected one of the two"
            )
        if isinstance(p, Mapping) and not p:
            raise InvalidParameter(f"{where}: nothing to draw; expected at least one JointDistribution")
        several = p if isinstance(p, Mapping) else {"": p}
        return {label: _gamma(where, one) for label, one in several.items()}
    if y is None:
        raise InvalidData(f"{where}: y is missing; expected the outcomes of the predictions p")
    return {"": JointDistribution.from_samples(p, y)}


def _gamma(where: str, one: Any) -> JointDistribution:
    if isinstance(one, Evaluation):
        return one.gamma
    if isinstance(one, tuple) and len(one) == 2:
        return JointDistribution.from_samples(*one)
    check_gamma(where, one)
    gamma: JointDistribution = one
    return gamma


def of_gammas(
    p: Any,
    drawn: Sequence[Any],
    draw: Callable[[Axes, Axes, Any, bool], None],
    headings: Sequence[str],
    caption: str,
    high: float,
    lower: float = 0.0,
    names: Mapping[str, int] = MappingProxyType({}),
    after: Callable[[Panels], None] = lambda _: None,
) -> Picture:
    """A panel for each of what is drawn of p, `high` inches for each of its width, and axes below each of them.

    `draw` takes the axes, those below, what is drawn of one, and whether the figure is new; `lower` is the height of
    axes below as a part of that of the panel, 0 for none. In given axes they hang below these. Labels stand above the
    headings.
    """
    shape, below = (len(drawn),), dict[Axes, Axes]()
    headings = [
        f"{getattr(one, 'label', '')}\n{text}".strip() for one, text in zip(drawn, headings, strict=True)
    ]

    def height(side: float, columns: int) -> float:
        heads = max(wrapped(heading, side, 9).count("\n") for heading in headings)
        each = side * high * (1.0 + lower) + 0.75 + 0.12 * bool(lower) + 0.16 * heads
        return -(-len(drawn) // columns) * each

    def build(fig: Figure, columns: int) -> Panels:
        grid = fig.add_gridspec(-(-len(drawn) // columns), columns)
        found = []
        for i in range(len(drawn)):
            place: Any = grid[divmod(i, columns)]
            if lower:
                pair = place.subgridspec(2, 1, height_ratios=[1.0, lower], hspace=0.0)
                found.append(fig.add_subplot(pair[0]))
                below[found[-1]] = fig.add_subplot(pair[1], sharex=found[-1])
            else:
                found.append(fig.add_subplot(place))
        return np.array(found, dtype=object)

    def fill(panels: Panels, side: float, new: bool) -> None:
        for axis, one, heading in zip(panels, drawn, headings, strict=True):
            if lower and not new:
                below[axis] = axis.inset_axes((0.0, -0.06 - lower, 1.0, lower), sharex=axis)
            draw(axis, below.get(axis, axis), one, new)
            axis.set_title(wrapped(heading, side, 9), fontsize=9)
        after(panels)

    return Picture(
        shape, "one for each", fill, caption, height, lambda: handles(names, markersize=4, linewidth=1.5),
        wide=(1.0, 3.9), gap=0.65, widest=60.0, most=3, build=build, single=not isinstance(p, Mapping),
    )  # fmt: skip


class Density(NamedTuple):
    """The share of each level, or, with σ > 0, the density of predictions smoothed by a Gaussian."""

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
        end = min([1.0, *(end for end in NICE if end >= min(high, 1.0 - low))])
        found.append((0.0, end) if high <= end else (1.0 - end, 1.0))
    return found


def of_densities(drawn: Sequence[Density]) -> str:
    """The sentence of a caption on them."""
    widths = sorted({one.sigma for one in drawn if one.sigma})
    parts = ["the share of the weight at each level"] * any(not one.sigma for one in drawn)
    if widths:
        parts.append(f"the density of predictions (Gaussian, σ = {' or '.join(f'{w:.3g}' for w in widths)})")
    return f"Below: {' or '.join(parts)}."


def draw_density(axis: Axes, one: Density) -> None:
    """Draws a density below a diagram with the same predictions across."""
    if one.sigma:
        axis.fill_between(one.at, one.heights, color=GREY, linewidth=0)
    else:
        # Typographic points between two levels.
        room = 160.0 / max(np.diff(one.at, prepend=-1.0).min() ** -1.0, 1.0)
        axis.vlines(one.at, 0.0, one.heights, color=GREY, linewidth=float(np.clip(0.6 * room, 0.6, 5.0)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
    axis.set_ylim(0.0, 1.1 * float(one.heights.max()))
    axis.yaxis.set_major_locator(MaxNLocator(2))
    plain(axis, "prediction", "density" if one.sigma else "weight")
