"""The first sentences on the page of a study: which forecaster is best, where, and by how much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import number_of
from onlinecal.report.terminal import number
from onlinecal.study.compare import ranking
from onlinecal.study.curves import Study

#: natures that a sentence names
NAMED = 4


def best_table(study: Study, measure: str) -> tuple[pd.DataFrame, bool]:
    """A row for each nature and each forecaster with the best mean there, and whether the lowest is the best.

    ``certain`` is whether it is best beyond doubt. ``other`` is the mean of the ``next`` one, and ``lead`` their
    difference as a share of both.
    """
    found, rows = ranking(study, measure), list[dict[str, Any]]()
    for s in (s for s in found if np.isfinite(s.means).all()):
        for i in np.flatnonzero(s.ranks == s.ranks.min()).tolist():
            after = min((j for j in range(len(s.ranks)) if j != i), key=lambda j: float(s.ranks[j]))
            mean, other = s.means[[i, after], 0].tolist()
            lead = abs(other - mean) / ((abs(mean) + abs(other)) or 1.0)
            sure = bool(s.certain[i].sum() == len(s.forecasters) - 1)
            rows.append({
                "nature": s.nature, "forecaster": s.forecasters[i], "horizon": s.horizon, "certain": sure,
                "mean": mean, "next": s.forecasters[after], "other": other, "lead": lead,
            })  # fmt: skip
    return pd.DataFrame(rows), found[0].signs[0] > 0


def answer(study: Study, measure: str) -> list[str]:
    """Three sentences on the forecaster that is best at the largest T of most natures, by `ranking`; or none."""
    try:
        best, low = best_table(study, measure)
    except InvalidParameter:
        return []
    if best.empty:
        return []
    of = dict([*best.groupby("forecaster")])
    # Of several that are best equally often, the first with the most that is certain, and then the largest lead.
    who = max(
        (name for name in study.forecasters if name in of),
        key=lambda name: (len(of[name]), of[name]["certain"].sum(), of[name]["lead"].max()),
    )
    mine, natures = of[who], best["nature"].nunique()
    extreme = "lowest" if low else "highest"
    where = "every nature" if 1 < len(mine) == natures else _list([*mine["nature"]])
    several = f" ({len(mine)} of {number_of(natures, 'nature')})" if len(mine) < natures else ""
    if mine["certain"].all():
        doubt = "This is beyond doubt for the expected totals"
    elif mine["certain"].any():
        sure = _list([*mine["nature"][mine["certain"]]])
        doubt = f"This is beyond doubt for the expected totals against {sure}"
    else:
        doubt = "Against none of them is this beyond doubt for the expected totals"
    elsewhere = best[~best["nature"].isin(mine["nature"])].groupby("nature", sort=False)["forecaster"]
    others: dict[str, list[str]] = {}
    for nature, names in elsewhere:
        others.setdefault(" and ".join(names), []).append(str(nature))
    if others:
        said = [f"{names} against {_list(against)}" for names, against in others.items()]
        doubt += f"; the {extreme} mean is that of {'; of '.join(said)}"
    first: Any = mine.loc[mine["lead"].idxmax()]
    twice = first["lead"] > 0.0 < first["mean"] and low
    times = f", {number(first['other'] / first['mean'])} times as much" if twice else ""
    return [
        f"By {measure}, {who} has the {extreme} mean total against {where}{several}.",
        f"{doubt}.",
        f"The largest lead is against {first['nature']} at T = {first['horizon']:,}: {number(first['mean'])}, and the "
        f"next, {first['next']}, has {number(first['other'])}{times}.",
    ]


def _list(names: list[str]) -> str:
    """Names with commas, in quotation marks where they have some; of many the first and how many more there are."""
    names = [f'"{name}"' if "," in name else name for name in names]
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
