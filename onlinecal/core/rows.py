"""Rows of a file as columns of numbers, dates, outcomes and texts, as they are written in its cells."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.dates import as_time
from onlinecal.core.errors import InvalidData, suggestion
from onlinecal.core.words import listed, number_of

if TYPE_CHECKING:
    import polars as pl


#: the messages about a cell that holds no time, and about per cent signs
NO_TIME = "{}: column {!r} is {}; expected a number or a date with the year first, such as 2024-12-31"
SIGNS = "{}: column {!r} has per cent signs; expected plain numbers, or --percent"
#: the messages about JSON that is no list of records of numbers
RECORDS = (
    'records with names, as in [{"forecast": 0.5, "outcome": 1}] or {"data": [...]}, or one a line in .jsonl'
)
LISTS = "{}: column {!r} has a list or a record in each row; expected numbers: {}"


class Outcomes(NamedTuple):
    """A column of outcomes."""

    values: Floats  # NaN where a cell is empty or dropped
    zeros: list[str]  # with a word for 1, the words that stand for 0
    dropped: NDArray[np.bool_]  # the rows of which a word says that they are left out


class Rows:
    """Rows of a file; columns are read when they are asked for."""

    def __init__(
        self, name: str, columns: Sequence[str], frame: "pl.DataFrame", delimiter: str = "", above: int = 0
    ) -> None:
        # The frame's column "line" is the place of each row in the file; "count", if any, how often it is there.
        self.name, self.columns, self.frame = name, list(columns), frame.drop("line", "count", strict=False)
        self.delimiter, self.above = delimiter, above
        self.places: Ints = frame["line"].to_numpy().astype(np.int64)
        self.counts: Floats | None = frame["count"].to_numpy() if "count" in frame.columns else None

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.places)

    def line(self, row: int) -> str:
        """Where row `row`, from 0, is in the file, for people."""
        place = self.places[row]
        return f"line {place + self.above + 2}" if self.delimiter else f"row {place + 1}"

    def where(self, row: int) -> str:
        """The same with the name of the file."""
        return f"{self.name}, {self.line(row)}"

    def cell(self, column: str, row: int) -> str:
        """The text of a cell, for messages."""
        value = self._cells(column)[row]
        return repr(value) if isinstance(value, str) else str(value)

    def text(self, column: str, row: int) -> str:
        """The same without quotation marks."""
        return str(self._cells(column)[row]).strip()

    def sample(self, column: str, rows: int = 1000) -> list[str]:
        """Its first cells as text; "" for an empty one."""
        return ["" if cell is None else str(cell) for cell in self._cells(column).head(rows)]

    def check_column(self, name: str) -> None:
        """Refuses a column that is not there, or there more than once."""
        many = self.columns.count(name)
        if many == 0:
            raise InvalidData(
                f"{self.name} has no column {name!r}{suggestion(name, [c for c in self.columns if c])}"
            )
        if many > 1:
            raise InvalidData(f"{self.name} has several columns {name!r}; expected one")

    def numbers(
        self,
        column: str,
        *,
        dates: bool = False,
        gaps: float | None = None,
        percent: bool = False,
        words: bool = True,
    ) -> Floats:
        """One column of finite numbers; with `dates`, also days since 1970. Empty cells are `gaps`, or errors.

        With `percent`, cells may have per cent signs; with `words`, true and false are 1 and 0.
        """
        self.check_column(column)
        if self.rows == 0:
            head = "a header" if self.delimiter else "columns"
            raise InvalidData(f"{self.name} has {head} and no rows; expected at least one")
        cells = self._flat(column)
        values, marked, empty = moments(cells) if dates else _numbers(cells, words, self.delimiter == ",")
        if marked and not percent:
            raise InvalidData(SIGNS.format(self.name, column))
        good = np.isfinite(values)
        if gaps is not None:
            values[empty], good = gaps, good | empty
        if not good.all():
            i = int(np.argmin(good))
            if empty[i]:
                expected = "a number or a date" if dates else "a number"
                raise InvalidData(f"{self.where(i)}: column {column!r} is missing; expected {expected}")
            if dates:
                raise InvalidData(NO_TIME.format(self.where(i), column, self.cell(column, i)))
            cell = self.cell(column, i)
            without = " without commas" * ("," in cell)
            raise InvalidData(f"{self.where(i)}: column {column!r} is {cell}; expected a number{without}")
        return values

    def _flat(self, column: str) -> "pl.Series":
        """The cells of a column, of which each is one value."""
        cells = self._cells(column)
        if cells.dtype.is_nested():
            raise InvalidData(LISTS.format(self.name, column, RECORDS))
        return cells

    def outcomes(
        self,
        column: str,
        positive: str | None = None,
        negative: Sequence[str] = (),
        drop: Sequence[str] = (),
        *,
        fractional: bool = False,
        unread: NDArray[np.bool_] | None = None,
    ) -> Outcomes:
        """A column of outcomes: 0 and 1, or words for 1, for 0 (default: the only other one), and for neither.

        If `fractional`, numbers between are expected outcomes. Cells of rows that are `unread` are taken as empty.
        """
        import polars as pl

        self.check_column(column)
        cells = self._flat(column)
        if unread is not None and unread.any():
            cells = pl.select(pl.when(~pl.Series(unread)).then(cells)).to_series()
        if positive is None and not drop:
            values, marked, empty = _numbers(cells)
            good = (values == 0.0) | (values == 1.0) | empty
            if fractional:
                good |= (values > 0.0) & (values < 1.0)
            if not marked and good.all():
                return Outcomes(values, [], np.zeros(len(values), dtype=bool))
        place, words = distinct(cells)
        left_out = np.array([is_word(word, drop) for word in words], dtype=bool)
        known = [
            math.nan if out else as_outcome(word, positive, negative, fractional)
            for word, out in zip(words, left_out, strict=True)
        ]
        zeros = [word for word, value in zip(words, known, strict=True) if value == 0.0]
        many = np.bincount(place, self.counts, len(words)).astype(int).tolist()
        if positive is not None and not negative:
            keys = {_key(word) for word in zeros}
            # Where no word is that for 1 it is that word that is wrong.
            if keys & UNDECIDED or (len(keys) > 1 and 1.0 in known):
                others = {word: n for word, n in zip(words, many, strict=True) if word in zeros}
                raise InvalidData(
                    f"{self.name}: column {column!r} holds, beside {positive!r}, {_counted(others)}; {EXPECTED}"
                )
        if None in known:
            i = int(np.argmax(np.array([value is None for value in known])[place]))
            there = {word: n for word, n in zip(words, many, strict=True) if word.strip()}
            if are_names(there, self.columns):
                raise InvalidData(
                    f"{self.where(i)}: column {column!r} holds {self.cell(column, i)} and more than {MOST_WORDS} other "
                    "words, which are no outcomes; expected 0 or 1, or a few words and --positive WORD"
                )
            expected = EXPECTED
            if positive is None:
                expected = "expected 0 or 1, --positive WORD with the word that is 1, or --drop WORD to leave out rows"
            hint = "; `onlinecal measure --classes` measures each label against the rest" * (
                2 < len(there) <= MOST_WORDS
            )
            if all(_between(word) for word, value in zip(words, known, strict=True) if value is None):
                hint = "; `onlinecal measure --fractional` takes numbers between 0 and 1 as expected outcomes"
            elif all(as_number(word)[0] is not None for word in there):
                hint += "; --above NUMBER has the event that a number is larger"
            raise InvalidData(
                f"{self.where(i)}: column {column!r} holds {self.cell(column, i)}; {expected} "
                f"(there are: {_counted(there)}){hint}"
            )
        return Outcomes(
            np.array(known, dtype=np.float64)[place],
            [] if positive is None else sorted({word.strip() for word in zeros}),
            left_out[place],
        )

    def texts(self, column: str) -> list[str]:
        """Its cells without white space; "" for an empty one."""
        place, names = self.groups(column)
        return [names[i] for i in place]

    def holds(self, column: str, words: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each cell holds one of the words."""
        place, names = self.groups(column)
        return np.array([is_word(name, words) for name in names], dtype=bool)[place]

    def groups(self, column: str) -> tuple[Ints, list[str]]:
        """The place of each cell among the different texts, and these without white space; "" for an empty one."""
        self.check_column(column)
        place, words = distinct(self._cells(column))
        texts = ["" if word.strip().lower() in EMPTY else word.strip() for word in words]
        names = sorted(set(texts))
        of = {name: i for i, name in enumerate(names)}
        return np.array([of[text] for text in texts], dtype=np.int64)[place], names

    def nested(self, column: str) -> bool:
        """Whether its cells are lists or records; of a file read in parts, only columns that are read can tell."""
        place = str(self.columns.index(column))
        return place in self.frame.columns and self.frame.schema[place].is_nested()

    def repeats(self, column: str) -> bool:
        """Whether cells of a column of single values repeat."""
        return not self.nested(column) and self._cells(column).n_unique() < self.rows

    def check_order(self, column: str, values: Floats, rows: Ints, expected: str) -> None:
        """Refuses rows with descending values."""
        back = np.flatnonzero(np.diff(values[rows]) < 0.0)
        if len(back):
            one, other = (int(row) for row in rows[back[0] : back[0] + 2])
            raise InvalidData(
                f"{self.where(other)}: column {column!r} goes back in time, from {self.text(column, one)} to "
                f"{self.text(column, other)}; expected {expected}"
            )

    def refuse(self, column: str, values: Floats, good: Any, expected: str) -> None:
        """Stops at the first row that is not good."""
        if not good.all():
            i = int(np.argmin(good))
            raise InvalidData(f"{self.where(i)}: column {column!r} holds {values[i]:.15g}; {expected}")

    def duplicates(self, rows: Ints) -> int:
        """How many of these rows are equal to an earlier one of them in every column."""
        import polars as pl

        try:
            return len(rows) - self.frame[rows].n_unique()
        except pl.exceptions.PolarsError:  # cells of a Parquet file may be lists
            return 0

    def _cells(self, column: str) -> "pl.Series":
        import polars as pl

        cells = self.frame[str(self.columns.index(column))]
        return cells.cast(pl.String) if isinstance(cells.dtype, pl.Categorical | pl.Enum) else cells


def distinct(cells: "pl.Series") -> tuple[Ints, list[str]]:
    """The place of each cell among the different ones, and these as texts; "" for none."""
    import polars as pl

    if cells.dtype.is_nested():
        texts = [
            ", ".join(map(str, cell)) if isinstance(cell, list) else cell and str(cell)
            for cell in cells.to_list()
        ]
        cells = pl.Series(texts, dtype=pl.String)
    if not (cells.dtype.is_numeric() or cells.dtype.is_temporal() or cells.dtype == pl.Boolean):
        cells = cells.cast(pl.String).fill_null("")
    found = cells.unique(maintain_order=True)
    table = found.to_frame("c").with_row_index("i")
    place = cells.to_frame("c").join(table, on="c", nulls_equal=True, how="left", maintain_order="left")["i"]
    return place.to_numpy().astype(np.int64), ["" if value is None else str(value) for value in found]


def _numbers(
    cells: "pl.Series", words: bool = True, grouped: bool = False
) -> tuple[Floats, bool, NDArray[np.bool_]]:
    """A column as numbers, NaN for none; whether some have per cent signs; and which are empty."""
    # `grouped`: where commas are also between cells, 1,200 is not read, as it may be 1.2 or 1200.
    # A date is no number. Polars reads plain numbers to the float64 next to them; all else is read
    # once for each text.
    import polars as pl

    if cells.dtype.is_temporal():
        return np.full(len(cells), np.nan), False, cells.is_null().to_numpy()
    values = cells.cast(pl.Float64, strict=False).to_numpy().astype(np.float64)
    rest = np.flatnonzero(~np.isfinite(values))
    empty, marked = np.zeros(len(values), dtype=bool), False
    if len(rest):
        place, texts = distinct(cells[rest])
        found = [
            (None, False) if grouped and _GROUPED.fullmatch(text.strip()) else as_number(text)
            for text in texts
        ]
        known = WORDS if words else {}
        read = [
            known.get(t.strip().lower()) if v is None else v for t, (v, _) in zip(texts, found, strict=True)
        ]
        values[rest] = np.array([np.nan if value is None else value for value in read])[place]
        empty[rest] = np.array([value is not None and value != value for value in read])[place]
        marked = any(sign for _, sign in found)
    return values, marked, empty


def moments(cells: "pl.Series") -> tuple[Floats, bool, NDArray[np.bool_]]:
    """A column of times, as `as_time` reads each cell. NaN stands for no time, and for another kind than the first."""
    # Also False, and which cells are empty, as `_numbers`.
    import polars as pl

    if cells.dtype.is_temporal():
        days = cells.dt.epoch("us").cast(pl.Float64).to_numpy() / 86_400e6
        return days, False, cells.is_null().to_numpy()
    if cells.dtype.is_numeric():
        return _numbers(cells)
    # Two quick ways, of which a test holds that they read as `as_time` does.
    numbers = cells.cast(pl.Float64, strict=False).to_numpy()
    plain = np.isfinite(numbers).all()
    values = numbers if plain else _plain_dates(cells.cast(pl.String).fill_null(""))
    if values is not None:
        return values.copy(), False, np.zeros(len(values), dtype=bool)
    place, words = distinct(cells)
    # Words stand in the order of their first cells.
    read = list(map(as_time, words))
    kind = next((dated for value, dated in read if value is not None), False)
    days = np.array([np.nan if v is None or dated != kind else v for v, dated in read], dtype=np.float64)
    return days[place], False, np.array([word.strip().lower() in EMPTY for word in words], dtype=bool)[place]


def _plain_dates(texts: "pl.Series") -> Floats | None:
    """Days since 1970 of dates in one plain form, near enough to 1970 to be exact; None where one is in another."""
    if not texts.str.contains(_PLAIN).all():
        return None
    try:
        moment = np.array(texts.str.strip_suffix("Z").to_list(), dtype="datetime64[us]")
    except ValueError:
        return None
    return np.asarray((moment - np.datetime64(0, "us")) / np.timedelta64(1, "D"))


_PLAIN = r"^(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?Z?)?$"


_GROUPED = re.compile(r"[-+]?[1-9][0-9]{0,2},[0-9]{3}")
#: cells that stand for nothing, in lower case
EMPTY = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "<na>"})
#: words for 1 and 0 that need no `positive`, in lower case
WORDS = {"true": 1.0, "false": 0.0}
#: words for a question without an answer; they count as 0 only if `negative` names them
UNDECIDED = frozenset({
    "ambiguous", "annulled", "cancel", "canceled", "cancelled", "closed", "disputed", "invalid", "mkt", "open",
    "other", "partial", "pending", "postponed", "push", "refund", "refunded", "tbd", "tie", "undecided", "unknown",
    "unresolved", "void", "voided", "withdrawn", "?", "-", "--",
})  # fmt: skip
#: different words in a column of outcomes, at most
MOST_WORDS = 20
#: what is expected of words beside that for 1
EXPECTED = "expected one word for 0: --negative WORD for each that is 0, --drop WORD for each whose rows are left out"


def are_names(cells: Iterable[str], columns: Sequence[str]) -> bool:
    """Whether cells are too many words for outcomes, as names and dates are; labels with a column each are not."""
    there = {cell.strip() for cell in cells}
    return (
        len(there) > MOST_WORDS + 1
        and not there - {""} <= {*columns}
        and (sum(as_number(cell)[0] is None for cell in there) > MOST_WORDS + 1)
    )


def as_number(cell: str) -> tuple[float | None, bool]:
    """The float64 next to a text, and whether that has a per cent sign. NaN is nothing, None no number."""
    # A decimal comma will do. Python would read 1_0 as 10, and digits of every script.
    text = cell.strip()
    if text.lower() in EMPTY:
        return math.nan, False
    if marked := text.endswith("%"):
        text = text[:-1].rstrip()
    if text.isascii() and "_" not in text:
        for way in (text, text.replace(",", ".")) if text.count(",") == 1 and "." not in text else (text,):
            try:
                value = float(way)
                return None if value != value else value, marked
            except ValueError:
                continue
    return None, marked


def as_outcome(
    cell: str, positive: str | None = None, negative: Sequence[str] = (), fractional: bool = False
) -> float | None:
    """0 or 1; NaN for nothing, None for what is no outcome. With `positive` alone all else is 0."""
    text = cell.strip().lower()
    if text in EMPTY:
        return math.nan
    if fractional and _between(text):
        return as_number(text)[0]
    if positive is not None:
        if is_word(cell, [positive]):
            return 1.0
        return 0.0 if not negative or is_word(cell, negative) else None
    if (value := WORDS.get(text)) is not None:
        return value
    return next((float(x) for x in (0, 1) if is_word(cell, [str(x)])), None)


def _between(cell: str) -> bool:
    """Whether a cell holds a number between 0 and 1."""
    value, marked = as_number(cell)
    return value is not None and 0.0 < value < 1.0 and not marked


def is_word(cell: str, words: Sequence[str]) -> bool:
    """Whether a cell holds one of the words, in any letters; 2 is also 2.0."""
    return _key(cell) in map(_key, words)


def _key(text: str) -> Any:
    """A key that all forms of a word or number share."""
    value, marked = as_number(text)
    return text.strip().lower() if value is None or math.isnan(value) else (value, marked)


def _counted(words: dict[str, int]) -> str:
    """The words with their numbers of rows, the most frequent first."""
    order = sorted(words, key=lambda word: (-words[word], word))
    return listed([f"{word.strip()!r} in {number_of(words[word], 'row')}" for word in order], 8)
