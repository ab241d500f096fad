"""Refusals by the public functions of forecasts, and their words."""

import math

import numpy as np
import pandas as pd
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter, OnlinecalError, UnknownName
from onlinecal.logs.line import calibration_line
from onlinecal.logs.regression import recalibration, smoothed
from onlinecal.monitoring.sequences import running_bias
from tests.experiments import script

G = oc.JointDistribution
testers = script("testers")
COIN = G.from_levels([0.5], [1.0], [0.5])
SURE = G.from_levels([0.0], [1.0], [0.5])
ONE = G.from_counts([0.5], [10.0], [5.0])
PART = G.from_counts([0.5], [10.5], [5.0])
P = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.1, 0.45, 0.45], [0.05, 0.05, 0.9]])
K = oc.ClassDistribution.from_samples(P, [0, 1, 2, 2])
FINITE = {"method": "finite-sample"}

#: the function, what it is given, the error, its words
REFUSED = [
    *[(oc.evaluate, (([0.5], [1]), options), InvalidParameter, said) for options, said in [
        ({"bootstrap": 10**12}, "bootstrap = 1000000000000; expected an integer from 0 to"),
        ({"bootstrap": 10**6 + 1}, "bootstrap = 1000001"),
        ({"reference": 10**6 + 1}, "reference = 1000001; expected an integer from 0 to"),
        ({"bootstrap": -1}, "bootstrap = -1"),
        ({"reference": -1}, "reference = -1"),
        ({"seed": -1}, "seed = -1"),
        ({"level": 1.01}, "level = 1.01"),
        ({"level": -0.01}, "level = -0.01"),
        ({"method": "exact"}, "method = 'exact'; expected .*finite-sample"),
        ({**FINITE, "bootstrap": 9}, "bootstrap = 9 with method = 'finite-sample'"),
        ({**FINITE, "weights": [2.0]}, "method = 'finite-sample' with weights"),
        ({"measures": ["ece", "ece"]}, "'ece' is asked for twice"),
        ({"measures": [{"name": "ece", "bins": 3}]}, "has no option 'bins'"),
        ({"measures": [lambda gamma: math.nan]}, "is NaN"),
        # Their intervals had no width, or were not numbers.
        ({"weights": [1e-61], "measures": ["brier"], "bootstrap": 99}, "multiply all by one number"),
        ({"weights": [1e61], "measures": ["brier"], "bootstrap": 99}, "multiply all by one number"),
    ]],
    *[(oc.evaluate, (given, options), InvalidParameter, said) for given, options, said in [
        (([0.5], [1]), {"clusters": [0], **FINITE}, "'finite-sample' with clusters"),
        (([0.5], [1]), {"clusters": [0, 1]}, r"clusters has shape \(2,\); expected \(1,\)"),
        (([0.5, 0.5], [1, 0]), {"clusters": [0.0, np.nan]}, r"clusters\[1\] is missing; expected a label"),
        ((COIN,), {"clusters": [0]}, "weights or clusters beside"),
    ]],
    *[(oc.evaluate, (([0.2, 0.8], [0, 1]), {"groups": groups, **more}), error, said) for groups, more, error, said in [
        ({"odd": [0, 2]}, {}, InvalidData, r"groups\['odd'\] is \[0, 2\]; expected 2 values of 0 or 1"),
        ({"odd": [1]}, {}, InvalidData, r"groups\['odd'\] is \[1\]; expected 2 values of 0 or 1"),
        ({"all": [1, 1]}, {}, InvalidParameter, "without 'all', which has every one"),
        (pd.DataFrame({"odd": [1, 0]}), {}, InvalidParameter, "expected a mapping name → 0 or 1"),
        ({"odd": [1, 0]}, {"measures": ["multi_ece"]}, InvalidParameter, "'multi_ece' is a measure of all groups"),
    ]],
    (oc.evaluate, ((COIN,), {"groups": {"odd": [1]}}), InvalidParameter, "groups beside a JointDistribution"),
    *[(oc.evaluate, (([0.25, 0.5], [0, 0.5]), options), OnlinecalError, said) for options, said in [
        ({"fractional": True, "weights": np.ones(2)}, "fractional = True with weights"),
        ({"fractional": True, "clusters": [1]}, "clusters"),
        ({}, r"y\[1\] = 0.5 is not an outcome; expected 0 or 1"),
        ({"above": 10.0, "positive": 1}, "above = 10.0 beside labels"),
        ({"above": np.inf}, "above = inf; expected a number in"),
    ]],
    *[(oc.evaluate, (three, {}), InvalidData, "of 3 classes; expected one column") for three in ((P, [0] * 4), (K,))],
    *[(oc.evaluate_classes, (given, {}), InvalidData, said) for given, said in [
        ((P,), "y is missing"), ((K, [0]), "beside a ClassDistribution"),
        ((oc.ClassDistribution.from_samples(P, [0] * 4, weights=[0.5] * 4),), "rows with weights; expected p, y and"),
    ]],
    (oc.evaluate, ((COIN, [1]), {}), InvalidParameter, "which holds them"),
    (oc.evaluate, (([0.5],), {}), InvalidParameter, "y is missing"),
    (oc.evaluate, ((G.from_levels([0.5], [1.0], [0.3]),), {"reference": 1}), InvalidParameter, "not whole"),
    (testers.alpha_n, ((COIN, "smoth_ce"), {}), UnknownName, "smooth_ce"),
    (testers.alpha_n, ((COIN, "ece"), {"samples": []}), InvalidParameter, "samples is empty"),
    (testers.alpha_n, ((SURE, "log_loss"), {}), InvalidParameter, "infinite"),
    *[(oc.binary_forecasts, ((probabilities, labels), {}), InvalidData, said) for probabilities, labels, said in [
        ([0.5, 0.5], [0, 1], "expected \\(n, K\\)"),
        (np.empty((0, 3)), [], "no samples"),
        ([[2.0, -1.0, 0.0]], [0], r"probabilities\[:, 0\]\[0\] = 2.0 is outside"),
        ([[0.5, np.nan, 0.5]], [0], r"probabilities\[:, 1\]\[0\] = nan is a missing"),
        ([[0.5, 0.4, 0.05]], [0], r"probabilities\[0\] sum to 0.95; expected 1"),
        ([[0.5, 0.5]], [2], r"labels\[0\] = 2.0 is no class; expected an integer from 0 to 1"),
        ([[0.5, 0.5]], ["a"], "is not a number"),
        ([[0.5, 0.5]], [0, 1], "1 rows and labels 2 values"),
        ([["a", "b"]], [0], "is not a number"),
        (np.ma.masked_less([[0.2, 0.8]], 0.5), [0], "masked"),
        (pd.DataFrame(P), pd.Series([0, 1, 2, 2], index=[3, 2, 1, 0]), "different indices"),
    ]],
    (oc.binary_forecasts, ((P, [0] * 4), {"reduction": "one"}), InvalidParameter, "'top_label', 'class_wise'"),
    *[(oc.binary_forecasts, ((P, labels), {"classes": classes}), InvalidData, said) for labels, classes, said in [
        (["a", "b", "a", "a"], ["a", "b"], "expected 3, one for each column"),
        (["a", "d", "a", "a"], ["a", "b", "c"], r"labels\[1\] = 'd' is no class"),
        ([["a", "b"], ["a", "a"]], ["a", "b", "c"], "one dimension"),
    ]],
    (testers.tolerant_test, ((ONE,), {"far": 0.1, "near": 0.1}), InvalidParameter, "expected far > near"),
    (testers.tolerant_test, ((ONE,), {"far": 0.1, "measure": "ece"}), InvalidParameter, "measure = .ece.; expected"),
    (testers.tolerant_test, ((PART,), {"far": 0.1}), InvalidData, "weights are not whole"),
    (testers.t_cal, ((PART,), {"seed": 0}), InvalidData, "expected independent samples of weight 1"),
    (oc.decomposition, ((ONE, "spherical"), {}), InvalidParameter, "expected one of 'brier', 'log'"),
    (running_bias, (([0, 1], [0.5, 0.3]), {}), InvalidData, r"expected 0 or 1 \(arguments are \(p, y\): predictions"),
    *[(smoothed, (([0.5], [1]), o), InvalidParameter, "smoothed") for o in
      ({"sigma": 0.0}, {"sigma": 0.0019}, {"sigma": 1.01}, {"points": 1}, {"points": 100_001})],
    *[(recalibration, (([0.5], [1]), o), InvalidParameter, "recalibration") for o in
      ({"level": 1.01}, {"level": -0.01}, {"draws": 0}, {"draws": 100_001}, {"seed": -1})],
    *[(oc.evaluate_classes, ((P, [0] * 4), o), InvalidParameter, "evaluate_classes") for o in
      ({"level": 1.01}, {"level": -0.01}, {"draws": -1}, {"draws": 10**6 + 1}, {"seed": -1})],
    *[(calibration_line, (([0.2, 0.4], [0, 1]), {"level": level}), InvalidParameter, "level") for level in
      (-0.01, 1.01)],
    *[(oc.smooth_recalibration, ((ONE,), {"sigma": s}), InvalidParameter, "sigma") for s in (0.0, math.nan, 11, "x")],
    (oc.smooth_recalibration, (([0.3],), {}), InvalidData, "expected a JointDistribution"),
    (oc.fit_recalibration, ((pd.Series([0.2, 0.4]), pd.Series([0, 1], [1, 0])), {}), InvalidData, "different indices"),
    (oc.smooth_recalibration(ONE), (([1.5],), {}), InvalidData, "1.5"),
    *[(oc.evaluate, (given, {"clusters": pd.Series(["a", "b"], [1, 0])}), InvalidData, f"{name} and clusters are")
      for name, given in (("p", (pd.Series([0.2, 0.4]), [0, 1])), ("y", ([0.2, 0.4], pd.Series([0, 1]))))],
]  # fmt: skip


@pytest.mark.parametrize(("function", "given", "error", "said"), REFUSED, ids=range(len(REFUSED)))
def test_it_is_refused_in_one_line(function, given, error, said):
    with pytest.raises(error, match=said) as caught:
        function(*given[0], **given[1])
    assert isinstance(caught.value, OnlinecalError)
    assert "\n" not in str(caught.value)


def test_the_ends_of_ranges_are_taken():
    """An interval of level 1 has all values, and one of level 0 has no width."""
    p, y = [0.2, 0.7, 0.7, 0.4] * 15, [0, 1, 0, 1] * 15
    for level in (0.0, 1.0):
        (row,) = oc.evaluate(p, y, measures=["brier"], bootstrap=9, level=level).rows
        assert row.interval[0] <= row.value <= row.interval[1]
        slope = calibration_line(p, y, level=level).slope
        (auc,) = oc.evaluate(p, y, measures=["auc"], bootstrap=1, level=level).rows
        for value, interval, how in ((slope.value, *slope[1:]), (auc.value, auc.interval, auc.interval_by)):
            assert interval == (None if level else pytest.approx((value, value)))
            assert (how == "none: of level 1 it holds all numbers") is (level == 1.0)
        assert oc.evaluate_classes(P, [0, 1, 2, 2], draws=1, level=level).level == level
    assert len(smoothed(p, y, sigma=0.002, points=2).at) == len(smoothed(p, y, sigma=1.0, points=2).at) == 2
    band = recalibration(p, y, level=1.0, draws=1)
    assert (set(band.lowest), set(band.highest)) == ({0.0}, {1.0})
    for weight in (1e-60, 1e60):
        (row,) = oc.evaluate(p, y, weights=[weight] * 60, measures=["brier"], bootstrap=9).rows
        assert row.interval[0] < row.value < row.interval[1]
