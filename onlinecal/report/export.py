"""The totals of a study as one table for other tools: a row for each number."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.writing import whole
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
    import pandas as pd

    # Of each column of each cell what is the same in all its rows stands in a row of `said`: a frame for each of
    # thousands of cells would take far longer than the numbers.
    said, sizes, rounds, runs, open, totals = [], [], [], [], [], []
    for cell in results.cells:
        nature, schedule = cell.schedule if cell.schedule[0] else (cell.nature, "")
        for column in cell.columns:
            values = cell.totals[column.name]
            n, many = values.shape
            said.append((cell.forecaster, nature, schedule, cell.horizon, *_words(column)))
            sizes.append(values.size)
            rounds.append(np.repeat(cell.rounds, many))
            runs.append(np.tile(np.arange(many), n))
            open.append(np.repeat(np.array(cell.open or [0] * n, dtype=np.int64), many))
            totals.append(values.ravel())
    names = ["forecaster", "nature", "schedule", "horizon", *WORDS]
    each = pd.DataFrame(said, columns=names)
    table = each.loc[np.repeat(np.arange(len(each)), sizes)].reset_index(drop=True)
    for place, name, parts in ((4, "round", rounds), (5, "run", runs), (6, "open", open)):
        table.insert(place, name, np.concatenate(parts))
    return table.assign(total=np.concatenate(totals))


#: what is said of a column
WORDS = "column", "kind", "measure", "options", "end", "stream", "task", "response"


@lru_cache(maxsize=1024)
def _words(column: Column) -> tuple[str, ...]:
    options = ", ".join(f"{key}={value}" for key, value in column.options)
    return (
        column.name, column.kind, column.measure, options, column.end, column.stream, column.task, column.response
    )  # fmt: skip


def export(results: Results, path: Path) -> int:
    """Writes the table into a file, which is replaced when the new one is whole; how many rows it has.

    Parameters
    ----------
    results : Results
    path : Path
        Its end says the format: ``.csv``, in which every number has all its digits and an infinite one is ``inf``, or
        ``.parquet``.

    Raises
    ------
    InvalidParameter
        Another end, Parquet without pyarrow, or a place that cannot be written.
    """
    if path.suffix not in FORMATS:
        raise InvalidParameter(f"{path}: expected a name that ends with {' or '.join(FORMATS)}")
    if path.suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise InvalidParameter(
            f'{path}: Parquet needs pyarrow; `pip install "onlinecal[data]"` installs it, or choose a name that ends '
            "with .csv"
        )
    table = tidy(results)
    with whole(path) as new:
        if path.suffix == ".csv":
            table.to_csv(new, index=False)
        else:
            table.to_parquet(new, index=False)
    return len(table)
