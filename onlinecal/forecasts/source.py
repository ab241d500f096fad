"""From a file to a report: in memory where there is room, else through an engine that reads it in parts."""

from __future__ import annotations

from pathlib import Path

from onlinecal.core.errors import InvalidData
from onlinecal.engine.memory import GIB, free_memory
from onlinecal.forecasts.measuring import Report, Settings, measure_log
from onlinecal.forecasts.reading import Asked, read_log
from onlinecal.forecasts.sheet import ROOM, Sheet

#: how many times its size a file takes in memory while it is measured, by the end of its name; of Parquet with 10^8
#: different forecasts 30 times were seen, and more were wanted
TIMES = {".parquet": 40.0, ".pq": 40.0, ".gz": 5.0 * ROOM}


def report_of(
    source: str,
    asked: Asked,
    settings: Settings,
    delimiter: str | None = None,
    encoding: str | None = None,
    in_parts: bool = False,
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
    in_parts : bool, default False
        Whether it is read in parts though there may be memory for all of it.
    scheduler : str, optional
        Address of a Dask cluster that reads it in parts.

    Raises
    ------
    InvalidData
        As `read_log` and `large_report`.
    """
    if source == "-" and (in_parts or scheduler is not None):
        raise InvalidData("standard input cannot be read in parts, for it is read twice; expected a file")
    if scheduler is not None:
        from onlinecal.forecasts.clustered import clustered_report

        if encoding is not None:
            raise InvalidData(f"{source} is read in parts, as UTF-8; expected no --encoding")
        return clustered_report(source, asked, settings, scheduler, delimiter)
    needed = 0.0 if source == "-" else bytes_needed(source)
    if in_parts or needed > 0.5 * free_memory():
        from onlinecal.forecasts.large import large_report

        if encoding is not None:
            raise InvalidData(
                f"{source} needs some {needed / GIB:.1f} GiB of memory and is read in parts, as UTF-8; expected no "
                "--encoding"
            )
        return large_report(source, asked, settings, delimiter)
    sheet = Sheet(source, delimiter=delimiter, encoding=encoding)
    log = read_log(sheet, asked)
    return measure_log(log, settings, more_columns=len(sheet.columns) > len(log.forecasts) + 1)


def bytes_needed(source: str) -> float:
    """Memory that a file takes, about; 0 where there is none."""
    path = Path(source).expanduser()
    try:
        size = path.stat().st_size if path.is_file() else 0
    except OSError as error:
        raise InvalidData(f"{source} cannot be read: {error.strerror or error}") from None
    return size * TIMES.get(path.suffix.lower(), float(ROOM))
