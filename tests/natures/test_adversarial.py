"""Natures that see the law or the draw: their rules, what they force, and whom they do not break."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.guarantee import Forecasters
from onlinecal.core.strategy import strategy_key
from onlinecal.engine.game import Game
from onlinecal.engine.horizon import checkpoints
from onlinecal.forecasters import (
    AlmostOneStepAhead,
    Constant,
    EmpiricalMean,
    ForecastHedging,
)
from onlinecal.measures import MEASURES, cfdl, ece
from onlinecal.natures import (
    Bernoulli,
    Contrarian,
    Greedy,
)
from onlinecal.natures._levels import FIRST, HEAD, LEVELS, MASK, ROOM
from onlinecal.natures.adversarial import always_wrong
from tests.by_hand import noted, reciting
from tests.natures.quarters import Quarters


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
    # Against the law alone hedging stays below its bound and what chance may add to it, 950, with probability 1 − 1e-9.
    (bound,) = ForecastHedging().guarantees
    assert np.mean(totals["law"]) < bound.bound(8000) + bound.slack(8000, 8, 1e-9) < 950


def target_value(target, s, v, kink):
    match target:
        case "ece":
            return abs(s)
        case "square":
            return s * s
        case "kink":
            return abs(s) if v == kink else max(s, 0.0) if v < kink else max(-s, 0.0)


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize(
    "nature", [Greedy(), Greedy("square"), Greedy("kink"), Greedy("kink", kink=0.3)], ids=strategy_key
)
def test_greedy_is_the_rule_with_exact_fractions(nature, grid, seed):
    # All numbers but the kink 0.3 are quarters or sums of them, so that the player's floats are exact too.
    log, _ = noted(Quarters(grid), nature, 400, seed=seed)
    kink = Fraction(nature.kink)
    sums = [{} for _ in range(3)]
    for laws, q, forecast, outcome in log:
        for r in range(3):
            lead = Fraction(0)
            for v, w in laws[r].items():
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
    """½(2·0 + 1) + ½(2·(−3) − 1) < 0, and with five ones at 0: ½(2·5 + 1) + ½(2·(−3) − 1) > 0."""
    said, outcomes = [1.0] * 3 + [-0.0] * 5, [0] * 3 + [1] * 5
    for told, q in ((3, 0.0), (8, 1.0)):
        spec = reciting([*said[:told], {-0.0: 0.5, 1.0: 0.5}])
        game = Game(spec, Greedy("square"), horizon=9, runs=range(1))
        for outcome in outcomes[:told]:
            game.resolve(game.ask(), outcome=outcome)
        assert game.ask().probability == q


@pytest.mark.parametrize("target", ["ece", "square", "kink"])
def test_a_tie_is_a_coin(target):
    for p, q in ((0.5, 0.5), (0.25, 1.0)):
        assert noted(Constant(p), Greedy(target), 1)[0][0].q.tolist() == [q] * 3


def test_greedy_keeps_as_many_levels_as_there_are(seed):
    """Against a forecaster that never repeats itself the table grows, and no level is lost or mixed up."""
    horizon = 3000
    game = Game(EmpiricalMean(), Greedy(), horizon=horizon, runs=range(3), seed=seed)
    game.advance(horizon)
    memory = game.nature.memory
    assert memory.floats.shape[1] > FIRST
    for r, gamma in enumerate(game.gammas()):
        levels = memory.ints[r, LEVELS]
        values = memory.ints[r, HEAD : HEAD + levels].view(np.float64)
        order = np.argsort(values)
        assert (values[order] == gamma.predictions).all()
        bias = gamma.positives - gamma.counts * gamma.predictions
        assert memory.floats[r][:levels][order] == pytest.approx(bias, abs=1e-9)
        # The numbers of a level to come are there, too. Each level is at one place; half of the places are free.
        assert levels < memory.floats.shape[1] == memory.ints[r, ROOM]
        assert (memory.floats[r][levels:] == 0.0).all()
        table = memory.ints[r, HEAD + memory.ints[r, ROOM] :][: memory.ints[r, MASK] + 1]
        assert sorted(table[table > 0]) == list(range(1, levels + 1))
        assert 2 * levels <= len(table)


def test_greedy_with_cells_shares_one_bias_a_cell(seed):
    horizon, cells = 500, 5
    log, _ = noted(EmpiricalMean(), Greedy(cells=cells), horizon, seed=seed)
    bias = np.zeros((3, cells + 1))
    for laws, q, forecast, outcome in log:
        for r in range(3):
            (v,) = laws[r]
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


def test_what_is_always_wrong_is_forced_to_the_digit():
    """Contrarian against 0.3 and 0.5: the shares of T are the least that are possible, or T itself."""
    for p, quadratic in ((0.5, 0.25), (0.3, 0.49)):
        game = Game(oc.forecasters.Constant(p), Contrarian(), horizon=50, runs=range(1))
        game.advance(50)
        (gamma,) = game.gammas()
        found = {"ece": ece(gamma), "v_cdl": MEASURES["v_cdl"].function(gamma),
                 "u_calibration": MEASURES["u_calibration"].function(gamma),
                 "swap_regret[quadratic]": MEASURES["cfdl"].function(gamma)}  # fmt: skip
        assert found["swap_regret[quadratic]"] == pytest.approx(quadratic)
        for guarantee in always_wrong(Forecasters.EVERY, "here", told_late=True):
            assert 50 * found[guarantee.measure] >= guarantee.bound(50) - 1e-9
        assert found["v_cdl"] == pytest.approx(1.0)
