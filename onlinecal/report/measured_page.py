"""What `onlinecal measure` found, as one HTML page that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from onlinecal.forecasts.measuring import Measured, Report
from onlinecal.report import measured
from onlinecal.report.page_pictures import Picture, drawn_twice

#: columns of which diagrams are drawn, at most
DRAWN = 12


def page_of(report: Report) -> str:
    """The page as text; everything that somebody named is escaped.

    Parameters
    ----------
    report : Report
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sections: list[dict[str, Any]] = [
        {
            "name": column.name,
            "about": measured.about(column),
            "cautions": column.cautions,
            "decision": measured.decision(column),
            "grids": measured.grids(report, column),
            "picture": _picture(column) if i < DRAWN else None,
        }
        for i, column in enumerate(report.columns)
    ]
    together = [measured.side_by_side(report), measured.differences(report) if report.differences else None]
    return environment.get_template("measured.html").render(
        heading=measured.heading(report),
        report=report,
        sections=sections,
        together=[grid for grid in together if grid is not None],
        said=[measured.sentence(said) for said in report.said],
        remarks=measured.remarks(report),
    )


def _picture(column: Measured) -> Picture:
    from onlinecal.report import reliability_plot

    def plot(dark: bool) -> Any:
        return np.ravel(reliability_plot.plot_reliability(column.gamma, dark=dark))[0].figure

    light, dark = drawn_twice(plot)
    return Picture(f"Reliability of {column.name}", reliability_plot.caption(column.gamma), light, dark)
