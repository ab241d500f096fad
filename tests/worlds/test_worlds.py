"""Worlds against simulations without simpy and formulas, and what becomes of worlds that go wrong."""

import copy
import heapq
import json
import math
import pickle
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from scipy.stats import binomtest

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal import play
from onlinecal.checks.conformance import conformance
from onlinecal.checks.guarantees import bounds_in_world
from onlinecal.core.errors import InvalidData, InvalidForecast, InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.natures import Bernoulli
from onlinecal.worlds import WORLDS, Beds, Machines, Parts, Queue, World, as_world, observe
from onlinecal.worlds.run import VERSION, Simulation
from tests.command_line import begun, onlinecal
from tests.marks import some_fast

ALL = [
    world(reacts=how) for world, hows in (
        (Queue, ("none", "leave", "rush")), (Beds, ("none", "act", "rush")),
        (Machines, ("none", "act", "rush")), (Parts, ("none", "act", "rush")),
    ) for how in hows
]  # fmt: skip


def simulated(forecaster, world, until, runs=2, horizon=None, **options):
    """Runs of a world, played to this question, which is the last by default."""
    runs = runs if isinstance(runs, range) else range(runs)
    simulation = Simulation(forecaster, world, horizon=horizon or until, runs=runs, **options)
    simulation.advance(until)
    return simulation


def noted(world, horizon, says=0.5, run=0):
    """The questions (number, time, base) and outcomes (number, outcome) of a run, as the forecaster sees them."""
    asked, told = [], []

    class Notes:
        needs = frozenset({"base"})

        def forecast(self, round):
            asked.append((round.number, round.time, round.context["base"]))
            return says(round.number) if callable(says) else says

        def update(self, forecast, outcome, round):
            told.append((round.number, outcome))

    simulated(f.as_forecaster(Notes), world, horizon, range(run, run + 1))
    return asked, told


def uniforms(world, horizon, *part):
    """The randomness of the first run of a world, or of a part of it, uniform by uniform."""
    keys = Stream(0, ("nature", strategy_key(world), f"T={horizon}", *part), range(1)).keys[0]
    return np.random.Generator(np.random.Philox(key=keys)).random


@pytest.mark.parametrize("servers", [1, 3])
def test_waits_are_those_of_the_recursion(servers):
    # Lindley 1952 for one server, Kiefer and Wolfowitz 1955 for several: the work that each server has left.
    world, horizon = Queue(servers=servers, load=0.8, patience=1.0), 3000
    asked, told = noted(world, horizon)
    u, left, clock, waits, times = uniforms(world, horizon), np.zeros(servers), 0.0, [], []
    for _ in range(horizon):
        gap, service, _ = u(), u(), u()
        gap = -math.log1p(-gap) / (servers * 0.8)
        left = np.sort(np.maximum(left - gap, 0.0))
        clock += gap
        times.append(clock)
        waits.append(left[0])
        left[0] += -math.log1p(-service)
    assert [t for _, t, _ in asked] == pytest.approx(times, rel=1e-12)
    # Outcomes in the order in which they become known; the last are open.
    known = sorted(
        (clock + min(wait, 1.0), n) for n, (clock, wait) in enumerate(zip(times, waits, strict=True), 1)
    )
    assert [n for n, _ in told] == [n for _, n in known[: len(told)]]
    assert all(outcome == (waits[n - 1] > 1.0) for n, outcome in told)
    assert len(told) > horizon - 50


@pytest.mark.parametrize("world", [Queue(), Beds(), Machines()], ids=str)
def test_formulas_are_right_where_nobody_reacts(world):
    # Questions far apart; bins of the formula, each by a binomial test: false failure 1e-6 a bin by the union bound.
    pairs = []
    for run in range(5):
        asked, told = noted(world, 4000, run=run)
        base = {n: b for n, _, b in asked}
        pairs += [(base[n], y) for n, y in told if n % 23 == 0]
    p, y = np.array(pairs).T
    for low in np.arange(0.0, 1.0, 0.2):
        mine = (low <= p) & (p < low + 0.2)
        if mine.sum() > 50:
            # Of different probabilities the number of ones varies less than of one, so the test is on the safe side.
            assert binomtest(int(y[mine].sum()), int(mine.sum()), float(p[mine].mean())).pvalue > 1e-6
    assert binomtest(int(y.sum()), len(y), min(1.0, p.mean() + 0.13)).pvalue < 1e-6  # a control


def test_beds_machines_and_parts_are_those_of_a_simulation_by_hand():
    horizon = 400
    # Beds: patients in the order of arrival take the bed that is free first.
    world = Beds(beds=3)
    asked, told = noted(world, horizon)
    u, free, clock, rows = uniforms(world, horizon), [0.0] * 3, 0.0, []
    for _ in range(horizon):
        gap, severity, stay, _ = u(), u(), u(), u()
        clock += -math.log1p(-gap) / (0.9 * 3 / 3.0)
        begin = max(clock, heapq.heappop(free))
        days = -math.log1p(-stay) * (1.0 + 4.0 * severity)
        heapq.heappush(free, begin + days)
        rows.append((begin, days, severity))
    assert [t for _, t, _ in asked] == pytest.approx([begin for begin, *_ in rows], rel=1e-9)
    assert [b for *_, b in asked] == pytest.approx([-math.expm1(-1.0 / (1.0 + 4.0 * s)) for *_, s in rows])
    assert all(outcome == (rows[n - 1][1] <= 1.0) for n, outcome in told)
    # Machines: each has lives of its own; they are looked at in turn.
    world = Machines(machines=4, life=2.0)
    asked, told = noted(world, horizon)
    outcomes = {}
    for i in range(4):
        lives, age = uniforms(world, horizon, f"lives {i}"), 0.0
        end = 2.0 * (-math.log1p(-lives())) ** 0.5
        for n in range(i + 1, horizon + 1, 4):
            outcomes[n] = end - age < 1.0
            age, end = (0.0, 2.0 * (-math.log1p(-lives())) ** 0.5) if outcomes[n] else (age + 1.0, end)
    assert [n for n, _ in sorted(told)] == list(range(1, len(told) + 1)) or len(told) > horizon - 5
    assert all(outcome == outcomes[n] for n, outcome in told)
    # Parts: demands and deliveries in the order of time.
    world = Parts()
    _, told = noted(world, horizon)
    demand, orders = uniforms(world, horizon), uniforms(world, horizon, "orders")
    clock, stock, due, found, n = 0.0, 12, [], {}, 0
    while n < horizon + 20:
        clock += -math.log1p(-demand())
        while due and due[0][0] <= clock:
            _, order = heapq.heappop(due)
            stock += 4
            found.setdefault(order, 0)
        if stock:
            stock -= 1
        else:
            found |= {order: 1 for _, order in due if order not in found}
        while stock + 4 * len(due) <= 8:
            n += 1
            lead, _ = orders(), orders()
            heapq.heappush(due, (clock + (6.0 - 6.0 * math.log1p(-lead)) / 2.0, n))
    assert len(told) > horizon - 20
    assert all(outcome == found[k] for k, outcome in told)


# ---------------------------------------------------------------- reactions


@pytest.mark.parametrize(
    "world",
    [Queue(patience=2.0, reacts="rush"), Beds(reacts="rush"), Parts(reacts="rush"), Parts(reacts="act")],
    ids=str,
)
def test_a_forecast_changes_the_outcome_of_an_earlier_question(world):
    # Two forecasters differ in forecast k alone; for some k an outcome of an earlier question that is open differs.
    for k in range(5, 200):
        (_, one), (_, two) = (
            noted(world, k + 20, lambda n, k=k, p=p: p if n == k else n * 0.618 % 1.0 / 2.0)
            for p in (0.0, 1.0)
        )
        mine, other = dict(one), dict(two)
        if any(mine[n] != other[n] for n in range(1, k) if n in mine and n in other):
            return
    pytest.fail("no forecast changed an earlier outcome")


DEFEATING = [Queue(reacts="leave"), Beds(reacts="act"), Machines(reacts="act"), Parts(reacts="act")]


@pytest.mark.parametrize("world", DEFEATING, ids=str)
def test_high_forecasts_fail_or_come_true(world):
    def share(reacts, p):
        simulation = simulated(f.Constant(p), replace(world, reacts=reacts), 1000)
        return np.array([gamma.base_rate for gamma in simulation.gammas()])

    # The same customers: the shares of a run differ by the forecasts alone.
    assert share(world.reacts, 0.0).mean() > share(world.reacts, 1.0).mean() + 0.02
    np.testing.assert_array_equal(share("none", 0.0), share("none", 1.0))
    if isinstance(world, Machines | Parts):  # in the others those who rush go before others, and not all can
        assert share("rush", 0.0).mean() + 0.02 < share("rush", 1.0).mean()


# ---------------------------------------------------------------- the same numbers


#: of each world the resolved ones of 1000 questions, outcomes 1, Σ forecasts and Σ times of the outcomes
ON_RECORD = [
    (999, 696, 685.054085, 189553.4961), (1000, 107, 217.998166, 192785.3722), (999, 903, 920.062108, 172564.5761),
    (998, 315, 321.41123, 150537.6213), (998, 470, 318.668481, 135971.0225), (995, 420, 319.677983, 136245.0254),
    (981, 199, 191.149139, 24916.467), (981, 139, 164.361026, 24948.4019), (982, 204, 189.287794, 24957.7027),
    (1000, 378, 606.731095, 2182449.9676), (1000, 136, 498.920247, 2081265.9497), (999, 718, 767.478102, 1695253.4409),
]  # fmt: skip


@pytest.mark.parametrize(("world", "numbers"), [*zip(ALL, ON_RECORD, strict=True)], ids=str)
def test_numbers_are_those_on_record(world, numbers):
    """Of the formulas too, which are the forecasts. With others `onlinecal.worlds.run.VERSION` is raised."""
    assert VERSION == 2
    rounds = observe(f.Unchanged(), world, horizon=1000)
    found = len(rounds.outcomes), rounds.outcomes.sum(), rounds.forecasts.sum(), rounds.known.sum()
    assert found == pytest.approx(numbers, rel=1e-8)


def levels(gamma):
    return gamma.predictions.tolist(), gamma.counts.tolist(), gamma.positives.tolist()


def state(simulation):
    proved = {name: each.tolist() for name, each in simulation.certificates().items()}
    return [levels(gamma) for gamma in simulation.known()], simulation.asked, simulation.resolved, proved


@pytest.mark.parametrize("world", some_fast(3, ALL), ids=str)
def test_pauses_and_batches_do_not_matter(world):
    delayed = f.Delayed(f.DefensiveForecasting())
    for forecaster in (f.ForecastHedging(), delayed, f.as_forecaster(Mean)):
        whole = simulated(forecaster, world, 150, 3, horizon=300, seed=5)
        other = simulated(forecaster, world, 1, 3, horizon=300, seed=5)
        for until in (7, 150):
            other.advance(until)
        assert state(other) == state(whole)
        for simulation in (whole, other):
            simulation.advance(300)
        assert state(whole) == state(other)
        alone = simulated(forecaster, world, 300, range(2, 3), seed=5)
        assert state(alone)[0] == state(whole)[0][2:]
        assert state(alone)[3] == {name: totals[2:] for name, totals in state(whole)[3].items()}


class Mean:
    """The mean of the outcomes, with one of each before."""

    def __init__(self):
        self.ones, self.n = 1, 2

    def forecast(self):
        return self.ones / self.n

    def update(self, forecast, outcome):
        self.ones, self.n = self.ones + outcome, self.n + 1


class Letter(World):
    """Letters that are answered in any order.

    `events` has what happened: when, to which question, and the answer.
    """

    key, events = "letter", []

    def run(self, env, market):
        while True:
            yield env.timeout(market.rng.exponential())
            question = market.ask()
            self.events.append((env.now, question.number, None))
            env.process(self.answer(env, market, question, market.rng.exponential(5.0)))

    def answer(self, env, market, question, delay):
        yield env.timeout(delay)
        outcome = int(delay > 10.0 * question.forecast)
        market.resolve(question, outcome)
        self.events.append((env.now, question.number, outcome))


@pytest.mark.parametrize(
    "forecaster",
    [f.ForecastHedging(), f.DefensiveForecasting(), f.Delayed(f.ForecastHedging()), f.as_forecaster(Mean)],
    ids=str,
)
def test_a_world_is_a_game_by_hand(forecaster):
    Letter.events.clear()
    simulation = simulated(forecaster, Letter(), 100, 1, horizon=300)
    game, open = Game(forecaster, Bernoulli(), horizon=300, runs=range(1)), {}

    def replay():
        """Plays what happened since, up to the last question; the world may be some events ahead."""
        while Letter.events and game.asked <= simulation.asked:
            time, number, outcome = Letter.events[0]
            if outcome is None and game.asked == simulation.asked:
                return
            Letter.events.pop(0)
            if outcome is None:
                open[number] = game.ask(time)
            else:
                game.resolve(open.pop(number), time, outcome)

    for until in (100, 101, 300):
        simulation.advance(until)
        replay()
        assert [levels(gamma) for gamma in game.known()] == state(simulation)[0]
        assert game.resolved == simulation.resolved > 60
        assert game.certificates() == simulation.certificates()


def test_a_simulation_beyond_memory_is_refused_and_none_is_pickled(monkeypatch):
    """Half of what is free has room for the 8 bytes of each question of four runs, and not of five."""
    monkeypatch.setattr("onlinecal.engine.memory.free_memory", lambda: 70_000.0)
    simulation = Simulation(f.EmpiricalMean(), Queue(), horizon=1000, runs=range(4))
    Simulation(f.ForecastHedging(10), Queue(), horizon=1000, runs=range(5))
    with pytest.raises(InvalidParameter, match=r"5 run\(s\) of 1000 rounds .*; expected fewer runs"):
        Simulation(f.EmpiricalMean(), Queue(), horizon=1000, runs=range(5))
    for kept in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="expected it to be played again"):
            kept(simulation)


# ---------------------------------------------------------------- a user's own world


class Bakery:
    """Will the bread last until the next batch? Two stalls."""

    reveals = frozenset({"bread", "stream"})
    streams = ("rolls", "cakes")

    def run(self, env, market):
        for stall in (0, 1):
            env.process(self.stall(env, market, stall, market.generator(f"stall {stall}")))
        yield env.timeout(0)

    def stall(self, env, market, stall, rng):
        while True:
            bread = int(rng.poisson(5))
            question = market.ask(bread=bread, stream=stall)
            market.deadline(question, 1.0, 1)
            yield env.timeout(rng.gamma(bread + 1) / 4)
            if not question.resolved:
                market.resolve(question, 0)
            yield env.timeout(max(0.0, question.time + 1.0 - env.now))


def test_a_world_of_ones_own_has_streams_and_cuts():
    cuts, keeps = [50.0, 120.0], ["bread", "stream"]
    simulation = simulated(f.ForecastHedging(), as_world(Bakery), 600, cuts=cuts, keeps=keeps)
    for place in range(2):
        whole, rolls, cakes = (simulation.gamma(place, stream) for stream in (None, 0, 1))
        rounds = simulation.transcripts.of(place)
        assert whole.weight == rolls.weight + cakes.weight == len(rounds.numbers) >= simulation.resolved
        assert levels(JointDistribution.from_samples(rounds.forecasts, rounds.outcomes)) == levels(whole)
        between = simulation.gamma(place, None, 50.0, 120.0)
        mine = (rounds.asked >= 50.0) & (rounds.asked < 120.0)
        gamma = JointDistribution.from_samples(rounds.forecasts[mine], rounds.outcomes[mine])
        assert levels(gamma) == levels(between)
        assert set(rounds.context["stream"]) == {0, 1}
        assert rounds.context["bread"].mean() == pytest.approx(5.0, abs=1.0)
        assert (rounds.known >= rounds.asked).all()
        # Streams alone, and cuts alone.
        streams = simulated(f.ForecastHedging(), as_world(Bakery), 600)
        assert levels(streams.gamma(place, 1)) == levels(cakes)
        stretches = simulated(f.ForecastHedging(), Queue(), 600, cuts=cuts)
        parts = [(-math.inf, 50.0), (50.0, 120.0), (120.0, math.inf)]
        assert (
            sum(stretches.gamma(place, None, *ends).weight for ends in parts) == stretches.gamma(place).weight
        )


class Odd:
    """A world with a fault of choice."""

    reveals = frozenset({"x"})

    def __init__(self, fault="none"):
        self.fault = fault

    def run(self, env, market):
        first = market.ask(x=1.0)
        for k in range(50):
            yield env.timeout(1.0)
            kind, value = "y" if self.fault == "kind" else "x", math.nan if self.fault == "nan" else 0.5
            question = market.ask(**{kind: value})
            if k == 20:
                match self.fault:
                    case "raises":
                        raise RuntimeError("the roof fell in")
                    case "ends":
                        return
                    case "silent":
                        while True:
                            yield env.timeout(0.0)
                    case "twice":
                        market.resolve(question, 1)
                    case "foreign":
                        market.resolve("question 3", 1)
                    case "outcome":
                        market.resolve(question, 0.5)
                    case "callback":
                        market.deadline(question, 0.5, 2)
                        yield env.timeout(1.0)
                    case "asks":
                        yield env.timeout(math.nan)
                        market.ask(x=1.0)
                    case "deadline":
                        market.deadline(question, -0.5, 1)
                    case "late":
                        yield env.timeout(math.nan)
                    case "json":
                        json.loads("{bad")
                    case "swallows":
                        with suppress(InvalidData):
                            market.ask(z=1)
                    case "another":
                        market.resolve(observed(), 1)
                    case "part":
                        env.process(self.part(env))
            if self.fault != "never":
                market.resolve(question, k % 2)
        market.resolve(first, 1)

    def part(self, env):
        yield env.timeout(0.5)
        raise RuntimeError("the wall fell in")


def observed():
    """An open question of another simulation."""
    found = []

    class Asks:
        def run(self, env, market):
            found.append(market.ask())
            market.resolve(market.ask(), 1)
            yield env.timeout(1.0)

    simulated(f.Constant(), as_world(Asks), 2, 1)
    return found[0]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("raises", "failed in round 22, run 3: RuntimeError: the roof fell in"),
        ("ends", "ended after 22 of 40 questions"), ("silent", "without a question after 22 of 40"),
        ("twice", "resolved question 22, asked at 21, which is resolved"), ("foreign", "none of its own"),
        ("outcome", "with 0.5 at 21.0; expected 0 or 1"), ("kind", r"gave the context \['y'\] with question 2"),
        ("nan", "gave x = nan with question 2"), ("swallows", r"gave the context \['z'\]"),
        ("never", "resolved none of 40 questions"), ("callback", "with 2 at 21.5; expected 0 or 1"),
        ("late", "with 0 at nan"), ("asks", "asked question 23 at the time nan"),
        ("deadline", r"gave question 22, asked at 21 the deadline -0\.5"),
        ("json", "JSONDecodeError.*test_worlds.py"), ("part", r"RuntimeError: the wall fell in \(.*test_worlds.py"),
        ("another", "resolved question 1, asked at 0, which is none of its own"),
    ],
)  # fmt: skip
def test_a_world_that_goes_wrong_is_named(fault, words, monkeypatch):
    monkeypatch.setattr("onlinecal.worlds.run.PATIENCE", 1000)
    simulation = Simulation(f.EmpiricalMean(), as_world(Odd, {"fault": fault}), horizon=40, runs=range(3, 4))
    with pytest.raises((InvalidData, InvalidForecast), match=words) as first:
        simulation.advance(40)
    with pytest.raises(InvalidForecast) as again:
        simulation.advance(40)
    assert str(again.value) == str(first.value)
    with pytest.raises((InvalidData, InvalidForecast), match=words.replace("run 3", "run 0")):
        oc.play(f.EmpiricalMean(), as_world(Odd, {"fault": fault}), horizon=40, runs=1)


@pytest.mark.parametrize(("events", "asks"), [(1000, True), (1001, False)])
def test_a_world_may_take_a_thousand_events_to_a_question(events, asks, monkeypatch):
    """The last of them asks."""
    monkeypatch.setattr("onlinecal.worlds.run.PATIENCE", 1000)

    class Slow:
        def run(self, env, market):
            market.resolve(market.ask(), 1)
            for _ in range(events):
                yield env.timeout(1.0)
            market.ask()

    if asks:
        assert simulated(f.Constant(), as_world(Slow), 2, 1).asked == 2
    else:
        with pytest.raises(InvalidData, match="went on for 1,000 events without a question after 1 of 2"):
            simulated(f.Constant(), as_world(Slow), 2, 1)


def test_a_deadline_may_be_now():
    """Without patience the outcome is 1 for all who find no free server."""
    rounds = observe(f.Unchanged(), Queue(patience=0.0), horizon=200)
    assert set(rounds.context["base"]) == {0.0, 1.0}
    np.testing.assert_array_equal(rounds.outcomes, rounds.context["base"])


def test_a_part_of_a_world_that_asks_for_its_randomness_again_goes_on_in_it():
    drawn = []

    class Draws:
        def run(self, env, market):
            assert market.generator() is market.rng
            while True:
                drawn.append([market.generator(name).random() for name in ("a", "b", "a")])
                market.resolve(market.ask(), 1)
                yield env.timeout(1.0)

    simulated(f.EmpiricalMean(), as_world(Draws), 9, 1)
    assert len({u for row in drawn for u in row}) == 3 * len(drawn) > 20


class Fails:
    """A forecaster that states no probability in round 7, or fails when it is told of it."""

    def __init__(self, says=0.5):
        self.says, self.n = says, 0

    def forecast(self):
        self.n += 1
        return self.says if self.n == 7 else 0.5

    def update(self, forecast, outcome, round):
        if round.number == 7:
            raise KeyError("lost")


@pytest.mark.parametrize(("says", "words"), [(1.5, "1.5"), (0.5, "KeyError")])
def test_a_forecaster_that_fails_is_named_with_round_and_run(says, words):
    with pytest.raises(InvalidForecast, match=r"forecaster 'Fails' .*round 7, run 0") as told:
        simulated(f.as_forecaster(Fails, {"says": says}), Queue(), 40, 1)
    assert words in str(told.value)


class Third:
    """Asks of a stream that it does not have."""

    reveals, streams = frozenset({"stream"}), ("a", "b")

    def run(self, env, market):
        market.ask(stream=2)
        yield env.timeout(1.0)


class Crowd:
    open_at_once = 1

    def run(self, env, market):
        for k in range(10):
            market.deadline(market.ask(), 1.5, k % 2)
            yield env.timeout(1.0)


def declaring(**facts):
    return as_world(type("Declaring", (Crowd,), facts))


REFUSED = [
    (lambda: Queue(reacts="act"), "expected one of 'none', 'leave', 'rush'"),
    (lambda: simulated(f.Constant(), as_world(type("Deaf", (), {"run": lambda *_: None})), 9), "returned None"),
    (lambda: as_world(Mean), "expected a World, or a class with run"),
    (lambda: simulated(f.Calibeating(), as_world(Bakery), 9), "needs base"),
    (lambda: simulated(f.Constant(), Queue(), 10, horizon=9), "beyond the horizon"),
    (lambda: Queue().start(9, None), "is a world"),
    (lambda: play("unchanged", Queue(), horizon=9, delays=3), "which asks and answers at times of its own"),
    (lambda: oc.plots.world(observe(f.Constant(), Queue(), horizon=9), context="length"), "expected one of"),
    (lambda: simulated(f.Constant(), as_world(Third), 9), "gave stream = 2 with question 1; .* an integer from 0 to 1"),
    (lambda: simulated(f.Constant(), as_world(Crowd), 9), "has 2 questions open; it declares open_at_once = 1"),
    (lambda: declaring(reveals="base"), "declares reveals = 'base'; expected names, in a set or tuple"),
    (lambda: declaring(reveals=5), "declares reveals = 5"), (lambda: declaring(streams=(1, 2)), r"streams = \(1, 2\)"),
    (lambda: declaring(streams=("a", "b")), "expected it to reveal 'stream'"),
    (lambda: declaring(open_at_once="20"), "open_at_once = '20'"),
    (lambda: declaring(open_at_once=2.5), "open_at_once = 2.5"),
    (lambda: declaring(open_at_once=0), "open_at_once = 0"),
    (lambda: declaring(sight="everything"), "sight = 'everything'"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_wrong_is_refused(make, words):
    with pytest.raises(oc.OnlinecalError, match=words):
        make()


def test_every_world_is_registered_with_its_sight_and_open_questions():
    assert {type(world) for world in ALL} == set(WORLDS.values())
    for world in ALL:
        assert (world.sight == Sight.NOTHING) is (world.reacts == "none")
    for world in (Machines(machines=3), Beds(beds=4)):  # as many as it says, and no fewer
        fewer = type(f"Fewer{type(world).__name__}", (type(world),), {"open_at_once": world.open_at_once - 1})
        with pytest.raises(InvalidData, match=f"has {world.open_at_once} questions open; it declares"):
            simulated(f.Constant(), fewer(world.open_at_once), 500)


# ---------------------------------------------------------------- studies


class Liar:
    sight = "nothing"

    def run(self, env, market):
        while True:
            question = market.ask()
            yield env.timeout(1.0)
            market.resolve(question, int((question.forecast > 0.5) ^ (question.number % 2)))


@dataclass(frozen=True)
class Tight(f.DefensiveForecasting):
    """States a thousandth of its bounds for open questions."""

    @property
    def guarantees(self):
        stated = super().guarantees
        return tuple(replace(g, delayed=partial(lambda g, *at: g.delayed(*at) / 1000.0, g)) for g in stated)


def test_worlds_are_checked():
    """As natures are, without laws or copies between two questions; that they see what they say; and bounds in them."""
    for world, fault in ((Machines(), ""), (as_world(Liar), "sight = NOTHING")):
        found = {finding.check: finding.fault for finding in conformance(world)}
        assert len(found) == 3
        assert not any(found.values()) if not fault else fault in found["it sees no more than it says"]
    for mine, kept in ((f.DefensiveForecasting(), True), (Tight(), False)):
        for world, many in ((Machines(machines=5, reacts="act"), 2), (Beds(), 2), (Queue(), 0)):
            found = bounds_in_world([mine, f.Constant()], world, 200, 2, 0)
            told = f"bounds for open questions ({many} apply)"
            assert (found.check, found.fault == "") == (told, kept or many == 0)


WAITS = """
import pathlib, time
class Waits:
    def run(self, env, market):
        while True:
            yield env.timeout(market.rng.exponential())
            question = market.ask()
            market.deadline(question, 2.0, int(market.rng.random() < question.forecast))
            if question.number == 100 and not pathlib.Path("go").exists():
                pathlib.Path("waiting").touch()
                time.sleep(600)
"""


@pytest.mark.slow
def test_a_study_of_worlds_that_is_killed_goes_on_to_the_same_bytes(tmp_path):
    (tmp_path / "own.py").write_text(WAITS)
    (tmp_path / "s.toml").write_text(
        'horizon = 150\nruns = 3\nmeasures = ["ece", "cdl"]\nforecasters = ["forecast_hedging"]\n'
        'worlds = ["queue", { name = "beds", reacts = "rush" }, "own:Waits", "parts"]\n'
    )
    waiting = (tmp_path / "waiting").exists
    process = begun("run", "s.toml", "-o", "killed.db", "-j", 2, cwd=tmp_path, when=waiting)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    (tmp_path / "go").touch()
    onlinecal("run", "s.toml", "-o", "killed.db", "--resume", "-j", 1, cwd=tmp_path)
    onlinecal("run", "s.toml", "-o", "fresh.db", "-j", 1, cwd=tmp_path)
    killed, fresh = (oc.load(tmp_path / name).cells for name in ("killed.db", "fresh.db"))
    assert killed == fresh


def test_the_picture_of_a_world_shows_its_rounds():
    rounds = observe(f.Unchanged(), Queue(reacts="leave"), horizon=300)
    above, middle, below = oc.plots.world(rounds, context="queue", first=100).axes
    order = np.argsort(rounds.numbers)[:100]
    (queue,) = above.get_lines()
    np.testing.assert_array_equal(queue.get_ydata(), rounds.context["queue"][order])
    points = np.concatenate([line.get_xydata() for line in middle.get_lines()])
    assert sorted(map(tuple, points)) == sorted(
        zip(rounds.asked[order], rounds.forecasts[order], strict=True)
    )
    means = [np.mean(each[order][50:]) for each in (rounds.forecasts, rounds.outcomes)]
    assert [line.get_ydata()[-1] for line in below.get_lines()] == pytest.approx(means)
    first = [line.get_ydata()[0] for line in below.get_lines()]
    assert first == [each[order[0]] for each in (rounds.forecasts, rounds.outcomes)]
    assert middle.get_yticks().tolist() == [0.0, 0.5, 1.0]
    assert below.get_ylim()[0] == 0.0
    # Unless it is named, the context is the first by name that is not "base".
    for kinds, shown in (
        (("queue", "base"), "queue"),
        (("queue", "alpha", "base"), "alpha"),
        (("base",), "base"),
    ):
        some = replace(rounds, context=dict.fromkeys(kinds, rounds.context["queue"]))
        assert {*oc.plots.world_table(some, first=400)["panel"]} == {shown, "forecast", "mean of 50"}


class Eager:
    """A world with a `run` that is no generator function: it asks before it returns one."""

    def run(self, env, market):
        for _ in range(market.horizon // 2):
            market.resolve(market.ask(), 1)
        return self.rest(env, market)

    def rest(self, env, market):
        while True:
            yield env.timeout(1.0)
            market.resolve(market.ask(), 0)


def test_ways_to_give_a_world():
    for world, label in [
        (Eager, "Eager"), (Eager(), "Eager"), (partial(Eager), "Eager"), (lambda: Eager(), "<lambda>"),
        (partial(Queue, reacts="leave"), 'queue (reacts="leave")'),
    ]:  # fmt: skip
        study = play(f.Constant(0.25), world, horizon=40, runs=2, measures=["ece"])
        assert study.natures == [label]
        assert study.cells[0].loop == "simpy"
    simulation = simulated(f.Constant(0.25), as_world(Eager), 40)
    assert [levels(gamma) for gamma in simulation.gammas()] == [([0.25], [40.0], [20.0])] * 2
    # A world may end after its last question.
    assert simulated(f.EmpiricalMean(), as_world(Odd), 51, 1).resolved == 51
