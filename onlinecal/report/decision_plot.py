"""Pictures over thresholds: regrets of decisions, and elementary scores (Murphy diagrams); tables, then pictures."""

from collections.abc import Mapping
from typing import Any, Literal, Unpack, cast

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution, samples
from onlinecal.core.samples import with_ours
from onlinecal.core.validation import choice, number
from onlinecal.logs.regression import isotonic
from onlinecal.logs.thresholds import worst_threshold
from onlinecal.report.facets import facets, stacked
from onlinecal.report.gammas import Drawn, Gammas, Rows, apart, gammas_of, of_gammas, spans, table_of
from onlinecal.report.style import GREY, look, thinned, ticks

Against = Literal["levels", "monotone"]
#: what is less is rounding
_NOTHING = 1e-12
#: thresholds at which differences are drawn
POINTS = 401


def decisions_of(
    gamma: JointDistribution, *, against: Against = "monotone"
) -> tuple[list[dict[str, Any]], str]:
    """The regret at each threshold, twice: from below and above; the "worst" one, and its loss in words.

    `acted` is lost by acting though the probability was below the threshold, `waited` by waiting though it was above.
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
    regret, said = acted + waited, "no threshold loses anything"
    at = int(np.argmax(regret))
    t, lost = float(thresholds[at]), float(regret[at])
    if against == "monotone":
        worst = worst_threshold(gamma)
        t, lost, said = worst.at, worst.loss, str(worst)
    elif lost >= _NOTHING:
        said = f"act when p {'>' if at % 2 else '≥'} {t:.3g}: {lost:.3g} lost for each decision"
    return [
        {"mark": "regret", "threshold": thresholds, "acted": acted, "waited": waited, "regret": regret},
        {"mark": "worst" if lost >= _NOTHING else "", "threshold": t, "regret": lost},
    ], said


def _lost(t: Floats, low: Floats, high: Floats, mass: Floats, mean: Floats, side: Any) -> Floats:
    """Σ w (q − t) over the intervals from `low` to `high` in which t lies: the limit from this side, for each t."""
    total = np.zeros(len(t))
    for edges, sign in ((low, 1.0), (high, -1.0)):
        order = np.argsort(edges, kind="stable")
        weights = np.concatenate(([0.0], np.cumsum(mass[order])))
        moments = np.concatenate(([0.0], np.cumsum((mass * mean)[order])))
        upto = np.searchsorted(edges[order], t, side=side)
        total += sign * (moments[upto] - t * weights[upto])
    return total


DECISION = (
    "To act above t brings 1 − t if the event occurs and −t if not, divided by max(t, 1 − t). Up: how much more each "
    "decision would have brought with a better threshold, or the mean outcome of each level. Dark: by acting in vain;"
    " light: by not acting. Point: the worst threshold, not tested against chance."
)


@with_ours
def decision_table(
    p: Gammas | ArrayLike,
    y: ArrayLike | None = None,
    *,
    against: Against = "monotone",
    **rows: Unpack[Rows],
) -> pd.DataFrame:
    """The regret of acting at each threshold, by label; parameters as in `plot_decision`."""

    def make(_: Any, gamma: JointDistribution) -> tuple[str, list[dict[str, Any]]]:
        parts, said = decisions_of(gamma, against=against)
        return said, parts

    return table_of(gammas_of("decision", p, y, **rows), make)


@with_ours
def plot_decision(
    p: Gammas | ArrayLike,
    y: ArrayLike | None = None,
    *,
    against: Against = "monotone",
    **look: Unpack[Drawn],
) -> Figure:
    """The regret of acting when the prediction is above a threshold, for each threshold, with the worst one named.

    Parameters
    ----------
    p, y
        As in `reliability_plot.plot_reliability`.
    against : {"levels", "monotone"}, default "monotone"
        The alternative: the best monotone recalibration, which is the best other threshold, as in `onlinecal measure`.
        Or the mean outcome of each level: the swap regret of the threshold, with V-CDL as its supremum. That is noise
        where levels have few samples.
    **look
        `weights` and labels as there; see `Look`.

    Examples
    --------
    >>> " ".join(plot_decision([0.45] * 40, [0, 1, 1, 1] * 10).axes[0].get_title().split())
    'act when p > 0.45: you lose 0.545 per decision; predictions of 0.45 (1 of all) are too low by 0.3'
    """
    rows, how = apart(look)
    return of_gammas(
        decision_table(p, y, against=against, **rows), _draw_decisions, DECISION, panel=(3.3, 2.9),
        labels=("threshold t", "regret for each decision"), **how,
    )  # fmt: skip


def _draw_decisions(axis: Any, rows: pd.DataFrame) -> None:
    every, blue = rows[rows["mark"] == "regret"], look(0)["color"]
    thresholds, regrets = every["threshold"].to_numpy(), every["regret"].to_numpy()
    t, regret = thinned(thresholds, regrets)
    acted = every["acted"].to_numpy()
    acted = acted if len(t) == len(thresholds) else np.interp(t, thresholds, acted)
    axis.fill_between(t, 0.0, acted, color=blue, alpha=0.55, linewidth=0)
    axis.fill_between(t, acted, regret, color=blue, alpha=0.2, linewidth=0)
    axis.plot(t, regret, color=blue, linewidth=1.2, zorder=2.0, solid_joinstyle="round")
    worst = rows.iloc[-1]
    top = float(worst["regret"])
    if top >= _NOTHING:
        axis.vlines(worst["threshold"], 0.0, top, color=GREY, linewidth=0.8, zorder=1.0)
        axis.plot(
            worst["threshold"], top, "o", color=look(1)["color"], markersize=5.5, zorder=3.1, clip_on=False
        )
    # Rare events, and almost certain ones, have nothing to lose at most thresholds.
    seen = thresholds[regrets >= max(0.02 * top, _NOTHING)]
    axis.set_xlim(*spans(seen)[0] if len(seen) else (0.0, 1.0))
    axis.set_ylim(0.0, 1.15 * top if top >= _NOTHING else 1.0)
    ticks(axis.xaxis, axis.yaxis)


def elementary_scores(gamma: JointDistribution, thresholds: Floats, *, above: bool) -> Floats:
    """Σ w_i [ q_i (1 − t) 1(v_i ≤ t) + (1 − q_i) t 1(v_i > t) ]; unless `above` with < and ≥ in place of ≤ and >."""
    ones = np.concatenate(([0.0], np.cumsum(gamma.mass * gamma.means)))
    zeros = np.concatenate(([0.0], np.cumsum(gamma.mass * (1.0 - gamma.means))))
    upto = np.searchsorted(gamma.predictions, thresholds, side="right" if above else "left")
    return np.asarray((1.0 - thresholds) * ones[upto] + thresholds * (zeros[-1] - zeros[upto]))


def murphy_of(several: Mapping[str, JointDistribution]) -> list[dict[str, Any]]:
    """The mean elementary scores of several Γ: exact, for between two levels a score is a straight line.

    Thresholds stand twice, with both limits.
    """
    levels = np.unique(np.concatenate([[0.0, 1.0], *(gamma.predictions for gamma in several.values())]))
    return [
        {
            "mark": "score", "forecaster": label, "place": i, "threshold": np.repeat(levels, 2),
            "score": np.stack(
                [elementary_scores(gamma, levels, above=above) for above in (False, True)], axis=1
            ).ravel(),
        }
        for i, (label, gamma) in enumerate(several.items())
    ]  # fmt: skip


def difference_of(
    first: ArrayLike, second: ArrayLike, y: ArrayLike, level: float, **rows: Unpack[Rows]
) -> dict[str, Any]:
    """Score of the second of two forecasts less that of the first; an interval for its expectation by Student's t.

    Samples with weights count as (Σ w)²/Σ w² of equal ones (Kish 1965).
    """
    from scipy.special import stdtrit

    gammas = [JointDistribution.from_samples(p, y, **rows) for p in (first, second)]
    (a, out, *given), (b, *_) = (samples(p, y, **rows) for p in (first, second))
    w = given[0] if given else np.ones(len(out))
    n = float(w.sum() ** 2 / (w**2).sum())
    w = w * (n / w.sum())
    t = np.linspace(0.0, 1.0, POINTS)
    mean = elementary_scores(gammas[1], t, above=True) - elementary_scores(gammas[0], t, above=True)
    # A sample counts at t if t lies between its two predictions: + where the first is better.
    low, high = np.minimum(a, b), np.maximum(a, b)
    squares = np.zeros(POINTS)
    for value, stake in ((1.0, (1.0 - t) ** 2), (0.0, t**2)):
        for edge, sign in ((low, 1.0), (high, -1.0)):
            order = np.flatnonzero(out == value)[np.argsort(edge[out == value], kind="stable")]
            sums = np.concatenate(([0.0], np.cumsum(w[order])))
            squares += sign * stake * sums[np.searchsorted(edge[order], t, side="right")]
    # A sample of either outcome is added in favour of either forecast: some may not have been seen.
    added = 2.0 * ((1.0 - t) ** 2 + t**2)
    variance = np.maximum(squares + added - n * mean**2, added) / n
    half = float(stdtrit(max(n - 1.0, 1.0), 0.5 * (1.0 + level))) * np.sqrt(variance / n)
    return {"mark": "difference", "threshold": t, "score": mean, "lower": mean - half, "upper": mean + half}


MURPHY = (
    "Elementary score at t: 1 − t for an event with a prediction that is not above t, t for another with one that is."
    " Lower is better; lower at every t is better by every proper score. The Brier score is twice the area below."
)
DIFFERENCE = (
    "Mean elementary score of the second forecast less that of the first; above 0 the first is better. Score: 1 − t "
    "for an event with a prediction that is not above t, t for another with one that is. Band: an approximate "
    "interval for the expected difference, point by point (Student's t, four samples added)."
)


@with_ours
def murphy_table(
    p: Gammas | ArrayLike | Mapping[str, ArrayLike],
    y: ArrayLike | None = None,
    *,
    difference: bool = False,
    band: float = 0.95,
    **rows: Unpack[Rows],
) -> pd.DataFrame:
    """Elementary scores at thresholds, or their difference; parameters as in `plot_murphy`."""
    level = number("murphy", "band", band, 0.0, 1.0)
    if not difference:
        return stacked(murphy_of(gammas_of("murphy", p, y, **rows)))
    if not (isinstance(p, Mapping) and y is not None and len(p) == 2):
        many = len(p) if isinstance(p, Mapping) and p else 1
        raise InvalidParameter(
            f"murphy: a difference of {many} forecasts{'' if y is not None else ' without y'}; expected two in a "
            "mapping, and the outcomes y that they share"
        )
    (one, first), (other, second) = cast(Mapping[str, Any], p).items()
    found = difference_of(first, second, y, level, **rows)
    return stacked([found | {"place": 0, "forecaster": f"{other} less {one}", "level": level}])


@with_ours
def plot_murphy(
    p: Gammas | ArrayLike | Mapping[str, ArrayLike],
    y: ArrayLike | None = None,
    *,
    difference: bool = False,
    band: float = 0.95,
    **look: Unpack[Drawn],
) -> Figure:
    """The mean elementary score at each threshold, or how two forecasts differ in it.

    The elementary score at t is 1 − t where the event occurs and the prediction is not above t. It is t where the event
    does not occur and the prediction is above t, and 0 elsewhere. Every proper score is a mixture of these. A forecast
    that has less at every t is better by all of them.

    Source: Ehm, Gneiting, Jordan, Krüger 2016.

    Deviations: The interval adds four samples; theirs is the mean ± normal quantiles.

    Parameters
    ----------
    p, y
        As in `reliability_plot.plot_reliability`.
    difference : bool, default False
        Of two forecasts of the same y: the score of the second less that of the first, with an interval.
    band : float, default 0.95
        Of that interval, point by point; approximate.
    **look
        `weights` and labels as there; see `Look`.

    Examples
    --------
    >>> plot_murphy({"first": [0.2, 0.7], "second": [0.4, 0.4]}, [0, 1]).axes[0].get_xlabel()
    'threshold t'
    """
    rows, how = apart(look)
    table = murphy_table(p, y, difference=difference, band=band, **rows)
    names = table["forecaster"].unique()
    return facets(
        table, _draw_murphy, DIFFERENCE if difference else MURPHY, panel=(3.8, 3.0),
        labels=("threshold t", "difference of elementary scores" if difference else "mean elementary score"),
        facts=f"{names[0]} · band of {band:.0%}" if difference else "",
        names="forecaster" if len(names) > 1 else "", **how,
    )  # fmt: skip


def _draw_murphy(axis: Any, rows: pd.DataFrame) -> None:
    several = rows["place"].nunique() > 1
    for place, mine in rows.groupby("place"):
        own = look(int(place)) | ({"markevery": 0.1} if several else {"marker": ""})
        axis.plot(*thinned(mine["threshold"].to_numpy(), mine["score"].to_numpy()), **own)
        if mine["mark"].iloc[0] == "difference":
            axis.fill_between(
                mine["threshold"], mine["lower"], mine["upper"], color=own["color"], alpha=0.2, linewidth=0
            )
    if rows["mark"].iloc[0] == "score":
        axis.set_ylim(0.0, 1.08 * max(float(rows["score"].max()), 1e-9))
    else:
        axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    axis.set_xlim(0.0, 1.0)
    ticks(axis.yaxis)
