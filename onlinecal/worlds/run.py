"""Plays a forecaster in runs of a world, each by `play` at the times of its simpy processes."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import numpy as np
import simpy

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidData, InvalidParameter, in_one_line
from onlinecal.core.strategy import strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.transcript import Transcript
from onlinecal.core.validation import count, integer
from onlinecal.engine import play
from onlinecal.engine.game import IMMEDIATE
from onlinecal.engine.history import history_of
from onlinecal.engine.horizon import check_horizon, check_runs, check_time
from onlinecal.engine.law import Unplayable, failed, is_scalar
from onlinecal.engine.memory import check_history, check_players, parts_of
from onlinecal.engine.result import Result
from onlinecal.engine.seats import seat
from onlinecal.engine.start import check_pair, start
from onlinecal.engine.steps import Coming, Player
from onlinecal.engine.transcripts import transcripts_of
from onlinecal.forecasters.base import as_forecaster
from onlinecal.worlds.base import Simulated, as_world
from onlinecal.worlds.market import Market, Question

#: of worlds: what they ask, hear and are told; raised when a simulation comes out otherwise
VERSION = 2
#: events of simpy without a question after which a run is taken to go on for ever
PATIENCE = 10**6


class Over(BaseException):
    """Ends the processes of a run after its last question; a world should not catch it."""


class Simulation(Result):
    """A forecaster in several runs of a world, each with questions and outcomes at times of its own.

    It is read as a `Game`. It cannot be pickled: processes are generators. A run is played again from its seed.

    Parameters
    ----------
    forecaster : Forecaster
    world : World
    horizon : int
        From 1 to 10^9 questions; those open when the next one would be asked stay so.
    runs : range
        Run r is the same in whatever batch it is played.
    seed : int
    cuts, keeps
        As in `onlinecal.engine.game.Game`; `cuts` are times of the world's clock.

    Attributes
    ----------
    asked : int
        Questions of each run that are read now.
    """

    compiled = False

    def __init__(
        self,
        forecaster: Any,
        world: Any,
        *,
        horizon: int,
        runs: range,
        seed: int = 0,
        cuts: Iterable[float] = (),
        keeps: Iterable[str] | None = None,
    ) -> None:
        forecaster, world = as_forecaster(forecaster), as_world(world)
        check_horizon(horizon)
        self.seed = integer("", "seed", seed)
        check_runs(runs)
        forecaster = forecaster.facing(world)
        check_pair(forecaster, world, horizon)
        free = check_players(forecaster, world, horizon)
        self.pair, self.names = (forecaster, world), (strategy_name(forecaster), strategy_name(world))
        self.horizon, self.runs, self.asked, self._stopped = horizon, runs, 0, ""
        self.cuts, self.streams = sorted({check_time(cut) for cut in cuts}), max(1, len(world.streams))
        self.groups = world.group_names
        self.transcripts = transcripts_of(len(runs), keeps, world)
        self.forecaster = start("forecaster", forecaster, horizon, runs, self.seed)
        grid = getattr(self.forecaster, "grid", None)
        points = None if grid is None else len(grid)
        parts, groups = parts_of(len(self.cuts), self.streams, horizon, len(self.groups)), len(self.groups)
        check_history(len(runs), horizon, None if groups else points, parts, free)
        self.history = history_of(
            len(runs), self.forecaster, horizon, len(self.cuts) > 0 or self.streams > 1, groups
        )
        self.levels = math.inf if points is None else points
        self._courses = [Course(self, place) for place in range(len(runs))]

    def __reduce__(self) -> Any:
        raise TypeError(
            "a simulation of a world cannot be pickled or copied, since its processes are generators; expected it to "
            "be played again from its seed"
        )

    def advance(self, until: int, progress: Callable[[int], None] | None = None) -> None:
        """Plays each run until its question `until` + 1 would be asked; `InvalidForecast` or `InvalidData` for a fault.

        `progress` is told the number of questions asked in each run since it was last told, on average.
        """
        if count("until", until, least=0) > self.horizon:
            raise InvalidParameter(f"question {until} is beyond the horizon {self.horizon}")
        self._check_alive()
        new, told = until - self.asked, 0
        if new <= 0:
            return
        try:
            for i, course in enumerate(self._courses, 1):
                course.advance(until)
                if progress is not None:
                    progress(new * i // len(self.runs) - told)
                    told = new * i // len(self.runs)
        except BaseException as error:
            self._stopped = in_one_line(error, str) or f"a round after round {self.asked} was interrupted"
            raise
        self.asked = until

    def certificates(self) -> dict[str, Floats]:
        """The totals that the forecaster proves of its own play so far: name → (runs,)."""
        totals = {name: np.array(each) for name, each in super().certificates().items()}
        for place, course in enumerate(self._courses):
            for name, total in course.certified.get(self.asked, {}).items():
                totals[name][place] = total
        return totals

    def certificates_now(self, place: int) -> dict[str, float]:
        """The same of one run that is ahead of what is read."""
        return {name: float(each[place]) for name, each in super().certificates().items()}

    def make_room(self, asked: int, open: int) -> None:
        """Makes the forecaster fit for the questions up to this number, with this many open."""
        if isinstance(self.forecaster, Player):
            self.forecaster.make_room(Coming(asked, open, self.streams, self.levels))


class Course:
    """One run of a simulation. It has nature's seat in `play`, since the world answers.

    No process can be stopped where it asks. So the world is some questions and outcomes ahead of what is read.
    """

    def __init__(self, game: Simulation, place: int) -> None:
        (forecaster, world), horizon = game.pair, game.horizon
        self.game, self.place, self.horizon, self._world = game, place, horizon, world
        self.runs, at = range(game.runs[place], game.runs[place] + 1), f"T={horizon}"
        mine = game.forecaster if isinstance(game.forecaster, Player) else game.forecaster[place]
        draws = Stream(game.seed, ("forecast", strategy_key(forecaster), at), self.runs)
        self._play = play.Play(
            seat("forecaster", forecaster, mine, place), self, IMMEDIATE.clock(horizon, game.seed), draws, draws,
            self._part_of, self._tell, game.make_room, run=place,
        )  # fmt: skip
        self._context: dict[str, float] = {}
        #: of kinds of context that are groups or the stream: which values are allowed, and these in words
        self._allowed: dict[str, tuple[Any, str]] = dict.fromkeys(game.groups, ((0, 1), "0 or 1"))
        self._allowed["stream"] = range(game.streams), f"an integer from 0 to {game.streams - 1}"
        #: questions that are read now; questions and outcomes of the world; its events since the last question
        self.asked = self._number = self._told = self._idle = 0
        #: outcomes that are not read yet: the number of questions before, the question, and the time
        self._ahead: deque[tuple[int, play.Question, float]] = deque()
        #: what the forecaster proves of its play before a question that is not read, by the number of those before
        self.certified: dict[int, dict[str, float]] = {}
        self._over = False
        #: the error of a player, also where the world has caught it
        self._fault: Exception | None = None
        self._env = simpy.Environment()
        market = Market(self, self._env, Stream(game.seed, ("nature", strategy_key(world), at), self.runs))
        try:
            processes = world.player(horizon) if isinstance(world, Simulated) else world
        except Exception as error:
            raise self._failed(error) from error
        self._env.process(self._run(processes, market))

    def advance(self, until: int) -> None:
        """Plays until question `until` + 1 would be asked."""
        self.asked = until
        self.certified = {number: said for number, said in self.certified.items() if number >= until}
        self._read()
        while self._number <= until and not self._over:
            self._step()
            self._read()

    def _read(self) -> None:
        """Keeps the outcomes that the world told before question `asked` + 1."""
        while self._ahead and self._ahead[0][0] <= self.asked:
            _, q, known = self._ahead.popleft()
            if not self.game.keep(self.place, q, known):
                error = Unplayable(f"stated the forecast {q.forecast!r}", "a point of its grid")
                raise self._failed(play.Stopped(True, q.number, error))

    # ---------------------------------------------------------------- what the market calls

    def ask(self, now: float, context: Mapping[str, float]) -> Question:
        """Asks the forecaster."""
        if self._fault is not None:
            raise self._fault
        if self._number == self.horizon:
            self._end("")
            raise Over
        number, open = self._number + 1, self._number + 1 - self._told
        self._check(number, now, context)
        most = self._world.open_at_once
        if most is not None and open > most:
            raise self.misuse(f"has {open} questions open; it declares open_at_once = {most}")
        if number > self.asked:
            self.certified[number - 1] = self.game.certificates_now(self.place)
        self._context = {kind: float(value) for kind, value in context.items()}
        try:
            self.game.make_room(number, open)
            asked = self._play.ask(number, now)
        except Exception as error:
            fault = error if isinstance(error, play.Stopped) else play.Stopped(True, number, error)
            raise self._failed(fault) from error
        self._number, self._idle = number, 0
        return Question(asked, self)

    def resolve(self, now: float, question: Question, outcome: int) -> None:
        """Tells the forecaster and the history an outcome."""
        if self._over:
            raise Over
        if not isinstance(question, Question) or question._course is not self or question.resolved:
            again = isinstance(question, Question) and question._course is self
            raise self.misuse(
                f"resolved {in_one_line(question)}, which is {'resolved' if again else 'none of its own'}; expected "
                "each of its questions once"
            )
        if not isinstance(outcome, int | float | np.generic) or outcome not in (0, 1) or math.isnan(now):
            raise self.misuse(f"resolved {question} with {outcome!r} at {now}; expected 0 or 1, and a time")
        question._asked.outcome, self._told = int(outcome), self._told + 1
        try:
            self._play.resolve(question._asked, now)
        except play.Stopped as error:
            raise self._failed(error) from error

    def misuse(self, what: str) -> InvalidData:
        """The error of a world that asks or answers wrongly."""
        self._fault = said = InvalidData(f"world {self.game.names[1]!r}, run {self.runs[0]}, {what}")
        return said

    def _check(self, number: int, now: float, context: Mapping[str, float]) -> None:
        """Refuses context that the world does not declare, or lacks."""
        reveals = self._world.reveals
        if math.isnan(now):
            raise self.misuse(f"asked question {number} at the time nan; expected delays that are numbers")
        if context.keys() != reveals:
            raise self.misuse(
                f"gave the context {sorted(context)} with question {number}; expected the kinds that it `reveals`, "
                f"{sorted(reveals)}"
            )
        for kind, value in context.items():
            values, expected = self._allowed.get(kind, (None, "a finite number"))
            good = is_scalar(value) and math.isfinite(value)
            if not good or (values is not None and value not in values):
                raise self.misuse(f"gave {kind} = {value!r} with question {number}; expected {expected}")

    # ---------------------------------------------------------------- what play calls

    def _part_of(self, number: int, time: float) -> int:
        """The part of the history of the question at hand."""
        stream = int(self._context.get("stream", 0))
        return bisect_right(self.game.cuts, time) * self.game.streams + stream

    def _tell(self, q: play.Question, known: float) -> bool:
        """Notes a resolved question until it is to be read."""
        self._ahead.append((self._number, q, known))
        return True

    def reveal(self, q: play.Question) -> None:
        """Reveals the context that came with a question."""
        q.context = self._context

    def move(self, q: play.Question) -> float:
        """0: nothing is to be drawn."""
        return 0.0

    def learn(self, q: play.Question) -> None:
        """Does nothing: the world has told the outcome."""

    # ---------------------------------------------------------------- simpy

    def _run(self, world: Any, market: Market) -> Generator[Any, Any, Any]:
        """The process of the world; what its `run` does before the first `yield` is of the first event, too."""
        try:
            process = world.run(self._env, market)
            if not isinstance(process, Generator):
                raise self.misuse(
                    f"has a run(env, market) that returned {in_one_line(process)}; expected a generator"
                )
            yield from process
        except Exception as error:
            # Named here, since simpy raises a copy, which not every error allows.
            self._failed(error)
            raise

    def _step(self) -> None:
        """Plays the next event."""
        self._idle += 1
        ended = self._env.peek() == math.inf
        if ended or self._idle > PATIENCE:
            self._end("ended" if ended else f"went on for {PATIENCE:,} events without a question")
            return
        try:
            self._env.step()
        except Over:
            pass
        except (Exception, GeneratorExit) as error:
            if self._fault is None:
                raise self._failed(error.__cause__ or error) from error
        if self._fault is not None:
            raise self._fault

    def _end(self, how: str) -> None:
        """The world asks no more; an error where questions are missing, or all outcomes."""
        if self._number < self.horizon:
            raise self.misuse(
                f"{how} after {self._number} of {self.horizon} questions; expected a world that asks on, or a shorter "
                "horizon"
            )
        self._over = True
        if not self._told:
            raise self.misuse(
                f"resolved none of {self.horizon} questions; expected market.resolve(question, outcome)"
            )

    def _failed(self, error: Any) -> Exception:
        """The first error of a player, with its name, the round and the run."""
        if self._fault is None:
            role, number, cause = "world", max(1, self._number), error
            if isinstance(error, play.Stopped):
                role, number, cause = "forecaster", error.number, error.fault
            name = self.game.names[role == "world"]
            self._fault = failed(cause, f"{role} {name!r}", number, self.runs, 0)
        return self._fault


def observe(forecaster: Any, world: Any, *, horizon: int, seed: int = 0, run: int = 0) -> Transcript:
    """Resolved questions of one run of a world, with their context and times.

    Parameters
    ----------
    forecaster, world
        Specifications, or plain classes or objects.
    horizon, seed, run : int
        As in `Simulation`.

    Returns
    -------
    Transcript
        In the order in which the outcomes became known.

    Raises
    ------
    InvalidParameter, InvalidForecast, InvalidData
        As from `Simulation`.

    Examples
    --------
    >>> from onlinecal.forecasters import Unchanged
    >>> from onlinecal.worlds import Queue
    >>> rounds = observe(Unchanged(), Queue(), horizon=200)
    >>> bool((rounds.known >= rounds.asked).all()), sorted(rounds.context)
    (True, ['base', 'queue'])
    """
    runs, kinds = range(run, run + 1), as_world(world).reveals
    simulation = Simulation(forecaster, world, horizon=horizon, runs=runs, seed=seed, keeps=kinds)
    simulation.advance(horizon)
    transcripts: Any = simulation.transcripts
    rounds: Transcript = transcripts.of(0)
    return rounds
