"""Games against one written out in plain Python, and the order of events, stretches and streams.

What numbers do not depend on is in test_same.py and test_parts.py.
"""

import copy
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.horizon import check_horizon, check_time, checkpoints
from onlinecal.forecasters.base import as_forecaster
from onlinecal.natures.base import as_nature
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
from tests.engine import games as g
from tests.engine.games import Follows, Laws, Mean, SeesDraw, game_of, played, same
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
    (n.Bernoulli(0.3), g.Coin), (n.Contrarian("draw"), Contrary), *plain(g.Coin, Follows, g.Timed, g.SeesLaw, SeesDraw),
]  # fmt: skip
PAIRS = [*product(MINE, THEIRS), (*plain(g.Shown), *plain(g.Timed))]
RANDOM = Schedule(Poisson(2), Pareto(cap=200))
SCHEDULES = [
    Schedule(), Schedule(delays=Constant(3)), RANDOM, Schedule(Bursts(7), Constant(20.5)), Schedule(Bursts(2)),
    Schedule(delays=Constant(1)), Schedule(Poisson(), Constant(0)),
    Schedule(Poisson(1.5), ByOutcome(Pareto(1.2), Geometric(2))), Schedule(Bursts(5), ByOutcome(0.5, 0.5)),
    Schedule(delays=ByOutcome(Constant(1e15), 2)), Schedule(delays=ByOutcome(12.0, 0.0)),
]  # fmt: skip
COLUMNS = ("numbers", "asked", "known", "forecasts", "outcomes")


@pytest.mark.parametrize("k", range(len(SCHEDULES)), ids=lambda k: SCHEDULES[k].label or "at once")
def test_the_engine_plays_the_game_in_plain_python(k, seed):
    """Each pair at once and in half of the schedules. Rules of compiled players are in test_in_flight.py.

    Without rounds that are kept, those that are told at once are played in blocks.
    """
    schedule = SCHEDULES[k]
    for (spec, mine), (nature, theirs) in PAIRS[k % 2 :: 2] if k else PAIRS:
        options = {"runs": range(2, 5), "seed": seed, "schedule": schedule}
        game = game_of(spec, nature, T, keeps=(), **options)
        for until in (1, 50, T):
            game.advance(until)
            players = (spec, nature), mine(), theirs()
            expected = oracle.play(*players, horizon=T, run=3, seed=seed, schedule=schedule, asked=until)
            kept = game.transcripts.of(1)
            columns = [] if kept is None else [getattr(kept, name).tolist() for name in COLUMNS]
            assert list(zip(*columns, strict=True)) == expected, (spec, nature)
        assert game.asked == T
        gamma = game.gamma(1)
        found = (0, 0) if gamma is None else (gamma.weight, gamma.positives.sum())
        assert found == (len(expected), sum(y for *_, y in expected))
        assert same(game.known(), played(spec, nature, T, **options).known())


# ---------------------------------------------------------------- copies, memory and processes


def test_a_copied_game_is_a_game_of_its_own(seed):
    for nature in (n.Drift(), SeesDraw):
        game, told = game_of(Laws, nature, 60, seed=seed), []
        game.advance(20, told.append)
        other, waiting = copy.copy(game), game.ask()
        game.resolve(waiting, outcome=1 - int(waiting.probability[0] > 0.5))
        game.advance(60, told.append), other.advance(60)
        assert same(other.gammas(), played(Laws, nature, 60, seed=seed).gammas())
        assert sum(told) == 59


def test_what_runs_share_is_in_memory_once():
    game = game_of(f.Minimax(), n.Maximin(), 100, range(20))
    game.advance(2)
    shared = game.forecaster.shared.nbytes + game.nature.shared.nbytes
    assert shared > 1e5
    assert shared < game.rows.base.nbytes < 1.1 * shared


# ---------------------------------------------------------------- order of events, stretches and streams


@pytest.mark.parametrize("schedule", [RANDOM, Schedule(Poisson(2), ByOutcome(Geometric(4), 1.0))], ids=str)
def test_gamma_of_streams_and_stretches(schedule, seed):
    """Against the rounds that are kept."""
    nature = n.Streams((n.Bernoulli(0.2), n.Drift(), as_nature(Follows)), "random", (1, 2, 1))
    options = {"seed": seed, "schedule": schedule, "cuts": [10.0, 30.5], "keeps": ["stream"]}
    for forecaster in (f.ForecastHedging(), f.DefensiveForecasting(), Laws):
        game = played(forecaster, nature, 150, runs=range(1), **options)
        ends = [(-np.inf, np.inf), (10.0, 30.5), (30.5, np.inf), (-np.inf, 10.0)]
        rounds = game.transcripts.of(0)
        for stream, (since, until) in product((None, 0, 1, 2), ends):
            found = game.gamma(0, stream, since, until)
            mine = (since <= rounds.asked) & (rounds.asked < until)
            if stream is not None:
                mine &= rounds.context["stream"] == stream
            assert (found is None) is not mine.any()
            if found is not None:
                expected = JointDistribution.from_samples(rounds.forecasts[mine], rounds.outcomes[mine])
                assert same([found], [expected])


def test_questions_that_never_resolve_are_not_kept(tmp_path, seed):
    file = tmp_path / "log.csv"
    file.write_text("time,resolved\n" + "".join(f"{t},{t + 1 if t % 2 else ''}\n" for t in range(1, 201)))
    schedule = Schedule(Scheduled(str(file)), Recorded(str(file)))
    game = played(f.ForecastHedging(), n.Drift(), 200, seed=seed, schedule=schedule)
    assert (game.asked, game.resolved) == (200, 100)
    # Question t + 1 comes before outcome t of its time. One place is for a question by hand.
    assert (game.events.open, game.events.places) == (0, 3)
    with pytest.raises(InvalidParameter, match="the schedule has 200 questions"):
        game_of(horizon=201, schedule=schedule)


@pytest.mark.parametrize(("delay", "most"), [(0, 1), (7, 9)])
def test_as_many_copies_begin_as_questions_are_open_at_once(delay, most):
    """And where some are, one for a question by hand."""
    schedule = Schedule(delays=Constant(delay))
    game = played(f.Delayed(f.Constant()), n.Drift(), 400, runs=range(1), schedule=schedule)
    assert len(game.forecaster.parts) == most


# ---------------------------------------------------------------- parameters


REFUSED = [
    *((lambda horizon=horizon: game_of(horizon=horizon), "1 to") for horizon in (0, -5, 10**12, 2.5, True, "many")),
    *((lambda runs=runs: game_of(runs=runs), r"runs = .*; expected a range") for runs in (4, [0, 1], None, range(0))),
    *((lambda seed=seed: game_of(seed=seed), "seed = ") for seed in (1.0, "1", None, True)),
    *((lambda until=until: game_of().advance(until), "until = ") for until in (2.5, "3", None, True, -1)),
    (lambda: game_of().advance(7), "round 7 is beyond the horizon 6"), (lambda: game_of(threads=0), "threads = 0"),
    (lambda: game_of().gammas(), "no round"), (lambda: game_of(cuts=[float("nan")]), "time = nan"),
    (lambda: game_of(cuts=[5.0]).known(since=4.0), r"time 4\.0: nothing begins or ends there"),
    (lambda: game_of(cuts=3), "cuts = 3; expected a list of times"),
    (lambda: game_of(schedule="poisson"), "schedule = 'poisson'; expected an onlinecal.schedules.Schedule"),
    (lambda: game_of(keeps=["truth"]), "truth is to be kept with the rounds; nature 'bernoulli' does not reveal it"),
    (lambda: game_of(f.Truthful()), "needs truth, which nature 'bernoulli' does not reveal"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "said"), REFUSED)
def test_parameters_that_are_refused(make, said):
    with pytest.raises(InvalidParameter, match=said):
        make()


def test_lengths_and_times_that_can_be():
    for horizon in (1, 10**9):
        check_horizon(horizon)
    for wrong in (0, 10**9 + 1, 2.0, True):
        with pytest.raises(InvalidParameter, match=r"horizon = .*; expected an integer from 1 to 10\^9$"):
            check_horizon(wrong)
    assert (check_time(-3), check_time(3, 3.0)) == (-3.0, 3.0)
    for time, least, said in ((np.inf, 0.0, "0.0 or later"), (np.nan, 0.0, "0.0 or later"), (True, 0.0, "time = True"),
                              (2.9, 3.0, "3.0 or later"), (-np.inf, -np.inf, "a finite number$")):  # fmt: skip
        with pytest.raises(InvalidParameter, match=said):
            check_time(time, least)


@given(st.integers(1, 10**9), st.integers(1, 30))
def test_checkpoints_are_geometric_and_end_at_the_horizon(horizon, per_decade):
    times = checkpoints(horizon, per_decade)
    assert times == sorted(set(times))
    assert times[-1] == horizon
    whole = {round(10 * 10 ** (i / per_decade)) for i in range(9 * per_decade)}
    assert set(times[:-1]) == {t for t in whole if t < horizon}
