"""The heat map of exponents: what it shows and what it says."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.growth import simultaneous


def test_the_heat_map_shows_the_exponents(tmp_path):
    from onlinecal.report.exponent_plot import heat_map, heats
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
    figure = heat_map(study, ["ece", "cdl"], title="A title")[0].figure
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert f"{fit.value:.2f}\n±{heat.halves[0, 0]:.2f}" in texts
    assert "–" in texts
    save(figure, tmp_path / "heat.png")
    with pytest.raises(InvalidParameter, match="no measures"):
        heat_map(study, [])


def test_the_heat_map_says_what_was_played(tmp_path):
    from onlinecal.report.exponent_plot import heat_map

    (tmp_path / "a.csv").write_text("outcome\n" + "0\n1\n1\n" * 150)
    natures = [oc.natures.Drift(), oc.natures.Replay(str(tmp_path / "a.csv"))]

    def caption(**options):
        study = oc.play(oc.forecasters.ForecastHedging(), runs=2, measures=["ece"], **options)
        return " ".join(heat_map(study, ["ece"])[0].figure._supxlabel.get_text().split())

    fresh = caption(nature=natures[0], horizon=[100, 300, 900])
    assert fresh.startswith("Fresh games, T = 100 … 900; 2 runs. Exponents are means over these T; ± half")
    prefixes = caption(nature=natures[0], horizon=5000)
    assert prefixes.startswith("Prefixes of one game, T = 56 … 5,000; 2 runs.")
    assert "resh" not in prefixes
    both = caption(nature=natures, horizon=[100, 200, 400])
    assert both.startswith(
        "Fresh games, T = 100 … 400; games of their own on one recorded stream, T = 100 … 400;"
    )
