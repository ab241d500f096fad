"""The page of a study: one HTML file that needs nothing else; what it says, and how it is written."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onlinecal.core.progress import Progress
from onlinecal.core.writing import whole
from onlinecal.growth.words import legend
from onlinecal.measures import MEASURES
from onlinecal.report import page_rows
from onlinecal.report.console import grown, of_totals
from onlinecal.report.curves import Study
from onlinecal.report.page_pictures import MOST, Picture, gallery
from onlinecal.study.entries import Planned


@dataclass(frozen=True)
class Page:
    """All that the page of a study says.

    Attributes
    ----------
    title, state : str
        State: how much of the study has been played.
    asked, versions : list of (term, text)
    said, notes : list of str
        The summary in sentences; what the signs in the tables mean.
    lowest : page_rows.Table, optional
        Of the summary.
    meaning : str
        What the marks in it mean.
    missing : page_rows.Table, optional
        What was not played, and why.
    tables : list of page_rows.Table
    shared : str
        What the captions of all `curves` have in common.
    curves, others : list of Picture
        Of a measure against a nature; all else.
    left : str
        Which pictures were left out; "" for none.
    scenario : str
        The text of the file, "" for a study that was played from Python.
    commands : list of str
        How to play it again.
    measures : list of (name, text)
        What the measures are.
    """

    title: str
    state: str
    asked: list[tuple[str, str]]
    versions: list[tuple[str, str]]
    said: list[str]
    notes: list[str]
    lowest: page_rows.Table | None
    meaning: str
    missing: page_rows.Table | None
    tables: list[page_rows.Table]
    shared: str
    curves: list[Picture]
    others: list[Picture]
    left: str
    scenario: str
    commands: list[str]
    measures: list[tuple[str, str]]

    @property
    def pictures(self) -> list[Picture]:
        """All of them."""
        return [*self.curves, *self.others]


def page_of(
    study: Study,
    meta: Mapping[str, str],
    planned: int,
    source: str,
    failed: Sequence[tuple[Planned, str, str]] = (),
) -> Page:
    """What the page of a study says.

    Parameters
    ----------
    study : Study
        With at least one cell.
    meta : mapping
        What its results file says of itself: scenario, options, version, incompatible.
    planned : int
        How many cells were to be played.
    source : str
        The name of the results file.
    failed : sequence of (Planned, str, str), optional
        Cells that could not be played, why, and when that was last tried, as `Status.failed` has them.
    """
    with Progress(2 + MOST, unit="parts") as progress:
        progress.describe("tables")
        rows = grown(study, page_rows.columns(study))
        tables = page_rows.tables(study, rows)
        progress.advance(2)
        shown = page_rows.main_columns(study)
        fitted = {row["measure"] for row, growth in rows if growth is not None}
        drawn = gallery(
            study,
            [name for name in shown if not study.columns[name].end],
            [m for m in shown if m in fitted][:4],
            progress,
        )
    said = [
        *page_rows.bounds(study),
        *page_rows.beyond(rows),
    ]
    parts = [of_totals([row for row, _ in rows]), *legend(growth for _, growth in rows)]
    notes = [*(f"{part[0].upper()}{part[1:]}." for part in parts), *page_rows.remarks(rows)]
    lowest = page_rows.lowest(study)
    done, seconds = len(study.cells), sum(cell.seconds for cell in study.cells)
    name = study.name
    return Page(
        title=study.title or name,
        state=f"{done:,} of {planned:,} cells are finished."
        if done < planned
        else f"All {done:,} cells are finished.",
        asked=page_rows.asked(study),
        versions=[
            ("onlinecal", meta.get("version", "unknown")),
            ("time of playing, of all games added", _time(seconds)),
            ("results file", source),
        ],
        said=said,
        notes=notes,
        lowest=lowest[0] if lowest else None,
        meaning=lowest[1] if lowest else "",
        missing=page_rows.not_played(failed, json.loads(meta.get("incompatible", "[]"))),
        tables=tables,
        shared=drawn.shared,
        curves=drawn.curves,
        others=drawn.others,
        left=" ".join(drawn.left),
        scenario=meta.get("scenario", ""),
        commands=_commands(name, source, bool(meta.get("scenario")), meta.get("options", "")),
        measures=_measures(study, shown),
    )


def html(page: Page) -> str:
    """The page as text; everything that somebody named is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"breakable": _breakable, "coded": _coded}
    return environment.get_template("page.html").render(page=page)


def _breakable(text: str) -> str:
    """A name that may be broken into lines after ``_ [ ( , =``, and nowhere else."""
    from markupsafe import Markup, escape

    return Markup("").join(
        Markup("{}<wbr>").format(piece) if piece[-1] in "_[(,=" else escape(piece)
        for piece in re.findall(r"[^_\[(,=]*[_\[(,=]|[^_\[(,=]+", text)
    )


def _coded(text: str) -> str:
    """A text in which what stands between two backticks is code."""
    from markupsafe import Markup, escape

    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if i % 2 else escape(piece)
        for i, piece in enumerate(text.split("`"))
    )


def write(text: str, path: Path) -> None:
    """Writes a page; the file is there whole or not at all.

    Raises
    ------
    InvalidParameter
        A place that cannot be written.
    """
    with whole(path) as new:
        new.write_text(text, encoding="utf-8", newline="\n")


# ---------------------------------------------------------------- words


def _measures(study: Study, shown: Sequence[str]) -> list[tuple[str, str]]:
    """What the measures are, of the catalogue's; of a task that is what its swap regret is."""
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
