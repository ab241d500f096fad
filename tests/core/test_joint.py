"""Γ: construction, exact level sets, merging, and what bad input says."""

import copy
import pickle
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlinecal as oc
from onlinecal import JointDistribution
from onlinecal.core import joint
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import encode
from onlinecal.measures import cdl, ece, smooth_ce
from onlinecal.measures.smooth_ce import isotonic_duals
from tests.strategies import calibrated_gammas, gammas

SAMPLES, KEYS = JointDistribution.from_samples, JointDistribution.from_sorted_keys
COUNTS, LEVELS = JointDistribution.from_counts, JointDistribution.from_levels
forecasts = st.integers(0, 10).map(lambda i: i / 10) | st.floats(0, 1) | st.sampled_from([0.0, -0.0, 1.0])
samples = st.lists(st.tuples(forecasts, st.integers(0, 1)), min_size=1, max_size=60)


@given(samples, st.randoms())
def test_every_way_to_gamma_is_counting(pairs, random):
    levels = {}
    for value, one in pairs:
        n, s = levels.get(value, (0, 0))
        levels[value] = n + 1, s + one
    v, cut = sorted(levels), random.randrange(len(pairs))
    n, s = zip(*(levels[value] for value in v), strict=True)
    p, y = zip(*random.sample(pairs, len(pairs)), strict=True)
    first, *others = (SAMPLES(p[part], y[part]) for part in (slice(cut), slice(cut, None)) if p[part])
    for gamma in (
        SAMPLES(*zip(*pairs, strict=True)), SAMPLES(p, y), SAMPLES(p, y, weights=np.ones(len(p))),
        COUNTS(v[::-1], n[::-1], s[::-1]), KEYS(np.sort(encode(np.array(p, float), np.array(y, float)))),
        first.merge(*others),
    ):  # fmt: skip
        assert (gamma.predictions.tolist(), gamma.counts.tolist(), gamma.positives.tolist()) == (
            v,
            [*n],
            [*s],
        )
        assert gamma.means.tolist() == [float(Fraction(a, b)) for a, b in zip(s, n, strict=True)]
        assert (gamma.weight, gamma.base_rate) == (len(pairs), pytest.approx(sum(s) / len(pairs), abs=1e-12))
    assert gamma.mass.tolist() == pytest.approx([each / len(pairs) for each in n], abs=1e-15)
    flipped = gamma.flip()
    assert (flipped.weight, flipped.base_rate) == (
        gamma.weight,
        pytest.approx(1 - gamma.base_rate, abs=1e-12),
    )
    twice = flipped.flip().predictions
    assert flipped.levels < gamma.levels or twice == pytest.approx(gamma.predictions, abs=1e-15)


def test_levels_weights_and_rounding():
    assert SAMPLES([0.3, 0.1 + 0.2, np.float32(0.3)], [0, 1, 1]).levels == 3
    rounded, moved = SAMPLES([0.26, 0.24, 0.9], [1, 0, 1]).round(4)
    assert rounded.predictions.tolist() == [0.25, 1.0]
    assert moved == pytest.approx((0.01 + 0.01 + 0.1) / 3)
    gamma = SAMPLES([0.5, 0.2, 0.5], [1, 1, 0], weights=[3, 0, 1])
    parts = gamma.predictions, gamma.counts, gamma.positives, gamma.means
    assert [part.tolist() for part in parts] == [[0.5], [4], [3], [0.75]]
    # Of two levels that are one in 1 − v.
    gamma = COUNTS([1e-17, 2e-17], [4, 2], [1, 1]).flip()
    parts = gamma.predictions, gamma.counts, gamma.positives, gamma.means
    assert [part.tolist() for part in parts] == [[1.0], [6], [4], [4 / 6]]


@pytest.mark.parametrize("m", [1, 3, 7, 49, 10**6])
def test_a_calibrated_grid_has_no_residual_at_all(m):
    i = np.arange(m + 1) if m < 1000 else np.arange(0, m + 1, 997)
    assert not COUNTS(i / m, np.full(len(i), float(m)), i).residuals.any()


@given(calibrated_gammas(), st.floats(1e-6, 1e6))
def test_levels_that_join_with_equal_means_keep_them(gamma, times):
    """A mean is kept to the last digit, not computed again from weights: what is calibrated stays so."""
    i = np.arange(gamma.levels)
    weights = 1.0 + times * i, times / (i + 1)
    mine, other = (LEVELS(gamma.predictions, each, gamma.predictions) for each in weights)
    for same in (mine.merge(), mine.merge(other), mine.merge(other, gamma)):
        assert (same.means == same.predictions).all()
        assert oc.measures.scdl(same) == oc.measures.ece(same) == 0.0
    with pytest.raises(InvalidParameter, match=f"m = {2**50 + 1}; expected an integer from 1 to {2**50}"):
        mine.round(2**50 + 1)
    rounded, _ = mine.round(2**50)
    if rounded.levels == mine.levels:
        assert (rounded.means == mine.means).all()


@given(gammas(), gammas())
def test_a_mean_of_levels_that_join_lies_between_theirs(one, two):
    merged = one.merge(two)
    for v, q in zip(merged.predictions, merged.means, strict=True):
        theirs = [*one.means[one.predictions == v], *two.means[two.predictions == v]]
        assert min(theirs) <= q <= max(theirs)


@given(st.lists(st.tuples(st.floats(1e-12, 1.0), st.booleans()), min_size=1, max_size=300))
def test_sums_of_weights_are_rounded_as_stated(rows):
    w, y = zip(*rows, strict=True)
    gamma = SAMPLES([0.5] * len(w), y, weights=w)
    ones = [a for a, one in rows if one]
    for found, terms in ((gamma.counts[0], w), (gamma.positives[0], ones)):
        exactly = sum(map(Fraction, terms), Fraction(0))
        assert abs(Fraction(float(found)) - exactly) <= len(w) * Fraction(1, 2**53) * exactly


PARTS = ("predictions", "counts", "positives", "means", "mass", "residuals")
GIVEN = np.array([0.25, 0.75]), np.array([4.0, 2.0]), np.array([1.0, 1.0])
#: name → Γ of predictions, counts and positives
FROM = {
    "samples": lambda v, n, s: SAMPLES(v, s),
    "weighted": lambda v, n, s: SAMPLES(v, s, weights=n),
    "counts": COUNTS,
    "unsorted": lambda v, n, s: COUNTS(v[::-1], n[::-1], s[::-1]),
    "levels": LEVELS,
}
COUNTED = COUNTS(*GIVEN)
COPIES = [copy.copy(COUNTED), copy.deepcopy(COUNTED), pickle.loads(pickle.dumps(COUNTED))]
MADE = [
    *(make(*GIVEN) for make in FROM.values()), KEYS(np.sort(encode(GIVEN[0], GIVEN[2]))), COUNTED.merge(LEVELS(*GIVEN)),
    COUNTED.round(8)[0], COUNTED.round(1)[0], COUNTED.flip(), COUNTS([1e-17, 2e-17], *GIVEN[1:]).flip(), *COPIES,
]  # fmt: skip


@pytest.mark.parametrize("gamma", MADE, ids=range(len(MADE)))
def test_what_gamma_hands_out_cannot_be_written(gamma):
    for part in PARTS:
        array, before = getattr(gamma, part), getattr(gamma, part).tolist()
        with pytest.raises(ValueError, match="read-only"):
            array *= 3.0
        assert getattr(gamma, part).tolist() == before
        with pytest.raises(AttributeError):
            setattr(gamma, part, before)
        if gamma in COPIES:
            assert before == getattr(COUNTED, part).tolist()


@pytest.mark.parametrize("make", FROM.values(), ids=FROM)
def test_arrays_that_were_given_stay_ones_own(make):
    """They can still be written, and Γ does not change with them, whichever memory they have."""
    given = [array.copy() for array in GIVEN]
    gamma = make(*given)
    parts = [getattr(gamma, part) for part in PARTS]
    before = [part.tolist() for part in parts]
    for array in given:
        assert not any(np.shares_memory(array, part) for part in parts)
        array[:] = 0.125
    assert [part.tolist() for part in parts] == before


def weighted(*weights):
    return SAMPLES([0.1, 0.2], [0, 1], weights=weights)


@pytest.mark.parametrize(
    ("make", "arguments", "said"),
    [
        *((SAMPLES, given, said) for given, said in (
            (([], []), "empty"), (([0.1, np.nan], [0, 1]), r"p\[1\] = nan is a missing value"),
            (([0.1, 1 + 1e-12], [0, 1]), r"p\[1\] = 1.000000000001 is outside"), (([-1e-300], [0]), "outside"),
            (([0.0, 1.0, 2.0], [0, 1, 1]), r"p\[2\] = 2\.0 is outside"),
            (([np.inf], [0]), "outside"), (([0.5], [0.5]), r"y\[0\] = 0.5 is not an outcome"),
            (([1, 0], [0.3, 0.2]), "swapped"), (([0.5], [np.nan]), r"y\[0\] = nan is a missing value"),
            (([0.5, 0.5], [1]), "2 values and y has 1"), (([[0.5]], [1]), r"shape \(1, 1\)"))),
        *((weighted, w, "weights") for w in ([1, -1], [0, 0], [np.nan, 1], [np.inf, 1], [1], [1e308, 1e308])),
        (COUNTS, ([0.5], [1], [2]), "positives"), (COUNTS, ([0.5], [1], [-1]), "positives"),
        (COUNTS, ([0.5], [-1], [0]), "counts"), (COUNTS, ([0.5, 0.6], [1], [1]), "as many"),
        (COUNTS, ([], [], []), "empty"), (COUNTS, ([0.5], [0], [0]), "positive finite total"),
        (LEVELS, ([0.5, 0.5], [1, 1], [0, 0]), "increase"), (LEVELS, ([0.5], [1], [1.5]), "means"),
        (LEVELS, ([0.2, 0.5], [1, 0], [0, 0]), r"mass\[1\] is 0; expected positive"),
    ],
)  # fmt: skip
def test_bad_input_is_named(make, arguments, said):
    with np.errstate(over="ignore"), pytest.raises(InvalidData, match=said):
        make(*arguments)


def test_memory_of_gamma_and_of_measures_of_distinct_forecasts(monkeypatch):
    """In bytes of the history, 9 a round; of what is allocated, a quarter is never written."""
    monkeypatch.setattr(joint, "KEPT", 10**5)
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    y = (rng.random(len(p)) < p).astype(np.uint8)
    measures, few = (ece, smooth_ce, cdl), SAMPLES(p[:9], y[:9])
    for measure in measures:
        measure(few)  # what is compiled takes memory too
    tracemalloc.start()
    gamma, most = SAMPLES(p, y), []
    made = tracemalloc.get_traced_memory()
    for measure in measures:
        tracemalloc.reset_peak()
        measure(gamma)
        most.append(tracemalloc.get_traced_memory()[1] / (p.nbytes + y.nbytes))
    tracemalloc.stop()
    assert gamma.levels == len(p)
    assert made[0] < 2.8 * (p.nbytes + y.nbytes)
    assert made[1] < 3.7 * (p.nbytes + y.nbytes)
    assert max(most[:2]) < 4
    assert most[2] < 10
    # Each way to the same sum, to the last bit.
    assert ece(gamma) == np.abs(gamma.residuals).sum()
    assert gamma.residuals is not gamma.residuals
    assert few.residuals is few.residuals
    assert smooth_ce(gamma) == isotonic_duals(gamma.predictions, gamma.residuals[None, :])[0]
