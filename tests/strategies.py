"""Random Γ for property tests, and Γ of many levels."""

import functools
import math

import numpy as np
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution

TENTHS = [i / 10 for i in range(11)]


@functools.cache
def grid_values():
    """Values that forecasters on grids play, the ends included."""
    fractions = st.integers(1, 40).flatmap(lambda m: st.integers(0, m).map(lambda i: i / m))
    return st.sampled_from([0.0, 1.0]) | st.sampled_from(TENTHS) | fractions


@functools.cache
def real_values():
    """Any number in [0, 1], also tiny and nearly equal ones."""
    return st.floats(0.0, 1.0, allow_subnormal=False)


@st.composite
def clustered_values(draw, size):
    """Values in clumps around a few centres, between 1e-9 and 1e-2 apart."""
    centres = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]) | grid_values(), min_size=1, max_size=3))
    gap = draw(st.sampled_from([1e-9, 1e-6, 1e-3, 1e-2]))
    step = st.tuples(st.sampled_from(centres), st.integers(-5, 5))
    steps = draw(st.lists(step, min_size=1, max_size=size))
    return [min(1.0, max(0.0, centre + step * gap)) for centre, step in steps]


@st.composite
def gammas(draw, max_levels=8):
    """Γ with whole counts: on grids, at random reals, or clustered; outcomes are free, or as forecast, or all equal.

    Means q_i are fractions of small counts, hence often 0, 1 or a grid value (a tie with some v_j).
    """
    kind = draw(st.sampled_from(["grid", "real", "clustered"]))
    if kind == "clustered":
        values = draw(clustered_values(max_levels))
    else:
        source = grid_values() if kind == "grid" else real_values()
        values = draw(st.lists(source, min_size=1, max_size=max_levels))
    counts = [draw(st.sampled_from([1, 2, 5, 10]) | st.integers(1, 6)) for _ in values]
    outcomes = draw(st.sampled_from(["free", "free", "free", "as forecast", 0, 1]))
    if outcomes == "free":
        positives = [draw(st.integers(0, n)) for n in counts]
    else:
        sides = [v > 0.5 if outcomes == "as forecast" else outcomes for v in values]
        positives = [n * side for n, side in zip(counts, sides, strict=True)]
    return JointDistribution.from_counts(values, counts, positives)


@st.composite
def theoretical(draw, max_levels=12):
    """Γ from masses and means that no short list of samples has, some levels calibrated exactly."""
    values = draw(st.lists(st.sampled_from(TENTHS) | real_values(), min_size=1, max_size=max_levels))
    v = sorted({x + 0.0 for x in values})
    w = draw(st.lists(st.floats(0.01, 1.0), min_size=len(v), max_size=len(v)))
    q = [draw(st.just(p) | st.floats(0.0, 1.0)) for p in v]
    return JointDistribution.from_levels(v, w, q)


def many_levels(seed, k, bias=0.0):
    """Γ of k random distinct forecasts with outcomes of mean p + bias sin(6p)."""
    generator = np.random.default_rng(seed)
    p = generator.random(k)
    y = generator.random(k) < p + bias * np.sin(6.0 * p)
    return JointDistribution.from_samples(p, y)


#: small ones, and noise around calibration at more levels
ANY = gammas(25) | theoretical() | st.builds(many_levels, st.integers(0, 10**6), st.integers(10, 25))


@st.composite
def close_gammas(draw, max_levels=12):
    """Γ with levels next to each other, or 1e-16 to 1e-12 apart, and weights over up to 12 orders."""
    centres = draw(st.lists(st.sampled_from([0.0, 1.0, 0.5, 0.3]) | real_values(), min_size=1, max_size=3))
    gap = draw(st.sampled_from([0.0, 1e-16, 5e-16, 1e-15, 1e-13, 1e-12]))
    place = st.tuples(st.sampled_from(centres), st.integers(-4, 4))
    values = set()
    for centre, step in draw(st.lists(place, min_size=1, max_size=max_levels)):
        v = centre + step * gap
        for _ in range(abs(step) if gap == 0.0 else 0):
            v = math.nextafter(v, math.inf if step > 0 else -math.inf)
        values.add(min(1.0, max(0.0, v)) + 0.0)
    v = sorted(values)
    orders = draw(st.sampled_from([0.0, 12.0]))
    w = [10.0 ** -(orders * draw(st.floats(0.0, 1.0))) for _ in v]
    mean = st.sampled_from([0.0, 0.5, 1.0, *v]) | real_values()
    q = [draw(mean | st.floats(-1e-13, 1e-13).map(lambda d, p=p: min(1.0, max(0.0, p + d)))) for p in v]
    return JointDistribution.from_levels(v, w, q)


@st.composite
def calibrated_gammas(draw, max_levels=8):
    """Γ in which every level has q_i = v_i to the last digit."""
    values = draw(st.lists(grid_values() | real_values(), min_size=1, max_size=max_levels))
    values = sorted({v + 0.0 for v in values})
    mass = draw(st.lists(st.floats(0.01, 1.0), min_size=len(values), max_size=len(values)))
    return JointDistribution.from_levels(values, mass, values)
