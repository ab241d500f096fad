"""How forecasts without a grid are kept: exactly, or counted on a grid with the distance that they were moved."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.memory import GIB, free_memory
from onlinecal.core.validation import integer, is_whole, number

#: the finest grid, 16 bytes a point and run
FINEST = 10**7
#: keys of a run that are sorted at a time, at least
FEWEST = 1024


@dataclass(frozen=True)
class Exact:
    """Every forecast with its outcome, 8 bytes a run-round: in memory while they fit, else in a file.

    Forecasts may take this `share` of the free memory. The file is made in `folder`, by default the temporary one of
    the system. It has no name where the system can do that (POSIX), so that it is gone whatever ends the process.
    """

    folder: str | None = None
    share: float = 0.5

    def __post_init__(self) -> None:
        number("", "share", self.share, 1e-9, 1.0)
        if self.folder is not None and not Path(self.folder).is_dir():
            raise InvalidParameter(
                f"history: folder = {self.folder!r} is no folder; expected one for a file of forecasts"
            )

    def most(self, runs: int, rounds: int) -> int | None:
        """The number of forecasts of a run that stay in memory; None where all of them fit."""
        needed, free = 8 * runs * rounds, free_memory()
        if needed <= self.share * free:
            return None
        folder = self.place
        try:
            left = shutil.disk_usage(folder).free
        except OSError as error:
            raise InvalidParameter(f"history: folder {folder} cannot be used: {error.strerror}") from None
        if needed > left:
            raise InvalidParameter(
                f"{runs} runs of {rounds} rounds need {needed / GIB:.1f} GiB of history for a forecaster without a "
                f"grid; {self.share:g} of {free / GIB:.1f} GiB of free memory may be used, and {folder} has "
                f"{left / GIB:.1f} GiB; expected fewer runs or rounds, history = {{ name = 'exact', folder = … }} on a "
                "larger disk, or history = 10000, which counts on a grid and gives brackets"
            )
        # Sorting and merging take as much again, and Γ more.
        return max(FEWEST, int(self.share * free / (32 * runs)))

    def bytes_of_run(self, rounds: int) -> float:
        """Bytes of memory that a run takes where all forecasts are in memory."""
        return 8.0 * rounds

    @property
    def place(self) -> str:
        """The folder."""
        return self.folder or tempfile.gettempdir()


@dataclass(frozen=True)
class OnGrid:
    """Forecasts are moved to the nearest of m + 1 points of a grid and counted; the distances are summed.

    Memory does not grow with the rounds. Γ is the moved one. With the mean distance moved, every measure that has a
    modulus has a certified bracket (`onlinecal.measures.base.bracket_of_moved`).
    """

    m: int

    def __post_init__(self) -> None:
        integer("history", "m", self.m, 1, FINEST)

    def bytes_of_run(self, rounds: int) -> float:
        """Bytes of memory that a run takes."""
        return 16.0 * (self.m + 1)


Keeping = Exact | OnGrid


def as_history(spec: Any) -> Keeping:
    """How forecasts are kept, from ``"exact"``, an integer m, a table, or one of the classes.

    >>> as_history("exact"), as_history(10_000)
    (Exact(folder=None, share=0.5), OnGrid(m=10000))
    """
    if isinstance(spec, Exact | OnGrid):
        return spec
    if is_whole(spec):
        return OnGrid(int(spec))
    options: dict[str, Any] = (
        {"name": spec} if isinstance(spec, str) else dict(spec) if isinstance(spec, Mapping) else {}
    )
    if options.pop("name", None) == "exact" and options.keys() <= {"folder", "share"}:
        return Exact(**options)
    raise InvalidParameter(
        f"history = {spec!r}; expected 'exact', {{ name = 'exact', folder = …, share = … }}, or an integer m from 1 to "
        f"{FINEST} for counts on a grid of m + 1 points"
    )
