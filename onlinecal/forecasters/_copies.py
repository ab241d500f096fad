"""Forecasters that share the rounds of a game out among copies of another: each copy plays a game of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from onlinecal.core._compile import part_of_kernel
from onlinecal.core.columns import Column
from onlinecal.core.streams import Stream
from onlinecal.forecasters.base import Forecaster, OfOthers
from onlinecal.rounds.law import Floats
from onlinecal.rounds.parts import WHOSE, Copies, reserve_parts, state_copy, tell_copy
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.protocol import begin
from onlinecal.rounds.steps import Memory, Step, floats, learn, memo

#: measures with a total over all rounds that is at most the sum of those over parts of them: the proof is in `Delayed`
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


class OfCopies(OfOthers):
    """A forecaster that plays by copies of another."""

    @property
    def certifies(self) -> frozenset[str]:  # type: ignore[override]
        return certified(self.of)


def certified(of: Forecaster) -> frozenset[str]:
    """The certificates of the copies together: sums of those of each, where these are proofs."""
    return frozenset(of.certifies) & CERTIFICATES


class Begin:
    """Begins copies of a forecaster: each has the child of the stream by its names."""

    def __init__(self, of: Forecaster, horizon: int, stream: Stream) -> None:
        self.of, self.horizon, self.stream = of, horizon, stream

    def __call__(self, *names: str) -> Any:
        """A copy at its beginning."""
        return begin("forecaster", self.of, self.horizon, self.stream.child(*names))


#: the state: the round asked last, while it does not count yet, and its copy; where the search for a free copy begins;
#: then for each copy the rounds asked, those open, and the round in which it began
LAST, LAST_WHOSE, FREE, HEAD = range(4)
ASKED, OPEN, BEGUN, EACH = range(4)


def of_copies(
    begin: Begin,
    form: CompiledForecaster,
    law: Step,
    prepare: Callable[[Any, int, int, Mapping[int, int]], None],
    needs: Sequence[str],
    shared: Any = (),
    refusal: tuple[str, str] | None = None,
) -> CompiledForecaster:
    """Plays each round by a copy that `law` chooses; `form` is as all copies are."""
    memory = Copies(form, begin, needs=needs, floats=HEAD, each=EACH, shared=shared)
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
        refusal=refusal,
    )


def _together(memory: Any, names: Sequence[str]) -> dict[str, Floats]:
    """Sums of the certificates of the copies that have been asked, in the order in which they began."""
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
