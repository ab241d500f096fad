"""Almost one step ahead keeps its word on every sequence, in every run and at every checkpoint.

Nothing here is left to chance: a bound that holds for all sequences has no false failures. A mutated copy fails the
same test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_key
from onlinecal.engine.game import Game
from onlinecal.engine.horizon import checkpoints
from onlinecal.forecasters import (
    AlmostOneStepAhead,
)
from onlinecal.measures import (
    smooth_ce,
    true_distance,
)
from onlinecal.natures import NATURES, Bernoulli, Contrarian, Drift
from tests.rounds_by_hand import asked, drawn


@given(st.lists(st.integers(0, 1), min_size=1, max_size=80))
def test_the_imagined_biases_never_exceed_one(outcomes):
    """On any sequence of outcomes whatever, not only those that our natures make."""
    m = 4
    player = AlmostOneStepAhead(m).start(100, 1, None)
    bias = player.memory.ints[0, :-1]
    for t, y in enumerate(outcomes):
        law = player.forecast(asked(t + 1))
        player.update(drawn(law, 0, y))
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


@pytest.mark.parametrize("horizon", [1, 2, 10])
@pytest.mark.parametrize("nature", [Bernoulli(), Drift(), Contrarian(), Contrarian("draw")], ids=strategy_key)
def test_almost_one_step_ahead_keeps_its_word_in_short_games(nature, horizon, seed):
    assert ahead_ratio(AlmostOneStepAhead(), nature, horizon, seed) <= 1.0


@pytest.mark.parametrize("horizon", [1, 4, 8])
def test_the_certificate_is_above_the_true_distance_of_every_sequence(horizon):
    """All 2^T sequences of outcomes, and the distance over all partitions of their rounds."""
    runs = 2**horizon
    outcomes = np.arange(runs)[:, None] >> np.arange(horizon) & 1
    player = AlmostOneStepAhead().start(horizon, runs, None)
    forecasts = np.empty((runs, horizon))
    state = (
        player.memory.ints
    )  # the biases, in steps of the grid, and how far the forecasts were from the imagined ones
    m = state.shape[1] - 2
    for t in range(horizon):
        question = asked(t + 1)
        law = player.forecast(question)
        forecasts[:, t] = law.atoms[:, 0] / m
        player.update(drawn(law, np.zeros(runs), outcomes[:, t], question=question))
    far = np.array([horizon * true_distance(p, y).upper for p, y in zip(forecasts, outcomes, strict=True)])
    assert (far <= player.certificates()["distance_certificate"] + ROUNDING).all()
    # Controls: neither of its two parts is enough. One step ahead alone, or its biases alone, prove less than is so.
    assert horizon == 1 or (far > state[:, -1] / m + ROUNDING).any()
    assert (far > np.abs(state[:, :-1]).sum(axis=1) / m + ROUNDING).any()


@pytest.mark.parametrize("horizon", [50, 400, 5000])
@pytest.mark.parametrize("name", NATURES)
def test_almost_one_step_ahead_keeps_its_word(name, horizon, seed, against):
    for nature in against(name):
        assert ahead_ratio(AlmostOneStepAhead(), nature, playable(nature, horizon), seed) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", NATURES)
def test_almost_one_step_ahead_keeps_its_word_at_scale(name, seed, full, against):
    for nature in against(name):
        horizon = playable(nature, 1_000_000 if full else 100_000)
        assert ahead_ratio(AlmostOneStepAhead(), nature, horizon, seed) <= 1.0


@dataclass(frozen=True)
class WrongSide(AlmostOneStepAhead):
    """Its imagined player takes i where y = 1 and i + 1 where y = 0."""

    def start(self, horizon, runs, stream):
        player = super().start(horizon, runs, stream)

        state = player.memory.ints
        m = state.shape[1] - 2

        class Mirrored:
            forecast, certificates = player.forecast, player.certificates

            def update(self, round):
                i = np.minimum(round.atom + 1 - round.outcome, m)
                state[np.arange(len(i)), i] += m * round.outcome - i
                state[:, -1] += i != round.atom

        return Mirrored()


def test_the_wrong_side_breaks_the_word(seed):
    # Its biases are those of a player who always errs: they grow in proportion to T whatever the coins.
    assert ahead_ratio(WrongSide(), Contrarian(), 5000, seed, runs=4) > 1.0


def test_the_imagined_player_keeps_its_biases_within_one(seed):
    for m in ("T^(1/2)", 3):
        game = Game(AlmostOneStepAhead(m), Contrarian(), horizon=900, runs=range(4), seed=seed)
        for t in range(1, 901, 7):
            game.advance(t)
            bias = game.forecaster.memory.ints[:, :-1]
            steps = bias.shape[1] - 1
            assert np.abs(bias).max() <= steps
            assert (bias[:, [0, -1]] == 0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: AlmostOneStepAhead("m"),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidParameter):
        make()
