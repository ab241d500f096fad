"""What MkDocs does beside what it does by itself: pages get tables and help that the package itself knows.

A page has a comment in the place of each, such as `<!-- the site has forecasters here -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: column → fact, of strategies and of measures
FACTS = {
    "forecasters": {
        "deterministic": "deterministic",
        "needs horizon": "needs_horizon",
        "safe under delay": "safe_under_delay",
        "memory": "memory",
    },
    "natures": {"sight": "sight"},
    "measures": {
        "symbol": "symbol",
        "source": "source",
        "result": "result",
        "time": "complexity",
        "continuous": "continuous",
        "complete": "complete",
        "sound": "sound",
        "bounds for decision makers": "decisions",
    },
}
#: measures with a page entry elsewhere than in `onlinecal.measures`
ELSEWHERE = {
    "smooth_ce": "measures.md#onlinecal.measures.smooth_ce.smooth_ce",
    "smooth_ece": "measures.md#onlinecal.measures.smooth_ece.smooth_ece",
    "distance_lower": "measures.md#onlinecal.measures.distance_lower.distance_lower",
    "distance_upper": "measures.md#onlinecal.measures.distance_upper.distance_upper",
    "calibration_in_the_large": "onlinecal.md#onlinecal.calibration_line",
    "calibration_intercept": "onlinecal.md#onlinecal.calibration_line",
    "calibration_slope": "onlinecal.md#onlinecal.calibration_line",
}


def commands() -> str:
    """A section for each command, with its help as a terminal of 100 columns shows it."""
    import typer
    from typer.testing import CliRunner

    from onlinecal.cli import app

    runner, parts = CliRunner(), []
    for name in typer.main.get_command(app).commands:  # type: ignore[attr-defined]
        said = runner.invoke(
            app, [name, "--help"], prog_name="onlinecal", env={"COLUMNS": "100"}, terminal_width=100
        )
        assert said.exit_code == 0, said.output
        parts.append(f"## {name}\n\n```text\n{said.output.strip()}\n```")
    return "\n\n".join(parts)


def rates() -> str:
    """The known rates, but for those that follow from others."""
    from onlinecal.report.catalogue import rows

    known = [rate for rate in rows("rates") if rate["kind"] == "rates"]
    head = ("total of", "rate", "exponent", "source")
    return _table(head, ([f"`{r['name']}`", r["summary"], r["exponent"], r["known"]] for r in known))


def catalogue(kind: str) -> str:
    """All of a kind: name, rule, parameters, what is proved and facts of strategies; of measures what is known."""
    from onlinecal.report.catalogue import KINDS, parameters_of, rows

    facts, strategies, lines = FACTS.get(kind, {}), kind in ("forecasters", "natures"), []
    for row in rows(kind):
        thing = KINDS[kind][row["name"]]
        cells, given = [_linked(kind, row["name"], thing)], parameters_of(thing)
        if kind != "measures":
            words = (p["name"] if p["required"] else f"{p['name']} = {p['default']!r}" for p in given)
            cells += [row["summary"], ", ".join(f"`{each}`" for each in words)]
        if strategies:
            cells.append(row["known"])
            thing = thing if any(p["required"] for p in given) else thing()
        lines.append([*cells, *(_said(getattr(thing, fact)) for fact in facts.values())])
    rule = [] if kind == "measures" else ["what it is", "parameters", *["proved"] * strategies]
    return _table(["name", *rule, *facts], lines)


def _said(fact: Any) -> str:
    """A fact in words; of a sight its name."""
    from onlinecal.report.catalogue import said

    return getattr(fact, "name", None) or (fact if isinstance(fact, str) else said(fact))


def _linked(kind: str, name: str, thing: Any) -> str:
    """A name, with its place in the reference where it has one."""
    if kind not in FACTS:
        return f"`{name}`"
    own = name if kind == "measures" else thing.__name__
    return f"[`{name}`](reference/{ELSEWHERE.get(name, f'{kind}.md#onlinecal.{kind}.{own}')})"


def _table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; an empty cell has a dash."""
    rows = [[str(cell).replace("|", "∣") or "–" for cell in line] for line in (head, *lines)]
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def readme() -> str:
    """README.md, the first page: its links into docs/ lead to pages, others are words."""
    page = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8").replace("](docs/", "](")
    return re.sub(r"\[([^\]]+)\]\((?:scenarios/[^)]*|[A-Z]+\.\w+)\)", r"\1", page)


#: what other comments stand for than a kind
OTHERS = {"commands": commands, "rates": rates, "readme": readme}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for each page."""

    def made(found: re.Match[str]) -> str:
        return OTHERS[found[1]]() if found[1] in OTHERS else catalogue(found[1])

    return re.sub(r"<!-- the site has (\w+) here -->", made, markdown)
