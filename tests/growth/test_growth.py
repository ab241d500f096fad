"""Growth exponents: found where they are known, with intervals that cover; rates that are broken, or seem to be."""

import numpy as np
import pytest
from scipy.stats import binom

from onlinecal.core.errors import InvalidParameter
from onlinecal.growth import fit_growth, slope, trend
from onlinecal.growth.words import legend, line, lines
from tests.coverage import LAWS, NOISES, RUNS, mean_exponent, random_walks, simulate

T = np.array([1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000], dtype=float)
#: of false failures, for each count of covering intervals
RATE = 1e-9
#: totals that tell no exponent
FEW = [10, 32, 100, 316], [[0.14], [0.87], [4.3], [3.1]]


def exact(total, runs=2, times=T, **options):
    """The growth of totals without noise."""
    return fit_growth(times, np.repeat(total(times)[:, None], runs, axis=1), fresh=True, **options)


def enough(fits, share):
    """The least number of fits that cover, but with probability RATE, if each does with probability `share` or more."""
    return binom.ppf(RATE, fits, share)


# ---------------------------------------------------------------- without noise


@pytest.mark.parametrize("runs", [1, 2, 16])
@pytest.mark.parametrize("alpha", [-0.3, 0.0, 1 / 3, 0.5, 2 / 3, 1.0])
def test_a_power_law_is_found(alpha, runs):
    growth = exact(lambda t: 3.0 * t**alpha, runs)
    assert growth.value == pytest.approx(alpha, abs=1e-12)
    assert growth.lower - 1e-12 <= alpha <= growth.upper + 1e-12
    assert growth.upper - growth.lower < 1e-6
    assert (growth.bent, growth.remark, growth.points, growth.runs) == (False, "", 7, runs)
    assert (growth.early, growth.late) == pytest.approx((alpha, alpha), abs=1e-12)


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("n", [3, 4, 7, 8])
def test_slopes_are_those_of_least_squares(fresh, n, seed):
    """Of all T, of the first half and of the last, by NumPy's own fit, at uneven T."""
    rng = np.random.default_rng([seed, n])
    times = np.cumsum(rng.integers(5, 500, n)).astype(float)
    totals = times[:, None] ** 0.5 * np.exp(0.5 * rng.standard_normal((n, 1)))
    growth, x, y = fit_growth(times, totals, fresh=fresh), np.log(times), np.log(totals[:, 0])
    half = n // 2 + 1
    slopes = [np.polyfit(x[part], y[part], 1)[0] for part in (slice(None), slice(half), slice(n - half, n))]
    assert (growth.value, growth.early, growth.late) == pytest.approx(tuple(slopes))
    assert growth.scatter == pytest.approx(np.sqrt(((y - np.polyval(np.polyfit(x, y, 1), x)) ** 2).mean()))
    pair = slope(times[:2], totals[:2], fresh=fresh)
    assert pair[0] == pytest.approx(np.diff(y[:2])[0] / np.diff(x[:2])[0])
    assert pair[1:] == (-np.inf, np.inf)  # a single run between two T


def test_of_one_run_at_independent_times_it_is_the_textbook_interval(seed):
    """That of the slope of a simple regression, as scipy.stats has it."""
    from scipy.stats import linregress, t

    totals = T**0.5 * np.exp(0.1 * np.random.default_rng(seed).standard_normal(7))
    growth, known = fit_growth(T, totals[:, None], fresh=True), linregress(np.log(T), np.log(totals))
    half = t.ppf(0.975, 5) * known.stderr
    assert (growth.lower, growth.upper) == pytest.approx((known.slope - half, known.slope + half))


def test_a_curve_bends_and_its_interval_holds_the_mean_exponent():
    growth = exact(lambda t: np.sqrt(t) + 30)
    assert growth.bent
    assert growth.lower < mean_exponent(T, np.sqrt(T) + 30) < growth.upper
    assert growth.early < growth.value < growth.late < 0.5
    assert growth.remark == f"no power law over these T: slopes {growth.bow} over their first and last half"
    assert str(growth) == f"{growth.value:.2f} {growth.interval}, bends {growth.bow}"
    little = exact(lambda t: np.exp(0.5 * np.log(t) + 1e-3 * np.log(t / 3e4) ** 2))  # not worth a word
    assert little.bend < 1e-9
    assert (little.bent, little.remark) == (False, "")


@pytest.mark.parametrize("fresh", [True, False])
def test_no_exponent_where_there_is_none(fresh):
    for totals in (np.zeros(7), np.full(7, np.inf), -np.ones(7), np.arange(7) < 6.0):
        assert fit_growth(T, totals[:, None], fresh=fresh) is None
    assert fit_growth(T[:2], np.ones((2, 3)), fresh=fresh) is None
    totals = np.zeros((7, 3))
    totals[:, 0] = T  # a single run has the whole mean
    growth = fit_growth(T, totals, fresh=fresh)
    assert (growth.upper, growth.clear) == (float("inf"), False)
    assert str(growth).startswith("? [")
    assert "too few or too noisy totals to tell an exponent: play more horizons or runs" in growth.remark


def test_bad_input():
    with pytest.raises(InvalidParameter, match=r"expected \(n,\) and \(n, runs\)"):
        fit_growth(T, T, fresh=True)
    for times in ([0, 1, 2], [1, 2, 2], [3, 2, 1]):
        with pytest.raises(InvalidParameter, match="not positive and ascending"):
            fit_growth(times, np.ones((3, 1)), fresh=True)
    with pytest.raises(InvalidParameter, match=r"level = 95; expected a number between 0 and 1"):
        fit_growth(T, np.ones((7, 1)), fresh=True, level=95)
    for bound in (lambda t: -t, T[:3]):
        with pytest.raises(InvalidParameter, match="expected a positive number at each"):
            trend(T, np.ones((7, 1)), bound)


# ---------------------------------------------------------------- coverage


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


@pytest.mark.parametrize("runs", RUNS)
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


# ---------------------------------------------------------------- ratios to bounds


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


def test_what_nears_its_rate_has_grown_over_these_times():
    """That is why `above` is no claim about the rate."""
    ratio = trend(T, np.repeat((T**0.5 * (2 - 5 / T**0.2))[:, None], 2, axis=1), np.sqrt)
    assert ratio.above(0)
    assert not ratio.stays_above(0)


# ---------------------------------------------------------------- in words


def test_cells_and_their_legend():
    straight, curved, wide = exact(np.sqrt), exact(lambda t: np.sqrt(t) + 30), fit_growth(*FEW, fresh=False)
    assert lines(straight) == ["T^0.50", "[0.50, 0.50]"]
    assert lines(curved) == [
        f"T^{curved.value:.2f}",
        curved.interval,
        f"bends {curved.early:.2f}…{curved.late:.2f}",
    ]
    assert lines(wide) == ["T^?"]
    assert line(straight) == "0.50 [0.50, 0.50]"
    signs = {"T^?": wide, "bends a…b": curved, "–": None}
    for sign, growth in signs.items():
        assert [s for s in signs if f"{s}: " in "; ".join(legend([straight, growth]))] == [sign]
    assert "of many of which one in twenty misses" in legend([straight, curved])[0]
    assert legend([straight])[0].endswith("with its own 95 % interval")
    assert "more horizons or runs, such as with `onlinecal run SCENARIO --resume --runs" in legend([wide])[1]
    assert legend([]) == []


def test_slopes_have_as_many_digits_as_tell_them_apart():
    assert exact(lambda t: t**0.5 * (1 + 0.01 * (t / 1000) ** -0.5)).bow == "0.498…0.500"
