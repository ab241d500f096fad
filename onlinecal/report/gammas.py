"""Pictures of Γ: what may be drawn, a panel for each label, and limits of axes of probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Unpack

import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats
from onlinecal.core.columns import ALL, ROUNDS, Column
from onlinecal.core.errors import InvalidData, InvalidParameter, meant
from onlinecal.core.joint import JointDistribution
from onlinecal.core.samples import Words
from onlinecal.core.words import listed
from onlinecal.logs.table import Evaluation
from onlinecal.report.facets import Look, facets, stacked
from onlinecal.study.curves import Study, runs_of

#: Γ, or what `evaluate` made of it
Known = JointDistribution | Evaluation
#: or several by their headings, or by forecaster and nature (None: not kept); of samples p where they have y in common,
#: else (p, y) or (p, y, weights)
Gammas = Known | Mapping[Any, Known | ArrayLike | tuple[ArrayLike, ...] | None]
Part = Mapping[str, Any]
#: panels in one picture
PANELS = 36
#: levels that are drawn one by one
MOST = 200
#: ends of axes, from 0, or to 1
NICE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Rows(Words, total=False):
    """Samples beside p and y: their `weights`, and labels of outcomes, as in `JointDistribution.from_samples`."""

    weights: ArrayLike | None


class Drawn(Look, Rows, total=False):
    """How a picture of forecasts looks, and what their samples are."""


def apart(look: Drawn) -> tuple[Rows, Look]:
    """The options of samples, and those of the picture."""
    rows: Any = {name: value for name, value in look.items() if name in Rows.__annotations__}
    return rows, {name: value for name, value in look.items() if name not in rows}  # type: ignore[return-value]


def gammas_of(where: str, p: Any, y: ArrayLike | None, **rows: Unpack[Rows]) -> dict[Any, Any]:
    """Label → Γ, of samples, of a Γ, of an `Evaluation`, or of several by label, which may have y in common."""
    if not isinstance(p, Mapping):
        return {"": _gamma(where, p, y, **rows)}
    if all(one is None for one in p.values()):
        raise InvalidParameter(f"{where}: nothing to draw; expected at least one JointDistribution")
    found: dict[Any, Any] = {}
    for label, one in p.items():
        own: dict[str, Any] = {"p": one, "y": y, **rows}
        if y is None and isinstance(one, tuple) and len(one) in (2, 3):
            own |= zip(("p", "y", "weights"), one, strict=False)
        found[label] = None if one is None else _gamma(where, **own)
    return found


def _gamma(where: str, p: Any, y: Any, **rows: Any) -> JointDistribution:
    if isinstance(p, Known):
        if y is not None or rows:
            beside = "y" if y is not None else next(iter(rows))
            raise InvalidParameter(
                f"{where}: {beside} beside a JointDistribution, which holds outcomes; expected one of the two"
            )
        return p.gamma if isinstance(p, Evaluation) else p
    if y is None:
        raise InvalidData(f"{where}: y is missing; expected the outcomes of the predictions p")
    return JointDistribution.from_samples(p, y, **rows)


def table_of(
    several: Mapping[Any, Any], make: Callable[[Any, Any], tuple[str, Iterable[Part]]]
) -> pd.DataFrame:
    """Finds by `make` the end of a heading and parts of each label and Γ; "missing" where Γ is not kept."""
    parts: list[Part] = []
    for label, gamma in several.items():
        text, found = ("", [{"mark": "missing"}]) if gamma is None else make(label, gamma)
        who, whom = label if isinstance(label, tuple) else ("", label)
        heading = "\n".join(filter(None, (who, f"against {whom}" if who else str(whom), text)))
        parts += [{"forecaster": who, "label": str(whom), "heading": heading, **part} for part in found]
    return stacked(parts)


def of_gammas(table: pd.DataFrame, draw: Callable[..., None], words: str, **options: Any) -> Figure:
    """A panel for each label of such a table; labels that are pairs make a grid, forecasters down."""
    given: dict[str, Any] = {"row": "forecaster", "column": "label", "share": False} | options
    if table["forecaster"].any():
        given |= {"most": 6, "panel": (2.5, 2.9)}
    return facets(table, draw, words, **given)


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


def study_gammas(
    study: Study, round: int | None = None, run: int | None = None, group: str = ""
) -> dict[tuple[str, str], Any]:
    """(forecaster, nature with T) → Γ in the longest game, of a run or of all; None where it is not kept.

    Of the rounds of a `group` or a stream it is of the natures that have it.
    """
    known = list(dict.fromkeys(name for cell in study.cells for name in cell.streams))
    if group:
        group = "" if group == ALL and ALL not in known else meant("group", group, known)
    cells = sorted((c for c in study.cells if not group or group in c.streams), key=lambda cell: cell.horizon)
    longest = {(c.forecaster, c.nature): c for c in cells if round is None or round in c.rounds}
    if not longest:
        times = sorted({t for cell in study.cells for t in cell.rounds.tolist()})
        raise InvalidParameter(
            f"round = {round}; expected one of the checkpoints {listed([str(t) for t in times])}"
        )
    if len(longest) > PANELS:
        raise InvalidParameter(
            f"{len(longest)} pairs of a forecaster and a nature; expected at most {PANELS}, chosen by --forecaster and "
            "--nature"
        )
    found: dict[tuple[str, str], Any] = {}
    for who, whom in (
        (who, whom) for who in study.forecasters for whom in study.natures if (who, whom) in longest
    ):
        cell = longest[who, whom]
        at = len(cell.rounds) - 1 if round is None else cell.rounds.tolist().index(round)
        (runs,) = runs_of([cell])
        if run is not None and not 0 <= run < runs:
            raise InvalidParameter(f"run = {run} of {who} against {whom}; expected 0 to {runs - 1}")
        chosen = [*range(runs)] if run is None else [run]
        if group in cell.groups:
            rounds = cell.totals[Column("measure", ROUNDS, stream=group).name][at]
            chosen = [r for r in chosen if rounds[r] > 0]
        there = [cell.gamma(at, r, cell.streams.index(group) if group else None) for r in chosen]
        whole = there and all(gamma is not None for gamma in there)
        found[who, f"{whom}, T = {int(cell.rounds[at]):,}"] = there[0].merge(*there[1:]) if whole else None
    if not any(found.values()):
        raise InvalidParameter(
            'Γ of these rounds is kept of no pair in all runs; expected a study that was played with keep = "all", a '
            "run of which it is, or a group with rounds"
        )
    return found
