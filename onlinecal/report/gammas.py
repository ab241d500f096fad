"""Pictures of Γ: what may be drawn, a panel for each label, and limits of axes of probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.forecasts.table import Evaluation
from onlinecal.report.panels import Picture, stacked

#: Γ, or what `evaluate` made of it
Known = JointDistribution | Evaluation
#: or several by their headings; of samples a pair (p, y)
Gammas = Known | Mapping[str, Known | tuple[ArrayLike, ArrayLike]]
#: levels that are drawn one by one
MOST = 200
#: ends of axes, from 0, or to 1
NICE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def gammas_of(where: str, p: Any, y: ArrayLike | None) -> dict[str, JointDistribution]:
    """Label → Γ, of samples, of a Γ, of an `Evaluation`, or of several by label, which may have y in common."""
    if isinstance(p, Mapping):
        if not p:
            raise InvalidParameter(f"{where}: nothing to draw; expected at least one JointDistribution")
        pairs = {label: y is None and isinstance(one, tuple) and len(one) == 2 for label, one in p.items()}
        return {label: _gamma(where, *(one if pairs[label] else (one, y))) for label, one in p.items()}
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
    p: Any,
    parts: Mapping[str, Iterable[Mapping[str, Any]]],
    headings: Iterable[str],
    caption: str,
    **options: Any,
) -> Picture:
    """A picture with a panel for each label, of the parts of its table."""
    heads = {label: f"{label}\n{text}".strip() for label, text in zip(parts, headings, strict=True)}
    return Picture(
        table=stacked({"label": label, **part} for label, some in parts.items() for part in some), caption=caption,
        column="label", heading=lambda _, label: heads[label], single=not isinstance(p, Mapping),
        widest=60.0, most=3, **{"low": 2.0} | options,
    )  # fmt: skip


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
