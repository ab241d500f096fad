"""The nature that plays the sign preservation game is its rule."""

import math

import pytest

from onlinecal.core.strategy import strategy_key
from onlinecal.exact.signs import STOP, sign_preservation
from onlinecal.forecasters import CDLMinimiser, Constant, EmpiricalMean, ForecastHedging
from onlinecal.natures import SignPreservation
from tests.by_hand import noted
from tests.exact.test_signs import write


@pytest.mark.parametrize(
    "nature", [SignPreservation(4, 8), SignPreservation(7, 16), SignPreservation(1, 1)], ids=strategy_key
)
@pytest.mark.parametrize(
    "forecaster", [ForecastHedging(12), CDLMinimiser(), EmpiricalMean()], ids=strategy_key
)
def test_it_is_its_rule(forecaster, nature, seed):
    horizon, cells = 900, nature.cells
    log, _ = noted(forecaster, nature, horizon, seed=seed)
    game = sign_preservation(cells, nature.rounds)
    longest = -(-horizon // nature.rounds)
    for r in range(3):
        row, played, bias, left = (0,) * cells, 0, 0.0, nature.rounds
        cell = game.at(row, min(left, -(-horizon // longest)))[1]
        for number, (_, q, forecast, outcome) in enumerate(log, 1):
            if cell == STOP:
                last = max((i + 1 for i, sign in enumerate(row) if sign == 1), default=0)
                first = min((i for i, sign in enumerate(row) if sign == -1), default=cells)
                assert q[r] == pytest.approx(0.25 + 0.5 * (last + first) / 2 / cells)
                continue
            theta = 0.25 + 0.5 * (cell + 0.5) / cells
            assert q[r] == pytest.approx(theta)
            played += 1
            if abs(forecast[r] - q[r]) <= 0.25 / cells:
                bias += outcome[r] - forecast[r]
            if played == longest or abs(bias) >= math.sqrt(longest):
                if abs(bias) >= math.sqrt(longest):
                    row = write(row, cell, 1 if bias > 0 else -1, True)
                left = min(-(-(horizon - number) // longest), nature.rounds)
                cell, played, bias = game.at(row, left)[1], 0, 0.0


def test_what_cannot_be_repaired_stays():
    """The bias of 0.7 against a coin is −√900 after some 150 rounds: by Hoeffding it is not within 900 rounds with
    probability exp(−2 · 150²/900) < 1e-20. Then θ is the border to the left of the only cell, 1/4.
    """
    log, _ = noted(Constant(0.7), SignPreservation(1, 1), 900)
    assert log[0].q.tolist() == [0.5] * 3
    assert log[-1].q.tolist() == [0.25] * 3


def test_a_game_shorter_than_its_rounds():
    log, _ = noted(ForecastHedging(3), SignPreservation(3, 16), 5)
    cell = sign_preservation(3, 16).at((0, 0, 0), 5)[1]
    assert log[0].q.tolist() == pytest.approx([0.25 + 0.5 * (cell + 0.5) / 3] * 3)
    assert len(log) == 5
