"""Growth exponents as coloured tables: first what is drawn, as plain data, then the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import fixed
from onlinecal.growth import WIDE, simultaneous
from onlinecal.growth.rates import known_rates
from onlinecal.growth.words import BEYOND, NONE, literal
from onlinecal.report.curves import Study, left_out
from onlinecal.report.frames import counted
from onlinecal.report.style import (
    across,
    contrast,
    finish,
    given_axes,
    inches,
    letters,
    page,
    paper_colour,
    shortened,
    typeset,
    wrapped,
)

Floats = NDArray[np.float64]


#: cells whose interval is wider than ± this are faded
FADED = 0.15
#: of the labels of forecasters and of natures that do not lean, in inches at most; and of a line of them
ROOM, LINE = 1.7, 0.125
#: letters of a label that may lean
LEANING = 24
_MARKS = {"above proven": " ▲", "above O": " ▲", "below Ω": " ▽"}


@dataclass(frozen=True)
class Heat:
    """A table of exponents as it is drawn: forecasters down, natures across.

    Attributes
    ----------
    column : Column
    forecasters, natures : list of str
    values, halves : (forecasters, natures) floats
        Mean growth exponents over the T that were played, and half of their intervals, which hold all together with
        95 %; NaN where there is none or the interval tells little, and the halves also where the totals follow no power
        law.
    texts : list of list of str
        What stands in the cells: ▲ where the total grows faster than proved or known, ▽ where slower than known
        (`Curve.against_rates`).
    """

    column: Column
    forecasters: list[str]
    natures: list[str]
    values: Floats
    halves: Floats
    texts: list[list[str]]


def heats(study: Study, measures: Sequence[str]) -> list[Heat]:
    """What `heat_map` draws: a table for each measure."""
    result = []
    for measure in measures:
        values = np.full((len(study.forecasters), len(study.natures)), np.nan)
        halves = values.copy()
        texts = [[""] * len(study.natures) for _ in study.forecasters]
        curves = study.curves([measure])
        for curve in curves:
            growth = curve.exponent(simultaneous(len(curves)))
            i, j = study.forecasters.index(curve.forecaster), study.natures.index(curve.nature)
            if growth is None:
                texts[i][j] = "–"
                continue
            if growth.bent:
                values[i, j], texts[i][j] = growth.value, growth.bow.replace("…", "…\n")
            elif growth.clear:
                values[i, j], halves[i, j] = growth.value, (growth.upper - growth.lower) / 2
                texts[i][j] = f"{fixed(growth.value)}\n±{halves[i, j]:.2f}"
            else:
                texts[i][j] = "?"
            texts[i][j] += _MARKS.get(curve.against_rates(simultaneous(len(curves))), "")
        result.append(Heat(study.columns[measure], study.forecasters, study.natures, values, halves, texts))
    return result


def heat_map(
    study: Study,
    measures: Sequence[str],
    *,
    axes: Any = None,
    title: str = "",
    dark: bool = False,
    width: Any = None,
) -> NDArray[Any]:
    """The exponents of a study as coloured tables, one for each measure.

    Parameters
    ----------
    study : Study
    measures : sequence of str
        At least one column.
    axes : sequence of matplotlib Axes, optional
        Where to draw, one for each measure. Default: those of a new figure, which also gets the title, a bar of the
        colours and, below, what the cells say; to others' figures `caption` says that.
    title : str, optional
        Of a new figure.
    dark, width
        As in `curve_plot.plot_curves`.

    Returns
    -------
    (measures,) array of Axes
        Their figure is ``axes[0].figure``. Each cell says the mean growth exponent over the T that were played and half
        of its interval, or, where the totals follow no power law, the slopes over the first and the last half of these
        T; a question mark where the interval is wider than 1, and a dash where there is none.

    Raises
    ------
    InvalidParameter
        No measures; another number of axes; a title for axes that are given.
    """
    tables = heats(study, measures)
    if not tables:
        raise InvalidParameter("no measures to draw; expected at least one")
    if axes is not None:
        panels = given_axes(axes, (len(tables),), "one for each measure", title)
        for axis, heat in zip(panels, tables, strict=True):
            _draw(axis, heat)
        return panels
    asked = inches(width, 0.0) or None
    columns = across(min(2, len(tables)), asked)
    rows = -(-len(tables) // columns)
    wide = len(study.natures)
    side = asked / columns if asked else None
    labels = _Labels.of(tables[0], side)
    with page(dark):
        fig = Figure(
            figsize=(asked or 1.6 + columns * (1.3 + 0.72 * wide), 0.1 + rows * labels.height),
            layout="constrained",
            dpi=150,
        )
        grid = fig.subplots(rows, columns, squeeze=False)
        panels = grid.flatten()[: len(tables)]
        for axis in grid.flat[len(tables) :]:
            axis.set_visible(False)
        for axis, heat in zip(panels, tables, strict=True):
            image = _draw(axis, heat, labels)
        bar = fig.colorbar(image, ax=grid, shrink=0.6)
        bar.set_label("mean growth exponent", fontsize=7.5)  # of one row it is an inch high
        finish(fig, title, _caption(study, tables))
    return panels


def caption(study: Study, measures: Sequence[str]) -> str:
    """What the cells in `heat_map` of these measures say, for a figure of somebody's own."""
    return _caption(study, heats(study, measures))


@dataclass(frozen=True)
class _Labels:
    """What stands beside and below a table, in lines that leave room for its cells.

    Attributes
    ----------
    left, below : list of str
    upright : bool
        Whether those below stand upright, since one is long; else they lean.
    height : float
        Of a table with them, in inches.
    """

    left: list[str]
    below: list[str]
    upright: bool
    height: float

    @classmethod
    def of(cls, heat: Heat, side: float | None = None) -> _Labels:
        """Those of a table in a figure that gives it so many inches across; None for as many as it needs."""
        room = ROOM if side is None else min(ROOM, 0.3 * side)
        cell = 0.72 if side is None else max(LINE, (side - room - 0.7) / len(heat.natures))
        left = [wrapped(label, room, 7.5) for label in heat.forecasters]
        upright = max(map(len, heat.natures)) > LEANING
        # No more lines than there is room for above each other, with letters to spare, as words do not fill a line.
        most = int(cell / LINE) * (letters(ROOM, 7.5) - 4)
        below = [
            wrapped(shortened(label, most), ROOM, 7.5) if upright else literal(label)
            for label in heat.natures
        ]
        lines = 1 + max(label.count("\n") for label in left)
        high = len(left) * max(0.46, LINE * lines + 0.06)
        return cls(left, below, upright, (0.5 + ROOM if upright else 1.0) + high)


def _draw(axis: Any, heat: Heat, labels: _Labels | None = None) -> Any:
    """One table; returns the image, for a bar of colours."""
    image = axis.imshow(heat.values, vmin=0.0, vmax=1.0, cmap="YlOrRd", aspect="auto")
    image.set_alpha(np.where(heat.halves > FADED, 0.35, 1.0))
    ground = paper_colour(axis)
    for (i, j), value in np.ndenumerate(heat.values):
        # A cell without a value has the colour of the page.
        colour = ground if np.isnan(value) else image.cmap(image.norm(value))
        if heat.halves[i, j] > FADED:
            colour = tuple(0.35 * np.array(colour) + 0.65 * np.array(ground))
        ink = max(("white", "black"), key=lambda ink: contrast(ink, colour))
        axis.text(j, i, heat.texts[i][j], ha="center", va="center", fontsize=6.5, color=ink)
    labels = labels or _Labels.of(heat)
    turned: Any = {"rotation": 90, "ha": "center"} if labels.upright else {"rotation": 30, "ha": "right"}
    axis.set_xticks(range(len(heat.natures)), labels.below, fontsize=7.5, **turned)
    axis.set_yticks(range(len(heat.forecasters)), labels.left, fontsize=7.5)
    rates = known_rates(heat.column)
    axis.set_title(
        literal(heat.column.name) + (f"   best known: {typeset(rates)}" if rates else ""), fontsize=9
    )
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)
    return image


def _caption(study: Study, tables: Sequence[Heat]) -> str:
    curves = study.curves([heat.column.name for heat in tables])
    kinds = {
        "fresh games": [c for c in curves if c.independent],
        "games of their own on one recorded stream": [c for c in curves if c.fresh and c.recorded],
        "prefixes of one game": [c for c in curves if not c.fresh],
    }
    played = []
    for kind, mine in kinds.items():
        if mine:
            times = [t for c in mine for t in c.tail.rounds.tolist()]
            span = f"{min(times):,} … {max(times):,}" if min(times) < max(times) else f"{min(times):,}"
            played.append(f"{kind}, T = {span}")
    runs = {c.totals.shape[1] for c in curves}
    text = "; ".join(played) + f"; {counted(runs)}. Exponents are means over these T"
    if any(np.isfinite(heat.halves).any() for heat in tables):
        text += "; ± half of their intervals, which hold in each table all together with 95 %"
    cells = [cell for heat in tables for row in heat.texts for cell in row]
    if any(cell.startswith("?") for cell in cells):
        text += f"; ?: the interval is wider than {WIDE:g}"
    if any(cell.startswith("–") for cell in cells):
        text += f"; –: {NONE}"
    if any((heat.halves > FADED).any() for heat in tables):
        text += f"; faded: the interval is wider than ±{FADED:g}"
    if any("▲" in cell for cell in cells):
        text += "; ▲: faster over these T than the proven bound or the best known rate, beyond doubt"
    if any("▽" in cell for cell in cells):
        text += "; ▽: slower than the known rate against the worst nature, beyond doubt"
    if any("…" in cell for cell in cells):
        text += f"; a…b: no power law, {BEYOND}, but these slopes over the first and the last half of the T"
    return " ".join(filter(None, [text[0].upper() + text[1:] + ".", left_out(curves)]))
