"""Growth exponents as coloured tables: first what is drawn, as plain data, then the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from onlinecal.errors import InvalidParameter
from onlinecal.plots import typeset
from onlinecal.rates import known_rates
from onlinecal.study.curves import Study

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Heat:
    """A table of exponents as it is drawn: forecasters down, natures across; NaN where there is none."""

    measure: str
    forecasters: list[str]
    natures: list[str]
    values: Floats
    halves: Floats


def heats(study: Study, measures: Sequence[str]) -> list[Heat]:
    """What `heat_map` draws: a table for each measure, with the half-widths of the 95 % intervals."""
    result = []
    for measure in measures:
        values = np.full((len(study.forecasters), len(study.natures)), np.nan)
        halves = values.copy()
        for curve in study.curves([measure]):
            exponent = curve.exponent()
            if exponent is not None:
                at = study.forecasters.index(curve.forecaster), study.natures.index(curve.nature)
                values[at], halves[at] = exponent.value, (exponent.high - exponent.low) / 2
        result.append(Heat(measure, study.forecasters, study.natures, values, halves))
    return result


def heat_map(study: Study, measures: Sequence[str], *, title: str = "") -> Figure:
    """The exponents of a study as coloured tables, one for each measure.

    Parameters
    ----------
    study : Study
    measures : sequence of str
        At least one column.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
        Each cell says the fitted exponent and the half-width of its 95 % interval; a dash where the total is 0 or has
        too few horizons.
    """
    tables = heats(study, measures)
    if not tables:
        raise InvalidParameter("no measures to draw; expected at least one")
    columns = min(2, len(tables))
    rows = -(-len(tables) // columns)
    wide, high = len(study.natures), len(study.forecasters)
    fig = Figure(
        figsize=(1.6 + columns * (1.3 + 0.72 * wide), 1.0 + rows * (1.0 + 0.46 * high)),
        layout="constrained",
        dpi=150,
    )
    axes = fig.subplots(rows, columns, squeeze=False)
    for axis in axes.flat[len(tables) :]:
        axis.set_visible(False)
    for axis, heat in zip(axes.flat, tables, strict=False):
        image = axis.imshow(heat.values, vmin=0.0, vmax=1.0, cmap="YlOrRd", aspect="auto")
        for (i, j), value in np.ndenumerate(heat.values):
            text = "–" if np.isnan(value) else f"{value:.2f}\n±{heat.halves[i, j]:.2f}"
            axis.text(
                j, i, text, ha="center", va="center", fontsize=6.5, color="white" if value > 0.65 else "black"
            )
        axis.set_xticks(range(wide), heat.natures, rotation=30, ha="right", fontsize=7.5)
        axis.set_yticks(range(high), heat.forecasters, fontsize=7.5)
        rates = known_rates(heat.measure)
        axis.set_title(heat.measure + (f"   best known: {typeset(rates)}" if rates else ""), fontsize=9)
        axis.tick_params(length=0)
        for spine in axis.spines.values():
            spine.set_visible(False)
    fig.colorbar(image, ax=axes, shrink=0.6, label=typeset("exponent α of total ∝ T^α"))
    if title:
        fig.suptitle(title, fontsize=12)
    horizons = sorted({cell.horizon for cell in study.cells})
    runs = max(next(iter(cell.totals.values())).shape[1] for cell in study.cells)
    fig.supxlabel(
        f"Fresh games, T = {horizons[0]:,} … {horizons[-1]:,}, {runs} runs; ± half of the 95 % interval.",
        fontsize=7.5,
        color="#444444",
    )
    return fig
