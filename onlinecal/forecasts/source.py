"""The report of a file, read in memory where there is room, else in parts, here or on a cluster.

Sums of parts are merged in any order to those of the whole: counts exactly, means up to rounding.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import ROOM, Table, is_parquet, local, parquet_rows, pieces
from onlinecal.core.joint import JointDistribution
from onlinecal.core.memory import GIB, free_memory
from onlinecal.forecasts.cautions import tiny_groups
from onlinecal.forecasts.inference import Difference, corrected, paired_p, scores, skewness_of
from onlinecal.forecasts.measuring import Column, Report, Settings, Some, few_groups, measure_log, measured
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
    quicker = False
    if scheduler is None and not in_parts:
        needed, free = 0.0 if source == "-" else bytes_needed(source), free_memory()
        if in_parts is False and needed > free:
            raise InvalidData(
                f"{source} needs some {needed / GIB:.1f} GiB of memory, and {free / GIB:.1f} are free; expected no "
                "--in-memory"
            )
        large = needed > 0.5 * free
        quicker = bool(
            not large
            and needed
            and (asked.time or asked.weight or asked.cluster or asked.classes or None) is None
            and is_large(source)
        )
        if in_parts is False or not (large or quicker):
            table = Table(source, delimiter=asked.delimiter, encoding=asked.encoding)
            log = read_log(table, asked)
            logs = logs_of_classes(table, log) if asked.classes else [log]
            more = len(table.columns) > len(log.forecasts) + 1
            reports = [measure_log(one, settings, more_columns=more) for one in logs]
            cautions = dict.fromkeys(said for one in reports for said in one.cautions)
            columns = [column for one in reports for column in one.columns]
            return replace(reports[0], columns=columns, cautions=list(cautions), classes=asked.classes)
    if scheduler is not None and asked.encoding is not None:
        raise InvalidData(f"{source} is cut into parts, as UTF-8; expected no --encoding")
    for what, given in (
        ("--time", asked.time), ("--weight", asked.weight), ("--cluster", asked.cluster),
        ("--classes", asked.classes or None),
    ):  # fmt: skip
        if given is not None:
            raise InvalidParameter(
                f"{what} with {source}, which is read in parts, row by row no more; expected none, or --in-memory"
            )
    head = next(pieces(source, delimiter=asked.delimiter, encoding=asked.encoding, size=HEAD))
    named, said = columns_of(head, asked)
    said.append(
        "the file is read in parts: copies of rows and dependence between neighbouring ones are not looked for, and "
        "there are no bounds for rows without an outcome"
    )
    if scheduler is None:
        sums = _sums(source, named, settings, size, None)
    else:
        sums = _of_cluster(source, named, settings, size, scheduler)
    report = _report(source, named, said, sums, settings)
    return (
        replace(report, said=[*report.said, "that is quicker; --in-memory has it read whole"])
        if quicker
        else report
    )


def _of_cluster(source: str, asked: Asked, settings: Settings, size: int | None, address: str) -> "Sums":
    from onlinecal.study.executors.cluster import Cluster

    path = str(local(source).absolute())
    with Cluster(address, after="measure it again") as cluster:
        found: Sums = cluster.merged(
            partial(_sums, path, asked, settings, size),
            places_of(path, size),
            partial(merged_sums, settings=settings),
        )
    return found


def places_of(path: str, size: int | None) -> list[tuple[int, int]]:
    """Where a file is cut: bytes at which lines begin, or rows of Parquet. A packed file is not cut."""
    if Path(path).suffix.lower() in (".gz", ".bz2", ".xz", ".zip"):
        return [(-1, -1)]
    parquet = is_parquet(path)
    all_of_it = parquet_rows(path) if parquet else local(path).stat().st_size
    many = max(1, math.ceil(all_of_it / (size or SHARE * (ROWS if parquet else BYTES))))
    return list(pairwise(i * all_of_it // many for i in range(many + 1)))


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


@dataclass(frozen=True)
class Pair:
    """The differences of a score between two columns."""

    named: tuple[str, str, str]  # the score, and the columns
    count: int  # of those that are finite
    mean: float  # their mean, and the sums of squares and of cubes of what they are more or less
    power: float
    cubes: float

    def merge(self, other: "Pair") -> "Pair":
        """The sums of the rows of both (Chan, Golub & LeVeque 1983; Pébay 2008)."""
        count = self.count + other.count
        if count == 0:
            return self
        step, here, there = other.mean - self.mean, self.count / count, other.count / count
        between = step * step * (self.count * there)
        return Pair(
            self.named, count, self.mean + step * there, self.power + other.power + between,
            self.cubes + other.cubes
            + step * (between * (here - there) + 3.0 * (here * other.power - there * self.power)),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums that a report is made of."""

    total: int  # how many there are, and how many have all forecasts and an outcome
    rows: int
    zeros: frozenset[str]  # words that stand for outcome 0
    largest: dict[str, float]  # the largest forecast of each column
    columns: dict[str, Column]  # empty where there are no rows
    pairs: tuple[Pair, ...]


def _sums(
    source: str, asked: Asked, settings: Settings, size: int | None, part: tuple[int, int] | None
) -> Sums:
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
        one = sums_of(rows_of(rows, asked), settings)
        found = [merged_sums([*found, one], settings) if found else one]
    return found[0]


def sums_of(log: Log, settings: Settings) -> Sums:
    """The sums of some rows."""
    columns = {name: _merged([Column.of(log, name)], settings) for name in log.forecasts if log.rows}
    largest = {name: float(p.max(initial=0.0)) for name, p in log.forecasts.items()}
    return Sums(log.total, log.rows, frozenset(log.zeros), largest, columns, tuple(_pairs(log)))


def _pairs(log: Log) -> Iterable[Pair]:
    several = log.forecasts if len(log.forecasts) > 1 else {}
    of = {name: scores(p, log.outcomes) for name, p in several.items()}
    for a, b in combinations(of, 2):
        for score in ("brier", "log"):
            with np.errstate(invalid="ignore"):
                difference = of[a][score] - of[b][score]
            finite = difference[np.isfinite(difference)]
            mean = float(finite.mean()) if len(finite) else 0.0
            centred = finite - mean
            power, cubes = float((centred**2).sum()), float((centred**3).sum())
            yield Pair((score, a, b), len(finite), mean, power, cubes)


def merged_sums(parts: Sequence[Sums], settings: Settings) -> Sums:
    """The sums of all rows."""
    there = [part.columns for part in parts if part.rows]
    columns = there[0] if there else {}
    return Sums(
        sum(part.total for part in parts),
        sum(part.rows for part in parts),
        frozenset().union(*(part.zeros for part in parts)),
        {name: max(part.largest[name] for part in parts) for name in parts[0].largest},
        {name: _merged([part[name] for part in there], settings) for name in columns},
        tuple(reduce(Pair.merge, pairs) for pairs in zip(*(part.pairs for part in parts), strict=True)),
    )


def _merged(parts: Sequence[Column], settings: Settings) -> Column:
    """Of all rows: on a grid if there are more than `settings.distinct` different forecasts in them."""
    whole = None
    if all(part.moved is None for part in parts):
        whole = _gamma([part.gamma for part in parts])
        if whole.levels > settings.distinct:
            whole = None
    if whole is None:
        parts = [part.on_grid(settings.grid) for part in parts]
    groups = dict[str, Some]()
    for name in sorted(set().union(*(part.groups for part in parts))):
        several = [part.groups[name] for part in parts if name in part.groups]
        groups[name] = Some(sum(one.rows for one in several), _gamma([one.gamma for one in several]))
    if whole is not None:
        return Column(whole, groups)
    chances = [part.chances for part in parts if part.chances is not None]
    moved = math.fsum(part.moved for part in parts if part.moved is not None)
    return Column(_gamma([part.gamma for part in parts]), groups, moved, chances[0].merge(*chances[1:]))


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
    for one in sums.pairs:
        if one.count == sums.rows >= 2:
            error = math.sqrt(one.power / (sums.rows - 1.0) / sums.rows)
            skewness = skewness_of(one.cubes, one.power)
            p_value = paired_p(one.mean, error, skewness, sums.rows, ones / sums.rows)
            found.append(Difference(*one.named, one.mean, error, p_value))
    return Report(
        source, str(asked.outcome), sums.rows, columns, corrected(found), by, "", [*guessed, *said],
        tiny_groups(sizes), settings,
    )  # fmt: skip
