"""A watch on forecasts: an alarm when they are not calibrated, with a stated probability of a false one, for ever."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.errors import InvalidParameter, shown
from onlinecal.core.validation import (
    check_lengths,
    check_outcomes,
    check_same_rows,
    check_unit,
    choice,
    count,
    number,
    vector,
)
from onlinecal.core.words import number_of
from onlinecal.monitoring.alarms import Alarm, Bias, Witness, witness
from onlinecal.monitoring.bets import COUNTED, FORECASTS, OUTCOMES, SQUARES, Bettors, cell_of, is_due
from onlinecal.monitoring.epochs import Epoch, Question, Questions
from onlinecal.monitoring.sequences import half_width

Floats = NDArray[np.float64]
Restart = Literal["spend", "same", "never"]

#: where predictions are told apart: finer near 0 and 1, where a small bias is a large one in log odds
EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
#: events that are taken at a time: between two of these an interrupt is heard
_PART = 2**16
#: cells, and questions that are open at once
_MOST_CELLS, _MOST_OPEN = 64, 1000


class Monitor:
    r"""An always-valid test of "the forecasts are calibrated", as outcomes become known one by one.

    "Calibrated" is: given the past, each outcome is 1 with the probability that was forecast. An e-process against it
    is a total of money that starts with 1, bets at the odds that the forecasts offer, and has mean 1, or less, whenever
    one stops: P(it is ever ≥ 1/α) ≤ α (Ville). The bets: predictions in some interval are too high or too low by some
    amount in log odds from some time on (`onlinecal.monitoring.bets`). The interval that won most is the witness of an
    alarm.

    Parameters
    ----------
    alpha : float, default 0.05
        In (0, 1): the probability of a false alarm.
    edges : sequence of float, optional
        Increasing from 0 to 1, at most 65; the intervals are all those between two of these, [a, b), and the last holds
        1. Default: 17, finer near 0 and 1.
    restart : {"spend", "same", "never"}, default "spend"
        "spend": after an alarm a new test begins. In epoch k = 1, 2, … an alarm is due at 1/α_k, α_k = α/(k(k + 1)).
        The probability that there is ever an alarm before the first miscalibrated forecast of its epoch is at most Σ
        α_k = α. "same": a new test at α; k false alarms ever have a probability of at most α^k. "never": no other
        alarm; the e-value goes on.
    open_at_once : int, optional
        None: outcomes are taken in the order of the questions, each held until those before it are known. "The past" is
        all earlier questions with their outcomes: questions that are open at once are taken as independent. A number C
        ≤ 1000 assumes nothing of open questions: "the past" is what was known when the question was asked. There are C
        totals, each of which bets on a question after it knows the outcome of its last one. The e-process is their
        mean, with open questions counted at the worse of their outcomes. Questions beyond the C are not bet on;
        evidence is C times as slow.

    Attributes
    ----------
    alarms : tuple of Alarm
    note : dict
        Saved with it, as JSON has it.

    Notes
    -----
    It may be pickled, and `save` writes it to a file. Each event is taken as a whole or not at all, also when a call is
    interrupted from the keyboard: `events` says how many are.

    Source
    ------
    Robbins 1970 (mixtures of likelihood ratios); Ville 1939; Shin, Ramdas, Rinaldo 2022, "E-detectors" (starts).
    The mean of interleaved totals alone is no supermartingale (Henzi and Ziegel 2022, correction). Counting open
    questions at their worst makes its alarms valid: each total, with all its questions asked by a stopping time, has
    mean 1.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> p = rng.uniform(size=4000)
    >>> monitor = Monitor()
    >>> monitor.update(p[:2000], rng.uniform(size=2000) < p[:2000])        # calibrated: no alarm
    []
    >>> high = 0.15 * (p[2000:] > 0.5)                                     # then some are too high
    >>> alarm = monitor.update(p[2000:], rng.uniform(size=2000) < p[2000:] - high)[0]
    >>> alarm.witness.bias < 0 and alarm.event > 2000
    True
    """

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        edges: Iterable[float] | None = None,
        restart: Restart = "spend",
        open_at_once: int | None = None,
    ) -> None:
        self.alpha = number("Monitor", "alpha", alpha, 0.0, 1.0)
        if not 0.0 < self.alpha < 1.0:
            raise InvalidParameter(f"Monitor: alpha = {shown(alpha)}; expected a number in (0, 1)")
        choice("Monitor", "restart", restart, ("spend", "same", "never"))
        self.restart: Restart = restart
        self.open_at_once = (
            None if open_at_once is None else count("open_at_once", open_at_once, most=_MOST_OPEN)
        )
        self.bettors = Bettors.of(_edges(EDGES if edges is None else edges))
        self.note: dict[str, Any] = {}
        self._questions = Questions(self.open_at_once)
        self._epoch = self._begin(1, (), np.zeros((4, len(self.bettors.edges) - 1)))

    # ---------------------------------------------------------------- what comes in

    def update(self, p: ArrayLike, y: ArrayLike) -> list[Alarm]:
        """The alarms of forecasts p with their outcomes y: one of each, or (n,) in the order of the questions.

        Of bad samples (`InvalidData`) nothing is taken.
        """
        if type(p) is float and 0.0 <= p <= 1.0 and isinstance(y, int | float) and (y == 0 or y == 1):
            # One event of plain numbers need not be converted, which takes longer than the bets.
            forecasts, outcomes = np.array([p]), np.array([float(y)])
        else:
            forecasts, outcomes = _samples(p, y)
        before = len(self.alarms)
        if self._questions.open or self.open_at_once is not None:
            self._take()
            for one, other in zip(forecasts.tolist(), outcomes.tolist(), strict=True):
                self._questions.ask(one, self._epoch.number).outcome = other
                self._take()
        else:
            done = 0
            while done < len(forecasts):
                part = slice(done, done + _PART)
                taken, due = self._epoch.bet(self.bettors, 0, forecasts[part], outcomes[part], self.level)
                done += taken
                if due:
                    self._settle()
        return list(self.alarms[before:])

    def ask(self, p: float) -> int:
        """The ticket, 1, 2, …, of a forecast whose outcome is not known yet."""
        forecasts, _ = _samples(p, 0)
        self._take()
        ticket = self._questions.ask(float(forecasts[0]), self._epoch.number).ticket
        self._settle()
        return ticket

    def tell(self, ticket: int, y: float) -> list[Alarm]:
        """The alarms that come of the outcome of a question, which is told once."""
        _, outcomes = _samples(0.5, y)
        self._take()
        before = len(self.alarms)
        self._questions.of(ticket).outcome = float(outcomes[0])
        self._take()
        return list(self.alarms[before:])

    def drop(self, ticket: int) -> None:
        """Drops a question that will never have an outcome, for a reason that does not depend on it."""
        self._take()
        del self._questions.open[self._questions.of(ticket).ticket]
        self._take()

    # ---------------------------------------------------------------- what is known

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All so far."""
        return self._epoch.alarms

    @property
    def events(self) -> int:
        """How many outcomes have been taken into account."""
        return self._epoch.events

    @property
    def open(self) -> int:
        """How many questions wait: for their outcome, or for that of an earlier one."""
        return len(self._questions.open)

    @property
    def log_e(self) -> float:
        """ln of the e-value against calibration since the last alarm."""
        return self._epoch.log_e(self.bettors, self._questions)

    @property
    def e_value(self) -> float:
        """The e-value; infinite where it is too large for a float."""
        return math.exp(self.log_e) if self.log_e < 709.0 else math.inf

    @property
    def p_value(self) -> float:
        """The always-valid p-value since the last alarm: 1 over the largest e-value so far."""
        return 1.0 / self._epoch.largest

    @property
    def level(self) -> float:
        """α_k: the next alarm is given at an e-value of 1/α_k; 0 where there will be none."""
        k = self._epoch.number
        if self.restart == "spend":
            return self.alpha / (k * (k + 1))
        return self.alpha if self.restart == "same" or k == 1 else 0.0

    @property
    def promise(self) -> str:
        """The bound on false alarms, in a sentence."""
        known = "given the past" if self.open_at_once is None else "given what is known when it is forecast"
        if self.restart == "same":
            return (
                f"if forecasts are calibrated ({known}), k alarms ever have a probability of at most "
                f"{self.alpha:g}^k"
            )
        return (
            f"if forecasts are calibrated ({known}), the probability that there is ever an alarm is at most "
            f"{self.alpha:g}"
        )

    def witness(self) -> Witness | None:
        """Where most has been won since the last alarm; None before the first event."""
        epoch = self._epoch
        bank = epoch.bank
        return (
            witness(self.bettors, bank, epoch.sums[0], self.events - epoch.taken) if bank[0].any() else None
        )

    def bias(
        self, low: float = 0.0, high: float = 1.0, *, level: float = 0.95, simultaneous: bool = False
    ) -> Bias:
        """The total bias Σ (q − p) of predictions in [low, high) since the monitor began, q the true probabilities.

        The intervals are a confidence sequence: with the probability `level` they hold the true total at all times. It
        is not assumed that forecasts are calibrated; q is the probability of the outcome given the past (see
        `open_at_once`).

        Parameters
        ----------
        low, high : float, default 0 and 1
            Two of the `edges`; the interval holds 1 where `high` is 1.
        level : float, default 0.95
        simultaneous : bool, default False
            Whether all intervals hold together with that probability.
        """
        level = number("bias", "level", level, 0.0, 1.0)
        if not 0.0 < level < 1.0:
            raise InvalidParameter(f"bias: level = {shown(level)}; expected a number in (0, 1)")
        first, last = (self._edge(name, value) for name, value in (("low", low), ("high", high)))
        if first >= last:
            raise InvalidParameter(f"bias: low = {low!r}, high = {high!r}; expected low < high")
        alpha = 1.0 - level
        if simultaneous:
            here = (self.bettors.ends == (first, last)).all(axis=1)
            alpha *= float(self.bettors.weights[here][0])
        sums = self._epoch.sums[1][:, first:last].sum(axis=1)
        n, forecasts, squares = float(sums[COUNTED]), float(sums[FORECASTS]), float(sums[SQUARES])
        least = most = float(sums[OUTCOMES])
        if self.open_at_once is not None:
            waiting = [q.forecast for q in self._questions.open.values() if q.chain >= 0]
            inside = [p for p in waiting if first <= cell_of(self.bettors.edges, p) < last]
            n, forecasts, most = n + len(inside), forecasts + math.fsum(inside), most + len(inside)
            squares += math.fsum(max(p, 1.0 - p) ** 2 for p in inside)
        width = half_width(squares, alpha, self.open_at_once or 1)
        # Σq is in [0, n], whatever the outcomes were.
        lower, upper = max(least - width, 0.0) - forecasts, min(most + width, n) - forecasts
        return Bias(int(n), 0.5 * (least + most) - forecasts, lower, upper)

    # ---------------------------------------------------------------- kept in a file

    def save(self, path: str | Path) -> None:
        """Writes it to a file, which is replaced when the new one is whole; `load` goes on to the same last bit."""
        from onlinecal.monitoring.saved import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Monitor:
        """A monitor from a file that `save` wrote; `StoreError` where it is no such file."""
        from onlinecal.monitoring.saved import load

        return load(Path(path))

    def __repr__(self) -> str:
        taken = f"{number_of(self.events, 'event')}, {number_of(len(self.alarms), 'alarm')}"
        return f"<Monitor, alpha = {self.alpha:g}, {taken}>"

    # ---------------------------------------------------------------- inside

    def _begin(self, epoch: int, alarms: tuple[Alarm, ...], sums: Floats) -> Epoch:
        return Epoch.begin(epoch, alarms, sums, self.bettors, self.open_at_once or 1)

    def _take(self) -> None:
        """Takes the outcomes that may be taken, and gives the alarms that are due; goes on where it was interrupted."""
        questions = self._questions
        self._settle()
        while questions.open and (question := questions.ready()) is not None:
            if questions.begun[0] != question.ticket:
                questions.begun = question.ticket, self.events
            if questions.begun[1] == self.events:
                self._take_one(question)
            questions.open.pop(question.ticket, None)
            self._settle()

    def _take_one(self, question: Question) -> None:
        p, y = question.forecast, question.outcome
        if self.open_at_once is None or (question.epoch == self._epoch.number and question.chain >= 0):
            self._epoch.bet(self.bettors, question.chain, np.array([p]), np.array([y]), 0.0)
        elif question.chain >= 0:
            self._epoch.count(self.bettors, p, y)

    def _settle(self) -> None:
        """Gives an alarm where one is due."""
        epoch, level = self._epoch, self.level
        if self.open_at_once is None:
            if level == 0.0 or not is_due(epoch.clocks[0], level):
                return
        else:
            log_e = self.log_e
            epoch.peak = max(epoch.peak, math.exp(min(log_e, 709.0)))
            if level == 0.0 or log_e < -math.log(level):
                return
        found = self.witness()
        assert found is not None
        alarm = Alarm(len(epoch.alarms) + 1, self.events, epoch.taken, self.log_e, level, found)
        alarms = (*epoch.alarms, alarm)
        # One assignment: an interrupt finds all of it or nothing.
        if self.restart == "never":
            self._epoch = Epoch(epoch.number + 1, alarms, epoch.banks, epoch.clocks, epoch.sums, epoch.peak)
        else:
            self._epoch = self._begin(epoch.number + 1, alarms, epoch.sums[1])

    def _edge(self, name: str, value: Any) -> int:
        where = np.flatnonzero(self.bettors.edges == value)
        if not len(where):
            edges = ", ".join(f"{edge:g}" for edge in self.bettors.edges)
            raise InvalidParameter(f"bias: {name} = {value!r}; expected one of the edges {edges}")
        return int(where[0])


def _edges(values: Iterable[float]) -> Floats:
    edges = np.array(vector("edges", list(values), InvalidParameter), np.float64)
    good = 2 <= len(edges) <= _MOST_CELLS + 1 and edges[0] == 0.0 and edges[-1] == 1.0
    if not good or not (np.diff(edges) > 0.0).all():
        raise InvalidParameter(
            f"edges = {edges.tolist()!r}; expected 2 to {_MOST_CELLS + 1} increasing numbers from 0 to 1"
        )
    edges.flags.writeable = False
    return edges


def _samples(p: Any, y: Any) -> tuple[Floats, Floats]:
    """Forecasts and outcomes as vectors; single ones as vectors of one."""
    single = np.ndim(p) == 0 and np.ndim(y) == 0
    check_same_rows({} if single else {"p": p, "y": y})
    forecasts, outcomes = vector("p", [p] if single else p), vector("y", [y] if single else y)
    if not single and len(forecasts) == len(outcomes) == 0:
        return forecasts, outcomes
    check_lengths({"p": forecasts, "y": outcomes})
    check_unit("p", forecasts)
    check_outcomes(forecasts, outcomes)
    return forecasts, outcomes
