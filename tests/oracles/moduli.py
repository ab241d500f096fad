"""How far each continuous measure can move where predictions move by δ on average, whatever their outcomes."""

import math


def linear(slope):
    return lambda δ: slope * δ


def soft_bins(δ, *, bins=15, temperature=0.01, order=2.0):
    """Σ_j |u_j'| = (2/T) E|c − E c| ≤ 1/T for the law u_1, …, u_m of the middles c.

    So the sums R_j of the residuals move by (1 + 1/T) δ in all, and the masses W_j by δ/T. |R|^p W^{1−p} has slopes
    of at most p and p − 1 in them, as |R_j| ≤ W_j.
    """
    return min(1.0, ((order + (2.0 * order - 1.0) / temperature) * δ) ** (1.0 / order))


def kernels(δ, *, kernel="laplace", scale=1.0, degree=2):
    """E|v − v'| + E‖φ(v) − φ(v')‖, with ‖φ(v) − φ(v')‖² = 2 − 2 K(v, v') ≤ 2 |v − v'|/scale (BGHN23 Lemma 8.8).

    Of the Gaussian 2 ((v − v')/scale)²; of polynomials ‖φ'(v)‖² ≤ d (d + 1).
    """
    if kernel == "polynomial":
        return δ * (1.0 + math.sqrt(degree * (degree + 1.0)))
    return δ + math.sqrt(2.0 * δ / scale if kernel == "laplace" else 2.0 * (δ / scale) ** 2)


def smoothed(δ, *, sigma):
    """∫|r̂ − r̂'| ≤ E|v − v'| + E‖K_σ(v, ·) − K_σ(v', ·)‖_1, and two Gaussians d apart differ by 2 erf(d/(√8 σ)).

    Reflection shortens this norm; it is concave in |v − v'| (BN24 §3).
    """
    return δ + 2.0 * math.erf(δ / (math.sqrt(8.0) * sigma))


def smoothed_at_itself(δ):
    """The greater of two fixed points, σ, exceeds the less by D ≤ δ + √(2/π) δ/σ, as smECE_σ does not increase.

    And σ ≥ D.
    """
    return 0.5 * (δ + math.sqrt(δ**2 + 4.0 * math.sqrt(2.0 / math.pi) * δ))


def on_grid(δ, *, m=16, threshold=1):
    """Masses and ones at the points of the grid change by at most 2m E|v − v'| in all; thresholds are in [0, 1]."""
    return min(2.0 * m * δ, 2.0)


#: name → a function of δ and the options
MODULI = {
    # BGHN23 Lemma 7.4: (y − v) ω(v) is 2-Lipschitz in v for |ω| ≤ 1, ω 1-Lipschitz; with ω 2-Lipschitz, 3-Lipschitz
    "smooth_ce": linear(2.0),
    "earthmover_distance": linear(3.0),
    "subsampled_smooth_ce": linear(
        1.0
    ),  # that of each subset moves by twice what its rounds move, half of all
    "distance_lower": linear(1.0),  # BGHN23 Lemma 7.11: the triangle inequality of E|u − v|
    "brier": linear(2.0),  # |(y − v)² − (y − v')²| ≤ 2 |v − v'|
    "atb": linear(4.0),  # (y − v)(y' − v')(1 − |v − v'|) is 2-Lipschitz in v and in v'
    "weighted_ce": linear(1.0),  # with ω = 1: |E[y − v] − E[y − v']| ≤ E|v − v'|
    "low_degree_ce": lambda δ, degree=2: (degree + 1.0) * δ,  # |d/dv (y − v) v^j| ≤ j + 1
    # Residuals change by as much. Edges of bins come between v and v' for a share of |v − v'|/ε of the shifts. Then a
    # residual of at most 1 leaves one bin for another.
    "random_interval_ce": lambda δ, epsilon: δ + 2.0 * δ / epsilon,
    "scdl_binned": on_grid,
    "soft_binned_loss": on_grid,
    "soft_binned_ece": soft_bins,
    # With s = √δ: a best width of s or more is kept, for at most δ + 2s. A narrower one gives way to the multiple in
    # [s, 2s), which does not raise RintCE, for at most 2s more.
    "surrogate_interval_ce": lambda δ: δ + 4.0 * math.sqrt(δ),
    # BHNU26 Theorem 5.1, likewise: a best 1/m of s or more is kept, for at most 2δ/s. A finer grid gives way to one
    # with 1/m in [s, 2s), for at most 2s.
    "scdl": lambda δ: 2.0 * math.sqrt(δ),
    "kernel_ce": kernels,
    "smooth_ece": smoothed_at_itself,
    "smooth_ece_at": smoothed,
}
