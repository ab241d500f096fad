"""Growth exponents: found where they are known, with intervals that cover what they say, taken back where they must."""

from dataclasses import astuple

import numpy as np
import pytest
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.growth import CONSTANT, LOGARITHM, POWER, fit_growth, simultaneous, trend
from onlinecal.growth.contrasts import Path, beside, orthonormal
from onlinecal.growth.words import legend, line, lines
from tests import coverage
from tests.coverage import GAMES, LAWS, NOISES, RUNS, Tally, mean_exponent, prefixes, random_walks, simulate
from tests.marks import some_fast

T = np.array([1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000], dtype=float)
#: of false failures, for each count of covering intervals
RATE = 1e-9


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
    assert (growth.shape, growth.form, growth.remark) == ("straight", POWER, "")
    assert growth.local == pytest.approx([alpha] * 6, abs=1e-12)
    assert (growth.early, growth.late) == pytest.approx((alpha, alpha), abs=1e-12)
    assert (growth.points, growth.runs) == (7, runs)
    # With α < 0 a constant that is left over cannot be told from none, however little it is.
    assert growth.limit[0] == pytest.approx(alpha, abs=1e-6)


@pytest.mark.parametrize("runs", [1, 16])
@pytest.mark.parametrize("points", [5, 15])
@pytest.mark.parametrize("law", [law for law in LAWS if law.kind == "form"], ids=lambda law: law.name)
def test_a_curve_is_named_and_its_asymptotic_exponent_found(law, points, runs):
    times = np.round(np.geomspace(1e3, 1e6, points))
    growth = exact(lambda t: law.total(t, None), runs, times)
    assert growth.shape == "curved"
    assert growth.form == (LOGARITHM if "log" in law.name else CONSTANT)
    assert growth.limit == pytest.approx((law.exponent, law.exponent), abs=1e-6)
    assert growth.value == pytest.approx(mean_exponent(times, law.total(times, None)), abs=1e-9)
    assert growth.remark.startswith("no power law over these T: slopes ")
    assert f"if {growth.form}, the asymptotic exponent is in [{law.exponent:.2f}, " in growth.remark
    assert str(growth).startswith("no power law: ")


@pytest.mark.parametrize("law", [law for law in LAWS if law.kind == "other"], ids=lambda law: law.name)
def test_what_no_form_follows_has_no_asymptotic_exponent(law):
    growth = exact(lambda t: law.total(t, None))
    assert growth.shape != "straight"
    assert growth.limit is None
    assert "if " not in growth.remark


@pytest.mark.parametrize("runs", [1, 4])
def test_three_points_on_a_form_leave_nothing_to_tell_forms_by(runs):
    times = np.array([100, 300, 900])
    for law in (np.sqrt(times) * np.log(times), np.sqrt(times) + 7.0):
        found = fit_growth(times, np.repeat(law[:, None], runs, axis=1), fresh=True)
        assert found.fits == {}


def test_jaggedness_is_told_from_a_bend():
    """Two levels, as of a grid that has the point 1/2 or has it not: the scatter makes the interval."""
    levels = np.array([1.0, 1.3, 1.3, 1.0, 1.0, 1.3, 1.0])
    growth = exact(lambda t: t**0.5 * levels)
    assert growth.shape == "jagged"
    assert "jagged: the totals scatter" in growth.remark
    assert growth.lower < 0.5 < growth.upper
    assert 0.05 < growth.upper - growth.lower < 0.3
    assert growth.limit is None
    assert str(growth).endswith("], jagged")
    # Scatter of less than 1 % is in the interval, and no word is lost on it.
    little = exact(lambda t: t**0.5 * levels**0.05)
    assert 0.005 < little.scatter < 0.01
    assert little.straightness < 1e-9
    assert (little.shape, little.remark) == ("straight", "")
    assert little.upper - little.lower > 0.004


@pytest.mark.parametrize("fresh", [True, False])
def test_no_exponent_where_there_is_none(fresh):
    for totals in (np.zeros(7), np.full(7, np.inf), -np.ones(7), np.arange(7) < 6.0):
        assert fit_growth(T, totals[:, None], fresh=fresh) is None
    assert fit_growth(T[:2], np.ones((2, 3)), fresh=fresh) is None
    totals = np.zeros((7, 3))
    totals[:, 0] = T  # a single run has the whole mean
    growth = fit_growth(T, totals, fresh=fresh)
    assert (growth.upper, growth.clear) == (float("inf"), False)


FEW = [10, 32, 100, 316], [[0.14], [0.87], [4.3], [3.1]]


def test_an_exponent_that_cannot_last_or_be_read_is_said():
    growth = exact(lambda t: t**1.2, ceiling=1.0)
    assert growth.hasty
    assert growth.limit == (1.0, 1.0)
    assert "faster than T, which cannot last: a total is at most 1·T" in growth.remark
    assert not exact(lambda t: t**1.2).hasty  # without a ceiling it may be so
    assert not exact(lambda t: t, ceiling=1.0).hasty
    few = fit_growth(*FEW, fresh=False, ceiling=1.0)
    assert not few.clear
    assert str(few).startswith("? [")
    assert "too few or too noisy" in few.remark


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


@pytest.mark.parametrize("runs", RUNS)
def test_intervals_cover_and_narrow_ones_do_not(runs, seed):
    """√T with 50 % noise, 400 fits of each number of runs. A third as wide they would cover 77 % or less."""
    rng = np.random.default_rng([seed, runs])
    fits = [fit_growth(T, NOISES["50 %"](rng, T**0.5, runs), fresh=True) for _ in range(400)]
    covered = sum(g.lower <= 0.5 <= g.upper for g in fits)
    narrow = sum(abs(g.value - 0.5) <= (g.upper - g.lower) / 6 for g in fits)
    assert covered >= enough(400, 0.93)
    assert narrow < enough(400, 0.93)


def test_a_second_run_does_not_widen_the_interval(seed):
    """Medians of 300 intervals: 0.48 … 0.54, 0.38 … 0.42 and 0.22 … 0.24 over seeds 0–5."""
    rng = np.random.default_rng(seed)
    widths = []
    for runs in (1, 2, 4):
        fits = [fit_growth(T, NOISES["50 %"](rng, T**0.5, runs), fresh=True) for _ in range(300)]
        widths.append(np.median([g.upper - g.lower for g in fits]))
    assert widths[1] < 1.25 * widths[0]
    assert widths[2] < widths[1]


def test_random_walks_are_covered_and_not_if_taken_for_fresh_games(seed):
    """The total of a constant forecaster against a fair coin, one run read on the way."""
    rng = np.random.default_rng(seed)
    times, totals = random_walks(rng, 600)
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


def test_the_variance_along_a_game_is_right_for_the_correlation_it_is_made_for(seed):
    """Of Gaussian errors with the correlation (s/t)^{1/3} the residuals tell the variance of the slope without bias.
    With a shorter memory it is found too large. Means of 4000 have errors below 3 %: 15 % are five of them.
    """
    rng = np.random.default_rng(seed)
    logarithms = np.log(np.round(np.geomspace(100, 10_000, 17)))
    x = logarithms - logarithms.mean()
    slope, line_ = x / (x @ x), orthonormal(np.ones_like(x), x)
    for memory, low, high in ((1 / 3, 0.85, 1.15), (1.0, 1.15, np.inf)):
        correlation = np.exp(-memory * np.abs(logarithms[:, None] - logarithms))
        errors = np.linalg.cholesky(correlation) @ rng.standard_normal((len(x), 4000))
        found = [Path(logarithms, np.exp(0.01 * e)[:, None]).spread(slope, line_)[0] for e in errors.T]
        ratio = np.mean(found) / (1e-4 * slope @ correlation @ slope)
        assert low < ratio < high


def test_the_levels_of_a_table_hold_together(seed):
    """20 tables of 50 power laws: each is covered as a whole with 95 %, so 12 or fewer with probability below 1e-9."""
    rng = np.random.default_rng(seed)
    level = simultaneous(50)
    assert level == pytest.approx(0.999)
    whole = 0
    for _ in range(20):
        fits = (fit_growth(T, NOISES["50 %"](rng, T**0.5, 8), fresh=True, level=level) for _ in range(50))
        whole += all(g.lower <= 0.5 <= g.upper for g in fits)
    assert whole > 11
    assert simultaneous(0) == simultaneous(1) == 0.95


def total(tallies):
    """The sum of counts."""
    return Tally(*np.sum([astuple(tally) for tally in tallies], axis=0))


@pytest.mark.parametrize("law", some_fast(5, LAWS, whole=True), ids=lambda law: law.name)
def test_coverage_of_every_law(law, seed, full):
    """Of each number of runs, and of all, 93 % are covered, and of the asymptotic exponents 90 %. Of power laws 7 % or
    fewer are refused. Each count fails with probability RATE. The small size always has noise, as fits without it are
    above. It has two numbers of horizons, other ones for other seeds.

    The asymptotic exponent is asked for where the law is of a form that is fitted. Elsewhere being refused is no fault
    either.
    """
    rng, limits = np.random.default_rng(seed), law.kind in ("power", "form")
    size = {} if full else {"noises": list(NOISES)[1:], "points": coverage.POINTS[seed % 2 :: 2]}
    found = simulate(law, rng, 20 if full else 1, limits=limits, **size)
    for tally in [*found.values(), total(found.values())]:
        if law.kind != "jagged":
            assert tally.covered >= enough(tally.fits, 0.93)
        else:  # two levels are far from normal, and few horizons see but one of them
            assert tally.covered >= enough(tally.fits, 0.9)
        assert tally.limits_covered >= enough(tally.limits, 0.9)
        if law.kind == "power":
            assert tally.curved <= binom.isf(RATE, tally.fits, 0.07)


@pytest.mark.parametrize("game", some_fast(6, GAMES, whole=True), ids=lambda game: f"{game[0]}, {game[3]}")
def test_coverage_of_games_read_on_the_way(game, seed, full):
    """The aim is the mean of all runs. Its error is a quarter of that of 16: it costs them little."""
    _, forecaster, nature, measure = game
    options = {"horizon": 10_000 if full else 2000, "runs": 256, "seed": seed, "progress": False}
    curve = oc.play(forecaster, nature, measures=[measure], **options).curve(measure).tail
    found = prefixes(curve.rounds, curve.totals, (1, 2, 4, 16), 128, np.random.default_rng(seed))
    for runs, tally in found.items():
        assert tally.covered >= enough(tally.fits, 0.9 if runs == 16 else 0.93)


# ---------------------------------------------------------------- ratios to bounds


def test_a_ratio_that_grows_levels_off_or_falls():
    def against(total, bound=np.sqrt):
        return trend(T, np.repeat(total(T)[:, None], 2, axis=1), bound)

    grows = against(lambda t: t**0.6)
    assert grows.value == pytest.approx(0.1)
    assert (grows.above(0), grows.stays_above(0), grows.below(0)) == (True, True, False)
    # It nears its constant from below: the slope is positive over all these T and comes to 0.
    settles = against(lambda t: t**0.5 * (2 - 5 / t**0.2))
    assert settles.above(0)
    assert not settles.stays_above(0)
    assert settles.limit == pytest.approx((0.0, 0.0), abs=1e-6)
    falls = against(lambda t: t**0.4)
    assert (falls.below(0), falls.above(0)) == (True, False)
    logarithm = against(lambda t: t**0.5 * np.log(t), lambda t: np.sqrt(t) * np.log(t))
    assert logarithm.value == pytest.approx(0.0, abs=1e-12)
    assert not logarithm.above(0)
    assert not logarithm.below(0)
    assert against(lambda t: t**0.6, T**0.5).value == grows.value  # values of the bound will do


def test_trends_are_told_from_noise(seed):
    """√T against its own rate is said to grow, or to fall, in one of forty cases each; T^{0.9} always.

    More than 30 of 200 with probability below 1e-15 at the nominal rate of 2.5 %.
    """
    rng = np.random.default_rng(seed)
    ups = downs = found = 0
    for _ in range(200):
        ratio = trend(T, NOISES["50 %"](rng, T**0.5, 16), np.sqrt)
        ups, downs = ups + ratio.above(0), downs + ratio.below(0)
        found += trend(T, NOISES["50 %"](rng, T**0.9, 16), np.sqrt).above(0)
    assert ups <= 30
    assert downs <= 30
    assert found == 200


# ---------------------------------------------------------------- in words


def test_cells_and_their_legend():
    straight, curved = exact(np.sqrt), exact(lambda t: np.sqrt(t) + 30)
    jagged = exact(lambda t: t**0.5 * [1.0, 1.3, 1.3, 1.0, 1.0, 1.3, 1.0])
    hasty = exact(lambda t: t**1.1, ceiling=1.0)
    wide = fit_growth(*FEW, fresh=False)
    assert lines(straight) == ["T^0.50", "[0.50, 0.50]"]
    assert lines(hasty) == ["T^1.10", "[1.10, 1.10]", "> T"]
    assert lines(jagged)[2] == "jagged"
    assert lines(curved) == [f"T^{curved.early:.2f}…{curved.late:.2f}"]
    assert line(straight) == "0.50 [0.50, 0.50]"
    signs = {"T^?": wide, "jagged": jagged, "> T": hasty, "T^a…b": curved}
    for sign, growth in signs.items():
        said = "; ".join(legend([straight, growth]))
        assert "the 2 intervals hold all together with 95 %" in said
        assert [s for s in signs if f"{s}: " in said] == [sign]
    assert "with its 95 % interval" in legend([straight])[0]
    assert "the intervals of each table hold" in legend([straight, curved], each="table")[0]
    # A bend that two digits do not show is shown by more.
    assert exact(lambda t: t**0.5 * (1 + 0.01 * (t / 1000) ** -0.5)).bow == "0.498…0.500"


def test_json_holds_the_numbers_of_the_words():
    found = exact(lambda t: np.sqrt(t) + 30).as_json()
    assert (found["shape"], found["form"], found["level"]) == ("curved", CONSTANT, 0.95)
    assert found["limit"] == pytest.approx([0.5, 0.5], abs=1e-6)
    assert found["straightness"] < 1e-6
    assert found["remark"].startswith("no power law")
    basis = orthonormal(np.ones(7), T)
    assert basis.T @ beside(np.sqrt(T), basis) == pytest.approx([0.0, 0.0], abs=1e-9)


# ---------------------------------------------------------------- two heights


CUBES = np.arange(10.0, 21.0) ** 3
EVEN = np.arange(10, 21) % 2 == 0


def scattered(marked, factor, noise, scatter=0.0, seed=0, runs=8):
    """√T, `factor` times that at the marked T, with scatter that runs share and noise that they do not, in logs."""
    rng = np.random.default_rng(seed)
    logs = np.log(CUBES) / 2 + np.where(marked, np.log(factor), 0.0) + scatter * rng.normal(size=11)
    return fit_growth(CUBES, np.exp(logs[:, None] + noise * rng.normal(size=(11, runs))), fresh=True)


@pytest.mark.parametrize("factor", [0.9, 30.0])
@pytest.mark.parametrize("marked", [EVEN, ~EVEN, np.arange(11) == 3], ids=["even", "odd", "one"])
def test_two_heights_are_why_totals_are_jagged(marked, factor):
    growth = scattered(marked, factor, 0.0)
    assert growth.shape == "jagged"
    assert growth.jumps(marked) == pytest.approx(factor, rel=1e-6)
    assert growth.jumps(~marked) == pytest.approx(1 / factor, rel=1e-6)
    # Neither do others explain it, nor does it anything that there is but one kind.
    assert growth.jumps(np.arange(11) > 5) is None
    assert growth.jumps(np.ones(11, bool)) is growth.jumps(np.zeros(11, bool)) is None


def test_totals_without_two_heights():
    jagged = np.where(EVEN, 9.0, 1.0)[:, None] * CUBES[:, None] ** 0.5
    logs = np.log(CUBES) / 2 + np.where(EVEN, 1.0, 0.0)
    logs[2] -= 1.2
    bent = exact(lambda t: t**0.5 + 90.0, times=CUBES)
    overlapping = fit_growth(CUBES, np.repeat(np.exp(logs)[:, None], 3, axis=1), fresh=True)
    assert (bent.shape, overlapping.shape) == ("curved", "jagged")
    one_run = fit_growth(CUBES, jagged, fresh=True)
    prefixes = fit_growth(CUBES, np.repeat(jagged, 3, 1), fresh=False)
    for growth in (exact(lambda t: t**0.5, times=CUBES), bent, overlapping, one_run, prefixes):
        assert growth.jumps(EVEN) is None
    three = fit_growth([1e3, 1e4, 1e5], np.repeat([[1.0], [9.0], [2.0]], 3, axis=1), fresh=True)
    assert three.jumps(np.arange(3) == 1) is None  # a line with two heights goes through any three


def test_scatter_by_chance_is_hardly_ever_said_to_have_two_heights(seed):
    """At the level of 0.95: false failures at RATE, by the binomial distribution. Most of them are jagged."""
    fits = [scattered(EVEN, 1.0, 0.01, scatter=0.3, seed=[seed, k]) for k in range(40)]
    assert sum(growth.shape == "jagged" for growth in fits) >= binom.ppf(RATE, 40, 0.9)
    assert sum(growth.jumps(EVEN) is not None for growth in fits) <= binom.ppf(1 - RATE, 40, 0.05)


# ---------------------------------------------------------------- by hand


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("n", [3, 4, 7, 8])
def test_slopes_are_those_of_least_squares(fresh, n, seed):
    """Of all T, of the first half and of the last, and between neighbours, by NumPy's own fit, at uneven T."""
    rng = np.random.default_rng([seed, n])
    times = np.cumsum(rng.integers(5, 500, n)).astype(float)
    totals = times[:, None] ** 0.5 * np.exp(0.5 * rng.standard_normal((n, 1)))
    growth, x, y = fit_growth(times, totals, fresh=fresh), np.log(times), np.log(totals[:, 0])
    half = n // 2 + 1
    slopes = [np.polyfit(x[part], y[part], 1)[0] for part in (slice(None), slice(half), slice(n - half, n))]
    assert (growth.value, growth.early, growth.late) == pytest.approx(tuple(slopes))
    assert growth.local == pytest.approx(np.diff(y) / np.diff(x))
    assert growth.scatter == pytest.approx(np.sqrt(((y - np.polyval(np.polyfit(x, y, 1), x)) ** 2).mean()))
