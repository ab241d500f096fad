"""Tables of texts, on the terminal and as Markdown, and data as JSON."""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from onlinecal.core.words import readable


@dataclass(frozen=True)
class Table:
    """A table of texts with a column of names."""

    title: str
    headings: Sequence[str]
    rows: Mapping[str, Sequence[str]] = field(default_factory=dict)
    first: str = "forecaster"

    def markdown(self) -> str:
        """The table as Markdown, below its title."""
        rows = ([name, *(cell.replace("\n", ", ") for cell in row)] for name, row in self.rows.items())
        lines = [[self.first, *self.headings], *rows]
        text = ["| " + " | ".join(map(in_markdown, line)) + " |" for line in lines]
        text.insert(1, "|---" * len(lines[0]) + "|")
        return f"**{in_markdown(self.title)}**\n\n" + "\n".join(text)

    def print(self, console: Console) -> None:
        """Prints it; where the console is too narrow, names and headings are broken, then the table is."""
        names, shown = (
            [readable(name) for name in self.rows],
            [readable(heading) for heading in self.headings],
        )
        cells = [[readable(cell) for cell in row] for row in self.rows.values()]

        def grid(columns: Sequence[int]) -> RichTable:
            table = RichTable(box=SIMPLE_HEAD, pad_edge=False)
            table.add_column(self.first)
            for i in columns:
                table.add_column(Text(shown[i]), justify="right", overflow="fold")
            for name, row in zip(names, cells, strict=True):
                table.add_row(Text(name), *(Text(row[i]) for i in columns))
            return table

        parts = [range(len(shown))]
        if not fits(console, grid(parts[0])):
            names = [broken(name, 16) for name in names]
            cells = [[re.sub(r" (±|\+-) ", r"\n\1 ", cell) for cell in row] for row in cells]
            for i, heading in enumerate(shown):
                width = max([12, *(len(line) for row in cells for line in row[i].splitlines())])
                shown[i] = "\n".join(broken(line, width) for line in heading.splitlines())
            # As few tables as there can be, of nearly as many columns each.
            for count in range(1, len(shown) + 1):
                ends = [len(shown) * i // count for i in range(count + 1)]
                parts = [range(first, last) for first, last in pairwise(ends)]
                if all(fits(console, grid(part)) for part in parts):
                    break
        for part in parts:
            console.print(Text(readable(self.title) + " (continued)" * (part.start > 0), style="italic"))
            console.print(grid(part))


def in_markdown(text: str) -> str:
    """A cell of a Markdown table, which ends at a bar or a new line."""
    return " ".join(text.split()).replace("|", r"\|")


class _Console(Console):
    """A console that leaves a broken pipe to the command; rich's ends with status 1."""

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich."""
        super().print(*(readable(each) if isinstance(each, str) else each for each in objects), **options)

    def on_broken_pipe(self) -> None:
        raise  # rich calls this while it handles the error


def new_console() -> Console:
    """Where tables are printed."""
    return _Console(highlight=False)


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


def fits(console: Console, table: RichTable) -> bool:
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
    """A total, and the half-width of its interval where there is one; rounding alone makes none."""
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


def print_json(value: Any, *, in_one_line: bool = False) -> None:
    """Prints strict JSON, for streams in one line.

    A number that is not finite is null, and the key beside it that ends in ``_is`` says which: ``"total": null,
    "total_is": "inf"``; the others are ``"-inf"`` and ``"nan"``.
    """
    utf = str(getattr(sys.stdout, "encoding", None)).lower().startswith("utf")
    # Escaped where the stream could not hold it: a "?" in a name would be another name.
    indent = None if in_one_line else 2
    print(
        json.dumps(_plain(value), indent=indent, ensure_ascii=not utf, allow_nan=False, default=_bare),
        flush=in_one_line,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        plain: dict[str, Any] = {}
        for key, item in value.items():
            plain[key] = _plain(item)
            if _endless(item):
                plain[f"{key}_is"] = str(float(item))
        return plain
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return None if _endless(value) else value


def _endless(value: Any) -> bool:
    return isinstance(value, float | np.floating) and not math.isfinite(value)


def _bare(value: Any) -> Any:
    """Values that JSON does not know: numbers of numpy as numbers, arrays as lists, anything else as text."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)
