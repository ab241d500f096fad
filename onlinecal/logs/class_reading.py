"""A file of forecasts of K classes: a column of probabilities for each, and one of labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
from threadpoolctl import threadpool_limits

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import scanned
from onlinecal.core.rows import Rows, is_word
from onlinecal.core.simplex import divided
from onlinecal.logs.classes import ClassEvaluation, by_group, evaluate_classes
from onlinecal.logs.columns import OUTCOMES, known_names, listed
from onlinecal.logs.multiclass import ROUNDED, check_sums
from onlinecal.logs.questions import check_one_outcome
from onlinecal.logs.reading import ONE, clusters_in, groups_in, probabilities, weights_in

#: options of the command for settings beside the column of labels
OPTIONS = {
    "--classes": "columns", "--labels": "labels", "--by": "by", "--weight": "weight", "--cluster": "cluster",
    "--id": "key", "--drop": "drop", "--percent": "percent", "--skip-missing": "skip_missing",
    "--delimiter": "delimiter", "--encoding": "encoding",
}  # fmt: skip


@dataclass(frozen=True)
class AskedClasses:
    """How such a file is read."""

    columns: str  # names with commas between, or a pattern such as p_*
    labels: str | None = None  # names with commas between, in the order of the columns
    outcome: str | None = None  # guessed by its name where it is not given
    weight: str | None = None
    cluster: str | None = None
    drop: Sequence[str] = ()
    percent: bool = False
    skip_missing: bool = False
    delimiter: str | None = None
    encoding: str | None = None
    by: Sequence[str] = ()
    key: str | None = None  # the column that tells questions apart, each with one label
    questions: bool = True  # whether --id is not none; here they are not looked for


@dataclass(frozen=True)
class ClassLog:
    """The rows of a file."""

    source: str
    outcome: str
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    p: Floats
    y: Ints
    weights: Floats | None
    clusters: Ints | None  # the cluster of each row
    groups: dict[str, Ints]  # numbers of the rows of each group
    said: tuple[str, ...]  # what was guessed, left out or divided

    @property
    def rows(self) -> int:
        """n."""
        return len(self.y)


# Threads of linear algebra wait for each other longer than they work here.
@threadpool_limits.wrap(limits=1, user_api="blas")
def evaluation_of(
    source: str, asked: AskedClasses, draws: int, level: float, seed: int
) -> tuple[ClassLog, ClassEvaluation]:
    """The rows of a file, and their measures."""
    with scanned(source, delimiter=asked.delimiter, encoding=asked.encoding) as file:
        log = read_classes(file.rows(), asked)
    found = evaluate_classes(
        log.p, np.array(log.labels)[log.y], weights=log.weights, clusters=log.clusters, labels=log.labels,
        draws=draws, level=level, seed=seed,
    )  # fmt: skip
    groups = by_group(log.p, log.y, log.groups, log.labels, log.weights, log.clusters, draws, seed)
    return log, replace(found, groups=groups)


def read_classes(table: Rows, asked: AskedClasses) -> ClassLog:
    """The columns that are asked for, checked row by row."""
    outcome, cluster, said = asked.outcome, asked.cluster or asked.key, list[str]()
    others = [name for name in (outcome, asked.weight, cluster, *asked.by) if name is not None]
    columns = _columns(table, asked.columns, others)
    if outcome is None:
        left = [name for name in table.columns if name not in (*columns, *others)]
        found = known_names(left, OUTCOMES)
        if len(found) != 1:
            of_these = f", of: {listed(left, 12)}" if left else ""
            raise InvalidData(
                f"{table.name}: cannot tell which column has the labels; expected --outcome COLUMN{of_these}"
            )
        outcome = found[0]
        said.append(f"labels are read from column {outcome!r}")
        others.append(outcome)
    taken = [*columns, *others]
    for name in taken:
        if taken.count(name) > 1:
            raise InvalidParameter(f"column {name!r} is asked for twice; expected each in one role")
    place, texts = table.groups(outcome)
    dropped = np.array([is_word(text, asked.drop) for text in texts], dtype=bool)
    there = [text for text, out in zip(texts, dropped, strict=True) if text and not out]
    labels = _labels(table, outcome, columns, there, asked.labels)
    if not table.rows:
        raise InvalidData(f"{table.name} has a header and no rows; expected at least one")
    of = {text: i for text in there for i, label in enumerate(labels) if is_word(text, [label])}
    y = np.array([of.get(text, -1) for text in texts], dtype=np.int64)[place]
    p = np.stack([probabilities(table, name, asked.percent) for name in columns], axis=1)
    out = dropped[place]
    lacks = ((y < 0) | np.isnan(p).any(axis=1)) & ~out
    if lacks.any() and not asked.skip_missing:
        i = int(np.argmax(lacks))
        empty = next((name for name, value in zip(columns, p[i], strict=True) if np.isnan(value)), outcome)
        raise InvalidData(
            f"{table.where(i)}: column {empty!r} is missing, as in {int(lacks.sum())} of {table.rows} rows; expected a "
            "value, or --skip-missing to leave such rows out"
        )
    keep = ~lacks & ~out
    rows = np.flatnonzero(keep)
    if not len(rows):
        raise InvalidData(f"{table.name}: no row has both forecasts and a label; expected at least one")
    weights = None if asked.weight is None else weights_in(table, asked.weight, keep)[rows]
    clusters = None
    if cluster is not None:
        clusters = clusters_in(table, cluster, keep)[rows]
        said.append(ONE.format(cluster))
        if asked.key is not None:
            check_one_outcome(table, cluster, rows, clusters, y[rows], labels)
    if out.any():
        said.append(
            f"{int(out.sum())} of {table.rows} rows are left out: {listed(asked.drop, 6)} in {outcome!r}"
        )
    if lacks.any():
        said.append(f"{int(lacks.sum())} of {table.rows} rows have no forecast or label and are left out")
    p, y = p[rows], y[rows]
    names = f"probabilities in {columns[0]!r} to {columns[-1]!r}"
    check_sums(p, lambda i: f"{table.where(int(rows[i]))}: {names}", "name the columns of all classes")
    off = float(np.abs(p.sum(axis=1) - 1.0).max())
    if off > ROUNDED:
        said.append(f"caution: the sum of {names} misses 1 by up to {off:.2g}; rows are divided by it")
    groups = groups_in(table, asked.by, rows)
    return ClassLog(
        table.name, outcome, columns, labels, divided(p), y, weights, clusters, groups, tuple(said)
    )


def _columns(table: Rows, asked: str, others: Sequence[str]) -> tuple[str, ...]:
    """The columns of a list of names, or those but for `others` that fit a pattern, in the order of the file."""
    found = list[str]()
    for each in (name.strip() for name in asked.split(",")):
        free = [name for name in table.columns if name not in others]
        fits = [name for name in free if fnmatchcase(name, each)] if "*" in each else [each]
        if not fits:
            raise InvalidData(
                f"{table.name}: no column fits {each!r}; there are: {listed(table.columns, 12)}"
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
    for names in choices:
        if all(any(is_word(text, [name]) for name in names) for text in there):
            return names
    shown = choices[-1] if len(choices) == 1 else columns
    lacking = next(text for text in there if not any(is_word(text, [name]) for name in choices[-1]))
    raise InvalidData(
        f"{table.name}: label {lacking!r} in column {outcome!r} is none of {listed(shown, 12)}; expected a column "
        "named after each label, or --labels with the labels in the order of the columns"
    )
