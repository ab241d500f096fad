"""Proper scores: against sums over samples, Murphy's identity, certain errors, equal outcomes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.measures.scores import brier, brier_decomposition, log_loss, nce
from tests.strategies import gammas

samples = st.lists(
    st.tuples(
        st.integers(0, 20).map(lambda i: i / 20) | st.floats(0, 1, allow_subnormal=False), st.integers(0, 1)
    ),
    min_size=1,
    max_size=30,
)


def loss(v, y):
    chance = v if y else 1 - v
    return -math.log(chance) if chance > 0 else math.inf


@given(samples)
def test_scores_are_averages_over_samples(rows):
    gamma = JointDistribution.from_samples(*zip(*rows, strict=True))
    n = len(rows)
    assert brier(gamma) == pytest.approx(sum((y - v) ** 2 for v, y in rows) / n, abs=1e-14)
    assert log_loss(gamma) == pytest.approx(sum(loss(v, y) for v, y in rows) / n, rel=1e-12, abs=1e-14)
    b = sum(y for _, y in rows) / n
    base = sum(loss(b, y) for _, y in rows) / n
    if base > 0:
        assert nce(gamma) == pytest.approx(log_loss(gamma) / base, rel=1e-12)
    else:
        assert nce(gamma) == (0.0 if log_loss(gamma) == 0.0 else math.inf)


@given(gammas())
def test_murphys_identity(gamma):
    parts = brier_decomposition(gamma)
    assert parts.reliability - parts.resolution + parts.uncertainty == pytest.approx(brier(gamma), abs=1e-14)
    assert min(parts) >= 0.0
    assert parts.reliability == pytest.approx(tasks.swap_regret(gamma, tasks.quadratic()), abs=1e-15)
    regret = parts.reliability - parts.resolution
    assert tasks.external_regret(gamma, tasks.quadratic()) == pytest.approx(regret, abs=1e-14)
    assert tasks.payoff(gamma, tasks.quadratic()) == pytest.approx(1 - brier(gamma), abs=1e-14)
