"""Histograms below reliability diagrams, several forecasts in one panel, and the command that draws them."""

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

import onlinecal as oc
from onlinecal.report import plots
from onlinecal.report.reliability_plot import AUTOMATIC, points_of, weights_of
from tests.command_line import onlinecal

G = oc.JointDistribution


@pytest.mark.parametrize("m", [7, 199, 200, 1001])
def test_many_levels_have_a_histogram(m):
    below = weights_of(G.from_counts(np.arange(m + 1) / m, np.full(m + 1, 3), np.ones(m + 1)))
    if m < 200:
        assert below["prediction"].tolist() == (np.arange(m + 1) / m).tolist()
        assert below["share"] == pytest.approx(np.full(m + 1, 1 / (m + 1)))
    else:
        assert below["left"].tolist() == (np.arange(AUTOMATIC) / AUTOMATIC).tolist()
        # Bins differ by a level, and the last one is closed.
        assert np.abs(below["share"] - 1 / AUTOMATIC).max() <= 1.5 / (m + 1)


def test_a_histogram_is_of_the_weights_and_as_fine_as_its_axis(seed):
    rng = np.random.default_rng([seed, 1])
    p, w = rng.beta(1, 60, 2000), rng.random(2000)
    end = next(e for e in (0.1, 0.2, 0.5) if p.max() <= e)
    below = weights_of(G.from_samples(p, p > 0.01, weights=w))
    bins = round(AUTOMATIC / end)
    counts = np.histogram(p, np.arange(bins + 1) / bins, weights=w)[0]
    assert below["share"] == pytest.approx(counts / w.sum(), abs=1e-9)


@pytest.mark.parametrize(
    ("levels", "points", "strategy"), [(200, 200, "levels"), (201, AUTOMATIC, "quantile")]
)
def test_more_than_two_hundred_levels_are_points_of_bins(levels, points, strategy):
    found = points_of(G.from_counts(np.arange(levels) / levels, np.full(levels, 3), np.ones(levels)))
    assert (len(found["mean"]), found["strategy"]) == (points, strategy)
    assert points_of(G.from_counts([0.5], [9], [4]), bins=10_000)["right"].tolist() == [0.5001]


@pytest.fixture
def three(seed):
    rng = np.random.default_rng([seed, 2])
    p = rng.random(400)
    return {"fine": p, "rounded": p.round(1), "high": 0.5 + 0.5 * p}, (rng.random(400) < p).astype(int)


@pytest.mark.parametrize("kind", ["points", "smooth", "corp"])
def test_several_forecasts_have_a_strip_each_of_the_same_bins(kind, three):
    forecasts, y = three
    table = plots.reliability_table(forecasts, y, kind=kind, together=True)
    strips = table[table["mark"] == "histogram"]
    assert strips.groupby("place").size().tolist() == [AUTOMATIC] * 3
    for place, p in enumerate(forecasts.values()):
        counts = np.histogram(p, np.arange(AUTOMATIC + 1) / AUTOMATIC)[0]
        if place != 1:  # multiples of 1/10 lie on edges
            assert strips.loc[strips["place"] == place, "share"].to_numpy() == pytest.approx(counts / 400)
    figure = plots.reliability(forecasts, y, kind=kind, together=True)
    figure.draw_without_rendering()
    above, below = figure.axes
    colours = [to_rgb(line.get_color()) for line in figure.legends[0].get_lines()]
    assert [patch.get_facecolor()[:3] for patch in below.patches] == colours
    feet = [patch.get_data().baseline for patch in below.patches]
    tops = [patch.get_data().values.max() for patch in below.patches]
    # Each strip ends below the next one.
    assert feet[0] > tops[1] > feet[1] > tops[2] > feet[2] == 0.0
    assert above.get_xlim() == below.get_xlim()


def test_many_levels_together_are_in_ten_bins_of_equal_mass_unless_asked_otherwise(three):
    forecasts, y = three

    def points(**options):
        table = plots.reliability_table(forecasts, y, together=True, **options)
        return table[table["mark"] == "point"]

    assert points().groupby("place").size()[0] == 10
    assert {*points()["strategy"]} == {"quantile"}
    assert points(bins=5).groupby("place").size()[0] == 5
    for levels, strategy in ((AUTOMATIC, "levels"), (AUTOMATIC + 1, "quantile")):
        p = np.arange(levels) / levels
        few = plots.reliability_table({"a": p, "b": 0.0 * p}, p > 0.5, together=True)
        assert {*few["strategy"][few["mark"] == "point"]} == {strategy}


def test_the_command_draws_all_columns_in_one_picture(tmp_path, three):
    forecasts, y = three
    pd.DataFrame(forecasts | {"y": y}).to_csv(tmp_path / "log.csv", index=False)
    asked = ["measure", "log.csv", "--draws", "0", "-y", "y", "-m", "brier", "-f", "fine", "-f", "high"]
    for name in ("both.svg", "both.png"):
        assert f"wrote {name}" in onlinecal(*asked, "-o", name, cwd=tmp_path).stdout
    drawn = (tmp_path / "both.svg").read_text("utf-8")
    assert [name for name in ("fine", "rounded", "high") if re.search(rf">{name}: smECE", drawn)] == [
        "fine",
        "high",
    ]
    assert (tmp_path / "both.png").read_bytes()[:4] == b"\x89PNG"
    assert "both.gif: expected" in onlinecal(*asked, "-o", "both.gif", cwd=tmp_path, rc=2).stderr
