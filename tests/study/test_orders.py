"""Orders of means: none is wrong more often than said, whatever the runs share, and none is made of nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, ttest_rel

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.study.compare import adjusted, differences, fronts, lower, paired, simultaneous
from tests.report.made import cell, study

#: studies that are simulated
STUDIES = 400


def normal(rng, shape):
    """All of a run share most of their noise."""
    return rng.standard_normal(shape) + 5.0 * rng.standard_normal(shape[1])


def heavy(rng, shape):
    """Student's t with 2.5 degrees of freedom: the difference of two is symmetric, with infinite kurtosis."""
    return rng.standard_t(2.5, shape)


def skewed(rng, shape):
    """Log-normal: of the same law, so that the difference of two is symmetric, with heavy tails."""
    return np.exp(1.5 * rng.standard_normal(shape))


@pytest.mark.parametrize("noise", [normal, heavy, skewed])
@pytest.mark.parametrize("runs", [2, 3, 16])
def test_no_order_is_wrong_more_often_than_is_said(seed, noise, runs):
    """Two natures, five forecasters, of which some have the same mean, at 95 %. Of 400 studies more than isf(1e-9) of a
    binomial with 5 % say something wrong with a probability of at most 1e-9. That holds where differences are normal.
    It holds otherwise too, as Student's t is conservative for symmetric ones with heavier tails. Without the
    adjustment, which is the control, more do.
    """
    rng = np.random.default_rng([seed, runs, len(noise.__name__)])
    means = np.array([0.0, 0.0, 0.0, 0.0, 3.0])
    wrong = alone = 0
    for _ in range(STUDIES):
        pairs = [differences(means[:, None] + noise(rng, (5, runs))) for _ in range(2)]
        false = means[:, None] >= means
        wrong += any((said & false).any() for said in lower(pairs, 0.95))
        alone += any((((p.p <= 0.05) & (p.difference < 0)) & false).any() for p in pairs)
    most = binom.isf(1e-9, STUDIES, 0.05)
    assert wrong <= most
    if noise is normal:
        assert alone > most


@pytest.mark.parametrize("noise", [normal, heavy])
def test_all_intervals_hold_together(seed, noise):
    """Of ten differences at Bonferroni's level: some interval misses in at most 5 % of studies, as above."""
    rng = np.random.default_rng([seed, 7])
    means, missed, alone = np.arange(5.0), 0, 0
    truth = means[:, None] - means
    for _ in range(STUDIES):
        pairs = differences(means[:, None] + noise(rng, (5, 8)))
        off = np.abs(pairs.difference - truth)
        own = ~np.eye(5, dtype=bool)
        missed += bool((off > pairs.half_width(simultaneous(10)))[own].any())
        alone += bool((off > pairs.half_width(0.95))[own].any())
    most = binom.isf(1e-9, STUDIES, 0.05)
    assert missed <= most
    if noise is normal:
        assert alone > most


@pytest.mark.parametrize("runs", [2, 9])
def test_differences_are_those_of_paired_tests(seed, runs):
    values = normal(np.random.default_rng(seed), (3, runs))
    found = differences(values)
    for i in range(3):
        for j in range(3):
            if i != j:
                test = ttest_rel(values[i], values[j])
                assert found.p[i, j] == pytest.approx(test.pvalue, rel=1e-9)
                interval = test.confidence_interval(0.9)
                assert found.difference[i, j] - found.half_width(0.9)[i, j] == pytest.approx(interval.low)


def test_a_single_run_tells_nothing():
    found = differences(np.array([[1.0], [2.0]]))
    assert (found.p == 1.0).all()
    assert np.isposinf(found.half_width(0.5)).all()
    assert not lower([found], 0.95)[0].any()


def test_only_totals_of_the_same_games_are_compared():
    mine = study(
        *(
            cell(who, {column: [1, 2]}, nature)
            for who in "ab"
            for nature, column in (("n", "ece"), ("m", "cdl"))
        )
    )
    with pytest.raises(InvalidParameter, match="ece and cdl were not taken of the same games"):
        fronts(mine, "ece", "cdl")
    assert paired(mine, "ece")[1] == ["m: this measure was not taken"]


CANNOT = [
    ([cell(who, [1, 2], "n", sight=Sight.DRAW) for who in "ab"], "n: it may look at the forecast, so that each"),
    ([cell(who, [1, 2], "n", sight=Sight.LAW) for who in "ab"], "n: it may look at the law of the forecast"),
    ([cell(who, [1, 2], "n", sight=Sight.HISTORY) for who in "ab"], "n: it may look at past forecasts, so that"),
    ([cell(who, [1], f"n{i}") for i in range(5) for who in "ab"],
     "n2: a single run; expected two at least; and 2 more natures$"),
    ([cell(who, [1], f"n{i}") for i in range(3) for who in "ab"], "n2: a single run; expected two at least$"),
    ([cell("a", [1, 2])], "a single forecaster at T = 100; expected two at least"),
]  # fmt: skip


@pytest.mark.parametrize(("cells", "said"), CANNOT)
def test_what_cannot_be_compared_is_refused_with_the_reason(cells, said):
    with pytest.raises(InvalidParameter, match=f"nothing can be compared run by run: .*{said}"):
        paired(study(*cells), "ece")
    both = study(*cells, *(cell(who, [1, 3], "fair") for who in "ab"))
    found, refused = paired(both, "ece")
    assert set(found["nature"]) == {"fair"}
    assert len(refused) == len(both.natures) - 1


def test_identical_totals_are_no_difference():
    rng = np.random.default_rng(1)
    same = rng.standard_normal(6) * 1e6
    found = differences(np.array([same, same * (1 + 1e-15), same + 1.0]))
    assert (found.difference[0, 1], found.p[0, 1], found.half_width(0.95)[0, 1]) == (0.0, 1.0, 0.0)
    # Of six runs with one and the same difference the sign test says 2^−5.
    other = found.difference[2, 0], found.p[2, 0], found.half_width(0.95)[2, 0]
    assert other == (pytest.approx(1.0), 2.0**-5, 0.0)
    assert list(found.ranks[:2]) == [found.ranks[0]] * 2
    # Of two runs it says 1/2: an interval at a higher level has no end.
    twice = differences(np.array([[1.0, 1.0], [2.0, 2.0]]))
    assert [twice.half_width(level)[0, 1] for level in (0.5, 0.51)] == [0.0, np.inf]


@pytest.mark.parametrize("runs", [2, 3, 4, 6])
def test_differences_of_plus_or_minus_one(seed, runs):
    """Each with 1/2, so that the expected difference is 0: what is said is wrong with at most 5 %, by enumeration.

    All runs are the same with 2^(1−R), and then have no spread that Student's t could speak of.
    """
    wrong = 0.0
    for bits in range(2**runs):
        values = np.array([1.0 if bits >> i & 1 else -1.0 for i in range(runs)])
        (said,) = lower([differences(np.stack([values, np.zeros(runs)]))], 0.95)
        wrong += said.any() / 2**runs
    assert wrong <= 0.05


def test_infinite_totals_are_ranked_last_and_never_in_order():
    found = differences(np.array([[1.0, 2.0, 3.0], [np.inf, 2.0, 3.0], [np.inf] * 3]))
    assert np.isnan(found.difference[0, 1])
    assert not lower([found], 0.95)[0].any()
    assert list(found.ranks) == [1.0, 2.5, 2.5]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_adjusted_values_are_those_of_holm_on_both_sides(p):
    """By the definition: reject in order while p/2 is at most α/(2m − number rejected)."""
    k = 2
    families = [differences(np.zeros((k, 3))) for _ in p]
    for family, each in zip(families, p, strict=True):
        family.p[0, 1] = family.p[1, 0] = each
    found = [float(table[0, 1]) for table in adjusted(families)]
    for alpha in (0.01, 0.05, 0.3):
        rejected, order = set(), sorted(range(len(p)), key=lambda i: p[i])
        for at, i in enumerate(order):
            if p[i] / 2 > alpha / (2 * len(p) - at):
                break
            rejected.add(i)
        if all(abs(value - alpha) > 1e-12 for value in found):
            assert {i for i, value in enumerate(found) if value <= alpha} == rejected
