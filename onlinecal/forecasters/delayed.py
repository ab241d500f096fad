"""Forecasters for games in which outcomes come late."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from onlinecal.core.guarantee import Guarantee
from onlinecal.core.strategy import check_whole
from onlinecal.core.streams import Stream
from onlinecal.forecasters._copies import (
    ASKED,
    EACH,
    FREE,
    HEAD,
    OPEN,
    Begin,
    OfCopies,
    adds_up,
    of_copies,
    open_rounds,
    settle_before,
    state_next,
)
from onlinecal.forecasters.base import Forecaster
from onlinecal.rounds.parts import prepare_parts
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.steps import floats, law, shared


@dataclass(frozen=True)
class Delayed(OfCopies):
    r"""Copies of a forecaster, one for each question that is open at once, so that none meets a delay.

    Each question goes to the first copy that has no open question and has not played all its rounds. If there is none,
    a new copy begins. Each copy plays a game of its own without delays. A delay of d rounds takes d + 1 copies.

    Parameters
    ----------
    of : Forecaster
        The one that is copied.
    slots : int, optional
        The most questions that are open at once. Each copy is then tuned to ⌈T/slots⌉ rounds, and plays no more.
        Default: as many copies as it takes, each tuned to T.

    Guarantee
    ---------
    That of `of`, once for each copy, in the measures whose totals add up. Let B(T) be its bound, and b the most
    questions that are open at once, the one being asked included; times of questions and outcomes do not depend on the
    game. The total over the resolved rounds is at most b·B(T). It is b·B(T/b) if B holds at every round and is
    concave. With `slots`, H = ⌈T/slots⌉ and b ≤ slots, at most K = b + ⌊(T − b)/H⌋ ≤ 2·slots copies begin, and the
    bound is K·B(H), or K·B(T/K) for such a B.

    Proof. The rounds of one copy are a game without delays of at most T (or H) rounds. Between them nature hears of
    rounds that are drawn without regard to this copy, so it is a nature of the same sight. Totals add up if that of all
    rounds is at most the sum over any parts of them. Seminorms of the biases E(v) = Σ (y − v) do: ECE, bins of fixed
    width, the smooth, kernel, cutoff, step, weighted and low-degree calibration errors. So do CDL, V-CDL, U-calibration
    and the swap regret of every task, as suprema of sums of functions that are linear in counts and biases; the squared
    calibration error Σ E(v)²/w(v), which is convex and homogeneous; sums over rounds (Brier score, log loss); and the
    lower distance and the distance certificate, since calibrated parts make a calibrated whole. Measures that fit a
    scale, a partition or a map of levels to Γ do not add up: interval and surrogate interval calibration errors, the
    upper distance, smooth ECE, SCDL, bins by quantiles. Their guarantees are not taken over.

    Information
    -----------
    As the copies. Time of one copy a round, memory of all. Certificates are the sums of the copies'.

    Source
    ------
    Weinberger and Ordentlich 2002, "On delayed prediction of individual sequences"; Joulani, György and Szepesvári
    2013, "Online learning under delayed feedback", algorithm BOLD. Deviations: totals of calibration measures in place
    of regret; a copy that has played its rounds is replaced.

    Examples
    --------
    >>> from onlinecal.forecasters import EmpiricalMean
    >>> from onlinecal.engine.game import Game
    >>> from onlinecal.natures import Bernoulli
    >>> game = Game(Delayed(EmpiricalMean()), Bernoulli(1.0), horizon=9, runs=range(1))
    >>> first, second = game.ask(), game.ask()
    >>> game.resolve(second)
    >>> game.ask().forecast.tolist()                     # by the second copy, which knows the second outcome
    [0.6666666666666666]
    """

    version: ClassVar[int] = 2

    #: which copy forecasts depends on what is open (`onlinecal.core.strategy`)
    counts_open: ClassVar[bool] = True
    safe_under_delay: ClassVar[bool | None] = True

    of: Forecaster
    slots: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.slots is not None:
            check_whole("slots", self.slots, 1, 10**9)

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return True if self.slots is not None else super().needs_horizon

    def steps_at(self, horizon: int) -> int | None:
        return self.of.steps_at(self._share(horizon))

    def start(self, horizon: int, stream: Stream) -> CompiledForecaster:
        share, slots = self._share(horizon), self.slots
        begin = Begin(self.of, share, stream)
        refusal = None if slots is None else (
            f"has an open question in each of its {slots} slots and is asked another",
            f"at most {slots} open at once; raise `slots`, or leave it out",
        )  # fmt: skip
        limits = [math.inf, math.inf] if slots is None else [share, slots]
        form = begin("slot 0", "copy 0")
        return of_copies(
            begin, form, _state_free, _prepare, sorted(self.needs), shared=limits, refusal=refusal
        )

    def _share(self, horizon: int) -> int:
        """To how many rounds a copy is tuned."""
        return horizon if self.slots is None else -(-horizon // self.slots)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        return tuple(self._shared(g) for g in self.of.guarantees if g.upper and adds_up(g.column))

    def _shared(self, own: Guarantee) -> Guarantee:
        """The guarantee of all copies together."""
        slots = self.slots
        source = f"{own.source}; once for each copy, after Joulani, György and Szepesvári 2013"
        delayed = _of_copies(own, slots)
        if slots is None:
            return replace(own, source=source, delayed=delayed)
        slack = own.slack
        return replace(
            own,
            formula=f"{slots}·B(⌈T/{slots}⌉) with B(T) = {own.formula}",
            bound=lambda horizon: slots * own.bound(math.ceil(horizon / slots)),
            anytime=False,
            source=source,
            # Each copy with its share of the false failures.
            slack=None if slack is None else lambda horizon, runs, rate: (
                slots * slack(math.ceil(horizon / slots), runs, rate / slots)
            ),
            potential=None,
            delayed=delayed,
        )  # fmt: skip


def _of_copies(own: Guarantee, slots: int | None) -> Callable[[float, int], float]:
    """(T, most questions open at once) ↦ the sum of the bounds of all copies."""

    def bound(horizon: float, most: int) -> float:
        if slots is not None and most > slots:
            return math.inf
        most = min(most, int(horizon))
        each = horizon if slots is None else math.ceil(horizon / slots)
        # Those that still play, and those that have played all their rounds.
        copies = most if slots is None else most + int((horizon - most) // each)
        return copies * own.bound(horizon / copies if own.anytime else each)

    return bound


#: copies that begin together where there is a limit
FEW = 64


@law
def _state_free(run, number):
    """Has the first copy state the law that has no open question and has not played all its rounds."""
    settle_before(run, number)
    state, (share, slots) = floats(run), shared(run)
    copies, open = (len(state) - HEAD) // EACH, 0
    chosen, k = copies, int(state[FREE])
    while k < copies and (chosen == copies or slots < np.inf):
        at = HEAD + EACH * k
        if state[at + OPEN] != 0:
            open += 1
        elif chosen == copies and state[at + ASKED] < share:
            chosen = k
        k += 1
    if slots == np.inf:
        state[FREE] = chosen
    return state_next(run, chosen, number) if chosen < copies and open < slots else 0


def _prepare(memory: Any, asked: int, open: int, streams: Mapping[int, int]) -> None:
    """Begins the copies that will be needed, and some more where there are many, as all are linked again."""
    count, (share, slots) = len(memory.players), memory.shared
    rounds = memory.floats[0, HEAD + ASKED :: EACH]
    # Copies that have played their rounds, or may have before the last of these questions.
    played = int(np.count_nonzero(rounds + asked >= share)) + int(asked // share)
    needed = min(open_rounds(memory) + open + played, 2 * slots)
    if needed > count:
        # A few that are never more are begun at once, so that the state does not grow.
        few = FEW if slots < math.inf else 0
        most = int(min(max(needed, count + count // 4, few), 2 * slots))
        memory.add(*((f"slot {k}", "copy 0") for k in range(count, most)))
    # No copy has two open questions.
    prepare_parts(memory, asked, 1, dict.fromkeys(streams, 1))
