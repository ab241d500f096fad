"""Reads the methods of plain classes, and refuses with its line all that would play in another way compiled.

The rest is compiled as it is written. Exceptions are calls, powers, stated laws, and values of whole attributes.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.streams import Stream
from onlinecal.engine.meanings import RANDOM, Names, is_number
from onlinecal.engine.replaced import CALLS, OPERATORS, TAKES, TRUTHS, atom, fit, number, power
from onlinecal.engine.run import note


def source(function: Any, label: str) -> tuple[str, int]:
    """The text of a function, and the number of its first line; they go with it where it is sent."""
    if not hasattr(function, "oc_source"):
        if hasattr(function, "__wrapped__"):
            raise InvalidParameter(f"{label} is wrapped by another function; expected it by itself")
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise InvalidParameter(f"{label}: its source cannot be read; expected it in a file") from None
        function.oc_source = "".join(lines), first
    text, first = function.oc_source
    return text, first


def both(one: set[str] | None, two: set[str] | None) -> set[str] | None:
    """The names that are known on both of two paths; None is one that ends before."""
    return two if one is None else one if two is None else one & two


class Method(Names):
    """A method (`own`) or function that is read for a record. `step` says what a step returns: law, q or code."""

    def __init__(self, record: Any, function: Any, own: bool, step: str = "", told: int = 0) -> None:
        self.record, self.function, self.own, self.step = record, function, own, step
        self.label = f"{record.cls.__name__}." * own + getattr(function, "__name__", repr(function))
        if not isinstance(function, FunctionType):
            raise InvalidParameter(f"{self.label} is no method; expected a plain function")
        text, first = source(function, self.label)
        tree: Any = ast.increment_lineno(ast.parse(textwrap.dedent(text)), first - 1).body[0]
        given: Any = getattr(tree, "args", None)
        if (
            not isinstance(tree, ast.FunctionDef)
            or given.vararg
            or given.kwarg
            or given.kwonlyargs
            or tree.decorator_list
        ):
            self.refuse(tree, "no plain function", "one that begins with def, without decorators, * and **")
        for node in ast.walk(tree):
            name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
            if name.startswith("oc_"):  # as names of compiled code do
                self.refuse(tree, f"the name `{name}`", "one that does not begin with oc_")
        every = given.posonlyargs + given.args
        names, defaults = [each.arg for each in every], function.__defaults__ or ()
        self.known: set[str] | None = set(names)
        self.locals = self.known | {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self.me, self.round = (
            names[0] if own and names else None,
            names[1 + told] if step and len(names) > 1 + told else None,
        )
        if not all(is_number(each, (int, float)) for each in defaults) or (step and defaults):
            self.refuse(tree, f"defaults {defaults!r}", "numbers, and none of a method that a game calls")
        home = function.__qualname__.split(".")[:-1]
        self.private = f"_{home[-1].lstrip('_')}" if home else ""
        self.space: dict[str, Any] = {
            "oc_power": power,
            "oc_fit": fit,
            "oc_atom": atom,
            "oc_number": number,
            "oc_note": note,
            "oc_real": CALLS[float],
        }
        self.returns, self.tested = set[bool](), False
        #: the names that are known at each `break` of the loops around
        self.breaks = list[list[set[str] | None]]()
        body = self.block(tree.body)
        if self.known is not None and step in ("law", "q"):
            body += ast.parse("raise ValueError").body
        if self.known is not None:
            self.returns.add(False)
        if not step and len(self.returns) > 1:
            self.refuse(tree, "it returns a number on one path only", "one on each")
        more = ["oc_run"] * own, ["oc_round"] * bool(step and not self.round)
        given.posonlyargs, given.defaults = [], [ast.Constant(each) for each in defaults]
        given.args = [ast.arg(each) for each in (*more[0], *names, *more[1])]
        tree.body, tree.returns = body, None
        self.tree = ast.fix_missing_locations(ast.Module([tree], []))

    def visit(self, node: Any) -> Any:
        """The node that is compiled in place of this one."""
        rule, tested, self.tested = getattr(self, f"visit_{type(node).__name__}", None), self.tested, False
        if rule is None:
            self.refuse(node)
        true = isinstance(node, ast.Compare) or isinstance(getattr(node, "op", None), ast.Not)
        true = true or isinstance(getattr(node, "value", None), bool)
        if isinstance(node, ast.Call):
            true = self.meaning(node.func) in TRUTHS
        if true and not tested and self.record.strict:
            what = "a number is a comparison, which NumPy adds and indexes in another way than Python"
            self.refuse(node, what, "int(…) around it")
        self.here = tested
        return rule(node)

    def test(self, node: Any) -> Any:
        """The same of what is only tested."""
        self.tested = True
        return self.visit(node)

    # ------------------------------------------------------------ statements

    def block(self, body: list[Any]) -> list[Any]:
        """Statements up to one that leaves them."""
        made = list[Any]()
        for node in body:
            if self.known is not None:
                each = self.visit(node)
                made += each if isinstance(each, list) else [each]
        return made

    def visit_Pass(self, node: Any) -> Any:
        return node

    def visit_Expr(self, node: Any) -> Any:
        if isinstance(node.value, ast.Constant):
            return ast.Pass()
        node.value = self.test(node.value)
        return node

    def visit_Assert(self, node: Any) -> Any:
        return ast.Assert(self.test(node.test))

    def visit_Raise(self, node: Any) -> Any:
        self.known = None
        return ast.parse("raise ValueError").body

    def visit_Break(self, node: Any) -> Any:
        self.breaks[-1].append(self.known)
        self.known = None
        return node

    def visit_Continue(self, node: Any) -> Any:
        self.known = None
        return node

    def visit_If(self, node: Any) -> Any:
        node.test, before = self.test(node.test), self.known
        node.body, one, self.known = self.block(node.body), self.known, before
        node.orelse = self.block(node.orelse)
        self.known = both(one, self.known)
        return node

    def visit_While(self, node: Any) -> Any:
        forever = isinstance(node.test, ast.Constant) and node.test.value
        node.test = self.test(node.test)
        return self._loop(node, None if forever else self.known)

    def visit_For(self, node: Any) -> Any:
        over, after, many = node.iter, self.known, 1
        thing = self.meaning(over.func) if isinstance(over, ast.Call) and not over.keywords else None
        if thing is range:
            over.args = [self.visit(each) for each in over.args]
        elif thing is enumerate and len(over.args) == 1:
            over.args, many = [self.listed(over.args[0])], 2
        else:
            node.iter = self.listed(over, "range(…), a list of self, or enumerate of one")
        names = getattr(node.target, "elts", [node.target])
        if len(names) != many or not all(isinstance(each, ast.Name) for each in names):
            self.refuse(node, f"a loop of `{ast.unparse(node.target)}`", "a name, or two of enumerate")
        for each in names:
            self.store(each, each)
        return self._loop(node, after)

    def _loop(self, node: Any, after: set[str] | None) -> Any:
        """A loop; `after` are the names that are known where it ends by itself."""
        if node.orelse:
            self.refuse(node, "a loop with else is not compiled")
        self.breaks.append([])
        node.body, self.known = self.block(node.body), after
        for known in self.breaks.pop():
            self.known = both(self.known, known)
        return node

    def visit_AnnAssign(self, node: Any) -> Any:
        return self.visit_Assign(ast.Assign([node.target], node.value)) if node.value else ast.Pass()

    def visit_Assign(self, node: Any) -> Any:
        many = isinstance(node.value, ast.Tuple)
        values = [self.visit(each) for each in (node.value.elts if many else [node.value])]
        for target in node.targets:
            split = isinstance(target, ast.Tuple | ast.List)
            if split is not many or (many and len(target.elts) != len(values)):
                self.refuse(target, expected="as many values as targets")
            values = [
                self.store(*each) for each in zip(target.elts if many else [target], values, strict=True)
            ]
        node.value = ast.Tuple(values, ast.Load()) if many else values[0]
        return node

    def visit_AugAssign(self, node: Any) -> Any:
        if isinstance(node.target, ast.Subscript):  # its index is computed once
            if isinstance(node.op, ast.Pow) or not isinstance(node.op, OPERATORS):
                self.refuse(node)
            value = self.visit(node.value)
            real = isinstance(node.op, ast.Div)
            node.value = self.store(
                node.target, ast.Call(ast.Name("oc_real", ast.Load()), [value], []) if real else value
            )
            return node
        before: Any = ast.parse(ast.unparse(node.target), mode="eval").body
        ast.increment_lineno(before, node.lineno - 1)
        return self.visit(
            ast.copy_location(
                ast.Assign([node.target], ast.copy_location(ast.BinOp(before, node.op, node.value), node)),
                node,
            )
        )

    def store(self, target: Any, value: Any) -> Any:
        """The value that is stored in a target, which is looked at."""
        if isinstance(target, ast.Name):
            if target.id in (self.me, self.round):
                self.refuse(target, f"`{target.id}` is assigned", "another name")
            self.known = (self.known or set()) | {target.id}
            return value
        if isinstance(target, ast.Subscript):
            place, _ = self.listed(target.value), self.visit_Subscript(target)
            self.record.stored.setdefault(place.attr, f"{self.label}, line {target.lineno}")
        elif self.is_me(place := target):
            cls = self.record.cls
            if cls.__setattr__ is not object.__setattr__:
                self.refuse(target, f"{cls.__name__} has a __setattr__, which is not compiled", "none")
            if self.attribute(target).length is not None:
                self.refuse(
                    target, f"{ast.unparse(target)} becomes another list", "its entries assigned one by one"
                )
        else:
            self.refuse(target, f"`{ast.unparse(target)}` is assigned", "an attribute of self, or a name")
        if self.record.held[place.attr].kind is not np.int64:
            return value
        field = ast.Constant(list(self.record.held).index(place.attr))
        return ast.Call(ast.Name("oc_fit", ast.Load()), [value, field], [])

    def visit_Return(self, node: Any) -> Any:
        if self.step == "law" and node.value is not None:
            made: Any = self._law(node, node.value)
        elif node.value is None or self.step == "code":
            if self.step in ("law", "q"):
                self.refuse(node, "nothing is returned", "a number")
            made = [*([] if node.value is None else [ast.Expr(self.test(node.value))]), ast.Return(None)]
        else:
            node.value, made = self.visit(node.value), node
        self.returns.add(node.value is not None)
        self.known = None
        return made

    def _law(self, node: Any, value: Any) -> list[Any]:
        """Writes a law, and returns its size."""
        if isinstance(value, ast.IfExp):
            test = self.test(value.test)
            return [ast.If(test, self._law(node, value.body), self._law(node, value.orelse))]
        atoms: list[Any] = [(value, ast.Constant(1.0))]
        if isinstance(value, ast.Dict):
            atoms = list(zip(value.keys, value.values, strict=True))
            if None in value.keys or not atoms:
                self.refuse(node, expected="a number, or {value: weight, …}")
        size: Any = ast.Constant(0)
        for each in atoms:
            given = [ast.Name("oc_run", ast.Load()), size, *map(self.visit, each)]
            size = ast.Call(ast.Name("oc_atom", ast.Load()), given, [])
        self.record.atoms = max(self.record.atoms, len(atoms))
        return [ast.Return(size)]

    # ------------------------------------------------------------ expressions

    def visit_Constant(self, node: Any) -> Any:
        if type(node.value) not in (bool, int, float):
            self.refuse(node, f"{node.value!r} is no number", "a number, such as -1 or math.nan")
        return node

    def visit_Name(self, node: Any) -> Any:
        if node.id in (self.me, self.round):
            self.refuse(node, f"`{node.id}` by itself is not compiled", "its attributes")
        if node.id not in self.locals:
            return self.named(node)
        if node.id not in (self.known or ()):
            self.refuse(
                node,
                f"`{node.id}` may have no value here",
                "one on every path, such as before the `if` or loop",
            )
        return node

    def visit_Attribute(self, node: Any) -> Any:
        if self.is_me(node):
            if self.attribute(node).length is not None:
                self.refuse(
                    node, f"the whole list self.{node.attr}", "its entries, len(…), or a loop over it"
                )
            return node
        if isinstance(node.value, ast.Name) and node.value.id == self.round is not None:
            if node.attr not in self.record.shown or node.attr == "context":
                known = ", ".join(f"round.{each}" for each in self.record.shown).replace(
                    "context", "context['kind']"
                )
                self.refuse(node, f"round.{node.attr} is not compiled", f"{known}, which its sight allows")
            return node
        return self.named(node)

    def visit_Subscript(self, node: Any) -> Any:
        if ast.unparse(node.value) == f"{self.round}.context":
            kinds = self.record.contexts
            if getattr(node.slice, "value", None) not in kinds:
                self.refuse(node, expected=f"one of what the class needs: {', '.join(kinds) or 'nothing'}")
            place = ast.Constant(kinds.index(node.slice.value))
            return ast.Subscript(ast.parse("oc_note(oc_run)", mode="eval").body, place, ast.Load())
        node.value = self.listed(node.value, "one entry of a list that is an attribute")
        if isinstance(node.slice, ast.Slice | ast.Tuple):
            self.refuse(node, expected="one entry of a list that is an attribute")
        true = isinstance(node.slice, ast.Compare) or isinstance(getattr(node.slice, "op", None), ast.Not)
        node.slice = self.visit(node.slice)
        if true:  # numba has no entry of a truth value
            node.slice = ast.Call(ast.Name("int", ast.Load()), [node.slice], [])
        return node

    def visit_BinOp(self, node: Any) -> Any:
        if not isinstance(node.op, OPERATORS):
            self.refuse(
                node, f"the operator {type(node.op).__name__} is not compiled", "+, -, *, /, //, % or **"
            )
        negative = isinstance(node.right, ast.UnaryOp) and isinstance(node.right.op, ast.USub)
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        if not isinstance(node.op, ast.Pow):
            return node
        if negative:  # a negative power of a whole number is a real one
            node.left = ast.Call(ast.Name("oc_real", ast.Load()), [node.left], [])
        return ast.Call(ast.Name("oc_power", ast.Load()), [node.left, node.right], [])

    def visit_UnaryOp(self, node: Any) -> Any:
        if isinstance(node.op, ast.Invert):
            self.refuse(node)
        node.operand = (self.test if isinstance(node.op, ast.Not) else self.visit)(node.operand)
        return node

    def visit_Compare(self, node: Any) -> Any:
        if not all(
            isinstance(op, ast.Eq | ast.NotEq | ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops
        ):
            self.refuse(node)
        node.left, node.comparators = self.visit(node.left), [self.visit(each) for each in node.comparators]
        return node

    def visit_BoolOp(self, node: Any) -> Any:
        visit = self.test if self.here else self.visit
        node.values = [visit(each) for each in node.values]
        return node

    def visit_IfExp(self, node: Any) -> Any:
        return ast.IfExp(self.test(node.test), self.visit(node.body), self.visit(node.orelse))

    def visit_Call(self, node: Any) -> Any:
        said, function, thing = ast.unparse(node.func), node.func, self.meaning(node.func)
        of_attribute = isinstance(function, ast.Attribute) and self.is_me(function.value)
        if self.is_me(function):
            static = inspect.getattr_static(self.record.cls, function.attr, None)
            if isinstance(why := self.record.held.get(function.attr), str):
                self.refuse(node, f"{said} {why}", "a method of the class")
            if not isinstance(static, FunctionType):
                self.refuse(node, f"{said} is no plain method of the class", "one")
            return self.call(node, static, True)
        if of_attribute:
            held = self.record.held.get(function.value.attr)
            if held is Stream and function.attr == "uniform" and len(node.args) == 1 and not node.keywords:
                node.func, before = ast.Name("oc_number", ast.Load()), [ast.Name("oc_run", ast.Load())]
                node.args = before + [self.visit(each) for each in node.args]
                return node
            if function.attr in vars(list):
                what, fixed = (
                    f"a list that grows ({function.attr}) has no fixed size",
                    "one of fixed length, and its entries",
                )
                self.refuse(node, what, fixed)
            self.attribute(function.value)
        if "random" in f"{getattr(thing, '__module__', '')} {said}":
            self.refuse(node, f"{said}() draws at random", RANDOM)
        if isinstance(thing, FunctionType) and not (thing.__module__ or "").startswith("numpy"):
            return self.call(node, thing, False)
        if thing is len and len(node.args) == 1 and not node.keywords:
            node.args = [self.listed(node.args[0])]
            return node
        visit = self.test if thing in (int, float, *TRUTHS) else self.visit
        node.args = [visit(each) for each in node.args]
        few, most = TAKES.get(thing, (1, 0)) if callable(thing) else (1, 0)
        if node.keywords or not few <= len(node.args) <= most:
            self.refuse(
                node, f"{said}() is not compiled", "functions of math, methods of the class, or your own"
            )
        node.func = self.name(said, CALLS.get(thing, thing))
        return node

    def call(self, node: Any, function: Any, own: bool) -> Any:
        """A call of a function or method of the user's."""
        if not self.record.read(function, own):
            self.refuse(node, f"{ast.unparse(node.func)}() is called by what it calls itself", "a loop")
        if any(isinstance(each, ast.Starred) for each in node.args) or any(
            each.arg is None for each in node.keywords
        ):
            self.refuse(node)
        first = [ast.Name(each, ast.Load()) for each in ("oc_run", str(self.me))] if own else []
        node.func = self.name(ast.unparse(node.func), (function, own, ""))
        node.args = [*first, *map(self.visit, node.args)]
        for each in node.keywords:
            each.value = self.visit(each.value)
        return node
