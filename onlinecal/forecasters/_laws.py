"""The aggregation of forecasts by `ExpertAggregation`."""

from __future__ import annotations

import math

from onlinecal.core._compile import kernel


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
