"""Commands that print tables of results."""

from __future__ import annotations

from typing import Annotated

from onlinecal.commands.base import Json, Results, option, study_of


def compare(
    results: Results,
    measure: Annotated[str | None, option("which column; default cdl, or the first that there is")] = None,
    nature: Annotated[list[str] | None, option("which natures; may be repeated")] = None,
    all_: Annotated[bool, option("forecasters × all measures, a table for each nature", "--all")] = False,
    ranking: Annotated[
        bool, option("ranks of the forecasters, and which orders are beyond doubt", "--ranking")
    ] = False,
    pareto: Annotated[
        tuple[str, str] | None,
        option("who is not dominated in two measures", "--pareto", metavar="MEASURE MEASURE"),
    ] = None,
    markdown: Annotated[
        bool,
        option("as Markdown; by itself the exponents of all columns beside the proven ones", "--markdown"),
    ] = False,
    paired: Annotated[
        bool, option("differences between forecasters on the same outcomes, run by run", "--paired")
    ] = False,
    people: Annotated[bool, option("the swap regret of those who join and leave", "--people")] = False,
    as_json: Json = False,
) -> None:
    """Forecasters × natures for one measure: final totals, exponents with 95 % intervals, and the best known rates."""
    from onlinecal.report.comparing import answer

    flags = {"paired": paired, "people": people, "all": all_, "ranking": ranking}
    study = study_of(results)
    some = study.only(None, nature) if nature else study
    answer(some, flags, measure, pareto, markdown=markdown, as_json=as_json)
