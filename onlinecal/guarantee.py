"""What is proved about a strategy, as data that plots draw, tables print and tests check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["deterministic", "expected", "rate"]


@dataclass(frozen=True)
class Guarantee:
    """A proved bound on the total T·μ of a measure in a game of T rounds.

    Attributes
    ----------
    measure : str
        The curve that it bounds: a measure, or a certificate such as ``distance_certificate``.
    formula : str
        The bound as people write it: ``"2√T + 1"``.
    bound : callable
        T ↦ the value. For a rate, up to a constant that no source states.
    kind : {"deterministic", "expected", "rate"}
        Holds for every sequence; in expectation over the engine's draws; or as a growth rate only.
    against : str
        Whom it holds against: what the nature may see, or which forecasters it hurts.
    source : str
        Authors, year, theorem.
    upper : bool
        Whether it bounds the total from above (forecasters) or from below (natures).
    """

    measure: str
    formula: str
    bound: Callable[[float], float]
    kind: Kind
    against: str
    source: str
    upper: bool = True

    @property
    def short(self) -> str:
        """The relation alone: ``cdl = O(√T log T)``."""
        if self.kind == "rate":
            return f"{self.measure} = {'O' if self.upper else 'Ω'}({self.formula})"
        return f"{self.measure} {'≤' if self.upper else '≥'} {self.formula}"

    def __str__(self) -> str:
        mean = " in expectation" if self.kind == "expected" else ""
        return f"total {self.short}{mean}, against {self.against} ({self.source})"
