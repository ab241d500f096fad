"""Natures that look at the past or at the law, and natures made of others."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from onlinecal.core.errors import InvalidForecast, InvalidParameter, ScenarioError, SightError
from onlinecal.core.strategy import strategy_key, strategy_label
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.forecasters import (
    AlmostOneStepAhead,
    Constant,
    EmpiricalMean,
    Forecaster,
    ForecastHedging,
    Law,
)
from onlinecal.measures import MEASURES, cfdl, ece, smooth_ce
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
    Sidestepping,
    Sight,
    Switch,
    UniformTruth,
)
from onlinecal.natures._levels import FIRST
from onlinecal.scenario import load
from tests.examples import recording
from tests.rounds import heard, question, stated


@dataclass(frozen=True)
class Noted(Nature):
    """Plays another nature and writes down what the law was, what it answered and how it ended."""

    inner: Nature

    @property
    def sight(self):
        return max(self.inner.sight, Sight.LAW)

    def start(self, horizon, runs, stream):
        player, log = self.inner.start(horizon, runs, stream), []
        object.__setattr__(self, "log", log)

        class Player:
            def probability(self, round):
                q = np.broadcast_to(player.probability(round), runs).copy()
                log.append([round.law.support, round.law.weights, q])
                return q

            def update(self, round):
                log[-1] += [round.forecast, round.outcome]
                if hasattr(player, "update"):
                    player.update(round)

        return Player()


def noted(forecaster, nature, horizon, runs=3, seed=0):
    """Rounds of (support, weights, q, forecast, outcome), each by run."""
    spec = Noted(nature)
    game = Game(forecaster, spec, horizon=horizon, runs=range(runs), seed=seed)
    game.advance(horizon)
    return spec.log, game


# ---------------------------------------------------------------- greedy


def target_value(target, s, v, kink):
    match target:
        case "ece":
            return abs(s)
        case "square":
            return s * s
        case "kink":
            return abs(s) if v == kink else max(s, 0.0) if v < kink else max(-s, 0.0)


@dataclass(frozen=True)
class Quarters(Forecaster):
    """Random laws over the quarters, as exact floats, some with an atom without weight, and one written −0."""

    grid: bool = False

    def start(self, horizon, runs, stream):
        return _Quarters(runs, stream.block(horizon), self.grid)


class _Quarters:
    def __init__(self, runs, uniforms, grid):
        self.law = Law(runs, 3, np.array([0.0, 0.25, 0.5, 0.75, 1.0]) if grid else None)
        self.uniforms, self.t = uniforms, 0

    def forecast(self, round):
        u = self.uniforms[self.t]
        first = np.floor(u * 3).astype(int)
        for j in range(3):
            self.law.atoms[:, j] = first + j if self.law.grid is not None else (first + j) / 4
        if self.law.grid is None:
            self.law.atoms[self.law.atoms == 0] = -0.0
        self.law.weights[:] = np.where((u < 0.5)[:, None], [0.5, 0.25, 0.25], [0.25, 0.0, 0.75])
        return self.law

    def update(self, round):
        self.t += 1


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize(
    "nature", [Greedy(), Greedy("square"), Greedy("kink"), Greedy("kink", kink=0.3)], ids=strategy_key
)
def test_greedy_is_the_rule_with_exact_fractions(nature, grid, seed):
    # All numbers but the kink 0.3 are quarters or sums of them, so that the player's floats are exact too.
    log, _ = noted(Quarters(grid), nature, 400, seed=seed)
    kink = Fraction(nature.kink)
    sums = [{} for _ in range(3)]
    for support, weights, q, forecast, outcome in log:
        for r in range(3):
            lead = Fraction(0)
            for v, w in zip(support[r].tolist(), weights[r].tolist(), strict=True):
                c = kink if nature.target == "kink" else Fraction(v)
                s = sums[r].get(v, Fraction(0))
                up, down = (target_value(nature.target, s + y - c, Fraction(v), kink) for y in (1, 0))
                lead += Fraction(w) * (up - down)
            if nature.kink == 0.3 and 0 < abs(lead) < 1e-9:
                continue  # 0.3 is not exact: a tie may go either way
            assert q[r] == (0.5 if lead == 0 else float(lead > 0))
            v = float(forecast[r])
            c = kink if nature.target == "kink" else Fraction(v)
            sums[r][v] = sums[r].get(v, Fraction(0)) + int(outcome[r]) - c


def test_minus_zero_is_the_level_zero():
    law = Law(1, 2)
    law.atoms[:] = [-0.0, 1.0]
    round = stated(law)
    player = Greedy("square").start(10, 1, Stream(0, ("nature",), range(1)))
    # ½(2·0 + 1) + ½(2·(−3) − 1) < 0, and with five ones at 0: ½(2·5 + 1) + ½(2·(−3) − 1) > 0.
    for _ in range(3):
        player.update(heard(1.0, 0, Sight.LAW))
    assert player.probability(round) == 0.0
    for _ in range(5):
        player.update(heard(0.0, 1, Sight.LAW))
    assert player.probability(round) == 1.0


@pytest.mark.parametrize("target", ["ece", "square", "kink"])
def test_a_tie_is_a_coin(target):
    log, _ = noted(Constant(0.5), Greedy(target), 1)
    assert log[0][2].tolist() == [0.5] * 3
    log, _ = noted(Constant(0.25), Greedy(target), 1)
    assert log[0][2].tolist() == [1.0] * 3


def test_greedy_keeps_as_many_levels_as_there_are(seed):
    """Against a forecaster that never repeats itself the table grows, and no level is lost or mixed up."""
    horizon = 3000
    game = Game(EmpiricalMean(), Greedy(), horizon=horizon, runs=range(3), seed=seed)
    game.advance(horizon)
    memory = game.nature.memory
    assert memory.floats.shape[1] > FIRST
    for r, gamma in enumerate(game.gammas()):
        keys = memory.ints[r, 1:]
        kept = keys >= 0
        values = keys[kept].view(np.float64)
        order = np.argsort(values)
        assert (values[order] == gamma.predictions).all()
        bias = gamma.positives - gamma.counts * gamma.predictions
        assert memory.floats[r][kept][order] == pytest.approx(bias, abs=1e-9)
        assert memory.ints[r, 0] == kept.sum() <= memory.floats.shape[1] / 2


def test_greedy_with_cells_shares_one_bias_a_cell(seed):
    horizon, cells = 500, 5
    log, _ = noted(EmpiricalMean(), Greedy(cells=cells), horizon, seed=seed)
    bias = np.zeros((3, cells + 1))
    for support, _, q, forecast, outcome in log:
        for r in range(3):
            v = support[r, 0]
            b = bias[r, int(v * cells)]
            lead = abs(b + 1 - v) - abs(b - v)
            if abs(lead) > 1e-9:
                assert q[r] == float(lead > 0)
            bias[r, int(forecast[r] * cells)] += outcome[r] - forecast[r]


@pytest.mark.parametrize(
    "forecaster", [Constant(0.5), Constant(0.2), EmpiricalMean(), AlmostOneStepAhead()], ids=strategy_key
)
def test_greedy_hurts_every_deterministic_forecaster(forecaster, seed):
    for nature in (Greedy(), Greedy("square")):
        assert nature.guarantees
        game = Game(forecaster, nature, horizon=2000, runs=range(3), seed=seed)
        for t in (1, 2, 10, 100, 2000):
            game.advance(t)
            for g in nature.guarantees:
                for gamma in game.gammas():
                    forced = cfdl(gamma) if "[" in g.measure else MEASURES[g.measure].function(gamma)
                    assert t * forced >= g.bound(t) - 1e-9, str(g)
    assert Greedy("kink").guarantees == Greedy(cells=3).guarantees == ()


def test_greed_does_not_break_forecast_hedging_and_a_coin_does_not_do_what_greed_does(seed):
    hedged = ForecastHedging()
    (guarantee,) = hedged.guarantees
    totals = []
    for nature in (Greedy(), Bernoulli()):
        game = Game(hedged, nature, horizon=8000, runs=range(8), seed=seed)
        game.advance(8000)
        totals.append([8000 * ece(gamma) for gamma in game.gammas()])
    # The bound is √2 times one on a potential with a small drift and steps of at most √2; by Azuma–Hoeffding the mean
    # of 8 runs is more than 2√(2·8000·ln(1e9)/8) = 407 above it with probability below 1e-9.
    assert np.mean(totals[0]) < guarantee.bound(8000) + 407
    # The law of the empirical mean is one point: greed gets at least T/2 where a coin gets about √T.
    fooled = Game(EmpiricalMean(), Greedy(), horizon=2000, runs=range(2), seed=seed)
    calm = Game(Constant(0.5), Bernoulli(), horizon=2000, runs=range(2), seed=seed)
    fooled.advance(2000)
    calm.advance(2000)
    assert min(map(ece, fooled.gammas())) >= 0.5 - 1e-9
    # |Σ(y − ½)| > 300 of 2000 coins has probability below 2·exp(−2·300²/2000) < 2e-39.
    assert max(map(ece, calm.gammas())) < 0.15


# ---------------------------------------------------------------- early stopping


@pytest.mark.parametrize("forecaster", [Constant(0.5), EmpiricalMean(), ForecastHedging()], ids=strategy_key)
def test_early_stopping_is_its_rule_and_its_bias_stays(forecaster, seed):
    log, game = noted(forecaster, EarlyStopping(8), 2000, runs=4, seed=seed)
    total, bit = np.zeros(4), [None] * 4
    for _, _, q, forecast, outcome in log:
        for r in range(4):
            assert q[r] == (0.5 if bit[r] is None else bit[r])
            before = abs(total[r])
            total[r] += outcome[r] - forecast[r]
            if bit[r] is None:
                if abs(total[r]) >= 8:
                    bit[r] = 1.0 if total[r] > 0 else 0.0
            else:
                assert abs(total[r]) >= before - 1e-9
    for r, gamma in enumerate(game.gammas()):
        if bit[r] is not None:
            assert 2000 * smooth_ce(gamma) >= 8 - 1e-6
    if forecaster == Constant(0.5):
        # A fair walk with steps ½ stays within ±8 for 2000 rounds with probability below 2·cos(π/32)^2000 < 1e-3 a run;
        # that none of four leaves has probability below 1e-12.
        assert any(b is not None for b in bit)


def test_early_stopping_at_the_cube_root(seed):
    game = Game(Constant(0.5), EarlyStopping(), horizon=8000, runs=range(4), seed=seed)
    game.advance(8000)
    assert game.nature.memory.shared == pytest.approx(20)


# ---------------------------------------------------------------- sidestepping


def plain_next(signs, here):
    """The next cell of sidestepping, from its description; and the signs that are left."""
    free = [i for i, sign in enumerate(signs) if sign == 0] or list(range(len(signs)))
    harm = [sum(s == 1 for s in signs[i + 1 :]) + sum(s == -1 for s in signs[:i]) for i in range(len(signs))]
    least = min(harm[i] for i in free)
    best = [i for i in free if harm[i] == least]
    here = best[len(best) // 2]
    left = [
        0 if i == here or (i > here and s == 1) or (i < here and s == -1) else s for i, s in enumerate(signs)
    ]
    return here, left


@pytest.mark.parametrize("forecaster", [Constant(0.5), EmpiricalMean(), ForecastHedging()], ids=strategy_key)
@pytest.mark.parametrize("cells", [1, 2, 9])
def test_sidestepping_is_its_rule(forecaster, cells, seed):
    horizon, runs = 1500, 3
    log, _ = noted(forecaster, Sidestepping(cells), horizon, runs, seed)
    longest, width = math.ceil(horizon / cells), 0.5 / cells
    for r in range(runs):
        signs, here, rounds, bias = [0] * cells, (cells - 1) // 2, 0, 0.0
        for _, _, q, forecast, outcome in log:
            theta = 0.25 + width * (here + 0.5)
            assert q[r] == pytest.approx(theta, abs=1e-15)
            rounds += 1
            if abs(forecast[r] - q[r]) <= width:
                bias += outcome[r] - forecast[r]
            if rounds >= longest or abs(bias) >= math.sqrt(longest):
                if abs(bias) >= math.sqrt(longest):
                    signs[here] = 1 if bias > 0 else -1
                here, signs = plain_next(signs, here)
                rounds, bias = 0, 0.0


def test_sidestepping_goes_where_no_sign_is_repaired():
    assert plain_next([0, 0, 1, 0, 0], 2) == (4, [0, 0, 1, 0, 0])
    assert plain_next([0, 0, -1, 0, 0], 2) == (1, [0, 0, -1, 0, 0])
    assert plain_next([0, 1, 1, -1, 0], 2)[0] in (0, 4)  # no place is free of harm any more
    from onlinecal.natures.adaptive import _step_aside

    rng = np.random.default_rng(0)
    for _ in range(300):
        signs = rng.integers(-1, 2, rng.integers(1, 9)).astype(np.int8)
        here, left = plain_next(signs.tolist(), 0)
        assert _step_aside(signs, 0) == here
        assert signs.tolist() == left


# ---------------------------------------------------------------- compositions


def coins(nature, forecaster, horizon, seed, runs=3):
    return np.array([entry[2] for entry in noted(forecaster, nature, horizon, runs, seed)[0]])


def test_mixture_weighs_what_its_parts_say(seed):
    mix = Mixture((Bernoulli(0.2), Drift(), Contrarian()), (1, 2, 1))
    q = coins(mix, EmpiricalMean(), 200, seed)
    parts, _ = noted(EmpiricalMean(), mix, 200, seed=seed)
    for t, (support, weights, *_) in enumerate(parts, start=1):
        against = (support * weights).sum(axis=1) < 0.5
        assert q[t - 1] == pytest.approx(0.25 * 0.2 + 0.5 * (t - 0.5) / 200 + 0.25 * against, abs=1e-12)
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
    for _, _, q, forecast, outcome in log[1000:]:
        assert ((q != 0.5) == stopped).all()
        total += outcome - forecast
        stopped |= np.abs(total) >= 5


def test_switch_reveals_what_both_reveal(seed):
    assert Switch(UniformTruth(), UniformTruth()).reveals == {"truth"}
    assert Switch(UniformTruth(), Bernoulli()).reveals == frozenset()
    player = Switch(UniformTruth(), UniformTruth(), 5).start(10, 2, Stream(seed, ("nature",), range(2)))
    shown = [player.context(question(t))["truth"].copy() for t in range(1, 11)]
    assert len({tuple(truth) for truth in shown}) == 10


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

    def start(self, horizon, runs, stream):
        takes = self.takes

        class Player:
            def probability(self, round):
                if takes == "law":
                    return 0.5 * float(round.law.mean[0] >= 0)
                return 0.5 if takes == "nothing" else 0.5 + 0 * float(np.sum(getattr(round, takes)))

        class HearingPlayer(Player):
            def update(self, round):
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
            SightError, match=f"'nosy' asked for the .* declares sight {Sight(declared).name}"
        ):
            play(Nosy(declared, takes))
    play(Nosy(0, "nothing"))
    with pytest.raises(InvalidForecast, match="heard of the past"):
        play(Nosy(1, "nothing"))


def test_natures_of_history_do_not_see_the_law():
    for nature in (Markov(), EarlyStopping(), Sidestepping()):
        assert nature.sight is Sight.HISTORY
        game = Game(Constant(), nature, horizon=5, runs=range(1))
        game.advance(3)
        open = game.ask()
        for what in ("law", "forecast"):
            with pytest.raises(SightError, match="expected sight"):
                getattr(open.nature, what)
        with pytest.raises(SightError, match="before the outcome was known"):
            open.nature.outcome  # noqa: B018
        game.resolve(open)
        assert open.nature.forecast.tolist() == [0.5]
        assert open.nature.outcome[0] in (0, 1)
        with pytest.raises(SightError, match="expected sight LAW"):
            open.nature.law  # noqa: B018


@pytest.mark.parametrize("wrong", [1.5, -0.5, float("nan"), "much", [0.5, 0.5, 0.5]])
def test_a_wrong_part_does_not_hide_in_a_mixture(wrong):
    class Wrong(Nature):
        def start(self, horizon, runs, stream):
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
            '"sidestepping"',
            "then = 'sidestepping'; expected a nature, or in a scenario",
        ),
    ]:
        assert good in text
        file.write_text(text.replace(good, bad))
        with pytest.raises(ScenarioError, match=said):
            load(file)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Greedy("cdl"),
        lambda: Greedy(kink=1.5),
        lambda: Greedy(cells=0),
        lambda: Greedy(cells=2.0),
        lambda: EarlyStopping(0),
        lambda: EarlyStopping("T^(1/0)"),
        lambda: Sidestepping(0),
        lambda: Sidestepping("__import__('os')"),
        lambda: Mixture(()),
        lambda: Mixture("bernoulli"),
        lambda: Mixture((Bernoulli(), Constant())),
        lambda: Mixture((Bernoulli(),), (0,)),
        lambda: Mixture((Bernoulli(), Drift()), (1,)),
        lambda: Mixture((Bernoulli(), Drift()), (1, -1)),
        lambda: Switch(Bernoulli(), Bernoulli),
        lambda: Switch(Bernoulli(), Drift(), -1),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidParameter):
        make()
