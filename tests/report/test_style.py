"""How pictures look: forecasters told apart, light and dark pages, widths, files, and nothing that is cut off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from onlinecal.report.curve_plot import plot_curves
from onlinecal.report.decision_plot import plot_murphy
from onlinecal.report.facets import wrapped
from onlinecal.report.frames import curves_table
from onlinecal.report.study_plot import plot_exponents
from onlinecal.report.style import (
    BRIGHT,
    COLOURS,
    MARKERS,
    least_power,
    look,
    page,
    thinned,
    tick,
    ticks,
    typeset,
)
from tests.report import made
from tests.report.made import contrast

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
    # And every colour is seen on its page.
    assert all(contrast(own["color"], "black" if dark else "white") > 2.0 for own in looks)


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


def test_a_forecaster_looks_the_same_whatever_is_selected():
    whole = made.study({(who, nature): [1.0, 2.0] for who in "abc" for nature in "mn"})
    for place, who in enumerate("abc"):
        part = whole.only([who]).only(natures=["m"])
        assert part.places[who] == place
        assert {*curves_table(part.curves())["place"]} == {place}
    drawn = plot_curves(whole.only(["c"]).curves()).axes[0].lines[-1]
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


@pytest.mark.parametrize(("letters", "columns"), [(3, 6), (30, 3), (200, 1)])
def test_a_legend_has_as_many_columns_as_fit(letters, columns):
    names = [f"{'n' * letters}{i}" for i in range(7)]
    fig = plot_murphy({name: ([0.2, 0.8], [0, 1]) for name in names}, width=9.0)
    (legend,) = fig.legends
    fig.draw_without_rendering()
    assert ["".join(text.get_text().split()) for text in legend.get_texts()] == names
    assert len({round(text.get_window_extent().x0) for text in legend.get_texts()}) == columns
    assert legend.get_window_extent().width <= fig.bbox.width


@given(st.text("ab 1", max_size=60), st.integers(16, 40))
def test_texts_are_broken_between_words_that_do_not_belong_together(text, letters):
    said = f"T = 100 {text} 16 runs"
    lines = wrapped(said, letters).split("\n")
    assert "".join("".join(lines).split()) == "".join(said.split())
    assert max(map(len, lines)) <= letters
    assert (lines[0][:7], lines[-1][-7:]) == ("T = 100", "16 runs")
    shorter = "\n".join(text.split())
    assert wrapped(shorter, 60) == shorter  # lines that are short enough stay


def test_a_curve_of_many_points_is_thinned_to_what_can_be_seen():
    """Of each of 2,000 pieces the ends, the least and the largest y stay."""
    rng = np.random.default_rng(0)
    x, y = np.sort(rng.random(60_000)), rng.random(60_000)
    few, heights = thinned(x, y)
    edges = np.searchsorted(x, np.linspace(x[0], x[-1], 2001)[1:-1])
    kept = [
        part[at] for part in np.split(np.arange(60_000), edges) if len(part)
        for at in (0, -1, y[part].argmin(), y[part].argmax())
    ]  # fmt: skip
    assert np.array_equal(few, x[np.unique(kept)])
    assert np.array_equal(heights, y[np.unique(kept)])
    for many, stay in ((8000, True), (8001, False)):
        assert (len(thinned(x[:many], y[:many])[0]) == many) == stay


# ---------------------------------------------------------------- axes


@pytest.mark.parametrize(
    ("sizes", "power"),
    [([3.0, 500.0], 1.0), ([0.2, 900.0], 0.1), ([1e-9, 200.0], 0.01), ([0.1, 1000.0], 0.1)],
)
def test_an_axis_is_linear_below_the_least_size_but_over_four_decades_at_most(sizes, power):
    assert least_power(np.array(sizes)) == pytest.approx(power)


@pytest.mark.parametrize(
    ("scale", "ends", "labels"),
    [
        ("linear", (0, 5), ["0", "1", "2", "3", "4", "5"]),
        ("linear", (0, 4000), ["0", "800", "1,600", "2,400", "3,200", "4,000"]),
        ("linear", (0, 0.5), ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
        ("log", (100, 2999), ["100", "200", "500", "1,000", "2,000"]), ("log", (0.3, 2), ["0.5", "1", "2"]),
        ("log", (10, 300), ["10¹", "10²"]), ("log", (0.01, 1000), ["10⁻²", "10⁻¹", "10⁰", "10¹", "10²", "10³"]),
    ],
)  # fmt: skip
def test_numbers_beside_axes(scale, ends, labels):
    """Less than a decade and a half has 1, 2 and 5 in each; more have powers of ten alone."""
    axis = Figure().subplots()
    axis.set(xscale=scale, xlim=ends)
    ticks(axis.xaxis)
    axis.figure.draw_without_rendering()
    shown = [tick for tick in axis.xaxis.get_major_ticks() if ends[0] <= tick.get_loc() <= ends[1]]
    assert [tick.label1.get_text() for tick in shown] == labels
    assert not any(tick.label1.get_text() for tick in axis.xaxis.get_minor_ticks())


def test_at_most_twelve_powers_of_ten_stand_beside_an_axis():
    for decades in (11, 12):
        axis = Figure().subplots()
        axis.set(xscale="log", xlim=(1.0, 10.0**decades))
        ticks(axis.xaxis)
        many = len([at for at in axis.get_xticks() if 1.0 <= at <= 10.0**decades])
        assert many == 12 if decades == 11 else many < 12


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"),
        (1.0, "1"),
        (-1234567.0, "-1,234,567"),
        (2.5, "2.5"),
        (999999.9999999, "1,000,000"),
        (1e15, "1e+15"),
    ],
)
def test_a_number_beside_an_axis_is_whole_up_to_rounding_or_short(value, said):
    assert tick(value) == said


@pytest.mark.parametrize(
    ("formula", "raised"),
    [
        ("T^(2/3) log T", r"$\mathregular{T^{2/3}}$ log T"), ("√T", "√T"),
        ("2·n^0.5 + b^m", r"2·$\mathregular{n^{0.5}}$ + $\mathregular{b^{m}}$"),
    ],
)  # fmt: skip
def test_powers_are_raised(formula, raised):
    assert typeset(formula) == raised
