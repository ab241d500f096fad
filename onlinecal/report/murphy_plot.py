"""Murphy diagrams: first what is drawn, as plain data, then the drawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import number
from onlinecal.growth.words import literal
from onlinecal.report.gamma_panels import Gammas, gammas_of, panels
from onlinecal.report.style import GREY, entry, paper, plain, thinned, tick

Floats = NDArray[np.float64]

#: thresholds at which differences are drawn
POINTS = 401


@dataclass(frozen=True, eq=False)
class Elementary:
    """The mean elementary score of each threshold.

    Attributes
    ----------
    labels : tuple of str
        Whose they are; ("",) where that need not be said.
    thresholds : (n,) floats
        In [0, 1], ascending, each twice: with the limits of the scores from below and from above.
    scores : (labels, n) floats
        Lower is better.
    """

    labels: tuple[str, ...]
    thresholds: Floats
    scores: Floats


@dataclass(frozen=True, eq=False)
class Difference:
    """How much lower the elementary scores of the first of two forecasts are, on the same outcomes.

    Attributes
    ----------
    labels : (str, str)
    thresholds, mean : (n,) floats
        Score of the second less that of the first: positive where the first is better.
    lower, upper : (n,) floats
        An interval for its expectation, point by point.
    level : float
    samples : int
    """

    labels: tuple[str, str]
    thresholds: Floats
    mean: Floats
    lower: Floats
    upper: Floats
    level: float
    samples: int


def elementary_scores(gamma: JointDistribution, thresholds: Floats, *, above: bool) -> Floats:
    """Σ w_i [ q_i (1 − t) 1(v_i ≤ t) + (1 − q_i) t 1(v_i > t) ], or with < and ≥ in place of ≤ and >.

    Parameters
    ----------
    gamma : JointDistribution
    thresholds : (n,) floats
    above : bool
        Whether a prediction that equals the threshold counts as not above it: the limit of the score from above.

    Returns
    -------
    (n,) floats
    """
    ones = np.concatenate(([0.0], np.cumsum(gamma.mass * gamma.means)))
    zeros = np.concatenate(([0.0], np.cumsum(gamma.mass * (1.0 - gamma.means))))
    upto = np.searchsorted(gamma.predictions, thresholds, side="right" if above else "left")
    return np.asarray((1.0 - thresholds) * ones[upto] + thresholds * (zeros[-1] - zeros[upto]))


def murphy_of(several: Mapping[str, JointDistribution]) -> Elementary:
    """What `plot_murphy` draws: exact, for between two levels a score is a straight line."""
    levels = np.unique(np.concatenate([[0.0, 1.0], *(gamma.predictions for gamma in several.values())]))
    scores = [
        np.stack([elementary_scores(gamma, levels, above=above) for above in (False, True)], axis=1).ravel()
        for gamma in several.values()
    ]
    return Elementary(tuple(several), np.repeat(levels, 2), np.array(scores))


def difference_of(
    first: ArrayLike, second: ArrayLike, y: ArrayLike, labels: tuple[str, str], level: float
) -> Difference:
    """What is drawn of two forecasts of the same outcomes.

    The interval is the mean difference ± Student's t, where for the variance one sample of either outcome in favour of
    either forecast is added: that none was seen does not prove that there is none.
    """
    from scipy.special import stdtrit

    gammas = [JointDistribution.from_samples(p, y) for p in (first, second)]  # checks them
    a, b, out = (np.asarray(part, dtype=np.float64) for part in (first, second, y))
    t = np.linspace(0.0, 1.0, POINTS)
    mean = elementary_scores(gammas[1], t, above=True) - elementary_scores(gammas[0], t, above=True)
    # A sample counts at t if t lies between its two predictions: + where the first is better.
    low, high = np.minimum(a, b), np.maximum(a, b)
    n = len(out)
    squares = np.zeros(POINTS)
    for value, stake in ((1.0, (1.0 - t) ** 2), (0.0, t**2)):
        mine = out == value
        between = np.searchsorted(np.sort(low[mine]), t, side="right") - np.searchsorted(
            np.sort(high[mine]), t, side="right"
        )
        squares += between * stake
    added = 2.0 * ((1.0 - t) ** 2 + t**2)
    variance = np.maximum(squares + added - n * mean**2, added) / n
    half = float(stdtrit(max(n - 1, 1), 0.5 * (1.0 + level))) * np.sqrt(variance / n)
    return Difference(labels, t, mean, mean - half, mean + half, level, n)


def plot_murphy(
    p: Gammas | ArrayLike | Mapping[str, ArrayLike],
    y: ArrayLike | None = None,
    *,
    difference: bool = False,
    band: float = 0.95,
    axes: Any = None,
    title: str = "",
    dark: bool = False,
    width: Any = None,
) -> Axes:
    """The mean elementary score at each threshold, or how two forecasts differ in it.

    The elementary score at t is 1 − t where the event occurs and the prediction is not above t, t where it does not
    occur and the prediction is above t, and 0 elsewhere. Every proper score is a mixture of these: who has less at
    every t is better by all of them.

    Parameters
    ----------
    p : (n,) array_like, JointDistribution, Evaluation, or mapping of labels to these
        Predictions, with outcomes y, which several have in common; or Γ. Predictions come first, other than in
        scikit-learn.
    y : (n,) array_like
        Outcomes, each 0 or 1.
    difference : bool, default False
        Of two forecasts of the same y: the score of the second less that of the first, with an interval.
    band : float, default 0.95
        Of that interval, point by point; approximate.
    axes : matplotlib Axes, optional
        Where to draw. Default: those of a new figure.
    title, dark, width
        As in `reliability_plot.plot_reliability`.

    Returns
    -------
    Axes

    Raises
    ------
    InvalidData, InvalidParameter
        Samples that are no forecasts and outcomes; a difference of other than two forecasts with y; axes or a width
        that cannot be.

    Source
    ------
    Ehm, Gneiting, Jordan, Krüger 2016.

    Deviations
    ----------
    The interval adds four samples; theirs is the mean ± normal quantiles.

    Examples
    --------
    >>> ax = plot_murphy({"first": [0.2, 0.7], "second": [0.4, 0.4]}, [0, 1])
    >>> ax.get_xlabel()
    'threshold t'
    """
    drawn = _murphy(p, y, difference, band)
    several = drawn.labels if isinstance(drawn, Elementary) and len(drawn.labels) > 1 else ()
    found = panels(
        [drawn], partial(_draw, named=axes is not None), [""], _caption(drawn), axes=axes, title=title, dark=dark,
        width=width, high=0.72, names={label: i for i, label in enumerate(several)},
    )  # fmt: skip
    axis: Axes = found[0]
    return axis


def caption(
    p: Gammas | ArrayLike | Mapping[str, ArrayLike],
    y: ArrayLike | None = None,
    *,
    difference: bool = False,
    band: float = 0.95,
) -> str:
    """What is drawn in `plot_murphy`, for a figure of somebody's own."""
    return _caption(_murphy(p, y, difference, band))


def _murphy(p: Any, y: ArrayLike | None, difference: bool, band: float) -> Elementary | Difference:
    level = number("murphy", "band", band, 0.0, 1.0)
    if isinstance(p, Mapping) and y is not None:
        if difference and len(p) == 2:
            (one, first), (other, second) = p.items()
            return difference_of(first, second, y, (one, other), level)
        several = gammas_of("murphy", {label: (some, y) for label, some in p.items()}, None)
    else:
        several = gammas_of("murphy", p, y)
    if difference:
        raise InvalidParameter(
            f"murphy: a difference of {len(several)} forecasts{'' if y is not None else ' without y'}; expected two "
            "in a mapping, and the outcomes y that they share"
        )
    return murphy_of(several)


def _caption(drawn: Elementary | Difference) -> str:
    score = (
        "the mean elementary score, 1 − t for an event with a prediction that is not above t and t for another with "
        "one that is"
    )
    if isinstance(drawn, Elementary):
        return (
            f"Up: {score}. Lower is better; who is lower at every t is better by every proper score. The Brier score "
            "is twice the area below."
        )
    return (
        f"Line: the score of “{drawn.labels[1]}” less that of “{drawn.labels[0]}”: above 0 the latter is better. "
        f"Score: {score}. Band: an approximate {drawn.level:.0%} interval for the expected difference, point by point "
        f"(Student's t with four added to the {drawn.samples:,})."
    )


def _draw(axis: Axes, _: Axes | None, drawn: Elementary | Difference, *, named: bool) -> None:
    here = paper(axis)
    if isinstance(drawn, Elementary):
        for i, (label, scores) in enumerate(zip(drawn.labels, drawn.scores, strict=True)):
            look = here.style(i)
            axis.plot(
                *thinned(drawn.thresholds, scores), color=look.colour, linestyle=look.dashes, markersize=4,
                marker=look.marker if len(drawn.labels) > 1 else "", markevery=0.1, linewidth=1.3,
                label=entry(literal(label), 40) or "_",
            )  # fmt: skip
        if named and len(drawn.labels) > 1:
            axis.legend(fontsize=8, frameon=False)
        axis.set_ylim(0.0, 1.08 * max(float(drawn.scores.max()), 1e-9))
        up = "mean elementary score"
    else:
        axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
        axis.fill_between(
            drawn.thresholds, drawn.lower, drawn.upper, color=here.colours[0], alpha=0.2, linewidth=0
        )
        axis.plot(drawn.thresholds, drawn.mean, color=here.colours[0], linewidth=1.3)
        up = "difference of elementary scores"
    axis.set_xlim(0.0, 1.0)
    axis.yaxis.set_major_locator(MaxNLocator(5))
    axis.yaxis.set_major_formatter(FuncFormatter(tick))
    plain(axis, "threshold t", up)
