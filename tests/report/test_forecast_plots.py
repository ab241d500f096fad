"""Pictures of people's own forecasts: what is drawn to the digit, and what captions say of it."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from sklearn.metrics import brier_score_loss

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter, UnknownName
from onlinecal.forecasts.consistency import recalibration
from onlinecal.forecasts.regression import smoothed
from onlinecal.forecasts.running import running_bias
from onlinecal.forecasts.thresholds import worst_threshold
from onlinecal.measures import brier, smooth_ece, v_cdl
from onlinecal.report import decision_plot, murphy_plot, reliability_plot, trajectory_plot
from onlinecal.report.decision_plot import decisions_of, plot_decision
from onlinecal.report.density import NICE, SIGMA, density_of, spans
from onlinecal.report.murphy_plot import difference_of, elementary_scores, murphy_of, plot_murphy
from onlinecal.report.reliability_curves import corp_diagram, smooth_diagram
from onlinecal.report.reliability_plot import plot_reliability
from onlinecal.report.style import save
from onlinecal.report.trajectory_plot import plot_trajectory, running_measure

G = oc.JointDistribution


def samples(n=500, levels=20, seed=1):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, levels + 1, n) / levels
    return p, (rng.random(n) < 0.1 + 0.8 * p).astype(int)


@pytest.fixture(scope="module")
def gamma():
    return G.from_samples(*samples())


@pytest.fixture(scope="module")
def distinct():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    return p, (rng.random(400) < p**2).astype(int)


# ---------------------------------------------------------------- densities and axes


@pytest.mark.parametrize("m", [7, 40, 128, 199])
def test_a_grid_has_a_level_density(m):
    """Of as many forecasts at each point of a grid every bar is as high as any other, and none is missing."""
    gamma = G.from_counts(np.arange(m + 1) / m, np.full(m + 1, 3), np.ones(m + 1))
    density = density_of(gamma)
    assert density.at.tolist() == (np.arange(m + 1) / m).tolist()
    assert density.heights == pytest.approx(np.full(m + 1, 1 / (m + 1)))


@pytest.mark.parametrize("m", [201, 256, 333, 1001])
def test_a_fine_grid_has_a_level_density(m):
    gamma = G.from_counts(np.arange(m + 1) / m, np.full(m + 1, 3), np.ones(m + 1))
    density = density_of(gamma)
    assert density.sigma == SIGMA
    inner = (density.at > 0.05) & (density.at < 0.95)
    assert density.heights[inner] == pytest.approx(np.ones(inner.sum()), rel=0.01)


@pytest.mark.parametrize("kind", ["points", "smooth", "corp"])
@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.3] * 50, [1] * 27 + [0] * 23),
        ([0.4], [1]),
        ([0.7] * 9, [0] * 9),
        ([0.999] * 9, [0, 1, 1] * 3),
        ([0.01, 0.02], [1, 1]),
    ],
)
def test_whatever_is_drawn_lies_within_the_axes(kind, p, y):
    """Also where outcomes are far from the diagonal, beyond what the predictions need."""
    axis = plot_reliability(p, y, kind=kind, axes=Figure().subplots())
    axis = getattr(axis, "axes", axis)
    least, most = axis.get_ylim()
    for v in set(p):
        mean = np.mean([one for q, one in zip(p, y, strict=True) if q == v])
        assert least <= mean <= most
        assert least <= v <= most
        assert axis.get_xlim()[0] <= v <= axis.get_xlim()[1]


def test_axes_reach_as_far_as_is_needed():
    assert spans(np.array([0.2, 0.8])) == [(0.0, 1.0)]
    assert spans(np.array([0.0]), np.array([1.0])) == [(0.0, NICE[0]), (1.0 - NICE[0], 1.0)]
    for low, high in ((0.0, 0.03), (0.001, 0.5), (0.97, 1.0), (0.3, 0.51)):
        ((a, b),) = spans(np.array([low, high]))
        assert a <= low <= high <= b
        assert a == 0.0 or b == 1.0


# ---------------------------------------------------------------- reliability


def test_the_smoothed_diagram_is_the_regression_at_smooth_ece(gamma):
    drawn = smooth_diagram(gamma, "", 0.95)
    found = smoothed(gamma)
    assert drawn.error == smooth_ece(gamma)
    assert drawn.curve.sigma == drawn.density.sigma == drawn.error
    assert (drawn.curve.means == found.means).all()
    assert np.array_equal((drawn.lower, drawn.upper), found.band(0.95))
    axis = plot_reliability(gamma, kind="smooth")
    assert axis.get_title() == f"smECE = {drawn.error:.4g}"
    (line,) = [c for c in axis.collections if hasattr(c, "get_segments")]
    ends = np.array(line.get_segments())
    assert np.array_equal(ends[:, 0], np.stack((found.at, found.means), axis=1)[:-1])
    thick = 0.5 * (found.density[1:] + found.density[:-1])
    assert line.get_linewidths() == pytest.approx(0.5 + 2.5 * thick / found.density.max())


def test_the_smoothed_diagram_ends_where_predictions_do():
    rng = np.random.default_rng(0)
    p = 0.1 + 0.05 * rng.random(500)
    drawn = smooth_diagram(G.from_samples(p, rng.random(500) < p), "", 0.95)
    at = drawn.curve.at[drawn.near]
    assert p.min() - 0.002 <= at[0] <= p.min()
    assert p.max() <= at[-1] <= p.max() + 0.002
    single = smooth_diagram(G.from_counts([0.5], [9], [4]), "", 0.95)
    assert single.near.sum() >= 2


def test_the_corp_diagram_has_the_three_parts_of_the_score(gamma):
    drawn = corp_diagram(gamma, "", 0.95)
    found = recalibration(gamma)
    assert np.array_equal(drawn.curve.means, found.means)
    assert np.array_equal(drawn.curve.lower, found.lower)
    p, y = samples()
    assert drawn.parts.score == pytest.approx(brier_score_loss(y, p))
    axis = plot_reliability(gamma, kind="corp")
    assert axis.get_title() == f"Brier score = {brier(gamma):.4g}"
    (text,) = [t.get_text() for t in axis.texts]
    mcb, dsc, unc = (float(line.split("= ")[1]) for line in text.split("\n"))
    assert mcb - dsc + unc == pytest.approx(brier(gamma), abs=1.6e-4)
    assert np.array_equal(
        axis.lines[0].get_xydata(), np.stack((gamma.predictions, oc.isotonic(gamma)), axis=1)
    )


def test_what_captions_of_reliability_say(gamma, distinct):
    smooth = reliability_plot.caption(gamma, kind="smooth")
    for statement in (
        "by a Gaussian whose width σ is SmoothECE and which is reflected at 0 and 1",
        "Band: an approximate 95% interval, point by point, for the same smoothed mean outcome",
        f"Below: the density of predictions (Gaussian, σ = {smooth_ece(gamma):.3g}).",
    ):
        assert statement in smooth
    calm = G.from_counts([0.5], [1000], [500])
    assert "Where SmoothECE is less than 0.002 σ is 0.002." in reliability_plot.caption(calm, kind="smooth")
    assert "less than" not in smooth
    corp = reliability_plot.caption(gamma, kind="corp")
    for statement in (
        "by isotonic regression (CORP), level in the thick parts.",
        "Brier score = MCB − DSC + UNC",
        "with probability 95% or more, point by point, if all predictions were fixed before",
        "(399 such draws)",
        "Below: the share of the weight at each level.",
    ):
        assert statement in corp
    assert "rounded" not in corp
    scaled = G.from_levels(gamma.predictions, gamma.mass, gamma.means)
    for kind in ("smooth", "corp"):
        without = reliability_plot.caption(scaled, kind=kind)
        assert "Band" not in without
        assert "Not shown: how far chance alone would move the curve, for weights are not whole" in without
        assert "Not shown: how far chance alone would move the curve." in reliability_plot.caption(
            gamma, kind=kind, band=None
        )
    rng = np.random.default_rng(0)
    many = rng.random(2000)
    assert "For the curve predictions are rounded to multiples of 1/1000." in reliability_plot.caption(
        many, many > 0.5, kind="corp", band=0.9
    )


def test_bins_are_of_points(gamma):
    with pytest.raises(InvalidParameter, match="bins = 10 with kind = 'corp'; expected kind = 'points'"):
        plot_reliability(gamma, kind="corp", bins=10)
    with pytest.raises(InvalidParameter, match="kind"):
        plot_reliability(gamma, kind="corpus")


# ---------------------------------------------------------------- decisions


def regret_by_definition(gamma, q, t, *, above):
    """What acting on v above t loses where q is below t, and not acting where q is above: the limit at t."""
    v, gain = gamma.predictions, gamma.mass * (gamma.means - t)
    acts, should = (v > t, q > t) if above else (v >= t, q >= t)
    acted = -(gain * ~should * acts).sum()
    waited = (gain * should * ~acts).sum()
    return acted / max(t, 1 - t), waited / max(t, 1 - t)


@pytest.mark.parametrize("against", ["levels", "monotone"])
@pytest.mark.parametrize("seeds", range(3))
def test_the_regret_of_each_threshold(seeds, against):
    gamma = G.from_samples(*samples(60, 12, seeds))
    one = decisions_of(gamma, against=against)
    q = gamma.means if against == "levels" else oc.isotonic(gamma)
    for i, t in enumerate(one.thresholds):
        acted, waited = regret_by_definition(gamma, q, t, above=i % 2 == 1)
        assert (one.acted[i], one.waited[i]) == pytest.approx((acted, waited), abs=1e-12)
    # In between, the definition is nowhere above both ends.
    for t in np.random.default_rng(seeds).random(200):
        here = sum(regret_by_definition(gamma, q, t, above=True))
        after = np.searchsorted(one.thresholds, t)
        if 0 < after < len(one.thresholds):
            assert here <= max(one.regret[after - 1], one.regret[after]) + 1e-9


def test_the_largest_is_v_cdl(gamma):
    assert decisions_of(gamma, against="levels").regret.max() == pytest.approx(v_cdl(gamma), abs=1e-12)


def test_the_worst_threshold_is_that_of_the_report(gamma, distinct):
    """One threshold, one loss, one bias, also where it parts levels that the monotone recalibration pools."""
    pooled = G.from_counts([0.2, 0.6, 0.7], [100, 100, 100], [20, 55, 35])
    for one in (
        gamma,
        G.from_samples(*distinct),
        pooled,
        pooled.flip(),
        G.from_counts([0.5, 1.0], [4, 4], [2, 3]),
    ):
        drawn, worst = decisions_of(one), worst_threshold(one)
        assert (drawn.at, drawn.lost, drawn.said) == (worst.at, worst.loss, str(worst))
        assert drawn.regret.max() == pytest.approx(worst.loss, abs=1e-12)


def test_the_worst_threshold_against_levels_in_words():
    def said_of(gamma):
        return decisions_of(gamma, against="levels").said

    assert said_of(G.from_counts([0.2, 0.8], [100, 100], [20, 40])) == (
        "act when p ≥ 0.8: 0.25 lost for each decision; predictions of 0.8 are too high by 0.4 on average"
    )
    assert said_of(G.from_counts([0.2, 0.8], [100, 100], [60, 80])) == (
        "act when p > 0.2: 0.25 lost for each decision; predictions of 0.2 are too low by 0.4 on average"
    )
    assert said_of(G.from_counts([0.2, 0.8], [100, 100], [20, 80])) == "no threshold loses anything"


def test_the_caption_of_decisions_says_what_is_drawn():
    """A point only where something is lost."""
    good, bad = (
        G.from_counts([0.2, 0.8], [100, 100], [20, 80]),
        G.from_counts([0.2, 0.8], [100, 100], [20, 40]),
    )
    assert "Point: the worst threshold, not tested against chance." in decision_plot.caption(bad)
    assert "no point" not in decision_plot.caption(bad)
    said = decision_plot.caption(good)
    assert said.endswith("Where there is no point, no threshold loses anything.")
    assert "Point:" not in said
    both = decision_plot.caption({"good": good, "bad": bad})
    assert "against chance. Where there is no point, no threshold loses anything." in both


def test_what_the_caption_of_decisions_says(gamma, distinct):
    big = G.from_counts([0.2, 0.8], [100, 100], [50, 80])
    assert (
        "with the mean outcome of each prediction in its place; the largest is V-CDL."
        in decision_plot.caption(big, against="levels")
    )
    assert "V-CDL" not in decision_plot.caption(*distinct)
    assert (
        "with the best monotone recalibration in its place, which is the best other"
        in decision_plot.caption(big)
    )


# ---------------------------------------------------------------- Murphy diagrams


def test_elementary_scores_are_those_of_the_definition(distinct):
    p, y = samples(80, 6)
    found = murphy_of({"": G.from_samples(p, y)})
    for i, (t, score) in enumerate(zip(found.thresholds, found.scores[0], strict=True)):
        above = p > t if i % 2 else p >= t
        assert score == pytest.approx(np.where(y == 1, (1 - t) * ~above, t * above).mean(), abs=1e-15)


def test_the_brier_score_is_twice_the_area(gamma, distinct):
    for one in (gamma, G.from_samples(*distinct)):
        found = murphy_of({"": one})
        assert 2 * np.trapezoid(found.scores[0], found.thresholds) == pytest.approx(brier(one), abs=1e-12)


def test_the_difference_is_that_of_the_curves(distinct):
    p, y = distinct
    other = np.round(p * 4) / 4
    found = difference_of(p, other, y, ("a", "b"), 0.95)
    first, second = (
        elementary_scores(G.from_samples(each, y), found.thresholds, above=True) for each in (p, other)
    )
    assert found.mean == pytest.approx(second - first, abs=1e-15)
    # Its variance by the samples, and one of either outcome in favour of either forecast.
    t = found.thresholds[:, None]
    scores = [np.where(y == 1, (1 - t) * (each <= t), t * (each > t)) for each in (p, other)]
    each = scores[1] - scores[0]
    added = 2 * ((1 - t[:, 0]) ** 2 + t[:, 0] ** 2)
    variance = ((each**2).sum(axis=1) + added - len(y) * each.mean(axis=1) ** 2) / len(y)
    half = found.upper - found.mean
    assert half == pytest.approx(found.mean - found.lower)
    assert half == pytest.approx(1.9659 * np.sqrt(variance / len(y)), rel=1e-4)  # Student's t, 399 degrees


def test_the_band_holds_the_expected_difference(seed):
    """On average over thresholds at least 93 % of 60 runs, up to five standard errors of a run's share; a control with
    a band a quarter as wide fails it."""
    rng = np.random.default_rng([seed, 3])
    grid, control = (np.arange(200) + 0.5) / 200, False
    for q, other in ((grid, 0.5 * grid + 0.25), (grid / 30, grid / 60 + 0.01)):
        t = np.linspace(0.0, 1.0, 401)
        of_one, of_other = (
            elementary_scores(G.from_levels(v, np.full(200, 1 / 200), q), t, above=True) for v in (q, other)
        )
        shares, third = [], []
        for _ in range(60):
            i = rng.integers(0, 200, 300)
            found = difference_of(q[i], other[i], rng.random(300) < q[i], ("", ""), 0.95)
            off = np.abs(found.mean - (of_other - of_one))
            half = found.upper - found.mean
            told = t < 2 * q.max()  # beyond, the two scores do not differ
            shares.append((off <= half + 1e-12)[told].mean())
            third.append((off <= half / 4)[told].mean())
        control = control or np.mean(third) < 0.93 - 5 * max(np.std(third), 0.05) / 60**0.5
        assert np.mean(shares) >= 0.93 - 5 * max(np.std(shares), 0.05) / 60**0.5
    assert control


def test_what_captions_of_murphy_diagrams_say(distinct):
    p, y = distinct
    said = murphy_plot.caption(p, y)
    assert (
        "1 − t for an event with a prediction that is not above t and t for another with one that is" in said
    )
    assert "The Brier score is twice the area below." in said
    said = murphy_plot.caption({"a": p, "b": 1 - p}, y, difference=True, band=0.9)
    assert "Line: the score of “b” less that of “a”: above 0 the latter is better." in said
    assert "an approximate 90% interval" in said
    assert "with four added to the 400" in said
    axis = plot_murphy({"$a$": p, "b": 1 - p, "c": p**2}, y)
    (legend,) = axis.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [r"\$a\$", "b", "c"]
    assert axis.get_legend() is None  # in somebody's own axes there is one
    own = plot_murphy({"$a$": p, "b": 1 - p}, y, axes=Figure().subplots())
    assert [text.get_text() for text in own.get_legend().get_texts()] == [r"\$a\$", "b"]
    alone = plot_murphy(p, y)
    assert alone.get_legend() is None
    assert alone.figure.legends == []


def test_a_difference_is_of_two_forecasts_of_the_same_outcomes(distinct, gamma):
    p, y = distinct
    for given in ((p, y), ({"a": p, "b": p, "c": p}, y), ({"a": gamma, "b": gamma}, None)):
        with pytest.raises(
            InvalidParameter, match=r"murphy: a difference of . forecasts.*expected two in a mapping"
        ):
            plot_murphy(*given, difference=True)


# ---------------------------------------------------------------- trajectories


def test_a_measure_of_the_forecasts_so_far_is_evaluated(distinct):
    p, y = distinct
    found = running_measure(p, y, "smooth_ce")
    assert found.rounds[0] == 20
    assert found.rounds[-1] == 400
    for n, low, high, (a, b) in zip(found.rounds, found.lower, found.upper, found.interval.T, strict=True):
        assert low == high == oc.measures.smooth_ce(p[:n], y[:n])
        (row,) = oc.evaluate(p[:n], y[:n], measures=["smooth_ce"], bootstrap=200).rows
        assert (a, b) == row.interval
    last = running_measure(p, y, "brier", window=50, level=0.0)
    assert np.isnan(last.interval).all()
    for n, low in zip(last.rounds, last.lower, strict=True):
        assert low == oc.measures.brier(p[n - 50 : n], y[n - 50 : n])


def test_what_captions_of_trajectories_say(distinct):
    p, y = distinct
    said = trajectory_plot.caption(p, y)
    assert "Line: the total of outcome − prediction of the forecasts so far" in said
    assert (
        "leaves at any time with probability 0.05 at most if every outcome has the probability predicted"
        in said
    )
    assert f"Mark: where it is first seen outside, by forecast {running_bias(p, y).left:,}." in said
    assert "Mark" not in trajectory_plot.caption([0.5] * 40, [0, 1] * 20)
    assert "Band" not in trajectory_plot.caption(p, y, band=None)
    said = trajectory_plot.caption(p, y, measure="smooth_ce")
    assert "Line: smooth_ce of all forecasts so far. Band: 95% intervals, each by itself" in said
    said = trajectory_plot.caption(p, y, measure="ece", window=100)
    assert (
        "Line: ece of the last 100 forecasts. No intervals: 100% of the weight is on levels with fewer"
        in said
    )


def test_trajectories_need_an_order(gamma, distinct):
    p, y = distinct
    with pytest.raises(
        InvalidData, match="has no order in time; expected the predictions p and the outcomes y"
    ):
        plot_trajectory(gamma)
    with pytest.raises(InvalidData, match="y is missing"):
        plot_trajectory(p)
    with pytest.raises(InvalidData, match="19 forecasts; expected 20 or more"):
        plot_trajectory(p[:19], y[:19], measure="ece")
    with pytest.raises(InvalidData, match="400 forecasts; expected 500 or more"):
        plot_trajectory(p, y, measure="ece", window=500)
    with pytest.raises(UnknownName, match="ecee"):
        plot_trajectory(p, y, measure="ecee")


# ---------------------------------------------------------------- all of them

PLOTS = {
    "smooth": lambda *given, **options: plot_reliability(*given, kind="smooth", **options),
    "corp": lambda *given, **options: plot_reliability(*given, kind="corp", **options),
    "decision": plot_decision,
    "murphy": plot_murphy,
    "trajectory": plot_trajectory,
}
CAPTIONS = {
    "smooth": lambda *given: reliability_plot.caption(*given, kind="smooth"),
    "corp": lambda *given: reliability_plot.caption(*given, kind="corp"),
    "decision": decision_plot.caption,
    "murphy": murphy_plot.caption,
    "trajectory": trajectory_plot.caption,
}
HARD = {
    "one": ([0.3], [1]),
    "one level": ([0.3] * 50, [0, 1] * 25),
    "certain": ([0, 1, 1, 0], [0, 1, 1, 0]),
    "certain and wrong": ([0, 1, 1, 0], [1, 0, 0, 1]),
    "neighbours": ([0.3, 0.3 + 1e-15, 0.3 + 3e-15], [1, 0, 1]),
    "ends": ([1e-300, 1 - 1e-16, 1.0, 0.0], [0, 1, 0, 1]),
}


@pytest.mark.parametrize("name", PLOTS)
def test_they_take_axes(name, distinct, tmp_path):
    p, y = distinct
    plot = PLOTS[name]
    own = plot(p, y)
    assert " ".join(own.figure._supxlabel.get_text().split()) == " ".join(CAPTIONS[name](p, y).split())
    given = Figure().subplots()
    assert plot(p, y, axes=given) is given
    assert given.get_title().split() == own.get_title().split()
    for mine, theirs in zip(own.lines, given.lines, strict=True):
        assert np.array_equal(mine.get_xydata(), theirs.get_xydata())
    for width, kind in (("column", "svg"), ("page", "pdf")):
        axis = plot(p, y, width=width, dark=kind == "pdf", title="from $5 to $6")
        save(axis.figure, tmp_path / f"a.{kind}")
        assert axis.figure.get_size_inches()[0] == {"column": 3.4, "page": 7.0}[width]
    assert to_hex(axis.figure.get_facecolor()) == "#17191d"
    with pytest.raises(InvalidParameter, match="title = 'x' with axes"):
        plot(p, y, axes=given, title="x")
    with pytest.raises(InvalidData, match=r"arguments are \(p, y\): predictions first; these look swapped"):
        plot(y, p)


@pytest.mark.parametrize("hard", HARD)
@pytest.mark.parametrize("name", PLOTS)
def test_they_draw_whatever_there_is(name, hard, tmp_path):
    axis = PLOTS[name](*HARD[hard], width="column")
    save(axis.figure, tmp_path / "a.png")


@pytest.mark.parametrize("name", ["smooth", "corp", "decision", "murphy"])
def test_they_take_what_evaluate_returns(name, gamma):
    plot, (p, y) = PLOTS[name], samples()
    title = plot(gamma).get_title()
    assert plot(oc.evaluate(p, y, measures=["ece"])).get_title() == title
    if name != "murphy":
        first, second = plot({"a": (p, y), "b": gamma})
        assert [first.get_title().split("\n")[0], second.get_title().split("\n")[0]] == ["a", "b"]


def test_all_are_named():
    for name in ("reliability", "decision", "murphy", "trajectory"):
        assert callable(getattr(oc.plots, name))
        assert callable(oc.plots.captions[name])
    assert Path(oc.plots.__file__).name == "plots.py"
