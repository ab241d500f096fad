"""Delays that depend on the outcome: the engine beside a loop with a heap, in plain Python."""

import heapq
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.engine.game import Game
from onlinecal.engine.separate import Separate
from onlinecal.forecasters import Delayed, EmpiricalMean, ForecastHedging
from onlinecal.forecasters.base import as_forecaster
from onlinecal.natures import Bernoulli, Drift, Streams
from onlinecal.schedules import (
    Bursts,
    ByOutcome,
    Constant,
    Delays,
    EveryUnit,
    Geometric,
    Pareto,
    Poisson,
    Schedule,
    as_delays,
)  # fmt: skip
from onlinecal.schedules.base import load
from tests.engine.games import Mean

HORIZON = 700
NEVER = Constant(1e15)
DELAYS = [
    ByOutcome(), ByOutcome(12.0, 0.0), ByOutcome(0.5, 0.5), ByOutcome(Geometric(6), 3), ByOutcome(NEVER, 2),
    ByOutcome(Pareto(1.2), Geometric(2)), ByOutcome(0, 0),
]  # fmt: skip
ARRIVALS = [EveryUnit(), Poisson(1.5), Bursts(5)]


def by_hand(schedule, horizon, outcomes, seed):
    """Rounds of the empirical mean in the order in which they become known: number, forecast, outcome, known."""
    player, clock, waiting, told = Mean(), schedule.clock(horizon, seed), [], []
    asked, known = clock.span(1, horizon)
    end = clock.times(horizon + 1)[0]
    for t in range(1, horizon + 2):
        now = asked[t - 1] if t <= horizon else end
        while waiting and waiting[0][0] < now:
            time, number, forecast, outcome = heapq.heappop(waiting)
            player.update(forecast, outcome)
            told.append((number, forecast, outcome, time))
        if t <= horizon:
            y = int(outcomes[t - 1])
            heapq.heappush(waiting, (known[t - 1, y], t, player.forecast(), y))
    return told


def drawn_outcomes(nature, seed, run):
    """The outcomes of a nature that does not look at the game, all of them, from a game without delays."""
    game = Game(EmpiricalMean(), nature, horizon=HORIZON, runs=range(run, run + 1), seed=seed, keeps=[])
    game.advance(HORIZON)
    return game.transcripts.of(0).outcomes


@pytest.mark.parametrize("arrivals", ARRIVALS, ids=str)
@pytest.mark.parametrize("delays", DELAYS, ids=str)
@pytest.mark.parametrize("player", [EmpiricalMean(), as_forecaster(Mean)], ids=["steps", "plain"])
def test_the_same_as_by_hand(arrivals, delays, player, seed):
    schedule, nature = Schedule(arrivals, delays), Bernoulli(0.3)
    game = Game(player, nature, horizon=HORIZON, runs=range(2, 3), seed=seed, schedule=schedule, keeps=[])
    for until in (1, 2, 50, 51, 399, HORIZON):
        game.advance(until)
        game = pickle.loads(pickle.dumps(game))
    told = np.array(by_hand(schedule, HORIZON, drawn_outcomes(nature, seed, 2), seed))
    mine = game.transcripts.of(0)
    assert (np.stack([mine.numbers, mine.forecasts, mine.outcomes, mine.known]) == told.T).all()
    assert game.resolved == len(told)
    gamma = oc.JointDistribution.from_samples(told[:, 1], told[:, 2].astype(int))
    (own,) = game.gammas()
    assert own.weight == gamma.weight == len(told)
    assert (own.predictions == gamma.predictions).all()
    assert (own.positives == gamma.positives).all()


@pytest.mark.parametrize("kind", ["cuts", "streams", "grid"])
def test_parts_of_a_game(kind, seed):
    """Histories by time, by stream and on a grid have the rounds that the transcript has."""
    schedule = Schedule(Poisson(2), ByOutcome(Geometric(4), 1.0))
    cuts = (50.0, 120.0) if kind == "cuts" else ()
    nature = Streams([Bernoulli(0.2), Bernoulli(0.8)]) if kind == "streams" else Drift()
    player = ForecastHedging() if kind == "grid" else EmpiricalMean()
    options = {"seed": seed, "schedule": schedule, "cuts": cuts, "keeps": [], "runs": range(1)}
    game = Game(player, nature, horizon=HORIZON, **options)
    for until in (100, 101, HORIZON):
        game.advance(until)
    streams = [0, 1] if kind == "streams" else [None]
    for stream in streams:
        rounds = game.transcripts.of(0, stream)
        for since, end in ((-np.inf, 50.0), (50.0, 120.0), (120.0, np.inf)) if cuts else ((-np.inf, np.inf),):
            mine = (rounds.asked >= since) & (rounds.asked < end)
            (own,) = game.ledger.gammas(stream, since, end)
            gamma = oc.JointDistribution.from_samples(rounds.forecasts[mine], rounds.outcomes[mine])
            assert (own.predictions == gamma.predictions).all()
            assert (own.counts == gamma.counts).all()
            assert (own.positives == gamma.positives).all()
    assert game.resolved == len(game.transcripts.of(0).numbers)


@pytest.mark.parametrize("delays", DELAYS, ids=str)
def test_pauses_change_nothing_for_a_forecaster_of_copies(delays, seed):
    """It begins copies beforehand, for the most questions that may be open until the next pause."""
    schedule, found = Schedule(Poisson(2), delays), []
    for stops in ([HORIZON], range(1, HORIZON, 3), range(50, HORIZON, 50)):
        game = Game(
            Delayed(EmpiricalMean()), Drift(), horizon=HORIZON, runs=range(1), seed=seed, schedule=schedule
        )
        for until in (*stops, HORIZON):
            game.advance(until)
        found.append([getattr(g, k).tobytes() for g in game.known() for k in ("predictions", "counts")])
    assert found[0] == found[1] == found[2]


def test_equal_delays_are_those_without_outcomes(seed):
    plain, both = (
        Schedule(Poisson(), Geometric(5)),
        Schedule(Poisson(), ByOutcome(Geometric(5), Geometric(5))),
    )
    # Clocks have streams of their own: the delays are compared at one schedule's times.
    games = []
    for schedule in (plain, both):
        game = Game(ForecastHedging(), Drift(), horizon=HORIZON, runs=range(1), seed=seed, schedule=schedule)
        game._agenda.clock._streams[1] = plain.clock(HORIZON, seed)._streams[1]
        game.advance(HORIZON)
        games.append(game)
    (a,), (b,) = (game.gammas() for game in games)
    assert (a.counts == b.counts).all()
    assert games[0].resolved == games[1].resolved


@pytest.mark.parametrize("delays", DELAYS, ids=str)
def test_load_bounds_what_is_open_and_known(delays, seed):
    schedule = Schedule(Poisson(1.5), delays)
    most, resolved = load(schedule, HORIZON, seed)
    for q in (0.0, 0.3, 1.0):
        game = Game(
            EmpiricalMean(), Bernoulli(q), horizon=HORIZON, runs=range(1), seed=seed, schedule=schedule
        )
        open = []
        for until in range(1, HORIZON + 1, 7):
            game.advance(until)
            open.append(game.asked - game.resolved)
        game.advance(HORIZON)
        assert max(open) <= most
        assert game.resolved >= resolved


def test_a_study(tmp_path):
    """Jobs do not matter, and a plain class plays as steps do."""
    options = {
        "horizon": [64, 256],
        "runs": 3,
        "seed": 5,
        "measures": ["ece", "brier"],
        "tasks": ["umbrella"],
    }
    delays = [{"name": "by_outcome", "no": 1, "yes": {"name": "geometric", "mean": 8}}, 3]
    one = oc.play([EmpiricalMean(), Mean], ["drift", "contrarian"], delays=delays, **options)
    two = oc.play([EmpiricalMean(), Mean], ["drift", "contrarian"], delays=delays, jobs=2, **options)
    for a, b in zip(one.cells, two.cells, strict=True):
        assert all((a.totals[name] == b.totals[name]).all() for name in a.totals)
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
        Game(
            EmpiricalMean(), Bernoulli(0.5), horizon=99, runs=range(1), schedule=Schedule(delays=d), keeps=[]
        )
        for d in (Doubled(), ByOutcome(1.0, 2.0))
    )
    own.advance(99)
    shipped.advance(99)
    assert (own.transcripts.of(0).numbers == shipped.transcripts.of(0).numbers).all()


def test_runs_are_separate():
    schedule = Schedule(delays=ByOutcome())
    with pytest.raises(InvalidParameter, match="expected one run, or"):
        Game(EmpiricalMean(), Bernoulli(0.5), horizon=9, runs=range(2), schedule=schedule)
    games = [
        Game(EmpiricalMean(), Bernoulli(0.5), horizon=99, runs=range(r, r + 1), schedule=schedule)
        for r in range(3)
    ]
    several, told = Separate(games), []
    several.advance(40, told.append)
    several.advance(99, told.append)
    assert sum(told) == several.asked == 99
    assert several.resolved == min(game.resolved for game in games)
    assert len(several.gammas()) == 3
    assert several.compiled


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
