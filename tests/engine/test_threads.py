"""Which threads play which runs."""

import pytest

from onlinecal.engine.game import Game
from onlinecal.engine.loop import CompiledLoop
from onlinecal.forecasters import DefensiveForecasting, ForecastHedging
from onlinecal.natures import Bernoulli, Contrarian, Greedy


@pytest.mark.parametrize(
    ("forecaster", "nature"),
    [
        (ForecastHedging(), Contrarian()),
        (ForecastHedging(), Greedy()),  # remembers levels
        (DefensiveForecasting(), Bernoulli()),  # remembers forecasts
    ],
)
def test_all_threads_play(forecaster, nature, monkeypatch):
    parts = []
    play = CompiledLoop._play

    def noted(self, first, last, runs):
        parts.append(len(runs))
        play(self, first, last, runs)

    monkeypatch.setattr(CompiledLoop, "_play", noted)
    Game(forecaster, nature, horizon=4096, runs=range(64), threads=2).advance(4096)
    assert set(parts) == {32}
    parts.clear()
    Game(forecaster, nature, horizon=4096, runs=range(64)).advance(4096)
    assert set(parts) == {64}
