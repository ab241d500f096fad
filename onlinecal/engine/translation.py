"""Methods of plain classes as functions of a run: their text, where an attribute is a place of its state.

A name of a function is of one kind in all of it: real if it may be real somewhere. The text is read again until no name
may be something more.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np
from numba import njit

from onlinecal.core.errors import InvalidParameter
from onlinecal.engine import arithmetic
from onlinecal.engine.arithmetic import HOW, TO_REAL, TO_TRUTH, TO_WHOLE
from onlinecal.engine.expressions import REAL, WHOLE, Code, Expressions, Held, Kind
from onlinecal.engine.run import note, state
from onlinecal.engine.steps import LEARN, MOVE, SAY
from onlinecal.engine.written import source

SIGNATURES = {"forecast": SAY, "probability": MOVE, "update": LEARN}
#: the meaning of names in the text
PARTS = ("real", "rounded", "whole", "add", "subtract", "multiply", "power", "add_mixed", "subtract_mixed",
         "multiply_mixed", "smaller", "larger", "entry", "atom", "number_of_stream")  # fmt: skip
SPACE = {
    "oc_state": state, "oc_note": note, "oc_int64": np.int64, "oc_range": range, "oc_abs": abs, "oc_Error": ValueError,
    "oc_inf": math.inf, "oc_nan": math.nan, "oc_fabs": math.fabs, "oc_copysign": math.copysign,
    **{f"oc_{name}": getattr(arithmetic, name) for name in PARTS},
    **{f"oc_{f.__name__}": made for f, made in (TO_WHOLE | TO_REAL | TO_TRUTH).items()},
}  # fmt: skip


@lru_cache(256)
def compiled_steps(text: str, *names: str) -> tuple[Any, ...]:
    """The steps of these names in a text, compiled once for all players that have it."""
    space = dict(SPACE)
    if "oc_power_" in text:
        space["oc_power_real"], space["oc_power_mixed"] = arithmetic.powers()
    exec(text, space)
    for name in re.findall(r"^def (oc_\w+)", text, re.MULTILINE):
        space[name] = njit(**HOW)(space[name])
    return tuple(njit(SIGNATURES[name], **HOW)(space[name]) for name in names)


class Translation:
    """The methods of a class, and the functions that they call, as one text.

    `held` are the attributes; a text says why one cannot be compiled. `strict`: some are numbers of NumPy. `shown` has
    the names in steps for attributes of a round. `contexts` are the kinds of its context in the order of the note.
    Attributes that are used have `places` in the state. A list has that of its beginning, with its length behind.
    """

    def __init__(
        self, cls: type, held: Mapping[str, Any], shown: Mapping[str, str], contexts: tuple[str, ...]
    ) -> None:
        self.cls, self.held, self.shown, self.contexts, self.strict = cls, held, shown, contexts, "!" in held
        self.places: dict[str, int] = {}
        #: the numbers of the state, but for lists; and the most atoms of a law
        self.size, self.atoms = 0, 1
        #: of attributes by name; of the names of functions, and of what they return (None)
        self.kinds: dict[Any, Kind] = {n: each.kind for n, each in held.items() if isinstance(each, Held)}
        self.texts: dict[Any, tuple[str, str]] = {}
        #: where an entry of an attribute is first assigned
        self.stored: dict[str, str] = {}

    def read(self, steps: Mapping[str, tuple[str, tuple[Code, ...], str]]) -> str:
        """The text of steps of these names, each with its arguments, those of the method, and what it returns."""
        before = None
        while before != (before := (dict(self.kinds), self.strict)):
            self.texts = {}
            for name, (given, told, returns) in steps.items():
                if isinstance(why := self.held.get(name), str):
                    raise InvalidParameter(
                        f"{self.cls.__name__}: {name} {why}; expected a method of the class"
                    )
                method = inspect.getattr_static(self.cls, name)
                self.texts[name] = name, Body(self, method, True, returns).step(given, told)
        return "\n".join(text for _, text in self.texts.values())

    def widen(self, key: Any, kind: Kind) -> Kind:
        """The kinds of a name, now that it may be this too."""
        self.kinds[key] = self.kinds.get(key, Kind.NONE) | kind
        return self.kinds[key]

    def called(self, function: Any, own: bool) -> str:
        """The name of a method (`own`) or function of the user's; none within itself."""
        if function not in self.texts:
            name = f"oc_{len(self.texts)}"
            self.texts[function] = name, ""
            self.texts[function] = name, Body(self, function, own, "value").function_(name)
        name, text = self.texts[function]
        return name if text else ""

    def place(self, name: str, many: bool) -> int:
        """Where an attribute is."""
        if name not in self.places:
            self.places[name], self.size = self.size, self.size + 1 + many
        return self.places[name]


class Body(Expressions):
    """Translates one method or function; `do_…` are the rules of statements."""

    def __init__(self, whole: Translation, function: Any, own: bool, returns: str) -> None:
        if not isinstance(function, FunctionType):
            raise InvalidParameter(
                f"{whole.cls.__name__}: {function!r} is no method; expected a plain function"
            )
        super().__init__(whole, function, own)
        self.returns, (text, first) = returns, source(function, self.called)
        tree: Any = ast.increment_lineno(ast.parse(textwrap.dedent(text)), first - 1).body[0]
        if not isinstance(tree, ast.FunctionDef):
            self.refuse(tree, "a function without a name", "one that begins with def")
        if tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs or tree.decorator_list:
            self.refuse(tree, "its arguments or decorators", "a plain function of some arguments")
        home = function.__qualname__.split(".")[:-1]
        for node in ast.walk(tree):
            name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
            if name.startswith("oc_"):  # as names of translated code do
                self.refuse(tree, f"the name `{name}`", "one that does not begin with oc_")
            if home and isinstance(node, ast.Attribute) and node.attr[:2] == "__" != node.attr[-2:]:
                node.attr = f"_{home[-1].lstrip('_')}{node.attr}"  # `self.__x` is another in each class
        self.tree, self.arguments = tree, [each.arg for each in (*tree.args.posonlyargs, *tree.args.args)]
        self.self, self.round = self.arguments[0] if own and self.arguments else None, None
        self.lines, self.depth, self.made, self.known = list[str](), 0, 0, set(self.arguments)
        #: the names that are known at each `break` of the loops around
        self.breaks: list[list[set[str] | None]] = []

    def step(self, given: str, told: tuple[Code, ...]) -> str:
        """The text of a step, which gives a method these arguments and maybe the round."""
        if self.tree.args.defaults:
            self.refuse(self.tree, "an argument with a default", "none")
        own = self.arguments[1:]
        self.round = own[-1] if len(own) > len(told) else None
        return self._text(self.tree.name, given, zip(own, told, strict=False))

    def function_(self, name: str) -> str:
        """The text of a function."""
        return self._text(name, ", ".join(["oc_run"] * self.own + self.arguments[self.own :]), ())

    def _text(self, name: str, given: str, told: Iterable[tuple[str, Code]]) -> str:
        self.put(f"def {name}({given}):")
        first = ["oc_f = oc_state(oc_run)", "oc_i = oc_f.view(oc_int64)"] * self.own
        for each, code in told:
            first.append(f"{each} = {code.to(self.whole.widen((self.function, each), code.kind))}")
        self.block(self.tree.body, first)
        if self.known is not None and self.returns == "code":
            self.put("  return 0")
        elif self.known is not None and (
            self.returns != "value" or (self.function, None) in self.whole.kinds
        ):
            self.put("  raise oc_Error")
        return "\n".join(self.lines) + "\n"

    # ------------------------------------------------------------ statements

    def put(self, text: str) -> None:
        """Writes a line."""
        self.lines.append("  " * self.depth + text)

    def block(self, body: list[Any], first: Iterable[str] = ("pass",)) -> None:
        """Translates statements up to one that leaves them, behind the `first` lines."""
        self.depth += 1
        for line in first:
            self.put(line)
        for node in body:
            if self.known is not None:
                rule = getattr(self, f"do_{type(node).__name__}", None)
                if rule is None:
                    self.refuse(node)
                rule(node)
        self.depth -= 1

    def do_Pass(self, node: ast.Pass) -> None:
        self.put("pass")

    def do_Expr(self, node: ast.Expr) -> None:
        self.put("pass" if isinstance(node.value, ast.Constant) else self.of(node.value).text)

    def do_Assert(self, node: ast.Assert) -> None:
        self.put(f"if not {self.of(node.test).text}: raise oc_Error")

    def do_Raise(self, node: ast.Raise) -> None:
        self.put("raise oc_Error")
        self.known = None

    def do_Break(self, node: ast.Break) -> None:
        self.put("break")
        self.breaks[-1].append(self.known)
        self.known = None

    def do_Continue(self, node: ast.Continue) -> None:
        self.put("continue")
        self.known = None

    def do_If(self, node: ast.If) -> None:
        self.put(f"if {self.of(node.test).text}:")
        before = self.known
        self.block(node.body)
        one, self.known = self.known, before
        self.put("else:")
        self.block(node.orelse)
        self.known = _both(one, self.known)

    def do_While(self, node: ast.While) -> None:
        self.put(f"while {self.of(node.test).text}:")
        forever = isinstance(node.test, ast.Constant) and node.test.value
        self._loop(node, None if forever else self.known)

    def _loop(self, node: Any, after: set[str] | None, first: Iterable[str] = ("pass",)) -> None:
        """Translates the body of a loop; `after` are the names that are known where it ends by itself."""
        if node.orelse:
            self.refuse(node, "a loop with else is not compiled")
        self.breaks.append([])
        self.block(node.body, first)
        self.known = after
        for known in self.breaks.pop():
            self.known = _both(self.known, known)

    def do_For(self, node: ast.For) -> None:
        """Over range(…), self.xs or enumerate(self.xs)."""
        over, names, turn = (
            node.iter,
            getattr(node.target, "elts", [node.target]),
            Code(self.temporary(), WHOLE),
        )
        if not all(isinstance(each, ast.Name) for each in names):
            self.refuse(node, f"a loop of `{ast.unparse(node.target)}`", "names")
        call = over if isinstance(over, ast.Call) and not over.keywords else None
        kind, values = self.object(call.func) if call else None, list[Code]()
        if call and kind is range:
            turns, values = ", ".join(self.index(each) for each in call.args), [turn]
        elif self.is_of(over, self.self) or (call and kind is enumerate and len(call.args) == 1):
            at, array, held = self.list_(call.args[0] if call else over)
            turns, entry = f"oc_i[{at + 1}]", Code(f"{array}[oc_i[{at}] + {turn.text}]", held.kind)
            values = [turn, entry] if call else [entry]
        if not values or len(values) != len(names):
            expected = "range(…), a list of self, or enumerate of one"
            self.refuse(node, f"a loop over `{ast.unparse(over)}`", expected)
        self.put(f"for {turn.text} in oc_range({turns}):")
        after, first = self.known, list[str]()
        for name, value in zip(names, values, strict=True):
            first.append(f"{name.id} = {value.to(self.whole.widen((self.function, name.id), value.kind))}")
        self.known = (self.known or set()) | {each.id for each in names}
        self._loop(node, after, first)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.of(node.value))

    def do_Assign(self, node: ast.Assign) -> None:
        (target, *more), value = node.targets, node.value
        if not more and not isinstance(target, ast.Tuple | ast.List):
            if self.is_of(target, self.self) and self.attribute(target)[2].many:
                what = f"{ast.unparse(target)} becomes another list"
                self.refuse(target, what, "its entries assigned one by one")
            self.assign(target, self.of(value))
            return
        codes = list[Code]()  # every value is computed before anything is assigned
        for each in value.elts if isinstance(value, ast.Tuple) else [value]:
            code = self.of(each)
            codes.append(Code(self.temporary(), code.kind))
            self.put(f"{codes[-1].text} = {code.text}")
        for target in node.targets:
            targets = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            if len(targets) != len(codes) or isinstance(value, ast.Tuple) is (targets == [target]):
                self.refuse(node, expected="as many values as targets")
            for each, code in zip(targets, codes, strict=True):
                self.assign(each, code)

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.assign(node.target, self.operate(node, node.op, self.of_Name(node.target), node.value))
            return
        place, index = self.place(node.target), self.temporary()  # of an entry, it is computed once
        self.put(f"{index} = {place.at}")
        place = place._replace(at=index)
        self.store(node.target, place, self.operate(node, node.op, place.code, node.value))

    def assign(self, target: Any, value: Code) -> None:
        """Assigns a value to a name, an attribute or an entry."""
        if isinstance(target, ast.Attribute | ast.Subscript):
            self.store(target, self.place(target), value)
            return
        if not isinstance(target, ast.Name) or not self.local(target) or target.id in (self.self, self.round):
            self.refuse(
                target, f"`{ast.unparse(target)}` is assigned", "an attribute of self, or another name"
            )
        self.put(f"{target.id} = {value.to(self.whole.widen((self.function, target.id), value.kind))}")
        self.known = (self.known or set()) | {target.id}

    def store(self, target: Any, place: Any, value: Code) -> None:
        """Assigns a value to a place of the state."""
        name, cls = place.name, self.whole.cls
        if isinstance(target, ast.Subscript):
            self.whole.stored.setdefault(name, f"{self.called}, line {target.lineno}")
        elif cls.__setattr__ is not object.__setattr__:
            self.refuse(target, f"{cls.__name__} has a __setattr__, which is not compiled", "none")
        if self.whole.held[name].array and value.kind & REAL and not place.kind & REAL:
            self.refuse(
                target, f"self.{name} is an array of whole numbers and gets a real one", "a whole one"
            )
        self.put(f"{place.code.text} = {value.to(self.whole.widen(name, value.kind) | WHOLE)}")

    def do_Return(self, node: ast.Return) -> None:
        if self.returns == "law" and node.value is not None:
            self.law(node, node.value)
        elif node.value is None or self.returns == "code":
            if self.returns in ("law", "q") or (self.function, None) in self.whole.kinds:
                self.refuse(node, "nothing is returned", "a number")
            self.put("pass" if node.value is None else self.of(node.value).text)
            self.put("return 0" if self.returns == "code" else "return")
        else:
            value = self.of(node.value)
            kind = REAL if self.returns == "q" else self.whole.widen((self.function, None), value.kind)
            self.put(f"return {value.to(kind)}")
        self.known = None

    def law(self, node: ast.Return, value: Any) -> None:
        """Returns the size of a law, which is written."""
        if isinstance(value, ast.IfExp):
            for head, each in ((f"if {self.of(value.test).text}:", value.body), ("else:", value.orelse)):
                self.put(head)
                self.depth += 1
                self.law(node, each)
                self.depth -= 1
            return
        atoms: list[Any] = [(value, None)]
        if isinstance(value, ast.Dict):
            atoms = list(zip(value.keys, value.values, strict=True))
            if None in value.keys or not atoms:
                self.refuse(node, expected="a number, or {value: weight, …}")
        self.whole.atoms, size = max(self.whole.atoms, len(atoms)), "0"
        for atom, weight in atoms:
            share = "1.0" if weight is None else self.of(weight).real
            size = f"oc_atom(oc_run, {size}, {self.of(atom).real}, {share})"
        self.put(f"return {size}")

    def temporary(self) -> str:
        """A new name."""
        self.made += 1
        return f"oc_t{self.made}"


def _both(one: set[str] | None, two: set[str] | None) -> set[str] | None:
    """The names that are known on both of two paths."""
    return two if one is None else one if two is None else one & two
