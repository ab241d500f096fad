"""Players in plain Python: the same bytes as by the event loop, and faults that are named with round and run."""

import pickle

import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidForecast
from onlinecal.engine.game import Game
from onlinecal.forecasters import CDLMinimiser, DefensiveForecasting, ForecastHedging, PerturbedLeader
from onlinecal.forecasters.base import as_forecaster
from onlinecal.natures import Bernoulli, Contrarian, Greedy, KinkApproach
from onlinecal.natures.scalar import as_nature
from onlinecal.rounds.steps import law_values, learn
from onlinecal.schedules import Bursts, Constant, Pareto, Poisson, Schedule
from tests.engine.test_game import same

T = 120
SCHEDULES = (
    Schedule(),
    Schedule(delays=Constant(3)),
    Schedule(Poisson(2), Pareto(cap=200)),
    Schedule(Bursts(7)),
)


class Mean:
    def __init__(self):
        self.ones, self.rounds = 0, 0

    def forecast(self):
        return (self.ones + 1) / (self.rounds + 2)

    def update(self, forecast, outcome):
        assert (type(forecast), type(outcome)) == (float, int)
        self.rounds += 1
        self.ones += outcome


class Laws(Mean):
    """Laws of more and more atoms, now and then a number that is no float."""

    def forecast(self):
        if self.rounds % 5 == 0:
            return self.rounds % 2
        size = 1 + self.rounds // 9
        return {(i + 1) / (size + self.ones + 1): 1 / size for i in range(size)}


class Coin:
    def probability(self):
        return 0.3


class Follows:
    def __init__(self):
        self.last = 0.5

    def probability(self):
        return 1 - self.last

    def update(self, forecast, outcome):
        assert (type(forecast), type(outcome)) == (float, int)
        self.last = forecast


class Timed:
    def probability(self, round):
        return (7 * round.number + round.time) % 10 / 10


class SeesLaw(Follows):
    sight = "law"

    def probability(self, round):
        mean = sum(value * weight for value, weight in round.law.items())
        return 0.25 * (self.last < 0.5) + 0.75 * (mean < 0.5)


class SeesDraw(SeesLaw):
    sight = "draw"

    def probability(self, round):
        return 0.9 * super().probability(round) + 0.1 * (round.forecast > 0.3)


PLAIN, NATURES = (Mean, Laws), (Coin, Follows, Timed, SeesLaw, SeesDraw)
STEPS = (ForecastHedging(m=9), DefensiveForecasting(), PerturbedLeader(), CDLMinimiser())
PAIRS = [(as_forecaster(one), as_nature(other)) for one in PLAIN for other in NATURES]
PAIRS += [
    (as_forecaster(one), other)
    for one in PLAIN
    for other in (Bernoulli(0.4), Contrarian(), Greedy(), KinkApproach())
]
PAIRS += [(as_forecaster(Laws), Contrarian("draw"))]
PAIRS += [(one, as_nature(other)) for one in STEPS for other in NATURES]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.label or "at once")
def test_the_same_bytes_as_by_the_event_loop(schedule, seed):
    for pair in PAIRS:
        options = {"horizon": T, "seed": seed, "schedule": schedule, "cuts": (30.0, 55.5), "keeps": ()}
        whole = Game(*pair, runs=range(3), loop="event", **options)
        whole.advance(T)
        game = Game(*pair, runs=range(3), **options)
        for until in (1, 2, 50, 51, T):
            game.advance(until)
            game = pickle.loads(pickle.dumps(game))
        alone = Game(*pair, runs=range(2, 3), **options)
        alone.advance(T)
        assert game._driven
        assert same(game.gammas(), whole.gammas()), pair
        assert same(alone.gammas(), whole.gammas()[2:]), pair
        for run in range(3):
            mine, other = game.transcripts.of(run), whole.transcripts.of(run)
            assert mine.forecasts.tobytes() == other.forecasts.tobytes()
            assert mine.numbers.tobytes() == other.numbers.tobytes()
        assert same(game.ledger.gammas(None, 30.0, 55.5), whole.ledger.gammas(None, 30.0, 55.5))


def test_rounds_by_hand_mix_with_those_of_the_list(seed):
    pair, schedule = PAIRS[6], Schedule(delays=Constant(2))
    game = Game(*pair, horizon=T, runs=range(2), seed=seed, schedule=schedule)
    game.advance(20)
    mine = game.ask(21.0)
    game.advance(60)
    game.resolve(mine, 60.0)
    game.advance(T)
    assert (game.asked, game.resolved) == (T, T - 2)


class Fails(Mean):
    def __init__(self, where="nowhere", at=7, says=None):
        super().__init__()
        self.where, self.at, self.says = where, at, says

    def _fail(self, where):
        if where == self.where and self.rounds == self.at - 1:
            raise ValueError("boom")

    def forecast(self):
        self._fail("forecast")
        if self.says is not None and self.rounds == self.at - 1:
            return self.says
        return super().forecast()

    def update(self, forecast, outcome):
        self._fail("update")
        super().update(forecast, outcome)


class BadNature(Follows):
    def __init__(self, q):
        super().__init__()
        self.q, self.rounds = q, 0

    def probability(self):
        self.rounds += 1
        return self.q if self.rounds == 5 else 0.5


@pytest.mark.parametrize(
    "nature", [Bernoulli(0.4), as_nature(Follows), as_nature(SeesLaw)], ids=["steps", "plain", "sees"]
)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"where": "forecast"}, r"failed in round 7, run 4: ValueError: boom"),
        ({"where": "update"}, r"failed in round 7, run 4: ValueError: boom"),
        ({"says": 1.5}, r"stated the forecasts \[1\.5\] .* in round 7, run 4"),
        ({"says": float("nan")}, r"stated the forecasts \[nan\] .* in round 7, run 4"),
        ({"says": "0.5"}, r"stated '0\.5' in round 7, run 4"),
        ({}, ""),
        ({"says": {}}, r"stated \{\} in round 7, run 4"),
        ({"says": {0.2: 0.5, 0.3: 0.4}}, r"stated the forecasts .* in round 7, run 4"),
        ({"says": {0.2: -0.5, 0.3: 1.5}}, r"stated the forecasts .* in round 7, run 4"),
    ],
)  # fmt: skip
def test_a_forecaster_that_fails_is_named_with_round_and_run(nature, options, said):
    game = Game(as_forecaster(Fails, options), nature, horizon=20, runs=range(4, 7))
    if not said:
        game.advance(20)
        return
    with pytest.raises(InvalidForecast, match=said):
        game.advance(20)
    with pytest.raises(InvalidForecast, match=said):  # runs are in different rounds
        game.advance(20)


@pytest.mark.parametrize("q", [1.5, -0.1, float("nan"), "0.5", None, 10**400], ids=lambda q: repr(q)[:5])
@pytest.mark.parametrize("forecaster", [as_forecaster(Mean), ForecastHedging()], ids=["plain", "steps"])
def test_a_nature_that_states_nonsense_is_named_with_round_and_run(forecaster, q):
    game = Game(forecaster, as_nature(BadNature, {"q": q}), horizon=20, runs=range(4, 7))
    with pytest.raises(InvalidForecast, match=r"nature 'BadNature' .* in round 5, run 4"):
        game.advance(20)


def test_one_that_is_interrupted_does_not_go_on():
    class Stops(Mean):
        def forecast(self):
            if self.rounds == 4:
                raise KeyboardInterrupt
            return super().forecast()

    game = Game(as_forecaster(Stops), Bernoulli(), horizon=20, runs=range(2))
    with pytest.raises(KeyboardInterrupt):
        game.advance(20)
    with pytest.raises(InvalidForecast, match="interrupted"):
        game.advance(20)


def test_what_it_prints_and_keeps_is_its_own(capsys):
    class Prints(Mean):
        kept = []  # noqa: RUF012

        def update(self, forecast, outcome):
            print("told")
            self.kept.append(forecast)
            super().update(forecast, outcome)

    oc.play(Prints, "contrarian", horizon=10, runs=1)
    assert capsys.readouterr().out.count("told") == 10
    assert all(type(value) is float for value in Prints.kept)


class Swaps(Mean):
    """Exchanges its own methods on the way."""

    def forecast(self):
        if self.rounds == 5:
            self.forecast = lambda: 0.9
        return super().forecast()

    def update(self, forecast, outcome):
        if self.rounds == 50:
            self.update = lambda forecast, outcome: None
        super().update(forecast, outcome)


class SwapsToo(Follows):
    def probability(self):
        if self.last == 0.9:
            self.probability = lambda: 0.3
        return super().probability()


def test_methods_that_are_exchanged_are_called_wherever_the_game_pauses():
    pair = as_forecaster(Swaps), as_nature(SwapsToo)
    games = [Game(*pair, horizon=T, runs=range(2), loop=loop) for loop in ("event", "auto", "auto")]
    games[2].advance(20)
    for game in games:
        game.advance(T)
        assert same(game.gammas(), games[0].gammas())


@learn
def scribbles(run, number, size, drawn, outcome):
    """Learns nothing, and writes into the law that it is given."""
    law_values(run)[0] = 0.125
    return 0


class Hears(Coin):
    def __init__(self):
        self.heard = []

    def update(self, forecast, outcome):
        self.heard.append(forecast)


@pytest.mark.parametrize("schedule", SCHEDULES[:2], ids=["at once", "late"])
def test_a_nature_hears_the_forecast_whatever_a_step_writes(schedule):
    game = Game(CDLMinimiser(), as_nature(Hears), horizon=20, runs=range(1), schedule=schedule, keeps=())
    game.forecaster.steps = (game.forecaster.steps[0], scribbles)
    game.advance(20)
    assert game.nature.players[0].heard == game.transcripts.of(0).forecasts.tolist()
