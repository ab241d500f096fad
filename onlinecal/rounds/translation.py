"""Methods of plain classes as functions of a run: `self.x` becomes a place in its memory, or the message why not."""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.rounds.arithmetic import FUNCTIONS, OPERATORS, place, whole
from onlinecal.rounds.steps import floats, ints, law_values, law_weights

_NUMBERS = "numbers, lists of fixed length, if, for and while"
_KEPT = (
    ast.If, ast.While, ast.Break, ast.Continue, ast.Pass, ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.Compare,
    ast.boolop, ast.unaryop, ast.cmpop, ast.operator, ast.expr_context, ast.keyword,
)  # fmt: skip
_REFUSED = (ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.Invert)
_RANDOM = "randomness of its own in a specification, from `stream`"


@part_of_kernel
def _atom(run, size, value, weight):
    """Adds an atom to the law as a dict would: one of the same value gets this weight. The number of atoms."""
    values, weights = law_values(run), law_weights(run)
    for j in range(size):
        if values[j] == value:
            weights[j] = weight
            return size
    values[size], weights[size] = value, weight
    return size + 1


class Translation:
    """The methods of a class, and the functions that they call, in one namespace.

    Parameters
    ----------
    kinds : mapping
        Attribute → ``"int"``, ``"float"``, ``"ints"``, ``"floats"``, or "" for anything else.
    shown : mapping
        Attribute of a round → its name in the steps.

    Attributes
    ----------
    places : dict
        Attribute that is used → its place in `ints` or `floats`; of a list, the place in `ints` of where it begins,
        with its length behind.
    sizes : [int, int]
        Whole and real numbers of the state, but for lists.
    atoms : int
        The most atoms of a law.
    """

    def __init__(self, cls: type, kinds: Mapping[str, str], shown: Mapping[str, str]) -> None:
        self.cls, self.kinds, self.shown = cls, kinds, shown
        self.places: dict[str, int] = {}
        self.sizes, self.atoms = [0, 0], 1
        self.trees: dict[str, tuple[ast.FunctionDef, str]] = {}
        self._space: dict[str, Any] = {
            "__name__": cls.__module__, "oc_ints": ints, "oc_floats": floats, "oc_values": law_values,
            "oc_place": place, "oc_whole": whole, "oc_atom": _atom,
        }  # fmt: skip
        self._names: dict[Any, str] = {}

    def step(self, name: str, given: str, told: Mapping[int, str], returns: str, end: str) -> None:
        """Translates a method into a step with the arguments `given`; its own ones are `told` by their places."""
        function = inspect.getattr_static(self.cls, name)
        self._add(name, function, _Body(self, function, True, returns), given, told, end)

    def called(self, thing: Any, own: bool | None = None) -> str:
        """The name of a function in the namespace; a method (`own`) or function of the user's is translated."""
        if thing not in self._names:
            name = self._names[thing] = f"oc_{len(self._names)}"
            if own is None:
                self._space[name] = thing
            else:
                self._add(name, thing, _Body(self, thing, own, "value"))
        return self._names[thing]

    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions of a run; what they call is compiled when they are."""
        # Machine code is kept under the name: it must tell one text from another.
        text = "".join(ast.dump(tree) for tree, _ in self.trees.values())
        mark = hashlib.sha256(text.encode()).hexdigest()[:12]
        made = {}
        for name, (tree, file) in self.trees.items():
            exec(compile(ast.Module([tree], []), file, "exec"), self._space)
            made[name] = function = self._space[name]
            function.__qualname__ = f"{self.cls.__qualname__}.{name}_{mark}"
            if name.startswith("oc_"):
                self._space[name] = kernel(function)
        return made

    def place(self, name: str, kind: str) -> int:
        """Where an attribute is."""
        if name not in self.places:
            of = kind == "float"
            self.places[name] = self.sizes[of]
            self.sizes[of] += 1 + kind.endswith("s")
        return self.places[name]

    def _add(
        self,
        name: str,
        function: Any,
        body: _Body,
        given: str = "",
        told: Mapping[int, str] | None = None,
        end: str = "",
    ) -> None:
        tree, arguments = body.tree, body.tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or tree.decorator_list:
            body.refuse(tree, "its arguments or decorators", "a plain function of some arguments")
        own = [*arguments.posonlyargs, *arguments.args]
        begin = "oc_i, oc_f = oc_ints(oc_run), oc_floats(oc_run)\n" if body.own else ""
        if told is not None:
            if arguments.defaults:
                body.refuse(tree, "an argument with a default", "none")
            begin += "".join(f"{own[i].arg} = {what}\n" for i, what in told.items() if i < len(own))
            body.round = own[-1].arg if len(own) - 1 not in {0, *told} else None
        elif body.own:
            given = "oc_run"
        (head,) = _parsed(f"def {name}({given}): pass", tree)
        if told is None:
            head.args.args += [ast.arg(each.arg) for each in own[body.own :]]
            head.args.defaults = [body.visit(each) for each in arguments.defaults]
        lines = [each for line in tree.body for each in _listed(body.visit(line))]
        head.body = [*_parsed(begin, tree), *lines, *_parsed(end, tree)] or [ast.Pass()]
        self.trees[name] = ast.fix_missing_locations(head), function.__code__.co_filename


def _parsed(text: str, at: ast.stmt) -> list[Any]:
    """Statements that stand where another one does."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr | ast.arg):
            ast.copy_location(node, at)
    return tree.body


def _listed(made: Any) -> list[Any]:
    return made if isinstance(made, list) else [] if made is None else [made]


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(name: str, *arguments: Any) -> ast.Call:
    return ast.Call(_name(name), [_name(a) if isinstance(a, str) else a for a in arguments], [])


def _entry(array: str, at: Any, context: ast.expr_context) -> ast.Subscript:
    return ast.Subscript(_name(array), ast.Constant(at) if isinstance(at, int) else at, context)


class _Body(ast.NodeTransformer):
    """Translates the body of a function."""

    def __init__(self, whole: Translation, function: Any, own: bool, returns: str) -> None:
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
        for each in _listed(made):
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
                self.refuse(node, f"the whole list self.{node.attr}", "its entries, len() of it, or a loop over it")
            return _entry(f"oc_{kind}", at, node.ctx)
        if self._of(node, self.round):
            if node.attr not in self.whole.shown:
                known = " and ".join(f"round.{each}" for each in self.whole.shown)
                self.refuse(node, f"round.{node.attr} is not compiled", f"{known}, which its sight allows")
            return _name(self.whole.shown[node.attr])
        return self._constant(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        array, kind, at = self._attribute(node.value)
        if not array or isinstance(node.slice, ast.Slice):
            self.refuse(node, f"`{ast.unparse(node)}` is not compiled", "one entry of a list that is an attribute")
        return _entry(f"oc_{kind}", self._place(at, self.visit(node.slice)), node.ctx)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        kind = type(node.op).__name__
        if kind not in OPERATORS:
            self.refuse(node, f"the operator {kind} is not compiled", "+, -, *, /, //, % or **")
        return _call(self.whole.called(OPERATORS[kind]), self.visit(node.left), self.visit(node.right))

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
            grows = method.attr in ("append", "extend", "insert", "add", "appendleft", "setdefault", "pop", "popleft")
            why = f"a list that grows ({method.attr}) has no fixed size" if grows else f"{said}() is not compiled"
            self.refuse(node, why, "a list of fixed length, made in __init__, and its entries")
        thing = self._object(method)
        first = node.args[0] if node.args else None
        if thing is len and first is not None and self._of(first, self.self):
            return _entry("oc_i", self._attribute(first)[2] + 1, ast.Load())
        home = getattr(thing, "__module__", None) or ""
        if "random" in f"{home} {said}":
            self.refuse(node, f"{said}() draws at random", _RANDOM)
        if isinstance(thing, FunctionType) and not home.startswith("numpy"):
            return self._calls(node, self.whole.called(thing, False))
        if thing not in FUNCTIONS.keys() or node.keywords or (thing is round and len(node.args) > 1):
            self.refuse(node, f"{said}() is not compiled", "functions of math, methods of the class, or your own")
        return self._calls(node, self.whole.called(FUNCTIONS[thing]))

    # ------------------------------------------------------------ statements

    def visit_Expr(self, node: ast.Expr) -> Any:
        return ast.Pass() if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        return ast.Raise(_name("ValueError"), None)

    def visit_Assert(self, node: ast.Assert) -> Any:
        return ast.If(self.visit(node.test), [ast.Pass()], [ast.Raise(_name("ValueError"), None)])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return ast.Pass() if node.value is None else self._assign(node.target, self.visit(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """The place of an entry is computed once."""
        target: Any = node.target
        load = self.visit(ast.copy_location(_loaded(target), target))
        before = []
        if isinstance(target, ast.Subscript):
            at = self._temporary()
            before, load.slice = [ast.Assign([ast.Name(at, ast.Store())], load.slice)], _name(at)
        kind = type(node.op).__name__
        if kind not in OPERATORS:
            self.refuse(node, f"the operator {kind} is not compiled", "+, -, *, /, //, % or **")
        value = _call(self.whole.called(OPERATORS[kind]), load, self.visit(node.value))
        if isinstance(target, ast.Name):
            return self._assign(target, value)
        store = ast.Subscript(load.value, load.slice, ast.Store())
        return [*before, self._store(store, value)]

    def visit_Assign(self, node: ast.Assign) -> Any:
        targets, value = node.targets, node.value
        if len(targets) == 1 and isinstance(targets[0], ast.Name | ast.Attribute | ast.Subscript):
            return self._assign(targets[0], self.visit(value))
        if len(targets) > 1 and any(isinstance(each, ast.Tuple | ast.List) for each in targets):
            self.refuse(node, f"`{ast.unparse(node)}` is not compiled", "one assignment a line")
        lines: list[Any] = []
        names: list[str] = []
        for target in targets:
            pairs: list[Any] = [(target, value)]
            if isinstance(target, ast.Tuple | ast.List):
                if not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != len(target.elts):
                    self.refuse(node, f"`{ast.unparse(node)}` is not compiled", "as many values as targets")
                pairs = list(zip(target.elts, value.elts, strict=True))
            held = [self._temporary() for _ in pairs]
            if not lines:  # every value is computed before anything is assigned
                names, lines = held, [
                    ast.Assign([ast.Name(at, ast.Store())], self.visit(each))
                    for at, (_, each) in zip(held, pairs, strict=True)
                ]
            lines += [line for at, (to, _) in zip(names, pairs, strict=True) for line in self._assign(to, _name(at))]
        return lines

    def visit_Return(self, node: ast.Return) -> Any:
        value = node.value
        if isinstance(value, ast.IfExp):
            parts = ([ast.copy_location(ast.Return(each), node)] for each in (value.body, value.orelse))
            return self.visit(ast.copy_location(ast.If(value.test, *parts), node))
        if self.returns == "code":
            return [*([] if value is None else [ast.Expr(self.visit(value))]), ast.Return(ast.Constant(0))]
        if value is None:
            self.refuse(node, "nothing is returned", "a number")
        if self.returns == "value" or not isinstance(value, ast.Dict):
            stated = self.visit(value)
            law = self.returns == "law"
            return ast.Return(_call("oc_atom", "oc_run", ast.Constant(0), stated, ast.Constant(1.0)) if law else stated)
        if self.returns != "law" or None in value.keys or not value.keys:
            self.refuse(node, f"`{ast.unparse(node)}` is not compiled", "a number, or of forecasts {value: weight, …}")
        self.whole.atoms = max(self.whole.atoms, len(value.keys))
        size: Any = ast.Constant(0)
        for atom, weight in zip(value.keys, value.values, strict=True):
            size = _call("oc_atom", "oc_run", size, self.visit(atom), self.visit(weight))
        return ast.Return(size)

    def visit_For(self, node: ast.For) -> Any:
        """Over range(…), self.xs or enumerate(self.xs)."""
        if node.orelse:
            self.refuse(node, "a loop with else is not compiled")
        over, target, count = node.iter, node.target, None
        kind = self._object(over.func) if isinstance(over, ast.Call) else None
        if kind is range and isinstance(over, ast.Call) and isinstance(target, ast.Name):
            return ast.For(target, self._calls(over, "range"), self._lines(node.body), [])
        if kind is enumerate and isinstance(target, ast.Tuple) and isinstance(over, ast.Call) and len(over.args) == 1:
            over, (count, target) = over.args[0], target.elts
        if not self._of(over, self.self) or not isinstance(target, ast.Name):
            self.refuse(node, f"a loop over `{ast.unparse(over)}`", "range(…), a list of self, or enumerate of one")
        array, kind, at = self._attribute(over)
        i = self._temporary()
        begin = [] if count is None else self._assign(count, _name(i))
        begin += self._assign(target, _entry(f"oc_{kind}", self._place(at, _name(i)), ast.Load()))
        turns = _call("range", _entry("oc_i", at + 1, ast.Load()))
        return ast.For(ast.Name(i, ast.Store()), turns, [*begin, *self._lines(node.body)], [])

    # ------------------------------------------------------------ parts

    def _lines(self, body: list[Any]) -> list[Any]:
        return [each for line in body for each in _listed(self.visit(line))] or [ast.Pass()]

    def _assign(self, target: Any, value: Any) -> list[Any]:
        if isinstance(target, ast.Name):
            if target.id in (self.self, self.round):
                self.refuse(target, f"`{target.id}` is assigned", "another name")
            return [ast.Assign([target], value)]
        if isinstance(target, ast.Attribute) and self._of(target, self.self) and self._attribute(target)[0]:
            self.refuse(target, f"self.{target.attr} becomes another list", "its entries assigned one by one")
        store = self.visit(target)
        if not isinstance(store, ast.Subscript):
            self.refuse(target, f"`{ast.unparse(target)}` is assigned", "an attribute of self, or a name")
        return [self._store(store, value)]

    def _store(self, store: ast.Subscript, value: Any) -> Any:
        real = isinstance(store.value, ast.Name) and store.value.id == "oc_f"
        return ast.Assign([store], value if real else _call("oc_whole", value))

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
            self.refuse(node, f"`{ast.unparse(node)}` is not compiled", "an attribute of self")
        kind, name = self.whole.kinds.get(node.attr, ""), node.attr
        if not kind:
            why = self.whole.kinds.get("!" + name, "is not made in __init__")
            fixed = "a number, or a list of numbers of fixed length, made in __init__"
            self.refuse(node, f"self.{name} {why}", _RANDOM if "random" in why else fixed)
        return kind.endswith("s"), kind[0], self.whole.place(name, kind)

    def _place(self, at: int, index: Any) -> ast.Call:
        start, length = (_entry("oc_i", each, ast.Load()) for each in (at, at + 1))
        return _call("oc_place", start, length, index)

    def _local(self, node: ast.Name) -> bool:
        return isinstance(node.ctx, ast.Store) or node.id in self.function.__code__.co_varnames

    def _constant(self, node: Any) -> Any:
        value = self._object(node)
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(value, int | float):
            self.refuse(node, f"`{ast.unparse(node)}` is not compiled", "numbers, and attributes of self")
        return self.visit_Constant(ast.copy_location(ast.Constant(value), node))

    def _object(self, node: Any) -> Any:
        """What a name means outside of the function, or an attribute of a module or class; None for anything else."""
        if isinstance(node, ast.Attribute):
            home = self._object(node.value)
            return getattr(home, node.attr, None) if isinstance(home, ModuleType | type) else None
        if not isinstance(node, ast.Name) or self._local(node):
            return None
        held = inspect.getclosurevars(self.function)
        return {**vars(builtins), **self.function.__globals__, **held.nonlocals}.get(node.id)


def _loaded(target: Any) -> Any:
    fields = {name: value for name, value in ast.iter_fields(target) if name != "ctx"}
    return type(target)(**fields, ctx=ast.Load())


def source(function: FunctionType, called: str) -> tuple[str, int]:
    """The text of a function, and the number of its first line; they go with it where it is sent."""
    if not hasattr(function, "oc_source"):
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise InvalidParameter(f"{called}: its source cannot be read; expected it in a file") from None
        function.oc_source = "".join(lines), first  # type: ignore[attr-defined]
    return function.oc_source  # type: ignore[attr-defined, no-any-return]
