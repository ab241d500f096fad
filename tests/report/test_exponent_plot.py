"""The heat map of exponents: what it shows and what it says."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.growth import simultaneous


def test_the_plot_exponents_shows_the_exponents(tmp_path):
    from onlinecal.report.exponent_plot import heats, plot_exponents
    from onlinecal.report.plots import save

    study = oc.play(
        [oc.forecasters.ForecastHedging(), oc.forecasters.Constant(1.0)],
        [oc.natures.Drift(), oc.natures.Bernoulli(1.0)],
        horizon=[100, 300, 900],
        runs=4,
        measures=["ece", "cdl"],
    )
    heat = heats(study, ["ece"])[0]
    fit = study.exponent("ece", "forecast hedging", "drift", level=simultaneous(4))  # of four cells
    assert heat.values[0, 0] == fit.value
    assert heat.halves[0, 0] == (fit.upper - fit.lower) / 2
    assert np.isnan(heat.values[1, 1])  # who says 1 to those who always come
    figure = plot_exponents(study, ["ece", "cdl"], title="A title")[0].figure
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert f"{fit.value:.2f}\n±{heat.halves[0, 0]:.2f}" in texts
    assert "–" in texts
    save(figure, tmp_path / "heat.png")
    with pytest.raises(InvalidParameter, match="no measures"):
        plot_exponents(study, [])


def test_the_plot_exponents_says_what_was_played(tmp_path):
    from onlinecal.report.exponent_plot import plot_exponents

    (tmp_path / "a.csv").write_text("outcome\n" + "0\n1\n1\n" * 150)
    natures = [oc.natures.Drift(), oc.natures.Replay(str(tmp_path / "a.csv"))]

    def caption(**options):
        study = oc.play(oc.forecasters.ForecastHedging(), runs=2, measures=["ece"], **options)
        return " ".join(plot_exponents(study, ["ece"])[0].figure._supxlabel.get_text().split())

    fresh = caption(nature=natures[0], horizon=[100, 300, 900])
    assert fresh.startswith("Fresh games, T = 100 … 900; 2 runs. Exponents are means over these T; ± half")
    prefixes = caption(nature=natures[0], horizon=5000)
    assert prefixes.startswith("Prefixes of one game, T = 56 … 5,000; 2 runs.")
    assert "resh" not in prefixes
    both = caption(nature=natures, horizon=[100, 200, 400])
    assert both.startswith(
        "Fresh games, T = 100 … 400; games of their own on one recorded stream, T = 100 … 400;"
    )


@pytest.mark.parametrize("dark", [False, True])
def test_what_stands_in_a_cell_can_be_read(dark):
    """With a contrast of at least 4.5, in every colour that a cell can have; cells of wide intervals are faded."""
    from matplotlib.figure import Figure

    from onlinecal.core.columns import Column
    from onlinecal.report.exponent_plot import FADED, Heat, _draw
    from onlinecal.report.style import contrast, page, paper_colour

    values = np.linspace(-0.2, 1.2, 60).reshape(2, 30)
    values[0, 3] = np.nan
    halves = np.array([[0.01] * 30, [0.3] * 30])
    names = [str(j) for j in range(30)]
    with page(dark):
        axis = Figure().subplots()
        image = _draw(axis, Heat(Column("measure", "ece"), ["a", "b"], names, values, halves, [names, names]))
        ground = np.array(paper_colour(axis))
        fig = axis.figure
        fig.canvas.draw()
    alphas = np.where(halves > FADED, 0.35, 1.0)
    assert (image.get_alpha() == alphas).all()
    assert set(alphas[1]) == {0.35}
    for text, value, alpha in zip(axis.texts, values.ravel(), alphas.ravel(), strict=True):
        colour = (
            ground
            if np.isnan(value)
            else alpha * np.array(image.cmap(image.norm(value))) + (1 - alpha) * ground
        )
        assert contrast(text.get_color(), colour[:3]) >= 4.5


def test_cells_beyond_the_known_rates_are_marked():
    from onlinecal.report.exponent_plot import _caption, heats

    study = oc.play(
        [oc.forecasters.AlmostOneStepAhead(), oc.forecasters.ForecastHedging()],
        oc.natures.Contrarian(),
        horizon=[100, 300, 900, 2700, 8100],
        runs=8,
        measures=["ece"],
    )
    (heat,) = heats(study, ["ece"])
    said = [study.curve("ece", who, "contrarian").against_rates(simultaneous(2)) for who in heat.forecasters]
    assert said[0] == "above O"  # the contrarian forces T/2
    for (cell,), remark in zip(heat.texts, said, strict=True):
        assert ("▲" in cell) == remark.startswith("above")
        assert ("▽" in cell) == (remark == "below Ω")
    caption = _caption(study, [heat])
    assert "▲: faster over these T than the proven bound or the best known rate, beyond doubt" in caption
    assert ("▽" in caption) == ("below Ω" in said)
