"""Rewrites the parts of README.md that come from the code: `python -m tests.readme`."""

from __future__ import annotations

import re
from pathlib import Path

from onlinecal.report.catalogue import measure_table, reference_list

README = Path(__file__).parents[1] / "README.md"

GENERATED = {"measures": measure_table, "references": reference_list}


def block(text: str, name: str) -> str:
    """What stands between `<!-- name -->` and `<!-- /name -->`."""
    found = re.findall(rf"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", text, re.DOTALL)
    assert len(found) == 1, f"README.md has {len(found)} blocks {name!r}; expected one"
    return found[0]


def with_block(text: str, name: str, content: str) -> str:
    """The text with another block of that name."""
    old = block(text, name)
    return text.replace(
        f"<!-- {name} -->\n{old}\n<!-- /{name} -->", f"<!-- {name} -->\n{content}\n<!-- /{name} -->"
    )


def main() -> None:
    text = README.read_text(encoding="utf-8")
    for name, generate in GENERATED.items():
        text = with_block(text, name, generate())
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
