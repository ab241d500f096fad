"""Methods of plain classes as functions of a run: `self.x` becomes a place in its memory, or the message why not."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.rounds.arithmetic import OPERATORS, place, whole
from onlinecal.rounds.expressions import Expressions, call_of, entry_of, listed, name_of
from onlinecal.rounds.steps import floats, ints, law_values, law_weights


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
        lines = [each for line in tree.body for each in listed(body.visit(line))]
        head.body = [*_parsed(begin, tree), *lines, *_parsed(end, tree)] or [ast.Pass()]
        self.trees[name] = ast.fix_missing_locations(head), function.__code__.co_filename


def _parsed(text: str, at: ast.stmt) -> list[Any]:
    """Statements that stand where another one does."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr | ast.arg):
            ast.copy_location(node, at)
    return tree.body


class _Body(Expressions):
    """Translates the body of a function."""

    def visit_Expr(self, node: ast.Expr) -> Any:
        return ast.Pass() if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        return ast.Raise(name_of("ValueError"), None)

    def visit_Assert(self, node: ast.Assert) -> Any:
        return ast.If(self.visit(node.test), [ast.Pass()], [ast.Raise(name_of("ValueError"), None)])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return ast.Pass() if node.value is None else self._assign(node.target, self.visit(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """The place of an entry is computed once."""
        target: Any = node.target
        load = self.visit(ast.copy_location(_loaded(target), target))
        before = []
        if isinstance(target, ast.Subscript):
            at = self._temporary()
            before, load.slice = [ast.Assign([ast.Name(at, ast.Store())], load.slice)], name_of(at)
        kind = type(node.op).__name__
        if kind not in OPERATORS:
            self.refuse(node, f"the operator {kind} is not compiled", "+, -, *, /, //, % or **")
        value = call_of(self.whole.called(OPERATORS[kind]), load, self.visit(node.value))
        if isinstance(target, ast.Name):
            return self._assign(target, value)
        store = ast.Subscript(load.value, load.slice, ast.Store())
        return [*before, self._store(store, value)]

    def visit_Assign(self, node: ast.Assign) -> Any:
        targets, value = node.targets, node.value
        for target in targets:
            self._settled(target)
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
                names, lines = (
                    held,
                    [
                        ast.Assign([ast.Name(at, ast.Store())], self.visit(each))
                        for at, (_, each) in zip(held, pairs, strict=True)
                    ],
                )
            lines += [
                line
                for at, (to, _) in zip(names, pairs, strict=True)
                for line in self._assign(to, name_of(at))
            ]
        return lines

    def visit_Return(self, node: ast.Return) -> Any:
        value = node.value
        if isinstance(value, ast.IfExp):
            parts: Any = ([ast.copy_location(ast.Return(each), node)] for each in (value.body, value.orelse))
            return self.visit(ast.copy_location(ast.If(value.test, *parts), node))
        if self.returns == "code":
            return [*([] if value is None else [ast.Expr(self.visit(value))]), ast.Return(ast.Constant(0))]
        if value is None:
            self.refuse(node, "nothing is returned", "a number")
        if self.returns == "value" or not isinstance(value, ast.Dict):
            stated = self.visit(value)
            law = self.returns == "law"
            return ast.Return(
                call_of("oc_atom", "oc_run", ast.Constant(0), stated, ast.Constant(1.0)) if law else stated
            )
        if self.returns != "law" or None in value.keys or not value.keys:
            self.refuse(
                node, f"`{ast.unparse(node)}` is not compiled", "a number, or of forecasts {value: weight, …}"
            )
        self.whole.atoms = max(self.whole.atoms, len(value.keys))
        size: Any = ast.Constant(0)
        for atom, weight in zip(value.keys, value.values, strict=True):
            size = call_of("oc_atom", "oc_run", size, self.visit(atom), self.visit(weight))
        return ast.Return(size)

    def visit_For(self, node: ast.For) -> Any:
        """Over range(…), self.xs or enumerate(self.xs)."""
        if node.orelse:
            self.refuse(node, "a loop with else is not compiled")
        over, target, count = node.iter, node.target, None
        kind = self._object(over.func) if isinstance(over, ast.Call) else None
        if kind is range and isinstance(over, ast.Call) and isinstance(target, ast.Name):
            return ast.For(target, self._calls(over, "range"), self._lines(node.body), [])
        if (
            kind is enumerate
            and isinstance(target, ast.Tuple)
            and isinstance(over, ast.Call)
            and len(over.args) == 1
        ):
            over, (count, target) = over.args[0], target.elts
        if not self._of(over, self.self) or not isinstance(target, ast.Name):
            self.refuse(
                node, f"a loop over `{ast.unparse(over)}`", "range(…), a list of self, or enumerate of one"
            )
        _, kind, at = self._attribute(over)
        i = self._temporary()
        begin = [] if count is None else self._assign(count, name_of(i))
        begin += self._assign(target, entry_of(f"oc_{kind}", self._place(at, name_of(i)), ast.Load()))
        turns = call_of("range", entry_of("oc_i", at + 1, ast.Load()))
        return ast.For(ast.Name(i, ast.Store()), turns, [*begin, *self._lines(node.body)], [])


def _loaded(target: Any) -> Any:
    fields = {name: value for name, value in ast.iter_fields(target) if name != "ctx"}
    return type(target)(**fields, ctx=ast.Load())
