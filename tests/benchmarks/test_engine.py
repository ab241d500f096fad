"""How fast games are played. Never asserted; `pytest tests/benchmarks/test_engine.py` prints the table.

`extra_info` holds run-rounds per second, and how many times those of a plain Python loop they are, which is timed in
turn with each; a compiled loop written for one game alone stands beside the others in the same run.
"""

import random
import statistics
import time
from dataclasses import replace

import numba
import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.strategy import strategy_name
from onlinecal.decision_makers.tenures import People
from onlinecal.engine.game import Game
from onlinecal.schedules import Constant, Pareto, Poisson, Schedule
from onlinecal.study.panel import Panel
from onlinecal.study.plan import Entry, plan
from onlinecal.study.run import play_cell

HORIZON, RUNS = 100_000, 64
#: of one run, in the plain loop
PLAIN_ROUNDS = 100_000
RATE, RATIO = "million run-rounds/s", "times plain Python"

PAIRS = [
    (f.ForecastHedging(), n.Contrarian()),
    (f.ForecastHedging(), n.Drift()),
    (f.AlmostOneStepAhead(), n.Contrarian()),
    (f.CDLMinimiser(), n.Contrarian()),
    (f.CDLMinimiser(), n.Bernoulli()),
    (f.StepCEMinimiser(), n.Contrarian()),
    (f.FosterVohra(), n.Bernoulli()),
    (f.FosterVohra(), n.Contrarian()),
    (f.FosterVohra(swaps="all"), n.Bernoulli()),
    (f.FosterVohra(swaps="all"), n.Contrarian()),
    (f.BlumMansour(), n.Bernoulli()),
    (f.BlumMansour(), n.Contrarian()),
    (f.BlumMansour(), n.Drift()),
    (f.EmpiricalMean(), n.Contrarian()),
    (f.PerturbedLeader(), n.Bernoulli()),
    (f.ThresholdHedging(), n.Bernoulli()),
    (f.ThresholdHedging(), n.Contrarian()),
    (f.DefensiveForecasting(), n.Bernoulli()),
    (f.DefensiveForecasting("gaussian"), n.Bernoulli()),
    (f.Truthful(), n.UniformTruth()),
    (f.UniformRandom(), n.Bernoulli()),
    (f.Doubling(f.ForecastHedging()), n.Bernoulli()),
    (f.Rounded(f.CDLMinimiser(), 10, "random"), n.Bernoulli()),
    (f.ExpertMixture((f.ForecastHedging(), f.EmpiricalMean())), n.Bernoulli()),
    (f.ForecastHedging(), n.Mixture((n.Drift(), n.Bernoulli(0.3)))),
    (f.ForecastHedging(), n.Switch(n.Drift(), n.Greedy())),
]


#: the pairs for which the number of runs is varied
MAIN = [
    (forecaster, nature)
    for forecaster in (f.ForecastHedging(), f.CDLMinimiser(), f.AlmostOneStepAhead())
    for nature in (n.Contrarian(), n.Drift(), n.Bernoulli(), n.Greedy())
]


def named(pair):
    return " vs ".join(map(strategy_name, pair))


def plain():
    """Forecast hedging against the contrarian as one would write it, one run."""
    m = 47
    bias, counts, ones = [0] * (m + 1), [0] * (m + 1), [0] * (m + 1)
    forecast_uniforms = random.Random(0).random
    for _ in range(PLAIN_ROUNDS):
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
        i = low if forecast_uniforms() < share else low + 1
        y = 1 if mean < 0.5 else 0
        bias[i] += m * y - i
        counts[i] += 1
        ones[i] += y


class RunningMean:
    """A forecaster as a user writes it."""

    def __init__(self):
        self.ones, self.rounds = 0, 0

    def forecast(self):
        return (self.ones + 1) / (self.rounds + 2)

    def update(self, forecast, outcome):
        self.rounds += 1
        self.ones += outcome


def plain_class():
    """The game of that class against the contrarian, with history, as one would write it."""
    player, uniform, history = RunningMean(), random.Random(0).random, []
    for _ in range(PLAIN_ROUNDS):
        p = player.forecast()
        q = 0.5 if p == 0.5 else float(p < 0.5)
        y = int(uniform() < q)
        history.append((p, y))
        player.update(p, y)


def timed(benchmark, play, run_rounds, plain=plain):
    """Plays in turn with a plain loop, since a machine is not equally fast at all times: some five seconds, and at
    least 5 times.
    """
    beside = []
    start = time.perf_counter()
    play()
    rounds = min(max(5, int(5.0 / (time.perf_counter() - start))), 25)

    def before():
        start = time.perf_counter()
        plain()
        beside.append(time.perf_counter() - start)

    benchmark.pedantic(play, setup=before, rounds=rounds)
    taken = benchmark.stats.stats
    benchmark.extra_info[RATE] = run_rounds / taken.median / 1e6
    ratios = [run_rounds / t * p / PLAIN_ROUNDS for t, p in zip(taken.data, beside, strict=True)]
    benchmark.extra_info[RATIO] = statistics.median(ratios)


def measure(benchmark, pair, runs, horizon, threads=1):
    """Playing alone: laws, draws, outcomes, history."""

    def play():
        Game(*pair, horizon=horizon, runs=range(runs), threads=threads).advance(horizon)

    Game(*pair, horizon=1000, runs=range(runs)).advance(10)  # compiles
    timed(benchmark, play, horizon * runs)


@pytest.mark.parametrize("pair", PAIRS, ids=named)
def test_play(benchmark, pair):
    measure(benchmark, pair, RUNS, HORIZON)


@pytest.mark.parametrize("runs", [1, 64, 256])
@pytest.mark.parametrize("pair", MAIN, ids=named)
def test_runs(benchmark, pair, runs):
    measure(benchmark, pair, runs, 2 * 10**6 if runs == 1 else HORIZON)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("pair", MAIN, ids=named)
def test_threads(benchmark, pair, threads):
    """Runs share nothing that is written: on two free cores two threads should take half the time."""
    measure(benchmark, pair, RUNS, HORIZON, threads=threads)


@pytest.mark.parametrize("runs", [1, 16])
def test_plain_class(benchmark, runs):
    """A user's own class beside the loop that a user would write for it."""
    horizon = HORIZON // runs

    def play():
        Game(f.Scalar(RunningMean), n.Contrarian(), horizon=horizon, runs=range(runs)).advance(horizon)

    play()
    timed(benchmark, play, horizon * runs, plain_class)


SCHEDULES = {
    "delay 10": Schedule(delays=Constant(10)),
    "poisson, pareto": Schedule(Poisson(), Pareto()),
}


@pytest.mark.parametrize("runs", [1, RUNS])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_delays(benchmark, schedule, runs):
    """With questions that are open when others are asked."""
    horizon = 10 * HORIZON if runs == 1 else HORIZON

    def play(horizon=horizon):
        Game(*MAIN[0], horizon=horizon, runs=range(runs), schedule=SCHEDULES[schedule]).advance(horizon)

    play(1000)
    timed(benchmark, play, horizon * runs)


@pytest.mark.parametrize("name", ["delayed", "separate", "streams"])
def test_shared_out(benchmark, name):
    """One run of copies of hedging, or against several natures at once, with a delay of 10."""
    copies = {"delayed": f.Delayed, "separate": f.Separate, "streams": lambda of: of}[name](
        f.ForecastHedging()
    )
    nature = n.Contrarian() if name == "delayed" else n.Streams((n.Contrarian(), n.Drift()))

    def play(horizon=HORIZON):
        Game(copies, nature, horizon=horizon, runs=range(1), schedule=SCHEDULES["delay 10"]).advance(horizon)

    play(1000)
    timed(benchmark, play, HORIZON)


def test_many_short_runs(benchmark):
    """2,000 runs of 256 rounds."""

    def play():
        Game(*MAIN[0], horizon=256, runs=range(2000)).advance(256)

    play()
    timed(benchmark, play, 256 * 2000)


@pytest.mark.parametrize("people", [0, 1000])
def test_decision_makers(benchmark, people):
    """A thousand with random tasks, who stay for a tenth of the game; both games are read at 33 checkpoints."""
    group = {
        "task": "random", "count": people, "arrivals": {"name": "poisson", "rate": people / HORIZON},
        "stay": {"name": "geometric", "mean": HORIZON // 10},
    }  # fmt: skip
    (cell,) = plan(
        [Entry.of(MAIN[0][0])], [Entry.of(MAIN[0][1])], horizons=[HORIZON], runs=RUNS, seed=0,
        panel=Panel.of(["ece", "cdl"]), schedules=[SCHEDULES["delay 10"]],
        people=People.of([group] if people else [], 0),
    )  # fmt: skip
    play_cell(replace(cell, horizon=1000, times=(1000,)))
    timed(benchmark, lambda: play_cell(cell), HORIZON * RUNS)


@pytest.mark.parametrize("horizon", [10**5, 10**6])
def test_defensive(benchmark, horizon):
    """K29*: with two horizons, the growth of the cost."""
    measure(benchmark, (f.DefensiveForecasting(), n.Bernoulli()), 16, horizon)


def test_plain_python(benchmark):
    benchmark.pedantic(plain, rounds=5)
    benchmark.extra_info[RATE] = PLAIN_ROUNDS / benchmark.stats.stats.median / 1e6


@numba.njit
def fused(uniforms, m, counts, ones):
    """Forecast hedging against the contrarian, everything in one function."""
    bias = np.zeros(m + 1, np.int64)
    for u in uniforms:
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
        i = low if u < share else low + 1
        y = 1 if mean < 0.5 else 0
        bias[i] += m * y - i
        counts[i] += 1
        ones[i] += y


def test_fused(benchmark):
    """The same by a compiled loop that can play nothing else; the uniforms come from NumPy and are counted."""
    horizon, m = 2 * 10**6, 126

    def play():
        counts, ones = np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64)
        for seed in range(4):
            fused(np.random.default_rng(seed).random(horizon // 4), m, counts, ones)

    play()
    timed(benchmark, play, horizon)
