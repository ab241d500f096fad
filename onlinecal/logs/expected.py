"""Outcomes between 0 and 1: expected outcomes, as of ties, and of questions that are settled at a price."""

import numpy as np

from onlinecal.core.arrays import Floats, Ints


def halves(outcomes: Floats) -> tuple[Ints, Floats, Floats]:
    """The rows, outcomes and weights that stand for expected outcomes q in [0, 1].

    A row with 0 < q < 1 is there twice: outcome 1 has weight q, and outcome 0 has weight 1 − q.
    """
    between = (outcomes > 0.0) & (outcomes < 1.0)
    rows = np.repeat(np.arange(len(outcomes)), 1 + between)
    second = np.diff(rows, prepend=-1) == 0
    q, half = outcomes[rows], between[rows]
    return (
        rows,
        np.where(half, ~second, q).astype(np.float64),
        np.where(half, np.where(second, 1.0 - q, q), 1.0),
    )
