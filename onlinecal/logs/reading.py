"""A file of forecasts and outcomes: which columns are which, and what stands in them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.rows import EMPTY, MOST_WORDS, WORDS, Rows, are_names, as_number, is_word
from onlinecal.core.words import number_of
from onlinecal.logs.opposites import plain, without_opposites
from onlinecal.logs.questions import check_one_outcome, question_column

#: usual names of columns of forecasts and of outcomes, in lower case, letters and digits alone
FORECASTS = {
    "p", "prob", "probability", "probabilities", "forecast", "forecasts", "prediction", "predictions", "predicted",
    "pred", "ypred", "yprob", "yproba", "yscore", "yhat", "phat", "confidence", "credence", "pyes", "proba",
}  # fmt: skip
OUTCOMES = {
    "y", "outcome", "outcomes", "label", "labels", "target", "actual", "observed", "observation", "event", "result",
    "ytrue", "truth", "resolution", "resolved", "happened", "correct", "class", "iscorrect",
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """How a file is read: which columns are what, and in which form."""

    forecasts: tuple[str, ...] = ()  # names of columns; empty to guess
    outcome: str | None = None  # guessed where it is not named
    positive: str | None = None  # the word for 1 in the column of outcomes. Default: 1 or true
    # whether the column of outcomes holds labels; each has a column of probabilities with its name
    classes: bool = False
    by: tuple[str, ...] = ()
    time: str | None = None
    weight: str | None = None
    cluster: str | None = None  # rows with the same text there may depend on each other
    percent: bool = False
    # whether rows without a forecast or an outcome are left out; else they are an error
    skip_missing: bool = False
    # whether rows are brought into the order of time; else rows out of order are an error
    sort: bool = False
    resolved: str | None = None  # the column of times at which outcomes became known; empty for never
    key: str | None = None  # the column that tells questions apart
    questions: bool = True  # whether it is looked for where it is not named
    open: bool = False  # whether outcomes may be missing, as they are not known yet; else that is an error
    delimiter: str | None = None  # by the header where it is not given
    encoding: str | None = None
    negative: Sequence[str] = ()  # with `positive`, the words for 0. Default: the only other one
    drop: Sequence[str] = ()  # the words in the column of outcomes for no outcome: such rows are left out


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
    by: str = ""  # the names of those columns, with commas between several; "" for none
    time: str = ""
    clusters: Ints | None = None  # the cluster of each row, from 0; None where each is its own
    cluster: str = ""  # the column of clusters, or that of times where rows share some; "" for none
    said: tuple[str, ...] = ()  # what was guessed, left out or sorted
    duplicates: int = 0  # rows that are equal to an earlier one, in all columns of the file
    places: Ints | None = None  # which rows of the file these are, from 0; None of counted ones
    known: Floats | None = None  # when outcomes became known, not before `times`; NaN for never
    total: int = 0  # rows of the file, with those that are left out
    dropped: int = 0  # how many of these `drop` leaves out
    zeros: tuple[str, ...] = ()  # with `positive`, the words that stand for 0
    # forecasts of rows that are left out for they have no outcome
    unresolved: dict[str, Floats] | None = None

    @property
    def rows(self) -> int:
        """n."""
        return len(self.outcomes) if self.counts is None else int(self.counts.sum())


def read_log(table: Rows, asked: Asked) -> Log:
    """The columns of a file that are asked for or guessed, checked row by row."""
    named, guessed = columns_of(table, asked)
    log = _rows_of(table, named)
    said = _remarks(log, named)
    # Where forecasts are distinct no rows are equal.
    apart = any(len(np.unique(values)) == log.rows for values in log.forecasts.values())
    duplicates = 0 if apart or log.places is None else table.duplicates(log.places)
    return replace(log, said=(*guessed, *said, *log.said), duplicates=duplicates)


def _rows_of(table: Rows, asked: Asked) -> Log:
    """The same of columns that are named."""
    number = {name: probabilities(table, name, asked.percent) for name in asked.forecasts}
    if asked.classes:
        place, labels = table.groups(str(asked.outcome))
        zeros, of = list[str](), {name: i for i, name in enumerate(asked.forecasts)}
        outcomes = np.array([of.get(label, np.nan) for label in labels], dtype=np.float64)[place]
        dropped = np.array([is_word(label, asked.drop) for label in labels], dtype=bool)[place]
    else:
        outcomes, zeros, dropped = table.outcomes(
            str(asked.outcome), asked.positive, asked.negative, asked.drop
        )
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
        weights = table.numbers(asked.weight, gaps=np.nan, words=False)
        table.refuse(asked.weight, weights, (weights >= 0.0) | ~keep, "expected a finite weight ≥ 0")
        if not (weights[keep] > 0.0).any():
            raise InvalidData(f"{table.name}: all weights in {asked.weight!r} are 0; expected a positive one")
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
    groups = dict[str, Ints]()
    for name in asked.by:
        place, texts = table.groups(name)
        order = np.argsort(place[rows], kind="stable")
        ends = np.searchsorted(place[rows][order], np.arange(len(texts) + 1))
        for i, text in enumerate(texts):
            if ends[i] < ends[i + 1]:
                label = text if len(asked.by) == 1 else f"{name}: {text or '(empty)'}"
                groups[label] = order[ends[i] : ends[i + 1]]
    clusters, cluster = None, asked.cluster or asked.key or ""
    if not cluster and asked.questions and many is None and not asked.open:
        cluster = _question_column(table, asked, rows, [*number.values()], outcomes) or ""
    if cluster:
        place, texts = table.groups(cluster)
        bare = np.isin(place, [i for i, text in enumerate(texts) if not text]) & keep
        if bare.any():
            raise InvalidData(
                f"{table.where(int(np.argmax(bare)))}: column {cluster!r} is empty; expected the label of a cluster"
            )
        clusters = place[rows]
        if asked.key is not None:
            check_one_outcome(table, cluster, rows, clusters, outcomes[rows])
        if asked.cluster is not None:
            said += (f"rows with one label in {cluster!r} may depend on each other: they are one cluster",)
        else:
            count = number_of(len(np.unique(clusters)), "question")
            said += (
                f"{count} in {cluster!r}, each with one outcome, are one cluster each (--id none takes rows as "
                "independent)",
            )
    elif times is not None and len(rows) and (np.diff(times[rows]) == 0.0).any():
        clusters, cluster = np.cumsum(np.diff(times[rows], prepend=times[rows[0]]) > 0.0), str(asked.time)
        said += (f"rows of one time in {cluster!r} may depend on each other: they are one cluster",)
    return Log(
        table.name,
        {name: values[rows] for name, values in number.items()},
        outcomes[rows],
        str(asked.outcome),
        weights=None if weights is None else weights[rows],
        counts=None if many is None else many[rows],
        times=None if times is None else times[rows],
        time_words=None if times is None else lambda i: table.text(str(asked.time), int(rows[i])),
        groups=dict(sorted(groups.items())) or None,
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
        unresolved={name: values[complete & ~keep] for name, values in number.items()},
    )


def _remarks(log: Log, asked: Asked) -> list[str]:
    """Remarks on all rows together; refuses rows of which nothing can be measured."""
    if log.total == 0:
        raise InvalidData(f"{log.source} has a header and no rows; expected at least one")
    if log.rows == 0:
        both = "a forecast" if asked.open else "both a forecast and an outcome"
        raise InvalidData(f"{log.source}: no row has {both}; expected at least one")
    small = [name for name, p in log.forecasts.items() if 0.0 < p.max() <= 0.01]
    said = [unit_caution(name) for name in small if asked.percent]
    if asked.positive is not None:
        if not (log.outcomes == 1.0).any():
            raise never_positive(log.source, asked, log.zeros)
        zero = _listed(log.zeros, 5) or "nothing"
        said.append(f"outcome 1 is {asked.positive!r} in {asked.outcome!r}, and 0 is {zero}")
    if log.dropped:
        words = " or ".join(map(repr, asked.drop))
        said.append(f"{log.dropped} of {log.total} rows have {words} in {asked.outcome!r} and are left out")
    if lacks := log.total - log.dropped - log.rows:
        lacking = "no forecast" if asked.open else "no forecast or outcome"
        said.append(f"{lacks} of {log.total} rows have {lacking} and are left out")
    return said


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


def unit_caution(name: str) -> str:
    """The caution about `percent` where all forecasts might have been probabilities."""
    return (
        f"caution: no cell of column {name!r} is above 1, and --percent divides all of them by 100; leave it out if "
        "they are probabilities"
    )


def never_positive(source: str, asked: Asked, there: Sequence[str]) -> InvalidData:
    """The error where the word for 1 stands in no row, but these do."""
    said = f"{source}: no row of column {asked.outcome!r} holds {asked.positive!r}"
    return InvalidData(f"{said}; there are: {_listed(there, 6)}")


def columns_of(
    table: Rows, asked: Asked, one: bool = False, outcomes: bool = True
) -> tuple[Asked, list[str]]:
    """The same with all columns named, where asked for `one` of forecasts or no `outcomes`; and what was guessed."""
    if len(table.columns) == 1 and " " in table.columns[0]:
        raise InvalidData(
            f"{table.name}: the header {table.columns[0][:60]!r} has none of , ; tab |; expected one between names, or "
            "--delimiter"
        )
    if all(as_number(column)[0] is not None and column for column in table.columns):
        raise InvalidData(
            f"{table.name}: the first line holds numbers ({', '.join(table.columns[:4])}); expected a header with the "
            "names of the columns"
        )
    named = [*asked.forecasts, asked.outcome, *asked.by, asked.time, asked.weight, asked.cluster, asked.key]
    wanted = [name for name in named if name is not None]
    if asked.resolved is not None:
        if asked.time is None:
            raise InvalidParameter(
                f"times of outcomes ({asked.resolved!r}) without times of questions; expected both columns (--time)"
            )
        # Where outcomes are known at once both times may be one column.
        wanted += [asked.resolved] if asked.resolved != asked.time else []
    for name in wanted:
        if wanted.count(name) > 1:
            raise InvalidParameter(f"column {name!r} is asked for twice; expected each column in one place")
        table.check_column(name)
    if asked.negative and asked.positive is None:
        raise InvalidParameter(
            f"--negative {asked.negative[0]} without --positive; expected the word for 1, too"
        )
    words = [*filter(None, [asked.positive]), *asked.negative, *asked.drop]
    if twice := [word for i, word in enumerate(words) if is_word(word, words[:i])]:
        raise InvalidParameter(
            f"the word {twice[0]!r} is asked for twice; expected it for one of 1, 0 and neither"
        )
    # Doubled names cannot be told apart, so that none of them is guessed.
    free = [name for name in table.columns if name not in wanted and table.columns.count(name) == 1 and name]
    said, outcome, forecasts = [], asked.outcome, list(asked.forecasts)
    if outcome is None and outcomes:
        either = (
            repr(asked.positive) if asked.positive else "0 and 1 (if outcomes are words: --positive WORD)"
        )
        holds = "names of other columns" if asked.classes else either
        names = [
            n
            for n in table.columns
            if table.columns.count(n) == 1 and are_names(table.sample(n), table.columns)
        ]
        may = [n for n in free if n not in names]
        found = known_names(may, OUTCOMES) or [n for n in may if holds_outcome(table, n, asked)]
        if len(found) != 1:
            raise _unclear(table, "outcomes", found, "--outcome", f"holds {holds}", names)
        outcome = found[0]
        free.remove(outcome)
        said.append(f"outcomes are read from column {outcome!r}")
    if asked.classes:
        forecasts = _of_labels(table, str(outcome), forecasts, asked.drop)
        said.append(f"each label in {outcome!r} is measured against the rest, with the column of its name")
    if not forecasts:
        most = 100.0 if asked.percent else 1.0
        forecasts = known_names(free, FORECASTS)
        units = [n for n in free if _is_unit(table.sample(n), most)]
        hard = [n for n in forecasts if n not in units and _is_label(table.sample(n))] if units else []
        forecasts = [n for n in forecasts if n not in hard] or units
        if hard:
            said.append(
                f"no forecasts are in {_listed(hard, 6)}: labels alone, beside a column of probabilities"
            )
        labels = (
            {label.lower() for label in table.groups(str(outcome))[1]}
            if asked.positive and outcome
            else set()
        )
        others = [name for name in forecasts if name.lower() in labels]
        if len(others) > 1 and (
            mine := [n for n in others if n.lower() == str(asked.positive).strip().lower()]
        ):
            # The columns of other labels are no forecasts of this one.
            forecasts = [name for name in forecasts if name in mine or name not in others]
            said.append(f"columns of other labels in {outcome!r} are left out; --classes measures each")
        if not forecasts:
            raise _unclear(table, "forecasts", [], "--forecast", "holds numbers between 0 and 1")
        forecasts = without_opposites(table, forecasts, asked.percent, asked.positive, said)
        several = "s" if len(forecasts) > 1 else ""
        said.append(f"forecasts are read from column{several} {', '.join(map(repr, forecasts))}")
    if one and len(forecasts) > 1:
        listed = _listed(forecasts, 6)
        raise InvalidData(
            f"{table.name}: columns {listed} might be the forecasts; expected one: --forecast COLUMN"
        )
    return replace(asked, forecasts=tuple(forecasts), outcome=outcome), said


def questions_in(table: Rows, asked: Asked) -> str | None:
    """The column that tells questions apart, where they come back in rows that are complete."""
    p = [probabilities(table, name, asked.percent) for name in asked.forecasts]
    if asked.classes:
        y = table.groups(str(asked.outcome))[0].astype(np.float64)
    else:
        y = table.outcomes(str(asked.outcome), asked.positive, asked.negative, asked.drop).values
    return _question_column(table, asked, np.flatnonzero(np.isfinite([y, *p]).all(axis=0)), p, y)


def _question_column(table: Rows, asked: Asked, rows: Ints, p: Sequence[Floats], y: Floats) -> str | None:
    """The same by these rows, of columns that have been read."""
    taken = {*asked.forecasts, asked.outcome, asked.time, asked.weight, asked.resolved}
    return question_column(table, taken, rows, [each[rows] for each in p], y[rows])


def _of_labels(table: Rows, outcome: str, named: list[str], drop: Sequence[str]) -> list[str]:
    """The columns of probabilities: those that are named, or those with the names of the labels."""
    labels = [label for label in table.groups(outcome)[1] if label and not is_word(label, drop)]
    columns = named or labels
    if empty := [name for name in named or table.columns if name and name.lower() in EMPTY]:
        raise InvalidData(
            f"{table.name}: label {empty[0]!r} is read as a missing cell; expected another word, in the name of the "
            f"column and in column {outcome!r}"
        )
    if lacking := [label for label in labels if label not in (named or table.columns)]:
        raise InvalidData(
            f"{table.name}: label {lacking[0]!r} in column {outcome!r} has no column of probabilities; expected a "
            f"column with the name of each label, of: {_listed(named or table.columns, 12)}"
        )
    for name in columns:
        table.check_column(name)
    if len(columns) == 1 or outcome in columns:
        raise InvalidData(
            f"{table.name}: classes {_listed(columns, 6)}; expected two or more columns of probabilities, named by "
            "--forecast"
        )
    return columns


def _listed(names: Sequence[str], most: int) -> str:
    return ", ".join(map(repr, names[:most])) + (", …" if len(names) > most else "")


def known_names(free: Sequence[str], names: set[str]) -> list[str]:
    """The columns with such names."""
    return [name for name in free if plain(name) in names]


def _unclear(
    table: Rows, what: str, found: Sequence[str], option: str, holds: str, names: Sequence[str] = ()
) -> InvalidData:
    """The error where columns do not tell what they are; those of `names` cannot be asked for."""
    if found:
        reason = f"columns {', '.join(map(repr, found))} might be"
    else:
        # Of a file that grows the names are all that is known.
        looked = any(table.sample(name) for name in table.columns if table.columns.count(name) == 1)
        reason = "no column is named so" + (f" or {holds}" if looked else "")
        doubled = sorted({name for name in table.columns if name and table.columns.count(name) > 1})
        reason += f" (there are several {', '.join(map(repr, doubled))})" if doubled else ""
    return InvalidData(
        f"{table.name}: cannot tell which column has the {what}: {reason}; expected {option} COLUMN, of: "
        f"{_listed([name for name in table.columns if name not in names], 12)}"
        + (f" (more than {MOST_WORDS} words are no outcomes: {_listed(names, 6)})" if names else "")
    )


def holds_outcome(table: Rows, name: str, asked: Asked) -> bool:
    """Whether the first cells of a column may be outcomes."""
    words = {cell.strip() for cell in table.sample(name) if not is_word(cell, asked.drop)} - {""}
    if asked.classes:
        return bool(words) and words <= set(table.columns)
    words = {word.lower() for word in words}
    if asked.positive is not None:
        return asked.positive.strip().lower() in words
    return bool(words) and words <= {"0", "1", "0.0", "1.0", *WORDS}


def _is_label(cells: Sequence[str]) -> bool:
    """Whether cells are 0, 1 and words, and no probabilities."""
    return all(x is None or math.isnan(x) or x in (0.0, 1.0) for x in (as_number(cell)[0] for cell in cells))


def _is_unit(cells: Sequence[str], most: float) -> bool:
    found: list[Any] = [as_number(cell)[0] for cell in cells]
    numbers = [x for x in found if x is not None and not math.isnan(x)]
    return (
        None not in found and all(0.0 <= x <= most for x in numbers) and any(0.0 < x < most for x in numbers)
    )
