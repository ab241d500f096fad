"""What came out of the cells of a study, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True)
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
        T·μ of every column of the panel.
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
    promises: tuple[Promise, ...] = ()
    recorded: bool = False
    seconds: float = field(default=0.0, compare=False)


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
