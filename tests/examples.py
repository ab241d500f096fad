"""A specification of every registered strategy, for tests that must hold for all of them.

A class with defaults for all parameters is its own example. One with required parameters needs a line here; without
it the tests of the registry fail and say so.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.strategy import required
from onlinecal.engine.start import same_outcomes
from onlinecal.forecasters import FORECASTERS, Constant, EmpiricalMean, Forecaster, ForecastHedging
from onlinecal.natures import NATURES, Nature

ROWS = 1200


def recording(folder: Path) -> Path:
    """A file of outcomes with base forecasts, the same wherever it lies."""
    file = folder / "recording.csv"
    if not file.exists():
        lines = [f"{(7 * t * t + t // 3) % 5 % 2},{(t * 13 % 21) / 20}" for t in range(ROWS)]
        file.write_text("\n".join(["outcome,base", *lines]) + "\n")
    return file


def _natures(folder: Path) -> dict[str, list[Nature]]:
    """Examples of natures with required parameters, and of further branches of the others."""
    return {
        "replay": [n.Replay(str(recording(folder)), base="base"), n.Replay(str(recording(folder)))],
        "mixture": [n.Mixture((n.UniformTruth(), n.Greedy(), n.RandomWalk()), (1, 2, 3))],
        "switch": [
            n.Switch(n.Markov(), n.Greedy("square"), "T/3"),
            n.Switch(n.UniformTruth(), n.UniformTruth()),
        ],
        "streams": [
            n.Streams((n.Drift(), n.Greedy())),
            n.Streams((n.Markov(), n.Contrarian(), n.UniformTruth()), "random", (1, 2, 1)),
            n.Streams((n.Replay(str(recording(folder)), base="base"),) * 2),
        ],
        "contrarian": [n.Contrarian(), n.Contrarian("draw")],
        "grouped": [
            n.Grouped(n.Drift(), {"odd": 0.5, "rare": 0.1, "both": ["odd", "rare"]}, {"odd": 0.2}),
            n.Grouped(n.Streams((n.Greedy(), n.Markov())), {"odd": 0.5}),
        ],
        "group_contrarian": [n.GroupContrarian({"odd": 0.5, "rare": 0.2}, {"odd": 0.7, "all": 0.3})],
        "greedy": [n.Greedy(), n.Greedy("kink", kink=0.3), n.Greedy(cells=7)],
        "piecewise": [n.Piecewise(), n.Piecewise(change_rate="20/T")],
    }


def _forecasters() -> dict[str, list[Forecaster]]:
    """The same for forecasters."""
    return {
        "defensive_forecasting": [f.DefensiveForecasting(), f.DefensiveForecasting("gaussian", 0.3)],
        "rounded": [f.Rounded(ForecastHedging(), 4, how) for how in ("nearest", "random", "down")],
        "doubling": [f.Doubling(f.AlmostOneStepAhead()), f.Doubling(f.FosterVohra(swaps="all"), first=3)],
        "delayed": [f.Delayed(ForecastHedging()), f.Delayed(f.PerturbedLeader(), slots=3)],
        "separate": [f.Separate(f.AlmostOneStepAhead()), f.Separate(f.Delayed(f.PerturbedLeader()))],
        "expert_mixture": [f.ExpertMixture((ForecastHedging(), f.PerturbedLeader(), Constant(0.2)))],
        "expert_aggregation": [
            f.ExpertAggregation((f.Unchanged(), f.Calibeating(5), f.OnlinePlatt())),
            f.ExpertAggregation((f.AlmostOneStepAhead(), f.EmpiricalMean(), Constant(0.2))),
        ],
        "foster_vohra": [f.FosterVohra(), f.FosterVohra(swaps="all"), f.FosterVohra(m=30, swaps="all")],
        "calibeating": [f.Calibeating(), f.Calibeating(3)],
    }


def of_two(known):
    """Name → class, of the registered strategies of outcomes 0 and 1."""
    return {name: cls for name, cls in known.items() if not cls.of_classes}


def of_classes(known):
    """Name → class, of the registered strategies of K classes."""
    return {name: cls for name, cls in known.items() if cls.of_classes}


def defaults(known):
    """Those of outcomes 0 and 1 that can be made without parameters."""
    return [cls() for cls in of_two(known).values() if not required(cls)]


def natures(folder: Path) -> list[Nature]:
    """At least one of every registered nature of outcomes 0 and 1."""
    return _all("nature", of_two(NATURES), _natures(folder))


def forecasters(folder: Path) -> list[Forecaster]:
    """At least one of every registered forecaster of outcomes 0 and 1."""
    return _all("forecaster", of_two(FORECASTERS), _forecasters())


def class_natures() -> list[Nature]:
    """At least one of every registered nature of K classes."""
    table = {"contrarian_classes": [n.ContrarianClasses(), n.ContrarianClasses(5)]}
    return _all("nature", of_classes(NATURES), table)


def class_forecasters() -> list[Forecaster]:
    """At least one of every registered forecaster of K classes."""
    table = {
        "class_mean": [f.ClassMean(), f.ClassMean(4)],
        "class_by_class": [f.ClassByClass(ForecastHedging()), f.ClassByClass(f.AlmostOneStepAhead(), 8)],
        "harmonic": [f.Harmonic()],
        "simplex_hedging": [f.SimplexHedging(), f.SimplexHedging(2)],
    }
    return _all("forecaster", of_classes(FORECASTERS), table)


def class_pairs() -> list[tuple[Forecaster, Nature]]:
    """Every forecaster of classes with every nature of as many."""
    # What came later is last: numbers on record are under schedules in this order.
    found = sorted(
        product(class_forecasters(), class_natures()), key=lambda pair: isinstance(pair[1], n.GreedyClasses)
    )
    return [(forecaster, nature) for forecaster, nature in found if same_outcomes(forecaster, nature)]


def pairs(folder: Path) -> list[tuple[Forecaster, Nature]]:
    """Every nature with a few forecasters, and every forecaster with a few natures; with context where it is needed.

    Those of classes are not among them: see `class_pairs`.
    """
    whom = natures(folder)
    found = [(forecaster, nature) for nature in whom for forecaster in FEW_FORECASTERS]
    for forecaster in forecasters(folder):
        able = [nature for nature in whom if forecaster.needs <= nature.reveals]
        if not able:
            raise AssertionError(
                f"forecaster {forecaster!r} needs {sorted(forecaster.needs)}, which no example of a nature reveals: "
                "add one to tests/examples.py"
            )
        found += [(forecaster, nature) for nature in able if type(nature) in FEW or forecaster.needs]
    return found


FEW_FORECASTERS = (EmpiricalMean(), ForecastHedging())
FEW = (n.Drift, n.Greedy)


def _all(kind: str, known, table):
    examples = []
    for name, cls in known.items():
        if name not in table and required(cls):
            raise AssertionError(
                f"{kind} {name!r} has the required parameters {', '.join(required(cls))}: add an example of it to "
                "tests/examples.py"
            )
        examples += table.get(name) or [cls()]
    return examples


COINS = n.Streams((n.Bernoulli(0.2), n.Markov()), labels=("a", "b"))
#: natures of several parts, some of the same steps with states, sights and notes of their own
NESTED = [
    n.Mixture((n.Contrarian("draw"), n.Greedy(), n.Contrarian(), n.Greedy("square"), n.Sidestepping("9"))),
    n.Mixture((n.Ratchet(), n.Switch(n.Ratchet(0.3), n.SparseBias(), "T/4"), n.RandomWalk(), n.RandomWalk())),
    n.Streams((n.Mixture((n.UniformTruth(), n.Ratchet())), n.Ratchet(), n.Drift(), n.Drift(1, 0)), "random"),
    n.Streams((n.Greedy(),) * 3 + (n.Contrarian("draw"),)),
    n.Mixture((COINS, n.LogisticPolicy())),
    n.Switch(COINS, n.Streams((n.Greedy(), n.UniformTruth(), n.Ratchet()), "random", (1, 0, 2)), "T/3"),
    n.Switch(n.Switch(n.UniformTruth(), n.UniformTruth(0.2, 0.4), 40), n.UniformTruth(0.5, 0.6), 90),
    n.KinkApproach(0.4, cells=9),
    n.Greedy("square", cells=5),
]
#: forecasters made of another
WHOLES = {
    "rounded": lambda x: f.Rounded(x, 5, "random"),
    "doubling": lambda x: f.Doubling(x, first=30),
    "mixture": lambda x: f.ExpertMixture((f.EmpiricalMean(), x)),
    "delayed": f.Delayed,
    "nested": lambda x: f.Delayed(f.ExpertMixture((x, f.Rounded(x, 3)))),
}
