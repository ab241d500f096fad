"""The outlook of a run, before it begins: exact counts, the loops that play, times near what it takes."""

import time
from collections import Counter

import pytest

import onlinecal as oc
from onlinecal.engine.game import Game
from onlinecal.forecasters import as_forecaster
from onlinecal.report.outlook import lines
from onlinecal.study.outlook import measure, outlook
from onlinecal.study.panel import Panel
from onlinecal.study.planning import plan
from onlinecal.sweeping import schedules_of
from tests.results import PANEL
from tests.results import cells as small

F, N = oc.forecasters, oc.natures


class Slow:
    """A hundredth of a second a round."""

    def forecast(self):
        time.sleep(0.01)
        return 0.5

    def update(self, forecast, outcome):
        pass


def test_counts():
    planned = small()
    found = outlook(planned, 0.0)
    assert (found.forecasters, found.natures, found.pairs, found.cells, found.runs) == (2, 2, 4, 8, 3)
    assert (found.finished, found.begun, found.run_rounds) == (0, 0, sum(cell.work for cell in planned))
    assert (found.horizons, found.seconds) == ((50, 100), None)  # nothing was to be measured
    assert found.as_json()["new"] == 8
    there = {cell.key: 3 for cell in planned}
    found = outlook(small(horizons=(50, 100, 200), runs=3), 0.0, there)
    assert (found.cells, found.finished, found.begun) == (12, 8, 0)
    assert found.run_rounds == 4 * 200 * 3
    found = outlook(small(horizons=(50, 100), runs=5), 0.0, there)
    assert (found.finished, found.begun, found.run_rounds) == (0, 8, 4 * 150 * 2)
    assert "8 of which some runs are there" in next(lines(found))
    found = outlook(planned, 1.0, there)
    assert (found.finished, found.run_rounds, found.seconds) == (8, 0, None)
    assert list(lines(found))[-1] == "nothing is to be played"


def test_loops_are_those_that_play():
    who = F.ForecastHedging(), F.PerturbedLeader(), F.Calibeating(), as_forecaster(Slow)
    whom = N.Contrarian(), N.Streams((N.Drift(), N.Bernoulli())), N.Mixture((N.Drift(), N.Markov()))
    planned = small([20], 2, forecasters=who, natures=whom, schedules=schedules_of("every_unit", [0, 3]))
    found, plays = outlook(planned, 0.0), {}
    for cell in planned:
        options = {"horizon": 20, "runs": range(1), "schedule": cell.schedule}
        game = Game(cell.forecaster.strategy, cell.nature.strategy, **options)
        plays[cell.forecaster.label, cell.nature_label] = "compiled" if game.compiled else "python"
    assert {(who, whom): loop for who, whom, loop in found.listed} == plays
    assert found.loops == Counter(plays.values())
    assert set(found.loops) == {"compiled", "python"}


def test_a_time_is_stated_as_a_range_with_how_it_came_about():
    """Of a forecaster that sleeps a known time: the range holds it, with room for what a busy machine adds."""
    planned = small([1000], 2, forecasters=[as_forecaster(Slow)], natures=[N.Drift()])
    found = outlook(planned, 0.1)
    lower, middle, upper = found.seconds.values()
    assert lower < middle < upper
    assert lower <= 1.3 * 1000 * 2 * 0.01
    assert upper >= 1000 * 2 * 0.01
    assert "the first rounds were played just now" in found.how
    seconds, taken = measure(planned[0], 0.1)
    assert (seconds >= 0.01, taken >= 64 * 2 * 0.01) == (True, True)


@pytest.mark.parametrize("budget", [1e-9, 0.01, 0.1, 10.0])
def test_reading_is_taken_for_as_long_as_it_is_at_each_checkpoint(budget, monkeypatch):
    """By a clock on which a run-round takes a microsecond, and reading one for each level, whatever the budget.

    The first round takes a second more, which no later one does.
    """
    planned = small([20_000], 2, forecasters=[F.DefensiveForecasting()], natures=[N.Contrarian()])
    cell, now = planned[0], [0.0]
    plays = Game.advance

    def advance(game, until, progress=None):
        now[0] += 1e-6 * len(game.runs) * (until - game.asked) + (not game.asked)
        plays(game, until, progress)

    def read(panel, gamma, *_):
        now[0] += 1e-6 * gamma.levels

    monkeypatch.setattr(Game, "advance", advance)
    monkeypatch.setattr(Panel, "read", read)
    monkeypatch.setattr("onlinecal.study.outlook.time.perf_counter", lambda: now[0])
    seconds, _ = measure(cell, budget)
    expected = 1e-6 * (1 + sum(cell.times) / cell.horizon)
    assert seconds == pytest.approx(expected, rel=1e-3)


def test_many_cells_are_described():
    many = {"from": 0.01, "to": 0.99, "steps": 60}
    who, whom = oc.sweep(F.Constant, p=many), oc.sweep(N.Bernoulli, q=many)
    found = outlook(plan(who, whom, horizons=[10**6], runs=16, seed=1, panel=PANEL), 0.01)
    assert (found.cells, found.run_rounds, found.loops) == (3600, 3600 * 16 * 10**6, {"compiled": 3600})
    assert found.disk > 10**7
    assert "others taken for as fast as the slowest" in found.how
    assert "3,600 cells: 3,600 new" in "\n".join(lines(found))


def test_memory_is_of_histories_and_of_players():
    def memory(*some):
        return outlook(small([100, 200_000], forecasters=some, natures=[N.Drift()]), 0.0).memory

    history = 8 * 200_000 * 3
    assert history <= memory(F.EmpiricalMean()) < 1.1 * history
    tree = memory(F.DefensiveForecasting())  # of each past prediction
    assert 10 * history < tree == memory(F.EmpiricalMean(), F.DefensiveForecasting(), F.ForecastHedging())
