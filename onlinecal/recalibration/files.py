"""Recalibration of a file: all of its columns and a new one, written as a whole or not at all."""

from __future__ import annotations

import importlib.util
import os
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import local
from onlinecal.core.progress import Progress
from onlinecal.core.writing import check_new, whole
from onlinecal.forecasts.reading import Asked, one_forecast, read_log
from onlinecal.forecasts.sheet import Sheet
from onlinecal.recalibration.replay import Recalibrated, recalibrate, work

#: what a file's name may end with
FORMATS = ".csv", ".parquet"


def recalibrate_file(
    source: str,
    output: Path,
    forecaster: str,
    *,
    column: str = "recalibrated",
    asked: Asked | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    overwrite: bool = False,
    progress: bool | None = False,
    **options: Any,
) -> tuple[Recalibrated, tuple[str, ...]]:
    """Reads a file, recalibrates, and writes all columns and the new one; other options as for `recalibrate`.

    Parameters
    ----------
    source : str
        As for `Sheet`.
    output : Path
        Another file. Its end says the format, ``.csv``, in which cells are as they were, with what stood between them,
        and the new numbers have all their digits, or ``.parquet``.
    forecaster : str
        A name, or a table in braces.
    column : str
        Of the recalibrated forecasts, in [0, 1] whatever those of the file are in; none that is there.
    asked : Asked, optional
        Which columns are what. Outcomes may be missing. Rows that are left out have nothing in the new column; rows
        that are sorted are so while they are recalibrated, and stay in their places.
    delimiter, encoding : str, optional
        As for `Sheet`.
    overwrite : bool, default False
        Whether an existing `output` is replaced, when the new file is whole.
    progress : bool, optional
        As `shown` of `Progress`.

    Returns
    -------
    Recalibrated
    tuple of str
        What was guessed, left out or sorted.

    Raises
    ------
    InvalidData, InvalidParameter, UnknownName
        Nothing has been written then.
    """
    if output.suffix not in FORMATS:
        raise InvalidParameter(f"{output}: expected a name that ends with {' or '.join(FORMATS)}")
    if output.suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise InvalidParameter(
            f'{output}: Parquet needs pyarrow; `pip install "onlinecal[data]"` installs it, or choose a name that ends '
            "with .csv"
        )
    if source != "-" and os.path.realpath(output) == os.path.realpath(local(source)):
        raise InvalidParameter(f"{output} is the file that is read; expected another name")
    check_new(output, overwrite)
    sheet = Sheet(source, delimiter=delimiter, encoding=encoding)
    if column in sheet.columns:
        raise InvalidParameter(
            f"{sheet.name} has a column {column!r} already; expected another name (--column)"
        )
    if output.suffix == ".parquet" and len(set(sheet.columns)) < len(sheet.columns):
        raise InvalidParameter(
            f"{sheet.name} has two columns of one name, which Parquet has no room for; expected a name that ends with "
            ".csv"
        )
    named, said = one_forecast(sheet, replace(asked or Asked(), open=True))
    log = read_log(sheet, named)
    if log.rows < 2:
        raise InvalidData(f"{sheet.name} has 1 row; expected at least 2")
    with Progress(work(log.rows, options.get("bootstrap", 0)), shown=progress, unit="forecasts") as bar:
        made = recalibrate(
            log.forecasts[named.forecasts[0]], log.outcomes, table_or_name(forecaster), times=log.times,
            known=log.known, progress=bar.advance, **options,
        )  # fmt: skip
    values = np.full(sheet.rows, np.nan)
    values[log.places] = made.forecasts
    frame = sheet.with_column(column, values)
    with whole(output, overwrite) as new:
        if output.suffix == ".csv":
            frame.to_csv(new, index=False, sep=sheet.delimiter or ",")
        else:
            frame.to_parquet(new, index=False)
    return made, (*said, *log.said)


def table_or_name(text: str) -> str | dict[str, Any]:
    """A name, or the table in braces that the text is."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        table: dict[str, Any] = tomllib.loads(f"table = {text}")["table"]
    except tomllib.TOMLDecodeError as error:
        raise InvalidParameter(f"{text!r} is not a table: {error}") from None
    return table
