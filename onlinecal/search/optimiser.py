"""The optimiser: CMA-ES, by the library `cma`, on the unit cube."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter

Floats = NDArray[np.float64]

#: standard deviation of the first generation
SPREAD = 0.3


def load() -> Any:
    """The library."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it could draw
            import cma
    except ImportError:
        raise InvalidParameter(
            "a search needs cma, which is not installed; install it (pip install 'onlinecal[search]')"
        ) from None
    return cma


class Cube:
    """A search for the largest value on [0, 1]^d, generation by generation."""

    def __init__(self, dimension: int, generator: np.random.Generator) -> None:
        self.dimension = dimension
        self.size = 1 if dimension == 0 else 4 + int(3 * math.log(dimension))
        self._strategy: Any = None
        if dimension:
            options = {
                "bounds": [0.0, 1.0], "popsize": self.size, "verbose": -9, "seed": math.nan,
                "randn": lambda *shape: generator.standard_normal(shape),
            }  # fmt: skip
            # The library refuses a single coordinate: it gets a second one without effect.
            self._strategy = load().CMAEvolutionStrategy([0.5] * max(dimension, 2), SPREAD, options)
        self._points: list[Floats] = []

    def ask(self) -> list[Floats]:
        """The points of the next generation."""
        self._points = [np.zeros(0)] if self._strategy is None else self._strategy.ask()
        return [np.clip(point[: self.dimension], 0.0, 1.0) for point in self._points]

    def tell(self, values: Any) -> None:
        """Takes the values of the points; larger is better."""
        if self._strategy is not None:
            self._strategy.tell(self._points, [-float(value) for value in values])

    @property
    def middle(self) -> Floats:
        """Where it would look next."""
        if self._strategy is None:
            return np.zeros(0)
        middle: Floats = np.clip(self._strategy.result.xfavorite[: self.dimension], 0.0, 1.0)
        return middle

    @property
    def done(self) -> bool:
        """Whether another generation would bring nothing new."""
        return self._strategy is None or bool(self._strategy.stop())
