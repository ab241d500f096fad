"""Files of forecasts and outcomes: which columns are meant, and what is refused."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData, suggestion
from onlinecal.core.files import Table, located, times

Floats = NDArray[np.float64]

#: what columns are called where nobody says, in any mixture of capitals; the first that is there counts
FORECAST = ("forecast", "p", "prob", "probability", "prediction", "predicted", "base")
OUTCOME = ("outcome", "y", "label", "resolution", "event", "target")


@dataclass(frozen=True)
class Forecasts:
    """Forecasts of a file, a row each.

    Attributes
    ----------
    frame : pandas.DataFrame
        All of the file: of CSV the texts as they stand there.
    p, y : (n,) floats
        Forecasts, and outcomes: 0, 1, or NaN where there is none yet.
    times, known : (n,) floats or None
        When questions were asked and outcomes became known; NaN in `known` for never.
    forecast, outcome : str
        The columns that were taken.
    """

    frame: Any
    p: Floats
    y: Floats
    times: Floats | None
    known: Floats | None
    forecast: str
    outcome: str


def read(
    path: Path,
    forecast: str | None = None,
    outcome: str | None = None,
    time: str | None = None,
    resolved: str | None = None,
) -> Forecasts:
    """The forecasts of a CSV or Parquet file.

    Parameters
    ----------
    path : Path
    forecast, outcome : str, optional
        Columns. Default: the first of `FORECAST` and `OUTCOME` that is there.
    time, resolved : str, optional
        Columns of numbers or dates: when questions were asked, which must not descend, and when outcomes became known.

    Raises
    ------
    InvalidData
        What `onlinecal.core.files.Table` refuses; a forecast outside [0, 1]; an outcome other than 0, 1 or an empty
        cell; an outcome that is known before its question is asked.
    """
    table = Table(located(str(path)))
    columns = list(map(str, table.frame.columns)) if table.parquet else header_of(table.path)
    forecast = column_of(str(path), "forecasts", columns, forecast, FORECAST)
    outcome = column_of(str(path), "outcomes", columns, outcome, OUTCOME)
    p = table.numbers(forecast)
    inside = (p >= 0.0) & (p <= 1.0)
    if not inside.all():
        table.refuse(forecast, p, inside, f"expected a probability in [0, 1]{per_cent(p[~inside][0])}")
    y = table.numbers(outcome, gaps=math.nan)
    table.refuse(outcome, y, np.isnan(y) | (y == 0.0) | (y == 1.0), "expected 0, 1 or nothing")
    asked = None if time is None else times(table, time)
    known = None
    if resolved is not None:
        if asked is None:
            raise InvalidData(
                f"{path}: times of outcomes ({resolved!r}) without times of questions; expected both columns"
            )
        known = table.numbers(resolved, dates=True, gaps=math.nan)
        early = known < asked
        if early.any():
            i = int(np.argmax(early))
            raise InvalidData(
                f"{path}, {table.line(i)}: the outcome is known ({table.cell(resolved, i)}) before the question is "
                f"asked ({table.cell(str(time), i)}); expected it at that time or later"
            )
    frame = table.frame if table.parquet else texts(table.path)
    return Forecasts(frame, p + 0.0, y, asked, known, forecast, outcome)


def texts(path: Path) -> Any:
    """A CSV file with all cells as they stand there, which to some readers are missing values."""
    import pandas as pd

    return pd.read_csv(path, dtype=str, keep_default_na=False, skip_blank_lines=False)


def header_of(path: Path) -> list[str]:
    """The columns of a CSV file as they are called there, for pandas gives those of one name others."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])


def column_of(where: str, what: str, columns: Sequence[str], asked: str | None, usual: Sequence[str]) -> str:
    """The column that is asked for, or else the first of the usual names that is there.

    Raises
    ------
    InvalidData
    """
    if asked is not None:
        if asked not in columns:
            raise InvalidData(f"{where} has no column {asked!r}{suggestion(asked, columns)}")
        found = asked
    else:
        lower = {name.strip().lower(): name for name in reversed(columns)}
        near = [lower[name] for name in usual if name in lower]
        if not near:
            raise InvalidData(
                f"{where} has no column of {what} under a usual name ({', '.join(usual)}); its columns are "
                f"{', '.join(map(repr, columns))}: name one"
            )
        found = near[0]
    if list(columns).count(found) > 1:
        raise InvalidData(f"{where} has several columns {found!r}; expected one")
    return found


def per_cent(value: float) -> str:
    """A hint where a forecast may be in per cent."""
    return "; are these per cent? Divide by 100" if 1.0 < value <= 100.0 else ""
