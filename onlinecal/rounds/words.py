"""Words of memory in compiled code: vectors and numbers at addresses."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

#: a run, as steps take it, and the kinds of words
RUN, INT, FLOAT, WORD = types.CPointer(types.int64), types.int64, types.float64, types.uint64


def vector(builder: Any, context: Any, kind: Any, address: Any, length: Any) -> Any:
    """The vector of this length at an address."""
    made = context.make_array(types.Array(kind, 1, "C"))(context, builder)
    size = context.get_constant(types.intp, 8)
    data = builder.inttoptr(address, context.get_data_type(kind).as_pointer())
    populate_array(made, data=data, shape=[length], strides=[size], itemsize=size, meminfo=None)
    return made._getvalue()


def _at(kind: Any) -> Any:
    """A function (address, length) ↦ vector. As an intrinsic it is compiled in its caller, in no time of its own."""

    @intrinsic
    def at(typingctx: Any, address: Any, length: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return vector(builder, context, kind, *args)

        return types.Array(kind, 1, "C")(types.int64, types.int64), codegen

    return at


def _word(kind: Any) -> Any:
    """A function (address, place) ↦ the word there, which is compiled in less time than an entry of an array."""

    @intrinsic
    def word(typingctx: Any, address: Any, place: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(_place(builder, context, kind, *args))

        return kind(types.int64, types.int64), codegen

    return word


def _place(builder: Any, context: Any, kind: Any, address: Any, place: Any) -> Any:
    return builder.gep(builder.inttoptr(address, context.get_data_type(kind).as_pointer()), [place])


@intrinsic
def put(typingctx: Any, address: Any, place: Any, value: Any) -> Any:
    """Writes a whole or a real number into the word at this place from an address on."""
    kind = FLOAT if isinstance(value, types.Float) else INT

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _place(builder, context, kind, *args[:2]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, kind), codegen


def _seen_as(given: Any, kind: Any, how: str) -> Any:
    """A function of a word ↦ the same word as of another type."""

    @intrinsic
    def seen(typingctx: Any, word: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, how)(args[0], context.get_value_type(kind))

        return kind(given), codegen

    return seen


def _start_of(kind: Any, word: bool) -> Any:
    """A function array ↦ where its first number is, as a pointer or as a `word`."""

    @intrinsic
    def start(typingctx: Any, array: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            return builder.ptrtoint(data, ir.IntType(64)) if word else data

        return kind(array), codegen

    return start


#: the run with the fields of this vector, as steps take it; the address of an array's first number
run_of, address_of = _start_of(RUN, False), _start_of(INT, True)
#: whole numbers, real numbers and words of 64 bits at an address
ints_at, floats_at, words_at = _at(INT), _at(FLOAT), _at(WORD)
int_at, float_at = _word(INT), _word(FLOAT)
#: the run with the fields at an address, as steps take it. The bits of a real number, and the number of some bits.
run_at, bits_of, real_of = (
    _seen_as(INT, RUN, "inttoptr"), _seen_as(FLOAT, INT, "bitcast"), _seen_as(INT, FLOAT, "bitcast"),
)  # fmt: skip
