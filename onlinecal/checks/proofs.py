"""Whether the rounds of a game keep to what the proof of a bound says of each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinecal.core.guarantee import Guarantee, Potential
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.game import Game

#: what rounding may add to a ratio that is at most 1
ROUNDING = 1e-9
#: how many runs are held against the potential of a bound from above, which looks at each law by itself
LOOKED_AT = 4


class Proof:
    """The potential of a guarantee, followed through a game.

    Attributes
    ----------
    step : float
        As in `GuaranteeCheck`; NaN where there is no potential, or where nothing has been seen of it.
    """

    def __init__(self, guarantee: Guarantee) -> None:
        self.step = math.nan
        self._upper, self._potential = guarantee.upper, guarantee.potential
        self._before: Any = None

    def look(self, game: Game, gammas: Sequence[JointDistribution]) -> None:
        """Takes in a checkpoint."""
        if self._potential is None:
            return
        if self._upper:
            found = self._next(self._potential, game, gammas)
        else:
            now = np.array([self._potential.of(gamma, game.horizon) for gamma in gammas])
            found = math.nan if self._before is None else float((self._before / now).max())
            self._before = now
        self.step = float(np.fmax(self.step, found))

    def _next(self, potential: Potential, game: Game, gammas: Sequence[JointDistribution]) -> float:
        """The growth in the round that comes."""
        if game.asked == game.horizon:
            return math.nan
        laws = game.laws()
        return max(
            step(potential, gamma, list(law), list(law.values()), game.horizon)
            for gamma, law in zip(gammas[:LOOKED_AT], laws, strict=False)
        )


def step(potential: Potential, gamma: JointDistribution, values: Any, weights: Any, horizon: int) -> float:
    """By how much the mean of a potential over a law grows, for the worse outcome, over what its proof allows."""
    assert potential.growth is not None  # of a bound from above
    before = potential.of(gamma, horizon)
    played = [(float(v), float(w)) for v, w in zip(values, weights, strict=True) if w > 0.0]
    allowed = sum(w * potential.growth(gamma, v, horizon) for v, w in played)
    # Rounds that may follow: forecasts, the share that each has of the round, and how likely the round is.
    rounds: list[Any] = [(v, 1.0, w) for v, w in played]
    if potential.linear:
        rounds = [(*zip(*played, strict=True), 1.0)]
    worst = -math.inf
    for y in (0.0, 1.0):
        growth = 0.0
        for v, share, chance in rounds:
            counts, positives = (
                np.append(gamma.counts, share),
                np.append(gamma.positives, np.multiply(share, y)),
            )
            after = JointDistribution.from_counts(np.append(gamma.predictions, v), counts, positives)
            growth += chance * (potential.of(after, horizon) - before)
        # The rounding of two large numbers that are nearly equal is not growth.
        worst = max(worst, growth - ROUNDING * abs(before))
    return worst / allowed
