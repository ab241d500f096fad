"""The report of a file: of its rows in memory, or of the different rows of a large one, counted."""

from dataclasses import replace

from threadpoolctl import threadpool_limits

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import File, scanned
from onlinecal.core.memory import GIB, free_memory
from onlinecal.core.rows import Rows
from onlinecal.logs.measuring import Report, Settings, measure_log
from onlinecal.logs.multiclass import logs_of_classes
from onlinecal.logs.reading import Asked, columns_of, questions_in, read_log

#: memory of a file while its rows are measured, in multiples of its size; of Parquet with 10^7 different forecasts 26
ROOM, PARQUET = 20.0, 40.0
#: bytes of memory for each of the different rows, while they are counted and measured
DIFFERENT = 400.0
#: rows at the begin by which columns are guessed
HEAD = 10_000
#: bytes of CSV, and rows of Parquet, from which counting is quicker than rows in memory
LARGE_BYTES, LARGE_ROWS = 2**25, 2_000_000


# Threads of linear algebra wait for each other longer than they work here.
@threadpool_limits.wrap(limits=1, user_api="blas")
def report_of(source: str, asked: Asked, settings: Settings, in_parts: bool | None = None) -> Report:
    """The report of a file; `in_parts` whether its rows are counted while they are read, or kept in memory."""
    whole = [f"--{name}" for name in ("time", "weight", "cluster", "classes") if getattr(asked, name)]
    whole += ["--id"] * (asked.key is not None)
    with scanned(source, delimiter=asked.delimiter, encoding=asked.encoding) as file:
        needed, free = bytes_needed(file), free_memory()
        large = in_parts is None and not whole and (is_large(file) or needed > 0.5 * free)
        if in_parts and whole:
            raise InvalidParameter(
                f"{whole[0]} with {file.name}, which is read in parts, row by row no more; expected none, or "
                "--in-memory"
            )
        if in_parts or large:
            asked, said = columns_of(file.rows(HEAD), asked)
            said.append(
                "the file is read in parts: copies of rows and dependence between neighbouring ones are not looked "
                "for, and there are no bounds for rows without an outcome"
            )
            if asked.questions and (panel := questions_in(file.rows(HEAD), asked)):
                said.append(
                    f"questions in {panel!r} come back with one outcome, and their rows are taken as independent; "
                    f"--id {panel} takes each as a cluster"
                )
            table = _different(file, asked)
        elif needed > free:
            raise InvalidData(
                f"{file.name} needs some {needed / GIB:.1f} GiB of memory, and {free / GIB:.1f} are free; expected "
                "none of --in-memory, --time, --weight, --cluster and --classes, so that it is read in parts"
            )
        else:
            table, said = file.rows(), []
    log = read_log(table, asked)
    log = replace(log, said=(*said, *log.said, *["it is large; --in-memory has it read whole"] * large))
    more = len(table.columns) > len(log.forecasts) + 1
    logs = logs_of_classes(table, log) if asked.classes else [log]
    del table  # measuring needs the memory
    reports = [measure_log(one, settings, more_columns=more) for one in logs]
    cautions = dict.fromkeys(said for one in reports for said in one.cautions)
    columns = [column for one in reports for column in one.columns]
    return replace(reports[0], columns=columns, cautions=list(cautions), classes=asked.classes)


def _different(file: File, asked: Asked) -> Rows:
    """The different rows of a file, as long as there is memory for them."""
    columns, free = [*asked.forecasts, str(asked.outcome), *asked.by], free_memory()
    if bytes_needed(file) > free and (needed := DIFFERENT * file.many(columns)) > free:
        raise InvalidData(
            f"{file.name} has so many different rows that they need some {needed / GIB:.1f} GiB of memory, and "
            f"{free / GIB:.1f} are free; expected one --forecast, fewer groups, or forecasts of fewer digits"
        )
    return file.different(columns)


def is_large(file: File) -> bool:
    """Whether counting the different rows of a file is quicker."""
    if file.kind == "Parquet":
        return file.many() > LARGE_ROWS
    return file.path.stat().st_size > LARGE_BYTES


def bytes_needed(file: File) -> float:
    """Memory that a file takes with its rows, about."""
    return file.path.stat().st_size * (PARQUET if file.kind == "Parquet" else ROOM)
