"""One run of a world against a forecaster."""

import math
from array import array
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import simpy

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidData, InvalidForecast, in_one_line
from onlinecal.core.levels import LevelSets
from onlinecal.core.strategy import strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import is_number
from onlinecal.engine.keeping import Keeping
from onlinecal.engine.ledger import Ledger
from onlinecal.engine.transcripts import Transcripts
from onlinecal.rounds.hand import Asked, Hand
from onlinecal.rounds.law import Unplayable, failed
from onlinecal.rounds.protocol import start
from onlinecal.worlds.base import Simulated
from onlinecal.worlds.market import Market, Question

#: events of simpy without a question after which a run is taken to go on for ever
PATIENCE = 10**6
#: uniforms of the forecasts that are made at a time
BLOCK = 256
#: places of drawn atoms, and outcomes, as `Hand` takes them
_PLACES = [np.array([place]) for place in range(16)]


class Over(BaseException):
    """Ends the processes of a run after its last question; a world should not catch it."""


class Course:
    """A run of a world, read as a `Game` of one run. Its pickle is what it heard: processes are played again."""

    compiled = False

    def __init__(
        self,
        forecaster: Any,
        world: Any,
        *,
        horizon: int,
        run: int,
        seed: int,
        cuts: tuple[float, ...],
        keeps: Iterable[str] | None,
        keeping: Keeping,
    ) -> None:
        self.world, self.horizon, self.runs = world, horizon, range(run, run + 1)
        self.names, at = (strategy_name(forecaster), strategy_name(world)), f"T={horizon}"
        self.hand = Hand(start("forecaster", forecaster, horizon, self.runs, seed))
        self._own = Stream(seed, ("nature", strategy_key(world), at), self.runs)
        self._uniforms = Stream(seed, ("forecast", strategy_key(forecaster), at), self.runs)
        self._block: list[float] = []
        self._reveals = world.reveals
        self.ledger = Ledger(1, horizon, self.hand.player.grid, cuts, max(1, len(world.streams)), keeping)
        self.transcripts = None if keeps is None else Transcripts(1, keeps)
        #: questions and outcomes that are read now; the world may be some ahead, by the rest of an event
        self.asked = self.resolved = 0
        #: forecasts that the world heard, and how many outcomes were known when each question was asked
        self._heard, self._before = array("d"), array("q")
        #: laws and draws of the open questions
        self._laws: dict[int, tuple[Asked, Any]] = {}
        #: of known outcomes that are not in the ledger: place or value of the forecast, outcome, part, and the round
        self._rows: list[tuple[float, int, tuple[int, int], tuple[float, ...] | None]] = []
        self._contexts: dict[int, tuple[float, ...]] = {}
        self._certified: dict[int, dict[str, Any]] = {}
        self._told = self._events = self._mark = 0
        #: the most questions that were open at once
        self.most = 0
        #: a digest of all questions, contexts, outcomes and their times, without the forecasts
        self.course = 0
        self._over, self._stopped = False, ""
        self._fault: Exception | None = None
        self._env: simpy.Environment | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_market", "_open")} | {"_env": None}

    def advance(self, until: int) -> None:
        """Plays until question `until` + 1 would be asked; `InvalidForecast` or `InvalidData` where a player fails."""
        if self._stopped:
            raise InvalidForecast(self._stopped)
        self._mark, self._fault = until, None
        try:
            if not self._over:
                self._play(self._env or self._begin(), until)
        except BaseException as error:
            self._stopped = in_one_line(error, str) or f"run {self.runs[0]} was interrupted"
            raise
        self._write(until)

    def _begin(self) -> simpy.Environment:
        """Starts the world, and plays again what was played before it was pickled."""
        env = self._env = simpy.Environment()
        self._market = Market(self, env, self._own)
        self._open: dict[int, Question] = {}
        self._again, events, told, course = len(self._heard), self._events, self._told, self.course
        self._number = self._told = self._events = self.course = 0
        try:
            world = self.world.player(self.horizon) if isinstance(self.world, Simulated) else self.world
            env.process(self._run(world, env))
        except Exception as error:
            raise self._failed(error) from error
        for _ in range(events):
            self._step(env)
        if self.course != course:
            raise InvalidData(
                f"world {self.names[1]!r}, run {self.runs[0]}, took another course when it was played again; expected "
                f"the same, from market.rng and the forecasts alone: {self._again} questions and {told} outcomes"
            )
        self._again = 0
        return env

    def _run(self, world: Any, env: simpy.Environment) -> Generator[Any, Any, Any]:
        """The process of the world; what its `run` does before the first `yield` is of the first event, too."""
        process = world.run(env, self._market)
        if not isinstance(process, Generator):
            raise self.misuse(
                f"has a run(env, market) that returned {in_one_line(process)}; expected a generator"
            )
        yield from process

    def _play(self, env: simpy.Environment, until: int) -> None:
        number, idle = self._number, 0
        while self._number <= until and not self._over:
            if not self._step(env):
                self._end("ended")
            idle = 0 if self._number > number else idle + 1
            number = self._number
            if idle >= PATIENCE:
                self._end(f"went on for {PATIENCE:,} events without a question")

    def _end(self, how: str) -> None:
        """The world asks no more; an error where questions are missing."""
        if self._number < self.horizon:
            raise self.misuse(
                f"{how} after {self._number} of {self.horizon} questions; expected a world that asks on, or a shorter "
                "horizon"
            )
        self._finish()

    def _finish(self) -> None:
        self._over = True
        self._certify(self.horizon)
        if not self._told:
            raise self.misuse(
                f"resolved none of {self.horizon} questions; expected market.resolve(question, outcome)"
            )

    def _step(self, env: simpy.Environment) -> bool:
        """Plays one event of simpy; False without one."""
        event = env._queue[0][-1] if env._queue else None
        try:
            env.step()
        except simpy.core.EmptySchedule:
            return False
        except Over:
            pass
        except (Exception, GeneratorExit) as error:
            # simpy makes an error of its own out of that of a process, which it may fail to do.
            own = None if event is None or event.ok or event.callbacks else event.value
            found = next((e for e in (self._fault, own, error) if isinstance(e, Exception)), None)
            raise self._failed(found or RuntimeError(repr(error))) from error
        if self._fault is not None:  # the world has caught it
            raise self._failed(self._fault)
        self._events += 1
        return True

    def _failed(self, error: Exception) -> Exception:
        if isinstance(error, InvalidData):
            return error
        who = f"forecaster {self.names[0]!r}" if error is self._fault else f"world {self.names[1]!r}"
        number = self._at if error is self._fault else max(1, self._number)
        return failed(error, who, number, self.runs, 0)

    def ask(self, now: float, context: Mapping[str, float]) -> Question:
        if self._fault is not None:  # the world has caught it
            raise self._fault
        number = self._number + 1
        if self._over or number > self.horizon:
            if not self._over:
                self._finish()
            raise Over
        if number <= self._again:
            forecast = self._heard[number - 1]
        else:
            self._check(number, now, context)
            if number > self._mark:
                self._certify(number - 1)
            forecast = self._forecast(number, now, context)
            self._heard.append(forecast)
            self._before.append(self._told)
            if self.transcripts is not None:
                self._contexts[number] = tuple(float(context[kind]) for kind in self.transcripts.kinds)
        self._number, self.course = number, hash((self.course, now, *context.values()))
        question = self._open[number] = Question(number, now, forecast, int(context.get("stream", 0)))
        if len(self._open) > self.most:
            self.most = len(self._open)
            if (bound := self.world.open_at_once) is not None and self.most > bound:
                raise self.misuse(f"has {self.most} questions open; it declares open_at_once = {bound}")
        return question

    def _check(self, number: int, now: float, context: Mapping[str, float]) -> None:
        """Refuses context that the world does not declare, or lacks."""
        if math.isnan(now):
            raise self.misuse(f"asked question {number} at the time nan; expected delays that are numbers")
        if context.keys() != self._reveals:
            raise self.misuse(
                f"gave the context {sorted(context)} with question {number}; expected the kinds that it `reveals`, "
                f"{sorted(self._reveals)}"
            )
        for kind, value in context.items():
            if not (type(value) in (float, int) or is_number(value)) or not math.isfinite(value):
                raise self.misuse(f"gave {kind} = {value!r} with question {number}; expected a finite number")
        if "stream" in context and context["stream"] not in range(self.ledger.streams):
            raise self.misuse(
                f"gave stream = {context['stream']} with question {number}; expected an integer from 0 to "
                f"{self.ledger.streams - 1}"
            )

    def misuse(self, what: str) -> InvalidData:
        self._fault = InvalidData(f"world {self.names[1]!r}, run {self.runs[0]}, {what}")
        return self._fault

    def _forecast(self, number: int, now: float, context: Mapping[str, float]) -> float:
        """Asks the forecaster and draws from its law, by the uniform of the question's number."""
        self._at = number
        try:
            asked = self.hand.ask(number, context, now)
        except Unplayable as error:
            self._fault = Unplayable(error.what, error.expected)
            raise
        except Exception as error:
            self._fault = error
            raise
        drawn = asked.drawn(self._uniform(number - 1)) if asked.sizes[0] > 1 else 0
        self._laws[number] = asked, _PLACES[drawn] if drawn < len(_PLACES) else np.array([drawn])
        return float(asked.values[0, drawn])

    def _uniform(self, index: int) -> float:
        if index % BLOCK == 0 or not self._block:
            self._block = self._uniforms.block_from(index - index % BLOCK, BLOCK)[:, 0].tolist()
        return self._block[index % BLOCK]

    def resolve(self, now: float, question: Question, outcome: int) -> None:
        if self._over:
            raise Over
        number = getattr(question, "number", 0)
        if self._open.get(number) is not question:
            again = isinstance(question, Question) and question.resolved
            raise self.misuse(
                f"resolved {in_one_line(question)}, which is {'resolved' if again else 'none of its own'}; expected "
                "each of its questions once"
            )
        if not isinstance(outcome, int | float | np.generic) or outcome not in (0, 1) or math.isnan(now):
            raise self.misuse(f"resolved {question} with {outcome!r} at {now}; expected 0 or 1, and a time")
        del self._open[number]
        question._resolved = True
        self.course = hash((self.course, now, number, int(outcome)))
        self._told += 1
        if self._again:
            return
        self._at, (asked, drawn) = number, self._laws.pop(number)
        y = int(outcome)
        try:
            self.hand.tell(asked, drawn, _PLACES[y])
        except Exception as error:
            self._fault = error
            raise
        forecast = self._heard[number - 1]
        said = forecast if self.ledger.grid is None else asked.atoms[0, drawn[0]]
        part = bisect_right(self.ledger.cuts, question.time), question.stream
        row = None
        if self.transcripts is not None:
            row = (forecast, y, number, question.time, now, question.stream, *self._contexts.pop(number))
        self._rows.append((said, y, part, row))

    def _certify(self, number: int) -> None:
        """Notes what the forecaster proves of its play before question `number` + 1."""
        self._certified[number] = self.hand.player.certificates()

    def certificates(self) -> dict[str, Floats]:
        """The totals that the forecaster proves of its own play so far: name → (1,)."""
        return self._certified.get(self.asked) or self.hand.player.certificates()

    def _write(self, until: int) -> None:
        """Writes the outcomes that were known before question `until` + 1 to the ledger."""
        known = self._before[until] if until < len(self._before) else self._told
        fresh, self._rows = self._rows[: known - self.resolved], self._rows[known - self.resolved :]
        self._certified = {k: v for k, v in self._certified.items() if k >= until}
        self.asked, self.resolved = until, known
        for part in dict.fromkeys(row[2] for row in fresh):
            mine = [row[:2] for row in fresh if row[2] == part]
            said, outcomes = zip(*mine, strict=True)
            self.ledger.history(part).add(said, np.array(outcomes, np.int64))
        if self.transcripts is not None and fresh:
            columns = np.array([row[3] for row in fresh], np.float64)
            numbers, streams = (columns[:, i].astype(np.int64) for i in (2, 5))
            told = numbers, columns[:, 3], columns[:, 4], streams
            self.transcripts.extend(told, columns[None][:, :, [0, 1, *range(6, columns.shape[1])]])

    def each(self, stream: int | None = None) -> Iterator[LevelSets]:
        """The level sets of the run over the resolved questions of a stream or (None) of all; empty without one."""
        return self.ledger.each(stream)

    def moved(self, stream: int | None = None) -> Floats | None:
        """The mean distance that forecasts were moved, (1,); None where Γ is exact, and where it is empty."""
        return self.ledger.moved(stream)
