"""Values of functions that are compiled from their text: names, expressions, and arrays that are made."""

from __future__ import annotations

import ast
import builtins
import operator
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import NumbaError
from numba.core.extending import _Intrinsic
from numba.core.funcdesc import ExternalFunctionDescriptor
from numba.np.arrayobj import _empty_nd_impl

from onlinecal.core._compile import Kernel

_OPERATORS: dict[Any, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.BitAnd: operator.and_, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.Pow: operator.pow, ast.USub: operator.neg, ast.Invert: operator.invert,
}  # fmt: skip
#: calls that convert a number
_KINDS: dict[Any, Any] = {np.int64: types.int64, np.uint64: types.uint64, np.float64: types.float64}


class Unlisted(NumbaError):
    """Something that is left to numba."""


class Typed(NamedTuple):
    """A value of compiled code, of one of numba's types. Several values are a list."""

    kind: Any
    value: Any


def counts(line: Any) -> bool:
    return isinstance(line, ir.CallInstr) and getattr(line.callee, "name", "") in ("NRT_incref", "NRT_decref")


def unpacked(builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.BaseTuple):
        kinds: Any = kind
        return [unpacked(builder, each, builder.extract_value(value, i)) for i, each in enumerate(kinds)]
    return Typed(types.unliteral(kind), value)


class Within:
    """Numba's code for calls of the same types, and the arrays that were made: common to all calls within a function.

    Numba counts the owners of an array. Here an array has none, and the function gives back those that it made.
    """

    def __init__(self, context: Any, builder: Any) -> None:
        self.context, self.builder = context, builder
        self.found: dict[Any, Any] = {}
        self.made: list[Typed] = []
        #: lines that count arrays for numba, and not for the function
        self.kept = {id(line) for block in builder.function.blocks for line in block.instructions}
        #: loops around what is written now
        self.depth = 0

    def borrowed(self, kind: Any, value: Any) -> Any:
        """The same value, of an array without its owner."""
        if isinstance(kind, types.Array):
            array = self.context.make_array(kind)(self.context, self.builder, value)
            array.meminfo, array.parent = (part.type(None) for part in (array.meminfo, array.parent))
            value = array._getvalue()
        return unpacked(self.builder, kind, value)

    def new(self, zeros: bool, shape: list[Any], kind: Any) -> Any:
        """A new array; not in a loop, where there might be several."""
        if self.depth:
            raise Unlisted("an array in a loop")
        kind = types.Array(kind, len(shape), "C")
        array = _empty_nd_impl(self.context, self.builder, kind, [each.value for each in shape])
        if zeros:
            cgutils.memset(self.builder, array.data, self.builder.mul(array.itemsize, array.nitems), 0)
        value = array._getvalue()
        self.made.append(Typed(kind, cgutils.alloca_once(self.builder, value.type, zfill=True)))
        self.builder.store(value, self.made[-1].value)
        return self.borrowed(kind, value)

    def result(self, said: Any, kind: Any) -> Any:
        """The result as numba takes it: arrays that were made here with an owner."""
        said = self.packed(self.owned(said))
        value = self.context.cast(self.builder, said.value, said.kind, kind)
        for block in self.builder.function.blocks:
            # Without owners nothing is counted, which would take a call each time.
            block.instructions[:] = [
                line for line in block.instructions if id(line) in self.kept or not counts(line)
            ]
        self.context.nrt.incref(self.builder, kind, value)
        self.give_back(0)
        return value

    def give_back(self, first: int) -> None:
        """Gives back all arrays that were made but the first ones."""
        for kind, place in self.made[first:]:
            self.context.nrt.decref(self.builder, kind, self.builder.load(place))
            self.kept.add(id(self.builder.block.instructions[-1]))
        del self.made[first:]

    def owned(self, said: Any) -> Any:
        if isinstance(said, list):
            return [self.owned(each) for each in said]
        if not isinstance(said.kind, types.Array):
            return said
        array = self.context.make_array(said.kind)(self.context, self.builder, said.value)
        for kind, place in self.made:
            made = self.context.make_array(kind)(self.context, self.builder, self.builder.load(place))
            if made.data.type == array.data.type:
                same = self.builder.icmp_unsigned("==", array.data, made.data)
                array.meminfo = self.builder.select(same, made.meminfo, array.meminfo)
        return Typed(said.kind, array._getvalue())

    def packed(self, value: Any) -> Any:
        """Several values as numba's tuple."""
        if not isinstance(value, list):
            return value
        parts = [self.packed(each) for each in value]
        kind = types.BaseTuple.from_types(tuple(each.kind for each in parts))
        return Typed(kind, self.context.make_tuple(self.builder, kind, [each.value for each in parts]))


class Expressions(ABC):
    """The names of a function that is called, and what it computes of them. `assigned` are those that it assigns."""

    def __init__(
        self, within: Within, function: Callable[..., Any], given: list[Any], tree: Any, assigned: set[str]
    ) -> None:
        self.within, self.context, self.builder = within, within.context, within.builder
        self.tree, self.assigned = tree, assigned
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        inner = {name: cell.cell_contents for name, cell in cells}
        #: the meaning of names that are not its own
        self.known = ChainMap(inner, function.__globals__, vars(builtins))
        names = [each.arg for each in self.tree.args.args]
        missing = len(names) - len(given)
        defaults = (function.__defaults__ or ())[-missing:] if missing else ()
        given = [*given, *map(self.constant, defaults)]
        #: arguments that stay as they are, and the places of all other names
        self.fixed: dict[str, Any] = {}
        self.places: dict[str, Any] = {}
        for name, value in zip(names, given, strict=True):
            if name in self.assigned:
                self.assign(name, value)
            else:
                self.fixed[name] = value

    def block(self) -> Any:
        return self.builder.function.append_basic_block()

    # ---------------------------------------------------------------- names

    def load(self, place: Any) -> Any:
        if isinstance(place, list):
            return [self.load(each) for each in place]
        return Typed(place.kind, self.builder.load(place.value))

    def place(self, value: Any) -> Any:
        """Room for a value."""
        if isinstance(value, list):
            return [self.place(each) for each in value]
        kind = self.context.get_value_type(value.kind)
        return Typed(value.kind, cgutils.alloca_once(self.builder, kind))

    def store(self, value: Any, place: Any) -> None:
        if isinstance(value, list):
            if not isinstance(place, list) or len(place) != len(value):
                raise Unlisted(f"{place} becomes {value}")
            for each, to in zip(value, place, strict=True):
                self.store(each, to)
        elif isinstance(place, list) or place.kind != value.kind:
            raise Unlisted(f"{place} becomes {value}")
        else:
            self.builder.store(value.value, place.value)

    def assign(self, name: str, value: Any) -> None:
        if name not in self.places:
            self.places[name] = self.place(value)
        self.store(value, self.places[name])

    # ---------------------------------------------------------------- expressions

    def read(self, node: Any) -> Any:
        """The value of an expression."""
        return getattr(self, f"read_{type(node).__name__}")(node)

    def truth(self, node: Any) -> Any:
        value = self.read(node)
        return value.value if value.kind == types.boolean else self.context.is_true(self.builder, *value)

    def known_at(self, node: Any) -> Any:
        """The meaning of an expression where it does not depend on arguments; None for others."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.known_at(node.operand)
            return None if value is None else -value
        if isinstance(node, ast.Attribute):
            home = self.known_at(node.value)
            return getattr(home, node.attr, None) if isinstance(home, ModuleType) else None
        if isinstance(node, ast.Name) and node.id not in self.assigned and node.id not in self.fixed:
            return self.known.get(node.id)
        return None

    def constant(self, value: Any) -> Any:
        for types_of, kind in (
            ((bool, np.bool_), types.boolean), (np.uint64, types.uint64), ((int, np.int64), types.int64),
            ((float, np.float64), types.float64),
        ):  # fmt: skip
            if isinstance(value, types_of) and (kind != types.int64 or -(2**63) <= value < 2**63):
                return Typed(kind, self.context.get_constant(kind, value))
        if value is None or (isinstance(value, type) and issubclass(value, np.generic)):
            kind = self.context.typing_context.resolve_value_type(value)
            return Typed(kind, self.context.get_dummy_value())
        raise Unlisted(repr(value))

    def read_Constant(self, node: ast.Constant) -> Any:
        return self.constant(node.value)

    def read_Name(self, node: ast.Name) -> Any:
        if node.id in self.fixed:
            return self.fixed[node.id]
        if node.id in self.places:
            return self.load(self.places[node.id])
        if node.id in self.assigned or node.id not in self.known:
            raise Unlisted(f"{node.id}, which may have no value")
        return self.constant(self.known[node.id])

    def read_Attribute(self, node: ast.Attribute) -> Any:
        known = self.known_at(node)
        if known is not None:
            return self.constant(known)
        base = self.read(node.value)
        kind = self.context.typing_context.resolve_getattr(base.kind, node.attr)
        read = self.context.get_getattr(base.kind, node.attr)
        return unpacked(
            self.builder, kind, read(self.context, self.builder, base.kind, base.value, node.attr)
        )

    def read_Tuple(self, node: ast.Tuple) -> Any:
        return [self.read(each) for each in node.elts]

    def read_Subscript(self, node: ast.Subscript) -> Any:
        base = self.read(node.value)
        if isinstance(base, list):
            place = self.known_at(node.slice)
            if type(place) is not int:
                raise Unlisted(ast.unparse(node))
            return base[place]
        return self.call(operator.getitem, [base, self.read(node.slice)])

    def read_Slice(self, node: ast.Slice) -> Any:
        if node.step is not None:
            raise Unlisted(ast.unparse(node))
        none = ast.Constant(None)
        return self.call(slice, [self.read(node.lower or none), self.read(node.upper or none)])

    def read_BinOp(self, node: ast.BinOp) -> Any:
        return self.applied(node.op, self.read(node.left), self.read(node.right))

    def applied(self, op: Any, left: Any, right: Any) -> Any:
        return self.call(_OPERATORS[type(op)], [left, right])

    def read_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return Typed(types.boolean, self.builder.not_(self.truth(node.operand)))
        known = self.known_at(node)
        if isinstance(known, int | float):
            return self.constant(known)
        return self.call(_OPERATORS[type(node.op)], [self.read(node.operand)])

    def read_Compare(self, node: ast.Compare) -> Any:
        left = self.read(node.left)
        if isinstance(node.ops[0], ast.In):
            among = self.read(node.comparators[0])
            return self.either((self.applied(ast.Eq(), left, each) for each in among), False)

        def each() -> Iterator[Any]:
            before = left
            for op, node_ in zip(node.ops, node.comparators, strict=True):
                after = self.read(node_)
                yield self.applied(op, before, after)
                before = after

        return self.either(each(), True) if len(node.ops) > 1 else next(each())

    def read_BoolOp(self, node: ast.BoolOp) -> Any:
        return self.either(map(self.read, node.values), isinstance(node.op, ast.And))

    def either(self, values: Iterator[Any], all_: bool) -> Any:
        """Whether all of some values are true, or one is; each is computed if those before do not decide."""
        place, end = cgutils.alloca_once(self.builder, ir.IntType(1)), self.block()
        for value in values:
            if value.kind != types.boolean:
                raise Unlisted("a number as a truth value")
            self.builder.store(value.value, place)
            following = self.block()
            self.builder.cbranch(value.value, *((following, end) if all_ else (end, following)))
            self.builder.position_at_end(following)
        self.builder.branch(end)
        self.builder.position_at_end(end)
        return Typed(types.boolean, self.builder.load(place))

    def read_IfExp(self, node: ast.IfExp) -> Any:
        blocks, after, place = (self.block(), self.block()), self.block(), None
        self.builder.cbranch(self.truth(node.test), *blocks)
        for block, part in zip(blocks, (node.body, node.orelse), strict=True):
            self.builder.position_at_end(block)
            value = self.read(part)
            place = place or self.place(value)
            self.store(value, place)
            self.builder.branch(after)
        self.builder.position_at_end(after)
        return self.load(place)

    def read_Call(self, node: ast.Call) -> Any:
        function, given = self.known_at(node.func), [self.read(each) for each in node.args]
        if node.keywords:
            raise Unlisted(ast.unparse(node))
        if function is None:
            return self.method(node.func, given)
        if isinstance(function, Kernel):
            return self.called(vars(function)["__wrapped__"], given)
        kinds = [None if isinstance(each, list) else each.kind for each in given]
        if function in _KINDS and len(given) == 1 and isinstance(kinds[0], types.Number | types.Boolean):
            kind = _KINDS[function]
            return Typed(kind, self.context.cast(self.builder, given[0].value, kinds[0], kind))
        if function in (np.empty, np.zeros):
            kind = self.known_at(node.args[1]) if len(given) > 1 else np.float64
            shape = given[0] if isinstance(given[0], list) else given[:1]
            return self.within.new(function is np.zeros, shape, _KINDS[kind])
        if (
            function in (min, max)
            and len(given) > 1
            and all(isinstance(kind, types.Number) for kind in kinds)
        ):
            kind, op = (
                self.context.typing_context.unify_types(*kinds),
                ast.Lt() if function is min else ast.Gt(),
            )
            best, *others = self.cast(given, [kind] * len(given))
            for other in others:
                sooner = self.applied(op, Typed(kind, other), Typed(kind, best))
                best = self.builder.select(sooner.value, other, best)
            return Typed(kind, best)
        return self.call(function, given)

    def method(self, node: Any, given: list[Any]) -> Any:
        """The same memory seen otherwise, or the least or largest number in it."""
        typing, base = self.context.typing_context, self.read(node.value)
        if node.attr not in ("view", "reshape", "min", "max"):
            raise Unlisted(node.attr)
        bound = typing.resolve_getattr(base.kind, node.attr)
        signature = typing.resolve_function_type(bound, tuple(each.kind for each in given), {})
        code = self.context.get_function(bound, signature)
        return Typed(
            signature.return_type, code(self.builder, [base.value, *self.cast(given, signature.args)])
        )

    @abstractmethod
    def called(self, function: Callable[..., Any], given: list[Any]) -> Any:
        """A call of a function of the package in its place; the result."""

    def call(self, function: Any, given: list[Any]) -> Any:
        """A call of what numba knows."""
        given, typing = [self.within.packed(each) for each in given], self.context.typing_context
        if isinstance(function, types.ExternalFunction):
            kinds = function.sig.args
            described = ExternalFunctionDescriptor(function.symbol, function.sig.return_type, kinds)
            code = self.context.declare_external_function(self.builder.module, described)
            values = self.cast(given, kinds)
            made = self.context.call_external_function(self.builder, code, kinds, values)
            return Typed(function.sig.return_type, made)
        key = function, *(each.kind for each in given)
        if key not in self.within.found:
            callee = typing.resolve_value_type(function)
            signature = typing.resolve_function_type(callee, key[1:], {})
            counted = self.context.data_model_manager[signature.return_type].contains_nrt_meminfo()
            if counted and function is not operator.getitem and not isinstance(function, _Intrinsic):
                raise Unlisted(f"{function}, which makes an array")
            self.within.found[key] = signature, self.context.get_function(callee, signature)
        signature, code = self.within.found[key]
        return unpacked(
            self.builder, signature.return_type, code(self.builder, self.cast(given, signature.args))
        )

    def cast(self, given: list[Any], kinds: Any) -> list[Any]:
        return [
            self.context.cast(self.builder, each.value, each.kind, kind)
            for each, kind in zip(given, kinds, strict=True)
        ]
