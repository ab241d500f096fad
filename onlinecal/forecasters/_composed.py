"""Compositions of forecasters as steps; `composed` has their rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.streams import Stream
from onlinecal.forecasters._laws import agreed, regret_both
from onlinecal.rounds.law import Floats
from onlinecal.rounds.parts import Parts, part_law, prepare_parts, reserve_parts, state_part, tell_part
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.steps import (
    Step,
    cached_uniform,
    floats,
    law,
    law_atoms,
    law_values,
    law_weights,
    learn,
    scratch,
    shared,
)


def _whole(law: Step, learn: Step, memory: Parts, **options: Any) -> CompiledForecaster:
    grows = any(player.grows for player in memory.players)
    prepares = any(player.prepares for player in memory.players)
    return CompiledForecaster(
        law,
        learn,
        memory,
        reserve=reserve_parts if grows else None,
        prepare=prepare_parts if prepares else None,
        **options,
    )


@kernel
def _pass_on(run, k, size):
    """States what part k stated, which is no law, so that the engine says what it was."""
    if size >= 0 or len(law_atoms(run)) < -size:
        return min(size, 0)
    values, weights = part_law(run, k)
    for j in range(-size):
        law_atoms(run)[j], law_values(run)[j], law_weights(run)[j] = -1, values[j], weights[j]
    return -size


# ---------------------------------------------------------------- one after the other


def doubling(players: Sequence[Any], first: int, needs: Sequence[str]) -> CompiledForecaster:
    """Epoch k, of first·2^k rounds, is played by player k."""
    memory = Parts(players, needs=needs, one_at_a_time=True, shared=[first])
    return _whole(
        _state_epoch, _learn_epoch, memory, size=max(player.size for player in players), needs=needs
    )


@kernel
def _epoch(run, number):
    """Which epoch a round belongs to, and how many rounds were before it."""
    k, begin, length = 0, 0, int(shared(run)[0])
    while number > begin + length:
        k, begin, length = k + 1, begin + length, 2 * length
    return k, begin


@law
def _state_epoch(run, number):
    k, begin = _epoch(run, number)
    size = state_part(run, k, number - begin)
    if size <= 0:
        return _pass_on(run, k, size)
    values, weights = part_law(run, k)
    for j in range(size):
        law_values(run)[j], law_weights(run)[j] = values[j], weights[j]
    return size


@learn
def _learn_epoch(run, number, size, drawn, outcome):
    k, begin = _epoch(run, number)
    return tell_part(run, k, number - begin, drawn, outcome)


# ---------------------------------------------------------------- on a grid


NEAREST, RANDOM, DOWN = range(3)


def rounded(player: Any, grid: Floats, how: str, needs: Sequence[str]) -> CompiledForecaster:
    """The player's law on a grid."""
    code = ("nearest", "random", "down").index(how)
    memory = Parts([player], needs=needs, shared=[code, *grid])
    size = player.size * (2 if code == RANDOM else 1)
    return _whole(_state_rounded, _learn_rounded, memory, size=size, grid=grid, needs=needs)


@law
def _state_rounded(run, number):
    size, how, grid = state_part(run, 0, number), shared(run)[0], shared(run)[1:]
    if size <= 0:
        return _pass_on(run, 0, size)
    values, weights = part_law(run, 0)
    atoms, shares, m = law_atoms(run), law_weights(run), len(grid) - 1
    for j in range(size):
        if how == NEAREST:
            atoms[j], shares[j] = np.int64(np.rint(values[j] * m)), weights[j]
        elif how == DOWN:
            atoms[j], shares[j] = np.searchsorted(grid, values[j], side="right") - 1, weights[j]
        else:
            i = min(max(np.searchsorted(grid, values[j], side="right") - 1, 0), m - 1)
            up = min(1.0, max(0.0, (values[j] - grid[i]) / (grid[i + 1] - grid[i])))
            atoms[2 * j], atoms[2 * j + 1] = i, i + 1
            shares[2 * j], shares[2 * j + 1] = weights[j] * (1.0 - up), weights[j] * up
    return 2 * size if how == RANDOM else size


@learn
def _learn_rounded(run, number, size, drawn, outcome):
    return tell_part(run, 0, number, drawn >> 1 if shared(run)[0] == RANDOM else drawn, outcome)


# ---------------------------------------------------------------- several at once


def mixture(players: Sequence[Any], rate: float, needs: Sequence[str], stream: Stream) -> CompiledForecaster:
    """The mixture of the players' laws, by their losses so far."""
    k = len(players)
    memory = Parts(
        # Behind the losses the uniforms that are drawn together, and before them which ones that are.
        players, needs=needs, floats=[0.0] * k + [-1.0] + [0.0] * 4, shared=[rate], scratch=k, stream=stream
    )  # fmt: skip
    return _whole(_mix, _charge, memory, size=sum(player.size for player in players), needs=needs)


@law
def _mix(run, number):
    experts = len(floats(run)) - 5
    loss, rate, shares = floats(run)[:experts], shared(run)[0], scratch(run)[:experts]
    least, total, first = loss[0], 0.0, 0
    for k in range(1, experts):
        least = min(least, loss[k])
    for k in range(experts):
        shares[k] = 1.0 if loss[k] == least else math.exp(rate * (least - loss[k]))
        total += shares[k]
    for k in range(experts):
        size = state_part(run, k, number)
        if size <= 0:
            return _pass_on(run, k, size)
        (values, weights), share = part_law(run, k), shares[k] / total
        for j in range(size):
            law_values(run)[first + j], law_weights(run)[first + j] = values[j], share * weights[j]
        first += size
    return first


@learn
def _charge(run, number, size, drawn, outcome):
    """Charges each expert its expected squared loss, and tells it which atom it is to believe was drawn: the engine's
    where that is the expert's, else one by its own law.
    """
    experts, first = len(floats(run)) - 5, 0
    loss, cache = floats(run)[:experts], floats(run)[experts:]
    for k in range(experts):
        values, weights = part_law(run, k)
        pick, total = drawn - first, 0.0
        for j in range(len(values)):
            loss[k] += weights[j] * (values[j] - outcome) ** 2
        if not 0 <= pick < len(values):
            pick, u = 0, np.inf
            for j in range(len(values)):
                if weights[j] > 0.0:
                    # As in the engine, the uniform is looked up only where it decides something, and no branch on it.
                    if total > 0.0 and u > 1.0:
                        u = cached_uniform(run, (number - 1) * experts + k, cache)
                    pick += (j - pick) * np.int64(total <= u)
                total += weights[j]
        code = tell_part(run, k, number, pick, outcome)
        if code < 0:
            return code
        first += len(values)
    return 0


# ---------------------------------------------------------------- several at once, each with one forecast


def aggregation(players: Sequence[Any], edge: float, needs: Sequence[str]) -> CompiledForecaster:
    """The aggregation of the players' forecasts, by their losses so far."""
    k = len(players)
    memory = Parts(players, needs=needs, floats=2 * k, shared=[edge], scratch=k)
    return _whole(_aggregate, _learn_aggregated, memory, size=1, needs=needs)


@kernel
def _said(run, k):
    """The forecast of expert k, off 0 and 1, and its place in the law."""
    values, weights = part_law(run, k)
    edge, place = shared(run)[0], 0
    while weights[place] <= 0.0:
        place += 1
    return min(max(values[place], edge), 1.0 - edge), place


@law
def _aggregate(run, number):
    experts = len(floats(run)) // 2
    for k in range(experts):
        size = state_part(run, k, number)
        if size <= 0:
            return _pass_on(run, k, size)
        scratch(run)[k] = _said(run, k)[0]
    law_values(run)[0], law_weights(run)[0] = agreed(scratch(run)[:experts], floats(run)), 1.0
    return 1


@learn
def _learn_aggregated(run, number, size, drawn, outcome):
    experts, p = len(floats(run)) // 2, law_values(run)[0]
    if not 0.0 < p < 1.0:
        return -1
    for k in range(experts):
        scratch(run)[k], place = _said(run, k)
        code = tell_part(run, k, number, place, outcome)
        if code < 0:
            return code
    regret_both(scratch(run)[:experts], p, outcome, floats(run))
    return 0
