"""The page of a study: one HTML file that needs nothing else; its contents, and how it is written."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onlinecal.core.progress import Progress
from onlinecal.core.writing import whole
from onlinecal.measures import MEASURES
from onlinecal.report import page_rows
from onlinecal.report.curves import Study
from onlinecal.report.page_pictures import MOST, Gallery, Picture, gallery
from onlinecal.report.totals import legend_of, totals
from onlinecal.study.entries import Planned


@dataclass(frozen=True)
class Page:
    """The contents of the page of a study."""

    title: str
    #: how much of the study has been played
    state: str
    #: terms with texts
    asked: list[tuple[str, str]]
    versions: list[tuple[str, str]]
    #: the summary in sentences; the meaning of the signs in the tables
    said: list[str]
    notes: list[str]
    #: the table of the summary, and the meaning of its marks
    lowest: page_rows.Table | None
    meaning: str
    #: what was not played
    missing: page_rows.Table | None
    tables: list[page_rows.Table]
    drawn: Gallery
    #: the text of the file, "" for a study that was played from Python
    scenario: str
    #: how to play it again
    commands: list[str]
    #: names with their meaning
    measures: list[tuple[str, str]]

    @property
    def pictures(self) -> list[Picture]:
        """All of them."""
        return [*self.drawn.curves, *self.drawn.others]


def page_of(
    study: Study,
    meta: Mapping[str, str],
    planned: int,
    source: str,
    failed: Sequence[tuple[Planned, str, str]] = (),
) -> Page:
    """The page of a study, with what its results file says of itself.

    `planned` cells were to be played; `source` is the name of the file; `failed` has cells that could not be played,
    why, and when that was last tried.
    """
    with Progress(2 + MOST, unit="parts") as progress:
        progress.describe("tables")
        rows = totals(study, page_rows.columns(study))
        progress.advance(2)
        shown = page_rows.main_columns(study)
        fitted = {row.measure for row in rows if row.exponent is not None}
        whole_ones = [name for name in shown if not study.columns[name].end]
        drawn = gallery(study, whole_ones, [m for m in shown if m in fitted][:4], progress)
    table, meaning = page_rows.lowest(study) or (None, "")
    done, name = len(study.cells), study.name
    finished = f"{done:,} of {planned:,}" if done < planned else f"All {done:,}"
    return Page(
        title=study.title or name,
        state=f"{finished} cells are finished.",
        asked=page_rows.asked(study),
        versions=[
            ("onlinecal", meta.get("version", "unknown")),
            ("time of playing, of all games added", _time(sum(cell.seconds for cell in study.cells))),
            ("results file", source),
        ],
        said=[*page_rows.bounds(study), *page_rows.beyond(rows)],
        notes=[*(f"{part[0].upper()}{part[1:]}." for part in legend_of(rows)), *page_rows.remarks(rows)],
        lowest=table,
        meaning=meaning,
        missing=page_rows.not_played(failed, json.loads(meta.get("incompatible", "[]"))),
        tables=page_rows.tables(study, rows),
        drawn=drawn,
        scenario=meta.get("scenario", ""),
        commands=_commands(name, source, bool(meta.get("scenario")), meta.get("options", "")),
        measures=_measures(study, shown),
    )


def html(page: Page) -> str:
    """The page as text."""
    return rendered("page.html", page=page)


def rendered(template: str, **said: Any) -> str:
    """A page of this folder as text; names that were given are escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"breakable": _breakable, "coded": _coded}
    return environment.get_template(template).render(**said)


def _breakable(text: str) -> str:
    """A name that may be broken into lines after ``_ [ ( , =``, and nowhere else."""
    from markupsafe import Markup, escape

    return Markup("").join(
        Markup("{}<wbr>").format(piece) if piece[-1] in "_[(,=" else escape(piece)
        for piece in re.findall(r"[^_\[(,=]*[_\[(,=]|[^_\[(,=]+", text)
    )


def _coded(text: str) -> str:
    """A text in which the parts between two backticks are code."""
    from markupsafe import Markup, escape

    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if i % 2 else escape(piece)
        for i, piece in enumerate(text.split("`"))
    )


def write(text: str, path: Path) -> None:
    """Writes a page; the file is there whole or not at all."""
    with whole(path) as new:
        new.write_text(text, encoding="utf-8", newline="\n")


def _measures(study: Study, shown: Sequence[str]) -> list[tuple[str, str]]:
    """The meaning of each measure of the catalogue, and of the swap regret of tasks."""
    found: dict[str, str] = {}
    for name in shown:
        column = study.columns[name]
        if column.kind == "measure" and column.measure in MEASURES:
            record = MEASURES[column.measure]
            first = (record.function.__doc__ or "").strip().splitlines()[0]
            found.setdefault(column.measure, f"{first} Source: {record.source}.")
        elif column.of_task:
            found["swap_regret[task]"] = (
                "What a decision maker who acts on the forecasts could have gained by another action in place of the "
                "one taken on each prediction, the same in all rounds with that prediction."
            )
    return list(found.items())


def _commands(name: str, source: str, scenario: bool, options: str) -> list[str]:
    if not scenario:
        return [f"onlinecal compare {shlex.quote(source)}", f"onlinecal plot {shlex.quote(source)}"]
    return [
        "pip install onlinecal",
        " ".join(filter(None, ("onlinecal run", shlex.quote(f"{name}.toml"), options)))
        + "  # the scenario below, saved under this name",
        f"onlinecal report {shlex.quote(f'results/{name}.db')}",
    ]


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
