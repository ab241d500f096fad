"""Commands that print tables of results."""

from __future__ import annotations

from typing import Annotated

import typer

from onlinecal.commands.base import Json, Results, study_of


def compare(
    results: Results,
    measure: Annotated[
        str | None, typer.Option(help="which column; default cdl, or the first that there is")
    ] = None,
    nature: Annotated[list[str] | None, typer.Option(help="which natures; may be repeated")] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="forecasters × all measures, a table for each nature")
    ] = False,
    ranking: Annotated[
        bool, typer.Option("--ranking", help="ranks of the forecasters, and which orders are beyond doubt")
    ] = False,
    pareto: Annotated[
        tuple[str, str] | None,
        typer.Option("--pareto", metavar="MEASURE MEASURE", help="who is not dominated in two measures"),
    ] = None,
    markdown: Annotated[
        bool,
        typer.Option(
            "--markdown", help="as Markdown; by itself the exponents of all columns beside the proven ones"
        ),
    ] = False,
    paired: Annotated[
        bool,
        typer.Option("--paired", help="differences between forecasters on the same outcomes, run by run"),
    ] = False,
    people: Annotated[
        bool, typer.Option("--people", help="the swap regret of those who join and leave")
    ] = False,
    as_json: Json = False,
) -> None:
    """Forecasters × natures for one measure: final totals, exponents with 95 % intervals, and the best known rates."""
    from onlinecal.report.comparing import answer

    flags = {"paired": paired, "people": people, "all": all_, "ranking": ranking}
    study = study_of(results)
    some = study.only(None, nature) if nature else study
    answer(some, flags, measure, pareto, markdown=markdown, as_json=as_json)
