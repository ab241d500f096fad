"""A DataFrame of texts as a table: on the terminal, as Markdown and as HTML; DataFrames of numbers as data."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.box import SIMPLE_HEAD, Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from onlinecal.core.words import readable
from onlinecal.report.terminal import TableConsole

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True)
class Table:
    """A title, a DataFrame of texts, and notes below.

    The index has the names in the first column. Lines of a cell after its first are a note in small letters.
    """

    title: str
    frame: pd.DataFrame
    notes: Sequence[str] = ()
    #: the numbers by which a page sorts, if any: the same rows and columns
    values: pd.DataFrame | None = None
    #: of words, not of numbers
    words: bool = False

    @property
    def headings(self) -> list[str]:
        """The heading of the names, and those of the other columns."""
        return [str(self.frame.index.name or ""), *map(str, self.frame.columns)]

    @property
    def rows(self) -> list[list[str]]:
        """The names, each with its cells."""
        cells = self.frame.astype(str).to_numpy().tolist()
        return [[str(name), *row] for name, row in zip(self.frame.index, cells, strict=True)]

    def markdown(self) -> str:
        """The table as Markdown, below its title and above its notes."""
        rows = [[row[0], *(cell.replace("\n", ", ") for cell in row[1:])] for row in self.rows]
        lines = ["| " + " | ".join(map(in_markdown, row)) + " |" for row in (self.headings, *rows)]
        lines.insert(1, "|---" * len(self.headings) + "|")
        return "\n\n".join(
            [f"**{in_markdown(self.title)}**", "\n".join(lines), *(f"{n}." for n in self.notes)]
        )

    def html(self) -> str:
        """The table as HTML, with its title and notes."""
        return str(template("table.html").module.grid(self))  # type: ignore[attr-defined]

    def print(self, console: Console, box: Box | None = SIMPLE_HEAD) -> None:
        """Prints it; where the console is too narrow, names and headings are broken, then the table is."""
        headings = shown = [readable(heading) for heading in self.headings]
        rows = [[readable(cell) for cell in row] for row in self.rows]

        def grid(columns: Sequence[int], rows: Sequence[Sequence[str]]) -> RichTable:
            table = RichTable(box=box, pad_edge=False)
            for i in (0, *columns):
                justify: Any = "right" if i and not self.words else "left"
                table.add_column(Text(shown[i]), justify=justify, overflow="fold")
            for row in rows:
                table.add_row(*(Text(row[i]) for i in (0, *columns)))
            return table

        # Headings are broken before names, into lines of at least 12 letters.
        for least, names in ((999, False), (12, False), (12, True)):
            if names:
                rows = [
                    [broken(row[0], 16), *(re.sub(r" (±|\+-) ", r"\n\1 ", c) for c in row[1:])]
                    for row in rows
                ]
            # Rich measures every cell each time: of many rows the widest line of each column is enough.
            widest = [
                max((line for row in rows for line in row[i].splitlines()), key=cell_len, default="")
                for i in range(len(headings))
            ]
            shown = [
                "\n".join(broken(line, max(least, cell_len(wide))) for line in heading.splitlines())
                for heading, wide in zip(headings, widest, strict=True)
            ]
            if fits(console, grid(range(1, len(shown)), [widest])):
                break
        parts: list[list[int]] = [[]]
        for i in range(1, len(shown)):
            if parts[-1] and not fits(console, grid([*parts[-1], i], [widest])):
                parts.append([])
            parts[-1].append(i)
        for part in parts:
            more = " (continued)" * (part is not parts[0])
            if self.title:
                console.print(Text(readable(self.title) + more, style="italic"))
            console.print(grid(part, rows))
        for note in self.notes:
            console.print(note, markup=False)

    def lines(self, width: int) -> list[str]:
        """The printed lines, without styles and lines of a frame."""
        printed = io.StringIO()
        self.print(TableConsole(highlight=False, width=width, file=printed, color_system=None), None)
        return [line.rstrip() for line in printed.getvalue().splitlines()]


def of_rows(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """The frame of a table from its rows, each a name with its cells."""
    rows = list(rows)
    index = pd.Index([row[0] for row in rows], name=headings[0], dtype=object)
    return pd.DataFrame([row[1:] for row in rows], index, columns=list(headings[1:]), dtype=object)


def crossed(
    rows: pd.DataFrame, down: str, across: str, names: Iterable[str], headings: Sequence[str], value: str
) -> pd.DataFrame:
    """A column of `rows` with a row for each of these names that there is, and a column for each heading."""
    wide = rows.pivot(index=down, columns=across, values=value)
    wide = wide.reindex(index=[name for name in names if name in wide.index], columns=headings)
    return wide if pd.api.types.is_numeric_dtype(rows[value]) else wide.astype(object).where(wide.notna(), "")


def template(name: str) -> Template:
    """A template of this folder; names that were given are escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"breakable": _breakable, "coded": _coded}
    return environment.get_template(name)


def _breakable(text: str) -> str:
    """A name that may be broken into lines after ``[ ( , =``, and nowhere else."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"([\[(,=])", r"\1<wbr>", str(escape(text))))


def _coded(text: str) -> str:
    """A text in which the parts between two backticks are code."""
    from markupsafe import Markup, escape

    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def in_markdown(text: str) -> str:
    """A cell of a Markdown table, which ends at a bar or a new line."""
    return " ".join(text.split()).replace("|", r"\|")


def fits(console: Console, table: RichTable) -> bool:
    """Whether a table is no wider than the console."""
    unbounded = console.options.update(width=100_000)
    return console.measure(table, options=unbounded).maximum <= console.width


def broken(text: str, width: int) -> str:
    """In lines of at most this width if possible: between words, and in longer ones after ``[ ( , =``."""
    lines = [""]
    for word in text.split():
        start = " " if lines[-1] else ""
        for piece in re.findall(r"[^\[(,=]*[\[(,=]|[^\[(,=]+", word) if len(word) > width else [word]:
            if lines[-1] and len(lines[-1] + start + piece) > width:
                lines.append(piece)
            else:
                lines[-1] += start + piece
            start = ""
    return "\n".join(lines)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as data; None in place of what is infinite or no number."""

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(each) for each in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return [{key: plain(value) for key, value in row.items()} for row in table.to_dict("records")]
