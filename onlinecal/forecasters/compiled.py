"""Forecasters whose rule is written as steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import count
from onlinecal.forecasters.base import context, stream_of
from onlinecal.rounds.law import Floats, Law, Unplayable
from onlinecal.rounds.record import Round, Stage, check_round, not_ours
from onlinecal.rounds.steps import (
    CONTEXT,
    LAW,
    LEARN,
    MEMO,
    RAISED,
    Memory,
    Step,
    call_law,
    call_learn,
    check_step,
    ints,
    law_atoms,
    law_weights,
    learn,
    raised,
    run_of,
)
from onlinecal.rounds.tables import give, give_row

#: rounds that a law must have been twice too wide before a narrower one takes its place
PATIENCE = 256


class CompiledForecaster:
    """Plays a rule that is written as steps (`onlinecal.rounds.steps`), in all runs.

    Parameters
    ----------
    law, learn : Step
    memory : Memory
    size : int
        The most atoms that a law has.
    grid : (points,) floats, optional
        The values that the atoms are indices of. Default: laws are given by values.
    needs : iterable of str
        The kinds of context that it needs; in a run's context they stand in the order of their names.
    certificates : callable, optional
        Memory ↦ what the player proves of its own play.
    reserve : callable, optional
        (Memory, rounds) ↦ None: makes room for so many more rounds, where the state grows.
    alone : bool, default False
        Whether its law step looks at `drawn_by`, to state no more than the atom that is drawn where nobody sees the
        rest. It must then learn nothing of the rest either.
    prepare : callable, optional
        (Memory, open, streams) ↦ None: makes ready for more open questions than there are now, where the state grows
        with these: for so many, and of each stream (a mapping) for so many.

    Raises
    ------
    InvalidParameter
        A step of another kind, no room for an atom, or a memory without room for the context.
    """

    def __init__(
        self,
        law: Step,
        learn: Step,
        memory: Memory,
        *,
        size: int,
        grid: Floats | None = None,
        needs: Any = (),
        certificates: Callable[[Memory], dict[str, Floats]] | None = None,
        reserve: Callable[[Memory, int], None] | None = None,
        alone: bool = False,
        prepare: Callable[[Any, int, Mapping[int, int]], None] | None = None,
    ) -> None:
        check_step("law", law, LAW)
        check_step("learn", learn, LEARN)
        size, needs = count("size", size), tuple(sorted(needs))
        if memory.context < len(needs):
            raise InvalidParameter(
                f"context = {memory.context}; expected room for {len(needs)}: {', '.join(needs)}"
            )
        self.steps, self.memory, self.size, self.needs = (law, learn), memory, size, needs
        self.alone = alone
        self.law = Law(memory.runs, min(size, 2), grid)
        #: one run's law, of full size: atoms, values, weights
        self.buffers = np.zeros(size, np.int64), np.zeros(size), np.zeros(size)
        self._context = np.zeros((memory.runs, memory.context))
        self._reserve, self._left, self._idle = reserve, 0, 0
        self._prepare = prepare
        if certificates is not None:
            # Only then, since a player has no method that its specification does not declare.
            self._certify = certificates
            self.certificates = self._certificates

    @property
    def plain(self) -> bool:
        """Whether its steps are all there is to it: nobody has put another method in the place of one of its own."""
        return type(self) is CompiledForecaster and not {"forecast", "update"} & vars(self).keys()

    def mismatch(self, specification: Any, runs: int) -> str:
        """Where it is not what its specification declares, in words; "" if nowhere."""
        undeclared = sorted(set(self.needs) - specification.needs)
        if undeclared:
            return f"its player needs {', '.join(undeclared)}, which the specification does not declare"
        return self.memory.check_runs(runs)

    @property
    def grid(self) -> Floats | None:
        """The values that atoms are indices of; None where laws are given by values."""
        return self.law.grid

    def forecast(self, round: Round) -> Law:
        """The laws of this round, in an object that grows and shrinks with the need."""
        memory = self.memory
        if self.prepares:
            self.prepare(1, {stream_of(round, memory.runs) if "stream" in self.needs else 0: 1})
        round.memo = memory.fresh_memo() if memory.memo else None
        self._take_context(round)
        if self.fit(self._state(round)):
            self._state(round)
        return self.law

    def fit(self, needed: int) -> bool:
        """Has so many atoms in its law, or keeps one that is not much wider; whether that is another now."""
        width = self.law.weights.shape[1]
        self._idle = self._idle + 1 if 2 * needed <= width > 2 else 0
        if needed > width or self._idle > PATIENCE:
            self.law = Law(self.memory.runs, max(2, needed), self.law.grid)
            self._idle = 0
            return True
        return False

    def update(self, round: Round) -> None:
        """A round whose outcome is known."""
        check_round(round, self.law)
        self._take_context(round)
        self.make_room()
        memory, row = self.memory, round._row
        learn = _learn_real if self.law.grid is None else _learn_grid
        bad, code = learn(
            self.steps[1].address, round.number, memory.fields, memory.arrays, memory.room, self.buffers, self._context,
            self._memo(round), self._values_of_grid(), row("atoms"), row("weights"), row("drawn"),
            row("outcome", Stage.RESOLVED),
        )  # fmt: skip
        if bad >= 0:
            raise raised(self.steps[1], bad) if code == RAISED else not_ours(round)

    def make_room(self) -> None:
        """Makes room for the round that it is about to be told."""
        if self._reserve is not None:
            if self._left == 0:
                self._left = 1024
                self._reserve(self.memory, self._left)
            self._left -= 1

    def table(self) -> Any:
        """`Memory.table` for its law and context."""
        return self.memory.table(self._context, *self.buffers)

    @property
    def grows(self) -> bool:
        """Whether its state takes more room the longer it plays."""
        return self._reserve is not None

    def reserve(self, rounds: int) -> None:
        """Makes room for so many more rounds."""
        if self._reserve is not None:
            self._reserve(self.memory, rounds)
            self._left = 0

    @property
    def prepares(self) -> bool:
        """Whether it must know beforehand how many questions will be open."""
        return self._prepare is not None

    def prepare(self, open: int, streams: Mapping[int, int]) -> None:
        """Makes ready for so many more open questions than there are now, of all streams and of each."""
        if self._prepare is not None:
            self._prepare(self.memory, open, streams)
            if not self.memory.linked:  # a part that is new has no room yet
                self._left = 0

    def _state(self, round: Round) -> int:
        memory, law = self.memory, self.law
        state = _state_real if law.grid is None else _state_grid
        needed, size = state(
            self.steps[0].address, round.number, memory.fields, memory.arrays, memory.room, self.buffers, self._context,
            self._memo(round), law.atoms, law.weights,
        )  # fmt: skip
        if needed < 0 and size == RAISED:
            raise raised(self.steps[0], -1 - needed)
        if needed < 0:
            raise Unplayable(f"stated a law of {size} atoms", f"1 to {self.size}", -1 - needed)
        return needed

    def _take_context(self, round: Round) -> None:
        """The context that it needs, kind after kind."""
        at = 0
        for kind in self.needs:
            values = context(round, kind, self.memory.runs).reshape(self.memory.runs, -1)
            self._context[:, at : at + values.shape[1]] = values
            at += values.shape[1]

    def _memo(self, round: Round) -> Floats:
        return self.memory.check_memo(round.memo) if self.memory.memo else self._context

    def _values_of_grid(self) -> Floats:
        return self._context[0] if self.law.grid is None else self.law.grid

    def _certificates(self) -> dict[str, Floats]:
        return self._certify(self.memory)


@kernel
def state_pair(run, low, share):
    """The law of weight `share` on the grid point `low` and the rest on the next; as a step's result."""
    atoms, weights = law_atoms(run), law_weights(run)
    atoms[0], atoms[1] = low, low + 1
    weights[0], weights[1] = share, 1.0 - share
    return 2


@learn
def count_ones(run, number, size, drawn, outcome):
    """Counts the round, and the outcome if it is 1: the first two whole numbers of the state."""
    state = ints(run)
    state[0] += 1
    state[1] += outcome
    return 0


@learn
def nothing(run, number, size, drawn, outcome):
    """Learns nothing."""
    return 0


@kernel
def _run(fields, r, arrays, room, buffers, context, memo):
    """Run r, as steps take it."""
    atoms, values, weights = buffers
    give(fields, r, arrays, room, atoms, values, weights)
    give_row(fields, CONTEXT, context, r)
    give_row(fields, MEMO, memo, r)
    return run_of(fields)


@kernel
def _put(size, r, source, weights, to_atoms, to_weights):
    """Copies a law of so many atoms to row r; the places that are left repeat the first atom with no weight."""
    for j in range(to_atoms.shape[1]):
        used = j < size
        to_atoms[r, j] = source[j] if used else source[0]
        to_weights[r, j] = weights[j] if used else 0.0


@kernel
def _state_grid(law, number, fields, arrays, room, buffers, context, memo, to_atoms, to_weights):
    """The laws of all runs; how many atoms the largest has, or −1 − r and what the step of run r returned instead."""
    needed = 0
    for r in range(len(to_atoms)):
        size = call_law(law, (_run(fields, r, arrays, room, buffers, context, memo), number))
        if not 1 <= size <= len(buffers[2]):
            return -1 - r, size
        needed = max(needed, size)
        if needed <= to_atoms.shape[1]:
            _put(size, r, buffers[0], buffers[2], to_atoms, to_weights)
    return needed, needed


@kernel
def _state_real(law, number, fields, arrays, room, buffers, context, memo, to_atoms, to_weights):
    """The same for laws given by values."""
    needed = 0
    for r in range(len(to_atoms)):
        size = call_law(law, (_run(fields, r, arrays, room, buffers, context, memo), number))
        if not 1 <= size <= len(buffers[2]):
            return -1 - r, size
        needed = max(needed, size)
        if needed <= to_atoms.shape[1]:
            _put(size, r, buffers[1], buffers[2], to_atoms, to_weights)
    return needed, needed


@kernel
def _learn_grid(
    learn, number, fields, arrays, room, buffers, context, memo, grid, atoms, weights, drawn, outcome
):
    """Tells all runs a round; −1, or a run that refused it, and the code."""
    a, v, w = buffers
    size = min(atoms.shape[1], len(w))
    for r in range(len(atoms)):
        run = _run(fields, r, arrays, room, buffers, context, memo)
        for j in range(size):
            a[j], v[j], w[j] = atoms[r, j], grid[atoms[r, j]], weights[r, j]
        code = call_learn(learn, (run, number, size, drawn[r], outcome[r])) if drawn[r] < size else -1
        if code < 0:
            return r, code
    return -1, 0


@kernel
def _learn_real(
    learn, number, fields, arrays, room, buffers, context, memo, grid, atoms, weights, drawn, outcome
):
    """The same for laws given by values."""
    _, v, w = buffers
    size = min(atoms.shape[1], len(w))
    for r in range(len(atoms)):
        run = _run(fields, r, arrays, room, buffers, context, memo)
        for j in range(size):
            v[j], w[j] = atoms[r, j], weights[r, j]
        code = call_learn(learn, (run, number, size, drawn[r], outcome[r])) if drawn[r] < size else -1
        if code < 0:
            return r, code
    return -1, 0
