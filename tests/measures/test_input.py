"""Samples that measures are given: bad ones are named, other kinds of numbers mean the same."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter, UnknownName
from onlinecal.measures.soft_binned import SoftRounding
from tests.experiments import script

consistency = script("consistency").consistency_exponents

SAME = ([0.25, 0.5, 0.75, 0.75], [0, 1, 1, 0])


@pytest.mark.parametrize(
    ("p", "y"),
    [
        ((0.25, 0.5, 0.75, 0.75), [False, True, True, False]),
        (np.array([0.25, 0.5, 0.75, 0.75], np.float32), np.array([0, 1, 1, 0], np.int8)),
        (pd.Series([0.25, 0.5, 0.75, 0.75]), pd.Series([0, 1, 1, 0])),
        (np.array([0.75, 0.75, 0.5, 0.25])[::-1], np.array([0, 1, 1, 0], object)),
    ],
)
def test_other_kinds_of_numbers_mean_the_same(p, y):
    pd.testing.assert_frame_equal(oc.evaluate(*SAME).table(), oc.evaluate(p, y).table())


def test_bad_samples_are_named():
    """As where Γ is made (tests/core/test_joint.py)."""
    with pytest.raises(InvalidData, match=r"p\[1\] = nan is a missing value"):
        oc.evaluate([0.5, math.nan], [0, 1])
    with pytest.raises(InvalidData, match=r"weights\[1\] = -1.0"):
        oc.evaluate([0.2, 0.5], [0, 1], weights=[1, -1])
    # A float32 is taken for the number that it is.
    single = np.array([0.3], np.float32)
    assert oc.evaluate(single, [0])["ece"] == float(single[0]) != 0.3


#: measure or function, options, words of the refusal
REFUSED = [
    ("ece", {"order": 0.5}, "order"), ("ece", {"order": math.nan}, "order"), ("ece", {"order": True}, "order"),
    ("binned_ece", {"bins": 0}, "bins"), ("binned_ece", {"bins": 10.0}, "bins"),
    ("binned_ece", {"bins": 10**9}, "bins"),
    ("binned_ece", {"strategy": "mass"}, "strategy"), ("binned_ece_width", {"strategy": None}, "strategy"),
    *(("binned_ce", {"bins": bins}, "bins") for bins in (
        [], [0.0], [0.0, 0.5], [0.1, 1.0], [0, 0.5, 0.5, 1], [0, 0.7, 0.3, 1], [0, math.nan, 1], ["a", 1], [[0, 1]], 0,
        2.5, "ten",
    )),
    ("binned_ce", {"bins": [0.0, 0.5, 1.0], "strategy": "sweep"}, "expected one of them"),
    ("binned_ce", {"order": 0.5}, "order"), ("binned_ce", {"strategy": "wide"}, "strategy"),
    ("binned_ce", {"order": 1, "debiased": True}, "expected order = 2"),
    ("soft_binned_ece", {"bins": 0}, "bins"), ("soft_binned_ece", {"bins": 10**6}, "bins"),
    *(("soft_binned_ece", {"temperature": x}, "temperature") for x in (0.0, math.nan, math.inf)),
    ("soft_binned_ece", {"order": 0.5}, "order"),
    *(("weighted_ce", {"weights": weights}, "expected") for weights in (
        [1.0], [], np.empty((0, 1)), [[1.0], [1.0, 2.0]], [np.sqrt, 1.0], [np.sqrt, [1.0, [2.0]]], [[math.inf] * 2],
        [[[1.0]]], 1.0, [math.nan, 1.0], lambda v: v[:0], "x",
    )),
    ("low_degree_ce", {"degree": -1}, "degree"), ("low_degree_ce", {"degree": 1.0}, "degree"),
    ("interval_ce", {"width": "median"}, "'mean', 'max'"), ("interval_ce", {"max_levels": 1}, "2 levels, more than"),
    ("interval_ce_bracket", {"blocks": 0}, "blocks"),
    *(("random_interval_ce", {"epsilon": x}, "epsilon") for x in (0.0, -1.0, math.nan, math.inf, "1")),
    ("kernel_ce", {"kernel": "cauchy"}, "kernel"), ("kernel_ce", {"degree": -1}, "degree"),
    *(("kernel_ce", {"scale": x}, "scale") for x in (0.0, math.nan, "1")),
    ("smooth_ce", {"metric": "euclid"}, "expected 'identity', 'logit' or an increasing function"),
    ("smooth_ce", {"metric": np.negative}, "does not increase at v = 0.4"),
    ("smooth_ce", {"metric": lambda v: 0.0 * v + np.inf}, "does not increase"),
    ("smooth_ce", {"metric": lambda v: np.where(v > 0.5, np.nan, v)}, "does not increase at v = 0.4"),
    ("smooth_ce", {"metric": lambda v: 1.0}, r"has shape \(\)"),
    ("smooth_ce", {"metric": lambda v: v[:1]}, r"has shape \(1,\); expected a number per prediction, \(2,\)"),
    *(("smooth_ece_at", {"sigma": x}, "sigma") for x in (0.0, 9e-5, 11.0, math.nan, "1")),
    ("smooth_ece", {"transform": "probit"}, "transform"),
    *(("distance_lower", {"tolerance": x}, "tolerance") for x in (0.0, -1.0, math.nan, "1")),
    ("distance_lower", {"time_limit": 0.0}, "time_limit"),
    *(("distance_upper", {"max_levels": x}, "max_levels") for x in (0, 17, 2.5)),
    *(("distance_in_metric", {"metric": x}, "expected 'identity', 'logit' or") for x in ("euclid", np.array([1.0]))),
    *(("distance_in_metric", {"nodes": x}, "nodes = 1") for x in (1, 10.0)),
    ("scdl_binned", {"m": 0}, "m = 0"), ("scdl_binned", {"m": 2**51}, "m = "), ("scdl_binned", {"soft": 1}, "soft = 1"),
    ("soft_binned_loss", {"m": 0, "threshold": 1}, "m = 0"),
    ("soft_binned_loss", {"m": 4, "threshold": 5}, "threshold"),
    ("soft_binned_loss", {"m": 4, "threshold": 1, "soft": "yes"}, "soft = 'yes'; expected True or False"),
    ("cfdl", {"task": 3}, "task = 3"), ("cfdl", {"task": "umbrela"}, "did you mean 'umbrella'"),
    *(("subsampled_smooth_ce", {"subsets": x}, "subsets") for x in (0, 1.5, True, 10**9, None)),
    ("subsampled_step_ce", {"subsets": -1}, "subsets"), ("subsampled_step_ce_sampled", {"seed": -1}, "seed"),
    ("subsampled_smooth_ce_sampled", {"seed": 1, "draws": 0}, "draws"),
    *(("subsampled_smooth_ce_sampled", {"seed": 1, "confidence": x}, "confidence") for x in (1.0, -0.1, math.nan)),
    ("bregman", {"phi": "kl"}, "'log', 'quadratic'"), ("bregman", {"phi": np.square}, "a function and its derivative"),
    ("bregman", {"phi": (np.square, 2.0)}, "a function and its derivative"),
    ("bregman", {"phi": (np.square, np.exp)}, "convex"),
    ("bregman", {"phi": (lambda x: -np.square(x), lambda x: -2 * x)}, "convex"),
    ("bregman", {"phi": (lambda x: x + np.inf, np.ones_like)}, "finite"),
    ("bregman", {"phi": (lambda x: 1.0, np.square)}, "one dimension"),
    ("bregman", {"phi": (lambda x: np.ones(7), np.ones_like)}, "another shape; expected that of its argument"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "said"), REFUSED, ids=lambda x: x if isinstance(x, str) else "")
def test_bad_options_are_refused(name, options, said):
    gamma = oc.JointDistribution.from_samples([0.4, 0.6], [1, 0])
    with pytest.raises((InvalidParameter, UnknownName), match=said):
        getattr(oc.measures, name)(gamma, **options)


CALIBRATED = oc.JointDistribution.from_levels([0.5], [1], [0.5])
distances, exponents = partial(partial, oc.measures.true_distance), partial(partial, consistency)


@pytest.mark.parametrize(("call", "error", "said"), [
    (distances([0.5], [1], max_rounds=401), InvalidParameter, "max_rounds"),
    (distances([0.5], [1], order=21), InvalidParameter, "order"),
    (distances([0.5], [2]), InvalidData, "outcome"),
    (lambda: SoftRounding(0), InvalidParameter, "bins = 0"),
    (lambda: SoftRounding(4).law(1.5), InvalidParameter, "expected"),
    (lambda: SoftRounding(4).draw([1.5], seed=0), InvalidData, "expected"),
    (lambda: SoftRounding(4).draw(["x"], seed=0), InvalidData, "expected"),
    (lambda: SoftRounding(4).draw([0.5], seed=-1), InvalidParameter, "seed"),
    (exponents("smooth_cf"), UnknownName, "did you mean 'smooth_ce'"),
    (exponents("ece", families={}), InvalidParameter, "expected names with functions"),
    (exponents("ece", families={"x": 3}), InvalidParameter, "expected names with functions"),
    (exponents("ece", families={"x": np.sqrt}), InvalidData, "family 'x'"),
    (exponents("ece", families={"x": lambda size: CALIBRATED}), InvalidParameter, "'x' is calibrated at"),
    (exponents("ece", sizes=(0.1, 0.2)), InvalidParameter, "the larger one first"),
    (exponents("ece", sizes=0.1), InvalidParameter, "expected two"),
    (exponents("ece", sizes=(0.1, 0.0)), InvalidParameter, "a positive number"),
    (exponents("ece", bins=3), InvalidParameter, "has no option 'bins'"),
    (lambda: oc.measures.Bracket(0.2, 0.1), InvalidData, "expected lower ≤ upper"),
    (lambda: oc.measures.Bracket(math.nan, 1.0), InvalidData, "expected lower ≤ upper"),
])  # fmt: skip
def test_what_else_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_ten_million_samples(full):
    n = 10**7 if full else 2 * 10**5
    generator = np.random.default_rng(0)
    p = generator.random(n)
    result = oc.evaluate(p, generator.random(n) < p)
    table = result.table()
    # Hoeffding: the mean error of n independent outcomes exceeds this with probability below 2e-9.
    noise = math.sqrt(10.0 / n)
    assert result["weighted_ce"] < noise
    assert table.upper["distance_lower"] < 2e-3
    assert table.lower["interval_ce"] <= table.upper["interval_ce"] < 0.05
    assert (table.lower <= table.upper).all()
    assert table["value"]["brier"] == pytest.approx(1 / 6, abs=2 * noise)
