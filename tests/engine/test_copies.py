"""Games of copies and streams, made of steps: the same bytes as those of their players in Python in the event loop."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.schedules import Bursts, Constant, Pareto, Poisson, Recorded, Schedule, Scheduled
from tests.engine.test_loop import Asking, Stating, came_to, in_flight

T = 260
CUTS = (31.0, 100.5)
TURNS = n.Streams((n.Greedy(), n.Drift(), n.Contrarian("draw")))
DRAWN = n.Streams((n.Markov(), n.RandomWalk(), n.Sidestepping()), "random", (1, 0, 4))
TRUE = n.Streams(
    (n.UniformTruth(), n.UniformTruth(), n.Switch(n.UniformTruth(), n.UniformTruth(), 20)), "random"
)
MANY = n.Streams((n.Bernoulli(0.3), n.KinkApproach()) * 20, "random")
PAIRS = [
    (f.ForecastHedging(), TURNS),
    (f.DefensiveForecasting(), DRAWN),
    (f.Truthful(), TRUE),
    (f.Separate(f.PerturbedLeader()), TURNS),
    (f.Separate(f.DefensiveForecasting()), MANY),
    (f.Separate(f.Truthful()), TRUE),
    (f.Separate(f.Delayed(f.DefensiveForecasting())), DRAWN),
    (f.Separate(f.Delayed(f.DefensiveForecasting())), n.Streams((n.Greedy(),) * 2, "random", (0, 1))),
    (f.Delayed(f.PerturbedLeader()), n.Drift()),
    (f.Delayed(f.DefensiveForecasting()), n.Greedy()),
    (f.Delayed(f.Separate(f.AlmostOneStepAhead())), MANY),
    (f.Delayed(f.Delayed(f.ThresholdHedging())), n.Contrarian()),
    (f.Delayed(f.Doubling(f.CDLMinimiser(), first=3)), n.Greedy()),
    (f.Doubling(f.Delayed(f.ForecastHedging()), first=8), n.Greedy()),
    (f.Delayed(f.ExpertMixture((f.ForecastHedging(), f.EmpiricalMean()))), n.Drift()),
    (f.ExpertMixture((f.Separate(f.EmpiricalMean()), f.Delayed(f.PerturbedLeader()))), TURNS),
    (f.Rounded(f.Separate(f.EmpiricalMean()), 7, "random"), DRAWN),
    (f.Separate(f.EmpiricalMean()), n.Switch(TURNS, DRAWN, 50)),
]


@pytest.fixture(scope="module")
def schedules(tmp_path_factory):
    """A third of the outcomes of the last one are never told, others in any order."""
    file = tmp_path_factory.mktemp("schedule") / "log.csv"
    told = [t + t * t % 40 if t % 3 else "" for t in range(1, T + 1)]
    file.write_text("time,resolved\n" + "".join(f"{t},{known}\n" for t, known in enumerate(told, 1)))
    return (
        Schedule(),
        Schedule(delays=Constant(7)),
        Schedule(Poisson(2), Pareto(cap=200)),
        Schedule(Bursts(10), Constant(25)),
        Schedule(Scheduled(str(file)), Recorded(str(file))),
    )


@pytest.fixture
def in_python(monkeypatch):
    """Whoever is started afterwards is a player in Python, down to the innermost copies."""

    def switch():
        for module in ("delayed", "separate", "composed"):
            monkeypatch.setattr(f"onlinecal.forecasters.{module}.of_steps", lambda players: False)
        for module in ("streams", "composed"):
            monkeypatch.setattr(f"onlinecal.natures.{module}.of_steps", lambda *given: False)

    return switch


def all_of(game):
    """What a game came to, by stream and stretch too, and its transcripts."""
    found = [came_to(game)]
    for stream in (None, *range(game.ledger.streams)):
        for since, until in ((-math.inf, CUTS[0]), CUTS, (CUTS[1], math.inf)):
            gammas = game.ledger.gammas(stream, since, until)
            found.append(gammas and [(g.predictions.tobytes(), g.positives.tobytes()) for g in gammas])
        for run in range(len(game.runs)):
            rounds = game.transcripts.of(run, stream)
            found.append(rounds and [v.tobytes() for v in vars(rounds).values() if isinstance(v, np.ndarray)])
    return found


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_steps_play_what_players_in_python_play(pair, schedules, in_python, seed):
    def game(schedule, runs=range(3), **more):
        return Game(*pair, horizon=T, runs=runs, seed=seed, schedule=schedule, cuts=CUTS, keeps=(), **more)

    found, flying = [], in_flight(pair, seed, 70, 6, stop=True)
    for i, schedule in enumerate(schedules):
        whole = game(schedule, threads=1 + i % 2)
        whole.advance(T)
        event = game(schedule, loop="event")
        event.advance(T)
        found.append(all_of(whole))
        assert all_of(event) == found[-1]
        paused = game(schedule, range(1, 3))
        for until in (1, 2, 57, 58, 150, T):
            paused.advance(until)
            paused = pickle.loads(pickle.dumps(paused)) if until % 2 else copy.deepcopy(paused)
        assert came_to(paused)[0] == found[-1][0][0][1:]
    in_python()
    for schedule, expected in zip(schedules, found, strict=True):
        python = game(schedule)
        assert not python.compiled
        python.advance(T)
        assert all_of(python) == expected
    assert in_flight(pair, seed, 70, 6) == flying


def test_who_of_them_is_compiled():
    """All but those that meet questions of which the game does not say beforehand how many will be open."""
    python = [pair for pair in PAIRS if not Game(*pair, horizon=T, runs=range(1)).compiled]
    assert python == [PAIRS[13], PAIRS[17]]


@pytest.mark.parametrize("pair", PAIRS[3:13:2], ids=str)
def test_rounds_by_hand_and_compiled_ones_mix(pair, in_python, seed):
    """A question that is asked by hand and never resolved keeps its copy busy."""

    def play():
        game = Game(*pair, horizon=T, runs=range(2), seed=seed)
        game.advance(40)
        waiting = [game.ask() for _ in range(5)]
        game.law()
        game.resolve(waiting.pop(2))
        game.advance(90)
        game.resolve(waiting.pop())
        game.advance(T)
        return came_to(game)

    compiled = play()
    in_python()
    assert play() == compiled


@pytest.mark.parametrize(("delay", "most"), [(0, 1), (7, 8), (300, 301)])
def test_as_many_copies_begin_as_questions_are_open_at_once(delay, most):
    schedule = Schedule(delays=Constant(delay))
    game = Game(f.Delayed(f.Constant()), n.Drift(), horizon=40_000, runs=range(1), schedule=schedule)
    game.advance(40_000)
    assert len(game.forecaster.memory.players) == most


def test_a_copy_that_states_nonsense_is_stopped_and_named():
    for loop in ("event", "compiled"):
        for part in ({"value": 1.5}, {"size": 0}, {"value": 7, "grid": True}):
            game = Game(f.Delayed(Stating(**part)), n.Bernoulli(), horizon=9, runs=range(5, 8), loop=loop)
            with pytest.raises(InvalidForecast, match=r"forecaster 'delayed' stated .* in round 3, run 6"):
                game.advance(9)
        nature = n.Streams((n.Drift(), Asking(q=1.5)))
        game = Game(f.Separate(f.Constant()), nature, horizon=20, runs=range(5, 8), loop=loop)
        with pytest.raises(InvalidForecast, match=r"nature 'streams' stated q = 1\.5 in round 12, run 5"):
            game.advance(20)


def test_a_game_whose_events_were_listed_and_not_played_is_over():
    class Once(f.Constant):
        def start(self, horizon, runs, stream):
            begun.append(self)
            if len(begun) == 2:  # another could begin
                raise InvalidParameter("no second copy")
            return super().start(horizon, runs, stream)

    begun = []
    schedule = Schedule(delays=Constant(3))
    game = Game(f.Delayed(Once()), n.Drift(), horizon=20, runs=range(2), schedule=schedule)
    for _ in range(2):
        with pytest.raises((InvalidParameter, InvalidForecast), match="no second copy"):
            game.advance(20)
