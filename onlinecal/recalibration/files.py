"""Recalibration of a file: all of its columns and a new one, written as a whole or not at all."""

from __future__ import annotations

import importlib.util
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.recalibration.reading import read
from onlinecal.recalibration.replay import Recalibrated, recalibrate

#: what a file's name may end with
FORMATS = ".csv", ".parquet"


def recalibrate_file(
    path: Path,
    output: Path,
    forecaster: str,
    *,
    column: str = "recalibrated",
    forecast: str | None = None,
    outcome: str | None = None,
    time: str | None = None,
    resolved: str | None = None,
    measures: Sequence[str] | None = None,
    **options: Any,
) -> Recalibrated:
    """Reads a file, recalibrates, and writes all columns and the new one; other options as for `recalibrate`.

    Parameters
    ----------
    path, output : Path
        Two files; `output` is replaced when the new one is whole. Its end says the format, ``.csv``, in which cells are
        as they were and the new numbers have all their digits, or ``.parquet``.
    forecaster : str
        A name, or a table in braces.
    column : str
        Of the recalibrated forecasts; none that is there.

    Raises
    ------
    InvalidData, InvalidParameter, UnknownName
        Nothing has been written then.
    OSError
    """
    if output.suffix not in FORMATS:
        raise InvalidParameter(f"{output}: expected a name that ends with {' or '.join(FORMATS)}")
    if output.suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise InvalidParameter(
            f'{output}: Parquet needs pyarrow; `pip install "onlinecal[data]"` installs it, or choose a name that ends '
            "with .csv"
        )
    if output.resolve() == path.resolve():
        raise InvalidParameter(f"{output} is the file that is read; expected another name")
    found = read(path, forecast, outcome, time, resolved)
    if column in found.frame.columns:
        raise InvalidParameter(f"{path} has a column {column!r} already; expected another name (--column)")
    if len(found.p) < 2:
        raise InvalidData(f"{path} has 1 row; expected at least 2")
    made = recalibrate(
        found.p,
        found.y,
        table_or_name(forecaster),
        times=found.times,
        known=found.known,
        measures=measures,
        **options,
    )
    write(found.frame.assign(**{column: made.forecasts}), output)
    return made


def table_or_name(text: str) -> str | dict[str, Any]:
    """A name, or the table in braces that the text is."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        table: dict[str, Any] = tomllib.loads(f"table = {text}")["table"]
    except tomllib.TOMLDecodeError as error:
        raise InvalidParameter(f"{text!r} is not a table: {error}") from None
    return table


def write(frame: Any, path: Path) -> None:
    """Writes a table into a file, which is replaced when the new one is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    try:
        if path.suffix == ".csv":
            frame.to_csv(new, index=False)
        else:
            frame.to_parquet(new, index=False)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)
