"""Steps that several forecasters have."""

from __future__ import annotations

from onlinecal.core._compile import kernel
from onlinecal.rounds.steps import ints, law_atoms, law_weights, learn


@kernel
def state_pair(run, low, share):
    """The law of weight `share` on the grid point `low` and the rest on the next; as a step's result."""
    atoms, weights = law_atoms(run), law_weights(run)
    atoms[0], atoms[1] = low, low + 1
    weights[0], weights[1] = share, 1.0 - share
    return 2


@learn
def count_ones(run, number, size, drawn, outcome):
    """Counts the round, and the outcome if it is 1: the first two whole numbers of the state."""
    state = ints(run)
    state[0] += 1
    state[1] += outcome
    return 0


@learn
def nothing(run, number, size, drawn, outcome):
    """Learns nothing."""
    return 0
