"""How often the intervals of `evaluate` hold the population's value.

`python -m tests.coverage_intervals 300 200,1000` prints it for 300 simulations of n = 200 and of n = 1000. Each design
is a population Γ of which n samples are drawn again and again. With `300 dependent` or `300 times` they are in clusters
or in order of time, and the mean width is printed too. With `300 means` they have weights, or are in clusters of many
kinds, and the Brier score is held. With `400 few` there are few rows, and each end is counted by
itself.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit, logit, ndtr

from onlinecal.core.joint import JointDistribution
from onlinecal.logs.clusters import Blocks, Clustered, blocks_in_time
from onlinecal.logs.evaluated import evaluated
from onlinecal.logs.evaluation import evaluate
from onlinecal.logs.intervals import mean_interval
from onlinecal.logs.resampling import Resample
from onlinecal.measures import MEASURES
from onlinecal.measures.base import ends

_EVEN = (np.arange(2000) + 0.5) / 2000
_GRID = np.arange(21) / 20


def _levels(v, q, mass=None):
    return JointDistribution.from_levels(v, np.ones(len(v)) if mass is None else mass, np.clip(q, 0.0, 1.0))


#: name → population
DESIGNS: dict[str, JointDistribution] = {
    "calibrated, 21 levels": _levels(_GRID, _GRID),
    "mild, 21 levels": _levels(_GRID, 0.05 + 0.9 * _GRID),
    "strong, 21 levels": _levels(_GRID, 0.2 + 0.6 * _GRID),
    "one level in four is off": _levels(_GRID, _GRID + 0.15 * (np.arange(21) % 4 == 1)),
    "calibrated, continuous": _levels(_EVEN, _EVEN),
    "mild, continuous": _levels(_EVEN, _EVEN + 0.05 * np.sin(6.0 * _EVEN)),
    "strong, continuous": _levels(_EVEN, _EVEN**2),
    "rare, calibrated": _levels(0.02 * _EVEN, 0.02 * _EVEN),
    "rare, too low": _levels(0.02 * _EVEN, 0.04 * _EVEN),
    "three levels, calibrated": _levels(np.array([0.1, 0.5, 0.8]), np.array([0.1, 0.5, 0.8])),
    "three levels, mild": _levels(np.array([0.1, 0.5, 0.8]), np.array([0.15, 0.5, 0.75])),
    "one level": _levels(np.array([0.3]), np.array([0.33])),
}

#: measures that take long; their intervals follow from others' (their truth is tested for all Γ)
SLOW = ("distance_lower", "distance_upper", "interval_ce", "interval_ce_bracket")
FAST = tuple(name for name in MEASURES if name not in SLOW)


#: measures in other ways than in the catalogue, which have intervals of their own
ORDERS = {
    "atb": {"name": "atb"},
    "L2": {"name": "binned_ce"},
    "L2, few bins of equal mass": {"name": "binned_ce", "bins": 4, "strategy": "quantile"},
    "L2, edges": {"name": "binned_ce", "bins": [0.0, 0.1, 0.45, 1.0]},
    "L3": {"name": "binned_ce", "order": 3.0},
    "largest": {"name": "binned_ce", "order": math.inf},
    "ece of order 2": {"name": "ece", "order": 2.0},
    "ece, largest": {"name": "ece", "order": math.inf},
}
#: and those without one
WITHOUT = {
    "debiased": {"name": "binned_ce", "debiased": True},
    "sweep": {"name": "binned_ce", "strategy": "sweep"},
}


_LEVELS = np.arange(1, 20) / 20


def clusters(sizes, alike, rho, off=False, same=False, weighted=False, rare=1.0):
    """Samples in clusters: each has the uniform number of its cluster with probability `rho`, or by a normal copula."""

    def draw(rng):
        of = np.repeat(np.arange(len(sizes)), sizes)
        level = rng.integers(0, 19, len(sizes))[of] if same else rng.integers(0, 19, len(of))
        if alike == "copula":
            common, single = rng.standard_normal(len(sizes))[of], rng.standard_normal(len(of))
            uniform = ndtr(rho**0.5 * common + (1.0 - rho) ** 0.5 * single)
        else:
            uniform = np.where(rng.random(len(of)) < rho, rng.random(len(sizes))[of], rng.random(len(of)))
        return level, uniform, rng.exponential(size=len(of)) if weighted else None, of

    return _truth(off, rare), draw


def autoregressive(rng, n, rho):
    """Normal numbers, of which each depends on the one before."""
    noise = rng.standard_normal(n)
    noise[1:] *= (1.0 - rho**2) ** 0.5
    return lfilter([1.0], [1.0, -rho], noise)


def times(n, rho, off=False, rare=1.0):
    """Samples in order of time, with normal variables that depend on those before; blocks of times are clusters."""

    def draw(rng):
        return rng.integers(0, 19, n), ndtr(autoregressive(rng, n, rho)), None, "times"

    return _truth(off, rare), draw


def shifted(n, bias):
    """Independent samples, of which each happens more often than forecast."""
    return _levels(_LEVELS, _LEVELS + bias), lambda rng: (
        rng.integers(0, 19, n),
        rng.random(n),
        None,
        "times",
    )


def chain(n, stays):
    """One forecast of 0.3 of a chain of two states, whose outcome stays with this correlation to the one before."""

    def draw(rng):
        drawn = rng.random(n) < 0.3
        last = np.maximum.accumulate(np.where(rng.random(n) >= stays, np.arange(n), 0))
        return np.zeros(n, dtype=np.int64), np.where(drawn[last], 0.0, 1.0), None, "times"

    return _levels(np.array([0.3]), np.array([0.3])), draw


def wandering(n):
    """Forecasts whose bias wanders: it has the mean 0, the standard deviation 0.15, and correlations 0.95^k."""

    def draw(rng):
        return rng.integers(0, 19, n), rng.random(n) - 0.15 * autoregressive(rng, n, 0.95), None, "times"

    return _truth(), draw


def _truth(off=False, rare=1.0):
    return _levels(rare * _LEVELS, 0.1 + 0.8 * _LEVELS if off else rare * _LEVELS)


_RAGGED = np.tile(np.arange(1, 21), 3)
#: name → population, and a function of a generator: levels, uniform numbers below which they happen, weights, clusters
DEPENDENT = {
    "200 × 5 of one outcome, calibrated": clusters([5] * 200, "rows", 1.0, same=True),
    "200 × 5 of one outcome, overconfident": clusters([5] * 200, "rows", 1.0, off=True, same=True),
    "50 × 40, correlation .2, calibrated": clusters([40] * 50, "copula", 0.2),
    "60 of 1–20, weights, overconfident": clusters(_RAGGED, "copula", 0.5, off=True, weighted=True),
    "400 × 5, rare, calibrated": clusters([5] * 400, "rows", 0.9, same=True, rare=0.04),
    "AR(.5), n = 500, calibrated": times(500, 0.5),
    "AR(.9), n = 2000, calibrated": times(2000, 0.9),
    "AR(.9), n = 2000, overconfident": times(2000, 0.9, off=True),
}


#: times of which few may tell too little, and then have no interval
TIMES = {
    f"{name}, n = {n}": design(n)
    for name, design in {
        "independent": lambda n: times(n, 0.0),
        "bias of 0.2": lambda n: shifted(n, 0.2),
        "AR(0.5)": lambda n: times(n, 0.5),
        "AR(0.8)": lambda n: times(n, 0.8),
        "AR(0.9)": lambda n: times(n, 0.9),
        "AR(0.9), events of 15 %": lambda n: times(n, 0.9, rare=0.3),
        "chain of two states, 0.7": lambda n: chain(n, 0.7),
        "bias that wanders": wandering,
    }.items()
    for n in (50, 100, 200, 500, 1000, 2000)
}


def dependent(population, draw, simulations: int, names):
    """For each measure: how many intervals hold its value, how many there were, and their mean width."""
    truth = {name: MEASURES[name].function(population) for name in names}
    found = {name: [] for name in names}
    for i in range(simulations):
        level, uniform, weights, of = draw(np.random.default_rng([17, i]))
        p, y = population.predictions[level], (uniform < population.means[level]) * 1.0
        units = blocks_in_time(y - p) if isinstance(of, str) else Blocks(of)
        gamma = JointDistribution.from_samples(p, y, weights=weights)
        samples = (p, y, np.ones(len(p)) if weights is None else weights)
        resample = Resample(gamma, samples) if units.labels is None else Clustered(gamma, samples, *units)
        for row in evaluated(gamma, resample, names, 199, 0, 0.95, "bootstrap", i).rows:
            if row.interval is not None:
                low, high = row.interval
                found[row.name].append(
                    (low <= truth[row.name] + 1e-12 and high >= truth[row.name] - 1e-12, high - low)
                )
    return {
        name: (sum(h for h, _ in all_), len(all_), np.mean([w for _, w in all_]))
        for name, all_ in found.items()
        if all_
    }


def panel(generator, sizes, chances, shared, weigh=None):
    """Calibrated rows of clusters of these sizes. Outcomes go by one number of each with the probability `shared`."""
    of = np.repeat(np.arange(len(sizes)), sizes)
    p, alone = generator.choice(chances, len(of)), generator.random(len(of)) >= shared
    y = (np.where(alone, generator.random(len(of)), generator.random(len(sizes))[of]) < p) * 1.0
    w = np.ones(len(of)) if weigh is None else weigh(generator, len(of))
    gamma = JointDistribution.from_samples(p, y, weights=w)
    return Resample(gamma, (p, y, w)) if max(sizes) == 1 else Clustered(gamma, (p, y, w), of)


def brier_ends(resample, seed):
    v = resample.gamma.predictions
    return mean_interval(*resample.mean_cells(v**2, (1.0 - v) ** 2, 1.0), 199, 0.95, seed)


_ROWS = [1] * 300
#: sizes of clusters, chances, the probability of one number, weights
MEANS = {
    "300 rows, squares of exponential weights": (
        _ROWS,
        _LEVELS,
        0.0,
        lambda g, n: g.exponential(size=n) ** 2,
    ),
    "300 rows, log-normal weights, σ = 1.5": (_ROWS, _LEVELS, 0.0, lambda g, n: g.lognormal(0.0, 1.5, n)),
    "300 rows, Pareto weights, events of 4 %": (
        _ROWS,
        0.08 * _LEVELS,
        0.0,
        lambda g, n: g.pareto(2.5, n) + 1.0,
    ),
    "50 clusters of 50": ([50] * 50, _LEVELS, 0.2, None),
    "15 clusters of 50": ([50] * 15, _LEVELS, 0.2, None),
    "15 clusters of 50, events of 5 %": ([50] * 15, 0.1 * _LEVELS, 0.2, None),
    "20 clusters of 5 equal outcomes": ([5] * 20, _LEVELS, 1.0, None),
    "60 clusters of 1 to 20": (_RAGGED, _LEVELS, 0.5, None),
    "60 clusters of 1 to 20, events of 5 %": (_RAGGED, 0.1 * _LEVELS, 0.5, None),
}


def means(design: str, simulations: int, seed: int = 0) -> tuple[int, float]:
    """How many intervals hold the Brier score of the population, and their mean width."""
    chances = MEANS[design][1]
    truth = float((chances * (1.0 - chances)).mean())
    drawn = (panel(np.random.default_rng([seed, 111, i]), *MEANS[design]) for i in range(simulations))
    low, high = np.transpose([brier_ends(each, i) for i, each in enumerate(drawn)])
    return int(((low <= truth) & (truth <= high)).sum()), float((high - low).mean())


_THREE, _FINE = np.array([0.1, 0.5, 0.8]), 0.05 + 0.9 * _EVEN
#: name → population, of which few rows are drawn; S-shaped ones have half the log odds
FEW = {
    f"{said}, {truth}": _levels(v, q(v))
    for said, v in {"3 levels": _THREE, "19 levels": _LEVELS, "distinct": _FINE}.items()
    for truth, q in {
        "calibrated": lambda v: v,
        "S-shaped": lambda v: expit(0.5 * logit(v)),
        "overconfident": lambda v: 0.1 + 0.8 * v,
    }.items()
}
#: names of measures with ends that need no rule of rows a level
OF_FEW = ("ece", "binned_ece", "cdl", "v_cdl")


class Counted(NamedTuple):
    """How often an interval's ends fail, and its lower end is above 0; the mean upper end where it is not open."""

    lower: int
    upper: int
    above: int
    high: float


def few_rows(population: JointDistribution, events: int, rows: int, simulations: int, seed: int):
    """Ends for events of this many rows, each of one forecast and one outcome."""
    truth = {name: MEASURES[name].function(population) for name in OF_FEW}
    found = {name: np.zeros((simulations, 4)) for name in OF_FEW}
    generator = np.random.default_rng([seed, events, rows, population.levels])
    of = np.repeat(np.arange(events), rows)
    for i in range(simulations):
        level = generator.integers(0, population.levels, events)
        y = (generator.random(events) < population.means[level])[of]
        p, labels = population.predictions[level][of], None if rows == 1 else of
        result = evaluate(p, y, clusters=labels, measures=OF_FEW, bootstrap=199, seed=i)
        for row in result.rows:
            (low, high), true = row.interval, truth[row.name]
            found[row.name][i] = low > true + 1e-9, high < true - 1e-9, low > 0.0, high
    return {
        name: Counted(*(int(n) for n in ends_[:, :3].sum(axis=0)), float(ends_[:, 3].mean()))
        for name, ends_ in found.items()
    }


def coverage(
    population: JointDistribution,
    n: int,
    simulations: int,
    seed: int,
    *,
    names=FAST,
    draws: int = 199,
    interval: Callable | None = None,
) -> dict[str, tuple[int, int]]:
    """How many intervals of each measure hold its value on the population, and how many there were.

    `names` are of the catalogue, or a table of measures with options by a name of one's own.
    """
    generator = np.random.default_rng([seed, n, population.levels])
    asked = names if isinstance(names, dict) else {n: {"name": n, **MEASURES[n].example} for n in names}
    names, specs = list(asked), list(asked.values())
    truth = {}
    for name, spec in asked.items():
        options = {key: value for key, value in spec.items() if key != "name"}
        truth[name] = ends(MEASURES[spec["name"]].function(population, **options))
    share = population.counts / population.counts.sum()
    found = {name: [0, 0] for name in names}
    for i in range(simulations):
        level = generator.choice(population.levels, n, p=share)
        y = generator.random(n) < population.means[level]
        p = population.predictions[level]
        result = (
            evaluate(p, y, measures=specs, bootstrap=draws, seed=i) if interval is None else interval(p, y, i)
        )
        for name, row in zip(names, result.rows, strict=True):
            if row.interval is not None:
                low, high = truth[name]
                found[name][0] += row.interval[0] <= high + 1e-12 and row.interval[1] >= low - 1e-12
                found[name][1] += 1
    return {name: (covered, made) for name, (covered, made) in found.items()}


def main() -> None:
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    if sys.argv[2:] == ["means"]:
        for design in MEANS:
            held, wide = means(design, simulations)
            print(f"| {design} | {100 * held / simulations:.1f} % | {wide:.3f} |", flush=True)
        return
    if sys.argv[2:] in (["dependent"], ["times"]):
        scores = ("smooth_ce", "cutoff_ce", "brier", *["ece", "cdl"] * (sys.argv[2] == "dependent"))
        for design, drawn in (TIMES if sys.argv[2] == "times" else DEPENDENT).items():
            cells = dependent(*drawn, simulations, scores).items()
            said = [
                f"{name} {100 * held / made:.1f} % of {made}, {wide:.3f}"
                for name, (held, made, wide) in cells
            ]
            print(f"{design}: {'; '.join(said)}", flush=True)
        return
    if sys.argv[2:3] == ["few"]:
        print("| design | rows | " + " | ".join(OF_FEW) + " |")
        for design, population in FEW.items():
            for events, rows in ((50, 1), (100, 1), (500, 1), (50, 5), (200, 5)):
                if (design.startswith("distinct") and rows > 1) or not design.endswith(
                    sys.argv[3] if len(sys.argv) > 3 else ""
                ):
                    continue
                cells = [
                    f"{one.lower / simulations:.3f}, {one.upper / simulations:.3f}, "
                    f"{one.above / simulations:.2f}, {one.high:.2f}"
                    for one in few_rows(population, events, rows, simulations, 0).values()
                ]
                of = f"{events}" if rows == 1 else f"{events} × {rows}"
                print(f"| {design} | {of} | " + " | ".join(cells) + " |", flush=True)
        return
    sizes = [int(n) for n in sys.argv[2].split(",")] if len(sys.argv) > 2 else [200, 1000, 5000]
    names = [n for n in FAST if n not in ("weighted_ce",)]
    print("| design | n | " + " | ".join(names) + " |")
    print("| --- | ---: |" + " ---: |" * len(names))
    for design, population in DESIGNS.items():
        for n in sizes:
            start = time.process_time()
            found = coverage(population, n, simulations, 0, names=names)
            cells = [f"{100 * c / m:.0f}" if m >= 0.5 * simulations else "–" for c, m in found.values()]
            print(
                f"| {design} | {n} | " + " | ".join(cells) + f" | {time.process_time() - start:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
