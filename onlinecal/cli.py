"""The command line: `onlinecal run`, `compare`, `plot`, `report` and the others of `onlinecal.commands`."""

import gc
import re
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperCommand

from onlinecal import __version__
from onlinecal.commands import forecasts, games, knowing, results
from onlinecal.commands.base import flag, guarded, with_metavars
from onlinecal.core import words

#: in the order in which help lists them
COMMANDS: dict[str, Callable[..., None]] = {
    "new": results.new, "run": results.run, "status": results.status, "compare": results.compare,
    "plot": results.plot, "report": results.report, "measure": forecasts.measure,
    "measure-again": results.measure_again, "export": results.export, "merge": results.merge,
    "recalibrate": forecasts.recalibrate, "watch": forecasts.watch, "list": knowing.list_, "show": knowing.show,
    "check": knowing.check, "solve": games.solve, "exploit": games.exploit, "search": games.search,
}  # fmt: skip

#: options and arguments that a command does not take; typer has no public name for it
UsageError: Any = typer.BadParameter.__bases__[0]


#: of a value of an option that the library refuses, in its own words
EXPECTED = re.compile(
    r"Input should be (?:a valid (?P<kind>\w+)|(?P<side>greater|less) than or equal to (?P<end>\S+)|(?P<other>.*))"
)


def _words(found: re.Match[str]) -> str:
    """The expectation, in our words."""
    if found["kind"]:
        return f"{'an' if found['kind'] == 'integer' else 'a'} {found['kind']}"
    if found["side"]:
        return f"{'at least' if found['side'] == 'greater' else 'at most'} {found['end']}"
    return found["other"]


def _refusal(error: Any, typed: Sequence[str]) -> str:
    """One line that names the mistake and the command for help."""
    said: str = error.format_message().rstrip(".")
    if (words := EXPECTED.search(said)) is not None:
        option = said.partition("'")[2].partition("'")[0]
        values = [value for word, value in pairwise(typed) if word == option]
        values += [word.partition("=")[2] for word in typed if word.startswith(f"{option}=")]
        said = f"{option}{f' = {values[-1]}' if values else ''}; expected {_words(words)}"
    command = f"onlinecal {error.ctx.info_name}" if error.ctx.parent else "onlinecal"
    return f"error: {said[0].lower()}{said[1:]}; `{command} -h` lists what can be typed"


app = typer.Typer(
    name="onlinecal", help="Simulator and measuring instrument for online calibration.",
    no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


#: options that may stand without a value
ALONE = ("--classes",)
#: of a command, options of before, and what is typed in their place
PICTURES = "exponents pareto delays people reliability regret witness tasks runs slopes"
RENAMED = {
    "plot": {f"--{kind}": ["--kind", kind] for kind in PICTURES.split()},
    "measure": {"--all": ["--measure", "all"]},
}


class Command(TyperCommand):
    """A command that names its arguments in help without their types of Python."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                vars(parameter)["display_type_rich"] = lambda ctx: ""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """As typer, but that an option of one value is refused where it is given twice."""
        args = [
            f"{word}=" if word in ALONE and after[:1] in ("", "-") else word
            for word, after in pairwise([*args, ""])
        ]
        renamed = RENAMED.get(ctx.info_name, {})
        for word in renamed.keys() & set(args):
            print(f"{word} is now {' '.join(renamed[word])}", file=sys.stderr)
        args = [each for word in args for each in renamed.get(word, [word])]
        # The library takes the last of two values.
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for parameter in given:
            many = parameter.multiple or getattr(parameter, "is_flag", False)
            if given.count(parameter) > 1 and not many:
                raise UsageError(f"option {parameter.opts[0]} is given twice; expected it once", ctx)
        return super().parse_args(ctx, args)


for name, function in COMMANDS.items():
    app.command(name, cls=Command)(guarded(with_metavars(function)))


def _print_version(asked: bool) -> None:
    if asked:
        print(f"onlinecal {__version__}")
        raise typer.Exit


@app.callback()
def _of_all(
    version: bool = flag("Show the version and exit.", "--version", callback=_print_version, is_eager=True),
) -> None:
    pass


def main() -> None:
    """Run the console script."""
    # Many cells are many objects without garbage, which need no search.
    gc.set_threshold(20_000, 20, 20)
    words.use()  # tables hold ×, ± and whatever labels hold
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except UsageError as error:
        if not sys.argv[1:]:
            error.show()  # the help
        else:
            print(_refusal(error, sys.argv), file=sys.stderr)
        sys.exit(2)
