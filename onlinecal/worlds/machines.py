"""Machines: will this one fail before its next service?"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import simpy

from onlinecal.core.specification import allow, number, whole, word
from onlinecal.worlds.base import Reacting
from onlinecal.worlds.market import Market


@dataclass(frozen=True)
class Machines(Reacting):
    """Machines that age: at each service, will this one fail before the next?

    A machine is looked at every unit of time. Its life is Weibull; one that has failed stands still until its next
    service, where it is replaced. The outcome 1 is known at the failure, the outcome 0 at the next service.

    Information: Reveals ``age``, and ``base``, 1 − exp((age/life)^shape − ((age + 1)/life)^shape): the probability
    without a reaction. Lives and thresholds of a machine are drawn in the order of its own, whatever is forecast.

    Source: This package.

    Parameters
    ----------
    machines : int, default 20
        From 1 to 10^4; their services are spread over the unit of time.
    life : float, default 5
        The scale of a life, in units between services, in [0.1, 1000].
    shape : float, default 2
        The shape of a life, in [0.1, 20]; above 1 machines wear out.
    reacts : {"none", "act", "rush"}
        A threshold of each service, uniform on [0, 1], below the forecast is a warning. "act": the machine is
        overhauled at once and is as new, so high forecasts fail. "rush": it works and ages at twice the speed until the
        next service, so high forecasts come true.
    """

    reveals: ClassVar[frozenset[str]] = frozenset({"age", "base"})
    allowed = allow(
        machines=whole(1, 10**4), life=number(0.1, 1000.0), shape=number(0.1, 20.0),
        reacts=word("none", "act", "rush"),
    )  # fmt: skip

    machines: int = 20
    life: float = 5.0
    shape: float = 2.0
    reacts: str = "none"

    @property
    def open_at_once(self) -> int:
        """One question of each machine."""
        return self.machines

    def formula(self, age: float) -> float:
        """P(fails within a unit) at this age, without a reaction."""
        return -math.expm1((age / self.life) ** self.shape - ((age + 1.0) / self.life) ** self.shape)

    def run(self, env: simpy.Environment, market: Market) -> Generator[Any, Any, Any]:
        """Starts the machines, one after the other within a unit of time."""
        for i in range(self.machines):
            env.process(self._machine(env, market, i))
            yield env.timeout(1.0 / self.machines)

    def _machine(self, env: simpy.Environment, market: Market, i: int) -> Generator[Any, Any, Any]:
        lives, crew = market.generator(f"lives {i}").random, market.generator(f"crew {i}").random
        age, end = 0.0, self._life(lives())
        while True:
            question = market.ask(age=age, base=self.formula(age))
            warned, speed = crew() < question.forecast, 1.0
            if warned and self.reacts == "act":
                age, end = 0.0, self._life(lives())
            elif warned and self.reacts == "rush":
                speed = 2.0
            left = (end - age) / speed
            if left < 1.0:
                yield env.timeout(left)
                market.resolve(question, 1)
                yield env.timeout(1.0 - left)
                age, end = 0.0, self._life(lives())
            else:
                yield env.timeout(1.0)
                market.resolve(question, 0)
                age += speed

    def _life(self, u: float) -> float:
        return self.life * (-math.log1p(-u)) ** (1.0 / self.shape)
