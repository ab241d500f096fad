"""A forecaster that is given forecasts one by one, and their outcomes when they are known."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from onlinecal.core.arrays import cells
from onlinecal.core.errors import InvalidData, InvalidParameter, OnlinecalError
from onlinecal.core.strategy import strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import count, is_number
from onlinecal.engine.law import check_law, draw, failed
from onlinecal.engine.play import BLOCK, Question
from onlinecal.engine.seats import seat
from onlinecal.engine.start import start
from onlinecal.engine.steps import Coming, Player
from onlinecal.forecasters.base import Forecaster
from onlinecal.recalibration.methods import DEFAULT, method

#: the horizon of forecasters that are not tuned to one
_ENDLESS = 10**9
#: of pickles; raised when the state of a recalibrator is kept in another way
VERSION = 2


class Asked:
    """A question that waits for its outcome: `base`, `forecast`, and `mean` of the law from which that was drawn."""

    __slots__ = ("_owner", "_question", "base", "forecast", "mean")

    def __init__(self, owner: "Recalibrator", question: Question) -> None:
        self._owner, self._question = owner, question
        self.base, self.forecast = question.context["base"], question.forecast
        self.mean = sum(weight * value for value, weight in question.law)

    def __repr__(self) -> str:
        return f"<asked {self._question.number}: {self.base:g} → {self.forecast:g}>"


class Recalibrator:
    """Recalibrates forecasts on a stream: each by what was known before it, and by nothing else.

    Notes: It can be pickled together with open questions, and goes on identically.

    Parameters
    ----------
    forecaster : str, mapping or Forecaster, default "aggregated"
        "aggregated": the base forecast itself, "calibeating", and "platt" at the rates 1 and 0.1, as the experts of
        `ExpertAggregation`. Where each outcome is known before the next forecast, its log loss is at most that of the
        base forecast + 2.08. Its Brier total is at most that + 1.04. Both hold for every sequence, but for 1.01e-6 a
        round. "calibeating", "platt", "tracking". Batch methods that are fitted again as more is known:
        "isotonic_refitted", "platt_refitted", "smooth_refitted", "venn_abers_refitted". Or any forecaster of the
        catalogue, with `bins` unless it uses the context ``base`` (`onlinecal.recalibration.methods`).
    bins : int, optional
        The number of equal bins [a, b) of the base forecast; the last is closed. Each has a forecaster of its own.
    horizon : int, optional
        How many forecasts there will be, for one that is tuned to that. Default: it is restarted at doubling lengths.
    seed : int, default 0
        Of the draws of one that randomises.

    Attributes
    ----------
    method : Forecaster
        What plays.
    asked, told : int
        How many forecasts were made, and how many outcomes have been told.

    Examples
    --------
    >>> mine = Recalibrator("calibeating")
    >>> first, second = mine.ask(0.72), mine.ask(0.74)      # two questions are open
    >>> mine.tell(second, 0)
    >>> mine.tell(first, 1)
    >>> round(mine.ask(0.71).forecast, 2)                   # of the bin [0.7, 0.75): (0 + 1 + 0.71)/3
    0.57
    """

    def __init__(
        self,
        forecaster: str | Mapping[str, Any] | Forecaster = DEFAULT,
        *,
        bins: int | None = None,
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        self.method = method(forecaster, bins=bins, horizon=horizon)
        self.bins = bins
        seed = count("seed", seed, 0)
        self._horizon = _ENDLESS if horizon is None else count("horizon", horizon, most=_ENDLESS)
        self.name, self._seed = strategy_name(self.method), seed
        self._player = self._started()
        self._seat = seat("forecaster", self.method, self._player)
        self._uniforms = Stream(seed, ("recalibrate", strategy_key(self.method)), range(1))
        self._open: set[int] = set()
        self.asked = self.told = 0
        #: what the player is ready for: questions, those that are open at once, and how many streams
        self._ready, self._room, self._streams = 0, 0, 0

    def _started(self) -> Any:
        """A player of one run, at its beginning."""
        player = start("forecaster", self.method, self._horizon, range(1), self._seed)
        return player if isinstance(player, Player) else player[0]

    def ask(self, base: float, time: float | None = None) -> Asked:
        """Recalibrates a forecast in [0, 1].

        `time` is for forecasters that use a clock; by default the number of the question.
        """
        question = self._next(base, time)
        self._state(question)
        self.asked += 1
        self._open.add(question.number)
        return Asked(self, question)

    def tell(self, asked: Asked, outcome: float) -> None:
        """The outcome of a question, 0 or 1: once, in any order."""
        if not (isinstance(outcome, bool | np.bool_) or is_number(outcome)) or outcome not in (0, 1):
            raise InvalidData(f"outcome = {outcome!r}; expected 0 or 1")
        if not isinstance(asked, Asked) or asked._owner is not self:
            raise InvalidParameter(f"{asked!r} was not asked of this recalibrator; expected one of its `ask`")
        question = asked._question
        number = question.number
        if number not in self._open:
            raise InvalidParameter(f"question {number} has its outcome; expected each once")
        self._open.remove(number)
        self.told += 1
        question.outcome = int(outcome)
        with self._named(number):
            self._seat.learn(question)

    def mean(self, base: float) -> float:
        """The mean of the law from which the next forecast would be drawn; asking changes nothing."""
        question = self._next(base, None)
        kept = self._seat.save()
        try:
            self._state(question)
        finally:
            self._seat.put_back(kept)
        return Asked(self, question).mean

    def __repr__(self) -> str:
        return f"<Recalibrator {self.name}, {self.asked} asked, {self.told} told>"

    def __getstate__(self) -> dict[str, Any]:
        # Steps are functions of this process: the specification starts the player again.
        player = self._player.kept() if isinstance(self._player, Player) else self._player
        return vars(self) | {"_player": player, "_seat": None, "_ready": 0, "version": VERSION}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if (version := state.pop("version", 1)) != VERSION:
            raise InvalidData(
                f"a pickled Recalibrator of version {version}; expected version {VERSION}: tell its forecasts and "
                "outcomes to a new one, in their order"
            )
        vars(self).update(state)
        player = self._started()
        if isinstance(player, Player):
            player.restore(self._player)
            self._player = player
        self._seat = seat("forecaster", self.method, self._player)

    def _next(self, base: Any, time: float | None) -> Question:
        """The next question; the player is fit for it, and for some more."""
        if not is_number(base) or not 0.0 <= base <= 1.0:
            raise InvalidData(f"base = {base!r}; expected a forecast in [0, 1]")
        number, told, stream = self.asked + 1, {"base": float(base)}, 0
        if number > self._horizon:
            raise InvalidParameter(f"forecast {number} is beyond the horizon {self._horizon}")
        if self.bins is not None:
            told["stream"] = stream = min(cells(told["base"], self.bins), self.bins - 1)
        open = len(self._open) + 1
        if number > self._ready or open > self._room or stream >= self._streams:
            ready, room = self.asked + BLOCK, max(self._room, 2 * open)
            if stream >= self._streams:  # As many copies again begin together: all are laid out again.
                self._streams = min(max(stream + 1, 2 * self._streams), self.bins or 1)
            self._ready = 0
            if isinstance(self._player, Player):
                with self._named(number):
                    self._player.make_room(Coming(ready, room, self._streams))
            self._ready, self._room = ready, room
        return Question(number, float(number if time is None else time), context=told)

    def _state(self, question: Question) -> None:
        """Has the player state the law of a question, and draws from it."""
        with self._named(question.number):
            question.law = check_law(self._seat.state_law(question))
        question.place, question.forecast = draw(question.law, self._uniforms.uniform(question.number - 1))

    @contextmanager
    def _named(self, number: int) -> Iterator[None]:
        """Gives errors of the player its name and the round."""
        try:
            yield
        except OnlinecalError:
            raise
        except Exception as error:
            raise failed(error, f"forecaster {self.name!r}", number, range(1)) from error
