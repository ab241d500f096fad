"""Outcomes drawn as the forecasts say, reduced to groups of neighbouring levels where there are many levels."""

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.logs.resampling import Resample, grouped

#: levels, at most, at which drawn outcomes are measured; more are put into this number of groups of equal weight
MOST_DRAWN, GROUPS = 30_000, 4096
# With fewer samples a level, outcomes are drawn sample by sample, which is quicker than level by level.
_REPEATED = 8


class Reference:
    """Γ with each outcome drawn as 1 with the probability forecast, to compare with `gamma`.

    Above `MOST_DRAWN` levels both have the levels of `GROUPS` groups, each at its mean forecast. Outcomes are drawn at
    the forecasts themselves. So a rank among draws is exact for any statistic.
    """

    def __init__(self, resample: Resample) -> None:
        self.resample, whole = resample, resample.gamma
        self.gamma, self.moved, self.grouped = whole, 0.0, whole.levels > MOST_DRAWN
        # For samples drawn one by one: their chances, the first of each group, and two buffers for the draws.
        self._single: tuple[Floats, NDArray[np.int64], Floats, NDArray[np.bool_]] | None = None
        if self.grouped:
            v = whole.predictions
            self.gamma, self.starts = grouped(whole, GROUPS)  # the first level of each group
            wide = np.repeat(self.gamma.predictions, np.diff(np.append(self.starts, len(v))))
            self.moved = float(whole.mass @ np.abs(v - wide))
            if resample.weights is None and whole.weight <= _REPEATED * whole.levels:
                single = np.repeat(v, resample.counts)
                first = np.concatenate(([0], np.cumsum(resample.counts)))[self.starts]
                self._single = single, first, np.empty(len(single)), np.empty(len(single), dtype=bool)

    def draw(self, generator: np.random.Generator) -> JointDistribution:
        """One more draw."""
        if not self.grouped:
            return self.resample.calibrated(generator)
        if self._single is not None:
            chances, first, drawn, below = self._single
            np.less(generator.random(out=drawn), chances, out=below)
            # As numbers of a byte, which are added several times as fast.
            ones = np.add.reduceat(below.view(np.int8), first, dtype=np.int64)
            counts, positives = self.gamma.counts, ones.astype(np.float64)
        else:
            gamma = self.resample.calibrated(generator)
            counts, positives = (np.add.reduceat(x, self.starts) for x in (gamma.counts, gamma.positives))
        return JointDistribution.from_sorted_levels(self.gamma.predictions, counts, positives)
