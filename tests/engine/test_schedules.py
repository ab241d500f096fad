"""Games with schedules: their order of events, and that they are the games that are played by hand in that order."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidForecast, InvalidParameter, StoreError
from onlinecal.core.strategy import strategy_key
from onlinecal.engine.game import Game
from onlinecal.engine.history import RealHistory
from onlinecal.engine.transcripts import Transcripts
from onlinecal.forecasters import DefensiveForecasting, ForecastHedging, OnlinePlatt
from onlinecal.natures import Bernoulli, Contrarian, Drift, Greedy, Streams
from onlinecal.schedules import Bursts, Constant, Geometric, Pareto, Poisson, Recorded, Schedule, Scheduled
from onlinecal.schedules.base import load
from tests import examples
from tests.engine.test_game import same

SCHEDULES = (
    Schedule(delays=Constant(1)),
    Schedule(delays=Constant(7)),
    Schedule(delays=Constant(2.5)),
    Schedule(delays=Geometric(5)),
    Schedule(Poisson(2)),
    Schedule(Poisson(2), Pareto(cap=200)),
    Schedule(Bursts(10)),
    Schedule(Bursts(10), Constant(25)),
)
T = 150


def by_hand(schedule, until, horizon, seed):
    """What happens up to question `until` + 1, from the definition: ("ask", number) and ("resolve", number)."""
    clock = schedule.clock(horizon, seed)
    times = [clock.times(number) for number in range(1, horizon + 2)]
    end = times[until][0]  # when the next question would be asked
    events = [(asked, 0, number) for number, (asked, _) in enumerate(times[:until], 1)]
    # What becomes known when the next question is asked, does so after it.
    events += [(known, 1, number) for number, (_, known) in enumerate(times[:until], 1) if known < end]
    return [(("ask", "resolve")[kind], number, time) for time, kind, number in sorted(events)]


def play_by_hand(game, events):
    open = {}
    for what, number, time in events:
        if what == "ask":
            open[number] = game.ask(time)
        else:
            game.resolve(open.pop(number), time)
    return open


@dataclass(frozen=True)
class Diary(oc.forecasters.Forecaster):
    """Writes down what it is asked and told."""

    deterministic = True

    def start(self, horizon, runs, stream):
        return _Diary(runs)


class _Diary:
    def __init__(self, runs):
        self.law, self.said = oc.forecasters.Law(runs, 1), []
        self.law.atoms[:], self.law.weights[:] = 0.5, 1.0

    def forecast(self, round):
        self.said.append(("ask", round.number, round.time))
        return self.law

    def update(self, round):
        self.said.append(("resolve", round.number, round.resolved))


@pytest.mark.parametrize("until", [1, 5, 40, T])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.label)
def test_what_happens_when(schedule, until, seed):
    game = Game(Diary(), Bernoulli(), horizon=T, runs=range(2), seed=seed, schedule=schedule)
    for stop in {1, until // 2, until}:  # stopping on the way changes nothing
        game.advance(max(stop, game.asked))
    events = by_hand(schedule, until, T, seed)
    assert game.forecaster.said == events
    assert game.asked == until
    assert game.resolved == sum(what == "resolve" for what, *_ in events)


def test_a_question_comes_before_the_outcomes_of_its_time():
    said = by_hand(Schedule(delays=Constant(2)), 4, 10, 0)
    assert [(what, number) for what, number, _ in said] == [
        ("ask", 1), ("ask", 2), ("ask", 3), ("resolve", 1), ("ask", 4), ("resolve", 2),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


def test_every_pair_plays_what_is_played_by_hand(folder, seed):
    """The players are those of the registry; `test_in_flight` holds each against a rule that is told late."""
    some = SCHEDULES[1::3]
    for i, (forecaster, nature) in enumerate(examples.pairs(folder)):
        if nature.length is not None and nature.length < T:
            continue
        for schedule in [some[(i + seed) % len(some)]]:
            if getattr(forecaster, "slots", None) and load(schedule, T, seed).most_open > forecaster.slots:
                continue
            scheduled, hand = (
                Game(forecaster, nature, horizon=T, runs=range(2), seed=seed, schedule=schedule) for _ in "ab"
            )
            scheduled.advance(T)
            play_by_hand(hand, by_hand(schedule, T, T, seed))
            case = f"{strategy_key(forecaster)} {strategy_key(nature)} {schedule.label}"
            assert same(scheduled.gammas(), hand.gammas()), case
            assert scheduled.resolved == hand.resolved


@pytest.mark.parametrize("loop", ["event", "auto"])
def test_a_question_a_unit_without_delay_is_the_immediate_game(loop, folder, seed):
    for forecaster, nature in examples.pairs(folder):
        horizon = min(nature.length or 60, 60)
        plain = Game(forecaster, nature, horizon=horizon, runs=range(3), seed=seed)
        timed = Game(
            forecaster, nature, horizon=horizon, runs=range(3), seed=seed, loop=loop,
            schedule=Schedule(delays=Constant(0.0)), cuts=[20.0, 31.5],
        )  # fmt: skip
        plain.advance(horizon)
        timed.advance(horizon // 2)
        timed.advance(horizon)
        assert same(plain.gammas(), timed.gammas())
        middle = timed.ledger.gammas(None, 20.0, 31.5)
        assert [gamma.weight for gamma in middle] == [12.0] * 3


@pytest.mark.parametrize("schedule", SCHEDULES[3:6], ids=lambda s: s.label)
@pytest.mark.parametrize(
    ("forecaster", "nature"),
    [
        (ForecastHedging(), Contrarian()),
        (DefensiveForecasting(), Drift()),
        (OnlinePlatt(), Greedy()),
        (oc.forecasters.Delayed(ForecastHedging()), Streams((Bernoulli(0.2), Drift()), "random")),
    ],
    ids=["hedging", "defensive", "platt", "delayed"],
)
def test_batches_and_pickles_on_the_way_change_nothing(forecaster, nature, schedule, seed):
    if "base" in forecaster.needs:
        pytest.skip("needs a recorded base forecast")
    whole = Game(forecaster, nature, horizon=T, runs=range(4), seed=seed, schedule=schedule, cuts=[30.0])
    whole.advance(T)
    parts = []
    for runs in (range(1), range(1, 4)):
        game = Game(forecaster, nature, horizon=T, runs=runs, seed=seed, schedule=schedule, cuts=[30.0])
        for until in (1, 40, 41, 100, T):
            game.advance(until)
            game = pickle.loads(pickle.dumps(game)) if until % 2 else copy.deepcopy(game)
        parts.append(game)
    assert same(whole.gammas(), [g for part in parts for g in part.gammas()])
    before = [part.ledger.gammas(None, -math.inf, 30.0) for part in parts]
    assert same(whole.ledger.gammas(None, -math.inf, 30.0), before[0] + before[1])


def test_every_forecaster_faces_the_same_times_and_outcomes(seed):
    """For natures that do not look: a tournament on the same questions."""
    schedule = Schedule(Poisson(3), Pareto())
    seen = []
    for forecaster in (ForecastHedging(), DefensiveForecasting(), oc.forecasters.LastOutcome()):
        game = Game(forecaster, Drift(), horizon=T, runs=range(3), seed=seed, schedule=schedule)
        game.advance(T)
        seen.append([(g.weight, g.positives.sum()) for g in game.gammas()])
    assert seen[0] == seen[1] == seen[2]


def test_questions_that_never_resolve_are_not_kept(tmp_path, seed):
    file = tmp_path / "log.csv"
    file.write_text("time,resolved\n" + "".join(f"{t},{t + 1 if t % 2 else ''}\n" for t in range(1, 201)))
    schedule = Schedule(Scheduled(str(file)), Recorded(str(file)))
    game = Game(ForecastHedging(), Drift(), horizon=200, runs=range(2), seed=seed, schedule=schedule)
    game.advance(200)
    assert (game.asked, game.resolved) == (200, 100)
    assert game._agenda.open == 0
    assert game._agenda.slots == 2  # question t + 1 is asked before outcome t of the same time
    with pytest.raises(InvalidParameter, match="the schedule has 200 questions"):
        Game(ForecastHedging(), Drift(), horizon=201, runs=range(2), schedule=schedule)


def test_gamma_of_streams_and_stretches(seed):
    """Against what each run saw, round by round."""
    nature = Streams((Bernoulli(0.2), Drift(), Bernoulli(0.9)), "random", (1, 2, 1))
    for forecaster in (ForecastHedging(), DefensiveForecasting()):
        cuts = [10.0, 55.5, 90.0]
        game, compiled = (
            Game(
                forecaster, nature, horizon=T, runs=range(2), seed=seed, schedule=Schedule(delays=Geometric(4)),
                cuts=cuts, loop=loop,
            )
            for loop in ("event", "compiled")
        )  # fmt: skip
        compiled.advance(T)
        rounds, resolve = [], game.resolve

        def watched(open, time=None, rounds=rounds, resolve=resolve):
            resolve(open, time)
            rounds.append(open)

        game.resolve = watched
        game.advance(T)
        for stream in (None, 0, 1, 2):
            for since, until in ((-math.inf, math.inf), (10.0, 90.0), (90.0, math.inf), (-math.inf, 10.0)):
                mine = [
                    open.round for open in rounds
                    if since <= open.round.time < until and stream in (None, open.part[1])
                ]  # fmt: skip
                found = game.ledger.gammas(stream, since, until)
                again = compiled.ledger.gammas(stream, since, until)
                if not mine:
                    assert found is again is None
                    continue
                assert same(found, again)
                expected = [
                    oc.JointDistribution.from_samples(
                        [round.forecast[run] for round in mine], [round.outcome[run] for round in mine]
                    )
                    for run in range(2)
                ]
                assert same(found, expected)


@dataclass(frozen=True)
class Confused(oc.natures.Nature):
    """Says that runs are of different streams, or of one that there is not."""

    stream: tuple = (0, 1)
    streams = ("a", "b")
    reveals = frozenset({"stream"})

    def start(self, horizon, runs, stream):
        return _Confused(self.stream)


class _Confused:
    def __init__(self, stream):
        self.stream = np.array(stream)

    def context(self, round):
        return {"stream": self.stream}

    def probability(self, round):
        return 0.5


@pytest.mark.parametrize("stream", [(0, 1), (2, 2), (-1, -1), (0.0, 0.0), ()], ids=str)
def test_a_stream_that_cannot_be(stream):
    game = Game(ForecastHedging(), Confused(stream), horizon=10, runs=range(2))
    with pytest.raises(
        InvalidForecast, match=r"revealed stream = .* in round 1; expected one of the numbers 0 to 1"
    ):
        game.advance(1)


def test_who_does_not_need_the_stream_is_not_shown_it():
    @dataclass(frozen=True)
    class Curious(oc.forecasters.Forecaster):
        def start(self, horizon, runs, stream):
            player = _Diary(runs)
            player.forecast = lambda round: (player.said.append(dict(round.context)), player.law)[1]
            return player

    game = Game(Curious(), Streams((Bernoulli(), Drift())), horizon=10, runs=range(2))
    game.advance(10)
    assert all(said == {} for said in game.forecaster.said if isinstance(said, dict))


def test_a_ledger_knows_its_cuts_only():
    game = Game(ForecastHedging(), Drift(), horizon=10, runs=range(2), cuts=[5.0])
    game.advance(10)
    with pytest.raises(InvalidParameter, match=r"time 4\.0: nothing begins or ends there"):
        game.ledger.gammas(None, 4.0)
    with pytest.raises(InvalidParameter, match="time = nan"):
        Game(ForecastHedging(), Drift(), horizon=10, runs=range(2), cuts=[math.nan])


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, StoreError], ids=lambda e: e.__name__)
@pytest.mark.parametrize("late", [0, 3])
def test_what_is_stopped_before_or_after_it_is_played_is_played_once(error, late, monkeypatch):
    """Rounds are written down whole, or the game is over: no round is listed twice, none is missing."""
    for where in (RealHistory, "reserve"), (Transcripts, "extend"):
        game = Game(
            DefensiveForecasting(), Bernoulli(), horizon=60, runs=range(2), keeps=(),
            schedule=Schedule(delays=Constant(late)),
        )  # fmt: skip
        game.advance(20)
        with monkeypatch.context() as patched:
            patched.setattr(*where, lambda *given: (_ for _ in ()).throw(error("stopped")))
            with pytest.raises((error, InvalidForecast)):
                game.advance(40)
        if late or where[0] is Transcripts:
            with pytest.raises(InvalidForecast, match=r"stopped"):
                game.advance(60)
        else:
            game.advance(60)
            assert len(game.transcripts.of(0).numbers) == game.gammas()[0].weight == game.resolved == 60
