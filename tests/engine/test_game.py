"""Games against one that is written out in plain Python, and all that the numbers of a game must not depend on."""

import copy
import os
import pickle
import signal
import time
import warnings
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.checks.facts import playable
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import strategy_key, strategy_label
from onlinecal.engine import kernels
from onlinecal.engine.horizon import checkpoints
from onlinecal.forecasters.base import as_forecaster
from onlinecal.natures.base import as_nature
from onlinecal.rounds.hand import BLOCK
from onlinecal.schedules import Bursts, Constant, Pareto, Poisson, Recorded, Schedule, Scheduled
from onlinecal.schedules.base import load
from tests import examples
from tests.engine.games import (
    Coin,
    Follows,
    Laws,
    Mean,
    SeesDraw,
    SeesLaw,
    Shown,
    Timed,
    came_to,
    game_of,
    played,
    same,
)
from tests.oracles import game as oracle

T = 120


class Hedging:
    """Forecast hedging on the grid 0, 1/m, …, 1, with exact biases."""

    def __init__(self, m):
        self.m, self.bias = m, [Fraction(0)] * (m + 1)

    def forecast(self):
        # Of several pairs the rule takes that of its own search.
        low, high, bias = 0, self.m, self.bias
        while high - low > 1:
            middle = (low + high) // 2
            if bias[middle] < 0:
                high = middle
            elif bias[middle] == 0 and bias[middle + 1] > 0:
                low = middle + 1
            else:
                low = middle
                if bias[middle] == 0:
                    break
        a, b = bias[low], -bias[low + 1]
        share = float(Fraction(1, 2) if a + b == 0 else b / (a + b))
        return {low / self.m: share, (low + 1) / self.m: 1 - share}

    def update(self, forecast, outcome):
        i = round(forecast * self.m)
        self.bias[i] += outcome - Fraction(i, self.m)


class Copies:
    """A copy for each open question that plays at most so many rounds, or for each stream."""

    def __init__(self, make, most=10**6, by_stream=False):
        self.make, self.by_stream, self.copies, self.busy = make, by_stream, {}, set()
        self.left, self.whose = Counter(dict.fromkeys(range(T), most)), {}

    def forecast(self, round):
        free = (k for k in range(T) if k not in self.busy and self.left[k] > 0)
        k = round.context["stream"] if self.by_stream else next(free)
        self.busy.add(k)
        self.left[k] -= 1
        self.whose[round.number] = k
        return oracle.call(self.copies.setdefault(k, self.make()).forecast, round)

    def update(self, forecast, outcome, round):
        k = self.whose.pop(round.number)
        self.busy.discard(k)
        oracle.call(self.copies[k].update, forecast, outcome, round)


class Turns:
    """Natures in turns."""

    def __init__(self, *parts):
        self.parts = parts

    def context(self, round):
        return {"stream": (round.number - 1) % len(self.parts)}

    def probability(self, round):
        return oracle.call(self.parts[(round.number - 1) % len(self.parts)].probability, round)

    def update(self, forecast, outcome, round):
        part = self.parts[(round.number - 1) % len(self.parts)]
        if hasattr(part, "update"):
            oracle.call(part.update, forecast, outcome, round)


class Contrary:
    def probability(self, round):
        parts = [w * (v - 0.5) for v, w in round.law.items()]
        return 1.0 if sum(parts) < -1e-9 * sum(map(abs, parts)) else 0.0


class ContraryDraw:
    def probability(self, round):
        return 1.0 if round.forecast < 0.5 else 0.0


def plain(*classes):
    return [(as_forecaster(c) if hasattr(c, "forecast") else as_nature(c), c) for c in classes]


#: a specification, and what makes a plain player that plays as it does
MINE = [
    (f.EmpiricalMean(), Mean),
    *((f.ForecastHedging(m), lambda m=m: Hedging(m)) for m in (1, 2, 7, 10)),
    *plain(Mean, Laws),
    (f.Delayed(f.EmpiricalMean()), lambda: Copies(Mean)),
    (f.Delayed(f.Delayed(as_forecaster(Laws))), lambda: Copies(Laws)),
    (f.Delayed(f.ForecastHedging(5), slots=40), lambda: Copies(lambda: Hedging(5), most=3)),
]
THEIRS = [
    (n.Bernoulli(0.3), Coin),
    (n.Contrarian(), Contrary),
    (n.Contrarian("draw"), ContraryDraw),
    *plain(Coin, Follows, Timed, SeesLaw, SeesDraw),
]
STREAMS = (
    n.Streams((n.Bernoulli(0.3), n.Contrarian(), as_nature(SeesDraw))),
    lambda: Turns(Coin(), Contrary(), SeesDraw()),
)
PAIRS = [(mine, theirs) for mine in MINE for theirs in (*THEIRS, STREAMS)]
PAIRS += [(*plain(Shown), *plain(Timed))]
PAIRS += [
    ((f.Separate(spec), lambda make=make: Copies(make, by_stream=True)), STREAMS)
    for spec, make in ((f.EmpiricalMean(), Mean), (f.Delayed(as_forecaster(Laws)), lambda: Copies(Laws)))
]
SCHEDULES = (
    Schedule(),
    Schedule(delays=Constant(3)),
    Schedule(Poisson(2), Pareto(cap=200)),
    Schedule(Bursts(7), Constant(20.5)),
)


def fits(forecaster, schedule, horizon, seed):
    """Whether as many questions as are open may be."""
    return (getattr(forecaster, "slots", None) or horizon) >= load(schedule, horizon, seed).most_open


@pytest.mark.one_in(9)
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.label or "at once")
@pytest.mark.parametrize("first", range(4))
def test_the_engine_plays_the_game_in_plain_python(first, schedule, seed):
    for (spec, mine), (nature, theirs) in PAIRS[first::4]:
        if not fits(spec, schedule, T, seed):
            continue
        game = game_of(spec, nature, T, runs=range(2, 5), seed=seed, schedule=schedule, keeps=())
        for until in (1, 50, T):
            game.advance(until)
            players = (spec, nature), mine(), theirs()
            expected = oracle.play(*players, horizon=T, run=3, seed=seed, schedule=schedule, asked=until)
            kept, names = game.transcripts.of(1), ("numbers", "asked", "known", "forecasts", "outcomes")
            columns = [] if kept is None else [getattr(kept, name).tolist() for name in names]
            assert list(zip(*columns, strict=True)) == expected, (spec, nature)
        assert (game.asked, game.resolved) == (T, len(expected))
        assert game.gammas()[1].positives.sum() == sum(y for *_, y in expected)


# ---------------------------------------------------------------- what changes no byte


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    mine, theirs = examples.forecasters(folder), examples.natures(folder)
    found = [(m, o) for m in mine for o in theirs if m.needs <= o.reveals]
    assert len(found) > 250
    mean, laws = map(as_forecaster, (Mean, Laws))
    made = [mean, laws, f.Rounded(laws, 4, "random"), f.Doubling(laws, first=3), f.Delayed(laws)]
    made += [f.ExpertMixture(of) for of in ((laws, f.ForecastHedging(), mean), (made[4], f.Rounded(mean, 3)))]
    follows, law, draw = map(as_nature, (Follows, SeesLaw, SeesDraw))
    mixed = n.Mixture((follows, n.Drift(), draw))
    plain = [follows, law, draw, mixed, n.Switch(draw, mixed, 20), n.Streams((law, n.Greedy()), "random")]
    mine, theirs = [*made, f.CDLMinimiser(), f.PerturbedLeader()], [*plain, n.Greedy(), n.KinkApproach()]
    return found + [(m, o) for m in mine for o in theirs]


def test_neither_batches_nor_pauses_nor_copies_nor_threads_change_a_byte(pairs, seed, monkeypatch):
    monkeypatch.setattr("onlinecal.engine.loop.LEAST", 50)
    for i, (forecaster, nature) in enumerate(pairs[seed % 20 :: 20]):
        schedule = SCHEDULES[i % 3]
        if not fits(forecaster, schedule, 90, seed):
            continue
        options = {"horizon": 90, "seed": seed, "schedule": schedule, "cuts": (20.0, 31.5), "keeps": ()}
        whole = played(forecaster, nature, runs=range(5), threads=1 + i % 2 * 7, **options)
        alone = played(forecaster, nature, runs=range(3, 4), **options)
        assert came_to(alone, 0) == came_to(whole, 3), (forecaster, nature)
        game = game_of(forecaster, nature, runs=range(5), threads=2, **options)
        for until in (1, 2, 40, 64, 90):
            game.advance(until)
            game = pickle.loads(pickle.dumps(game)) if until % 2 else copy.copy(game)
        assert came_to(game) == came_to(whole), (forecaster, nature)


@pytest.mark.slow
def test_longer_games_do_not_depend_on_batches_either(pairs, seed, full):
    """Beyond a block of uniforms, and where states have grown."""
    for pair in pairs if full else pairs[seed % 10 :: 10]:
        until = playable(3 * BLOCK + 7, *pair)
        whole = played(*pair, until, runs=range(3), seed=seed)
        game = game_of(*pair, until, runs=range(1, 2), seed=seed)
        for stop in (BLOCK, BLOCK + 1, until):
            game.advance(min(stop, until))
        assert came_to(game, 0) == came_to(whole, 1), pair


def test_a_copied_game_is_a_game_of_its_own(seed):
    for nature in (n.Drift(), SeesDraw):
        game = game_of(Laws, nature, 60, seed=seed)
        game.advance(20)
        other, waiting = copy.copy(game), game.ask()
        game.resolve(waiting, outcome=1 - int(waiting.probability[0] > 0.5))
        game.advance(60), other.advance(60)
        assert same(other.gammas(), played(Laws, nature, 60, seed=seed).gammas())


def test_seeds_runs_and_forecasters():
    gammas = [g for s in (5, 6) for g in played(runs=range(6), seed=s).gammas()]
    # 12 sequences of 300 fair coins: two are equal with probability below 66 · 2^-300.
    assert len({tuple(g.predictions) for g in gammas}) == 12
    ones = [
        [g.positives.sum() for g in played(each, n.Bernoulli(0.3)).gammas()]
        for each in (Mean, Laws, f.UniformRandom())
    ]
    assert ones[0] == ones[1] == ones[2]  # all face the same coins


def test_the_loop_is_compiled_once():
    """With a grid and without, in plain Python, by hand, exact and moved: its arrays are of the same types."""
    for forecaster in (f.ForecastHedging(), f.DefensiveForecasting(), Laws):
        for history in ("exact", 64):
            game = game_of(forecaster, n.Contrarian(), 20, history=history)
            game.resolve(game.ask())
            game.advance(20)
    assert len(kernels.play_runs.code.signatures) == 2  # for a list of events, and for none


def test_compiled_says_whether_a_part_is_in_python():
    for forecaster, nature, compiled in (
        (f.Rounded(f.ForecastHedging(), 3), n.Drift(), True),
        (f.Delayed(f.Rounded(as_forecaster(Mean), 3)), n.Drift(), False),
        (f.ForecastHedging(), n.Mixture((n.Drift(), n.Switch(n.Drift(), as_nature(Coin)))), False),
    ):
        assert game_of(forecaster, nature).compiled is compiled


def test_a_forked_process_plays_with_threads_of_its_own(monkeypatch):
    monkeypatch.setattr("onlinecal.engine.loop.LEAST", 1)
    game = game_of(f.Constant(), horizon=20, runs=range(4), threads=2)
    game.advance(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of processes with threads that fork, as here
        child = os.fork()
    if child == 0:
        game.advance(20)
        os._exit(0 if game.resolved == 20 else 1)
    for _ in range(200):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
    assert (done, status) == (child, 0)


# ---------------------------------------------------------------- order of events, stretches and streams


def by_hand(schedule, until, horizon, seed):
    """The events up to question `until` + 1, from the definition: time, 0 or 1 for asked or known, number."""
    clock = schedule.clock(horizon, seed)
    times = [clock.times(number) for number in range(1, until + 1)]
    end = clock.times(until + 1)[0]
    events = [(asked, 0, number) for number, (asked, _) in enumerate(times, 1)]
    # An outcome that becomes known when the next question is asked, does so after it.
    return sorted(events + [(known, 1, number) for number, (_, known) in enumerate(times, 1) if known < end])


def test_a_question_comes_before_the_outcomes_of_its_time():
    said = by_hand(Schedule(delays=Constant(2)), 4, 10, 0)
    assert [(kind, number) for _, kind, number in said] == [(0, 1), (0, 2), (0, 3), (1, 1), (0, 4), (1, 2)]


@pytest.mark.parametrize("schedule", [*SCHEDULES[1:], Schedule(delays=Constant(2.5))], ids=lambda s: s.label)
def test_questions_by_hand_in_the_order_of_the_schedule_are_the_same_game(pairs, schedule, seed):
    """Of every pair; by turns some questions are the schedule's, and open ones are pickled."""
    for i, pair in enumerate(pairs[seed % 23 :: 23]):
        if not fits(pair[0], schedule, 60, seed):
            continue
        scheduled, hand = (
            game_of(*pair, 60, seed=seed, schedule=schedule, cuts=(20.0,), keeps=()) for _ in range(2)
        )
        scheduled.advance(60)
        waiting = {}
        for time_, kind, number in by_hand(schedule, 60, 60, seed):
            if kind == 0:
                waiting[number] = hand.ask(time_)
            else:
                hand.resolve(waiting.pop(number), time_)
            if i % 3 == 0 and number % 20 == 0:
                hand, waiting = pickle.loads(pickle.dumps((hand, waiting)))
        assert came_to(hand) == came_to(scheduled), pair


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "schedule",
    [
        *(Schedule(delays=Constant(d)) for d in (0, 1, 3, 70)),
        Schedule(Poisson(), Constant(0)),
        Schedule(Bursts(2)),
    ],
    ids=lambda s: s.label,
)
def test_a_game_without_a_list_of_events_is_the_listed_one(pairs, schedule, seed):
    """With pauses, a look at the next law, and a question by hand in between; a cut after the end has it listed."""
    for i, pair in enumerate(pairs[seed % 29 :: 29]):
        if not fits(pair[0], schedule, 60, seed):
            continue
        options = {"seed": seed, "schedule": schedule, "keeps": ()}
        games = [game_of(*pair, 60, cuts=cuts, **options) for cuts in ((), (1e9,))]
        for game in games:
            for until in (1, 20, 33):
                game.advance(until)
                game.laws()
            # `delayed` may have no slot for one more.
            waiting = None if i % 2 or hasattr(pair[0], "slots") else game.ask()
            game.advance(40)
            if waiting is not None:
                game.resolve(waiting)
            game.advance(60)
        for rounds in zip(*([game.transcripts.of(run) for run in range(2)] for game in games), strict=True):
            columns = [
                [v.tobytes() for v in vars(each).values() if hasattr(v, "tobytes")] for each in rounds if each
            ]
            assert len(columns) == 0 or columns[0] == columns[1], pair


def test_gamma_of_streams_and_stretches(seed):
    """Against the rounds that are kept."""
    nature = n.Streams((n.Bernoulli(0.2), n.Drift(), as_nature(Follows)), "random", (1, 2, 1))
    options = {"seed": seed, "schedule": SCHEDULES[2], "cuts": [10.0, 30.5], "keeps": ["stream"]}
    for forecaster in (f.ForecastHedging(), f.DefensiveForecasting(), Laws):
        game = played(forecaster, nature, 150, **options)
        ends = [(-np.inf, np.inf), (10.0, 30.5), (30.5, np.inf), (-np.inf, 10.0)]
        for stream, (since, until), run in product((None, 0, 1, 2), ends, range(2)):
            found, rounds = game.ledger.gammas(stream, since, until), game.transcripts.of(run)
            mine = (since <= rounds.asked) & (rounds.asked < until)
            if stream is not None:
                mine &= rounds.context["stream"] == stream
            assert (found is None) is not mine.any()
            if found is not None:
                expected = JointDistribution.from_samples(rounds.forecasts[mine], rounds.outcomes[mine])
                assert same([found[run]], [expected])


def test_a_ledger_knows_its_cuts_only():
    game = played(nature=n.Drift(), horizon=10, cuts=[5.0])
    with pytest.raises(InvalidParameter, match=r"time 4\.0: nothing begins or ends there"):
        game.ledger.gammas(None, 4.0)


def test_questions_that_never_resolve_are_not_kept(tmp_path, seed):
    file = tmp_path / "log.csv"
    file.write_text("time,resolved\n" + "".join(f"{t},{t + 1 if t % 2 else ''}\n" for t in range(1, 201)))
    schedule = Schedule(Scheduled(str(file)), Recorded(str(file)))
    game = played(f.ForecastHedging(), n.Drift(), 200, seed=seed, schedule=schedule)
    assert (game.asked, game.resolved) == (200, 100)
    # Question t + 1 comes before outcome t of its time.
    assert (game._agenda.open, game._agenda.slots) == (0, 2)
    with pytest.raises(InvalidParameter, match="the schedule has 200 questions"):
        game_of(horizon=201, schedule=schedule)


@pytest.mark.parametrize(("delay", "most"), [(0, 1), (7, 8), (300, 301)])
def test_as_many_copies_begin_as_questions_are_open_at_once(delay, most):
    schedule = Schedule(delays=Constant(delay))
    game = played(f.Delayed(f.Constant()), n.Drift(), 40_000, runs=range(1), schedule=schedule)
    assert len(game.forecaster.memory.players) == most


def test_a_game_whose_events_were_listed_and_not_played_is_over():
    class Once(f.Constant):
        def start(self, horizon, stream):
            begun.append(self)
            if len(begun) == 3:
                raise InvalidParameter("no third copy")
            return super().start(horizon, stream)

    begun = []
    game = game_of(f.Delayed(Once()), n.Drift(), 20, schedule=Schedule(delays=Constant(2.5)))
    for _ in range(2):
        with pytest.raises(Exception, match="no third copy"):
            game.advance(20)


# ---------------------------------------------------------------- parameters and names


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(({"horizon": horizon}, "an integer from 1 to") for horizon in (0, -5, 10**12, 2.5, True, "many")),
        *(({"runs": runs}, r"runs = .*; expected a range") for runs in (4, [0, 1], None)),
        *(({"seed": seed}, "seed = ") for seed in (1.0, "1", None, True)),
        ({"runs": range(0)}, "at least one"),
        ({"threads": 0}, "threads = 0"),
        ({"cuts": [float("nan")]}, "time = nan"),
        ({"keeps": ["truth"]}, "truth is to be kept with the rounds; nature 'bernoulli' does not reveal it"),
        ({"forecaster": f.Truthful()}, "needs truth, which nature 'bernoulli' does not reveal"),
    ],
)
def test_parameters_that_are_refused(options, said):
    with pytest.raises(InvalidParameter, match=said):
        game_of(**options)


def test_advance_and_gamma_are_checked():
    game = game_of()
    for until in (2.5, "3", None, True, -1):
        with pytest.raises(InvalidParameter, match="until = "):
            game.advance(until)
    with pytest.raises(InvalidParameter, match="no round"):
        game.gammas()
    with pytest.raises(InvalidParameter, match="round 7 is beyond the horizon 6"):
        game.advance(7)
    game.advance(np.int64(3))
    assert (type(game.asked), type(game.resolved)) == (int, int)


def test_a_plug_in_is_called_by_its_name():
    named, unnamed = f.Scalar(Mean, name="mean"), f.Scalar(Mean)
    assert strategy_label(named) == "mean"
    assert strategy_label(unnamed) == "scalar (make=tests.engine.games:Mean)"
    assert strategy_key(named) == 'mean(make=tests.engine.games:Mean, name="mean")'


@given(st.integers(1, 10**9), st.integers(1, 30))
def test_checkpoints_are_geometric_and_end_at_the_horizon(horizon, per_decade):
    times = checkpoints(horizon, per_decade)
    assert times == sorted(set(times))
    assert times[-1] == horizon
    assert all(1 <= t <= horizon for t in times)
    assert len(times) <= per_decade * 9 + 2


def test_progress_adds_up():
    told = []
    game = game_of(horizon=3 * BLOCK + 7)
    for stop in (5, BLOCK, BLOCK + 1, game.horizon):
        game.advance(stop, told.append)
    assert sum(told) == game.horizon
