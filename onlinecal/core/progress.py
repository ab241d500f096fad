"""Progress of work: bars on terminals and in notebooks, lines in files; and pictures in notebooks."""

import html
import io
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

#: seconds after which a bar is shown, and between two lines in a file
PATIENCE, EVERY = 2.0, 30.0

#: function that shows the state and a text, seconds between two calls of it, function that ends it
_Shown = tuple[Callable[[str], Any], float, Callable[[], Any]]


class Progress:
    """Counts work and shows the share done, the rate and the time left; `shown` from the start, or (False) never.

    Otherwise after two seconds, or in a file a line every half minute. With `ticks` a thread looks twice a second.
    """

    def __init__(
        self, total: int, shown: bool | None = None, unit: str = "run-rounds", ticks: bool = False
    ) -> None:
        self._total, self._unit = total, unit
        self._wanted = shown is not False and sys.stderr is not None
        self._began = time.perf_counter()
        self._notebook = in_notebook()
        self._live = self._notebook or (self._wanted and sys.stderr.isatty())
        self._at = self._began + (0.0 if shown else PATIENCE if self._live else EVERY)
        self._done = 0
        self._text = ""
        self._shown: _Shown | None = None
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
        if self._shown is not None:
            self._shown[2]()

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
            if self._shown is None:
                self._shown = self._cell() if self._notebook else self._bar() if self._live else self._lines()
            show, every, _ = self._shown
            self._at = time.perf_counter() + every
            show(self._text)

    def _tick(self) -> None:
        while not self._over.wait(0.5):
            self.advance(0)

    def _so_far(self, text: str) -> str:
        """``42 %, 1.2 M run-rounds/s, 30 s left``, and a text."""
        spent, done, total = time.perf_counter() - self._began, self._done, self._total
        parts = [f"{100.0 * done / total if total else 100.0:.0f} %"]
        if done and spent:
            parts.append(f"{_rate(done / spent)} {self._unit}/s")
        if done > total / 50:  # before, it tells of compilation more than of what is to come
            parts.append(f"{_time(spent * max(0, total - done) / done)} left")
        return " · ".join(filter(None, (", ".join(parts), text)))

    def _lines(self) -> _Shown:
        def show(text: str) -> None:
            print(self._so_far(text), file=sys.stderr, flush=True)

        return show, EVERY, lambda: None

    def _cell(self) -> _Shown:
        """Below a cell of a notebook, gone when it is done."""
        from IPython.display import HTML, display

        spot = display(HTML(""), display_id=True)

        def show(text: str) -> None:
            share = min(1.0, self._done / self._total if self._total else 1.0)
            said = html.escape(self._so_far(text))
            spot.update(HTML(f'<progress value="{share:.4f}" max="1"></progress> {said}'))

        return show, 0.2, lambda: spot.update(HTML(""))

    def _bar(self) -> _Shown:
        """On a terminal, gone when it is done."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        # A narrow terminal cuts the text at its end.
        line = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        said = TextColumn("{task.description}", markup=False, table_column=line)
        bar = Progress(
            BarColumn(bar_width=20), said, console=Console(stderr=True), transient=True, expand=True
        )
        task = bar.add_task("", total=self._total)
        bar.start()

        def show(text: str) -> None:
            bar.update(task, completed=self._done, description=self._so_far(text))

        return show, 0.0, bar.stop


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


def show(figure: Any) -> None:
    """Shows a figure of matplotlib below the cell, whatever backend there is."""
    from IPython.display import Image, display

    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=figure.dpi)
    display(Image(data=file.getvalue(), width=round(figure.get_figwidth() * 100)))
