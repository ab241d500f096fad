"""Natures that look at the forecast before they choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from onlinecal.errors import InvalidParameter
from onlinecal.guarantee import Guarantee
from onlinecal.natures.base import Floats, Nature, NaturePlayer, NatureView, Sight
from onlinecal.streams import Stream


@dataclass(frozen=True)
class Contrarian(Nature):
    """Does the opposite: y = 1 if and only if the forecast is below one half.

    Parameters
    ----------
    sees : {"law", "draw"}, default "law"
        What it goes by: the mean of the law, or the forecast that was drawn.

    Guarantee
    ---------
    T·ECE ≥ T/2 against every deterministic forecaster, and, where it sees the draw, against every forecaster: each
    forecast is at least 1/2 away from all the outcomes that it gets.

    Information
    -----------
    Sees LAW or DRAW; no state.

    Source
    ------
    Dawid 1985, "The impossibility of inductive inference"; Oakes 1985, "Self-calibrating priors do not exist".
    Deviations: none.
    """

    sees: Literal["law", "draw"] = "law"

    def __post_init__(self) -> None:
        if self.sees not in ("law", "draw"):
            raise InvalidParameter(f"sees = {self.sees!r}; expected 'law' or 'draw'")

    @property
    def sight(self) -> Sight:
        """LAW or DRAW, as `sees` says."""
        return Sight.LAW if self.sees == "law" else Sight.DRAW

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """A player without state."""
        return _ContrarianPlayer(runs, self.sees == "draw")

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What it forces on those whose forecast it knows."""
        against = "every forecaster" if self.sees == "draw" else "every deterministic forecaster"
        source = "Dawid 1985; Oakes 1985"
        return (Guarantee("ece", "T/2", lambda t: t / 2.0, "deterministic", against, source, upper=False),)


class _ContrarianPlayer:
    def __init__(self, runs: int, draw: bool) -> None:
        self.draw = draw
        self.q = np.empty(runs)

    def probability(self, view: NatureView) -> Floats:
        return np.less(view.forecast if self.draw else view.law.mean, 0.5, out=self.q)
