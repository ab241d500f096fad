"""The metric measures give the same digits with compilation switched off."""

import os
import subprocess
import sys

SAME = """
from onlinecal.measures.interval import interval_ce, interval_ce_bracket
from onlinecal.measures.kernel import kernel_ce
from onlinecal.measures.smooth_ce import smooth_ce, smooth_ce_witness
from onlinecal.measures.smooth_ece import smooth_ece, smooth_ece_at
from onlinecal.measures.surrogate import random_interval_ce, surrogate_interval_ce
from onlinecal.measures.distance_upper import distance_upper
from tests.gammas_metric import many_levels

for seed in range(3):
    gamma = many_levels(seed, 60, 0.1 * seed)
    for metric in ("identity", "logit"):
        print(smooth_ce(gamma, metric=metric).hex())
        print(smooth_ce_witness(gamma, metric=metric).value(gamma).hex())
        print(smooth_ece(gamma, transform=metric).hex())
        print(smooth_ece_at(gamma, sigma=0.1, transform=metric).hex())
    for scale in (1.0, 0.1, 0.01):
        print([kernel_ce(gamma, kernel=kernel, scale=scale).hex() for kernel in ("laplace", "gaussian")])
    print(interval_ce(gamma).hex(), interval_ce(gamma, width="max").hex())
    print(interval_ce_bracket(gamma, blocks=20), surrogate_interval_ce(gamma).hex())
    print(random_interval_ce(gamma, epsilon=0.1).hex(), distance_upper(many_levels(seed, 7)))
    print(distance_upper(gamma))
"""


def test_the_same_digits_without_compilation():
    runs = [
        subprocess.run(
            [sys.executable, "-c", SAME],
            env={**os.environ, "NUMBA_DISABLE_JIT": off},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for off in ("0", "1")
    ]
    assert len(runs[0].splitlines()) == 45
    assert runs[0] == runs[1]
