"""Recalibration of a file: all of its columns and a new one, written as a whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import Table, local
from onlinecal.core.progress import Progress
from onlinecal.core.writing import check_new, whole
from onlinecal.forecasts.reading import Asked, one_forecast, read_log
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
    """Reads a file, recalibrates, and writes all columns and the new one; other options as for `recalibrate`."""
    if output.suffix not in FORMATS:
        raise InvalidParameter(f"{output}: expected a name that ends with {' or '.join(FORMATS)}")
    if source != "-" and os.path.realpath(output) == os.path.realpath(local(source)):
        raise InvalidParameter(f"{output} is the file that is read; expected another name")
    check_new(output, overwrite)
    table = Table(source, delimiter=delimiter, encoding=encoding)
    if column in table.columns:
        raise InvalidParameter(
            f"{table.name} has a column {column!r} already; expected another name (--column)"
        )
    if output.suffix == ".parquet" and len(set(table.columns)) < len(table.columns):
        raise InvalidParameter(
            f"{table.name} has two columns of one name, which Parquet has no room for; expected a name that ends with "
            ".csv"
        )
    named, said = one_forecast(table, replace(asked or Asked(), open=True))
    log = read_log(table, named)
    if log.rows < 2:
        raise InvalidData(f"{table.name} has 1 row; expected at least 2")
    with Progress(work(log.rows, options.get("bootstrap", 0)), shown=progress, unit="forecasts") as bar:
        made = recalibrate(
            log.forecasts[named.forecasts[0]], log.outcomes, table_or_name(forecaster), times=log.times,
            known=log.known, progress=bar.advance, **options,
        )  # fmt: skip
    values: list[float | None] = [None] * table.rows
    for place, value in zip(
        log.places if log.places is not None else (), made.forecasts.tolist(), strict=True
    ):
        values[place] = value
    with whole(output, overwrite) as new:
        _write(table, column, values, new, output.suffix)
    return made, (*said, *log.said)


def _write(table: Table, column: str, values: list[float | None], path: Path, ending: str) -> None:
    """All columns and the new one; of a CSV file, the texts as they stand there."""
    import polars as pl

    data = io.BytesIO()
    if ending == ".parquet":
        frame = table.frame.with_columns(pl.Series("new", values, dtype=pl.Float64))
        frame.columns = [*table.columns, column]
        frame.write_parquet(data)
    else:
        texts = pl.Series(
            "new", [None if value is None else repr(value) for value in values], dtype=pl.String
        )
        header, between = io.StringIO(), table.delimiter or ","
        csv.writer(header, delimiter=between, lineterminator="\n").writerow([*table.columns, column])
        data.write(header.getvalue().encode())
        table.frame.with_columns(texts).write_csv(data, include_header=False, separator=between)
    path.write_bytes(data.getbuffer())


def table_or_name(text: str) -> str | dict[str, Any]:
    """A name, or the table in braces that the text is."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        table: dict[str, Any] = tomllib.loads(f"table = {text}")["table"]
    except tomllib.TOMLDecodeError as error:
        raise InvalidParameter(f"{text!r} is not a table: {error}") from None
    return table
