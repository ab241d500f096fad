"""From a file to a report: in memory where that is quick and there is room, else in parts, by an engine."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

from onlinecal.core.errors import InvalidData
from onlinecal.core.files import is_parquet, local
from onlinecal.core.memory import GIB, free_memory
from onlinecal.forecasts.measuring import Report, Settings, measure_log
from onlinecal.forecasts.reading import Asked, read_log
from onlinecal.forecasts.sheet import ROOM, Sheet

#: how many times its size a Parquet file takes in memory while it is measured; with 10^7 different forecasts 65 times
#: were seen
PARQUET = 70.0

#: how many times its size a packed file has unpacked
PACKED = 5.0

#: rows of a Parquet file, and bytes of a CSV file, from which it is read in parts sooner than in memory, several times
#: as quick: a tenth of a second a million rows against several seconds
ROWS, BYTES = 2_000_000, 2**25


def report_of(
    source: str,
    asked: Asked,
    settings: Settings,
    delimiter: str | None = None,
    encoding: str | None = None,
    in_parts: bool | None = None,
    scheduler: str | None = None,
) -> Report:
    """The report of a file.

    Parameters
    ----------
    source : str
        As in `Sheet`.
    asked : Asked
    settings : Settings
    delimiter, encoding : str, optional
        As in `Sheet`.
    in_parts : bool, optional
        Whether it is read in parts though there may be memory for all of it, or in memory though that is slower.
        Default: in parts where memory would not do; and where it is large (more than `ROWS` rows, or `BYTES`), if its
        rows are not needed one by one and what reads it in parts is installed: cells that only `Sheet` understands
        bring it back to memory.
    scheduler : str, optional
        Address of a Dask cluster that reads it in parts.

    Raises
    ------
    InvalidData
        As `read_log` and `large_report`; no memory for a file that is to be read whole.
    """
    if source == "-" and (in_parts or scheduler is not None):
        raise InvalidData("standard input cannot be read in parts, for it is read twice; expected a file")
    if scheduler is not None:
        from onlinecal.forecasts.clustered import clustered_report

        if encoding is not None:
            raise InvalidData(f"{source} is read in parts, as UTF-8; expected no --encoding")
        return clustered_report(source, asked, settings, scheduler, delimiter)
    needed = 0.0 if source == "-" else bytes_needed(source)
    free = free_memory()
    if in_parts is False and needed > free:
        raise InvalidData(
            f"{source} needs some {needed / GIB:.1f} GiB of memory, and {free / GIB:.1f} are free; expected no "
            "--in-memory"
        )
    if in_parts or (in_parts is None and needed > 0.5 * free):
        from onlinecal.forecasts.large import large_report

        if encoding is not None:
            raise InvalidData(
                f"{source} needs some {needed / GIB:.1f} GiB of memory and is read in parts, as UTF-8; expected no "
                "--encoding"
            )
        return large_report(source, asked, settings, delimiter)
    if in_parts is None and encoding is None and sooner_in_parts(source, asked):
        from onlinecal.forecasts.large import large_report

        try:
            report = large_report(source, asked, settings, delimiter)
            return replace(report, said=[*report.said, "that is quicker; --in-memory has it read whole"])
        except InvalidData:
            pass  # in memory all is understood, or refused with the line
    sheet = Sheet(source, delimiter=delimiter, encoding=encoding)
    log = read_log(sheet, asked)
    return measure_log(log, settings, more_columns=len(sheet.columns) > len(log.forecasts) + 1)


def sooner_in_parts(source: str, asked: Asked) -> bool:
    """Whether a file is large enough to be read in parts, and can be."""
    path = local(source)
    if source == "-" or not path.is_file() or asked.time is not None or asked.weight is not None:
        return False
    if importlib.util.find_spec("duckdb") is None:
        return False
    if not is_parquet(path):
        return path.stat().st_size * packed(path) > BYTES
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        return False
    try:
        return int(parquet.read_metadata(path).num_rows) > ROWS
    except (ArrowException, OSError):  # it is no Parquet file, which is said by who reads it
        return False


def bytes_needed(source: str) -> float:
    """Memory that a file takes, about; 0 where there is none."""
    path = local(source)
    try:
        size = path.stat().st_size if path.is_file() else 0
    except OSError as error:
        raise InvalidData(f"{source} cannot be read: {error.strerror or error}") from None
    return size * (PARQUET if is_parquet(path) else packed(path) * ROOM)


def packed(path: Path) -> float:
    """How many times its size a CSV file has unpacked, about."""
    return PACKED if path.suffix.lower() == ".gz" else 1.0
