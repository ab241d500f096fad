"""Totals as one table with a row for each number, as other tools want them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


def long_table(
    said: Mapping[str, Sequence[Any]],
    at: Mapping[str, Sequence[Any]],
    totals: Sequence[NDArray[np.float64]],
) -> pd.DataFrame:
    """A row for each number of many tables of totals, whose rows are checkpoints and whose columns are runs.

    Parameters
    ----------
    said : Mapping
        Name of a column to what it says of each table.
    at : Mapping
        Name of a column to what it says of each checkpoint of each table.
    totals : Sequence of ndarray, each (checkpoints, runs)

    Returns
    -------
    DataFrame
        The columns of `said` and of `at`, then ``run`` and ``total``.
    """
    import pandas as pd

    if not totals:
        return pd.DataFrame(columns=[*said, *at, "run", "total"])
    # One frame, and not one for each of perhaps thousands of tables.
    whose = np.repeat(np.arange(len(totals)), [table.size for table in totals])
    long = pd.DataFrame(said).loc[whose].reset_index(drop=True)
    for name, values in at.items():
        pairs = zip(values, totals, strict=True)
        long[name] = np.concatenate(
            [np.repeat(np.asarray(v, np.int64), table.shape[1]) for v, table in pairs]
        )
    long["run"] = np.concatenate([np.tile(np.arange(table.shape[1]), len(table)) for table in totals])
    long["total"] = np.concatenate([table.ravel() for table in totals])
    return long
