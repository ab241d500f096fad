"""Spare parts: will the stock run out before this delivery?"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import scipy  # its parts are loaded when they are first used
import simpy

from onlinecal.core.specification import allow, number, whole, word
from onlinecal.worlds.base import Reacting, exponential
from onlinecal.worlds.market import Market, Question


@dataclass(frozen=True)
class Parts(Reacting):
    """A store of spare parts: at each order, will the stock run out before its delivery?

    Parts are asked for by a Poisson process of rate 1. When those on hand and on order are down to the reorder point, a
    lot is ordered. Half of the mean time of its delivery is fixed, the other half exponential. A demand that finds no
    part is lost, and all open orders then have the outcome 1. A delivery before that makes it 0.

    Information: Reveals ``stock``, the parts on hand, ``ordered``, those on order before, and ``base``. That is the
    probability that the Poisson demand of the mean time of delivery is above the stock. Demands, and each order's time
    and threshold, are drawn in their order, whatever is forecast.

    Source: This package; without a reaction an (r, Q) inventory with lost sales.

    Parameters
    ----------
    reorder : int, default 8
        The reorder point, from 0 to 10^4.
    lot : int, default 4
        Parts of an order, from 1 to 10^4.
    lead : float, default 6
        Mean time of delivery, in [0.01, 1000].
    reacts : {"none", "act", "rush"}
        A threshold of each order, uniform on [0, 1], below the forecast is a warning. "act": the lot comes by express,
        in half of the time, so high forecasts fail, also of earlier orders. "rush": customers take two parts each until
        the delivery, so high forecasts come true, also of earlier orders.
    """

    reveals: ClassVar[frozenset[str]] = frozenset({"base", "ordered", "stock"})
    allowed = allow(
        reorder=whole(0, 10**4), lot=whole(1, 10**4), lead=number(0.01, 1000.0), reacts=word("none", "act", "rush"),
    )  # fmt: skip

    reorder: int = 8
    lot: int = 4
    lead: float = 6.0
    reacts: str = "none"

    def formula(self, stock: int) -> float:
        """P(demand above the stock) in the mean time of delivery."""
        return float(scipy.special.pdtrc(stock, self.lead))

    def run(self, env: simpy.Environment, market: Market) -> Generator[Any, Any, Any]:
        """Lets parts be asked for, and orders lots."""
        demand, orders = market.rng.random, market.generator("orders").random
        shop = _Shop(self.reorder + self.lot)

        def delivery(question: Question, days: float, rumour: bool) -> Generator[Any, Any, Any]:
            shop.hoarding += rumour
            yield env.timeout(days)
            shop.hoarding -= rumour
            shop.stock += self.lot
            shop.ordered -= self.lot
            if not question.resolved:
                shop.open.remove(question)
                market.resolve(question, 0)

        while True:
            yield env.timeout(exponential(demand(), 1.0))
            for _ in range(2 if shop.hoarding else 1):
                if shop.stock:
                    shop.stock -= 1
                    continue
                for question in shop.open:
                    market.resolve(question, 1)
                shop.open.clear()
            while shop.stock + shop.ordered <= self.reorder:
                question = market.ask(base=self.formula(shop.stock), ordered=shop.ordered, stock=shop.stock)
                shop.open.append(question)
                shop.ordered += self.lot
                time, warned = orders(), orders() < question.forecast
                days = (self.lead + exponential(time, 1.0 / self.lead)) / 2.0
                if warned and self.reacts == "act":
                    days /= 2.0
                env.process(delivery(question, days, warned and self.reacts == "rush"))


class _Shop:
    """Parts on hand and on order, open orders, and orders that customers have heard of."""

    def __init__(self, stock: int) -> None:
        self.stock, self.ordered, self.hoarding = stock, 0, 0
        self.open: list[Question] = []
