"""Pictures of Γ, one panel for each: whose Γ it is, the panels and their figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution, check_gamma
from onlinecal.forecasts.table import Evaluation
from onlinecal.report.style import across, finish, given_axes, handles, inches, page, wrapped

#: Γ, or what `evaluate` made of it
Known = JointDistribution | Evaluation
#: or several by what stands above each of them; of samples a pair (p, y)
Gammas = Known | Mapping[str, Known | tuple[ArrayLike, ArrayLike]]
T = TypeVar("T")


def gammas_of(where: str, p: Gammas | ArrayLike, y: ArrayLike | None) -> dict[str, JointDistribution]:
    """Label → Γ, of samples, of a Γ, of an `Evaluation`, or of several by label.

    Raises
    ------
    InvalidData
        Samples that are no forecasts and outcomes, or something else than Γ.
    InvalidParameter
        y beside a Γ; nothing to draw.
    """
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


def panels(
    drawn: Sequence[T],
    draw: Callable[[Axes, Axes | None, T], None],
    headings: Sequence[str],
    caption: str,
    *,
    axes: Any,
    title: str,
    dark: bool,
    width: Any,
    high: float,
    lower: float = 0.0,
    names: Mapping[str, int] = MappingProxyType({}),
) -> NDArray[Any]:
    """One panel for each of what is drawn, in these axes or in a new figure with title and caption.

    Parameters
    ----------
    drawn : sequence
    draw : callable
        (axes, those below or None, what is drawn of one).
    headings : sequence of str
    caption : str
    axes, title, dark, width
        As in `reliability_plot.plot_reliability`.
    high : float
        Height of a panel for each inch of its width.
    lower : float
        Height of other axes below each of them, as a part of theirs; 0 for none. In axes that are given they hang
        below these.
    names : mapping, optional
        What stands in the legend of a new figure: name → how it looks.

    Returns
    -------
    (n,) array of Axes
    """
    if axes is not None:
        given = given_axes(axes, (len(drawn),), "one for each", title)
        for axis, one, heading in zip(given, drawn, headings, strict=True):
            hung = axis.inset_axes((0.0, -0.06 - lower, 1.0, lower), sharex=axis) if lower else None
            draw(axis, hung, one)
            axis.set_title(wrapped(heading, 3.4, 9), fontsize=9)
        return given
    asked = inches(width, 0.0) or None
    columns = across(min(3, len(drawn)), asked)
    wide = asked or 1.0 + 3.9 * columns
    rows = -(-len(drawn) // columns)
    side = wide / columns - 0.65
    heads = max(wrapped(heading, side, 9).count("\n") for heading in headings)
    each = side * high * (1.0 + lower) + 0.75 + 0.12 * bool(lower) + 0.16 * heads
    with page(dark):
        fig = Figure(figsize=(wide, rows * each), layout="constrained", dpi=150)
        grid = fig.add_gridspec(rows, columns)
        found = []
        for i, (one, heading) in enumerate(zip(drawn, headings, strict=True)):
            if lower:
                pair = grid[divmod(i, columns)].subgridspec(2, 1, height_ratios=[1.0, lower], hspace=0.0)
                axis = fig.add_subplot(pair[0])
                draw(axis, fig.add_subplot(pair[1], sharex=axis), one)
            else:
                axis = fig.add_subplot(grid[divmod(i, columns)])
                draw(axis, None, one)
            axis.set_title(wrapped(heading, side, 9), fontsize=9)
            found.append(axis)
        finish(fig, title, caption, handles(names, markersize=4, linewidth=1.5))
    return np.array(found, dtype=object)
