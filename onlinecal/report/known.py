"""The catalogue as data: found after a change of the package, and kept beside its bytecode.

The classes themselves need numba and all their modules, which takes longer than a list may take.
"""

from __future__ import annotations

import contextlib
import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import onlinecal
from onlinecal.core.errors import LIST, InvalidParameter, meant
from onlinecal.core.writing import scenarios, whole

_HOME = Path(onlinecal.__file__).parent
_KEPT = _HOME / "__pycache__" / "catalogue.json"


@cache
def _catalogue() -> dict[str, Any]:
    """The rows of all kinds and of rates, and the entries of names that were asked for."""
    stamp = _stamp()
    with contextlib.suppress(OSError, ValueError):
        kept: dict[str, Any] = json.loads(_KEPT.read_text("utf-8"))
        if kept["stamp"] == stamp:
            return kept
    from onlinecal.report import catalogue as live

    return _keep({"stamp": stamp, "rows": live.rows(), "rates": live.rates(), "entries": {}})


def _keep(known: dict[str, Any]) -> dict[str, Any]:
    """Writes the catalogue where it can be written, and returns it as it is read."""
    text = json.dumps(known, default=str)
    with contextlib.suppress(InvalidParameter), whole(_KEPT) as new:  # if not, it is found each time
        new.write_text(text, "utf-8")
    return dict(json.loads(text))


def _stamp() -> list[Any]:
    """Changes when a file of the package does."""
    files = ((file, file.stat()) for file in sorted(_HOME.rglob("*.py")))
    return [[str(file.relative_to(_HOME)), seen.st_mtime_ns, seen.st_size] for file, seen in files]


def rows(kind: str = "") -> list[dict[str, str]]:
    """Kind, name, summary and source of all entries, or of one kind; scenarios and rates are kinds too."""
    everything: list[dict[str, str]] = _catalogue()["rows"]
    kinds = dict.fromkeys(row["kind"] for row in everything)
    kind = kind and meant("kind", kind, (*kinds, "rates", "scenarios"))
    if kind == "rates":
        return list(_catalogue()["rates"])
    if kind == "scenarios":
        files = ((name, tomllib.loads(file.read_text("utf-8"))) for name, file in scenarios().items())
        return [{"kind": kind, "name": n, "summary": str(said["title"]), "known": ""} for n, said in files]
    return [row for row in everything if kind in ("", row["kind"])]


def names(kind: str | None = None) -> list[str]:
    """The names of a kind, or each name once."""
    return list(dict.fromkeys(row["name"] for row in _catalogue()["rows"] if kind in (None, row["kind"])))


def entries(name: str) -> list[dict[str, Any]]:
    """All that is known about one name, registered or ``module:Class``, of each kind that has it."""
    plug_in, known = ":" in name or name.endswith(".py"), _catalogue()
    if plug_in or (name := meant("name", name, names(), LIST)) not in known["entries"]:
        from onlinecal.report import catalogue as live

        if plug_in:
            return live.entries(name)
        known.update(_keep({**known, "entries": {**known["entries"], name: live.entries(name)}}))
    return list(known["entries"][name])
