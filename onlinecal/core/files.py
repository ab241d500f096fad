"""Files with columns, CSV or Parquet, read column by column; whatever is wrong is named with its line."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import importlib.util
import lzma
import os
import re
import signal
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData, suggestion

Floats = NDArray[np.float64]


def located(file: str) -> Path:
    """The path of a file; ``package:NAME/PATH`` is one that the Python package NAME brings along."""
    prefix, _, resource = file.partition(":")
    if prefix != "package":
        return local(file)
    package, _, path = resource.partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise InvalidData(
            f"{file}: the Python package {package!r} is not installed; install it (pip install {package})"
        )
    return Path(spec.submodule_search_locations[0]) / path


def local(file: str | Path) -> Path:
    """The path of a file, where ``~`` is a home folder; of a user that there is not it stays as it is."""
    if "\0" in str(file):
        raise InvalidData(f"{str(file)!r}: no such file, for its name has a NUL character")
    return Path(os.path.expanduser(file))


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """While it lasts an interrupt is an exception with a value: one without, as Python's own, pandas' parser loses."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def is_parquet(path: str | Path) -> bool:
    """Whether a file is Parquet, by the end of its name; any other is CSV."""
    return Path(path).suffix.lower() in (".parquet", ".pq")


def times(table: Table, column: str) -> Floats:
    """A column of numbers or dates that do not descend; dates as days since 1970."""
    values = table.numbers(column, dates=True)
    later = np.concatenate([[True], values[1:] >= values[:-1]])
    if not later.all():
        i = int(np.argmin(later))
        raise InvalidData(
            f"{table.path}, {table.line(i)}: column {column!r} goes back in time, from {table.cell(column, i - 1)} to "
            f"{table.cell(column, i)}; expected rows in order"
        )
    return values


class Table:
    """A CSV or Parquet file whose columns are asked for one by one.

    Raises
    ------
    InvalidData
        With the path, and the line where one is at fault.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parquet = is_parquet(path)
        self.frame = parquet(path) if self.parquet else _csv(path)

    def line(self, row: int) -> str:
        """Where row `row`, from 0, is in the file, for people."""
        return f"row {row + 1}" if self.parquet else f"line {row + 2}"

    def cell(self, column: str, row: int) -> Any:
        """What is written there."""
        return self.frame[column].iloc[row]

    def numbers(self, column: str, dates: bool = False, gaps: float | None = None) -> Floats:
        """One numeric column; with `dates`, dates too, as days since 1970.

        An empty cell is an error, or (with `gaps`) this number.
        """
        import pandas as pd

        frame = self.frame
        if column not in frame.columns:
            raise InvalidData(
                f"{self.path} has no column {column!r}{suggestion(column, map(str, frame.columns))}"
            )
        if len(frame) == 0:
            head = "columns" if self.parquet else "a header"
            raise InvalidData(f"{self.path} has {head} and no rows; expected at least one")
        cells = frame[column]
        if isinstance(cells, pd.DataFrame):
            raise InvalidData(f"{self.path} has several columns {column!r}; expected one")
        values = _numbers(cells)
        if dates and not np.isfinite(values).any():
            values = days(cells)
        good = np.isfinite(values)
        if gaps is not None:
            empty = cells.isna().to_numpy()
            values[empty], good = gaps, good | empty
        if not good.all():
            i = int(np.argmin(good))
            cell = cells.iloc[i]
            what = "is missing" if pd.isna(cell) else f"is {cell!r}"
            expected = "a number or a date like those before" if dates else "a number"
            raise InvalidData(f"{self.path}, {self.line(i)}: column {column!r} {what}; expected {expected}")
        return values

    def refuse(self, column: str, values: Floats, good: Any, expected: str) -> None:
        """Stops at the first row that is not good."""
        if not good.all():
            i = int(np.argmin(good))
            raise InvalidData(
                f"{self.path}, {self.line(i)}: column {column!r} holds {values[i]:g}; {expected}"
            )


def _numbers(cells: Any) -> Floats:
    """NaN where a cell is no number; true and false are 1 and 0.

    A date is no number, though pandas would count its nanoseconds.
    """
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return np.full(len(cells), np.nan)
    values = np.asarray(pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)).copy()
    if pd.api.types.is_string_dtype(cells.dtype) and not np.isfinite(values).all():
        words = (
            cells.str.strip()
            .str.lower()
            .map({"true": 1.0, "false": 0.0})
            .to_numpy(np.float64, na_value=np.nan)
        )
        values = np.where(np.isnan(words), values, words)
    return values


def days(cells: Any) -> Floats:
    """Dates as days since 1970; NaN where a cell is no date."""
    import pandas as pd

    try:
        moments = pd.to_datetime(cells, errors="coerce", format="ISO8601", utc=True)
        days = (moments - pd.Timestamp("1970-01-01", tz="UTC")) / pd.Timedelta(days=1)
        return np.asarray(days.to_numpy(np.float64, na_value=np.nan)).copy()
    except (TypeError, ValueError, OverflowError):  # cells of a Parquet file may be of any kind
        return np.full(len(cells), np.nan)


def _csv(path: Path) -> Any:
    import pandas as pd

    _check_file(path)
    try:
        # Text first: pandas would turn a column with one bad cell into objects and lose which cell it was. The header
        # by itself: it would give another name to the second of two columns of one, and take the first column for names
        # of rows where these have more cells than the header.
        read = partial(
            pd.read_csv, path, header=None, dtype=str, skip_blank_lines=False, sep=_delimiter(path),
            encoding="utf-8-sig", skipinitialspace=True,
        )  # fmt: skip
        with interruptible():
            frame = read().iloc[1:].reset_index(drop=True)
            frame.columns = read(nrows=1, keep_default_na=False).iloc[0].to_list()
        return frame
    except pd.errors.EmptyDataError:
        raise InvalidData(f"{path} is empty; expected a header line and rows") from None
    except (pd.errors.ParserError, UnicodeError) as error:
        raise InvalidData(f"{path} is not a CSV file: {str(error).strip()}") from None
    except OSError as error:
        raise InvalidData(f"{path} cannot be read: {error.strerror or error}") from None
    except (EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, ImportError) as error:
        raise InvalidData(f"{path} cannot be unpacked: {str(error).strip()}") from None


#: what may stand between columns; where the header has several of them, the one that it has most often
_DELIMITERS = ",;\t|"
#: endings of compressed files whose first line is looked at
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def _delimiter(path: Path) -> str:
    """What stands between the columns, by the header."""
    if path.suffix.lower() == ".zip":
        return ","
    with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
        header = file.readline(2**20).decode("utf-8", "replace")
    plain = re.sub('"[^"]*"', "", header)
    return max(_DELIMITERS, key=plain.count)  # the comma where there is none


def _check_file(path: Path) -> None:
    """Refuses what is no file: a device has no end."""
    try:
        there, good = path.exists(), path.is_file()
    except (OSError, ValueError) as error:
        raise InvalidData(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not good:
        what = "is a directory" if path.is_dir() else "is not a file"
        raise InvalidData(f"{path} {what}; expected a file" if there else f"{path}: no such file")


def parquet(path: Path) -> Any:
    """The data frame in a Parquet file."""
    import pandas as pd

    _check_file(path)
    try:
        import pyarrow as engine
    except ImportError:
        raise InvalidData(
            f"{path}: Parquet files are read by pyarrow, which is not installed; install it (pip install pyarrow, or "
            "onlinecal's extra 'data')"
        ) from None
    try:
        return pd.read_parquet(path, engine="pyarrow")
    except (engine.ArrowException, ValueError, OSError) as error:
        raise InvalidData(f"{path} is not a Parquet file: {str(error).strip().splitlines()[0]}") from None
