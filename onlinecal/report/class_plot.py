"""Pictures of forecasts of K classes: a reliability diagram for each, and arrows in the triangle of three."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrow
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats
from onlinecal.core.classes import ClassDistribution
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.samples import with_ours
from onlinecal.growth.words import literal
from onlinecal.logs.classes import ClassEvaluation
from onlinecal.report.facets import Look, by_mark
from onlinecal.report.gammas import MOST, of_gammas, table_of
from onlinecal.report.reliability_plot import Kind, plot_reliability, reliability_table
from onlinecal.report.style import GREY, ink, look

TRIANGLE = (
    "Arrow: from the forecast of a level, or of those near a point of a grid, to the shares of what happened. Width: "
    "its share of the weight. Dot alone: no error. Corner: that class is certain; lines: probabilities in fifths. Long "
    "thin arrows may be chance."
)
#: classes that are drawn; those that happen most
PANELS = 9
#: levels up to which each is a point, and nothing is smoothed
SINGLE = 20
#: of the grid to which more than `MOST` levels are moved, in steps
STEPS = 10
#: the widest arrow, in sides of the triangle: of few, and of many over the root of their number
WIDEST, TOGETHER = 0.03, 0.1
#: heads of arrows: in widths, at least in sides, and the most of the length of an arrow
HEAD, LEAST, PART = 2.2, 0.014, 0.6
#: the corners of the first, second and third class
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


def _gamma(where: str, p: Any, y: Any, labels: Any) -> ClassDistribution:
    """Γ, or that of samples."""
    if isinstance(p, ClassDistribution):
        if y is not None or labels is not None:
            raise InvalidData(f"{where}: y or labels beside a ClassDistribution, which holds them")
        return p
    if y is None:
        raise InvalidData(f"{where}: y is missing; expected the outcomes of the predictions p")
    return ClassDistribution.from_samples(p, y, labels=labels)


def events_of(gamma: ClassDistribution, own: Any = None) -> tuple[dict[str, Any], Kind]:
    """Γ of the classes that are drawn, or what an evaluation has of their events, and how."""
    most = np.argsort(-gamma.base_rates, kind="stable")[:PANELS]
    events = {str(gamma.labels[k]): gamma.classwise(gamma.labels[k]) for k in sorted(most)}
    few = all(each.levels <= SINGLE for each in events.values())
    found = events if own is None else dict(zip(events, (own[k] for k in sorted(most)), strict=True))
    return found, "points" if few else "smooth"


def _events(p: Any, y: Any, labels: Any) -> tuple[dict[str, Any], Kind, int]:
    """The same of what was given, and the number of all classes."""
    own = p if isinstance(p, ClassEvaluation) and y is None and labels is None else None
    gamma = own.gamma if own else _gamma("classes", p, y, labels)
    return *events_of(gamma, own and own.events), gamma.classes


@with_ours
def classes_table(
    p: ArrayLike | ClassDistribution | ClassEvaluation,
    y: ArrayLike | None = None,
    *,
    labels: Any = None,
    kind: Kind | None = None,
) -> pd.DataFrame:
    """The points or curves of the reliability diagrams of classes; parameters as in `plot_classes`."""
    found, default, _ = _events(p, y, labels)
    return reliability_table(found, kind=kind or default)


@with_ours
def plot_classes(
    p: ArrayLike | ClassDistribution | ClassEvaluation,
    y: ArrayLike | None = None,
    *,
    labels: Any = None,
    kind: Kind | None = None,
    **look: Unpack[Look],
) -> Figure:
    """A reliability diagram of each class against the rest, of the nine that happen most.

    Parameters
    ----------
    p : (n, K) array_like, ClassDistribution or ClassEvaluation
        A row of probabilities for each sample; or Γ, without y. Of what `evaluate_classes` returns, bands are by
        weights and clusters.
    y : (n,) array_like
        The column of what happened, or its label.
    labels : sequence of K, optional
        As in `ClassDistribution.from_samples`.
    kind : {"points", "smooth", "corp"}, optional
        As in `plot_reliability`. Default: "points" where no class has more than 20 levels, else "smooth".
    **look
        See `Look`.
    """
    found, default, many = _events(p, y, labels)
    if many > PANELS:
        drawn = f"the {PANELS} of {many} classes that happen most"
        look["title"] = ", ".join(filter(None, (look.get("title", ""), drawn)))
    return plot_reliability(found, kind=kind or default, **look)


@with_ours
def triangle_table(
    p: ArrayLike | ClassDistribution, y: ArrayLike | None = None, *, labels: Any = None
) -> pd.DataFrame:
    """The arrows of `plot_triangle`: forecast and shares of the three classes, and the share of the weight."""
    gamma = _gamma("triangle", p, y, labels)
    if gamma.classes != 3:
        raise InvalidParameter(f"triangle: {gamma.classes} classes; expected 3")

    def make(label: Any, gamma: Any) -> tuple[str, Iterable[dict[str, Any]]]:
        v, w, q = gamma.predictions, gamma.mass, gamma.means
        mark = "level"
        if gamma.levels > MOST:
            mark, place = "cell", _nearest(v)
            _, place = np.unique(place, axis=0, return_inverse=True)
            mass = np.bincount(place, w)
            v, q = (
                np.stack([np.bincount(place, w * each) for each in part.T], axis=1) / mass[:, None]
                for part in (v, q)
            )
            w = mass
        columns = {f"forecast {k}": v[:, k] for k in range(3)} | {f"share {k}": q[:, k] for k in range(3)}
        names = {f"class {k}": str(label) for k, label in enumerate(gamma.labels)}
        error = 0.5 * float(w @ np.abs(q - v).sum(axis=1))
        named = "ece" if mark == "level" else "ece of cells"
        return f"{named} = {error:.4g}", [{"mark": mark, **columns, "share": w, **names}]

    return table_of({"": gamma}, make)


def _nearest(v: Floats) -> Any:
    """The nearest point of the grid, in steps: rounded down, and the largest rests one up."""
    low = np.floor(v * STEPS + 1e-9)
    rest = v * STEPS - low
    left = np.rint(STEPS - low.sum(axis=1)).astype(np.int64)
    order = np.argsort(np.argsort(-rest, axis=1, kind="stable"), axis=1)
    return (low + (order < left[:, None])).astype(np.int64)


@with_ours
def plot_triangle(
    p: ArrayLike | ClassDistribution, y: ArrayLike | None = None, *, labels: Any = None, **look: Unpack[Look]
) -> Figure:
    """Arrows from forecasts of three classes to the shares of what happened, in the triangle of probabilities.

    Parameters
    ----------
    p, y, labels
        As in `plot_classes`; K = 3. More than 200 levels are put together at the points of a grid of tenths.
    **look
        See `Look`.
    """
    table = triangle_table(p, y, labels=labels)
    return of_gammas(table, _draw, TRIANGLE, panel=(3.8, 3.4), **look)


def _draw(axis: Any, part: pd.DataFrame) -> None:
    axis.set_aspect("equal")
    axis.set_axis_off()
    axis.set(xlim=(-0.12, 1.12), ylim=(-0.12, 1.0))
    for step in np.arange(1, 5) / 5:
        for k in range(3):
            one, other = (CORNERS[j] for j in range(3) if j != k)
            ends = np.stack([one + step * (CORNERS[k] - one), other + step * (CORNERS[k] - other)])
            axis.plot(*ends.T, color=GREY, alpha=0.4, linewidth=0.5, zorder=1.0)
    axis.plot(*CORNERS[[0, 1, 2, 0]].T, color=ink(), linewidth=0.9, zorder=1.1)
    first = part.iloc[0]
    for k, (x, y) in enumerate(CORNERS):
        below = k < 2
        axis.text(
            x, y + (-0.03 if below else 0.03), literal(first[f"class {k}"]), ha="center", fontsize=9,
            va="top" if below else "bottom",
        )  # fmt: skip
    (rows,) = by_mark(part).values()
    colour, shares = look(0)["color"], rows["share"].to_numpy()
    v, q = (rows[[f"{name} {k}" for k in range(3)]].to_numpy() @ CORNERS for name in ("forecast", "share"))
    widths = min(WIDEST, TOGETHER / len(rows) ** 0.5) * shares / shares.max()
    axis.plot(*v.T, "o", color=colour, markersize=2.0, zorder=2.2)
    # The light ones are drawn last, over the heavy ones.
    for i in np.argsort(-shares, kind="stable"):
        length, head = float(np.hypot(*(q[i] - v[i]))), max(HEAD * widths[i], LEAST)
        if length > 0.0:
            axis.add_patch(
                FancyArrow(
                    *v[i], *(q[i] - v[i]), width=widths[i], head_width=head, head_length=min(head, PART * length),
                    length_includes_head=True, linewidth=0.4, edgecolor=axis.get_facecolor(), facecolor=colour,
                    alpha=0.85, zorder=2.1,
                )
            )  # fmt: skip
