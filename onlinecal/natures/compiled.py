"""Natures whose rule is written as steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.sight import Sight
from onlinecal.natures.base import NatureRound, heard, seen
from onlinecal.rounds.law import Floats, Ints, Unplayable, brief
from onlinecal.rounds.steps import (
    CONTEXT,
    HEAR,
    MEMO,
    MOVE,
    RAISED,
    REVEAL,
    Memory,
    Step,
    call_hear,
    call_move,
    call_reveal,
    check_step,
    raised,
    run_of,
)
from onlinecal.rounds.tables import give, give_row


class CompiledNature:
    """Plays a rule that is written as steps (`onlinecal.rounds.steps`), in all runs.

    Parameters
    ----------
    move : Step
    memory : Memory
    sight : Sight
    hear : Step, optional
        For natures that see the history and remember something of it.
    reveal : Step, optional
    reveals : iterable of str
        The kinds of context, one number each, in the order of their names.
    reserve : callable, optional
        (Memory, rounds) ↦ None: makes room for so many more rounds, where the state grows.
    grows_with : {"rounds", "levels"}
        When it grows: in each round, or only in those whose forecast is one that was not drawn before. Then `reserve`
        is called with no more than the number of different forecasts that there can be, and must mean these.
    streams_of : callable, optional
        (first, last) ↦ the streams of these questions, (last − first + 1,) whole numbers, as the context "stream" says
        them; it must depend on nothing else. A nature with streams but without it is played by the event loop.

    Raises
    ------
    InvalidParameter
        A step of another kind; one that hears without the sight for it; a step and a list of what is revealed of which
        the other is missing; a memory without room for the context; another `grows_with`.
    """

    def __init__(
        self,
        move: Step,
        memory: Memory,
        *,
        sight: Sight = Sight.NOTHING,
        hear: Step | None = None,
        reveal: Step | None = None,
        reveals: Any = (),
        reserve: Callable[[Memory, int], None] | None = None,
        grows_with: Literal["rounds", "levels"] = "rounds",
        streams_of: Callable[[int, int], Ints] | None = None,
    ) -> None:
        check_step("move", move, MOVE)
        if hear is not None:
            check_step("hear", hear, HEAR)
        if reveal is not None:
            check_step("reveal", reveal, REVEAL)
        reveals = tuple(sorted(reveals))
        if hear is not None and sight < Sight.HISTORY:
            raise InvalidParameter(f"sight = {sight!r} with a step `hear`; expected HISTORY or more")
        if (reveal is None) is not (not reveals):
            raise InvalidParameter(
                f"reveals = {reveals!r}; expected kinds of context and a step `reveal`, or neither"
            )
        if memory.context < len(reveals):
            raise InvalidParameter(
                f"context = {memory.context}; expected room for {len(reveals)}: {', '.join(reveals)}"
            )
        self.steps, self.memory, self.sight, self.reveals = (move, hear, reveal), memory, sight, reveals
        self.q = np.empty(memory.runs)
        #: one run's law as far as it may be seen: no atoms, values, weights
        self.buffers = np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
        self._context, self._stream = np.zeros((memory.runs, memory.context)), np.zeros(memory.runs, np.int64)
        self._nothing = np.zeros((memory.runs, 0)), np.full(memory.runs, np.nan)
        if grows_with not in ("rounds", "levels"):
            raise InvalidParameter(f"grows_with = {brief(grows_with)}; expected 'rounds' or 'levels'")
        self._reserve, self._left, self.grows_with, self.streams_of = reserve, 0, grows_with, streams_of
        # Only where they are declared, since others are never called.
        if sight >= Sight.HISTORY:
            self.update = self._update
        if self.reveals:
            self.context = self._reveal

    @property
    def plain(self) -> bool:
        """Whether its steps are all there is to it: nobody has put another method in the place of one of its own."""
        own = {"update": CompiledNature._update, "context": CompiledNature._reveal}
        there = {name: getattr(vars(self)[name], "__func__", None) for name in own if name in vars(self)}
        return (
            type(self) is CompiledNature
            and "probability" not in vars(self)
            and all(own[name] is method for name, method in there.items())
        )

    def mismatch(self, specification: Any, runs: int) -> str:
        """Where it is not what its specification declares, in words; "" if nowhere."""
        if self.sight > specification.sight:
            declared = specification.sight.name
            return f"its player has sight {self.sight.name}, but the specification declares {declared}"
        missing = sorted(specification.reveals - set(self.reveals))
        if missing:
            return f"its player does not reveal {', '.join(missing)}, as the specification declares"
        return self.memory.check_runs(runs)

    def probability(self, round: NatureRound) -> Floats:
        """q of each run."""
        memory = self.memory
        round.memo = memory.fresh_memo() if memory.memo else None
        law = self._law(round)
        forecast = round.forecast if self.sight >= Sight.DRAW else self._nothing[1]
        bad = _move(
            self.steps[0].address, round.number, memory.fields, memory.arrays, memory.room, self.buffers, self._context,
            self._memo(round), *law, forecast, self.q,
        )  # fmt: skip
        if bad >= 0:
            raise raised(self.steps[0], bad)
        return self.q

    def _update(self, round: NatureRound) -> None:
        hear, memory = self.steps[1], self.memory
        if hear is None:
            return
        self.make_room()
        forecast, outcome = heard(round, memory.runs)
        law = self._law(round)
        bad, code = _hear(
            hear.address, round.number, memory.fields, memory.arrays, memory.room, self.buffers, self._context,
            self._memo(round), *law, forecast, outcome,
        )  # fmt: skip
        if bad >= 0 and code == RAISED:
            raise raised(hear, bad)
        if bad >= 0:
            raise InvalidParameter(f"round {round.number} is none that this nature was asked")

    def _reveal(self, round: NatureRound) -> Mapping[str, NDArray[Any]]:
        memory, reveal = self.memory, self.steps[2]
        assert reveal is not None
        bad, code = _tell_context(
            reveal.address,
            round.number,
            memory.fields,
            memory.arrays,
            memory.room,
            self.buffers,
            self._context,
        )
        if bad >= 0 and code == RAISED:
            raise raised(reveal, bad)
        if bad >= 0:
            raise Unplayable("revealed nothing", "its context", bad)
        shown: dict[str, NDArray[Any]] = {kind: self._context[:, i] for i, kind in enumerate(self.reveals)}
        if "stream" in shown:  # a whole number, which steps have as a float
            self._stream[:] = shown["stream"]
            shown["stream"] = self._stream
        return shown

    def make_room(self) -> None:
        """Makes room for the round that it is about to be told."""
        if self._reserve is not None:
            if self._left == 0:
                self._left = 1024
                self._reserve(self.memory, self._left)
            self._left -= 1

    def table(self, values: Floats, weights: Floats) -> Any:
        """`Memory.table` for its context, and for laws in these arrays."""
        return self.memory.table(self._context, self.buffers[0], values, weights)

    @property
    def grows(self) -> bool:
        """Whether its state takes more room the longer it plays."""
        return self._reserve is not None

    def growth(self, levels: float) -> float:
        """In how many rounds its state may take more room, where so many different forecasts can be drawn."""
        if self._reserve is None:
            return 0
        return levels if self.grows_with == "levels" else math.inf

    def reserve(self, rounds: int, levels: float = math.inf) -> None:
        """Makes room for so many more rounds, in which so many different forecasts can be drawn."""
        if self._reserve is not None:
            self._reserve(self.memory, int(min(rounds, self.growth(levels))))
            self._left = 0

    def _law(self, round: NatureRound) -> tuple[Any, Any, Floats]:
        """Grid (empty where there is none), atoms and weights of the law, as far as they may be seen."""
        if self.sight < Sight.LAW:
            return self.buffers[1], self._nothing[0], self._nothing[0]
        law = round.law
        atoms, size = seen(law._block.atoms[law._at], self.memory.runs), law._block.width
        if len(self.buffers[1]) != size:
            self.buffers = self.buffers[0], np.zeros(size), np.zeros(size)
        grid = law._block.grid
        return np.zeros(0) if grid is None else grid, atoms, law._block.weights[law._at]

    def _memo(self, round: NatureRound) -> Floats:
        return self.memory.check_memo(round.memo) if self.memory.memo else self._context


@kernel
def _run(fields, r, arrays, room, buffers, context, memo, grid, atoms, weights):
    """Run r, as steps take it, with a copy of the law."""
    a, v, w = buffers
    give(fields, r, arrays, room, a, v, w)
    give_row(fields, CONTEXT, context, r)
    give_row(fields, MEMO, memo, r)
    for j in range(len(v)):
        v[j] = grid[np.int64(atoms[r, j])] if len(grid) > 0 else atoms[r, j]
        w[j] = weights[r, j]
    return run_of(fields)


@kernel
def _move(move, number, fields, arrays, room, buffers, context, memo, grid, atoms, weights, forecast, q):
    """Asks all runs for q; −1, or a run in which the step raised an error."""
    size = atoms.shape[1]
    for r in range(len(q)):
        run = _run(fields, r, arrays, room, buffers, context, memo, grid, atoms, weights)
        q[r] = call_move(move, (run, number, size, forecast[r]))
        if q[r] == RAISED:
            return r
    return -1


@kernel
def _hear(
    hear, number, fields, arrays, room, buffers, context, memo, grid, atoms, weights, forecast, outcome
):
    """Tells all runs a round; −1, or a run that refused it, and the code."""
    size = atoms.shape[1]
    for r in range(len(forecast)):
        run = _run(fields, r, arrays, room, buffers, context, memo, grid, atoms, weights)
        code = call_hear(hear, (run, number, size, forecast[r], outcome[r]))
        if code < 0:
            return r, code
    return -1, 0


@kernel
def _tell_context(reveal, number, fields, arrays, room, buffers, context):
    a, v, w = buffers
    for r in range(len(context)):
        give(fields, r, arrays, room, a, v, w)
        give_row(fields, CONTEXT, context, r)
        code = call_reveal(reveal, (run_of(fields), number))
        if code < 0:
            return r, code
    return -1, 0
