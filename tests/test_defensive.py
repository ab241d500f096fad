"""Defensive forecasting: its theorem with equality, and two controls that break it."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinecal.errors import InvalidParameter
from onlinecal.forecasters import DefensiveForecasting, Law
from onlinecal.forecasters.base import ForecasterView
from onlinecal.game import Game, checkpoints
from onlinecal.measures import kernel_ce, smooth_ce
from onlinecal.natures import Bernoulli, Contrarian, Drift, UniformTruth
from onlinecal.strategy import strategy_key

NATURES = [
    Bernoulli(0.5),
    Bernoulli(0.03),
    Bernoulli(1.0),
    Drift(),
    Drift(1.0, 0.2),
    UniformTruth(),
    Contrarian(),
]
KERNELS = [("laplace", 1.0), ("laplace", 0.1), ("gaussian", 1.0), ("gaussian", 0.1)]
#: what rounding may add to a ratio that theory says is at most 1
ROUNDING = 1e-9


def kernel_sum(past, p, kernel, scale):
    """S(p) by its definition."""
    d = np.array([s for s, _ in past]) - p
    k = np.exp(-np.abs(d) / scale) if kernel == "laplace" else np.exp(-((d / scale) ** 2))
    return float(k @ np.array([y - s for s, y in past])) + 0.5 - p if past else 0.5 - p


@pytest.mark.parametrize(("kernel", "scale"), KERNELS)
@given(st.lists(st.integers(0, 1), min_size=1, max_size=120))
@settings(max_examples=30)
def test_each_forecast_is_a_root_or_an_end(kernel, scale, outcomes):
    player = DefensiveForecasting(kernel, scale).start(40, 1, None)  # blocks of 16 points: they split
    past = []
    for t, y in enumerate(outcomes[:40]):
        p = float(player.forecast(ForecasterView(t + 1, {})).atoms[0, 0])
        s = kernel_sum(past, p, kernel, scale)
        assert (
            (p == 0.0 and s <= 1e-12)
            or (p == 1.0 and s >= -1e-12)
            or abs(s) < 1e-12 * (t + 1) / scale + 1e-13
        )
        player.update(np.array([p]), np.array([y]))
        past.append((p, y))


def largest_ratio(forecaster, nature, horizon, seed, runs=4):
    """The largest T·kCE / √(Σp(1−p)) over runs and checkpoints."""
    game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed)
    worst = 0.0
    for t in checkpoints(horizon):
        game.advance(t)
        for gamma, certificate in zip(
            game.gammas(), game.certificates()["kernel_ce_certificate"], strict=True
        ):
            total = t * kernel_ce(gamma, kernel=forecaster.kernel, scale=forecaster.scale)
            assert certificate <= math.sqrt(t) / 2 + ROUNDING
            worst = max(worst, total / certificate)
            if (forecaster.kernel, forecaster.scale) == ("laplace", 1.0):
                assert t * smooth_ce(gamma) <= 1.5 * math.sqrt(t) * (1 + ROUNDING)
    return worst


@pytest.mark.parametrize(("kernel", "scale"), KERNELS)
@pytest.mark.parametrize("nature", NATURES, ids=strategy_key)
def test_it_keeps_its_word(nature, kernel, scale, seed):
    assert largest_ratio(DefensiveForecasting(kernel, scale), nature, 2000, seed) <= 1 + ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("nature", NATURES, ids=strategy_key)
def test_it_keeps_its_word_at_scale(nature, seed, full):
    assert largest_ratio(DefensiveForecasting(), nature, 100_000 if full else 20_000, seed) <= 1 + ROUNDING


@dataclass(frozen=True)
class Control(DefensiveForecasting):
    """Plays a worse point: a root to one digit after `digits`, or of S without the term ½(1 − 2p)."""

    digits: int | None = None

    def start(self, horizon, runs, stream):
        return _ControlPlayer(runs, self.digits)


class _ControlPlayer:
    def __init__(self, runs, digits):
        self.law, self.digits, self.past, self.variance = Law(runs, 1), digits, [[] for _ in range(runs)], 0.0

    def forecast(self, view):
        for run, past in enumerate(self.past):
            drop = 0.0 if self.digits is not None else 1.0  # K29 without the star

            def s(p, past=past, drop=drop):
                return kernel_sum(past, p, "laplace", 1.0) - drop * (0.5 - p)

            low, high = 0.0, 1.0
            if s(0.0) <= 0 or s(1.0) >= 0:
                low = high = 0.0 if s(0.0) <= 0 else 1.0
            for _ in range(50):
                middle = (low + high) / 2
                low, high = (middle, high) if s(middle) > 0 else (low, middle)
            self.law.atoms[run, 0] = (
                low if self.digits is None else math.floor(low * 10**self.digits) / 10**self.digits
            )
        return self.law

    def update(self, forecast, outcome):
        self.variance = self.variance + forecast * (1 - forecast)
        for past, p, y in zip(self.past, forecast.tolist(), outcome.tolist(), strict=True):
            past.append((p, y))

    def certificates(self):
        return {"kernel_ce_certificate": np.sqrt(np.minimum(self.variance, np.inf)) + 1e-300}


@pytest.mark.parametrize("digits", [1, None])
def test_the_controls_break_it(digits, seed):
    """A root to one digit, and plain K29. Against a contrarian, which uses every slip; the game is deterministic."""
    assert largest_ratio(Control(digits=digits), Contrarian(), 400, seed, runs=1) > 1.2


@pytest.mark.parametrize(
    "make", [lambda: DefensiveForecasting("matern"), lambda: DefensiveForecasting(scale=0.01)]
)
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidParameter):
        make()


def test_guarantees_are_named_for_their_kernel():
    measures = [g.measure for g in DefensiveForecasting("gaussian", 0.5).guarantees]
    assert measures == ["kernel_ce(kernel=gaussian, scale=0.5)"]
    assert [g.measure for g in DefensiveForecasting().guarantees] == ["kernel_ce", "smooth_ce"]
