"""Arrivals, delays and the clock: their laws, the order of blocks, delays by outcome, and what is refused.

Games with them beside plain Python are in tests/engine/test_game.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import schedules as s
from onlinecal.core.errors import OnlinecalError
from onlinecal.forecasters import DefensiveForecasting, Delayed, EmpiricalMean
from onlinecal.natures import Bernoulli, Drift
from onlinecal.schedules import (
    ByOutcome,
    Constant,
    EveryUnit,
    Geometric,
    Pareto,
    Poisson,
    Schedule,
    as_arrivals,
    as_delays,
)
from onlinecal.schedules.base import Arrivals, load
from tests.engine.games import came_to, game_of, played


def times(schedule, horizon, seed=0):
    clock = schedule.clock(horizon, seed)
    return np.array([clock.times(number) for number in range(1, horizon + 2)]).T


@pytest.mark.parametrize("arrivals", [EveryUnit(), Poisson(2.5), s.Bursts(7), s.Bursts(3, 0.5)], ids=str)
@pytest.mark.parametrize("delays", [Constant(), Constant(12.5), Geometric(3), Pareto()], ids=str)
def test_times_do_not_go_back_and_depend_on_the_seed_alone(arrivals, delays, seed):
    schedule = Schedule(arrivals, delays)
    asked, known = times(schedule, 3000, seed)
    assert (np.diff(asked) >= 0.0).all()
    assert (known >= asked).all()
    assert (times(schedule, 3000, seed) == (asked, known)).all()
    span = schedule.clock(3000, seed).span(1, 3000)
    assert (np.array(span) == (asked[:-1], known[:-1])).all()
    schedule.clock(3000, seed).check()


def test_times_of_schedules_without_chance():
    asked, known = times(Schedule(), 2000)
    assert (asked == np.arange(1, 2002)).all()
    assert (known == asked).all()
    assert times(Schedule(s.Bursts(3, 10.0)), 7)[0].tolist() == [10, 10, 10, 20, 20, 20, 30, 30]
    assert times(Schedule(s.Bursts(3)), 3)[0].tolist() == [3, 3, 3, 6]
    others = Schedule(delays=Constant(1)), Schedule(Poisson()), Schedule(Thirds()), Schedule(delays=Later())
    assert Schedule().immediate
    assert not any(schedule.immediate for schedule in others)


#: a schedule, and the share of gaps, or of delays, above x
LAWS = [
    (Schedule(Poisson(0.25)), lambda x: math.exp(-x / 4)),
    (Schedule(delays=Geometric(3)), lambda x: 0.75 ** (math.floor(x) + 1)),
    (Schedule(delays=Geometric(0)), lambda x: 0.0),
    (Schedule(delays=Pareto(1.5, 2, 50)), lambda x: 1.0 if x < 2 else 0.0 if x >= 50 else (2 / x) ** 1.5),
]  # fmt: skip


@pytest.mark.parametrize(("schedule", "above"), LAWS, ids=["poisson", "geometric", "none", "pareto"])
def test_laws_of_gaps_and_delays(schedule, above, seed):
    """Each share within what Hoeffding allows with probability 1e-7."""
    n = 20_000
    asked, known = times(schedule, n, seed)
    waited = known[:n] - asked[:n] if schedule.arrivals == EveryUnit() else np.diff(asked)
    reach = math.sqrt(math.log(2e7) / (2 * n))
    for x in (0.0, 1.0, 2.0 + 1e-9, 5.0, 10.0, 49.0, 50.0 + 1e-9):
        assert abs((waited > x + 1e-10).mean() - above(x)) <= reach
    if isinstance(schedule.delays, Geometric):
        assert (waited == np.round(waited)).all()
    if isinstance(schedule.delays, Pareto):
        assert 2 - 1e-9 <= waited.min() <= waited.max() <= 50 + 1e-9


def test_times_from_a_file(tmp_path):
    files = {
        "log": "asked,done\n2024-01-01,2024-01-03\n2024-01-01,\n2024-01-02 12:00,2024-01-02 12:00\n",
        "back": "asked,done\n5,6\n4,4\n", "soon": "done\nsoon\n", "early": "asked,done\n5,6\n7,6.5\n",
        "last": "asked,done\n1,\n2,\n3,3\n",
    }  # fmt: skip
    files["other"] = files["log"]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    log, other, back, soon, early = (
        str(tmp_path / name) for name in ("log", "other", "back", "soon", "early")
    )
    schedule = Schedule(s.Scheduled(log, "asked"), s.Recorded(log, "done"))
    asked, known = times(schedule, 3)
    assert (asked - asked[0]).tolist() == [0, 0, 1.5, math.inf]
    assert (known[:3] - asked[:3]).tolist() == [2, math.inf, 0]
    # A shorter game ends when its next question would be asked.
    assert times(schedule, 2)[0].tolist() == asked[:3].tolist()
    assert schedule.length == 3
    schedule.clock(3, 0).check()
    # A part of the questions has the times of its own rows.
    for rows in (slice(0, 1), slice(1, 3)):
        part = rows.start + 1, asked[rows], np.zeros(len(asked[rows]))
        assert schedule.arrivals.times(part[0], 0.0, part[2]).tolist() == asked[rows].tolist()
        assert schedule.delays.known(*part).tolist() == known[rows].tolist()
    # Results are kept under it.
    assert s.Scheduled(other, "asked").fingerprint == schedule.arrivals.fingerprint == "98034b75bc8f5ebd"
    last = str(tmp_path / "last")
    Schedule(s.Scheduled(last, "asked"), s.Recorded(last, "done")).clock(3, 0).check()
    wrong = Schedule(s.Scheduled(early, "asked"), s.Recorded(early, "done"))
    for make, said in (
        (lambda: schedule.clock(4, 0).check(), "horizon = 4, but the schedule has 3 questions"),
        (lambda: s.Scheduled(back, "asked"), "line 3: column 'asked' goes back in time"),
        (lambda: s.Recorded(back), "has no column 'resolved'"),
        (lambda: s.Recorded(soon, "done"), "line 2: column 'done' is 'soon'"),
        (
            lambda: wrong.clock(2, 0).check(),
            r"outcome of question 2 is known at time 6\.5, which is asked at 7\.0",
        ),
    ):
        with pytest.raises(OnlinecalError, match=said):
            make()


def arrive(times):
    """Arrivals of one's own at times(how many)."""
    return type("Own", (Arrivals,), {"times": lambda self, first, before, uniforms: times(len(uniforms))})()


def delayed(known):
    """Delays of one's own: outcomes are known at known(when they are asked)."""
    return type("Own", (s.Delays,), {"known": lambda self, first, asked, uniforms: known(asked)})()


def check(*parts, horizon=5):
    Schedule(*parts).clock(horizon, 0).check()


REFUSED = [
    (lambda: Poisson(0), "rate = 0; expected a number above 0"), (lambda: Poisson(math.nan), "rate = nan"),
    (lambda: Constant(-1), "delay = -1"), (lambda: Constant(math.inf), "delay = inf"),
    (lambda: Geometric(-0.5), "mean = -0.5"), (lambda: Pareto(scale=3, cap=2), "cap = 2 < scale = 3"),
    (lambda: Pareto(shape=0), "shape = 0"), (lambda: s.Bursts(0), "size = 0"), (lambda: s.Bursts(3, 0.0), "every = 0"),
    (lambda: Schedule(Constant(1)), "expected Arrivals, Delays"),
    (lambda: as_delays(True), "delay = True; expected a number, a name, or a table"),
    (lambda: as_arrivals(3), "arrivals = 3; expected a name"),
    (lambda: as_delays({"name": "constant", "length": 3}), "delay 'constant' has no parameter 'length'"),
    (lambda: as_delays("geometrik"), "did you mean 'geometric'"),
    (lambda: ByOutcome(no=ByOutcome()), "no = .*expected delays that do not depend on the outcome, or a number"),
    (lambda: ByOutcome(yes="soon"), "yes = 'soon'"), (lambda: ByOutcome(no=-1), "no = -1"),
    *((lambda made=made: made(math.nextafter(1e15, math.inf)), r"expected a number in \[0, 1e\+15\]") for made in (
        lambda most: ByOutcome(no=most), lambda most: ByOutcome(yes=most), lambda most: Pareto(cap=most),
        lambda most: Pareto(scale=most))),
    (lambda: as_delays({"name": "by_outcome", "maybe": 3}), "has no parameter 'maybe'"),
    (lambda: oc.play("empirical_mean", "drift", horizon=9, delays=ByOutcome(50, 50)), "no outcome becomes known"),
    (lambda: check(type("Bare", (Arrivals,), {})()), r"Bare has no method times\(first, before, uniforms\)"),
    (lambda: check(EveryUnit(), type("Bare", (s.Delays,), {})()), "Bare has no method known"),
    (lambda: list(map(Schedule().clock(9, 0).times, (3, 1))), "question 1 was asked before; expected them in"),
    (lambda: check(arrive(lambda n: -1.0 - np.arange(n))),
     r"question 2 at time -2\.0, after -1\.0; expected finite times that do not go back"),
    (lambda: check(arrive(lambda n: np.full(n, np.nan))), "question 1 at time nan; expected finite times"),
    (lambda: times(Schedule(arrive(lambda n: np.arange(float(n)))), 1100),  # as each block begins at 0
     r"question 1025 at time 0\.0, after 1023\.0; expected finite times"),
    (lambda: check(arrive(lambda n: Poisson(0))), "^rate = 0; expected"),
    (lambda: check(arrive(lambda n: ["soon"] * n)), "expected 6 times"),
    (lambda: check(arrive(lambda n: {}["day"])), "own failed: KeyError: 'day'"),
    *((lambda when=when: check(EveryUnit(), delayed(lambda asked: asked - (asked >= when))),
       rf"the outcome of question {when} is known at time {when - 1}\.0, which is asked at {when}\.0")
      for when in (1, 3)),
    *((lambda a=a, d=d, t=t: check(a, d, horizon=t), f"no outcome becomes known before question {t + 1} would be asked")
      for a, d, t in ((EveryUnit(), Constant(50), 50), (Poisson(1e-3), Constant(1e9), 100))),
]  # fmt: skip


@pytest.mark.parametrize(("make", "said"), REFUSED)
def test_what_is_refused(make, said):
    with pytest.raises(OnlinecalError, match=said):
        make()


@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_one_outcome_that_is_known_in_time_is_enough(horizon):
    check(EveryUnit(), Constant(horizon - 0.5), horizon=horizon)
    with pytest.raises(OnlinecalError, match="no outcome becomes known"):
        check(EveryUnit(), Constant(horizon), horizon=horizon)


def test_longest_delays_are_taken():
    assert ByOutcome(1e15, 1e15).yes == 1e15
    assert Pareto(scale=1e15, cap=1e15).scale == 1e15


class InPlace(s.Delays):
    def known(self, first, asked, uniforms):
        asked += 5.0  # as numpy is often written
        uniforms[...] = 0.0
        return asked


@dataclass(frozen=True)
class Counting(Arrivals):
    """Holds what it has given: times of a process that cannot be asked twice."""

    given: list = field(default_factory=list, compare=False)

    def times(self, first, before, uniforms):
        self.given.extend(uniforms)
        return before + np.cumsum(np.full(len(uniforms), float(len(self.given))))


class Thirds(EveryUnit):
    def times(self, first, before, uniforms):
        return 3.0 * super().times(first, before, uniforms)


class Later(Constant):
    def known(self, first, asked, uniforms):
        return asked + 7.0


def test_a_plug_in_may_work_on_its_arrays_and_hold_state():
    asked, known = times(Schedule(delays=InPlace()), 2000)
    assert (asked == np.arange(1, 2002)).all()
    assert (known == asked + 5).all()
    schedule = Schedule(Counting())
    assert (times(schedule, 3000) == times(schedule, 3000)).all()
    assert not schedule.arrivals.given
    assert times(Schedule(Thirds()), 3)[0].tolist() == [3, 6, 9, 12]


def test_labels():
    delays = [10, 10.0, 10.0000001, 1e6, 1e6 + 1, 0.1, 1 / 3]
    labels = [Schedule(delays=Constant(delay)).label for delay in delays]
    assert (labels[:2], labels[3], labels[5]) == (["delay 10", "delay 10"], "delay 1e+06", "delay 0.1")
    assert len(set(labels)) == len(delays) - 1
    assert Schedule(Thirds(), Later()).label == "thirds, later delay"


@pytest.mark.parametrize("horizon", [1, 2, 10, 1023, 1024, 1025])
def test_load_counts_open_questions(horizon, seed):
    assert load(Schedule(), horizon, seed) == (1, horizon)
    if horizon > 3:
        assert load(Schedule(delays=Constant(3)), horizon, seed) == (4, horizon - 3)
        assert load(Schedule(delays=Constant(2.5)), horizon, seed) == (3, horizon - 2)
    schedule = Schedule(Poisson(), Pareto())
    asked, known = times(schedule, horizon, seed)
    most = max(
        int(((asked[: i + 1] <= asked[i]) & (known[: i + 1] >= asked[i])).sum()) for i in range(horizon)
    )
    assert load(schedule, horizon, seed) == (most, int((known[:horizon] < asked[horizon]).sum()))


# ---------------------------------------------------------------- delays by outcome


BY_OUTCOME = [
    ByOutcome(), ByOutcome(Geometric(6), 3), ByOutcome(Constant(1e15), 2), ByOutcome(Pareto(1.2), Geometric(2)),
]  # fmt: skip


@pytest.mark.parametrize("delays", BY_OUTCOME, ids=str)
def test_pauses_change_nothing_for_a_forecaster_of_copies(delays, seed):
    """It begins copies beforehand, for the most questions that may be open until the next pause."""
    horizon, schedule, found = 300, Schedule(Poisson(2), delays), []
    for stops in ([horizon], range(1, horizon, 3), range(50, horizon, 50)):
        game = game_of(Delayed(EmpiricalMean()), Drift(), horizon, range(1), seed=seed, schedule=schedule)
        for until in (*stops, horizon):
            game.advance(until)
        found.append(came_to(game))
    assert found[0] == found[1] == found[2]


def test_copies_certify_the_rounds_of_each_run(seed):
    """Runs have different orders of events, and so other copies."""
    schedule = Schedule(delays=ByOutcome(1, 20))

    def certified(runs):
        who = Delayed(DefensiveForecasting())
        game = game_of(who, Bernoulli(0.4), 200, runs, seed=seed, schedule=schedule)
        game.advance(60)
        return game.certificates()["kernel_ce_certificate"].tolist()

    assert certified(range(3)) == [each for run in range(3) for each in certified(range(run, run + 1))]


@pytest.mark.parametrize("delays", BY_OUTCOME, ids=str)
def test_load_bounds_what_is_open_and_known(delays, seed):
    horizon, schedule = 700, Schedule(Poisson(1.5), delays)
    most, resolved = load(schedule, horizon, seed)
    for q in (0.0, 0.3, 1.0):
        game = game_of(nature=Bernoulli(q), horizon=horizon, runs=range(1), seed=seed, schedule=schedule)
        for until in (*range(1, horizon + 1, 7), horizon):
            game.advance(until)
            assert game.asked - game.resolved <= most
        assert game.resolved >= resolved


class Doubled(s.Delays):
    by_outcome = True

    def known(self, first, asked, uniforms, outcome):
        return asked + 1.0 + outcome


def test_delays_of_ones_own():
    own, shipped = (
        played(horizon=99, runs=range(1), schedule=Schedule(delays=d), keeps=[])
        for d in (Doubled(), ByOutcome(1.0, 2.0))
    )
    assert came_to(own) == came_to(shipped)
