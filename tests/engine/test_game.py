"""Games against one written out in plain Python, and all that the numbers of a game must not depend on."""

import copy
import pickle
import warnings
from itertools import product
from multiprocessing import get_context

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
from onlinecal.schedules import (
    Bursts,
    ByOutcome,
    Constant,
    Geometric,
    Pareto,
    Poisson,
    Recorded,
    Schedule,
    Scheduled,
)
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


class Uniform(Mean):
    """Five points with equal weights."""

    def forecast(self):
        return dict.fromkeys((0.0, 0.25, 0.5, 0.75, 1.0), 0.2)


class Contrary:
    def probability(self, round):
        return float(round.forecast < 0.5)


def plain(*classes):
    return [(as_forecaster(c) if hasattr(c, "forecast") else as_nature(c), c) for c in classes]


#: a specification, and what makes a plain player that plays as it does
MINE = [(f.EmpiricalMean(), Mean), (f.UniformRandom(4), Uniform), *plain(Mean, Laws)]
THEIRS = [
    (n.Bernoulli(0.3), Coin),
    (n.Contrarian("draw"), Contrary),
    *plain(Coin, Follows, Timed, SeesLaw, SeesDraw),
]
PAIRS = [*product(MINE, THEIRS), (*plain(Shown), *plain(Timed))]
SCHEDULES = (
    Schedule(),
    Schedule(delays=Constant(3)),
    Schedule(Poisson(2), Pareto(cap=200)),
    Schedule(Bursts(7), Constant(20.5)),
)


def fitting(pairs, schedule, horizon, seed):
    """The pairs that allow as many open questions as there are."""
    most = load(schedule, horizon, seed).most_open
    return [pair for pair in pairs if (getattr(pair[0], "slots", None) or horizon) >= most]


BY_OUTCOME = [
    Schedule(Poisson(1.5), ByOutcome(Pareto(1.2), Geometric(2))),
    Schedule(Bursts(5), ByOutcome(0.5, 0.5)),
    Schedule(delays=ByOutcome(Constant(1e15), 2)),
    Schedule(delays=ByOutcome(12.0, 0.0)),
]
NAMES = ("numbers", "asked", "known", "forecasts", "outcomes")


@pytest.mark.parametrize("schedule", [*SCHEDULES, *BY_OUTCOME], ids=lambda s: s.label or "at once")
def test_the_engine_plays_the_game_in_plain_python(schedule, seed):
    """Rules of compiled players by hand are in test_in_flight.py and test_rules.py; by hand and listed is below."""
    runs, at = (range(3, 4), 0) if schedule in BY_OUTCOME else (range(2, 5), 1)
    for (spec, mine), (nature, theirs) in PAIRS:
        game = game_of(spec, nature, T, runs=runs, seed=seed, schedule=schedule, keeps=())
        for until in (1, 50, T):
            game.advance(until)
            players = (spec, nature), mine(), theirs()
            expected = oracle.play(*players, horizon=T, run=3, seed=seed, schedule=schedule, asked=until)
            kept = game.transcripts.of(at)
            columns = [] if kept is None else [getattr(kept, name).tolist() for name in NAMES]
            assert list(zip(*columns, strict=True)) == expected, (spec, nature)
        assert (game.asked, game.resolved) == (T, len(expected))
        ones = [gamma.positives.sum() for gamma in game.known()[at : at + 1]]
        assert sum(ones) == sum(y for *_, y in expected)


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
    for i, schedule in enumerate(SCHEDULES[:3]):
        options = {"horizon": 90, "seed": seed, "schedule": schedule, "cuts": (20.0, 31.5), "keeps": ()}
        for pair in fitting(pairs[seed % 20 + 20 * i :: 60], schedule, 90, seed):
            whole = played(*pair, runs=range(5), threads=1 + i % 2 * 7, **options)
            alone = played(*pair, runs=range(3, 4), **options)
            assert came_to(alone, 0) == came_to(whole, 3), pair
            game, told = game_of(*pair, runs=range(5), threads=2, **options), []
            for until in (1, 2, 40, 64, 90):
                game.advance(until, told.append)
                game = pickle.loads(pickle.dumps(game)) if until % 2 else copy.copy(game)
            assert came_to(game) == came_to(whole), pair
            assert sum(told) == 90


@pytest.mark.slow
def test_longer_games_do_not_depend_on_batches_either(pairs, seed, full):
    """Beyond a block of uniforms, and where states have grown."""
    for pair in pairs if full else pairs[seed % 25 :: 25]:
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
    child = get_context("fork").Process(target=game.advance, args=(20,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of processes with threads that fork, as here
        child.start()
    child.join(20)
    ended = child.exitcode
    child.kill()
    assert ended == 0


# ---------------------------------------------------------------- order of events, stretches and streams


def by_hand(schedule, until, horizon, seed):
    """The events up to question `until` + 1, from the definition: time, 0 or 1 for asked or known, number."""
    clock = schedule.clock(horizon, seed)
    times = [clock.times(number) for number in range(1, until + 1)]
    end = clock.times(until + 1)[0]
    events = [(asked, 0, number) for number, (asked, _) in enumerate(times, 1)]
    # An outcome that becomes known when the next question is asked, does so after it.
    return sorted(events + [(known, 1, number) for number, (_, known) in enumerate(times, 1) if known < end])


@pytest.mark.parametrize("schedule", [*SCHEDULES[1:], Schedule(delays=Constant(2.5))], ids=lambda s: s.label)
def test_questions_by_hand_in_the_order_of_the_schedule_are_the_same_game(pairs, schedule, seed):
    """Of every pair; by turns some questions are the schedule's, and open ones are pickled."""
    for i, pair in enumerate(fitting(pairs[seed % 23 :: 23], schedule, 60, seed)):
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


@pytest.mark.parametrize(
    "schedule",
    [
        *(Schedule(delays=Constant(d)) for d in (0, 1, 70)),
        Schedule(Poisson(), Constant(0)),
        Schedule(Bursts(2)),
    ],
    ids=lambda s: s.label,
)
def test_a_game_without_a_list_of_events_is_the_listed_one(pairs, schedule, seed):
    """With pauses, a look at the next law, and a question by hand in between. A cut after the end has it listed."""
    for i, pair in enumerate(fitting(pairs[seed % 29 :: 29], schedule, 60, seed)):
        options = {"horizon": 60, "seed": seed, "schedule": schedule, "keeps": ()}
        games = [game_of(*pair, cuts=cuts, **options) for cuts in ((), (1e9,))]
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
        (found, totals), (listed, proved) = map(came_to, games)
        assert set(found) <= set(listed), pair
        assert totals == proved


@pytest.mark.parametrize(
    "schedule", [SCHEDULES[2], Schedule(Poisson(2), ByOutcome(Geometric(4), 1.0))], ids=str
)
def test_gamma_of_streams_and_stretches(schedule, seed):
    """Against the rounds that are kept."""
    nature = n.Streams((n.Bernoulli(0.2), n.Drift(), as_nature(Follows)), "random", (1, 2, 1))
    options = {
        "seed": seed, "schedule": schedule, "cuts": [10.0, 30.5], "keeps": ["stream"], "runs": range(1),
    }  # fmt: skip
    for forecaster in (f.ForecastHedging(), f.DefensiveForecasting(), Laws):
        game = played(forecaster, nature, 150, **options)
        ends = [(-np.inf, np.inf), (10.0, 30.5), (30.5, np.inf), (-np.inf, 10.0)]
        rounds = game.transcripts.of(0)
        for stream, (since, until) in product((None, 0, 1, 2), ends):
            found = game.ledger.gammas(stream, since, until)
            mine = (since <= rounds.asked) & (rounds.asked < until)
            if stream is not None:
                mine &= rounds.context["stream"] == stream
            assert (found is None) is not mine.any()
            if found is not None:
                expected = JointDistribution.from_samples(rounds.forecasts[mine], rounds.outcomes[mine])
                assert same(found, [expected])


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
        ({"cuts": 3}, "cuts = 3; expected a list of times"),
        ({"schedule": "poisson"}, "schedule = 'poisson'; expected an onlinecal.schedules.Schedule"),
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
    with pytest.raises(InvalidParameter, match=r"time 4\.0: nothing begins or ends there"):
        game_of(cuts=[5.0]).ledger.gammas(None, 4.0)
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
