"""Random Γ for property tests."""

from __future__ import annotations

import functools
import math

from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution

TENTHS = [i / 10 for i in range(11)]


@functools.cache
def grid_values() -> st.SearchStrategy[float]:
    """Values that forecasters on grids play, the ends included."""
    return st.one_of(
        st.sampled_from([0.0, 1.0]),
        st.sampled_from(TENTHS),
        st.integers(1, 40).flatmap(lambda m: st.integers(0, m).map(lambda i: i / m)),
    )


@functools.cache
def real_values() -> st.SearchStrategy[float]:
    """Any number in [0, 1], the very small and the nearly equal not excepted."""
    return st.floats(0.0, 1.0, allow_subnormal=False)


@st.composite
def clustered_values(draw: st.DrawFn, size: int) -> list[float]:
    """Values in clumps around a few centres, between 1e-9 and 1e-2 apart."""
    centres = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]) | grid_values(), min_size=1, max_size=3))
    gap = draw(st.sampled_from([1e-9, 1e-6, 1e-3, 1e-2]))
    step = st.tuples(st.sampled_from(centres), st.integers(-5, 5))
    steps = draw(st.lists(step, min_size=1, max_size=size))
    return [min(1.0, max(0.0, centre + step * gap)) for centre, step in steps]


@st.composite
def gammas(draw: st.DrawFn, max_levels: int = 8, max_count: int = 6) -> JointDistribution:
    """Γ with whole counts: on grids with 0, 1 and k/10, at random reals, or clustered; one level too.

    Means q_i are fractions of small counts, hence often 0, 1 or a grid value (a tie with some v_j).
    """
    kind = draw(st.sampled_from(["grid", "real", "clustered"]))
    if kind == "clustered":
        values = draw(clustered_values(max_levels))
    else:
        source = grid_values() if kind == "grid" else real_values()
        values = draw(st.lists(source, min_size=1, max_size=max_levels))
    counts, positives = [], []
    for _ in values:
        n = draw(st.sampled_from([1, 2, 5, 10]) | st.integers(1, max_count))
        counts.append(n)
        positives.append(draw(st.integers(0, n)))
    return JointDistribution.from_counts(values, counts, positives)


@st.composite
def close_gammas(draw: st.DrawFn, max_levels: int = 12) -> JointDistribution:
    """Γ whose levels are numbers next to each other, or 1e-16 to 1e-12 apart, with weights over up to 12 orders."""
    centres = draw(st.lists(st.sampled_from([0.0, 1.0, 0.5, 0.3]) | real_values(), min_size=1, max_size=3))
    gap = draw(st.sampled_from([0.0, 1e-16, 5e-16, 1e-15, 1e-13, 1e-12]))
    places = draw(
        st.lists(st.tuples(st.sampled_from(centres), st.integers(-4, 4)), min_size=1, max_size=max_levels)
    )
    values = set()
    for centre, step in places:
        v = centre + step * gap
        for _ in range(abs(step) if gap == 0.0 else 0):
            v = math.nextafter(v, math.inf if step > 0 else -math.inf)
        values.add(min(1.0, max(0.0, v)) + 0.0)
    v = sorted(values)
    orders = draw(st.sampled_from([0.0, 12.0]))
    w = [10.0 ** -(orders * draw(st.floats(0.0, 1.0))) for _ in v]
    means = st.sampled_from([0.0, 1.0]) | st.floats(0.0, 1.0) | st.none() | st.floats(-1e-13, 1e-13)
    q = []
    for p in v:
        mean = draw(means)
        q.append(p if mean is None else min(1.0, max(0.0, p + mean)) if abs(mean) <= 1e-13 else mean)
    return JointDistribution.from_levels(v, w, q)


@st.composite
def calibrated_gammas(draw: st.DrawFn, max_levels: int = 8) -> JointDistribution:
    """Γ in which every level has q_i = v_i to the last digit."""
    values = draw(
        st.lists(st.one_of(grid_values(), real_values()), min_size=1, max_size=max_levels, unique=True)
    )
    values = sorted({v + 0.0 for v in values})
    mass = draw(st.lists(st.floats(0.01, 1.0), min_size=len(values), max_size=len(values)))
    return JointDistribution.from_levels(values, mass, values)
