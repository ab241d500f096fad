"""Methods of plain classes as functions of a run: `self.x` becomes a number of its memory."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.rounds.arithmetic import exact, exact_whole, index, place, whole
from onlinecal.rounds.bodies import Body
from onlinecal.rounds.flow import REAL, Size
from onlinecal.rounds.steps import floats, ints, law_values, law_weights
from onlinecal.rounds.written import meaning


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


@part_of_kernel
def _entries(numbers, state, at):
    """A list among the numbers of a run: the state has its beginning and its length."""
    return numbers[state[at] : state[at] + state[at + 1]]


class Translation:
    """The methods of a class, and the functions that they call, in one namespace.

    `kinds` are those of the attributes, ``"int"``, ``"float"``, ``"ints"`` or ``"floats"``; "!attribute" → why it has
    none. `shown` has the names in the steps for attributes of a round. Attributes that are used have `places` in `ints`
    or `floats`. A list has that of its beginning, with its length behind.
    """

    def __init__(self, cls: type, kinds: Mapping[str, str], shown: Mapping[str, str]) -> None:
        self.cls, self.kinds, self.shown = cls, kinds, shown
        self.places: dict[str, int] = {}
        #: whole and real numbers of the state, but for lists; and the most atoms of a law
        self.sizes, self.atoms = [0, 0], 1
        self.trees: dict[str, tuple[ast.FunctionDef, str]] = {}
        self._space: dict[str, Any] = {
            "__name__": cls.__module__, "oc_ints": ints, "oc_floats": floats, "oc_values": law_values,
            "oc_place": place, "oc_index": index, "oc_whole": whole, "oc_exact": exact, "oc_exact_whole": exact_whole,
            "oc_atom": _atom, "oc_entries": _entries,
        }  # fmt: skip
        self._names: dict[Any, str] = {}
        self._returned: dict[Any, Size] = {}
        #: where an entry of an attribute is first assigned
        self.stored: dict[str, str] = {}
        self._read: list[tuple[Any, tuple[str, ...], Any]] = []

    def meaning(self, function: Any, path: tuple[str, ...]) -> Any:
        """The meaning of a name in a function, or (None) in the class; it is noted."""
        found = self._now(function, path)
        self._read.append((function, path, found))
        return found

    def _now(self, function: Any, path: tuple[str, ...]) -> Any:
        if function is None:
            return inspect.getattr_static(self.cls, path[0], None)
        return meaning(function, path)

    @property
    def current(self) -> bool:
        """Whether all names outside of the methods still stand for what was compiled."""
        return all(_same(found, self._now(function, path)) for function, path, found in self._read)

    def step(self, name: str, given: str, told: Mapping[int, str], returns: str, end: str) -> None:
        """Translates a method into a step with the arguments `given`; its own ones are `told` by their places."""
        body = Body(self, self.meaning(None, (name,)), True, returns)
        if "!" + name in self.kinds:
            body.refuse(body.tree, f"{name} {self.kinds['!' + name]}", "a method of the class")
        own, at = body.arguments, body.tree
        if body.tree.args.defaults:
            body.refuse(at, "an argument with a default", "none")
        begin = "".join(f"{own[i].arg} = {what}\n" for i, what in told.items() if i < len(own))
        body.round = own[-1].arg if len(own) - 1 not in {0, *told} else None
        (head,) = _parsed(f"def {name}({given}): pass", at)
        body.measure({own[i].arg: REAL if i == 1 else Size(1.0) for i in told if i < len(own)})
        self._define(name, body, head, begin, end)

    def called(self, thing: Any, own: bool | None = None) -> str:
        """The name of a function in the namespace; a method (`own`) or function of the user's is translated."""
        if thing not in self._names:
            name = self._names[thing] = f"oc_{len(self._names)}"
            if own is None:
                self._space[name] = thing
            else:
                body = Body(self, thing, own, "value")
                body.measure({})
                self._returned[thing] = body.returned
                (head,) = _parsed(f"def {name}({'oc_run' * own}): pass", body.tree)
                head.args.args += [ast.arg(each.arg) for each in body.arguments[own:]]
                head.args.defaults = [  # their values since the function was defined
                    body.number(value, at)
                    for value, at in zip(thing.__defaults__ or (), body.tree.args.defaults, strict=True)
                ]
                self._define(name, body, head)
        return self._names[thing]

    def size(self, thing: Any, own: bool) -> Size:
        """The size of what a function of the user's returns, as far as its own text shows it."""
        if isinstance(thing, FunctionType) and not (thing.__module__ or "").startswith("numpy"):
            self.called(thing, own)
        return self._returned.get(thing, Size())

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

    def _define(self, name: str, body: Body, head: Any, begin: str = "", end: str = "") -> None:
        state = "oc_i, oc_f = oc_ints(oc_run), oc_floats(oc_run)\n" if body.own else ""
        head.body = [
            *_parsed(state + begin, body.tree), *body.lines(body.tree.body), *_parsed(end, body.tree)
        ]  # fmt: skip
        self.trees[name] = ast.fix_missing_locations(head), body.function.__code__.co_filename


def _same(one: Any, two: Any) -> bool:
    """Whether compiled code is the same for both: they are one, or the same number."""
    numbers = isinstance(one, int | float | np.generic) and type(one) is type(two)
    return one is two or (numbers and repr(one) == repr(two))


def _parsed(text: str, at: ast.stmt) -> list[Any]:
    """Statements at the place of another one."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr | ast.arg):
            ast.copy_location(node, at)
    return tree.body
