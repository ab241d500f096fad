"""The report of `onlinecal measure`, as one HTML page that needs nothing else."""

from __future__ import annotations

from typing import Any

from onlinecal.forecasts.measuring import Measured, Report
from onlinecal.report import measured
from onlinecal.report.page import rendered
from onlinecal.report.page_pictures import Picture, drawn_twice

#: columns of which diagrams are drawn, at most
DRAWN = 12
#: levels up to which each is a point, and nothing is smoothed
FEW = 20


def page_of(report: Report) -> str:
    """The page as text; names that were given are escaped."""
    sections: list[dict[str, Any]] = [
        {
            "name": column.name,
            "about": measured.about(column),
            "cautions": column.cautions,
            "decision": measured.decision(column),
            "grids": measured.grids(report, column),
            "pictures": _pictures(column) if i < DRAWN else [],
        }
        for i, column in enumerate(report.columns)
    ]
    many = len(report.columns)
    few = [f"Diagrams are drawn of the first {DRAWN} columns of {many}."] if many > DRAWN else []
    together = [measured.side_by_side(report), measured.differences(report) if report.differences else None]
    return rendered(
        "measured.html",
        heading=measured.heading(report),
        report=report,
        sections=sections,
        together=[grid for grid in together if grid is not None],
        said=[measured.sentence(said) for said in report.said],
        remarks=[*few, *measured.remarks(report)],
    )


def _pictures(column: Measured) -> list[Picture]:
    """The mean outcome near each prediction (at each, where they are few), and the best monotone recalibration."""
    from onlinecal.report.reliability_plot import plot_reliability

    few = column.gamma.levels <= FEW
    kinds = {"points" if few else "smooth": "levels" if few else "smoothed", "corp": "monotone (CORP)"}
    found = []
    for kind, word in kinds.items():

        def plot(dark: bool, kind: Any = kind) -> Any:
            return plot_reliability(column.gamma, kind=kind, dark=dark).figure

        said = plot_reliability.caption(column.gamma, kind=kind)
        found.append(Picture(f"Reliability of {column.name}, {word}", said, *drawn_twice(plot)))
    return found
