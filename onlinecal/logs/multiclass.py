"""Forecasts of several classes as forecasts of yes/no events, which all measures here are of."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidData
from onlinecal.core.rows import Rows
from onlinecal.core.simplex import places
from onlinecal.core.simplex import probabilities as table_of
from onlinecal.core.validation import check_same_rows, choice
from onlinecal.logs.reading import Log

#: by how much the probabilities of a row may miss 1: those of a softmax in half precision do by some 1e-3
UNIT = 5e-3
#: below this, what sums of a row miss is not worth a word
ROUNDED = 1e-6


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

    Source: Guo, Pleiss, Sun & Weinberger 2017 (confidence); Kull et al. 2019 (classwise). Gupta & Ramdas 2022 call
    "top-label" what also conditions on the top class: keep the rows with `np.argmax(probabilities, axis=1) == k`, class
    by class.

    Parameters
    ----------
    probabilities : (n, K) array_like
        One row for each sample, K ≥ 2; each in [0, 1]. Rows sum to 1 within 0.005, or within the most that rounding
        to one, two or three decimals may change. Not logits.
    labels : (n,) array_like
        0 to K − 1, or as in `classes`.
    reduction : {"top_label", "class_wise"}, default "top_label"
    classes : sequence of K, optional
        The names of the columns, all different: scikit-learn's `classes_`.

    Returns
    -------
    p, y : (n,) floats, or (n, K) floats of "class_wise"
        For `oc.evaluate(p, y)`, or column by column `oc.evaluate(p[:, k], y[:, k])`.

    Examples
    --------
    >>> P = [[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]
    >>> binary_forecasts(P, [0, 1, 0])
    (array([0.7, 0.4, 0.5]), array([1., 0., 1.]))
    """
    choice("binary_forecasts", "reduction", reduction, ("top_label", "class_wise"))
    check_same_rows({"probabilities": probabilities, "labels": labels})
    table = table_of("probabilities", probabilities)
    expected = "each row is of all classes (a softmax, not logits)"
    check_sums(table, lambda i: f"probabilities[{i}]", expected)
    n, k = table.shape
    label = places("labels", labels, classes, k)
    if len(label) != n:
        raise InvalidData(f"probabilities have {n} rows and labels {len(label)} values; expected as many")
    if reduction == "class_wise":
        return table, (np.arange(k) == label[:, None]).astype(np.float64)
    top = table.argmax(axis=1)
    return table[np.arange(n), top], (top == label).astype(np.float64)


def check_sums(table: Floats, where: Callable[[int], str], expected: str) -> None:
    """Refuses a row that does not sum to 1 within `UNIT`, nor by rounding of its cells."""
    off, within = np.abs(table.sum(axis=1) - 1.0), UNIT
    if off.max() > UNIT:
        step = next(
            (s for s in (0.1, 0.01, 0.001) if np.abs(np.rint(table / s) * s - table).max() < 1e-9), 0.0
        )
        within = max(UNIT, 0.5 * step * table.shape[1])
    if (off > within + 1e-9).any():
        i = int(np.argmax(off > within + 1e-9))
        raise InvalidData(
            f"{where(i)} sum to {float(table[i].sum()):.6g}; expected 1, within {within:.3g}: {expected}"
        )


def sums_of(table: Rows, log: Log, expected: str, then: str) -> list[str]:
    """A caution where sums of probabilities miss 1 by more than rounding, and what is done then; or a refusal."""
    names, p = [*log.forecasts], np.column_stack([*log.forecasts.values()])
    columns, places = f"probabilities of {names[0]!r} to {names[-1]!r}", np.asarray(log.places)
    check_sums(p, lambda i: f"{table.where(int(places[i]))}: {columns}", expected)
    off = float(np.abs(p.sum(axis=1) - 1.0).max())
    said = f"caution: the sum of {columns} misses 1 by up to {off:.2g}; {then}"
    return [said] * (off > ROUNDED)


def logs_of_classes(table: Rows, log: Log) -> list[Log]:
    """A log for each class: its probability, and whether it is the label."""
    absent = [name for i, name in enumerate(log.forecasts) if not (log.outcomes == i).any()]
    expected = "name the columns of all classes, and no others (--forecast)"
    expected += f"; no row has the label {absent[0]!r}" if absent else ""
    said = (*log.said, *sums_of(table, log, expected, "they are measured as they are"))
    return [
        replace(log, forecasts={name: p}, outcomes=(log.outcomes == k).astype(np.float64), said=said)
        for k, (name, p) in enumerate(log.forecasts.items())
    ]
