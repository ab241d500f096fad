"""The rows of docs/checklist.toml, the tables of docs/checklist.md, and what they name that is not there."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "checklist.toml"
#: state → its mark
MARKS = {"yes": "✔", "partly": "◐", "no": "✘", "statement": "–"}


def markdown(head: Sequence[Any], rows: Iterable[Sequence[Any]], others: str = "---") -> str:
    """A table; `others` aligns the columns after the first."""
    lines = [head, ["---", *[others] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def papers() -> list[dict[str, Any]]:
    """Each paper with its rows."""
    found: list[dict[str, Any]] = tomllib.loads(FILE.read_text("utf-8"))["paper"]
    return found


@cache
def _tests(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"^def (test_\w+)\(", path.read_text("utf-8"), re.MULTILINE))


def is_there(seen: str, root: Path = ROOT) -> bool:
    """Whether there is such a test, a file and a name with ``::`` between, or such a file.

    >>> is_there("tests/whole/test_checklist.py::test_nothing_of_that_name"), is_there("scenarios/quickstart.toml")
    (False, True)
    """
    file, _, name = seen.partition("::")
    path = root / file
    return path.is_file() and (name in _tests(path) if name else not file.startswith("tests/"))


def faults(rows: list[dict[str, Any]], root: Path = ROOT) -> list[str]:
    """The faults of rows, in words."""
    found = []
    for row in rows:
        name, seen = row.get("id", "?"), row.get("seen", [])
        if unknown := row.keys() - {"id", "where", "what", "kind", "state", "here", "seen"}:
            found.append(f"{name}: unknown key {', '.join(sorted(unknown))}")
        if missing := {"id", "where", "what", "kind", "state"} - row.keys():
            found.append(f"{name}: no {', '.join(sorted(missing))}")
        elif row["state"] not in MARKS:
            found.append(f"{name}: state {row['state']!r}; expected one of {', '.join(MARKS)}")
        elif row["state"] == "yes" and not seen:
            found.append(f"{name}: nothing behind {MARKS['yes']}; expected a test or a scenario")
        elif (
            row["state"] in ("partly", "no")
            and not row.get("here")
            and row["kind"] not in ("bound", "measure", "algorithm")
        ):
            found.append(f"{name}: {MARKS[row['state']]} without a word on what is missing")
        found += [f"{name}: there is no {each}" for each in seen if not is_there(each, root)]
    twice = [name for name, times in Counter(row.get("id") for row in rows).items() if times > 1]
    return found + [f"{name}: given twice" for name in twice]


def tables() -> str:
    """The page below its first words."""
    parts = []
    states = Counter(row["state"] for paper in papers() for row in paper["row"])
    parts.append(", ".join(f"{states[state]} {mark}" for state, mark in MARKS.items()) + ".")
    head = ["", "where", "what", "kind", "", "what there is", "seen in"]
    for paper in papers():
        cells = [
            [*(row[key] for key in ("id", "where", "what", "kind")), MARKS[row["state"]], row.get("here", ""),
             "<br>".join(map(_short, row.get("seen", [])))]
            for row in paper["row"]
        ]  # fmt: skip
        parts += [f"## {paper['title']}", markdown(head, cells)]
    return "\n\n".join(parts)


def _short(seen: str) -> str:
    """A test by its file and its name in words, which fill several lines where code would not.

    >>> _short("tests/papers/test_bn24.py::test_theorem_7"), _short("scenarios/papers/bn24.py")
    ('papers/test_bn24: theorem 7', 'scenarios/papers/bn24.py')
    """
    file, _, name = seen.partition("::")
    if not name:
        return file
    words = name.removeprefix("test_").replace("_", " ")
    return f"{file.removeprefix('tests/').removesuffix('.py')}: {words}"
