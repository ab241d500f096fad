"""Natures: their rules, what they force, and what a bad file says."""

import math

import numpy as np
import pytest

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game, checkpoints
from onlinecal.forecasters import FORECASTERS, AlmostOneStepAhead, Constant, EmpiricalMean, ForecastHedging
from onlinecal.measures import ece
from onlinecal.natures import NATURES, Bernoulli, Contrarian, Drift, Replay, UniformTruth
from tests.rounds import question


def truths(nature, horizon, runs=3, seed=0):
    """q_1, …, q_T of an oblivious nature."""
    player = nature.start(horizon, runs, Stream(seed, ("nature",), range(runs)))
    rounds = map(question, range(1, horizon + 1))
    return np.array([np.broadcast_to(player.probability(round), runs).copy() for round in rounds])


def test_rules():
    assert (truths(Bernoulli(0.3), 5) == 0.3).all()
    assert truths(Drift(), 4)[:, 0].tolist() == pytest.approx([1 / 8, 3 / 8, 5 / 8, 7 / 8])
    assert truths(Drift(1.0, 0.5), 2)[:, 0].tolist() == pytest.approx([0.875, 0.625])
    assert truths(Drift(0.7, 0.7), 3)[:, 0].tolist() == pytest.approx([0.7] * 3)
    assert 0 <= truths(Drift(), 1)[0, 0] <= 1


def test_uniform_truths_are_uniform_and_known_before(seed):
    q = truths(UniformTruth(), 4000, runs=2, seed=seed)
    # Kolmogorov–Smirnov for 8000 values: above 4.5/√8000 with probability below 2·exp(−2·4.5²) < 1e-17.
    ranks = np.sort(q.ravel())
    assert np.abs(ranks - (np.arange(8000) + 0.5) / 8000).max() < 4.5 / math.sqrt(8000)
    player = UniformTruth().start(10, 2, Stream(seed, ("nature",), range(2)))
    assert (player.context(question(3))["truth"] == q[2]).all()


@pytest.mark.parametrize(
    "forecaster", [Constant(0.5), Constant(0.2), EmpiricalMean(), AlmostOneStepAhead()], ids=strategy_key
)
def test_contrarian_hurts_every_deterministic_forecaster(forecaster):
    for t in checkpoints(3000):
        game = Game(forecaster, Contrarian(), horizon=t, runs=range(2))
        game.advance(t)
        assert all(t * ece(gamma) >= t / 2 - 1e-9 for gamma in game.gammas())


def test_contrarian_that_sees_the_draw_hurts_everybody_and_the_other_does_not(seed):
    totals = {}
    for sees in ("law", "draw"):
        game = Game(ForecastHedging(), Contrarian(sees=sees), horizon=8000, runs=range(8), seed=seed)
        game.advance(8000)
        totals[sees] = [8000 * ece(gamma) for gamma in game.gammas()]
    assert min(totals["draw"]) >= 4000
    # Against the law alone hedging stays below 2√(mT) + T/(2m) + 2√(T·ln(1e9)/8) < 1600 with probability 1 − 1e-9.
    assert np.mean(totals["law"]) < 1600


def test_replay_plays_the_file(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("day,outcome,mm\n1,0,0.0\n2,1,2.5\n3,1,0.1\n")
    assert truths(Replay(str(file)), 3)[:, 0].tolist() == [0, 1, 1]
    assert truths(Replay(str(file), outcome="mm", above=1.0), 3)[:, 0].tolist() == [0, 1, 0]
    assert Replay(str(file)).length == 3
    with pytest.raises(InvalidParameter, match="horizon = 4, but nature 'replay' has 3 rounds"):
        Game(Constant(), Replay(str(file)), horizon=4, runs=range(1))


def test_a_replay_is_known_by_what_it_holds(tmp_path):
    one, two, three = (tmp_path / name for name in ("1.csv", "2.csv", "3.csv"))
    one.write_text("outcome\n0\n1\n")
    two.write_text("outcome\n0\n1\n")
    three.write_text("outcome\n1\n1\n")
    assert strategy_key(Replay(str(one))) == strategy_key(Replay(str(two)))
    assert strategy_key(Replay(str(one))) != strategy_key(Replay(str(three)))


def test_the_rain_of_seattle():
    pytest.importorskip("vega_datasets", reason="the extra 'data' is not installed")
    rain = Replay("package:vega_datasets/_data/seattle-weather.csv", outcome="precipitation", above=0.0)
    assert rain.length == 1461
    assert rain.outcomes.sum() == 623


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("outcome\n", "no rows"),
        ("Outcome\n1\n", r"no column 'outcome'; did you mean 'Outcome'"),
        ("a,b\n1,2\n", r"no column 'outcome'; known: a, b"),
        ("outcome\n1\n\n0\n", "line 3: column 'outcome' is missing"),
        ("outcome,x\n1,1\nNaN,2\n", "line 3: column 'outcome' is missing"),
        ("outcome\n1\nyes\n", "line 3: column 'outcome' is 'yes'; expected a number"),
        ("outcome\n1\ninf\n", "line 3"),
        ("outcome\n1\n0.5\n", "line 3: column 'outcome' holds 0.5; expected 0 or 1"),
        ("outcome\n1\n2\n", "holds 2; expected 0 or 1"),
        ('outcome\n"1\n', "is not a CSV file"),
    ],
)
def test_bad_files(tmp_path, text, said):
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(InvalidData, match=said):
        Replay(str(file))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidData, match="no such file"):
        Replay(str(tmp_path / "none.csv"))
    with pytest.raises(InvalidData, match="cannot be read"):
        Replay(str(tmp_path))
    binary = tmp_path / "binary.csv"
    binary.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(InvalidData, match=r"not a CSV file|no column"):
        Replay(str(binary))
    with pytest.raises(InvalidData, match="package 'no_such_package' is not installed"):
        Replay("package:no_such_package/a.csv")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bernoulli(1.01),
        lambda: Bernoulli(float("nan")),
        lambda: Drift(-0.1),
        lambda: Contrarian("all"),
        lambda: Replay(3),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidParameter):
        make()


def test_who_reveals_nothing_cannot_feed_who_needs_it():
    class Needy(Constant):
        needs = frozenset({"truth"})

    with pytest.raises(InvalidParameter, match="needs truth, which nature 'bernoulli' does not reveal"):
        Game(Needy(), Bernoulli(), horizon=5, runs=range(1))
    Game(Needy(), UniformTruth(), horizon=5, runs=range(1)).advance(5)


@pytest.mark.parametrize("cls", NATURES.values(), ids=list(NATURES))
def test_documented(cls):
    for section in ("Guarantee", "Information", "Source", "Deviations"):
        assert section in cls.__doc__
    assert set(FORECASTERS).isdisjoint(NATURES)
