"""The totals of a study as one table for other tools: a row for each number."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.writing import whole
from onlinecal.study.played import Played, Results

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

    return pd.concat([part for cell in results.cells for part in _parts(cell)], ignore_index=True)


def _parts(cell: Played) -> list[pd.DataFrame]:
    import pandas as pd

    nature, schedule = cell.schedule if cell.schedule[0] else (cell.nature, "")
    parts = []
    for column in cell.columns:
        totals = cell.totals[column.name]
        n, runs = totals.shape
        said: dict[str, Any] = {
            "forecaster": cell.forecaster,
            "nature": nature,
            "schedule": schedule,
            "horizon": cell.horizon,
            "round": np.repeat(cell.rounds, runs),
            "run": np.tile(np.arange(runs), n),
            "open": np.repeat(np.array(cell.open or [0] * n, dtype=np.int64), runs),
            "column": column.name,
            "kind": column.kind,
            "measure": column.measure,
            "options": ", ".join(f"{key}={value}" for key, value in column.options),
            "end": column.end,
            "stream": column.stream,
            "task": column.task,
            "response": column.response,
            "total": totals.ravel(),
        }
        parts.append(pd.DataFrame(said))
    return parts


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
