"""Binned measures with bins decided by exact fractions, and prefix sums by loops over intervals."""

from __future__ import annotations

from fractions import Fraction

from onlinecal.core.joint import JointDistribution


def _levels(gamma: JointDistribution) -> list[tuple[float, float, float, float]]:
    columns = (gamma.predictions, gamma.mass, gamma.residuals, gamma.counts)
    return list(zip(*(c.tolist() for c in columns), strict=True))


def quantile_bins(gamma: JointDistribution, m: int) -> list[int]:
    """The bin of the middle of each level's mass, in fractions."""
    counts = [Fraction(n) for _, _, _, n in _levels(gamma)]
    total = sum(counts)
    bins, below = [], Fraction(0)
    for n in counts:
        bins.append(min(m - 1, int((below + n / 2) / total * m)))
        below += n
    return bins


def gap(gamma: JointDistribution, bins: list[int]) -> float:
    """Σ_j |Σ_{i in bin j} r_i|."""
    rows = _levels(gamma)
    return sum(abs(sum(r for (_, _, r, _), b in zip(rows, bins, strict=True) if b == j)) for j in set(bins))


def span(gamma: JointDistribution, bins: list[int]) -> float:
    """Σ_j mass × (greatest − least prediction)."""
    total = 0.0
    for j in set(bins):
        inside = [(v, w) for (v, w, _, _), b in zip(_levels(gamma), bins, strict=True) if b == j]
        total += sum(w for _, w in inside) * (inside[-1][0] - inside[0][0])
    return total
