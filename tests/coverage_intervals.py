"""How often the intervals of `evaluate` hold the population's value: the tables of docs/intervals.md.

`python -m tests.coverage_intervals 300 few` plays 300 logs of each design of few rows: how often each end fails, how
often the lower one is above 0, and the mean upper end. `means` has weights or clusters of many kinds. `dependent` and
`times` have clusters or an order of time; both print the mean width, too.
"""

import sys
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit, logit, ndtr

from onlinecal.core.joint import JointDistribution
from onlinecal.logs.clusters import Blocks, Samples, blocks_in_time
from onlinecal.logs.evaluated import evaluated
from onlinecal.logs.evaluation import evaluate

LEVELS = np.arange(1, 20) / 20


class Design(NamedTuple):
    """A population, and a function of a generator: forecasts, outcomes, weights, and clusters or "times"."""

    population: JointDistribution
    draw: Callable[[np.random.Generator], tuple[Any, Any, Any, Any]]


class Found(NamedTuple):
    """The ends of the intervals of a measure, and those of its value on the population."""

    truth: tuple[float, float]
    lower: np.ndarray
    upper: np.ndarray

    @property
    def made(self):
        """How many intervals there are."""
        return len(self.lower)

    @property
    def above(self):
        """How many lie above the truth."""
        return int((self.lower > self.truth[1] + 1e-12).sum())

    @property
    def below(self):
        """How many lie below it."""
        return int((self.upper < self.truth[0] - 1e-12).sum())

    @property
    def held(self):
        """How many hold it."""
        return self.made - self.above - self.below

    @property
    def width(self):
        """The mean width."""
        return float((self.upper - self.lower).mean())


def intervals_of(
    design: Design, measures: Iterable[Any], generators: Iterable[np.random.Generator], draws: int = 199
) -> dict[str, Found]:
    """The intervals of measures at 95 %, of samples by each generator."""
    truth = evaluate(design.population, measures=measures).rows
    made = [list[tuple[float, float]]() for _ in truth]
    for seed, generator in enumerate(generators):
        p, y, weights, of = design.draw(generator)
        units = blocks_in_time(y - p) if isinstance(of, str) else Blocks(of)
        samples = Samples(p, y * 1.0, weights, None, units)
        resample = samples.resample(samples.gamma)
        rows = evaluated(samples.gamma, resample, measures, draws, 0, 0.95, "bootstrap", seed).rows
        for mine, row in zip(made, rows, strict=True):
            if row.interval is not None:
                mine.append(row.interval)
    ends = [np.array(mine).reshape(-1, 2).T for mine in made]
    return {row.name: Found(row.ends, *both) for row, both in zip(truth, ends, strict=True)}


# ---------------------------------------------------------------- populations, and rows of them


def population(v, q, mass=None):
    return JointDistribution.from_levels(v, np.ones(len(v)) if mass is None else mass, np.clip(q, 0.0, 1.0))


def independent(of: JointDistribution, n: int, weigh=None) -> Design:
    """n rows of a population, with weights by a function of a generator and n."""
    share = of.counts / of.counts.sum()

    def draw(rng):
        level = rng.choice(of.levels, n, p=share)
        y = rng.random(n) < of.means[level]
        return of.predictions[level], y, None if weigh is None else weigh(rng, n), None

    return Design(of, draw)


_EVEN = (np.arange(2000) + 0.5) / 2000
_GRID = np.arange(21) / 20
_THREE = np.array([0.1, 0.5, 0.8])
#: name → population
POPULATIONS = {
    "calibrated, 21 levels": population(_GRID, _GRID),
    "mild, 21 levels": population(_GRID, 0.05 + 0.9 * _GRID),
    "strong, 21 levels": population(_GRID, 0.2 + 0.6 * _GRID),
    "one level in four is off": population(_GRID, _GRID + 0.15 * (np.arange(21) % 4 == 1)),
    "calibrated, continuous": population(_EVEN, _EVEN),
    "mild, continuous": population(_EVEN, _EVEN + 0.05 * np.sin(6.0 * _EVEN)),
    "strong, continuous": population(_EVEN, _EVEN**2),
    "rare, calibrated": population(0.02 * _EVEN, 0.02 * _EVEN),
    "rare, too low": population(0.02 * _EVEN, 0.04 * _EVEN),
    "three levels, calibrated": population(_THREE, _THREE),
    "three levels, mild": population(_THREE, np.array([0.15, 0.5, 0.75])),
    "one level": population(np.array([0.3]), np.array([0.33])),
}

#: S-shaped forecasts have half the log odds
TRUTHS = {
    "calibrated": lambda v: v,
    "S-shaped": lambda v: expit(0.5 * logit(v)),
    "overconfident": lambda v: 0.1 + 0.8 * v,
}
#: populations of which few rows are drawn
FEW = {
    f"{said}, {truth}": population(v, q(v))
    for said, v in {"3 levels": _THREE, "19 levels": LEVELS, "distinct": 0.05 + 0.9 * _EVEN}.items()
    for truth, q in TRUTHS.items()
}
#: names of measures with ends that need no rule of rows a level
OF_FEW = ("ece", "binned_ece", "cdl", "v_cdl")


def few_rows(of: JointDistribution, events: int, rows: int, simulations: int, seed: int) -> dict[str, Found]:
    """Intervals for events of this many rows, each of one forecast and one outcome."""
    labels = np.repeat(np.arange(events), rows)

    def draw(rng):
        level = rng.integers(0, of.levels, events)
        y = rng.random(events) < of.means[level]
        return of.predictions[level][labels], y[labels], None, None if rows == 1 else labels

    generator = np.random.default_rng([seed, events, rows, of.levels])
    return intervals_of(Design(of, draw), OF_FEW, repeat(generator, simulations))


# ---------------------------------------------------------------- clusters and times


def _by_level(of: JointDistribution, draw) -> Design:
    """A design by levels, and uniform numbers below which rows happen."""

    def rows(rng):
        level, uniform, weights, units = draw(rng)
        each = np.ones(len(level)) if weights is None else weights
        return of.predictions[level], (uniform < of.means[level]) * 1.0, each, units

    return Design(of, rows)


def _levels(off=False, rare=1.0):
    return population(rare * LEVELS, 0.1 + 0.8 * LEVELS if off else rare * LEVELS)


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

    return _by_level(_levels(off, rare), draw)


def autoregressive(rng, n, rho):
    """Normal numbers, of which each depends on the one before."""
    noise = rng.standard_normal(n)
    noise[1:] *= (1.0 - rho**2) ** 0.5
    return lfilter([1.0], [1.0, -rho], noise)


def times(n, rho, off=False, rare=1.0):
    """Samples in order of time, with normal variables that depend on those before."""
    return _by_level(
        _levels(off, rare),
        lambda rng: (rng.integers(0, 19, n), ndtr(autoregressive(rng, n, rho)), None, "times"),
    )


def shifted(n, bias):
    """Independent samples, of which each happens more often than forecast."""
    return _by_level(
        population(LEVELS, LEVELS + bias), lambda rng: (rng.integers(0, 19, n), rng.random(n), None, "times")
    )


def chain(n, stays):
    """One forecast of 0.3 of a chain of two states, whose outcome stays with this correlation to the one before."""

    def draw(rng):
        drawn = rng.random(n) < 0.3
        last = np.maximum.accumulate(np.where(rng.random(n) >= stays, np.arange(n), 0))
        return np.zeros(n, dtype=np.int64), np.where(drawn[last], 0.0, 1.0), None, "times"

    return _by_level(population(np.array([0.3]), np.array([0.3])), draw)


def wandering(n):
    """Forecasts whose bias wanders: it has the mean 0, the standard deviation 0.15, and correlations 0.95^k."""
    return _by_level(
        _levels(),
        lambda rng: (
            rng.integers(0, 19, n), rng.random(n) - 0.15 * autoregressive(rng, n, 0.95), None, "times",
        ),
    )  # fmt: skip


_RAGGED = np.tile(np.arange(1, 21), 3)
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


# ---------------------------------------------------------------- means of losses


def panel(sizes, chances, shared, weigh=None) -> Design:
    """Calibrated rows of clusters of these sizes. Outcomes go by one number of each with the probability `shared`."""
    of = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng):
        p, alone = rng.choice(chances, len(of)), rng.random(len(of)) >= shared
        y = np.where(alone, rng.random(len(of)), rng.random(len(sizes))[of]) < p
        weights = None if weigh is None else weigh(rng, len(of))
        return p, y, weights, None if max(sizes) == 1 else of

    return Design(population(chances, chances), draw)


_ROWS = [1] * 300
MEANS = {
    "300 rows, squares of exponential weights": panel(_ROWS, LEVELS, 0.0, lambda g, n: g.exponential(size=n) ** 2),
    "300 rows, log-normal weights, σ = 1.5": panel(_ROWS, LEVELS, 0.0, lambda g, n: g.lognormal(0.0, 1.5, n)),
    "300 rows, Pareto weights, events of 4 %": panel(_ROWS, 0.08 * LEVELS, 0.0, lambda g, n: g.pareto(2.5, n) + 1.0),
    "50 clusters of 50": panel([50] * 50, LEVELS, 0.2),
    "15 clusters of 50": panel([50] * 15, LEVELS, 0.2),
    "15 clusters of 50, events of 5 %": panel([50] * 15, 0.1 * LEVELS, 0.2),
    "20 clusters of 5 equal outcomes": panel([5] * 20, LEVELS, 1.0),
    "60 clusters of 1 to 20": panel(_RAGGED, LEVELS, 0.5),
    "60 clusters of 1 to 20, events of 5 %": panel(_RAGGED, 0.1 * LEVELS, 0.5),
}  # fmt: skip


def means(design: Design, simulations: int, seed: int = 0) -> Found:
    """Intervals of the Brier score."""
    generators = (np.random.default_rng([seed, 111, i]) for i in range(simulations))
    return intervals_of(design, ["brier"], generators)["brier"]


# ---------------------------------------------------------------- the commands


def print_few(simulations: int) -> None:
    print("| design | rows | " + " | ".join(OF_FEW) + " |")
    for name, of in FEW.items():
        for events, rows in ((50, 1), (100, 1), (500, 1), (50, 5), (200, 5)):
            if name.startswith("distinct") and rows > 1:
                continue
            cells = [
                f"{one.above / simulations:.3f}, {one.below / simulations:.3f}, "
                f"{(one.lower > 0.0).mean():.2f}, {one.upper.mean():.2f}"
                for one in few_rows(of, events, rows, simulations, 0).values()
            ]
            many = f"{events}" if rows == 1 else f"{events} × {rows}"
            print(f"| {name} | {many} | " + " | ".join(cells) + " |", flush=True)


def print_means(simulations: int) -> None:
    for name, design in MEANS.items():
        found = means(design, simulations)
        print(f"| {name} | {100 * found.held / simulations:.1f} % | {found.width:.3f} |", flush=True)


def print_dependent(simulations: int, designs: dict[str, Design], names: tuple[str, ...]) -> None:
    for design, drawn in designs.items():
        generators = (np.random.default_rng([17, i]) for i in range(simulations))
        said = [
            f"{name} {100 * one.held / one.made:.1f} % of {one.made}, {one.width:.3f}"
            for name, one in intervals_of(drawn, names, generators).items()
            if one.made
        ]
        print(f"{design}: {'; '.join(said)}", flush=True)


SCORES = ("smooth_ce", "cutoff_ce", "brier")
COMMANDS = {
    "few": print_few,
    "means": print_means,
    "dependent": lambda simulations: print_dependent(simulations, DEPENDENT, (*SCORES, "ece", "cdl")),
    "times": lambda simulations: print_dependent(simulations, TIMES, SCORES),
}

if __name__ == "__main__":
    COMMANDS[sys.argv[2]](int(sys.argv[1]))
