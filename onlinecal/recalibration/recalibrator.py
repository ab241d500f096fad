"""A forecaster that is given forecasts one by one, and their outcomes when they are known."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from onlinecal.core.arrays import cells
from onlinecal.core.errors import InvalidData, InvalidParameter, OnlinecalError
from onlinecal.core.strategy import strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import count, is_number
from onlinecal.forecasters.base import Forecaster
from onlinecal.recalibration.methods import DEFAULT, method
from onlinecal.rounds.hand import BLOCK, Hand
from onlinecal.rounds.hand import Asked as ByHand
from onlinecal.rounds.law import failed
from onlinecal.rounds.protocol import start

#: the horizon of forecasters that are not tuned to one
_ENDLESS = 10**9


class Asked:
    """A question that waits for its outcome: `base`, `forecast`, and `mean` of the law from which that was drawn."""

    __slots__ = ("_asked", "_drawn", "_owner", "base", "forecast", "mean")

    def __init__(self, owner: "Recalibrator", asked: ByHand, base: float, drawn: int) -> None:
        self._owner, self._asked, self._drawn, self.base = owner, asked, drawn, base
        self.forecast, self.mean = float(asked.values[0, drawn]), _mean(asked)

    def __repr__(self) -> str:
        return f"<asked {self._asked.number}: {self.base:g} → {self.forecast:g}>"


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
        length = _ENDLESS if horizon is None else count("horizon", horizon, most=_ENDLESS)
        self.name = strategy_name(self.method)
        self._limit = horizon
        self._hand = Hand(start("forecaster", self.method, length, range(1), seed))
        self._stream = Stream(seed, ("recalibrate", strategy_key(self.method)), range(1))
        self._uniforms: list[float] = []
        self._open: set[int] = set()
        self.asked = self.told = 0

    def ask(self, base: float, time: float | None = None) -> Asked:
        """Recalibrates a forecast in [0, 1].

        `time` is for forecasters that use a clock; by default the number of the question.
        """
        value = _checked(base)
        if self._limit is not None and self.asked >= self._limit:
            raise InvalidParameter(f"forecast {self.asked + 1} is beyond the horizon {self._limit}")
        asked = self._ask(value, time)
        if self.asked % BLOCK == 0:
            self._uniforms = self._stream.block_from(self.asked, BLOCK)[:, 0].tolist()
        drawn = asked.drawn(self._uniforms[self.asked % BLOCK])
        self.asked += 1
        self._open.add(asked.number)
        return Asked(self, asked, value, drawn)

    def tell(self, asked: Asked, outcome: float) -> None:
        """The outcome of a question, 0 or 1: once, in any order."""
        if not (isinstance(outcome, bool | np.bool_) or is_number(outcome)) or outcome not in (0, 1):
            raise InvalidData(f"outcome = {outcome!r}; expected 0 or 1")
        if not isinstance(asked, Asked) or asked._owner is not self:
            raise InvalidParameter(f"{asked!r} was not asked of this recalibrator; expected one of its `ask`")
        number = asked._asked.number
        if number not in self._open:
            raise InvalidParameter(f"question {number} has its outcome; expected each once")
        self._open.remove(number)
        self.told += 1
        try:
            self._hand.tell(asked._asked, np.array([asked._drawn]), np.array([int(outcome)]))
        except Exception as error:
            raise self._failed(error, number) from error

    def mean(self, base: float) -> float:
        """The mean of the law from which the next forecast would be drawn; asking changes nothing."""
        return _mean(self._ask(_checked(base), None))

    def __repr__(self) -> str:
        return f"<Recalibrator {self.name}, {self.asked} asked, {self.told} told>"

    def _ask(self, base: float, time: float | None) -> ByHand:
        number, told = self.asked + 1, {"base": base}
        if self.bins is not None:
            told["stream"] = min(cells(base, self.bins), self.bins - 1)
        try:
            return self._hand.ask(number, told, float(number) if time is None else time)
        except Exception as error:
            raise self._failed(error, number) from error

    def _failed(self, error: Exception, number: int) -> OnlinecalError:
        if isinstance(error, OnlinecalError):
            return error
        return failed(error, f"forecaster {self.name!r}", number, range(1))


def _checked(base: Any) -> float:
    if not is_number(base) or not 0.0 <= base <= 1.0:
        raise InvalidData(f"base = {base!r}; expected a forecast in [0, 1]")
    return float(base)


def _mean(asked: ByHand) -> float:
    size = int(asked.sizes[0])
    return sum(
        w * v for v, w in zip(asked.values[0, :size].tolist(), asked.weights[0, :size].tolist(), strict=True)
    )
