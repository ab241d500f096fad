"""Plays a forecaster without a nature: its questions and outcomes come from the caller."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Floats, Ints
from onlinecal.rounds.law import Unplayable
from onlinecal.rounds.plain import played
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.steps import (
    ATOMS,
    CONTEXT,
    FIELDS,
    MEMO,
    RAISED,
    TIME,
    VALUES,
    WEIGHTS,
    call_law,
    call_learn,
    is_law,
    raised,
)
from onlinecal.rounds.words import address_of, floats_at, ints_at, run_of

#: rounds for which a state that grows has room made at a time
BLOCK = 1024


class Asked:
    """A question that was asked by hand, in all runs of the player.

    Of each run it has the number of atoms of its law, (runs,). Atoms (places of a grid), values and weights are (runs,
    size), and have no meaning beyond that number.
    """

    def __init__(self, number: int, words: Floats, places: list[int]) -> None:
        self.number, self.words = number, words
        ints, (atoms, values, weights, end) = words.view(np.int64), places
        self.sizes, self.atoms = ints[:, 0], ints[:, atoms:values]
        self.values, self.weights = words[:, values:weights], words[:, weights:end]

    def drawn(self, uniform: float) -> int:
        """The place of the atom of the first run that a uniform draws, as the compiled round does."""
        pick, total = 0, 0.0
        for j, weight in enumerate(self.weights[0, : int(self.sizes[0])].tolist()):
            if weight > 0.0 and total <= uniform:
                pick = j
            total += weight
        return pick


class Hand:
    """The player of a forecaster, spread over its runs, for callers that bring questions and outcomes."""

    def __init__(self, player: CompiledForecaster) -> None:
        self.player, memory, size = player, player.memory, player.size
        lengths = 1 + max(memory.context, len(player.needs)), memory.memo, size, size, size
        self._places: list[int] = np.cumsum(lengths).tolist()
        self._grid = np.zeros(0) if player.grid is None else player.grid
        self._fields, self._left = np.zeros(FIELDS, np.int64), 0

    def ask(self, number: int, context: Mapping[str, float] | None = None, time: float = math.nan) -> Asked:
        """Asks question `number` in all runs; `Unplayable` where one states no law."""
        player, memory, context = self.player, self.player.memory, context or {}
        player.prepare(1, 1, {int(context.get("stream", 0)): 1})
        if self._left == 0:
            self._left = BLOCK
            player.reserve(BLOCK)
        words = np.zeros((memory.runs, self._places[-1]))
        for i, kind in enumerate(player.needs):
            words[:, 1 + i] = context[kind]
        asked = Asked(number, words, self._places[1:])
        bad, code = played(
            _state, player.steps[0].address, number, time, self._fields, memory.fields(), words,
            tuple(self._places), self._grid,
        )  # fmt: skip
        if bad >= 0:
            size = max(code, 0)
            law = asked.atoms[bad, :size], asked.values[bad, :size], asked.weights[bad, :size]
            raise player.no_law(code, law, bad)
        return asked

    def tell(self, asked: Asked, drawn: Ints, outcome: Ints) -> None:
        """Tells all runs which atom of its law was drawn, (runs,), and the outcome, (runs,)."""
        self._left -= self._left > 0
        memory, step = self.player.memory, self.player.steps[1]
        bad, code = played(
            _learn, step.address, asked.number, self._fields, memory.fields(), asked.words, tuple(self._places),
            drawn, outcome,
        )  # fmt: skip
        if bad >= 0:
            refused = Unplayable("refused a round that it had played", "to be told it", bad)
            raise raised(step, bad) if code == RAISED else refused


@kernel
def _run(fields, r, given, words, places):
    """Run r, as steps take it, with its question."""
    at, size = address_of(words) + 8 * r * words.shape[1], places[3] - places[2]
    for i in range(TIME):  # the time is of the question
        fields[i] = given[0, i] + r * given[1, i]
    fields[CONTEXT], fields[MEMO] = at + 8, at + 8 * places[0]
    for place, vector in ((ATOMS, 1), (VALUES, 2), (WEIGHTS, 3)):
        fields[place], fields[place + 1] = at + 8 * places[vector], size
    return run_of(fields)


@kernel
def _state(step, number, time, fields, given, words, places, grid):
    """States the laws of all runs. −1, or a run without a law, and its size or the code of its step."""
    floats_at(address_of(fields), FIELDS)[TIME] = time
    for r in range(len(words)):
        run = _run(fields, r, given, words, places)
        size = call_law(step, (run, number))
        if not 1 <= size <= places[3] - places[2] or not is_law(run, size, grid):
            return r, size
        ints_at(address_of(words) + 8 * r * words.shape[1], 1)[0] = size
    return -1, 0


@kernel
def _learn(step, number, fields, given, words, places, drawn, outcome):
    """Tells all runs a round; −1, or a run that refused it, and the code."""
    for r in range(len(words)):
        run = _run(fields, r, given, words, places)
        size = ints_at(address_of(words) + 8 * r * words.shape[1], 1)[0]
        code = call_learn(step, (run, number, size, drawn[r], outcome[r])) if 0 <= drawn[r] < size else -1
        if code < 0:
            return r, code
    return -1, 0
