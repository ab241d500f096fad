"""The state of players that hedge, as their steps leave it."""

from typing import Any

from onlinecal.forecasters.hedging import pair


def set_biases(player: Any, biases: Any, rounds: Any = ()) -> None:
    """Gives the first run these biases m·E_i, with the pair that they have, and numbers of rounds."""
    player.memory.ints[0] = [*biases, pair(biases), *rounds]
