"""The report of a file: of its rows in memory, or of the different rows of a large one, counted."""

from collections.abc import Sequence
from dataclasses import replace

from threadpoolctl import threadpool_limits

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import File, Table, scanned
from onlinecal.core.memory import GIB, free_memory
from onlinecal.core.rows import Rows
from onlinecal.core.words import number_of
from onlinecal.logs.columns import Asked, columns_of
from onlinecal.logs.layouts import joined
from onlinecal.logs.measuring import Report, Settings, measure_log
from onlinecal.logs.multiclass import logs_of_classes
from onlinecal.logs.reading import questions_in, read_log

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
def report_of(
    source: str,
    asked: Asked,
    settings: Settings,
    in_parts: bool | None = None,
    outcomes: Sequence[str] = (),
) -> Report:
    """The report of a file; `in_parts` whether its rows are counted while they are read, or kept in memory.

    Several `outcomes` belong to the forecasts asked for, in their order.
    """
    given = asked
    pairs = list(zip(asked.forecasts, outcomes, strict=False)) if len(set(outcomes)) > 1 else []
    if len(outcomes) > 1 and (len(outcomes) != len(asked.forecasts) or asked.classes):
        raise InvalidParameter(
            f"{len(outcomes)} --outcome ({', '.join(outcomes)}) beside {len(asked.forecasts)} --forecast; expected one "
            "of all, or one for each --forecast, and no --classes"
        )
    alone = ("time", "weight", "cluster", "classes", "fractional", "resolutions")
    whole = [f"--{name}" for name in alone if getattr(asked, name)]
    whole += ["--id"] * (asked.key is not None)
    whole += ["several --outcome"] if pairs else []
    with scanned(source, delimiter=asked.delimiter, encoding=asked.encoding) as file:
        needed, free = bytes_needed(file), free_memory()
        large = in_parts is None and not whole and (is_large(file) or needed > 0.5 * free)
        if in_parts and whole:
            raise InvalidParameter(
                f"{whole[0]} with {file.name}, which is read in parts, row by row no more; expected none, or "
                "--in-memory"
            )
        if in_parts or large:
            head = file.rows(HEAD)
            asked, said = columns_of(head, asked)
            panel = asked.key or asked.cluster  # of a layout
            asked = replace(asked, key=None, cluster=None, layout=asked.layout or "none")
            said.append(
                "the file is read in parts: copies of rows and dependence between neighbouring ones are not looked "
                "for, and there are no bounds for rows without an outcome"
            )
            if asked.questions and (panel := panel or questions_in(head, asked)):
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
            if asked.resolutions is not None:
                table = joined(table, Table(asked.resolutions), asked.key)
    logs = [read_log(table, replace(asked, forecasts=(p,), outcome=y)) for p, y in pairs] or [
        read_log(table, asked)
    ]
    more = len(table.columns) > len(logs[0].forecasts) + 1
    logs = logs_of_classes(table, logs[0]) if asked.classes else logs
    del table  # measuring needs the memory
    reports = [measure_log(one, settings, more_columns=more) for one in logs]
    for (p, y), one in zip(pairs, reports, strict=bool(pairs)):
        said.append(f"{p!r} has the outcome {y!r} ({number_of(one.rows, 'row')})")
    said += [text for one in reports for text in one.said]
    said += ["it is large; --in-memory has it read whole"] * large
    cautions = dict.fromkeys(said for one in reports for said in one.cautions)
    columns = [column for one in reports for column in one.columns]
    return replace(
        reports[0],
        outcome=", ".join(dict.fromkeys(one.outcome for one in reports)),
        rows=max(one.rows for one in reports),
        columns=columns,
        said=list(dict.fromkeys(said)),
        cautions=list(cautions),
        classes=asked.classes or bool(pairs),
        asked=given,
        pairs=tuple(pairs),
    )


def _different(file: File, asked: Asked) -> Rows:
    """The different rows of a file, as long as there is memory for them."""
    columns = [
        *asked.forecasts,
        str(asked.outcome),
        *asked.by,
        *asked.groups,
        *(name for name, _ in asked.only),
    ]
    free = free_memory()
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
