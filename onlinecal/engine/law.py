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


def as_law(said: Any) -> list[tuple[float, float]]:
    """The value and weight of each atom of what an object stated, a number or a dict."""
    if type(said) is float:
        return [(said, 1.0)]
    return [(float(value), float(weight)) for value, weight in law_of(said).items()]


def check_law(law: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The law, if it is one."""
    total = 0.0
    for value, weight in law:
        if not (0.0 <= value <= 1.0 and weight >= 0.0):
            break
        total += weight
    else:
        if abs(total - 1.0) <= 1e-9:
            return law
    values, weights = np.array(law).T
    what = f"stated the forecasts {brief(values)} with weights {brief(weights)}"
    raise Unplayable(what, "values in [0, 1] and weights ≥ 0 that sum to 1")


def draw(law: list[tuple[Any, float]], u: float) -> tuple[int, Any]:
    """The first atom at which the summed weights are above u, else the last with weight: its place and value."""
    total, place = 0.0, 0
    for i, (_, weight) in enumerate(law):
        if weight > 0.0:
            place = i
            if total + weight > u:
                break
        total += weight
    value = law[place][0]
    return place, value if type(value) is tuple else value + 0.0  # −0.0 becomes 0.0


def summed(values: Iterable[Any], weights: Iterable[float]) -> dict[Any, float]:
    """The law of atoms that may repeat, value → probability, without values of no weight."""
    law: dict[Any, float] = {}
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
