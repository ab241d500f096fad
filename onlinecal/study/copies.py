"""Results written into new files: a study that was played in Python, and several files as one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import onlinecal
from onlinecal.core.columns import Held
from onlinecal.core.content import differences, digest
from onlinecal.core.errors import InvalidParameter, StoreError
from onlinecal.core.writing import EXISTS
from onlinecal.study.entries import Planned
from onlinecal.study.lock import writing
from onlinecal.study.played import Batch, Results, together
from onlinecal.study.store import Store, check_replaceable

#: key → content and numbers
Games = dict[str, tuple[Mapping[str, Any], Batch]]


def save(results: Results, path: Path, *, overwrite: bool = False) -> None:
    """Writes results into a file of their own, with the level sets that are kept."""
    if not results.cells:
        raise InvalidParameter("the study has no cells; expected at least one to save")
    plan: list[Planned] = []
    games: Games = {}
    for cell in results.cells:
        if cell.origin is None:
            raise InvalidParameter(
                f"{cell.forecaster!r} against {cell.nature!r}: it cannot be told what these numbers depend on, so they "
                "cannot be kept; expected players and measures whose parameters and source can be read"
            )
        told, game = cell.origin.columns, cell.origin.game
        held = {told.get(c) or Held.of(c, {}): cell.totals[c.name] for c in cell.columns}
        key = digest(game)
        labels = cell.forecaster, *(cell.schedule if cell.schedule[0] else (cell.nature, ""))
        columns = tuple(h for h in held if h.column.kind != "certificate")
        said = cell.horizon, cell.runs, cell.recorded, cell.sight, cell.promises, columns, cell.steps
        plan.append(Planned._make((key, *labels, *said)))
        batch = Batch(0, cell.rounds, held, cell.loop, cell.open, cell.seconds, cell.people, cell.gammas.runs)
        games.setdefault(key, (game, batch))
    meta = {"name": results.name, "title": results.title, "scenario": "", "version": onlinecal.__version__}
    if results.cells[0].people is not None:
        meta["people"] = json.dumps(results.cells[0].people.labels)
    _write(path, meta, plan, games, overwrite)


def _write(
    path: Path, meta: Mapping[str, str], plan: Sequence[Planned], games: Games, overwrite: bool
) -> None:
    with writing(path):
        if path.exists() and (path.stat().st_size or not path.is_file()):
            if not overwrite:
                raise StoreError(f"{path} {EXISTS}")
            check_replaceable(path)
        with Store.create(path, meta, plan) as store, store.transaction():
            for key, game in games.items():
                store.add(key, *game)


# ---------------------------------------------------------------- several files as one


def merge(paths: Sequence[Path], output: Path, *, overwrite: bool = False) -> list[str]:
    """Writes several results files into a new one: their plans one after the other, each cell once.

    Of a cell that several of them have, it takes all runs and columns. Its runs are those of the file with the most;
    columns that another one has in fewer runs are kept, and shown when they are computed or played in the others.

    Returns remarks: differences of the files that are no contradiction, and columns that are not shown. Other numbers
    under one key, or other games under the same labels, are refused by the name of the cell.
    """
    if len(paths) < 2:
        raise StoreError("one results file is nothing to merge; expected at least two")
    for path in paths:
        if output.exists() and path.exists() and output.samefile(path):
            raise StoreError(f"{output} is one of the files that are merged; expected another output")
    with ExitStack() as stack:
        merged = _Merged([stack.enter_context(Store.open(path)) for path in paths])
    _write(output, merged.meta, merged.plan, merged.games, overwrite)
    return merged.remarks


class _Merged:
    """Several files as one."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self.remarks: list[str] = []
        self.meta = stores[0].meta
        self.games: Games = {}
        self._rows: dict[tuple[Any, ...], list[Planned]] = {}
        self._from: dict[str, Path] = {}
        self._done: set[tuple[str, int]] = set()
        for store in stores:
            self._compare(store, stores[0].path)
            self._take(store)
        self.plan = [self._planned(rows) for rows in self._rows.values()]

    def _compare(self, store: Store, first: Path) -> None:
        """Refuses a damaged file and other decision makers; remarks on other differences from the first file."""
        meta, damaged = store.meta, store.damaged()
        if damaged:
            raise StoreError(
                f"{store.path}: something else has changed numbers of {len(damaged)} cells; `onlinecal run SCENARIO "
                "--resume` plays them anew"
            )
        if meta.get("version") != self.meta.get("version"):
            self.remarks.append(
                f"{store.path} was made by onlinecal {meta.get('version')}, {first} by {self.meta.get('version')}"
            )
        if any(meta.get(key) != self.meta.get(key) for key in ("scenario", "options")):
            self.remarks.append(f"{store.path} has another scenario; that of {first} is kept")
        if "people" in meta and self.meta.setdefault("people", meta["people"]) != meta["people"]:
            raise StoreError(f"{store.path}: its decision makers have other labels than those of {first}")

    def _take(self, store: Store) -> None:
        contents, plan = store.contents(store.runs().keys()), store.plan()
        for cell in plan:
            rows = self._rows.setdefault(cell[1:5], [])
            if rows and rows[0].key != cell.key:
                there = self.games[rows[0].key][0] if rows[0].key in self.games else None
                paths = differences(there, contents.get(cell.key))
                why = ", ".join(".".join(path) for path in paths if path)
                raise StoreError(
                    f"{cell} is another game in {store.path} than in a file before it{why and f' ({why})'}; expected "
                    "other labels, or files of one scenario"
                )
            names = {held.column.name: held for row in rows for held in row.columns}
            for held in cell.columns:
                if names.get(held.column.name, held) != held:
                    raise StoreError(
                        f"{cell}: {held.column.name} is something else in {store.path} than in a file before it "
                        "(another version, or another source); measure one of them again"
                    )
            rows.append(cell)
        self._done |= {(cell.key, cell.runs) for cell in store.finished()}
        names_of = {cell.key: str(cell) for cell in plan}
        for key, content in contents.items():
            numbers = store.numbers(key)
            assert numbers is not None
            numbers = numbers._replace(gammas=store.gammas(key))
            if key in self.games:
                old = self.games[key][1]
                if other := _contradiction(old, numbers):
                    raise StoreError(
                        f"{names_of.get(key, key)}: {self._from[key]} and {store.path} contradict each other in "
                        f"{other}; expected the same numbers of the same game; play one of them again"
                    )
                more = max(old, numbers, key=lambda each: max(t.shape[1] for t in each.totals.values()))
                numbers = together([old, numbers])._replace(seconds=more.seconds)
            self._from.setdefault(key, store.path)
            self.games[key] = content, numbers

    def _planned(self, rows: Sequence[Planned]) -> Planned:
        """One row of several for the same game under the same labels."""
        first = rows[0]
        finished = [row for row in rows if (row.key, row.runs) in self._done]
        runs = max(row.runs for row in finished or rows)
        columns = dict.fromkeys(held for row in rows for held in row.columns)
        promises = dict.fromkeys(p for row in rows for p in row.promises)
        if finished:
            totals = self.games[first.key][1].totals
            late = [h for h in columns if h not in totals or totals[h].shape[1] < runs]
            columns = dict.fromkeys(h for h in columns if h not in late)
            if late:
                self.remarks.append(
                    f"{first}: not shown, since not in all {runs} runs: {', '.join(h.column.name for h in late)}"
                )
        return first._replace(runs=runs, columns=tuple(columns), promises=tuple(promises))


def _contradiction(one: Batch, other: Batch) -> str:
    """Where two batches of one game differ in the runs and columns that both have; "" for nowhere."""
    if not np.array_equal(one.rounds, other.rounds):
        return "their checkpoints"
    if one.open != other.open and "simpy" not in (one.loop, other.loop):  # in a world each run has its own
        return "open questions"
    for held in (held for held in one.totals if held in other.totals):
        shared = min(one.totals[held].shape[1], other.totals[held].shape[1])
        old, new = (each.totals[held][:, :shared] for each in (one, other))
        if old.tobytes() != new.tobytes():
            return f"{held.column.name} of run {int(np.argmax((old != new).any(axis=0)))}"
    if one.people is not None and other.people is not None:
        shared = min(one.people.cdl.shape[1], other.people.cdl.shape[1])
        if one.people.of_runs(shared, ()) != other.people.of_runs(shared, ()):
            return "the accounts of decision makers"
    return ""
