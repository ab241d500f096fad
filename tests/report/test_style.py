"""How pictures look: forecasters told apart, light and dark pages, widths, files, and nothing that is cut off."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import onlinecal as oc
from onlinecal.report.curve_plot import plot_curves
from onlinecal.report.decision_plot import plot_murphy
from onlinecal.report.frames import curves_table
from onlinecal.report.study_plot import plot_exponents
from onlinecal.report.style import BRIGHT, COLOURS, MARKERS, least_power, look, page, thinned
from tests.report import made
from tests.report.made import contrast, light


@pytest.fixture(scope="module")
def study():
    players = ["forecast_hedging", "almost_one_step_ahead", "empirical_mean"]
    return oc.play(
        players, ["drift", "contrarian"], horizon=[100, 300, 900], runs=3, measures=["ece", "smooth_ce"]
    )


# ---------------------------------------------------------------- forecasters


@pytest.mark.parametrize("dark", [False, True])
def test_forecasters_are_told_apart_and_in_grey_too(dark):
    with page(dark):
        looks = [look(i) for i in range(200)]
    colours, every = BRIGHT if dark else COLOURS, ("color", "marker", "linestyle")
    assert len({tuple(own[name] for name in every) for own in looks}) == 200
    # Where there are no lines: by colours and markers.
    assert len({(own["color"], own["marker"]) for own in looks[:64]}) == 64
    assert [(own["color"], own["marker"]) for own in looks[:8]] == list(zip(colours, MARKERS, strict=True))
    # Without colours: by markers and dashes.
    assert len({(own["marker"], own["linestyle"]) for own in looks[:32]}) == 32
    for own in looks:  # and every colour is seen on its page
        low, high = sorted((light(own["color"]), 0.0 if dark else 1.0))
        assert (high + 0.05) / (low + 0.05) > 2.0


def test_contrasts_are_those_of_the_guidelines():
    """The greys that WCAG 2 and its checkers know: #767676 just passes on white, and #777777 just does not."""
    known = {"#000000": 21.0, "#767676": 4.542, "#777777": 4.478, "#ff0000": 3.998, "#0a0a0a": 19.798}
    for ink, expected in known.items():
        assert contrast(ink, "white") == contrast("white", ink) == pytest.approx(expected, abs=6e-4)


#: what is seen without one of the three cones, in linear RGB (Machado, Oliveira and Fernandes 2009, severity 1)
BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
#: linear RGB to the cones of Oklab (Ottosson 2020), and their cube roots to it
CONES = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
OKLAB = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]


@pytest.mark.parametrize("blind", BLIND)
@pytest.mark.parametrize("dark", [False, True])
def test_neighbours_are_told_apart_with_every_colour_blindness(blind, dark):
    """By more than 0.06 in Oklab, thrice what is just seen; one pair, which `COLOURS` names, by markers alone."""
    rgb = np.array([to_rgb(colour) for colour in (BRIGHT if dark else COLOURS)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(BLIND[blind]), 0.0, 1.0)
    lab = np.cbrt(seen @ np.transpose(CONES)) @ np.transpose(OKLAB)
    near = np.flatnonzero(np.linalg.norm(lab - np.roll(lab, 1, axis=0), axis=1) <= 0.06)
    assert list(near) == ([7] if blind == "deutan" and not dark else [])
    assert MARKERS[6] != MARKERS[7]


def test_a_forecaster_looks_the_same_whatever_is_selected(study):
    table = curves_table(study.curves())
    whole = dict(zip(table["forecaster"], table["place"], strict=True))
    del whole[""]  # what a nature forces
    assert whole == {"forecast hedging": 0, "almost one step ahead": 1, "empirical mean": 2}
    for who in study.forecasters:
        part = study.only([who]).only(natures=["drift"])
        assert part.places[who] == whole[who]
        table = curves_table(part.curves(["ece"]))
        assert set(table["place"][table["mark"] == "mean"]) == {whole[who]}
    drawn = plot_curves(study.only(["empirical mean"]).curves(["ece"])).axes[0].lines[-1]
    assert (drawn.get_color(), drawn.get_marker()) == (COLOURS[2], MARKERS[2])


# ---------------------------------------------------------------- pages and widths


WORD, WORDS = "x_" * 55, "a label of which $every_word$ is needed, and some more words " * 2


@pytest.mark.parametrize(("label", "width"), [(WORD, None), (WORDS, "page")])
def test_long_labels_leave_room_for_a_table_and_for_curves(label, width):
    totals = np.array([10.0, 12.0])
    cells = (
        made.cell(f"{label}{i}", dict.fromkeys(("ece", "cdl"), totals * t), f"{label}{j}", times=(t,))
        for i in range(6) for j in range(3) for t in (100, 400, 1600)
    )  # fmt: skip
    panels = plot_exponents(made.study(*cells), ["ece", "cdl"], width=width)
    several = plot_murphy({f"{label}{i}": ([0.2, 0.05 * i], [0, 1]) for i in range(12)}, width=width)
    for fig, axes in ((panels, panels.axes[:2]), (several, several.axes)):
        fig.draw_without_rendering()
        for axis in axes:
            box = axis.get_window_extent()
            assert min(box.width, box.height) / fig.dpi > 0.8
    # Labels show what tells them apart.
    assert len({text.get_text() for text in panels.axes[0].get_yticklabels()}) == 6
    assert [text.get_text()[-1] for text in panels.axes[0].get_xticklabels()] == ["0", "1", "2"]


def test_a_curve_of_many_points_is_thinned_to_what_can_be_seen():
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(60_000))
    y = rng.random(60_000)
    few, heights = thinned(x, y)
    assert len(few) <= 8000
    assert {*zip(few.tolist(), heights.tolist(), strict=True)} <= {*zip(x.tolist(), y.tolist(), strict=True)}
    edges = np.linspace(x[0], x[-1], 2001)
    for a, b in pairwise(edges[:50]):
        there, kept = (x >= a) & (x < b), (few >= a) & (few < b)
        assert y[there].max() == heights[kept].max()
        assert y[there].min() == heights[kept].min()
    assert np.array_equal(thinned(x[:100], y[:100]), (x[:100], y[:100]))


def test_an_axis_is_linear_below_the_least_size_but_over_four_decades_at_most():
    assert [least_power(np.array(sizes)) for sizes in ([3.0, 500.0], [0.2, 900.0], [1e-9, 200.0])] == [
        1.0,
        0.1,
        0.01,
    ]
