"""The engine: a forecaster and a nature meet round by round, in several runs.

Round t = 1, 2, …: nature may reveal context; the forecaster states the law of p_t; nature, from what its `Sight`
allows, states q_t; the engine draws p_t from the law and y_t = 1[u_t < q_t] from streams that depend only on the seed,
the role, the strategies, the horizon and the number of the run. Players never draw their moves, so an adversary sees
exactly what it declares, and a run's course does not depend on which other runs are played beside it.

`Game.advance` plays lists of events (`onlinecal.engine.driving`) where players are made of steps or in plain Python. By
hand, and for other players, a round is a record (`onlinecal.rounds.record`): `Game.ask` makes one, and `Game.resolve`
tells its outcome to the history, the forecaster and nature. Other rounds may be asked and resolved in between.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np

from onlinecal.core.errors import InvalidForecast, InvalidParameter, OnlinecalError, in_one_line
from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import count, is_whole
from onlinecal.engine.driving import drive, side
from onlinecal.engine.events import Agenda
from onlinecal.engine.failures import check_loop, failed, no_probability
from onlinecal.engine.history import History
from onlinecal.engine.horizon import check_horizon, check_length, check_runs, check_time
from onlinecal.engine.keeping import as_history
from onlinecal.engine.ledger import Ledger, part_of
from onlinecal.engine.loop import Questions, Stopped, made_of_steps
from onlinecal.engine.open_rounds import Open, Waiting
from onlinecal.engine.revealed import Revealed
from onlinecal.engine.transcripts import Transcripts, check_kept
from onlinecal.forecasters.base import Forecaster
from onlinecal.natures.base import Nature, NatureRound, Sight
from onlinecal.rounds.law import Floats, StatedLaw, Unplayable, brief, take_numbers
from onlinecal.rounds.protocol import check_pair, start
from onlinecal.rounds.record import Recorder, Round, Stage, decide, resolve
from onlinecal.schedules.base import Schedule

#: of the engine: rounds, draws, history, Γ and what is read of it; raised when a game comes out otherwise, since
#: results are kept under it (tests/versions.py)
VERSION = 1
#: rounds whose uniforms are drawn at a time
BLOCK = 1024
IMMEDIATE = Schedule()


class Game:
    """One forecaster against one nature, in several runs; pausable between rounds.

    Parameters
    ----------
    forecaster : Forecaster
    nature : Nature
    horizon : int
        T, from 1 to 10^9; players that are tuned to a horizon are tuned to this one.
    runs : range
        Which runs to play. Run r is the same game in whatever batch it is played.
    seed : int
        Of all the randomness.
    loop : {"auto", "event", "compiled"}
        How `advance` plays. "event": round by round, all players. "auto": by lists of events where both players are
        made of steps (`onlinecal.rounds.steps`) or in plain Python, else as "event". "compiled": as "auto", and refuses
        players that are not made of steps. The numbers are the same.
    schedule : Schedule
        When `advance` asks the questions and tells their outcomes. Default: a question a unit, and no delay.
    cuts : iterable of float
        When somebody joins or leaves: Γ can be had of the rounds asked between any two of these times.
    keeps : iterable of str, optional
        Keeps the rounds as `transcripts`, with these kinds of context, which the event loop reads. Default: what Γ
        needs.
    history : "exact", int, mapping, Exact or OnGrid
        How forecasts that are on no grid are kept (`onlinecal.engine.keeping`): ``"exact"``, in memory while they fit
        and else in a temporary file; an integer m, counted on a grid of m + 1 points, with the distance that they
        were moved (`moved`). The numbers of the game do not depend on it.
    threads : int, default 1
        How many play the runs of two players that are made of steps; the numbers do not depend on it.

    Attributes
    ----------
    asked, resolved : int
        How many rounds have been asked, and how many of them have been resolved.
    forecaster, nature
        The players.
    compiled : bool
        Whether both players are made of steps, and `advance` plays lists of events.
    ledger : Ledger or None
        The histories of the parts of the game; None before there is a round.
    transcripts : Transcripts or None
        The rounds that are kept.
    last : Round or None
        The last round that `ask` made; None before there is one, and after unpickling.

    Raises
    ------
    InvalidParameter
        A horizon or number of runs out of range; a nature that cannot play as long or does not reveal what the
        forecaster needs; a player that lacks a method of its protocol; not enough memory.

    Notes
    -----
    Between calls a game can be pickled together with its open rounds, and continues identically.
    Once a player has failed at a round that others were told, or in a list of events, where runs are then in different
    rounds, a game is over: whatever is asked of it raises the same error again.
    """

    def __init__(
        self,
        forecaster: Forecaster,
        nature: Nature,
        *,
        horizon: int,
        runs: range,
        seed: int = 0,
        loop: Literal["auto", "event", "compiled"] = "auto",
        schedule: Schedule = IMMEDIATE,
        cuts: Iterable[float] = (),
        keeps: Iterable[str] | None = None,
        history: Any = "exact",
        threads: int = 1,
    ) -> None:
        check_horizon(horizon)
        if not is_whole(seed):
            raise InvalidParameter(f"seed = {brief(seed)}; expected an integer")
        check_runs(runs)
        check_pair(forecaster, nature, horizon)
        self.names = strategy_name(forecaster), strategy_name(nature)
        keys, seed = (strategy_key(forecaster), strategy_key(nature)), int(seed)
        size, at = len(runs), f"T={horizon}"
        self.horizon, self.runs, self.asked, self.resolved = horizon, runs, 0, 0
        self.forecaster = start("forecaster", forecaster, horizon, runs, seed)
        self.nature = start("nature", nature, horizon, runs, seed)
        # The outcomes' uniforms belong to nature alone: every forecaster faces the same ones.
        self._outcome_uniforms = Stream(seed, ("outcome", keys[1], at), runs)
        self._forecast_uniforms = Stream(seed, ("forecast", keys[0], at), runs)
        self._blocks: tuple[Any, ...] | None = None
        self._block = -1
        self.transcripts = None if keeps is None else Transcripts(size, check_kept(keeps, nature))
        kinds = () if self.transcripts is None else self.transcripts.kinds
        self._revealed = Revealed(forecaster.needs, len(nature.streams), size, kinds)
        self._sight = nature.sight
        self._hears = nature.sight >= Sight.HISTORY
        self._certifies = forecaster.certifies
        self._recorder = Recorder(size)
        able = [made_of_steps(player) for player in (self.forecaster, self.nature)]
        check_loop(loop, self.names, able)
        sides = [side(player) for player in (self.forecaster, self.nature)]
        streams = self._revealed.streams
        streams_of = self.nature.streams_of if streams and able[1] else None
        told = streams_of is not None or not (streams or "stream" in forecaster.needs)
        self._driven = None not in sides and told and not kinds and loop != "event"
        self.compiled = self._driven and all(able)
        self.schedule = schedule
        check_length(horizon, schedule.length)
        self._clock = schedule.clock(horizon, seed)
        self._waiting = Waiting()
        self._cuts = tuple(sorted({check_time(cut) for cut in cuts}))
        listed = getattr(sides[1], "sees_law", False)
        self._agenda = Agenda(self._clock, self._cuts, max(1, streams), streams_of, listed)
        self._questions: Any = Questions(*sides) if self._driven else None
        self.threads = count("threads", threads)
        self._keeping = as_history(history)
        self._stopped = ""
        self._q = np.empty(size)
        self.ledger: Ledger | None = None
        self._turn = "nature"
        self.last: Round | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"last": None, "_blocks": None}

    def __copy__(self) -> Game:
        # Players and history belong to one game.
        return copy.deepcopy(self)

    # ---------------------------------------------------------------- playing

    def advance(self, until: int, progress: Callable[[int], None] | None = None) -> None:
        """Plays by the schedule until question `until` + 1 would be asked.

        At one time of the clock questions come before outcomes, and these in the order of their questions. The game
        ends when question T + 1 would be asked; what is open then, stays so.

        Parameters
        ----------
        until : int
            From 0 to the horizon; nothing happens if that round has been asked.
        progress : callable, optional
            Told the number of rounds played since it was last told.

        Raises
        ------
        InvalidForecast
            A player stated something that is not a law or a probability, or failed; the message names it and the
            round. In the event loop the game then stands before that round, unless others were told of it.
        """
        until = count("until", until, least=0)
        if until > self.horizon:
            raise InvalidParameter(f"round {until} is beyond the horizon {self.horizon}")
        if self._driven:
            drive(self, until, progress)
            return
        told, times = self.asked, self._clock.times
        while self.asked < until:
            if progress is not None and self.asked % BLOCK == 0 and self.asked > told:
                progress(self.asked - told)
                told = self.asked
            time, known = times(self.asked + 1)
            self._waiting.add(known, self.ask(time))
            soon = times(self.asked + 1)[0]
            while (due := self._waiting.next(before=soon)) is not None:
                self.resolve(due[1], due[0])
        if progress is not None and self.asked > told:
            progress(self.asked - told)

    def ask(self, time: float | None = None) -> Open:
        """Asks the next question: the forecaster commits itself, nature moves, forecast and outcome are drawn.

        Parameters
        ----------
        time : float, optional
            On the game's clock. Default: the number of the round.

        Returns
        -------
        Open
            For `resolve`, once, at any later time.
        """
        self._check_next()
        t = self.asked
        if time is not None:
            check_time(time)
        at = float(t + 1) if time is None else time
        try:
            round, face = self._play(t + 1, at)
        except OnlinecalError:
            raise
        except Exception as error:
            raise self._failed(error, t + 1) from error
        self.asked, self.last = t + 1, round
        return Open(round, face, part_of(self._cuts, at, self._revealed.stream), self._revealed.kept)

    def _play(self, number: int, time: float) -> tuple[Round, NatureRound]:
        """Asks a round by the methods of the players."""
        t, row = number - 1, (number - 1) % BLOCK
        if t // BLOCK != self._block or self._blocks is None:
            old = self._blocks or (None, None)
            streams = self._forecast_uniforms, self._outcome_uniforms
            self._block, first = t // BLOCK, t - row
            self._blocks = tuple(s.block_from(first, BLOCK, out=o) for s, o in zip(streams, old, strict=True))
        forecast_uniforms, outcome_uniforms = self._blocks
        round, face = self._question(number, time)
        self._turn = "forecaster"
        self._recorder.draw(round, self.forecaster.forecast(round), forecast_uniforms, row)
        self._turn = "nature"
        stated = self.nature.probability(face)
        if not take_numbers(stated, self._q):
            raise self._no_probability(stated)
        bad = decide(round, self._q, outcome_uniforms, row)
        if bad >= 0:
            raise self._no_probability(self._q[bad], bad)
        return round, face

    def resolve(self, open: Open, time: float | None = None) -> None:
        """Makes the outcome of a round known, in this order, to the history, the forecaster and nature.

        Parameters
        ----------
        open : Open
            From `ask` of this game; each once, in any order.
        time : float, optional
            On the game's clock, not before the question. Default: the time of the question.

        Raises
        ------
        InvalidParameter
            The round is none of this game's, or has been resolved; a time that is none. Nothing has changed then.
        InvalidForecast
            A player failed. The game is over, since others have been told.
        """
        self._check_alive()
        round = open.round
        if not self._recorder.wrote(round):
            raise InvalidParameter(
                f"round {round.number} was not asked by this game; expected one of its own, and of a pickled game "
                "one that was pickled together with it"
            )
        if round.stage is Stage.RESOLVED:
            raise InvalidParameter(f"round {round.number} has been resolved; expected each round once")
        if time is not None:
            check_time(time, round.time)
        self._written(self._recorder.grid)
        resolve(round, round.time if time is None else time)
        try:
            self._tell(open)
        except BaseException as error:
            self._stopped = in_one_line(error, str) or f"round {round.number} was interrupted"
            raise

    def _tell(self, open: Open) -> None:
        """Tells the history, the forecaster and nature a round."""
        assert self.ledger is not None
        round, history = open.round, self.ledger.history(open.part)
        try:
            history.update(round)
            self.resolved += 1
            if self.transcripts is not None:
                self.transcripts.update(round, open.part[1], open.context)
            self._turn = "forecaster"
            self.forecaster.update(round)
            if self._hears:
                self._turn = "nature"
                self.nature.update(open.nature)
        except OnlinecalError:
            raise
        except Exception as error:
            raise self._failed(error, round.number) from error

    # ---------------------------------------------------------------- what came of it

    def gammas(self, stream: int | None = None) -> list[JointDistribution]:
        """Γ of each run over the rounds that are resolved, of one stream or (None) of all; needs one."""
        gammas = self.known(stream)
        if not gammas:
            raise InvalidParameter("no round has been resolved; Γ needs one")
        return gammas

    def known(self, stream: int | None = None) -> list[JointDistribution]:
        """As `gammas`, and empty where no round is resolved."""
        return list(self.each(stream))

    def each(self, stream: int | None = None) -> Iterator[JointDistribution]:
        """As `known`, made one after the other, so that one at a time is in memory; no round may come in between."""
        self._check_alive()
        return iter((None if self.ledger is None else self.ledger.each(stream)) or ())

    def moved(self, stream: int | None = None) -> Floats | None:
        """The mean distance that forecasts of each run were moved, (runs,): rounded up, by 1e-11 of it at most.

        None where the Γ of `gammas` is exact, and where no round is resolved.
        """
        self._check_alive()
        return None if self.ledger is None else self.ledger.moved(stream)

    @property
    def history(self) -> History | None:
        """What is kept of the resolved rounds of a game that is in one part; None before there is one."""
        return None if self.ledger is None else self.ledger.history((0, 0))

    def _written(self, grid: Floats | None) -> Ledger:
        """Where rounds are written down, of laws on this grid."""
        if self.ledger is None:
            self.ledger = Ledger(
                len(self.runs), self.horizon, grid, self._cuts, max(1, self._revealed.streams), self._keeping
            )
        return self.ledger

    def law(self) -> StatedLaw:
        """What the forecaster would state in the next round, as it would be written down; asking changes nothing."""
        self._check_next()
        try:
            round, _ = self._question(self.asked + 1, float(self.asked + 1))
            self._turn = "forecaster"
            Recorder(len(self.runs)).record(round, self.forecaster.forecast(round))
            return round.law
        except OnlinecalError:
            raise
        except Exception as error:
            raise self._failed(error, self.asked + 1) from error

    def certificates(self) -> dict[str, Floats]:
        """What the forecaster proves of its own play so far: name → (runs,) totals."""
        self._check_alive()
        return self.forecaster.certificates() if self._certifies else {}

    # ---------------------------------------------------------------- inside

    def _check_alive(self) -> None:
        if self._stopped:
            raise InvalidForecast(self._stopped)

    def _check_next(self) -> None:
        """Refuses a round that there is not."""
        self._check_alive()
        if self.asked >= self.horizon:
            raise InvalidParameter(f"round {self.asked + 1} is beyond the horizon {self.horizon}")

    def _question(self, number: int, time: float) -> tuple[Round, NatureRound]:
        """The next round as forecaster and nature see it before they move."""
        shown: dict[str, Any] = {}
        round = Round(number, time, shown)
        face = NatureRound(round, self.names[1], self._sight)
        if self._revealed.kinds:
            self._turn = "nature"
            shown.update(self._revealed.show(self.nature, face))
        return round, face

    def _no_probability(self, stated: Any, run: int | None = None) -> Unplayable:
        return no_probability(stated, len(self.runs), run)

    def _failed(self, error: Exception, number: int) -> InvalidForecast:
        """A player's own error, with its name and the round."""
        place = None
        if isinstance(error, Stopped):
            self._turn, place, error = "forecaster" if error.forecaster else "nature", error.run, error.fault
        return failed(error, f"{self._turn} {self.names[self._turn == 'nature']!r}", number, self.runs, place)
