"""Decision tasks, what trusting a forecast in one of them comes to regret, and the tasks that have a name."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, cast, runtime_checkable

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import LIST, InvalidParameter, meant
from onlinecal.core.joint import JointDistribution, check_gamma, of_gamma
from onlinecal.core.samples import with_ours
from onlinecal.core.validation import Named, count, number, probability
from onlinecal.decisions import swaps as families
from onlinecal.decisions._payoffs import PayoffTable, check_name
from onlinecal.decisions.regret import (
    TIE,
    Account,
    account_of_levels,
    best_actions,
    quadratic_account,
)

__all__ = [
    "TASKS", "TIE", "Account", "DecisionTask", "QuadraticTask", "Task", "action_swap_regret", "as_task",
    "external_regret", "payoff", "quadratic", "random_task", "restricted_swap_regret", "swap_regret",
    "three_action", "umbrella", "v_shaped",
]  # fmt: skip


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
class DecisionTask(PayoffTable):
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

    #: raised when its account changes: results are kept under it (tests/golden.py)
    version: ClassVar[int] = 1
    outcomes: ClassVar[int | None] = 2

    @cached_property
    def envelope(self) -> tuple[Ints, Floats, Floats, Floats]:
        """The actions that are best somewhere, by rising v, their payoffs, and between which v each kink lies."""
        best, low, high = best_actions(self.payoffs, TIE)
        return best, self.table[best], low, high

    def respond(self, v: float) -> str:
        """The first action that is a best response to v (games break ties by outcome, see the class)."""
        v = probability("v", v)
        expected = (1.0 - v) * self.table[:, 0] + v * self.table[:, 1]
        return self.actions[int(np.argmax(expected >= expected.max() - TIE))]

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

    #: raised when its account changes: results are kept under it (tests/golden.py)
    version: ClassVar[int] = 1

    name: str = "quadratic"

    def __post_init__(self) -> None:
        check_name(self.name)

    def respond(self, v: float) -> float:
        """v itself."""
        return probability("v", v)

    def account(self, gamma: JointDistribution) -> Account:
        """Payoff and regrets of predicting v, in O(k)."""
        check_gamma(self.name, gamma)
        return quadratic_account(gamma.predictions, gamma.mass, gamma.means)

    def __str__(self) -> str:
        return f"{self.name}: any action a in [0, 1] pays 1 − (a − y)²"


@of_gamma
def payoff(gamma: JointDistribution, task: Task | str) -> float:
    """Average payoff of a decision maker that trusts the forecast, E[u(BR(v), y)], in [0, 1].

    Source: Gopalan & Hu 2025, §4.

    Parameters
    ----------
    task : Task or str
        A `DecisionTask`, a `QuadraticTask`, anything with a name and an `account`, or a name in `TASKS`.

    Examples
    --------
    >>> payoff(JointDistribution.from_samples([0.9, 0.9, 0.1], [1, 1, 0]), v_shaped(0.5))
    1.0
    """
    return as_task("payoff", task).account(gamma).payoff


@of_gamma
def swap_regret(gamma: JointDistribution, task: Task | str) -> float:
    """Gain from replacing the response to each prediction by the best one in hindsight, in [0, 1].

    max over σ: [0, 1] → A of E[u(σ(v), y)] − E[u(BR(v), y)] = Σ w_i (max_a u(a, q_i) − u(BR(v_i), q_i)).

    Here u(a, q) = (1 − q) u(a, 0) + q u(a, 1). It is the fixed-task decision loss (CFDL). A level on a kink is a tie,
    broken against the forecaster (see `DecisionTask`). Exactly 0 where every level has q_i = v_i.

    Source: Hu & Wu 2024; Gopalan & Hu 2025, §4 (CFDL).

    Parameters
    ----------
    task : Task or str
        As in `payoff`.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.45], [1], [0.55])
    >>> round(swap_regret(gamma, v_shaped(0.5)), 6), swap_regret(gamma, v_shaped(0.6))
    (0.1, 0.0)
    """
    return as_task("swap_regret", task).account(gamma).swap


@of_gamma
def restricted_swap_regret(
    gamma: JointDistribution,
    task: Task | str,
    *,
    swaps: Literal["monotone", "lipschitz"] | Iterable[families.Swap] = "monotone",
    lipschitz: float = 1.0,
) -> float:
    """Gain from the best response to κ(v) instead of v, for the best κ of a family of swaps.

    sup over κ of E[u(BR(κ(v)), y)] − E[u(BR(v), y)]. With all κ: [0, 1] → [0, 1] it is `swap_regret`; it is at least 0
    where κ(v) = v is one of the swaps. Exact up to rounding. κ of neighbouring levels may be 2⁻⁵⁰ further apart than L
    allows, the width of a tie.

    Source: Bairaktari, Hu, Nguyen & Ullman 2026, §1.2; Rossellini et al. 2025 for monotone swaps. Deviations: ties at v
    are broken against the forecaster, as in `swap_regret`. Those at κ(v) are broken against a swap that is given. They
    are broken for one that is searched for, as swaps beside it approach the supremum.

    Parameters
    ----------
    task : Task or str
        As in `payoff`.
    swaps : {"monotone", "lipschitz"} or iterable of swaps, default "monotone"
        All κ that do not fall, in O(k A). All with |κ(u) − κ(v)| ≤ L |u − v|, in O(k² A) at worst, some 5 s for k =
        20,000. Or each κ of a list: a function of an array, or its (k,) values at the ascending levels.
    lipschitz : float, default 1.0
        L ≥ 0, may be infinite. With L = 0 every κ is constant, which is `external_regret`.

    Examples
    --------
    A forecast that is too sure is repaired in its order, one that is upside down is not:

    >>> sure = JointDistribution.from_levels([0.0, 1.0], [0.5, 0.5], [0.4, 0.6])
    >>> upside_down = JointDistribution.from_levels([0.2, 0.8], [0.5, 0.5], [0.8, 0.2])
    >>> [round(restricted_swap_regret(gamma, "three_action"), 6) for gamma in (sure, upside_down)]
    [0.15, 0.55]
    """
    where = "restricted_swap_regret"
    task = as_task(where, task)
    account = task.account(gamma)
    if not isinstance(swaps, str):
        best = max(task.account(moved).payoff for moved in families.swapped(f"{where}: swaps", gamma, swaps))
        return min(best - account.payoff, account.swap)
    if swaps not in ("monotone", "lipschitz"):
        raise InvalidParameter(f"{where}: swaps = {swaps!r}; expected 'monotone', 'lipschitz' or a list")
    rate = number(where, "lipschitz", lipschitz, 0.0)
    free = swaps == "monotone"
    if not free and rate == 0.0:
        return account.external  # every κ is constant, and so is its response, on a kink too
    if isinstance(task, DecisionTask):
        gain = families.best_payoff(gamma, task.envelope, None if free else rate) - account.payoff
    elif isinstance(task, QuadraticTask):
        gain = families.nearer(gamma, None if free else rate)
    else:
        raise InvalidParameter(
            f"{where}: swaps = {swaps!r} with task {task.name!r}; expected a table of payoffs or the quadratic task, "
            "or a list of swaps"
        )
    if free or rate >= 1.0:
        gain = max(gain, 0.0)  # κ(v) = v
    return min(gain, account.swap)


@of_gamma
def action_swap_regret(gamma: JointDistribution, task: Task | str) -> float:
    """Gain from a swap that sees only the action: max over φ: A → A of E[u(φ(a), y)] − E[u(a, y)].

    The responses a = BR(v) are those of `swap_regret`, which is no less, ties included.

    Source: Blum & Mansour 2007; Hu & Wu 2024.

    Parameters
    ----------
    task : Task or str
        As in `payoff`.

    Examples
    --------
    Two errors that a response to the prediction could mend and a response to the action cannot:

    >>> gamma = JointDistribution.from_levels([0.6, 0.7], [0.5, 0.5], [0.3, 1.0])
    >>> round(swap_regret(gamma, v_shaped(0.5)), 6), action_swap_regret(gamma, v_shaped(0.5))
    (0.2, 0.0)
    """
    return as_task("action_swap_regret", task).account(gamma).action_swap


@of_gamma
def external_regret(gamma: JointDistribution, task: Task | str) -> float:
    """Gain of the best fixed action, max_a E[u(a, y)] − E[u(BR(v), y)]; at most action_swap_regret.

    Source: Kleinberg, Paes Leme, Schneider & Teng 2023.

    Parameters
    ----------
    task : Task or str
        As in `payoff`.

    Examples
    --------
    >>> external_regret(JointDistribution.from_samples([0.9, 0.1], [1, 0]), v_shaped(0.5))
    -0.5
    """
    return as_task("external_regret", task).account(gamma).external


def as_task(where: str, task: Any) -> Task:
    """A task from one or its name; `where` it was given."""
    if isinstance(task, str):
        return TASKS[meant("task", task, TASKS, LIST)]()
    if not is_task(task):
        raise InvalidParameter(f"{where}: task = {task!r}; expected a task or the name of one")
    return cast(Task, task)


@with_ours
def umbrella(*, cost: float = 0.3) -> DecisionTask:
    """Carry an umbrella at a cost, or leave it and lose everything if it rains (y = 1): the cost-loss model.

    Carrying pays 1 − cost; leaving pays 1 if dry and 0 if wet. Carry if v > cost: one kink, at the cost.

    Source: Murphy 1977 (cost-loss ratio).

    Parameters
    ----------
    cost : float, default 0.3
        In [0, 1].
    """
    cost = probability("cost", cost)
    payoffs = ((1.0 - cost, 1.0 - cost), (1.0, 0.0))
    return DecisionTask(_called(umbrella, cost=cost), payoffs, ("carry", "leave"))


@with_ours
def v_shaped(t: float = 0.5) -> DecisionTask:
    """Two actions, "low" below the kink t and "high" above it, with payoffs stretched over [0, 1].

    Its regret is the density R(t) over max(t, 1 − t); the best of these tasks gives `v_cdl`.

    Source: Hu & Wu 2024; Gopalan & Hu 2025, Theorem 4.10.

    Parameters
    ----------
    t : float, default 0.5
        The kink, in [0, 1].

    Examples
    --------
    >>> v_shaped(0.5).payoffs, v_shaped(0.2).payoffs
    (((1.0, 0.0), (0.0, 1.0)), ((0.25, 0.0), (0.0, 1.0)))
    """
    t = probability("t", t)
    low, high = (t / (1.0 - t), 1.0) if t <= 0.5 else (1.0, (1.0 - t) / t)
    return DecisionTask(_called(v_shaped, t=t), ((low, 0.0), (0.0, high)), ("low", "high"))


@with_ours
def quadratic() -> QuadraticTask:
    """Name the probability: payoff 1 − (a − y)², a in [0, 1]. See `QuadraticTask`."""
    return QuadraticTask()


@with_ours
def three_action() -> DecisionTask:
    """The quadratic task with the actions 0, 1/2 and 1 only: kinks at 1/4 and 3/4.

    Source: Gopalan & Hu 2025, §4.2, restricted to three actions.
    """
    return DecisionTask("three_action", ((1.0, 0.0), (0.75, 0.75), (0.0, 1.0)), ("no", "unsure", "yes"))


@with_ours
def random_task(actions: int = 4, seed: int = 0) -> DecisionTask:
    """A random task in which every action is the best response to some prediction.

    `actions` − 1 kinks are uniform on [0, 1] with exponential weights. At each the payoff for y = 1 rises by
    weight × (1 − kink), and that for y = 0 falls by weight × kink. The larger range is scaled to 1.

    Source: The representation of proper scoring rules by kinks (Schervish 1989).

    Parameters
    ----------
    actions : int, default 4
        From 1 to 10^6.
    seed : int, default 0
        At least 0; the same seed gives the same task.
    """
    actions, seed = count("actions", actions, most=1_000_000), count("seed", seed, 0)
    rng = np.random.default_rng(seed)
    kinks = np.sort(rng.random(actions - 1))
    weights = rng.exponential(size=actions - 1)
    falls = np.concatenate([np.cumsum((weights * kinks)[::-1])[::-1], [0.0]])
    rises = np.concatenate([[0.0], np.cumsum(weights * (1.0 - kinks))])
    scale = max(falls[0], rises[-1]) or 1.0
    payoffs = tuple((float(f), float(r)) for f, r in zip(falls / scale, rises / scale, strict=True))
    return DecisionTask(_called(random_task, actions=actions, seed=seed), payoffs)


def _called(constructor: Any, **options: Any) -> str:
    """The name of a task: its constructor's, with the options that are not the defaults."""
    parameters = inspect.signature(constructor).parameters
    changed = [f"{name}={value!r}" for name, value in options.items() if value != parameters[name].default]
    return f"{constructor.__name__}({', '.join(changed)})" if changed else constructor.__name__


TASKS: dict[str, Callable[..., Task]] = {
    task.__name__: task for task in (umbrella, v_shaped, quadratic, three_action, random_task)
}
"""The tasks by name; each can be built without arguments."""
