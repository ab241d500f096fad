"""How often the intervals of `growth` cover what they say: `python -m tests.coverage` makes docs/growth.md's table.

Every law is simulated with each noise, number of runs and number of horizons below, and fitted. Counted are the
intervals of the mean growth exponent and, where one is given, of the asymptotic exponent. Those that are taken back,
since the totals are called no power law, are counted too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import onlinecal as oc
from onlinecal.face import play
from onlinecal.growth import Growth, fit_growth
from tests.readme import rewrite

RUNS = (1, 2, 4, 16, 64)
POINTS = (5, 7, 10, 15)
#: what rounding may do to an exponent
ROUNDING = 1e-6


@dataclass(frozen=True)
class Law:
    """Expected totals as a function of T (and of chance, where a factor is drawn at each T), and their exponent."""

    name: str
    total: Callable[[Any, Any], Any]
    exponent: float
    #: "power", "form" (one that is fitted), "jagged" or "other"
    kind: str

    def aim(self, times: Any, totals: Any) -> float:
        """The target of the interval: α, be it up to a jagged factor, or the mean exponent of a curve."""
        return self.exponent if self.kind in ("power", "jagged") else mean_exponent(times, totals)


def _law(name: str, exponent: float, kind: str, total: Callable[[Any], Any]) -> Law:
    return Law(name, lambda t, rng: total(t), exponent, kind)


LAWS = (
    _law("T^(1/3)", 1 / 3, "power", lambda t: 4 * t ** (1 / 3)),
    _law("√T", 0.5, "power", lambda t: t**0.5),
    _law("T^(2/3)", 2 / 3, "power", lambda t: 0.7 * t ** (2 / 3)),
    _law("T/2", 1.0, "power", lambda t: t / 2),
    _law("√T log T", 0.5, "form", lambda t: t**0.5 * np.log(t)),
    _law("T^(1/3) log T", 1 / 3, "form", lambda t: t ** (1 / 3) * np.log(t)),
    _law("√T + 30", 0.5, "form", lambda t: t**0.5 + 30),
    _law("10 + T/1000", 1.0, "form", lambda t: 10 + t / 1000),
    _law("50 + T^(2/3)", 2 / 3, "form", lambda t: 50 + t ** (2 / 3)),
    _law("20 − 100/√T", 0.0, "form", lambda t: 20 - 100 / t**0.5),
    Law(
        "√T, one of two levels (1 : 1.3)", lambda t, rng: t**0.5 * rng.choice([1, 1.3], len(t)), 0.5, "jagged"
    ),
    Law("√T, one of two levels (1 : 3)", lambda t, rng: t**0.5 * rng.choice([1, 3], len(t)), 0.5, "jagged"),
    _law("√T + 5 T^0.3", 0.5, "other", lambda t: t**0.5 + 5 * t**0.3),
    _law("max(√T, T/300)", 1.0, "other", lambda t: np.maximum(t**0.5, t / 300)),
    _law("√T (1 + 0.3 sin log T)", 0.5, "other", lambda t: t**0.5 * (1 + 0.3 * np.sin(np.log(t)))),
)


def _constant(rng: Any, mean: Any, runs: int) -> Any:
    return np.maximum(mean[:, None] + 0.3 * mean[0] * rng.standard_normal((len(mean), runs)), 1e-3 * mean[0])


#: totals of some runs around their expectation
NOISES: dict[str, Callable[[Any, Any, int], Any]] = {
    "none": lambda rng, mean, runs: np.repeat(mean[:, None], runs, axis=1),
    "5 %": lambda rng, mean, runs: mean[:, None] * rng.gamma(400.0, 1 / 400, (len(mean), runs)),
    "50 %": lambda rng, mean, runs: mean[:, None] * rng.gamma(4.0, 1 / 4, (len(mean), runs)),
    "constant": _constant,
    "log-normal": lambda rng, mean, runs: (
        mean[:, None] * np.exp(rng.standard_normal((len(mean), runs)) - 0.5)
    ),
    "Pareto 2.5": lambda rng, mean, runs: mean[:, None] * (1 + rng.pareto(2.5, (len(mean), runs))) * 0.6,
}


def mean_exponent(times: Any, totals: Any) -> float:
    """The slope of the least-squares line through log totals, by numpy's own fit."""
    return float(np.polyfit(np.log(times), np.log(totals), 1)[0])


@dataclass
class Tally:
    """Counts: fits, those with an interval that covers, those called curved, and intervals of asymptotic exponents."""

    fits: int = 0
    covered: int = 0
    curved: int = 0
    limits: int = 0
    limits_covered: int = 0

    def add(self, growth: Growth, aim: float, exponent: float | None) -> None:
        self.fits += 1
        self.covered += growth.lower - ROUNDING <= aim <= growth.upper + ROUNDING
        self.curved += growth.shape == "curved"
        if exponent is not None and growth.limit is not None:
            self.limits += 1
            self.limits_covered += growth.limit[0] - ROUNDING <= exponent <= growth.limit[1] + ROUNDING


def simulate(
    law: Law,
    rng: Any,
    count: int,
    *,
    noises: Iterable[str] = tuple(NOISES),
    runs: Iterable[int] = RUNS,
    points: Iterable[int] = POINTS,
    limits: bool = True,
    level: float = 0.95,
) -> dict[int, Tally]:
    """Fits of `count` studies in each setting, counted for each number of runs; horizons from 10³ to 10⁶."""
    found = {r: Tally() for r in runs}
    for noise, r, n in product(noises, found, points):
        times = np.round(np.geomspace(1e3, 1e6, n))
        for _ in range(count):
            mean = law.total(times, rng)
            growth = fit_growth(times, NOISES[noise](rng, mean, r), fresh=True, level=level)
            assert growth is not None
            found[r].add(growth, law.aim(times, mean), law.exponent if limits else None)
    return found


# ---------------------------------------------------------------- one game, read on the way

GAMES = (
    ("forecast hedging, fair coin", oc.forecasters.ForecastHedging(), oc.natures.Bernoulli(), "ece"),
    ("forecast hedging, fair coin", oc.forecasters.ForecastHedging(), oc.natures.Bernoulli(), "cdl"),
    ("forecast hedging, drift", oc.forecasters.ForecastHedging(), oc.natures.Drift(), "ece"),
    ("empirical mean, fair coin", oc.forecasters.EmpiricalMean(), oc.natures.Bernoulli(), "smooth_ce"),
    ("CDL minimiser, fair coin", oc.forecasters.CDLMinimiser(), oc.natures.Bernoulli(), "cdl"),
    ("almost one step ahead, drift", oc.forecasters.AlmostOneStepAhead(), oc.natures.Drift(), "smooth_ce"),
)


def random_walks(rng: Any, runs: int, horizon: int = 10_000) -> tuple[Any, Any]:
    """|S_T| of ±1 steps at 17 T of the last two decades: what a constant forecaster makes of a fair coin."""
    times = np.unique(np.round(np.geomspace(horizon / 100, horizon, 17)).astype(int))
    gaps = np.diff(times, prepend=0)
    steps = 2.0 * rng.binomial(gaps[:, None], 0.5, (len(gaps), runs)) - gaps[:, None]
    return times, np.abs(steps.cumsum(axis=0))


def prefixes(times: Any, totals: Any, runs: Iterable[int], most: int, rng: Any) -> dict[int, Tally]:
    """Intervals from some of many runs of one game, for the mean exponent of the mean of all of them."""
    aim = mean_exponent(times, totals.mean(axis=1))
    found = {}
    for r in runs:
        found[r] = Tally()
        order = rng.permutation(totals.shape[1])
        for first in range(0, min(totals.shape[1] - r + 1, r * most), r):
            growth = fit_growth(times, totals[:, order[first : first + r]], fresh=False)
            if growth is not None:  # a walk that is at 0 has no logarithm
                found[r].add(growth, aim, None)
    return found


# ---------------------------------------------------------------- the table


def _row(name: str, tallies: dict[int, Tally]) -> str:
    fits = sum(t.fits for t in tallies.values())
    limits = sum(t.limits for t in tallies.values())
    covered = sum(t.covered for t in tallies.values()) / fits
    lowest = min(t.covered / t.fits for t in tallies.values())
    cells = [
        name,
        f"{covered:.1%}",
        f"{lowest:.1%}",
        f"{sum(t.curved for t in tallies.values()) / fits:.1%}",
        f"{limits / fits:.0%}" if limits else "–",
        f"{sum(t.limits_covered for t in tallies.values()) / limits:.1%}" if limits else "–",
    ]
    return f"| {' | '.join(cells)} |"


def table(count: int, seed: int) -> str:
    """The table of docs/growth.md."""
    head = (
        "| expected totals | covered | fewest | no power law | asymptotic | covered |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    )
    rng = np.random.default_rng(seed)
    lines = list(head)
    for law in LAWS:
        lines.append(_row(law.name, simulate(law, rng, count)))
        print(lines[-1], flush=True)
    few, pool, most = (1, 2, 4, 16), 20 * count, 5 * count
    lines.append(_row("one game: ∣random walk∣", prefixes(*random_walks(rng, pool), few, most, rng)))
    for name, forecaster, nature, measure in GAMES:
        study = play(
            forecaster, nature, horizon=10_000, runs=pool, seed=seed, measures=[measure], progress=False
        )
        curve = study.curve(measure).tail
        lines.append(
            _row(f"one game: {measure} of {name}", prefixes(curve.rounds, curve.totals, few, most, rng))
        )
        print(lines[-1], flush=True)
    fits = count * len(NOISES) * len(RUNS) * len(POINTS)
    about = (
        f"{fits:,} fits a law: {len(NOISES)} kinds of noise ({', '.join(NOISES)}), {', '.join(map(str, RUNS))} runs, "
        f"{', '.join(map(str, POINTS))} horizons from 10³ to 10⁶; of one game {pool} runs in parts of "
        f"{', '.join(map(str, few))}, T = 100 … 10⁴; seed {seed}. *Fewest*: of the numbers of runs the one that covers "
        "least."
    )
    return "\n".join([about, "", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="studies in each setting")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rewrite("coverage", table(options.count, options.seed))


if __name__ == "__main__":
    main()
