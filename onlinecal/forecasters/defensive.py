"""Defensive forecasting: play where the past says nothing about the direction of the next error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal._compile import kernel as compiled
from onlinecal.errors import InvalidParameter
from onlinecal.forecasters.base import Floats, Forecaster, ForecasterView, Ints, Law, Player
from onlinecal.guarantee import Guarantee
from onlinecal.relations import through
from onlinecal.sight import Sight
from onlinecal.strategy import check_number
from onlinecal.streams import Stream


@dataclass(frozen=True)
class DefensiveForecasting(Forecaster):
    r"""K29*: plays a root of the kernel sum of its own past errors, so that no outcome can raise their norm much.

    S(p) = Σ_{s<t} K(p, p_s)(y_s − p_s) + ½(1 − 2p) K(p, p). The forecast is 0 if S(0) ≤ 0, else 1 if S(1) ≥ 0, else a
    root of S, exact to rounding. With the Laplace kernel K(u, v) = exp(−|u − v|/scale) the past points are kept sorted
    in blocks of √T with sums from the left and from the right, so that a binary search finds two neighbours between
    which S changes sign and S is a single formula there. With the Gaussian kernel exp(−((u − v)/scale)²) the sum is
    a power series about ½ whose remainder is below rounding.

    Parameters
    ----------
    kernel : {"laplace", "gaussian"}, default "laplace"
        K. The Laplace kernel gives a sound measure, the Gaussian does not (Błasiok et al. 2023, Theorem 8.6).
    scale : float, default 1.0
        In [0.05, 100].

    Guarantee
    ---------
    For every sequence T·kCE ≤ √(Σ p_t(1 − p_t)) ≤ √T/2, with kCE in the same kernel; with the Laplace kernel of scale
    1 hence T·smCE ≤ √2·√T/2, since smCE ≤ √2·kCE. The middle term is tracked as ``kernel_ce_certificate``.

    Information
    -----------
    Deterministic; uses the horizon for its memory only. Laplace: O(√T) time a round at most, 48 bytes a round and run;
    Gaussian: O(terms) time and memory, 18 terms at scale 1.

    Source
    ------
    Vovk, Takemura and Shafer 2005, "Defensive forecasting", algorithm K29*. Deviations: the paper plays 0 only where
    S < 0 everywhere and 1 only where S > 0 everywhere; here S(0) ≤ 0 and S(1) ≥ 0 suffice, which keeps the theorem
    (its proof needs S(p)(y − p) ≤ 0 for both y) and makes the choice unique where S has several roots.
    """

    deterministic: ClassVar[bool | None] = True

    kernel: Literal["laplace", "gaussian"] = "laplace"
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.kernel not in ("laplace", "gaussian"):
            raise InvalidParameter(f"kernel = {self.kernel!r}; expected 'laplace' or 'gaussian'")
        check_number("scale", self.scale, 0.05, 100.0)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player with no past."""
        if self.kernel == "laplace":
            return _LaplacePlayer(horizon, runs, float(self.scale))
        return _GaussianPlayer(runs, float(self.scale))

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The bound on kCE in this kernel and, where it bounds smCE, that."""
        changed = [f"kernel={self.kernel}"] * (self.kernel != "laplace") + [f"scale={self.scale}"] * (
            self.scale != 1
        )
        measure = f"kernel_ce({', '.join(changed)})" if changed else "kernel_ce"
        source, against = "Vovk, Takemura and Shafer 2005", Sight.DRAW
        own = Guarantee(
            measure, "√T/2", lambda t: math.sqrt(t) / 2, "deterministic", against, source, anytime=True
        )
        return (own,) if changed else (own, through(own, "smooth_ce"))


class _Defensive:
    """What both players share: the law, and the certificate √(Σ p(1 − p))."""

    def __init__(self, runs: int, scale: float) -> None:
        self.law = Law(runs, 1)
        self.scale = scale
        self.variance = np.zeros(runs)

    def certificates(self) -> dict[str, Floats]:
        return {"kernel_ce_certificate": np.sqrt(self.variance)}


class _LaplacePlayer(_Defensive):
    """Keeps the past points of each run in a sorted list of blocks.

    `order[r, b]` is where the b-th block from the left lies; it holds `size` points ascending, with their weights
    r_s·e^{p_s/scale} (`rising`) and r_s·e^{−p_s/scale} (`falling`), r_s = y_s − p_s. `left[r, b]` sums
    `rising` over the blocks up to
    and including b, `right[r, b]` sums `falling` over b and the blocks after it: at a point between two neighbours,
    S is e^{−p/scale}·(rising to the left) + e^{p/scale}·(falling to the right) + ½ − p.
    """

    def __init__(self, horizon: int, runs: int, scale: float) -> None:
        super().__init__(runs, scale)
        slots = max(16, math.isqrt(horizon))
        # Blocks split when full, so all but perhaps one are half full.
        blocks = 2 * horizon // slots + 3
        self.points = np.empty((runs, blocks, slots))
        self.rising = np.empty((runs, blocks, slots))
        self.falling = np.empty((runs, blocks, slots))
        self.order = np.zeros((runs, blocks), np.int32)
        self.size = np.zeros((runs, blocks), np.int32)
        self.left = np.zeros((runs, blocks))
        self.right = np.zeros((runs, blocks + 1))
        self.blocks = np.ones(runs, np.int32)
        self.scratch = np.empty(slots + 1)

    def forecast(self, view: ForecasterView) -> Law:
        _laplace_root(
            self.points, self.rising, self.falling, self.order, self.size, self.left, self.right, self.blocks,
            self.scratch, self.scale, self.law.atoms,
        )  # fmt: skip
        return self.law

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        _laplace_learn(
            self.points, self.rising, self.falling, self.order, self.size, self.left, self.right, self.blocks,
            self.scale, forecast, outcome, self.variance,
        )  # fmt: skip


class _GaussianPlayer(_Defensive):
    """Keeps the coefficients c_k of S: with x = p − ½, z = q − ½ and λ = √2/scale, K(p, q) is
    e^{−(x²+z²)/scale²} Σ_k (λx)^k (λz)^k / k!.
    """

    def __init__(self, runs: int, scale: float) -> None:
        super().__init__(runs, scale)
        # |λx·λz| ≤ b = ½/scale²; the remainder after k terms is below b^k/k! · e^b, far under the rounding of S.
        b, terms, log_remainder = 0.5 / scale**2, 1, 0.0
        while log_remainder + b > math.log(1e-18) or terms < b:
            log_remainder += math.log(b / terms)
            terms += 1
        self.coefficients = np.zeros((runs, terms))

    def forecast(self, view: ForecasterView) -> Law:
        _gaussian_root(self.coefficients, self.scale, self.law.atoms)
        return self.law

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        _gaussian_learn(self.coefficients, self.scale, forecast, outcome, self.variance)


# ---------------------------------------------------------------- Laplace


@compiled
def _between(p, rising, falling, scale):
    """S(p) where `rising` is the sum over the points to the left of p and `falling` over those to the right."""
    return math.exp(-p / scale) * rising + math.exp(p / scale) * falling + 0.5 - p


@compiled
def _gap_root(low, high, rising, falling, scale):
    """The point of [low, high] at which S, positive at low and not at high, vanishes, to the last digit.

    Newton steps where they stay inside the bracket and halve it, bisection elsewhere.
    """
    p = 0.5 * (low + high)
    width = high - low
    for _ in range(200):
        up, down = math.exp(-p / scale) * rising, math.exp(p / scale) * falling
        value = up + down + 0.5 - p
        if value > 0.0:
            low = p
        elif value < 0.0:
            high = p
        else:
            return p
        step = p - value * scale / (down - up - scale)
        if not (low < step < high and high - low < 0.6 * width):
            step = 0.5 * (low + high)
            if not low < step < high:  # neighbouring numbers
                return p
        if step == p:
            return p
        width = high - low
        p = step
    return p


@compiled
def _laplace_root(points, rising, falling, order, size, left, right, blocks, scratch, scale, atoms):
    for r in range(len(blocks)):
        count = blocks[r]
        if right[r, 0] + 0.5 <= 0.0:
            atoms[r, 0] = 0.0
            continue
        if math.exp(-1.0 / scale) * left[r, count - 1] - 0.5 >= 0.0:
            atoms[r, 0] = 1.0
            continue
        # The last block at whose first point S is still positive; −1 if S changes sign before all points.
        low, high = -1, count if size[r, order[r, 0]] > 0 else 0
        while high - low > 1:
            middle = (low + high) >> 1
            before = left[r, middle - 1] if middle > 0 else 0.0
            if _between(points[r, order[r, middle], 0], before, right[r, middle], scale) > 0.0:
                low = middle
            else:
                high = middle
        if low < 0:
            first = points[r, order[r, 0], 0] if size[r, order[r, 0]] > 0 else 1.0
            atoms[r, 0] = _gap_root(0.0, first, 0.0, right[r, 0], scale)
            continue
        # Sums to the right of each point of that block, from far to near so that small terms are not lost.
        block = order[r, low]
        n = size[r, block]
        scratch[n] = right[r, low + 1]
        for i in range(n - 1, -1, -1):
            scratch[i] = scratch[i + 1] + falling[r, block, i]
        before = left[r, low - 1] if low > 0 else 0.0
        i = 1
        sum_left = before + rising[r, block, 0]
        while i < n and _between(points[r, block, i], sum_left, scratch[i], scale) > 0.0:
            sum_left += rising[r, block, i]
            i += 1
        if i < n:
            end = points[r, block, i]
        elif low + 1 < count:
            end = points[r, order[r, low + 1], 0]
        else:
            end = 1.0
        atoms[r, 0] = _gap_root(points[r, block, i - 1], end, sum_left, scratch[i], scale)


@compiled
def _laplace_learn(
    points, rising, falling, order, size, left, right, blocks, scale, forecast, outcome, variance
):
    slots = points.shape[2]
    for r in range(len(blocks)):
        p = forecast[r]
        variance[r] += p * (1.0 - p)
        up, down = (outcome[r] - p) * math.exp(p / scale), (outcome[r] - p) * math.exp(-p / scale)
        low, high = 0, blocks[r]
        while high - low > 1:
            middle = (low + high) >> 1
            if points[r, order[r, middle], 0] <= p:
                low = middle
            else:
                high = middle
        for b in range(low, blocks[r]):
            left[r, b] += up
        for b in range(low + 1):
            right[r, b] += down
        block = order[r, low]
        n = size[r, block]
        i, j = 0, n
        while i < j:
            middle = (i + j) >> 1
            if points[r, block, middle] < p:
                i = middle + 1
            else:
                j = middle
        if i < n and points[r, block, i] == p:  # one point for each level: 0 and 1 are played often
            rising[r, block, i] += up
            falling[r, block, i] += down
            continue
        for k in range(n, i, -1):
            points[r, block, k] = points[r, block, k - 1]
            rising[r, block, k] = rising[r, block, k - 1]
            falling[r, block, k] = falling[r, block, k - 1]
        points[r, block, i], rising[r, block, i], falling[r, block, i] = p, up, down
        size[r, block] = n + 1
        if n + 1 == slots:
            _split(points[r], rising[r], falling[r], order[r], size[r], left[r], right[r], low, blocks[r])
            blocks[r] += 1


@compiled
def _split(points, rising, falling, order, size, left, right, low, count):
    """Moves the upper half of the block at position `low` of one run into a new block to its right."""
    slots = points.shape[1]
    half = slots // 2
    block = order[low]
    for b in range(count, low + 1, -1):
        order[b], left[b], right[b] = order[b - 1], left[b - 1], right[b - 1]
    order[low + 1] = count
    size[block], size[count] = half, slots - half
    before = left[low - 1] if low > 0 else 0.0
    after = right[low + 2] if low + 2 <= count else 0.0
    left[low + 1] = left[low]
    for i in range(half):
        before += rising[block, i]
    left[low] = before
    for i in range(slots - 1, half - 1, -1):
        after += falling[block, i]
        points[count, i - half] = points[block, i]
        rising[count, i - half] = rising[block, i]
        falling[count, i - half] = falling[block, i]
    right[low + 1] = after


# ---------------------------------------------------------------- Gaussian


@compiled
def _series(p, c, scale):
    """S(p) from its coefficients, by Horner's rule."""
    x = p - 0.5
    z = x * math.sqrt(2.0) / scale
    total = 0.0
    for k in range(len(c) - 1, -1, -1):
        total = total * z + c[k]
    return math.exp(-(x * x) / (scale * scale)) * total + 0.5 - p


@compiled
def _gaussian_root(coefficients, scale, atoms):
    for r in range(len(coefficients)):
        c = coefficients[r]
        low, high = 0.0, 1.0
        at_low, at_high = _series(low, c, scale), _series(high, c, scale)
        if at_low <= 0.0:
            atoms[r, 0] = 0.0
            continue
        if at_high >= 0.0:
            atoms[r, 0] = 1.0
            continue
        # False position with the Illinois weight, which keeps both ends moving; bisection every fourth step.
        p = 0.5
        for step in range(200):
            p = 0.5 * (low + high) if step % 4 == 3 else low + (high - low) * at_low / (at_low - at_high)
            if not low < p < high:
                p = 0.5 * (low + high)
                if not low < p < high:
                    break
            value = _series(p, c, scale)
            if value > 0.0:
                low, at_low, at_high = p, value, 0.5 * at_high
            elif value < 0.0:
                high, at_high, at_low = p, value, 0.5 * at_low
            else:
                break
        atoms[r, 0] = p


@compiled
def _gaussian_learn(coefficients, scale, forecast, outcome, variance):
    for r in range(len(coefficients)):
        p = forecast[r]
        variance[r] += p * (1.0 - p)
        x = p - 0.5
        z = x * math.sqrt(2.0) / scale
        term = (outcome[r] - p) * math.exp(-(x * x) / (scale * scale))
        for k in range(coefficients.shape[1]):
            coefficients[r, k] += term
            term *= z / (k + 1)
