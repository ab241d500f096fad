"""Plain classes, compiled: the attributes of an object are a NumPy record, and its methods are compiled by numba.

The methods are compiled from their own text, with these changes. Calls of methods become calls of functions. A stated
law is written into the law of the run. A number that is stored in a whole attribute must be whole. Refused is what
numba would play in another way than Python, as far as the text shows it (`_Reader`). A rehearsal beside the object
shows the rest.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import textwrap
import types as python_types
from collections import namedtuple
from random import Random
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import NumbaError
from numba.extending import overload

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.engine2 import steps
from onlinecal.engine2.play import Question
from onlinecal.engine2.run import law, note, state
from onlinecal.engine2.seats import seat

#: rounds that are played both ways before a player begins; atoms of a law, at most
REHEARSED, ATOMS = 400, 64
#: the kinds of numbers that an object may have
NUMBERS = {int, float, np.int64, np.float64}
#: unlike steps, methods divide as Python does: by zero is an error
HOW: Any = {"error_model": "python", "nogil": True}
Round = namedtuple("Round", "number context forecast")
#: what may be done with a list of an object: entries, and these
READS = frozenset({"len", "enumerate", "sum", "min", "max", "zip", "reversed", "sorted"})


def compiled_player(role: str, strategy: Any, player: Any) -> Any:
    """A player of steps, of an object of a class that is marked as compiled."""
    cls = type(player)
    kinds = sorted(strategy.needs if role == "forecaster" else strategy.reveals)
    for name in ("streams", "certificates") + (("reveals",) if role == "nature" else ()):
        if getattr(cls, name, ()):
            raise InvalidParameter(f"{cls.__name__} has `{name}`, which is not compiled; expected none")
    record = Record(cls, player, kinds, _became_real(role, strategy, copy.deepcopy(player)))
    given = {"state": record.numbers(player), "note": len(kinds)}
    try:
        if role == "forecaster":
            say, learn = record.steps("forecast", "update")
            made: Any = steps.Forecaster(say, learn, needs=dict(enumerate(kinds)), size=ATOMS, **given)
        else:
            move, hear = record.steps("probability", "update" if strategy.sight >= Sight.HISTORY else "")
            made = steps.Nature(move, hear=hear, sight=strategy.sight, **given)
    except (NumbaError, TypeError, KeyError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        where = next((line for line in lines if line.startswith("File")), "")
        what = next((line for line in lines if line and "pipeline" not in line), "")
        raise InvalidParameter(
            f"{cls.__name__} is not compiled: {what} {where}; expected operations on numbers"
        ) from error
    _rehearse(role, strategy, made, copy.deepcopy(player), record)
    return made


class Record:
    """The attributes of an object as fields of a record, and its methods as functions of one."""

    def __init__(self, cls: type, sample: Any, kinds: list[str], real: set[str]) -> None:
        self.cls, self.kinds, self.real, own = cls, kinds, real, vars(sample)
        #: tuples, and arrays that are only read
        self.fixed = {
            name for name, value in own.items() if isinstance(value, np.ndarray) and not value.flags.writeable
        }
        self.fields, self.held, self.made = dict[str, tuple[Any, ...]](), dict[str, str](), dict[Any, Any]()
        every = [(name, value) for each in reversed(cls.__mro__[:-1]) for name, value in vars(each).items()]
        inherited = {name: value for name, value in every if not name.startswith("__")}
        for name, value in inherited.items():
            if isinstance(value, list | dict | set | np.ndarray) and name not in own:
                what = f"is {value!r} of the class, which all objects share"
                raise self.refused(name, what, "a tuple, or one set in __init__")
        plain = {name: value for name, value in inherited.items() if isinstance(value, int | float | tuple)}
        apart: dict[str, Any] = {}
        for name, value in (plain | own).items():
            self.fields[name] = self._field(name, value)
            if isinstance(value, list | np.ndarray):
                for other, there in apart.items():
                    if there is value or np.shares_memory(there, value):
                        what = f"is {other} as well, or a part of it"
                        raise self.refused(name, what, "arrays and lists that are apart")
                apart[name] = value
        fields = [(name, *field) for name, field in self.fields.items()]
        self.dtype = np.dtype(fields or [("nothing", np.float64)])

    def _field(self, name: str, value: Any) -> tuple[Any, ...]:
        """The kind and the shape of an attribute."""
        many, array = isinstance(value, list | tuple | np.ndarray), isinstance(value, np.ndarray)
        each = value if array else np.array(value, object)
        kinds = {value.dtype.type} if array else set(map(type, each.ravel().tolist()))
        good = NUMBERS if many else NUMBERS | {bool}
        if not kinds <= good or each.size == 0 or (isinstance(value, list) and each.ndim > 1):
            what = f"is an array of {value.dtype}" if array else f"is {value!r}"
            raise self.refused(name, what, "a number, or a list, tuple or array of some, each of 64 bits")
        if many:
            self.held[name] = type(value).__name__
            if isinstance(value, tuple):
                self.fixed.add(name)
        kind = np.float64 if kinds & {float, np.float64} or name in self.real else np.int64
        return (kind, each.shape) if many else (kind,)

    def refused(self, name: str, what: str, expected: str) -> InvalidParameter:
        """The error of an attribute."""
        return InvalidParameter(f"{self.cls.__name__}.{name} {what}; expected {expected}")

    def numbers(self, thing: Any) -> Any:
        """The state of an object as numbers."""
        row = np.zeros(1, self.dtype)
        for name in self.fields:
            row[name] = getattr(thing, name)
        return row.view(np.float64).copy()

    def steps(self, stated: str, told: str) -> tuple[Any, Any]:
        """The two steps that call these methods, with a round, also where they take none."""
        words, dtype = self.dtype.itemsize // 8, self.dtype
        noted = np.dtype([(kind, np.float64) for kind in self.kinds] or [("none", np.float64)])
        me = njit(lambda run: state(run)[:words].view(dtype)[0], **HOW)
        context = njit((lambda run: note(run).view(noted)[0]) if self.kinds else (lambda run: 0), **HOW)
        law_of = ("oc_values", "oc_weights") if stated == "forecast" else ()
        says = self._compiled(getattr(self.cls, stated), True, self._round(stated, 1) + law_of)

        def say(run: Any, number: int) -> int:
            return says(me(run), Round(number, context(run), np.nan), *law(run))

        def move(run: Any, size: int, forecast: float, number: int) -> float:
            return says(me(run), Round(number, context(run), forecast))

        asked = say if law_of else move
        if not told or not hasattr(self.cls, told):
            return asked, None
        learns = self._compiled(getattr(self.cls, told), True, self._round(told, 3))

        def learn(run: Any, place: int, forecast: float, outcome: int, number: int) -> int:
            learns(me(run), forecast, outcome, Round(number, context(run), forecast))
            return 0

        return asked, learn

    def _round(self, method: str, without: int) -> tuple[str, ...]:
        """The argument that a method lacks, if it takes no round."""
        return ("oc_round",) * (len(inspect.signature(getattr(self.cls, method)).parameters) <= without)

    def _compiled(self, function: Any, of_class: bool, more: tuple[str, ...] = ()) -> Any:
        """A method or function, compiled, with these arguments more."""
        key = function, more
        if key not in self.made:
            # The entry stays None until the function is made. A function that needs it before calls itself: refused.
            reader = _Reader(self, function, of_class, more)
            space = dict(reader.space)
            self.made[key] = None
            for used, other in reader.functions.items():
                made = self._compiled(other, used.startswith("oc_method_"))
                if made is None:
                    raise reader.refused(reader.tree, f"{other.__name__} calls itself", "a loop")
                space[used] = made
            exec(compile(reader.tree, reader.file, "exec"), space)
            self.made[key] = njit(space[reader.name], **HOW)
        return self.made[key]


LINES = (
    ast.If, ast.While, ast.For, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Raise, ast.Break,
    ast.Continue, ast.Pass, ast.Assert,
)  # fmt: skip


class _Reader(ast.NodeTransformer):
    """Reads the text of a function, refuses what plays in another way compiled, and changes what must be changed."""

    def __init__(self, record: Record, function: Any, of_class: bool, more: tuple[str, ...]) -> None:
        self.record, self.states = record, "oc_values" in more
        if not isinstance(function, python_types.FunctionType):
            said = f"{record.cls.__name__}: {function!r} is not compiled; expected a function in Python"
            raise InvalidParameter(said)
        self.name, self.label = function.__name__, function.__qualname__
        try:
            lines, first = inspect.getsourcelines(function)
        except OSError as error:
            raise InvalidParameter(f"{self.label} has no text to be compiled: {error}") from error
        self.file, self.tree = (
            inspect.getsourcefile(function) or "",
            ast.parse(textwrap.dedent("".join(lines))),
        )
        ast.increment_lineno(self.tree, first - 1)
        (body,) = self.tree.body
        assert isinstance(body, ast.FunctionDef)
        body.decorator_list, body.returns = [], None
        for argument in body.args.args:
            argument.annotation = None
        self.arguments = [argument.arg for argument in body.args.args]
        self.me, self.functions = self.arguments[0] if of_class else "", dict[str, Any]()
        own = {"oc_state": oc_state, "oc_whole": oc_whole, "oc_pow": oc_pow}
        self.space = {**function.__globals__, **inspect.getclosurevars(function).nonlocals, **own}
        self.locals = self._stored(body)
        self._set(body.body, set(self.arguments))
        body.args.args += map(ast.arg, more)
        self.generic_visit(body)
        ast.fix_missing_locations(self.tree)

    def refused(self, node: Any, what: str, expected: str) -> InvalidParameter:
        """The error of a line."""
        line = getattr(node, "lineno", 0)
        return InvalidParameter(f"{self.label}, line {line}: {what}; expected {expected}")

    # ------------------------------------------------ names that may have no value

    def _set(self, body: list[Any], known: set[str]) -> set[str] | None:
        """The names that surely have a value behind these lines; None where they are left before their end."""
        for line in body:
            if not isinstance(line, LINES):
                what = f"{type(line).__name__.lower()} is not compiled"
                raise self.refused(line, what, "assignments, if, for, while and return")
            if isinstance(line, ast.If | ast.While | ast.For):
                self._used(line.iter if isinstance(line, ast.For) else line.test, known)
                inside = self._set(line.body, known | self._stored(getattr(line, "target", None)))
                ends = [each for each in (inside, self._set(line.orelse, known)) if each is not None]
                if isinstance(line, ast.If) and not ends:
                    return None
                known = set.intersection(*ends) if isinstance(line, ast.If) else known
                continue
            value = line.value if isinstance(line, ast.Assign | ast.AnnAssign) else line
            self._used(value, known)
            for target in line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]:
                self._used(target, known)
                known = known | self._stored(target)
            if isinstance(line, ast.Return | ast.Raise | ast.Break | ast.Continue):
                return None
        return known

    @staticmethod
    def _stored(node: Any) -> set[str]:
        """The names that are given a value in a node."""
        names = ast.walk(node) if node is not None else ()
        return {n.id for n in names if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}

    def _used(self, node: Any, known: set[str]) -> None:
        """Refuses a node that uses a name which may have no value."""
        every: list[Any] = list(ast.walk(node)) if node is not None else []
        inner = set().union(*(self._stored(c.target) for c in every if isinstance(c, ast.comprehension)))
        for n in every:
            loaded = isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
            added = isinstance(node, ast.AugAssign) and n is node.target and isinstance(n, ast.Name)
            if (loaded or added) and n.id in self.locals - known - inner:
                what = f"{n.id} may have no value here, as it is set in one branch only"
                raise self.refused(n, what, "a value in each")

    # ------------------------------------------------ what is changed

    def _field(self, node: Any) -> str:
        """The attribute of the object that a node is; "" for none."""
        mine = (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == self.me != ""
        )
        return node.attr if mine else ""

    def visit_Name(self, node: Any) -> Any:
        name = node.id
        if not isinstance(node.ctx, ast.Load) or name in self.locals or name in self.arguments:
            return node
        if name not in self.space:
            if not hasattr(builtins, name):
                expected = "functions and numbers that are defined before the game"
                raise self.refused(node, f"{name} is not defined yet", expected)
        elif isinstance(self.space[name], list | dict | set | np.ndarray):
            raise self.refused(node, f"{name} can change outside", "numbers, tuples, functions and modules")
        elif isinstance(self.space[name], python_types.FunctionType) and not name.startswith("oc_"):
            self.functions[name] = self.space[name]
        return node

    def visit_Call(self, node: Any) -> Any:
        name = self._field(node.func)
        method = getattr(self.record.cls, name, None) if name else None
        if callable(method):
            self.functions[f"oc_method_{name}"] = method
            node.func = ast.copy_location(ast.Name(f"oc_method_{name}", ast.Load()), node.func)
            node.args = [ast.copy_location(ast.Name(self.me, ast.Load()), node.func), *node.args]
            node.args[1:] = [self.visit(each) for each in node.args[1:]]
            return node
        reads = isinstance(node.func, ast.Name) and node.func.id in READS
        node.args = [each if reads and self._listed(each) else self.visit(each) for each in node.args]
        if not isinstance(node.func, ast.Attribute) or isinstance(node.func.value, ast.Attribute):
            node.func = self.visit(node.func)
        return node

    def _listed(self, node: Any) -> bool:
        return self.record.held.get(self._field(node)) in ("list", "tuple")

    def visit_Attribute(self, node: Any) -> Any:
        name = self._field(node)
        if name and name not in self.record.fields:
            raise self.refused(node, f"{self.me}.{name} is not set in __init__", "attributes that are")
        if self._listed(node):
            what = f"the {self.record.held[name]} {self.me}.{name} is used as a whole"
            raise self.refused(node, what, "its entries, its length, or a loop over it")
        return self.generic_visit(node) if not name else node

    def visit_For(self, node: Any) -> Any:
        if not self._listed(node.iter):
            node.iter = self.visit(node.iter)
        node.body, node.orelse = ([self.visit(each) for each in part] for part in (node.body, node.orelse))
        return node

    def visit_Subscript(self, node: Any) -> Any:
        name = self._field(node.value)
        if name in self.record.fixed and not isinstance(node.ctx, ast.Load):
            what = f"{self.me}.{name} is a {self.record.held[name]}, which cannot be changed"
            raise self.refused(node, what, "a list, or an array that can be")
        if not self._listed(node.value):
            node.value = self.visit(node.value)
        elif isinstance(node.slice, ast.Slice):
            expected = "entries, or an array of NumPy"
            raise self.refused(node, "a part of a list would be a view, not a copy", expected)
        node.slice = self.visit(node.slice)
        return node

    def _store(self, target: Any, value: Any) -> Any:
        """The value that is stored in a target, which must be whole where that is."""
        field = self._field(target.value) if isinstance(target, ast.Subscript) else self._field(target)
        if isinstance(target, ast.Attribute) and self.record.held.get(field):
            raise self.refused(target, f"{self.me}.{field} is replaced, or grows", "its entries to be set")
        if field and self.record.fields.get(field, (None,))[0] is np.int64:
            text = ast.Constant(f"{self.label}, line {target.lineno}: {self.me}.{field}")
            return ast.copy_location(ast.Call(ast.Name("oc_whole", ast.Load()), [value, text], []), value)
        return value

    def visit_Assign(self, node: Any) -> Any:
        (target, *more) = node.targets
        if (
            isinstance(target, ast.Tuple)
            and isinstance(node.value, ast.Tuple)
            and len(target.elts) == len(node.value.elts)
        ):
            values = [self.visit(each) for each in node.value.elts]
            node.value.elts = [self._store(t, v) for t, v in zip(target.elts, values, strict=True)]
        elif isinstance(target, ast.Tuple) or more:
            if any(self._field(n) for each in node.targets for n in ast.walk(each)):
                raise self.refused(node, "several attributes are set at once", "one assignment for each")
            node.value = self.visit(node.value)
        else:
            node.value = self._store(target, self.visit(node.value))
        node.targets = [self.visit(each) for each in node.targets]
        return node

    def visit_AugAssign(self, node: Any) -> Any:
        if self._field(node.target) or (
            isinstance(node.target, ast.Subscript) and self._field(node.target.value)
        ):
            load = copy.deepcopy(node.target)
            load.ctx = ast.Load()
            made = ast.Assign([node.target], ast.copy_location(ast.BinOp(load, node.op, node.value), node))
            return self.visit(ast.copy_location(made, node))
        node.value = self.visit(node.value)
        return node

    def visit_BinOp(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Pow):
            return ast.copy_location(
                ast.Call(ast.Name("oc_pow", ast.Load()), [node.left, node.right], []), node
            )
        return node

    def visit_Return(self, node: Any) -> Any:
        if not self.states or node.value is None:
            return self.generic_visit(node)
        said, parts = node.value, list[Any]()
        if isinstance(said, ast.IfExp):
            ways = [ast.copy_location(ast.Return(each), node) for each in (said.body, said.orelse)]
            return self.visit(ast.copy_location(ast.If(said.test, [ways[0]], [ways[1]]), node))
        if isinstance(said, ast.Dict) and said.keys and all(said.keys):
            of: tuple[list[Any], list[Any]] = said.keys, said.values
            parts = [ast.Tuple([self.visit(each) for each in some], ast.Load()) for some in of]
        else:
            parts = [self.visit(said), ast.Constant(None)]
        given = [ast.Name("oc_values", ast.Load()), ast.Name("oc_weights", ast.Load()), *parts]
        node.value = ast.copy_location(ast.Call(ast.Name("oc_state", ast.Load()), given, []), node)
        return node


def oc_whole(value: Any, where: str) -> Any:
    """The same number, which is whole."""
    return value


@overload(oc_whole, strict=False)
def _oc_whole(value: Any, where: Any) -> Any:
    if isinstance(value, types.Integer | types.Boolean | types.IntegerLiteral):
        return lambda value, where: value
    raise TypeError(
        f"{getattr(where, 'literal_value', '')} begins as a whole number and is given a real one; "
        "expected one that begins as a real one, such as 0.0"
    )


def oc_pow(base: Any, power: Any) -> Any:
    """base ** power."""
    return base**power


@overload(oc_pow, strict=False)
def _oc_pow(base: Any, power: Any) -> Any:
    if isinstance(base, types.Integer) and isinstance(power, types.Integer):

        def whole(base: Any, power: Any) -> Any:
            if power < 0:
                raise ValueError("a negative power of a whole number; expected real numbers")
            return base**power

        return whole
    return lambda base, power: base**power


def oc_state(values: Any, weights: Any, said: Any, shares: Any) -> int:
    """Writes a law; how many atoms it has."""
    raise TypeError


@overload(oc_state, strict=False)
def _oc_state(values: Any, weights: Any, said: Any, shares: Any) -> Any:
    if isinstance(said, types.DictType):

        def of_dict(values: Any, weights: Any, said: Any, shares: Any) -> int:
            size = 0
            for value, weight in said.items():
                if size < len(values):
                    values[size], weights[size] = value, weight
                size += 1
            return size

        return of_dict
    if isinstance(said, types.BaseTuple):
        many = len(said)

        def of_display(values: Any, weights: Any, said: Any, shares: Any) -> int:
            given, with_weights, size = np.empty(many), np.empty(many), 0
            write(given, said)
            write(with_weights, shares)
            for i in range(many):
                at = size
                for j in range(size):  # of equal values the last weight counts, at the place of the first
                    if values[j] == given[i]:
                        at = j
                if at == size:
                    values[size] = given[i]
                    size += 1
                weights[at] = with_weights[i]
            return size

        return of_display

    def of_number(values: Any, weights: Any, said: Any, shares: Any) -> int:
        values[0], weights[0] = said, 1.0
        return 1

    return of_number


def write(array: Any, numbers: Any) -> None:
    """Writes numbers of a tuple, which may be of several kinds, into an array."""


@overload(write, strict=False)
def _write(array: Any, numbers: Any) -> Any:
    if len(numbers) == 0:
        return lambda array, numbers: None

    def each(array: Any, numbers: Any) -> None:
        array[len(array) - len(numbers)] = numbers[0]
        write(array, numbers[1:])

    return each


# ---------------------------------------------------------------- the rehearsal


def _rounds(strategy: Any, kinds: list[str]) -> Any:
    """The questions of a rehearsal, with what is drawn in them."""
    random = Random(0)
    for number in range(1, REHEARSED + 1):
        context = {kind: random.random() for kind in kinds}
        question = Question(number, float(number), context=context, outcome=random.randrange(2))
        p = random.random()
        question.law, question.forecast = [(p, 0.5), (p / 2, 0.5)], p
        yield question, random.randrange(2**20)


def _played(role: str, sitting: Any, question: Question, pick: int) -> Any:
    """The law or probability of a player in a round, which it then hears; and how it failed."""
    try:
        if role == "forecaster":
            said = sitting.state_law(question)
            question.place = pick % len(said)
            question.forecast = said[question.place][0] + 0.0
        else:
            question.hidden = None
            sitting.reveal(question)
            said = sitting.move(question)
        sitting.learn(question)
    except Exception as error:
        return None, error
    return said, None


def _became_real(role: str, strategy: Any, thing: Any) -> set[str]:
    """The whole attributes of an object that become real numbers."""
    sitting, real = seat(role, strategy, thing), set[str]()
    kinds = sorted(strategy.needs) if role == "forecaster" else []
    for question, pick in _rounds(strategy, kinds):
        _, error = _played(role, sitting, question, pick)
        if error is not None:
            break
        for name, value in vars(thing).items():
            listed = value if isinstance(value, list) else [value]
            if any(isinstance(each, float) for each in listed):
                real.add(name)
    return real


def _rehearse(role: str, strategy: Any, made: Any, thing: Any, record: Record) -> None:
    """Plays an object beside its record; an error where they differ."""
    other = copy.copy(made)
    other.state, other.laid = made.state.copy(), False
    sittings = seat(role, strategy, thing), seat(role, strategy, other)
    kinds = sorted(strategy.needs) if role == "forecaster" else []
    for question, pick in _rounds(strategy, kinds):
        (said, error), (again, fault) = (
            _played(role, sitting, copy.copy(question), pick) for sitting in sittings
        )
        how = ""
        if (error is None) is not (fault is None):
            how = (
                f"ends in Python alone, by {error!r}"
                if fault is None
                else f"ends compiled alone, by {fault!r}"
            )
        elif error is not None:
            return
        elif repr(said) != repr(again):
            how = f"states {said} in Python and {again} compiled"
        elif record.numbers(thing).tobytes() != other.state[0].tobytes():
            how = "keeps other numbers compiled than in Python"
        if how:
            raise InvalidParameter(
                f"{record.cls.__name__}, round {question.number} of a rehearsal: it {how}; expected the same, bit for "
                "bit: play it without oc.compiled, or write it so that no rounding depends on it"
            )
