"""Natures that see the past but not the forecast of the round."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onlinecal.core.columns import Column
from onlinecal.core.expressions import check_expression, grid_steps
from onlinecal.core.guarantee import Forecasters, Guarantee, Potential, Sight
from onlinecal.core.joint import JointDistribution
from onlinecal.core.specification import STEPS, allow, expression, tuned
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, note, shared, state
from onlinecal.natures.base import Nature


def keep_bias(run: Run, size: int, forecast: float, number: int) -> float:
    """q is the first number of the state."""
    return state(run)[0]


@dataclass(frozen=True)
class EarlyStopping(Nature):
    """Fair coins until a smooth weighting of the bias reaches `bias`; from then on the outcome that cannot repair it.

    With B = Σ (y − p) and S = Σ (1/2 − p)(y − p) the coins end when |B| or S + |B|/2 is `bias` or more. From then on
    every outcome is 1 if B ≥ 0, and else 0.

    Guarantee: Against every forecaster E[T·smooth_ce] and E[T·cutoff_ce] are at least w(1 − ℓ(w)/T). ℓ(w) bounds the
    mean round in which the coins end, and ℓ(w)/w³ comes down to 64/π² = 6.5 for large w. For the default that is
    T^{1/3}/8 at T = 2000, more than T^{1/3}/5 from T = 10^6 on, and 0.225 T^{1/3} in the limit. Proof: docs/proofs.md.

    Source: Qiao and Zheng 2024, "On the distance from calibration in sequential prediction": the Ω(T^{1/3}) lower
    bound. Deviations: it stops by two weightings of the bias, not by the distance itself; proof and constant are ours.

    Parameters
    ----------
    bias : float or str, default "T^(1/3)/4"
        The weighted bias w that ends the coins, in [1e-9, 10^9]; a number or an expression in T.
    """

    bias: float | str = "T^(1/3)/4"
    sight = Sight.HISTORY
    safe_under_delay, memory = True, "O(1)"
    needs_horizon = tuned("bias")
    version: ClassVar[int] = 2
    allowed = allow(bias=expression(1e-9, 1e9))

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        return steps.Nature(
            keep_bias, [0.5, 0.0, 0.0], [self._bias_at(horizon)], sight=self.sight, hear=stop_coins
        )

    def _bias_at(self, horizon: float) -> float:
        return check_expression("bias", self.bias, 1e-9, 1e9, int(horizon))

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        def bound(horizon: float) -> float:
            bias = self._bias_at(horizon)
            return bias * max(0.0, 1.0 - _coins(bias) / horizon)

        def slack(horizon: float, runs: int, rate: float) -> float:
            # Runs count w or nothing, and are independent: Hoeffding's bound.
            return self._bias_at(horizon) * math.sqrt(math.log(1.0 / rate) / (2.0 * runs))

        def weighted(gamma: JointDistribution, horizon: int) -> float:
            # w until the coins end, and then the weighted bias, which no outcome repairs.
            p, residuals = gamma.predictions, gamma.positives - gamma.counts * gamma.predictions
            total, steered = float(residuals.sum()), float(((0.5 - p) * residuals).sum())
            return max(self._bias_at(horizon), abs(total), steered + 0.5 * abs(total))

        return tuple(
            Guarantee(
                Column("measure", measure),
                f"w(1 − ℓ(w)/T) with w = {self.bias}, ℓ(w) near 6.5 w³",
                bound,
                "expected",
                Forecasters.EVERY,
                "after Qiao and Zheng 2024; proof in docs/proofs.md",
                upper=False,
                slack=slack,
                potential=Potential(weighted),
            )
            for measure in ("smooth_ce", "cutoff_ce")
        )


def _coins(bias: float) -> float:
    """ℓ of the docstring: in the mean the coins end within that number of rounds. Any β gives a bound."""
    least = math.inf
    for share in range(1, 200):
        beta = 0.005 * share * 0.5 * math.pi / (bias + 1.0)
        c = _fall(bias, beta)
        if c > 0.0:
            least = min(least, (2.0 * bias + 1.0 - math.log(math.cos(beta * (bias + 1.0)))) / c)
    return least


def _fall(bias: float, beta: float) -> float:
    """c of docs/proofs.md: how much ln cos βB falls in a round at least, apart from 2δ²."""
    s, tangent = math.sin(0.5 * beta) ** 2, math.tan(beta * bias) ** 2
    return 0.5 * s - tangent * (0.125 * (beta * (1.0 + s * (1.0 + tangent))) ** 2 - 0.5 * s)


def stop_coins(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    """The state is q, B and S; shared is the bias that ends the coins."""
    mine, bias = state(run), shared(run)[0]
    if mine[0] == 0.5:
        mine[1] += outcome - forecast
        mine[2] += (0.5 - forecast) * (outcome - forecast)
        if max(abs(mine[1]), mine[2] + 0.5 * abs(mine[1])) >= bias:
            mine[0] = 1.0 if mine[1] >= 0.0 else 0.0
    return 0


@dataclass(frozen=True)
class Sidestepping(Nature):
    """Leaves a bias behind at one value after another, where the later ones do not repair it.

    [1/4, 3/4] is cut into `cells`. An epoch plays Bernoulli(θ), θ the middle of a cell, and adds up B = Σ (y − p) over
    its forecasts within a cell's width of θ. It ends after L = ⌈T/cells⌉ rounds, or as soon as |B| ≥ √L; then the cell
    gets the sign of B (none if |B| < √L). Outcomes of a larger mean repair negative biases below it, and those of a
    smaller one positive biases above it. The next cell is one without a sign from which fewest signs are repaired, the
    middle one of these. The signs that it repairs are forgotten. (If all cells have signs, any may be taken again.)

    Source: After Qiao and Valiant 2021, "Stronger calibration lower bounds via sidestepping"; sign preservation of
    Dagan et al. 2025. Deviations: it is greedy, where theirs has a recursive strategy with a proved number of signs.

    Parameters
    ----------
    cells : int or str, default "T^(1/3)"
        How many, rounded up; a number or an expression in T.
    """

    cells: int | str = "T^(1/3)"
    sight = Sight.HISTORY
    needs_horizon, safe_under_delay, memory = True, True, "O(cells)"
    allowed = allow(cells=STEPS)

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        cells = grid_steps("cells", self.cells, horizon)
        middle = (cells - 1) // 2
        state = [0.25 + 0.5 * (middle + 0.5) / cells, 0.0, middle, 0.0, 0.0] + [0.0] * cells
        shared = [-(-horizon // cells)]
        return steps.Nature(ask_in_epoch, state, shared, sight=self.sight, hear=sidestep, note=1)


#: the state of natures with epochs: θ, B, the cell, its rounds and the number of the epoch; more is a nature's own
THETA, BIAS, CELL_NOW, ROUNDS_OF_IT, EPOCH_NOW, OWN = range(6)


def ask_in_epoch(run: Run, size: int, forecast: float, number: int) -> float:
    # A round that is resolved after its epoch tells nothing of the next one.
    note(run)[0] = state(run)[EPOCH_NOW]
    return state(run)[THETA]


def sidestep(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    """Behind the others are the signs of the cells; shared are the rounds of an epoch."""
    mine, longest = state(run), shared(run)[0]
    if note(run)[0] != mine[EPOCH_NOW]:
        return 0
    signs, cell = mine[OWN:], int(mine[CELL_NOW])
    width, enough = 0.5 / len(signs), longest**0.5
    mine[ROUNDS_OF_IT] += 1.0
    if abs(forecast - mine[THETA]) <= width:
        mine[BIAS] += outcome - forecast
    bias = mine[BIAS]
    if mine[ROUNDS_OF_IT] >= longest or abs(bias) >= enough:
        if bias >= enough:
            signs[cell] = 1.0
        elif bias <= -enough:
            signs[cell] = -1.0
        cell = step_aside(signs)
        mine[THETA], mine[BIAS] = 0.25 + width * (cell + 0.5), 0.0
        mine[CELL_NOW], mine[ROUNDS_OF_IT] = cell, 0.0
        mine[EPOCH_NOW] += 1.0
    return 0


@kernel
def step_aside(signs):
    """The next cell, and the signs that it repairs taken away."""
    cells, free, now = len(signs), signs == 0.0, np.sum(signs == 1.0)
    harm = np.full(cells, np.inf)
    for i in range(cells):  # the + to the right of cell i, and the − to its left
        now -= signs[i] == 1.0
        if free[i] or not free.any():
            harm[i] = now
        now += signs[i] == -1.0
    best = np.flatnonzero(harm == harm.min())
    here = best[len(best) // 2]
    for i in range(cells):
        if (i > here and signs[i] == 1.0) or (i < here and signs[i] == -1.0) or i == here:
            signs[i] = 0.0
    return here


#: how fast a forecast that was seen goes out of date
FADE = 1.02


@dataclass(frozen=True)
class HalfCrossing(Nature):
    """Keeps the number of ones where the next outcome carries a forecast across one half, and then alternates.

    A forecast that follows the mean of the outcomes moves by about 1/t with each. After t rounds a forecast p would be
    1/2 if the ones were fewer by (p − 1/2)t. This number of ones, less t/2, is the target that p gives. It takes the
    target of the forecast nearest to 1/2 so far, where every later round counts a forecast as 2 % farther. It plays 1
    below the target and 0 from it on.

    Guarantee: None proved. The empirical mean is soon on the wrong side of 1/2 in every round: its T·U-calibration is
    T/2.
    """

    sight = Sight.HISTORY
    needs_horizon, safe_under_delay, memory = False, True, "O(1)"

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        return steps.Nature(keep_bias, [1.0, 0.0, 0.5, math.inf, 0.0], sight=self.sight, hear=cross_half)


def cross_half(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    """The state: q; ones − rounds/2, where this should be, how many outcomes away from 1/2 the forecast was; rounds."""
    mine = state(run)
    away = (forecast - 0.5) * mine[4]
    mine[3] *= FADE
    if abs(away) <= mine[3]:
        mine[2] = mine[1] - away
        mine[3] = max(abs(away), 0.5)
    mine[1] += outcome - 0.5
    mine[0] = 1.0 if mine[1] < mine[2] else 0.0
    mine[4] += 1.0
    return 0
