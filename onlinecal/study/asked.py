"""What is asked of games: measures by name, as tables and functions, and tasks, each with its columns."""

import inspect
import math
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, NamedTuple, TypeVar, cast

from onlinecal.core import errors
from onlinecal.core.arrays import Floats
from onlinecal.core.columns import ACCOUNT, Column, Kind
from onlinecal.core.content import content
from onlinecal.core.errors import (
    InvalidData,
    InvalidParameter,
    MissingParameter,
    OnlinecalError,
    UnknownParameter,
    failure,
)
from onlinecal.core.joint import JointDistribution
from onlinecal.core.levels import LevelSets
from onlinecal.core.strategy import named_table
from onlinecal.core.transcript import needs_of
from onlinecal.core.validation import as_float
from onlinecal.decisions.class_tasks import ClassTask
from onlinecal.decisions.regret import table_accounts
from onlinecal.decisions.responses import DecisionMaker, as_decision_maker, response_name
from onlinecal.decisions.tasks import DecisionTask, QuadraticTask, Task, is_task
from onlinecal.measures import MEASURES, OF_SHORT_GAMES
from onlinecal.measures.base import Bracket, Measure
from onlinecal.measures.groups import OF_GROUPS, is_of_groups

T = TypeVar("T")
#: the measures by name
KNOWN = ChainMap(MEASURES, OF_SHORT_GAMES, OF_GROUPS)


def known_measures(classes: bool) -> Mapping[str, Measure]:
    """The measures by name of games of K classes, or of outcomes 0 and 1."""
    if not classes:
        return KNOWN
    # With linear programs: few need them.
    from onlinecal.measures.classes.catalogue import MEASURES as OF_CLASSES

    return OF_CLASSES


class Asked(NamedTuple):
    """A measure with its options set, or a task, that is asked for."""

    #: one, the two ends of a bracket, or one for each part of an account
    columns: tuple[Column, ...]
    #: of Γ, of rounds or of the Γ of groups
    function: Callable[[Any], Any]
    #: several Γ ↦ their values, or None; None for a measure of one Γ alone
    many: Callable[[LevelSets], Floats | None] | None
    #: None for a task
    record: Measure | None = None
    options: Mapping[str, Any] = {}
    task: Task | None = None

    @property
    def needs(self) -> frozenset[str] | None:
        """The kinds of context that a measure of rounds reads; None for all else."""
        return needs_of(self.record and self.record.function)

    @property
    def of_groups(self) -> bool:
        """Whether it is a measure of the Γ of all groups."""
        return is_of_groups(self.record and self.record.function)

    @property
    def of_user(self) -> bool:
        """Whether it is a function of a user."""
        return self.columns[0].kind in ("function", "class_function")

    @property
    def name(self) -> str:
        """The name in tables, of either end; that of the task."""
        return self.columns[0].whole if self.task is None else self.task.name

    @property
    def content(self) -> Any:
        """All that its numbers depend on (see `onlinecal.core.content`)."""
        if self.record is None:
            return content(self.task)
        what = {"measure": self.record.name, "version": self.record.version}
        if self.of_user:
            what = content(self.record.function)
        options = {key: content(value) for key, value in self.options.items()}
        return {"what": what, "options": options, "bracket": len(self.columns) == 2}

    def read(self, seen: Any) -> Sequence[float]:
        """The value in each of its columns."""
        if self.task is not None:
            return tuple(self.function(seen)[: len(ACCOUNT)])
        value = measured(self.columns[0].measure, self.function, seen)
        if not isinstance(value, Bracket):
            return [value] * len(self.columns)
        if len(self.columns) == 2:
            return [value.lower, value.upper]
        raise InvalidData(f"measure {self.name!r} returned {value!r}; expected a number")


def _accounts(task: Task, sets: LevelSets) -> Floats | None:
    """The accounts of several Γ, (B, columns); None for a task that has no form for them."""
    if getattr(type(task), "account", None) is not DecisionTask.account:  # that of a user may be another
        return None
    return table_accounts(sets, *cast(DecisionTask, task).envelope)


def measured(name: str, measure: Callable[[Any], Any], gamma: Any) -> float | Bracket:
    """The value of a measure on Γ, on rounds or on the Γ of groups; any error of its function names it."""
    try:
        value = measure(gamma)
        if isinstance(value, Real):
            return as_float(value)
    except OnlinecalError:
        raise
    except (Exception, SystemExit) as error:
        raise InvalidData(f"measure {name!r} failed: {failure(error)}") from error
    if not isinstance(value, Bracket):
        raise InvalidData(f"measure {name!r} returned {value!r}; expected a number")
    return value


def as_list(specs: Any) -> Iterable[Any]:
    """Measures or tasks; a single one is a list of one."""
    return specs if isinstance(specs, Iterable) and not isinstance(specs, str | Mapping) else [specs]


def each_measure(make: Callable[[Any], T], specs: Iterable[Any]) -> list[T]:
    """Makes something of each measure; all that lack options are told together."""
    made, lacking = [], dict[str, None]()
    for spec in specs:
        try:
            made.append(make(spec))
        except MissingParameter as error:
            lacking[str(error)] = None
    if lacking:
        raise MissingParameter("; ".join(lacking))
    return made


def named_measure(
    spec: Any, known: Mapping[str, Measure] = KNOWN
) -> tuple[Column, Callable[[JointDistribution], Any], Measure, dict[str, Any]]:
    """The column of a measure as in `Panel.of`, its function with the options set, its record, and these options."""
    options = dict(spec) if isinstance(spec, Mapping) else {"name": spec}
    function = options.pop("name", None)
    if callable(function):
        name = getattr(function, "__name__", repr(function))
    else:
        name, options = named_table("measure", spec)
        name = errors.meant("measure", name, known, errors.LIST)
    set_ = tuple(options.items())
    record = known.get(name)
    if callable(function) and (record is None or record.function is not function):
        record = Measure(function, "", "", "", least=-math.inf, largest=math.inf)
        return Column("function", name, set_), _with(name, function, options), record, options
    assert record is not None
    return Column("measure", name, set_), record.bind(**options), record, options


def asked_measure(spec: Any, rounds: int | None, classes: bool) -> Asked:
    known = known_measures(classes)
    try:
        column, function, record, options = named_measure(spec, known)
    except errors.UnknownName as error:
        name = spec.get("name") if isinstance(spec, Mapping) else spec
        if name not in known_measures(not classes):
            raise
        if not classes:
            raise InvalidParameter(
                f"measure {name!r} is of K classes; expected one of outcomes 0 and 1"
            ) from error
        raise InvalidParameter(
            f"measure {name!r} is of outcomes 0 and 1; expected one of K classes: {', '.join(known)}. "
            f'{{ name = "classwise", measure = "{name}" }} reads it of each class'
        ) from error
    if classes:
        column = replace(column, kind="class_function" if column.kind == "function" else "class_measure")
    if record.most_rounds is not None and rounds is not None and rounds > record.most_rounds:
        raise InvalidParameter(
            f"measure {column.name!r} in games of T = {rounds:,}; expected T ≤ {record.most_rounds}, as one Γ takes "
            f"{record.complexity.partition(',')[0]} steps"
        )
    columns = (column,)
    if record.may_bracket(options, rounds):
        columns = replace(column, end="lower"), replace(column, end="upper")  # type: ignore[assignment]
    many = None if record.many is None else partial(record.many, **options)
    return Asked(columns, function, many, record, options)


def asked_task(spec: Any) -> Asked:
    if isinstance(spec, ClassTask):
        raise InvalidParameter(f"task {spec.name!r} is of classes; expected a task of outcomes 0 and 1")
    task = as_decision_maker(spec)
    inner, response = (
        (task.task, response_name(task.response)) if isinstance(task, DecisionMaker) else (task, "")
    )
    kind: Kind = "other_task"
    if isinstance(inner, DecisionTask | QuadraticTask):
        kind = "decision_task" if isinstance(inner, DecisionTask) else "quadratic_task"
    return _of_task(Column(kind, "", task=inner.name, response=response), task)


def asked_class_task(spec: Any) -> Asked:
    """A task of K classes; a table has a name, payoffs, and maybe actions."""
    task = spec
    if isinstance(spec, Mapping) and "payoffs" in spec:
        name, options = named_table("task", spec)
        if more := [key for key in options if key not in ("payoffs", "actions")]:
            raise UnknownParameter.of(f"task {name!r}", more[0], ["payoffs", "actions"], "option")
        task = ClassTask(name, **options)
    elif not is_task(spec) or isinstance(spec, DecisionTask | QuadraticTask | DecisionMaker):
        called = spec.get("name") if isinstance(spec, Mapping) else getattr(spec, "name", spec)
        raise InvalidParameter(
            f"task {called!r} is of outcomes 0 and 1; expected one of classes: an `oc.measures.classes.ClassTask`, or "
            "a table with a name and payoffs, a row of K numbers for each action"
        )
    return _of_task(Column("class_task", "", task=task.name), task)


def _of_task(column: Column, task: Task) -> Asked:
    """A task with a column for each part of its account, in the order of `tasks.Account`."""
    columns = tuple(replace(column, measure=entry) for entry in ACCOUNT)
    return Asked(columns, task.account, partial(_accounts, task), task=task)


def _with(name: str, function: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    """A function of a user with its options set."""
    if not options:
        return function
    try:
        inspect.signature(function).bind(None, **options)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"measure {name!r}: {error}") from None
    return partial(function, **options)
