"""Commands that work on results files: what is asked later, tables for other tools, several as one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from onlinecal.commands.base import Overwrite, Results, argument, aside, option, study_of
from onlinecal.core.words import number_of


def measure_again(
    results: Results,
    measure: Annotated[
        list[str] | None, option("a name, module:function, or a table { name = ..., ... }; may be repeated")
    ] = None,
    task: Annotated[list[str] | None, option("the same of a decision task; may be repeated")] = None,
) -> None:
    """Add columns to a results file from the level sets that it keeps, without playing."""
    from onlinecal.core.errors import InvalidData
    from onlinecal.report.kept import panel_of
    from onlinecal.study.again import measure_file_again
    from onlinecal.study.store import Store

    with Store.open(results) as store:
        longest = max((cell.horizon for cell in store.plan()), default=None)
    with aside():
        count, reasons = measure_file_again(results, panel_of(measure or [], task or [], longest))
    for (name, why), cells in reasons.items():
        print(
            f"note: {name!r} is not computed, since {why}: {number_of(len(cells), 'cell')}, such as {cells[0]}; "
            "in a scenario, `onlinecal run SCENARIO --resume` plays it",
            file=sys.stderr,
        )
    if reasons and not count:
        raise InvalidData(f"{results}: nothing can be computed from what it keeps; nothing has changed")
    if count:
        print(f"{results}: new columns of {number_of(count, 'cell')}")
    else:
        print(f"{results} has all of it")


def export(
    results: Results,
    output: Annotated[Path, option("a .csv or .parquet file", "--output", "-o")],
    overwrite: Overwrite = False,
) -> None:
    """Write all totals as one table, a row for each number, for other tools."""
    from onlinecal.report.kept import export

    print(f"wrote {output}: {number_of(export(study_of(results), output, overwrite), 'row')}")


def merge(
    results: Annotated[list[Path], argument("results files", "RESULTS RESULTS ...")],
    output: Annotated[Path, option("the new results file", "--output", "-o")],
    overwrite: Overwrite = False,
) -> None:
    """Write several results files into one: all cells, runs and columns; what contradicts itself is refused."""
    from onlinecal.study.copies import merge

    for remark in merge(results, output, overwrite=overwrite):
        print(f"note: {remark}", file=sys.stderr)
    print(f"results: {output}")
