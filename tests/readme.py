"""Rewrites the parts of the documentation that come from the code: `python -m tests.readme`.

A part stands between `<!-- name -->` and `<!-- /name -->` on the one page that has a block of that name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import onlinecal
from onlinecal.core.guarantee import Sight
from onlinecal.core.strategy import FACTS
from onlinecal.measures import MEASURES
from onlinecal.report.catalogue import KINDS, entries, parameters_of, rates, rows, said
from tests import recalibrated, truthfulness
from tests.checklist import markdown, tables

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"


def pages() -> list[Path]:
    """The pages that people read: README.md and all of docs/."""
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
        # A tool that reads the source without running it is wrong about these. It takes one kind for another name of
        # a function, without a docstring, one for the file of that name.
        return f"{thing.__module__}.{own}"
    # `exact` is another name of its module, which such a tool does not see either.
    others = {
        "onlinecal": "onlinecal",
        "witnesses": "onlinecal.measures.witnesses",
        "exact": "onlinecal.games",
    }
    above = others.get(room, f"onlinecal.{room}")
    return f"{above}.{name}"


def measure_table() -> str:
    """The capability table of all measures, in Markdown."""
    names = ("symbol", "source", "result", "complexity", "continuous", "complete", "sound", "decisions")
    head = ("name", *names[:3], "time", *names[4:7], "bounds for decision makers")
    return _in_markdown(
        head, ((f"`{m.name}`", *(getattr(m, name) for name in names)) for m in MEASURES.values())
    )


def kind_table(kind: str) -> str:
    """The table of one of `KINDS` but measures, in Markdown: each with its parameters and what it states of itself."""
    facts = {"forecasters": FACTS, "natures": ("sight",)}.get(kind, ())
    proved = {"forecasters": ("proved",), "natures": ("forces",)}.get(kind, ())
    head = ("name", "what it is", "parameters", *proved, *(fact.replace("_", " ") for fact in facts))
    lines = []
    for row in rows(kind):
        thing = KINDS[kind][row["name"]]
        stated = entries(row["name"])[0] if kind == "forecasters" else {"sight": _sight(thing)}
        known = [row["known"]] if proved else []
        told = [f"`{row['name']}`", row["summary"], _parameter_list(thing), *known]
        lines.append([*told, *(stated[fact] for fact in facts)])
    return _in_markdown(head, lines)


def rate_table() -> str:
    """The best known rates, and what follows from them, in Markdown."""
    head = ("total of", "rate", "exponent", "source")
    return _in_markdown(
        head,
        ((f"`{r['name']}`", r["summary"], r["exponent"], r["known"]) for r in rates() if "exponent" in r),
    )


def _parameter_list(thing: Any) -> str:
    return ", ".join(
        f"`{p['name']}`" if p["required"] else f"`{p['name']} = {p['default']!r}`"
        for p in parameters_of(thing)
    )


def _sight(nature: Any) -> str:
    sight = getattr(nature, "sight", None)
    return sight.name if isinstance(sight, Sight) else said(sight)


def _in_markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table; an empty cell has a dash."""
    return markdown(head, ([(cell or "–").replace("|", "∣") for cell in line] for line in lines))


def linked(kind: str) -> str:
    """The table of one of `KINDS`, each name with a link to its place in the reference."""
    table = measure_table() if kind == "measures" else kind_table(kind)
    room = {"arrivals": "schedules", "delays": "schedules"}.get(kind, kind)
    public = {id(getattr(rooms()[room], name)): name for name in public_names(rooms()[room])}
    for name, thing in KINDS[kind].items():
        # Of a measure of games that is also a function of forecasts, the function has the name.
        path = path_of(room, public.get(id(getattr(thing, "function", thing)), name))
        table = table.replace(f"\n| `{name}` |", f"\n| [`{name}`](reference/{room}.md#{path}) |")
    return table


GENERATED: dict[str, Callable[[], str]] = {
    "truthfulness": truthfulness.table,
    "recalibrated": recalibrated.table,
    "rates": rate_table,
    "checklist": tables,
    **{kind: partial(linked, kind) for kind in KINDS},
}


def _pattern(name: str) -> str:
    return rf"(<!-- {name} -->\n\n)(.*?)(\n\n<!-- /{name} -->)"


def home(name: str) -> Path:
    """The page that has the block."""
    found = [page for page in pages() if re.search(_pattern(name), page.read_text("utf-8"), re.DOTALL)]
    assert len(found) == 1, f"{len(found)} pages have a block {name!r}; expected one: {found}"
    return found[0]


def block(text: str, name: str) -> str:
    """The text between `<!-- name -->` and `<!-- /name -->`."""
    found = re.findall(_pattern(name), text, re.DOTALL)
    assert len(found) == 1, f"there are {len(found)} blocks {name!r}; expected one"
    return found[0][1]


def rewrite(name: str, content: str, page: Path | None = None) -> None:
    """Puts another block of that name into its page."""
    page = page or home(name)
    text = page.read_text("utf-8")
    page.write_text(re.sub(_pattern(name), lambda m: m[1] + content + m[3], text, flags=re.DOTALL), "utf-8")


def main() -> None:
    for name, generate in GENERATED.items():
        rewrite(name, generate())


if __name__ == "__main__":
    main()
