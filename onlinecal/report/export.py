"""The totals of a study as one table for other tools: a row for each number."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.writing import whole
from onlinecal.report.long_table import long_table
from onlinecal.study.played import Results

if TYPE_CHECKING:
    import pandas as pd

#: what a file's name may end with
FORMATS = ".csv", ".parquet"


def tidy(results: Results) -> pd.DataFrame:
    """A row for each total.

    Returns
    -------
    DataFrame
        ``forecaster``, ``nature`` (without the schedule), ``schedule``, ``horizon``, ``round``, ``run``, ``open`` (how
        many questions have no known outcome then); what the total is of: ``column`` (its whole name), ``kind``,
        ``measure``, ``options``, ``end``, ``stream``, ``task``, ``response`` (each as in `onlinecal.core.columns`, ""
        for none); and ``total``, T·μ.
    """
    each = [(cell, column) for cell in results.cells for column in cell.columns]
    who = [
        (
            cell.forecaster,
            *(cell.schedule if cell.schedule[0] else (cell.nature, "")),
            cell.horizon,
            *_words(column),
        )
        for cell, column in each
    ]
    names = ["forecaster", "nature", "schedule", "horizon", *WORDS]
    said = {name: [words[place] for words in who] for place, name in enumerate(names)}
    at: dict[str, list[Any]] = {
        "round": [cell.rounds for cell, _ in each],
        "open": [cell.open or [0] * len(cell.rounds) for cell, _ in each],
    }
    totals = [cell.totals[column.name] for cell, column in each]
    table = long_table(said, at, totals)
    return table[[*names[:4], "round", "run", "open", *WORDS, "total"]]


#: what is said of a column
WORDS = "column", "kind", "measure", "options", "end", "stream", "task", "response"


@lru_cache(maxsize=1024)
def _words(column: Column) -> tuple[str, ...]:
    options = ", ".join(f"{key}={value}" for key, value in column.options)
    return (
        column.name, column.kind, column.measure, options, column.end, column.stream, column.task, column.response
    )  # fmt: skip


def export(results: Results, path: Path, overwrite: bool = False) -> int:
    """Writes the table into a file that is whole or not there; how many rows it has.

    Parameters
    ----------
    results : Results
    path : Path
        Its end says the format: ``.csv``, in which every number has all its digits and an infinite one is ``inf``, or
        ``.parquet``.
    overwrite : bool, default False
        Whether an existing file is replaced.

    Raises
    ------
    InvalidParameter
        Another end, Parquet without pyarrow; as `writing.whole`.
    """
    if path.suffix not in FORMATS:
        raise InvalidParameter(f"{path}: expected a name that ends with {' or '.join(FORMATS)}")
    if path.suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise InvalidParameter(
            f'{path}: Parquet needs pyarrow; `pip install "onlinecal[data]"` installs it, or choose a name that ends '
            "with .csv"
        )
    with whole(path, overwrite) as new:
        table = tidy(results)
        if path.suffix == ".csv":
            table.to_csv(new, index=False)
        else:
            table.to_parquet(new, index=False)
    return len(table)
