"""Natures that look at the forecast before they choose."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from onlinecal.core.columns import Column
from onlinecal.core.guarantee import Forecasters, Guarantee, Sight
from onlinecal.core.specification import UNIT, allow, optional, whole, word
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, law, shared
from onlinecal.natures._levels import BIAS, GIVEN, drawn_level, level, level_nature, memory_of_levels
from onlinecal.natures.base import Nature


@dataclass(frozen=True)
class Contrarian(Nature):
    """Does the opposite: y = 1 if and only if the forecast is below one half.

    The mean of a law counts as one half where its parts above and below differ by at most 1e-9 Σ w |v − 1/2|.

    Guarantee: Against every deterministic forecaster, and against all where it sees the draw. Each forecast is at least
    1/2 away from all its outcomes. So T·ECE ≥ T/2, and the swap regret of the quadratic task is at least T/4. Acting by
    whether the forecast is below 1/2 is always wrong: the swap regret of that task, V-CDL and CDL are T. Its external
    regret, hence U-calibration, is at least T/2.

    Source: Dawid 1985, "The impossibility of inductive inference"; Oakes 1985, "Self-calibrating priors do not exist".

    Parameters
    ----------
    sees : {"law", "draw"}, default "law"
        What it goes by: the mean of the law, or the forecast that was drawn.
    """

    version: ClassVar[int] = 2
    needs_horizon, safe_under_delay, memory = False, True, "O(1)"
    allowed = allow(sees=word("law", "draw"))

    sees: Literal["law", "draw"] = "law"

    @property
    def sight(self) -> Sight:
        return Sight.LAW if self.sees == "law" else Sight.DRAW

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        if self.sees == "draw":
            return steps.Nature(contradict_draw, sight=self.sight)
        return steps.Nature(contradict_mean, sight=self.sight, by_side=True)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        against = Forecasters.EVERY if self.sees == "draw" else Forecasters.DETERMINISTIC
        return always_wrong(against, "Dawid 1985; Oakes 1985", told_late=True)


def always_wrong(against: Forecasters, source: str, *, told_late: bool) -> tuple[Guarantee, ...]:
    """Bounds on forecasters with every forecast at least 1/2 away; `told_late`: also with late outcomes."""

    def of(share: int, column: Column) -> Guarantee:
        return Guarantee(
            column,
            f"T/{share}" if share > 1 else "T",
            lambda horizon: horizon / share,
            "deterministic",
            against,
            source,
            upper=False,
            # Each round is wrong by itself, so the rounds that are resolved are.
            delayed=(lambda resolved, most: resolved / share) if told_late else None,
        )

    return (
        of(2, Column("measure", "ece")),
        of(1, Column("measure", "v_cdl")),
        of(2, Column("measure", "u_calibration")),
        of(4, Column("quadratic_task", "swap_regret", task="quadratic")),
    )


#: the part of Σ w |v − 1/2| that is rounding
TIE = 1e-9


@kernel
def contradict(run, size, middle):
    """1 where the mean of the law is below the middle, else 0."""
    (values, weights), lean, spread = law(run), 0.0, 0.0
    for j in range(size):
        part = weights[j] * (values[j] - middle)
        lean += part
        spread += abs(part)
    return 1.0 if lean < -TIE * spread else 0.0


def contradict_mean(run: Run, size: int, forecast: float, number: int) -> float:
    if size == 0:
        return 1.0 if forecast < 0.0 else 0.0
    return contradict(run, size, 0.5)


def contradict_draw(run: Run, size: int, forecast: float, number: int) -> float:
    return 1.0 if forecast < 0.5 else 0.0


Target = Literal["ece", "square", "kink"]


@dataclass(frozen=True)
class Greedy(Nature):
    """Chooses the outcome that raises a target most in expectation over the law; at a tie a coin.

    The target is a sum over the levels v that have been forecast, Σ_v f_v(Σ_{t: p_t = v} (y_t − c)):

    - ``"ece"``: |E_v|, c = v, so the sum is T·ECE.
    - ``"square"``: E_v², the potential by which forecast hedging is analysed.
    - ``"kink"``: with c = `kink` the swap regret of the task with two actions that differ by y − c.
      That is max(s, 0) for v < c, max(−s, 0) for v > c and |s| at c. CDL is at most twice the largest over c.

    Guarantee: With the targets ``"ece"`` and ``"square"``, without `cells`, deterministic forecasters pay as against
    `Contrarian`: T·ECE ≥ T/2, CDL = T. The first outcome of a level is the one farther from it, and is then repeated.
    So every round adds max(v, 1 − v) to |E_v|. With delays it forces nothing.

    Source: Folklore: the opponent in the potential arguments of Foster 1999 and of Hu and Wu 2024. Deviations: with
    `cells` the sums are those of cells, with E measured from the exact forecasts.

    Parameters
    ----------
    target : {"ece", "square", "kink"}, default "ece"
    kink : float, default 0.5
        c of the target ``"kink"``, in [0, 1].
    cells : int, optional
        If given, forecasts of one cell [j/cells, (j+1)/cells) share one sum, and memory does not grow. From 1 to 10^6.
        By default every value is a level of its own.
    """

    version: ClassVar[int] = 2
    sight = Sight.LAW
    needs_horizon, safe_under_delay, memory = False, True, memory_of_levels
    allowed = allow(target=word(*get_args(Target)), kink=UNIT, cells=optional(whole(1, 10**6)))

    target: Target = "ece"
    kink: float = 0.5
    cells: int | None = None

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        given = [get_args(Target).index(self.target), float(self.kink)]
        return level_nature(raise_most, add_to_level, given, cells=self.cells)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        if self.target == "kink" or self.cells is not None:
            return ()
        return always_wrong(Forecasters.DETERMINISTIC, "the docstring of Greedy", told_late=False)


#: the targets, as kernels know them
ECE, SQUARE, KINK = 0, 1, 2


@kernel
def value_of(total, v, target, kink):
    """f_v of the docstring."""
    if target == SQUARE:
        return total * total
    if target == ECE or v == kink:
        return abs(total)
    return max(total, 0.0) if v < kink else max(-total, 0.0)


def raise_most(run: Run, size: int, forecast: float, number: int) -> float:
    """The sum of a level, or cell, is its bias; given are the target and the kink."""
    (values, weights), target, kink, lead = law(run), shared(run)[GIVEN], shared(run)[GIVEN + 1], 0.0
    for j in range(size):
        v, weight = values[j], weights[j]
        if weight > 0.0:
            total = level(run, v)[BIAS]
            c = kink if target == KINK else v
            # By how much more, weighed, the target rises with y = 1 than with y = 0.
            up, down = value_of(total + 1.0 - c, v, target, kink), value_of(total - c, v, target, kink)
            lead += weight * (up - down)
    return 0.5 if lead == 0.0 else (1.0 if lead > 0.0 else 0.0)


def add_to_level(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    target, kink = shared(run)[GIVEN], shared(run)[GIVEN + 1]
    drawn_level(run, forecast, outcome - (kink if target == KINK else forecast))
    return 0
