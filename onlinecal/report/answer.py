"""The first sentences on the page of a study: which forecaster is best, and where."""

from __future__ import annotations

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.report.terminal import listed
from onlinecal.study.compare import ranking
from onlinecal.study.curves import Study

#: natures that a sentence names for each forecaster, and forecasters
NAMED = 4
#: after a name that is certain, as in tables of dominations
CERTAIN = "†"


def answer(study: Study, measure: str) -> list[str]:
    """The forecasters with the best mean total at the largest T of each nature, by `ranking`, and what † means.

    None where no two forecasters can be compared, or a mean is infinite.
    """
    try:
        found = [contest for contest in ranking(study, measure) if np.isfinite(contest.means).all()]
    except InvalidParameter:
        found = []
    best: dict[str, list[str]] = {}
    for contest in found:
        for i in np.flatnonzero(contest.ranks == contest.ranks.min()).tolist():
            sure = contest.certain[i].sum() == len(contest.forecasters) - 1
            nature = f'"{contest.nature}"' if "," in contest.nature else contest.nature
            best.setdefault(contest.forecasters[i], []).append(nature + f" {CERTAIN}" * bool(sure))
    if not best:
        return []
    order = sorted(best, key=lambda who: -len(best[who]))
    parts = [f"{who} against {listed(best[who], NAMED)}" for who in order]
    extreme = "lowest" if found[0].signs[0] > 0 else "highest"
    certain = any(CERTAIN in name for names in best.values() for name in names)
    return [
        f"The {extreme} mean total of {measure} is that of {listed(parts, NAMED, '; ')}.",
        f"{CERTAIN}: beyond doubt for the expected totals; all {CERTAIN} of this sentence hold together with 95 %."
        if certain
        else "None of it is beyond doubt for the expected totals.",
    ]
