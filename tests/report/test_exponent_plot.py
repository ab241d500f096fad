"""The heat map of exponents: its cells and their marks."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.report.facets import stacked
from onlinecal.report.study_plot import draw_exponents, exponents_table, plot_exponents
from onlinecal.report.style import contrast, page
from tests.report import made

F, N = oc.forecasters, oc.natures


def test_the_heat_map_shows_the_exponents():
    study = oc.play([F.ForecastHedging(), F.Constant(1.0)], [N.Drift(), N.Bernoulli(1.0)], horizon=[100, 300, 900],
                    runs=4, measures=["ece", "cdl"])  # fmt: skip
    heat = exponents_table(study, ["ece"]).set_index(["forecaster", "nature"])
    there, never = heat.loc["forecast hedging", "drift"], heat.loc[study.forecasters[1], study.natures[1]]
    fit = study.exponent("ece", "forecast hedging", "drift")
    assert (there["exponent"], there["half"]) == (fit.value, (fit.upper - fit.lower) / 2)
    assert np.isnan(never["exponent"])  # always right
    figure = plot_exponents(study, ["ece", "cdl"], title="A title")
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert f"{fit.value:.2f} ± {there['half']:.2f}" in texts
    assert "–" in texts
    # At the width of a page every number is at least 6 points high and within its cell.
    figure.draw_without_rendering()
    cell = figure.axes[0].get_window_extent().width / 2
    for text in figure.axes[0].texts:
        assert text.get_fontsize() >= 6
        assert text.get_window_extent().width < cell
    # One measure may be named as a text.
    assert exponents_table(study, "ece").equals(exponents_table(study, ["ece"]))
    with pytest.raises(InvalidParameter, match="no measures"):
        plot_exponents(study, [])


@pytest.mark.parametrize("dark", [False, True])
def test_what_stands_in_a_cell_can_be_read(dark):
    """With a contrast of at least 4.5, in every colour that a cell can have."""
    values = np.linspace(-0.2, 1.2, 60).reshape(2, 30)
    values[0, 3] = np.nan
    names = [str(j) for j in range(30)]
    with page(dark):
        axis = Figure().subplots()
        rows = stacked([
            {"forecaster": who, "nature": np.array(names, dtype=object), "exponent": mine, "text": "x"}
            for who, mine in zip("ab", values, strict=True)
        ])  # fmt: skip
        draw_exponents(axis, rows, ["a", "b"], names)
    (image,) = axis.images
    for text, value in zip(axis.texts, values.ravel(), strict=True):
        shown = axis.get_facecolor() if np.isnan(value) else image.cmap(image.norm(value))
        assert contrast(text.get_color(), shown[:3]) >= 4.5


@pytest.mark.parametrize(
    ("power", "remark", "mark"), [(1.0, "above O", "▲"), (0.6, "", ""), (0.2, "below Ω", "▽")]
)
def test_cells_beyond_the_known_rates_are_marked_where_no_outcome_is_late(power, remark, mark):
    """Those of the ECE are T^0.54389 and T^(2/3)."""
    times = 100 * 3 ** np.arange(6)
    for open, said, marks in (((), remark, set(mark)), ((3,), "", set())):
        totals = {t: t**power * np.linspace(1, 1.01, 8) for t in times}
        one = made.study(*(made.cell("a", row, times=(t,), open=open) for t, row in totals.items()))
        assert one.curve("ece").against_rates() == said
        (text,) = exponents_table(one, ["ece"])["text"]
        assert {sign for sign in "▲▽" if sign in text} == marks
