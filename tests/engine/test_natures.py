"""Natures of several parts play the same by the loop and in Python, and levels are kept in order."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest

from onlinecal import natures as n
from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.forecasters import EmpiricalMean, ForecastHedging
from onlinecal.natures._levels import BEGIN, MANY, SETTLED, entered
from onlinecal.schedules import Constant, Pareto, Poisson, Schedule
from tests.engine.games import came_to
from tests.examples import NESTED
from tests.marks import slow

T = 250
SCHEDULES = Schedule(), Schedule(delays=Constant(4)), Schedule(Poisson(2), Pareto())
FORECASTERS = ForecastHedging(), EmpiricalMean()


#: Natures of parts take long to compile: fast are those of test_same.py and test_game.py.
CASES = [pair if isinstance(pair[0], n.Greedy) else slow(pair) for pair in zip(NESTED, cycle(FORECASTERS))]


@pytest.mark.parametrize(("nature", "forecaster"), CASES, ids=str)
def test_parts_of_parts_play_the_same_in_both_ways(nature, forecaster):
    """Rules are tested in tests/natures. Numbers of before are in tests/golden.json."""
    for schedule in SCHEDULES:
        given = {"horizon": T, "runs": range(3), "seed": 4, "schedule": schedule}
        defined, game = (Game(forecaster, nature, **given) for _ in range(2))
        defined.in_python = True
        for each in (defined, game):
            each.advance(T // 3)
            each.advance(T)
        assert came_to(game) == came_to(defined)


def test_a_part_that_is_too_short_is_refused(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("outcome\n" + "1\n" * 10)
    short = n.Replay(str(file))
    for nature in (n.Streams((n.Drift(), short), "random", (0, 1)), n.Switch(n.Drift(), short, 0)):
        with pytest.raises(InvalidParameter, match=r"30 of 30 rounds fall to .* which has 10"):
            Game(EmpiricalMean(), nature, horizon=30, runs=range(1))


@pytest.mark.parametrize("wide", [2, 4])
def test_levels_are_kept_in_order(wide, seed):
    near = [0.0, -0.0, 1e-300, 0.5, np.nextafter(0.5, 1), 1.0, *np.linspace(0, 1, 900)]
    values = np.random.default_rng(seed).choice(near, 900)
    mine, marks = np.zeros(BEGIN + wide * 900), dict[float, int]()
    rows = mine[BEGIN:].reshape(-1, wide)
    for value in values.tolist():
        if value not in marks:
            at, marks[value] = entered(mine, rows, value + 0.0), len(marks) + 1
            assert rows[at].tolist() == [value] + [0.0] * (wide - 1)
            rows[at, 1:] = marks[value]
    many, settled = int(mine[MANY]), int(mine[SETTLED])
    table = rows[:many].tolist()
    assert sorted(table) == [[value] + [marks[value]] * (wide - 1) for value in sorted(marks)]
    assert 0 < settled <= many
    assert table[:settled] == sorted(table[:settled])
    assert table[settled:] == sorted(table[settled:])
    assert not mine[BEGIN + many * wide :].any()
