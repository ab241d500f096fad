"""Natures that flip coins and look at nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from onlinecal.guarantee import Guarantee
from onlinecal.natures.base import Floats, Nature, NaturePlayer, NatureView, Oblivious
from onlinecal.strategy import check_probability
from onlinecal.streams import Stream


@dataclass(frozen=True)
class Bernoulli(Nature):
    """Independent coins of one bias: q_t = q.

    Parameters
    ----------
    q : float, default 0.5
        P(y = 1), in [0, 1].

    Guarantee
    ---------
    For 0 < q < 1 every forecaster has T·CDL = Ω(√T), since already its U-calibration has.

    Information
    -----------
    Sees nothing; no state.

    Source
    ------
    Folklore; the lower bound as in Kleinberg, Paes Leme, Schneider and Teng 2023. Deviations: none.
    """

    q: float = 0.5

    def __post_init__(self) -> None:
        check_probability("q", self.q)

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """A player that answers q."""
        return Oblivious(partial(_line, float(self.q), 0.0))

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The square-root law of a coin that is not certain."""
        if self.q in (0, 1):
            return ()
        source = "Kleinberg, Paes Leme, Schneider and Teng 2023"
        return (Guarantee("cdl", "√T", math.sqrt, "rate", "every forecaster", source, upper=False),)


@dataclass(frozen=True)
class Drift(Nature):
    """Coins whose bias moves evenly from one end to the other: q_t = a + (b − a)(t − ½)/T.

    Every point of a grid of T^{1/3} steps is then used for T^{2/3} rounds, which is what makes a forecaster on that
    grid pay T^{2/3}.

    Parameters
    ----------
    first, last : float, default 0 and 1
        a and b, in [0, 1].

    Guarantee
    ---------
    None proved.

    Information
    -----------
    Sees nothing; needs the horizon.

    Source
    ------
    Folklore. Deviations: none.
    """

    first: float = 0.0
    last: float = 1.0

    def __post_init__(self) -> None:
        check_probability("first", self.first)
        check_probability("last", self.last)

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """A player that moves along the line."""
        slope = (self.last - self.first) / horizon
        return Oblivious(partial(_line, self.first - 0.5 * slope, slope))


@dataclass(frozen=True)
class UniformTruth(Nature):
    """A fresh truth in every round: q_t uniform on [0, 1], revealed to forecasters that ask for it.

    Guarantee
    ---------
    None proved.

    Information
    -----------
    Sees nothing; reveals the context ``truth``, the (runs,) values of q_t.

    Source
    ------
    Błasiok, Gopalan, Hu and Nakkiran 2023, §10: the calibrated family D_1. Deviations: none.
    """

    reveals: ClassVar[frozenset[str]] = frozenset({"truth"})

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """A player that draws its truths from `stream`."""
        return _UniformPlayer(stream)


class _UniformPlayer:
    """Draws truths in blocks; which block a round falls into does not change them."""

    BLOCK = 1024

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.first = 1
        self.truths = stream.block(self.BLOCK)

    def _truth(self, t: int) -> Floats:
        while t >= self.first + self.BLOCK:
            self.truths = self.stream.block(self.BLOCK)
            self.first += self.BLOCK
        return self.truths[t - self.first]

    def context(self, t: int) -> dict[str, Floats]:
        return {"truth": self._truth(t)}

    def probability(self, view: NatureView) -> Floats:
        return self._truth(view.round)


def _line(at_zero: float, slope: float, t: int) -> float:
    # The end points are in [0, 1], so only rounding could leave it.
    return min(1.0, max(0.0, at_zero + slope * t))
