"""Last digits: the decision measures against exact fractions, and the same with compilation switched off."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.measures import MEASURES, Bracket, cutoff, decision
from onlinecal.measures.base import ends
from tests.oracles import exact
from tests.strategies import gammas
from tests.witnesses import MORE


@pytest.mark.parametrize("name", ["cdl", "u_calibration", "v_cdl"])
@given(gamma=gammas())
def test_to_the_last_digits(name, gamma):
    assert MEASURES[name].function(gamma) == pytest.approx(float(getattr(exact, name)(gamma)), abs=1e-15)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10)
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
    low, _, high, _ = cutoff.extremes(gamma.residuals)
    assert low <= sums.min() + 1e-17
    assert high >= sums.max() - 1e-17


def digits():
    """Every measure on Γ of several kinds, as the exact digits of its value."""
    rng = np.random.default_rng(5)
    v = np.arange(1, 40) / 40
    kinds = {
        "grid": JointDistribution.from_samples(rng.integers(0, 11, 200) / 10, rng.integers(0, 2, 200)),
        "real": JointDistribution.from_samples(rng.random(60), rng.integers(0, 2, 60)),
        "near": JointDistribution.from_levels(v, np.ones(39), v + 1e-3),
        "one": JointDistribution.from_samples([0.3], [1]),
        "ends": JointDistribution.from_samples([0.0, 1.0, 1.0], [1, 0, 1]),
        "calibrated": JointDistribution.from_samples([0.5, 0.5], [0, 1]),
    }
    result = {}
    for kind, gamma in kinds.items():
        for record in MEASURES.values():
            for options in (record.example, *MORE.get(record.name, [])):
                if record.name != "distance_lower" and not record.name.startswith("subsampled"):  # minutes
                    result[f"{record.name} {len(result)}"] = [
                        x.hex() for x in ends(float_of(record, gamma, options))
                    ]
        for name, task in tasks.TASKS.items():
            result[f"{name} {kind}"] = [x.hex() for x in task().account(gamma)]
    return result


def float_of(record, gamma, options):
    value = record.function(gamma, **options)
    return value if isinstance(value, Bracket) else float(value)


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
