"""Files with columns, CSV or Parquet: the one reader of all commands. What is wrong is named with its line."""

import bz2
import codecs
import contextlib
import csv
import gzip
import importlib.util
import io
import lzma
import os
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidData
from onlinecal.core.memory import GIB, free_memory
from onlinecal.core.rows import Floats, Rows

#: what may stand between cells, the most likely first
DELIMITERS = ",;\t|"
#: memory that a row takes while it is read, over its size in a CSV file
ROOM = 20

_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
#: bytes that are read at a time; and of lines, at most, until a quotation mark ends
_CHUNK, _CELL = 2**24, 2**28
NO_TEXT = (
    "{} is not a text file; expected CSV (a spreadsheet is saved as that), or a name that ends in .parquet"
)
_UNPACKED = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile)


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


def is_parquet(path: str | Path) -> bool:
    """Whether a file is Parquet, by the end of its name; any other is CSV."""
    return Path(path).suffix.lower() in (".parquet", ".pq")


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
        one = next(pieces(source, delimiter=delimiter, encoding=encoding))
        super().__init__(one.name, one.columns, one.frame, one.delimiter)


def pieces(
    source: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    size: int | None = None,
    part: tuple[int, int] | None = None,
    wanted: Sequence[str] | None = None,
) -> Iterator[Rows]:
    """Yields the rows of a file, all at once or in parts; at least one part, perhaps without rows."""
    name = "standard input" if str(source) == "-" else str(source)
    check_delimiter(delimiter)
    if is_parquet(source):
        yield from _parquet(local(source), name, size, part, wanted)
        return
    with unpacking(name), opened(source, name) as file:
        yield from _csv(file, name, delimiter, encoding, size, part)


@contextlib.contextmanager
def unpacking(name: str) -> Iterator[None]:
    """While it lasts, what is wrong with the bytes of a file is said in plain words."""
    try:
        yield
    except _UNPACKED as error:
        raise InvalidData(f"{name} cannot be unpacked: {str(error).strip()}; expected a whole file") from None
    except OSError as error:
        raise InvalidData(f"{name} cannot be read: {error.strerror or error}") from None


def _csv(
    file: Any,
    name: str,
    delimiter: str | None,
    encoding: str | None,
    size: int | None,
    part: tuple[int, int] | None,
) -> Iterator[Rows]:
    columns, between, first, left = list[str](), "", 0, None if part is None else part[1]
    if part is not None and part[0]:
        header = next((line for line in file if line.strip()), b"")
        between, columns = header_of(header.decode("utf-8-sig", "replace"), name, delimiter)
        # A line that begins before belongs to the part before; one that begins here is not skipped.
        file.seek(part[0] - 1)
        file.readline()
        left, first, name = part[1] - file.tell(), -1, f"{name}, after byte {file.tell()}"
    rows = None
    for data in _blocks(_utf8(file, name, encoding, left, max(min(size or _CHUNK, _CHUNK), 4)), size):
        # Between two cuts outside of quotation marks there is an even number of them.
        if part is not None and data.count(b'"') % 2:
            raise InvalidData(
                f"{name}: a cell holds the end of a line, so that the file cannot be cut between lines; expected "
                "Parquet, or no --scheduler"
            )
        if not columns:
            data = data if b"\n" in data else data.replace(b"\r", b"\n")
            blank = data[: len(data) - len(data.lstrip(b"\r\n"))]
            header, _, data = data.removeprefix(blank).partition(b"\n")
            first = blank.count(b"\n")
            between, columns = header_of(header.decode(), name, delimiter)
        rows = csv_rows(data, name, columns, between, first)
        first += rows.rows
        yield rows
    if rows is None:
        if not columns:
            raise InvalidData(f"{name} is empty; expected a header line and rows")
        yield csv_rows(b"", name, columns, between)


def _utf8(file: Any, name: str, encoding: str | None, left: int | None, chunk: int) -> Iterator[bytes]:
    """The bytes of a file in UTF-8; with `left`, this number of them and the rest of the last line."""
    decoder: Any = None
    try:
        while data := file.read(chunk if left is None else max(min(chunk, left), 0)):
            if left is not None:
                left -= len(data)
                data += b"" if left or data.endswith(b"\n") else file.readline()
            if decoder is None:
                decoder = codecs.getincrementaldecoder(codec(encoding or encoding_of(data)))()
                yield decoder.decode(data).removeprefix("\ufeff").encode()
            else:
                yield decoder.decode(data).encode()
        if decoder is not None:
            yield decoder.decode(b"", True).encode()
    except UnicodeError as error:
        raise not_encoded(name, error, encoding) from None


def _blocks(chunks: Iterator[bytes], size: int | None) -> Iterator[bytes]:
    """Yields whole lines, all or about `size` bytes at a time; no cell that holds line ends is cut."""
    rest = b"" if size is not None else b"".join(chunks)
    for data in chunks:
        rest += data
        if len(rest) < (size or 0):
            continue
        cut = rest.rfind(b"\n") + 1
        if cut and (len(rest) > _CELL or rest.count(b'"', 0, cut) % 2 == 0):
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


def csv_rows(data: bytes, name: str, columns: Sequence[str], between: str, first: int = 0) -> Rows:
    """Whole lines of CSV in UTF-8, without the header; Python's reader takes odd quotation marks and cells."""
    import polars as pl

    names = [str(i) for i in range(len(columns))]
    schema = dict.fromkeys(names, pl.String)
    if len(columns) > 1:
        data = data.rstrip(b"\r\n") + b"\n"  # blank lines at the end, as editors leave them
    frame = None
    if not data.strip(b"\n") and (len(columns) > 1 or not data):
        frame = pl.DataFrame(schema=schema)
    elif between.isascii() and f'{between} "'.encode() not in data:
        with contextlib.suppress(pl.exceptions.PolarsError):
            frame = pl.read_csv(between.join(names).encode() + b"\n" + data, separator=between, schema=schema)
    if frame is None:
        cells = zip_longest(*_odd_rows(data.decode(), name, len(columns), between, first))
        frame = pl.DataFrame([[cell or None for cell in column] for column in cells], schema=schema)
    return Rows(name, columns, frame, between, first)


def _odd_rows(text: str, name: str, width: int, between: str, first: int) -> list[list[str | None]]:
    """Rows of `width` cells, one by one."""
    lines = io.StringIO(text if text.endswith("\n") else text + "\n", newline="")
    rows: list[list[str | None]] = []
    try:
        for row in csv.reader(lines, delimiter=between, skipinitialspace=between != " "):
            if len(row) > width:
                raise InvalidData(
                    f"{name}, line {first + len(rows) + 2} has {len(row)} cells; expected {width}, as in the header"
                )
            rows.append([*row, *[None] * (width - len(row))])
    except csv.Error as error:
        raise InvalidData(f"{name} is not a CSV file with {between!r} between cells: {error}") from None
    # After a mark that does not end, all the rest is the last cell.
    if any(cell.endswith("\n") for cell in row[-1:]) and not text.rstrip("\r\n").endswith('"'):
        raise InvalidData(
            f"{name} is not a CSV file: in line {first + len(rows) + 1} a quotation mark does not end"
        )
    return rows


def _parquet(
    path: Path, name: str, size: int | None, part: tuple[int, int] | None, wanted: Sequence[str] | None
) -> Iterator[Rows]:
    import polars as pl

    with opened(path, name):
        pass
    try:
        rows = pl.scan_parquet(path, glob=False)
        rows = rows if wanted is None else rows.select(wanted)
        first, last = part or (0, rows.select(pl.len()).collect().item())
        step = size or max(last - first, 1)
        for start in range(first, max(last, first + 1), step):
            frame = rows.slice(start, min(step, last - start)).collect()
            columns, frame.columns = frame.columns, [str(i) for i in range(frame.width)]
            yield Rows(name, columns, frame, first=start)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InvalidData(f"{name} is not a Parquet file: {str(error).strip().splitlines()[0]}") from None


def parquet_rows(source: str) -> int:
    """How many rows a Parquet file has."""
    import polars as pl

    try:
        return int(pl.scan_parquet(local(source), glob=False).select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InvalidData(f"{source} is not a Parquet file: {str(error).strip().splitlines()[0]}") from None


def opened(source: str | Path, name: str) -> Any:
    """A stream of the bytes of a file, unpacked; a device has no end, and is refused."""
    if str(source) == "-":
        return io.BytesIO(_standard_input())
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


def _standard_input() -> bytes:
    """All of it, as long as there is memory for its rows."""
    parts, size, most = [], 0, free_memory() / ROOM
    while part := sys.stdin.buffer.read(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > most:
            raise InvalidData(
                f"standard input has more than {size / GIB:.1f} GiB, for which there is no memory; expected a file, "
                "which is read in parts"
            )
    return b"".join(parts)


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
