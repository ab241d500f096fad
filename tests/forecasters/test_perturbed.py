"""The perturbed leader: it draws from its law."""

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.forecasters import (
    PerturbedLeader,
)
from onlinecal.natures import Bernoulli
from tests.rounds_by_hand import asked


def test_the_perturbed_leader_draws_from_its_law(seed):
    """The mean of p and P(Z = 0) over 4096 rounds of 4 runs.

    With mean 3: P(p_1 is 0/0, that is 1/2) + … is not in closed form, so the noise itself is tested, through a player
    without past: p = Z_1/(Z_0 + Z_1), 0/0 read as 1/2, is symmetric, and P(p = 0) = P(Z_1 = 0, Z_0 > 0) = ¼·¾.
    Hoeffding for n = 4·16·4096 values: off by more than 0.005 with probability below 2·exp(−2n·0.005²) < 5e-6; tests
    use 0.008, below 1e-14.
    """
    player = PerturbedLeader(3.0, atoms=16).start(100, 4, Stream(seed, ("f",), range(4)))
    p = np.array([player.forecast(asked(t + 1)).atoms.copy() for t in range(4096)])
    assert p.mean() == pytest.approx(0.5, abs=0.008)
    assert (p == 0.0).mean() == pytest.approx(3 / 16, abs=0.008)
    assert (p == 1.0).mean() == pytest.approx(3 / 16, abs=0.008)


def test_the_perturbed_leader_without_noise_is_the_mean():
    game = Game(PerturbedLeader(0, atoms=1), Bernoulli(0.4), horizon=50, runs=range(1))
    total = 0
    for t in range(50):
        law = game.law()
        values = law.atoms[0]
        assert values[0] == (total / t if t else 0.5)
        open = game.ask()
        game.resolve(open)
        total += open.round.outcome[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: PerturbedLeader(-1),
        lambda: PerturbedLeader(atoms=0),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidParameter):
        make()
