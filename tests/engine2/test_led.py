"""Forecasters led by hand into states that games do not reach, beside their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from onlinecal.engine2.game import Game
from onlinecal.engine2.play import Question
from onlinecal.engine2.seats import seat
from onlinecal.engine2.start import start
from onlinecal.engine2.steps import Coming
from onlinecal.forecasters import DefensiveForecasting, FosterVohra, Minimax, StepCEMinimiser, _blocks
from onlinecal.natures import Maximin
from tests.forecasters.test_deterministic import ORDERS, is_root
from tests.forecasters.test_internal_regret import fresh_law
from tests.oracles.forecasters import StepCE


class Led:
    """One run of a forecaster of the new engine; its questions and outcomes come from a test."""

    def __init__(self, spec, horizon=100):
        self.player, self.told = start("forecaster", spec, horizon, range(1), 0), 0
        self.seat = seat("forecaster", spec, self.player)

    def ask(self):
        """The next question, with its law."""
        question = Question(self.told + 1, float(self.told + 1))
        self.player.make_room(Coming(question.number, 1))
        question.law = self.seat.state_law(question)
        return question

    def points(self):
        """The law of the next round, grid point → weight."""
        m = len(self.player.grid) - 1
        return {round(m * value): weight for value, weight in self.ask().law if weight > 0.0}

    def play(self, forecast, outcome):
        """Tells a round in which this was forecast, whatever the law."""
        question = self.ask()
        question.forecast, question.outcome = forecast, outcome
        self.told += 1
        self.seat.learn(question)


@pytest.mark.parametrize("m", [5, 40])
def test_foster_vohra_on_all_pairs_has_the_law_of_the_definition(m, seed):
    """There are long stretches of one outcome, switches, and points played that the law did not ask for.

    The law is made by sums, products and quotients of positive numbers alone. So weights are right but for roundings.
    """
    rng, grid = np.random.default_rng((seed, m)), np.arange(m + 1)
    led, chance, large = Led(FosterVohra(m, "all")), 0.5, 0
    counts, ones = np.zeros((2, m + 1), np.int64)
    for _ in range(600):
        law = led.points()
        points, q = np.array(list(law)), np.array(list(law.values()))
        # Brier losses in units of 1/m², by the letter: the loss of having said column j where row i was said.
        loss = np.outer(ones, (grid - m) ** 2) + np.outer(counts - ones, grid**2)
        flow = np.maximum(np.diag(loss)[:, None] - loss, 0).astype(float)
        assert not np.delete(flow[points], points, axis=1).any()  # the set is closed
        assert q == pytest.approx(fresh_law(flow[np.ix_(points, points)]), rel=1e-12, abs=1e-300)
        large += len(points) > 16
        i = int(rng.choice(points, p=q / q.sum()) if rng.random() < 0.98 else rng.integers(m + 1))
        if rng.random() < 0.01:
            chance = rng.choice([0.0, 1.0, 0.5, rng.random()])
        y = int(rng.random() < chance)
        led.play(i / m, y)
        counts[i] += 1
        ones[i] += y
    assert m < 16 or large > 50


def test_a_small_weight_of_a_pair_is_right_to_nearly_all_digits():
    led = Led(FosterVohra(1, "all"))
    led.player.state[0] = 1, 0, -(10**9), 0, 10**9  # a billion rounds played 1, and all their outcomes were 0
    led.play(0.0, 1)
    assert led.points()[1] == pytest.approx(1 / (10**9 + 1), rel=1e-15)


@pytest.mark.parametrize("m", [1, 4, 9])
def test_step_ce_beyond_floats_follows_its_rule(m, seed):
    """A player tuned to one round plays many: the sums of its tree are no floats then, and logarithms take over."""
    rng = np.random.default_rng((seed, m))
    rule, led, vast = StepCE(m, 1), Led(StepCEMinimiser(m), 1), 0
    for t in range(600):
        assert rule.agrees(dict(led.ask().law))
        vast += not led.player.state[0, m + 7 : m + 9].sum() < 1e150  # both sums of the root
        i, y = int(rng.integers(m + 1)), int(t < 300)
        led.play(i / m, y)
        rule.update(None, None, i / m, y, None)
    assert vast > 50


def test_what_runs_share_is_in_memory_once():
    game = Game(Minimax(), Maximin(), horizon=100, runs=range(20))
    game.advance(2)
    shared = game.forecaster.shared.nbytes + game.nature.shared.nbytes
    assert shared > 1e5
    assert shared < game.rows.base.nbytes < 1.1 * shared


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_keep_their_points_in_the_room_that_was_made(order, seed):
    """No point is lost, and blocks are half full. Sums are those of the points, and roots those of all."""
    rng = np.random.default_rng(seed)
    points, past, led = ORDERS[order](rng, 3000).tolist(), [], Led(DefensiveForecasting(), 1)
    for t, p in enumerate(points):
        if t in (1, 5, 19, 20, 60, 500, 1500, 2999):
            assert is_root(past, led.ask().law[0][0], 1.0, 1e-14 * (t + 10))
        past.append((p, int(rng.integers(0, 2))))
        led.play(*past[-1])
        if t in (18, 19, 20, 700, 1300, 2000, 2999):
            _check_blocks(led.player.state[0], past)
    assert order == "few values" or led.player.state[0, _blocks.MOST] > _blocks.FEW  # they were enlarged


def _check_blocks(state, past):
    blocks, most = int(state[_blocks.BLOCKS]), int(state[_blocks.MOST])
    table, room = _blocks.blocks_of(state)
    sizes, sums = table[_blocks.POINTS, :blocks].astype(int), table[:, :blocks]
    each = [
        _blocks.block_at(room, most, int(w))[:, :n] for w, n in zip(sums[_blocks.WHERE], sizes, strict=True)
    ]
    keys, exponentials, residuals = np.hstack(each)
    assert sorted({p for p, _ in past}) == keys.tolist()
    assert (sizes[:-1] >= most // 2).all()
    assert sizes.max() < most
    told = dict.fromkeys(keys.tolist(), 0.0)
    for p, y in past:
        told[p] += y - p
    assert residuals == pytest.approx(list(told.values()), abs=1e-9)
    assert exponentials == pytest.approx(np.exp(keys), rel=1e-15)
    rises, falls = ([float((b[2] * b[1] ** sign).sum()) for b in each] for sign in (1, -1))
    for row, found in (
        (_blocks.FIRST, [b[0, 0] for b in each]), (_blocks.RISE, rises), (_blocks.FALL, falls),
        (_blocks.LEFT, np.cumsum([0.0, *rises])[:-1]), (_blocks.RIGHT, np.cumsum(falls[::-1])[::-1]),
    ):  # fmt: skip
        assert sums[row] == pytest.approx(np.asarray(found), abs=1e-9)
    assert state[[_blocks.RISING, _blocks.FALLING]] == pytest.approx([sum(rises), sum(falls)], abs=1e-9)


@pytest.mark.parametrize("scale", [0.05, 0.3, 100.0])
def test_forecasts_are_roots_in_many_blocks(scale, seed):
    """Also where terms of a narrow kernel are 10^8 times larger at one end than at the other."""
    rng, led, past = np.random.default_rng(seed), Led(DefensiveForecasting(scale=scale)), []
    for t in range(2000):
        p = led.ask().law[0][0]
        if t % 199 == 198:
            assert is_root(past, p, scale, 1e-14 * t / min(scale, 1.0))
        past.append((p, int(p <= 0.5) if t % 2 else int(rng.random() < t / 2000)))
        led.play(*past[-1])
    assert led.player.state[0, _blocks.BLOCKS] > 10
