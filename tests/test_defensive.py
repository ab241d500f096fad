"""Defensive forecasting: its roots and parameters; its theorem is in test_every_sequence.py."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter
from onlinecal.forecasters import DefensiveForecasting
from onlinecal.natures import Bernoulli, Contrarian, Drift, UniformTruth
from tests.rounds import asked, played

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
        question = asked(t + 1)
        p = float(player.forecast(question).atoms[0, 0])
        s = kernel_sum(past, p, kernel, scale)
        assert (
            (p == 0.0 and s <= 1e-12)
            or (p == 1.0 and s >= -1e-12)
            or abs(s) < 1e-12 * (t + 1) / scale + 1e-13
        )
        player.update(played(player.law, p, y, question=question))
        past.append((p, y))


@pytest.mark.parametrize(("kernel", "scale"), KERNELS)
def test_more_rounds_than_the_horizon_find_room(kernel, scale, seed):
    """A player that was started for 10 rounds plays 600: the same as one that was started for them."""
    rng = np.random.default_rng(seed)
    short, long = (DefensiveForecasting(kernel, scale).start(horizon, 3, None) for horizon in (10, 600))
    for t in range(600):
        questions = asked(t + 1), asked(t + 1)
        law, expected = short.forecast(questions[0]), long.forecast(questions[1])
        # Sums over other blocks are rounded in another order.
        assert law.atoms == pytest.approx(expected.atoms, abs=1e-9)
        p, y = expected.atoms[:, 0].copy(), rng.integers(0, 2, 3)
        for player, question in zip((short, long), questions, strict=True):
            player.update(played(player.law, p, y, question=question))


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
