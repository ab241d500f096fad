"""Measures and tasks that are asked for when all has been played: columns from the level sets that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onlinecal.core.columns import Column, Held
from onlinecal.core.errors import InvalidParameter, StoreError
from onlinecal.core.progress import Progress
from onlinecal.measures.base import ends
from onlinecal.measures.moved import bracket_of_moved
from onlinecal.study.again import read_levels
from onlinecal.study.entries import Planned
from onlinecal.study.gammas import Gammas, Kept, exact_runs, runs_of
from onlinecal.study.lock import writing
from onlinecal.study.panel import Asked, Panel, measured
from onlinecal.study.played import Floats, Given, Played
from onlinecal.study.store import Store

_NOT_KEPT = "their level sets are not kept"
_MOVED = "their predictions were moved, and nothing is proved of it then"
_ROUNDS = "it reads the rounds one by one, which are not kept"


def measured_later(played: Played, panel: Panel) -> tuple[Played, dict[str, list[str]]]:
    """A cell with further columns; those that it has are left as they are.

    Parameters
    ----------
    played : Played
    panel : Panel

    Returns
    -------
    played : Played
        With the columns that can be computed: exact ones where all its Γ are kept exactly. Where predictions of some
        were moved, a measure with a modulus gives two, ``name[lower]`` and ``name[upper]``, between which it is.
    reasons : dict
        Reason → names of the measures and tasks that cannot be computed.
    """
    played = _without_stale(played, panel)
    runs = range(next(iter(played.totals.values())).shape[1])
    parts = played.gammas.parts
    exact = {run for first, packed in parts for run in exact_runs(packed, first)}
    there = {run for first, packed in parts for run in range(first, first + runs_of(packed))}
    all_there, all_exact = there.issuperset(runs), exact.issuperset(runs)
    found: dict[Held, Floats] = {}
    reasons: dict[str, list[str]] = {}
    known = set(played.columns)
    for asked in panel.measures:
        if known.issuperset(asked.columns):
            continue
        if asked.needs is not None:
            reasons.setdefault(_ROUNDS, []).append(asked.name)
        elif not all_there:
            reasons.setdefault(_NOT_KEPT, []).append(asked.name)
        elif all_exact:
            found |= _read(played, Panel((asked,), ()), parts, runs)
        elif (held := _bracketed(played, asked, parts, runs, known)) is not None:
            found |= held
        else:
            reasons.setdefault(_MOVED, []).append(asked.name)
    for task in panel.tasks:
        alone = Panel((), (task,))
        if known.issuperset(alone.columns):
            continue
        if all_exact:
            found |= _read(played, alone, parts, runs)
        else:
            reasons.setdefault(_MOVED if all_there else _NOT_KEPT, []).append(task.name)
    return _with(played, found), reasons


def _read(
    played: Played, panel: Panel, parts: Sequence[tuple[int, bytes]], runs: range
) -> dict[Held, Floats]:
    """The totals of each column, from Γ that are all exact."""

    def read(kept: Kept) -> list[float]:
        assert kept.gamma is not None
        return panel.read(kept.gamma)

    return _columns(played, [*panel.held().values()], read, parts, runs)


def _bracketed(
    played: Played, asked: Asked, parts: Sequence[tuple[int, bytes]], runs: range, known: set[Column]
) -> dict[Held, Floats] | None:
    """The same where predictions of some were moved: both ends; None where nothing is proved."""
    options = {key: value for key, value in asked.options.items() if key != "max_levels"}
    if asked.record.modulus is None:
        return None
    try:
        asked.record.modulus(0.0, **options)
    except InvalidParameter:
        return None  # nothing is proved for these options
    both = tuple(replace(asked.columns[0], end=end) for end in ("lower", "upper"))
    if known.issuperset(both):
        return {}

    def read(kept: Kept) -> tuple[float, float]:
        assert kept.gamma is not None
        value: Any = measured(asked.name, asked.function, kept.gamma)
        if kept.moved is not None:
            value = bracket_of_moved(asked.record, kept.gamma, kept.moved, options)
        low, high = ends(value)
        return low * kept.gamma.weight, high * kept.gamma.weight

    told = {**asked.content, "bracket": True, "moved": True}
    return _columns(played, [Held.of(end, told) for end in both], read, parts, runs)


def _columns(
    played: Played, own: Sequence[Held], read: Any, parts: Sequence[tuple[int, bytes]], runs: range
) -> dict[Held, Floats]:
    streams = _streams(played)
    whom = f"{played.forecaster!r} against {played.nature!r}"
    totals = read_levels(read, len(own), parts, runs, played.rounds.tolist(), 1 + len(streams), whom)
    every = [*own, *(Held(replace(held.column, stream=s), held.content) for s in streams for held in own)]
    return {held: totals[:, :, j].copy() for j, held in enumerate(every)}


def _streams(played: Played) -> list[str]:
    return list(dict.fromkeys(column.stream for column in played.columns if column.stream))


def _with(played: Played, found: Mapping[Held, Floats]) -> Played:
    """With these columns behind those that were asked for before, and before what players certify."""
    if not found:
        return played
    before = [c for c in played.columns if c.kind != "certificate"]
    new = {held.column: held for held in found}
    columns = (*before, *new, *(c for c in played.columns if c.kind == "certificate"))
    totals = played.totals | {held.column.name: values for held, values in found.items()}
    origin = played.origin
    if origin is not None:
        origin = Given(origin.game, {**origin.columns, **new})
    return replace(played, columns=columns, totals={c.name: totals[c.name] for c in columns}, origin=origin)


def _without_stale(played: Played, panel: Panel) -> Played:
    """Without those of the panel's columns that are there with another content, which has changed since."""
    if played.origin is None:
        return played
    then, now = played.origin.columns, panel.held(_streams(played))
    stale = {c for c in played.columns if c in now and then.get(c) != now[c]}
    left = tuple(c for c in played.columns if c not in stale)
    return (
        replace(played, columns=left, totals={c.name: played.totals[c.name] for c in left})
        if stale
        else played
    )


def measure_file_again(path: Path, panel: Panel) -> tuple[int, dict[tuple[str, str], list[str]]]:
    """Adds columns to a results file, and to its plan, without playing.

    Returns
    -------
    count : int
        To how many cells something was added.
    reasons : dict
        (measure or task, why it cannot be computed) → cells.

    Raises
    ------
    StoreError
        As `Store` and `writing`; there is no finished cell.
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
    """Puts what can be computed into the file: what is to be shown of the cell, and why the rest cannot be."""
    there = store.held()[plan.key]
    asked = panel.held(_streams(cell)).values()
    # What was asked for before, and not shown since, need not be computed.
    ready = [held for held in asked if there.get(held, 0) >= plan.runs and held not in plan.columns]
    names = {held.column for held in ready}
    left = panel.only({c for c in panel.columns if c not in names})
    found, why = measured_later(replace(cell, gammas=Gammas(store.gammas(plan.key))), left)
    new = []
    if found.origin is not None:
        before = {held.column: held for held in plan.columns}
        for column in found.columns:
            if column.kind != "certificate":
                held = found.origin.columns[column]
                if before.get(column) != held:
                    new.append(held)
    for first in {there.get(held, 0) for held in new}:
        totals = {h: found.totals[h.column.name] for h in new if there.get(h, 0) == first < plan.runs}
        if totals:
            store.add_columns(plan.key, {h: each[:, first:] for h, each in totals.items()}, first)
    taken = {held.column for held in (*ready, *new)}
    return (*(h for h in plan.columns if h.column not in taken), *ready, *new), why
