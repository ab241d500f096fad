"""Every number of a study as one long table, and a file of it for other tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.writing import whole
from onlinecal.study.played import Played

if TYPE_CHECKING:
    import pandas as pd

#: endings of a file's name
FORMATS = ".csv", ".parquet"
#: the columns of a file: words on the game, its numbers, words on the column of totals
EXPORTED = (
    "forecaster", "nature", "schedule", "horizon", "round", "run", "open", "column", "kind", "measure", "options",
    "end", "stream", "task", "response", "total",
)  # fmt: skip


def long_table(cells: Sequence[Played]) -> pd.DataFrame:
    """A row for each total T·μ, with those of `EXPORTED` and ``against``, nature with its schedule.

    ``open`` is the number of questions without a known outcome, ``column`` the whole name of the column.
    """
    import pandas as pd

    each = [(cell, column, cell.totals[column.name]) for cell in cells for column in cell.columns]
    said = pd.DataFrame(
        [
            {
                "forecaster": cell.forecaster, "nature": cell.schedule[0] or cell.nature, "schedule": cell.schedule[1],
                "against": cell.nature, "horizon": cell.horizon, "column": c.name, "kind": c.kind, "measure": c.measure,
                "options": ", ".join(f"{key}={value}" for key, value in c.options), "end": c.end, "stream": c.stream,
                "task": c.task, "response": c.response,
            }
            for cell, c, _ in each
        ],
        columns=[*(name for name in EXPORTED if name not in ("round", "run", "open", "total")), "against"],
    )  # fmt: skip

    def joined(kind: type, parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate([np.empty(0, kind), *parts])

    # One frame, and not one for each of perhaps thousands of tables.
    long = said.loc[np.repeat(np.arange(len(each)), [totals.size for *_, totals in each])]
    return long.reset_index(drop=True).assign(
        round=joined(int, [np.repeat(cell.rounds, totals.shape[1]) for cell, _, totals in each]),
        run=joined(int, [np.tile(np.arange(totals.shape[1]), len(totals)) for *_, totals in each]),
        open=joined(
            int, [np.repeat(cell.open or 0 * cell.rounds, totals.shape[1]) for cell, _, totals in each]
        ),
        total=joined(float, [totals.ravel() for *_, totals in each]),
    )


def export(cells: Sequence[Played], path: Path, overwrite: bool = False) -> int:
    """Writes the table into a .csv or .parquet file that is whole or not there; returns the number of rows."""
    if path.suffix not in FORMATS:
        raise InvalidParameter(f"{path}: expected a name that ends with {' or '.join(FORMATS)}")
    with whole(path, overwrite) as new:
        table = long_table(cells)[list(EXPORTED)]
        if path.suffix == ".csv":
            table.to_csv(new, index=False)
        else:
            import polars as pl  # it writes Parquet by itself, pandas only with another library

            pl.DataFrame({name: table[name].to_numpy() for name in table}).write_parquet(new)
    return len(table)
