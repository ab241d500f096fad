"""What the text of a method shows before it is compiled: names that may have no value where they are used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_OWN_NAMES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


def unassigned(tree: ast.FunctionDef) -> ast.Name | None:
    """The first use of a local name that has no value there on some path, by which Python stops; None for no use."""
    outer = {
        name for node in ast.walk(tree) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names
    }
    flow = _Flow({node.id for node in _names(tree) if isinstance(node.ctx, ast.Store)} - outer)
    flow.lines(tree.body, {node.arg for node in ast.walk(tree.args) if isinstance(node, ast.arg)})
    return flow.found


class _Flow:
    """Goes through statements with the names that surely have a value; None where no path leads."""

    def __init__(self, local: set[str]) -> None:
        self.local, self.found = local, None
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
