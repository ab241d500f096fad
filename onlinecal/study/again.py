"""Columns of games that have been played: computed from the level sets that are kept, where they are."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onlinecal.core.columns import Column, Held, labels_of
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.levels import LevelSets
from onlinecal.core.progress import Progress
from onlinecal.naming import measure_of, said_table, task_of
from onlinecal.study.asked import Asked, as_list
from onlinecal.study.entries import Planned
from onlinecal.study.gammas import Gammas, Group, whole_runs
from onlinecal.study.lock import writing
from onlinecal.study.panel import Panel
from onlinecal.study.planning import Cell
from onlinecal.study.played import Floats, Played
from onlinecal.study.store import Store

#: why columns of laws are played
OF_LAWS = "level sets of laws are not kept"


class Missing(NamedTuple):
    """Measures and tasks of a cell that are missing in some runs: its panel, from `cell.first` up to `cell.runs`."""

    cell: Cell
    #: whether they are computed from level sets that are kept, or else played
    kept: bool
    #: whether the runs have been played before
    again: bool = True

    @property
    def reasons(self) -> Iterator[tuple[str, str]]:
        """Why runs that are there are played again, and for which measures and tasks: (reason, name)."""
        if self.again and not self.kept:
            panel = self.cell.panel
            yield from ((OF_LAWS if panel.laws else _why_played(asked), asked.name) for asked in panel.asked)

    def computed(self, gammas: tuple[Group, ...]) -> dict[Held, Floats]:
        """The totals, from level sets that are kept."""
        cell = self.cell
        runs = range(cell.first, cell.runs)
        nature = cell.nature.strategy
        parts = nature.streams, nature.group_names
        return _totals(cell.panel, Gammas(gammas), runs, cell.times, *parts, cell.players)


def _why_played(asked: Asked) -> str:
    return "their level sets are not kept" if asked.needs is None else "the rounds are read one by one"


def missing(cell: Cell, held: Mapping[Held, int], gammas: Callable[[], tuple[Group, ...]]) -> list[Missing]:
    """All that is missing of a cell, by the runs of each column in the file: computed first, then played."""
    there = {column: min(held.get(h, 0), cell.runs) for column, h in cell.held.items()}
    done = min(cell.runs, max(held.values(), default=0))
    found: list[Missing] = []
    kept: set[int] = set()
    if any(n < done for n in there.values()):
        kept = whole_runs(gammas())
    for first in sorted({n for n in there.values() if n < done}):
        last = next((run for run in range(first, done) if run not in kept), done)
        # Γ that is kept is of draws.
        panel = _only(cell, [c for c, n in there.items() if n == first and not c.laws]).of_gamma()
        if panel is not None and last > first:
            found.append(Missing(replace(cell, panel=panel, first=first, runs=last), True))
            there |= {c: max(last, there.get(c, 0)) for c in found[-1].cell.columns}
    for first, last in pairwise(sorted({*there.values(), done, cell.runs})):
        if late := [c for c, n in there.items() if n <= first]:
            rest = replace(cell, panel=_only(cell, late), first=first, runs=last)
            found.append(Missing(rest, False, first < done))
    return found


def _only(cell: Cell, columns: Sequence[Column]) -> Panel:
    """The measures and tasks of these columns, of whichever stream."""
    nature = cell.nature.strategy
    return cell.panel.only(columns, nature.streams, nature.group_names)


def _totals(
    panel: Panel, gammas: Gammas, runs: range, times: Sequence[int], streams: Sequence[str], groups: Sequence[str],
    whom: str,
) -> dict[Held, Floats]:  # fmt: skip
    """Totals of level sets of these runs, (n, runs) each, over all rounds and of each stream and group."""

    def levels_of(i: int, part: int | None) -> Iterator[tuple[list[int], LevelSets, None]]:
        found = [(j, gammas.of(i, run, part)) for j, run in enumerate(runs)]
        known = {j: gamma for j, gamma in found if gamma is not None}
        if known:  # else no outcome is known yet
            yield [*known], LevelSets.of([*known.values()]), None

    totals = np.array(
        [
            panel.read_parts(partial(levels_of, i), streams, groups, f"after round {time} of {whom}", runs)
            for i, time in enumerate(times)
        ]
    )
    return {held: totals[:, :, j].copy() for j, held in enumerate(panel.held(streams, groups).values())}


def measured_later(played: Played, panel: Panel) -> tuple[Played, list[tuple[str, str]]]:
    """A cell with further columns, and what cannot be computed, with why."""
    left, (streams, groups) = [*played.columns], labels_of(played.columns)
    panel.check_groups(played.nature, groups)
    if played.origin is not None:
        then, now = played.origin.columns, panel.held(streams, groups)
        left = [c for c in left if c not in now or then.get(c) == now[c]]
    todo = [asked for asked in panel.asked if not {*asked.columns} <= {*left}]
    unnamed = "no column names the streams of its nature" if "" in played.streams else ""
    whole = bool(todo) and not unnamed and whole_runs(played.gammas.groups) >= set(range(played.runs))
    reasons = [
        (asked.name, unnamed or _why_played(asked)) for asked in todo if not whole or asked.needs is not None
    ]
    able, found = Panel(tuple(todo)).of_gamma() if whole else None, {}
    if able is not None:
        whom, runs = f"{played.forecaster!r} against {played.nature!r}", range(played.runs)
        found = _totals(able, played.gammas, runs, played.rounds.tolist(), streams, groups, whom)
    # Behind those that were asked for before, and before what players certify.
    columns = sorted(
        dict.fromkeys([*left, *(h.column for h in found)]), key=lambda c: c.kind == "certificate"
    )
    totals = played.totals | {held.column.name: values for held, values in found.items()}
    new = {held.column: held for held in found}
    return replace(
        played, columns=tuple(columns), totals={c.name: totals[c.name] for c in columns},
        origin=played.origin and replace(played.origin, columns={**played.origin.columns, **new}),
    ), reasons  # fmt: skip


def measure_file_again(path: Path, panel: Panel) -> tuple[int, dict[tuple[str, str], list[str]]]:
    """Adds columns to a file and its plan, without playing; to how many cells, and (name, why not) → cells."""
    with writing(path), Store.open(path, write=True) as store:
        store.insist()
        plan, held, finished = store.plan(), store.held(), {cell.key for cell in store.finished()}
        # Columns that are there, and not shown, need not be computed.
        now = [_with_those_there(c, held[c.key], panel) if c.key in finished else c for c in plan]
        cells, shown = store.cells(now), {cell.key: cell.columns for cell in now}
        reasons: dict[tuple[str, str], list[str]] = {}
        with Progress(sum(cell.horizon for cell in cells)) as progress:
            for planned, cell in zip(store.finished(now), cells, strict=True):
                progress.describe(f"{cell.forecaster} vs {cell.nature}, T = {cell.horizon:,}, from Γ")
                found, why = measured_later(cell, panel)
                for reason in why:
                    reasons.setdefault(reason, []).append(str(planned))
                assert found.origin is not None
                own = {found.origin.columns[c]: found.totals[c.name] for c in found.columns}
                if any(held[planned.key].get(h, 0) < planned.runs for h in own):
                    store.add_columns(planned.key, own)
                shown[planned.key] = tuple(h for h in own if h.column.kind != "certificate")
                progress.advance(cell.horizon)
        new = [cell._replace(columns=shown[cell.key]) for cell in plan]
        if new != plan:
            store.put_plan(store.meta, new)
    return sum(old != cell for old, cell in zip(plan, new, strict=True)), reasons


def _with_those_there(cell: Planned, held: Mapping[Held, int], panel: Panel) -> Planned:
    streams, groups = labels_of(h.column for h in cell.columns)
    panel.check_groups(cell.nature, groups)  # before anything is written
    ready = {h.column: h for h in panel.held(streams, groups).values() if held.get(h, 0) >= cell.runs}
    left = (h for h in cell.columns if ready.get(h.column, h) == h)
    return cell._replace(columns=tuple(dict.fromkeys((*left, *ready.values()))))


def panel_of(
    measures: Iterable[Any], tasks: Iterable[Any], rounds: int | None, there: Iterable[Column]
) -> Panel:
    """A panel of measures and tasks as `play` takes them, or as words of the command line: tables in braces.

    The columns that are `there` are of classes, or of outcomes 0 and 1.
    """
    kinds = {column.of_classes for column in there if column.kind != "certificate"}
    if len(kinds) > 1:
        raise InvalidParameter(
            "games of classes beside games of outcomes 0 and 1, which have other measures; expected one kind"
        )
    return Panel.of(
        [measure_of(said_table("--measure", spec)) for spec in as_list(measures)],
        [task_of(said_table("--task", spec)) for spec in as_list(tasks)],
        rounds=rounds,
        classes=True in kinds,
    )
