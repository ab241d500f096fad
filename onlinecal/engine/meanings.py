"""Names in methods of plain classes: the numbers, functions and attributes that they mean."""

from __future__ import annotations

import ast
import builtins
import enum
from types import ModuleType
from typing import Any, NoReturn

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.streams import Stream

NUMBERS = "numbers, lists of fixed length, if, for and while"
RANDOM = "randomness of the run, from an argument `stream`"
#: the meaning of a name that has none
NOWHERE = object()


def is_number(value: Any, kinds: Any) -> bool:
    """Whether a value is of one of these kinds with its arithmetic; also of an enumeration."""
    return type(value) in kinds or (isinstance(value, (int, float)) and isinstance(value, enum.Enum))


class Names(ast.NodeTransformer):
    """The meanings of names in one method or function, for `refusals.Method`."""

    record: Any
    function: Any
    label: str
    private: str
    me: str | None
    locals: set[str]
    space: dict[str, Any]

    def refuse(self, node: Any, what: str = "", expected: str = NUMBERS) -> NoReturn:
        """Refuses a construct."""
        if not what:
            text = ast.unparse(node)
            line = text.partition("\n")[0][:60]
            what = f"`{line}{' …' * (line != text)}` is not compiled"
        raise InvalidParameter(f"{self.label}, line {node.lineno}: {what}; expected {expected}")

    def meaning(self, node: Any) -> Any:
        """The meaning, now, of a name outside of the function, or of an attribute of such a module or class."""
        path = ast.unparse(node).split(".")
        if path[0] in self.locals or not all(each.isidentifier() for each in path):
            return NOWHERE
        held, cells = {**vars(builtins), **self.function.__globals__}, self.function.__closure__ or ()
        for name, cell in zip(self.function.__code__.co_freevars, cells, strict=True):
            held[name] = getattr(cell, "cell_contents", NOWHERE)
        found = held.get(path[0], NOWHERE)
        if found is NOWHERE and (len(path) > 1 or isinstance(node, ast.Name)):
            what = f"`{path[0]}` is not defined yet where oc.compiled is called"
            self.refuse(node, what, "it above the class, or where a game begins")
        for name in path[1:]:
            found = getattr(found, name, NOWHERE) if isinstance(found, ModuleType | type) else NOWHERE
        return found

    def named(self, node: Any) -> Any:
        """A number of the module, by its name."""
        value = self.meaning(node)
        if not is_number(value, (bool, int, float)) or (self.record.strict and type(value) is bool):
            self.refuse(node, expected="numbers, and attributes of self")
        return self.name(ast.unparse(node), value.value if isinstance(value, enum.Enum) else value)

    def name(self, path: str, value: Any) -> Any:
        """A name of what compiled code uses."""
        name = f"oc_{len(self.space)}_{path.replace('.', '_')}"
        self.space[name] = value
        return ast.Name(name, ast.Load())

    def is_me(self, node: Any) -> bool:
        """Whether a node is an attribute of the object, by its own name."""
        mine = (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == self.me is not None
        )
        if mine and node.attr[:2] == "__" != node.attr[-2:]:
            node.attr = self.private + node.attr  # `self.__x` is another in each class
        return mine

    def attribute(self, node: Any) -> Any:
        """An attribute as the record has it; refused where it has none."""
        if not self.is_me(node):
            self.refuse(node, expected="an attribute of self")
        held = self.record.held.get(node.attr, "is not made in __init__")
        if held is Stream:
            self.refuse(node, f"the whole stream self.{node.attr}", "its numbers, uniform(i)")
        if isinstance(held, str):
            fixed = "a number, or a list of fixed length, made in __init__"
            self.refuse(node, f"self.{node.attr} {held}", RANDOM if "random" in held else fixed)
        return held

    def listed(self, node: Any, expected: str = "a list that is an attribute") -> Any:
        """A list of the object."""
        if not self.is_me(node) or self.attribute(node).length is None:
            self.refuse(node, expected=expected)
        return node
