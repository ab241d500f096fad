"""Several runs of one pair: by the compiled loop where both players are compiled, else run by run by `play`.

Round t = 1, 2, …: nature may reveal context. The forecaster states the law of p_t; nature, from what its `Sight`
allows, states q_t. The engine draws p_t from the law and y_t = 1[u_t < q_t]. The uniforms depend on the seed, the role,
the strategies, the horizon and the number of the run alone. Players never draw their moves, so an adversary sees
exactly what it declares. The course of a run does not depend on the other runs beside it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidForecast, InvalidParameter, failure, in_one_line
from onlinecal.core.strategy import classes_of, strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import count, integer
from onlinecal.engine import loop
from onlinecal.engine.events import Events, Listed
from onlinecal.engine.faults import Stops, stopped_by
from onlinecal.engine.history import history_of, wider
from onlinecal.engine.horizon import check_horizon, check_runs, check_time
from onlinecal.engine.law import brief, summed
from onlinecal.engine.memory import check_history, check_players, parts_of
from onlinecal.engine.outcomes import outcomes_of
from onlinecal.engine.play import Play, Stopped
from onlinecal.engine.play import Question as InRun
from onlinecal.engine.result import Result
from onlinecal.engine.run import lay, make_rows, point_to_law, shared_width, width
from onlinecal.engine.seats import seat
from onlinecal.engine.start import check_classes, check_pair, start
from onlinecal.engine.steps import ASKED_AT, Coming, Player
from onlinecal.engine.transcripts import transcripts_of
from onlinecal.engine.uniforms import generators
from onlinecal.forecasters.base import Forecaster as Specified
from onlinecal.forecasters.base import as_forecaster
from onlinecal.natures.base import as_nature
from onlinecal.schedules.base import Schedule

#: raised when rounds, draws, history or Γ of a game become others: results are kept under it (tests/golden.py)
VERSION = 1
IMMEDIATE = Schedule()
#: questions that are listed at a time, at least and at most, and run-rounds that are played at a time
LEAST, MOST, SEGMENT = 2**10, 2**16, 2**19
#: run-rounds that are worth a thread of their own
THREAD = 2**15


@dataclass(frozen=True, eq=False, repr=False)
class Question:
    """A question that was asked by hand in all runs: when, and of each run the forecast, q, and the law.

    `forecast` and `probability` are (runs,) floats, or (runs, K) of K classes. `laws` are value → probability.
    """

    number: int
    time: float
    each: list[InRun]

    @property
    def resolved(self) -> bool:
        """Whether its outcome is known."""
        return self.each[0].resolved

    @property
    def forecast(self) -> Floats:
        """The forecasts that were drawn, (runs,), or (runs, K)."""
        return np.array([q.forecast for q in self.each])

    @property
    def probability(self) -> Floats:
        """The probabilities of the outcome 1, (runs,), or of each class, (runs, K)."""
        return np.array([q.probability for q in self.each])

    @property
    def laws(self) -> list[dict[Any, float]]:
        """The laws, value → probability."""
        return [summed(*zip(*q.law, strict=True)) for q in self.each]


class Game(Result):
    """One forecaster against one nature, in several runs; it can be pickled between rounds, with open questions.

    Both are specifications, or what makes one, such as a plain class. `runs` is the range of runs to play: run r is the
    same game in whatever batch. `schedule` says when `advance` asks the questions and tells their outcomes. Γ can be
    had of the rounds between any two `cuts`. `keeps` are kinds of context that are kept with all rounds, as
    `transcripts`. The numbers do not depend on how many `threads` play. With `laws` each round of a game of classes
    counts at every point of its law, too, for `gamma_of_laws`.

    `asked` is the number of questions; `compiled` says whether the loop plays them. A game is over once a player has
    failed, since runs are then in different rounds. Every call raises the same error.
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
        threads: int = 1,
        laws: bool = False,
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
        forecaster = forecaster.facing(nature) if isinstance(forecaster, Specified) else forecaster
        check_pair(forecaster, nature, horizon)
        schedule.check_length(horizon)
        check_classes(nature, schedule, keeps, laws)
        free = check_players(forecaster, nature, horizon)
        self.pair, self.names = (forecaster, nature), (strategy_name(forecaster), strategy_name(nature))
        self.horizon, self.runs, self.seed, self.schedule = horizon, runs, seed, schedule
        self.threads, self.asked, self._stopped, self.of_laws = count("threads", threads), 0, "", laws
        self.forecaster = start("forecaster", forecaster, horizon, runs, seed)
        self.nature = start("nature", nature, horizon, runs, seed)
        self.compiled = isinstance(self.forecaster, Player) and isinstance(self.nature, Player)
        self.cuts, self.streams = sorted({check_time(cut) for cut in cuts}), max(1, len(nature.streams))
        self.groups, self.classes = nature.group_names, classes_of(nature)
        self.events = Events(schedule.clock(horizon, seed), self.cuts, self.streams, self._streams_of(nature))
        grid = getattr(self.forecaster, "grid", None)
        self.transcripts = transcripts_of(len(runs), keeps, nature)
        points = None if grid is None else len(grid)
        parts = parts_of(len(self.cuts), self.streams, horizon, len(self.groups))
        check_history(len(runs), horizon, None if self.groups else points, parts, free, self.classes)
        told = horizon, self.events.parted, len(self.groups), self.classes, laws
        self.history = history_of(len(runs), self.forecaster, *told)
        self.levels = math.inf if points is None else points
        # The outcomes' uniforms belong to nature alone: every forecaster faces the same ones.
        of = ("forecast", strategy_key(forecaster)), ("outcome", strategy_key(nature))
        self.uniforms = tuple(Stream(seed, (*names, f"T={horizon}"), runs) for names in of)
        #: the game's own row in each run, as `loop` says, and how many open questions it has room for
        own = [generators(stream.keys, len(runs)) for stream in self.uniforms]
        self.tables = np.hstack([*own, np.zeros((len(runs), 1))])
        self.room, self.rows, self.mine_from = 0, np.zeros((0, 0)), 0
        #: the runs as `play` plays them, from when it is asked to; and whether it plays by the schedule too
        self._plays: list[Play] | None = None
        self.in_python = not self.compiled
        #: the questions that were asked by hand, by number
        self._open: dict[int, Question] = {}

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
        block = min(MOST, max(LEAST, SEGMENT // len(self.runs)))
        while self.asked < until:
            last = min(until, self.asked + block)
            with Stops(self, begun=True):
                if self.in_python:
                    for play in self.plays:
                        play.play(last)
                    new, self.asked = last - self.asked, last
                else:
                    new = self._play(self.events.upto(self.asked + 1, last))
            if progress is not None:
                progress(new)

    def ask(self, time: float | None = None) -> Question:
        """Asks the next question, at the time of its number by default; for `resolve`, at any later time.

        The forecaster commits itself, nature moves, forecast and outcome are drawn.
        """
        number, at = self._next(time)
        with Stops(self, begun=True):
            open = self.events.open + len(self._open) + 1
            self._make_room(number, open)
            each = [play.ask(number, at) for play in self.plays]
        self.asked = number
        if self.in_python:
            for play in self.plays:
                play.asked = number
        question = self._open[number] = Question(number, at, each)
        return question

    def resolve(self, question: Question, time: float | None = None, outcome: Any = None) -> None:
        """Makes the outcome of a question known to the history, the forecaster and nature, in this order.

        Each question of `ask` once, in any order, at its own time by default. An `outcome`, 0 or 1 (or a class) for all
        runs or for each, is told in place of the drawn one.
        """
        self._check_alive()
        if not isinstance(question, Question) or self._open.get(question.number) is not question:
            raise InvalidParameter(
                f"{in_one_line(question)} is no open question of this game; expected one that it asked, each once, and "
                "of a pickled game one that was pickled together with it"
            )
        if time is not None:
            check_time(time, question.time)
        if outcome is not None:
            told = np.asarray(outcome)
            whole = told.dtype.kind in "biuf" and told.shape in ((), (len(self.runs),))
            if not whole or not np.isin(told, range(self.classes or 2)).all():
                known = f"an integer from 0 to {self.classes - 1}" if self.classes else "0 or 1"
                said = f"outcome = {brief(outcome)}; expected {known}, or one of them for each run"
                raise InvalidParameter(said)
            for q, y in zip(question.each, np.broadcast_to(told, len(self.runs)).tolist(), strict=True):
                q.outcome = int(y)
        del self._open[question.number]
        with Stops(self, begun=True):
            for play, q in zip(self.plays, question.each, strict=True):
                play.resolve(q, question.time if time is None else float(time))

    def laws(self) -> list[dict[Any, float]]:
        """The laws that the forecaster states in the next round, value → probability.

        The game stays as it is; an object in plain Python is asked once more.
        """
        number, at = self._next(None)
        with Stops(self, begun=False):
            self._make_room(number, self.events.open + len(self._open) + 1)
            found = [play.look(number, at) for play in self.plays]
        return [summed(*zip(*law, strict=True)) for law in found]

    def _next(self, time: float | None) -> tuple[int, float]:
        """The number of the next question, and the time at which it is asked."""
        self._check_alive()
        number = self.asked + 1
        if number > self.horizon:
            raise InvalidParameter(f"round {number} is beyond the horizon {self.horizon}")
        return number, float(number) if time is None else check_time(time)

    # ---------------------------------------------------------------- the compiled loop

    def _play(self, listed: Listed) -> int:
        """Plays listed events in all runs, some runs in each thread; the number of questions."""
        rounds = len(listed.times)
        self._make_room(self.asked + rounds, self.events.places)
        *lent, laws = self.history.lend(listed.names, listed.told)
        log: tuple[Any, Any] = np.zeros((0, 0, 0)), np.zeros(0, np.int64)
        if self.transcripts is not None:
            first, times, streams = self.asked + 1, listed.times, 0
            if self.streams > 1:
                streams = self.events.parts_of(first, self.asked + rounds, times) % self.streams
            log = self.transcripts.lend(first, times, listed.known, streams, listed.told)
        runs, (rules, context) = len(self.runs), self._rules()
        play = partial(
            loop.play_runs(), *loop.steps_of(self.forecaster, self.nature), self.rows, self.mine_from, self.tables,
            loop.Questions(listed.codes, listed.parts, listed.times, self.asked), rules, context,
            loop.Told(*lent, *log, laws),
        )  # fmt: skip
        threads = min(self.threads, runs, max(1, runs * rounds // THREAD))
        bounds = np.linspace(0, runs, threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(threads, "onlinecal") if threads > 1 else nullcontext() as pool:
            try:
                for said in (map if pool is None else pool.map)(play, bounds, bounds[1:]):
                    if said[0] != loop.FINE:
                        raise stopped_by(self, rules.draws, *said)
            except Stopped:
                raise
            except Exception as error:  # of a step
                (run,) = np.flatnonzero(self.tables[:, loop.CALLED])[:1].tolist() or (None,)
                if run is None:
                    raise
                called = self.tables[run, loop.CALLED]
                raise Stopped(bool(called > 0), int(abs(called)), error, run) from error
        self.history.take(listed.names, tuple(lent))
        if self.transcripts is not None:
            self.transcripts.take()
        self.asked += rounds
        return rounds

    def _make_room(self, asked: int, open: int) -> None:
        """Makes both players fit for what comes, and lays them out where that needs more room."""
        mine, theirs = self.forecaster, self.nature
        coming = Coming(asked, open, self.streams, self.levels)
        for player in (mine, theirs):
            if isinstance(player, Player):
                try:
                    player.make_room(coming)
                except Exception as error:
                    raise Stopped(player is mine, self.asked + 1, error) from error
        if not self.compiled:
            return
        if open > self.room:
            self.room, mine.laid = 2 * open, False
            self.tables = wider(self.tables, loop.TABLE + loop.QUESTION * self.room)
        # By hand, players that were pickled are first laid into rows of their own.
        if mine.laid and theirs.laid and theirs.rows is self.rows:
            return
        # One note more is for questions that are asked by hand.
        start, atoms = width(theirs, self.room + 1, 0), mine.size
        wide = start + width(mine, self.room + 1, atoms)
        self.rows, common = make_rows(len(self.runs), wide, shared_width(theirs) + shared_width(mine))
        self.mine_from, far = start, self.rows.size
        left = lay(theirs, self.rows[:, :start], self.room + 1, 0, common, far)
        lay(mine, self.rows[:, start:], self.room + 1, atoms, left, far + len(common) - len(left) - start)
        theirs.rows = self.rows
        point_to_law(self.rows, start)

    def _rules(self) -> tuple[Any, Any]:
        mine, theirs = self.forecaster, self.nature
        places = {kind: place for place, kind in theirs.reveals.items()} | {ASKED_AT: -1}
        needs = [(places[kind], place) for place, kind in mine.needs.items()]
        sides = theirs.by_side and mine.side is not None
        draws = mine.draw is not None and (theirs.sight < loop.LAW_SEEN or sides) and not self.of_laws
        rules = loop.Rules(
            mine.size, float(self.levels - 1 if self.classes else 1), self.classes or 2, self.classes > 0,
            int(theirs.sight), draws, sides, theirs.hear is not None, mine.note + theirs.note > 0,
            theirs.reveal is not None or len(needs) + len(theirs.times) > 0,
        )  # fmt: skip
        return rules, loop.Context(
            np.array(needs, np.int64).reshape(-1, 2),
            np.array([] if self.transcripts is None else [places[kind] for kind in self.transcripts.kinds], np.int64),
            np.array(theirs.times, np.int64), np.array([places[group] for group in self.groups], np.int64),
        )  # fmt: skip

    # ---------------------------------------------------------------- in Python

    @property
    def plays(self) -> list[Play]:
        """Each run as `play` plays it."""
        if self._plays is None:
            self._plays = [self._run_in_python(r) for r in range(len(self.runs))]
        return self._plays

    def _run_in_python(self, r: int) -> Play:
        players = [each if isinstance(each, Player) else each[r] for each in (self.forecaster, self.nature)]
        forecaster = players[0] if isinstance(players[0], Player) else None
        mine, theirs = map(seat, ("forecaster", "nature"), self.pair, players, (r, r), (None, forecaster))
        run = range(self.runs[r], self.runs[r] + 1)
        draws, outcomes = (stream.over(run) for stream in self.uniforms)
        clock, keep = self.schedule.clock(self.horizon, self.seed), partial(self.keep, r)
        single = not (self.events.parted or self.groups or self.classes) and self.transcripts is None
        extend = partial(self.history.extend, r) if single else None
        return Play(
            mine, theirs, clock, draws, outcomes, self.events.part_of, keep, self._make_room, extend, r, self.groups,
            outcomes_of(self.pair[1]),
        )  # fmt: skip

    # ---------------------------------------------------------------- inside

    def _streams_of(self, nature: Any) -> Callable[[int, int], Any] | None:
        if not nature.streams:
            return None
        player = self.nature if isinstance(self.nature, Player) else self.nature[0]
        return partial(_streams_of, player, self.names[1], self.streams)

    def __getstate__(self) -> dict[str, Any]:
        # Steps are functions of this process: the specifications start the players again.
        plays = None if self._plays is None else [(play.asked, play.waiting) for play in self._plays]
        kept = {
            name: player.kept()
            for name in ("forecaster", "nature")
            if isinstance(player := vars(self)[name], Player)
        }
        events = copy.copy(self.events)
        events.streams_of = None
        return self.__dict__ | kept | {"rows": None, "_plays": plays, "events": events}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for role, strategy in zip(("forecaster", "nature"), self.pair, strict=True):
            if isinstance(state[role], dict):
                player = start(role, strategy, self.horizon, self.runs, self.seed)
                player.restore(state[role])
                setattr(self, role, player)
        if hasattr(self.history, "player"):
            self.history.player = self.forecaster
        self.events.streams_of = self._streams_of(self.pair[1])
        self._plays = None
        if state["_plays"] is not None:
            for play, (asked, waiting) in zip(self.plays, state["_plays"], strict=True):
                play.asked, play.waiting = asked, waiting


def _streams_of(nature: Any, name: str, streams: int, first: int, last: int) -> Any:
    """The streams of some questions, as the player of nature tells them."""
    said = f"nature {name!r}, streams_of({first}, {last})"
    try:
        told = np.asarray(nature.streams_of(first, last))
    except Exception as error:
        raise InvalidForecast(f"{said}: {failure(error)}") from error
    each = told.shape == (last + 1 - first,)
    whole = each and told.dtype.kind in "biuf" and (told == np.floor(told)).all()
    if not (whole and told.min() >= 0 and told.max() < streams):
        wrong = told[~np.isin(told, range(streams))][:4] if each else told
        expected = f"{last + 1 - first} integers from 0 to {streams - 1}"
        raise InvalidForecast(f"{said} gave {brief(wrong)}; expected {expected}")
    return told.astype(np.int64, copy=False)
