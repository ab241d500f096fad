"""Parameters out of range are refused, of every strategy."""

import math

import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game


@pytest.mark.parametrize(
    ("cls", "refused"),
    [
        (f.Constant, [1.2, "0.5"]),
        (f.EmpiricalMean, [-1]),
        (f.UniformRandom, [0]),
        (f.Tempered, [-1]),
        (f.Shifted, [1.5]),
        (f.Logistic, [math.nan, (1.0, 1e4)]),
        (f.ForecastHedging, [0, "T^(1/0)"]),
        (f.CDLMinimiser, [-3]),
        (f.AlmostOneStepAhead, ["m"]),
        (f.FosterVohra, ["T^(1/0)", ("T^(1/3)", "none")]),
        (f.BlumMansour, [0]),
        (f.BlumMansourLog, [0, -1, "T^", 1e7]),
        (f.ThresholdHedging, [0, -3, "T^(1/0)", math.nan]),
        (f.StepCEMinimiser, [0, -3, "T^(1/0)", math.nan]),
        (f.DefensiveForecasting, ["matern", ("laplace", 0.01)]),
        (f.PerturbedLeader, [-1, (1.0, 0)]),
        (f.Calibeating, [0]),
        (f.OnlinePlatt, [0]),
        (f.TrackingPlatt, [{"bins": 2.5}]),
        (f.Doubling, [3, (f.Constant(), 0)]),
        (f.Rounded, [(f.Constant(), 0), (f.Constant(), 3, "up")]),
        (f.ExpertMixture, [((),), ((f.Constant(), "x"),)]),
        (f.ExpertAggregation, [((),), ((f.ForecastHedging(),),), ((f.Constant(), "x"),), ((f.EmpiricalMean(),), 0.0)]),
        (f.Delayed, [n.Drift(), *((f.EmpiricalMean(), slots) for slots in (0, -1, 1.5, True, "3"))]),
        (f.Separate, [n.Drift()]),
        (n.Bernoulli, [{"q": 1.01}, {"q": math.nan}]),
        (n.Drift, [{"first": -0.1}]),
        (n.Sawtooth, [{"cycles": x} for x in (-1, "T^(1/0)", math.inf)]),
        (n.Sinusoid, [{"period": 0.5}, {"amplitude": 0.6}, {"period": "__import__('os')"}]),
        (n.UniformTruth, [{"low": low, "high": high} for low, high in ((0.5, 0.4), (-0.1, 1), (0, 1.1))]),
        (n.LogisticFeatures, [{"slope": 1e3}, {"bend": 0}]),
        (n.RandomWalk, [{"step": 0}, {"step": 5}, {"step": True}, {"edge": 0}, {"first": 0.001}]),
        (n.Piecewise, [{"segments": 0}, {"segments": 5, "change_rate": 0.1},
                       {"change_rate": 1.5}, {"change_rate": "T"}]),
        (n.Markov, [{"p01": 1.5}, {"p10": math.nan}]),
        (n.EarlyStopping, [{"bias": 0}, {"bias": "T^(1/0)"}]),
        (n.Sidestepping, [{"cells": 0}, {"cells": "__import__('os')"}]),
        (n.Contrarian, [{"sees": "all"}]),
        (n.Greedy, [{"target": "cdl"}, {"kink": 1.5}, {"cells": 0}, {"cells": 2.0}]),
        (n.KinkApproach, [{"kink": 1.5}, {"dwell": 0}, {"dwell": math.nan}, {"cells": 0}, {"cells": True}]),
        (n.SparseBias, [{"kink": -0.1}, {"reach": 0.0}, {"reach": math.inf}]),
        (n.LogisticPolicy, [{"weights": (1,) * 7}, {"weights": "12345678"}, {"weights": (math.nan,) * 8}]),
        (n.Ratchet, [{"width": -1.0}, {"kink": 2}, {"low": math.inf}]),
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
        (n.ContrarianClasses, [1]),
    ],
)  # fmt: skip
def test_parameters_out_of_range(cls, refused):
    for given in refused:
        with pytest.raises(InvalidParameter):
            cls(**given) if isinstance(given, dict) else cls(
                *(given if isinstance(given, tuple) else (given,))
            )
    with pytest.raises(InvalidParameter, match="which is 2 at T = 10"):
        Game(f.Constant(), n.Piecewise(change_rate="20/T"), horizon=10, runs=range(1))
