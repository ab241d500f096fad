"""Watching a file or a pipe until it ends, or a signal stops it; nothing that was taken is lost."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from onlinecal.core.errors import InvalidData
from onlinecal.core.files import is_parquet, opened, unpacking
from onlinecal.core.words import number_of
from onlinecal.forecasts.reading import Asked
from onlinecal.monitoring.alarms import Alarm
from onlinecal.monitoring.feed import Feed
from onlinecal.monitoring.monitor import Monitor

Read = Callable[[], bytes]

#: bytes that are read at a time; seconds between two looks at a file that has not grown, and between two saves
CHUNK, PAUSE, SAVED = 2**20, 0.2, 5.0


def watch(
    monitor: Monitor,
    source: Path | None,
    asked: Asked,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    follow: bool = False,
    state: Path | None = None,
    found: Callable[[Alarm], None] = lambda alarm: None,
    say: Callable[[str], None] = lambda text: None,
) -> bool:
    """Feeds a monitor, from where it stopped last; whether a signal stopped it before the end."""
    name = "standard input" if source is None else str(source)
    if source is not None and is_parquet(source):
        raise InvalidData(f"{name}: a Parquet file has no lines that come one by one; expected CSV")
    feed = Feed(monitor, name, asked, delimiter=delimiter, encoding=encoding, say=say)
    if source is None:
        feed.begin_again()
        if monitor.events:
            say(
                f"{name} goes on after {number_of(monitor.events, 'event')}: none of its lines may be one of these"
            )
    with _standard_input() if source is None else _opened(source, feed, follow) as read:
        return _fed(monitor, feed, read, follow and source is not None, state, found)


def _fed(
    monitor: Monitor, feed: Feed, read: Read, follow: bool, state: Path | None, found: Callable[[Alarm], None]
) -> bool:
    """Feeds until the end or a signal; whether there was a signal."""
    saved = time.monotonic()

    def save() -> None:
        nonlocal saved
        if state is not None:
            monitor.save(state)
        saved = time.monotonic()

    alarms = len(monitor.alarms)
    stop = _Stop()
    try:
        with stop.caught():
            while not stop.asked:
                data = stop.read(read)
                if data is None:
                    break
                if data:
                    feed.take(data, found=found)
                elif not follow:
                    feed.take(b"", last=True, found=found)
                    break
                else:
                    feed.take(b"", found=found)
                    stop.wait(PAUSE)
                if len(monitor.alarms) > alarms or time.monotonic() - saved > SAVED:
                    alarms = len(monitor.alarms)
                    save()
    finally:
        save()
    return stop.asked


@contextlib.contextmanager
def _standard_input() -> Iterator[Read]:
    yield lambda: os.read(0, CHUNK)


@contextlib.contextmanager
def _opened(source: Path, feed: Feed, follow: bool) -> Iterator[Read]:
    """A function that reads the next bytes of a file, from where the feed stopped last."""
    name = str(source)
    with unpacking(name):
        file: Any = opened(source, name)
    packed = not isinstance(file, io.BufferedReader)
    if packed and follow:
        raise InvalidData(f"{name}: a packed file does not grow; expected one that is not, or no --follow")
    # Without a buffer, so that a pipe gives what there is.
    file = file if packed else file.detach()

    def part(size: int) -> bytes:
        with unpacking(name):
            return bytes(file.read(size))

    def read() -> bytes:
        nonlocal file
        data = part(CHUNK)
        if data or packed:
            return data
        if file.seekable() and os.fstat(file.fileno()).st_size < file.tell():
            raise InvalidData(f"{name} has become shorter while it was watched; expected it to grow")
        if follow and (other := _replacement(source, file)) is not None:
            file.close()
            file = other
            feed.skip(part)
            return part(CHUNK)
        return data

    try:
        feed.skip(part)
        yield read
    finally:
        file.close()


def _replacement(source: Path, file: Any) -> Any:
    """The file that has come in place of one that has been read, opened; None if none has."""
    try:
        if os.path.samestat(os.fstat(file.fileno()), source.stat()):
            return None
        return io.FileIO(source)
    except FileNotFoundError:  # it may first be taken away
        return None


class _Stop:
    """SIGINT and SIGTERM end the reading of data, and never the taking of what has been read."""

    def __init__(self) -> None:
        self.asked = False
        self._reading = False

    def read(self, read: Read) -> bytes | None:
        """The next bytes; none at the end; None after a signal."""
        data: bytes | None = self._interruptible(read)
        return data

    def wait(self, seconds: float) -> None:
        """Waits some seconds, or until a signal."""
        self._interruptible(lambda: time.sleep(seconds))

    def _interruptible(self, wait: Callable[[], Any]) -> Any:
        try:
            self._reading = True
            if self.asked:
                return None
            return wait()
        except _Stopped:
            return None
        finally:
            self._reading = False

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self._reading:
            self._reading = False
            raise _Stopped

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Listens to the signals; in another thread than the main one it cannot, and need not."""
        before = {}
        with contextlib.suppress(ValueError):
            for one in (signal.SIGINT, signal.SIGTERM):
                before[one] = signal.signal(one, self._heard)
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


class _Stopped(Exception):
    pass
