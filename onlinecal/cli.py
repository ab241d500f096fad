"""The command line: `onlinecal run`, `compare`, `plot`, `report` and the others of `onlinecal.commands`."""

from __future__ import annotations

import gc
from collections.abc import Callable

import typer

from onlinecal.commands import (
    comparing,
    drawing,
    keeping,
    knowing,
    measuring,
    playing,
    searching,
    solving,
    watching,
)
from onlinecal.commands.base import guarded
from onlinecal.core import words

#: in the order in which help lists them
COMMANDS: dict[str, Callable[..., None]] = {
    "new": playing.new, "run": playing.run, "status": playing.status, "compare": comparing.compare,
    "plot": drawing.plot, "report": drawing.report, "measure": measuring.measure,
    "measure-again": keeping.measure_again, "export": keeping.export, "merge": keeping.merge,
    "recalibrate": watching.recalibrate, "watch": watching.watch, "list": knowing.list_, "show": knowing.show,
    "check": knowing.check, "solve": solving.solve, "exploit": solving.exploit, "search": searching.search,
    "games": solving.games,
}  # fmt: skip

app = typer.Typer(
    name="onlinecal", help="Simulator and measuring instrument for online calibration.", no_args_is_help=True,
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip
for name, function in COMMANDS.items():
    app.command(name)(guarded(function))


def main() -> None:
    """Run the console script."""
    # Many cells are many objects without garbage, which need no search.
    gc.set_threshold(20_000, 20, 20)
    words.use()  # tables hold ×, ± and whatever labels hold
    app()
