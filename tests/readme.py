"""Rewrites the parts of the documentation that come from the code: `python -m tests.readme`.

A part stands between `<!-- name -->` and `<!-- /name -->` on the one page that has a block of that name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import onlinecal
from onlinecal.report.catalogue import KINDS, kind_table, measure_table, rate_table, reference_list
from onlinecal.report.games import sign_table
from tests import recalibrated, truthfulness
from tests.checklist import tables

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"


def pages() -> list[Path]:
    """What people read: README.md and all pages of docs/."""
    return [README, *sorted(DOCS.rglob("*.md"))]


def public_names(module: ModuleType) -> list[str]:
    """The public names of a module: those of its `__all__`, else those of the classes and functions that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__
    ]


def rooms() -> dict[str, ModuleType]:
    """Public module → what stands under it: `onlinecal` itself, and each of its public names that is a module."""
    found = {"onlinecal": onlinecal}
    for above in (onlinecal, onlinecal.measures):
        for name in public_names(above):
            if inspect.ismodule(thing := getattr(above, name)):
                found[name] = thing
    return found


def path_of(room: str, name: str) -> str:
    """Under which path mkdocstrings finds a public name of a room."""
    module = rooms()[room]
    thing = getattr(module, name)
    own = getattr(thing, "__name__", name)
    if own != name or (hasattr(module, "__path__") and find_spec(f"{module.__name__}.{name}")):
        # Who reads the source without running it takes these for another name of a function, which has no docstring,
        # and for the file of that name.
        return f"{thing.__module__}.{own}"
    above = {"onlinecal": "onlinecal", "witnesses": "onlinecal.measures.witnesses"}.get(
        room, f"onlinecal.{room}"
    )
    return f"{above}.{name}"


def names_of(room: str) -> str:
    """What the page of a room asks mkdocstrings for: every public name that is no module."""
    asked = []
    for name in public_names(rooms()[room]):
        if inspect.ismodule(getattr(rooms()[room], name)):
            continue
        path = path_of(room, name)
        asked.append(f"::: {path}")
        if not path.endswith(f".{name}"):
            asked[-1] += f"\n    options:\n      heading: {name}\n      toc_label: {name}"
    return "\n\n".join(asked)


def linked(kind: str) -> str:
    """The table of one of `KINDS`, each name with a link to its place in the reference."""
    table = measure_table() if kind == "measures" else kind_table(kind)
    room = {"arrivals": "schedules", "delays": "schedules"}.get(kind, kind)
    public = {id(getattr(rooms()[room], name)): name for name in public_names(rooms()[room])}
    for name, thing in KINDS[kind].items():
        path = path_of(room, public[id(getattr(thing, "function", thing))])
        table = table.replace(f"\n| `{name}` |", f"\n| [`{name}`](reference/{room}.md#{path}) |")
    return table


GENERATED: dict[str, Callable[[], str]] = {
    "references": reference_list,
    "truthfulness": truthfulness.table,
    "recalibrated": recalibrated.table,
    "rates": rate_table,
    "sign table": sign_table,
    "checklist": tables,
    **{kind: partial(linked, kind) for kind in KINDS},
    **{f"names of {room}": partial(names_of, room) for room in rooms()},
}


def _pattern(name: str) -> str:
    return rf"(<!-- {name} -->\n\n)(.*?)(\n\n<!-- /{name} -->)"


def home(name: str) -> Path:
    """The page that has the block."""
    found = [page for page in pages() if re.search(_pattern(name), page.read_text("utf-8"), re.DOTALL)]
    assert len(found) == 1, f"{len(found)} pages have a block {name!r}; expected one: {found}"
    return found[0]


def block(text: str, name: str) -> str:
    """What stands between `<!-- name -->` and `<!-- /name -->`."""
    found = re.findall(_pattern(name), text, re.DOTALL)
    assert len(found) == 1, f"there are {len(found)} blocks {name!r}; expected one"
    return found[0][1]


def rewrite(name: str, content: str) -> None:
    """Puts another block of that name into its page."""
    page = home(name)
    text = page.read_text("utf-8")
    page.write_text(re.sub(_pattern(name), lambda m: m[1] + content + m[3], text, flags=re.DOTALL), "utf-8")


def main() -> None:
    for name, generate in GENERATED.items():
        rewrite(name, generate())


if __name__ == "__main__":
    main()
