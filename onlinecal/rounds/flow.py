"""Faults that the text of a method shows before it is compiled.

A name may have no value where it is used. A number may be whole on one path and real on another.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_OWN_NAMES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


def unassigned(tree: ast.FunctionDef) -> ast.Name | None:
    """The first use of a local name that has no value there on some path; None for no use. Python stops there."""
    outer = {
        name for node in ast.walk(tree) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names
    }
    flow = _Flow({node.id for node in _names(tree) if isinstance(node.ctx, ast.Store)} - outer)
    flow.lines(tree.body, {node.arg for node in ast.walk(tree.args) if isinstance(node, ast.arg)})
    return flow.found


class _Flow:
    """Goes through statements with the names that surely have a value; None where no path leads."""

    def __init__(self, local: set[str]) -> None:
        self.local = local
        self.found: ast.Name | None = None
        #: the names that are known at each `break` of the loops around a statement
        self.breaks: list[list[set[str]]] = []

    def lines(self, body: list[ast.stmt], known: set[str] | None) -> set[str] | None:
        for line in body:
            known = None if known is None else self.line(line, known)
        return known

    def line(self, node: ast.stmt, known: set[str]) -> set[str] | None:
        if isinstance(node, ast.If):
            self.reads(node.test, known)
            return _both(self.lines(node.body, known), self.lines(node.orelse, known))
        if isinstance(node, ast.While):
            self.reads(node.test, known)
            forever = isinstance(node.test, ast.Constant) and node.test.value
            return self.loop(node, known, None if forever else known)
        if isinstance(node, ast.For):  # over nothing, maybe
            self.reads(node.iter, known)
            return self.loop(node, known | _stored(node.target), known)
        if isinstance(node, ast.Break):
            self.breaks[-1].append(known)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            self.reads(node.value, known)
        self.reads(node, known | _stored(node))
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.used(node.target, known)
        ends = isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue)
        return (
            None
            if ends
            else known
            if isinstance(node, ast.AnnAssign) and not node.value
            else known | _stored(node)
        )

    def loop(self, node: ast.While | ast.For, inside: set[str], after: set[str] | None) -> set[str] | None:
        self.breaks.append([])
        self.lines(node.body, inside)
        left, end = self.breaks.pop(), self.lines(node.orelse, after)
        for known in left:
            end = _both(end, known)
        return end

    def reads(self, node: ast.AST, known: set[str]) -> None:
        for name in _names(node):
            if isinstance(name.ctx, ast.Load):
                self.used(name, known)

    def used(self, name: ast.Name, known: set[str]) -> None:
        if self.found is None and name.id in self.local - known:
            self.found = name


def _both(one: set[str] | None, two: set[str] | None) -> set[str] | None:
    """The names that are known on both of two paths."""
    return two if one is None else one if two is None else one & two


def _names(node: ast.AST) -> Iterator[ast.Name]:
    """The names in a construct, but for those of functions within it."""
    if isinstance(node, ast.Name):
        yield node
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, _OWN_NAMES):
            yield from _names(part)


def _stored(node: ast.AST) -> set[str]:
    return {name.id for name in _names(node) if isinstance(name.ctx, ast.Store)}


class Size(NamedTuple):
    """How large a whole number may be, −1 for none, and whether the number may be a real one."""

    whole: float = -1.0
    real: bool = False

    @property
    def large(self) -> bool:
        """Whether it may be a whole number that no real one is equal to."""
        return self.whole > 2**53

    @property
    def mixed(self) -> bool:
        """Whether compiled code may round it where Python does not."""
        return self.large and self.real

    def __or__(self, other: Any) -> Size:
        return Size(max(self.whole, other.whole), self.real or other.real)


REAL, TURNS, ANY_WHOLE = Size(real=True), Size(2.0**40), Size(math.inf)


def of_number(value: float) -> Size:
    """The size of a number."""
    return REAL if isinstance(value, float) else Size(abs(value))


class Sizes:
    """The sizes of the local names of a method, and of expressions. `leaf` tells those of all else."""

    def __init__(self, tree: ast.FunctionDef, leaf: Callable[[Any], Size], names: dict[str, Size]) -> None:
        self.leaf, self.names, lines = leaf, dict(names), list(_values(tree))
        for turn in range(1000):
            before = dict(self.names)
            for name, value in lines:
                size = value if isinstance(value, Size) else self.of(value)
                known = self.names.get(name, Size())
                grows = turn > 3 and size.whole > known.whole  # in each turn of a loop
                self.names[name] = known | (Size(math.inf, size.real) if grows else size)
            if self.names == before:
                break

    def of(self, node: Any) -> Size:
        """The size of an expression."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return of_number(node.value)
        if isinstance(node, ast.Name) and node.id in self.names:
            return self.names[node.id]
        if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return Size(1.0)
        if isinstance(node, ast.UnaryOp):
            return self.of(node.operand)
        if isinstance(node, ast.BinOp):
            return _result(type(node.op).__name__, self.of(node.left), self.of(node.right), node.right)
        parts = choices(node)
        size = Size() if parts else self.leaf(node)
        for part in parts:
            size |= self.of(part)
        return size


def choices(node: Any) -> list[Any]:
    """The expressions of which one is the value of this one."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("min", "max", "abs")
    ):
        return node.args
    return node.values if isinstance(node, ast.BoolOp) else []


def _result(kind: str, one: Size, two: Size, right: Any) -> Size:
    both, real = one.whole >= 0 <= two.whole, one.real or two.real
    if kind == "Div":
        return REAL
    if kind == "Pow" and isinstance(right, ast.UnaryOp):  # -x may be positive
        return Size(math.inf if both else -1.0, True)
    whole = {
        **dict.fromkeys(("Add", "Sub", "BitAnd", "BitOr", "BitXor"), one.whole + two.whole),
        "FloorDiv": one.whole,
        "Mod": two.whole,
    }
    return Size(
        whole.get(kind, max(one.whole, 1.0) * max(two.whole, 1.0) if kind != "Pow" else math.inf)
        if both
        else -1.0,
        real,
    )


def _values(tree: ast.FunctionDef) -> Iterator[tuple[str, Any]]:
    """The local names that get a value, and the expression; a size for the variable of a loop."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            now = ast.Name(node.target.id, ast.Load())
            yield node.target.id, ast.BinOp(now, node.op, node.value)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                yield from ((at.id, value) for at, value in pairs if isinstance(at, ast.Name))
        elif isinstance(node, ast.For):
            *places, last = getattr(node.target, "elts", [node.target])
            yield from ((at.id, TURNS) for at in places if isinstance(at, ast.Name))
            over = (
                node.iter.args[0]
                if places and isinstance(node.iter, ast.Call) and node.iter.args
                else node.iter
            )
            if isinstance(last, ast.Name):
                yield (
                    last.id,
                    TURNS if isinstance(over, ast.Call) else ast.Subscript(over, ast.Constant(0), ast.Load()),
                )
