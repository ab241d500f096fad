"""Arrivals, delays and the clock: their laws, the order of blocks, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from onlinecal.core.errors import OnlinecalError
from onlinecal.schedules import (
    ARRIVALS,
    DELAYS,
    Bursts,
    Constant,
    Delays,
    EveryUnit,
    Geometric,
    Pareto,
    Poisson,
    Recorded,
    Schedule,
    Scheduled,
    as_arrivals,
    as_delays,
)  # fmt: skip
from onlinecal.schedules.base import Arrivals, load


def times(schedule, horizon, seed=0):
    clock = schedule.clock(horizon, seed)
    return np.array([clock.times(number) for number in range(1, horizon + 2)]).T


@pytest.mark.parametrize("arrivals", [EveryUnit(), Poisson(2.5), Bursts(7), Bursts(3, 0.5)], ids=str)
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
    assert times(Schedule(Bursts(3, 10.0)), 7)[0].tolist() == [10, 10, 10, 20, 20, 20, 30, 30]
    assert times(Schedule(Bursts(3)), 3)[0].tolist() == [3, 3, 3, 6]
    immediate = (
        Schedule(),
        Schedule(delays=Constant(1)),
        Schedule(Poisson()),
        Schedule(Thirds()),
        Schedule(delays=Later()),
    )
    assert [schedule.immediate for schedule in immediate] == [True, False, False, False, False]


def test_gaps_of_a_poisson_process_are_exponential(seed):
    """Kolmogorov and Smirnov: above 2.7/√n with probability at most 2 exp(−2·2.7²) = 9.4e-7."""
    n = 20_000
    asked, _ = times(Schedule(Poisson(4)), n, seed)
    law = -np.expm1(-np.sort(4 * np.diff(asked, prepend=0.0)[:n]))
    far = max((np.arange(1, n + 1) / n - law).max(), (law - np.arange(n) / n).max())
    assert far <= 2.7 / math.sqrt(n)


LAWS = [
    (Geometric(3), lambda k: 0.75 ** (k + 1)), (Geometric(0), lambda k: 0.0),
    (Pareto(1.5, 2, 50), lambda x: 1.0 if x < 2 else 0.0 if x >= 50 else (2 / x) ** 1.5),
]  # fmt: skip


@pytest.mark.parametrize(("delays", "above"), LAWS, ids=["geometric", "none", "pareto"])
def test_laws_of_delays(delays, above, seed):
    """Each share within what Hoeffding allows with probability 1e-7."""
    n = 20_000
    asked, known = times(Schedule(delays=delays), n, seed)
    waited = (known - asked)[:n]
    reach = math.sqrt(math.log(2e7) / (2 * n))
    for x in (0.0, 1.0, 2.0, 5.0, 10.0, 49.0, 50.0):
        assert abs((waited > x + 1e-9).mean() - above(x + 1e-9 if isinstance(delays, Pareto) else x)) <= reach
    if isinstance(delays, Geometric):
        assert (waited == np.round(waited)).all()
    else:
        assert 2 - 1e-9 <= waited.min() <= waited.max() <= 50 + 1e-9


def test_times_from_a_file(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("asked,done\n2024-01-01,2024-01-03\n2024-01-01,\n2024-01-02 12:00,2024-01-02 12:00\n")
    schedule = Schedule(Scheduled(str(file), "asked"), Recorded(str(file), "done"))
    asked, known = times(schedule, 3)
    assert (asked - asked[0]).tolist() == [0, 0, 1.5, math.inf]
    assert (known[:3] - asked[:3]).tolist() == [2, math.inf, 0]
    assert schedule.length == 3
    schedule.clock(3, 0).check()
    (tmp_path / "other.csv").write_bytes(file.read_bytes())
    assert Scheduled(str(tmp_path / "other.csv"), "asked").fingerprint == schedule.arrivals.fingerprint
    back, soon, early = (tmp_path / f"{name}.csv" for name in ("back", "soon", "early"))
    back.write_text("asked,done\n5,6\n4,4\n")
    soon.write_text("done\nsoon\n")
    early.write_text("asked,done\n5,6\n7,6.5\n")
    for make, said in (
        (lambda: schedule.clock(4, 0).check(), "horizon = 4, but the schedule has 3 questions"),
        (lambda: Scheduled(str(back), "asked"), "line 3: column 'asked' goes back in time"),
        (lambda: Recorded(str(back)), "has no column 'resolved'"),
        (lambda: Recorded(str(soon), "done"), "line 2: column 'done' is 'soon'"),
        (lambda: Schedule(Scheduled(str(early), "asked"), Recorded(str(early), "done")).clock(2, 0).check(),
         r"the outcome of question 2 is known at time 6\.5, which is asked at 7\.0"),
    ):  # fmt: skip
        with pytest.raises(OnlinecalError, match=said):
            make()


def arrive(times):
    """Arrivals of one's own at times(how many)."""
    return type("Own", (Arrivals,), {"times": lambda self, first, before, uniforms: times(len(uniforms))})()


BEFORE = type("Before", (Delays,), {"known": lambda self, first, asked, uniforms: asked - 1})()


def check(*parts, horizon=5):
    Schedule(*parts).clock(horizon, 0).check()


REFUSED = [
    (lambda: Poisson(0), "rate = 0; expected a number above 0"), (lambda: Poisson(math.nan), "rate = nan"),
    (lambda: Constant(-1), "delay = -1"), (lambda: Constant(math.inf), "delay = inf"),
    (lambda: Geometric(-0.5), "mean = -0.5"), (lambda: Pareto(scale=3, cap=2), "cap = 2 < scale = 3"),
    (lambda: Pareto(shape=0), "shape = 0"), (lambda: Bursts(0), "size = 0"), (lambda: Bursts(3, 0.0), r"every = 0"),
    (lambda: Schedule(Constant(1)), "expected Arrivals, Delays"),
    (lambda: as_delays(True), "delay = True; expected a number, a name, or a table"),
    (lambda: as_arrivals(3), "arrivals = 3; expected a name"),
    (lambda: as_delays({"name": "constant", "length": 3}), "delay 'constant' has no parameter 'length'"),
    (lambda: as_delays("geometrik"), "did you mean 'geometric'"),
    (lambda: check(arrive(lambda n: -np.arange(float(n)))),
     r"question 2 at time -1\.0, after -?0\.0; expected finite times that do not go back"),
    (lambda: check(arrive(lambda n: ["soon"] * n)), "expected 6 times"),
    (lambda: check(arrive(lambda n: {}["day"])), "own failed: KeyError: 'day'"),
    (lambda: check(EveryUnit(), BEFORE), r"the outcome of question 1 is known at time 0\.0, which is asked at 1\.0"),
    *((lambda a=a, d=d, t=t: check(a, d, horizon=t), f"no outcome becomes known before question {t + 1} would be asked")
      for a, d, t in ((EveryUnit(), Constant(50), 50), (Poisson(1e-3), Constant(1e9), 100))),
]  # fmt: skip


@pytest.mark.parametrize(("make", "said"), REFUSED)
def test_what_is_refused(make, said):
    with pytest.raises(OnlinecalError, match=said):
        make()
    check(EveryUnit(), Constant(49), horizon=50)  # just known in time


class InPlace(Delays):
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


def test_names_and_labels():
    assert set(ARRIVALS) == {"every_unit", "poisson", "bursts", "scheduled"}
    assert set(DELAYS) == {"by_outcome", "constant", "geometric", "pareto", "recorded"}
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
