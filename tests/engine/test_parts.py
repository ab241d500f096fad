"""Objects in plain Python, alone and as parts, and strategies of several parts come to the same in all ways."""

from __future__ import annotations

from itertools import cycle

import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidParameter
from onlinecal.forecasters.base import as_forecaster
from onlinecal.natures.base import as_nature
from onlinecal.schedules import Constant, Pareto, Poisson, Schedule
from tests.engine.games import Follows, Laws, Looks, Mean, SeesDraw, SeesLaw, check_all_ways, game_of
from tests.examples import NESTED, WHOLES
from tests.marks import slow

SCHEDULES = Schedule(), Schedule(Poisson(2), Pareto()), Schedule(delays=Constant(4))
MEAN, LAWS, LOOKS = map(as_forecaster, (Mean, Laws, Looks))
FOLLOWS, LAW, DRAW = map(as_nature, (Follows, SeesLaw, SeesDraw))
MIXED = n.Mixture((FOLLOWS, n.Drift(), DRAW))
#: plain players against each other, against compiled ones, and in parts
PAIRS = [
    (MEAN, FOLLOWS), (LAWS, LAW), (f.CDLMinimiser(), DRAW), (LAWS, MIXED), (MEAN, n.Switch(DRAW, MIXED, 20)),
    (f.PerturbedLeader(), n.Streams((LAW, n.Greedy()), "random")), (f.Delayed(LAWS), n.Greedy()),
    (f.ExpertMixture((LAWS, f.ForecastHedging(), MEAN)), MIXED),
]  # fmt: skip
#: Natures of parts take long to compile: fast are those of test_same.py.
OF_PARTS = [
    pair if isinstance(pair[0], n.Greedy) else slow(pair)
    for pair in zip(NESTED, cycle((f.ForecastHedging(), f.EmpiricalMean())))
]


def is_compiled(*pair):
    return not {MEAN, LAWS, LOOKS, FOLLOWS, LAW, DRAW} & set(pair)


@pytest.mark.parametrize("schedule", SCHEDULES[:2], ids=lambda s: s.label)
def test_objects_play_the_same_in_all_ways(schedule):
    for pair in PAIRS:
        check_all_ways(*pair, schedule, 90, compiled=is_compiled(*pair))


@pytest.mark.parametrize("cls", [LAWS, LOOKS], ids=["laws", "looks"])
@pytest.mark.parametrize("whole", WHOLES)
def test_objects_as_parts_play_the_same_in_all_ways(whole, cls):
    for schedule in SCHEDULES[:2]:
        check_all_ways(WHOLES[whole](cls), n.UniformTruth(), schedule)


@pytest.mark.parametrize(("nature", "forecaster"), OF_PARTS, ids=str)
def test_natures_of_parts_play_the_same_in_all_ways(nature, forecaster):
    """Rules are tested in tests/natures. Numbers of before are in tests/golden.json."""
    for schedule in SCHEDULES:
        check_all_ways(forecaster, nature, schedule, 250)


@pytest.mark.parametrize("whole", WHOLES)
def test_a_plain_part_that_takes_all_is_refused(whole):
    takes = as_forecaster(type("Open", (Looks,), {"needs": "all"}))
    with pytest.raises(InvalidParameter, match=r"'Open' needs all context, .*; expected the kinds"):
        game_of(WHOLES[whole](takes), n.UniformTruth())


def test_a_part_that_is_too_short_is_refused(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("outcome\n" + "1\n" * 10)
    short = n.Replay(str(file))
    for nature in (n.Streams((n.Drift(), short), "random", (0, 1)), n.Switch(n.Drift(), short, 0)):
        with pytest.raises(InvalidParameter, match=r"30 of 30 rounds fall to .* which has 10"):
            game_of(nature=nature, horizon=30)
