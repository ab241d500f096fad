"""Baselines and the perturbed leader: what their rules come to."""

import numpy as np
import pytest

from onlinecal.forecasters import Logistic, PerturbedLeader, Tempered, Truthful
from onlinecal.measures import brier
from onlinecal.natures import Bernoulli, UniformTruth
from tests.bounds_in_games import Games
from tests.by_hand import Driven, noted


@pytest.mark.parametrize("x", [-1.0, -0.3, 0.0, 0.4, 1.0])
def test_a_negative_slope_is_the_flipped_one(x):
    (up,), (down,) = (Driven(Logistic(slope, 0.0)).law(features=x) for slope in (4.0, -4.0))
    assert down == pytest.approx(1 - up, rel=1e-12)


def test_the_truthful_are_calibrated_and_the_tempered_are_not(seed):
    """Brier totals: E[(y − q)²] = 1/6 for uniform truths.

    Hoeffding over 8·4000 rounds: off by more than 0.02 with probability below 2·exp(−2·32000·0.02²) < 2e-11.
    """
    games = Games(4000, 8, 1e-9)
    true, tempered = (
        games.mean_total(f, UniformTruth(), seed, brier) / 4000 for f in (Truthful(), Tempered(4.0))
    )
    assert true == pytest.approx(1 / 6, abs=0.02)
    assert tempered > true + 0.01


def test_the_perturbed_leader_draws_from_its_law(seed):
    """Without past p = Z_1/(Z_0 + Z_1), 0/0 read as 1/2, is symmetric, and P(p = 0) = P(Z_1 = 0, Z_0 > 0) = ¼·¾.

    Hoeffding for n = 4·16·4096 values: off by more than 0.008 with probability below 2·exp(−2n·0.008²) < 1e-14.
    """
    player = Driven(PerturbedLeader(3.0, atoms=16), runs=4, seed=seed)
    p = np.array([player.hand.ask(t).values.copy() for t in range(1, 4097)])
    assert p.mean() == pytest.approx(0.5, abs=0.008)
    assert (p == 0.0).mean() == pytest.approx(3 / 16, abs=0.008)
    assert (p == 1.0).mean() == pytest.approx(3 / 16, abs=0.008)


def test_the_perturbed_leader_without_noise_is_the_mean():
    log, _ = noted(PerturbedLeader(0, atoms=1), Bernoulli(0.4), 50, runs=1)
    total = 0
    for t, round in enumerate(log):
        assert round.laws == [{total / t if t else 0.5: 1.0}]
        total += round.outcome[0]
