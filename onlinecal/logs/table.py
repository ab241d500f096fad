"""The table of all measures of one list of forecasts."""

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from onlinecal.core.errors import meant
from onlinecal.core.joint import JointDistribution
from onlinecal.logs.witnessed import OPEN
from onlinecal.measures.base import Bracket, Measure, ends

if TYPE_CHECKING:
    import pandas as pd

    from onlinecal.logs.groups import Groups
    from onlinecal.logs.resampling import Resample

Value = float | Bracket

#: columns of a terminal, in which notes are broken
WIDTH = 80


@dataclass(frozen=True)
class Row:
    """One measure of an evaluation."""

    name: str  # with the options that were set
    value: Value
    measure: Measure  # its record
    interval: tuple[float, float] | None = None  # of the population value
    interval_by: str = ""  # how the interval was made; or "none: " and why
    # mean of the measure (of a bracket's upper end) when every outcome is drawn with the probability forecast
    if_calibrated: float | None = None
    p_value: float | None = None  # how often such outcomes give a value at least as large
    p_large_n: float | None = None  # its limit for large n (`Measure.tail`); None where n is not large

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end; the value twice where it is exact."""
        return ends(self.value)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All measures of a list of forecasts, printed as a table, as HTML in a notebook; `table()` is a DataFrame."""

    gamma: JointDistribution
    rows: tuple[Row, ...]
    intervals: str = ""  # the meaning of the intervals, in a sentence; "" without any
    # how many groups of levels draws of calibrated outcomes were measured at, and the mean distance from their means
    grouped: tuple[int, float] | None = None
    resample: "Resample | None" = None  # of samples with weights or clusters
    groups: "Groups | None" = None  # of groups that were named

    def __getitem__(self, name: str) -> Value:
        """The value of a measure by its name in the table."""
        values = {row.name: row.value for row in reversed(self.rows)}
        return values[meant("measure", name, [row.name for row in self.rows])]

    @property
    def _drawn(self) -> bool:
        return any(row.p_value is not None for row in self.rows)

    def table(self) -> "pd.DataFrame":
        """One row per measure, indexed by name.

        Columns: `value` (NaN of a bracket), `lower`, `upper`; `symbol`, `source` and `decisions` at the end. With
        intervals also `interval_lower`, `interval_upper` and `interval_by`. With a reference also `if_calibrated`,
        `p_value` and `p_large_n`.
        """
        import pandas as pd

        def column(cells: Callable[[Row], Any]) -> list[Any]:
            return [math.nan if (cell := cells(row)) is None else cell for row in self.rows]

        columns = {
            "value": column(lambda r: r.ends[0] if r.ends[0] == r.ends[1] else None),
            "lower": column(lambda r: r.ends[0]),
            "upper": column(lambda r: r.ends[1]),
        }
        if self.intervals:
            columns["interval_lower"] = column(lambda r: r.interval and r.interval[0])
            columns["interval_upper"] = column(lambda r: r.interval and r.interval[1])
            columns["interval_by"] = column(lambda r: r.interval_by)
        if self._drawn:
            columns |= {n: column(attrgetter(n)) for n in ("if_calibrated", "p_value", "p_large_n")}
        columns |= {n: column(attrgetter(f"measure.{n}")) for n in ("symbol", "source", "decisions")}
        return pd.DataFrame(columns, index=pd.Index([row.name for row in self.rows], name="measure"))

    @property
    def notes(self) -> list[str]:
        """The lines below the table: the meaning of intervals, why some are missing, p-values in closed form."""
        notes, without = [self.intervals] * bool(self.intervals and self.rows), dict[str, list[str]]()
        for row in self.rows:
            if self.intervals and row.interval is None:
                without.setdefault(row.interval_by.removeprefix("none: "), []).append(row.name)
        opened = dict[str, list[str]]()
        for row in self.rows:
            if OPEN in row.interval_by:
                opened.setdefault(row.interval_by.split(OPEN)[1], []).append(row.name)
        notes += [
            f"upper end open for {', '.join(names)}, their largest value is printed: {why}"
            for why, names in opened.items()
        ]
        notes += [f"no interval for {', '.join(names)}: {why}" for why, names in without.items()]
        large = [f"{r.name} {r.p_large_n:.3g}" for r in self.rows if r.p_large_n is not None]
        notes += [f"p for large n: {', '.join(large)}"] * bool(large)
        few = [r.name for r in self.rows if r.measure.tail and r.p_value is not None and r.p_large_n is None]
        if few and (self.resample is None or not self.resample.clusters):
            notes.append(f"no p for large n for {', '.join(few)}: few outcomes of a kind are expected")
        if self.grouped is not None:
            notes.append(
                f"p and “if calibrated” are for values at {self.grouped[0]:,} groups of neighbouring forecasts, each "
                f"at its mean, {self.grouped[1]:.2g} away on average; outcomes are drawn at the forecasts themselves"
            )
        return notes

    def _lines(self) -> list[list[str]]:
        """The cells of the table, the headings first."""
        drawn, made = self._drawn, bool(self.intervals)
        lines = [
            [
                "measure",
                "value",
                *["interval"] * made,
                *["if calibrated", "p"] * drawn,
                "bounds for decision makers",
            ]
        ]
        for row in self.rows:
            line = [row.name, span(row.ends, ".4g")]
            line += ["none" if row.interval is None else "[{:.4g}, {:.4g}]".format(*row.interval)] * made
            line += ["–" if row.if_calibrated is None else f"{row.if_calibrated:.4g}"] * drawn
            line += ["–" if row.p_value is None else f"{row.p_value:.3g}"] * drawn
            lines.append([*line, row.measure.decisions])
        return lines

    def __str__(self) -> str:
        parts = [repr(self.gamma), *aligned(self._lines()), *_wrapped(self.notes)]
        if self.groups is not None:
            groups, measures = self.groups.lines(_number)
            parts += ["", *aligned(groups), "", *aligned(measures), *_wrapped(self.groups.notes)]
        return "\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from onlinecal.report.tables import Table, of_rows
        from onlinecal.report.totals import notebook

        notes, each = self.notes, [self._lines()]
        if self.groups is not None:
            each, notes = [*each, *self.groups.lines(_number)], [*notes, *self.groups.notes]
        return notebook(repr(self.gamma), [Table("", of_rows(head, rows)) for head, *rows in each], notes)


def _wrapped(notes: list[str]) -> list[str]:
    return [line for note in notes for line in textwrap.wrap(note, WIDTH, subsequent_indent="  ")]


def _number(x: float | None) -> str:
    return "–" if x is None else f"{x:.4g}"


def aligned(rows: list[list[str]]) -> list[str]:
    """Lines of cells under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def span(both: tuple[float, float], digits: str) -> str:
    """One number, or from one to another; "–" for NaN."""
    low, high = ("–" if math.isnan(end) else format(end, digits) for end in both)
    return low if low == high else f"[{low}, {high}]"
