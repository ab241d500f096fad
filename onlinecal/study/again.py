"""Columns of games that have been played: computed from the level sets that are kept, where they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onlinecal.core.columns import Column, Held
from onlinecal.core.errors import InvalidData, InvalidParameter, OnlinecalError, StoreError
from onlinecal.core.progress import Progress
from onlinecal.measures.base import bracket_of_moved, ends
from onlinecal.study.entries import Planned
from onlinecal.study.gammas import Gammas, Kept, Packed, exact, unpacked
from onlinecal.study.lock import writing
from onlinecal.study.panel import Asked, Panel, measured
from onlinecal.study.plan import Cell
from onlinecal.study.played import Floats, Played
from onlinecal.study.store import Store

_NOT_KEPT = "their level sets are not kept"
_NOT_EXACT = "their level sets are not kept exactly"
_MOVED = "their predictions were moved, and nothing is proved of it then"
_ROUNDS = "the rounds are read one by one"

# ---------------------------------------------------------------- of a plan


class Piece(NamedTuple):
    """Some measures and tasks of a cell, in its runs from `first` up to, not including, `last`."""

    panel: Panel
    first: int
    last: int


def missing(cell: Cell, held: Mapping[Held, int]) -> list[Cell]:
    """The parts of a cell that are to be played: every column in the runs in which it is not there."""
    there = {c: min(held.get(h, 0), cell.runs) for c, h in cell.held.items()}
    marks = sorted({*there.values(), cell.runs})
    return [
        replace(cell, panel=_only(cell, [c for c, n in there.items() if n <= first]), first=first, runs=last)
        for first, last in pairwise(marks)
    ]


def missing_of_played(cell: Cell, held: Mapping[Held, int]) -> dict[Column, int]:
    """The columns that are not there in all runs that were played, each with the number of runs in which it is."""
    played = min(cell.runs, max(held.values(), default=0))
    return {c: n for c, h in cell.held.items() if (n := held.get(h, 0)) < played}


def computable(
    cell: Cell, held: Mapping[Held, int], gammas: Packed
) -> tuple[list[Piece], dict[str, list[str]]]:
    """The missing columns that can be computed from level sets, and why others cannot: reason → their names."""
    late = missing_of_played(cell, held)
    played = min(cell.runs, max(held.values(), default=0))
    # Where the game itself has moved the predictions, what is kept gives the numbers that playing gives.
    usable = {run for run, packed in gammas.items() if cell.panel.moved or exact(packed)}
    pieces: list[Piece] = []
    reasons: dict[str, list[str]] = {}
    for first in sorted(set(late.values())):
        panel = _only(cell, [c for c, n in late.items() if n == first])
        of_gamma = panel.of_gamma()
        if of_rounds := [asked.name for asked in panel.measures if asked.needs is not None]:
            reasons.setdefault(_ROUNDS, []).extend(of_rounds)
        if of_gamma is None:
            continue
        last = next((run for run in range(first, played) if run not in usable), played)
        if last > first:
            pieces.append(Piece(of_gamma, first, last))
        if last < played:
            names = [asked.name for asked in of_gamma.measures] + [task.name for task in of_gamma.tasks]
            reasons.setdefault(_NOT_EXACT, []).extend(names)
    return pieces, reasons


def read_again(cell: Cell, piece: Piece, gammas: Packed) -> dict[Held, Floats]:
    """The totals of a piece of a cell, (n, runs) each, from level sets that are kept."""
    whom = f"{cell.forecaster.label!r} against {cell.nature_label!r}"
    streams, runs = cell.nature.strategy.streams, range(piece.first, piece.last)
    return _totals(
        _read(piece.panel), [*piece.panel.held().values()], gammas, runs, cell.times, streams, whom
    )


def _only(cell: Cell, columns: Sequence[Column]) -> Panel:
    """The measures and tasks of these columns, of whichever stream."""
    return cell.panel.only({replace(column, stream="") if column.stream else column for column in columns})


def _read(panel: Panel) -> Callable[[Kept], Sequence[float]]:
    return lambda kept: panel.read(kept.gamma, None, kept.moved if panel.moved else None)  # type: ignore[arg-type]


def _totals(
    read: Callable[[Kept], Sequence[float]],
    own: Sequence[Held],
    gammas: Packed,
    runs: range,
    times: Sequence[int],
    streams: Sequence[str],
    whom: str,
) -> dict[Held, Floats]:
    """The totals that are read of the level sets of these runs, (n, runs) each, over all rounds and of each stream."""
    totals = np.zeros((len(times), len(runs), 1 + len(streams), len(own)))
    for run in runs:
        for i, table in enumerate(unpacked(gammas[run])):
            for place, kept in enumerate(table):
                if kept.gamma is None:
                    continue  # no outcome is known yet: totals are the empty sum
                try:
                    totals[i, run - runs[0], place] = read(kept)
                except OnlinecalError as error:
                    raise InvalidData(f"{error}; after round {times[i]} of {whom}, run {run}") from error
    return {
        Held(replace(held.column, stream=stream), held.content): totals[:, :, place, j].copy()
        for place, stream in enumerate(("", *streams))
        for j, held in enumerate(own)
    }


# ---------------------------------------------------------------- without a plan


def measured_later(played: Played, panel: Panel) -> tuple[Played, dict[str, list[str]]]:
    """A cell with further columns, and reason → names of the measures and tasks that cannot be computed.

    Columns that it has stay, unless their content has changed since. New ones are exact where all its Γ are kept
    exactly; else a measure with a modulus gives two, ``name[lower]`` and ``name[upper]``, between which it is.
    """
    streams, runs = played.streams, range(played.runs)
    if played.origin is not None:
        then, now = played.origin.columns, panel.held(streams)
        left = tuple(c for c in played.columns if c not in now or then.get(c) == now[c])
        played = replace(played, columns=left, totals={c.name: played.totals[c.name] for c in left})
    gammas = played.gammas.runs
    found: dict[Held, Floats] = {}
    reasons: dict[str, list[str]] = {}
    known = set(played.columns)
    each = [(asked.name, Panel((asked,), ())) for asked in panel.measures]
    each += [(task.name, Panel((), (task,))) for task in panel.tasks]
    for name, alone in each:
        if known.issuperset(alone.columns):
            continue
        own, read, why = [*alone.held().values()], _read(alone), ""
        if alone.of_gamma() is None:
            why = "it reads the rounds one by one, which are not kept"
        elif not gammas.keys() >= set(runs):
            why = _NOT_KEPT
        elif not all(exact(gammas[run]) for run in runs):
            brackets = _brackets(alone.measures[0]) if alone.measures else None
            why = "" if brackets else _MOVED
            own, read = brackets or (own, read)
        if why:
            reasons.setdefault(why, []).append(name)
        elif not known.issuperset(held.column for held in own):
            whom = f"{played.forecaster!r} against {played.nature!r}"
            found |= _totals(read, own, gammas, runs, played.rounds.tolist(), streams, whom)
    if not found:
        return played, reasons
    # Behind those that were asked for before, and before what players certify.
    new = {held.column: held for held in found}
    columns = [c for c in played.columns if c.kind != "certificate"] + list(new)
    columns += [c for c in played.columns if c.kind == "certificate"]
    totals = played.totals | {held.column.name: values for held, values in found.items()}
    origin = played.origin and replace(played.origin, columns={**played.origin.columns, **new})
    totals = {c.name: totals[c.name] for c in columns}
    return replace(played, columns=tuple(columns), totals=totals, origin=origin), reasons


def _brackets(asked: Asked) -> tuple[list[Held], Callable[[Kept], Sequence[float]]] | None:
    """Both ends of a measure where predictions may have been moved; None where nothing is proved."""
    options = {key: value for key, value in asked.options.items() if key != "max_levels"}
    if asked.record.modulus is None:
        return None
    try:
        asked.record.modulus(0.0, **options)
    except InvalidParameter:
        return None  # nothing is proved for these options

    def read(kept: Kept) -> tuple[float, float]:
        assert kept.gamma is not None
        value: Any = measured(asked.name, asked.function, kept.gamma)
        if kept.moved is not None:
            value = bracket_of_moved(asked.record, kept.gamma, kept.moved, options)
        low, high = ends(value)
        return low * kept.gamma.weight, high * kept.gamma.weight

    told = {**asked.content, "bracket": True, "moved": True}
    return [Held.of(replace(asked.columns[0], end=end), told) for end in ("lower", "upper")], read


def measure_file_again(path: Path, panel: Panel) -> tuple[int, dict[tuple[str, str], list[str]]]:
    """Adds columns to a results file, and to its plan, without playing.

    Returns to how many cells something was added, and (measure or task, why it cannot be computed) → cells.
    """
    with writing(path), Store.open(path, write=True) as store:
        planned, cells = store.finished(), store.results().cells
        if not cells:
            raise StoreError(f"{path} has no finished cells yet; go on with: onlinecal run SCENARIO --resume")
        shown: dict[str, tuple[Held, ...]] = {}
        reasons: dict[tuple[str, str], list[str]] = {}
        with Progress(sum(cell.horizon for cell in cells)) as progress:
            for plan, cell in zip(planned, cells, strict=True):
                progress.describe(f"{cell.forecaster} vs {cell.nature}, T = {cell.horizon:,}, from Γ")
                columns, why = _add(store, plan, cell, panel)
                for reason, names in why.items():
                    for name in names:
                        reasons.setdefault((name, reason), []).append(str(plan))
                if columns != plan.columns:
                    shown[plan.key] = columns
                progress.advance(cell.horizon)
        if shown:
            everything = [p._replace(columns=shown.get(p.key, p.columns)) for p in store.plan()]
            store.put_plan(store.meta, everything)
            store.forget_replaced()
    return len(shown), reasons


def _add(
    store: Store, plan: Planned, cell: Played, panel: Panel
) -> tuple[tuple[Held, ...], dict[str, list[str]]]:
    """Puts the columns that can be computed into the file: those that are to be shown, and why others cannot be."""
    there = store.held()[plan.key]
    asked = panel.held(cell.streams).values()
    # Columns that are there, and not shown, need not be computed.
    ready = [held for held in asked if there.get(held, 0) >= plan.runs and held not in plan.columns]
    names = {held.column for held in ready}
    left = panel.only({c for c in panel.columns if c not in names})
    found, why = measured_later(replace(cell, gammas=Gammas(store.gammas(plan.key))), left)
    assert found.origin is not None
    own = [found.origin.columns[c] for c in found.columns if c.kind != "certificate"]
    new = [held for held in own if held not in plan.columns]
    for first in {there.get(held, 0) for held in new}:
        totals = {
            h: found.totals[h.column.name][:, first:] for h in new if there.get(h, 0) == first < plan.runs
        }
        if totals:
            store.add_columns(plan.key, totals, first)
    taken = {held.column for held in (*ready, *new)}
    return (*(h for h in plan.columns if h.column not in taken), *ready, *new), why
