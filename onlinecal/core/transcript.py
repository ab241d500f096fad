"""A run as a sequence of rounds, and measures of that in place of Γ."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter

T = TypeVar("T")


@dataclass(frozen=True)
class Transcript:
    """The resolved rounds of one run, in the order in which their outcomes became known. All arrays are read-only.

    Attributes
    ----------
    forecasts : (n,) floats
    outcomes : (n,) ints
        0 or 1.
    numbers : (n,) ints
        Of the rounds: 1, 2, ….
    asked, known : (n,) floats
        Times of question and outcome on the game's clock.
    context : mapping of str to (n, …) array
        Revealed with the questions, of the kinds that were asked for.
    """

    forecasts: NDArray[np.float64]
    outcomes: NDArray[np.int64]
    numbers: NDArray[np.int64]
    asked: NDArray[np.float64]
    known: NDArray[np.float64]
    context: Mapping[str, NDArray[Any]]

    @property
    def weight(self) -> float:
        """The number of rounds."""
        return float(len(self.outcomes))


def of_rounds(needs: Iterable[str] = ()) -> Callable[[T], T]:
    """Marks a function as a measure of a `Transcript`, in place of a `JointDistribution`; an average, like the others.

    Parameters
    ----------
    needs : iterable of str
        The kinds of context that it reads; a nature that does not reveal them is refused.

    Examples
    --------
    >>> @of_rounds(needs=["base"])
    ... def farther_than_base(rounds):
    ...     far = abs(rounds.forecasts - rounds.outcomes) - abs(rounds.context["base"] - rounds.outcomes)
    ...     return float(far.mean())
    """
    kinds = frozenset([needs] if isinstance(needs, str) else needs)
    if not all(isinstance(kind, str) for kind in kinds):
        raise InvalidParameter(f"needs = {needs!r}; expected names of kinds of context")

    def mark(function: T) -> T:
        function.needs = kinds  # type: ignore[attr-defined]
        return function

    return mark


def needs_of(function: Any) -> frozenset[str] | None:
    """The kinds of context that a measure of rounds reads; None for a measure of Γ."""
    kinds = getattr(function, "needs", None)
    return kinds if isinstance(kinds, frozenset) else None
