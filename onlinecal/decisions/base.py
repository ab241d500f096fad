"""Decision tasks, and the account of one that is decided by trusting a forecast."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution, check_gamma
from onlinecal.core.validation import Named, number, probability

TIE = 2.0**-50
"""Expected payoffs that differ by no more than this are a tie: so much may come of rounding the payoffs."""


class Account(NamedTuple):
    """Payoff and three regrets of a decision maker that trusts the forecast, per round.

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


def is_task(value: Any) -> bool:
    """Whether this is a task; a class of tasks has the same names and does not count."""
    return isinstance(value, Task) and not isinstance(value, type)


@dataclass(frozen=True)
class DecisionTask(Named):
    """A decision between finitely many actions with payoffs in [0, 1].

    The best response to v maximises (1 − v) u(a, 0) + v u(a, 1). It changes at the kinks of the table. A level on a
    kink is a tie, broken **against the forecaster**, by the action that pays least in hindsight (at q_i). The regret at
    a level is then the largest of best responses there, as in CDL.

    Payoffs are rounded numbers: 0.7 against 1 − v has its kink near 0.3. So a level is on a kink where both
    expected payoffs differ by no more than 2⁻⁵⁰. Of several levels that close, *one* is on it, that of the largest
    regret. Those below it are below the kink and those above it above. Some exact task then has these
    responses, and no regret is above CDL by more than rounding.

    Source: Hu & Wu 2024; Gopalan & Hu 2025, §4. Deviations: the papers leave ties open; any rule gives the same
    supremum over tasks.

    Parameters
    ----------
    name : str
        Not empty.
    payoffs : (A, 2) array_like
        `payoffs[a][y]` = u(a, y) in [0, 1], A ≥ 1.
    actions : (A,) sequence of str, optional
        Distinct names. Default: "action 0", "action 1", ….

    Examples
    --------
    >>> task = DecisionTask("umbrella", [[0.7, 0.7], [1, 0]], ["carry", "leave"])
    >>> task.respond(0.31), task.respond(0.29)
    ('carry', 'leave')
    """

    #: raised when its account changes: results are kept under it (tests/versions.py)
    version: ClassVar[int] = 1

    name: str
    #: tuples, whatever is given
    payoffs: Sequence[Sequence[float]]
    #: no number depends on the names
    actions: Sequence[str] = field(default=(), metadata={"key": False})

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "payoffs", _payoffs(self.name, self.payoffs))
        object.__setattr__(self, "actions", _actions(self.name, self.actions, len(self.payoffs)))

    @cached_property
    def table(self) -> Floats:
        """The payoffs as a read-only (A, 2) array."""
        table: Floats = locked(np.array(self.payoffs, dtype=np.float64))
        return table

    @cached_property
    def envelope(self) -> tuple[NDArray[np.int64], Floats, Floats, Floats]:
        """The actions that are best somewhere, by rising v, their payoffs, and between which v each kink lies."""
        best, low, high = best_actions(self.payoffs, TIE)
        return best, self.table[best], low, high

    def respond(self, v: float) -> str:
        """The first action that is a best response to v (games break ties by outcome, see the class)."""
        v = probability("v", v)
        best, _, low, high = self.envelope
        tied = best[np.searchsorted(high, v, side="left") : np.searchsorted(low, v, side="right") + 1]
        return self.actions[int(tied.min())]

    def account(self, gamma: JointDistribution) -> Account:
        """Payoff and regrets of best-responding to the predictions of Γ, in O(k A)."""
        check_gamma(self.name, gamma)
        return Account(*account_of_levels(gamma.predictions, gamma.mass, gamma.means, *self.envelope))

    def __str__(self) -> str:
        rows = zip(self.actions, self.payoffs, strict=True)
        pays = (f"{action} pays {u0:.6g} if y = 0 and {u1:.6g} if y = 1" for action, (u0, u1) in rows)
        return f"{self.name}: {', '.join(pays)}"


@dataclass(frozen=True)
class QuadraticTask(Named):
    """Name the probability itself: actions a in [0, 1], payoff 1 − (a − y)².

    The best response to v is v, without ties. External regret is the Brier score less the variance of the outcomes.
    Swap and action swap regret are both Σ w_i (q_i − v_i)², since each level is its own action.

    Source: Gopalan & Hu 2025, §4.2.

    Examples
    --------
    >>> round(QuadraticTask().account(JointDistribution.from_samples([0.5, 0.5, 0.0], [1, 1, 0])).swap, 6)
    0.166667
    """

    #: raised when its account changes: results are kept under it (tests/versions.py)
    version: ClassVar[int] = 1

    name: str = "quadratic"

    def __post_init__(self) -> None:
        _check_name(self.name)

    def respond(self, v: float) -> float:
        """v itself."""
        return probability("v", v)

    def account(self, gamma: JointDistribution) -> Account:
        """Payoff and regrets of predicting v, in O(k)."""
        check_gamma(self.name, gamma)
        return Account(*_quadratic_account(gamma.predictions, gamma.mass, gamma.means))

    def __str__(self) -> str:
        return f"{self.name}: any action a in [0, 1] pays 1 − (a − y)²"


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidParameter(f"task name = {name!r}; expected a non-empty string")


def _payoffs(task: str, payoffs: Any) -> tuple[tuple[float, float], ...]:
    where = f"task {task!r}"
    try:
        rows = [list(row) for row in payoffs]
    except TypeError:
        raise InvalidParameter(f"{where}: payoffs = {payoffs!r}; expected a pair for each action") from None
    if not rows:
        raise InvalidParameter(f"{where}: payoffs is empty; expected at least one action")
    for a, row in enumerate(rows):
        if len(row) != 2:
            raise InvalidParameter(f"{where}: payoffs[{a}] = {row!r}; expected payoffs for y = 0 and y = 1")
        for y, u in enumerate(row):
            number(where, f"payoffs[{a}][{y}]", u, 0.0, 1.0)
    return tuple((float(low) + 0.0, float(high) + 0.0) for low, high in rows)


def _actions(task: str, actions: Any, count: int) -> tuple[str, ...]:
    where = f"task {task!r}"
    if isinstance(actions, str) or not isinstance(actions, Iterable):
        raise InvalidParameter(f"{where}: actions = {actions!r}; expected a list of names")
    names = tuple(actions) or tuple(f"action {a}" for a in range(count))
    if len(names) != count:
        raise InvalidParameter(f"{where}: {len(names)} action names; expected {count}, one a row of payoffs")
    for a, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise InvalidParameter(f"{where}: actions[{a}] = {name!r}; expected a non-empty string")
        if name in names[:a]:
            raise InvalidParameter(f"{where}: actions[{a}] = {name!r} again; expected distinct names")
    return names


_BELOW, _ABOVE = Fraction(-1), Fraction(2)  # outside of [0, 1]
_Line = tuple[Fraction, Fraction, int]  # slope, value at v = 0, minus the action


def best_actions(payoffs: Sequence[Sequence[float]], tie: float) -> tuple[NDArray[np.int64], Floats, Floats]:
    """The upper envelope of the lines (1 − v) u(a, 0) + v u(a, 1): actions from v = 0 to 1, of equal ones the first;
    kinks.

    From best[j] to best[j + 1] the action changes at a v in [low[j], high[j]]: both pay the same up to `tie`.
    """
    lines: list[_Line] = [
        (Fraction(u1) - Fraction(u0), Fraction(u0), -a) for a, (u0, u1) in enumerate(payoffs)
    ]
    hull: list[_Line] = []
    for line in sorted(lines):
        if hull and hull[-1][0] == line[0]:
            hull.pop()  # parallel and no higher, or the same and later in the list
        while len(hull) > 1 and _crossing(hull[-2], line) <= _crossing(hull[-2], hull[-1]):
            hull.pop()
        hull.append(line)
    kinks = [(_crossing(a, b), Fraction(tie) / (b[0] - a[0])) for a, b in pairwise(hull)]
    # Two lines that hardly cross do so almost anywhere, but not beyond the kinks beside theirs.
    low = np.array([_not_below(max(at - reach, _BELOW)) for at, reach in kinks])
    high = np.array([-_not_below(max(-at - reach, -_ABOVE)) for at, reach in kinks])
    low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1].copy()
    within = slice(np.searchsorted(high, 0.0), np.searchsorted(low, 1.0, side="right"))
    best = np.array([-line[2] for line in hull], np.int64)
    return best[within.start : within.stop + 1], low[within], high[within]


def _crossing(a: _Line, b: _Line) -> Fraction:
    """Where line b, the steeper one, passes line a."""
    return (a[1] - b[1]) / (b[0] - a[0])


def _not_below(x: Fraction) -> float:
    """The least float that is not below x."""
    near = float(x)
    return near if near >= x else math.nextafter(near, math.inf)


@kernel
def _place(v, x, beyond):
    """The first level at or above x, or (`beyond`) above it; NumPy's search takes much longer to compile."""
    low, high = 0, len(v)
    while low < high:
        middle = (low + high) // 2
        if v[middle] < x or (beyond and v[middle] == x):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _levels_on_kinks(v, w, q, payoffs, low, high, on, above):
    """For each kink the level on it, or −1, and the first level above it."""
    kinks = len(low)
    gain, order = np.empty((kinks, 2)), np.empty(kinks, np.int64)
    for j in range(kinks):
        on[j], above[j] = -1, _place(v, high[j], True)
        for y in range(2):
            gain[j, y] = payoffs[j + 1, y] - payoffs[j, y]
        # The sharpest kinks choose first: the others, between theirs, have little to lose. They are put in order one
        # after the other. A sort of numba's takes about as long to compile as all else here.
        at = j
        while at > 0 and gain[order[at - 1], 0] - gain[order[at - 1], 1] > gain[j, 0] - gain[j, 1]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = j
    for j in order:
        first, end = _place(v, low[j], False), above[j]
        for other in range(kinks):
            if on[other] >= 0:
                if other < j:
                    first = max(first, on[other])
                elif other > j:
                    end = min(end, on[other] + 1)
        # The regret at this kink as the level on it moves up. A level below the kink regrets max(g, 0), that it is
        # not above. One above it regrets max(−g, 0), and the one on it |g|.
        most, here = -np.inf, 0.0
        for i in range(first, end):
            g = (1.0 - q[i]) * gain[j, 0] + q[i] * gain[j, 1]
            here += w[i] * max(g, 0.0)
            if here > most:
                most, on[j], above[j] = here, i, i + 1
            here -= w[i] * max(-g, 0.0)


@kernel
def account_of_levels(v, w, q, best, payoffs, low, high) -> tuple[float, float, float, float]:
    """Payoff and external, action swap and swap regret, for the envelope of a table of payoffs."""
    actions = payoffs.shape[0]
    on, above = np.empty(actions, np.int64), np.empty(actions, np.int64)
    _levels_on_kinks(v, w, q, payoffs, low, high, on, above)
    mass = np.zeros(actions)  # of the levels that respond with each action
    ones = np.zeros(actions)  # and of the outcomes 1 among them
    total, swap, least = 0.0, 0.0, 0
    for i in range(v.shape[0]):
        while least < actions - 1 and above[least] <= i:
            least += 1
        choice = least
        got = (1.0 - q[i]) * payoffs[least, 0] + q[i] * payoffs[least, 1]
        a = least
        while a < actions - 1 and on[a] == i:
            a += 1
            u = (1.0 - q[i]) * payoffs[a, 0] + q[i] * payoffs[a, 1]
            if u < got or (u == got and best[a] < best[choice]):
                got = u
                choice = a
        hindsight = got
        for b in range(actions):
            hindsight = max(hindsight, (1.0 - q[i]) * payoffs[b, 0] + q[i] * payoffs[b, 1])
        total += w[i] * got
        if q[i] != v[i]:  # a calibrated level has nothing to gain, whatever the rounding of its ties
            swap += w[i] * (hindsight - got)
        mass[choice] += w[i]
        ones[choice] += w[i] * q[i]
    action_swap, external = 0.0, -np.inf
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
    lost, swap, spread = 0.0, 0.0, 0.0
    for i in range(v.shape[0]):
        error = q[i] - v[i]
        apart = q[i] - base
        lost += w[i] * (error * error + q[i] * (1.0 - q[i]))
        swap += w[i] * (error * error)
        spread += w[i] * (apart * apart)
    return 1.0 - lost, swap - spread, swap, swap
