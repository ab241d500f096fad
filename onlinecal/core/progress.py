"""A progress bar on stderr that only those see who wait."""

from __future__ import annotations

import sys
import time
from typing import Any

#: what is faster than this needs no bar
PATIENCE = 2.0


class Progress:
    """Counts work and shows the share done, the rate and the time left.

    Parameters
    ----------
    total : int
        Run-rounds to play, or other units of work to do.
    shown : bool, optional
        True: from the start. False: never. Default: after two seconds, where stderr is a terminal.
    unit : str, default "run-rounds"
    """

    def __init__(self, total: int, shown: bool | None = None, unit: str = "run-rounds") -> None:
        self._total, self._unit = total, unit
        self._at = time.perf_counter() + (0.0 if shown else PATIENCE)
        self._wanted = sys.stderr.isatty() if shown is None else shown
        self._done = 0
        self._text = ""
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def describe(self, text: str) -> None:
        """What is being played now."""
        self._text = text
        self.advance(0)

    def advance(self, work: int) -> None:
        """That much more is done."""
        self._done += work
        if self._bar is None:
            if not self._wanted or time.perf_counter() < self._at:
                return
            self._open()
        self._bar.update(self._task, completed=self._done, description=self._text)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
        from rich.text import Text

        unit = self._unit

        class Rate(ProgressColumn):
            def render(self, task: Any) -> Text:
                speed = task.finished_speed or task.speed
                return Text("" if speed is None else f"{speed / 1e6:.1f} M {unit}/s", style="dim")

        self._bar = Bar(
            TextColumn("{task.percentage:>3.0f} %"),
            BarColumn(bar_width=30),
            Rate(),
            TimeRemainingColumn(),
            TextColumn("left · {task.description}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._text, total=self._total)
        self._bar.start()
