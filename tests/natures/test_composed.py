"""Natures made of others: what parts see, hear and count, names, files; and a forecaster for each stream."""

import math
import pickle
from typing import ClassVar

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.sweeping import lineup
from tests.by_hand import noted, revealed, truths
from tests.engine.games import played
from tests.examples import recording

T, RUNS = 240, 2


# ---------------------------------------------------------------- mixtures and switches


def test_parts_of_one_kind_have_randomness_of_their_own(seed):
    both, one = (truths(n.Mixture((n.UniformTruth(),) * many), 1000, seed=seed) for many in (2, 1))
    # The mean of two independent uniforms has variance 1/24, of two equal ones 1/12. The squared deviation is in
    # [0, 1/4] and 3000 of them are averaged: off by 1/60 with probability below 2·exp(−2·3000·(4/60)²) < 1e-11.
    assert abs(((both - 0.5) ** 2).mean() - 1 / 24) < 1 / 60
    assert abs(((one - 0.5) ** 2).mean() - 1 / 12) < 1 / 60


def test_recorded_streams_in_compositions(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("outcome\n0\n1\n1\n")
    replay = n.Replay(str(file))
    assert n.Mixture((n.Bernoulli(), replay)).length == 3
    assert n.Mixture((n.Bernoulli(),)).length is None
    with pytest.raises(InvalidParameter, match="horizon = 4, but nature 'mixture' has 3 rounds"):
        Game(f.Constant(), n.Mixture((n.Bernoulli(), replay)), horizon=4, runs=range(1))
    switched = n.Switch(n.Bernoulli(0.5), replay, 2)
    assert truths(switched, 5)[:, 0].tolist() == [0.5, 0.5, 0, 1, 1]
    with pytest.raises(InvalidParameter, match="switch: 4 of 6 rounds fall to then = replay, which has 3"):
        Game(f.Constant(), n.Switch(n.Bernoulli(), replay, 2), horizon=6, runs=range(1))


def test_files_and_mistakes_of_parts_are_found(tmp_path):
    """That parts are tables is in tests/whole/test_players.py."""
    file, switch = recording(tmp_path), {"name": "switch", "then": "drift", "first": {"name": "replay"}}
    switch["first"]["file"] = file.name
    (entry,) = lineup("nature", [switch], tmp_path)
    assert entry.strategy.first.length == 1200
    for table, said in (
        ({"name": "switch", "first": {"name": "bernoulli", "q": 2}}, r"q = 2; expected a number in \[0, 1\]"),
        ({"name": "mixture", "natures": ["drift"], "weights": [3, 1]}, "expected 1 number"),
        ({"name": "switch", "then": "drift"}, "needs the parameter 'first'"),
    ):
        with pytest.raises(OnlinecalError, match=said):
            lineup("nature", [table], tmp_path)


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
    """A drift of one round after another tells in its slope for how many it was made."""
    player = nature.start(horizon, Stream(seed, ("nature", strategy_key(nature)), range(1)))
    mine = player.streams_of(1, horizon).tolist()
    assert [part.shared[1] for part in player.parts] == [1.0 / max(mine.count(i), 1) for i in range(3)]
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


def test_certificates_of_the_streams_add_up(seed):
    nature = n.Streams((n.Contrarian(), n.Drift()))
    game = played(f.Separate(f.DefensiveForecasting()), nature, 500, runs=range(2), seed=seed)
    totals = [g.weight * oc.measures.kernel_ce(g) for g in game.gammas()]
    assert (np.array(totals) <= game.certificates()["kernel_ce_certificate"]).all()
    assert f.Delayed(f.Separate(f.DefensiveForecasting())).certifies == {"kernel_ce_certificate"}


# ---------------------------------------------------------------- names, parameters


def test_names_of_the_streams():
    said = "bernoulli (q=0.2)", "drift 1", "drift 2"
    assert n.Streams((n.Bernoulli(0.2), n.Drift(), n.Drift())).streams == said
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
    drift, markov = n.Drift(), n.Markov()
    both = n.Switch(n.Streams((drift, markov)), n.Streams((markov, drift, drift), "random"), 5)
    assert both.reveals == {"stream"}
    assert both.streams == ("drift → markov", "markov → drift 1", "drift 2")
    separate = f.Separate(f.AlmostOneStepAhead())
    game = Game(separate, both, horizon=90, runs=range(2), seed=seed, keeps=("stream",))
    game.advance(3)
    game.resolve(game.ask())
    game = pickle.loads(pickle.dumps(game))
    game.advance(90)
    told = game.transcripts.of(1)
    assert told.context["stream"].tolist() == game.nature.streams_of(1, 90).tolist()
    assert n.Switch(n.Streams((drift, markov)), drift).streams == ()
