"""A file of forecasts and outcomes: which columns are which, and what stands in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData, InvalidParameter, suggestion
from onlinecal.forecasts.cells import SIGNS, UNIT, WORDS, as_number, as_outcome, hardly_per_cent, outside
from onlinecal.forecasts.sheet import Sheet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: names by which columns of forecasts and of outcomes are known, in lower case, without what is no letter or digit
FORECASTS = {
    "p", "prob", "probability", "probabilities", "forecast", "forecasts", "prediction", "predictions", "predicted",
    "pred", "ypred", "yprob", "yproba", "yhat", "phat", "confidence", "credence", "pyes", "proba",
}  # fmt: skip
OUTCOMES = {
    "y", "outcome", "outcomes", "label", "labels", "target", "actual", "observed", "observation", "event", "result",
    "ytrue", "truth", "resolution", "resolved", "happened", "correct", "class", "iscorrect",
}  # fmt: skip

#: rows that are looked at to guess which columns are which
LOOKED_AT = 1000


@dataclass(frozen=True)
class Asked:
    """Which columns of a file are what.

    Attributes
    ----------
    forecasts : tuple of str
        Names of columns of forecasts; empty to guess.
    outcome, time, weight : str, optional
        Names of columns; the outcome is guessed where it is not named.
    by : tuple of str
        Names of columns of groups.
    resolved : str, optional
        The column of times at which outcomes became known; empty for never.
    key : str, optional
        The column that tells questions apart, where outcomes come in lines of their own.
    positive : str, optional
        What stands in the column of outcomes where the event happened. Default: 1 or true.
    open : bool
        Whether outcomes may be missing, as they are not known yet; else that is an error.
    percent : bool
        Whether forecasts are per cent.
    skip_missing : bool
        Whether rows without a forecast or an outcome are left out; else they are an error.
    sort : bool
        Whether rows are brought into the order of time; else rows out of order are an error.
    """

    forecasts: tuple[str, ...] = ()
    outcome: str | None = None
    positive: str | None = None
    by: tuple[str, ...] = ()
    time: str | None = None
    weight: str | None = None
    percent: bool = False
    skip_missing: bool = False
    sort: bool = False
    resolved: str | None = None
    key: str | None = None
    open: bool = False


@dataclass(frozen=True)
class Log:
    """Forecasts and outcomes, row by row.

    Attributes
    ----------
    source : str
        The file.
    forecasts : dict of str to (n,) floats
        By the name of the column, in [0, 1].
    outcomes : (n,) floats
        Each 0 or 1; NaN where it may be missing.
    outcome : str
        The name of their column.
    weights, times : (n,) floats, optional
        Times do not descend; dates are days since 1970.
    time_words : (n,) list of str, optional
        Times as they are written.
    groups : dict of str to (m,) ints, optional
        Numbers of the rows of each group, in order (`group_name`).
    by, time : str
        The names of those columns, with commas between several; "" for none.
    said : tuple of str
        What was guessed, left out or sorted.
    duplicates : int
        Rows that are equal to an earlier one, in all columns of the file.
    places : (n,) ints, optional
        Which rows of the file these are, from 0.
    known : (n,) floats, optional
        When outcomes became known, not before `times`; NaN for never.
    """

    source: str
    forecasts: dict[str, Floats]
    outcomes: Floats
    outcome: str
    weights: Floats | None = None
    times: Floats | None = None
    time_words: Callable[[int], str] | None = None
    groups: dict[str, Ints] | None = None
    by: str = ""
    time: str = ""
    said: tuple[str, ...] = field(default=())
    duplicates: int = 0
    places: Ints | None = None
    known: Floats | None = None

    @property
    def rows(self) -> int:
        """n."""
        return len(self.outcomes)


def read_log(sheet: Sheet, asked: Asked) -> Log:
    """The columns of a file that are asked for or guessed, checked row by row.

    Parameters
    ----------
    sheet : Sheet
    asked : Asked

    Returns
    -------
    Log

    Raises
    ------
    InvalidData
        Columns that are missing, double, or cannot be guessed; cells that are no forecasts or outcomes. The message
        names the line.
    InvalidParameter
        A column that is asked for twice.
    """
    if sheet.rows == 0:
        raise InvalidData(f"{sheet.name} has a header and no rows; expected at least one")
    forecasts, outcome, said = columns_of(sheet, asked)
    number = {name: _probabilities(sheet, name, asked) for name in forecasts}
    said += [
        UNIT.format(name=name)
        for name, p in number.items()
        if asked.percent and hardly_per_cent(np.nanmax(p, initial=0.0))
    ]
    outcomes, words = _outcomes(sheet, outcome, asked.positive)
    said += words
    keep = np.isfinite(outcomes) | asked.open
    for values in number.values():
        keep &= np.isfinite(values)
    if not keep.all():
        if not asked.skip_missing:
            i = int(np.argmin(keep))
            empty = next((name for name, values in number.items() if np.isnan(values[i])), outcome)
            raise InvalidData(
                f"{sheet.name}, {sheet.line(i)}: column {empty!r} is missing, as in {np.count_nonzero(~keep)} of "
                f"{sheet.rows} rows; expected a value, or --skip-missing to leave such rows out"
            )
        lacking = "no forecast" if asked.open else "no forecast or outcome"
        said.append(f"{np.count_nonzero(~keep)} of {sheet.rows} rows have {lacking} and are left out")
        if not keep.any():
            both = "a forecast" if asked.open else "both a forecast and an outcome"
            raise InvalidData(f"{sheet.name}: no row has {both}; expected at least one")
    weights = None if asked.weight is None else _weights(sheet, asked.weight, keep)
    times = None if asked.time is None else sheet.times(asked.time)
    known = None if asked.resolved is None else _resolved(sheet, asked, times)
    rows = np.flatnonzero(keep)
    if times is not None and (back := np.diff(times[rows]) < 0.0).any():
        if not asked.sort:
            i = int(np.argmax(back))
            raise InvalidData(
                f"{sheet.name}, {sheet.line(int(rows[i + 1]))}: column {asked.time!r} goes back in time, from "
                f"{sheet.cell(str(asked.time), int(rows[i]))} to {sheet.cell(str(asked.time), int(rows[i + 1]))}; "
                "expected rows in order, or --sort"
            )
        rows = rows[np.argsort(times[rows], kind="stable")]
        said.append(f"rows are brought into the order of {asked.time!r}")
    groups = dict[str, Ints]()
    for name in asked.by:
        found = _groups(sheet.texts(name)[rows])
        groups |= {group_name(asked, name, group): places for group, places in found.items()}
    return Log(
        source=sheet.name,
        forecasts={name: values[rows] for name, values in number.items()},
        outcomes=outcomes[rows],
        outcome=outcome,
        weights=None if weights is None else weights[rows],
        times=None if times is None else times[rows],
        time_words=None if asked.time is None else _words_of(sheet, asked.time, rows),
        groups=dict(sorted(groups.items())) or None,
        by=", ".join(asked.by),
        time=asked.time or "",
        said=tuple(said),
        duplicates=sheet.duplicates(),
        places=rows,
        known=None if known is None else known[rows],
    )


# ---------------------------------------------------------------- which columns


def columns_of(sheet: Any, asked: Asked) -> tuple[list[str], str, list[str]]:
    """Names of the columns of forecasts and of the outcome, and what was guessed.

    Parameters
    ----------
    sheet : object
        With `name`, the file; `columns`, names as they stand there; and `sample(column)`, its first cells as text.
    asked : Asked
    """
    named = [*asked.forecasts, asked.outcome, *asked.by, asked.time, asked.weight, asked.key]
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
        check_column(sheet, name)
    # Doubled names cannot be told apart, so that none of them is guessed.
    free = [name for name in sheet.columns if name not in wanted and sheet.columns.count(name) == 1 and name]
    said = []
    outcome, forecasts = asked.outcome, list(asked.forecasts)
    if outcome is None:
        outcome = _guessed_outcome(sheet, free, asked)
        free.remove(outcome)
        said.append(f"outcomes are read from column {outcome!r}")
    if not forecasts:
        forecasts = _guessed_forecasts(sheet, free, asked)
        several = "s" if len(forecasts) > 1 else ""
        said.append(f"forecasts are read from column{several} {', '.join(map(repr, forecasts))}")
    return forecasts, outcome, said


def one_forecast(sheet: Any, asked: Asked) -> tuple[Asked, list[str]]:
    """The same with all columns named, of which one has forecasts; and what was guessed."""
    forecasts, outcome, said = columns_of(sheet, asked)
    if len(forecasts) > 1:
        listed = ", ".join(map(repr, forecasts[:6])) + (", …" if len(forecasts) > 6 else "")
        raise InvalidData(
            f"{sheet.name}: columns {listed} might all be the forecasts; expected one: --forecast COLUMN"
        )
    return replace(asked, forecasts=tuple(forecasts), outcome=outcome), said


def check_column(sheet: Any, name: str) -> None:
    """Refuses a column that is not there, or there more than once."""
    times = sheet.columns.count(name)
    if times == 0:
        raise InvalidData(
            f"{sheet.name} has no column {name!r}{suggestion(name, [c for c in sheet.columns if c])}"
        )
    if times > 1:
        raise InvalidData(f"{sheet.name} has {times} columns {name!r}; expected one")


def _guessed_outcome(sheet: Any, free: Sequence[str], asked: Asked) -> str:
    known = [name for name in free if _plain(name) in OUTCOMES]
    if len(known) == 1:
        return known[0]
    found = known or [name for name in free if _is_binary(sheet.sample(name), asked.positive)]
    if len(found) == 1:
        return found[0]
    raise InvalidData(_unclear(sheet, "outcomes", found, "--outcome", "holds 0 and 1"))


def _guessed_forecasts(sheet: Any, free: Sequence[str], asked: Asked) -> list[str]:
    known = [name for name in free if _plain(name) in FORECASTS]
    if known:
        return known
    most = 100.0 if asked.percent else 1.0
    found = [name for name in free if _is_unit(sheet.sample(name), most)]
    if found:
        return found
    raise InvalidData(_unclear(sheet, "forecasts", found, "--forecast", "holds numbers between 0 and 1"))


def _unclear(sheet: Any, what: str, found: Sequence[str], option: str, holds: str) -> str:
    columns = ", ".join(map(repr, sheet.columns[:12])) + (", …" if len(sheet.columns) > 12 else "")
    if found:
        reason = f"columns {', '.join(map(repr, found))} might be"
    else:
        # Of a file that grows the names are all that is known.
        looked = any(sheet.sample(name) for name in sheet.columns if sheet.columns.count(name) == 1)
        reason = "no column is named so" + (f" or {holds}" if looked else "")
        doubled = sorted({name for name in sheet.columns if name and sheet.columns.count(name) > 1})
        reason += f" (there are several {', '.join(map(repr, doubled))})" if doubled else ""
    return f"{sheet.name}: cannot tell which column has the {what}: {reason}; expected {option} COLUMN, of: {columns}"


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def _is_binary(cells: Sequence[str], positive: str | None) -> bool:
    words = {cell.strip().lower() for cell in cells if cell.strip()}
    if positive is not None:
        return positive.strip().lower() in words
    return bool(words) and words <= {"0", "1", "0.0", "1.0", *WORDS}


def _is_unit(cells: Sequence[str], most: float) -> bool:
    found = [as_number(cell)[0] for cell in cells]
    if None in found:
        return False
    numbers = [x for x in found if x is not None and not math.isnan(x)]
    inside = all(0.0 <= x <= most for x in numbers)
    return inside and any(0.0 < x < most for x in numbers)


# ---------------------------------------------------------------- what stands in them


def _probabilities(sheet: Sheet, name: str, asked: Asked) -> Floats:
    """In [0, 1]; NaN where a cell is empty."""
    values, marked = sheet.numbers(name)
    if asked.percent:
        values = values / 100.0
    with np.errstate(invalid="ignore"):
        bad = ~(((values >= 0.0) & (values <= 1.0)) | np.isnan(values))
    if marked and not asked.percent:
        raise InvalidData(SIGNS.format(where=sheet.name, name=name))
    if bad.any():
        i = int(np.argmax(bad))
        where = f"{sheet.name}, {sheet.line(i)}"
        raise InvalidData(outside(where, name, sheet.cell(name, i), asked.percent, values[~np.isnan(values)]))
    return values + 0.0


def check_probability(
    source: str, where: str, name: str, cell: str, value: float, marked: bool, percent: bool
) -> float:
    """The same of one cell that holds a number, or NaN for nothing."""
    if marked and not percent:
        raise InvalidData(SIGNS.format(where=source, name=name))
    p = value / 100.0 if percent else value
    if p == p and not 0.0 <= p <= 1.0:
        raise InvalidData(outside(where, name, repr(cell), percent, [value]))
    return p + 0.0


def _outcomes(sheet: Sheet, name: str, positive: str | None) -> tuple[Floats, list[str]]:
    """0 and 1; NaN where a cell is empty. And what was said of words."""
    if positive is None:
        found = sheet.plain_outcomes(name)
        if found is not None:
            return found, []
    texts = sheet.texts(name)
    place, words = _distinct(texts)
    known = [as_outcome(word, positive) for word in map(str, words)]
    if None in known:
        strange = np.array([value is None for value in known], dtype=bool)
        i = int(np.argmax(strange[place]))
        shown = ", ".join(map(repr, map(str, words[:6]))) + (", …" if len(words) > 6 else "")
        hint = f"; --positive {str(words[-1])!r} says which word is 1" if len(words) <= 20 else ""
        raise InvalidData(
            f"{sheet.name}, {sheet.line(i)}: column {name!r} holds {sheet.cell(name, i)}; expected 0 or 1 "
            f"(there are: {shown}){hint}"
        )
    values = np.array(known, dtype=np.float64)
    if positive is None:
        return values[place], []
    if not (values == 1.0).any():
        raise never_positive(sheet.name, name, positive, [str(word) for word in words if word])
    others = [str(word) for word in words[values == 0.0]]
    listed = ", ".join(map(repr, others[:5])) + (", …" if len(others) > 5 else "")
    return values[place], [f"outcome 1 is {positive!r} in {name!r}, and 0 is {listed or 'nothing'}"]


def never_positive(source: str, column: str, positive: str, there: Sequence[str]) -> InvalidData:
    """The word for 1 stands in no row, but these do."""
    listed = ", ".join(map(repr, there[:6])) + (", …" if len(there) > 6 else "")
    return InvalidData(f"{source}: no row of column {column!r} holds {positive!r}; there are: {listed}")


def _resolved(sheet: Sheet, asked: Asked, times: Floats | None) -> Floats:
    """When outcomes became known."""
    column, begun = str(asked.resolved), str(asked.time)
    known = sheet.times(column, gaps=True)
    early = known < (-np.inf if times is None else times)
    if early.any():
        i = int(np.argmax(early))
        raise InvalidData(
            f"{sheet.name}, {sheet.line(i)}: the outcome is known ({sheet.text(column, i)}) before the question is "
            f"asked ({sheet.text(begun, i)}); expected it at that time or later"
        )
    return known


def _weights(sheet: Sheet, name: str, keep: NDArray[np.bool_]) -> Floats:
    values, _ = sheet.numbers(name)
    bad = ~((values >= 0.0) & (values < np.inf)) & keep
    if bad.any():
        i = int(np.argmax(bad))
        what = "is missing" if np.isnan(values[i]) else f"holds {sheet.cell(name, i)}"
        raise InvalidData(
            f"{sheet.name}, {sheet.line(i)}: column {name!r} {what}; expected a finite weight ≥ 0"
        )
    if not (values[keep] > 0.0).any():
        raise InvalidData(f"{sheet.name}: all weights in column {name!r} are 0; expected a positive one")
    return values


def group_name(asked: Asked, column: str, group: str) -> str:
    """The name of a group: where there are several columns of groups, with the name of its column."""
    return group if len(asked.by) == 1 else f"{column}: {group or '(empty)'}"


def _groups(texts: NDArray[Any]) -> dict[str, Ints]:
    place, names = _distinct(texts)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(names) + 1))
    return {str(name): order[ends[i] : ends[i + 1]] for i, name in enumerate(names)}


def _distinct(texts: NDArray[Any]) -> tuple[Ints, NDArray[Any]]:
    """The place of each text among the different ones, in order, and these; NumPy's own texts lose zeros at the end."""
    import pandas as pd

    return pd.factorize(texts, sort=True)


def _words_of(sheet: Sheet, name: str, rows: Ints) -> Callable[[int], str]:
    return lambda row: sheet.text(name, int(rows[row]))
