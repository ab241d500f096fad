"""Bounds on forecasters in a world: which apply, and whether totals keep them."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from onlinecal.checks.conformance import Finding
from onlinecal.forecasters.base import Forecaster
from onlinecal.study.panel import Panel
from onlinecal.study.planning import Entry, plan
from onlinecal.study.promises import promises
from onlinecal.study.run import play_cell

#: standard errors by which a mean may be beyond a bound in expectation; of 10^5 such checks one errs
ERRORS = 4.5


def bounds_in_world(
    forecasters: Iterable[Forecaster], world: Any, horizon: int, runs: int, seed: int
) -> Finding:
    """Plays the forecasters that have a bound for open questions in a world, and compares totals with bounds."""
    kept, faults = [], []
    for forecaster in forecasters:
        names = {
            g.column.name for g in forecaster.guarantees if g.column.kind == "measure" and g.kind != "rate"
        }
        longest = forecaster.length or horizon
        if not names or longest < horizon or not forecaster.needs <= world.reveals:
            continue
        entries = [Entry.of(forecaster)], [Entry.of(world)]
        (cell,) = plan(*entries, horizons=[horizon], runs=runs, seed=seed, panel=Panel.of(sorted(names)))
        if not promises(cell):
            continue
        played = play_cell(cell)
        for promise in played.promises:
            totals, sign = played.totals[promise.measure][-1], 1.0 if promise.upper else -1.0
            slack = 1e-9 * (1.0 + abs(promise.bound))
            if promise.kind == "expected":
                totals, slack = np.mean(totals), slack + ERRORS * np.std(totals) / math.sqrt(max(1, runs - 1))
            if promise.kind != "rate":
                kept.append(promise)
                if np.any(sign * (totals - promise.bound) > slack):
                    faults.append(f"{cell.forecaster.label}: {promise.text}: {totals} > {promise.bound:.6g}")
    return Finding(f"bounds for open questions ({len(kept)} apply)", "; ".join(faults))
