"""Responses turn forecasts into the beliefs that are acted on; a decision maker is a task with a response.

A response maps Γ to the Γ of the beliefs, in expectation over its own randomness. The account best-responds to these.
Swaps may depend on the belief, as in the swap regret of a randomised response.
"""

import difflib
import inspect
import math
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal, Protocol, cast, get_args, runtime_checkable

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.errors import LIST, InvalidParameter, UnknownParameter, meant
from onlinecal.core.joint import JointDistribution
from onlinecal.core.specification import Checked, allow, number, optional, whole, word
from onlinecal.core.strategy import build, named_table, registry, strategy_name
from onlinecal.decisions.tasks import TASKS, Account, DecisionTask, Task, is_task
from onlinecal.measures.soft_binned import FINEST, SoftRounding, rounded_down, soft_rounding


@runtime_checkable
class Response(Protocol):
    """A way to act on forecasts."""

    def beliefs(self, gamma: JointDistribution) -> JointDistribution:
        """Γ of the beliefs that are acted on."""


@dataclass(frozen=True)
class Best(Checked):
    """Best response to the forecast itself.

    Guarantee: Swap regret at most CDL, for every task with payoffs in [0, 1].

    Source: Hu & Wu 2024; Gopalan & Hu 2025, §4.
    """

    def beliefs(self, gamma: JointDistribution) -> JointDistribution:
        """Γ as it is."""
        return gamma


@dataclass(frozen=True)
class Rounded(Checked):
    """Rounds the forecast at random to a neighbouring multiple of 1/m, keeping its mean, and best-responds to that.

    Guarantee: Swap regret at most 4·SCDL at the default m, 2 (SCDL_m + 1/m) at any, for payoffs in [0, 1].

    Source: Bairaktari, Hu, Nguyen & Ullman 2026, Definitions 4.1, 4.3, Theorem 4.2. Deviations: the default m is chosen
    in hindsight, from the whole Γ, as in the theorem.

    Parameters
    ----------
    m : int, optional
        From 1 to 2⁵⁰. By default the m of `soft_rounding` for the Γ that is acted on, which attains SCDL.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.375], [1], [0.5])
    >>> Rounded(4).beliefs(gamma).predictions, Rounded(4).beliefs(gamma).mass
    (array([0.25, 0.5 ]), array([0.5, 0.5]))
    """

    allowed = allow(m=optional(whole(1, FINEST)))

    m: int | None = None

    def beliefs(self, gamma: JointDistribution) -> JointDistribution:
        """Γ of the rounded forecasts, in O(k) (and the search for m)."""
        rounding = soft_rounding(gamma) if self.m is None else SoftRounding(self.m)
        return rounding.rounded(gamma)


@dataclass(frozen=True)
class RoundedDown(Checked):
    """Rounds the forecast down to a multiple of 1/m, ignoring further digits, and best-responds to that.

    Guarantee: None: calibrated forecasts become biased by up to 1/m. Forecasts that hardly differ may be read 1/m
    apart.

    Source: The hard bins to which Bairaktari, Hu, Nguyen & Ullman 2026 oppose random rounding.

    Parameters
    ----------
    m : int, default 10
        From 1 to 2⁵⁰.

    Examples
    --------
    >>> RoundedDown(4).beliefs(JointDistribution.from_levels([0.3, 0.45, 0.5], [1, 1, 2], [0, 1, 0.5]))
    JointDistribution(2 levels in [0.25, 0.5], weight 4, base rate 0.5)
    """

    allowed = allow(m=whole(1, FINEST))

    m: int = 10

    def beliefs(self, gamma: JointDistribution) -> JointDistribution:
        """Γ of the rounded forecasts, in O(k)."""
        return rounded_down(gamma, self.m)


Noise = Literal["laplace", "gaussian", "uniform"]


@dataclass(frozen=True)
class Noisy(Checked):
    """Adds noise to the forecast, keeps it in [0, 1], reads it to 1/m, and best-responds to what is read.

    The belief is the multiple of 1/m nearest to v + Z; what falls outside [0, 1] is read as 0 or 1.

    Guarantee: Of forecasts v and v' the probabilities of the beliefs differ by a factor of at most e^{|v−v'|/scale}
    (Laplace). So a small distance from calibration bounds the swap regret. Hartline, Wu and Yang get O(√ε) from
    distance ε with a scale of order √ε. No constant is stated here.

    Source: Hartline, Wu & Yang 2025 (FORC): forecasts made differentially private by noise. Deviations: reading to 1/m
    makes the beliefs finitely many, and their probabilities are exact to rounding. Without it the swap regret would be
    an integral. Their choice of noise and scale is one of those offered.

    Parameters
    ----------
    scale : float, default 0.05
        In [1e-6, 10]. The scale of the Laplace law of Z, the standard deviation of the Gaussian, or the half width of
        the uniform.
    noise : {"laplace", "gaussian", "uniform"}, default "laplace"
    m : int, default 100
        How finely the decision maker reads, from 1 to 100,000.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.5], [1], [0.5])
    >>> Noisy(scale=0.25, noise="uniform", m=4).beliefs(gamma).mass
    array([0.25, 0.5 , 0.25])
    """

    allowed = allow(scale=number(1e-6, 10.0), noise=word(*get_args(Noise)), m=whole(1, 100_000))

    scale: float = 0.05
    noise: Noise = "laplace"
    m: int = 100

    def beliefs(self, gamma: JointDistribution) -> JointDistribution:
        """Γ of what is read, in O(k·m)."""
        kind = get_args(Noise).index(self.noise)
        n, s = _blurred(gamma.predictions, gamma.counts, gamma.positives, float(self.scale), kind, self.m)
        return JointDistribution.from_counts(np.arange(self.m + 1) / self.m, n, np.minimum(s, n))


RESPONSES = registry((Best, Rounded, RoundedDown, Noisy))
"""The responses by name; each can be built without arguments."""


def _is_response(value: Any) -> bool:
    return isinstance(value, Response) and not isinstance(value, type)


@dataclass(frozen=True)
class DecisionMaker(Checked):
    """A task with a response: itself a task, and accounted for like one.

    Examples
    --------
    >>> from onlinecal.decisions.tasks import swap_regret, umbrella
    >>> who = DecisionMaker(umbrella(), Rounded(10))
    >>> who.name
    'umbrella, rounded(m=10)'
    >>> round(swap_regret(JointDistribution.from_levels([0.35], [1], [0.2]), who), 6)
    0.1
    """

    task: Task
    response: Response

    def __post_init__(self) -> None:
        if not is_task(self.task):
            raise InvalidParameter(f"task = {self.task!r}; expected a task")
        if not _is_response(self.response):
            raise InvalidParameter(f"response = {self.response!r}; expected a response")

    @property
    def name(self) -> str:
        """The task's name and the response's, with the options of the latter that are not the defaults."""
        return f"{self.task.name}, {response_name(self.response)}"

    def account(self, gamma: JointDistribution) -> Account:
        """Payoff and regrets of best-responding to the beliefs that the response makes of Γ."""
        return self.task.account(self.response.beliefs(gamma))


def response_name(response: Any) -> str:
    """``rounded(m=10)``: the name with the options that are not the defaults."""
    options = {f.name: (getattr(response, f.name), f.default) for f in fields(response)}
    changed = [f"{name}={value}" for name, (value, default) in options.items() if value != default]
    name = strategy_name(response)
    return f"{name}({', '.join(changed)})" if changed else name


def as_response(spec: Any) -> Response:
    """A response from one, its name, or a table with its name and options.

    >>> as_response({"name": "noisy", "scale": 0.1})
    Noisy(scale=0.1, noise='laplace', m=100)
    """
    if _is_response(spec):
        return cast(Response, spec)
    name, options = named_table("response =", spec)
    return build("response", RESPONSES, name, options)


def as_decision_maker(spec: Any) -> Task:
    """A task, with a response or without, from a name, a table with one, or a task.

    A table is ``{"name": "v_shaped", "t": 0.3}`` or ``{"name": "mine", "payoffs": [[…, …], …]}``, and may have a
    ``"response"``.
    """
    if is_task(spec):
        return cast(Task, spec)
    name, options = named_table("task", spec)
    if "response" not in options:
        return _plain_task(name, options)
    response = as_response(options.pop("response"))
    task = _plain_task(name, options)
    # Best response is what a task means; said or not, it is one column.
    return task if response == Best() else DecisionMaker(task, response)


def _plain_task(name: str, options: dict[str, Any]) -> Task:
    # Misspelt payoffs are refused as an option.
    table = difflib.get_close_matches("payoffs", options)
    make = partial(DecisionTask, name) if table else TASKS[meant("task", name, TASKS, LIST)]
    known = inspect.signature(make).parameters
    for key in options:
        if key not in known:
            raise UnknownParameter.of(f"task {name!r}", key, known, "option")
    return make(**options)


@kernel
def _above(z, scale, kind):
    """P(Z > z) for z ≥ 0."""
    if kind == 0:
        return 0.5 * math.exp(-z / scale)
    if kind == 1:
        return 0.5 * math.erfc(z / (scale * math.sqrt(2.0)))
    return 0.5 * max(0.0, 1.0 - z / scale)


@kernel
def _within(low, high, scale, kind):
    """P(low < Z ≤ high), small probabilities without cancellation."""
    if low >= 0.0:
        return _above(low, scale, kind) - _above(high, scale, kind)
    if high <= 0.0:
        return _above(-high, scale, kind) - _above(-low, scale, kind)
    return 1.0 - _above(-low, scale, kind) - _above(high, scale, kind)


@kernel
def _blurred(v, n, s, scale, kind, m):
    """Weight and weight of outcomes 1 that is read as j/m, j = 0 … m."""
    weight, ones = np.zeros(m + 1), np.zeros(m + 1)
    for i in range(len(v)):
        for j in range(m + 1):
            low = -np.inf if j == 0 else (j - 0.5) / m - v[i]
            high = np.inf if j == m else (j + 0.5) / m - v[i]
            share = _within(low, high, scale, kind)
            weight[j] += n[i] * share
            ones[j] += s[i] * share
    return weight, ones


__all__ = [
    "RESPONSES", "Best", "DecisionMaker", "Noisy", "Response", "Rounded", "RoundedDown", "as_decision_maker",
    "as_response", "response_name",
]  # fmt: skip
