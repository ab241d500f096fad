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
from onlinecal.report.panels import Panels, Picture, joined, pictured
from onlinecal.report.style import contrast, letters, paper_colour, shortened, typeset, wrapped

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
    """A table of exponents: forecasters down, natures across."""

    column: Column
    forecasters: list[str]
    natures: list[str]
    #: mean exponents, and half of their intervals, all together with 95 %; NaN where they tell little
    values: Floats
    halves: Floats
    #: of the cells; ▲ and ▽ as in `Curve.against_rates`
    texts: list[list[str]]


def heats(study: Study, measures: Sequence[str]) -> list[Heat]:
    """The tables of `plot_exponents`."""
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


@pictured
def plot_exponents(study: Study, measures: Sequence[str]) -> Picture:
    """The exponents of a study as coloured tables, one for each measure: forecasters down, natures across.

    Each cell has the mean growth exponent over the T that were played and half of its interval. Where the totals follow
    no power law, it has the slopes over the first and the last half of these T. A question mark stands for an interval
    wider than 1, and a dash for no exponent.

    Parameters
    ----------
    study : Study
    measures : sequence of str
        At least one column.

    Returns
    -------
    (measures,) array of Axes
    """
    tables = heats(study, measures)
    if not tables:
        raise InvalidParameter("no measures to draw; expected at least one")

    def labels_in(side: float) -> _Labels:
        return _Labels.of(tables[0], None if np.isinf(side) else side)

    def height(side: float, columns: int) -> float:
        return 0.1 + -(-len(tables) // columns) * labels_in(side).height

    def build(fig: Figure, columns: int) -> Panels:
        grid = fig.subplots(-(-len(tables) // columns), columns, squeeze=False)
        for axis in grid.flat[len(tables) :]:
            axis.set_visible(False)
        panels: Panels = grid.flatten()[: len(tables)]
        return panels

    def fill(panels: Panels, side: float, new: bool) -> None:
        for axis, heat in zip(panels, tables, strict=True):
            image = _draw(axis, heat, labels_in(side) if new else None)
        if new:
            fig = panels[0].figure
            bar = fig.colorbar(image, ax=fig.axes, shrink=0.6)
            bar.set_label("mean growth exponent", fontsize=7.5)  # of one row it is an inch high

    return Picture(
        (len(tables),), "one for each measure", fill, _caption(study, tables), height, most=2, build=build,
        wide=(1.6, 1.3 + 0.72 * len(study.natures)), gap=0.0, widest=60.0, free=np.inf,
    )  # fmt: skip


@dataclass(frozen=True)
class _Labels:
    """The labels beside and below a table, in lines that leave room for its cells."""

    left: list[str]
    below: list[str]
    upright: bool
    height: float

    @classmethod
    def of(cls, heat: Heat, side: float | None = None) -> _Labels:
        """The labels of a table with `side` inches across; None for as many as it needs."""
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
    cells = [cell for heat in tables for row in heat.texts for cell in row]
    halves = np.concatenate([heat.halves.ravel() for heat in tables])
    asked = {
        "± half of their intervals, which hold in each table all together with 95 %": np.isfinite(halves).any(),
        f"?: the interval is wider than {WIDE:g}": any(cell.startswith("?") for cell in cells),
        f"–: {NONE}": any(cell.startswith("–") for cell in cells),
        f"faded: the interval is wider than ±{FADED:g}": (halves > FADED).any(),
        "▲: faster over these T than the proven bound or the best known rate, beyond doubt":
            any("▲" in cell for cell in cells),
        "▽: slower than the known rate against the worst nature, beyond doubt": any("▽" in cell for cell in cells),
        f"a…b: no power law, {BEYOND}, but these slopes over the first and the last half of the T":
            any("…" in cell for cell in cells),
    }  # fmt: skip
    runs = counted({c.totals.shape[1] for c in curves})
    text = "; ".join(
        [*played, f"{runs}. Exponents are means over these T", *(s for s, true in asked.items() if true)]
    )
    return joined(text[0].upper() + text[1:] + ".", left_out(curves))
