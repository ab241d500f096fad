"""Watching a file or a pipe until it ends, or a signal stops it; nothing that was taken is lost."""

import contextlib
import io
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from onlinecal.core.errors import InvalidData
from onlinecal.core.files import kind_of, opened, unpacking
from onlinecal.core.words import number_of
from onlinecal.logs.columns import Asked
from onlinecal.monitoring.alarms import Alarm
from onlinecal.monitoring.feed import Feed
from onlinecal.monitoring.monitor import Monitor

#: bytes that are read at a time; seconds between two looks for more, and between two saves
CHUNK, PAUSE, SAVED = 2**20, 0.2, 5.0


def watch(
    monitor: Monitor,
    source: Path | None,
    asked: Asked,
    *,
    follow: bool = False,
    state: Path | None = None,
    found: Callable[[Alarm], None] = lambda alarm: None,
    say: Callable[[str], None] = lambda text: None,
) -> bool:
    """Feeds a monitor, from where it stopped last; whether a signal stopped it before the end."""
    name = "standard input" if source is None else str(source)
    if source is not None and (kind := kind_of(source)) != "CSV":
        raise InvalidData(f"{name}: a {kind} file has no lines of CSV; expected some, which come one by one")
    feed = Feed(monitor, name, asked, say)
    told, saved = len(monitor.alarms), time.monotonic()
    with _reading(source, name, feed, follow) as read, _stopping() as stopped:
        if feed.piped and monitor.events:
            say(f"{name} goes on after {number_of(monitor.events, 'event')}: no line may be one of these")
        try:
            data: bytes | None = None
            while not stopped and data != b"":
                if (data := read()) is not None:
                    try:
                        feed.take(data, last=not data)
                    finally:
                        new, told = monitor.alarms[told:], len(monitor.alarms)
                        for alarm in new:
                            found(alarm)
                    if state is not None and (new or time.monotonic() - saved > SAVED):
                        monitor.save(state)
                        saved = time.monotonic()
        finally:
            if state is not None:
                monitor.save(state)
    return bool(stopped)


@contextlib.contextmanager
def _reading(
    source: Path | None, name: str, feed: Feed, follow: bool
) -> Iterator[Callable[[], bytes | None]]:
    """A function that reads the next bytes: b"" at the end, None where more may come."""
    with unpacking(name):
        file: Any = io.FileIO(0, closefd=False) if source is None else opened(source, name)
    if isinstance(file, io.BufferedReader):
        file = file.detach()  # without a buffer, so that a pipe gives what there is
    elif follow and source is not None:
        file.close()
        raise InvalidData(f"{name}: a packed file does not grow; expected one that is not, or no --follow")

    @unpacking(name)
    def read() -> bytes | None:
        nonlocal file
        if feed.piped and not select.select([file], [], [], PAUSE)[0]:
            return None
        if (data := bytes(file.read(CHUNK))) or not follow or source is None:
            return data
        with contextlib.suppress(FileNotFoundError):  # one that is replaced may first be taken away
            there = source.stat()
            same = os.path.samestat(os.fstat(file.fileno()), there)
            if not feed.piped and not (same and there.st_size >= file.tell()):
                file.close()
                file = io.FileIO(source)
                feed.begin(file)
                return None
        time.sleep(PAUSE)
        return None

    try:
        with unpacking(name):
            feed.begin(file if source is not None and file.seekable() else None)
        yield read
    finally:
        file.close()


@contextlib.contextmanager
def _stopping() -> Iterator[list[int]]:
    """A list to which SIGINT and SIGTERM are added; in another thread than the main one they are not heard."""
    heard, before = list[int](), {}
    with contextlib.suppress(ValueError):
        for one in (signal.SIGINT, signal.SIGTERM):
            before[one] = signal.signal(one, lambda number, frame: heard.append(number))
    try:
        yield heard
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
