"""Compiled players of games of K classes, as `play` asks them: Python has points where steps have places in a table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinecal.core.guarantee import Sight
from onlinecal.engine.law import Unplayable, brief
from onlinecal.engine.outcomes import Law
from onlinecal.engine.play import Question
from onlinecal.engine.run import POINTS, put, shared_width
from onlinecal.engine.seats import CompiledForecaster, CompiledNature, lay_alone


class ClassForecaster(CompiledForecaster):
    """Calls the steps of a compiled forecaster of classes: its law is of points."""

    def state_law(self, q: Question) -> Law:
        law, table = super().state_law(q), self.player.table_of(self.run)
        for value, _ in law:
            if not (0.0 <= value < len(table) and value == int(value)):
                values, weights = zip(*law, strict=True)
                raise bad_places(values, weights, len(table))
        return [(tuple(table[int(value)].tolist()), weight) for value, weight in law]

    def forecast(self, q: Question) -> float:
        return float(self.player.places_of(self.run)[q.forecast])


class ClassNature(CompiledNature):
    """Calls the steps of a compiled nature of classes, with the table of a forecaster, or the points of each law.

    `forecaster` is the compiled player that has the table, or None.
    """

    def __init__(self, player: Any, run: int, forecaster: Any = None) -> None:
        super().__init__(player, run)
        self.forecaster = forecaster

    def lay(self, atoms: int) -> None:
        p, table = self.player, np.zeros((atoms, self.player.classes))
        if self.forecaster is not None:
            table = self.forecaster.table
        room = lay_alone(p, atoms, table.size)
        put(p.rows, POINTS, table, room, p.rows.size + shared_width(p))
        #: the points of the law at hand, where there is no table
        p.points = room.reshape(table.shape)

    def write(self, q: Question, seen: bool) -> tuple[int, float]:
        """Writes the law where it is `seen`: how many atoms it has, and the place of the forecast."""
        size = len(q.law)
        self.look(size)
        places: Any = range(size)
        if self.forecaster is None:
            self.player.points[:size] = [point for point, _ in q.law]
        else:
            known = self.forecaster.places_of(self.run)
            places = [known[point] for point, _ in q.law]
        if seen:
            self.values[:size] = places
            self.weights[:size] = [weight for _, weight in q.law]
        return size if seen else 0, float(places[q.place])

    def move(self, q: Question) -> Any:
        p = self.player
        size, forecast = self.write(q, p.sight >= Sight.LAW)
        said = self.call("move", q.hidden, size, forecast if p.sight >= Sight.DRAW else math.nan, q.number)
        return tuple(q.hidden[: p.classes].tolist()) if said == 0.0 else said

    def forecast(self, q: Question) -> float:
        return self.write(q, False)[1]


def bad_places(values: Any, weights: Any, points: int) -> Unplayable:
    """The fault of a forecaster that stated something else than places of its table."""
    what = f"stated the places {brief(np.array(values))} with weights {brief(np.array(weights))}"
    return Unplayable(what, f"whole numbers from 0 to {points - 1} and weights ≥ 0 that sum to 1")
