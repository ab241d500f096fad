"""A queue: will this customer wait longer than w?"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import scipy  # its parts are loaded when they are first used
import simpy

from onlinecal.core.specification import allow, number, whole, word
from onlinecal.worlds.base import Reacting, exponential
from onlinecal.worlds.market import Market, Question


@dataclass(frozen=True)
class Queue(Reacting):
    """A queue with c servers: at each arrival, will this customer wait longer than w?

    Customers arrive by a Poisson process and are served in order, each for an exponential time of mean 1. The outcome 0
    is known when the service begins, the outcome 1 when the customer has waited w.

    Information: Reveals ``queue``, the customers that wait or are served, and ``base``. That is the probability that c
    busy servers take longer than w for those ahead. All of a customer is drawn at its arrival.

    Source: Without a reaction M/M/c: Erlang 1917.

    Parameters
    ----------
    servers : int, default 3
        c, from 1 to 1000.
    load : float, default 0.9
        Arrivals per unit of time and server, in [0.01, 2].
    patience : float, default 0.5
        w, in mean services, in [0, 1000].
    reacts : {"none", "leave", "rush"}
        Each customer has a threshold, uniform on [0, 1], and a forecast above it is a warning. "leave": a customer that
        is warned leaves at once, and has not waited, so high forecasts fail. "rush": customers that are warned go
        before the others, so high forecasts come true, also of earlier questions.
    """

    reveals: ClassVar[frozenset[str]] = frozenset({"base", "queue"})
    allowed = allow(
        servers=whole(1, 1000), load=number(0.01, 2.0), patience=number(0.0, 1000.0),
        reacts=word("none", "leave", "rush"),
    )  # fmt: skip

    servers: int = 3
    load: float = 0.9
    patience: float = 0.5
    reacts: str = "none"

    def formula(self, queue: int) -> float:
        """P(wait > w) of a customer that finds this number in the system, without a reaction."""
        if queue < self.servers:
            return 0.0
        return float(scipy.special.pdtr(queue - self.servers, self.servers * self.patience))

    def run(self, env: simpy.Environment, market: Market) -> Generator[Any, Any, Any]:
        """Lets customers arrive."""
        counter, uniform = simpy.PriorityResource(env, self.servers), market.rng.random
        bases: list[float] = []

        def customer(question: Question, service: float, warned: bool) -> Generator[Any, Any, Any]:
            with counter.request(priority=not warned) as place:
                if not place.triggered:
                    market.deadline(question, self.patience, 1)
                yield place
                if not question.resolved:
                    market.resolve(question, 0)
                yield env.timeout(service)

        while True:
            gap, service, threshold = uniform(), uniform(), uniform()
            yield env.timeout(exponential(gap, self.servers * self.load))
            queue = counter.count + len(counter.queue)
            while queue >= len(bases):
                bases.append(self.formula(len(bases)))
            question = market.ask(base=bases[queue], queue=queue)
            warned = self.reacts != "none" and threshold < question.forecast
            if warned and self.reacts == "leave":
                market.resolve(question, 0)
            else:
                env.process(customer(question, exponential(service, 1.0), warned))
