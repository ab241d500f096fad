"""Plays cells, one after the other, and hands each over as soon as it is finished."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidData, InvalidForecast, InvalidParameter, OnlinecalError
from onlinecal.core.progress import Progress
from onlinecal.core.relations import tightest
from onlinecal.engine.game import Game
from onlinecal.study.plan import Cell
from onlinecal.study.played import Played, Promise

#: runs in one lockstep batch: what a round costs in Python is shared by so many
BATCH = 256
#: but no more than that their histories, 8 bytes a round and run where forecasts are real numbers, fit in so much
ROOM = 2**30


def play_cell(cell: Cell, progress: Callable[[int], None] | None = None) -> Played:
    """Plays one cell and reads its panel at the checkpoints.

    Parameters
    ----------
    cell : Cell
        Its runs from `cell.first` on are played.
    progress : callable, optional
        Told the run-rounds played since it was last told.
    """
    began = time.perf_counter()
    size = max(1, min(BATCH, ROOM // (8 * cell.horizon)))
    batches = [
        _play_batch(cell, range(first, min(first + size, cell.runs)), progress)
        for first in range(cell.first, cell.runs, size)
    ]
    columns = tuple(batches[0])
    names = [column.name for column in columns]
    return Played(
        forecaster=cell.forecaster.label,
        nature=cell.nature.label,
        horizon=cell.horizon,
        rounds=np.array(cell.times),
        totals={c.name: np.concatenate([batch[c] for batch in batches], axis=1) for c in columns},
        columns=columns,
        promises=tuple(p for p in promises(cell) if p.measure in names),
        recorded=bool(cell.nature.strategy.recorded),
        seconds=time.perf_counter() - began,
    )


def _play_batch(cell: Cell, runs: range, progress: Callable[[int], None] | None) -> dict[Column, Any]:
    game = Game(
        cell.forecaster.strategy,
        cell.nature.strategy,
        horizon=cell.horizon,
        runs=runs,
        seed=cell.seed,
        threads=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    )
    columns = cell.panel.columns
    totals = np.empty((len(cell.times), len(runs), len(columns)))
    certified: dict[str, list[Any]] = {}
    told = None if progress is None else (lambda rounds: progress(rounds * len(runs)))
    for i, t in enumerate(cell.times):
        game.advance(t, told)
        for run, gamma in enumerate(game.gammas()):
            try:
                totals[i, run] = cell.panel.read(gamma)
            except OnlinecalError as error:
                raise InvalidData(
                    f"{error}; after round {t} of {cell.forecaster.label!r} against {cell.nature.label!r}, "
                    f"run {runs[run]}"
                ) from error
        for name, values in game.certificates().items():
            certified.setdefault(name, []).append(values)
    read = {column: totals[:, :, j] for j, column in enumerate(columns)}
    return read | {
        Column("certificate", name): _certificate(cell, runs, name, values)
        for name, values in certified.items()
    }


def _certificate(cell: Cell, runs: range, name: str, values: list[Any]) -> Any:
    """What a player certifies of itself, which may be anybody's code, as totals of its own column."""
    try:
        totals = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        totals = np.empty(0)
    shape = (len(cell.times), len(runs))
    if totals.shape != shape or np.isnan(totals).any():
        raise InvalidForecast(
            f"forecaster {cell.forecaster.label!r} certifies {name} = {values[-1]!r} at T = {cell.horizon}; expected "
            f"{len(runs)} numbers, one for each run, at each of {len(cell.times)} checkpoints"
        )
    if name in cell.panel.names:
        raise InvalidForecast(
            f"forecaster {cell.forecaster.label!r} certifies {name!r}, which is what the measure is called; expected "
            "another name"
        )
    return totals


def promises(cell: Cell) -> tuple[Promise, ...]:
    """The tightest of the guarantees of both players, and of what follows from them, on what a cell may measure.

    Raises
    ------
    InvalidParameter
        A bound that is not a number.
    """
    forecaster, nature = cell.forecaster.strategy, cell.nature.strategy
    stated = [g for g in (*forecaster.guarantees, *nature.guarantees) if g.binds(forecaster, nature)]
    for guarantee in stated:
        if math.isnan(guarantee.bound(cell.horizon)):
            raise InvalidParameter(
                f"the bound of '{guarantee}' is NaN at T = {cell.horizon}; expected a number"
            )
    # Certificates are no columns of the panel; their bounds are stated.
    columns = dict.fromkeys([*cell.panel.columns, *(g.column for g in stated)])
    return tuple(
        Promise(g.measure, str(g), g.formula, g.kind, g.whom, g.upper, float(g.bound(cell.horizon)))
        for column in columns
        for g in tightest(stated, column, cell.horizon)
    )


def play_cells(cells: Iterable[Cell], progress: Progress) -> Iterator[tuple[Cell, Played]]:
    """Plays the cells in order; each is yielded before the next begins, so the caller can put it away."""
    for cell in cells:
        progress.describe(f"{cell.forecaster.label} vs {cell.nature.label}, T = {cell.horizon:,}")
        yield cell, play_cell(cell, progress.advance)
