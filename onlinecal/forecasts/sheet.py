"""A CSV or Parquet file as columns of numbers and texts, as people's programs write them."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData
from onlinecal.core.files import interruptible, is_parquet, local, moments, parquet
from onlinecal.core.memory import GIB, free_memory
from onlinecal.forecasts.cells import as_number, is_empty, is_plain

Floats = NDArray[np.float64]

#: what may stand between cells, the most likely first
DELIMITERS = ",;\t|"

_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
#: memory that a row takes while it is read, over its size in a CSV file
ROOM = 16
#: bytes of a line of a header, at most
_HEADER = 1 << 20
#: the message about a cell that holds no time
NO_TIME = "{}: column {!r} holds {}; expected a number or a date such as 2024-12-31, as in all rows"


class Sheet:
    """A file whose columns are read when they are asked for.

    Parameters
    ----------
    source : str
        A path, of a CSV file (``.gz``: packed) or a Parquet file (``.parquet``, ``.pq``), or ``-`` for standard input.
    delimiter : str, optional
        What stands between cells. Default: that of ``,``, ``;``, tab and ``|`` which the header has most of.
    encoding : str, optional
        Default: what the first bytes say, else UTF-8.
    most : int, optional
        So many rows are read of a CSV file at most. Default: all.

    Attributes
    ----------
    name : str
        For messages.
    columns : list of str
        As they stand in the header; a name may be there twice.

    Raises
    ------
    InvalidData
        With the path, and the line where one is at fault.
    """

    def __init__(
        self,
        source: str,
        *,
        delimiter: str | None = None,
        encoding: str | None = None,
        most: int | None = None,
    ) -> None:
        self.name = "standard input" if source == "-" else source
        self.parquet = is_parquet(source)
        check_delimiter(delimiter)
        if self.parquet:
            self._set(parquet(local(source)))
        else:
            self.delimiter, self.columns, self._frame = _csv(source, self.name, delimiter, encoding, most)

    @classmethod
    def of_frame(cls, name: str, frame: Any) -> Sheet:
        """A data frame, as if it had been read from a Parquet file of this name."""
        sheet = object.__new__(cls)
        sheet.name, sheet.parquet = name, True
        sheet._set(frame)
        return sheet

    def _set(self, frame: Any) -> None:
        self.columns = [str(name) for name in frame.columns]
        frame.columns = range(len(self.columns))
        self.delimiter, self._frame = "", frame

    @cached_property
    def rows(self) -> int:
        """How many there are below the header."""
        return len(self._frame)

    def line(self, row: int) -> str:
        """Where row `row`, from 0, is in the file, for people."""
        return f"row {row + 1}" if self.parquet else f"line {row + 2}"

    def cell(self, column: str, row: int) -> str:
        """What is written there."""
        value = self._cells(column).iloc[row]
        return "nothing" if _is_nothing(value) else repr(str(value)) if isinstance(value, str) else str(value)

    def text(self, column: str, row: int) -> str:
        """The same without quotation marks."""
        return str(self._cells(column).iloc[row]).strip()

    def sample(self, column: str, rows: int = 1000) -> list[str]:
        """Its first cells as text; "" for an empty one."""
        return ["" if _is_nothing(cell) else str(cell) for cell in self._cells(column).iloc[:rows]]

    def texts(self, column: str) -> NDArray[Any]:
        """A column as text, without white space at either end; "" where a cell is empty."""
        cells = self._cells(column)
        text = cells.astype(object).where(cells.notna(), "").astype(str).to_numpy(dtype=object)
        texts = np.array([t.strip() for t in text], dtype=object)
        empty = [is_empty(t) for t in texts]
        texts[empty] = ""
        return texts

    def numbers(self, column: str) -> tuple[Floats, bool]:
        """A column as numbers, NaN where a cell is empty; and whether they have per cent signs.

        Each is the float64 next to what is written. A decimal comma will do where no comma stands between cells.
        """
        import pandas as pd

        cells = self._cells(column)
        if pd.api.types.is_datetime64_any_dtype(cells.dtype):
            raise InvalidData(f"{self.name}: column {column!r} holds dates; expected numbers")
        if pd.api.types.is_numeric_dtype(cells.dtype) or pd.api.types.is_bool_dtype(cells.dtype):
            return np.asarray(cells.to_numpy(np.float64, na_value=np.nan)).copy(), False
        try:
            return _floats(cells), False
        except (TypeError, ValueError):
            pass
        marked = False
        values = np.empty(len(cells))
        for i, cell in enumerate(cells):
            value, per_cent = (np.nan, False) if _is_nothing(cell) else as_number(str(cell))
            marked |= per_cent
            if value is None:
                raise InvalidData(
                    f"{self.name}, {self.line(i)}: column {column!r} holds {self.cell(column, i)}; expected a number"
                )
            values[i] = value
        return values, marked

    def plain_outcomes(self, column: str) -> Floats | None:
        """A column of the numbers 0 and 1, or truth values, where it is nothing else; the quick way."""
        import pandas as pd

        cells = self._cells(column)
        if pd.api.types.is_datetime64_any_dtype(cells.dtype):
            return None
        try:
            values = _floats(cells)
        except (TypeError, ValueError):
            return None
        return values if ((values == 0.0) | (values == 1.0)).all() else None

    def times(self, column: str, gaps: bool = False) -> Floats:
        """A column of numbers or dates; dates as days since 1970. With `gaps`, NaN where a cell is empty."""
        cells = self._cells(column)
        values = moments(cells)
        good = np.isfinite(values)
        if gaps:
            good |= np.array([_is_nothing(cell) for cell in cells], dtype=bool)
        if not good.all():
            i = int(np.argmin(good))
            raise InvalidData(NO_TIME.format(f"{self.name}, {self.line(i)}", column, self.cell(column, i)))
        return values

    def duplicates(self) -> int:
        """How many rows are equal to an earlier one in every column."""
        try:
            return int(self._frame.duplicated().sum())
        except TypeError:  # cells of a Parquet file may be lists
            return 0

    def with_column(self, column: str, values: Any) -> Any:
        """All of it as a data frame with one column more: of a CSV file, the texts as they stand there."""
        frame = self._frame.copy(deep=False)
        frame[len(self.columns)] = values
        frame.columns = [*self.columns, column]
        return frame

    def _cells(self, column: str) -> Any:
        return self._frame[self.columns.index(column)]


def _is_nothing(value: Any) -> bool:
    return value is None or value != value or is_empty(str(value))


def _floats(cells: Any) -> Floats:
    """All at once, where Python reads each cell as `as_number` does; else a ValueError or TypeError."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(cells.dtype):
        return np.asarray(cells.to_numpy(np.float64, na_value=np.nan)).copy()
    objects = cells.to_numpy(dtype=object)
    if not all(is_plain(cell) for cell in objects if isinstance(cell, str)):
        raise ValueError("an underscore, or digits of another script")
    values = np.asarray(objects, dtype=np.float64)
    if not all(map(_is_nothing, objects[np.isnan(values)])):
        raise ValueError("a NaN with a sign")
    return values


# ---------------------------------------------------------------- CSV


def _csv(
    source: str, name: str, delimiter: str | None, encoding: str | None, most: int | None
) -> tuple[str, list[str], Any]:
    import pandas as pd

    try:
        with opened(source, name) as raw:
            text = io.TextIOWrapper(raw, encoding=encoding or encoding_of(raw.peek(4)), newline="")
            header = text.readline(_HEADER)
            if not header.strip("\r\n\ufeff\x00 "):
                raise InvalidData(f"{name} is empty; expected a header line and rows")
            between, columns = header_of(header, name, delimiter)
            with warnings.catch_warnings(), interruptible():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                frame = pd.read_csv(
                    text, sep=between, header=None, names=range(len(columns)), index_col=False, dtype=object,
                    keep_default_na=False, skip_blank_lines=False, na_values=[""], nrows=most,
                )  # fmt: skip
    except FileNotFoundError:
        raise InvalidData(f"{name}: no such file") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InvalidData(f"{name} is not a whole gzip file; expected one, or a name without .gz") from None
    except OSError as error:
        raise InvalidData(f"{name} cannot be read: {error.strerror or error}") from None
    except LookupError:
        raise unknown_encoding(encoding) from None
    except UnicodeError as error:
        raise not_encoded(name, error, encoding) from None
    except pd.errors.ParserWarning:
        raise InvalidData(
            f"{name}: rows have more cells than the header has names; expected as many"
        ) from None
    except (pd.errors.ParserError, csv.Error, OverflowError) as error:
        said = " ".join(str(error).removeprefix("Error tokenizing data. C error:").split())
        raise InvalidData(f"{name} is not a CSV file with {between!r} between cells: {said}") from None
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame(columns=range(len(columns)), dtype=object)
    # A blank line at the end, as editors leave it.
    while len(frame) and frame.iloc[-1].isna().all():
        frame = frame.iloc[:-1]
    return between, columns, frame


def check_delimiter(delimiter: str | None) -> None:
    """Refuses what is not one character that can stand between cells."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '\r\n"'):
        raise InvalidData(f"delimiter = {delimiter!r}; expected one character, such as ; or a tab")


def header_of(line: str, name: str, delimiter: str | None = None) -> tuple[str, list[str]]:
    """What stands between the cells of a file, and the names of its columns, by its first line.

    Parameters
    ----------
    line : str
    name : str
        Of the file, for messages.
    delimiter : str, optional
        As for `Sheet`.

    Raises
    ------
    InvalidData
        It is no header: the line of something else than text, or one that holds numbers.
    """
    if "\x00" in line:
        raise InvalidData(f"{name} is not a text file; expected CSV, or a name that ends in .parquet")
    between = delimiter or max(DELIMITERS, key=re.sub('"[^"]*"', "", line).count)
    columns = [column.strip() for column in next(csv.reader([line], delimiter=between))]
    _check_header(columns, name)
    return between, columns


def _check_header(columns: Sequence[str], name: str) -> None:
    """Refuses a first line that is data: no names of columns are numbers."""
    if all(as_number(column)[0] is not None and column for column in columns):
        raise InvalidData(
            f"{name}: the first line holds numbers ({', '.join(columns[:4])}); expected a header with the names of the "
            "columns"
        )
    if len(columns) == 1 and Counter(columns[0])[" "]:
        raise InvalidData(
            f"{name}: the header {columns[0][:60]!r} has none of , ; tab |; expected one between names, or --delimiter"
        )


def unknown_encoding(encoding: str | None) -> InvalidData:
    """No codec has that name."""
    return InvalidData(f"encoding = {encoding!r} is not known; expected utf-8, latin-1, cp1252, …")


def not_encoded(where: str, error: UnicodeError, encoding: str | None) -> InvalidData:
    """Bytes that are no text in the encoding that a file is read in."""
    what = error.encoding if isinstance(error, UnicodeDecodeError) else encoding
    return InvalidData(
        f"{where} is not {what or 'UTF-8'} throughout ({getattr(error, 'reason', error)}); expected one encoding: "
        "save it as UTF-8, or say --encoding latin-1"
    )


def opened(source: str, name: str) -> Any:
    """A buffered stream of the bytes, unpacked."""
    if source == "-":
        return io.BufferedReader(io.BytesIO(_standard_input()))
    path = local(source)
    if path.is_dir():
        raise InvalidData(f"{name} is a directory; expected a file")
    if path.suffix.lower() == ".gz":
        return io.BufferedReader(gzip.open(path))
    return path.open("rb")


def _standard_input() -> bytes:
    """All of it, as long as there is memory for its rows."""
    parts, size, most = [], 0, free_memory() / ROOM
    while part := sys.stdin.buffer.read(1 << 24):
        parts.append(part)
        size += len(part)
        if size > most:
            raise InvalidData(
                f"standard input has more than {size / GIB:.1f} GiB, for which there is no memory; expected a file, "
                "which is read in parts"
            )
    return b"".join(parts)


def encoding_of(start: bytes) -> str:
    """What the first bytes say."""
    return next((encoding for bom, encoding in _BOMS if start.startswith(bom)), "utf-8")
