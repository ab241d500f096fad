"""The report of a file, read in memory where there is room, else in parts, here or on a cluster.

Sums of parts are merged in any order to those of the whole: counts exactly, means up to rounding.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import ROOM, Table, is_parquet, local, parquet_rows, pieces
from onlinecal.core.joint import JointDistribution
from onlinecal.core.memory import GIB, free_memory
from onlinecal.forecasts.cautions import tiny_groups
from onlinecal.forecasts.inference import Difference, corrected, paired_p, scores, skewness_of
from onlinecal.forecasts.measuring import (
    DISTINCT,
    Column,
    Report,
    Settings,
    Some,
    few_groups,
    measure_log,
    measured,
)
from onlinecal.forecasts.multiclass import logs_of_classes
from onlinecal.forecasts.reading import Asked, Log, columns_of, read_log, remarks, rows_of

#: memory of a Parquet file while it is measured, in multiples of its size; with 10^7 different forecasts 26 were seen
PARQUET = 40.0
#: how many times its size a packed file has unpacked
PACKED = 5.0
#: bytes of CSV, and rows of Parquet, summed at a time; times `SHARE` for a worker
BYTES, ROWS, SHARE = 2**25, 1_000_000, 8
#: bytes or rows at the begin, by which columns are guessed
HEAD = 2**16
#: bytes of CSV, and rows of Parquet, from which reading in parts is quicker than in memory
LARGE_BYTES, LARGE_ROWS = 2**25, 2_000_000


# Threads of linear algebra wait for each other longer than they work here.
@threadpool_limits.wrap(limits=1, user_api="blas")
def report_of(
    source: str,
    asked: Asked,
    settings: Settings,
    in_parts: bool | None = None,
    scheduler: str | None = None,
    size: int | None = None,
) -> Report:
    """The report of a file, in memory, or in parts of `size` bytes or rows here or on a cluster."""
    if source == "-" and (in_parts or scheduler is not None):
        raise InvalidData("standard input cannot be read in parts, for it is read twice; expected a file")
    if scheduler is not None and asked.encoding is not None:
        raise InvalidData(f"{source} is cut into parts, as UTF-8; expected no --encoding")
    whole = [f"--{name}" for name in ("time", "weight", "cluster", "classes") if getattr(asked, name)]
    large = in_parts is None and scheduler is None and not whole and is_large(source)
    if not (large or in_parts or scheduler is not None):
        return _in_memory(source, asked, settings)
    if whole:
        raise InvalidParameter(
            f"{whole[0]} with {source}, which is read in parts, row by row no more; expected none, or --in-memory"
        )
    head = next(pieces(source, delimiter=asked.delimiter, encoding=asked.encoding, size=HEAD))
    named, said = columns_of(head, asked)
    said.append(
        "the file is read in parts: copies of rows and dependence between neighbouring ones are not looked for, and "
        "there are no bounds for rows without an outcome"
    )
    sums = (
        _sums(source, named, size, None) if scheduler is None else _of_cluster(source, named, size, scheduler)
    )
    report = _report(source, named, said, sums, settings)
    if large:
        report.said.append("it is large; --in-memory has it read whole")
    return report


def _in_memory(source: str, asked: Asked, settings: Settings) -> Report:
    needed, free = bytes_needed(source), free_memory()
    if needed > free:
        raise InvalidData(
            f"{source} needs some {needed / GIB:.1f} GiB of memory, and {free / GIB:.1f} are free; expected none of "
            "--in-memory, --time, --weight, --cluster and --classes, so that it is read in parts"
        )
    table = Table(source, delimiter=asked.delimiter, encoding=asked.encoding)
    log = read_log(table, asked)
    more = len(table.columns) > len(log.forecasts) + 1
    logs = logs_of_classes(table, log) if asked.classes else [log]
    reports = [measure_log(one, settings, more_columns=more) for one in logs]
    cautions = dict.fromkeys(said for one in reports for said in one.cautions)
    columns = [column for one in reports for column in one.columns]
    return replace(reports[0], columns=columns, cautions=list(cautions), classes=asked.classes)


def _of_cluster(source: str, asked: Asked, size: int | None, address: str) -> "Sums":
    from onlinecal.study.executors import Cluster

    path = str(local(source).absolute())
    with Cluster(address) as cluster, cluster.client.get_executor(pure=False) as pool:
        return merged_sums(list(pool.map(partial(_sums, path, asked, size), places_of(path, size))))


def places_of(path: str, size: int | None) -> list[tuple[int, int]]:
    """Where a file is cut: bytes at which lines begin, or rows of Parquet. A packed file is not cut."""
    if Path(path).suffix.lower() in (".gz", ".bz2", ".xz", ".zip"):
        return [(-1, -1)]
    parquet = is_parquet(path)
    all_of_it = parquet_rows(path) if parquet else local(path).stat().st_size
    many = max(1, math.ceil(all_of_it / (size or SHARE * (ROWS if parquet else BYTES))))
    return list(pairwise(i * all_of_it // many for i in range(many + 1)))


def is_large(source: str) -> bool:
    """Whether a file is read in parts: that is quicker, or in memory it takes half of what is free."""
    size = 0.0 if source == "-" else _unpacked(local(source))
    if not size:
        return False
    many = parquet_rows(source) > LARGE_ROWS if is_parquet(source) else size > LARGE_BYTES
    return many or bytes_needed(source) > 0.5 * free_memory()


def bytes_needed(source: str) -> float:
    """Memory that a file takes, about; 0 without a file."""
    path = local(source)
    return _unpacked(path) * (PARQUET if is_parquet(path) else ROOM)


def _unpacked(path: Path) -> float:
    try:
        size = path.stat().st_size if path.is_file() else 0
    except OSError as error:
        raise InvalidData(f"{path} cannot be read: {error.strerror or error}") from None
    return size * (PACKED if path.suffix.lower() == ".gz" else 1.0)


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums that a report is made of."""

    total: int  # how many there are, and how many have all forecasts and an outcome
    rows: int
    zeros: frozenset[str]  # words that stand for outcome 0
    largest: dict[str, float]  # the largest forecast of each column
    columns: dict[str, Column]  # empty where there are no rows
    # of the differences of a score between two columns: how many are finite, and sums of their first three powers
    pairs: dict[tuple[str, str, str], Floats]


def _sums(source: str, asked: Asked, size: int | None, part: tuple[int, int] | None) -> Sums:
    """The sums of the rows of a part of a file, or of all of them."""
    found: list[Sums] = []
    for rows in pieces(
        source,
        delimiter=asked.delimiter,
        encoding=asked.encoding,
        size=size or (ROWS if is_parquet(source) else BYTES),
        part=None if part == (-1, -1) else part,
        wanted=[*asked.forecasts, str(asked.outcome), *asked.by],
    ):
        one = sums_of(rows_of(rows, asked))
        found = [merged_sums([*found, one]) if found else one]
    return found[0]


def sums_of(log: Log) -> Sums:
    """The sums of some rows."""
    columns = {name: _merged([Column.of(log, name)]) for name in log.forecasts if log.rows}
    largest = {name: float(p.max(initial=0.0)) for name, p in log.forecasts.items()}
    of, pairs = {name: scores(p, log.outcomes) for name, p in log.forecasts.items()}, dict[Any, Floats]()
    for (a, first), (b, second) in combinations(of.items(), 2):
        for score in ("brier", "log"):
            with np.errstate(invalid="ignore"):
                difference = first[score] - second[score]
            finite = difference[np.isfinite(difference)]
            pairs[score, a, b] = np.array([float((finite**power).sum()) for power in range(4)])
    return Sums(log.total, log.rows, frozenset(log.zeros), largest, columns, pairs)


def merged_sums(parts: Sequence[Sums]) -> Sums:
    """The sums of all rows."""
    there = [part.columns for part in parts if part.rows]
    columns = there[0] if there else {}
    return Sums(
        sum(part.total for part in parts),
        sum(part.rows for part in parts),
        frozenset().union(*(part.zeros for part in parts)),
        {name: max(part.largest[name] for part in parts) for name in parts[0].largest},
        {name: _merged([part[name] for part in there]) for name in columns},
        {pair: np.sum([part.pairs[pair] for part in parts], axis=0) for pair in parts[0].pairs},
    )


def _merged(parts: Sequence[Column]) -> Column:
    """The column of all rows, on a grid if they have more than `DISTINCT` different forecasts."""
    gamma = _gamma([part.gamma for part in parts])
    if gamma.levels > DISTINCT or any(part.moved is not None for part in parts):
        parts = [part.on_grid() for part in parts]
        gamma = _gamma([part.gamma for part in parts])
    groups = dict[str, Some]()
    for name in sorted(set().union(*(part.groups for part in parts))):
        several = [part.groups[name] for part in parts if name in part.groups]
        groups[name] = Some(sum(one.rows for one in several), _gamma([one.gamma for one in several]))
    moved = [part.moved for part in parts if part.moved is not None]
    return Column(gamma, groups, math.fsum(moved) if moved else None)


def _gamma(gammas: Sequence[JointDistribution]) -> JointDistribution:
    """The merged Γ of rows without weights: means of whole numbers do not depend on the order of the parts."""
    gamma = gammas[0].merge(*gammas[1:])
    return JointDistribution.from_counts(gamma.predictions, gamma.counts, np.rint(gamma.positives))


def _report(source: str, asked: Asked, guessed: Sequence[str], sums: Sums, settings: Settings) -> Report:
    """The report of all rows; `guessed` is what was said of the columns."""
    ones = int(next((c.gamma.positives.sum() for c in sums.columns.values()), 0))
    said = remarks(source, asked, sums.total, sums.rows, ones, sums.largest, sums.zeros)
    by, sizes, found = ", ".join(asked.by), dict[str, float](), list[Difference]()
    for column in sums.columns.values():
        few_groups(source, by, len(column.groups))
        sizes = {name: some.rows for name, some in sorted(column.groups.items())}
    columns = [measured(name, column, settings) for name, column in sums.columns.items()]
    for pair, (count, *powers) in sums.pairs.items():
        if count == sums.rows >= 2:
            mean, square, cube = (power / count for power in powers)
            # Central moments, of which rounding must not make the second negative.
            variance = max(square - mean**2, 0.0)
            skewness = skewness_of(count * (cube - 3.0 * mean * square + 2.0 * mean**3), count * variance)
            error = math.sqrt(variance / (count - 1.0))
            p_value = paired_p(mean, error, skewness, count, ones / count)
            found.append(Difference(*pair, mean, error, p_value))
    return Report(
        source, str(asked.outcome), sums.rows, columns, corrected(found), by, "", [*guessed, *said],
        tiny_groups(sizes), settings,
    )  # fmt: skip
