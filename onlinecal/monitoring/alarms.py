"""Alarms of a monitor: where predictions are off, by how much, and a decision task in which that costs."""

import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.decisions.tasks import DecisionTask, v_shaped
from onlinecal.monitoring.bets import (
    BIAS,
    COUNTED,
    EVENTS,
    FORECASTS,
    MONEY,
    OUTCOMES,
    SLOPED,
    START,
    Bettors,
)

#: of the lines of an alarm
_WIDE = 100


@dataclass(frozen=True)
class Witness:
    """The interval of predictions, or the slope, by which most was won, and a threshold task that loses by it."""

    low: float  # the interval [low, high), which holds 1 where `high` is 1
    high: float
    share: float  # the part of the bettors' money on this interval
    since: float  # the event at which the winning bets began, counted from 1: a mean weighted by winnings
    count: float  # how many predictions in the interval there were since then, weighted likewise
    # mean of y − p over these: negative where predictions are too high; of a slope the mean error towards 1/2
    bias: float
    events: int  # this and the next two: of all predictions in the interval in the whole epoch
    mean_forecast: float
    mean_outcome: float
    # an edge: to act when p ≥ threshold pays 1 − threshold if y = 1 and costs threshold if y = 0
    threshold: float
    regret: float  # the cost of acting by the predictions, per prediction on the wrong side of the threshold
    acts: bool  # whether that is the cost of acting, else of not acting
    # where slopes won more for their share than intervals, their mean by winnings: below 1 where predictions are bold
    slope: float | None = None

    @classmethod
    def of(cls, bettors: Bettors, bank: Floats, sums: Floats, before: int) -> "Witness":
        """Of a bank (of several, of their sum) in which something was put, and the sums of the epoch, (4, K).

        `before` is how many events there were before the epoch.
        """
        money = bank[MONEY].sum(axis=1)
        sloped = bool(money[-1] / SLOPED > money[:-1].sum() / (1.0 - SLOPED))
        best = len(money) - 1 if sloped else int(np.argmax(money[:-1]))
        low, high = (int(end) for end in bettors.ends[best])
        edges, events = bettors.edges, float(bank[EVENTS, best].sum())
        bias = float(bank[BIAS, best].sum()) / events if events > 0.0 else 0.0
        n, forecasts, outcomes = (float(sums[row, low:high].sum()) for row in (COUNTED, FORECASTS, OUTCOMES))
        slope = math.exp(bank[MONEY, best] @ np.log(bettors.lifts[1]) / money[best]) if sloped else None
        # The edge at which trusting the predictions cost most in total, and how much per prediction on that side.
        acts = bias < 0.0
        sides = [(j, high) if acts else (low, j + 1) for j in range(low, high)]
        most, threshold, regret = 0.0, float(edges[low if acts else high]), 0.0
        for first, last in bettors.ends[:-1] if sloped else sides:
            there, ones = float(sums[COUNTED, first:last].sum()), float(sums[OUTCOMES, first:last].sum())
            for act in (True, False) if sloped else (acts,):
                edge = float(edges[first if act else last])
                cost = edge * there - ones if act else ones - edge * there
                if cost > most:
                    most, threshold, regret, acts = cost, edge, cost / there, act
        return cls(
            low=float(edges[low]),
            high=float(edges[high]),
            share=float(money[best] / money.sum()),
            since=before + float(bank[START, best].sum() / money[best]),
            count=events / float(money[best]),
            bias=bias,
            events=int(n),
            mean_forecast=forecasts / n if n else 0.0,
            mean_outcome=outcomes / n if n else 0.0,
            threshold=threshold,
            regret=regret,
            acts=acts,
            slope=slope,
        )

    @property
    def task(self) -> DecisionTask:
        """The task of the threshold, with payoffs stretched over [0, 1] (`oc.tasks.v_shaped`)."""
        return v_shaped(self.threshold)

    @property
    def interval(self) -> str:
        """In words: ``[0.6, 0.7)``."""
        return f"[{self.low:g}, {self.high:g}{']' if self.high == 1.0 else ')'}"

    @property
    def fault(self) -> str:
        """The fault in words: too high, too low, too bold or too timid."""
        if self.slope is not None:
            return "too bold" if self.slope < 1.0 else "too timid"
        return "too high" if self.bias < 0.0 else "too low"

    @property
    def verdict(self) -> str:
        """The fault, where it is and how large, in words."""
        if self.slope is None:
            return f"predictions in {self.interval} are {self.fault} by {abs(self.bias):.2g}"
        return f"predictions are {self.fault}, log odds times {self.slope:.2g} would be better"

    def lines(self, evidence: str = "") -> list[str]:
        """The verdict; since when, with what is said of the `evidence`, and what it costs."""
        words = f"since about event {self.since:,.0f} ({self.count:,.0f} of them){evidence}"
        if self.regret > 0.0:
            acts = "acting at p ≥" if self.acts else "not acting at p <"
            words += f"; {acts} {self.threshold:g} lost {self.regret:.2g} per decision"
        return [self.verdict, *textwrap.wrap(words, _WIDE, initial_indent="  ", subsequent_indent="  ")]

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True)
class Alarm:
    """The finding that forecasts are not calibrated."""

    number: int
    event: int  # how many outcomes had been taken into account since the monitor began
    epoch_events: int  # and since the alarm before
    log_e: float  # ln of the e-value; infinite where an outcome came that its forecast had excluded
    alpha: float  # the alarm is due at an e-value of 1/alpha
    witness: Witness

    @property
    def kind(self) -> str:
        """The fault of predictions in words, or that an outcome was excluded."""
        if math.isinf(self.log_e):
            return "outcomes that were excluded"
        return f"predictions that are {self.witness.fault}"

    def __str__(self) -> str:
        what = "an outcome came that its forecast, 0 or 1, had excluded"
        if not math.isinf(self.log_e):
            what = "\n".join(self.witness.lines(f", e = 10^{self.log_e / math.log(10.0):.1f}"))
        return f"alarm {self.number} at event {self.event:,}: {what}"

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Alarm":
        """From its fields as plain data."""
        return cls(**{**values, "witness": Witness(**values["witness"])})


def summary(alarms: Sequence[Alarm]) -> list[str]:
    """Lines of words: the number of alarms by kind, the first and the last."""
    kinds = Counter(alarm.kind for alarm in alarms)
    counts = ", ".join(f"{number:,} of {kind}" for kind, number in kinds.most_common())
    return [f"{len(alarms):,} alarms: {counts}", f"first: {alarms[0]}", f"last: {alarms[-1]}"]


@dataclass(frozen=True)
class Bias:
    """A running total of y − p, and bounds of the total of q − p, q the probabilities of the outcomes."""

    count: int
    total: float  # Σ (y − p); with open questions in it, the middle of what it may be
    lower: float  # of a confidence sequence for Σ (q − p)
    upper: float
