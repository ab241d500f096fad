"""What those lose who act when a prediction is above a threshold: what is drawn, as plain data, then the drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import choice
from onlinecal.forecasts.decomposition import isotonic
from onlinecal.forecasts.thresholds import worst_threshold
from onlinecal.report.density import spans
from onlinecal.report.gamma_panels import Gammas, gammas_of, panels
from onlinecal.report.style import GREY, paper, plain, thinned, tick

Floats = NDArray[np.float64]
Against = Literal["levels", "monotone"]

#: what is less is rounding
_NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Decisions:
    """The regret of the decision at each threshold.

    Attributes
    ----------
    label : str
        Whose Γ it is; "" if that need not be said.
    against : {"levels", "monotone"}
        With what one could have acted instead: the mean outcome of each level, or the best monotone recalibration.
    thresholds : (n,) floats
        In [0, 1], ascending, each twice, with the limits of the regret from below and from above.
    acted, waited : (n,) floats
        What is lost for each decision by acting though the probability was below the threshold, and by not acting
        though it was above. Payoffs: acting gives 1 − t if the event occurs and −t if not, divided by max(t, 1 − t),
        and not acting 0: what is at stake never differs by more than 1.
    at, lost : float
        Where both together are largest, and how large.
    said : str
        The same in words, and which predictions are to blame.
    """

    label: str
    against: Against
    thresholds: Floats
    acted: Floats
    waited: Floats
    at: float
    lost: float
    said: str

    @property
    def regret(self) -> Floats:
        """Both together; the largest is the loss of `worst_threshold`, against levels V-CDL."""
        return self.acted + self.waited


def decisions_of(gamma: JointDistribution, *, against: Against = "monotone", label: str = "") -> Decisions:
    """What `plot_decision` draws of Γ.

    Parameters
    ----------
    gamma : JointDistribution
    against : {"levels", "monotone"}, default "monotone"
        As in `plot_decision`.
    label : str, optional
    """
    choice("decision", "against", against, ("levels", "monotone"))
    v, q = gamma.predictions, gamma.means if against == "levels" else isotonic(gamma)
    # Between two of these the regret is a ratio of straight lines.
    ends = np.unique(np.concatenate((v, q)))
    grid = np.linspace(0.0, 1.0, 201)
    # A point that only rounding tells from a level would be in its place.
    near = np.abs(ends[np.minimum(np.searchsorted(ends, grid - 1e-9), len(ends) - 1)] - grid) < 1e-9
    ends = np.sort(np.concatenate((ends, grid[~near])))
    stake = np.maximum(ends, 1.0 - ends)[:, None]
    both = []
    for wrong in (q < v, q > v):
        low, high = np.minimum(q, v)[wrong], np.maximum(q, v)[wrong]
        # The outcomes themselves: a threshold may part levels that a recalibration pools.
        given = gamma.mass[wrong], gamma.means[wrong]
        limits = [_lost(ends, low, high, *given, side) for side in ("left", "right")]
        both.append((np.abs(np.stack(limits, axis=1)) / stake).ravel())
    thresholds, (acted, waited) = np.repeat(ends, 2), both
    if against == "monotone":
        worst = worst_threshold(gamma)
        return Decisions(label, against, thresholds, acted, waited, worst.at, worst.loss, str(worst))
    regret = acted + waited
    at = int(np.argmax(regret))
    t, lost = float(thresholds[at]), float(regret[at])
    # At a jump those are to blame who are so on the side where more is lost.
    after = at % 2 == 1
    high_ = (q < t) & ((v > t) if after else (v >= t))
    low_ = (q > t) & ((v <= t) if after else (v < t))
    blamed = high_ if acted[at] >= waited[at] else low_
    said = f"act when p {'>' if after else '≥'} {t:.3g}: {lost:.3g} lost for each decision; {_why(gamma, blamed)}"
    said = "no threshold loses anything" if lost < _NOTHING else said
    return Decisions(label, against, thresholds, acted, waited, t, lost, said)


def _why(gamma: JointDistribution, blamed: NDArray[np.bool_]) -> str:
    """Which predictions are off, by how much on average, and in which direction."""
    if not blamed.any():
        return ""
    v, mass = gamma.predictions[blamed], gamma.mass[blamed]
    by = float(mass @ (gamma.means[blamed] - v) / mass.sum())
    whole = f"{v[0]:.3g}" if f"{v[0]:.3g}" == f"{v[-1]:.3g}" else f"{v[0]:.3g}–{v[-1]:.3g}"
    return f"predictions of {whole} are too {'low' if by > 0 else 'high'} by {abs(by):.2g} on average"


def _lost(
    t: Floats, low: Floats, high: Floats, mass: Floats, mean: Floats, side: Literal["left", "right"]
) -> Floats:
    """Σ w (q − t) over the intervals from `low` to `high` in which t lies: the limit from this side, for each t."""
    total = np.zeros(len(t))
    for edges, sign in ((low, 1.0), (high, -1.0)):
        order = np.argsort(edges, kind="stable")
        weights = np.concatenate(([0.0], np.cumsum(mass[order])))
        moments = np.concatenate(([0.0], np.cumsum((mass * mean)[order])))
        upto = np.searchsorted(edges[order], t, side=side)
        total += sign * (moments[upto] - t * weights[upto])
    return total


def plot_decision(
    p: Gammas | ArrayLike,
    y: ArrayLike | None = None,
    *,
    against: Against = "monotone",
    axes: Any = None,
    title: str = "",
    dark: bool = False,
    width: Any = None,
) -> Any:
    """What those lose who act when the prediction is above a threshold, for each threshold, with the worst one named.

    Parameters
    ----------
    p : (n,) array_like, JointDistribution, Evaluation, or mapping of labels to these or to pairs (p, y)
        Predictions, with outcomes y; or Γ; or several, a panel for each.
    y : (n,) array_like
        Outcomes, each 0 or 1.
    against : {"levels", "monotone"}, default "monotone"
        With what one could have acted instead: with the best monotone recalibration, which is the best other threshold,
        as in `onlinecal measure`; or with the mean outcome of each level, which is the swap regret of the threshold,
        whose supremum is V-CDL. The latter is noise where levels have few samples.
    axes, title, dark, width
        As in `reliability_plot.plot_reliability`.

    Returns
    -------
    Axes, or (n,) array of Axes
        An array where a mapping is given.

    Raises
    ------
    InvalidData, InvalidParameter
        Samples that are no forecasts and outcomes; another `against`; axes or a width that cannot be.

    Examples
    --------
    >>> ax = plot_decision([0.45] * 40, [0, 1, 1, 1] * 10)
    >>> ax.get_title()
    'act when p > 0.45: you lose 0.545 per decision; predictions\\nof 0.45 (1 of all) are too low by 0.3'
    """
    drawn = _decisions(p, y, against)
    found = panels(
        drawn, _draw, [f"{one.label}\n{one.said}".strip() for one in drawn], _caption(drawn),
        axes=axes, title=title, dark=dark, width=width, high=0.72,
    )  # fmt: skip
    return found if isinstance(p, Mapping) else found[0]


def caption(p: Gammas | ArrayLike, y: ArrayLike | None = None, *, against: Against = "monotone") -> str:
    """What is drawn in `plot_decision`, for a figure of somebody's own."""
    return _caption(_decisions(p, y, against))


def _decisions(p: Gammas | ArrayLike, y: ArrayLike | None, against: Against) -> list[Decisions]:
    return [
        decisions_of(gamma, against=against, label=label)
        for label, gamma in gammas_of("decision", p, y).items()
    ]


def _caption(drawn: Sequence[Decisions]) -> str:
    parts = [
        "Who acts when the prediction is above t gains 1 − t if the event occurs and −t if not, divided by "
        "max(t, 1 − t), and nothing by not acting. Up: how much more each decision would have brought on average",
    ]
    parts[0] += (
        " with the mean outcome of each prediction in its place; the largest is V-CDL."
        if drawn[0].against == "levels"
        else " with the best monotone recalibration in its place, which is the best other threshold."
    )
    lost = [one.lost >= _NOTHING for one in drawn]
    if any(lost):
        parts.append(
            "Dark: by acting in vain; light: by not acting. Point: the worst threshold, not tested against chance."
        )
    if not all(lost):
        parts.append("Where there is no point, no threshold loses anything.")
    return " ".join(parts)


def _draw(axis: Axes, _: Axes | None, one: Decisions) -> None:
    """Both parts of the regret, one upon the other, and the worst threshold."""
    colours = paper(axis)
    blue, red = colours.colours[0], colours.colours[1]
    t, regret = thinned(one.thresholds, one.regret)
    acted = one.acted if len(t) == len(one.thresholds) else np.interp(t, one.thresholds, one.acted)
    axis.fill_between(t, 0.0, acted, color=blue, alpha=0.55, linewidth=0)
    axis.fill_between(t, acted, regret, color=blue, alpha=0.2, linewidth=0)
    axis.plot(t, regret, color=blue, linewidth=1.2, zorder=2.0, solid_joinstyle="round")
    top = one.lost
    if top >= _NOTHING:
        axis.vlines(one.at, 0.0, top, color=GREY, linewidth=0.8, zorder=1.0)
        axis.plot(one.at, top, color=red, marker="o", markersize=5.5, linestyle="none", zorder=3.1,
                  clip_on=False)  # fmt: skip
    # Rare events, and almost certain ones, have nothing to lose at most thresholds.
    seen = one.thresholds[one.regret >= max(0.02 * top, _NOTHING)]
    axis.set_xlim(*spans(seen)[0] if len(seen) else (0.0, 1.0))
    axis.set_ylim(0.0, 1.15 * top if top >= _NOTHING else 1.0)
    for which in (axis.xaxis, axis.yaxis):
        which.set_major_locator(MaxNLocator(5))
        which.set_major_formatter(FuncFormatter(tick))
    plain(axis, "threshold t", "regret for each decision")
