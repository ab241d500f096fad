"""Natures made of others: rules, sight, names and files."""

from dataclasses import dataclass

import numpy as np
import pytest

from onlinecal.core.errors import InvalidForecast, InvalidParameter, ScenarioError
from onlinecal.core.strategy import strategy_key, strategy_label
from onlinecal.engine.game import Game
from onlinecal.forecasters import (
    Constant,
    EmpiricalMean,
)
from onlinecal.natures import (
    Bernoulli,
    Contrarian,
    Drift,
    EarlyStopping,
    Greedy,
    Markov,
    Mixture,
    Nature,
    RandomWalk,
    Replay,
    Sight,
    Switch,
    UniformTruth,
)
from onlinecal.scenario import load
from tests.by_hand import noted, revealed
from tests.examples import recording


def coins(nature, forecaster, horizon, seed, runs=3):
    return np.array([round.q for round in noted(forecaster, nature, horizon, runs, seed)[0]])


def test_mixture_weighs_what_its_parts_say(seed):
    mix = Mixture((Bernoulli(0.2), Drift(), Contrarian()), (1, 2, 1))
    for t, round in enumerate(noted(EmpiricalMean(), mix, 200, seed=seed)[0], start=1):
        against = np.array([sum(v * w for v, w in law.items()) < 0.5 for law in round.laws])
        assert round.q == pytest.approx(0.25 * 0.2 + 0.5 * (t - 0.5) / 200 + 0.25 * against, abs=1e-12)
    assert (coins(Mixture((Bernoulli(1), Bernoulli(1), Bernoulli(1))), Constant(), 5, seed) <= 1).all()


def test_parts_of_one_kind_have_randomness_of_their_own(seed):
    both = coins(Mixture((UniformTruth(), UniformTruth())), Constant(), 2000, seed)
    one = coins(Mixture((UniformTruth(),)), Constant(), 2000, seed)
    # The mean of two independent uniforms has variance 1/24, of two equal ones 1/12. The squared deviation is in
    # [0, 1/4] and 6000 of them are averaged: off by 1/60 with probability below 2·exp(−2·6000·(4/60)²) < 1e-22.
    assert abs(((both - 0.5) ** 2).mean() - 1 / 24) < 1 / 60
    assert abs(((one - 0.5) ** 2).mean() - 1 / 12) < 1 / 60


def test_switch_plays_two_games_one_after_the_other(seed):
    q = coins(Switch(Drift(), Drift(1, 0), "T/4"), Constant(), 400, seed)[:, 0]
    assert q[:100] == pytest.approx((np.arange(100) + 0.5) / 100, abs=1e-12)
    assert q[100:] == pytest.approx(1 - (np.arange(300) + 0.5) / 300, abs=1e-12)
    assert coins(Switch(Bernoulli(0.1), Bernoulli(0.9), 0), Constant(), 3, seed)[:, 0].tolist() == [0.9] * 3
    assert coins(Switch(Bernoulli(0.1), Bernoulli(0.9), 99), Constant(), 3, seed)[:, 0].tolist() == [0.1] * 3


def test_switch_lets_the_second_hear_of_its_own_rounds_only(seed):
    log, _ = noted(Constant(0.5), Switch(Bernoulli(0.5), EarlyStopping(5), 1000), 2000, 4, seed)
    total = np.zeros(4)
    stopped = np.zeros(4, bool)
    for _, q, forecast, outcome in log[1000:]:
        assert ((q != 0.5) == stopped).all()
        total += outcome - forecast
        stopped |= np.abs(total) >= 5


def test_switch_reveals_what_both_reveal(seed):
    assert Switch(UniformTruth(), UniformTruth()).reveals == {"truth"}
    assert Switch(UniformTruth(), Bernoulli()).reveals == frozenset()
    shown = revealed(Switch(UniformTruth(), UniformTruth(), 5), 10, seed=seed)["truth"]
    assert len(set(shown.ravel().tolist())) == 30


def test_sight_is_that_of_the_most_seeing_part():
    for parts, sight in [
        ((Bernoulli(), RandomWalk()), Sight.NOTHING),
        ((Bernoulli(), Markov()), Sight.HISTORY),
        ((Markov(), Greedy()), Sight.LAW),
        ((Contrarian("draw"), Greedy()), Sight.DRAW),
    ]:
        assert Mixture(parts).sight is sight
        assert Switch(*parts).sight is sight


@dataclass(frozen=True)
class Nosy(Nature):
    """Declares one sight and takes another."""

    declared: int
    takes: str

    @property
    def sight(self):
        return Sight(self.declared)

    def start(self, horizon, stream):
        takes = self.takes

        class Player:
            def probability(self, round):
                if takes != "nothing":
                    getattr(round, takes)
                return 0.5

        class HearingPlayer(Player):
            def update(self, forecast, outcome):
                raise AssertionError("heard of the past")

        return HearingPlayer() if self.sight >= Sight.HISTORY else Player()


@pytest.mark.parametrize(
    "make",
    [lambda part: Mixture((Contrarian("draw"), part)), lambda part: Switch(Contrarian("draw"), part, 1)],
)
def test_a_part_sees_no_more_than_it_declares_beside_one_that_sees_all(make):
    def play(part):
        Game(Constant(), make(part), horizon=4, runs=range(2)).advance(4)

    for declared, takes in [(0, "law"), (1, "law"), (0, "forecast"), (2, "forecast")]:
        with pytest.raises(
            InvalidForecast, match=f"'nosy' asked for the .* declares sight {Sight(declared).name}"
        ):
            play(Nosy(declared, takes))
    play(Nosy(0, "nothing"))
    with pytest.raises(InvalidForecast, match="heard of the past"):
        play(Nosy(1, "nothing"))


@pytest.mark.parametrize("wrong", [1.5, -0.5, float("nan"), "much", [0.5, 0.5, 0.5]])
def test_a_wrong_part_does_not_hide_in_a_mixture(wrong):
    class Wrong(Nature):
        def start(self, horizon, stream):
            class Player:
                def probability(self, round):
                    return wrong

            return Player()

    for nature in (Mixture((Bernoulli(), Wrong())), Switch(Bernoulli(), Wrong(), 2)):
        with pytest.raises(InvalidForecast, match=r"stated q = .* in round"):
            Game(Constant(), nature, horizon=5, runs=range(2)).advance(5)


def test_recorded_streams_in_compositions(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("outcome\n0\n1\n1\n")
    replay = Replay(str(file))
    assert Mixture((Bernoulli(), replay)).length == 3
    assert Mixture((Bernoulli(),)).length is None
    with pytest.raises(InvalidParameter, match="horizon = 4, but nature 'mixture' has 3 rounds"):
        Game(Constant(), Mixture((Bernoulli(), replay)), horizon=4, runs=range(1))
    assert coins(Switch(Bernoulli(0.5), replay, 2), Constant(), 5, 0)[:, 0].tolist() == [0.5, 0.5, 0, 1, 1]
    with pytest.raises(InvalidParameter, match="switch: 4 of 6 rounds fall to then = replay, which has 3"):
        Game(Constant(), Switch(Bernoulli(), replay, 2), horizon=6, runs=range(1))


def test_nested_natures_have_keys_labels_and_tables(tmp_path):
    nature = Mixture((Bernoulli(0.25), Switch(Drift(), Greedy("square"))), (3, 1))
    assert strategy_key(nature) == (
        'mixture(natures=[bernoulli(q=0.25), switch(at="T/2", first=drift(first=0, last=1), '
        'then=greedy(cells=null, kink=0.5, target="square"))], weights=[3, 1])'
    )
    assert strategy_key(nature) != strategy_key(Mixture((Bernoulli(0.25), Switch(Drift(), Greedy())), (3, 1)))
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
