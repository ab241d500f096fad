"""Natures that do not look at the forecast: rules, randomness and files."""

import itertools
import math

import numpy as np
import pytest

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.forecasters import Constant, EmpiricalMean
from onlinecal.natures import (
    Drift,
    LogisticFeatures,
    Markov,
    Piecewise,
    RandomWalk,
    Replay,
    Sawtooth,
    Sight,
    Sinusoid,
)
from tests.examples import recording
from tests.rounds import question
from tests.test_natures import truths


def uniforms(horizon, runs=3, seed=0):
    """What a nature of `truths` draws."""
    return Stream(seed, ("nature",), range(runs)).block(horizon)


def test_sawtooth_is_drift_in_every_cycle():
    saw = truths(Sawtooth(4), 1000)[:, 0]
    drift = truths(Drift(), 250)[:, 0]
    assert saw == pytest.approx(np.tile(drift, 4), abs=1e-12)
    assert truths(Sawtooth(1), 60) == pytest.approx(truths(Drift(), 60), abs=1e-15)
    assert (truths(Sawtooth("T^(1/2)/5"), 100) == truths(Sawtooth(2), 100)).all()
    assert (truths(Sawtooth(0), 5) == 0).all()
    assert truths(Sawtooth(1e9), 1000).max() <= 1


def test_sinusoid():
    q = truths(Sinusoid(period=40, amplitude=0.3), 100)[:, 0]
    assert q == pytest.approx([0.5 + 0.3 * math.sin(2 * math.pi * t / 40) for t in range(1, 101)], abs=1e-12)
    full = truths(Sinusoid(), 1000)
    assert full.max() == pytest.approx(1, abs=1e-9)
    assert 0 <= full.min() <= 1e-9
    assert full.max() <= 1
    assert (full[:100] == truths(Sinusoid(100), 1000)[:100]).all()
    assert truths(Sinusoid(), 3).shape == (3, 3)  # the period is never below a round


def test_random_walk_steps_by_the_logit_and_turns_at_the_edge(seed):
    step, edge = 0.7, 0.1
    q = truths(RandomWalk(step, first=0.3, edge=edge), 3000, seed=seed)
    end = math.log((1 - edge) / edge)
    here = np.full(3, math.log(0.3 / 0.7))
    turned = 0
    for t, u in enumerate(uniforms(3000, seed=seed)):
        for r in range(3):
            here[r] += step if u[r] < 0.5 else -step
            if abs(here[r]) > end:
                here[r] = math.copysign(2 * end - abs(here[r]), here[r])
                turned += 1
        assert q[t] == pytest.approx(1 / (1 + np.exp(-here)), abs=1e-12)
    assert (
        turned > 0
    )  # within 7 steps of an edge, always: not to turn in 3000 rounds has probability below 1e-9
    assert edge - 1e-12 <= q.min() <= q.max() <= 1 - edge + 1e-12
    assert len({tuple(q[:, r]) for r in range(3)}) == 3


def test_random_walk_with_a_step_in_t():
    assert (truths(RandomWalk("T^(-1/2)"), 100) == truths(RandomWalk(0.1), 100)).all()


def test_piecewise_has_equal_pieces_of_fresh_levels(seed):
    q = truths(Piecewise(7), 3000, seed=seed)
    u = uniforms(3000, seed=seed)
    begins = [t for t in range(3000) if t == 0 or t * 7 // 3000 > (t - 1) * 7 // 3000]
    assert len(begins) == 7
    assert {b - a for a, b in itertools.pairwise(begins)} <= {428, 429}
    for a, b in zip(begins, [*begins[1:], 3000], strict=True):
        assert (q[a:b] == u[a]).all()
    assert (truths(Piecewise(), 500, seed=seed) == truths(Piecewise(10), 500, seed=seed)).all()
    assert (truths(Piecewise("T"), 50, seed=seed) == uniforms(50, seed=seed)).all()
    assert (
        truths(Piecewise(1000), 50, seed=seed) == uniforms(50, seed=seed)
    ).all()  # no more pieces than rounds


def test_piecewise_with_a_change_rate(seed):
    horizon, runs, rate = 4000, 4, 0.05
    q = truths(Piecewise(change_rate=rate), horizon, runs, seed)
    changed = q[1:] != q[:-1]
    # Changes are Binomial(15996, 0.05): by Hoeffding more than 0.026·15996 from the mean with probability < 1e-9.
    assert abs(changed.mean() - rate) < 0.026
    # About 800 fresh levels, at least 384 of them: Kolmogorov–Smirnov beyond 3.4/√n has probability below 2e-10.
    levels = np.sort(np.concatenate([q[1:][changed], q[0]]))
    gap = np.abs(levels - (np.arange(len(levels)) + 0.5) / len(levels)).max()
    assert gap < 3.4 / math.sqrt(len(levels)) + 0.5 / len(levels)
    assert (truths(Piecewise(change_rate=0), 100) == uniforms(100)[0]).all()
    assert (truths(Piecewise(change_rate=1), 100) == uniforms(100)).all()
    assert (truths(Piecewise(change_rate="5/T"), 100) == truths(Piecewise(change_rate=0.05), 100)).all()


class Recorder(Constant):
    """A constant that remembers all outcomes, to look at what a nature did."""

    def start(self, horizon, runs, stream):
        player = super().start(horizon, runs, stream)
        self.__dict__["outcomes"] = outcomes = []
        player.update = lambda round: outcomes.append(round.outcome)
        return player


def chain(nature, horizon, runs, seed):
    recorder = Recorder()
    Game(recorder, nature, horizon=horizon, runs=range(runs), seed=seed).advance(horizon)
    return np.array(recorder.outcomes)


def test_markov_outcomes_are_the_chain_that_the_engines_coins_make(seed):
    nature = Markov(0.2, 0.6)
    y = chain(nature, 500, 3, seed)
    u = Stream(seed, ("outcome", strategy_key(nature), "T=500"), range(3)).block(500)
    q = np.full(3, 0.25)
    for t in range(500):
        assert (y[t] == (u[t] < q)).all()
        q = np.where(y[t] == 1, 1 - 0.6, 0.2)
    assert nature.sight is Sight.HISTORY


def test_markov_at_its_ends(seed):
    still = chain(Markov(0, 0), 50, 40, seed)
    assert (still == still[0]).all()
    assert 0 < still[0].sum() < 40  # all of 40 fair coins alike: 2^−39
    assert (chain(Markov(1, 1), 50, 4, seed)[1:] != chain(Markov(1, 1), 50, 4, seed)[:-1]).all()
    assert chain(Markov(0, 1), 50, 4, seed).sum() == 0


def test_markov_does_not_look_at_the_forecast(seed):
    """Its outcomes are the same whoever forecasts."""
    games = [Game(f, Markov(), horizon=300, runs=range(4), seed=seed) for f in (Constant(), EmpiricalMean())]
    for game in games:
        game.advance(300)
    ones = [[gamma.positives.sum() for gamma in game.gammas()] for game in games]
    assert ones[0] == ones[1]


def test_features_give_the_truth_through_the_curve(seed):
    nature = LogisticFeatures(slope=-3.0, bend=2.0)
    player = nature.start(2000, 2, Stream(seed, ("nature",), range(2)))
    q = truths(nature, 2000, 2, seed)
    x = []
    for t in range(1, 2001):
        context = player.context(question(t))
        assert set(context) == {"features"} == nature.reveals
        x.append(context["features"].copy())
    x = np.array(x)
    assert q == pytest.approx((1 / (1 + np.exp(3 * x))) ** 2, abs=1e-12)
    # Kolmogorov–Smirnov for 4000 values: above 4/√4000 with probability below 2·exp(−32) < 3e-14.
    ranks = (np.sort(x.ravel()) + 1) / 2
    assert np.abs(ranks - (np.arange(4000) + 0.5) / 4000).max() < 4 / math.sqrt(4000)


def test_a_forecaster_cannot_change_the_truth_that_it_is_shown():
    player = LogisticFeatures().start(10, 2, Stream(0, ("nature",), range(2)))
    before = player.probability(question()).copy()
    player.context(question())["features"][:] = 0.0
    assert (player.probability(question()) == before).all()


# ---------------------------------------------------------------- files


def test_replay_reveals_the_base_forecast_only_where_it_is_named(tmp_path):
    file = str(recording(tmp_path))
    plain, based = Replay(file), Replay(file, base="base")
    assert plain.reveals == frozenset()
    assert based.reveals == {"base"}
    assert not hasattr(plain.start(10, 3, Stream(0, (), range(3))), "context")
    player = based.start(10, 3, Stream(0, (), range(3)))
    for t in (1, 2, 10):
        context = player.context(question(t))
        assert set(context) == {"base"}
        assert context["base"].tolist() == [((t - 1) * 13 % 21) / 20] * 3
    assert (truths(based, 100) == truths(plain, 100)).all()

    class Needy(Constant):
        needs = frozenset({"base"})

    with pytest.raises(InvalidParameter, match="needs base, which nature 'replay' does not reveal"):
        Game(Needy(), plain, horizon=5, runs=range(1))
    Game(Needy(), based, horizon=5, runs=range(1)).advance(5)


def test_a_replay_with_other_base_forecasts_or_times_is_another(tmp_path):
    keys = set()
    for i, rows in enumerate(["0,0.5,1", "0,0.25,1", "0,0.25,2"]):
        file = tmp_path / f"{i}.csv"
        file.write_text(f"outcome,p,t\n{rows}\n")
        keys.add(strategy_key(Replay(str(file), base="p", time="t")))
    assert len(keys) == 3


def test_times_are_numbers_or_dates(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(
        "outcome,n,day,moment\n0,1,1970-01-02,1970-01-01T12:00\n1,1,1970-01-02,1970-01-02T00:00:00Z\n"
    )
    assert Replay(str(file)).times is None
    assert Replay(str(file), time="n").times.tolist() == [1, 1]
    assert Replay(str(file), time="day").times.tolist() == [1, 1]
    assert Replay(str(file), time="moment").times.tolist() == [0.5, 1]


@pytest.mark.parametrize(
    ("row", "options", "said"),
    [
        ("1,1.01,3", {"base": "p"}, r"line 3: column 'p' holds 1.01; expected a forecast in \[0, 1\]"),
        ("1,-0.1,3", {"base": "p"}, "line 3: column 'p' holds -0.1"),
        ("1,,3", {"base": "p"}, "line 3: column 'p' is missing; expected a number"),
        ("1,x,3", {"base": "p"}, "line 3: column 'p' is 'x'"),
        ("1,1,3", {"base": "q"}, "no column 'q'"),
        ("1,1,1", {"time": "t"}, "line 3: column 't' goes back in time, from 2 to 1; expected rows in order"),
        ("1,1,soon", {"time": "t"}, "line 3: column 't' is 'soon'; expected a number or a date"),
        ("1,1,", {"time": "t"}, "line 3: column 't' is missing"),
        (
            "1,1,2020-01-01",
            {"time": "t"},
            "line 3: column 't' is '2020-01-01'; expected a number or a date like those",
        ),
    ],
)
def test_bad_columns(tmp_path, row, options, said):
    file = tmp_path / "bad.csv"
    file.write_text(f"outcome,p,t\n0,0.5,2\n{row}\n")
    with pytest.raises(InvalidData, match=said):
        Replay(str(file), **options)


def test_a_parquet_file_is_read_like_csv(tmp_path):
    pytest.importorskip("pyarrow", reason="the extra 'data' is not installed")
    import pandas as pd

    file = tmp_path / "a.parquet"
    frame = pd.DataFrame(
        {
            "outcome": [False, True, True],
            "p": [0.25, 0.5, 1.0],
            "mm": [0, 3, 1],
            "day": pd.to_datetime(["1970-01-01", "1970-01-02", "1970-01-02"]),
            "gap": [0.5, None, 0.5],
            "word": ["a", "b", "c"],
        }
    )
    frame.to_parquet(file)
    replay = Replay(str(file), base="p", time="day")
    assert replay.outcomes.tolist() == [0, 1, 1]
    assert replay.forecasts.tolist() == [0.25, 0.5, 1]
    assert replay.times.tolist() == [0, 1, 1]
    assert Replay(str(file), "mm", above=1).outcomes.tolist() == [0, 1, 0]
    csv = tmp_path / "a.csv"
    frame.assign(outcome=frame["outcome"].astype(int)).to_csv(csv, index=False)
    assert strategy_key(Replay(str(csv), base="p", time="day")) == strategy_key(replay)
    for column, said in [
        ("mm", "row 2: column 'mm' holds 3; expected 0 or 1"),
        ("gap", "row 2: column 'gap' is missing"),
        ("word", "row 1: column 'word' is 'a'"),
        ("day", "row 1: column 'day'"),
        ("none", "no column 'none'"),
    ]:
        with pytest.raises(InvalidData, match=said):
            Replay(str(file), column)
    frame[:0].to_parquet(file)
    with pytest.raises(InvalidData, match="no rows"):
        Replay(str(file))
    file.write_text("outcome\n0\n")
    with pytest.raises(InvalidData, match="is not a Parquet file"):
        Replay(str(file))


def test_parquet_without_its_reader_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    file = tmp_path / "a.pq"
    with pytest.raises(InvalidData, match="no such file"):
        Replay(str(file))
    file.write_bytes(b"PAR1")
    with pytest.raises(
        InvalidData, match=r"pyarrow, which is not installed; install it \(pip install pyarrow"
    ):
        Replay(str(file))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sawtooth(-1),
        lambda: Sawtooth("T^(1/0)"),
        lambda: Sawtooth(float("inf")),
        lambda: Sinusoid(0.5),
        lambda: Sinusoid(amplitude=0.6),
        lambda: Sinusoid("__import__('os')"),
        lambda: RandomWalk(0),
        lambda: RandomWalk(5),
        lambda: RandomWalk(edge=0),
        lambda: RandomWalk(first=0.001),
        lambda: RandomWalk(True),
        lambda: Piecewise(0),
        lambda: Piecewise(5, 0.1),
        lambda: Piecewise(change_rate=1.5),
        lambda: Piecewise(change_rate="T"),
        lambda: Markov(1.5),
        lambda: Markov(p10=float("nan")),
        lambda: LogisticFeatures(slope=1e3),
        lambda: LogisticFeatures(bend=0),
        lambda: Replay("a.csv", base=3),
        lambda: Replay("a.csv", time=3),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidParameter):
        make()


def test_an_expression_that_is_out_of_range_only_at_this_horizon():
    with pytest.raises(InvalidParameter, match=r"change_rate = '20/T', which is 2 at T = 10; expected"):
        Game(Constant(), Piecewise(change_rate="20/T"), horizon=10, runs=range(1))
