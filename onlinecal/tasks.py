"""Decision tasks, the responses of those who trust a forecast, and what they come to regret."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

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

    name: str
    payoffs: tuple[tuple[float, float], ...]
    actions: tuple[str, ...] = ()

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


# -------------------------------------------------------------------- functions of Γ


def payoff(gamma: JointDistribution, task: Task) -> float:
    """Average payoff of a decision maker who trusts the forecast, E[u(BR(v), y)].

    Parameters
    ----------
    gamma : JointDistribution
    task : Task
        A `DecisionTask`, a `QuadraticTask`, or anything with an `account`.

    Returns
    -------
    float
        In [0, 1].

    Source
    ------
    Gopalan & Hu 2025, §4.

    Deviations
    ----------
    none

    Examples
    --------
    >>> payoff(JointDistribution.from_samples([0.9, 0.9, 0.1], [1, 1, 0]), v_shaped(0.5))
    1.0
    """
    return task.account(gamma).payoff


def swap_regret(gamma: JointDistribution, task: Task) -> float:
    """Gain from replacing the response to each prediction by the best one in hindsight.

    max over σ: [0, 1] → A of E[u(σ(v), y)] − E[u(BR(v), y)] = Σ w_i (max_a u(a, q_i) − u(BR(v_i), q_i)) with
    u(a, q) = (1 − q) u(a, 0) + q u(a, 1). The papers call it the fixed-task decision loss (CFDL) of the task.
    A level within the tie tolerance of a kink counts as lying on it.

    Parameters
    ----------
    gamma : JointDistribution
    task : Task

    Returns
    -------
    float
        In [0, 1]; exactly 0 where every level has q_i = v_i.

    Source
    ------
    Hu & Wu 2024; Gopalan & Hu 2025, §4 (CFDL).

    Deviations
    ----------
    none

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.45], [1], [0.55])
    >>> round(swap_regret(gamma, v_shaped(0.5)), 6), swap_regret(gamma, v_shaped(0.6))
    (0.1, 0.0)
    """
    return task.account(gamma).swap


def action_swap_regret(gamma: JointDistribution, task: Task) -> float:
    """Gain from a swap that sees only the action taken: max over φ: A → A of E[u(φ(a), y)] − E[u(a, y)].

    The responses a = BR(v) are those of `swap_regret`, ties included, so that it is never above it.

    Parameters
    ----------
    gamma : JointDistribution
    task : Task

    Returns
    -------
    float
        In [0, swap_regret].

    Source
    ------
    Blum & Mansour 2007; Hu & Wu 2024.

    Deviations
    ----------
    none

    Examples
    --------
    Two errors that a response to the prediction could mend and a response to the action cannot:

    >>> gamma = JointDistribution.from_levels([0.6, 0.7], [0.5, 0.5], [0.3, 1.0])
    >>> round(swap_regret(gamma, v_shaped(0.5)), 6), action_swap_regret(gamma, v_shaped(0.5))
    (0.2, 0.0)
    """
    return task.account(gamma).action_swap


def external_regret(gamma: JointDistribution, task: Task) -> float:
    """Gain of the best fixed action: max_a E[u(a, y)] − E[u(BR(v), y)], with its sign.

    It is negative where the forecast helps more than any constant. The responses are those of `swap_regret`.

    Parameters
    ----------
    gamma : JointDistribution
    task : Task

    Returns
    -------
    float
        In [−1, action_swap_regret].

    Source
    ------
    Kleinberg, Paes Leme, Schneider & Teng 2023.

    Deviations
    ----------
    none

    Examples
    --------
    >>> external_regret(JointDistribution.from_samples([0.9, 0.1], [1, 0]), v_shaped(0.5))
    -0.5
    """
    return task.account(gamma).external


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


# -------------------------------------------------------------------- named tasks


def umbrella(*, cost: float = 0.3) -> DecisionTask:
    """Carry an umbrella at a cost, or leave it and lose everything if it rains (y = 1).

    Carrying pays 1 − cost whatever happens; leaving pays 1 if dry and 0 if wet. Carry if v > cost: one kink,
    at the cost (the cost-loss model of weather forecasting).

    Parameters
    ----------
    cost : float, default 0.3
        In [0, 1].

    Raises
    ------
    InvalidParameter
        On a cost outside [0, 1].

    Source
    ------
    Murphy 1977 (cost-loss ratio).

    Deviations
    ----------
    none

    Examples
    --------
    >>> print(umbrella(cost=0.3))
    umbrella(cost=0.3): carry pays 0.7 if y = 0 and 0.7 if y = 1, leave pays 1 if y = 0 and 0 if y = 1
    """
    cost = _unit("cost", cost)
    payoffs = ((1.0 - cost, 1.0 - cost), (1.0, 0.0))
    return DecisionTask(f"umbrella(cost={cost!r})", payoffs, ("carry", "leave"))


def v_shaped(t: float = 0.5) -> DecisionTask:
    """Two actions, "low" below the kink t and "high" above it, with payoffs stretched over [0, 1].

    The regret density R(t) over max(t, 1 − t); the best of these tasks gives `v_cdl`.

    Parameters
    ----------
    t : float, default 0.5
        The kink, in [0, 1].

    Raises
    ------
    InvalidParameter
        On t outside [0, 1].

    Source
    ------
    Hu & Wu 2024; Gopalan & Hu 2025, Theorem 4.10.

    Deviations
    ----------
    none

    Examples
    --------
    >>> v_shaped(0.5).payoffs, v_shaped(0.2).payoffs
    (((1.0, 0.0), (0.0, 1.0)), ((0.25, 0.0), (0.0, 1.0)))
    """
    t = _unit("t", t)
    low, high = (t / (1.0 - t), 1.0) if t <= 0.5 else (1.0, (1.0 - t) / t)
    return DecisionTask(f"v_shaped(t={t!r})", ((low, 0.0), (0.0, high)), ("low", "high"))


def quadratic() -> QuadraticTask:
    """Name the probability: payoff 1 − (a − y)², a in [0, 1]. See `QuadraticTask`."""
    return QuadraticTask()


def three_action() -> DecisionTask:
    """The quadratic task with the actions 0, 1/2 and 1 only: kinks at 1/4 and 3/4.

    Source
    ------
    Gopalan & Hu 2025, §4.2, restricted to three actions.

    Deviations
    ----------
    none

    Examples
    --------
    >>> three_action().payoffs
    ((1.0, 0.0), (0.75, 0.75), (0.0, 1.0))
    """
    return DecisionTask("three_action", ((1.0, 0.0), (0.75, 0.75), (0.0, 1.0)), ("no", "unsure", "yes"))


def random_task(actions: int = 4, seed: int = 0) -> DecisionTask:
    """A random task in which every action is the best response to some prediction.

    `actions` − 1 kinks uniform on [0, 1] with exponential weights; at each kink the payoff for y = 1 rises by
    weight × (1 − kink) and that for y = 0 falls by weight × kink, scaled so that the larger range is 1.

    Parameters
    ----------
    actions : int, default 4
        At least 1.
    seed : int, default 0
        At least 0; the same seed gives the same task.

    Raises
    ------
    InvalidParameter
        On actions < 1 or seed < 0.

    Source
    ------
    The representation of proper scoring rules by kinks (Schervish 1989).

    Deviations
    ----------
    none

    Examples
    --------
    >>> task = random_task(5, seed=3)
    >>> len(task.actions), max(max(row) for row in task.payoffs)
    (5, 1.0)
    """
    for name, value, least in (("actions", actions, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InvalidParameter(f"{name} = {value!r}; expected an integer of at least {least}")
    rng = np.random.default_rng(int(seed))
    kinks = np.sort(rng.random(actions - 1))
    weights = rng.exponential(size=actions - 1)
    falls = np.concatenate([np.cumsum((weights * kinks)[::-1])[::-1], [0.0]])
    rises = np.concatenate([[0.0], np.cumsum(weights * (1.0 - kinks))])
    scale = max(falls[0], rises[-1]) or 1.0
    payoffs = tuple((float(f), float(r)) for f, r in zip(falls / scale, rises / scale, strict=True))
    return DecisionTask(f"random_task(actions={actions}, seed={seed})", payoffs)


def _unit(name: str, value: Any) -> float:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or math.isnan(value) or not 0.0 <= value <= 1.0:
        raise InvalidParameter(f"{name} = {value!r}; expected a number in [0, 1]")
    return float(value)


_CONSTRUCTORS: Sequence[Any] = (umbrella, v_shaped, quadratic, three_action, random_task)
TASKS = {constructor.__name__: constructor for constructor in _CONSTRUCTORS}
"""The tasks by name; each can be built without arguments."""
