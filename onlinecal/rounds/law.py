"""Laws of forecasts: as a forecaster states them, and as they are written down."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import locked, own, rows_for
from onlinecal.core.errors import in_one_line

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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

    @property
    def points(self) -> bool:
        """Whether each of the laws is a single point, which several atoms of one value are too."""
        return _points(self.atoms, self.weights)

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


class Block:
    """The arrays of the records of some rounds whose laws have one shape: (rounds, runs, size) and (rounds, runs)."""

    WRITTEN = ("atoms", "weights", "drawn", "atom", "forecast", "outcome")
    __slots__ = (
        "grid",
        "owner",
        "points",
        "rounds",
        "width",
        *WRITTEN,
    )

    def __init__(self, atoms: NDArray[Any], grid: Floats | None, owner: Any) -> None:
        runs, size = atoms.shape
        self.rounds = rounds = rows_for(8 * runs * (2 * size + 4))
        self.width = size
        #: whose rounds these are
        self.owner = owner
        self.grid = grid
        self.points = None if grid is None else len(grid)
        self.atoms = np.empty((rounds, runs, size), atoms.dtype)
        self.weights = np.empty((rounds, runs, size))
        self.drawn = np.empty((rounds, runs), np.int64)
        self.atom = np.empty((rounds, runs), atoms.dtype)
        self.forecast = self.atom if grid is None else np.empty((rounds, runs))
        self.outcome = np.empty((rounds, runs), np.int64)

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: getattr(self, name)
            for name in ("grid", "owner", "points", "rounds", "width", *self.WRITTEN)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        if self.grid is None:
            self.forecast = self.atom
        else:
            self.grid = locked(self.grid)  # a pickle forgets that it was


class StatedLaw:
    """The laws of one round as the forecaster stated them.

    Each array is a copy of the reader's own, which can only be read.
    """

    __slots__ = ("_at", "_block")

    def __init__(self, block: Block, at: int) -> None:
        self._block, self._at = block, at

    @property
    def grid(self) -> Floats | None:
        """The values that the atoms are indices of, (points,); None where they are values themselves."""
        grid = self._block.grid
        return None if grid is None else grid.view()

    @property
    def atoms(self) -> NDArray[Any]:
        """Indices into the grid, or values, (runs, size)."""
        return own(self._block.atoms[self._at])

    @property
    def weights(self) -> Floats:
        """Probabilities of the atoms, (runs, size)."""
        return own(self._block.weights[self._at])

    @property
    def support(self) -> Floats:
        """Values of the atoms, (runs, size)."""
        grid, atoms = self._block.grid, self._block.atoms[self._at]
        return own(atoms if grid is None else grid[atoms])

    @property
    def mean(self) -> Floats:
        """Mean forecast of each run, (runs,)."""
        means = np.zeros(self._block.drawn.shape[1])
        _add_up(self.support, self._block.weights[self._at], means)
        return own(means)

    def of(self, run: int) -> dict[float, float]:
        """The law of one run: value → probability, of all values with weight."""
        block, law = self._block, dict[float, float]()
        atoms, weights = block.atoms[self._at, run], block.weights[self._at, run]
        values = atoms if block.grid is None else block.grid[atoms]
        for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
            if weight > 0.0:
                law[value] = law.get(value, 0.0) + weight
        return law

    @property
    def points(self) -> bool:
        """Whether each of the laws is a single point."""
        return _points(self._block.atoms[self._at], self._block.weights[self._at])


def _points(atoms: NDArray[Any], weights: Floats) -> bool:
    known = np.where(weights > 0.0, atoms, -1)
    return bool(((known == known.max(axis=1, keepdims=True)) | (weights == 0.0)).all())


def take_numbers(stated: Any, out: Floats) -> bool:
    """Copies numbers, or one for all, into a vector; False if they are none, or not as many.

    What is no real number is not made one: a text, a part of a complex number, the time in a date.
    """
    if not isinstance(stated, np.ndarray | np.generic) and isinstance(stated, Real):
        out.fill(float(stated))
        return True
    try:
        np.copyto(out, stated, casting="same_kind")
    except (TypeError, ValueError):
        return False
    return not isinstance(stated, np.ma.MaskedArray)


def brief(value: Any) -> str:
    """A value in an error message."""
    if type(value) is np.ndarray and value.ndim == 1 and len(value) <= 4 and value.dtype.kind in "fiub":
        return "[" + ", ".join(f"{v:.12g}" for v in value) + "]"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, Law):
        return f"a Law with atoms {_form(value.atoms)} and weights {_form(value.weights)}"
    text = in_one_line(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "…"


def _form(array: Any) -> str:
    return f"of shape {array.shape}, {array.dtype}" if isinstance(array, np.ndarray) else brief(array)


@kernel
def _add_up(values, weights, means):
    """Adds up the mean of each law."""
    for r in range(values.shape[0]):
        for j in range(values.shape[1]):
            means[r] += weights[r, j] * values[r, j]
