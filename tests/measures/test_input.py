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


def beside(*last):
    """Numbers at the ends of a range that are taken, and the next ones outside, from the first end to the last."""
    low, high = last[0], last[-1]
    if isinstance(low, int):
        return last, (low - 1, high + 1)
    return last, tuple(
        x for x in (math.nextafter(low, -math.inf), math.nextafter(high, math.inf)) if x < math.inf
    )


#: measure, option, the numbers at the ends of its range and those next to them, and more options
RANGES = [
    ("ece", "order", beside(1.0, math.inf), {}), ("binned_ece", "bins", beside(1, 10**7), {}),
    ("binned_ece_width", "bins", beside(1, 10**7), {"strategy": "quantile"}),
    ("binned_ce", "bins", beside(1, 10**7), {}), ("binned_ce", "order", beside(1.0, math.inf), {}),
    ("soft_binned_ece", "bins", beside(1, 10**5), {}), ("soft_binned_ece", "order", beside(1.0, math.inf), {}),
    ("low_degree_ce", "degree", beside(0, 1000), {}),
    ("kernel_ce", "degree", beside(0, 1000), {"kernel": "polynomial"}),
    ("smooth_ece_at", "sigma", beside(1e-4, 10.0), {}), ("distance_upper", "max_levels", beside(1, 16), {}),
    ("distance_in_metric", "nodes", beside(2, 10_000), {}), ("scdl_binned", "m", beside(1, 2**50), {}),
    ("soft_binned_loss", "threshold", beside(1, 4), {"m": 4}),
    ("soft_binned_loss", "m", beside(1, 2**50), {"threshold": 1}),
    ("subsampled_smooth_ce", "subsets", beside(1, 10**7), {}), ("subsampled_step_ce", "subsets", beside(1, 10**7), {}),
    ("subsampled_smooth_ce_sampled", "confidence", beside(0.0, 1.0 - 1e-15), {"seed": 0, "draws": 1}),
    ("interval_ce", "max_levels", ((2,), (1,)), {}), ("interval_ce_bracket", "blocks", ((1,), (0,)), {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "option", "values", "more"), RANGES, ids=lambda x: x if isinstance(x, str) else ""
)
def test_the_ends_of_a_range_are_taken_and_nothing_beyond(name, option, values, more):
    gamma = oc.JointDistribution.from_samples([0.5, 0.5, 1.0], [0, 1, 1])  # calibrated, so that all are fast
    measure, (taken, refused) = getattr(oc.measures, name), values
    for value in taken:
        measure(gamma, **{option: value}, **more)
    for value in refused:
        with pytest.raises(InvalidParameter, match=option):
            measure(gamma, **{option: value}, **more)


@pytest.mark.parametrize(("metric", "apart"), [
    (lambda v: np.minimum(v, 0.5), 0.1), (lambda v: 0.0 * v, 0.0), (lambda v: v - 1e-17 * (v > 0.5), 0.2),
    (lambda v: np.where(v > 0.5, 1.0, np.nextafter(1.0, 2.0)), 0.0), (lambda v: 30.0 * v, 2.0),
])  # fmt: skip
def test_a_metric_that_falls_by_rounding_alone_is_taken(metric, apart):
    """Residuals of ±0.3 on two levels: 0.3 times what their weights may be apart, or 0.6 at most."""
    gamma = oc.JointDistribution.from_samples([0.4, 0.6], [1, 0])
    assert oc.measures.smooth_ce(gamma, metric=metric) == pytest.approx(0.3 * apart, abs=1e-12)


@pytest.mark.parametrize(("metric", "at"), [
    (lambda v: np.where(v > 0.3, -v, v), "0.25"), (lambda v: np.where(v > 0.6, -v, v), "0.5"),
    (lambda v: np.where(v > 0.6, 1.0, 1.0 + 4e-15 * (v > 0.3)), "0.5"),
])  # fmt: skip
def test_where_a_metric_falls_is_said(metric, at):
    gamma = oc.JointDistribution.from_levels([0.25, 0.5, 0.75], [1, 1, 1], [0, 1, 0])
    with pytest.raises(InvalidParameter, match=f"does not increase at v = {at};"):
        oc.measures.smooth_ce(gamma, metric=metric)


distances = partial(partial, oc.measures.true_distance)
drawn = partial(partial, oc.measures.subsampled_step_ce_sampled, [0.5], [1])
squared = partial(partial, oc.measures.classes.kernel_ce_squared, [[0.5, 0.5]] * 3, [0, 0, 1])


def test_the_ends_of_other_ranges_are_taken():
    for call in (
        distances([0.5], [1], max_rounds=1), distances([0.5], [1], max_rounds=400), distances([0.5], [1], order=20.0),
        partial(of_gamma, oc.JointDistribution.from_counts([0.5], [400], [0])), lambda: SoftRounding(1).law(1.0),
        lambda: SoftRounding(2**50).law(0.0), lambda: SoftRounding(4).draw([0.5], seed=0), drawn(seed=0, draws=1),
        squared(block=2), squared(block=3, seed=0),
    ):  # fmt: skip
        call()


@pytest.mark.parametrize(("call", "said"), [
    (lambda: oc.evaluate([0.5, math.nan], [0, 1]), r"p\[1\] = nan"),
    (lambda: oc.evaluate([0.2, 0.5], [0, 1], weights=[1, -1]), r"weights\[1\] = -1.0"),
    (distances([0.5], [1], max_rounds=401), "max_rounds"), (distances([0.5], [1], max_rounds=0), "max_rounds"),
    (distances([0.5], [1], order=math.nextafter(20.0, 21.0)), "order"),
    (distances([0.5], [1], order=math.nextafter(1.0, 0.0)), "order"),
    (drawn(seed=0, draws=10**7 + 1), r"draws = 10000001; expected an integer from 1 to 10\^7"),
    (squared(block=1), "block = 1"), (squared(block=4), "block = 4"), (squared(block=2, seed=-1), "seed = -1"),
    (distances([0.5], [2]), "outcome"),
    *((partial(of_gamma, oc.JointDistribution.from_counts([0.5], [n], [s])), said)
      for n, s, said in ((0.5, 0.5, "no whole"), (401, 7, "401"))),
    (lambda: SoftRounding(0), "bins = 0"), (lambda: SoftRounding(2**50 + 1), "bins = "),
    (lambda: SoftRounding(4).law(1.5), "expected"), (lambda: SoftRounding(4).draw([1.5], seed=0), "expected"),
    (lambda: SoftRounding(4).draw(["x"], seed=0), "expected"), (lambda: SoftRounding(4).draw([0.5], seed=-1), "seed"),
    (lambda: oc.measures.Bracket(0.2, 0.1), "lower ≤ upper"),
    (lambda: oc.measures.Bracket(math.nan, 1.0), "lower ≤ upper"),
])  # fmt: skip
def test_what_else_is_refused(call, said):
    with pytest.raises(OnlinecalError, match=said):
        call()
