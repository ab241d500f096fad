"""Watching a file or a pipe until it ends, or until somebody stops it; nothing that was taken is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from onlinecal.core.errors import InvalidData
from onlinecal.monitoring.alarms import Alarm
from onlinecal.monitoring.feed import Columns, Feed
from onlinecal.monitoring.monitor import Monitor

#: bytes that are read at a time; seconds between two looks at a file that has not grown, and between two saves
CHUNK, PAUSE, SAVED = 2**20, 0.2, 5.0


def watch(
    monitor: Monitor,
    source: Path | None,
    columns: Columns,
    *,
    follow: bool = False,
    state: Path | None = None,
    found: Callable[[Alarm], None] = lambda alarm: None,
) -> bool:
    """Feeds a monitor, from where it stopped last.

    Parameters
    ----------
    monitor : Monitor
        Of a saved one, its `note` says how far the file has been taken.
    source : Path or None
        A CSV file; None for standard input.
    columns : Columns
    follow : bool, default False
        Whether to wait for more at the end of the file.
    state : Path, optional
        Where the monitor is saved: after every alarm, every 5 seconds, and in the end, whatever ends it.
    found : callable, optional
        Told every alarm.

    Returns
    -------
    bool
        Whether somebody stopped it (SIGINT, SIGTERM) before the end.

    Raises
    ------
    InvalidData
        A line that is none, after all before it have been taken and saved; a file that is not there, or has become
        shorter.
    OSError
    """
    name = "standard input" if source is None else str(source)
    feed = Feed(monitor, name, columns)
    descriptor = 0 if source is None else _opened(source, feed)
    if source is None:
        feed.begin_anew()
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
                data = stop.read(descriptor)
                if data is None:
                    break
                if data:
                    feed.take(data, found=found)
                elif not follow or source is None:
                    feed.take(b"", last=True, found=found)
                    break
                else:
                    if os.fstat(descriptor).st_size < os.lseek(descriptor, 0, os.SEEK_CUR):
                        raise InvalidData(
                            f"{name} has become shorter while it was watched; expected it to grow"
                        )
                    stop.wait(PAUSE)
                if len(monitor.alarms) > alarms or time.monotonic() - saved > SAVED:
                    alarms = len(monitor.alarms)
                    save()
    finally:
        if source is not None:
            os.close(descriptor)
        save()
    return stop.asked


def _opened(source: Path, feed: Feed) -> int:
    try:
        descriptor = os.open(source, os.O_RDONLY)
    except FileNotFoundError:
        raise InvalidData(f"{source}: no such file") from None
    try:
        if source.is_dir():
            raise InvalidData(f"{source} is a directory; expected a CSV file")
        size = os.fstat(descriptor).st_size
        if size < feed.offset:
            raise InvalidData(
                f"{source} has {size} bytes, and {feed.offset} of it have been taken; expected the file that was "
                "watched before, or another --state"
            )
        os.lseek(descriptor, feed.offset, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class _Stop:
    """SIGINT and SIGTERM end the reading of data, and never the taking of what has been read."""

    def __init__(self) -> None:
        self.asked = False
        self._reading = False

    def read(self, descriptor: int) -> bytes | None:
        """The next bytes; none at the end; None where somebody wants to stop."""
        data: bytes | None = self._interruptible(lambda: os.read(descriptor, CHUNK))
        return data

    def wait(self, seconds: float) -> None:
        """Some seconds, or until somebody wants to stop."""
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
