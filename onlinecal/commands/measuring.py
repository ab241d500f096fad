"""The command that measures people's own forecasts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onlinecal.commands.base import Delimiter, Encoding, Json, Percent, Positive


def measure(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="a CSV (.gz) or Parquet file with forecasts and outcomes, or - for stdin"
        ),
    ],
    forecast: Annotated[
        list[str] | None, typer.Option("--forecast", "-f", help="a column of probabilities; may be repeated")
    ] = None,
    outcome: Annotated[str | None, typer.Option("--outcome", "-y", help="the column of outcomes")] = None,
    positive: Positive = None,
    by: Annotated[
        list[str] | None, typer.Option(help="a column of groups, each measured by itself; may be repeated")
    ] = None,
    time: Annotated[str | None, typer.Option(help="a column of times or dates, in order")] = None,
    weight: Annotated[str | None, typer.Option(help="a column of weights")] = None,
    name: Annotated[
        list[str] | None, typer.Option("--measure", "-m", help="which measures; may be repeated; default all")
    ] = None,
    draws: Annotated[int, typer.Option(help="for intervals, and for p-values; 0 for neither")] = 200,
    level: Annotated[float, typer.Option(help="of the intervals")] = 0.95,
    seed: Annotated[int, typer.Option(help="of the draws")] = 0,
    percent: Percent = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="leave out rows without a forecast or an outcome")
    ] = False,
    sort: Annotated[bool, typer.Option("--sort", help="bring rows into the order of --time")] = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    grid: Annotated[
        int, typer.Option(help="steps of the grid for more than 30 000 different forecasts")
    ] = 4096,
    in_parts: Annotated[
        bool | None,
        typer.Option(
            "--in-parts/--in-memory",
            show_default=False,
            help="read a file in parts, as is done with large ones, or whole, as is done with others",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="of a Dask cluster that reads the file in parts"),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", "-o", help="also write an HTML page that needs no other file")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure your own forecasts: every measure with its interval, the worst decision, scores, cautions."""
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.forecasts.measuring import Settings
    from onlinecal.forecasts.reading import Asked
    from onlinecal.forecasts.source import report_of
    from onlinecal.report import measured
    from onlinecal.report.tables import print_json

    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        raise InvalidParameter(f"{html}: expected a name that ends in .html")
    asked = Asked(
        tuple(forecast or ()), outcome, positive, tuple(by or ()), time, weight, percent, skip_missing, sort
    )
    settings = Settings(draws, level, seed, tuple(name) if name else None, grid=grid)
    report = report_of(file, asked, settings, delimiter, encoding, in_parts, scheduler)
    if html is not None:
        from onlinecal.report.measured_page import page_of
        from onlinecal.report.page import write

        write(page_of(report), html)
    if as_json:
        print_json(measured.data(report))
        return
    print(measured.text(report))
    if html is not None:
        print(f"wrote {html}")
