"""Decision makers that join and leave: their accounts against a count by hand, and what bounds their regret."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.core.streams import Stream
from onlinecal.decisions.people import ENTRIES, Accounts, Group, People, Person
from onlinecal.decisions.responses import DecisionMaker, Rounded, RoundedDown
from onlinecal.decisions.tasks import Account, DecisionTask, quadratic, random_task, umbrella
from onlinecal.engine.game import Game
from onlinecal.forecasters import DefensiveForecasting, ForecastHedging
from onlinecal.measures import cdl
from onlinecal.natures import Contrarian, Drift, Greedy
from onlinecal.schedules import Constant, Geometric, Poisson, Schedule
from onlinecal.schedules.base import Arrivals

T, RUNS = 240, 3
PLAYED = [
    (Greedy(), Schedule()),
    (Contrarian(), Schedule(delays=Constant(20))),
    (Drift(), Schedule(Poisson(2), Geometric(8))),
]


def people(seed):
    rng = np.random.default_rng(seed)
    found = [
        Person(umbrella()),
        Person(umbrella(), 30, 90, "short"),
        Person(umbrella(), 40.5, label="late"),
        Person(quadratic(), 10, 200),
        Person(DecisionMaker(umbrella(), Rounded(10)), 10, 100),
        Person(umbrella(), 10_000, label="never"),
    ]
    for i in range(20):
        join, stay = rng.uniform(0, 200), rng.exponential(60)
        found.append(Person(random_task(3, seed=i), join, join + stay, f"random {i}"))
    return found


def played(forecaster, nature, schedule, everybody, seed):
    """The game, and the rounds that are resolved at its end."""
    cuts = sorted({t for who in everybody for t in (who.join, who.leave) if 0 < t < math.inf})
    game = Game(
        forecaster, nature, horizon=T, runs=range(RUNS), seed=seed, schedule=schedule, cuts=cuts, keeps=()
    )
    accounts = Accounts(game, everybody)
    game.advance(T // 2)
    accounts.read()
    accounts.cdl()
    game.advance(T)
    return game, accounts, [game.transcripts.of(run) for run in range(RUNS)]


@pytest.mark.parametrize(("nature", "schedule"), PLAYED)
@pytest.mark.parametrize("forecaster", [ForecastHedging(), DefensiveForecasting()], ids=["grid", "real"])
def test_accounts_are_those_of_the_rounds_while_they_are_there(
    forecaster, nature, schedule, seed, monkeypatch
):
    """And no best response regrets more than the CDL of these rounds."""
    everybody = people(seed)
    game, accounts, rounds = played(forecaster, nature, schedule, everybody, seed)
    entries, bounds = accounts.read(), accounts.cdl()
    assert (Accounts(pickle.loads(pickle.dumps(game)), everybody).read() == entries).all()
    monkeypatch.setattr("onlinecal.decisions.people.LEVELS", 100)  # some at a time
    assert (accounts.read() == entries).all()
    assert (accounts.cdl() == bounds).all()
    for k, who in enumerate(everybody):
        for run in range(RUNS):
            mine = (rounds[run].asked >= who.join) & (rounds[run].asked < who.leave)
            assert entries[k, run, 0] == mine.sum()
            if not mine.any():
                assert not entries[k, run].any()
                assert bounds[k, run] == 0.0
                continue
            gamma = oc.JointDistribution.from_samples(rounds[run].forecasts[mine], rounds[run].outcomes[mine])
            expected = mine.sum() * np.array(who.who.account(gamma))
            assert (entries[k, run, 1:] == expected).all(), (who.label, entries[k, run], expected)
            assert bounds[k, run] == mine.sum() * cdl(gamma)
    best = [not isinstance(who.who, DecisionMaker) for who in everybody]
    names = "swap_regret", "action_swap_regret", "external_regret"
    swap, action, external = (entries[best][..., ENTRIES.index(name)] for name in names)
    assert (swap <= bounds[best] * (1 + 1e-12) + 1e-9).all()
    assert (action <= swap + 1e-9).all()
    assert (external <= action + 1e-9).all()


def test_a_task_that_accounts_in_its_own_way_is_asked():
    class Half(DecisionTask):
        def account(self, gamma):
            return Account(0.5, 0.0, 0.0, 0.25)

    mine = Half("mine", ((1.0, 0.0), (0.0, 1.0)), ("a", "b"))
    study = oc.play(
        ForecastHedging(), Drift(), horizon=50, runs=2, measures="ece", tasks=[mine], decision_makers=[mine]
    )
    entries = study.cells[0].people.entries
    for name, value in (("payoff", 25.0), ("external_regret", 0.0), ("swap_regret", 12.5)):
        assert study.curve(f"{name}[mine]").mean[-1] == value
        assert (entries[name][-1] == value).all()


def test_who_does_not_best_respond_may_regret_more():
    """The control: the bound is about best responses.

    The forecast 0.3 of a coin of 0.3 has a CDL of order √T. A decision maker that takes it for 0 never carries the
    umbrella that costs 0.1. It loses 0.3 a round instead of 0.1: 0.2 T = 48, from which chance takes 24 with
    probability below e^{−4}.
    """
    everybody = [Person(DecisionMaker(umbrella(cost=0.1), RoundedDown(1)))]
    pair = oc.forecasters.Constant(0.3), oc.natures.Bernoulli(0.3)
    game, accounts, _ = played(*pair, Schedule(), everybody, 0)
    regret, bounds = accounts.read()[0, :, ENTRIES.index("swap_regret")], accounts.cdl()[0]
    ones = np.array([gamma.positives.sum() for gamma in game.gammas()])
    # Exactly: what the outcomes cost less what the umbrella costs, where that is more.
    assert np.allclose(regret, np.maximum(ones - 0.1 * T, 0.0))
    assert (bounds >= 0.0).all()


# -------------------------------------------------------------------- who they are


def test_groups():
    group = Group.of(
        {"task": {"name": "random", "actions": 3}, "count": 50, "arrivals": {"name": "poisson", "rate": 0.5},
         "stay": {"name": "geometric", "mean": 30}, "join": 100, "leave": 250, "response": {"name": "rounded", "m": 4}}
    )  # fmt: skip
    who = group.people(3, 0)
    uniforms = Stream(3, ("decision makers", "0", "task"), range(1)).block(50)[:, 0]
    assert [t.who.task.payoffs for t in who] == [random_task(3, int(u * 2**53)).payoffs for u in uniforms]
    assert [t.label for t in who[:2]] == ["random, rounded(m=4) 1", "random, rounded(m=4) 2"]
    joins = [100.0, *(t.join for t in who)]
    assert joins == sorted(joins)
    assert all(t.join <= t.leave <= max(250, t.join) for t in who)
    assert who == group.people(3, 0) != group.people(4, 0)
    assert who != group.people(3, 1)


class Odd(Arrivals):
    """Arrivals at whatever is given."""

    def __init__(self, given):
        self.given = given

    def times(self, first, before, uniforms):
        return self.given


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"join": 5, "leave": 5}, "join before"), ({"join": -1}, "join = -1"), ({"join": math.nan}, "join = nan"),
        ({"leave": "late"}, "leave = 'late'"), ({"jion": 3}, "did you mean 'join'"),
        ({"stay": {"name": "by_outcome"}}, "a stay has no outcome"),
        *(({"count": count}, "count") for count in (0, 100_001)),
        ({"arrivals": {"name": "poisson", "rate": 0}}, "rate = 0"), ({"task": None, "join": 3}, "task"),
        ({"task": "random", "count": 3, "label": 7}, "label = 7"), ({"label": "me"}, "two decision makers"),
        ({"task": {"name": "random", "actions": 0}}, "actions"), ({"task": "umbrela"}, "did you mean 'umbrella'"),
        ({"task": {"name": "umbrella", "response": "rounded"}, "response": "rounded"}, "two responses"),
        *(({"count": 3, "arrivals": Odd(given)}, said) for given, said in (
            (1.0, "expected 3 times"), (None, "expected 3 times"), (np.ones((3, 1)), "expected 3 times"),
            (np.full(3, np.nan), "at time nan"), (np.arange(3, 0.0, -1.0), r"at time 2\.0, after 3\.0"))),
    ],
)  # fmt: skip
def test_decision_makers_that_cannot_be(spec, said):
    with pytest.raises(OnlinecalError, match=said):
        People.of([Person(umbrella(), label="me"), {"task": "umbrella"} | spec], 0)


def test_times_that_cannot_be(tmp_path):
    for wrong, said in (
        ((umbrella(), 5, 3), "leaves at 3 and joins at 5"),
        (("umbrella",), "expected a task"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            Person(*wrong)
    with pytest.raises(InvalidParameter, match="have no task"):
        People.of({"count": 3}, 0)
    game = Game(ForecastHedging(), Drift(), horizon=T, runs=range(1), cuts=[5.0])
    with pytest.raises(InvalidParameter, match=r"time 6\.0: nothing begins or ends there"):
        Accounts(game, [Person(umbrella(), 6.0)])
    (tmp_path / "stays.csv").write_text("left\n30\n")
    stay = {"name": "recorded", "file": str(tmp_path / "stays.csv"), "column": "left"}
    assert [t.leave for t in Group("umbrella", count=1, stay=stay).people(0, 0)] == [30.0]
    with pytest.raises(InvalidParameter, match="3 decision makers, but of 1 it is said how long they stay"):
        Group("umbrella", count=3, stay=stay)


@pytest.mark.parametrize("delays", [0, 5])
def test_a_stay_of_no_time_and_a_join_after_all_have_left_are_no_error(delays, seed):
    """Random times may be so: a geometric stay is 0 with probability 1/2 here, and 40 joins at once go on after 20."""
    group = {
        "task": "umbrella", "count": 40, "leave": 20.0, "arrivals": {"name": "poisson", "rate": 1},
        "stay": {"name": "geometric", "mean": 1},
    }  # fmt: skip
    everybody = People.of(group, seed).each
    empty = np.array([t.leave == t.join for t in everybody])
    assert empty.any()  # all 40 have a stay of 1 or more and join before 20 with a probability below 1e-9
    assert all(t.join <= t.leave <= max(t.join, 20.0) for t in everybody)
    for forecaster in (oc.forecasters.ForecastHedging(), oc.forecasters.EmpiricalMean()):
        options = {"horizon": 100, "runs": 2, "seed": seed, "delays": delays}
        people = oc.play(forecaster, "drift", decision_makers=group, **options).cells[0].people
        for entry in people.entries.values():
            assert not entry[:, empty].any()
        assert not people.cdl[empty].any()
