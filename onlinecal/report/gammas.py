"""Pictures of Γ: what may be drawn, a panel for each label, and limits of axes of probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.logs.table import Evaluation
from onlinecal.report.facets import facets, stacked

#: Γ, or what `evaluate` made of it
Known = JointDistribution | Evaluation
#: or several by their headings, or by forecaster and nature (None: not kept); of samples a pair (p, y)
Gammas = Known | Mapping[Any, Known | tuple[ArrayLike, ArrayLike] | None]
#: levels that are drawn one by one
MOST = 200
#: ends of axes, from 0, or to 1
NICE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def gammas_of(where: str, p: Any, y: ArrayLike | None) -> dict[Any, Any]:
    """Label → Γ, of samples, of a Γ, of an `Evaluation`, or of several by label, which may have y in common."""
    if isinstance(p, Mapping):
        if not p:
            raise InvalidParameter(f"{where}: nothing to draw; expected at least one JointDistribution")
        pairs = {label: y is None and isinstance(one, tuple) and len(one) == 2 for label, one in p.items()}
        return {
            label: None if one is None else _gamma(where, *(one if pairs[label] else (one, y)))
            for label, one in p.items()
        }
    return {"": _gamma(where, p, y)}


def _gamma(where: str, one: Any, y: ArrayLike | None) -> JointDistribution:
    if isinstance(one, Known):
        if y is not None:
            raise InvalidParameter(
                f"{where}: y beside a JointDistribution, which holds outcomes; expected one of the two"
            )
        return one.gamma if isinstance(one, Evaluation) else one
    if y is None:
        raise InvalidData(f"{where}: y is missing; expected the outcomes of the predictions p")
    return JointDistribution.from_samples(one, y)


def of_gammas(
    parts: Mapping[Any, Iterable[Mapping[str, Any]]],
    headings: Iterable[str],
    words: str,
    draw: Callable[..., None],
    **options: Any,
) -> Figure:
    """A panel for each label, of the parts of its table; labels that are pairs make a grid, forecasters down."""
    places = {label: label if isinstance(label, tuple) else ("", label) for label in parts}
    table = stacked(
        {"row": places[label][0], "column": places[label][1], **part}
        for label, some in parts.items()
        for part in some
    )
    heads = {
        (row, column): "\n".join(filter(None, (row, f"against {column}" if row else column, text)))
        for (row, column), text in zip(places.values(), headings, strict=True)
    }
    grid = {"most": 6, "panel": (2.5, 2.9)} if any(row for row, _ in heads) else {}
    return facets(
        table, draw, words, row="row", column="column", **{"share": False} | options | grid,
        heading=lambda row, column: heads.get((row, column), f"{row}\nagainst {column}"),
    )  # fmt: skip


def each_of(found: Mapping[Any, JointDistribution | None], make: Callable[[Any], Any]) -> dict[Any, Any]:
    """The results of `make` for each Γ; None where it is not kept."""
    return {label: None if gamma is None else make(gamma) for label, gamma in found.items()}


def spans(*values: Floats) -> list[tuple[float, float]]:
    """Limits of axes of probabilities: [0, 1], or as much of one end as rare or almost certain events need.

    >>> import numpy as np
    >>> spans(np.array([0.001, 0.03]), np.array([0.0, 0.4])), spans(np.array([0.93]))
    ([(0.0, 0.05), (0.0, 0.5)], [(0.9, 1.0)])
    """
    found = []
    for some in values:
        low, high = float(some.min()), float(some.max())
        end = min([1.0, *(end for end in NICE if end >= min(high, 1.0 - low))])
        found.append((0.0, end) if high <= end else (1.0 - end, 1.0))
    return found
