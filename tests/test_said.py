"""Statements of docstrings and tables that no other file tests: rates, columns of the measure table, constants."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinecal as oc
from onlinecal.core.guarantee import Forecasters
from onlinecal.core.joint import JointDistribution
from onlinecal.core.streams import Stream
from onlinecal.decision_makers.responses import Noisy
from onlinecal.engine.game import Game
from onlinecal.forecasters import AlmostOneStepAhead, DefensiveForecasting, Forecaster, ForecastHedging, Law
from onlinecal.measures import MEASURES, Bracket, ece, low_degree_ce, weighted_ce
from onlinecal.natures import Bernoulli, Contrarian
from onlinecal.natures.adversarial import always_wrong
from tests.strategies import gammas

# -------------------------------------------------------------------- what a fair coin forces, and what it does not


@dataclass(frozen=True)
class Sides(Forecaster):
    """½ ± T^−power, on the side that repairs its total bias: it chooses its points to meet a fair coin."""

    power: float = 0.4
    deterministic = True

    def start(self, horizon, runs, stream):
        return SidesPlayer(runs, horizon**-self.power)


class SidesPlayer:
    def __init__(self, runs, apart):
        self.law = Law(runs, 1, np.array([0.5 - apart, 0.5, 0.5 + apart]))
        self.total = np.zeros(runs)

    def forecast(self, round):
        self.law.atoms[:, 0] = 1 + np.sign(self.total)
        return self.law

    def update(self, round):
        self.total += round.outcome - round.forecast


def test_a_fair_coin_forces_no_root_of_t_on_the_kernel_error(seed):
    """Exponent 0.403 ± 0.014 over seeds 0–11, so 0.48 is 5.5 standard deviations away; that of U-calibration 0.598."""
    study = oc.play(
        Sides(),
        Bernoulli(),
        horizon=[1000, 4000, 16_000, 64_000],
        runs=32,
        seed=seed,
        measures=["kernel_ce", "u_calibration"],
    )
    assert study.exponent("kernel_ce").value < 0.48 < 0.5 < study.exponent("u_calibration").value


@pytest.mark.parametrize(
    "forecaster", [Sides(), Sides(0.5), oc.forecasters.Constant(), ForecastHedging()], ids=str
)
def test_a_fair_coin_forces_root_t_on_u_calibration(forecaster, seed):
    """However points are chosen: U-calibration is at least the external regret of `v_shaped(½)`.

    That is max(ones, zeros) less the number of right guesses. Over R = 1000 runs the mean of the first is ½E|ones −
    zeros| ≥ 0.39√T above T/2, up to s√T with probability at most exp(−2s²R) (a coin moves it by 1/R), and the mean of
    the second, a sum of fair coins, is T/2 up to s√T likewise: with s = 0.13, together below 5e-15.
    """
    horizon, runs = 400, 1000
    study = oc.play(forecaster, Bernoulli(), horizon=horizon, runs=runs, seed=seed,
                    measures=["u_calibration", "cdl", "cutoff_ce", "step_ce"])  # fmt: skip
    least = (0.39 - 2 * 0.13) * math.sqrt(horizon)
    finals = {measure: study.curve(measure).mean[-1] for measure in study.measures}
    assert finals["u_calibration"] >= least
    assert finals["cdl"] >= least
    assert finals["cutoff_ce"] >= least / 2
    assert finals["step_ce"] >= least / 4


def test_half_the_difference_of_ones_and_zeros():
    n = 400
    mean = sum(math.comb(n, k) * abs(2 * k - n) for k in range(n + 1)) / 2**n / 2
    assert mean == pytest.approx(math.sqrt(n / (2 * math.pi)), rel=0.01)
    assert mean >= 0.39 * math.sqrt(n)


# -------------------------------------------------------------------- the columns of the measure table

EPS = 1e-4
#: two samples on the wrong sides of ½, close to each other: calibrated when both say ½
CROSSED = JointDistribution.from_levels([0.5 - EPS, 0.5 + EPS], [1, 1], [1, 0])
JOINED = JointDistribution.from_levels([0.5], [2], [0.5])


def lower(name, gamma):
    value = MEASURES[name].function(gamma, **MEASURES[name].example)
    return value.lower if isinstance(value, Bracket) else value


@pytest.mark.parametrize("name", [m.name for m in MEASURES.values() if m.sound.startswith("yes")])
@given(gamma=gammas(max_levels=5))
@settings(max_examples=25)
def test_sound_is_positive_unless_calibrated(name, gamma):
    gamma = gamma.round(32)[0]
    if ece(gamma) < 1e-3:
        return
    assert lower(name, gamma) > 0.0


#: for each measure that is not sound: Γ that is not calibrated, and 0 to it
BLIND = {
    "binned_ece": JointDistribution.from_levels([0.51, 0.59], [1, 1], [0.59, 0.51]),
    "random_interval_ce": None,
    "smooth_ece_at": None,
    "cfdl": None,
    "u_calibration": JointDistribution.from_levels([0.2, 0.8], [1, 1], [0.1, 0.9]),
    "scdl_binned": JointDistribution.from_levels([0.5], [1], [0.51]),
    "weighted_ce": JointDistribution.from_levels([0.2, 0.8], [1, 1], [0.3, 0.7]),
    "low_degree_ce": JointDistribution.from_levels(
        [0.2, 0.4, 0.6, 0.8], [1, 1, 1, 1], [0.21, 0.37, 0.63, 0.79]
    ),
}


def test_who_is_blind_to_what():
    unsound = {m.name for m in MEASURES.values() if not m.sound.startswith("yes")}
    assert set(BLIND) == unsound
    for name, gamma in BLIND.items():
        if gamma is not None:
            assert ece(gamma) > 5e-3
            assert lower(name, gamma) == pytest.approx(0.0, abs=1e-15), name
    # Of a family with a parameter, one member: another task, another width.
    off = JointDistribution.from_levels([0.6], [1], [0.7])
    assert MEASURES["cfdl"].function(off, task="v_shaped") == 0.0
    spread = JointDistribution.from_levels([0.5 - EPS, 0.5 + EPS], [1, 1], [1, 0])
    assert MEASURES["random_interval_ce"].function(spread, epsilon=0.5) < 0.01 < ece(spread)
    assert MEASURES["smooth_ece_at"].function(spread, sigma=0.5) < 0.01 < ece(spread)


#: not continuous, but in this example
ELSEWHERE = {"interval_ce", "interval_ce_bracket", "distance_upper", "binned_ece", "binned_ece_width"}


@pytest.mark.parametrize(
    "name", [m.name for m in MEASURES.values() if m.continuous == "no" and m.name not in ELSEWHERE]
)
def test_what_is_not_continuous_jumps(name):
    assert lower(name, JOINED) == 0.0
    assert lower(name, CROSSED) > 0.2


def test_binned_measures_jump_at_an_edge():
    here, there = (
        JointDistribution.from_levels([0.35, v], [1, 1], [0.55, v - 0.2]) for v in (0.4 - EPS, 0.4)
    )
    for name in ("binned_ece", "binned_ece_width"):
        assert lower(name, there) - lower(name, here) > 0.15


def test_the_interval_error_and_the_upper_distance_jump():
    """Where two levels meet, each can no longer be put into a group of its own."""
    for names, (v, w, q) in {
        ("interval_ce", "interval_ce_bracket"): ([0.45, 0.45, 0.77], [4, 3, 2], [0.8, 0.9, 0.1]),
        ("distance_upper",): ([0.25, 0.25, 0.92], [1, 1, 1], [0.3, 1.0, 0.7]),
    }.items():
        ones = np.multiply(w, q)
        met = JointDistribution.from_counts(v, w, ones)
        apart = JointDistribution.from_counts(np.add(v, [-EPS, EPS, 0]), w, ones)
        for name in names:
            assert lower(name, met) - lower(name, apart) > 0.09


@pytest.mark.parametrize(
    "name", [m.name for m in MEASURES.values() if m.continuous == "yes" and m.name not in ("log_loss", "nce")]
)
@given(gamma=gammas(max_levels=5), shift=st.floats(-1, 1))
@settings(max_examples=25)
def test_continuous_changes_little(name, gamma, shift):
    """By at most 50 times the move of 1e-4 (of 1/σ for smECE_σ and 2/ε for RintCE_ε, at most 20 here)."""
    moved = np.clip(gamma.predictions + EPS * shift * np.cos(40 * gamma.predictions), 0, 1)
    other = JointDistribution.from_counts(moved, gamma.counts, gamma.positives)
    if name == "distance_lower":
        values = [MEASURES[name].function(g) for g in (gamma, other)]
        assert values[0].lower <= values[1].upper + 50 * EPS
        assert values[1].lower <= values[0].upper + 50 * EPS
        return
    # Of smECE, whose relation to the move is a root, only √.
    allowed = 3 * math.sqrt(EPS) if name == "smooth_ece" else 50 * EPS
    assert abs(lower(name, gamma) - lower(name, other)) <= allowed


@given(gammas(), st.integers(0, 20), st.lists(st.floats(-3, 3), min_size=8, max_size=8))
def test_tests_of_the_residual_are_below_the_ece(gamma, degree, weights):
    assert low_degree_ce(gamma, degree=degree) <= ece(gamma) + 1e-12
    omega = np.array(weights)[: gamma.levels]
    assert weighted_ce(gamma, weights=omega) <= np.abs(omega).max() * ece(gamma) + 1e-12


# -------------------------------------------------------------------- constants of strategies and responses


def test_hedging_has_two_and_a_half_at_cubes():
    (guarantee,) = ForecastHedging().guarantees
    for root in (5, 10, 40, 100):
        assert guarantee.bound(root**3) == pytest.approx(2.5 * root**2)
    # m is rounded up elsewhere, which costs little.
    assert all(guarantee.bound(t) <= 2.5 * t ** (2 / 3) * 1.03 for t in range(1000, 20_000, 7))


@given(st.integers(1, 30), st.data())
def test_the_regret_against_a_far_point_is_at_most_so_many_times_that_against_the_next(m, data):
    rounds = data.draw(st.integers(0, 50))
    ones = data.draw(st.integers(0, rounds))
    i, j = data.draw(st.integers(0, m)), data.draw(st.integers(0, m))

    def regret(to):
        return sum((i / m - y) ** 2 - (to / m - y) ** 2 for y in [1] * ones + [0] * (rounds - ones))

    if i != j:
        steps = abs(j - i)
        assert regret(j) <= steps * regret(i + (1 if j > i else -1)) + 1e-9
    bias = ones - rounds * i / m
    most = max(regret(k) for k in (i - 1, i + 1) if 0 <= k <= m)
    assert abs(bias) <= rounds / (2 * m) + m / 2 * max(most, 0.0) + 1e-9


def test_the_imagined_player_keeps_its_biases_within_one(seed):
    for m in ("T^(1/2)", 3):
        game = Game(AlmostOneStepAhead(m), Contrarian(), horizon=900, runs=range(4), seed=seed)
        for t in range(1, 901, 7):
            game.advance(t)
            bias = game.forecaster.memory.ints[:, :-1]
            steps = bias.shape[1] - 1
            assert np.abs(bias).max() <= steps
            assert (bias[:, [0, -1]] == 0).all()


def test_memory_and_terms_of_defensive_forecasting():
    game = Game(DefensiveForecasting(), Bernoulli(), horizon=40_000, runs=range(2))
    for until in (1_000, 10_000, 25_000, 40_000):
        game.advance(until)
        memory = game.forecaster.memory
        used = memory.ints.nbytes + memory.floats.nbytes
        assert 24 <= used / (2 * until) <= 120 or until == 1_000
    gaussian = DefensiveForecasting("gaussian").start(1000, 2, Stream(0, ("x",), range(2)))
    assert gaussian.memory.floats.shape == (2, 1 + 18)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.02, 2), st.integers(1, 30))
def test_laplace_noise_hides_which_forecast_it_was(v, other, scale, m):
    noisy = Noisy(scale, m=m)
    one, two = (noisy.beliefs(JointDistribution.from_levels([p], [1], [0.5])) for p in (v, other))
    most = math.exp(abs(v - other) / scale)
    masses = dict(zip(two.predictions.tolist(), two.mass.tolist(), strict=True))
    for belief, mass in zip(one.predictions.tolist(), one.mass.tolist(), strict=True):
        assert mass <= most * masses.get(belief, 0.0) * (1 + 1e-9) + 1e-12


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
        for guarantee in always_wrong(Forecasters.EVERY, "here"):
            assert 50 * found[guarantee.measure] >= guarantee.bound(50) - 1e-9
        assert found["v_cdl"] == pytest.approx(1.0)
