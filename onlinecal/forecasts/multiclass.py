"""Forecasts of several classes as forecasts of yes/no events, which all measures here are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.errors import InvalidData
from onlinecal.core.validation import check_same_rows, check_unit, choice, vector

Floats = NDArray[np.float64]

#: by how much the probabilities of a row may miss 1: those of a softmax in half precision do by some 1e-3
UNIT = 5e-3


def binary_forecasts(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    reduction: Literal["top_label", "class_wise"] = "top_label",
    classes: Sequence[Any] | None = None,
) -> tuple[Floats, Floats]:
    """The binary forecasts in probabilities of K classes.

    "top_label" (confidence): p_i = max_k P_ik, y_i = 1 if the label is the first class that has this probability.
    "class_wise" (one versus rest): p_ik = P_ik, y_ik = 1 if the label is k; every column is a forecast of its own. The
    classwise error of a measure is the mean of its columns.

    Parameters
    ----------
    probabilities : (n, K) array_like
        One row for each sample, K ≥ 2; each in [0, 1], rows that sum to 1 within 0.005. Not logits.
    labels : (n,) array_like
        0 to K − 1, or as in `classes`.
    reduction : {"top_label", "class_wise"}, default "top_label"
    classes : sequence of K, optional
        The names of the columns, all different: scikit-learn's `classes_`.

    Returns
    -------
    p, y : (n,) floats, or (n, K) floats of "class_wise"
        For `oc.evaluate(p, y)`, or column by column `oc.evaluate(p[:, k], y[:, k])`.

    Source
    ------
    Guo, Pleiss, Sun & Weinberger 2017 (confidence); Kull et al. 2019 (classwise). Gupta & Ramdas 2022 call "top-label"
    what also conditions on the top class: keep the rows with `np.argmax(probabilities, axis=1) == k`, class by class.

    Examples
    --------
    >>> P = [[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]
    >>> binary_forecasts(P, [0, 1, 0])
    (array([0.7, 0.4, 0.5]), array([1., 0., 1.]))
    """
    choice("binary_forecasts", "reduction", reduction, ("top_label", "class_wise"))
    check_same_rows({"probabilities": probabilities, "labels": labels})
    table = _table(probabilities)
    n, k = table.shape
    label = _places(labels, classes, k)
    if len(label) != n:
        raise InvalidData(
            f"probabilities have {n} rows and labels {len(label)} values; expected as many of each"
        )
    if reduction == "class_wise":
        return table, (np.arange(k) == label[:, None]).astype(np.float64)
    top = table.argmax(axis=1)
    return table[np.arange(n), top], (top == label).astype(np.float64)


def _table(probabilities: ArrayLike) -> Floats:
    """The probabilities, checked, in memory of their own."""
    given = probabilities if isinstance(probabilities, np.ma.MaskedArray) else np.asarray(probabilities)
    if given.ndim != 2 or given.shape[1] < 2:
        raise InvalidData(
            f"probabilities have shape {given.shape}; expected (n, K), a row for each sample and K ≥ 2 classes"
        )
    if not len(given):
        raise InvalidData("no samples: probabilities have no row; expected at least one")
    table = np.empty(given.shape)
    for j in range(given.shape[1]):
        table[:, j] = vector(f"probabilities[:, {j}]", given[:, j])
        check_unit(f"probabilities[:, {j}]", table[:, j])
    off = np.abs(table.sum(axis=1) - 1.0)
    if (off > UNIT).any():
        i = int(np.argmax(off > UNIT))
        raise InvalidData(
            f"probabilities[{i}] sum to {float(table[i].sum()):.6g}; expected 1, within {UNIT}: each row is the "
            "probabilities of all classes (a softmax, not logits)"
        )
    return table


def _places(labels: ArrayLike, classes: Sequence[Any] | None, k: int) -> NDArray[np.int64]:
    """The column of each label."""
    if classes is None:
        given, expected = vector("labels", labels), f"an integer from 0 to {k - 1}, or `classes`"
        found = np.where((given >= 0) & (given <= k - 1) & (given % 1.0 == 0.0), given, -1.0).astype(np.int64)
    else:
        names = list(classes)
        place = {name: j for j, name in enumerate(names)}
        if len(names) != k or len(place) != k:
            raise InvalidData(
                f"classes are {len(names)} names, {len(place)} of them different; expected {k}, one for each column"
            )
        given, expected = np.asarray(labels), "one of `classes`"
        if given.ndim != 1:
            raise InvalidData(f"labels have shape {given.shape}; expected one dimension")
        found = np.array([place.get(label, -1) for label in given.tolist()], dtype=np.int64)
    if (found < 0).any():
        i = int(np.argmax(found < 0))
        raise InvalidData(f"labels[{i}] = {given.tolist()[i]!r} is no class; expected {expected}")
    return found
