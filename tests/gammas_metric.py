"""Small Γ for property tests of the metric measures: grids with ends and ties, random reals, clusters."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution

GRID = st.sampled_from([i / 10 for i in range(11)])
DYADIC = st.integers(0, 16).map(lambda i: i / 16)
REAL = st.floats(0.0, 1.0, allow_subnormal=False)
ENDS = st.sampled_from([0.0, 1.0, 0.5, 1e-9, 1.0 - 1e-9])


@st.composite
def clusters(draw: st.DrawFn) -> float:
    """A value within 1e-6 of one of three centres."""
    return draw(st.sampled_from([0.2, 0.5, 0.81])) + 1e-6 * draw(st.floats(0.0, 1.0))


@st.composite
def gammas(draw: st.DrawFn, max_samples: int = 25) -> JointDistribution:
    """Γ of 1 to `max_samples` samples; outcomes free, or as the forecasts say, or all equal."""
    values = draw(st.sampled_from([GRID, DYADIC, REAL, ENDS, clusters(), st.one_of(GRID, REAL, clusters())]))
    p = draw(st.lists(values, min_size=1, max_size=max_samples))
    kind = draw(st.sampled_from(["free", "threshold", "equal"]))
    if kind == "free":
        y = draw(st.lists(st.integers(0, 1), min_size=len(p), max_size=len(p)))
    elif kind == "threshold":
        y = [int(v > 0.5) for v in p]
    else:
        y = [draw(st.integers(0, 1))] * len(p)
    return JointDistribution.from_samples(p, y)


@st.composite
def theoretical(draw: st.DrawFn, max_levels: int = 12) -> JointDistribution:
    """Γ from masses and means that no short list of samples has, some levels calibrated exactly."""
    v = sorted(set(draw(st.lists(st.one_of(GRID, REAL), min_size=1, max_size=max_levels))))
    n = len(v)
    w = draw(st.lists(st.floats(0.01, 1.0), min_size=n, max_size=n))
    q = draw(st.lists(st.one_of(st.none(), st.floats(0.0, 1.0)), min_size=n, max_size=n))
    return JointDistribution.from_levels(v, w, [a if b is None else b for a, b in zip(v, q, strict=True)])


ANY = st.one_of(gammas(), theoretical())


def many_levels(seed: int, k: int, bias: float = 0.0) -> JointDistribution:
    """Γ of k random distinct forecasts with outcomes of mean p + bias sin(6p)."""
    generator = np.random.default_rng(seed)
    p = generator.random(k)
    y = generator.random(k) < p + bias * np.sin(6.0 * p)
    return JointDistribution.from_samples(p, y)


def split(gamma: JointDistribution, shares: list[float]) -> JointDistribution:
    """The same Γ from a list in which each level comes in two pieces, in another order."""
    share = np.resize(np.asarray(shares), gamma.levels)
    v = np.concatenate([gamma.predictions[::-1], gamma.predictions])
    n = np.concatenate([(gamma.counts * share)[::-1], gamma.counts * (1.0 - share)])
    s = np.concatenate([(gamma.positives * share)[::-1], gamma.positives * (1.0 - share)])
    return JointDistribution.from_counts(v, n, np.minimum(s, n))
