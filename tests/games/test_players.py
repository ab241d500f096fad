"""Both players of the solved game hold their side of the value, in exact expectation, whatever plays against them."""

import math

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.checks import guarantees
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import OnGrid
from onlinecal.engine.game import Game
from onlinecal.exploit import exploit
from onlinecal.games import solve
from onlinecal.games.policy import LONGEST, longest, play, policy
from onlinecal.measures import ece
from tests.by_hand import measured, noted
from tests.games.recursion import expectation, some_counts

ROUNDING = 1e-10


@pytest.mark.parametrize("m", [1, 2, 3, 4, 6])
def test_the_worst_nature_takes_the_value_of_minimax_and_no_more(m):
    horizon = 7
    found = exploit(f.Minimax(m), horizon)
    assert found.value == pytest.approx(solve(m, horizon).value, abs=ROUNDING)
    assert found.value <= f.Minimax(m).guarantees[0].bound(horizon) + ROUNDING


def test_maximin_takes_the_value_at_least_from_everybody_on_the_grid():
    m, horizon = 2, 3
    value = solve(m, horizon).value
    rules = [
        f.Minimax(m), f.ForecastHedging(m), f.CDLMinimiser(m), f.AlmostOneStepAhead(m), f.FosterVohra(m),
        f.UniformRandom(m), f.LastOutcome(), f.Constant(0.5), f.Constant(0.0),
        f.Rounded(f.EmpiricalMean(), m, "random"),
    ]  # fmt: skip
    found = [expectation(rule, n.Maximin(m), horizon) for rule in rules]
    assert min(found) >= value - ROUNDING
    assert found[0] == pytest.approx(value, abs=ROUNDING)


def test_between_the_points_one_can_do_better(seed):
    """The guarantee is about the grid: a finer one pays less."""
    found = measured(f.Minimax(4), n.Maximin(2), ece, 40, seed, runs=400)
    # Azuma: by chance with probability 1e-9 at most.
    assert found.mean() + math.sqrt(2 * 40 * math.log(1e9) / 400) < solve(2, 40).value


def test_a_forecaster_that_errs_once_pays_more():
    """The control: minimax's law in all states but the first."""

    class Late(f.Minimax):
        def start(self, horizon, stream):
            player = super().start(horizon, stream)
            player.state[:, 1] = 2.0  # as if the middle had been too low twice
            return player

    value = solve(2, 7).value
    assert exploit(Late(2), 7).value > value + 0.1
    assert Late(2).guarantees[0].bound(7) < exploit(Late(2), 7).value


def test_the_guarantees_are_checked(seed):
    found = list(guarantees.check([f.Minimax()], [n.Maximin(), n.Drift()], horizon=60, runs=16, seed=seed))
    pairs = {("minimax", "maximin"), ("maximin", "minimax"), ("minimax", "drift")}
    assert {(v.strategy, v.opponent) for v in found} == pairs
    for v in found:
        assert v.holds is not False
        assert math.isnan(v.step) or v.step <= 1.0
    assert n.Maximin().guarantees[0].against == OnGrid(2)
    for spec in (f.Minimax(), n.Maximin()):  # Azuma
        assert spec.guarantees[0].slack(40, 400, 1e-9) == pytest.approx(
            math.sqrt(2 * 40 * math.log(1e9) / 400)
        )
    # Games that are too long have no table.
    assert [spec.guarantees[0].bound(2000) for spec in (f.Minimax(), n.Maximin())] == [2000.0, 0.0]
    # It binds those on its grid alone.
    fits = [(2, [0.0, 0.5, 1.0]), (4, np.arange(3) / 2), *((m, np.arange(m + 1) / m) for m in range(1, 9))]
    assert all(OnGrid(m).fits(np.asarray(grid)) for m, grid in fits)
    assert not OnGrid(2).fits(np.arange(4) / 3)
    assert not OnGrid(2).fits(None)
    assert not list(guarantees.check([f.EmpiricalMean()], [n.Maximin()], horizon=50, runs=2, seed=seed))


def test_players_that_break_their_rule_fail(seed):
    class Idle(n.Maximin):
        def start(self, horizon, stream):
            return n.Bernoulli(0.0).start(horizon, stream)

    class Broken(f.Minimax):
        def start(self, horizon, stream):
            return f.UniformRandom(2).start(horizon, stream)

    (idle,) = guarantees.check([f.Constant(0.0)], [Idle()], horizon=400, runs=64, seed=seed)
    (broken,) = guarantees.check([Broken()], [n.Bernoulli()], horizon=100, runs=8, seed=seed)
    assert (idle.holds, broken.holds) == (False, False)
    assert broken.step > 1.0  # in a single round


@pytest.mark.parametrize("m", LONGEST)
def test_the_tables_say_what_the_solution_says(m):
    horizon = min(longest(m), 9)
    solved, solution = policy(m, horizon), solve(m, horizon)
    assert solved.value == solution.value
    rng = np.random.default_rng(m)
    for _ in range(100):
        left = int(rng.integers(1, horizon + 1))
        counts = some_counts(rng, m, horizon - left)
        biases = m * counts[:, 1] - np.arange(m + 1) * counts[:, 0]
        assert solved.value_at(biases, left) == pytest.approx(solution.at(counts, left).value, abs=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        solved.floats[0] = 1.0


@pytest.mark.parametrize("m", [3, 4])
def test_in_a_state_that_no_rounds_lead_to_it_plays_the_middle_and_a_coin(m):
    """One outcome 1 at each inner point takes m − 1 rounds."""
    tables, room = policy(m, 6), np.empty(2 * (m + 1))
    for number, possible in ((m, True), (1, False)):
        biases = np.array([0.0, *(m - i for i in range(1, m)), 0.0])
        found = play(tables.ints, tables.floats, number, biases, room)
        assert (found == (m // 2, m // 2, 1.0, 0.5)) is not possible


def test_games_that_are_not_solved_are_refused():
    for pair in ((f.Minimax(2), n.Bernoulli()), (f.Constant(), n.Maximin(2))):
        with pytest.raises(InvalidParameter, match="at most 1200"):
            Game(*pair, horizon=1201, runs=range(1))
    for m in (0, 9, 2.5):
        with pytest.raises(InvalidParameter, match="m = "):
            f.Minimax(m)
        with pytest.raises(InvalidParameter, match="m = "):
            n.Maximin(m)
    with pytest.raises(InvalidParameter, match="expected T ≤ 16"):
        policy(8, 17)
    with pytest.raises(InvalidParameter, match="at most 8 steps"):
        longest(9)


@pytest.mark.parametrize(("forecast", "point"), [(0.24, 0.0), (0.26, 0.5), (0.74, 0.5), (0.76, 1.0)])
def test_maximin_counts_forecasts_as_their_nearest_point(forecast, point, seed):
    """It plays against both alike; against 0 and 1 its outcomes are the same, and against 1/2 others (the control)."""
    path = {p: noted(f.Constant(p), n.Maximin(2), 60, 8, seed)[0] for p in (forecast, 0.0, 0.5, 1.0)}
    found = {p: [round.q.tolist() for round in log] for p, log in path.items()}
    assert found[forecast] == found[point]
    assert (found[forecast] == found[0.5]) is (point == 0.5)
