"""The command line: `onlinecal run`, `compare`, `plot`, `report` and the others of `onlinecal.commands`."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import typer

from onlinecal.commands import comparing, drawing, keeping, knowing, playing, solving
from onlinecal.commands.base import guarded

#: in the order in which help lists them
COMMANDS: dict[str, Callable[..., None]] = {
    "run": playing.run,
    "status": playing.status,
    "compare": comparing.compare,
    "plot": drawing.plot,
    "report": drawing.report,
    "measure-again": keeping.measure_again,
    "export": keeping.export,
    "merge": keeping.merge,
    "list": knowing.list_,
    "show": knowing.show,
    "check": knowing.check,
    "solve": solving.solve,
    "exploit": solving.exploit,
    "games": solving.games,
}

app = typer.Typer(
    name="onlinecal",
    help="Simulator and measuring instrument for online calibration.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for name, function in COMMANDS.items():
    app.command(name)(guarded(function))


def main() -> None:
    """The console script."""
    # What a terminal cannot show is replaced, as stderr does by itself: tables hold ×, ± and whatever labels hold.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    app()
