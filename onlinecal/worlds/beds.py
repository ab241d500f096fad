"""Hospital beds: will this patient be discharged within a day?"""

import math
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import simpy

from onlinecal.core.specification import allow, number, whole, word
from onlinecal.worlds.base import Reacting, exponential
from onlinecal.worlds.market import Market

#: mean days in bed of the mildest case and of the worst
MILD, SEVERE = 1.0, 5.0


@dataclass(frozen=True)
class Beds(Reacting):
    """A ward: when a patient gets a bed, will it be discharged within a day?

    Patients arrive by a Poisson process and wait for a bed in their order. A case of severity s, uniform on [0, 1],
    stays an exponential time of mean 1 + 4s days. The outcome 1 is known at the discharge, the outcome 0 after a day.

    Information: Reveals ``severity``, ``occupied``, the share of beds taken by others, and ``base``. That is 1 −
    exp(−within/(1 + 4s)), the probability without a reaction. All of a patient is drawn at its arrival.

    Source: This package; without a reaction M/G/c with hyperexponential stays.

    Parameters
    ----------
    beds : int, default 12
        From 1 to 1000.
    load : float, default 0.9
        Arrivals times the mean stay, per bed, in [0.01, 2].
    within : float, default 1
        The day, in [0.01, 100].
    reacts : {"none", "act", "rush"}
        "act": a uniform threshold of each patient above the forecast halves the stay, so low forecasts fail. "rush":
        where a patient finds no bed, the one with the highest forecast is discharged. So high forecasts come true, and
        later forecasts decide on earlier questions.
    """

    reveals: ClassVar[frozenset[str]] = frozenset({"base", "occupied", "severity"})
    allowed = allow(
        beds=whole(1, 1000), load=number(0.01, 2.0), within=number(0.01, 100.0), reacts=word("none", "act", "rush"),
    )  # fmt: skip

    beds: int = 12
    load: float = 0.9
    within: float = 1.0
    reacts: str = "none"

    @property
    def open_at_once(self) -> int:
        """One question of each bed."""
        return self.beds

    def formula(self, severity: float) -> float:
        """P(discharged within a day) of a case, without a reaction."""
        return -math.expm1(-self.within / (MILD + (SEVERE - MILD) * severity))

    def run(self, env: simpy.Environment, market: Market) -> Generator[Any, Any, Any]:
        """Lets patients arrive."""
        ward, uniform = simpy.Resource(env, self.beds), market.rng.random
        rate = self.load * self.beds * 2.0 / (MILD + SEVERE)
        present: dict[simpy.Process, float] = {}

        def patient(severity: float, stay: float, threshold: float) -> Generator[Any, Any, Any]:
            with ward.request() as bed:
                yield bed
                occupied = (ward.count - 1) / self.beds
                question = market.ask(base=self.formula(severity), occupied=occupied, severity=severity)
                days = exponential(stay, 1.0 / (MILD + (SEVERE - MILD) * severity))
                if self.reacts == "act" and threshold >= question.forecast:
                    days /= 2.0
                market.deadline(question, self.within, 0)
                me = env.active_process
                assert me is not None
                present[me] = question.forecast
                with suppress(simpy.Interrupt):
                    yield env.timeout(days)
                present.pop(me, None)
                if not question.resolved:
                    market.resolve(question, 1)

        while True:
            gap, severity, stay, threshold = uniform(), uniform(), uniform(), uniform()
            yield env.timeout(exponential(gap, rate))
            if self.reacts == "rush" and ward.count == self.beds and present:
                first = max(present, key=present.__getitem__)
                del present[first]
                first.interrupt()
            env.process(patient(severity, stay, threshold))
