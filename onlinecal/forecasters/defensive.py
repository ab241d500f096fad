"""Defensive forecasting: play where the past says nothing about the direction of the next error."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.columns import Column
from onlinecal.core.guarantee import Guarantee, Sight, through
from onlinecal.core.specification import allow, number, word
from onlinecal.core.strategy import parameters
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, shared, state
from onlinecal.forecasters import _blocks
from onlinecal.forecasters.base import Forecaster
from onlinecal.forecasters.baselines import write_value


@dataclass(frozen=True)
class DefensiveForecasting(Forecaster):
    r"""K29*: plays a root of the kernel sum of its past errors, so that no outcome raises their norm much.

    S(p) = Σ_{s<t} K(p, p_s)(y_s − p_s) + ½(1 − 2p) K(p, p). The forecast is 0 if S(0) ≤ 0, else 1 if S(1) ≥ 0, else a
    root of S, exact to rounding. The Laplace kernel is K(u, v) = exp(−|u − v|/scale). Past points are sorted, in blocks
    with sums from both sides. The Gaussian kernel is exp(−((u − v)/scale)²): the sum is a power series about ½ with a
    remainder below rounding.

    Guarantee: For every sequence T·kCE ≤ √(Σ p_t(1 − p_t)) ≤ √T/2, with kCE in the same kernel. With the Laplace kernel
    of scale 1 T·smCE ≤ √2·√T/2, since smCE ≤ √2·kCE. The middle term is tracked as ``kernel_ce_certificate``.

    With delays, T·kCE ≤ √(Σ p_t(1 − p_t) + 2 Σ b_t |y_t − p_t|), b_t questions being open when t is asked. With at most
    b open at once, the one being asked included, this is at most √((1/4 + 2(b − 1))T). The certificate has these terms.
    Proof: docs/proofs.md.

    Information: Laplace: O(√t) time a round, and 48 to 96 bytes a round and run. Beyond the room set aside the blocks
    are moved, and take twice as much meanwhile. Gaussian: O(terms) time and memory, 18 terms at scale 1.

    Source: Vovk, Takemura and Shafer 2005, "Defensive forecasting", algorithm K29*. Deviations: 0 where S(0) ≤ 0 and 1
    where S(1) ≥ 0. The proof needs S(p)(y − p) ≤ 0 for both y, which that gives, and the choice is unique.

    Parameters
    ----------
    kernel : {"laplace", "gaussian"}, default "laplace"
        K. The Laplace kernel gives a sound measure, the Gaussian does not (Błasiok et al. 2023, Theorem 8.6).
    scale : float, default 1.0
        In [0.05, 100].
    """

    certifies: ClassVar[frozenset[str]] = frozenset({"kernel_ce_certificate"})
    deterministic, needs_horizon, safe_under_delay = True, False, True
    version: ClassVar[int] = 4
    unit_bytes: ClassVar[float] = 96.0
    allowed = allow(kernel=word("laplace", "gaussian"), scale=number(0.05, 100.0))

    kernel: Literal["laplace", "gaussian"] = "laplace"
    scale: float = 1.0

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        return "O(t)" if self.kernel == "laplace" else "O(1 + 1/scale^2)"

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        scale = float(self.scale)
        if self.kernel == "laplace":
            return steps.Forecaster(
                _blocks.say_root, _blocks.learn_point, _blocks.empty_blocks(), [scale, math.exp(-1.0 / scale)],
                note=1, grows=_blocks.numbers_for, certificates=certificate,
            )  # fmt: skip
        state = [0.0] * (COEFFICIENTS + _terms(scale))
        return steps.Forecaster(
            say_series_root, learn_terms, state, [scale], note=1, certificates=certificate
        )

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        default = {"kernel": "laplace", "scale": 1}
        changed = tuple((name, value) for name, value in parameters(self).items() if value != default[name])
        own = Guarantee(
            Column("measure", "kernel_ce", changed),
            "√T/2",
            lambda t: math.sqrt(t) / 2,
            "deterministic",
            Sight.DRAW,
            "Vovk, Takemura and Shafer 2005",
            anytime=True,
            delayed=lambda t, most: math.sqrt((0.25 + 2.0 * (most - 1)) * t),
        )
        return (own,) if changed else (own, through(own, "smooth_ce"))


def certificate(player: steps.Forecaster) -> dict[str, Floats]:
    """The root of what the squared norm is at most: the first number of either state."""
    return {"kernel_ce_certificate": np.sqrt(player.state[:, _blocks.NORM])}


def _terms(scale: float) -> int:
    """The number of terms of the series with a remainder b^k/k! · e^b above 1e-18, b = ½/scale²."""
    # K(p, q) is e^{−(x²+z²)/scale²} Σ_k (λx)^k (λz)^k / k! with x = p − ½, z = q − ½ and λ = √2/scale.
    b, terms, log_remainder = 0.5 / scale**2, 1, 0.0
    while log_remainder + b > math.log(1e-18):
        log_remainder += math.log(b / terms)
        terms += 1
    return terms


#: where the coefficients of S begin in the state, behind NORM and TOLD
COEFFICIENTS = 2


@kernel
def series(p, c, scale):
    """S(p) from its coefficients, by Horner's rule."""
    x = p - 0.5
    z = x * math.sqrt(2.0) / scale
    total = 0.0
    for k in range(len(c) - 1, -1, -1):
        total = total * z + c[k]
    return math.exp(-(x * x) / (scale * scale)) * total + 0.5 - p


def say_series_root(run: Run, number: int) -> int:
    """The state is a bound on the squared norm of the errors, the rounds told, and the coefficients of S."""
    _blocks.note_open(run, number)
    return write_value(run, series_root(state(run)[COEFFICIENTS:], shared(run)[0]))


@kernel
def series_root(c, scale):
    """0 if S(0) ≤ 0, else 1 if S(1) ≥ 0, else a root of S."""
    low, high = 0.0, 1.0
    at_low, at_high = series(low, c, scale), series(high, c, scale)
    if at_low <= 0.0:
        return 0.0
    if at_high >= 0.0:
        return 1.0
    # False position with the Illinois weight, which keeps both ends moving; bisection every fourth step.
    p = 0.5
    for step in range(200):
        p = 0.5 * (low + high) if step % 4 == 3 else low + (high - low) * at_low / (at_low - at_high)
        if not low < p < high:
            p = 0.5 * (low + high)
            if not low < p < high:
                break
        value = series(p, c, scale)
        if value > 0.0:
            low, at_low, at_high = p, value, 0.5 * at_high
        elif value < 0.0:
            high, at_high, at_low = p, value, 0.5 * at_low
        else:
            break
    return p


def learn_terms(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    c, scale, x = state(run)[COEFFICIENTS:], shared(run)[0], forecast - 0.5
    _blocks.raise_norm(run, forecast, outcome - forecast)
    z = x * math.sqrt(2.0) / scale
    term = (outcome - forecast) * math.exp(-(x * x) / (scale * scale))
    for k in range(len(c)):
        c[k] += term
        term *= z / (k + 1)
    return 0
