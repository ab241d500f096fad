"""Times of the measures beside other packages, in one run: `python -m tests.benchmarks.compare`.

Prints Markdown; `--write` puts it into docs/speed.md. Medians after one call that compiles, a single thread.
"""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
import relplot
import scipy.sparse as sp
import sklearn.calibration
from scipy.optimize import linprog

from onlinecal import measures
from onlinecal.core.joint import JointDistribution
from tests.benchmarks.speed import main, processor
from tests.pages import markdown

SIZES = (10**4, 10**5, 10**6)
# Seconds that a rival may take; one that has taken longer is not asked for a larger n.
CAP = 60.0

OURS = [
    measures.ece, measures.cutoff_ce, measures.step_ce, measures.kernel_ce, measures.cdl, measures.v_cdl,
    measures.u_calibration, measures.scdl, measures.smooth_ce, measures.smooth_ece, measures.surrogate_interval_ce,
    measures.interval_ce, measures.interval_ce_bracket, measures.distance_lower, measures.distance_upper,
    measures.binned_ece, measures.brier, measures.log_loss,
]  # fmt: skip


def samples(n: int, bias: float) -> tuple[np.ndarray, np.ndarray]:
    """n distinct predictions, and outcomes of mean p + bias sin(6p)."""
    generator = np.random.default_rng(n)
    p = generator.random(n)
    return p, (generator.random(n) < p + bias * np.sin(6.0 * p)).astype(float)


def median(function: Callable[[], object], most: int = 9) -> tuple[float, object]:
    """Median seconds of up to `most` calls within some 3 seconds, one at least, and what the last returned."""
    times: list[float] = []
    while len(times) < most and (len(times) < 1 or sum(times) < 3.0):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


# -------------------------------------------------------------------- rivals, as one would call them


def sklearn_ece(p, y, bins=10):
    """Weighted mean of the gaps that `calibration_curve` returns."""
    true, predicted = sklearn.calibration.calibration_curve(y, p, n_bins=bins)
    counts = np.histogram(p, np.linspace(0.0, 1.0, bins + 1))[0]
    return float(np.abs(true - predicted) @ counts[counts > 0] / len(p))


def smooth_program(p, y):
    """The linear program of BGHN23, Theorem 7.14: a weight per sample, Lipschitz between neighbours."""
    order = np.argsort(p)
    v, r = p[order], (y - p)[order]
    n = len(v)
    step = sp.diags([np.ones(n - 1), -np.ones(n - 1)], [0, 1], shape=(n - 1, n), format="csc")
    gap = np.diff(v)
    answer = linprog(
        -r, A_ub=sp.vstack([step, -step]), b_ub=np.concatenate([gap, gap]), bounds=(-1, 1), method="highs",
        options={"time_limit": CAP},
    )  # fmt: skip
    return -answer.fun / n if answer.status == 0 else None


def distance_program(p, y, grid=100):
    """The linear program (11) of BGHN23: a coupling with u on a grid."""
    v, u, n = np.sort(p), np.arange(grid + 1) / grid, len(p)
    mass = np.concatenate([y[np.argsort(p)] == 0, y[np.argsort(p)] == 1]) / n
    marginal = sp.kron(sp.eye(2 * n), np.ones((1, grid + 1)), format="csc")
    calibrated = sp.hstack([sp.kron(np.ones((1, n)), sp.diags(o - u)) for o in (0.0, 1.0)], format="csc")
    answer = linprog(
        np.tile(np.abs(v[:, None] - u).reshape(-1), 2), A_eq=sp.vstack([marginal, calibrated], format="csc"),
        b_eq=np.concatenate([mass, np.zeros(grid + 1)]), method="highs-ipm", options={"time_limit": CAP},
    )  # fmt: skip
    return answer.fun if answer.status == 0 else None


# The question, our function, the other's name and call on (p, y), and the largest n at which it is tried.
PAIRS: list[tuple[str, Callable, str, Callable, int]] = [
    ("SmoothECE", measures.smooth_ece, "`relplot.smECE`", relplot.smECE, 10**6),
    ("binned ECE, 10 bins", measures.binned_ece, "`relplot` `binnedECE`",
     functools.partial(relplot.metrics.binnedECE, nbins=10), 10**6),
    ("binned ECE, 10 bins", measures.binned_ece, "scikit-learn `calibration_curve`, averaged", sklearn_ece, 10**6),
    ("surrogate interval CE", measures.surrogate_interval_ce, "`relplot` `intCE_rand` (sampled)",
     relplot.metrics.intCE_rand, 10**6),
    ("smooth CE", measures.smooth_ce, "its linear program, HiGHS", smooth_program, 10**5),
    ("lower distance", measures.distance_lower, "its linear program on 101 u, HiGHS interior point", distance_program,
     10**4),
]  # fmt: skip


# -------------------------------------------------------------------- tables


def seconds(t: float | None) -> str:
    if t is None:
        return "–"
    return f"{t * 1e3:.2g} ms" if t < 0.0995 else f"{t:.2g} s" if t < 9.95 else f"{t:.0f} s"


def ours() -> str:
    rows: dict[str, list[str]] = {}
    for n in SIZES:
        kinds = [samples(n, bias) for bias in (0.0, 0.1)]
        gammas = [JointDistribution.from_samples(*kind) for kind in kinds]
        for gamma in gammas:
            gamma.residuals, gamma.mass  # noqa: B018 — part of Γ, computed once
        calls = {f"`{f.__name__}`": [functools.partial(f, gamma) for gamma in gammas] for f in OURS}
        calls["Γ from samples (sorting)"] = [
            functools.partial(JointDistribution.from_samples, *kind) for kind in kinds
        ]
        for name, pair in calls.items():
            if name == "`interval_ce`" and n > 10**5:
                rows[name].append("a bracket")
                continue
            for call in pair:
                call()  # compiles
            rows.setdefault(name, []).append(seconds(max(median(call)[0] for call in pair)))
    head = ["measure", *(f"n = 10{'⁴⁵⁶'[i]}" for i in range(3))]
    return markdown(head, [[k, *v] for k, v in rows.items()], "---:")


def beside() -> str:
    rows = []
    for what, function, name, call, largest in PAIRS:
        row = [what, name]
        slow = False
        for n in SIZES:
            p, y = samples(n, 0.1)
            mine, value = median(lambda p=p, y=y, f=function: f(JointDistribution.from_samples(p, y)))
            if slow or n > largest:
                row.append(f"{seconds(mine)} : –")
                continue
            theirs, other = median(lambda p=p, y=y, c=call: c(p, y), 5)
            slow = theirs > CAP / 4 or other is None
            row.append(f"{seconds(mine)} : {'> ' + seconds(CAP) if other is None else seconds(theirs)}")
            if n == SIZES[0]:
                ends = [value] if isinstance(value, float) else [value.lower, value.upper]
                values = (
                    "–".join(f"{end:.5f}" for end in ends) + f" : {'–' if other is None else f'{other:.5f}'}"
                )
        rows.append([*row, values])
    head = ["what", "by", *(f"n = 10{'⁴⁵⁶'[i]}, ours : theirs" for i in range(3)), "values at 10⁴"]
    return markdown(head, rows, "---:")


def machine() -> str:
    """CPU, cores, and versions."""
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in
                         ("numpy", "numba", "scipy", "relplot", "scikit-learn"))  # fmt: skip
    return f"{processor()}, {os.cpu_count()} cores, one used; Python {platform.python_version()}, {packages}"


def report() -> str:
    day = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return f"""\
Measured on {day}: {machine()}. Medians after compilation, n distinct predictions, the slower of calibrated and biased
outcomes (mean p + 0.1 sin 6p), Γ built before.

{ours()}

Side by side, the biased samples, from the samples on: ours includes the sorting. "> {CAP:.0f} s" ran into a
limit, "–" was not tried at that n. A program on 101 values u is exact only for that grid; ours is certified to 1e-3.

{beside()}"""


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main("compare", report)
