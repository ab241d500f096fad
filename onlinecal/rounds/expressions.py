"""Expressions of a method of a plain class as those of a function of a run, or the message why not."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from types import FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.rounds.arithmetic import FUNCTIONS, OPERATORS

_NUMBERS = "numbers, lists of fixed length, if, for and while"
_KEPT = (
    ast.If, ast.While, ast.Break, ast.Continue, ast.Pass, ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.Compare,
    ast.boolop, ast.unaryop, ast.cmpop, ast.operator, ast.expr_context, ast.keyword,
)  # fmt: skip
_REFUSED = (ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.Invert)
_RANDOM = "randomness of its own in a specification, from `stream`"


def listed(made: Any) -> list[Any]:
    """Statements, of one or some or none."""
    return made if isinstance(made, list) else [] if made is None else [made]


def name_of(name: str) -> ast.Name:
    """A name that is read."""
    return ast.Name(name, ast.Load())


def call_of(name: str, *arguments: Any) -> ast.Call:
    """A call; arguments may be names."""
    return ast.Call(name_of(name), [name_of(a) if isinstance(a, str) else a for a in arguments], [])


def entry_of(array: str, at: Any, context: ast.expr_context) -> ast.Subscript:
    """An entry of an array."""
    return ast.Subscript(name_of(array), ast.Constant(at) if isinstance(at, int) else at, context)


class Expressions(ast.NodeTransformer):
    """Translates the expressions of a function, for a `Translation`."""

    def __init__(self, whole: Any, function: Any, own: bool, returns: str) -> None:
        self.whole, self.function, self.own, self.returns = whole, function, own, returns
        if not isinstance(function, FunctionType):
            raise InvalidParameter(
                f"{whole.cls.__name__}: {function!r} is no method; expected a plain function"
            )
        self.called = f"{whole.cls.__name__}." * own + function.__name__
        text, first = source(function, self.called)
        tree = ast.increment_lineno(ast.parse(textwrap.dedent(text)), first - 1).body[0]
        if not isinstance(tree, ast.FunctionDef):
            self.refuse(tree, "a function without a name", "one that begins with def")
        self.tree = tree
        arguments = [*tree.args.posonlyargs, *tree.args.args]
        self.self = arguments[0].arg if own and arguments else None
        self.round: str | None = None
        self.above: Any = tree
        self.made = 0

    def refuse(self, node: Any, what: str, expected: str = _NUMBERS) -> NoReturn:
        """Refuses a construct."""
        raise InvalidParameter(f"{self.called}, line {node.lineno}: {what}; expected {expected}")

    # ------------------------------------------------------------ what is not listed is refused

    def visit(self, node: Any) -> Any:
        if isinstance(node, _REFUSED) or not (
            isinstance(node, _KEPT) or hasattr(self, f"visit_{type(node).__name__}")
        ):
            at = node if hasattr(node, "lineno") else self.above
            self.refuse(at, f"`{ast.unparse(at).partition(chr(10))[0][:60]}` is not compiled")
        if isinstance(node, ast.While) and node.orelse:
            self.refuse(node, "a loop with else is not compiled")
        outer, self.above = self.above, node if hasattr(node, "lineno") else self.above
        made = super().visit(node)
        self.above = outer
        for each in listed(made):
            if each is not node and hasattr(node, "lineno"):
                ast.copy_location(each, node)
        return made

    def visit_Constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, int | float) or (
            isinstance(node.value, int) and abs(node.value) >= 2**63
        ):
            self.refuse(node, f"{node.value!r} is no number", "a number, such as -1 or math.nan")
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in (self.self, self.round) or node.id.startswith("oc_"):
            self.refuse(node, f"`{node.id}` by itself is not compiled", "its attributes")
        return node if self._local(node) else self._constant(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if self._of(node, self.self):
            array, kind, at = self._attribute(node)
            if array:
                self.refuse(
                    node, f"the whole list self.{node.attr}", "its entries, len() of it, or a loop over it"
                )
            return entry_of(f"oc_{kind}", at, node.ctx)
        if self._of(node, self.round):
            if node.attr not in self.whole.shown:
                known = " and ".join(f"round.{each}" for each in self.whole.shown)
                self.refuse(node, f"round.{node.attr} is not compiled", f"{known}, which its sight allows")
            return name_of(self.whole.shown[node.attr])
        return self._constant(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        array, kind, at = self._attribute(node.value)
        if not array or isinstance(node.slice, ast.Slice):
            self.refuse(
                node, f"`{ast.unparse(node)}` is not compiled", "one entry of a list that is an attribute"
            )
        return entry_of(f"oc_{kind}", self._place(at, self.visit(node.slice)), node.ctx)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        kind = type(node.op).__name__
        if kind not in OPERATORS:
            self.refuse(node, f"the operator {kind} is not compiled", "+, -, *, /, //, % or **")
        return call_of(self.whole.called(OPERATORS[kind]), self.visit(node.left), self.visit(node.right))

    def visit_Call(self, node: ast.Call) -> Any:
        said, method = ast.unparse(node.func), node.func
        if isinstance(method, ast.Attribute) and self._of(method, self.self):
            thing = inspect.getattr_static(self.whole.cls, method.attr, None)
            if not isinstance(thing, FunctionType):
                self.refuse(node, f"{said} is no plain method of the class", "one")
            return self._calls(node, self.whole.called(thing, True), "oc_run")
        if isinstance(method, ast.Attribute) and self._of(method.value, self.self):
            if method.attr not in vars(list):
                self._attribute(method.value)
            grows = method.attr in (
                "append",
                "extend",
                "insert",
                "add",
                "appendleft",
                "setdefault",
                "pop",
                "popleft",
            )
            why = (
                f"a list that grows ({method.attr}) has no fixed size"
                if grows
                else f"{said}() is not compiled"
            )
            self.refuse(node, why, "a list of fixed length, made in __init__, and its entries")
        thing = self._object(method)
        first = node.args[0] if node.args else None
        if thing is len and first is not None and self._of(first, self.self):
            return entry_of("oc_i", self._attribute(first)[2] + 1, ast.Load())
        home = getattr(thing, "__module__", None) or ""
        if "random" in f"{home} {said}":
            self.refuse(node, f"{said}() draws at random", _RANDOM)
        if isinstance(thing, FunctionType) and not home.startswith("numpy"):
            return self._calls(node, self.whole.called(thing, False))
        if thing not in FUNCTIONS or node.keywords or (thing is round and len(node.args) > 1):
            self.refuse(
                node, f"{said}() is not compiled", "functions of math, methods of the class, or your own"
            )
        return self._calls(node, self.whole.called(FUNCTIONS[thing]))

    # ------------------------------------------------------------ parts

    def _lines(self, body: list[Any]) -> list[Any]:
        return [each for line in body for each in listed(self.visit(line))] or [ast.Pass()]

    def _assign(self, target: Any, value: Any) -> list[Any]:
        if isinstance(target, ast.Name):
            if target.id in (self.self, self.round):
                self.refuse(target, f"`{target.id}` is assigned", "another name")
            return [ast.Assign([target], value)]
        self._settled(target)
        store = self.visit(target)
        if not isinstance(store, ast.Subscript):
            self.refuse(target, f"`{ast.unparse(target)}` is assigned", "an attribute of self, or a name")
        return [self._store(store, value)]

    def _settled(self, target: Any) -> None:
        """Refuses another list in place of one."""
        if isinstance(target, ast.Attribute) and self._of(target, self.self) and self._attribute(target)[0]:
            self.refuse(target, f"self.{target.attr} becomes another list", "its entries assigned one by one")

    def _store(self, store: ast.Subscript, value: Any) -> Any:
        real = isinstance(store.value, ast.Name) and store.value.id == "oc_f"
        return ast.Assign([store], value if real else call_of("oc_whole", value))

    def _temporary(self) -> str:
        self.made += 1
        return f"oc_t{self.made}"

    def _calls(self, node: ast.Call, name: str, *first: Any) -> ast.Call:
        call = call_of(name, *first, *(self.visit(each) for each in node.args))
        call.keywords = [self.visit(each) for each in node.keywords]
        return call

    def _of(self, node: Any, name: str | None) -> bool:
        """Whether this is an attribute of that name."""
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name

    def _attribute(self, node: Any) -> tuple[bool, str, int]:
        """Whether an attribute is a list, ``"i"`` or ``"f"``, and its place."""
        if not self._of(node, self.self):
            self.refuse(node, f"`{ast.unparse(node)}` is not compiled", "an attribute of self")
        kind, name = self.whole.kinds.get(node.attr, ""), node.attr
        if not kind:
            why = self.whole.kinds.get("!" + name, "is not made in __init__")
            fixed = "a number, or a list of numbers of fixed length, made in __init__"
            self.refuse(node, f"self.{name} {why}", _RANDOM if "random" in why else fixed)
        return kind.endswith("s"), kind[0], self.whole.place(name, kind)

    def _place(self, at: int, index: Any) -> ast.Call:
        start, length = (entry_of("oc_i", each, ast.Load()) for each in (at, at + 1))
        return call_of("oc_place", start, length, index)

    def _local(self, node: ast.Name) -> bool:
        return isinstance(node.ctx, ast.Store) or node.id in self.function.__code__.co_varnames

    def _constant(self, node: Any) -> Any:
        value = self._object(node)
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(value, int | float):
            self.refuse(node, f"`{ast.unparse(node)}` is not compiled", "numbers, and attributes of self")
        return self.visit_Constant(ast.copy_location(ast.Constant(value), node))

    def _object(self, node: Any) -> Any:
        """The meaning of a name outside the function, or an attribute of a module or class; else None."""
        if isinstance(node, ast.Attribute):
            home = self._object(node.value)
            return getattr(home, node.attr, None) if isinstance(home, ModuleType | type) else None
        if not isinstance(node, ast.Name) or self._local(node):
            return None
        held = inspect.getclosurevars(self.function)
        return {**vars(builtins), **self.function.__globals__, **held.nonlocals}.get(node.id)


def source(function: FunctionType, called: str) -> tuple[str, int]:
    """The text of a function, and the number of its first line; they go with it where it is sent."""
    if not hasattr(function, "oc_source"):
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise InvalidParameter(f"{called}: its source cannot be read; expected it in a file") from None
        function.oc_source = "".join(lines), first  # type: ignore[attr-defined]
    return function.oc_source  # type: ignore[attr-defined]
