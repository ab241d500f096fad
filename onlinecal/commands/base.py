"""What all commands have in common: their arguments, what becomes of errors, and what they read."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

# Everything heavy is imported in the command that needs it: help answers at once.

#: letters of the longest word in a message
WORD = 200

Results = Annotated[
    Path, typer.Argument(metavar="RESULTS", help="a results file, such as results/quickstart.db")
]
Json = Annotated[bool, typer.Option("--json", help="print JSON instead of a table")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace an existing file")]

# How files of people's own forecasts are read.
Positive = Annotated[
    str | None, typer.Option(help="the word in the column of outcomes that is outcome 1, such as yes")
]
Percent = Annotated[bool, typer.Option("--percent", help="forecasts are per cent")]
Delimiter = Annotated[str | None, typer.Option(help="between cells; default as in the header")]
Encoding = Annotated[str | None, typer.Option(help="of the file; default UTF-8")]


def guarded(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose expected errors are one line on stderr and exit status 2."""

    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> None:
        from onlinecal.core.errors import OnlinecalError

        try:
            function(*args, **kwargs)
            if sys.stdout is not None:
                sys.stdout.flush()
        except OnlinecalError as error:
            print("error:", _in_one_line(error), file=sys.stderr)
            raise typer.Exit(2) from None
        except KeyboardInterrupt as error:
            print(" ".join(filter(None, ("stopped", str(error)))), file=sys.stderr)
            raise typer.Exit(130) from None
        except OSError as error:
            # What is still to be said, Python says in the end: to nobody, for they have failed to take it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            if isinstance(error, BrokenPipeError):
                raise typer.Exit(0) from None  # whoever read our output has seen enough
            where = error.filename or "what was to be printed"
            print(f"error: {where} cannot be read or written: {error.strerror or error}", file=sys.stderr)
            raise typer.Exit(2) from None
        except Exception:
            raise  # a mistake of ours
        except BaseException as error:  # of a plug-in, such as what sys.exit() raises
            from onlinecal.core.errors import failure

            print("error: stopped by", failure(error), file=sys.stderr)
            raise typer.Exit(2) from None

    return command


def _in_one_line(error: Exception) -> str:
    """Its message; of words longer than a line only the ends, for a name or a number may have thousands of letters."""
    from onlinecal.core.errors import in_one_line

    words = in_one_line(error, str).split()
    return " ".join(w if len(w) <= WORD else f"{w[: WORD // 2]}…{w[-WORD // 4 :]}" for w in words)


def aside() -> contextlib.redirect_stdout[Any]:
    """What plug-ins print while they play goes to stderr, as from other processes: stdout is for results."""
    return contextlib.redirect_stdout(sys.stderr)


def study_of(path: Path) -> Any:
    """The study in a results file; says how much of it is finished where that is not all."""
    from onlinecal.core.errors import StoreError
    from onlinecal.report.curves import Study
    from onlinecal.study.store import Store

    with Store.open(path) as store:
        study, planned = Study.of(store.results()), len(store.plan())
    if not study.cells:
        raise StoreError(f"{path} has no finished cells yet; go on with: onlinecal run SCENARIO --resume")
    if len(study.cells) < planned:
        print(
            f"{len(study.cells)} of {planned} cells are finished; go on with: onlinecal run SCENARIO --resume",
            file=sys.stderr,
        )
    return study


def people_rows_of(study: Any) -> Any:
    """What became of decision makers; empty where there are none."""
    from onlinecal.report.people import people_rows

    return people_rows(study) if any(cell.people for cell in study.cells) else []
