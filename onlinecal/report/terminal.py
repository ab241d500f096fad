"""Words, numbers and JSON on the terminal, of any width and with any letters."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from rich.console import Console

from onlinecal.core.words import readable


class TableConsole(Console):
    """A console that leaves a broken pipe to the command; rich's ends with status 1."""

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich."""
        super().print(*(readable(each) if isinstance(each, str) else each for each in objects), **options)

    def on_broken_pipe(self) -> None:
        raise  # rich calls this while it handles the error


def new_console() -> Console:
    """Where tables are printed."""
    return TableConsole(highlight=False)


def say(text: str, hang: int = 2) -> None:
    """Prints lines, broken between words where the console is narrower; what follows is indented by `hang` more."""
    width = new_console().width
    for line in readable(text).split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + hang)
        lines = textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        print("\n".join(lines))


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
