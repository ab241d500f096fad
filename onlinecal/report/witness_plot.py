"""What the smooth calibration error sees: first what is drawn, as plain data, then the drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.joint import JointDistribution
from onlinecal.measures.smooth_ce import smooth_ce, smooth_ce_witness
from onlinecal.report.gamma_panels import Gammas, gammas_of, panels
from onlinecal.report.style import GREY, paper, plain, thinned

Floats = NDArray[np.float64]

#: levels whose residuals are drawn one by one; of more, sums over so many parts of [0, 1]
MOST = 200


@dataclass(frozen=True, eq=False)
class SmoothWitness:
    """A function that attains the smooth calibration error, over the residuals that it weighs.

    Attributes
    ----------
    label : str
        Whose Γ it is; "" if that need not be said.
    levels : int
        Of Γ.
    value : float
        smCE(Γ) = Σ r_i ω(v_i).
    predictions, weights : (k,) floats
        v_i and ω(v_i), from −1 to 1; ω is straight between levels and level beyond the first and the last, and
        1-Lipschitz.
    at, residuals : (n,) floats
        The residuals r_i at the v_i; of more than `MOST` levels their sums over `MOST` parts of [0, 1] of equal width,
        at the middles.
    summed : bool
        Whether they are such sums.
    """

    label: str
    levels: int
    value: float
    predictions: Floats
    weights: Floats
    at: Floats
    residuals: Floats
    summed: bool

    @property
    def heading(self) -> str:
        """What stands above it."""
        return f"{self.label}\nsmCE = {self.value:.4g}".strip()


def smooth_witness(gamma: JointDistribution, *, label: str = "") -> SmoothWitness:
    """What `plot_witness` draws of Γ."""
    witness = smooth_ce_witness(gamma)
    at, residuals, summed = gamma.predictions, gamma.residuals, gamma.levels > MOST
    if summed:
        part = np.minimum((gamma.predictions * MOST).astype(np.int64), MOST - 1)
        residuals = np.bincount(part, gamma.residuals, MOST).astype(np.float64)
        at = (np.arange(MOST) + 0.5) / MOST
    return SmoothWitness(
        label, gamma.levels, smooth_ce(gamma), gamma.predictions, witness.weights, at, residuals, summed
    )


def plot_witness(
    p: Gammas | ArrayLike,
    y: ArrayLike | None = None,
    *,
    axes: Any = None,
    title: str = "",
    dark: bool = False,
    width: Any = None,
) -> Any:
    """The 1-Lipschitz function ω that attains the smooth calibration error, and the residuals that it weighs.

    Parameters
    ----------
    p : (n,) array_like, JointDistribution, or mapping of labels to JointDistribution
        Predictions, with outcomes y; or Γ; or several, a panel for each.
    y : (n,) array_like
        Outcomes, each 0 or 1.
    axes, title, dark, width
        As in `reliability_plot.plot_reliability`.

    Returns
    -------
    Axes, or (n,) array of Axes
        An array where a mapping is given. The residuals have axes of their own below.

    Raises
    ------
    InvalidData, InvalidParameter
        Samples that are no forecasts and outcomes; axes or a width that cannot be.

    Examples
    --------
    >>> plot_witness([0.4, 0.6], [1, 0]).get_title()
    'smCE = 0.06'
    """
    drawn = _witnesses(p, y)
    found = panels(
        drawn, _draw, [one.heading for one in drawn], _caption(drawn),
        axes=axes, title=title, dark=dark, width=width, high=0.6, lower=0.6,
    )  # fmt: skip
    return found if isinstance(p, Mapping) else found[0]


def caption(p: Gammas | ArrayLike, y: ArrayLike | None = None) -> str:
    """What is drawn in `plot_witness`, for a figure of somebody's own."""
    return _caption(_witnesses(p, y))


def _witnesses(p: Gammas | ArrayLike, y: ArrayLike | None) -> list[SmoothWitness]:
    return [smooth_witness(gamma, label=label) for label, gamma in gammas_of("witness", p, y).items()]


def _caption(drawn: Sequence[SmoothWitness]) -> str:
    parts = [
        "Above: a function ω of the prediction v that attains the smooth calibration error, among all that stay in "
        "[−1, 1] and change by no more than v does."
    ]
    if any(one.levels <= MOST for one in drawn):
        parts.append("Points: the levels of Γ.")
    parts.append(
        "Below: residuals, the weight of a level × (mean outcome − v), blue above 0 and orange below."
    )
    if many := [one.levels for one in drawn if one.summed]:
        said = f"{min(many):,}" if min(many) == max(many) else f"{min(many):,} to {max(many):,}"
        parts.append(f"Those of {said} levels are summed over {MOST} parts of [0, 1].")
    parts.append("smCE is the sum of residual × ω over the levels.")
    if not all(one.value for one in drawn):
        parts.append("Where it is 0 every ω attains it.")
    else:
        parts.append("Other ω may attain it, too.")
    return " ".join(parts)


def _draw(axis: Axes, below: Axes | None, one: SmoothWitness) -> None:
    """ω, and the residuals below it."""
    assert below is not None
    colours = paper(axis)
    blue, red = colours.colours[0], colours.colours[1]
    v = np.concatenate(([0.0], one.predictions, [1.0]))
    omega = np.concatenate((one.weights[:1], one.weights, one.weights[-1:]))
    x, heights = thinned(v, omega)
    axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    axis.plot(x, heights, color=colours.ink, linewidth=1.4, zorder=2.0)
    if not one.summed:
        axis.plot(
            one.predictions, one.weights, color=colours.ink, marker="o", linestyle="none", zorder=2.1, clip_on=False,
            markersize=float(np.clip(100.0 / one.levels, 2.0, 4.0)),
        )  # fmt: skip
    axis.set_xlim(0.0, 1.0)
    axis.set_ylim(-1.08, 1.08)
    axis.yaxis.set_major_locator(FixedLocator([-1.0, -0.5, 0.0, 0.5, 1.0]))
    plain(axis, "", "ω")
    axis.tick_params(labelbottom=False)
    below.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    up = one.residuals > 0.0
    few = not one.summed and one.levels <= 60
    for mine, colour in ((up, blue), (~up & (one.residuals != 0.0), red)):
        below.vlines(one.at[mine], 0.0, one.residuals[mine], color=colour, linewidth=2.0 if few else 1.0)
    top = float(np.abs(one.residuals).max())
    below.set_ylim(-1.1 * top if top else -1.0, 1.1 * top if top else 1.0)
    plain(below, "prediction v", "residual")
