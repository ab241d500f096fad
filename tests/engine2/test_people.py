"""Accounts of decision makers: as on the engine of today, at several times."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.decision_makers.responses import DecisionMaker, Rounded
from onlinecal.decision_makers.tenures import Tenure
from onlinecal.decisions.tasks import quadratic, random_task, umbrella
from onlinecal.engine.game import Game as Today
from onlinecal.engine.people import Accounts as OfToday
from onlinecal.engine2.game import Game
from onlinecal.engine2.people import Accounts
from onlinecal.forecasters import EmpiricalMean, ForecastHedging
from onlinecal.natures import Contrarian, Drift
from onlinecal.schedules import Constant, Geometric, Poisson, Schedule

T, RUNS = 240, 3
PLAYED = [
    (Contrarian(), Schedule()),
    (Contrarian(), Schedule(delays=Constant(20))),
    (Drift(), Schedule(Poisson(2), Geometric(8))),
]


def people(seed):
    rng = np.random.default_rng(seed)
    found = [
        Tenure(umbrella()),
        Tenure(umbrella(), 30, 90, "short"),
        Tenure(umbrella(), 40.5, label="late"),
        Tenure(quadratic(), 10, 200),
        Tenure(DecisionMaker(umbrella(), Rounded(10)), 10, 100),
        Tenure(umbrella(), 10_000, label="never"),
    ]
    for i in range(20):
        join, stay = rng.uniform(0, 200), rng.exponential(60)
        found.append(Tenure(random_task(3, seed=i), join, join + stay, f"random {i}"))
    return found


@pytest.mark.parametrize(("nature", "schedule"), PLAYED)
@pytest.mark.parametrize("forecaster", [ForecastHedging(), EmpiricalMean()], ids=["grid", "real"])
def test_accounts_are_those_of_today(forecaster, nature, schedule, seed):
    tenures = people(seed)
    cuts = sorted({t for who in tenures for t in (who.join, who.leave) if 0 < t < math.inf})
    given = {"horizon": T, "runs": range(RUNS), "seed": seed, "schedule": schedule, "cuts": cuts}
    today, game = Today(forecaster, nature, **given), Game(forecaster, nature, **given)
    expected, accounts = OfToday(today, tenures), Accounts(game, tenures)
    for t in (0, 1, 20, 21, T // 2, T):
        today.advance(t)
        game.advance(t)
        assert (accounts.read() == expected.read()).all()
        assert (accounts.cdl() == expected.cdl()).all()
    again = Accounts(pickle.loads(pickle.dumps(game)), tenures)
    assert (again.read() == expected.read()).all()


def test_a_time_that_is_no_cut_is_refused():
    game = Game(ForecastHedging(), Drift(), horizon=T, runs=range(1), cuts=[5.0])
    with pytest.raises(InvalidParameter, match=r"time 6\.0: nothing begins or ends there"):
        game.known(since=6.0)
