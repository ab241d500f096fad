"""Natures that replay what really happened."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from onlinecal.core.errors import InvalidData, InvalidParameter, suggestion
from onlinecal.core.strategy import check_number
from onlinecal.core.streams import Stream
from onlinecal.natures.base import Nature, NaturePlayer
from onlinecal.natures.compiled import CompiledNature
from onlinecal.rounds.law import Floats
from onlinecal.rounds.steps import Memory, context, move, reveal, shared, shared_ints


@dataclass(frozen=True)
class Replay(Nature):
    """The outcomes of a CSV or Parquet file, row by row; all runs see the same.

    Parameters
    ----------
    file : str
        Path of a Parquet file (named ``*.parquet`` or ``*.pq``; needs pyarrow, in the extra 'data') or of a CSV file
        with a header line. ``package:NAME/PATH`` is a file that the Python package NAME brings along.
    outcome : str, default "outcome"
        The column of outcomes.
    above : float, optional
        If given, the outcome is 1 where the column exceeds this number; without it the column must hold 0 and 1.
    base : str, optional
        A column of somebody's forecasts, each in [0, 1], for forecasters that improve on them.
    time : str, optional
        A column of numbers or dates that must not descend. The game plays row after row whatever they say; they are
        kept as `times`, dates as days since 1970.

    Raises
    ------
    InvalidData
        The file is missing, unreadable, empty or not of its format; lacks a column; or a row holds a missing value,
        text, an outcome that is (without `above`) not 0 or 1, a base forecast outside [0, 1], or a time before the
        last. The message names the line.

    Guarantee
    ---------
    None.

    Information
    -----------
    Sees nothing; can play as many rounds as the file has rows. Reveals the context ``base`` if that column is
    named. Deterministic: runs differ only by the forecaster's draws, and games of several horizons share their first
    rows (`recorded`).

    Source
    ------
    None. Deviations: none.
    """

    recorded = True
    needs_horizon: ClassVar[bool | None] = False
    safe_under_delay: ClassVar[bool | None] = True
    memory: ClassVar[str | None] = "O(1)"

    file: str = field(metadata={"key": False})  # the digest of what it holds tells more than where it lies
    outcome: str = "outcome"
    above: float | None = None
    base: str | None = None
    time: str | None = None
    outcomes: Floats = field(init=False, repr=False, compare=False)
    #: the columns `base` and `time`, None where they are not named
    forecasts: Floats | None = field(init=False, repr=False, compare=False)
    times: Floats | None = field(init=False, repr=False, compare=False)
    #: digest of the columns: the same file name with other contents is another nature
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("file", "outcome", "base", "time"):
            value = getattr(self, name)
            if not isinstance(value, str) and (value is not None or name in ("file", "outcome")):
                raise InvalidParameter(f"{name} = {value!r}; expected text")
        if self.above is not None:
            check_number("above", self.above, -1e308, 1e308)
        table = Table(_locate(self.file))
        columns = (
            _outcomes(table, self.outcome, self.above),
            None if self.base is None else _forecasts(table, self.base),
            None if self.time is None else _times(table, self.time),
        )
        digest = hashlib.sha256()
        for name, column in zip(("outcomes", "forecasts", "times"), columns, strict=True):
            if column is not None:
                column.flags.writeable = False
                digest.update(column.tobytes())
            object.__setattr__(self, name, column)
        object.__setattr__(self, "fingerprint", digest.hexdigest()[:16])

    @property
    def reveals(self) -> frozenset[str]:  # type: ignore[override]  # read only, as all do
        """The base forecast, if there is one."""
        return frozenset() if self.base is None else frozenset({"base"})

    @property
    def length(self) -> int:
        """Rows in the file."""
        return len(self.outcomes)

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """A player that reads the rows in order."""
        rows = [column for column in (self.outcomes, self.forecasts) if column is not None]
        memory = Memory(runs, shared_ints=[self.length], shared=np.concatenate(rows), context=len(rows) - 1)
        return CompiledNature(_row, memory, reveal=_show_base if self.reveals else None, reveals=self.reveals)


@move
def _row(run, number, size, forecast):
    """The outcomes, and behind them the base forecasts if there are any."""
    return shared(run)[number - 1]


@reveal
def _show_base(run, number):
    context(run)[0] = shared(run)[shared_ints(run)[0] + number - 1]
    return 0


def _locate(file: str) -> Path:
    prefix, _, resource = file.partition(":")
    if prefix != "package":
        return Path(file).expanduser()
    package, _, path = resource.partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise InvalidData(
            f"{file}: the Python package {package!r} is not installed; "
            f"install it (pip install {package}, or onlinecal's extra 'data' for its own scenarios)"
        )
    return Path(spec.submodule_search_locations[0]) / path


def _outcomes(table: Table, column: str, above: float | None) -> Floats:
    values = table.numbers(column)
    if above is not None:
        return (values > above).astype(np.float64)
    hint = "expected 0 or 1 (the parameter `above` turns a measured quantity into outcomes)"
    table.refuse(column, values, (values == 0.0) | (values == 1.0), hint)
    return values + 0.0


def _forecasts(table: Table, column: str) -> Floats:
    values = table.numbers(column)
    table.refuse(column, values, (values >= 0.0) & (values <= 1.0), "expected a forecast in [0, 1]")
    return values + 0.0


def _times(table: Table, column: str) -> Floats:
    values = table.numbers(column, dates=True)
    later = np.concatenate([[True], values[1:] >= values[:-1]])
    if not later.all():
        i = int(np.argmin(later))
        raise InvalidData(
            f"{table.path}, {table.line(i)}: column {column!r} goes back in time, from {table.cell(column, i - 1)} to "
            f"{table.cell(column, i)}; expected rows in order"
        )
    return values


class Table:
    """A CSV or Parquet file whose columns are asked for one by one.

    Raises
    ------
    InvalidData
        With the path, and the line where one is at fault.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parquet = path.suffix.lower() in (".parquet", ".pq")
        self.frame = _parquet(path) if self.parquet else _csv(path)

    def line(self, row: int) -> str:
        """Where row `row`, from 0, is in the file, for people."""
        return f"row {row + 1}" if self.parquet else f"line {row + 2}"

    def cell(self, column: str, row: int) -> Any:
        """What is written there."""
        return self.frame[column].iloc[row]

    def numbers(self, column: str, dates: bool = False) -> Floats:
        """One numeric column, without gaps; with `dates`, dates too, as days since 1970."""
        import pandas as pd

        frame = self.frame
        if column not in frame.columns:
            raise InvalidData(
                f"{self.path} has no column {column!r}{suggestion(column, map(str, frame.columns))}"
            )
        if len(frame) == 0:
            head = "columns" if self.parquet else "a header"
            raise InvalidData(f"{self.path} has {head} and no rows; expected at least one")
        cells = frame[column]
        if isinstance(cells, pd.DataFrame):
            raise InvalidData(f"{self.path} has several columns {column!r}; expected one")
        values = _numbers(cells)
        if dates and not np.isfinite(values).any():
            values = _days(cells)
        good = np.isfinite(values)
        if not good.all():
            i = int(np.argmin(good))
            cell = cells.iloc[i]
            what = "is missing" if pd.isna(cell) else f"is {cell!r}"
            expected = "a number or a date like those before" if dates else "a number"
            raise InvalidData(f"{self.path}, {self.line(i)}: column {column!r} {what}; expected {expected}")
        return values

    def refuse(self, column: str, values: Floats, good: Any, expected: str) -> None:
        """Stops at the first row that is not good."""
        if not good.all():
            i = int(np.argmin(good))
            raise InvalidData(
                f"{self.path}, {self.line(i)}: column {column!r} holds {values[i]:g}; {expected}"
            )


def _numbers(cells: Any) -> Floats:
    """NaN where a cell is no number. A date is none, though pandas would count its nanoseconds."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return np.full(len(cells), np.nan)
    return np.asarray(pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)).copy()


def _days(cells: Any) -> Floats:
    import pandas as pd

    try:
        moments = pd.to_datetime(cells, errors="coerce", format="ISO8601", utc=True)
        days = (moments - pd.Timestamp("1970-01-01", tz="UTC")) / pd.Timedelta(days=1)
        return np.asarray(days.to_numpy(np.float64, na_value=np.nan)).copy()
    except (TypeError, ValueError, OverflowError):  # cells of a Parquet file may be of any kind
        return np.full(len(cells), np.nan)


def _csv(path: Path) -> Any:
    import pandas as pd

    try:
        # Text first: pandas would turn a column with one bad cell into objects and lose which cell it was.
        return pd.read_csv(path, dtype=str, skip_blank_lines=False)
    except FileNotFoundError:
        raise InvalidData(f"{path}: no such file") from None
    except OSError as error:
        raise InvalidData(f"{path} cannot be read: {error.strerror or error}") from None
    except pd.errors.EmptyDataError:
        raise InvalidData(f"{path} is empty; expected a header line and rows") from None
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise InvalidData(f"{path} is not a CSV file: {str(error).strip()}") from None


def _parquet(path: Path) -> Any:
    import pandas as pd

    if not path.is_file():
        raise InvalidData(f"{path} is a directory" if path.exists() else f"{path}: no such file")
    try:
        import pyarrow as engine
    except ImportError:
        raise InvalidData(
            f"{path}: Parquet files are read by pyarrow, which is not installed; install it (pip install pyarrow, or "
            "onlinecal's extra 'data')"
        ) from None
    try:
        return pd.read_parquet(path, engine="pyarrow")
    except (engine.ArrowException, ValueError, OSError) as error:
        raise InvalidData(f"{path} is not a Parquet file: {str(error).strip().splitlines()[0]}") from None
