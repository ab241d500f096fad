"""Files with columns, CSV, Parquet or JSON: the one reader of all commands. What is wrong is named with its line."""

import bz2
import codecs
import contextlib
import csv
import gzip
import importlib.util
import io
import lzma
import mmap
import os
import re
import shutil
import stat
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlinecal.core.errors import InvalidData
from onlinecal.core.rows import LISTS, RECORDS, Floats, Rows, as_number

if TYPE_CHECKING:
    import polars as pl

#: the name of the file -
STDIN = "standard input"
#: what may stand between cells, the most likely first
DELIMITERS = ",;\t|"

_KINDS = {".parquet": "Parquet", ".pq": "Parquet", ".json": "JSON", ".jsonl": "JSONL", ".ndjson": "JSONL"}
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
NO_TEXT = (
    "{} is not a text file; expected CSV (a spreadsheet is saved as that), or a name that ends in .parquet"
)
_PACKED = (".gz", ".bz2", ".xz", ".zip")
#: characters that are copied at a time
_CHUNK = 2**24
_UNPACKED = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile)
#: the first line that spreadsheets write to say what is between cells
_SEP = re.compile(r'"?sep=(.)"?')
#: stands after the last line, so that a quotation mark without an end is seen
_END = "\0end\0"


def located(file: str) -> Path:
    """The path of a file; ``package:NAME/PATH`` is one that the Python package NAME brings along."""
    prefix, _, resource = file.partition(":")
    if prefix != "package":
        return local(file)
    package, _, path = resource.partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise InvalidData(f"{file}: the Python package {package!r} is not installed; pip install {package}")
    return Path(spec.submodule_search_locations[0]) / path


def local(file: str | Path) -> Path:
    """The path of a file, where ``~`` is a home folder; of an unknown user it stays as it is."""
    if "\0" in str(file):
        raise InvalidData(f"{str(file)!r}: no such file, for its name has a NUL character")
    return Path(os.path.expanduser(file))


def kind_of(path: str | Path) -> str:
    """The format of a file by the end of its name; all others are CSV."""
    *_, last, end = ["", "", *Path(path).suffixes]
    return _KINDS.get((last if end.lower() in _PACKED else end).lower(), "CSV")


def times(table: Rows, column: str) -> Floats:
    """A column of numbers or dates that do not descend; dates as days since 1970."""
    values = table.numbers(column, dates=True)
    table.check_order(column, values, np.arange(len(values)), "rows in order")
    return values


class Table(Rows):
    """A whole file."""

    def __init__(
        self, source: str | Path, *, delimiter: str | None = None, encoding: str | None = None
    ) -> None:
        with scanned(source, delimiter=delimiter, encoding=encoding) as file:
            vars(self).update(vars(file.rows()))


@contextlib.contextmanager
def scanned(
    source: str | Path, *, delimiter: str | None = None, encoding: str | None = None
) -> "Iterator[File]":
    """A file or standard input, to be read as often as is asked."""
    name, path = STDIN if str(source) == "-" else str(source), local(source)
    check_delimiter(delimiter)
    with tempfile.TemporaryDirectory() as folder:
        with unpacking(name, encoding), opened(source, name) as given:
            whole = str(source) != "-" and path.is_file() and isinstance(given, io.BufferedReader)
            known = codec(encoding or encoding_of(given.peek(4)))
            if kind_of(path) != "Parquet" and not (whole and known in ("utf-8", "utf-8-sig")):
                path = Path(folder, path.name)
                with (
                    io.TextIOWrapper(given, known, newline="") as text,
                    path.open("w", encoding="utf-8", newline="") as copy,
                ):
                    shutil.copyfileobj(text, copy, _CHUNK)
        yield File(path, name, folder, delimiter)


class File:
    """A file in UTF-8, or of Parquet, that polars scans; below a known header also its blank lines."""

    def __init__(
        self,
        path: Path,
        name: str,
        folder: str,
        delimiter: str | None = None,
        header: tuple[str, list[str], int] | None = None,
    ) -> None:
        self.path, self.name, self.kind, self._below = path, name, kind_of(path), header is not None
        # A copy in the folder is without what polars cannot read; `above` lines are above the header.
        self._plain, self._copied, self.delimiter, self.above, self._end = (
            Path(folder, "plain"),
            False,
            "",
            0,
            "\n",
        )
        if self.kind != "CSV":
            with self._named():
                schema = self._records().collect_schema()
            self.columns = schema.names()
            if self.columns and all(kind.is_nested() for kind in schema.dtypes()):
                raise InvalidData(LISTS.format(name, self.columns[0], RECORDS))
            if not self.columns:
                raise InvalidData(f"{name} has no columns; expected {RECORDS}")
            return
        self._end = "\n" if _holds(path, b"\n") else "\r"
        with unpacking(name), self._lines() as lines:
            self.delimiter, self.columns, self.above = header or headline(lines, name, delimiter)
        self._skipped = 0 if header else self.above
        # Polars takes one byte between cells, and no white space before quotation marks.
        if not self.delimiter.isascii() or _holds(path, f'{self.delimiter} "'.encode()):
            self._write_plain()

    def rows(self, most: int | None = None) -> Rows:
        """All rows that are not blank, or the first ones."""
        return self._rows(lambda rows: rows if most is None else rows.head(most))

    def different(self, columns: Sequence[str]) -> Rows:
        """The different rows of some columns, in the order in which they first come, and how often each is there."""
        import polars as pl

        names, count = self._places(columns), pl.len().cast(pl.Float64).alias("count")
        return self._rows(lambda rows: rows.group_by(names).agg(pl.col("line").min(), count).sort("line"))

    def many(self, columns: Sequence[str] | None = None) -> int:
        """How many rows there are, or about how many different ones of some columns."""
        import polars as pl

        count = pl.len() if columns is None else pl.struct(self._places(columns)).hash().approx_n_unique()
        return int(self._collected(lambda rows: rows.select(count)).item())

    def _rows(self, query: "Callable[[pl.LazyFrame], pl.LazyFrame]") -> Rows:
        return Rows(self.name, self.columns, self._collected(query), self.delimiter, self.above)

    def _places(self, columns: Sequence[str]) -> list[str]:
        return [str(self.columns.index(name)) for name in columns]

    def _collected(self, query: "Callable[[pl.LazyFrame], pl.LazyFrame]") -> "pl.DataFrame":
        """The result of a query; of a CSV file that polars cannot read, in a copy."""
        import polars as pl

        if self.kind == "CSV" and not self._copied:
            with contextlib.suppress(pl.exceptions.PolarsError):
                return query(self._scan()).collect(engine="streaming")
            self._write_plain()
        with self._named():
            return query(self._scan()).collect(engine="streaming")

    def _scan(self) -> "pl.LazyFrame":
        """The rows with their places in the file; columns are named by theirs."""
        import polars as pl

        names = [str(i) for i in range(len(self.columns))]
        if self.kind != "CSV":
            return self._records().select(pl.nth(int(i)).alias(i) for i in names).with_row_index("line")
        rows = pl.scan_csv(
            self._plain if self._copied else self.path,
            separator="," if self._copied else self.delimiter,
            skip_lines=0 if self._copied else self._skipped,
            eol_char="\n" if self._copied else self._end,
            infer_schema=False, with_column_names=lambda _: names, row_index_name="line", glob=False,
        )  # fmt: skip
        if len(names) == 1 or self._below:
            return rows
        # Blank lines, rows of empty cells, and remarks after a # are no rows.
        first = pl.col("0")
        return rows.filter(
            pl.any_horizontal(pl.exclude("0", "line") != "", (first != "") & ~first.str.starts_with("#"))
        )

    def _records(self) -> "pl.LazyFrame":
        import polars as pl

        if self.kind == "Parquet":
            return pl.scan_parquet(self.path, glob=False)
        if self.kind == "JSONL":
            return _flat(pl.scan_ndjson(self.path, infer_schema_length=None))
        whole = pl.read_json(self.path, infer_schema_length=None)
        lists = [name for name, kind in whole.schema.items() if _is_records(kind)]
        if whole.height == 1 and len(lists) == 1:
            whole = whole.select(lists).explode(lists).unnest(lists)
        # One record of records alone is a table column by column.
        columns = whole.height == 1 and all(isinstance(kind, pl.Struct) for kind in whole.dtypes)
        return whole.lazy() if columns else _flat(whole.lazy())

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        import polars as pl

        try:
            yield
        except (pl.exceptions.PolarsError, OSError) as error:
            said = (str(error).strip() or repr(error)).splitlines()[0]
            what, expected = ("", "") if self.kind == "Parquet" else (" of records", f"; expected {RECORDS}")
            raise InvalidData(f"{self.name} is not a {self.kind} file{what}: {said}{expected}") from None

    def _lines(self) -> Any:
        return self.path.open(encoding="utf-8-sig", newline=self._end)

    def _write_plain(self) -> None:
        """Writes the rows once more, as Python reads odd quotation marks; refuses what it cannot."""
        width, between, self._copied = len(self.columns), self.delimiter, True
        with (
            unpacking(self.name),
            self._lines() as lines,
            self._plain.open("w", encoding="utf-8", newline="") as out,
        ):
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow("c" * width)
            below = chain(islice(lines, self._skipped + 1, None), [_END])
            rows = csv.reader(below, delimiter=between, skipinitialspace=between != " ")
            line = first = self.above + 2
            try:
                for line, row in enumerate(rows, first):
                    if row == [_END]:
                        return
                    if len(row) > width:
                        raise InvalidData(
                            f"{self.name}, line {line} has {len(row)} cells; expected {width}, as in the header"
                        )
                    writer.writerow(row)
            except csv.Error as error:
                said = f"is not a CSV file with {between!r} between cells: {error}"
                raise InvalidData(f"{self.name} {said}") from None
        raise InvalidData(f"{self.name} is not a CSV file: in line {line} a quotation mark does not end")


def _is_records(kind: Any) -> bool:
    import polars as pl

    return isinstance(kind, pl.List) and isinstance(kind.inner, pl.Struct)


def _flat(frame: "pl.LazyFrame") -> "pl.LazyFrame":
    """The same with the fields of records within a record as columns of their own, as in "question.title"."""
    import polars as pl

    columns = list[pl.Expr]()
    for name, kind in frame.collect_schema().items():
        inner = [field.name for field in kind.fields] if isinstance(kind, pl.Struct) else []
        columns += [pl.col(name).struct.field(field).alias(f"{name}.{field}") for field in inner] or [
            pl.col(name)
        ]
    return frame.select(columns)


def csv_rows(data: bytes, name: str, columns: Sequence[str], between: str, above: int = 0) -> Rows:
    """Whole lines of CSV in UTF-8, also blank ones, below a header that is known."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lines")
        path.write_bytes(between.join("c" * len(columns)).encode() + b"\n" + data)
        return File(path, name, folder, header=(between, list(columns), above)).rows()


@contextlib.contextmanager
def unpacking(name: str, encoding: str | None = None) -> Iterator[None]:
    """Turns errors of reading and unpacking a file into `InvalidData`."""
    try:
        yield
    except UnicodeError as error:
        raise not_encoded(name, error, encoding) from None
    except _UNPACKED as error:
        raise InvalidData(f"{name} cannot be unpacked: {str(error).strip()}; expected a whole file") from None
    except OSError as error:
        raise InvalidData(f"{name} cannot be read: {error.strerror or error}") from None


def _holds(path: Path, words: bytes) -> bool:
    """Whether these bytes are anywhere in a file."""
    if not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(words) >= 0


def headline(lines: Iterable[str], name: str, delimiter: str | None) -> tuple[str, list[str], int]:
    """The character between cells, the names of the columns, and how many lines are above them."""
    remark: tuple[str, int] | None = None
    for above, line in enumerate(lines):
        if found := _SEP.fullmatch(line.strip()):
            delimiter = delimiter or found[1]
        elif line.startswith("#"):
            remark = line, above
        elif line.strip():
            between, columns = header_of(line, name, delimiter)
            # NumPy writes the header as a remark above numbers.
            if remark is None or not any(as_number(cell)[0] is not None for cell in columns if cell):
                return between, columns, above
            break
    line, above = remark or ("", 0)
    return (*header_of(line, name, delimiter), above)


def opened(source: str | Path, name: str) -> Any:
    """A stream of the bytes of a file, unpacked; a device has no end, and is refused."""
    if str(source) == "-":
        return sys.stdin.buffer
    path = local(source)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InvalidData(f"{name}: no such file") from None
    except OSError as error:
        raise InvalidData(f"{name} cannot be read: {error.strerror or error}") from None
    if stat.S_ISDIR(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "not a file"
        raise InvalidData(f"{name} is {what}; expected a file")
    suffix = path.suffix.lower()
    if suffix == ".zip":
        archive = zipfile.ZipFile(path)
        if len(archive.namelist()) != 1:
            raise InvalidData(f"{name} cannot be unpacked: it holds several files; expected one")
        try:
            return archive.open(archive.namelist()[0])
        except RuntimeError as error:  # it is encrypted
            raise InvalidData(f"{name} cannot be unpacked: {error}") from None
    if suffix == ".zst":
        raise InvalidData(f"{name} cannot be unpacked; expected .gz, .bz2, .xz or .zip")
    return _OPENERS.get(suffix, open)(path, "rb")


_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def check_delimiter(delimiter: str | None) -> None:
    """Refuses what is not one character that can stand between cells."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '\r\n"'):
        raise InvalidData(f"delimiter = {delimiter!r}; expected one character, such as ; or a tab")


def header_of(line: str, name: str, delimiter: str | None = None) -> tuple[str, list[str]]:
    """The character between the cells of a file, and the names of its columns, by its first line."""
    if not line.strip("\r\n\ufeff\x00 "):
        raise InvalidData(f"{name} is empty; expected a header line and rows")
    if "\x00" in line:
        raise InvalidData(NO_TEXT.format(name))
    between = delimiter or max(DELIMITERS, key=re.sub('"[^"]*"', "", line).count)
    try:
        cells = next(csv.reader([line], delimiter=between, skipinitialspace=between != " "))
    except csv.Error as error:
        raise InvalidData(f"{name} is not a CSV file: its first line is no header ({error})") from None
    return between, [cell.strip() for cell in cells]


def encoding_of(start: bytes) -> str:
    """The encoding by the first bytes."""
    return next((encoding for bom, encoding in _BOMS if start.startswith(bom)), "utf-8")


def codec(name: str) -> str:
    """The name that Python has for an encoding of text."""
    try:
        "".encode(name)
        return codecs.lookup(name).name
    except LookupError:
        raise InvalidData(f"encoding = {name!r} is not known; expected utf-8, latin-1, cp1252, …") from None


def not_encoded(where: str, error: UnicodeError, encoding: str | None) -> InvalidData:
    """The refusal of bytes that are no text in the encoding of a file."""
    if isinstance(error, UnicodeDecodeError) and b"\x00" in error.object[:1024] and not encoding:
        return InvalidData(NO_TEXT.format(where))
    what = error.encoding if isinstance(error, UnicodeDecodeError) else encoding
    return InvalidData(
        f"{where} is not {what or 'UTF-8'} throughout ({getattr(error, 'reason', error)}); expected one encoding: "
        "save it as UTF-8, or say --encoding latin-1"
    )
