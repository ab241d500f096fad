"""Draws the pictures of docs/gallery.md with the code of that page: `python -m tests.gallery`."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from tests.pages import DOCS

PAGE = DOCS / "gallery.md"
_PICTURE = re.compile(r"^!\[[^\]]+\]\(([\w/.-]+)\)$", re.MULTILINE)


def pictures() -> Iterator[tuple[Path, list[str]]]:
    """Each picture of the page, named as its variable, and the statements from the last picture to it."""
    text, start = PAGE.read_text("utf-8"), 0
    for found in _PICTURE.finditer(text):
        examples = doctest.DocTestParser().get_examples(text[start : found.start()])
        yield DOCS / found[1], [example.source for example in examples]
        start = found.end()


def digests() -> dict[Path, str]:
    """Picture → a digest of all code above it, which the file holds."""
    done, found = "", {}
    for path, statements in pictures():
        done += "".join(statements)
        found[path] = sha256(done.encode()).hexdigest()[:16]
    return found


def main() -> None:
    import matplotlib as mpl

    mpl.use("agg")
    names: dict[str, object] = {}
    marks = digests()
    for path, statements in pictures():
        for statement in statements:
            exec(compile(statement, str(PAGE), "exec"), names)
        names[path.stem.replace("-", "_")].savefig(path, dpi=160, metadata={"Source": marks[path]})  # type: ignore[attr-defined]
        print(path)


if __name__ == "__main__":
    main()
