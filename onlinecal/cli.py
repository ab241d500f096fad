"""The command line: `onlinecal run`, `compare`, `plot`, `report` and the others of `onlinecal.commands`."""

from __future__ import annotations

import gc
from collections.abc import Callable

import typer

from onlinecal.commands import forecasts, games, knowing, results
from onlinecal.commands.base import guarded
from onlinecal.core import words

#: in the order in which help lists them
COMMANDS: dict[str, Callable[..., None]] = {
    "new": results.new, "run": results.run, "status": results.status, "compare": results.compare,
    "plot": results.plot, "report": results.report, "measure": forecasts.measure,
    "measure-again": results.measure_again, "export": results.export, "merge": results.merge,
    "recalibrate": forecasts.recalibrate, "watch": forecasts.watch, "list": knowing.list_, "show": knowing.show,
    "check": knowing.check, "solve": games.solve, "exploit": games.exploit, "search": games.search,
    "games": games.games,
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
