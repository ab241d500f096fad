"""Errors of players that fail, or of statements that cannot be played, and values in messages."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidForecast, failure, in_one_line


class Unplayable(Exception):
    """A statement of a player that cannot be played; the engine adds the player's name and the round."""

    def __init__(self, what: str, expected: str) -> None:
        super().__init__(what, expected)
        self.what, self.expected = what, expected


def failed(error: Exception, who: str, number: int, runs: range, place: int | None = None) -> InvalidForecast:
    """A player's own error, with its name, the round, and the run where it is of one of them.

    An error for want of memory names no player: the next that asks gets none, be it the engine.
    """
    if isinstance(error, MemoryError):
        return InvalidForecast(
            f"there is no memory left for round {number} in {len(runs)} run(s): {failure(error)}; expected "
            "fewer runs at a time or fewer rounds"
        )
    at = f"in round {number}" + ("" if place is None else f", run {runs[place]}")
    if isinstance(error, Unplayable):
        return InvalidForecast(f"{who} {error.what} {at}; expected {error.expected}")
    return InvalidForecast(f"{who} failed {at}: {failure(error)}")


def is_scalar(said: Any) -> bool:
    """Whether a plain player stated a real number, or a scalar of an array library such as `torch.tensor(0.5)`."""
    return isinstance(said, Real | np.bool_) or (
        getattr(said, "ndim", None) == 0 and isinstance(said.item(), Real)
    )


def law_of(said: Any) -> dict[Any, Any]:
    """The law that a plain forecaster stated, as a mapping value → probability; `Unplayable` for anything else."""
    law = {float(said): 1.0} if is_scalar(said) else said
    # Such keys are outcomes, as in river's `predict_proba_one`.
    if isinstance(law, dict) and any(isinstance(value, bool | np.bool_) for value in law):
        raise Unplayable(
            f"stated {brief(said)}, whose keys are outcomes and no forecasts",
            f"the forecast itself, {brief(law.get(True, 0.0))}, or a dict {{forecast: weight}}",
        )
    if isinstance(law, dict) and law and all(is_scalar(x) for pair in law.items() for x in pair):
        return law
    raise Unplayable(f"stated {brief(said)}", "a number in [0, 1], or a dict of them with weights")


def summed(values: Iterable[float], weights: Iterable[float]) -> dict[float, float]:
    """The law of atoms that may repeat, value → probability, without values of no weight."""
    law: dict[float, float] = {}
    for value, weight in zip(values, weights, strict=True):
        if weight > 0.0:
            law[value] = law.get(value, 0.0) + weight
    return law


def brief(value: Any) -> str:
    """A value in an error message."""
    if isinstance(value, np.ndarray):
        if value.ndim == 1 and len(value) <= 4 and value.dtype.kind in "fiub":
            return "[" + ", ".join(str(v).removesuffix(".0") for v in value.tolist()) + "]"
        return f"an array of shape {value.shape}"
    text = in_one_line(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "…"
