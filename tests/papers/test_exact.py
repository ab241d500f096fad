"""The page of solved games says what the games say."""

import re
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.exploit import exploit
from onlinecal.forecasters import ForecastHedging
from onlinecal.games import solve, value_bracket
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


def test_brackets_are_those_of_longer_games(found):
    bracket = value_bracket(4, 20, 3.0, progress=False)
    assert found.bounds(4, 17) == (bracket.lowers[16], bracket.uppers[16])
    error = found.solved[4].error
    assert found.bounds(4, 12) == (found.value(4, 12) - error, found.value(4, 12) + error)
    assert np.isnan(found.bounds(4, 21)).all()
    assert np.isnan(found.bounds(3, 13)).all()
    assert found.leads(4, 20)
    assert bracket.uppers[19] < found.value(2, 20)


@pytest.mark.parametrize(
    ("ends", "best"),
    [
        (((1.0, 1.1), (1.2, 1.3)), (True, False)),
        (((1.0, 1.25), (1.2, 1.3)), (False, False)),
        (((1.0, 1.0), (1.0 + 1e-15, 1.0 + 1e-15)), (True, True)),
    ],
    ids=["apart", "overlapping", "the same but for rounding"],
)
def test_bold_is_what_no_other_grid_can_beat(ends, best):
    """Of two grids on which nothing is solved beyond T = 1, with these brackets of T = 2."""
    bracket = value_bracket(2, 2, 3.0, progress=False)
    brackets = {
        m: replace(bracket, lowers=np.array([0.5, low]), uppers=np.array([0.5, high]))
        for m, (low, high) in enumerate(ends, 1)
    }
    short = replace(games({1: 1, 2: 1}, {}, {}, {}, progress=False), brackets=brackets)
    assert (short.leads(1, 2), short.leads(2, 2)) == best


def test_digits_to_which_both_ends_round():
    assert certain(1.23456749, 1.23456751) == "1.23457"
    assert certain(33.650019, 33.650788) == "33.65"
    assert certain(2.0, 2.0) == "2.000000"
    assert certain(1.449, 1.451) == "1.45"
    assert certain(1.9, 2.1) == certain(np.nan, np.nan) == certain(0.0, np.nan) == "–"


def test_every_digit_of_short_games_on_the_page_is_that_of_the_rational_value():
    text = (ROOT / "scenarios" / "exact.md").read_text("utf-8")
    for t in range(1, 7):
        row = next((line for line in text.splitlines() if line.startswith(f"| {t} |")), None)
        for m in range(1, 9 if row and t <= 4 else 5 if row else 1):
            cell = row.strip("| ").split(" | ")[m].strip("* ")
            assert int(cell.replace(".", "")) == round(rational_value(m, t) * 10**6)


@pytest.mark.slow
def test_brackets_in_words_hold():
    """Their last digits are rounded outward, and by no more than one unit."""
    words = " ".join((ROOT / "docs" / "games.md").read_text("utf-8").split())
    said = re.findall(
        r"V_T\((\d)\) at T = (\d+) (?:is )?between ([\d.]+) and ([\d.]+) \([^)]*clip (\d+)", words
    )
    assert len(said) == 2
    for m, horizon, low, high, clip in said:
        found = value_bracket(int(m), int(horizon), float(clip), progress=False)
        assert Decimal(low) <= Decimal(found.lower) < Decimal(low) + Decimal("1e-6")
        assert Decimal(high) - Decimal("1e-6") < Decimal(found.upper) <= Decimal(high)


def test_hedging_beside_the_best(found):
    paid = {m: exploit(ForecastHedging(m), 8).value for m in (1, 2, 3)}
    least = min(solve(m, 8).value for m in (1, 2, 3))
    assert hedging_on_best_grids(found, 8) == (min(paid.values()), least)
    assert np.isnan(hedging_on_best_grids(found, 20)).all()  # m = 1 and 3 are known to T = 12
    text = "\n".join(hedging_section(found))
    beyond = paid[2] - found.value(2, 8)
    cells = f"{beyond:.3f} ({paid[2] / found.value(2, 8):.3f})"
    best = f"{min(paid.values()) - least:.3f} ({min(paid.values()) / least:.3f})"
    row = next(line for line in text.splitlines() if line.startswith("| 8 |"))
    assert cells in row
    assert row.endswith(f"| {best} |")
    assert "| 20 | – | " in text
    later, sooner = (exploit(ForecastHedging(2), t).value - found.value(2, t) for t in (16, 8))
    assert f"{later - sooner:.3f} (m = 2, to T = 16)" in text
    assert doublings({4: 1.0, 6: 2.0, 8: 4.0, 16: 5.0, 5: 1.0}) == {8: 3.0, 16: 1.0}
    assert doublings({}) == {}


def test_what_is_said_of_hedging_on_the_page():
    """That the difference grows about as ln T does, and not as √T, on the grids and for the T of the page."""
    text = (ROOT / "scenarios" / "exact.md").read_text("utf-8")
    section = text[text.index("## Is forecast hedging") : text.index("## Other measures")]
    for m, times in ((1, (8, 16, 32)), (2, (8, 16, 32))):
        values = solve(m, times[-1], progress=False).values
        beyond = {t: exploit(ForecastHedging(m), t, progress=False).value - values[t - 1] for t in times}
        added = list(doublings(beyond).values())
        assert all(0.85 < late / soon < 1.2 < 2**0.5 for soon, late in pairwise(added))
        for t, each in beyond.items():
            row = next(line for line in section.splitlines() if line.startswith(f"| {t} |")).split(" | ")
            assert row[m] == f"{each:.3f} ({1 + each / values[t - 1]:.3f})"
    assert "to ln T it would add as much, to √T 1.41 times as much" in section


@pytest.mark.parametrize("m", [2, slow(3)])
def test_other_measures(m):
    """The page in scenarios/ has the same rows, of the short games; one of its numbers by hand."""
    text = (ROOT / "scenarios" / "exact.md").read_text("utf-8")
    rows = [line for line in measure_section({m: (4,)}) if line.startswith("| ")]
    table = text[text.index(f"| T | m = {m} | ece") :]
    assert all(row in table for row in rows)
    paid, least = exploit(ForecastHedging(2), 8, "smooth_ce").value, solve(2, 8, "smooth_ce").value
    row = next(line for line in measure_section({2: (8,)}) if line.startswith("| 8 | forecast hedging"))
    assert f"| {paid:.3f} ({paid - least:.3f}) |" in row


def test_pictures(found):
    """The values and their least; both ends of a bracket in the colour of its values, and the largest width."""
    drawn = exact.plot_values(found).axes[0].lines
    lines, bracket = {line.get_label(): line for line in drawn}, found.brackets[4]
    assert (lines["m = 3"].get_ydata() == found.solved[3].values).all()
    assert (lines["least"].get_ydata() == [found.best(t) for t in range(1, found.common() + 1)]).all()
    four = lines["m = 4"]
    low, high = (x.get_ydata()[1:] for x in drawn if x.get_color() == four.get_color() and x is not four)
    assert (low == bracket.lowers[12:]).all()
    assert (high == bracket.uppers[12:]).all()
    caption = exact.value_caption(found)
    within = float(re.search(r"Longer games of m = 4 are bracketed, within ([\d.e-]+): ", caption)[1])
    assert within / 1.1 <= (bracket.uppers - bracket.lowers).max() <= within
    assert f"up to T = {found.common()}" in caption
    hedging = exact.plot_exploited(found).axes[0].lines[1].get_ydata()
    assert list(hedging) == list(found.exploited[2]["forecast hedging (m=2)"].values())


def test_the_picture_of_the_law_and_what_is_said_of_it():
    horizon = 24
    weights = exact.law_grid(horizon)
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
    for others in (({3: {ForecastHedging: 3}}, {}, {}), ({}, {3: (9, 1.0)}, {}), ({}, {}, {3: 3})):
        with pytest.raises(InvalidParameter, match="expected no other grids"):
            games({2: 3}, *others)
