"""The first sentences on the page of a study: which forecaster is best, where, and by how much."""

from __future__ import annotations

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import number_of
from onlinecal.report.terminal import number
from onlinecal.study.compare import Contest, ranking
from onlinecal.study.curves import Study

#: natures that a sentence names
NAMED = 4


def answer(study: Study, measure: str) -> list[str]:
    """Three sentences on the forecaster that is best at the largest T of most natures, by `ranking`; or none."""
    try:
        found = ranking(study, measure)
    except InvalidParameter:
        return []
    standings = [s for s in found if np.isfinite(s.means).all()]
    best = {s.nature: [s.forecasters[i] for i in np.flatnonzero(s.ranks == s.ranks.min())] for s in standings}
    wins = {who: [n for n, names in best.items() if who in names] for who in study.forecasters}
    of = {name: [s for s in standings if s.nature in wins[name]] for name in wins}
    certain = {
        name: [s.nature for s in mine if s.certain[s.forecasters.index(name)].sum() == len(s.forecasters) - 1]
        for name, mine in of.items()
    }

    def merit(name: str) -> tuple[int, int, float]:
        leads = [_lead(s, name)[0] for s in of[name]]
        return len(leads), len(certain[name]), max(leads, default=0.0)

    who = max(wins, key=merit)
    mine, sure = of[who], certain[who]
    if not mine:
        return []
    extreme = "lowest" if found[0].signs[0] > 0 else "highest"
    where = "every nature" if 1 < len(mine) == len(standings) else _list(wins[who])
    several = f" ({len(mine)} of {number_of(len(standings), 'nature')})" if len(mine) < len(standings) else ""
    said = [f"By {measure}, {who} has the {extreme} mean total against {where}{several}."]
    if len(sure) == len(mine):
        doubt = "This is beyond doubt for the expected totals"
    elif sure:
        doubt = f"This is beyond doubt for the expected totals against {_list(sure)}"
    else:
        doubt = "Against none of them is this beyond doubt for the expected totals"
    others: dict[str, list[str]] = {}
    for nature, names in best.items():
        if who not in names:
            others.setdefault(" and ".join(names), []).append(nature)
    if others:
        elsewhere = [f"{names} against {_list(natures)}" for names, natures in others.items()]
        doubt += f"; the {extreme} mean is that of {'; of '.join(elsewhere)}"
    said.append(f"{doubt}.")
    first = max(mine, key=lambda s: _lead(s, who)[0])
    lead, value, after, other = _lead(first, who)
    times = f", {number(other / value)} times as much" if lead > 0.0 < value and extreme == "lowest" else ""
    said.append(
        f"The largest lead is against {first.nature} at T = {first.horizon:,}: {number(value)}, and the next, "
        f"{after}, has {number(other)}{times}."
    )
    return said


def _lead(standing: Contest, who: str) -> tuple[float, float, str, float]:
    """The lead of a forecaster as a share, its mean total, the next forecaster and that one's mean total."""
    own = standing.forecasters.index(who)
    after = min((i for i in range(len(standing.ranks)) if i != own), key=lambda i: float(standing.ranks[i]))
    value, other = standing.means[[own, after], 0].tolist()
    return abs(other - value) / ((abs(value) + abs(other)) or 1.0), value, standing.forecasters[after], other


def _list(names: list[str]) -> str:
    """Names with commas, in quotation marks where they have some; of many the first and how many more there are."""
    names = [f'"{name}"' if "," in name else name for name in names]
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
