"""What a total is of, as data: a measure, a task that is decided by the forecast, what a player certifies.

Names of columns are made from this and never read back: two things of one name differ here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import is_number, is_whole

Kind = Literal["measure", "function", "certificate", "decision_task", "quadratic_task", "other_task"]
End = Literal["", "lower", "upper"]

#: what is tracked of a task
ACCOUNT = ("payoff", "external_regret", "action_swap_regret", "swap_regret")


@dataclass(frozen=True)
class Column:
    """What a column of totals is of.

    Parameters
    ----------
    kind : str
        ``"measure"``, one of the catalogue; ``"function"``, somebody's function of Γ; ``"certificate"``, what a
        forecaster proves of its own play; ``"decision_task"``, a task of finitely many actions with payoffs in [0, 1];
        ``"quadratic_task"``, that of naming the probability; ``"other_task"``, somebody's class.
    measure : str
        The name of the measure, function or certificate; of a task one of `ACCOUNT`.
    options : tuple of (str, value)
        Of a measure, those that were set: numbers, texts, None, or tuples of them.
    task : str
        The name of the task.
    response : str
        How forecasts are acted on, with its options; "" for the best response.
    end : {"", "lower", "upper"}
        Of a bracket, which of its ends.

    Raises
    ------
    InvalidParameter
        A kind or an end that there is not, a task without a name or something else with one.

    Examples
    --------
    >>> Column("measure", "binned_ece", (("bins", 15),)).name
    'binned_ece(bins=15)'
    >>> Column("decision_task", "swap_regret", task="umbrella", response="rounded(m=10)").name
    'swap_regret[umbrella, rounded(m=10)]'
    >>> Column("measure", "distance_lower", end="upper").name
    'distance_lower[upper]'
    """

    kind: Kind
    measure: str
    options: tuple[tuple[str, Any], ...] = ()
    task: str = ""
    response: str = ""
    end: End = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind) or self.end not in get_args(End):
            raise InvalidParameter(
                f"a column of kind {self.kind!r} with end {self.end!r}; expected kind "
                f"{', '.join(map(repr, get_args(Kind)))} and end 'lower', 'upper' or ''"
            )
        if bool(self.task) != self.of_task or (self.of_task and self.measure not in ACCOUNT):
            expected = f"the name of the task and one of {', '.join(ACCOUNT)}" if self.of_task else "no task"
            raise InvalidParameter(
                f"a {self.kind} column {self.measure!r} with task {self.task!r}; expected {expected}"
            )
        object.__setattr__(self, "options", tuple((key, _plain(value)) for key, value in self.options))

    @property
    def of_task(self) -> bool:
        """Whether it is from the account of a task."""
        return self.kind.endswith("_task")

    @property
    def name(self) -> str:
        """What it is called in tables, plots and files."""
        options = ", ".join(f"{key}={_text(value)}" for key, value in self.options)
        who = ", ".join(filter(None, (self.task, self.response)))
        return f"{self.measure}{options and f'({options})'}{who and f'[{who}]'}{self.end and f'[{self.end}]'}"

    @property
    def quantity(self) -> str:
        """What `onlinecal.core.relations` calls it, of a bracket what lies in it; "" for what they say nothing of."""
        if self.kind in ("measure", "certificate"):
            return Column(self.kind, self.measure, self.options).name
        if self.response or self.measure == "payoff" or self.kind not in ("decision_task", "quadratic_task"):
            return ""
        quadratic = self.kind == "quadratic_task" and self.measure == "swap_regret"
        return QUADRATIC if quadratic else self.measure

    def __str__(self) -> str:
        return self.name

    def as_json(self) -> dict[str, Any]:
        """For a file: only what is set."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {key: value for key, value in values.items() if value}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Column:
        """From what `as_json` gave, in whatever way it was written down."""
        options = tuple((key, value) for key, value in values.get("options", ()))
        return cls(**{**values, "options": options})


#: the swap regret of the quadratic task, which is a quantity of its own: it is the squared calibration error
QUADRATIC = "swap_regret[quadratic]"


def named(columns: Iterable[Column]) -> dict[str, Column]:
    """Name → column."""
    return {column.name: column for column in columns}


def _plain(value: Any) -> Any:
    """A value that can be compared, and written into a file and read again: of anything else its text."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if value is None or isinstance(value, bool | str):
        return value
    if is_whole(value):
        return int(value)
    return float(value) if is_number(value) else str(value)


def _text(value: Any) -> str:
    return f"[{', '.join(map(repr, value))}]" if isinstance(value, tuple) else str(value)
