"""Forecasts of K classes: checks of tables of probabilities, their labels, equal rows, and grids of the simplex."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidData, in_one_line
from onlinecal.core.validation import check_unit, vector
from onlinecal.core.words import listed, number_of

#: by how much the probabilities of a row may miss 1
UNIT = 1e-6
Label = Any


def level_of_rows(table: Floats) -> Ints:
    """The rank of each row among the different ones, in the order of their first columns."""
    place = np.zeros(len(table), np.int64)
    for column in table.T:
        values, other = np.unique(column, return_inverse=True)
        found, place = np.unique(place * len(values) + other, return_inverse=True)
        if len(found) == len(table):
            break
    return place


def matrix(name: str, values: ArrayLike) -> Floats:
    """A table of numbers, in memory of its own; the message names the first column that is none."""
    try:
        given = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    except ValueError:  # by NumPy, of lists of several lengths
        raise InvalidData(f"{name} have rows of several lengths; expected K numbers in each") from None
    if given.ndim != 2 or given.shape[1] < 2:
        raise InvalidData(
            f"{name} have shape {given.shape}; expected (n, K), a row for each sample and K ≥ 2 classes"
        )
    if not len(given):
        raise InvalidData(f"no samples: {name} have no row; expected at least one")
    return np.stack([vector(f"{name}[:, {j}]", given[:, j]) for j in range(given.shape[1])], axis=1)


def probabilities(name: str, values: ArrayLike) -> Floats:
    """A table of probabilities, in memory of its own."""
    table = matrix(name, values)
    for j in range(table.shape[1]):
        check_unit(f"{name}[:, {j}]", table[:, j])
    return table + 0.0  # −0.0 is 0.0


def in_simplex(name: str, table: Floats) -> Floats:
    """The rows divided by their sums, which must be 1 within `UNIT`."""
    total = table.sum(axis=1, keepdims=True)
    off = np.abs(total[:, 0] - 1.0) > UNIT
    if off.any():
        i = int(np.argmax(off))
        raise InvalidData(
            f"{name}[{i}] sums to {float(total[i, 0]):.9g}; expected 1 within {UNIT:g}: a row is of all classes (a "
            "softmax, not logits)"
        )
    return divided(table)


def divided(table: Floats) -> Floats:
    """The rows divided by their sums; those that are 1 but for rounding stay."""
    total = table.sum(axis=1, keepdims=True)
    # Else 0.1 of one row and 0.1 of another were two levels of their class.
    total[np.abs(total - 1.0) <= table.shape[1] * 2.0**-52] = 1.0
    return np.minimum(table / total, 1.0)


def added(table: Floats, columns: Sequence[int]) -> Floats:
    """The probability of a set of classes; sums that only rounding tells apart, as 0.1 + 0.2 and 0.3, are equal."""
    total: Floats = table[:, [*columns]].sum(axis=1)
    return np.minimum(total if len(columns) == 1 else np.round(total, 14), 1.0)


def names_of(labels: Sequence[Label] | None, k: int) -> tuple[Label, ...]:
    """The labels of K classes, all different; 0 to K − 1 where there are none."""
    try:
        names = tuple(range(k) if labels is None else labels)
        # Plain words and numbers for those of NumPy.
        names = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
        different = len(set(names))
    except TypeError:
        expected = f"expected {k} words or numbers, one for each column"
        raise InvalidData(f"labels = {in_one_line(labels)}; {expected}") from None
    if len(names) != k or different != k:
        raise InvalidData(
            f"labels are {number_of(len(names), 'name')}, {different} of them different; expected {k}, one for each "
            "column"
        )
    return names


def places(where: str, labels: ArrayLike, classes: Sequence[Label] | None, k: int) -> Ints:
    """The column of each label; without `classes` it is a number from 0 to K − 1."""
    if classes is None:
        given, expected = vector(where, labels), f"an integer from 0 to {k - 1}, or the labels of the columns"
        found = np.where((given >= 0) & (given <= k - 1) & (given % 1.0 == 0.0), given, -1.0).astype(np.int64)
    else:
        place = {name: j for j, name in enumerate(names_of(classes, k))}
        given, expected = np.asarray(labels), f"one of {labels_of(place)}"
        if given.ndim != 1:
            raise InvalidData(f"{where} has shape {given.shape}; expected one dimension")
        found = np.array([place.get(label, -1) for label in given.tolist()], dtype=np.int64)
    if (found < 0).any():
        i = int(np.argmax(found < 0))
        raise InvalidData(f"{where}[{i}] = {given.tolist()[i]!r} is no class; expected {expected}")
    return found


def labels_of(labels: Iterable[Label]) -> str:
    """The first of them, for messages."""
    return listed([in_one_line(label) for label in labels])


def grid_points(m: int, k: int) -> int:
    """The number of points of the grid 1/m in the simplex of K classes."""
    return math.comb(m + k - 1, k - 1)


def simplex_parts(m: int, k: int) -> Ints:
    """All (n_0, …, n_{K−1}) of whole numbers ≥ 0 with the sum m, in ascending order: row i is the one of rank i.

    >>> simplex_parts(2, 3).tolist()
    [[0, 0, 2], [0, 1, 1], [0, 2, 0], [1, 0, 1], [1, 1, 0], [2, 0, 0]]
    """
    parts, left = np.zeros((1, 0), np.int64), np.array([m])
    for _ in range(k - 1):
        # Each row goes on with 0, …, as many as are left.
        many = left + 1
        following = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        parts = np.column_stack([np.repeat(parts, many, axis=0), following])
        left = np.repeat(left, many) - following
    return np.column_stack([parts, left])


def simplex_grid(m: int, k: int) -> Floats:
    """The points of the grid 1/m in the simplex, (points, K), in the order of their rank: `simplex_parts` / m."""
    return simplex_parts(m, k) / m
