"""How often the intervals of logistic recalibration, AUC and ICI hold the population's value.

`python -m tests.coverage_line 400` prints a table, for 400 samples of each design; docs/intervals.md has its range.
"""

import sys
from itertools import repeat

import numpy as np

from tests.coverage_intervals import LEVELS, TRUTHS, Design, intervals_of, population

#: forecasts, and what of a row: independent, in clusters of 5 with one outcome, with weights
DESIGNS = [
    ("19 levels", LEVELS, "", 50), ("19 levels", LEVELS, "", 100), ("19 levels", LEVELS, "", 500),
    ("below 0.06", LEVELS * 0.06, "", 100), ("below 0.06", LEVELS * 0.06, "", 500),
    ("19 levels", LEVELS, "clusters", 60), ("19 levels", LEVELS, "clusters", 200),
    ("19 levels", LEVELS, "weights", 100),
]  # fmt: skip
CHANCES = {"half the log odds" if name == "S-shaped" else name: truth for name, truth in TRUTHS.items()}
#: name of a column → measure
NAMES = {
    "in the large": "calibration_in_the_large", "intercept": "calibration_intercept", "slope": "calibration_slope",
    "AUC": "auc", "ICI": "ici",
}  # fmt: skip


def rows(levels, chance, n, kind="") -> Design:
    """Rows of a population, with weights or clusters of this kind."""

    def draw(rng):
        p = rng.choice(levels, n)
        y = rng.random(n) < chance(p)
        if kind == "clusters":
            return np.repeat(p, 5), np.repeat(y, 5), None, np.repeat(np.arange(n), 5)
        return p, y, rng.exponential(size=n) if kind else None, None

    return Design(population(levels, chance(levels)), draw)


def main(runs: int) -> None:
    print(f"| forecasts | rows | chances | {' | '.join(NAMES)} |\n|{' --- |' * 8}")
    for name, levels, kind, n in DESIGNS:
        for said, chance in CHANCES.items():
            generators = repeat(np.random.default_rng(1), runs)
            found = intervals_of(rows(levels, chance, n, kind), [*NAMES.values()], generators, draws=100)
            many = {"": f"{n}", "clusters": f"{n} × 5", "weights": f"{n}, weights"}[kind]
            cells = [f"{100 * one.held / one.made:.1f} %, {one.width:.2g}" for one in found.values()]
            without = 1.0 - found["calibration_slope"].made / runs
            few = [f"{100 * without:.0f} % none"] * (without > 0.005)
            print(f"| {name} | {many} | {' '.join([said, *few])} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
