"""Delays that depend on the outcome; games with them beside plain Python are in tests/engine/test_game.py."""

from dataclasses import dataclass

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import OnlinecalError
from onlinecal.forecasters import DefensiveForecasting, Delayed, EmpiricalMean
from onlinecal.natures import Bernoulli, Drift
from onlinecal.schedules import (
    ByOutcome,
    Constant,
    Delays,
    Geometric,
    Pareto,
    Poisson,
    Schedule,
    as_delays,
)  # fmt: skip
from onlinecal.schedules.base import load
from tests.engine.games import Mean, came_to, game_of, played

HORIZON = 700
NEVER = Constant(1e15)
DELAYS = [
    ByOutcome(), ByOutcome(Geometric(6), 3), ByOutcome(NEVER, 2), ByOutcome(Pareto(1.2), Geometric(2)),
]  # fmt: skip


@pytest.mark.parametrize("delays", DELAYS, ids=str)
def test_pauses_change_nothing_for_a_forecaster_of_copies(delays, seed):
    """It begins copies beforehand, for the most questions that may be open until the next pause."""
    schedule, found = Schedule(Poisson(2), delays), []
    for stops in ([HORIZON], range(1, HORIZON, 3), range(50, HORIZON, 50)):
        game = game_of(Delayed(EmpiricalMean()), Drift(), HORIZON, range(1), seed=seed, schedule=schedule)
        for until in (*stops, HORIZON):
            game.advance(until)
        found.append(came_to(game))
    assert found[0] == found[1] == found[2]


def test_copies_certify_the_rounds_of_each_run(seed):
    """Runs have different orders of events, and so other copies."""
    schedule = Schedule(delays=ByOutcome(1, 20))

    def certified(runs):
        who = Delayed(DefensiveForecasting())
        game = game_of(who, Bernoulli(0.4), 300, runs, seed=seed, schedule=schedule)
        game.advance(60)
        return game.certificates()["kernel_ce_certificate"].tolist()

    assert certified(range(3)) == [each for run in range(3) for each in certified(range(run, run + 1))]


@pytest.mark.parametrize("delays", DELAYS, ids=str)
def test_load_bounds_what_is_open_and_known(delays, seed):
    schedule = Schedule(Poisson(1.5), delays)
    most, resolved = load(schedule, HORIZON, seed)
    for q in (0.0, 0.3, 1.0):
        game, open = (
            game_of(nature=Bernoulli(q), horizon=HORIZON, runs=range(1), seed=seed, schedule=schedule),
            [],
        )
        for until in range(1, HORIZON + 1, 7):
            game.advance(until)
            open.append(game.asked - game.resolved)
        game.advance(HORIZON)
        assert max(open) <= most
        assert game.resolved >= resolved


def test_a_study(tmp_path):
    """A plain class plays as steps do. That jobs do not matter is in tests/engine/test_silent.py."""
    options = {"horizon": [64, 256], "runs": 3, "seed": 5, "measures": ["ece"], "tasks": ["umbrella"]}
    delays = [{"name": "by_outcome", "no": 1, "yes": {"name": "geometric", "mean": 8}}, 3]
    one = oc.play([EmpiricalMean(), Mean], ["drift", "contrarian"], delays=delays, **options)
    assert len({cell.schedule for cell in one.cells}) == 4
    late = [cell for cell in one.cells if "by outcome" in cell.schedule[1]]
    mine, again = ([cell for cell in late if cell.forecaster == name] for name in ("empirical mean", "Mean"))
    for a, b in zip(mine, again, strict=True):
        assert np.allclose(a.totals["ece"], b.totals["ece"], rtol=0, atol=1e-9)


@dataclass(frozen=True)
class Doubled(Delays):
    by_outcome = True

    def known(self, first, asked, uniforms, outcome):
        return asked + 1.0 + outcome


def test_delays_of_ones_own():
    own, shipped = (
        played(horizon=99, runs=range(1), schedule=Schedule(delays=d), keeps=[])
        for d in (Doubled(), ByOutcome(1.0, 2.0))
    )
    assert came_to(own) == came_to(shipped)


def test_runs_are_in_one_game(seed):
    """Their outcomes become known at different times; each is the same game alone."""
    options = {"horizon": 99, "seed": seed, "schedule": Schedule(delays=ByOutcome(1, 30)), "keeps": []}
    game, told = game_of(runs=range(3), **options), []
    game.advance(40, told.append)
    game.advance(99, told.append)
    assert sum(told) == game.asked == 99
    for run in range(3):
        assert came_to(game, run) == came_to(played(runs=range(run, run + 1), **options), 0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ByOutcome(no=ByOutcome()), "no = .*expected delays that do not depend on the outcome, or a number"),
        (lambda: ByOutcome(yes="soon"), "yes = 'soon'"),
        (lambda: ByOutcome(no=-1), "no = -1"),
        (lambda: as_delays({"name": "by_outcome", "maybe": 3}), "has no parameter 'maybe'"),
        (lambda: oc.play("empirical_mean", "drift", horizon=9, delays=ByOutcome(50, 50)), "no outcome becomes known"),
    ],
)  # fmt: skip
def test_what_is_refused(make, said):
    with pytest.raises(OnlinecalError, match=said):
        make()
