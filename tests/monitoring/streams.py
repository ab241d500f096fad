"""Streams of forecasts and outcomes."""

import numpy as np


def calibrated(rng, n, kind="uniform"):
    """Forecasts that are the probabilities; "rare" ones are small, and of few levels."""
    p = rng.random(n) if kind == "uniform" else rng.choice([0.0, 0.01, 0.03, 0.1], n)
    return p, (rng.random(n) < p).astype(float)


def biased(rng, n, by):
    """Outcomes that are more likely than forecast by `by`, as far as that goes."""
    p = 0.05 + 0.9 * rng.random(n)
    return p, (rng.random(n) < np.clip(p + by, 0.01, 0.99)).astype(float)
