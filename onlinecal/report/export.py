"""Totals as one long table, a row for each number, and its files for other tools."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.writing import whole
from onlinecal.study.played import Played, Results

if TYPE_CHECKING:
    import pandas as pd

#: endings of a file's name
FORMATS = ".csv", ".parquet"
#: the words on a column
WORDS = ("column", "kind", "measure", "options", "end", "stream", "task", "response")


def long_table(
    each: Sequence[tuple[Played, str]],
    names: Sequence[str],
    said: Sequence[Sequence[Any]],
    at: Mapping[str, Callable[[Played], Any]],
) -> pd.DataFrame:
    """A row for each total of each cell and column, with what is `said` of these, and of each checkpoint (`at`)."""
    import pandas as pd

    if not each:
        return pd.DataFrame(columns=[*names, *at, "run", "total"])
    totals = [cell.totals[name] for cell, name in each]
    # One frame, and not one for each of perhaps thousands of tables.
    whose = np.repeat(np.arange(len(each)), [table.size for table in totals])
    long = pd.DataFrame(said, columns=list(names)).loc[whose].reset_index(drop=True)
    for name, values in at.items():
        pairs = [(np.asarray(values(cell), np.int64), cell.totals[column].shape[1]) for cell, column in each]
        long[name] = np.concatenate([np.repeat(rounds, runs) for rounds, runs in pairs])
    long["run"] = np.concatenate([np.tile(np.arange(table.shape[1]), len(table)) for table in totals])
    long["total"] = np.concatenate([table.ravel() for table in totals])
    return long


def tidy(results: Results) -> pd.DataFrame:
    """A row for each total T·μ: the players (nature without its schedule), the checkpoint, and words on the column.

    ``open`` has the number of questions without a known outcome; ``column`` is the whole name, the others of `WORDS`
    are those of `onlinecal.core.columns`, "" for none.
    """
    words = {
        column: (
            column.name, column.kind, column.measure, ", ".join(f"{key}={value}" for key, value in column.options),
            column.end, column.stream, column.task, column.response,
        )
        for column in {column for cell in results.cells for column in cell.columns}
    }  # fmt: skip
    each = [(cell, column) for cell in results.cells for column in cell.columns]
    said = [
        (cell.forecaster, *(cell.schedule if cell.schedule[0] else (cell.nature, "")), cell.horizon, *words[column])
        for cell, column in each
    ]  # fmt: skip
    names = ["forecaster", "nature", "schedule", "horizon"]
    table = long_table(
        [(cell, column.name) for cell, column in each], [*names, *WORDS], said,
        {"round": lambda cell: cell.rounds, "open": lambda cell: cell.open or [0] * len(cell.rounds)},
    )  # fmt: skip
    return table[[*names, "round", "run", "open", *WORDS, "total"]]


def export(results: Results, path: Path, overwrite: bool = False) -> int:
    """Writes the table into a .csv or .parquet file that is whole or not there; returns the number of rows."""
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
