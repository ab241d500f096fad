"""A file of forecasts of K classes: a column of probabilities for each, and one of labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
from threadpoolctl import threadpool_limits

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import scanned
from onlinecal.core.rows import Rows, is_word
from onlinecal.core.simplex import divided
from onlinecal.logs.classes import ClassEvaluation, by_group, evaluate_classes
from onlinecal.logs.columns import MEASURING, OUTCOMES, READING, Asked, known_names, quoted
from onlinecal.logs.multiclass import sums_of
from onlinecal.logs.reading import Log, remarks, rows_of

#: options of the command for settings beside the column of labels
OPTIONS = {"--classes": "columns", "--labels": "labels", "--time": "time", **MEASURING, **READING}


@dataclass(frozen=True)
class AskedClasses(Asked):
    """How such a file is read: the columns of classes, and their labels in this order."""

    columns: str = ""  # names with commas between, or a pattern such as p_*
    labels: str | None = None  # names with commas between


# Threads of linear algebra wait for each other longer than they work here.
@threadpool_limits.wrap(limits=1, user_api="blas")
def evaluation_of(
    source: str, asked: AskedClasses, draws: int, level: float, seed: int
) -> tuple[Log, ClassEvaluation]:
    """The rows of a file, and their measures."""
    with scanned(source, delimiter=asked.delimiter, encoding=asked.encoding) as file:
        log, labels = read_classes(file.rows(), asked)
    p, y = np.column_stack([*log.forecasts.values()]), log.outcomes.astype(np.int64)
    # Clusters of a column of their own are in no order of time.
    in_time = log.times is not None and log.cluster in ("", log.time)
    found = evaluate_classes(
        p, np.array(labels)[y], weights=log.weights, clusters=log.clusters, labels=labels, in_time=in_time,
        draws=draws, level=level, seed=seed,
    )  # fmt: skip
    groups = by_group(p, y, log.groups or {}, labels, log.weights, log.clusters, in_time, draws, seed)
    return log, replace(found, groups=groups)


def read_classes(table: Rows, asked: AskedClasses) -> tuple[Log, tuple[str, ...]]:
    """The columns that are asked for, checked row by row, and the label of each."""
    outcome, said = asked.outcome, list[str]()
    roles = outcome, asked.time, asked.weight, asked.cluster, asked.key, *asked.by
    others = [name for name in roles if name is not None]
    columns = _columns(table, asked.columns, others)
    if outcome is None:
        left = [name for name in table.columns if name not in (*columns, *others)]
        found = known_names(left, OUTCOMES)
        if len(found) != 1:
            of_these = f", of: {quoted(left, 12)}" if left else ""
            raise InvalidData(
                f"{table.name}: cannot tell which column has the labels; expected --outcome COLUMN{of_these}"
            )
        outcome = found[0]
        said.append(f"labels are read from column {outcome!r}")
    taken = [*columns, *others]
    for name in taken:
        if taken.count(name) > 1:
            raise InvalidParameter(f"column {name!r} is asked for twice; expected each in one role")
    there = [text for text in table.groups(outcome)[1] if text and not is_word(text, asked.drop)]
    labels = _labels(table, outcome, columns, there, asked.labels)
    named = replace(asked, forecasts=columns, outcome=outcome, classes=True, questions=False)
    log = rows_of(table, named, labels)
    said += remarks(log, named)
    said += sums_of(table, log, "name the columns of all classes", "rows are divided by it")
    p = divided(np.column_stack([*log.forecasts.values()]))
    forecasts = dict(zip(columns, p.T, strict=True))
    return replace(log, forecasts=forecasts, said=(*said, *log.said)), labels


def _columns(table: Rows, asked: str, others: Sequence[str]) -> tuple[str, ...]:
    """The columns of a list of names, or those but for `others` that fit a pattern, in the order of the file."""
    found = list[str]()
    for each in (name.strip() for name in asked.split(",")):
        free = [name for name in table.columns if name not in others]
        fits = [name for name in free if fnmatchcase(name, each)] if "*" in each else [each]
        if not fits:
            raise InvalidData(
                f"{table.name}: no column fits {each!r}; there are: {quoted(table.columns, 12)}"
            )
        found += fits
    for name in found:
        table.check_column(name)
        if found.count(name) > 1:
            raise InvalidParameter(f"column {name!r} is asked for twice; expected each class once")
    if len(found) < 2:
        raise InvalidParameter(f"--classes {asked} is one column; expected two or more, of all classes")
    return tuple(found)


def _labels(
    table: Rows, outcome: str, columns: Sequence[str], there: Sequence[str], given: str | None
) -> tuple[str, ...]:
    """The label of each column: as given, or its name without as many letters as all names have in common."""
    if given is not None:
        named = tuple(name.strip() for name in given.split(","))
        if len(named) != len(columns) or len({*named}) < len(named):
            raise InvalidParameter(
                f"--labels {given}; expected {len(columns)} different ones, one for each column"
            )
        choices = [named]
    else:
        letters = zip(*columns, strict=False)
        most = next((i for i, each in enumerate(letters) if len({*each}) > 1), min(map(len, columns)))
        choices = [tuple(name[cut:] for name in columns) for cut in range(most + 1)]
    lacking = [
        [text for text in there if not any(is_word(text, [name]) for name in names)] for names in choices
    ]
    fewest = min(lacking, key=len)
    if not fewest:
        return choices[lacking.index(fewest)]
    # The label is named that fails the names of columns which fit the others.
    shown = choices[-1] if len(choices) == 1 else columns
    raise InvalidData(
        f"{table.name}: label {fewest[0]!r} in column {outcome!r} is none of {quoted(shown, 12)}; expected a column "
        "named after each label, or --labels with the labels in the order of the columns"
    )
