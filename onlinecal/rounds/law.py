"""Errors of players that fail, or whose statements cannot be played, and how values appear in messages."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidForecast, failure, in_one_line

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: the kinds of numbers that a player in plain Python may state
NUMBERS = Real, np.bool_


class Unplayable(Exception):
    """A statement of a player that cannot be played; the engine adds the player's name and the round."""

    def __init__(self, what: str, expected: str, run: int | None = None) -> None:
        super().__init__(what, expected, run)
        self.what, self.expected, self.run = what, expected, run


def no_law(atoms: Any, weights: Floats, grid: Floats | None, run: int) -> Unplayable:
    """The error for atoms and weights that make no law."""
    if grid is not None:
        inside = (atoms >= 0) & (atoms < len(grid))
        atoms = np.where(inside, grid[np.where(inside, atoms, 0)], np.nan)
    what = f"stated the forecasts {brief(atoms)} with weights {brief(weights)}"
    return Unplayable(what, "values in [0, 1] and weights ≥ 0 that sum to 1", run)


def failed(error: Exception, who: str, number: int, runs: range, place: int | None = None) -> InvalidForecast:
    """A player's own error, with its name, the round, and the run where it is of one of them.

    Nobody is named where there is no more memory: it is whoever asks next that gets none, be it the engine.
    """
    if isinstance(error, MemoryError):
        return InvalidForecast(
            f"there is no memory left for round {number} in {len(runs)} run(s): {in_one_line(error, str)}; expected "
            "fewer runs at a time or fewer rounds"
        )
    if isinstance(error, Unplayable):
        place = place if error.run is None else error.run
        run = "" if place is None else f", run {runs[place]}"
        return InvalidForecast(f"{who} {error.what} in round {number}{run}; expected {error.expected}")
    run = "" if place is None else f", run {runs[place]}"
    return InvalidForecast(f"{who} failed in round {number}{run}: {failure(error)}")


def law_of(said: Any) -> dict[Any, Any]:
    """The law that a plain forecaster stated, as a mapping value → probability; `Unplayable` for anything else."""
    law = {said: 1.0} if isinstance(said, NUMBERS) else said
    if (
        not isinstance(law, dict)
        or not law
        or not all(isinstance(x, NUMBERS) for pair in law.items() for x in pair)
    ):
        raise Unplayable(f"stated {brief(said)}", "a number in [0, 1], or a dict of them with weights")
    return law


def brief(value: Any) -> str:
    """A value in an error message."""
    if type(value) is np.ndarray and value.ndim == 1 and len(value) <= 4 and value.dtype.kind in "fiub":
        return "[" + ", ".join(f"{v:.12g}" for v in value) + "]"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text = in_one_line(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "…"
