"""Alarms of a monitor: where predictions are off, by how much, and a decision task in which that costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.decisions.base import DecisionTask
from onlinecal.decisions.tasks import v_shaped
from onlinecal.monitoring.bets import BIAS, COUNTED, EVENTS, FORECASTS, MONEY, OUTCOMES, START, Bettors

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Witness:
    """The interval of predictions on which most was won, and a threshold task that loses by it."""

    low: float  # the interval [low, high), which holds 1 where `high` is 1
    high: float
    share: float  # the part of the bettors' money on this interval
    since: float  # the event at which the winning bets began, counted from 1: a mean weighted by winnings
    count: float  # how many predictions in the interval there were since then, weighted likewise
    bias: float  # mean of y − p over these: negative where predictions are too high
    events: int  # this and the next two: of all predictions in the interval in the whole epoch
    mean_forecast: float
    mean_outcome: float
    threshold: (
        float  # an edge: to act when p ≥ threshold pays 1 − threshold if y = 1 and costs threshold if y = 0
    )
    regret: float  # the cost of acting by the predictions, per prediction on the wrong side of the threshold

    @classmethod
    def of(cls, bettors: Bettors, bank: Floats, sums: Floats, before: int) -> Witness:
        """Of a bank (of several, of their sum) in which something was put, and the sums of the epoch, (4, K).

        `before` is how many events there were before the epoch.
        """
        money = bank[MONEY].sum(axis=1)
        best = int(np.argmax(money))
        low, high = (int(end) for end in bettors.ends[best])
        edges, events = bettors.edges, float(bank[EVENTS, best].sum())
        bias = float(bank[BIAS, best].sum()) / events if events > 0.0 else 0.0
        counted, forecasts, outcomes = (sums[row, low:high] for row in (COUNTED, FORECASTS, OUTCOMES))
        n = float(counted.sum())
        # The edge at which trusting the predictions cost most in total, and how much per prediction on that side.
        most, threshold, regret = 0.0, float(edges[low if bias < 0.0 else high]), 0.0
        for j, edge in enumerate(edges[low : high + 1]):
            side = slice(j, None) if bias < 0.0 else slice(None, j)
            there, ones = float(counted[side].sum()), float(outcomes[side].sum())
            cost = edge * there - ones if bias < 0.0 else ones - edge * there
            if cost > most:
                most, threshold, regret = cost, float(edge), cost / there
        return cls(
            low=float(edges[low]),
            high=float(edges[high]),
            share=float(money[best] / money.sum()),
            since=before + float(bank[START, best].sum() / money[best]),
            count=events / float(money[best]),
            bias=bias,
            events=int(n),
            mean_forecast=float(forecasts.sum()) / n if n else 0.0,
            mean_outcome=float(outcomes.sum()) / n if n else 0.0,
            threshold=threshold,
            regret=regret,
        )

    @property
    def task(self) -> DecisionTask:
        """The task of the threshold, with payoffs stretched over [0, 1] (`oc.tasks.v_shaped`)."""
        return v_shaped(self.threshold)

    @property
    def interval(self) -> str:
        """In words: ``[0.6, 0.7)``."""
        return f"[{self.low:g}, {self.high:g}{']' if self.high == 1.0 else ')'}"

    def __str__(self) -> str:
        side = "high" if self.bias < 0.0 else "low"
        words = (
            f"predictions in {self.interval} are too {side} by {abs(self.bias):.2g} since about event "
            f"{self.since:,.0f} ({self.count:,.0f} of them)"
        )
        if self.regret > 0.0:
            who = "acts when p ≥" if self.bias < 0.0 else "does not act when p <"
            words += f"; who {who} {self.threshold:g} lost {self.regret:.2g} per decision there"
        return words


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
        """The fault in words: predictions too high, too low, or an outcome that was excluded."""
        if math.isinf(self.log_e):
            return "outcomes that were excluded"
        return f"predictions that are too {'high' if self.witness.bias < 0.0 else 'low'}"

    def __str__(self) -> str:
        what = f"{self.witness} (e = 10^{self.log_e / math.log(10.0):.1f})"
        if math.isinf(self.log_e):
            what = "an outcome came that its forecast, 0 or 1, had excluded"
        return f"alarm {self.number} at event {self.event:,}: {what}"

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Alarm:
        """From what `as_json` gave."""
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
