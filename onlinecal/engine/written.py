"""Functions of users as they are written: their text, and the meaning of the names and numbers in it."""

from __future__ import annotations

import builtins
import enum
import inspect
from types import FunctionType, ModuleType
from typing import Any

from onlinecal.core.errors import InvalidParameter


def source(function: FunctionType, called: str) -> tuple[str, int]:
    """The text of a function, and the number of its first line; they go with it where it is sent."""
    if not hasattr(function, "oc_source"):
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise InvalidParameter(f"{called}: its source cannot be read; expected it in a file") from None
        function.oc_source = "".join(lines), first  # type: ignore[attr-defined]
    return function.oc_source  # type: ignore[attr-defined]


def plain_number(value: Any, kind: type) -> bool:
    """Whether a value is a number of this kind with its arithmetic; also of an enumeration."""
    return isinstance(value, kind) and (type(value) is kind or isinstance(value, enum.Enum))


#: the meaning of a name that has none
NOWHERE = object()


def meaning(function: FunctionType, path: tuple[str, ...]) -> Any:
    """The meaning, now, of a name outside of a function, or of an attribute of such a module or class."""
    held, code = {**vars(builtins), **function.__globals__}, function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        held[name] = getattr(cell, "cell_contents", NOWHERE)
    found = held.get(path[0], NOWHERE)
    for name in path[1:]:
        found = getattr(found, name, NOWHERE) if isinstance(found, ModuleType | type) else NOWHERE
    return found
