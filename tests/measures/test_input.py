"""Samples and options that measures are given: bad ones are refused."""

import math
from functools import partial

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.measures.distance_upper import true_distance_of_gamma as of_gamma
from onlinecal.measures.soft_binned import SoftRounding

#: measure, option, values that are refused, and more options; the option is named, or else what is expected
REFUSED = [
    ("ece", "order", (0.5, math.nan, True), {}), ("binned_ece", "bins", (0, 10.0, 10**7 + 1), {}),
    ("binned_ece", "strategy", ("mass",), {}), ("binned_ece_width", "strategy", (None,), {}),
    ("binned_ce", "bins", (
        [], [0.0], [0.0, 0.5], [0.1, 1.0], [0, 0.5, 0.5, 1], [0, 0.7, 0.3, 1], [0, math.nan, 1], ["a", 1], [[0, 1]],
        2.5, "ten",
    ), {}),
    ("binned_ce", "expected one of them", ([0.0, 0.5, 1.0],), {"strategy": "sweep"}),
    ("binned_ce", "expected order = 2", (1,), {"debiased": True}), ("binned_ce", "order", (0.5,), {}),
    ("soft_binned_ece", "bins", (0, 10**5 + 1), {}), ("soft_binned_ece", "temperature", (0.0, math.nan, math.inf), {}),
    ("soft_binned_ece", "order", (0.5,), {}),
    ("weighted_ce", "expected", (
        [1.0], [], np.empty((0, 1)), [[1.0], [1.0, 2.0]], [np.sqrt, 1.0], [[math.inf] * 2], 1.0, [math.nan, 1.0],
        lambda v: v[:0], "x",
    ), {}),
    ("low_degree_ce", "degree", (-1, 1.0, 1001), {}), ("interval_ce", "width", ("median",), {}),
    ("interval_ce", "2 levels, more than", (1,), {}), ("interval_ce", "max_levels", (0,), {}),
    ("interval_ce_bracket", "blocks", (0,), {}), ("random_interval_ce", "epsilon", (0.0, -1.0, math.inf, "1"), {}),
    ("kernel_ce", "kernel", ("cauchy",), {}), ("kernel_ce", "degree", (-1, 1001), {}),
    ("kernel_ce", "scale", (0.0, math.nan, "1"), {}),
    ("smooth_ce", "metric", (
        "euclid", np.negative, lambda v: 0.0 * v + np.inf, lambda v: np.where(v > 0.5, np.nan, v), lambda v: 1.0,
        lambda v: v[:1],
    ), {}),
    ("smooth_ece_at", "sigma", (0.0, 9e-5, 11.0, math.nan, "1"), {}), ("smooth_ece", "transform", ("probit",), {}),
    ("distance_lower", "tolerance", (0.0, math.nan, "1"), {}), ("distance_lower", "time_limit", (0.0,), {}),
    ("distance_upper", "max_levels", (0, 17, 2.5), {}), ("distance_in_metric", "nodes", (1, 10.0), {}),
    ("distance_in_metric", "metric", ("euclid", np.array([1.0])), {}), ("scdl_binned", "m", (0, 2**50 + 1), {}),
    ("scdl_binned", "soft", (1,), {}), ("soft_binned_loss", "m", (0,), {"threshold": 1}),
    ("soft_binned_loss", "threshold", (5,), {"m": 4}), ("cfdl", "task", (3, "umbrela"), {}),
    ("subsampled_smooth_ce", "subsets", (0, 1.5, True, 10**7 + 1, None), {}),
    ("subsampled_step_ce_sampled", "seed", (-1,), {}), ("subsampled_smooth_ce_sampled", "draws", (0,), {"seed": 1}),
    ("subsampled_smooth_ce_sampled", "confidence", (1.0, -0.1, math.nan), {"seed": 1}),
    ("bregman", "phi", (
        "kl", np.square, (np.square, 2.0), (np.square, np.exp), (lambda x: -np.square(x), lambda x: -2 * x),
        (lambda x: x + np.inf, np.ones_like), (lambda x: 1.0, np.square), (lambda x: np.ones(7), np.ones_like),
    ), {}),
]  # fmt: skip
#: the option of those rows that say what is expected of it
OF = {"expected one of them": "bins", "expected order = 2": "order", "expected": "omega"}
OF |= {"2 levels, more than": "max_levels"}


@pytest.mark.parametrize(
    ("name", "said", "values", "more"), REFUSED, ids=lambda x: x if isinstance(x, str) else ""
)
def test_bad_options_are_refused(name, said, values, more):
    gamma = oc.JointDistribution.from_samples([0.4, 0.6], [1, 0])
    for value in values:
        with pytest.raises(OnlinecalError, match=said):
            getattr(oc.measures, name)(gamma, **{OF.get(said, said): value}, **more)
    with pytest.raises(InvalidParameter, match="no_such"):
        oc.measures.MEASURES.get(name, oc.measures.MEASURES["ece"]).bind(no_such=1)


distances = partial(partial, oc.measures.true_distance)


@pytest.mark.parametrize(("call", "said"), [
    (lambda: oc.evaluate([0.5, math.nan], [0, 1]), r"p\[1\] = nan"),
    (lambda: oc.evaluate([0.2, 0.5], [0, 1], weights=[1, -1]), r"weights\[1\] = -1.0"),
    (distances([0.5], [1], max_rounds=401), "max_rounds"), (distances([0.5], [1], order=21), "order"),
    (distances([0.5], [2]), "outcome"),
    *((partial(of_gamma, oc.JointDistribution.from_counts([0.5], [n], [s])), said)
      for n, s, said in ((0.5, 0.5, "no whole"), (401, 7, "401"))),
    (lambda: SoftRounding(0), "bins = 0"),
    (lambda: SoftRounding(4).law(1.5), "expected"), (lambda: SoftRounding(4).draw([1.5], seed=0), "expected"),
    (lambda: SoftRounding(4).draw(["x"], seed=0), "expected"), (lambda: SoftRounding(4).draw([0.5], seed=-1), "seed"),
    (lambda: oc.measures.Bracket(0.2, 0.1), "lower ≤ upper"),
    (lambda: oc.measures.Bracket(math.nan, 1.0), "lower ≤ upper"),
])  # fmt: skip
def test_what_else_is_refused(call, said):
    with pytest.raises(OnlinecalError, match=said):
        call()
