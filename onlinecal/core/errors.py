"""The errors that onlinecal raises on purpose; everything else is a bug."""

import difflib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

#: the errors themselves; the rest is for code that raises them
__all__ = [
    "CellError", "InvalidData", "InvalidForecast", "InvalidParameter", "MissingParameter", "OnlinecalError",
    "ScenarioError", "SightError", "StoreError", "UnknownName", "UnknownParameter", "WorkerError",
]  # fmt: skip


class OnlinecalError(Exception):
    """Base of every error that a user can mend."""

    lines: tuple[str, ...] = ()

    def _render_traceback_(self) -> list[str]:
        """The text in a notebook: the user's own lines, and the message."""
        return [*dict.fromkeys((*user_lines(self), *self.lines)), f"{type(self).__name__}: {self}"]


class InvalidData(OnlinecalError, ValueError):
    """Samples, counts or a file that are not forecasts and outcomes."""


class InvalidParameter(OnlinecalError, ValueError):
    """A parameter of a strategy, measure, task or game that is out of range."""


class InvalidForecast(OnlinecalError, ValueError):
    """A player stated something that is not a law on [0, 1]; the game stops in that round."""


class SightError(OnlinecalError):
    """A player asked for what it may not know: more than its `Sight`, or an open outcome."""


class UnknownName(OnlinecalError, LookupError):
    """No strategy, measure, task or key of that name."""

    @classmethod
    def of(cls, kind: str, name: object, known: Iterable[str], see: str = "") -> "UnknownName":
        """The error for `name`, with the nearest of the `known` names if there is one (see `suggestion`)."""
        said = suggestion(str(name), known, see)
        if said.startswith("; see") and kind not in ("measure", "task"):
            said += ", or name your own as module:Class"
        return cls(f"unknown {kind} {name!r}{said}")


class UnknownParameter(InvalidParameter, TypeError):
    """No parameter of that name; as of any call in Python it is a TypeError, too."""

    @classmethod
    def of(cls, what: str, name: str, known: Iterable[str], kind: str = "parameter") -> "UnknownParameter":
        """The error for a `name` that is none of the `known` ones of `what`."""
        return cls(f"{what} has no {kind} {name!r}{suggestion(name, known)}")


class MissingParameter(InvalidParameter, TypeError):
    """A parameter that has no default is not given."""


class ScenarioError(OnlinecalError, ValueError):
    """A scenario file that cannot be played."""


class StoreError(OnlinecalError):
    """A results file, or a file of forecasts that memory has no room for, that cannot be read or written."""


class WorkerError(OnlinecalError):
    """Workers, or the scheduler of a cluster, that cannot be had, are not fit, or are gone."""


class CellError(OnlinecalError):
    """A cell of a study that could not be played, for an unforeseen reason."""


#: names in papers, without capitals and signs, but for a star → those here
ALSO = {"smce": "smoothce", "smece": "smoothece", "ucal": "ucalibration", "k29star": "defensiveforecasting"}

#: names in other libraries, in the same form → those here, which an error tells
ELSEWHERE = {"sigmoid": "platt", "plattscaling": "platt", "plattrefitted": "platt"}


def meant(kind: str, name: str, known: Iterable[str], see: str = "") -> str:
    """The one of the `known` names that is meant; `UnknownName` where there is no such name, or several.

    Capitals, spaces, hyphens and underscores make no difference, so that labels are names; `ALSO` has other names.

    >>> meant("forecaster", "CDL minimiser", ["cdl_minimiser"]), meant("measure", "smCE", ["ece", "smooth_ce"])
    ('cdl_minimiser', 'smooth_ce')
    """
    names = list(dict.fromkeys(known))
    if name in names:
        return name
    wanted = _bare(name)
    same = [each for each in names if isinstance(name, str) and _bare(each) in (wanted, ALSO.get(wanted))]
    if len(same) != 1:
        raise UnknownName.of(kind, name, names, see)
    return same[0]


def _bare(name: object) -> str:
    return re.sub(r"[\s_-]", "", str(name).lower().replace("*", "star"))


#: the command that lists all that can be named in a scenario
LIST = "onlinecal list"


def suggestion(name: str, known: Iterable[str], see: str = "") -> str:
    """`"; did you mean 'x'?"`, or the list of what is known where nothing comes near.

    Where that is long, and a command shows it, `see` that.

    >>> suggestion("Smoth CE", ["ece", "smooth_ce"])
    "; did you mean 'smooth_ce'?"
    >>> suggestion("zebra", ["ece", "cdl"])
    '; known: cdl, ece'
    """
    names = sorted(known)
    if not names:
        return "; there are none"
    if said := nearest(name, names):
        return said
    return f"; see `{see}`" if see and len(names) > 12 else f"; known: {', '.join(names)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """`"; did you mean 'x'?"`, or "" where none of the known names comes near."""
    bare = {_bare(each): each for each in known}
    wanted = _bare(name)
    near = difflib.get_close_matches(ELSEWHERE.get(wanted, wanted), bare, n=1, cutoff=0.6)
    return f"; did you mean {bare[near[0]]!r}?" if near else ""


def lacking(what: str, library: str, extra: str, error: ImportError) -> str:
    """The words on an ability that needs a library, and the extra that installs it."""
    why = f"({in_one_line(error, str)})"
    return f"{what} needs {library}, which cannot be imported {why}; install it: pip install 'onlinecal[{extra}]'"


def failure(error: BaseException) -> str:
    """An error of a user's code in one line, with its place there: ``ValueError: boom (own.py:12)``."""
    # The words of a syntax error have a place too, in another form.
    said = in_one_line(error.msg if isinstance(error, SyntaxError) else error, str)
    return f"{type(error).__name__}{said and ': '}{said}{place(error)}"


def user_lines(error: BaseException) -> list[str]:
    """The lines of users that an error went through, and those of what caused it, the outermost first."""
    import traceback

    found: dict[tuple[str, int | None], str] = {}
    for each in behind(error):
        for frame in _outside(traceback.extract_tb(each.__traceback__), installed=False):
            where = f"{_short(frame.filename)}, line {frame.lineno}, in {frame.name}"
            found[frame.filename, frame.lineno] = f"  {where}\n    {frame.line}"
    return list(found.values())


def behind(error: BaseException | None, handled: bool = False) -> list[BaseException]:
    """An error and its causes, each once; `handled`: where it has none, the error that was being handled."""
    found: list[BaseException] = []
    while error is not None and not any(error is each for each in found):
        found.append(error)
        error = error.__cause__ or (error.__context__ if handled else None)
    return found


def place(error: BaseException) -> str:
    """The innermost place of an error outside of onlinecal, and of libraries if there is one: `` (own.py:12)``.

    Of a library the folder is not said.
    """
    import traceback  # only for errors, and help must not wait for it

    frames = list(traceback.extract_tb(error.__traceback__))
    if isinstance(error, SyntaxError) and error.filename:
        frames.append(traceback.FrameSummary(error.filename, error.lineno, "", lookup_line=False))
    own = _outside(frames, installed=False)
    frames = own or _outside(frames, installed=True)
    if not frames:
        return ""
    file = frames[-1].filename
    return f" ({_short(file) if own else Path(file).name}:{frames[-1].lineno})"


def _outside(frames: Iterable[Any], installed: bool) -> list[Any]:
    """The frames outside of onlinecal and of what imports modules; with `installed`, those in libraries too."""
    import importlib
    import sysconfig

    folders = [Path(__file__).parents[1], Path(importlib.__file__).parent]
    if not installed:
        folders += map(Path, sysconfig.get_paths().values())
    return [
        frame
        for frame in frames
        if not frame.filename.startswith("<frozen")
        and not any(Path(frame.filename).is_relative_to(folder) for folder in folders)
    ]


#: characters of an object in an error; an array in words may have millions
LONGEST = 1000


def in_one_line(value: Any, words: Callable[[Any], str] = repr) -> str:
    """An object of a user in words that can be printed, also where its own fail."""
    try:
        text = words(value)
    except Exception:
        text = f"({type(value).__name__} without words)"
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} …"
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
