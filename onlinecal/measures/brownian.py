"""Laws of Brownian motion on [0, 1], which sums of residuals follow where many forecasts are calibrated."""

from __future__ import annotations

import math

# Where the series are 1 to the last digit, and summed over few terms elsewhere.
_SMALL = 0.15


def largest_exceeds(x: float) -> float:
    """P(max |B| ≥ x) = 4 Σ_{k ≥ 0} (−1)^k P(Z ≥ (2k + 1) x), by reflection (Feller II, §X.5)."""
    if x <= _SMALL:
        return 1.0
    terms = ((-1.0) ** k * _tail((2 * k + 1) * x) for k in range(math.ceil(20.0 / x)))
    return min(max(4.0 * math.fsum(terms), 0.0), 1.0)


def range_exceeds(x: float) -> float:
    """P(max B − min B ≥ x) = 8 Σ_{k ≥ 1} (−1)^{k−1} k P(Z ≥ k x) (Feller 1951)."""
    if x <= _SMALL:
        return 1.0
    terms = ((-1.0) ** (k - 1) * k * _tail(k * x) for k in range(1, math.ceil(40.0 / x)))
    return min(max(8.0 * math.fsum(terms), 0.0), 1.0)


def _tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))
