"""Tables of texts on the terminal, as Markdown and as HTML; data as JSON."""

from __future__ import annotations

import html
import io
import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from numbers import Integral, Real
from operator import itemgetter
from typing import Any, NamedTuple

from rich.box import SIMPLE_HEAD, Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from onlinecal.core.words import readable


class Cell(NamedTuple):
    """The text of a cell, the number by which a page sorts its column, and a note in small letters."""

    text: str = ""
    value: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table of texts, with names in its first column and notes below; of `words`, not of numbers."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()
    words: bool = False

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, with a cell for each text."""
        return [[each if isinstance(each, Cell) else Cell(str(each)) for each in row] for row in self.rows]

    @property
    def texts(self) -> list[list[str]]:
        """The rows, with a note in a line of its own."""
        return [["\n".join(filter(None, (c.text, c.note))) for c in row] for row in self.cells]

    @property
    def sortable(self) -> bool:
        """Whether some cell has a number."""
        return any(cell.value is not None for row in self.cells for cell in row)

    def markdown(self) -> str:
        """The table as Markdown, below its title."""
        lines = [
            self.headings,
            *([row[0], *(cell.replace("\n", ", ") for cell in row[1:])] for row in self.texts),
        ]
        text = ["| " + " | ".join(map(in_markdown, line)) + " |" for line in lines]
        text.insert(1, "|---" * len(self.headings) + "|")
        return f"**{in_markdown(self.title)}**\n\n" + "\n".join(text)

    def html(self) -> str:
        """The table as HTML for a notebook, with its notes."""

        def row(kind: str, texts: Sequence[str]) -> str:
            cells = (html.escape(each).replace("\n", "<br>") for each in texts)
            return "<tr>" + "".join(f"<{kind}>{cell}</{kind}>" for cell in cells) + "</tr>"

        head, body = row("th", self.headings), "".join(row("td", each) for each in self.texts)
        table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
        return f"<p><b>{html.escape(self.title)}</b></p>{table}{in_small(self.notes)}"

    def print(self, console: Console, box: Box | None = SIMPLE_HEAD) -> None:
        """Prints it; where the console is too narrow, names and headings are broken, then the table is."""
        headings = shown = [readable(heading) for heading in self.headings]
        rows = [[readable(cell) for cell in row] for row in self.texts]

        def grid(columns: Sequence[int], rows: Sequence[Sequence[str]]) -> RichTable:
            table = RichTable(box=box, pad_edge=False)
            for i in (0, *columns):
                justify: Any = "right" if i and not self.words else "left"
                table.add_column(Text(shown[i]), justify=justify, overflow="fold")
            for row in rows:
                table.add_row(*(Text(row[i]) for i in (0, *columns)))
            return table

        parts = [range(1, len(shown))]
        # Headings are broken before names, into lines of at least 20, 12 or 8 letters.
        for least, names in ((999, False), (20, False), (12, False), (8, False), (8, True), (12, True)):
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
            if fits(console, grid(parts[0], [widest])):
                break
        columns = len(shown) - 1
        # As few tables as there can be, of nearly as many columns each.
        for count in range(1, columns + 1):
            ends = [1 + columns * i // count for i in range(count + 1)]
            parts = [range(first, last) for first, last in pairwise(ends)]
            if all(fits(console, grid(part, [widest])) for part in parts):
                break
        for part in parts:
            more = " (continued)" * (part.start > 1)
            if self.title:
                console.print(Text(readable(self.title) + more, style="italic"))
            console.print(grid(part, rows))
        for note in self.notes:
            console.print(note, markup=False)

    def lines(self, width: int) -> list[str]:
        """The printed lines, without styles and lines of a frame."""
        printed = io.StringIO()
        self.print(_Console(highlight=False, width=width, file=printed, color_system=None), None)
        return [line.rstrip() for line in printed.getvalue().splitlines()]


def crossed(
    rows: Iterable[Any],
    down: str,
    across: str,
    names: Iterable[str],
    headings: Sequence[str],
    cell: Callable[[Any], Any],
) -> list[list[Any]]:
    """A row for each name and a column for each heading, which are attributes of `rows`; none for absent names."""
    found = {(getattr(row, down), getattr(row, across)): row for row in rows}
    there = {name for name, _ in found}
    return [
        [name, *(cell(found[name, each]) if (name, each) in found else "" for each in headings)]
        for name in names
        if name in there
    ]


def in_small(notes: Iterable[str]) -> str:
    """Notes below a table of a notebook."""
    return "".join(f"<p><small>{html.escape(note)}</small></p>" for note in notes)


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


def say_documentation(documentation: str) -> None:
    """Prints a docstring: paragraphs in the width of the console, code as it is written."""
    for code, lines in groupby(_with_code(documentation), key=itemgetter(0)):
        text = "\n".join(line for _, line in lines)
        if code:
            print(readable(text))
        else:
            say(flowing(text), hang=0)


def _with_code(documentation: str) -> Iterator[tuple[bool, str]]:
    """Whether each line is code, and the line. Code is an example, in a fence, or deeper than ``::`` before it."""
    fenced = example = False
    outside: int | None = None  # the indentation of what ended with ``::``
    for line in documentation.split("\n"):
        words, depth = line.strip(), len(line) - len(line.lstrip())
        fence = words.startswith("```")
        example = bool(words) and (example or words.startswith(">>>"))
        if words and outside is not None and depth <= outside:
            outside = None
        code = fenced or fence or example or (outside is not None and bool(words))
        yield code, line
        fenced ^= fence
        if words.endswith("::") and not code:
            outside = depth


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
        return f"{x + 0.0:g}"  # −0.0 is 0
    if 100 <= abs(x) < 1e15:
        return f"{x:,.0f}"
    return f"{x:.3g}"


def print_json(value: Any, *, in_one_line: bool = False) -> None:
    """Prints strict JSON, for streams in one line; a number that is not finite is null.

    A key beside it that ends in ``_is`` says which: ``"total": null, "total_is": "inf"``.
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
    return isinstance(value, Real) and not isinstance(value, Integral) and not math.isfinite(value)


def _bare(value: Any) -> Any:
    """Values that JSON does not know: numbers of numpy as numbers, arrays as lists, anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
