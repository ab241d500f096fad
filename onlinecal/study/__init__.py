"""Studies: a plan of cells, the executors that play them, the file that keeps them."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlinecal.study.entries import Incompatible
    from onlinecal.study.executors import play_cells
    from onlinecal.study.planning import Cell, Entry, Plan, plan
    from onlinecal.study.played import Batch, Played, Promise
    from onlinecal.study.run import play_batch, play_cell, result

__all__ = [
    "Batch", "Cell", "Entry", "Incompatible", "Plan", "Played", "Promise", "plan", "play_batch", "play_cell",
    "play_cells", "result",
]  # fmt: skip
#: where names are, which are imported when first asked for: the status of a file needs no engine
_HOMES = {
    "Incompatible": "entries", "Played": "played", "Promise": "played",
    "play_cells": "executors", "Batch": "played", "play_batch": "run", "play_cell": "run", "result": "run",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, 'planning')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
