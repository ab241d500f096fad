"""Growth exponents: found where they are known, with intervals that cover; rates that are broken, or seem to be."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from scipy.stats import t as student

from onlinecal.core.errors import InvalidParameter
from onlinecal.growth import fit_growth, slope, trend
from onlinecal.growth.outgrowth import outgrowth
from onlinecal.growth.words import legend, line, lines
from tests.coverage import LAWS, NOISES, RUNS, mean_exponent, random_walks, simulate

T = np.array([1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000], dtype=float)
#: of false failures, for each count of covering intervals
RATE = 1e-9


def exact(total, runs=2):
    """The growth of totals without noise."""
    return fit_growth(T, np.repeat(total(T)[:, None], runs, axis=1), fresh=True)


def enough(fits, share):
    """The least number of fits that cover, but with probability RATE, if each does with probability `share` or more."""
    return binom.ppf(RATE, fits, share)


# ---------------------------------------------------------------- by definition


@pytest.mark.parametrize("runs", [1, 2, 16])
@pytest.mark.parametrize("alpha", [-0.3, 0.0, 0.5, 1.0])
def test_a_power_law_is_found(alpha, runs):
    growth = exact(lambda t: 3.0 * t**alpha, runs)
    assert (growth.value, growth.early, growth.late) == pytest.approx((alpha,) * 3, abs=1e-12)
    assert growth.lower - 1e-12 <= alpha <= growth.upper + 1e-12
    # As wide as an error of 1e-9 of each total makes it: by Student's t of many degrees of freedom, or of one.
    x = np.log(T)
    least, most = (2e-9 * student.ppf(0.975, of) / np.linalg.norm(x - x.mean()) for of in (1e9, 1))
    assert 0.99 * least < growth.upper - growth.lower < 1.01 * most
    said = growth.bent, growth.clear, growth.remark, growth.points, growth.runs
    assert said == (False, True, "", 7, runs)


def estimate(weights, basis, means, left_out, correlation, fresh, level):
    """Σ weights·mean, its standard error and the half of its interval, as the docstring of `fit_growth` has them.

    The variance is the larger of two: from the distances to the fitted line or parabola, and the jackknife's.
    """
    rest = np.eye(len(means)) - basis @ np.linalg.pinv(basis)
    found = []
    if np.trace(rest) > 0.5:
        trace, again = np.trace(rest @ correlation), rest @ correlation @ rest @ correlation
        scale = (rest @ means) @ (rest @ means) / trace
        found.append((scale * weights @ correlation @ weights, trace**2 / np.trace(again)))
    runs = left_out.shape[1]
    if runs > 1:
        parts = weights[:, None] * left_out if fresh else (weights @ left_out)[None]
        each = (runs - 1) / runs * ((parts - parts.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
        found.append((each.sum(), (runs - 1) * each.sum() ** 2 / (each**2).sum()))
    variance, freedom = max(found)
    return weights @ means, variance**0.5, student.ppf((1 + level) / 2, freedom) * variance**0.5, freedom


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize(("n", "runs"), [(3, 1), (4, 5), (7, 1), (7, 4), (8, 12)])
@pytest.mark.parametrize("noise", [(0.3, 0.02), (0.01, 0.4)])
def test_slopes_and_intervals_are_those_of_their_definition(fresh, n, runs, noise, seed):
    """At uneven T; of `noise` that all runs share the residuals are the larger, of their own the jackknife."""
    rng = np.random.default_rng([seed, n, runs])
    times = np.cumsum(rng.integers(5, 500, n)).astype(float)
    shared, own = (
        scale * rng.standard_normal(size) for scale, size in zip(noise, ((n, 1), (n, runs)), strict=True)
    )
    totals, level = times[:, None] ** 0.5 * np.exp(shared + own), 0.9
    growth = fit_growth(times, totals, fresh=fresh, level=level)
    x, means = np.log(times), np.log(totals.mean(axis=1))
    half = n // 2 + 1
    slopes = [
        np.polyfit(x[part], means[part], 1)[0] for part in (slice(None), slice(half), slice(n - half, n))
    ]
    assert (growth.value, growth.early, growth.late) == pytest.approx(tuple(slopes))
    off = means - np.polyval(np.polyfit(x, means, 1), x)
    assert growth.scatter == pytest.approx(np.sqrt((off**2).mean()))
    left_out = np.log(np.stack([np.delete(totals, r, axis=1).mean(axis=1) for r in range(runs)], axis=1)) if (
        runs > 1
    ) else np.zeros((n, 0))  # fmt: skip
    correlation = np.eye(n) if fresh else np.exp(-np.abs(x[:, None] - x) / 3)
    given = means, left_out, correlation, fresh, level
    straight = np.vander(x, 2)
    _, _, wide, _ = estimate(np.linalg.pinv(straight)[0], straight, *given)
    assert (growth.lower, growth.upper) == pytest.approx((slopes[0] - wide, slopes[0] + wide), rel=1e-6)
    assert slope(times, totals, fresh=fresh, level=level) == pytest.approx(
        (growth.value, growth.lower, growth.upper)
    )
    if n == 3 and runs == 1:  # a parabola through three points leaves nothing to tell its error by
        assert growth.onward == (-np.inf, np.inf)
        return
    curved = np.vander(x, 3)
    square, steep, _ = np.linalg.pinv(curved)
    value, error, _, freedom = estimate(square, curved, *given)
    assert growth.bend == pytest.approx(2 * student.sf(abs(value) / error, freedom), rel=1e-5)
    value, _, wide, _ = estimate(steep + 2 * x[-1] * square, curved, *given)
    assert growth.onward == pytest.approx((value - wide, value + wide), rel=1e-5)


def test_a_curve_bends_and_its_interval_holds_the_mean_exponent():
    growth = exact(lambda t: np.sqrt(t) + 30)
    assert growth.bent
    assert growth.lower < mean_exponent(T, np.sqrt(T) + 30) < growth.upper
    assert growth.early < growth.value < growth.late < 0.5
    assert growth.bow in growth.remark
    assert str(growth) == f"{growth.value:.2f} {growth.interval}, bends {growth.bow}"
    assert lines(growth) == [
        f"T^{growth.value:.2f}",
        growth.interval,
        f"bends {growth.early:.2f}…{growth.late:.2f}",
    ]
    little = exact(lambda t: np.exp(0.5 * np.log(t) + 1e-3 * np.log(t / 3e4) ** 2))  # not worth a word
    assert (little.bend < 1e-9, little.bent, little.remark) == (True, False, "")
    # As many digits as tell the two slopes apart.
    assert exact(lambda t: t**0.5 * (1 + 0.01 * (t / 1000) ** -0.5)).bow == "0.498…0.500"


def test_each_statement_has_its_edge():
    """A bend of 1 % of the totals, an interval of width 1, a difference of 1e-9, a p-value below 1 − level."""
    straight = replace(exact(np.sqrt), lower=0.2, upper=0.8, onward=(0.3, 0.7), bend=0.5, early=0.4, late=0.6)
    edge = 1 - 0.95
    for change, bent in (
        ({"bend": 0.0499, "scatter": 0.0101}, True), ({"bend": 0.0499, "scatter": 0.01}, False),
        ({"bend": edge, "scatter": 0.0101}, False),
    ):  # fmt: skip
        assert replace(straight, **change).bent == bent
    assert [replace(straight, lower=0.0, upper=upper).clear for upper in (1.0, 1.001)] == [True, False]
    for exponent, above, below in (
        (0.2, False, False), (0.2 - 1.05e-9, True, False), (0.8 + 1.05e-9, False, True)
    ):  # fmt: skip
        assert (straight.above(exponent), straight.below(exponent)) == (above, below)
    assert not replace(straight, lower=1e-9).above(0.0)
    assert not replace(straight, upper=-1e-9).below(0.0)
    cases = (
        ({}, 0.1, (True, False)), ({"onward": (0.1, 0.7)}, 0.1, (False, False)), ({}, 0.9, (False, True)),
        ({"onward": (0.3, 0.9)}, 0.9, (False, False)), ({"bend": 0.01}, 0.1, (True, False)),
        ({"bend": 0.01}, 0.9, (False, False)), ({"bend": 0.01, "early": 0.7}, 0.1, (False, False)),
        ({"bend": 0.01, "early": 0.7}, 0.9, (False, True)), ({"bend": edge, "early": 0.7}, 0.1, (True, False)),
        ({"bend": edge}, 0.9, (False, True)), ({"bend": 0.01, "early": 0.6}, 0.1, (True, False)),
        ({"bend": 0.01, "early": 0.6}, 0.9, (False, True)), ({"onward": (1e-9, 0.7)}, 0.0, (False, False)),
        ({"lower": -0.8, "upper": -0.2, "onward": (-0.7, -1e-9)}, 0.0, (False, False)),
    )  # fmt: skip
    for change, exponent, stays in cases:
        one = replace(straight, **change)
        assert (one.stays_above(exponent), one.stays_below(exponent)) == stays


@pytest.mark.parametrize("fresh", [True, False])
def test_no_exponent_where_there_is_none(fresh):
    for totals in (np.zeros(7), np.full(7, np.inf), -np.ones(7), np.arange(7) < 6.0):
        assert fit_growth(T, totals[:, None], fresh=fresh) is None
    assert fit_growth(T[:2], np.ones((2, 3)), fresh=fresh) is None
    # Between two T one run has a slope, and no interval.
    assert slope(T[:2], T[:2, None] ** 0.3, fresh=fresh) == (pytest.approx(0.3), -np.inf, np.inf)
    totals = np.zeros((7, 3))
    totals[:, 0] = T  # a single run has the whole mean
    growth = fit_growth(T, totals, fresh=fresh)
    assert (growth.upper, growth.clear, lines(growth)) == (np.inf, False, ["T^?"])
    assert growth.remark.startswith("too few or too noisy totals")


def test_legends_explain_the_signs_that_occur():
    straight, curved = exact(np.sqrt), exact(lambda t: np.sqrt(t) + 30)
    wide = fit_growth([10, 32, 100, 316], [[0.14], [0.87], [4.3], [3.1]], fresh=False)
    assert line(straight) == "0.50 [0.50, 0.50]"
    signs = "T^?: ", "bends a…b: ", "–: "
    for growth, sign in zip((wide, curved, None), signs, strict=True):
        assert [s for s in signs if s in "; ".join(legend([straight, growth]))] == [sign]
    assert "one in twenty" in legend([straight, curved])[0]
    assert "one in twenty" not in legend([straight])[0]
    assert legend([]) == []
    assert "along one game" not in legend([straight])[0]
    assert "along one game, over their last two decades" in legend([straight, replace(straight, cut=True)])[0]


def test_a_growth_as_data_and_in_words():
    growth = exact(lambda t: np.sqrt(t) + 30)
    data = growth.as_json()
    assert data["onward"] == [*growth.onward]
    assert data["remark"] == growth.remark
    assert "cut" not in data
    assert (data["value"], data["lower"], data["points"], data["runs"]) == (growth.value, growth.lower, 7, 2)
    assert repr(growth) == f"Growth({growth})"
    # Slopes that four digits do not tell apart have two.
    assert replace(growth, early=0.5, late=0.50001).bow == "0.50…0.50"
    assert replace(growth, early=0.5, late=0.5003).bow == "0.5000…0.5003"


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        *((lambda t=t, y=y: fit_growth(t, y, fresh=True), r"expected \(n,\) and \(n, runs\)")
          for t, y in ((T, T), (T[:, None], T[:, None]), (T, T[1:, None]), (T, np.ones((7, 0))))),
        (lambda: trend(T, T[1:, None], np.sqrt), r"expected \(n,\) and \(n, runs\)"),
        *((lambda t=t: fit_growth(t, np.ones((3, 1)), fresh=True), "not positive and ascending")
          for t in ([0, 1, 2], [1, 2, 2], [3, 2, 1])),
        *((lambda at=at: fit_growth(T, np.ones((7, 1)), fresh=True, level=at), f"level = {at}; expected")
          for at in (95, 0.0, 1.0)),
        *((lambda b=b: trend(T, np.ones((7, 1)), b), "expected a positive number at each")
          for b in (np.negative, 0.0 * T, np.inf * T, T[:3])),
    ],
)  # fmt: skip
def test_bad_input(ask, said):
    with pytest.raises(InvalidParameter, match=said):
        ask()


def test_the_exponent_of_outgrowth_is_that_of_its_definition(seed):
    """The slope of log(mean/rate), with Student's interval by the delta method and Satterthwaite's freedom."""
    rng = np.random.default_rng([seed, 9])
    times, many = [100, 300, 1600], [4, 6, 9]
    runs = [t**0.7 * np.exp(0.1 * rng.standard_normal(n)) for t, n in zip(times, many, strict=True)]
    means = np.array([y.mean() for y in runs])
    value, lower, upper = outgrowth(times, runs, np.sqrt, 0.01)
    assert value == pytest.approx(np.polyfit(np.log(times), np.log(means / np.sqrt(times)), 1)[0])
    # What the slope weighs each logarithm by.
    weights = np.array([np.polyfit(np.log(times), unit, 1)[0] for unit in np.eye(3)])
    each = weights**2 * np.array([y.var(ddof=1) / len(y) for y in runs]) / means**2
    freedom = each.sum() ** 2 / (each**2 / (np.array(many) - 1)).sum()
    half = student.isf(0.01, freedom) * np.sqrt(each.sum())
    assert (lower, upper) == pytest.approx((value - half, value + half))


def test_outgrowth_that_is_certain_or_unknown():
    certain = outgrowth([100, 400], [[20.0, 20.0], [80.0, 80.0]], np.sqrt, 0.01)
    assert certain == (pytest.approx(0.5),) * 3
    assert certain[1] == certain[0] == certain[2]
    one = np.array([1.0, 2.0])
    for totals in ([one, one[:1]], [0.0 * one, one], [one, -one], [one, np.inf * one]):
        value, *ends = outgrowth([100, 400], totals, np.sqrt, 0.01)
        assert np.isnan(value)
        assert ends == [-np.inf, np.inf]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_intervals_of_every_law_cover(law, seed):
    """2,000 fits a law, 400 of each number of runs: the mean exponent is covered with 94 % or more.

    A false failure has probability RATE if that is so. The control is a quarter as wide: 70 % or less of normal errors.
    """
    runs, off, half, _ = simulate(law, np.random.default_rng(seed), 20)
    covered, narrow = off <= half + 1e-9, off <= half / 4 + 1e-9
    assert covered.sum() >= enough(len(runs), 0.94)
    assert narrow.sum() < enough(len(runs), 0.94)
    for r in RUNS:
        assert covered[runs == r].sum() >= enough((runs == r).sum(), 0.92)


@pytest.mark.parametrize("runs", [1, 4, 64])
def test_intervals_cover_and_narrow_ones_do_not(runs, seed):
    """√T with 50 % noise, 400 fits of each number of runs. A third as wide they would cover 77 % or less."""
    rng = np.random.default_rng([seed, runs])
    fits = [fit_growth(T, T[:, None] ** 0.5 * NOISES["50 %"](rng, (7, runs)), fresh=True) for _ in range(400)]
    covered = sum(g.lower <= 0.5 <= g.upper for g in fits)
    narrow = sum(abs(g.value - 0.5) <= (g.upper - g.lower) / 6 for g in fits)
    assert covered >= enough(400, 0.93)
    assert narrow < enough(400, 0.93)


def test_random_walks_are_covered_and_not_if_taken_for_fresh_games(seed):
    """The total of a constant forecaster against a fair coin, one run read on the way."""
    times, totals = random_walks(np.random.default_rng(seed), 600)
    for fresh in (False, True):
        fits = [fit_growth(times, path[:, None], fresh=fresh) for path in totals.T]
        covered = [g.lower <= 0.5 <= g.upper for g in fits if g is not None]
        assert (sum(covered) >= enough(len(covered), 0.93)) is not fresh


def test_runs_with_an_exponent_each_are_covered(seed):
    """Along one game every run is straight: no residual tells how much they differ, but they do themselves.

    Their expectation is T^{1/2} e^{s² log² T / 2}, so that the mean exponent is a little larger.
    """
    rng = np.random.default_rng(seed)
    times = np.round(np.geomspace(100, 10_000, 17))
    aim = mean_exponent(times, times**0.5 * np.exp(0.05**2 * np.log(times) ** 2 / 2))
    covered = 0
    for _ in range(300):
        growth = fit_growth(times, times[:, None] ** rng.normal(0.5, 0.05, 16), fresh=False)
        covered += growth.lower <= aim <= growth.upper
    assert covered >= enough(300, 0.9)


#: total, bound, whether it stays above it, and whether it stays below
RATIOS = {
    "grows": (lambda t: t**0.6, np.sqrt, True, False),
    "falls": (lambda t: t**0.4, np.sqrt, False, True),
    "is the rate": (lambda t: np.sqrt(t) * np.log(t), lambda t: np.sqrt(t) * np.log(t), False, False),
    "comes to the rate from below": (lambda t: t**0.5 * (2 - 5 / t**0.2), np.sqrt, False, False),
    "comes to the rate from above": (lambda t: t**0.5 + 30, np.sqrt, False, False),
    "falls at first": (lambda t: 10 + t / 1000, lambda t: t**0.54, False, False),
}


@pytest.mark.parametrize(("total", "bound", "above", "below"), RATIOS.values(), ids=RATIOS)
def test_a_ratio_that_grows_levels_off_or_falls(total, bound, above, below, seed):
    """Without noise, and with 5 %, where one in forty is claimed wrongly at most: more than 20 of 100 never are."""
    rng, claims = np.random.default_rng(seed), np.zeros(2)
    ratio = trend(T, np.repeat(total(T)[:, None], 2, axis=1), bound)
    assert (ratio.stays_above(0), ratio.stays_below(0)) == (above, below)
    assert trend(T, np.repeat(total(T)[:, None], 2, axis=1), [bound(t) for t in T]) == ratio
    for _ in range(100):
        noisy = trend(T, total(T)[:, None] * NOISES["5 %"](rng, (7, 16)), bound)
        claims += noisy.stays_above(0), noisy.stays_below(0)
    assert (claims[0] > 20, claims[1] > 20) == (above, below)
