"""How often the intervals of `growth` cover what they say: `python -m tests.coverage` makes docs/growth.md's table."""

import argparse
from itertools import product

import numpy as np

from onlinecal.growth import fit_growth
from tests.pages import DOCS, rewrite

RUNS, POINTS = (1, 2, 4, 16, 64), (5, 7, 10, 15)
#: expected totals at some T, up to a factor that is drawn for each T in the last
LAWS = {
    "T^(1/3)": lambda t, rng: t ** (1 / 3),
    "√T": lambda t, rng: np.sqrt(t),
    "√T log T": lambda t, rng: np.sqrt(t) * np.log(t),
    "√T + 30": lambda t, rng: np.sqrt(t) + 30,
    "50 + T^(2/3)": lambda t, rng: 50 + t ** (2 / 3),
    "√T, one of two levels (1 : 1.3)": lambda t, rng: np.sqrt(t) * rng.choice([1, 1.3], len(t)),
}
#: factors of runs around their expectation
NOISES = {
    "none": lambda rng, shape: np.ones(shape),
    "5 %": lambda rng, shape: rng.gamma(400.0, 1 / 400, shape),
    "50 %": lambda rng, shape: rng.gamma(4.0, 1 / 4, shape),
    "log-normal": lambda rng, shape: np.exp(0.3 * rng.standard_normal(shape) - 0.3**2 / 2),
    "Pareto 2.5": lambda rng, shape: 1.5 * rng.pareto(2.5, shape),
}


def mean_exponent(times, totals):
    """The slope of the least-squares line through log totals, by numpy's own fit."""
    return float(np.polyfit(np.log(times), np.log(totals), 1)[0])


def simulate(name, rng, count):
    """(runs, distance from the truth, half of the interval, p-value of the bend) of `count` fits in each setting."""
    found = []
    for noise, runs, n in product(NOISES.values(), RUNS, POINTS):
        times = np.round(np.geomspace(1e3, 1e6, n))
        for _ in range(count):
            mean = LAWS[name](times, rng)
            growth = fit_growth(times, mean[:, None] * noise(rng, (n, runs)), fresh=True)
            aim = 0.5 if "levels" in name else mean_exponent(times, mean)
            found.append((runs, abs(growth.value - aim), (growth.upper - growth.lower) / 2, growth.bend))
    return np.array(found).T


def random_walks(rng, runs, horizon=10_000):
    """|S_T| of ±1 steps at 17 T of the last two decades: what a constant forecaster makes of a fair coin."""
    times = np.unique(np.round(np.geomspace(horizon / 100, horizon, 17)).astype(int))
    gaps = np.diff(times, prepend=0)
    steps = 2.0 * rng.binomial(gaps[:, None], 0.5, (len(gaps), runs)) - gaps[:, None]
    return times, np.abs(steps.cumsum(axis=0))


def table(count, seed):
    """The table of docs/growth.md."""
    rng = np.random.default_rng(seed)
    lines = ["| expected totals | covered | fewest | bends |", "| --- | ---: | ---: | ---: |"]
    for name in LAWS:
        runs, off, half, bend = simulate(name, rng, count)
        covered = off <= half + 1e-9
        fewest = min(covered[runs == r].mean() for r in RUNS)
        lines.append(f"| {name} | {covered.mean():.1%} | {fewest:.1%} | {(bend < 0.05).mean():.0%} |")
    about = (
        f"{count * len(NOISES) * len(RUNS) * len(POINTS):,} fits a law: {len(NOISES)} kinds of noise "
        f"({', '.join(NOISES)}), {', '.join(map(str, RUNS))} runs, {', '.join(map(str, POINTS))} horizons from 10³ to "
        f"10⁶; seed {seed}. *Fewest*: of the numbers of runs the one that covers least. *Bends*: p < 0.05."
    )
    return "\n".join([about, "", *lines])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40, help="studies in each setting")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rewrite(DOCS / "growth.md", "coverage", table(options.count, options.seed))
