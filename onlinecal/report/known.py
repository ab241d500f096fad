"""The catalogue as data: made once after a change of the package, and kept beside its bytecode.

The classes themselves need numba and all their modules, which takes longer than a list may take.
"""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import onlinecal
from onlinecal.core.errors import LIST, meant
from onlinecal.core.writing import scenarios

_HOME = Path(onlinecal.__file__).parent
_KEPT = _HOME / "__pycache__" / "catalogue.json"


@cache
def catalogue() -> dict[str, Any]:
    """The rows of all kinds and of rates, and the entries of each name."""
    stamp = _stamp()
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads(_KEPT.read_text("utf-8"))
        if kept.pop("stamp") == stamp:
            return dict(kept)
    from onlinecal.report import catalogue as live

    rows = live.rows()
    made = {
        "rows": rows,
        "rates": live.rates(),
        "entries": {name: live.entries(name) for name in dict.fromkeys(row["name"] for row in rows)},
    }
    text = json.dumps({"stamp": stamp, **made}, default=str)
    partial = _KEPT.with_name(f"catalogue.{os.getpid()}")
    with contextlib.suppress(OSError):  # where nothing can be written, it is made each time
        _KEPT.parent.mkdir(exist_ok=True)
        partial.write_text(text, "utf-8")
        partial.replace(_KEPT)
    return dict(json.loads(text))


def _stamp() -> list[Any]:
    """Changes when a file of the package does."""
    files = ((file, file.stat()) for file in sorted(_HOME.rglob("*.py")))
    return [[str(file.relative_to(_HOME)), seen.st_mtime_ns, seen.st_size] for file, seen in files]


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
