"""The pages that people read, and tables between `<!-- name -->` and `<!-- /name -->` on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"


def markdown(head: Sequence[Any], rows: Iterable[Sequence[Any]], others: str = "---") -> str:
    """A table; `others` aligns the columns after the first."""
    lines = [head, ["---", *[others] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _pattern(name: str) -> str:
    return rf"(<!-- {name} -->\n\n)(.*?)(\n\n<!-- /{name} -->)"


def block(page: Path, name: str) -> str:
    """The text between the two comments of that name."""
    ((_, found, _),) = re.findall(_pattern(name), page.read_text("utf-8"), re.DOTALL)
    return str(found)


def rewrite(page: Path, name: str, content: str) -> None:
    """Puts the result of a measurement between them."""
    block(page, name)
    text = page.read_text("utf-8")
    page.write_text(re.sub(_pattern(name), lambda m: m[1] + content + m[3], text, flags=re.DOTALL), "utf-8")
