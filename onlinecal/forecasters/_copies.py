"""Forecasters that share the rounds of a game out among copies of another: each copy plays a game of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from onlinecal.core._compile import part_of_kernel
from onlinecal.core.columns import Column
from onlinecal.core.streams import Stream
from onlinecal.forecasters._parts import Part, checked, memo_of
from onlinecal.forecasters.base import Forecaster
from onlinecal.forecasters.compiled import CompiledForecaster
from onlinecal.rounds.law import Floats, Law, StatedLaw, Unplayable
from onlinecal.rounds.parts import WHOSE, Copies, reserve_parts, state_copy, tell_copy
from onlinecal.rounds.record import Round
from onlinecal.rounds.steps import Memory, Step, floats, learn, memo

#: Measures whose total over all rounds is at most the sum of those over the parts into which the rounds are divided.
#: With w(v) rounds at v, E(v) the sum of y − v over them, and both the sums of those of the parts:
#: - `ece` Σ|E(v)|, `binned_ece` and `random_interval_ce` with bins that stand still, `smooth_ece_at` (an integral of
#:   |Σ E(v) K(v, x)|), `kernel_ce` (a norm of E), `weighted_ce`, and the largest |Σ E(v) ω(v)| over weights ω:
#:   `smooth_ce`, `cutoff_ce`, `step_ce`, `low_degree_ce`. All are seminorms of E: the triangle inequality.
#: - `distance_lower`: couplings of the parts, laid side by side, couple the whole, and their costs add up. So do
#:   forecasts of the parts that are moved until each part is calibrated: `distance_certificate` adds up too, and
#:   `kernel_ce_certificate` bounds a norm.
#: - Swap regret of a task that is decided by the best response: at each v (or action, or for all v together, where the
#:   benchmark is that) the largest of finitely many linear functions of (w, E). The largest of a sum is at most the
#:   sum of the largest, and stays so when the worst task is taken: `cdl`, `v_cdl`, `u_calibration`, `scdl_binned` (a
#:   grid that stands still). For the quadratic task it is Σ E(v)²/w(v), which is convex and of degree 1: `cfdl`.
#: - `brier` and `log_loss` are sums over rounds.
#: The others do not add up: what `interval_ce`, `surrogate_interval_ce`, `distance_upper`, `smooth_ece`, `scdl` and
#: bins by quantiles choose to suit Γ is chosen for each part by itself, and `nce` divides by what depends on Γ.
ADD_UP = frozenset(
    {
        "ece", "binned_ece", "binned_ece_width", "random_interval_ce", "smooth_ece_at", "kernel_ce", "weighted_ce",
        "smooth_ce", "cutoff_ce", "step_ce", "low_degree_ce", "distance_lower", "cdl", "v_cdl", "u_calibration",
        "scdl_binned", "cfdl", "brier", "log_loss",
    }
)  # fmt: skip
#: the same of what players certify
CERTIFICATES = frozenset({"distance_certificate", "kernel_ce_certificate"})


def adds_up(column: Column) -> bool:
    """Whether the total of a column over all rounds is known to be at most the sum of those over parts of them."""
    if column.end == "upper":  # of a bracket, which may be wider over all rounds than over their parts
        return False
    if column.kind == "certificate":
        return column.measure in CERTIFICATES
    if column.of_task:
        return bool(column.quantity)
    options = dict(column.options)
    # Weights that stand beside the levels of Γ are others for each part.
    chosen = options.get("strategy") == "quantile" or options.get("weights") is not None
    return column.kind == "measure" and column.measure in ADD_UP and not chosen


class Begin:
    """Begins copies of a forecaster.

    Parameters
    ----------
    of : Forecaster
    horizon, runs : int
    stream : Stream
        Each copy has the child of this stream by its names.
    """

    def __init__(self, of: Forecaster, horizon: int, runs: int, stream: Stream) -> None:
        self.of, self.horizon, self.runs, self.stream = of, horizon, runs, stream
        self._ready: dict[tuple[str, ...], Any] = {}

    def __call__(self, *names: str) -> Any:
        """A copy at its beginning."""
        if names in self._ready:
            return self._ready.pop(names)
        return self.of.start(self.horizon, self.runs, self.stream.child(*names))

    def first(self, *names: str) -> Any:
        """The copy of these names before it begins, to see of what form copies are."""
        self._ready[names] = checked(self.of, self(*names), self.runs)
        return self._ready[names]


# ---------------------------------------------------------------- made of steps

#: the state: the number of the round that was asked last, while it does not count yet, and whose it is; where the
#: search for a free copy begins; then for each copy, how many rounds it has been asked, how many of them are open, and
#: in which round it began
LAST, LAST_WHOSE, FREE, HEAD = range(4)
ASKED, OPEN, BEGUN, EACH = range(4)


def of_copies(
    begin: Begin,
    form: CompiledForecaster,
    law: Step,
    prepare: Callable[[Any, int, Mapping[int, int]], None],
    needs: Sequence[str],
    shared: Any = (),
) -> CompiledForecaster:
    """Plays each round by a copy that `law` chooses; `form` is as all copies are."""
    memory = Copies(begin.runs, form, begin, needs=needs, floats=HEAD, each=EACH, shared=shared)
    names = sorted(certified(begin.of))
    return CompiledForecaster(
        law,
        _learn_copy,
        memory,
        size=form.size,
        grid=form.grid,
        needs=needs,
        certificates=partial(_together, names=names) if names else None,
        reserve=reserve_parts if form.grows else None,
        alone=form.alone,
        prepare=prepare,
    )


def _together(memory: Any, names: Sequence[str]) -> dict[str, Floats]:
    """What the copies prove that have been asked, added up in the order in which they began."""
    totals, state = {name: np.zeros(memory.runs) for name in names}, memory.floats[0, HEAD:].reshape(-1, EACH)
    for k in np.argsort(state[:, BEGUN], kind="stable").tolist():
        if state[k, ASKED]:
            found = memory.players[k].certificates()
            for name in names:
                totals[name] += found[name]
    return totals


def open_rounds(memory: Memory) -> int:
    """How many copies have an open question, or may have when another is asked; the same in all runs."""
    state = memory.floats[0]
    return int(np.count_nonzero(state[HEAD + OPEN :: EACH]) + (state[LAST] > 0))


@part_of_kernel
def _settle(state):
    """The round that was asked last counts from now on."""
    at = HEAD + EACH * int(state[LAST_WHOSE])
    state[at + ASKED] += 1
    state[at + OPEN] += 1
    state[LAST] = 0


@part_of_kernel
def settle_before(run, number):
    """The round that was asked last counts if another is asked now: a question may be asked again."""
    state = floats(run)
    if 0 < state[LAST] < number:
        _settle(state)


@part_of_kernel
def state_next(run, k, number):
    """Has copy k state the law of its next round; how many atoms it has."""
    state, at = floats(run), HEAD + EACH * k
    if state[at + ASKED] == 0:
        state[at + BEGUN] = number
    state[LAST], state[LAST_WHOSE] = number, k
    return state_copy(run, k, int(state[at + ASKED]) + 1)


@learn
def _learn_copy(run, number, size, drawn, outcome):
    state, k = floats(run), int(memo(run)[WHOSE])
    if state[LAST] == number:
        _settle(state)
    state[HEAD + EACH * k + OPEN] -= 1
    state[FREE] = min(state[FREE], k)
    return tell_copy(run, size, drawn, outcome)


# ---------------------------------------------------------------- all others


@dataclass(slots=True)
class Copy:
    """A copy, with how many rounds it has been asked: it counts them by itself."""

    part: Part
    asked: int = 0


@dataclass(slots=True)
class _Turn:
    """A round as a copy plays it."""

    copy: Copy
    key: int
    round: Round


class CopiesPlayer:
    """Plays each round by one copy, chosen by `_whose`, under the same law on the same grid.

    A forecast is pure, so it cannot note whose round it was: the question may be asked again, or nothing come of it.
    But rounds are asked in the order of their numbers, and a number is asked again only where nothing came of it. So
    the round that was asked last is noted down aside, and counts when a later one is asked, or when it is resolved.
    """

    def __init__(self, begin: Begin) -> None:
        self.of, self.horizon, self.runs, self.begin = begin.of, begin.horizon, begin.runs, begin
        runs = begin.runs
        self.copies: dict[int, Copy] = {}
        self.law = Law(runs, 1)
        self.grid: Floats | None = None
        self._first = True
        #: number, copy and key of the round that was asked last
        self._last: tuple[int, Copy, int] | None = None
        names = certified(self.of)
        if names:  # who certifies nothing must not have the method
            self._past = {name: np.zeros(runs) for name in sorted(names)}
            self.certificates = self._certificates

    def _whose(self, round: Round) -> int:
        """Which copy plays a round, by the rounds that count so far; it is then among `copies`."""
        raise AssertionError(f"{type(self).__name__} does not say whose a round is")

    def _start(self, *path: str) -> Copy:
        """A copy at its beginning, with a stream of its own."""
        return Copy(Part(self.of, self.begin(*path), self.runs))

    def _count(self, key: int) -> None:
        """A round of this copy counts from now on."""

    def _release(self, key: int) -> None:
        """A round of this copy has been resolved."""

    def _settle(self) -> None:
        if self._last is not None:
            _, copy, key = self._last
            copy.asked += 1
            self._count(key)
            self._last = None

    def forecast(self, round: Round) -> Law:
        if self._last is not None and self._last[0] < round.number:
            self._settle()
        key = self._whose(round)
        copy = self.copies[key]
        inner = copy.part.state(round, copy.asked + 1)
        self._check_grid(copy)
        round.memo = _Turn(copy, key, inner)
        self._last = round.number, copy, key
        self._say(inner.law)
        return self.law

    def update(self, round: Round) -> None:
        turn = memo_of(round, self.law, _Turn)
        if self._last is not None and self._last[0] == round.number:
            self._settle()
        turn.copy.part.update(turn.round, round.drawn, round)
        self._release(turn.key)

    def _say(self, law: StatedLaw) -> None:
        weights, atoms = law.weights, law.atoms
        if self.law.weights.shape != weights.shape:
            self.law = Law(len(weights), weights.shape[1], self.grid)
        self.law.atoms[...] = atoms
        self.law.weights[...] = weights

    def _check_grid(self, copy: Copy) -> None:
        """Refuses a copy on another grid than the first one, once."""
        if copy.asked:
            return
        grid = copy.part.recorder.grid
        if self._first:
            self.grid, self._first = grid, False
            self.law = Law(self.runs, 1, grid)
        elif (grid is None) != (self.grid is None) or not np.array_equal(grid, self.grid):  # type: ignore[arg-type]
            raise Unplayable(
                "has copies of one forecaster on different grids", "the grid to depend on the horizon alone"
            )

    def _retire(self, copy: Copy) -> None:
        """Keeps what a copy proves that will not play again."""
        for name, totals in self._proved(copy).items():
            self._past[name] += totals

    def _proved(self, copy: Copy) -> dict[str, Floats]:
        if not certified(self.of):
            return {}
        found = copy.part.player.certificates()
        return {name: found[name] for name in self._past}

    def _certificates(self) -> dict[str, Floats]:
        totals = {name: past.copy() for name, past in self._past.items()}
        for copy in self.copies.values():
            for name, own in self._proved(copy).items():
                totals[name] += own
        return totals


def certified(of: Forecaster) -> frozenset[str]:
    """What the copies of a forecaster prove together: the sums of what each proves, where these are proofs."""
    return frozenset(of.certifies) & CERTIFICATES
