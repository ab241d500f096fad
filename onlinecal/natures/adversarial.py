"""Natures that look at the forecast before they choose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np

from onlinecal._compile import kernel
from onlinecal.errors import InvalidParameter
from onlinecal.forecasters.base import Ints
from onlinecal.guarantee import DETERMINISTIC_FORECASTERS, EVERY_FORECASTER, Guarantee
from onlinecal.natures.base import Floats, Nature, NaturePlayer, NatureView, Sight
from onlinecal.strategy import check_probability
from onlinecal.streams import Stream


@dataclass(frozen=True)
class Contrarian(Nature):
    """Does the opposite: y = 1 if and only if the forecast is below one half.

    Parameters
    ----------
    sees : {"law", "draw"}, default "law"
        What it goes by: the mean of the law, or the forecast that was drawn.

    Guarantee
    ---------
    Against every deterministic forecaster, and, where it sees the draw, against every forecaster: each forecast is at
    least 1/2 away from all the outcomes that it gets, so T·ECE ≥ T/2 and the swap regret of the quadratic task is at
    least T/4. Who acts on forecasts by whether they are below 1/2 is wrong in every round: the swap regret of that task
    is T, hence so are V-CDL and CDL, and its external regret is at least T/2, hence so is U-calibration.

    Information
    -----------
    Sees LAW or DRAW; no state.

    Source
    ------
    Dawid 1985, "The impossibility of inductive inference"; Oakes 1985, "Self-calibrating priors do not exist".
    Deviations: none.
    """

    sees: Literal["law", "draw"] = "law"

    def __post_init__(self) -> None:
        if self.sees not in ("law", "draw"):
            raise InvalidParameter(f"sees = {self.sees!r}; expected 'law' or 'draw'")

    @property
    def sight(self) -> Sight:
        """LAW or DRAW, as `sees` says."""
        return Sight.LAW if self.sees == "law" else Sight.DRAW

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """A player without state."""
        return _ContrarianPlayer(runs, self.sees == "draw")

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What it forces on those whose forecast it knows."""
        against = EVERY_FORECASTER if self.sees == "draw" else DETERMINISTIC_FORECASTERS
        return always_wrong(against, "Dawid 1985; Oakes 1985")


def always_wrong(against: str, source: str) -> tuple[Guarantee, ...]:
    """What a nature forces that gives every forecast only outcomes of its other side, at least 1/2 away."""
    shares = {"ece": 2, "v_cdl": 1, "u_calibration": 2, "swap_regret[quadratic]": 4}
    return tuple(
        Guarantee(
            measure=measure,
            formula=f"T/{share}" if share > 1 else "T",
            bound=partial(_share, share),
            kind="deterministic",
            against=against,
            source=source,
            upper=False,
        )
        for measure, share in shares.items()
    )


def _share(share: int, horizon: float) -> float:
    return horizon / share


class _ContrarianPlayer:
    def __init__(self, runs: int, draw: bool) -> None:
        self.draw = draw
        self.q = np.empty(runs)

    def probability(self, view: NatureView) -> Floats:
        _contradict(view.forecast if self.draw else view.law.mean, self.q)
        return self.q


Target = Literal["ece", "square", "kink"]


@dataclass(frozen=True)
class Greedy(Nature):
    """Chooses the outcome that raises a target most in expectation over the law, one step ahead; at a tie a coin.

    The target is a sum over the levels v that have been forecast, Σ_v f_v(Σ_{t: p_t = v} (y_t − c)):

    - ``"ece"``: |E_v|, c = v, so the sum is T·ECE;
    - ``"square"``: E_v², the potential by which forecast hedging is analysed;
    - ``"kink"``: with c = `kink` the swap regret of the task with two actions that differ by y − c: max(s, 0) for
      v < c, max(−s, 0) for v > c and |s| at c. CDL is at most twice the largest of these over c, so against one c it
      is what greed for CDL would come to.

    Parameters
    ----------
    target : {"ece", "square", "kink"}, default "ece"
    kink : float, default 0.5
        c of the target ``"kink"``, in [0, 1].
    cells : int, optional
        If given, forecasts of one cell [j/cells, (j+1)/cells) share one sum: memory does not grow, and who never says
        the same number twice still has a bias. From 1 to 10^6. By default every value is a level of its own.

    Guarantee
    ---------
    With the targets ``"ece"`` and ``"square"`` and without `cells` it forces on every deterministic forecaster what
    `Contrarian` does, T·ECE ≥ T/2 and CDL = T among it: the first outcome of a level is the one farther from it, and
    greed then repeats it, so every round adds max(v, 1 − v) to |E_v|.

    Information
    -----------
    Sees LAW. O(size of the law) time a round. Deterministic but for the coin at a tie.

    Source
    ------
    Folklore: the opponent whom the potential arguments of Foster 1999 and of Hu and Wu 2024 are about. Deviations:
    levels are told apart by all bits of their value in a hash table of 16 bytes an entry that doubles when it is
    half full: against a forecaster without a grid it comes to 32 to 64 bytes a round and run; `cells` bounds
    it, and then the sums are those of cells, with E measured from the exact forecasts.
    """

    target: Target = "ece"
    kink: float = 0.5
    cells: int | None = None
    sight = Sight.LAW

    def __post_init__(self) -> None:
        if self.target not in get_args(Target):
            raise InvalidParameter(
                f"target = {self.target!r}; expected {', '.join(map(repr, get_args(Target)))}"
            )
        check_probability("kink", self.kink)
        whole = isinstance(self.cells, int) and not isinstance(self.cells, bool)
        if self.cells is not None and not (whole and 1 <= self.cells <= 10**6):
            raise InvalidParameter(f"cells = {self.cells!r}; expected an integer from 1 to 10^6")

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """A player that has seen no level yet."""
        target = get_args(Target).index(self.target)
        return _GreedyPlayer(runs, target, float(self.kink), self.cells)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What greed for the bias forces on those whose forecast is known."""
        if self.target == "kink" or self.cells is not None:
            return ()
        return always_wrong(DETERMINISTIC_FORECASTERS, "the docstring of Greedy")


class _GreedyPlayer:
    #: entries of a fresh table; a power of two
    FIRST = 64

    def __init__(self, runs: int, target: int, kink: float, cells: int | None) -> None:
        self.target, self.kink, self.cells = target, kink, cells or 0
        self.keys = np.full((runs, self.FIRST), EMPTY, np.int64)
        self.sums = np.zeros((runs, self.FIRST if cells is None else cells + 1))
        self.used = np.zeros(runs, np.int64)
        self.q = np.empty(runs)

    def probability(self, view: NatureView) -> Floats:
        law = view.law
        _greed(law.support, law.weights, self.keys, self.sums, self.cells, self.target, self.kink, self.q)
        return self.q

    def update(self, forecast: Floats, outcome: Ints) -> None:
        most = _note(forecast, outcome, self.keys, self.sums, self.used, self.cells, self.target, self.kink)
        if self.cells == 0 and 2 * most >= self.keys.shape[1]:
            runs, places = self.keys.shape
            keys, sums = np.full((runs, 2 * places), EMPTY, np.int64), np.zeros((runs, 2 * places))
            _rehash(self.keys, self.sums, keys, sums)
            self.keys, self.sums = keys, sums


#: no level: the bits of a forecast are never negative
EMPTY = -1
#: the targets, as kernels know them
ECE, SQUARE, KINK = 0, 1, 2


@kernel
def _place(keys, r, bits):
    """Where a level is in the table of run r, or where it would go; there is always a free place."""
    mask = keys.shape[1] - 1
    # Folded to 31 bits, so that the product fits in 63; its upper bits depend on all those below, in which grid
    # values differ.
    at = (((bits ^ (bits >> 31)) & 0x7FFFFFFF) * 0x9E3779B1 >> 24) & mask
    while keys[r, at] != bits and keys[r, at] != EMPTY:
        at = (at + 1) & mask
    return at


@kernel
def _value(sum_, v, target, kink):
    """f_v of the docstring."""
    if target == SQUARE:
        return sum_ * sum_
    if target == ECE or v == kink:
        return abs(sum_)
    return max(sum_, 0.0) if v < kink else max(-sum_, 0.0)


@kernel
def _greed(support, weights, keys, sums, cells, target, kink, q):
    bits = support.view(np.int64)
    for r in range(support.shape[0]):
        lead = 0.0
        for j in range(support.shape[1]):
            w, v = weights[r, j], support[r, j]
            if w > 0.0:
                # The level of −0 is that of 0, as in the forecasts that are drawn.
                at = int(v * cells) if cells > 0 else _place(keys, r, bits[r, j] if v > 0.0 else 0)
                s = sums[r, at]
                c = kink if target == KINK else v
                lead += w * (_value(s + 1.0 - c, v, target, kink) - _value(s - c, v, target, kink))
        q[r] = 0.5 if lead == 0.0 else (1.0 if lead > 0.0 else 0.0)


@kernel
def _note(forecast, outcome, keys, sums, used, cells, target, kink):
    """Adds the last round to the sums; the number of levels in the fullest table."""
    bits = forecast.view(np.int64)
    most = 0
    for r in range(forecast.shape[0]):
        v = forecast[r]
        if cells > 0:
            at = int(v * cells)
        else:
            at = _place(keys, r, bits[r])
            if keys[r, at] == EMPTY:
                keys[r, at] = bits[r]
                used[r] += 1
        sums[r, at] += outcome[r] - (kink if target == KINK else v)
        most = max(most, used[r])
    return most


@kernel
def _rehash(keys, sums, new_keys, new_sums):
    for r in range(keys.shape[0]):
        for i in range(keys.shape[1]):
            if keys[r, i] != EMPTY:
                at = _place(new_keys, r, keys[r, i])
                new_keys[r, at] = keys[r, i]
                new_sums[r, at] = sums[r, i]


@kernel
def _contradict(forecast, q):
    for r in range(len(q)):
        q[r] = 1.0 if forecast[r] < 0.5 else 0.0
