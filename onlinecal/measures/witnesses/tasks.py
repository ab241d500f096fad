"""Witnesses of the decision measures: the worst task, and a curve above the regret of every kink.

Order the actions of a task with payoffs in [0, 1] by the predictions they answer. If they change at kinks t_j, the
task is a measure ν = Σ c_j δ(t_j). From one action to the next the payoff falls by c_j t_j if y = 0 and rises by
c_j (1 − t_j) if y = 1. So ∫ t dν ≤ 1 and ∫ (1 − t) dν ≤ 1, and its regret adds up over the kinks: it is ∫ R dν.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

import numpy as np

from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.sums import running
from onlinecal.core.validation import number
from onlinecal.decisions.tasks import DecisionTask
from onlinecal.measures.witnesses.base import Witness, hinges, vector

Regret = Literal["swap", "external"]


@dataclass(frozen=True)
class WorstTask(Witness):
    """A decision task that attains the value of a measure.

    Proves the regret of the task with kinks exactly at `kinks`, which has these payoffs up to rounding.
    From one action to the next the payoffs change by c_j in sum. The regret is divided by the span of its payoffs
    where that is above 1.

    Attributes
    ----------
    kinks : tuple of float
        Predictions t_1 ≤ … at which the best response moves from one action to the next.
    payoffs : tuple of pairs
        For each action, from the lowest predictions up, the payoffs for y = 0 and y = 1, in [0, 1].
    """

    side = "lower"

    kinks: tuple[float, ...]
    payoffs: Sequence[Sequence[float]]
    regret: Regret

    @property
    def about(self) -> tuple[str, ...]:  # type: ignore[override]
        if self.regret != "swap":
            return ("u_calibration",)
        return ("cdl", "v_cdl") if len(self.kinks) <= 1 else ("cdl",)

    @property
    def task(self) -> DecisionTask:
        """Its regret by `onlinecal.decisions.tasks` is the value unless levels lie within 1e-12 of a kink."""
        few = {1: ("any",), 2: ("low", "high"), 3: ("low", "middle", "high")}
        names = few.get(n := len(self.payoffs)) or tuple(f"action {j}" for j in range(1, n + 1))
        return DecisionTask(f"worst task ({self.regret} regret)", self.payoffs, names)

    def bound(self, gamma: JointDistribution) -> float:
        t, share = self._mixture()
        if not len(t):
            return 0.0
        span = max(1.0, float(share @ t), float(share @ (1.0 - t)))
        v, q, w = gamma.predictions, gamma.means, gamma.mass
        if self.regret == "swap":
            # A level up to a kink regrets that q is above it, one from it on that q is below.
            lost = [np.maximum(q - x, 0.0) * (v <= x) + np.maximum(x - q, 0.0) * (x <= v) for x in t]
            return float(share @ [fsum(w * each) for each in lost]) / span
        # Fixed action a is higher than the answers of levels below a kink up to the a-th. It is lower than those of
        # levels above a later kink. A level on a kink answers as the decision maker comes to regret.
        gains = [w * (q - x) for x in t]
        up = [fsum(g[v < x]) + max(fsum(g[v == x]), 0.0) for x, g in zip(t, gains, strict=True)]
        down = [max(-fsum(g[v == x]), 0.0) - fsum(g[v > x]) for x, g in zip(t, gains, strict=True)]
        return max(float(share[:a] @ up[:a] + share[a:] @ down[a:]) for a in range(len(t) + 1)) / span

    def _mixture(self) -> tuple[Floats, Floats]:
        """The kinks t_j, ascending, and their shares c_j."""
        u = vector("WorstTask.payoffs", [u for low, high in self.payoffs for u in (low, high)])
        t = vector("WorstTask.kinks", self.kinks)
        if len(u) != 2 * (len(t) + 1):
            raise InvalidData(
                f"WorstTask: {len(u) // 2} actions and {len(t)} kinks; expected one more action"
            )
        return np.sort(np.clip(t, 0.0, 1.0)), np.maximum(np.diff(u[1::2]) - np.diff(u[::2]), 0.0)

    def __str__(self) -> str:
        if not self.kinks:
            return "no task regrets anything: a single action, payoff 1 if y = 0 and 0 if y = 1"
        task = self.task
        steps = zip(task.actions[1:], self.kinks, strict=True)
        rows = zip(task.actions, self.payoffs, strict=True)
        moves = " and ".join(f"to {name!r} at v = {t:.6g}" for name, t in steps)
        pays = "; ".join(f"{name!r} pays {u0:.6g} if y = 0, {u1:.6g} if y = 1" for name, (u0, u1) in rows)
        return f"task of {len(task.actions)} actions by {self.regret} regret: from {task.actions[0]!r} {moves}; {pays}"


@dataclass(frozen=True)
class RegretBound(Witness):
    """A curve that the regret R(t) of no kink t exceeds, so that no task regrets more than twice its height at 1/2.

    For all tasks the curve is a line of this slope. ∫ t dν and ∫ (1 − t) dν are at most 1. So ∫ R dν is at most the sum
    of the line's values at 0 and 1, twice that at 1/2. Tasks of one kink ("v_cdl") have a share of at most
    1/max(t, 1 − t), and the curve is a multiple of max(t, 1 − t). For "u_calibration" R is that of external regret.
    """

    side = "upper"
    about = ("cdl", "v_cdl", "u_calibration")

    slope: float
    measure: Literal["cdl", "v_cdl", "u_calibration"]

    def bound(self, gamma: JointDistribution) -> float:
        t, regret = kink_regrets(gamma, self.measure)
        if self.measure == "v_cdl":
            return float((regret / np.maximum(t, 1.0 - t)).max())
        return 2.0 * float(
            (regret - number("RegretBound", "slope", self.slope, -10.0, 10.0) * (t - 0.5)).max()
        )

    def __str__(self) -> str:
        if self.measure == "v_cdl":
            return "no kink t regrets more than v_cdl max(t, 1 − t)"
        kind = "external regret" if self.measure == "u_calibration" else "swap regret"
        line = f"{self.measure}/2 {'−' if self.slope < 0.0 else '+'} {abs(self.slope):.6g} (t − 1/2)"
        return f"no kink t has more {kind} than {line}"


def kink_regrets(gamma: JointDistribution, measure: str) -> tuple[Floats, Floats]:
    """Points t, with 0, 1/2 and 1, and R(t); between two points R is at most their line."""
    v, q, w = gamma.predictions, gamma.means, gamma.mass
    if measure == "u_calibration":
        t = np.unique(np.concatenate((v, [0.0, 0.5, 1.0])))
        mass, gain = np.zeros(len(t)), np.zeros(len(t))
        at = np.searchsorted(t, v)
        mass[at], gain[at] = w, gamma.residuals
        down = _fixed(-t[::-1], mass[::-1], -gain[::-1])[::-1]
        return t, np.maximum(np.maximum(_fixed(t, mass, gain), down), 0.0)
    t = np.unique(np.concatenate((v, q, [0.0, 0.5, 1.0])))
    at = np.searchsorted(t, v)
    return t, hinges(t, at, w, q) + hinges(-t[::-1], len(t) - 1 - at, w, -q)[::-1]


def _fixed(t: Floats, mass: Floats, gain: Floats) -> Floats:
    """Σ over v < t of w (q − t), with v = t if that is more, at each t."""
    terms = np.zeros(2 * len(t))
    terms[2::2] = -running(mass)[:-1] * np.diff(t)
    terms[1::2] = gain
    sums = running(terms)
    return np.maximum(sums[::2], sums[1::2])
