"""How total errors grow with a delay that is always the same: of the plain forecasters, and of a copy for each slot.

A delay of d rounds that costs no more than d + 1 games of T/(d + 1) rounds each multiplies a total of order T^α by
(1 + d)^{1−α}: totals of order √T become √((1 + d)T).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from onlinecal.forecasters import (
    AlmostOneStepAhead,
    DefensiveForecasting,
    Delayed,
    ForecastHedging,
    LastOutcome,
)
from onlinecal.measures import ece, kernel_ce, smooth_ce
from onlinecal.natures import Contrarian, Nature
from tests.delays import play

DELAYS = (0, 1, 10, 100, 1000)


@dataclass(frozen=True)
class Turning(Nature):
    """Ones and zeros in turn, as long as outcomes are late: what was told last is over."""

    delay: int = 0

    def start(self, horizon, stream):
        return self

    def probability(self, round):
        return float((round.number - 1) // (self.delay + 1) % 2)


def totals(forecaster, nature, delay, measure, rounds, runs=1, seed=0):
    game, most = play(forecaster, nature, [delay] * rounds, runs=runs, seed=seed)
    assert most == min(delay + 1, rounds)
    return np.array([gamma.weight * measure(gamma) for gamma in game.gammas()])


def natures(delay):
    return Contrarian(), Turning(delay)


def sharing(of, slots, delay):
    return Delayed(of, delay + 1) if slots else of


SLOTS = pytest.mark.parametrize("slots", [False, True], ids=["plain", "a copy for each slot"])
ROOTS = [(AlmostOneStepAhead(), smooth_ce, 1.5), (DefensiveForecasting(), kernel_ce, 0.8)]


@pytest.mark.slow
@SLOTS
@pytest.mark.parametrize(("of", "measure", "most"), ROOTS, ids=["smooth_ce", "kernel_ce"])
def test_totals_of_order_root_t_grow_like_the_root_of_the_delay(of, measure, most, slots, full):
    """Nothing is left to chance here, so it never fails falsely: forecasts and outcomes are the same for every seed.

    At T = 8192 the largest total over √((1 + d)T) was, for d = 0, 1, 10, 100, 1000: 0.74, 0.51, 0.30, 0.34, 1.08 of the
    plain one-step-ahead forecaster, 0.74, 0.78, 0.77, 0.72, 0.83 with slots; 0.50, 0.46, 0.50, 0.55, 0.70 and 0.50,
    0.50, 0.50, 0.49, 0.44 of defensive forecasting.
    """
    rounds = 2**15 if full else 2**13
    for delay in DELAYS:
        for nature in natures(delay):
            (total,) = totals(sharing(of, slots, delay), nature, delay, measure, rounds)
            assert total <= most * math.sqrt((1 + delay) * rounds), (delay, nature, total)


@pytest.mark.slow
@SLOTS
def test_the_ece_of_hedging_grows_like_the_cube_root_of_the_delay(slots, seed, full):
    """At T = 8192 the mean of 64 runs over (1 + d)^{1/3} T^{2/3} was at most 0.54, 0.48, 0.37, 0.50, 0.96 for d = 0, 1,
    10, 100, 1000 (plain), and 0.54, 0.32, 0.37, 0.65, 0.75 (with slots), with standard deviations of a run of 0.11 at
    d = 0 and below 0.01 at d = 1000. The limit is ten standard errors of the mean of 8 runs away from all of them, and
    they are bounded: a false failure has a chance far below 1e-9.
    """
    rounds = 2**15 if full else 2**13
    for delay in DELAYS:
        for nature in natures(delay):
            found = totals(
                sharing(ForecastHedging(), slots, delay), nature, delay, ece, rounds, runs=8, seed=seed
            )
            assert found.mean() <= 1.25 * (1 + delay) ** (1 / 3) * rounds ** (2 / 3), (delay, nature, found)


@pytest.mark.slow
def test_who_is_wrong_in_every_round_grows_faster():
    """The control: a total in proportion to T is beyond these limits until the delay is of the order of T."""
    for delay in DELAYS[:-1]:
        for measure, limit in (
            (kernel_ce, 1.5 * math.sqrt((1 + delay) * 8192)),
            (ece, 1.25 * ((1 + delay) * 8192**2) ** (1 / 3)),
        ):
            (total,) = totals(LastOutcome(), Contrarian(), delay, measure, 8192)
            assert total > limit
