"""What forecasters that are made of others do with laws: round them, weigh them, mix them, draw from them."""

from __future__ import annotations

import math

import numpy as np

from onlinecal.core._compile import kernel


@kernel
def nearest(values, m, atoms):
    """Each value to the nearest point of the grid, at a tie to the even one."""
    runs, size = values.shape
    for r in range(runs):
        for j in range(size):
            atoms[r, j] = np.int64(np.rint(values[r, j] * m))


@kernel
def below(values, grid, atoms):
    """Each value to the point of the grid at or below it; compared with the grid, as a product may round over it."""
    runs, size = values.shape
    for r in range(runs):
        for j in range(size):
            atoms[r, j] = np.searchsorted(grid, values[r, j], side="right") - 1


@kernel
def split_between(values, weights, grid, atoms, shares):
    """Each value onto its two neighbours of the grid, with the value as the mean."""
    runs, size = values.shape
    m = len(grid) - 1
    for r in range(runs):
        for j in range(size):
            i = min(max(np.searchsorted(grid, values[r, j], side="right") - 1, 0), m - 1)
            up = min(1.0, max(0.0, (values[r, j] - grid[i]) / (grid[i + 1] - grid[i])))
            atoms[r, 2 * j], atoms[r, 2 * j + 1] = i, i + 1
            shares[r, 2 * j], shares[r, 2 * j + 1] = weights[r, j] * (1.0 - up), weights[r, j] * up


@kernel
def hedge(loss, rate, shares):
    """Shares by exp(−rate · loss), which add up to 1."""
    runs, experts = loss.shape
    for r in range(runs):
        least = loss[r, 0]
        for k in range(1, experts):
            least = min(least, loss[r, k])
        total = 0.0
        for k in range(experts):
            shares[r, k] = math.exp(rate * (least - loss[r, k]))
            total += shares[r, k]
        for k in range(experts):
            shares[r, k] /= total


@kernel
def add_law(values, weights, shares, k, first, atoms, mixed):
    """Adds the law of expert k, in its share, from place `first` on."""
    runs, size = values.shape
    for r in range(runs):
        for j in range(size):
            atoms[r, first + j] = values[r, j]
            mixed[r, first + j] = shares[r, k] * weights[r, j]


@kernel
def believe(drawn, first, uniforms, k, values, weights, outcome, loss, own):
    """Charges expert k its expected squared loss, and says which atom it is to believe was drawn: the engine's where
    that is the expert's, else one by its own law.
    """
    runs, size = weights.shape
    for r in range(runs):
        j = drawn[r] - first
        pick, total, u = 0, 0.0, uniforms[k, r]
        for i in range(size):
            w = weights[r, i]
            loss[r, k] += w * (values[r, i] - outcome[r]) ** 2
            if w > 0.0 and total <= u:
                pick = i
            total += w
        own[r] = j if 0 <= j < size else pick


@kernel
def agreed(experts, regret):
    """The forecast p at which the potential of `ExpertAggregation` is the same after either outcome.

    With w_k and v_k the weights of expert k, by the log loss and by the Brier score, it is the root of Σ w_k (q_k/p −
    (1 − q_k)/(1 − p)) + Σ v_k (exp(2((1 − p)² − (1 − q_k)²)) − exp(2(p² − q_k²))), which falls in p, is at least 0 at
    the least q_k and at most 0 at the largest: Newton's steps, and halves of the bracket where they leave it.
    """
    size, low, high = len(experts), experts.min(), experts.max()
    most, total, p = regret.max(), 0.0, 0.0
    ones, zeros, up, down = 0.0, 0.0, 0.0, 0.0
    for k in range(size):
        q, by_log, by_brier = experts[k], math.exp(regret[k] - most), regret[size + k] - most
        ones, zeros = ones + by_log * q, zeros + by_log * (1.0 - q)
        up += math.exp(by_brier - 2.0 * (1.0 - q) ** 2)
        down += math.exp(by_brier - 2.0 * q * q)
        share = by_log + math.exp(by_brier)
        total, p = total + share, p + share * q
    p = min(max(p / total, low), high)
    while low < p < high:
        rest = 1.0 - p
        after_one, after_none = up * math.exp(2.0 * rest * rest), down * math.exp(2.0 * p * p)
        gap = ones / p - zeros / rest + after_one - after_none
        if gap == 0.0:
            break
        low, high = (p, high) if gap > 0.0 else (low, p)
        slope = ones / (p * p) + zeros / (rest * rest) + 4.0 * (rest * after_one + p * after_none)
        last, p = p, p + gap / slope
        if not low < p < high:
            p = 0.5 * (low + high)
        if abs(p - last) <= 1e-16:
            break
    return p


@kernel
def regret_both(experts, p, outcome, regret):
    """Adds how much more the forecast p lost than each expert: in the log loss, and then twice that in (p − y)²."""
    size = len(experts)
    for k in range(size):
        q = experts[k]
        regret[k] += math.log(q / p) if outcome == 1 else math.log((1.0 - q) / (1.0 - p))
        regret[size + k] += 2.0 * ((p - outcome) ** 2 - (q - outcome) ** 2)
