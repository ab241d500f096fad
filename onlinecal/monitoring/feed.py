"""Lines that come one after the other, of a file that grows or a pipe, as events of a monitor."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidData
from onlinecal.monitoring.alarms import Alarm
from onlinecal.monitoring.monitor import Monitor
from onlinecal.recalibration.reading import FORECAST, OUTCOME, column_of, per_cent


@dataclass(frozen=True)
class Columns:
    """Which columns a feed has.

    Attributes
    ----------
    forecast, outcome : str or None
        None: found by their usual names.
    key : str or None
        Of what tells questions apart where their outcomes come in lines of their own.
    time : str or None
        Of numbers or ISO dates that must not descend.
    """

    forecast: str | None = None
    outcome: str | None = None
    key: str | None = None
    time: str | None = None


class Feed:
    """Takes bytes of a CSV file as they come, and tells a monitor what the whole lines among them say.

    A line is a forecast with its outcome; or, with a `key`, a forecast without one, or an outcome alone for the key of
    an earlier line. What was taken is written into the monitor's `note`, so that a saved monitor knows where to go on.

    Parameters
    ----------
    monitor : Monitor
    name : str
        Of the file, for messages.
    columns : Columns

    Raises
    ------
    InvalidData
        From `take`: a line that is none of these. All lines before it have been taken then.
    """

    def __init__(self, monitor: Monitor, name: str, columns: Columns) -> None:
        self.monitor, self.name, self.columns = monitor, name, columns
        note = monitor.note.setdefault(
            "feed", {"offset": 0, "line": 0, "header": None, "open": {}, "last": None}
        )
        self._note: dict[str, Any] = note
        self._rest = b""
        self._places: tuple[int, int, int | None, int | None] | None = None
        if note["header"] is not None:
            self._find(note["header"])

    @property
    def offset(self) -> int:
        """How many bytes have been taken: all whole lines."""
        return int(self._note["offset"])

    def begin_anew(self) -> None:
        """What comes next is another file, with a header of its own."""
        self._note.update(offset=0, line=0, header=None)
        self._rest, self._places = b"", None

    def take(
        self, data: bytes, *, last: bool = False, found: Callable[[Alarm], None] = lambda alarm: None
    ) -> None:
        """Takes the next bytes; with `last`, what stands behind the last end of a line is a line too."""
        data = self._rest + data
        cut = len(data) if last else data.rfind(b"\n") + 1
        lines, self._rest = data[:cut], data[cut:]
        if len(self._rest) > 2**24:
            raise InvalidData(
                f"{self.name}, line {self._note['line'] + 1}: no end within 16 MiB; expected lines of CSV"
            )
        events: list[tuple[float, float]] = []
        taken = [self._note["offset"], self._note["line"]]
        try:
            for raw in lines.splitlines(keepends=True):
                for p, y, key in self._row(raw, taken[1] + 1):
                    if key is None and not self.monitor.open:
                        events.append((p, y))
                        continue
                    self._flush(events, found)
                    self._question(p, y, key, found)
                taken = [taken[0] + len(raw), taken[1] + 1]
        finally:
            self._flush(events, found)
            self._note["offset"], self._note["line"] = taken

    # ---------------------------------------------------------------- inside

    def _flush(self, events: list[tuple[float, float]], found: Callable[[Alarm], None]) -> None:
        if events:
            both = np.array(events)
            events.clear()
            for alarm in self.monitor.update(both[:, 0], both[:, 1]):
                found(alarm)

    def _question(self, p: float, y: float, key: str | None, found: Callable[[Alarm], None]) -> None:
        if key is None or (not math.isnan(p) and not math.isnan(y)):
            alarms = self.monitor.update(p, y)
        elif math.isnan(y):
            self._note["open"][key] = self.monitor.ask(p)
            alarms = []
        else:
            alarms = self.monitor.tell(self._note["open"].pop(key), y)
        for alarm in alarms:
            found(alarm)

    def _row(self, raw: bytes, line: int) -> Iterator[tuple[float, float, str | None]]:
        """What a line says: a forecast or NaN, an outcome or NaN, and the key if one of them is missing."""
        where = f"{self.name}, line {line}"
        try:
            text = raw.decode("utf-8-sig" if line == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InvalidData(f"{where} is not UTF-8 ({error.reason}); expected text in UTF-8") from None
        if not text.strip():
            return
        cells = next(csv.reader([text]))
        if self._places is None:
            self._find(cells)
            return
        if len(cells) != len(self._note["header"]):
            raise InvalidData(
                f"{where} has {len(cells)} cells; expected {len(self._note['header'])}, as in the header"
            )
        forecast, outcome, key_at, time_at = self._places
        p, y = self._number(where, forecast, cells), self._number(where, outcome, cells)
        if not (math.isnan(p) or 0.0 <= p <= 1.0):
            raise InvalidData(
                f"{where}: column {self._called(forecast)} holds {p:g}; expected a probability in [0, 1]{per_cent(p)}"
            )
        if not (math.isnan(y) or y in (0.0, 1.0)):
            raise InvalidData(f"{where}: column {self._called(outcome)} holds {y:g}; expected 0 or 1")
        key = None if key_at is None else cells[key_at]
        if math.isnan(p) or math.isnan(y):
            self._check_key(where, p, y, key)
        elif key is not None and key in self._note["open"]:
            # Files that are written anew repeat the forecast beside the outcome.
            p = math.nan
        else:
            key = None
        if time_at is not None:
            self._check_time(where, cells[time_at])
        yield p, y, key

    def _check_key(self, where: str, p: float, y: float, key: str | None) -> None:
        missing = "forecast" if math.isnan(p) else "outcome"
        if key is None:
            raise InvalidData(
                f"{where} has no {missing}; expected both, or a column that tells questions apart (--id)"
            )
        if math.isnan(p) and math.isnan(y):
            raise InvalidData(f"{where} has neither forecast nor outcome; expected one of them")
        if math.isnan(y) and key in self._note["open"]:
            raise InvalidData(f"{where}: question {key!r} is open already; expected its outcome")
        if math.isnan(p) and key not in self._note["open"]:
            raise InvalidData(
                f"{where}: no forecast for question {key!r} is open; expected it before its outcome"
            )

    def _check_time(self, where: str, cell: str) -> None:
        now, before = _moment(cell), self._note["last"]
        if now is None:
            raise InvalidData(f"{where}: the time {cell!r} is none; expected a number or an ISO date")
        if before is not None and now < before[0]:
            raise InvalidData(
                f"{where}: goes back in time, from {before[1]} to {cell}; expected lines in order"
            )
        self._note["last"] = [now, cell]

    def _number(self, where: str, at: int, cells: list[str]) -> float:
        cell = cells[at].strip()
        if not cell:
            return math.nan
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise InvalidData(f"{where}: column {self._called(at)} is {cell!r}; expected a number")
        return value

    def _called(self, at: int) -> str:
        return repr(self._note["header"][at])

    def _find(self, header: list[str]) -> None:
        c = self.columns
        forecast = column_of(self.name, "forecasts", header, c.forecast, FORECAST)
        outcome = column_of(self.name, "outcomes", header, c.outcome, OUTCOME)
        key = None if c.key is None else column_of(self.name, "questions", header, c.key, ())
        time = None if c.time is None else column_of(self.name, "times", header, c.time, ())
        self._places = (
            header.index(forecast),
            header.index(outcome),
            None if key is None else header.index(key),
            None if time is None else header.index(time),
        )
        self._note["header"] = header


def _moment(cell: str) -> float | None:
    try:
        value = float(cell)
        return None if math.isnan(value) else value
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(cell.strip())
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / 86400.0
