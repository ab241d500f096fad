"""The outlook of a run, before it begins: exact counts, and the loops that play."""

from collections import Counter

import pytest

import onlinecal as oc
from onlinecal.engine.game import Game
from onlinecal.forecasters import as_forecaster
from onlinecal.study.outlook import outlook
from onlinecal.study.panel import Panel
from onlinecal.study.planning import plan
from onlinecal.sweeping import schedules_of
from tests.results import PANEL
from tests.results import cells as small

F, N = oc.forecasters, oc.natures


class Plain:
    def forecast(self):
        return 0.5

    def update(self, forecast, outcome):
        pass


def test_counts():
    planned = small()
    found = outlook(planned)
    assert (len(found.pairs), found.cells, found.runs) == (4, 8, 3)
    assert (found.finished, found.begun, found.run_rounds) == (0, 0, sum(cell.work for cell in planned))
    assert found.horizons == (50, 100)
    assert found.new == 8
    there = {cell.key: 3 for cell in planned}
    found = outlook(small(horizons=(50, 100, 200), runs=3), there)
    assert (found.cells, found.finished, found.begun) == (12, 8, 0)
    assert found.run_rounds == 4 * 200 * 3
    found = outlook(small(horizons=(50, 100), runs=5), there)
    assert (found.finished, found.begun, found.run_rounds) == (0, 8, 4 * 150 * 2)
    assert "8 of which some runs are there" in next(found.lines())
    found = outlook(planned, there)
    assert (found.finished, found.run_rounds) == (8, 0)


def test_loops_are_those_that_play():
    who = F.ForecastHedging(), F.PerturbedLeader(), F.Calibeating(), as_forecaster(Plain)
    whom = N.Contrarian(), N.Streams((N.Drift(), N.Bernoulli())), N.Mixture((N.Drift(), N.Markov()))
    planned = small([20], 2, forecasters=who, natures=whom, schedules=schedules_of("every_unit", [0, 3]))
    found, plays = outlook(planned), {}
    for cell in planned:
        options = {"horizon": 20, "runs": range(1), "schedule": cell.schedule}
        game = Game(cell.forecaster.strategy, cell.nature.strategy, **options)
        plays[cell.forecaster.label, cell.nature_label] = "compiled" if game.compiled else "python"
    assert {(who, whom): loop for who, whom, loop in found.pairs} == plays
    assert found.loops == Counter(plays.values())
    assert set(found.loops) == {"compiled", "python"}


def test_measures_that_take_most_of_the_time_are_named():
    """Before a game: by the levels that Γ can have, the checkpoints and the runs that are left."""
    panel = Panel.of(["ece", "distance_lower"])
    who = F.ForecastHedging(m=9), F.EmpiricalMean()
    planned = small([40, 800], 50, panel=panel, forecasters=who, natures=[N.Drift()])
    of_grid, of_any = 2 * 50 * 0.04, 50 * (0.16 + 0.2)
    assert outlook(planned).measuring == {"distance_lower": pytest.approx(of_grid + of_any)}
    said = "measuring takes longest, on one core: distance_lower some 22 s"
    assert said in list(outlook(planned).lines())
    there = {cell.key: 50 for cell in planned[1:]}
    assert outlook(planned, there).measuring == {"distance_lower": pytest.approx(of_grid / 2)}
    assert not [line for line in outlook(planned, there).lines() if "measuring" in line]
    assert outlook(small(panel=Panel.of("ece"))).measuring == {}


def test_many_cells_are_described():
    many = {"from": 0.01, "to": 0.99, "steps": 60}
    who, whom = oc.sweep(F.Constant, p=many), oc.sweep(N.Bernoulli, q=many)
    found = outlook(plan(who, whom, horizons=[10**6], runs=16, seed=1, panel=PANEL))
    assert (found.cells, found.run_rounds, found.loops) == (3600, 3600 * 16 * 10**6, {"compiled": 3600})
    assert list(found.lines())[-1] == "3,600 pairs: 3,600 compiled"
