"""The table of all measures of one list of forecasts."""

from __future__ import annotations

import html
import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onlinecal.core.errors import UnknownName
from onlinecal.core.joint import JointDistribution
from onlinecal.measures.base import Bracket, Measure, ends

if TYPE_CHECKING:
    import pandas as pd

Value = float | Bracket

#: columns of a terminal, in which notes are broken
WIDTH = 80


@dataclass(frozen=True)
class Row:
    """One measure of an evaluation.

    Attributes
    ----------
    name : str
        With the options that were set.
    value : float or Bracket
    measure : Measure
        Its record.
    interval : (float, float) or None
        Of the measure on what the samples were drawn from.
    interval_by : str
        How the interval was made; or "none: " and why.
    if_calibrated : float or None
        Mean of the measure (of a bracket's upper end) when every outcome is drawn with the probability forecast.
    p_value : float or None
        How often such outcomes give a value at least as large.
    p_large_n : float or None
        The limit of that for large n, where the measure has one in closed form (`Measure.tail`).
    """

    name: str
    value: Value
    measure: Measure
    interval: tuple[float, float] | None = None
    interval_by: str = ""
    if_calibrated: float | None = None
    p_value: float | None = None
    p_large_n: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end; the value twice where it is exact."""
        return ends(self.value)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All measures of a list of forecasts: prints as a table, shows as HTML in a notebook, `table()` is a DataFrame.

    Attributes
    ----------
    gamma : JointDistribution
    rows : tuple of Row
    intervals : str
        The meaning of the intervals, in a sentence; "" without any.
    refused : tuple of str
        Measures of which nothing is proved when predictions move, where they were moved.
    moved : (int, float), optional
        m and δ, where predictions were moved to the nearest i/m, by δ on average.
    """

    gamma: JointDistribution
    rows: tuple[Row, ...]
    intervals: str = ""
    refused: tuple[str, ...] = ()
    moved: tuple[int, float] | None = None

    def __getitem__(self, name: str) -> Value:
        """The value of a measure by its name in the table."""
        for row in self.rows:
            if row.name == name:
                return row.value
        raise UnknownName.of("measure", name, [row.name for row in self.rows])

    def table(self) -> pd.DataFrame:
        """One row per measure, indexed by name.

        `value` (NaN of a bracket), `lower` and `upper`; with intervals `interval_lower`, `interval_upper` and
        `interval_by`; with a reference `if_calibrated`, `p_value` and `p_large_n`; then `symbol`, `source` and
        `decisions`.
        """
        import pandas as pd

        columns: dict[str, list[Any]] = {
            "value": [lower if lower == upper else math.nan for lower, upper in (r.ends for r in self.rows)],
            "lower": [r.ends[0] for r in self.rows],
            "upper": [r.ends[1] for r in self.rows],
        }
        if self.intervals:
            columns["interval_lower"] = [math.nan if r.interval is None else r.interval[0] for r in self.rows]
            columns["interval_upper"] = [math.nan if r.interval is None else r.interval[1] for r in self.rows]
            columns["interval_by"] = [r.interval_by for r in self.rows]
        if any(r.if_calibrated is not None for r in self.rows):
            columns["if_calibrated"] = [r.if_calibrated for r in self.rows]
            columns["p_value"] = [r.p_value for r in self.rows]
            columns["p_large_n"] = [math.nan if r.p_large_n is None else r.p_large_n for r in self.rows]
        for name in ("symbol", "source", "decisions"):
            columns[name] = [getattr(r.measure, name) for r in self.rows]
        return pd.DataFrame(columns, index=pd.Index([r.name for r in self.rows], name="measure"))

    @property
    def notes(self) -> list[str]:
        """The lines below the table: the meaning of intervals, why some are missing, p-values in closed form."""
        without: dict[str, list[str]] = {}
        for row in self.rows:
            if self.intervals and row.interval is None:
                without.setdefault(row.interval_by.removeprefix("none: "), []).append(row.name)
        reasons = [f"no interval for {', '.join(names)}: {why}" for why, names in without.items()]
        large = [f"{r.name} {r.p_large_n:.3g}" for r in self.rows if r.p_large_n is not None]
        limits = [f"p for large n: {', '.join(large)}"] * bool(large)
        grid = []
        if self.moved is not None:
            steps, distance = self.moved
            grid = [
                f"predictions were moved to the nearest i/{steps}, by {distance:.2g} on average: brackets are for "
                "what they were before, and outcomes of the reference are drawn at the moved ones"
            ]
        if self.refused:
            grid.append(
                f"not given: {', '.join(self.refused)}, of which nothing is proved when predictions are moved"
            )
        return [*[self.intervals] * bool(self.intervals and self.rows), *reasons, *limits, *grid]

    def _lines(self) -> list[list[str]]:
        """The cells of the table, the headings first."""
        lines = [["measure", "value"]]
        reference = any(r.if_calibrated is not None for r in self.rows)
        lines[0] += (
            ["interval"] * bool(self.intervals)
            + ["if calibrated", "p"] * reference
            + ["bounds for decision makers"]
        )
        for row in self.rows:
            line = [row.name, _text(*row.ends)]
            if self.intervals:
                line.append("none" if row.interval is None else "[{:.4g}, {:.4g}]".format(*row.interval))
            if reference:
                line.append(f"{row.if_calibrated:.4g}")
                line.append(f"{row.p_value:.3g}")
            lines.append([*line, row.measure.decisions])
        return lines

    def __str__(self) -> str:
        body = aligned(self._lines())
        notes = [line for note in self.notes for line in textwrap.wrap(note, WIDTH, subsequent_indent="  ")]
        return "\n".join([repr(self.gamma), *body, *notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        head, *body = (
            "".join(f"<t{tag}>{html.escape(cell)}</t{tag}>" for cell in line)
            for tag, line in zip("h" + "d" * len(self.rows), self._lines(), strict=True)
        )
        rows = "".join(f"<tr>{line}</tr>" for line in body)
        about = html.escape(repr(self.gamma))
        return f"<p>{about}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def aligned(rows: list[list[str]]) -> list[str]:
    """Lines of cells under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _text(lower: float, upper: float) -> str:
    low, high = f"{lower:.4g}", f"{upper:.4g}"
    return low if low == high else f"[{low}, {high}]"
