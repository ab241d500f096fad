"""How pictures look: forecasters told apart, light and dark pages, widths, files, and nothing that is cut off."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import onlinecal as oc
from onlinecal.growth.words import legend, lines
from onlinecal.report.curve_plot import plot_curves
from onlinecal.report.decision_plot import plot_murphy
from onlinecal.report.frames import curves_table
from onlinecal.report.study_plot import plot_exponents
from onlinecal.report.style import BRIGHT, COLOURS, MARKERS, page, paper, thinned
from tests.report import made
from tests.report.test_pictures import light


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
        sheet = paper()
    looks = [sheet.style(i) for i in range(200)]
    assert len({(look.colour, look.marker, look.dashes) for look in looks}) == 200
    # Where there are no lines: by colours and markers.
    assert len({(look.colour, look.marker) for look in looks[:64]}) == 64
    assert [(look.colour, look.marker) for look in looks[:8]] == list(
        zip(sheet.colours, MARKERS, strict=True)
    )
    # Without colours: by markers and dashes.
    assert len({(look.marker, look.dashes) for look in looks[:32]}) == 32
    page_itself = 0.01 if dark else 1.0
    for look in looks:  # and every colour is seen on its page
        low, high = sorted((light(look.colour), page_itself))
        assert (high + 0.05) / (low + 0.05) > 2.0


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
    looks = [paper().style(i) for i in range(64)]
    assert all(one.marker != other.marker or one.colour != other.colour for one, other in pairwise(looks))
    assert looks[6].marker != looks[7].marker


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
    drawn = plot_curves(study.only(["empirical mean"]).curves(["ece"]))[0, 0].lines[-1]
    assert (drawn.get_color(), drawn.get_marker()) == (paper().style(2).colour, paper().style(2).marker)


# ---------------------------------------------------------------- pages and widths


WORD, WORDS = "x_" * 55, "a label of which $every_word$ is needed, and some more words " * 2


@pytest.mark.parametrize(("label", "width"), [(WORD, "column"), (WORDS, "page"), (WORD, None)])
def test_long_labels_leave_room_for_a_table_and_for_the_curves_of_forecasts(label, width):
    totals = np.array([10.0, 12.0])
    cells = (
        made.cell(f"{label}{i}", dict.fromkeys(("ece", "cdl"), totals * t), f"{label}{j}", times=(t,))
        for i in range(6) for j in range(3) for t in (100, 400, 1600)
    )  # fmt: skip
    panels = plot_exponents(made.study(*cells), ["ece", "cdl"], width=width)
    axis = plot_murphy({f"{label}{i}": ([0.2, 0.05 * i], [0, 1]) for i in range(12)}, width=width)
    for fig, cell in ((panels[0].figure, (3, 6)), (axis.figure, (1, 1))):
        fig.draw_without_rendering()
        for axes in fig.axes:
            box = axes.get_window_extent()
            if axes is axis or axes in panels:
                assert box.width / fig.dpi / cell[0] > 0.12
                assert box.height / fig.dpi / cell[1] > 0.4
        inside = fig.bbox.padded(2.0)
        for text in [
            *axis.texts,
            *(t for a in fig.axes for t in (*a.get_xticklabels(), *a.get_yticklabels())),
        ]:
            if text.get_visible() and label[:2] in text.get_text():
                assert inside.x0 <= text.get_window_extent().x0
                assert inside.y0 <= text.get_window_extent().y0
    # Labels show what tells them apart, in lines that do not lie over each other.
    assert len({text.get_text() for text in panels[0].get_yticklabels()}) == 6
    assert [text.get_text()[-1] for text in panels[0].get_xticklabels()] == ["0", "1", "2"]
    boxes = [label.get_window_extent() for label in panels[0].get_xticklabels()]
    assert all(one.x1 <= other.x0 + 2 for one, other in pairwise(boxes))


# ---------------------------------------------------------------- what legends say


def test_a_line_that_is_nearly_straight_is_not_said_to_be_no_power_law():
    """Of runs that are all the same any bend is beyond chance. One too small to see is not worth a word."""
    t = np.array([100, 300, 900, 2700, 8100])
    x = np.log(t / 900)

    def curve(bend):
        totals = np.exp(0.5 * np.log(t) + bend * x**2)
        return made.curve(np.repeat(totals[:, None], 3, axis=1), t)

    near, far = curve(0.003), curve(0.03)
    assert near.exponent().bend < 1e-6
    assert (near.exponent().bent, far.exponent().bent) == (False, True)
    assert set(curves_table([near])["label"]) == {"$T^{0.50}$"}
    assert lines(near.exponent())[0] == "T^0.50"
    assert not any("no power law" in part for part in legend([near.exponent()]))
    assert any("no power law" in part for part in legend([far.exponent()]))


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
