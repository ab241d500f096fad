"""A file of forecasts and outcomes: which columns are which, and what stands in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData, InvalidParameter, suggestion
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

#: words for 1 and 0 that need no `positive`, in lower case
WORDS = {"true": 1.0, "false": 0.0}

#: rows that are looked at to guess which columns are which
LOOKED_AT = 1000


@dataclass(frozen=True)
class Asked:
    """Which columns of a file are what.

    Attributes
    ----------
    forecasts : tuple of str
        Names of columns of forecasts; empty to guess.
    outcome, by, time, weight : str, optional
        Names of columns; the outcome is guessed where it is not named.
    positive : str, optional
        What stands in the column of outcomes where the event happened. Default: 1 or true.
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
    by: str | None = None
    time: str | None = None
    weight: str | None = None
    percent: bool = False
    skip_missing: bool = False
    sort: bool = False


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
        Each 0 or 1.
    outcome : str
        The name of their column.
    weights, times : (n,) floats, optional
        Times do not descend; dates are days since 1970.
    time_words : (n,) list of str, optional
        Times as they are written.
    groups : dict of str to (m,) ints, optional
        Numbers of the rows of each group, in order.
    by, time : str
        The names of those columns, "" for none.
    said : tuple of str
        What was guessed, left out or sorted.
    duplicates : int
        Rows that are equal to an earlier one, in all columns of the file.
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
    outcomes, words = _outcomes(sheet, outcome, asked.positive)
    said += words
    keep = np.isfinite(outcomes)
    for values in number.values():
        keep &= np.isfinite(values)
    if not keep.all():
        if not asked.skip_missing:
            i = int(np.argmin(keep))
            empty = next(
                name for name, values in [*number.items(), (outcome, outcomes)] if np.isnan(values[i])
            )
            raise InvalidData(
                f"{sheet.name}, {sheet.line(i)}: column {empty!r} is missing, as in {np.count_nonzero(~keep)} of "
                f"{sheet.rows} rows; expected a value, or --skip-missing to leave such rows out"
            )
        said.append(
            f"{np.count_nonzero(~keep)} of {sheet.rows} rows have no forecast or outcome and are left out"
        )
        if not keep.any():
            raise InvalidData(
                f"{sheet.name}: no row has both a forecast and an outcome; expected at least one"
            )
    weights = None if asked.weight is None else _weights(sheet, asked.weight, keep)
    times = None if asked.time is None else sheet.times(asked.time)
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
    groups = None if asked.by is None else _groups(sheet.texts(asked.by)[rows])
    return Log(
        source=sheet.name,
        forecasts={name: values[rows] for name, values in number.items()},
        outcomes=outcomes[rows],
        outcome=outcome,
        weights=None if weights is None else weights[rows],
        times=None if times is None else times[rows],
        time_words=None if asked.time is None else _words_of(sheet, asked.time, rows),
        groups=groups,
        by=asked.by or "",
        time=asked.time or "",
        said=tuple(said),
        duplicates=sheet.duplicates(),
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
    named = [*asked.forecasts, asked.outcome, asked.by, asked.time, asked.weight]
    wanted = [name for name in named if name is not None]
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
    reason = (
        f"columns {', '.join(map(repr, found))} might be" if found else f"no column is named so or {holds}"
    )
    return f"{sheet.name}: cannot tell which column has the {what}: {reason}; expected {option} COLUMN, of: {columns}"


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def _is_binary(cells: Sequence[str], positive: str | None) -> bool:
    words = {cell.strip().lower() for cell in cells if cell.strip()}
    if positive is not None:
        return positive.strip().lower() in words
    return bool(words) and words <= {"0", "1", "0.0", "1.0", *WORDS}


def _is_unit(cells: Sequence[str], most: float) -> bool:
    try:
        numbers = [float(c.strip().rstrip("%").replace(",", ".")) for c in cells if c.strip()]
    except ValueError:
        return False
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
        raise InvalidData(
            f"{sheet.name}: column {name!r} has per cent signs; expected probabilities in [0, 1], or --percent"
        )
    if bad.any():
        i = int(np.argmax(bad))
        shown = sheet.cell(name, i)
        # What is most of all between 1 and 100 is hardly anything else.
        real = values[np.isfinite(values)]
        percent = not asked.percent and len(real) and real.min() >= 0.0 and 1.0 < real.max() <= 100.0
        hint = "; these look like per cent: --percent" if percent else ""
        expected = "per cent from 0 to 100" if asked.percent else "a probability in [0, 1]"
        raise InvalidData(
            f"{sheet.name}, {sheet.line(i)}: column {name!r} holds {shown}; expected {expected}{hint}"
        )
    return values + 0.0


def _outcomes(sheet: Sheet, name: str, positive: str | None) -> tuple[Floats, list[str]]:
    """0 and 1; NaN where a cell is empty. And what was said of words."""
    if positive is None:
        found = sheet.plain_outcomes(name)
        if found is not None:
            return found, []
    texts = sheet.texts(name)
    words, place = np.unique(np.char.strip(texts.astype(str)), return_inverse=True)
    if positive is None:
        known = {word: _as_outcome(word) for word in words}
        strange = np.array([known[word] is None for word in words], dtype=bool)
        if not strange.any():
            return np.array([known[word] for word in words], dtype=np.float64)[place], []
        i = int(np.argmax(strange[place]))
        shown = ", ".join(map(repr, map(str, words[:6]))) + (", …" if len(words) > 6 else "")
        hint = f"; --positive {str(words[-1])!r} says which word is 1" if len(words) <= 20 else ""
        raise InvalidData(
            f"{sheet.name}, {sheet.line(i)}: column {name!r} holds {sheet.cell(name, i)}; expected 0 or 1 "
            f"(there are: {shown}){hint}"
        )
    wanted = positive.strip()
    ones = words == wanted
    if not ones.any():
        ones = np.array(
            [word.lower() == wanted.lower() or _equal(word, wanted) for word in words], dtype=bool
        )
    if not ones.any():
        there = [str(word) for word in words if word]
        listed = ", ".join(map(repr, there[:6])) + (", …" if len(there) > 6 else "")
        raise InvalidData(f"{sheet.name}: no row of column {name!r} holds {positive!r}; there are: {listed}")
    values = ones.astype(np.float64)
    values[words == ""] = np.nan
    others = [str(word) for word, one in zip(words, ones, strict=True) if word and not one]
    listed = ", ".join(map(repr, others[:5])) + (", …" if len(others) > 5 else "")
    return values[place], [f"outcome 1 is {positive!r} in {name!r}, and 0 is {listed or 'nothing'}"]


def _as_outcome(word: str) -> float | None:
    if not word:
        return np.nan
    if (value := WORDS.get(word.lower())) is not None:
        return value
    return next((float(x) for x in (0, 1) if _equal(word, str(x))), None)


def _equal(word: str, other: str) -> bool:
    """As numbers."""
    try:
        return float(word) == float(other)
    except ValueError:
        return False


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


def _groups(texts: NDArray[Any]) -> dict[str, Ints]:
    names, place = np.unique(texts.astype(str), return_inverse=True)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(names) + 1))
    return {str(name): order[ends[i] : ends[i + 1]] for i, name in enumerate(names)}


def _words_of(sheet: Sheet, name: str, rows: Ints) -> Callable[[int], str]:
    return lambda row: sheet.text(name, int(rows[row]))
