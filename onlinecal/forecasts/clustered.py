"""Large files of forecasts on a Dask cluster: each worker sums some of the rows, and sums are merged in a tree."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from onlinecal.core.errors import InvalidData
from onlinecal.forecasts.large import Piece, Question, engine_of, question_of
from onlinecal.forecasts.measuring import Report, Settings
from onlinecal.forecasts.reading import Asked
from onlinecal.forecasts.sums import Facts, Sums, merged_facts, merged_sums, report_of_sums

T = TypeVar("T")

#: bytes of CSV, and rows of Parquet, that a worker sums at a time
BYTES, ROWS = 2**28, 4_000_000
# Bytes that are copied at a time.
_CHUNK = 2**24


@dataclass(frozen=True)
class Place:
    """Which rows of a file.

    Attributes
    ----------
    first, last : int
        Of CSV: the lines that begin at a byte in [first, last). Of Parquet: the groups of rows of these numbers.
    whole : bool
        Whether that is all of them.
    """

    first: int
    last: int
    whole: bool


def clustered_report(
    source: str,
    asked: Asked,
    settings: Settings,
    address: str,
    delimiter: str | None = None,
    bytes_at_once: int = BYTES,
) -> Report:
    """The report of a file that the workers of a cluster read in parts, all of them under this name.

    Parameters
    ----------
    source, asked, settings, delimiter
        As for `large_report`, which finds the same: Γ and all that follows from it to the last digit, means of
        differences and distances up to rounding.
    address : str
        Of the Dask scheduler, ``tcp://host:port``.
    bytes_at_once : int
        Of CSV, that a worker sums at a time. A packed file is read by one worker.

    Raises
    ------
    WorkerError
        The scheduler or its workers are not there, not fit, or gone.
    InvalidData, InvalidParameter
        As `large_report`; a cell of a CSV file that holds the end of a line, where the file would be cut.
    """
    from onlinecal.study.executors.cluster import Cluster

    question = question_of(source, asked, settings, delimiter)
    places = places_of(question, bytes_at_once)
    with Cluster(address, after="measure it again") as cluster:
        facts: Facts = cluster.merged(
            partial(facts_of, question), places, partial(merged_facts, most=question.distinct)
        )
        said = facts.judged(question)
        sums: Sums = cluster.merged(partial(sums_of, question, facts.moved(settings)), places, merged_sums)
    return report_of_sums(question, facts, sums, settings, said)


def places_of(question: Question, bytes_at_once: int) -> list[Place]:
    """Where the file is cut."""
    path = Path(question.path)
    if question.parquet:
        from pyarrow import parquet

        about = parquet.ParquetFile(path).metadata
        groups, rows = about.num_row_groups, about.num_rows
        step = max(1, groups * ROWS // max(rows, 1))
        starts = list(range(0, groups, step)) or [0]
        size = groups
    else:
        size = path.stat().st_size
        many = 1 if path.suffix.lower() == ".gz" else max(1, math.ceil(size / bytes_at_once))
        starts = [i * size // many for i in range(many)]
    ends = [*starts[1:], size]
    return [Place(first, last, len(starts) == 1) for first, last in zip(starts, ends, strict=True)]


# ---------------------------------------------------------------- on a worker


def facts_of(question: Question, place: Place) -> Facts:
    """Of the rows of a place."""
    return _found(question, place, Piece.facts)


def sums_of(question: Question, moved: tuple[bool, ...], place: Place) -> Sums:
    """The same."""
    return _found(question, place, lambda piece: piece.sums(moved))


def _found(question: Question, place: Place, find: Callable[[Piece], T]) -> T:
    path = Path(question.path)
    if not path.is_file():
        raise InvalidData(
            f"{path}: a worker has no such file; expected it under this name on all machines of the cluster"
        )
    with engine_of(question.source) as engine, tempfile.TemporaryDirectory(prefix="onlinecal-") as folder:
        if place.whole:
            return find(Piece(engine, question, question.table(str(path))))
        if question.parquet:
            from pyarrow import parquet

            wanted = [*question.forecasts, question.outcome, *question.asked.by]
            rows = parquet.ParquetFile(path).read_row_groups(
                list(range(place.first, place.last)), columns=[name for name in wanted if name is not None]
            )
            engine.register("piece", rows)
            return find(Piece(engine, question, "piece"))
        copy = Path(folder) / "piece.csv"
        _cut(path, place, copy)
        return find(Piece(engine, question, question.table(str(copy))))


def _cut(path: Path, place: Place, copy: Path) -> None:
    """Copies the header and the lines of a place."""
    quotes = 0
    with path.open("rb") as file, copy.open("wb") as piece:
        header = file.readline()
        if place.first:
            piece.write(header)
            # A line that begins before belongs to the place before; one that begins here is not skipped.
            file.seek(place.first - 1)
            file.readline()
        else:
            file.seek(0)
        left = place.last - file.tell()
        while left > 0 and (data := file.read(min(left, _CHUNK))):
            if len(data) == left and not data.endswith(b"\n"):
                data += file.readline()
            quotes += data.count(b'"')
            piece.write(data)
            left -= len(data)
    # Between two cuts outside of quotation marks there is an even number of them.
    if quotes % 2:
        raise InvalidData(
            f"{path}: a cell holds the end of a line, so that the file cannot be cut between lines; expected Parquet, "
            "or no --scheduler"
        )
