"""The state of players that hedge, as their steps leave it."""

from typing import Any

import numpy as np

from onlinecal.forecasters.hedging import pair, weight


def set_biases(player: Any, biases: Any, rounds: Any = ()) -> None:
    """Gives the first run these biases m·E_i, with the pair that they have, and numbers of rounds, with the weights."""
    player.memory.ints[0] = [*biases, pair(biases), *rounds]
    if len(rounds) > 0:
        player.memory.floats[0, :-1] = weights(biases, rounds)


def weights(biases: Any, rounds: Any) -> Any:
    """What `weight` is for biases m·E_i and numbers of rounds, one after the other."""
    m = len(biases) - 1
    return np.ravel([weight(b / m, 1.0 / (3.0 * (n + 1.0))) for b, n in zip(biases, rounds, strict=True)])
