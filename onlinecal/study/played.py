"""What came out of the cells of a study, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.columns import Column

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Promise:
    """A guarantee as it applies to one cell: its bound at the cell's horizon."""

    measure: str
    text: str
    formula: str
    kind: str
    against: str
    upper: bool
    bound: float


@dataclass(frozen=True, eq=False)
class Played:
    """The result of one cell: a forecaster against a nature at a horizon.

    Attributes
    ----------
    forecaster, nature : str
        Labels.
    horizon : int
    rounds : (n,) ints
        Checkpoints; the last is the horizon.
    totals : dict of str to (n, runs) floats
        T·μ of every column, by its name.
    columns : tuple of Column
        What they are of, in the same order.
    promises : tuple of Promise
    recorded : bool
        Whether nature replays a recorded stream: the outcomes of all runs and horizons are the same.
    seconds : float
        How long it took.
    """

    forecaster: str
    nature: str
    horizon: int
    rounds: NDArray[np.int64]
    totals: dict[str, Floats]
    columns: tuple[Column, ...]
    promises: tuple[Promise, ...] = ()
    recorded: bool = False
    seconds: float = field(default=0.0, compare=False)

    def __eq__(self, other: object) -> bool:
        """Whether all is the same, number by number, but for how long it took."""
        if not isinstance(other, Played):
            return NotImplemented
        return (
            self._said == other._said
            and np.array_equal(self.rounds, other.rounds)
            and all(np.array_equal(self.totals[m], other.totals[m], equal_nan=True) for m in self.totals)
        )

    def __hash__(self) -> int:
        return hash(self._said)

    @property
    def _said(self) -> tuple[object, ...]:
        """What of it is no array."""
        return (self.forecaster, self.nature, self.horizon, self.columns, self.promises, self.recorded)


@dataclass(frozen=True)
class Results:
    """All the cells that were played, with the name and the title of their study.

    Attributes
    ----------
    cells : tuple of Played
    name, title : str
    """

    cells: tuple[Played, ...]
    name: str = "study"
    title: str = ""
