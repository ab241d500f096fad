"""Lines that come one after the other, of a file that grows or a pipe, as events of a monitor."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import as_time
from onlinecal.core.words import number_of
from onlinecal.forecasts.cells import UNIT, as_number, as_outcome, hardly_per_cent, is_plain
from onlinecal.forecasts.reading import Asked, check_probability, never_positive, one_forecast
from onlinecal.forecasts.sheet import (
    NO_TIME,
    check_delimiter,
    encoding_of,
    header_of,
    not_encoded,
)
from onlinecal.monitoring.alarms import Alarm
from onlinecal.monitoring.monitor import Monitor
from onlinecal.monitoring.resumed import as_before, check_encoding, codec, kept

Floats = NDArray[np.float64]

#: lines that are read at once, where so many wait
_AT_ONCE = 4096


class Feed:
    """Takes bytes of a CSV file as they come, and tells a monitor what the whole lines among them say.

    A line is a forecast with its outcome; or, with a key, a forecast without one, or an outcome alone for the key of
    an earlier line. What was taken is written into the monitor's `note`: how far, the digest of these bytes, the
    columns, and how they are read. A feed of a saved monitor goes on in the same way, and refuses another one.

    With a positive word no line is taken before one holds it: `measure` refuses a file in which it never stands.

    Parameters
    ----------
    monitor : Monitor
    name : str
        Of the file, for messages.
    asked : Asked
        Which columns are what; those that are not named are known by their usual names. Not used: `by`, `weight`,
        `resolved`, `skip_missing`, `sort`.
    delimiter, encoding : str, optional
        As for `Sheet`. No cell holds the end of a line.
    say : callable, optional
        Told what was guessed.

    Raises
    ------
    InvalidData
        From `take`: a line that is none of these. All lines before it have been taken then. Or no line has the positive
        word.
    InvalidParameter
        The monitor has taken lines read in another way, or events of no lines.
    """

    def __init__(
        self,
        monitor: Monitor,
        name: str,
        asked: Asked,
        *,
        delimiter: str | None = None,
        encoding: str | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        check_delimiter(delimiter)
        self.monitor, self.name, self.columns = monitor, name, list[str]()
        self._asked, self._delimiter, self._wanted, self._say = asked, delimiter, encoding, say
        if monitor.events or monitor.open:
            if "feed" not in monitor.note:
                raise InvalidParameter(
                    f"{name}: the monitor has taken {number_of(monitor.events, 'event')} that no watch has read; "
                    "expected one of a watch (another --state)"
                )
        else:
            monitor.note["feed"] = {
                "offset": 0, "line": 0, "header": None, "open": {}, "last": None, "met": False, "digest": "",
                "piped": False, "largest": 0.0,
            }  # fmt: skip
        self._note: dict[str, Any] = monitor.note["feed"]
        self._digest = hashlib.sha256()
        self._rest, self._held, self._others = b"", list[bytes](), set[str]()
        self._outcomes: dict[str, float] = {}
        self._waits = False
        self._places: tuple[int, int, int | None, int | None] | None = None
        if "asked" in self._note:
            self._delimiter = self._note["asked"]["delimiter"]
            self._asked = as_before(asked, delimiter, self._note["asked"])
        if self._note["header"] is not None:
            self._find(self._note["header"])

    @property
    def offset(self) -> int:
        """How many bytes have been taken: all whole lines."""
        return int(self._note["offset"])

    def begin_anew(self) -> None:
        """Begins with a header of its own: the next piece of standard input.

        Raises
        ------
        InvalidData
            The monitor has taken lines of a file.
        """
        if self.offset and not self._note["piped"]:
            raise InvalidData(
                f"{self.name}: the state is of a watch of a file; expected that file, or another --state"
            )
        self._note.update(offset=0, line=0, header=None, encoding=None, piped=True)
        self._digest, self._places = hashlib.sha256(), None

    def skip(self, read: Callable[[int], bytes]) -> None:
        """Reads what has been taken once more, from the beginning of a file, and refuses what is not the same.

        Raises
        ------
        InvalidData, InvalidParameter
        """
        if self._note["piped"]:
            raise InvalidData(
                f"{self.name}: the state is of a watch of standard input; expected - for FILE, or another --state"
            )
        self._digest, self._rest, left = hashlib.sha256(), b"", self.offset
        self._held.clear()
        while left and (data := read(min(left, 2**20))):
            self._digest.update(data)
            left -= len(data)
        if self.offset and self._digest.hexdigest() != self._note["digest"]:
            raise InvalidData(
                f"{self.name} does not begin with the {self.offset} bytes taken; expected it to grow, or another "
                "--state"
            )
        if self.offset:
            check_encoding(self._wanted, self._note["encoding"])

    def take(
        self, data: bytes, *, last: bool = False, found: Callable[[Alarm], None] = lambda alarm: None
    ) -> None:
        """Takes the next bytes, none where no more has come yet; with `last`, the rest is a line, too."""
        data, self._rest = self._rest + data, b""
        encoding = self._encoding(data, last)
        if encoding is None:
            self._rest = data
            return
        end = "\n".encode(encoding)
        lines = _lines(data, end)
        if lines and not last and not lines[-1].endswith(end):
            self._rest = lines.pop()
        if len(self._rest) > 2**24:
            raise InvalidData(
                f"{self.name}, line {self._note['line'] + 1}: no end within 16 MiB; expected lines of CSV"
            )
        done = 0
        while done < len(lines) and self._places is None:
            self._one_by_one(lines[done : done + 1], encoding, found)
            done += 1
        lines = lines[done:]
        if self._places is not None and self._asked.positive is not None and not self._note["met"]:
            lines = self._released(lines, encoding, last)
        for done in range(0, len(lines), _AT_ONCE):
            block = lines[done : done + _AT_ONCE]
            events = self._plain(block, encoding) if len(block) > 1 else None
            if events is None:
                self._one_by_one(block, encoding, found)
                continue
            self._bet(*events, found)
            self._taken(block)
        if last and self._asked.percent and hardly_per_cent(self._note["largest"]):
            assert self._places is not None
            self._say(UNIT.format(name=self.columns[self._places[0]]))

    # ---------------------------------------------------------------- inside

    def _released(self, lines: list[bytes], encoding: str, last: bool) -> list[bytes]:
        """The lines that may be taken: none before the positive word has been met."""
        assert self._places is not None
        at, line = self._places[1], int(self._note["line"]) + len(self._held)
        for raw in lines:
            line += 1
            where = f"{self.name}, line {line}"
            if cells := self._cells(raw, encoding, where):
                value = self._outcome(where, at, cells[at])
                if value == 1.0:
                    self._note["met"] = True
                    break
                if value == 0.0 and len(self._others) < 7:
                    self._others.add(cells[at].strip())
        self._held += lines
        if not self._note["met"] and self._others:
            if last:
                raise never_positive(
                    self.name, self.columns[at], str(self._asked.positive), sorted(self._others)
                )
            if not lines and not self._waits:
                self._waits = True
                self._say(
                    f"no line of {self.name} holds {self._asked.positive!r} yet; none is taken before one does"
                )
            return []
        released, self._held = self._held, []
        return released

    def _taken(self, lines: list[bytes]) -> None:
        for raw in lines:
            self._digest.update(raw)
        self._note["offset"] += sum(map(len, lines))
        self._note["line"] += len(lines)
        self._note["digest"] = self._digest.hexdigest()

    def _plain(self, lines: list[bytes], encoding: str) -> tuple[Floats, Floats] | None:
        """Forecasts and outcomes of lines that are nothing but events, all at once, which takes a third of the time.

        None where it takes another look, line by line, to say what they are or what is wrong with them; nothing has
        been taken then.
        """
        if self._places is None or self._note["open"] or self.monitor.open:
            return None
        try:
            texts = b"".join(lines).decode(encoding).replace("\r\n", "\n").removesuffix("\n").split("\n")
            rows = list(csv.reader(texts, delimiter=self._delimiter or ","))
            columns = list(zip(*rows, strict=True))
            if len(texts) != len(lines) or len(rows) != len(lines) or len(columns) != len(self.columns):
                return None
            forecast, outcome, _, time_at = self._places
            p = np.array(list(map(float, columns[forecast])))
            known = {cell: as_outcome(cell, self._asked.positive) for cell in set(columns[outcome])}
            y = np.array([known[cell] for cell in columns[outcome]], dtype=np.float64)
        except (UnicodeError, csv.Error, ValueError):
            return None
        if self._asked.percent:
            p /= 100.0
        if not ((p >= 0.0) & (p <= 1.0) & (y == y)).all() or not is_plain("".join(columns[forecast])):
            return None
        if time_at is not None:
            before = self._note["last"]
            written = [*([] if before is None else [before[1]]), *columns[time_at]]
            times, dated = zip(*map(as_time, written), strict=True)
            if None in times or len(set(dated)) > 1 or any(later < one for one, later in pairwise(times)):
                return None
            self._note["last"] = [times[-1], written[-1]]
        self._note["largest"] = max(self._note["largest"], float(p.max()))
        return p + 0.0, y

    def _one_by_one(self, lines: list[bytes], encoding: str, found: Callable[[Alarm], None]) -> None:
        events: list[tuple[float, float]] = []
        taken = 0
        try:
            for raw in lines:
                for p, y, key in self._row(raw, encoding, self._note["line"] + taken + 1):
                    if key is None and not self.monitor.open:
                        events.append((p, y))
                        continue
                    self._flush(events, found)
                    self._question(p, y, key, found)
                taken += 1
        finally:
            self._flush(events, found)
            self._taken(lines[:taken])

    def _flush(self, events: list[tuple[float, float]], found: Callable[[Alarm], None]) -> None:
        if events:
            both = np.array(events)
            events.clear()
            self._bet(both[:, 0], both[:, 1], found)

    def _bet(self, p: Floats, y: Floats, found: Callable[[Alarm], None]) -> None:
        for alarm in self.monitor.update(p, y):
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

    def _encoding(self, data: bytes, last: bool) -> str | None:
        """That of the lines, without a mark of its own; None while too little has come to know it."""
        if self._note.get("encoding") is None:
            if len(data) < 4 and not last:
                return None
            name = self._wanted or ("utf-8" if self._note["offset"] else encoding_of(data))
            name = codec(name)
            big = "be" if data.startswith((b"\xfe\xff", b"\x00\x00\xfe\xff")) else "le"
            known = {"utf-8-sig": "utf-8", "utf-16": f"utf-16-{big}", "utf-32": f"utf-32-{big}"}
            self._note["encoding"] = known.get(name, name)
        return str(self._note["encoding"])

    def _row(self, raw: bytes, encoding: str, line: int) -> Iterator[tuple[float, float, str | None]]:
        """What a line says: a forecast or NaN, an outcome or NaN, and the key if one of them is missing."""
        where = f"{self.name}, line {line}"
        if self._places is None:
            text = _text(raw, encoding, where).removeprefix("\ufeff")
            if text.strip():
                self._delimiter, header = header_of(text, self.name, self._delimiter)
                self._find(header)
            return
        if (cells := self._cells(raw, encoding, where)) is None:
            return
        forecast, outcome, key_at, time_at = self._places
        p, y = self._forecast(where, forecast, cells[forecast]), self._outcome(where, outcome, cells[outcome])
        key = None if key_at is None else cells[key_at]
        if math.isnan(p) or math.isnan(y):
            self._check_key(where, p, y, key)
        elif key is not None and key in self._note["open"]:
            # Files that are written anew repeat the forecast beside the outcome.
            p = math.nan
        else:
            key = None
        if time_at is not None:
            self._check_time(where, self.columns[time_at], cells[time_at])
        yield p, y, key

    def _cells(self, raw: bytes, encoding: str, where: str) -> list[str] | None:
        """As many as the header has; None of a blank line."""
        text = _text(raw, encoding, where)
        if not text.strip():
            return None
        try:
            cells = next(csv.reader([text], delimiter=self._delimiter or ","))
        except csv.Error as error:
            raise InvalidData(f"{where} is not a line of CSV: {error}") from None
        if len(cells) != len(self.columns):
            raise InvalidData(
                f"{where} has {len(cells)} cells; expected {len(self.columns)}, as in the header"
            )
        return cells

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

    def _check_time(self, where: str, column: str, cell: str) -> None:
        (now, dated), before = as_time(cell), self._note["last"]
        if now is None or (before is not None and as_time(before[1])[1] != dated):
            raise InvalidData(NO_TIME.format(where, column, repr(cell)))
        if before is not None and now < before[0]:
            raise InvalidData(
                f"{where}: goes back in time, from {before[1]} to {cell}; expected lines in order"
            )
        self._note["last"] = [now, cell]

    def _forecast(self, where: str, at: int, cell: str) -> float:
        """In [0, 1], or NaN for none."""
        try:
            value: float | None = float(cell)
            marked = not is_plain(cell) or value != value
        except ValueError:
            marked = True
        if marked:
            value, marked = as_number(cell)
        if value is None:
            raise InvalidData(f"{where}: column {self.columns[at]!r} holds {cell!r}; expected a number")
        p = check_probability(self.name, where, self.columns[at], cell, value, marked, self._asked.percent)
        self._note["largest"] = max(self._note["largest"], p)
        return p

    def _outcome(self, where: str, at: int, cell: str) -> float:
        """0, 1, or NaN for none."""
        if (value := self._outcomes.get(cell)) is None:
            value = as_outcome(cell, self._asked.positive)
            if value is None:
                raise InvalidData(
                    f"{where}: column {self.columns[at]!r} holds {cell!r}; expected 0 or 1, or --positive WORD"
                )
            if len(self._outcomes) < 1000:
                self._outcomes[cell] = value
        return value

    def sample(self, column: str) -> list[str]:
        """Nothing: what is in the columns is not known yet when the header comes."""
        return []

    def _find(self, header: list[str]) -> None:
        self.columns = header
        asked, said = one_forecast(self, self._asked)
        names = asked.forecasts[0], str(asked.outcome), asked.key, asked.time
        forecast, outcome, key, time = (None if name is None else header.index(name) for name in names)
        assert forecast is not None
        assert outcome is not None
        self._places = forecast, outcome, key, time
        if self._note["header"] is None:
            self._note.update(header=header, asked=kept(asked, self._delimiter))
            for text in said:
                self._say(text)


def _lines(data: bytes, end: bytes) -> list[bytes]:
    """The lines with their ends, of text whose end of a line is `end`."""
    if end == b"\n":
        return data.splitlines(keepends=True)
    found, start, at = [], 0, data.find(end)
    while at >= 0:
        # A part of one letter and a part of the next are no end of a line.
        if (at - start) % len(end) == 0:
            found.append(data[start : at + len(end)])
            start = at + len(end)
            at = data.find(end, start)
        else:
            at = data.find(end, at + 1)
    return [*found, data[start:]] if start < len(data) else found


def _text(raw: bytes, encoding: str, where: str) -> str:
    try:
        return raw.decode(encoding).rstrip("\r\n")
    except UnicodeError as error:
        raise not_encoded(where, error, encoding) from None
