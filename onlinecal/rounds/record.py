"""The round as a record: the question, the law that was stated, what was drawn from it, and the outcome.

The engine owns the records. Whatever a player is shown of one is a copy of its own: a player may keep it, cannot change
what others read, and is led by it to nothing of other rounds. This guards against mistakes and against public names
such as `base`; it is no sandbox against code that means harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import locked, own
from onlinecal.core.errors import InvalidParameter, SightError
from onlinecal.rounds.law import Block, Floats, Ints, Law, StatedLaw, Unplayable, brief


class Stage(IntEnum):
    """How far a round has come: the question is asked, the forecast is drawn, the outcome is known."""

    ASKED = 0
    DRAWN = 1
    RESOLVED = 2


_NO_CONTEXT: Mapping[str, Any] = MappingProxyType({})


class Round:
    """One round of a game, in all its runs; what the forecaster sees of it, and those who keep accounts.

    Each array is a copy of the reader's own, which can only be read, and stays as it is when the game goes on.

    Attributes
    ----------
    memo : object
        The forecaster's own: what it computes when it forecasts and needs when it is told the outcome. Other rounds
        may be asked in between, so nothing about an open round belongs anywhere else.
    """

    __slots__ = ("_at", "_block", "_context", "_number", "_resolved", "_stage", "_time", "memo")

    def __init__(self, number: int, time: float, context: Mapping[str, Any] = _NO_CONTEXT) -> None:
        self._number, self._time, self._context = number, time, context
        self._stage, self._resolved = Stage.ASKED, float("inf")
        self._block: Block | None = None
        self._at = 0
        self.memo: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {"_context": dict(self._context)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        return f"<round {self._number}, {self._stage.name.lower()}>"

    @property
    def number(self) -> int:
        """1, 2, …"""
        return self._number

    @property
    def time(self) -> float:
        """When the question is asked, on the game's clock."""
        return self._time

    @property
    def resolved(self) -> float:
        """When the outcome became known; infinite before."""
        return self._resolved

    @property
    def stage(self) -> Stage:
        """How far the round has come."""
        return self._stage

    @property
    def context(self) -> Mapping[str, NDArray[Any]]:
        """What nature reveals before the forecast, only of the kinds that the forecaster `needs`: (runs, …) arrays."""
        return MappingProxyType({kind: own(values) for kind, values in self._context.items()})

    @property
    def law(self) -> StatedLaw:
        """The laws that were stated."""
        self._need(Stage.DRAWN, "the law")
        return StatedLaw(self._block, self._at)  # type: ignore[arg-type]

    @property
    def drawn(self) -> Ints:
        """Which atom of its law was drawn, (runs,)."""
        return own(self._row("drawn"))

    @property
    def atom(self) -> NDArray[Any]:
        """The atoms that were drawn, (runs,): indices of the grid, or values."""
        return own(self._row("atom"))

    @property
    def forecast(self) -> Floats:
        """The values that were drawn, (runs,)."""
        return own(self._row("forecast"))

    @property
    def outcome(self) -> Ints:
        """How the events turned out, (runs,), 0 or 1."""
        return own(self._row("outcome", Stage.RESOLVED))

    def _row(self, name: str, stage: Stage = Stage.DRAWN) -> Any:
        """The engine's own array, for callers that neither hand it on nor keep it."""
        if self._stage < stage:
            self._need(stage, f"the {name}")
        return getattr(self._block, name)[self._at]

    def _need(self, stage: Stage, what: str) -> None:
        if self._stage < stage:
            raise SightError(
                f"somebody asked for {what} of round {self._number} "
                f"before {'the law was stated' if stage is Stage.DRAWN else 'the outcome was known'}"
            )


class Recorder:
    """Writes down the rounds of one forecaster; for the engine, and for players that are made of others."""

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self.grid: Floats | None = None
        self._block: Block | None = None
        self._at = 0
        self._first = True
        #: the law whose form was checked last, its arrays, grid and shape
        self._known: tuple[Any, ...] = (self, None, None, None, None)

    def draw(self, round: Round, law: Any, uniforms: Floats, row: int) -> None:
        """Copies the law that was stated in this round, and draws from it with one row of uniforms.

        Raises
        ------
        Unplayable
            It is no `Law` for so many runs, has another grid than the laws before it, or its atoms or weights are no
            law in some run.
        """
        b, at = self.place(law)
        if self.grid is None:
            bad = _draw_real(law.atoms, law.weights, uniforms, row, at, b.atoms, b.weights, b.drawn, b.atom)
        else:
            bad = _draw_grid(
                law.atoms, law.weights, self.grid, uniforms, row, at, b.atoms, b.weights, b.drawn, b.atom, b.forecast
            )  # fmt: skip
        self._take(round, law, bad)

    def wrote(self, round: Round) -> bool:
        """Whether the law of this round was copied by this recorder."""
        return round._block is not None and round._block.owner is self

    def record(self, round: Round, law: Any) -> None:
        """Copies the law without a draw; `tell` adds what was drawn. Raises as `draw`."""
        b, at = self.place(law)
        points = 0 if self.grid is None else len(self.grid)
        self._take(round, law, _copy(law.atoms, law.weights, points, at, b.atoms, b.weights))

    def _take(self, round: Round, law: Any, bad: int) -> None:
        if bad >= 0:
            raise no_law(law.atoms[bad], law.weights[bad], self.grid, bad)
        round._block, round._at, round._stage = self._block, self._at, Stage.DRAWN
        self._at += 1

    def place(self, law: Any) -> tuple[Block, int]:
        """The arrays for the next law, of this form, and the row to which it goes.

        Raises
        ------
        Unplayable
            It is no `Law` for so many runs, or has another grid than those before it.
        """
        known = self._known
        if (
            law is not known[0]
            or law.atoms is not known[1]
            or law.weights is not known[2]
            or law.grid is not known[3]
            # The shape of an array can be changed in place.
            or law.atoms.shape != known[4]
            or law.weights.shape != known[4]
        ):
            self._meet(law)
        block = self._block
        if block is None or self._at == block.rounds or block.atoms.shape[1:] != law.atoms.shape:
            block, self._at = Block(law.atoms, self.grid, self), 0
            self._block = block
        return block, self._at

    def _meet(self, law: Any) -> None:
        """Checks the form of a law with arrays that were not seen before."""
        good = (
            isinstance(law, Law)
            and isinstance(law.atoms, np.ndarray)
            and isinstance(law.weights, np.ndarray)
            and law.atoms.ndim == 2
            and law.atoms.shape == law.weights.shape
            and len(law.atoms) == self.runs
            and law.atoms.size > 0
            and law.weights.dtype == np.float64
            and law.atoms.dtype == (np.float64 if law.grid is None else np.int64)
        )
        if not good:
            raise Unplayable(
                f"returned {brief(law)}",
                f"its Law with atoms and weights of shape ({self.runs}, size), float64, or int64 for the atoms of one "
                "with a grid",
            )
        if self._first:
            self._first = False
            self.grid = None if law.grid is None else locked(_grid(law.grid))
        elif not _same(law.grid, self.grid):
            raise Unplayable("changed its grid", "the grid of its first law")
        self._known = law, law.atoms, law.weights, law.grid, law.atoms.shape

    def __getstate__(self) -> dict[str, Any]:
        # The arrays belong to the rounds that are open; the next round begins a new block. Which law was checked is
        # found out anew, since arrays come back from a pickle as others.
        return {"runs": self.runs, "grid": self.grid, "first": self._first}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["runs"])  # type: ignore[misc]
        if state["grid"] is not None:
            self.grid = locked(state["grid"])
        self._first = state["first"]


def _grid(grid: Any) -> Floats:
    """A copy of a grid that a law came with."""
    values = np.array(grid, np.float64)
    if values.ndim != 1 or not len(values) or not ((values >= 0.0) & (values <= 1.0)).all():
        raise Unplayable(f"has the grid {brief(values)}", "values in [0, 1]")
    return values + 0.0


def _same(grid: Floats | None, other: Floats | None) -> bool:
    return grid is other if grid is None or other is None else np.array_equal(grid, other)


def no_law(atoms: Any, weights: Floats, grid: Floats | None, run: int) -> Unplayable:
    """What to say of atoms and weights that make no law."""
    if grid is not None:
        inside = (atoms >= 0) & (atoms < len(grid))
        atoms = np.where(inside, grid[np.where(inside, atoms, 0)], np.nan)
    what = f"stated the forecasts {brief(atoms)} with weights {brief(weights)}"
    return Unplayable(what, "values in [0, 1] and weights ≥ 0 that sum to 1", run)


def decide(round: Round, q: Floats, uniforms: Floats, row: int) -> int:
    """Draws the outcomes y = 1[u < q] of a round; −1, or a run whose q is no probability."""
    return _decide(q, uniforms, row, round._at, round._block.outcome)  # type: ignore[union-attr]


def tell(round: Round, drawn: Ints, outcome: Ints, time: float = float("inf")) -> None:
    """Resolves a round that was recorded without a draw: which atoms were drawn, and how the events turned out.

    Raises
    ------
    InvalidParameter
        The arrays are not of the round's runs, or `drawn` points outside of the law.
    """
    b, at = round._block, round._at
    good = b is not None and drawn.shape == outcome.shape == b.drawn.shape[1:]
    if b is None or not good or not _tell(b.atoms, drawn, outcome, at, b.drawn, b.atom, b.outcome):
        raise InvalidParameter(
            f"what was drawn in round {round.number} is no part of the law that was stated"
        )
    if b.grid is not None:
        _look_up(b.atom, b.grid, at, b.forecast)
    resolve(round, time)


def check_round(round: Any, law: Law) -> None:
    """Refuses a round that is not one of those in which a player stated laws like this one: of another game, say.

    With it, what a kernel reads from the round's arrays has the length that it expects and points into the grid.

    Raises
    ------
    InvalidParameter
    """
    block = round._block if isinstance(round, Round) else None
    points = None if law.grid is None else len(law.grid)
    if block is None or block.drawn.shape[1] != len(law.atoms) or points != block.points:
        raise not_ours(round)


def not_ours(round: Any) -> InvalidParameter:
    """The error of a player that is told of a round that it did not forecast."""
    return InvalidParameter(
        f"{brief(round)} is not a round that this player forecast; expected one of its own game"
    )


def resolve(round: Round, time: float) -> None:
    """From now on the outcome may be seen."""
    round._stage, round._resolved = Stage.RESOLVED, time


@kernel
def _draw_grid(atoms, weights, grid, uniforms, row, at, to_atoms, to_weights, drawn, atom, forecast):
    """Copies laws on a grid, and draws from them; −1, or the first run without a law."""
    runs, size = to_atoms.shape[1:]
    for r in range(runs):
        total, pick, u = 0.0, -1, uniforms[row, r]
        for j in range(size):
            w, i = weights[r, j], atoms[r, j]
            if not (w >= 0.0 and 0 <= i < len(grid)):
                return r
            # The last atom with weight is the pick where rounding leaves the sum below u.
            if w > 0.0 and total <= u:
                pick = j
            total += w
            to_atoms[at, r, j], to_weights[at, r, j] = i, w
        if not abs(total - 1.0) <= 1e-9:
            return r
        drawn[at, r] = pick
        atom[at, r] = to_atoms[at, r, pick]
        forecast[at, r] = grid[to_atoms[at, r, pick]]
    return -1


@kernel
def _draw_real(atoms, weights, uniforms, row, at, to_atoms, to_weights, drawn, atom):
    """The same for laws given by values."""
    runs, size = to_atoms.shape[1:]
    for r in range(runs):
        total, pick, u = 0.0, -1, uniforms[row, r]
        for j in range(size):
            w, p = weights[r, j], atoms[r, j]
            if not (w >= 0.0 and 0.0 <= p <= 1.0):
                return r
            if w > 0.0 and total <= u:
                pick = j
            total += w
            to_atoms[at, r, j], to_weights[at, r, j] = p + 0.0, w  # −0.0 becomes 0.0
        if not abs(total - 1.0) <= 1e-9:
            return r
        drawn[at, r] = pick
        atom[at, r] = to_atoms[at, r, pick]
    return -1


@kernel
def _copy(atoms, weights, points, at, to_atoms, to_weights):
    """Copies laws, on a grid of so many points or (0) given by values; −1, or the first run without a law."""
    runs, size = to_atoms.shape[1:]
    for r in range(runs):
        total = 0.0
        for j in range(size):
            w, a = weights[r, j], atoms[r, j]
            if not (w >= 0.0 and (0 <= a < points if points > 0 else 0.0 <= a <= 1.0)):
                return r
            total += w
            to_atoms[at, r, j], to_weights[at, r, j] = a + 0, w
        if not abs(total - 1.0) <= 1e-9:
            return r
    return -1


@kernel
def _decide(q, uniforms, row, at, outcome):
    for r in range(len(q)):
        if not 0.0 <= q[r] <= 1.0:
            return r
        outcome[at, r] = np.int64(uniforms[row, r] < q[r])
    return -1


@kernel
def _tell(atoms, drawn, outcome, at, to_drawn, atom, to_outcome):
    """Writes down what was drawn; False if that is outside of the law, or an outcome is neither 0 nor 1."""
    for r in range(atoms.shape[1]):
        j, y = drawn[r], outcome[r]
        if not (0 <= j < atoms.shape[2] and 0 <= y <= 1):
            return False
        to_drawn[at, r], to_outcome[at, r], atom[at, r] = j, y, atoms[at, r, j]
    return True


@kernel
def _look_up(atom, grid, at, forecast):
    for r in range(atom.shape[1]):
        forecast[at, r] = grid[atom[at, r]]
