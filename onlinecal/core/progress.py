"""Progress of work: bars on terminals and in notebooks, lines in files."""

import html
import sys
import threading
import time
from typing import Any

#: seconds after which a bar is shown, and between two lines in a file
PATIENCE, EVERY = 2.0, 30.0


class Progress:
    """Counts work and shows the share done, the rate and the time left; `shown` from the start, or (False) never.

    Otherwise after two seconds, or in a file a line every half minute. With `ticks` a thread looks twice a second.
    """

    def __init__(
        self, total: int, shown: bool | None = None, unit: str = "run-rounds", ticks: bool = False
    ) -> None:
        # At least 1, as shares are divided by it.
        self._total, self._unit = max(total, 1), unit
        self._wanted = shown is not False and sys.stderr is not None
        self._began = time.perf_counter()
        self._notebook = in_notebook()
        self._live = self._notebook or (self._wanted and sys.stderr.isatty())
        self._at = self._began + (0.0 if shown else PATIENCE if self._live else EVERY)
        self._done = 0
        self._text = ""
        #: the bar below a cell, or on a terminal, once there is one
        self._spot: Any = None
        self._bar: Any = None
        self._lock, self._over = threading.Lock(), threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True) if ticks and self._wanted else None

    def __enter__(self) -> "Progress":
        if self._clock is not None:
            self._clock.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._clock is not None:
            self._clock.join()
        if self._spot is not None:
            self._show_in_cell(gone=True)
        if self._bar is not None:
            self._bar.stop()

    def describe(self, text: str) -> None:
        """Names the work that is being done now."""
        self._text = text
        self.advance(0)

    def advance(self, work: int) -> None:
        """Adds work that is done."""
        self._done += work
        if not self._wanted or time.perf_counter() < self._at:
            return
        with self._lock:
            self._at = time.perf_counter() + (0.2 if self._notebook else 0.0 if self._live else EVERY)
            if self._notebook:
                self._show_in_cell()
            elif self._live:
                self._show_on_terminal()
            else:
                print(self._so_far(), file=sys.stderr, flush=True)

    def _tick(self) -> None:
        while not self._over.wait(0.5):
            self.advance(0)

    def _so_far(self) -> str:
        """``42 %, 1.2 M run-rounds/s, 30 s left``, and the text."""
        spent, done, total = time.perf_counter() - self._began, self._done, self._total
        parts = [f"{100.0 * done / total:.0f} %"]
        if done and spent:
            parts.append(f"{_rate(done / spent)} {self._unit}/s")
        if done > total / 50:  # before, it tells of compilation more than of what is to come
            parts.append(f"{_time(spent * max(0, total - done) / done)} left")
        return " · ".join(filter(None, (", ".join(parts), self._text)))

    def _show_in_cell(self, gone: bool = False) -> None:
        """Below a cell of a notebook, gone when it is done."""
        from IPython.display import HTML, display

        share = min(1.0, self._done / self._total)
        said = f'<progress value="{share:.4f}" max="1"></progress> {html.escape(self._so_far())}'
        self._spot = self._spot or display(HTML(""), display_id=True)
        self._spot.update(HTML("" if gone else said))

    def _show_on_terminal(self) -> None:
        """On a terminal, gone when it is done."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        if self._bar is None:
            # A narrow terminal cuts the text at its end.
            line = Column(ratio=1, no_wrap=True, overflow="ellipsis")
            said = TextColumn("{task.description}", markup=False, table_column=line)
            console = Console(stderr=True)
            self._bar = Progress(BarColumn(bar_width=20), said, console=console, transient=True, expand=True)
            self._bar.add_task("", total=self._total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=self._done, description=self._so_far())


def _rate(speed: float) -> str:
    """``1.2 M``, ``34 k``, ``56`` or ``0.78``."""
    if speed >= 1e5:
        return f"{speed / 1e6:.1f} M"
    return f"{speed / 1e3:.0f} k" if speed >= 1e4 else f"{speed:.0f}" if speed >= 9.95 else f"{speed:.2g}"


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


def in_notebook() -> bool:
    """Whether the code runs in a cell of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")
