"""A file of forecasts and outcomes: which columns are which, and what stands in them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidData
from onlinecal.core.members import members_of
from onlinecal.core.rows import Outcomes, Rows, is_word
from onlinecal.core.words import number_of
from onlinecal.logs.columns import Asked, columns_of, quoted
from onlinecal.logs.expected import halves
from onlinecal.logs.questions import check_one_outcome, question_column

#: groups, at most
GROUPS = 1000
#: the remark on rows of one cluster
ONE = "rows with one label in {!r} may depend on each other: they are one cluster"


@dataclass(frozen=True)
class Log:
    """Forecasts and outcomes, row by row."""

    source: str
    forecasts: dict[str, Floats]  # by the name of the column, in [0, 1]
    outcomes: Floats  # each 0 or 1, or of classes the place of the label in `forecasts`; NaN where it may be missing
    outcome: str  # the name of their column
    weights: Floats | None = None
    counts: Floats | None = None  # how often each row is there; None where each is one
    times: Floats | None = None  # they do not descend; dates are days since 1970
    time_words: Callable[[int], str] | None = None  # the time of a row as it is written
    groups: dict[str, Ints] | None = None  # numbers of the rows of each group, in order
    members: dict[str, Ints] | None = None  # the same of groups that may overlap, some without rows
    by: str = ""  # the names of those columns, with commas between several; "" for none
    time: str = ""
    clusters: Ints | None = None  # the cluster of each row, from 0; None where each is its own
    cluster: str = ""  # the column of clusters, or that of times where rows share some; "" for none
    said: tuple[str, ...] = ()  # what was guessed, left out or sorted
    duplicates: int = 0  # rows that are equal to an earlier one, in all columns of the file
    places: Ints | None = None  # which rows of the file these are, from 0; None of counted ones
    known: Floats | None = None  # when outcomes became known, not before `times`; NaN for never
    total: int = 0  # rows of the file, with those that are left out
    dropped: int = 0  # how many of these are left out by a word
    zeros: tuple[str, ...] = ()  # with `positive`, the words that stand for 0
    halves: int = 0  # rows that are there twice, with outcome 1 and with outcome 0, as it is an expected one
    # forecasts of rows that are left out for they have no outcome
    unresolved: dict[str, Floats] | None = None

    @property
    def rows(self) -> int:
        """n."""
        return self.rows_of(np.arange(len(self.outcomes)))

    def rows_of(self, some: Ints) -> int:
        """How many rows of the file some of these are."""
        many = self.weights if self.halves else self.counts
        return len(some) if many is None else round(float(many[some].sum()))


def read_log(table: Rows, asked: Asked) -> Log:
    """The columns of a file that are asked for or guessed, checked row by row."""
    named, guessed = columns_of(table, asked)
    log = rows_of(table, named)
    said = remarks(log, named)
    # Where forecasts are distinct no rows are equal.
    apart = any(len(np.unique(values)) == log.rows for values in log.forecasts.values())
    duplicates = 0 if apart or log.places is None else table.duplicates(np.unique(log.places))
    return replace(log, said=(*guessed, *said, *log.said), duplicates=duplicates)


def rows_of(table: Rows, asked: Asked, names: Sequence[str] = ()) -> Log:
    """The same of columns that are named; of classes with these labels, default the names of their columns."""
    number = {name: probabilities(table, name, asked.percent) for name in asked.forecasts}
    if asked.classes:
        (place, labels), names = table.groups(str(asked.outcome)), names or asked.forecasts
        zeros, of = list[str](), {name: i for i, name in enumerate(names)}
        same = [next((name for name in names if is_word(label, [name])), "") for label in labels]
        found = [of.get(label, of.get(other, np.nan)) for label, other in zip(labels, same, strict=True)]
        outcomes = np.array(found, dtype=np.float64)[place]
        dropped = np.array([is_word(label, asked.drop) for label in labels], dtype=bool)[place]
    else:
        outcomes, zeros, dropped = outcomes_of(table, asked)
    complete = np.all([np.isfinite(values) for values in number.values()], axis=0) & ~dropped
    keep = (np.isfinite(outcomes) | asked.open) & complete
    many, total = table.counts, table.rows if table.counts is None else int(table.counts.sum())
    lacks = ~keep & ~dropped
    if lacks.any() and not asked.skip_missing:
        i, lacking = (
            int(np.argmax(lacks)),
            np.count_nonzero(lacks) if many is None else int(many[lacks].sum()),
        )
        empty = next((name for name, values in number.items() if np.isnan(values[i])), asked.outcome)
        raise InvalidData(
            f"{table.where(i)}: column {empty!r} is missing, as in {lacking} of {total} rows; "
            "expected a value, or --skip-missing to leave such rows out"
        )
    weights = times = known = None
    if asked.weight is not None:
        weights = weights_in(table, asked.weight, keep)
    if asked.time is not None:
        times = table.numbers(asked.time, dates=True)
    if asked.resolved is not None:
        known = table.numbers(asked.resolved, dates=True, gaps=np.nan)
        early = known < (-np.inf if times is None else times)
        if early.any():
            i = int(np.argmax(early))
            raise InvalidData(
                f"{table.where(i)}: the outcome is known ({table.text(asked.resolved, i)}) before the question is "
                f"asked ({table.text(str(asked.time), i)}); expected it at that time or later"
            )
    rows, said = np.flatnonzero(keep), tuple[str, ...]()
    if times is not None and (np.diff(times[rows]) < 0.0).any():
        if not asked.sort:
            table.check_order(str(asked.time), times, rows, "rows in order, or --sort")
        rows = rows[np.argsort(times[rows], kind="stable")]
        said = (f"rows are brought into the order of {asked.time!r}",)
    members, missing = members_of(table, asked.groups)
    for name, none in missing.items():
        if without := round(float((none if many is None else none * many)[rows].sum())):
            said += (f"caution: {number_of(without, 'row')} without {name!r}: in none of its groups",)
    clusters, cluster = None, asked.cluster or asked.key or ""
    if not cluster and asked.questions and many is None and not asked.open:
        cluster = _question_column(table, asked, rows, [*number.values()], outcomes) or ""
    if cluster:
        clusters = clusters_in(table, cluster, keep)[rows]
        if asked.key is not None:
            check_one_outcome(table, cluster, rows, clusters, outcomes[rows], names)
        if asked.cluster is not None:
            said += (ONE.format(cluster),)
        else:
            count = number_of(len(np.unique(clusters)), "question")
            said += (
                f"{count} in {cluster!r}, each with one outcome, are one cluster each (--id none takes rows as "
                "independent)",
            )
    elif times is not None and len(rows) and (np.diff(times[rows]) == 0.0).any():
        clusters, cluster = np.cumsum(np.diff(times[rows], prepend=times[rows[0]]) > 0.0), str(asked.time)
        said += (f"rows of one time in {cluster!r} may depend on each other: they are one cluster",)
    y, shares, added = outcomes[rows], None, 0
    if asked.fractional and (added := int(((y > 0.0) & (y < 1.0)).sum())):
        more = float((y * (1.0 - y)).mean())
        said += (
            f"{added} of {len(y)} outcomes q are between 0 and 1: each is outcome 1 with weight q and outcome 0 with "
            f"weight 1 − q, so the Brier score is {more:.3g} more than the mean of (p − q)²",
        )
        taken, y, shares = halves(y)
        rows, clusters = rows[taken], taken if clusters is None else clusters[taken]
    groups = groups_in(table, asked.by, rows)
    return Log(
        table.name,
        {name: values[rows] for name, values in number.items()},
        y,
        str(asked.outcome),
        weights=shares if weights is None else weights[rows],
        counts=None if many is None else many[rows],
        times=None if times is None else times[rows],
        time_words=None if times is None else lambda i: table.text(str(asked.time), int(rows[i])),
        groups=groups or None,
        members={name: np.flatnonzero(inside[rows]) for name, inside in members.items()} or None,
        by=", ".join(asked.by),
        time=asked.time or "",
        clusters=clusters,
        cluster=cluster,
        said=said,
        places=rows if many is None else None,
        known=None if known is None else known[rows],
        total=total,
        dropped=int((dropped if many is None else many[dropped]).sum()),
        zeros=tuple(zeros),
        halves=added,
        # On a platform there are always open questions.
        unresolved=None
        if asked.layout
        else {name: values[complete & ~keep] for name, values in number.items()},
    )


def remarks(log: Log, asked: Asked) -> list[str]:
    """Remarks on all rows together; refuses rows of which nothing can be measured."""
    if log.total == 0:
        raise InvalidData(f"{log.source} has a header and no rows; expected at least one")
    if log.rows == 0:
        both = "a forecast" if asked.open else "both a forecast and an outcome"
        raise InvalidData(f"{log.source}: no row has {both}; expected at least one")
    small = [name for name, p in log.forecasts.items() if 0.0 < p.max() <= 0.01]
    said = [unit_caution(name) for name in small if asked.percent]
    if asked.above is not None:
        said.append(f"outcome 1 is {asked.outcome!r} above {asked.above:g}")
    if asked.positive is not None:
        if not (log.outcomes == 1.0).any():
            raise never_positive(log.source, asked, log.zeros)
        zero = quoted(log.zeros, 5) or "nothing"
        said.append(f"outcome 1 is {asked.positive!r} in {asked.outcome!r}, and 0 is {zero}")
    if log.dropped:
        words = [f"{quoted(asked.drop, 6)} in {asked.outcome!r}"] if asked.drop else []
        words += [f"not {word!r} in {name!r}" for name, word in asked.only]
        said.append(f"{log.dropped} of {log.total} rows are left out: {', or '.join(words)}")
    if lacks := log.total - log.dropped - log.rows:
        lacking = "no forecast" if asked.open else "no forecast or outcome"
        said.append(f"{lacks} of {log.total} rows have {lacking} and are left out")
    return said


def outcomes_of(table: Rows, asked: Asked) -> Outcomes:
    """The outcomes of a file; or the event that a number is above another."""
    column, unread = str(asked.outcome), np.zeros(table.rows, dtype=bool)
    if asked.above is not None:
        amounts = table.numbers(column, gaps=np.nan, words=False)
        return Outcomes(np.where(np.isnan(amounts), np.nan, amounts > asked.above), [], unread)
    for name, word in asked.only:
        unread |= ~table.holds(name, [word])
    drop = (*asked.drop, *(asked.settled or ())[:1])
    found = table.outcomes(
        column, asked.positive, asked.negative, drop, fractional=asked.fractional, unread=unread
    )
    values, dropped = found.values, found.dropped | unread
    if asked.settled is not None:
        word, settled = asked.settled
        there = table.holds(column, [word]) & ~unread
        values = np.where(there, table.numbers(settled, gaps=np.nan), values)
        dropped &= ~there
    return Outcomes(values, found.zeros, dropped)


def probabilities(table: Rows, name: str, percent: bool) -> Floats:
    """A column of forecasts in [0, 1]; NaN where a cell is empty."""
    values = table.numbers(name, gaps=np.nan, percent=percent, words=False)
    if percent:
        values /= 100.0
    good = ((values >= 0.0) & (values <= 1.0)) | np.isnan(values)
    if not good.all():
        i = int(np.argmin(good))
        # Probabilities that rounding or a slip has lifted above 1 are few, and hardly above 1.
        there = values[~np.isnan(values)]
        looks = there.min() >= 0.0 and there.max() <= 100.0 and np.median(there) >= 2.0
        hint = "; these look like per cent: --percent" if looks and not percent else ""
        expected = "per cent from 0 to 100" if percent else "a probability in [0, 1]"
        raise InvalidData(
            f"{table.where(i)}: column {name!r} holds {table.cell(name, i)}; expected {expected}{hint}"
        )
    return values + 0.0


def weights_in(table: Rows, name: str, keep: Any) -> Floats:
    """A column of weights, finite and ≥ 0 in the rows that are kept."""
    weights = table.numbers(name, gaps=np.nan, words=False)
    table.refuse(name, weights, (weights >= 0.0) | ~keep, "expected a finite weight ≥ 0")
    if not (weights[keep] > 0.0).any():
        raise InvalidData(f"{table.name}: all weights in {name!r} are 0; expected a positive one")
    return weights


def clusters_in(table: Rows, name: str, keep: Any) -> Ints:
    """The number of the label of each row, none of which is empty in the rows that are kept."""
    place, texts = table.groups(name)
    bare = np.isin(place, [i for i, text in enumerate(texts) if not text]) & keep
    if bare.any():
        where = table.where(int(np.argmax(bare)))
        raise InvalidData(f"{where}: column {name!r} is empty; expected the label of a cluster")
    return place


def groups_in(table: Rows, by: Sequence[str], rows: Ints) -> dict[str, Ints]:
    """The places among these rows of those with each text of some columns, in the order of the texts."""
    groups = dict[str, Ints]()
    for name in by:
        place, texts = table.groups(name)
        order = np.argsort(place[rows], kind="stable")
        ends = np.searchsorted(place[rows][order], np.arange(len(texts) + 1))
        for i, text in enumerate(texts):
            if ends[i] < ends[i + 1]:
                label = text if len(by) == 1 else f"{name}: {text or '(empty)'}"
                groups[label] = order[ends[i] : ends[i + 1]]
    if len(groups) > GROUPS:
        raise InvalidData(
            f"{table.name}: {', '.join(by)!r} has {len(groups)} different values; expected at most {GROUPS} groups"
        )
    return dict(sorted(groups.items()))


def unit_caution(name: str) -> str:
    """The caution about `percent` where all forecasts might have been probabilities."""
    return (
        f"caution: no cell of column {name!r} is above 1, and --percent divides all of them by 100; leave it out if "
        "they are probabilities"
    )


def never_positive(source: str, asked: Asked, there: Sequence[str]) -> InvalidData:
    """The error where the word for 1 stands in no row, but these do."""
    said = f"{source}: no row of column {asked.outcome!r} holds {asked.positive!r}"
    return InvalidData(f"{said}; there are: {quoted(there, 6)}")


def questions_in(table: Rows, asked: Asked) -> str | None:
    """The column that tells questions apart, where they come back in rows that are complete."""
    p = [probabilities(table, name, asked.percent) for name in asked.forecasts]
    classes = asked.classes
    y = (
        table.groups(str(asked.outcome))[0].astype(np.float64)
        if classes
        else outcomes_of(table, asked).values
    )
    return _question_column(table, asked, np.flatnonzero(np.isfinite([y, *p]).all(axis=0)), p, y)


def _question_column(table: Rows, asked: Asked, rows: Ints, p: Sequence[Floats], y: Floats) -> str | None:
    """The same by these rows, of columns that have been read."""
    taken = {*asked.forecasts, asked.outcome, asked.time, asked.weight, asked.resolved}
    return question_column(table, taken, rows, [each[rows] for each in p], y[rows])
