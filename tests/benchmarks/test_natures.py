"""Speed of the natures in a game of 64 runs. Run with `pytest tests/benchmarks --benchmark-only`.

The forecaster costs next to nothing (constant), has two atoms on a grid (hedging), or never says the same number twice
(empirical mean). Extra info: million run-rounds a second. No time is asserted.
"""

from __future__ import annotations

import pytest

from onlinecal.core.strategy import strategy_label
from onlinecal.engine.game import Game
from onlinecal.forecasters import Constant, EmpiricalMean, ForecastHedging
from onlinecal.natures import NATURES
from tests import examples

RUNS, HORIZON = 64, 100_000


@pytest.mark.parametrize("forecaster", [Constant(), ForecastHedging(), EmpiricalMean()], ids=strategy_label)
@pytest.mark.parametrize("name", NATURES)
def test_game(benchmark, tmp_path, forecaster, name):
    nature = next(nature for nature in examples.natures(tmp_path) if isinstance(nature, NATURES[name]))
    horizon = min(HORIZON, nature.length or HORIZON)

    def play():
        Game(forecaster, nature, horizon=horizon, runs=range(RUNS)).advance(horizon)

    play()  # compiles
    benchmark.pedantic(play, rounds=3)
    benchmark.extra_info["million_run_rounds_per_s"] = RUNS * horizon / benchmark.stats["min"] / 1e6
