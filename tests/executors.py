"""Executors for tests, and what a results file says however its cells were played."""

import random
import sqlite3
from contextlib import closing

from onlinecal.study.executors.base import Executor, Lost, attempt
from onlinecal.study.executors.kit import opened, packed


class Disorderly(Executor):
    """Plays units in a random order, and loses some first; all goes the way through bytes that it would go elsewhere.

    `loses` says how often a unit is lost before it is played.
    """

    def __init__(self, seed=0, workers=3, loses=lambda unit: 0):
        self.workers, self.remarks = workers, []
        self._random, self._loses, self._held, self._lost = random.Random(seed), loses, [], {}
        self.order = []

    def begin(self, cells, worked):
        self._kit, self._worked = packed(cells), worked

    @property
    def room(self):
        return 2 * self.workers - len(self._held)

    def submit(self, unit):
        assert self.room > 0
        self._held.append(unit)

    def events(self):
        unit = self._held.pop(self._random.randrange(len(self._held)))
        if self._lost.setdefault(unit, 0) < self._loses(unit):
            self._lost[unit] += 1
            return [Lost(unit, "it was lost")]
        self.order.append(unit)
        cell = opened(*self._kit)[unit.cell]
        return [attempt(cell, unit, 1, lambda rounds: self._worked(unit, rounds))]

    def close(self):
        self._held.clear()


def tables(path):
    """All that a results file holds, by names: not how long it took, nor in which order cells were finished."""
    with closing(sqlite3.connect(path)) as db:
        return {
            name: sorted(db.execute(query).fetchall())
            for name, query in {
                "meta": "SELECT key, value FROM meta",
                "plan": "SELECT * FROM plan",
                "panels": "SELECT * FROM panels",
                "bounds": "SELECT b.place, g.measure, g.text, g.formula, g.kind, g.against, g.upper, b.bound "
                "FROM bounds b JOIN guarantees g ON g.id = b.guarantee",
                "failed": "SELECT key, error FROM failed",
                "columns": 'SELECT key, name, "column", content FROM columns',
                "parts": "SELECT digest, text FROM parts",
                "games": "SELECT key, times, held, totals, open, people, accounts FROM games",
            }.items()
        }
