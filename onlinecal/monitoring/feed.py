"""Lines that come one after the other, of a file that grows or a pipe, as events of a monitor."""

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import check_delimiter, codec, csv_rows, encoding_of, header_of, not_encoded
from onlinecal.core.rows import NO_TIME, Rows, as_time
from onlinecal.core.words import number_of
from onlinecal.logs.reading import (
    FORECASTS,
    OUTCOMES,
    Asked,
    columns_of,
    holds_outcome,
    known_names,
    never_positive,
    probabilities,
    unit_caution,
)
from onlinecal.monitoring.alarms import Alarm
from onlinecal.monitoring.monitor import Monitor

Found = Callable[[Alarm], None]

#: lines that are read at once; bytes without the end of a line that are waited for
_AT_ONCE, _LONGEST = 4096, 2**24
#: the settings by which lines are read, and the options that name them
_OPTIONS = {
    "forecast": "--forecast", "outcome": "--outcome", "key": "--id", "time": "--time", "positive": "--positive",
    "percent": "--percent", "delimiter": "--delimiter", "skip_missing": "--skip-missing", "encoding": "--encoding",
}  # fmt: skip


class Feed:
    """Takes bytes of a CSV file as they come, and updates a monitor by the whole lines among them.

    A line is a forecast with its outcome. With a key it may also be a forecast alone, or the outcome of an earlier
    line. The monitor's `note` holds the number and digest of the bytes taken, the columns, and how they are read. A
    feed of a saved monitor goes on in the same way, and refuses another file.

    Where names do not tell the columns, the first lines do, as in `measure`. With a positive word no line is taken
    before one holds it, since `measure` refuses a file without it.
    """

    def __init__(
        self, monitor: Monitor, name: str, asked: Asked, say: Callable[[str], None] = lambda text: None
    ) -> None:
        check_delimiter(asked.delimiter)
        self.monitor, self.name, self._asked, self._say = monitor, name, asked, say
        if not (monitor.events or monitor.open):
            monitor.note["feed"] = {
                "offset": 0, "line": 0, "header": None, "open": {}, "last": None, "met": False, "digest": "",
                "piped": False, "largest": 0.0, "skipped": 0,
            }  # fmt: skip
        elif "feed" not in monitor.note:
            raise InvalidParameter(
                f"{name}: the monitor has taken {number_of(monitor.events, 'event')} that no watch has read; "
                "expected one of a watch (another --state)"
            )
        self._note: dict[str, Any] = monitor.note["feed"]
        self._digest, self._columns = hashlib.sha256(), list[str]()
        # Bytes that are not taken yet: the begin of a line, and lines that wait for the positive word.
        self._rest, self._waited = b"", False
        if "asked" in self._note:
            before = self._note["asked"]
            for option, now in _kept(asked).items():
                if now not in (None, False, before.get(option)):
                    raise _differs(_OPTIONS[option], before.get(option), now)
            same = {option: value for option, value in before.items() if option != "forecast"}
            self._asked = replace(asked, forecasts=(before["forecast"],), **same)
        if self._note["header"] is not None:
            self._find(self._note["header"])

    @property
    def offset(self) -> int:
        """How many bytes have been taken: all whole lines."""
        return int(self._note["offset"])

    def begin_again(self) -> None:
        """Begins with a header of its own: the next piece of standard input."""
        if self.offset and not self._note["piped"]:
            raise InvalidData(f"{self.name}: the state is of a file; expected that file, or another --state")
        self._note.update(offset=0, line=0, header=None, encoding=None, end=None, piped=True)
        self._digest, self._columns = hashlib.sha256(), []

    def skip(self, read: Callable[[int], bytes]) -> None:
        """Reads what has been taken once more, from the beginning of a file, and refuses what is not the same."""
        if self._note["piped"]:
            raise InvalidData(
                f"{self.name}: the state is of a watch of standard input; expected - for FILE, or another --state"
            )
        self._digest, self._rest, left = hashlib.sha256(), b"", self.offset
        while left and (data := read(min(left, 2**20))):
            self._digest.update(data)
            left -= len(data)
        if self.offset and self._digest.hexdigest() != self._note["digest"]:
            raise InvalidData(
                f"{self.name} does not begin with the {self.offset} bytes taken; expected it to grow, or another "
                "--state"
            )

    def take(self, data: bytes, *, last: bool = False, found: Found = lambda alarm: None) -> None:
        """Takes the next bytes, if any; with `last` the rest is a line. A bad line is refused after those before it."""
        if self._waited and not (data or last):
            return
        new, data, self._rest, note = bool(data), self._rest + data, b"", self._note
        if note.get("encoding") is None:
            if len(data) < 4 and not last:
                self._rest = data
                return
            name = codec(self._asked.encoding or encoding_of(data))
            big = "be" if data.startswith((b"\xfe\xff", b"\x00\x00\xfe\xff")) else "le"
            known = {"utf-8-sig": "utf-8", "utf-16": f"utf-16-{big}", "utf-32": f"utf-32-{big}"}
            note["encoding"] = known.get(name, name)
        if note.get("end") is None:  # the first end of a line tells; a last "\r" may be one half of it
            first = re.search("\n|\r(?=[^\n])", data.decode(note["encoding"], "replace"))
            note["end"] = first and first[0]
        # Unit by unit: where these are of several bytes, parts of two neighbours are no end of a line.
        end = (note["end"] or "\n").encode(note["encoding"])
        unit = f"u{len(end)}"
        units = np.frombuffer(data, unit, len(data) // len(end)) == np.frombuffer(end, unit)
        cuts = [0, *(len(end) * (np.flatnonzero(units) + 1)).tolist()]
        lines, self._rest = [data[a:b] for a, b in pairwise(cuts)], data[cuts[-1] :]
        if last and self._rest:
            lines, self._rest = [*lines, self._rest], b""
        if len(self._rest) > _LONGEST:
            raise InvalidData(f"{self._here()}: no end within 16 MiB; expected lines of CSV")
        while lines and not self._columns:
            if text := self._text(lines[:1]).removeprefix("\ufeff").strip("\r\n"):
                delimiter, header = header_of(text, self.name, self._asked.delimiter)
                self._asked = replace(self._asked, delimiter=delimiter)
                if not self._find(header, lines[1:], wait=not last):
                    self._rest = b"".join(lines) + self._rest
                    return
            self._taken(lines[:1])
            del lines[:1]
        if (
            self._columns
            and self._asked.positive is not None
            and not note["met"]
            and self._waits(lines, last)
        ):
            self._rest = b"".join(lines) + self._rest
            if not new and lines:
                self._waited, word = True, self._asked.positive
                self._say(f"no line of {self.name} holds {word!r} yet; none is taken before one does")
            return
        for done in range(0, len(lines), _AT_ONCE):
            self._block(lines[done : done + _AT_ONCE], found)
        if last and note["skipped"]:
            self._say(f"{number_of(note['skipped'], 'line')} without a forecast or an outcome left out")
        if last and self._asked.percent and 0.0 < note["largest"] <= 0.01:
            self._say(unit_caution(self._asked.forecasts[0]))

    def _find(self, header: list[str], lines: Sequence[bytes] = (), wait: bool = False) -> bool:
        """Finds the columns by their names, else by these lines, of which one has to hold a positive word."""
        # False while no line tells.
        rows, asked, word = csv_rows(b"", self.name, header, ","), self._asked, self._asked.positive
        self._columns = header
        unknown = asked.outcome is None and len(known_names(header, OUTCOMES)) != 1
        if unknown or not (asked.forecasts or known_names(header, FORECASTS)):
            rows, _ = self._rows([*(lines if word else lines[:_AT_ONCE])])
            told = not (word and unknown) or any(holds_outcome(rows, name, asked) for name in header)
            if wait and not (rows.rows and told):
                self._columns = []
                return False
        named, said = columns_of(rows, self._asked, one=True)
        self._asked = named
        if self._note["header"] is None:
            self._note.update(header=header, asked=_kept(named))
            for text in said:
                self._say(text)
        return True

    def _waits(self, lines: list[bytes], last: bool) -> bool:
        """Whether lines wait for the positive word: their outcomes are other words."""
        try:
            outcomes, others = self._rows(lines)[0].outcomes(str(self._asked.outcome), self._asked.positive)
        except InvalidData:  # a bad line is named when it is taken
            return False
        if not others or (outcomes == 1.0).any():
            return False
        if last:
            raise never_positive(self.name, self._asked, others)
        return True

    def _here(self) -> str:
        return f"{self.name}, line {self._note['line'] + 1}"

    def _taken(self, lines: list[bytes]) -> None:
        data = b"".join(lines)
        self._digest.update(data)
        self._note["offset"] += len(data)
        self._note["line"] += len(lines)
        self._note["digest"] = self._digest.hexdigest()

    def _block(self, lines: list[bytes], found: Found) -> None:
        """Takes lines at once; where one cannot be read, one by one, to say which."""
        asked, note = self._asked, self._note
        try:
            rows, places = self._rows(lines)
            if not rows.rows:
                self._taken(lines)
                return
            p = probabilities(rows, asked.forecasts[0], asked.percent)
            y, _ = rows.outcomes(str(asked.outcome), asked.positive)
            times = None if asked.time is None else self._times(rows, asked.time)
            missing = np.isnan(p) | np.isnan(y)
            if asked.key is None and missing.any() and not asked.skip_missing:
                lacks = "forecast" if math.isnan(p[int(np.argmax(missing))]) else "outcome"
                raise InvalidData(
                    f"{rows.where(0)} has no {lacks}; expected both, a column that tells questions apart (--id), "
                    "or --skip-missing"
                )
        except InvalidData:
            if len(lines) == 1:
                raise
            for line in lines:
                self._block([line], found)
            return
        done, first = 0, int(note["line"])
        try:
            if asked.key is None or not (missing.any() or note["open"]):
                for alarm in self.monitor.update(p[~missing], y[~missing]):
                    found(alarm)
                done = rows.rows
                note["skipped"] += int(missing.sum())
            else:
                keys = rows.sample(asked.key, rows.rows)
                for one, other, key in zip(p.tolist(), y.tolist(), keys, strict=True):
                    where = f"{self.name}, line {first + places[done] + 1}"
                    for alarm in self._question(where, one, other, key):
                        found(alarm)
                    done += 1
        finally:
            if done:
                note["met"] |= bool((y[:done] == 1.0).any())
                note["largest"] = max(note["largest"], float(np.nanmax(p[:done], initial=0.0)))
                if times is not None:
                    note["last"] = [float(times[done - 1]), rows.text(str(asked.time), done - 1)]
            self._taken(lines if done == rows.rows else lines[: places[done]])

    def _rows(self, lines: list[bytes]) -> tuple[Rows, list[int]]:
        """The lines that are not blank, as rows; and which they are."""
        text = self._text(lines).replace("\r\n", "\n").replace(self._note["end"] or "\n", "\n")
        texts = text.removesuffix("\n").split("\n")
        places = [i for i, text in enumerate(texts) if text.strip()]
        data, before = "\n".join([texts[i] for i in places]).encode(), int(self._note["line"])
        rows = csv_rows(data, self.name, self._columns, self._asked.delimiter or ",", before - 1)
        if rows.rows != len(places):
            raise InvalidData(f"{self._here()} holds a part of another; expected one event a line")
        return rows, places

    def _text(self, lines: list[bytes]) -> str:
        encoding = str(self._note["encoding"])
        try:
            return b"".join(lines).decode(encoding)
        except UnicodeError as error:
            raise not_encoded(self._here(), error, encoding) from None

    def _times(self, rows: Rows, column: str) -> Any:
        """The times; refuses one before the last of the lines before."""
        before, values = self._note["last"], rows.numbers(column, dates=True)
        if before is not None and as_time(rows.text(column, 0))[1] != as_time(before[1])[1]:
            raise InvalidData(NO_TIME.format(rows.where(0), column, rows.cell(column, 0)))
        if (before is not None and values[0] < before[0]) or (np.diff(values) < 0.0).any():
            raise InvalidData(
                f"{rows.where(0)}: goes back in time, from {before and before[1]} to {rows.text(column, 0)}; expected "
                "lines in order"
            )
        return values

    def _question(self, where: str, p: float, y: float, key: str) -> list[Alarm]:
        """A line with a key, where questions are open or one of both is missing."""
        opened: dict[str, int] = self._note["open"]
        if math.isnan(p) and math.isnan(y):
            if self._asked.skip_missing:
                self._note["skipped"] += 1
                return []
            raise InvalidData(f"{where} has neither forecast nor outcome; expected one of them")
        if math.isnan(y):
            if key in opened:
                raise InvalidData(f"{where}: question {key!r} is open already; expected its outcome")
            opened[key] = self.monitor.ask(p)
            return []
        # Files that are written again repeat the forecast beside the outcome.
        if key in opened:
            return self.monitor.tell(opened.pop(key), y)
        if math.isnan(p):
            raise InvalidData(f"{where}: no forecast for {key!r} is open; expected it before its outcome")
        return self.monitor.update(p, y)


def _kept(asked: Asked) -> dict[str, Any]:
    """The settings by which lines are read, as a state keeps them."""
    return {name: getattr(asked, name, None) for name in _OPTIONS} | {
        "forecast": asked.forecasts[0] if asked.forecasts else None,
        "positive": None if asked.positive is None else asked.positive.strip().lower(),
        "encoding": None if asked.encoding is None else codec(asked.encoding),
    }


def _differs(option: str, before: Any, now: Any) -> InvalidParameter:
    given = option if now is True else f"{option} {now}"
    was = f"{option} {before}" if before else f"no {option}"
    return InvalidParameter(f"{given}, but the state has {was}; expected the same, or another --state")
