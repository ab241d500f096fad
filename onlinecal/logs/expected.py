"""Outcomes between 0 and 1: expected outcomes, as of ties, and of questions that are settled at a price."""

from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import check_lengths, check_same_rows, check_unit, vector

_ROWS = "p", "y", "weights", "clusters"


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


def with_halves(given: dict[str, Any]) -> dict[str, Any]:
    """The same p, y, weights, clusters and more columns, with a row for either outcome of an expected one."""
    if given["weights"] is not None:
        raise InvalidParameter("evaluate: fractional = True with weights; expected one or the other")
    check_same_rows(given)
    vectors = {name: vector(name, given[name]) for name in ("p", "y")}
    check_lengths(
        vectors | ({} if given["clusters"] is None else {"clusters": np.asarray(given["clusters"])})
    )
    check_unit("y", vectors["y"])
    rows, y, weights = halves(vectors["y"])
    clusters = rows if given["clusters"] is None else np.asarray(given["clusters"])[rows]
    more = {name: np.asarray(values)[rows] for name, values in given.items() if name not in _ROWS}
    return {"p": vectors["p"][rows], "y": y, "weights": weights, "clusters": clusters} | more
