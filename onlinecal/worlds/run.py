"""Plays a forecaster in runs of a world. Each is a `play` of its own, at the times of its simpy processes."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import numpy as np
import simpy

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidData, InvalidForecast, InvalidParameter, in_one_line
from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.transcript import Transcript
from onlinecal.core.validation import count, integer, is_number
from onlinecal.engine import play
from onlinecal.engine.game import IMMEDIATE
from onlinecal.engine.history import history_of
from onlinecal.engine.horizon import check_horizon, check_runs, check_time
from onlinecal.engine.law import Unplayable, failed
from onlinecal.engine.memory import check_history, check_players, parts_of
from onlinecal.engine.result import Result
from onlinecal.engine.seats import seat
from onlinecal.engine.start import check_pair, start
from onlinecal.engine.steps import Coming, Player
from onlinecal.engine.transcripts import Transcripts, check_kept
from onlinecal.engine.uniforms import Uniforms
from onlinecal.forecasters.base import as_forecaster
from onlinecal.worlds.base import Simulated, as_world
from onlinecal.worlds.market import Market, Question

#: of worlds: what they ask, hear and are told; raised when a simulation comes out otherwise
VERSION = 2
#: events of simpy without a question after which a run is taken to go on for ever
PATIENCE = 10**6


class Over(BaseException):
    """Ends the processes of a run after its last question; a world should not catch it."""


class Outside:
    """Nature's seat: context comes with the question, and the outcome from the processes of the world."""

    def __init__(self) -> None:
        self.context: dict[str, float] = {}

    def reveal(self, q: play.Question) -> None:
        """Reveals the context of a question."""
        q.context = self.context

    def move(self, q: play.Question) -> float:
        """0: nothing is to be drawn."""
        return 0.0

    def learn(self, q: play.Question) -> None:
        """Does nothing: the world has told the outcome."""


class Course(Result):
    """A run of a world, read as a `Game` of one run.

    No process can be stopped where it asks. So the world is some questions and outcomes ahead of what is read.
    """

    compiled = False
    #: the error of a player, also where the world has caught it
    _fault: Exception | None = None

    def __init__(
        self, forecaster: Any, world: Any, horizon: int, run: int, seed: int, cuts: list[float], keeps: Any
    ) -> None:
        self.pair, self.names = (forecaster, world), (strategy_name(forecaster), strategy_name(world))
        self.horizon, self.runs, at, self._stopped = horizon, range(run, run + 1), f"T={horizon}", ""
        self.cuts, self.streams = cuts, max(1, len(world.streams))
        self.forecaster = player = start("forecaster", forecaster, horizon, self.runs, seed)
        grid = getattr(player, "grid", None)
        self.history = history_of(1, grid, horizon, len(cuts) > 0 or self.streams > 1)
        self.transcripts = None if keeps is None else Transcripts(1, keeps)
        self._levels = math.inf if grid is None else len(grid)
        mine, self._outside = player if isinstance(player, Player) else player[0], Outside()
        draws = Uniforms(Stream(seed, ("forecast", strategy_key(forecaster), at), self.runs))
        self._play = play.Play(
            seat("forecaster", forecaster, mine), self._outside, IMMEDIATE.clock(horizon, seed), draws, draws,
            self._part_of, self._keep, self._make_room, run=0,
        )  # fmt: skip
        #: questions that are read now; questions and outcomes of the world; its events since the last question
        self.asked = self._number = self._told = self._idle = 0
        #: outcomes that are told but not read: the number of questions before, the question, and the time
        self._ahead: deque[tuple[int, play.Question, float]] = deque()
        #: what the forecaster proves of its play before a question that is not read, by the number of those before
        self._certified: dict[int, dict[str, Floats]] = {}
        #: the most questions that were open at once, and a digest of all but the forecasts
        self.most = self.course = 0
        self._over = False
        self._env = simpy.Environment()
        market = Market(self, self._env, Stream(seed, ("nature", strategy_key(world), at), self.runs))
        try:
            processes = world.player(horizon) if isinstance(world, Simulated) else world
        except Exception as error:
            raise self._failed("world", 1, error) from error
        self._env.process(self._run(processes, market))

    def advance(self, until: int) -> None:
        """Plays until question `until` + 1 would be asked; `InvalidForecast` or `InvalidData` where a player fails."""
        self._check_alive()
        self.asked = until
        try:
            self._read()
            while self._number <= until and not self._over:
                self._step()
        except BaseException as error:
            self._stopped = in_one_line(error, str) or f"run {self.runs[0]} was interrupted"
            raise

    def certificates(self) -> dict[str, Floats]:
        """The totals that the forecaster proves of its own play so far: name → (1,)."""
        return self._certified.get(self.asked) or super().certificates()

    # ---------------------------------------------------------------- what the market calls

    def ask(self, now: float, context: Mapping[str, float]) -> Question:
        """Asks the forecaster."""
        if self._fault is not None:
            raise self._fault
        if self._over or self._number == self.horizon:
            self._end("")
            raise Over
        number, open = self._number + 1, self._number + 1 - self._told
        self._check(number, now, context)
        if open > self.most:
            self.most = open
            if (bound := self.pair[1].open_at_once) is not None and open > bound:
                raise self.misuse(f"has {open} questions open; it declares open_at_once = {bound}")
        if number > self.asked:
            self._certified[number - 1] = super().certificates()
        self._outside.context = {kind: float(value) for kind, value in context.items()}
        try:
            self._make_room(number, open)
            asked = self._play.ask(number, now)
        except Exception as error:
            raise self._failed("forecaster", number, error) from error
        self._number, self._idle = number, 0
        self.course = hash((self.course, now, *context.values()))
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
        asked = question._asked
        asked.outcome, self._told = int(outcome), self._told + 1
        self.course = hash((self.course, now, asked.number, asked.outcome))
        try:
            self._play.resolve(asked, now)
        except play.Stopped as error:
            raise self._failed("forecaster", asked.number, error) from error

    def misuse(self, what: str) -> InvalidData:
        """The error of a world that asks or answers wrongly."""
        self._fault = said = InvalidData(f"world {self.names[1]!r}, run {self.runs[0]}, {what}")
        return said

    def _check(self, number: int, now: float, context: Mapping[str, float]) -> None:
        """Refuses context that the world does not declare, or lacks."""
        reveals = self.pair[1].reveals
        if math.isnan(now):
            raise self.misuse(f"asked question {number} at the time nan; expected delays that are numbers")
        if context.keys() != reveals:
            raise self.misuse(
                f"gave the context {sorted(context)} with question {number}; expected the kinds that it `reveals`, "
                f"{sorted(reveals)}"
            )
        for kind, value in context.items():
            if not is_number(value) or not math.isfinite(value):
                raise self.misuse(f"gave {kind} = {value!r} with question {number}; expected a finite number")
        if "stream" in context and context["stream"] not in range(self.streams):
            raise self.misuse(
                f"gave stream = {context['stream']} with question {number}; expected an integer from 0 to "
                f"{self.streams - 1}"
            )

    # ---------------------------------------------------------------- what play calls

    def _part_of(self, number: int, time: float) -> int:
        """The part of the history of the question at hand."""
        return bisect_right(self.cuts, time) * self.streams + int(self._outside.context.get("stream", 0))

    def _make_room(self, asked: int, open: int) -> None:
        """Makes the forecaster fit for the questions up to this number."""
        if isinstance(self.forecaster, Player):
            self.forecaster.make_room(Coming(asked, open, range(self.streams), self._levels))

    def _keep(self, q: play.Question, known: float) -> bool:
        """Keeps a resolved question, from when it is to be read; False if its forecast is not on the grid."""
        if self._number <= self.asked:
            return self.keep(0, q, known)
        self._ahead.append((self._number, q, known))
        return True

    def _read(self) -> None:
        """Reads the outcomes that the world told before question `asked` + 1."""
        self._certified = {number: said for number, said in self._certified.items() if number >= self.asked}
        while self._ahead and self._ahead[0][0] <= self.asked:
            _, q, known = self._ahead.popleft()
            if not self.keep(0, q, known):
                error = Unplayable(f"stated the forecast {q.forecast!r}", "a point of its grid")
                raise self._failed("forecaster", q.number, error)

    # ---------------------------------------------------------------- simpy

    def _run(self, world: Any, market: Market) -> Generator[Any, Any, Any]:
        """The process of the world; what its `run` does before the first `yield` is of the first event, too."""
        process = world.run(self._env, market)
        if not isinstance(process, Generator):
            raise self.misuse(
                f"has a run(env, market) that returned {in_one_line(process)}; expected a generator"
            )
        yield from process

    def _step(self) -> None:
        """Plays the next event."""
        self._idle += 1
        ended = self._env.peek() == math.inf
        if ended or self._idle > PATIENCE:
            self._end("ended" if ended else f"went on for {PATIENCE:,} events without a question")
            return
        event = self._env._queue[0][-1]
        try:
            self._env.step()
        except Over:
            pass
        except (Exception, GeneratorExit) as error:
            if self._fault is None:
                # simpy makes an error of its own out of that of a process, which it may fail to do.
                own: Any = error if getattr(event, "ok", True) else event.value
                raise self._failed("world", max(1, self._number), own) from own
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

    def _failed(self, role: str, number: int, error: Any) -> InvalidForecast:
        """The error of a player, with its name, the round and the run."""
        cause = error.fault if isinstance(error, play.Stopped) else error
        self._fault = said = failed(cause, f"{role} {self.names[role == 'world']!r}", number, self.runs, 0)
        return said


class Simulation:
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
    parts : list of Course
        The runs.
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
        seed = integer("", "seed", seed)
        check_runs(runs)
        check_pair(forecaster, world, horizon)
        times, kept = (
            sorted({check_time(cut) for cut in cuts}),
            None if keeps is None else check_kept(keeps, world),
        )
        self.horizon, self.runs, self.asked = horizon, runs, 0
        free = check_players(forecaster, world, horizon)
        made = (Course(forecaster, world, horizon, run, seed, times, kept) for run in runs)
        first, streams = next(made), max(1, len(world.streams))
        points = None if first.history.grid is None else len(first.history.grid)
        check_history(len(runs), horizon, points, parts_of(len(times), streams, horizon), free)
        self.parts = [first, *made]

    def __reduce__(self) -> Any:
        raise TypeError(
            "a simulation of a world cannot be pickled or copied, since its processes are generators; expected it to "
            "be played again from its seed"
        )

    def advance(self, until: int, progress: Callable[[int], None] | None = None) -> None:
        """Plays each run until its question `until` + 1 would be asked; errors are those of the runs.

        `progress` is told the number of questions asked in each run since it was last told, on average.
        """
        if count("until", until, least=0) > self.horizon:
            raise InvalidParameter(f"question {until} is beyond the horizon {self.horizon}")
        if until <= self.asked:
            return
        new, told = until - self.asked, 0
        for i, part in enumerate(self.parts, 1):
            part.advance(until)
            if progress is not None:
                progress(new * i // len(self.parts) - told)
                told = new * i // len(self.parts)
        self.asked = until

    @property
    def resolved(self) -> int:
        """The outcomes that are known in the run with the fewest."""
        return min(part.resolved for part in self.parts)

    def known(self, stream: int | None = None) -> list[JointDistribution]:
        """Γ of each run in which an outcome is known."""
        return [gamma for part in self.parts for gamma in part.each(stream)]

    def gammas(self, stream: int | None = None) -> list[JointDistribution]:
        """Γ of each run; needs a known outcome in each."""
        gammas = self.known(stream)
        if len(gammas) < len(self.parts):
            raise InvalidParameter("a run has no known outcome; Γ needs one")
        return gammas


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
    transcripts: Any = simulation.parts[0].transcripts
    rounds: Transcript = transcripts.of(0)
    return rounds
