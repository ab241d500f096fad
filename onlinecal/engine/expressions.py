"""Expressions of plain methods in compiled code. What has no rule is refused with its line.

With each expression goes what its number may be in Python.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from enum import IntFlag
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.arithmetic import EXACT, TO_REAL, TO_TRUTH, TO_WHOLE
from onlinecal.engine.written import NOWHERE, meaning, plain_number


class Kind(IntFlag):
    """The kinds that a number may have in Python; compiled it is real if it may be. Real and whole: *mixed*."""

    NONE, TRUTH, WHOLE, REAL = 0, 1, 2, 4


NONE, TRUTH, WHOLE, REAL = Kind.NONE, Kind.TRUTH, Kind.WHOLE, Kind.REAL
NUMBERS = "numbers, lists of fixed length, if, for and while"
RANDOM = "randomness of the run, from an argument `stream`"
GROWING = {"append", "extend", "insert", "add", "appendleft", "setdefault", "pop", "popleft"}
#: operators, and those of whole and of mixed numbers that are functions of `arithmetic`
OPERATORS = {
    "Add": ("+", "add"), "Sub": ("-", "subtract"), "Mult": ("*", "multiply"), "Div": ("/", ""), "FloorDiv": ("//", ""),
    "Mod": ("%", ""), "Pow": ("**", "power"), "BitAnd": ("&", ""), "BitOr": ("|", ""), "BitXor": ("^", ""),
}  # fmt: skip
COMPARISONS = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}


class Held(NamedTuple):
    """An attribute: the kinds of its numbers, and whether it is a list, or an array. The stream of the run has none."""

    kind: Kind
    many: bool = False
    array: bool = False


class Code(NamedTuple):
    """An expression of compiled code, and what its number may be in Python."""

    text: str
    kind: Kind

    @property
    def real(self) -> str:
        """As the real number that is equal, or an error."""
        small = self.text.isdigit() and int(self.text) <= EXACT
        return f"{self.text}.0" if small else self.text if self.kind & REAL else f"oc_real({self.text})"

    @property
    def rounded(self) -> str:
        """As a real number, as Python's float(…) makes one."""
        return self.text if self.kind & REAL else f"oc_rounded({self.text})"

    @property
    def whole(self) -> str:
        """As a whole number, where it is a truth value."""
        return f"oc_whole({self.text})" if self.kind == TRUTH else self.text

    def to(self, kind: Kind) -> str:
        """As a number of a wider kind."""
        return self.real if kind & REAL else self.whole if kind & WHOLE else self.text


class Place(NamedTuple):
    """Where a number of the state is: in `oc_f`, the real ones, or `oc_i`; and of which attribute."""

    array: str
    at: str
    name: str
    kind: Kind

    @property
    def code(self) -> Code:
        """The number that is there."""
        return Code(f"{self.array}[{self.at}]", self.kind)


class Expressions:
    """The rules `of_…` of expressions in a method (`own`) or function; `whole` is the translation of the class."""

    self: str | None
    round: str | None

    def __init__(self, whole: Any, function: Any, own: bool) -> None:
        self.whole, self.function, self.own = whole, function, own
        self.called = f"{whole.cls.__name__}." * own + function.__name__
        #: the names that surely have a value here; None where no path leads
        self.known: set[str] | None = None

    def refuse(self, node: Any, what: str = "", expected: str = NUMBERS) -> NoReturn:
        """Refuses a construct."""
        if not what:
            text = ast.unparse(node)
            line = text.partition("\n")[0][:60]
            what = f"`{line}{' …' * (line != text)}` is not compiled"
        raise InvalidParameter(f"{self.called}, line {node.lineno}: {what}; expected {expected}")

    def of(self, node: Any) -> Code:
        """Translates an expression."""
        rule = getattr(self, f"of_{type(node).__name__}", None)
        if rule is None:
            self.refuse(node)
        code: Code = rule(node)
        return code

    # ------------------------------------------------------------ numbers and names

    def of_Constant(self, node: ast.Constant) -> Code:
        if not isinstance(node.value, int | float):
            self.refuse(node, f"{node.value!r} is no number", "a number, such as -1 or math.nan")
        return self.number(node.value, node)

    def number(self, value: Any, node: Any) -> Code:
        """A number in place of an expression; anything else is refused there."""
        if isinstance(value, np.int64 | np.float64):
            value, self.whole.strict = value.item(), True
        for kind, of in ((TRUTH, bool), (WHOLE, int), (REAL, float)):
            if plain_number(value, of) and (kind != WHOLE or abs(value) < 2**63):
                text = repr(of(value)).lstrip("-")
                text = f"oc_{text}" if text in ("inf", "nan") else text
                return Code(f"(-{text})" if repr(of(value))[0] == "-" else text, kind)
        self.refuse(node, expected="numbers, and attributes of self")

    def of_Name(self, node: ast.Name) -> Code:
        if node.id in (self.self, self.round):
            self.refuse(node, f"`{node.id}` by itself is not compiled", "its attributes")
        if not self.local(node):
            return self.number(self.object(node), node)
        if node.id not in (self.known or ()):
            expected = "one on every path, such as before the `if` or loop"
            self.refuse(node, f"`{node.id}` may have no value here", expected)
        return Code(node.id, self.whole.kinds.get((self.function, node.id), NONE))

    def local(self, node: ast.Name) -> bool:
        """Whether a name is one of the function."""
        return node.id in self.function.__code__.co_varnames

    def object(self, node: Any) -> Any:
        """The meaning of a name outside the function, or an attribute of a module or class; else None."""
        path: list[str] = []
        while isinstance(node, ast.Attribute):
            path, node = [node.attr, *path], node.value
        if not isinstance(node, ast.Name) or self.local(node):
            return None
        if meaning(self.function, (node.id,)) is NOWHERE:
            here = "it above the class, or oc.compiled(…) called below both"
            self.refuse(node, f"`{node.id}` is not defined yet where oc.compiled is called", here)
        found = meaning(self.function, (node.id, *path))
        return None if found is NOWHERE else found

    # ------------------------------------------------------------ attributes of the object and of the round

    def is_of(self, node: Any, name: str | None) -> bool:
        """Whether this is an attribute of that name."""
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name

    def attribute(self, node: Any) -> tuple[int, str, Held]:
        """The place of an attribute of the object, in which array it or its entries are, and what it is."""
        if not self.is_of(node, self.self):
            self.refuse(node, expected="an attribute of self")
        name, cls = node.attr, self.whole.cls
        if cls.__getattribute__ is not object.__getattribute__:
            self.refuse(node, f"{cls.__name__} has a __getattribute__, which is not compiled", "none")
        held = self.whole.held.get(name, "is not made in __init__")
        if isinstance(held, str) or not held.kind:
            why = held if isinstance(held, str) else "is a stream"
            fixed = "a number, or a list of numbers of fixed length, made in __init__"
            self.refuse(node, f"self.{name} {why}", RANDOM if "random" in why else fixed)
        kind = self.whole.kinds[name]
        return self.whole.place(name, held.many), "oc_f" if kind & REAL else "oc_i", held._replace(kind=kind)

    def list_(self, node: Any) -> tuple[int, str, Held]:
        """The same of one that is a list."""
        at, array, held = self.attribute(node)
        if not held.many:
            self.refuse(node, expected="a list that is an attribute")
        return at, array, held

    def place(self, node: Any) -> Place:
        """The place of an attribute that is a number, or of an entry."""
        if not isinstance(node, ast.Subscript):
            at, array, held = self.attribute(node)
            if held.many:
                expected = "its entries, len() of it, or a loop over it"
                self.refuse(node, f"the whole list self.{node.attr}", expected)
            return Place(array, str(at), node.attr, held.kind)
        if isinstance(node.slice, ast.Slice) or not self.is_of(node.value, self.self):
            self.refuse(node, expected="one entry of a list that is an attribute")
        at, array, held = self.list_(node.value)
        return Place(array, f"oc_entry(oc_i, {at}, {self.index(node.slice)})", node.value.attr, held.kind)  # type: ignore[attr-defined]

    def index(self, node: Any) -> str:
        """A whole number."""
        code = self.of(node)
        if code.kind & REAL:
            self.refuse(node, f"`{ast.unparse(node)}` may be a real number", "a whole one, such as int(…)")
        self.counted(node, code)
        return code.whole

    def of_Attribute(self, node: ast.Attribute) -> Code:
        if self.is_of(node, self.self):
            return self.place(node).code
        if not self.is_of(node, self.round):
            return self.number(self.object(node), node)
        if node.attr not in self.whole.shown:
            known = " and ".join(f"round.{each}" for each in self.whole.shown)
            self.refuse(node, f"round.{node.attr} is not compiled", f"{known}, which its sight allows")
        return Code(self.whole.shown[node.attr], WHOLE if node.attr == "number" else REAL)

    def of_Subscript(self, node: ast.Subscript) -> Code:
        if not (self.is_of(node.value, self.round) and node.value.attr == "context"):  # type: ignore[attr-defined]
            return self.place(node).code
        kind, kinds = getattr(node.slice, "value", None), self.whole.contexts
        if kind not in kinds:
            self.refuse(node, expected=f"one of what the class needs: {', '.join(kinds) or 'nothing'}")
        return Code(f"oc_note(oc_run)[{kinds.index(kind)}]", REAL)

    # ------------------------------------------------------------ arithmetic

    def counted(self, node: Any, *codes: Code) -> None:
        """Refuses comparisons as numbers where they may be of NumPy."""
        if self.whole.strict and all(code.kind & TRUTH for code in codes):
            what = "a number is a comparison, which NumPy adds and indexes in another way than Python"
            self.refuse(node, what, "int(…) around it")

    def of_BinOp(self, node: ast.BinOp) -> Code:
        return self.operate(node, node.op, self.of(node.left), node.right)

    def operate(self, node: Any, operator: ast.operator, a: Code, right: Any) -> Code:
        """The result of an operator."""
        kind = type(operator).__name__
        if kind not in OPERATORS:
            self.refuse(node, f"the operator {kind} is not compiled", "+, -, *, /, //, % or **")
        b, (sign, name) = self.of(right), OPERATORS[kind]
        real = bool((a.kind | b.kind) & REAL)
        if kind.startswith("Bit"):
            if real:
                self.refuse(node, f"{sign} of a real number", "whole ones")
            of = a.kind | b.kind
            return Code(f"({a.to(of)} {sign} {b.to(of)})", of if of == TRUTH else WHOLE)
        self.counted(node, a, b)
        # A negative power of a whole number is a real one.
        real = real or (kind == "Pow" and isinstance(right, ast.UnaryOp) and isinstance(right.op, ast.USub))
        if kind != "Div" and not real:
            return Code(f"oc_{name}({a.text}, {b.text})" if name else f"({a.whole} {sign} {b.whole})", WHOLE)
        both = all(each.kind & (TRUTH | WHOLE) for each in (a, b))  # may be whole, and so the result
        one, two = (each.real if both else each.rounded for each in (a, b))
        mixed = both and kind != "Div"
        result = REAL | WHOLE if mixed else REAL
        if name and (mixed or kind == "Pow"):
            return Code(f"oc_{name}_{'mixed' if mixed else 'real'}({one}, {two})", result)
        return Code(f"({one} {sign} {two})", result)

    def of_UnaryOp(self, node: ast.UnaryOp) -> Code:
        code = self.of(node.operand)
        if isinstance(node.op, ast.Not):
            return Code(f"(not {code.text})", TRUTH)
        if isinstance(node.op, ast.Invert):
            self.refuse(node)
        self.counted(node, code)
        sign = "-" if isinstance(node.op, ast.USub) else "+"
        return Code(
            f"({sign}{code.whole})", code.kind & REAL | (WHOLE if code.kind & (TRUTH | WHOLE) else NONE)
        )

    def one_of(self, nodes: list[Any]) -> tuple[Kind, list[str]]:
        """Expressions of which one is chosen, all of one kind."""
        codes, kind = [self.of(each) for each in nodes], NONE
        for code in codes:
            kind |= code.kind
        return kind, [code.to(kind) for code in codes]

    def of_Compare(self, node: ast.Compare) -> Code:
        """Python compares whole and real numbers without rounding."""
        signs = [COMPARISONS.get(type(each).__name__) for each in node.ops]
        if None in signs:
            self.refuse(node)
        _, (first, *others) = self.one_of([node.left, *node.comparators])
        rest = (f" {sign} {other}" for sign, other in zip(signs, others, strict=True))
        return Code(f"({first}{''.join(rest)})", TRUTH)

    def of_BoolOp(self, node: ast.BoolOp) -> Code:
        kind, texts = self.one_of(node.values)
        return Code(f"({(' and ' if isinstance(node.op, ast.And) else ' or ').join(texts)})", kind)

    def of_IfExp(self, node: ast.IfExp) -> Code:
        test, (kind, (one, two)) = self.of(node.test).text, self.one_of([node.body, node.orelse])
        return Code(f"({one} if {test} else {two})", kind)

    # ------------------------------------------------------------ calls

    def of_Call(self, node: ast.Call) -> Code:
        said, function, many = ast.unparse(node.func), node.func, len(node.args)
        if isinstance(function, ast.Attribute) and self.is_of(function, self.self):
            thing = inspect.getattr_static(self.whole.cls, function.attr, None)
            if isinstance(why := self.whole.held.get(function.attr), str):
                self.refuse(node, f"{said} {why}", "a method of the class")
            if not isinstance(thing, FunctionType):
                self.refuse(node, f"{said} is no plain method of the class", "one")
            return self.call(node, thing, True)
        if isinstance(function, ast.Attribute) and self.is_of(function.value, self.self):
            return self.of_attribute(node, function)
        thing = self.object(function)
        home = getattr(thing, "__module__", None) or ""
        if "random" in f"{home} {said}":
            self.refuse(node, f"{said}() draws at random", RANDOM)
        if isinstance(thing, FunctionType) and not home.startswith("numpy"):
            return self.call(node, thing, False)
        if thing is len and many == 1 and self.is_of(node.args[0], self.self):
            return Code(f"oc_i[{self.list_(node.args[0])[0] + 1}]", WHOLE)
        if node.keywords:
            thing = None
        if thing in (min, max) and many > 1:
            kind, (text, *others) = self.one_of(node.args)
            for other in others:
                text = f"oc_{'smaller' if thing is min else 'larger'}({text}, {other})"
            return Code(text, kind)
        if thing is math.copysign and many == 2:
            one, two = (self.of(each).rounded for each in node.args)
            return Code(f"oc_copysign({one}, {two})", REAL)
        known = thing in (abs, bool, float, math.fabs) or any(
            thing in each for each in (TO_WHOLE, TO_REAL, TO_TRUTH)
        )
        if not known or many != 1:
            for each in node.args:  # a fault in them is said first
                self.of(each)
            expected = "functions of math, methods of the class, or your own"
            self.refuse(node, f"{said}() is not compiled", expected)
        return self.of_one(thing, self.of(node.args[0]))

    def of_one(self, thing: Any, code: Code) -> Code:
        """A function of Python of one number."""
        if thing is abs:
            return Code(f"oc_abs({code.whole})", code.kind if code.kind & REAL else code.kind | WHOLE)
        if thing is builtins.bool:
            return Code(f"({code.text} != 0)", TRUTH)
        if thing is float:
            return Code(code.rounded, REAL)
        if thing in TO_WHOLE and not code.kind & REAL:
            return Code(code.whole, WHOLE)
        kind = WHOLE if thing in TO_WHOLE else TRUTH if thing in TO_TRUTH else REAL
        return Code(f"oc_{thing.__name__}({code.rounded})", kind)

    def of_attribute(self, node: ast.Call, method: Any) -> Code:
        """A method of an attribute: a number of the stream; other methods are refused."""
        held = self.whole.held.get(method.value.attr)
        if isinstance(held, Held) and not held.kind and method.attr == "uniform" and len(node.args) == 1:
            return Code(f"oc_number_of_stream(oc_run, {self.index(node.args[0])})", REAL)
        if method.attr not in vars(list):
            self.attribute(method.value)
        grows = f"a list that grows ({method.attr}) has no fixed size"
        why = grows if method.attr in GROWING else f"{ast.unparse(method)}() is not compiled"
        self.refuse(node, why, "a list of fixed length, made in __init__, and its entries")

    def call(self, node: ast.Call, function: FunctionType, own: bool) -> Code:
        """A call of a function or method of the user's."""
        name, said = self.whole.called(function, own), ast.unparse(node.func)
        if not name:
            self.refuse(node, f"{said}() is called by what it calls itself", "a loop")
        given = {each.arg or "**": self.of(each.value) for each in node.keywords}
        try:
            bound = inspect.signature(function).bind(*[None] * own, *map(self.of, node.args), **given)
        except TypeError as error:
            self.refuse(node, f"{said}(): {error}", "its arguments")
        bound.apply_defaults()  # their values since the function was defined
        texts = ["oc_run"] * own
        for each, value in list(bound.arguments.items())[own:]:
            code = value if isinstance(value, Code) else self.number(value, node)
            texts.append(code.to(self.whole.widen((function, each), code.kind)))
        return Code(f"{name}({', '.join(texts)})", self.whole.kinds.get((function, None), NONE))
