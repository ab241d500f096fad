"""Compiles functions of numbers from their text, into the function that calls them.

Numba finds types by bytecode, in passes that take most of the time of a compilation. Here each expression has its type,
by numba's rules, when it is met, and becomes numba's code for it. A name has one type. All else is `Unlisted`, and left
to numba.
"""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections.abc import Callable
from functools import cache, update_wrapper
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from numba.core import types
from numba.core.extending import intrinsic

from onlinecal.core._expressions import Expressions, Typed, Unlisted, Within


def from_text(function: Callable[..., Any], result: Any) -> Any:
    """A function for numba to compile: a call of this one, compiled from its text, with a result of this type.

    A function that is in no file stays as it is.
    """
    names, code = ", ".join(inspect.signature(function).parameters), function.__code__
    if not Path(code.co_filename).is_file():
        return function

    def typed(*kinds: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            try:
                within = Within(context, builder)
                given = [within.borrowed(*each) for each in zip(kinds, args, strict=True)]
                return within.result(_Call(within, function, given).play(), result)
            except Exception as error:
                raise Unlisted(f"{function.__qualname__}: {error!r}") from error

        return result(*kinds), codegen

    part = intrinsic(eval(f"lambda typingctx, {names}: typed({names})", {"typed": typed}))
    made: Any = eval(f"lambda {names}: part({names})", {"part": part})
    # Numba keeps its machine code where that of the function would be.
    made.__code__ = made.__code__.replace(
        co_filename=code.co_filename, co_firstlineno=code.co_firstlineno, co_name=code.co_name,
        co_qualname=code.co_qualname,
    )  # fmt: skip
    return update_wrapper(made, function)


@cache
def _parsed(function: Any) -> tuple[Any, set[str]]:
    """The definition of a function, and the names that it assigns."""
    text, own = textwrap.dedent(inspect.getsource(function)), function.__code__
    tree: Any = ast.parse(text).body[0]
    tree.decorator_list = []
    # A file may have changed since it was read, and functions that are made elsewhere have no text of their own. Code
    # differs for calls of what a file imports, and for names of a function around this one.
    modules = [name for name in own.co_names if isinstance(function.__globals__.get(name), ModuleType)]
    around = [f"import {name}" for name in modules]
    code: Any = compile("\n".join([*around, ast.unparse(tree)]), "", "exec")
    if own.co_freevars:
        inner = [f"{name} = None" for name in own.co_freevars] + [ast.unparse(tree)]
        lines = [*around, "def around():", textwrap.indent("\n".join(inner), " ")]
        code = _code_in(compile("\n".join(lines), "", "exec"))
    code = _code_in(code)
    if (code.co_code, code.co_consts) != (own.co_code, own.co_consts):
        raise Unlisted("its text is another")
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return tree, {node.id for node in names if isinstance(node.ctx, ast.Store)}


def _code_in(code: Any) -> Any:
    """The code of the function that is defined in this code."""
    return next(each for each in code.co_consts if isinstance(each, CodeType))


class _Call(Expressions):
    """A call of a function in the place of the call."""

    def __init__(self, within: Within, function: Callable[..., Any], given: list[Any]) -> None:
        super().__init__(within, function, given, *_parsed(function))
        #: arrays that were made before
        self.first = len(within.made)
        self.end, self.loops = self.block(), list[tuple[Any, Any]]()

    def called(self, function: Callable[..., Any], given: list[Any]) -> Any:
        return _Call(self.within, function, given).play()

    def play(self) -> Any:
        """Writes the code of all statements; the result."""
        self.lines(self.tree.body)
        self.go(self.end)
        self.builder.position_at_end(self.end)
        said: Any = Typed(types.none, self.context.get_dummy_value())
        if "return" in self.places:
            said = self.load(self.places["return"])
        if not isinstance(said, list) and not isinstance(said.kind, types.Array):
            self.within.give_back(self.first)
        return said

    def go(self, block: Any) -> None:
        if not self.builder.block.is_terminated:
            self.builder.branch(block)

    # ---------------------------------------------------------------- statements

    def lines(self, body: list[Any]) -> None:
        for line in body:
            if self.builder.block.is_terminated:
                break
            getattr(self, f"play_{type(line).__name__}")(line)

    def play_Pass(self, node: ast.Pass) -> None:
        pass

    def play_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.read(node.value)

    def play_Assign(self, node: ast.Assign) -> None:
        value = self.read(node.value)
        for target in node.targets:
            self.put(target, value)

    def put(self, target: Any, value: Any) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, Typed) and isinstance(value.kind, types.Array):
            value = [self.call(operator.getitem, [value, self.constant(i)]) for i in range(len(target.elts))]
        if isinstance(target, ast.Tuple) and isinstance(value, list) and len(value) == len(target.elts):
            for each, part in zip(target.elts, value, strict=True):
                self.put(each, part)
        elif isinstance(target, ast.Subscript):
            self.call(operator.setitem, [self.read(target.value), self.read(target.slice), value])
        elif isinstance(target, ast.Name):
            self.assign(target.id, value)
        else:
            raise Unlisted(ast.unparse(target))

    def play_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            before = self.read_Name(node.target)
            self.assign(node.target.id, self.applied(node.op, before, self.read(node.value)))
        elif isinstance(node.target, ast.Subscript):
            array, place = self.read(node.target.value), self.read(node.target.slice)
            before = self.call(operator.getitem, [array, place])
            after = self.applied(node.op, before, self.read(node.value))
            self.call(operator.setitem, [array, place, after])
        else:
            raise Unlisted(ast.unparse(node))

    def play_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.assign("return", self.read(node.value))
        self.builder.branch(self.end)

    def play_If(self, node: ast.If) -> None:
        known = self.decided(node.test)
        if known is not None:
            self.lines(node.body if known else node.orelse)
            return
        blocks, after = (self.block(), self.block()), self.block()
        self.builder.cbranch(self.truth(node.test), *blocks)
        for block, lines in zip(blocks, (node.body, node.orelse), strict=True):
            self.builder.position_at_end(block)
            self.lines(lines)
            self.go(after)
        self.builder.position_at_end(after)

    def decided(self, test: Any) -> bool | None:
        """The answer, where the test asks whether a name has the value None."""
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is):
            value = self.read(test.left)
            return not isinstance(value, list) and value.kind == types.none
        return None

    def play_While(self, node: ast.While) -> None:
        """Tests before and at the end, as bytecode does: of two ways back LLVM would make two loops."""
        again, body, after = self.block(), self.block(), self.block()
        self.builder.cbranch(self.truth(node.test), body, after)
        self.builder.position_at_end(again)
        self.builder.cbranch(self.truth(node.test), body, after)
        self.builder.position_at_end(body)
        self.loop(node, again, after)

    def play_For(self, node: ast.For) -> None:
        """Over a range of whole numbers with a known step, an array, or some values."""
        over: Any = node.iter
        if isinstance(over, ast.Tuple):
            self.each(node, self.read(over))
            return
        array, step = None, 1
        if isinstance(over, ast.Call) and self.known_at(over.func) is range:
            ends = [self.read(each) for each in over.args]
            step = self.known_at(over.args[2]) if len(ends) == 3 else 1
        else:
            array = self.read(over)
            ends = [self.call(len, [array])]
        start, stop = ([self.constant(0), *ends] if len(ends) == 1 else ends)[:2]
        if type(step) is not int or step == 0 or start.kind != types.int64 or stop.kind != types.int64:
            raise Unlisted(ast.unparse(over))
        place, more = self.place(start), self.constant(step).value
        self.store(start, place)
        test, body, following, after = (self.block() for _ in range(4))
        self.builder.branch(test)
        self.builder.position_at_end(test)
        now = self.load(place)
        goes_on = self.builder.icmp_signed("<" if step > 0 else ">", now.value, stop.value)
        self.builder.cbranch(goes_on, body, after)
        self.builder.position_at_end(following)
        self.store(Typed(types.int64, self.builder.add(self.load(place).value, more)), place)
        self.builder.branch(test)
        self.builder.position_at_end(body)
        self.put(node.target, now if array is None else self.call(operator.getitem, [array, now]))
        self.loop(node, following, after)

    def each(self, node: ast.For, values: list[Any]) -> None:
        """A loop over some values, one after the other."""
        after = self.block()
        for value in values:
            body, following = self.block(), self.block()
            self.builder.branch(body)
            self.builder.position_at_end(body)
            self.put(node.target, value)
            self.loop(node, following, after)
            self.builder.position_at_end(following)
        self.go(after)
        self.builder.position_at_end(after)

    def loop(self, node: Any, again: Any, after: Any) -> None:
        if node.orelse:
            raise Unlisted("a loop with else")
        self.loops.append((again, after))
        self.within.depth += 1
        self.lines(node.body)
        self.within.depth -= 1
        self.loops.pop()
        self.go(again)
        self.builder.position_at_end(after)

    def play_Break(self, node: ast.Break) -> None:
        self.builder.branch(self.loops[-1][1])

    def play_Continue(self, node: ast.Continue) -> None:
        self.builder.branch(self.loops[-1][0])
