"""Lines that come one after the other, of a file that grows or a pipe, as events of a monitor."""

import codecs
import io
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.dates import as_time
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import check_delimiter, csv_rows, headline
from onlinecal.core.rows import NO_TIME, Rows
from onlinecal.core.words import number_of
from onlinecal.logs.columns import Asked, columns_of
from onlinecal.logs.questions import several_outcomes
from onlinecal.logs.reading import never_positive, outcomes_of, probabilities, questions_in, unit_caution
from onlinecal.monitoring.monitor import Monitor

#: lines that are read at once; bytes without the end of a line that are waited for
_AT_ONCE, _LONGEST = 4096, 2**24
#: the last bytes taken that a state keeps, by which a file that was written again is known
_TAIL = 100
#: the settings by which lines are read, and the options that name them
_OPTIONS = {
    "forecast": "--forecast", "outcome": "--outcome", "key": "--id", "time": "--time", "positive": "--positive",
    "percent": "--percent", "delimiter": "--delimiter", "skip_missing": "--skip-missing", "above": "--above",
}  # fmt: skip


class Feed:
    """Takes lines of CSV in UTF-8 as their bytes come, and updates a monitor.

    A line is a forecast with its outcome. With a key it may also be a forecast alone, or the outcome of an earlier
    line. The monitor's `note` holds the number of bytes taken and the columns: a saved monitor goes on from there.
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
                "offset": 0, "line": 0, "header": None, "open": {}, "settled": {}, "last": None, "piped": False,
                "largest": 0.0, "skipped": 0, "repeated": 0,
            }  # fmt: skip
        elif "feed" not in monitor.note:
            raise InvalidParameter(
                f"{name}: the monitor has taken {number_of(monitor.events, 'event')} that no watch has read; "
                "expected one of a watch (another --state)"
            )
        self._note: dict[str, Any] = {"settled": {}, "repeated": 0} | monitor.note["feed"]
        monitor.note["feed"] = self._note
        # Bytes that are not taken yet, as lines that wait for the positive word; and whether that has been said.
        self._rest, self._waited = b"", False
        if "asked" in self._note:
            before = {option: self._note["asked"].get(option) for option in _OPTIONS}
            for option, now in _kept(asked).items():
                if now is not None and now is not False and now != before[option]:
                    raise _differs(_OPTIONS[option], before[option], now)
            note, forecasts = self._note, (before.pop("forecast"),)
            self._asked = replace(
                asked, forecasts=forecasts, negative=asked.negative or note.get("negative", ()),
                drop=(*asked.drop, *note.get("drop", ())), only=tuple(map(tuple, note.get("only", ()))),
                layout=note.get("layout", ""), **before,
            )  # fmt: skip

    @property
    def piped(self) -> bool:
        """Whether lines come from a pipe, which cannot go back."""
        return bool(self._note["piped"])

    @property
    def offset(self) -> int:
        """How many bytes have been taken: all whole lines."""
        return int(self._note["offset"])

    def begin(self, file: Any) -> None:
        """Goes on in a file behind what has been taken; a pipe (None) begins with a header of its own."""
        note, self._rest = self._note, b""
        if "asked" in note and self.piped != (file is None):
            was = "a pipe" if self.piped else "a file"
            raise InvalidData(f"{self.name}: the state is of {was}; expected the same, or another --state")
        note["piped"] = file is None
        if file is None:
            note.update(offset=0, line=0, header=None)
            return
        tail, size = str(note.get("tail", "")).encode(), file.seek(0, io.SEEK_END)
        file.seek(self.offset - len(tail))
        if size < self.offset or file.read(len(tail)) != tail:
            raise InvalidData(
                f"{self.name} does not go on where the watch stopped, after {self.offset} bytes: it is shorter, or was "
                "written again; expected it to grow, or another --state to watch it from its beginning"
            )

    def take(self, data: bytes, *, last: bool = False) -> None:
        """Takes the next bytes, if any; with `last` the rest is a line. A bad line is refused after those before."""
        lines, self._rest, note = io.BytesIO(self._rest + data).readlines(), b"", self._note
        if lines and not last and not lines[-1].endswith(b"\n"):
            self._rest = lines.pop()
        if len(self._rest) > _LONGEST:
            raise InvalidData(
                f"{self._here(len(lines))}: no end within 16 MiB; expected lines of CSV that end with \\n"
            )
        if note["header"] is None:
            above = self._columns_of(lines, last)
            if above is None:
                self._rest = b"".join(lines) + self._rest
                return
            self._taken(lines[:above])
            del lines[:above]
        for done in range(0, len(lines), _AT_ONCE):
            self._block(lines[done : done + _AT_ONCE])
        if last and note["skipped"]:
            self._say(f"{number_of(note['skipped'], 'line')} without a forecast or an outcome left out")
        if last and note["repeated"]:
            self._say(f"{number_of(note['repeated'], 'later line')} of the same questions not counted")
        if last and self._asked.percent and 0.0 < note["largest"] <= 0.01:
            self._say(unit_caution(self._asked.forecasts[0]))

    def _columns_of(self, lines: list[bytes], last: bool) -> int | None:
        """Notes the columns; how many lines are above the rows, or None while lines do not tell that."""
        lines = [line.removeprefix(codecs.BOM_UTF8) for line in lines]
        # Remarks may be above a header that is not there yet.
        if not any(line.strip() and not line.startswith((b"#", b"sep=", b'"sep=')) for line in lines):
            return None
        texts = (self._text([line], before) for before, line in enumerate(lines, self._note["line"]))
        delimiter, columns, above = headline(texts, self.name, self._asked.delimiter)
        self._asked, word = replace(self._asked, delimiter=delimiter), self._asked.positive
        below, bad = lines[above + 1 :][: _AT_ONCE if word is None else None], None
        try:
            rows, _ = self._rows(below, columns, self._note["line"] + above + 1)
        except InvalidData as error:  # it is named when its line is taken, if columns are told by their names
            bad, (rows, _) = error, self._rows([], columns, 0)
        try:
            named, said = columns_of(rows, self._asked, one=True)
        except InvalidData:
            if bad is not None:
                raise bad from None
            if last or (rows.rows and word is None):
                raise
            return None
        if word is not None and bad is None and "asked" not in self._note:
            try:
                outcomes, others, _ = outcomes_of(rows, named)
            except InvalidData:  # it is named when its line is taken
                outcomes, others = np.ones(1), []
            if not (outcomes == 1.0).any() and (others or not last):
                if last:
                    raise never_positive(self.name, named, others)
                if others and not self._waited:
                    self._waited = True
                    self._say(f"no line of {self.name} holds {word!r} yet; none is taken before one does")
                return None
        if named.key is None and named.questions and "asked" not in self._note:
            named = replace(named, key=self._questions_in(lines[above + 1 :], columns, named))
        note, self._asked = self._note, named
        note.update(header=columns, asked=_kept(named), drop=named.drop, only=named.only, layout=named.layout)
        if named.negative:
            note["negative"] = named.negative
        for text in said:
            self._say(text)
        return above + 1

    def _questions_in(self, lines: list[bytes], columns: list[str], named: Asked) -> str | None:
        """The column that tells questions apart in the first lines, if any."""
        try:
            found = questions_in(self._rows(lines, columns, 0)[0], named)
        except InvalidData:  # it is named when its line is taken
            return None
        if found is not None:
            self._say(
                f"questions in {found!r} come back with one outcome: each counts once, by its first forecast (--id "
                "none counts each line)"
            )
        return found

    def _here(self, after: int = 0) -> str:
        """The name of the file, with the number of the next line, or of the line `after` lines later."""
        return f"{self.name}, line {self._note['line'] + after + 1}"

    def _taken(self, lines: list[bytes]) -> None:
        data, note = b"".join(lines), self._note
        note["offset"] += len(data)
        note["line"] += len(lines)
        note["tail"] = (note.get("tail", "").encode() + data)[-_TAIL:].decode("utf-8", "ignore")

    def _block(self, lines: list[bytes]) -> None:
        """Takes lines at once; where one cannot be read, in halves, to say which."""
        asked, note = self._asked, self._note
        try:
            rows, places = self._rows(lines, note["header"], note["line"])
            if not rows.rows:
                self._taken(lines)
                return
            p = probabilities(rows, asked.forecasts[0], asked.percent)
            y, zeros, dropped = outcomes_of(rows, asked)
            if zeros and not asked.negative:
                # The first other word is 0; it is found in halves.
                if len(zeros) > 1:
                    raise InvalidData(f"{self._here()}: several words might be 0: {', '.join(zeros)}")
                self._asked, note["negative"] = replace(asked, negative=zeros), zeros
            times = None if asked.time is None else self._times(rows, asked.time)
            missing = np.isnan(p) | np.isnan(y)
            lacking = missing & ~dropped
            if asked.key is None and lacking.any() and not asked.skip_missing:
                lacks = "forecast" if math.isnan(p[int(np.argmax(lacking))]) else "outcome"
                raise InvalidData(
                    f"{rows.where(0)} has no {lacks}; expected both, a column that tells questions apart (--id), "
                    "or --skip-missing"
                )
        except InvalidData:
            if len(lines) == 1:
                raise
            half = len(lines) // 2
            self._block(lines[:half])
            self._block(lines[half:])
            return
        done, first = 0, int(note["line"])
        try:
            if asked.key is None:
                self.monitor.update(p[~missing], y[~missing])
                done = rows.rows
                note["skipped"] += int(missing.sum())
            else:
                keys = rows.sample(asked.key, rows.rows)
                for one, other, key in zip(p.tolist(), y.tolist(), keys, strict=True):
                    if dropped[done]:
                        note["skipped"] += 1
                        if key.strip() in note["open"]:
                            self.monitor.drop(note["open"].pop(key.strip()))
                    else:
                        self._question(first + places[done] + 1, one, other, key)
                    done += 1
        finally:
            if done:
                note["largest"] = max(note["largest"], float(np.nanmax(p[:done], initial=0.0)))
                if times is not None:
                    note["last"] = [float(times[done - 1]), rows.text(str(asked.time), done - 1)]
            self._taken(lines if done == rows.rows else lines[: places[done]])

    def _rows(self, lines: list[bytes], columns: list[str], before: int) -> tuple[Rows, list[int]]:
        """The lines that are neither blank nor remarks, as rows; and which they are."""
        self._text(lines, before)
        places = [i for i, line in enumerate(lines) if line.strip() and not line.startswith(b"#")]
        data = b"".join(lines[i] for i in places)
        rows = csv_rows(data, self.name, columns, self._asked.delimiter or ",", before - 1)
        if rows.rows != len(places):
            raise InvalidData(f"{self._here()} holds a part of another; expected one event a line")
        return rows, places

    def _text(self, lines: list[bytes], before: int) -> str:
        data = b"".join(lines)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            line = before + data.count(b"\n", 0, error.start) + 1
            raise InvalidData(
                f"{self.name}, line {line} is not UTF-8 ({error.reason}); expected UTF-8: iconv -f ENCODING -t utf-8 "
                "FILE | onlinecal watch -"
            ) from None

    def _times(self, rows: Rows, column: str) -> Floats:
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

    def _question(self, line: int, p: float, y: float, key: str) -> None:
        """A line with a key: a question is asked by its first forecast, and told once."""
        # The first forecast is chosen without a look at what comes later. The mean of all is not calibrated where
        # forecasts become better. The last one is not where questions close because of their outcome.
        opened: dict[str, int] = self._note["open"]
        settled: dict[str, list[float]] = self._note["settled"]
        where, key = f"{self.name}, line {line}", key.strip()
        if not key:
            raise InvalidData(
                f"{where}: column {self._asked.key!r} is empty; expected what tells questions apart"
            )
        if math.isnan(p) and math.isnan(y):
            if not self._asked.skip_missing:
                raise InvalidData(f"{where} has neither forecast nor outcome; expected one of them")
            self._note["skipped"] += 1
        elif key in settled:
            before, at = settled[key]
            if not math.isnan(y) and y != before:
                raise InvalidData(several_outcomes(where, key, f"{y:g}", f"{before:g}", f"line {at:.0f}"))
            self._note["repeated"] += 1
        elif math.isnan(y):
            if key in opened:
                self._note["repeated"] += 1
            else:
                opened[key] = self.monitor.ask(p)
        elif math.isnan(p) and key not in opened:
            raise InvalidData(f"{where}: no forecast for {key!r} is open; expected it before its outcome")
        else:
            settled[key] = [y, line]
            if key in opened:  # files that are written again repeat the forecast beside the outcome
                self.monitor.tell(opened.pop(key), y)
            else:
                self.monitor.update(p, y)


def _kept(asked: Asked) -> dict[str, Any]:
    """The settings by which lines are read, as a state keeps them."""
    return {name: getattr(asked, name, None) for name in _OPTIONS} | {
        "forecast": asked.forecasts[0] if asked.forecasts else None,
        "positive": None if asked.positive is None else asked.positive.strip().lower(),
    }


def _differs(option: str, before: Any, now: Any) -> InvalidParameter:
    given = option if now is True else f"{option} {now}"
    was = f"{option} {before}" if before else f"no {option}"
    return InvalidParameter(f"{given}, but the state has {was}; expected the same, or another --state")
