"""Natures made of others: what parts see, hear and count, names, files; and a forecaster for each stream."""

import math
import pickle
from typing import ClassVar

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidForecast, InvalidParameter, ScenarioError
from onlinecal.core.strategy import strategy_key, strategy_label
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.rounds.protocol import begin
from onlinecal.scenario import load
from tests.by_hand import noted, outcome_uniforms, revealed
from tests.examples import recording

T, RUNS = 240, 2


# ---------------------------------------------------------------- mixtures and switches


def coins(nature, forecaster, horizon, seed, runs=3):
    return np.array([round.q for round in noted(forecaster, nature, horizon, runs, seed)[0]])


def test_parts_of_one_kind_have_randomness_of_their_own(seed):
    both = coins(n.Mixture((n.UniformTruth(), n.UniformTruth())), f.Constant(), 1000, seed)
    one = coins(n.Mixture((n.UniformTruth(),)), f.Constant(), 1000, seed)
    # The mean of two independent uniforms has variance 1/24, of two equal ones 1/12. The squared deviation is in
    # [0, 1/4] and 3000 of them are averaged: off by 1/60 with probability below 2·exp(−2·3000·(4/60)²) < 1e-11.
    assert abs(((both - 0.5) ** 2).mean() - 1 / 24) < 1 / 60
    assert abs(((one - 0.5) ** 2).mean() - 1 / 12) < 1 / 60


@pytest.mark.parametrize("wrong", [1.5, -0.5, float("nan"), "much", [0.5, 0.5, 0.5]])
def test_a_wrong_part_does_not_hide_in_a_mixture(wrong):
    class Wrong(n.Nature):
        def start(self, horizon, stream):
            class Player:
                def probability(self, round):
                    return wrong

            return Player()

    for nature in (n.Mixture((n.Bernoulli(), Wrong())), n.Switch(n.Bernoulli(), Wrong(), 2)):
        with pytest.raises(InvalidForecast, match=r"stated q = .* in round"):
            Game(f.Constant(), nature, horizon=5, runs=range(2)).advance(5)


def test_recorded_streams_in_compositions(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("outcome\n0\n1\n1\n")
    replay = n.Replay(str(file))
    assert n.Mixture((n.Bernoulli(), replay)).length == 3
    assert n.Mixture((n.Bernoulli(),)).length is None
    with pytest.raises(InvalidParameter, match="horizon = 4, but nature 'mixture' has 3 rounds"):
        Game(f.Constant(), n.Mixture((n.Bernoulli(), replay)), horizon=4, runs=range(1))
    assert coins(n.Switch(n.Bernoulli(0.5), replay, 2), f.Constant(), 5, 0)[:, 0].tolist() == [
        0.5,
        0.5,
        0,
        1,
        1,
    ]
    with pytest.raises(InvalidParameter, match="switch: 4 of 6 rounds fall to then = replay, which has 3"):
        Game(f.Constant(), n.Switch(n.Bernoulli(), replay, 2), horizon=6, runs=range(1))


def test_nested_natures_have_keys_labels_and_tables(tmp_path):
    nature = n.Mixture((n.Bernoulli(0.25), n.Switch(n.Drift(), n.Greedy("square"))), (3, 1))
    assert strategy_key(nature) == (
        'mixture(natures=[bernoulli(q=0.25), switch(at="T/2", first=drift(first=0, last=1), '
        'then=greedy(cells=null, kink=0.5, target="square"))], weights=[3, 1])'
    )
    assert strategy_key(nature) != strategy_key(
        n.Mixture((n.Bernoulli(0.25), n.Switch(n.Drift(), n.Greedy())), (3, 1))
    )
    assert strategy_label(nature) == (
        'mixture (natures=[bernoulli (q=0.25), switch (first=drift, then=greedy (target="square"))], weights=[3, 1])'
    )
    file = tmp_path / "nested.toml"
    recording(tmp_path)
    text = """
horizon = 100
measures = ["ece"]
[[forecasters]]
name = "constant"
[[natures]]
name = "mixture"
weights = [3, 1]
natures = [
    { name = "bernoulli", q = 0.25 },
    { name = "switch", first = { name = "drift" }, then = { name = "greedy", target = "square" } },
]
[[natures]]
name = "switch"
first = { name = "replay", file = "recording.csv", base = "base" }
then = { name = "sidestepping" }
at = "T/2"
"""
    file.write_text(text)
    first, second = (cell.nature.strategy for cell in load(file).cells)
    assert first == nature
    assert strategy_key(first) == strategy_key(nature)
    assert second.first.length == 1200
    for good, bad, said in [
        ("q = 0.25", "q = 2", r"q = 2; expected a number in \[0, 1\]"),
        ('"drift"', '"drif"', "unknown nature 'drif'; did you mean 'drift'"),
        ("weights = [3, 1]", "weights = [3]", "expected 2 numbers"),
        ('first = { name = "drift" }, ', "", "needs the parameter 'first'"),
        (
            '{ name = "sidestepping" }',
            '"sidesteppin"',
            "unknown nature 'sidesteppin'; did you mean 'sidestepping'",
        ),
    ]:
        assert good in text
        file.write_text(text.replace(good, bad))
        with pytest.raises(ScenarioError, match=said):
            load(file)


# ---------------------------------------------------------------- each stream alone


def events(order, delays):
    """What happens: ("ask", t) and ("tell", t), with the outcome of round t told at the end of round t + delay."""
    for t in range(1, len(order) + 1):
        yield "ask", t
        for early in range(1, t + 1):
            if early + delays[early - 1] == t:
                yield "tell", early


def as_part(role, spec, horizon, path, seed):
    """A specification as another begins it: tuned to this horizon, with the stream of this path."""

    class Part(f.Forecaster if role == "forecaster" else n.Nature):
        def start(self, _, stream):
            return begin(role, spec, horizon, Stream(seed, path, range(1)))

    for name in ("certifies",) if role == "forecaster" else ("sight",):
        setattr(Part, name, getattr(spec, name))
    return Part()


def alone(i, order, of, nature, delays, seed):
    """Forecasts and outcomes of the rounds of stream i, by one copy against one part, which meet nobody else."""
    at, separate, mine = f"T={T}", strategy_key(f.Separate(of)), order.count(i)
    outcomes = outcome_uniforms(nature, T, RUNS, seed)
    copy = as_part("forecaster", of, T, ("forecaster", separate, at, f"stream {i}"), seed)
    part = as_part("nature", nature.parts[i], mine, ("nature", strategy_key(nature), at, f"part {i}"), seed)
    game, asked, found = Game(copy, part, horizon=mine, runs=range(RUNS), seed=seed), {}, {}
    for what, t in events(order, delays):
        if order[t - 1] == i and what == "ask":
            asked[t] = question = game.ask()
            found[t] = (
                question.forecast.tolist(),
                (outcomes[t - 1] < question.probability).astype(int).tolist(),
            )
        elif order[t - 1] == i:
            game.resolve(asked[t], outcome=found[t][1])
    return found


@pytest.mark.one_in(10)
@pytest.mark.parametrize("delay", [0, 5, "any"])
@pytest.mark.parametrize(
    "nature",
    [
        n.Streams((n.Greedy(), n.Drift(), n.Sidestepping())),
        n.Streams((n.Markov(), n.RandomWalk(), n.Contrarian()), "random", (2, 1, 1)),
        n.Streams(
            (n.Mixture((n.Greedy(), n.RandomWalk())), n.Switch(n.Markov(), n.Contrarian("draw"), "T/2"))
        ),
    ],
    ids=lambda nature: str(nature.streams),
)
@pytest.mark.parametrize("of", [f.AlmostOneStepAhead(), f.DefensiveForecasting(), f.EmpiricalMean()])
def test_separate_on_streams_is_each_part_alone(of, nature, delay, seed):
    """Of forecasters that draw nothing; of others see tests/forecasters/test_in_flight.py."""
    delays = np.random.default_rng([seed, 3]).integers(0, 30, T) if delay == "any" else np.full(T, delay)
    game = Game(f.Separate(of), nature, horizon=T, runs=range(RUNS), seed=seed, keeps=("stream",))
    opened, order = [], order_of(nature, T, seed).whose(1, T).tolist()
    for what, t in events(order, delays):
        if what == "ask":
            opened.append(game.ask())
        else:
            game.resolve(opened[t - 1])
    parts = [alone(i, order, of, nature, delays, seed) for i in range(len(nature.parts))]
    for t, question in enumerate(opened, 1):
        assert question.forecast.tolist() == parts[order[t - 1]][t][0], t
    for run in range(RUNS):
        told = game.transcripts.of(run)
        for t, stream, outcome in zip(told.numbers, told.context["stream"], told.outcomes, strict=True):
            assert stream == order[t - 1]
            assert outcome == parts[stream][t][1][run]


def order_of(nature, horizon, seed):
    """The order of the parts."""
    stream = Stream(seed, ("nature", strategy_key(nature), f"T={horizon}"), range(1))
    return nature.start(horizon, stream).streams_of.__self__


def test_the_shared_forecaster_plays_another_game(seed):
    """The control: one that learns from all streams is right about neither of two opposite coins."""
    nature = n.Streams((n.Bernoulli(1.0), n.Bernoulli(0.0)))
    briers = [
        oc.play(of, nature, horizon=200, runs=1, seed=seed, measures=["brier"]).curve("brier").mean[-1]
        for of in (f.EmpiricalMean(), f.Separate(f.EmpiricalMean()))
    ]
    assert briers[0] > 40
    assert briers[1] == pytest.approx(2 * sum(1 / (k + 2) ** 2 for k in range(100)))


# ---------------------------------------------------------------- what a part of several knows


class Noting(n.Nature):
    """Notes its horizon, the numbers of its rounds, and what it hears."""

    sight = n.Sight.HISTORY
    log: ClassVar[list] = []

    def start(self, horizon, stream):
        self.log.append(horizon)
        return self

    def probability(self, round):
        self.log.append(("asked", round.number))
        round.memo = round.number
        return 0.5

    def update(self, forecast, outcome, round):
        assert round.memo == round.number
        self.log.append(("told", round.number))


def test_a_part_hears_of_its_own_rounds_and_counts_them():
    log = Noting.log
    log.clear()
    game = Game(f.Constant(), n.Streams((n.Drift(), Noting(), n.Drift())), horizon=8, runs=range(1))
    opened = [game.ask() for _ in range(8)]
    for late in reversed(opened):
        game.resolve(late)
    assert log == [3, ("asked", 1), ("asked", 2), ("asked", 3), ("told", 3), ("told", 2), ("told", 1)]


@pytest.mark.parametrize("horizon", [1, 2, 3, 1000, 2500])
@pytest.mark.parametrize(
    "nature", [n.Streams((n.Drift(),) * 3), n.Streams((n.Drift(),) * 3, "random", (3, 0, 1))]
)
def test_each_part_is_tuned_to_the_rounds_that_fall_to_it(nature, horizon, seed):
    order = order_of(nature, horizon, seed)
    mine = order.whose(1, horizon).tolist()
    assert order.shares(horizon) == [mine.count(i) for i in range(3)]
    if nature.order == "turns":
        assert mine == [(t % 3) for t in range(horizon)]
    else:
        assert set(mine) <= {0, 2}
        # Hoeffding: false failures below 2e-9.
        assert abs(mine.count(0) - 0.75 * horizon) <= math.sqrt(horizon * math.log(1e9) / 2)


def test_compositions_reveal_what_all_parts_reveal_and_see_what_one_sees(seed):
    assert n.Switch(n.UniformTruth(), n.Bernoulli()).reveals == frozenset()
    assert n.Streams((n.UniformTruth(), n.UniformTruth())).reveals == {"stream", "truth"}
    assert n.Streams((n.UniformTruth(), n.Drift())).reveals == {"stream"}
    for parts, sight in [
        ((n.Bernoulli(), n.RandomWalk()), n.Sight.NOTHING),
        ((n.Bernoulli(), n.Markov()), n.Sight.HISTORY),
        ((n.Markov(), n.Greedy()), n.Sight.LAW),
        ((n.Contrarian("draw"), n.Greedy()), n.Sight.DRAW),
    ]:
        assert n.Mixture(parts).sight is n.Switch(*parts).sight is n.Streams(parts).sight is sight
    nature = n.Streams((n.UniformTruth(), n.UniformTruth()))
    log, _ = noted(f.Separate(f.Truthful()), nature, 9, 2, seed)
    shown = revealed(nature, 9, 2, seed)
    assert shown["stream"].dtype == np.int64
    assert shown["truth"].tolist() == [round.forecast.tolist() for round in log]


def test_a_forecaster_per_stream_needs_streams():
    with pytest.raises(InvalidParameter, match="needs stream, which nature 'drift' does not reveal"):
        Game(f.Separate(f.Constant()), n.Drift(), horizon=9, runs=range(1))


def test_certificates_of_the_streams_add_up(seed):
    nature = n.Streams((n.Contrarian(), n.Drift()))
    game = Game(f.Separate(f.DefensiveForecasting()), nature, horizon=500, runs=range(2), seed=seed)
    game.advance(500)
    totals = [g.weight * oc.measures.kernel_ce(g) for g in game.gammas()]
    assert (np.array(totals) <= game.certificates()["kernel_ce_certificate"]).all()
    assert f.Delayed(f.Separate(f.DefensiveForecasting())).certifies == {"kernel_ce_certificate"}


# ---------------------------------------------------------------- names, parameters


def test_names_of_the_streams():
    assert n.Streams((n.Bernoulli(0.2), n.Drift(), n.Drift())).streams == (
        "bernoulli (q=0.2)",
        "drift 1",
        "drift 2",
    )
    assert n.Streams((n.Drift(), n.Drift()), labels=("a", "b")).streams == ("a", "b")
    assert all(cls.streams == () for cls in n.NATURES.values() if cls not in (n.Streams, n.Switch))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"parts": ()}, r"parts = \(\); expected a list of natures"),
        ({"parts": n.Drift()}, "expected a list of natures"),
        ({"parts": (n.Drift(), f.Constant())}, r"parts\[1\] = .*expected a nature"),
        ({"parts": (n.Drift(), n.Streams((n.Drift(),)))}, r"parts\[1\] = streams has streams of its own"),
        ({"order": "sorted"}, "order = 'sorted'; expected one of 'turns', 'random'"),
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
        n.Streams(**{"parts": (n.Drift(), n.Drift()), **options})


def test_parts_that_are_too_short_are_refused(tmp_path):
    rows = n.Replay(str(recording(tmp_path)))
    turns = n.Streams((n.Drift(), rows))
    assert turns.length == 2 * rows.length + 1
    Game(f.Constant(), turns, horizon=turns.length, runs=range(1))
    with pytest.raises(InvalidParameter, match=f"expected at most {turns.length}"):
        Game(f.Constant(), turns, horizon=turns.length + 1, runs=range(1))
    drawn = n.Streams((n.Drift(), rows), "random", (0, 1))
    assert drawn.length is None
    assert drawn.recorded
    with pytest.raises(
        InvalidParameter, match=rf"1201 of 1201 rounds fall to parts\[1\] = replay, which has {rows.length}"
    ):
        Game(f.Constant(), drawn, horizon=1201, runs=range(1))


def test_streams_may_follow_each_other(seed):
    """A forecaster per stream plays them, and the streams are those that are revealed."""
    both = n.Switch(
        n.Streams((n.Drift(), n.Markov())), n.Streams((n.Markov(), n.Drift(), n.Drift()), "random"), 5
    )
    assert both.reveals == {"stream"}
    assert both.streams == ("drift → markov", "markov → drift 1", "drift 2")
    game = Game(
        f.Separate(f.AlmostOneStepAhead()), both, horizon=90, runs=range(2), seed=seed, keeps=("stream",)
    )
    game.advance(3)
    game.resolve(game.ask())
    game = pickle.loads(pickle.dumps(game))
    game.advance(90)
    told = game.transcripts.of(1)
    assert told.context["stream"].tolist() == game.nature.streams_of(1, 90).tolist()
    assert n.Switch(n.Streams((n.Drift(), n.Markov())), n.Drift()).streams == ()
