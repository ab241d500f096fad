"""From a file to a report: in memory where there is room, else in parts, on this machine or on a cluster."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import ROOM, Table, is_parquet, local, parquet_rows, pieces
from onlinecal.core.memory import GIB, free_memory
from onlinecal.forecasts.measuring import Report, Settings, measure_log
from onlinecal.forecasts.reading import Asked, columns_of, read_log, rows_of
from onlinecal.forecasts.sums import Sums, merged_sums, report_of_sums, sums_of

#: how many times its size a Parquet file takes in memory while it is measured; with 10^7 different forecasts 26 times
#: were seen
PARQUET = 40.0
#: how many times its size a packed file has unpacked
PACKED = 5.0
#: bytes of CSV, and rows of Parquet, that are summed at a time; and how many times as many a worker is given
BYTES, ROWS, SHARE = 2**25, 1_000_000, 8
#: bytes or rows at the begin, by which columns are guessed
HEAD = 2**16
#: bytes of CSV, and rows of Parquet, from which a file is read in parts sooner than in memory, since that is quicker
LARGE_BYTES, LARGE_ROWS = 2**25, 2_000_000


def report_of(
    source: str,
    asked: Asked,
    settings: Settings,
    delimiter: str | None = None,
    encoding: str | None = None,
    in_parts: bool | None = None,
    scheduler: str | None = None,
) -> Report:
    """The report of a file."""
    if source == "-" and (in_parts or scheduler is not None):
        raise InvalidData("standard input cannot be read in parts, for it is read twice; expected a file")
    if scheduler is not None:
        return clustered_report(source, asked, settings, scheduler, delimiter, encoding)
    needed, free = 0.0 if source == "-" else bytes_needed(source), free_memory()
    if in_parts is False and needed > free:
        raise InvalidData(
            f"{source} needs some {needed / GIB:.1f} GiB of memory, and {free / GIB:.1f} are free; expected no "
            "--in-memory"
        )
    if in_parts or (in_parts is None and needed > 0.5 * free):
        return report_in_parts(source, asked, settings, delimiter, encoding)
    if in_parts is None and needed and asked.time is None and asked.weight is None and is_large(source):
        report = report_in_parts(source, asked, settings, delimiter, encoding)
        return replace(report, said=[*report.said, "that is quicker; --in-memory has it read whole"])
    table = Table(source, delimiter=delimiter, encoding=encoding)
    log = read_log(table, asked)
    return measure_log(log, settings, more_columns=len(table.columns) > len(log.forecasts) + 1)


def report_in_parts(
    source: str,
    asked: Asked,
    settings: Settings,
    delimiter: str | None = None,
    encoding: str | None = None,
    size: int | None = None,
) -> Report:
    """The report of a file of which `size` bytes or rows are in memory at a time."""
    named, guessed = _named(source, asked, delimiter, encoding)
    sums = _sums(source, named, settings, delimiter, encoding, size, None)
    return report_of_sums(source, named, guessed, sums, settings)


def clustered_report(
    source: str,
    asked: Asked,
    settings: Settings,
    address: str,
    delimiter: str | None = None,
    encoding: str | None = None,
    size: int | None = None,
) -> Report:
    """The same by the workers of a cluster; Γ and all that follows from it is equal to the last digit."""
    from onlinecal.study.executors.cluster import Cluster

    if encoding is not None:
        raise InvalidData(f"{source} is cut into parts, as UTF-8; expected no --encoding")
    named, guessed = _named(source, asked, delimiter, None)
    path = str(local(source).absolute())
    with Cluster(address, after="measure it again") as cluster:
        sums: Sums = cluster.merged(
            partial(_sums, path, named, settings, delimiter, None, size),
            places_of(path, size),
            partial(merged_sums, settings=settings),
        )
    return report_of_sums(source, named, guessed, sums, settings)


def places_of(path: str, size: int | None) -> list[tuple[int, int]]:
    """Where a file is cut: bytes at which lines begin, or rows of Parquet. A packed file is not cut."""
    parquet = is_parquet(path)
    all_of_it = parquet_rows(path) if parquet else local(path).stat().st_size
    each = size or SHARE * (ROWS if parquet else BYTES)
    packed = Path(path).suffix.lower() in (".gz", ".bz2", ".xz", ".zip")
    many = 1 if packed else max(1, math.ceil(all_of_it / each))
    ends = [i * all_of_it // many for i in range(many + 1)]
    return [(-1, -1)] if packed else list(pairwise(ends))


def _named(source: str, asked: Asked, delimiter: str | None, encoding: str | None) -> tuple[Asked, list[str]]:
    """All columns named, by the first rows; and what was guessed."""
    for what, given in (("--time", asked.time), ("--weight", asked.weight)):
        if given is not None:
            raise InvalidParameter(
                f"{what} with {source}, which is read in parts, row by row no more; expected none"
            )
    head = next(pieces(source, delimiter=delimiter, encoding=encoding, size=HEAD))
    named, guessed = columns_of(head, asked)
    guessed.append(
        "the file is read in parts: copies of rows and dependence between neighbouring ones are not looked for"
    )
    return named, guessed


def _sums(
    source: str,
    asked: Asked,
    settings: Settings,
    delimiter: str | None,
    encoding: str | None,
    size: int | None,
    part: tuple[int, int] | None,
) -> Sums:
    """The sums of the rows of a part of a file, or of all of them."""
    wanted = [*asked.forecasts, str(asked.outcome), *asked.by]
    found: Sums | None = None
    for rows in pieces(
        source,
        delimiter=delimiter,
        encoding=encoding,
        size=size or (ROWS if is_parquet(source) else BYTES),
        part=None if part == (-1, -1) else part,
        wanted=wanted,
    ):
        one = sums_of(rows_of(rows, asked), settings)
        found = one if found is None else merged_sums([found, one], settings)
    assert found is not None
    return found


def is_large(source: str) -> bool:
    """Whether a file is read in parts sooner than in memory."""
    if is_parquet(source):
        return parquet_rows(source) > LARGE_ROWS
    path = local(source)
    return path.stat().st_size * (PACKED if path.suffix.lower() == ".gz" else 1.0) > LARGE_BYTES


def bytes_needed(source: str) -> float:
    """Memory that a file takes, about; 0 without a file."""
    path = local(source)
    try:
        size = path.stat().st_size if path.is_file() else 0
    except OSError as error:
        raise InvalidData(f"{source} cannot be read: {error.strerror or error}") from None
    return size * (PARQUET if is_parquet(path) else ROOM * (PACKED if path.suffix.lower() == ".gz" else 1.0))
