"""A game: a forecaster meets nature question by question, in several runs.

Round t = 1, 2, …: nature may reveal context. The forecaster states the law of p_t; nature, from what its `Sight`
allows, states q_t. The engine draws p_t from the law and y_t = 1[u_t < q_t]. The uniforms depend on the seed, the role,
the strategies, the horizon and the number of the run alone. Players never draw their moves, so an adversary sees
exactly what it declares. The course of a run does not depend on the other runs beside it.

A game plays a list of events (`onlinecal.engine.events`): questions that are asked, outcomes that become known.
`Game.advance` plays those of its schedule, `Game.ask` and `Game.resolve` one by hand.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidForecast, InvalidParameter, OnlinecalError, failure, in_one_line
from onlinecal.core.joint import JointDistribution
from onlinecal.core.levels import LevelSets
from onlinecal.core.strategy import strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import count, integer
from onlinecal.engine.events import ASK, LOOK, Agenda, Events, Question
from onlinecal.engine.horizon import check_horizon, check_runs, check_time
from onlinecal.engine.keeping import as_history
from onlinecal.engine.ledger import Ledger
from onlinecal.engine.loop import LEAST, Loop, Stopped
from onlinecal.engine.transcripts import Transcripts, check_kept
from onlinecal.forecasters.base import as_forecaster
from onlinecal.natures.base import as_nature
from onlinecal.rounds.hand import BLOCK
from onlinecal.rounds.law import brief, failed
from onlinecal.rounds.players import made_of_steps
from onlinecal.rounds.protocol import check_pair, start
from onlinecal.schedules.base import Schedule

#: raised when rounds, draws, history or Γ of a game become others: results are kept under it (tests/versions.py)
VERSION = 1
IMMEDIATE = Schedule()
#: run-rounds that are played before the game tells of its progress, also where a player is in Python. Questions with
#: events that are listed at a time.
SEGMENT, IN_PYTHON, LISTED = 2**21, 2**17, 2**15


class Game:
    """One forecaster against one nature, in several runs; it can be pickled between rounds, with open questions.

    Both are specifications, or what makes one, such as a plain class. `runs` is the range of runs to play: run r is the
    same game in whatever batch. `schedule` says when `advance` asks the questions and tells their outcomes. Γ can be
    had of the rounds between any two `cuts`. `keeps` are kinds of context that are kept with all rounds, as
    `transcripts`; `history` is of `onlinecal.engine.keeping`. The numbers depend neither on it nor on how many
    `threads` play.

    `asked` and `resolved` are numbers of rounds; `compiled` says whether no part of a player is in plain Python. The
    `ledger` has the histories. A game is over once a player has failed, since runs are then in
    different rounds. Every call raises the same error.
    """

    def __init__(
        self,
        forecaster: Any,
        nature: Any,
        *,
        horizon: int,
        runs: range,
        seed: int = 0,
        schedule: Schedule = IMMEDIATE,
        cuts: Iterable[float] = (),
        keeps: Iterable[str] | None = None,
        history: Any = "exact",
        threads: int = 1,
    ) -> None:
        # Anything with `start` makes players: conformance plays such wrappers.
        forecaster = forecaster if hasattr(forecaster, "start") else as_forecaster(forecaster)
        nature = nature if hasattr(nature, "start") else as_nature(nature)
        check_horizon(horizon)
        seed = integer("", "seed", seed)
        check_runs(runs)
        if not isinstance(schedule, Schedule):
            raise InvalidParameter(f"schedule = {brief(schedule)}; expected an onlinecal.schedules.Schedule")
        if not isinstance(cuts, Iterable):
            raise InvalidParameter(f"cuts = {brief(cuts)}; expected a list of times")
        check_pair(forecaster, nature, horizon)
        self.names = strategy_name(forecaster), strategy_name(nature)
        keys = strategy_key(forecaster), strategy_key(nature)
        size, at = len(runs), f"T={horizon}"
        self.horizon, self.runs, self.asked, self.resolved = horizon, runs, 0, 0
        self.forecaster = start("forecaster", forecaster, horizon, runs, seed)
        self.nature = start("nature", nature, horizon, runs, seed)
        # The outcomes' uniforms belong to nature alone: every forecaster faces the same ones.
        outcomes = Stream(seed, ("outcome", keys[1], at), runs).keys
        draws = Stream(seed, ("forecast", keys[0], at), runs).keys
        self.transcripts = None if keeps is None else Transcripts(size, check_kept(keeps, nature))
        kept = () if self.transcripts is None else self.transcripts.kinds
        self.compiled = made_of_steps(self.forecaster) and made_of_steps(self.nature)
        self.schedule = schedule
        if schedule.delays.by_outcome and size != 1:
            raise InvalidParameter(
                f"{schedule.label} depends on the outcomes, so each run has an order of its own; expected one run, or "
                "`onlinecal.engine.separate.Separate` for several"
            )
        schedule.check_length(horizon)
        cuts, streams = sorted({check_time(cut) for cut in cuts}), max(1, len(nature.streams))
        streams_of = partial(_streams_of, self.nature, self.names[1], streams) if nature.streams else None
        self._agenda = Agenda(schedule.clock(horizon, seed), cuts, streams, streams_of)
        self.ledger = Ledger(size, horizon, self.forecaster.grid, cuts, streams, as_history(history))
        #: the questions that were asked by hand, by number
        self._open: dict[int, Question] = {}
        self._loop = Loop(self.forecaster, self.nature, (draws, outcomes), kept)
        self.threads = count("threads", threads)
        self._stopped = ""

    def __copy__(self) -> Game:
        # Players and history belong to one game.
        return copy.deepcopy(self)

    # ---------------------------------------------------------------- playing

    def advance(self, until: int, progress: Callable[[int], None] | None = None) -> None:
        """Plays by the schedule until question `until` + 1 would be asked, or the game ends.

        At one time of the clock questions come before outcomes, and these in the order of their questions. `progress`
        is told the number of rounds played since it was last told.
        """
        until = count("until", until, least=0)
        if until > self.horizon:
            raise InvalidParameter(f"round {until} is beyond the horizon {self.horizon}")
        self._check_alive()
        mine, theirs, agenda, runs = self.forecaster, self.nature, self._agenda, len(self.runs)
        # A state that grows with every round has memory reserved before: for few rounds, but enough for all threads.
        few = mine.grows or theirs.growth(self._levels) > 4 * BLOCK
        most = max(BLOCK * runs, 2 * LEAST * self.threads) if few else SEGMENT
        if not self.compiled:
            most = max(min(most, IN_PYTHON), 64 * runs)
        while self.asked < until:
            last = min(until, self.asked + max(1, most // runs))
            if agenda.lag is None:
                # A list costs a pass through the questions that are open.
                last = min(last, self.asked + max(LISTED, agenda.open))
            # Events cannot be listed again.
            events = self._play(partial(agenda.upto, self.asked + 1, last), begun=agenda.lag is None)
            if progress is not None:
                progress(events.asked)

    def ask(self, time: float | None = None) -> Question:
        """Asks the next question, at the time of its number by default; for `resolve`, at any later time.

        The forecaster commits itself, nature moves, forecast and outcome are drawn.
        """
        question = self._by_hand(time)
        self._open[question.number] = question
        return question

    def resolve(self, question: Question, time: float | None = None, outcome: Any = None) -> None:
        """Makes the outcome of a question known to the history, the forecaster and nature, in this order.

        Each question of `ask` once, in any order, at its own time by default. An `outcome`, 0 or 1 for all runs or for
        each, is told in place of the drawn one.
        """
        self._check_alive()
        if not isinstance(question, Question) or self._open.get(question.number) is not question:
            raise InvalidParameter(
                f"{in_one_line(question)} is no open question of this game; expected one that it asked, each once, and "
                "of a pickled game one that was pickled together with it"
            )
        at = question.time if time is None else check_time(time, question.time)
        if outcome is not None:
            told = np.asarray(outcome)
            whole = told.dtype.kind in "biuf" and told.shape in ((), (len(self.runs),))
            if not whole or not np.isin(told, (0, 1)).all():
                said = f"outcome = {brief(outcome)}; expected 0 or 1, or one of them for each run"
                raise InvalidParameter(said)
            self._loop.tell(question.slot, told)
        del self._open[question.number]
        self._play(partial(self._agenda.resolve, question, at), begun=True)
        _fill(question, resolved=True)

    def laws(self) -> list[dict[float, float]]:
        """The laws that the forecaster states in the next round, value → probability.

        The game stays as it is; an object in plain Python is asked once more.
        """
        laws: list[dict[float, float]] = self._by_hand(None, look=True).laws
        return laws

    def _by_hand(self, time: float | None, look: bool = False) -> Question:
        """Asks the next question, or looks at its law."""
        self._check_alive()
        number = self.asked + 1
        if number > self.horizon:
            raise InvalidParameter(f"round {number} is beyond the horizon {self.horizon}")
        at, streams_of = float(number) if time is None else check_time(time), self._agenda.streams_of
        stream = 0 if streams_of is None else int(streams_of(number, number)[0])
        events, question = self._agenda.ask(number, at, stream, LOOK if look else ASK)
        self._play(lambda: events, begun=False, whole=True, look=look)
        forecast, probability, laws = self._loop.said(question.slot)
        _fill(question, forecast=forecast, probability=probability, laws=laws)
        return question

    # ---------------------------------------------------------------- what came of it

    def gammas(self, stream: int | None = None) -> list[JointDistribution]:
        """Γ of each run over the rounds that are resolved, of one stream or (None) of all; needs one."""
        gammas = self.known(stream)
        if not gammas:
            raise InvalidParameter("no round has been resolved; Γ needs one")
        return gammas

    def known(self, stream: int | None = None) -> list[JointDistribution]:
        """As `gammas`, and empty where no round is resolved."""
        return [gamma for sets in self.each(stream) for gamma in sets]

    def each(self, stream: int | None = None) -> Iterator[LevelSets]:
        """The level sets of `known`, of some runs at a time: no others are in memory. No round may come in between."""
        self._check_alive()
        return self.ledger.each(stream)

    def moved(self, stream: int | None = None) -> Floats | None:
        """The mean distance that forecasts of each run were moved, (runs,): rounded up, by 1e-11 of it at most.

        None where the Γ of `gammas` is exact, and where no round is resolved.
        """
        self._check_alive()
        return self.ledger.moved(stream)

    @property
    def parts(self) -> list[Game]:
        """Itself: all its runs are in the same round, as those of a world are not."""
        return [self]

    def certificates(self) -> dict[str, Floats]:
        """Totals that the forecaster proves of its own play so far: name → (runs,) totals."""
        self._check_alive()
        return self.forecaster.certificates()

    # ---------------------------------------------------------------- inside

    def _play(
        self, listed: Callable[[], Events], *, begun: bool, whole: bool = False, look: bool = False
    ) -> Events:
        """Plays the events that `listed` returns.

        `begun`: the game is over if it fails. `whole`: forecasters state the whole law where the drawn atom would do.
        `look`: the events change nothing.
        """
        mine, theirs, number = self.forecaster, self.nature, self.asked + 1
        self._stopped = (
            "a player asks for a round of the game in which it is asked; expected a game of its own"
        )
        try:
            events = listed()
            resolved = sum(events.resolved)
            histories = [self.ledger.history(part) for part in events.parts]
            for history, rounds in zip(histories, events.resolved, strict=True):
                history.reserve(rounds)
            try:
                mine.prepare(events.asked, events.open, events.streams)
            except OnlinecalError:
                raise
            except Exception as error:
                raise Stopped(True, number, error) from error
            mine.reserve(max(resolved, events.asked))
            theirs.reserve(max(resolved, events.asked), self._levels)
            self._loop.reserve(max(1, self._agenda.slots + look))
            log = None
            if self.transcripts is not None:
                log = np.empty((len(self.runs), resolved, 2 + len(self.transcripts.kinds)))
            begun = begun or not look
            self._loop.play(self.asked, events, histories, log, self.threads, whole)
            events = events.settled()
            resolved = sum(events.resolved)
            if not look:
                self.asked, self.resolved = self.asked + events.asked, self.resolved + resolved
            for history, rounds in zip(histories, events.resolved, strict=True):
                history.played(rounds)
            if self.transcripts is not None and log is not None:
                self.transcripts.extend(events.told(self.asked), log[:, :resolved])
        except (Stopped, MemoryError) as error:
            stop = error if isinstance(error, Stopped) else Stopped(True, number, error)
            role, name = ("forecaster", self.names[0]) if stop.forecaster else ("nature", self.names[1])
            said = failed(stop.fault, f"{role} {name!r}", stop.number, self.runs, stop.run)
            # Some runs have played on, others not; nothing more can be asked of this game.
            self._stopped = str(said) if begun else ""
            raise said from stop.fault
        except BaseException as error:
            interrupted = f"a round after round {self.asked} was interrupted"
            self._stopped = (in_one_line(error, str) or interrupted) if begun else ""
            raise
        self._stopped = ""
        return events

    @property
    def _levels(self) -> float:
        """How many different forecasts there can be."""
        return math.inf if self.forecaster.grid is None else len(self.forecaster.grid)

    def _check_alive(self) -> None:
        if self._stopped:
            raise InvalidForecast(self._stopped)


def _fill(question: Question, **what: Any) -> None:
    """Writes what became known of a question, which its owner only reads."""
    for name, value in what.items():
        object.__setattr__(question, name, value)


def _streams_of(nature: Any, name: str, streams: int, first: int, last: int) -> Any:
    """The streams of some questions, as the player of nature tells them."""
    said = f"nature {name!r}, streams_of({first}, {last})"
    try:
        told = np.asarray(nature.streams_of(first, last))
    except Exception as error:
        raise InvalidForecast(f"{said}: {failure(error)}") from error
    each = told.shape == (last + 1 - first,)
    wrong = told[~np.isin(told, range(streams))][:4] if each else told
    if not each or len(wrong):
        expected = f"{last + 1 - first} integers from 0 to {streams - 1}"
        raise InvalidForecast(f"{said} gave {brief(wrong)}; expected {expected}")
    return told.astype(np.int64)
