"""Pictures of people's own forecasts: what is drawn to the digit, and what captions say of it."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import LineCollection
from scipy.stats import binom
from scipy.stats import t as student
from sklearn.metrics import brier_score_loss

import onlinecal as oc
from onlinecal.logs.regression import recalibration, smoothed
from onlinecal.logs.thresholds import worst_threshold
from onlinecal.measures import binned_ece, brier, cdl, ece, scdl, smooth_ce, smooth_ece, v_cdl
from onlinecal.monitoring.sequences import running_bias
from onlinecal.report import plots
from onlinecal.report.decision_plot import decisions_of, difference_of, elementary_scores, murphy_of
from onlinecal.report.gammas import spans
from onlinecal.report.regret_plot import regrets_of, witness_of
from onlinecal.report.reliability_plot import (
    MARKS,
    corp_of,
    expected,
    points_of,
    smooth_of,
    unknown,
    weights_of,
)
from onlinecal.report.trajectory_plot import running_measure
from tests.marks import some_fast
from tests.report.drawn import panels, points, title

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


CALM = G.from_levels([0.2, 0.7], [0.5, 0.5], [0.2, 0.7])


# ---------------------------------------------------------------- axes


@given(st.lists(st.floats(0, 1), min_size=1))
def test_axes_reach_as_far_as_is_needed(values):
    """From 0 or up to 1, by the shortest of 1, 2 or 5 thousandths, hundredths or tenths that holds all values."""
    low, high = min(values), max(values)
    ((a, b),) = spans(np.array(values))
    assert a <= low <= high <= b
    nice = [float(f"{digit}e-{places}") for digit in (1, 2, 5) for places in range(4)]
    length = min(end for end in nice if end >= min(high, 1.0 - low))
    assert (b if a == 0.0 else 1.0 - a) == pytest.approx(length)
    assert a == 0.0 or b == 1.0


@pytest.mark.parametrize("end", [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5])
def test_an_axis_of_one_value_ends_there(end):
    assert spans(np.array([end])) == [(0.0, end)]


# ---------------------------------------------------------------- reliability


def test_points_and_weights_are_those_of_the_levels(gamma):
    points, density = points_of(gamma), weights_of(gamma)
    for one, other in (
        (points["prediction"], gamma.predictions), (points["mean"], gamma.means), (points["share"], gamma.mass),
        (points["left"], points["right"]), (density["prediction"], gamma.predictions), (density["share"], gamma.mass),
    ):  # fmt: skip
        assert np.array_equal(one, other)
    assert (points["strategy"], points["error"]) == ("levels", ece(gamma))


@pytest.mark.parametrize("strategy", ["width", "quantile"])
@pytest.mark.parametrize("bins", [1, 7])
def test_bins_are_those_of_the_binned_error(gamma, bins, strategy):
    found = points_of(gamma, bins=bins, strategy=strategy)
    assert found["error"] == pytest.approx(binned_ece(gamma, bins=bins, strategy=strategy), abs=1e-15)
    v, counts = gamma.predictions, gamma.counts
    for left, right, *numbers in zip(
        *(found[name] for name in ("left", "right", "prediction", "mean", "share")), strict=True
    ):
        end = v <= right if strategy == "quantile" or right == 1.0 else v < right
        inside = (v >= left) & end
        weight = counts[inside].sum()
        means = [(counts * v)[inside].sum() / weight, gamma.positives[inside].sum() / weight]
        assert numbers == pytest.approx([*means, weight / gamma.weight])
    assert found["share"].sum() == pytest.approx(1.0)


def test_an_edge_belongs_to_the_bin_above_it():
    points = points_of(G.from_samples([0.3, 0.29, 1.0], [0, 1, 1]), bins=10)
    assert (points["left"].tolist(), points["right"].tolist()) == ([0.2, 0.3, 0.9], [0.3, 0.4, 1.0])
    assert points["prediction"].tolist() == [0.29, 0.3, 1.0]


@pytest.mark.parametrize("level", [0.0, 0.5, 0.95, 1.0])
def test_the_band_of_a_level_is_that_of_the_binomial_law(level):
    n = np.array([1, 2, 5, 30, 200, 10_000, 10**9], dtype=float)[:, None]
    v = np.array([1e-9, 0.01, 0.1, 1 / 3, 0.5, 0.9, 1 - 1e-9])
    n, v = (each.ravel() for each in np.broadcast_arrays(n, v))
    low, high = expected(n, v, level)
    least, most, tail = np.rint(low * n), np.rint(high * n), (1 - level) / 2
    assert (least >= 0.0).all()
    assert (binom.cdf(least - 1, n, v) <= tail * (1 + 1e-6)).all()
    assert (binom.sf(most, n, v) <= tail * (1 + 1e-6)).all()
    # And no wider than it must be, but for the unit around the mean.
    assert ((least >= np.floor(n * v)) | (binom.cdf(least, n, v) >= tail * (1 - 1e-6))).all()
    assert ((most <= np.ceil(n * v)) | (binom.sf(most - 1, n, v) >= tail * (1 - 1e-6))).all()
    low, high = expected(np.array([5.0, 7.0]), np.array([0.0, 1.0]), level)
    assert low.tolist() == high.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("spread", [0.05, 0.49])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_band_of_a_bin_holds_at_least_what_it_says(spread, level):
    """Exactly, by the law of the sum of different outcomes; Hoeffding's theorem is not used."""
    rng = np.random.default_rng(5)
    for n in (1, 2, 3, 10, 60):
        for centre in (0.5, 0.5 + spread / 3, 0.02 + spread, 0.98 - spread):
            p = np.clip(centre + spread * rng.uniform(-1, 1, n), 0.0, 1.0)
            law = np.ones(1)
            for q in p:
                law = np.convolve(law, [1.0 - q, q])
            low, high = expected(np.array([float(n)]), np.array([p.mean()]), level)
            sums = np.arange(n + 1)
            assert law[(sums >= low * n - 1e-9) & (sums <= high * n + 1e-9)].sum() >= level - 1e-12


def test_points_of_little_weight_are_seen_and_whole_and_panels_have_the_same_axes():
    many = G.from_counts([0.0, 0.3, 1.0], [1, 10**6, 1], [0, 300_000, 1])
    near = G.from_counts([0.01, 0.3], [10, 10], [0, 5])
    fig = plots.reliability({"a": many, "b": near, "c": many}, width="page")
    fig.draw_without_rendering()
    for axis in fig.axes[:3]:
        assert (axis.get_xlim(), axis.get_ylim()) == ((-0.04, 1.04), (-0.04, 1.04))
        (points,) = [c for c in axis.collections if hasattr(c, "get_sizes") and len(c.get_sizes())]
        across = np.sqrt(points.get_sizes())
        assert across.min() >= 3.5  # typographic points: 7 pixels at 150 dots an inch
        radius = (across / 2 + 0.25)[:, None] * fig.dpi / 72
        at, box = axis.transData.transform(points.get_offsets()), axis.get_window_extent()
        assert (at - radius >= (box.x0, box.y0)).all()
        assert (at + radius <= (box.x1, box.y1)).all()


def test_the_smoothed_diagram_is_the_regression_at_smooth_ece(gamma):
    (drawn, below), found = smooth_of(gamma, 0.95), smoothed(gamma)
    assert drawn["error"] == found.sigma == below["sigma"] == smooth_ece(gamma)
    assert np.array_equal((drawn["lower"], drawn["upper"]), found.band(0.95))
    (line,) = [
        c
        for c in plots.reliability(gamma, kind="smooth").axes[0].collections
        if isinstance(c, LineCollection)
    ]
    thick = 0.5 * (found.density[1:] + found.density[:-1])
    assert line.get_linewidths() == pytest.approx(0.5 + 2.5 * thick / found.density.max())
    # It ends where predictions do.
    rng = np.random.default_rng(0)
    p = 0.1 + 0.05 * rng.random(500)
    at = smooth_of(G.from_samples(p, rng.random(500) < p), 0.95)[0]["prediction"]
    assert p.min() - 0.002 <= at[0] <= p.min() < p.max() <= at[-1] <= p.max() + 0.002
    # With one point of the grid beyond either end, so that one level is a curve, too.
    alone = smooth_of(G.from_counts([0.5], [9], [4]), 0.95)[0]["prediction"]
    assert alone == pytest.approx([0.499, 0.5, 0.501])


def test_the_corp_diagram_has_the_three_parts_of_the_score(gamma):
    drawn, found = corp_of(gamma, 0.95), recalibration(gamma)
    assert np.array_equal(drawn["mean"], found.means)
    for name in ("lower", "upper", "lowest", "highest"):
        assert np.array_equal(drawn[name], getattr(found, name))
    p, y = samples()
    assert drawn["error"] == pytest.approx(brier_score_loss(y, p))
    (text,) = [t.get_text() for t in plots.reliability(gamma, kind="corp").axes[0].texts]
    mcb, dsc, unc = (float(line.split("= ")[1]) for line in text.split("\n"))
    assert mcb - dsc + unc == pytest.approx(brier(gamma), abs=1.6e-4)
    # Of a single level, where an area has no width, bands are bars.
    for one, bars in ((gamma, 0), (G.from_counts([0.5], [9], [4]), 2)):
        lines = plots.reliability(one, kind="corp").axes[0].collections
        wide = [c for c in lines if isinstance(c, LineCollection) and c.get_linewidths()[0] == 5.0]
        assert sum(len(each.get_segments()) for each in wide) == bars


# ---------------------------------------------------------------- regrets and witnesses


def kink_by_definition(gamma, t):
    v, q, w = gamma.predictions, gamma.means, gamma.mass
    return (w * ((q - t) * ((v <= t) & (t < q)) + (t - q) * ((q < t) & (t <= v)))).sum()


@pytest.mark.parametrize("seeds", range(3))
def test_the_regret_of_every_kink(seeds):
    gamma = G.from_samples(*samples(60, 12, seeds))
    one = regrets_of(gamma)[2]["regret"]
    kinks, regrets = one["t"], one["regret"]
    for t in np.unique(kinks):
        heights = regrets[kinks == t]
        assert kink_by_definition(gamma, t) == pytest.approx(heights.max(), abs=1e-14)
        # The limits from the left and from the right.
        if 0 < t < 1:
            sides = [kink_by_definition(gamma, t - 1e-9), kink_by_definition(gamma, t + 1e-9)]
            assert [heights[0], heights[-1]] == pytest.approx(sides, abs=1e-8)
    for t in np.random.default_rng(seeds).random(200):  # straight in between
        left = np.flatnonzero(kinks <= t)[-1]
        a, b = kinks[left], kinks[left + 1]
        share = (t - a) / (b - a) if b > a else 0.0
        line = (1 - share) * regrets[left] + share * regrets[left + 1]
        assert line == pytest.approx(kink_by_definition(gamma, t), abs=1e-12)
    for t in (0.15, 0.5, 0.85):  # the task of the caption
        task = oc.tasks.DecisionTask("kink", [[t, 0.0], [0.0, 1.0 - t]])
        assert task.account(gamma).swap == pytest.approx(kink_by_definition(gamma, t))


def test_the_dashed_curves_are_above_and_give_the_value(gamma):
    value, task, parts = regrets_of(gamma, "cdl")
    (kinks, regrets), (corners, above), (at, _) = (
        (parts[kind]["t"], parts[kind]["regret"]) for kind in ("regret", "above", "worst")
    )
    assert (np.interp(kinks, corners, above) >= regrets - 1e-14).all()
    slopes = np.diff(above) / np.diff(corners)
    assert all(b <= a + 1e-12 for a, b in pairwise(slopes))
    assert 2 * np.interp(0.5, corners, above) == pytest.approx(cdl(gamma), abs=1e-15)
    # Every corner is a point of R: no lower concave curve is above it.
    for t, height in zip(corners, above, strict=True):
        assert kink_by_definition(gamma, t) == pytest.approx(height, abs=1e-14)
    assert task.bound(gamma) == pytest.approx(value) == cdl(gamma)
    assert at.tolist() == list(task.kinks)
    value, _, parts = regrets_of(gamma, "v_cdl")
    assert value == v_cdl(gamma)
    assert (value * np.maximum(kinks, 1 - kinks) >= regrets - 1e-14).all()
    for name in ("t", "regret"):
        assert np.array_equal(parts["regret"][name], {"t": kinks, "regret": regrets}[name])
    (t,), (height,) = parts["worst"].values()
    assert height == pytest.approx(value * max(t, 1 - t))
    value, _, parts = regrets_of(gamma, "scdl")
    losses = parts["losses"]["regret"]
    assert max(losses.max(), parts["grid"]["regret"]) == pytest.approx(value) == scdl(gamma)
    assert parts["worst"]["regret"][0] == losses.max()


def test_the_witness_attains_the_value():
    gamma = G.from_samples(*samples(300, 30, 2))
    value, parts = witness_of(gamma)
    v, weights = parts["levels"].values()
    assert value == smooth_ce(gamma)
    assert (weights * gamma.residuals).sum() == pytest.approx(value, abs=1e-14)
    assert np.abs(weights).max() <= 1.0
    assert (np.abs(np.diff(weights)) <= np.diff(v) + 1e-15).all()
    residuals = {t: r for kind in ("up", "down") for t, r in zip(*parts[kind].values(), strict=True)}
    assert residuals == {t: r for t, r in zip(v, gamma.residuals, strict=True) if r}
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    many = G.from_samples(p, rng.random(5000) < p**2)
    _, parts = witness_of(many)
    assert "levels" not in parts
    residuals = {t: r for kind in ("up", "down") for t, r in zip(*parts[kind].values(), strict=True)}
    assert len(residuals) == 200
    inside = (many.predictions >= 0.5) & (many.predictions < 0.505)
    assert residuals[100.5 / 200] == pytest.approx(many.residuals[inside].sum())


# ---------------------------------------------------------------- decisions


def regret_by_definition(gamma, q, t, *, above):
    """The loss of acting on v above t where q is below t, and of not acting where q is above: the limit at t."""
    v, gain = gamma.predictions, gamma.mass * (gamma.means - t)
    acts, should = (v > t, q > t) if above else (v >= t, q >= t)
    acted, waited = -(gain * ~should * acts).sum(), (gain * should * ~acts).sum()
    return acted / max(t, 1 - t), waited / max(t, 1 - t)


@pytest.mark.parametrize("against", ["levels", "monotone"])
def test_the_regret_of_each_threshold(against, gamma):
    some = G.from_samples(*samples(60, 12, 2))
    one = decisions_of(some, against=against)[0][0]
    q = some.means if against == "levels" else oc.isotonic(some)
    for i, t in enumerate(one["threshold"]):
        both = regret_by_definition(some, q, t, above=i % 2 == 1)
        assert (one["acted"][i], one["waited"][i]) == pytest.approx(both, abs=1e-12)
    # In between, the definition is nowhere above both ends.
    for t in np.random.default_rng(0).random(200):
        after = np.searchsorted(one["threshold"], t)
        if 0 < after < len(one["threshold"]):
            here = sum(regret_by_definition(some, q, t, above=True))
            assert here <= max(one["regret"][after - 1], one["regret"][after]) + 1e-9
    if against == "levels":
        every = decisions_of(gamma, against="levels")[0][0]["regret"]
        assert every.max() == pytest.approx(v_cdl(gamma), abs=1e-12)


def test_the_worst_threshold_is_that_of_the_report(gamma, distinct):
    """Also where it parts levels that the monotone recalibration pools."""
    pooled = G.from_counts([0.2, 0.6, 0.7], [100, 100, 100], [20, 55, 35])
    ends = G.from_counts([0.5, 1.0], [4, 4], [2, 3])
    for one in (gamma, G.from_samples(*distinct), pooled, pooled.flip(), ends):
        ((every, drawn), said), worst = decisions_of(one), worst_threshold(one)
        assert (drawn["threshold"], drawn["regret"], said) == (worst.at, worst.loss, str(worst))
        assert every["regret"].max() == pytest.approx(worst.loss, abs=1e-12)


# ---------------------------------------------------------------- Murphy diagrams


def test_elementary_scores_are_those_of_the_definition(gamma, distinct):
    p, y = samples(80, 6)
    (found,) = murphy_of({"": G.from_samples(p, y)})
    for i, (t, score) in enumerate(zip(found["threshold"], found["score"], strict=True)):
        above = p > t if i % 2 else p >= t
        assert score == pytest.approx(np.where(y == 1, (1 - t) * ~above, t * above).mean(), abs=1e-15)
    for one in (gamma, G.from_samples(*distinct)):  # the Brier score is twice the area
        (found,) = murphy_of({"": one})
        assert 2 * np.trapezoid(found["score"], found["threshold"]) == pytest.approx(brier(one), abs=1e-12)


@pytest.mark.parametrize("weights", [None, np.tile([1.0, 3.0], 200)])
def test_the_difference_is_that_of_the_curves(distinct, weights):
    p, y = distinct
    other = np.round(p * 4) / 4
    rows = {} if weights is None else {"weights": weights}
    found = difference_of(p, other, y, 0.95, **rows)
    thresholds, mean = found["threshold"], found["score"]
    first, second = (
        elementary_scores(G.from_samples(one, y, **rows), thresholds, above=True) for one in (p, other)
    )
    assert mean == pytest.approx(second - first, abs=1e-14)
    # Its variance by the samples, and one of either outcome in favour of either forecast; weights as Kish counts them.
    w = np.ones(400) if weights is None else weights
    n = w.sum() ** 2 / (w**2).sum()
    t = thresholds[:, None]
    scores = [np.where(y == 1, (1 - t) * (one <= t), t * (one > t)) for one in (p, other)]
    each, added = scores[1] - scores[0], 2 * ((1 - t[:, 0]) ** 2 + t[:, 0] ** 2)
    variance = np.average(each**2, axis=1, weights=w) - np.average(each, axis=1, weights=w) ** 2 + added / n
    half = found["upper"] - mean
    assert half == pytest.approx(mean - found["lower"])
    assert half == pytest.approx(student.ppf(0.975, n - 1) * np.sqrt(variance / n), rel=1e-9)


def test_the_interval_of_a_single_difference_is_that_of_the_samples_added():
    found = difference_of([0.2], [0.8], [1], 0.95)
    t = found["threshold"]
    half = student.ppf(0.975, 1) * np.sqrt(2 * ((1 - t) ** 2 + t**2))
    assert found["upper"] - found["score"] == pytest.approx(half)


def test_the_band_holds_the_expected_difference(seed):
    """On average over thresholds at least 93 % of 60 runs, up to five standard errors; a quarter of it fails."""
    rng = np.random.default_rng([seed, 3])
    grid, control = (np.arange(200) + 0.5) / 200, False
    for q, other in ((grid, 0.5 * grid + 0.25), (grid / 30, grid / 60 + 0.01)):
        t = np.linspace(0.0, 1.0, 401)
        of_one, of_other = (
            elementary_scores(G.from_levels(v, np.full(200, 1 / 200), q), t, above=True) for v in (q, other)
        )
        shares, quarter = [], []
        for _ in range(60):
            i = rng.integers(0, 200, 300)
            found = difference_of(q[i], other[i], rng.random(300) < q[i], 0.95)
            off, half = np.abs(found["score"] - (of_other - of_one)), found["upper"] - found["score"]
            told = t < 2 * q.max()  # beyond, the two scores do not differ
            shares.append((off <= half + 1e-12)[told].mean())
            quarter.append((off <= half / 4)[told].mean())
        control = control or np.mean(quarter) < 0.93 - 5 * max(np.std(quarter), 0.05) / 60**0.5
        assert np.mean(shares) >= 0.93 - 5 * max(np.std(shares), 0.05) / 60**0.5
    assert control


# ---------------------------------------------------------------- trajectories


def test_a_measure_of_the_forecasts_so_far_is_evaluated(distinct):
    p, y = distinct
    _, found, _ = running_measure(p, y, "smooth_ce")
    assert found["forecasts"][[0, -1]].tolist() == [20, 400]
    for n, low, high, a, b in zip(*found.values(), strict=True):
        assert low == high == oc.measures.smooth_ce(p[:n], y[:n])
        (row,) = oc.evaluate(p[:n], y[:n], measures=["smooth_ce"], bootstrap=200).rows
        assert (a, b) == row.interval
    _, last, _ = running_measure(p, y, "brier", window=50, level=0.0)
    assert np.isnan([last["lower"], last["upper"]]).all()
    assert running_measure(p, y, "brier", window=2, level=0.0)[1]["forecasts"][[0, -1]].tolist() == [2, 400]
    assert running_measure(p[:20], y[:20], "brier", level=0.0)[1]["forecasts"].tolist() == [20]
    for n, low in zip(last["forecasts"], last["low"], strict=True):
        assert low == oc.measures.brier(p[n - 50 : n], y[n - 50 : n])


# ---------------------------------------------------------------- all of them

PLOTS = {
    "points": (plots.reliability, {}),
    "smooth": (plots.reliability, {"kind": "smooth"}),
    "corp": (plots.reliability, {"kind": "corp"}),
    "regret": (plots.regret, {}),
    "witness": (plots.witness, {}),
    "decision": (plots.decision, {}),
    "murphy": (plots.murphy, {}),
    "trajectory": (plots.trajectory, {}),
}
HARD = {
    "one": ([0.3], [1]),
    "certain and wrong": ([0, 1, 1, 0], [1, 0, 0, 1]),
    "near one": ([0.999] * 9, [0, 1, 1] * 3),
    "near zero": ([0.01, 0.02], [1, 1]),
    "neighbours": ([0.3, 0.3 + 1e-15, 0.3 + 3e-15], [1, 0, 1]),
    "ends": ([1e-300, 1 - 1e-16, 1.0, 0.0], [0, 1, 0, 1]),
}


@pytest.mark.parametrize("name", some_fast(3, PLOTS))
def test_they_draw_whatever_there_is_within_their_axes_and_what_evaluate_returns(name):
    (plot, own), (p, y) = PLOTS[name], samples(100)
    for forecasts, outcomes in HARD.values():
        fig = plot(forecasts, outcomes, width="column", **own)
        fig.draw_without_rendering()
        axis = fig.axes[0]
        drawn = np.array([*points(axis)])
        if plot is plots.reliability:  # of which diagonal and bands go on beyond
            gamma = G.from_samples(forecasts, outcomes)
            drawn = np.stack((gamma.predictions, gamma.means), axis=1)
        if plot is plots.decision:  # thresholds at which next to nothing is lost are left out
            drawn = drawn[drawn[:, 1] >= 0.02 * drawn[:, 1].max()]
        for values, ends in zip(drawn.T, (axis.get_xlim(), axis.get_ylim()), strict=True):
            assert ends[0] - 1e-9 <= values.min() <= values.max() <= ends[1] + 1e-9
    if name == "trajectory":
        return
    gamma = G.from_samples(p, y)
    title = plot(gamma, **own).axes[0].get_title()
    assert plot(oc.evaluate(p, y, measures=["ece"]), **own).axes[0].get_title() == title
    if name != "murphy":
        axes = plot({"$a_b$ against 100 % {x}": gamma, "b": (p, y)}, width="column", **own).axes
        assert len(axes) == (4 if plot in (plots.reliability, plots.witness) else 2)
        assert axes[0].get_title().replace("\n", " ").startswith(r"\$a_b\$ against 100 % {x}")


def test_what_is_refused(gamma):
    p, y = samples()
    swapped = r"arguments are \(p, y\): predictions first; these look swapped"
    pair, reliability = r"a difference of . forecasts.*expected two in a mapping", plots.reliability
    refused = [(plot, (p,), own, "y is missing") for plot, own in PLOTS.values()] + [
        (plot, given, own, said)
        for name, (plot, own) in PLOTS.items() if name != "trajectory"
        for given, said in (((y, p), swapped), (({},), "nothing to draw"), ((gamma, y), "y beside a JointDistribution"))
    ] + [
        (reliability, (gamma,), {"kind": "corp", "bins": 10}, "bins = 10 with kind = 'corp'; expected kind = 'po"),
        (reliability, (gamma,), {"kind": "corpus"}, "kind"),
        (reliability, (gamma,), {"bins": 10_001}, "bins"),
        (plots.trajectory, (p, y), {"measure": "ece", "window": 1}, "window"),
        (plots.murphy, (p, y), {"difference": True}, pair),
        (plots.murphy, ({"a": p, "b": p, "c": p}, y), {"difference": True}, pair),
        (plots.murphy, ({"a": gamma, "b": gamma}, None), {"difference": True}, pair),
        (plots.trajectory, (gamma,), {}, "has no order in time; expected the predictions p and the outcomes y"),
        (plots.trajectory, (p[:19], y[:19]), {"measure": "ece"}, "19 forecasts; expected 20 or more"),
        (plots.trajectory, (p, y), {"measure": "ece", "window": 501}, "500 forecasts; expected 501 or more"),
        (plots.trajectory, (p, y), {"measure": "ecee"}, "ecee"),
        (plots.trajectory, (p, y), {"weights": y + 1.0}, "weights of forecasts that come one by one; expected none"),
    ]  # fmt: skip
    for plot, asked, options, said in refused:
        with pytest.raises(oc.OnlinecalError, match=said):
            plot(*asked, **options)


def test_title_lines_say_how_wide_bands_are_and_why_there_are_none(distinct, gamma):
    p, y = distinct
    scaled = G.from_levels(gamma.predictions, gamma.mass, gamma.means)
    for kind in ("points", "smooth", "corp"):
        said = [title(plots.reliability(gamma, kind=kind, band=band)) for band in (0.9, None)]
        assert said == ["bands of 90%", ""]
        assert title(plots.reliability(scaled, kind=kind)).startswith("no band, for weights")
    assert decisions_of(CALM, against="levels")[1] == "no threshold loses anything"
    for positives, act in (([20, 40], "≥ 0.8"), ([60, 80], "> 0.2")):
        said = decisions_of(G.from_counts([0.2, 0.8], [100, 100], positives), against="levels")[1]
        assert said == f"act when p {act}: 0.25 lost for each decision"
    said = title(plots.trajectory(p, y, width="page"))
    assert said == f"band of 95% · seen outside by forecast {running_bias(p, y).left:,}"
    assert title(plots.trajectory(p, y, band=None)) == ""
    for window, across in ((None, "forecasts"), (50, "last forecast of 50")):
        fig = plots.trajectory(p, y, measure="brier", window=window)
        assert (title(fig), fig.axes[0].get_xlabel()) == ("band of 95%", across)
    for band, said in ((0.95, "no intervals: all outcomes are 0, so that there is no pair"), (None, "")):
        without = title(plots.trajectory([0.2, 0.4] * 20, [0] * 40, measure="auc", band=band))
        assert (without.startswith(said), bool(without)) == (True, bool(said))
    assert title(plots.murphy({"a": p, "b": 1 - p}, y, difference=True, band=0.9)) == "b less a · band of 90%"


def test_bands_of_clusters_are_by_them_and_points_have_none():
    p, y = (np.repeat(each, 3) for each in samples(200, 8))
    rows = oc.evaluate(p, y, measures=["ece"], clusters=np.repeat(np.arange(200), 3), bootstrap=20)
    assert rows.resample.clusters == 200
    for kind, mark in (("smooth", "smooth"), ("corp", "corp")):
        table, alone = (plots.reliability_table(one, kind=kind) for one in (rows, rows.gamma))
        mine, theirs = (each[each["mark"] == mark] for each in (table, alone))
        wide = {"smooth": smoothed, "corp": recalibration}[kind](rows.gamma, resample=rows.resample)
        lower, upper = wide.band(0.95) if kind == "smooth" else (wide.lower, wide.upper)
        inside = slice(None) if kind == "corp" else np.isin(wide.at, mine["prediction"])
        assert np.array_equal(mine["lower"], lower[inside])
        assert np.array_equal(mine["upper"], upper[inside])
        assert (mine["upper"] - mine["lower"]).mean() > 1.4 * (theirs["upper"] - theirs["lower"]).mean()
    for kind, clusters, total, why in (
        ("corp", 200, 200_000, ""), ("corp", 200, 200_001, "more than 200,000 rows in clusters are not drawn again"),
        ("corp", 0, 200_001, ""), ("smooth", 200, 200_001, ""), ("points", 0, 600, "rows have weights"),
    ):  # fmt: skip
        many = SimpleNamespace(clusters=clusters, total=total, too_few="")
        assert unknown(rows.gamma, kind, many) == why
    table = plots.reliability_table(rows)
    assert table["lower"].isna().all()
    assert {*table["why"]} == {"rows of a cluster may depend on each other"}
    few = oc.evaluate(p, y, measures=["ece"], clusters=np.arange(600) % 5, bootstrap=20)
    for kind in ("smooth", "corp"):
        assert {*plots.reliability_table(few, kind=kind)["why"]} == {"there are too few clusters"}


@pytest.mark.parametrize("kind", ["points", "smooth", "corp"])
def test_several_forecasts_in_one_panel(kind):
    p, y = samples(100, levels=5)
    both = {"raw": p, "other": p**2}
    (legend,) = plots.reliability(both, y, kind=kind, together=True).legends
    titles = [axis.get_title().split("\n")[-1] for axis in plots.reliability(both, y, kind=kind).axes[:2]]
    named = [f"{label}: {title}" for label, title in zip(both, titles, strict=True)]
    assert [text.get_text() for text in legend.get_texts()] == named
    table = plots.reliability_table(both, y, kind=kind, together=True)
    for place, q in enumerate(both.values()):
        mine, alone = (
            each[each["mark"].isin(MARKS.values())]
            .drop(columns=["label", "place", "heading"])
            .dropna(axis=1, how="all")
            for each in (table[table["place"] == place], plots.reliability_table(q, y, kind=kind))
        )
        mine, alone = mine.reset_index(drop=True), alone.reset_index(drop=True)
        assert mine.equals(alone)


def test_a_grid_of_pairs_says_where_nothing_is_kept(gamma):
    pairs = {("one", "drift"): gamma, ("one", "coin"): None, ("other", "drift"): gamma}
    for plot in (plots.reliability, plots.regret, plots.witness):
        grid = panels(plot(pairs), 1 if plot is plots.regret else 2)
        texts = [
            {text.get_text() for text in axis.texts} & {"not played", "Γ is not kept"} for axis, *_ in grid
        ]
        assert texts == [set(), {"Γ is not kept"}, set(), {"not played"}]


def test_thresholds_of_a_grid_are_half_way_between_its_points():
    parts = regrets_of(G.from_samples(*samples(300, 30, 2)), "scdl")[2]
    places = round(1.0 / float(parts["grid"]["regret"])) * parts["losses"]["t"] + 0.5
    assert places == pytest.approx(np.arange(1, len(places) + 1))
    assert parts["worst"]["t"][0] == parts["losses"]["t"][np.argmax(parts["losses"]["regret"])]
