"""How fast games are played. Never asserted; `pytest tests/benchmarks/test_engine.py` prints the table.

`extra_info` holds run-rounds per second; the plain Python loop stands beside it in the same run for the ratio.
"""

import random
import subprocess
import sys

import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.game import Game, checkpoints
from onlinecal.measures import cdl, ece, smooth_ce
from onlinecal.strategy import strategy_name
from onlinecal.streams import Stream

HORIZON, RUNS = 100_000, 64

PAIRS = [
    (f.ForecastHedging(), n.Contrarian()),
    (f.ForecastHedging(), n.Drift()),
    (f.AlmostOneStepAhead(), n.Contrarian()),
    (f.CDLMinimiser(), n.Contrarian()),
    (f.CDLMinimiser(), n.Bernoulli()),
    (f.FosterVohra(), n.Bernoulli()),
    (f.FosterVohra(), n.Contrarian()),
    (f.FosterVohra(swaps="all"), n.Bernoulli()),
    (f.FosterVohra(swaps="all"), n.Contrarian()),
    (f.BlumMansour(), n.Bernoulli()),
    (f.BlumMansour(), n.Contrarian()),
    (f.BlumMansour(), n.Drift()),
    (f.EmpiricalMean(), n.Contrarian()),
    (f.PerturbedLeader(), n.Bernoulli()),
    (f.DefensiveForecasting(), n.Bernoulli()),
    (f.DefensiveForecasting("gaussian"), n.Bernoulli()),
    (f.Truthful(), n.UniformTruth()),
    (f.UniformRandom(), n.Bernoulli()),
    (f.Doubling(f.ForecastHedging()), n.Bernoulli()),
    (f.Rounded(f.CDLMinimiser(), 10, "random"), n.Bernoulli()),
    (f.ExpertMixture((f.ForecastHedging(), f.EmpiricalMean())), n.Bernoulli()),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: " vs ".join(map(strategy_name, pair)))
def test_play(benchmark, pair):
    """Playing alone: laws, draws, outcomes, ledger."""
    horizon = HORIZON // 10 if isinstance(pair[0], f.DefensiveForecasting) else HORIZON

    def play():
        Game(*pair, horizon=horizon, runs=range(RUNS)).advance(horizon)

    Game(*pair, horizon=10, runs=range(RUNS)).advance(10)  # compiles
    benchmark.pedantic(play, rounds=3)
    benchmark.extra_info["million run-rounds/s"] = horizon * RUNS / benchmark.stats.stats.median / 1e6


def test_defensive_at_the_full_horizon(benchmark):
    """K29* at T = 10⁵: the rate, and with the test above the growth of the cost."""
    benchmark.pedantic(
        lambda: Game(f.DefensiveForecasting(), n.Bernoulli(), horizon=HORIZON, runs=range(16)).advance(
            HORIZON
        ),
        rounds=1,
    )
    benchmark.extra_info["million run-rounds/s"] = HORIZON * 16 / benchmark.stats.stats.median / 1e6


def test_play_with_checkpoints(benchmark):
    """The first game, read at 33 checkpoints with three measures: the surplus is what checkpoints cost."""

    def play():
        game = Game(f.ForecastHedging(), n.Contrarian(), horizon=HORIZON, runs=range(RUNS))
        for t in checkpoints(HORIZON):
            game.advance(t)
            for gamma in game.gammas():
                ece(gamma), smooth_ce(gamma), cdl(gamma)

    play()
    benchmark.pedantic(play, rounds=3)
    benchmark.extra_info["million run-rounds/s"] = HORIZON * RUNS / benchmark.stats.stats.median / 1e6


def test_plain_python(benchmark):
    """Forecast hedging against the contrarian as one would write it, one run."""
    horizon, m = 100_000, 47

    def play():
        bias, counts, ones = [0] * (m + 1), [0] * (m + 1), [0] * (m + 1)
        dice = random.Random(0).random
        for _ in range(horizon):
            low, high = 0, m
            while high - low > 1:
                middle = (low + high) >> 1
                if bias[middle] >= 0:
                    low = middle
                else:
                    high = middle
            a, b = bias[low], -bias[low + 1]
            share = b / (a + b) if a + b else 0.5
            mean = (low + 1 - share) / m
            i = low if dice() < share else low + 1
            y = 1 if mean < 0.5 else 0
            bias[i] += m * y - i
            counts[i] += 1
            ones[i] += y

    benchmark.pedantic(play, rounds=3)
    benchmark.extra_info["million run-rounds/s"] = horizon / benchmark.stats.stats.median / 1e6


def test_help(benchmark):
    """`onlinecal --help`, the whole process."""
    benchmark.pedantic(
        lambda: subprocess.run(
            [sys.executable, "-m", "onlinecal", "--help"], check=True, capture_output=True
        ),
        rounds=5,
        warmup_rounds=1,
    )


def test_uniforms(benchmark):
    """What the randomness alone costs: two blocks for 64 runs."""
    stream = Stream(0, ("outcome",), range(RUNS))
    benchmark.pedantic(lambda: (stream.block(1024), stream.block(1024)), rounds=20)
    benchmark.extra_info["million run-rounds/s"] = 1024 * RUNS / benchmark.stats.stats.median / 1e6
