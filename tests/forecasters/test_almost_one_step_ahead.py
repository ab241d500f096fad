"""Almost one step ahead keeps its word on every sequence, in every run and at every checkpoint.

Nothing here is left to chance: a bound that holds for all sequences has no false failures. A mutated copy fails the
same test.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.engine.game import Game
from onlinecal.engine.horizon import checkpoints
from onlinecal.forecasters import AlmostOneStepAhead
from onlinecal.measures import smooth_ce, true_distance
from onlinecal.natures import NATURES, Contrarian
from onlinecal.rounds.steps import ints, law_atoms, learn
from tests.by_hand import Driven


@given(st.lists(st.integers(0, 1), min_size=1, max_size=80))
def test_the_imagined_biases_never_exceed_one(outcomes):
    """On any sequence of outcomes whatever, not only those that our natures make."""
    m, player = 4, Driven(AlmostOneStepAhead(4))
    for y in outcomes:
        player.tell(player.ask(), y)
        bias = player.memory.ints[0, :-1]
        assert np.abs(bias).max() <= m  # in units of 1/m
        assert bias[0] == bias[m] == 0


#: what rounding may add to a ratio that theory says is at most 1
ROUNDING = 1e-9


def ahead_ratio(forecaster, nature, horizon, seed, runs=8):
    """The largest certificate of the distance over 2√T + 1; what it certifies, smCE ≤ 2·distance, is asserted."""
    game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed)
    worst = 0.0
    for t in checkpoints(horizon):
        game.advance(t)
        certificate = game.certificates()["distance_certificate"]
        worst = max(worst, certificate.max() / (2 * math.sqrt(horizon) + 1))
        for gamma, total in zip(game.gammas(), certificate, strict=True):
            assert t * smooth_ce(gamma) <= 2 * total + ROUNDING
    return worst


def playable(nature, horizon):
    return min(horizon, nature.length or horizon)


@pytest.mark.parametrize("horizon", [1, 4, 8])
def test_the_certificate_is_above_the_true_distance_of_every_sequence(horizon):
    """All 2^T sequences of outcomes, and the distance over all partitions of their rounds."""
    runs = 2**horizon
    outcomes = np.arange(runs)[:, None] >> np.arange(horizon) & 1
    player, forecasts = Driven(AlmostOneStepAhead(), horizon, runs), np.empty((runs, horizon))
    for t in range(horizon):
        asked = player.ask()
        forecasts[:, t] = asked.values[:, 0]
        player.tell(asked, outcomes[:, t])
    # The biases, in steps of the grid, and how far the forecasts were from the imagined ones.
    state = player.memory.ints
    m = state.shape[1] - 2
    far = np.array([horizon * true_distance(p, y).upper for p, y in zip(forecasts, outcomes, strict=True)])
    assert (far <= player.player.certificates()["distance_certificate"] + ROUNDING).all()
    # Controls: neither of its two parts is enough. One step ahead alone, or its biases alone, prove less than is so.
    assert horizon == 1 or (far > state[:, -1] / m + ROUNDING).any()
    assert (far > np.abs(state[:, :-1]).sum(axis=1) / m + ROUNDING).any()


@pytest.mark.parametrize("horizon", [1, 2, 10, 400, 5000])
@pytest.mark.parametrize("name", NATURES)
def test_almost_one_step_ahead_keeps_its_word(name, horizon, seed, against):
    for nature in against(name):
        if horizon >= 20 or getattr(nature, "change_rate", None) != "20/T":
            assert ahead_ratio(AlmostOneStepAhead(), nature, playable(nature, horizon), seed) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", NATURES)
def test_almost_one_step_ahead_keeps_its_word_at_scale(name, seed, full, against):
    for nature in against(name):
        horizon = playable(nature, 1_000_000 if full else 100_000)
        assert ahead_ratio(AlmostOneStepAhead(), nature, horizon, seed) <= 1.0


@learn
def _wrong_side(run, number, size, drawn, outcome):
    """Its imagined player takes i where y = 1 and i + 1 where y = 0."""
    state, atom = ints(run), law_atoms(run)[drawn]
    m = len(state) - 2
    i = min(atom + 1 - outcome, m)
    state[i] += m * outcome - i
    state[-1] += np.int64(i != atom)
    return 0


class WrongSide(AlmostOneStepAhead):
    def start(self, horizon, stream):
        player = super().start(horizon, stream)
        player.steps = player.steps[0], _wrong_side
        return player


def test_the_wrong_side_breaks_the_word(seed):
    # Its biases are those of a player who always errs: they grow in proportion to T whatever the coins.
    assert ahead_ratio(WrongSide(), Contrarian(), 5000, seed, runs=4) > 1.0
