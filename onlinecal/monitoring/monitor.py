"""A watch on forecasts: an alarm when they are not calibrated, with a stated probability of a false one, for ever."""

import json
import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidData, InvalidParameter, StoreError
from onlinecal.core.joint import samples
from onlinecal.core.samples import Words, plain, with_ours
from onlinecal.core.validation import choice, count, number, vector
from onlinecal.core.words import number_of
from onlinecal.core.writing import whole
from onlinecal.monitoring.alarms import Alarm, Bias, Witness
from onlinecal.monitoring.bets import (
    COUNTED,
    FORECASTS,
    OUTCOMES,
    SQUARES,
    VERSION,
    Bettors,
    Epoch,
    Question,
    cell_of,
    is_due,
)
from onlinecal.monitoring.sequences import half_width

Restart = Literal["spend", "same", "never"]

#: where predictions are told apart: finer near 0 and 1, where a small bias is a large one in log odds
EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
#: events that are taken at a time: between two of these an interrupt is heard
_PART = 2**16
#: cells, and questions that are open at once
_MOST_CELLS, _MOST_OPEN = 64, 1000
#: of the file, beside the version of the bets
FORMAT = 2
#: the message in the place of errors of reading another file, which speak of pickles and archives
_REFUSED = "{} is not a file that a monitor was saved in; expected one of `watch --state` or Monitor.save"


class Monitor:
    """An always-valid test of "the forecasts are calibrated", as outcomes become known one by one.

    "Calibrated" is: given the past, each outcome is 1 with the probability that was forecast. An e-process against it
    is a total of money that starts with 1 and bets at the odds of the forecasts. Its mean is 1, or less, whenever one
    stops: P(it is ever ≥ 1/α) ≤ α (Ville). Some bets are that predictions in an interval are too high or too low by
    some amount in log odds. Others are that all are too bold or too timid by some factor of log odds. Each bet begins
    at some time (`onlinecal.monitoring.bets`). The interval or factor that won most is the witness of an alarm.

    Notes: It may be pickled, and `save` writes it to a file. Each event is taken as a whole or not at all, also when a
    call is interrupted from the keyboard. `events` is the number taken.

    Source: Robbins 1970 (mixtures of likelihood ratios); Ville 1939; Shin, Ramdas, Rinaldo 2022, "E-detectors"
    (starts). The mean of interleaved totals alone is no supermartingale (Henzi and Ziegel 2022, correction). Counting
    open questions at their worst makes its alarms valid. Each total, with all its questions asked by a stopping time,
    has mean 1.

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
            raise InvalidParameter(f"Monitor: alpha = {alpha!r}; expected a number in (0, 1)")
        choice("Monitor", "restart", restart, ("spend", "same", "never"))
        self.restart: Restart = restart
        self.open_at_once = (
            None if open_at_once is None else count("open_at_once", open_at_once, most=_MOST_OPEN)
        )
        self.bettors = Bettors.of(_edges(EDGES if edges is None else edges))
        self.note: dict[str, Any] = {}
        # Tickets are 1, 2, …; in their order: of a plain dict the first is found slowly when many are gone.
        self._asked, self._questions = 0, OrderedDict[int, Question]()
        self._begun = 0, 0  # the ticket that is taken, and the events before it
        self._epoch = self._begin(1, (), np.zeros((4, len(self.bettors.edges) - 1)))

    @with_ours
    def update(self, p: ArrayLike, y: ArrayLike, **words: Unpack[Words]) -> list[Alarm]:
        """The alarms of forecasts p with their outcomes y: one of each, or (n,) in the order of the questions.

        `positive`, `negative` and `drop` are as in `JointDistribution.from_samples`.

        Of bad samples (`InvalidData`) nothing is taken.
        """
        if type(p) is float and 0.0 <= p <= 1.0 and isinstance(y, int | float) and (y == 0 or y == 1):
            # One event of plain numbers need not be converted, which takes longer than the bets.
            forecasts, outcomes = np.array([p]), np.array([float(y)])
        else:
            forecasts, outcomes = _samples(p, y, **words)
        before, done = len(self.alarms), 0
        if self._questions or self.open_at_once is not None:
            self._take()
            for one, other in zip(forecasts.tolist(), outcomes.tolist(), strict=True):
                self._ask(one).outcome = other
                self._take()
            done = len(forecasts)
        while done < len(forecasts):
            part = slice(done, done + _PART)
            taken, due = self._epoch.bet(self.bettors, 0, forecasts[part], outcomes[part], self.level)
            done += taken
            if due:
                self._settle()
        return list(self.alarms[before:])

    def ask(self, p: float) -> int:
        """Returns the ticket, 1, 2, …, of a forecast without a known outcome."""
        forecasts, _ = _samples(p, 0)
        self._take()
        ticket = self._ask(float(forecasts[0])).ticket
        self._settle()
        return ticket

    def tell(self, ticket: int, y: float) -> list[Alarm]:
        """The alarms that come of the outcome of a question, which is told once."""
        _, outcomes = _samples(0.5, y)
        self._take()
        before = len(self.alarms)
        self._question(ticket).outcome = float(outcomes[0])
        self._take()
        return list(self.alarms[before:])

    def drop(self, ticket: int) -> None:
        """Drops a question that will never have an outcome, for a reason that does not depend on it."""
        self._take()
        del self._questions[self._question(ticket).ticket]
        self._take()

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """Those so far."""
        return self._epoch.alarms

    @property
    def events(self) -> int:
        """How many outcomes have been taken into account."""
        return self._epoch.events

    @property
    def open(self) -> int:
        """How many questions wait: for their outcome, or for that of an earlier one."""
        return len(self._questions)

    @property
    def log_e(self) -> float:
        """ln of the e-value against calibration since the last alarm."""
        if self.open_at_once is None:
            return self._epoch.log_e(self.bettors, ())
        # Not bet on are those that were open when the epoch began, and those of no chain. What was taken, but for an
        # interrupt that left the question here, is in the total.
        epoch, done = self._epoch.number, self.events - 1
        mine = (q for q in self._questions.values() if q.epoch == epoch and q.chain >= 0)
        return self._epoch.log_e(self.bettors, (q for q in mine if (q.ticket, done) != self._begun))

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
        bound = f"the probability that there is ever an alarm is at most {self.alpha:g}"
        if self.restart == "same":
            bound = f"k alarms ever have a probability of at most {self.alpha:g}^k"
        return f"if forecasts are calibrated ({known}), {bound}"

    def witness(self) -> Witness | None:
        """Where most has been won since the last alarm; None before the first event."""
        epoch, bank = self._epoch, self._epoch.bank
        if not bank[0].any():
            return None
        return Witness.of(self.bettors, bank, epoch.sums[0], self.events - epoch.taken)

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
            raise InvalidParameter(f"bias: level = {level!r}; expected a number in (0, 1)")
        edges, places = self.bettors.edges, []
        for name, value in (("low", low), ("high", high)):
            if value not in edges.tolist():
                known = ", ".join(f"{edge:g}" for edge in edges)
                raise InvalidParameter(f"bias: {name} = {value!r}; expected one of the edges {known}")
            places.append(int(np.flatnonzero(edges == value)[0]))
        first, last = places
        if first >= last:
            raise InvalidParameter(f"bias: low = {low!r}, high = {high!r}; expected low < high")
        alpha = 1.0 - level
        if simultaneous:
            here = (self.bettors.ends[:-1] == (first, last)).all(axis=1)
            alpha *= float(self.bettors.weights[here][0])
        sums = self._epoch.sums[1][:, first:last].sum(axis=1)
        n, forecasts, squares = float(sums[COUNTED]), float(sums[FORECASTS]), float(sums[SQUARES])
        least = most = float(sums[OUTCOMES])
        if self.open_at_once is not None:
            waiting = [q.forecast for q in self._questions.values() if q.chain >= 0]
            inside = [p for p in waiting if first <= cell_of(edges, p) < last]
            n, forecasts, most = n + len(inside), forecasts + math.fsum(inside), most + len(inside)
            squares += math.fsum(max(p, 1.0 - p) ** 2 for p in inside)
        width = half_width(squares, alpha, self.open_at_once or 1)
        # Σq is in [0, n], whatever the outcomes were.
        lower, upper = max(least - width, 0.0) - forecasts, min(most + width, n) - forecasts
        return Bias(int(n), 0.5 * (least + most) - forecasts, lower, upper)

    def __repr__(self) -> str:
        taken = f"{number_of(self.events, 'event')}, {number_of(len(self.alarms), 'alarm')}"
        return f"<Monitor, alpha = {self.alpha:g}, {taken}>"

    def save(self, path: str | Path) -> None:
        """Writes the monitor to a file, replaced when the new one is whole; `load` goes on identically."""
        epoch = self._epoch
        said = {
            "format": FORMAT, "bets": VERSION, "alpha": self.alpha, "restart": self.restart,
            "open_at_once": self.open_at_once, "note": self.note, "epoch": epoch.number, "peak": epoch.peak,
            "alarms": [asdict(alarm) for alarm in epoch.alarms], "asked": self._asked, "begun": self._begun,
            "open": [asdict(question) for question in self._questions.values()],
        }  # fmt: skip
        arrays: dict[str, Any] = {"banks": epoch.banks, "clocks": epoch.clocks, "sums": epoch.sums}
        with whole(Path(path)) as new, new.open("wb") as file:
            np.savez(file, said=json.dumps(said), edges=self.bettors.edges, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> "Monitor":
        """A monitor from a file that `save` wrote; `StoreError` where it is no such file."""
        try:
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in ("said", "edges", "banks", "clocks", "sums")}
            said = json.loads(str(arrays.pop("said")))
            version = said["format"], said["bets"]
        except FileNotFoundError:
            raise StoreError(f"{path}: no such file; expected one that a monitor was saved in") from None
        except Exception:
            raise StoreError(_REFUSED.format(path)) from None
        if version != (FORMAT, VERSION):
            raise StoreError(
                f"{path} is of another version of onlinecal ({version[0]}.{version[1]}; this one reads "
                f"{FORMAT}.{VERSION}): a test cannot go on with other bets; expected a new file"
            )
        try:
            edges = arrays.pop("edges")
            monitor = cls(
                said["alpha"], edges=edges, restart=said["restart"], open_at_once=said["open_at_once"]
            )
            for name, array in arrays.items():
                wanted = getattr(monitor._epoch, name)
                if array.shape != wanted.shape or array.dtype != wanted.dtype:
                    raise ValueError(f"its array {name!r} has shape {array.shape}; expected {wanted.shape}")
            monitor.note = said["note"]
            alarms = tuple(Alarm.of(values) for values in said["alarms"])
            monitor._epoch = Epoch(said["epoch"], alarms, **arrays, peak=said["peak"])
            monitor._asked, monitor._begun = said["asked"], tuple(said["begun"])
            monitor._questions.update((values["ticket"], Question(**values)) for values in said["open"])
        except Exception:
            raise StoreError(_REFUSED.format(path)) from None
        return monitor

    def _begin(self, epoch: int, alarms: tuple[Alarm, ...], sums: Floats) -> Epoch:
        """Nothing has been bet yet; `sums` are those of all events before, (4, K)."""
        banks, clocks = self.bettors.fresh(self.open_at_once or 1)
        return Epoch(epoch, alarms, banks, clocks, np.stack([np.zeros_like(sums), sums]))

    def _ask(self, p: float) -> Question:
        chain = 0
        if self.open_at_once is not None:
            busy = {other.chain for other in self._questions.values()}
            chain = next((c for c in range(self.open_at_once) if c not in busy), -1)
        question = Question(self._asked + 1, p, chain, self._epoch.number)
        self._questions[question.ticket] = question
        self._asked = question.ticket
        return question

    def _question(self, ticket: Any) -> Question:
        """The open question of this ticket that has no outcome yet."""
        known = isinstance(ticket, int)
        question = self._questions.get(ticket) if known else None
        if question is None or not math.isnan(question.outcome):
            given = known and 1 <= ticket <= self._asked
            what = "has its outcome, or was dropped" if given else "was not given by this monitor"
            raise InvalidData(f"ticket {ticket!r} {what}; expected that of an open question")
        return question

    def _ready(self) -> Question | None:
        """The question with the outcome to be taken next: in their order without `open_at_once`."""
        for question in self._questions.values():
            if not math.isnan(question.outcome):
                return question
            if self.open_at_once is None:
                break
        return None

    def _take(self) -> None:
        """Takes the outcomes that may be taken, and gives the alarms that are due; goes on where it was interrupted."""
        self._settle()
        while (q := self._ready()) is not None:
            if self._begun[0] != q.ticket:
                self._begun = q.ticket, self.events
            if self._begun[1] == self.events:
                if self.open_at_once is None or (q.epoch == self._epoch.number and q.chain >= 0):
                    self._epoch.bet(self.bettors, q.chain, np.array([q.forecast]), np.array([q.outcome]), 0.0)
                elif q.chain >= 0:  # it is counted without bets
                    p, y = q.forecast, q.outcome
                    self._epoch.sums[1][:, cell_of(self.bettors.edges, p)] += (1.0, p, y, (y - p) ** 2)
            self._questions.pop(q.ticket, None)
            self._settle()

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
        found: Any = self.witness()
        alarm = Alarm(len(epoch.alarms) + 1, self.events, epoch.taken, self.log_e, level, found)
        alarms = (*epoch.alarms, alarm)
        # One assignment: an interrupt finds all of it or nothing.
        if self.restart == "never":
            self._epoch = Epoch(epoch.number + 1, alarms, epoch.banks, epoch.clocks, epoch.sums, epoch.peak)
        else:
            self._epoch = self._begin(epoch.number + 1, alarms, epoch.sums[1])


def _edges(values: Iterable[float]) -> Floats:
    edges = np.array(vector("edges", list(values), InvalidParameter), np.float64)
    good = 2 <= len(edges) <= _MOST_CELLS + 1 and edges[0] == 0.0 and edges[-1] == 1.0
    if not good or not (np.diff(edges) > 0.0).all():
        raise InvalidParameter(
            f"edges = {edges.tolist()!r}; expected 2 to {_MOST_CELLS + 1} increasing numbers from 0 to 1"
        )
    edges.flags.writeable = False
    return edges


def _samples(p: Any, y: Any, **words: Unpack[Words]) -> tuple[Floats, Floats]:
    """Forecasts and outcomes as vectors; single ones as vectors of one."""
    single = np.ndim(p) == 0 and np.ndim(y) == 0
    rows = plain({"p": [p] if single else p, "y": [y] if single else y}, **words)
    if np.size(rows["p"]) == np.size(rows["y"]) == 0:
        return np.empty(0), np.empty(0)
    forecasts, outcomes = samples(rows["p"], rows["y"])
    return forecasts, outcomes
