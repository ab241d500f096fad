"""Watching a file or a pipe until it ends, or a signal stops it; nothing that was taken is lost."""

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
from onlinecal.core.files import kind_of, opened, unpacking
from onlinecal.core.words import number_of
from onlinecal.logs.reading import Asked
from onlinecal.monitoring.feed import Feed, Found
from onlinecal.monitoring.monitor import Monitor

Read = Callable[[], bytes]

#: bytes that are read at a time; seconds between two looks at an unchanged file, and between two saves
CHUNK, PAUSE, SAVED = 2**20, 0.2, 5.0


def watch(
    monitor: Monitor,
    source: Path | None,
    asked: Asked,
    *,
    follow: bool = False,
    state: Path | None = None,
    found: Found = lambda alarm: None,
    say: Callable[[str], None] = lambda text: None,
) -> bool:
    """Feeds a monitor, from where it stopped last; whether a signal stopped it before the end."""
    name = "standard input" if source is None else str(source)
    if source is not None and (kind := kind_of(source)) != "CSV":
        raise InvalidData(f"{name}: a {kind} file has no lines of CSV; expected some, which come one by one")
    feed, stop = Feed(monitor, name, asked, say), _Stop()
    if source is None:
        follow = False
        feed.begin_again()
        if monitor.events:
            say(f"{name} goes on after {number_of(monitor.events, 'event')}: no line may be one of these")
    alarms, saved = len(monitor.alarms), time.monotonic()
    with _standard_input() if source is None else _opened(source, feed, follow) as read:
        try:
            with stop.caught():
                while not stop.asked and (data := stop.interruptible(read)) is not None:
                    feed.take(data, last=not data and not follow, found=found)
                    if not data and not follow:
                        break
                    if not data:
                        stop.interruptible(lambda: time.sleep(PAUSE))
                    if state is not None and (
                        len(monitor.alarms) > alarms or time.monotonic() - saved > SAVED
                    ):
                        monitor.save(state)
                        alarms, saved = len(monitor.alarms), time.monotonic()
        finally:
            if state is not None:
                monitor.save(state)
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
        with contextlib.suppress(FileNotFoundError):  # one that is replaced may first be taken away
            if follow and not os.path.samestat(os.fstat(file.fileno()), source.stat()):
                other = io.FileIO(source)
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


class _Stop:
    """SIGINT and SIGTERM end the reading of data, and never the taking of what has been read."""

    def __init__(self) -> None:
        self.asked = False
        self._reading = False

    def interruptible(self, wait: Callable[[], Any]) -> Any:
        """The result of a function that reads or waits; None after a signal."""
        try:
            self._reading = True
            return None if self.asked else wait()
        except KeyboardInterrupt:
            return None
        finally:
            self._reading = False

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self._reading:
            self._reading = False
            raise KeyboardInterrupt

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
