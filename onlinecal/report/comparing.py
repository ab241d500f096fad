"""What `onlinecal compare` prints: one of several tables, for people, as Markdown or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.report import console as tables
from onlinecal.report.curves import Study
from onlinecal.report.markdown import exponents_markdown, fronts_markdown, ranking_markdown, totals_markdown
from onlinecal.report.paired import paired
from onlinecal.report.pareto import fronts
from onlinecal.report.people_rows import people_rows
from onlinecal.report.ranking import ranking
from onlinecal.report.summaries import print_paired, print_people
from onlinecal.report.verdicts import print_fronts, print_ranking


@dataclass(frozen=True)
class Question:
    """Which table is asked for.

    Attributes
    ----------
    table : str
        ``"paired"``, ``"people"``, ``"all"``, ``"ranking"``, ``"pareto"``; "" for totals and exponents of a measure.
    measure : str or None
        None for cdl, or the first that there is.
    pareto : (str, str) or None
    form : {"text", "markdown", "json"}
    """

    table: str
    measure: str | None
    pareto: tuple[str, str] | None
    form: str

    @classmethod
    def of(
        cls,
        tables: Mapping[str, bool],
        measure: str | None,
        pareto: tuple[str, str] | None,
        *,
        markdown: bool,
        as_json: bool,
    ) -> Question:
        """From the options of the command.

        Raises
        ------
        InvalidParameter
            Options that contradict each other.
        """
        if markdown and as_json:
            raise InvalidParameter("--markdown and --json are two forms of output; expected one of the two")
        asked = [name for name, on in {**tables, "pareto": pareto}.items() if on]
        if markdown and asked and asked[0] in ("paired", "people"):
            asked.insert(0, "markdown")
        if len(asked) > 1:
            raise InvalidParameter(f"--{asked[0]} and --{asked[1]} are two tables; expected one of the two")
        table = asked[0] if asked else ""
        if measure and table in ("people", "all", "pareto"):
            raise InvalidParameter(f"--{table} is of other columns; expected no --measure")
        return cls(table, measure, pareto, "json" if as_json else "markdown" if markdown else "text")


def answer(study: Study, question: Question) -> None:
    """Prints the table.

    Raises
    ------
    UnknownName, InvalidParameter
    """
    measure = question.measure or ("cdl" if "cdl" in study.measures else study.measures[0])
    if measure not in study.measures:
        raise UnknownName.of("measure", measure, study.measures)
    match question.table:
        case "people":
            found = people_rows(study)
            if question.form == "json":
                tables.print_json([people.as_json() for people in found])
            else:
                print_people(found)
        case "paired":
            _paired(study, measure, question.form)
        case "all":
            _all(study, question.form)
        case "ranking":
            order = ranking(study, measure)
            if question.form == "json":
                tables.print_json(order.as_json())
            elif question.form == "markdown":
                print(ranking_markdown(order))
            else:
                print_ranking(order)
        case "pareto":
            assert question.pareto is not None
            best = fronts(study, *question.pareto)
            if question.form == "json":
                tables.print_json([front.as_json() for front in best])
            elif question.form == "markdown":
                print(fronts_markdown(best))
            else:
                print_fronts(best)
        case _:
            if question.form == "json":
                tables.print_json(tables.totals(study, [measure]))
            elif question.form == "markdown":
                print(exponents_markdown(study))
            else:
                tables.print_compare(study, measure)


def _all(study: Study, form: str) -> None:
    if form == "json":
        tables.print_json(tables.totals(study))
    elif form == "markdown":
        print(totals_markdown(study))
    else:
        tables.print_totals(study, study.title or study.name, study.measures)


def _paired(study: Study, measure: str, form: str) -> None:
    found, refused = paired(study, measure)
    if form == "text":
        print_paired(found, refused)
        return
    for line in refused:
        print(f"not compared: {line}", file=sys.stderr)
    tables.print_json([difference.as_json() for difference in found])
