"""Forecasters made of others, and the perturbed leader: what restarts and mixtures cost, and what is drawn."""

import math

import numpy as np
import pytest

from onlinecal.forecasters import Constant, Doubling, ExpertMixture, ForecastHedging, PerturbedLeader
from onlinecal.measures import brier, ece
from onlinecal.natures import Bernoulli, Contrarian
from tests.by_hand import Driven
from tests.engine.games import played


def test_doubling_keeps_the_order_of_the_error(seed):
    """Restarts cost a constant factor: the sum over epochs is below 1/(1 − 2^{−2/3}) < 2.71 times the last bound."""
    horizon = 16 * (2**9 - 1)
    game = played(Doubling(ForecastHedging()), Contrarian(), horizon, runs=range(8), seed=seed)
    mean = horizon * np.mean([ece(g) for g in game.gammas()])
    # The slack of hedging's own test at this horizon and rate 1e-9 is 290.
    assert mean <= 2.71 * 2.6 * horizon ** (2 / 3) + 290


def test_the_mixture_is_as_good_as_its_best_expert(seed):
    """Hedge: the expected Brier total exceeds the best expert's by at most √(T ln K / 2).

    Two constants, and coins of bias 0.9: the best expert's loss is known. The mean over 8 runs of 4000 rounds lies
    within T·√(ln(2/1e-9)/(2·32000)) < 74 of its expectation with probability 1 − 1e-9.
    """
    horizon, experts = 4000, (Constant(0.9), Constant(0.2), Constant(0.5))
    game = played(ExpertMixture(experts), Bernoulli(0.9), horizon, runs=range(8), seed=seed)
    total = horizon * np.mean([brier(g) for g in game.gammas()])
    limit = horizon * 0.09 + math.sqrt(horizon * math.log(3) / 2) + 74
    assert total <= limit < horizon * (0.9 * 0.64 + 0.1 * 0.04)  # which the expert of 0.2 has


def test_the_perturbed_leader_draws_from_its_law(seed):
    """Without past p = Z_1/(Z_0 + Z_1), 0/0 read as 1/2, is symmetric, and P(p = 0) = P(Z_1 = 0, Z_0 > 0) = ¼·¾.

    Hoeffding for n = 4·16·4096 values: off by more than 0.008 with probability below 2·exp(−2n·0.008²) < 1e-14.
    """
    players, p = [Driven(PerturbedLeader(3.0, atoms=16), 4096, run, seed) for run in range(4)], []
    for player in players:
        for player.told in range(4096):
            p.append([value for value, _ in player.ask().law])
    p = np.array(p)
    assert p.mean() == pytest.approx(0.5, abs=0.008)
    assert (p == 0.0).mean() == pytest.approx(3 / 16, abs=0.008)
    assert (p == 1.0).mean() == pytest.approx(3 / 16, abs=0.008)
