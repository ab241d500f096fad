"""Several natures at once, and a forecaster for each: every part plays its own game."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from onlinecal.rounds.record import Recorder, Round, decide, resolve

import onlinecal as oc
from onlinecal.checks.conformance import trace
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.forecasters import (
    AlmostOneStepAhead,
    Constant,
    DefensiveForecasting,
    Delayed,
    EmpiricalMean,
    ForecastHedging,
    PerturbedLeader,
    Separate,
    Truthful,
)
from onlinecal.natures import (
    NATURES,
    Bernoulli,
    Contrarian,
    Drift,
    Greedy,
    Markov,
    Nature,
    NatureRound,
    RandomWalk,
    Replay,
    Sidestepping,
    Sight,
    Streams,
    Switch,
    UniformTruth,
)
from onlinecal.scenario import load
from tests.examples import recording

T, RUNS = 400, 3


# ---------------------------------------------------------------- each part alone


def events(order, delays):
    """What happens: ("ask", t) and ("tell", t), with the outcome of round t told at the end of round t + delay."""
    for t in range(1, len(order) + 1):
        yield "ask", t
        for early in range(1, t + 1):
            if early + delays[early - 1] == t:
                yield "tell", early


def alone(i, order, of, nature, delays, seed):
    """Forecasts and outcomes of the rounds of stream i, by one copy against one part, which meet nobody else."""
    runs, at = range(RUNS), f"T={T}"
    separate = strategy_key(Separate(of))
    copy = of.start(T, RUNS, Stream(seed, ("forecaster", separate, at, f"stream {i}"), runs))
    own = ("nature", strategy_key(nature), at, f"part {i}")
    spec = nature.parts[i]
    part = spec.start(order.count(i), RUNS, Stream(seed, own, runs))
    uniforms = Stream(seed, ("forecast", separate, at), runs).block(T)
    outcomes = Stream(seed, ("outcome", strategy_key(nature), at), runs).block(T)
    recorder, rounds, found = Recorder(RUNS), {}, {}
    for what, t in events(order, delays):
        if order[t - 1] != i:
            continue
        if what == "ask":
            round = Round(len(rounds) + 1, float(t))
            face = NatureRound(round, "alone", spec.sight)
            rounds[t] = round, face
            recorder.draw(round, copy.forecast(round), uniforms, t - 1)
            q = np.broadcast_to(np.asarray(part.probability(face), float), (RUNS,))
            assert decide(round, q, outcomes, t - 1) < 0
            found[t] = round.forecast.tolist(), (outcomes[t - 1] < q).astype(int).tolist()
        else:
            round, face = rounds[t]
            resolve(round, float(t))
            copy.update(round)
            if spec.sight >= Sight.HISTORY:
                part.update(face)
    return found


@pytest.mark.parametrize("delay", [0, 5, "any"])
@pytest.mark.parametrize(
    "nature",
    [
        Streams((Greedy(), Drift(), Sidestepping())),
        Streams((Markov(), RandomWalk(), Contrarian()), "random", (2, 1, 1)),
    ],
    ids=lambda nature: nature.order,
)
@pytest.mark.parametrize(
    "of", [AlmostOneStepAhead(), ForecastHedging(), PerturbedLeader(), DefensiveForecasting()]
)
def test_separate_on_streams_is_each_part_alone(of, nature, delay, seed):
    delays = np.random.default_rng([seed, 3]).integers(0, 30, T) if delay == "any" else np.full(T, delay)
    game = Game(Separate(of), nature, horizon=T, runs=range(RUNS), seed=seed, loop="event")
    opened = []
    path = "nature", strategy_key(nature), f"T={T}"
    order = nature.start(T, 1, Stream(seed, path, range(1))).streams_of(1, T).tolist()
    for what, t in events(order, delays):
        if what == "ask":
            opened.append(game.ask())
        else:
            game.resolve(opened[t - 1])
    parts = [alone(i, order, of, nature, delays, seed) for i in range(len(nature.parts))]
    for t, open_ in enumerate(opened, 1):
        forecast, outcome = parts[order[t - 1]][t]
        assert open_.round.context["stream"].tolist() == [order[t - 1]] * RUNS
        assert open_.round.forecast.tolist() == forecast, t
        if math.isfinite(open_.round.resolved):
            assert open_.round.outcome.tolist() == outcome, t


def test_the_shared_forecaster_plays_another_game(seed):
    """The control: one that learns from all streams is right about neither of two opposite coins."""
    nature = Streams((Bernoulli(1.0), Bernoulli(0.0)))
    briers = [
        oc.play(of, nature, horizon=200, runs=1, seed=seed, measures=["brier"]).curve("brier").mean[-1]
        for of in (EmpiricalMean(), Separate(EmpiricalMean()))
    ]
    assert briers[0] > 40
    assert briers[1] == pytest.approx(2 * sum(1 / (k + 2) ** 2 for k in range(100)))


# ---------------------------------------------------------------- what a part knows


@dataclass(frozen=True)
class Noting(Nature):
    """Notes its horizon, the numbers of its rounds, and what it hears."""

    sight = Sight.HISTORY
    log: list = None

    def start(self, horizon, runs, stream):
        self.log.append(horizon)
        return self

    def probability(self, round):
        self.log.append(("asked", round.number))
        round.memo = round.number
        return 0.5

    def update(self, round):
        assert round.memo == round.number
        self.log.append(("told", round.number))


def test_a_part_hears_of_its_own_rounds_and_counts_them():
    log = []
    game = Game(Constant(), Streams((Drift(), Noting(log), Drift())), horizon=8, runs=range(1))
    opened = [game.ask() for _ in range(8)]
    for late in reversed(opened):
        game.resolve(late)
    assert log == [3, ("asked", 1), ("asked", 2), ("asked", 3), ("told", 3), ("told", 2), ("told", 1)]


def test_a_part_sees_no_more_than_its_own_sight():
    class Peeping(Drift):
        sight = Sight.NOTHING

        def start(self, horizon, runs, stream):
            return type("_", (), {"probability": lambda _, round: round.law.mean})()

    game = Game(Constant(), Streams((Greedy(), Peeping())), horizon=8, runs=range(1))
    game.advance(1)
    with pytest.raises(oc.OnlinecalError, match="asked for the law in round 2 but declares sight NOTHING"):
        game.advance(2)


def test_it_has_update_only_if_a_part_hears():
    assert not hasattr(Streams((Drift(),)).start(9, 1, Stream(0, (), range(1))), "update")
    assert Streams((Drift(), Greedy())).sight is Greedy().sight


@pytest.mark.parametrize("horizon", [1, 2, 3, 1000, 2500])
@pytest.mark.parametrize("nature", [Streams((Drift(),) * 3), Streams((Drift(),) * 3, "random", (3, 0, 1))])
def test_each_part_is_tuned_to_the_rounds_that_fall_to_it(nature, horizon, seed):
    order = nature.start(horizon, 2, Stream(seed, ("here",), range(2))).streams_of.__self__
    mine = [order.of(t) for t in range(1, horizon + 1)]
    assert order.whose(1, horizon).tolist() == [i for i, _ in mine]
    for i, share in enumerate(order.shares(horizon)):
        assert [number for j, number in mine if j == i] == list(range(1, share + 1))
    if nature.order == "turns":
        assert [i for i, _ in mine] == [(t % 3) for t in range(horizon)]
    else:
        assert {i for i, _ in mine} <= {0, 2}
        # Hoeffding: false failures below 2e-9.
        assert abs(sum(i == 0 for i, _ in mine) - 0.75 * horizon) <= math.sqrt(horizon * math.log(1e9) / 2)


def test_the_order_is_that_of_all_runs(seed):
    nature = Streams((Drift(), Markov()), "random")
    spec = Separate(AlmostOneStepAhead())
    both = Game(spec, nature, horizon=1500, runs=range(4), seed=seed)
    later = Game(spec, nature, horizon=1500, runs=range(2, 4), seed=seed)
    both.advance(1500)
    later.advance(1500)
    assert trace(both)[2:] == trace(later)


def test_rounds_are_asked_in_their_order():
    order = Streams((Drift(),) * 2, "random").start(5000, 1, Stream(0, (), range(1))).streams_of.__self__
    order.of(2000)
    with pytest.raises(InvalidParameter, match="round 7 is asked after round 1985 was"):
        order.of(7)


# ---------------------------------------------------------------- what it reveals


def test_it_reveals_what_all_parts_reveal(seed):
    assert Streams((UniformTruth(), UniformTruth())).reveals == {"stream", "truth"}
    assert Streams((UniformTruth(), Drift())).reveals == {"stream"}
    game = Game(
        Separate(Truthful()), Streams((UniformTruth(), UniformTruth())), horizon=9, runs=range(2), seed=seed
    )
    round = game.ask().round
    assert round.context["stream"].dtype == np.int64
    assert round.context["truth"].tolist() == round.forecast.tolist()


def test_a_forecaster_per_stream_needs_streams():
    with pytest.raises(InvalidParameter, match="needs stream, which nature 'drift' does not reveal"):
        Game(Separate(Constant()), Drift(), horizon=9, runs=range(1))


@pytest.mark.parametrize("revealed", [np.array([0, 1]), np.array([0.0, 0.0]), np.zeros((2, 1), np.int64)])
def test_a_stream_that_is_none_is_refused(revealed):
    class Odd(Drift):
        reveals = frozenset({"stream"})

        def start(self, horizon, runs, stream):
            return type(
                "_", (), {"context": lambda *_: {"stream": revealed}, "probability": lambda *_: 0.5}
            )()

    with pytest.raises(InvalidForecast, match="one whole number for all of the 2 runs"):
        Game(Separate(Constant()), Odd(), horizon=9, runs=range(2)).ask()


def test_copies_begin_when_their_stream_is_seen(seed):
    game = Game(Separate(AlmostOneStepAhead()), Streams((Drift(),) * 3), horizon=9, runs=range(1), seed=seed)
    assert len(game.forecaster.memory.players) == 0
    game.advance(2)
    assert len(game.forecaster.memory.players) == 2


def test_certificates_of_the_streams_add_up(seed):
    nature = Streams((Contrarian(), Drift()))
    game = Game(Separate(DefensiveForecasting()), nature, horizon=500, runs=range(2), seed=seed)
    game.advance(500)
    totals = [g.weight * oc.measures.kernel_ce(g) for g in game.gammas()]
    assert (np.array(totals) <= game.certificates()["kernel_ce_certificate"]).all()
    assert Delayed(Separate(DefensiveForecasting())).certifies == {"kernel_ce_certificate"}


# ---------------------------------------------------------------- names, parameters


def test_names_of_the_streams():
    assert Streams((Bernoulli(0.2), Drift(), Drift())).streams == ("bernoulli (q=0.2)", "drift 1", "drift 2")
    assert Streams((Drift(), Drift()), labels=("a", "b")).streams == ("a", "b")
    assert all(cls.streams == () for cls in NATURES.values() if cls is not Streams)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"parts": ()}, r"parts = \(\); expected a list of natures"),
        ({"parts": Drift()}, "expected a list of natures"),
        ({"parts": (Drift(), Constant())}, r"parts\[1\] = .*expected a nature"),
        ({"parts": (Drift(), Streams((Drift(),)))}, r"parts\[1\] = streams has streams of its own"),
        ({"order": "sorted"}, "order = 'sorted'; expected 'turns' or 'random'"),
        ({"weights": (1, 2)}, "expected order = 'random', or no weights"),
        ({"order": "random", "weights": (1,)}, "expected 2 numbers, one a part"),
        ({"order": "random", "weights": (1, -1)}, r"weights\[1\] = -1"),
        ({"order": "random", "weights": (0, 0)}, "expected one above 0"),
        ({"labels": ("a", "a")}, "expected texts that are all different"),
        ({"labels": ("a", "")}, "expected texts that are all different"),
        ({"labels": "ab"}, "expected 2 texts, one a part"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(options, said):
    with pytest.raises(InvalidParameter, match=said):
        Streams(**{"parts": (Drift(), Drift()), **options})


def test_parts_that_are_too_short_are_refused(tmp_path):
    rows = Replay(str(recording(tmp_path)))
    turns = Streams((Drift(), rows))
    assert turns.length == 2 * rows.length + 1
    Game(Constant(), turns, horizon=turns.length, runs=range(1))
    with pytest.raises(InvalidParameter, match=f"expected at most {turns.length}"):
        Game(Constant(), turns, horizon=turns.length + 1, runs=range(1))
    drawn = Streams((Drift(), rows), "random", (0, 1))
    assert drawn.length is None
    assert drawn.recorded
    with pytest.raises(
        InvalidParameter, match=rf"1201 of 1201 rounds fall to parts\[1\] = replay, which has {rows.length}"
    ):
        Game(Constant(), drawn, horizon=1201, runs=range(1))


def test_streams_may_follow_each_other():
    both = Switch(Streams((Drift(), Markov())), Streams((Markov(), Drift())))
    assert both.reveals == {"stream"}
    Game(Separate(Constant()), both, horizon=9, runs=range(1)).advance(9)


def test_in_a_scenario(tmp_path):
    text = """
        seed = 1
        runs = 2
        horizon = 50
        measures = ["ece"]
        [[forecasters]]
        name = "separate"
        of = { name = "delayed", of = { name = "forecast_hedging" }, slots = 3 }
        [[natures]]
        name = "streams"
        parts = [{ name = "drift" }, { name = "contrarian" }]
        order = "random"
        weights = [1, 2]
        labels = ["calm", "hard"]
        """
    file = tmp_path / "a.toml"
    file.write_text(text)
    (cell,) = load(file).cells
    assert cell.nature.strategy == Streams((Drift(), Contrarian()), "random", (1, 2), ("calm", "hard"))
    assert cell.forecaster.strategy == Separate(Delayed(ForecastHedging(), 3))
