"""Reads the methods of plain classes, and refuses with its line what would play in another way compiled.

The rest is compiled as it is written. Exceptions are calls, powers, stated laws, and values of whole attributes.
"""

from __future__ import annotations

import ast
import builtins
import copy
import enum
import inspect
import textwrap
from types import FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.streams import Stream
from onlinecal.engine.replaced import CALLS, TAKES, TRUTHS, atom, fit, number, power
from onlinecal.engine.run import note

#: syntax that is compiled as it is written
AS_WRITTEN = (
    ast.If, ast.While, ast.Break, ast.Continue, ast.Pass, ast.Expr, ast.IfExp, ast.BoolOp, ast.boolop,
    ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr, ast.BitXor,
    ast.Load, ast.Store,
)  # fmt: skip
NUMBERS = "numbers, lists of fixed length, if, for and while"
CALLED = "lists of fixed length, functions of math, methods of the class, your own functions, or self.stream.uniform(i)"
#: the meaning of a name that has none
NOWHERE = object()


def is_number(value: Any, kinds: Any) -> bool:
    """Whether a value is of one of these kinds with its arithmetic; also of an enumeration."""
    return type(value) in kinds or (isinstance(value, (int, float)) and isinstance(value, enum.Enum))


def source(function: Any, label: str) -> tuple[str, int]:
    """The text of a function, and the number of its first line; they go with it where it is sent."""
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        raise InvalidParameter(f"{label} is no plain function; expected one by itself")
    known = getattr(function, "oc_source", None)
    if known is None or known[2] is not function.__code__:  # as where a notebook has put new code into it
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise InvalidParameter(f"{label}: its source cannot be read; expected it in a file") from None
        known = "".join(lines), first, function.__code__
        function.oc_source = known  # type: ignore[attr-defined]
    return known[:2]


def outside(function: Any, path: tuple[str, ...]) -> Any:
    """The meaning, now, of a name outside of a function, or of an attribute of such a module or class."""
    first, *rest = path
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    try:
        found = cells[first].cell_contents if first in cells else function.__globals__[first]
    except ValueError:  # nothing yet
        return NOWHERE
    except KeyError:
        found = getattr(builtins, first, NOWHERE)
    for name in rest:
        found = getattr(found, name, NOWHERE) if isinstance(found, ModuleType | type) else NOWHERE
    return found


def call(name: str, *given: Any) -> Any:
    """The call of a function of compiled code."""
    return ast.Call(ast.Name(name, ast.Load()), list(given), [])


def stores(node: Any) -> set[str]:
    """The names that get a value."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def both(one: set[str] | None, two: set[str] | None) -> set[str] | None:
    """The names that are known on both of two paths; None is one that ends before."""
    return two if one is None else one if two is None else one & two


class Method(ast.NodeTransformer):
    """A method (`own`) or function that is read for a record.

    `step` is what a game takes from it: a law, q, or nothing ("heard"). `told` are its arguments before a round.
    """

    def __init__(self, record: Any, function: Any, own: bool, step: str = "", told: int = 0) -> None:
        self.record, self.function, self.step = record, function, step
        self.label = f"{record.cls.__name__}." * own + getattr(function, "__name__", repr(function))
        text, first = source(function, self.label)
        tree: Any = ast.increment_lineno(ast.parse(textwrap.dedent(text)), first - 1).body[0]
        code: Any = record.look(getattr, function, "__code__")
        defaults = record.look(getattr, function, "__defaults__") or ()
        many = code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        if many or not isinstance(tree, ast.FunctionDef):
            self.refuse(tree, "no plain function", "one that begins with def, without * and **")
        if not all(is_number(each, (int, float)) for each in defaults) or (step and defaults):
            self.refuse(tree, f"defaults {defaults!r}", "numbers, and none of a method that a game calls")
        for name in code.co_varnames:
            if name.startswith("oc_"):  # as names of compiled code do
                self.refuse(tree, f"the name `{name}`", "one that does not begin with oc_")
        given, names = tree.args, list(code.co_varnames[: code.co_argcount])
        self.locals = stores(tree) | set(names)
        self.me = names[0] if own and names else None
        self.round = names[1 + told] if step and len(names) > 1 + told else None
        home = function.__qualname__.split(".")[:-1]
        self.private = f"_{home[-1].lstrip('_')}" if home else ""
        #: what compiled code knows by name
        self.space: dict[str, Any] = {
            "oc_power": power, "oc_fit": fit, "oc_atom": atom, "oc_number": number, "oc_note": note,
            "oc_real": CALLS[float],
        }  # fmt: skip
        self._look(tree)
        more = ["oc_run"] * own, ["oc_round"] * bool(step and not self.round)
        given.posonlyargs, given.defaults = [], [ast.Constant(each) for each in defaults]
        given.args = [ast.arg(each) for each in (*more[0], *names, *more[1])]
        tree.body, tree.returns, tree.decorator_list = [self.visit(each) for each in tree.body], None, []
        self.tree = ast.fix_missing_locations(ast.Module([tree], []))
        ends = {each.value is not None for each in ast.walk(tree) if isinstance(each, ast.Return)}
        if self._known(tree.body, set(names), []) is not None:
            ends.add(False)
        if len(ends) > 1 and step != "heard":
            self.refuse(tree, "it returns a number on one path only", "one on each")

    def refuse(self, node: Any, what: str = "", expected: str = NUMBERS) -> NoReturn:
        """Refuses a construct."""
        if not what:
            text = ast.unparse(node)
            line = text.partition("\n")[0][:60]
            what = f"`{line}{' …' * (line != text)}` is not compiled"
        raise InvalidParameter(f"{self.label}, line {node.lineno}: {what}; expected {expected}")

    def _look(self, tree: Any) -> None:
        """Finds where a truth value is only tested, and where a list stands for its entries."""
        self.tested, self.lists = set[Any](), set[Any]()
        for node in ast.walk(tree):
            if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
                self.tested.add(node.test)
            elif isinstance(node, ast.Expr):
                self.tested.add(node.value)
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                self.tested.add(node.operand)
            elif isinstance(node, ast.BoolOp) and node in self.tested:
                self.tested.update(node.values)
            elif isinstance(node, ast.Subscript):
                self.lists.add(node.value)
            elif isinstance(node, ast.For):
                self.lists.add(node.iter)
            elif isinstance(node, ast.Call):
                thing = self.meaning(node.func)
                (self.lists if thing is len or thing is enumerate else set()).update(node.args)
                self.tested.update(node.args if any(thing is each for each in (int, float, *TRUTHS)) else ())

    def _known(self, body: list[Any], known: set[str] | None, breaks: list[Any]) -> set[str] | None:
        """The names that have a value behind statements, None where these leave; refuses one that may have none.

        `breaks` gets those at each `break` of the loop around.
        """
        for node in body:
            if known is None:
                break
            head = getattr(node, "test", getattr(node, "iter", node))
            used = {
                n.id: n for n in ast.walk(head) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
            }
            for name in sorted(self.locals & used.keys() - known):
                expected = "one on every path, such as before the `if` or loop"
                self.refuse(used[name], f"`{name}` may have no value here", expected)
            if isinstance(node, ast.If):
                known = both(self._known(node.body, known, breaks), self._known(node.orelse, known, breaks))
            elif isinstance(node, ast.For | ast.While):
                inside, forever = list[Any](), isinstance(head, ast.Constant) and head.value
                self._known(node.body, known | stores(getattr(node, "target", head)), inside)
                known = self._known(node.orelse, None if forever else known, breaks)
                for each in inside:
                    known = both(known, each)
            elif isinstance(node, ast.Break | ast.Continue | ast.Return | ast.Raise):
                breaks += [known] * isinstance(node, ast.Break)
                known = None
            else:
                known = known | stores(node)
        return known

    # ------------------------------------------------------------ names

    def meaning(self, node: Any) -> Any:
        """The meaning, now, of a name outside of the function, or of an attribute of such a module or class."""
        path = ast.unparse(node).split(".")
        if path[0] in self.locals or not all(each.isidentifier() for each in path):
            return NOWHERE
        head = self.record.look(outside, self.function, (path[0],))
        if head is NOWHERE and (len(path) > 1 or isinstance(node, ast.Name)):
            what = f"`{path[0]}` is not defined yet where oc.compiled is called"
            self.refuse(node, what, "it above the class, or where a game begins")
        return self.record.look(outside, self.function, tuple(path))

    def name(self, value: Any) -> Any:
        """A name of what compiled code uses."""
        name = f"oc_{len(self.space)}"
        self.space[name] = value
        return ast.Name(name, ast.Load())

    def named(self, node: Any) -> Any:
        """A number of the module, by its name."""
        value = self.meaning(node)
        if not is_number(value, (bool, int, float)) or (self.record.numpy and type(value) is bool):
            self.refuse(node, expected="numbers, and attributes of self")
        return self.name(value.value if isinstance(value, enum.Enum) else value)

    def is_me(self, node: Any) -> bool:
        """Whether a node is an attribute of the object, by its own name."""
        of = node.value if isinstance(node, ast.Attribute) else None
        mine = isinstance(of, ast.Name) and of.id == self.me is not None
        if mine and node.attr[:2] == "__" != node.attr[-2:]:
            node.attr = self.private + node.attr  # `self.__x` is another in each class
        return mine

    def visit_Name(self, node: Any) -> Any:
        if node.id in (self.me, self.round):
            self.refuse(node, f"`{node.id}` by itself is not compiled", "its attributes")
        return node if node.id in self.locals else self.named(node)

    def visit_Attribute(self, node: Any) -> Any:
        if self.is_me(node):
            held = self.record.held.get(node.attr, "is not made in __init__")
            if isinstance(held, str):
                fixed = "a number, or a list of fixed length, made in __init__; randomness from an argument `stream`"
                self.refuse(node, f"self.{node.attr} {held}", fixed)
            if held is Stream or (held.length is not None and node not in self.lists):
                what = f"the whole {'stream' if held is Stream else 'list'} self.{node.attr}"
                self.refuse(node, what, "its numbers: entries, len(…), a loop over it, uniform(i)")
            return node
        if isinstance(node.value, ast.Name) and node.value.id == self.round is not None:
            if node.attr not in self.record.shown:
                known = ", ".join(f"round.{each}" for each in self.record.shown)
                context = ", round.context['kind']" * bool(self.record.contexts)
                self.refuse(
                    node, f"round.{node.attr} is not compiled", f"{known}{context}, which its sight allows"
                )
            return node
        return self.named(node)

    def visit_Subscript(self, node: Any) -> Any:
        if ast.unparse(node.value) == f"{self.round}.context":
            kinds = self.record.contexts
            if getattr(node.slice, "value", None) not in kinds:
                self.refuse(node, expected=f"one of what the class needs: {', '.join(kinds) or 'nothing'}")
            node.value = call("oc_note", ast.Name("oc_run", ast.Load()))
            node.slice = ast.Constant(kinds.index(node.slice.value))
            return node
        true = self.is_truth(node.slice)
        node.value, node.slice = self.visit(node.value), self.visit(node.slice)
        if true:  # numba has no entry of a truth value
            node.slice = call("int", node.slice)
        return node

    # ------------------------------------------------------------ statements

    def generic_visit(self, node: Any) -> Any:
        if not isinstance(node, AS_WRITTEN):
            self.refuse(node)
        return super().generic_visit(node)

    def visit_Expr(self, node: Any) -> Any:
        return ast.Pass() if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Assert(self, node: Any) -> Any:
        return ast.Assert(self.visit(node.test))

    def visit_Raise(self, node: Any) -> Any:
        return ast.Raise(ast.Name("ValueError", ast.Load()))

    def visit_For(self, node: Any) -> Any:
        names, over = getattr(node.target, "elts", [node.target]), node.iter
        if not all(isinstance(each, ast.Name) for each in names):
            self.refuse(node, f"a loop of `{ast.unparse(node.target)}`", "a name, or two of enumerate")
        thing = self.meaning(over.func) if isinstance(over, ast.Call) and not over.keywords else None
        if thing is range or thing is enumerate:
            over.func, over.args = self.name(thing), [self.visit(each) for each in over.args]
        elif self.is_me(over):
            node.iter = self.visit(over)
        else:
            self.refuse(node, expected="a loop over range(…), a list of self, or enumerate of one")
        node.body, node.orelse = ([self.visit(each) for each in part] for part in (node.body, node.orelse))
        return node

    def visit_AnnAssign(self, node: Any) -> Any:
        made = ast.Assign([node.target], node.value) if node.value else ast.Pass()
        return self.visit(ast.copy_location(made, node))

    def visit_Assign(self, node: Any) -> Any:
        many = isinstance(node.value, ast.Tuple)
        values = [self.visit(each) for each in (node.value.elts if many else [node.value])]
        for target in node.targets:
            targets = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            if (targets != [target]) is not many or len(targets) != len(values):
                self.refuse(target, expected="as many values as targets")
            values = [self.store(*each) for each in zip(targets, values, strict=True)]
        node.value = ast.Tuple(values, ast.Load()) if many else values[0]
        return node

    def visit_AugAssign(self, node: Any) -> Any:
        if isinstance(node.target, ast.Subscript):  # its index is computed once
            if isinstance(node.op, ast.Pow):
                self.refuse(node)
            value = self.visit(node.value)
            node.value = self.store(
                node.target, call("oc_real", value) if isinstance(node.op, ast.Div) else value
            )
            return node
        before = copy.deepcopy(node.target)
        before.ctx = ast.Load()
        value = ast.copy_location(ast.BinOp(before, node.op, node.value), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], value), node))

    def store(self, target: Any, value: Any) -> Any:
        """The value that is stored in a target, which is looked at."""
        self.visit(target)
        place: Any = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(target, ast.Name):
            return value
        if not self.is_me(place):
            self.refuse(target, f"`{ast.unparse(target)}` is assigned", "an attribute of self, or a name")
        cls = self.record.cls
        if place is not target:
            self.record.stored.setdefault(place.attr, f"{self.label}, line {target.lineno}")
        elif self.record.look(getattr, cls, "__setattr__") is not object.__setattr__:
            self.refuse(target, f"{cls.__name__} has a __setattr__, which is not compiled", "none")
        held = self.record.held[place.attr]
        return call("oc_fit", value, ast.Constant(place.attr)) if held.kind is np.int64 else value

    def visit_Return(self, node: Any) -> Any:
        if node.value is not None:
            node.value = self.law(node.value) if self.step == "law" else self.visit(node.value)
        return node

    def law(self, value: Any) -> Any:
        """The expression that writes a law, and is its size."""
        if isinstance(value, ast.IfExp):
            return ast.IfExp(self.visit(value.test), self.law(value.body), self.law(value.orelse))
        atoms: list[Any] = [(value, ast.Constant(1.0))]
        if isinstance(value, ast.Dict):
            atoms = list(zip(value.keys, value.values, strict=True))
            if None in value.keys or not atoms:
                self.refuse(value, expected="a number, or {value: weight, …}")
        size: Any = ast.Constant(0)
        for each in atoms:
            size = call("oc_atom", ast.Name("oc_run", ast.Load()), size, *map(self.visit, each))
        self.record.atoms = max(self.record.atoms, len(atoms))
        return size

    # ------------------------------------------------------------ expressions

    def is_truth(self, node: Any) -> bool:
        """Whether a value is that of a comparison, or another truth value."""
        if isinstance(node, ast.Call):
            return any(self.meaning(node.func) is each for each in TRUTHS)
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        return isinstance(node, ast.Compare) or negated or isinstance(getattr(node, "value", None), bool)

    def visit(self, node: Any) -> Any:
        """The node that is compiled in place of this one."""
        operators = *getattr(node, "ops", ()), getattr(node, "op", ast.Add())
        if not all(isinstance(each, AS_WRITTEN) for each in operators):
            self.refuse(node)
        if self.record.numpy and node not in self.tested and self.is_truth(node):
            what = "a number is a comparison, which NumPy adds and indexes in another way than Python"
            self.refuse(node, what, "int(…) around it")
        return super().visit(node)

    def visit_Constant(self, node: Any) -> Any:
        if type(node.value) not in (bool, int, float):
            self.refuse(node, f"{node.value!r} is no number", "a number, such as -1 or math.nan")
        return node

    def visit_BinOp(self, node: Any) -> Any:
        negative = isinstance(node.right, ast.UnaryOp) and isinstance(node.right.op, ast.USub)
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        if not isinstance(node.op, ast.Pow):
            return node
        # A negative power of a whole number is a real one.
        return call("oc_power", call("oc_real", node.left) if negative else node.left, node.right)

    def visit_Call(self, node: Any) -> Any:
        function, thing = node.func, self.meaning(node.func)
        own, run = self.is_me(function), ast.Name("oc_run", ast.Load())
        of: Any = function.value if isinstance(function, ast.Attribute) else None
        node.args = [self.visit(each) for each in node.args]
        for each in node.keywords:
            each.value = self.visit(each.value)
        if own:
            thing = self.record.look(inspect.getattr_static, self.record.cls, function.attr, None)
            if isinstance(why := self.record.held.get(function.attr), str):
                self.refuse(node, f"self.{function.attr} {why}", "a method of the class")
        elif (
            self.is_me(of)
            and self.record.held.get(of.attr) is Stream
            and function.attr == "uniform"
            and not node.keywords
        ):
            return call("oc_number", run, *node.args)
        if isinstance(thing, FunctionType) and (own or not (thing.__module__ or "").startswith("numpy")):
            if not self.record.read(thing, own) or any(each.arg is None for each in node.keywords):
                self.refuse(node, f"{ast.unparse(function)}() is called by what it calls itself", "a loop")
            node.func = self.name((thing, own, ""))
            node.args = [run, ast.Name(str(self.me), ast.Load())] * own + node.args
            return node
        few, most = TAKES.get(thing, (1, 0)) if callable(thing) else (1, 0)
        if node.keywords or not few <= len(node.args) <= most:
            self.refuse(node, f"{ast.unparse(function)}() is not compiled", CALLED)
        node.func = self.name(CALLS.get(thing, thing))
        return node
