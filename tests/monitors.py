"""How soon the monitor sees what is wrong, beside others: tests that are valid at any time, and batch tests.

Run `python -m tests.monitors`. Each test gets the same streams. A false alarm is one on calibrated streams, a delay the
number of events from the change to the alarm. Those of others are written down here from what their papers say:

- Henzi and Ziegel 2022, "Valid sequential inference on probability forecast performance". The e-value is 1 + λ d/c for
  the Brier difference d of two forecasts, with the λ that is best if the second is right. Their test rejects that the
  first is as good as the second, which holds where the first is calibrated. The paper leaves the second free. It
  is here p + Σ(y − p)/(n + 200) over the n events so far in the same of 5 bins. That is the best of what was tried
  (1 to 40 bins, 20 to 200).
- Arnold, Henzi and Ziegel 2023, "Sequentially valid tests for forecast calibration". Probability integral transforms,
  here randomised ones, are uniform where forecasts are calibrated: Z = U(1 − p) for y = 0 and 1 − p + Up for y = 1.
  The e-value is the density that a histogram of the past gives, of 10 bins with one count more in each.
- probcal (0.4.0, MIT licence; `pip install probcal`, without which its column is left out). Its e-values are of
  batches, here of 250 events. `CalibrationMonitor` as it is bets on a shift of all log odds and on their slope.
- A batch test: every 250 events a χ² of 10 bins of these events, at α/(k(k + 1)) in the k-th batch.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import partial

import numpy as np
from scipy.stats import chi2

from onlinecal.monitoring.monitor import Monitor

ALPHA, BATCH, BINS, PRIOR = 0.05, 250, 5, 200.0


def streams(kind, many, rounds, change, rng):
    """(many, rounds) forecasts and outcomes; from `change` on something is wrong."""
    p = rng.random((many, rounds))
    q = {
        "calibrated": p,
        "all too high by 0.08": np.clip(p - 0.08, 0.0, 1.0),
        "[0.6, 0.8) too high by 0.15": np.where((p >= 0.6) & (p < 0.8), p - 0.15, p),
        "overconfident": 0.5 + 0.75 * (p - 0.5),
        "underconfident": np.clip(0.5 + 1.3 * (p - 0.5), 0.0, 1.0),
    }[kind]
    q = np.where(np.arange(rounds) < change, p, q)
    return p, (rng.random(p.shape) < q).astype(float)


def monitor(p, y, rng):
    """First alarms, counted from 1; infinite for none."""
    found = np.full(len(p), np.inf)
    for i in range(len(p)):
        alarms = Monitor(ALPHA, restart="same").update(p[i], y[i])
        found[i] = alarms[0].event if alarms else np.inf
    return found


def henzi_ziegel(p, y, rng):
    """The same; e-values of p against what its bins have said so far."""
    many, rounds = p.shape
    counts, errors = np.zeros((many, BINS)), np.zeros((many, BINS))
    log_e, found, rows = np.zeros(many), np.full(many, np.inf), np.arange(many)
    for t in range(rounds):
        one, happened = p[:, t], y[:, t]
        cell = np.minimum((one * BINS).astype(int), BINS - 1)
        q = np.clip(one + errors[rows, cell] / (counts[rows, cell] + PRIOR), 0.001, 0.999)
        # Where p > q, an event is what p gains most by: d = S(p, y) − S(q, y) is least then.
        worst = np.where(one > q, (1 - one) ** 2 - (1 - q) ** 2, one**2 - q**2)
        best = np.where(one > q, one**2 - q**2, (1 - one) ** 2 - (1 - q) ** 2)
        scale = np.where(worst < 0.0, -worst, 1.0)
        chance = np.where(one > q, q, 1.0 - q)  # of the worst, if q is right
        gain = best / scale
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(np.where(gain > 0.0, (1.0 - chance) - chance / gain, 0.0), 0.0, 0.999)
        d = ((one - happened) ** 2 - (q - happened) ** 2) / scale
        log_e += np.where(worst < 0.0, np.log1p(share * d), 0.0)
        found = np.where((log_e >= -np.log(ALPHA)) & np.isinf(found), t + 1, found)
        counts[rows, cell] += 1
        errors[rows, cell] += happened - one
    return found


def arnold_henzi_ziegel(p, y, rng):
    """The same; the density of the transforms so far."""
    many, rounds = p.shape
    counts, log_e = np.ones((many, 10)), np.zeros(many)
    found, rows = np.full(many, np.inf), np.arange(many)
    z = np.where(y == 1.0, 1.0 - p + rng.random(p.shape) * p, rng.random(p.shape) * (1.0 - p))
    cells = np.minimum((z * 10).astype(int), 9)
    for t in range(rounds):
        cell = cells[:, t]
        log_e += np.log(10.0 * counts[rows, cell] / (10.0 + t))
        found = np.where((log_e >= -np.log(ALPHA)) & np.isinf(found), t + 1, found)
        counts[rows, cell] += 1
    return found


def probcal(p, y, rng):
    """The same; an alarm is at the end of its batch."""
    from probcal.monitor import CalibrationMonitor

    many, rounds = p.shape
    found = np.full(many, np.inf)
    for i in range(many):
        theirs = CalibrationMonitor(ALPHA)
        for end in range(BATCH, rounds + 1, BATCH):
            part = slice(end - BATCH, end)
            if theirs.update(y[i, part], p[i, part]).alarm:
                found[i] = end
                break
    return found


def batches(p, y, rng, spent=True):
    """The same; without `spent` every batch at α."""
    many, rounds = p.shape
    found = np.full(many, np.inf)
    for k in range(1, rounds // BATCH + 1):
        part = slice((k - 1) * BATCH, k * BATCH)
        one, happened = p[:, part], y[:, part]
        cell = np.minimum((one * 10).astype(int), 9)
        statistic = np.zeros(many)
        for j in range(10):
            here = cell == j
            spread = (here * one * (1 - one)).sum(axis=1)
            statistic += np.where(
                spread > 0, (here * (happened - one)).sum(axis=1) ** 2 / np.maximum(spread, 1e-300), 0
            )
        level = ALPHA / (k * (k + 1)) if spent else ALPHA
        found = np.where((statistic >= chi2.isf(level, 10)) & np.isinf(found), k * BATCH, found)
    return found


#: every batch at α: what is often done
batches_at_alpha = partial(batches, spent=False)

TESTS = {
    "monitor": monitor,
    "Henzi and Ziegel 2022": henzi_ziegel,
    "Arnold, Henzi and Ziegel 2023": arnold_henzi_ziegel,
    **({"probcal 0.4.0, batches of 250": probcal} if importlib.util.find_spec("probcal") else {}),
    "batches of 250, α spent": batches,
    "batches of 250, each at α": batches_at_alpha,
}
KINDS = ("all too high by 0.08", "[0.6, 0.8) too high by 0.15", "overconfident", "underconfident")


def table(many=200, rounds=6000, seed=0):
    """(test → how many false alarms in as many rounds), and ((kind, change) → test → first alarms)."""
    rng = np.random.default_rng(seed)
    p, y = streams("calibrated", many, rounds, 0, rng)
    false = {name: int(np.isfinite(test(p, y, rng)).sum()) for name, test in TESTS.items()}
    found = {}
    for change in (0, rounds // 3):
        for kind in KINDS:
            p, y = streams(kind, many, rounds, change, rng)
            found[kind, change] = {name: test(p, y, rng) for name, test in TESTS.items()}
    return false, found


def main(many=200, rounds=6000, seed=0):
    """Prints the table in Markdown."""
    false, found = table(many, rounds, seed)
    print(f"{many} streams of {rounds:,} uniform forecasts, α = {ALPHA}, seed {seed}. Median delay; – where fewer than "
          "half were found.\n")  # fmt: skip
    print("| | " + " | ".join(TESTS) + " |")
    print("| --- |" + " ---: |" * len(TESTS))
    print("| false alarms | " + " | ".join(f"{n / many:.1%}" for n in false.values()) + " |")
    for (kind, change), tests in found.items():
        cells = []
        for first in tests.values():
            # Alarms before the change are false ones.
            late = np.where(first > change, first - change, np.nan)
            median = np.nanmedian(late)
            cells.append(f"{median:,.0f}" if np.isfinite(median) else "–")
        print(f"| {kind}{f', from event {change:,} on' if change else ''} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
