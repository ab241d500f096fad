"""How often the intervals of logistic recalibration, AUC and ICI hold the population's value.

`python -m tests.coverage_line 400` prints a table, for 400 samples of each design; docs/intervals.md has its range.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import expit, logit

from onlinecal.core.joint import JointDistribution
from onlinecal.logs.evaluation import evaluate
from onlinecal.logs.line import calibration_line

GRID = np.arange(1, 20) / 20
#: what is drawn of the intervals of ICI
DRAWS = 100
CHANCES = {
    "calibrated": lambda p: p,
    "half the log odds": lambda p: expit(0.5 * logit(p)),
    "overconfident": lambda p: 0.1 + 0.8 * p,
}
#: forecasts, and what of a row: independent, in clusters of 5 with one outcome, with weights
DESIGNS = [
    ("19 levels", GRID, "", 50), ("19 levels", GRID, "", 100), ("19 levels", GRID, "", 500),
    ("below 0.06", GRID * 0.06, "", 100), ("below 0.06", GRID * 0.06, "", 500),
    ("19 levels", GRID, "clusters", 60), ("19 levels", GRID, "clusters", 200), ("19 levels", GRID, "weights", 100),
]  # fmt: skip
NAMES = ("in the large", "intercept", "slope", "AUC", "ICI")


def sample(rng, levels, chance, n, kind=""):
    """Forecasts, outcomes, and the weights or clusters of this kind."""
    p = rng.choice(levels, n)
    y = (rng.random(n) < chance(p)).astype(float)
    if kind == "clusters":
        return np.repeat(p, 5), np.repeat(y, 5), {"clusters": np.repeat(np.arange(n), 5)}
    return p, y, {"weights": rng.exponential(size=n)} if kind else {}


def coverage(rng, runs, levels, chance, n, kind="", others=True):
    """The shares of intervals that hold the truth, of those that there are, with their mean widths."""
    population = JointDistribution.from_levels(levels, np.ones(len(levels)), chance(levels))
    names = ["auc", "ici"] if others else []
    truth = [one.value for one in calibration_line(population)]
    truth += [evaluate(population, measures=[name])[name] for name in names]
    held, there, width = np.zeros((3, len(truth)))
    for draws in range(runs):
        p, y, given = sample(rng, levels, chance, n, kind)
        ends = [one.interval for one in calibration_line(p, y, **given)]
        if names:
            table = evaluate(p, y, measures=names, bootstrap=DRAWS, seed=draws, **given)
            ends += [row.interval for row in table.rows]
        for i, interval in enumerate(ends):
            if interval is not None:
                there[i] += 1
                held[i] += interval[0] <= truth[i] <= interval[1]
                width[i] += interval[1] - interval[0]
    return held / np.maximum(there, 1.0), width / np.maximum(there, 1.0), there / runs


def main(runs: int) -> None:
    print(f"| forecasts | rows | chances | {' | '.join(NAMES)} |\n|{' --- |' * 8}")
    for name, levels, kind, n in DESIGNS:
        for said, chance in CHANCES.items():
            held, width, there = coverage(np.random.default_rng(1), runs, levels, chance, n, kind)
            rows = {"": f"{n}", "clusters": f"{n} × 5", "weights": f"{n}, weights"}[kind]
            cells = [f"{100 * a:.1f} %, {b:.2g}" for a, b in zip(held, width, strict=True)]
            few = [f"{100 * (1 - c):.0f} % none" for c in there[2:3] if c < 0.995]
            print(f"| {name} | {rows} | {' '.join([said, *few])} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
