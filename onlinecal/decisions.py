"""What a decision task is, and the account of one that is decided by trusting a forecast."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onlinecal._compile import kernel
from onlinecal.errors import InvalidParameter
from onlinecal.joint import JointDistribution

Floats = NDArray[np.float64]

TIE = 1e-12
"""Two actions whose expected payoffs differ by no more than this are both best responses."""


class Account(NamedTuple):
    """What a decision maker who trusts the forecast gets, and the three regrets; all are averages per round.

    Attributes
    ----------
    payoff : float
        E[u(BR(v), y)].
    external, action_swap, swap : float
        See the functions of those names. external ≤ action_swap ≤ swap, and 0 ≤ action_swap.
    """

    payoff: float
    external: float
    action_swap: float
    swap: float


@runtime_checkable
class Task(Protocol):
    """A decision that depends on a binary outcome: anything with a name and an account of a Γ."""

    @property
    def name(self) -> str: ...

    def account(self, gamma: JointDistribution) -> Account:
        """Payoff and regrets of best-responding to the predictions of Γ."""


# -------------------------------------------------------------------- tasks


@dataclass(frozen=True)
class DecisionTask:
    """A decision between finitely many actions with payoffs in [0, 1].

    The best response to a prediction v is an action that maximises (1 − v) u(a, 0) + v u(a, 1). Ties, that
    is expected payoffs within 1e-12 of the best, are broken **against the forecaster**: at each level set the
    decision maker takes, of the tied actions, one that pays least in hindsight (at q_i), the first such in
    the list. The regret at a level is then the largest that best responses can have there, as in CDL.

    Parameters
    ----------
    name : str
        Not empty.
    payoffs : (A, 2) array_like
        payoffs[a][y] = u(a, y) in [0, 1], A ≥ 1.
    actions : (A,) sequence of str, optional
        Distinct names. Default: "action 0", "action 1", ….

    Raises
    ------
    InvalidParameter
        On a payoff outside [0, 1], a row without exactly two payoffs, no action, repeated or too few names.

    Source
    ------
    Hu & Wu 2024; Gopalan & Hu 2025, §4.

    Deviations
    ----------
    The papers leave ties open; any rule gives the same supremum over tasks.

    Examples
    --------
    >>> task = DecisionTask("umbrella", [[0.7, 0.7], [1, 0]], ["carry", "leave"])
    >>> task.respond(0.31), task.respond(0.29)
    ('carry', 'leave')
    >>> task == DecisionTask("umbrella", ((0.7, 0.7), (1.0, 0.0)), ("carry", "leave"))
    True
    """

    #: raised when its account changes: results are kept under it (tests/versions.py)
    version: ClassVar[int] = 1

    name: str
    payoffs: tuple[tuple[float, float], ...]
    actions: tuple[str, ...] = field(
        default=(), metadata={"key": False}
    )  # no number depends on what they are called

    def __post_init__(self) -> None:
        _check_name(self.name)
        payoffs = _payoffs(self.name, self.payoffs)
        actions = _actions(self.name, self.actions, len(payoffs))
        object.__setattr__(self, "payoffs", payoffs)
        object.__setattr__(self, "actions", actions)

    @cached_property
    def table(self) -> Floats:
        """The payoffs as a read-only (A, 2) array."""
        table = np.array(self.payoffs, dtype=np.float64)
        table.flags.writeable = False
        return table

    def respond(self, v: float) -> str:
        """The first action that is a best response to v (games break ties by outcome, see the class)."""
        _check_belief(v)
        expected = self.table @ np.array([1.0 - v, v])
        return self.actions[int(np.argmax(expected >= expected.max() - TIE))]

    def account(self, gamma: JointDistribution) -> Account:
        """Payoff and regrets of best-responding to the predictions of Γ, in O(k A)."""
        return Account(*_account(gamma.predictions, gamma.mass, gamma.means, self.table))

    def __str__(self) -> str:
        rows = ", ".join(
            f"{action} pays {u0:.6g} if y = 0 and {u1:.6g} if y = 1"
            for action, (u0, u1) in zip(self.actions, self.payoffs, strict=True)
        )
        return f"{self.name}: {rows}"


@dataclass(frozen=True)
class QuadraticTask:
    """Name the probability itself: actions a in [0, 1], payoff 1 − (a − y)².

    The best response to v is v, without ties. External regret is the Brier score less the variance of the
    outcomes; swap and action swap regret are both Σ w_i (q_i − v_i)², since each level is its own action.

    Source
    ------
    Gopalan & Hu 2025, §4.2.

    Deviations
    ----------
    none

    Examples
    --------
    >>> gamma = JointDistribution.from_samples([0.5, 0.5, 0.0], [1, 1, 0])
    >>> round(QuadraticTask().account(gamma).swap, 6)
    0.166667
    """

    #: raised when its account changes: results are kept under it (tests/versions.py)
    version: ClassVar[int] = 1

    name: str = "quadratic"

    def __post_init__(self) -> None:
        _check_name(self.name)

    def respond(self, v: float) -> float:
        """v itself."""
        _check_belief(v)
        return float(v)

    def account(self, gamma: JointDistribution) -> Account:
        """Payoff and regrets of predicting v, in O(k)."""
        return Account(*_quadratic_account(gamma.predictions, gamma.mass, gamma.means))

    def __str__(self) -> str:
        return f"{self.name}: any action a in [0, 1] pays 1 − (a − y)²"


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidParameter(f"task name = {name!r}; expected a non-empty string")


def _check_belief(v: Any) -> None:
    if not 0.0 <= v <= 1.0:
        raise InvalidParameter(f"v = {v!r}; expected a probability in [0, 1]")


def _payoffs(task: str, payoffs: Any) -> tuple[tuple[float, float], ...]:
    try:
        rows = [list(row) for row in payoffs]
    except TypeError:
        raise InvalidParameter(
            f"task {task!r}: payoffs = {payoffs!r}; expected payoffs for y = 0 and y = 1, per action"
        ) from None
    if not rows:
        raise InvalidParameter(f"task {task!r}: payoffs is empty; expected at least one action")
    result = []
    for a, row in enumerate(rows):
        if len(row) != 2:
            raise InvalidParameter(
                f"task {task!r}: payoffs[{a}] = {row!r}; expected payoffs for y = 0 and y = 1"
            )
        for y, u in enumerate(row):
            number = isinstance(u, int | float | np.integer | np.floating) and not isinstance(u, bool)
            if not number or not 0.0 <= u <= 1.0:
                where = f"payoffs[{a}][{y}]"
                raise InvalidParameter(f"task {task!r}: {where} = {u!r}; expected a number in [0, 1]")
        result.append((float(row[0]) + 0.0, float(row[1]) + 0.0))
    return tuple(result)


def _actions(task: str, actions: Any, count: int) -> tuple[str, ...]:
    if isinstance(actions, str):
        raise InvalidParameter(f"task {task!r}: actions = {actions!r}; expected a list of names")
    names = tuple(actions) or tuple(f"action {a}" for a in range(count))
    if len(names) != count:
        raise InvalidParameter(
            f"task {task!r}: {len(names)} action names; expected {count}, one per row of payoffs"
        )
    for a, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise InvalidParameter(f"task {task!r}: actions[{a}] = {name!r}; expected a non-empty string")
        if name in names[:a]:
            raise InvalidParameter(f"task {task!r}: actions[{a}] = {name!r} again; expected distinct names")
    return names


@kernel
def _account(v, w, q, payoffs):
    """Payoff and external, action swap and swap regret, for a table of payoffs."""
    actions = payoffs.shape[0]
    mass = np.zeros(actions)  # of the levels that respond with each action
    ones = np.zeros(actions)  # and of the outcomes 1 among them
    total = 0.0
    swap = 0.0
    for i in range(v.shape[0]):
        best = -1.0
        hindsight = -1.0
        for a in range(actions):
            best = max(best, (1.0 - v[i]) * payoffs[a, 0] + v[i] * payoffs[a, 1])
            hindsight = max(hindsight, (1.0 - q[i]) * payoffs[a, 0] + q[i] * payoffs[a, 1])
        choice = 0
        got = 2.0
        for a in range(actions):
            if (1.0 - v[i]) * payoffs[a, 0] + v[i] * payoffs[a, 1] >= best - TIE:
                u = (1.0 - q[i]) * payoffs[a, 0] + q[i] * payoffs[a, 1]
                if u < got:
                    got = u
                    choice = a
        total += w[i] * got
        if q[i] != v[i]:  # a calibrated level has nothing to gain, whatever the rounding of its ties
            swap += w[i] * (hindsight - got)
        mass[choice] += w[i]
        ones[choice] += w[i] * q[i]
    action_swap = 0.0
    external = -np.inf
    for a in range(actions):
        if mass[a] > 0.0:
            gain = 0.0
            for b in range(actions):
                less0 = payoffs[b, 0] - payoffs[a, 0]
                less1 = payoffs[b, 1] - payoffs[a, 1]
                gain = max(gain, (mass[a] - ones[a]) * less0 + ones[a] * less1)
            action_swap += gain
    for b in range(actions):
        gain = 0.0
        for a in range(actions):
            less0 = payoffs[b, 0] - payoffs[a, 0]
            less1 = payoffs[b, 1] - payoffs[a, 1]
            gain += (mass[a] - ones[a]) * less0 + ones[a] * less1
        external = max(external, gain)
    # The order between the three is a theorem; rounding must not undo it.
    action_swap = min(action_swap, swap)
    return total, min(external, action_swap), action_swap, swap


@kernel
def _quadratic_account(v, w, q):
    """The same for payoff 1 − (a − y)²: reliability, and reliability less resolution."""
    base = 0.0
    for i in range(v.shape[0]):
        base += w[i] * q[i]
    lost = 0.0
    swap = 0.0
    spread = 0.0
    for i in range(v.shape[0]):
        error = q[i] - v[i]
        apart = q[i] - base
        lost += w[i] * (error * error + q[i] * (1.0 - q[i]))
        swap += w[i] * (error * error)
        spread += w[i] * (apart * apart)
    return 1.0 - lost, swap - spread, swap, swap
