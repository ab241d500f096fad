"""Reads the methods of plain classes, and refuses with its line what would play in another way compiled.

The text is compiled as it is written. Only calls, powers, stated laws, and values of whole attributes are replaced, by
names that begin with a dot, which no name of a user does.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections import ChainMap
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.streams import Stream
from onlinecal.engine.replaced import CALLS, REAL, atom, forecast, power, uniform, whole
from onlinecal.engine.run import note

#: the syntax that is compiled
COMPILED = (
    ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Break, ast.Continue, ast.Pass, ast.Return,
    ast.Raise, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Call, ast.keyword, ast.IfExp, ast.BoolOp,
    ast.boolop, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt,
    ast.GtE, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr,
    ast.BitXor, ast.Load, ast.Store,
)  # fmt: skip
NUMBERS = (
    "numbers, entries of lists of self, arithmetic, if, for, while, functions of math or your own, methods"
)
MADE = (
    "a number, or a list of its own such as list(…), made in __init__, or numbers from an argument `stream`"
)
#: the meaning of a name that has none
NOWHERE = object()


class Field(NamedTuple):
    """An attribute of a record: np.int64 or np.float64, and the length of a list."""

    kind: Any
    length: int | None


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python; a whole one has 64 bits."""
    return type(value) in (bool, float) or (type(value) is int and -(2**63) <= value < 2**63)


def source(function: Any, label: str) -> tuple[str, int]:
    """The text of a function, and the number of its first line; they go with it where it is sent."""
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        raise InvalidParameter(f"{label} is no plain function; expected one by itself")
    code, known = function.__code__, getattr(function, "oc_source", None)
    if known is None or known[2] is not code:  # as where a notebook has put new code into it
        try:
            lines, first = inspect.getsourcelines(function)
            file, text = "".join(inspect.findsource(function)[0]), textwrap.dedent("".join(lines))
            codes = [compile(file, "", "exec", code.co_flags & annotations.compiler_flag, dont_inherit=True)]
            ast.parse(text)  # a lambda may begin within a line
        except (OSError, TypeError, SyntaxError):
            raise InvalidParameter(f"{label}: its source cannot be read; expected it in a file") from None
        for each in codes:
            codes += [inner for inner in each.co_consts if isinstance(inner, CodeType)]
        if code not in codes:
            what = f"{label}, line {first}: its file is another than when it was imported"
            raise InvalidParameter(f"{what}; expected it imported again")
        known = text, first, code
        function.oc_source = known  # type: ignore[attr-defined]
    return known[:2]


def outside(function: Any, first: str, *rest: str) -> Any:
    """The meaning, now, of a name outside of a function, or of a name in such a module."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    try:
        known = ChainMap(function.__globals__, vars(builtins))
        found = cells[first].cell_contents if first in cells else known[first]
        for name in rest:
            found = vars(found)[name] if isinstance(found, ModuleType) else None
    except (KeyError, ValueError):  # no such name, or a cell that is empty yet
        return NOWHERE
    return found


def names(node: Any, of: Any) -> set[str]:
    """The names that get a value (`ast.Store`), or that are used (`ast.Load`)."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, of)}


class Method(ast.NodeTransformer):
    """A method of the class (`own`), or a function, that is read for a record under a new name.

    `step` is what a game takes from it: a "law", "q", or nothing as it is "told".
    """

    def __init__(self, record: Any, function: Any, name: str, own: bool, step: str) -> None:
        self.record, self.function, self.step = record, function, step
        self.label = f"{record.cls.__name__}." * own + getattr(function, "__name__", repr(function))
        text, first = source(function, self.label)
        tree: Any = ast.increment_lineno(ast.parse(text), first - 1).body[0]
        code, self.defaults = (record.look(getattr, function, each) for each in ("__code__", "__defaults__"))
        stars = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        stars = stars or code.co_kwonlyargcount or code.co_posonlyargcount
        plain = isinstance(tree, ast.FunctionDef) and not stars and not (step and self.defaults)
        if not plain or not all(map(is_number, self.defaults or ())):
            expected = "def, without *, ** and /, and numbers as defaults, but none where a game calls it"
            self.refuse(tree, "no plain function", expected)
        given = list(code.co_varnames[: code.co_argcount])
        self.locals, self.me = {*code.co_varnames}, given[0] if own and given else None
        ends = {each.value is not None for each in ast.walk(tree) if isinstance(each, ast.Return)}
        ends |= {False} if self.settled(tree.body, {*given}) is not None else set()
        if len(ends) > 1 and step != "told":
            self.refuse(tree, "it returns a number on some paths only", "a return at its end")
        before = 3 if step == "told" else 1
        self.round = given[before] if step and len(given) > before else ""
        given = ["oc_run"] * own + given + ["oc_round"] * (bool(step) and not self.round)
        tree.args = ast.arguments([], [ast.arg(each) for each in given], None, [], [], None, [])
        tree.body, tree.returns, tree.decorator_list = [self.visit(each) for each in tree.body], None, []
        tree.name = name
        self.tree: Any = ast.fix_missing_locations(ast.Module([tree], []))

    def refuse(self, node: Any, what: str = "", expected: str = NUMBERS) -> NoReturn:
        """Refuses a construct."""
        line, *more = ast.unparse(node).splitlines()
        what = what or f"`{line[:60]}{' …' * bool(more)}` is not compiled"
        raise InvalidParameter(f"{self.label}, line {node.lineno}: {what}; expected {expected}")

    def settled(self, body: list[Any], known: set[str]) -> set[str] | None:
        """The names that have a value behind statements, None where these leave; refuses one that may have none."""
        for node in body:
            head = getattr(node, "test", getattr(node, "iter", node))
            of = (ast.Load, ast.Store) if isinstance(node, ast.AugAssign) else ast.Load
            for name in sorted(names(head, of) & self.locals - known):
                expected = "one on every path, such as before the `if` or loop"
                self.refuse(node, f"`{name}` may have no value here", expected)
            if isinstance(node, ast.If):
                ways = [self.settled(part, known) for part in (node.body, node.orelse)]
                going_on = [each for each in ways if each is not None]
                if not going_on:
                    return None
                known = set.intersection(*going_on)
            elif isinstance(node, ast.For | ast.While):
                self.settled(node.body, known | names(getattr(node, "target", head), ast.Store))
                self.settled(node.orelse, known)
            elif isinstance(node, ast.Break | ast.Continue | ast.Return | ast.Raise):
                return None
            else:
                known = known | names(node, ast.Store)
        return known

    # ------------------------------------------------------------ names

    def meaning(self, node: Any) -> Any:
        """The meaning, now, of a name outside of the function, or of a name in such a module; else None."""
        path = ast.unparse(node).split(".")
        if path[0] in self.locals or not all(each.isidentifier() for each in path):
            return None
        if any(each[:2] == "__" != each[-2:] for each in path):
            self.refuse(node, f"`{'.'.join(path)}` is another name within a class", "one without `__`")
        found = self.record.look(outside, self.function, *path)
        if found is NOWHERE:
            self.refuse(node, f"`{'.'.join(path)}` is not defined yet", "it before a game begins")
        return found

    def number(self, node: Any) -> Any:
        """A number of a module."""
        value = self.meaning(node)
        return ast.Constant(value) if is_number(value) else self.refuse(node)

    def held(self, node: Any) -> Any:
        """The record's field of a node such as `self.x`; None for a node of another kind."""
        of = node.value if isinstance(node, ast.Attribute) else None
        if not isinstance(of, ast.Name) or of.id != self.me or self.me is None:
            return None
        held = self.record.held.get(node.attr, "is not made in __init__")
        return self.refuse(node, f"self.{node.attr} {held}", MADE) if isinstance(held, str) else held

    def entries(self, node: Any) -> Any:
        """A list of the object, where it stands for its entries."""
        held = self.held(node)
        return node if isinstance(held, Field) and held.length is not None else self.refuse(node)

    def visit_Name(self, node: Any) -> Any:
        return node if node.id in self.locals - {self.me, self.round} else self.number(node)

    def visit_Attribute(self, node: Any) -> Any:
        held, shown = self.held(node), [f"{self.round}.{each}" for each in self.record.shown]
        alone = isinstance(held, Field) and held.length is None
        return node if alone or ast.unparse(node) in shown else self.number(node)

    def visit_Subscript(self, node: Any) -> Any:
        kinds, kind = self.record.contexts, getattr(node.slice, "value", None)
        if ast.unparse(node.value) == f"{self.round}.context" and kind in kinds:
            run = ast.Name("oc_run", ast.Load())
            return ast.Subscript(self.call(note, run), ast.Constant(kinds.index(kind)), ast.Load())
        node.value, node.slice = self.entries(node.value), self.visit(node.slice)
        return node

    # ------------------------------------------------------------ statements

    def visit(self, node: Any) -> Any:
        """The node that is compiled in place of this one."""
        for each in (node, getattr(node, "op", node), *getattr(node, "ops", ())):
            if not isinstance(each, COMPILED):
                self.refuse(node)
        return super().visit(node)

    def visit_Expr(self, node: Any) -> Any:
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Raise(self, node: Any) -> Any:
        return ast.Raise(self.record.put("ValueError", ValueError))

    def visit_For(self, node: Any) -> Any:
        if not all(isinstance(each, ast.Name) for each in getattr(node.target, "elts", [node.target])):
            self.refuse(node)
        node.iter = (self.visit if isinstance(node.iter, ast.Call) else self.entries)(node.iter)
        node.body, node.orelse = ([self.visit(each) for each in part] for part in (node.body, node.orelse))
        return node

    def visit_Assign(self, node: Any) -> Any:
        (target, *more), value = node.targets, node.value
        if more:
            self.refuse(node)
        if isinstance(target, ast.Tuple) and len(target.elts) == len(getattr(value, "elts", ())):
            pairs = zip(target.elts, value.elts, strict=True)
            node.value = ast.Tuple([self.stored(*each) for each in pairs], ast.Load())
        else:
            node.value = self.stored(target, value)
        return node

    def visit_AugAssign(self, node: Any) -> Any:
        if isinstance(node.op, ast.Pow):
            self.refuse(node)
        node.value = self.stored(node.target, node.value, isinstance(node.op, ast.Div))
        return node

    def stored(self, target: Any, value: Any, divides: bool = False) -> Any:
        """The value that is stored in a target; it `divides` what is there."""
        value, place = self.visit(value), target.value if isinstance(target, ast.Subscript) else target
        self.visit(target)
        if isinstance(target, ast.Name):
            return value
        field = self.held(place) or self.refuse(target)
        if divides and field.kind is np.int64:
            self.refuse(target, REAL, "0.0 in place of 0")
        return self.call(whole, value) if field.kind is np.int64 else value

    def visit_Return(self, node: Any) -> Any:
        if node.value is not None:
            node.value = self.law(node.value) if self.step == "law" else self.visit(node.value)
        return node

    def law(self, value: Any) -> Any:
        """The expression that writes a law, and is its size."""
        atoms: list[Any] = [(value, ast.Constant(1.0))]
        if isinstance(value, ast.Dict):
            atoms = list(zip(value.keys, value.values, strict=True))
            if None in value.keys or not atoms:
                self.refuse(value)
        size: Any = ast.Constant(0)
        for key, weight in atoms:
            stated = self.visit(key)
            if isinstance(value, ast.Dict) and type(getattr(key, "value", None)) not in (int, float):
                stated = self.call(forecast, stated)
            size = self.call(atom, ast.Name("oc_run", ast.Load()), size, stated, self.visit(weight))
        self.record.atoms = max(self.record.atoms, len(atoms))
        return size

    # ------------------------------------------------------------ expressions

    def call(self, function: Any, *given: Any) -> Any:
        """The call of a function of compiled code."""
        return ast.Call(self.record.put(function.__name__, function), list(given), [])

    def visit_Constant(self, node: Any) -> Any:
        return node if is_number(node.value) else self.refuse(node)

    def visit_BinOp(self, node: Any) -> Any:
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        return self.call(power, node.left, node.right) if isinstance(node.op, ast.Pow) else node

    def visit_Call(self, node: Any) -> Any:
        function, record, run = node.func, self.record, ast.Name("oc_run", ast.Load())
        thing, of = self.meaning(function), getattr(function, "value", None)
        visit = self.entries if thing is len or thing is enumerate else self.visit
        node.args = [visit(each) for each in node.args]
        for each in node.keywords:
            each.value = self.visit(each.value)
        own = isinstance(of, ast.Name) and of.id == self.me
        if own and function.attr not in record.held:
            thing = record.look(inspect.getattr_static, record.cls, function.attr, None)
        elif self.held(of) is Stream and function.attr == "uniform":
            return self.call(uniform, run, *node.args)
        if isinstance(thing, FunctionType):
            node.func = record.read(thing, own) or self.refuse(
                node, "it is called by what it calls", "a loop"
            )
            node.args = [run, ast.Name(str(self.me), ast.Load())] * own + node.args
            return node
        known = isinstance(thing, BuiltinFunctionType | type) and not node.keywords and CALLS.get(thing)
        node.func = record.put(thing.__name__, known) if known else self.refuse(node)
        return node
