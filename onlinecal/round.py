"""The round as a record: the question, the law that was stated, what was drawn from it, and the outcome.

The engine owns the records. Whatever a player is shown of one is an array that is written once and that no public
name makes writable, so a player may keep it and cannot change what others read. This guards against mistakes; it is no
sandbox against code that means harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onlinecal._compile import kernel
from onlinecal.errors import InvalidParameter, SightError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: bytes of arrays that are allocated together: few allocations, and still in the processor's cache
BYTES = 2**18


# ---------------------------------------------------------------- arrays that are written once


class _Window:
    """What numpy needs to read an array, without leave to write."""

    __slots__ = ("_array",)

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        interface = dict(self._array.__array_interface__)
        interface["data"] = (interface["data"][0], True)
        return interface


def locked(array: NDArray[Any]) -> Any:
    """A view of the array that can only be read; setting ``flags.writeable`` is refused, for it and for its `base`.

    A read-only view that numpy makes by itself can be unlocked as long as the array behind it is writable.
    """
    return np.asarray(_Window(array))


def rows_for(size: int) -> int:
    """How many rows of `size` bytes are allocated together."""
    return min(1024, max(16, BYTES // max(size, 1)))


class Rows:
    """Arrays of one shape, a fresh one whenever it is asked for; they are allocated in blocks.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy dtype, default float64
    """

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._length = rows_for(int(np.prod(shape)) * self.dtype.itemsize)
        self._at = self._length - 1

    def fresh(self) -> NDArray[Any]:
        """An array that nobody else has; its owner fills it."""
        self._turn()
        return self._written[self._at]

    def keep(self, values: Any) -> NDArray[Any]:
        """A locked copy of the values."""
        self._turn()
        self._written[self._at] = values
        return self._shown[self._at]

    def _turn(self) -> None:
        self._at += 1
        if self._at == self._length:
            self._written: NDArray[Any] = np.empty((self._length, *self.shape), self.dtype)
            self._shown = locked(self._written)
            self._at = 0

    def __getstate__(self) -> dict[str, Any]:
        # What was handed out belongs to others; the next array begins a new block.
        return {"shape": self.shape, "dtype": self.dtype, "_length": self._length, "_at": self._length - 1}


# ---------------------------------------------------------------- laws


class Law:
    """Finite laws of this round's forecast, one for each run, as a forecaster states them.

    A player owns one `Law` and fills its arrays in place, so that a round allocates nothing; the engine copies what
    it states.

    Attributes
    ----------
    grid : (points,) floats or None
        The values that a grid forecaster plays: a locked copy of what is given. With a grid the history keeps counts
        by index, and no value is ever rounded back to a bin.
    atoms : (runs, size) array
        Indices into `grid` (int64), or, without a grid, the values themselves (float64).
    weights : (runs, size) floats
        Probabilities of the atoms; each row sums to 1.
    """

    def __init__(self, runs: int, size: int, grid: Floats | None = None) -> None:
        self.grid = None if grid is None else locked(np.array(grid, np.float64))
        self.atoms: NDArray[Any] = np.zeros((runs, size), np.float64 if grid is None else np.int64)
        self.weights = np.full((runs, size), 1.0 / size)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.grid is not None:
            self.grid = locked(self.grid)


class Unplayable(Exception):
    """What a player did in a round makes no sense; the engine says so, with the player's name and the round.

    Attributes
    ----------
    what : str
        What it did: ``"stated q = 1.5"``.
    expected : str
    run : int or None
        In which run, counted from 0 among those that the player plays.
    """

    def __init__(self, what: str, expected: str, run: int | None = None) -> None:
        super().__init__(what, expected, run)
        self.what, self.expected, self.run = what, expected, run


class _Block:
    """The arrays of the records of some rounds whose laws have one shape: (rounds, runs, size) and (rounds, runs)."""

    WRITTEN = ("atoms", "weights", "drawn", "atom", "forecast", "outcome")
    __slots__ = ("_mean", "_shown", "_support", "grid", "points", *WRITTEN)

    def __init__(self, atoms: NDArray[Any], grid: Floats | None) -> None:
        runs, size = atoms.shape
        rounds = rows_for(8 * runs * (2 * size + 4))
        self.grid = grid
        self.points = None if grid is None else len(grid)
        self.atoms = np.empty((rounds, runs, size), atoms.dtype)
        self.weights = np.empty((rounds, runs, size))
        self.drawn = np.empty((rounds, runs), np.int64)
        self.atom = np.empty((rounds, runs), atoms.dtype)
        self.forecast = self.atom if grid is None else np.empty((rounds, runs))
        self.outcome = np.empty((rounds, runs), np.int64)
        self._shown: dict[str, list[Any]] = {}
        #: computed when somebody asks
        self._support: Floats | None = None
        self._mean: Floats | None = None

    def show(self, name: str, at: int) -> Any:
        """One of the arrays in one round, locked."""
        rows = self._shown.get(name)
        if rows is None:
            # All rows at once, which takes half the time of one after the other.
            rows = self._shown[name] = list(locked(getattr(self, name)))
        return rows[at]

    def support(self, at: int) -> Floats:
        """The values of the atoms in one round, locked."""
        if self.grid is None:
            return self.show("atoms", at)
        if self._support is None:
            self._support = np.empty(self.atoms.shape)
        _values(self.atoms, self.grid, at, self._support)
        return self.show("_support", at)

    def mean(self, at: int) -> Floats:
        """Mean forecast of each run in one round, locked."""
        if self._mean is None:
            self._mean = np.empty(self.drawn.shape)
        if self.grid is None:
            _real_mean(self.atoms, self.weights, at, self._mean)
        else:
            _grid_mean(self.atoms, self.weights, self.grid, at, self._mean)
        return self.show("_mean", at)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("grid", "points", *self.WRITTEN)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        if self.grid is None:
            self.forecast = self.atom
        self._shown, self._support, self._mean = {}, None, None


class StatedLaw:
    """The laws of one round as the forecaster stated them; all arrays can only be read, and stay as they are."""

    __slots__ = ("_at", "_block")

    def __init__(self, block: _Block, at: int) -> None:
        self._block, self._at = block, at

    @property
    def grid(self) -> Floats | None:
        """The values that the atoms are indices of, (points,); None where they are values themselves."""
        return self._block.grid

    @property
    def atoms(self) -> NDArray[Any]:
        """Indices into the grid, or values, (runs, size)."""
        return self._block.show("atoms", self._at)

    @property
    def weights(self) -> Floats:
        """Probabilities of the atoms, (runs, size)."""
        return self._block.show("weights", self._at)

    @property
    def support(self) -> Floats:
        """Values of the atoms, (runs, size)."""
        return self._block.support(self._at)

    @property
    def mean(self) -> Floats:
        """Mean forecast of each run, (runs,)."""
        return self._block.mean(self._at)


# ---------------------------------------------------------------- rounds


class Stage(IntEnum):
    """How far a round has come: the question is asked, the forecast is drawn, the outcome is known."""

    ASKED = 0
    DRAWN = 1
    RESOLVED = 2


_NO_CONTEXT: Mapping[str, Any] = MappingProxyType({})


class Round:
    """One round of a game, in all its runs; what the forecaster sees of it, and those who keep accounts.

    All arrays can only be read, and stay as they are when the game goes on.

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
        self._block: _Block | None = None
        self._at = 0
        self.memo: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {"_context": dict(self._context)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._context = MappingProxyType(self._context)  # type: ignore[arg-type]

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
        return self._context

    @property
    def law(self) -> StatedLaw:
        """The laws that were stated."""
        self._need(Stage.DRAWN, "the law")
        return StatedLaw(self._block, self._at)  # type: ignore[arg-type]

    @property
    def drawn(self) -> Ints:
        """Which atom of its law was drawn, (runs,)."""
        return self._show("drawn")

    @property
    def atom(self) -> NDArray[Any]:
        """The atoms that were drawn, (runs,): indices of the grid, or values."""
        return self._show("atom")

    @property
    def forecast(self) -> Floats:
        """The values that were drawn, (runs,)."""
        return self._show("forecast")

    @property
    def outcome(self) -> Ints:
        """How the events turned out, (runs,), 0 or 1."""
        return self._show("outcome", Stage.RESOLVED)

    def _show(self, name: str, stage: Stage = Stage.DRAWN) -> Any:
        if self._stage < stage:
            self._need(stage, f"the {name}")
        return self._block.show(name, self._at)  # type: ignore[union-attr]

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
        self._block: _Block | None = None
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
        b, at = self._place(law), self._at
        if self.grid is None:
            bad = _draw_real(law.atoms, law.weights, uniforms, row, at, b.atoms, b.weights, b.drawn, b.atom)
        else:
            bad = _draw_grid(
                law.atoms, law.weights, self.grid, uniforms, row, at, b.atoms, b.weights, b.drawn, b.atom, b.forecast
            )  # fmt: skip
        self._take(round, law, bad)

    def record(self, round: Round, law: Any) -> None:
        """Copies the law without a draw; `tell` adds what was drawn. Raises as `draw`."""
        b = self._place(law)
        points = 0 if self.grid is None else len(self.grid)
        self._take(round, law, _copy(law.atoms, law.weights, points, self._at, b.atoms, b.weights))

    def _take(self, round: Round, law: Any, bad: int) -> None:
        if bad >= 0:
            raise self._refusal(law, bad)
        round._block, round._at, round._stage = self._block, self._at, Stage.DRAWN
        self._at += 1

    def _place(self, law: Any) -> _Block:
        """The arrays for the next law; it goes to row `_at`."""
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
        if block is None or self._at == len(block.drawn) or block.atoms.shape[1:] != law.atoms.shape:
            block, self._at = _Block(law.atoms, self.grid), 0
            self._block = block
        return block

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
                f"its Law with atoms and weights of shape ({self.runs}, size), float64, or int64 for the atoms where it "
                "has a grid",
            )
        if self._first:
            self._first = False
            self.grid = None if law.grid is None else locked(_grid(law.grid))
        elif (law.grid is None) != (self.grid is None) or (
            law.grid is not self._known[3] and not np.array_equal(law.grid, self.grid)
        ):
            raise Unplayable("changed its grid", "the grid of its first law")
        self._known = law, law.atoms, law.weights, law.grid, law.atoms.shape

    def _refusal(self, law: Law, run: int) -> Unplayable:
        atoms, weights = law.atoms[run], law.weights[run]
        if self.grid is not None:
            inside = (atoms >= 0) & (atoms < len(self.grid))
            atoms = np.where(inside, self.grid[np.where(inside, atoms, 0)], np.nan)
        what = f"stated the forecasts {brief(atoms)} with weights {brief(weights)}"
        return Unplayable(what, "values in [0, 1] and weights ≥ 0 that sum to 1", run)

    def __getstate__(self) -> dict[str, Any]:
        # The arrays belong to the rounds that are open; the next round begins a new block. Which law was checked is
        # found out anew, since arrays come back from a pickle as others.
        return {"runs": self.runs, "grid": self.grid, "first": self._first}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["runs"])  # type: ignore[misc]
        if state["grid"] is not None:
            self.grid = locked(state["grid"])
        self._first = state["first"]


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


def brief(value: Any) -> str:
    """A value in an error message."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and len(value) <= 4:
        return "[" + ", ".join(f"{v:.12g}" for v in value) + "]"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, Law):
        return f"a Law with atoms {_form(value.atoms)} and weights {_form(value.weights)}"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "…"


def _form(array: Any) -> str:
    return f"of shape {array.shape}, {array.dtype}" if isinstance(array, np.ndarray) else brief(array)


def _grid(grid: Any) -> Floats:
    """A copy of a grid that a law came with."""
    values = np.array(grid, np.float64)
    if values.ndim != 1 or not len(values) or not ((values >= 0.0) & (values <= 1.0)).all():
        raise Unplayable(f"has the grid {brief(values)}", "values in [0, 1]")
    return values + 0.0


# ---------------------------------------------------------------- kernels


@kernel
def _grid_mean(atoms, weights, grid, at, out):
    """Mean of each law on a grid in one round."""
    for r in range(atoms.shape[1]):
        mean = 0.0
        for j in range(atoms.shape[2]):
            mean += weights[at, r, j] * grid[atoms[at, r, j]]
        out[at, r] = mean


@kernel
def _real_mean(atoms, weights, at, out):
    """Mean of each law given by values in one round."""
    for r in range(atoms.shape[1]):
        mean = 0.0
        for j in range(atoms.shape[2]):
            mean += weights[at, r, j] * atoms[at, r, j]
        out[at, r] = mean


@kernel
def _values(atoms, grid, at, out):
    """Values of the atoms of each law on a grid in one round."""
    for r in range(atoms.shape[1]):
        for j in range(atoms.shape[2]):
            out[at, r, j] = grid[atoms[at, r, j]]


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
