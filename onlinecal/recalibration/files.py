"""Files of forecasts that are recalibrated, in time order or by a map that was saved."""

import csv
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import Table, local
from onlinecal.core.rows import Rows
from onlinecal.core.words import number_of
from onlinecal.core.writing import check_ending, check_new, whole
from onlinecal.logs.columns import Asked, columns_of
from onlinecal.logs.layouts import joined
from onlinecal.logs.reading import probabilities, questions_in, read_log
from onlinecal.naming import said_table
from onlinecal.recalibration.maps import fit_recalibration, load_recalibration
from onlinecal.recalibration.methods import METHODS, Refitted, method
from onlinecal.recalibration.replay import Recalibrated, recalibrate


def recalibrate_file(
    source: str,
    output: Path,
    forecaster: str,
    *,
    column: str = "recalibrated",
    asked: Asked | None = None,
    overwrite: bool = False,
    save: Path | None = None,
    **options: Any,
) -> tuple[Recalibrated, tuple[str, ...]]:
    """Reads a file, recalibrates, writes all columns and the new one; `save` is a file for a batch method's map."""
    asked = replace(asked or Asked(), open=True)
    spec = said_table("--with", forecaster)
    fitted = method(spec, bins=options.get("bins"))
    if save is not None:
        if not isinstance(fitted, Refitted):
            batch = ", ".join(name for name, one in METHODS.items() if isinstance(one, Refitted))
            raise InvalidParameter(
                f"{forecaster!r} has no map that could be saved; expected --with one of {batch}, without --bins"
            )
        check_new(save, overwrite)
    table = _opened(source, output, column, asked, overwrite)
    named, said = columns_of(table, asked, one=True)
    if named.time is None:
        said += _order_of_dates(table)
    log = read_log(table, named)
    if log.rows < 2:
        raise InvalidData(f"{table.name} has 1 row; expected at least 2")
    base = log.forecasts[named.forecasts[0]]
    if named.resolved is None and (panel := questions_in(table, named)):
        said.append(
            f"caution: questions in {panel!r} come back with one outcome, which is taken as known after the first row; "
            "expected --time and --resolved, so that no later forecast of a question uses it"
        )
    made = recalibrate(base, log.outcomes, spec, times=log.times, known=log.known, **options)
    if save is not None and isinstance(fitted, Refitted):
        there = ~np.isnan(log.outcomes)
        fit_recalibration(base[there], log.outcomes[there], fitted.of).save(save, overwrite)
    _write(table, column, log.places, made.forecasts, output, overwrite)
    if unknown := int(np.isnan(log.outcomes).sum()):
        said.append(f"{number_of(unknown, 'row')} of {log.rows} without outcome: recalibrated, in no measure")
    return made, (*said, *log.said)


def apply_file(
    source: str,
    output: Path,
    saved: Path,
    *,
    column: str = "recalibrated",
    asked: Asked | None = None,
    overwrite: bool = False,
) -> tuple[int, tuple[str, ...]]:
    """Recalibrates a file by a map that was saved; the count of its forecasts, and remarks."""
    fitted, asked = load_recalibration(saved), asked or Asked()
    table = _opened(source, output, column, asked, overwrite)
    named, said = columns_of(table, asked, one=True, outcomes=False)
    values = probabilities(table, named.forecasts[0], named.percent)
    rows = np.flatnonzero(~np.isnan(values))
    if len(rows) < table.rows and not asked.skip_missing:
        raise InvalidData(
            f"{table.where(int(np.argmax(np.isnan(values))))}: column {named.forecasts[0]!r} is missing; expected a "
            "forecast, or --skip-missing to leave such rows empty"
        )
    _write(table, column, rows, fitted(values[rows]), output, overwrite)
    if len(rows) < table.rows:
        said.append(f"left empty: {number_of(table.rows - len(rows), 'row')} without a forecast")
    return len(rows), tuple(said)


def _opened(source: str, output: Path, column: str, asked: Asked, overwrite: bool) -> Rows:
    """The file that is read, after all checks of what will be written."""
    check_ending(output, ".csv", ".parquet")
    if source != "-" and os.path.realpath(output) == os.path.realpath(local(source)):
        raise InvalidParameter(f"{output} is the file that is read; expected another name")
    check_new(output, overwrite)
    table: Rows = Table(source, delimiter=asked.delimiter, encoding=asked.encoding)
    if asked.resolutions is not None:
        table = joined(table, Table(asked.resolutions), asked.key)
    if column in table.columns:
        raise InvalidParameter(f"{table.name} has a column {column!r} already; expected another --column")
    if output.suffix == ".parquet" and len(set(table.columns)) < len(table.columns):
        raise InvalidParameter(
            f"{table.name} has two columns of one name, which Parquet has no room for; expected a name that ends with "
            ".csv"
        )
    return table


#: columns of numbers that are times
TIMES = ("time", "timestamp", "datetime", "date", "day", "year", "t")
DATE = re.compile(r"\s*\d{4}[-/.]\d")


def _order_of_dates(table: Rows) -> list[str]:
    """Refuses rows with falling dates, if no column is the time; remarks on dates that go up and down."""
    found = dict[bool, str]()
    for name in (name for name in table.columns if table.columns.count(name) == 1):
        if not (DATE.match(table.text(name, 0)) or name.strip().lower() in TIMES):
            continue
        try:
            moments = table.numbers(name, dates=True, gaps=np.nan)
        except InvalidData:
            continue
        steps = np.diff(moments[~np.isnan(moments)])
        if (steps >= 0.0).all() and steps.any():
            return []
        if steps.any():
            found.setdefault(bool((steps <= 0.0).all()), name)
    if falling := found.get(True):
        raise InvalidData(
            f"{table.name}: the dates in column {falling!r} fall from row to row, from {table.text(falling, 0)} to "
            f"{table.text(falling, table.rows - 1)}, and rows are taken in order; expected --time {falling} --sort, or "
            "rows in the order of time"
        )
    return [
        f"rows are taken as they stand, where column {name!r} goes up and down: --time {name} --sort takes its order"
        for name in found.values()
    ]


def _write(table: Rows, column: str, places: Any, made: Floats, output: Path, overwrite: bool) -> None:
    """All columns and the new one, empty in other rows; of a CSV file, the texts as they stand there."""
    import polars as pl

    new, data = np.full(table.rows, None, dtype=object), io.BytesIO()
    new[places] = made.tolist()
    if output.suffix == ".parquet":
        frame = table.frame.with_columns(pl.Series("new", new.tolist(), dtype=pl.Float64))
        frame.columns = [*table.columns, column]
        frame.write_parquet(data)
    else:
        texts = [None if value is None else repr(value) for value in new.tolist()]
        header, between = io.StringIO(), table.delimiter or ","
        csv.writer(header, delimiter=between, lineterminator="\n").writerow([*table.columns, column])
        data.write(header.getvalue().encode())
        nested = [cells for cells in table.frame if cells.dtype.is_nested()]
        frame = table.frame.with_columns(
            *(pl.Series(one.name, [json.dumps(cell) for cell in one.to_list()]) for one in nested),
            pl.Series("new", texts, dtype=pl.String),
        )
        frame.write_csv(data, include_header=False, separator=between)
    with whole(output, overwrite) as path:
        path.write_bytes(data.getbuffer())
