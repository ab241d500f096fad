"""Pictures of Γ: what is drawn to the digit, and what captions say of it."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.measures import binned_ece, cdl, ece, scdl, smooth_ce, v_cdl
from onlinecal.report import regret_plot, reliability_plot, witness_plot
from onlinecal.report.regret_plot import plot_regret, regret_density
from onlinecal.report.reliability_plot import expected, plot_reliability, reliability_frame
from onlinecal.report.style import save
from onlinecal.report.witness_plot import plot_witness, smooth_witness

G = oc.JointDistribution
PLOTS = (plot_reliability, plot_regret, plot_witness)
CAPTIONS = (reliability_plot.caption, regret_plot.caption, witness_plot.caption)


def samples(n=500, levels=20, seed=1):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, levels + 1, n) / levels
    return p, (rng.random(n) < 0.1 + 0.8 * p).astype(int)


@pytest.fixture(scope="module")
def gamma():
    return G.from_samples(*samples())


def flat(axis):
    """Its whole caption, in one line."""
    return " ".join(axis.figure._supxlabel.get_text().split())


# ---------------------------------------------------------------- reliability


def test_a_reliability_diagram_is_of_the_levels(gamma):
    frame = reliability_frame(gamma)
    assert frame.strategy == "levels"
    assert (frame.predictions == gamma.predictions).all()
    assert (frame.means == gamma.means).all()
    assert (frame.mass == gamma.mass).all()
    assert frame.error == ece(gamma)
    assert (frame.left == frame.right).all()
    # The density is of the levels, too: bars of equal width would have gaps where they are no multiple of a grid.
    assert (frame.density.at == gamma.predictions).all()
    assert (frame.density.heights == gamma.mass).all()


@pytest.mark.parametrize("strategy", ["width", "quantile"])
@pytest.mark.parametrize("bins", [1, 7, 10, 15])
def test_bins_are_those_of_the_binned_error(gamma, bins, strategy):
    frame = reliability_frame(gamma, bins=bins, strategy=strategy)
    assert frame.error == pytest.approx(binned_ece(gamma, bins=bins, strategy=strategy), abs=1e-15)
    assert frame.error == pytest.approx(
        (frame.mass * np.abs(frame.means - frame.predictions)).sum(), abs=1e-14
    )
    assert frame.mass.sum() == pytest.approx(1.0)
    for left, right, mean in zip(frame.left, frame.right, frame.predictions, strict=True):
        assert left - 1e-12 <= mean <= right + 1e-12
    if strategy == "width":
        for point, (left, right) in enumerate(zip(frame.left, frame.right, strict=True)):
            closed = right == 1.0
            v = gamma.predictions
            inside = (v >= left) & ((v < right) | (closed & (v == right)))
            assert frame.mass[point] == pytest.approx(gamma.mass[inside].sum())


def test_an_edge_belongs_to_the_bin_above_it():
    gamma = G.from_samples([0.3, 0.29, 1.0], [0, 1, 1])
    frame = reliability_frame(gamma, bins=10)
    assert frame.left.tolist() == [0.2, 0.3, 0.9]
    assert frame.right.tolist() == [0.3, 0.4, 1.0]
    assert frame.predictions.tolist() == [0.29, 0.3, 1.0]


def test_of_many_levels_bins_of_equal_mass_are_drawn():
    rng = np.random.default_rng(0)
    p = rng.random(100_000)
    frame = reliability_frame(G.from_samples(p, rng.random(100_000) < p))
    assert (frame.strategy, frame.asked, len(frame.means)) == ("quantile", 20, 20)
    assert frame.mass == pytest.approx(np.full(20, 0.05))
    said = reliability_plot.caption(p, rng.random(100_000) < p)
    assert "The 100,000 levels themselves are not drawn." in said
    assert "bins have as equal weights as levels that are not divided allow." in said
    # One level has nearly all of it, and of one level no bin shows less than all.
    heavy = reliability_frame(
        G.from_counts([0.1, 0.2, 0.3], [98, 1, 1], [9, 0, 1]), bins=3, strategy="quantile"
    )
    assert heavy.mass == pytest.approx([0.98, 0.02])
    assert "The 1 level itself is not drawn." in reliability_plot.caption(
        G.from_counts([0.3], [9], [3]), bins=4
    )


def poisson_binomial(p):
    """P(S = s) of a sum of independent outcomes, by convolution."""
    law = np.ones(1)
    for q in p:
        law = np.convolve(law, [1.0 - q, q])
    return law


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_band_of_a_level_is_that_of_the_binomial_law(level):
    n = np.array([1, 2, 5, 30, 200, 10_000, 10**9], dtype=float)[:, None]
    v = np.array([1e-9, 0.01, 0.1, 1 / 3, 0.5, 0.9, 1 - 1e-9])
    counts, predictions = np.broadcast_arrays(n, v)
    low, high = expected(counts.ravel(), predictions.ravel(), level)
    counts, predictions = counts.ravel(), predictions.ravel()
    least, most = np.rint(low * counts), np.rint(high * counts)
    below = binom.cdf(least - 1, counts, predictions)
    above = binom.sf(most, counts, predictions)
    tail = (1 - level) / 2
    assert (below <= tail * (1 + 1e-6)).all()
    assert (above <= tail * (1 + 1e-6)).all()
    # And no wider than it must be, but for the unit around the mean.
    tight = (least >= np.floor(counts * predictions)) | (
        binom.cdf(least, counts, predictions) >= tail * (1 - 1e-6)
    )
    assert tight.all()
    tight = (most <= np.ceil(counts * predictions)) | (
        binom.sf(most - 1, counts, predictions) >= tail * (1 - 1e-6)
    )
    assert tight.all()


def test_the_band_of_certain_predictions_is_a_point():
    low, high = expected(np.array([5.0, 7.0]), np.array([0.0, 1.0]), 0.95)
    assert low.tolist() == high.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.3, 0.49])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_the_band_of_a_bin_holds_at_least_what_it_says(spread, level):
    """Exactly, by the law of the sum of different outcomes (Hoeffding's theorem, by which it is so, is not used)."""
    rng = np.random.default_rng(5)
    for n in (1, 2, 3, 10, 60):
        for centre in (0.5, 0.5 + spread / 3, 0.02 + spread, 0.98 - spread):
            p = np.clip(centre + spread * rng.uniform(-1, 1, n), 0.0, 1.0)
            law = poisson_binomial(p)
            low, high = expected(np.array([float(n)]), np.array([p.mean()]), level)
            sums = np.arange(n + 1)
            inside = (sums >= low * n - 1e-9) & (sums <= high * n + 1e-9)
            assert law[inside].sum() >= level - 1e-12


def test_the_band_is_left_by_outcomes_of_another_probability():
    """The control: 200 outcomes of probability 0.7, predicted as 0.5."""
    low, high = expected(np.array([200.0]), np.array([0.5]), 0.95)
    inside = binom.cdf(high[0] * 200, 200, 0.7) - binom.cdf(low[0] * 200 - 1, 200, 0.7)
    assert inside < 1e-3


def test_points_of_calibrated_predictions_lie_in_the_band(seed):
    """In 2000 draws of 21 points at most 5 % are outside: more than 6 % has probability below exp(−2·42000·0.01²)
    = 2e-4 by Hoeffding's inequality, as all outcomes are independent."""
    rng = np.random.default_rng([seed, 7])
    v, counts = np.linspace(0, 1, 21), rng.integers(5, 100, 21)
    outside = 0
    for _ in range(2000):
        frame = reliability_frame(G.from_counts(v, counts, rng.binomial(counts, v)))
        outside += ((frame.means < frame.lower - 1e-12) | (frame.means > frame.upper + 1e-12)).sum()
    assert outside <= 0.06 * 42_000


def test_weights_that_are_not_whole_have_no_band(gamma):
    scaled = G.from_levels(gamma.predictions, gamma.mass, gamma.means)
    frame = reliability_frame(scaled)
    assert frame.level == 0.0
    assert np.isnan(frame.lower).all()
    said = reliability_plot.caption(scaled)
    assert (
        "Not shown: how far chance alone would move the points, for weights are not whole numbers of rounds."
        in said
    )
    assert "Grey bars" not in said
    assert "Not shown: how far chance alone would move the points." in reliability_plot.caption(
        gamma, band=None
    )


def test_what_the_caption_of_a_reliability_diagram_says(gamma):
    said = reliability_plot.caption(gamma)
    for statement in (
        "Each point is a level of Γ: across, its prediction; up, the mean outcome of its rounds.",
        "Its area is its share of the weight",
        "Diagonal: calibrated predictions; the mean distance from it, by weight, is the ECE.",
        "probability 95% or more, point by point, if all predictions were fixed before and every outcome were drawn "
        "with the probability predicted, independently (exact binomial quantiles).",
        "A point may then lie outside with probability 0.05 at most.",
        "Below: the share of the weight at each level.",
    ):
        assert statement in said
    assert "Horizontal lines" not in said
    binned = reliability_plot.caption(gamma, bins=5)
    assert "Horizontal lines: bins [a, b), the last one closed." in binned
    assert "The 21 levels themselves are not drawn." in binned
    assert "is the binned ECE." in binned
    assert "which hold at least as much" in binned
    many = G.from_counts([0.1, 0.5], [1, 1000], [0, 400])
    assert "; below 20% of the largest weight it is drawn as if it were 20%" in reliability_plot.caption(many)
    assert "largest weight" not in reliability_plot.caption(G.from_counts([0.1, 0.5], [9, 9], [0, 4]))


def test_areas_are_as_weights(gamma):
    axis = plot_reliability(gamma)
    (points,) = [
        c for c in axis.collections if hasattr(c, "get_sizes") and len(c.get_offsets()) == gamma.levels
    ]
    order = np.argsort(points.get_offsets()[:, 0])
    assert np.array_equal(points.get_offsets()[order], np.stack((gamma.predictions, gamma.means), axis=1))
    sizes = points.get_sizes()[order]
    assert sizes / sizes.max() == pytest.approx(np.maximum(gamma.mass / gamma.mass.max(), 0.2))


def test_points_of_little_weight_are_seen_and_whole_and_panels_have_the_same_axes():
    many = G.from_counts([0.0, 0.3, 1.0], [1, 10**6, 1], [0, 300_000, 1])
    near = G.from_counts([0.01, 0.3], [10, 10], [0, 5])
    axes = plot_reliability({"a": many, "b": near, "c": many}, width="page")
    fig = axes[0].figure
    fig.draw_without_rendering()
    for axis in axes:
        assert (axis.get_xlim(), axis.get_ylim()) == ((-0.04, 1.04), (-0.04, 1.04))
        (points,) = [c for c in axis.collections if hasattr(c, "get_sizes") and len(c.get_sizes())]
        across = np.sqrt(points.get_sizes())
        assert across.min() >= 3.5  # typographic points: 7 pixels at 150 dots an inch
        radius = (across / 2 + 0.25)[:, None] * fig.dpi / 72
        at, box = axis.transData.transform(points.get_offsets()), axis.get_window_extent()
        assert (at - radius >= (box.x0, box.y0)).all()
        assert (at + radius <= (box.x1, box.y1)).all()


# ---------------------------------------------------------------- regret


def regret_by_definition(gamma, t):
    v, q, w = gamma.predictions, gamma.means, gamma.mass
    return (w * ((q - t) * ((v <= t) & (t < q)) + (t - q) * ((q < t) & (t <= v)))).sum()


@pytest.mark.parametrize("seeds", range(4))
def test_the_regret_of_every_kink(seeds):
    gamma = G.from_samples(*samples(60, 12, seeds))
    one = regret_density(gamma)
    for t in np.unique(one.kinks):
        heights = one.regrets[one.kinks == t]
        assert regret_by_definition(gamma, t) == pytest.approx(heights.max(), abs=1e-14)
        # From the left, itself, from the right.
        step = 1e-9
        if t > 0:
            assert heights[0] == pytest.approx(regret_by_definition(gamma, t - step), abs=1e-8)
        if t < 1:
            assert heights[-1] == pytest.approx(regret_by_definition(gamma, t + step), abs=1e-8)
    # Straight in between.
    for t in np.random.default_rng(seeds).random(200):
        left = np.flatnonzero(one.kinks <= t)[-1]
        a, b = one.kinks[left], one.kinks[left + 1]
        share = (t - a) / (b - a) if b > a else 0.0
        line = (1 - share) * one.regrets[left] + share * one.regrets[left + 1]
        assert line == pytest.approx(regret_by_definition(gamma, t), abs=1e-12)


def test_the_dashed_curves_are_above_and_give_the_value(gamma):
    one = regret_density(gamma, "cdl")
    height = np.interp(one.kinks, one.above_kinks, one.above)
    assert (height >= one.regrets - 1e-14).all()
    slopes = np.diff(one.above) / np.diff(one.above_kinks)
    assert all(b <= a + 1e-12 for a, b in pairwise(slopes))
    assert 2 * np.interp(0.5, one.above_kinks, one.above) == pytest.approx(cdl(gamma), abs=1e-15)
    assert one.value == cdl(gamma)
    # Every corner is a point of R: no lower concave curve is above it.
    assert all(regret_by_definition(gamma, t) == pytest.approx(h, abs=1e-14)
               for t, h in zip(one.above_kinks, one.above, strict=True))  # fmt: skip
    assert one.worst.value(gamma) == pytest.approx(one.value)
    assert one.at.tolist() == list(one.worst.kinks)
    single = regret_density(gamma, "v_cdl")
    assert single.value == v_cdl(gamma)
    curve = single.value * np.maximum(single.kinks, 1 - single.kinks)
    assert (curve >= single.regrets - 1e-14).all()
    (t,) = single.at
    assert single.height[0] == pytest.approx(single.value * max(t, 1 - t))
    soft = regret_density(gamma, "scdl")
    assert max(soft.regrets.max(), 1 / soft.grid) == pytest.approx(scdl(gamma))
    assert soft.height[0] == soft.regrets.max()


def test_what_the_caption_of_the_regret_says(gamma):
    said = regret_plot.caption(gamma)
    for statement in (
        "Line: R(t), the swap regret for each round of the task that tells apart probabilities below and above t, with "
        "payoffs that differ by t if y = 0 and by 1 − t if y = 1.",
        "Vertical parts are jumps, at predictions.",
        "Dashed: the least concave curve above R. CDL is twice its height at t = 1/2 (square).",
        "Points: the kinks of the worst task.",
        f"Worst {regret_density(gamma).worst}.",
    ):
        assert statement in said
    assert "Dashed: V-CDL × max(t, 1 − t)" in regret_plot.caption(gamma, measure="v_cdl")
    soft = regret_density(gamma, "scdl")
    assert f"a neighbouring multiple of 1/{soft.grid}, the grid that attains SCDL" in regret_plot.caption(
        gamma, measure="scdl"
    )
    calm = G.from_levels([0.2, 0.7], [0.5, 0.5], [0.2, 0.7])
    for measure in ("cdl", "v_cdl", "scdl"):
        text = regret_plot.caption(calm, measure=measure)
        assert "Calibrated: no task regrets anything." in text
        assert "Points" not in text
        save(plot_regret(calm, measure=measure).figure, _nowhere())


def test_the_task_whose_regret_is_drawn():
    """The caption's task: payoffs that differ by t and 1 − t."""
    gamma = G.from_samples(*samples(60, 12, 3))
    for t in (0.15, 0.5, 0.85):
        task = oc.tasks.DecisionTask("kink", [[t, 0.0], [0.0, 1.0 - t]])
        assert task.account(gamma).swap == pytest.approx(regret_by_definition(gamma, t))


# ---------------------------------------------------------------- witness


@pytest.mark.parametrize("seeds", range(4))
def test_the_witness_attains_the_value(seeds):
    gamma = G.from_samples(*samples(300, 30, seeds))
    one = smooth_witness(gamma)
    assert one.value == smooth_ce(gamma)
    assert (one.weights * gamma.residuals).sum() == pytest.approx(one.value, abs=1e-14)
    assert np.abs(one.weights).max() <= 1.0
    assert (np.abs(np.diff(one.weights)) <= np.diff(one.predictions) + 1e-15).all()
    assert np.array_equal(one.residuals, gamma.residuals)
    assert not one.summed


def test_residuals_of_many_levels_are_summed():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    gamma = G.from_samples(p, rng.random(5000) < p**2)
    one = smooth_witness(gamma)
    assert one.summed
    assert len(one.at) == 200
    assert one.residuals.sum() == pytest.approx(gamma.residuals.sum())
    inside = (gamma.predictions >= 0.5) & (gamma.predictions < 0.505)
    assert one.residuals[100] == pytest.approx(gamma.residuals[inside].sum())
    said = witness_plot.caption(gamma)
    assert "Those of 5,000 levels are summed over 200 parts of [0, 1]." in said
    assert "Points: the levels" not in said


def test_what_the_caption_of_the_witness_says(gamma):
    said = witness_plot.caption(gamma)
    for statement in (
        "attains the smooth calibration error, among all that stay in [−1, 1] and change by no more than v does.",
        "Points: the levels of Γ.",
        "Below: residuals, the weight of a level × (mean outcome − v), blue above 0 and orange below.",
        "smCE is the sum of residual × ω over the levels. Other ω may attain it, too.",
    ):
        assert statement in said
    calm = G.from_levels([0.2, 0.7], [0.5, 0.5], [0.2, 0.7])
    assert "Where it is 0 every ω attains it." in witness_plot.caption(calm)


# ---------------------------------------------------------------- all three


def _nowhere():
    from pathlib import Path
    from tempfile import mkdtemp

    return Path(mkdtemp()) / "a.png"


@pytest.mark.parametrize(("plot", "words"), [*zip(PLOTS, CAPTIONS, strict=True)])
def test_pictures_of_gamma_take_axes_and_labels(plot, words, gamma, tmp_path):
    own = plot(gamma)
    assert flat(own) == words(gamma)
    p, y = samples()
    assert plot(p, y).get_title() == own.get_title()
    given = Figure().subplots()
    assert plot(gamma, axes=given) is given
    assert given.get_title() == own.get_title()
    for mine, theirs in zip(own.lines, given.lines, strict=True):
        assert np.array_equal(mine.get_xydata(), theirs.get_xydata())
    several = {"$a_b$ against 100 % {x}": gamma, "the other": gamma, "third": gamma, "fourth": gamma}
    for width in ("column", "page", 11):
        axes = plot(several, width=width, dark=width == "column")
        assert axes.shape == (4,)
    save(axes[0].figure, tmp_path / "a.png")
    assert axes[0].get_title().startswith(r"\$a_b\$ against 100 % {x}")
    with pytest.raises(InvalidParameter, match="expected 4 matplotlib Axes, one for each"):
        plot(several, axes=Figure().subplots(2))
    with pytest.raises(InvalidParameter, match="title = 'x' with axes"):
        plot(gamma, axes=given, title="x")
    with pytest.raises(InvalidData, match="y is missing"):
        plot(p)
    with pytest.raises(InvalidParameter, match="y beside a JointDistribution"):
        plot(gamma, y)
    with pytest.raises(InvalidParameter, match="nothing to draw"):
        plot({})
    with pytest.raises(InvalidParameter, match="width = 'wide'; expected 'column'"):
        plot(gamma, width="wide")


@pytest.mark.parametrize("plot", PLOTS)
def test_on_a_dark_page_text_is_light(plot, gamma):
    axis = plot(gamma, dark=True, title="A title")
    fig = axis.figure
    assert to_hex(fig.get_facecolor()) == to_hex(axis.get_facecolor()) == "#17191d"
    texts = [fig._suptitle, fig._supxlabel, axis.title, axis.yaxis.label, *axis.get_yticklabels()]
    for text in texts:
        red, green, blue = (int(to_hex(text.get_color())[i : i + 2], 16) for i in (1, 3, 5))
        assert min(red, green, blue) > 150
    assert to_hex(plot(gamma).figure.get_facecolor()) == "#ffffff"
