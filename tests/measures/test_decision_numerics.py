"""Last digits: the decision measures against exact fractions, and the same with compilation switched off."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.measures import binned, cutoff, decision, residual_norms, scores, soft_binned
from tests.strategies import gammas

ONE = Fraction(1)
HALF = Fraction(1, 2)


def exact(gamma):
    """Levels as fractions: v, n, q are taken for what the floats are."""
    columns = (gamma.predictions, gamma.counts, gamma.means)
    return [tuple(map(Fraction, row)) for row in zip(*(c.tolist() for c in columns), strict=True)]


def envelope_at_half(points):
    """The highest chord above 1/2 of the points, every pair in turn."""
    left = [(t, r) for t, r in points if t <= HALF]
    right = [(t, r) for t, r in points if t >= HALF]
    best = max((r for t, r in points if t == HALF), default=Fraction(0))
    for t1, r1 in left:
        for t2, r2 in right:
            if t1 < t2:
                share = (t2 - HALF) / (t2 - t1)
                best = max(best, share * r1 + (1 - share) * r2)
    return best


def exact_cdl(gamma):
    rows = exact(gamma)
    total = sum(n for _, n, _ in rows)

    def density(t):
        up = sum(n * (q - t) for v, n, q in rows if v <= t < q)
        return (up + sum(n * (t - q) for v, n, q in rows if q < t <= v)) / total

    points = {Fraction(0), ONE, *(v for v, _, _ in rows), *(q for _, _, q in rows)}
    return 2 * envelope_at_half([(t, density(t)) for t in points])


def exact_u_calibration(gamma):
    rows = exact(gamma)
    total = sum(n for _, n, _ in rows)
    b = sum(n * q for _, n, q in rows) / total

    def density(t):
        above = sum(n * (q - t) for v, n, q in rows if v > t)
        on = sum(n * (q - t) for v, n, q in rows if v == t)
        return max(max(b - t, 0) - min(above, above + on) / total, 0)

    points = {Fraction(0), ONE, b, *(v for v, _, _ in rows)}
    return 2 * envelope_at_half([(t, density(t)) for t in points])


@given(gammas())
def test_cdl_to_the_last_digits(gamma):
    assert decision.cdl(gamma) == pytest.approx(float(exact_cdl(gamma)), abs=1e-15)


@given(gammas())
def test_u_calibration_to_the_last_digits(gamma):
    assert decision.u_calibration(gamma) == pytest.approx(float(exact_u_calibration(gamma)), abs=1e-15)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_no_digits_are_lost_over_many_levels(seed):
    rng = np.random.default_rng(seed)
    v = np.unique(rng.random(100_000))
    gamma = JointDistribution.from_samples(v, rng.random(len(v)) < v)
    value, t = decision._v_cdl(gamma.predictions, gamma.counts, gamma.means)
    up = (gamma.predictions <= t) & (t < gamma.means)
    down = (gamma.means < t) & (t <= gamma.predictions)
    terms = np.concatenate([gamma.means[up] - t, t - gamma.means[down]])
    assert value / gamma.weight == pytest.approx(math.fsum(terms) / max(t, 1 - t) / gamma.weight, abs=1e-15)
    sums = np.array([math.fsum(gamma.residuals[:j]) for j in (1, 1000, 50_000, len(v))])
    low, _, high, _ = residual_norms.extremes(gamma.residuals)
    assert low <= sums.min() + 1e-17
    assert high >= sums.max() - 1e-17


def digits():
    """Every measure on Γ of several kinds, as the exact digits of its value."""
    rng = np.random.default_rng(5)
    kinds = {
        "grid": JointDistribution.from_samples(rng.integers(0, 11, 200) / 10, rng.integers(0, 2, 200)),
        "real": JointDistribution.from_samples(rng.random(60), rng.integers(0, 2, 60)),
        "near": JointDistribution.from_levels(
            np.arange(1, 40) / 40, np.ones(39), np.arange(1, 40) / 40 + 1e-3
        ),
        "one": JointDistribution.from_samples([0.3], [1]),
        "ends": JointDistribution.from_samples([0.0, 1.0, 1.0], [1, 0, 1]),
        "calibrated": JointDistribution.from_samples([0.5, 0.5], [0, 1]),
    }
    result = {}
    for kind, gamma in kinds.items():
        for family in (binned, scores, decision, soft_binned, cutoff):
            for record in family.MEASURES:
                result[f"{record.name} {kind}"] = float(record.function(gamma, **record.example)).hex()
        result[f"quantile {kind}"] = float(binned.binned_ece(gamma, strategy="quantile")).hex()
        result[f"hard {kind}"] = float(soft_binned.scdl_binned(gamma, soft=False)).hex()
        for name, task in tasks.TASKS.items():
            result[f"{name} {kind}"] = [x.hex() for x in task().account(gamma)]
    return result


def test_the_same_digits_without_compilation():
    code = "import json, tests.measures.test_decision_numerics as t; print(json.dumps(t.digits()))"
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == digits()
