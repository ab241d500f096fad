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

    def __str__(self) -> str:
        order = {True: "O", False: "Ω"}[self.upper]
        relation = "≤" if self.upper else "≥"
        mean = "E[T·{}]" if self.kind == "expected" else "T·{}"
        right = f"{order}({self.formula})" if self.kind == "rate" else self.formula
        relation = "=" if self.kind == "rate" else relation
        return f"{mean.format(self.measure)} {relation} {right} against {self.against} ({self.source})"
