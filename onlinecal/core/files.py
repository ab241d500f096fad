"""Files with columns, CSV or Parquet, read column by column; whatever is wrong is named with its line."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import importlib.util
import lzma
import math
import os
import re
import signal
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
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
        values = moments(cells) if dates else _numbers(cells)
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


def as_time(cell: str) -> tuple[float | None, bool]:
    """The number of a cell that holds a time, or None; and whether it is a date.

    A finite number is itself. A date of ISO 8601, with or without a time of day and a zone (default UTC), is days since
    1970, to the microsecond; 2024/2/3 and 2024.2.3 are 2024-02-03, and 2024-02 is its first day.
    """
    text = cell.strip()
    number = _number(text)
    return (number, False) if number is not None else (_days(text), True)


def moments(cells: Any) -> Floats:
    """A column of a table, each cell as `as_time` reads it; NaN for none, and for a kind other than the first."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        dates = pd.to_datetime(cells, utc=True).dt.tz_localize(None)
        return np.asarray((dates.to_numpy("datetime64[us]") - _ZERO) / _DAY)
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return np.asarray(cells.to_numpy(np.float64, na_value=np.nan)).copy()
    texts = [str(cell).strip() for cell in cells]
    joined = "\n".join(texts)
    # Two quick ways, of which a test holds that they read as `as_time` does.
    if joined.isascii() and "_" not in joined:
        with contextlib.suppress(ValueError):
            values = np.array(texts, dtype=object).astype(np.float64)
            return np.where(np.isfinite(values), values, np.nan)
    if _PLAIN.fullmatch(joined):
        dates = pd.to_datetime(pd.Series(texts, dtype=object), errors="coerce", format="ISO8601", utc=True)
        values = (dates.dt.tz_localize(None).to_numpy("datetime64[us]") - _ZERO) / _DAY
        if np.count_nonzero(np.isnan(values)) == texts.count("nan"):
            return values
    first = next((dated for value, dated in map(as_time, texts) if value is not None), False)
    read = map(_days if first else _number, texts)
    return np.array([np.nan if value is None else value for value in read], dtype=np.float64)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    # Python would read 1_0 as 10, and digits of all scripts.
    return value if math.isfinite(value) and text.isascii() and "_" not in text else None


def _days(text: str) -> float | None:
    usual = text[4:8:3] == "--" and text[9:10].isdigit()
    if not usual and (found := _LOOSE.fullmatch(text)):
        year, month, day, rest = found.group(1, 3, 4, 5)
        text = f"{year}-{month:0>2}-{day or 1:0>2}{rest}"
    # Python takes any character between date and time, also the sign of a zone; and eight digits are a number.
    if text.isdigit() or text[10 if text[4:5] == "-" else 8 :][:1] not in ("", "T", "t", " "):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment - (_EPOCH if moment.tzinfo else _NAIVE)) / _ONE


#: year, month and day that are not written as in ISO 8601; and 1970
_LOOSE = re.compile(r"(\d{4})([-/.])(\d\d?)(?:\2(\d\d?))?((?:[T ].*)?)", re.ASCII)
_EPOCH, _NAIVE, _ONE = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1), timedelta(days=1)
#: lines of dates that are read at once, near enough to 1970 for microseconds to be exact in float64; and NumPy's 1970
_PLAIN = re.compile(
    r"(?:(?:nan|(?:19|20)\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?"
    r"(?:Z|[+-][01]\d:[0-5]\d)?)?)(?:\n|\Z))*+",
    re.ASCII,
)
_ZERO, _DAY = np.datetime64(0, "us"), np.timedelta64(1, "D")


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
