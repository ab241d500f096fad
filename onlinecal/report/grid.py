"""The grid of a table on the terminal: a column of names, and what does not fit broken or split."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from onlinecal.core.encodings import readable


class _Console(Console):
    """As `print`, it leaves to the command what becomes of output that nobody takes; rich's ends with status 1.

    Text is as the terminal can show it before it is broken into lines.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich."""
        super().print(*(readable(each) if isinstance(each, str) else each for each in objects), **options)

    def on_broken_pipe(self) -> None:
        raise  # rich calls this while it handles the error


def new_console() -> Console:
    """Where tables are printed."""
    return _Console(highlight=False)


def print_grid(
    console: Console,
    title: str,
    headings: Sequence[str],
    rows: dict[str, list[str]],
    first: str = "forecaster",
) -> None:
    """A table with a column of names; where the console is too narrow, headings are broken, then the table is."""
    names, shown = [readable(name) for name in rows], [readable(heading) for heading in headings]
    cells = [[readable(cell) for cell in row] for row in rows.values()]

    def grid(columns: Sequence[int]) -> Table:
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        table.add_column(first)
        for i in columns:
            table.add_column(Text(shown[i]), justify="right", overflow="fold")
        for name, row in zip(names, cells, strict=True):
            table.add_row(Text(name), *(Text(row[i]) for i in columns))
        return table

    parts = [range(len(headings))]
    if not fits(console, grid(parts[0])):
        names = [broken(name, 16) for name in names]
        cells = [[re.sub(r" (±|\+-) ", r"\n\1 ", cell) for cell in row] for row in cells]
        for i, heading in enumerate(headings):
            width = max([12, *(len(line) for row in cells for line in row[i].splitlines())])
            shown[i] = "\n".join(broken(line, width) for line in heading.splitlines())
        # As few tables as there can be, of nearly as many columns each.
        for count in range(1, len(headings) + 1):
            ends = [len(headings) * i // count for i in range(count + 1)]
            parts = [range(first, last) for first, last in pairwise(ends)]
            if all(fits(console, grid(part)) for part in parts):
                break
    for part in parts:
        console.print(Text(readable(title) + (" (continued)" if part.start else ""), style="italic"))
        console.print(grid(part))


def say(text: str, hang: int = 2) -> None:
    """Prints lines, broken between words where the console is narrower; what follows is indented by `hang` more."""
    width = new_console().width
    for line in readable(text).split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + hang)
        lines = textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        print("\n".join(lines))


#: docstrings are broken where a further word would be beyond this column
_FULL = 100


def flowing(documentation: str) -> str:
    """A docstring in which each paragraph is one line; what its author kept in lines of their own stays so."""
    lines: list[str] = []
    before = ""
    for line in documentation.split("\n"):
        words = line.strip()
        same = len(before) - len(before.lstrip()) == len(line) - len(line.lstrip())
        if words and before and same and len(before) + 1 + len(words.split()[0]) > _FULL:
            lines[-1] += f" {words}"
        else:
            lines.append(line)
        before = line
    return "\n".join(lines)


def fits(console: Console, table: Table) -> bool:
    """Whether a table is no wider than the console."""
    unbounded = console.options.update(width=100_000)
    return console.measure(table, options=unbounded).maximum <= console.width


def broken(text: str, width: int) -> str:
    """In lines of at most this width if possible: between words, and in longer ones after ``_ [ ( , =``."""
    lines = [""]
    for word in text.split():
        start = " " if lines[-1] else ""
        for piece in re.findall(r"[^_\[(,=]*[_\[(,=]|[^_\[(,=]+", word) if len(word) > width else [word]:
            if lines[-1] and len(lines[-1] + start + piece) > width:
                lines.append(piece)
            else:
                lines[-1] += start + piece
            start = ""
    return "\n".join(lines)


def with_spread(total: float, half: float | None) -> str:
    """A total, and the half-width of its interval where there is one; what only rounding makes of it is none."""
    if half is None:
        return number(total)
    return f"{number(total)} ± {number(half if half > 1e-12 * abs(total) else 0.0)}"


def number(x: float) -> str:
    """In a cell: three digits, or whole from 100 on."""
    if not math.isfinite(x) or x == 0:
        return f"{x:g}"
    if 100 <= abs(x) < 1e15:
        return f"{x:,.0f}"
    return f"{x:.3g}"
