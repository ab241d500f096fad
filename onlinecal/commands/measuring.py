"""The command that measures people's own forecasts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from onlinecal.commands.base import Delimiter, Encoding, Json, Percent, Positive, argument, option


def measure(
    file: Annotated[
        str, argument("a CSV (.gz) or Parquet file with forecasts and outcomes, or - for stdin", "FILE")
    ],
    forecast: Annotated[
        list[str] | None, option("a column of probabilities; may be repeated", "--forecast", "-f")
    ] = None,
    outcome: Annotated[str | None, option("the column of outcomes", "--outcome", "-y")] = None,
    positive: Positive = None,
    by: Annotated[
        list[str] | None, option("a column of groups, each measured by itself; may be repeated")
    ] = None,
    time: Annotated[str | None, option("a column of times or dates, in order")] = None,
    weight: Annotated[str | None, option("a column of weights")] = None,
    name: Annotated[
        list[str] | None, option("which measures; may be repeated; default all", "--measure", "-m")
    ] = None,
    draws: Annotated[int, option("for intervals, and for p-values; 0 for neither")] = 200,
    level: Annotated[float, option("of the intervals")] = 0.95,
    seed: Annotated[int, option("of the draws")] = 0,
    percent: Percent = False,
    skip_missing: Annotated[
        bool, option("leave out rows without a forecast or an outcome", "--skip-missing")
    ] = False,
    sort: Annotated[bool, option("bring rows into the order of --time", "--sort")] = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    grid: Annotated[int, option("steps of the grid for more than 30 000 different forecasts")] = 4096,
    in_parts: Annotated[
        bool | None,
        option(
            "read a file in parts, as is done with large ones, or whole, as is done with others",
            "--in-parts/--in-memory",
            show_default=False,
        ),
    ] = None,
    scheduler: Annotated[
        str | None, option("of a Dask cluster that reads the file in parts", "--scheduler", metavar="ADDRESS")
    ] = None,
    html: Annotated[
        Path | None, option("also write an HTML page that needs no other file", "--html", "-o")
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
        from onlinecal.report.measured import page_of
        from onlinecal.report.page import write

        write(page_of(report), html)
    if as_json:
        print_json(measured.data(report))
        return
    print(measured.text(report))
    if html is not None:
        print(f"wrote {html}")
