"""Which columns of a file hold forecasts and outcomes: as asked for, or by their names and cells."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.rows import EMPTY, MOST_WORDS, WORDS, Rows, are_names, as_number, is_word
from onlinecal.core.words import listed
from onlinecal.logs.layouts import layout_of, named
from onlinecal.logs.opposites import plain, without_opposites

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
    groups: tuple[str, ...] = ()  # names of columns, or several with commas between them
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
    above: float | None = None  # the outcome is 1 where the number in its column is above this one
    fractional: bool = False  # whether outcomes between 0 and 1 are expected outcomes; else they are an error
    resolutions: str | None = None  # another file, which has the outcomes
    layout: str = ""  # the name of a platform's layout that was found, or none; "" before it is looked for
    only: tuple[tuple[str, str], ...] = ()  # columns with the word of rows that are read; others are left out
    settled: tuple[str, str] | None = None  # a word for an expected outcome, and the column that holds it


#: options of the commands for settings beside columns, and those that `measure` alone has
READING = {
    "--positive": "positive", "--negative": "negative", "--drop": "drop", "--above": "above", "--percent": "percent",
    "--skip-missing": "skip_missing", "--sort": "sort", "--resolutions": "resolutions", "--delimiter": "delimiter",
    "--encoding": "encoding",
}  # fmt: skip
MEASURING = {
    "--by": "by",
    "--groups": "groups",
    "--weight": "weight",
    "--cluster": "cluster",
    "--id": "key",
    "--fractional": "fractional",
}


def options_of(asked: Any, names: Mapping[str, str]) -> list[str]:
    """The options by which a file was read, as words of a command."""
    words = list[str]()
    for option, name in names.items():
        value = getattr(asked, name)
        for each in [*value] if isinstance(value, list | tuple) else [value]:
            if each is not None and each is not False:
                text = f"{each:.15g}" if isinstance(each, float) else str(each)
                words += [option] if each is True else [option, shlex.quote(text)]
    return words + ["--id", "none"] * ("--id" in names and not asked.questions)


def with_layout(table: Rows, asked: Asked, outcomes: bool) -> tuple[Asked, list[str]]:
    """The same with the columns and words of a platform's layout, where nothing else is asked for; and a remark."""
    layout = None if asked.layout or asked.classes else layout_of(table)
    if layout is None:
        return asked, []
    of = named(table)
    forecasts, outcome = asked.forecasts or (of[layout.forecast],), asked.outcome or of.get(layout.outcome)
    if outcome is None and outcomes:
        if known_names([name for name in table.columns if plain(name) not in layout.no_outcomes], OUTCOMES):
            return asked, []
        seems = "".join(
            f" (column {of[name]!r} is something else)" for name in layout.no_outcomes if name in of
        )
        raise InvalidData(
            f"{table.name} is a {layout.name} without outcomes{seems}; expected --resolutions FILE with "
            f"{layout.beside} (measure and recalibrate take it), or --outcome COLUMN"
        )
    said = [f"read as a {layout.name}"]
    # A row without an outcome is a question that is open.
    found = replace(asked, forecasts=forecasts, outcome=outcome, layout=layout.name, skip_missing=True)
    if asked.key is None and asked.cluster is None and asked.questions and not asked.open:
        found = replace(found, key=of.get(layout.question), cluster=of.get(layout.cluster))
    if outcome != of.get(layout.outcome) or asked.above is not None:
        return found, said
    only = tuple((of[column], word) for column, word in layout.only if column in of)
    same = layout.words is not None and (not asked.positive or is_word(asked.positive, layout.words[:1]))
    # The price of a question is that of the layout's event.
    if layout.settled is not None and asked.fractional and same:
        word, price = layout.settled
        if price in of and not is_word(word, asked.drop):
            found = replace(found, settled=(word, of[price]))
    if layout.words is not None and same:
        negative = asked.negative or layout.words[1:]
        found = replace(found, positive=asked.positive or layout.words[0], negative=negative)
    taken = [*filter(None, [found.positive]), *found.negative, *(found.settled or ())[:1], *asked.drop]
    drop = (*asked.drop, *(word for word in layout.drop if not is_word(word, taken)))
    return replace(found, only=only, drop=drop), said + [f"caution: {layout.caution}"] * bool(layout.caution)


def columns_of(
    table: Rows, asked: Asked, one: bool = False, outcomes: bool = True
) -> tuple[Asked, list[str]]:
    """The same with all columns named, where asked for `one` of forecasts or no `outcomes`; and what was guessed."""
    asked, read_as = with_layout(table, asked, outcomes)
    # A column may have a comma in its name.
    groups = [[text] if text in table.columns else text.split(",") for text in asked.groups]
    asked = replace(asked, groups=tuple(name.strip() for names in groups for name in names))
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
    named = [
        *asked.forecasts, asked.outcome, *asked.by, *asked.groups, asked.time, asked.weight, asked.cluster, asked.key,
    ]  # fmt: skip
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
    if asked.above is not None:
        if not math.isfinite(asked.above):
            raise InvalidParameter(f"--above {asked.above:g}; expected a finite number")
        others = [f"the word {word!r}" for word in words]
        others += ["--classes"] * asked.classes + ["--fractional"] * asked.fractional
        if others:
            raise InvalidParameter(f"--above {asked.above:g} beside {others[0]}; expected one or the other")
    if asked.fractional and asked.weight is not None:
        raise InvalidParameter(f"--fractional beside --weight {asked.weight}; expected one or the other")
    # Doubled names cannot be told apart, so that none of them is guessed.
    single = [
        name for name in table.columns if name and table.columns.count(name) == 1 and not table.nested(name)
    ]
    free = [name for name in single if name not in wanted]
    said, outcome, forecasts = read_as, asked.outcome, list(asked.forecasts)
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
                f"no forecasts are in {quoted(hard, 6)}: labels alone, beside a column of probabilities"
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
        names_of = quoted(forecasts, 6)
        raise InvalidData(
            f"{table.name}: columns {names_of} might be the forecasts; expected one: --forecast COLUMN"
        )
    return replace(asked, forecasts=tuple(forecasts), outcome=outcome), said


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
            f"column with the name of each label, of: {quoted(named or table.columns, 12)}"
        )
    for name in columns:
        table.check_column(name)
    if len(columns) == 1 or outcome in columns:
        raise InvalidData(
            f"{table.name}: classes {quoted(columns, 6)}; expected two or more columns of probabilities, named by "
            "--forecast"
        )
    return columns


def quoted(names: Sequence[str], most: int) -> str:
    """The first names with quotation marks, and how many more there are."""
    return listed([*map(repr, names)], most)


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
        f"{quoted([name for name in table.columns if name not in names], 12)}"
        + (f" (without {quoted(names, 6)}, of more than {MOST_WORDS} words)" if names else "")
    )


def holds_outcome(table: Rows, name: str, asked: Asked) -> bool:
    """Whether the first cells of a column may be outcomes."""
    words = {cell.strip() for cell in table.sample(name) if not is_word(cell, asked.drop)} - {""}
    if asked.above is not None:
        return False
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
