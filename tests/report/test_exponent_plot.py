"""The heat map of exponents: its cells and their marks."""

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.report.panels import stacked
from onlinecal.report.study_plot import FADED, draw_exponents, exponents_table, plot_exponents
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
    figure = plot_exponents(study, ["ece", "cdl"], title="A title")[0].figure
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert f"{fit.value:.2f}\n±{there['half']:.2f}" in texts
    assert "–" in texts
    with pytest.raises(InvalidParameter, match="no measures"):
        plot_exponents(study, [])


@pytest.mark.parametrize("dark", [False, True])
def test_what_stands_in_a_cell_can_be_read(dark):
    """With a contrast of at least 4.5, in every colour that a cell can have; cells of wide intervals are faded."""
    values = np.linspace(-0.2, 1.2, 60).reshape(2, 30)
    values[0, 3] = np.nan
    halves = np.array([[0.01] * 30, [0.3] * 30])
    names = [str(j) for j in range(30)]
    with page(dark):
        axis = Figure().subplots()
        rows = stacked([
            {"forecaster": who, "nature": np.array(names, dtype=object), "exponent": mine, "half": half, "text": "x"}
            for who, mine, half in zip("ab", values, halves, strict=True)
        ])  # fmt: skip
        image = draw_exponents(axis, rows, ["a", "b"], names)
        ground = np.array(to_rgba(axis.get_facecolor()))
        axis.figure.canvas.draw()
    alphas = np.where(halves > FADED, 0.35, 1.0)
    assert (image.get_alpha() == alphas).all()
    assert set(alphas[1]) == {0.35}
    for text, value, alpha in zip(axis.texts, values.ravel(), alphas.ravel(), strict=True):
        shown = alpha * np.array(image.cmap(image.norm(value))) + (1 - alpha) * ground
        assert contrast(text.get_color(), (ground if np.isnan(value) else shown)[:3]) >= 4.5


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
