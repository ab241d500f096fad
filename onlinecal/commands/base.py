"""The common parts of commands: arguments, the end of errors, and results files."""

import contextlib
import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

# Everything heavy is imported in the command that needs it: help answers at once.

#: letters of the longest word in a message
WORD = 200


def option(text: str, *names: str, default: Any = None, **settings: Any) -> Any:
    """The default of a parameter that is an option, with its help."""
    return typer.Option(default, *names, help=text, **settings)


def flag(text: str, *names: str, **settings: Any) -> Any:
    """The same of one without a value."""
    return option(text, *names, default=False, **settings)


def argument(text: str, metavar: str | None = None, default: Any = ...) -> Any:
    """The same of an argument."""
    return typer.Argument(default, help=text, metavar=metavar)


#: what stands for a value in help: by the name of the parameter, else by its type
COLUMNS = ("forecast", "outcome", "by", "time", "weight", "cluster", "key", "resolved", "column")
NAMES = ("measure", "forecaster", "nature", "task", "against", "like", "kind", "name", "names")
#: what the Tab key completes such a value to
KINDS = {"measure": "measures", "forecaster": "forecasters", "nature": "natures", "task": "tasks"}
VALUES: dict[str | type, str] = {
    **dict.fromkeys(COLUMNS, "COLUMN"), **dict.fromkeys(NAMES, "NAME"), "folder": "FOLDER", Path: "FILE",
    int: "NUMBER", float: "NUMBER", str: "WORD",
}  # fmt: skip


def with_metavars(function: Callable[..., None]) -> Callable[..., None]:
    """The command with a word for the value of each parameter that has none."""
    hints = get_type_hints(function)
    for name, parameter in inspect.signature(function).parameters.items():
        info, kind = parameter.default, _plain(hints[name])
        if info.metavar is None and kind is not bool:
            info.metavar = VALUES.get(name) or VALUES[kind]
        if name in NAMES:
            info.autocompletion = _completion(KINDS.get(name))
    function.__annotations__ = hints  # typer reads these
    return function


def _completion(kind: str | None) -> Callable[[str], list[str]]:
    """The names of a kind, or of all kinds, that begin with what was typed."""

    def names(incomplete: str) -> list[str]:
        from onlinecal.report import catalogue

        return [name for name in catalogue.names(kind) if name.startswith(incomplete)]

    return names


def _plain(hint: Any) -> Any:
    """`int` of ``list[int] | None``."""
    inner = [each for each in get_args(hint) if each is not type(None)]
    return _plain(inner[0]) if inner else hint


RESULTS = argument("a results file, such as results/quickstart.db", "RESULTS")
JSON = flag("print JSON instead of a table", "--json")
OVERWRITE = flag("replace an existing file", "--overwrite")

# How files of people's own forecasts are read.
POSITIVE = option("the word in the column of outcomes that is outcome 1, such as yes")
NEGATIVE = option("with --positive, a word that is outcome 0; may be repeated; default the only other one")
DROP = option("a word in the column of outcomes of rows to leave out, such as void; may be repeated")
PERCENT = flag("forecasts are per cent", "--percent")
ABOVE = option("the outcome is 1 where the number in its column is above this one, else 0")
RESOLUTIONS = option(
    "a second file, which has the outcomes of the questions (--id, or of a known platform)", metavar="FILE"
)
DELIMITER = option("between cells; default as in the header")
ENCODING = option("of the file; default UTF-8")


def guarded(function: Callable[..., None]) -> Callable[..., None]:
    """A command with expected errors as one line on stderr and exit status 2."""

    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> None:
        from onlinecal.core.errors import OnlinecalError

        try:
            try:
                function(*args, **kwargs)
            except typer.Exit:
                raise  # of a command that has said how to go on
            except Exception as error:
                if (interrupt := _interrupt(error)) is not None:
                    raise interrupt from None
                raise
            if sys.stdout is not None:
                sys.stdout.flush()
        except OnlinecalError as error:
            said = with_option(_in_one_line(error), options_of(function), kwargs)
            print("error:", said, file=sys.stderr)
            raise typer.Exit(2) from None
        except KeyboardInterrupt as error:
            print(" ".join(filter(None, ("stopped", str(error)))), file=sys.stderr)
            raise typer.Exit(130) from None
        except OSError as error:
            # Python writes the rest in the end: to no reader, as the reader has failed.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            if isinstance(error, BrokenPipeError):
                raise typer.Exit(0) from None  # the reader of our output has gone
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


#: parameters of Python that have another name than that of a command
ALIASES = {"bootstrap": "draws", "method": "forecaster", "horizons": "horizon"}


def options_of(function: Callable[..., None]) -> dict[str, str]:
    """The long option of each parameter of a command, but for its arguments."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        declared = getattr(parameter.default, "param_decls", None)
        if isinstance(parameter.default, type(option(""))):
            long = [each for each in declared or () if each.startswith("--")]
            found[name] = long[0].partition("/")[0] if long else f"--{name.replace('_', '-')}"
    return found


def with_option(said: str, options: Mapping[str, str], given: Mapping[str, Any]) -> str:
    """The words of an error, with the option in place of a parameter of Python, or before what names none.

    >>> with_option("evaluate: level = 2.0; expected a number", {"level": "--level"}, {"level": 2.0})
    '--level = 2.0; expected a number'
    >>> with_option("unknown measure 'x'", {"measure": "--measure"}, {"measure": ["x"]})
    "--measure: unknown measure 'x'"
    """
    values = {
        name: value if isinstance(value, list | tuple) else [value]
        for name, value in given.items()
        if name in options and value is not None and not isinstance(value, bool)
    }
    refused = re.match(r"(?:[\w .]+: )?(\w+)(?:\.\d+)? = ", said)
    if refused and (name := ALIASES.get(refused[1], refused[1])) in values:
        return f"{options[name]} = {said[refused.end() :]}"
    # A word in quotation marks that only one option has.
    of = [name for name, each in values.items() if any(isinstance(v, str) and repr(v) in said for v in each)]
    return f"{options[of[0]]}: {said}" if len(of) == 1 and "--" not in said else said


def _interrupt(error: BaseException | None) -> KeyboardInterrupt | None:
    """Ctrl-C behind an error: compiled code and what is being imported may answer it by one of their own."""
    from onlinecal.core.errors import behind

    every = behind(error, handled=True)
    return next((each for each in every if isinstance(each, KeyboardInterrupt)), None)


def _in_one_line(error: Exception) -> str:
    """The message of an error; of words longer than a line only the ends."""
    from onlinecal.core.errors import in_one_line

    words = in_one_line(error, str).split()
    return " ".join(w if len(w) <= WORD else f"{w[: WORD // 2]}…{w[-WORD // 4 :]}" for w in words)


def aside() -> contextlib.redirect_stdout[Any]:
    """Send the output of plug-ins to stderr: stdout is for results."""
    return contextlib.redirect_stdout(sys.stderr)


def answer(as_json: bool, data: Any, lines: Callable[[], Iterable[str]]) -> None:
    """Print data as JSON, or lines of words."""
    from onlinecal.report.terminal import print_json, say

    if as_json:
        print_json(data)
        return
    for line in lines():
        say(line)


def page_name(path: Path | None, *pictures: str) -> None:
    """Refuse a name that is not of a page or of these pictures, or that cannot be written."""
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.core.writing import check_new

    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm", *pictures):
        raise InvalidParameter(f"{path}: expected a name that ends in {', '.join(('.html', *pictures))}")
    check_new(path, overwrite=True)


def study_of(path: Path) -> Any:
    """The study in a results file; a note says how much of it is finished."""
    from onlinecal.study.curves import Study
    from onlinecal.study.store import Store

    with Store.open(path) as store:
        store.insist()
        study, planned, go_on = Study.of(store), len(store.plan()), store.go_on
    if len(study.cells) < planned:
        done = f"{len(study.cells)} of {planned} cells are finished"
        print(f"{done}; go on with: {go_on}", file=sys.stderr)
    return study


def people_rows_of(study: Any) -> Any:
    """Rows of the decision makers of a study, if any."""
    if not any(cell.people for cell in study.cells):
        return []
    from onlinecal.report.people import people_rows  # it also draws them, and loads what draws

    return people_rows(study)
