"""Plays cells, one after the other, and hands each over as soon as it is finished."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidData, InvalidForecast, InvalidParameter, OnlinecalError
from onlinecal.core.guarantee import Guarantee
from onlinecal.core.progress import Progress
from onlinecal.core.relations import following, tightest_of
from onlinecal.core.sight import Sight
from onlinecal.decision_makers.accounts import ENTRIES
from onlinecal.engine.game import Game
from onlinecal.engine.people import Accounts
from onlinecal.rounds.protocol import start
from onlinecal.schedules.base import load
from onlinecal.study.gammas import Gammas, Packer
from onlinecal.study.plan import Cell
from onlinecal.study.played import Joined, Played, Promise

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
    if cell.people.groups:
        # Every stretch between two of their times has counts of its own, of each stream, and those before it.
        grid = getattr(
            start("forecaster", cell.forecaster.strategy, cell.horizon, range(1), cell.seed), "grid", None
        )
        points = 2 * math.isqrt(cell.horizon) if grid is None else len(grid)
        tables = 2 * min(len(cell.people.cuts) + 1, cell.horizon) * (2 + len(cell.nature.strategy.streams))
        size = max(1, min(size, ROOM // (8 * points * tables)))
    batches = [
        _play_batch(cell, range(first, min(first + size, cell.runs)), progress)
        for first in range(cell.first, cell.runs, size)
    ]
    columns = tuple(batches[0].totals)
    names = [column.name for column in columns]
    return Played(
        forecaster=cell.forecaster.label,
        nature=cell.nature_label,
        horizon=cell.horizon,
        rounds=np.array(cell.times),
        totals={c.name: np.concatenate([batch.totals[c] for batch in batches], axis=1) for c in columns},
        columns=columns,
        promises=tuple(p for p in promises(cell) if p.measure in names),
        recorded=bool(cell.nature.strategy.recorded),
        seconds=time.perf_counter() - began,
        open=() if cell.schedule.immediate else batches[0].open,
        schedule=(cell.nature.label, cell.schedule.label),
        people=_joined(cell, batches),
        loop=batches[0].loop,
        sight=Sight(cell.nature.strategy.sight),
        gammas=Gammas([(b.first, b.gammas) for b in batches if b.gammas]),
    )


class _Batch(NamedTuple):
    """What was read of some runs: totals of each column, (n, runs); which loop played; questions open at each
    checkpoint; the accounts of the decision makers, (n, k, runs, entries), and the CDL of their tenures, (k, runs); the
    number of the first run; Γ of each checkpoint and run, packed.
    """

    totals: dict[Column, Any]
    loop: str
    open: tuple[int, ...]
    accounts: Any
    cdl: Any
    first: int
    gammas: bytes


def _joined(cell: Cell, batches: Sequence[_Batch]) -> Joined | None:
    """The accounts of the decision makers in all runs."""
    tenures = cell.people.tenures
    if not tenures:
        return None
    entries = np.concatenate([batch.accounts for batch in batches], axis=2)
    return Joined(
        tuple(t.label for t in tenures),
        tuple(t.task.name for t in tenures),
        tuple(t.response for t in tenures),
        np.array([t.join for t in tenures]),
        np.array([t.leave for t in tenures]),
        {name: entries[..., i].copy() for i, name in enumerate(ENTRIES)},
        np.concatenate([batch.cdl for batch in batches], axis=1),
    )


def _play_batch(cell: Cell, runs: range, progress: Callable[[int], None] | None) -> _Batch:
    game = Game(
        cell.forecaster.strategy,
        cell.nature.strategy,
        horizon=cell.horizon,
        runs=runs,
        seed=cell.seed,
        schedule=cell.schedule,
        cuts=cell.people.cuts,
        keeps=cell.panel.keeps,
        threads=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    )
    streams = [None, *range(len(cell.nature.strategy.streams))]
    own = len(cell.panel.columns)
    totals = np.zeros((len(cell.times), len(runs), own * len(streams)))
    people, accounts, open = Accounts(game, cell.people.tenures), [], []
    certified: dict[str, list[Any]] = {}
    told = None if progress is None else (lambda rounds: progress(rounds * len(runs)))
    packer = Packer(cell.keep, len(runs))
    for i, t in enumerate(cell.times):
        game.advance(t, told)
        open.append(game.asked - game.resolved)
        known = [game.known(stream) for stream in streams]
        packer.add(known, None if game.ledger is None else game.ledger.grid)
        for place, stream in enumerate(streams):
            # Where no outcome is known yet, totals are the empty sum.
            for run, gamma in enumerate(known[place]):
                rounds = None if game.transcripts is None else game.transcripts.of(run, stream)
                try:
                    totals[i, run, place * own : (place + 1) * own] = cell.panel.read(gamma, rounds)
                except OnlinecalError as error:
                    raise InvalidData(
                        f"{error}; after round {t} of {cell.forecaster.label!r} against {cell.nature_label!r}, "
                        f"run {runs[run]}"
                    ) from error
        if cell.people.groups:
            accounts.append(people.read())
        for name, values in game.certificates().items():
            certified.setdefault(name, []).append(values)
    read = {column: totals[:, :, j] for j, column in enumerate(cell.columns)} | {
        Column("certificate", name): _certificate(cell, runs, name, values)
        for name, values in certified.items()
    }
    loop = "compiled" if game.compiled else "event"
    cdl = people.cdl() if cell.people.groups else None
    return _Batch(read, loop, tuple(open), np.array(accounts), cdl, runs[0], packer.packed())


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
    if name in [column.name for column in cell.columns]:
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
    stated, bounds_of = _following(cell)
    for guarantee in stated:
        if math.isnan(guarantee.bound(cell.horizon)):
            raise InvalidParameter(
                f"the bound of '{guarantee}' is NaN at T = {cell.horizon}; expected a number"
            )
    if not cell.schedule.immediate:
        bounds_of = _columns_of(_under_delay(stated, cell), cell)
    return tuple(
        Promise(g.measure, str(g), g.formula, g.kind, g.whom, g.upper, float(g.bound(cell.horizon)))
        for bounds in bounds_of
        for g in tightest_of(bounds, cell.horizon)
    )


_Bounds = list[list[Guarantee]]
#: what is stated of pairs of players and what follows for the columns of a panel, for all horizons; with the pairs,
#: so that no other has their identity
_FOUND: dict[tuple[int, int, int], tuple[Cell, list[Guarantee], _Bounds]] = {}


def _following(cell: Cell) -> tuple[list[Guarantee], _Bounds]:
    """The guarantees of both players that hold in a game, and of each column the bounds that follow."""
    key = id(cell.forecaster), id(cell.nature), id(cell.panel)
    if key not in _FOUND:
        if len(_FOUND) >= 1024:
            _FOUND.clear()
        forecaster, nature = cell.forecaster.strategy, cell.nature.strategy
        stated = [g for g in (*forecaster.guarantees, *nature.guarantees) if g.binds(forecaster, nature)]
        _FOUND[key] = cell, stated, _columns_of(stated, cell)
    return _FOUND[key][1:]


def _columns_of(stated: Sequence[Guarantee], cell: Cell) -> _Bounds:
    # Certificates are no columns of the panel; their bounds are stated.
    certified = (g.column for g in stated if g.column.kind == "certificate")
    return [following(stated, column) for column in dict.fromkeys([*cell.panel.columns, *certified])]


def _under_delay(stated: Sequence[Guarantee], cell: Cell) -> list[Guarantee]:
    """What guarantees say where outcomes become known late; most say nothing."""
    if not any(g.delayed for g in stated):
        return []
    most, resolved = load(cell.schedule, cell.horizon, cell.seed)

    def bound(delayed: Callable[[float, int], float], upper: bool, horizon: float) -> float:
        return delayed(horizon if upper else resolved, most)

    return [
        replace(
            g,
            formula=f"{g.formula}, {most} open at once" if g.upper else f"{g.formula} of known outcomes",
            bound=partial(bound, g.delayed, g.upper),
            anytime=False,
            slack=None,
            potential=None,
        )
        for g in stated
        if g.delayed is not None
    ]


def play_cells(cells: Iterable[Cell], progress: Progress) -> Iterator[tuple[Cell, Played]]:
    """Plays the cells in order; each is yielded before the next begins, so the caller can put it away."""
    for cell in cells:
        progress.describe(f"{cell.forecaster.label} vs {cell.nature.label}, T = {cell.horizon:,}")
        yield cell, play_cell(cell, progress.advance)
