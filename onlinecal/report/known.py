"""The catalogue as data, which `python -m tests.readme` writes from the classes.

The classes themselves need numba and all their modules, which takes longer than a list may take.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import onlinecal
from onlinecal.core.errors import LIST, meant
from onlinecal.core.writing import scenarios

FILE = Path(onlinecal.__file__).parent / "data" / "catalogue.json"


@cache
def catalogue() -> dict[str, Any]:
    """The rows of all kinds and of rates, and the entries of each name."""
    return dict(json.loads(FILE.read_text("utf-8")))


def of_classes() -> str:
    """The text of the file, from the classes."""
    from onlinecal.report import catalogue as live

    rows = live.rows()
    entries = {name: live.entries(name) for name in dict.fromkeys(row["name"] for row in rows)}
    made = {"rows": rows, "rates": live.rates(), "entries": entries}
    return json.dumps(made, default=str, ensure_ascii=False, indent=0) + "\n"


def rows(kind: str = "") -> list[dict[str, str]]:
    """Kind, name, summary and source of all entries, or of one kind; scenarios and rates are kinds too."""
    everything: list[dict[str, str]] = catalogue()["rows"]
    kinds = dict.fromkeys(row["kind"] for row in everything)
    kind = kind and meant("kind", kind, (*kinds, "rates", "scenarios"))
    if kind == "rates":
        return list(catalogue()["rates"])
    if kind == "scenarios":
        files = ((name, tomllib.loads(file.read_text("utf-8"))) for name, file in scenarios().items())
        return [{"kind": kind, "name": n, "summary": str(said["title"]), "known": ""} for n, said in files]
    return [row for row in everything if kind in ("", row["kind"])]


def names(kind: str | None = None) -> list[str]:
    """The names of a kind, or each name once."""
    return list(dict.fromkeys(row["name"] for row in catalogue()["rows"] if kind in (None, row["kind"])))


def entries(name: str) -> list[dict[str, Any]]:
    """All that is known about one name, registered or ``module:Class``, of each kind that has it."""
    known = catalogue()["entries"]
    if ":" in name or name.endswith(".py"):
        from onlinecal.report import catalogue as live

        return live.entries(name)
    return list(known[meant("name", name, known, LIST)])
