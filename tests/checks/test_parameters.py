"""Parameters out of range are refused, of every strategy, and ranges are those that are documented."""

import inspect
import math
import re
from dataclasses import fields, replace
from fractions import Fraction

import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidParameter
from onlinecal.decisions.responses import RESPONSES
from onlinecal.engine.game import Game
from onlinecal.forecasters import FORECASTERS
from onlinecal.natures import NATURES
from onlinecal.recalibration.methods import Refitted
from onlinecal.schedules import ARRIVALS, DELAYS, Pareto
from onlinecal.worlds import WORLDS

# ---------------------------------------------------------------- documented ranges

#: "In [0.01, 2]", "in (0, 10^9]", "from 1 to 10^4", "the last one closed; 1 to 10^6."
NUMBER = r"(−?\d[\d,.e^/⁰⁵-]*?)"
RANGE = re.compile(
    rf"[Ii]n ([\[(]){NUMBER}, {NUMBER}\]|(?:[Ff]rom|law,|closed;) {NUMBER} to {NUMBER}[.,;]?(?: |$)"
)
#: of those that have parameters which must be given, or that exclude each other
EXAMPLES = {
    f.ExpertAggregation: f.ExpertAggregation((f.EmpiricalMean(),)), Refitted: Refitted("isotonic"),
    n.Piecewise: n.Piecewise(change_rate=0.1), f.ExpertMixture: f.ExpertMixture((f.EmpiricalMean(),)),
    f.Doubling: f.Doubling(f.EmpiricalMean()), f.Delayed: f.Delayed(f.EmpiricalMean()),
    n.Switch: n.Switch(n.Bernoulli(), n.Drift()), Pareto: Pareto(cap=1e15),
    n.Replay: n.Replay("package:onlinecal/data/seattle-weather.csv", outcome="precipitation", above=0.0),
}  # fmt: skip


def value(text):
    """A number as docstrings have it: −1000, 10^4, 2⁵⁰, 1/2, 100,000."""
    text = text.replace("−", "-").replace(",", "").replace("⁵⁰", "^50")
    base, _, power = text.partition("^")
    return int(base) ** int(power) if power else float(Fraction(text))


def documented(cls):
    """(class, parameter, whether it is whole, whether low is in it, low, high) of each range in the docstring."""
    told = inspect.getdoc(cls).partition("Parameters\n")[2]
    types = {each.name: getattr(each.type, "__name__", str(each.type)) for each in fields(cls)}
    for names, text in re.findall(r"^(\w+(?:, \w+)*) :.*\n((?:    .*\n?)+)", told, re.M):
        found = RANGE.search(" ".join(text.split()))
        for name in names.split(", ") if found else ():
            if types.get(name, "").split(" | ")[0] in ("int", "float"):
                opening, *ends = (end for end in (found[1] or "[", *found.groups()[1:]) if end)
                yield cls, name, "int" in types[name], opening == "[", *map(value, ends)


TABLES = FORECASTERS, NATURES, WORLDS, RESPONSES, ARRIVALS, DELAYS, {"": Refitted}
CLASSES = [cls for table in TABLES for cls in table.values()]
RANGES = [found for cls in CLASSES for found in documented(cls)]


@pytest.mark.parametrize(("cls", "name", "whole", "closed", "low", "high"), RANGES, ids=str)
def test_ranges_are_those_that_are_documented(cls, name, whole, closed, low, high):
    example = EXAMPLES.get(cls) or cls()
    for end, sign in ((low, -1), (high, 1)):
        inside, beyond = (int(end), int(end) + sign) if whole else (end, math.nextafter(end, sign * math.inf))
        if end == low and not closed:
            inside, beyond = math.nextafter(low, math.inf), low
        assert getattr(replace(example, **{name: inside}), name) == inside
        for wrong in (beyond, math.nan, "x", True):
            with pytest.raises(InvalidParameter):
                replace(example, **{name: wrong})


def test_ranges_are_documented():
    """Of all numbers. Steps of grids, and ends that depend on another parameter, have tests of their own."""
    tested = {cls.allowed[name] for cls, name, *_ in RANGES if name in cls.allowed}
    for cls in CLASSES:
        types = {each.name: str(getattr(each.type, "__name__", each.type)) for each in fields(cls)}
        for name, check in cls.allowed.items():
            if re.match(r"float|int(?! \| str)", types[name]):
                assert check in tested or (cls, name) == (Pareto, "cap"), (cls, name)


PAIR = n.Bernoulli(), n.Drift()


@pytest.mark.parametrize(
    ("make", "low", "high"),
    [
        (lambda x: n.LogisticPolicy((x, *[0.0] * 7)), -1000.0, 1000.0), (lambda x: n.Mixture(PAIR, (x, 1.0)), 0.0, 1e9),
        (lambda x: n.Streams(PAIR, "random", (x, 1.0)), 0.0, 1e9), (lambda x: n.UniformTruth(0.25, x), 0.25, 1.0),
        (lambda x: n.UniformTruth(x, 0.75), 0.0, 0.75), (lambda x: n.RandomWalk(0.05, x, 0.1), 0.1, 0.9),
        (lambda x: Pareto(scale=2.0, cap=x), 2.0, 1e15),
    ],
)  # fmt: skip
def test_ranges_of_lists_and_those_between_parameters(make, low, high):
    for end, sign in ((low, -1), (high, 1)):
        make(end)
        with pytest.raises(InvalidParameter):
            make(math.nextafter(end, sign * math.inf))


# ---------------------------------------------------------------- the others


@pytest.mark.parametrize(
    ("cls", "refused"),
    [
        (f.EmpiricalMean, [-1]),
        (f.UniformRandom, [0]),
        (f.ForecastHedging, [0, "T^(1/0)"]),
        (f.CDLMinimiser, [-3]),
        (f.AlmostOneStepAhead, ["m"]),
        (f.FosterVohra, ["T^(1/0)", ("T^(1/3)", "none")]),
        (f.BlumMansour, [0]),
        (f.BlumMansourLog, [0, -1, "T^", 1e7]),
        (f.ThresholdHedging, [0, -3, "T^(1/0)", math.nan]),
        (f.StepCEMinimiser, [0, -3, "T^(1/0)", math.nan]),
        (f.DefensiveForecasting, ["matern"]),
        (f.PerturbedLeader, [-1]),
        (f.TrackingPlatt, [{"bins": 2.5}]),
        (f.Doubling, [3, (f.Constant(), 0)]),
        (f.Rounded, [(f.Constant(), 0), (f.Constant(), 3, "up")]),
        (f.ExpertMixture, [((),), ((f.Constant(), "x"),)]),
        (f.ExpertAggregation, [((),), ((f.ForecastHedging(),),), ((f.Constant(), "x"),)]),
        (f.Delayed, [n.Drift(), *((f.EmpiricalMean(), slots) for slots in (0, -1, 1.5, True, "3"))]),
        (f.Separate, [n.Drift()]),
        (n.Sawtooth, [{"cycles": x} for x in (-1, "T^(1/0)", math.inf)]),
        (n.Sinusoid, [{"period": "__import__('os')"}]),
        (n.UniformTruth, [{"low": low, "high": high} for low, high in ((0.5, 0.4), (-0.1, 1), (0, 1.1))]),
        (n.RandomWalk, [{"step": 0}, {"step": 5}, {"step": True}, {"first": 0.001}]),
        (n.Piecewise, [{"segments": 0}, {"segments": 5, "change_rate": 0.1}, {"change_rate": "T"}]),
        (n.EarlyStopping, [{"bias": 0}, {"bias": "T^(1/0)"}]),
        (n.Sidestepping, [{"cells": 0}, {"cells": "__import__('os')"}]),
        (n.Contrarian, [{"sees": "all"}]),
        (n.Greedy, [{"target": "cdl"}]),
        (n.LogisticPolicy, [{"weights": (1,) * 7}, {"weights": "12345678"}, {"weights": (math.nan,) * 8}]),
        (n.Replay, [{"file": 3}, {"file": "a.csv", "base": 3}, {"file": "a.csv", "time": 3}]),
        (n.Mixture, [
            {"natures": ()}, {"natures": "bernoulli"}, {"natures": (n.Bernoulli(), f.Constant())},
            {"natures": (n.Bernoulli(),), "weights": (0,)}, {"natures": (n.Bernoulli(), n.Drift()), "weights": (1,)},
            {"natures": (n.Bernoulli(), n.Drift()), "weights": (1, -1)},
        ]),
        (n.Switch, [{"first": n.Drift(), "then": n.Drift}, {"first": n.Drift(), "then": n.Drift(), "at": -1}]),
        (n.Streams, [{"parts": ()}, {"parts": n.Drift()}, {"parts": (n.Drift(), f.Constant())}]),
        (n.Streams, [{"parts": (n.Drift(), n.Streams((n.Drift(),)))}]),
        (n.Streams, [{"parts": (n.Drift(), n.Drift())} | more for more in (
            {"order": "sorted"}, {"weights": (1, 2)}, {"order": "random", "weights": (1,)},
            {"order": "random", "weights": (1, -1)}, {"order": "random", "weights": (0, 0)},
            {"labels": ("a", "a")}, {"labels": ("a", "")}, {"labels": "ab"})]),
        (n.Grouped, [{"of": n.Drift(), "groups": groups} for groups in (
            {}, {"odd": 1.5}, {"odd": 0.5, "both": ["odd", "rare"]}, {"a": ["b", "c"], "b": ["a", "c"], "c": 0.5})]),
        (n.Grouped, [{"groups": {"odd": 0.5}, **more} for more in (
            {"of": n.Greedy(), "rates": {"odd": 0.1}}, {"of": n.Drift(), "rates": {"even": 0.1}},
            {"of": n.Grouped(n.Drift(), {"rare": 0.5})})]),
        (n.Grouped, [{"of": n.UniformTruth(), "groups": {"truth": 0.5}}]),
        (n.GroupContrarian, [{"groups": {"odd": 0.5}, "thresholds": {"odd": 2}}]),
        (n.Categorical, [{"q": q} for q in ((0.5, 0.6), (1.5, -0.5), 0.5, (1,))]),
        (n.DriftClasses, [{"first": (1, 0), "last": (0, 0, 1)}, {"to": (0, 0, 1)}]),
    ],
)  # fmt: skip
def test_parameters_that_cannot_be(cls, refused):
    for given in refused:
        with pytest.raises(InvalidParameter):
            cls(**given) if isinstance(given, dict) else cls(
                *(given if isinstance(given, tuple) else (given,))
            )
    with pytest.raises(InvalidParameter, match="which is 2 at T = 10"):
        Game(f.Constant(), n.Piecewise(change_rate="20/T"), horizon=10, runs=range(1))
