"""Bodies of methods of plain classes as those of functions of a run, or the message why not."""

from __future__ import annotations

import ast
import copy
import math
import textwrap
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.rounds.arithmetic import FUNCTIONS, OF_NUMPY, OPERATORS
from onlinecal.rounds.flow import ANY_WHOLE, REAL, TURNS, Size, Sizes, choices, of_number, unassigned
from onlinecal.rounds.written import NOWHERE, meaning, plain_number, source

_NUMBERS = "numbers, lists of fixed length, if, for and while"
_RANDOM = "randomness of its own in a specification, from `stream`"
_GROWING = {"append", "extend", "insert", "add", "appendleft", "setdefault", "pop", "popleft"}
_KEPT = (
    ast.If, ast.While, ast.Break, ast.Continue, ast.Pass, ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.Tuple,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.UAdd, ast.USub, ast.Not, ast.boolop, ast.operator,
    ast.expr_context, ast.keyword,
)  # fmt: skip


class Body(ast.NodeTransformer):
    """Translates the body of a method or function; a construct without a rule here is refused."""

    def __init__(self, whole: Any, function: Any, own: bool, returns: str) -> None:
        self.whole, self.function, self.own, self.returns = whole, function, own, returns
        if not isinstance(function, FunctionType):
            raise InvalidParameter(
                f"{whole.cls.__name__}: {function!r} is no method; expected a plain function"
            )
        self.called = f"{whole.cls.__name__}." * own + function.__name__
        text, first = source(function, self.called)
        self.tree: Any = ast.increment_lineno(ast.parse(textwrap.dedent(text)), first - 1).body[0]
        if not isinstance(self.tree, ast.FunctionDef):
            self.refuse(self.tree, "a function without a name", "one that begins with def")
        of = self.tree.args
        if of.vararg or of.kwarg or of.kwonlyargs or self.tree.decorator_list:
            self.refuse(self.tree, "its arguments or decorators", "a plain function of some arguments")
        names = (each.id if isinstance(each, ast.Name) else each.arg for each in ast.walk(self.tree)
                 if isinstance(each, ast.Name | ast.arg))  # fmt: skip
        for name in names:
            if name.startswith("oc_"):  # as names of translated code do
                self.refuse(self.tree, f"the name `{name}`", "one that does not begin with oc_")
        unset = unassigned(self.tree)
        if unset is not None:
            self.refuse(
                unset,
                f"`{unset.id}` may have no value here",
                "one on every path, such as before the `if` or loop",
            )
        self.arguments = [*of.posonlyargs, *of.args]
        self.self = self.arguments[0].arg if own and self.arguments else None
        self.round: str | None = None
        self.made, home = 0, function.__qualname__.split(".")[:-1]
        for node in ast.walk(self.tree):  # `self.__x` is another attribute in each class
            if home and isinstance(node, ast.Attribute) and node.attr[:2] == "__" != node.attr[-2:]:
                node.attr = f"_{home[-1].lstrip('_')}{node.attr}"

    def refuse(self, node: Any, what: str = "", expected: str = _NUMBERS) -> NoReturn:
        """Refuses a construct."""
        if not what:
            text = ast.unparse(node)
            line = text.partition("\n")[0][:60]
            what = f"`{line}{' …' * (line != text)}` is not compiled"
        raise InvalidParameter(f"{self.called}, line {node.lineno}: {what}; expected {expected}")

    def visit(self, node: Any) -> Any:
        """Translates what has a rule, or is listed as it is, at the place of its own text."""
        # An operator has no place. It is refused with its expression, before that is translated in part.
        for part in (node, *(each for each in ast.iter_child_nodes(node) if not hasattr(each, "lineno"))):
            if not isinstance(part, _KEPT) and not hasattr(self, f"visit_{type(part).__name__}"):
                self.refuse(node)
        if isinstance(node, ast.While | ast.For) and node.orelse:
            self.refuse(node, "a loop with else is not compiled")
        made = super().visit(node)
        for each in _listed(made):
            if each is not node and hasattr(node, "lineno"):
                ast.copy_location(each, node)
        return made

    def measure(self, given: dict[str, Size]) -> None:
        """Finds the numbers that may be whole ones where compiled code has real ones, from sizes of arguments."""
        self.sizes, self.returned = Sizes(copy.deepcopy(self.tree), self._size, given), Size()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Return) and node.value is not None:
                self.returned |= self.sizes.of(node.value)

    def _size(self, node: Any) -> Size:
        """The size of an attribute, an entry of one, what a function returns, or a name of the module."""
        if isinstance(node, ast.Subscript) or self._of(node, self.self):
            at = node.value if isinstance(node, ast.Subscript) else node
            kind = self.whole.kinds.get(getattr(at, "attr", ""), "")
            return ANY_WHOLE if kind[:1] == "i" else REAL if kind else Size()
        if isinstance(node, ast.Attribute):
            if self._of(node, self.round):
                return TURNS if node.attr == "number" else REAL
            value = self._object(node)
            return of_number(value) if isinstance(value, int | float) else Size()
        if isinstance(node, ast.Name) and (value := self._object(node)) is not None:
            return of_number(value) if isinstance(value, int | float) else Size()
        called: Any = node.func if isinstance(node, ast.Call) else None
        function = self._object(called) if called is not None else None
        if function in (int, round, math.floor, math.ceil):
            return ANY_WHOLE
        if self._of(called, self.self):
            return self.whole.size(getattr(self.whole.cls, called.attr, None), True)
        if isinstance(function, FunctionType):
            return self.whole.size(function, False)
        return (
            TURNS
            if function is len
            else REAL
            if function is float or function in vars(math).values()
            else Size()
        )

    def _exact(self, size: Size, made: Any) -> Any:
        """A number that ends the game beyond 2^53, if it may be a whole one of that size."""
        if size == Size():  # its type says whether it is a whole one
            return _call("oc_exact_whole", made)
        return _call("oc_exact", made) if size.large else made

    def _chosen(self, node: Any) -> list[Any]:
        """One of several expressions: whole ones beside real ones are exact."""
        return self._beside(choices(node))

    def _beside(self, nodes: list[Any]) -> list[Any]:
        sizes = [(each, self.sizes.of(each)) for each in nodes]
        real = any(size.real for _, size in sizes)
        return [
            self._exact(size if real and not size.real else REAL, self.visit(each)) for each, size in sizes
        ]

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Python compares whole and real numbers without rounding."""
        left, *others = self._beside([node.left, *node.comparators])
        for operator in node.ops:
            self.visit(operator)
        return ast.Compare(left, node.ops, others)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return ast.IfExp(self.visit(node.test), *self._chosen(node))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        return ast.BoolOp(node.op, self._chosen(node))

    def lines(self, body: list[Any]) -> list[Any]:
        """Translates some statements."""
        return [each for line in body for each in _listed(self.visit(line))]

    # ------------------------------------------------------------ statements

    def visit_Expr(self, node: ast.Expr) -> Any:
        return ast.Pass() if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        return ast.Raise(_name("ValueError"), None)

    def visit_Assert(self, node: ast.Assert) -> Any:
        return ast.If(self.visit(node.test), [ast.Pass()], [ast.Raise(_name("ValueError"), None)])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.Pass()
        size = self.sizes.of(node.value)
        return self._assign(node.target, self.visit(node.value), size)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target, before = node.target, []
        if isinstance(target, ast.Subscript):  # the place of an entry is computed once
            index = self._temporary()
            before = [ast.Assign([ast.Name(index, ast.Store())], self.visit(target.slice))]
            target = ast.copy_location(ast.Subscript(target.value, _name(index), ast.Store()), target)
        fields = {name: value for name, value in ast.iter_fields(target) if name != "ctx"}
        now = ast.copy_location(type(target)(**fields, ctx=ast.Load()), target)
        whole = ast.copy_location(ast.BinOp(now, node.op, node.value), node)
        size = self.sizes.of(whole)
        return [*before, *self._assign(target, self.visit(whole), size)]

    def visit_Assign(self, node: ast.Assign) -> Any:
        if len(node.targets) == 1 and not isinstance(node.targets[0], ast.Tuple | ast.List):
            self._settled(node.targets[0])
            size = self.sizes.of(node.value)
            return self._assign(node.targets[0], self.visit(node.value), size)
        held = self._temporary()  # every value is computed before anything is assigned
        size, parts = (
            self.sizes.of(node.value),
            [self.sizes.of(each) for each in getattr(node.value, "elts", ())],
        )
        lines: list[Any] = [ast.Assign([ast.Name(held, ast.Store())], self.visit(node.value))]
        for target in node.targets:
            if not isinstance(target, ast.Tuple | ast.List):
                lines += self._assign(target, _name(held), size)
                continue
            if not isinstance(node.value, ast.Tuple) or len(node.value.elts) != len(target.elts):
                self.refuse(node, expected="as many values as targets")
            for i, each in enumerate(target.elts):
                lines += self._assign(each, _entry(held, i), parts[i])
        return lines

    def _assign(self, target: Any, value: Any, size: Size) -> list[Any]:
        whole = size if not size.real else REAL
        if isinstance(target, ast.Name):
            if target.id in (self.self, self.round):
                self.refuse(target, f"`{target.id}` is assigned", "another name")
            if self.sizes.names[target.id].real:
                value = self._exact(whole, value)
            return [ast.Assign([target], value)]
        if not isinstance(target, ast.Attribute | ast.Subscript):
            self.refuse(target, f"`{ast.unparse(target)}` is assigned", "an attribute of self, or a name")
        self._settled(target)
        if isinstance(target, ast.Attribute) and self.whole.cls.__setattr__ is not object.__setattr__:
            self.refuse(target, f"{self.whole.cls.__name__} has a __setattr__, which is not compiled", "none")
        of: Any = target.value if isinstance(target, ast.Subscript) else target
        _, kind, _ = self._attribute(of)
        if of is not target:
            self.whole.stored.setdefault(of.attr, f"{self.called}, line {target.lineno}")
        return [
            ast.Assign(
                [self.visit(target)], self._exact(whole, value) if kind == "f" else _call("oc_whole", value)
            )
        ]

    def _settled(self, target: Any) -> None:
        """Refuses another list in place of one."""
        if self._of(target, self.self) and self._attribute(target)[0]:
            self.refuse(target, f"self.{target.attr} becomes another list", "its entries assigned one by one")

    def visit_Return(self, node: ast.Return) -> Any:
        value = node.value
        if isinstance(value, ast.IfExp):
            parts: Any = ([ast.copy_location(ast.Return(each), node)] for each in (value.body, value.orelse))
            return self.visit(ast.copy_location(ast.If(value.test, *parts), node))
        if self.returns == "code":
            return [*([] if value is None else [ast.Expr(self.visit(value))]), ast.Return(ast.Constant(0))]
        if value is None:
            self.refuse(node, "nothing is returned", "a number")
        if self.returns != "law":
            own = self.sizes.of(value)
            beside = self.returned.real and not own.real
            return ast.Return(self._exact(own if beside else REAL, self.visit(value)))
        atoms: list[Any] = [(value, None)]
        if isinstance(value, ast.Dict):
            atoms = list(zip(value.keys, value.values, strict=True))
            if None in value.keys or not atoms:
                self.refuse(node, expected="a number, or {value: weight, …}")
        self.whole.atoms = max(self.whole.atoms, len(atoms))
        size: Any = ast.Constant(0)
        for atom, weight in atoms:
            share = ast.Constant(1.0) if weight is None else self.visit(weight)
            size = _call("oc_atom", "oc_run", size, self.visit(atom), share)
        return ast.Return(size)

    def visit_For(self, node: ast.For) -> Any:
        """Over range(…), self.xs or enumerate(self.xs)."""
        over, names = node.iter, getattr(node.target, "elts", [node.target])
        kind = self._object(over.func) if isinstance(over, ast.Call) else None
        if not all(isinstance(each, ast.Name) for each in names):
            self.refuse(node, f"a loop of `{ast.unparse(node.target)}`", "names")
        if kind is range and isinstance(over, ast.Call):
            turns = self._calls(over, "range")
        elif kind is enumerate and isinstance(over, ast.Call) and len(over.args) == 1:
            turns = _call("enumerate", self._list(over.args[0]))
        elif self._of(over, self.self):
            turns = self._list(over)
        else:
            expected = "range(…), a list of self, or enumerate of one"
            self.refuse(node, f"a loop over `{ast.unparse(over)}`", expected)
        return ast.For(node.target, turns, self.lines(node.body), [])

    # ------------------------------------------------------------ expressions

    def visit_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if not isinstance(value, int | float) or (isinstance(value, int) and abs(value) >= 2**63):
            self.refuse(node, f"{value!r} is no number", "a number, such as -1 or math.nan")
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in (self.self, self.round):
            self.refuse(node, f"`{node.id}` by itself is not compiled", "its attributes")
        return node if self._local(node) else self._constant(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if self._of(node, self.self):
            is_list, kind, at = self._attribute(node)
            if is_list:
                expected = "its entries, len() of it, or a loop over it"
                self.refuse(node, f"the whole list self.{node.attr}", expected)
            return _entry(f"oc_{kind}", at, node.ctx)
        if not self._of(node, self.round):
            return self._constant(node)
        if node.attr not in self.whole.shown:
            known = " and ".join(f"round.{each}" for each in self.whole.shown)
            self.refuse(node, f"round.{node.attr} is not compiled", f"{known}, which its sight allows")
        return _name(self.whole.shown[node.attr])

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if not self._attribute(node.value)[0] or isinstance(node.slice, ast.Slice):
            self.refuse(node, expected="one entry of a list that is an attribute")
        at = self.visit(node.slice)
        at = _call("oc_index", at) if "!" in self.whole.kinds else at
        index = _call("oc_place", self._length(node.value), at)
        return ast.Subscript(self._list(node.value), index, node.ctx)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        kind = type(node.op).__name__
        operators = OF_NUMPY if "!" in self.whole.kinds else OPERATORS
        if kind not in operators:
            self.refuse(node, f"the operator {kind} is not compiled", "+, -, *, /, //, % or **")
        size = self.sizes.of(node)
        left, right = self.visit(node.left), self.visit(node.right)
        if kind == "Pow" and isinstance(right, ast.UnaryOp) and isinstance(right.op, ast.USub):
            right = _call("float", right)  # a negative power of a whole number is a real one
        return self._exact(
            size if size.mixed else REAL, _call(self.whole.called(operators[kind]), left, right)
        )

    def visit_Call(self, node: ast.Call) -> Any:
        said, method = ast.unparse(node.func), node.func
        if isinstance(method, ast.Attribute) and self._of(method, self.self):
            thing = self.whole.meaning(None, (method.attr,))
            if "!" + method.attr in self.whole.kinds:
                self.refuse(node, f"{said} {self.whole.kinds['!' + method.attr]}", "a method of the class")
            if not isinstance(thing, FunctionType):
                self.refuse(node, f"{said} is no plain method of the class", "one")
            return self._calls(node, self.whole.called(thing, True), "oc_run")
        if isinstance(method, ast.Attribute) and self._of(method.value, self.self):
            if method.attr not in vars(list):
                self._attribute(method.value)
            grows = f"a list that grows ({method.attr}) has no fixed size"
            why = grows if method.attr in _GROWING else f"{said}() is not compiled"
            self.refuse(node, why, "a list of fixed length, made in __init__, and its entries")
        thing = self._object(method)
        if thing is len and node.args and self._of(node.args[0], self.self):
            return self._length(node.args[0])
        home = getattr(thing, "__module__", None) or ""
        if "random" in f"{home} {said}":
            self.refuse(node, f"{said}() draws at random", _RANDOM)
        if isinstance(thing, FunctionType) and not home.startswith("numpy"):
            return self._calls(node, self.whole.called(thing, False))
        if thing in (min, max) and len(node.args) > 1 and not node.keywords:
            return _call(self.whole.called(FUNCTIONS[thing]), *self._chosen(node))
        if thing not in FUNCTIONS or node.keywords or (thing is round and len(node.args) > 1):
            expected = "functions of math, methods of the class, or your own"
            self.refuse(node, f"{said}() is not compiled", expected)
        return self._calls(node, self.whole.called(FUNCTIONS[thing]))

    # ------------------------------------------------------------ parts

    def _temporary(self) -> str:
        self.made += 1
        return f"oc_t{self.made}"

    def _calls(self, node: ast.Call, name: str, *first: Any) -> ast.Call:
        call = _call(name, *first, *(self.visit(each) for each in node.args))
        call.keywords = [self.visit(each) for each in node.keywords]
        return call

    def _of(self, node: Any, name: str | None) -> bool:
        """Whether this is an attribute of that name."""
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name

    def _attribute(self, node: Any) -> tuple[bool, str, int]:
        """Whether an attribute is a list, ``"i"`` or ``"f"``, and its place."""
        if not self._of(node, self.self):
            self.refuse(node, expected="an attribute of self")
        name, kinds = node.attr, self.whole.kinds
        if self.whole.cls.__getattribute__ is not object.__getattribute__:
            self.refuse(
                node, f"{self.whole.cls.__name__} has a __getattribute__, which is not compiled", "none"
            )
        if name not in kinds:
            why = kinds.get("!" + name, "is not made in __init__")
            fixed = "a number, or a list of numbers of fixed length, made in __init__"
            self.refuse(node, f"self.{name} {why}", _RANDOM if "random" in why else fixed)
        return kinds[name].endswith("s"), kinds[name][0], self.whole.place(name, kinds[name])

    def _list(self, node: Any) -> ast.Call:
        _, kind, at = self._attribute(node)
        return _call("oc_entries", f"oc_{kind}", "oc_i", ast.Constant(at))

    def _length(self, node: Any) -> ast.Subscript:
        return _entry("oc_i", self._attribute(node)[2] + 1)

    def _local(self, node: ast.Name) -> bool:
        names = self.function.__code__.co_varnames
        return isinstance(node.ctx, ast.Store) or node.id in names or node.id.startswith("oc_t")

    def _constant(self, node: Any) -> Any:
        return self.number(self._object(node), node)

    def number(self, value: Any, node: Any) -> Any:
        """A number in place of an expression; anything else is refused there."""
        if isinstance(value, np.int64 | np.float64):
            value = value.item()
        for kind in (bool, int, float):
            if plain_number(value, kind):
                return self.visit_Constant(ast.copy_location(ast.Constant(kind(value)), node))
        self.refuse(node, expected="numbers, and attributes of self")

    def _object(self, node: Any) -> Any:
        """The meaning of a name outside the function, or an attribute of a module or class; else None."""
        path: list[str] = []
        root = node
        while isinstance(root, ast.Attribute):
            path, root = [root.attr, *path], root.value
        if not isinstance(root, ast.Name) or self._local(root):
            return None
        if meaning(self.function, (root.id,)) is NOWHERE:
            here = "it above the class, or oc.compiled(…) called below both"
            self.refuse(node, f"`{root.id}` is not defined yet where oc.compiled is called", here)
        found = self.whole.meaning(self.function, (root.id, *path))
        return None if found is NOWHERE else found


def _listed(made: Any) -> list[Any]:
    return made if isinstance(made, list) else [] if made is None else [made]


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(name: str, *arguments: Any) -> ast.Call:
    return ast.Call(_name(name), [_name(a) if isinstance(a, str) else a for a in arguments], [])


def _entry(array: str, at: int, context: ast.expr_context | None = None) -> ast.Subscript:
    return ast.Subscript(_name(array), ast.Constant(at), context or ast.Load())
