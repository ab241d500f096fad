"""Binned measures with bins decided by exact fractions, and prefix sums by loops over intervals."""

from __future__ import annotations

from fractions import Fraction

from onlinecal.core.joint import JointDistribution


def _levels(gamma: JointDistribution) -> list[tuple[float, float, float, float]]:
    columns = (gamma.predictions, gamma.mass, gamma.residuals, gamma.counts)
    return list(zip(*(c.tolist() for c in columns), strict=True))


def width_bins(gamma: JointDistribution, m: int) -> list[int]:
    """The bin of each level: the last j < m with (the float of) j/m ≤ v."""
    return [max(j for j in range(m) if j / m <= v) for v, _, _, _ in _levels(gamma)]


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


def interval_ce(gamma: JointDistribution) -> float:
    """Interval calibration error over all partitions of the levels into contiguous groups."""
    rows = _levels(gamma)
    best = [0.0]
    for b in range(1, len(rows) + 1):
        costs = []
        for a in range(b):
            group = rows[a:b]
            cost = abs(sum(r for _, _, r, _ in group))
            cost += sum(w for _, w, _, _ in group) * (group[-1][0] - group[0][0])
            costs.append(best[a] + cost)
        best.append(min(costs))
    return best[-1]


def cutoff_ce(gamma: JointDistribution) -> float:
    """The largest |bias| over all intervals of levels."""
    r = [row[2] for row in _levels(gamma)]
    return max([0.0] + [abs(sum(r[a:b])) for a in range(len(r)) for b in range(a + 1, len(r) + 1)])


def step_ce(gamma: JointDistribution) -> float:
    """The largest |bias| over all lower sets of levels."""
    r = [row[2] for row in _levels(gamma)]
    return max(abs(sum(r[:b])) for b in range(len(r) + 1))
