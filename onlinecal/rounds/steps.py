"""Strategies as compiled steps: the rule for one run.

A step is a plain function of a `run`, by which it reaches its arrays, and of a few numbers. It is compiled to a C
function of a fixed signature. One loop calls the steps of every strategy by their addresses, so that nothing is
compiled for a pair.

Signatures
----------
``law(run, number) -> size``
    Writes the law of round `number` into `law_atoms` (indices of a grid) or `law_values`, and into `law_weights`. How
    many atoms it has.
``learn(run, number, size, drawn, outcome) -> code``
    A resolved round: its law is in the same arrays, the atom at place `drawn` was drawn.
``move(run, number, size, forecast) -> q``
    Nature's probability of y = 1. What its sight does not allow is not there: `size` is 0, `forecast` NaN. A nature
    `by_side` sees only the side of 1/2 of the law's mean. It is given as `forecast`, with `size` 0, and the forecaster
    tells the side (`state_side`).
``hear(run, number, size, forecast, outcome) -> code``
    A resolved round, for natures that see the history.
``reveal(run, number) -> code``
    Writes the context of round `number` into `context`.

A code is 0, or negative: the round is none of this player's. A step that raises an error is stopped in its round.

Indices are not checked: a step that goes beyond an array breaks the process, or plays with numbers of others. With
``NUMBA_BOUNDSCHECK=1`` and an empty folder as ``NUMBA_CACHE_DIR`` the step raises an error.

Functions and comprehensions within a step are refused.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from functools import cached_property, partial
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from onlinecal.core._compile import compiled, kernel, part_of_kernel, spent
from onlinecal.core.arrays import Floats, address
from onlinecal.core.errors import InvalidParameter, in_one_line
from onlinecal.core.streams import Stream
from onlinecal.core.uniforms import fill_uniforms, next_uniform, uniform
from onlinecal.core.validation import is_whole
from onlinecal.rounds.law import Unplayable
from onlinecal.rounds.words import FLOAT, INT, RUN, WORD, real_of, vector

LAW = INT(RUN, INT)
LEARN = INT(RUN, INT, INT, INT, INT)
MOVE = FLOAT(RUN, INT, INT, FLOAT)
HEAR = INT(RUN, INT, INT, FLOAT, INT)
REVEAL = INT(RUN, INT)

#: the places of a run's arrays: the address of each, and its length behind
INTS, FLOATS, SHARED_INTS, SHARED, SCRATCH, KEYS, CONTEXT, ATOMS, VALUES, WEIGHTS, MEMO = range(0, 22, 2)
#: whether the drawn atom alone will be looked at, the uniform that draws it, and the time of the question. The side of
#: 1/2 on which the mean of the law is.
ALONE, UNIFORM, TIME, SIDE, FIELDS = 22, 23, 24, 25, 26

#: the result of a step that raised an error: no size, no code and no probability
RAISED = -(2**63)


class Step:
    """A function that is compiled when its address is first asked for."""

    def __init__(
        self, signature: Any, function: Callable[..., Any], name: str = "", sent: Any = None
    ) -> None:
        self.signature, self.function, self.__doc__ = signature, function, function.__doc__
        self.__module__, self.__qualname__ = function.__module__, name or function.__qualname__
        #: how it is found where it is sent
        self.sent = sent or (_named, (self.__module__, self.__qualname__))

    @cached_property
    def compiled(self) -> tuple[int, Any]:
        """Where its code is in memory, and what keeps it there."""
        code = self.function.__code__
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                raise InvalidParameter(
                    f"{self.__qualname__} ({code.co_filename}:{inner.co_firstlineno}): a function or comprehension "
                    "within a step is not compiled; expected a loop, or a kernel of the module"
                )
        began, made = time.perf_counter(), compiled(self.function)
        made.compile(self.signature)
        spent.seconds += time.perf_counter() - began
        kept = made.overloads[self.signature.args]
        return int(kept.library.get_pointer_to_function(kept.fndesc.llvm_func_name)), made

    @property
    def address(self) -> int:
        """Where it is in memory, for the calls below."""
        return self.compiled[0]

    def __reduce__(self) -> Any:
        return self.sent


def check_step(name: str, step: Any, signature: Any) -> None:
    """Refuses anything but a step of this signature, as it is called by its address without a look."""
    if not isinstance(step, Step) or step.signature is not signature:
        said = f"{name} = {in_one_line(step)}; expected a function marked as the step `{name}`"
        raise InvalidParameter(said)


def raised(step: Step, run: int) -> Unplayable:
    """The fault of a step that raised an error."""
    code = step.function.__code__
    where = f"{step.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
    return Unplayable(f"raised an error in its step {where}", "a step that comes to its end", run)


def _named(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


#: which the imports below do not do for type checkers
__all__ = ["hear", "law", "learn", "move", "reveal"]

if TYPE_CHECKING:  # steps are written without types, as kernels are
    from typing import no_type_check as hear
    from typing import no_type_check as law
    from typing import no_type_check as learn
    from typing import no_type_check as move
    from typing import no_type_check as reveal
else:
    # They mark a function as a step.
    law, learn, move, hear, reveal = (partial(Step, each) for each in (LAW, LEARN, MOVE, HEAR, REVEAL))


# ---------------------------------------------------------------- what a step sees


def _field(kind: Any, place: int) -> Any:
    """A function run ↦ the vector of which this field has the address, and the next one the length."""

    @intrinsic
    def field(typingctx: Any, run: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address, length = (
                builder.load(builder.gep(args[0], [context.get_constant(types.intp, at)]))
                for at in (place, place + 1)
            )
            return vector(builder, context, kind, address, length)

        return types.Array(kind, 1, "C")(RUN), codegen

    return field


#: the whole and the real numbers of the run's state
ints, floats = _field(INT, INTS), _field(FLOAT, FLOATS)
#: numbers that all runs share; only to be read
shared_ints, shared = _field(INT, SHARED_INTS), _field(FLOAT, SHARED)
#: room that is not kept from one step to the next
scratch = _field(FLOAT, SCRATCH)
#: the context of the round: what nature reveals, or a forecaster needs, in the order of the kinds
context = _field(FLOAT, CONTEXT)
#: the atoms of the law as indices of the grid, or their values; and their probabilities
law_atoms, law_values, law_weights = _field(INT, ATOMS), _field(FLOAT, VALUES), _field(FLOAT, WEIGHTS)
#: numbers that the step at the question leaves for the one at the resolution of the same round
memo = _field(FLOAT, MEMO)
_keys = _field(WORD, KEYS)


@kernel
def own_uniform(run, index):
    """Number `index`, from 0, of the uniforms of the strategy's own stream."""
    return uniform(_keys(run), index)


@part_of_kernel
def cached_uniform(run, index, cache):
    """The same, where the numbers are asked for in order. `cache` are five numbers of the state, the first −1 in the
    beginning: four are made at a time.
    """
    return next_uniform(_keys(run), index, cache)


@kernel
def own_uniforms(run, first, out):
    """Numbers first, first + 1, … of the same, into a vector."""
    fill_uniforms(_keys(run), first, out)


@kernel
def asked_at(run):
    """The time at which the question is asked, on the game's clock."""
    return real_of(run[TIME])


@kernel
def drawn_by(run):
    """The uniform by which an atom will be drawn; −1 where the rest of the law is seen.

    A law step may then state that atom alone, with weight 1. It is the first at which the summed weights are above the
    uniform. `CompiledForecaster` must know that it does (`alone`).
    """
    return real_of(run[UNIFORM]) if run[ALONE] != 0 else -1.0


@part_of_kernel
def is_law(run, size, grid):
    """Writes the values of a law beside its atoms, where there is a grid; whether it is a law."""
    atoms, values, weights, total = law_atoms(run), law_values(run), law_weights(run), 0.0
    good = True
    for j in range(size):
        if len(grid) > 0:
            values[j] = grid[atoms[j]] if 0 <= atoms[j] < len(grid) else np.nan
        else:
            values[j] += 0.0  # −0.0 becomes 0.0
        total += weights[j]
        good = good and weights[j] >= 0.0 and 0.0 <= values[j] <= 1.0
    return good and abs(total - 1.0) <= 1e-9


@kernel
def state_side(run, side):
    """States the side of 1/2 on which the mean of the law is: a negative number, 0 or a positive one."""
    run[SIDE] = side


# ---------------------------------------------------------------- calls by address


def _caller(signature: Any) -> Any:
    @intrinsic
    def call(typingctx: Any, address: Any, arguments: Any) -> Any:
        """Calls the step of this signature at an address; `RAISED` if it raises an error."""

        def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
            kind = context.call_conv.get_function_type(signature.return_type, signature.args)
            function = builder.inttoptr(args[0], ir.PointerType(kind))
            with builder.goto_entry_block():  # of no numbers yet: the step writes them
                result, error = (builder.alloca(slot.pointee) for slot in kind.args[:2])
            own = [builder.extract_value(args[1], i) for i in range(len(signature.args))]
            code = builder.call(function, [result, error, *own])
            raised = ir.Constant(kind.args[0].pointee, RAISED)
            return builder.select(builder.icmp_signed("==", code, code.type(0)), builder.load(result), raised)

        return signature.return_type(types.int64, types.Tuple(signature.args)), codegen

    return call


call_law, call_learn, call_move = _caller(LAW), _caller(LEARN), _caller(MOVE)
call_hear, call_reveal = _caller(HEAR), _caller(REVEAL)


# ---------------------------------------------------------------- memory


class Memory:
    """The arrays of a player made of steps: of one run, until `spread` makes a row for each of several.

    `ints` and `floats` are the state with which a run begins, or how many zeros. `shared_ints` and `shared` are
    parameters and data that steps only read. `scratch` is room that is not kept; `context` and `memo` are numbers of a
    round. `used` is the place in `ints` of how many `floats` are in use, where no others are copied.
    """

    #: whether a part of it is an object in plain Python
    in_python = False

    def __init__(
        self,
        *,
        ints: Any = 0,
        floats: Any = 0,
        shared_ints: Any = (),
        shared: Any = (),
        scratch: int = 0,
        stream: Stream | None = None,
        context: int = 0,
        memo: int = 0,
        used: int | None = None,
    ) -> None:
        #: the memory of which it is a part
        self.whole: Memory | None = None
        self.runs, self.stream = 1, stream
        self.ints, self.floats = _row(ints, np.int64), _row(floats, np.float64)
        self.shared_ints = np.array(shared_ints, np.int64).reshape(-1)
        self.shared = np.array(shared, np.float64).reshape(-1)
        self.keys = np.zeros((1, 2), np.uint64) if stream is None else stream.keys[:1]
        self.room, self.context, self.memo, self.used = np.empty(scratch), context, memo, used

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value
        self.touched()

    def spread(self, runs: range) -> None:
        """Makes a row for each of these runs, which begins as the only one does."""
        self.runs = many = len(runs)
        self.ints = np.tile(self.ints, (many, 1))
        self.floats = _in_rows(self.floats.shape[1], self._floats_in_use()[:1] * many)
        keys = np.zeros((1, 2), np.uint64) if self.stream is None else self.stream.over(runs).keys
        self.keys = keys if len(keys) == many else np.tile(keys, (many, 1))

    def widen(self, floats: int) -> None:
        """Makes room for this number of floats a run; those in use are kept."""
        self.floats = _in_rows(floats, self._floats_in_use())

    def _floats_in_use(self) -> list[Floats]:
        rows = len(self.floats)
        ends = [self.floats.shape[1]] * rows if self.used is None else self.ints[:, self.used].tolist()
        return [row[:end] for row, end in zip(self.floats, ends, strict=False)]

    def __getstate__(self) -> dict[str, Any]:
        part = {} if self.used is None else {"floats": (self.floats.shape[1], self._floats_in_use())}
        # Addresses are of the process in which they were taken.
        return self.__dict__ | {"known": None} | part

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if state["used"] is not None:
            self.__dict__["floats"] = _in_rows(*state["floats"])

    def touched(self) -> None:
        """Takes note, with the memory of which it is a part, that an array may be another now."""
        self.__dict__["known"] = None
        whole = self.__dict__.get("whole")
        if whole is not None:
            whole.touched()

    def link(self) -> None:
        """Writes down the addresses that its steps follow, if there are any."""

    def fields(self) -> Any:
        """The fields of the first run, but for context, law and memo, and their differences from run to run.

        The same array until one of its own arrays is another.
        """
        if self.__dict__["known"] is None:
            self.link()
            self.__dict__["known"] = self._fields()
        return self.__dict__["known"]

    def _fields(self) -> Any:
        known = first, more = np.zeros((2, FIELDS), np.int64)
        for place, rows in ((INTS, self.ints), (FLOATS, self.floats), (KEYS, self.keys)):
            first[place : place + 2] = address(rows), rows.shape[1]
            more[place] = rows.strides[0]
        for place, array in ((SHARED_INTS, self.shared_ints), (SHARED, self.shared), (SCRATCH, self.room)):
            first[place : place + 2] = address(array), len(array)
        first[CONTEXT + 1], first[MEMO + 1] = self.context, self.memo
        return np.array(known)


def _in_rows(width: int, rows: list[Floats]) -> Floats:
    """Rows of this width that begin so. Their rest is not written: it takes no memory until it is."""
    wide = np.empty((len(rows), width))
    for row, begin in zip(wide, rows, strict=True):
        row[: len(begin)] = begin
    return wide


def _row(first: Any, kind: Any) -> Any:
    # A whole number of NumPy is a number too: as an array it would be a state of one entry.
    return (np.zeros(int(first), kind) if is_whole(first) else np.array(first, kind)).reshape(1, -1)
