"""The page of solved games says what the games say."""

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.exact import solve
from onlinecal.exploit import exploit
from onlinecal.forecasters import ForecastHedging
from onlinecal.report import games_plot
from onlinecal.report.games import games, measure_section, page
from tests.readme import ROOT


@pytest.fixture(scope="module")
def found():
    return games({1: 20, 2: 20, 3: 12, 4: 12}, {2: {ForecastHedging: 8}}, progress=False)


def test_values_and_their_least(found):
    assert found.value(3, 7) == pytest.approx(solve(3, 7).value, abs=1e-12)
    assert np.isnan(found.value(3, 13))
    assert found.best(12) == (
        min(range(1, 5), key=lambda m: found.value(m, 12)),
        min(found.value(m, 12) for m in range(1, 5)),
    )
    # m = 2 and 4 are worth the same for a few rounds; then the finer one is better for good.
    assert found.value(4, 3) == pytest.approx(found.value(2, 3))
    last = found.settled()
    assert found.best(last)[0] < 4
    assert all(found.best(t)[0] == 4 for t in range(last + 1, 13))


def test_exploited(found):
    (each,) = found.exploited
    assert each.m == 2
    assert each.times == (1, 2, 4, 6, 8)
    assert each.values[-1] == exploit(ForecastHedging(2), 8).value


def test_the_page(found):
    text = page(found, [("a.png", "A"), ("b.png", "B"), ("c.png", "C")], "onlinecal games here")
    row = next(line for line in text.splitlines() if line.startswith("| 12 |"))
    assert f"**{found.best(12)[1]:.6f}**" in row
    assert row.count("**") == 2
    assert "| 18 | 9.000000 | **" in text
    paid, least = found.exploited[0].values[-1], found.value(2, 8)
    assert f"| {paid:.3f} ({paid - least:.3f}) |" in text
    assert "onlinecal games here" in text
    assert "![C](c.png)" in text


def test_other_measures():
    """The page in scenarios/ has the same rows, up to T = 8; one of its numbers by hand."""
    lines = measure_section((4, 8))
    text = (ROOT / "scenarios" / "exact.md").read_text("utf-8")
    assert all(line in text for line in lines)
    paid, least = exploit(ForecastHedging(2), 8, "smooth_ce").value, solve(2, 8, "smooth_ce").value
    row = next(line for line in lines if line.startswith("| 8 | forecast hedging"))
    assert f"| {paid:.3f} ({paid - least:.3f}) |" in row


def test_pictures(found):
    values = games_plot.plot_values(found)
    lines = {line.get_label(): line for line in values.axes[0].lines}
    assert (lines["m = 3"].get_ydata() == found.solved[3].values).all()
    assert (lines["least"].get_ydata() == [found.best(t)[1] for t in range(1, found.settled() + 1)]).all()
    exploited = games_plot.plot_exploited(found)
    assert [list(line.get_ydata()) for line in exploited.axes[0].lines][1] == list(found.exploited[0].values)


def test_the_picture_of_the_law_and_what_is_said_of_it():
    horizon = 24
    weights = games_plot.law_grid(horizon)
    known = ~np.isnan(weights[0])
    assert np.nansum(weights, axis=0)[known] == pytest.approx(1.0)
    # Beyond what the rounds can have led to nothing is said.
    left, bias = np.indices(known.shape)
    assert (known == (np.abs(bias - horizon) <= horizon - 1 - left)).all()
    # With E > 0 nothing is on 0, and with E < 0 nothing on 1.
    positive, negative = known & (bias > horizon), known & (bias < horizon)
    assert (weights[0][positive] == 0.0).all()
    assert (weights[2][negative] == 0.0).all()


def test_forecasters_on_grids_that_are_not_solved_are_refused():
    with pytest.raises(InvalidParameter, match="expected the same grids"):
        games({2: 3}, {3: {ForecastHedging: 3}})
