"""The page of a study: one HTML file that needs nothing else; what it says, and how it is written."""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.progress import Progress
from onlinecal.growth.words import legend
from onlinecal.measures import MEASURES
from onlinecal.report import page_rows
from onlinecal.report.console import grown
from onlinecal.report.curves import Study, left_out

#: so many pictures of curves are drawn at most, with so many forecasters each and so many lines in all; tables have all
MOST = 24
FORECASTERS = 12
LINES = 240
#: pairs up to which all exponents fit one picture
CELLS = 400


@dataclass(frozen=True)
class Picture:
    """A drawing with what it shows.

    Attributes
    ----------
    title, caption : str
    svg : str
        The drawing itself.
    wide : bool
        Whether it takes the whole width of the page.
    """

    title: str
    caption: str
    svg: str
    wide: bool = False

    @property
    def address(self) -> str:
        """The drawing as an address that needs no network."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()


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
    tables : list of page_rows.Table
    pictures : list of Picture
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
    tables: list[page_rows.Table]
    pictures: list[Picture]
    left: str
    scenario: str
    commands: list[str]
    measures: list[tuple[str, str]]


def page_of(study: Study, meta: Mapping[str, str], planned: int, source: str) -> Page:
    """What the page of a study says.

    Parameters
    ----------
    study : Study
        With at least one cell.
    meta : mapping
        What its results file says of itself: scenario, version.
    planned : int
        How many cells were to be played.
    source : str
        The name of the results file.
    """
    with Progress(2 + MOST) as progress:
        progress.describe("tables")
        rows = grown(study, page_rows.columns(study))
        tables = page_rows.tables(study, rows)
        progress.advance(2)
        shown = page_rows.main_columns(study)
        fitted = {row["measure"] for row, growth in rows if growth is not None}
        pictures, left = _pictures(study, [m for m in shown if m in fitted][:4], progress)
    said = [
        *page_rows.bounds(study),
        *page_rows.beyond(rows),
    ]
    notes = [
        "Mean total T·μ over the runs ± half of the 95 % interval of that mean by Student's t, each by itself.",
        *(
            f"{part[0].upper()}{part[1:]}."
            for part in legend([growth for _, growth in rows if growth is not None])
        ),
    ]
    late = left_out(study.curves(shown))
    notes += [late] if late else []
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
            ("processor time of playing", _time(seconds)),
            ("results file", source),
        ],
        said=said,
        notes=notes,
        lowest=page_rows.lowest(study),
        tables=tables,
        pictures=pictures,
        left=left,
        scenario=meta.get("scenario", ""),
        commands=_commands(name, source, bool(meta.get("scenario"))),
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
    environment.filters["breakable"] = _breakable
    return environment.get_template("page.html").render(page=page)


def _breakable(text: str) -> str:
    """A name that may be broken into lines after ``_ [ ( , =``, and nowhere else."""
    from markupsafe import Markup, escape

    return Markup("").join(
        Markup("{}<wbr>").format(piece) if piece[-1] in "_[(,=" else escape(piece)
        for piece in re.findall(r"[^_\[(,=]*[_\[(,=]|[^_\[(,=]+", text)
    )


def write(text: str, path: Path) -> None:
    """Writes a page; the file is there whole or not at all.

    Raises
    ------
    InvalidParameter
        A place that cannot be written.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8", newline="\n")
        os.replace(partial, path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise InvalidParameter(f"{path} cannot be written: {error.strerror or error}") from None


# ---------------------------------------------------------------- pictures


def _pictures(study: Study, grown: Sequence[str], progress: Progress) -> tuple[list[Picture], str]:
    """Curves of each measure against each nature, and the exponents of those that grow."""
    from onlinecal.report import exponent_plot, plots

    found: list[Picture] = []
    shown = [name for name in page_rows.main_columns(study) if not study.columns[name].end]
    pairs = [(nature, measure) for nature in study.natures for measure in shown]
    most = min(MOST, max(4, LINES // min(len(study.forecasters), FORECASTERS)))
    fewer = 0
    for nature, measure in pairs[:most]:
        progress.describe(f"{measure} against {nature}")
        curves = study.only(natures=[nature]).curves([measure])
        if len(curves) > FORECASTERS:
            fewer = max(fewer, len(curves))
            last = sorted(float(curve.mean[-1]) for curve in curves)[FORECASTERS - 1]
            curves = [curve for curve in curves if curve.mean[-1] <= last][:FORECASTERS]
        if curves:
            figure = _figure(5.2, 4.6 + 0.12 * len(curves))
            axis = figure.subplots()
            plots.plot_curves(curves, axes=axis)
            axis.set_title("")  # the page says it above
            found.append(Picture(f"{measure} against {nature}", plots.caption(curves), _svg(figure)))
        progress.advance(1)
    left = []
    if len(pairs) > most:
        left.append(
            f"{len(pairs) - most:,} of {len(pairs):,} pictures of a measure against a nature are left out."
        )
    if fewer:
        left.append(
            f"Of up to {fewer:,} forecasters those {FORECASTERS} are drawn whose mean total is lowest at the largest T."
        )
    if left:
        left.append("`onlinecal plot RESULTS` draws them with --measure, --nature and --forecaster.")
    if grown and 1 < len(study.natures) * len(study.forecasters) <= CELLS:
        progress.describe("exponents")
        axes = exponent_plot.heat_map(study, grown)
        said = exponent_plot.caption(study, grown)
        found.append(Picture("Growth exponents", said, _svg(axes.flat[0].figure), True))
    return found, " ".join(left)


def _figure(wide: float, high: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(wide, high), layout="constrained")


def _svg(figure: Any) -> str:
    """A figure as text that is the same for the same figure."""
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "onlinecal", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return text.getvalue()


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
                "What a decision maker who best-responds to the forecasts could have gained by replacing each forecast "
                "by another one, the same replacement for all rounds with that forecast."
            )
    return list(found.items())


def _commands(name: str, source: str, scenario: bool) -> list[str]:
    if not scenario:
        return [f"onlinecal compare {source}", f"onlinecal plot {source}"]
    return [
        "pip install onlinecal",
        f"onlinecal run {name}.toml  # the scenario below, saved under this name",
        f"onlinecal report results/{name}.db",
    ]


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
