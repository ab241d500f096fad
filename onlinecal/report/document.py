"""A document of sections: as one HTML page that needs nothing else, and as lines of text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from onlinecal.core.words import readable
from onlinecal.core.writing import whole
from onlinecal.report.tables import template
from onlinecal.report.terminal import new_console

#: columns of text, where the terminal has as many
WIDTH = 80
#: how a remark begins that is a caution
CAUTION = "caution: "


class Part(NamedTuple):
    """Sentences (p, lead, state, caution), lists of them (list, notes), texts (h3, pre; code between backticks).

    Or terms (pairs), a table (`Table`) or pictures (a list of `Picture`).
    """

    kind: str
    content: Any


def remarks_of(said: Sequence[str], cautions: Sequence[str]) -> list[Part]:
    """What a reader said of a file in sentences, and cautions: those of it, and these."""
    plain = [f"{text[:1].upper()}{text[1:]}." for text in said if not text.startswith(CAUTION)]
    warned = [text.removeprefix(CAUTION) for text in said if text.startswith(CAUTION)]
    return [
        Part("p", " ".join(plain)),
        *(Part("caution", f"Caution: {text}.") for text in (*warned, *cautions)),
    ]


class Section(NamedTuple):
    """Parts below a heading; with an `id` the page has a link to it."""

    title: str
    parts: Sequence[Part]
    id: str = ""


@dataclass(frozen=True)
class Document:
    """A title, what is said first, and sections; without parts and sections that are empty."""

    title: str
    first: Sequence[Part]
    sections: Sequence[Section]

    def __post_init__(self) -> None:
        """Leaves out what is empty."""
        sections = [each._replace(parts=[p for p in each.parts if p.content]) for each in self.sections]
        object.__setattr__(self, "first", [part for part in self.first if part.content])
        object.__setattr__(self, "sections", [each for each in sections if each.parts])

    def html(self) -> str:
        """The page; names that were given are escaped."""
        return template("page.html").render(page=self)

    def write(self, path: Path) -> None:
        """Writes the page; the file is there whole or not at all."""
        with whole(path) as new:
            new.write_text(self.html(), encoding="utf-8", newline="\n")

    def text(self) -> str:
        """Lines of at most `WIDTH` columns, fewer in a narrower terminal, in letters that stdout has."""
        width = min(WIDTH, new_console().width)
        lines = [*_wrapped(self.title, width), *(line for part in self.first for line in _lines(part, width))]
        for section in self.sections:
            lines += ["", readable(f"== {section.title}")[:width]] if section.title else []
            lines += [line for part in section.parts for line in _lines(part, width)]
        return "\n".join(lines)


def _lines(part: Part, width: int) -> Iterator[str]:
    """The lines of sentences and tables; a terminal shows no other parts."""
    if part.kind == "table":
        yield from ("", *part.content.lines(width))
    elif part.kind in ("p", "lead", "caution"):
        yield from _wrapped(part.content, width)
    elif part.kind == "notes":
        yield from (line for each in part.content for line in _wrapped(each, width))


def _wrapped(said: str, width: int) -> list[str]:
    return textwrap.wrap(readable(said), width, subsequent_indent="  ", break_on_hyphens=False)
