"""The page of solved games says what the games say."""

import numpy as np
import pytest

from onlinecal.exploit import exploit
from onlinecal.forecasters import ForecastHedging
from onlinecal.games import solve
from onlinecal.games.rational import rational_value
from tests.experiments import script
from tests.marks import slow
from tests.pages import ROOT

exact = script("exact", ROOT / "scenarios")
games, page, certain, doublings = exact.games, exact.page, exact.certain, exact.doublings
hedging_on_best_grids, hedging_section = exact.hedging_on_best_grids, exact.hedging_section
measure_section = exact.measure_section


@pytest.fixture(scope="module")
def found():
    lengths, hedged = {1: 20, 2: 20, 3: 12, 4: 12}, {1: 12, 2: 20, 3: 12}
    return games(lengths, {2: {ForecastHedging: 8}}, {4: (20, 3.0)}, hedged, progress=False)


def test_values_and_their_least(found):
    assert found.value(3, 7) == pytest.approx(solve(3, 7).value, abs=1e-12)
    assert np.isnan(found.value(3, 13))
    assert found.best(12) == min(found.value(m, 12) for m in range(1, 5))
    # m = 2 and 4 are worth the same for a few rounds; then the finer one is better.
    assert found.value(4, 3) == pytest.approx(found.value(2, 3))
    assert found.settled() == 0
    assert all(found.value(4, t) == pytest.approx(found.best(t), abs=1e-9) for t in range(1, 13))


def test_the_page(found):
    text = page(found, [("a.png", "A"), ("b.png", "B"), ("c.png", "C")], "how to make it", {})
    bracketed = certain(*found.bounds(4, 20))  # as many digits as both ends round to
    assert f"| 20 | 10.000000 | {found.value(2, 20):.6f} | – | **{bracketed}** |" in text
    assert f"T^{np.log(found.best(12) / found.best(3)) / np.log(4):.2f} from T = 3 to 12 " in text
    ((paid,),) = [mine.values() for mine in found.exploited.values()]
    assert paid[8] == exploit(ForecastHedging(2), 8).value
    assert f"| {paid[8]:.3f} ({paid[8] - found.value(2, 8):.3f}) |" in text


def test_every_digit_of_short_games_on_the_page_is_that_of_the_rational_value():
    text = (ROOT / "scenarios" / "exact.md").read_text("utf-8")
    for t in range(1, 7):
        row = next((line for line in text.splitlines() if line.startswith(f"| {t} |")), None)
        for m in range(1, 9 if row and t <= 4 else 5 if row else 1):
            cell = row.strip("| ").split(" | ")[m].strip("* ")
            assert int(cell.replace(".", "")) == round(rational_value(m, t) * 10**6)


def test_hedging_beside_the_best(found):
    paid = [exploit(ForecastHedging(m), 8).value for m in (1, 2, 3)]
    best, least = min(paid), min(solve(m, 8).value for m in (1, 2, 3))
    assert hedging_on_best_grids(found, 8) == (best, least)
    assert np.isnan(hedging_on_best_grids(found, 20)).all()  # m = 1 and 3 are known to T = 12
    text = "\n".join(hedging_section(found))
    assert f"{paid[1] - found.value(2, 8):.3f} ({paid[1] / found.value(2, 8):.3f})" in text
    assert f"| {best - least:.3f} ({best / least:.3f}) |" in text
    assert doublings({4: 1.0, 6: 2.0, 8: 4.0, 16: 5.0, 5: 1.0}) == {8: 3.0, 16: 1.0}


@pytest.mark.parametrize("m", [2, slow(3)])
def test_other_measures(m):
    """The page in scenarios/ has the same rows, of the short games; one of its numbers by hand."""
    text = (ROOT / "scenarios" / "exact.md").read_text("utf-8")
    rows = [line for line in measure_section({m: (4,)}) if line.startswith("| ")]
    table = text[text.index(f"| T | m = {m} | ece") :]
    assert all(row in table for row in rows)
    paid, least = exploit(ForecastHedging(m), 4, "smooth_ce").value, solve(m, 4, "smooth_ce").value
    row = next(line for line in rows if line.startswith("| 4 | forecast hedging"))
    assert f"| {paid:.3f} ({paid - least:.3f}) |" in row
