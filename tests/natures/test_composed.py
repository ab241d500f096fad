"""Natures made of others: what parts see, hear and count, names, files; and a forecaster for each stream."""

import math
import pickle
from typing import ClassVar

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from tests.by_hand import noted, revealed, truths

T, RUNS = 240, 2


# ---------------------------------------------------------------- mixtures and switches


def test_parts_of_one_kind_have_randomness_of_their_own(seed):
    both, one = (truths(n.Mixture((n.UniformTruth(),) * many), 1000, seed=seed) for many in (2, 1))
    # The mean of two independent uniforms has variance 1/24, of two equal ones 1/12. The squared deviation is in
    # [0, 1/4] and 3000 of them are averaged: off by 1/60 with probability below 2·exp(−2·3000·(4/60)²) < 1e-11.
    assert abs(((both - 0.5) ** 2).mean() - 1 / 24) < 1 / 60
    assert abs(((one - 0.5) ** 2).mean() - 1 / 12) < 1 / 60


def test_compositions_have_room_for_what_their_parts_have_recorded(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("outcome\n0\n1\n1\n")
    replay, drift = n.Replay(str(file)), n.Drift()
    assert truths(n.Switch(n.Bernoulli(0.5), replay, 2), 5)[:, 0].tolist() == [0.5, 0.5, 0, 1, 1]
    for nature, fits in (
        (n.Mixture((n.Bernoulli(), replay)), 3), (n.Switch(n.Bernoulli(), replay, 2), 5),
        (n.Streams((drift, replay)), 7), (n.Streams((drift, replay), "random", (0, 1)), 3),
    ):  # fmt: skip
        Game(f.Constant(), nature, horizon=fits, runs=range(1)).advance(fits)
        with pytest.raises(InvalidParameter, match=r"has 3|at most 7"):
            Game(f.Constant(), nature, horizon=fits + 1, runs=range(1))


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
    assert n.Streams((n.Bernoulli(0.2), drift, drift)).streams == ("bernoulli (q=0.2)", "drift 1", "drift 2")
    assert n.Streams((drift, drift), labels=("a", "b")).streams == ("a", "b")
