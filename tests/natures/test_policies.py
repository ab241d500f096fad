"""Natures that are searched: the rules of `LogisticPolicy` and `Ratchet`."""

import math

import numpy as np
import pytest

from onlinecal.core.strategy import strategy_key
from onlinecal.forecasters import CDLMinimiser, Constant, EmpiricalMean
from onlinecal.measures import cdl
from onlinecal.natures import LogisticPolicy, Ratchet
from tests.bounds_in_games import measured
from tests.by_hand import noted
from tests.natures.quarters import Quarters

WHO = pytest.mark.parametrize(
    "forecaster", [Quarters(), Quarters(True), CDLMinimiser(), EmpiricalMean()], ids=strategy_key
)


def rounds_of(forecaster, nature, horizon, seed):
    """(law, q, count, bias, forecast, outcome, whether it is the first) of each round, run by run."""
    log, _ = noted(forecaster, nature, horizon, seed=seed)
    for r in range(3):
        count, bias = {}, {}
        for laws, q, forecast, outcome in log:
            p, y = float(forecast[r]), float(outcome[r])
            yield laws[r], q[r], count, bias, p, y, len(count) == 0
            count[p] = count.get(p, 0) + 1
            bias[p] = bias.get(p, 0.0) + (y - p)


@pytest.mark.parametrize(
    "nature", [LogisticPolicy(), LogisticPolicy((1, -2, 0.5, 3, -1, 2, -0.3, 0.4))], ids=["default", "own"]
)
@WHO
def test_logistic_policy_is_its_rule(forecaster, nature, seed):
    w = nature.weights
    for law, q, count, bias, *_ in rounds_of(forecaster, nature, 200, seed):
        a, b = min(law), max(law)
        n_a, n_b = count.get(a, 0), count.get(b, 0)
        d = 0.5 - (a + b) / 2
        x = (
            w[0] + w[1] * bias.get(a, 0.0) / math.sqrt(n_a + 1) + w[2] * -bias.get(b, 0.0) / math.sqrt(n_b + 1)
            + w[3] * d + w[4] * d * math.sqrt(n_a + 1) + w[5] * (law[a] - 0.5) + w[6] * (1 if d > 0 else -1)
            + w[7] * d * math.sqrt(n_b + 1)
        )  # fmt: skip
        assert q == pytest.approx(1 / (1 + math.exp(-min(max(8 * x, -700), 700))), abs=1e-9)


@pytest.mark.parametrize(
    "nature", [Ratchet(), Ratchet(0.3, -0.2, 0.4), Ratchet(low=0.1, width=0.0)], ids=strategy_key
)
@WHO
def test_ratchet_is_its_rule(forecaster, nature, seed):
    down, seen = {}, set()
    for law, q, count, bias, p, y, first in rounds_of(forecaster, nature, 300, seed):
        if first:
            down = {}
        low, high = min(law), max(law)
        middle = 0.5 * (low + high)
        above = middle > nature.kink
        v, top = high if above else low, nature.low + nature.width
        start = top <= 0
        expected = 0.5 if middle == nature.kink else float(down.get(v, start) != above)
        assert q == expected
        seen.add(expected)
        was = down.setdefault(p, start)
        if middle != nature.kink:
            scaled = (bias.get(p, 0.0) + (y - p)) * (1 if above else -1) / math.sqrt(count.get(p, 0) + 2)
            down[p] = scaled > nature.low if was else scaled >= top
    assert seen >= {0.0, 1.0} or isinstance(forecaster, EmpiricalMean | CDLMinimiser)


def test_at_the_kink_itself_it_tosses_a_coin():
    log, _ = noted(Constant(0.5), Ratchet(), 1)
    assert log[0].q.tolist() == [0.5] * 3


def test_large_weights_are_certain():
    log, _ = noted(Constant(0.2), LogisticPolicy((1000,) * 8), 50)
    assert all(np.isfinite(q).all() and (q >= 0).all() and (q <= 1).all() for _, q, _, _ in log)


@pytest.mark.slow
def test_the_figures_of_the_logistic_policy(seed):
    """Over 16 runs the standard errors are at most 0.02; the tolerance is five of them."""
    for horizon, share in {10**3: 0.31, 10**4: 0.31, 10**5: 0.23}.items():
        unit = math.sqrt(horizon) * math.log(horizon)
        found = measured(CDLMinimiser(), LogisticPolicy(), cdl, horizon, seed).mean() / unit
        assert found == pytest.approx(share, abs=0.1)
