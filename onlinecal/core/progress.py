"""How far it is, for those who wait: a bar on a terminal or in a notebook, a line now and then in a file."""

from __future__ import annotations

import html
import sys
import time
from typing import Any, Protocol

from onlinecal.core.notebook import Spot, in_notebook

#: what is faster than this needs no bar
PATIENCE = 2.0
#: seconds between two lines in a file
EVERY = 30.0


class _Shown(Protocol):
    def put(self, done: int, text: str) -> None: ...

    def close(self) -> None: ...


class Progress:
    """Counts work and shows the share done, the rate and the time left."""

    def __init__(self, total: int, shown: bool | None = None, unit: str = "run-rounds") -> None:
        self._total, self._unit = total, unit
        self._wanted = shown is not False and sys.stderr is not None
        self._began = time.perf_counter()
        self._notebook = in_notebook()
        self._live = self._notebook or (self._wanted and sys.stderr.isatty())
        self._at = self._began + (0.0 if shown else PATIENCE if self._live else EVERY)
        self._done = 0
        self._text = ""
        self._place: _Shown | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._place is not None:
            self._place.close()

    def describe(self, text: str) -> None:
        """What is being played now."""
        self._text = text
        self.advance(0)

    def advance(self, work: int) -> None:
        """That much more is done."""
        self._done += work
        if self._place is None:
            if not self._wanted or time.perf_counter() < self._at:
                return
            self._place = self._open()
        self._place.put(self._done, self._text)

    def _open(self) -> _Shown:
        if self._notebook:
            return _Cell(self._total, self._unit, self._began)
        return _Bar(self._total, self._unit) if self._live else _Lines(self._total, self._unit, self._began)


def _so_far(total: int, done: int, unit: str, began: float) -> str:
    """``42 %, 1.2 M run-rounds/s, 30 s left``."""
    spent = time.perf_counter() - began
    parts = [f"{100.0 * done / total if total else 100.0:.0f} %"]
    if done and spent:
        parts.append(f"{_rate(done / spent)} {unit}/s")
    if done > total / 50:  # before, it tells of compilation more than of what is to come
        parts.append(f"{_time(spent * max(0, total - done) / done)} left")
    return ", ".join(parts)


def _rate(speed: float) -> str:
    """``1.2 M``, ``34 k`` or ``56``."""
    if speed >= 1e5:
        return f"{speed / 1e6:.1f} M"
    return f"{speed / 1e3:.0f} k" if speed >= 1e4 else f"{speed:.0f}"


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


class _Lines:
    """Where nothing that was written can be changed."""

    def __init__(self, total: int, unit: str, began: float) -> None:
        self._total, self._unit, self._began, self._at = total, unit, began, 0.0

    def put(self, done: int, text: str) -> None:
        now = time.perf_counter()
        if now >= self._at:
            self._at = now + EVERY
            said = _so_far(self._total, done, self._unit, self._began)
            print(" · ".join(filter(None, (said, text))), file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class _Cell:
    """Below a cell of a notebook, gone when it is done."""

    def __init__(self, total: int, unit: str, began: float) -> None:
        self._total, self._unit, self._began, self._at = total, unit, began, 0.0
        self._spot = Spot()

    def put(self, done: int, text: str) -> None:
        now = time.perf_counter()
        if now >= self._at:
            self._at = now + 0.2
            share = min(1.0, done / self._total if self._total else 1.0)
            said = " · ".join(filter(None, (_so_far(self._total, done, self._unit, self._began), text)))
            self._spot.put(f'<progress value="{share:.4f}" max="1"></progress> {html.escape(said)}')

    def close(self) -> None:
        self._spot.put("")


class _Bar:
    """On a terminal, gone when it is done."""

    def __init__(self, total: int, unit: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
        from rich.text import Text

        class Rate(ProgressColumn):
            def render(self, task: Any) -> Text:
                speed = task.finished_speed or task.speed
                return Text("" if speed is None else f"{_rate(speed)} {unit}/s", style="dim")

        self._bar = Bar(
            TextColumn("{task.percentage:>3.0f} %"),
            BarColumn(bar_width=30),
            Rate(),
            TimeRemainingColumn(),
            TextColumn("left · {task.description}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=total)
        self._bar.start()

    def put(self, done: int, text: str) -> None:
        self._bar.update(self._task, completed=done, description=text)

    def close(self) -> None:
        self._bar.stop()
