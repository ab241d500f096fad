"""Coverage of the intervals of `oc.evaluate_classes`, in docs/classes.md: `python -m tests.coverage_classes 200`.

With `100 times` it prints how often calibrated logs in order of time have no p-value, or one of at most 0.05.
"""

import itertools
import sys

import numpy as np
from scipy.special import ndtr

import onlinecal as oc
from onlinecal.logs.class_draws import Joint
from onlinecal.logs.classes import events_of, tested
from tests.coverage_intervals import autoregressive

#: classes, steps of the grid of forecasts, rows, and the error: a share moved to the first class, or a power of v; with
#: "weights" by Pareto's law; with "clusters" of ten, where seven in ten outcomes are drawn by one number
DESIGNS = (
    (3, 10, 100, 0.0), (3, 10, 100, 0.2), (3, 10, 500, 0.2), (3, 10, 500, 1.5), (5, 6, 500, 0.0), (5, 6, 1000, 0.1),
    (3, 40, 300, 0.1), (3, 5, 300, 0.0, "weights"), (3, 5, 300, 0.2, "weights"), (3, 5, 400, 0.0, "clusters"),
    (3, 5, 400, 0.2, "clusters"),
)  # fmt: skip


def population(k, steps, error):
    """Forecasts on the grid, their mass by Dirichlet's law, and the shares of what happens."""
    v = np.array([c for c in itertools.product(range(steps + 1), repeat=k) if sum(c) == steps]) / steps
    moved = (1 - error) * v + error * np.eye(k)[0] if error <= 1 else v**error
    return v, np.random.default_rng(1).dirichlet(np.ones(len(v))), moved / moved.sum(axis=1, keepdims=True)


def row(logs, k, steps, n, error, kind=""):
    v, w, q = population(k, steps, error)
    gamma, measures = oc.ClassDistribution.from_levels(v, w, q), oc.measures.classes
    truth = [*measures.classwise(gamma, measure="smooth_ce").values.values()]
    truth += [measures.toplabel(gamma, measure="smooth_ce"), measures.brier(gamma)]
    generator, held, found = np.random.default_rng(7), np.zeros(k + 2), 0
    for _ in range(logs):
        level = generator.choice(len(v), n, p=w)
        asked, numbers = dict[str, object](), generator.random(n)
        if kind == "weights":
            asked["weights"] = generator.pareto(2.5, n) + 0.1
        if kind == "clusters":
            asked["clusters"] = of = np.arange(n) // 10
            common = generator.random(n) < 0.7
            numbers = np.where(common, numbers[of], numbers)
            level = np.where(common, level[of], level)
        y = np.minimum((numbers[:, None] > q[level].cumsum(axis=1)).sum(axis=1), k - 1)
        one = oc.evaluate_classes(v[level], y, seed=int(generator.integers(1 << 30)), **asked)
        ends = [each.interval for each in one.classes]
        ends += [each.interval for each in one.rows if each.name == "brier"]
        held += [low - 1e-12 <= x <= high + 1e-12 for x, (low, high) in zip(truth, ends, strict=True)]
        found += one.p_value <= 0.05
    *each, top, brier = held / logs
    what = "none" if error == 0 else f"{error:.0%} moved" if error <= 1 else f"q ∝ v^{error:g}"
    what += f", {kind}" * (kind != "")
    classes = f"{min(each):.3f} to {max(each):.3f}"
    return f"| {k} | {n} | {what} | {classes} | {top:.3f} | {brier:.3f} | {found / logs:.3f} |"


def times(logs, rho, n):
    """Three classes, of which one happens by a normal number that depends on the one before."""
    none, small = 0, 0
    for i in range(logs):
        generator = np.random.default_rng([7, n, i])
        uniform = ndtr(autoregressive(generator, n, rho))
        p = generator.multinomial(10, generator.dirichlet(np.ones(3), n)) / 10
        y = np.minimum((uniform[:, None] > p.cumsum(axis=1)).sum(axis=1), 2)
        events = events_of(p, y, None, None, None, True)
        found = [among for _, among in tested(events, Joint(events.gamma), 39, i).p_values]
        none += found[0] is None
        small += found[0] is not None and min(found) <= 0.05
    return f"| AR({rho}) | {n} | {none / logs:.2f} | {small / logs:.2f} |"


if __name__ == "__main__":
    if sys.argv[2:] == ["times"]:
        for rho, n in ((0.0, 60), (0.0, 300), (0.5, 300), (0.9, 60), (0.9, 300), (0.9, 1500)):
            print(times(int(sys.argv[1]), rho, n), flush=True)
        sys.exit()
    for design in DESIGNS:
        print(row(int(sys.argv[1]), *design), flush=True)
